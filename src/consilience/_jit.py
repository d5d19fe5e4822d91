"""Compiling loops by numba: cached where a folder can be written, else compiled again in every process."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any


def jit(**options: Any) -> Callable[[Any], Any]:
    """Return numba's decorator with a cache; without one, said once, where the file system is read-only."""
    from numba import njit

    def compiled(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            _tell()
            return njit(**options)(function)

    return compiled


@cache
def _tell() -> None:
    """Warn once in a process."""
    warnings.warn(
        "Compiled loops cannot be cached, since no cache folder can be written to: each process compiles them again, "
        "which takes some seconds. Set NUMBA_CACHE_DIR to a folder that can be written.",
        stacklevel=2,
    )
