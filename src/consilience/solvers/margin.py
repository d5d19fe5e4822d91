"""The dual of maximum margin regression: one variable per sample in a box, whatever the number of labels.

    min_α ½ α'Qα - target'α,  0 <= α <= upper,  Q = A[of, of] ∘ (K + shift)

K is the kernel of the inputs, A that of the labels, `of` the label of each sample. With g = Qα - target the duality gap
is Σ α g⁺ + (upper - α) g⁻: every term is at least 0, so it can be summed over any part of the samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._backend import few_threads
from .._progress import report_progress
from ._by_class import ByClass
from ._coordinates import add_rows, kernel_steps, spread, violations
from .certificates import Solution
from .linalg import solve_positive
from .margin_features import margin_features, squared_lengths
from .margin_labels import LabelKernel

RowFiller = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (samples, array to fill) -> their rows of K, in the array
_BLOCK = 64  # rows of the kernel computed at a time
_SWEEPS = 10  # turns over the variables of a block at each visit
_LEAP, _LEAP_EVERY = 3000, 50  # Newton steps on at most so many variables, after so many passes
_PATIENCE = 1000  # number of passes without a smaller gap after which the solver stops
_MANY = 20  # from so many classes on, solving class by class is faster
_SINGLE = 100  # up to this largest Q_ii·upper, rounding in single precision stays far below the gap


@dataclass(frozen=True)
class KernelRows:
    """Rows of a kernel matrix that are computed when the solver asks for them.

    Parameters
    ----------
    against : callable
        Maps (columns, dtype) to a function that fills an array with rows of K against these columns.
    diagonal : array of shape (n,)
        K_ii.
    memory : float
        Bytes that stored rows may take. Where not all rows fit, samples that rest at their bounds are left out for a
        while.
    single : bool
        Whether the rows may be computed in single precision; `solve_margin` does so only if it keeps the gap.
    """

    against: Callable[[np.ndarray, Any], RowFiller]
    diagonal: np.ndarray
    memory: float = 1e9
    single: bool = False


MarginInput: TypeAlias = "KernelRows | np.ndarray | Any"  # rows, or features Φ with K = ΦΦ', dense or sparse


def kernel_diagonal(design: MarginInput) -> np.ndarray:
    """Return the diagonal of K."""
    return design.diagonal if isinstance(design, KernelRows) else squared_lengths(design)


def solve_margin(
    design: MarginInput,
    labels: LabelKernel,
    upper: np.ndarray,
    target: np.ndarray | None = None,
    shift: float = 0.0,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
) -> Solution:
    """Solve the dual over kernel rows or over features; x is (α, g).

    `target` is 1 by default. The gap is at most `tol` of the primal objective. It is that of Q in double precision,
    whatever the precision of the steps. If Q is not positive semi-definite, the status is "indefinite" and x is None.
    """
    target = np.ones(len(upper)) if target is None else target
    if not isinstance(design, KernelRows):
        Phi = _with_column(design, np.sqrt(shift)) if shift else design  # a constant column adds the shift to ΦΦ'
        rows = labels.operator_rows()
        return margin_features(Phi, rows, labels.of, upper, target, tol=tol, max_iter=max_iter, x0=x0)
    largest = (float(design.diagonal.max()) + shift) * labels.longest() * float(upper.max())
    if not np.isfinite(largest):
        raise FloatingPointError("Q has entries that are not finite")
    # beyond _SINGLE, directions lost in rounding could grow until the bounds
    dtypes = [np.float32, np.float64] if design.single and largest <= _SINGLE else [np.float64]
    with few_threads(0):  # many small products; rows of the kernel have threads of their own
        for dtype in dtypes:
            try:
                solution = _solve_rows(_Problem(design, labels, upper, target, shift, x0, dtype), tol, max_iter)
                if dtype == np.float32:  # the rows that steps took were rounded
                    whole = _Problem(design, labels, upper, target, shift, solution.x[0], np.float64)
                    solution = whole.measured(solution.n_iter, solution.status, tol)
            except np.linalg.LinAlgError:
                solution = Solution(None, None, 0, "indefinite")
                continue
            if solution.status != "stalled":
                break
            x0 = solution.x[0]  # double precision continues where single precision stalled
    return solution


def _with_column(Phi: Any, value: float) -> Any:
    """Return features with one more column, the same value for all samples."""
    column = np.full((Phi.shape[0], 1), value)
    return sp.csr_array(sp.hstack([Phi, column])) if sp.issparse(Phi) else np.hstack([Phi, column])


# -- rows of the kernel
class _Rows:
    """Rows of the kernel against some samples, multiplied by the kernel of the labels unless steps group labels."""

    def __init__(self, problem: "_Problem", columns: np.ndarray):
        self.problem, self.columns = problem, columns
        self.fill = problem.design.against(columns, problem.dtype)

    def __call__(self, which: np.ndarray, out: np.ndarray) -> np.ndarray:
        labels, dtype = self.problem.labels, self.problem.dtype
        self.fill(which, out)
        if self.problem.shift:
            out += dtype(self.problem.shift)
        if not labels.few:
            out *= labels.rows(labels.of[which])[:, labels.of[self.columns]].astype(dtype)
        return out


class _Cache:
    """Rows of the kernel among some samples; where memory is short, the row unused for longest is replaced."""

    def __init__(self, problem: "_Problem", samples: np.ndarray):
        self.rows, self.samples = problem.rows(samples), samples
        n = len(samples)
        fit = int(problem.design.memory / (1.5 * np.dtype(problem.dtype).itemsize * n))  # growing copies half of it
        self.limit = min(n, max(fit, _BLOCK))
        self.K = np.empty((0, n), dtype=problem.dtype)
        self.slot = np.full(n, -1)  # where the row of a sample is; -1: not stored
        self.holds = np.empty(0, dtype=np.int64)  # which sample's row a slot holds
        self.used = np.empty(0, dtype=np.int64)
        self.filled = self.clock = 0

    @property
    def short(self) -> bool:
        """Whether there is no room for all rows."""
        return self.limit < len(self.slot)

    def _grow(self, needed: int) -> None:
        """Make room for so many rows, at least twice the room before; memory that is not needed is not touched."""
        size = min(self.limit, max(needed, 2 * len(self.K), 4 * _BLOCK))
        if self.limit < 2 * size:
            size = self.limit
        K, more = np.empty((size, self.K.shape[1]), dtype=self.K.dtype), size - len(self.K)
        K[: self.filled] = self.K[: self.filled]
        self.K = K
        self.holds = np.concatenate([self.holds, np.full(more, -1)])
        self.used = np.concatenate([self.used, np.zeros(more, dtype=np.int64)])

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """Return the slots of the wanted rows, at most as many as there are slots."""
        self.clock += 1
        there = self.slot[wanted]
        self.used[there[there >= 0]] = self.clock
        missing = wanted[there < 0]
        if len(missing):
            if len(self.K) < min(self.filled + len(missing), self.limit):
                self._grow(self.filled + len(missing))
            slots = self._free_slots(len(missing))
            if (np.diff(slots) == 1).all():  # one piece of memory is filled without a copy
                self.rows(self.samples[missing], self.K[slots[0] : slots[-1] + 1])
            else:
                rows = np.empty((len(slots), self.K.shape[1]), dtype=self.K.dtype)
                self.K[slots] = self.rows(self.samples[missing], rows)
            self.slot[missing], self.holds[slots], self.used[slots] = slots, missing, self.clock
        return self.slot[wanted]

    def _free_slots(self, count: int) -> np.ndarray:
        """Return slots for new rows: empty ones, then those of the rows unused for longest."""
        slots = np.arange(self.filled, min(self.filled + count, len(self.K)))
        self.filled += len(slots)
        if len(slots) < count:
            oldest = np.argsort(self.used[: self.filled], kind="stable")
            oldest = oldest[self.used[oldest] < self.clock]  # rows asked for now must stay
            oldest = oldest[~np.isin(oldest, slots)][: count - len(slots)]
            self.slot[self.holds[oldest]] = -1
            slots = np.concatenate([slots, oldest])
        return slots


# -- the dual
class _Active:
    """Samples whose gradient is kept up to date, sorted by their labels."""

    def __init__(self, problem: "_Problem", samples: np.ndarray, g: np.ndarray):
        self.problem, self.samples, self.g = problem, samples, g
        self.a, self.upper, self.of = problem.alpha[samples], problem.upper[samples], problem.of[samples]
        self.ends = np.searchsorted(self.of, np.arange(len(problem.A)), side="right")
        self.cache = _Cache(problem, samples)
        self.violation = np.empty(len(samples))
        self.mixed = np.random.default_rng(0).permutation(len(samples))  # a random order among equal violations

    def gap(self) -> float:
        """Return these samples' part of the duality gap."""
        return float(violations(self.a, self.g, self.upper, self.violation))

    def visit(self, eps: float) -> int:
        """Pass over the variables that violate optimality by more than `eps`, worst first; return how many moved."""
        chosen = self.mixed[self.violation[self.mixed] > eps]
        chosen = chosen[np.argsort(-self.violation[chosen], kind="stable")]
        moved, start = 0, 0
        size = _BLOCK if self.cache.filled else _BLOCK // 4  # the first few steps bring most samples to rest
        while start < len(chosen):
            some = chosen[start : start + size]
            start, size = start + size, min(2 * size, _BLOCK)
            v, a = self.g[some], self.a[some]
            # steps of earlier blocks may have settled some
            some = some[((v > eps) & (a > 0)) | ((v < -eps) & (a < self.upper[some]))]
            if len(some):
                slots, K, A = self.cache.fetch(some), self.cache.K, self.problem.A
                change = kernel_steps(some, slots, K, A, self.of, self.g, self.a, self.upper, eps, _SWEEPS)
                spread(change, self.of[some], slots, K, self.ends, self.problem.lines, self.g)
                moved += int(np.count_nonzero(change))
        self.problem.alpha[self.samples] = self.a
        return moved

    def leap(self) -> None:
        """Take Newton steps on the variables between their bounds; those that meet a bound stay there."""
        free = np.flatnonzero((self.a > 0) & (self.a < self.upper))
        if not 0 < len(free) <= min(_LEAP, self.cache.limit):
            return
        slots = self.cache.fetch(free)
        Q = self.cache.K[slots][:, free] * self.problem.A[np.ix_(self.of[free], self.of[free])]
        new = _newton(Q.astype(np.float64), self.g[free], self.a[free], self.upper[free])
        change, self.a[free] = new - self.a[free], new
        spread(change, self.of[free], slots, self.cache.K, self.ends, self.problem.lines, self.g)
        self.problem.alpha[self.samples] = self.a

    def resting(self, level: float) -> np.ndarray:
        """Return which variables a bound holds, with gradients beyond `level`."""
        return ((self.a <= 0) & (self.g > level)) | ((self.a >= self.upper) & (self.g < -level))


