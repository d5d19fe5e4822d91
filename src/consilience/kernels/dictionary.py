"""Kernels that suit the data of one view, and several kernels per view."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import namespace
from ..views import _blocks
from ..views._blocks import Block
from .base import Kernel, read
from .given import Precomputed, as_kernel
from .histogram import Hellinger
from .normalization import column_scales, normalize, standardize
from .scalar import RBF, Linear
from .structured import Spectrum, SubsetTree

__all__ = ["auto_kernels"]

#: Exponents of Gaussian kernels at the median distance between samples.
WIDTHS = {"wide Gaussian": 0.25, "Gaussian": 1.0, "narrow Gaussian": 4.0}


def auto_kernels(X: Any) -> dict[str, Kernel]:
    """Return kernels that suit the data of one view, by name; what ``kernel="auto"`` stands for.

    Parameters
    ----------
    X : array, sparse matrix, sequence of strings or trees, or Gram
        One view's data.

    Returns
    -------
    dict of Kernel
        Resolved kernels. Dense data: the linear kernel and Gaussian kernels of three widths on standardized columns,
        the Gaussian kernel on columns as they are if their scales differ, and for counts the cosine and the normalized
        Hellinger kernel. Sparse data: these two, the linear kernel and a Gaussian kernel. Strings:
        normalized spectrum kernels of lengths 1 to 4. Trees: normalized subset-tree kernels of two decays. Gram
        matrices: themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import auto_kernels
    >>> list(auto_kernels(np.array([[-1.0, 2.0], [0.5, 40.0], [1.0, 3.0]])))
    ['linear', 'wide Gaussian', 'Gaussian', 'narrow Gaussian', 'Gaussian, as given']
    >>> list(auto_kernels(["anna", "otto"]))
    ['spectrum 1', 'spectrum 2', 'spectrum 3', 'spectrum 4']
    """
    block = read(X)
    found = _KINDS[_blocks.kind(block)](block)
    return {name: kernel._resolved(block) for name, kernel in found.items()}


def _dense(X: Block) -> dict[str, Kernel]:
    scale = column_scales(X)[1]
    varying = scale[np.isfinite(scale)]
    some = X[:: -(-X.shape[0] // 500), :]  # enough for the median of distances
    gamma = standardize(RBF("median"))._resolved(some).kernel.gamma
    kernels: dict[str, Kernel] = {"linear": standardize(1.0 / X.shape[1] * Linear())}
    kernels |= {name: standardize(RBF(exponent * gamma)) for name, exponent in WIDTHS.items()}
    if len(varying) and varying.max() > 1.5 * varying.min():
        kernels["Gaussian, as given"] = RBF("median")._resolved(some)
    return kernels | _nonnegative_kernels(X)


def _sparse(X: Block) -> dict[str, Kernel]:
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:  # numbers that happen to be stored as sparse
        return _dense(X.toarray())
    size = float(np.mean(X.multiply(X).sum(axis=1))) or 1.0
    return {
        "linear": 1.0 / size * Linear(),
        **({"cosine": normalize(Linear())} | _nonnegative_kernels(X)),
        "Gaussian": standardize(RBF("median")),
    }


def _nonnegative_kernels(X: Block) -> dict[str, Kernel]:
    """Return kernels of proportions, for counts and other nonnegative data with zeros."""
    values = X.data if sp.issparse(X) else X
    xp = namespace(values)
    if X.shape[1] < 2 or (0 not in values.shape and float(xp.min(values)) < 0):
        return {}
    if not sp.issparse(X) and 0 not in X.shape:
        zeros = int(xp.count_nonzero(values == 0)) if xp is np else int(xp.sum(xp.astype(values == 0, xp.int64)))
        if zeros < 0.1 * X.shape[0] * X.shape[1] and bool(xp.any(values != xp.round(values))):
            return {}  # positive measures rather than counts
    return {"cosine": normalize(Linear()), "Hellinger": normalize(Hellinger())}


def _objects(X: Block) -> dict[str, Kernel]:
    trees = all(isinstance(x, tuple) or (isinstance(x, str) and x[:1] == "(" and x[-1:] == ")") for x in X)
    if trees:
        return {f"subset tree {decay}": normalize(SubsetTree(decay)) for decay in (0.4, 1.0)}
    return {f"spectrum {length}": normalize(Spectrum(length)) for length in (1, 2, 3, 4)}


_KINDS = {"dense": _dense, "sparse": _sparse, "objects": _objects, "gram": lambda X: {"precomputed": Precomputed()}}


# -- several kernels per view
def kernels_of_view(kernel: Any, name: str, X: Block) -> dict[str, Kernel]:
    """Return the resolved kernels of one view by name: for a kernel, a list of kernels, or "auto".

    Where `kernel` is a dict by view that does not name the view, "auto" is taken.
    """
    given = kernel.get(name, "auto") if isinstance(kernel, Mapping) else kernel
    with _blocks.naming(name):
        if isinstance(given, str) and given == "auto":
            return auto_kernels(X)
        if isinstance(given, (list, tuple)) and not len(given):
            raise ValueError("`kernel` has an empty list. Give at least one kernel, or 'auto'.")
        kernels = [as_kernel(each) for each in (given if isinstance(given, (list, tuple)) else [given])]
        return {_label(each, kernels, k): each._resolved(X) for k, each in enumerate(kernels)}


def _label(kernel: Kernel, kernels: list[Kernel], k: int) -> str:
    """Return the expression of a kernel, numbered if several are equal."""
    before = sum(repr(other) == repr(kernel) for other in kernels[:k])
    return f"{kernel!r} ({before + 1})" if before else repr(kernel)


def reads_grams(kernel: Any, name: str) -> bool:
    """Tell whether the kernels of a view take Gram matrices; "auto" takes them as they come."""
    given = kernel.get(name, "auto") if isinstance(kernel, Mapping) else kernel
    parts = given if isinstance(given, (list, tuple)) else [given]
    return any(not (isinstance(part, str) and part == "auto") and as_kernel(part).reads_gram for part in parts)
