"""Fits over features that grow: any division of the samples after the first call gives one fit."""

import copy

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import consilience as cs
import reference
from cases import random_mask
from consilience.kernels import RBF
from consilience.solvers import moments
from consilience.solvers.coregularized import Penalties
from consilience.solvers.design import FeatureRows

EXACT = {"random_state": 0, "n_components": 15}
STEPS = {"tol": 1e-10, "max_iter": 1000}
MODELS = {
    "ridge": cs.CoRegularizedRidge(RBF(0.2), **EXACT),
    "agreement": cs.CoRegularizedRidge(agreement_penalty=1e-2, view_weights=[0.7, -0.2, 0.4], **EXACT),
    "learned weights": cs.CoRegularizedRidge(RBF(0.2), view_weights="learned", **EXACT, **STEPS),
    "alternating": cs.CoRegularizedRidge(
        RBF(0.2), view_weights="learned", weights_solver="alternating", n_restarts=1, **EXACT
    ),
    "several kernels": cs.CoRegularizedRidge({"a": [RBF(0.1), "linear"]}, view_weights="learned", **EXACT, **STEPS),
    "output kernel": cs.CoRegularizedRidge(RBF(0.2), output_kernel=[[1.0, 0.5], [0.5, 1.0]], **EXACT),
    "classes": cs.CoRegularizedRidgeClassifier(agreement_penalty=1e-3, class_weight={"low": 2.0}, **EXACT),
    "mkl": cs.MultipleKernelRidge({"a": ["linear", "rbf"]}, p=1.5, **EXACT, **STEPS),
    "mkl, of each output": cs.MultipleKernelRidge(RBF(0.2), p=1.3, shared_weights=False, **EXACT, **STEPS),
    "mkl, classes": cs.MultipleKernelRidgeClassifier(**EXACT, **STEPS),
    "metric": cs.ViewMetricRidge(RBF(0.2), **EXACT),
    "shared metric": cs.ViewMetricRidge(RBF(0.2), shared_metric=True, **EXACT, **STEPS),
    "block-sparse metric": cs.ViewMetricRidge(RBF(0.2), metric="block_sparse", **EXACT, **STEPS),
    "covariance": cs.ViewMetricRidge(RBF(0.2), metric="covariance", **EXACT),
    "metric, learned weights": cs.ViewMetricRidge(RBF(0.2), view_weights="learned", n_restarts=1, **EXACT, **STEPS),
    "metric, classes": cs.ViewMetricRidgeClassifier(**EXACT),
}


@pytest.fixture(scope="module", params=[0.0, 0.2], ids=["complete", "missing"])
def samples(request):
    rng = np.random.default_rng(0)
    n = 150
    hidden = rng.normal(size=(n, 2))
    blocks = {
        v: hidden @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
        for v, d in zip("abc", (3, 2, 4), strict=True)
    }
    X = cs.Views(blocks, mask=random_mask(rng, n, 3, request.param))
    y = np.column_stack([np.sin(2 * hidden[:, 0]), hidden[:, 1]]) + 0.3 * rng.normal(size=(n, 2))
    labels = np.array(["low", "middle", "high"], dtype=object)[np.digitize(hidden[:, 0], [-0.5, 0.5])]
    y[rng.random(n) < 0.2], labels[rng.random(n) < 0.2] = np.nan, None
    return X, y, labels, rng.uniform(0.3, 2, size=n)


def given(model, samples):
    X, y, labels, s = samples
    return X, labels if is_classifier(model) else y, s


def learned(model, X, y, s, *chunks):
    model = clone(model)
    for chunk in chunks:
        model.partial_fit(X[chunk], y[chunk], s[chunk])
    return model


FIRST = slice(0, 60)
STARTED = {}


def grown_from_first(name, samples, *chunks):
    """Learn these chunks after the first samples, whose fit the tests make once and copy."""
    X, y, s = given(MODELS[name], samples)
    key = name, X.mask is None
    if key not in STARTED:
        STARTED[key] = learned(MODELS[name], X, y, s, FIRST)
    model = copy.deepcopy(STARTED[key])
    for chunk in chunks:
        model.partial_fit(X[chunk], y[chunk], s[chunk])
    return model


