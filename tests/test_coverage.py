"""Statements with a probability hold as often as they say: small simulations of `benchmarks/statements.py`.

A statement of probability p that holds in k of n repeats fails the test if so few have a probability below 1e-4. So a
statement that holds in 72% of the cases in place of 95% fails most of the time. Seeds are fixed.
"""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm
from scipy.stats import t as student

import consilience as cs
from consilience.report import _examine_views

LEAST = 1e-4  # probability of a false alarm


@pytest.fixture(scope="module")
def statements():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        return importlib.import_module("statements")


def repeated(trial, repeats, **setting):
    """Return the stated probability and the shares of all repeats, by statement and stated probability."""
    found = {}
    for seed in range(1000, 1000 + repeats):
        for statement, nominal, share in trial(seed, **setting):
            found.setdefault((statement, None if np.isnan(nominal) else nominal), []).append(float(share))
    return found


def check(found):
    """Fail if a statement held too rarely: by the binomial distribution, or by Student's where a repeat has a share."""
    assert any(nominal is not None for _, nominal in found)
    for (statement, nominal), shares in found.items():
        if nominal is None:
            continue
        shares, n = np.array(shares), len(shares)
        if set(shares) <= {0.0, 1.0}:
            assert binom.cdf(shares.sum(), n, nominal) > LEAST, (statement, shares.mean(), n)
        else:
            slack = student.isf(LEAST, n - 1) * shares.std(ddof=1) / np.sqrt(n)
            assert shares.mean() + slack > nominal, (statement, shares.mean(), slack)


def test_the_check_finds_a_wrong_bound():
    wrong = np.random.default_rng(0).random(60) < 0.72
    with pytest.raises(AssertionError):
        check({("wrong", 0.95): wrong.astype(float)})
    assert binom.cdf(binom.ppf(LEAST, 60, 0.95) - 1, 60, 0.72) > 0.9  # most wrong ones are found


def test_the_mean_error_rate_of_a_stream_is_bounded_and_that_of_one_hypothesis_is_not(statements):
    check(repeated(statements.streams, 60, n=60, flipped=0.3))
    found = repeated(statements.streams, 8, n=1000, flipped=0.1, rare=0.05, correlation=0.9)
    check(found)
    drawn = next(shares for (text, _), shares in found.items() if "drawn once" in text)
    assert np.mean(drawn) < 0.93  # so the certificate must not claim it


def test_error_rates_of_sparse_classifiers(statements):
    check(repeated(statements.sparsity, 30, n=100))


def test_intervals_of_a_consensus(statements):
    check(repeated(statements.intervals, 6, n=60))


def test_sets_of_a_consensus(statements):
    found = repeated(statements.sets, 6, n=60)
    check({key: shares for key, shares in found.items() if "predict_set" in key[0]})


def test_intervals_of_compared_scores(statements):
    check(repeated(statements.scores, 40, n=80, columns=10, measures=("accuracy",)))
    check(repeated(statements.scores, 15, n=80, columns=10, measures=("r2",)))


def test_differences_of_equal_estimators(statements):
    check(repeated(statements.differences, 40, n=80, columns=10, views=3))


@pytest.mark.parametrize("setting", [{"n": 60, "rare": 0.2}, {"n": 40, "freedom": 10.0}], ids=["classes", "numbers"])
def test_measures_of_external_cohorts(statements, setting):
    check(repeated(statements.external, 60, **setting))


@pytest.mark.parametrize("delta", [0.002, 0.05])
def test_false_alarms_of_drift(statements, delta):
    check(repeated(statements.drift, 100, delta=delta))


def test_quantiles_need_a_small_limit_of_steps(statements):
    small, large = (repeated(statements.quantiles, 6, n=5000, C=C) for C in (0.01, 1.0))
    for (_, q), shares in small.items():
        assert abs(np.mean(shares) - q) < 0.02
    share = {text: np.mean(shares) for (text, _), shares in large.items()}
    assert share["quantile loss, q = 0.9: share of targets below"] < 0.8  # as the guide says


def test_columns_of_a_report_have_students_interval(monkeypatch):
    """Three shuffles with normal losses: the interval covers their mean in 95% of the cases, not in 81%."""
    rng = np.random.default_rng(0)
    draws = 5 + rng.normal(size=(4000, _examine_views.COLUMN_SHUFFLES))
    errors = draws.std(axis=1, ddof=1) / np.sqrt(draws.shape[1])
    found = cs.FeatureImportances(
        "permutation", ("a",) * 4000, tuple(map(str, range(4000))), draws.mean(axis=1), errors, (np.arange(1),) * 4000,
        is_block=np.zeros(4000, dtype=bool),
    )  # fmt: skip
    monkeypatch.setattr(_examine_views, "feature_importances", lambda *given, **options: found)
    X, y = cs.datasets.make_views(60, random_state=0)
    board = cs.compare(X, y, estimators=["LateFusion"], baselines=False, cv=3)
    rows = _examine_views.important_columns(_examine_views.FoldFits(board, X, y, None), board[0])[0]["a"]
    covered = np.mean([low <= 5 <= high for _, _, low, high in rows])
    assert abs(covered - 0.95) < norm.isf(LEAST / 2) * np.sqrt(0.95 * 0.05 / 4000)
