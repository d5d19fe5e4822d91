"""Kernels between the outputs of a vector-valued target, and label vectors of classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..solvers import linalg
from ..views._blocks import quoted
from .graphs import laplacian

__all__ = ["multi_task", "output_graph"]

CENTERS = ("means", "medians", "centered_means", "centered_medians")  # class vectors that are computed from samples


def multi_task(n_outputs: int, independence: float) -> np.ndarray:
    """Return R = I + (1-λ)/(nλ) 11', which penalizes the distance of tasks from their mean.

    The norm of this kernel is ‖f‖² = λ Σ_k ‖f_k‖² + (1-λ) Σ_k ‖f_k - mean f‖² (Evgeniou, Micchelli and Pontil 2005;
    Minh, Bazzani and Murino 2016, equation 100 and Lemma 22).

    Parameters
    ----------
    n_outputs : int
        Number of tasks n.
    independence : float
        Weight λ in (0, 1]. With 1 the tasks are learned separately; near 0 they are learned as one.

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
        raise ValueError(f"`independence` must be greater than 0 and at most 1; got {independence!r}.")
    share = (1 - independence) / (n_outputs * independence)
    return np.eye(n_outputs) + share  # adds share·11'


def output_graph(weights: Any, strength: float = 1.0) -> np.ndarray:
    """Return R = (I + μL)⁻¹, which penalizes differences of outputs that are neighbors in a graph with Laplacian L.

    The norm of this kernel is ‖f‖² = Σ_k ‖f_k‖² + μ Σ_{k<j} w_kj ‖f_k - f_j‖².

    Parameters
    ----------
    weights : array of shape (n_outputs, n_outputs)
        Similarities w of the outputs, at least 0. For labels, use how often two occur together: ``Y.T @ Y``.
    strength : float, default=1.0
        Penalty μ on differences, at least 0. With 0 the outputs are learned separately.

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
    return linalg.inverse(np.eye(len(L)) + strength * L)  # ‖f‖² has the inverse of R, here I + μL


def simplex_vectors(n_classes: int) -> np.ndarray:
    """Return P unit vectors in R^(P-1) with the largest possible distance between any two.

    ‖s_k‖ = 1, s_j·s_k = -1/(P-1), Σ_k s_k = 0 (Mroueh, Poggio, Rosasco and Slotine 2012).

    Parameters
    ----------
    n_classes : int
        Number of classes P, at least 2.

    Returns
    -------
    array of shape (n_classes, n_classes - 1)
        Vectors s_k as rows.

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
        raise ValueError(f"`n_classes` must be at least 2; got {n_classes!r}.")
    # Column k has the entry h_k for class k + 1 and -h_k / (k + 1) for the classes before it, so that its sum is 0.
    k = np.arange(n_classes - 1)
    heights = np.sqrt((k + 1) / (k + 2) * n_classes / (n_classes - 1))  # h_k, so that all vectors have length 1
    vectors = np.triu(np.tile(-heights / (k + 1), (n_classes, 1)))
    vectors[k + 1, k] = heights
    return vectors


def read_class_vectors(given: Any, classes: np.ndarray) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Read one vector per class: "simplex", "indicator", an array of rows, or a dict by class.

    Returns
    -------
    array of shape (n_classes, n_dimensions)
        Vectors.
    (float, float) or None
        Squared length of the vectors and inner product of any two, if these are the same for all.
    """
    P = len(classes)
    if isinstance(given, str):
        if given not in ("simplex", "indicator") and not (P == 1 and given in CENTERS):
            raise ValueError(
                "`class_vectors` must be 'simplex', 'indicator', or an array or dict of vectors; in "
                f"MaxMarginClassifier also {quoted(CENTERS)}. Got {given!r}."
            )
        if P == 1 or given == "indicator":  # a simplex of one class would have no dimension
            return np.eye(P), (1.0, 0.0)
        return simplex_vectors(P), (1.0, -1.0 / (P - 1))
    if isinstance(given, Mapping):
        lacking = [c for c in classes.tolist() if c not in given]
        if lacking:
            raise ValueError(f"`class_vectors` has no vector for {quoted(lacking)}. Give one for every class.")
        given = [given[c] for c in classes.tolist()]
    try:
        vectors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`class_vectors` must be {P} vectors of one length, one per class: {error}.") from error
    if vectors.ndim != 2 or len(vectors) != P or not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise ValueError(
            f"`class_vectors` must be {P} finite nonzero vectors, one row per class; got an array of shape "
            f"{vectors.shape}."
        )
    return vectors, None
