"""Columns of Arrow whose cells are lists or structs: matrices where all cells have the same shape, else objects."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .tables import objects

REMEDY = "In a stream, name a column of ids or maps by `objects` (--objects), which keeps its values as they are."


class ListKind(NamedTuple):
    """What a column of lists is, as its first rows told."""

    dense: bool  # whether all lists have `width` numbers; otherwise they are objects
    width: int = 0


class Nested(NamedTuple):
    """A column as a matrix with the names of its columns, or as objects, and what is wrong with some of its rows."""

    block: np.ndarray | None = None
    names: tuple[str, ...] = ()
    values: np.ndarray | None = None
    faults: dict[int, str] = {}


def is_list_of_numbers(kind: Any) -> bool:
    """Tell whether the cells of a column are lists of numbers."""
    import pyarrow as pa

    return _is_list(kind) and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)


def read_nested(column: Any, where: str, name: str, kinds: dict[str, ListKind], keep: bool, rows: np.ndarray) -> Nested:
    """Return a column of lists of numbers, or of structs.

    Lists of one length are a matrix, integers in lists of several lengths are objects. Structs of numbers, and of such
    lists, are a matrix whose columns have dotted names. Other structs are objects, and so is every column with `keep`.
    `kinds` has what earlier rows told; `rows` are the numbers of the rows for messages.
    """
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        leaves = None if keep else list(_leaves(column))
        if not leaves or not all(_is_number(own.type) or is_list_of_numbers(own.type) for _, own in leaves):
            return Nested(values=objects(column.to_pylist()))
        return _read_fields(leaves, where, name, kinds, rows)
    lengths = list_lengths(column)
    kind = kinds.get(name) or _decide(lengths, keep, pa.types.is_integer(column.type.value_type))
    if kind is None:
        return Nested()
    kinds[name] = kind
    if not kind.dense:
        return Nested(values=objects(column.to_pylist()))
    faults = _faults(lengths, kind.width, where, rows)
    return Nested(None if faults else matrix_of_lists(column, kind.width), faults=faults)


def _read_fields(
    leaves: list[tuple[str, Any]], where: str, name: str, kinds: dict[str, ListKind], rows: np.ndarray
) -> Nested:
    parts: list[np.ndarray] = []
    names: list[str] = []
    faults: dict[int, str] = {}
    for path, own in leaves:
        if _is_number(own.type):
            parts.append(float_array(own, len(own))[:, None])
            names.append(path)
            continue
        lengths = list_lengths(own)
        kind = kinds.get(f"{name}.{path}") or _decide(lengths, False, False)
        if kind is None:
            continue
        kinds[f"{name}.{path}"] = kind
        faults.update(_faults(lengths, kind.width, f"{where}, field '{path}',", rows))
        names += [f"{path}.{k}" for k in range(kind.width)]
        if not faults:
            parts.append(matrix_of_lists(own, kind.width))
    if faults:
        return Nested(faults=faults)
    return Nested(np.column_stack([part.astype(np.float64, copy=False) for part in parts]), tuple(names))


def _leaves(column: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a struct by their place, missing where the struct is."""
    import pyarrow as pa

    for field, own in zip(column.type, column.flatten(), strict=True):
        if pa.types.is_struct(own.type):
            yield from _leaves(own, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", own


def _decide(lengths: np.ndarray, keep: bool, integers: bool) -> ListKind | None:
    there = lengths[lengths >= 0]
    if keep:
        return ListKind(False)
    if not len(there):
        return None
    found, counts = np.unique(there, return_counts=True)
    if (len(found) > 1 and integers) or not found.any():
        return ListKind(False)
    usual = found[counts == counts.max()]
    return ListKind(True, int(usual[0] if len(usual) == 1 else next(own for own in there if own in usual)))


def _faults(lengths: np.ndarray, width: int, where: str, rows: np.ndarray) -> dict[int, str]:
    """Return the error of each row whose list has another length."""
    wrong = np.flatnonzero((lengths >= 0) & (lengths != width))
    return {
        int(k): f"{where} has lists of {width} and of {lengths[k]} numbers, the latter in row {rows[k]} (counted from "
        f"0). Make them equally long. {REMEDY}"
        for k in wrong
    }


# -- matrices
def list_lengths(column: Any) -> np.ndarray:
    """Return the length of each list, and -1 where it is missing."""
    import pyarrow.compute as pc

    return pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)


def matrix_of_lists(column: Any, width: int, dtype: Any = np.float64) -> np.ndarray:
    """Return lists of `width` numbers as the rows of a matrix, NaN where a list is missing."""
    import pyarrow as pa

    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if len(parts) == 1 and not parts[0].null_count:
        values = _own_numbers(parts[0].flatten(), dtype)
        if values is not None:
            return values.reshape(-1, width)
    matrix = np.empty((len(column), width), dtype=dtype)
    start = 0
    for part in parts:
        values = part.flatten()  # without the lists that are null
        block = matrix[start : start + len(part)]
        numbers = float_array(values, len(values)).reshape(-1, width)
        if part.null_count:
            there = part.is_valid().to_numpy(zero_copy_only=False)
            block[~there] = np.nan
            block[there] = numbers
        else:
            block[:] = numbers
        start += len(part)
    return matrix


def _own_numbers(values: Any, dtype: Any) -> np.ndarray | None:
    """Return numbers as they are in memory that is theirs alone and may be changed; None if a copy is needed."""
    import pyarrow as pa

    memory = values.buffers()[1]
    if values.type != pa.from_numpy_dtype(dtype) or values.null_count or memory is None or not memory.is_mutable:
        return None
    return np.frombuffer(memory, dtype=dtype, count=len(values), offset=values.offset * np.dtype(dtype).itemsize)


def without_dictionary(column: Any) -> Any:
    """Return a column with its values in place of positions in a dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def float_array(column: Any, n: int) -> np.ndarray:
    """Return a column of numbers, without a copy where that is possible, and NaN where a value is missing."""
    import pyarrow as pa

    if column is None or column.null_count == len(column):
        return np.broadcast_to(np.nan, n)
    column = without_dictionary(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.int8())
    return column.to_numpy(zero_copy_only=False)
