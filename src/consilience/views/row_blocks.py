"""Samples that are read block by block: one concept for arrays, memory maps, files and functions that yield blocks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ._blocks import common_length, width
from ._construction import is_mapping, row_positions
from ._samples import in_order_of
from ._tables import is_list_of_views
from .container import Views
from .conversion import as_views, one_ahead, views_on_device
from .partitions import Partitions, cut_values, is_dask, partitions_of

__all__ = ["RowBlocks"]

BLOCK_VALUES = 4_000_000  # values of all views in a block of rows: 32 MB in double precision


class RowBlock(NamedTuple):
    """Samples that follow one another, with their targets and weights where they are known."""

    X: Views
    y: Any = None
    sample_weight: Any = None


@dataclass
class _Passes:
    """What earlier passes gave: the number of samples, and sums of the first sample of each block by position."""

    total: int | None = None
    sums: dict[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowBlocks:
    """Samples that are read block by block, in the same order at every pass.

    Estimators over features fit from it in memory that does not grow with the number of samples: `CoRegularizedRidge`,
    `CoRegularizedSVC`, `ViewMetricRidge` and its CV forms, `MultipleKernelRidge` and `OutputKernelRidge`, and their
    classifiers, with `n_components`. The result is that of the same samples in memory. All estimators predict from it.

    Parameters
    ----------
    source : callable
        Called without arguments, it returns a new iterator of blocks. A block is X, or a tuple (X, y) or
        (X, y, sample_weight), where X is what `as_views` reads. All blocks have the same columns, and all or none have
        targets and weights. A view that a block lacks is missing in its samples. Gram matrices are over all samples,
        so they cannot be views of blocks.
    n_samples : int, optional
        Number of samples, where it is known before they are read.
    name : str, default="the blocks"
        What messages call the source.
    partitions : Partitions, optional
        The blocks as tasks of Dask, which `RowBlocks.of` makes of Dask collections.

    Notes
    -----
    Every pass must give the same samples in the same order. A pass is refused if it has another number of samples, or
    if the first sample of a block differs from that of an earlier pass.

    Select samples by ``blocks[rows]``, rows in ascending order. So `cross_val_score` and `GridSearchCV` with the
    default score split blocks too: ``cross_val_score(model, blocks, cv=KFold(5))``. Targets are in the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import RowBlocks
    >>> def source():
    ...     for seed in range(3):
    ...         rng = np.random.default_rng(seed)
    ...         yield {"a": rng.normal(size=(5, 2)), "b": rng.normal(size=(5, 4))}, rng.normal(size=5)
    >>> [len(X) for X, y, weights in RowBlocks(source)]
    [5, 5, 5]
    """

    source: Callable[[], Iterator[Any]]
    n_samples: int | None = None
    name: str = "the blocks"
    partitions: Partitions | None = field(default=None, repr=False, compare=False)
    _before: _Passes = field(default_factory=_Passes, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.source):
            raise TypeError(
                f"RowBlocks takes a function that returns a new iterator of blocks, since fits read the samples more "
                f"than once; got {type(self.source).__name__}. Wrap it: RowBlocks(lambda: ...)."
            )

    @classmethod
    def of(
        cls, X: Any, y: Any = None, sample_weight: Any = None, *, size: int | None = None, views: Any = None
    ) -> "RowBlocks":
        """Return samples in memory, in a memory map or in Dask collections as blocks, without a copy of the whole.

        Parameters
        ----------
        X : Views, what `as_views` reads, or Dask collections
            Samples. A Dask array or data frame, or a dict or list of them, one for each view. Their partitions become
            the blocks.
        y : array-like, optional
            Targets; for Dask collections of samples, in memory or a Dask collection.
        sample_weight : array-like, optional
            Weights of the samples, as y.
        size : int, optional
            Samples in a block. By default, as many as have about 4 million values.
        views : dict, list or "prefix", optional
            How to divide one wide table into views; see `as_views`.

        Returns
        -------
        RowBlocks
            The blocks.
        """
        if is_dask(X):
            if size is not None:
                raise ValueError(f"The partitions of Dask collections are the blocks; got size={size!r}. Rechunk them.")
            return _of_partitions(partitions_of(X, y, sample_weight, views))
        if views is not None:
            X = as_views(X, views)
        tables = _tables_to_convert(X)
        X = as_views(X) if tables is None else X
        n = len(X) if tables is None else common_length(tables)
        if tables is None:
            _refuse_grams(X, "the samples")
        if size is not None and (isinstance(size, bool) or int(size) != size or size < 1):
            raise ValueError(f"`size` is the number of samples in a block, an integer of at least 1; got {size!r}.")
        columns = None if tables is None else sum(table.shape[1] for table in tables.values())
        rows_each = size or (block_size(X) if columns is None else max(BLOCK_VALUES // max(columns, 1), 256))
        y, sample_weight = (
            _in_rows(values, X, n, what) for values, what in ((y, "y"), (sample_weight, "sample_weight"))
        )

        def source() -> Iterator[RowBlock]:
            for start in range(0, n, rows_each):
                rows = slice(start, min(start + rows_each, n))
                block = X[rows] if tables is None else Views({name: own[rows] for name, own in tables.items()})
                yield RowBlock(block, cut_values(y, rows), cut_values(sample_weight, rows))

        return cls(source, n_samples=n, name="the samples")

    def counted(self) -> "RowBlocks":
        """Return the same blocks with the number of samples, which takes a pass where it is not known."""
        return self if self.n_samples is not None else replace(self, n_samples=self.shape[0])

    def __repr__(self) -> str:
        number = "samples" if self.n_samples is None else f"{self.n_samples:,} samples"
        return f"RowBlocks of {self.name}: {number}"

    def to_device(self, device: str) -> "RowBlocks":
        """Return the same samples, moved to a device of PyTorch block by block.

        The device holds two blocks at a time: the next one is copied, through pinned memory, while one is worked on.

        Parameters
        ----------
        device : str
            Name of a device, such as "cuda" or "cuda:1"; "cpu" makes tensors without a copy.

        Returns
        -------
        RowBlocks
            Blocks whose views are tensors on the device; targets and weights stay on the host.
        """
        if self.partitions is not None:
            raise ValueError("Partitions of Dask are worked on where their workers are. Leave `to_device` out.")

        def source() -> Iterator[RowBlock]:
            return one_ahead(RowBlock(views_on_device(X, device), y, weights) for X, y, weights in self)

        return RowBlocks(source, n_samples=self.n_samples, name=self.name)

    def __iter__(self) -> Iterator[RowBlock]:
        """Start a new pass over the samples."""
        total = 0
        form: _Form | None = None
        for number, given in enumerate(self.source()):
            block = self._read(number, given, total)
            if not len(block.X):
                continue
            own = _form_of(block)
            form = own if form is None else form.checked(own, f"Block {number} of {self.name}")
            self._check_same_sample(block.X, total)
            total += len(block.X)
            yield block
        self._check_total(total)

    def __len__(self) -> int:
        """Return the number of samples, where it is known; `list` asks for it, so that no pass may count them."""
        known = self.n_samples if self.n_samples is not None else self._before.total
        if known is None:
            raise TypeError(f"The number of samples of {self.name} is not known before a pass. Use shape[0].")
        return known

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"Samples in memory are needed here; got {self!r}. Give some of them, such as the first block.")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, counted by a pass if need be; and 1, for tools that expect columns."""
        if self.partitions is not None:
            return sum(self.partitions.known_lengths()), 1
        known = self.n_samples if self.n_samples is not None else self._before.total
        return sum(len(block.X) for block in self) if known is None else known, 1

    def __getitem__(self, key: Any) -> "RowBlocks":
        """Return some samples, by positions in ascending order; they are selected anew at every pass."""
        if isinstance(key, tuple) and len(key) == 2:  # scikit-learn's X[rows, ...]
            key = key[0]
        rows = row_positions(key, self.shape[0])
        if (np.diff(rows) <= 0).any():
            raise IndexError(
                f"Rows of {self.name} are read in order: select each once, in ascending order (np.sort(rows)). KFold "
                "does so; train_test_split does with shuffle=False."
            )
        if self.partitions is not None:
            return _of_partitions(self.partitions.take(rows))

        def source() -> Iterator[RowBlock]:
            start = 0
            for X, y, sample_weight in self:
                here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(X))] - start
                start += len(X)
                if len(here):
                    yield RowBlock(X[here], cut_values(y, here), cut_values(sample_weight, here))

        return RowBlocks(source, n_samples=len(rows), name=self.name)

    def _read(self, number: int, given: Any, total: int) -> RowBlock:
        """Return a block of the source, validated; messages say where it is."""
        where = f"Block {number} of {self.name}"
        parts = given if isinstance(given, tuple) else (given,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"{where} has {len(parts)} parts. Give X, (X, y) or (X, y, sample_weight).")
        if isinstance(parts[0], list) and any(getattr(own, "ndim", 2) == 1 for own in parts[0]):
            # such as the lists [X, y] of torch's DataLoader, whose targets would become a view
            raise ValueError(
                f"{where} is a list with an array of one dimension. Give targets in a tuple, (X, y), and views in a "
                "dict by name."
            )
        try:
            X = as_views(parts[0])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, whose first sample is number {total}: {error}") from error
        _refuse_grams(X, where)
        for what, values in zip(("y", "sample_weight"), parts[1:], strict=False):
            if values is not None and len(values) != len(X):
                raise ValueError(
                    f"{where} has {len(X)} samples and {len(values)} values of `{what}`. Give one for each sample."
                )
        y, weights = (*parts[1:], None, None)[:2]
        with naming_block(where):
            return RowBlock(X, in_order_of(X, y, "y"), in_order_of(X, weights, "sample_weight"))

    def _check_same_sample(self, X: Views, position: int) -> None:
        """Refuse a block whose first sample was another one at an earlier pass, as random sources give."""
        now = _sum_of_first(X)
        before = self._before.sums.setdefault(position, now)
        if abs(now[0] - before[0]) > 1e-5 * (now[1] + before[1]):
            raise ValueError(
                f"Sample {position} of {self.name} is not the one that it was at an earlier pass. The source must give "
                "the same samples in the same order each time that it is called; give random numbers a fixed seed."
            )

    def _check_total(self, total: int) -> None:
        """Refuse a source that does not give the same samples at every pass."""
        name = f"{self.name[0].upper()}{self.name[1:]}"
        expected = self.n_samples if self.n_samples is not None else self._before.total
        if expected is not None and total != expected:
            remedy = " A generator is used up after one pass: give the function that makes it." if not total else ""
            raise ValueError(
                f"{name} had {total} samples at this pass, not {expected}. The source must give the same samples in "
                f"the same order each time that it is called.{remedy}"
            )
        if not total:
            raise ValueError(f"{name} gave no samples. Give at least one.")
        self._before.total = total


