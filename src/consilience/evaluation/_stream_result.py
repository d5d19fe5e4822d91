"""The result of progressive validation: counts, measures, windows, drifts; as sentences, as a dict, as a table."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ._stream_measures import ClassScores

WORDS = {
    "error": "error", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "f1": "macro F1",
    "log_loss": "log loss", "roc_auc": "ROC AUC", "hamming": "Hamming loss", "mae": "MAE", "rmse": "RMSE", "r2": "R2",
}  # fmt: skip


class ViewScores(NamedTuple):
    """How often a view favors the true class.

    Parameters
    ----------
    weight : float
        Sum of the weights of the samples that have the view.
    share : float
        Share of these samples in which the view's own margin favors the true class.
    recent : float
        The same share with fading weights.

    Examples
    --------
    >>> from consilience.evaluation.monitoring import ViewScores
    >>> ViewScores(100.0, 0.75, 0.5).share
    0.75
    """

    weight: float
    share: float
    recent: float


@dataclass(frozen=True)
class DriftEvent:
    """A drift: the error, or the share of samples in which a view is wrong, rose.

    Parameters
    ----------
    sample : int
        Number of samples seen when the drift was found.
    signal : {"error", "view"}
        What rose.
    view : str or None
        The view, if it is the signal of a view.
    before : float
        Mean of the signal before the drift.
    after : float
        Mean of the signal since then.
    action : {"tell", "forget", "restart", "lower_view"}
        What is done about it.

    Examples
    --------
    >>> from consilience.evaluation.monitoring import DriftEvent
    >>> print(DriftEvent(1200, "error", None, 0.1, 0.4, "tell"))
    Drift at sample 1,200: the error rose from 0.1 to 0.4.
    """

    sample: int
    signal: str
    view: str | None
    before: float
    after: float
    action: str

    def __str__(self) -> str:
        what = "the error" if self.view is None else f"the share of samples in which view '{self.view}' is wrong"
        done = {
            "tell": "", "forget": " The model forgets half of what it learned.", "restart": " The model starts again.",
            "lower_view": f" The weights of view '{self.view}' are halved.",
        }  # fmt: skip
        return (
            f"Drift at sample {self.sample:,}: {what} rose from {self.before:.3g} to {self.after:.3g}."
            f"{done[self.action]}"
        )


@dataclass(frozen=True)
class ProgressiveResult:
    """Result of `progressive_validation`; prints as a few sentences.

    Parameters
    ----------
    n_samples : int
        Number of samples that were predicted, scored and learned.
    n_mistakes : int
        Number of wrong predictions among them; 0 for regression.
    curve : array of shape (n, 2)
        Number of samples so far, and their error, at geometrically spaced points. The error is the share of mistakes;
        for regression, the mean absolute error.
    task : {"classification", "regression", "labels"}, default="classification"
        What was predicted.
    measures : dict
        Name -> measure over all samples.
    baseline : dict
        The same measures of a baseline: the most frequent class so far; for regression, the mean so far.
    fading : dict
        The same measures with weights that fade, so that recent samples count most.
    fading_baseline : dict
        The same measures of the baseline with weights that fade.
    windows : structured array
        A row per complete window: the number of samples at its end (``samples``), each measure, and the measure of the
        baseline (``baseline_error`` and so on).
    by_class : dict
        Class -> its weight, recall and precision.
    by_view : dict
        View -> the weight of the samples that have it, and the share in which it favors the true class.
    drifts : tuple of DriftEvent
        Drifts, in order.
    baseline_curve : array of shape (n, 2)
        The curve of the baseline.
    n_skipped : int, default=0
        Number of rows that the model refused.
    n_pending : int, default=0
        Number of samples whose labels are still awaited.
    n_dropped : int, default=0
        Number of samples that were dropped before their label came.
    n_ignored : int, default=0
        Number of rows that were ignored: a label whose id does not wait for one, or a sample without a label whose id
        waits already. With ``on_error="skip"`` they are refused instead.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import ProgressiveResult
    >>> print(ProgressiveResult(200, 30, np.array([[200, 0.15]])))
    30 mistakes in 200 samples, an error of 15.00%.
    """

    n_samples: int
    n_mistakes: int
    curve: np.ndarray
    task: str = "classification"
    measures: dict[str, float] = field(default_factory=dict)
    baseline: dict[str, float] = field(default_factory=dict)
    fading: dict[str, float] = field(default_factory=dict)
    fading_baseline: dict[str, float] = field(default_factory=dict)
    windows: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=[("samples", np.int64)]))
    by_class: dict[Any, ClassScores] = field(default_factory=dict)
    by_view: dict[str, ViewScores] = field(default_factory=dict)
    drifts: tuple[DriftEvent, ...] = ()
    baseline_curve: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    n_skipped: int = 0
    n_pending: int = 0
    n_dropped: int = 0
    n_ignored: int = 0

    @property
    def error(self) -> float:
        """Share of mistakes, weighted by the sample weights; for regression, the mean absolute error."""
        plain = self.n_mistakes / self.n_samples if self.n_samples else float("nan")
        return self.measures.get(self._main, plain)

    @property
    def baseline_error(self) -> float:
        """Error of the baseline; NaN if it was not computed."""
        return self.baseline.get(self._main, float("nan"))

    @property
    def verdict(self) -> str:
        """How the error compares with that of the baseline: "above", "below" or "equal to"; empty if not known."""
        if math.isnan(self.error) or math.isnan(self.baseline_error):
            return ""
        return (
            "above" if self.error > self.baseline_error else "below" if self.error < self.baseline_error else "equal to"
        )

    @property
    def _main(self) -> str:
        return "mae" if self.task == "regression" else "error"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts, lists and dicts, for JSON.

        Returns
        -------
        dict
            Classes are texts.
        """
        fields = self.windows.dtype.names or ()
        return {
            "samples": self.n_samples, "mistakes": self.n_mistakes, "error": self.error,
            "baseline_error": self.baseline_error, "compared": f"{self.verdict} the baseline" if self.verdict else "",
            "task": self.task, "measures": self.measures, "baseline": self.baseline, "fading": self.fading,
            "fading_baseline": self.fading_baseline,
            "windows": [dict(zip(fields, row, strict=True)) for row in self.windows.tolist()],
            "by_class": [{"class": str(label), **own._asdict()} for label, own in self.by_class.items()],
            "by_view": [{"view": name, **own._asdict()} for name, own in self.by_view.items()],
            "drifts": [asdict(event) for event in self.drifts],
            "skipped": self.n_skipped, "pending": self.n_pending, "dropped": self.n_dropped, "ignored": self.n_ignored,
        }  # fmt: skip

    def to_frame(self) -> Any:
        """Return the windows as a table.

        Returns
        -------
        pandas.DataFrame
            A row per window, with the number of samples at its end as index.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("ProgressiveResult.to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame(self.windows).set_index("samples")

    def __str__(self) -> str:
        if self.task == "regression":
            sentences = [f"Mean absolute error {self.error:.4g} in {self.n_samples:,} samples."]
            shown, rule = f"{self.baseline_error:.4g}", "The mean of the targets so far"
        else:
            what = "mistake" if self.n_mistakes == 1 else "mistakes"
            share = f"{100 * self.error:.2f}%"
            sentences = [f"{self.n_mistakes:,} {what} in {self.n_samples:,} samples, an error of {share}."]
            rule = (
                "The most frequent class so far" if self.task == "classification" else "The usual value of each label"
            )
            shown = f"{100 * self.baseline_error:.2f}%"
        if self.verdict:
            verdict = "equals" if self.verdict == "equal to" else f"is {self.verdict}"
            sentences.append(f"{rule} has an error of {shown}: the model's error {verdict} the baseline.")
        others = [f"{WORDS.get(k, k)} {v:.4g}" for k, v in self.measures.items() if k != self._main and v == v]
        if others:
            text = ", ".join(others)
            sentences.append(f"{text[0].upper()}{text[1:]}.")
        return " ".join([*sentences, *self._remarks()])

    def _remarks(self) -> list[str]:
        """Return sentences about drifts, refused rows and delayed labels."""
        said = []
        if self.drifts:
            places = ", ".join(f"{event.sample:,}" for event in self.drifts[:5])
            more = ", ..." if len(self.drifts) > 5 else ""
            noun = "Drift was" if len(self.drifts) == 1 else f"{len(self.drifts):,} drifts were"
            said.append(f"{noun} found at {'sample' if len(self.drifts) == 1 else 'samples'} {places}{more}.")
        return said + not_learned(self)


def not_learned(result: ProgressiveResult) -> list[str]:
    """Return sentences about rows of a stream that were not learned."""
    counts = [
        (result.n_skipped, "row was refused and skipped", "rows were refused and skipped"),
        (result.n_pending, "label is awaited", "labels are awaited"),
        (result.n_dropped, "sample was dropped before its label came", "samples were dropped before their label came"),
        (
            result.n_ignored,
            "row was ignored, as no sample waits for it",
            "rows were ignored, as no sample waits for them",
        ),
    ]
    return [f"{n:,} {one if n == 1 else several}." for n, one, several in counts if n]
