"""The matrix of all views side by side over features, from sums over rows alone.

    M'M = D_w X D_w,  M'Y = D_w Z,   X = Σ_i u_i ν_i² φ_iφ_i',  Z = Σ_i u_i ν_i φ_i y_i',   D_w = diag(w_v on view v)

The residuals B = Y - MG are not formed: M'B = M'Y - M'MG, and ‖B‖² = ‖Y‖² - <G, M'Y> - <G, M'B>. So nothing has a
length that grows with the rows. Where a small loss would be lost in the rounding of these differences, and for
leave-one-out, the rows are read once more. Symbols are those of `design_matrix`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._backend import like, namespace, to_numpy
from .coupled import missing_slopes, row_scale
from .coupled_features import FeatureSums
from .design import Design, FeatureDesign, FeatureRows, GramDesign
from .design_matrix import DesignMatrix, Measured, MetricSpectrum, RowPart, ViewMatrix
from .kernel_weights import MomentFit
from .linalg import add_to_diagonal, cholesky, drop_null_space, eigh_positive, forward, multiply, row_space
from .moments import slopes_by_rows

_LOST = 1e-7  # of a loss: with more rounding than that it is measured row by row
_FACTORS = 1e8  # entries of the outputs' factors that are kept; more are computed again for each block of rows


class MomentMatrix(ViewMatrix):
    """M over features, for any weights of the views.

    Parameters
    ----------
    design : FeatureDesign
        Features by blocks of rows; all rows are labeled.
    parts : array of shape (m,), optional
        What each of the m counts for ν in addition to w. By default, 1 each.
    """

    dual = False

    def __init__(self, design: FeatureDesign, *, parts: np.ndarray | None = None):
        super().__init__(design, design.n_outputs, parts)
        self.sums = FeatureSums(design)
        moments = self.sums.moments
        self.complete, self.n, self.weight, self.squares = (
            moments.complete, moments.labeled, moments.weight, moments.squares,
        )  # fmt: skip
        self._known: tuple[np.ndarray, Any, Any] | None = None

    @property
    def example(self) -> Any:
        """An array of the device on which the work is done."""
        return next(iter(self.sums.moments.parts.values())).X

    def rows(self) -> Iterator[FeatureRows]:
        """Start a pass over the rows."""
        assert isinstance(self.design, FeatureDesign)
        yield from self.design.rows()

    # -- sums over rows
    def _sums(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return X and Z, without w; they are not to be changed."""
        c = w * self.parts
        if self._known is None or not (self.complete or np.array_equal(self._known[0], c)):
            self._known = (c, *self.sums.of(c).data(c))
        return self._known[1:]

    def moments(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return M'M and M'Y, in arrays of their own."""
        (X, Z), d = self._sums(w), self.weight_columns(w)
        return d * X * d.T, d * Z

    def small_side(self, w: np.ndarray) -> tuple[Any, Any]:
        """Return M'M and M'Y."""
        return self.moments(w)

    def from_small_side(self, w: np.ndarray, x: Any) -> Any:
        """Return x, which is G."""
        return x

    def covariance(self) -> Any:
        """Return Φ'SΦ/Σs."""
        return self.sums.moments.everyone() / self.weight

    def squared_size(self) -> float:
        """Return Σ_v ‖S½Φ_v‖_F²."""
        everyone = self.sums.moments.everyone()
        return float(namespace(everyone).sum(namespace(everyone).linalg.diagonal(everyone)))

    def output_space(self) -> Any:
        """Return orthonormal columns whose span has the rows of G: that of the rows of Φ'Y."""
        moments = self.sums.moments
        if moments.c is not None:  # sums for other weights may have other rows
            return like(np.eye(self.n_outputs), self.example)
        # M'Y adds up multiples of these
        return row_space(namespace(self.example).concat([own.Z for own in moments.parts.values()], axis=0))

    # -- what coefficients amount to
    def measure(self, w: np.ndarray, G: Any) -> Measured:
        """Return the loss of coefficients and the correlations of their residuals.

        Sums over rows are rounded: an entry of X by a few eps √(X_ii X_jj), Z by as much with ‖y‖ for a factor, ‖y‖² by
        as much of itself. All that this moves by is at most a few eps (‖y‖ + Σ_i √X_ii |w_i g_i|)²: for a dual value
        too, because the gradient of the penalty's conjugate at 2M'B is G.
        """
        (X, Z), d, xp = self._sums(w), self.weight_columns(w), namespace(self.example)
        H = d * G
        bare = Z - multiply(X, H)  # M'B without w
        products = self.squares - to_numpy(xp.sum(H * Z, axis=0))
        losses = products - to_numpy(xp.sum(H * bare, axis=0))
        sizes = xp.sqrt(xp.linalg.diagonal(X))[:, None]
        reach = np.sqrt(self.squares) + to_numpy(xp.sum(sizes * xp.abs(H), axis=0))
        unseen = np.finfo(np.float64).eps * (4 + np.sqrt(self.n)) * float(np.sum(reach**2))
        if unseen > _LOST * float(np.sum(losses)) and self.design.known is None:  # type: ignore[union-attr]
            return self._measured_by_rows(w, G)
        return Measured(np.maximum(losses, 0), products, d * bare, bare, unseen=unseen)

    def _measured_by_rows(self, w: np.ndarray, G: Any) -> Measured:
        """Return the same from the residuals of every row, in one more pass over the rows."""
        xp, d = namespace(self.example), self.weight_columns(w)
        losses, products, bare = np.zeros(self.n_outputs), np.zeros(self.n_outputs), 0 * G
        for Y, B, Phi in self._residuals(w, G):
            losses, products = losses + to_numpy(xp.sum(B**2, axis=0)), products + to_numpy(xp.sum(B * Y, axis=0))
            bare = bare + multiply(Phi.T, B)
        return Measured(losses, products, d * bare, bare)

    def _residuals(self, w: np.ndarray, G: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Yield √u y, the residuals B, and the features times ν√u, block by block."""
        H = self.weight_columns(w) * G
        for rows in self.rows():
            Phi = like(self._row_factors(rows, w)[:, None], rows.Phi) * rows.Phi
            Y = like(np.sqrt(rows.u)[:, None] * rows.Y, Phi)
            yield Y, Y - multiply(Phi, H), Phi

    def _row_factors(self, rows: FeatureRows, w: np.ndarray) -> np.ndarray:
        """Return ν√u of each row."""
        return row_scale(rows.present, w * self.parts) * np.sqrt(rows.u)

    def weight_slopes(self, w: np.ndarray, G: Any, measured: Measured) -> np.ndarray:
        """Return the gradient of the loss in w at G."""
        if self.complete:
            return -2 * self.view_sums(G * measured.unweighted).sum(axis=1)  # -2 <G_v, Φ_v'r>
        moments, total = self.sums.of(w), np.zeros(len(w))
        if moments.c is not None:
            assert isinstance(self.design, FeatureDesign)
            slopes: np.ndarray = self.design.reduce(
                partial(slopes_by_rows, columns=self.columns, c=w, W=self.by_view(G))
            )
            return slopes
        H = self.weight_columns(w) * G
        for key, own in moments.parts.items():  # rows that have the same views, as if they were one
            t = own.Z - moments.nu(key, w) * multiply(own.X, H)  # Σ u φ r'
            total += missing_slopes(w, np.array([key]), self.view_sums(G * t).sum(axis=1)[None, :])
        return total

    # -- decompositions
    def spectrum(self, w: np.ndarray) -> MetricSpectrum:
        """Return the singular values of M, and Y in the basis of its left vectors."""
        C, c = self.moments(w)
        values, R = drop_null_space(*eigh_positive(C))
        turned = to_numpy(multiply(R.T, c)) / _roots(values)[:, None]  # V'Y = R'M'Y/√e
        rest = np.maximum(self.squares - np.sum(turned**2, axis=0), 0)
        return MetricSpectrum(values, R, turned, rest)

    def from_spectrum(self, w: np.ndarray, spectrum: MetricSpectrum, S: Any) -> Any:
        """Return G = M'VS."""
        R = spectrum.vectors
        return multiply(R, like(np.sqrt(spectrum.values)[:, None], R) * like(S, R))  # M'V = R√e

    def left_vectors(self, w: np.ndarray, root: Any = None) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return the squared singular values of M or M times `root`, T with MT the left vectors V, and V'Y."""
        C, c = self.moments(w)
        values, R = drop_null_space(*eigh_positive(C if root is None else multiply(root.T, multiply(C, root))))
        turn = (R if root is None else multiply(root, R)) / like(_roots(values)[None, :], R)  # V = MR/√e
        return values, turn, to_numpy(multiply(turn.T, c))

    def left_rows(self, w: np.ndarray, vectors: Any) -> Iterator[RowPart]:
        """Yield targets, weights of the losses and the rows of V, block by block."""
        turned = self.weight_columns(w) * vectors
        for rows in self.rows():
            factors = like(self._row_factors(rows, w)[:, None], rows.Phi)
            yield rows.Y, rows.u, factors * multiply(rows.Phi, turned)

    # -- weights of the views' kernels
    def kernel_fits(self, w: np.ndarray, groups: Sequence[slice]) -> Iterator[MomentFit]:
        """Yield J(d), as a function of weights d of the kernels D_v, for each group of outputs."""
        C, c = self.moments(w)
        for group in groups:
            yield MomentFit(C, c[:, group], float(np.sum(self.squares[group])), self.sizes)

    def from_kernel_weights(self, w: np.ndarray, fit: MomentFit, d: np.ndarray) -> Any:
        """Return the coefficients of a group of outputs for weights d of the kernels."""
        return fit.solve(d)

    def leave_one_out(self, w: np.ndarray, G: Any, weights: Sequence[np.ndarray]) -> Iterator[RowPart]:
        """Yield targets, weights of the losses and residuals with the row's own target hidden, block by block."""
        xp, d = namespace(self.example), self.weight_columns(w)
        few = len(weights) * G.shape[0] ** 2 <= _FACTORS
        kept = list(self._inverse_turns(w, weights)) if few else []
        for rows in self.rows():
            Phi = like(self._row_factors(rows, w)[:, None], rows.Phi) * rows.Phi
            B = to_numpy(like(np.sqrt(rows.u)[:, None] * rows.Y, Phi) - multiply(Phi, d * G))
            # Woodbury: (I + MΔM')⁻¹ = I - MΔ½ (I + Δ½M'MΔ½)⁻¹ Δ½M', with Δ = diag(d)
            turns = kept or self._inverse_turns(w, weights)
            diagonals = [1 - to_numpy(xp.sum(multiply(Phi, d * turn) ** 2, axis=1)) for turn in turns]
            # the residual of ridge regression over the diagonal
            yield rows.Y, rows.u, B / np.stack(diagonals, axis=1)

    def _inverse_turns(self, w: np.ndarray, weights: Sequence[np.ndarray]) -> Iterator[Any]:
        """Yield T with Δ½ (I + Δ½M'MΔ½)⁻¹ Δ½ = TT' for each output."""
        C, _ = self.moments(w)
        for d in weights:
            root = self.weight_columns(np.sqrt(d))
            L = cholesky(add_to_diagonal(root * C * root.T, 1.0))
            yield root * forward(L, like(np.eye(C.shape[0], order="F"), C)).T


def view_matrix(
    design: Design, data: Any, *, roots: bool = False, parts: np.ndarray | None = None
) -> DesignMatrix | MomentMatrix:
    """Return the matrix of a design: over Gram matrices, with the targets `data.Y` and the weights `data.u`.

    Features have their targets and weights with them. `roots` and `parts` are those of `DesignMatrix`; over features
    `roots` changes nothing, since Φ_v is a root of the kernel.
    """
    if isinstance(design, GramDesign):
        return DesignMatrix(design, data.Y, data.u, roots=roots, parts=parts)
    return MomentMatrix(design, parts=parts)


def _roots(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(values, np.finfo(float).tiny))
