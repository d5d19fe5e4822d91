"""Read the arguments of `Views`: data, names, masks, and indices of rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, to_numpy
from . import _blocks, _frames, _reading
from ._annotated import NamedMatrix
from ._blocks import Block, Gram
from ._frames import Levels
from ._samples import take_names


def is_mapping(X: Any) -> bool:
    """Tell whether X is a dict of views; scipy's sparse matrices in dict form are not."""
    return isinstance(X, Mapping) and not sp.issparse(X)


def named_views(data: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the views by name: those of a dict or list, then those given by keyword."""
    if is_mapping(data):
        items = dict(data)
    elif data is None:
        items = {}
    elif isinstance(data, (list, tuple)):
        items = {f"view{v}": value for v, value in enumerate(data)}
    else:
        raise TypeError(
            f"Views takes a dict or list of arrays, or keywords; got {type(data).__name__}. For one table use "
            "as_views(table, views=...)."
        )
    check_names(items)
    twice = [name for name in keywords if name in items]
    if twice:
        raise ValueError(f"View {_blocks.quoted(twice)} is given twice. Omit one of them.")
    return {**items, **keywords}


@dataclass
class ReadViews:
    """The data of views as read, each in its own order of the samples."""

    blocks: dict[str, Block] = field(default_factory=dict)
    present: dict[str, Any] = field(default_factory=dict)  # which rows hold data
    names: dict[str, np.ndarray | None] = field(default_factory=dict)  # of the samples, where a view has its own
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    categories: dict[str, Levels] = field(default_factory=dict)


def read_items(items: Mapping[str, Any], id_column: Any, given: Any) -> ReadViews:
    """Read the data of all views; those of the `Views` that were given keep their names and mask."""
    read = ReadViews()
    if given is not None:
        read.columns, read.categories = dict(given.feature_names), dict(given.categories)
    for name, value in items.items():
        value, read.names[name] = take_names(name, value, id_column)
        block = read.blocks[name] = _read_item(name, value, read)
        read.present[name] = _reading.rows_with_data(block)
    if given is not None:
        read.names.update(dict.fromkeys(given.names, given.sample_names))
        for name in given.names:
            read.present[name] = np.broadcast_to(read.present[name], len(given)) & given.present(name)
    return read


def _read_item(name: str, value: Any, read: ReadViews) -> Block:
    """Return one view's data as stored; keep the names of its columns."""
    if value is None or isinstance(value, Gram):
        return value
    if is_collection(value):
        raise in_dask(f"View '{name}'", value)
    categories = _frames.NO_LEVELS
    if isinstance(value, NamedMatrix):
        if value.columns is not None:
            read.columns[name] = value.columns
        value, categories = value.values, value.categories
    elif _frames.is_frame(value):
        value, read.columns[name], categories = _frames.read_frame(name, value)
    if categories:
        read.categories[name] = categories
    return _reading.read_block(name, value)


def is_collection(value: Any) -> bool:
    """Tell whether a value is a Dask collection; other objects in memory, as those of xarray, have a graph of None."""
    if not hasattr(value, "__dask_graph__") or isinstance(value, type):
        return False
    return type(value).__module__.startswith("dask") or value.__dask_graph__() is not None  # Dask's own may be large


def in_dask(what: str, value: Any) -> TypeError:
    """Return the error for a Dask collection where the samples themselves are needed."""
    return TypeError(
        f"{what} is a Dask collection ({type(value).__name__}), which is not loaded into memory unless you ask for it. "
        "Give it to an estimator that learns from Dask collections, or load it: compute()."
    )


def names_of_grams(precomputed: bool | str | Sequence[str] | None, names: Sequence[str]) -> Sequence[str]:
    """Return the views that are Gram matrices."""
    if precomputed is None or precomputed is False:
        return ()
    return names if precomputed is True else [precomputed] if isinstance(precomputed, str) else precomputed


def as_gram(name: str, block: Block) -> Gram:
    """Return a square array as a Gram matrix."""
    if isinstance(block, Gram):
        return block
    if len(block.shape) != 2 or block.shape[0] != block.shape[1]:
        raise ValueError(
            f"View '{name}' is precomputed, so it must be a square Gram matrix over all samples; got "
            f"{_blocks.shape_text(block)}. Give the Gram matrix of all samples and select rows of the Views."
        )
    return Gram(block.toarray() if sp.issparse(block) else block)


def check_names(names: Iterable[Any]) -> None:
    """Raise for names of views that are not strings."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"The names of views must be strings; got {name!r}.")


def read_mask(mask: Any, names: tuple[str, ...], n: int) -> np.ndarray:
    """Return a mask of shape (n_samples, n_views) from an array or a dict by view; views not named are present."""
    full = np.ones((n, len(names)), dtype=bool)
    if mask is None:
        return full
    if isinstance(mask, Mapping):
        unknown = [name for name in mask if name not in names]
        if unknown:
            raise ValueError(f"`mask` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}.")
        for name, rows in mask.items():
            present = np.asarray(rows)
            if present.shape != (n,) or present.dtype != bool:
                raise ValueError(
                    f"`mask` of view '{name}' must be booleans of shape ({n},); got {present.dtype} of shape "
                    f"{present.shape}."
                )
            full[:, names.index(name)] = present
        return full
    array = np.asarray(mask)
    if array.shape != full.shape or array.dtype != bool:
        raise ValueError(
            f"`mask` must be booleans of shape {full.shape}, samples by views, True where present; got {array.dtype} "
            f"of shape {array.shape}."
        )
    return array.copy()


def row_positions(key: Any, n: int) -> np.ndarray:
    """Return the positions of the rows that an index selects from n samples: integers, booleans or a slice."""
    if isinstance(key, slice):
        return np.arange(n)[key]
    if is_device_array(key):
        key = to_numpy(key)
    rows = np.asarray(key)
    if rows.size == 0:
        return np.empty(0, dtype=int)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise IndexError(f"A mask of rows must have shape ({n},); got {rows.shape}.")
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu":
        raise IndexError(f"Select rows by integers, booleans or slices, and views by names; got {key!r}.")
    if rows.ndim > 1:
        raise IndexError(f"Select rows by a 1-D list of positions; got an index of shape {rows.shape}.")
    rows = np.atleast_1d(rows)
    outside = rows[(rows >= n) | (rows < -n)]
    if len(outside):
        raise IndexError(f"Row {outside[0]} is out of range: there are {n} samples.")
    return np.where(rows < 0, rows + n, rows)
