"""The quadratic program of the multi-class support vector machine: its steps are damped, its solution is not."""

import numpy as np
import pytest

import consilience as cs
from consilience.solvers import box_qp
from consilience.solvers._class_steps import class_rows, settle_samples
from consilience.solvers.box_qp import class_qp, kkt_violations, primal_and_gap


def program(kind, n=60, T=4, rank=3):
    """Return a program whose kernel is singular: `rank` directions for n samples, each sample twice."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(n // 2, rank)), 2, axis=0)
    y = np.repeat(rng.integers(T, size=n // 2), 2)
    own = y[:, None] == np.arange(T)
    if kind == "simplex":
        vectors = cs.simplex_vectors(T)
        inner = vectors @ vectors.T
        return 1e3 * X @ X.T, inner, -inner[y], np.where(own, 0.0, 1 / n), -np.ones((n, T))
    return 1e3 * X @ X.T, np.eye(T), np.ones((n, T)), np.full((n, T), 1 / n), np.where(own, 1.0, -1.0)


def dual_value(Q, Q_S, D, signs, alpha):
    A = signs * alpha
    return 0.25 * np.trace(A.T @ Q @ A @ Q_S) - np.sum(D * alpha)


@pytest.mark.parametrize("kind", ["simplex", "ovr"])
def test_damping_and_ridges_do_not_change_the_program(kind, cp):
    """Factors of a singular kernel need a ridge; objective, gap and violations are those of the kernel itself."""
    Q, Q_S, D, upper, signs = program(kind)
    solution = class_qp(Q, Q_S, D, upper, signs, tol=1e-9, max_iter=200)
    alpha = solution.x
    gradient = signs * (0.5 * Q @ (signs * alpha) @ Q_S) - D
    primal, gap = primal_and_gap(alpha, gradient, D, upper)
    assert solution.status == "converged"
    np.testing.assert_allclose([solution.objective, solution.gap], [primal, gap], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(solution.residual, kkt_violations(alpha, gradient, upper).max(), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(primal + dual_value(Q, Q_S, D, signs, alpha), gap, atol=1e-9)
    variable = cp.Variable(D.shape)
    values, vectors = np.linalg.eigh(Q_S)
    left = np.linalg.svd(Q)[0][:, :3] * np.sqrt(np.linalg.svd(Q)[1][:3])
    right = vectors * np.sqrt(np.maximum(values, 0))
    quadratic = 0.25 * cp.sum_squares(left.T @ cp.multiply(signs, variable) @ right)
    conic = cp.Problem(cp.Minimize(quadratic - cp.sum(cp.multiply(D, variable))), [variable >= 0, variable <= upper])
    conic.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    np.testing.assert_allclose(solution.objective - solution.gap, -conic.value, rtol=1e-6)


def test_a_warm_start_is_within_the_box_and_ends_at_once():
    Q, Q_S, D, upper, signs = program("simplex")
    first = class_qp(Q, Q_S, D, upper, signs, tol=1e-6, max_iter=200)
    again = class_qp(Q, Q_S, D, upper, signs, tol=1e-6, max_iter=200, x0=first.x)
    assert again.n_iter == 0
    far = class_qp(Q, Q_S, D, upper, signs, tol=1e-6, max_iter=200, x0=10 * np.ones_like(D))
    np.testing.assert_allclose(far.objective, first.objective, rtol=2e-6)


@pytest.mark.parametrize("steps", [1, 2, 5, 9, 14, 40])
def test_classes_that_do_not_interact_take_the_variables_that_violate_most_first(steps):
    """Samples that do not interact need one step each: to the minimum of their own, or to the bound before it."""
    rng = np.random.default_rng(0)
    factor, linear, upper, signs = 0.5, rng.normal(size=(1, 40)), np.full((1, 40), 2.0), rng.choice([-1.0, 1], (1, 40))
    start = rng.uniform(0, 2, size=(1, 40))
    x, gradient = start.copy(), factor * start - linear
    first = np.argsort(-kkt_violations(x, gradient, upper)[0])[:steps]
    class_rows(0, 1, np.eye(40), np.array([factor]), x, gradient, upper, signs, linear, 1e-15, steps)
    expected = start.copy()
    expected[0, first] = np.clip(linear[0, first] / factor, 0, 2)
    np.testing.assert_allclose(x, expected, atol=1e-14)
    np.testing.assert_allclose(gradient, factor * x - linear, atol=1e-14)


# -- the three kinds of steps
def random_program(kind, n=50, seed=0):
    """Return a program with weights, of which some are 0, and the vectors of the classes."""
    rng = np.random.default_rng(seed)
    T = {"one class": 1, "two classes": 2}.get(kind, 5)
    y = rng.integers(T, size=n)
    X = rng.normal(size=(T, 4))[y] + rng.normal(size=(n, 4))
    if kind == "duplicates":
        X[::2], y[::2] = X[1::2], y[1::2]
    Q = 1e3 * np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 20)
    vectors = cs.simplex_vectors(T) if T > 1 else np.ones((1, 1))
    if kind == "vectors":
        vectors = rng.normal(size=(T, 3))
    if kind == "flat":  # samples and classes that nothing depends on
        vectors = np.vstack([rng.normal(size=(T - 1, 3)), np.zeros(3)])
        Q[:3], Q[:, :3] = 0, 0
    if kind == "same vectors":
        vectors = np.ones((T, 1))
    inner = vectors @ vectors.T
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) / n
    own = (y[:, None] == np.arange(T)) & (T > 1)
    D = -inner[y] if T > 1 else np.ones((n, 1))
    return (Q, inner, D, np.where(own, 0.0, weights[:, None]), -np.ones((n, T)))


KINDS = ["simplex", "two classes", "one class", "duplicates", "vectors", "flat", "same vectors"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["splitting", "newton"])
def test_every_kind_of_program_reaches_the_optimum_of_a_conic_solver(kind, first, cp, monkeypatch):
    monkeypatch.setattr(box_qp, "_newton_cost", lambda *_: 2.0 if first == "splitting" else 0.0)
    Q, Q_S, D, upper, signs = random_program(kind)
    found = class_qp(Q, Q_S, D, upper, signs, tol=1e-7, max_iter=500)
    assert found.status == "converged"
    assert (found.x >= 0).all()
    assert (found.x <= upper).all()
    gradient = signs * (0.5 * Q @ (signs * found.x) @ Q_S) - D
    primal, gap = primal_and_gap(found.x, gradient, D, upper)
    np.testing.assert_allclose([found.objective, found.gap], [primal, gap], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.residual, kkt_violations(found.x, gradient, upper).max(), rtol=1e-6, atol=1e-10)
    left = np.linalg.eigh(Q)
    right = np.linalg.eigh(Q_S)
    roots = [vectors * np.sqrt(np.maximum(values, 0)) for values, vectors in (left, right)]
    variable = cp.Variable(D.shape)
    quadratic = 0.25 * cp.sum_squares(roots[0].T @ cp.multiply(signs, variable) @ roots[1])
    conic = cp.Problem(cp.Minimize(quadratic - cp.sum(cp.multiply(D, variable))), [variable >= 0, variable <= upper])
    conic.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    assert found.objective - found.gap == pytest.approx(-conic.value, rel=1e-6, abs=1e-9)


def test_a_program_without_curvature_is_solved_at_once():
    D = np.array([[1.0, -2.0], [0.0, 3.0]])
    found = class_qp(np.zeros((2, 2)), np.eye(2), D, np.full((2, 2), 0.5), tol=1e-9, max_iter=5)
    np.testing.assert_array_equal(found.x, [[0.5, 0], [0, 0.5]])
    assert (found.objective, found.gap, found.status) == (2.0, 0.0, "converged")


def test_one_sample_is_settled_exactly():
    """The variables of a sample that interact evenly are found by a root; in turns they reach the same point."""
    rng = np.random.default_rng(0)
    n, T = 200, 6
    for half in (0.5 * (1.2 * np.eye(T) - 0.2), np.eye(T) + 0.3, np.eye(T) - 1 / T):
        x, upper = np.zeros((n, T)), rng.uniform(size=(n, T)) * (rng.uniform(size=(n, T)) > 0.2)
        pushed, D = rng.normal(size=(n, T)), rng.normal(size=(n, T))
        signs, exact, turns = -np.ones((n, T)), x.copy(), x.copy()
        settle_samples(2.0, half, True, exact, pushed, D, upper, signs, 0.0)
        settle_samples(2.0, half, False, turns, pushed, D, upper, signs, 1e-13)
        slopes = [2 * signs * pushed - D + 2 * found @ half for found in (exact, turns)]
        assert max(kkt_violations(exact, slopes[0], upper).max(), kkt_violations(turns, slopes[1], upper).max()) < 1e-9
        np.testing.assert_allclose(np.sum((slopes[0] - slopes[1]) ** 2), 0, atol=1e-12)  # even where x is not unique


@pytest.mark.parametrize("shared", [0.3, 10.0, 1000.0])
def test_one_sample_is_settled_however_strongly_its_classes_interact(shared):
    rng = np.random.default_rng(1)
    n, T = 300, 4
    sizes = 10.0 ** rng.integers(-3, 3, size=(n, T))
    upper, D = sizes * rng.uniform(size=(n, T)), rng.normal(size=(n, T)) * 10.0 ** rng.integers(-2, 3, size=(n, 1))
    start, signs, half = upper * rng.choice([0.0, 0.5, 1.0], size=(n, T)), np.ones((n, T)), np.eye(T) + shared
    found = start.copy()
    settle_samples(1.0, half, True, found, start @ half, D, upper, signs, 0.0)
    violations = kkt_violations(found, found @ half - D, upper)
    assert (violations <= 1e-10 * (1 + shared * upper.sum(axis=1) + np.abs(D).max(axis=1))[:, None]).all()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_one_sample_is_settled_in_turns_until_its_gradients_are_within_the_tolerance(size):
    rng = np.random.default_rng(2)
    n, T, tol = 100, 4, 1e-4
    half = np.eye(T) + 0.8 * (1 - np.eye(T))
    D, upper, zeros = rng.normal(size=(n, T)), rng.uniform(size=(n, T)) / size, np.zeros((n, T))
    found = zeros.copy()
    settle_samples(size, half, False, found, zeros, D, upper, np.ones((n, T)), tol)
    violations = kkt_violations(found, size * found @ half - D, upper)
    assert violations.max() <= T * tol  # each of the last steps changes the other gradients by less than the tolerance
    assert violations.max() > 1e-9


def test_steps_over_one_class_end_within_the_tolerance():
    """Violations are below 1 from the start, and are followed until the gap is small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    Q, signs = X @ X.T / 6 + 0.1 * np.eye(40), np.where(rng.random((1, 40)) < 0.5, 1.0, -1.0)
    x, upper, D = np.zeros((1, 40)), np.full((1, 40), 0.7), rng.uniform(0.2, 0.9, size=(1, 40))
    gradient = -D
    class_rows(0, 1, Q, np.array([0.5]), x, gradient, upper, signs, D, 1e-8, 100_000)
    np.testing.assert_allclose(gradient, 0.5 * signs * (Q @ (signs * x)[0]) - D, atol=1e-12)
    primal, gap = primal_and_gap(x, gradient, D, upper)
    assert 0 <= gap <= 1.001e-8 * primal
    assert ((x >= 0) & (x <= upper)).all()


