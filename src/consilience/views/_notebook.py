"""Show views, and estimators with their kernels and a short summary of their fit, as text and in notebooks."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from . import _blocks

_MOST_KERNELS = 8  # rows of a table of the kernels of a consensus


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

    The entry under '' is the kernel of all views that have no entry of their own. Several kernels of one view are
    listed by their labels.
    """
    used = getattr(estimator, "kernels_", None)
    if isinstance(used, dict):
        return {name: ", ".join(own) if isinstance(own, Mapping) else repr(own) for name, own in used.items()}
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
    """Return the weight of each view: of its kernels if kernel weights are learned (mean over outputs), else its own.

    Weights of several kernels of one view are added, without their signs.
    """
    by_kernel = _weights_by_kernel(estimator)
    if by_kernel is None:
        weights = getattr(estimator, "view_weights_", None)
        if weights is None:
            return None
        values = np.asarray(weights, dtype=np.float64)
        return values.mean(axis=1) if values.ndim == 2 else values
    return np.array([own[0] if len(own) == 1 else float(np.abs(own).sum()) for own in by_kernel.values()])


def _weights_by_kernel(estimator: Any) -> dict[str, np.ndarray] | None:
    """Return the learned weights of the kernels of each view, mean over outputs; None if there are none."""
    weights = vars(estimator).get("_kernel_weights")
    if weights is None:
        return None
    values = weights.mean(axis=1) if weights.ndim == 2 else weights
    kernels = {name: estimator.kernels_[name] for name in estimator._used_views}
    sizes = [len(own) if isinstance(own, Mapping) else 1 for own in kernels.values()]
    return dict(zip(kernels, np.split(values, np.cumsum(sizes)[:-1]), strict=True))


def labeled_weights(estimator: Any) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Return names "view: kernel" and learned weights, one for each output that has its own, of several kernels.

    None is returned where each view has one kernel.
    """
    kernels = vars(estimator).get("kernels_", {})
    if "_kernel_weights" not in vars(estimator) or not any(isinstance(own, Mapping) for own in kernels.values()):
        return None
    own = {name: kernels[name] if isinstance(kernels[name], Mapping) else {"": 1} for name in estimator._used_views}
    return tuple(f"{name}: {k}" if k else name for name in own for k in own[name]), estimator._kernel_weights


def _consensus_weights(estimator: Any) -> list[tuple[str, str, float]]:
    """Return view, kernel and weight of the base models of a consensus; nothing for other estimators."""
    fitted = hasattr(estimator, "_weighted_kernels") and hasattr(estimator, "view_names_in_")
    return list(estimator._weighted_kernels()) if fitted else []


def _rows_of(estimator: Any) -> list[tuple[str, str | None, float | None]]:
    """Return view, kernel and weight, a row for each kernel that has a weight, else for each view."""
    consensus = _consensus_weights(estimator)
    if consensus:
        return list(consensus[:_MOST_KERNELS])
    kernels = kernels_of(estimator)
    names = list(getattr(estimator, "view_names_in_", [])) or list(kernels)
    values, by_kernel = weights_of(estimator), _weights_by_kernel(estimator) or {}
    weights = {}
    if values is not None:  # views missing in every training sample may have none
        used = names if len(values) == len(names) else estimator._used_views
        weights = dict(zip(used, values.tolist(), strict=False))
    rows: list[tuple[str, str | None, float | None]] = []
    for name in names:
        own = vars(estimator).get("kernels_", {}).get(name)
        if isinstance(own, Mapping) and name in by_kernel:
            rows += [(name, label, float(c)) for label, c in zip(own, by_kernel[name], strict=True)]
        else:
            rows.append((name, kernels.get(name, "") if kernels else None, weights.get(name)))
    return rows


def summary(estimator: Any) -> str:
    """Return a table of the views and sentences about the fit, as HTML."""
    found = _rows_of(estimator)
    weighted, with_kernels = (any(row[k] is not None for row in found) for k in (2, 1))
    heads = ["view", *(["kernel"] if with_kernels else []), *(["weight"] if weighted else [])]
    rows = []
    for name, kernel, weight in found:
        cells = [escape(name) if name else "<em>every other view</em>" if len(found) > 1 else "<em>every view</em>"]
        cells += [f"<code>{escape(kernel or '')}</code>"] if with_kernels else []
        cells += ["" if weight is None else f"{weight:.3g}"] if weighted else []
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
    if seen and hasattr(estimator, "total_loss_"):
        sentences.append(f"{seen:,} samples learned; mean loss {estimator.total_loss_ / seen:.4g} before learning.")
        return sentences
    if seen:
        rate = 100 * estimator.n_mistakes_ / seen
        sentences.append(f"{seen:,} samples learned; {estimator.n_mistakes_:,} mistakes ({rate:.1f}%) before learning.")
        return sentences
    n_kernels = len(_consensus_weights(estimator))
    if n_kernels > _MOST_KERNELS:
        sentences.append(f"The {_MOST_KERNELS} largest of {n_kernels} weights are shown.")
    if hasattr(estimator, "certificate"):
        sentences.append(str(estimator.certificate()))
    return sentences
