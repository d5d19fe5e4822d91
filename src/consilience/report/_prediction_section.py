"""Held-out predictions of the best estimator in a report: recall by class, calibration, errors, prediction sets."""

from html import escape
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ..evaluation.external import Measure, proportion
from . import _charts as charts
from ._findings import Findings, PredictionSets
from ._html import Markup, folded, html_figure, html_figures, html_table, plural
from ._scores import interval_text, is_share, score_name

MOST_CLASSES = 20  # in a confusion matrix that can still be read
MOST_CONFUSIONS = 15
SHOWN_CLASSES = 8


def prediction_section(findings: Findings) -> str:
    """Return how the held-out predictions of the best estimator are right and wrong, as HTML."""
    best = findings.best
    y, predictions = findings.y[best.scored], best.predictions[best.scored]
    figures = []
    if findings.board.task == "regression":
        figures.append(predicted_and_true(y, predictions))
    else:
        figures += [recall_table(y, predictions), confusion(y, predictions)]
    figures.append(_calibration(findings))
    if findings.sets is not None:
        figures.append(_sets(findings.sets, findings.board.task))
    if len(findings.learning_curve) > 1:
        figures.append(_curve_chart(findings))
    text = f"<p>All predictions are of {escape(best.title)}, on samples that its fit has not seen.</p>"
    return text + html_figures([figure for figure in figures if figure])


# -- classes
def recall_table(y: np.ndarray, predictions: np.ndarray) -> str:
    """Return the recall of each class with its interval."""
    rows = []
    for label in np.unique(y):
        own = y == label
        rows.append((str(label), int(own.sum()), proportion(int((predictions[own] == label).sum()), int(own.sum()))))
    rows.sort(key=lambda row: row[2].value)
    low = max(min([row[2].low for row in rows] + [0.95]), 0.0)
    tables = [
        measure_table("class", ["samples", "recall (%)"], part, low, 1.0)
        for part in (rows[:SHOWN_CLASSES], rows[SHOWN_CLASSES:])
        if part
    ]
    more = folded(plural(len(rows) - SHOWN_CLASSES, "more class", "more classes"), tables[1]) if len(tables) > 1 else ""
    caption = "<strong>Recall by class:</strong> share of the samples of a class that are predicted to be of it, with "
    return f"<div><p class='caption'>{caption}Wilson's interval, the lowest first.</p>{tables[0]}{more}</div>"


def measure_table(first: str, heads: list[str], rows: list[tuple[str, int, Measure]], low: float, high: float) -> str:
    """Return a table of names, numbers of samples and shares with their intervals."""
    body = [
        [
            name, (n, f"{n:,}"), (own.value, interval_text(*own, "recall")),
            Markup(charts.mini_interval(own.value, own.low, own.high, low, high)) if n else "",
        ]
        for name, n, own in rows
    ]  # fmt: skip
    foot = ["", "", "", Markup(charts.mini_axis(low, high, percent=True))]
    return html_table([first, *heads, ""], body, numeric=(1, 2), foot=foot)


