"""Sums from which the measures of a stream are computed: of all samples, of a window, and fading ones.

Each sum has three rows: of the whole stream, of the current window, and of the stream with weights that fade. Samples
are added one after the other by compiled loops, so the sums do not depend on how a stream is cut. Fading sums are kept
as multiples: instead of making old samples lighter, each new sample is heavier than the one before.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._jit import jit
from ._stream_states import restored_array

WHOLE, WINDOW, FADING = range(3)
BINS = 1000  # intervals of probabilities, for areas under the curve
_TOO_HEAVY = 1e100
_SMALLEST = float(np.finfo(np.float64).eps)  # as scikit-learn's log loss


class Along(NamedTuple):
    """Values of each sample: the error so far, that of the baseline, and a signal in [0, 1] for drift."""

    error: np.ndarray
    baseline: np.ndarray
    signal: np.ndarray


class ClassScores(NamedTuple):
    """Measures of a class or label: the weight of its samples, recall and precision.

    Parameters
    ----------
    weight : float
        Sum of the weights of its samples; their number, if there are no sample weights.
    recall : float
        Share of its samples that were predicted as this class.
    precision : float
        Share of the samples predicted as this class that are of it.
    """

    weight: float
    recall: float
    precision: float


class Sums(ABC):
    """Sums of a stream; a subclass has arrays, named in `_arrays`, whose first axis are the three kinds of sums."""

    names: tuple[str, ...] = ()  # measures
    defaults: tuple[str, ...] = ()
    _arrays: tuple[str, ...] = ()
    _single: tuple[str, ...] = ()  # arrays without the axis of the kinds
    classes: np.ndarray | None = None

    def __init__(self, measures: tuple[str, ...], fading: float):
        self.measures, self.fading = measures, fading

    @abstractmethod
    def add(self, found: Any, rows: slice, weights: np.ndarray) -> Along:
        """Add samples in order."""

    @abstractmethod
    def values(self, kind: int, baseline: bool = False) -> dict[str, float]:
        """Return the measures by name."""

    def by_class(self) -> dict[Any, ClassScores]:
        """Return recall and precision of each class; nothing for regression."""
        return {}

    def extend(self, classes: np.ndarray | None) -> None:
        """Make room for classes that joined; regression has none."""
        self.classes = classes

    def end_window(self) -> None:
        """Start the next window."""
        for name in self._arrays:
            getattr(self, name)[WINDOW] = 0.0

    def state(self) -> dict[str, Any]:
        """Return the sums as a dict of arrays."""
        kept = {name: getattr(self, name).copy() for name in (*self._arrays, *self._single)}
        return kept if self.classes is None else {**kept, "classes": self.classes}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; a ValueError if it cannot be one."""
        classes = state.get("classes")
        if (classes is None) != (self.classes is None):
            raise ValueError("The state of the stream is damaged: it has other classes than the model.")
        if classes is not None:
            if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(set(classes.tolist())) != len(classes):
                raise ValueError("The state of the stream is damaged: its classes are not an array of distinct values.")
            self.extend(classes)
        for name in (*self._arrays, *self._single):
            setattr(self, name, restored_array(state, name, getattr(self, name)))


