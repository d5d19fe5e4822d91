"""Comparison of estimators: scores, scorers, groups, estimators of your own, intervals, odd data."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, get_scorer, log_loss, make_scorer, r2_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience.evaluation._intervals import difference_interval, mean_interval, share_interval
from consilience.evaluation._wrappers import final_estimator
from consilience.evaluation.candidates import without_view
from consilience.evaluation.comparison import candidates, default_kernels
from consilience.views.estimator import ViewEstimator
from consilience.views.recipes import MostAssociated

rng = np.random.default_rng(0)
A, B = rng.normal(size=(120, 3)), rng.normal(size=(120, 2))
F = A[:, 0] + np.sin(2 * B[:, 0]) + 0.3 * rng.normal(size=120)
X = cs.Views({"a": A, "b": B})
SIGN = (F > 0).astype(int)
GROUPS = np.repeat(np.arange(24), 5)


def compare(X, y, **options):
    """Compare what is named, with searches of two folds, without baselines unless they are asked for."""
    return cs.compare(X, y, **{"baselines": False, "inner_cv": 2, **options})


# -- scores
def test_scores_of_regression_do_not_depend_on_units():
    names = ["CoRegularizedRidgeCV", "ViewMetricRidgeCV", "MultipleKernelRidge", "EarlyFusion", "LateFusion"]
    units = [(0, 1), (120, 15), (1e7, 1e3), (0, 1e-9)]
    boards = [compare(X[:60], a + b * F[:60], estimators=names, cv=2, inner_cv=2) for a, b in units]
    expected = {row.name: row.score for row in boards[0]}
    assert set(expected) == set(names)
    for board in boards[1:]:
        assert {row.name: row.score for row in board} == pytest.approx(expected, abs=1e-3)


def test_integer_targets_are_classes_or_numbers_by_task():
    y = np.round(20 * F + 50).astype(int)
    board = compare(X, y, task="regression", estimators=["CoRegularizedRidgeCV", "a alone"], cv=3)
    assert (board.task, board.scoring) == ("regression", "r2")
    for row in board:
        for score, (_, test) in zip(row.scores, board.splits, strict=True):
            assert score == pytest.approx(r2_score(y[test], row.predictions[test]))


def test_missing_values_in_rows_are_filled_from_the_training_part():
    holes = A.copy()
    holes[::7, 1] = np.nan
    filled = cs.Views({"a": holes, "b": B})
    board = compare(filled, SIGN, estimators=["LateFusion", "MaxMarginClassifier"], cv=2, inner_cv=2)
    assert not board.failed
    assert board[0].score > 0.6
    train, test = board.splits[0]
    means = np.nanmean(holes[train], axis=0)
    by_hand = cs.Views({"a": np.where(np.isnan(holes), means, holes), "b": B})
    model = clone(board.estimators["LateFusion"][0])
    np.testing.assert_allclose(
        model.fit(filled[train], SIGN[train]).decision_function(filled[test]),
        model.fit(by_hand[train], SIGN[train]).decision_function(by_hand[test]),
    )


def test_scores_do_not_depend_on_the_number_of_processes():
    names = ["PassiveAggressive", "b alone"]
    one, two = (compare(X[:60], SIGN[:60], estimators=names, cv=2, n_jobs=n) for n in (None, 2))
    assert [(row.name, row.scores) for row in one] == [(row.name, row.scores) for row in two]


# -- the scorer
@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", make_scorer(f1_score, pos_label=1)])
def test_the_scorer_searches_and_scores(scoring):
    names, scorer = ["MaxMarginClassifier", "ViewMetricRidgeClassifierCV"], get_scorer(scoring)
    board = compare(X, SIGN, estimators=names, scoring=scoring, cv=2, inner_cv=2)
    for row in board:
        estimator, grid = board.estimators[row.name]
        for score, chosen, (train, test) in zip(row.scores, row.best_params, board.splits, strict=True):
            search = GridSearchCV(estimator, grid, scoring=scorer, cv=board.inner_cv).fit(X[train], SIGN[train])
            assert search.best_params_ == chosen
            assert score == pytest.approx(scorer(search, X[test], SIGN[test]))
        assert row.low < row.score < row.high
    assert board.scoring == (scoring if isinstance(scoring, str) else str(scoring))


def test_errors_are_scores_below_zero_and_sort_the_largest_first():
    board = compare(X, F, estimators=["EarlyFusion", "b alone"], scoring="neg_mean_squared_error", cv=3)
    assert [row.name for row in board] == ["EarlyFusion", "b alone"]
    for row in board:
        means = [np.mean((F[test] - row.predictions[test]) ** 2) for _, test in board.splits]
        assert row.scores == pytest.approx([-mean for mean in means])
        assert row.low < row.score < row.high
    heads = "neg_mean_squared_error 95% interval fit time verdict name"
    assert str(board).splitlines()[2].split() == heads.split()


def test_a_scorer_that_an_estimator_cannot_serve_is_reported():
    board = compare(X, SIGN, estimators=["LateFusion", "MaxMarginClassifier"], scoring="neg_log_loss", cv=2)
    assert [row.name for row in board] == ["LateFusion"]
    assert "predict_proba" in board.failed["MaxMarginClassifier"]


# -- groups
class Recorder(ClassifierMixin, ViewEstimator):
    """Predicts the majority class and records the groups, which the second view holds, of its fits and predictions."""

    seen: list = []

    def __init__(self, shift=0):
        self.shift = shift

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.train_ = set(X["group"][:, 0])
        return self

    def predict(self, X):
        Recorder.seen.append((self.train_, set(X["group"][:, 0])))
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("y", [SIGN, F], ids=["classification", "regression"])
@pytest.mark.parametrize("cv", [4, "own"])
def test_no_group_is_in_both_parts_of_any_split(y, cv):
    named = cs.Views({"a": A, "group": GROUPS[:, None].astype(float)})
    own = {"recorder": (Recorder(), {"shift": [0, 1]})}
    inner = 3 if cv == 4 else GroupKFold(2)
    Recorder.seen.clear()
    board = compare(
        named, y, cv=4 if cv == 4 else LeaveOneGroupOut(), inner_cv=inner, groups=GROUPS, estimators=own,
        scoring="accuracy" if y is SIGN else "r2",
    )  # fmt: skip
    n_outer, n_inner = (4, 3) if cv == 4 else (24, 2)
    assert len(board.splits) == n_outer
    assert len(Recorder.seen) == n_outer * (2 * n_inner + 2)  # two parameters inside; score and predictions outside
    assert all(train and test and not train & test for train, test in Recorder.seen)
    expected = {(True, 4): StratifiedGroupKFold, (False, 4): GroupKFold}
    assert type(board.inner_cv) is expected.get((y is SIGN, cv), GroupKFold)


@pytest.mark.parametrize("cv", [5, LeaveOneGroupOut()], ids=["number", "splitter"])
@pytest.mark.parametrize("y", [SIGN, F], ids=["classification", "regression"])
def test_two_hospitals_are_held_out_in_turn(y, cv):
    center = np.where(np.arange(120) < 50, "north", "south")
    consensus = "ConsensusClassifier" if y is SIGN else "ConsensusRegressor"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        board = compare(X, y, groups=center, cv=cv, estimators=["EarlyFusion", consensus])
        board.refit("EarlyFusion", X, y)
    assert sorted(len(test) for _, test in board.splits) == [50, 70]
    assert not board.failed
    assert any("only one group, so the search for parameters splits it by samples" in note for note in board.notes)
    assert ("There are 2 groups, so there are 2 folds instead of 5." in board.notes) == (cv == 5)


def test_built_in_leave_one_out_gives_way_to_groups_and_scorers():
    plain = candidates(X, SIGN)["ViewMetricRidgeClassifierCV"]
    assert (type(final_estimator(plain[0])), plain[1]) == (cs.ViewMetricRidgeClassifierCV, {})
    names = ["ViewMetricRidgeClassifierCV", "CoRegularizedRidgeClassifierCV"]
    for options in ({"groups": GROUPS}, {"scoring": "roc_auc"}):
        board = compare(X, SIGN, estimators=names, cv=2, inner_cv=2, **options)
        assert len(board) == 2
        for row in board:
            estimator, grid = board.estimators[row.name]
            built_in = getattr(cs, row.name)()
            assert not hasattr(final_estimator(estimator), "alphas")
            assert next(iter(grid.values())) == list(built_in.alphas)
            assert all(len(chosen) == len(grid) for chosen in row.best_params)
        assert "alpha" in final_estimator(board.refit(board[0].name, X, SIGN)).get_params()


# -- estimators of your own
def test_estimators_of_your_own():
    pipeline = make_pipeline(cs.PerView(StandardScaler()), cs.EarlyFusion(LogisticRegression()))
    own = {
        "plain": cs.LateFusion(LogisticRegression()),
        "searched": (pipeline, {"earlyfusion__estimator__C": [1e-9, 1.0]}),
        "own search": GridSearchCV(pipeline, {"earlyfusion__estimator__C": [1e-9, 1.0]}, cv=3),
        "a alone": cs.LateFusion(LogisticRegression()),
    }
    board = compare(X, SIGN, estimators=own, cv=3)
    rows = {row.name: row for row in board}
    assert set(rows) == set(own)
    assert all(chosen == {"earlyfusion__estimator__C": 1.0} for chosen in rows["searched"].best_params)
    for score, (train, test) in zip(rows["plain"].scores, board.splits, strict=True):
        assert score == clone(own["plain"]).fit(X[train], SIGN[train]).score(X[test], SIGN[test])
    refitted = board.refit("searched", X, SIGN)
    np.testing.assert_array_equal(
        refitted.predict(X), pipeline.set_params(earlyfusion__estimator__C=1.0).fit(X, SIGN).predict(X)
    )
    assert board.refit("a alone", X, SIGN).view_names_in_ == ("a",)


def test_an_estimator_that_fails_is_reported_and_left_out():
    class Refuses(Recorder):
        def fit(self, X, y):
            raise ValueError("cannot learn this\nsecond line")

    own = {"refuses": Refuses(), "LateFusion": cs.LateFusion(LogisticRegression())}
    board = compare(X, SIGN, estimators=own, cv=2)
    assert [row.name for row in board] == ["LateFusion"]
    assert board.failed == {"refuses": "cannot learn this"}
    with pytest.raises(ValueError, match=r"No estimator could be fitted and scored\. refuses: cannot learn this"):
        compare(X, SIGN, estimators={"refuses": Refuses()}, cv=2)


HALVES = [(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]
SPLITTERS = [KFold(3), HALVES, RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)]
SPLITTERS += [ShuffleSplit(3, test_size=0.2, random_state=0), TimeSeriesSplit(3)]


@pytest.mark.parametrize("cv", SPLITTERS, ids=lambda cv: type(cv).__name__)
@pytest.mark.parametrize("y", [SIGN.astype(str), F], ids=["classification", "regression"])
def test_any_splitter(cv, y):
    model = cs.LateFusion(Ridge() if y is F else LogisticRegression())
    grid = {"estimator__alpha" if y is F else "estimator__C": [0.1, 1.0]}
    own = {"LateFusion": (model, grid), "a alone": (model, grid)}
    board = compare(X, y, estimators=own, cv=cv, inner_cv=KFold(2))
    for row in board:
        assert len(row.scores) == len(board.splits) == len(row.best_params) == len(row.parts)
        tested = np.zeros(120, dtype=bool)
        for part, (_, test) in zip(row.parts, board.splits, strict=True):
            np.testing.assert_array_equal(part.test, test)
            tested[test] = True
        np.testing.assert_array_equal(row.scored, tested)
        for i in np.flatnonzero(tested)[::7]:  # the mean or the most frequent class over the splits that test it
            own = [part.predictions[np.flatnonzero(part.test == i)[0]] for part in row.parts if i in part.test]
            expected = np.mean(own) if y is F else max(sorted(set(own)), key=own.count)
            assert row.predictions[i] == pytest.approx(expected) if y is F else row.predictions[i] == expected
        left = row.predictions[~tested]
        assert np.isnan(left).all() if y is F else all(value is None for value in left)
    assert len(board.differences()) == 1
    assert board.difference("a alone", "LateFusion").value == pytest.approx(
        next(row.score for row in board if row.name == "a alone")
        - next(row.score for row in board if row.name == "LateFusion")
    )


# -- baselines and tables
def test_default_board_has_baselines_titles_and_kinds():
    board = cs.compare(X, SIGN, cv=2, inner_cv=2)
    assert not board.failed
    kinds = {row.name: row.kind for row in board}
    assert [name for name, kind in kinds.items() if kind == "estimator"].count("ConsensusClassifier") == 1
    assert {name for name, kind in kinds.items() if kind == "single view"} == {"a alone", "b alone"}
    trees = {"RandomForestClassifier", "HistGradientBoostingClassifier"}
    assert {name for name, kind in kinds.items() if kind == "baseline"} == trees | {"DummyClassifier"}
    assert 6 <= len([kind for kind in kinds.values() if kind == "estimator"]) <= 8
    titles = {row.name: row.title for row in board}
    assert titles["ConsensusClassifier"] == "Consensus of all kernels"
    assert titles["LateFusion"] == "Average of one logistic regression per view"
    assert all(titles[name] != name for name in titles)
    majority = next(row for row in board if row.name == "DummyClassifier")
    assert majority.score == pytest.approx(max(np.mean(SIGN), 1 - np.mean(SIGN)), abs=0.01)
    regression = cs.compare(X, F, cv=2, inner_cv=2, estimators=["EarlyFusion"])
    assert {row.name for row in regression if row.kind == "baseline"} == {
        "DummyRegressor", "RandomForestRegressor", "HistGradientBoostingRegressor"
    }  # fmt: skip
    assert [row.title for row in regression if row.name == "a alone"] == ["Ridge on a alone"]


def test_estimators_of_tables_get_all_columns():
    holes = cs.Views({"a": np.where(rng.random(A.shape) < 0.1, np.nan, A), "b": B, "text": ["ab", "c"] * 60})
    mask = np.ones((120, 3), dtype=bool)
    mask[:10, 1] = False
    holes = cs.Views(holes, mask=mask)
    own = {
        "forest": RandomForestClassifier(20, random_state=0),
        "pipeline": make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
        "searched": (HistGradientBoostingClassifier(max_iter=5), {"learning_rate": [0.1, 0.5]}),
        "strict": LogisticRegression(),
    }
    board = compare(holes, SIGN, estimators=own, cv=3, inner_cv=2)
    assert list(board.failed) == ["strict"]
    assert "NaN" in board.failed["strict"]
    assert "strict could not be fitted: " in str(board)
    table = np.hstack([holes["a"], np.where(np.arange(120)[:, None] > 9, B, np.nan)])
    rows = {row.name: row for row in board}
    for k, (train, test) in enumerate(board.splits):
        for name in ("forest", "pipeline"):
            model = clone(own[name]).fit(table[train], SIGN[train])
            assert rows[name].scores[k] == model.score(table[test], SIGN[test])
            np.testing.assert_allclose(rows[name].probabilities[test], model.predict_proba(table[test]))
    assert all(
        list(chosen) == ["histgradientboostingclassifier__learning_rate"] for chosen in rows["searched"].best_params
    )
    assert {row.kind for row in board} == {"own"}
    notes = cs.compare(holes, SIGN, estimators=["a alone"], cv=2).notes
    assert notes == ("Random forest and boosted trees do not use 'text' (text or objects): no columns of numbers.",)
    words = cs.Views({"u": ["ab", "c", "bb"] * 40, "v": ["x", "yy"] * 60})
    board = cs.compare(words, SIGN, estimators=["u alone"], cv=2)
    assert {row.name for row in board} == {"u alone", "v alone", "DummyClassifier"}
    assert "no view has columns of numbers" in board.notes[0]


def test_wide_tables_are_boosted_on_some_columns(tmp_path):
    wide = cs.Views({"a": A, "wide": np.random.default_rng(0).normal(size=(120, 400))})
    board = cs.compare(wide, SIGN, estimators="HistGradientBoostingClassifier", cv=2, inner_cv=2)
    assert board.notes == (
        "Boosted trees use the 300 columns, of 403, most associated with the target in each training part.",
    )
    model = board.refit("RandomForestClassifier", wide, SIGN)
    cs.save(model, tmp_path / "forest.cons")
    np.testing.assert_array_equal(cs.load(tmp_path / "forest.cons").predict(wide), model.predict(wide))


def test_single_views_are_scored_on_the_samples_that_have_them():
    there = np.arange(120) % 3 > 0
    holes = cs.Views(X, mask=np.column_stack([there, np.ones(120, dtype=bool)]))
    board = compare(holes, SIGN, estimators=["LateFusion", "a alone", "b alone"], cv=3, inner_cv=2)
    row = next(row for row in board if row.name == "a alone")
    np.testing.assert_array_equal(row.scored, there)
    for score, (train, test) in zip(row.scores, board.splits, strict=True):
        train, test = train[there[train]], test[there[test]]
        assert score == np.mean(row.predictions[test] == SIGN[test])
    assert board[0].scored.all()  # the best row predicts every sample
    assert " 80 " in str(board)
    late = next(row for row in board if row.name == "LateFusion")
    found = board.difference("LateFusion", "a alone")
    right = [
        np.mean([np.mean(r.predictions[t[there[t]]] == SIGN[t[there[t]]]) for _, t in board.splits])
        for r in (late, row)
    ]
    assert found.value == pytest.approx(right[0] - right[1])
    assert board.refit("a alone", holes, SIGN)[-1].view_names_in_ == ("a",)


# -- several measures, weights
def test_several_measures_and_their_forms_for_classes():
    three = np.array(["x", "y", "z"])[np.digitize(F, np.quantile(F, [1 / 3, 2 / 3]))]
    names = ["LateFusion", "MaxMarginClassifier"]
    board = compare(X, three, estimators=names, cv=2, inner_cv=2, scoring=["roc_auc", "f1", "accuracy", "neg_log_loss"])
    assert board.scorings == ("roc_auc_ovr", "f1_macro", "accuracy", "neg_log_loss")
    assert board.scoring == "roc_auc_ovr"
    assert board.notes[:2] == (
        "There are 3 classes, so 'roc_auc' is 'roc_auc_ovr': the mean over the classes, each against the others.",
        "There are 3 classes, so 'f1' is 'f1_macro': the mean over the classes.",
    )
    assert board.notes[2] == "No neg_log_loss for MaxMarginClassifier: no `predict_proba`."
    late = next(row for row in board if row.name == "LateFusion")
    for k, (_, test) in enumerate(board.splits):
        P = late.probabilities[test]
        assert late.scores[k] == pytest.approx(roc_auc_score(three[test], P, multi_class="ovr"))
        assert late.measures["f1_macro"][k] == f1_score(three[test], late.predictions[test], average="macro")
        assert late.measures["neg_log_loss"][k] == pytest.approx(-log_loss(three[test], P))
    np.testing.assert_array_equal(board.classes, ["x", "y", "z"])
    assert all(np.isnan(value) for row in board if row.name != "LateFusion" for value in row.measures["neg_log_loss"])
    words = np.where(SIGN == 1, "sick", "healthy")
    binary = compare(X, words, estimators=["LateFusion"], cv=2, scoring={"of the sick": "f1", "plain": "accuracy"})
    assert binary.scorings == ("of the sick", "plain")
    assert binary.notes == ("The score 'f1' is that of the class 'sick', the second in sorted order.",)
    mean = np.mean([f1_score(words[t] == "sick", binary[0].predictions[t] == "sick") for _, t in binary.splits])
    assert binary[0].score == pytest.approx(mean)


def test_weights_reach_fits_searches_and_scores():
    weights = np.where(np.arange(120) % 4 == 0, 0.0, 1.0 + np.arange(120) % 3)
    own = {
        "searched": (cs.LateFusion(LogisticRegression()), {"estimator__C": [0.001, 1.0]}),
        "forest": RandomForestClassifier(9, random_state=0),
    }
    board = compare(X, SIGN, estimators=own, sample_weight=weights, cv=3, inner_cv=2, scoring="neg_log_loss")
    table = np.hstack([A, B])
    for k, (train, test) in enumerate(board.splits):
        rows = {row.name: row for row in board}
        forest = clone(own["forest"]).fit(table[train], SIGN[train], sample_weight=weights[train])
        expected = -log_loss(SIGN[test], forest.predict_proba(table[test]), sample_weight=weights[test])
        assert rows["forest"].scores[k] == pytest.approx(expected)
        scores = {}
        for C in (0.001, 1.0):
            parts = []
            for inside, outside in board.inner_cv.split(train, SIGN[train]):
                model = cs.LateFusion(LogisticRegression(C=C))
                model.fit(X[train[inside]], SIGN[train[inside]], weights[train[inside]])
                P = model.predict_proba(X[train[outside]])
                parts.append(-log_loss(SIGN[train[outside]], P, sample_weight=weights[train[outside]]))
            scores[C] = np.mean(parts)
        assert rows["searched"].best_params[k] == {"estimator__C": max(scores, key=scores.get)}
    online = compare(X, SIGN, estimators=["OnlinePerceptron", "LateFusion"], sample_weight=weights, cv=2)
    assert online.failed == {}


def test_class_weights_reach_every_estimator_that_has_them():
    rare = (np.quantile(F, 0.85) < F).astype(int)
    names = ["EarlyFusion", "CoRegularizedSVC", "ConsensusClassifier", "OnlinePerceptron"]
    board = cs.compare(
        X, rare, estimators=names, class_weight="balanced", cv=2, inner_cv=2, scoring="balanced_accuracy"
    )
    for name in ("EarlyFusion", "CoRegularizedSVC", "ConsensusClassifier", "HistGradientBoostingClassifier"):
        params = board.estimators[name][0].get_params()
        assert "balanced" in [value for key, value in params.items() if key.endswith("class_weight")]
    assert board.notes == ("Fitted without class_weight, which they do not have: OnlinePerceptron, DummyClassifier.",)
    plain = cs.compare(X, rare, estimators=["EarlyFusion"], cv=2, scoring="balanced_accuracy", baselines=False)
    assert next(row for row in board if row.name == "EarlyFusion").score > plain[0].score


def test_the_simplest_row_and_files(tmp_path):
    board = cs.compare(X, SIGN, estimators=["EarlyFusion", "LateFusion", "ConsensusClassifier"], cv=3)
    different = {found.second for found in board.differences() if found.verdict == "different"}
    simplest = board.simplest()
    assert simplest.name not in different
    assert "DummyClassifier" in different
    if "a alone" not in different or "b alone" not in different:
        assert simplest.kind == "single view"
    path = tmp_path / "board.csv"
    board.to_csv(path)
    read = pd.read_csv(path, index_col="name")
    frame = board.to_frame()
    assert read.columns.tolist() == frame.columns.tolist()
    for column in ("score", "low", "high", "p_value", "fit_time", "split0_score", "behind_best"):
        np.testing.assert_allclose(read[column], frame[column])
    assert read["verdict"].tolist() == frame["verdict"].tolist() == ["best", *(d.verdict for d in board.differences())]
    with pytest.raises(KeyError, match="The leaderboard has no row 'nobody'"):
        board.difference("EarlyFusion", "nobody")


def test_a_refit_has_the_groups_and_weights_of_its_samples():
    names = [f"s{k}" for k in range(120)]
    named = cs.Views({"a": A, "b": B}, sample_names=names)
    weights = pd.Series(10.0 ** rng.uniform(-2, 2, 120), index=names)
    board = compare(named, SIGN, sample_weight=weights, estimators=["CoRegularizedRidgeClassifierCV"], cv=3)
    name, turned = board[0].name, np.arange(120)[::-1]
    one, two = board.refit(name, named, SIGN), board.refit(name, named[turned], SIGN[turned])
    assert one is not two
    scores = one.decision_function(named)
    np.testing.assert_allclose(two.decision_function(named), scores, atol=1e-9)
    board.refit(name, named[:40], SIGN[:40])
    np.testing.assert_array_equal(one.decision_function(named), scores)  # an earlier model stays as it is
    other = cs.Views({"a": A, "b": B}, sample_names=["new", *names[1:]])
    with pytest.raises(ValueError, match="1 of 120 samples were not in it: 'new'"):
        board.refit(name, other, SIGN)
    with pytest.raises(ValueError, match=r"used sample_weight, which cannot be matched.* y \(40 samples\) is not that"):
        board.refit(name, X[:40], SIGN[:40])


# -- what is refused
BAD = {
    r"y must have one target per sample; got the shape \(120, 2\)": {"y": np.zeros((120, 2))},
    "X has 120 samples and y has 3": {"y": [1, 2, 3]},
    "3 samples have no target": {"y": np.where(np.arange(120) < 3, np.nan, F)},
    r"several types \(float, int, str\)": {"y": np.array([1, "a", 2.5, "b"] * 30, dtype=object)},
    "All samples have the class '0'": {"y": np.zeros(120, dtype=int)},
    "y has values that are not integers. Use task='regression'": {"y": F, "task": "classification"},
    "y must have numbers for task='regression'; got values of type str": {"y": ["u", "v"] * 60, "task": "regression"},
    "fewer than two for each of the 70 folds": {"y": F, "cv": 70},
    "`cv` puts sample 0 into the training and the test part of one split": {"cv": [(np.arange(9), np.arange(3))]},
    "A split of `cv` has no training or no test sample": {"cv": [(np.arange(9), np.arange(0))]},
    "`scoring` is empty": {"scoring": []},
    "`scoring` has two scorers of the name 'accuracy'": {"scoring": ["accuracy", "accuracy"]},
    "`class_weight` is for classification": {"y": F, "class_weight": "balanced"},
    "sample_weight must have shape": {"sample_weight": [1.0, 2.0]},
    "`estimators` must name candidates for these data; got 'nobody'. There are Co": {"estimators": ["nobody"]},
    "got no name": {"estimators": []},
    "`estimators` is empty": {"estimators": {}},
    "The 'task' parameter of compare must be a str among": {"task": "numbers"},
    "The 'cv' parameter of compare must be": {"cv": 1},
    "nonsense": {"scoring": "nonsense"},
    r"fewer than the 5 folds\. Use a smaller `cv`, .* task='regression'": {
        "y": np.round(20 * F + 50).astype(int),
        "task": "classification",
    },
    r"`groups` must have one value for each of the 120 samples; got \(3,\)": {"groups": [1, 2, 3]},
    "All samples are of the group '7'": {"groups": np.full(120, 7)},
    "`cv` puts samples of group '.*' into the training and the test part": {"groups": GROUPS, "cv": KFold(7)},
    "`inner_cv` puts samples of group '.*' into": {"groups": GROUPS, "inner_cv": KFold(7)},
}


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_raise(message):
    with pytest.raises(ValueError, match=message):
        compare(X, **{"y": SIGN, **BAD[message]})


# -- the leaderboard
def test_the_leaderboard_is_a_frame_a_table_and_a_sequence(monkeypatch):
    board = compare(X, SIGN, estimators=["a alone", "b alone", "a alone"], cv=2)
    frame = board.to_frame()
    assert frame.index.tolist() == [row.name for row in board] == ["a alone", "b alone"]
    for row in board:
        line = frame.loc[row.name]
        assert (line["score"], line["low"], line["high"]) == (row.score, row.low, row.high)
        assert (line["split0_score"], line["split1_score"]) == row.scores
        assert line["best_params"] == row.best_params
        assert line["fit_time"] == row.fit_time > 0
    line = str(board).splitlines()[3].split()
    assert line[:6] == ["Logistic", "regression", "on", "a", "alone", f"{board[0].score:.4f}"]
    assert "<td>Logistic regression on b alone</td>" in board._repr_html_()
    assert "95% interval" in board._repr_html_()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        board.to_frame()


def test_default_kernels_and_candidates_suit_the_views():
    K = np.eye(6)
    words = ["ab", "b", "c", "dd", "e", "f"]
    mixed = cs.Views({"w": words, "k": K, "d": np.ones((6, 2))}, precomputed="k")
    assert {name: repr(kernel) for name, kernel in default_kernels(mixed).items()} == {
        "w": "normalize(Spectrum(length=1) + Spectrum(length=2) + Spectrum(length=3))",
        "k": "'precomputed'",
    }
    assert default_kernels(X) == {}
    names = set(candidates(mixed, [0, 1] * 3))
    assert not names & {"EarlyFusion", "LateFusion", "OnlinePerceptron", "MatrixPerceptron"}
    assert {"w alone", "k alone", "d alone"} <= names  # strings and Gram matrices by their kernels
    assert "MatrixPerceptron" in candidates(cs.Views(a=A, b=A), SIGN)
    assert "MatrixPerceptron" not in candidates(X, SIGN)
    holes = cs.Views(X, mask=np.column_stack([np.arange(120) > 5, np.ones(120, dtype=bool)]))
    assert {"a alone", "b alone"} == {name for name in candidates(holes, SIGN) if name.endswith(" alone")}
    assert list(candidates(X, F)) == list(candidates(X, SIGN, task="regression"))


def test_an_estimator_without_a_view_forgets_its_parameters_by_view():
    model = make_pipeline(
        cs.PerView({"a": StandardScaler(), "b": StandardScaler()}),
        cs.CoRegularizedRidgeClassifier({"a": "linear", "b": "rbf"}, class_weight={"a": 2.0, "z": 1.0}),
    )
    less = without_view(model, "a")
    assert list(less[0].transformers) == ["b"]
    assert less[1].kernel == {"b": "rbf"}
    assert less[1].class_weight == {"a": 2.0, "z": 1.0}
    assert list(model[0].transformers) == ["a", "b"]


# -- preparation inside the folds
BATCHES = np.random.default_rng(1).permutation(["p", "q", "r"] * 40)
SHIFTED = cs.Views({"a": np.exp(A), "b": B + 4 * (BATCHES == "q")[:, None], "plate": BATCHES.tolist()})
STEPS = [{"a": "log"}, cs.RemoveBatch("plate"), "top_k:2"]


@pytest.mark.parametrize("y", [SIGN, F], ids=["classification", "regression"])
def test_a_preparation_is_the_first_step_of_every_estimator(y):
    board = compare(SHIFTED, y, prepare=STEPS, estimators=["LateFusion", "a alone"], cv=3, inner_cv=2)
    assert not board.failed
    task = "classification" if y is SIGN else "regression"
    for row in board:
        X = SHIFTED[["a", "plate"]] if row.name == "a alone" else SHIFTED
        for score, chosen, (train, test) in zip(row.scores, row.best_params, board.splits, strict=True):
            steps = [  # by hand, from the training part only
                cs.PerView({"a": "log"}),
                cs.RemoveBatch("plate"),
                cs.PerView(MostAssociated(2, task=task)),
                cs.PerView(StandardScaler()),
            ]
            fitted, held_out = X[train], X[test]
            for step in steps:
                fitted, held_out = step.fit_transform(fitted, y[train]), step.transform(held_out)
            final = clone(final_estimator(board.estimators[row.name][0]))
            (penalty,) = chosen.values()
            final.estimator.set_params(**{"C" if y is SIGN else "alpha": penalty})
            if y is SIGN:
                assert score == final.fit(fitted, y[train]).score(held_out, y[test])
            else:
                scaler = StandardScaler().fit(y[train, None])
                final.fit(fitted, scaler.transform(y[train, None])[:, 0])
                predictions = scaler.inverse_transform(final.predict(held_out)[:, None])[:, 0]
                assert score == pytest.approx(r2_score(y[test], predictions))


def test_the_model_of_a_comparison_contains_its_preparation(tmp_path):
    board = compare(SHIFTED, SIGN, prepare=STEPS, estimators=["b alone", "CoRegularizedSVC"], cv=2, inner_cv=2)
    for name, views in (("b alone", ["b", "plate"]), ("CoRegularizedSVC", ["a", "b", "plate"])):
        model = board.refit(name, SHIFTED, SIGN)
        assert [type(step).__name__ for _, step in model.steps[:-1]] == ["PerView", "RemoveBatch", "PerView", "PerView"]
        cs.save(model, tmp_path / "model.cons")
        X = SHIFTED[views]
        np.testing.assert_array_equal(cs.load(tmp_path / "model.cons").predict(X), model.predict(X))
    assert final_estimator(model).view_names_in_ == ("a", "b")


def test_candidates_suit_the_prepared_views():
    mixed = cs.Views({"a": A, "w": ["ab", "b", "cc"] * 40, "plate": BATCHES.tolist()})
    counts = {"w": CountVectorizer(analyzer="char")}
    assert "LateFusion" not in candidates(mixed, SIGN, prepare=counts)  # the batches are still a view of text
    with pytest.raises(ValueError, match="View 'w' is sparse, and RemoveBatch would make it dense"):
        candidates(mixed, SIGN, prepare=[counts, cs.RemoveBatch("plate")])
    whole = candidates(mixed, SIGN, prepare=[cs.RemoveBatch("plate"), counts])
    assert {"LateFusion", "a alone", "w alone"} <= set(whole)
    assert "plate alone" not in whole
    dropped = candidates(SHIFTED, SIGN, prepare={"b": "drop", "plate": "drop"})
    assert not [name for name in dropped if name.endswith(" alone")]
    assert "MatrixPerceptron" in candidates(X, SIGN, prepare="top_k:2")  # both views have two columns
    joint = candidates(X, SIGN, prepare=cs.Nystroem(n_components=5, random_state=0))
    assert not [name for name in joint if name.endswith(" alone")]  # it may need all views


def test_estimators_of_your_own_get_the_preparation_too():
    own = {
        "plain": (cs.LateFusion(LogisticRegression()), {"estimator__C": [0.1, 1.0]}),
        "pipeline": (make_pipeline(cs.LateFusion(LogisticRegression())), {"latefusion__estimator__C": [0.1, 1.0]}),
        "a alone": cs.LateFusion(LogisticRegression()),
    }
    board = compare(SHIFTED, SIGN, prepare=STEPS, estimators=own, cv=2, inner_cv=2)
    scores = {row.name: row.scores for row in board}
    assert not board.failed
    assert scores["plain"] == scores["pipeline"]
    assert {key for row in board for chosen in row.best_params for key in chosen} == {"latefusion__estimator__C"}
    assert board.refit("a alone", SHIFTED, SIGN)[-1].view_names_in_ == ("a",)


def test_batches_outside_of_the_training_part_are_counted_once():
    plates = np.array(["p", "q"] * 60, dtype=object)
    plates[:3] = "rare"
    late = cs.Views({"a": A, "plate": plates.tolist()})
    split = [(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compare(late, SIGN, prepare=cs.RemoveBatch("plate"), estimators=["PassiveAggressive"], cv=split)
    assert [str(warning.message) for warning in said] == [
        "3 of 120 held-out samples are of a batch (view 'plate') that no training sample of their fold has (rare), so "
        "they keep its effects."
    ]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        ("logs", "There is no recipe 'logs'"),
        ({"z": "log"}, "a transformer for the view 'z', but the views are 'a', 'b'"),
        (3, "`prepare` takes recipes by name, a dict of recipes or transformers by view"),
        (cs.RemoveBatch(), "RemoveBatch needs the view 'batch'"),
        (StandardScaler(), "Expected one table, got the views 'a', 'b'"),
    ],
)
def test_bad_preparations_get_a_sentence(prepare, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, SIGN, prepare=prepare)


# -- intervals
def test_a_few_folds_that_agree_prove_little():
    low, high = share_interval(0.9, 100)
    assert (low, high) == pytest.approx((0.825634, 0.944771), abs=1e-5)  # Wilson 1927 in closed form
    same = np.array([0.0333, 0.0333, 0.0333])
    correct = np.ones(90, dtype=bool)
    other = correct.copy()
    other[:3] = False
    low, high = difference_interval(same, 0.5, (correct, other))
    assert low < 0 < high  # three samples of 90
    assert difference_interval(same, 0.5) == pytest.approx((0.0333, 0.0333))
    other[:40] = False
    assert difference_interval(np.full(3, 40 / 90), 0.5, (correct, other))[0] > 0
    wide = np.array([0.1, -0.2, 0.3])
    assert difference_interval(wide, 0.5, (correct, correct)) == mean_interval(wide, 0.5)
    assert mean_interval(np.array([0.5]), 1.0) == (-np.inf, np.inf)


def test_intervals_of_r2_end_at_one():
    board = compare(X, A @ [1.0, 2.0, 3.0], estimators={"ridge": cs.EarlyFusion(Ridge(1e-8))}, cv=2)
    assert board[0].low <= board[0].score <= board[0].high <= 1.0


def test_repeated_samples_are_counted_once():
    rows = np.r_[np.arange(120), np.arange(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        board = cs.compare(X[rows], SIGN[rows], estimators=["ConsensusClassifier"], baselines=False, cv=3, n_jobs=1)
    assert [note[:47] for note in board.notes] == ["30 of 150 samples repeat another one in all vie"]
    board = cs.compare(X[rows], SIGN[rows], estimators=["LateFusion"], baselines=False, cv=3, groups=rows)
    assert not board.notes


def test_whole_numbers_of_many_values_need_a_task():
    days = np.tile(np.arange(40), 3)
    with pytest.raises(ValueError, match=r"y has 40 different whole numbers in 120 samples. Set task='regression'"):
        cs.compare(X, days, estimators=["ConsensusRegressor"], baselines=False)
    assert (
        cs.compare(X, days, task="regression", estimators=["ConsensusRegressor"], baselines=False).task == "regression"
    )
