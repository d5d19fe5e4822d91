"""Functions of Gram matrices: definiteness, centering, normalization, alignment."""

from typing import Any

import numpy as np

from ..solvers import linalg

__all__ = ["alignment", "is_psd", "nearest_psd"]


def _square(K: Any) -> np.ndarray:
    """Return a Gram matrix as a floating-point array; raise if it is not square."""
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"A Gram matrix must be square; got shape {K.shape}.")
    return K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)


def is_psd(K: Any, *, tol: float | None = None) -> bool:
    """Tell whether a matrix is symmetric and positive semi-definite.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Matrix.
    tol : float, optional
        Tolerance relative to the largest absolute eigenvalue. Default: 1e-9, or the rounding error of a matrix of this
        size and precision if that is larger.

    Returns
    -------
    bool
        True if K = K' and no eigenvalue is below -tol times the largest absolute eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import is_psd
    >>> is_psd(np.eye(2)), is_psd(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    K = _square(K)
    if K.size == 0:
        return True
    tol = max(1e-9, len(K) * float(np.finfo(K.dtype).eps)) if tol is None else tol
    largest = np.abs(K).max()  # at most the largest absolute eigenvalue, and cheaper
    if not np.isfinite(largest) or np.abs(K - K.T).max() > tol * largest:
        return False
    eigenvalues = linalg.eigvalsh(K)
    return bool(eigenvalues[0] >= -tol * np.abs(eigenvalues).max())


def nearest_psd(K: Any) -> np.ndarray:
    """Return the positive semi-definite matrix nearest to K in the Frobenius norm.

    The symmetric part with its negative eigenvalues set to zero (Higham 1988).

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Matrix, symmetric or not.

    Returns
    -------
    array of shape (n_samples, n_samples)
        Nearest positive semi-definite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import nearest_psd
    >>> nearest_psd(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    K = _square(K)
    if not np.isfinite(K).all():
        raise ValueError("nearest_psd needs a finite matrix; K contains NaN or infinity.")
    eigenvalues, vectors = linalg.eigh((K + K.T) / 2)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))  # a product of a root with itself is exactly symmetric
    return root @ root.T


def center_gram(K: Any) -> np.ndarray:
    """Return the Gram matrix of φ(x) minus the mean of φ: HKH with H = I - 11'/n."""
    K = _square(K)
    means = K.mean(axis=0)
    return K - means[:, None] - means[None, :] + means.mean()  # HKH without two matrix products


def normalize_gram(K: Any) -> np.ndarray:
    """Return K scaled to a diagonal of ones; rows of samples with k(x, x) = 0 become 0."""
    K = _square(K)
    norms = np.sqrt(np.maximum(K.diagonal(), 0))
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return K * inverse[:, None] * inverse[None, :]


def alignment(K: Any, L: Any, *, centered: bool = True, unbiased: bool = False) -> float:
    """Return the alignment of two Gram matrices: their cosine <K, L> / (‖K‖‖L‖).

    The cosine of centered matrices is far above 0 for views that have nothing in common, if their kernels have large
    diagonals: for independent noise of many columns it approaches 1. The unbiased form compares different samples only,
    so its expectation is about 0 there.

    Parameters
    ----------
    K, L : array of shape (n_samples, n_samples)
        Gram matrices of the same samples.
    centered : bool, default=True
        Whether to center both first (Cortes, Mohri, Rostamizadeh 2012). False gives the alignment of Cristianini et al.
        2001.
    unbiased : bool, default=False
        Whether to use HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) with the unbiased estimate of HSIC (Song, Smola, Gretton,
        Bedo and Borgwardt 2012, equation 4), also known as debiased CKA. It needs at least 4 samples and
        ``centered=True``, ignores the diagonals, and may be negative.

    Returns
    -------
    float
        Value in [0, 1] for positive semi-definite matrices, in [-1, 1] if unbiased; 0 if one of them is zero after
        centering.

    Notes
    -----
    The unbiased estimate is <A, B> / (n (n - 3)), where A and B are the U-centered matrices (Székely and Rizzo 2014):
    the diagonal is 0, and A_ij = K_ij - (r_i + r_j) / (n - 2) + t / ((n - 1)(n - 2)) with the sums r of rows and t of
    all entries off the diagonal. So the unbiased alignment is a cosine, too.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import alignment
    >>> round(alignment(np.eye(3), 5 * np.eye(3)), 6)
    1.0
    >>> A, B = np.random.default_rng(0).normal(size=(2, 50, 1000))  # independent noise
    >>> alignment(A @ A.T, B @ B.T) > 0.9, abs(alignment(A @ A.T, B @ B.T, unbiased=True)) < 0.1
    (True, True)
    """
    K, L = _square(K), _square(L)
    if K.shape != L.shape:
        raise ValueError(f"alignment needs Gram matrices of the same samples; got shapes {K.shape} and {L.shape}.")
    if unbiased and not centered:
        raise ValueError("The unbiased alignment is of centered matrices. Omit `centered=False`, or `unbiased=True`.")
    if unbiased and len(K) < 4:
        raise ValueError(f"The unbiased alignment needs at least 4 samples; got {len(K)}. Omit `unbiased=True`.")
    if unbiased:
        K, L = _u_centered(K), _u_centered(L)
    elif centered:
        K, L = center_gram(K), center_gram(L)
    norms = linalg.norm(K) * linalg.norm(L)
    # beyond 1 only by rounding
    return float(min(1.0, max(-1.0, np.vdot(K, L) / norms))) if norms > 0 else 0.0


def _u_centered(K: np.ndarray) -> np.ndarray:
    """Return the U-centered matrix (Székely and Rizzo 2014): rows off the diagonal sum to 0, and the diagonal is 0."""
    n, K = len(K), K.astype(np.float64)  # a copy
    np.fill_diagonal(K, 0.0)
    size = linalg.norm(K)
    rows = K.sum(axis=0)
    K -= (rows[:, None] + rows[None, :]) / (n - 2) - rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(K, 0.0)
    if linalg.norm(K) <= 1e-12 * size:  # of equal entries, only rounding is left, which has a direction
        K[:] = 0.0
    return K
