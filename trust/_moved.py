"""Bounds at points that no solver returned: random coefficients, dual variables and weights."""

import numpy as np

import _optima as optima
import consilience as cs
import reference
from _claims import Claim, draw, kappa, squares_and
from consilience.solvers.box_qp import primal_and_gap
from consilience.solvers.coregularized import Penalties, RidgeProblem
from consilience.solvers.design import GramDesign
from consilience.solvers.design_matrix import DesignMatrix
from consilience.solvers.kernel_weights import GramFit, SquaredNorm
from consilience.solvers.learned_metric import BlockSparseMetric, MetricPerOutput, SharedMetric
from consilience.solvers.weights import lower_bound


def moved_metric(rng: np.random.Generator) -> Claim:
    """Random coefficients of a learned metric, measured as a solution."""
    problem = draw(rng, most=12)
    alpha, eta, Y, w = problem.power(-4, 2), problem.power(-3, 2), problem.targets(), rng.normal(size=problem.m)
    M = reference.stacked(problem.grams, w)
    k, kind = kappa(alpha, eta), int(rng.integers(3))
    system = DesignMatrix(GramDesign.of(problem.grams, problem.n), Y, np.ones(problem.n))
    solver = (MetricPerOutput, SharedMetric, BlockSparseMetric)[kind](system, alpha, eta, tol=1e-9, max_iter=100)
    G = solver.minimize(w)[0]
    G = G + problem.power(-8, 1) * (np.abs(G).mean() + 1e-3) * rng.normal(size=G.shape)
    found = solver.measured(w, G, 1, "max_iter")
    columns, parts = list(zip(Y.T, G.T, strict=True)), np.hsplit(M, problem.m)
    if kind == 0:
        penalty = k * sum(float(np.linalg.norm(g)) ** (4 / 3) for _, g in columns)
        others = [reference.metric_coefficients(M, y, alpha, eta) for y, _ in columns]
        norms = sum(float(np.linalg.norm(g)) ** (4 / 3) for g in others)
        best = squares_and(M, np.array(others).T, Y, k * norms)[0]
    elif kind == 1:
        penalty = k * float(np.sum(np.linalg.svd(G, compute_uv=False) ** (4 / 3)))
        best = optima.singular_powers(M, Y, k)
    else:
        norms = [np.array([np.linalg.norm(own) for own in np.split(g, problem.m)]) for _, g in columns]
        penalty = 2 * np.sqrt(alpha * eta) * sum(optima.block_norm(own) for own in norms)
        best = sum(optima.block_sparse(parts, y, alpha * eta) for y, _ in columns)
    own = squares_and(M, G, Y, penalty)
    return Claim(found.objective, found.gap, *own, min(best, own[0]), "moved")


def moved_dual(rng: np.random.Generator) -> Claim:
    """Random dual variables of a support vector machine of several classes."""
    problem = draw(rng, most=10, views=1)
    T = int(rng.integers(2, 4))
    S, n = cs.simplex_vectors(T), problem.n
    loss = optima.Hinges.of(problem.codes(T), T, S, np.full(n, problem.power(-2, 1)))
    alpha = loss.upper * np.clip(rng.normal(0.3, 0.5, size=loss.upper.shape), 0, 1)
    Q, Q_S = problem.grams[0], S @ S.T
    gradient = loss.signs * (0.5 * Q @ (loss.signs * alpha) @ Q_S) - loss.margins
    objective, gap = primal_and_gap(alpha, gradient, loss.margins, loss.upper)
    flat = 0.5 * np.kron(Q, Q_S)
    a, D, C = alpha.ravel(), loss.margins.ravel(), loss.upper.ravel()
    own = 0.5 * float(a @ flat @ a) + float(C @ np.maximum(0, D - flat @ a))
    size = float(a @ np.abs(flat) @ a) + float(C @ (np.abs(D) + np.abs(flat) @ a))
    kept = C > 0
    best = optima.margins(flat[np.ix_(kept, kept)], C[kept], target=D[kept])
    return Claim(objective, gap, own, size, min(best, own), "moved")


def moved_kernel_weights(rng: np.random.Generator) -> Claim:
    """Random weights of kernels."""
    problem = draw(rng, most=16)
    p, alpha, Y = float(rng.choice([1.0, 4 / 3, 2.0, 8.0, np.inf])), problem.power(-4, 2), problem.targets()
    d = rng.dirichlet(np.ones(problem.m)) * problem.power(-1, 1) / alpha
    norm, at = SquaredNorm(alpha, p), GramFit(problem.grams, Y)(d)
    objective, bound = at.loss + norm.norm(at.norms(d)), norm.dual(at)
    B = np.linalg.solve(np.eye(problem.n) + np.tensordot(d, problem.grams, axes=1), Y)
    f = [weight * K @ B for weight, K in zip(d, problem.grams, strict=True)]
    norms = np.sqrt([weight * max(float(np.sum(B * own)), 0.0) for weight, own in zip(d, f, strict=True)])
    q = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    own = float(np.sum((Y - sum(f)) ** 2)) + alpha * float(np.sum(norms**q) ** (2 / q))
    size = own + float(np.sum(np.abs(Y) + sum(np.abs(x) for x in f)) ** 2)
    return Claim(
        objective, objective - bound, own, size, min(optima.multiple_kernels(problem.grams, Y, alpha, p), own), "moved"
    )


def moved_weights(rng: np.random.Generator) -> Claim:
    """Random weights of views, and the bound of one eigenvalue over all of them."""
    problem = draw(rng, most=10)
    order, c, Y = float(rng.choice([2, 3, 6])), rng.normal(size=problem.m), problem.targets()
    terms = optima.Terms(problem.power(-4, 1), problem.power(-4, 1) * (rng.random() < 0.7))
    penalties = Penalties(terms.alpha, terms.agreement, 0.0)
    design = GramDesign.of(problem.grams, problem.n)
    value, _, curvature = RidgeProblem(design, Y, np.ones(problem.n), penalties, [(1.0, None)]).evaluate(c)
    bound, share = lower_bound(value, curvature, c, order), np.full(problem.n, 1 / problem.n)
    at = lambda c: optima.least_squares(optima.coordinates(problem.grams, terms, c, problem.n), Y, share)  # noqa: E731
    own, radius = at(c), float(np.sum(np.abs(c) ** order) ** (1 / order))
    best = optima.best_weights(at, problem.m, radius, order, rng, 25 * problem.m)
    return Claim(value, value - bound, own, float(np.sum(Y**2)), min(best, own), "moved")