def assert_equal_fits(one, other, X, tol=1e-8):
    expected = one._combined(X)
    np.testing.assert_allclose(other._combined(X), expected, atol=tol * np.abs(expected).max())
    np.testing.assert_allclose(other.view_weights_, one.view_weights_, atol=tol)
    assert other.solution_.status == one.solution_.status
    assert other.solution_.objective == pytest.approx(one.solution_.objective, rel=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_one_call_is_a_fit(samples, name):
    model = MODELS[name]
    X, y, s = given(model, samples)
    one = clone(model).partial_fit(X, y, s, **({"classes": ["high", "low", "middle"]} if is_classifier(model) else {}))
    assert_equal_fits(clone(model).fit(X, y, s), one, X)
    assert hasattr(one, "metric_") == hasattr(model, "metric")
    blocks = cs.RowBlocks.of(X, y, s, size=37)
    assert_equal_fits(one, clone(model).partial_fit(blocks), X)


@pytest.mark.parametrize("name", MODELS)
def test_any_division_after_the_first_call_gives_one_fit(samples, name):
    X, y, s = given(MODELS[name], samples)
    two = grown_from_first(name, samples, slice(60, 150))
    three = grown_from_first(name, samples, np.arange(60, 150)[::2], np.arange(61, 150)[::2])
    ones = grown_from_first(name, samples, slice(60, 64))
    alone = grown_from_first(name, samples, *([k] for k in range(60, 64)))
    assert_equal_fits(two, three, X)
    assert_equal_fits(ones, alone, X)
    by_blocks = grown_from_first(name, samples).partial_fit(cs.RowBlocks.of(X[60:], y[60:], s[60:], size=13))
    assert_equal_fits(two, by_blocks, X)
    assert two._features.n_components_ == ones._features.n_components_


def feature_rows(model, X, Y, s):
    """Features of samples as the normal equations take them."""
    parts, n = model._features.transform(X), len(X)
    Phi = np.zeros((n, sum(model._features.n_components_.values())))
    start = 0
    for name, size in model._features.n_components_.items():
        here = X.present(name)
        Phi[here, start : start + size] = np.asarray(parts[name])[here]
        start += size
    present = np.ones((n, len(X.names)), dtype=bool) if X.mask is None else X.mask
    shown = ~np.isnan(Y).any(axis=1)
    return FeatureRows(Phi, present, s, np.where(shown, s, 0.0), np.where(shown[:, None], Y, 0.0))


@pytest.mark.parametrize("name", ["agreement", "output kernel"])
def test_the_fit_is_the_solution_of_all_samples_over_the_first_landmarks(samples, name):
    model = MODELS[name]
    X, y, s = given(model, samples)
    grown = learned(model, X, y, s, FIRST, slice(60, 100), slice(100, 150))
    rows = feature_rows(grown, X, y, s)
    if not model.agreement_penalty:
        rows = FeatureRows(*(part[rows.u > 0] for part in rows))
    sizes = list(grown._features.n_components_.values())
    penalties = Penalties(model.alpha, model.agreement_penalty, 0.0)
    R = None if model.output_kernel is None else np.array(model.output_kernel)
    total = s[~np.isnan(y).any(axis=1)].sum()
    W, _ = reference.coregularized_features(rows, sizes, grown.view_weights_, penalties, total, R)
    np.testing.assert_allclose(np.concatenate(list(grown.coef_.values())), W, atol=1e-7 * np.abs(W).max())


@pytest.mark.parametrize("name", MODELS)
def test_merged_fits_are_the_fit_of_all_samples(samples, name):
    X, start = samples[0], grown_from_first(name, samples)
    parts = [grown_from_first(name, samples, own) for own in (slice(60, 90), slice(90, 150))]
    whole = grown_from_first(name, samples, slice(60, 150))
    other = copy.deepcopy(parts[1])
    assert_equal_fits(whole, parts[0].merge(parts[1]), X)
    assert_equal_fits(other, parts[1], X, tol=0)  # the other stays as it is
    assert_equal_fits(whole, copy.deepcopy(start).merge(whole), X)
    assert_equal_fits(start, copy.deepcopy(start).merge(start), X)  # the first call counts once


@pytest.mark.parametrize("name", ["agreement", "several kernels", "classes", "mkl", "metric", "metric, classes"])
def test_a_saved_fit_grows_on(samples, name, tmp_path):
    model = MODELS[name]
    X, y, s = given(model, samples)
    grown = learned(model, X, y, s, FIRST, slice(60, 100))
    cs.save(grown, tmp_path / "model")
    again = cs.load(tmp_path / "model").partial_fit(X[100:], y[100:], s[100:])
    assert_equal_fits(grown.partial_fit(X[100:], y[100:], s[100:]), again, X, tol=0)


def test_damaged_sums_are_refused(samples, tmp_path):
    model = MODELS["agreement"]
    X, y, s = given(model, samples)
    damages = {
        "X": lambda part: part.update(X=part["X"][:-1]),
        "Z": lambda part: part.update(Z=part["Z"].astype(np.float32)),
        "squares": lambda part: part.update(squares=np.full(2, np.nan)),
        "n": lambda part: part.update(n=-1),
        "weight": lambda part: part.update(weight="many"),
        "present": lambda part: part.update(present=np.ones(2, dtype=bool)),
        "more": lambda part: part.update(other=1),
        "less": lambda part: part.pop("T"),
    }
    for name, damage in damages.items():
        broken = learned(model, X, y, s, FIRST)
        damage(broken._sums["first"][0])
        cs.save(broken, tmp_path / name)
        with pytest.raises(ValueError, match="damaged"):
            cs.load(tmp_path / name)


def test_penalties_may_change_between_calls(samples):
    model = MODELS["ridge"]
    X, y, s = given(model, samples)
    one = learned(model, X, y, s, FIRST, slice(60, 150))
    other = learned(clone(model).set_params(alpha=10.0), X, y, s, FIRST).set_params(alpha=model.alpha)
    assert_equal_fits(one, other.partial_fit(X[60:], y[60:], s[60:]), X)


def test_classes_that_come_late_must_be_announced(samples):
    X, _, labels, _ = samples
    few = np.array([label if label != "high" else None for label in labels], dtype=object)
    model = clone(MODELS["classes"])
    with pytest.raises(ValueError, match=r"The class 'high' was not announced.*`classes=` at the first call"):
        clone(model).partial_fit(X, few).partial_fit(X, labels)
    announced = clone(model).partial_fit(X, few, classes=["middle", "low", "high"])
    assert announced.classes_.tolist() == ["high", "low", "middle"]
    assert announced.decision_function(X).shape == (150, 3)
    announced.partial_fit(X, labels)
    with pytest.raises(ValueError, match=r"`classes` are .* now"):
        announced.partial_fit(X, labels, classes=["low", "new"])
    with pytest.raises(ValueError, match="was not announced"):
        clone(model).partial_fit(X, labels, classes=["low", "middle"])
    one = clone(model).set_params(class_weight=None).partial_fit(X, ["only"] * 150, classes=["only", "other"])
    assert set(one.partial_fit(X, ["other"] * 150).predict(X)) <= {"only", "other"}


def test_indicators_of_labels(samples):
    X, y, _, s = samples
    Y = (np.nan_to_num(y) > 0).astype(int)
    model = cs.CoRegularizedRidgeClassifier(RBF(0.2), **EXACT)
    assert_equal_fits(clone(model).fit(X, Y, s), clone(model).partial_fit(X, Y, s), X)
    grown = learned(model, X, Y, s, FIRST, slice(60, 150))
    assert grown.predict(X).shape == (150, 2)
    with pytest.raises(ValueError, match="`classes` is for one class per sample"):
        clone(model).partial_fit(X, Y, classes=[0, 1])


def test_auto_landmarks_and_shares_are_those_of_the_first_call(samples):
    X, y, _ = given(MODELS["ridge"], samples)
    auto = clone(MODELS["ridge"]).set_params(n_components="auto").partial_fit(X[FIRST], y[FIRST])
    assert 0 < auto.n_components_ <= 60
    share = clone(MODELS["ridge"]).set_params(n_components=0.5).partial_fit(X[FIRST], y[FIRST])
    labeled = int((~np.isnan(y[FIRST]).any(axis=1)).sum())
    assert share.n_components_ == round(0.5 * labeled)


def test_a_refused_call_changes_nothing(samples):
    model = MODELS["agreement"]
    X, y, s = given(model, samples)
    grown = learned(model, X, y, s, FIRST)
    before = copy.deepcopy(grown)
    calls = [
        lambda: grown.partial_fit(X[60:], y[60:, :1]),
        lambda: grown.partial_fit({"a": np.ones((5, 7))}, np.ones((5, 2))),
        lambda: grown.partial_fit(X[60:], y[60:], -s[60:]),
        lambda: grown.set_params(n_components=20).partial_fit(X[60:], y[60:]),
        lambda: grown.set_params(n_components=15, output_kernel=np.eye(2)).partial_fit(X[60:], y[60:]),
        lambda: grown.set_params(output_kernel=None).partial_fit(X[60:], y[60:], classes=[0, 1]),
        lambda: grown.partial_fit(X[60:]),
        lambda: grown.partial_fit(cs.RowBlocks.of(X, y), y),
        lambda: grown.merge(clone(model).partial_fit(X[60:], y[60:])),
        lambda: grown.merge(clone(model).fit(X, y)),
    ]
    for call in calls:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="merge takes another CoRegularizedRidge"):
        grown.merge(cs.MultipleKernelRidge())
    more = [fit.partial_fit(X[60:], y[60:], s[60:]) for fit in (before, grown)]
    assert_equal_fits(*more, X, tol=0)


