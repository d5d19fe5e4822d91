"""Kernels with values between views: G(x, z) is an m × m matrix, G_vw the kernel of view v of x and view w of z."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._backend import to_numpy
from ..views import _blocks
from ..views.container import Views
from .base import Kernel
from .by_view import view_grams


def checked_view_kernel(given: Any, names: Sequence[str]) -> Any:
    """Return a kernel between views as "diagonal", "covariance", a checked matrix (m, m) or a callable."""
    if callable(given):
        return given
    if isinstance(given, str):
        if given not in ("diagonal", "covariance"):
            raise ValueError(
                f"`view_kernel` is 'diagonal', 'covariance', a matrix with a row per view or a callable; got {given!r}."
            )
        return given
    try:
        B = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`view_kernel` must be a name, a matrix of numbers or a callable; got {given!r}.") from error
    m = len(names)
    if B.shape != (m, m) or not np.isfinite(B).all() or np.abs(B - B.T).max() > 1e-8 * np.abs(B).max():
        raise ValueError(
            f"`view_kernel` as a matrix must be finite and symmetric with a row per view, {m} in all; got {given!r}."
        )
    return B


def one_kernel(kernels: Mapping[str, Kernel], X: Views) -> dict[str, Kernel]:
    """Return the one kernel that a matrix between views multiplies, its parameters taken from all views together.

    Views must have the same columns: k(x_v, z_w) compares a view with another one.
    """
    names = list(kernels)
    first = kernels[names[0]]
    others = [name for name in names if repr(kernels[name]) != repr(first)]
    if others:
        raise ValueError(
            f"View '{others[0]}': a matrix for `view_kernel` multiplies one kernel of all views, but its kernel is "
            f"{kernels[others[0]]!r} and that of '{names[0]}' is {first!r}. Give the same kernel to every view."
        )
    widths = {name: getattr(X.block(name), "shape", (0, 0))[1] for name in names}
    if len(set(widths.values())) > 1 or first.reads_gram:
        raise ValueError(
            "A matrix for `view_kernel` compares each view with the others, so that all must have the same columns; "
            f"they have {', '.join(f'{width} ({name})' for name, width in widths.items())}. Use "
            "view_kernel='covariance' for views of different spaces."
        )
    rows = [_blocks.take(X.block(name), np.flatnonzero(X.present(name))) for name in names]
    stacked = np.vstack([block.toarray() if hasattr(block, "toarray") else to_numpy(block) for block in rows])
    return dict.fromkeys(names, first.resolved(stacked))


def between_views(view_kernel: Any, kernels: Mapping[str, Kernel], X: Views, Z: Views) -> np.ndarray:
    """Return G_vw(x_i, z_j) as (m, n, m, n'), 0 where a view is missing, for a matrix or a callable between views."""
    names = tuple(kernels)
    X, Z = X.align(names), Z.align(names)
    m, n, k = len(names), len(X), len(Z)
    if callable(view_kernel):
        blocks = np.asarray(view_kernel(X, Z), dtype=np.float64)
        if blocks.shape != (m, m, n, k) or not np.isfinite(blocks).all():
            raise ValueError(
                f"`view_kernel` must return finite numbers of shape (n_views, n_views, n_samples, n_other_samples), "
                f"here {(m, m, n, k)}; got {blocks.shape}."
            )
        out = blocks.transpose(0, 2, 1, 3).copy()
    else:
        out = np.zeros((m, n, m, k))
        for v, left in enumerate(names):
            for w, right in enumerate(names):
                if view_kernel[v, w]:
                    out[v, :, w] = view_kernel[v, w] * _pair(kernels[left], X, left, Z, right)
    for v, name in enumerate(names):
        out[v][~X.present(name)] = 0.0
        out[:, :, v][:, :, ~Z.present(name)] = 0.0
    return out


def _pair(kernel: Kernel, X: Views, left: str, Z: Views, right: str) -> np.ndarray:
    """Return the kernel between one view of X and one view of Z, 0 where they are missing."""
    if left == right:
        return to_numpy(view_grams({left: kernel}, X, Z)[0])
    rows, columns = np.flatnonzero(X.present(left)), np.flatnonzero(Z.present(right))
    out = np.zeros((len(X), len(Z)))
    if len(rows) and len(columns):
        with _blocks.naming(left):
            inner = kernel(_blocks.take(X.block(left), rows), _blocks.take(Z.block(right), columns))
        out[np.ix_(rows, columns)] = to_numpy(inner)
    return out
