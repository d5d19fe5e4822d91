"""Samples in Dask collections: one block of rows per partition, and work that is done where the partitions are.

Dask is imported only where a collection of it was given.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._construction import is_collection, is_mapping
from ._samples import in_order_of
from .container import Views
from .conversion import as_views

PartBlock = tuple[Views, Any, Any]  # samples, targets and weights of a partition


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask collection, or a dict or list with one."""
    if is_mapping(X):
        return any(is_dask(own) for own in X.values())
    if isinstance(X, (list, tuple)):
        return any(map(is_collection, X))
    return is_collection(X)


@dataclass
class Partitions:
    """Partitions of samples, each a task that returns (X, y, sample_weight), or None where it has no rows.

    Parameters
    ----------
    tasks : list of dask.delayed.Delayed
        The partitions, in the order of the rows.
    lengths : list of int, optional
        Number of rows of each, where they are known.
    """

    tasks: list[Any]
    lengths: list[int] | None = None

    def known_lengths(self) -> list[int]:
        """Return the number of rows of each partition; those of data frames take a pass over them."""
        if self.lengths is None:
            self.lengths = self.map(_length, None)
        return self.lengths

    def starts(self) -> list[int]:
        """Return the position of the first row of each partition."""
        lengths = self.known_lengths()
        return (np.cumsum(lengths) - lengths).astype(int).tolist()

    def load(self) -> Iterator[PartBlock]:
        """Bring the partitions to this process, one after the other."""
        for task in self.tasks:
            block = task.compute()
            if block is not None:
                yield block

    def map(self, work: Callable[..., Any], shared: Any, *each: Sequence[Any]) -> list[Any]:
        """Return ``work(shared, partition, ...)`` of all partitions, with one of the further values for each."""
        import dask

        return list(dask.compute(*self._tasks(work, shared, each)))

    def reduce(self, work: Callable[..., Any], shared: Any, *each: Sequence[Any]) -> Any:
        """Return the sum of ``work(shared, partition, ...)`` over all partitions.

        Neighbors are added in pairs, then the pairs, and so on: the order of additions depends on the number of
        partitions alone. So the result does not depend on the workers, on their number, or on tasks that run again.
        """
        import dask

        level = self._tasks(work, shared, each)
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [dask.delayed(_add)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        with warnings.catch_warnings():
            # The advice is to scatter large constants. A scattered value is lost with its worker; one in the graph is
            # sent again.
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return dask.compute(level[0])[0]

    def _tasks(self, work: Callable[..., Any], shared: Any, each: Sequence[Sequence[Any]]) -> list[Any]:
        import dask

        shared = dask.delayed(shared, traverse=False) if shared is not None else None  # sent once, not with each task
        run = dask.delayed(work, traverse=False)
        return [run(shared, task, *own) for task, *own in zip(self.tasks, *each, strict=True)]

    def take(self, rows: np.ndarray) -> "Partitions":
        """Return some rows, given by their positions in ascending order."""
        import dask

        bounds = [*self.starts(), sum(self.known_lengths())]
        cuts = np.searchsorted(rows, bounds)
        tasks, lengths = [], []
        for task, start, first, last in zip(self.tasks, bounds, cuts[:-1], cuts[1:], strict=False):
            if last > first:
                tasks.append(dask.delayed(_take_rows, traverse=False)(task, rows[first:last] - start))
                lengths.append(int(last - first))
        return Partitions(tasks, lengths)


# -- tasks: pure functions, so that one which runs twice gives the same
def _length(shared: Any, block: PartBlock | None) -> int:
    return 0 if block is None else len(block[0])


def _add(one: Any, other: Any) -> Any:
    """Return the sum; None stands for a partition without rows."""
    return other if one is None else one if other is None else one + other


def _take_rows(block: PartBlock, rows: np.ndarray) -> PartBlock:
    X, *others = block
    return (X[rows], *(cut_values(own, rows) for own in others))


def cut_values(values: Any, rows: Any) -> Any:
    """Return the targets or weights of some rows, given by a slice or by positions; None where there are none."""
    if values is None:
        return None
    if hasattr(values, "iloc"):  # pandas: positions, not labels
        return values.iloc[rows]
    return [values[row] for row in rows] if isinstance(values, list) and not isinstance(rows, slice) else values[rows]


def read_partition(X: Any, y: Any, sample_weight: Any, views: Any, number: int) -> PartBlock | None:
    """Return the samples of a partition as Views, with targets and weights in their order; None without rows."""
    first = next(iter(X.values())) if is_mapping(X) else X
    if not first.shape[0]:
        return None
    try:
        X = as_views(X, views)
        values = [in_order_of(X, own, what) for own, what in ((y, "y"), (sample_weight, "sample_weight"))]
    except (TypeError, ValueError) as error:
        raise type(error)(f"Partition {number} of the samples: {error}") from error
    for own, what in zip(values, ("y", "sample_weight"), strict=True):
        if own is not None and len(own) != len(X):
            raise ValueError(
                f"Partition {number} of the samples has {len(X)} rows and {len(own)} values of `{what}`. Give both the "
                "same partitions: rechunk, or repartition."
            )
    # The index of a partition need not be unique among all, and nothing after this needs it.
    X = Views._of({name: X.block(name) for name in X.names}, len(X), X.mask, X.feature_names, None, X.categories)
    return X, *values


# -- collections to partitions
def partitions_of(X: Any, y: Any = None, sample_weight: Any = None, views: Any = None) -> Partitions:
    """Return the partitions of Dask collections; `views` divides one wide table, as in `as_views`."""
    import dask

    several = is_mapping(X) or isinstance(X, (list, tuple))
    if several and views is not None:
        raise ValueError("`views` divides one wide table, but X already has several views. Omit `views`.")
    given = {f"view{v}": own for v, own in enumerate(X)} if isinstance(X, (list, tuple)) else X
    tables: dict[str, Any] = dict(given) if several else {"X": X}
    lengths = _common_lengths(tables)
    pieces = {name: _pieces(f"View '{name}'" if several else "X", own, lengths) for name, own in tables.items()}
    count = _common_count(pieces)
    whole = [dict(zip(pieces, own, strict=True)) if several else own[0] for own in zip(*pieces.values(), strict=True)]
    if lengths is None and any(own is not None and not is_dask(own) for own in (y, sample_weight)):
        lengths = list(dask.compute(*[dask.delayed(len)(own) for own in next(iter(pieces.values()))]))
    others = []
    for what, own in (("y", y), ("sample_weight", sample_weight)):
        own = [None] * count if own is None else _pieces(f"`{what}`", own, lengths)
        others.append(own)
        _common_count({"X": whole, what: own})
    read = dask.delayed(read_partition)
    tasks = [read(*own, views, number) for number, own in enumerate(zip(whole, *others, strict=True))]
    return Partitions(tasks, lengths)


def _is_array(value: Any) -> bool:
    return is_collection(value) and hasattr(value, "chunks")


def _common_lengths(tables: dict[str, Any]) -> list[int] | None:
    """Return the rows of the chunks of the first array whose chunks are known; None where there is none."""
    for own in tables.values():
        if _is_array(own) and not any(math.isnan(size) for size in own.chunks[0]):
            return [int(size) for size in own.chunks[0]]
    return None


def _pieces(what: str, value: Any, lengths: list[int] | None) -> list[Any]:
    """Return the partitions of one collection as tasks, or those of values in memory, cut to the same rows."""
    if _is_array(value):
        return _array_pieces(what, value, lengths)
    if is_collection(value) and hasattr(value, "divisions"):
        pieces = list(value.to_delayed())
        # Dask joins partitions of few columns, such as y alone; X and y must keep the same ones
        return pieces if len(pieces) == value.npartitions else list(value.to_delayed(optimize_graph=False))
    if is_collection(value):
        raise TypeError(f"{what} is {type(value).__name__}. Give Dask arrays, data frames or series.")
    if lengths is None:
        raise ValueError(
            f"{what} is in memory, and the partitions of the others have unknown lengths. Give it as a Dask "
            "collection, or call compute_chunk_sizes() on the arrays."
        )
    value = value if hasattr(value, "shape") else np.array(list(value))
    if value.shape[0] != sum(lengths):
        raise ValueError(
            f"{what} has {value.shape[0]} rows; the partitions have {sum(lengths)}. Give one for each row."
        )
    ends = np.cumsum(lengths)
    return [cut_values(value, slice(int(end - size), int(end))) for size, end in zip(lengths, ends, strict=True)]


def _array_pieces(what: str, value: Any, lengths: list[int] | None) -> list[Any]:
    if value.ndim not in (1, 2):
        raise ValueError(f"{what} is an array of {value.ndim} dimensions. Give one row for each sample.")
    if value.ndim == 2 and len(value.chunks[1]) > 1:
        value = value.rechunk({1: -1})
    unknown = any(math.isnan(size) for size in value.chunks[0])
    if lengths is not None and not unknown and list(value.chunks[0]) != lengths:
        if sum(value.chunks[0]) != sum(lengths):
            raise ValueError(f"{what} has {sum(value.chunks[0])} rows; the others have {sum(lengths)}.")
        warnings.warn(
            f"{what} has other chunks of rows than the first view, and is rechunked, which moves rows between workers. "
            "Rechunk it once, before it is persisted, to avoid that.",
            stacklevel=5,
        )
        value = value.rechunk({0: tuple(lengths)})
    return list(value.to_delayed(optimize_graph=False).ravel())


def _common_count(pieces: dict[str, list[Any]]) -> int:
    counts = {name: len(own) for name, own in pieces.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ValueError(f"The collections have different numbers of partitions: {shown}. Rechunk or repartition them.")
    return next(iter(counts.values()))


# -- predictions
def lazy_outputs(
    parts: Partitions, estimator: Any, method: str, tail: tuple[int, ...], dtype: Any, **options: Any
) -> Any:
    """Return a Dask array of what a method of the estimator returns, one chunk per partition; nothing is computed.

    Chunks have as many rows as the partitions. Rows of partitions of unknown length are unknown (NaN). The method gets
    the options.
    """
    import dask
    import dask.array as da

    model = dask.delayed(estimator, traverse=False)
    call = dask.delayed(_call, traverse=False)
    sizes: Sequence[float] = [math.nan] * len(parts.tasks) if parts.lengths is None else parts.lengths
    chunks = [
        da.from_delayed(call(model, task, method, tail, np.dtype(dtype), options), (size, *tail), dtype=dtype)
        for task, size in zip(parts.tasks, sizes, strict=True)
    ]
    return da.concatenate(chunks, axis=0, allow_unknown_chunksizes=True)


def _call(
    estimator: Any, block: PartBlock | None, method: str, tail: tuple[int, ...], dtype: Any, options: dict[str, Any]
) -> np.ndarray:
    if block is None:
        return np.empty((0, *tail), dtype=dtype)
    return np.asarray(getattr(estimator, method)(block[0], **options))
