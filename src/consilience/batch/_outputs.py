"""Outputs of any kind: numbers, vectors, strings, trees, or positions in a kernel matrix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels import Kernel, as_kernel, is_psd
from ..kernels.base import read
from ..views import _reading
from ..views.validation import read_targets


@dataclass
class Outputs:
    """The different outputs among samples, as a kernel takes them, and which of them each sample has."""

    values: np.ndarray  # rows of numbers, or objects
    of: np.ndarray  # -1 where a sample has none
    one_column: bool

    @property
    def labeled(self) -> np.ndarray:
        return self.of >= 0


def read_outputs(y: Any, n: int, matrix: np.ndarray | None) -> Outputs:
    """Read the outputs of n samples; with a kernel matrix they are positions in it."""
    if y is None:
        raise ValueError("This learner requires y to be passed, but the target y is None.")
    if sp.issparse(y):
        raise ValueError("y is a sparse matrix. Give outputs as an array: y.toarray().")
    items = _items(y)
    if items is not None and matrix is None:
        if len(items) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n}, y has {len(items)}."
            )
        return _different(items)
    Y, labeled = read_targets(y, n)
    if matrix is not None:
        return _positions(Y, labeled, len(matrix))
    values, inverse = np.unique(Y[labeled], axis=0, return_inverse=True)
    of = np.full(n, -1)
    of[labeled] = inverse.ravel()
    return Outputs(values, of, np.asarray(y).ndim == 1)


def _items(y: Any) -> list[Any] | None:
    """Outputs that are no numbers, one by one; None where they are numbers."""
    if hasattr(y, "to_pylist"):
        y = y.to_pylist()
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    try:
        values = np.asarray(y)
    except ValueError:  # nested sequences of different lengths
        return list(y)
    if values.dtype.kind in "US":
        return list(y)
    if values.dtype.kind == "O":
        known = [x for x in values.ravel() if not _reading.is_missing(x)]
        return None if all(isinstance(x, (int, float, np.number)) for x in known) else list(y)
    return None


def _different(items: list[Any]) -> Outputs:
    places: dict[Any, int] = {}
    values: list[Any] = []
    of = np.full(len(items), -1)
    for i, item in enumerate(items):
        if _reading.is_missing(item):
            continue
        key = item if isinstance(item, str) else repr(item)
        if key not in places:
            places[key] = len(values)
            values.append(item)
        of[i] = places[key]
    if not values:
        raise ValueError("y has no output at all: every value is missing. Give outputs for some samples.")
    return Outputs(as_array(values), of, True)


def _positions(Y: np.ndarray, labeled: np.ndarray, T: int) -> Outputs:
    known = Y[labeled]
    if Y.shape[1] != 1 or (known != np.round(known)).any() or (known < 0).any() or (known >= T).any():
        raise ValueError(
            f"With a matrix as `output_kernel`, y holds the position of each sample's output in it, 0 to {T - 1}; got "
            f"values from {known.min():g} to {known.max():g} in {Y.shape[1]} column(s)."
        )
    of = np.full(len(Y), -1)
    of[labeled] = known[:, 0].astype(int)
    return Outputs(np.arange(T), of, True)


def as_array(values: Any) -> np.ndarray:
    """Objects as a 1-d array: of strings where all are, else of objects."""
    if all(isinstance(value, str) for value in values):
        return np.array(list(values))
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def read_output_kernel(given: Any) -> tuple[Kernel | None, np.ndarray | None]:
    """An output kernel: a kernel, or the matrix between all candidates."""
    if isinstance(given, np.ndarray) or (isinstance(given, (list, tuple)) and np.ndim(given) == 2):
        matrix = np.asarray(given, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not is_psd(matrix):
            raise ValueError(
                "A matrix as `output_kernel` must be square, symmetric and positive semi-definite; got shape "
                f"{matrix.shape}. `consilience.kernels.nearest_psd` makes one of a matrix."
            )
        return None, matrix
    kernel = as_kernel(given)
    if kernel.reads_gram:
        raise ValueError(
            "A precomputed output kernel is given as the matrix itself, `output_kernel=K_y`, with y the position of "
            "each sample's output in it; then samples can be split and new ones ranked."
        )
    return kernel, None


def as_block(values: np.ndarray) -> Any:
    """Outputs as kernels take them."""
    return read(values.tolist() if values.ndim == 1 and values.dtype.kind in "USO" else values.reshape(len(values), -1))