@contextmanager
def naming_block(where: str) -> Iterator[None]:
    """Let errors say in which block they are, since rows in their messages are those of the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _of_partitions(parts: Partitions) -> RowBlocks:
    """Return the blocks of Dask collections; one partition after the other is loaded where rows themselves are read."""

    n = None if parts.lengths is None else sum(parts.lengths)
    return RowBlocks(parts.load, n_samples=n, name="the samples", partitions=parts)


# -- what all blocks share
class _Form(NamedTuple):
    """Views and columns of blocks, and which of targets and weights they have."""

    views: dict[str, tuple[str, int, bool]]  # kind, number of columns, and whether these have names
    y: int | None  # number of outputs; 0 for a vector
    sample_weight: bool

    def checked(self, other: "_Form", where: str) -> "_Form":
        """Return what is known after another block; refuse one that differs.

        Columns with names are matched by their names later, where the fitted columns are known.
        """
        for view in other.views.keys() & self.views.keys():
            own, before = other.views[view], self.views[view]
            if own[0] != before[0] or (own[1] != before[1] and not (own[2] and before[2])):
                shown = [f"{kind}, with {columns} columns" for kind, columns, _ in (own, before)]
                raise ValueError(
                    f"{where}: view '{view}' is {shown[0]}; in blocks before it is {shown[1]}. Give the same columns, "
                    "in one form, in all blocks."
                )
        if (other.y, other.sample_weight) != (self.y, self.sample_weight):
            raise ValueError(
                f"{where} has {_targets_text(other)}; blocks before have {_targets_text(self)}. Give all blocks the "
                "same parts."
            )
        return self._replace(views={**self.views, **other.views})


def _form_of(block: RowBlock) -> _Form:
    X = block.X
    views = {
        name: (X.kind(name), width(X.block(name)), name in X.feature_names)
        for name in X.names
        if X.kind(name) != "missing"
    }
    shape = None if block.y is None else np.shape(block.y)
    return _Form(views, None if shape is None else shape[1] if len(shape) > 1 else 0, block.sample_weight is not None)


def _targets_text(form: _Form) -> str:
    y = "no y" if form.y is None else "y" if not form.y else f"y of {form.y} columns"
    return f"{y} and {'' if form.sample_weight else 'no '}sample_weight"


def _refuse_grams(X: Views, where: str) -> None:
    gram = next((name for name in X.names if X.kind(name) == "gram"), None)
    if gram is not None:
        raise ValueError(
            f"View '{gram}' of {where[0].lower()}{where[1:]} is a Gram matrix over all samples, which cannot be read "
            "by blocks. Give the data that it was computed from, or fit all samples in memory."
        )


def _sum_of_first(X: Views) -> tuple[float, float]:
    """Return the sum over the columns of the first sample, and that of the absolute values; strings by their bytes."""
    total = size = 0.0
    for name in X.names:
        block, kind = X.block(name), X.kind(name)
        if kind in ("dense", "sparse"):
            first = block[:1, :]
            row = np.nan_to_num(to_numpy(first.data if sp.issparse(first) else first).astype(np.float64))
            total, size = total + float(row.sum()), size + float(np.abs(row).sum())
        elif kind == "objects" and isinstance(block[0], str):
            code = crc32(block[0].encode()) / 2**32
            total, size = total + code, size + code
    return total, size


# -- cutting
def _tables_to_convert(X: Any) -> dict[str, np.ndarray] | None:
    """Return tables of integers and other types that become floating point, which happens block by block; else None."""
    if isinstance(X, np.ndarray):
        tables: dict[str, Any] = {"view0": X}
    elif is_mapping(X):
        tables = dict(X)
    elif is_list_of_views(X):
        tables = {f"view{v}": own for v, own in enumerate(X)}
    else:
        return None
    plain = all(
        isinstance(own, np.ndarray)
        and not isinstance(own, np.ma.MaskedArray)
        and own.ndim == 2
        and own.dtype.kind in "biuf"
        for own in tables.values()
    )
    converted = plain and any(own.dtype not in (np.float32, np.float64) for own in tables.values())
    return tables if converted else None


def _in_rows(values: Any, samples: Any, n: int, what: str) -> Any:
    """Return targets or weights in the order of the samples, in a form that can be cut."""
    if values is None:
        return None
    values = in_order_of(samples, values, what)
    if hasattr(values, "to_pylist"):  # Arrow
        values = values.to_pylist()
    if not hasattr(values, "shape"):
        values = list(values)
        mixed = len({type(value) for value in values}) > 1  # NumPy would make one type of them
        values = np.array(values, dtype=object if mixed else None)
    if len(values) != n:
        raise ValueError(f"`{what}` has {len(values)} values for {n} samples. Give one for each sample.")
    return values


def block_size(X: Views) -> int:
    """Return the number of samples of a block, so that its views have at most `BLOCK_VALUES` values."""
    return max(BLOCK_VALUES // max(sum(_columns(X, name) for name in X.names), 1), 256)


# -- samples of the rows, the same however the rows are cut
SAMPLE = 20_000  # rows from which kernels' parameters and landmarks are found


def random_keys(positions: np.ndarray, seed: int) -> np.ndarray:
    """Return a random number for each position of a row: the rows with the smallest ones are a uniform sample.

    The finalizer of the generator SplitMix64, a bijection of 64 bits, so that no two rows of a source are equal.
    """
    with np.errstate(over="ignore"):
        z = (np.asarray(positions, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z ^= np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def sample_rows(positions: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return which of some rows, given by their positions in the source, are a uniform sample of this size."""
    if len(positions) <= size:
        return np.arange(len(positions))
    return np.sort(np.argpartition(random_keys(positions, seed), size)[:size])


