"""How learners show themselves in notebooks: kernels by view and, once fitted, a short summary."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np


def kernels_of(learner: Any) -> dict[str, str]:
    """The kernel of each view as it reads: those used once fitted, else those given; others are under ''."""
    used = getattr(learner, "kernels_", None)
    if isinstance(used, dict):
        return {name: repr(kernel) for name, kernel in used.items()}
    if getattr(learner, "kernel", None) is None:
        return {}
    by_view = learner.kernel if isinstance(learner.kernel, Mapping) else {"": learner.kernel}
    return {name: _read(learner, kernel) for name, kernel in by_view.items()}


def _read(learner: Any, kernel: Any) -> str:
    try:
        return repr(learner._part("kernel", kernel))
    except (TypeError, ValueError):  # `fit` will say what is wrong with it
        return repr(kernel)


def weights_of(learner: Any) -> np.ndarray | None:
    """The weight of each view: that of its kernel where those are learned (the mean over outputs), else its own."""
    found = getattr(learner, "kernel_weights_", getattr(learner, "view_weights_", None))
    if found is None:
        return None
    values = np.asarray(found, dtype=np.float64)
    return values.mean(axis=1) if values.ndim == 2 else values


def summary(learner: Any) -> str:
    """A table of the views, and sentences on what was learned, as HTML."""
    kernels = kernels_of(learner)
    names = list(getattr(learner, "view_names_in_", [])) or list(kernels)
    found = weights_of(learner)
    weights = {} if found is None else dict(zip(names, found.tolist(), strict=False))
    heads = ["view", *(["kernel"] if kernels else []), *(["weight"] if weights else [])]
    rows = []
    for name in names:
        cells = [escape(name) if name else "<em>every other view</em>" if len(names) > 1 else "<em>every view</em>"]
        cells += [f"<code>{escape(kernels.get(name, ''))}</code>"] if kernels else []
        cells += [f"{weights[name]:.3g}" if name in weights else ""] if weights else []
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    told = " ".join(escape(sentence) for sentence in _sentences(learner))
    return f'<div class="consilience-summary">{table}<p>{told}</p></div>' if told else table


def _sentences(learner: Any) -> list[str]:
    if not hasattr(learner, "view_names_in_"):
        return []
    found = []
    classes = getattr(learner, "classes_", None)
    if isinstance(classes, np.ndarray):
        shown = ", ".join(map(str, classes[:5].tolist())) + (", …" if len(classes) > 5 else "")
        found.append(f"{len(classes)} class{'es' * (len(classes) != 1)}: {shown}.")
    seen = getattr(learner, "n_samples_seen_", 0)
    if seen:
        share = f" ({100 * learner.n_mistakes_ / seen:.1f} %)"
        found.append(f"{seen:,} samples learned, {learner.n_mistakes_:,} mistakes{share} before each was learned.")
    elif hasattr(learner, "certificate"):
        found.append(str(learner.certificate()))
    return found
