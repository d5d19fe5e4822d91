"""One or several kernels per view, and the Gram matrices of all views."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._backend import is_device_array, like, namespace, spread_rows, take_rows
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.container import Views
from .base import Array, Kernel
from .dictionary import kernels_of_view
from .given import as_kernel

__all__ = ["kernels_by_view", "present_grams", "reference_views", "resolve_kernels", "view_grams"]


def kernel_of(kernel: Any, name: str) -> Kernel:
    """Return the one kernel of a view; "rbf" where `kernel` is a dict that does not name the view."""
    given = _given(kernel, name)
    if _is_several(given):
        what = "kernel='auto', which stands for several kernels" if isinstance(given, str) else f"the kernels {given!r}"
        raise ValueError(
            f"View '{name}' has {what}, where no weights of kernels are learned. Give one kernel, such as a sum "
            "k1 + k2, or use an estimator that learns weights: MultipleKernelRidge, MultipleKernelRidgeClassifier, or "
            "co-regularized estimators with view_weights='learned'."
        )
    return as_kernel(given)


def _given(kernel: Any, name: str) -> Any:
    """Return what the parameter `kernel` has for a view."""
    return kernel.get(name, "rbf") if isinstance(kernel, Mapping) else kernel


def _is_several(given: Any) -> bool:
    """Tell whether a view has several kernels: a list, or "auto"."""
    return isinstance(given, (list, tuple)) or (isinstance(given, str) and given == "auto")


def is_auto(kernel: Any, name: str) -> bool:
    """Tell whether the kernels of a view are chosen on its training samples."""
    given = _given(kernel, name)
    return isinstance(given, str) and given == "auto"


def reads_gram(kernel: Any, name: str) -> bool:
    """Tell whether the kernels of a view take Gram matrices; "auto" does not make one of a square table."""
    if kernel is None or is_auto(kernel, name):
        return False
    given = _given(kernel, name)
    several = given if isinstance(given, (list, tuple)) else [given]
    reads = {as_kernel(each).reads_gram for each in several}
    if len(reads) > 1:
        raise ValueError(
            f"View '{name}': some of the kernels {given!r} take a Gram matrix and others do not. Give the Gram matrix "
            "as a view of its own."
        )
    return reads == {True}


def is_pairwise(kernel: Any) -> bool:
    """Tell whether every view must be a Gram matrix, so that splitting takes rows and columns."""
    if kernel is None or isinstance(kernel, Mapping):
        return False
    try:
        return reads_gram(kernel, "")
    except (TypeError, ValueError):  # not a kernel: `fit` says so
        return False


def as_part(parameter: str, value: Any) -> Any:
    """Return a parameter of an estimator, or its entry for one view, with names of kernels replaced by kernels."""
    if parameter != "kernel":
        return value
    if _is_several(value):
        raise ValueError(
            f"`kernel` has {value!r}, which has no parameters of its own. Set the kernel or list as a whole."
        )
    return as_kernel(value)


def _check_view_names(kernel: Any, names: Sequence[str]) -> None:
    unknown = [name for name in kernel if name not in names] if isinstance(kernel, Mapping) else []
    if unknown:
        raise ValueError(f"`kernel` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}.")


# -- several kernels per view
ViewKernels = Mapping[str, Kernel | Mapping[str, Kernel]]  # by view: its kernel, or its kernels by label


class Term(NamedTuple):
    """One kernel of one view. For solvers it is a view of its own, which has the samples of the view."""

    name: str  # that of the view; "view: label" where the view has kernels by label
    view: str
    label: str | None
    kernel: Kernel


def choose_kernels(kernel: Any, names: Sequence[str], X: Views) -> dict[str, Kernel | dict[str, Kernel]]:
    """Return the resolved kernel of each view of X, or its kernels by label where `kernel` has a list or "auto".

    `names` are the views that `kernel` may name.
    """
    _check_view_names(kernel, names)
    chosen: dict[str, Kernel | dict[str, Kernel]] = {}
    for name in X.names:
        given, block = _given(kernel, name), _present_block(X, name)
        if _is_several(given):
            chosen[name] = kernels_of_view(given, name, block)
        else:
            with _blocks.naming(name):
                chosen[name] = as_kernel(given)._resolved(block)
    terms = [term.name for term in kernel_terms(chosen)]
    twice = [name for name in terms if terms.count(name) > 1]
    if twice:
        raise ValueError(f"A view is named '{twice[0]}', as is a kernel of another view. Rename the view.")
    return chosen


def kernel_terms(kernels: ViewKernels) -> list[Term]:
    """Return the kernels of all views, one after the other."""
    terms = []
    for view, own in kernels.items():
        if isinstance(own, Kernel):
            terms.append(Term(view, view, None, own))
        else:
            terms += [Term(f"{view}: {label}", view, label, kernel) for label, kernel in own.items()]
    return terms


def views_of_terms(terms: Sequence[Term], X: Views) -> Views:
    """Return the views of samples once for each of their kernels, without copies."""
    if all(term.name == term.view for term in terms):
        return X
    return _renamed_views([(term.name, term.view) for term in terms], X)


def views_of_names(terms: Sequence[Term], X: Views) -> Views:
    """Return the views of samples from views that are there once for each kernel."""
    if all(term.name == term.view for term in terms):
        return X
    first = {term.view: term.name for term in reversed(terms)}
    return _renamed_views([(view, first[view]) for view in dict.fromkeys(term.view for term in terms)], X)


def _renamed_views(pairs: Sequence[tuple[str, str]], X: Views) -> Views:
    """Return the views of X that the pairs (new name, name) list."""
    blocks = {new: X.block(name) for new, name in pairs}
    mask = None if X.mask is None else X.mask[:, [X.names.index(name) for _, name in pairs]]
    columns = {new: X.feature_names[name] for new, name in pairs if name in X.feature_names}
    return Views._of(blocks, len(X), mask, columns, X.sample_names)


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
    _check_view_names(kernel, names)
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


def reference_views(kernels: ViewKernels, X: Views) -> Views:
    """Return what a fitted estimator stores of its training samples; for Gram matrices only positions.

    Parameters
    ----------
    kernels : dict of Kernel, or of dict of Kernel
        Kernel of each view, or its kernels by label.
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


