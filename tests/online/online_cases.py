"""Streams and estimators that the tests of online estimators share."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import consilience as cs
import reference
from consilience import Views
from consilience.kernels import RBF


def stream(seed, n=70, widths=(4, 4), n_classes=2, whole=False, missing=False):
    """A noisy stream of views; of small integers, so that scores meet zero, or of real numbers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    views = {}
    for k, width in enumerate(widths):
        centers = rng.normal(size=(n_classes, width))
        A = centers[y] + rng.normal(size=(n, width))
        A = np.round(A) if whole else A
        if missing and k:
            A[rng.random(n) < 0.3] = np.nan
        views[f"v{k}"] = A
    return Views(views), y


def concatenated(X, bias=False):
    rows = np.hstack([np.nan_to_num(X[name]) for name in X.names])
    return np.hstack([np.ones((len(rows), 1)), rows]) if bias else rows


def with_ones(X):
    """Views with a first column of ones; zero where the view is missing."""
    return Views({name: np.hstack([X.present(name)[:, None], np.nan_to_num(X[name])]) for name in X.names})


def matrices(X):
    width = max(X[name].shape[1] for name in X.names)
    out = np.zeros((len(X), width, len(X.names)))
    for k, name in enumerate(X.names):
        out[:, : X[name].shape[1], k] = np.nan_to_num(X[name])
    return out


def block_matrices(X):
    """The orthogonal form: each view in rows of its own."""
    widths = [X[name].shape[1] for name in X.names]
    out, at = np.zeros((len(X), sum(widths), len(widths))), 0
    for k, name in enumerate(X.names):
        out[:, at : at + widths[k], k] = np.nan_to_num(X[name])
        at += widths[k]
    return out


def features(K):
    """Vectors with this Gram matrix."""
    values, Q = np.linalg.eigh(K)
    return Q * np.sqrt(np.maximum(values, 0))


def grams(X, kernel):
    """Gram matrices by view, 0 where it is missing."""
    values = [np.zeros((len(X), len(X))) for _ in X.names]
    for name, K in zip(X.names, values, strict=True):
        there = X.present(name)
        K[np.ix_(there, there)] = kernel(X[name][there])
    return values


def kernel_blocks(X, kernel):
    """The orthogonal form of kernels: the features of each view in rows of their own, zeros where it is missing."""
    return block_matrices(Views({name: features(K) for name, K in zip(X.names, grams(X, kernel), strict=True)}))


def identity(v):
    return v


def fixed(step):
    return lambda margin, size: step


def aggressive(C=np.inf, ridge=0.0, curvature=1.0):
    return lambda m, size: 0.0 if size == 0 else min(C, max(0, 1 - m) / (curvature * size + ridge))


def as_sparse(X):
    return Views({name: sp.csr_array(np.nan_to_num(X[name])) for name in X.names}, mask=X.mask)


def two_signs(scores):
    return scores[:, 0] if scores.shape[1] == 1 else scores


NONE = {"fit_intercept": False}
TWINS = {
    "perceptron": (cs.OnlinePerceptron(), lambda X: concatenated(X, bias=True), identity, 0.0, fixed(1.0)),
    "margin and step": (
        cs.OnlinePerceptron(margin=0.7, eta0=0.25, **NONE), concatenated, identity, 0.7, fixed(0.25),
    ),
    "3-norm": (cs.OnlinePerceptron(3, **NONE), concatenated, reference.p_norm_link(3), 0.0, fixed(1.0)),
    "5.5-norm": (
        cs.OnlinePerceptron(5.5, margin=0.1), lambda X: concatenated(X, True), reference.p_norm_link(5.5), 0.1,
        fixed(1.0),
    ),
    "PA": (cs.PassiveAggressive(variant="PA", **NONE), concatenated, identity, 1.0, aggressive()),
    "PA-I": (cs.PassiveAggressive(C=0.1, **NONE), concatenated, identity, 1.0, aggressive(C=0.1)),
    "PA-II": (
        cs.PassiveAggressive(variant="PA-II", C=0.5, fit_intercept=True), lambda X: concatenated(X, True), identity,
        1.0, aggressive(ridge=1.0),
    ),
    "kernel perceptron": (
        cs.KernelPerceptron(RBF(0.2)), lambda X: features(sum(grams(X, RBF(0.2)))), identity, 0.0, fixed(1.0),
    ),
    "kernel PA-I": (
        cs.PassiveAggressive(RBF(0.2), C=0.3, **NONE), lambda X: features(sum(grams(X, RBF(0.2)))), identity, 1.0,
        aggressive(0.3),
    ),
    "matrix 2": (cs.MatrixPerceptron(p=2, **NONE), matrices, reference.matrix_link(2), 0.0, fixed(1.0)),
    "matrix 1.5": (
        cs.MatrixPerceptron(p=1.5, margin=0.3, **NONE), matrices, reference.matrix_link(1.5), 0.3, fixed(1.0),
    ),
    "matrix 7": (cs.MatrixPerceptron(p=7, eta0=0.5, **NONE), matrices, reference.matrix_link(7), 0.0, fixed(0.5)),
    "orthogonal 2": (cs.OrthogonalPerceptron(p=2, **NONE), block_matrices, reference.matrix_link(2), 0.0, fixed(1.0)),
    "orthogonal 1.3": (
        cs.OrthogonalPerceptron(p=1.3, margin=0.2, **NONE), block_matrices, reference.matrix_link(1.3), 0.2, fixed(1.0),
    ),
    "orthogonal, prior norms": (
        cs.OrthogonalPerceptron(p=3, prior_norms={"v0": 5.0, "v1": 0.5}, **NONE), block_matrices,
        reference.matrix_link(3, [5.0, 0.5]), 0.0, fixed(1.0),
    ),
    "orthogonal, kernels": (
        cs.OrthogonalPerceptron(RBF(0.2), p=2.5, **NONE), lambda X: kernel_blocks(X, RBF(0.2)),
        reference.matrix_link(2.5), 0.0, fixed(1.0),
    ),
    "matrix, intercept": (
        cs.MatrixPerceptron(p=3), lambda X: matrices(with_ones(X)), reference.matrix_link(3), 0.0, fixed(1.0),
    ),
    "orthogonal, intercept": (
        cs.OrthogonalPerceptron(p=2), lambda X: block_matrices(with_ones(X)), reference.matrix_link(2), 0.0, fixed(1.0),
    ),
    "orthogonal, kernels, intercept": (
        cs.OrthogonalPerceptron(RBF(0.2), p=2.5, fit_intercept=True),
        lambda X: kernel_blocks(X, lambda A: RBF(0.2)(A) + 1),
        reference.matrix_link(2.5), 0.0, fixed(1.0),
    ),
}  # fmt: skip


