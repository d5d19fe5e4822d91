"""Operations on one view's data, whatever its kind.

A block is a 2-D array (NumPy, PyTorch, CuPy), a CSR matrix, a 1-D array of objects, a `Gram`, or None if the view is
missing in every sample.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, like, namespace, take_rows, to_numpy


class Gram:
    """Rows of one shared Gram matrix: a precomputed view.

    A `Gram` stores the position of each sample in the matrix. Indexing by rows selects positions and shares the matrix;
    the kernel between two sets of rows is a look-up. So cross-validation, missing rows and additional views need no
    special case. Create it by ``Views(..., precomputed="name")``.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        Gram matrix, usually square over all samples. None if only positions are known.
    index : array of int of shape (n_samples,), optional
        Position of each sample in `values`. Default: all rows in order.

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
            raise ValueError("A Gram needs `values` or `index`; both are None.")
        if values is not None and str(getattr(values, "dtype", "")).rpartition(".")[2] not in ("float32", "float64"):
            values = np.asarray(values, dtype=np.float64)
        self.values = values
        self.index = np.arange(values.shape[0]) if index is None else np.asarray(index)  # type: ignore[union-attr]
        self.n_columns = None if values is None else values.shape[1]
        self.order: np.ndarray | None = None
        self.n_order = 0  # `order`: position of each sample among the `n_order` samples given to fit, if known

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n_samples, n_samples) of the kernel matrix of the samples."""
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
        """Return the same rows, marked as the samples given to fit in this order."""
        return self._like(self.values, self.index, np.arange(len(self)), len(self))

    def reference(self, *, strip: bool) -> "Gram":
        """Return what a fitted estimator stores: positions and order of its samples, without the matrix if `strip`."""
        known = self if self.order is not None else self.numbered()
        return self._like(None if strip else self.values, self.index, known.order, known.n_order)

    def joined(self, others: Sequence["Gram"]) -> "Gram":
        """Return the samples of `self` and `others`, which share one matrix.

        Their order at fit stays known only if all of them come from the same fit.
        """
        every = [self, *others]
        known = all(block.order is not None and block.n_order == self.n_order for block in every)
        order = np.concatenate([block.order for block in every if block.order is not None]) if known else None
        return self._like(self.values, np.concatenate([b.index for b in every]), order, self.n_order if known else 0)

    def block(self, other: "Gram") -> np.ndarray:
        """Look up the kernel between the samples of `self` (rows) and those of `other` (columns)."""
        if self.values is None or self.n_columns != other.n_columns:
            raise _not_over_the_same(self.n_columns, other)
        rows, columns = _as_slice(self.index), _as_slice(other.index)
        if is_device_array(self.values):
            return take_rows(take_rows(self.values, self.index).T, other.index).T + 0.0  # a copy
        if rows is not None and columns is not None:  # a slice copies many times faster than positions
            return np.array(self.values[rows, columns])
        return np.asarray(self.values[np.ix_(self.index, other.index)])

    def columns_of(self, plain: np.ndarray) -> np.ndarray:
        """Return the columns of a plain matrix, new samples by samples at fit, that belong to the samples of `self`.

        The columns of `plain` are the samples given to fit in that order, or all samples of the shared Gram matrix.
        """
        order, n_order = (np.arange(len(self)), len(self)) if self.order is None else (self.order, self.n_order)
        if plain.shape[1] in (n_order, self.n_columns):
            wanted = order if plain.shape[1] == n_order else self.index
            return take_rows(plain.T, wanted).T if is_device_array(plain) else np.asarray(plain[:, wanted])
        raise _not_over_the_same(plain.shape[1], self)

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each sample with itself."""
        if self.values is None or self.values.shape[0] != self.values.shape[1]:
            raise ValueError(
                "The diagonal of a precomputed view needs the square Gram matrix of all samples; it was not given."
            )
        if is_device_array(self.values):
            return take_rows(namespace(self.values).linalg.diagonal(self.values), self.index)
        return np.asarray(self.values[self.index, self.index])


def _as_slice(index: np.ndarray) -> slice | None:
    """Return consecutive positions as a slice, and None for others."""
    if len(index) == 0 or index[-1] - index[0] != len(index) - 1 or (np.diff(index) != 1).any():
        return None
    return slice(int(index[0]), int(index[-1]) + 1)


def _not_over_the_same(columns: int | None, other: Gram) -> ValueError:
    return ValueError(
        f"A precomputed view has {columns} columns, but its reference has {other.n_columns} samples. Give the kernel "
        "between the new samples and the samples given to fit, in the same order."
    )


Block = Any  # one view's data: 2-D array (NumPy, PyTorch, CuPy), CSR matrix, 1-D object array, Gram, or None


