"""The loss of support vector machines for several classes, and its dual over one or several kernels.

With vectors s_k of the classes the loss of a sample of class y is Σ_{k≠y} max(0, -<s_k, s_y> + <s_k, g>); with one
class against the rest it is Σ_k max(0, 1 - ±g_k).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .certificates import Solution

_LARGEST = 4e9  # bytes of a matrix over pairs of a sample and a class


class HingeLoss:
    """The mean loss of l samples over outputs g (l, n_outputs), and what its dual needs.

    Parameters
    ----------
    classes : array of int of shape (l,)
        The class of each sample.
    vectors : array of shape (n_classes, n_outputs) or None
        Vectors of the classes; None for one class against the rest, each with an output of its own.
    n_outputs : int
        Number of outputs without vectors; 1 for two classes.
    u : array of shape (l,)
        Weights of the losses.
    scale : float
        What their sum is divided by, l.
    """

    def __init__(self, classes: np.ndarray, vectors: np.ndarray | None, n_outputs: int, u: np.ndarray, scale: float):
        self.scale = scale
        upper = u[:, None] / scale  # 0 <= α_ik <= u_i/l
        if vectors is None:  # independent rows of signs
            own = classes[:, None] == np.arange(n_outputs) if n_outputs > 1 else classes[:, None] > 0
            self.vectors = np.eye(n_outputs)
            self.signs = np.where(own, 1.0, -1.0)
            self.margins = np.ones((len(classes), n_outputs))
            self.upper = np.repeat(upper, n_outputs, axis=1)
        else:
            own = classes[:, None] == np.arange(len(vectors))
            self.vectors = vectors
            self.signs = -np.ones(own.shape)  # the output moves away from vectors of other classes
            self.margins = -(vectors @ vectors.T)[classes]  # -<s_k, s_y>, which is 1/(P - 1) for the simplex
            self.upper = np.where(own, 0.0, upper)  # the loss has no term for the own class

    def dual_residuals(self, alpha: np.ndarray) -> np.ndarray:
        """Return r = l/2 Σ_k ±α_ik s_k, minus half the gradient of the loss in g, times l."""
        return 0.5 * self.scale * (self.signs * alpha) @ self.vectors

    def value(self, g: np.ndarray) -> float:
        """Return the loss at outputs g."""
        # max(0, 1 - ±g_k), or max(0, -<s_k, s_y> + <s_k, g>) for class vectors
        return float(np.sum(self.upper * np.maximum(0, self.margins - self.signs * (g @ self.vectors.T))))

    @staticmethod
    def measured(program: Solution, primal: float, tol: float, *, jitter: bool) -> Solution:
        """Return a solved dual with the objective at the coefficients themselves, and its distance from the dual value.

        Rounding may have spoiled the coefficients, or a factor may have needed a multiple of the identity.
        """
        gap, status = max(primal - program.dual, 0.0), program.status
        if program.converged and not gap <= 2 * max(tol, 1e-9) * abs(primal):
            status = "inexact"
        elif program.converged and jitter:
            status = "jitter"
        return replace(program, gap=gap, status=status, objective=primal)

    def program(self, kernels: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, ...]:
        """Return the dual as `class_qp` takes it, for the kernel Σ_j K_j ⊗ B_j; the K_j (l, l) are used up.

        B_j is between outputs, Q = lK_j (Minh, Bazzani and Murino 2016, Theorem 11). Several terms become one matrix
        over all pairs of a sample and a class (Remark 33); `shaped` brings its solution back.
        """
        for K, _ in kernels:
            K *= self.scale
        inner = [self.vectors @ B @ self.vectors.T for _, B in kernels]
        if len(kernels) == 1:
            return kernels[0][0], inner[0], self.margins, self.upper, self.signs
        self.check_size()
        return self.whole_program(np.sum([np.kron(K, Q_S) for (K, _), Q_S in zip(kernels, inner, strict=True)], axis=0))

    def check_size(self) -> None:
        """Refuse a matrix over all pairs of a sample and a class that would not fit."""
        (l, P), size = self.signs.shape, 8 * self.signs.size**2
        if size > _LARGEST:
            raise ValueError(
                f"Classes interact through several kernels here, so that the program of {l} labeled samples and {P} "
                f"classes has a matrix of {size / 1e9:.3g} GB; at most {_LARGEST / 1e9:.3g} GB are used. Leave out "
                "`output_kernel`, or the penalties on unlabeled samples, or use least squares."
            )

    def whole_program(self, Q: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the dual for one matrix over all pairs of a sample and a class, the classes of a sample together."""
        flat = [part.reshape(-1, 1) for part in (self.margins, self.upper, self.signs)]
        return Q, np.eye(1), *flat

    def shaped(self, alpha: np.ndarray) -> np.ndarray:
        """Return α of a program as (l, n_classes)."""
        return alpha.reshape(self.signs.shape)
