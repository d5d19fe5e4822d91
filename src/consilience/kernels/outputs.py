"""Kernels between outputs: how the columns of a vector-valued target are tied to each other."""

from typing import Any

import numpy as np

from ..graphs import laplacian


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