def reference_block(kernel: Kernel | Mapping[str, Kernel], block: Block) -> Block:
    """Return what a fitted estimator stores of one view."""
    several = [kernel] if isinstance(kernel, Kernel) else list(kernel.values())
    if block is None or not several[0].reads_gram:
        return block
    gram = block if isinstance(block, Gram) else Gram(block)
    # a look-up against new samples needs no training values
    return gram.reference(strip=not any(each.keeps_gram for each in several))


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
        some = X.block(name) if Y is None or Y.block(name) is None else Y.block(name)
        return like(np.zeros((len(present_X), len(present_Y))), some)
    block_Y = None if Y is None else _present_block(Y, name)
    none = like(np.zeros((0, int(present_Y.sum()))), block_Y)
    K = kernel(_present_block(X, name), block_Y) if present_X.any() else none
    if present_X.all() and present_Y.all():
        return K
    if missing == "zero":
        return _place(K, present_X, present_Y)
    # in feature space a missing sample is the mean of the reference samples: k(x, mean) is a mean of k(x, z)
    xp, reference = namespace(K), K if Y is None else kernel(block_Y)
    to_mean = spread_rows(xp.mean(K, axis=1)[:, None], np.flatnonzero(present_X), len(present_X))
    mean_to = spread_rows(xp.mean(reference, axis=0)[:, None], np.flatnonzero(present_Y), len(present_Y)).T
    rows, columns = like(present_X[:, None], K), like(present_Y[None, :], K)
    return xp.where(
        rows,
        xp.where(columns, _place(K, present_X, present_Y), to_mean),
        xp.where(columns, mean_to, xp.mean(reference)),
    )


def _place(K: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Return the matrix of present samples as a part of the matrix of all samples, which is zero elsewhere."""
    if not is_device_array(K):
        padded = np.zeros((len(rows), len(columns)), dtype=np.float32 if K.dtype == np.float32 else np.float64)
        padded[np.ix_(rows, columns)] = K
        return padded
    wide = spread_rows(K, np.flatnonzero(rows), len(rows))
    return spread_rows(wide.T, np.flatnonzero(columns), len(columns)).T
