"""The dual of the multi-class support vector machine: a quadratic program with boxes, P variables per sample.

    min ¼ tr(A' Q A Q_S) - <D, α>   subject to 0 <= α_ik <= u_ik,   A = signs ∘ α  (l × P)

Q (l × l) is the kernel between the labeled samples, Q_S (P × P) the one between classes. Where Q_S is diagonal, classes
are P problems that share Q; each is solved by steps of O(l) on its largest violation. Otherwise, or where these steps
do not reach the tolerance, two kinds of steps alternate. Visits go through the samples with the largest violations and
minimize over the P variables of each: they find which variables the bounds hold, but are slow where Q is
ill-conditioned. Newton steps minimize over all free variables, by conjugate gradients with one Cholesky factor per
class as preconditioner: that leaves only the condition of Q_S, whatever Q is. They are damped; variables that leave the
box are held at its border and the rest is solved again. The next point is the best one between the start and that end.

No step raises the dual objective. Damping and the ridge of the factors change only the path: the gap is measured
with Q.
"""

from typing import NamedTuple

import numpy as np

from .._backend import by_rows, few_threads
from .._jit import jit
from .._progress import report_progress
from .certificates import Solution
from .linalg import multiply, orthonormal, project_out, upper_factor, upper_solve

_VISITS = 10  # turns over the samples between two Newton steps
_SHRINKS = 5  # how often variables that leave the box are held within one Newton step
_CONJUGATE = 15  # steps of conjugate gradients for one linear system
_ENTRIES = 10**8  # of all factors together; classes beyond are scaled by their diagonal


class _Program(NamedTuple):
    """The arrays of the program."""

    Q: np.ndarray
    half: np.ndarray  # ½Q_S
    D: np.ndarray
    upper: np.ndarray
    signs: np.ndarray

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return signs ∘ ½QAQ_S - D."""
        return self.signs * multiply(multiply(self.Q, self.signs * x), self.half) - self.D


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
    program = _Program(Q, 0.5 * Q_S, D, upper, np.ones_like(D) if signs is None else signs)
    alpha = np.zeros_like(D) if x0 is None else np.clip(x0, 0, upper)
    # Q and Q_S are semi-definite: a variable whose diagonal entry is 0 does not interact with any other
    flat = np.outer(Q.diagonal(), program.half.diagonal()) <= 0
    alpha[flat] = np.where(D > 0, upper, 0)[flat]  # only -Dα is left of the objective there
    movable = (upper > 0) & ~flat
    if not (Q_S - np.diag(Q_S.diagonal())).any():  # one class against the rest
        alpha = _solve_classes(program._replace(upper=np.where(movable, upper, alpha)), alpha, tol, max_iter)
    damping, best = 0.3, Solution(alpha, np.inf, 0, "max_iter")  # damping is in units of the mean diagonal of Q
    with few_threads(0):  # many small operations: threads would wait for each other most of the time
        for n_iter in range(max_iter + 1):
            gradient = program.gradient(alpha)
            primal, gap = primal_and_gap(alpha, gradient, D, upper)
            if not np.isfinite(primal + gap):
                raise FloatingPointError("the objective is not finite")
            report_progress(n_iter, gap)
            if best.gap is None or gap < best.gap:
                status = "converged" if gap <= tol * abs(primal) else "max_iter"
                residual = float(kkt_violations(alpha, gradient, upper).max())
                best = Solution(alpha.copy(), gap, n_iter, status, primal, residual)
            if best.converged or n_iter == max_iter:
                break
            if n_iter > 0:  # the first visits find most of the bounds that a Newton step must respect
                alpha, step = _newton_step(program, alpha, gradient, movable, damping)
                # as in trust-region methods: less damping after long steps, more after short ones
                damping = max(damping * (0.2 if step > 0.8 else 4.0 if step < 0.4 else 1.0), 1e-10)
            _visit(program, alpha)
    return Solution(best.x, best.gap, n_iter, best.status, best.objective, best.residual)


def primal_and_gap(alpha: np.ndarray, gradient: np.ndarray, D: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Return the primal value Σ u max(0, -gradient) + ¼ tr(A'QAQ_S), and its distance from the dual value.

    The gap is Σ u max(0, -gradient) + α gradient: every term is at least 0, and 0 where its condition holds.
    """
    slack = upper * np.maximum(0, -gradient)
    quarter = 0.5 * float(np.sum(alpha * (gradient + D)))  # gradient + D is signs ∘ ½QAQ_S
    return float(slack.sum()) + quarter, float(np.sum(slack + alpha * gradient))


