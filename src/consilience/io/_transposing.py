"""Tables whose columns are samples, such as files of genes by samples, turned around."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..views._blocks import some
from ..views._reading import is_missing
from ..views._samples import as_names
from ._arrow import arrow, values_of
from ._delimited import read_target
from .tables import Table, as_numbers, name_text, objects

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def transposed(table: Table, exact: Mapping[str, str | None]) -> Table:
    """Return a table whose rows are columns and whose columns are samples.

    The first column has the names of the new columns, and the other columns are named after the samples. Columns in
    `exact` have targets or groups: their text becomes numbers as their task says, and their numbers are integers where
    all are whole.
    """
    if table.blocks or table.annotations or table.growing:
        raise ValueError(
            f"{table.where} cannot be transposed: only tables with rows and columns can, such as CSV, Excel, Parquet "
            "and Arrow files."
        )
    columns = dict(table.columns)
    names = table.index if table.index is not None else columns.pop(next(iter(columns))) if columns else objects([])
    if not columns:
        raise ValueError(
            f"{table.where} has no samples to transpose: its first line must have a name for each sample, after that "
            "of the first column. Check its separator."
        )
    lost = [row for row, name in enumerate(names.tolist()) if is_missing(name) or name == ""]
    if lost:
        raise ValueError(
            f"{table.where} has {len(lost)} rows without a name in its first column, the first after {lost[0]} others. "
            "Rows become columns, so name each of them."
        )
    named = [name_text(name) for name in names.tolist()]
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise ValueError(
            f"{table.where} has several rows of one name: {some(twice, 5)}. Rows become columns, so give each its own "
            "name, or combine those of one name."
        )
    values = list(columns.values())
    if any(column.dtype == object for column in values):
        turned = {name: _read_row([own[k] for own in values], name, exact) for k, name in enumerate(named)}
    else:
        matrix = np.array(values, dtype=np.float64)
        turned = {name: _whole(matrix[:, k]) if name in exact else matrix[:, k] for k, name in enumerate(named)}
    return replace(table, columns=turned, levels={}, index=None, samples=as_names(list(columns)), turned=True)


def _read_row(cells: list[object], name: str, exact: Mapping[str, str | None]) -> np.ndarray:
    """Return one row: numbers if all cells are, also those that text around them made text, else objects."""
    there = [None if is_missing(cell) else cell for cell in cells]
    strings = [cell for cell in there if isinstance(cell, str)]
    if name in exact and len(strings) == sum(cell is not None for cell in there):
        return values_of(read_target(arrow().chunked_array([there]), exact[name]), "A row", "CSV", True)
    if all(_NUMBER.fullmatch(cell) for cell in strings):
        there = [float(cell) if isinstance(cell, str) else cell for cell in there]
    else:
        return objects([None if cell is None else name_text(cell) for cell in there])
    read = as_numbers(objects([cell.item() if isinstance(cell, np.generic) else cell for cell in there]))
    return _whole(read) if name in exact and read.dtype == np.float64 else read


def _whole(values: np.ndarray) -> np.ndarray:
    """Return numbers as integers if all are whole, as a column of integers would be read."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else values
