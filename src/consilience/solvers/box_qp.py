"""The dual of the multi-class support vector machine: a quadratic program with boxes, P variables per sample.

    min ¼ tr(A' Q A Q_S) - <D, α>   subject to 0 <= α_ik <= u_ik,   A = signs ∘ α  (l × P)

Q (l × l) is the kernel between the labeled samples, Q_S (P × P) the one between classes. Where Q_S is diagonal, classes
are P problems that share Q; each is solved by steps of O(l) on its largest violation. Otherwise, or where these steps
do not reach the tolerance, three kinds of steps follow each other:

- Passes over the samples minimize over the P variables of each. They correct what large eigenvalues of Q magnify, and
  alone are enough where bounds hold most variables.
- Splitting takes the kernel and the box in turn, with one Cholesky factor of Q + ρI. It corrects the rest in some tens
  of products with Q if Q is not ill-conditioned. It is left out if few variables are free.
- Newton steps, where splitting no longer helps, minimize over all free variables, by conjugate gradients with one
  Cholesky factor per class as preconditioner: that leaves only the condition of Q_S, whatever Q is. They are damped;
  variables that leave the box are held at its border and the rest is solved again. The next point is the best one
  between the start and that end.

Damping, single precision and the ridge of the factors change only the path: the gap is measured with Q.
"""

from typing import NamedTuple

import numpy as np

from .._backend import by_rows, few_threads
from .._progress import report_progress
from ._class_steps import add_changes, class_rows, loss_and_gap, principal_part, settle_block, settle_samples
from .certificates import Solution
from .linalg import (
    add_product,
    drop_null_space,
    eigh_positive,
    factor_solve,
    multiply,
    orthonormal,
    project_out,
    solve_positive,
    upper_factor,
    upper_solve,
)

_BLOCK = 64  # samples between two updates of all gradients
_FEW = 0.3  # share of variables that move, below which one after the other is faster than a product
_PASSES = 2  # over the samples, before other steps
_PASSES_AFTER = 10  # after a Newton step
_RELAXATION = 1.8  # of the steps of splitting
_SHARE = 0.5  # of the scale of Q, for ρ
_MEMORY = 5  # steps that the extrapolation remembers
_PATIENCE = 15  # steps of splitting in which its gap or their length must halve
_STEPS = 150  # at most so many before the gap is measured
_SHRINKS = 5  # how often variables that leave the box are held within one Newton step
_CONJUGATE = 15  # steps of conjugate gradients for one linear system
_ENTRIES = 10**8  # of all factors together; classes beyond are scaled by their diagonal


