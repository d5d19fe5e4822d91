"""CoRegularizedSVC over features: no matrix over pairs of samples, and the same machine as over explicit kernels."""

import tracemalloc

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import consilience as cs
from consilience import RowBlocks, Views
from consilience.solvers import coregularized_svm

RNG = np.random.default_rng(0)
n = 150
CODES = RNG.integers(3, size=n)
A = RNG.normal(size=(n, 5)) + CODES[:, None] * [1.0, 0, 0, -0.5, 0]
B = RNG.normal(size=(n, 4)) + (CODES == 1)[:, None]
MASK = RNG.random((n, 2)) > 0.25
MASK[~MASK.any(axis=1)] = True
LABELS = np.array(["ant", "bee", "cat"], dtype=object)[CODES]
SOME = LABELS.copy()
SOME[::4] = None
WEIGHTS = RNG.uniform(0.5, 2, size=n)
GRAPH = (lambda W: np.diag(W.sum(axis=1)) - W)((lambda W: W + W.T)(RNG.random((n, n)) * (RNG.random((n, n)) < 0.05)))


def both(missing=False, **params):
    """Return a machine over features, and the one with linear kernels of these features, over Gram matrices."""
    params = {"alpha": 1e-3, "tol": 1e-8, "max_iter": 300, "random_state": 0, "class_weight": "balanced"} | params
    X = Views({"a": A, "b": B}, mask=MASK if missing else None)
    ours = cs.CoRegularizedSVC(n_components=12, **params).fit(X, SOME, sample_weight=WEIGHTS)
    features = ours._features.transform(X)
    exact = cs.CoRegularizedSVC("linear", **params).fit(features, SOME, sample_weight=WEIGHTS)
    return ours, exact, X, features


PENALTIES = {
    "norms": {},
    "agreement": {"agreement_penalty": 1e-3},
    "graph": {"graph_penalty": 1e-3, "graph": GRAPH},
    "both": {"agreement_penalty": 1e-3, "graph_penalty": 1e-3, "graph": GRAPH},
}


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("vectors", ["ovr", "simplex"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weights", ["uniform", "learned"])
def test_it_is_the_machine_over_the_explicit_kernel(penalties, vectors, missing, weights):
    ours, exact, X, features = both(missing, class_vectors=vectors, view_weights=weights, **PENALTIES[penalties])
    assert ours.solution_.objective == pytest.approx(exact.solution_.objective, rel=1e-6)
    if ours.solution_.gap is not None:
        assert ours.solution_.gap <= 2e-8 * ours.solution_.objective
    # without agreement, -c_v with -f_v is the same machine
    close = 1e-9 if weights == "uniform" else 1e-3
    np.testing.assert_allclose(np.abs(ours.view_weights_), np.abs(exact.view_weights_), atol=close)
    if weights == "uniform":
        np.testing.assert_allclose(ours.decision_function(X), exact.decision_function(features), atol=1e-4)


@pytest.mark.parametrize("vectors", ["ovr", "simplex"])
@pytest.mark.parametrize("penalties", ["norms", "agreement"])
def test_an_output_kernel_mixes_classes_as_over_the_explicit_kernel(vectors, penalties):
    R = np.array([[1.0, 0.4, 0.1], [0.4, 2.0, 0.0], [0.1, 0.0, 0.5]])
    R = R if vectors == "ovr" else R[:2, :2]
    ours, exact, X, features = both(class_vectors=vectors, output_kernel=R, **PENALTIES[penalties])
    assert ours.solution_.objective == pytest.approx(exact.solution_.objective, rel=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), exact.decision_function(features), atol=1e-4)


def test_one_view_is_liblinear_on_the_features():
    X = Views(a=A)
    model = cs.CoRegularizedSVC(n_components=20, alpha=1e-3, tol=1e-9, random_state=0).fit(X, LABELS)
    Phi = model._features.transform(X)["a"]
    peer = LinearSVC(C=1 / (2 * n * 1e-3), loss="hinge", dual=True, fit_intercept=False, tol=1e-9, max_iter=10**6)
    peer.fit(Phi, LABELS.astype(str))
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(Phi), atol=1e-4)


@pytest.mark.parametrize(
    ("penalties", "weights", "vectors"),  # every two of them together
    [
        ("norms", "uniform", "ovr"),
        ("norms", "learned", "simplex"),
        ("agreement", "uniform", "simplex"),
        ("agreement", "learned", "ovr"),
    ],
)
def test_features_that_do_not_fit_give_the_same(monkeypatch, vectors, weights, penalties):
    X = Views({"a": A, "b": B}, mask=MASK)
    params = {"n_components": 12, "class_vectors": vectors, "view_weights": weights, "tol": 1e-7, "random_state": 0}
    model = cs.CoRegularizedSVC(max_iter=300, **params, **PENALTIES[penalties])
    kept = model.fit(X, SOME).decision_function(X)
    monkeypatch.setattr(coregularized_svm, "available_memory", lambda: 1000)
    again = model.fit(X, SOME).decision_function(X)
    np.testing.assert_allclose(again, kept, atol=1e-3 if weights == "learned" else 1e-4)


@pytest.mark.parametrize("vectors", ["ovr", "simplex"])
def test_blocks_of_rows_give_the_same(vectors):
    X = Views({"a": A, "b": B}, mask=MASK)
    model = cs.CoRegularizedSVC(n_components=12, class_vectors=vectors, tol=1e-9, max_iter=300, random_state=0)
    model.set_params(agreement_penalty=1e-3, class_weight="balanced")
    memory = model.fit(X, SOME, WEIGHTS).decision_function(X)
    blocks = RowBlocks.of(X, SOME, WEIGHTS, size=40)
    model.fit(blocks)
    assert list(model.classes_) == ["ant", "bee", "cat"]
    np.testing.assert_allclose(model.decision_function(X), memory, atol=1e-6)


def test_two_classes_one_class_and_one_sample():
    X = Views({"a": A, "b": B})
    two = cs.CoRegularizedSVC(n_components=10, random_state=0, tol=1e-7).fit(X, np.where(CODES == 0, "no", "yes"))
    assert two.decision_function(X).shape == (n,)
    assert two.score(X, np.where(CODES == 0, "no", "yes")) > 0.7
    simplex = cs.CoRegularizedSVC(n_components=10, random_state=0, class_vectors="simplex", tol=1e-7)
    simplex.fit(X, np.where(CODES == 0, "no", "yes"))
    np.testing.assert_allclose(simplex.decision_function(X), two.decision_function(X), atol=1e-6)
    single = np.array(["no"] + [None] * (n - 1), dtype=object)
    single[1] = "yes"
    few = cs.CoRegularizedSVC(n_components=10, agreement_penalty=1e-3, random_state=0).fit(X, single)
    assert few.certificate().gap <= 1e-4 * few.certificate().objective


def test_no_matrix_over_pairs_of_samples_is_made():
    """4,000 labeled samples: their kernel has 128 MB, their features 1.9 MB."""
    rng = np.random.default_rng(0)
    X, y = Views(a=rng.normal(size=(4000, 5)), b=rng.normal(size=(4000, 5))), rng.integers(3, size=4000)
    model = cs.CoRegularizedSVC(n_components=30, random_state=0)
    model.fit(X[:100], y[:100])  # loops are compiled
    tracemalloc.start()
    for vectors in ("ovr", "simplex"):
        model.set_params(class_vectors=vectors).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
