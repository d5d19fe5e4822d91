"""The section of the report about a model on an external cohort."""

from collections.abc import Sequence
from html import escape

import numpy as np

from ..evaluation._wrappers import final_estimator
from ..evaluation.external import UNCHECKED, ClassMeasures, ExternalEvaluation
from . import _charts as charts
from ._answers import Answer, answers_html, problems_answer
from ._data_section import table_of_views
from ._findings import ExternalFindings
from ._html import Markup, PagePart, folded, html_figure, html_figures, html_table, plural
from ._prediction_section import SHOWN_CLASSES, binned_chart, confusion, predicted_and_true, reliability_chart
from ._scores import interval_text, is_share

SHOWN_CURVES = 4
_CURVE_POINTS = 150
_STYLES = ("", "second", "third", "fourth")


def external_section(findings: ExternalFindings) -> PagePart:
    """Return the section about an external cohort."""
    found = findings.evaluation
    looked_for = (
        "Looked for training samples, missing targets and views, rare classes, classes that the model does not know, "
        "and columns in other units."
    )
    lead = answers_html([_headline(findings), problems_answer(findings.problems, looked_for)])
    blocks = {"Measures": _measures(found)}
    if found.task == "classification":
        blocks["Sensitivity and PPV by class"] = _classes(found.by_class)
        figures = [confusion(found.y, found.predictions)]
        figures += [_roc(found)] if found.roc else []
        figures += (
            [reliability_chart(found.calibration, _classes_of(findings, found))] if len(found.calibration) else []
        )
    else:
        figures = [predicted_and_true(found.y, found.predictions), binned_chart(found.calibration)]
    blocks["Predictions"] = html_figures(figures)
    blocks["Data"] = f"<p>{plural(len(findings.X), 'sample')}.</p>{table_of_views(findings.X)}"
    return PagePart(findings.title, lead, blocks)


def _headline(findings: ExternalFindings) -> Answer:
    found = findings.evaluation
    name, own = next(iter(found.measures.items()))
    unit = "%" if is_share(name) else ""
    model = type(final_estimator(findings.model)).__name__
    text = (
        f"<p><strong>{escape(model)}</strong> on {plural(len(found.y), 'sample')}{_newness(found.n_training)} "
        "The model was not fitted again.</p>"
    )
    question = "R²" if name == "R2" else name.capitalize()
    return Answer(question, interval_text(*own, name, unit), text)


def _newness(n_training: int | None) -> str:
    """Return how many of the samples are training samples, as far as the model stores these."""
    if n_training is None:
        return f". {UNCHECKED}"
    are = "none of which is a training sample" if not n_training else f"{n_training:,} of which are training samples"
    return f", {are} that the model stores."


def _measures(found: ExternalEvaluation) -> str:
    rows = []
    low = min([own.low for name, own in found.measures.items() if is_share(name)] + [0.95])
    for name, own in found.measures.items():
        shown = "R²" if name == "R2" else name
        chart = Markup(charts.mini_interval(own.value, own.low, own.high, low, 1.0)) if is_share(name) else ""
        rows.append([f"{shown} (%)" if is_share(name) else shown, (own.value, interval_text(*own, name)), chart])
    share = any(is_share(name) for name in found.measures)
    foot = ["", "", Markup(charts.mini_axis(low, 1.0, percent=True))] if share else []
    table = html_table(["measure", "value (95% interval)", ""], rows, numeric=(1,), foot=foot)
    if found.task == "regression":
        words = "Intervals of means are bootstrap-t intervals, that of R² has percentiles of bootstrap resamples."
        return table + folded("How the measures are computed", f"<p>{words}</p>")
    words = (
        "F1 and AUC are means over the classes, each against the others; of two classes, AUC is that of the second. "
        "The Brier score is the mean squared error of the probabilities: of two classes that of one probability, of "
        "more the sum over classes. Lower is better for it and for log loss. Accuracy has Wilson's interval, balanced "
        "accuracy combines those of the sensitivities, log loss and Brier score have bootstrap-t intervals, F1 and AUC "
        "percentiles of bootstrap resamples."
    )
    return table + folded("How the measures are computed", f"<p>{words}</p>")


def _classes(by_class: Sequence[ClassMeasures]) -> str:
    """Return sensitivity and positive predictive value of each class, the first classes unfolded."""
    ends = [own.low for row in by_class for own in (row.sensitivity, row.ppv) if np.isfinite(own.low)]
    low = min([*ends, 0.95])

    def cells(own: ClassMeasures) -> list[object]:
        return [
            str(own.label), (own.n_samples, f"{own.n_samples:,}"),
            *_shown(own.sensitivity, low), (own.n_predicted, f"{own.n_predicted:,}"), *_shown(own.ppv, low),
        ]  # fmt: skip

    heads = ["class", "samples", "sensitivity (%)", "", "predicted", "PPV (%)", ""]
    axis = Markup(charts.mini_axis(low, 1.0, percent=True))
    foot = ["", "", "", axis, "", "", axis]
    tables = [
        html_table(heads, [cells(own) for own in part], numeric=(1, 2, 4, 5), foot=foot)
        for part in (by_class[:SHOWN_CLASSES], by_class[SHOWN_CLASSES:])
        if part
    ]
    text = (
        "<p>Sensitivity is the share of the samples of a class that are predicted to be of it. PPV is the share of the "
        "samples predicted to be of the class that are of it. With Wilson's intervals.</p>"
    )
    n_more = len(by_class) - SHOWN_CLASSES
    return text + tables[0] + (folded(plural(n_more, "more class", "more classes"), tables[1]) if n_more > 0 else "")


def _shown(own: tuple[float, float, float], low: float) -> list[object]:
    if not np.isfinite(own[0]):
        return [(-1.0, "-"), ""]
    return [(own[0], interval_text(*own, "recall")), Markup(charts.mini_interval(*own, low, 1.0))]


def _classes_of(findings: ExternalFindings, found: ExternalEvaluation) -> np.ndarray:
    """Return the classes of the model; of two, that of the ROC curve is the second one."""
    classes = np.asarray(findings.model.classes_)
    return classes[::-1] if len(classes) == 2 and list(found.roc) == [classes[0]] else classes


def _roc(found: ExternalEvaluation) -> str:
    """Return the ROC curves of the classes with the smallest areas."""
    areas = {label: float(np.trapezoid(curve[:, 1], curve[:, 0])) for label, curve in found.roc.items()}
    chosen = sorted(areas, key=lambda label: areas[label])[:SHOWN_CURVES]
    curves = [
        (f"{charts.short(str(label), 30)}: {100 * areas[label]:.1f}%", _thinned(found.roc[label]), style)
        for label, style in zip(chosen, _STYLES, strict=False)
    ]
    curves.append(("chance", np.array([[0.0, 0.0], [1.0, 1.0]]), "ideal"))
    chart = charts.lines(
        curves, "ROC curves", x_name="false positive rate", y_name="sensitivity", square=True, dots=False
    )
    which = f" The {SHOWN_CURVES} classes with the smallest areas." if len(areas) > SHOWN_CURVES else ""
    caption = f"<strong>ROC.</strong> Each class against the others, with the area under the curve.{which}"
    return html_figure(caption, chart)


def _thinned(curve: np.ndarray) -> np.ndarray:
    """Return at most 150 points of a curve, with both ends: more only make the file larger."""
    places = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _CURVE_POINTS)).round().astype(int))
    return curve[places]