def test_what_cannot_grow_is_refused(samples, monkeypatch):
    X, y, labels, _ = samples
    assert not hasattr(cs.CoRegularizedRidge(), "partial_fit")
    with pytest.raises(AttributeError):
        cs.ViewMetricRidge().partial_fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        cs.CoRegularizedRidgeClassifier(n_components=5, class_weight="balanced").partial_fit(X, labels)
    with pytest.raises(AttributeError) as caught:
        cs.CoRegularizedRidge(n_components=5, graph_penalty=1e-3).partial_fit(X, y)
    assert "a graph is between all samples" in str(caught.value.__cause__)
    assert not hasattr(cs.CoRegularizedRidge(n_components=5, graph_penalty=1e-3), "merge")
    with pytest.raises(ValueError, match="does not take `validation_fraction`"):
        cs.CoRegularizedRidge(
            n_components=5, view_weights="learned", weights_solver="alternating", validation_fraction=0.3
        ).partial_fit(X, y)
    with pytest.raises(ValueError, match="was fitted by `fit`, which keeps no sums"):
        cs.CoRegularizedRidge(n_components=5).fit(X, y).partial_fit(X, y)
    with pytest.raises(ValueError, match="No labeled sample"):
        cs.CoRegularizedRidge(n_components=5).partial_fit(X, np.full(150, np.nan))
    blocks = {v: np.random.default_rng(0).normal(size=(150, 2)) for v in "abc"}
    lacking = cs.Views(blocks, mask=np.array([[True, True, False]] * 150))
    with pytest.raises(ValueError, match="View 'c' was missing in all samples of the first call"):
        cs.CoRegularizedRidge(n_components=5).partial_fit(lacking, y).partial_fit(blocks, y)
    if X.mask is not None:
        monkeypatch.setattr(moments, "PATTERN_BYTES", 0)
        with pytest.raises(ValueError, match="keeps sums for each combination of missing views"):
            cs.CoRegularizedRidge(n_components=5).partial_fit(X, y)


