"""Early and late fusion against what they equal, and with missing views."""

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
V = Views(a=A, b=B)
HOLES = np.column_stack([np.arange(90) % 5 > 0, np.arange(90) % 4 > 0])
HOLES[~HOLES.any(axis=1), 0] = True
M = Views({"a": A, "b": B}, mask=HOLES)


def test_early_fusion_equals_the_estimator_on_the_columns_side_by_side():
    plain = LogisticRegression().fit(np.hstack([A, B]), y)
    for X in (V, Views(a=sp.csr_array(A), b=B)):
        np.testing.assert_allclose(
            EarlyFusion(LogisticRegression()).fit(X, y).predict_proba(X),
            plain.predict_proba(np.hstack([A, B])),
            atol=1e-4,
        )
    np.testing.assert_array_equal(
        EarlyFusion(LogisticRegression()).fit(V, y).predict(V), plain.predict(np.hstack([A, B]))
    )


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
    assert isinstance(model.estimators_["a"], LogisticRegression)
    assert isinstance(model.estimators_["b"], SVC)
    assert model.view_weights_.tolist() == [0.25, 0.75]
    assert not hasattr(model, "predict_proba")
    assert model.decision_function(V).shape == (90, 3)


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


def test_scores_of_pairs_are_not_scores_of_classes():
    for machine in (SVC(decision_function_shape="ovo"), SVC(decision_function_shape="ovr", break_ties=True)):
        for labels in (y, np.arange(90) % 4):
            plain = clone(machine).fit(np.hstack([A, B]), labels)
            early = EarlyFusion(machine).fit(V, labels)
            assert np.array_equal(early.predict(V), plain.predict(np.hstack([A, B])))
            alone = LateFusion(machine).fit(Views(a=A), labels)
            assert np.array_equal(alone.predict(A), clone(machine).fit(A, labels).predict(A))
    hidden = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    assert np.array_equal(LateFusion(hidden).fit({"a": A}, y).predict({"a": A}), clone(hidden).fit(A, y).predict(A))
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


def test_early_fusion_predicts_what_the_estimator_predicts():
    careful = FixedThresholdClassifier(LogisticRegression(), threshold=0.9)
    plain = clone(careful).fit(np.hstack([A, B]), y == 0)
    assert np.array_equal(EarlyFusion(careful).fit(V, y == 0).predict(V), plain.predict(np.hstack([A, B])))


def test_weights_of_zero_leave_samples_out_of_the_means_too():
    some = np.arange(90) % 3 > 0
    model = EarlyFusion(Ridge()).fit(M, A[:, 0], sample_weight=some.astype(float))
    without = EarlyFusion(Ridge()).fit(M[some], A[some, 0])
    np.testing.assert_allclose(model.predict({"a": A}), without.predict({"a": A}))


def test_a_wide_sparse_view_may_be_missing():
    wide = sp.random(90, 50_000, density=4e-4, random_state=0, format="csr")
    X = Views({"a": A, "w": wide}, mask={"w": np.arange(90) % 3 > 0})
    model = EarlyFusion(Ridge(solver="sparse_cg")).fit(X, A[:, 0])
    assert np.isfinite(model.predict({"a": A})).all()
    assert model.view_decision_function(X).shape == (90, 2)


def test_a_view_missing_in_a_whole_fold():
    gone = Views(a=A, b=None)
    for weights in ([1, 2], {"b": 2.0}):
        model = LateFusion(LogisticRegression(), view_weights=weights).fit(gone, y)
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


def test_a_class_a_view_never_saw_is_not_its_prediction():
    without = np.where((y == 2)[:, None], np.nan, B)
    model = LateFusion(LinearSVC()).fit(Views(a=A, b=without), y)
    assert 2 not in model.predict({"b": B[y != 2]})


def test_a_view_may_never_see_a_class():
    only = np.where(y == 2, False, True)
    X = Views({"a": A, "b": B}, mask=np.column_stack([np.ones(90, bool), only]))
    model = LateFusion(LogisticRegression()).fit(X, y)
    assert model.predict_proba(X).shape == (90, 3)
    assert (model.predict_proba(X)[only][:, 2] <= 0.5).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, y) > 0.7


def test_unlabeled_samples_are_left_out():
    half = y.astype(float)
    half[::2] = np.nan
    for fusion in (EarlyFusion(LogisticRegression()), LateFusion(LogisticRegression())):
        seen = fusion.fit(V, half).predict_proba(V)
        np.testing.assert_allclose(seen, fusion.fit(V[1::2], y[1::2]).predict_proba(V))


def test_sample_weights_reach_the_estimators():
    w = rng.random(90)
    np.testing.assert_allclose(
        LateFusion(LogisticRegression()).fit(Views(a=A), y, sample_weight=w).predict_proba(A),
        LogisticRegression().fit(A, y, sample_weight=w).predict_proba(A),
    )
    parts = LateFusion(LogisticRegression()).fit(M, y, sample_weight=w)
    there = HOLES[:, 1]
    np.testing.assert_allclose(
        parts.estimators_["b"].coef_, LogisticRegression().fit(B[there], y[there], sample_weight=w[there]).coef_
    )


