"""Co-regularized and manifold learning against the paper's own system, its special cases and other programs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, TimeSeriesSplit, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import consilience as cs
import reference
from cases import gram_views, normal_views, random_mask
from consilience.batch import _fit
from consilience.kernels import RBF, Linear, Precomputed, multi_task, output_graph
from consilience.kernels.graphs import kernel_neighbors, laplacian, nearest_neighbors
from consilience.solvers import coupled
from consilience.solvers.box_qp import class_qp
from consilience.solvers.coregularized import Penalties, couple
from consilience.solvers.coupled import CoupledGrams, ridge_residuals
from consilience.solvers.design import GramDesign
from consilience.solvers.sphere import sphere_least_squares
from consilience.solvers.weights import alternate_weights, learn_weights, lower_bound, sphere_starts

PENALTIES = [(1e-3, 0, 0), (1e-3, 1e-2, 0), (1e-3, 0, 1e-3), (1e-3, 1e-2, 1e-3), (0.1, 1e-7, 0), (1e-5, 1e-3, 1e-4)]


def problem(seed=0, N=40, l=15, m=3, P=2, kernel="rbf", missing=0.0):
    """Gram matrices and Laplacians of random views, zero where rows are missing; labeled rows come first."""
    rng = np.random.default_rng(seed)
    present = random_mask(rng, N, m, missing)
    grams, graphs = [], []
    for v in range(m):
        A = rng.normal(size=(N, 3))
        W = RBF(0.2)(A)
        K = W if kernel == "rbf" else Linear()(A)
        there = present[:, v]
        grams.append(K * there * there[:, None])
        graphs.append(laplacian(W * there * there[:, None]))
    return grams, graphs, rng.normal(size=(l, P)), rng.normal(size=m), present


def targets(Y, N):
    return np.vstack([Y, np.full((N - len(Y), Y.shape[1]), np.nan)])


def fitted(penalties, grams, graphs, Y, weights=None, mask=None, **more):
    """Fit the ridge estimator on Gram matrices and Laplacians; return it and its data."""
    X = gram_views(grams, mask=mask)
    names = ("alpha", "agreement_penalty", "graph_penalty")
    graph = {f"v{v}": L for v, L in enumerate(graphs)}
    model = cs.CoRegularizedRidge("precomputed", graph=graph, **dict(zip(names, penalties, strict=True)), **more)
    return model.fit(X, targets(Y, len(grams[0])), weights), X


def coefficients(model, N):
    """Return the dual coefficients of all samples, zero for those that are not kept."""
    found = np.zeros((len(model.dual_coef_), N, model.dual_coef_.shape[2]))
    found[:, model.support_] = model.dual_coef_
    return found


def normal(n, widths=(3, 2), outputs=(), seed=0, labeled=None):
    """Return normal views a, b, .. and normal targets, missing after the labeled ones."""
    y = np.random.default_rng(seed + 1).normal(size=(n, *outputs))
    y[n if labeled is None else labeled :] = np.nan
    return normal_views(n, widths, seed), y


def cancer(n=None, scaled=False):
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    return (cs.PerView(StandardScaler()).fit_transform(X[:n]) if scaled else X[:n]), y[:n]


def digits(n=None):
    X, y = cs.datasets.load_digits_views(return_X_y=True)
    return X[:n], y[:n]


# -- the structured solver is the paper's system
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("R", [None, multi_task(2, 0.3), np.ones((2, 2))], ids=["I", "task", "rank1"])
def test_equals_the_literal_system(kernel, penalties, R):
    grams, graphs, Y, c, _ = problem(kernel=kernel)
    expected = np.array(reference.coregularized_ridge(grams, graphs, Y, *penalties, c, R))
    model, X = fitted(penalties, grams, graphs, Y, view_weights=c, output_kernel=R)
    outputs = model.view_decision_function(X)
    for v, K in enumerate(grams):
        f = K @ expected[v] @ (np.eye(2) if R is None else R)
        assert np.abs(outputs[:, v] - f).max() <= 1e-8 * np.abs(f).max()
    if R is None and kernel == "rbf" and penalties in PENALTIES[:4]:
        assert np.abs(coefficients(model, 40) - expected).max() <= 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_missing_views_and_weights_minimize_the_objective(penalties, missing):
    grams, graphs, Y, c, present = problem(missing=missing)
    s = np.random.default_rng(1).integers(1, 4, size=40).astype(float)
    expected = reference.coregularized_least_squares(grams, graphs, present, Y, s, *penalties, c)
    model, X = fitted(penalties, grams, graphs, Y, s, mask=present, view_weights=c)
    outputs = model.view_decision_function(X)
    for v in range(3):
        f, there = expected[v], present[:, v]
        assert np.abs(outputs[there, v] - f[there]).max() <= 1e-10 * np.abs(f).max()


def test_the_objective_is_that_of_the_coefficients():
    grams, graphs, Y, c, present = problem(missing=0.3)
    model, X = fitted((1e-2, 1e-2, 1e-3), grams, graphs, Y, mask=present, view_weights=c)
    f, a = np.nan_to_num(model.view_decision_function(X)), coefficients(model, 40)
    value = np.mean(np.sum((Y - model.predict(X)[:15]) ** 2, axis=1))
    for v in range(3):
        value += 1e-2 * np.sum(a[v] * f[:, v]) + 1e-3 * np.sum(f[:, v] * (graphs[v] @ f[:, v]))
        for w in range(v):
            value += 1e-2 * np.sum(((f[:, v] - f[:, w]) ** 2)[present[:, v] & present[:, w]])
    assert model.certificate().objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("graph", ["kernel", "kernel_normalized"])
def test_a_weight_counts_rows_unlabeled_ones_too(graph):
    data, y = normal(30, labeled=12)
    s = np.random.default_rng(0).integers(0, 3, size=30)
    twice = np.repeat(np.arange(30), s)
    model = cs.CoRegularizedRidge(RBF(0.3), agreement_penalty=1e-2, graph_penalty=1e-3, graph=graph)
    weighted = model.fit(data, y, sample_weight=s).predict(data)
    repeated = model.fit({name: block[twice] for name, block in data.items()}, y[twice]).predict(data)
    assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("penalties", PENALTIES[:4])
def test_labeled_kernel_is_the_papers_q(penalties):
    grams, graphs, _, c, _ = problem()
    alpha, agreement, graph = penalties
    expected = reference.coregularized_labeled_kernel(grams, graphs, 15, *penalties, c)
    design = GramDesign.of(grams, 15, laplacians=graphs)
    found = CoupledGrams(design, ridge=alpha, agreement_penalty=agreement, graph_penalty=graph).labeled_kernel(c)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_single_precision_stays_single_and_close():
    data, y = normal(60, (3, 4))
    single = {name: block.astype(np.float32) for name, block in data.items()}
    model = cs.CoRegularizedRidge(RBF(0.3), alpha=1e-2, agreement_penalty=1e-2, graph_penalty=1e-3)
    design = next(_fit.designs(model, _fit.read_training(model, single, y, None, use_unlabeled=True)))
    assert all(K.dtype == np.float32 for K in design.grams)
    assert couple(design, Penalties(1e-2, 1e-2, 0.0)).H.dtype == np.float32
    exact = model.fit(data, y).predict(data)
    assert_allclose(model.fit(single, y).predict(single), exact, atol=2e-3)
    data, y = normal(300, (20, 20), labeled=30)
    data["b"] = data["b"].astype(np.float32)
    mixed = cs.CoRegularizedRidge("linear", graph_penalty=1e-4, graph="knn").fit(data, y)
    assert mixed.certificate().status == "exact"


# -- special cases stated by the paper
def test_degenerate_kernel_has_the_closed_form_of_appendix_c():
    N, l, m, alpha = 9, 4, 3, 0.05
    Y = np.random.default_rng(0).normal(size=(l, 2))
    Y_C = np.zeros((N * m, 2))
    Y_C[: l * m] = np.kron(Y, np.full((m, 1), 1 / m))
    J = (np.arange(N * m) < l * m).astype(float)
    A = Y_C / (l * alpha) - np.outer(J, np.ones(N * m)) @ Y_C / (l**2 * m * alpha * (m * alpha + 1))
    ones = gram_views([np.ones((N, N))] * m)
    model = cs.CoRegularizedRidge("precomputed", alpha=alpha).fit(ones, targets(Y, N))
    for v, found in enumerate(coefficients(model, N)):
        assert_allclose(found, A[v::m], rtol=1e-10, atol=1e-12)
    wide = cs.CoRegularizedRidge(RBF(1e-12), alpha=alpha).fit(normal(N)[0]["b"], targets(Y, N))
    assert_allclose(wide.predict(np.zeros((1, 2)))[0], Y.mean(axis=0) / (1 + alpha), rtol=1e-6)


def test_supervised_ridge_is_kernel_ridge_and_one_view_is_regularized_least_squares():
    grams, _, Y, c, _ = problem(N=30, l=30)
    K = sum(weight**2 * G for weight, G in zip(c, grams, strict=True))
    expected = KernelRidge(alpha=30 * 1e-3, kernel="precomputed").fit(K, Y).predict(K)
    model = cs.CoRegularizedRidge("precomputed", alpha=1e-3, view_weights=c).fit(gram_views(grams), Y)
    assert_allclose(model.predict(gram_views(grams)), expected, rtol=1e-9, atol=1e-10)
    # one view: vector-valued and Laplacian regularized least squares
    (K,), _, Y, _, _ = problem(N=12, l=12, m=1)
    R = multi_task(2, 0.4)
    a = np.linalg.solve(np.kron(K, R) + 12 * 1e-2 * np.eye(24), Y.ravel()).reshape(12, 2)
    model = cs.CoRegularizedRidge("precomputed", alpha=1e-2, output_kernel=R).fit(gram_views([K]), Y)
    assert_allclose(model.predict(gram_views([K])), K @ a @ R, rtol=1e-9)
    (K,), (L,), Y, _, _ = problem(m=1, P=1)
    J = np.diag((np.arange(40) < 15).astype(float))
    a = np.linalg.solve(J @ K + 15 * 1e-3 * np.eye(40) + 15 * 1e-2 * L @ K, np.vstack([Y, np.zeros((25, 1))]))
    model, X = fitted((1e-3, 0, 1e-2), [K], [L], Y)
    assert_allclose(model.predict(X), K @ a, rtol=1e-9, atol=1e-12)


def test_two_views_are_co_regularized_least_squares():
    """The kernel of Sindhwani and Rosenberg (2008): s - μ d (I + μS)⁻¹ d, s the sum and d the difference."""
    grams, _, _, _, _ = problem(m=2)
    a, mu = 0.3, 0.7
    S, D = (grams[0] + grams[1]) / a, (grams[0] - grams[1]) / a
    expected = (S - mu * D @ np.linalg.solve(np.eye(40) + mu * S, D))[:15, :15]
    found = CoupledGrams(GramDesign.of(grams, 15), ridge=a, agreement_penalty=mu).labeled_kernel(np.ones(2))
    assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_multi_task_norm_is_that_of_lemma_22():
    rng = np.random.default_rng(0)
    K, A = RBF(0.2)(rng.normal(size=(10, 2))), rng.normal(size=(10, 4))
    lam = 0.3
    R = multi_task(4, lam)
    F = A @ R  # f^k = Σ_i k(·, x_i) F_ik, so <f^k, f^j> = F_k' K F_j
    inner = F.T @ K @ F
    norm = np.trace(A.T @ K @ A @ R)
    mean = np.eye(4) - 1 / 4
    assert norm == pytest.approx(lam * np.trace(inner) + (1 - lam) * np.trace(mean @ inner @ mean))
    W = rng.random((4, 4))
    W = W + W.T
    R = output_graph(W, 0.5)
    inner = R.T @ A.T @ K @ A @ R
    pairs = sum(W[k, j] * (inner[k, k] - 2 * inner[k, j] + inner[j, j]) for k in range(4) for j in range(k))
    assert np.trace(A.T @ K @ A @ R) == pytest.approx(np.trace(inner) + 0.5 * pairs)


# -- least squares on the sphere
def sphere_cases():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 2))
    null = np.linalg.qr(np.column_stack([A, rng.normal(size=(8, 6))]))[0][:, -1]
    thin = np.outer(rng.normal(size=8), [1.0, 2.0])
    diagonal = np.vstack([np.diag([3.0, 1.0]), np.zeros((6, 2))])
    yield "full rank, far target", A, 10 * rng.normal(size=8), 0.5
    yield "full rank, near target", A, A @ np.array([0.1, 0.1]), 2.0  # γ* < 0
    yield "A'b = 0", A, null, 1.0
    yield "A = 0", np.zeros((8, 2)), null, 1.0
    yield "rank one, γ* > 0", thin, 50 * thin[:, 0], 1.0
    yield "rank one, length to make up", thin, 0.1 * thin[:, 0], 1.0  # case II
    yield "rank one, A'b = 0", thin, null - thin[:, 0] * (thin[:, 0] @ null) / (thin[:, 0] @ thin[:, 0]), 1.0
    yield "no part along the last direction", diagonal, np.eye(8)[0], 2.0  # left out by Theorem 16
    yield "equal singular values", np.vstack([np.eye(2), np.zeros((6, 2))]), np.eye(8)[2], 1.0
    yield "fewer rows than columns", rng.normal(size=(1, 2)), np.ones(1), 3.0
    for rank in (1, 3, 5):
        yield f"rank {rank} of 5", rng.normal(size=(40, rank)) @ rng.normal(size=(rank, 5)), rng.normal(size=40), 0.7


@pytest.mark.parametrize(("A", "b", "radius"), [pytest.param(*case[1:], id=case[0]) for case in sphere_cases()])
def test_sphere_least_squares_is_the_global_minimum(A, b, radius):
    x = sphere_least_squares(A, b, radius)
    assert np.linalg.norm(x) == pytest.approx(radius, rel=1e-10)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    around = np.array([np.cos(angles), np.sin(angles)])
    if A.shape[1] > 2:
        around = np.random.default_rng(0).normal(size=(A.shape[1], 20_000))
    around *= radius / np.linalg.norm(around, axis=0)
    least = np.linalg.norm(A @ around - b[:, None], axis=0).min()
    assert np.linalg.norm(A @ x - b) <= least + (1e-12 if A.shape[1] > 2 else 1e-9)


# -- learned weights
def weights_problem(agreement_penalty=1e-2, missing=0.0, seed=0):
    grams, _, Y, _, present = problem(seed, N=40, l=25, m=3, missing=missing)
    rows = [np.flatnonzero(there) for there in present.T]
    inner = [K[np.ix_(here, here)] for K, here in zip(grams, rows, strict=True)]
    design = GramDesign.of(inner, 25, rows=rows)
    system = CoupledGrams(design, ridge=25e-3, agreement_penalty=25 * agreement_penalty)
    u = np.random.default_rng(3).uniform(0.5, 2, size=25)
    return lambda c: system.evaluate_ridge(c, Y, u)


@pytest.mark.parametrize("agreement", [0.0, 1e-2])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_gradient_of_the_optimal_value(agreement, missing):
    evaluate = weights_problem(agreement, missing)
    c = np.array([0.5, -0.3, 0.8])
    _, gradient, curvature = evaluate(c)
    step = 1e-5
    for v, e in enumerate(np.eye(3)):
        slope = (evaluate(c + step * e)[0] - evaluate(c - step * e)[0]) / (2 * step)
        assert gradient[v] == pytest.approx(slope, rel=1e-5)
    assert (curvature is None) == (missing > 0)
    if curvature is not None:
        assert_allclose(2 * curvature @ c, gradient, rtol=1e-8)


@pytest.mark.parametrize("order", [2, 2.2, 3, 8])
@pytest.mark.parametrize("agreement", [0.0, 1e-3, 1e-1])
def test_the_bound_holds_everywhere_and_is_met(agreement, order):
    evaluate = weights_problem(agreement)
    rng = np.random.default_rng(0)
    starts = sphere_starts(3, 0.6, 5, np.random.RandomState(0), order)
    found = learn_weights(evaluate, starts, tol=1e-9, max_iter=200, order=order)
    assert found.status == "converged"
    assert found.gap <= 1e-9 * found.objective
    assert np.linalg.norm(found.x, order) == pytest.approx(0.6)
    for k in range(200):
        c = rng.normal(size=3) * (rng.random(3) > 0.2 * (k % 2))  # some views without weight
        if not c.any():
            continue
        c *= 0.6 / np.linalg.norm(c, order)
        value, _, curvature = evaluate(c)
        assert value >= found.objective * (1 - 1e-9)
        assert lower_bound(value, curvature, c, order) <= found.objective * (1 + 1e-9)


@pytest.mark.parametrize("order", [2, 2.2, 3, 8])
def test_the_bound_holds_for_an_objective_that_rises_with_the_weights(order):
    """For c'Ac with a positive definite A, which is linear in cc', no bound is above the minimum on the sphere."""
    A = np.array([[1.0, -0.9], [-0.9, 1.0]])
    angles = np.linspace(0.01, np.pi + 0.01, 200)
    around = np.column_stack([np.cos(angles), np.sin(angles)])
    around /= np.linalg.norm(around, order, axis=1, keepdims=True)
    values = np.sum(around @ A * around, axis=1)
    for c, value in zip(around, values, strict=True):
        assert lower_bound(value, A, c, order) <= values.min() * (1 + 1e-3)


def test_a_larger_order_brings_weights_closer_to_uniform():
    X, y = digits(150)
    model = cs.CoRegularizedRidgeClassifier(alpha=1e-3, view_weights="learned", random_state=0)
    spread, objectives = [], []
    for order in (2, 2.5, 3, 4, 100):
        model.set_params(weights_order=order).fit(X, y)
        c = np.abs(model.view_weights_)
        assert np.linalg.norm(c, order) == pytest.approx(np.linalg.norm(np.full(4, 0.25), order))
        assert model.certificate().gap <= 1e-6 * model.certificate().objective
        spread.append(c.max() - c.min())
        objectives.append(model.certificate().objective)
    assert (np.diff(spread) < 0).all()
    assert spread[-1] < 0.02
    assert (np.diff(objectives) > 0).all()  # each set of weights contains the next
    expected = model.set_params(weights_order=3).fit(X, y).view_weights_
    assert_allclose(model.set_params(weights_order=None).fit(X, y).view_weights_, expected)


def test_a_machine_learns_weights_of_the_same_order():
    X, y = digits(80)
    machine = cs.CoRegularizedSVC(alpha=1e-3, agreement_penalty=1e-4, view_weights="learned", random_state=0)
    c = machine.fit(X, y).view_weights_
    assert np.linalg.norm(c, 3) == pytest.approx(np.linalg.norm(np.full(4, 0.25), 3))
    assert machine.certificate().gap <= 1e-4 * machine.certificate().objective
    sparse = machine.set_params(weights_order=2).fit(X, y).view_weights_
    assert np.ptp(np.abs(sparse)) > np.ptp(np.abs(c))


def test_the_alternation_has_weights_of_given_euclidean_norm():
    X, y = digits(60)
    model = cs.CoRegularizedRidgeClassifier(view_weights="learned", weights_solver="alternating", tol=0.1)
    assert np.linalg.norm(model.fit(X, y).view_weights_) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="Leave `weights_order` out"):
        model.set_params(weights_order=3).fit(X, y)


def test_alternation_lowers_the_objective_and_never_beats_the_exact_weights():
    X, y = digits(150)
    model = cs.CoRegularizedRidgeClassifier(
        alpha=1e-4, agreement_penalty=1e-4, view_weights="learned", weights_order=2, random_state=0
    )
    exact = model.fit(X, y)
    best, gap = exact.solution_.objective, exact.solution_.gap
    assert gap <= 1e-6 * best
    uniform = cs.CoRegularizedRidgeClassifier(alpha=1e-4, agreement_penalty=1e-4).fit(X, y).solution_.objective
    assert best < uniform
    with pytest.warns(ConvergenceWarning, match="Raise `max_iter`"):
        published = model.set_params(weights_solver="alternating", max_iter=25).fit(X, y).solution_.objective
    assert best - gap <= published <= uniform
    model.set_params(validation_fraction=0.3, max_iter=4)
    with pytest.warns(ConvergenceWarning):
        chosen = model.fit(X, y)
    assert np.linalg.norm(chosen.view_weights_) == pytest.approx(0.5)
    assert chosen.solution_.gap is None
    # and it lowers the objective at every step
    grams, _, Y, _, _ = problem(N=40, l=25)
    system = CoupledGrams(GramDesign.of(grams, 25), ridge=25e-3, agreement_penalty=0.25)
    values = []

    def responses(weights):
        ((c),) = weights
        r, value = ridge_residuals(system.labeled_kernel(c), Y, np.ones(25))
        values.append(value)
        return [(value, system.responses(c, r)[0].reshape(3, -1).T, Y.ravel())]

    alternate_weights(responses, sphere_starts(3, 0.6, 1, np.random.RandomState(0)), tol=1e-6, max_iter=30)
    assert (np.diff(values) <= 1e-12 * values[0]).all()


def test_features_alternate_and_validate_too():
    data, y = normal(50)
    model = cs.CoRegularizedRidge(
        RBF(0.3), agreement_penalty=1e-2, view_weights="learned", weights_solver="alternating", n_restarts=2,
        max_iter=3, tol=0.5, random_state=0,
    )  # fmt: skip
    for fraction in (None, 0.4):
        expected = model.set_params(n_components=None, validation_fraction=fraction).fit(data, y).view_weights_
        assert_allclose(model.set_params(n_components=1.0).fit(data, y).view_weights_, expected, rtol=1e-6)


# -- penalties by held-out scores
@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize("graph_penalty", [0.0, 1e-3])
def test_held_out_scores_are_those_of_fits(cv, graph_penalty):
    data, y = normal(20, outputs=(2,), labeled=12)
    data["b"][4] = np.nan
    R = multi_task(2, 0.5)
    model = cs.CoRegularizedRidgeCV(
        RBF(0.3), alphas=[1e-2, 1e-1], agreement_penalties=[0, 1e-2, 1e-1], graph_penalty=graph_penalty, cv=cv,
        output_kernel=R,
    ).fit(data, y)  # fmt: skip

    def fit(alpha, agreement, Y, rate=1.0):
        return cs.CoRegularizedRidge(
            RBF(0.3), alpha=rate * alpha, agreement_penalty=rate * agreement, graph_penalty=rate * graph_penalty,
            output_kernel=R,
        ).fit(data, Y)  # fmt: skip

    folds = np.array_split(np.arange(12), cv or 12)
    results = model.cv_results_
    for alpha, agreement, score in zip(results["alpha"], results["agreement_penalty"], results["score"], strict=True):
        error = 0.0
        for fold in folds:
            hidden = y.copy()
            hidden[fold] = np.nan
            one = fit(alpha, agreement, hidden, 12 / (12 - len(fold)))  # lγ stays that of all labeled samples
            if not (agreement or graph_penalty):  # rows without a term have no part in f
                assert len(one.support_) == 12 - len(fold)
            error += np.sum((one.predict(data)[fold] - y[fold]) ** 2) / 2
        assert score == pytest.approx(-error / 12, rel=1e-7)
    best = results["score"].argmax()
    assert (model.alpha_, model.agreement_penalty_) == (results["alpha"][best], results["agreement_penalty"][best])
    same = fit(model.alpha_, model.agreement_penalty_, y)
    assert_allclose(model.predict(data), same.predict(data), rtol=1e-10)


def test_equal_ratios_share_a_factorization(monkeypatch):
    made = []
    whole = CoupledGrams.__init__
    monkeypatch.setattr(
        CoupledGrams, "__init__", lambda self, *args, **named: (made.append(named), whole(self, *args, **named))[1]
    )
    grid = 10.0 ** np.arange(-5, 0)
    model = cs.CoRegularizedRidgeClassifierCV(alphas=grid, agreement_penalties=grid).fit(*cancer(100))
    assert len(made) == 9 + 1  # p + q - 1, and the fit
    assert len(model.cv_results_["score"]) == 25
    assert model.best_score_ == model.cv_results_["score"].max() > 0.9


def test_folds_that_overlap_and_those_that_do_not_fit():
    X, y = cancer(120)
    splits = ShuffleSplit(3, test_size=0.2, random_state=0)
    model = cs.CoRegularizedRidgeClassifierCV(RBF(1e-4), alphas=[1e-3], cv=splits).fit(X, y)
    right = []
    for train, test in splits.split(y):
        one = cs.CoRegularizedRidgeClassifier(RBF(1e-4), alpha=1e-3 * 120 / len(train)).fit(X[train], y[train])
        right += (one.predict(X[test]) == y[test]).tolist()
    assert model.best_score_ == pytest.approx(np.mean(right))
    with pytest.raises(ValueError, match="must train on all labeled samples that it does not test"):
        cs.CoRegularizedRidgeClassifierCV(cv=TimeSeriesSplit(3)).fit(X, y)


# -- support vector machines
def svm_optimum(cp, grams, graphs, of, codes, u, penalties, c, present=None):
    """Solve the primal program by a conic solver, f_v = K_v a_v."""
    alpha, agreement, graph = penalties
    N, l, m = len(grams[0]), len(of), len(grams)
    present = np.ones((N, m), dtype=bool) if present is None else present
    nu = np.abs(c).sum() / (present @ np.abs(c))
    roots = [np.linalg.cholesky(K + 1e-9 * np.eye(N)) for K in grams]
    b = [cp.Variable((N, codes.shape[1])) for _ in grams]
    f = [(np.diag(present[:, v]) @ roots[v]) @ b[v] for v in range(m)]
    g = cp.multiply(np.repeat(nu[:l, None], codes.shape[1], 1), sum(c[v] * f[v][:l] for v in range(m)))
    margins = cp.pos(-(codes @ codes.T)[of] + g @ codes.T)
    loss = cp.sum(cp.multiply((np.arange(len(codes)) != of[:, None]) * (u / l)[:, None], margins))
    penalty = alpha * sum(cp.sum_squares(part) for part in b)
    for v in range(m):
        both = [np.diag(present[:, v] & present[:, w]) @ (f[v] - f[w]) for w in range(v)]
        penalty += agreement * sum(cp.sum_squares(part) for part in both)
        if graph:
            values, U = np.linalg.eigh(graphs[v])
            penalty += graph * cp.sum_squares((np.sqrt(np.maximum(values, 0))[:, None] * U.T) @ f[v])
    solved = cp.Problem(cp.Minimize(loss + penalty))
    solved.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return solved.value, [part.value for part in f]


@pytest.mark.parametrize("penalties", [(1e-2, 0, 0), (1e-2, 1e-2, 0), (1e-2, 0, 1e-2), (1e-2, 1e-2, 1e-2)])
@pytest.mark.parametrize("codes", ["simplex", "own", "ovr", "binary"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_svm_is_the_optimum_of_a_conic_solver(cp, penalties, codes, missing):
    grams, graphs, _, _, present = problem(N=24, l=16, m=2, missing=missing)
    c = np.array([0.7, 0.4])
    of = np.random.default_rng(1).permutation(np.arange(16) % (2 if codes == "binary" else 3))
    own = np.array([[1.0, 0.0], [0.0, 1.0], [-0.5, -0.5]])
    alpha, agreement, graph = penalties
    y = np.concatenate([of.astype(float), np.full(8, np.nan)])
    X = gram_views(grams, mask=present)
    model = cs.CoRegularizedSVC(
        "precomputed", alpha=alpha, agreement_penalty=agreement, graph_penalty=graph,
        graph={"v0": graphs[0], "v1": graphs[1]}, view_weights=c, tol=1e-9, class_weight={0.0: 2.0},
        class_vectors=own if codes == "own" else "ovr" if codes == "ovr" else "simplex",
    ).fit(X, y)  # fmt: skip
    u = np.where(of == 0, 2.0, 1.0)
    if codes == "ovr":
        each = [((of == k).astype(int), cs.simplex_vectors(2)) for k in range(3)]
    else:
        each = [(of, own if codes == "own" else cs.simplex_vectors(2 if codes == "binary" else 3))]
    expected = [svm_optimum(cp, grams, graphs, one, table, u, penalties, c, present) for one, table in each]
    proof = model.certificate()
    assert proof.gap <= 1e-6
    assert proof.objective == pytest.approx(sum(value for value, _ in expected), rel=1e-6)
    assert proof.residual < 1e-2
    assert model.view_decision_function(X).shape[:2] == (24, 2)
    if codes == "simplex" and penalties == (1e-2, 1e-2, 0) and not missing:
        f = c[0] * expected[0][1][0] + c[1] * expected[0][1][1]
        assert_allclose(model.decision_function(X), f @ cs.simplex_vectors(3).T, atol=2e-4)


def test_two_classes_without_agreement_are_scikit_learns_svc():
    """A problem that is odd in x needs no bias: -x has the other label, and the kernel changes sign."""
    half = np.random.default_rng(0).normal(size=(30, 3)) + 0.5
    A, y = np.vstack([half, -half]), np.repeat([1, -1], 30)
    K, alpha = A @ A.T + (A @ A.T) ** 3, 1e-2
    model = cs.CoRegularizedSVC("precomputed", alpha=alpha, tol=1e-8).fit(gram_views([K]), y)
    peer = SVC(C=1 / (2 * 60 * alpha), kernel="precomputed", tol=1e-8).fit(K, y)
    assert abs(peer.intercept_[0]) < 1e-6
    assert_allclose(model.decision_function(gram_views([K])), peer.decision_function(K), atol=1e-4)


def test_laplacian_svm(cp):
    """One view, two classes, a graph (Belkin, Niyogi and Sindhwani 2006): their dual, by a conic solver."""
    (K,), (L,), _, _, _ = problem(m=1)
    signs = np.where(np.arange(15) % 2, 1.0, -1.0)
    J = np.eye(40)[:, :15] * signs
    Q = J.T @ K @ np.linalg.solve(2 * 1e-2 * np.eye(40) + 2 * 1e-2 * L @ K, J)
    beta = cp.Variable(15)
    quadratic = cp.quad_form(beta, cp.psd_wrap((Q + Q.T) / 2))
    program = cp.Problem(cp.Maximize(cp.sum(beta) - 0.5 * quadratic), [beta >= 0, beta <= 1 / 15])
    program.solve(solver="CLARABEL")
    y = np.concatenate([signs, np.full(25, np.nan)])
    model = cs.CoRegularizedSVC("precomputed", alpha=1e-2, graph_penalty=1e-2, graph=L, tol=1e-9).fit(
        gram_views([K]), y
    )
    assert model.certificate().objective == pytest.approx(program.value, rel=1e-6)


def test_the_papers_steps_end_at_the_same_optimum():
    grams, _, _, _, _ = problem(N=12, l=12, m=2)
    of = np.arange(12) % 3
    Q = CoupledGrams(GramDesign.of(grams, 12), ridge=1e-1, agreement_penalty=1e-2).labeled_kernel(np.full(2, 0.5))
    alpha, _ = reference.simplex_smo(Q, of, 3, 1e-7, np.random.default_rng(0), 20_000)
    Q_S = 1.5 * np.eye(3) - 0.5
    free = np.arange(3) != of[:, None]
    found = class_qp(Q, Q_S, np.full((12, 3), 0.5), free / 12, tol=1e-9, max_iter=10_000)
    value = 0.25 * np.sum(alpha * (Q_S @ alpha @ Q)) - 0.5 * alpha.sum()
    assert found.gap - found.objective == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("vectors", ["simplex", "ovr"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("order", [2, 3])
def test_learned_weights_of_the_svm_are_no_worse_than_others(vectors, missing, order):
    rng = np.random.default_rng(0)
    of = rng.integers(3, size=60)
    data = {"good": np.eye(3)[of] + 0.6 * rng.normal(size=(60, 3)), "noise": rng.normal(size=(60, 3))}
    if missing:
        data["good"][:10] = np.nan

    def fit(weights, **more):
        return cs.CoRegularizedSVC(
            RBF(0.3), alpha=1e-2, agreement_penalty=1e-3, view_weights=weights, class_vectors=vectors, **more
        ).fit(data, of)

    model = fit("learned", tol=1e-4, random_state=0, weights_order=order)
    proof = model.certificate()
    assert (proof.gap is None) == missing or missing
    good, noise = np.abs(model.view_weights_)
    assert good > (2 if order == 2 else 1) * noise  # a larger order is closer to uniform
    for angle in np.linspace(0, np.pi, 12):
        direction = np.array([np.cos(angle), np.sin(angle)])
        length = np.linalg.norm([0.5, 0.5], order) / np.linalg.norm(direction, order)
        other = fit(length * direction).certificate().objective
        assert other >= proof.objective * (1 - 2e-4)
        assert missing or other >= proof.objective - proof.gap


def test_vectors_of_two_classes_are_the_problem_of_one():
    A, y = normal(40)[0]["b"], np.repeat([0, 1], 20)
    A[y == 1] += 1
    plain = cs.CoRegularizedSVC(RBF(0.5), alpha=1e-2, tol=1e-9).fit(A, y)
    coded = cs.CoRegularizedSVC(RBF(0.5), alpha=1e-2, tol=1e-9, class_vectors=[[-1.0], [1.0]]).fit(A, y)
    assert coded.decision_function(A).shape == (40,)
    assert_allclose(coded.decision_function(A), 2 * plain.decision_function(A), atol=1e-4)
    assert coded.certificate().objective == pytest.approx(plain.certificate().objective)


def test_svm_keeps_support_only():
    X, y = cancer()
    model = cs.CoRegularizedSVC(alpha=1e-3).fit(X, y)
    assert len(model.support_) < len(y) / 2
    assert model.dual_coef_.shape == (3, len(model.support_), 1)


# -- labels, outputs, graphs
def test_indicator_targets():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(120, 4))
    Y = (A[:, :3] + 0.1 * rng.normal(size=(120, 3)) > 0).astype(int)
    half = Y.astype(float)
    half[60:] = np.nan
    X = {"a": A[:, :2], "b": A[:, 1:]}
    for R in (None, output_graph(Y.T @ Y, 0.1)):
        model = cs.CoRegularizedRidgeClassifier(alpha=1e-3, agreement_penalty=1e-4, output_kernel=R).fit(X, half)
        predicted = model.predict(X)
        assert predicted.shape == (120, 3)
        assert set(np.unique(predicted)) <= {0, 1}
        assert (predicted[60:] == Y[60:]).mean() > 0.9
    found = cs.CoRegularizedRidgeClassifierCV(agreement_penalties=(0, 1e-4)).fit(X, sp.csr_array(Y))
    assert found.best_score_ > 0.9
    with pytest.raises(ValueError, match="An indicator of labels holds 0 and 1; y has 2"):
        model.fit(X, 2 * Y)
    with pytest.raises(ValueError, match="`class_weight` is for one class per sample"):
        cs.CoRegularizedRidgeClassifier(class_weight="balanced").fit(X, Y)


def test_graphs():
    rng = np.random.default_rng(0)
    A, f = rng.normal(size=(25, 3)), rng.normal(size=25)
    assert abs(nearest_neighbors(A, 4) - kernel_neighbors(Linear()(A), 4)).sum() == 0
    W = RBF(0.5)(A)
    for normalized in (False, True):
        g = f / np.sqrt(W.sum(axis=1)) if normalized else f
        pairs = sum(W[i, j] * (g[i] - g[j]) ** 2 for i in range(25) for j in range(i))
        assert f @ laplacian(W, normalized=normalized) @ f == pytest.approx(pairs)
    sparse = laplacian(nearest_neighbors(A, 4), normalized=True)
    assert sp.issparse(sparse)
    assert_allclose(sparse.toarray(), laplacian(nearest_neighbors(A, 4).toarray(), normalized=True))
    assert not laplacian(np.zeros((2, 2)), normalized=True).any()
    for lonely in (nearest_neighbors(A[:1]), kernel_neighbors(W[:1, :1])):
        assert lonely.shape == (1, 1)
    assert kernel_neighbors(W[:3, :3], 10).toarray().sum() == 6


def test_a_callable_and_a_matrix_give_the_graph_of_knn():
    X, y = digits(80)
    half = np.where(np.arange(80) % 3, np.nan, y)
    model = cs.CoRegularizedRidgeClassifier("linear", agreement_penalty=1e-3, graph_penalty=1e-3, graph="knn")
    expected = model.fit(X, half).decision_function(X)
    given = {name: laplacian(nearest_neighbors(X[name])) for name in X.names}
    dense = {**given, "pixels": given["pixels"].toarray()}
    for graph in (lambda data: laplacian(nearest_neighbors(data)), given, dense):
        assert_allclose(model.set_params(graph=graph).fit(X, half).decision_function(X), expected, atol=1e-8)


def test_a_row_that_lacks_a_view_takes_its_edges_along():
    data, y = normal(20, (2, 2))
    data["b"][3] = np.nan
    W, there = RBF(0.5)(data["a"]), np.arange(20) != 3
    L, less = laplacian(W), laplacian(W[np.ix_(there, there)])
    model = cs.CoRegularizedRidge(RBF(0.5), graph_penalty=1e-2, graph={"a": L, "b": L})
    expected = model.fit(data, y).predict(data)
    model.set_params(graph={"a": L, "b": lambda data: less})
    assert_allclose(model.fit(data, y).predict(data), expected, rtol=1e-9)
    data["b"][::3] = np.nan
    given = {"a": "knn", "b": laplacian(nearest_neighbors(data["a"]), normalized=True)}
    assert model.set_params(graph=given).fit(data, y).certificate().gap < 1e-9


# -- what may be missing
def test_views_of_unlabeled_rows_only():
    data, y = normal(20, (2, 2), labeled=10)
    data["b"][:10] = np.nan
    supervised = cs.CoRegularizedRidge(RBF(0.5)).fit(data, y)
    assert supervised.view_weights_.tolist() == [1.0]  # no labeled row has b
    alone = cs.CoRegularizedRidge(RBF(0.5)).fit(data["a"], y)
    assert_allclose(supervised.predict(data), alone.predict(data["a"]))
    both = cs.CoRegularizedRidge(RBF(0.5), agreement_penalty=1e-2).fit(data, y)
    assert both.view_weights_.tolist() == [0.5, 0.5]
    assert np.abs(both.predict({"b": data["b"][10:]})).min() > 0  # b learned from a on the rows that have both
    with pytest.raises(ValueError, match="No labeled sample has a weight above 0"):
        cs.CoRegularizedRidge().fit(data, y, sample_weight=np.isnan(y))


def test_one_sample_large_labels_and_weights_by_name():
    X = {"a": [[1.0]], "b": [[2.0]]}
    assert cs.CoRegularizedRidge(alpha=1.0).fit(X, [4.0]).predict(X)[0] == pytest.approx(4 * 0.5 / 1.5)
    gaps = pd.Series([2**60, 2**60 + 1, pd.NA, 2**60], dtype="Int64")  # whole numbers stay whole
    assert cs.CoRegularizedRidgeClassifier().fit(np.eye(4), gaps).classes_.tolist() == [2**60, 2**60 + 1]
    # weights of views by name and in order
    X, y = cancer()
    by_name = cs.CoRegularizedRidgeClassifier(view_weights={"worst": 1.0, "error": 0.0, "mean": -2.0}).fit(X, y)
    in_order = cs.CoRegularizedRidgeClassifier(view_weights=[-2.0, 0.0, 1.0]).fit(X, y)
    assert by_name.view_weights_.tolist() == [-2.0, 0.0, 1.0]
    assert_allclose(by_name.decision_function(X), in_order.decision_function(X))


def test_kernels_of_strings_and_grams_mix_and_features_of_grams_know_their_columns():
    names = ["anna", "hanna", "otto", "ottokar", "hannah", "karotte"]
    X = cs.Views({"name": names, "g": RBF(0.5)(np.arange(6.0)[:, None])}, precomputed=["g"])
    kernel = {"name": cs.kernels.Spectrum(2), "g": Precomputed()}
    model = cs.CoRegularizedRidgeClassifier(kernel, agreement_penalty=1e-2, graph_penalty=1e-2)
    assert model.fit(X, [1, 1, 0, np.nan, np.nan, 0]).predict(X[[3, 4]]).tolist() == [0, 1]
    A = normal(40)[0]["a"]
    K, y = RBF(0.2)(A), np.where(np.arange(30) % 2, A[:30, 0], np.nan)
    options = {"n_components": 10, "random_state": 0, "graph_penalty": 1e-3}
    expected = cs.CoRegularizedRidge(RBF(0.2), **options).fit(A[:30], y).predict(A[30:])
    found = cs.CoRegularizedRidge("precomputed", **options).fit(K[:30, :30], y).predict(K[30:, :30])
    assert_allclose(found, expected, atol=1e-8)


# -- half-labeled data in model selection
def test_folds_keep_unlabeled_rows_in_training():
    y = np.array(["a", None, "b", "a", "b", None, "a", "b"], dtype=object)
    folds = list(cs.LabeledKFold(3).split(np.zeros((8, 1)), y))
    assert len(folds) == cs.LabeledKFold(3).get_n_splits(None, y) == 3
    for train, test in folds:
        assert {1, 5} <= set(train)
        assert set(test) <= {0, 2, 3, 4, 6, 7}
        assert sorted([*train, *test]) == list(range(8))
    marked = np.array([0, -1, 1, 0, 1, -1, 0, 1])
    again = list(cs.LabeledKFold(3, unlabeled=-1).split(np.zeros((8, 1)), marked))
    assert all((a[1] == b[1]).all() for a, b in zip(folds, again, strict=True))
    groups = np.array([0, 9, 0, 1, 1, 9, 2, 2])
    for train, test in cs.LabeledKFold(GroupKFold(3)).split(np.zeros((8, 1)), y, groups):
        assert not set(groups[train]) & set(groups[test]) - {9}
    numbers = np.array([0.5, np.nan, 1.5, 2.5])
    for Y in (numbers, np.column_stack([numbers, numbers - 1])):
        assert [test.tolist() for _, test in cs.LabeledKFold(3).split(Y, Y)] == [[0], [2], [3]]
    assert cs.LabeledKFold(4).get_n_splits() == 4
    whole = np.r_[np.arange(19.0), np.nan]
    assert len(list(cs.LabeledKFold(3).split(np.zeros((20, 1)), whole))) == 3
    for X, Y, message in (
        (whole, None, "LabeledKFold needs y"),
        (np.zeros((3, 1)), whole, "X has 3 samples and y has 20"),
        (np.zeros((2, 1)), [None, None], "has no label"),
    ):
        with pytest.raises(ValueError, match=message):
            list(cs.LabeledKFold(3).split(X, Y))


def test_search_and_score_on_half_labeled_data():
    X, y = digits(200)
    named = np.array([f"digit {k}" for k in y], dtype=object)
    half = np.where(np.arange(200) < 60, named, None)
    model = cs.CoRegularizedRidgeClassifier(alpha=1e-4, graph="knn")
    grid = {"graph_penalty": [0.0, 1e-4], "agreement_penalty": [0.0, 1e-4]}
    search = GridSearchCV(model, grid, cv=cs.LabeledKFold(3)).fit(X, half)
    assert search.score(X[60:], named[60:].astype(str)) > 0.8
    scores = cross_val_score(model, X, half, cv=cs.LabeledKFold(3))
    assert scores.shape == (3,)
    assert (scores > 0.5).all()
    X, y = cancer()
    known = np.arange(len(y)) % 3 != 0
    half = np.where(known, y.astype(object), None)
    model = cs.CoRegularizedRidgeClassifier().fit(X, half)
    assert model.score(X, half) == np.mean(model.predict(X)[known] == y[known])
    numbers = np.where(known, X["mean"][:, 0], np.nan)
    regressor = cs.CoRegularizedRidge().fit(X, numbers)
    assert regressor.score(X, numbers) == regressor.score(X[known], numbers[known])


# -- looking into a model
def test_agreement_and_what_inspection_needs():
    X, y = digits()
    model = cs.CoRegularizedRidgeClassifier().fit(X[:200], y[:200])
    views = {name: X[name][200:260].copy() for name in X.names}
    views["pixels"][:5] = np.nan
    for name in list(views)[1:]:
        views[name][5] = np.nan
    found = cs.view_agreement(model, views)
    assert found.agreement.shape == found.spread.shape == (60,)
    assert np.isnan(found.agreement[5])
    assert np.isnan(found.spread[5])
    assert found.votes[0, 0] is None
    own = model.view_decision_function(views)
    votes = [model.classes_[own[10, v].argmax()] for v in range(4)]
    assert found.votes[10].tolist() == votes
    pairs = [(v, w) for v in range(4) for w in range(v)]
    assert found.agreement[10] == pytest.approx(np.mean([votes[v] == votes[w] for v, w in pairs]))
    squares = np.mean([np.sum((own[10, v] - own[10, w]) ** 2) for v, w in pairs])
    assert found.spread[10] == pytest.approx(np.sqrt(squares))
    regressor = cs.CoRegularizedRidge().fit(X[:50], y[:50].astype(float))
    assert set(cs.view_agreement(regressor, X[50:60])) == {"spread", "sample_names"}
    assert cs.view_agreement(cs.CoRegularizedSVC().fit(X[:50], y[:50]), X[50:60]).votes.shape == (10, 4)


def test_importances():
    rng = np.random.default_rng(0)
    of = rng.integers(2, size=300)
    data = cs.Views(good=of[:, None] + 0.3 * rng.normal(size=(300, 2)), noise=rng.normal(size=(300, 2)))
    train, test = ({name: data[name][rows] for name in data.names} for rows in np.split(np.arange(300), [200]))
    model = cs.CoRegularizedRidgeClassifier(view_weights=[3.0, -1.0]).fit(train, of[:200])
    test["noise"][:20] = np.nan
    found = cs.view_importances(model, test, of[200:])
    assert found.weight == {"good": 0.75, "noise": 0.25}
    assert found.n_samples == {"good": 80, "noise": 80}
    assert found.loss["good"] > 0.2 > abs(found.loss["noise"])
    without = model.predict({"noise": test["noise"][20:]})
    expected = model.score({k: v[20:] for k, v in test.items()}, of[220:]) - np.mean(without == of[220:])
    assert found.loss["good"] == pytest.approx(expected)
    assert found.score == model.score(test, of[200:])
    assert cs.view_importances(model, test, of[200:], scoring="roc_auc").score != found.score
    alone = cs.CoRegularizedRidgeClassifier().fit(data["good"], of)
    assert np.isnan(cs.view_importances(alone, data["good"], of).loss["view0"])


# -- certificates: nothing is claimed that is not proved, and rounding is reported
def test_certificates_speak():
    X, y = cancer()
    proof = cs.CoRegularizedRidgeClassifier(agreement_penalty=1e-3).fit(X, y).certificate()
    assert proof.status == "exact"
    assert 0 <= proof.gap <= 1e-12 * proof.objective
    assert str(proof).startswith("Objective 0.")
    svm = cs.CoRegularizedSVC(tol=1e-6).fit(X, y).certificate()
    assert svm.gap <= 1e-6 * svm.objective
    assert svm.dual == svm.objective - svm.gap
    assert "Optimality conditions hold to" in str(svm)
    learned = cs.CoRegularizedSVC(alpha=1e-4, agreement_penalty=1e-4, view_weights="learned").fit(*digits(150))
    assert learned.certificate().status == "converged"
    assert learned.certificate().gap <= 1e-4 * learned.certificate().objective


def test_learned_weights_of_missing_views_are_not_called_optimal():
    X, y = cancer(100)
    mask = np.random.default_rng(0).random((100, 3)) > 0.3
    mask[~mask.any(axis=1), 0] = True
    for model in (cs.CoRegularizedRidgeClassifier(), cs.CoRegularizedSVC()):
        model.set_params(view_weights="learned", random_state=0, n_restarts=2)
        proof = model.fit(cs.Views(X, mask=mask), y).certificate()
        assert proof.gap is None
        assert proof.status == "settled"
        assert "is not guaranteed" in str(proof)


@pytest.mark.parametrize("agreement", [0.0, 1e-2])
@pytest.mark.parametrize("model", [cs.CoRegularizedRidgeClassifier(), cs.CoRegularizedSVC(tol=1e-6)])
def test_single_precision_that_is_not_enough_becomes_double(model, agreement):
    X, y = cancer(100, scaled=True)
    single = cs.Views({name: X[name].astype(np.float32) for name in X.names})
    double = cs.Views({name: single[name].astype(np.float64) for name in X.names})
    model.set_params(kernel=RBF(0.1), alpha=1e-6, agreement_penalty=agreement, graph_penalty=1e-3)
    exact, found = model.fit(double, y).certificate(), model.fit(single, y).certificate()
    assert found.status == exact.status
    assert found.objective == pytest.approx(exact.objective, rel=1e-2)


def test_what_rounding_spoils_is_not_called_exact_and_jitter_is_reported(monkeypatch):
    for model in (cs.CoRegularizedRidgeClassifier(), cs.CoRegularizedSVC()):
        model.set_params(kernel=RBF(0.1), alpha=1e-10, agreement_penalty=1e4)
        with pytest.warns(ConvergenceWarning, match="Rounding .* the solution away from the optimum"):
            proof = model.fit(*cancer(100, scaled=True)).certificate()
        assert proof.gap > 1e-6 * proof.objective
    honest = coupled.cholesky_or_jitter
    monkeypatch.setattr(coupled, "cholesky_or_jitter", lambda H: (honest(H)[0], 1e-12))  # as if H were singular
    X, y = normal(30, (2, 3))
    for model, target in ((cs.CoRegularizedRidge(), y), (cs.CoRegularizedSVC(), y > 0)):
        with pytest.warns(ConvergenceWarning, match="so a small multiple of the identity was added"):
            assert model.set_params(agreement_penalty=0.1).fit(X, target).certificate().status == "jitter"


# -- what is refused, and how
BAD_CALLS = [
    (lambda: multi_task(2, 0), "`independence` must be greater than 0 and at most 1; got 0"),
    (lambda: output_graph(np.eye(2), -1), "`strength` must be at least 0; got -1"),
    (lambda: laplacian(-np.eye(2)), "must be at least 0; the smallest is -1"),
    (lambda: laplacian([[0, 1], [0, 0]]), "must be symmetric"),
    (lambda: laplacian([[0, np.nan], [np.nan, 0]]), "must be finite"),
    (
        lambda: cs.CoRegularizedRidge(output_kernel=np.triu(np.ones((2, 2)))).fit(np.eye(2), np.eye(2)),
        "is not symmetric",
    ),
    (lambda: cs.simplex_vectors(1), "`n_classes` must be at least 2; got 1"),
]


@pytest.mark.parametrize(("call", "sentence"), BAD_CALLS, ids=[sentence for _, sentence in BAD_CALLS])
def test_bad_output_kernels_graphs_and_vectors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
