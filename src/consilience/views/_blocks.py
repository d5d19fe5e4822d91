"""One view's data: what can be done with it whatever its kind.

A block is a 2-D array (NumPy, PyTorch, CuPy), a CSR matrix, a 1-D array of objects, a `Gram`, or None where the view is
absent in every sample.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, like, namespace, take_rows, to_numpy


class Gram:
    """Rows of one shared Gram matrix: a precomputed view.

    Think of it as a column of sample positions. Taking rows keeps the matrix and takes positions, and the kernel
    between two row sets is a look-up, so that cross-validation, absent rows and other views beside it need no
    special case. Made by ``Views(..., precomputed="name")``.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        The matrix; usually square, over all samples.
    index : array of int of shape (n_samples,), optional
        The position of each sample in `values`; all rows in order by default.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.views.container import Gram
    >>> K = Gram(np.arange(9.0).reshape(3, 3))
    >>> K[[2, 0]].block(K[[1]])
    array([[7.],
           [1.]])
    """

    def __init__(self, values: np.ndarray | None, index: np.ndarray | None = None):
        if values is None and index is None:
            raise ValueError("A Gram needs its values or its index.")
        if values is not None and getattr(values, "dtype", None) not in (np.float32, np.float64):
            values = np.asarray(values, dtype=np.float64)
        self.values = values
        self.index = np.arange(len(values)) if index is None else np.asarray(index)  # type: ignore[arg-type]
        self.n_columns = None if values is None else values.shape[1]
        self.order: np.ndarray | None = None  # of a learner's reference: the place of each sample among those at fit
        self.n_order = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples): the samples against themselves."""
        return (len(self.index), len(self.index))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> "Gram":
        return self._like(self.values, self.index[rows], None if self.order is None else self.order[rows], self.n_order)

    def _like(self, values: np.ndarray | None, index: np.ndarray, order: np.ndarray | None, n_order: int) -> "Gram":
        other = Gram(values, index)
        other.n_columns, other.order, other.n_order = self.n_columns, order, n_order
        return other

    def numbered(self) -> "Gram":
        """Return the same rows, known from now on as those given to fit, in this order."""
        return self._like(self.values, self.index, np.arange(len(self)), len(self))

    def reference(self, *, strip: bool) -> "Gram":
        """Return what a fitted learner keeps: the positions of its samples and their order, with the matrix or not."""
        known = self if self.order is not None else self.numbered()
        return self._like(None if strip else self.values, self.index, known.order, known.n_order)

    def joined(self, others: Sequence["Gram"]) -> "Gram":
        """Return the samples of all, of one matrix; their places at fit stay known where all are of one fit."""
        every = [self, *others]
        known = all(block.order is not None and block.n_order == self.n_order for block in every)
        order = np.concatenate([block.order for block in every if block.order is not None]) if known else None
        return self._like(self.values, np.concatenate([b.index for b in every]), order, self.n_order if known else 0)

    def block(self, other: "Gram") -> np.ndarray:
        """Return the kernel between the samples of `self` (rows) and those of `other` (columns): a look-up."""
        if self.values is None or self.n_columns != other.n_columns:
            raise _not_over_the_same(self.n_columns, other)
        rows, columns = _as_slice(self.index), _as_slice(other.index)
        if rows is not None and columns is not None:  # many times faster than by positions
            return np.array(self.values[rows, columns])
        return np.asarray(self.values[np.ix_(self.index, other.index)])

    def columns_of(self, plain: np.ndarray) -> np.ndarray:
        """Return the columns that are the samples of `self`, of a plain matrix of new samples against those at fit.

        Its columns are the samples given to fit, in that order, or else all samples of the Gram that fit took rows of.
        """
        order, n_order = (np.arange(len(self)), len(self)) if self.order is None else (self.order, self.n_order)
        if plain.shape[1] == n_order:
            return np.asarray(plain[:, order])
        if plain.shape[1] == self.n_columns:
            return np.asarray(plain[:, self.index])
        raise _not_over_the_same(plain.shape[1], self)

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each sample with itself."""
        if self.values is None or self.values.shape[0] != self.values.shape[1]:
            raise ValueError("The diagonal of a precomputed view is known only where the whole square Gram is given.")
        return np.asarray(self.values[self.index, self.index])


def _as_slice(index: np.ndarray) -> slice | None:
    """Positions that follow each other, as a slice."""
    if len(index) == 0 or index[-1] - index[0] != len(index) - 1 or (np.diff(index) != 1).any():
        return None
    return slice(int(index[0]), int(index[-1]) + 1)


def _not_over_the_same(columns: int | None, other: Gram) -> ValueError:
    return ValueError(
        f"A precomputed view of {columns} columns meets one over {other.n_columns} samples. Give the kernel between "
        "the new samples and the same samples as at fit, in the same order."
    )


Block = Any  # one view's data: 2-D array (NumPy, PyTorch, CuPy), CSR matrix, 1-D object array, Gram, or None


# -- working on blocks
def kind(block: Block) -> str:
    if block is None:
        return "absent"
    if isinstance(block, Gram):
        return "gram"
    if sp.issparse(block):
        return "sparse"
    return "objects" if block.dtype == object else "dense"


def width(block: Block) -> int:
    if block is None:
        return 0
    return int(block.shape[1]) if len(block.shape) == 2 else 1


def entries(block: Block) -> int:
    """How many numbers a block of vectors stores."""
    return int(block.nnz) if sp.issparse(block) else int(block.shape[0] * block.shape[1])


def is_single(block: Block) -> bool:
    """Tell whether the numbers of a block are in single precision."""
    if isinstance(block, Gram):
        return block.values is not None and block.values.dtype == np.float32
    return str(getattr(block, "dtype", "")).endswith("float32")


def shape_text(block: Block) -> str:
    return " x ".join(str(s) for s in block.shape) if len(block.shape) == 2 else f"{block.shape[0]} objects"


def common_length(blocks: Mapping[str, Block]) -> int:
    lengths = {name: block.shape[0] for name, block in blocks.items() if block is not None}
    if not lengths:
        raise ValueError(f"No view has data: {quoted(blocks)} is None. Give at least one view.")
    counts = list(lengths.values())
    usual = max(counts, key=lambda n: (counts.count(n), n))  # of two lengths the longer: what is short can be padded
    for name, n in lengths.items():
        if n != usual:
            raise ValueError(
                f"View '{name}' has {n} rows, the others {usual}. Pad it and mark absent rows with `mask=`."
            )
    return int(usual)


def take(block: Block, rows: np.ndarray) -> Block:
    return None if block is None else take_rows(block, rows)


def between(block: Block, start: int, stop: int) -> Block:
    """Rows that follow each other; arrays and sparse matrices share their memory with the block."""
    if block is None or isinstance(block, Gram) or is_device_array(block):
        return take(block, np.arange(start, stop))
    if not sp.issparse(block):
        return block[start:stop]
    first, last = int(block.indptr[start]), int(block.indptr[stop])
    parts = (block.data[first:last], block.indices[first:last], block.indptr[start : stop + 1] - block.indptr[start])
    rows = type(block)(parts, shape=(stop - start, block.shape[1]), copy=False)
    rows.has_canonical_format = True  # as every block is
    return rows


def blank(block: Block, absent: np.ndarray) -> Block:
    """Write NaN, None or nothing where a view is absent, in a copy where that changes anything."""
    if block is None or isinstance(block, Gram) or not absent.any():
        return block
    if sp.issparse(block):
        if not np.diff(block.indptr)[absent].any():
            return block
        keep = sp.diags_array((~absent).astype(block.dtype), format="csr")
        blanked = (keep @ block).tocsr()
        blanked.eliminate_zeros()
        blanked.sort_indices()  # a product leaves them in any order
        return blanked
    if block.dtype == object:
        if all(x is None for x in block[absent]):
            return block
        blanked = block.copy()
        blanked[absent] = None
        return blanked
    xp = namespace(block)
    if bool(xp.all(xp.isnan(take_rows(block, np.flatnonzero(absent))))):
        return block
    return xp.where(like(absent, block)[:, None], xp.asarray(np.nan, dtype=block.dtype), block)


def stack(name: str, blocks: Sequence[Block], sizes: Sequence[int]) -> Block:
    given = [block for block in blocks if block is not None]
    kinds = {kind(block) for block in given}
    if not given:
        return None
    if len(kinds) > 1:
        raise ValueError(f"View '{name}' is {quoted(sorted(kinds))} in different parts; stack parts of one kind.")
    if "gram" in kinds:
        if len(given) < len(blocks) or any(block.values is not given[0].values for block in given):
            raise ValueError(f"View '{name}' is precomputed: parts can be stacked only if they share one Gram matrix.")
        return given[0].joined(given[1:])
    if len({width(block) for block in given}) > 1:
        raise ValueError(f"View '{name}' has {quoted([width(b) for b in given])} columns in different parts.")
    filled = [absent_rows(given[0], n) if block is None else block for block, n in zip(blocks, sizes, strict=True)]
    if "sparse" in kinds:
        return sp.vstack(filled, format="csr")
    return namespace(given[0]).concat(filled, axis=0) if "dense" in kinds else np.concatenate(filled)


def absent_rows(like_block: Block, n: int) -> Block:
    if sp.issparse(like_block):
        return sp.csr_array((n, like_block.shape[1]), dtype=like_block.dtype)
    if like_block.dtype == object:
        return np.full(n, None, dtype=object)
    xp = namespace(like_block)
    return xp.full((n, like_block.shape[1]), np.nan, dtype=like_block.dtype, device=like_block.device)


def check_finite(what: str, block: Block, present: np.ndarray) -> None:
    """Refuse single NaN and infinite values where the view is present; of a Gram, among the present samples."""
    places = np.arange(len(present))
    remedy = "Fill single values first, for example with PerView(SimpleImputer()); NaN and inf are refused."
    of_gram = isinstance(block, Gram)
    if of_gram:
        if block.values is None:
            return
        places = np.flatnonzero(present)
        block, present = block[places].block(block[places]), np.ones(len(places), dtype=bool)
        remedy = "A sample without this view has NaN in its whole row, or is masked; NaN and inf are refused."
    if block is None or kind(block) == "objects":
        return
    if sp.issparse(block):
        if np.isfinite(block.data.sum()):
            return
        finite = np.isfinite(block.data)
        if finite.all():
            return
        place = np.flatnonzero(~finite)[0]
        row, column = int(np.searchsorted(block.indptr, place, side="right") - 1), int(block.indices[place])
        value = block.data[place]
    else:
        xp = namespace(block)
        if bool(xp.isfinite(xp.sum(block))):  # one pass without a temporary; a sum that overflows is looked at closely
            return
        array = to_numpy(block)
        bad = ~np.isfinite(array) & present[:, None]
        if not bad.any():
            return
        row, column = map(int, np.argwhere(bad)[0])
        value = array[row, column]
    found = "NaN" if np.isnan(value) else "infinity"
    column = int(places[column]) if of_gram else column
    raise ValueError(
        f"{what} contains {found} in row {places[row]}, column {column} (a row of NaN only would mean that the view is "
        f"absent). {remedy}"
    )


def equal(a: Block, b: Block) -> bool:
    if kind(a) != kind(b):
        return False
    if a is None:
        return True
    if isinstance(a, Gram):
        return a.shape == b.shape and np.array_equal(a.block(a), b.block(b), equal_nan=True)
    if a.shape != b.shape:
        return False
    if sp.issparse(a):
        difference = abs(a - b)
        return difference.nnz == 0 or bool(np.all(difference.data == 0))
    if a.dtype == object:
        return all(x == y for x, y in zip(a, b, strict=True))
    return np.array_equal(to_numpy(a), to_numpy(b), equal_nan=True)


def rows_text(rows: np.ndarray) -> str:
    if len(rows) == 1:
        return f"Sample {rows[0]} has"
    listed = ", ".join(str(r) for r in rows[:5]) + (", ..." if len(rows) > 5 else "")
    return f"{len(rows)} samples ({listed}) have"


def quoted(names: Iterable[Any]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@contextmanager
def naming(name: str, what: str = "View") -> Iterator[None]:
    """Put the view's name in front of what is said about its data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{what} '{name}': {error}") from error


def spread(block: Block, rows: np.ndarray, n: int) -> Block:
    """Rows at their positions among n samples; the others absent."""
    where = np.full(n, block.shape[0])
    where[rows] = np.arange(block.shape[0])
    padded = stack("output", [block, absent_rows(block, 1)], [block.shape[0], 1])
    return take_rows(padded, where)
