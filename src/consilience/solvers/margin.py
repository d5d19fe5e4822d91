"""The dual of maximum margin regression: one variable per sample in a box, whatever the number of classes.

    min_α ½ α'Qα - target'α,  0 <= α <= upper,  Q = A[of, of] ∘ K

K is the kernel of the inputs, A that of the labels, `of` the label of each sample. With g = Qα - target the duality gap
is Σ α g⁺ + (upper - α) g⁻: every term is at least 0, so that it can be summed over any part of the samples.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from .._backend import few_threads
from .._progress import report_progress
from ._by_class import ByClass
from ._coordinates import add_rows, kernel_steps, spread, violations
from .certificates import Solution

Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (positions, array to fill) -> their rows of K, in the array
BLOCK = 64  # rows of the kernel made at a time
SWEEPS = 10  # turns over the variables of a block at each visit
LEAP, LEAP_EVERY = 3000, 50  # Newton steps on so many variables at most, after so many passes
PATIENCE = 1000  # so many passes without a smaller gap are the end
MANY = 20  # so many classes are better solved class by class


# -- rows of the kernel
class _Cache:
    """Rows of the kernel among some samples, the longest unused given up where memory is short."""

    def __init__(self, problem: "_Problem", samples: np.ndarray):
        self.rows, self.samples = problem.against(samples), samples
        n = len(samples)
        fit = int(problem.memory / (1.5 * np.dtype(problem.dtype).itemsize * n))  # while it grows, half is there twice
        self.limit = min(n, max(fit, BLOCK))
        self.K = np.empty((0, n), dtype=problem.dtype)
        self.slot = np.full(n, -1)
        self.holds = np.empty(0, dtype=np.int64)  # which sample's row a slot holds
        self.used = np.empty(0, dtype=np.int64)
        self.filled = self.clock = 0

    @property
    def short(self) -> bool:
        """Whether there is no room for all rows."""
        return self.limit < len(self.slot)

    def _grow(self, needed: int) -> None:
        """Room for so many rows, twice what there was at least; memory that is not needed is not touched."""
        size = min(self.limit, max(needed, 2 * len(self.K), 4 * BLOCK))
        if self.limit < 2 * size:
            size = self.limit
        K, more = np.empty((size, self.K.shape[1]), dtype=self.K.dtype), size - len(self.K)
        K[: self.filled] = self.K[: self.filled]
        self.K = K
        self.holds = np.concatenate([self.holds, np.full(more, -1)])
        self.used = np.concatenate([self.used, np.zeros(more, dtype=np.int64)])

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """The slots of the wanted rows, at most as many as there are slots."""
        self.clock += 1
        there = self.slot[wanted]
        self.used[there[there >= 0]] = self.clock
        missing = wanted[there < 0]
        if len(missing):
            if len(self.K) < min(self.filled + len(missing), self.limit):
                self._grow(self.filled + len(missing))
            slots = np.arange(self.filled, min(self.filled + len(missing), len(self.K)))
            self.filled += len(slots)
            if len(slots) < len(missing):
                oldest = np.argsort(self.used[: self.filled], kind="stable")
                oldest = oldest[self.used[oldest] < self.clock]
                oldest = oldest[~np.isin(oldest, slots)][: len(missing) - len(slots)]
                self.slot[self.holds[oldest]] = -1
                slots = np.concatenate([slots, oldest])
            self._fill(slots, self.samples[missing])
            self.slot[missing], self.holds[slots], self.used[slots] = slots, missing, self.clock
        return self.slot[wanted]

    def _fill(self, slots: np.ndarray, samples: np.ndarray) -> None:
        if (np.diff(slots) == 1).all():
            self.rows(samples, self.K[slots[0] : slots[-1] + 1])
        else:
            self.K[slots] = self.rows(samples, np.empty((len(slots), self.K.shape[1]), dtype=self.K.dtype))


# -- the dual
class _Active:
    """The samples whose gradient is kept up, sorted by their labels."""

    def __init__(self, problem: "_Problem", samples: np.ndarray, g: np.ndarray):
        self.problem, self.samples, self.g = problem, samples, g
        self.a, self.upper, self.of = problem.alpha[samples], problem.upper[samples], problem.of[samples]
        self.ends = np.searchsorted(self.of, np.arange(len(problem.A)), side="right")
        self.cache = _Cache(problem, samples)
        self.violation = np.empty(len(samples))
        self.mixed = np.random.default_rng(0).permutation(len(samples))

    def gap(self) -> float:
        """The part of the duality gap that these samples have."""
        return float(violations(self.a, self.g, self.upper, self.violation))

    def visit(self, eps: float) -> int:
        """One pass over the variables that violate optimality by more than `eps`, the worst first; how many moved."""
        chosen = self.mixed[self.violation[self.mixed] > eps]
        chosen = chosen[np.argsort(-self.violation[chosen], kind="stable")]
        moved, start = 0, 0
        size = BLOCK if self.cache.filled else BLOCK // 4  # the first answers make most samples rest
        while start < len(chosen):
            some = chosen[start : start + size]
            start, size = start + size, min(2 * size, BLOCK)
            v, a = self.g[some], self.a[some]
            some = some[((v > eps) & (a > 0)) | ((v < -eps) & (a < self.upper[some]))]
            if len(some):
                slots, K, A = self.cache.fetch(some), self.cache.K, self.problem.A
                change = kernel_steps(some, slots, K, A, self.of, self.g, self.a, self.upper, eps, SWEEPS)
                spread(change, self.of[some], slots, K, self.ends, self.problem.labels, self.g)
                moved += int(np.count_nonzero(change))
        self.problem.alpha[self.samples] = self.a
        return moved

    def leap(self) -> None:
        """Newton steps on the variables between their bounds, those that meet one left there."""
        free = np.flatnonzero((self.a > 0) & (self.a < self.upper))
        if not 0 < len(free) <= min(LEAP, self.cache.limit):
            return
        slots = self.cache.fetch(free)
        Q = self.cache.K[slots][:, free] * self.problem.A[np.ix_(self.of[free], self.of[free])]
        new = _newton(Q.astype(np.float64), self.g[free], self.a[free], self.upper[free])
        change, self.a[free] = new - self.a[free], new
        spread(change, self.of[free], slots, self.cache.K, self.ends, self.problem.labels, self.g)
        self.problem.alpha[self.samples] = self.a

    def resting(self, level: float) -> np.ndarray:
        """Which variables are held by their bounds, with gradients beyond `level`."""
        return ((self.a <= 0) & (self.g > level)) | ((self.a >= self.upper) & (self.g < -level))


def _newton(Q: np.ndarray, g: np.ndarray, a: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The minimum over few variables, as far as it can be reached by steps to one bound after the other."""
    a, g, free = a.copy(), g.copy(), np.arange(len(a))
    ridge = 1e-12 * Q.diagonal().mean()
    for _ in range(max(5, int(1e9 / len(a) ** 3))):
        part = Q[np.ix_(free, free)]
        part[np.diag_indices(len(free))] += ridge
        try:
            step = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(part, overwrite_a=True), g[free])
        except np.linalg.LinAlgError:
            ridge *= 100
            continue
        new = np.clip(a[free] + step, 0, upper[free])
        change = new - a[free]
        pull = Q[:, free] @ change
        if g[free] @ change + 0.5 * change @ pull[free] < 0:  # all that meet a bound may stay there
            a[free], g = new, g + pull
            inside = (new > 0) & (new < upper[free])
            if inside.all() or not inside.any():
                break
            free = free[inside]
            continue
        room = np.where(step > 0, upper[free] - a[free], a[free]) / np.maximum(np.abs(step), 1e-300)
        share = min(1.0, float(room.min()))
        g += Q[:, free] @ (share * step)
        a[free] = np.clip(a[free] + share * step, 0, upper[free])
        a[free[room <= share]] = np.where(step > 0, upper[free], 0.0)[room <= share]
        free = free[room > share]
        if share == 1.0 or not len(free):
            break
    return a