def confusion(y: np.ndarray, predictions: np.ndarray) -> str:
    """Return the confusion matrix, or the most frequent confusions of many classes."""
    classes = np.unique(np.concatenate([y, predictions.astype(y.dtype)]))
    counts = confusion_matrix(y, predictions.astype(y.dtype), labels=classes)
    names = [str(name) for name in classes]
    if len(names) <= MOST_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        texts = [[str(k) if k else "" for k in row] for row in counts]
        chart = charts.heat_map(shares, names, names, texts, "Confusion matrix", axes=("truth", "prediction"))
        caption = (
            "<strong>Confusion matrix.</strong> Number of samples by true class and prediction. The shade is the share "
            "of the row."
        )
        return html_figure(caption, chart)
    off = counts - np.diag(np.diag(counts))  # without the correct predictions
    order = np.argsort(-off, axis=None, kind="stable")[:MOST_CONFUSIONS]
    pairs = [(int(k // len(names)), int(k % len(names))) for k in order if off.flat[k] > 0]
    rows = [[names[i], names[j], (int(off[i, j]), str(off[i, j]))] for i, j in pairs]
    return (
        f"<div><p class='caption'><strong>Confusions.</strong> The most frequent confusions of {len(names)} classes."
        f"</p>{html_table(['truth', 'prediction', 'samples'], rows, numeric=(2,))}</div>"
    )


def predicted_and_true(y: np.ndarray, predictions: np.ndarray) -> str:
    """Return the chart of predicted and true values."""
    chart = charts.scatter(
        predictions.astype(float), y.astype(float), "Predicted and true values", x_name="predicted", y_name="true"
    )
    return html_figure("<strong>Predicted and true</strong> values of held-out samples.", chart)


# -- calibration
def _calibration(findings: Findings) -> str:
    if findings.board.task == "regression":
        return binned_chart(findings.calibration)
    if not len(findings.calibration):
        return (
            "<div><p class='caption'><strong>Calibration.</strong> The best estimator has no probabilities. Fit it "
            "inside scikit-learn's CalibratedClassifierCV to get them.</p></div>"
        )
    return reliability_chart(findings.calibration, findings.board.classes)


def reliability_chart(bins: np.ndarray, classes: Any) -> str:
    """Return the chart of predicted probabilities and observed shares, with the number of samples of each bin."""
    ends = np.array([proportion(round(share * n), int(n))[1:] for _, share, n in bins])
    gap = float(np.average(np.abs(bins[:, 0] - bins[:, 1]), weights=bins[:, 2]))
    if len(classes) == 2:
        what = f"of {escape(str(classes[1]))}"
        names = (f"probability of {charts.short(str(classes[1]))}", "observed share")
    else:
        what, names = "of the predicted class", ("probability", "share correct")
    chart = charts.calibration(bins, ends, "Calibration", x_name=names[0], y_name=names[1])
    caption = (
        f"<strong>Calibration.</strong> Predicted probability {what} and what was observed, in bins of 0.1 with 95% "
        f"intervals; below, the number of samples. On the diagonal, probabilities are right. Mean distance "
        f"{100 * gap:.1f} points."
    )
    return html_figure(caption, chart)


def binned_chart(bins: np.ndarray) -> str:
    """Return the chart of mean predictions and mean targets in bins of equal size."""
    points = bins[:, :2]
    low, high = float(points.min()), float(points.max())
    chart = charts.lines(
        [("observed", points, ""), ("calibrated", np.array([[low, low], [high, high]]), "ideal")], "Calibration",
        x_name="mean prediction", y_name="mean target", square=True,
    )  # fmt: skip
    sizes = sorted({int(n) for n in bins[:, 2]})
    of = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} or {sizes[-1]}"
    caption = (
        f"<strong>Calibration.</strong> Bins of {of} samples by prediction. On the diagonal, the predictions of a bin "
        "are right on average."
    )
    return html_figure(caption, chart)


# -- prediction sets and learning curve
def _sets(sets: PredictionSets, task: str) -> str:
    goal = f"{100 * sets.coverage:.0f}%"
    covered = interval_text(*sets.covered, "recall", "%")
    if task == "regression":
        quarters = np.quantile(sets.sizes, (0.25, 0.5, 0.75))
        caption = (
            f"<strong>Prediction intervals</strong> that should contain {goal} of the values contain {covered} of the "
            f"held-out ones. Half of them are {quarters[0]:.4g} to {quarters[2]:.4g} wide, the median is "
            f"{quarters[1]:.4g}."
        )
        return f"<div><p class='caption'>{caption}</p></div>"
    values, counts = np.unique(sets.sizes.astype(int), return_counts=True)
    shares = counts / len(sets.sizes)
    rows = [(plural(int(v), "class", "classes"), float(n)) for v, n in zip(values, shares, strict=True)]
    chart = charts.bars(rows, "Sizes of prediction sets", percent=True)
    caption = (
        f"<strong>Prediction sets</strong> that should contain the true class for {goal} of the samples contain it for "
        f"{covered} of the held-out ones. Below, the number of classes in a set."
    )
    return html_figure(caption, chart)


def _curve_chart(findings: Findings) -> str:
    scoring = findings.board.scoring
    sizes, means, lows, highs = findings.learning_curve.T
    bounded = is_share(scoring) or scoring == "r2"  # at most 1: long intervals below must not hide the curve
    floor = float(2 * means.min() - 1) if bounded else float(lows.min())  # twice the distance of the lowest mean from 1
    chart = charts.lines(
        [("", np.column_stack([sizes, means]), "")], "Learning curve", x_name="training samples",
        y_name=score_name(scoring), band=np.column_stack([sizes, np.maximum(lows, floor), highs]),
        y_from=max(float(min(lows.min(), means.min())), floor), y_to=1.0 if bounded else float(highs.max()),
    )  # fmt: skip
    caption = (
        "<strong>Learning curve.</strong> Score on held-out samples after training on some of the training samples, "
        "with its interval. Where it still rises, more samples are likely to help."
    )
    return html_figure(caption, chart)
