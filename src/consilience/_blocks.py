"""One view's data: how it is read, and what can be done with it whatever its kind.

A block is a 2-D array (NumPy, PyTorch, CuPy), a CSR matrix, a 1-D array of objects, a `Gram`, or None where the view is
absent in every sample.
"""

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._backend import is_device_array, like, namespace, take_rows, to_numpy


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
    >>> from consilience.views import Gram
    >>> K = Gram(np.arange(9.0).reshape(3, 3))
    >>> K[[2, 0]].block(K[[1]])
    array([[7.],
           [1.]])
    """

    def __init__(self, values: np.ndarray | None, index: np.ndarray | None = None, n_columns: int | None = None):
        if index is None:
            if values is None:
                raise ValueError("A Gram needs its values or its index.")
            index = np.arange(values.shape[0])
        self.values = values
        self.index = index
        self.n_columns = values.shape[1] if values is not None else n_columns

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples): the samples against themselves."""
        return (len(self.index), len(self.index))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> "Gram":
        return Gram(self.values, self.index[rows], self.n_columns)

    def positions(self) -> "Gram":
        """Return the positions without the matrix: all that a fitted learner needs to keep."""
        return Gram(None, self.index, self.n_columns)

    def block(self, other: "Gram") -> np.ndarray:
        """Return the kernel between the samples of `self` (rows) and those of `other` (columns)."""
        if self.values is not None and self.n_columns == other.n_columns:
            return np.asarray(self.values[np.ix_(self.index, other.index)])
        if self.values is None or self.n_columns != len(other):  # else a block against just these samples
            raise ValueError(
                f"A precomputed view of {self.n_columns} columns meets one over {other.n_columns} samples. Give the "
                "kernel between the new samples and the same samples as at fit, in the same order."
            )
        return np.asarray(self.values[self.index])

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each sample with itself."""
        if self.values is None or self.values.shape[0] != self.values.shape[1]:
            raise ValueError("The diagonal of a precomputed view is known only where the whole square Gram is given.")
        return np.asarray(self.values[self.index, self.index])


Block = Any  # one view's data: 2-D array (NumPy, PyTorch, CuPy), CSR matrix, 1-D object array, Gram, or None


# -- reading
def read(name: str, value: Any) -> tuple[Block, tuple[str, ...] | None, Any]:
    """One view's data as stored, its column names if it has any, and which rows are present."""
    if value is None:
        return None, None, False
    if isinstance(value, Gram):
        return value, None, True
    columns = None
    if is_frame(value):
        value, columns = read_frame(name, value)
    block = read_block(name, value)
    if isinstance(block, np.ndarray) and block.dtype == object:
        return block, columns, np.array([x is not None for x in block], dtype=bool)
    if sp.issparse(block):
        return block, columns, True
    absent = to_numpy(all_nan(block))
    return block, columns, ~absent


def read_block(name: str, value: Any) -> Block:
    if sp.issparse(value):
        return floating(name, value.tocsr())
    if is_device_array(value):
        if value.ndim != 2:
            raise ValueError(
                f"View '{name}' must have 2 dimensions, samples by columns; got shape {tuple(value.shape)}."
            )
        xp = namespace(value)
        return value if xp.isdtype(value.dtype, "real floating") else xp.astype(value, xp.float64)
    if isinstance(value, (str, bytes)):
        raise TypeError(f"View '{name}' is one string; a view is a sequence with one entry per sample.")
    if not isinstance(value, np.ndarray):
        value = value.to_numpy() if hasattr(value, "to_numpy") else from_sequence(name, value)
    if value.ndim == 1 and value.dtype.kind not in "biuf":
        return objects_or_numbers(value)
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2:
        raise ValueError(f"View '{name}' must have 2 dimensions, samples by columns; got shape {value.shape}.")
    if value.shape[1] == 0:
        raise ValueError(
            f"View '{name}' has 0 feature(s) (shape={value.shape}) while a minimum of 1 is required. Leave it out."
        )
    return floating(name, np.asarray(value))


def from_sequence(name: str, value: Any) -> np.ndarray:
    """A list, tuple or other iterable: rows of numbers (None: absent), or one object per sample."""
    if hasattr(value, "__array__"):
        return np.asarray(value)
    try:
        items = list(value)
    except TypeError as error:
        raise TypeError(
            f"View '{name}' must be an array, a sparse matrix, a data frame or a sequence with one entry per sample; "
            f"got {type(value).__name__}."
        ) from error
    first = next((x for x in items if not is_missing(x)), None)
    if (
        isinstance(first, (list, tuple, np.ndarray))
        and len(first)
        and isinstance(first[0], (numbers.Number, np.generic))
    ):
        blank = [np.nan] * len(first)
        try:
            return np.asarray([blank if is_missing(x) else x for x in items])
        except ValueError as error:
            raise ValueError(
                f"The rows of view '{name}' have different lengths; samples need the same columns."
            ) from error
    if isinstance(first, (list, tuple)) and len(first) and isinstance(first[0], (list, np.ndarray)):
        return np.asarray(items)
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects


