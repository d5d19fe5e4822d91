"""States of what watches a stream, as plain dicts of numbers and arrays, validated before they are used."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def restored_array(state: Mapping[str, Any], name: str, like: np.ndarray, shape: tuple[int, ...] | None = None) -> Any:
    """Return an array of a state with the type of another, and its shape unless another is given."""
    value = state.get(name)
    wanted = like.shape if shape is None else shape
    fits = isinstance(value, np.ndarray) and value.dtype == like.dtype and value.shape == wanted
    if not fits or not np.isfinite(np.asarray(value, dtype=np.float64)).all():
        raise ValueError(f"The state of the stream is damaged: '{name}' is not a finite array of the shape {wanted}.")
    return np.array(value, order="C")


def restored_count(state: Mapping[str, Any], name: str) -> int:
    """Return a count of a state."""
    value = state.get(name)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise ValueError(f"The state of the stream is damaged: '{name}' is not a count; got {value!r}.")
    return int(value)