class _Problem:
    """The dual, with the samples that steps leave out for now."""

    def __init__(
        self,
        against: Callable[[np.ndarray], Rows],
        A: np.ndarray,
        of: np.ndarray,
        upper: np.ndarray,
        target: np.ndarray,
        x0: np.ndarray | None,
        memory: float,
        dtype: Any,
    ):
        self.against, self.of, self.upper, self.target = against, of, upper, target
        self.A = np.ascontiguousarray(A, dtype=np.float64)
        self.memory, self.dtype = memory, dtype
        self.alpha = np.zeros(len(of)) if x0 is None else np.clip(x0, 0, upper)
        self.outside: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # samples, their g, the α it held for
        self.base, self.labels = _label_lines(self.A)

    def start(self) -> None:
        """Take all samples into the steps."""
        everyone = np.argsort(self.of, kind="stable")
        self.active = _Active(self, everyone, self._grown(everyone, -self.target[everyone], np.zeros(len(self.of))))

    def _grown(self, samples: np.ndarray, g: np.ndarray, then: np.ndarray) -> np.ndarray:
        """The gradient now, of samples whose gradient was g at α = then."""
        change = self.alpha - then
        changed, g, rows = np.flatnonzero(change), g.copy(), self.against(samples)
        for start in range(0, len(changed), BLOCK):
            some = changed[start : start + BLOCK]
            K = rows(some, np.empty((len(some), len(samples)), dtype=self.dtype))
            add_rows(change[some], self.of[some], K, self.A, self.of[samples], g)
        return g

    def leave(self, resting: np.ndarray) -> None:
        """Take no steps on these samples until `readmit`."""
        active = self.active
        self.outside.append((active.samples[resting], active.g[resting], self.alpha.copy()))
        self.active = _Active(self, active.samples[~resting], active.g[~resting])

    def readmit(self) -> None:
        """Bring the gradient of all samples up to date."""
        parts = [(self.active.samples, self.active.g)]
        parts += [(samples, self._grown(samples, g, then)) for samples, g, then in self.outside]
        samples, g = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        order = np.argsort(self.of[samples], kind="stable")
        self.outside = []
        self.active = _Active(self, samples[order], g[order])

    def gradient(self) -> np.ndarray:
        """g of all samples in their own order, once none is left out."""
        g = np.empty(len(self.of))
        g[self.active.samples] = self.active.g
        return g


