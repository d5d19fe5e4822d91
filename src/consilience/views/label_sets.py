"""Several labels per sample: indicators of 0 and 1, and lists or sets of labels."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._reading import checked_sparse, is_missing, objects_of
from .validation import read_stream_labels, read_targets

_SETS = (set, frozenset)
_COLLECTIONS = (*_SETS, list, tuple, np.ndarray)


def kind_of_labels(y: Any) -> str | None:
    """Return "indicator" or "lists" where samples have several labels each, and None where they have one.

    Arrays, frames and sparse matrices of several columns are indicators. So are lists of lists of 0 and 1 that have one
    length. Other lists, and sets, are labels by name.
    """
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2:
        return "indicator" if shape[1] > 1 else None
    items = _items(y)
    if items is None:
        return None
    first = next((item for item in items if not is_missing(item)), None)
    if not isinstance(first, _COLLECTIONS):
        return None
    known = [item for item in items if not is_missing(item)]
    width = len(first)
    table = width > 1 and all(not isinstance(row, _SETS) and len(row) == width for row in known)
    return "indicator" if table and all(_is_binary(value) for row in known for value in row) else "lists"


def _items(y: Any) -> Sequence[Any] | None:
    """Return samples' entries that may be collections; None where they are not, as in an array of numbers."""
    if isinstance(y, (list, tuple)):
        return y
    if hasattr(y, "to_pylist"):  # Arrow
        return list(y.to_pylist()) if "list" in str(getattr(y, "type", "")) else None
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    return y.tolist() if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 else None


def _is_binary(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and (value in (0, 1) or bool(np.isnan(value)))


def read_indicator(y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an indicator of labels as (n, n_labels) of int, and which samples have one; a row of NaN has none."""
    Y, labeled = read_targets(checked_sparse(y, "y").toarray() if sp.issparse(y) else y, n, required=False)
    others = np.setdiff1d(Y[labeled], (0, 1))
    if len(others):
        raise ValueError(f"An indicator of labels holds 0 and 1; y has {others[0]:g}.")
    return np.where(np.isnan(Y), 0, Y).astype(np.int64), labeled


def read_label_sets(y: Any, n: int, known: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples have labels, possibly none of them, and these as an array of tuples.

    Labels must be of the type of the known ones.
    """
    items = _items(y)
    if items is None or len(items) != n:
        found = "none" if y is None else f"{len(items)} entries" if items is not None else f"{type(y).__name__}"
        raise ValueError(f"y must have a list or a set of labels for each of the {n} samples; got {found}.")
    labeled = np.array([not is_missing(item) for item in items], dtype=bool)
    rows = []
    for i, row in enumerate(items):
        if labeled[i] and not isinstance(row, _COLLECTIONS):
            raise TypeError(f"The labels of sample {i} must be a list or a set; got {row!r}.")
        rows += [row] if labeled[i] else []
    flat = [label for row in rows for label in row]
    if any(is_missing(label) for label in flat):
        raise ValueError("A list of labels in y has a missing value. Leave it out; unlabeled samples have None as y.")
    plain = read_stream_labels(objects_of(flat), len(flat), known)[1].tolist() if flat else []
    ends = np.cumsum([0, *(len(row) for row in rows)]).tolist()
    return labeled, objects_of([tuple(dict.fromkeys(plain[a:b])) for a, b in pairwise(ends)])


def indicator_of(sets: Any, codes: dict[Any, int]) -> np.ndarray:
    """Return the indicator of sets of labels; labels without a code are left out."""
    Y = np.zeros((len(sets), len(codes)), dtype=np.int64)
    for i, row in enumerate(sets):
        for label in row:
            if label in codes:
                Y[i, codes[label]] = 1
    return Y


def sets_of(indicator: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the labels of each sample as a list, in an array of objects."""
    return objects_of([labels[row == 1].tolist() for row in indicator])


def share_of_equal_sets(known: Any, predicted: Any, weights: Any) -> float:
    """Return the share of the samples whose labels are all predicted, and no others."""
    equal = [set(a) == set(b) for a, b in zip(known, predicted, strict=True)]
    return float(np.average(equal, weights=weights))
