"""The dual of the multi-class support vector machine: a quadratic program with boxes, P variables per sample.

    min ¼ tr(A' Q A Q_S) - <D, α>   subject to 0 <= α_ik <= u_ik,   A = signs ∘ α  (l × P)

Q (l × l) is the kernel between the labeled samples, Q_S (P × P) the one between classes. Where Q_S is diagonal, classes
are P problems that share Q; each is solved by steps of O(l) on its largest violation. Else, or where these do not get
far enough, two kinds of steps take turns. Visits go through the samples with the largest violations and minimize over
the P variables of each: they find which variables the bounds hold, but are slow where Q is ill-conditioned. Newton
steps minimize over all free variables, by conjugate gradients with one Cholesky factor per class: that leaves the
condition of Q_S alone, whatever Q is. They are damped, variables that leave the box are held at its border and the rest
is solved again; then comes the best point between the start and that end. No step raises the dual objective.
"""

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from .._backend import by_rows, few_threads
from .._progress import report_progress
from ._compiled import principal_part, row_steps, visit_samples
from .certificates import Solution
from .linalg import multiply

VISITS = 10  # epochs between two Newton steps
SHRINKS = 5  # how often variables that leave the box are held within one Newton step
CONJUGATE = 15  # steps of conjugate gradients for one linear system
ENTRIES = 10**8  # of all factors together; classes beyond are scaled by their diagonal


def class_qp(
    Q: np.ndarray,
    Q_S: np.ndarray,
    D: np.ndarray,
    upper: np.ndarray,
    signs: np.ndarray | None = None,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
) -> Solution:
    """Solve the program; `gap` is the duality gap, `objective` the primal value, `residual` the KKT violation.

    `tol` is relative to the primal value; `max_iter` counts rounds of visits and Newton steps. The point with the
    smallest gap is returned.
    """
    Q = np.ascontiguousarray(Q.T if Q.flags.f_contiguous else Q, dtype=np.float64)
    signs = np.ones_like(D) if signs is None else signs
    half = 0.5 * Q_S
    alpha = np.zeros_like(D) if x0 is None else np.clip(x0, 0, upper)
    flat = np.outer(Q.diagonal(), half.diagonal()) <= 0  # Q and Q_S are semi-definite: nothing else is tied to these
    alpha[flat] = np.where(D > 0, upper, 0)[flat]
    movable = (upper > 0) & ~flat
    if not (Q_S - np.diag(Q_S.diagonal())).any():
        alpha = _solve_rows(Q, half, alpha, D, np.where(movable, upper, alpha), signs, tol, max_iter)
    with few_threads(0):  # many small operations: threads would wait for each other most of the time
        return _rounds(Q, half, alpha, D, upper, signs, movable, tol, max_iter)


def _rounds(
    Q: np.ndarray,
    half: np.ndarray,
    alpha: np.ndarray,
    D: np.ndarray,
    upper: np.ndarray,
    signs: np.ndarray,
    movable: np.ndarray,
    tol: float,
    max_iter: int,
) -> Solution:
    """Visits and Newton steps in turn, until the gap is small enough."""
    damping = 0.3
    best = Solution(alpha, np.inf, 0, "max_iter")
    for n_iter in range(max_iter + 1):
        gradient = _gradient(Q, half, alpha, D, signs)
        primal, gap = primal_and_gap(alpha, gradient, D, upper)
        if not np.isfinite(primal + gap):
            raise FloatingPointError("the objective is not finite")
        report_progress(n_iter, gap)
        if best.gap is None or gap < best.gap:
            converged = gap <= tol * abs(primal)
            residual = float(violations(alpha, gradient, upper).max())
            best = Solution(alpha.copy(), gap, n_iter, "converged" if converged else "max_iter", primal, residual)
        if best.converged or n_iter == max_iter:
            break
        if n_iter > 0:
            alpha, step = _newton_step(Q, half, alpha, gradient, D, upper, signs, movable, damping)
            damping = max(damping * (0.2 if step > 0.8 else 4.0 if step < 0.4 else 1.0), 1e-10)
        _visit(Q, half, alpha, D, upper, signs)
    return Solution(best.x, best.gap, n_iter, best.status, best.objective, best.residual)


