"""The matrix of all views side by side, for any weights of the views.

    M = N [w_1 B_1 .. w_m B_m],   B_v = K_v S½ over Gram matrices, Φ_v over features

N multiplies the rows by √u, the weights of their losses, and by the factors ν that make up for missing views. S are the
weights of the samples: a weight of two equals a sample given twice. Gram matrices have fewer rows than columns in M, so
their problems are solved by the small matrix MM' (dual, `DesignMatrix`); those of features by M'M, from sums over rows
(primal, `MomentMatrix` in `moment_matrix`). Solvers see `ViewMatrix`, and need not know which form it is.

Matrices are those of the device where Gram matrices or features are. What has one value for each singular value, output
or view is NumPy's.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from .coupled import missing_slopes, row_scale
from .design import Design, GramDesign, view_columns
from .kernel_weights import GramFit, MomentFit
from .linalg import (
    add_to_diagonal,
    cholesky,
    drop_null_space,
    eigh_positive,
    gram_of,
    inverse_diagonal,
    multiply,
    row_space,
)


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
    vectors: Any
    turned: np.ndarray
    rest: np.ndarray


@dataclass
class Measured:
    """What coefficients G amount to, with the residuals B = Y - MG."""

    losses: np.ndarray  # ‖B‖² of each column
    products: np.ndarray  # <B, Y> of each column
    correlations: Any  # M'B, (q, P)
    unweighted: Any  # the same without w, (q, P)
    residuals: Any = None  # B, (n, P), in the dual form
    unseen: float = 0.0  # how far rounding of sums over rows may move the objective and its lower bound


# Targets without √u, weights u of the losses and an array with a row for each of them
RowPart = tuple[np.ndarray, np.ndarray, Any]


class ViewMatrix(ABC):
    """M for any weights of the views.

    Parameters
    ----------
    design : GramDesign or FeatureDesign
        All rows are labeled.
    n_outputs : int
        P.
    parts : array of shape (m,), optional
        What each of the m counts for ν in addition to w. By default, 1 each.
    """

    dual: bool  # problems are solved by MM', else by M'M
    complete: bool  # every row has every view
    n: int  # number of rows
    weight: float  # sum of the weights of the rows
    squares: np.ndarray  # ‖y‖² of the columns of Y

    def __init__(self, design: Design, n_outputs: int, parts: np.ndarray | None):
        self.design, self.n_outputs = design, n_outputs
        self.sizes, self.columns = design.sizes, view_columns(design.sizes)
        self.parts = np.ones(len(self.sizes)) if parts is None else parts

    @property
    @abstractmethod
    def example(self) -> Any:
        """An array of the device on which the work is done."""

    def weight_columns(self, w: np.ndarray) -> Any:
        """Return w of each coefficient's view, as a column."""
        return like(np.repeat(w, self.sizes)[:, None], self.example)

    def by_view(self, G: Any) -> list[Any]:
        """Return the coefficients of each view, those that prediction takes."""
        return [G[own, :] for own in self.columns]

    def embed(self, G: Any) -> Any:
        """Return E with <G_v, E_v> the squared norm of view v's part."""
        return G

    def view_sums(self, A: Any) -> np.ndarray:
        """Return the sums over the rows of each view of a (q, P) array, as (m, P)."""
        return np.array([to_numpy(namespace(A).sum(A[own, :], axis=0)) for own in self.columns])

    def squared_norms(self, G: Any) -> np.ndarray:
        """Return the squared norms of the views' parts, (m, P)."""
        return self.view_sums(G * self.embed(G))

    def is_decomposed(self, w: np.ndarray) -> bool:
        """Tell whether the singular vectors of M are at hand for these weights."""
        return False

    def square_kernels(self) -> None:  # noqa: B027
        """Compute what does not depend on w, once."""

    # -- what coefficients amount to
    @abstractmethod
    def measure(self, w: np.ndarray, G: Any) -> Measured:
        """Return the loss of coefficients and the correlations of their residuals."""

    @abstractmethod
    def weight_slopes(self, w: np.ndarray, G: Any, measured: Measured) -> np.ndarray:
        """Return the gradient of the loss in w at G."""

    @abstractmethod
    def squared_size(self) -> float:
        """Return Σ_v ‖S½B_v‖_F²: Σ_v tr(K_v²) over Gram matrices, samples counted by their weights."""

    @abstractmethod
    def output_space(self) -> Any:
        """Return orthonormal columns whose span has the rows of G, whatever w is."""

    # -- the small side
    @abstractmethod
    def moments(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return M'M and M'Y, in arrays of their own."""

    @abstractmethod
    def small_side(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return the small matrix and its right-hand side: (MM', Y), or (M'M, M'Y)."""

    @abstractmethod
    def from_small_side(self, w: np.ndarray, x: Any) -> Any:
        """Return G of a solution x of the small system."""

    # -- decompositions
    @abstractmethod
    def spectrum(self, w: np.ndarray) -> MetricSpectrum:
        """Return the singular values of M, and Y in the basis of its left vectors."""

    @abstractmethod
    def from_spectrum(self, w: np.ndarray, spectrum: MetricSpectrum, S: Any) -> Any:
        """Return G = M'VS, for S of NumPy or of the device."""

    @abstractmethod
    def left_vectors(self, w: np.ndarray, root: Any = None) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return the squared singular values of M, what makes its left vectors V, and V'Y; of M times `root` (primal).

        V itself in the dual form, and T with V = MT in the primal one.
        """

    @abstractmethod
    def left_rows(self, w: np.ndarray, vectors: Any) -> Iterator[RowPart]:
        """Yield targets, weights of the losses and the rows of V, block by block, from what `left_vectors` returns."""

    # -- weights of the views' kernels
    @abstractmethod
    def kernel_fits(self, w: np.ndarray, groups: Sequence[slice]) -> Iterator[GramFit | MomentFit]:
        """Yield J(d), as a function of weights d of the kernels D_v, for each group of outputs."""

    @abstractmethod
    def from_kernel_weights(self, w: np.ndarray, fit: Any, d: np.ndarray) -> Any:
        """Return the coefficients of a group of outputs for weights d of the kernels."""

    @abstractmethod
    def leave_one_out(self, w: np.ndarray, G: Any, weights: Sequence[np.ndarray]) -> Iterator[RowPart]:
        """Yield targets, weights of the losses and residuals with the row's own target hidden, block by block.

        `weights` are those of the kernels, d for each output, and stay as they are.
        """


class DesignMatrix(ViewMatrix):
    """M over Gram matrices, for any weights of the views.

    Parameters
    ----------
    design : GramDesign
        All rows are labeled.
    Y : array of shape (n, P)
        Targets.
    u : array of shape (n,)
        Weights of the losses.
    roots : bool, default=False
        B_v is a root of K_v instead, B_v B_v' = K_v. It is never formed; coefficients are then those of the kernel,
        f_v = K_v a_v.
    parts : array of shape (m,), optional
        What each of the m counts for ν in addition to w. By default, 1 each.
    """

    dual = True

    def __init__(
        self, design: GramDesign, Y: np.ndarray, u: np.ndarray, *, roots: bool = False, parts: np.ndarray | None = None
    ):
        super().__init__(design, Y.shape[1], parts)
        self.implicit = roots  # B_v is not formed
        self.s, self.weight, self.n = design.s, float(design.s.sum()), len(Y)
        self.present = np.asfortranarray(design.present)  # (n, m), a view after the other
        self.complete = bool(self.present.all())
        self.u, self.u_root, self.targets = u, np.sqrt(u), Y
        self.Y = like(self.u_root[:, None] * Y, design.grams[0])
        self.squares = np.sum((self.u_root[:, None] * Y) ** 2, axis=0)
        self.s_root = np.ones(sum(self.sizes))  # S½, by coefficient
        if not roots:
            self.s_root = np.sqrt(np.concatenate([self.s[here] for here in design.rows]))
        self._squares: list[Any] = []
        self._eigen: tuple[np.ndarray, np.ndarray, Any] | None = None

    @property
    def example(self) -> Any:
        """An array of the device on which the work is done."""
        return self.Y

    # -- products with M
    def pieces(self) -> Iterator[tuple[np.ndarray, slice, Any]]:
        """Yield rows, columns and values of the views side by side, without w, S and N."""
        assert isinstance(self.design, GramDesign)
        yield from self.design.pieces()

    def nu(self, w: np.ndarray) -> np.ndarray:
        """Return ν, the factors of rows with missing views."""
        return np.ones(self.n) if self.complete else row_scale(self.present, w * self.parts)

    def row_factors(self, w: np.ndarray) -> np.ndarray:
        """Return the diagonal of N: ν√u of each row."""
        return self.nu(w) * self.u_root

    def _like(self, values: np.ndarray) -> Any:
        return like(values, self.Y)

    def by_view(self, G: Any) -> list[Any]:
        """Return S½G of each view, the coefficients that prediction takes."""
        return [self._like(self.s_root[own, None]) * G[own, :] for own in self.columns]

    def view_outputs(self, G: Any) -> Iterator[Any]:
        """Yield f_v(x_i) of each view as (n, P), zero where it is missing."""
        for (here, _, K), part in zip(self.pieces(), self.by_view(G), strict=True):
            yield at_rows(multiply(K, part), here, self.n)

    def residuals(self, w: np.ndarray, G: Any) -> Any:
        """Return B = Y - MG."""
        total = 0 * self.Y
        for weight, outputs in zip(w, self.view_outputs(G), strict=True):
            total += float(weight) * outputs
        return self.Y - self._like(self.row_factors(w)[:, None]) * total

    def unweighted(self, w: np.ndarray, B: Any) -> Any:
        """Return M'B without w: B_v'NB, view after view."""
        scaled = self._like(self.row_factors(w)[:, None]) * B
        parts = []
        for here, own, K in self.pieces():
            part = scaled if len(here) == self.n else take_rows(scaled, here)
            # Gram matrices are symmetric
            parts.append(part if self.implicit else self._like(self.s_root[own, None]) * multiply(K, part))
        return namespace(scaled).concat(parts, axis=0)

    def lift(self, w: np.ndarray, B: Any) -> Any:
        """Return M'B."""
        return self.weight_columns(w) * self.unweighted(w, B)

    def embed(self, G: Any) -> Any:
        """Return G itself, or K_v a_v if B_v is not formed."""
        if not self.implicit:
            return G
        return namespace(G).concat([multiply(K, G[own, :]) for _, own, K in self.pieces()], axis=0)

    def measure(self, w: np.ndarray, G: Any) -> Measured:
        """Return the loss of coefficients and the correlations of their residuals."""
        B, xp = self.residuals(w, G), namespace(self.Y)
        bare = self.unweighted(w, B)
        losses, products = to_numpy(xp.sum(B**2, axis=0)), to_numpy(xp.sum(B * self.Y, axis=0))
        return Measured(losses, products, self.weight_columns(w) * bare, bare, B)

    def weight_slopes(self, w: np.ndarray, G: Any, measured: Measured) -> np.ndarray:
        """Return the gradient of the loss in w at G."""
        weighed, xp = self._like(self.u_root[:, None]) * measured.residuals, namespace(self.Y)
        # <r_i, f_v(x_i)>
        products = np.stack([to_numpy(xp.sum(weighed * outputs, axis=1)) for outputs in self.view_outputs(G)], axis=1)
        return -2 * products.sum(axis=0) if self.complete else missing_slopes(w, self.present, products)

    def squared_size(self) -> float:
        """Return Σ_v ‖S½B_v‖_F²: Σ_v tr(K_v²) over Gram matrices, samples counted by their weights."""
        total, squares = 0.0, self.s_root**2
        for here, own, K in self.pieces():
            by_row = multiply(K**2, self._like(squares[own, None]))
            total += float(self.s[here] @ to_numpy(by_row)[:, 0])
        return total

    def output_space(self) -> Any:
        """Return orthonormal columns whose span has the rows of G: that of the rows of Y."""
        return row_space(self.Y)

    def matrix(self, w: np.ndarray) -> Any:
        """Return M itself."""
        scale, parts = self.row_factors(w), []
        for (here, own, K), weight in zip(self.pieces(), w, strict=True):
            part = self._like(scale[here, None]) * K * self._like(weight * self.s_root[None, own])
            parts.append(at_rows(part, here, self.n))
        return namespace(self.Y).concat(parts, axis=1)

    # -- the small side
    def square_kernels(self) -> None:
        """Compute √u B_v B_v' √u of each view, once for all w."""
        if self._squares:
            return
        for here, own, K in self.pieces():
            s, u = self.s_root[own], self.u_root[here]
            # B_vB_v' is K_v S K_v, or K_v itself for roots
            square = K if self.implicit else gram_of(K if np.all(s == 1) else self._like(s[:, None]) * K)
            self._squares.append(square if np.all(u == 1) else _on_both_sides(square, u))

    def kernels(self, w: np.ndarray) -> Iterator[Any]:
        """Yield D_v = M_v M_v' of each view, over all rows."""
        self.square_kernels()
        nu = self.nu(w)
        for square, (here, _, _), weight in zip(self._squares, self.pieces(), w, strict=True):
            D = square if self.complete else _on_both_sides(square, nu[here])
            D = D if weight == 1 else float(weight) ** 2 * D
            yield at_rows_and_columns(D, here, self.n)

    def gram(self, w: np.ndarray) -> Any:
        """Return MM'."""
        if is_device_array(self.Y):
            return sum(self.kernels(w))
        total = np.zeros((self.n, self.n), order="F")
        for D in self.kernels(w):
            total += D.T if D.flags.c_contiguous else D  # symmetric; in the order of the sum
        return total

    def moments(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return M'M and M'Y, in arrays of their own."""
        M = self.matrix(w)  # (n, q) with q coefficients in all: for the published scheme only
        return gram_of(M), multiply(M.T, self.Y)

    def small_side(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return MM' and Y."""
        return self.gram(w), self.Y

    def from_small_side(self, w: np.ndarray, x: Any) -> Any:
        """Return G of a solution x of the small system."""
        return self.lift(w, x)

    # -- decompositions
    def is_decomposed(self, w: np.ndarray) -> bool:
        """Tell whether the eigenvectors of MM' are at hand for these weights."""
        return self._eigen is not None and not (self._eigen[0] != w).any()

    def left_vectors(self, w: np.ndarray, root: Any = None) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return the squared singular values of M, its left vectors V, and V'Y."""
        if not self.is_decomposed(w):
            self._eigen = (w.copy(), *drop_null_space(*eigh_positive(self.gram(w))))
        assert self._eigen is not None
        _, values, V = self._eigen
        return values, V, to_numpy(multiply(V.T, self.Y))

    def left_rows(self, w: np.ndarray, vectors: Any) -> Iterator[RowPart]:
        """Yield all targets, weights of the losses and V."""
        yield self.targets, self.u, vectors

    def spectrum(self, w: np.ndarray) -> MetricSpectrum:
        """Return the singular values of M, and Y in the basis of its left vectors."""
        values, V, turned = self.left_vectors(w)
        rest = np.zeros(self.n_outputs)
        if V.shape[0] > V.shape[1]:  # Y may have a part along the directions dropped
            xp = namespace(self.Y)
            rest = to_numpy(xp.sum((self.Y - multiply(V, self._like(turned))) ** 2, axis=0))
        return MetricSpectrum(values, V, turned, rest)

    def from_spectrum(self, w: np.ndarray, spectrum: MetricSpectrum, S: Any) -> Any:
        """Return G = M'VS."""
        return self.lift(w, multiply(spectrum.vectors, self._like(S)))

    # -- weights of the views' kernels
    def kernel_fits(self, w: np.ndarray, groups: Sequence[slice]) -> Iterator[GramFit]:
        """Yield J(d), as a function of weights d of the kernels D_v, for each group of outputs."""
        kernels = list(self.kernels(w))
        for group in groups:
            yield GramFit(kernels, self.Y[:, group])

    def from_kernel_weights(self, w: np.ndarray, fit: GramFit, d: np.ndarray) -> Any:
        """Return the coefficients of a group of outputs for weights d of the kernels: d_v M_v'B."""
        return self.weight_columns(d) * self.lift(w, fit.solve(d))

    def inverse_diagonal(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the diagonal of (I + Σ_v d_v D_v)⁻¹."""
        total = sum(float(weight) * D for weight, D in zip(d, self.kernels(w), strict=True))
        return inverse_diagonal(cholesky(add_to_diagonal(total, 1.0)))

    def leave_one_out(self, w: np.ndarray, G: Any, weights: Sequence[np.ndarray]) -> Iterator[RowPart]:
        """Yield all targets, weights of the losses and residuals with the row's own target hidden."""
        # the residual of ridge regression over the diagonal of (I + Σ_v d_v D_v)⁻¹
        diagonals = np.stack([self.inverse_diagonal(w, d) for d in weights], axis=1)
        yield self.targets, self.u, to_numpy(self.residuals(w, G)) / diagonals


# -- rows of one view among all rows
def _on_both_sides(A: Any, factors: np.ndarray) -> Any:
    """Return A with its rows and columns multiplied."""
    return like(factors[:, None], A) * A * like(factors[None, :], A)


def at_rows(A: Any, here: np.ndarray, n: int) -> Any:
    """Return the rows of A at the positions `here` of n rows, the others zero."""
    if len(here) == n:
        return A
    if not is_device_array(A):
        whole = np.zeros((n, A.shape[1]), order="F")
        whole[here] = A
        return whole
    # the standard has no assignment to rows by position: any row is read where there is none, and multiplied by 0
    position, there = np.zeros(n, dtype=np.int64), np.zeros((n, 1))
    position[here], there[here] = np.arange(len(here)), 1.0
    return take_rows(A, position) * like(there, A)


def at_rows_and_columns(A: Any, here: np.ndarray, n: int) -> Any:
    """Return the rows and columns of A at the positions `here` of n, the others zero."""
    if len(here) == n:
        return A
    if is_device_array(A):
        return at_rows(at_rows(A, here, n).T, here, n).T
    whole = np.zeros((n, n), order="F")
    whole[np.ix_(here, here)] = A
    return whole
