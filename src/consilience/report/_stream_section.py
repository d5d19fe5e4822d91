"""The section of the report about a stream."""

from html import escape

import numpy as np

from . import _charts as charts
from ._findings import StreamFindings
from ._html import html_figure, html_table


def stream_section(findings: StreamFindings, number: int) -> str:
    """Return the section about a stream as HTML."""
    result = findings.result
    summary = (
        f"<strong>{escape(findings.estimator)}</strong> made {result.n_mistakes:,} mistakes on {result.n_samples:,} "
        f"samples ({100 * result.error:.2f}%). It predicted each sample before it learned from it."
    )
    certificate = "" if findings.certificate is None else f'<p class="note">{escape(str(findings.certificate))}</p>'
    rows = [
        [name, (own.n_mistakes, f"{own.n_mistakes:,}"), (own.error, f"{100 * own.error:.2f}%")]
        for name, own in {findings.estimator: result, **findings.others}.items()
    ]
    table = html_table(["estimator", "mistakes", "error"], rows, numeric=(1, 2)) if findings.others else ""
    return (
        f'<section class="part" id="part{number}"><h2>{escape(findings.title)}</h2><p class="lead">{summary}</p>'
        f'{certificate}<div class="figures"><div>{_curves(findings)}</div><div>{table}</div></div></section>'
    )


def _curves(findings: StreamFindings) -> str:
    """Return the chart of the shares of mistakes, with the bound if it says something."""
    result, bound = findings.result, getattr(findings.certificate, "bound", None)
    curves = [(findings.estimator, result.curve, "")] if len(result.curve) else []
    for k, (name, other) in enumerate(findings.others.items()):
        if len(other.curve):
            curves.append((name, other.curve, ("third", "fourth")[k % 2]))
    if bound is not None and bound < result.n_samples and len(result.curve):  # a larger bound says nothing
        seen = result.curve[:, 0]
        share = np.column_stack([seen, np.minimum(bound / seen, 1.0)])
        curves.append((f"bound: {bound:,.0f} mistakes", share, "second"))
    if not curves:
        return ""
    chart = charts.lines(
        curves, "Share of mistakes along the stream", x_name="samples seen", y_name="share of mistakes", log=True,
        dots=False, y_from=0.0,
    )  # fmt: skip
    return html_figure("<strong>Share of mistakes so far.</strong> The axis of samples is logarithmic.", chart)
