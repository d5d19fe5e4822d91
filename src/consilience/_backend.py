"""Where arrays live and work runs: NumPy, PyTorch, CuPy through the array API; threads. No other file knows of devices.

Arrays stay where they are. Code asks for the `namespace` of its arrays and writes `xp.exp`, `xp.sum`, `@`
and in-place operators, which NumPy, PyTorch and CuPy share.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count


def is_device_array(x: Any) -> bool:
    """Tell whether `x` is an array of the array API that is not NumPy's (PyTorch, CuPy, array-api-strict)."""
    if isinstance(x, (np.ndarray, np.generic)) or sp.issparse(x):
        return False
    return hasattr(x, "__array_namespace__") or type(x).__module__.partition(".")[0] in ("torch", "cupy")


def namespace(*arrays: Any) -> Any:
    """Return the array API namespace that all `arrays` share; sparse matrices and None count as NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.ones(3)).__name__
    'numpy'
    """
    if len(arrays) == 1 and isinstance(arrays[0], np.ndarray):
        return np
    given = [x for x in arrays if x is not None]
    foreign = [x for x in given if is_device_array(x)]
    if not foreign:
        return np
    if len(foreign) < len(given):
        kinds = ", ".join(sorted({f"{type(x).__module__}.{type(x).__qualname__}" for x in given}))
        raise TypeError(f"Arrays of different kinds meet here: {kinds}. Bring them to one library and device first.")
    if all(hasattr(x, "__array_namespace__") for x in foreign):
        spaces = {x.__array_namespace__() for x in foreign}
        if len(spaces) == 1:
            return spaces.pop()
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            "Arrays of PyTorch or CuPy need the package array-api-compat: pip install 'consilience[gpu]'."
        ) from error
    return array_namespace(*foreign)


def to_numpy(x: Any) -> np.ndarray:
    """Bring an array of any library and device to NumPy; NumPy arrays are returned as they are."""
    if not is_device_array(x):
        return np.asarray(x)
    if hasattr(x, "detach"):  # PyTorch
        return x.detach().cpu().numpy()
    if hasattr(x, "get"):  # CuPy
        return x.get()
    return np.asarray(x)


def like(values: np.ndarray, x: Any) -> Any:
    """Bring a NumPy array to the library and device of `x`."""
    if not is_device_array(x):
        return values
    return namespace(x).asarray(values, device=x.device)


def take_rows(x: Any, rows: np.ndarray) -> Any:
    """Return the rows of an array by their positions."""
    if not is_device_array(x):
        return x[rows]
    return namespace(x).take(x, like(np.asarray(rows), x), axis=0)


@contextmanager
def few_threads(n: int, most: int = 500) -> Iterator[None]:
    """Hold BLAS to one thread while n x n matrices are small: its threads cost more than they bring, most of all where
    other work runs beside.

    The limit is one of the whole process. Whoever enters first sets it and whoever leaves last restores it, so that
    threads that fit or predict at the same time leave BLAS as they found it.
    """
    if n > most:
        yield
        return
    _holders.enter()
    try:
        yield
    finally:
        _holders.leave()


class _Holders:
    """How many callers hold BLAS to one thread, and what restores its threads."""

    def __init__(self) -> None:
        self.lock, self.count, self.limit = Lock(), 0, None

    def enter(self) -> None:
        """Set the limit if nobody else holds it."""
        with self.lock:
            if self.count == 0:
                self.limit = _pools().limit(limits=1, user_api="blas")
                _give_up_control()
            self.count += 1

    def leave(self) -> None:
        """Restore the threads if nobody else holds them."""
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.limit.restore_original_limits()  # type: ignore[attr-defined]
                _give_up_control()


def _give_up_control() -> None:
    """Let any thread set the threads of OpenBLAS next: from threadpoolctl 3.8 on, those of others are ignored."""
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread()


_holders = _Holders()
if hasattr(os, "register_at_fork"):  # a lock that another thread held at the fork would never be released
    os.register_at_fork(after_in_child=_holders.__init__)  # type: ignore[misc]


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _cores() -> int:
    return int(cpu_count())


def by_rows(work: Callable[[int, int], None], n_rows: int, operations: int, pieces: int = 16) -> None:
    """Call ``work(start, stop)`` on blocks of rows, in threads where the number of operations is worth it.

    For compiled loops that release the interpreter's lock; each thread has about `pieces` blocks. A limit set for
    OpenMP (OMP_NUM_THREADS, which joblib sets in its workers) holds here too.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = min(_cores(), int(limit) if limit.isdigit() and int(limit) else _cores())
    threads = threads if operations > 1_000_000 else 1
    if threads == 1:
        work(0, n_rows)
        return
    bounds = np.linspace(0, n_rows, min(n_rows, pieces * threads) + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda block: work(*block), pairwise(bounds.tolist())))
