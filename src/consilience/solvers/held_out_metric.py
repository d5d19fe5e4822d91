"""Leave-one-out residuals of metric learning for a whole grid of penalties.

The hidden sample stays among those that kernels, landmarks and a covariance are made of. Each class takes pairs of
penalties λ and η, and yields √u (y_i - g(x_i)) with the target of row i hidden: all rows at once over Gram matrices,
block by block over features, where one pass over the rows serves all pairs. `key` is what these residuals depend on.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._backend import like, namespace, to_numpy
from .design_matrix import RowPart, ViewMatrix
from .fixed_metric import FixedMetric
from .learned_metric import BlockSparseMetric
from .linalg import multiply
from .metric import RootBounds, kappa_of, metric_roots
from .output_kernel import learn_output_kernel

PenaltyPairs = Sequence[tuple[float, float]]  # λ and η


class HeldOutMetric(ABC):
    """Residuals at rows whose own target is hidden."""

    converged = True  # whether every solution so far was within the tolerance

    @abstractmethod
    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return the number on which the residuals depend."""

    @abstractmethod
    def residuals(self, pairs: PenaltyPairs) -> Iterator[tuple[int, RowPart]]:
        """Yield the position of a pair, and rows with their residuals; every row once for each pair."""


def _spectra(
    system: ViewMatrix, w: np.ndarray, left_vectors: tuple[np.ndarray, Any, np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray, "HeldOutSpectrum"]]:
    """Yield targets, weights of the losses and the spectrum at these rows, block by block."""
    values, vectors, turned = left_vectors
    for Y, u, V in system.left_rows(w, vectors):
        yield Y, u, HeldOutSpectrum(values, V, np.sqrt(u)[:, None] * Y, turned, reaches_all=len(values) == system.n)


class HeldOutFixed(HeldOutMetric):
    """For a fixed metric: ridge regression with ρ = λ."""

    def __init__(self, problem: FixedMetric, w: np.ndarray):
        self.system, self.w, self.left_vectors = problem.system, w, problem.left_vectors(w)

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return λ."""
        return alpha

    def residuals(self, pairs: PenaltyPairs) -> Iterator[tuple[int, RowPart]]:
        """Yield the position of a pair, and rows with their residuals; every row once for each pair."""
        for Y, u, some in _spectra(self.system, self.w, self.left_vectors):
            for k, (alpha, _) in enumerate(pairs):
                yield k, (Y, u, some.ridge(np.full(self.system.n_outputs, alpha)))


class HeldOutLearned(HeldOutMetric):
    """For a learned metric of each output: ρ solves its equation again without each target."""

    def __init__(self, system: ViewMatrix, w: np.ndarray):
        system.square_kernels()
        self.system, self.w, self.left_vectors = system, w, system.left_vectors(w)

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return √(λ²η)."""
        return alpha * float(np.sqrt(metric_penalty))

    def residuals(self, pairs: PenaltyPairs) -> Iterator[tuple[int, RowPart]]:
        """Yield the position of a pair, and rows with their residuals; every row once for each pair."""
        for Y, u, some in _spectra(self.system, self.w, self.left_vectors):
            for k, pair in enumerate(pairs):
                yield k, (Y, u, some.residuals(kappa_of(*pair)))


class HeldOutShared(HeldOutLearned):
    """For one metric of all outputs, with the kernel between outputs as it is with all targets."""

    def __init__(self, system: ViewMatrix, w: np.ndarray, *, tol: float, max_iter: int):
        super().__init__(system, w)
        self.spectrum, self.tol, self.max_iter = system.spectrum(w), tol, max_iter

    def residuals(self, pairs: PenaltyPairs) -> Iterator[tuple[int, RowPart]]:
        """Yield the position of a pair, and rows with their residuals; every row once for each pair."""
        kernels, start = [], None
        for pair in pairs:
            learned = learn_output_kernel(self.spectrum, *pair, tol=self.tol, max_iter=self.max_iter, start=start)
            self.converged &= learned.converged
            _, start, values = learned.x
            # C unchanged: each of its directions is a ridge problem of its own
            kept = values > len(values) * np.finfo(float).eps * values.max(initial=0.0)
            kernels.append((values[kept], to_numpy(start)[:, kept]))
        for Y, u, some in _spectra(self.system, self.w, self.left_vectors):
            for k, ((alpha, _), (values, Q)) in enumerate(zip(pairs, kernels, strict=True)):
                # directions without weight in C predict 0
                change = some.ridge(alpha / values, Q) - multiply(some.Y, Q)
                yield k, (Y, u, some.Y + multiply(change, Q.T))


