"""Read the arguments of `Views`: names, masks, and indices of rows."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, to_numpy
from . import _blocks


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
