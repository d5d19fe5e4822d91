"""Kernels between outputs, learned with the coefficients; the same problem as one metric for all outputs.

    min_{C ⪰ 0, G} ‖Y - MG‖² + λ tr(G C† G') + η‖C‖_F²

is output kernel learning. At the best C = (λ/2η)^⅓ (G'G)^⅓ the penalty is κ Σ_i s_i(G)^(4/3). Its dual has products of
matrices alone (lower bounds in docs/guide/exact_metric.md): max_B 2<B, Y> - ‖B‖² - μ‖B'MM'B‖_F² with μ = 27/16κ³. In
the eigenvectors of the optimal C the outputs do not meet: each is a problem of one output, whose ρ solves one equation.
So the unknown is a basis of the outputs' space, in which B'MM'B is diagonal. What is off the diagonal is the gap.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace
from .._progress import report_progress
from .certificates import Solution
from .design_matrix import MetricSpectrum
from .linalg import diagonal_of, eigh, eigh_positive, gram_of, inner_product, multiply, norm, row_space
from .metric import kappa_of, metric_roots

_CG_STEPS = 20  # at most, for one change of the basis
_CG_TOL = 0.1  # of the right-hand side; a smaller one saves few changes of the basis


def learn_output_kernel(
    spectrum: MetricSpectrum, alpha: float, metric_penalty: float, *, tol: float, max_iter: int, start: Any = None
) -> Solution:
    """Return (S, Q, c) with G = M'VSQ' and C = Q diag(c) Q' at the optimum as ``x``.

    Q are orthonormal columns that span the rows of Y, and the rest of the space has no part in C. `start` is such a
    basis for the same targets, of a solution with other penalties. S and Q are those of the device, c is NumPy's.

    The steps are those of Newton's method for C, in its eigenvectors. A step that raises the objective is replaced by
    the published one, C for G, which cannot. A tolerance below 1e-20 is raised to it.
    """
    tol = max(tol, 1e-20)
    twice = 27 / (8 * kappa_of(alpha, metric_penalty) ** 3)  # 2μ
    e, Z = spectrum.values, like(spectrum.turned, spectrum.vectors)
    rest = float(np.sum(spectrum.rest))
    if not spectrum.turned.any() or not e.any():
        x = Z[:, :0], like(np.zeros((Z.shape[1], 0)), Z), np.zeros(0)
        # M is 0 or Y is outside of its span: no G explains what is left
        return Solution(x, 0.0, 1, "exact", objective=rest + float(np.sum(spectrum.turned**2)))
    Q = row_space(Z) if start is None else start
    Z = multiply(Z, Q)
    if start is None:  # without C: the directions of the outputs in M'Y
        U = eigh_positive(gram_of(like(np.sqrt(e)[:, None], Z) * Z))[1]
        Z, Q = multiply(Z, U), multiply(Q, U)
    state, n_iter = _OutputBasis(e, Z, twice), 0
    while True:
        objective = state.objective + rest
        report_progress(n_iter, state.gap)
        if not state.gap > tol * objective or n_iter >= max_iter:  # or not a number: the targets were too large
            break
        n_iter += 1
        for U in state.turns():
            moved = _OutputBasis(e, multiply(state.Z, U), twice)
            if moved.objective <= state.objective + 1e-13 * objective:
                break
        state, Q = moved, multiply(Q, U)
    status = "converged" if state.gap <= tol * objective else "max_iter"
    x = state.B * like(state.t[None, :], state.B), Q, alpha * state.t  # β = B/ρ, and c = λ/ρ
    return Solution(x, state.gap, n_iter, status, objective=objective)


class _OutputBasis:
    """The best solution whose C is diagonal in a basis of the outputs' space, and the way to a better basis.

    Parameters
    ----------
    values : array of shape (r,)
        Squared singular values of M.
    Z : array of shape (r, k)
        V'Y in this basis.
    twice : float
        2μ.
    """

    def __init__(self, values: np.ndarray, Z: Any, twice: float):
        e = self.e = like(values[:, None], Z)
        self.Z, self.twice = Z, twice
        kappa = float(np.cbrt(27 / (8 * twice)))
        self.t = 1 / metric_roots(values, e * Z**2, kappa)  # 1/ρ of each column
        self.B = Z / (1 + e * like(self.t[None, :], Z))  # residuals
        H = gram_of((twice * e) ** 0.5 * self.B)  # 2μ B'MM'B; its diagonal is t
        diagonal = diagonal_of(H)
        self.off = _add_diagonal(H, -diagonal)
        # weak duality holds column by column with equality, so that only these terms are left
        self.gap = norm(self.off) ** 2 / (2 * twice)
        self.objective = norm(self.B) ** 2 + 1.5 / twice * float(np.sum(self.t**2))

    def turns(self) -> Iterator[Any]:
        """Yield eigenvectors of better C, in this basis: of Newton's step, of shorter ones, of the best C for G."""
        W = self.newton_step()
        values, U = eigh(_add_diagonal(W, self.t), driver="evd")
        if float(values[0]) >= -1e-12 * float(values[-1]):
            yield U
        # steps in the logarithm of C keep it positive semi-definite
        root = np.sqrt(np.maximum(self.t, 1e-16 * self.t.max()))
        values, U = eigh(W / like(root[:, None], W) / like(root[None, :], W), driver="evd")
        xp = namespace(values)
        for length in (1.0, 0.5, 0.25, 0.125):
            half = xp.exp(xp.clip(length * values, -3.0, 3.0) / 2)
            yield eigh(gram_of((like(root[:, None], U) * U * half[None, :]).T), driver="evd")[1]
        t = like(self.t, W)
        yield eigh_positive(t[:, None] * _add_diagonal(self.off, self.t) * t[None, :])[1]  # ∝ G'G

    def newton_step(self) -> Any:
        """Return the change of C by Newton's method, in units of λ: W with (I + L)W = off.

        L(W) = X + X', X = B'(F∘BW), is how 2μ B'MM'B answers to a change of C. It is nearly a multiplication of each
        entry where B'MM'B is nearly diagonal, so that conjugate gradients take few steps.
        """
        B, t = self.B, like(self.t[None, :], self.B)
        F = self.twice * self.e**2 / (1 + self.e * t)
        A = multiply((B**2).T, F)
        D = 1 + A + A.T
        W = self.off / D
        left = self.off - self._answer(W, F)
        step = left / D
        size, goal = inner_product(left, step), _CG_TOL**2 * inner_product(self.off, W)
        direction = step
        for _ in range(_CG_STEPS):
            if size <= goal:
                break
            answer = self._answer(direction, F)
            length = size / inner_product(direction, answer)
            W, left = W + length * direction, left - length * answer
            step = left / D
            before, size = size, inner_product(left, step)
            direction = step + size / before * direction
        return W

    def _answer(self, W: Any, F: Any) -> Any:
        X = multiply(self.B.T, F * multiply(self.B, W))
        return W + X + X.T


def _add_diagonal(A: Any, values: np.ndarray) -> Any:
    """Return A plus a diagonal matrix, in an array of its own."""
    if is_device_array(A):
        xp = namespace(A)
        return A + xp.eye(A.shape[0], dtype=A.dtype, device=A.device) * like(values[None, :], A)
    whole = A.copy(order="F")
    whole[np.diag_indices_from(whole)] += values
    return whole