class HeldOutSparse(HeldOutMetric):
    """For a block-sparse metric, with the weights of the views' kernels as they are with all targets."""

    def __init__(self, system: ViewMatrix, w: np.ndarray, *, tol: float, max_iter: int):
        self.system, self.w, self.tol, self.max_iter = system, w, tol, max_iter
        self.kernel_weights: dict[int, np.ndarray] = {}  # of the last penalties: the next ones start there

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return λη."""
        return alpha * metric_penalty

    def residuals(self, pairs: PenaltyPairs) -> Iterator[tuple[int, RowPart]]:
        """Yield the position of a pair, and rows with their residuals; every row once for each pair."""
        for k, pair in enumerate(pairs):
            problem = BlockSparseMetric(
                self.system, *pair, tol=self.tol, max_iter=self.max_iter, start=self.kernel_weights
            )
            G, _, status = problem.minimize(self.w)
            self.converged &= status == "converged"
            self.kernel_weights = problem.kernel_weights
            for part in self.system.leave_one_out(self.w, G, list(self.kernel_weights.values())):
                yield k, part


class HeldOutSpectrum:
    """Residuals at rows whose own target is hidden, for every κ from one decomposition of M.

    Without the target of row i the solution for ρ is that with y_i moved by the residual e_i = (Qy)_i/Q_ii, where
    Q = (MM' + ρI)⁻¹. So ‖g‖² without it is known too, and ρ solves its equation again for each row. This takes sums
    over 1/(e + ρ), smooth in log ρ: they are computed at a few ρ by matrix products and interpolated.

    Parameters
    ----------
    values : array of shape (r,)
        Squared singular values of M.
    V : array of shape (b, r)
        Left vectors of M, at some rows or all; they may be those of a device.
    Y : array of shape (b, P)
        Targets of these rows.
    turned : array of shape (r, P)
        V'Y over all rows.
    reaches_all : bool
        Whether V is square over all rows, so that no part of Y is out of reach.
    """

    def __init__(self, values: np.ndarray, V: Any, Y: np.ndarray, turned: np.ndarray, *, reaches_all: bool):
        self.e, self.V, self.Y, self.Z = values, V, Y, turned
        self.squares = V**2
        # the part of Y that M does not reach, where Q is 1/ρ
        self.out_of_reach = np.zeros_like(Y) if reaches_all else Y - to_numpy(multiply(V, like(turned, V)))
        # the same part of the i-th unit vector, squared
        self.left = np.zeros(len(Y))
        if not reaches_all:
            self.left = np.maximum(1 - to_numpy(namespace(V).sum(self.squares, axis=1)), 0)

    def ridge(self, rho: np.ndarray, directions: np.ndarray | None = None) -> np.ndarray:
        """Return y_i - g(x_i) at each row with its target hidden, for ρ given, one for each column of Y.

        The targets are Y times `directions`, where these are given.
        """
        inverse = 1 / (self.e[:, None] + rho)
        turned, beyond = self.Z, self.out_of_reach
        if directions is not None:
            turned, beyond = multiply(turned, directions), multiply(beyond, directions)
        rest = to_numpy(multiply(self.V, like(turned * inverse, self.V)))  # QY
        if self.left.any():
            rest = rest + beyond / rho
        own = to_numpy(multiply(self.squares, like(inverse, self.V)))
        return rest / (own + self.left[:, None] / rho)  # (QY)_i / Q_ii

    def residuals(self, kappa: float) -> np.ndarray:
        """Return the same for the ρ of every row, from κ."""
        roots = metric_roots(self.e, self.e[:, None] * self.Z**2, kappa)
        columns = [self._of_column(p, rho, 3 * np.log(2 * kappa / 3)) for p, rho in enumerate(roots)]
        return np.stack(columns, axis=1)

    def _of_column(self, p: int, rho: float, goal: float) -> np.ndarray:
        if not self.e.any():  # M = 0
            return self.Y[:, p].copy()
        # log ρ with all targets is near that without one
        x = np.full(len(self.Y), np.log(rho) if np.isfinite(rho) else np.log(self.e[-1]))
        _, excess = self._at(x, [part[..., 0] for part in self._sums(p, x[:1])], p, goal)
        # slopes are between 1 and 3, as in `RootBounds`: the roots of all rows lie between these
        low, high = float(np.min(x - np.maximum(excess, 0))), float(np.max(x - np.minimum(excess, 0)))
        half = max((high - low) / 2, 1e-9)
        rate = np.pi / half + np.hypot(np.pi / half, 1)  # of Chebyshev's points: poles are π away from the real axis
        J = int(np.clip(np.ceil(26 / np.log(rate)), 4, 256))  # exp(-26), the error of interpolation, is about 5e-12
        interpolated = half < 30  # farther apart, every row has sums of its own
        angles = np.pi * (np.arange(J) + 0.5) / J
        places, weights = (low + high) / 2 + half * np.cos(angles), (-1.0) ** np.arange(J) * np.sin(angles)
        sums = self._sums(p, places) if interpolated else []
        bounds = RootBounds(low, high)
        old, last = np.zeros_like(x), x
        for _ in range(100):
            if interpolated:
                # barycentric formula; at a point itself its share is infinitely larger than the others
                shares = weights / np.where(x[:, None] == places, 1e-300, x[:, None] - places)
                shares /= np.sum(shares, axis=1, keepdims=True)
                at = [np.sum(shares * part, axis=1) for part in sums]
            else:
                at = self._sums_by_row(p, x)
            residual, excess = self._at(x, at, p, goal)
            secant = np.divide(excess - old, x - last, out=np.full_like(x, 2.0), where=x != last)
            moved = bounds.step(x, excess, np.clip(secant, 1, 3))
            if np.abs(moved - x).max() <= 1e-12 * max(float(np.abs(x).max()), 1):
                break
            old, last, x = excess, x, moved
        return residual

    def _sums(self, p: int, x: np.ndarray) -> list[np.ndarray]:
        """Return (Qy)_i, Q_ii, (QDQy)_i, (QDQ)_ii for each row and each x = log ρ, and y'QDQy for each x; D = MM'."""
        e, z = self.e[:, None], self.Z[:, p : p + 1]
        inverse = 1 / (e + np.exp(x))
        damped = e * inverse**2
        with_y = to_numpy(multiply(self.V, like(np.hstack([z * inverse, z * damped]), self.V)))
        own = to_numpy(multiply(self.squares, like(np.hstack([inverse, damped]), self.V)))
        J = len(x)
        return [with_y[:, :J], own[:, :J], with_y[:, J:], own[:, J:], np.sum(z**2 * damped, axis=0)]

    def _sums_by_row(self, p: int, x: np.ndarray) -> list[np.ndarray]:
        """Return the same for one x of each row."""
        xp, e, z = namespace(self.V), like(self.e[None, :], self.V), like(self.Z[None, :, p], self.V)
        inverse = 1 / (e + like(np.exp(x)[:, None], self.V))
        damped = e * inverse**2
        with_y = self.V * z
        parts = [with_y * inverse, self.squares * inverse, with_y * damped, self.squares * damped, damped * z**2]
        return [to_numpy(xp.sum(part, axis=1)) for part in parts]

    def _at(self, x: np.ndarray, sums: list[np.ndarray], p: int, goal: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual of each row at its x, and how far log ρ³‖g‖² is from its goal."""
        rest, own, moved, damped, norm = sums
        rho = np.exp(x)
        residual = (rest + self.out_of_reach[:, p] / rho) / (own + self.left / rho)
        squared = norm - 2 * residual * moved + residual**2 * damped  # ‖g‖² = y'QDQy with y_i less its residual
        return residual, np.where(squared > 0, 3 * x + np.log(np.maximum(squared, 1e-300)) - goal, 0.0)
