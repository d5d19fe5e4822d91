"""Maximum margin regression with a bias: Σ α_i y_i = 0 by an augmented Lagrangian.

    min_α ½ α'Qα - 1'α + <b, Y'α> + ρ/2 ‖Y'α‖²,  0 <= α <= upper

The penalty adds ρ to the input kernel, the multiplier b is the bias itself. What the steps reach is held against a
feasible point near by, so that the gap is one to the optimum over W and b.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.optimize

from .certificates import Solution

Solve = Callable[[np.ndarray, float, float, np.ndarray | None], Solution]  # (target, ρ, tol, x0) -> x = (α, g, ...)

DEPTH = 20  # the steps that the next one is extrapolated from


def answers_alone(Y: np.ndarray) -> bool:
    """Whether some b has <y, b> >= 1 for every label: then Σ α_i y_i = 0 leaves α = 0 only (Gordan's theorem)."""
    found = scipy.optimize.linprog(np.zeros(Y.shape[1]), A_ub=-Y, b_ub=-np.ones(len(Y)), bounds=(None, None))
    return bool(found.status == 0)


def with_bias(
    solve: Solve,
    Y: np.ndarray,
    of: np.ndarray,
    upper: np.ndarray,
    squares: np.ndarray,
    *,
    tol: float,
    max_iter: int = 100,
    x0: np.ndarray | None = None,
) -> Solution:
    """Solve with a bias; x is (α, g, ..., b), with g the gradient at b. `squares` is the diagonal of Q."""
    b, alpha = np.zeros(Y.shape[1]), x0
    rho = max(float(squares.mean()), 5 / float(np.bincount(of, upper).mean()))
    n_iter, status, share, highest = 0, "max_iter", 0.1, 1e4 * rho
    best: Solution | None = None
    history: list[tuple[np.ndarray, np.ndarray]] = []  # multipliers and the balance that each left
    for _ in range(max_iter):
        target = 1 - (Y @ b)[of]
        found = solve(target, rho, max(0.1 * tol, min(1e-2, 0.1 * share)), alpha)
        n_iter += found.n_iter
        alpha, g = found.x[0], found.x[1]
        mass = np.bincount(of, alpha, len(Y))
        balance = Y.T @ mass
        bias = b + rho * balance  # with it g is the gradient at W and the bias
        norm = float(alpha @ (g + target)) - rho * float(balance @ balance)
        primal = 0.5 * norm + float(upper @ np.maximum(0, -g))
        lost = alpha * (1 - _feasible_share(Y, mass))[of]
        pull = g + 1 - (Y @ bias)[of]  # Qα
        dual = float((alpha - lost).sum()) - 0.5 * (norm - 2 * float(lost @ pull) + float(lost @ np.sqrt(squares)) ** 2)
        gap = max(primal - dual, 0.0)
        share = gap / primal if primal > 0 else 0.0
        if best is None or gap < best.gap:  # type: ignore[operator]
            best = Solution((*found.x, bias), gap, n_iter, status, objective=primal, residual=found.residual)
        if gap <= tol * primal:
            status = "converged"
            break
        if history and np.linalg.norm(balance) > 0.7 * np.linalg.norm(history[-1][1]) and rho < highest:
            rho, history = 2 * rho, []  # what was seen does not foretell what comes: a stiffer penalty
        history.append((b, balance))
        b = _next_multiplier(history[-DEPTH:], rho)
    return replace(best, n_iter=n_iter, status=status)  # type: ignore[type-var,return-value]


def _next_multiplier(history: list[tuple[np.ndarray, np.ndarray]], rho: float) -> np.ndarray:
    """b + ρ·balance, extrapolated from the last steps (Anderson 1965): balances are piecewise linear in b."""
    b, balance = history[-1]
    if len(history) == 1:
        return b + rho * balance
    moves = np.array([b - earlier for earlier, _ in history[:-1]]).T
    changes = np.array([balance - earlier for _, earlier in history[:-1]]).T
    shares = np.linalg.lstsq(changes, balance, rcond=1e-8)[0]
    return np.asarray(b + rho * balance - (moves + rho * changes) @ shares)


def _feasible_share(Y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Shares in [0, 1] of the labels' masses that balance: Σ share mass y = 0."""
    kept = mass > 0
    while kept.any():
        part = np.where(kept, mass, 0.0)
        own = Y[kept]
        balanced = part[kept] - own @ np.linalg.lstsq(own, part[kept], rcond=None)[0]
        if (balanced > 0).all():
            share = np.zeros(len(mass))
            share[kept] = balanced / part[kept]
            return share / max(share.max(), 1.0)
        kept[np.flatnonzero(kept)[balanced <= 0]] = False
    return np.zeros(len(mass))