def sample_size(X: Views, n_components: int = 0) -> int:
    """Return the number of rows of a sample: fewer of wide views, at least as many as there are landmarks."""
    columns = max((_columns(X, name) for name in X.names), default=1)
    return max(min(SAMPLE, (1 << 26) // columns), 1000, n_components)


def _columns(X: Views, name: str) -> int:
    shape: tuple[int, ...] = getattr(X.block(name), "shape", ())
    return max(int(shape[1]), 1) if len(shape) > 1 else 1


class RowSample:
    """A uniform sample of rows that arrive block by block.

    With `share` below 1 only rows whose random number is among the smallest `share` of all are kept. Then the parts of
    a sample that workers find are small. `complete` tells whether the sample is what it would be with all rows.
    """

    def __init__(self, size: int, seed: int, share: float = 1.0):
        self.size, self.seed, self.share, self.offered = size, seed, share, 0
        self.parts: list[Views] = []
        self.positions = np.zeros(0, dtype=np.int64)

    def add(self, X: Views, positions: np.ndarray) -> None:
        """Offer rows, with their positions in the source."""
        self.offered += len(positions)
        if self.share < 1:
            near = np.flatnonzero(random_keys(positions, self.seed) < np.uint64(self.share * 2.0**63) * np.uint64(2))
            X, positions = X[near] if len(near) else X, positions[near]
        kept = sample_rows(positions, self.size, self.seed)
        if len(kept):
            self.parts.append(X if len(kept) == len(X) else X[kept])
            self.positions = np.concatenate([self.positions, positions[kept]])
        if len(self.positions) > 2 * self.size:
            self._drop()

    def _drop(self) -> None:
        kept = sample_rows(self.positions, self.size, self.seed)
        X = Views.concat(self.parts)
        self.parts, self.positions = [X if len(kept) == len(X) else X[kept]], self.positions[kept]

    def __add__(self, other: "RowSample") -> "RowSample":
        """Return the sample of the rows of both; those of the other come later in the source."""
        both = RowSample(max(self.size, other.size), self.seed, min(self.share, other.share))
        both.offered = self.offered + other.offered
        both.parts = [*self.parts, *other.parts]
        both.positions = np.concatenate([self.positions, other.positions])
        if len(both.positions) > both.size:
            both._drop()
        return both

    @property
    def complete(self) -> bool:
        """Whether no row is missing that a sample of all rows would have."""
        return len(self.positions) >= min(self.size, self.offered)

    def rows(self) -> tuple[Views, np.ndarray]:
        """Return the rows of the sample and their positions, in the order of the source."""
        self._drop()
        return self.parts[0], self.positions
