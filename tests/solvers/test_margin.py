"""The dual of maximum margin regression against a naive twin, a conic solver and itself by other ways."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_blobs

import consilience as cs
import reference
from consilience.kernels import RBF
from consilience.solvers import _by_class, margin_intercept
from consilience.solvers import margin as margin_solver
from consilience.solvers import margin_features as feature_solver
from consilience.solvers._coordinates import Variables, dense_steps, sparse_steps
from consilience.solvers.margin import KernelRows, solve_margin
from consilience.solvers.margin_intercept import intercept_suffices, solve_margin_intercept
from consilience.solvers.margin_labels import LabelKernel, LabelRows

KINDS = ("simplex", "indicator", "vectors")


def blobs(n=90, T=4, spread=4.0, seed=0):
    X, y = make_blobs(n, 3, centers=T, cluster_std=spread, random_state=seed)
    return X / 5, y


def rows_of(K, memory=1e9, single=False, seen=None):
    """Return what the solver asks for, from a whole matrix; `seen` gets the rows and the sizes that were filled."""

    def against(columns, dtype):
        def fill(which, out):
            assert out.dtype == dtype
            out[...] = K[np.ix_(which, columns)]
            if seen is not None:
                seen.append((which, out))
            return out

        return fill

    return KernelRows(against, K.diagonal().copy(), memory, single)


def labels_of(kind, y, T):
    if kind == "simplex":
        return LabelKernel.of_vectors(y, cs.simplex_vectors(T), (1.0, -1 / (T - 1)))
    if kind == "indicator":
        return LabelKernel.of_vectors(y, np.eye(T), (1.0, 0.0))
    return LabelKernel.of_vectors(y, np.random.default_rng(0).normal(size=(T, 2)))


def solve(K, kind, y, T, C=1.0, **how):
    given = {name: how.pop(name) for name in ("memory", "single", "seen") if name in how}
    upper = np.broadcast_to(C, len(y)).astype(float)
    return solve_margin(rows_of(K, **given), labels_of(kind, y, T), upper, **{"max_iter": 10_000, **how})


def full_matrix(K, kind, y, T):
    return K * labels_of(kind, y, T).A[np.ix_(y, y)]


# -- over rows of the kernel
@pytest.mark.parametrize("T", [2, 3, 25])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_the_dual_is_that_of_the_twin(T, kind, C):
    X, y = blobs(T=T, n=72)
    K, upper = RBF(0.5)(X), C * np.random.default_rng(0).uniform(0.5, 2, 72)
    solution = solve(K, kind, y, T, upper, tol=1e-9)
    Q, (alpha, g) = full_matrix(K, kind, y, T), solution.x
    optimum = reference.margin_objective(Q, reference.margin_dual(Q, upper, np.ones(72), sweeps=4000), upper)
    assert solution.status == "converged"
    assert solution.gap <= 1e-9 * solution.objective
    np.testing.assert_allclose(solution.objective, reference.margin_objective(Q, alpha, upper), rtol=1e-9)
    np.testing.assert_allclose(solution.objective, optimum, rtol=1e-7)
    np.testing.assert_allclose(g, Q @ alpha - 1, atol=1e-8)
    assert solution.objective - optimum <= solution.gap + 1e-9 * optimum


@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_is_that_of_a_conic_solver(cp, kind):
    X, y = blobs(n=60, T=5)
    K = RBF(0.3)(X)
    root = np.linalg.cholesky(full_matrix(K, kind, y, 5) + 1e-11 * np.eye(60))
    alpha = cp.Variable(60)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root.T @ alpha) - cp.sum(alpha)), [alpha >= 0, alpha <= 2])
    program.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11)
    solution = solve(K, kind, y, 5, 2.0, tol=1e-10)
    np.testing.assert_allclose(solution.objective - solution.gap, -program.value, rtol=1e-6)


@pytest.mark.parametrize(("kind", "T"), [(kind, T) for kind in ("simplex", "indicator") for T in (3, 25, 60)])
def test_class_by_class_is_the_same_as_all_at_once(T, kind, monkeypatch):
    X, y = blobs(n=400, T=T, spread=6.0)
    K = RBF(0.5)(X)
    monkeypatch.setattr(margin_solver, "_MANY", 2)
    by_class = solve(K, kind, y, T, tol=1e-8)
    monkeypatch.setattr(margin_solver, "_class_by_class", lambda _: False)
    at_once = solve(K, kind, y, T, tol=1e-8)
    assert by_class.status == at_once.status == "converged"
    np.testing.assert_allclose(by_class.objective, at_once.objective, rtol=2e-8)
    np.testing.assert_allclose(by_class.x[0], at_once.x[0], atol=1e-3)


def test_label_vectors_taken_together_are_the_same_as_in_the_rows(monkeypatch):
    X, y = blobs(n=200, T=4)
    K = RBF(0.5)(X)
    together = solve(K, "vectors", y, 4, tol=1e-9)
    assert labels_of("vectors", y, 4).few
    monkeypatch.setattr(LabelKernel, "few", False)
    np.testing.assert_allclose(solve(K, "vectors", y, 4, tol=1e-9).objective, together.objective, rtol=2e-9)


@pytest.mark.parametrize("memory", [1e4, 1e5, 1e6])
def test_a_small_cache_changes_nothing(memory, monkeypatch):
    X, y = blobs(n=600, T=3, spread=6.0)
    K, seen = RBF(0.5)(X), []
    whole = solve(K, "simplex", y, 3, tol=1e-7)
    monkeypatch.setattr(margin_solver, "_BLOCK", 16)
    small = solve(K, "simplex", y, 3, tol=1e-7, memory=memory, seen=seen)
    assert small.status == "converged"
    np.testing.assert_allclose(small.objective, whole.objective, rtol=2e-7)
    assert max(out.size for _, out in seen) <= 600 * 16


def test_neighboring_classes_share_a_kernel_as_long_as_its_rows_fit():
    most = _by_class._ROWS
    sizes = np.array([most // 2, most // 2, 0, 1, most - 1, 2 * most, 3, 4, most])
    assert list(_by_class._together(sizes)) == [[0, 1], [3, 4], [5], [6, 7], [8]]


def test_rows_are_computed_only_for_samples_that_become_active():
    X, y = blobs(n=1500, T=3, spread=0.5)
    seen = []
    solution = solve(RBF(0.5)(X), "simplex", y, 3, tol=1e-3, seen=seen)
    assert solution.status == "converged"
    assert len(np.unique(np.concatenate([which for which, _ in seen]))) < 300


def test_samples_at_their_bounds_are_left_out_for_a_while(monkeypatch):
    left, leave = [], margin_solver._Problem.leave
    monkeypatch.setattr(
        margin_solver._Problem, "leave", lambda self, rest: (left.append(rest.sum()), leave(self, rest))[1]
    )
    X, y = blobs(n=1000, T=3, spread=1.0)
    K = RBF(0.5)(X)
    solution = solve(K, "simplex", y, 3, tol=1e-7, memory=8 * 1000 * 200)
    alpha, g = solution.x
    assert left
    assert solution.status == "converged"
    np.testing.assert_allclose(g, full_matrix(K, "simplex", y, 3) @ alpha - 1, atol=1e-9)


@pytest.mark.parametrize("single", [True, False])
def test_warm_starts_and_single_precision(single):
    X, y = blobs(n=300, T=4)
    K, seen = RBF(0.5)(X), []
    how = {"tol": 1e-5, "single": single, "seen": seen}
    cold, first = solve(K, "simplex", y, 4, 2.0, **how), solve(K, "simplex", y, 4, **how)
    warm = solve(K, "simplex", y, 4, 2.0, x0=first.x[0], **how)
    steps = [which for which, out in seen if out.dtype == np.float32]
    assert bool(steps) == single
    if single:  # double precision measures the gap of a solution alone: each row with α > 0 is computed once
        measured = np.concatenate([which for which, out in seen if out.dtype == np.float64])
        assert len(measured) == sum(np.count_nonzero(solution.x[0]) for solution in (cold, first, warm))
    assert {part.dtype for solution in (cold, first, warm) for part in solution.x} == {np.dtype(np.float64)}
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=3e-5)
    Q = full_matrix(K, "simplex", y, 4)
    np.testing.assert_allclose(warm.objective, reference.margin_objective(Q, warm.x[0], np.full(300, 2.0)), rtol=1e-5)
    assert solve(K, "simplex", y, 4, x0=first.x[0], **how).n_iter <= 1


def test_double_precision_follows_where_single_precision_is_not_enough():
    X, y = blobs(n=100, T=3)
    seen = []
    solve(RBF(0.1)(X), "simplex", y, 3, 101.0, tol=1e-3, single=True, seen=seen)  # Q_ii·upper is above 100
    assert {out.dtype for _, out in seen} == {np.dtype(np.float64)}


def test_newton_steps_make_nearly_singular_kernels_affordable():
    """Their ridge shortens steps only: objective and gap are those of the kernel itself."""
    X, y = load_iris(return_X_y=True)
    K = RBF(1e-3)(X)
    solution = solve(K, "simplex", y, 3, 100.0, tol=1e-6, max_iter=2000)
    assert solution.status == "converged"
    Q, (alpha, g) = full_matrix(K, "simplex", y, 3), solution.x
    np.testing.assert_allclose(g, Q @ alpha - 1, atol=1e-9)
    primal, dual = reference.margin_objective(Q, alpha, np.full(150, 100.0)), alpha.sum() - 0.5 * alpha @ Q @ alpha
    np.testing.assert_allclose([solution.objective, solution.gap], [primal, primal - dual], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", ["simplex", "indicator"])  # all at once, class by class
def test_the_gap_is_returned_if_passes_run_out(kind):
    X, y = blobs(n=200)
    solution = solve(RBF(0.5)(X), kind, y, 4, tol=1e-12, max_iter=3)
    assert (solution.status, solution.n_iter) == ("max_iter", 3)
    assert solution.gap > 0


def test_indefinite_kernels_are_found():
    X, y = blobs(n=40, T=2)
    K, how = 2 * np.eye(40) - RBF(0.5)(X), {"tol": 1e-6, "max_iter": 100}
    for solver in (solve_margin, solve_margin_intercept):
        assert solver(rows_of(K), labels_of("simplex", y, 2), np.full(40, 100.0), **how).status == "indefinite"


# -- over features
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_features_have_the_solution_of_their_kernel(sparse, kind):
    X, y = blobs(n=80, T=4)
    Phi, labels = np.column_stack([X, X**2, np.zeros(80)]), labels_of(kind, y, 4)
    upper, given = np.random.default_rng(1).uniform(0.5, 2, 80), sp.csr_array(Phi) if sparse else Phi
    for shift in (0.0, 0.7):
        target = np.linspace(0.5, 1.5, 80)
        how = {"target": target, "shift": shift, "tol": 1e-9, "max_iter": 20_000}
        solution = solve_margin(given, labels, upper, **how)
        kernel = solve_margin(rows_of(Phi @ Phi.T), labels, upper, **how)
        alpha, g = solution.x
        assert solution.status == "converged"
        np.testing.assert_allclose(solution.objective, kernel.objective, rtol=1e-8)
        np.testing.assert_allclose(g, full_matrix(Phi @ Phi.T + shift, kind, y, 4) @ alpha - target, atol=1e-8)
        warm = solve_margin(given, labels, upper, target, shift, tol=1e-8, max_iter=100, x0=alpha)
        assert warm.n_iter <= 4


@pytest.mark.parametrize("sparse", [False, True])
def test_a_turn_over_features_puts_first_those_that_no_bound_holds(sparse):
    """With features that do not interact, each variable moves to its own minimum, or to the bound before it."""
    Phi, target = np.diag([1.0, 2.0, 1.0, 1.0, 1.0]), np.array([0.5, 1.0, -3.0, -0.1, 4.0])
    a, order, W = np.zeros(5), np.array([2, 0, 3, 4, 1]), np.zeros((1, 5))
    variables = Variables(a, np.ones(5), target, np.diag(Phi) ** 2, np.zeros(5, dtype=np.int64))
    rows, labels = sp.csr_array(Phi), LabelRows.of_vectors(np.ones((1, 1)))
    matrix = (rows.data, rows.indices, rows.indptr) if sparse else Phi
    largest, kept = (sparse_steps if sparse else dense_steps)(order, matrix, labels, W, variables, 1.0)
    np.testing.assert_array_equal(a, [0.5, 0.25, 0, 0, 1])
    np.testing.assert_array_equal(W, [a * np.diag(Phi)])
    assert (largest, kept) == (4.0, 4)
    assert list(order) == [0, 3, 4, 1, 2]  # the gradient of sample 2 is 3, that of sample 3 is within 1


def test_turns_over_features_leave_out_samples_at_their_bounds(monkeypatch):
    X, y = blobs(n=300, T=3, spread=1.0)
    taken, Phi = [], np.column_stack([X, X**2])
    monkeypatch.setattr(
        feature_solver, "dense_steps", lambda order, *rest: (taken.append(len(order)), dense_steps(order, *rest))[1]
    )
    labels, upper = labels_of("simplex", y, 3), np.ones(300)
    solution = solve_margin(Phi, labels, upper, tol=1e-6, max_iter=10_000)
    alpha, g = solution.x
    assert solution.status == "converged"
    assert taken[0] == 300
    assert np.median(taken) < 150
    assert np.count_nonzero((alpha > 0) & (alpha < 1)) < 150  # the others rest at a bound
    np.testing.assert_allclose(g, full_matrix(Phi @ Phi.T, "simplex", y, 3) @ alpha - 1, atol=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_newton_steps_end_where_the_gradient_of_variables_between_their_bounds_is_zero(seed):
    """Those that meet a bound stay there, and the others move on to the least value of what is left."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(12, 12))
    Q, target, start, upper = F @ F.T + np.eye(12), 3 * rng.normal(size=12), rng.uniform(0.1, 0.9, 12), np.ones(12)
    found = margin_solver._newton(Q, Q @ start - target, start, upper)
    inside = (found > 0) & (found < upper)
    assert not inside.all()
    np.testing.assert_allclose((Q @ found - target)[inside], 0, atol=1e-9)

    def value(a):
        return a @ Q @ a / 2 - target @ a

    assert value(found) < value(start)