def test_classes_interact_evenly_where_one_number_stands_between_any_two():
    one, none = np.ones((5, 3)), np.eye(3)
    uneven = np.array([[1.0, 0.2, 0.2], [0.2, 1.0, 0.3], [0.2, 0.3, 1.0]])
    for Q_S, signs, even in [
        (none, one, True),
        (2 * none - 0.5, -one, True),
        (2 * none - 0.5, one * [1, 1, -1], False),  # classes with signs of their own
        (uneven, one, False),
        (np.diag([1.0, 1.0, 2.0]), one, False),
        (np.ones((3, 3)), one, False),  # the same vectors
        (np.eye(1), one[:, :1], False),  # one class
    ]:
        assert box_qp.is_even(Q_S, signs) is even


def bulk_program(alpha, n=300, T=8, seed=0):
    """Return the simplex program of a kernel that is not ill-conditioned."""
    rng = np.random.default_rng(seed)
    y = rng.integers(T, size=n)
    X = rng.normal(size=(T, 20))[y] / 2 + rng.normal(size=(n, 20))
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 40)
    inner = cs.simplex_vectors(T) @ cs.simplex_vectors(T).T
    return K / alpha, inner, -inner[y], np.where(y[:, None] == np.arange(T), 0.0, 1 / n), -np.ones((n, T))