ALL = {
    **{name: case[0] for name, case in TWINS.items()},
    "projectron": cs.Projectron(RBF(0.2), threshold=0.3),
    "cues": cs.MultiCueClassifier(RBF(0.2), threshold=0.3),
    "cues of perceptrons": cs.MultiCueClassifier(estimator=cs.OnlinePerceptron()),
    "budget": cs.KernelPerceptron(RBF(0.2), budget=15),
    "budget of PA": cs.PassiveAggressive(RBF(0.2), budget=15),
    "budget of projectron": cs.Projectron(RBF(0.2), threshold=0.05, budget=5),
    "budget of matrices": cs.MatrixPerceptron(RBF(0.2), budget=9),
    "budget of learned prior norms": cs.OrthogonalPerceptron(RBF(0.2), prior_norms="learned", budget=9),
    "matrix by kernels": cs.MatrixPerceptron(RBF(0.2)),
    "aggressive": cs.OrthogonalPerceptron(variant="passive-aggressive", C=0.1),
    "learned prior norms": cs.OrthogonalPerceptron(prior_norms="learned", p=3),
    "learned prior norms, kernels": cs.OrthogonalPerceptron(RBF(0.2), prior_norms="learned"),
}


def same_state(one, other, X, atol=1e-8):
    for count in ("n_mistakes_", "n_updates_", "n_samples_seen_"):
        assert getattr(one, count) == getattr(other, count)
    np.testing.assert_array_equal(one.error_curve_, other.error_curve_)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    if hasattr(one, "support_"):
        assert one.dual_coef_.shape[-1] == len(one.support_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=atol)


def in_chunks(estimator, X, y, step, classes=(0, 1)):
    """The estimator after chunks of `step` samples; every second one is without the views that none of them has."""
    model = clone(estimator)
    for number, start in enumerate(range(0, len(y), step)):
        part = X[start : start + step]
        shown = [name for name in part.names if number % 2 or part.present(name).any()]
        model.partial_fit(part[shown], y[start : start + step], classes=None if number else classes)
    return model


def one_by_one(estimator, X, y, classes=None):
    """The estimator after single samples, in between asked for predictions; announced classes need a chunk first."""
    model = clone(estimator)
    rows = [{name: X[name][i] for name in X.names if X.present(name)[i]} for i in range(len(y))]
    assert model.predict_one(rows[0]) is None
    for i, row in enumerate(rows):
        if i == 0 and classes is not None:
            model.partial_fit(X[:1][list(row)], y[:1], classes=classes)
        else:
            model.learn_one(row, y[i])
        if i % 9 == 8:
            assert model.predict_one(row) == model.predict(X[[i]][list(row)])[0]
    return model


def late_stream(seed, n=80, widths=(2, 4)):
    """Two views, the second from the middle on; and a row in which it is alone."""
    own = np.random.default_rng(seed)
    A, B = (own.normal(size=(n, width)) for width in widths)
    mask = {"a": np.arange(n) != n - 5, "b": np.arange(n) >= n // 2}
    return Views({"a": A, "b": B}, mask=mask), (A[:, 0] + 0.5 * own.normal(size=n) > 0).astype(int)


def binary_patterns(seed, n=60, n_classes=4):
    """Few rows that come again and again, so that scores and rivals tie."""
    rng = np.random.default_rng(seed)
    patterns = 0.1 * (rng.random((7, 5)) < 0.5)
    return Views(v0=patterns[rng.integers(7, size=n)]), rng.integers(n_classes, size=n)