def test_a_fit_forgets_what_was_added(samples):
    model = MODELS["ridge"]
    X, y, s = given(model, samples)
    grown = learned(model, X, y, s, FIRST)
    assert_equal_fits(clone(model).fit(X, y, s), grown.fit(X, y, s), X)
    assert "_sums" not in vars(grown)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_sums_on_devices(samples, library):
    xp = pytest.importorskip(library)
    X, y, _, s = samples
    model = MODELS["agreement"]
    there = cs.Views({v: xp.asarray(np.asarray(X[v])) for v in X.names}, mask=X.mask)
    grown = learned(model, there, y, s, FIRST, slice(60, 150))
    expected = learned(model, X, y, s, FIRST, slice(60, 150)).predict(X)
    np.testing.assert_allclose(np.asarray(grown.predict(there)), expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore")  # neither fit reaches the tolerance
def test_an_almost_perfect_fit_is_measured_as_far_as_sums_tell():
    """Rows are gone: the bound says how little the sums tell of a loss near their rounding."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X @ rng.normal(size=3)
    model = cs.MultipleKernelRidge("linear", alpha=1e-12, n_components=10, random_state=0)
    whole = clone(model).fit(X, y)
    grown = clone(model).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    np.testing.assert_allclose(grown.predict(X), whole.predict(X), atol=1e-6)
    assert grown.certificate().gap >= 0
