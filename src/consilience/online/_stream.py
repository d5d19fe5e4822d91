"""What online estimators need of a stream: blocks, kernels without data, single samples, Ctrl-C."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ..kernels import Kernel, kernels_by_view, resolve_kernels
from ..kernels.by_view import kernel_of
from ..views import _blocks
from ..views._columns import read_row
from ..views.container import Views
from ..views.per_view import as_preparation
from ..views.row_blocks import RowBlocks


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block ends, so that a chunk is learned completely or not at all.

    SIGTERM is delayed too if the program handles it, as the command line does.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    asked: list[Any] = []
    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(handler := signal.getsignal(number)):
            before[number] = handler
            signal.signal(number, lambda *given: asked.append(given))
    try:
        yield
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)
        if asked:  # it came meanwhile
            before[asked[0][0]](*asked[0])


def learn_blocks(estimator: Any, blocks: RowBlocks, y: Any, classes: Any) -> Any:
    """Learn blocks of rows one after the other, as chunks; return the estimator."""
    if y is not None:
        raise ValueError("RowBlocks have targets in their blocks. Leave `y` out.")
    for X, targets, sample_weight in blocks:
        estimator.partial_fit(X, targets, classes, sample_weight)
    return estimator


# -- kernels
def whole_kernels(given: Any, X: Views) -> dict[str, Kernel]:
    """Return the kernels of the views that some sample has, with what they take from all samples."""
    shown = [name for name in X.names if X.present(name).any()]
    kernels = kernels_by_view(given, X.names)
    return dict(resolve_kernels({name: kernels[name] for name in shown}, X))


def new_kernels(given: Any, X: Views, known: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Return the kernels of the views that occur for the first time, resolved without data."""
    new = [name for name in X.names if name not in known and X.present(name).any()]
    return {name: stream_kernel(kernel_of(given, name), name, _blocks.width(X.block(name))) for name in new}


def stream_kernel(kernel: Kernel, name: str, width: int) -> Kernel:
    """Return the kernel with numbers: a stream has no variance yet, so "scale" is one over the number of columns."""
    scaled = [key for key, value in kernel.get_params(deep=True).items() if isinstance(value, str) and value == "scale"]
    known = clone(kernel).set_params(**dict.fromkeys(scaled, 1.0 / max(width, 1)))
    if known._unresolved():
        raise ValueError(
            f"View '{name}': {kernel!r} takes a parameter from the data, which a stream does not have at once. Give it "
            "a number, or use `fit`."
        )
    return known


def check_kernel(kernel: Kernel, name: str, X: Views) -> None:
    """Validate that a kernel takes the samples before any is learned: one row of kernel values shows it."""
    known = stream_kernel(kernel, name, _blocks.width(X.block(name)))
    there = np.flatnonzero(X.present(name))
    if len(there) and X.kind(name) != "gram":
        with _blocks.naming(name):
            known(_blocks.take(X.block(name), there[:1]), _blocks.take(X.block(name), there))


# -- samples
def check_sample(x: Any) -> None:
    """Refuse what is not a dict of rows by view."""
    if type(x) is not dict and not isinstance(x, Mapping):
        raise TypeError(f"A sample is a dict of the rows of its views by name; got {repr(x)[:80]}. Give {{name: row}}.")


def one_row(x: Mapping[str, Any], estimator: Any = None) -> Views:
    """Return one sample, given as a dict of rows by view, as Views; dicts are objects where no estimator is known."""
    check_sample(x)
    rows = {}
    for name, row in x.items():
        is_object = isinstance(row, Mapping) and not sp.issparse(row) and not _has_columns(estimator, name)
        rows[name] = [row] if is_object else read_row(name, row)
    X = Views(rows)
    unnamed = {  # rows without names are in the order of the columns
        name: names
        for name, (_, width, names) in getattr(estimator, "_known", {}).items()
        if names and name in X.names and name not in X.feature_names and width == _blocks.width(X.block(name))
    }
    return X._replaced({}, unnamed, {name: estimator._categories.get(name, {}) for name in unnamed})


def _has_columns(estimator: Any, name: str) -> bool:
    """Tell whether a dict stands for a row of columns, and not for an object such as a map of tokens."""
    if estimator is None or name in vars(estimator).get("_known", {}):
        return estimator is not None and estimator._known[name][0] == "numbers"
    prepare = as_preparation(estimator.prepare)
    return prepare is None or not prepare._hashes(name)
