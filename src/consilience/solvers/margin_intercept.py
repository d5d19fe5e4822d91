"""Maximum margin regression with an intercept: Σ α_i y_i = 0 by an augmented Lagrangian.

    min_α ½ α'Qα - 1'α + <b, Y'α> + ρ/2 ‖Y'α‖²,  0 <= α <= upper

The penalty adds ρ to the input kernel, and the multiplier b is the intercept itself. The gap compares the point that
the steps reach with a feasible point nearby, so it bounds the distance from the optimum over W and b.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.optimize

from .certificates import Solution
from .linalg import lstsq, norm
from .margin import MarginInput, kernel_diagonal, solve_margin
from .margin_labels import LabelKernel

_DEPTH = 20  # number of steps from which the next one is extrapolated


def intercept_suffices(Y: np.ndarray) -> bool:
    """Tell whether some b has <y, b> >= 1 for every label: then Σ α_i y_i = 0 has only α = 0 (Gordan's theorem)."""
    program = scipy.optimize.linprog(np.zeros(Y.shape[1]), A_ub=-Y, b_ub=-np.ones(len(Y)), bounds=(None, None))
    return bool(program.status == 0)


def solve_margin_intercept(
    design: MarginInput,
    labels: LabelKernel,
    upper: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
    rounds: int = 100,
) -> Solution:
    """Solve with an intercept; x is (α, g, b), with g the gradient at b. See `solve_margin` for the other arguments."""
    Y, of = labels.as_vectors(), labels.of
    squares = np.einsum("tp,tp->t", Y, Y)[of] * kernel_diagonal(design)  # diagonal of Q
    b, alpha = np.zeros(Y.shape[1]), x0
    # at least the mean of Q_ii
    rho = max(float(squares.mean()), 5 / float(np.bincount(of, upper).mean()))
    n_iter, status, relative, highest = 0, "max_iter", 0.1, 1e4 * rho
    best: Solution | None = None
    history: list[tuple[np.ndarray, np.ndarray]] = []  # multipliers and the balance that each left
    for _ in range(rounds):
        # <b, Y'α> is linear in α; the inner gap must be below the outer one
        target, inner_tol = 1 - (Y @ b)[of], max(0.1 * tol, min(1e-2, 0.1 * relative))
        inner = solve_margin(design, labels, upper, target, rho, tol=inner_tol, max_iter=max_iter, x0=alpha)
        if inner.status == "indefinite":
            return inner
        n_iter += inner.n_iter
        alpha = inner.x[0]
        point = _measure(Y, of, upper, squares, inner, target, b, rho)
        relative = point.gap / point.primal if point.primal > 0 else 0.0
        if best is None or point.gap < best.gap:  # type: ignore[operator]
            x = (*inner.x, point.intercept)
            best = Solution(x, point.gap, n_iter, status, objective=point.primal, residual=inner.residual)
        if point.gap <= tol * point.primal:
            status = "converged"
            break
        if history and norm(point.balance) > 0.7 * norm(history[-1][1]) and rho < highest:
            rho, history = 2 * rho, []  # earlier balances no longer predict later ones: raise the penalty
        history.append((b, point.balance))
        b = _next_multiplier(history[-_DEPTH:], rho)
    return replace(best, n_iter=n_iter, status=status)  # type: ignore[type-var,return-value]


class _Measure(NamedTuple):
    """A point that the augmented problem reached, measured in the problem with the intercept."""

    primal: float
    gap: float
    intercept: np.ndarray
    balance: np.ndarray  # Y'α


def _measure(
    Y: np.ndarray,
    of: np.ndarray,
    upper: np.ndarray,
    squares: np.ndarray,
    inner: Solution,
    target: np.ndarray,
    b: np.ndarray,
    rho: float,
) -> _Measure:
    """Return the primal value at W and the intercept, and its distance from the dual value of a balanced part of α."""
    alpha, g = inner.x
    mass = np.bincount(of, alpha, len(Y))
    balance = Y.T @ mass
    intercept = b + rho * balance  # with it g is the gradient at W and the intercept
    squared_norm = float(alpha @ (g + target)) - rho * float(balance @ balance)  # α'Qα without the shift ρ
    primal = 0.5 * squared_norm + float(upper @ np.maximum(0, -g))
    lost = alpha * (1 - _feasible_share(Y, mass))[of]  # what must go so that the rest balances
    scores = g + 1 - (Y @ intercept)[of]  # Qα
    # ‖Σ lost_i y_i φ_i'‖ is at most Σ lost_i √Q_ii, so this is at most the dual value at α - lost
    lost_norm = float(lost @ np.sqrt(squares))
    dual = float((alpha - lost).sum()) - 0.5 * (squared_norm - 2 * float(lost @ scores) + lost_norm**2)
    return _Measure(primal, max(primal - dual, 0.0), intercept, balance)


def _next_multiplier(history: list[tuple[np.ndarray, np.ndarray]], rho: float) -> np.ndarray:
    """Return b + ρ·balance, extrapolated from the last steps (Anderson 1965): balances are piecewise linear in b."""
    b, balance = history[-1]
    if len(history) == 1:
        return b + rho * balance
    moves = np.array([b - earlier for earlier, _ in history[:-1]]).T
    changes = np.array([balance - earlier for _, earlier in history[:-1]]).T
    shares = lstsq(changes, balance, cutoff=1e-8)  # the combination of earlier steps that cancels the balance
    return np.asarray(b + rho * balance - (moves + rho * changes) @ shares)


def _feasible_share(Y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return shares in [0, 1] of the labels' masses that balance: Σ share mass y = 0."""
    kept = mass > 0
    while kept.any():
        part = np.where(kept, mass, 0.0)
        own = Y[kept]
        balanced = part[kept] - own @ lstsq(own, part[kept])  # projection on {mass: Y'mass = 0}
        if (balanced > 0).all():
            share = np.zeros(len(mass))
            share[kept] = balanced / part[kept]
            return share / max(share.max(), 1.0)  # one factor for all keeps the balance
        kept[np.flatnonzero(kept)[balanced <= 0]] = False  # masses must stay positive
    return np.zeros(len(mass))
