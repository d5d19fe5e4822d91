"""Show views, and estimators with their kernels and a short summary of their fit, as text and in notebooks."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from . import _blocks


# -- views
def views_table(X: Any) -> list[tuple[str, str, str, str]]:
    """Return name, kind, columns and number of present samples of each view as text."""
    rows = []
    for name in X.names:
        block, kind, n_present = X.block(name), X.kind(name), int(X.present(name).sum())
        if kind in ("dense", "sparse"):
            kind += " " + str(block.dtype).rpartition(".")[2]
        width = _blocks.width(block)
        columns = "" if kind == "missing" else f"{width} column{'s' * (width != 1)}"
        rows.append((name, kind, columns, "" if n_present == len(X) else f"present in {n_present}"))
    return rows


def views_html(X: Any) -> str:
    """Return a table of the views as HTML."""
    head = "<tr><th>view</th><th>kind</th><th>columns</th><th>present rows</th></tr>"
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{kind}</td><td>{_blocks.width(X.block(name))}</td>"
        f"<td>{int(X.present(name).sum())} of {len(X)}</td></tr>"
        for name, kind, _, _ in views_table(X)
    )
    return f"<table><caption>Views of {len(X)} samples</caption><thead>{head}</thead><tbody>{body}</tbody></table>"


# -- estimators
def kernels_of(estimator: Any) -> dict[str, str]:
    """Return the kernel of each view as text: the fitted ones, or else the parameter.

    The entry under '' is the kernel of all views that have no entry of their own.
    """
    used = getattr(estimator, "kernels_", None)
    if isinstance(used, dict):
        return {name: repr(kernel) for name, kernel in used.items()}
    kernel = getattr(estimator, "kernel", None)
    if kernel is None:
        return {}
    by_view = {**kernel, "": "rbf"} if isinstance(kernel, Mapping) else {"": kernel}
    return {name: _kernel_text(estimator, kernel) for name, kernel in by_view.items()}


def _kernel_text(estimator: Any, kernel: Any) -> str:
    try:
        return repr(estimator._part("kernel", kernel))
    except (TypeError, ValueError):  # not a kernel: `fit` raises
        return repr(kernel)


def weights_of(estimator: Any) -> np.ndarray | None:
    """Return the weight of each view: of its kernel if kernel weights are learned (mean over outputs), else its own."""
    weights = getattr(estimator, "kernel_weights_", getattr(estimator, "view_weights_", None))
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    return values.mean(axis=1) if values.ndim == 2 else values


def summary(estimator: Any) -> str:
    """Return a table of the views and sentences about the fit, as HTML."""
    kernels = kernels_of(estimator)
    names = list(getattr(estimator, "view_names_in_", [])) or list(kernels)
    values = weights_of(estimator)
    weights = {} if values is None else dict(zip(names, values.tolist(), strict=False))
    heads = ["view", *(["kernel"] if kernels else []), *(["weight"] if weights else [])]
    rows = []
    for name in names:
        cells = [escape(name) if name else "<em>every other view</em>" if len(names) > 1 else "<em>every view</em>"]
        cells += [f"<code>{escape(kernels.get(name, ''))}</code>"] if kernels else []
        cells += [f"{weights[name]:.3g}" if name in weights else ""] if weights else []
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    text = " ".join(escape(sentence) for sentence in _sentences(estimator))
    return f'<div class="consilience-summary">{table}<p>{text}</p></div>' if text else table


def _sentences(estimator: Any) -> list[str]:
    """Return what a fit tells: the classes, and mistakes of online estimators or the certificate of batch ones."""
    if not hasattr(estimator, "view_names_in_"):
        return []
    sentences = []
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, np.ndarray):
        shown = ", ".join(map(str, classes[:5].tolist())) + (", …" if len(classes) > 5 else "")
        sentences.append(f"{len(classes)} class{'es' * (len(classes) != 1)}: {shown}.")
    seen = getattr(estimator, "n_samples_seen_", 0)
    if seen:
        rate = 100 * estimator.n_mistakes_ / seen
        sentences.append(f"{seen:,} samples learned; {estimator.n_mistakes_:,} mistakes ({rate:.1f}%) before learning.")
    elif hasattr(estimator, "certificate"):
        sentences.append(str(estimator.certificate()))
    return sentences