# -- working on blocks
def kind(block: Block) -> str:
    """Return what a block is: "dense", "sparse", "objects", "gram", or "missing" for None."""
    if block is None:
        return "missing"
    if isinstance(block, Gram):
        return "gram"
    if sp.issparse(block):
        return "sparse"
    return "objects" if block.dtype == object else "dense"


def width(block: Block) -> int:
    """Return the number of columns; 1 for objects, 0 for None."""
    if block is None:
        return 0
    return int(block.shape[1]) if len(block.shape) == 2 else 1


def entries(block: Block) -> int:
    """Return how many values a dense or sparse block stores."""
    return int(block.nnz) if sp.issparse(block) else int(block.shape[0] * block.shape[1])


def is_single(block: Block) -> bool:
    """Tell whether the values of a block are in single precision."""
    if isinstance(block, Gram):
        return block.values is not None and is_single(block.values)
    return str(getattr(block, "dtype", "")).endswith("float32")


def shape_text(block: Block) -> str:
    """Return the shape of a block for messages, such as "4 x 3" or "4 objects"."""
    return " x ".join(str(s) for s in block.shape) if len(block.shape) == 2 else f"{block.shape[0]} objects"


def common_length(blocks: Mapping[str, Block]) -> int:
    """Return the number of rows that all views have; raise where they differ."""
    lengths = {name: block.shape[0] for name, block in blocks.items() if block is not None}
    if not lengths:
        raise ValueError(f"No view has data: {quoted(blocks)} is None. Give data for at least one view.")
    counts = list(lengths.values())
    usual = max(counts, key=lambda n: (counts.count(n), n))  # on a tie the longer length: a short view can be padded
    for name, n in lengths.items():
        if n != usual:
            raise ValueError(
                f"View '{name}' has {n} rows, the others {usual}. Pad it and mark missing rows with `mask=`."
            )
    return int(usual)


def take(block: Block, rows: np.ndarray) -> Block:
    """Return rows by their positions; None stays None."""
    return None if block is None else take_rows(block, rows)


def take_columns(block: Block, columns: np.ndarray) -> Block:
    """Return columns of a dense or sparse block by their positions."""
    if sp.issparse(block):
        taken = block.tocsc()[:, columns].tocsr()
        taken.sort_indices()
        return taken
    if is_device_array(block):
        return namespace(block).take(block, like(columns, block), axis=1)
    return np.ascontiguousarray(block[:, columns])  # sums over rows round as at fit


def between(block: Block, start: int, stop: int) -> Block:
    """Return consecutive rows; arrays and sparse matrices share memory with the block."""
    if block is None or isinstance(block, Gram):
        return take(block, np.arange(start, stop))
    if not sp.issparse(block):
        return block[start:stop, ...]
    first, last = int(block.indptr[start]), int(block.indptr[stop])
    parts = (block.data[first:last], block.indices[first:last], block.indptr[start : stop + 1] - block.indptr[start])
    rows = type(block)(parts, shape=(stop - start, block.shape[1]), copy=False)
    rows.has_canonical_format = True  # every block is, and SciPy would check again
    return rows


def blank(block: Block, missing: np.ndarray) -> Block:
    """Return the block with NaN, None or empty sparse rows where the view is missing; copy only if values change."""
    if block is None or isinstance(block, Gram) or not missing.any():
        return block
    if sp.issparse(block):
        if not np.diff(block.indptr)[missing].any():
            return block
        keep = sp.diags_array((~missing).astype(block.dtype), format="csr")
        blanked = (keep @ block).tocsr()
        blanked.eliminate_zeros()
        blanked.sort_indices()  # a product does not sort them
        return blanked
    if block.dtype == object:
        if all(x is None for x in block[missing]):
            return block
        blanked = block.copy()
        blanked[missing] = None
        return blanked
    xp = namespace(block)
    if bool(xp.all(xp.isnan(take_rows(block, np.flatnonzero(missing))))):
        return block
    return xp.where(like(missing, block)[:, None], xp.asarray(np.nan, dtype=block.dtype), block)


def stack(name: str, blocks: Sequence[Block], sizes: Sequence[int]) -> Block:
    """Return the rows of all blocks of one view; None stands for `sizes` rows in which the view is missing."""
    given = [block for block in blocks if block is not None]
    kinds = {kind(block) for block in given}
    if not given:
        return None
    if len(kinds) > 1:
        raise ValueError(f"View '{name}' is {quoted(sorted(kinds))} in different parts. Stack parts of one kind.")
    if "gram" in kinds:
        if len(given) < len(blocks) or any(block.values is not given[0].values for block in given):
            raise ValueError(
                f"View '{name}' is precomputed, but its parts have different Gram matrices. Stack rows of one."
            )
        return given[0].joined(given[1:])
    if len({width(block) for block in given}) > 1:
        raise ValueError(
            f"View '{name}' has {quoted([width(b) for b in given])} columns in different parts. Give the same columns."
        )
    filled = [missing_rows(given[0], n) if block is None else block for block, n in zip(blocks, sizes, strict=True)]
    if "sparse" in kinds:
        return sp.vstack(filled, format="csr")
    return namespace(given[0]).concat(filled, axis=0) if "dense" in kinds else np.concatenate(filled)


