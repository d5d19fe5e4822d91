"""The sections of the report about a comparison."""

from html import escape
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ..evaluation._intervals import difference_interval
from ..evaluation._wrappers import final_estimator
from ..evaluation.candidates import single_view
from ..evaluation.comparison import Comparison
from ..solvers.certificates import STATUSES, MistakeCertificate, PerceptronCertificate
from ..views._notebook import kernels_of
from ..views.estimator import presence
from . import _charts as charts
from ._examine import ALIGNED_SAMPLES
from ._findings import Disagreement, Findings
from ._html import Mark, Markup, html_figure, html_figures, html_table, plural
from ._preparation import preparation_words

MOST_CLASSES = 20  # in a confusion matrix that can still be read
MOST_ROWS = 40  # in a table of classes or patterns
MOST_CONFUSIONS = 15


def comparison_section(findings: Findings, number: int) -> str:
    """Return the section about a comparison as HTML."""
    parts = {
        "Data": _data(findings),
        "Leaderboard": _leaderboard(findings),
        "Chosen model": _model(findings),
        "Importance of views": _importance(findings),
        "Disagreement of views": _disagreement(findings),
        "Errors": _errors(findings),
    }
    body = "".join(f"<h3>{heading}</h3>{text}" for heading, text in parts.items())
    return (
        f'<section class="part" id="part{number}"><h2>{escape(findings.title)}</h2>'
        f'<p class="lead">{_summary(findings)}</p>{body}</section>'
    )


def _summary(findings: Findings) -> str:
    board, best = findings.board, findings.best
    single = [row for row in board if single_view(row.name, findings.X) is not None]
    views = f" and {plural(len(single), 'single view')}" if single else ""
    text = (
        f"The best of {plural(len(board) - len(single), 'estimator')}{views} is <strong>{escape(best.name)}</strong>: "
        f"{_score_name(findings)} {_score(findings, best.score)} (95% interval {_score(findings, best.low)} to "
        f"{_score(findings, best.high)})."
    )
    if single and single[0] is not best:
        view = str(single_view(single[0].name, findings.X))
        text += f" The best single view, {escape(view)}, has {_score(findings, single[0].score)}."
    tied = sum(_is_tied(findings, row) for row in board[1:])
    if tied == len(board) - 1 > 0:
        text += " No other row differs significantly from it."
    elif tied:
        text += f" {tied} of the {len(board) - 1} other rows {'do' if tied > 1 else 'does'} not differ significantly."
    return text


def _score_name(findings: Findings) -> str:
    return "R²" if findings.board.scoring == "r2" else escape(findings.board.scoring)


def _score(findings: Findings, value: float) -> str:
    if findings.board.scoring == "accuracy":
        return f"{100 * value:.1f}%"
    return f"{value:.3f}" if findings.board.scoring == "r2" else f"{value:.4g}"


def _is_tied(findings: Findings, row: Comparison) -> bool:
    """Tell whether the interval of the difference from the best score contains 0."""
    differences = np.array(findings.best.scores) - np.array(row.scores)
    correct = (findings.best.predictions == findings.y, row.predictions == findings.y)
    paired = correct if findings.board.scoring == "accuracy" else None
    low, high = difference_interval(differences, findings.board.test_ratio, paired)
    return bool(low <= 0 <= high)


# -- data
def _data(findings: Findings) -> str:
    X, y = findings.X, findings.y
    text = f"{plural(len(X), 'sample')} in {plural(len(X.names), 'view')}. "
    if findings.board.task == "regression":
        text += f"The target has mean {y.mean():.4g}, standard deviation {y.std():.4g}, "
        text += f"minimum {y.min():.4g} and maximum {y.max():.4g}."
        classes = ""
    else:
        text += f"{len(np.unique(y))} classes."
        classes = _classes(y)
    views = _views_table(X)
    return f"<p>{text}</p>{html_figures([f'<div>{views}{_patterns(findings)}</div>', f'<div>{classes}</div>'])}" + (
        _alignment_chart(findings) if len(X.names) > 1 else ""
    )


def _views_table(X: Any) -> str:
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


def _classes(y: np.ndarray) -> str:
    values, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    rows = [[str(values[k]), (int(counts[k]), f"{counts[k]:,}"), f"{100 * counts[k] / len(y):.1f}%"] for k in order]
    table = html_table(["class", "samples", "share"], rows, numeric=(1, 2))
    if len(values) > MOST_ROWS:
        table += f'<p class="soft">The {MOST_ROWS} most frequent of {len(values)} classes.</p>'
    return table


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
    return f'<p class="soft">Views that are present together:</p>{table}{rest}'


def _alignment_chart(findings: Findings) -> str:
    names = [*findings.X.names, "target"]
    texts = [["" if np.isnan(v) else f"{v:.2f}" for v in row] for row in findings.alignments]
    chart = charts.heat_map(findings.alignments, names, names, texts, "Alignment of the views' kernels")
    caption = (
        "<strong>Similarity of the views.</strong> Alignment of centered kernels: 1 if two views have the same "
        "similarities between samples, up to scale; 0 if they have nothing in common. The last row compares each view "
        "with the target."
    )
    if len(findings.X) > ALIGNED_SAMPLES:
        caption += f" Computed on {ALIGNED_SAMPLES} random samples."
    return html_figure(caption, chart)