@pytest.mark.parametrize("alpha", [1e-3, 1e-4, 1e-6])
def test_a_kernel_that_is_not_ill_conditioned_needs_no_newton_step(alpha, monkeypatch):
    monkeypatch.setattr(box_qp, "_newton_step", None)
    steps = []
    real = box_qp._Splitting._step
    monkeypatch.setattr(box_qp._Splitting, "_step", lambda self: steps.append(1) or real(self))
    found = class_qp(*bulk_program(alpha), tol=1e-4, max_iter=100)
    assert found.converged
    assert 0 < len(steps) <= 60


def test_single_precision_does_not_limit_the_gap(monkeypatch):
    monkeypatch.setattr(box_qp, "_newton_step", None)
    found = class_qp(*bulk_program(1e-4), tol=1e-11, max_iter=100)
    assert found.converged


def test_errors_that_passes_collect_are_not_in_the_gap(monkeypatch):
    """Passes add to QA, with a rounding error each time, which is larger here; the gap is that of Q and α."""
    one_pass = box_qp._pass

    def rounded(program, alpha, pushed, share):
        one_pass(program, alpha, pushed, share)
        pushed *= 1 + 1e-6

    monkeypatch.setattr(box_qp, "_pass", rounded)
    Q, Q_S, D, upper, signs = bulk_program(1e-3)
    found = class_qp(Q, Q_S, D, upper, signs, tol=1e-3, max_iter=100)
    assert found.converged
    gradient = signs * (0.5 * Q @ (signs * found.x) @ Q_S) - D
    np.testing.assert_allclose([found.objective, found.gap], primal_and_gap(found.x, gradient, D, upper), rtol=1e-10)


def test_an_ill_conditioned_kernel_ends_with_newton_steps():
    """Steps of `splitting` no longer help with a kernel of low rank; the tolerance is reached all the same."""
    Q, Q_S, D, upper, signs = program("simplex", n=200, rank=5)
    found = class_qp(Q, Q_S, D, upper, signs, tol=1e-7, max_iter=200)
    assert found.converged
    assert found.n_iter > 2


def test_samples_without_weight_stay_at_zero_and_change_nothing():
    Q, Q_S, D, upper, signs = random_program("simplex")
    kept = upper.any(axis=1)
    few = class_qp(Q[np.ix_(kept, kept)], Q_S, D[kept], upper[kept], signs[kept], tol=1e-9, max_iter=500)
    all_ = class_qp(Q, Q_S, D, upper, signs, tol=1e-9, max_iter=500)
    assert not all_.x[~kept].any()
    assert all_.objective == pytest.approx(few.objective, rel=1e-8)
