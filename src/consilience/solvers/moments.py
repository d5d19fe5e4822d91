"""Sums over rows of features: all that least squares over features needs, however the rows are read.

    X = Σ_i u_i φ_iφ_i',  T = Σ_i (s_i - u_i) φ_iφ_i',  Z = Σ_i u_i φ_i y_i',  Σ_i u_i y_i²

over all views side by side, φ_i = [φ_1(x_i) .. φ_m(x_i)]. The weights u of the losses are 0 for rows without a target,
so X + T = Σ_i s_i φ_iφ_i' is over all rows. Sums of rows that have the same views are kept apart, because the factors ν
of rows with missing views depend on the weights of the views. Sums add up: those of blocks, of workers, of two fits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._backend import cast, is_device_array, like, namespace, to_numpy
from .coupled import missing_slopes, row_scale
from .design import FeatureRows, view_columns
from .linalg import add_gram, add_product_transposed, mirror, multiply

#: Bytes that sums by pattern of views may take; with more patterns they are computed again for each c.
PATTERN_BYTES = 1 << 30


class TooManyPatterns(Exception):
    """There are so many combinations of missing views that their sums would not fit."""


@dataclass
class RowSums:
    """Sums over rows that have the same views, or the same number of views."""

    X: Any  # (q, q): its lower triangle
    T: Any  # (q, q): its lower triangle
    Z: Any  # (q, P)
    squares: np.ndarray  # (P,): Σ u y²; (P, P): Σ u yy', where outputs are turned
    n: int = 0  # rows
    labeled: int = 0  # rows with a target
    weight: float = 0.0  # Σ s
    total: float = 0.0  # Σ s over the rows with a target

    @classmethod
    def empty(cls, q: int, P: int, *, outer: bool, like_array: Any = None) -> "RowSums":
        """Return sums over no rows, on the device of an array."""
        squares = np.zeros((P, P) if outer else P)
        if is_device_array(like_array):
            xp, where = namespace(like_array), {"device": like_array.device}
            X, T = (xp.zeros((q, q), dtype=xp.float64, **where) for _ in range(2))
            return cls(X, T, xp.zeros((q, P), dtype=xp.float64, **where), squares)
        return cls(np.zeros((q, q), order="F"), np.zeros((q, q), order="F"), np.zeros((q, P), order="F"), squares)

    def add(self, rows: FeatureRows, nu: np.ndarray | None) -> None:
        """Add rows; `nu` are the factors ν of the rows, where they are known."""
        u, s = rows.u, rows.s
        scaled = u if nu is None else u * nu**2
        shown, others = np.flatnonzero(u), np.flatnonzero(s - scaled)
        if len(shown):
            Phi, here = _take(rows.Phi, shown), u[shown]
            Y = rows.Y[shown] if len(shown) < len(u) else rows.Y
            weighed = _scale_rows(Phi, np.sqrt(scaled[shown]))
            self.X = add_gram(self.X, weighed)
            self.Z = add_product_transposed(self.Z, weighed, like(np.sqrt(here)[:, None] * Y, weighed))
            self.squares = self.squares + (here @ Y**2 if self.squares.ndim == 1 else (here[:, None] * Y).T @ Y)
        if len(others):
            rest, Phi = (s - scaled)[others], _take(rows.Phi, others)
            for sign in (1, -1):  # weights below 0 where classes or ν raise the weight of a loss
                own = np.flatnonzero(sign * rest > 0)
                if len(own):
                    self.T = add_gram(self.T, _scale_rows(_take(Phi, own), np.sqrt(np.abs(rest[own]))), sign)
        self.n, self.labeled = self.n + len(u), self.labeled + len(shown)
        self.weight, self.total = self.weight + float(s.sum()), self.total + float(s[shown].sum())

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels between processes: the lower triangles alone, and none of a matrix of zeros."""
        return {name: _packed(own) if name in "XT" else own for name, own in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        q = state["Z"].shape[0]
        vars(self).update({name: _unpacked(own, q) if name in "XT" else own for name, own in state.items()})

    def __iadd__(self, other: "RowSums") -> "RowSums":
        self.X, self.T, self.Z = self.X + other.X, self.T + other.T, self.Z + other.Z
        self.squares = self.squares + other.squares
        self.n, self.labeled = self.n + other.n, self.labeled + other.labeled
        self.weight, self.total = self.weight + other.weight, self.total + other.total
        return self


def _packed(A: Any) -> Any:
    """Return the columns of a lower triangle one after the other, None for zeros; arrays of devices as they are."""
    if is_device_array(A):
        return A
    columns = np.concatenate([A[k:, k] for k in range(len(A))])
    return columns if columns.any() else None


def _unpacked(packed: Any, q: int) -> Any:
    """Return the symmetric matrix of a lower triangle as `_packed` returns it."""
    if is_device_array(packed):
        return packed
    A, start = np.zeros((q, q), order="F"), 0
    for k in range(q if packed is not None else 0):
        A[k:, k] = A[k, k:] = packed[start : start + q - k]
        start += q - k
    return A


Pattern = tuple[bool, ...]


@dataclass
class Moments:
    """Sums over all rows, by the views that the rows have.

    Parameters
    ----------
    sizes : list of int
        Number of features of each view.
    n_outputs : int
        P.
    c : array of shape (m,), optional
        Weights of the views. Rows are then multiplied by their ν, and kept apart by the number of their views only.
    outer : bool, default=False
        Whether to add up the products of outputs, Σ u yy', instead of their squares.
    """

    sizes: list[int]
    n_outputs: int
    c: np.ndarray | None = None
    outer: bool = False
    parts: dict[Any, RowSums] = field(default_factory=dict)

    def add(self, rows: FeatureRows) -> None:
        """Add rows."""
        if rows.present.all():
            self._part((True,) * len(self.sizes), rows.Phi).add(rows, None)
            return
        patterns, which = np.unique(rows.present, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns.tolist()):
            own = np.flatnonzero(which.ravel() == k)
            block = FeatureRows(_take(rows.Phi, own), *(part[own] for part in rows[1:]))
            nu = None if self.c is None else row_scale(block.present, self.c)
            self._part(tuple(pattern), rows.Phi).add(block, nu)

    def _part(self, pattern: Pattern, Phi: Any) -> RowSums:
        key: Any = pattern if self.c is None else sum(pattern)
        if key not in self.parts:
            q = sum(self.sizes)
            if self.c is None and len(self.parts) * 16 * q * q > PATTERN_BYTES:
                raise TooManyPatterns
            self.parts[key] = RowSums.empty(q, self.n_outputs, outer=self.outer, like_array=Phi)
        return self.parts[key]

    def __iadd__(self, other: "Moments") -> "Moments":
        for key, own in other.parts.items():
            if key in self.parts:
                self.parts[key] += own
            else:
                self.parts[key] = own
        return self

    def __add__(self, other: "Moments") -> "Moments":
        """Return the sums over the rows of both, which stay as they are."""
        parts = {key: replace(own) for key, own in self.parts.items()}
        both = Moments(self.sizes, self.n_outputs, self.c, self.outer, parts)
        both += Moments(self.sizes, self.n_outputs, self.c, self.outer, {k: replace(v) for k, v in other.parts.items()})
        if self.c is None and (len(parts) - 1) * 16 * sum(self.sizes) ** 2 > PATTERN_BYTES:
            raise TooManyPatterns
        return both

    def finish(self) -> "Moments":
        """Fill the upper triangles, once all rows are in."""
        for own in self.parts.values():
            own.X, own.T = mirror(own.X), mirror(own.T)
        return self

    # -- what all rows amount to
    @property
    def complete(self) -> bool:
        """Whether every row with a target has every view."""
        return all(self._count(key) == len(self.sizes) for key, own in self.parts.items() if own.labeled)

    @staticmethod
    def _count(key: Any) -> int:
        """Return the number of views of the rows of one part."""
        return key if isinstance(key, int) else sum(key)

    @property
    def total(self) -> float:
        """The sum of the weights of rows with a target: l where they are 1."""
        return sum(own.total for own in self.parts.values())

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows."""
        return sum(own.weight for own in self.parts.values())

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(own.n for own in self.parts.values())

    @property
    def labeled(self) -> int:
        """Number of rows with a target."""
        return sum(own.labeled for own in self.parts.values())

    @property
    def squares(self) -> np.ndarray:
        """Σ u y² of each output."""
        return np.sum([own.squares for own in self.parts.values()], axis=0)

    def nu(self, key: Any, c: np.ndarray) -> float:
        """Return ν of the rows of one part; 1 where the sums have it already."""
        if self.c is not None:
            return 1.0
        return float(row_scale(np.array([key]), c)[0])

    def data(self, c: np.ndarray) -> tuple[Any, Any]:
        """Return Σ u ν² φφ' and Σ u ν φ y' for weights c of the views."""
        X, Z = 0.0, 0.0
        for key, own in self.parts.items():
            nu = self.nu(key, c)
            X, Z = X + nu**2 * own.X, Z + nu * own.Z
        return X, Z

    def everyone(self) -> Any:
        """Return Σ s φφ' over all rows."""
        return sum(own.X + own.T for own in self.parts.values())

    def disagreement(self) -> Any:
        """Return the matrix of Σ_i s_i Σ_{v<w} ‖f_v(x_i) - f_w(x_i)‖²: m_i φ_vφ_v' on its blocks, less φφ'."""
        total: Any = 0.0
        for key, own in self.parts.items():
            both = own.X + own.T
            mine = -both
            for part in view_columns(self.sizes):
                mine[part, part] += self._count(key) * both[part, part]
            total = total + mine
        return total


def unfinished_moments(
    blocks: Iterable[FeatureRows], *, sizes: list[int], n_outputs: int, c: np.ndarray | None, outer: bool
) -> Moments:
    """Return the sums over some rows, to be added to others and then finished."""
    found = Moments(sizes, n_outputs, c, outer)
    for rows in blocks:
        found.add(rows)
    return found


def slopes_by_rows(
    blocks: Iterable[FeatureRows], columns: list[slice], c: np.ndarray, W: Sequence[Any], turn: np.ndarray | None = None
) -> np.ndarray:
    """Return the gradient of the loss in c with a pass over the rows, for coefficients W of each view.

    For data with so many combinations of missing views that their sums are not kept. The targets are Y times `turn`.
    """
    total = np.zeros(len(c))
    for rows in blocks:
        xp = namespace(rows.Phi)
        outputs = [multiply(rows.Phi[:, own], part) for own, part in zip(columns, W, strict=True)]
        nu = like(row_scale(rows.present, c)[:, None], rows.Phi)
        combined = sum(float(weight) * one for weight, one in zip(c, outputs, strict=True))
        Y = like(rows.Y if turn is None else rows.Y @ turn, rows.Phi)
        weighed = like(rows.u[:, None], rows.Phi) * (Y - nu * combined)
        products = np.stack([to_numpy(xp.sum(weighed * one, axis=1)) for one in outputs], axis=1)
        total += missing_slopes(c, rows.present, products)
    return total


def _take(Phi: Any, rows: np.ndarray) -> Any:
    if len(rows) == Phi.shape[0]:
        return Phi
    if is_device_array(Phi):
        return namespace(Phi).take(Phi, like(rows, Phi), axis=0)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):  # rows that follow one another are not copied
        return Phi[rows[0] : rows[-1] + 1]
    return Phi[rows]


def _scale_rows(Phi: Any, factors: np.ndarray) -> Any:
    if (factors == 1).all():
        return Phi
    return Phi * cast(like(factors[:, None], Phi), Phi.dtype)
