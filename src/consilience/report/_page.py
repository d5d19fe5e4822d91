"""The page: findings as one HTML file that needs nothing but itself."""

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from .. import __version__
from ..evaluation.candidates import learner_of
from ..evaluation.comparison import Comparison, difference_interval
from ..io.writing import write_atomically
from ..solvers.certificates import STATUSES
from ..views._notebook import kernels_of
from ..views.estimator import presence
from . import _charts as charts
from ._examine import SAMPLES, Disagreement, Findings, StreamFindings

MOST_CLASSES = 20  # that a confusion matrix can be read with
MOST_ROWS = 40  # of a table of classes or patterns


def write_report(
    path: str | os.PathLike[str],
    parts: Findings | StreamFindings | Sequence[Findings | StreamFindings],
    *,
    title: str = "Report",
) -> Path:
    """Write findings as one HTML file: no network, no script from elsewhere, light and dark, for screen and paper.

    Parameters
    ----------
    path : path
        Where to write; whole or not at all.
    parts : Findings, StreamFindings or a sequence of them
        What `examine` found, and streams.
    title : str, default="Report"
        The heading.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import consilience as cs
    >>> from consilience.report import StreamFindings, write_report
    >>> X, y = cs.datasets.make_views(n_samples=300, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron()
    >>> result = cs.progressive_validation(model, X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(f"{folder}/report.html", StreamFindings("made", "OrthogonalPerceptron", result))
    ...     "share of mistakes" in file.read_text()
    True
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder of the report, '{target.absolute().parent}', does not exist. Make it first."
        )
    given = [parts] if isinstance(parts, (Findings, StreamFindings)) else list(parts)
    text = _page(given, title)
    write_atomically(target, lambda file: file.write(text.encode()))
    return target


def _page(parts: Sequence[Findings | StreamFindings], title: str) -> str:
    folder = files(__package__)
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    sections = [_stream(p, k) if isinstance(p, StreamFindings) else _comparison(p, k) for k, p in enumerate(parts)]
    links = "".join(f'<li><a href="#part{k}">{escape(part.title)}</a></li>' for k, part in enumerate(parts))
    contents = f'<nav aria-label="Parts"><ul>{links}</ul></nav>' if len(parts) > 1 else ""
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><button id="theme" type="button" hidden>Dark</button></header>
{contents}
<main>
{"".join(sections)}
</main>
<footer>Made by consilience {escape(__version__)} on {made}. Headings of tables sort them. Intervals are 95 % intervals
of a mean over folds, widened because training parts share samples (Nadeau and Bengio 2003), and of accuracies at least
as wide as those of a share of so many samples (Wilson 1927).</footer>
<script>{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# -- a comparison
def _comparison(found: Findings, number: int) -> str:
    numeric = found.board.numbers
    return "".join(
        [
            f'<section class="part" id="part{number}"><h2>{escape(found.title)}</h2>',
            f'<p class="lead">{_verdict(found)}</p>',
            "<h3>The data at a glance</h3>",
            _data(found, numeric),
            "<h3>Leaderboard</h3>",
            _board(found),
            "<h3>The chosen model</h3>",
            _model(found),
            "<h3>Which views matter</h3>",
            _views(found),
            "<h3>Where views disagree</h3>",
            _disagreements(found, numeric),
            "<h3>Right and wrong</h3>",
            _errors(found, numeric),
            "</section>",
        ]
    )


def _verdict(found: Findings) -> str:
    best, measure = found.best, found.board.measure
    single = sum(row.name.endswith(" alone") for row in found.board)
    beside = f" and {single} single view{'s' * (single > 1)}" if single else ""
    many = len(found.board) - single
    said = f"The best of {many} learner{'s' * (many != 1)}{beside} is <strong>{escape(best.name)}</strong>: "
    said += f"{_measured(measure)} "
    said += f"{_score(best.score, measure)} ({_score(best.low, measure)} to {_score(best.high, measure)})."
    alone = next((row for row in found.board if row.name.endswith(" alone")), None)
    if alone is not None and alone is not best:
        said += f" The best single view compared, {escape(alone.name.removesuffix(' alone'))}, has "
        said += f"{_score(alone.score, measure)}."
    tied = sum(_tied(found, row) for row in found.board[1:])
    if tied:
        said += (
            f" {tied} of the {len(found.board) - 1} other rows cannot be told from {escape(best.name)} on these folds."
        )
    return said


def _measured(measure: str) -> str:
    return "R²" if measure == "R2" else measure


def _score(value: float, measure: str) -> str:
    return f"{value:.3f}" if measure == "R2" else f"{100 * value:.1f}\u00a0%"


def _tied(found: Findings, row: Comparison) -> bool:
    """Whether the difference from the first has 0 in its interval."""
    train, test = found.board.splits[0]
    apart = np.array(found.best.scores) - np.array(row.scores)
    rights = None if found.board.numbers else (found.best.answers == found.y, row.answers == found.y)
    low, high = difference_interval(apart, len(test) / len(train), rights)
    return bool(low <= 0 <= high)


def _data(found: Findings, numeric: bool) -> str:
    X, n = found.X, len(found.X)
    rows = [
        [
            name, X.kind(name), _width(X, name), (int(X.present(name).sum()), f"{int(X.present(name).sum()):,}"),
            (float(1 - X.present(name).mean()), f"{100 * (1 - X.present(name).mean()):.1f} %"),
        ]
        for name in X.names
    ]  # fmt: skip
    views = _table(["view", "kind", "columns", "samples", "missing"], rows, numbers=(2, 3, 4))
    said = f"{n:,} samples in {len(X.names)} view{'s' * (len(X.names) != 1)}; "
    if numeric:
        y = found.y
        said += f"the target has mean {y.mean():.4g}, deviation {y.std():.4g}, from {y.min():.4g} to {y.max():.4g}."
        classes = ""
    else:
        values, counts = np.unique(found.y, return_counts=True)
        said += f"{len(values)} classes."
        order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
        shown = [[str(values[k]), (int(counts[k]), f"{counts[k]:,}"), f"{100 * counts[k] / n:.1f} %"] for k in order]
        classes = _table(["class", "samples", "share"], shown, numbers=(1, 2))
        if len(values) > MOST_ROWS:
            classes += f'<p class="soft">The {MOST_ROWS} most frequent of {len(values)} classes.</p>'
    return (
        f'<p>{said}</p><div class="figures"><div>{views}{_pattern(found)}</div><div>{classes}</div></div>'
        + _aligned(found)
    )


def _width(X: Any, name: str) -> Any:
    if X.kind(name) in ("dense", "sparse"):
        width = int(X[name].shape[1])
        return width, f"{width:,}"
    return "-"


def _pattern(found: Findings) -> str:
    if presence(found.X).all():
        return '<p class="soft">No view is missing anywhere.</p>'
    rows = [
        [*(_Mark("there" if there else "gone", "present" if there else "missing") for there in pattern), (k, f"{k:,}")]
        for pattern, k in found.patterns[:MOST_ROWS]
    ]
    table = _table([*found.X.names, "samples"], rows, numbers=(len(found.X.names),))
    more = len(found.patterns) - MOST_ROWS
    rest = f'<p class="soft">And {more} rarer patterns.</p>' if more > 0 else ""
    return f'<p class="soft">Which views are present together:</p>{table}{rest}'


def _aligned(found: Findings) -> str:
    if len(found.X.names) < 2:
        return ""
    names = [*found.X.names, "target"]
    texts = [["" if np.isnan(v) else f"{v:.2f}" for v in row] for row in found.alignments]
    chart = charts.heat_map(found.alignments, names, names, texts, "Alignment of the views' kernels")
    words = (
        "<strong>How alike the views are.</strong> Alignment of centered kernels: 1 where two views tell samples apart "
        "in the same way, 0 where they have nothing in common. The last row is each view with the target."
    )
    if len(found.X) > SAMPLES:
        words += f" From {SAMPLES} samples drawn at random."
    return _figure(words, chart)


def _board(found: Findings) -> str:
    measure = found.board.measure
    lows = [row.low for row in found.board if np.isfinite(row.low)]
    least = max(min([*lows, min(row.score for row in found.board)]), -1.0 if measure == "R2" else 0.0)
    rows = [
        [
            row.name, (row.score, _score(row.score, measure)), (row.low, _score(row.low, measure)),
            (row.high, _score(row.high, measure)),
            _Raw(charts.mini_interval(max(row.score, least), row.low, row.high, least, 1.0)),
            (row.seconds, f"{row.seconds:.2f}"),
            "chosen" if row is found.best else "not told apart" if _tied(found, row) else "worse",
        ]
        for row in found.board
    ]  # fmt: skip
    heads = ["learner", _measured(measure), "low", "high", "", "seconds", "beside the first"]
    folds = len(found.board.splits)
    return (
        f"<p>Nested cross-validation: {folds} folds. Parameters are chosen within the training part of each, by "
        f"{found.board.inner} more folds or by the learner itself, so that scores are of samples that had no part in "
        "any choice but that of the first row: the best of many is a little lucky. Seconds are of one fold, search "
        f"included.{_failures(found)}</p>" + _table(heads, rows, numbers=(1, 2, 3, 5), first="chosen")
    )


def _failures(found: Findings) -> str:
    if not found.board.failed:
        return ""
    told = "; ".join(f"{name}: {reason}" for name, reason in found.board.failed.items())
    return f" Could not be fitted: {escape(told)}"


def _model(found: Findings) -> str:
    last = learner_of(found.model)
    facts = [("learner", f"<code>{escape(type(last).__name__)}</code>"), ("fitted on", f"{len(found.X):,} samples")]
    chosen = ["; ".join(f"{name} = {_value(value)}" for name, value in each.items()) for each in found.chosen]
    if chosen[0]:
        facts.append(("chosen on all samples", escape(chosen[0])))
        facts.append(("chosen in the folds", escape(", or ".join(dict.fromkeys(chosen[1:])))))
    kernels = kernels_of(last)
    if kernels:
        facts.append(("kernels", escape("; ".join(f"{name}: {kernel}" for name, kernel in kernels.items()))))
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    proof = "" if found.certificate is None else f'<p class="note">{escape(in_words(found.certificate))}</p>'
    return f"<dl>{listed}</dl>{proof}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def in_words(certificate: Any) -> str:
    """A certificate as people say it: how far from the optimum at most, in percent."""
    gap, objective = certificate.gap, certificate.objective
    if getattr(certificate, "mistakes", None) is not None:
        return str(certificate)
    if gap is not None and objective:
        percent = 100 * gap / abs(objective)
        share = np.format_float_positional(percent, precision=1, fractional=False, trim="-")
        said = f"Gap {gap:.1g}: within {share} % of the optimum." if percent > 1e-9 else "The optimum, up to rounding."
    elif certificate.status == "exact":
        said = "Solved directly: no iteration was cut short."
    else:
        said = STATUSES[certificate.status]
    if certificate.residual is not None:
        said += f" The conditions of the optimum hold to {certificate.residual:.1g}."
    return said


def _views(found: Findings) -> str:
    figures, said = [], ""
    weights = np.array(list(found.weights.values()))
    if len(weights) > 1 and np.ptp(weights) < 1e-9:
        said = "<p>The chosen model weighs its views alike.</p>"
    elif len(weights) > 1:
        chart = charts.bars(list(found.weights.items()), "Weights of the views", percent=True)
        figures.append(_figure("<strong>Weights</strong> of the views in the chosen model.", chart))
    last = learner_of(found.model)
    if hasattr(last, "metric_"):
        norms = last.metric_.block_norms()
        shares, names = norms / (norms.max() or 1.0), [str(name) for name in last.view_names_in_]
        texts = [[f"{value:.2f}" for value in row] for row in shares]
        chart = charts.heat_map(shares, names, names, texts, "The learned metric")
        words = "<strong>The learned metric.</strong> How much each view, and each pair of views, takes part in the "
        figures.append(_figure(words + "answer: norms of the blocks of the metric, the largest as 1.", chart))
    if found.losses:
        rows = [(name, *values) for name, values in found.losses.items()]
        percent = found.board.measure != "R2"
        chart = charts.intervals(rows, "Score lost without each view", percent=percent)
        lost = f"{_measured(found.board.measure)} lost by {escape(found.judge)}"
        figures.append(
            _figure(
                f"<strong>Without a view.</strong> What is lost where a view is left out, of training too: {lost}, "
                "mean and interval over the folds. Left of 0 it does better without.",
                chart,
            )
        )
    if not figures:
        return said or f"<p>{escape(found.judge)} takes one view.</p>"
    return f'{said}<div class="figures">{"".join(figures)}</div>'


def _disagreements(found: Findings, numeric: bool) -> str:
    if not found.speaker:
        return "<p>No learner of the board answers view by view.</p>"
    said = f"Asked one by one in {escape(found.speaker)}, on samples that were held out. "
    if found.agreed is not None:
        n, share = found.agreed
        said += f"All views name the same class for {n:,} samples; {100 * share:.1f} % of those answers are right. "
    if found.disputed is not None:
        n, share = found.disputed
        said += f"They differ for {n:,}; there {100 * share:.1f} % are right."
    if not found.disagreements:
        return f"<p>{said}</p>"
    rows = [
        [row.sample, *(vote or "missing" for vote in row.votes), row.answer, row.truth,
         (row.spread, f"{row.spread:.2f}"), _answered(row, numeric)]
        for row in found.disagreements
    ]  # fmt: skip
    heads = ["sample", *found.X.names, "together", "truth", "spread", "" if numeric else "answer"]
    more = "<p>The samples that the views are furthest apart on: worth a look, or a second label.</p>"
    return f"<p>{said}</p>{more}" + _table(heads, rows, numbers=(len(heads) - 2,))


def _answered(row: Disagreement, numeric: bool) -> "_Mark":
    if numeric:
        return _Mark("", "")
    return _Mark("right", "right") if row.answer == row.truth else _Mark("wrong", "wrong")


def _errors(found: Findings, numeric: bool) -> str:
    figures = [_numbers(found) if numeric else _confusion(found)]
    measure = _measured(found.board.measure)
    if len(found.calibration):
        figures.append(_calibration(found, numeric))
    if len(found.curve) > 1:
        sizes, means, lows, highs = found.curve.T
        chart = charts.lines(
            [("", np.column_stack([sizes, means]), "")], "Learning curve", x_name="training samples", y_name=measure,
            band=np.column_stack([sizes, np.maximum(lows, 2 * means.min() - 1), np.minimum(highs, 1.0)]),
            y_from=max(float(min(lows.min(), means.min())), float(2 * means.min() - 1)), y_to=1.0,
        )  # fmt: skip
        figures.append(
            _figure(
                "<strong>Learning curve.</strong> Score on held-out samples with part of the training samples, and its "
                "interval. Where it still rises, more samples will help.",
                chart,
            )
        )
    return f'<div class="figures">{"".join(figures)}</div>'


def _confusion(found: Findings) -> str:
    classes = np.unique(found.y)
    counts = confusion_matrix(found.y, found.best.answers, labels=classes)
    names = [str(name) for name in classes]
    if len(names) <= MOST_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        texts = [[str(k) if k else "" for k in row] for row in counts]
        chart = charts.heat_map(shares, names, names, texts, "Confusion matrix", axes=("truth", "answer"))
        words = "<strong>Confusion.</strong> Samples by truth and held-out answer; as dark as their share of the row."
        return _figure(words, chart)
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None, kind="stable")[:15]
    pairs = [(int(k // len(names)), int(k % len(names))) for k in order if off.flat[k] > 0]
    rows = [[names[i], names[j], (int(off[i, j]), str(off[i, j]))] for i, j in pairs]
    return (
        f"<div><p><strong>Confusion.</strong> The most frequent confusions of {len(names)} classes.</p>"
        + _table(["truth", "answer", "samples"], rows, numbers=(2,))
        + "</div>"
    )


def _numbers(found: Findings) -> str:
    chart = charts.scatter(
        found.best.answers.astype(float), found.y.astype(float), "Predicted and true numbers", x_name="predicted",
        y_name="true",
    )  # fmt: skip
    return _figure("<strong>Predicted and true</strong> numbers of held-out samples.", chart)


def _calibration(found: Findings, numeric: bool) -> str:
    points = found.calibration[:, :2]
    low, high = float(points.min()), float(points.max())
    ideal = np.array([[low, low], [high, high]])
    names = ("mean prediction", "mean truth") if numeric else ("confidence", "share right")
    chart = charts.lines(
        [("found", points, ""), ("calibrated", ideal, "ideal")], "Calibration", x_name=names[0], y_name=names[1],
        square=True,
    )  # fmt: skip
    words = "<strong>Calibration.</strong> "
    if numeric:
        words += "Samples in bins by prediction: on the diagonal, predictions are right on average at every level."
    else:
        gap = float(np.average(np.abs(points[:, 0] - points[:, 1]), weights=found.calibration[:, 2]))
        words += (
            f"Confidence is {escape(found.calibrated_by)}. Above the diagonal answers are right more often than they "
            f"claim. Mean distance {100 * gap:.1f} %."
        )
    return _figure(words, chart)


# -- a stream
def _stream(found: StreamFindings, number: int) -> str:
    result = found.result
    said = (
        f"<strong>{escape(found.learner)}</strong> made {result.mistakes:,} mistakes on {result.n_samples:,} samples, "
    )
    said += f"{100 * result.error:.2f} %, each predicted before it was learned."
    bound = getattr(found.certificate, "bound", None)
    proof = "" if found.certificate is None else f'<p class="note">{escape(str(found.certificate))}</p>'
    curves = []
    if len(result.curve):
        curves.append((found.learner, result.curve, ""))
    for k, (name, other) in enumerate(found.others.items()):
        if len(other.curve):
            curves.append((name, other.curve, ("third", "fourth")[k % 2]))
    if bound is not None and bound < result.n_samples and len(result.curve):
        seen = result.curve[:, 0]
        share = np.column_stack([seen, np.minimum(bound / seen, 1.0)])
        curves.append((f"bound: {bound:,.0f} mistakes", share, "second"))
    chart = ""
    if curves:
        chart = charts.lines(
            curves, "Share of mistakes along the stream", x_name="samples seen", y_name="share of mistakes", log=True,
            dots=False, y_from=0.0,
        )  # fmt: skip
        chart = _figure(
            "<strong>Share of mistakes so far</strong>, as samples come; the axis of samples is log.", chart
        )
    rows = [
        [name, (own.mistakes, f"{own.mistakes:,}"), (own.error, f"{100 * own.error:.2f} %")]
        for name, own in {found.learner: result, **found.others}.items()
    ]
    table = _table(["learner", "mistakes", "error"], rows, numbers=(1, 2)) if found.others else ""
    return (
        f'<section class="part" id="part{number}"><h2>{escape(found.title)}</h2><p class="lead">{said}</p>{proof}'
        f'<div class="figures"><div>{chart}</div><div>{table}</div></div></section>'
    )


# -- pieces
class _Raw(str):
    """Text that is HTML already."""


class _Mark(tuple[str, str]):
    """A cell with a class and a text."""

    def __new__(cls, kind: str, text: str) -> "_Mark":
        return super().__new__(cls, (kind, text))


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[int] = (), first: str = "") -> str:
    """A table that sorts by its headings; a cell is a text, (value, text), `_Raw` or `_Mark`."""
    right = [' class="number"' if k in numbers else "" for k in range(len(heads))]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, right, strict=True))
    body = []
    for number, row in enumerate(rows):
        kind = f' class="{first}"' if first and number == 0 else ""
        body.append(f"<tr{kind}>{''.join(map(_cell, row, right))}</tr>")
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(cell: Any, right: str) -> str:
    if isinstance(cell, _Raw):
        return f"<td>{cell}</td>"
    if isinstance(cell, _Mark):
        kind, text = cell[0], escape(cell[1])
        if kind in ("there", "gone"):
            return f'<td data-value="{text}"><span class="{kind}" role="img" aria-label="{text}"></span></td>'
        return f'<td class="{kind}">{text}</td>' if kind else "<td></td>"
    if isinstance(cell, tuple):
        return f'<td{right} data-value="{cell[0]}">{escape(cell[1])}</td>'
    return f"<td{right}>{escape(cell)}</td>"


def _figure(words: str, chart: str) -> str:
    return f"<figure><figcaption>{words}</figcaption>{chart}</figure>"
