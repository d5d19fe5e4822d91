"""Dense linear algebra by SciPy's BLAS and LAPACK alone.

NumPy and SciPy each bring a library of their own with threads that wait by spinning: work that goes from one to the
other and back takes more than twice as long on few cores. Arrays in Fortran's order are used in place.
"""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from .._backend import cast, in_single, is_device_array, like, namespace, to_numpy
from .device_linalg import add_gram_on_device, device_cholesky, device_triangular, mirror_on_device, of_one_type


def _fortran(A: np.ndarray) -> tuple[np.ndarray, int]:
    """A, or its transpose, in Fortran's order, and whether it is the transpose."""
    if A.flags.f_contiguous:
        return A, 0
    if A.flags.c_contiguous:
        return A.T, 1
    return np.asfortranarray(A), 0


def multiply(A: Any, B: np.ndarray) -> np.ndarray:
    """AB."""
    if is_device_array(A):
        A, B = of_one_type(A, B)
        return A @ B
    if sp.issparse(A):
        return A @ B
    if not A.size or not B.size:  # BLAS refuses arrays without entries, and says so on standard output
        return np.zeros((A.shape[0], B.shape[1]), dtype=np.result_type(A, B), order="F")
    (gemm,) = blas.get_blas_funcs(("gemm",), (A, B))
    (left, trans_a), (right, trans_b) = _fortran(A), _fortran(B)
    return gemm(1.0, left, right, trans_a=trans_a, trans_b=trans_b)