def _newton(Q: np.ndarray, g: np.ndarray, a: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return a point with a lower value over few variables, by Newton steps to one bound after the other.

    The ridge shortens steps where Q is singular. It is not part of the problem: a step is taken only if it lowers the
    value for Q itself, and the gap is measured with Q.
    """
    a, g, free = a.copy(), g.copy(), np.arange(len(a))
    ridge = 1e-12 * Q.diagonal().mean()
    for _ in range(max(5, int(1e9 / len(a) ** 3))):  # a factor takes n³/3 operations
        part = Q[np.ix_(free, free)]
        part[np.diag_indices(len(free))] += ridge
        try:
            step = -solve_positive(part, g[free])
        except np.linalg.LinAlgError:
            ridge *= 100  # Q is singular to rounding
            continue
        new = np.clip(a[free] + step, 0, upper[free])
        change = new - a[free]
        slope = Q[:, free] @ change
        if g[free] @ change + 0.5 * change @ slope[free] < 0:  # all that meet a bound may stay there
            a[free], g = new, g + slope
            inside = (new > 0) & (new < upper[free])
            if inside.all() or not inside.any():
                break
            free = free[inside]
            continue
        room = np.where(step > 0, upper[free] - a[free], a[free]) / np.maximum(np.abs(step), 1e-300)
        share = min(1.0, float(room.min()))  # up to the first bound
        g += Q[:, free] @ (share * step)
        a[free] = np.clip(a[free] + share * step, 0, upper[free])
        a[free[room <= share]] = np.where(step > 0, upper[free], 0.0)[room <= share]
        free = free[room > share]
        if share == 1.0 or not len(free):
            break
    return a


class _Problem:
    """The dual at one precision, with the samples that steps leave out for a while."""

    def __init__(
        self,
        design: KernelRows,
        labels: LabelKernel,
        upper: np.ndarray,
        target: np.ndarray,
        shift: float,
        x0: np.ndarray | None,
        dtype: Any,
    ):
        self.design, self.labels, self.shift, self.dtype = design, labels, shift, dtype
        self.upper, self.target = upper, target
        self.A, self.of = np.ones((1, 1)), np.zeros(len(upper), dtype=np.int64)  # the rows hold the labels' kernel
        if labels.few:
            self.A, self.of = np.ascontiguousarray(labels.A, dtype=np.float64), labels.of
        self.alpha = np.zeros(len(upper)) if x0 is None else np.clip(x0, 0, upper)
        self.outside: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # samples, their g, the α it held for
        self.base, self.lines = _label_lines(self.A)

    def rows(self, columns: np.ndarray) -> _Rows:
        """Return a function that computes rows of the kernel against some samples."""
        return _Rows(self, columns)

    def start(self) -> None:
        """Let steps take all samples."""
        everyone = np.argsort(self.of, kind="stable")
        g = self._updated(everyone, -self.target[everyone], np.zeros(len(self.of)))
        self.active = _Active(self, everyone, g)

    def _updated(self, samples: np.ndarray, g: np.ndarray, then: np.ndarray) -> np.ndarray:
        """Return the present gradient of samples whose gradient was g at α = then."""
        change = self.alpha - then
        changed, g, rows = np.flatnonzero(change), g.copy(), self.rows(samples)
        for start in range(0, len(changed), _BLOCK):
            some = changed[start : start + _BLOCK]
            K = rows(some, np.empty((len(some), len(samples)), dtype=self.dtype))
            add_rows(change[some], self.of[some], K, self.A, self.of[samples], g)
        return g

    def leave(self, resting: np.ndarray) -> None:
        """Leave these samples out until `readmit`."""
        active = self.active
        self.outside.append((active.samples[resting], active.g[resting], self.alpha.copy()))
        self.active = _Active(self, active.samples[~resting], active.g[~resting])

    def readmit(self) -> None:
        """Bring the gradient of all samples up to date."""
        parts = [(self.active.samples, self.active.g)]
        parts += [(samples, self._updated(samples, g, then)) for samples, g, then in self.outside]
        samples, g = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        order = np.argsort(self.of[samples], kind="stable")
        self.outside = []
        self.active = _Active(self, samples[order], g[order])

    def gradient(self) -> np.ndarray:
        """Return g of all samples in their own order, once none is left out."""
        g = np.empty(len(self.of))
        g[self.active.samples] = self.active.g
        return g

    def objective(self, g: np.ndarray) -> float:
        """Return the primal objective ½ α'Qα + Σ upper g⁻."""
        squared_norm = float(self.alpha @ (g + self.target))
        if not np.isfinite(squared_norm + g.sum()):
            raise FloatingPointError("Q has entries that are not finite")
        if squared_norm < -1e-6 * float(np.abs(self.target) @ self.alpha):  # α'Qα below 0 by more than rounding
            raise np.linalg.LinAlgError("Q is not positive semi-definite")
        return 0.5 * squared_norm + float(self.upper @ np.maximum(0, -g))

    def measured(self, n_iter: int, status: str, tol: float) -> Solution:
        """Return α of another precision with its gap in this one; "stalled" if it is not the tolerance."""
        everyone = np.arange(len(self.of))
        solution = self.solution(self._updated(everyone, -self.target, np.zeros(len(self.of))), n_iter, status)
        missed = status == "converged" and not solution.gap <= tol * solution.objective  # type: ignore[operator]
        return replace(solution, status="stalled") if missed else solution

    def solution(self, g: np.ndarray, n_iter: int, status: str) -> Solution:
        """Return the present point with its gap."""
        violation = np.empty(len(g))
        gap = float(violations(self.alpha, g, self.upper, violation))
        objective = self.objective(g)
        return Solution((self.alpha, g), gap, n_iter, status, objective=objective, residual=float(violation.max()))


def _label_lines(A: np.ndarray) -> tuple[float, tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    """Return a label kernel as compiled steps take it: a base everywhere, and what some pairs of labels have more."""
    T = len(A)
    apart = A[~np.eye(T, dtype=bool)] if T > 1 else np.zeros(1)
    base = float(apart[0]) if (apart == apart[0]).all() else 0.0
    lines = [np.flatnonzero(row - base) for row in A]
    starts = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    extra = np.concatenate([row[line] - base for row, line in zip(A, lines, strict=True)])
    return base, (base, starts, np.concatenate(lines).astype(np.int64), extra)


def _class_by_class(problem: _Problem) -> bool:
    """Tell whether classes are solved one by one: labels are alike, and many, or do not interact."""
    T, own, base = len(problem.A), problem.A.diagonal(), problem.base
    # base <= 0, since only then the model of `_by_class` lies above Q
    alike = base <= 0 and (own == own[0]).all() and own[0] > 0 and not (problem.A - base - np.diag(own - base)).any()
    # bytes of the matrices within classes
    stored = float((np.bincount(problem.of).astype(np.float64) ** 2).sum()) * np.dtype(problem.dtype).itemsize
    return bool(alike and T > 1 and (base == 0 or T >= _MANY) and stored <= problem.design.memory)


def _solve_rows(problem: _Problem, tol: float, max_iter: int) -> Solution:
    """Solve the dual over kernel rows, class by class where that is faster, else by passes over violating samples."""
    n_iter = 0
    if _class_by_class(problem):
        by_class = ByClass(problem, float(problem.A[0, 0]), problem.base)
        n_iter, reached = by_class.run(tol, max_iter)
        problem.alpha[by_class.order] = by_class.a
        if reached or n_iter >= max_iter:
            g = np.empty(len(by_class.g))
            g[by_class.order] = by_class.g
            return problem.solution(g, n_iter, "converged" if reached else "max_iter")
    problem.start()
    more, status = _violators_first(problem, tol, max_iter - n_iter)
    return problem.solution(problem.gradient(), n_iter + more, status)


def _violators_first(problem: _Problem, tol: float, max_iter: int) -> tuple[int, str]:
    """Pass over the violating samples at ever finer levels; return the number of passes and the status."""
    eps, left_at, n_iter = 0.5, 1.0, 0
    objective = problem.objective(problem.gradient())
    lowest, since = np.inf, 0  # the smallest gap, and the number of passes since it fell
    while n_iter < max_iter and since < _PATIENCE:
        gap = problem.active.gap()
        report_progress(n_iter, gap)
        lowest, since = (gap, 0) if gap < 0.99 * lowest else (lowest, since + 1)
        if not problem.outside:  # otherwise the last objective stands in for the present one
            objective = problem.objective(problem.gradient())
        if gap <= tol * objective:
            if not problem.outside:
                return n_iter, "converged"
            problem.readmit()
            lowest = np.inf
            continue
        n_iter += 1
        if n_iter % _LEAP_EVERY == 0:
            problem.active.leap()
            problem.active.gap()
        if problem.active.visit(eps) <= 0.05 * np.count_nonzero(problem.active.a):
            # half, but not below a thousandth of the largest violation
            eps = max(eps / 2, min(eps, 1e-3 * float(problem.active.violation.max())))
            resting = problem.active.resting(4 * eps)
            # leaving out is worth it where rows are computed again and again, and many samples rest
            if problem.active.cache.short and eps <= left_at / 4 and resting.mean() > 0.3:
                problem.leave(resting)
                left_at = eps
    if problem.outside:
        problem.readmit()
    return n_iter, "max_iter" if n_iter >= max_iter else "stalled"
