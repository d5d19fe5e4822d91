"""Monitoring of a stream: measures of predictions made before learning, in windows and fading, and drift."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from .._jit import jit
from ..online._counting import curve_marks
from ._stream_measures import FADING, WHOLE, WINDOW, ClassScores, ClassSums, LabelSums, NumberSums, Sums
from ._stream_result import DriftEvent, ProgressiveResult, ViewScores
from ._stream_states import restored_array, restored_count
from .drift import ADWIN

__all__ = ["ClassScores", "DriftEvent", "StreamMonitor", "ViewScores"]

_KINDS: dict[str, type[Sums]] = {"classification": ClassSums, "regression": NumberSums, "labels": LabelSums}
_MOST_WINDOWS = 2000
_TOO_HEAVY = 1e100
ACTIONS = ("tell", "forget", "restart", "lower_view")


class StreamMonitor:
    """Measures of a stream's predictions: over all samples, in windows and fading; by class and view; drift.

    The results do not depend on how the stream is cut into chunks. Sample weights count in all measures.

    Parameters
    ----------
    measures : str, metric or sequence of these, optional
        Names of measures. For classes: "error", "accuracy", "balanced_accuracy", "f1" (mean over classes), "log_loss"
        and "roc_auc" (each class against the others, mean over classes). For regression: "mae", "rmse" and "r2". For
        several labels: "error" (samples with a wrong label) and "hamming". Also metrics of river, or objects with their
        methods `update` and `get`. Default: error, balanced accuracy and log loss; MAE, RMSE and R2; error and Hamming
        loss. The error, or MAE, is always computed.
    window : int, default=1000
        Number of samples in a window. Windows follow one another.
    fading : float, default=0.999
        Factor by which the weight of a sample falls with each sample after it, for the fading measures.
    by_view : bool, default=False
        Whether to compute how often each view's own margin favors the true class. It takes time.
    drift : bool, default=False
        Whether to look for drift of the error, and with `by_view` of each view, by `ADWIN`.
    on_drift : {"tell", "forget", "restart", "lower_view"}, default="tell"
        What `progressive_validation` does about a drift. "tell" records it. "forget" halves what the model has
        learned, "restart" removes it. "lower_view" halves the weights of the view that drifted.
    delta : float, default=0.002
        Probability of a false alarm at each test for drift, every 32 samples, if errors are independent. Errors that
        follow one another, as in a trajectory, cause more alarms.

    Notes
    -----
    The baseline predicts the most frequent class so far, and the shares of the classes so far as probabilities. For
    regression it predicts the mean so far. A prediction before any class is known counts as a mistake. Probabilities
    are at least 2.2e-16 in the log loss, as in scikit-learn.

    The area under the ROC curve is computed from the numbers of samples in 1,000 equal intervals of probability. Two
    samples in the same interval count as a tie. So the area differs from the exact one by at most half the share of
    pairs that share an interval.

    For the drift of a regression's error, the signal is e / (e + m), where e is the absolute error and m its mean so
    far. A drift is recorded when a signal rises, not when it falls.

    At most 2,000 windows are kept; beyond that, every second one.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=500, n_classes=2, random_state=0, return_X_y=True)
    >>> model, monitor = cs.OnlinePerceptron(), cs.StreamMonitor("f1", window=100)
    >>> for rows in (slice(0, 300), slice(300, 500)):
    ...     events = monitor.update(model.predict_then_learn(X[rows], y[rows]))
    >>> result = monitor.result()
    >>> list(result.measures), len(result.windows)
    (['error', 'f1'], 5)
    """

    @validate_params(
        {
            "self": "no_validation",
            "measures": "no_validation",
            "window": [Interval(Integral, 1, None, closed="left")],
            "fading": [Interval(Real, 0, 1, closed="right")],
            "by_view": ["boolean"],
            "drift": ["boolean"],
            "on_drift": [StrOptions(set(ACTIONS))],
            "delta": [Interval(Real, 0, 1, closed="neither")],
        },
        prefer_skip_nested_validation=True,
    )
    def __init__(
        self,
        measures: Any = None,
        *,
        window: int = 1000,
        fading: float = 0.999,
        by_view: bool = False,
        drift: bool = False,
        on_drift: str = "tell",
        delta: float = 0.002,
    ):
        self.names, self.metrics = _read_measures(measures)
        self.window, self.fading, self.by_view = int(window), float(fading), bool(by_view)
        self.drift, self.on_drift, self.delta = bool(drift), on_drift, float(delta)
        self.n_samples = self.n_mistakes = 0
        self.events: list[DriftEvent] = []
        self._sums: Sums | None = None
        self._task = ""
        self._curve: list[np.ndarray] = []  # parts of rows: samples, error, error of the baseline
        self._windows: list[tuple[float, ...]] = []
        self._last: tuple[float, ...] = ()  # the last window, which may not be among those kept
        self._stride = 1  # of every so many windows, one is kept
        self._views: list[str] = []
        self._view_sums = np.zeros((2, 0, 2))  # of all samples and fading ones: weight, weight of favorable margins
        self._view_heavy = np.ones(1)
        self._detectors: dict[str | None, ADWIN] = {}  # by view; None for the error

    # -- adding
    def update(self, predictions: Any) -> list[DriftEvent]:
        """Add predictions, in the order of the stream.

        Parameters
        ----------
        predictions : StreamPredictions
            What `predict_then_learn` of an online estimator returned.

        Returns
        -------
        list of DriftEvent
            Drifts found in these samples.
        """
        n = len(predictions.y)
        if not n:
            return []
        sums = self._begin(predictions) if self._sums is None else self._sums
        sums.extend(predictions.classes)
        weights = _weights(predictions.sample_weight, n)
        first, start, parts = self.n_samples, 0, []
        while start < n:
            stop = min(n, start + self.window - self.n_samples % self.window)
            parts.append(sums.add(predictions, slice(start, stop), weights[start:stop]))
            self.n_samples += stop - start
            if self.n_samples % self.window == 0:
                self._end_window(sums)
            start = stop
        error, baseline, signal = (np.concatenate(values) for values in zip(*parts, strict=True))
        kept = curve_marks(first, self.n_samples)
        self._curve.append(np.column_stack([kept, error[kept - first - 1], baseline[kept - first - 1]]))
        if self._task != "regression":
            self.n_mistakes += int(np.count_nonzero(signal))
        self._update_metrics(predictions)
        margins = predictions.view_margins if self.by_view else None
        if margins is not None:
            self._update_views(predictions.view_names, np.ascontiguousarray(margins, dtype=np.float64), weights)
        found = self._look_for_drift(first, signal, predictions.view_names, margins) if self.drift else []
        self.events += found
        return found

    def _begin(self, predictions: Any) -> Sums:
        """Choose the sums for the kind of targets, and validate the names of measures."""
        labels = np.ndim(predictions.y) == 2
        self._task = "regression" if predictions.classes is None else "labels" if labels else "classification"
        kind = _KINDS[self._task]
        unfit = [name for name in self.names or () if name not in kind.names]
        if unfit:
            raise ValueError(f"The measure '{unfit[0]}' is not for {self._task}. Use some of: {', '.join(kind.names)}.")
        names = kind.defaults if self.names is None else self.names
        if self._task == "classification" and predictions.probabilities is None:
            needed = [name for name in self.names or () if name in ("log_loss", "roc_auc")]
            if needed:
                raise ValueError(f"The measure '{needed[0]}' needs probabilities, which this estimator does not have.")
            names = tuple(name for name in names if name != "log_loss")
        self._sums = kind(tuple(dict.fromkeys((kind.names[0], *names))), self.fading)
        return self._sums

    def _end_window(self, sums: Sums) -> None:
        values = (*sums.values(WINDOW).values(), *sums.values(WINDOW, baseline=True).values())
        self._last = (float(self.n_samples), *values)
        if self.n_samples // self.window % self._stride == 0:
            self._windows.append(self._last)
            if len(self._windows) == _MOST_WINDOWS:
                self._windows, self._stride = self._windows[1::2], 2 * self._stride
        sums.end_window()

    def _update_metrics(self, predictions: Any) -> None:
        """Add predictions to metrics with river's interface; without a prediction there is nothing to add."""
        if not self.metrics:
            return
        y, predicted, shares = predictions.y, predictions.predicted, predictions.probabilities
        classes = None if predictions.classes is None else predictions.classes.tolist()
        known = shares.any(axis=1) if shares is not None else None
        for i in range(len(y)):
            weight = () if predictions.sample_weight is None else (float(predictions.sample_weight[i]),)
            for metric in self.metrics:
                if classes is None:
                    metric.update(float(y[i]), float(predicted[i]), *weight)
                elif np.ndim(y) == 2:
                    pairs = (dict(zip(classes, row[i].astype(bool).tolist(), strict=True)) for row in (y, predicted))
                    metric.update(*pairs, *weight)
                elif getattr(metric, "requires_labels", True):
                    if predicted[i] >= 0:
                        metric.update(classes[y[i]], classes[predicted[i]], *weight)
                elif known is not None and known[i]:
                    metric.update(classes[y[i]], dict(zip(classes, shares[i].tolist(), strict=True)), *weight)

    def _update_views(self, names: Sequence[str], margins: np.ndarray, weights: np.ndarray) -> None:
        new = [name for name in names if name not in self._views]
        if new:
            self._views += new
            self._view_sums = np.concatenate([self._view_sums, np.zeros((2, len(new), 2))], axis=1)
        places = np.array([self._views.index(name) for name in names], dtype=np.int64)
        _add_margins(margins, places, weights, 1.0 / self.fading, self._view_sums, self._view_heavy)

    def _look_for_drift(self, first: int, signal: np.ndarray, names: Any, margins: Any) -> list[DriftEvent]:
        """Return the drifts of the error and of views in samples that follow the first ones."""
        signals: list[tuple[str | None, np.ndarray, np.ndarray]] = [(None, np.arange(len(signal)), signal)]
        if margins is not None:
            for name, own in zip(names, np.asarray(margins).T, strict=True):
                there = np.flatnonzero(~np.isnan(own))
                signals.append((name, there, (own[there] <= 0).astype(np.float64)))
        found = []
        for view, rows, values in signals:
            detector = self._detectors.setdefault(view, ADWIN(self.delta))
            for change in detector.update(values):
                if change.after > change.before:
                    action = "tell" if self.on_drift == "lower_view" and view is None else self.on_drift
                    place = int(first + rows[change.position] + 1)
                    kind = "error" if view is None else "view"
                    found.append(DriftEvent(place, kind, view, change.before, change.after, action))
        return sorted(found, key=lambda event: (event.sample, event.view is not None, event.view or ""))

    # -- results
    def result(self, **counts: Any) -> ProgressiveResult:
        """Return the measures so far.

        Parameters
        ----------
        **counts : int
            Counts that the monitor does not know, such as `n_skipped`; see `ProgressiveResult`.

        Returns
        -------
        ProgressiveResult
            Counts, measures, windows, drifts.
        """
        sums = self._sums
        if sums is None:
            return ProgressiveResult(0, 0, np.zeros((0, 2)), **counts)
        points = np.concatenate(self._curve) if self._curve else np.zeros((0, 3))
        measures = {**sums.values(WHOLE), **{type(own).__name__: float(own.get()) for own in self.metrics}}
        names = list(sums.measures)
        kind = [("samples", np.int64), *((n, float) for n in names), *((f"baseline_{n}", float) for n in names)]
        return ProgressiveResult(
            self.n_samples, self.n_mistakes, points[:, :2], self._task, measures,
            baseline=sums.values(WHOLE, baseline=True),
            fading=sums.values(FADING),
            fading_baseline=sums.values(FADING, baseline=True),
            windows=np.array(self._windows, dtype=kind),
            by_class=sums.by_class(),
            by_view=self._by_view(),
            drifts=tuple(self.events),
            baseline_curve=points[:, [0, 2]],
            **counts,
        )  # fmt: skip

    def last_window(self) -> dict[str, float]:
        """Return the measures of the last complete window; nothing before the first."""
        if self._sums is None or not self._last:
            return {}
        names = self._sums.measures
        return dict(zip(("samples", *names, *(f"baseline_{name}" for name in names)), self._last, strict=True))

    def _by_view(self) -> dict[str, ViewScores]:
        found = {}
        for k, name in enumerate(self._views):
            (weight, good), (recent, recent_good) = self._view_sums[:, k].tolist()
            share, now = (b / a if a > 0 else float("nan") for a, b in ((weight, good), (recent, recent_good)))
            found[name] = ViewScores(weight, share, now)
        return found

    # -- states
    def state(self) -> dict[str, Any]:
        """Return everything that the monitor has added up, as a dict of numbers, texts and arrays.

        Returns
        -------
        dict
            The state, for `restore`.
        """
        if self.metrics:
            name = type(self.metrics[0]).__name__
            raise ValueError(f"The metric {name} cannot be stored in a checkpoint. Use the names of measures.")
        windows = np.array(self._windows, dtype=np.float64) if self._windows else np.zeros((0, 0))
        return {
            "settings": self._settings(), "task": self._task, "n_samples": self.n_samples,
            "n_mistakes": self.n_mistakes, "sums": {} if self._sums is None else self._sums.state(),
            "measures": [] if self._sums is None else list(self._sums.measures),
            "curve": np.concatenate(self._curve) if self._curve else np.zeros((0, 3)), "windows": windows,
            "last": list(self._last),
            "stride": self._stride, "views": list(self._views), "view_sums": self._view_sums.copy(),
            "view_heavy": self._view_heavy.copy(), "events": [list(asdict(event).values()) for event in self.events],
            "detectors": [[view, own.state()] for view, own in self._detectors.items()],
        }  # fmt: skip

    def _settings(self) -> list[Any]:
        names = None if self.names is None else list(self.names)
        return [names, self.window, self.fading, self.by_view, self.drift, self.on_drift, self.delta]

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; a ValueError if it is damaged, or of a monitor with other settings.

        Parameters
        ----------
        state : dict
            What `state` returned.
        """
        if state.get("settings") != self._settings():
            raise ValueError(
                f"The monitor of the checkpoint had the settings {state.get('settings')!r}; got {self._settings()!r}. "
                "Continue with the same measures, window, fading, by_view, drift, on_drift and delta."
            )
        try:
            self._restore(state)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("The state of the stream is damaged: its parts do not fit together.") from error

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.n_samples, self.n_mistakes = restored_count(state, "n_samples"), restored_count(state, "n_mistakes")
        self._task, self._stride = str(state["task"]), max(restored_count(state, "stride"), 1)
        if self._task:
            kind, names = _KINDS[self._task], tuple(state["measures"])
            if not set(names) <= set(kind.names):
                raise ValueError("The state of the stream is damaged: its measures are not known.")
            self._sums = kind(names, self.fading)
            self._sums.restore(state["sums"])
        n_columns = 1 + 2 * len(state["measures"]) if len(state["windows"]) else 0
        rows = np.asarray(state["windows"], dtype=np.float64)
        if rows.shape[1:] != (n_columns,):
            raise ValueError("The state of the stream is damaged: its windows have other columns.")
        self._windows = [tuple(row) for row in rows.tolist()]
        self._last = tuple(float(value) for value in state["last"])
        curve = np.asarray(state["curve"], dtype=np.float64)
        if curve.shape[1:] != (3,) or len(self._last) not in (0, 1 + 2 * len(state["measures"])):
            raise ValueError("The state of the stream is damaged: its curve or its last window has other columns.")
        self._curve = [curve]
        self._views = [str(name) for name in state["views"]]
        self._view_sums = restored_array(state, "view_sums", self._view_sums, (2, len(self._views), 2))
        self._view_heavy = restored_array(state, "view_heavy", self._view_heavy)
        self.events = [DriftEvent(*values) for values in state["events"]]
        self._detectors = {}
        for view, own in state["detectors"]:
            self._detectors[view] = ADWIN(self.delta)
            self._detectors[view].restore(own)


def _read_measures(given: Any) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Return the names among measures, None for the default, and the metrics with river's interface."""
    if given is None:
        return None, []
    known = sorted({name for kind in _KINDS.values() for name in kind.names})
    items = [given] if isinstance(given, str) or hasattr(given, "update") else list(given)
    names, metrics = [], []
    for item in items:
        if isinstance(item, str) and item in known:
            names.append(item)
        elif (
            not isinstance(item, str)
            and callable(getattr(item, "update", None))
            and callable(getattr(item, "get", None))
        ):
            metrics.append(item)
        else:
            raise ValueError(
                f"A measure is one of {', '.join(known)}, or an object with the methods update and get; got {item!r}."
            )
    return (tuple(names) if names or not metrics else None), metrics


def _weights(given: Any, n: int) -> np.ndarray:
    """Return sample weights, ones by default; the compiled loops need finite ones."""
    weights = np.ones(n) if given is None else np.ascontiguousarray(given, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (n and weights.min() < 0):
        raise ValueError(f"Sample weights must be {n} finite numbers of at least 0.")
    return weights


@jit()
def _add_margins(margins, places, weights, growth, sums, heavy):  # type: ignore[no-untyped-def]
    for i in range(len(margins)):
        for j in range(margins.shape[1]):
            if not np.isnan(margins[i, j]):
                for kind in range(2):
                    v = weights[i] * (heavy[0] if kind == 1 else 1.0)
                    sums[kind, places[j], 0] += v
                    sums[kind, places[j], 1] += v if margins[i, j] > 0 else 0.0
        heavy[0] *= growth
        if heavy[0] > _TOO_HEAVY:
            sums[1] /= _TOO_HEAVY
            heavy[0] /= _TOO_HEAVY
