"""Vector-valued learning in its general form: the literal system, a conic solver, the special cases of the paper."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import consilience as cs
import reference
from cases import gram_views, normal_views, random_mask
from consilience.batch import _vector_valued
from consilience.kernels import RBF, FromCallable, Linear, multi_task
from consilience.kernels.graphs import laplacian
from consilience.solvers import hinge, vector_valued

N, L = 14, 9  # samples, labeled ones


def psd(rng, size, rank=None):
    A = rng.normal(size=(size, rank or size))
    return A @ A.T / size


def indices(m):
    """Views whose only column is the number of the sample, for kernels that look values up."""
    return cs.Views({f"v{v}": np.arange(N, dtype=float)[:, None] for v in range(m)})


def looked_up(G, m):
    """Return a matrix (mN, mN) as a kernel between views."""
    blocks = G.reshape(m, N, m, N)

    def kernel(X, Z):
        i, j = (views["v0"][:, 0].astype(int) for views in (X, Z))
        return blocks[:, i][:, :, :, j].transpose(0, 2, 1, 3)

    return kernel


def targets(rng, P, missing=0.0):
    Y = rng.normal(size=(N, P))
    Y[L:] = np.nan
    Y[:L][rng.random((L, P)) < missing] = np.nan
    Y[0] = 1.0  # some target of each is known
    return Y


FORMS = {
    "matrix": lambda M: M,
    "sparse": lambda M: sp.csr_array(M),
    "operator": lambda M: aslinearoperator(M),
    "function": lambda M: lambda F: (M @ F.reshape(len(M), -1)).reshape(F.shape),
}


def general(seed, m=2, P=3, Q=2, r=None, missing=0.0):
    rng = np.random.default_rng(seed)
    return (
        psd(rng, m * N), psd(rng, Q, r), rng.normal(size=(m, P, Q)), psd(rng, m * N, 5), targets(rng, P, missing),
    )  # fmt: skip


# -- against the literal system
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize(
    ("m", "P", "Q", "r"), [(2, 3, 2, None), (3, 2, 2, 1), (1, 1, 1, None), (2, 1, 3, None), (2, 4, 1, None)]
)
def test_any_c_g_r_and_m_solve_the_literal_system(m, P, Q, r, missing, form):
    G, R, C, M, Y = general(7, m, P, Q, r, missing)
    model = cs.VectorValuedRegressor(
        Linear(), alpha=0.1, combination=C, view_kernel=looked_up(G, m), output_kernel=R, operator=FORMS[form](M),
        operator_penalty=0.3,
    ).fit(indices(m), Y)  # fmt: skip
    expected, norm = reference.vector_valued_ridge(G, R, C, M, Y[:L], 0.1, 0.3)
    assert_allclose(model.predict(indices(m)).reshape(N, P), np.einsum("vpq,vnq->np", C, expected), atol=1e-10)
    own = model.view_decision_function(indices(m)).reshape(N, m, Q)
    assert_allclose(own, expected.transpose(1, 0, 2), atol=1e-10)
    proof = model.certificate()
    assert proof.gap <= 1e-12 * proof.objective
    f = expected.reshape(-1, Q)
    loss = np.nansum((Y[:L] - np.einsum("vpq,vnq->np", C, expected)[:L]) ** 2) / (~np.isnan(Y)).any(axis=1).sum()
    value = loss + 0.1 * norm + 0.3 * np.sum(f * (M @ f))
    assert proof.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("R", [None, "random", "singular"])
@pytest.mark.parametrize("C", ["numbers", "diagonal", "shared basis", "any"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("coupled", [True, False])
def test_structure_changes_nothing(R, C, missing, coupled, monkeypatch):
    """Diagonal G and M of Kronecker form are solved view by view; the same as one matrix is the literal system."""
    rng = np.random.default_rng(3)
    m, P = 3, 2
    grams = [RBF(0.3)(rng.normal(size=(N, 2))) for _ in range(m)]
    graph = laplacian(RBF(1.0)(rng.normal(size=(N, 2))))
    weights = rng.normal(size=(m, P))
    R = {None: None, "random": psd(rng, P), "singular": psd(rng, P, 1)}[R]
    basis = np.linalg.eigh(np.eye(P) if R is None else R)[1]
    C = {
        "numbers": weights[:, :1, None] * np.eye(P), "diagonal": weights[:, :, None] * np.eye(P),
        "shared basis": np.einsum("pk,vk,qk->vpq", basis, weights, basis), "any": rng.normal(size=(m, P, P)),
    }[C]  # fmt: skip
    V = 0.2 * (m * np.eye(m) - 1) + np.diag([0.0, 0.1, 0.0]) if coupled else psd(rng, m)
    pairs = [(V, None), ("v1", sp.csr_array(graph)), (np.diag([0.5, 0.0, 0.2]), graph)]
    Y = targets(rng, P, missing)
    model = cs.VectorValuedRegressor(
        "precomputed", alpha=0.05, combination=C, output_kernel=R, operator=pairs, operator_penalty=0.7
    )
    if coupled:
        monkeypatch.setattr(vector_valued, "Whole", None)  # must not be needed
    model.fit(gram_views(grams), Y)
    M = np.kron(V, np.eye(N)) + np.kron(np.diag([0, 1.0, 0]), graph) + np.kron(np.diag([0.5, 0, 0.2]), graph)
    expected, _ = reference.vector_valued_ridge(
        sp.block_diag(grams).toarray(), np.eye(P) if R is None else R, C, M, Y[:L], 0.05, 0.7
    )
    assert_allclose(model.predict(gram_views(grams)), np.einsum("vpq,vnq->np", C, expected), atol=1e-10)
    assert model.certificate().gap <= 1e-10


# -- hinge losses against a conic solver
@pytest.mark.parametrize("seed", range(6))
def test_hinge_losses_reach_the_optimum_of_a_conic_solver(cp, seed):
    rng = np.random.default_rng(seed)
    m, K, P, Q = 2, 3, 2 + seed % 2, 2
    G, R, C, M, _ = general(seed, m, P, Q, 1 if seed == 2 else None)
    S = rng.normal(size=(K, P))
    if seed % 3 == 0:  # a structure that is used: numbers for C, the same outputs
        C, Q = rng.normal(size=(m, 1, 1)) * np.eye(P), P
        R = psd(rng, P)
    y = rng.integers(K, size=L)
    y[:K] = np.arange(K)
    model = cs.VectorValuedClassifier(
        alpha=0.05, loss="hinge", class_vectors=S, combination=C, view_kernel=looked_up(G, m), output_kernel=R,
        operator=M, operator_penalty=0.1, tol=1e-9,
    ).fit(indices(m), np.r_[y, np.full(N - L, np.nan)])  # fmt: skip
    H = np.linalg.cholesky(np.kron(G, R) + 1e-13 * np.eye(m * N * Q))  # f = Hz, ‖f‖² = ‖z‖²
    z = cp.Variable(m * N * Q)
    f = H @ z
    g = cp.reshape(reference.vector_valued_observations(C, N, L) @ f, (L, P), order="C")
    losses = [cp.pos(-S[k] @ S[y[i]] + g[i] @ S[k]) for i in range(L) for k in range(K) if k != y[i]]
    penalty = cp.sum_squares(np.linalg.cholesky(np.kron(M, np.eye(Q)) + 1e-13 * np.eye(len(H))).T @ f)
    value = cp.sum(cp.hstack(losses)) / L + 0.05 * cp.sum_squares(z) + 0.1 * penalty
    program = cp.Problem(cp.Minimize(value))
    program.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    assert model.certificate().objective == pytest.approx(program.value, rel=1e-6)
    assert model.certificate().gap <= 1e-8 * model.certificate().objective
    assert_allclose(model.decision_function(indices(m))[:L], g.value @ S.T, atol=1e-3)


@pytest.mark.parametrize("code", ["ovr", "simplex"])
@pytest.mark.parametrize("terms", [(0.0, 0.0), (1e-2, 0.0), (1e-2, 1e-3)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_output_kernels_of_the_co_regularized_svm(code, terms, n_classes):
    """Theorem 11 and Remark 33: one term for each eigenvalue of R, equal to one matrix over samples and classes."""
    rng = np.random.default_rng(0)
    X = cs.Views(normal_views(30, (3, 2), shift=np.arange(30) % n_classes))
    y = np.where(np.arange(30) < 20, np.arange(30) % n_classes, np.nan)
    size = {"ovr": 1 if n_classes == 2 else n_classes, "simplex": n_classes - 1}[code]
    R = psd(rng, size) + 0.1 * np.eye(size)
    graphs = {name: laplacian(RBF(0.2)(X[name])) for name in X.names}
    model = cs.CoRegularizedSVC(
        RBF(0.2), alpha=1e-2, agreement_penalty=terms[0], graph_penalty=terms[1], graph=graphs, class_vectors=code,
        output_kernel=R, tol=1e-10, view_weights=[0.6, -0.3],
    ).fit(X, y)  # fmt: skip
    M = np.kron(terms[0] * np.array([[1, -1], [-1, 1]]), np.eye(30))
    M += terms[1] * sp.block_diag(list(graphs.values())).toarray()
    whole = cs.VectorValuedClassifier(
        RBF(0.2), alpha=1e-2, class_vectors=code, output_kernel=R, operator=M, combination=[0.6, -0.3], tol=1e-10
    ).fit(X, y)
    assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-5)
    assert model.certificate().objective == pytest.approx(whole.certificate().objective, rel=1e-8)
    plain = cs.CoRegularizedSVC(RBF(0.2), alpha=1e-2, class_vectors=code, agreement_penalty=terms[0], tol=1e-10)
    same = clone(plain).set_params(output_kernel=np.eye(size)).fit(X, y)
    assert_allclose(plain.fit(X, y).decision_function(X), same.decision_function(X), atol=1e-6)
    learned = clone(model).set_params(view_weights="learned", tol=1e-6, random_state=0).fit(X, y)
    assert learned.certificate().objective <= model.certificate().objective * (1 + 1e-6) or not np.isclose(
        np.linalg.norm(learned.view_weights_), np.linalg.norm([0.6, -0.3])
    )


# -- special cases (sections 3.4, 4 and 8.2 of the paper)
X2 = cs.Views(normal_views(36, (3, 2), shift=2 * (np.arange(36) % 3)))
MASK = random_mask(np.random.default_rng(1), 36, 2, 0.3)
MISSING = cs.Views({name: X2[name] for name in X2.names}, mask=MASK)
Y2 = np.random.default_rng(5).normal(size=(36, 2))
CODES = np.arange(36) % 3
HALF = np.where(np.arange(36)[:, None] < 20, Y2, np.nan)
GRAPHS = {name: laplacian(RBF(0.3)(X2[name])) for name in X2.names}
TERMS = [(1e-2 * np.array([[1.0, -1.0], [-1.0, 1.0]]), None), *((name, 1e-3 * L) for name, L in GRAPHS.items())]
SAME = {"alpha": 1e-2, "agreement_penalty": 1e-2, "graph_penalty": 1e-3, "graph": GRAPHS}


def test_it_is_the_co_regularized_ridge():
    R = multi_task(2, 0.3)
    for data, y in ((X2, HALF), (MISSING, HALF)):
        ours = cs.CoRegularizedRidge(RBF(0.3), view_weights=[0.3, -0.7], output_kernel=R, **SAME).fit(data, y)
        general = cs.VectorValuedRegressor(
            RBF(0.3), alpha=1e-2, combination=[0.3, -0.7], output_kernel=R, operator=TERMS
        ).fit(data, y)
        assert_allclose(general.predict(data), ours.predict(data), atol=1e-10)
        assert general.certificate().objective == pytest.approx(ours.certificate().objective, rel=1e-12)


@pytest.mark.parametrize("code", ["ovr", "simplex"])
def test_it_is_the_co_regularized_svc(code):
    y = np.where(np.arange(36) < 20, CODES, np.nan)
    for data in (X2, MISSING):
        ours = cs.CoRegularizedSVC(RBF(0.3), class_vectors=code, tol=1e-10, **SAME).fit(data, y)
        general = cs.VectorValuedClassifier(RBF(0.3), alpha=1e-2, class_vectors=code, operator=TERMS, tol=1e-10).fit(
            data, y
        )
        assert_allclose(general.decision_function(data), ours.decision_function(data), atol=1e-8)
        assert_allclose(
            general.view_decision_function(data), ours.view_decision_function(data), atol=1e-8, equal_nan=True
        )
    squares = cs.VectorValuedClassifier(RBF(0.3), alpha=1e-2, loss="squared", class_vectors="ovr", operator=TERMS)
    ours = cs.CoRegularizedRidgeClassifier(RBF(0.3), **SAME).fit(X2, y)
    assert_allclose(squares.fit(X2, y).decision_function(X2), ours.decision_function(X2), atol=1e-10)


def test_vector_valued_regularized_least_squares():
    """Equation 41: C an orthogonal matrix, one view, no M; for C = I kernel ridge with the kernel k(x, z) R."""
    K = RBF(0.3)(X2["a"])
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(2, 2)))[0]
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.01, combination=[turn]).fit(X2["a"], Y2)
    plain = KernelRidge(alpha=36 * 0.01, kernel="precomputed").fit(K, Y2)
    assert_allclose(model.predict(X2["a"]), plain.predict(K), atol=1e-10)
    R = multi_task(2, 0.3)
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.01, output_kernel=R, combination=[turn]).fit(X2["a"], Y2)
    whole = np.kron(K, turn @ R @ turn.T)
    expected = whole @ np.linalg.solve(whole + 0.36 * np.eye(72), Y2.ravel())
    assert_allclose(model.predict(X2["a"]).ravel(), expected, atol=1e-10)


def test_manifold_regularization():
    """Equation 42: one view, M a Laplacian; Laplacian least squares and, with two classes, the Laplacian SVM."""
    K, Lap = RBF(0.3)(X2["a"]), GRAPHS["a"]
    y = Y2[:20, 0]
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.01, operator=Lap, operator_penalty=0.02)
    J = np.diag((np.arange(36) < 20).astype(float))
    a = np.linalg.solve(J @ K + 20 * 0.01 * np.eye(36) + 20 * 0.02 * Lap @ K, np.r_[y, np.zeros(16)])
    assert_allclose(model.fit(X2["a"], np.r_[y, np.full(16, np.nan)]).predict(X2["a"]), K @ a, atol=1e-9)
    # Belkin, Niyogi and Sindhwani (2006): an SVM with the deformed kernel K(γ_A I + γ_I L K)⁻¹
    signs = np.where(np.arange(20) % 2, 1, -1)
    deformed = K @ np.linalg.inv(0.01 * np.eye(36) + 0.02 * Lap @ K)
    machine = cs.VectorValuedClassifier(RBF(0.3), alpha=0.01, operator=Lap, operator_penalty=0.02, tol=1e-10)
    found = machine.fit(X2["a"], np.r_[signs.astype(float), np.full(16, np.nan)])
    ours = cs.CoRegularizedSVC(RBF(0.3), alpha=0.01, graph_penalty=0.02, graph=Lap, tol=1e-10)
    ours.fit(X2["a"], np.r_[signs.astype(float), np.full(16, np.nan)])
    assert_allclose(found.decision_function(X2["a"]), ours.decision_function(X2["a"]), atol=1e-8)
    Q = deformed[:20, :20] * np.outer(signs, signs)
    alpha = reference.margin_dual(0.5 * Q, np.full(20, 1 / 20), np.ones(20))  # min ¼ α'Qα - 1'α
    assert_allclose(found.decision_function(X2["a"]), 0.5 * deformed[:, :20] @ (signs * alpha), atol=1e-5)


def test_scalar_multi_view_learning():
    """Equations 43 to 48: penalties γ_v of each view are the kernel diag(k_v / γ_v)."""
    gammas, M = (0.02, 0.5), psd(np.random.default_rng(0), 72, 8)
    kernels = {"a": (1 / gammas[0]) * RBF(0.3), "b": (1 / gammas[1]) * RBF(0.3)}
    model = cs.VectorValuedRegressor(kernels, alpha=1.0, combination=[0.4, 0.9], operator=M, operator_penalty=0.1)
    y = np.where(np.arange(36) < 20, Y2[:, 0], np.nan)
    grams = [RBF(0.3)(X2[name]) for name in X2.names]
    # the optimality conditions of (43) themselves, over coefficients of each view's own kernel
    K = sp.block_diag(grams).toarray()
    J = np.kron(np.outer([0.4, 0.9], [0.4, 0.9]), np.diag((np.arange(36) < 20) / 20))
    ridge = np.kron(np.diag(gammas), np.eye(36))
    right = np.kron([0.4, 0.9], np.where(np.arange(36) < 20, Y2[:, 0], 0) / 20)
    f = (K @ np.linalg.solve(J @ K + ridge + 0.1 * M @ K, right)).reshape(2, 36)
    assert_allclose(model.fit(X2, y).predict(X2), 0.4 * f[0] + 0.9 * f[1], atol=1e-9)


def test_plain_support_vector_machines():
    """Corollary 20: an SVM without intercept on Σ c_v² k_v; with several classes and one view the simplex cone SVM."""
    y = np.where(np.arange(36) % 2, "b", "a")
    K = 0.3**2 * RBF(0.3)(X2["a"]) + 0.8**2 * RBF(0.3)(X2["b"])
    model = cs.VectorValuedClassifier(RBF(0.3), alpha=0.01, combination=[0.3, 0.8], tol=1e-11).fit(X2, y)
    s = np.where(y == "b", 1.0, -1.0)
    alpha = reference.margin_dual(np.outer(s, s) * K, np.full(36, 1 / (2 * 36 * 0.01)), np.ones(36))
    assert_allclose(model.decision_function(X2), K @ (s * alpha), atol=1e-5)
    cone = cs.VectorValuedClassifier(RBF(0.3), alpha=0.01, tol=1e-10).fit(X2["a"], CODES)
    ours = cs.CoRegularizedSVC(RBF(0.3), alpha=0.01, class_vectors="simplex", tol=1e-10).fit(X2["a"], CODES)
    assert_allclose(cone.decision_function(X2["a"]), ours.decision_function(X2["a"]), atol=1e-6)


def test_squared_loss_of_any_code_is_regression_on_the_vectors_of_the_classes():
    S = np.random.default_rng(0).normal(size=(3, 2))
    C = np.random.default_rng(1).normal(size=(2, 2, 2))
    how = {"alpha": 0.01, "combination": C, "operator": TERMS}
    labels = np.where(np.arange(36) < 20, CODES, np.nan)
    coded = np.where(np.arange(36)[:, None] < 20, S[CODES], np.nan)
    model = cs.VectorValuedClassifier(RBF(0.3), loss="squared", class_vectors=S, **how).fit(X2, labels)
    outputs = cs.VectorValuedRegressor(RBF(0.3), **how).fit(X2, coded).predict(X2)
    assert_allclose(model.decision_function(X2), outputs @ S.T, atol=1e-10)
    assert (model.predict(X2) == (outputs @ S.T).argmax(axis=1)).all()


def test_the_covariance_kernel_is_mvml_cov():
    ours = cs.ViewMetricRidge(RBF(0.3), metric="covariance", alpha=36 * 0.01).fit(X2, Y2)
    general = cs.VectorValuedRegressor(RBF(0.3), view_kernel="covariance", alpha=0.01).fit(X2, Y2)
    assert_allclose(general.predict(X2), ours.predict(X2), atol=1e-9)


def test_kernels_of_infinite_width():
    """Appendix C: with k = 1 everywhere f is constant, the mean of the targets over 1 + mγ_A."""
    y = Y2[:, 0]
    model = cs.VectorValuedRegressor(RBF(1e-300), alpha=0.2).fit(X2, y)
    assert_allclose(model.predict(X2), np.full(36, y.mean() / (1 + 2 * 0.2)), rtol=1e-12)


def test_tasks_with_the_same_inputs_and_missing_labels():
    """Section 8.2, equation 101: the norm is λ Σ ‖f_k‖² + (1-λ) Σ ‖f_k - mean f‖²; each task has labels of its own."""
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((36, 3)) < 0.5, rng.normal(size=(36, 3)), np.nan)
    lam = 0.3
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.05, output_kernel=multi_task(3, lam)).fit(X2["a"], Y)
    K, known = RBF(0.3)(X2["a"]), ~np.isnan(Y)
    inner = lam * np.eye(3) + (1 - lam) * (np.eye(3) - 1 / 3)  # over (f_1, f_2, f_3)
    J = np.diag(known.T.ravel().astype(float))
    l = known.any(axis=1).sum()
    system = J @ np.kron(np.eye(3), K) + l * 0.05 * np.kron(inner, np.eye(36))
    a = np.linalg.solve(system, np.nan_to_num(Y).T.ravel()).reshape(3, 36)
    assert_allclose(model.predict(X2["a"]), (a @ K).T, atol=1e-9)
    full = np.where(known, Y, model.predict(X2["a"]))
    assert model.score(X2["a"], np.where(known, full, np.nan)) < 1


def test_tasks_with_different_inputs():
    """Section 8.2: a loss per view. With the covariance kernel and the same labels it is that of Kadri et al. 2013."""
    Y = np.column_stack([Y2[:, 0], np.where(np.arange(36) % 3, Y2[:, 1], np.nan)])
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.01, combination="separate").fit(X2, Y)
    for v, name in enumerate(X2.names):  # tasks that share nothing
        known = ~np.isnan(Y[:, v])
        K = RBF(0.3)(X2[name])
        alone = KernelRidge(alpha=36 * 0.01, kernel="precomputed").fit(K[np.ix_(known, known)], Y[known, v])
        assert_allclose(model.predict(X2)[:, v], alone.predict(K[:, known]), atol=1e-10)
    y = np.column_stack([Y2[:, 0], Y2[:, 0]])
    model = cs.VectorValuedRegressor(
        RBF(0.3), alpha=0.01, combination="separate", view_kernel="covariance", operator_penalty=0.0
    ).fit(X2, y)
    grams = np.hstack([RBF(0.3)(X2[name]) for name in X2.names])
    G = grams.T @ grams / 36
    expected = G @ np.linalg.solve(G + 36 * 0.01 * np.eye(72), y.T.ravel())
    assert_allclose(model.predict(X2).T.ravel(), expected, atol=1e-9)
    twice = X2[[3, 3, 1]]
    assert_allclose(model.predict(twice), model.predict(X2)[[3, 3, 1]])


def test_one_kernel_between_views_of_one_space():
    B = np.array([[1.0, 0.6], [0.6, 1.0]])
    rng = np.random.default_rng(0)
    data, y = cs.Views(left=rng.normal(size=(30, 3)), right=sp.csr_array(rng.normal(size=(30, 3)))), rng.normal(size=30)
    model = cs.VectorValuedRegressor(RBF(0.2), alpha=0.1, view_kernel=B).fit(data, y)
    blocks = [data["left"], data["right"].toarray()]
    K = np.block([[B[v, w] * RBF(0.2)(blocks[v], blocks[w]) for w in range(2)] for v in range(2)])
    mean = np.kron([0.5, 0.5], np.eye(30))
    S = mean @ K @ mean.T
    assert_allclose(model.predict(data), S @ np.linalg.solve(S + 3 * np.eye(30), y), atol=1e-10)
    swapped = cs.VectorValuedRegressor("rbf", view_kernel=B).fit(data, y).predict(data)
    other = cs.Views(right=data["right"], left=data["left"])
    assert_allclose(cs.VectorValuedRegressor("rbf", view_kernel=B).fit(other, y).predict(other), swapped)
    # independent tasks of one input: B ⊗ k is k R
    twice = cs.Views(a=X2["a"], b=X2["a"])
    tasks = cs.VectorValuedRegressor(RBF(0.3), combination="separate", view_kernel=B).fit(twice, Y2)
    outputs = cs.VectorValuedRegressor(RBF(0.3), output_kernel=B).fit(X2["a"], Y2)
    assert_allclose(tasks.predict(twice), outputs.predict(X2["a"]), atol=1e-9)


# -- functionals (Appendix B)
def test_targets_of_groups_of_samples():
    rng = np.random.default_rng(0)
    T = rng.random((12, 36)) * (rng.random((12, 36)) < 0.3)
    y = T @ np.sin(X2["a"][:, 0])
    for form in (T, sp.csr_array(T)):
        model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.01).fit(X2, y, functionals=form)
        K = sum(0.25 * RBF(0.3)(X2[name]) for name in X2.names)
        expected = K @ T.T @ np.linalg.solve(T @ K @ T.T + 12 * 0.01 * np.eye(12), y)
        assert_allclose(model.predict(X2), expected, atol=1e-9)
    plain = cs.VectorValuedRegressor(RBF(0.3), operator=TERMS).fit(X2, HALF)
    same = cs.VectorValuedRegressor(RBF(0.3), operator=TERMS).fit(X2, HALF[:20], functionals=np.eye(36)[:20])
    assert_allclose(same.predict(X2), plain.predict(X2), atol=1e-9)
    weights = rng.random(20)
    assert_allclose(
        cs.VectorValuedRegressor(RBF(0.3)).fit(X2, Y2[:20], weights, functionals=np.eye(36)[:20]).predict(X2),
        cs.VectorValuedRegressor(RBF(0.3)).fit(X2[:20], Y2[:20], weights).predict(X2), atol=1e-9,
    )  # fmt: skip


def test_an_integral_is_the_kernel_of_its_representers():
    """Example 1 of Appendix B: y = ∫ G(x, t) f(t) dt with f in L²; the kernel is ∫ G(x, u) G(t, u) du."""
    points, h = np.linspace(0, 1, 400, endpoint=False) + 1 / 800, 1 / 400
    x = np.linspace(0, 1, 15)
    A = np.exp(-((x[:, None] - points) ** 2) / 0.1)  # G at the points of a midpoint rule
    y = A @ np.cos(5 * points) * h

    def integral(s, t):
        return np.exp(-((s - points) ** 2) / 0.1) @ np.exp(-((t - points) ** 2) / 0.1) * h

    kernel = FromCallable(lambda s, t: integral(float(s[0]), float(t[0])), pairs=True)
    by_kernel = cs.VectorValuedRegressor(kernel, alpha=1e-3).fit(x[:, None], y)
    white = FromCallable(lambda s, t: float(s[0] == t[0]) / h, pairs=True)  # L² at the points of the rule
    by_rule = cs.VectorValuedRegressor(white, alpha=1e-3).fit(points[:, None], y, functionals=A * h)
    assert_allclose(A @ by_rule.predict(points[:, None]) * h, by_kernel.predict(x[:, None]), atol=1e-8)


# -- weights, missing views, input that is refused
def test_weights_count_in_the_loss():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 3, size=36).astype(float)
    C = rng.normal(size=(2, 2, 2))
    repeated = np.repeat(np.arange(36), s.astype(int))
    one = cs.VectorValuedRegressor(RBF(0.3), combination=C).fit(X2, Y2, s)
    two = cs.VectorValuedRegressor(RBF(0.3), combination=C).fit(X2[repeated], Y2[repeated])
    assert_allclose(one.predict(X2), two.predict(X2), atol=1e-9)
    # with an operator, a sample of weight 0 is an unlabeled one
    zero = np.where(np.arange(36) < 20, 1.0, 0.0)
    for model, y, hidden in (
        (cs.VectorValuedRegressor(RBF(0.3), operator=TERMS), Y2, HALF),
        (cs.VectorValuedClassifier(RBF(0.3), operator=TERMS, tol=1e-9), CODES, np.where(zero > 0, CODES, np.nan)),
    ):
        weighted, unlabeled = clone(model).fit(X2, y, zero), clone(model).fit(X2, hidden)
        assert_allclose(weighted.predict(X2), unlabeled.predict(X2), atol=1e-9)


def test_missing_views_with_matrices():
    """Each target's row of C is scaled up to the sum of its absolute values; targets without a view are no targets."""
    rng = np.random.default_rng(0)
    C = np.array([[[1.0, 0.5], [0.0, 0.0]], [[0.5, -0.5], [1.0, 2.0]]])
    data = MISSING
    model = cs.VectorValuedRegressor(RBF(0.3), alpha=0.05, combination=C).fit(data, Y2)
    sizes = np.abs(C).sum(axis=2)
    nu = sizes.sum(axis=0) / np.where(MASK @ sizes > 0, MASK @ sizes, np.inf)
    grams = [RBF(0.3)(X2[name]) * np.outer(MASK[:, v], MASK[:, v]) for v, name in enumerate(X2.names)]
    O = reference.vector_valued_observations(C, 36, 36) * nu.ravel()[:, None]
    there = nu.ravel() > 0
    K = np.kron(sp.block_diag(grams).toarray(), np.eye(2))
    S = (O @ K @ O.T)[np.ix_(there, there)]
    r = np.linalg.solve(S + 36 * 0.05 * np.eye(len(S)), Y2.ravel()[there])
    expected = (O @ K @ O[there].T @ r).reshape(36, 2)
    both = MASK[:, 1]  # the second target needs the second view
    assert_allclose(model.predict(data[both]), expected[both], atol=1e-9)
    with pytest.raises(ValueError, match="has no view that adds to target 1 by `combination`"):
        model.predict(data)
    M = psd(rng, 72)
    with pytest.raises(ValueError, match=r"View '[ab]': it is missing in sample \d+, but `operator` is not 0 there"):
        cs.VectorValuedRegressor(RBF(0.3), operator=M).fit(data, Y2)
    keep = MASK.T.ravel().astype(float)
    cs.VectorValuedRegressor(RBF(0.3), operator=M * np.outer(keep, keep)).fit(data, Y2)


