"""The section of the report about a comparison: answers first, then what they rest on."""

from html import escape
from typing import Any

import numpy as np

from ..evaluation._wrappers import final_estimator
from ..solvers.certificates import STATUSES, MistakeCertificate, PerceptronCertificate
from ..views._notebook import kernels_of
from ._answers import answers_html, answers_of
from ._board_section import board_section
from ._data_section import data_section
from ._findings import Findings
from ._html import PagePart, described, folded
from ._prediction_section import prediction_section
from ._preparation import preparation_words
from ._view_section import disagreement_section, importance_section


def comparison_section(findings: Findings) -> PagePart:
    """Return the section about a comparison."""
    blocks = {
        "Leaderboard": board_section(findings),
        "Predictions": prediction_section(findings),
        "Importance of views": importance_section(findings),
        "Disagreement of views": disagreement_section(findings),
        "Data": data_section(findings),
        "Chosen model": model_facts(findings),
    }
    lead = answers_html(answers_of(findings))
    return PagePart(findings.title, lead, {name: text for name, text in blocks.items() if text})


def model_facts(findings: Findings) -> str:
    """Return the chosen model with its parameters, kernels and certificate, as HTML."""
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
        facts.append(
            ("kernels", escape("; ".join(f"{name or 'every view'}: {kernel}" for name, kernel in kernels.items())))
        )
    if findings.certificate is None:
        return described(facts)
    return described(facts) + folded("Certificate", f"<p>{escape(certificate_text(findings.certificate))}</p>")


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