# -- with an intercept
def test_when_an_intercept_suffices():
    assert intercept_suffices(np.eye(3))
    assert intercept_suffices(np.ones((1, 1)))
    assert not intercept_suffices(cs.simplex_vectors(4))
    assert not intercept_suffices(np.array([[1.0], [-2.0]]))


def test_where_an_intercept_suffices_no_sample_has_a_part_in_the_solution():
    """Then b alone has a margin of 1 everywhere: W = 0, and the optimum is 0."""
    X, y = blobs(n=60, T=3)
    solution = solve_margin_intercept(
        rows_of(RBF(0.5)(X)), labels_of("indicator", y, 3), np.ones(60), tol=1e-8, max_iter=1000
    )
    alpha, _, b = solution.x
    assert solution.status == "converged"
    assert (solution.objective, solution.gap) == (0, 0)
    assert not alpha.any()
    assert (b >= 1).all()


def test_the_gap_with_an_intercept_counts_what_does_not_balance(monkeypatch):
    """Without the multiplier and the penalty, the solver ends far from balance, and the gap shows it."""
    X, y = blobs(n=60, T=3)
    K, labels, ones = RBF(0.5)(X), labels_of("simplex", y, 3), np.ones(60)
    right = solve_margin_intercept(rows_of(K), labels, ones, tol=1e-8, max_iter=1000)
    monkeypatch.setattr(
        margin_intercept,
        "solve_margin",
        lambda design, labels, upper, target, shift, **how: solve_margin(design, labels, upper, **how),
    )
    wrong = solve_margin_intercept(rows_of(K), labels, ones, tol=1e-8, max_iter=1000, rounds=3)
    assert right.status == "converged"
    assert wrong.status == "max_iter"
    assert wrong.objective - right.objective <= wrong.gap + 1e-8
    assert wrong.gap > 1e-3 * wrong.objective
