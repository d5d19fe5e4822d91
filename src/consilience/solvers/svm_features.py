"""The dual of support vector machines over features: no matrix over pairs of samples is formed.

The program is that of `box_qp` with Q = 2TT', where T (l × q) are features of the labeled samples:

    min ½|M|² - <D, α>   subject to 0 <= α_ik <= u_ik,   M = Σ_i (SA_i) ⊗ t_i,   A = signs ∘ α,   Q_S = SS'

With several kernels between outputs, T, S and M have a part for each. Steps change the variables of one sample and
bring M up to date in O(q), as for linear machines (Hsieh, Chang, Lin, Keerthi and Sundararajan 2008). Variables that a
bound holds are left out until the gap is measured. Blocks of rows are visited in turn, so that T may be computed again
for each of them where it does not fit in memory (Yu, Hsieh, Chang and Lin 2012).

Where these steps are slow, because bounds are far above the solution:

- One class against the rest is solved by an interior-point method with one q × q factor per step (Ferris and Munson
  2003), in some tens of steps whatever the bounds are.
- Classes that interact are solved over the kernel, if it is small. Otherwise the steps go on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._backend import by_rows
from .._progress import report_progress
from ._class_steps import row_feature_gap, row_feature_steps, sample_feature_gap, sample_feature_steps
from .box_qp import class_qp, is_even
from .certificates import Solution
from .linalg import add_to_diagonal, cholesky, forward, gram_of, multiply, solve

#: A pass over T: the places of the samples, and their features (J, b, q) for each of J kernels between outputs.
ReadFeatures = Callable[[], Iterator[tuple[slice, np.ndarray]]]

_TURNS = 4  # visits of all samples before the gap is measured
_SMALL = 4000  # samples whose kernel is formed where steps are slow and classes interact
_TREND = 4  # rounds that show how fast the gap falls
_INTERIOR = 60  # steps of the interior-point method, at most
_COST = 1 / 300  # of one such step with q features, in rounds


class _Parts(NamedTuple):
    """α, its bounds, the signs and D: (P, l) for one class against the rest, otherwise (l, P)."""

    x: np.ndarray
    upper: np.ndarray
    signs: np.ndarray
    D: np.ndarray

    def of(self, *place: Any) -> tuple[np.ndarray, ...]:
        """Return the parts of some samples, or of some samples of a class."""
        return tuple(part[place] for part in self)


def scaled_features(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]], factors: Sequence[np.ndarray], d: np.ndarray, scale: float
) -> Iterator[np.ndarray]:
    """Yield √(l/2) ν (L⁻¹ D_c Φ')' for blocks (Φ, ν), once for each factor L of the penalties; `scale` is l.

    `d` is the weight of each column's view.
    """
    plain = [np.count_nonzero(L) == len(L) for L in factors]  # only γ_A is left: L is diagonal
    for Phi, nu in blocks:
        T = np.empty((len(factors), *Phi.shape))
        for L, diagonal, own in zip(factors, plain, T, strict=True):
            own[:] = Phi * (d / L.diagonal()) if diagonal else forward(L, (Phi * d).T).T
        T *= (0.5 * scale) ** 0.5 * nu[:, None]
        yield T


def keep_features(parts: Callable[[], Iterator[np.ndarray]], shape: tuple[int, int, int], most: float) -> ReadFeatures:
    """Return passes over T of a shape (J, l, q): over one array if it has at most so many bytes, else made again."""

    def again() -> Iterator[tuple[slice, np.ndarray]]:
        start = 0
        for part in parts():
            yield slice(start, start + part.shape[1]), part
            start += part.shape[1]

    if 8 * np.prod(shape, dtype=float) > most:
        return again
    T = np.empty(shape)
    for place, part in again():
        T[:, place] = part
    return lambda: iter([(slice(0, shape[1]), T)])


def svm_features(
    read: ReadFeatures,
    codes: Sequence[np.ndarray],
    D: np.ndarray,
    upper: np.ndarray,
    signs: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
) -> Solution:
    """Solve the program; `gap` is the duality gap, `objective` the primal value, `residual` the KKT violation.

    `codes` are S (P, d_j) for each kernel between outputs. `tol` is relative to the primal value; `max_iter` counts
    rounds of steps, between which the gap is measured.
    """
    halves = np.stack([S @ S.T for S in codes])
    start = np.zeros_like(D) if x0 is None else np.clip(x0, 0, upper)
    of_class = halves.diagonal(axis1=1, axis2=2)  # (J, P)
    apart = not (halves - of_class[:, :, None] * np.eye(len(D[0]))).any() and (np.count_nonzero(of_class, 0) < 2).all()
    if apart:  # each class has a problem of its own
        parts = _Parts(*(np.array(part.T, dtype=np.float64, order="C") for part in (start, upper, signs, D)))
        return _Classes(read, parts, of_class.argmax(0), np.sqrt(of_class.max(0)), tol).solve(max_iter)
    flat = of_class.sum(axis=0) == 0  # classes without curvature: only -Dα is left of their objective
    if flat.any():
        return _with_flat_classes(read, codes, D, upper, signs, flat, tol, max_iter)
    parts = _Parts(*(np.array(part, dtype=np.float64, order="C") for part in (start, upper, signs, D)))
    return _Samples(read, parts, codes, halves, tol).solve(max_iter)


def _with_flat_classes(read, codes, D, upper, signs, flat, tol, max_iter) -> Solution:  # type: ignore[no-untyped-def]
    own = [part[:, ~flat] for part in (D, upper, signs)]
    found = svm_features(read, [S[~flat] for S in codes], *own, tol=tol, max_iter=max_iter)
    alpha = np.where(D > 0, upper, 0.0)
    alpha[:, ~flat] = 0
    objective = float(np.sum(D * alpha)) + float(found.objective or 0.0)
    alpha[:, ~flat] = found.x
    return Solution(alpha, found.gap, found.n_iter, found.status, objective, found.residual)


def _seed(*numbers: int) -> np.uint64:
    """Return the state of the generator of a round."""
    return np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] | np.uint64(1)


def _rounds_left(gaps: Sequence[float], goal: float) -> float:
    """Return how many rounds the gap needs to fall to its goal, if it goes on as in the last rounds."""
    if len(gaps) <= _TREND or gaps[-1] <= goal:
        return 0.0
    rate = np.log(gaps[-1 - _TREND] / gaps[-1]) / _TREND
    return float(np.log(gaps[-1] / goal) / rate) if rate > 0 else np.inf


# -- classes that do not interact
class _Classes:
    """One class against the rest: problems that share T, solved side by side, by threads."""

    def __init__(self, read: ReadFeatures, parts: _Parts, group: np.ndarray, weights: np.ndarray, tol: float):
        self.read, self.parts, self.group, self.weights, self.tol = read, parts, group, weights, tol
        self.P, self.l = parts.x.shape
        self.active = np.ones(parts.x.shape, dtype=bool)
        self.w = self._sums(np.arange(self.P)) if parts.x.any() else None
        # loss, <x, gradient>, the largest violation among active variables and among the others
        self.measures = np.zeros((self.P, 4))
        self.measures[:, 0] = self._loss_at_zero()

    def _loss_at_zero(self) -> np.ndarray:
        return np.sum(self.parts.upper * np.maximum(0, self.parts.D), axis=1)

    def _sums(self, classes: np.ndarray) -> np.ndarray:
        """Return w = weight Σ sign x t of some classes."""
        total: np.ndarray | None = None
        signed = self.weights[classes, None] * (self.parts.signs * self.parts.x)[classes]
        for place, T in self.read():
            total = np.zeros((len(classes), T.shape[2])) if total is None else total
            for j in np.unique(self.group[classes]):
                own = np.flatnonzero(self.group[classes] == j)
                total[own] += multiply(T[j].T, signed[own, place].T).T
        assert total is not None
        return total

    def solve(self, max_iter: int) -> Solution:
        """Take rounds of steps until every gap is small; classes whose gap falls slowly get another method."""
        left, gaps = np.arange(self.P), [[float(start)] for start in self._loss_at_zero()]
        n_iter, tried = 0, np.zeros(self.P, dtype=bool)
        if self.w is not None:
            self._measure(left)
            left = self._unsolved(left)
        for n_iter in range(1, max_iter + 1):
            if not len(left):
                break
            self._steps(left, n_iter)
            self._measure(left)
            report_progress(n_iter, self._total()[0])
            left = self._unsolved(left)
            for k in left.tolist():
                gaps[k].append(float(self.measures[k, :2].sum()))
                if self._is_slow(gaps[k], k, max_iter - n_iter):
                    if not tried[k]:
                        self._try(k, self._interior(k))
                    self._try(k, self._free(k))
                    tried[k], gaps[k] = True, []
            left = self._unsolved(left)
        gap, primal = self._total()
        status = "converged" if gap <= self.tol * primal else "max_iter"
        residual = float(self.measures[:, 2:].max())
        return Solution(np.ascontiguousarray(self.parts.x.T), gap, n_iter, status, primal, residual)

    def _unsolved(self, classes: np.ndarray) -> np.ndarray:
        """Return the classes whose gap is too large; none where that of all classes together is small enough."""
        gap, primal = self._total()
        if gap <= self.tol * primal:
            return classes[:0]
        return classes[self.measures[classes, :2].sum(axis=1) > self.tol * self._primal()[classes]]

    def _primal(self) -> np.ndarray:
        assert self.w is not None
        return self.measures[:, 0] + 0.5 * np.sum(self.w**2, axis=1)

    def _total(self) -> tuple[float, float]:
        return max(float(self.measures[:, :2].sum()), 0.0), float(self._primal().sum())

    def _is_slow(self, gaps: Sequence[float], k: int, left: int) -> bool:
        assert self.w is not None
        expected = _rounds_left(gaps, self.tol * float(self._primal()[k]))
        return expected > min(left, 0.5 * _INTERIOR * _COST * self.w.shape[1])

    def _steps(self, classes: np.ndarray, n_iter: int) -> None:
        sums = np.maximum(self.parts.upper.sum(axis=1), np.finfo(float).tiny)
        primal = self.measures[:, 0] if self.w is None else self._primal()
        eps = 0.1 * self.tol * primal / sums  # violations of this size make a tenth of the gap that is allowed
        for place, T in self.read():
            if self.w is None:
                self.w = np.zeros((self.P, T.shape[2]))
            w = self.w

            def work(first: int, last: int, place: slice = place, T: np.ndarray = T, w: np.ndarray = w) -> None:
                for k in classes[first:last].tolist():
                    row_feature_steps(
                        T[self.group[k]], self.weights[k], self.parts.of(k, place), self.active[k, place], w[k],
                        eps[k], _TURNS * T.shape[1], _seed(n_iter, k, place.start),
                    )  # fmt: skip

            by_rows(work, len(classes), T.size)

    def _measure(self, classes: np.ndarray) -> None:
        """Measure the gap of some classes; all their variables take part again where those left out violate most."""
        assert self.w is not None
        w, found = self.w, np.zeros((len(classes), 4))
        for place, T in self.read():

            def work(first: int, last: int, place: slice = place, T: np.ndarray = T) -> None:
                for row in range(first, last):
                    k = classes[row]
                    own = row_feature_gap(
                        T[self.group[k]], self.weights[k], self.parts.of(k, place), self.active[k, place], w[k]
                    )
                    found[row, :2] += own[:2]
                    found[row, 2:] = np.maximum(found[row, 2:], own[2:])

            by_rows(work, len(classes), T.size)
        self.measures[classes] = found
        self.active[classes[found[:, 3] > 0.1 * found[:, 2]]] = True

    def _interior(self, k: int) -> np.ndarray:
        """Solve the problem of one class by interior points."""
        _, upper, signs, D = self.parts.of(k)
        return _interior_point(self.read, int(self.group[k]), self.weights[k] * signs, D, upper, 0.3 * self.tol)

    def _free(self, k: int) -> np.ndarray:
        """Solve over the variables of one class that no bound holds, if they are few: those at bounds stay there."""
        assert self.w is not None
        x, upper, signs, D = self.parts.of(k)
        free, primal = np.flatnonzero((x > 0) & (x < upper)), float(self._primal()[k])
        found = x.copy()
        if 0 < len(free) <= _SMALL:
            rows = [T[self.group[k], free[self._inside(free, place)] - place.start] for place, T in self.read()]
            B = (self.weights[k] * signs[free])[:, None] * np.concatenate(rows)
            moved = multiply(x[free][None], B)[0]
            linear = D[free] - multiply(B, (self.w[k] - moved)[:, None])[:, 0]  # what the others leave of D
            own = 0.5 * float(moved @ moved)  # of the primal value, to which class_qp's tolerance is relative
            solution = class_qp(
                2 * gram_of(B.T), np.eye(1), linear[:, None], upper[free, None],
                tol=0.1 * self.tol * primal / max(own, np.finfo(float).tiny), max_iter=100, x0=x[free, None],
            )  # fmt: skip
            found[free] = solution.x[:, 0]
        return found

    @staticmethod
    def _inside(rows: np.ndarray, place: slice) -> np.ndarray:
        return (rows >= place.start) & (rows < place.stop)

    def _try(self, k: int, found: np.ndarray) -> None:
        """Take other variables for one class, if their gap is smaller."""
        assert self.w is not None
        x, measures = self.parts.x[k], self.measures[k].copy()
        before = x.copy(), self.w[k].copy()
        x[:] = found
        self.w[k] = self._sums(np.array([k]))[0]
        self._measure(np.array([k]))
        if not self.measures[k, :2].sum() < measures[:2].sum():
            x[:], self.w[k] = before
            self.measures[k] = measures
        self.active[k] = True


def _interior_point(read, j, signed, D, upper, tol) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return x with min ½|Σ signed x t|² - D'x over 0 <= x <= upper, by the predictor and corrector of Mehrotra (1992).

    The Newton systems (Θ + BB') dx = b, B = signed ∘ T, take a factor of I + B'Θ⁻¹B alone. Variables are in units of
    their bounds. Multipliers are z for x >= 0 and v for x <= upper.
    """

    def outputs(w: np.ndarray) -> np.ndarray:
        return scale * np.concatenate([multiply(T[j], w[:, None])[:, 0] for _, T in read()])

    def sums(y: np.ndarray) -> np.ndarray:
        return np.sum([multiply((scale * y)[place][None], T[j])[0] for place, T in read()], axis=0)

    scale, D = signed * upper, D * upper
    size = max(float(np.abs(D).max()), np.finfo(float).tiny)
    x = y = np.full(len(D), 0.5)  # y = 1 - x by itself, so that it stays above 0
    z, v = size * (np.maximum(-D, 0) + 1), size * (np.maximum(D, 0) + 1)
    best, least = x, np.inf
    for _ in range(_INTERIOR):
        w = sums(x)
        slopes = outputs(w) - D
        loss = float(np.maximum(0, -slopes).sum())
        gap = loss + float(x @ slopes)
        if gap < least:
            best, least = x, gap
        if not np.isfinite(gap) or gap <= tol * (loss + 0.5 * float(w @ w)):
            break
        rest, theta = slopes - z + v, z / x + v / y
        try:
            factor = cholesky(add_to_diagonal(_weighted_gram(read, j, scale**2 / theta), 1.0))
        except np.linalg.LinAlgError:
            break
        mu = float(x @ z + y @ v) / (2 * len(x))
        push_z, push_v = np.zeros_like(x), np.zeros_like(x)
        for centering in (False, True):
            b = -rest - z + v + push_z / x - push_v / y
            dx = np.zeros_like(x)
            for _ in range(2):  # the second time for what rounding left: θ differs by orders of magnitude
                own = (b - theta * dx - outputs(sums(dx))) / theta
                dx = dx + own - outputs(solve(factor, sums(own)[:, None])[:, 0]) / theta
            dz, dv = push_z / x - z - z / x * dx, push_v / y - v + v / y * dx
            step, dual_step = _longest(x, dx, y, -dx), _longest(z, dz, v, dv)
            if not centering:
                after = (x + step * dx) @ (z + dual_step * dz) + (y - step * dx) @ (v + dual_step * dv)
                center = mu * (float(after) / (2 * len(x) * mu)) ** 3
                push_z, push_v = center - dx * dz, center + dx * dv
        step, dual_step = 0.995 * step, 0.995 * dual_step
        x, y, z, v = x + step * dx, y - step * dx, z + dual_step * dz, v + dual_step * dv
    return _at_bounds(best, outputs, sums, D, least) * upper


def _at_bounds(x, outputs, sums, D, gap) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Put variables at the bounds that they are close to, if the gap stays as small."""
    slopes = outputs(sums(x)) - D
    for close in (1e-5, 1e-8):
        low, high = (x < close) & (slopes > 0), (x > 1 - close) & (slopes < 0)
        rounded = np.where(low, 0.0, np.where(high, 1.0, x))
        there = outputs(sums(rounded)) - D
        if float(np.maximum(0, -there).sum() + rounded @ there) <= 1.5 * gap:
            return rounded
    return x


def _longest(*pairs: np.ndarray) -> float:
    """Return the longest step, at most 1, that keeps values positive; each is followed by its change."""
    longest = 1.0
    for values, changes in zip(pairs[::2], pairs[1::2], strict=True):
        down = changes < 0
        longest = min(longest, float(np.min(-values[down] / changes[down], initial=1.0)))
    return longest


def _weighted_gram(read: ReadFeatures, j: int, weights: np.ndarray) -> np.ndarray:
    """Return Σ weights t t'."""
    total: np.ndarray | None = None
    for place, T in read():
        for start in range(0, T.shape[1], 4096):  # a scaled copy of some rows at a time
            rows = T[j, start : start + 4096]
            own = gram_of(np.sqrt(weights[place][start : start + 4096])[:, None] * rows)
            total = own if total is None else total + own
    assert total is not None
    return total


# -- classes that interact
class _Samples:
    """The variables of a sample together, one sample after the other."""

    def __init__(self, read: ReadFeatures, parts: _Parts, codes: Sequence[np.ndarray], halves: np.ndarray, tol: float):
        self.read, self.parts, self.tol = read, parts, tol
        self.halves = np.ascontiguousarray(halves)
        group = np.repeat(np.arange(len(codes)), [S.shape[1] for S in codes])
        self.codes = np.ascontiguousarray(np.hstack(codes)), group
        self.even = len(codes) == 1 and is_even(halves[0], parts.signs)
        self.active = np.ones(len(parts.x), dtype=bool)
        self.M = self._sums() if parts.x.any() else None
        self.measures = np.array([float(np.sum(parts.upper * np.maximum(0, parts.D))), 0.0, 0.0, 0.0])

    def _sums(self) -> np.ndarray:
        """Return M = Σ_i (SA_i) ⊗ t_i."""
        total: np.ndarray | None = None
        (S, group), signed = self.codes, self.parts.signs * self.parts.x
        for place, T in self.read():
            total = np.zeros((len(group), T.shape[2])) if total is None else total
            for j in range(len(T)):
                own = group == j
                total[own] += multiply(T[j].T, multiply(signed[place], S[:, own])).T
        assert total is not None
        return total

    def solve(self, max_iter: int) -> Solution:
        """Take rounds of steps until the gap is small, or, where it falls slowly, solve over the kernel."""
        gaps, n_iter = [float(self.measures[0])], 0
        if self.M is not None:
            self._measure()
        for n_iter in range(1, max_iter + 1):
            if self.M is not None and self._is_solved():
                break
            self._steps(n_iter)
            self._measure()
            gap, primal = self._total()
            gaps.append(gap)
            report_progress(n_iter, gap)
            if _rounds_left(gaps, self.tol * primal) > max_iter - n_iter and self._kernel_size() <= _SMALL:
                self._over_kernel(max_iter)
                gaps = []
        gap, primal = self._total()
        status = "converged" if self._is_solved() else "max_iter"
        return Solution(self.parts.x, gap, n_iter, status, primal, float(self.measures[2:].max()))

    def _is_solved(self) -> bool:
        gap, primal = self._total()
        return gap <= self.tol * primal

    def _total(self) -> tuple[float, float]:
        assert self.M is not None
        return max(float(self.measures[:2].sum()), 0.0), float(self.measures[0] + 0.5 * np.sum(self.M**2))

    def _steps(self, n_iter: int) -> None:
        primal = self._total()[1] if self.M is not None else float(self.measures[0])
        eps = 0.1 * self.tol * primal / max(float(self.parts.upper.sum()), np.finfo(float).tiny)
        for place, T in self.read():
            if self.M is None:
                self.M = np.zeros((len(self.codes[1]), T.shape[2]))
            sample_feature_steps(
                T, self.codes, self.halves, self.even, self.parts.of(place), self.active[place], self.M, eps,
                _TURNS * T.shape[1], _seed(n_iter, place.start),
            )  # fmt: skip

    def _measure(self) -> None:
        """Measure the gap; all samples take part again where those left out violate most."""
        found = np.zeros(4)
        for place, T in self.read():
            own = sample_feature_gap(T, self.codes, self.parts.of(place), self.active[place], self.M)
            found[:2] += own[:2]
            found[2:] = np.maximum(found[2:], own[2:])
        self.measures = found
        if found[3] > 0.1 * found[2]:
            self.active[:] = True

    def _kernel_size(self) -> int:
        """Return the number of rows of the kernel: samples, or with several kernels pairs of a sample and a class."""
        return len(self.parts.x) if len(self.halves) == 1 else self.parts.x.size

    def _over_kernel(self, max_iter: int) -> None:
        """Solve over the kernel between few samples, from where the steps are."""
        kernels = [2 * gram_of(own.T) for own in np.concatenate([T for _, T in self.read()], axis=1)]
        x, upper, signs, D = self.parts
        if len(kernels) == 1:
            found = class_qp(kernels[0], self.halves[0], D, upper, signs, tol=0.5 * self.tol, max_iter=max_iter, x0=x)
        else:
            flat = [part.reshape(-1, 1) for part in (D, upper, signs, x)]
            Q = np.sum([np.kron(K, Q_S) for K, Q_S in zip(kernels, self.halves, strict=True)], axis=0)
            found = class_qp(Q, np.eye(1), *flat[:3], tol=0.5 * self.tol, max_iter=max_iter, x0=flat[3])
        x[:] = found.x.reshape(x.shape)
        self.M = self._sums()
        self._measure()
        self.active[:] = True
