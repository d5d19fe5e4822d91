"""Least squares with learned weights of the views' kernels, or with a learned kernel between outputs."""

import numpy as np

from .._backend import namespace, to_numpy
from .certificates import Solution
from .design_matrix import ViewMatrix
from .kernel_weights import SquaredNorm, learn_kernel_weights
from .linalg import eigh_positive, gram_of, multiply
from .metric import kappa_of
from .output_kernel import learn_output_kernel


class MultipleKernels:
    """The problem of lp-norm multiple kernels: min ‖Y - Σ_v f_v‖² + λ (Σ_v ‖f_v‖^q)^(2/q), q = 2p/(p + 1).

    Parameters
    ----------
    system : DesignMatrix or MomentMatrix
        Roots of the kernels and the targets.
    alpha, p : float
        λ, and the norm of the weights.
    shared : bool
        Whether all outputs share the weights.
    """

    def __init__(self, system: ViewMatrix, alpha: float, p: float, *, shared: bool):
        self.system, self.alpha, self.norm = system, alpha, SquaredNorm(alpha, p)
        P = system.n_outputs
        self.groups = [slice(0, P)] if shared else [slice(k, k + 1) for k in range(P)]

    def solve(self, *, tol: float, max_iter: int) -> Solution:
        """Return (coefficients of each view, 1/m each, weights of the kernels by group of outputs) as x.

        Views are combined with weights 1/m, so the coefficients are those of m f_v. If the system has other `parts`,
        the weights c are in proportion to them, and the coefficients are those of f_v/c_v. Where the matrices are not
        positive semi-definite, the status is "indefinite", and x is None.
        """
        system, total = self.system, self.system.parts.sum()
        ones = np.ones(len(system.sizes))  # the kernels have the weights, not the views
        parts, columns = [], []
        try:
            for fit in system.kernel_fits(ones, self.groups):
                part = learn_kernel_weights(fit, self.norm, self.norm.best(ones), tol=tol, max_iter=max_iter)
                parts.append(part)
                columns.append(system.from_kernel_weights(ones, fit, part.x))
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")
        G = namespace(*columns).concat(columns, axis=1)
        measured = system.measure(ones, G)
        objective = float(measured.losses.sum())
        squares = np.maximum(system.squared_norms(G), 0)  # ‖f_v‖², (m, P)
        objective += sum(self.norm.norm(np.sqrt(squares[:, group].sum(axis=1))) for group in self.groups)
        weights = self.alpha * np.stack([part.x for part in parts], axis=1)  # β of Kloft et al. (2011), ‖β‖_p = 1
        status = next((part.status for part in parts if not part.converged), "converged")
        bound = sum(part.dual for part in parts)
        scaled = [float(total / part) * own for part, own in zip(system.parts, system.by_view(G), strict=True)]
        x = scaled, system.parts / total, weights
        return _with_gap(x, objective, bound - measured.unseen, max(part.n_iter for part in parts), status, tol)


class OutputKernel:
    """The problem of a kernel between outputs: min_{L ⪰ 0, f} ‖Y - f‖² + λ‖f‖² + λ‖L‖_F², f with the kernel k(x, z) L.

    Parameters
    ----------
    system : DesignMatrix or MomentMatrix
        Roots of the kernels and the targets.
    alpha : float
        λ.
    """

    def __init__(self, system: ViewMatrix, alpha: float):
        self.system, self.alpha = system, alpha

    def solve(self, w: np.ndarray, *, tol: float, max_iter: int) -> Solution:
        """Return (coefficients of each view, w, L) as x, for given weights of the views.

        Where the matrices are not positive semi-definite, the status is "indefinite", and x is None.
        """
        system, alpha = self.system, self.alpha
        try:
            spectrum = system.spectrum(w)
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")
        # Dinuzzo et al. (2011) have one λ for both penalties
        learned = learn_output_kernel(spectrum, alpha, alpha, tol=tol, max_iter=max_iter)
        S, Q, c = learned.x
        G = system.from_spectrum(w, spectrum, multiply(S, Q.T))
        turned = multiply(G, Q)  # the rows of G lie in the space of Q
        squares, _ = eigh_positive(multiply(turned.T, system.embed(turned)))  # singular values of f, squared
        measured = system.measure(w, G)
        objective = float(measured.losses.sum()) + kappa_of(alpha, alpha) * float(np.sum(squares ** (2 / 3)))
        bound = learned.dual - measured.unseen
        L = gram_of(np.sqrt(c)[:, None] * to_numpy(Q).T)
        return _with_gap((system.by_view(G), w, L), objective, bound, learned.n_iter, learned.status, tol)


def _with_gap(x: tuple, objective: float, bound: float, n_iter: int, status: str, tol: float) -> Solution:
    """Return a solution with the objective of the coefficients themselves, and its gap to a lower bound."""
    gap = max(objective - bound, 0.0)
    if status in ("exact", "converged") and not gap <= max(2 * tol, 1e-6) * abs(objective):
        status = "inexact"
    return Solution(x, gap, n_iter, status, objective=objective)