def _label_lines(A: np.ndarray) -> tuple[float, tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    """A label kernel as compiled steps take it: a base everywhere, and what some pairs of labels have more."""
    T = len(A)
    apart = A[~np.eye(T, dtype=bool)] if T > 1 else np.zeros(1)
    base = float(apart[0]) if (apart == apart[0]).all() else 0.0
    lines = [np.flatnonzero(row - base) for row in A]
    starts = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    extra = np.concatenate([row[line] - base for row, line in zip(A, lines, strict=True)])
    return base, (base, starts, np.concatenate(lines).astype(np.int64), extra)


def _class_by_class(problem: _Problem) -> bool:
    """Whether labels are alike, and so many or so far apart that classes are better taken one by one."""
    T, own, base = len(problem.A), problem.A.diagonal(), problem.base
    alike = base <= 0 and (own == own[0]).all() and own[0] > 0 and not (problem.A - base - np.diag(own - base)).any()
    stored = float((np.bincount(problem.of).astype(np.float64) ** 2).sum()) * np.dtype(problem.dtype).itemsize
    return bool(alike and T > 1 and (base == 0 or T >= MANY) and stored <= problem.memory)


def margin_dual(
    against: Callable[[np.ndarray], Rows],
    A: np.ndarray,
    of: np.ndarray,
    upper: np.ndarray,
    target: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
    memory: float = 1e9,
    dtype: Any = np.float64,
) -> Solution:
    """Solve the dual by coordinate steps, with rows of the kernel as they are needed; x is (α, g).

    ``against(columns)`` returns a function that makes rows of K against these columns. `memory` bounds the bytes of
    rows kept; where it is too small for all, samples that rest at their bounds are left out for a while. The gap is
    at most `tol` of the primal objective.
    """
    problem = _Problem(against, A, of, upper, target, x0, memory, dtype)
    with few_threads(0):  # many small products; rows of the kernel have threads of their own
        return _solved(problem, tol, max_iter)


def _solved(problem: _Problem, tol: float, max_iter: int) -> Solution:
    n_iter = 0
    if _class_by_class(problem):
        classes = ByClass(problem, float(problem.A[0, 0]), problem.base)
        n_iter, reached = classes.run(tol, max_iter)
        problem.alpha[classes.order] = classes.a
        if reached or n_iter >= max_iter:
            g = np.empty(len(classes.g))
            g[classes.order] = classes.g
            return _solution(problem, g, n_iter, "converged" if reached else "max_iter")
    problem.start()
    more, status = _violators_first(problem, tol, max_iter - n_iter)
    return _solution(problem, problem.gradient(), n_iter + more, status)


def _violators_first(problem: _Problem, tol: float, max_iter: int) -> tuple[int, str]:
    """Passes over the violating samples at ever finer levels: how many, and how it ended."""
    eps, left_at, n_iter = 0.5, 1.0, 0
    objective = _objective(problem, problem.gradient())
    lowest, since = np.inf, 0  # the least gap, and the passes since it fell
    while n_iter < max_iter and since < PATIENCE:
        gap = problem.active.gap()
        report_progress(n_iter, gap)
        lowest, since = (gap, 0) if gap < 0.99 * lowest else (lowest, since + 1)
        if not problem.outside:
            objective = _objective(problem, problem.gradient())
        if gap <= tol * objective:
            if not problem.outside:
                return n_iter, "converged"
            problem.readmit()
            lowest = np.inf
            continue
        n_iter += 1
        if n_iter % LEAP_EVERY == 0:
            problem.active.leap()
            problem.active.gap()
        if problem.active.visit(eps) <= 0.05 * np.count_nonzero(problem.active.a):
            eps = max(eps / 2, min(eps, 1e-3 * float(problem.active.violation.max())))
            resting = problem.active.resting(4 * eps)
            if problem.active.cache.short and eps <= left_at / 4 and resting.mean() > 0.3:
                problem.leave(resting)
                left_at = eps
    if problem.outside:
        problem.readmit()
    return n_iter, "max_iter" if n_iter >= max_iter else "stalled"


def _objective(problem: _Problem, g: np.ndarray) -> float:
    """The primal objective ½ α'Qα + Σ upper g⁻."""
    norm = float(problem.alpha @ (g + problem.target))
    if not np.isfinite(norm + g.sum()):
        raise FloatingPointError("Q has entries that are not finite")
    if norm < -1e-6 * float(np.abs(problem.target) @ problem.alpha):
        raise np.linalg.LinAlgError("Q is not positive semi-definite")
    return 0.5 * norm + float(problem.upper @ np.maximum(0, -g))


def _solution(problem: _Problem, g: np.ndarray, n_iter: int, status: str) -> Solution:
    violation = np.empty(len(g))
    gap = float(violations(problem.alpha, g, problem.upper, violation))
    objective, residual = _objective(problem, g), float(violation.max())
    return Solution((problem.alpha, g), gap, n_iter, status, objective=objective, residual=residual)
