"""Leave-one-out residuals of metric learning for a whole grid of penalties.

The hidden sample stays among those that kernels, landmarks and a covariance are made of. Each class takes the penalties
λ and η, and returns √u (y_i - g(x_i)) with the target of row i hidden. `key` is what these residuals depend on.
"""

from abc import ABC, abstractmethod

import numpy as np

from .design_matrix import DesignMatrix
from .fixed_metric import FixedMetric
from .learned_metric import BlockSparseMetric
from .linalg import eigh, multiply
from .metric import RootBounds, kappa_of, learn_output_kernel, metric_roots


class HeldOutMetric(ABC):
    """Residuals at rows whose own target is hidden."""

    converged = True  # whether every solution so far was within the tolerance

    @abstractmethod
    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return the number on which the residuals depend."""

    @abstractmethod
    def residuals(self, alpha: float, metric_penalty: float) -> np.ndarray:
        """Return the residuals of all rows and outputs."""


class HeldOutFixed(HeldOutMetric):
    """For a fixed metric: ridge regression with ρ = λ."""

    def __init__(self, problem: FixedMetric, w: np.ndarray):
        self.Y = problem.system.Y
        self.spectrum = HeldOutSpectrum(*problem.left_vectors(w), self.Y)

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return λ."""
        return alpha

    def residuals(self, alpha: float, metric_penalty: float) -> np.ndarray:
        """Return the residuals of all rows and outputs."""
        return self.spectrum.ridge(self.Y, np.full(self.Y.shape[1], alpha))


class HeldOutLearned(HeldOutMetric):
    """For a learned metric of each output: ρ solves its equation again without each target."""

    def __init__(self, system: DesignMatrix, w: np.ndarray):
        system.square_kernels()
        self.spectrum = HeldOutSpectrum(*system.left_vectors(w), system.Y)

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return √(λ²η)."""
        return alpha * float(np.sqrt(metric_penalty))

    def residuals(self, alpha: float, metric_penalty: float) -> np.ndarray:
        """Return the residuals of all rows and outputs."""
        return self.spectrum.residuals(kappa_of(alpha, metric_penalty))


class HeldOutShared(HeldOutLearned):
    """For one metric of all outputs, with the kernel between outputs as it is with all targets."""

    def __init__(self, system: DesignMatrix, w: np.ndarray, *, tol: float, max_iter: int):
        super().__init__(system, w)
        self.Y, self.system_spectrum, self.tol, self.max_iter = system.Y, system.spectrum(w), tol, max_iter

    def residuals(self, alpha: float, metric_penalty: float) -> np.ndarray:
        """Return the residuals of all rows and outputs."""
        learned = learn_output_kernel(self.system_spectrum, alpha, metric_penalty, tol=self.tol, max_iter=self.max_iter)
        self.converged &= learned.converged
        values, Q = eigh(learned.x[1])  # with C unchanged, each of its directions is a ridge problem of its own
        # directions without weight in C predict 0
        kept = values > len(values) * np.finfo(float).eps * max(float(values[-1]), 0.0)
        Y = self.Y @ Q
        if kept.any():
            Y[:, kept] = self.spectrum.ridge(Y[:, kept], alpha / values[kept])
        return Y @ Q.T


class HeldOutSparse(HeldOutMetric):
    """For a block-sparse metric, with the weights of the views' kernels as they are with all targets."""

    def __init__(self, system: DesignMatrix, w: np.ndarray, *, tol: float, max_iter: int):
        self.system, self.w, self.tol, self.max_iter = system, w, tol, max_iter
        self.kernel_weights: dict[int, np.ndarray] = {}  # of the last penalties: the next ones start there

    def key(self, alpha: float, metric_penalty: float) -> float:
        """Return λη."""
        return alpha * metric_penalty

    def residuals(self, alpha: float, metric_penalty: float) -> np.ndarray:
        """Return the residuals of all rows and outputs."""
        problem = BlockSparseMetric(
            self.system, alpha, metric_penalty, tol=self.tol, max_iter=self.max_iter, start=self.kernel_weights
        )
        G, _, status = problem.minimize(self.w)
        self.converged &= status == "converged"
        self.kernel_weights = problem.kernel_weights
        B = self.system.residuals(self.w, G)
        # leave-one-out of ridge regression: the residual over the diagonal of (I + Σ_v d_v D_v)⁻¹
        return B / np.stack([self.system.inverse_diagonal(self.w, d) for d in self.kernel_weights.values()], axis=1)


