"""Array libraries and threads: NumPy, PyTorch and CuPy through the array API; threads of BLAS and of compiled loops.

Arrays stay on their device. Code gets the `namespace` xp of its arrays and uses `xp.exp`, `xp.sum`, `@` and in-place
operators, which NumPy, PyTorch and CuPy share.
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
    """Tell whether `x` is an array of another library than NumPy: PyTorch, CuPy or array-api-strict."""
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
        raise TypeError(f"Arrays are of different libraries: {kinds}. Move them to one library and device first.")
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
    """Return an array of any library and device as a NumPy array; NumPy arrays are not copied."""
    if not is_device_array(x):
        return np.asarray(x)
    if hasattr(x, "detach"):  # PyTorch
        return x.detach().cpu().numpy()
    if hasattr(x, "get"):  # CuPy
        return x.get()
    return np.asarray(x)


def like(values: np.ndarray, x: Any) -> Any:
    """Return a NumPy array in the library and on the device of `x`."""
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
    """Limit BLAS to one thread if n is at most `most`: for small n x n matrices, more threads take longer.

    The limit holds for the whole process. The first caller sets it and the last one restores it, so that threads that
    fit or predict at the same time do not change the number of threads of BLAS.
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
    """The number of callers that limit BLAS to one thread, and the object that restores its threads."""

    def __init__(self) -> None:
        self.lock, self.count, self.limit = Lock(), 0, None

    def enter(self) -> None:
        """Set the limit if no other caller has set it."""
        with self.lock:
            if self.count == 0:
                self.limit = _pools().limit(limits=1, user_api="blas")
                _give_up_control()
            self.count += 1

    def leave(self) -> None:
        """Restore the threads if no other caller needs the limit."""
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.limit.restore_original_limits()  # type: ignore[attr-defined]
                _give_up_control()


def _give_up_control() -> None:
    """Let any thread set the threads of OpenBLAS next; from threadpoolctl 3.8 on, only the last one that did can."""
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread()


_holders = _Holders()
if hasattr(os, "register_at_fork"):  # the child would wait forever for a lock that another thread held at the fork
    os.register_at_fork(after_in_child=_holders.__init__)  # type: ignore[misc]


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _cores() -> int:
    return int(cpu_count())


def _n_threads() -> int:
    """Return the number of threads; OMP_NUM_THREADS, which joblib sets in its workers, limits it."""
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(_cores(), int(limit) if limit.isdigit() and int(limit) else _cores())


@contextmanager
def map_in_threads(wanted: bool) -> Iterator[Callable[..., Any]]:
    """Yield a function like `map` that works in threads if they are wanted; BLAS gets one thread in each.

    For work that spends its time in NumPy and LAPACK, which release Python's global lock.
    """
    if not wanted or _n_threads() == 1:
        yield map
        return
    with few_threads(0), ThreadPoolExecutor(_n_threads()) as pool:
        yield pool.map


def by_rows(work: Callable[[int, int], None], n_rows: int, operations: int, pieces: int = 16) -> None:
    """Call ``work(start, stop)`` on blocks of rows, in threads if the number of operations is large.

    For compiled loops that release Python's global lock. Each thread gets about `pieces` blocks.
    """
    threads = _n_threads() if operations > 1_000_000 else 1
    if threads == 1:
        work(0, n_rows)
        return
    bounds = np.linspace(0, n_rows, min(n_rows, pieces * threads) + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda block: work(*block), pairwise(bounds.tolist())))
