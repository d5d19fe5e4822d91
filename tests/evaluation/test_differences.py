"""Differences between estimators: exact tests, coverage of intervals, errors over a whole leaderboard, power."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
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
from consilience.evaluation._differences import DIFFERENCE_ALLOWANCE, FEWEST_UNITS, PairedScores, verdict_of
from consilience.evaluation._intervals import mean_interval, replicate_weights, share_interval
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
def score_of(name, y, P):
    """Return the score of each row of predictions."""
    hits, right = ((P == 1) & (y == 1)).sum(axis=1), y == P
    if name == "accuracy":
        return right.mean(axis=1)
    if name == "f1":
        return 2 * hits / (P.sum(axis=1) + y.sum())
    return (right[:, y == 1].mean(axis=1) + right[:, y == 0].mean(axis=1)) / 2


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "f1"])
def test_standard_errors_are_those_of_random_swaps(name):
    rng, y = np.random.default_rng(0), (np.arange(100) % 4 == 0).astype(int)
    rows = [row_of(str(k), rng.random(100) < share, y) for k, share in enumerate((0.8, 0.7))]
    drawn = np.zeros(20_000)
    for one, two in zip(rows[0].parts, rows[1].parts, strict=True):
        swap, target = rng.random((len(drawn), len(one.test))) < 0.5, y[one.test]
        first, second = (np.where(swap, a.predictions, b.predictions) for a, b in ((one, two), (two, one)))
        drawn += (score_of(name, target, first) - score_of(name, target, second)) / 5
    for each in rows:
        each.scores = [score_of(name, y[part.test], part.predictions[None])[0] for part in each.parts]
    found = PairedScores(get_scorer(name), y, np.array([0, 1]), None, None, 0.25).compare(*rows)
    allowance = DIFFERENCE_ALLOWANCE if name == "accuracy" else 1.5
    error = (found.high - found.low) / 2 / norm.isf(0.025) / allowance
    assert drawn.mean() == pytest.approx(0, abs=0.002)
    assert drawn.std() < error < 1.15 * drawn.std()  # one disagreement more


def test_an_accuracy_is_compared_by_the_samples_that_one_has_right():
    y = np.zeros(628, dtype=int)
    one, two = np.ones(628, dtype=bool), np.ones(628, dtype=bool)
    two[:146] = False  # 146 samples right only by the first, 4 only by the second
    one[146:150] = False
    found = accuracies(y).compare(row_of("one", one, y, 2), row_of("two", two, y, 2), 100)
    assert found.value == pytest.approx(142 / 628)
    z = 142 / np.sqrt(150 + 1) / DIFFERENCE_ALLOWANCE
    assert found.p_value == pytest.approx(100 * 2 * norm.sf(z))
    half = norm.isf(0.025 / 100) * DIFFERENCE_ALLOWANCE * np.sqrt(151) / 628
    assert (found.low, found.high) == pytest.approx((142 / 628 - half, 142 / 628 + half))
    assert found.verdict == "different"


def test_too_few_samples_are_said():
    y = np.zeros(12, dtype=int)
    found = accuracies(y).compare(row_of("one", np.arange(12) > 3, y, 3), row_of("two", np.arange(12) > 5, y, 3))
    assert found.verdict == "too few samples to tell"
    assert verdict_of(1.0, FEWEST_UNITS) == "not told apart"
    assert verdict_of(1.0, FEWEST_UNITS, 10**9) == "too few samples to tell"  # even if they differed on every sample
    same = np.ones(500, dtype=bool)
    y = np.zeros(500, dtype=int)
    found = accuracies(y).compare(row_of("one", same, y), row_of("two", same, y))
    assert found.value == 0
    assert found.verdict == "not told apart"
    assert found.low < 0 < found.high
    groups = np.repeat(np.arange(5), 100)  # five groups are five observations
    found = accuracies(y, groups).compare(row_of("one", same, y), row_of("two", np.arange(500) % 4 > 0, y))
    assert found.value == pytest.approx(0.25)
    assert found.verdict == "too few samples to tell"


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


def best_first(scores, rows):
    """Return the differences between the best row and the others, as a leaderboard has them."""
    rows = sorted(rows, key=lambda each: -np.mean(each.scores))
    return [scores.compare(rows[0], each, len(rows) * (len(rows) - 1) // 2) for each in rows[1:]]


def test_equal_estimators_are_rarely_called_different():
    rng, y = np.random.default_rng(0), np.zeros(150, dtype=int)
    single = board = covered = 0
    for _ in range(200):
        rows = [row_of(str(k), right, y) for k, right in enumerate(drawn(rng, 150, [0.8] * 6, 0.5))]
        scores = accuracies(y)
        found = best_first(scores, rows)
        assert all((own.verdict == "different") == (own.low > 0 or own.high < 0) for own in found)
        board += any(own.verdict == "different" for own in found)
        pair = scores.compare(*rows[:2])
        single += pair.p_value <= 0.05
        covered += pair.low <= 0 <= pair.high
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
        pair = accuracies(y).compare(row_of("one", one, y), row_of("two", two, y))
        found += pair.verdict == "different"
        covered += pair.low <= 0.1 <= pair.high
    assert found > 0.9 * 400
    assert covered >= 0.95 * 400


def test_samples_of_a_group_are_not_independent():
    rng, y = np.random.default_rng(0), np.zeros(300, dtype=int)
    groups = np.repeat(np.arange(30), 10)
    called = {True: 0, False: 0}
    for _ in range(200):  # both estimators are right on whole groups, with equal chances
        rows = [row_of(name, np.repeat(rng.random(30) < 0.7, 10), y, 5) for name in "ab"]
        for whole in called:
            called[whole] += accuracies(y, groups if whole else None).compare(*rows).p_value <= 0.05
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


def rare_rows(seed, n, share, weighted, scoring, parts=(0, 1)):
    """Return scores and rows of ridge on each of two tables; the target depends on the first columns of `parts`."""
    rng = np.random.default_rng([seed, n])
    tables = rng.normal(size=(2, n, 3))
    signal = sum(tables[k][:, 0] for k in parts) + 0.5 * rng.normal(size=n)
    cut = np.quantile(signal, 1 - share)
    y, weights = (signal > cut).astype(int), np.exp(2 * rng.normal(size=n)) if weighted else None
    scorer, rows = get_scorer(scoring), []
    for k, X in enumerate(tables):
        parts, scores = [], []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
            d = 3 * ridge(X[train], y[train])(X[test]) + 2  # as many positives as there are about
            parts.append(HeldOutPart(test, (d > 0).astype(int), None, np.column_stack([-d, d])))
            w = np.ones(len(test)) if weights is None else weights[test]
            scores.append(weighted_scores(scorer, y, parts[-1], w[None], np.array([0, 1]))[0])
        rows.append(row(str(k), parts, scores, n))
    return PairedScores(scorer, y, np.array([0, 1]), None, weights, 0.25), rows


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1", "roc_auc"])
@pytest.mark.parametrize(("n", "share", "weighted"), [(80, 0.12, False), (150, 0.12, False), (80, 0.5, True)])
def test_views_of_equal_value_with_rare_classes_or_weights(n, share, weighted, scoring):
    """Views that are exchangeable by construction."""
    called = 0
    for seed in range(200):
        scores, rows = rare_rows(seed, n, share, weighted, scoring)
        found = scores.compare(*rows)
        called += found.verdict == "different"
        assert (found.verdict == "different") == (found.low > 0 or found.high < 0)
    assert called <= 200 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 200))


@pytest.mark.parametrize(("scoring", "power"), [("balanced_accuracy", 0.9), ("f1", 0.9), ("roc_auc", 0.95)])
def test_a_view_of_noise_is_told_from_one_of_signal(scoring, power):
    found = [
        scores.compare(*rows) for scores, rows in (rare_rows(k, 300, 0.1, False, scoring, (0,)) for k in range(50))
    ]
    assert np.mean([own.verdict == "different" and own.value > 0 for own in found]) >= power


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
            scores = PairedScores(get_scorer(name), y, np.array([0, 1]), groups, None, 0.25)
            best = any(found.verdict == "different" for found in best_first(scores, rows))
            pairs = [scores.compare(*pair) for pair in itertools.combinations(rows, 2)]
            allowance = DIFFERENCE_ALLOWANCE if name == "accuracy" else 1.5
            plain = [abs(pair.value) > (pair.high - pair.low) / 2 / allowance for pair in pairs]
            counts[name] += np.mean([pair.p_value <= 0.05 for pair in pairs]), best, np.mean(plain)
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