def _places(before: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the positions of the classes before among those now."""
    at = {label: k for k, label in enumerate(classes.tolist())}
    lost = [label for label in before.tolist() if label not in at]
    if lost:
        raise ValueError(f"The class {lost[0]!r} was in the stream and is not among the classes of the model now.")
    return np.array([at[label] for label in before.tolist()], dtype=np.int64)


def _divided(a: Any, b: Any) -> Any:
    """Return a / b, NaN where b is 0."""
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=np.asarray(b) > 0)


# -- classes
class ClassSums(Sums):
    """Sums for classification: confusions, losses, and numbers of samples by probability."""

    names = ("error", "accuracy", "balanced_accuracy", "f1", "log_loss", "roc_auc")
    defaults = ("error", "balanced_accuracy", "log_loss")
    _arrays = ("totals", "confusion", "guessed", "losses", "areas")
    _single = ("seen", "running", "heavy")

    def __init__(self, measures: tuple[str, ...], fading: float):
        super().__init__(measures, fading)
        self.classes: np.ndarray = np.array([])
        self.totals = np.zeros(3)  # weight of all samples
        self.confusion = np.zeros((3, 0, 1))  # true class, predicted class after a column for none
        self.guessed = np.zeros((3, 0, 1))  # of the baseline
        self.losses = np.zeros((3, 2))  # of the estimator and the baseline
        self.areas = np.zeros((3, 0, 2, BINS if "roc_auc" in measures else 0))
        self.seen = np.zeros(0)  # weight of each class so far
        self.running = np.zeros(3)  # weight of all samples, of mistakes, and of those of the baseline
        self.heavy = np.ones(1)  # weight of the next sample in the fading sums

    def extend(self, classes: np.ndarray | None) -> None:
        assert classes is not None
        if len(classes) == len(self.classes) and np.array_equal(classes, self.classes):
            return
        at, n, n_bins = _places(self.classes, classes), len(classes), self.areas.shape[3]
        for name in ("confusion", "guessed"):
            old, new = getattr(self, name), np.zeros((3, n, n + 1))
            new[np.ix_(np.arange(3), at, np.r_[0, at + 1])] = old
            setattr(self, name, new)
        areas = np.zeros((3, n, 2, n_bins))
        if n_bins:  # samples before a class joined gave it the probability 0
            areas[:, :, 0, 0] = self.totals[:, None]
        areas[:, at] = self.areas
        seen = np.zeros(n)
        seen[at] = self.seen
        self.areas, self.seen, self.classes = areas, seen, classes

    def add(self, found: Any, rows: slice, weights: np.ndarray) -> Along:
        y, predicted = found.y[rows].astype(np.int64), found.predicted[rows].astype(np.int64)
        n = len(self.classes)
        if len(y) and (y.min() < 0 or y.max() >= n or predicted.min() < -1 or predicted.max() >= n):
            raise ValueError(f"The predictions point outside the {n} classes.")
        shares = found.probabilities
        shares = np.zeros((len(y), 0)) if shares is None else np.ascontiguousarray(shares[rows], dtype=np.float64)
        if shares.shape not in ((len(y), n), (len(y), 0)):
            raise ValueError(f"The probabilities have the shape {shares.shape}; expected {(len(y), n)}.")
        along = np.empty((2, len(y)))
        sums = self.totals, self.confusion, self.guessed, self.losses, self.areas
        counts = self.seen, self.running, self.heavy
        _add_classes(y, predicted, shares, weights, 1.0 / self.fading, sums, counts, along)
        return Along(along[0], along[1], (y != predicted).astype(np.float64))

    def values(self, kind: int, baseline: bool = False) -> dict[str, float]:
        counts = (self.guessed if baseline else self.confusion)[kind]
        right, true, total = np.diag(counts[:, 1:]), counts.sum(axis=1), self.totals[kind]
        found = {}
        for name in self.measures:
            if not total > 0:
                found[name] = np.nan
            elif name in ("error", "accuracy"):
                share = right.sum() / total
                found[name] = share if name == "accuracy" else (total - right.sum()) / total
            elif name == "balanced_accuracy":
                found[name] = np.mean(right[true > 0] / true[true > 0])
            elif name == "f1":
                both = true + counts[:, 1:].sum(axis=0)
                found[name] = np.mean(2 * right[both > 0] / both[both > 0]) if (both > 0).any() else np.nan
            elif name == "log_loss":
                found[name] = self.losses[kind, int(baseline)] / total
            else:
                found[name] = 0.5 if baseline else _mean_area(self.areas[kind])
        return {name: float(value) for name, value in found.items()}

    def by_class(self) -> dict[Any, ClassScores]:
        counts = self.confusion[WHOLE]
        right, true, predicted = np.diag(counts[:, 1:]), counts.sum(axis=1), counts[:, 1:].sum(axis=0)
        rows = zip(true.tolist(), _divided(right, true).tolist(), _divided(right, predicted).tolist(), strict=True)
        return dict(zip(self.classes.tolist(), map(ClassScores._make, rows), strict=True))


def _mean_area(counts: np.ndarray) -> float:
    """Return the mean over classes of the area under the ROC curve of this class against the others."""
    negative, positive = counts[:, 0], counts[:, 1]
    below = np.cumsum(negative, axis=1) - negative / 2  # samples in the same interval are ties
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    areas = _divided((positive * below).sum(axis=1), pairs)
    known = areas[np.isfinite(areas)]
    return float(known.mean()) if len(known) else np.nan


@jit()
def _add_classes(y, predicted, shares, weights, growth, sums, counts, along):  # type: ignore[no-untyped-def]
    totals, confusion, guessed, losses, areas = sums
    seen, running, heavy = counts
    n, n_bins, known = len(seen), areas.shape[3], shares.shape[1] > 0
    guess = int(np.argmax(seen)) if n and seen.max() > 0 else -1
    for i in range(len(y)):
        k, w = y[i], weights[i]
        share = seen[k] / running[0] if running[0] > 0 else 0.0
        own_loss = -np.log(min(max(shares[i, k], _SMALLEST), 1 - _SMALLEST)) if known else 0.0
        base_loss = -np.log(min(max(share, _SMALLEST), 1 - _SMALLEST))
        for kind in range(3):
            v = w * heavy[0] if kind == 2 else w
            totals[kind] += v
            confusion[kind, k, predicted[i] + 1] += v
            guessed[kind, k, guess + 1] += v
            losses[kind, 0] += v * own_loss
            losses[kind, 1] += v * base_loss
            for c in range(n if n_bins else 0):
                at = min(max(int(shares[i, c] * n_bins), 0), n_bins - 1) if known else 0
                areas[kind, c, 1 if c == k else 0, at] += v
        running[0] += w
        running[1] += w if predicted[i] != k else 0.0
        running[2] += w if guess != k else 0.0
        seen[k] += w
        if guess < 0 or seen[k] > seen[guess] or (seen[k] == seen[guess] and k < guess):
            guess = k if seen[k] > 0 else guess
        along[0, i] = running[1] / running[0] if running[0] > 0 else np.nan
        along[1, i] = running[2] / running[0] if running[0] > 0 else np.nan
        heavy[0] *= growth
        if heavy[0] > _TOO_HEAVY:
            totals[2] /= _TOO_HEAVY
            confusion[2] /= _TOO_HEAVY
            guessed[2] /= _TOO_HEAVY
            losses[2] /= _TOO_HEAVY
            areas[2] /= _TOO_HEAVY
            heavy[0] /= _TOO_HEAVY


# -- numbers
class NumberSums(Sums):
    """Sums for regression: of errors, and the mean and the spread of the targets."""

    names = ("mae", "rmse", "r2")
    defaults = names
    _arrays = ("sums",)

    def __init__(self, measures: tuple[str, ...], fading: float):
        super().__init__(measures, fading)
        # weight, mean and squared deviations of targets; absolute and squared errors, and those of the baseline
        self.sums = np.zeros((3, 7))

    def add(self, found: Any, rows: slice, weights: np.ndarray) -> Along:
        y, predicted = (np.ascontiguousarray(v[rows], dtype=np.float64) for v in (found.y, found.predicted))
        along = np.empty((3, len(y)))
        _add_numbers(y, predicted, weights, self.fading, self.sums, along)
        return Along(*along)

    def values(self, kind: int, baseline: bool = False) -> dict[str, float]:
        weight, _, spread = self.sums[kind, :3]
        absolute, squared = self.sums[kind, 5:7] if baseline else self.sums[kind, 3:5]
        if not weight > 0:
            return dict.fromkeys(self.measures, float("nan"))
        r2 = 1 - squared / spread if spread > 0 else np.nan
        found = {"mae": absolute / weight, "rmse": np.sqrt(squared / weight), "r2": r2}
        return {name: float(found[name]) for name in self.measures}


@jit()
def _add_numbers(y, predicted, weights, fading, sums, along):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        error, gap, w = abs(y[i] - predicted[i]), abs(y[i] - sums[0, 1]), weights[i]  # the mean so far; 0 at first
        usual = sums[0, 3] / sums[0, 0] if sums[0, 0] > 0 else 0.0
        along[2, i] = error / (error + usual) if error > 0 else 0.0
        for kind in range(3):
            own = sums[kind]
            if kind == 2:
                own[0] *= fading
                own[2:] *= fading
            own[0] += w
            before = own[1]
            if w > 0:
                own[1] += w / own[0] * (y[i] - before)
            own[2] += w * (y[i] - before) * (y[i] - own[1])
            own[3] += w * error
            own[4] += w * error * error
            own[5] += w * gap
            own[6] += w * gap * gap
        along[0, i] = sums[0, 3] / sums[0, 0] if sums[0, 0] > 0 else np.nan
        along[1, i] = sums[0, 5] / sums[0, 0] if sums[0, 0] > 0 else np.nan


# -- several labels
class LabelSums(Sums):
    """Sums for several labels: samples with a mistake, wrong labels, and counts of each label."""

    names = ("error", "hamming")
    defaults = names
    _arrays = ("sums", "labels")
    _single = ("seen", "running", "heavy")

    def __init__(self, measures: tuple[str, ...], fading: float):
        super().__init__(measures, fading)
        self.classes: np.ndarray = np.array([])
        self.sums = np.zeros((3, 5))  # weight; samples with a mistake and wrong labels, then those of the baseline
        self.labels = np.zeros((3, 0, 3))  # weight of each label: true, predicted, both
        self.seen = np.zeros(0)  # weight of each label so far
        self.running = np.zeros(3)  # weight of all samples, of mistakes, and of those of the baseline
        self.heavy = np.ones(1)

    def extend(self, classes: np.ndarray | None) -> None:
        assert classes is not None
        if len(classes) == len(self.classes) and np.array_equal(classes, self.classes):
            return
        at, labels, seen = _places(self.classes, classes), np.zeros((3, len(classes), 3)), np.zeros(len(classes))
        labels[:, at], seen[at] = self.labels, self.seen
        self.labels, self.seen, self.classes = labels, seen, classes

    def add(self, found: Any, rows: slice, weights: np.ndarray) -> Along:
        y, predicted = (np.ascontiguousarray(v[rows] != 0) for v in (found.y, found.predicted))
        if y.shape[1:] != (len(self.classes),) or predicted.shape != y.shape:
            raise ValueError(
                f"The predictions have the shape {predicted.shape}; expected {(len(y), len(self.classes))}."
            )
        along = np.empty((2, len(y)))
        _add_labels(
            y, predicted, weights, 1.0 / self.fading, self.sums, self.labels, self.seen, self.running, self.heavy, along
        )
        return Along(along[0], along[1], (y != predicted).any(axis=1).astype(np.float64))

    def values(self, kind: int, baseline: bool = False) -> dict[str, float]:
        weight, (wrong, labels) = self.sums[kind, 0], self.sums[kind, 3:] if baseline else self.sums[kind, 1:3]
        if not weight > 0:
            return dict.fromkeys(self.measures, float("nan"))
        found = {"error": wrong / weight, "hamming": labels / (weight * max(len(self.classes), 1))}
        return {name: float(found[name]) for name in self.measures}

    def by_class(self) -> dict[Any, ClassScores]:
        true, predicted, both = self.labels[WHOLE].T
        rows = zip(true.tolist(), _divided(both, true).tolist(), _divided(both, predicted).tolist(), strict=True)
        return dict(zip(self.classes.tolist(), map(ClassScores._make, rows), strict=True))


@jit()
def _add_labels(y, predicted, weights, growth, sums, labels, seen, running, heavy, along):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        w, wrong, guessed_wrong = weights[i], 0, 0
        for c in range(len(seen)):
            guess = 2 * seen[c] > running[0]
            wrong += y[i, c] != predicted[i, c]
            guessed_wrong += y[i, c] != guess
            seen[c] += w if y[i, c] else 0.0
        for kind in range(3):
            v = w * heavy[0] if kind == 2 else w
            sums[kind, 0] += v
            sums[kind, 1] += v * (wrong > 0)
            sums[kind, 2] += v * wrong
            sums[kind, 3] += v * (guessed_wrong > 0)
            sums[kind, 4] += v * guessed_wrong
            for c in range(len(seen)):
                labels[kind, c, 0] += v * y[i, c]
                labels[kind, c, 1] += v * predicted[i, c]
                labels[kind, c, 2] += v * (y[i, c] and predicted[i, c])
        running[0] += w
        running[1] += w * (wrong > 0)
        running[2] += w * (guessed_wrong > 0)
        along[0, i] = running[1] / running[0] if running[0] > 0 else np.nan
        along[1, i] = running[2] / running[0] if running[0] > 0 else np.nan
        heavy[0] *= growth
        if heavy[0] > _TOO_HEAVY:
            sums[2] /= _TOO_HEAVY
            labels[2] /= _TOO_HEAVY
            heavy[0] /= _TOO_HEAVY
