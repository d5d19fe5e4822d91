"""The views in a report: their weights, the score lost without them, columns that matter, disagreement."""

from html import escape
from typing import Any

import numpy as np

from ..evaluation._wrappers import final_estimator
from . import _charts as charts
from ._findings import Disagreement, Findings
from ._html import Mark, folded, html_figure, html_figures, html_table, plural
from ._scores import is_share, score_name

SHOWN_WEIGHTS = 12
SHOWN_COLUMNS = 8  # of each view


def importance_section(findings: Findings) -> str:
    """Return which views, kernels and columns matter, as HTML."""
    figures, text = [], ""
    weights = np.array(list(findings.weights.values()))
    if len(weights) > 1 and np.ptp(weights) < 1e-9:  # a chart of equal bars says nothing
        text = "<p>The chosen model weights all views equally.</p>"
    elif len(weights) > 1:
        chart = charts.bars(list(findings.weights.items()), "Weights of the views", percent=True)
        figures.append(html_figure("<strong>Weights</strong> of the views in the chosen model.", chart))
    if findings.kernel_weights:
        figures.append(_kernel_weights(findings))
    final = final_estimator(findings.model)
    if getattr(final, "metric_", None) is not None:  # None for a fixed metric
        figures.append(_metric_chart(final))
    figures += [part for part in (_importances(findings), _losses(findings)) if part]
    figures += _columns(findings)
    if not findings.feature_importances and findings.feature_meaning:
        text += f'<p class="soft">{escape(findings.feature_meaning)}</p>'
    if not figures:
        return text or f"<p>{escape(findings.loss_estimator)} uses a single view.</p>"
    return text + html_figures(figures)


def _kernel_weights(findings: Findings) -> str:
    rows = sorted(findings.kernel_weights, key=lambda row: -row[2])
    total = sum(weight for _, _, weight in rows) or 1.0
    shown = [(f"{view}, {kernel}", weight / total) for view, kernel, weight in rows[:SHOWN_WEIGHTS]]
    chart = charts.bars(shown, "Weights of views and kernels", percent=True, most=24)
    caption = "<strong>Weights by view and kernel</strong> in the chosen model, as shares of their sum."
    if len(rows) > SHOWN_WEIGHTS:
        caption += f" The {SHOWN_WEIGHTS} largest of {len(rows)}."
    return html_figure(caption, chart)


def _importances(findings: Findings) -> str:
    if len(findings.importances) < 2:
        return ""
    rows = [(name, value, np.nan, np.nan) for name, value in findings.importances.items()]
    scoring = findings.board.scoring
    chart = charts.intervals(rows, "Importance of the views", percent=is_share(scoring))
    caption = (
        "<strong>Importance of the views:</strong> the leave-one-out score that the chosen model loses without a view. "
        "Left of 0, the score is better without it."
    )
    return html_figure(caption, chart)


def _losses(findings: Findings) -> str:
    if not findings.losses:
        return ""
    rows = [(name, *values) for name, values in findings.losses.items()]
    scoring = findings.board.scoring
    chart = charts.intervals(rows, "Score lost without each view", percent=is_share(scoring))
    caption = (
        f"<strong>Score lost without each view:</strong> {score_name(scoring)} with all views minus "
        f"{score_name(scoring)} of {escape(findings.loss_estimator)} fitted without the view, mean and interval over "
        "the folds. Left of 0, the score is better without the view."
    )
    return html_figure(caption, chart)


def _columns(findings: Findings) -> list[str]:
    """Return a chart of the most important columns of each view."""
    figures = []
    for view, rows in findings.feature_importances.items():
        caption = f"<strong>Columns of {escape(view)}</strong> that matter most. {escape(findings.feature_meaning)}"
        if np.isfinite([row[2:] for row in rows]).all():
            caption += " The intervals are about other shuffles of the same samples, not about other samples."
        chart = charts.intervals(rows[:SHOWN_COLUMNS], f"Importance of columns of {view}")
        figures.append(html_figure(caption, chart))
    return figures


def _metric_chart(final: Any) -> str:
    norms = final.metric_.block_norms()
    shares, names = norms / (norms.max() or 1.0), [str(name) for name in final.metric_.names]
    texts = [[f"{value:.2f}" for value in row] for row in shares]
    chart = charts.heat_map(shares, names, names, texts, "The learned metric")
    caption = (
        "<strong>Learned metric.</strong> Contribution of each view and of each pair of views to the prediction: norms "
        "of the blocks of the metric, relative to the largest."
    )
    return html_figure(caption, chart)


# -- disagreement
def disagreement_section(findings: Findings) -> str:
    """Return where the views disagree, as HTML; empty if no compared estimator has predictions by view."""
    if not findings.vote_estimator:
        return ""
    text = f"Predictions of the single views in {escape(findings.vote_estimator)}, on held-out samples. "
    if findings.agreed is not None:
        n, share = findings.agreed
        text += f"All views predict the same class for {plural(n, 'sample')}: {100 * share:.1f}% are correct. "
    if findings.disputed is not None:
        n, share = findings.disputed
        text += f"They disagree on {plural(n, 'sample')}: {100 * share:.1f}% are correct."
    if not findings.disagreements:
        return f"<p>{text}</p>"
    classes = findings.board.task == "classification"
    rows = [
        [row.sample, *(vote or "missing" for vote in row.votes), row.prediction, row.truth,
         (row.spread, f"{row.spread:.2f}"), _is_correct(row) if classes else Mark("", "")]
        for row in findings.disagreements
    ]  # fmt: skip
    heads = ["sample", *findings.X.names, "all views", "truth", "spread", "correct" if classes else ""]
    table = html_table(heads, rows, numeric=(len(heads) - 2,))
    return f"<p>{text}</p>" + folded("Samples on which the views differ most: check them, or label them again", table)


def _is_correct(row: Disagreement) -> Mark:
    return Mark("right", "yes") if row.prediction == row.truth else Mark("wrong", "no")
