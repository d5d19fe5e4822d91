"""What the machine offers: array libraries through the array API, threads of BLAS and of compiled loops, memory.

Arrays stay on their device. Code gets the `namespace` xp of its arrays and uses `xp.exp`, `xp.sum`, `@` and in-place
operators, which NumPy, PyTorch and CuPy share.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cache
from itertools import pairwise
from pathlib import Path
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


def to_numpy(x: Any) -> Any:
    """Return an array, samples or a fitted estimator in the memory of the host, with NumPy arrays.

    Parameters
    ----------
    x : array, Views, estimator or kernel
        What to convert. Estimators, kernels and their parts are copied, and everything inside is converted:
        coefficients, training samples, landmarks, parameters of kernels, steps of pipelines.

    Returns
    -------
    array, Views, estimator or kernel
        The same values as NumPy arrays; arrays that are NumPy's already are not copied. Estimators then predict from
        NumPy arrays, as those that `consilience.load` reads.

    Examples
    --------
    >>> import consilience as cs
    >>> X = cs.Views(a=[[1.0, 2.0], [3.0, 4.0]])
    >>> cs.to_numpy(X)["a"]
    array([[1., 2.],
           [3., 4.]])
    """
    if is_device_array(x):
        if hasattr(x, "detach"):  # PyTorch
            return x.detach().cpu().numpy()
        return x.get() if hasattr(x, "get") else np.asarray(x)  # CuPy
    if _has_parts(x):
        return _on_host(x, {})
    return np.asarray(x)


def _has_parts(x: Any) -> bool:
    """Tell whether an object is of this library or of scikit-learn, and may hold arrays."""
    ours = type(x).__module__.partition(".")[0] in ("consilience", "sklearn")
    return ours and hasattr(x, "__dict__") and not isinstance(x, type) and not callable(getattr(x, "__code__", None))


def _on_host(x: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """Return an object with all arrays inside as NumPy arrays; what occurs several times is converted once."""
    if id(x) in done:
        return done[id(x)][1]
    if is_device_array(x):
        done[id(x)] = x, to_numpy(x)
        return done[id(x)][1]
    if isinstance(x, (list, dict, tuple)) and x:
        items = [_on_host(part, done) for part in (x.values() if isinstance(x, dict) else x)]
        before = x.values() if isinstance(x, dict) else x
        if all(one is other for one, other in zip(items, before, strict=True)):
            return x
        if isinstance(x, dict):
            new = copy(x)
            new.update(zip(x, items, strict=True))
            return new
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if not _has_parts(x):
        return x
    new = object.__new__(type(x))
    done[id(x)] = x, new  # also holds x, so that its id is not used again
    for name, value in vars(x).items():
        new.__dict__[name] = _on_host(value, done)
    return new


def like(values: np.ndarray, x: Any) -> Any:
    """Return a NumPy array in the library and on the device of `x`."""
    if not is_device_array(x):
        return values
    return namespace(x).asarray(values, device=x.device)


def tensor_on(x: Any, device: str) -> Any:
    """Return an array of the host as a tensor on a device of PyTorch; the copy to a GPU goes on while others work."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("Devices need the package PyTorch: pip install 'consilience[torch]'.") from error
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"`device` is the name of a device of PyTorch, such as 'cuda'; got {device!r}.") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"PyTorch finds no GPU, so samples cannot move to {device!r}. Use device='cpu'.")
    if not isinstance(x, torch.Tensor):
        if is_device_array(x):
            raise TypeError(f"Arrays of {type(x).__module__.partition('.')[0]} do not move between libraries.")
        x = np.ascontiguousarray(x)
        x = torch.from_numpy(x if x.flags.writeable else x.copy())  # tensors are writable
    if place.type == "cuda" and x.device.type == "cpu":
        x = x if x.is_pinned() else x.pin_memory()
    return x.to(place, non_blocking=True)


