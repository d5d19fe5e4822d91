"""Least squares over coupled views: forces on the labeled rows, and how the optimum changes with the weights c."""

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .coupled import Coupled
from .linalg import add_to_diagonal, cholesky, multiply, solve
from .weights import Evaluation


def ridge_forces(kernel: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
    """r = u (y - g) at the optimum of Σ u_i ‖y_i - g_i‖² + penalties, and its value: (𝒢 + u⁻¹) r = Y, value <Y, r>.

    The labeled kernel is used up.
    """
    r = solve(cholesky(add_to_diagonal(kernel, 1 / u)), Y)
    return r, float(np.sum(Y * r))


class HeldOut:
    """Outputs at rows whose targets are hidden, for every γ_A and every fold from one eigendecomposition.

    Hidden targets are u = 0; the penalties stay as they are, and the rows stay among the unlabeled. With
    M = 𝒢/γ_A + u⁻¹ the residuals of a fold F are (M⁻¹[F, F])⁻¹ (M⁻¹Y)[F]. `kernel` is 𝒢 for γ_A = 1.
    """

    def __init__(self, kernel: np.ndarray, Y: np.ndarray, u: np.ndarray):
        self.Y, self.root = Y, np.sqrt(u)
        self.values, self.vectors = scipy.linalg.eigh(self.root[:, None] * kernel * self.root, check_finite=False)
        self.turned = multiply(self.vectors.T, self.root[:, None] * Y)

    def outputs(self, alpha: float, folds: Sequence[np.ndarray]) -> np.ndarray:
        """g at the rows of each fold, one fold after the other, when the targets of the fold are hidden."""
        inverse = 1 / (np.maximum(self.values, 0) / alpha + 1)
        r = multiply(self.vectors, inverse[:, None] * self.turned)  # (u½ 𝒢 u½/γ_A + I)⁻¹ u½ Y
        parts = []
        for fold in folds:
            rows = self.vectors[fold]
            rest = np.linalg.solve((rows * inverse) @ rows.T, r[fold])
            parts.append(self.Y[fold] - rest / self.root[fold, None])
        return np.concatenate(parts)

    def leave_one_out(self, alpha: float) -> np.ndarray:
        """g at each row when its own target is hidden."""
        inverse = 1 / (np.maximum(self.values, 0) / alpha + 1)
        r = multiply(self.vectors, inverse[:, None] * self.turned)
        return self.Y - r / ((self.vectors**2 @ inverse) * self.root)[:, None]


def weight_slopes(system: Coupled, c: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The gradient of the optimal value in c, and where every row has every view its gradient ∇ in cc'; both times l.

    By the envelope theorem only the loss is differentiated: -2 Σ_i <r_i, d(ν_i Σ_w c_w f_w(x_i))/dc>.
    """
    f, inner = system.answers(c, r)
    if system.present.all():
        return -2 * np.einsum("ip,vip->v", r, f), -inner
    return missing_slopes(c, system.present, np.einsum("ip,vip->iv", r, f)), None


def missing_slopes(c: np.ndarray, present: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """The gradient where views are absent: ν depends on c too. `pulls` are <r_i, f_v(x_i)> as (l, m)."""
    sizes = np.abs(c)
    there = present @ sizes
    inverse = np.divide(1.0, there, out=np.zeros_like(there), where=there > 0)
    nu = sizes.sum() * inverse
    combined = np.where(present, pulls, 0) @ c
    change = np.sign(c) * (inverse[:, None] - present * (nu * inverse)[:, None])  # dν_i/dc_v
    return -2 * (nu @ np.where(present, pulls, 0) + combined @ change)


def evaluate_ridge(system: Coupled, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> Evaluation:
    """φ(c), its gradient and ∇; all times l."""
    r, value = ridge_forces(system.labeled_kernel(c), Y, u)
    return value, *weight_slopes(system, c, r)
