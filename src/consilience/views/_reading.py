"""Read one view's data: arrays, sparse matrices, frames, columns, sequences of objects."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, namespace, to_numpy
from ._blocks import Block, Gram


def rows_with_data(block: Block) -> Any:
    """Return which rows of a block hold data: not only NaN, not None. All rows of sparse and Gram matrices do."""
    if block is None:
        return False
    if isinstance(block, Gram) or sp.issparse(block):
        return True
    if block.dtype == object:
        return np.array([x is not None for x in block], dtype=bool)
    return ~to_numpy(_all_nan(block))


def read_block(name: str, value: Any) -> Block:
    """Return one view's data as stored; data frames are read by `read_frame` first."""
    if isinstance(value, (str, bytes, Mapping)) and not sp.issparse(value):
        kind = "dict" if isinstance(value, Mapping) else "string"
        raise TypeError(f"View '{name}' is one {kind}. Give a table, or a sequence with one entry per sample.")
    if sp.issparse(value):
        block = _canonical(_floating(name, checked_sparse(value, f"View '{name}'").tocsr()))
    elif is_device_array(value):
        if getattr(value, "requires_grad", False):
            raise ValueError(f"View '{name}' is a tensor that records gradients. Give its values: tensor.detach().")
        block = _device_block(value)
    else:
        block = read_array(name, value)
        if block.ndim == 1 and block.dtype.kind in "OUST":
            block = objects_or_numeric(block)
            if block.ndim == 1:
                return block
        block = _floating(name, block[:, None] if block.ndim == 1 else block)
    if len(block.shape) != 2:
        raise ValueError(f"View '{name}' must have 2 dimensions, samples by columns; got shape {tuple(block.shape)}.")
    if block.shape[1] == 0:
        shape = tuple(block.shape)
        raise ValueError(
            f"View '{name}' has 0 feature(s) (shape={shape}) while a minimum of 1 is required. Omit this view."
        )
    return block


def read_array(name: str, value: Any) -> np.ndarray:
    """Return the data as a NumPy array: numeric with NaN where masked, or objects."""
    if hasattr(value, "to_pylist"):  # Arrow
        return objects_of(value.to_pylist())
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    return from_sequence(name, value)


def _device_block(value: Any) -> Any:
    """Return an array of another library in floating point, on its device."""
    xp = namespace(value)
    return value if xp.isdtype(value.dtype, "real floating") else xp.astype(value, xp.float64)


def as_row(array: Any, view: str) -> Any:
    """Return what a sample has of a view, a dense or sparse array, as a matrix of one row; refuse several rows."""
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != 1):
        raise ValueError(
            f"{view} of a sample is one row; got an array of shape {tuple(array.shape)}. Give its numbers in the shape "
            "(columns,) or (1, columns)."
        )
    return (checked_sparse(array, view) if sp.issparse(array) else array).reshape((1, -1))


def checked_sparse(matrix: Any, what: str) -> Any:
    """Validate the indices of a sparse matrix, so that no compiled loop accesses memory outside its arrays.

    SciPy validates indices neither when a matrix is built from its parts nor when it is converted or sliced. So this
    check must come before any of these. `what` names the matrix in the message.
    """
    if matrix.format not in ("coo", "csr", "csc", "bsr"):
        return checked_sparse(matrix.tocsr(), what)  # DOK, LIL and DIA store no indices of their own
    shape = matrix.shape if matrix.ndim == 2 else (1, *matrix.shape)
    if matrix.format == "coo":
        coordinates = [matrix.row, matrix.col]
        for axis, own, size in zip(("row", "column"), coordinates, shape, strict=True):
            _check_indices(what, axis, own, size)
    else:
        coordinates = [matrix.indices]
        _check_pointers(matrix, shape, what)
    if any(len(own) != len(matrix.data) for own in coordinates):
        raise ValueError(
            f"{what} is a damaged sparse matrix: {len(matrix.data)} values, but "
            f"{' and '.join(str(len(own)) for own in coordinates)} indices. Build the matrix again."
        )
    return matrix


def _check_pointers(matrix: Any, shape: Sequence[int], what: str) -> None:
    """Raise if `indptr` or `indices` of a CSR, CSC or BSR matrix point outside its arrays."""
    if matrix.format == "bsr":
        shape = [size // block for size, block in zip(shape, matrix.data.shape[1:], strict=True)]
    outer, inner = ("column", "row") if matrix.format == "csc" else ("row", "column")
    major, minor = shape[::-1] if matrix.format == "csc" else shape
    ends, stored = matrix.indptr, len(matrix.indices)
    whole = ends.ndim == 1 and ends.dtype.kind in "iu" and len(ends) == major + 1
    if not whole or ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > stored:
        raise ValueError(
            f"{what} is a damaged sparse matrix: `indptr` must increase from 0 to at most {stored}, the number of "
            f"stored indices, with {major + 1} entries for {major} {outer}s. Build the matrix again."
        )
    _check_indices(what, inner, matrix.indices[: int(ends[-1])], minor)


def _check_indices(what: str, axis: str, indices: np.ndarray, size: int) -> None:
    """Raise for indices that are not integers from 0 to `size` - 1."""
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"{what} is a damaged sparse matrix: its {axis} indices are not integers. Build the matrix again."
        )
    if len(indices) and indices.view(f"u{indices.itemsize}").max() >= size:  # without a sign, -1 is huge
        outside = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(
            f"{what} is a damaged sparse matrix: it has the {axis} index {outside}, but {size} {axis}s. Build the "
            "matrix again, with indices from 0."
        )


