"""Several labels per sample of a stream: indicators, or lists of labels that may appear late."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..solvers.certificates import Certificate
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.label_sets import indicator_of, kind_of_labels, read_indicator, read_label_sets, sets_of
from ._arrays import IntervalRecord
from ._bounds import BoundSetting, ComparedSamples, label_certificate
from ._calibration import Calibration
from ._classes import ClassTargets
from ._counting import begin_counts, count, count_one
from ._machine import Lesson, Sources
from ._predictions import StreamPredictions
from ._stream import uninterrupted
from ._targets import Targets, read_shares


class LabelCalibration:
    """Probabilities of labels that follow a stream; see `Calibration`, which each label has."""

    def __init__(self, n_labels: int):
        self.parts = [Calibration(1) for _ in range(n_labels)]

    def copy(self) -> "LabelCalibration":
        """Return a copy that further learning does not change."""
        other = LabelCalibration(0)
        other.parts = [part.copy() for part in self.parts]
        return other

    def forget(self) -> None:
        """Follow the next samples as fast as the first ones."""
        for part in self.parts:
            part.forget()

    def remap(self, sources: Sources) -> None:
        """Replace the outputs as labels join."""
        self.parts = [self.parts[s] if s >= 0 else Calibration(1) for s, _ in sources]

    def learn(
        self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, slopes: bool, reported: bool = True
    ) -> np.ndarray | None:
        """Learn samples; return probabilities by label before each, 0 for labels that had no sample before."""
        likely = np.empty(codes.shape) if reported else None
        for t, part in enumerate(self.parts):
            unknown = part.squares[1] == 0
            own = part.learn(scores[:, t : t + 1], np.ascontiguousarray(codes[:, t]), weights, slopes, reported)
            if likely is not None and own is not None:
                likely[:, t] = own[:, 1]
                likely[:1, t] = 0.0 if unknown else likely[:1, t]
        return likely

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities of shape (n, n_labels)."""
        return np.column_stack([part.probabilities(scores[:, t : t + 1])[:, 1] for t, part in enumerate(self.parts)])


