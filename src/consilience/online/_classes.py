"""Classes of a stream: announced or late, their codes, predictions and probabilities."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..solvers.certificates import Certificate
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.validation import read_labels, read_stream_labels
from ._bounds import BoundSetting, ComparedSamples, mistake_certificate
from ._calibration import Calibration
from ._counting import begin_counts, count, count_one
from ._machine import Lesson
from ._predictions import StreamPredictions
from ._stream import uninterrupted
from ._targets import Targets, read_shares


class ClassTargets(Targets):
    """One class per sample."""

    # -- reading
    def read(self, estimator: Any, X: Views, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have a class, these classes, and the first classes of a stream that starts."""
        announced = None if classes is None else read_labels(np.asarray(classes), len(classes)).classes
        known = announced if fresh else estimator.classes_
        labeled, labels = read_stream_labels(y, len(X), known)
        if not fresh and announced is not None and not np.isin(announced, estimator.classes_).all():
            before = _blocks.quoted(estimator.classes_)
            raise ValueError(f"`classes` are {_blocks.quoted(announced)} now, but {before} at the first call.")
        late = estimator._late_classes
        if fresh and announced is None and not late:
            announced = known = np.unique(labels)  # the first chunk announces them
        if known is not None and (announced is not None or (not fresh and estimator._announced)):
            _check_announced(labels, known, late)
        if fresh and known is None and not len(labels):
            return labeled, labels, None
        return labeled, labels, (np.unique(labels[:1]) if announced is None else announced, announced is not None)

    def read_all(self, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have a class, these classes, and all classes, which `fit` knows."""
        labels = read_labels(y, len(X))
        return labels.labeled, labels.classes[labels.codes[labels.labeled]], (labels.classes, True)

    def read_known(self, estimator: Any, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which samples have a class, and the codes of their classes."""
        labels = read_labels(in_order_of(X, y, "y"), len(X), classes=estimator.classes_)
        return labels.labeled, labels.codes[labels.labeled]

    # -- state
    def begin(self, estimator: Any, *given: Any) -> int:
        """Set the first classes, and whether they are all; return the number of outputs."""
        classes, announced = given
        begin_counts(estimator)
        estimator._set_classes(classes)
        estimator._announced = announced
        estimator._n_late = 0  # samples whose class was not known before
        n_outputs = 1 if len(classes) <= 2 else len(classes)
        estimator._calibration = Calibration(n_outputs)
        return n_outputs

    def snapshot(self, estimator: Any) -> dict[str, Any]:
        """Return the probabilities' state, which learning changes in place."""
        return {"_calibration": estimator._calibration.copy()}

    def forget(self, estimator: Any) -> None:
        """Let probabilities follow the scores of a model that was made to forget."""
        estimator._calibration.forget()

    def certify(self, estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> Certificate:
        """Return the mistakes and their bound."""
        return mistake_certificate(estimator, given, setting)

    def names(self, estimator: Any) -> np.ndarray:
        """Return the classes."""
        return np.asarray(estimator.classes_)

    def is_open(self, estimator: Any) -> bool:
        """Return whether there are two classes to decide between."""
        return len(estimator.classes_) > 1

    # -- learning
    def lessons(
        self, estimator: Any, y: np.ndarray, weights: np.ndarray, ids: np.ndarray
    ) -> Iterator[tuple[slice, Lesson, bool]]:
        """Yield rows whose classes are known; a class joins just before its first sample."""
        start, piece = 0, estimator._piece
        while start < len(y):
            codes, unknown = class_codes(y[start : start + 64], estimator.classes_)  # new classes mostly come early
            if unknown < 0:
                codes, unknown = class_codes(y[start : start + piece], estimator.classes_)
            joining = unknown == 0 or (estimator.n_samples_seen_ == 0 and not estimator._announced)
            if unknown == 0:
                with uninterrupted():
                    estimator._add_class(np.unique(np.append(estimator.classes_, y[start : start + 1])))
                # with the new class among the classes
                codes, unknown = class_codes(y[start : start + piece], estimator.classes_)
            stop = start + (len(codes) if unknown < 0 else unknown)  # up to the next unknown class
            rows = slice(start, stop)
            yield rows, Lesson(codes[: stop - start], weights[rows], ids[rows]), joining
            start = stop

    def record(self, estimator: Any, lesson: Lesson, record: Any, *, joining: bool, first: bool) -> StreamPredictions:
        """Count mistakes and errors, follow the probabilities in the first pass, and return the predictions."""
        codes, scores, wrong = lesson.codes, record.scores, record.wrong
        classes = estimator.classes_
        if len(classes) == 1:
            predicted, probabilities = np.zeros_like(codes), np.ones((len(codes), 1))
        else:
            predicted = _led(scores)
            probabilities = estimator._calibration.learn(scores, codes, lesson.weights, first, lesson.likely)
        if not estimator._averages():
            predicted[wrong & (predicted == codes)] = -1  # a lead within rounding is a tie
        if joining:  # the class was not known when it had to be predicted
            wrong[0] = True
            estimator._n_late += 1
            _without_new(codes[0], scores[0], predicted, probabilities, estimator.n_samples_seen_ == 0)
        count(estimator, wrong, predicted != codes)
        margins, names = read_shares(estimator, record, len(codes)) if lesson.shares else (None, ())
        return StreamPredictions(np.zeros(0, int), codes, predicted, classes, probabilities, margins, names)

    # -- single samples
    def lesson_of_one(self, estimator: Any, y: Any, weight: float) -> Lesson | None:
        """Return what is learned about a sample of a known class."""
        try:
            code = estimator._codes.get(y, -1)
        except TypeError:  # not a label at all: partial_fit says so
            return None
        return None if code < 0 or len(estimator.classes_) < 2 else Lesson(np.array([code]), np.array([weight]), None)

    def record_one(self, estimator: Any, lesson: Lesson, record: Any) -> None:
        """Count a single sample, and follow the probabilities."""
        code, wrong, scores = int(lesson.codes[0]), bool(record.wrong[0]), record.scores
        estimator._calibration.learn(scores, lesson.codes, lesson.weights, estimator.n_iter_ == 1, False)
        error = wrong
        if estimator._averages():
            error = bool(_led(scores)[0] != code)
        count_one(estimator, wrong, error)

    def one(self, estimator: Any, scores: np.ndarray) -> Any:
        """Return the class of a single sample."""
        best = int(scores[0, 0] > 0) if scores.shape[1] == 1 else int(scores[0].argmax())
        return estimator.classes_[best if len(estimator.classes_) > 1 else 0]


def _led(scores: np.ndarray) -> np.ndarray:
    """Return the positions of the classes that lead, -1 where two classes tie up to rounding."""
    if scores.shape[1] == 1:
        return np.where(scores[:, 0] == 0, -1, scores[:, 0] > 0).astype(np.int64)
    best = scores.argmax(axis=1)
    lead = scores[np.arange(len(best)), best][:, None] - scores
    tied = (lead <= 1e-12 * np.abs(scores).max(axis=1, keepdims=True)).sum(axis=1) > 1
    return np.where(tied, -1, best)


def _without_new(
    code: int, scores: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, nothing: bool
) -> None:
    """Set prediction and probabilities of the first sample to what they were before its class joined."""
    if probabilities is not None:
        probabilities[0, code] = 0.0
        rest = probabilities[0].sum()
        probabilities[0] /= rest or 1.0
    if nothing:
        predicted[0] = -1
        return
    if len(scores) == 1:
        predicted[0] = 1 - code
        return
    led = _led(np.delete(scores, code)[None])[0]
    predicted[0] = led + (led >= code)


# -- codes
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


def _check_announced(labels: np.ndarray, classes: np.ndarray, late: bool) -> None:
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
