"""Gram matrices in single precision: rounding leaves negative eigenvalues, which do not make a matrix indefinite."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

import consilience as cs
from consilience.kernels import FromCallable, Precomputed, center, normalize
from consilience.solvers import linalg

N, TRAIN = 300, 200
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, 3)).astype(np.float32)  # of rank 3, so that the Gram matrix has 297 eigenvalues of 0
B = (A @ RNG.normal(size=(3, 3))).astype(np.float32)
TARGETS = A @ RNG.normal(size=(3, 2)) + 0.1 * RNG.normal(size=(N, 2))
CLASSES = np.array(["low", "middle", "high"])[np.digitize(A[:, 0] + 0.3 * RNG.normal(size=N), [-0.6, 0.6])]
TIGHT = {"tol": 1e-9}
METRICS = ("learned", "block_sparse", "covariance", "diagonal")
ESTIMATORS = {
    "ridge": cs.CoRegularizedRidge(),
    "agreement": cs.CoRegularizedRidge(agreement_penalty=1e-3),
    "graph": cs.CoRegularizedRidge(agreement_penalty=1e-3, graph_penalty=1e-6, graph="knn"),
    "learned": cs.CoRegularizedRidge(view_weights="learned", random_state=0),
    "landmarks": cs.CoRegularizedRidge(n_components=50, random_state=0),
    "ridge classes": cs.CoRegularizedRidgeClassifier(),
    "ridge cv": cs.CoRegularizedRidgeCV(alphas=(1e-3, 1e-2), agreement_penalties=(0.0, 1e-3)),
    "classes cv": cs.CoRegularizedRidgeClassifierCV(alphas=(1e-3, 1e-2)),
    "svc": cs.CoRegularizedSVC(**TIGHT),
    "svc agreement": cs.CoRegularizedSVC(agreement_penalty=1e-3, **TIGHT),
    "svc simplex": cs.CoRegularizedSVC(class_vectors="simplex", **TIGHT),
    **{f"metric {kind}": cs.ViewMetricRidge(metric=kind) for kind in METRICS},
    "metric cv": cs.ViewMetricRidgeCV(),
    "metric classes": cs.ViewMetricRidgeClassifier(),
    "metric classes cv": cs.ViewMetricRidgeClassifierCV(),
    "metric landmarks": cs.ViewMetricRidge(n_components=50, random_state=0),
    "kernels": cs.MultipleKernelRidge(),
    "kernels classes": cs.MultipleKernelRidgeClassifier(p=1),
    "outputs": cs.OutputKernelRidge(),
    "outputs classes": cs.OutputKernelRidgeClassifier(),
    "vector": cs.VectorValuedRegressor(),
    "vector covariance": cs.VectorValuedRegressor(view_kernel="covariance"),
    "vector classes": cs.VectorValuedClassifier(**TIGHT),
    "margin": cs.MaxMarginClassifier(**TIGHT),
    "margin product": cs.MaxMarginClassifier(combine="product", **TIGHT),
    "margin landmarks": cs.MaxMarginClassifier(n_components=50, random_state=0, **TIGHT),
    "consensus": cs.ConsensusRegressor(),
    "consensus classes": cs.ConsensusClassifier(),
}


def in_precision(form, dtype):
    """Return views and their kernel: the same Gram matrices, rounded to a type."""
    grams = {name: (X.astype(np.float64) @ X.T.astype(np.float64)).astype(dtype) for name, X in (("a", A), ("b", B))}
    if form == "callable":
        return cs.Views(a=A.astype(np.float64), b=B.astype(np.float64)), FromCallable(
            lambda X, Y: (X @ Y.T).astype(dtype)
        )
    kernel = {"normalized": normalize(Precomputed()), "centered": center(Precomputed())}.get(form, Precomputed())
    scale = dtype(1e4 if form == "large" else 1)
    return cs.Views({name: scale * K for name, K in grams.items()}, precomputed=True), kernel


def outputs(model, form, dtype):
    X, kernel = in_precision(form, dtype)
    y = CLASSES if is_classifier(model) else TARGETS
    model = model.set_params(kernel=kernel).fit(X[:TRAIN], y[:TRAIN])
    return model.decision_function(X[TRAIN:]) if is_classifier(model) else model.predict(X[TRAIN:])


@pytest.mark.parametrize("form", ["precomputed", "normalized", "centered", "callable"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_gram_matrix_of_low_rank_in_single_precision_gives_the_answer_of_double_precision(name, form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the matrices are positive semi-definite, so no warning is true
        double, single = (outputs(ESTIMATORS[name], form, dtype) for dtype in (np.float64, np.float32))
    assert np.abs(double - single).max() <= 1e-3 * np.abs(double).max()


@pytest.mark.parametrize("name", ["agreement", "ridge cv", "svc agreement", "margin", "consensus", "vector covariance"])
def test_large_values_are_not_refused(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # penalties are small compared with these values
        assert np.isfinite(outputs(ESTIMATORS[name], "large", np.float32)).all()


@pytest.mark.parametrize("name", ["ridge", "svc", "metric learned", "kernels", "vector", "margin", "consensus"])
def test_a_matrix_that_is_not_positive_is_refused_in_either_precision(name):
    K = A @ A.T - 0.1 * (B @ B.T).mean() * np.eye(N, dtype=np.float32) - 5
    y = CLASSES if is_classifier(ESTIMATORS[name]) else TARGETS
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            ESTIMATORS[name].set_params(kernel="precomputed").fit(cs.Views(a=K.astype(dtype), precomputed=True), y)


def test_missing_views_and_rows_of_a_shared_matrix():
    grams = {name: X @ X.T for name, X in (("a", A.astype(np.float64)), ("b", B.astype(np.float64)))}
    mask = np.ones((N, 2), dtype=bool)
    mask[::5, 1] = False
    both = []
    for dtype in (np.float64, np.float32):
        X = cs.Views({name: K.astype(dtype) for name, K in grams.items()}, precomputed=True, mask=mask)
        rows = np.random.default_rng(1).permutation(N)
        model = cs.CoRegularizedRidge("precomputed", agreement_penalty=1e-3).fit(X[rows[:150]], TARGETS[rows[:150]])
        both.append(model.predict(X[rows[150:]]))
    np.testing.assert_allclose(both[1], both[0], atol=1e-3 * np.abs(both[0]).max())


def test_the_matrix_given_is_not_changed():
    K = (A @ A.T).astype(np.float32)
    before = K.copy()
    cs.CoRegularizedRidge("precomputed").fit(cs.Views(a=K, precomputed=True), TARGETS)
    assert np.array_equal(K, before)


# -- the linear algebra
def test_without_rounding_has_the_rank_of_the_data_and_differs_by_rounding():
    K = (A @ A.T).astype(np.float32)
    P = linalg.without_rounding(K)
    assert P.dtype == np.float64
    assert np.linalg.matrix_rank(P) == 3
    assert np.abs(P - K).max() <= 1e-6 * np.abs(K).max()
    assert np.linalg.eigvalsh(P)[0] >= -1e-12 * np.abs(P).max()
    assert np.linalg.eigvalsh(K.astype(np.float64))[0] < -1e-9 * np.abs(K).max()  # what it mends


def test_without_rounding_keeps_what_is_positive_and_what_is_not_rounding():
    full = np.float32(np.eye(5) + 0.1)
    assert linalg.without_rounding(full) is full
    indefinite = np.float32(np.diag([1.0, 1.0, -0.01]))
    assert linalg.without_rounding(indefinite) is indefinite


@pytest.mark.parametrize("n", [50, 400, 1500])
def test_root_of_smooth_and_of_low_rank_matrices_in_single_precision(n):
    x = np.linspace(0, 1, n, dtype=np.float32)[:, None]
    for K in (np.exp(-((x - x.T) ** 2)), x @ x.T + 1):
        G, _ = linalg.root(np.asfortranarray(K))
        assert np.abs(G @ G.T - K).max() <= 8 * n * np.finfo(np.float32).eps * K.max()
