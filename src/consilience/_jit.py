"""Compile loops by numba, with a cache on disk if a cache folder is writable."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any


def jit(**options: Any) -> Callable[[Any], Any]:
    """Return numba's decorator with a cache; if no cache folder is writable, warn once and compile without one."""
    from numba import njit

    def compiled(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            _warn_without_cache()
            return njit(**options)(function)

    return compiled


@cache  # once in a process
def _warn_without_cache() -> None:
    """Warn that compiled loops are not cached."""
    warnings.warn(
        "Compiled loops cannot be cached, since no cache folder is writable: each process compiles them again, which "
        "takes some seconds. Set NUMBA_CACHE_DIR to a writable folder.",
        stacklevel=2,
    )
