"""A weight of 2 is a sample that stands twice, and a weight of 0 one that is not there."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import consilience as cs
from cases import LEARNERS
from consilience import RowBlocks, Views
from consilience.kernels import RBF, Polynomial

n = 48
rng = np.random.default_rng(0)
LABELS = np.arange(n) % 3
A = rng.normal(size=(n, 3)) + LABELS[:, None]
B = 2 * rng.normal(size=(n, 2)) - LABELS[:, None] + 5
MASK = np.column_stack([np.arange(n) % 7 > 0, np.arange(n) % 4 > 0])
MASK[~MASK.any(axis=1), 0] = True
X = Views({"a": A, "b": B}, mask=MASK)
TARGETS = A[:, 0] - B[:, 1]
WEIGHTS = rng.integers(1, 4, size=n)
CODES = np.column_stack([np.eye(3)[LABELS], LABELS])  # outputs that repeat, so that candidates stay the same

FORMS = {
    "sum": {},
    "product": {"combine": "product"},
    "polynomial": {"combine": Polynomial(2)},
    "list of products": {"combine": [(("a", "b"), 1.0), (("a",), 0.5), (("b",), 0.25)]},
    "product, features": {"combine": "product", "n_components": 1.0, "random_state": 0},
    "product, bias": {"combine": "product", "fit_intercept": True},
}
BALANCED = [
    cs.MaxMarginClassifier(RBF(0.1), class_weight="balanced", tol=1e-10),
    cs.MaxMarginClassifier(RBF(0.1), class_weight="balanced", combine="product", tol=1e-10),
    cs.CoRegularizedRidgeClassifier(RBF(0.1), class_weight="balanced"),
    cs.CoRegularizedRidgeClassifier(RBF(0.1), class_weight="balanced", agreement_penalty=1e-3, graph_penalty=1e-3),
    cs.CoRegularizedSVC(RBF(0.1), class_weight="balanced", alpha=1e-2, tol=1e-10),
    cs.ViewMetricRidgeClassifier(RBF(0.1), class_weight="balanced", tol=1e-12),
    cs.MultipleKernelRidgeClassifier(RBF(0.1), class_weight="balanced", tol=1e-12),
]


CASES = [(cs.MaxMarginClassifier(RBF(0.1), tol=1e-11, **form), LABELS) for form in FORMS.values()]
CASES += [
    (cs.MaxMarginRegressor(RBF(0.1), output_kernel=RBF(0.5), tol=1e-11, **form), CODES)
    for form in FORMS.values()
    if "fit_intercept" not in form
]
CASES += [(model, np.minimum(LABELS * (np.arange(n) % 5 > 1), 2)) for model in BALANCED]


def outputs(model, data):
    methods = ("candidate_scores", "predict_proba", "decision_function", "predict")
    return next(getattr(model, name)(data) for name in methods if hasattr(model, name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "y"), CASES, ids=[repr(model) for model, _ in CASES])
def test_a_weight_is_a_number_of_samples(model, y):
    rows = np.repeat(np.arange(n), WEIGHTS)
    weighted = clone(model).fit(X, y, sample_weight=WEIGHTS)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(outputs(weighted, X), outputs(repeated, X), atol=2e-4)


FUSIONS = {
    "early, logistic": cs.EarlyFusion(LogisticRegression(tol=1e-8, max_iter=1000)),
    "late, logistic": cs.LateFusion(LogisticRegression(tol=1e-8, max_iter=1000)),
    "early, bayes": cs.EarlyFusion(GaussianNB()),
    "late, bayes": cs.LateFusion(GaussianNB()),
    "early, ridge": cs.EarlyFusion(Ridge()),
    "late, ridge": cs.LateFusion(Ridge()),
    "late, view weights": cs.LateFusion(Ridge(), view_weights={"a": 2.0, "b": 1.0}),
}
ZEROS = {"some samples": np.arange(n) % 5 > 0, "a class": LABELS != 1, "the end": np.arange(n) < 30}


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("name", FUSIONS)
def test_fusions_leave_samples_of_weight_zero_out(name, zeros):
    model, there = FUSIONS[name], ZEROS[zeros]
    y = LABELS if is_classifier(model) else TARGETS
    weighted = clone(model).fit(X, y, sample_weight=2.0 * there)
    without = clone(model).fit(X[there], y[there], sample_weight=np.full(there.sum(), 2.0))
    if not is_classifier(model):
        np.testing.assert_allclose(weighted.predict(X), without.predict(X), atol=1e-9)
        return
    assert np.array_equal(weighted.predict(X), without.predict(X))
    proba = weighted.predict_proba(X)
    assert proba.shape == (n, len(weighted.classes_))
    both = np.isin(weighted.classes_, without.classes_)
    np.testing.assert_allclose(proba[:, both], without.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("name", FUSIONS)
def test_a_view_in_samples_of_weight_zero_only_is_not_learned_from(name):
    model, there = FUSIONS[name], np.arange(n) >= 12
    y = LABELS if is_classifier(model) else TARGETS
    late = Views({"a": A, "b": B}, mask={"b": ~there})
    weighted = clone(model).fit(late, y, sample_weight=there.astype(float))
    if name == "late, view weights":
        model = clone(model).set_params(view_weights={"a": 2.0})
    without = clone(model).fit(Views(a=A[there]), y[there], sample_weight=np.ones(there.sum()))
    np.testing.assert_allclose(outputs(weighted, Views(a=A, b=B)), outputs(without, Views(a=A)), atol=1e-5)
    with pytest.raises(ValueError, match="learned from the views 'a'"):
        weighted.predict(Views(b=B))


ABSENT = {
    **{name: model for name, model in LEARNERS.items() if name != "vector perceptron, coefficients"},  # no weights
    "ridge, scale of the data": cs.CoRegularizedRidge("rbf"),
    "ridge, median of the data": cs.CoRegularizedRidge(RBF("median")),
    "ridge, kernels of the data": cs.CoRegularizedRidge("auto", view_weights="learned", random_state=0),
    "unlabeled samples": cs.CoRegularizedRidgeClassifier("rbf", agreement_penalty=1e-3, graph_penalty=1e-3),
    "metric": cs.ViewMetricRidge("rbf"),
    "vector-valued, scale": cs.VectorValuedRegressor("rbf"),
    "banded, scale": cs.BandedRidgeCV("rbf", random_state=0),
    "margin, scale": cs.MaxMarginClassifier("rbf"),
    "margin of outputs, scale": cs.MaxMarginRegressor("rbf", output_kernel=RBF("median")),
    "kernel perceptron, scale": cs.KernelPerceptron("rbf", shuffle=False),
    "a stream that is prepared": cs.PassiveAggressive(prepare=["impute", "standardize"], shuffle=False),
    "early fusion": cs.EarlyFusion(cs.CoRegularizedRidge("rbf")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ABSENT)
def test_a_sample_of_weight_zero_is_absent_whatever_it_holds(name):
    model, there = ABSENT[name], np.arange(n) % 6 != 2
    weights = np.where(there, 1.0 + np.arange(n) % 2, 0.0)
    broken = {"a": np.where(there[:, None], A, 1e4), "b": np.where(there[:, None], B, -3e3)}
    broken["a"][2, 1] = np.nan
    if is_classifier(model):
        y = np.where(there, np.array(["x", "y", "z"])[LABELS], "no class").astype(object)
    else:
        y = np.where(there, TARGETS, 1e300)
    data = Views(broken)
    weighted = clone(model).fit(data, y, sample_weight=weights)
    without = clone(model).fit(data[there], y[there], sample_weight=weights[there])
    found, expected = outputs(weighted, data[there]), outputs(without, data[there])
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=1e-6 * max(1, np.abs(expected).max()))
    else:
        np.testing.assert_array_equal(found, expected)
    if is_classifier(model):
        np.testing.assert_array_equal(weighted.classes_, without.classes_)


def test_samples_of_weight_zero_do_not_decide_what_fills_gaps():
    there = np.arange(n) % 6 != 2
    holes = np.where(there[:, None], A, 1e4)
    holes[there & (np.arange(n) % 5 == 0), 1] = np.nan
    weights = there.astype(float)
    consensus = [
        cs.ConsensusRegressor().fit({"a": part}, y, sample_weight=w)
        for part, y, w in ((holes, TARGETS, weights), (holes[there], TARGETS[there], None))
    ]
    assert consensus[0].loo_score_ == pytest.approx(consensus[1].loo_score_)
    np.testing.assert_allclose(*(model.predict({"a": holes[there]}) for model in consensus))
    frame = pd.DataFrame(np.where(there[:, None], A, 1e4), columns=list("pqr"))
    kept, few = frame[there].reset_index(drop=True), frame[there][["q", "r"]]
    exact, features = (
        cs.CoRegularizedRidge("linear", missing_columns="fill", **more) for more in ({}, {"n_components": 3})
    )
    models = [
        clone(exact).fit({"a": frame}, TARGETS, sample_weight=weights),
        clone(features).fit(RowBlocks.of(Views(a=frame), TARGETS, weights, size=10)),
        clone(exact).fit({"a": kept}, TARGETS[there]),
    ]
    with pytest.warns(UserWarning, match="filled with the means"):
        found = [model.predict({"a": few}) for model in models]
    np.testing.assert_allclose(found[0], found[2])
    np.testing.assert_allclose(found[1], found[2], rtol=1e-6)


@pytest.mark.parametrize("size", [1, 5, n])
def test_samples_of_weight_zero_leave_no_trace_in_a_stream(size):
    there, codes = np.arange(n) % 6 != 0, np.minimum(LABELS, 1)  # the first sample too
    holes = np.where(there[:, None], A, 1e9)
    holes[~there, 0] = np.nan
    model = cs.PassiveAggressive(prepare=["impute", "standardize"])
    whole, cut = clone(model).partial_fit({"a": A[there]}, codes[there]), clone(model)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        cut.partial_fit({"a": holes[rows]}, codes[rows], sample_weight=there[rows].astype(float))
    np.testing.assert_allclose(cut.decision_function({"a": A}), whole.decision_function({"a": A}), atol=1e-12)
