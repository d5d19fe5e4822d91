"""Single samples: read without building `Views` where nothing has to be validated, prepared and learned in one pass."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..views._columns import rows_in_order
from ..views._streamed_views import learn_row_undoable
from ._stream import check_sample, one_row

_NUMBERS = {int, float, bool, np.float64, np.float32, np.int64}


def learn_single(estimator: Any, x: Mapping[str, Any], y: Any, weight: float) -> Any:
    """Learn one sample; what must be validated goes the long way, as a chunk. Return the estimator."""
    check_sample(x)
    estimator._own_arrays()
    x = rows_in_order(vars(estimator).get("_known", {}), x)
    known = hasattr(estimator, "_machine") and weight > 0 and estimator._targets.is_open(estimator)
    lesson = estimator._targets.lesson_of_one(estimator, y, weight) if known else None
    row, undo = (None, _nothing) if lesson is None else _read_to_learn(estimator, x)
    if lesson is None or row is None:
        return estimator.partial_fit(one_row(x, estimator), [y], None, None if weight == 1 else [weight])
    try:
        record = estimator._machine.learn(row, lesson._replace(ids=np.array([estimator._next_id])), estimator._rule())
    except Exception:  # such as a kernel that overflows
        undo()
        raise
    estimator._off_bounds = estimator._off_bounds or weight != 1
    estimator._next_id += 1
    estimator._targets.record_one(estimator, lesson, record)
    return estimator


def score_single(estimator: Any, x: Mapping[str, Any]) -> np.ndarray | None:
    """Return the scores of one sample; None before a sample was learned."""
    check_sample(x)
    if not hasattr(estimator, "n_samples_seen_"):
        return None
    x, row = rows_in_order(estimator._known, x), None
    if estimator._targets.is_open(estimator):
        estimator._check_fixed()
        prepare = estimator.preparation_
        row = estimator._read_one(x if prepare is None else prepare.transform_one(x))
    if row is None:
        return np.asarray(estimator._combined(one_row(x, estimator)))
    return np.asarray(estimator._targets.in_units(estimator, estimator._machine.score_one(row)))


def learn_plain_row(estimator: Any, X: Any, y: Any, classes: Any) -> bool:
    """Learn a table of one row as a single sample; return False if it must be validated as a chunk."""
    x = _plain_row(estimator, X)
    if x is None or not isinstance(y, (list, np.ndarray)) or len(y) != 1:
        return False
    if classes is not None and not _are_known(estimator, classes):
        return False
    learn_single(estimator, x, y[0], 1.0)
    return True


def score_plain_row(estimator: Any, X: Any) -> np.ndarray | None:
    """Return the scores of a table of one row; None if it must be validated as a chunk."""
    x = _plain_row(estimator, X)
    return None if x is None else score_single(estimator, x)


def _plain_row(estimator: Any, X: Any) -> dict[str, np.ndarray] | None:
    """Return one row of numbers, given as a list of a list or an array, as a sample of an estimator of one view."""
    if type(X) not in (list, np.ndarray) or len(X) != 1 or getattr(estimator, "views", None) is not None:
        return None
    known = vars(estimator).get("_known", {})
    if len(known) != 1 or len(estimator.view_names_in_) != 1:
        return None
    (name, (kind, width, names)), row = next(iter(known.items())), X[0]
    if type(row) is list and all(type(value) in _NUMBERS for value in row):
        row = np.array(row, dtype=np.float64)
    # columns without names, as before, and in a precision that samples may have
    plain = type(row) is np.ndarray and row.shape == (width,) and row.dtype in (np.float64, np.float32)
    if not plain or kind != "numbers" or names is not None or estimator._view_is_gram(name):
        return None
    return {name: row}


def _are_known(estimator: Any, classes: Any) -> bool:
    """Return whether classes that are announced again are among those of the estimator."""
    codes = vars(estimator).get("_codes")
    try:
        return codes is not None and all(label in codes for label in classes)
    except TypeError:  # not labels
        return False


def _read_to_learn(estimator: Any, x: Mapping[str, Any]) -> tuple[Any, Callable[[], None]]:
    """Return a sample as the machine takes it, and how to undo what its preparation learned; None if not readable."""
    estimator._check_fixed()
    if estimator.preparation_ is None:
        return estimator._read_one(x), _nothing
    ready, undo = learn_row_undoable(estimator.preparation_, x)
    row = None if ready is None else estimator._read_one(ready)
    if row is None:
        undo()
    return row, undo


def _nothing() -> None:
    pass
