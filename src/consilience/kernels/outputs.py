"""Kernels between outputs: how the columns of a vector-valued target are tied to each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..views._blocks import quoted
from .graphs import laplacian


def multi_task(n_outputs: int, independence: float) -> np.ndarray:
    """Return R = I + (1-λ)/(nλ) 11', which ties tasks to their mean (Evgeniou, Micchelli and Pontil 2005).

    The norm it stands for is ‖f‖² = λ Σ_k ‖f_k‖² + (1-λ) Σ_k ‖f_k - mean f‖² (Minh, Bazzani and Murino 2016, equation
    100 and Lemma 22).

    Parameters
    ----------
    n_outputs : int
        n, the number of tasks.
    independence : float
        λ in (0, 1]: with 1 the tasks are learned apart, towards 0 as one.

    Returns
    -------
    array of shape (n_outputs, n_outputs)
        R, for ``output_kernel=``.

    Examples
    --------
    >>> from consilience.kernels import multi_task
    >>> multi_task(2, 0.5)
    array([[1.5, 0.5],
           [0.5, 1.5]])
    """
    if n_outputs < 1:
        raise ValueError(f"`n_outputs` must be at least 1; got {n_outputs!r}.")
    if not 0 < independence <= 1:
        raise ValueError(f"`independence` must be above 0 and at most 1; got {independence!r}.")
    share = (1 - independence) / (n_outputs * independence)
    return np.eye(n_outputs) + share


def output_graph(weights: Any, strength: float = 1.0) -> np.ndarray:
    """Return R = (I + μL)⁻¹, which ties outputs that are neighbors in a graph with Laplacian L.

    The norm it stands for is ‖f‖² = Σ_k ‖f_k‖² + μ Σ_{k<j} w_kj ‖f_k - f_j‖².

    Parameters
    ----------
    weights : array of shape (n_outputs, n_outputs)
        w, at least 0: how alike outputs are. For labels, how often two occur together serves: ``Y.T @ Y``.
    strength : float, default=1.0
        μ >= 0; with 0 the outputs are learned apart.

    Returns
    -------
    array of shape (n_outputs, n_outputs)
        R, for ``output_kernel=``.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import output_graph
    >>> output_graph(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    """
    if strength < 0:
        raise ValueError(f"`strength` must be at least 0; got {strength!r}.")
    L = laplacian(weights)
    L = L.toarray() if hasattr(L, "toarray") else L
    R = np.linalg.inv(np.eye(len(L)) + strength * L)
    return (R + R.T) / 2


def simplex_vectors(n_classes: int) -> np.ndarray:
    """Return P points on the sphere of R^(P-1), each as far as can be from all others.

    ‖s_k‖ = 1, s_j·s_k = -1/(P-1), Σ_k s_k = 0 (Mroueh, Poggio, Rosasco and Slotine 2012).

    Parameters
    ----------
    n_classes : int
        P >= 2.

    Returns
    -------
    array of shape (n_classes, n_classes - 1)
        s_k as rows.

    Examples
    --------
    >>> from consilience import simplex_vectors
    >>> simplex_vectors(2)
    array([[-1.],
           [ 1.]])
    >>> simplex_vectors(3).round(2)
    array([[-0.87, -0.5 ],
           [ 0.87, -0.5 ],
           [ 0.  ,  1.  ]])
    """
    if n_classes < 2:
        raise ValueError(f"Codes are for two classes or more; got {n_classes}.")
    k = np.arange(n_classes - 1)
    heights = np.sqrt((k + 1) / (k + 2) * n_classes / (n_classes - 1))  # of the pole of column k, once all others came
    codes = np.triu(np.tile(-heights / (k + 1), (n_classes, 1)))
    codes[k + 1, k] = heights
    return codes


def label_vectors(given: Any, classes: np.ndarray) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Read the label vectors of classes: "simplex", "indicator", an array of rows, or a dict by class.

    Returns
    -------
    array of shape (n_classes, n_dimensions)
        The vectors.
    (float, float) or None
        Their squared length and the inner product of any two, where these are all the same.
    """
    T = len(classes)
    if isinstance(given, str):
        if given not in ("simplex", "indicator") and not (T == 1 and given in ("mean", "median")):
            raise ValueError(
                f"`labels` is 'simplex', 'indicator', vectors, or in batches 'mean', 'median'; got {given!r}."
            )
        if T == 1 or given == "indicator":  # one class has one direction
            return np.eye(T), (1.0, 0.0)
        return simplex_vectors(T), (1.0, -1.0 / (T - 1))
    if isinstance(given, Mapping):
        lacking = [c for c in classes.tolist() if c not in given]
        if lacking:
            raise ValueError(f"`labels` has no vector for {quoted(lacking)}; give one for every class.")
        given = [given[c] for c in classes.tolist()]
    try:
        vectors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`labels` must be vectors of one length, one per class, {T} in all: {error}.") from error
    if vectors.ndim != 2 or len(vectors) != T or not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise ValueError(
            f"`labels` must be finite vectors other than 0, one row per class, {T} in all; got shape {vectors.shape}."
        )
    return vectors, None
