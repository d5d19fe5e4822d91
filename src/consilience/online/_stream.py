"""What online estimators need of a stream: codes of classes, kernels without data, single samples, Ctrl-C."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ..kernels import Kernel
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views.container import Views
from ..views.row_blocks import RowBlocks


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block ends, so that a chunk is learned completely or not at all."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    asked: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: asked.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if asked and callable(before):  # Ctrl-C came meanwhile
            before(*asked[0])


def learn_blocks(estimator: Any, blocks: RowBlocks, y: Any, classes: Any) -> Any:
    """Learn blocks of rows one after the other, as chunks; return the estimator."""
    if y is not None:
        raise ValueError("RowBlocks have targets in their blocks. Leave `y` out.")
    for X, labels, sample_weight in blocks:
        if sample_weight is not None:
            raise ValueError(f"{type(estimator).__name__} takes no sample weights, and {blocks.name} have some.")
        estimator.partial_fit(X, labels, classes)
    return estimator


# -- classes
def class_codes(labels: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the positions of labels among the classes, and the first label that is not among them (-1: none)."""
    if len(classes) <= 2:  # comparing is many times faster than searching
        codes = (labels == classes[-1]).astype(np.int64) if len(classes) > 1 else np.zeros(len(labels), dtype=np.int64)
        foreign = (labels != classes[0]) & (labels != classes[-1])
    else:
        # a label above all classes would be out of bounds
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        foreign = classes[codes] != labels
    return codes, int(foreign.argmax()) if foreign.any() else -1


def check_announced(labels: np.ndarray, classes: np.ndarray, late: bool) -> None:
    """Validate that all labels are among the announced classes."""
    unknown = class_codes(labels, classes)[1] if len(labels) else -1
    if unknown >= 0:
        raise ValueError(
            f"The class {labels[unknown].item()!r} was not announced; the classes are {_blocks.quoted(classes)}. Give "
            f"all classes by `classes=` at the first call of partial_fit{', or none, to let them appear' * late}."
        )


def new_outputs(before: np.ndarray, classes: np.ndarray, scale: float = 1.0) -> list[tuple[int, float]] | None:
    """Return how outputs come from those before as a class joins; None where one output stays one.

    Two classes have one output, that of the second. With a third class it becomes `scale` times the output of the
    second, and its opposite that of the first.
    """
    if len(classes) <= 2:
        return None
    if len(before) > 2:
        return [(int(np.searchsorted(before, c)), 1.0) if c in before else (-1, 0.0) for c in classes]
    signs = {before[-1]: scale, before[0]: -scale} if len(before) == 2 else {}
    return [(0, signs[c]) if c in signs else (-1, 0.0) for c in classes]


# -- kernels
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
def curve_marks(first: int, last: int) -> np.ndarray:
    """Return the counts in (first, last] that the error curve keeps: about 128 for each doubling."""
    marks = []
    for octave in range(int(first + 1).bit_length() - 1, int(last).bit_length()):
        spacing = 1 << max(octave - 7, 0)  # 128 marks in each octave
        low, high = max(first + 1, 1 << octave), min(last, (2 << octave) - 1)
        # multiples of the spacing, from the first at or above low
        marks.append(np.arange(-(-low // spacing) * spacing, high + 1, spacing))
    return np.concatenate(marks)


def one_row(x: Mapping[str, Any]) -> Views:
    """Return one sample, given as a dict of rows by view, as Views."""
    rows = {}
    for name, row in x.items():
        if hasattr(row, "to_numpy"):
            row = row.to_numpy()
        if sp.issparse(row):
            rows[name] = checked_sparse(row, f"View '{name}'").reshape((1, -1))
        elif hasattr(row, "ndim"):
            rows[name] = row.reshape(1, -1)
        else:
            rows[name] = [row]
    return Views(rows)
