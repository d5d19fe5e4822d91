"""Read outputs of any kind: numbers, vectors, strings, trees, or positions in a kernel matrix."""

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
    of: np.ndarray  # position of each sample's output, -1 where it is missing
    one_column: bool  # whether y was one-dimensional

    @property
    def labeled(self) -> np.ndarray:
        """Which samples have an output."""
        return self.of >= 0

    @property
    def are_objects(self) -> bool:
        """Whether outputs are strings, trees or other objects."""
        return self.values.dtype.kind in "UO"


def read_outputs(y: Any, n: int, matrix: np.ndarray | None, weights: np.ndarray | None = None) -> Outputs:
    """Read the outputs of n samples; with a kernel matrix they are positions in it. Weight 0 leaves a sample out."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if sp.issparse(y):
        raise ValueError("y is a sparse matrix. Give outputs as an array: y.toarray().")
    items, counted = _items(y), np.ones(n, dtype=bool) if weights is None else weights > 0
    if items is not None and matrix is None:
        if len(items) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n}, y has {len(items)}."
            )
        return _different([x if there else None for x, there in zip(items, counted, strict=True)])
    Y, labeled = read_targets(y, n, weights=weights)
    labeled = labeled & counted
    if matrix is not None:
        return _positions(Y, labeled, len(matrix))
    values, inverse = np.unique(Y[labeled], axis=0, return_inverse=True)
    of = np.full(n, -1)
    of[labeled] = inverse.ravel()
    return Outputs(values, of, np.asarray(y).ndim == 1)


def _items(y: Any) -> list[Any] | None:
    """Return outputs that are not numbers, one by one; None where they are numbers."""
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
    """Return the different objects in the order in which they come."""
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
    """Return outputs that are positions in a kernel matrix of T rows."""
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
    """Return objects as a 1-d array: of strings where all are, else of objects."""
    if all(isinstance(value, str) for value in values):
        return np.array(list(values))
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def read_output_kernel(given: Any) -> tuple[Kernel | None, np.ndarray | None]:
    """Return an output kernel as a kernel, or as the matrix between all candidates."""
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
            "A precomputed output kernel is given as the matrix itself, `output_kernel=K_y`, with the position of each "
            "sample's output in it as y; then samples can be split and new ones ranked."
        )
    return kernel, None


def read_candidates(given: Any, outputs: Outputs, matrix: np.ndarray | None) -> np.ndarray:
    """Return the candidates, which are outputs of the same kind as those in y; by default, these outputs."""
    if given is None:
        values = outputs.values
    else:
        if not hasattr(given, "__len__"):
            raise ValueError(f"`candidates` must be a sequence of outputs; got {given!r}.")
        if not len(given):
            raise ValueError("`candidates` is empty. Give at least one output, or None for the training outputs.")
        candidates = read_outputs(list(given), len(given), matrix)
        if not candidates.labeled.all():
            raise ValueError("`candidates` has a missing value. Leave it out.")
        if len(np.unique(candidates.of)) < len(given):
            raise ValueError("`candidates` has the same output twice. Give each once.")
        same_length = candidates.values.shape[1:] == outputs.values.shape[1:]
        if candidates.are_objects != outputs.are_objects or not same_length:
            raise ValueError(
                "`candidates` and y hold outputs of different kinds, or vectors of different lengths. Give candidates "
                "in the form of y."
            )
        values = candidates.values[candidates.of]
    return values[:, 0] if values.ndim == 2 and outputs.one_column else values


def as_block(values: np.ndarray) -> Any:
    """Return outputs as kernels take them."""
    return read(values.tolist() if values.ndim == 1 and values.dtype.kind in "USO" else values.reshape(len(values), -1))