REFUSED = {
    "`combination` is 'average', 'separate'": {"combination": "mean"},
    "matrix (n_targets, n_outputs) per view, 2 in all": {"combination": [1.0]},
    "View 'a': its part of `combination` must be a finite number or a matrix with a row per target, 2": {
        "combination": {"a": np.ones((3, 2)), "b": 1.0}
    },
    "`combination` names 'a'; the views are 'a', 'b'": {"combination": {"a": 1.0}},
    "must have one shape for all views": {"combination": {"a": np.ones((2, 1)), "b": np.ones((2, 3))}},
    "`combination` gives target 1 no view": {"combination": {"a": np.diag([1, 0]), "b": np.diag([1, 0])}},
    "`view_kernel` is 'diagonal', 'covariance'": {"view_kernel": "full"},
    "with a row per view, 2 in all": {"view_kernel": np.eye(3)},
    "all must have the same columns; they have 3 (a), 2 (b)": {"view_kernel": np.eye(2)},
    "multiplies one kernel of all views": {"view_kernel": np.eye(2), "kernel": {"a": RBF(0.1), "b": RBF(0.2)}},
    "must return finite numbers of shape": {"view_kernel": lambda X, Z: np.ones(3)},
    "the matrix over all views and samples is not symmetric positive": {
        "view_kernel": lambda X, Z: -np.ones((2, 2, len(X), len(Z)))
    },
    "`output_kernel` is 0": {"output_kernel": np.zeros((2, 2))},
    "`operator` names the view 'z'; the views are 'a', 'b'": {"operator": [("z", None)]},
    "its matrix over samples must have 36 rows": {"operator": [("a", np.eye(3))]},
    "its matrix over views and samples, view after view, must have 72 rows": {"operator": np.eye(3)},
    "is not symmetric": {"operator": np.triu(np.ones((72, 72)))},
    "`operator` must be symmetric and positive semi-definite": {"operator": -np.eye(72)},
    "`operator` must be symmetric and positive semi-definite over views": {"operator": [("a", -1e-6 * GRAPHS["a"])]},
    "`operator` must be symmetric and positive semi-definite over views and": {"operator": [(-1e-6 * np.eye(2), None)]},
    "`operator` must be symmetric and positive semi-definite over views and samples": {
        "operator": [(-1e-6 * np.eye(2), GRAPHS["a"])]
    },
    "`operator` must return as many finite numbers": {"operator": lambda F: F[:1]},
    "`operator` must have shape (72, 72)": {"operator": aslinearoperator(np.eye(4))},
}


