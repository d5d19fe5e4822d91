"""The matrix of all views side by side, for any weights of the views.

    M = N [w_1 B_1 .. w_m B_m],   B_v = K_v S½ over Gram matrices, Φ_v over features

N multiplies the rows by √u, the weights of their losses, and by the factors ν that make up for missing views. S are the
weights of the samples: a weight of two equals a sample given twice. Gram matrices have fewer rows than columns in M, so
their problems are solved by the small matrix MM' (dual); those of features by M'M (primal). All else is the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .coupled import missing_slopes, row_scale
from .design import Design, GramDesign, view_columns
from .kernel_weights import GramFit, MomentFit
from .linalg import add_to_diagonal, cholesky, drop_null_space, eigh_positive, forward, gram_of, multiply

_KEPT = 5e7  # entries of features that are kept between passes


@dataclass
class MetricSpectrum:
    """The decomposition M = V √e R' and the targets in it.

    Parameters
    ----------
    values : array of shape (r,)
        Squared singular values e, ascending.
    vectors : array
        V, of the dual form, or R, of the primal one.
    turned : array of shape (r, P)
        Z = V'Y.
    rest : array of shape (P,)
        ‖Y‖² - ‖Z‖² of each column: the part that no coefficients reach.
    """

    values: np.ndarray
    vectors: np.ndarray
    turned: np.ndarray
    rest: np.ndarray


@dataclass
class Measured:
    """What coefficients G amount to, with the residuals B = Y - MG."""

    losses: np.ndarray  # ‖B‖² of each column
    products: np.ndarray  # <B, Y> of each column
    correlations: np.ndarray  # M'B, (q, P)
    unweighted: np.ndarray  # the same without w, (q, P)
    residuals: np.ndarray  # B, (n, P)


class DesignMatrix:
    """M for any weights of the views.

    Parameters
    ----------
    design : GramDesign or FeatureDesign
        All rows are labeled.
    Y : array of shape (n, P)
        Targets.
    u : array of shape (n,)
        Weights of the losses.
    roots : bool, default=False
        Over Gram matrices: B_v is a root of K_v instead, B_v B_v' = K_v. It is never formed; coefficients are then
        those of the kernel, f_v = K_v a_v. Over features nothing changes: Φ_v is such a root.
    parts : array of shape (m,), optional
        What each of the m counts for ν in addition to w. By default, 1 each.
    """

    def __init__(
        self, design: Design, Y: np.ndarray, u: np.ndarray, *, roots: bool = False, parts: np.ndarray | None = None
    ):
        self.design, self.dual = design, isinstance(design, GramDesign)
        self.implicit = roots and self.dual  # B_v is not formed
        self.sizes, self.columns, self.s = design.sizes, view_columns(design.sizes), design.s
        self.present = np.asfortranarray(design.present)  # (n, m), a view after the other
        self.complete = bool(self.present.all())
        self.parts = np.ones(len(self.sizes)) if parts is None else parts
        self.u_root = np.sqrt(u)
        self.Y = self.u_root[:, None] * Y
        self.s_root = np.ones(sum(self.sizes))  # S½, by coefficient
        if self.dual and not roots:
            self.s_root = np.sqrt(np.concatenate([self.s[here] for here, _, _ in design.pieces()]))
        self._pieces: list[Any] | None = None
        self._squares: list[np.ndarray] = []
        self._eigen: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._moments: tuple[np.ndarray, np.ndarray] | None = None

    # -- products with M
    def pieces(self) -> Iterator[tuple[Any, slice, np.ndarray]]:
        """Yield rows, columns and values of the views side by side, without w, S and N; features are kept if few."""
        if self._pieces is None:
            if not self.dual and len(self.Y) * sum(self.sizes) > _KEPT:  # too large: computed again in every pass
                yield from self.design.pieces()
                return
            self._pieces = list(self.design.pieces())
        yield from self._pieces

    def nu(self, w: np.ndarray) -> np.ndarray:
        """Return ν, the factors of rows with missing views."""
        return np.ones(len(self.present)) if self.complete else row_scale(self.present, w * self.parts)

    def row_factors(self, w: np.ndarray) -> np.ndarray:
        """Return the diagonal of N: ν√u of each row."""
        return self.nu(w) * self.u_root

    def weight_columns(self, w: np.ndarray) -> np.ndarray:
        """Return w of each coefficient's view, as a column."""
        return np.repeat(w, self.sizes)[:, None]

    def by_view(self, G: np.ndarray) -> list[np.ndarray]:
        """Return S½G of each view, the coefficients that prediction takes."""
        return [self.s_root[own, None] * G[own] for own in self.columns]

    def view_outputs(self, G: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield f_v(x_i) as (n, m, P), zero where a view is missing: all rows at once, or block by block (primal)."""
        parts = self.by_view(G)
        if self.dual:
            outputs = np.zeros((*self.present.shape, G.shape[1]))
            for v, (here, _, K) in enumerate(self.pieces()):
                outputs[here, v] = multiply(K, parts[v])
            yield slice(None), outputs
        else:
            for rows, _, Phi in self.pieces():
                views = zip(self.columns, parts, strict=True)
                yield rows, np.stack([multiply(Phi[:, own], part) for own, part in views], axis=1)

    def residuals(self, w: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return B = Y - MG."""
        B, scale = np.empty_like(self.Y), self.row_factors(w)
        for rows, outputs in self.view_outputs(G):
            B[rows] = self.Y[rows] - scale[rows, None] * np.einsum("m,nmp->np", w, outputs)
        return B

    def unweighted(self, w: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return M'B without w: B_v'NB, view after view."""
        scaled = self.row_factors(w)[:, None] * B
        if self.implicit:
            return np.concatenate([scaled[rows] for rows, _, _ in self.pieces()])
        products = np.zeros((len(self.s_root), B.shape[1]), order="F")
        for rows, own, values in self.pieces():
            products[own] += multiply(values if self.dual else values.T, scaled[rows])  # Gram matrices are symmetric
        return self.s_root[:, None] * products

    def lift(self, w: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return M'B."""
        return self.weight_columns(w) * self.unweighted(w, B)

    def embed(self, G: np.ndarray) -> np.ndarray:
        """Return E with <G_v, E_v> the squared norm of view v's part: G itself, or K_v a_v if B_v is not formed."""
        if not self.implicit:
            return G
        return np.concatenate([multiply(K, G[own]) for _, own, K in self.pieces()])

    def squared_norms(self, G: np.ndarray) -> np.ndarray:
        """Return the squared norms of the views' parts, (m, P)."""
        products = G * self.embed(G)
        return np.array([products[own].sum(axis=0) for own in self.columns])

    def measure(self, w: np.ndarray, G: np.ndarray) -> Measured:
        """Return the loss of coefficients and the correlations of their residuals."""
        B = self.residuals(w, G)
        bare = self.unweighted(w, B)
        losses, products = np.sum(B**2, axis=0), np.sum(B * self.Y, axis=0)
        return Measured(losses, products, self.weight_columns(w) * bare, bare, B)

    def weight_slopes(self, w: np.ndarray, G: np.ndarray, measured: Measured) -> np.ndarray:
        """Return the gradient of the loss in w at G."""
        weighed, products = self.u_root[:, None] * measured.residuals, np.empty(self.present.shape)
        for rows, outputs in self.view_outputs(G):
            products[rows] = np.einsum("np,nmp->nm", weighed[rows], outputs)  # <r_i, f_v(x_i)>
        return -2 * products.sum(axis=0) if self.complete else missing_slopes(w, self.present, products)

    def squared_size(self) -> float:
        """Return Σ_v ‖S½B_v‖_F²: Σ_v tr(K_v²) over Gram matrices, samples counted by their weights."""
        squares = self.s_root**2
        return float(sum(self.s[rows] @ (B**2 @ squares[own]) for rows, own, B in self.pieces()))

    def matrix(self, w: np.ndarray) -> np.ndarray:
        """Return M itself."""
        M = np.zeros((len(self.Y), len(self.s_root)), order="F")
        scale, columns = self.row_factors(w), self.weight_columns(w)[:, 0] * self.s_root
        for rows, own, B in self.pieces():
            M[rows, own] = scale[rows][:, None] * B * columns[own]
        return M

    # -- the small side
    def square_kernels(self) -> None:
        """Compute √u B_v B_v' √u of each view (dual), once for all w."""
        if not self.dual or self._squares:
            return
        for here, own, K in self.pieces():
            s, u = self.s_root[own], self.u_root[here]
            # B_vB_v' is K_v S K_v, or K_v itself for roots
            square = K if self.implicit else gram_of(K if np.all(s == 1) else s[:, None] * K)
            self._squares.append(square if np.all(u == 1) else u[:, None] * square * u)

    def kernels(self, w: np.ndarray) -> Iterator[np.ndarray]:
        """Yield D_v = M_v M_v' of each view, over all rows (dual)."""
        self.square_kernels()
        nu, n = self.nu(w), len(self.Y)
        for square, (here, _, _), weight in zip(self._squares, self.pieces(), w, strict=True):
            D = square if self.complete else nu[here][:, None] * square * nu[here]
            D = D if weight == 1 else weight**2 * D
            if len(here) < n:
                whole = np.zeros((n, n), order="F")  # zero at rows that lack the view
                whole[np.ix_(here, here)] = D
                D = whole
            yield D

    def gram(self, w: np.ndarray) -> np.ndarray:
        """Return MM' (dual)."""
        total = np.zeros((len(self.Y), len(self.Y)), order="F")
        for D in self.kernels(w):
            total += D.T if D.flags.c_contiguous else D  # symmetric; in the order of the sum
        return total

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return M'M and M'Y."""
        if self.dual:
            M = self.matrix(w)  # (n, q) with q coefficients in all: for the published scheme only
            return gram_of(M), multiply(M.T, self.Y)
        # with missing views the rows are scaled by ν, which depends on w
        if self._moments is None or not self.complete:
            q, scale = len(self.s_root), self.row_factors(w)
            C, c = np.zeros((q, q), order="F"), np.zeros((q, self.Y.shape[1]))
            for rows, _, Phi in self.pieces():
                scaled = Phi if np.all(scale[rows] == 1) else scale[rows, None] * Phi
                C += gram_of(scaled)
                c += multiply(scaled.T, self.Y[rows])
            self._moments = C, c
        C, c = self._moments
        columns = self.weight_columns(w)
        return columns * C * columns[:, 0], columns * c

    def small_side(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the small matrix and its right-hand side: (MM', Y), or (M'M, M'Y)."""
        return (self.gram(w), self.Y) if self.dual else self.moments(w)

    def from_small_side(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return G of a solution x of the small system."""
        return self.lift(w, x) if self.dual else x

    # -- decompositions
    def is_decomposed(self, w: np.ndarray) -> bool:
        """Tell whether the eigenvectors of MM' are at hand for these weights."""
        return self._eigen is not None and not (self._eigen[0] != w).any()

    def left_vectors(self, w: np.ndarray, root: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared singular values of M and its left vectors; of M times `root` in the primal form."""
        if self.dual:
            if not self.is_decomposed(w):
                self._eigen = (w.copy(), *drop_null_space(*eigh_positive(self.gram(w))))
            assert self._eigen is not None
            return self._eigen[1:]
        C, _ = self.moments(w)
        values, R = drop_null_space(*eigh_positive(C if root is None else multiply(root.T, multiply(C, root))))
        turn = R if root is None else multiply(root, R)
        V = np.empty((len(self.Y), len(values)), order="F")
        for rows, products in self._products(w, turn / np.sqrt(np.maximum(values, np.finfo(float).tiny))):
            V[rows] = products  # V = MR/√e
        return values, V

    def _products(self, w: np.ndarray, T: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield MT block by block (primal)."""
        scale, turned = self.row_factors(w), self.weight_columns(w) * T
        for rows, _, Phi in self.pieces():
            yield rows, scale[rows, None] * multiply(Phi, turned)

    def spectrum(self, w: np.ndarray) -> MetricSpectrum:
        """Return the singular values of M, and Y in the basis of its left vectors."""
        if self.dual:
            values, V = self.left_vectors(w)
            turned = multiply(V.T, self.Y)
            rest = np.zeros(self.Y.shape[1])
            if V.shape[0] > V.shape[1]:  # Y may have a part along the directions dropped
                rest = np.sum((self.Y - multiply(V, turned)) ** 2, axis=0)
            return MetricSpectrum(values, V, turned, rest)
        C, c = self.moments(w)
        values, R = drop_null_space(*eigh_positive(C))
        turned = multiply(R.T, c) / np.sqrt(np.maximum(values, np.finfo(float).tiny))[:, None]  # V'Y = R'M'Y/√e
        rest = np.maximum(np.sum(self.Y**2, axis=0) - np.sum(turned**2, axis=0), 0)
        return MetricSpectrum(values, R, turned, rest)

    def from_spectrum(self, w: np.ndarray, spectrum: MetricSpectrum, S: np.ndarray) -> np.ndarray:
        """Return G = M'VS."""
        if self.dual:
            return self.lift(w, multiply(spectrum.vectors, S))
        return multiply(spectrum.vectors, np.sqrt(spectrum.values)[:, None] * S)  # M'V = R√e

    # -- weights of the views' kernels
    def kernel_fits(self, w: np.ndarray, groups: Sequence[slice]) -> Iterator[GramFit | MomentFit]:
        """Yield J(d), as a function of weights d of the kernels D_v, for each group of outputs."""
        if self.dual:
            kernels = list(self.kernels(w))
            for group in groups:
                yield GramFit(kernels, self.Y[:, group])
        else:
            C, c = self.moments(w)
            for group in groups:
                yield MomentFit(C, c[:, group], float(np.sum(self.Y[:, group] ** 2)), self.sizes)

    def from_kernel_weights(self, w: np.ndarray, fit: GramFit | MomentFit, d: np.ndarray) -> np.ndarray:
        """Return the coefficients of a group of outputs for weights d of the kernels: d_v M_v'B, or G."""
        solution = fit.solve(d)
        return np.repeat(d, self.sizes)[:, None] * self.lift(w, solution) if self.dual else solution

    def inverse_diagonal(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the diagonal of (I + Σ_v d_v D_v)⁻¹."""
        if self.dual:
            n = len(self.Y)
            total = np.zeros((n, n), order="F")
            for weight, D in zip(d, self.kernels(w), strict=True):
                total += weight * D
            # the diagonal of (LL')⁻¹ has the squared lengths of the columns of L⁻¹
            half = forward(cholesky(add_to_diagonal(total, 1.0)), np.eye(n, order="F"))
            return np.sum(half**2, axis=0)
        C, _ = self.moments(w)
        root = np.repeat(np.sqrt(d), self.sizes)
        L = cholesky(add_to_diagonal(np.asfortranarray(root[:, None] * C * root), 1.0))
        # Woodbury: (I + MΔM')⁻¹ = I - MΔ½ (I + Δ½M'MΔ½)⁻¹ Δ½M', with Δ = diag(d)
        diagonal = np.ones(len(self.Y))
        for rows, products in self._products(w, root[:, None] * forward(L, np.eye(len(L), order="F")).T):
            diagonal[rows] -= np.sum(products**2, axis=1)
        return diagonal