class Program(NamedTuple):
    """The arrays of the program."""

    Q: np.ndarray
    half: np.ndarray  # ½Q_S
    D: np.ndarray
    upper: np.ndarray
    signs: np.ndarray
    even: bool  # whether any two classes interact in the same way, as the vertices of a simplex do

    def push(self, x: np.ndarray) -> np.ndarray:
        """Return QA, in Fortran's order."""
        A = np.asfortranarray(self.signs * x)
        return multiply(self.Q, A) if A.any() else A

    def slopes(self, pushed: np.ndarray) -> np.ndarray:
        """Return the gradient signs ∘ ½QAQ_S - D, given QA."""
        return self.signs * multiply(self.half, pushed.T).T - self.D


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

    `tol` is relative to the primal value; `max_iter` counts rounds of steps. The point with the smallest gap is
    returned.
    """
    signs = np.ones_like(D) if signs is None else signs
    if not (Q.diagonal().all() and Q_S.diagonal().all()):
        return _with_flat(Q, Q_S, D, upper, signs, tol, max_iter, x0)
    Q = np.ascontiguousarray(Q.T if Q.flags.f_contiguous else Q, dtype=np.float64)
    D, upper, signs = (np.ascontiguousarray(array, dtype=np.float64) for array in (D, upper, signs))
    program = Program(Q, 0.5 * Q_S, D, upper, signs, is_even(Q_S, signs))
    alpha = np.zeros_like(D) if x0 is None else np.clip(np.ascontiguousarray(x0), 0, upper)
    if not (Q_S - np.diag(Q_S.diagonal())).any():  # one class against the rest
        alpha = _solve_classes(program, alpha, tol, max_iter)
    goal, splitting = 0.15 * tol, None  # after a pass, the gap is two to four times that of splitting
    damping, best = 0.3, Solution(alpha, np.inf, 0, "max_iter")  # damping is in units of the mean diagonal of Q
    with few_threads(0):  # many small operations: threads would wait for each other most of the time
        pushed = program.push(alpha)
        for n_iter in range(max_iter + 1):
            found = _measure(program, alpha, pushed, n_iter, tol)
            if found.converged and n_iter > 0:  # passes add to QA: without their rounding errors
                found = _measure(program, alpha, program.push(alpha), n_iter, tol)
            report_progress(n_iter, found.gap)
            best = found if found.gap < best.gap else best  # type: ignore[operator]
            if best.converged or n_iter == max_iter:
                break
            gradient = program.slopes(pushed)
            if n_iter == 1 and _newton_cost(program, alpha, gradient) > 1:
                splitting = _Splitting(program, alpha, pushed)
            passes, share = (_PASSES, 0.01) if n_iter == 0 else (_PASSES_AFTER, 0.1)
            if splitting is not None:
                alpha, passes, share = splitting.run(goal), 1, 0.01
                pushed = program.push(alpha)
                splitting.refer(alpha, pushed)
                goal *= 0.2
                splitting = None if splitting.stalled else splitting
            elif n_iter > 1:  # the first passes find most of the bounds that a Newton step must respect
                alpha, step = _newton_step(program, alpha, gradient, damping)
                # as in trust-region methods: less damping after long steps, more after short ones
                damping = max(damping * (0.2 if step > 0.8 else 4.0 if step < 0.4 else 1.0), 1e-10)
                pushed = program.push(alpha)
            for _ in range(passes):
                _pass(program, alpha, pushed, share)
        if not best.converged:
            best = _measure(program, best.x, program.push(best.x), n_iter, tol)
    return Solution(best.x, best.gap, n_iter, best.status, best.objective, best.residual)


def _with_flat(Q, Q_S, D, upper, signs, tol, max_iter, x0) -> Solution:  # type: ignore[no-untyped-def]
    """Solve a program with samples or classes whose diagonal entry is 0: only -Dα is left of their objective.

    Q and Q_S are semi-definite, so the whole row of such an entry is 0.
    """
    rows, columns = np.flatnonzero(Q.diagonal() > 0), np.flatnonzero(Q_S.diagonal() > 0)
    alpha, part = np.where(D > 0, upper, 0.0), np.ix_(rows, columns)
    found = Solution(alpha[part], 0.0, 0, "converged", 0.0, 0.0)
    if len(rows) and len(columns):
        found = class_qp(
            Q[np.ix_(rows, rows)], Q_S[np.ix_(columns, columns)], D[part], upper[part], signs[part],
            tol=tol, max_iter=max_iter, x0=None if x0 is None else x0[part],
        )  # fmt: skip
    alpha[part] = 0
    objective = float(np.sum(D * alpha)) + float(found.objective or 0.0)
    alpha[part] = found.x
    return Solution(alpha, found.gap, found.n_iter, found.status, objective, found.residual)


def is_even(Q_S: np.ndarray, signs: np.ndarray) -> bool:
    """Tell whether Q_S has one value on its diagonal and another elsewhere, and one sign belongs to all classes."""
    P = len(Q_S)
    if P < 2 or not (signs == signs[0, 0]).all():
        return False
    own, other = Q_S[0, 0], Q_S[0, 1]
    error = np.abs(Q_S - ((own - other) * np.eye(P) + other)).max()
    return bool(error <= 1e-12 * own and own - other > 1e-6 * own)


def _measure(program: Program, alpha: np.ndarray, pushed: np.ndarray, n_iter: int, tol: float) -> Solution:
    """Return α, given QA, with its gap, primal value and largest violation."""
    gradient = program.slopes(pushed)
    primal, gap = primal_and_gap(alpha, gradient, program.D, program.upper)
    if not np.isfinite(primal + gap):
        raise FloatingPointError("the objective is not finite")
    status = "converged" if gap <= tol * abs(primal) else "max_iter"
    residual = float(kkt_violations(alpha, gradient, program.upper).max())
    return Solution(alpha.copy(), gap, n_iter, status, primal, residual)


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
def _solve_classes(program: Program, start: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
    """Solve the problem of each class by itself."""
    Q, factors = program.Q, np.ascontiguousarray(program.half.diagonal())
    x, gradient = (
        np.ascontiguousarray(start.T),
        np.ascontiguousarray(program.slopes(program.push(start)).T),
    )  # a class is a row
    rows = [np.ascontiguousarray(part.T) for part in (program.upper, program.signs, program.D)]
    steps = max_iter * len(Q)
    by_rows(
        lambda first, last: class_rows(first, last, Q, factors, x, gradient, *rows, tol, steps), len(x), len(Q) ** 2
    )
    return np.ascontiguousarray(x.T)


# -- passes
def _pass(program: Program, alpha: np.ndarray, pushed: np.ndarray, share: float) -> None:
    """Minimize over the variables of one sample after the other; alpha and QA, in Fortran's order, are changed.

    Samples whose violations are less than a share of the largest are left to later passes. Steps of a block see each
    other through its own part of Q; then one product brings them to all samples.
    """
    Q, half, D, upper, signs, even = program
    worst = kkt_violations(alpha, program.slopes(pushed), upper).max(axis=1)
    level = share * float(worst.max())
    chosen = np.flatnonzero(worst > level)
    for first in range(0, len(chosen), _BLOCK):
        block = chosen[first : first + _BLOCK]
        rows = Q[block[0] : block[-1] + 1] if block[-1] - block[0] < len(block) else Q[block]
        x, before = alpha[block], alpha[block]
        gradient = np.ascontiguousarray(signs[block] * multiply(half, pushed[block].T).T - D[block])
        settle_block(rows[:, block], half, even, x, gradient, upper[block], signs[block], level)
        alpha[block], change = x, signs[block] * (x - before)
        if np.count_nonzero(change) < _FEW * change.size:
            add_changes(rows, change, pushed.T)
        else:
            add_product(pushed, rows.T, np.asfortranarray(change))


# -- splitting
class _Splitting:
    """Steps that take the kernel and the box in turn, with one factor for all classes and steps.

    In W = AR, where RR' = ½Q_S, the program is min ½ tr(W'QW) + φ(W): the kernel couples samples but not the columns of
    W, and φ, the least -<D, α> in the box for a given W, couples columns but not samples. The method of Douglas and
    Rachford minimizes each part alone, close to a point that depends on the other:

        W = argmin φ(W) + ½ρ|W - Z|²          one small program for each sample
        Y = (Q + ρI)⁻¹ ρ(2W - Z)
        Z <- Z + relaxation (Y - W)           with Anderson's extrapolation from the last steps

    At the solution W = Y. `start` is α, and `pushed` is QA.
    """

    def __init__(self, program: Program, start: np.ndarray, pushed: np.ndarray) -> None:
        self.program, self.alpha = program, start.copy()
        values, vectors = drop_null_space(*eigh_positive(program.half.copy()))
        self.R = vectors * np.sqrt(values)
        self.scale, free = float(program.Q.diagonal().mean()), program.upper > 0
        # where bounds hold most variables, α is of the size of the bounds instead of that of D/Q
        bounded = np.abs(program.D[free]).mean() / (program.upper[free].mean() * values.mean())
        self.rho = _SHARE * (self.scale + float(bounded))
        shifted = principal_part(program.Q, np.arange(len(start)), 1 / self.scale, self.rho / self.scale)
        factor = upper_factor(shifted.T)
        if factor is None:
            raise np.linalg.LinAlgError("The kernel between labeled samples is not positive semi-definite.")
        self.factor = factor
        self.W = multiply(program.signs * start, self.R)
        self.Z = self.W - multiply(pushed, self.R) / self.rho
        self.last = (self.Z, self.Z)  # Z and the step from it
        # changes of the step, and the changes of Z plus these, from one step to the next
        self.changes, self.moves = np.empty((_MEMORY, self.Z.size)), np.empty((_MEMORY, self.Z.size))
        self.seen, self.least, self.stalled = 0, np.inf, False
        self.refer(start, pushed)

    def refer(self, alpha: np.ndarray, pushed: np.ndarray) -> None:
        """Compute Y from here on relative to α, for which QA is known: errors of the factor vanish close to it."""
        self.near = multiply(self.program.signs * alpha, self.R)
        self.image = multiply(pushed, self.R) + self.rho * self.near

    def run(self, goal: float) -> np.ndarray:
        """Take steps until their relative gap is at most `goal` or no longer falls; return α."""
        gaps, lengths = [np.inf], [np.inf]  # the smallest so far
        for n_steps in range(1, _STEPS + 1):
            step, gap = self._step()
            gaps.append(min(gap, gaps[-1]))
            lengths.append(min(self._extrapolate(step), lengths[-1]))
            if gap <= goal:
                break
            if n_steps % _PATIENCE == 0:
                # while bounds are far above the solution the relative gap is 1, and only the length tells of progress
                if gaps[-1] > 0.5 * gaps[-_PATIENCE] and lengths[-1] > 0.5 * lengths[-_PATIENCE]:
                    break
                self.refer(self.alpha, self.program.push(self.alpha))
        self.stalled = gap > goal
        return self.alpha.copy()

    def _step(self) -> tuple[np.ndarray, float]:
        """Return the step of Z, and the relative gap Σ u max(0, -gradient) + <α, gradient> with the gradient at Y."""
        _, half, D, upper, signs, even = self.program
        pushed = multiply(self.R, (self.W - self.Z).T).T
        level = 1e-6 * float(np.abs(D).max())  # of gradients that a sample may keep, where it takes turns
        settle_samples(self.rho, half, even, self.alpha, pushed, D, upper, signs, level)
        self.W = multiply(signs * self.alpha, self.R)
        goal = 2 * self.W - self.Z
        Y = self.near + factor_solve(self.factor, self.rho * goal - self.image) / self.scale
        QY = self.rho * (goal - Y)
        loss, gap = loss_and_gap(self.alpha, multiply(self.R, QY.T).T, D, upper, signs)
        primal = loss + 0.5 * float(np.sum(Y * QY))
        return _RELAXATION * (Y - self.W), gap / primal if primal > 0 else np.inf

    def _extrapolate(self, step: np.ndarray) -> float:
        """Move Z by the step, corrected so that steps of the same kind would end where it is 0; return its length."""
        flat, length = step.ravel("F"), float(np.sqrt(np.sum(step**2)))
        if length > 2 * self.least:  # the past no longer helps
            self.seen, self.least = 0, length
        self.least = min(self.least, length)
        if self.seen:  # differences of Z and of the step since the last step replace the oldest ones
            slot = (self.seen - 1) % _MEMORY
            np.subtract(flat, self.last[1], out=self.changes[slot])
            np.subtract(self.Z.ravel("F"), self.last[0], out=self.moves[slot])
            self.moves[slot] += self.changes[slot]
        self.last = self.Z.ravel("F"), flat
        past, self.seen = min(self.seen, _MEMORY), self.seen + 1
        self.Z = self.Z + step
        if past:
            changes = self.changes[:past]
            normal = multiply(changes, changes.T)
            normal[np.diag_indices(past)] += 1e-10 * np.trace(normal) + np.finfo(float).tiny
            weights = solve_positive(normal, multiply(changes, flat[:, None]))
            self.Z -= multiply(self.moves[:past].T, weights).reshape(self.Z.shape, order="F")
        return length


# -- Newton steps
def _free(alpha: np.ndarray, gradient: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return which variables no bound holds."""
    return (upper > 0) & ((alpha > 0) | (gradient < 0)) & ((alpha < upper) | (gradient > 0))


def _newton_cost(program: Program, alpha: np.ndarray, gradient: np.ndarray) -> float:
    """Return the cost of the factors of five Newton steps, which are often enough, in factors of the whole kernel."""
    sizes = _free(alpha, gradient, program.upper).mean(axis=0)
    return 5 * float(np.sum(sizes**3))


def _newton_step(program: Program, start: np.ndarray, gradient: np.ndarray, damping: float) -> tuple[np.ndarray, float]:
    """Return the best point between `start` and the minimum over its free variables, and how far along it lies.

    Damping adds a multiple of the mean diagonal to Q: without it, directions that Q hardly sees leave the box by far.
    """
    Q, upper = program.Q, program.upper
    free = _free(start, gradient, upper)
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
        slope = program.slopes(program.push(end))
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


def _basis(U: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns `held` of U⁻ᵀ."""
    columns = np.zeros((len(U), len(held)), dtype=np.float32, order="F")
    columns[held, np.arange(len(held))] = 1
    return orthonormal(upper_solve(U, columns, transposed=True))


def _conjugate_gradients(
    program: Program, free: np.ndarray, right: np.ndarray, ridge: float, factors: _Factors, goal: float
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
