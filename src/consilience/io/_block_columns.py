"""Columns of Arrow as blocks of views, without a loop over cells."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..views._frames import NO_LEVELS, Levels, one_hot_rows
from ._arrow_blocks import Batch, changed, kind_of_type
from ._nested import float_array, list_lengths, matrix_of_lists, without_dictionary
from .tables import objects

_TILE = 4096  # rows that are written at a time, so that they stay in the cache while the columns follow each other


class Categories(NamedTuple):
    """How a column becomes one-hot columns."""

    values: Any  # array of pyarrow: the values that the column has
    places: np.ndarray  # of each value among the categories; the last is that of missing values
    levels: tuple[str, ...]


class BlockRecipe(NamedTuple):
    """How columns become one view, the same in every block."""

    kind: str  # "numbers", "lists" or "text"
    columns: tuple[str, ...]
    names: tuple[str, ...]  # of the columns of the view, where they have some
    width: int
    dtype: Any = np.float64
    encoded: Mapping[str, Categories] = {}

    @property
    def categories(self) -> Levels:
        """The categories of each encoded column."""
        return {name: own.levels for name, own in self.encoded.items()} if self.encoded else NO_LEVELS


# -- views
def block_of_view(batch: Batch, recipe: BlockRecipe) -> np.ndarray:
    """Return the data of one view: a matrix in order of rows, or objects with None."""
    if recipe.kind == "numbers":
        return _matrix(batch, recipe)
    column = batch.columns.get(recipe.columns[0])
    if recipe.kind == "text":
        return np.full(batch.n, None, dtype=object) if column is None else objects_of_column(column)
    return _matrix_of_lists(batch, column, recipe)


def _matrix(batch: Batch, recipe: BlockRecipe) -> np.ndarray:
    block = np.empty((batch.n, recipe.width), dtype=recipe.dtype)
    numbers: list[tuple[int, np.ndarray]] = []
    place = 0
    for name in recipe.columns:
        column, encoding = batch.columns.get(name), recipe.encoded.get(name)
        if encoding is None:
            numbers.append((place, float_array(column, batch.n)))
            place += 1
            continue
        width = len(encoding.levels)
        block[:, place : place + width] = one_hot_rows(width)[_codes(batch, name, column, encoding)]
        place += width
    for start in range(0, batch.n, _TILE):
        rows = block[start : start + _TILE]
        for place, values in numbers:
            rows[:, place] = values[start : start + _TILE]
    return block


def _codes(batch: Batch, name: str, column: Any, encoding: Categories) -> np.ndarray:
    """Return the category of each row by its position; missing values come last."""
    import pyarrow.compute as pc

    if column is None:
        return np.full(batch.n, len(encoding.levels))
    column = without_nan(without_dictionary(column))
    if kind_of_type(column.type) == "nothing":
        return np.full(batch.n, len(encoding.levels))
    found = pc.index_in(column.cast(encoding.values.type), value_set=encoding.values)
    if found.null_count > column.null_count:
        raise changed(batch.where, f"column '{name}' has other values")
    return encoding.places[pc.fill_null(found, len(encoding.values)).to_numpy(zero_copy_only=False)]


def _matrix_of_lists(batch: Batch, column: Any, recipe: BlockRecipe) -> np.ndarray:
    if column is None or column.null_count == len(column):
        return np.full((batch.n, recipe.width), np.nan, dtype=recipe.dtype)
    lengths = list_lengths(column)
    other = np.flatnonzero((lengths >= 0) & (lengths != recipe.width))
    if len(other):
        raise ValueError(
            f"Column '{recipe.columns[0]}' of {batch.where} has a list of {lengths[other[0]]} numbers in row "
            f"{batch.first + int(other[0])}, but of {recipe.width} in rows before. Make all lists equally long."
        )
    return matrix_of_lists(column, recipe.width, recipe.dtype)


# -- columns
def without_nan(column: Any) -> Any:
    """Return a column with null in place of NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def objects_of_column(column: Any) -> np.ndarray:
    """Return a column as objects: strings, numbers or others, and None where a value is missing."""
    column = without_dictionary(column)
    if kind_of_type(column.type) == "strings":
        return column.to_numpy(zero_copy_only=False)
    return objects(column.to_pylist())


# -- cells that are missing
def mask_cells(
    columns: Mapping[str, Any], names: Collection[str], given: Collection[Any]
) -> tuple[Mapping[str, Any], dict[str, int]]:
    """Return columns with null in place of the cells in `given`, and how many these are in each column.

    `given` has strings, and the numbers that some of them are. True is not 1.
    """
    if not given:
        return columns, {}
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([value for value in given if isinstance(value, str)], pa.string())
    numbers = pa.array([value for value in given if isinstance(value, float)], pa.float64())
    masked, counts = dict(columns), {}
    for name in columns:
        if name not in names:
            continue
        column = without_dictionary(columns[name])
        kind = kind_of_type(column.type)
        if kind == "strings":
            hit = pc.is_in(column.cast(pa.string()), value_set=texts)
        elif kind == "numbers" and not pa.types.is_boolean(column.type):
            rounded = column.cast(pa.float64(), safe=not pa.types.is_integer(column.type))  # integers above 2^53 too
            hit = pc.is_in(rounded, value_set=numbers)
        else:
            continue
        found = pc.sum(hit).as_py() or 0
        if found:
            counts[name] = found
            masked[name] = pc.if_else(hit, pa.scalar(None, column.type), column)
    return masked, counts
