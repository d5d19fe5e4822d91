"""One kernel per view: their Gram matrices, and the combinations and block forms that learners use."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.container import Views
from .base import Array, Kernel, integer_power
from .scalar import as_kernel


def kernel_of(kernel: Any, name: str) -> Kernel:
    """Return the kernel of one view; "rbf" where `kernel` is a dict that does not name the view."""
    return as_kernel(kernel.get(name, "rbf") if isinstance(kernel, Mapping) else kernel)


def reads_gram(kernel: Any, name: str) -> bool:
    """Tell whether the kernel of a view takes Gram matrices."""
    return kernel is not None and kernel_of(kernel, name).reads_gram


def is_pairwise(kernel: Any) -> bool:
    """Tell whether every view must be a Gram matrix, so that splitting takes rows and columns."""
    if kernel is None or isinstance(kernel, Mapping):
        return False
    try:
        return as_kernel(kernel).reads_gram
    except (TypeError, ValueError):  # not a kernel: `fit` says so
        return False


def as_part(parameter: str, value: Any) -> Any:
    """Return a parameter of an estimator, or its entry for one view, with names of kernels replaced by kernels."""
    return as_kernel(value) if parameter == "kernel" else value


def kernels_by_view(kernel: Any, names: Sequence[str]) -> dict[str, Kernel]:
    """Return a kernel for each view.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict
        One kernel for every view, or kernels by view; views that the dict does not name get "rbf".
    names : sequence of str
        The views.

    Returns
    -------
    dict of Kernel
        A kernel for each view, in order.

    Examples
    --------
    >>> from consilience.kernels import kernels_by_view
    >>> kernels_by_view({"audio": "linear"}, ["audio", "video"])
    {'audio': Linear(), 'video': RBF(gamma='scale')}
    """
    unknown = [name for name in kernel if name not in names] if isinstance(kernel, Mapping) else []
    if unknown:
        raise ValueError(f"`kernel` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}.")
    return {name: kernel_of(kernel, name) for name in names}


def resolve_kernels(kernels: Mapping[str, Kernel], X: Views) -> dict[str, Kernel]:
    """Work out on the present rows of each view what its kernel takes from data.

    Parameters
    ----------
    kernels : dict of Kernel
        A kernel for each view.
    X : Views
        The training samples.

    Returns
    -------
    dict of Kernel
        Kernels with numbers for parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Views
    >>> from consilience.kernels import RBF, resolve_kernels
    >>> resolve_kernels({"a": RBF("median")}, Views(a=np.array([[0.0], [2.0]])))
    {'a': RBF(gamma=0.25)}
    """
    resolved = {}
    for name, kernel in kernels.items():
        with _blocks.naming(name):
            resolved[name] = kernel.resolved(_present_block(X, name))
    return resolved


def reference_views(kernels: Mapping[str, Kernel], X: Views) -> Views:
    """Return what a fitted learner keeps of its training samples: Gram matrices leave only positions behind.

    Parameters
    ----------
    kernels : dict of Kernel
        A kernel for each view.
    X : Views
        The training samples.

    Returns
    -------
    Views
        The samples to evaluate kernels against.
    """
    kept = {name: reference_block(kernels[name], X.block(name)) for name in X.names}
    return Views._of(kept, len(X), X.mask, X.feature_names)


def reference_block(kernel: Kernel, block: Block) -> Block:
    """One view of `reference_views`."""
    if block is None or not kernel.reads_gram:
        return block
    gram = block if isinstance(block, Gram) else Gram(block)
    return gram.reference(strip=not kernel.keeps_gram)


def view_grams(kernels: Mapping[str, Kernel], X: Views, Y: Views | None = None, *, absent: str = "zero") -> list[Array]:
    """Evaluate each view's kernel; one matrix per view over all samples.

    Parameters
    ----------
    kernels : dict of Kernel
        A kernel for each view, resolved.
    X, Y : Views
        The samples; Y is the reference (X again by default).
    absent : {"zero", "mean"}, default="zero"
        Where a view is absent: 0, so that it adds nothing to a sum; or the mean over the present reference samples in
        feature space, which keeps products positive semi-definite.

    Returns
    -------
    list of array of shape (n_samples_X, n_samples_Y)
        The Gram matrices, in the order of `kernels`.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Views
    >>> from consilience.kernels import Linear, view_grams
    >>> X = Views(a=[[1.0], [2.0]], b=[[3.0], None])
    >>> view_grams({"a": Linear(), "b": Linear()}, X)[1]
    array([[9., 0.],
           [0., 0.]])
    """
    if absent not in ("zero", "mean"):
        raise ValueError(f"`absent` must be 'zero' or 'mean'; got {absent!r}.")
    grams = []
    for name, kernel in kernels.items():
        with _blocks.naming(name):
            grams.append(_padded_gram(kernel, X, Y, name, absent))
    return grams


def present_grams(kernels: Mapping[str, Kernel], X: Views) -> list[Array]:
    """Evaluate each view's kernel between the samples that have the view.

    Parameters
    ----------
    kernels : dict of Kernel
        A kernel for each view, resolved.
    X : Views
        The samples.

    Returns
    -------
    list of array of shape (n_present, n_present)
        The Gram matrices, in the order of `kernels`.

    Examples
    --------
    >>> from consilience import Views
    >>> from consilience.kernels import Linear, present_grams
    >>> X = Views(a=[[1.0], [2.0]], b=[[3.0], None])
    >>> present_grams({"b": Linear()}, X)
    [array([[9.]])]
    """
    grams = []
    for name, kernel in kernels.items():
        with _blocks.naming(name):
            grams.append(kernel(_present_block(X, name)))
    return grams


def _present_block(X: Views, name: str) -> Any:
    block, present = X.block(name), X.present(name)
    if block is None:
        raise ValueError("It is absent in every sample; leave it out.")
    return block if present.all() else take_rows(block, np.flatnonzero(present))


def _padded_gram(kernel: Kernel, X: Views, Y: Views | None, name: str, absent: str) -> Array:
    there_X = X.present(name)
    there_Y = there_X if Y is None else Y.present(name)
    if absent == "zero" and not (there_X.any() and there_Y.any()):
        return np.zeros((len(there_X), len(there_Y)))
    block_Y = None if Y is None else _present_block(Y, name)
    inner = kernel(_present_block(X, name), block_Y) if there_X.any() else np.zeros((0, int(there_Y.sum())))
    if there_X.all() and there_Y.all():
        return inner
    if absent == "zero":
        return _placed(inner, there_X, there_Y)
    reference = to_numpy(inner if Y is None else kernel(block_Y))
    means_X, means_Y = to_numpy(inner).mean(axis=1), reference.mean(axis=0)
    filled = np.where(
        there_X[:, None],
        np.where(there_Y[None, :], _placed(to_numpy(inner), there_X, there_Y), _spread(means_X, there_X)[:, None]),
        np.where(there_Y[None, :], _spread(means_Y, there_Y)[None, :], reference.mean()),
    )
    return like(filled, inner)


def _placed(inner: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """A matrix of the present samples among all samples, zero elsewhere."""
    full = np.zeros((len(rows), len(columns)), dtype=np.float32 if str(inner.dtype).endswith("float32") else np.float64)
    if not is_device_array(inner):
        full[np.ix_(rows, columns)] = inner
        return full
    xp = namespace(inner)  # rows and columns of a zero border, by position: no assignment needed
    bordered = xp.concat([inner, xp.zeros((1, inner.shape[1]), dtype=inner.dtype, device=inner.device)], axis=0)
    bordered = xp.concat([bordered, xp.zeros((bordered.shape[0], 1), dtype=inner.dtype, device=inner.device)], axis=1)
    where = [np.where(there, np.cumsum(there) - 1, there.sum()) for there in (rows, columns)]
    return xp.take(xp.take(bordered, like(where[0], inner), axis=0), like(where[1], inner), axis=1)


def _spread(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    full = np.zeros(len(there), dtype=values.dtype)
    full[there] = values
    return full


# -- combinations
def weighted_sum(grams: Sequence[Array], weights: Sequence[float] | None = None) -> Array:
    """Return Σ_v w_v K_v.

    Parameters
    ----------
    grams : list of array of shape (n, n')
        One matrix per view.
    weights : sequence of float, optional
        w; ones by default.

    Returns
    -------
    array of shape (n, n')
        The sum.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import weighted_sum
    >>> weighted_sum([np.eye(2), np.ones((2, 2))], [2.0, 0.5])
    array([[2.5, 0.5],
           [0.5, 2.5]])
    """
    weights = _weights(weights, len(grams))
    total = weights[0] * grams[0]
    for w, K in zip(weights[1:], grams[1:], strict=True):
        if total.dtype == K.dtype:
            total += w * K
        else:
            total = total + w * K
    return total


def product(grams: Sequence[Array]) -> Array:
    """Return ∏_v K_v, elementwise.

    Parameters
    ----------
    grams : list of array of shape (n, n')
        One matrix per view; where views are absent, made with ``absent="mean"``.

    Returns
    -------
    array of shape (n, n')
        The product.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import product
    >>> product([np.full((1, 1), 2.0), np.full((1, 1), 3.0)])
    array([[6.]])
    """
    total = grams[0]
    for K in grams[1:]:
        total = total * K
    return total


def polynomial(
    grams: Sequence[Array], degree: int, *, constant: float = 0.0, weights: Sequence[float] | None = None
) -> Array:
    """Return (c + Σ_v w_v K_v)^M, elementwise: all products of up to M views.

    Parameters
    ----------
    grams : list of array of shape (n, n')
        One matrix per view.
    degree : int
        M >= 1.
    constant : float, default=0.0
        c >= 0.
    weights : sequence of float, optional
        w; ones by default.

    Returns
    -------
    array of shape (n, n')
        The combination.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import polynomial
    >>> polynomial([np.full((1, 1), 2.0), np.full((1, 1), 3.0)], degree=2, constant=1.0)
    array([[36.]])
    """
    if degree < 1 or degree != int(degree) or constant < 0:
        raise ValueError(
            f"A polynomial of kernels has an integer degree of at least 1 and a constant of at least 0; got degree "
            f"{degree!r} and constant {constant!r}."
        )
    total = weighted_sum(grams, weights)
    total += constant
    return integer_power(total, int(degree))


# -- block forms
def side_by_side(grams: Sequence[Array], weights: Sequence[float] | None = None) -> Array:
    """Return M = [w_1 K_1 .. w_m K_m], of shape (n, n'm).

    Parameters
    ----------
    grams : list of array of shape (n, n')
        One matrix per view.
    weights : sequence of float, optional
        w; ones by default.

    Returns
    -------
    array of shape (n, n'm)
        The matrices beside each other.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import side_by_side
    >>> side_by_side([np.eye(1), np.eye(1)], [1.0, 2.0])
    array([[1., 2.]])
    """
    weights = _weights(weights, len(grams))
    return namespace(*grams).concat([w * K for w, K in zip(weights, grams, strict=True)], axis=1)


def cross_grams(kernel: Kernel, X: Views, Y: Views | None = None) -> Array:
    """Evaluate one kernel between every view and every view: k(x_i, z_j) for views i, j of equal width.

    Parameters
    ----------
    kernel : Kernel
        The kernel that all views share.
    X, Y : Views
        The samples, complete in every view; all views have the same columns.

    Returns
    -------
    array of shape (n_views, n_views, n_samples_X, n_samples_Y)
        The blocks; ``[i, j]`` is between view i of X and view j of Y.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Views
    >>> from consilience.kernels import Linear, cross_grams
    >>> cross_grams(Linear(), Views(a=[[1.0]], b=[[3.0]]))[:, :, 0, 0]
    array([[1., 3.],
           [3., 9.]])
    """
    other = X if Y is None else Y
    for views in (X, other):
        if views.mask is not None:
            raise ValueError("Kernels between different views need every view in every sample; some are absent.")
    m = len(X.names)
    blocks = np.empty((m, m, len(X), len(other)))
    for i, left in enumerate(X.names):
        for j, right in enumerate(other.names):
            if Y is None and j < i:
                blocks[i, j] = blocks[j, i].T
            else:
                blocks[i, j] = kernel(X.block(left), other.block(right))
    return blocks


def _weights(weights: Sequence[float] | None, m: int) -> list[float]:
    if weights is None:
        return [1.0] * m
    if len(weights) != m:
        raise ValueError(f"There are {m} views and {len(weights)} weights; give one weight per view.")
    return [float(w) for w in weights]
