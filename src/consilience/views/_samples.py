"""Names of samples: where they come from, and how views and targets are brought into one order by them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._backend import is_device_array, to_numpy
from . import _blocks
from ._annotated import NamedMatrix, kind_of, matrices
from ._blocks import Block, some
from ._frames import as_frame, is_frame
from ._reading import is_missing


# -- names of one object
def index_names(value: Any) -> np.ndarray | None:
    """Return the index of a pandas object as names; None for other objects. Tuples name the rows of a MultiIndex."""
    index: Any = getattr(value, "index", None)
    if not hasattr(index, "get_indexer"):  # the method `index` of a list, or a polars frame
        return None
    kind = getattr(index.dtype, "kind", "O")
    return as_names(index.to_numpy() if kind in "iu" else index.to_numpy(dtype=object))  # dates stay dates


def as_names(names: Any) -> np.ndarray:
    """Return names of samples as a 1-D array: numbers, or objects such as strings."""
    values = np.asarray(names) if not isinstance(names, (list, tuple)) else _objects(names)
    if values.ndim != 1:
        raise ValueError(f"`sample_names` must be one name per sample; got an array of shape {values.shape}.")
    return values if values.dtype.kind in "iu" else values.astype(object)


def _objects(items: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    integers = np.asarray(items) if all(isinstance(item, (int, np.integer)) for item in items) else array
    return integers if integers.dtype.kind in "iu" else array  # int64 and uint64 together would be rounded


def is_default(names: np.ndarray) -> bool:
    """Tell whether names are those of pandas where none were given: 0, 1, 2, ..."""
    return names.dtype.kind in "iu" and np.array_equal(names, np.arange(len(names)))


def sample_text(rows: Sequence[int] | np.ndarray, names: np.ndarray | None, most: int = 5) -> str:
    """Return samples for messages: their names where they have some, else their positions."""
    shown = [str(row) if names is None else f"'{names[row]}'" for row in rows[:most]]
    return ", ".join(shown) + (f" and {len(rows) - most} more" if len(rows) > most else "")


def take_names(view: str, value: Any, id_column: Any) -> tuple[Any, np.ndarray | None]:
    """Return one view's data without its names of samples, and these names: an index, or the column `id_column`."""
    if kind_of(value) == "AnnData":
        value = matrices(value)["X"]
    if isinstance(value, NamedMatrix):
        return value, None if value.names is None else as_names(value.names)
    if not isinstance(id_column, str) or not is_frame(value):
        return value, index_names(value)
    frame = as_frame(value)
    if id_column not in frame.columns:
        raise ValueError(
            f"View '{view}' has no column '{id_column}' with the names of its samples; its columns are "
            f"{some(list(map(str, frame.columns)))}."
        )
    names = as_names(frame[id_column].to_list())
    lost = [row for row, name in enumerate(names) if is_missing(name)]
    if lost:
        raise ValueError(f"View '{view}' has no sample name in row {lost[0]} of column '{id_column}'.")
    return frame.drop(id_column).to_native(), names


def positions_of(names: np.ndarray, own: np.ndarray, what: str = "The right side") -> np.ndarray:
    """Return where samples stand among others of the same names."""
    if np.array_equal(names, own):
        return np.arange(len(own))
    every, there = set(names.tolist()), set(own.tolist())
    if every != there:
        raise ValueError(f"{what} has other samples than the left side{_difference(there, every, 'right', 'left')}.")
    check_unique_names(own, what)
    place = {name: k for k, name in enumerate(own.tolist())}
    return np.array([place[name] for name in names.tolist()])


# -- one order for several views
def pair_views(
    blocks: Mapping[str, Block],
    present: Mapping[str, Any],
    own: Mapping[str, np.ndarray | None],
    given: np.ndarray | None,
    join: str | None,
) -> tuple[dict[str, Block], dict[str, Any], np.ndarray | None]:
    """Return all blocks in one order of the samples, which rows are present, and the names of the samples.

    `own` has the names that come with each view. Views without names are taken by position, which works only if the
    others agree on their order. The default index of pandas is a name where other views have numbers as names.
    """
    known = {view: names for view, names in own.items() if names is not None}
    if given is not None:  # an index of 0, 1, 2, ... says nothing where names are given
        known = {view: names for view, names in known.items() if not is_default(names)}
    named = {view: names for view, names in known.items() if not is_default(names)}
    if not named:  # all in the order given
        return dict(blocks), dict(present), given
    for view in known:
        if view not in named and next(iter(named.values())).dtype == object:
            other = next(iter(named))
            raise ValueError(
                f"View '{view}' has no sample names (its index is 0, 1, 2, ...), but view '{other}' has "
                f"{sample_text(range(len(named[other])), named[other], 3)}. Set the same index for both, or give "
                "arrays (frame.to_numpy()) if both are in the same order."
            )
    reference, first = (given, "sample_names") if given is not None else next((n, v) for v, n in known.items())
    if all(np.array_equal(names, reference) for names in known.values()):
        return dict(blocks), dict(present), reference
    unnamed = [view for view in blocks if view not in known and blocks[view] is not None]
    if unnamed and given is None:
        raise ValueError(
            f"View '{unnamed[0]}' has no sample names, while other views have theirs in different orders, so rows "
            f"cannot be matched. Give '{unnamed[0]}' as a data frame with the same index."
        )
    for view, names in known.items():
        check_unique_names(names, f"View '{view}'")
    order = _joined_names(known, reference, first, join)
    place = {name: k for k, name in enumerate(order.tolist())}
    paired, there = {}, {}
    for view, names in known.items():
        rows = np.array([place.get(name, -1) for name in names.tolist()], dtype=int)
        kept = rows >= 0
        block = _blocks.take(blocks[view], np.flatnonzero(kept))
        paired[view] = _blocks.place_rows(block, rows[kept], len(order))
        there[view] = np.zeros(len(order), dtype=bool)
        there[view][rows[kept]] = np.broadcast_to(present[view], len(names))[kept]
    return {**blocks, **paired}, {**present, **there}, order


