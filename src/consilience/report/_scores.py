"""Scores of a comparison as text: percent where they are shares, and intervals as "98.1 (95.5-100)"."""

from html import escape
from typing import Any

import numpy as np

_SHARES = ("accuracy", "balanced_accuracy", "roc_auc", "f1", "precision", "recall", "jaccard", "average_precision")


def is_share(scoring: str) -> bool:
    """Tell whether a score is a share between 0 and 1, shown in percent."""
    return scoring.startswith(_SHARES) or scoring in ("AUC", "F1", "balanced accuracy", "sensitivity", "PPV")


def score_name(scoring: str) -> str:
    """Return the name of a score as HTML."""
    return {"r2": "R²", "R2": "R²"}.get(scoring) or escape(scoring.replace("_", " "))


def score_text(value: float, scoring: str) -> str:
    """Return a score as text, in percent if it is a share."""
    if not np.isfinite(value):
        return "-"
    if is_share(scoring):
        return _trimmed(100 * value, 1)
    return _trimmed(value, 3) if scoring in ("r2", "R2", "Brier score", "log loss") else f"{value:.4g}"


def interval_text(value: float, low: float, high: float, scoring: str, unit: str = "") -> str:
    """Return a score with its interval, such as "98.1 (95.5-100)", with a unit after the score."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return score_text(value, scoring) + unit
    ends = [score_text(end, scoring) for end in (low, high)]
    between = " to " if any(end.startswith("-") for end in ends) else "-"
    return f"{score_text(value, scoring)}{unit} ({between.join(ends)})"


def difference_text(difference: Any, scoring: str) -> str:
    """Return a difference of two scores with its sign, unit and interval."""
    share = is_share(scoring)
    ends = (difference.value, difference.low, difference.high)
    if share or scoring == "r2":
        value, low, high = (_signed(f"{(100 if share else 1) * end:+.{1 if share else 3}f}") for end in ends)
    else:
        value, low, high = (f"{end:+.3g}" for end in ends)
    unit = "points of " if share else ""
    many = f", corrected for {difference.n_comparisons} comparisons" if difference.n_comparisons > 1 else ""
    return f"{value} {unit}{score_name(scoring)} (95% interval {low} to {high}{many})"


def _signed(text: str) -> str:
    """Return a number without a sign if it is rounded to 0."""
    return text if float(text) else text[1:]


def _trimmed(value: float, digits: int) -> str:
    """Return a number with some digits, without those of a whole 100 or 0."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if float(text) in (0.0, 100.0) else text
