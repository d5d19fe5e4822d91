"""Maximum margin regression class by class, where any two labels have one inner product b <= 0: simplex, indicator.

    Q = (a - b) B ∘ K + b K,  B_ij = 1 where samples i and j are of one class, a the squared length of labels

Classes interact only through b K. There K is replaced by its Nyström approximation ΦΦ' on few samples. Since ΦΦ' <= K
and b <= 0, the model Q' = (a - b) B ∘ K + b ΦΦ' lies above Q, so minimizing it with the true gradient lowers the
objective every time. Steps cost O(n / classes + rank). The true gradient is computed again a few times, from rows of K
that are not stored; the gap is that of the true gradient.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._progress import report_progress
from ._coordinates import class_steps, spread, violations
from .linalg import eigh

_ROWS = 256  # rows of the kernel computed at a time
_RANK = 128  # of the Nyström approximation; twice as much from _MANY classes on, where rows of the kernel are the cost
_MANY = 200
_SWEEPS = 10  # turns over the variables of a class at each visit


class ByClass:
    """The dual, with its samples sorted by class."""

    def __init__(self, problem: Any, own: float, b: float):
        self.order = np.argsort(problem.of, kind="stable")  # samples of a class become neighbors
        self.of, self.upper = problem.of[self.order], problem.upper[self.order]
        self.target, self.dtype, self.rows, self.b = problem.target[self.order], problem.dtype, problem.rows, b
        n, T = len(self.of), len(problem.A)
        # class c has the rows from ends[c - 1] up to ends[c]
        self.ends = np.searchsorted(self.of, np.arange(T), side="right")
        self.lines = (b, np.arange(T + 1), np.arange(T), np.full(T, own - b))  # see `spread`
        self.features = self._features() if b else np.zeros((n, 0), dtype=self.dtype)
        self.grams, self.starts = self._grams(own)
        self.all_rows = self.rows(self.order)
        self.buffer = np.empty((min(_ROWS, n), n), dtype=self.dtype)
        self.a, self.then = problem.alpha[self.order], np.zeros(n)  # α, and the α that `true` belongs to
        self.true, self.violation = -self.target, np.empty(n)  # Qα - target at α = 0
        self.refresh()

    def _features(self) -> np.ndarray:
        """Return Φ with ΦΦ' <= K, on random samples; directions of little weight are left out."""
        n = len(self.order)
        rank = min(n, _RANK if len(self.ends) < _MANY else 2 * _RANK)
        chosen = np.sort(np.random.default_rng(0).choice(n, rank, replace=False))
        K = self.rows(self.order[chosen])(self.order, np.empty((n, len(chosen)), dtype=self.dtype))
        values, vectors = eigh(K[chosen].astype(np.float64))
        # fewer directions lower ΦΦ', so it stays below K
        kept = values > 1e-5 * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])  # ΦΦ' = K[:, Z] K[Z, Z]⁺ K[Z, :] for the samples Z chosen
        return np.ascontiguousarray(K @ root.astype(self.dtype))

    def _grams(self, own: float) -> tuple[np.ndarray, np.ndarray]:
        """Return Q' within each class, one after the other in one array, and where each begins."""
        sizes = np.diff(self.ends, prepend=0)
        starts = np.concatenate([[0], np.cumsum(sizes**2)])
        grams = np.empty(starts[-1], dtype=self.dtype)
        for few in _together(sizes):
            first, last = self.ends[few[0]] - sizes[few[0]], self.ends[few[-1]]
            members, n = self.order[first:last], last - first
            K = self.rows(members)(members, np.empty((n, n), dtype=self.dtype))
            K *= own - self.b  # Q' within a class is (a - b) K + b ΦΦ'
            if self.b:
                features = self.features[first:last]
                K += self.dtype(self.b) * (features @ features.T)
            for c in few:
                mine = slice(self.ends[c] - sizes[c] - first, self.ends[c] - first)
                grams[starts[c] : starts[c + 1]] = K[mine, mine].ravel()
        return grams, starts

    def visit(self, eps: float, sweeps: int = _SWEEPS) -> int:
        """Take one turn over the classes; return the number of steps."""
        matrices = (self.ends, self.grams, self.starts, self.b, self.features)
        return int(class_steps(*matrices, self.w, self.seen, self.g, self.a, self.upper, eps, sweeps))

    def gap(self) -> float:
        """Return the duality gap at the gradient of the model."""
        self.visit(np.inf, 0)  # brings the changes of other classes to every sample
        return float(violations(self.a, self.g, self.upper, self.violation))

    def objective(self) -> float:
        """Return the primal objective at the gradient of the model."""
        return 0.5 * float(self.a @ (self.g + self.target)) + float(self.upper @ np.maximum(0, -self.g))

    def refresh(self) -> None:
        """Compute the true gradient from the rows of samples whose variable has changed since the last time."""
        change = self.a - self.then
        changed = np.flatnonzero(change) if self.b else np.empty(0, dtype=int)  # for b = 0 the model is exact
        for start in range(0, len(changed), _ROWS):
            some = changed[start : start + _ROWS]
            K = self.all_rows(self.order[some], self.buffer[: len(some)])
            spread(change[some], self.of[some], np.arange(len(some)), K, self.ends, self.lines, self.true)
        if not self.b:  # Q is block-diagonal, and the blocks are stored
            for c, last in enumerate(self.ends):
                first = self.ends[c - 1] if c else 0
                own = self.grams[self.starts[c] : self.starts[c + 1]].reshape(last - first, last - first)
                self.true[first:last] = own @ self.a[first:last] - self.target[first:last]
        self.then, self.g = self.a.copy(), self.true.copy()
        rank = self.features.shape[1]
        self.w, self.seen = np.zeros(rank), np.zeros((len(self.ends), rank))  # no change of α since this gradient

    def run(self, tol: float, max_iter: int) -> tuple[int, bool]:
        """Step until the gap is `tol` of the objective or stops falling; return the turns, and whether it is `tol`."""
        many = len(self.ends) >= _MANY
        # variables with a gradient within eps rest; at a relative gap of `aim` in the model the true gradient is due
        eps, n_iter, aim, best, worse = 0.5, 0, (2 if many else 20) * tol, np.inf, 0
        while n_iter < max_iter and eps > 1e-15:
            n_iter += 1
            # while many variables move the level stays, and only every 25th turn measures the gap
            if self.visit(eps) > 0.05 * np.count_nonzero(self.a) and n_iter % 25:
                continue
            rough = self.gap()
            report_progress(n_iter, rough)
            if rough > aim * self.objective():
                eps /= 2
                continue
            self.refresh()
            gap = self.gap()
            if gap <= tol * self.objective():
                return n_iter, True
            # number of true gradients in a row that hardly lowered the gap
            worse = worse + 1 if gap > 0.8 * best else 0
            if worse == 4:  # `margin` continues with other steps
                break
            best = min(gap, best)
            # solve the model to a fraction of the true gap: the next true gradient changes it anyway
            eps, aim = min(0.5, 4 * eps), max((0.003 if many else 0.1) * gap / self.objective(), 0.3 * tol)
        self.refresh()
        return n_iter, self.gap() <= tol * self.objective()


def _together(sizes: np.ndarray) -> Iterator[list[int]]:
    """Yield neighboring classes whose samples are few enough to compute their kernel at once."""
    few: list[int] = []
    for c, size in enumerate(sizes):
        if few and sizes[few].sum() + size > _ROWS:
            yield few
            few = []
        if size:
            few.append(c)
    if few:
        yield few