def missing_rows(like_block: Block, n: int) -> Block:
    """Return n rows, of the kind of another block, in which the view is missing."""
    if sp.issparse(like_block):
        return sp.csr_array((n, like_block.shape[1]), dtype=like_block.dtype)
    if like_block.dtype == object:
        return np.full(n, None, dtype=object)
    xp = namespace(like_block)
    return xp.full((n, like_block.shape[1]), np.nan, dtype=like_block.dtype, device=like_block.device)


def check_finite(
    what: str, block: Block, present: np.ndarray, names: np.ndarray | None = None, columns: Sequence[str] | None = None
) -> None:
    """Raise for NaN and infinite values in rows where the view is present; of a Gram, among the present samples.

    `what` names the data in the message, `names` the samples and `columns` the columns.
    """
    places = np.arange(len(present))
    remedy = "Impute such values first: by PerView('impute'), or in online estimators by prepare='impute'."
    of_gram = isinstance(block, Gram)
    if of_gram:
        if block.values is None:
            return
        places = np.flatnonzero(present)
        block, present = block[places].block(block[places]), np.ones(len(places), dtype=bool)
        remedy = "If the sample lacks this view, mask it or fill its whole row with NaN."
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
        if bool(xp.isfinite(xp.sum(block))):  # one pass, no temporary; a sum that overflows is checked below
            return
        if is_device_array(block):
            unknown = xp.any(xp.logical_not(xp.isfinite(block)), axis=1)
            rows = np.flatnonzero(to_numpy(unknown) & present)[:1]  # only the row that the message names leaves
            block, present, places = take_rows(block, rows), present[rows], places[rows]
        array = to_numpy(block)
        bad = ~np.isfinite(array) & present[:, None]
        if not bad.any():
            return
        row, column = map(int, np.argwhere(bad)[0])
        value = array[row, column]
    value_name = "NaN" if np.isnan(value) else "infinity"
    place, column = int(places[row]), int(places[column]) if of_gram else column
    where = f"row {place}" if names is None else f"sample '{names[place]}'"
    of_column = f"column {column}" if of_gram or columns is None else f"column '{columns[column]}'"
    raise ValueError(
        f"{what} contains {value_name} in {where}, {of_column}. Only a row of all NaN marks a missing view. {remedy}"
    )


def equal(a: Block, b: Block) -> bool:
    """Tell whether two blocks are of one kind and hold the same values; NaN equals NaN."""
    if kind(a) != kind(b):
        return False
    if a is None:
        return True
    if isinstance(a, Gram):
        return a.shape == b.shape and np.array_equal(to_numpy(a.block(a)), to_numpy(b.block(b)), equal_nan=True)
    if a.shape != b.shape:
        return False
    if sp.issparse(a):
        difference = abs(a - b)
        return difference.nnz == 0 or bool(np.all(difference.data == 0))
    if a.dtype == object:
        return all(x == y for x, y in zip(a, b, strict=True))
    return np.array_equal(to_numpy(a), to_numpy(b), equal_nan=True)


def rows_text(rows: np.ndarray, names: np.ndarray | None) -> str:
    """Return the beginning of a message about samples, such as "Sample 3 has" or "Sample 'p3' has"."""
    shown = [str(row) if names is None else f"'{names[row]}'" for row in rows[:5]]
    if len(rows) == 1:
        return f"Sample {shown[0]} has"
    return f"{len(rows)} samples ({', '.join(shown)}{', ...' * (len(rows) > 5)}) have"


def some(names: Collection[str], most: int = 8) -> str:
    """Return the first names, and how many more there are, for messages."""
    return ", ".join(islice(names, most)) + (f" and {len(names) - most} more" if len(names) > most else "")


def quoted(names: Iterable[Any]) -> str:
    """Return names for messages, such as "'a', 'b'"."""
    return ", ".join(f"'{name}'" for name in names)


@contextmanager
def naming(name: str, what: str = "View") -> Iterator[None]:
    """Prefix errors about one view's data with its name."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{what} '{name}': {error}") from error


def place_rows(block: Block, rows: np.ndarray, n: int) -> Block:
    """Return n rows with those of the block at the positions `rows`; the view is missing in all others."""
    where = np.full(n, block.shape[0])
    where[rows] = np.arange(block.shape[0])
    padded = stack("output", [block, missing_rows(block, 1)], [block.shape[0], 1])
    return take_rows(padded, where)