class HeldOutSpectrum:
    """Residuals at rows whose own target is hidden, for every κ from one decomposition of M.

    Without the target of row i the solution for ρ is that with y_i moved by the residual e_i = (Qy)_i/Q_ii, where
    Q = (MM' + ρI)⁻¹. So ‖g‖² without it is known too, and ρ solves its equation again for each row. This takes sums
    over 1/(e + ρ), smooth in log ρ: they are computed at a few ρ by matrix products and interpolated.
    """

    def __init__(self, values: np.ndarray, V: np.ndarray, Y: np.ndarray):
        self.e, self.V, self.Y = values, V, Y
        self.squares = V**2
        self.Z = multiply(V.T, Y)
        square = V.shape[0] == V.shape[1]
        # the part of Y that M does not reach, where Q is 1/ρ
        self.out_of_reach = np.zeros_like(Y) if square else Y - multiply(V, self.Z)
        # the same part of the i-th unit vector, squared
        self.left = np.zeros(len(V)) if square else np.maximum(1 - np.sum(self.squares, axis=1), 0)

    def ridge(self, Y: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Return y_i - g(x_i) at each row with its target hidden, for ρ given, one for each column of Y."""
        inverse = 1 / (self.e[:, None] + rho)
        turned = multiply(self.V.T, Y)
        rest = multiply(self.V, turned * inverse)  # QY
        if self.left.any():
            rest += (Y - multiply(self.V, turned)) / rho
        return rest / (multiply(self.squares, inverse) + self.left[:, None] / rho)  # (QY)_i / Q_ii

    def residuals(self, kappa: float) -> np.ndarray:
        """Return the same for the ρ of every row, from κ."""
        roots = metric_roots(self.e, self.e[:, None] * self.Z**2, kappa)
        columns = [self._of_column(p, rho, 3 * np.log(2 * kappa / 3)) for p, rho in enumerate(roots)]
        return np.stack(columns, axis=1)

    def _of_column(self, p: int, rho: float, goal: float) -> np.ndarray:
        if not self.e.any():  # M = 0
            return self.Y[:, p].copy()
        # log ρ with all targets is near that without one
        x = np.full(len(self.V), np.log(rho) if np.isfinite(rho) else np.log(self.e[-1]))
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
        with_y = multiply(self.V, np.hstack([z * inverse, z * damped]))
        own = multiply(self.squares, np.hstack([inverse, damped]))
        J = len(x)
        return [with_y[:, :J], own[:, :J], with_y[:, J:], own[:, J:], np.sum(z**2 * damped, axis=0)]

    def _sums_by_row(self, p: int, x: np.ndarray) -> list[np.ndarray]:
        """Return the same for one x of each row."""
        inverse = 1 / (self.e + np.exp(x)[:, None])
        damped = self.e * inverse**2
        with_y = self.V * self.Z[:, p]
        parts = [with_y * inverse, self.squares * inverse, with_y * damped, self.squares * damped]
        return [*(np.sum(part, axis=1) for part in parts), damped @ self.Z[:, p] ** 2]

    def _at(self, x: np.ndarray, sums: list[np.ndarray], p: int, goal: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual of each row at its x, and how far log ρ³‖g‖² is from its goal."""
        rest, own, moved, damped, norm = sums
        rho = np.exp(x)
        residual = (rest + self.out_of_reach[:, p] / rho) / (own + self.left / rho)
        squared = norm - 2 * residual * moved + residual**2 * damped  # ‖g‖² = y'QDQy with y_i less its residual
        return residual, np.where(squared > 0, 3 * x + np.log(np.maximum(squared, 1e-300)) - goal, 0.0)