@pytest.mark.parametrize("message", REFUSED)
def test_parameters_that_do_not_fit_are_refused(message):
    model = cs.VectorValuedRegressor(RBF(0.3)).set_params(**REFUSED[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X2, Y2)
    assert not hasattr(model, "dual_coef_")


def test_other_input_that_is_refused():
    with pytest.raises(ValueError, match="a multiple of 2 views; y has 3"):
        cs.VectorValuedRegressor(combination="separate").fit(X2, np.ones((36, 3)))
    with pytest.raises(ValueError, match=re.escape("a column per sample, 36 in all; got shape (3, 4)")):
        cs.VectorValuedRegressor().fit(X2, np.ones(3), functionals=np.ones((3, 4)))
    with pytest.raises(ValueError, match="no target at all"):
        cs.VectorValuedRegressor().fit(X2, np.full(36, np.nan))


def test_searches_and_strings_as_classes():
    names = np.array(["u", "v", "w"])[CODES]
    grid = {
        "loss": ["hinge", "squared"],
        "class_vectors": ["simplex", "ovr"],
        "view_kernel": ["diagonal", "covariance"],
    }
    search = GridSearchCV(cs.VectorValuedClassifier(RBF(0.1)), grid, cv=3, error_score="raise").fit(X2, names)
    assert search.best_score_ > 0.7
    assert set(search.predict(X2)) <= {"u", "v", "w"}


# -- model files
def test_model_files(tmp_path):
    B = np.array([[1.0, 0.5], [0.5, 1.0]])
    data = cs.Views(a=X2["a"][:, :2], b=X2["b"])
    path = tmp_path / "m.cons"
    for parameters in ({"view_kernel": B}, {"operator": TERMS}, {"combination": {"a": B, "b": 1.0}}):
        model = cs.VectorValuedRegressor(RBF(0.3), **parameters).fit(data, Y2)
        cs.save(model, path)
        assert_allclose(cs.load(path).predict(data), model.predict(data))
    model.combination_ = model.combination_[:, :, :1]
    cs.save(model, path)
    with pytest.raises(ValueError, match="combination_"):
        cs.load(path)
    by_function = cs.VectorValuedRegressor(RBF(0.3), operator=lambda F: F).fit(data, Y2)
    with pytest.raises(TypeError, match="Not saved"):
        cs.save(by_function, path)
    cs.save(by_function.set_params(operator=None), path)  # predictions do not use it
    assert_allclose(cs.load(path).predict(data), by_function.predict(data))


def test_shared_models(tmp_path):
    model = cs.VectorValuedRegressor("linear", operator=TERMS, view_kernel="covariance").fit(X2, HALF)
    with pytest.raises(ValueError, match="the parameter `operator` of VectorValuedRegressor is a matrix between"):
        cs.save(model, tmp_path / "m.cons", share=True)
    cs.save(model.set_params(operator=None), tmp_path / "m.cons", share=True)
    assert cs.load(tmp_path / "m.cons").predict(X2).shape == (36, 2)
    between = cs.VectorValuedRegressor("linear", view_kernel=np.eye(2))
    between.fit(cs.Views(a=X2["a"][:, :2], b=X2["b"]), Y2)
    with pytest.raises(ValueError, match="`view_kernel` compares the views 'a', 'b' of different samples"):
        cs.save(between, tmp_path / "m.cons", share=True)


def test_a_program_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(hinge, "_LARGEST", 1e4)
    y = np.where(np.arange(36) < 20, CODES, np.nan)
    message = r"20 labeled samples and 3 classes has a matrix of 2\.88e-05 GB"
    for model in (
        cs.CoRegularizedSVC(RBF(0.3), agreement_penalty=0.1, output_kernel=np.diag([1.0, 2.0, 3.0])),
        cs.VectorValuedClassifier(RBF(0.3), combination=np.random.default_rng(0).normal(size=(2, 2, 2))),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X2, y)


def test_a_system_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(_vector_valued, "_LARGEST", 1e4)
    for how in ({"view_kernel": "covariance"}, {"view_kernel": np.eye(2)}, {"operator": np.eye(72)}):
        with pytest.raises(ValueError, match=r"a matrix over 2 views and 36 samples, 4\.15e-05 GB"):
            cs.VectorValuedRegressor(RBF(0.3), **how).fit(cs.Views(a=X2["a"][:, :2], b=X2["b"]), Y2)
    cs.VectorValuedRegressor(RBF(0.3), operator=TERMS).fit(X2, Y2)  # solved view by view
    monkeypatch.setattr(vector_valued, "_LARGEST", 1e4)
    with pytest.raises(
        ValueError, match=r"makes 2 targets interact, so that 36 .* matrix of 4\.15e-05 GB; at most 1e-05 GB are used"
    ):
        cs.VectorValuedRegressor(RBF(0.3), combination=np.ones((2, 2, 2))).fit(X2, Y2)


def test_an_operator_over_outputs_too_by_a_view_for_each_output():
    """The operator of Theorem 4 may couple outputs: repeat a view for each of them, with one output each."""
    rng = np.random.default_rng(0)
    K, M, Y = psd(rng, N), psd(rng, 2 * N, 6), targets(rng, 2)
    tasks = np.eye(2)[:, :, None]  # view v is output v
    model = cs.VectorValuedRegressor("precomputed", alpha=0.1, combination=tasks, operator=M, operator_penalty=0.4)
    model.fit(gram_views([K, K]), Y)
    whole = np.kron(np.eye(2), K)  # outputs one after the other
    J = np.kron(np.eye(2), np.diag((np.arange(N) < L).astype(float)))
    right = np.where(np.arange(N) < L, np.nan_to_num(Y).T, 0).ravel()
    a = np.linalg.solve(J @ whole + L * 0.1 * np.eye(2 * N) + L * 0.4 * M @ whole, right)
    assert_allclose(model.predict(gram_views([K, K])), (whole @ a).reshape(2, N).T, atol=1e-9)
