"""Divide one wide table into views, and tell a list of views from one view."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array
from . import _blocks, _frames, _reading
from ._blocks import Gram
from ._construction import in_dask, is_collection


def divide(X: Any, views: Any, keep: Any = None) -> dict[str, Any]:
    """Return the tables that `views` selects from the columns of a wide table, by view.

    A string `keep` is a column that all views of a data frame get: the names of the samples.
    """
    if is_collection(X):
        raise in_dask("The table", X)
    framed = _frames.is_frame(X)
    if framed:
        X = _frames.as_frame(X)
        columns = list(_frames.column_names("The table", X))
    else:
        X = one_table(X)
        if not hasattr(X, "shape") or len(X.shape) != 2:
            raise ValueError(
                "`views` divides a table of samples by columns, but the data are not a table. Give a 2-D array or a "
                "data frame, or omit `views`."
            )
        columns = [str(j) for j in range(X.shape[1])]
    if isinstance(views, str):
        if views != "prefix":
            raise ValueError(f"`views` must be a dict, a list or 'prefix'; got {views!r}.")
        if not framed:
            raise ValueError("views='prefix' needs column names, but the table has none. Use a data frame or slices.")
        views = by_prefix([column for column in columns if column != keep])
    elif not isinstance(views, Mapping):
        views = {f"view{v}": chosen for v, chosen in enumerate(views)}
    divided = {}
    for name, chosen in views.items():
        where = _columns_of(name, chosen, columns, framed)
        if framed and isinstance(keep, str) and keep in columns:
            where = np.append(where, columns.index(keep))
        divided[name] = X[:, where.tolist()].to_native() if framed else _columns_at(X, where)
    return divided


def _columns_at(X: Any, where: np.ndarray) -> Any:
    """Return columns of a table; of a memory map without reading them, where they follow one another."""
    if isinstance(X, np.memmap) and len(where) and (np.diff(where) == 1).all():
        return X[:, int(where[0]) : int(where[-1]) + 1]
    return X[:, where]


def by_prefix(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each view by their prefix: ``audio__mfcc1`` belongs to ``audio``."""
    views: dict[str, list[str]] = {}
    for column in columns:
        prefix, divider, _ = column.partition("__")
        if not divider or not prefix:
            raise ValueError(
                f"Column '{column}' has no view prefix. With views='prefix', columns of the view audio are named "
                "'audio__something'. Rename or drop the column, or list the columns of each view in a dict."
            )
        views.setdefault(prefix, []).append(column)
    return views


def _columns_of(name: str, chosen: Any, columns: Sequence[str], named: bool) -> np.ndarray:
    """Return the positions of the columns chosen for one view by a slice, positions, a mask or names."""
    if isinstance(chosen, (str, numbers.Integral)):
        chosen = [chosen]
    if isinstance(chosen, slice):
        return np.arange(len(columns))[chosen]
    if chosen is None or isinstance(chosen, Mapping):
        raise ValueError(f"The columns of view '{name}' must be a slice, positions, a mask or names; got {chosen!r}.")
    chosen = list(chosen)
    if chosen and isinstance(chosen[0], str):
        places = {column: j for j, column in enumerate(columns)} if named else {}
        unknown = [c for c in chosen if c not in places]
        if unknown:
            has = f"has the columns {_blocks.quoted(columns)}" if named else "has no column names"
            raise ValueError(f"View '{name}' selects the columns {_blocks.quoted(unknown)}, but the table {has}.")
        return np.array([places[c] for c in chosen])
    where = np.asarray(chosen)
    if where.dtype == bool:
        if len(where) != len(columns):
            raise ValueError(
                f"View '{name}' is selected by a mask of {len(where)} columns, but the table has {len(columns)}."
            )
        return np.flatnonzero(where)
    if where.ndim != 1 or (len(where) and where.dtype.kind not in "iu"):
        raise ValueError(f"The columns of view '{name}' must be integers, a mask or names; got {chosen!r}.")
    where = where.astype(int)
    if len(where) and (where.max() >= len(columns) or where.min() < -len(columns)):
        outside = where.max() if where.max() >= len(columns) else where.min()
        raise ValueError(f"View '{name}' selects column {outside}, but the table has {len(columns)} columns.")
    return where


def is_list_of_views(X: Any) -> bool:
    """Tell whether X is a list of views, and not the rows of one table or a sequence of strings."""
    if not isinstance(X, (list, tuple)) or not X:
        return False

    def is_view(item: Any) -> bool:
        if isinstance(item, Gram) or sp.issparse(item) or _frames.is_frame(item):
            return True
        if hasattr(item, "shape"):
            return len(item.shape) == 2
        # a list of tuples is one view of trees
        if not isinstance(item, (list, tuple)) or not item or (isinstance(X, list) and isinstance(item, tuple)):
            return False
        return isinstance(item[0], (str, list, tuple, np.ndarray))

    return any(is_view(item) for item in X)


def one_table(X: Any) -> Any:
    """Return a single view that was given without a name; errors use scikit-learn's messages."""
    if is_collection(X):
        raise in_dask("The table", X)
    if sp.issparse(X):
        return _reading.checked_sparse(X, "The data").tocsr()
    if _frames.is_frame(X) or is_device_array(X):
        return X
    array = _reading.read_array("view0", X)
    if array.ndim == 1 and array.dtype.kind in "biuf":
        raise ValueError(
            f"Expected 2D array, got 1D array instead: shape {array.shape}. Reshape your data with "
            "array.reshape(-1, 1) if it has one column, or array.reshape(1, -1) if it is one sample."
        )
    if array.ndim == 0:
        raise ValueError(f"Expected 2D array, got scalar array instead: {X!r}. Give an array of samples by columns.")
    return array