def _joined_names(known: Mapping[str, np.ndarray], reference: np.ndarray, first: str, join: str | None) -> np.ndarray:
    """Return the names of the samples that stay, in the order of the reference; refuse other samples without `join`."""
    every = set(reference.tolist())
    for view, names in known.items():
        own = set(names.tolist())
        if own == every or join is not None:
            continue
        raise ValueError(
            f"View '{view}' and {_view(first)} have different samples{_difference(own, every, view, first)}. Use "
            "join='outer' to keep all samples, with missing views, or join='inner' to keep those that all views have."
        )
    if join is None:
        return reference
    sets = [set(names.tolist()) for names in known.values()]
    if join == "inner":
        return _of_type([name for name in reference.tolist() if all(name in own for own in sets)], reference)
    union = dict.fromkeys(reference.tolist())
    for names in known.values():
        union.update(dict.fromkeys(names.tolist()))
    return _of_type(list(union), reference)


def _of_type(names: list[Any], like: np.ndarray) -> np.ndarray:
    if not names:
        raise ValueError("No sample is in all views: no name occurs in each. Write names in one way, or join='outer'.")
    return as_names(names) if like.dtype == object else np.array(names)


def _view(name: str) -> str:
    return "`sample_names`" if name == "sample_names" else f"view '{name}'"


def _difference(own: set[Any], other: set[Any], view: str, first: str) -> str:
    """Return what two sets of names do not share, for messages; names that differ in type only are pointed out."""
    parts = [
        f"{len(rest)} only in {_view(where)} ({some([repr(name) for name in sorted(rest, key=str)])})"
        for rest, where in ((own - other, view), (other - own, first))
        if rest
    ]
    types = " Some are numbers, others text: write names in one way." if {*map(str, own)} == {*map(str, other)} else ""
    return f": {', '.join(parts)}.{types}".removesuffix(".")


def check_unique_names(names: np.ndarray, what: str) -> None:
    """Raise where a name stands twice, since samples could not be matched by it."""
    values, counts = np.unique(np.array([repr(name) for name in names.tolist()]), return_counts=True)
    twice = values[counts > 1]
    if len(twice):
        raise ValueError(
            f"{what} has the sample {some(twice.tolist())} more than once, so samples cannot be matched by name. Give "
            "each sample a name of its own."
        )


# -- targets and weights
def in_order_of(samples: Any, values: Any, what: str) -> Any:
    """Return a target, weights or groups in the order of the samples, if both have names; masked values become None.

    `samples` are Views or a pandas object. Arrays and lists are taken by position, as are all values where the samples
    have no names. But a permutation of the default index 0, 1, 2, ... of samples is refused: it may be meant as names.
    """
    if is_device_array(values):  # targets and weights are read on the host
        return to_numpy(values)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(values.mask, np.array(None), values.data) if np.ma.is_masked(values) else values.data
    sample_names, own = getattr(samples, "sample_names", index_names(samples)), index_names(values)
    if getattr(samples, "_default_index", sample_names is not None and is_default(sample_names)):
        sample_names = None
        if own is not None and own.dtype.kind in "iu" and not is_default(own) and is_default(np.sort(own)):
            raise ValueError(
                f"The index of {what} ({sample_text(range(len(own)), own, 3)}) has the rows of X, whose index is 0, 1, "
                f"2, ..., in another order. Give {what}.sort_index() to match them by the index, or {what}.to_numpy() "
                "if it is in the order of the rows."
            )
    if sample_names is None or own is None or np.array_equal(own, sample_names):
        return values
    if own.dtype.kind in "iu" and all(isinstance(name, str) for name in sample_names):
        own = own.astype(str).astype(object)  # names in text files are text
    other = set(own.tolist()) ^ set(sample_names.tolist())
    if other:
        shown = sample_text(range(len(sample_names)), sample_names, 3)
        remedy = f", or as an array ({what}.to_numpy()) if it is in the order of the samples"
        if other.isdisjoint(sample_names.tolist()):  # it has all of them, and more
            remedy = f": {what}.loc[X.sample_names], or {what}.loc[X.index] where X is a data frame"
        raise ValueError(
            f"The index of {what} ({sample_text(range(len(own)), own, 3)}) is not that of the samples ({shown}). Give "
            f"{what} with the same index{remedy}."
        )
    check_unique_names(own, what)
    check_unique_names(sample_names, "X")
    place = {name: k for k, name in enumerate(own.tolist())}
    return values.iloc[[place[name] for name in sample_names.tolist()]]