def kkt_violations(alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return how far each condition is from holding: the gradient, where a step against it stays in the box."""
    down = np.where(alpha > 0, gradient, 0)
    up = np.where(alpha < upper, -gradient, 0)
    return np.maximum(np.maximum(down, up), 0)


# -- classes that do not interact
def _solve_classes(program: _Program, start: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
    """Solve the problem of each class by itself."""
    Q, factors = program.Q, np.ascontiguousarray(program.half.diagonal())
    x, gradient = np.ascontiguousarray(start.T), np.ascontiguousarray(program.gradient(start).T)  # a class is a row
    rows = [np.ascontiguousarray(part.T) for part in (program.upper, program.signs, program.D)]
    steps = max_iter * len(Q)
    by_rows(
        lambda first, last: class_rows(first, last, Q, factors, x, gradient, *rows, tol, steps), len(x), len(Q) ** 2
    )
    return np.ascontiguousarray(x.T)


@jit(nogil=True)
def class_rows(first, last, Q, factors, x, gradient, upper, signs, linear, tol, max_steps):  # type: ignore[no-untyped-def]
    """Solve the problems of the classes first..last-1, which are rows of the arrays; `x` and `gradient` are changed."""
    for k in range(first, last):
        _row_steps(Q, factors[k], x[k], gradient[k], upper[k], signs[k], linear[k], tol, max_steps)


@jit(nogil=True)
def _row_steps(Q, factor, x, gradient, upper, sign, linear, tol, max_steps):  # type: ignore[no-untyped-def]
    """Minimize ½ factor (s∘x)'Q(s∘x) - linear'x over a box, a variable a step, the largest violation first: O(l) each.

    `x` and `gradient` are changed. Every l/4 steps the gap is measured; it stops where the gap is at most tol of the
    primal value.
    """
    l = len(x)
    largest, best = -1.0, -1
    for step in range(max_steps):
        if step % max(l // 4, 1) == 0:  # the gap costs as much as a step
            gap = primal = 0.0
            largest, best = 0.0, -1
            for i in range(l):
                slope = gradient[i]
                slack = upper[i] * max(0.0, -slope)
                gap += slack + x[i] * slope
                primal += slack + 0.5 * x[i] * (slope + linear[i])
                if (slope > largest and x[i] > 0) or (-slope > largest and x[i] < upper[i]):
                    largest, best = abs(slope), i
            if gap <= tol * primal:
                return
        if best < 0:  # no violation is left
            return
        curvature = factor * Q[best, best]  # the largest violation (Minh, Bazzani and Murino 2016, Lemma 31)
        # a variable without curvature goes to a bound
        target = x[best] - gradient[best] / curvature if curvature > 0 else -gradient[best] * np.inf
        change = min(max(target, 0.0), upper[best]) - x[best]
        x[best] += change
        signed, row = factor * sign[best] * change, Q[best]
        largest, best = 0.0, -1
        for i in range(l):
            slope = gradient[i] + signed * sign[i] * row[i]  # the next largest violation comes with the update
            gradient[i] = slope
            if (slope > largest and x[i] > 0) or (-slope > largest and x[i] < upper[i]):
                largest, best = abs(slope), i


# -- visits
def _visit(program: _Program, alpha: np.ndarray) -> None:
    """Minimize over the samples with the largest violations, one after the other; alpha is changed."""
    Q, half, D, upper, signs = program
    H = np.ascontiguousarray(multiply(Q, signs * alpha).T)  # Q times the signed variables, a row for each class
    for _ in range(_VISITS):
        worst = kkt_violations(alpha, signs * multiply(H.T, half) - D, upper).max(axis=1)
        order = np.argsort(-worst, kind="stable")
        largest = worst[order[0]]
        # violations within a factor of ten, worst first; each sample is settled to a hundredth of the largest
        visit_samples(Q, half, order[worst[order] > 0.1 * largest], alpha, H, D, upper, signs, 0.01 * largest)


@jit()
def visit_samples(Q, half, order, x, H, D, upper, signs, tol):  # type: ignore[no-untyped-def]
    """Minimize over the P variables of each sample in turn; x (l, P) and H = (signs ∘ x)'Q (P, l) are changed.

    The gradient is computed only at the sample visited: O(P²); a variable that moves costs O(l).
    """
    P = x.shape[1]
    gradient = np.empty(P)
    for i in order:
        if Q[i, i] <= 0:
            continue
        for k in range(P):
            total = 0.0
            for j in range(P):
                total += half[k, j] * H[j, i]
            gradient[k] = signs[i, k] * total - D[i, k]
        before = x[i].copy()
        _settle_sample(Q[i, i], half, x[i], gradient, upper[i], signs[i], tol)
        for k in range(P):
            step = signs[i, k] * (x[i, k] - before[k])
            if step != 0.0:
                row, column = H[k], Q[i]
                for j in range(len(column)):
                    row[j] += step * column[j]


@jit()
def _settle_sample(q, half, x, gradient, upper, sign, tol):  # type: ignore[no-untyped-def]
    """Minimize over one sample's variables, one after the other, until no gradient is above `tol`."""
    P = len(x)
    for _ in range(10 * P):
        largest = 0.0
        for k in range(P):
            if half[k, k] <= 0:
                continue
            new = min(max(x[k] - gradient[k] / (q * half[k, k]), 0.0), upper[k])
            step = sign[k] * (new - x[k])
            if step != 0:
                largest = max(largest, abs(step) * q * half[k, k])
                x[k] = new
                for j in range(P):
                    gradient[j] += sign[j] * half[j, k] * step * q
        if largest <= tol:
            return


# -- Newton steps
def _newton_step(
    program: _Program, start: np.ndarray, gradient: np.ndarray, movable: np.ndarray, damping: float
) -> tuple[np.ndarray, float]:
    """Return the best point between `start` and the minimum over its free variables, and how far along it lies.

    Damping adds a multiple of the mean diagonal to Q: without it, directions that Q hardly sees leave the box by far.
    """
    Q, upper = program.Q, program.upper
    free = movable & ((start > 0) | (gradient < 0)) & ((start < upper) | (gradient > 0))  # not held by a bound
    ridge = damping * float(Q.diagonal().mean())
    end, slope, factors, goal = start, gradient, None, 0.0
    for _ in range(_SHRINKS):
        if not free.any():
            break
        # few variables held since then are projected out; for many, new factors are cheaper
        if factors is None or (factors.free & ~free).sum() > 0.1 * free.sum():
            factors = _Factors(Q, program.half, free, ridge)
        else:
            factors.hold(free)
        move, goal = _conjugate_gradients(program, free, -slope, ridge, factors, goal)
        moved = end + move
        end = np.clip(moved, 0, upper)
        slope = program.gradient(end)
        if (end == moved).all():
            break
        free = free & (end == moved)  # what left the box stays at its border
    along = end - start
    # the objective along the line is a parabola, and its slopes at both ends are known
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
        # the Hessian of class k is ½(Q_S)_kk Q, the factors are those of Q/scale
        self.scaling = np.where(half.diagonal() > 0, scale * half.diagonal(), 1)
        self.diagonal = Q.diagonal() / scale + ridge / scale
        self.classes: list[tuple[int, np.ndarray, np.ndarray]] = []
        room = _ENTRIES
        for k in range(free.shape[1]):
            rows = np.flatnonzero(free[:, k])
            room -= len(rows) ** 2
            if len(rows) and room >= 0:
                self.classes.append((k, rows, _factor(Q, rows, scale, ridge / scale)))
        self.hold(free)

    def hold(self, free: np.ndarray) -> None:
        """Take out the variables that are no longer free."""
        self.bases = []
        for k, rows, U in self.classes:
            held = np.flatnonzero(~free[rows, k])
            self.bases.append(_basis(U, held) if len(held) else None)
        self.now = free

    def solve(self, R: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Apply the inverses to the classes' columns of R."""
        Z = R / self.diagonal[:, None]  # for classes without a factor
        for (k, rows, U), B in zip(self.classes, self.bases, strict=True):
            right = signs[rows, k] * R[rows, k]
            size = float(np.abs(right).max()) or 1.0  # keeps single precision within its range
            y = upper_solve(U, (right / size).astype(np.float32), transposed=True)
            y = y if B is None else project_out(B, y)
            Z[rows, k] = size * signs[rows, k] * upper_solve(U, y)
        return np.where(self.now, Z / self.scaling, 0)


def _factor(Q: np.ndarray, rows: np.ndarray, scale: float, ridge: float) -> np.ndarray:
    """Return the upper factor of Q[rows, rows]/scale + ridge·I; a ridge too small for single precision is raised."""
    ridge = max(ridge, 1e-6)
    for _ in range(12):
        U = upper_factor(principal_part(Q, rows, 1 / scale, ridge).T)
        if U is not None:
            return U
        ridge *= 10
    raise np.linalg.LinAlgError("The kernel between labeled samples is not positive semi-definite.")


@jit()
def principal_part(Q, rows, scaling, ridge):  # type: ignore[no-untyped-def]
    """Return the lower triangle of scaling·Q[rows, rows] + ridge·I, in single precision.

    Tiny entries become 0: single precision does not see them, but computes slowly with products below its range.
    """
    part = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for a in range(len(rows)):
        row = Q[rows[a]]
        for b in range(a + 1):
            entry = scaling * row[rows[b]]
            part[a, b] = entry if abs(entry) > 1e-9 else 0.0
        part[a, a] += ridge
    return part


def _basis(U: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns `held` of U⁻ᵀ."""
    columns = np.zeros((len(U), len(held)), dtype=np.float32, order="F")
    columns[held, np.arange(len(held))] = 1
    return orthonormal(upper_solve(U, columns, transposed=True))


def _conjugate_gradients(
    program: _Program, free: np.ndarray, right: np.ndarray, ridge: float, factors: _Factors, goal: float
) -> tuple[np.ndarray, float]:
    """Solve signs ∘ (Q + ridge·I)(signs ∘ X)½Q_S = right over the free variables; also return the residual to reach.

    The residual is squared, in the norm of the factors; a goal of 0 asks for a hundredth of the first.
    """
    Q, half, signs = program.Q, program.half, program.signs
    X = np.zeros_like(right)
    R = np.where(free, right, 0)
    Z = factors.solve(R, signs)
    direction, size = Z, float(np.sum(R * Z))  # size is the squared residual in the norm of the factors
    goal = goal or 0.01 * size
    for _ in range(_CONJUGATE):
        if size <= goal:
            break
        signed = signs * direction
        image = np.where(free, signs * multiply(multiply(Q, signed) + ridge * signed, half), 0)
        curvature = float(np.sum(direction * image))
        if not curvature > 0:  # rounding: the matrix is semi-definite
            break
        X += size / curvature * direction
        R -= size / curvature * image
        Z = factors.solve(R, signs)
        before, size = size, float(np.sum(R * Z))
        direction = Z + size / before * direction
    return X, goal