# -- leaderboard and model
def _leaderboard(findings: Findings) -> str:
    board = findings.board
    low, high = _score_range(findings)
    rows = [
        [
            row.name, (row.score, _score(findings, row.score)), (row.low, _score(findings, row.low)),
            (row.high, _score(findings, row.high)),
            Markup(charts.mini_interval(min(max(row.score, low), high), row.low, row.high, low, high)),
            (row.fit_time, f"{row.fit_time:.2f}"),
            "" if row is findings.best else "not significant" if _is_tied(findings, row) else "significant",
        ]
        for row in board
    ]  # fmt: skip
    heads = ["estimator", _score_name(findings), "low", "high", "", "fit time (s)", "difference"]
    n_inner = getattr(board.inner_cv, "n_splits", None)
    inner = f"{n_inner} inner folds" if n_inner else "inner folds"
    text = (
        f"Nested cross-validation with {len(board.splits)} folds. Parameters are chosen within the training part of "
        f"each fold, by {inner} or by the estimator itself. So the test samples of a fold take no part in these "
        "choices. The best row is chosen by its score, so its score is slightly optimistic. Fit times are means over "
        "the folds and include the choice of parameters."
    )
    if board.prepare is not None:
        text += " The preparation of the views is fitted within the training part of each fold, too."
    if board.groups is not None:
        text += " All samples of a group are in the same part of a fold."
    if board.failed:
        failures = "; ".join(f"{name}: {reason}" for name, reason in board.failed.items())
        text += f" Could not be fitted: {escape(failures)}"
    return f"<p>{text}</p>" + html_table(heads, rows, numeric=(1, 2, 3, 5), first="chosen")


def _score_range(findings: Findings) -> tuple[float, float]:
    """Return the range of scores that the charts of the leaderboard show."""
    board = findings.board
    values = [v for row in board for v in (row.low, row.score, row.high) if np.isfinite(v)]
    if board.scoring == "accuracy":
        return max(min(values), 0.0), 1.0
    return (max(min(values), -1.0), 1.0) if board.scoring == "r2" else (min(values), max(values))


def _model(findings: Findings) -> str:
    final = final_estimator(findings.model)
    facts = [
        ("estimator", f"<code>{escape(type(final).__name__)}</code>"),
        ("fitted on", f"{len(findings.X):,} samples"),
    ]
    chosen = ["; ".join(f"{name} = {_value(value)}" for name, value in each.items()) for each in findings.chosen_params]
    if chosen[0]:
        facts.append(("chosen on all samples", escape(chosen[0])))
        facts.append(("chosen in the folds", escape(", or ".join(dict.fromkeys(chosen[1:])))))
    for view, words in preparation_words(findings.model).items():
        facts.append((f"preparation of {escape(view)}", escape(words)))
    kernels = kernels_of(final)
    if kernels:
        facts.append(("kernels", escape("; ".join(f"{name}: {kernel}" for name, kernel in kernels.items()))))
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    note = (
        "" if findings.certificate is None else f'<p class="note">{escape(certificate_text(findings.certificate))}</p>'
    )
    return f"<dl>{listed}</dl>{note}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def certificate_text(certificate: Any) -> str:
    """Return a certificate in plain words: the largest possible distance from the optimum, in percent."""
    gap, objective = certificate.gap, certificate.objective
    if isinstance(certificate, (MistakeCertificate, PerceptronCertificate)):  # of online estimators
        return str(certificate)
    if gap is not None and objective:
        percent = 100 * gap / abs(objective)
        share = np.format_float_positional(percent, precision=1, fractional=False, trim="-")
        text = f"Gap {gap:.1g}: within {share}% of the optimum." if percent > 1e-9 else "Optimal up to rounding."
    elif certificate.status == "exact":
        text = "Solved directly, without iterations."
    else:
        text = STATUSES[certificate.status]
    if certificate.residual is not None:
        text += f" The optimality conditions hold to {certificate.residual:.1g}."
    return text


# -- views
def _importance(findings: Findings) -> str:
    figures, text = [], ""
    weights = np.array(list(findings.weights.values()))
    if len(weights) > 1 and np.ptp(weights) < 1e-9:  # a chart of equal bars says nothing
        text = "<p>The chosen model weights all views equally.</p>"
    elif len(weights) > 1:
        chart = charts.bars(list(findings.weights.items()), "Weights of the views", percent=True)
        figures.append(html_figure("<strong>Weights</strong> of the views in the chosen model.", chart))
    final = final_estimator(findings.model)
    if getattr(final, "metric_", None) is not None:  # None for a fixed metric
        figures.append(_metric_chart(final))
    if findings.losses:
        rows = [(name, *values) for name, values in findings.losses.items()]
        chart = charts.intervals(rows, "Score lost without each view", percent=findings.board.scoring == "accuracy")
        caption = (
            f"<strong>Score lost without each view:</strong> {_score_name(findings)} with all views minus "
            f"{_score_name(findings)} of {escape(findings.loss_estimator)} fitted without the view, mean and interval "
            "over the folds. Left of 0, the score is better without the view."
        )
        figures.append(html_figure(caption, chart))
    if not figures:
        return text or f"<p>{escape(findings.loss_estimator)} uses a single view.</p>"
    return text + html_figures(figures)


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