def primal_and_gap(alpha: np.ndarray, gradient: np.ndarray, D: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """The primal value Σ u max(0, -gradient) + ¼ tr(A'QAQ_S), and its distance from the dual value.

    The gap is Σ u max(0, -gradient) + α gradient: every term is at least 0, and 0 where its condition holds.
    """
    slack = upper * np.maximum(0, -gradient)
    quarter = 0.5 * float(np.sum(alpha * (gradient + D)))
    return float(slack.sum()) + quarter, float(np.sum(slack + alpha * gradient))


def violations(alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """How far each condition is from holding: the gradient, where a step against it stays in the box."""
    down = np.where(alpha > 0, gradient, 0)
    up = np.where(alpha < upper, -gradient, 0)
    return np.maximum(np.maximum(down, up), 0)


def _gradient(Q: np.ndarray, half: np.ndarray, x: np.ndarray, D: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """signs ∘ ½QAQ_S - D."""
    return signs * multiply(multiply(Q, signs * x), half) - D


def _solve_rows(
    Q: np.ndarray,
    half: np.ndarray,
    start: np.ndarray,
    D: np.ndarray,
    upper: np.ndarray,
    signs: np.ndarray,
    tol: float,
    max_iter: int,
) -> np.ndarray:
    """Solve classes that are not tied to each other, one apart from the other."""
    x, gradient = np.ascontiguousarray(start.T), np.ascontiguousarray(_gradient(Q, half, start, D, signs).T)
    rows = [np.ascontiguousarray(part.T) for part in (upper, signs, D)]

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            row_steps(Q, half[k, k], x[k], gradient[k], *(part[k] for part in rows), tol, max_iter * len(Q))

    by_rows(work, len(x), len(Q) ** 2)
    return np.ascontiguousarray(x.T)


def _visit(
    Q: np.ndarray, half: np.ndarray, alpha: np.ndarray, D: np.ndarray, upper: np.ndarray, signs: np.ndarray
) -> None:
    """Minimize over the samples with the largest violations, one after the other; alpha is changed."""
    H = np.ascontiguousarray(multiply(Q, signs * alpha).T)
    for _ in range(VISITS):
        worst = violations(alpha, signs * multiply(H.T, half) - D, upper).max(axis=1)
        order = np.argsort(-worst, kind="stable")
        largest = worst[order[0]]
        visit_samples(Q, half, order[worst[order] > 0.1 * largest], alpha, H, D, upper, signs, 0.01 * largest)


def _newton_step(
    Q: np.ndarray,
    half: np.ndarray,
    start: np.ndarray,
    gradient: np.ndarray,
    D: np.ndarray,
    upper: np.ndarray,
    signs: np.ndarray,
    movable: np.ndarray,
    damping: float,
) -> tuple[np.ndarray, float]:
    """The best point between `start` and the minimum over its free variables, and how far along it lies.

    Damping adds a multiple of the mean diagonal to Q: without it, directions that Q hardly sees leave the box by far.
    """
    free = movable & ((start > 0) | (gradient < 0)) & ((start < upper) | (gradient > 0))
    ridge = damping * float(Q.diagonal().mean())
    end, slope, factors, goal = start, gradient, None, 0.0
    for _ in range(SHRINKS):
        if not free.any():
            break
        if factors is None or (factors.free & ~free).sum() > 0.1 * free.sum():
            factors = _Factors(Q, half, free, ridge)
        else:
            factors.hold(free)
        move, goal = _conjugate_gradients(Q, half, signs, free, -slope, ridge, factors, goal)
        moved = end + move
        end = np.clip(moved, 0, upper)
        slope = _gradient(Q, half, end, D, signs)
        if (end == moved).all():
            break
        free = free & (end == moved)
    along = end - start
    descent, curvature = -float(np.sum(gradient * along)), float(np.sum(along * (slope - gradient)))
    if not (descent > 0 and curvature > 0):
        return start, 0.0
    step = min(1.0, descent / curvature)
    return (end if step == 1.0 else start + step * along), step


class _Factors:
    """Cholesky factors U'U = Q + ridge·I over the free samples of each class, in single precision.

    Variables that are held later are taken out exactly: U⁻¹(I - BB')U⁻ᵀ, where B is a basis of U⁻ᵀ over those columns.
    """

    def __init__(self, Q: np.ndarray, half: np.ndarray, free: np.ndarray, ridge: float) -> None:
        scale = float(Q.diagonal().mean())
        self.free = free
        self.scaling = np.where(half.diagonal() > 0, scale * half.diagonal(), 1)
        self.diagonal = Q.diagonal() / scale + ridge / scale
        self.classes: list[tuple[int, np.ndarray, np.ndarray]] = []
        room = ENTRIES
        for k in range(free.shape[1]):
            rows = np.flatnonzero(free[:, k])
            room -= len(rows) ** 2
            if len(rows) and room >= 0:
                self.classes.append((k, rows, _factor(Q, rows, scale, ridge / scale)))
        self.hold(free)

    def hold(self, free: np.ndarray) -> None:
        """Take the variables out that are not free any more."""
        self.bases = []
        for k, rows, U in self.classes:
            held = np.flatnonzero(~free[rows, k])
            self.bases.append(_basis(U, held) if len(held) else None)
        self.now = free

    def solve(self, R: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Apply the inverses to the classes' columns of R."""
        Z = R / self.diagonal[:, None]
        for (k, rows, U), B in zip(self.classes, self.bases, strict=True):
            right = signs[rows, k] * R[rows, k]
            size = float(np.abs(right).max()) or 1.0
            y = blas.strsv(U, (right / size).astype(np.float32), trans=1)
            if B is not None:
                y -= blas.sgemv(1.0, B, blas.sgemv(1.0, B, y, trans=1))
            Z[rows, k] = size * signs[rows, k] * blas.strsv(U, y)
        return np.where(self.now, Z / self.scaling, 0)


def _factor(Q: np.ndarray, rows: np.ndarray, scale: float, ridge: float) -> np.ndarray:
    """The upper factor of Q[rows, rows]/scale + ridge·I; a ridge too small for single precision is raised."""
    ridge = max(ridge, 1e-6)
    for _ in range(12):
        U, info = lapack.spotrf(principal_part(Q, rows, 1 / scale, ridge).T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            return U
        ridge *= 10
    raise np.linalg.LinAlgError("The kernel between labeled samples is not positive semi-definite.")


def _basis(U: np.ndarray, held: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns `held` of U⁻ᵀ."""
    columns = np.zeros((len(U), len(held)), dtype=np.float32, order="F")
    columns[held, np.arange(len(held))] = 1
    inverted = blas.strsm(1.0, U, columns, trans_a=1, overwrite_b=1)
    return scipy.linalg.qr(inverted, mode="economic", overwrite_a=True, check_finite=False)[0]


def _conjugate_gradients(
    Q: np.ndarray,
    half: np.ndarray,
    signs: np.ndarray,
    free: np.ndarray,
    right: np.ndarray,
    ridge: float,
    factors: _Factors,
    goal: float,
) -> tuple[np.ndarray, float]:
    """Solve signs ∘ (Q + ridge·I)(signs ∘ X)½Q_S = right over the free variables; also the goal for the residual.

    The residual is squared, in the norm of the factors; a goal of 0 asks for a hundredth of the first.
    """
    X = np.zeros_like(right)
    R = np.where(free, right, 0)
    Z = factors.solve(R, signs)
    direction, size = Z, float(np.sum(R * Z))
    goal = goal or 0.01 * size
    for _ in range(CONJUGATE):
        if size <= goal:
            break
        signed = signs * direction
        image = np.where(free, signs * multiply(multiply(Q, signed) + ridge * signed, half), 0)
        curvature = float(np.sum(direction * image))
        if not curvature > 0:
            break
        X += size / curvature * direction
        R -= size / curvature * image
        Z = factors.solve(R, signs)
        before, size = size, float(np.sum(R * Z))
        direction = Z + size / before * direction
    return X, goal
