"""Differences between estimators: exact tests, coverage of intervals, errors over a whole leaderboard, power."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import (
    get_scorer,
    log_loss,
    make_scorer,
    matthews_corrcoef,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedKFold

import consilience as cs
from consilience.evaluation._differences import FEWEST_UNITS, TRAINING_ALLOWANCE, PairedScores, compare_all, verdict_of
from consilience.evaluation._intervals import (
    flip_p_value,
    holm,
    mean_interval,
    replicate_weights,
    share_interval,
    weaker,
)
from consilience.evaluation._measures import HeldOutPart, weighted_scores

FIVE = StratifiedKFold(5, shuffle=True, random_state=0)


def row(name, parts, scores, n):
    scored = np.zeros(n, dtype=bool)
    for part in parts:
        scored[part.test] = True
    return SimpleNamespace(name=name, parts=tuple(parts), scores=tuple(scores), scored=scored)


def row_of(name, correct, y, folds=5):
    """Return a row whose predictions are right where `correct` is True, in folds of neighbors."""
    predictions = np.where(correct, y, 1 - y)
    tests = np.array_split(np.arange(len(y)), folds)
    parts = [HeldOutPart(test, predictions[test]) for test in tests]
    return row(name, parts, [correct[test].mean() for test in tests], len(y))


def accuracies(y, groups=None, sample_weight=None):
    return PairedScores(get_scorer("accuracy"), y, np.array([0, 1]), groups, sample_weight, 0.25)


# -- the tests themselves
def test_the_test_of_mcnemar_is_exact():
    for b, c in itertools.product(range(12), repeat=2):
        terms = np.concatenate([np.ones(b), -np.ones(c), np.zeros(5)])
        expected = binomtest(b, b + c).pvalue if b + c else 1.0
        assert flip_p_value(terms) == pytest.approx(expected)
        assert flip_p_value(3 * terms) == pytest.approx(expected)


def test_sums_with_random_signs():
    def by_hand(terms):
        signs = np.array(list(itertools.product((-1, 1), repeat=len(terms))))
        return np.mean(np.abs(signs @ terms) >= abs(terms.sum()) - 1e-9)

    rng = np.random.default_rng(0)
    for k in (1, 2, 5, 11):
        whole, real = rng.integers(-4, 5, size=k).astype(float), rng.normal(size=k)
        assert flip_p_value(whole) == pytest.approx(by_hand(whole))
        assert flip_p_value(real) == pytest.approx(by_hand(real))
    many = rng.normal(size=14) + 0.4
    assert flip_p_value(many) == pytest.approx(by_hand(many), abs=0.02)  # signs at random
    large = rng.normal(size=3000) + 0.03
    assert flip_p_value(large) == pytest.approx(2 * norm.sf(abs(large.sum()) / np.sqrt(large @ large)))
    whole = np.concatenate([np.full(40, 2.0), -np.full(25, 2.0), np.ones(30)])
    signs = rng.choice((-1.0, 1.0), size=(200_000, len(whole)))
    assert flip_p_value(whole) == pytest.approx(np.mean(np.abs(signs @ whole) >= whole.sum()), abs=1e-3)


def test_corrected_p_values():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])  # by hand
    assert holm(np.zeros(0)).shape == (0,)
    assert weaker(0.05, 1.0) == pytest.approx(0.05)
    assert weaker(2 * norm.sf(3.0), 1.25) == pytest.approx(2 * norm.sf(2.4))


def test_an_accuracy_is_compared_by_the_samples_that_one_has_right():
    y = np.zeros(628, dtype=int)
    one, two = np.ones(628, dtype=bool), np.ones(628, dtype=bool)
    two[:146] = False  # 146 samples right only by the first, 4 only by the second
    one[146:150] = False
    scores = accuracies(y)
    value, low, high, p_value, n_units = scores.compare(row_of("one", one, y, 3), row_of("two", two, y, 3))
    assert value == pytest.approx(142 / 628, abs=1e-3)
    assert p_value == pytest.approx(weaker(binomtest(4, 150).pvalue, TRAINING_ALLOWANCE))
    assert low > 0.17
    assert high < 0.28
    assert verdict_of(p_value, n_units, 100) == "different"


def test_too_few_samples_are_said():
    y = np.zeros(12, dtype=int)
    found = accuracies(y).compare(row_of("one", np.arange(12) > 3, y, 3), row_of("two", np.arange(12) > 5, y, 3))
    assert verdict_of(*found[3:]) == "too few samples to tell"
    assert verdict_of(1.0, FEWEST_UNITS) == "not told apart"
    assert verdict_of(1.0, FEWEST_UNITS, 10**9) == "too few samples to tell"  # even if they differed on every sample
    same = np.ones(500, dtype=bool)
    y = np.zeros(500, dtype=int)
    found = accuracies(y).compare(row_of("one", same, y), row_of("two", same, y))
    assert found[0] == 0
    assert verdict_of(*found[3:]) == "not told apart"
    groups = np.repeat(np.arange(5), 100)  # five groups are five observations
    found = accuracies(y, groups).compare(row_of("one", same, y), row_of("two", np.arange(500) % 4 > 0, y))
    assert found[0] == pytest.approx(0.25)
    assert verdict_of(*found[3:]) == "too few samples to tell"


# -- weighted scores
CLASSES = np.array(["a", "b", "c"])
NAMES = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "f1_micro", "precision_macro", "recall_macro"]
NAMES += ["jaccard_weighted", "neg_log_loss"]


@pytest.mark.parametrize("name", NAMES)
def test_weighted_scores_equal_those_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    y, P = rng.choice(CLASSES, size=40), rng.dirichlet(np.ones(3), size=60)
    y = np.concatenate([y, rng.choice(CLASSES, size=20)])
    test = np.arange(5, 45)
    part = HeldOutPart(test, CLASSES[P[test].argmax(axis=1)], P[test], None)
    W = rng.exponential(size=(4, 40))
    scorer = get_scorer(name)
    response = P[test] if name == "neg_log_loss" else part.predictions
    expected = [scorer._sign * scorer._score_func(y[test], response, sample_weight=w, **scorer._kwargs) for w in W]
    np.testing.assert_allclose(weighted_scores(scorer, y, part, W, CLASSES), expected)


def test_weighted_areas_and_errors():
    rng = np.random.default_rng(0)
    y, d = rng.integers(0, 2, size=50), np.round(rng.normal(size=50), 1)  # with ties
    W, test = rng.exponential(size=(3, 50)), np.arange(50)
    part = HeldOutPart(test, (d > 0).astype(int), None, np.column_stack([-d, d]))
    found = weighted_scores(get_scorer("roc_auc"), y, part, W, np.array([0, 1]))
    np.testing.assert_allclose(found, [roc_auc_score(y, d, sample_weight=w) for w in W])
    generic = weighted_scores(make_scorer(matthews_corrcoef), y, part, W, np.array([0, 1]))
    np.testing.assert_allclose(generic, [matthews_corrcoef(y, part.predictions, sample_weight=w) for w in W])
    target = 1e6 + rng.normal(size=50)
    part = HeldOutPart(test, target + 0.5 * rng.normal(size=50))
    for name, metric in (("r2", r2_score), ("neg_mean_absolute_error", lambda *a, **k: -mean_absolute_error(*a, **k))):
        found = weighted_scores(get_scorer(name), target, part, W, None)
        np.testing.assert_allclose(found, [metric(target, part.predictions, sample_weight=w) for w in W], rtol=1e-6)
    assert weighted_scores(lambda model, X, y: 0.0, target, part, W, None) is None
    codes = rng.integers(0, 3, size=50)
    y, P = CLASSES[codes], rng.dirichlet(np.ones(3), size=50)
    scorers, _ = cs.evaluation._measures.read_scoring("roc_auc", y, "classification")
    found = weighted_scores(scorers["roc_auc_ovr"], y, HeldOutPart(test, y, P, None), W, CLASSES)
    np.testing.assert_allclose(
        found[0], np.mean([roc_auc_score(y == c, P[:, k], sample_weight=W[0]) for k, c in enumerate(CLASSES)])
    )
    ones = weighted_scores(scorers["roc_auc_ovr"], y, HeldOutPart(test, y, P, None), np.ones((1, 50)), CLASSES)
    assert ones[0] == pytest.approx(roc_auc_score(y, P, multi_class="ovr"))


def test_replicates_of_a_mean_have_its_standard_error():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=400)
    y = np.zeros(400)
    parts = [HeldOutPart(test, errors[test]) for test in np.array_split(np.arange(400), 5)]
    scores = PairedScores(get_scorer("neg_mean_absolute_error"), y, None, None, None, 0.25)
    fold_scores = [-np.abs(errors[part.test]).mean() for part in parts]
    low, high = scores.interval(np.array(fold_scores), parts, np.ones(400, dtype=bool))
    half = 1.96 * np.abs(errors).std() / 20 * np.sqrt(2.25)  # Nadeau and Bengio's factor for five folds
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    W = replicate_weights(np.repeat(np.arange(10), 40), 0, 50)
    assert all(len(np.unique(w)) == 10 for w in W)  # groups keep one weight


# -- simulations with predictions that are drawn
def drawn(rng, n, shares, overlap):
    """Return which predictions are right: of the easy samples all, of the others by chance."""
    easy = rng.random(n) < overlap
    return [easy | (rng.random(n) < (share - overlap) / (1 - overlap)) for share in shares]


def test_equal_estimators_are_rarely_called_different():
    rng, y = np.random.default_rng(0), np.zeros(150, dtype=int)
    single = board = covered = 0
    for _ in range(200):
        rows = [row_of(str(k), right, y) for k, right in enumerate(drawn(rng, 150, [0.8] * 6, 0.5))]
        rows.sort(key=lambda each: -np.mean(each.scores))
        scores = accuracies(y)
        found = compare_all(scores, rows)
        board += any(found[0, k].verdict == "different" for k in range(1, 6))  # against the best, as on a leaderboard
        first, second = (next(each for each in rows if each.name == name) for name in "01")
        _, low, high, p_value, _ = scores.compare(first, second)
        single += p_value <= 0.05
        covered += low <= 0 <= high
    assert single <= 0.05 * 200
    assert board <= 0.05 * 200
    assert covered >= 0.94 * 200


@pytest.mark.parametrize("share", [0.95, 0.85, 0.75])
def test_ten_points_are_found_in_300_samples(share):
    """The second estimator has 13 of 100 samples wrong that the first has right, and 3 of 100 the other way round."""
    rng, y = np.random.default_rng(0), np.zeros(300, dtype=int)
    found, covered = 0, 0
    for _ in range(400):
        one = rng.random(300) < share
        two = np.where(one, rng.random(300) < (share - 0.13) / share, rng.random(300) < 0.03 / (1 - share))
        _, low, high, p_value, n = accuracies(y).compare(row_of("one", one, y), row_of("two", two, y))
        found += verdict_of(p_value, n) == "different"
        covered += low <= 0.1 <= high
    assert found > 0.9 * 400
    assert covered >= 0.95 * 400


def test_samples_of_a_group_are_not_independent():
    rng, y = np.random.default_rng(0), np.zeros(300, dtype=int)
    groups = np.repeat(np.arange(30), 10)
    called = {True: 0, False: 0}
    for _ in range(200):  # both estimators are right on whole groups, with equal chances
        rows = [row_of(name, np.repeat(rng.random(30) < 0.7, 10), y, 5) for name in "ab"]
        for whole in called:
            called[whole] += accuracies(y, groups if whole else None).compare(*rows)[3] <= 0.05
    assert called[True] <= 0.05 * 200
    assert called[False] > 0.3 * 200  # what would be wrong


# -- simulations with fitted estimators
def ridge(X, y):
    target = 2.0 * y - 1
    center, mean = X.mean(axis=0), target.mean()
    Z = X - center
    if Z.shape[1] > len(Z):
        w = Z.T @ np.linalg.solve(Z @ Z.T + 10 * np.eye(len(Z)), target - mean)
    else:
        w = np.linalg.solve(Z.T @ Z + 10 * np.eye(Z.shape[1]), Z.T @ (target - mean))
    return lambda new: (new - center) @ w + mean


def fitted_rows(tables, y, splits):
    """Return rows of a ridge classifier on each table, and their accuracies and areas under the curve."""
    found = []
    for X in tables:
        parts = []
        for train, test in splits:
            d = ridge(X[train], y[train])(X[test])
            parts.append(HeldOutPart(test, (d > 0).astype(int), None, np.column_stack([-d, d])))
        found.append(tuple(parts))
    scores = {
        "accuracy": [[np.mean(part.predictions == y[part.test]) for part in parts] for parts in found],
        "roc_auc": [[roc_auc_score(y[part.test], part.decisions[:, 1]) for part in parts] for parts in found],
    }
    return {
        name: [row(str(k), parts, own, len(y)) for k, (parts, own) in enumerate(zip(found, values, strict=True))]
        for name, values in scores.items()
    }


@pytest.mark.parametrize(
    ("n", "columns", "cv"),
    [
        (300, 5, FIVE),
        (100, 300, FIVE),
        (100, 20, RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)),
        (120, 20, "groups"),
    ],
    ids=["few columns", "many columns", "repeats", "groups"],
)
def test_views_of_equal_value_are_rarely_called_different(n, columns, cv):
    """Views with the same signal and other noise: none is better."""
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    groups = np.repeat(np.arange(n // 4), 4) if cv == "groups" else None
    splitter = StratifiedGroupKFold(5) if cv == "groups" else cv
    splits = list(splitter.split(np.zeros((n, 1)), y, groups))
    repetitions, n_views = (40, 5) if columns > n else (20, 4)
    counts = {"accuracy": np.zeros(3), "roc_auc": np.zeros(3)}
    for _ in range(repetitions):
        tables = []
        for _ in range(n_views):
            noise = rng.normal(size=(n, columns))
            if groups is not None:
                noise = (noise + rng.normal(size=(n // 4, columns))[groups]) / np.sqrt(2)
            tables.append(noise + np.outer(2 * y - 1, np.full(columns, 0.75 / np.sqrt(columns))))
        for name, rows in fitted_rows(tables, y, splits).items():
            rows.sort(key=lambda each: -np.mean(each.scores))
            scores = PairedScores(get_scorer(name), y, np.array([0, 1]), groups, None, 0.25)
            found = compare_all(scores, rows)
            single = np.array([scores.compare(*pair)[3] for pair in itertools.combinations(rows, 2)])
            plain = [weaker(p_value, 1 / scores._allowance) <= 0.05 for p_value in single]
            best = any(found[0, k].verdict == "different" for k in range(1, n_views))
            counts[name] += np.mean(single <= 0.05), best, np.mean(plain)
    for name, (pairs, boards, without) in counts.items():
        if columns > n:  # without the allowance for chance in the training samples
            assert without > 0.07 * repetitions, name
        assert pairs <= 0.05 * repetitions, name
        assert boards <= 0.05 * repetitions + 2, name  # two more of so few boards are within chance


def test_intervals_of_scores_cover_those_of_new_samples():
    rng, n, columns = np.random.default_rng(0), 150, 30
    y, new_y = np.arange(n) % 2, np.arange(4000) % 2
    splits = list(FIVE.split(np.zeros((n, 1)), y))
    covered = {"accuracy": 0, "roc_auc": 0}
    for _ in range(100):
        shift = np.full(columns, 0.75 / np.sqrt(columns))
        X, new = (rng.normal(size=(len(t), columns)) + np.outer(2 * t - 1, shift) for t in (y, new_y))
        outputs = [ridge(X[train], y[train])(new) for train, _ in splits]
        truth = {
            "accuracy": np.mean([np.mean((d > 0) == new_y) for d in outputs]),
            "roc_auc": np.mean([roc_auc_score(new_y, d) for d in outputs]),
        }
        for name, (one,) in fitted_rows([X], y, splits).items():
            scores = PairedScores(get_scorer(name), y, np.array([0, 1]), None, None, 0.25)
            low, high = scores.interval(np.array(one.scores), one.parts, one.scored)
            covered[name] += low <= truth[name] <= high
    assert min(covered.values()) >= 92


# -- on a leaderboard
def test_a_scorer_that_needs_the_model_is_compared_over_folds():
    X, y = cs.datasets.make_views(n_samples=90, n_classes=2, random_state=0, return_X_y=True)
    names = ["EarlyFusion", "LateFusion", "DummyClassifier"]
    own = {"scoring": lambda model, X, y: model.score(X, y), "cv": 3, "baselines": False}
    board = cs.compare(X, y, estimators=names, **own)
    found = board.difference("EarlyFusion", "DummyClassifier")
    early, constant = (np.array(next(r.scores for r in board if r.name == name)) for name in (names[0], names[2]))
    assert found.value == pytest.approx(np.mean(early - constant))
    assert (found.low, found.high) == pytest.approx(mean_interval(early - constant, 0.5))
    assert len(board.differences()) == len(board) - 1


def test_perfect_scores_have_intervals_with_a_width():
    y = np.arange(60) % 2
    d = 2.0 * y - 1
    parts = [
        HeldOutPart(test, y[test], None, np.column_stack([-d, d])[test]) for test in np.array_split(np.arange(60), 3)
    ]
    for name in ("accuracy", "roc_auc", "balanced_accuracy"):
        scores = PairedScores(get_scorer(name), y, np.array([0, 1]), None, None, 0.5)
        low, high = scores.interval(np.ones(3), parts, np.ones(60, dtype=bool))
        assert 0.85 < low < 0.96
        assert high == 1.0
    assert share_interval(1.0, 60)[0] == pytest.approx(60 / (60 + 1.96**2), abs=1e-4)  # Wilson 1927


def test_log_losses_are_compared_by_the_same_samples():
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    board = cs.compare(
        X[::2], y[::2], estimators=["EarlyFusion", "error alone"], scoring="neg_log_loss", cv=3, baselines=False
    )
    found = board.difference("EarlyFusion", "error alone")
    losses = [[log_loss(y[::2][t], each.probabilities[t]) for _, t in board.splits] for each in board]
    assert found.value == pytest.approx(np.mean(losses[1]) - np.mean(losses[0]))
    assert (found.verdict, found.first) == ("different", "EarlyFusion")