def _disagreement(findings: Findings) -> str:
    if not findings.vote_estimator:
        return "<p>In no compared estimator do single views predict by themselves.</p>"
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
    more = "<p>The samples on which the views differ most. Check them, or label them again.</p>"
    return f"<p>{text}</p>{more}" + html_table(heads, rows, numeric=(len(heads) - 2,))


def _is_correct(row: Disagreement) -> Mark:
    return Mark("right", "yes") if row.prediction == row.truth else Mark("wrong", "no")


# -- errors
def _errors(findings: Findings) -> str:
    figures = [_predicted_and_true(findings) if findings.board.task == "regression" else _confusion(findings)]
    if len(findings.calibration):
        figures.append(_calibration_chart(findings))
    if len(findings.learning_curve) > 1:
        figures.append(_curve_chart(findings))
    return html_figures(figures)


def _curve_chart(findings: Findings) -> str:
    sizes, means, lows, highs = findings.learning_curve.T
    bounded = findings.board.scoring in ("accuracy", "r2")  # at most 1: long intervals below must not hide the curve
    floor = float(2 * means.min() - 1) if bounded else float(lows.min())  # twice the distance of the lowest mean from 1
    chart = charts.lines(
        [("", np.column_stack([sizes, means]), "")], "Learning curve", x_name="training samples",
        y_name=_score_name(findings), band=np.column_stack([sizes, np.maximum(lows, floor), highs]),
        y_from=max(float(min(lows.min(), means.min())), floor), y_to=1.0 if bounded else float(highs.max()),
    )  # fmt: skip
    caption = (
        "<strong>Learning curve.</strong> Score on held-out samples after training on some of the training samples, "
        "with its interval. Where it still rises, more samples are likely to help."
    )
    return html_figure(caption, chart)


def _confusion(findings: Findings) -> str:
    classes = np.unique(findings.y)
    counts = confusion_matrix(findings.y, findings.best.predictions, labels=classes)
    names = [str(name) for name in classes]
    if len(names) <= MOST_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        texts = [[str(k) if k else "" for k in row] for row in counts]
        chart = charts.heat_map(shares, names, names, texts, "Confusion matrix", axes=("truth", "prediction"))
        caption = (
            "<strong>Confusion matrix.</strong> Number of samples by true class and held-out prediction. The shade is "
            "the share of the row."
        )
        return html_figure(caption, chart)
    off = counts - np.diag(np.diag(counts))  # without the correct predictions
    order = np.argsort(-off, axis=None, kind="stable")[:MOST_CONFUSIONS]
    pairs = [(int(k // len(names)), int(k % len(names))) for k in order if off.flat[k] > 0]
    rows = [[names[i], names[j], (int(off[i, j]), str(off[i, j]))] for i, j in pairs]
    return (
        f"<div><p><strong>Confusions.</strong> The most frequent confusions of {len(names)} classes.</p>"
        + html_table(["truth", "prediction", "samples"], rows, numeric=(2,))
        + "</div>"
    )


def _predicted_and_true(findings: Findings) -> str:
    chart = charts.scatter(
        findings.best.predictions.astype(float), findings.y.astype(float), "Predicted and true values",
        x_name="predicted", y_name="true",
    )  # fmt: skip
    return html_figure("<strong>Predicted and true</strong> values of held-out samples.", chart)


def _calibration_chart(findings: Findings) -> str:
    points = findings.calibration[:, :2]
    low, high = float(points.min()), float(points.max())
    ideal = np.array([[low, low], [high, high]])
    regression = findings.board.task == "regression"
    names = ("mean prediction", "mean target") if regression else ("confidence", "share correct")
    chart = charts.lines(
        [("observed", points, ""), ("calibrated", ideal, "ideal")], "Calibration", x_name=names[0], y_name=names[1],
        square=True,
    )  # fmt: skip
    if regression:
        text = "Samples in bins by prediction. On the diagonal, the predictions of a bin are correct on average."
    else:
        gap = float(np.average(np.abs(points[:, 0] - points[:, 1]), weights=findings.calibration[:, 2]))
        text = (
            f"Confidence is {escape(findings.confidence)}. Above the diagonal, predictions are correct more often than "
            f"their confidence says. Mean distance {100 * gap:.1f}%."
        )
    return html_figure(f"<strong>Calibration.</strong> {text}", chart)
