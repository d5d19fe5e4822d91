"""Learned weights of the views: minimize φ(c) = min_f objective(f, c) over ‖c‖_q = radius, q >= 2.

φ depends on c through C = cc' alone, and as a function of C it is convex: a minimum over f of terms that are linear in
the labeled kernel 𝒢(C) = Σ C_vw G_vw in the dual. So with ∇ = ∂φ/∂C at any c

    φ(c*) >= φ(c) + radius² λ_min(∇) - c'∇c   for every c* on the sphere (q = 2),

a bound from one m × m eigenvalue. Where it is met, c is the global optimum of a problem that is not convex in c.

For q > 2 and any s > 0 with S = diag(s), c*'∇c* >= λ c*'Sc* with λ = λ_min(S^-½ ∇ S^-½) <= 0, and Hölder's inequality
gives c*'Sc* <= radius² ‖s‖_r, r = q/(q - 2). An optimum has ∇c = -Sc for s in proportion to |c|^(q-2), and then the
bound is met if ∇ + S is positive semi-definite.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.optimize

from .._progress import report_progress
from .certificates import Solution
from .linalg import eigvalsh, norm
from .sphere import sphere_least_squares

# φ, its gradient in c, and a proof: ∇ where φ is convex in cc', a lower bound on φ over the sphere, or None
Evaluation = tuple[float, np.ndarray, Any]


def lower_bound(value: float, curvature: np.ndarray, c: np.ndarray, order: float = 2.0) -> float:
    """Return the bound above, from ∇ at c; `order` is q."""
    here = value - float(c @ curvature @ c)
    if order == 2:
        return here + float(c @ c) * float(eigvalsh(curvature)[0])
    s = -curvature.diagonal()  # ∇ = -S where views are independent; any s > 0 gives a bound
    s = np.divide(-curvature @ c, c, out=s, where=np.abs(c) > 1e-9 * np.abs(c).max())
    s = np.maximum(s, 1e-12 * np.abs(s).max() + np.finfo(float).tiny)
    least = min(float(eigvalsh(curvature / np.sqrt(s) / np.sqrt(s)[:, None])[0]), 0.0)
    return here + least * length(c, order) ** 2 * length(s, order / (order - 2))


def length(c: np.ndarray, order: float) -> float:
    """Return ‖c‖ of an order."""
    largest = float(np.abs(c).max())
    return largest * float(np.sum((np.abs(c) / largest) ** order) ** (1 / order)) if largest else 0.0


def learn_weights(
    evaluate: Callable[[np.ndarray], Evaluation],
    starts: Sequence[np.ndarray],
    *,
    tol: float,
    max_iter: int,
    order: float = 2.0,
) -> Solution:
    """Take quasi-Newton steps on ‖c‖_q = radius from one start after the other, until an optimum is proved global.

    `tol` is relative to φ; `max_iter` counts steps from one start; ``Solution.n_iter`` counts evaluations. `order` is
    q. For q > 2 an `evaluate` that returns a bound must return one over ‖c‖_q = radius.
    """
    radius = length(starts[0], order)
    best: tuple[float, np.ndarray] = (np.inf, np.asarray(starts[0]))
    bound = -np.inf
    n_iter = 0
    settled = False

    def proved() -> bool:
        return best[0] - bound <= tol * abs(best[0])

    def along(u: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, bound, n_iter
        n_iter += 1
        size = length(u, order)
        u = u / size  # u may leave the sphere: φ depends on its direction alone
        c = radius * u
        value, gradient, proof = evaluate(c)
        report_progress(n_iter, best[0] - bound if np.isfinite(bound) else None, unit="evaluation")
        if value < best[0]:
            best = (value, c)
        if proof is not None:
            # ∇ has two dimensions, a bound none
            bound = max(bound, lower_bound(value, proof, c, order) if np.ndim(proof) else float(proof))
        if proved():
            raise _Proved
        # the chain rule for c = radius u/‖u‖
        return value, radius / size * (gradient - (gradient @ u) * np.sign(u) * np.abs(u) ** (order - 1))

    for start in starts:
        try:
            unit = abs(along(start)[0]) or 1.0  # SciPy's first step has a length of its own, whatever the size of φ
            found = scipy.optimize.minimize(
                lambda u, unit=unit: tuple(part / unit for part in along(u)),
                np.asarray(start) / radius,
                jac=True,
                method="BFGS",
                options={"gtol": 1e-2 * tol, "maxiter": max_iter},
            )
            settled |= found.status != 1  # 1: the limit of steps
        except _Proved:
            break
    gap = max(best[0] - bound, 0.0) if np.isfinite(bound) else None
    status = "converged" if proved() else "settled" if settled else "max_iter"
    return Solution(_turned(best[1]), gap, n_iter, status, objective=best[0])


class _Proved(Exception):
    """Raised when the best value is within the tolerance of the bound."""


def alternate_weights(
    outputs_of: Callable[[Sequence[np.ndarray]], Sequence[tuple[float, np.ndarray, np.ndarray]]],
    starts: Sequence[np.ndarray],
    *,
    tol: float,
    max_iter: int,
) -> tuple[Solution, list[np.ndarray]]:
    """Alternate as published: f for fixed c, then c by least squares on the sphere, from all starts together.

    `outputs_of` maps several c to φ, the outputs F of the views (n x m) and the targets b (n,) of each. The result is
    the best c by the objective, and every c that was visited, for a choice by validation. A start ends where c moves by
    less than `tol` of its length.
    """
    radius = norm(starts[0])
    now = [np.asarray(start) for start in starts]
    running = list(range(len(now)))
    visited: list[np.ndarray] = []
    best: tuple[float, np.ndarray] = (np.inf, now[0])
    n_iter = 0
    while running and n_iter < max_iter:
        n_iter += 1
        report_progress(n_iter, None)
        for k, (value, F, b) in zip(list(running), outputs_of([now[k] for k in running]), strict=True):
            visited.append(_turned(now[k]))  # φ and F belong to this c, not to the next one
            if value < best[0]:
                best = (value, now[k])
            c = sphere_least_squares(F, b, radius)  # Minh, Bazzani and Murino 2016, Theorems 15 and 16
            if norm(c - now[k]) <= tol * radius:
                running.remove(k)
            now[k] = c
    status = "max_iter" if running else "settled"
    return Solution(_turned(best[1]), None, n_iter, status, objective=best[0]), visited


def with_learned(solution: Solution, learned: Solution) -> Solution:
    """Return the solution for learned weights, with the gap to the best weights where one is known."""
    gap = None
    if learned.gap is not None and solution.objective is not None:
        gap = max(solution.objective - learned.dual, 0.0)
    # a solve that failed matters more than weights that did not converge
    status = learned.status if solution.converged else solution.status
    return replace(solution, gap=gap, n_iter=learned.n_iter, status=status)


def sphere_starts(m: int, radius: float, n: int, rng: np.random.RandomState, order: float = 2.0) -> list[np.ndarray]:
    """Return n starting points with ‖c‖_q = radius, q the order: equal weights first, then random directions."""
    starts = [np.full(m, radius / m ** (1 / order))]
    for _ in range(n - 1):
        c = rng.normal(size=m)
        starts.append(radius * c / length(c, order))
    return starts


def _turned(c: np.ndarray) -> np.ndarray:
    """Return c or -c, which is the same with -f: the one with the larger sum."""
    return c if c.sum() >= 0 else -c
