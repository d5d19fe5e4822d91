"""Maximum margin regression and the vector perceptron against twins, special cases and other programs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

import consilience as cs
import reference
from consilience.batch import _margin
from consilience.kernels import RBF, Laplacian, Linear, Polynomial, Spectrum, Subsequence, SubsetTree, normalize
from consilience.kernels.joint import JointKernel
from consilience.solvers import margin as margin_solver
from consilience.solvers.certificates import vector_perceptron_bounds
from consilience.solvers.margin import margin_dual
from consilience.solvers.margin_bias import answers_alone, with_bias
from consilience.solvers.margin_features import LabelRows, margin_features

LABELS = ("simplex", "indicator", "mean", "median")


def blobs(n=90, T=4, spread=4.0, columns=3, seed=0):
    X, y = make_blobs(n, columns, centers=T, cluster_std=spread, random_state=seed)
    return X / 5, y


def rows_of(K):
    """What solvers ask for, from a whole matrix."""

    def against(columns):
        def fill(which, out):
            out[...] = K[np.ix_(which, columns)]
            return out

        return fill

    return against


def two_values(T):
    return np.full((T, T), -1 / (T - 1)) + np.eye(T) * (1 + 1 / (T - 1))


def label_matrices(T, seed=0):
    Y = np.random.default_rng(seed).normal(size=(T, 2))
    return {"simplex": two_values(T), "indicator": np.eye(T), "vectors": Y @ Y.T}


# -- the solvers
@pytest.mark.parametrize("T", [2, 3, 25])
@pytest.mark.parametrize("kind", ["simplex", "indicator", "vectors"])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_the_dual_is_that_of_the_twin(T, kind, C):
    X, y = blobs(T=T, n=120)
    K, A = RBF(0.5)(X), label_matrices(T)[kind]
    upper = C * np.random.default_rng(0).uniform(0.5, 2, len(y))
    Q = K * A[np.ix_(y, y)]
    found = margin_dual(rows_of(K), A, y, upper, np.ones(len(y)), tol=1e-9, max_iter=10_000)
    alpha, g = found.x
    expected = reference.margin_dual(Q, upper, np.ones(len(y)))
    optimum = reference.margin_objective(Q, expected, upper)
    assert found.status == "converged"
    assert found.gap <= 1e-9 * found.objective
    np.testing.assert_allclose(found.objective, reference.margin_objective(Q, alpha, upper), rtol=1e-9)
    np.testing.assert_allclose(found.objective, optimum, rtol=1e-7)
    np.testing.assert_allclose(g, Q @ alpha - 1, atol=1e-8)
    assert found.objective - optimum <= found.gap + 1e-9 * optimum


@pytest.mark.parametrize("kind", ["simplex", "indicator", "vectors"])
def test_the_dual_is_that_of_a_conic_solver(cp, kind):
    X, y = blobs(n=60, T=5)
    A = label_matrices(5)[kind]
    K = RBF(0.3)(X)
    Q = K * A[np.ix_(y, y)]
    root = np.linalg.cholesky(Q + 1e-11 * np.eye(60))
    alpha = cp.Variable(60)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root.T @ alpha) - cp.sum(alpha)), [alpha >= 0, alpha <= 2])
    program.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11)
    found = margin_dual(rows_of(K), A, y, np.full(60, 2.0), np.ones(60), tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(found.objective - found.gap, -program.value, rtol=1e-6)


@pytest.mark.parametrize("T", [3, 25, 60])
@pytest.mark.parametrize("classes_apart", [True, False])
def test_class_by_class_is_the_same_as_all_at_once(T, classes_apart, monkeypatch):
    X, y = blobs(n=400, T=T, spread=6.0)
    K = RBF(0.5)(X)
    A = np.eye(T) if classes_apart else two_values(T)
    answers = []
    for many in (2, 10**6):
        monkeypatch.setattr(margin_solver, "MANY", many)
        monkeypatch.setattr(
            margin_solver, "_class_by_class", margin_solver._class_by_class if many == 2 else lambda _: False
        )
        answers.append(margin_dual(rows_of(K), A, y, np.ones(400), np.ones(400), tol=1e-8, max_iter=10_000))
    assert [found.status for found in answers] == ["converged", "converged"]
    np.testing.assert_allclose(answers[0].objective, answers[1].objective, rtol=2e-8)
    np.testing.assert_allclose(answers[0].x[0], answers[1].x[0], atol=1e-3)


@pytest.mark.parametrize("memory", [1e4, 1e5, 1e6])
def test_a_small_cache_changes_nothing(memory, monkeypatch):
    X, y = blobs(n=600, T=3, spread=6.0)
    K = RBF(0.5)(X)
    made = []

    def against(columns):
        fill = rows_of(K)(columns)

        def counted(which, out):
            made.append(out.size)
            return fill(which, out)

        return counted

    how = {"tol": 1e-7, "max_iter": 10_000}
    whole = margin_dual(rows_of(K), two_values(3), y, np.ones(600), np.ones(600), **how)
    monkeypatch.setattr(margin_solver, "BLOCK", 16)
    small = margin_dual(against, two_values(3), y, np.ones(600), np.ones(600), memory=memory, **how)
    assert small.status == "converged"
    np.testing.assert_allclose(small.objective, whole.objective, rtol=2e-7)
    assert max(made) <= 600 * 16


def test_rows_are_made_for_samples_that_become_active_only():
    X, y = blobs(n=1500, T=3, spread=0.5)
    K, made = RBF(0.5)(X), set()

    def against(columns):
        fill = rows_of(K)(columns)

        def counted(which, out):
            made.update(which.tolist())
            return fill(which, out)

        return counted

    found = margin_dual(against, two_values(3), y, np.ones(1500), np.ones(1500), tol=1e-3, max_iter=1000)
    assert found.status == "converged"
    assert len(made) < 300


def test_samples_at_their_bounds_are_left_out_for_a_while(monkeypatch):
    left = []
    leave = margin_solver._Problem.leave
    monkeypatch.setattr(
        margin_solver._Problem, "leave", lambda self, rest: (left.append(rest.sum()), leave(self, rest))[1]
    )
    X, y = blobs(n=1000, T=3, spread=1.0)
    K = RBF(0.5)(X)
    found = margin_dual(
        rows_of(K), two_values(3), y, np.ones(1000), np.ones(1000), tol=1e-7, max_iter=1000, memory=8 * 1000 * 200
    )
    alpha = found.x[0]
    Q = K * two_values(3)[np.ix_(y, y)]
    assert left
    assert found.status == "converged"
    np.testing.assert_allclose(found.x[1], Q @ alpha - 1, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_warm_starts_and_single_precision(dtype):
    X, y = blobs(n=300, T=4)
    K = RBF(0.5)(X)
    Q = K * two_values(4)[np.ix_(y, y)]
    one = np.ones(300)
    cold = margin_dual(rows_of(K), two_values(4), y, 2 * one, one, tol=1e-5, max_iter=1000, dtype=dtype)
    first = margin_dual(rows_of(K), two_values(4), y, one, one, tol=1e-5, max_iter=1000, dtype=dtype)
    warm = margin_dual(rows_of(K), two_values(4), y, 2 * one, one, tol=1e-5, max_iter=1000, dtype=dtype, x0=first.x[0])
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=3e-5)
    np.testing.assert_allclose(warm.objective, reference.margin_objective(Q, warm.x[0], 2 * one), rtol=1e-5)
    again = margin_dual(rows_of(K), two_values(4), y, one, one, tol=1e-5, max_iter=1000, dtype=dtype, x0=first.x[0])
    assert again.n_iter <= 1


def test_newton_steps_make_nearly_singular_kernels_affordable():
    X, y = load_iris(return_X_y=True)
    K = RBF(1e-3)(X)
    found = margin_dual(rows_of(K), two_values(3), y, np.full(150, 100.0), np.ones(150), tol=1e-6, max_iter=2000)
    assert found.status == "converged"


def test_passes_run_out_with_the_gap_reached():
    X, y = blobs(n=200)
    found = margin_dual(rows_of(RBF(0.5)(X)), two_values(4), y, np.ones(200), np.ones(200), tol=1e-12, max_iter=3)
    assert found.status == "max_iter"
    assert found.gap > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["simplex", "indicator", "vectors"])
def test_features_give_the_answer_of_their_kernel(sparse, kind):
    X, y = blobs(n=80, T=4)
    Phi = np.column_stack([X, X**2, np.zeros(80)])
    A = label_matrices(4)[kind]
    labels = {
        "simplex": LabelRows.of_two_values(1.0, -1 / 3, 4),
        "indicator": LabelRows.of_two_values(1.0, 0.0, 4),
        "vectors": LabelRows.of_vectors(np.random.default_rng(0).normal(size=(4, 2))),
    }[kind]
    upper = np.random.default_rng(1).uniform(0.5, 2, 80)
    given = sp.csr_array(Phi) if sparse else Phi
    found = margin_features(given, labels, y, upper, np.ones(80), tol=1e-9, max_iter=20_000)
    alpha, g, W = found.x
    Q = (Phi @ Phi.T) * A[np.ix_(y, y)]
    kernel = margin_dual(rows_of(Phi @ Phi.T), A, y, upper, np.ones(80), tol=1e-9, max_iter=10_000)
    assert found.status == "converged"
    np.testing.assert_allclose(found.objective, kernel.objective, rtol=1e-8)
    np.testing.assert_allclose(g, Q @ alpha - 1, atol=1e-8)
    np.testing.assert_allclose(labels.scores(W) @ Phi.T, A[:, y] @ (alpha[:, None] * (Phi @ Phi.T)), atol=1e-8)
    warm = margin_features(given, labels, y, upper, np.ones(80), tol=1e-8, max_iter=100, x0=alpha)
    assert warm.n_iter <= 4


# -- the bias
@pytest.mark.parametrize("T", [2, 3, 5])
def test_a_bias_is_that_of_the_conic_solver(cp, T):
    X, y = blobs(n=60, T=T)
    Y = cs.simplex_vectors(T)
    W, b, slack = cp.Variable((Y.shape[1], 3)), cp.Variable(Y.shape[1]), cp.Variable(60)
    margins = cp.sum(cp.multiply(Y[y], X @ W.T + cp.reshape(b, (1, Y.shape[1]), order="C")), axis=1)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + 2 * cp.sum(slack)), [margins >= 1 - slack, slack >= 0])
    program.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11)
    model = cs.MaxMarginClassifier("linear", C=2.0, fit_intercept=True, tol=1e-7).fit(X, y)
    proof = model.certificate()
    np.testing.assert_allclose(proof.objective, program.value, rtol=1e-6)
    assert proof.objective - program.value <= proof.gap + 1e-7 * program.value
    np.testing.assert_allclose(model.intercept_, Y @ b.value, atol=1e-2)
    balance = np.bincount(y[model.support_], model.dual_coef_, T) @ Y
    assert np.abs(balance).max() < 1e-3 * model.dual_coef_.sum()


def test_a_bias_with_two_classes_is_that_of_the_support_vector_machine():
    X, y = blobs(n=100, T=2)
    model = cs.MaxMarginClassifier(RBF(0.5), C=3.0, fit_intercept=True, tol=1e-8).fit(X, y)
    other = SVC(C=3.0, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose((model.intercept_[1] - model.intercept_[0]) / 2, other.intercept_[0], atol=1e-3)


@pytest.mark.parametrize("labels", ["indicator", np.array([[1.0, 0.1], [0.9, 0.2], [1.0, -0.3], [0.2, 1.0]])])
def test_a_bias_that_would_answer_alone_is_refused(labels):
    X, y = blobs()
    with pytest.raises(ValueError, match=r"the bias alone would meet every margin .*such as 'simplex'"):
        cs.MaxMarginClassifier(labels=labels, fit_intercept=True).fit(X, y)


def test_when_a_bias_answers_alone():
    assert answers_alone(np.eye(3))
    assert answers_alone(np.ones((1, 1)))
    assert not answers_alone(cs.simplex_vectors(4))
    assert not answers_alone(np.array([[1.0], [-2.0]]))


def test_the_gap_of_a_bias_counts_what_does_not_balance():
    """A solver that ignores the multiplier ends far from balance, and the gap says so."""
    X, y = blobs(n=60, T=3)
    Y, K = cs.simplex_vectors(3), RBF(0.5)(X)
    Q = K * (Y @ Y.T)[np.ix_(y, y)]

    def deaf(target, rho, tol, x0):
        return margin_dual(rows_of(K), Y @ Y.T, y, np.ones(60), np.ones(60), tol=1e-9, max_iter=1000)

    heard = with_bias(
        lambda target, rho, tol, x0: margin_dual(
            rows_of(K + rho), Y @ Y.T, y, np.ones(60), target, tol=tol, max_iter=1000, x0=x0
        ),
        Y, y, np.ones(60), Q.diagonal(), tol=1e-8,
    )  # fmt: skip
    ignored = with_bias(deaf, Y, y, np.ones(60), Q.diagonal(), tol=1e-8, max_iter=3)
    assert heard.status == "converged"
    assert ignored.status == "max_iter"
    assert ignored.objective - heard.objective <= ignored.gap + 1e-8
    assert ignored.gap > 1e-3 * ignored.objective


# -- the classifier
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_the_gap_is_that_of_the_coefficients(labels, tol):
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    model = cs.MaxMarginClassifier(RBF(1e-3), C=2.0, labels=labels, tol=tol).fit(X, y)
    proof, A = model.certificate(), model.label_vectors_ @ model.label_vectors_.T
    alpha = np.zeros(500)
    alpha[model.support_] = model.dual_coef_
    Q = RBF(1e-3)(X) * A[np.ix_(y, y)]
    primal, dual = reference.margin_objective(Q, alpha, np.full(500, 2.0)), alpha.sum() - 0.5 * alpha @ Q @ alpha
    assert proof.gap <= tol * proof.objective
    np.testing.assert_allclose(proof.objective, primal, rtol=1e-5 if tol > 1e-4 else 1e-9)
    np.testing.assert_allclose(proof.gap, primal - dual, rtol=0.02, atol=1e-6 * primal if tol > 1e-4 else 1e-9 * primal)
    scores = RBF(1e-3)(X) @ (alpha[:, None] * A[y])
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8)


def test_two_classes_are_the_support_vector_machine_without_a_bias():
    X, y = blobs(n=100, T=2)
    K, sign = RBF(0.5)(X), np.where(y == 1, 1.0, -1.0)
    model = cs.MaxMarginClassifier(RBF(0.5), C=3.0, tol=1e-10).fit(X, y)
    expected = reference.margin_dual(K * np.outer(sign, sign), np.full(100, 3.0), np.ones(100))
    np.testing.assert_allclose(model.decision_function(X), K @ (expected * sign), atol=1e-4)
    # a support vector machine keeps its bias at 0 where the data say nothing of it: each sample once more, turned round
    both = np.vstack([X, -X])
    mirrored = SVC(kernel="linear", C=1.5, tol=1e-9).fit(both, np.concatenate([sign, -sign]))
    linear = cs.MaxMarginClassifier("linear", C=3.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(mirrored.intercept_, 0, atol=1e-6)
    np.testing.assert_allclose(linear.decision_function(X), mirrored.decision_function(X), atol=1e-4)


def test_corners_of_the_hyper_tetrahedron():
    for T in (2, 3, 10, 48):
        codes = cs.simplex_vectors(T)
        np.testing.assert_allclose(codes @ codes.T, two_values(T), atol=1e-12)
        assert codes.shape == (T, T - 1)
    X, y = blobs(T=5)
    vectors = cs.MaxMarginClassifier().fit(X, y).label_vectors_
    np.testing.assert_allclose((vectors @ vectors.T)[0, 1:], -1 / 4, atol=1e-12)


@pytest.mark.parametrize("T", [3, 30])
def test_variables_are_as_many_as_samples_whatever_the_classes(T):
    X, y = blobs(n=120, T=T)
    model = cs.MaxMarginClassifier().fit(X, y)
    assert model.solution_.x.shape == (120,)


def test_indicators_are_one_machine_for_each_class():
    X, y = blobs(T=3)
    model = cs.MaxMarginClassifier(RBF(0.5), C=2.0, labels="indicator", tol=1e-10).fit(X, y)
    for t in range(3):
        own = X[y == t]
        alpha = reference.margin_dual(RBF(0.5)(own), np.full(len(own), 2.0), np.ones(len(own)))
        np.testing.assert_allclose(model.decision_function(X)[:, t], RBF(0.5)(X, own) @ alpha, atol=1e-4)


def test_label_vectors_of_classes():
    X, y = blobs(T=4, columns=5)
    for labels, center in (("mean", np.mean), ("median", np.median)):
        centers = np.array([center(X[y == t], axis=0) for t in range(4)])
        centers -= centers.mean(axis=0)
        centers /= np.linalg.norm(centers, axis=1, keepdims=True)
        np.testing.assert_allclose(cs.MaxMarginClassifier(labels=labels).fit(X, y).label_vectors_, centers)
    names = np.array(["d", "c", "b", "a"])[y]
    given = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0], "d": [0.0, -1.0]}
    by_name = cs.MaxMarginClassifier(labels=given, tol=1e-9).fit(X, names)
    as_rows = cs.MaxMarginClassifier(labels=[given[c] for c in "abcd"], tol=1e-9).fit(X, names)
    np.testing.assert_array_equal(by_name.decision_function(X), as_rows.decision_function(X))
    doubled = cs.MaxMarginClassifier(labels=2 * cs.simplex_vectors(4), C=0.25, tol=1e-10).fit(X, y)
    plain = cs.MaxMarginClassifier(tol=1e-10).fit(X, y)  # labels twice as long are operators half as large
    np.testing.assert_allclose(doubled.certificate().objective, plain.certificate().objective / 4, rtol=1e-6)


def test_weights_are_repetitions_and_scale_C():
    X, y = blobs(n=80)
    twice = np.random.default_rng(0).integers(0, 3, 80)
    repeated = np.repeat(np.arange(80), twice)
    how = {"kernel": RBF(0.5), "tol": 1e-10}
    weighted = cs.MaxMarginClassifier(**how).fit(X, y, sample_weight=twice)
    plain = cs.MaxMarginClassifier(**how).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=1e-4)
    balanced = cs.MaxMarginClassifier(class_weight={0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0}, **how).fit(X, y)
    by_sample = cs.MaxMarginClassifier(**how).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(balanced.decision_function(X), by_sample.decision_function(X), atol=1e-6)


def test_a_warm_start_follows_a_path_of_C():
    X, y = blobs(n=300, T=5)
    warm = cs.MaxMarginClassifier(RBF(0.5), warm_start=True, tol=1e-8)
    for C in (0.1, 1.0, 10.0, 1.0):
        warm.set_params(C=C).fit(X, y)
        cold = cs.MaxMarginClassifier(RBF(0.5), C=C, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(warm.certificate().objective, cold.certificate().objective, rtol=3e-8)
    before = warm.n_iter_
    assert warm.fit(X, y).n_iter_ <= before
    assert warm.n_iter_ <= 2
    warm.fit(X[:50], y[:50])  # another number of samples: a start from nothing
    assert warm.certificate().gap <= 1e-8 * warm.certificate().objective


@pytest.mark.parametrize("how", ["item", "variable"])
def test_normalizing_is_scikit_learns(how):
    X, y = blobs(n=120, columns=6)
    X[0] = 0
    X[:, 2] = 1.0
    scaler = (Normalizer() if how == "item" else StandardScaler()).fit(X[:80])
    ours = cs.MaxMarginClassifier(RBF(0.5), normalize=how, tol=1e-9).fit(X[:80], y[:80])
    theirs = cs.MaxMarginClassifier(RBF(0.5), tol=1e-9).fit(scaler.transform(X[:80]), y[:80])
    expected = theirs.decision_function(scaler.transform(X))
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=1e-8)
    if how == "item":
        sparse = cs.MaxMarginClassifier(RBF(0.5), normalize=how, tol=1e-9).fit(sp.csr_array(X[:80]), y[:80])
        np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), expected, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_kernels_work_on_the_data_themselves(sparse, monkeypatch):
    X, y = blobs(n=150, columns=6)
    given = sp.csr_array(X) if sparse else X
    by_gram = cs.MaxMarginClassifier("linear", C=0.5, tol=1e-9).fit(given, y)
    monkeypatch.setattr(_margin, "FEW", 10)
    by_data = cs.MaxMarginClassifier("linear", C=0.5, tol=1e-9).fit(given, y)
    assert hasattr(by_data, "coef_")
    assert not hasattr(by_gram, "coef_")
    np.testing.assert_allclose(by_data.certificate().objective, by_gram.certificate().objective, rtol=1e-8)
    np.testing.assert_allclose(by_data.decision_function(given), by_gram.decision_function(given), atol=1e-4)
    np.testing.assert_allclose(by_data.decision_function(given), X @ by_data.coef_["view0"], atol=1e-10)


@pytest.mark.parametrize("combine", ["sum", "product", Polynomial(2, 0.5)])
@pytest.mark.parametrize("missing", [False, True])
def test_all_landmarks_are_the_whole_kernel(combine, missing):
    X, y = two_views(missing=missing)
    whole = cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-8).fit(X, y)
    landmarks = cs.MaxMarginClassifier(RBF(0.3), combine=combine, n_components=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(landmarks.certificate().objective, whole.certificate().objective, rtol=1e-6)
    np.testing.assert_allclose(landmarks.decision_function(X), whole.decision_function(X), atol=1e-3)
    few = cs.MaxMarginClassifier(RBF(0.3), combine=combine, n_components=20, random_state=0, tol=1e-6).fit(X, y)
    assert few.score(X, y) > 0.6
    slack = np.maximum(0, 1 - few.decision_function(X)[np.arange(90), y])  # the features of fit are those of prediction
    dual = few.certificate().dual
    assert slack.sum() == pytest.approx(2 * few.certificate().objective - few.dual_coef_.sum(), rel=1e-3)
    assert dual <= few.certificate().objective


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "C", "tol"), [(RBF(1e-3), 20.0, 1e-3), ("linear", 10.0, 1e-6), (RBF(1e-3), 1.0, 1e-6)]
)
def test_few_free_variables_among_many_at_bounds(seed, kernel, C, tol):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 5)) + 0.7 * y[:, None]
    model = cs.MaxMarginClassifier(kernel, C=C, tol=tol).fit(X, y)
    assert model.solution_.status == "converged"


@pytest.mark.parametrize("C", [1.0, 50.0, 1e3, 1e4])
def test_certificates_are_true_whatever_the_precision(C):
    X, y = blobs(n=150, T=3)
    model = cs.MaxMarginClassifier(RBF(0.1), C=C).fit(X, y)
    alpha = np.zeros(150)
    alpha[model.support_] = model.dual_coef_
    Q = RBF(0.1)(X) * two_values(3)[np.ix_(y, y)]
    primal, dual = reference.margin_objective(Q, alpha, np.full(150, C)), alpha.sum() - 0.5 * alpha @ Q @ alpha
    np.testing.assert_allclose(model.certificate().objective, primal, rtol=2e-5)
    assert primal - dual <= model.certificate().gap + 2e-5 * primal


@pytest.mark.parametrize("T", [2, 3, 25])
@pytest.mark.parametrize("C", [1e-4, 0.01, 100.0])
def test_a_bias_is_found_for_any_C(T, C):
    X, y = blobs(n=200, T=T)
    model = cs.MaxMarginClassifier(RBF(0.5), C=C, fit_intercept=True).fit(X, y)
    assert model.solution_.status == "converged"


def test_labels_that_nobody_has_do_not_let_a_bias_pass():
    X, y = blobs(T=3)
    with pytest.raises(ValueError, match="the bias alone would meet every margin"):
        cs.MaxMarginClassifier(fit_intercept=True, labels=[[1.0, 0], [1, 1], [-1, 0]]).fit(
            X, y, sample_weight=(y != 2) * 1.0
        )


def test_constant_columns_are_not_blown_up():
    X, y = blobs(n=60)
    X = np.column_stack([X, np.full(60, 0.1)])
    model = cs.MaxMarginClassifier(RBF(0.5), normalize="variable").fit(X, y)
    moved = X + np.array([0, 0, 0, 1e-9])
    np.testing.assert_allclose(model.decision_function(moved), model.decision_function(X), atol=1e-6)


def test_kernels_that_are_not_finite_are_refused():
    X, y = blobs(n=30)
    with pytest.raises(ValueError, match=r"View 'view0' has values up to .*e\+200; above 1.34e\+148 their squares"):
        cs.MaxMarginClassifier("linear").fit(1e200 * X, y)
    with pytest.raises(ValueError, match=r"View 'view0': .* has values that are NaN or too large"):
        cs.MaxMarginClassifier(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


# -- several views
def two_views(n=90, missing=False, seed=0):
    A, y = blobs(n=n, T=3, seed=seed)
    B = np.random.default_rng(seed).normal(size=(n, 2)) + y[:, None]
    mask = np.ones((n, 2), dtype=bool)
    if missing:
        mask[::5, 0] = False
        mask[1::4, 1] = False
        mask[~mask.any(axis=1), 0] = True
    return cs.Views({"a": A, "b": B}, mask=mask), y


def combined_by_hand(X, combine, missing):
    """The joint kernel from its definition."""
    present = X.mask if X.mask is not None else np.ones((len(X), 2), dtype=bool)
    grams = []
    for v, name in enumerate(X.names):
        K, there = RBF(0.3)(np.nan_to_num(np.asarray(X[name]))), present[:, v]
        if combine == "sum":
            K = K * np.outer(there, there)
        elif missing:  # an absent view is the mean of the present ones in feature space
            M = np.eye(len(K))
            M[~there] = there / there.sum()
            K = M @ (K * np.outer(there, there)) @ M.T
        grams.append(K)
    if combine == "sum":
        scale = 2 / present.sum(axis=1)
        return (grams[0] + grams[1]) * np.outer(scale, scale)
    if combine == "product":
        return grams[0] * grams[1]
    if isinstance(combine, list):
        return 0.5 * grams[0] + 2.0 * grams[0] * grams[1]
    return (grams[0] + grams[1] + 0.5) ** 2


@pytest.mark.parametrize("combine", ["sum", "product", Polynomial(2, 0.5), [("a", 0.5), (("a", "b"), 2.0)]], ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_views_make_one_kernel(combine, missing):
    X, y = two_views(missing=missing)
    K = combined_by_hand(X, combine, missing)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    joint = JointKernel({"a": RBF(0.3), "b": RBF(0.3)}, X, combine)
    np.testing.assert_allclose(joint.cross(X), K, atol=1e-12)
    np.testing.assert_allclose(joint.diagonal(), K.diagonal(), atol=1e-12)
    model = cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-9).fit(X, y)
    alone = cs.MaxMarginClassifier("precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(K), atol=1e-3)
    np.testing.assert_allclose(model.certificate().objective, alone.certificate().objective, rtol=1e-8)


@pytest.mark.parametrize("combine", ["sum", "product"])
def test_views_absent_at_prediction_only(combine):
    X, y = two_views()
    model = cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-8).fit(X, y)
    scores = model.decision_function({"a": X["a"]})
    if combine == "product":
        other = RBF(0.3)(X["b"])
        K = RBF(0.3)(X["a"]) * other.mean(axis=0)
    else:
        K = 2 * RBF(0.3)(X["a"])
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_
    np.testing.assert_allclose(scores, K @ (alpha[:, None] * two_values(3)[y]), atol=1e-8)
    assert (scores.argmax(axis=1) == y).mean() > 0.6


def test_each_views_answer_adds_up():
    X, y = two_views(missing=True)
    for n_components in (None, 30):
        model = cs.MaxMarginClassifier(RBF(0.3), n_components=n_components, random_state=0).fit(X, y)
        parts = model.view_decision_function(X)
        np.testing.assert_array_equal(np.isnan(parts[:, :, 0]), ~X.mask)
        scale = 2 / X.mask.sum(axis=1)
        np.testing.assert_allclose(np.nansum(parts, axis=1) * scale[:, None], model.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="the kernel is not a sum over views"):
        cs.MaxMarginClassifier(combine="product").fit(X, y).view_decision_function(X)


def test_kernels_of_strings_and_trees_make_rows_too():
    words = ["anna", "hanna", "johanna", "otto", "ottokar", "lotto"] * 4
    trees = ["(S (N a) (V b))", "(S (N a) (V c))", "(S (N a))", "(S (V b))", "(S (V c) (N a))", "(S (V b) (N d))"] * 4
    y = np.array(["n", "n", "n", "t", "t", "t"] * 4)
    X = cs.Views(words=words, trees=trees)
    model = cs.MaxMarginClassifier(kernel={"words": normalize(Spectrum(2)), "trees": normalize(SubsetTree())}).fit(X, y)
    assert model.score(X, y) == 1.0
    slow = cs.MaxMarginClassifier(Laplacian(0.5), tol=1e-8).fit(*blobs())
    assert slow.certificate().gap <= 1e-8 * slow.certificate().objective


def test_precomputed_views_pass_through_cross_validation():
    X, y = blobs(n=120)
    K = RBF(0.5)(X)
    plain = cross_val_score(cs.MaxMarginClassifier(RBF(0.5)), X, y, cv=3)
    gram = cross_val_score(cs.MaxMarginClassifier("precomputed"), K, y, cv=3)
    views = cross_val_score(cs.MaxMarginClassifier("precomputed"), cs.Views({"k": K}, precomputed=["k"]), y, cv=3)
    np.testing.assert_allclose(gram, plain)
    np.testing.assert_allclose(views, plain)


# -- outputs of any kind
def test_indicator_vectors_as_outputs_are_the_classifier():
    X, y = blobs()
    how = {"kernel": RBF(0.5), "tol": 1e-9}
    regressor = cs.MaxMarginRegressor(output_kernel="linear", **how).fit(X, np.eye(4)[y])
    classifier = cs.MaxMarginClassifier(labels="indicator", **how).fit(X, y)
    np.testing.assert_array_equal(regressor.predict(X).argmax(axis=1), classifier.predict(X))
    order = np.argsort(-regressor.candidates_.argmax(axis=1))[::-1]
    np.testing.assert_allclose(regressor.candidate_scores(X)[:, order], classifier.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("n_components", [None, 1.0])
def test_scores_of_candidates_are_those_of_the_twin(n_components):
    X, y = blobs(n=60)
    words = np.array(["anna", "hanna", "otto", "ottokar"])[y]
    k_y = normalize(Spectrum(2))
    model = cs.MaxMarginRegressor(
        RBF(0.5), output_kernel=k_y, candidates=["otto", "johanna", "anna"], n_components=n_components, tol=1e-9
    ).fit(X, words)
    K_y = k_y(words.tolist())
    alpha = reference.margin_dual(K_y * RBF(0.5)(X), np.ones(60), np.ones(60))
    expected = (RBF(0.5)(X) * alpha) @ k_y(words.tolist(), ["otto", "johanna", "anna"])
    np.testing.assert_allclose(model.candidate_scores(X), expected, atol=1e-3)
    ranked = model.rank(X, top=2)
    assert [first for (first, _), _ in ranked] == model.predict(X).tolist()
    assert all(a[1] >= b[1] for a, b in ranked)
    assert model.score(X, model.predict(X)) == 1.0


def test_numbers_are_regressed_through_an_output_kernel():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 1))
    y = np.sin(2 * X[:, 0])
    model = cs.MaxMarginRegressor(RBF(5.0), C=10.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict(X).shape == (400,)
    both = np.column_stack([y, np.cos(2 * X[:, 0])])
    assert cs.MaxMarginRegressor(RBF(5.0), C=10.0).fit(X, both).score(X, both) > 0.95
    grid = np.linspace(-1, 1, 21)
    on_grid = cs.MaxMarginRegressor(RBF(5.0), C=10.0, candidates=grid).fit(X, y)
    assert set(on_grid.predict(X)) <= set(grid)
    assert on_grid.score(X, y) > 0.95


def test_many_different_outputs_go_without_their_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 1))
    y = np.sin(2 * X[:, 0])
    held = cs.MaxMarginRegressor(RBF(5.0), output_kernel=RBF(1.0), tol=1e-8).fit(X, y)
    monkeypatch.setattr(_margin, "HELD", 10)
    monkeypatch.setattr("consilience.batch.max_margin_outputs.HELD", 10)
    rows = cs.MaxMarginRegressor(RBF(5.0), output_kernel=RBF(1.0), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(rows.certificate().objective, held.certificate().objective, rtol=1e-7)
    np.testing.assert_allclose(rows.candidate_scores(X), held.candidate_scores(X), atol=1e-3)
    for candidates, sentence in (
        ([0.5, 0.5], "the same answer twice"),
        ([], "is empty"),
        (["a"], "of different kinds"),
    ):
        with pytest.raises(ValueError, match=sentence):
            cs.MaxMarginRegressor(RBF(5.0), candidates=candidates).fit(X, y)
    with pytest.raises(ValueError, match="There are 150 different outputs"):
        cs.MaxMarginRegressor(RBF(5.0), n_components=10).fit(X, y)


def test_a_matrix_between_outputs_takes_positions():
    X, y = blobs(spread=1.5)
    K_y = np.array([[1, 0.5, 0, 0, 0], [0.5, 1, 0, 0, 0], [0, 0, 1, 0.5, 0], [0, 0, 0.5, 1, 0], [0, 0, 0, 0, 1.0]])
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel=K_y).fit(X, y)
    assert model.candidates_.tolist() == [0, 1, 2, 3, 4]
    assert model.score(X, y) > 0.8
    assert cross_val_score(cs.MaxMarginRegressor(RBF(0.5), output_kernel=K_y), X, y, cv=3).min() > 0.6
    only = cs.MaxMarginRegressor(RBF(0.5), output_kernel=K_y, candidates=[1, 3]).fit(X, y)
    assert set(only.predict(X)) <= {1, 3}
    with pytest.raises(ValueError, match="position of each sample's output in it, 0 to 4; got values from 0 to 9"):
        cs.MaxMarginRegressor(output_kernel=K_y).fit(X, np.where(y == 3, 9, y))
    with pytest.raises(ValueError, match="given as the matrix itself"):
        cs.MaxMarginRegressor(output_kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="square, symmetric and positive semi-definite"):
        cs.MaxMarginRegressor(output_kernel=-np.eye(4)).fit(X, y)


def test_a_bias_for_vector_outputs():
    X, y = blobs(T=3)
    Y = cs.simplex_vectors(3)[y]
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel="linear", fit_intercept=True, tol=1e-8).fit(X, Y)
    classifier = cs.MaxMarginClassifier(RBF(0.5), fit_intercept=True, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.certificate().objective, classifier.certificate().objective, rtol=1e-7)
    np.testing.assert_allclose(np.sort(model.candidate_scores(X)), np.sort(classifier.decision_function(X)), atol=1e-3)
    with pytest.raises(ValueError, match="the bias alone would meet every margin"):
        cs.MaxMarginRegressor(RBF(0.5), fit_intercept=True).fit(X, y)  # a Gaussian kernel makes outputs independent


def test_missing_outputs_are_left_out():
    X, y = blobs()
    words = np.array(["anna", "hanna", "otto", None], dtype=object)[y]
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel=Spectrum(2)).fit(X, words)
    assert set(model.candidates_) == {"anna", "hanna", "otto"}
    some = y != 3
    same = cs.MaxMarginRegressor(model.kernels_["view0"], output_kernel=Spectrum(2)).fit(X[some], words[some])
    np.testing.assert_allclose(model.candidate_scores(X), same.candidate_scores(X), atol=1e-6)
    with pytest.raises(ValueError, match="y has no target at all"):
        cs.MaxMarginRegressor(output_kernel=Spectrum(2)).fit(X[:3], [None, None, None])


# -- what users do
def test_probabilities_come_from_scikit_learns_calibration():
    X, y = load_digits(return_X_y=True)
    model = CalibratedClassifierCV(cs.MaxMarginClassifier(C=10.0), cv=3).fit(X[:600], y[:600])
    shares = model.predict_proba(X[600:900])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares.argmax(axis=1) == y[600:900]).mean() > 0.85


def test_searching_over_kernels_and_labels():
    X, y = blobs(n=120, spread=1.5)
    search = GridSearchCV(
        cs.MaxMarginClassifier(),
        {"kernel__gamma": [0.1, 1.0], "labels": ["simplex", "indicator"], "C": [1.0, 10.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.7


def test_what_runs_out_is_said():
    X, y = blobs(n=200)
    with pytest.warns(ConvergenceWarning, match="MaxMarginClassifier stopped after 2 iterations with a gap of"):
        cs.MaxMarginClassifier(RBF(5.0), tol=1e-9, max_iter=2).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"C": 0}, r"`C` must be a number above 0; got 0"),
        ({"cache_size": -1}, r"`cache_size` must be a number above 0; got -1"),
        (
            {"labels": "corners"},
            r"`labels` is 'simplex', 'indicator', vectors, or in batches 'mean', 'median'; got 'corners'",
        ),
        ({"labels": np.eye(3)}, r"one row per class, 4 in all; got shape \(3, 3\)"),
        ({"labels": {0: [1.0]}}, r"`labels` has no vector for '?1'?, '?2'?, '?3'?"),
        ({"combine": "max"}, r"`combine` is 'sum', 'product', a Polynomial, or a list of views with weights"),
        ({"combine": [("c", 1.0)]}, r"`combine` names 'c'"),
        ({"combine": [("view0", 0.0)]}, r"Weights in `combine` are above 0"),
        ({"combine": [("view0", "a")]}, r"`combine` has pairs of views and a weight"),
        ({"max_iter": 0.5}, r"`max_iter` must be a whole number of at least 1; got 0.5"),
        ({"labels": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, r"`labels` must be vectors of one length"),
        ({"combine": "product", "n_components": 1.5}, r"n_components must be a count of at least 1 or a fraction"),
        ({"normalize": "rows"}, r"`normalize` is 'item', 'variable' or None; got 'rows'"),
        ({"n_components": True}, r"`n_components` must be a count, a fraction or None; got True"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(parameters, sentence):
    X, y = blobs()
    model = cs.MaxMarginClassifier().fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**parameters).fit(X, y)
    np.testing.assert_array_equal(
        before, model.set_params(**cs.MaxMarginClassifier().get_params()).decision_function(X)
    )


def test_data_that_cannot_be_normalized_are_refused():
    words = cs.Views(words=["anna", "otto", "anna", "otto"])
    with pytest.raises(ValueError, match=r"View 'words' holds objects data.*Give it the kernel normalize\(kernel\)"):
        cs.MaxMarginClassifier(Spectrum(2), normalize="item").fit(words, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"View 'view0' holds sparse data.*PerView\(MaxAbsScaler\(\)\)"):
        cs.MaxMarginClassifier(normalize="variable").fit(sp.eye_array(4, format="csr"), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="leaves it no direction"):
        cs.MaxMarginClassifier(labels="mean").fit(np.array([[1.0], [2.0], [3.0]]), [0, 1, 2])
    K = -np.eye(4)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        cs.MaxMarginClassifier("precomputed").fit(K - 1, [0, 1, 0, 1])


def test_one_sample_one_class_and_zero_kernels():
    one = cs.MaxMarginClassifier().fit([[1.0, 2.0]], ["only"])
    assert one.predict([[5.0, 6.0]]).tolist() == ["only"]
    assert cs.MaxMarginRegressor().fit([[1.0]], [3.0]).predict([[2.0]]).tolist() == [3.0]
    zero = cs.MaxMarginClassifier("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert zero.solution_.status == "converged"
    assert zero.certificate().objective == 4.0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_scales_and_offsets_do_not_matter_to_gaussian_kernels(scale, offset):
    X, y = blobs(n=150)
    plain = cs.MaxMarginClassifier(RBF(0.5)).fit(X, y)
    moved = cs.MaxMarginClassifier(RBF(0.5 / scale**2)).fit(scale * (X + offset), y)
    np.testing.assert_allclose(moved.certificate().objective, plain.certificate().objective, rtol=2e-3)
    assert moved.certificate().gap <= 1e-3 * moved.certificate().objective


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_linear_kernels_of_any_scale_are_certified(scale, monkeypatch):
    monkeypatch.setattr(_margin, "FEW", 10)
    X, y = blobs(n=150)
    for kernel, degree, n_components in (("linear", 1, None), (Polynomial(2, 0.0), 2, None), ("linear", 1, 3)):
        C = 1.0 / scale ** (2 * degree)
        model = cs.MaxMarginClassifier(kernel, C=C, n_components=n_components).fit(scale * X, y)
        assert model.certificate().gap <= 1e-3 * model.certificate().objective


def test_models_survive_files(tmp_path):
    X, y = two_views(missing=True)
    words = np.array(["anna", "otto", "ottokar"])[y]
    models = [
        cs.MaxMarginClassifier(RBF(0.3), combine="product", normalize="variable").fit(X, y),
        cs.MaxMarginClassifier(RBF(0.3), combine=[("a", 1.0), (("a", "b"), 0.5)]).fit(X, y),
        cs.MaxMarginClassifier(RBF(0.3), n_components=20, random_state=0).fit(X, words),
        cs.MaxMarginRegressor(RBF(0.3), output_kernel=normalize(Subsequence(2, 0.5))).fit(X, words),
        cs.VectorPerceptron(RBF(0.3), random_state=0).fit(X, words),
    ]
    for number, model in enumerate(models):
        cs.save(model, tmp_path / f"{number}.cons")
        np.testing.assert_array_equal(cs.load(tmp_path / f"{number}.cons").predict(X), model.predict(X))


# -- rows of kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_rows_of_gaussian_kernels(dtype, gamma, offset):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(700, 4)) + offset, 3 * rng.normal(size=(900, 4)) + offset
    rows = RBF(gamma)._against(Z, dtype)(X, np.empty((700, 900), dtype=dtype))
    np.testing.assert_allclose(rows, RBF(gamma)(X, Z), atol=2e-6 if dtype == np.float32 else 1e-10)
    for start in (0, 300):  # few rows, in one thread
        some = RBF(gamma)._against(Z, dtype)(X[start : start + 3], np.empty((3, 900), dtype=dtype))
        np.testing.assert_allclose(some, rows[start : start + 3], atol=1e-6)


# -- equal error rates
def test_points_and_equal_error_rates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    scores = rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[y]
    for t in range(3):
        false, true, thresholds = cs.roc_points(y, scores, positive=t)
        assert np.isclose(np.trapezoid(true, false), roc_auc_score(y == t, scores[:, t]))
        rate = cs.equal_error_rate(y, scores, positive=t)
        errors = [max((scores[y != t, t] >= c).mean(), (scores[y == t, t] < c).mean()) for c in thresholds]
        assert min(errors) - 0.02 < rate <= min(errors) + 1e-12
    assert cs.equal_error_rate(y == 0, scores[:, 0]) == cs.equal_error_rate(y, scores[:, 0], positive=0)
    assert cs.equal_error_rate([0, 0, 1, 1], [3.0, 3.0, 3.0, 3.0]) == 0.5
    assert cs.equal_error_rate([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], positive=0) == 0.0
    assert cs.equal_error_rate([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0]) == 1.0


@pytest.mark.parametrize(
    ("y", "scores", "positive", "sentence"),
    [
        ([0, 0], [1.0, 2.0], None, "needs samples of the class and others; y has '0' only"),
        ([0, 1, 2], [1.0, 2.0, 3.0], None, "y has 3 classes: say by `positive`"),
        ([0, 1], [1.0, 2.0], 5, "`positive` is 5; the classes in y are '0', '1'"),
        ([0, 1], [[1.0, 2.0, 3.0]] * 2, None, "`scores` has 3 columns, y 2 classes"),
        ([0, 1], [1.0, np.nan], None, "must be finite, one per sample"),
    ],
)
def test_curves_that_cannot_be_are_refused(y, scores, positive, sentence):
    with pytest.raises(ValueError, match=sentence):
        cs.roc_points(y, scores, positive=positive)


# -- the vector perceptron
def separable(seed, n=40, T=3, columns=4):
    """Samples of length 1 that some operator separates with a margin."""
    rng = np.random.default_rng(seed)
    W, Y = rng.normal(size=(T - 1, columns)), cs.simplex_vectors(T)
    X = rng.normal(size=(20 * n, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ W.T @ Y.T).argmax(axis=1)
    sure = np.einsum("ij,ij->i", X @ W.T, Y[y]) / np.linalg.norm(W) > 0.1
    return X[sure][:n], y[sure][:n]


@pytest.mark.parametrize("T", [2, 3])
@pytest.mark.parametrize("eta0", [0.1, 1.0, 3.0])
def test_the_perceptron_is_its_twin(T, step):
    X, y = separable(0, T=T)
    Y = cs.simplex_vectors(T)
    W, updates = reference.vector_perceptron(X, Y[y], 1.0, step, 50)
    model = cs.VectorPerceptron(eta0=step, max_iter=50, shuffle=False).fit(X, y)
    assert model.n_updates_ == updates
    expected = X @ W.T @ Y.T
    expected = expected if T > 2 else (expected[:, 1] - expected[:, 0]) / 2
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)
    kernel = cs.VectorPerceptron(Polynomial(1, 0.0), eta0=step, max_iter=50, shuffle=False).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), expected, atol=1e-10)
    gram = X @ X.T * (Y @ Y.T)[np.ix_(y, y)]
    alpha, updates = reference.dual_vector_perceptron(gram, 1.0, 0.01 * step, 50)
    dual = cs.VectorPerceptron(algorithm="coefficients", eta0=0.01 * step, max_iter=50, shuffle=False).fit(X, y)
    assert dual.n_updates_ == updates
    expected = X @ X.T @ (alpha[:, None] * (Y @ Y.T)[y])
    expected = expected if T > 2 else (expected[:, 1] - expected[:, 0]) / 2
    np.testing.assert_allclose(dual.decision_function(X), expected, atol=1e-8)


def test_both_algorithms_are_different():
    X, y = separable(1)
    first = cs.VectorPerceptron(shuffle=False).fit(X, y)
    second = cs.VectorPerceptron(shuffle=False, algorithm="coefficients", eta0=0.01).fit(X, y)
    assert first.separated_
    assert second.separated_
    assert abs(np.corrcoef(first.decision_function(X).ravel(), second.decision_function(X).ravel())[0, 1]) < 0.9999
    assert not hasattr(second, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = second.partial_fit
    assert "use `fit`, or algorithm='operator' for a stream" in str(caught.value.__cause__)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([0.2, 1.0, 4.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_bounds_hold(seed, T, step, margin):
    X, y = separable(seed, T=T)
    if len(set(y)) < T:
        return
    model = cs.VectorPerceptron(eta0=step, margin=margin, max_iter=10_000, random_state=seed).fit(X, y)
    proof = model.certificate(X, y)
    assert model.separated_
    assert proof.widest >= 0.1 * (1 - 1e-3)
    assert proof.updates <= proof.bound
    assert proof.margin >= proof.margin_bound
    assert proof.margin <= proof.widest * (1 + 1e-4)
    Y = cs.simplex_vectors(T)
    W, updates = reference.vector_perceptron(X, Y[y], margin, step, 10_000)
    assert updates <= proof.bound
    assert np.einsum("ij,ij->i", X @ W.T, Y[y]).min() / np.linalg.norm(W) >= proof.margin_bound


def test_bounds_as_the_paper_states_them():
    for widest, step in ((0.1, 1.0), (0.5, 0.2)):
        updates, margin = vector_perceptron_bounds(widest, step)
        np.testing.assert_allclose([updates, margin], [(1 + 2 / step) / widest**2, widest / (step + 2)])


def test_samples_that_nothing_separates_have_no_bound():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = cs.VectorPerceptron(max_iter=3).fit(X, [0, 1, 0])
    proof = model.certificate(X, [0, 1, 0])
    assert not model.separated_
    assert proof.bound is None
    assert proof.margin_bound is None
    assert (
        str(model.certificate()) == f"{model.n_updates_} updates. Learned as the samples came; no optimum is claimed."
    )


@pytest.mark.parametrize("kernel", ["linear", RBF(0.5)])
def test_any_chunks_give_the_same_perceptron(kernel):
    X, y = two_views(n=300, missing=True)
    whole = cs.VectorPerceptron(kernel).partial_fit(X, y, classes=range(3))
    parts = cs.VectorPerceptron(kernel)
    for start in range(0, 300, 17):
        parts.partial_fit(X[start : start + 17], y[start : start + 17], classes=range(3))
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-10)
    assert parts.n_updates_ == whole.n_updates_
    assert parts.n_mistakes_ == whole.n_mistakes_
    one = cs.VectorPerceptron(kernel, max_iter=1, shuffle=False).fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), whole.decision_function(X), atol=1e-10)


def test_products_of_streams_need_every_view():
    X, y = two_views(missing=True)
    whole, _ = two_views()
    for learn in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="needs every view in every sample"):
            getattr(cs.VectorPerceptron(RBF(0.5), combine="product"), learn)(X, y)
    model = cs.VectorPerceptron(RBF(0.5), combine="product").fit(whole, y)
    with pytest.raises(ValueError, match="needs every view in every sample"):
        model.predict(X)


def test_certificates_leave_samples_without_a_label_out():
    X, y = separable(0)
    model = cs.VectorPerceptron(random_state=0).fit(X, y)
    some = y.astype(float)
    some[:5] = np.nan
    assert model.certificate(X, some).margin == model.certificate(X[5:], y[5:]).margin


def test_streams_ask_for_numbers_and_take_new_views():
    X, y = two_views()
    with pytest.raises(
        ValueError, match=r"View 'a': RBF\(gamma='median'\) takes a parameter from the data.*Give it a number"
    ):
        (fresh := cs.VectorPerceptron(RBF("median"))).partial_fit(X, y)
    assert not hasattr(fresh, "n_samples_seen_")
    scaled = cs.VectorPerceptron("rbf").partial_fit(X, y)  # by the columns, since a stream has no variance yet
    assert scaled.kernels_["a"].gamma == 1 / X["a"].shape[1]
    for kernel in ("linear", RBF(0.5)):
        model = cs.VectorPerceptron(kernel, kernel={"b": Linear()}).partial_fit({"a": X["a"]}, y)
        model.partial_fit(X, y)
        assert model.decision_function({"b": X["b"]}).shape == (90, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": X["a"][0]}, 1)
        assert model.predict_one({"a": X["a"][0]}) in range(3)
