"""Single samples: read without building `Views` where nothing has to be validated, prepared and learned in one pass."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..views._streamed_views import learn_row_undoable
from ._stream import one_row


def learn_single(estimator: Any, x: Mapping[str, Any], y: Any, weight: float) -> Any:
    """Learn one sample; what must be validated goes the long way, as a chunk. Return the estimator."""
    known = hasattr(estimator, "_machine") and weight > 0 and estimator._targets.is_open(estimator)
    lesson = estimator._targets.lesson_of_one(estimator, y, weight) if known else None
    row, undo = (None, _nothing) if lesson is None else _read_to_learn(estimator, x)
    if lesson is None or row is None:
        return estimator.partial_fit(one_row(x), [y], None, None if weight == 1 else [weight])
    try:
        record = estimator._machine.learn(row, lesson._replace(ids=np.array([estimator._next_id])), estimator._rule())
    except Exception:  # such as a kernel that overflows
        undo()
        raise
    estimator._weighted = estimator._weighted or weight != 1
    estimator._next_id += 1
    estimator._targets.record_one(estimator, lesson, record)
    return estimator


def score_single(estimator: Any, x: Mapping[str, Any]) -> np.ndarray | None:
    """Return the scores of one sample; None before a sample was learned."""
    if not hasattr(estimator, "n_samples_seen_"):
        return None
    row = None
    if estimator._targets.is_open(estimator):
        estimator._check_fixed()
        prepare = estimator.preparation_
        row = estimator._read_one(x if prepare is None else prepare.transform_one(x))
    if row is None:
        return np.asarray(estimator._combined(one_row(x)))
    return np.asarray(estimator._targets.in_units(estimator, estimator._machine.score_one(row)))


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