def _canonical(matrix: Any) -> Any:
    """Return a CSR matrix with sorted indices, without duplicates, and with 32-bit indices where they suffice.

    SciPy and scikit-learn sort and sum other matrices in place, which would change the caller's data, so this happens
    in a copy. The flags that a matrix carries about its own order are not trusted.
    """
    matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)
    if len(matrix.data) > matrix.indptr[-1]:  # SciPy allows unused entries at the end, with arbitrary values
        matrix = matrix.copy()
        matrix.prune()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.indices.dtype != np.int32 and max(*matrix.shape, matrix.nnz) < np.iinfo(np.int32).max:
        parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
        matrix = type(matrix)(parts, shape=matrix.shape)
    return matrix


def from_sequence(name: str, value: Any) -> np.ndarray:
    """Read a list, tuple or other iterable: numeric rows (None: missing), or one object per sample."""
    if hasattr(value, "__array__"):
        return np.asarray(value)
    try:
        items = list(value)
    except TypeError as error:
        raise TypeError(
            f"View '{name}' must be an array, a sparse matrix, a data frame or a sequence with one entry per sample; "
            f"got {type(value).__name__}."
        ) from error
    first = next((x for x in items if not is_missing(x)), None)
    if isinstance(first, (list, tuple, np.ndarray)) and len(first) and all(map(_is_number, first)):
        blank = [np.nan] * len(first)
        try:
            return np.asarray([blank if is_missing(x) else x for x in items])
        except ValueError as error:
            raise ValueError(
                f"The rows of view '{name}' have different lengths. Give the same columns for every sample."
            ) from error
    if isinstance(first, (list, tuple)) and len(first) and isinstance(first[0], (list, np.ndarray)):
        try:
            return np.asarray(items)
        except ValueError as error:
            raise ValueError(
                f"The samples of view '{name}' are nested lists of different shapes. Give the same columns for every "
                "sample."
            ) from error
    return objects_of(items)


def _is_number(x: Any) -> bool:
    """Tell whether a value can stand in a numeric row; a missing one can, as NaN."""
    return isinstance(x, (numbers.Number, np.number, np.bool_)) or is_missing(x)


def objects_of(items: Sequence[Any]) -> np.ndarray:
    """Return a 1-D array of objects; `np.array` would make a table of samples that are sequences."""
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects


def objects_or_numeric(value: np.ndarray) -> np.ndarray:
    """Read one column: float64 of shape (n, 1) if all values that are not missing are real, else objects with None."""
    items = [None if is_missing(x) else str(x) if isinstance(x, np.str_) else x for x in value]
    if any(x is not None for x in items) and all(x is None or isinstance(x, numbers.Real) for x in items):
        try:
            return np.array([np.nan if x is None else float(x) for x in items])[:, None]
        except OverflowError as error:
            raise ValueError("A column has an integer that is too large for float64. Scale the column.") from error
    return objects_of(items)


def _floating(name: str, value: Any) -> Any:
    """Return the data in floating point: float16 becomes float32, integers, booleans and objects become float64."""
    if value.dtype in (np.float32, np.float64):
        return value
    if value.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: view '{name}' has dtype {value.dtype}. Give real columns.")
    if value.dtype.kind not in "biufO":
        raise ValueError(
            f"View '{name}' is not numeric: its columns have dtype {value.dtype}. Encode them first, or give strings "
            "as a sequence with one entry per sample."
        )
    try:
        return value.astype(np.float32 if value.dtype == np.float16 else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise (ValueError if isinstance(error, OverflowError) else type(error))(
            f"View '{name}' is not numeric: {str(error).rstrip('.')}. Encode its columns first, or give strings as a "
            "sequence with one entry per sample."
        ) from error


def is_missing(x: Any) -> bool:
    """Tell whether a value is None, NaN, NaT or pandas.NA, without importing pandas."""
    if x is None:
        return True
    if isinstance(x, (float, np.floating)):
        return bool(np.isnan(x))
    if isinstance(x, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(x))
    return type(x).__name__ in ("NAType", "NaTType") and type(x).__module__.startswith("pandas")


def _all_nan(block: Any) -> Any:
    """Return which rows contain only NaN; look at the first column first, where most data have none."""
    xp = namespace(block)
    if block.shape[0] and not bool(xp.any(xp.isnan(block[:, 0]))):
        return np.zeros(block.shape[0], dtype=bool)
    return xp.all(xp.isnan(block), axis=1)