def objects_or_numbers(value: np.ndarray) -> np.ndarray:
    items = [None if is_missing(x) else str(x) if isinstance(x, np.str_) else x for x in value]
    if any(x is not None for x in items) and all(x is None or isinstance(x, numbers.Real) for x in items):
        return np.array([np.nan if x is None else float(x) for x in items])[:, None]
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects


def floating(name: str, value: Any) -> Any:
    """float32 and float64 as they are; float16 becomes float32; other numbers float64."""
    if value.dtype in (np.float32, np.float64):
        return value
    if value.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: view '{name}' has dtype {value.dtype}. Give real columns.")
    try:
        return value.astype(np.float32 if value.dtype == np.float16 else np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"View '{name}' cannot be read as numbers: {error}. Encode its columns first, or give strings as a "
            "sequence with one entry per sample."
        ) from error


def is_missing(x: Any) -> bool:
    """None, NaN and pandas.NA; nothing is imported to tell."""
    if x is None:
        return True
    if isinstance(x, (float, np.floating)):
        return bool(np.isnan(x))
    return type(x).__name__ == "NAType" and type(x).__module__.startswith("pandas")


def all_nan(block: Any) -> Any:
    xp = namespace(block)
    if block.shape[0] and not bool(xp.any(xp.isnan(block[:, 0]))):  # an absent row has NaN in its first column too
        return np.zeros(block.shape[0], dtype=bool)
    return xp.all(xp.isnan(block), axis=1)


def is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and not hasattr(value, "__array_namespace__")


def as_frame(value: Any) -> Any:
    try:
        import narwhals
    except ImportError as error:
        raise ImportError(
            "Reading data frames needs the package narwhals: pip install 'consilience[frames]'."
        ) from error
    return narwhals.from_native(value, eager_only=True)


def read_frame(name: str, value: Any) -> tuple[Any, tuple[str, ...]]:
    frame = as_frame(value)
    import narwhals as nw

    columns = tuple(str(c) for c in frame.columns)
    series = list(frame.iter_columns())
    other = [s for s in series if not (s.dtype.is_numeric() or s.dtype == nw.Boolean)]
    if len(frame.columns) == 1 and other:
        return objects_or_numbers(np.array([*other[0].to_list(), None], dtype=object)[:-1]), columns
    if other:
        raise ValueError(
            f"View '{name}' mixes numbers with the columns {quoted(s.name for s in other)}, which are not numbers. "
            "Give such columns views of their own, or encode them first."
        )
    single = all(s.dtype == nw.Float32 for s in series)
    parts = [s.cast(nw.Float32 if single else nw.Float64).to_numpy() for s in series]
    table = np.column_stack(parts) if parts else np.empty((len(frame), 0))
    return table.astype(np.float32 if single else np.float64, copy=False), columns


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


def shape_text(block: Block) -> str:
    return " x ".join(str(s) for s in block.shape) if len(block.shape) == 2 else f"{block.shape[0]} objects"


def common_length(blocks: Mapping[str, Block]) -> int:
    lengths = {name: block.shape[0] for name, block in blocks.items() if block is not None}
    if not lengths:
        raise ValueError(f"No view has data: {quoted(blocks)} is None. Give at least one view.")
    counts = list(lengths.values())
    usual = max(dict.fromkeys(counts), key=counts.count)
    for name, n in lengths.items():
        if n != usual:
            raise ValueError(
                f"View '{name}' has {n} rows, the others {usual}. Pad it and mark absent rows with `mask=`."
            )
    return int(usual)


def take(block: Block, rows: np.ndarray) -> Block:
    return None if block is None else take_rows(block, rows)


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
        return Gram(given[0].values, np.concatenate([block.index for block in given]), given[0].n_columns)
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


def check_finite(name: str, block: Block, present: np.ndarray) -> None:
    if block is None or isinstance(block, Gram) or kind(block) == "objects":
        return
    if sp.issparse(block):
        finite = np.isfinite(block.data)
        if finite.all():
            return
        place = np.flatnonzero(~finite)[0]
        row, column = np.searchsorted(block.indptr, place, side="right") - 1, block.indices[place]
        value = block.data[place]
    else:
        xp = namespace(block)
        if bool(xp.isfinite(xp.sum(block))):  # one pass without a temporary; a sum that overflows is looked at closely
            return
        array = to_numpy(block)
        bad = ~np.isfinite(array) & present[:, None]
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0]
        value = array[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"View '{name}' contains {what} in row {row}, column {column} (a row of NaN only would mean that the view is "
        "absent). Fill single values first, for example with PerView(SimpleImputer()); NaN and inf are refused."
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
def naming(name: str) -> Iterator[None]:
    """Put the view's name in front of what is said about its data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"View '{name}': {error}") from error


def spread(block: Block, rows: np.ndarray, n: int) -> Block:
    """Rows at their positions among n samples; the others absent."""
    where = np.full(n, block.shape[0])
    where[rows] = np.arange(block.shape[0])
    padded = stack("output", [block, absent_rows(block, 1)], [block.shape[0], 1])
    return take_rows(padded, where)
