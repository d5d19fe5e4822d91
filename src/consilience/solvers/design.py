"""The design of a batch problem: Gram matrices or finite features of every view, in one form each.

Rows are the training samples in solver order: the labeled rows come first. A view has only the rows where it is
present. Solvers read these arrays and know nothing of views' names, kernels or labels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BLOCK = 4096  # rows of features at a time


def view_columns(sizes: Sequence[int]) -> list[slice]:
    """Return the place of each view's columns where the views stand side by side."""
    ends = np.cumsum(sizes)
    return [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]


@dataclass
class GramDesign:
    """Gram matrices of the rows present in each view.

    Parameters
    ----------
    grams : list of array of shape (n_v, n_v)
        K_v, symmetric positive semi-definite.
    rows : list of array of int
        Positions of each view's rows among the N, ascending.
    l : int
        Number of labeled rows.
    s : array of shape (N,)
        Weights of the rows.
    laplacians : list of matrices
        L_v over the rows of each view; empty where no graph is used.
    """

    grams: list[np.ndarray]
    rows: list[np.ndarray]
    l: int
    s: np.ndarray
    laplacians: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, grams: Sequence[np.ndarray], l: int, **given: Any) -> "GramDesign":
        """Return the design where every view has every row, unless `rows` says otherwise."""
        rows = given.pop("rows", None) or [np.arange(len(K)) for K in grams]
        N = 1 + max(int(here[-1]) for here in rows)  # rows are ascending
        return cls(list(grams), list(rows), l, given.pop("s", np.ones(N)), **given)

    @property
    def single(self) -> bool:
        """Whether the matrices are in single precision."""
        return all(K.dtype == np.float32 for K in self.grams)

    @property
    def sizes(self) -> list[int]:
        """Number of coefficients of each view."""
        return [len(K) for K in self.grams]

    def pieces(self) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
        """Yield the rows, the columns and the values of each view's part of [K_1 .. K_m]."""
        yield from zip(self.rows, view_columns(self.sizes), self.grams, strict=True)

    @property
    def present(self) -> np.ndarray:
        """Which rows each view has, (N, m)."""
        present = np.zeros((len(self.s), len(self.grams)), dtype=bool)
        for v, here in enumerate(self.rows):
            present[here, v] = True
        return present

    @property
    def total(self) -> float:
        """The sum of the labeled rows' weights: l where they are 1."""
        return float(self.s[: self.l].sum())


@dataclass
class FeatureDesign:
    """Finite features of each view, computed block by block so that memory does not grow with the rows.

    Parameters
    ----------
    features : callable
        Maps (start, stop) to the features of these rows, all views side by side, zero where a view is missing.
    sizes : list of int
        Number of features of each view.
    present : array of bool of shape (N, m)
        Which rows each view has.
    l : int
        Number of labeled rows.
    s : array of shape (N,)
        Weights of the rows.
    smoothness : list of array of shape (p_v, p_v)
        Φ_v'L_vΦ_v; empty where no graph is used.
    """

    features: Callable[[int, int], np.ndarray]
    sizes: list[int]
    present: np.ndarray
    l: int
    s: np.ndarray
    smoothness: list[np.ndarray] = field(default_factory=list)
    single = False  # sums over rows are in double precision

    def blocks(self, stop: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the features of the rows before `stop`, all rows by default, with the place of each block."""
        end = len(self.s) if stop is None else stop
        for start in range(0, end, BLOCK):
            rows = slice(start, min(start + BLOCK, end))
            yield rows, self.features(rows.start, rows.stop)

    def pieces(self) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Yield the rows, the columns and the values of one block of [Φ_1 .. Φ_m] after the other."""
        for rows, Phi in self.blocks():
            yield rows, slice(0, Phi.shape[1]), Phi

    def split(self, W: np.ndarray) -> list[np.ndarray]:
        """Return the coefficients of each view."""
        return [W[own] for own in view_columns(self.sizes)]

    @property
    def total(self) -> float:
        """The sum of the labeled rows' weights: l where they are 1."""
        return float(self.s[: self.l].sum())


Design = GramDesign | FeatureDesign
