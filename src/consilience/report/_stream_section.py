"""The section of the report about a stream."""

from html import escape
from typing import Any

import numpy as np

from ..evaluation._stream_result import WORDS, not_learned
from . import _charts as charts
from ._findings import StreamFindings
from ._html import PagePart, folded, html_figure, html_figures, html_table

_MOST_WINDOWS = 300  # points of a chart


def stream_section(findings: StreamFindings) -> PagePart:
    """Return the section about a stream; its headline is the estimator with the lowest error."""
    results = findings.results
    best, result = next(iter(results.items()))
    bound = ""
    if findings.certificate is not None:
        words = f"<p>{escape(findings.estimator)}: {escape(str(findings.certificate))}</p>"
        bound = folded(f"Mistake bound of {findings.estimator}", words)
    body = f"{_table(results)}{bound}{html_figures([_curves(findings), _windows(result)])}"
    blocks = {
        "Error in windows": _recent(result) if len(result.windows) > 1 else "",
        "Drift": _drifts(result),
        "Classes" if result.task == "classification" else "Labels": _classes(result),
        "Views of the stream": _views(result),
    }
    lead = f'<p class="lead">{_headline(best, result)}</p>{body}'
    return PagePart(findings.title, lead, {heading: text for heading, text in blocks.items() if text})


def _headline(name: str, result: Any) -> str:
    """Return what the best estimator reached, compared with the baseline."""
    if result.task == "regression":
        first = f"has a mean absolute error of {result.error:.4g} on {result.n_samples:,} samples."
    else:
        first = f"made {result.n_mistakes:,} mistakes on {result.n_samples:,} samples ({100 * result.error:.2f}%)."
    sentences = [f"<strong>{escape(name)}</strong> {first} It predicted each sample before it learned from it."]
    if result.verdict:
        compared = "equal to" if result.verdict == "equal to" else result.verdict
        sentences.append(
            f"{_BASELINES[result.task]} has an error of {_shown(result.baseline_error, result)}: "
            f"<strong>the error is {compared} the baseline</strong>."
        )
    return " ".join(sentences + not_learned(result))


_BASELINES = {
    "classification": "The most frequent class so far",
    "regression": "The mean of the targets so far",
    "labels": "The usual value of each label",
}


def _shown(value: float, result: Any) -> str:
    return f"{value:.4g}" if result.task == "regression" else f"{100 * value:.2f}%"


def _table(results: dict[str, Any]) -> str:
    """Return the measures of all estimators, and of the baseline below."""
    first = next(iter(results.values()))
    main = "mae" if first.task == "regression" else "error"
    others = [name for name in first.measures if name != main]
    heads = ["estimator", *(["mistakes"] if main == "error" else []), WORDS[main], *(WORDS.get(n, n) for n in others)]
    rows = []
    for name, own in results.items():
        mistakes = [(own.n_mistakes, f"{own.n_mistakes:,}")] if main == "error" else []
        rows.append([name, *mistakes, (own.error, _shown(own.error, own)), *_measured(own.measures, others)])
    foot: list[Any] = []
    if first.verdict:
        error = (first.baseline_error, _shown(first.baseline_error, first))
        blank = [""] if main == "error" else []
        foot = [_BASELINES[first.task], *blank, error, *_measured(first.baseline, others)]
    return html_table(heads, rows, numeric=range(1, len(heads)), first="chosen", foot=foot)


def _measured(values: dict[str, float], names: list[str]) -> list[Any]:
    found = [values.get(name, np.nan) for name in names]
    return [(value, f"{value:.4g}") if value == value else "" for value in found]


