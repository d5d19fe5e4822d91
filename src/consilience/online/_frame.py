"""The frame of every online learner: chunks, classes that come late, epochs, counts, single samples."""

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._progress import report_progress
from ..kernels.by_view import as_part, reads_gram
from ..solvers.certificates import Certificate
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views.container import Views
from ..views.estimator import ViewClassifier, ViewEstimator
from ..views.validation import read_labels, read_stream_labels, read_views_to_learn, read_views_to_predict, remember


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until a piece of learning is whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: asked.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if asked and callable(before):
            before(*asked[0])


class OnlineLearner(ViewClassifier, ViewEstimator, ABC):
    """A learner that sees samples one after the other; any chunking of the same samples gives the same decisions.

    Views and classes join just before their first sample, and what rounding cannot tell apart counts as equal, so that
    counts are the same and scores agree up to rounding, however a stream is cut.

    Subclasses define `_start` (empty state for ``classes_``), `_grow` (make room for a class), `_learn` (one pass over
    a piece) and `_scores`. Parameters `max_iter`, `shuffle` and `random_state` are those of `fit`.
    """

    classes_: np.ndarray
    max_iter: int
    shuffle: bool
    random_state: Any
    n_updates_: int  # how often the state changed
    _late_classes = True  # whether classes can appear that were not announced
    _piece = 65536  # samples learned at a time; Ctrl-C waits for that long

    def _view_is_gram(self, name: str) -> bool:
        return reads_gram(getattr(self, "kernel", None), name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    @abstractmethod
    def _start(self) -> None:
        """Set the empty state; views make themselves known as they come."""

    def _grow(self, before: np.ndarray) -> None:
        """Go on with more classes than before; for learners with late classes."""
        raise TypeError(f"{type(self).__name__} needs all its classes at the first call.")

    @abstractmethod
    def _learn(self, X: Any, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn samples in order; return their scores before learning, and where the decision was wrong.

        Scores are (n, 1) for two classes, else (n, n_classes). X has every view seen so far, absent where it was not
        given; `ids` name the samples, the same again in another epoch, an array or a range.
        """

    @abstractmethod
    def _scores(self, X: Views) -> np.ndarray:
        """Scores of shape (n, 1) for two classes, (n, n_classes) for more."""

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, in a sentence."""

    def _check_views(self, X: Views, whole: bool) -> None:
        """Refuse views that cannot be learned from, before anything changes; `whole` where all samples are given."""
        for name in X.names:
            if not whole and X.kind(name) in ("dense", "sparse") and self._view_is_gram(name):
                raise ValueError(
                    f"View '{name}' is to be a Gram matrix, and a stream needs kernels between samples of all chunks. "
                    f"Give rows of Views(..., precomputed='{name}'), or all samples at once to `fit`."
                )

    def _settings(self) -> tuple[Any, ...]:
        """The parameters that the state was made with and cannot change while learning goes on."""
        names = ("average", "p", "fit_intercept", "budget", "unequal", "prior_norms", "aggressive")
        return tuple((name, getattr(self, name)) for name in names if hasattr(self, name))

    def _check_settings(self) -> None:
        for (name, before), (_, now) in zip(self._started_with, self._settings(), strict=True):
            if before is not now and before != now:
                raise ValueError(
                    f"`{name}` was {before!r} when learning began and is {now!r} now. Set it back, or start anew with "
                    "clone(model)."
                )

    # -- learning
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn a chunk of samples, in order.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples. Views may be absent, and new ones may appear.
        y : array-like of shape (n_samples,)
            Their classes; samples without one are passed over.
        classes : array-like, optional
            All classes there will be, at the first call. Where none are given, classes appear with their first sample.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        fresh = not hasattr(self, "n_samples_seen_")
        if not fresh:
            self._check_settings()
        X = read_views_to_learn(self, X, fresh)
        announced = None if classes is None else read_labels(np.asarray(classes), len(classes)).classes
        known = announced if fresh else self.classes_
        labeled, labels = read_stream_labels(y, len(X), known)
        if not fresh and announced is not None and not np.isin(announced, self.classes_).all():
            raise ValueError(
                f"`classes` are {_blocks.quoted(announced)} now, but {_blocks.quoted(self.classes_)} at the first call."
            )
        if fresh and announced is None and not self._late_classes:
            announced = known = np.unique(labels)
        if known is not None and (announced is not None or (not fresh and self._announced)):
            _check_announced(labels, known, self._late_classes)
        if fresh and known is None and not len(labels):
            return self  # nothing to learn from yet
        self._check_views(X, whole=False)
        before = self._snapshot()
        try:
            if fresh:
                self._begin(np.unique(labels[:1]) if announced is None else announced, announced is not None)
            remember(self, X)
            if len(labels):
                ids = range(self._next_id, self._next_id + len(labels))
                self._next_id += len(labels)
                self._pass(X if labeled.all() else X[labeled], labels, ids)
            self._used_views = self._met or self.view_names_in_
        except Exception:  # such as a kernel that overflows: the chunk leaves no trace
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _snapshot(self) -> dict[str, Any]:
        """What brings the learner back to where it is now, should a chunk be refused halfway."""
        return {**self.__dict__, "_curve": list(self._curve)} if hasattr(self, "_curve") else dict(self.__dict__)

    def _begin(self, classes: np.ndarray, announced: bool) -> None:
        self._known: dict[str, Any] = {}
        self.classes_, self._announced = classes, announced
        self.n_samples_seen_ = self.n_mistakes_ = 0
        self._late = 0  # samples whose class was not known before
        self._next_id = 0  # of samples to come
        self._passes = 1  # over the same samples
        self._met: tuple[str, ...] = ()  # views that some sample had
        self._started_with = self._settings()
        self._curve: list[tuple[int, int]] = []
        self._start()

    def _pass(self, X: Views, labels: np.ndarray, ids: Any) -> None:
        """Learn samples in order; a view that is new joins just before its first sample, however the stream is cut."""
        first = {name: int(X.present(name).argmax()) for name in X.names if name not in self._met and _occurs(X, name)}
        edges = [0, *sorted({row for row in first.values() if row > 0}), len(labels)]
        for start, stop in pairwise(edges):
            met = {*self._met, *(name for name, row in first.items() if row == start)}
            self._met = tuple(name for name in X.names if name in met)
            self._pass_known(X[start:stop], labels[start:stop], ids[start:stop])

    def _pass_known(self, X: Views, labels: np.ndarray, ids: Any) -> None:
        """Learn samples in order, in pieces; a class that is new joins just before its first sample."""
        start, n, chunk = 0, len(labels), self._ready(X)
        while start < n:
            codes, unknown = _codes(labels[start : start + 64], self.classes_)  # new classes mostly come early
            if unknown < 0:
                codes, unknown = _codes(labels[start : start + self._piece], self.classes_)
            new = unknown == 0 or (self.n_samples_seen_ == 0 and not self._announced)
            if unknown == 0:
                with uninterrupted():
                    before, self.classes_ = (
                        self.classes_,
                        np.unique(np.append(self.classes_, labels[start : start + 1])),
                    )
                    self._grow(before)
                codes, unknown = _codes(labels[start : start + self._piece], self.classes_)
            stop = start + (len(codes) if unknown < 0 else unknown)
            with uninterrupted():
                _, wrong = self._learn(chunk[start:stop], codes[: stop - start], ids[start:stop])
                if new:
                    wrong[0] = True  # the class was not known when it had to be predicted
                    self._late += 1
                self._count(wrong)
            start = stop

    def _ready(self, X: Views) -> Any:
        """A chunk as `_learn` takes its pieces."""
        return X

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and pass over the samples `max_iter` times, or until a pass changes nothing.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,)
            Their classes; samples without one are left out.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        check_count("max_iter", self.max_iter)
        with self._restore_on_error():
            X = read_views_to_learn(self, X, fresh=True, grams=True)
            labels = read_labels(y, len(X))
            given = np.flatnonzero(labels.labeled)
            X = X if len(given) == len(X) else X[given]
            values, rng = labels.classes[labels.codes[given]], check_random_state(self.random_state)
            if hasattr(self, "n_samples_seen_"):
                del self.n_samples_seen_
            self._check_views(X, whole=True)
            self._begin(labels.classes, announced=True)
            remember(self, X)
            self._prepare(X)
            self._next_id = len(labels.labeled)
            self.separated_ = False
            for number in range(1, self.max_iter + 1):
                self._passes = number
                report_progress(number, None, of=self.max_iter, unit=f"{self.n_mistakes_:,} mistakes, pass")
                order = rng.permutation(len(X)) if self.shuffle else None
                before = self.n_updates_
                if order is None:
                    self._pass(X, values, given)
                else:
                    self._pass(X[order], values[order], given[order])
                if self.n_updates_ == before:
                    self.separated_ = True
                    break
            self._used_views = self._met or self.view_names_in_
        return self

    def _prepare(self, X: Views) -> None:
        """Take from all samples of `fit` what kernels take from data."""

    def learn_one(self, x: Mapping[str, Any], y: Any) -> Self:
        """Learn one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view; absent views are left out.
        y : object
            Its class.

        Returns
        -------
        self
            The learner.
        """
        return self.partial_fit(one_row(x), [y])

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the class of one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view; absent views are left out.

        Returns
        -------
        object
            The class; None before a sample was learned.
        """
        return self.predict(one_row(x))[0] if hasattr(self, "n_samples_seen_") else None

    # -- predicting
    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        self._check_settings()
        return self._scores(X)

    # -- counting
    @property
    def error_curve_(self) -> np.ndarray:
        """The progressive error: rows of (samples seen, share of mistakes), thinned out geometrically."""
        check_is_fitted(self, "n_samples_seen_")
        curve = np.array(self._curve, dtype=np.float64).reshape(-1, 2)
        return np.column_stack([curve[:, 0], curve[:, 1] / np.maximum(curve[:, 0], 1)])

    def _count(self, wrong: np.ndarray) -> None:
        first, mistaken = self.n_samples_seen_, np.flatnonzero(wrong)
        kept = _marks(first, first + len(wrong))
        total = self.n_mistakes_ + np.searchsorted(mistaken, kept - first)
        self._curve.extend(zip(kept.tolist(), total.tolist(), strict=True))
        self.n_samples_seen_ += len(wrong)
        self.n_mistakes_ += len(mistaken)

    def _count_one(self, wrong: bool) -> None:
        self.n_samples_seen_ += 1
        self.n_mistakes_ += wrong
        if self.n_samples_seen_ % (1 << max(self.n_samples_seen_.bit_length() - 8, 0)) == 0:
            self._curve.append((self.n_samples_seen_, self.n_mistakes_))

    def certificate(self) -> Certificate:
        """Return what is proved about the stream.

        Returns
        -------
        Certificate
            Bounds where the learner has them; prints as a sentence.
        """
        check_is_fitted(self, "n_samples_seen_")
        return Certificate(status="streamed")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _occurs(X: Views, name: str) -> bool:
    return X.block(name) is not None and bool(X.present(name).any())


def _marks(first: int, last: int) -> np.ndarray:
    """The counts in (first, last] that the error curve keeps: about 128 a doubling."""
    marks = []
    for octave in range(int(first + 1).bit_length() - 1, int(last).bit_length()):
        spacing = 1 << max(octave - 7, 0)
        low, high = max(first + 1, 1 << octave), min(last, (2 << octave) - 1)
        marks.append(np.arange(-(-low // spacing) * spacing, high + 1, spacing))
    return np.concatenate(marks)


def _codes(labels: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, int]:
    """Positions of labels among the classes, and that of the first label that is not among them (-1: all are)."""
    if len(classes) <= 2:  # many times faster than to search
        codes = (labels == classes[-1]).astype(np.int64) if len(classes) > 1 else np.zeros(len(labels), dtype=np.int64)
        foreign = (labels != classes[0]) & (labels != classes[-1])
    else:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        foreign = classes[codes] != labels
    return codes, int(foreign.argmax()) if foreign.any() else -1


def _check_announced(labels: np.ndarray, classes: np.ndarray, late: bool) -> None:
    unknown = _codes(labels, classes)[1] if len(labels) else -1
    if unknown >= 0:
        raise ValueError(
            f"The class {labels[unknown].item()!r} was not announced; the classes are {_blocks.quoted(classes)}. Give "
            f"all classes by `classes=` at the first call of partial_fit{', or none, to let them appear' * late}."
        )


def new_outputs(before: np.ndarray, classes: np.ndarray, scale: float = 1.0) -> list[tuple[int, float]] | None:
    """How outputs come from those before as a class joins; None where one output stays one.

    Two classes have one output, of the second; it is `scale` times the output of the second and the opposite of the
    first.
    """
    if len(classes) <= 2:
        return None
    if len(before) > 2:
        return [(int(np.searchsorted(before, c)), 1.0) if c in before else (-1, 0.0) for c in classes]
    signs = {before[-1]: scale, before[0]: -scale} if len(before) == 2 else {}
    return [(0, signs[c]) if c in signs else (-1, 0.0) for c in classes]


def check_count(name: str, value: Any, least: int = 1, optional: bool = False) -> None:
    """Refuse what is no whole number from `least` on."""
    if optional and value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        extra = ", or None" if optional else ""
        raise ValueError(f"`{name}` must be a whole number of at least {least}{extra}; got {value!r}.")


def check_number(name: str, value: Any, least: float = 0.0, *, above: bool = False, infinite: bool = False) -> None:
    """Refuse what is no number of at least (or above) a value."""
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    if (
        not known
        or np.isnan(value)
        or (np.isinf(value) and not infinite)
        or value < least
        or (above and value == least)
    ):
        raise ValueError(f"`{name}` must be a number {'above' if above else 'of at least'} {least:g}; got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse what is not among the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise ValueError(f"`{name}` must be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}; got {value!r}.")


def one_row(x: Mapping[str, Any]) -> Views:
    """One sample as Views."""
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
