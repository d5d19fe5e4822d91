"""What the experiment with many classes computes by itself: machines on Gram matrices and the choice of σ and C."""

import numpy as np
import pytest

from consilience import MaxMarginClassifier
from consilience.experiments import _margin_machines as machines
from consilience.experiments.uci_classes import _COLUMNS, _ERRORS, _SECONDS, _folds
from consilience.kernels import RBF
from consilience.kernels._distances import squared_distances


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=90)
    return rng.normal(size=(90, 3)) + 1.2 * rng.normal(size=(4, 3))[y], y


@pytest.mark.parametrize("vectors", ["simplex", "indicator"])
def test_plain_coordinate_descent_and_the_solver_agree(samples, vectors):
    X, y = samples
    K = machines.gaussian(squared_distances(X).astype(np.float32), 10)
    fitted = machines.MaxMargin(vectors, K, y, 1.0)
    alpha, steps = machines.plain_steps(K, fitted.labels.A, y, 1.0, 1e-6, 1000)
    Q = fitted.labels.A[np.ix_(y, y)] * K
    best, ours = (0.5 * a @ Q @ a - a.sum() for a in (alpha, fitted.alpha))
    assert best <= ours + 1e-6 <= best + 2e-3 * abs(best)
    assert steps > len(y)


@pytest.mark.parametrize("vectors", ["simplex", "indicator"])
def test_the_machine_on_a_gram_matrix_is_the_estimator(samples, vectors):
    X, y = samples
    K = machines.gaussian(squared_distances(X).astype(np.float32), 10)
    own = machines.MaxMargin(vectors, K[:60, :60], y[:60], 1.0).predict(K[60:, :60])
    model = MaxMarginClassifier(RBF(0.5 / machines.SIGMAS[10] ** 2), class_vectors=vectors).fit(X[:60], y[:60])
    assert np.mean(own == model.predict(X[60:])) > 0.95  # two solutions within the same gap


@pytest.mark.parametrize("name", machines.MACHINES)
def test_costs_that_are_skipped_would_have_scored_the_same(samples, name):
    X, y = samples
    K, inner, fit = machines.gaussian(squared_distances(X).astype(np.float32), 8), _folds(y, 0), machines.MACHINES[name]
    every = np.mean([
        [np.mean(fit(K[np.ix_(train, train)], y[train], C).predict(K[np.ix_(test, train)]) == y[test])
         for C in machines._costs(fit)] for train, test in inner
    ], axis=0)  # fmt: skip
    assert machines._scores(K, y, inner, fit) == pytest.approx(every, abs=0.02)


def test_widths_of_constant_and_identical_gram_matrices_are_left_out(samples):
    squared = squared_distances(samples[0])
    kept = machines.kept_widths(squared)
    grams = [np.exp(-0.5 * squared / machines.SIGMAS[i] ** 2) for i in range(21)]
    nearest = [np.median(np.sort(K, axis=1)[:, -2]) for K in grams]
    assert kept == [i for i in range(21) if nearest[i] > 1e-3 and np.median(grams[i]) < 0.99]
    assert 3 < len(kept) < 18
    assert machines.kept_widths(1e12 * squared) == [20]


def test_the_choice_is_the_best_of_a_full_scan_where_scores_have_one_peak(samples):
    X, y = samples
    squared, inner = squared_distances(X).astype(np.float32), _folds(y, 0)
    fit = machines.MACHINES["indicator"]
    i, C = machines.choose(squared, y, inner, fit)
    scan = {k: machines._scores(machines.gaussian(squared, k), y, inner, fit) for k in machines.kept_widths(squared)}
    assert scan[i].max() >= max(score.max() for score in scan.values()) - 0.02
    assert scan[i][machines.COSTS.index(C)] == scan[i].max()


def test_published_tables_have_a_value_for_each_column():
    assert {len(row) for row in _ERRORS.values()} == {len(_COLUMNS)}
    assert {len(row) for row in _SECONDS.values()} == {len(_COLUMNS) - 2}
    assert _ERRORS.keys() == _SECONDS.keys()