def cast(x: Any, dtype: Any) -> Any:
    """Return an array of any library in another type, named "float32" or "float64" or a type of the library itself."""
    if not is_device_array(x):
        return x.astype(dtype, copy=False)
    xp = namespace(x)
    return xp.astype(x, getattr(xp, dtype) if isinstance(dtype, str) else dtype, copy=False)


def take_rows(x: Any, rows: np.ndarray) -> Any:
    """Return the rows of an array by their positions."""
    if not is_device_array(x):
        return x[rows]
    return namespace(x).take(x, like(np.asarray(rows), x), axis=0)


def spread_rows(x: Any, rows: np.ndarray, n: int) -> Any:
    """Return n rows with those of `x` at the positions `rows`, zero elsewhere; `x` itself where these are all rows."""
    if len(rows) == n and np.array_equal(rows, np.arange(n)):
        return x
    if not is_device_array(x):
        wide = np.zeros((n, *x.shape[1:]), dtype=x.dtype)
        wide[rows] = x
        return wide
    xp = namespace(x)  # not every device array can be assigned to: take rows, zeros from a border
    where = np.full(n, x.shape[0])
    where[rows] = np.arange(x.shape[0])
    return take_rows(xp.concat([x, xp.zeros((1, *x.shape[1:]), dtype=x.dtype, device=x.device)], axis=0), where)


def in_single(x: Any) -> bool:
    """Tell whether an array of any library is in single precision."""
    return str(x.dtype).rpartition(".")[2] == "float32"


def check_same_library(X: Any, Y: Any) -> None:
    """Raise TypeError if one of two arrays is NumPy's or sparse and the other is of another library."""
    if is_device_array(X) == is_device_array(Y):
        return
    if all(is_device_array(x) or sp.issparse(x) or isinstance(x, np.ndarray) for x in (X, Y)):
        one, other = (type(x).__module__.partition(".")[0] for x in (X, Y))
        raise TypeError(
            f"The samples are arrays of {one}; those to compare with, such as the training samples of an estimator, "
            f"are of {other}. Move the samples to that library and device, or convert both by consilience.to_numpy."
        )


def check_on_host(what: str, *arrays: Any) -> None:
    """Raise TypeError if any array is of another library than NumPy; `what` begins the sentence."""
    for x in arrays:
        if is_device_array(x):
            library = type(x).__module__.partition(".")[0]
            raise TypeError(
                f"{what} works on the CPU with NumPy arrays; got arrays of {library}. Give consilience.to_numpy(X)."
            )


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


# -- memory
_UNITS = {"": 1, **{prefix: 1000**k for k, prefix in enumerate("KMGT", start=1)}}
_UNITS |= {f"{prefix}I": 1024**k for k, prefix in enumerate("KMGT", start=1)}
_UNLIMITED = 1 << 60  # cgroups write about 2^63 where there is no limit
_SMALL = 1 << 24  # bytes that are not worth the reading of system files


def available_memory() -> int:
    """Return the number of bytes that this process can still allocate.

    The environment variable CONSILIENCE_MEMORY, such as "8GB", sets it. Otherwise it is the memory that the system can
    give without swapping: on Linux within the limits of the cgroups too, on macOS all physical memory. In both cases a
    limit on the address space (RLIMIT_AS) is respected. Within `memory_of` arrays of a GPU, it is the memory there.
    """
    given = os.environ.get("CONSILIENCE_MEMORY", "").strip()
    place = _place.get()
    if place is not None and not given:
        return _gpu_memory(place)
    memory = _read_size(given) if given else min(_system_memory(), _cgroup_memory())
    return max(min(memory, _address_space()), 0)


_place: ContextVar[Any] = ContextVar("place", default=None)  # an array of the GPU whose memory counts


@contextmanager
def memory_of(*arrays: Any) -> Iterator[None]:
    """Let the memory of the GPU count where arrays are on one; nothing changes for others."""
    there = next((x for x in arrays if is_device_array(x) and str(getattr(x, "device", "")).startswith(_GPU)), None)
    token = _place.set(there)
    try:
        yield
    finally:
        _place.reset(token)