def _curves(findings: StreamFindings) -> str:
    """Return the chart of the errors so far, with the baseline, and the bound if it says something."""
    result, bound = findings.result, getattr(findings.certificate, "bound", None)
    curves = []
    for k, (name, own) in enumerate(findings.results.items()):
        if len(own.curve):
            curves.append((name, own.curve, "" if k == 0 else ("third", "fourth")[k % 2]))
    if len(result.baseline_curve):
        curves.append(("baseline", result.baseline_curve, "ideal"))
    if bound is not None and bound < result.n_samples and len(result.curve):  # a larger bound says nothing
        seen = result.curve[:, 0]
        share = np.column_stack([seen, np.minimum(bound / seen, 1.0)])
        curves.append((f"bound of {findings.estimator}: {bound:,.0f} mistakes", share, "second"))
    if not curves:
        return ""
    what = "mean absolute error" if result.task == "regression" else "share of mistakes"
    best = next(iter(findings.results.values()))
    chart = charts.lines(
        curves, f"{what.capitalize()} along the stream", x_name="samples seen", y_name=what, log=True, dots=False,
        y_from=0.0, marks=[event.sample for event in best.drifts],
    )  # fmt: skip
    marked = " Vertical lines are drifts." if best.drifts else ""
    return html_figure(
        f"<strong>{what.capitalize()} so far.</strong> The axis of samples is logarithmic.{marked}", chart
    )


def _windows(result: Any) -> str:
    """Return the chart of the error in windows, with the baseline and the drifts."""
    rows = result.windows
    if len(rows) < 2:
        return ""
    main = "mae" if result.task == "regression" else "error"
    size = int(np.diff(rows["samples"][:2])[0])
    kept = rows[:: -(-len(rows) // _MOST_WINDOWS)]
    curves = [
        (name, np.column_stack([kept["samples"].astype(np.float64), kept[field]]), kind)
        for name, field, kind in (("estimator", main, ""), ("baseline", f"baseline_{main}", "ideal"))
    ]
    chart = charts.lines(
        curves, "Error in windows", x_name="samples seen", y_name=WORDS[main], dots=False, y_from=0.0,
        marks=[event.sample for event in result.drifts],
    )  # fmt: skip
    marked = " Vertical lines are drifts." if result.drifts else ""
    spaced = "consecutive windows" if size == int(rows["samples"][0]) else "windows"
    what = WORDS[main].capitalize() if main == "error" else "MAE"
    return html_figure(f"<strong>{what} in {spaced}.</strong>{marked}", chart)


def _recent(result: Any) -> str:
    """Return the measures of all samples, of the last window and with fading weights."""
    rows = []
    for name in result.fading:
        values = [
            result.measures[name],
            result.windows[name][-1],
            result.fading[name],
            result.baseline.get(name, np.nan),
        ]
        rows.append([WORDS.get(name, name), *((v, f"{v:.4g}") if v == v else "" for v in values)])
    return html_table(["measure", "all samples", "last window", "fading", "baseline"], rows, numeric=(1, 2, 3, 4))


def _drifts(result: Any) -> str:
    if not result.drifts:
        return ""
    done = {"tell": "recorded", "forget": "half forgotten", "restart": "started again", "lower_view": "view halved"}
    rows = [
        [(event.sample, f"{event.sample:,}"), "error" if event.view is None else f"view {event.view}",
         (event.before, f"{event.before:.3f}"), (event.after, f"{event.after:.3f}"), done[event.action]]
        for event in result.drifts
    ]  # fmt: skip
    words = (
        "<p>The mean of each signal before the drift and since then. The signal of a view is 1 where it is wrong.</p>"
    )
    return words + html_table(["sample", "signal", "before", "since then", "action"], rows, numeric=(0, 2, 3))


def _classes(result: Any) -> str:
    if not result.by_class:
        return ""
    rows = [
        [str(label), (own.weight, f"{own.weight:,.4g}" if own.weight % 1 else f"{own.weight:,.0f}"),
         *((v, f"{100 * v:.1f}%") if v == v else "" for v in (own.recall, own.precision))]
        for label, own in result.by_class.items()
    ]  # fmt: skip
    return html_table(["class", "samples", "recall", "precision"], rows, numeric=(1, 2, 3))


def _views(result: Any) -> str:
    if not result.by_view:
        return ""
    rows = [
        [name, (own.weight, f"{own.weight:,.4g}" if own.weight % 1 else f"{own.weight:,.0f}"),
         *((v, f"{100 * v:.1f}%") if v == v else "" for v in (own.share, own.recent))]
        for name, own in result.by_view.items()
    ]  # fmt: skip
    words = "<p>Share of samples in which the view's own margin favors the true class, of all samples and recently.</p>"
    return words + html_table(["view", "samples", "right", "recently"], rows, numeric=(1, 2, 3))
