"""The design of a batch problem: Gram matrices or finite features of every view, in one form each.

Rows are the training samples in solver order: the labeled rows come first. A view has only the rows where it is
present. Solvers read these arrays and know nothing of views' names, kernels or labels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._backend import in_single

BLOCK = 4096  # rows of features at a time
DEVICE_BLOCK = 65_536  # the same on a device, which is idle between small blocks


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
        rows = given.pop("rows", None) or [np.arange(K.shape[0]) for K in grams]
        N = 1 + max(int(here[-1]) for here in rows)  # rows are ascending
        return cls(list(grams), list(rows), l, given.pop("s", np.ones(N)), **given)

    @property
    def single(self) -> bool:
        """Whether the matrices are in single precision."""
        return all(in_single(K) for K in self.grams)

    @property
    def sizes(self) -> list[int]:
        """Number of coefficients of each view."""
        return [int(K.shape[0]) for K in self.grams]

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


class FeatureRows(NamedTuple):
    """Features of rows that follow one another, all views side by side, with their targets and weights."""

    Phi: Any  # (b, q), zero where a view is missing
    present: np.ndarray  # (b, m)
    s: np.ndarray  # (b,)
    u: np.ndarray  # (b,), weights of the losses: 0 for rows without a target
    Y: np.ndarray  # (b, P), 0 for rows without a target


@dataclass
class FeatureDesign:
    """Finite features of each view, read block by block so that memory does not grow with the rows.

    Parameters
    ----------
    rows : callable
        Starts a new pass over all rows, and returns an iterator of `FeatureRows`; the same rows at every pass.
    sizes : list of int
        Number of features of each view.
    n_outputs : int
        P.
    outer : bool, default=False
        Whether outputs are turned into other directions, so that sums of their products are needed.
    smoothness : list of array of shape (p_v, p_v)
        Φ_v'L_vΦ_v; empty where no graph is used.
    over_parts : callable, optional
        Takes a function of the rows of one part, and returns the sum of its values over all parts of the rows. The
        parts are read where they are, such as by workers of a cluster.
    known : Moments, optional
        Sums over all rows, where the rows themselves are no longer there.
    """

    rows: Callable[[], Iterator[FeatureRows]]
    sizes: list[int]
    n_outputs: int
    outer: bool = False
    smoothness: list[np.ndarray] = field(default_factory=list)
    over_parts: Callable[[Callable[[Iterator[FeatureRows]], Any]], Any] | None = None
    known: Any = None
    single = False  # sums over rows are in double precision

    def reduce(self, work: Callable[[Iterator[FeatureRows]], Any]) -> Any:
        """Return ``work(rows)`` for all rows; of rows in parts, the sum of its values, which must add up by ``+``."""
        return work(self.rows()) if self.over_parts is None else self.over_parts(work)

    def labeled(self) -> FeatureRows:
        """Return the features of all rows with a target, in one piece."""
        parts = []
        for block in self.rows():
            shown = block.u > 0
            parts.append(block if shown.all() else FeatureRows(*(part[shown] for part in block)))
        return FeatureRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def hide(self, hidden: np.ndarray) -> "FeatureDesign":
        """Return the same rows without the targets of some labeled rows, given by their positions among these."""

        def rows() -> Iterator[FeatureRows]:
            before = 0
            for block in self.rows():
                labeled = np.flatnonzero(block.u)
                u = block.u.copy()
                u[labeled[np.isin(before + np.arange(len(labeled)), hidden)]] = 0.0
                before += len(labeled)
                yield block._replace(u=u)

        return FeatureDesign(rows, self.sizes, self.n_outputs, self.outer, self.smoothness)

    def split(self, W: Any) -> list[Any]:
        """Return the coefficients of each view."""
        return [W[own, :] for own in view_columns(self.sizes)]


Design = GramDesign | FeatureDesign
