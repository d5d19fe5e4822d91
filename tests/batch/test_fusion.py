"""Early and late fusion against what they equal, and with missing views."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, cross_val_score
from sklearn.multiclass import OutputCodeClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import reference
from consilience import EarlyFusion, LateFusion, Views
from consilience.datasets import load_breast_cancer_views, make_views
from consilience.kernels import RBF

rng = np.random.default_rng(0)
y = np.arange(90) % 3
A = rng.normal(size=(90, 3)) + y[:, None]
B = rng.normal(size=(90, 4)) - y[:, None]
V, BOTH = Views(a=A, b=B), np.hstack([A, B])
CAREFUL = FixedThresholdClassifier(LogisticRegression(), threshold=0.9)
HOLES = np.column_stack([np.arange(90) % 5 > 0, np.arange(90) % 4 > 0])
HOLES[~HOLES.any(axis=1), 0] = True
M = Views({"a": A, "b": B}, mask=HOLES)


@pytest.mark.parametrize("estimator", [LogisticRegression(), CAREFUL])
@pytest.mark.parametrize("X", [V, Views(a=sp.csr_array(A), b=B)], ids=["dense", "sparse"])
def test_early_fusion_equals_the_estimator_on_the_columns_side_by_side(estimator, X):
    plain, model = clone(estimator).fit(BOTH, y == 0), EarlyFusion(estimator).fit(X, y == 0)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(BOTH), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), plain.predict(BOTH))
    if isinstance(estimator, LogisticRegression):
        plain, model = plain.fit(BOTH, y), model.fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(BOTH), atol=1e-4)
        np.testing.assert_array_equal(model.predict(X), plain.predict(BOTH))


def test_early_fusion_fills_missing_views_with_training_means():
    filled = np.hstack([np.where(HOLES[:, [v]], D, D[HOLES[:, v]].mean(axis=0)) for v, D in enumerate((A, B))])
    plain = LogisticRegression().fit(filled, y)
    for X in (M, Views({"a": A, "b": sp.csr_array(B)}, mask=HOLES)):
        model = EarlyFusion(LogisticRegression()).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(filled), atol=1e-4)
    alone = np.hstack([np.tile(A[HOLES[:, 0]].mean(axis=0), (90, 1)), B])
    model = EarlyFusion(LogisticRegression()).fit(M, y)
    np.testing.assert_allclose(model.predict_proba({"b": B}), plain.predict_proba(alone))
    own = model.view_decision_function(M)
    np.testing.assert_allclose(own[HOLES[:, 1], 1], plain.predict_proba(alone)[HOLES[:, 1]])


def test_early_fusion_can_leave_nan_to_the_estimator():
    model = EarlyFusion(HistGradientBoostingClassifier(max_iter=3), fill="nan").fit(M, y)
    table = np.hstack([M["a"], M["b"]])
    plain = HistGradientBoostingClassifier(max_iter=3).fit(table, y)
    np.testing.assert_allclose(model.predict_proba(M), plain.predict_proba(table))


def test_late_fusion_equals_the_mean_of_its_estimators():
    model = LateFusion(LogisticRegression(), view_weights=[1, 3]).fit(M, y)
    parts = [LogisticRegression().fit(D[HOLES[:, v]], y[HOLES[:, v]]) for v, D in enumerate((A, B))]
    expected = reference.late_fusion(parts, [A, B], HOLES, [1, 3])
    np.testing.assert_allclose(model.predict_proba(M), expected)
    np.testing.assert_allclose(model.predict_proba({"b": B}), parts[1].predict_proba(B))
    assert model.view_weights_.tolist() == [0.25, 0.75]
    np.testing.assert_allclose(model.view_decision_function(M)[HOLES[:, 0], 0], parts[0].predict_proba(A[HOLES[:, 0]]))


def test_late_fusion_of_regressors_is_the_mean_of_predictions():
    t = A[:, 0] + B[:, 0]
    model = LateFusion(Ridge()).fit(V, t)
    expected = (Ridge().fit(A, t).predict(A) + Ridge().fit(B, t).predict(B)) / 2
    np.testing.assert_allclose(model.predict(V), expected)
    both = LateFusion(Ridge()).fit(V, np.column_stack([t, -t]))
    np.testing.assert_allclose(both.predict(V), np.column_stack([expected, -expected]))
    assert model.score(V, t) == pytest.approx(1 - np.sum((t - expected) ** 2) / np.sum((t - t.mean()) ** 2))


def test_estimators_by_view_and_weights_by_name():
    model = LateFusion({"a": LogisticRegression(), "b": SVC()}, view_weights={"b": 3.0}).fit(V, y)
    assert {name: type(each) for name, each in model.estimators_.items()} == {"a": LogisticRegression, "b": SVC}
    assert model.view_weights_.tolist() == [0.25, 0.75]
    assert not hasattr(model, "predict_proba")
    # probabilities and decision values do not mix: where one estimator has no probabilities, none are used
    model = LateFusion({"a": LogisticRegression(), "b": RidgeClassifier()}).fit(V, y)
    scores = LogisticRegression().fit(A, y).decision_function(A), RidgeClassifier().fit(B, y).decision_function(B)
    np.testing.assert_allclose(model.decision_function(V), sum(scores) / 2)


def test_a_dict_of_one_estimator_per_view_is_the_same_as_one_estimator():
    one = LateFusion(LogisticRegression(C=0.3)).fit(M, y)
    by_view = LateFusion({name: LogisticRegression() for name in "ba"})
    by_view.set_params(estimator__a__C=0.3, estimator__b__C=0.3)
    assert by_view.get_params()["estimator__b__C"] == 0.3
    search = GridSearchCV(by_view, {"estimator__a__C": [0.3]}, cv=2).fit(M, y)
    for model in (by_view.fit(M, y), clone(by_view).fit(M, y), search):
        np.testing.assert_array_equal(model.predict_proba(M), one.predict_proba(M))


def test_fusions_have_no_iterations_of_their_own():
    model = LateFusion(LogisticRegression()).fit(V, y)
    assert not hasattr(model, "n_iter_")
    assert str(model.certificate()) == "The wrapped estimator solved its own problem; no gap is known for it."


VOTES = OutputCodeClassifier(LogisticRegression(), code_size=6, random_state=0)  # predictions only, no scores


@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier(), VOTES])
@pytest.mark.parametrize("fusion", [EarlyFusion, LateFusion])
def test_outputs_of_every_kind_of_classifier(fusion, estimator):
    for labels in (y, y > 0):
        plain = clone(estimator).fit(A, labels)
        assert np.array_equal(fusion(estimator).fit({"a": A}, labels).predict({"a": A}), plain.predict(A))
    assert hasattr(fusion(estimator), "predict_proba") == hasattr(estimator, "predict_proba")
    two = fusion(estimator).fit(V, y > 0)
    assert two.score(V, y > 0) > 0.8
    if hasattr(two, "decision_function"):
        assert np.array_equal(two.decision_function(V) > 0, two.predict(V))
        assert two.view_decision_function(V).shape == (90, 2)


@pytest.mark.parametrize("labels", [y, np.arange(90) % 4], ids=["3 classes", "4 classes"])
@pytest.mark.parametrize(
    "machine",
    [
        SVC(decision_function_shape="ovo"),
        SVC(decision_function_shape="ovr", break_ties=True),
        make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")),
    ],
)
def test_scores_of_pairs_are_not_scores_of_classes(machine, labels):
    early, alone = EarlyFusion(machine).fit(V, labels), LateFusion(machine).fit({"a": A}, labels)
    assert np.array_equal(early.predict(V), clone(machine).fit(BOTH, labels).predict(BOTH))
    assert np.array_equal(alone.predict({"a": A}), clone(machine).fit(A, labels).predict(A))
    assert not hasattr(LateFusion(SVC(decision_function_shape="ovo")), "decision_function")


def test_a_gram_next_to_data_is_split_by_rows():
    X = Views({"g": RBF(0.5)(A), "b": B}, precomputed="g")
    model = LateFusion({"g": SVC(kernel="precomputed"), "b": SVC()})
    found = cross_val_score(model, X, y, cv=3)
    by_data = LateFusion({"g": SVC(gamma=0.5), "b": SVC()})
    np.testing.assert_allclose(found, cross_val_score(by_data, V.renamed({"a": "g"}), y, cv=3))
    machine = LateFusion(SVC(kernel="precomputed"))
    alone = cross_val_score(machine, X[["g"]].align(("g", "b")), y, cv=3)
    np.testing.assert_allclose(alone, cross_val_score(machine, X[["g"]], y, cv=3))


def test_dense_at_fit_sparse_at_prediction():
    model = EarlyFusion(LogisticRegression()).fit(V, y)
    mask = {"a": np.arange(90) > 2}
    dense = model.predict_proba(Views({"a": A, "b": B}, mask=mask))
    np.testing.assert_allclose(model.predict_proba(Views({"a": sp.csr_array(A), "b": B}, mask=mask)), dense)


def test_a_wide_sparse_view_may_be_missing():
    wide = sp.random(90, 50_000, density=4e-4, random_state=0, format="csr")
    X = Views({"a": A, "w": wide}, mask={"w": np.arange(90) % 3 > 0})
    model = EarlyFusion(Ridge(solver="sparse_cg")).fit(X, A[:, 0])
    assert np.isfinite(model.predict({"a": A})).all()
    assert model.view_decision_function(X).shape == (90, 2)


@pytest.mark.parametrize("weights", [[1, 2], {"b": 2.0}], ids=str)
def test_a_view_missing_in_a_whole_fold(weights):
    model = LateFusion(LogisticRegression(), view_weights=weights).fit(Views(a=A, b=None), y)
    np.testing.assert_allclose(model.predict_proba(V), LogisticRegression().fit(A, y).predict_proba(A))


def test_grams_with_missing_samples():
    K = RBF(0.5)(A)
    there = np.arange(90) % 6 > 0
    gone = np.where(there[:, None] & there[None, :], K, np.nan)
    some = np.flatnonzero(there)
    plain = SVC(kernel="precomputed").fit(K[np.ix_(some, some)], y[some])
    machine = LateFusion({"a": LogisticRegression(), "g": SVC(kernel="precomputed")})
    for X in (
        Views({"g": gone, "a": A}),
        Views({"g": gone, "a": A}, precomputed="g"),
        Views({"g": K, "a": A}, mask={"g": there}),
    ):
        model = clone(machine).fit(X, y)
        own = model.estimators_["g"].decision_function(K[:, some])
        np.testing.assert_allclose(own, plain.decision_function(K[:, some]))
        assert model.score(X, y) > 0.6


def test_a_view_may_never_see_a_class():
    only = y != 2
    X = Views({"a": A, "b": B}, mask={"b": only})
    assert 2 not in LateFusion(LinearSVC()).fit(X, y).predict({"b": B[only]})
    model = LateFusion(LogisticRegression()).fit(X, y)
    assert model.predict_proba(X).shape == (90, 3)
    assert (model.predict_proba(X)[only][:, 2] <= 0.5).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, y) > 0.7


def test_sample_weights_reach_the_estimators():
    w = rng.random(90)
    parts = LateFusion(LogisticRegression()).fit(M, y, sample_weight=w)
    for name, data, there in zip("ab", (A, B), HOLES.T, strict=True):
        plain = LogisticRegression().fit(data[there], y[there], sample_weight=w[there])
        np.testing.assert_allclose(parts.estimators_[name].predict_proba(data), plain.predict_proba(data))
        np.testing.assert_allclose(parts.estimators_[name].coef_, plain.coef_)


def test_gram_views_reach_precomputed_machines():
    K = RBF(0.5)(A)
    X, machine = Views(g=K, precomputed=True), SVC(kernel="precomputed")
    model, plain = LateFusion(machine).fit(X[:60], y[:60]), clone(machine).fit(K[:60, :60], y[:60])
    for given in (X[60:], Views(g=K[60:, :60])):
        np.testing.assert_allclose(model.decision_function(given), plain.decision_function(K[60:, :60]))
    some = np.flatnonzero(np.arange(90) % 3 != 1)
    plain = clone(machine).fit(K[np.ix_(some, some)], y[some])
    for given in (X, Views(g=K)):
        model = LateFusion(machine).fit(given, np.where(np.isin(np.arange(90), some), y, np.nan))
        np.testing.assert_allclose(model.decision_function(given), plain.decision_function(K[:, some]))


def test_together_beats_alone_on_made_and_real_views():
    X, labels = make_views(600, informative=3, noise=0, random_state=0)
    train, test = slice(0, 300), slice(300, 600)
    together = LateFusion(LogisticRegression()).fit(X[train], labels[train]).score(X[test], labels[test])
    for name in X.names:
        alone = LogisticRegression().fit(X[name][train], labels[train]).score(X[name][test], labels[test])
        assert together > alone
    X, labels = load_breast_cancer_views(return_X_y=True)
    assert LateFusion(SVC()).fit(X[:400], labels[:400]).score(X[400:], labels[400:]) > 0.9


LOGISTIC, FEW = LogisticRegression(), np.arange(90) < 3
NAMED, ONE, ZERO, UNKNOWN = (LateFusion(LOGISTIC, view_weights=given) for given in ({"c": 1}, [1], [0, 1], "best"))
ONE_CLASS, FEW_B = (Views(V, mask={"b": there}) for there in (y == 1, FEW))
ABLE = "must be an object implementing 'fit' and 'predict'"
ABOVE_0 = "`view_weights` must be 'uniform' or 2 numbers above 0, one per view; got "
ERRORS = [
    (LateFusion({"a": LOGISTIC, "b": Ridge()}), "`estimator` mixes classifiers and regressors: LogisticRegression()"),
    (EarlyFusion(LOGISTIC, fill="zero"), "The 'fill' parameter of EarlyFusion must be a str among {"),
    (EarlyFusion(dict.fromkeys("ab", LOGISTIC)), f"The 'estimator' parameter of EarlyFusion {ABLE}. Got {{'a'"),
    (LateFusion("svc"), f"The 'estimator' parameter of LateFusion {ABLE} or"),
    (EarlyFusion(LOGISTIC), "EarlyFusion needs columns of numbers, but view 't' is objects.", Views(a=A, t=["x"] * 90)),
    (LateFusion({"a": SVC()}), "`estimator` has no estimator for the view 'b'. Give one for each view, or one"),
    (LateFusion({}), "`estimator` has no estimator for the view 'a', 'b'."),
    (LateFusion(dict.fromkeys("abc", SVC())), "`estimator` names the view 'c'; the views are 'a', 'b'."),
    (NAMED, "`view_weights` names the view 'c'; the views are 'a', 'b'."),
    (ONE, f"{ABOVE_0}[1]."),
    (ZERO, f"{ABOVE_0}[0, 1]."),
    (UNKNOWN, "The 'view_weights' parameter of LateFusion must be a str among {'uniform'}"),
    (LateFusion(LOGISTIC), "View 'b': LogisticRegression could not be fitted: This solver needs samples of", ONE_CLASS),
    (LateFusion(LOGISTIC), "View 'b' has no labeled sample to learn from.", FEW_B, np.where(FEW, np.nan, y)),
    (LateFusion(NearestCentroid()), "NearestCentroid does not take sample_weight. Fit without it,", V, y, np.ones(90)),
    (LateFusion(Ridge()), "No labeled sample has a weight above 0.", V, np.where(y == 0, np.nan, y), (y == 0) * 1.0),
]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case[1][:50])
def test_bad_parameters_and_data_raise(case):
    model, message, X, targets, weights = (*case, *(V, y, None)[len(case) - 2 :])
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        model.fit(X, targets, weights)


def test_predictions_need_samples():
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        LateFusion(LOGISTIC).fit(V, y).predict(V[:0])


def test_processes_fit_the_views_as_one_does():
    one, two = (LateFusion(LogisticRegression(), n_jobs=jobs).fit(M, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.predict_proba(M), two.predict_proba(M))
    with pytest.raises(ValueError, match=r"View 'b': .*could not be fitted"):
        LateFusion({"a": LogisticRegression(), "b": LogisticRegression(C=-1)}, n_jobs=2).fit(V, y)
