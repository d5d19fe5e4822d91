"""The data of a comparison in a report: views, classes, missing views, likeness of the views."""

from typing import Any

import numpy as np

from ..views.estimator import presence
from . import _charts as charts
from ._examine_views import ALIGNED_SAMPLES
from ._findings import Findings
from ._html import Mark, folded, html_figure, html_figures, html_table, plural

MOST_ROWS = 40  # in a table of classes or patterns


def data_section(findings: Findings) -> str:
    """Return what the data are, as HTML."""
    X, y = findings.X, findings.y
    text = f"{plural(len(X), 'sample')} in {plural(len(X.names), 'view')}. "
    if findings.board.task == "regression":
        text += f"The target has mean {y.mean():.4g}, standard deviation {y.std():.4g}, "
        text += f"minimum {y.min():.4g} and maximum {y.max():.4g}."
        right = ""
    else:
        text += f"{len(np.unique(y))} classes."
        right = class_table(y)
    columns = [f"<div>{table_of_views(X)}{_patterns(findings)}</div>", f"<div>{right}</div>" if right else ""]
    if len(X.names) > 1:
        columns.append(_alignment_chart(findings))
    return f"<p>{text}</p>{html_figures([part for part in columns if part])}"


def table_of_views(X: Any) -> str:
    """Return a table of the views: kinds, columns, samples that have them."""
    rows = []
    for name in X.names:
        present = X.present(name)
        width = int(X[name].shape[1]) if X.kind(name) in ("dense", "sparse") else None
        rows.append(
            [
                name, X.kind(name), "-" if width is None else (width, f"{width:,}"),
                (int(present.sum()), f"{present.sum():,}"),
                (float(1 - present.mean()), f"{100 * (1 - present.mean()):.1f}%"),
            ]
        )  # fmt: skip
    return html_table(["view", "kind", "columns", "samples", "missing"], rows, numeric=(2, 3, 4))


def class_table(y: np.ndarray) -> str:
    """Return a table of the classes and their numbers of samples."""
    values, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    rows = [[str(values[k]), (int(counts[k]), f"{counts[k]:,}"), f"{100 * counts[k] / len(y):.1f}%"] for k in order]
    table = html_table(["class", "samples", "share"], rows, numeric=(1, 2))
    if len(values) > MOST_ROWS:
        table += f'<p class="soft">The {MOST_ROWS} most frequent of {len(values)} classes.</p>'
    return folded("Number of samples by class", table) if len(values) > 8 else table


def _patterns(findings: Findings) -> str:
    if presence(findings.X).all():
        return '<p class="soft">No sample has a missing view.</p>'
    rows = [
        [*(Mark(*(("present",) * 2 if there else ("missing",) * 2)) for there in pattern), (n, f"{n:,}")]
        for pattern, n in findings.patterns[:MOST_ROWS]
    ]
    table = html_table([*findings.X.names, "samples"], rows, numeric=(len(findings.X.names),))
    more = len(findings.patterns) - MOST_ROWS
    rest = f'<p class="soft">And {plural(more, "rarer pattern")}.</p>' if more > 0 else ""
    return folded("Views that are present together", table + rest)


def _alignment_chart(findings: Findings) -> str:
    names = [*findings.X.names, "target"]
    texts = [
        ["" if np.isnan(v) else f"{v + 0.0:.2f}".replace("-0.00", "0.00") for v in row] for row in findings.alignments
    ]
    chart = charts.heat_map(findings.alignments, names, names, texts, "Alignment of the views' kernels")
    caption = (
        "<strong>Similarity of the views.</strong> Unbiased alignment of kernels: 1 if two views have the same "
        "similarities between samples, up to scale; about 0 if they are independent. The last row compares each view "
        "with the target."
    )
    if len(findings.X) > ALIGNED_SAMPLES:
        caption += f" Computed on {ALIGNED_SAMPLES} random samples."
    return html_figure(caption, chart)