_GPU = "cuda", "<CUDA"  # how devices of PyTorch and CuPy begin as text


def _gpu_memory(x: Any) -> int:
    """Return the bytes that are free on the GPU of an array, also those that its library holds in reserve."""
    if hasattr(x, "detach"):
        import torch

        reserve = torch.cuda.memory_reserved(x.device) - torch.cuda.memory_allocated(x.device)
        return int(torch.cuda.mem_get_info(x.device)[0] + reserve)
    import cupy

    with x.device:
        return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise MemoryError if more bytes are needed than available; `what` needs them, the remedy is a sentence."""
    if needed < _SMALL and "CONSILIENCE_MEMORY" not in os.environ:
        return
    available = available_memory()
    if needed > available:
        raise MemoryError(
            f"{what} needs about {size_text(needed)} of memory, and {size_text(available)} are available. {remedy}"
        )


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as text, in GiB or MiB.

    Examples
    --------
    >>> size_text(3 * 2**30), size_text(2**20 / 2)
    ('3 GiB', '0.5 MiB')
    """
    unit, name = (2**30, "GiB") if n_bytes >= 2**30 else (2**20, "MiB")
    size = n_bytes / unit
    return f"{size:,.0f} {name}" if size >= 100 else f"{size:.3g} {name}"


def _read_size(text: str) -> int:
    """Return a number of bytes from text such as "8GB", "500 MiB" or "1e9"."""
    match = re.fullmatch(r"([0-9.]+(?:E[0-9]+)?)\s*([KMGT]?I?)B?", text.upper())
    try:
        size = float(match.group(1)) * _UNITS[match.group(2)] if match else 0.0
    except (KeyError, ValueError):
        size = 0.0
    if not 0 < size < _UNLIMITED:
        raise ValueError(f"The environment variable CONSILIENCE_MEMORY must be a size such as '8GB'; got {text!r}.")
    return int(size)


def _system_memory() -> int:
    """Return what the system can give without swapping; all physical memory where it does not say more."""
    if sys.platform == "win32":
        return _windows_memory()
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _text_of(Path("/proc/meminfo")), flags=re.MULTILINE)
    if match:
        return int(match.group(1)) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return _UNLIMITED


def _windows_memory() -> int:
    """Return the physical memory that Windows can give."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *(
                (name, ctypes.c_ulonglong)
                for name in ("total", "available", "t_page", "a_page", "t_virtual", "a_virtual")
            ),
            ("a_extended", ctypes.c_ulonglong),
        )

    status = Status(length=ctypes.sizeof(Status))
    done = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.available) if done else _UNLIMITED


def _cgroup_memory(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Return what the cgroups of this process, versions 1 and 2, leave of their limits.

    A limit holds for all groups below it, so that every group up to the root counts. Pages of files that the kernel can
    drop at any time are not in use.
    """
    left = _UNLIMITED
    for line in _text_of(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, names = (root / "memory", _V1) if controllers else (root, _V2)
        group = base / path.strip("/")
        for folder in (group, *group.parents):
            if folder == base.parent:
                break
            limit, used = (_number_of(folder / name) for name in names[:2])
            if limit is not None and limit < _UNLIMITED:
                match = re.search(rf"^{names[2]} (\d+)$", _text_of(folder / "memory.stat"), flags=re.MULTILINE)
                left = min(left, limit - max((used or 0) - (int(match.group(1)) if match else 0), 0))
    return left


_V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_V2 = "memory.max", "memory.current", "inactive_file"


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # not on this system, or in this container
        return ""


def _number_of(path: Path) -> int | None:
    text = _text_of(path).strip()
    return int(text) if text.isdigit() else None  # "max" is no limit


def _address_space() -> int:
    """Return what the limit on the address space leaves."""
    if sys.platform == "win32":
        return _UNLIMITED
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return _UNLIMITED
    pages = _text_of(Path("/proc/self/statm")).split()
    return limit - (int(pages[0]) * resource.getpagesize() if pages else 0)
