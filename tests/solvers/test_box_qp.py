"""The quadratic program of the multi-class support vector machine: its steps are damped, its solution is not."""

import numpy as np
import pytest

import consilience as cs
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