class LabelTargets(Targets):
    """Several labels per sample, each an output of its own."""

    def __init__(self, lists: bool = False):
        self.lists = lists  # of a stream that starts: whether samples have lists of labels, or an indicator

    # -- reading
    def read(self, estimator: Any, X: Views, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have labels, these labels, and the first labels of a stream that starts."""
        announced = None if classes is None else np.unique(np.asarray(classes))
        if not (self.lists if fresh else estimator._label_lists):
            return self._read_indicator(estimator, y, len(X), announced, fresh)
        known = announced if fresh else estimator.classes_
        labeled, sets = read_label_sets(y, len(X), known)
        if known is not None and (fresh or estimator._announced):
            for label in (label for row in sets for label in row):
                if label not in known:
                    raise ValueError(
                        f"The label {label!r} was not announced; the labels are {_blocks.quoted(known)}. Give all "
                        "labels by `classes=` at the first call of partial_fit, or none, to let them appear."
                    )
        if known is None:  # samples before the first label leave nothing to decide
            first = next((i for i, row in enumerate(sets) if row), len(sets))
            labeled[np.flatnonzero(labeled)[:first]] = False
            sets = sets[first:]
            if not len(sets):
                return labeled, sets, None
        names = np.unique(np.array(list(sets[0]))) if known is None else known
        return labeled, sets, (names, known is not None, True)

    def _read_indicator(
        self, estimator: Any, y: Any, n: int, announced: np.ndarray | None, fresh: bool
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        Y, labeled = read_indicator(y, n)
        L = Y.shape[1] if fresh else len(estimator.classes_)
        if Y.shape[1] != L:
            raise ValueError(f"y has {Y.shape[1]} columns; {type(estimator).__name__} began with {L} labels.")
        if announced is not None and not np.array_equal(announced, np.arange(L)):
            raise ValueError(
                f"`classes` are {_blocks.quoted(announced)}; the labels of an indicator of {L} columns are their "
                f"positions, 0 to {L - 1}. Leave `classes` out."
            )
        return labeled, Y[labeled], (np.arange(L), True, False)

    def read_all(self, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have labels, these labels, and all labels, which `fit` knows."""
        if not self.lists:
            Y, labeled = read_indicator(y, len(X))
            values, given = Y[labeled], (np.arange(Y.shape[1]), True, False)
        else:
            labeled, values = read_label_sets(y, len(X), None)
            given = (np.unique(np.array([label for row in values for label in row])), True, True)
        if not labeled.any() or not len(given[0]):
            raise ValueError("y has no label at all. Give labels for some samples.")
        return labeled, values, given

    def read_known(self, estimator: Any, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which samples have labels, and these as 0 and 1."""
        y = in_order_of(X, y, "y")
        if not estimator._label_lists:
            Y, labeled = read_indicator(y, len(X))
            return labeled, Y[labeled]
        labeled, sets = read_label_sets(y, len(X), estimator.classes_)
        return labeled, indicator_of(sets, estimator._codes)

    # -- state
    def begin(self, estimator: Any, *given: Any) -> int:
        """Set the first labels, whether they are all, and whether samples have lists; return the number of labels."""
        names, announced, lists = given
        begin_counts(estimator)
        estimator._set_classes(names)
        estimator._announced, estimator._label_lists, estimator._n_late = announced, lists, 0
        estimator._calibration = LabelCalibration(len(names))
        return len(names)

    def snapshot(self, estimator: Any) -> dict[str, Any]:
        """Return the probabilities' state, which learning changes in place."""
        return {"_calibration": estimator._calibration.copy()}

    def forget(self, estimator: Any) -> None:
        """Let probabilities follow the scores of a model that was made to forget."""
        estimator._calibration.forget()

    def certify(self, estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> Certificate:
        """Return the mistakes and their bound, the sum of those of the labels."""
        return label_certificate(estimator, given, setting)

    def names(self, estimator: Any) -> np.ndarray:
        """Return the labels."""
        return np.asarray(estimator.classes_)

    # -- learning
    def lessons(
        self, estimator: Any, y: np.ndarray, weights: np.ndarray, ids: np.ndarray
    ) -> Iterator[tuple[slice, Lesson, bool]]:
        """Yield rows whose labels are known; a label joins just before its first sample."""
        start, piece = 0, estimator._piece
        while start < len(y):
            part = y[start : start + piece]
            if estimator._label_lists:
                unknown = next((i for i, row in enumerate(part) if not estimator._codes.keys() >= set(row)), len(part))
                if unknown == 0:
                    with uninterrupted():
                        _add_labels(estimator, part[0])
                    continue
                part = indicator_of(part[:unknown], estimator._codes)
            rows = slice(start, start + len(part))
            yield rows, Lesson(part, weights[rows], ids[rows]), False
            start = rows.stop

    def record(
        self, estimator: Any, lesson: Lesson, record: IntervalRecord, *, joining: bool, first: bool
    ) -> StreamPredictions:
        """Count mistakes and errors, follow the probabilities in the first pass, and return the predictions."""
        codes, predicted = lesson.codes, (record.scores > 0).astype(np.int64)
        probabilities = estimator._calibration.learn(record.scores, codes, lesson.weights, first, lesson.likely)
        count(estimator, _mistaken(codes, record.last), (predicted != codes).any(axis=1))
        margins, names = read_shares(estimator, record, len(codes)) if lesson.shares else (None, ())
        labels = estimator.classes_
        return StreamPredictions(np.zeros(0, int), codes, predicted, labels, probabilities, margins, names)

    # -- single samples
    def lesson_of_one(self, estimator: Any, y: Any, weight: float) -> Lesson | None:
        """Return what is learned about a sample with known labels."""
        if estimator._label_lists:
            if not isinstance(y, (set, frozenset, list, tuple)) or not estimator._codes.keys() >= set(y):
                return None
            codes = indicator_of([y], estimator._codes)
        else:
            values = np.asarray(y)
            if values.shape != (len(estimator.classes_),) or values.dtype.kind not in "biuf":
                return None
            codes = values[None].astype(np.int64)
            if not (((codes == 0) | (codes == 1)) & (codes == values)).all():
                return None
        return Lesson(codes, np.array([weight]), None)

    def record_one(self, estimator: Any, lesson: Lesson, record: IntervalRecord) -> None:
        """Count a single sample, and follow the probabilities."""
        codes, predicted = lesson.codes, record.scores > 0
        estimator._calibration.learn(record.scores, codes, lesson.weights, estimator.n_iter_ == 1, False)
        count_one(estimator, bool(_mistaken(codes, record.last)[0]), bool((predicted != codes).any()))

    def one(self, estimator: Any, scores: np.ndarray) -> Any:
        """Return the labels of a single sample: a list, or an indicator."""
        indicator = (scores > 0).astype(int)
        return sets_of(indicator, estimator.classes_)[0] if estimator._label_lists else indicator[0]


def _mistaken(codes: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return which samples have a label that the last hypothesis decided wrongly; a tie is one."""
    return np.asarray(((2 * codes - 1) * last <= 0).any(axis=1))


def _add_labels(estimator: Any, new: tuple[Any, ...]) -> None:
    """Continue with the labels of a sample, some of which were not known before."""
    before = estimator.classes_
    labels = np.unique(np.append(before, np.array(list(new))))
    sources = [(int(np.searchsorted(before, name)), 1.0) if name in before else (-1, 0.0) for name in labels]
    estimator._set_classes(labels)
    estimator._n_late += 1
    estimator._calibration.remap(sources)
    estimator._machine.remap_outputs(sources)


# -- the kind of a stream
_CLASSES, _LABELS, _LISTS = ClassTargets(), LabelTargets(), LabelTargets(lists=True)


def targets_of(estimator: Any) -> Targets:
    """Return the kind of targets that a classifier learns or began to learn."""
    return _LABELS if estimator._indicator else _CLASSES


def targets_for(estimator: Any, y: Any) -> Targets:
    """Return the kind of targets of an estimator that starts with y."""
    own: Targets = estimator._targets
    if not isinstance(own, (ClassTargets, LabelTargets)):
        return own
    kind = kind_of_labels(y)
    if kind is None:
        return _CLASSES
    if not estimator._multi_label:
        raise ValueError(
            f"{type(estimator).__name__} with these parameters learns one class per sample, and y has several labels "
            "per sample. Use PassiveAggressive, OnlinePerceptron(p=2), OrthogonalPerceptron or KernelPerceptron, "
            "without votes."
        )
    return _LABELS if kind == "indicator" else _LISTS
