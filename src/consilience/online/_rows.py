"""Rows of several views side by side: where their columns lie, and how they are read."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..views import _blocks
from ..views.container import Views
from ._arrays import RowArrays

_KINDS = (np.dtype(np.float64), np.dtype(np.float32))


class Columns:
    """Columns of each view among the weights: one view after the other, or all views from column 0 on (`shared`).

    With `ones`, the first column of each view is a column of ones before those of the samples.
    """

    def __init__(self, *, first: int = 0, shared: bool = False, ones: bool = False):
        self.offsets: dict[str, int] = {}
        self.widths: dict[str, int] = {}
        self.width, self.shared, self.ones = first, shared, int(ones)

    def add(self, X: Views) -> list[str]:
        """Give columns to the views of X that occur for the first time; return their names."""
        new = [name for name in X.names if name not in self.offsets and X.present(name).any()]
        for name in new:
            self.widths[name] = self.ones + _blocks.width(X.block(name))
            self.offsets[name] = 0 if self.shared else self.width
            # shared columns are as many as the widest view has
            self.width = max(self.width, self.offsets[name] + self.widths[name])
        return new

    def span(self, name: str) -> slice:
        """Return the columns of one view."""
        return slice(self.offsets[name], self.offsets[name] + self.widths[name])

    def products(self, X: Views, W: np.ndarray, intercept: Any) -> np.ndarray:
        """Return the intercept plus Σ x_v' W_v over the views of each sample; W is (columns, 1 or views, outputs)."""
        total = np.zeros((len(X), W.shape[2])) + intercept
        for l, name in enumerate(self.offsets):
            if name in X.names and X.block(name) is not None:
                own = W[self.span(name), l if self.shared else 0]
                there, block = present_rows(X, name)
                if len(there):
                    total[there] += np.asarray(block @ own[self.ones :]) + own[: self.ones].sum(axis=0)
        return total

    def by_view(self, W: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights of each view, (n_columns,) or (n_columns, n_outputs); W is that of `products`."""
        parts = {name: W[self.span(name), l if self.shared else 0][self.ones :] for l, name in enumerate(self.offsets)}
        return {name: own[:, 0] if own.shape[1] == 1 else own for name, own in parts.items()}

    def intercepts(self, W: np.ndarray) -> np.ndarray:
        """Return the sum over the views of the weights of their columns of ones; W is that of `products`."""
        parts = [W[offset, l if self.shared else 0] for l, offset in enumerate(self.offsets.values())]
        return np.asarray(np.sum(parts, axis=0))

    def matrix(self, X: Views, ones: bool) -> sp.csr_array:
        """Return all views in one sparse matrix, missing ones as empty rows; with a first column of ones."""
        parts = [sp.csr_array(np.ones((len(X), 1)))] if ones else []
        for name, width in self.widths.items():
            known = name in X.names and X.block(name) is not None
            there = np.flatnonzero(X.present(name)) if known else np.zeros(0, int)
            block = sp.csr_array(_blocks.take(X.block(name), there)) if len(there) else sp.csr_array((0, width))
            block = with_ones(block) if self.ones and len(there) else block
            # moves rows to their positions
            place = sp.csr_array((np.ones(len(there)), (there, np.arange(len(there)))), shape=(len(X), len(there)))
            parts.append(place @ block)
        return sp.hstack(parts, format="csr")


class Rows:
    """Rows of several views that can be sliced."""

    def __init__(self, arrays: RowArrays):
        self.arrays = arrays

    def __getitem__(self, rows: slice) -> "Rows":
        values, columns, start, stop, column_start = self.arrays
        return Rows(RowArrays(values, columns, start[rows], stop[rows], column_start[rows]))


def read_rows(X: Views, columns: Columns, ones: bool = False) -> RowArrays:
    """Return the rows of X without a copy where it can be; with `ones` a last view of ones in column 0."""
    n, starts = len(X), []
    values: list[np.ndarray] = []
    places: list[np.ndarray] = []
    before = at = 0  # entries and columns of the views so far
    for name, offset in columns.offsets.items():
        block = X.block(name)
        if block is None or not X.present(name).any():
            starts.append((np.zeros(n, dtype=np.int64),) * 3)
            continue
        block = with_ones(block) if columns.ones else block
        if sp.issparse(block):
            values.append(block.data)
            places.append(block.indices if offset == 0 else block.indices + offset)  # no copy where columns start at 0
            first, last = block.indptr[:-1], block.indptr[1:]
            placed = first  # column indices of sparse rows lie where their values do
        else:
            dense = _blocks.to_numpy(block)
            values.append(np.ascontiguousarray(dense).reshape(-1))
            places.append(np.arange(offset, offset + dense.shape[1], dtype=np.int32))
            first = np.arange(n) * dense.shape[1]
            last, placed = first + dense.shape[1], np.zeros(n, dtype=np.int64)  # dense rows share one list of columns
        if X.mask is not None:
            last = np.where(X.present(name), last, first)  # missing: no entries
        starts.append((first + before, last + before, placed + at) if before or at else (first, last, placed))
        before, at = before + len(values[-1]), at + len(places[-1])
    if ones:
        one = np.full(n, before, dtype=np.int64)  # all rows share one entry
        starts.append((one, one + 1, np.full(n, at, dtype=np.int64)))
        values.append(np.ones(1, dtype=np.result_type(*values) if values else np.float64))
        places.append(np.zeros(1, dtype=np.int32))
    positions = (_side_by_side([s[k] for s in starts]) for k in range(3))
    return RowArrays(read_only(joined(values)), read_only(joined(places)), *positions)


def with_ones(block: Any) -> Any:
    """Return a block with a first column of ones."""
    n = block.shape[0]
    if not sp.issparse(block):
        dense = _blocks.to_numpy(block)
        return np.concatenate([np.ones((n, 1), dtype=dense.dtype), dense], axis=1)
    indptr = block.indptr + np.arange(n + 1, dtype=block.indptr.dtype)
    own = np.ones(len(block.data) + n, dtype=bool)  # places of the entries of the block
    own[indptr[:-1]] = False
    data, indices = np.ones(len(own), dtype=block.dtype), np.zeros(len(own), dtype=block.indices.dtype)
    data[own], indices[own] = block.data, block.indices + 1
    return sp.csr_array((data, indices, indptr), shape=(n, block.shape[1] + 1))


def present_rows(X: Views, name: str) -> tuple[np.ndarray, Any]:
    """Return which samples have a view, and their rows of it, in NumPy or sparse."""
    there, block = np.flatnonzero(X.present(name)), X.block(name)
    if not len(there):
        return there, None
    block = block if len(there) == len(X) else _blocks.take(block, there)
    return there, block if sp.issparse(block) else _blocks.to_numpy(block)


def known_views(X: Views, names: Sequence[str]) -> Views:
    """Return the views of these names, missing where X lacks them; samples may have none of them."""
    blocks = {name: X.block(name) if name in X.names else None for name in names}
    views = Views.__new__(Views)  # validated already, so the constructor's checks are skipped
    views.names, views.feature_names, views._blocks, views._n = tuple(names), {}, blocks, len(X)
    views.sample_names, views.categories = None, {}
    none = np.zeros(len(X), dtype=bool)
    mask = np.column_stack([X.present(name) if name in X.names else none for name in names])
    views.mask = None if mask.all() else mask
    return views


def read_numbers(row: Any, width: int) -> Any:
    """Return one row as a vector of floating point numbers; None if it is missing.

    `NotImplemented` stands for a row that must be validated: of another form or width, with NaN among numbers, with
    infinity, or with squares that overflow.
    """
    if type(row) is list or type(row) is tuple:
        try:
            row = np.array(row)  # without a type, so that text stays text
        except ValueError:  # lists of unequal length
            return NotImplemented
    if type(row) is not np.ndarray or row.dtype.kind not in "fiu":
        return NotImplemented
    if row.shape != (width,):
        if row.shape != (1, width):
            return NotImplemented
        row = row[0]
    if row.dtype not in _KINDS:
        if row.dtype.kind == "f":  # half precision, or the bytes of another machine
            return NotImplemented
        row = row.astype(np.float64)
    if not math.isfinite(np.dot(row, row)):
        return None if np.isnan(row).all() else NotImplemented
    return np.ascontiguousarray(row)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Return arrays one after the other; a single one without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written: loops compile once, also for samples of a memory map."""
    view = array.view()
    view.setflags(write=False)
    return view


def _side_by_side(columns: list[np.ndarray]) -> np.ndarray:
    """Return positions of several views; those of sparse matrices have 32 bits, for which loops would compile again."""
    positions = columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)
    return positions.astype(np.int64, copy=False)