def add_product(C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Add AB to C, in place; all are in Fortran's order and of one type."""
    (gemm,) = blas.get_blas_funcs(("gemm",), (C,))
    gemm(1.0, A, B, beta=1.0, c=C, overwrite_c=1)


def gram_of(X: np.ndarray) -> np.ndarray:
    """X'X."""
    if is_device_array(X):
        q = X.shape[1]
        return mirror(add_gram(namespace(X).zeros((q, q), dtype=X.dtype, device=X.device), X))
    if not X.size:
        return np.zeros((X.shape[1], X.shape[1]), dtype=X.dtype, order="F")
    (syrk,) = blas.get_blas_funcs(("syrk",), (X,))  # half the work of a general product: one triangle
    here, transposed = _fortran(X)
    return mirror(syrk(1.0, here, trans=1 - transposed, lower=1))


def add_gram(C: Any, X: Any, sign: int = 1) -> Any:
    """Return C ± X'X, its lower triangle alone, in place: `mirror` fills the other one."""
    if is_device_array(C):
        return add_gram_on_device(C, X, sign)
    (syrk,) = blas.get_blas_funcs(("syrk",), (C,))  # half the work of a general product
    here, transposed = _fortran(X if X.dtype == C.dtype else X.astype(C.dtype))
    return syrk(float(sign), here, beta=1.0, c=C, trans=1 - transposed, lower=1, overwrite_c=1)


def add_product_transposed(C: Any, A: Any, B: Any) -> Any:
    """Return C + A'B; NumPy's C is in Fortran's order and changed in place."""
    if is_device_array(C):
        xp = namespace(C)
        return C + xp.astype(A.T @ xp.astype(B, A.dtype), C.dtype)
    (gemm,) = blas.get_blas_funcs(("gemm",), (C,))
    (left, trans_a), (right, trans_b) = _fortran(A), _fortran(B)
    return gemm(1.0, left, right, beta=1.0, c=C, overwrite_c=1, trans_a=1 - trans_a, trans_b=trans_b)


def add_to_diagonal(A: np.ndarray, values: Any) -> np.ndarray:
    """Add to the diagonal of A, in place for NumPy; return the sum."""
    if is_device_array(A):
        xp = namespace(A)
        values = cast(like(values, A), A.dtype) if isinstance(values, np.ndarray) else float(values)
        if hasattr(A, "diagonal_scatter"):  # PyTorch: the result is the only new matrix
            return A.diagonal_scatter(A.diagonal() + values)
        return A + xp.eye(A.shape[0], dtype=A.dtype, device=A.device) * values
    A[np.diag_indices_from(A)] += values
    return A


def add_symmetric(A: np.ndarray, B: np.ndarray, weight: float) -> np.ndarray:
    """Add a multiple of a symmetric matrix to A, in place and for NumPy without another matrix in memory; return A."""
    if is_device_array(A):
        A += float(weight) * B
    elif A.flags.f_contiguous and A.dtype == B.dtype and (B.flags.f_contiguous or B.flags.c_contiguous):
        (axpy,) = blas.get_blas_funcs(("axpy",), (A,))
        axpy(B.ravel("A"), A.ravel("K"), a=weight)  # both are views
    else:
        A += weight * B
    return A


def diagonal_of(A: Any) -> np.ndarray:
    """Return the diagonal of a matrix; NumPy's in any case."""
    return to_numpy(namespace(A).linalg.diagonal(A)) if is_device_array(A) else A.diagonal()


def inner_product(A: Any, B: Any) -> float:
    """Return the sum of the products of all entries."""
    return float(namespace(A).sum(A * B))


def largest_entry(A: Any) -> float:
    """Return the largest absolute value."""
    return float(namespace(A).max(namespace(A).abs(A)))


def mirror(A: np.ndarray) -> np.ndarray:
    """Copy the lower triangle of A onto its upper one, in place and by tiles that fit the cache."""
    if is_device_array(A):
        return mirror_on_device(A)
    tile = 256
    for a in range(0, len(A), tile):
        for b in range(0, a, tile):
            A[b : b + tile, a : a + tile] = A[a : a + tile, b : b + tile].T
        square = A[a : a + tile, a : a + tile]
        square[...] = np.tril(square) + np.tril(square, -1).T
    return A


def cholesky(A: np.ndarray) -> np.ndarray:
    """The lower factor of a symmetric positive definite matrix, which is used up."""
    if is_device_array(A):
        return device_cholesky(A)
    here = A if A.flags.f_contiguous else A.T  # symmetric, so the transpose is A in Fortran's order
    return scipy.linalg.cholesky(here, lower=True, overwrite_a=True, check_finite=False)


def cholesky_or_jitter(A: np.ndarray) -> tuple[np.ndarray, float]:
    """The lower factor of a symmetric matrix, and the multiple of the identity that it took: 0 as a rule."""
    kind = np.finfo(np.float32 if in_single(A) else np.float64)
    size = max(float(np.abs(diagonal_of(A)).max()), float(kind.tiny))
    jitter = 0.0
    for attempt in range(10):
        try:
            here = A if is_device_array(A) else A.copy(order="F")
            return cholesky(add_to_diagonal(here, jitter)), jitter
        except np.linalg.LinAlgError:
            # rounding of a matrix of this size, then ten times as much
            jitter = size * A.shape[0] * float(kind.eps) * 10**attempt
    raise np.linalg.LinAlgError("The matrix is not positive semi-definite.")


def is_positive(A: np.ndarray, *, single: bool = False) -> bool:
    """Tell whether a symmetric matrix is positive semi-definite but for rounding: A plus a little of I has a factor.

    `single` says that its values were rounded to single precision, whatever their type is now.
    """
    size = largest_entry(A) if A.shape[0] else 0.0
    eps = float(np.finfo(np.float32 if single or in_single(A) else np.float64).eps)
    # Gram matrices are rounded by about n eps of their largest entry
    little = max(1e-8, 8 * A.shape[0] * eps) * max(size, float(np.finfo(np.float64).tiny))
    try:
        # the transpose of a symmetric matrix is copied faster than its rows are turned into columns
        here = A if is_device_array(A) or not A.flags.c_contiguous else A.T
        double = cast(A, "float64") if is_device_array(A) else np.array(here, dtype=np.float64, order="F")
        cholesky(add_to_diagonal(double, little))
    except np.linalg.LinAlgError:
        return False
    return True


def inverse(A: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric positive definite matrix, which is used up."""
    factor = cholesky(A)
    if is_device_array(factor):
        return solve(factor, namespace(A).eye(A.shape[0], dtype=A.dtype, device=A.device))
    (potri,) = lapack.get_lapack_funcs(("potri",), (factor,))
    return mirror(potri(factor, lower=1, overwrite_c=1)[0])


def inverse_factor(L: np.ndarray) -> np.ndarray:
    """L⁻¹ for a lower triangular L, which is used up."""
    if is_device_array(L):
        return forward(L, namespace(L).eye(L.shape[0], dtype=L.dtype, device=L.device))
    (trtri,) = lapack.get_lapack_funcs(("trtri",), (L,))
    return trtri(L, lower=1, overwrite_c=1)[0]  # its upper triangle is 0 as that of L


def inverse_diagonal(L: np.ndarray) -> np.ndarray:
    """The diagonal of (LL')⁻¹ = L⁻ᵀL⁻¹ for a lower triangular L, which is used up; NumPy's in any case."""
    return column_norms(inverse_factor(L)) ** 2


def root(K: np.ndarray) -> tuple[np.ndarray, bool]:
    """G with GG' = K, one column per direction that carries weight, and whether it is triangular.

    Cholesky's factor, with pivots where K is singular.
    """
    if is_device_array(K):
        return _device_root(K)
    try:
        return cholesky(K.copy(order="F")), True
    except np.linalg.LinAlgError:
        G = _pivoted_factor(K, K.dtype)
        # more than rounding, of single precision too
        if np.abs(K - multiply(G, G.T)).max() > max(1e-5, _rounding(K, K.dtype)) * np.abs(K).max():
            raise
        return G, False


def _device_root(K: Any, dtype: Any = None) -> tuple[Any, bool]:
    """Return G with GG' = K on a device: Cholesky's factor, or eigenvectors where K is singular."""
    dtype = dtype or (np.float32 if in_single(K) else np.float64)
    try:
        return device_cholesky(K), True
    except np.linalg.LinAlgError:
        values, vectors = eigh(K)
        e = to_numpy(values).astype(np.float64)
        if -e[0] > max(1e-5, _rounding(K, dtype)) * largest_entry(K):  # more than rounding
            raise
        first = int(np.argmax(e > 8 * np.sqrt(len(e)) * float(np.finfo(dtype).eps) * e[-1]))  # they ascend
        return vectors[:, first:] * cast(like(np.sqrt(e[first:])[None, :], K), K.dtype), False


def _rounding(K: np.ndarray, dtype: Any) -> float:
    """Return the size of rounding errors in a Gram matrix of this type, relative to its largest entry."""
    return 8 * K.shape[0] * float(np.finfo(dtype).eps)


def _pivoted_factor(K: np.ndarray, dtype: Any) -> np.ndarray:
    """Return G with GG' = K up to the rounding of a type, one column per direction above it, by pivots.

    A pivot as small as the errors of its column would divide them by almost nothing, so that none is used.
    """
    (pstrf,) = lapack.get_lapack_funcs(("pstrf",), (K,))
    least = 8 * np.sqrt(len(K)) * float(np.finfo(dtype).eps) * float(np.abs(K.diagonal()).max())
    factor, pivots, rank, _ = pstrf(K, lower=1, tol=least)
    rank = max(rank, 1)
    G = np.empty((len(K), rank), dtype=K.dtype, order="F")
    G[pivots - 1] = np.tril(factor)[:, :rank]  # rows back in their order; LAPACK counts from 1
    return G


def without_rounding(K: np.ndarray) -> np.ndarray:
    """Return a Gram matrix without the negative eigenvalues that rounding to its own type left in it.

    A matrix that has a Cholesky factor in double precision is returned as it is, and so is one whose negative
    eigenvalues are more than rounding. Otherwise the result has lower rank and is in double precision.
    """
    if is_device_array(K):
        A = cast(K, "float64")
        try:
            G, whole = _device_root(A, np.float32 if in_single(K) else np.float64)
        except np.linalg.LinAlgError:
            return K
        return K if whole else gram_of(G.T)
    A = np.array(K, dtype=np.float64, order="F")
    try:
        cholesky(A.copy(order="F"))
        return K
    except np.linalg.LinAlgError:
        P = gram_of(_pivoted_factor(A, K.dtype).T)
        return P if np.abs(A - P).max() <= _rounding(K, K.dtype) * np.abs(A).max() else K


def sandwich(G: np.ndarray, B: Any, *, triangular: bool) -> np.ndarray:
    """G'BG for a symmetric B, or its diagonal."""
    if B.ndim == 1:
        return gram_of(like(np.sqrt(B)[:, None], G) * G)  # G'BG with B½ on either side
    if is_device_array(G) or not triangular:
        return multiply(G.T, multiply(B, G))
    (trmm,) = blas.get_blas_funcs(("trmm",), (G,))
    # triangular products do half the work
    inner = np.asfortranarray(B @ G) if sp.issparse(B) else trmm(1.0, G, _fortran(B)[0], side=1, lower=1)
    return trmm(1.0, G, inner, trans_a=1, lower=1, overwrite_b=1)


def forward(L: np.ndarray, T: np.ndarray) -> np.ndarray:
    """L⁻¹T for a lower triangular L."""
    if is_device_array(L):
        return device_triangular(L, T, transposed=False)
    if not T.size:
        return np.zeros(T.shape, dtype=np.result_type(L, T), order="F")
    (trsm,) = blas.get_blas_funcs(("trsm",), (L, T))
    here, transposed = _fortran(T)
    if transposed:  # L⁻¹T = (T'L⁻ᵀ)'
        return trsm(1.0, L, here, side=1, lower=1, trans_a=1).T
    return trsm(1.0, L, here, lower=1)


def solve_rows(L: np.ndarray, T: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L⁻¹t, or L⁻ᵀt, for each row t of T, in place; L is lower triangular, both are doubles in C's order."""
    if not T.size:
        return T
    if len(T) <= 32:  # few rows are faster one by one (measured)
        for t in T:
            blas.dtrsv(L.T, t, trans=int(not transposed), overwrite_x=1)
        return T
    return blas.dtrsm(1.0, L.T, T.T, lower=0, trans_a=int(not transposed), overwrite_b=1).T


def solve(L: np.ndarray, T: np.ndarray) -> np.ndarray:
    """(LL')⁻¹T for a lower triangular L."""
    if is_device_array(L):
        return device_triangular(L, device_triangular(L, T, transposed=False), transposed=True)
    return scipy.linalg.cho_solve((L, True), T, check_finite=False)


def eigh(A: np.ndarray, *, driver: str = "evr") -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns.

    The driver "evd" (divide and conquer) is faster for matrices of some hundred rows and takes twice the memory.
    "threads" is the same by a call that lets other threads of Python work.
    """
    if is_device_array(A):
        return tuple(namespace(A).linalg.eigh(A))
    if driver == "threads":
        values, vectors = np.linalg.eigh(A)
        return values, vectors
    return scipy.linalg.eigh(A, driver=driver, check_finite=False)


def eigvalsh(A: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a symmetric matrix in ascending order."""
    return scipy.linalg.eigvalsh(A, check_finite=False)


def svd(A: np.ndarray, *, full_matrices: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, the singular values in descending order, and V' with A = U diag(s) V'."""
    return scipy.linalg.svd(A, full_matrices=full_matrices, check_finite=False)


def qr_r(A: np.ndarray) -> np.ndarray:
    """Return the triangular factor R of A = QR; on a device also of each of many matrices."""
    return namespace(A).linalg.qr(A)[1] if is_device_array(A) else scipy.linalg.qr(A, mode="r", check_finite=False)[0]


def lstsq(A: np.ndarray, B: np.ndarray, *, cutoff: float | None = None) -> np.ndarray:
    """Return the least squares solution X of AX = B with the smallest norm.

    Singular values of at most `cutoff` times the largest count as 0; by default those within rounding do.
    """
    cutoff = max(A.shape) * float(np.finfo(A.dtype).eps) if cutoff is None else cutoff
    return scipy.linalg.lstsq(A, B, cond=cutoff, check_finite=False)[0]


def solve_general(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A⁻¹B for a square matrix without structure."""
    if is_device_array(A):
        return namespace(A).linalg.solve(A, B)
    return scipy.linalg.solve(A, B, check_finite=False)


def inverse_general(A: np.ndarray) -> np.ndarray:
    """Return the inverse of a square matrix without structure."""
    return np.linalg.inv(A)


def solve_each(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A⁻¹B for each of many small square matrices, (n, k, k) and (n, k, P)."""
    return namespace(A).linalg.solve(A, B)


def norm(x: np.ndarray) -> float:
    """Return the Euclidean length of an array, all its entries taken as one vector."""
    if is_device_array(x):
        return float(namespace(x).sum(x * x)) ** 0.5
    return float(np.sqrt(np.vdot(x, x).real))


def solve_positive(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A⁻¹b for a symmetric positive definite matrix, which is used up."""
    factor = scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, b, check_finite=False)


def orthonormal(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns of A, which is used up."""
    return scipy.linalg.qr(A, mode="economic", overwrite_a=True, check_finite=False)[0]


# -- upper factors in single precision, as preconditioners take them
def upper_factor(A: np.ndarray) -> np.ndarray | None:
    """Return U with U'U = A for a float32 matrix in Fortran's order, which is used up; None if A has no factor."""
    U, info = lapack.spotrf(A, lower=0, overwrite_a=1, clean=0)
    return U if info == 0 else None


def upper_solve(U: np.ndarray, b: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return U⁻¹b, or U⁻ᵀb, for an upper triangular U in single precision; b is a vector or a matrix."""
    if b.ndim == 1:
        return blas.strsv(U, b, trans=int(transposed))
    return blas.strsm(1.0, U, b, trans_a=int(transposed), overwrite_b=1)


def factor_solve(U: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return (U'U)⁻¹B in single precision, for B of any size in double precision."""
    size = float(np.abs(B).max()) or 1.0  # keeps single precision within its range
    right = np.asfortranarray(B / size, dtype=np.float32)
    return upper_solve(U, upper_solve(U, right, transposed=True)).astype(np.float64) * size


def project_out(B: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y - BB'y for an orthonormal B in single precision."""
    return y - blas.sgemv(1.0, B, blas.sgemv(1.0, B, y, trans=1))


# -- spectra of positive semi-definite matrices
def eigh_positive(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of a positive semi-definite matrix, which is used up, and its eigenvectors as columns.

    The eigenvalues are NumPy's in any case.
    """
    if is_device_array(A):
        values, vectors = eigh(A)
        return np.maximum(to_numpy(values), 0), vectors
    values, vectors = scipy.linalg.eigh(A, overwrite_a=True, check_finite=False, driver="evd")
    return np.maximum(values, 0), vectors  # rounding turns zeros into small negative values


def drop_null_space(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the eigenvalues that are rounding errors, with their eigenvectors; keep at least one."""
    kept = values > len(values) * np.finfo(float).eps * float(values[-1])
    kept[-1] = True
    if kept.all():
        return values, vectors
    if is_device_array(vectors):
        return values[kept], vectors[:, int(np.argmax(kept)) :]  # the values ascend
    return values[kept], np.asfortranarray(vectors[:, kept])


def eigh_tridiagonal(diagonal: Any, off_diagonal: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
    return scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal)


def row_space(Y: np.ndarray) -> np.ndarray:
    """Return orthonormal columns that span the rows of Y."""
    n, P = Y.shape
    if n >= P:
        return drop_null_space(*eigh_positive(multiply(Y.T, Y)))[1]
    values, U = drop_null_space(*eigh_positive(multiply(Y, Y.T)))
    # right singular vectors from the left ones
    return multiply(Y.T, U / like(np.sqrt(np.maximum(values, np.finfo(float).tiny)), U))


def column_norms(A: np.ndarray) -> np.ndarray:
    """Return the Euclidean length of each column; NumPy's in any case."""
    if is_device_array(A):
        return np.sqrt(to_numpy(namespace(A).sum(A**2, axis=0)))
    return np.sqrt(np.einsum("ij,ij->j", A, A))


def solve_lu(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A⁻¹b for a square matrix and a vector; raise LinAlgError only where a pivot is exactly 0."""
    (gesv,) = lapack.get_lapack_funcs(("gesv",), (A, b))
    _, _, x, info = gesv(A, b)
    if info:
        raise np.linalg.LinAlgError("The matrix is singular.")
    return x


def largest_eigenvalue(A: np.ndarray) -> float:
    """Return the largest eigenvalue of a small symmetric matrix, without the checks that would take longer."""
    values, _, info = lapack.dsyev(A, compute_v=0)
    if info:
        raise np.linalg.LinAlgError("The eigenvalues did not converge.")
    return float(values[-1])


def eigvalsh_stack(A: np.ndarray) -> np.ndarray:
    """Return the eigenvalues in ascending order of each of many small symmetric matrices, (n, m, m)."""
    return np.linalg.eigvalsh(A)
