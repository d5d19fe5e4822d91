"""One kernel per view, and the Gram matrices of all views."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.container import Views
from .base import Array, Kernel
from .given import as_kernel

__all__ = ["kernels_by_view", "present_grams", "reference_views", "resolve_kernels", "view_grams"]


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


def resolve_kernels(kernels: Mapping[str, Kernel], X: Views, *, validated: bool = False) -> dict[str, Kernel]:
    """Compute the parameters of each view's kernel that depend on data, on the present rows of the view.

    Parameters
    ----------
    kernels : dict of Kernel
        Kernel of each view.
    X : Views
        Training samples.
    validated : bool, default=False
        Whether the data are known to be finite, so that they are not checked again.

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
            block = _present_block(X, name)
            resolved[name] = kernel._resolved(block) if validated else kernel.resolved(block)
    return resolved


def reference_views(kernels: Mapping[str, Kernel], X: Views) -> Views:
    """Return what a fitted estimator stores of its training samples; for Gram matrices only positions.

    Parameters
    ----------
    kernels : dict of Kernel
        Kernel of each view.
    X : Views
        Training samples.

    Returns
    -------
    Views
        Samples to evaluate kernels against.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Views
    >>> from consilience.kernels import Precomputed, reference_views, view_grams
    >>> kernels, X = {"g": Precomputed()}, Views(g=np.eye(3), precomputed=True)
    >>> train = reference_views(kernels, X[:2])
    >>> train.block("g").values is None
    True
    >>> view_grams(kernels, X[2:], train)
    [array([[0., 0.]])]
    """
    blocks = {name: reference_block(kernels[name], X.block(name)) for name in X.names}
    return Views._of(blocks, len(X), X.mask, X.feature_names, None)  # a model keeps no names of samples


def reference_block(kernel: Kernel, block: Block) -> Block:
    """Return what a fitted estimator stores of one view."""
    if block is None or not kernel.reads_gram:
        return block
    gram = block if isinstance(block, Gram) else Gram(block)
    return gram.reference(strip=not kernel.keeps_gram)  # a look-up against new samples needs no training values


def view_grams(
    kernels: Mapping[str, Kernel], X: Views, Y: Views | None = None, *, missing: str = "zero"
) -> list[Array]:
    """Evaluate the kernel of each view between all samples.

    Parameters
    ----------
    kernels : dict of Kernel
        Kernel of each view, resolved.
    X, Y : Views
        Samples; Y defaults to X.
    missing : {"zero", "mean"}, default="zero"
        Values for samples in which a view is missing. "zero" adds nothing to a sum of kernels. "mean" replaces the
        sample by the mean of the present samples of Y in feature space, so that products of kernels stay positive
        semi-definite.

    Returns
    -------
    list of array of shape (n_samples_X, n_samples_Y)
        Gram matrices, in the order of `kernels`.

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
    if missing not in ("zero", "mean"):
        raise ValueError(f"`missing` must be 'zero' or 'mean'; got {missing!r}.")
    grams = []
    for name, kernel in kernels.items():
        with _blocks.naming(name):
            grams.append(_padded_gram(kernel, X, Y, name, missing))
    return grams


def present_grams(kernels: Mapping[str, Kernel], X: Views, *, validated: bool = False) -> list[Array]:
    """Evaluate the kernel of each view between the samples that have the view.

    Parameters
    ----------
    kernels : dict of Kernel
        Kernel of each view, resolved.
    X : Views
        Samples.
    validated : bool, default=False
        Whether the data are known to be finite and the kernels resolved, so that nothing is checked again.

    Returns
    -------
    list of array of shape (n_present, n_present)
        Gram matrices, in the order of `kernels`.

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
            block = _present_block(X, name)
            grams.append(kernel._finite_gram(block, None) if validated else kernel(block))
    return grams


def _present_block(X: Views, name: str) -> Any:
    """Return the rows of a view that are present."""
    block, present = X.block(name), X.present(name)
    if block is None:
        raise ValueError("It is missing in every sample. Omit it.")
    return block if present.all() else take_rows(block, np.flatnonzero(present))


def _padded_gram(kernel: Kernel, X: Views, Y: Views | None, name: str, missing: str) -> Array:
    """Evaluate a view's kernel between its present samples, and fill the rows and columns of the others."""
    present_X = X.present(name)
    present_Y = present_X if Y is None else Y.present(name)
    if missing == "zero" and not (present_X.any() and present_Y.any()):
        return np.zeros((len(present_X), len(present_Y)))
    block_Y = None if Y is None else _present_block(Y, name)
    K = kernel(_present_block(X, name), block_Y) if present_X.any() else np.zeros((0, int(present_Y.sum())))
    if present_X.all() and present_Y.all():
        return K
    if missing == "zero":
        return _place(K, present_X, present_Y)
    # in feature space a missing sample is the mean of the reference samples: k(x, mean) is a mean of k(x, z)
    values, reference = to_numpy(K), to_numpy(K if Y is None else kernel(block_Y))
    to_mean = np.zeros((len(present_X), 1), dtype=values.dtype)
    mean_to = np.zeros((1, len(present_Y)), dtype=reference.dtype)
    to_mean[present_X, 0], mean_to[0, present_Y] = values.mean(axis=1), reference.mean(axis=0)
    filled = np.where(
        present_X[:, None],
        np.where(present_Y[None, :], _place(values, present_X, present_Y), to_mean),
        np.where(present_Y[None, :], mean_to, reference.mean()),
    )
    return like(filled, K)


def _place(K: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Return the matrix of present samples as a part of the matrix of all samples, which is zero elsewhere."""
    if not is_device_array(K):
        padded = np.zeros((len(rows), len(columns)), dtype=np.float32 if K.dtype == np.float32 else np.float64)
        padded[np.ix_(rows, columns)] = K
        return padded
    xp = namespace(K)  # not every device array can be assigned to: take rows and columns, zeros from a border
    bordered = xp.concat([K, xp.zeros((1, K.shape[1]), dtype=K.dtype, device=K.device)], axis=0)
    bordered = xp.concat([bordered, xp.zeros((bordered.shape[0], 1), dtype=K.dtype, device=K.device)], axis=1)
    # position among the present samples, or that of the border
    where = [np.where(present, np.cumsum(present) - 1, present.sum()) for present in (rows, columns)]
    return xp.take(xp.take(bordered, like(where[0], K), axis=0), like(where[1], K), axis=1)
