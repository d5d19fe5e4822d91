"""The section of the report about a stream."""

from html import escape

import numpy as np

from . import _charts as charts
from ._findings import StreamFindings
from ._html import PagePart, folded, html_figure, html_figures, html_table


def stream_section(findings: StreamFindings) -> PagePart:
    """Return the section about a stream; its headline is the estimator with the fewest mistakes."""
    results = findings.results
    best, result = next(iter(results.items()))
    summary = (
        f"<strong>{escape(best)}</strong> made {result.n_mistakes:,} mistakes on {result.n_samples:,} "
        f"samples ({100 * result.error:.2f}%). It predicted each sample before it learned from it."
    )
    rows = [
        [name, (own.n_mistakes, f"{own.n_mistakes:,}"), (own.error, f"{100 * own.error:.2f}%")]
        for name, own in results.items()
    ]
    table = html_table(["estimator", "mistakes", "error"], rows, numeric=(1, 2), first="chosen")
    bound = ""
    if findings.certificate is not None:
        words = f"<p>{escape(findings.estimator)}: {escape(str(findings.certificate))}</p>"
        bound = folded(f"Mistake bound of {findings.estimator}", words)
    body = html_figures([_curves(findings), f"<div>{table}{bound}</div>"])
    return PagePart(findings.title, f'<p class="lead">{summary}</p>{body}', {})


def _curves(findings: StreamFindings) -> str:
    """Return the chart of the shares of mistakes, with the bound if it says something."""
    result, bound = findings.result, getattr(findings.certificate, "bound", None)
    curves = []
    for k, (name, own) in enumerate(findings.results.items()):
        if len(own.curve):
            curves.append((name, own.curve, "" if k == 0 else ("third", "fourth")[k % 2]))
    if bound is not None and bound < result.n_samples and len(result.curve):  # a larger bound says nothing
        seen = result.curve[:, 0]
        share = np.column_stack([seen, np.minimum(bound / seen, 1.0)])
        curves.append((f"bound of {findings.estimator}: {bound:,.0f} mistakes", share, "second"))
    if not curves:
        return ""
    chart = charts.lines(
        curves, "Share of mistakes along the stream", x_name="samples seen", y_name="share of mistakes", log=True,
        dots=False, y_from=0.0,
    )  # fmt: skip
    return html_figure("<strong>Share of mistakes so far.</strong> The axis of samples is logarithmic.", chart)
