"""Small checks of values that were read from a file."""

from typing import Any

import numpy as np


class BadState(ValueError):
    """Error for a state that `save` cannot have written."""


def require(fits: Any, what: str) -> None:
    """Raise with these words unless something holds."""
    if not fits:
        raise BadState(what)


def check_array(owner: Any, name: str, shape: tuple[int | None, ...], kinds: str = "f") -> np.ndarray:
    """Check an array: its type, its shape (None: any size), that it is contiguous and finite."""
    value, what = getattr(owner, name), f"{type(owner).__name__}.{name}"
    require(isinstance(value, np.ndarray) and value.dtype.kind in kinds, f"{what} is not an array of its type")
    require(value.dtype.isnative and value.dtype.itemsize <= 8, f"{what} has the type {value.dtype}")
    require(kinds != "i" or value.dtype == np.int64, f"{what} has the type {value.dtype}")
    agrees = value.ndim == len(shape) and all(b is None or a == b for a, b in zip(value.shape, shape, strict=True))
    require(agrees, f"{what} has the shape {value.shape}, not {shape}")
    require(value.size == 0 or value.flags.c_contiguous or value.flags.f_contiguous, f"{what} is not contiguous")
    if value.dtype.kind == "f":
        require(np.isfinite(value).all(), f"{what} is not finite")
    return value


def check_doubles(owner: Any, **shapes: tuple[int | None, ...]) -> None:
    """Check arrays in double precision, in C's order."""
    for name, shape in shapes.items():
        value = check_array(owner, name, shape)
        require(value.dtype == np.float64 and (value.size == 0 or value.flags.c_contiguous), f"{name} is not double")


def check_counts(owner: Any, *names: str) -> None:
    """Check whole numbers that count something."""
    for name in names:
        value = getattr(owner, name)
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        require(whole and 0 <= value < 2**62, f"{type(owner).__name__}.{name} is not a count")


def check_number(owner: Any, name: str, least: float) -> None:
    """Check a finite number."""
    value = getattr(owner, name)
    require(isinstance(value, float) and np.isfinite(value) and value >= least, f"{name} is {value!r}")


def are_names(value: Any) -> bool:
    """Tell whether values are names, each once."""
    return isinstance(value, (tuple, list)) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)