def test_gram_views_reach_precomputed_machines():
    K = RBF(0.5)(A)
    X = Views(g=K, precomputed=True)
    model = LateFusion(SVC(kernel="precomputed")).fit(X[:60], y[:60])
    plain = SVC(kernel="precomputed").fit(K[:60, :60], y[:60])
    np.testing.assert_allclose(model.decision_function(X[60:]), plain.decision_function(K[60:, :60]))
    np.testing.assert_allclose(model.decision_function(Views(g=K[60:, :60])), plain.decision_function(K[60:, :60]))
    half = np.where(np.arange(90) % 3 == 1, np.nan, y)
    some = np.flatnonzero(~np.isnan(half))
    plain = SVC(kernel="precomputed").fit(K[np.ix_(some, some)], y[some])
    for given in (X, Views(g=K)):
        model = LateFusion(SVC(kernel="precomputed")).fit(given, half)
        np.testing.assert_allclose(model.decision_function(given), plain.decision_function(K[:, some]))


def test_outputs_of_one_kind_are_averaged():
    """Probabilities and decision values do not mix: where one estimator has no probabilities, none are used."""
    model = LateFusion({"a": LogisticRegression(), "b": RidgeClassifier()}).fit(V, y)
    expected = (
        LogisticRegression().fit(A, y).decision_function(A) + RidgeClassifier().fit(B, y).decision_function(B)
    ) / 2
    np.testing.assert_allclose(model.decision_function(V), expected)


def test_together_beats_alone_on_made_views():
    X, labels = make_views(600, informative=3, noise=0, random_state=0)
    train, test = slice(0, 300), slice(300, 600)
    together = LateFusion(LogisticRegression()).fit(X[train], labels[train]).score(X[test], labels[test])
    for name in X.names:
        alone = LogisticRegression().fit(X[name][train], labels[train]).score(X[name][test], labels[test])
        assert together > alone


def test_real_views():
    X, labels = load_breast_cancer_views(return_X_y=True)
    assert LateFusion(SVC()).fit(X[:400], labels[:400]).score(X[400:], labels[400:]) > 0.9


ERRORS = {
    "`estimator` mixes classifiers and regressors: LogisticRegression() and Ridge(). Use one kind.": (
        lambda: LateFusion({"a": LogisticRegression(), "b": Ridge()}).fit(V, y)
    ),
    "Found array with 0 sample(s)": lambda: LateFusion(LogisticRegression()).fit(V, y).predict(V[:0]),
    "The 'fill' parameter of EarlyFusion must be a str among {": (
        lambda: EarlyFusion(LogisticRegression(), fill="zero").fit(V, y)
    ),
    "The 'estimator' parameter of EarlyFusion must be an object implementing 'fit' and 'predict'. Got {'a'": (
        lambda: EarlyFusion({"a": LogisticRegression(), "b": LogisticRegression()}).fit(V, y)
    ),
    "The 'estimator' parameter of LateFusion must be an object implementing 'fit' and 'predict' or": (
        lambda: LateFusion("svc").fit(V, y)
    ),
    "EarlyFusion needs columns of numbers, but view 't' is objects.": (
        lambda: EarlyFusion(LogisticRegression()).fit(Views(a=A, t=["x"] * 90), y)
    ),
    "NearestCentroid does not take sample_weight. Fit without it, or wrap another estimator.": (
        lambda: LateFusion(NearestCentroid()).fit(V, y, sample_weight=np.ones(90))
    ),
    "`estimator` has no estimator for the view 'b'. Give one for each view, or one estimator for all.": (
        lambda: LateFusion({"a": SVC()}).fit(V, y)
    ),
    "`estimator` has no estimator for the view 'a', 'b'.": lambda: LateFusion({}).fit(V, y),
    "`estimator` names the view 'c'; the views are 'a', 'b'.": (
        lambda: LateFusion(dict.fromkeys("abc", SVC())).fit(V, y)
    ),
    "No labeled sample has a weight above 0.": (
        lambda: LateFusion(Ridge()).fit(V, np.where(y == 0, np.nan, y), sample_weight=(y == 0) * 1.0)
    ),
    "`view_weights` names the view 'c'; the views are 'a', 'b'.": (
        lambda: LateFusion(LogisticRegression(), view_weights={"c": 1}).fit(V, y)
    ),
    "`view_weights` must be 'uniform' or 2 numbers above 0, one per view; got [1].": (
        lambda: LateFusion(LogisticRegression(), view_weights=[1]).fit(V, y)
    ),
    "`view_weights` must be 'uniform' or 2 numbers above 0, one per view; got [0, 1].": (
        lambda: LateFusion(LogisticRegression(), view_weights=[0, 1]).fit(V, y)
    ),
    "View 'b': LogisticRegression could not be fitted: This solver needs samples of at least 2 classes": (
        lambda: LateFusion(LogisticRegression()).fit(Views({"a": A, "b": B}, mask={"b": y == 1}), y)
    ),
    "The 'view_weights' parameter of LateFusion must be a str among {'uniform'}": (
        lambda: LateFusion(LogisticRegression(), view_weights="best").fit(V, y)
    ),
    "View 'b' has no labeled sample to learn from.": lambda: LateFusion(LogisticRegression()).fit(
        Views({"a": A, "b": B}, mask={"b": np.arange(90) < 3}), np.where(np.arange(90) < 3, np.nan, y)
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_bad_input_gets_a_sentence(message):
    with pytest.raises((ValueError, TypeError)) as caught:
        ERRORS[message]()
    assert message in str(caught.value)
