"""Linear algebra on devices: what the array API standard lacks, or libraries name differently."""

from typing import Any

import numpy as np

from .._backend import cast, namespace

_STRIPE = 512  # columns of a symmetric product that are computed at a time


def add_gram_on_device(C: Any, X: Any, sign: int) -> Any:
    """Return C ± X'X, its lower triangle alone, in place: by stripes, whose parts above the diagonal are left out."""
    for start in range(0, C.shape[0], _STRIPE):
        own = slice(start, min(start + _STRIPE, C.shape[0]))
        product = cast(X[:, start:].T @ X[:, own], C.dtype)
        C[start:, own] = C[start:, own] + (product if sign > 0 else -product)
    return C


def mirror_on_device(A: Any) -> Any:
    """Copy the lower triangle of A onto its upper one, in place."""
    xp = namespace(A)
    for start in range(0, A.shape[0], _STRIPE):
        stop = min(start + _STRIPE, A.shape[0])
        square = xp.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = square + xp.tril(square, k=-1).T
        A[start:stop, stop:] = A[stop:, start:stop].T
    return A


def device_cholesky(A: Any) -> Any:
    """Return the lower factor of a matrix on a device; LinAlgError where it has none."""
    xp = namespace(A)
    if hasattr(xp.linalg, "cholesky_ex"):  # PyTorch: an error code instead of its own error
        L, info = xp.linalg.cholesky_ex(A)
        if int(info.max()):
            raise np.linalg.LinAlgError("The matrix is not positive definite.")
        return L
    L = xp.linalg.cholesky(A)
    if not bool(xp.all(xp.isfinite(L))):  # CuPy does not raise
        raise np.linalg.LinAlgError("The matrix is not positive definite.")
    return L


def of_one_type(A: Any, B: Any) -> tuple[Any, Any]:
    """Return both arrays in the higher of their precisions; libraries differ in whether they do so themselves."""
    if A.dtype == B.dtype:
        return A, B
    return cast(A, "float64"), cast(B, "float64")


def device_triangular(L: Any, T: Any, *, transposed: bool) -> Any:
    """Return L⁻¹T or L⁻ᵀT for a lower triangular L on a device."""
    L, T = of_one_type(L, T)
    xp = namespace(L)
    if hasattr(xp.linalg, "solve_triangular"):  # PyTorch
        return xp.linalg.solve_triangular(L.T if transposed else L, T, upper=transposed)
    if type(L).__module__.partition(".")[0] == "cupy":
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(L, T, lower=True, trans=int(transposed))
    return xp.linalg.solve(L.T if transposed else L, T)  # the standard has no triangular solver
