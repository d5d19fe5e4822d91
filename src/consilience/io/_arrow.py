"""CSV and Parquet files as tables, read by pyarrow: at once, or a part of the rows at a time."""

import csv
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .tables import Source, Table, check_unique, naming_file, naming_file_of, objects, rows_of_lists

_LONGEST_ROW = 1 << 26  # bytes of a CSV file
_INTEGER = r"^(-?[1-9][0-9]*|0)$"
_NOT_EXACT = r"^(-?0[0-9]+|-0|-?[0-9]{19,})$"  # which would lose characters as integers or numbers


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet and CSV files need pyarrow: pip install 'consilience[frames]'.") from error
    return pyarrow


# -- CSV
def read_csv(source: Source, delimiter: str = ",") -> Iterator[Table]:
    """Yield the tables of a CSV file, or of its lines.

    The first line names the columns. An empty cell, and words such as NA and NaN, are missing values. A column has
    numbers, true and false, dates, or else text; the first table decides for the following ones.
    """
    pa, where = _arrow(), source.where
    types: dict[str, Any] = dict.fromkeys([*source.texts, *source.exact], pa.string())
    kinds: dict[str, Any] = {}
    names: list[str] | None = None
    for part, lines in [(source.data, "")] if source.chunk is None else _cut(source, delimiter):
        data = _parse_csv(part, where, lines, delimiter, names, types)
        names = _column_names(data, where) if names is None else names
        table = Table(source.name, where)
        for column, values in zip(names, data.columns, strict=True):
            own, exact = f"Column '{column}' of {where}", column in source.exact
            if pa.types.is_binary(values.type):
                raise ValueError(
                    f"{where} is not encoded in UTF-8: column '{column}' has other bytes. Save it as UTF-8."
                )
            if _is_row_number(column):  # pandas wrote it
                continue
            if exact and kinds.get(column) != "text":
                values = _as_written(values)
            before, now = kinds.get(column), _kind(values.type)
            late_text = column in kinds and now == "text" and not exact  # an empty column counts as numbers
            if now not in (None, before) and (before or late_text):
                raise ValueError(_other_kind(own, lines, now, before))
            kinds[column] = now or before
            if now and not exact:  # the following tables are parsed as this one, and not by what they happen to have
                types[column] = pa.float64() if now == "numbers" else values.type
            table.columns[column] = _values(values, own, "CSV", exact)
        yield table


def _other_kind(column: str, lines: str, now: str, before: str | None) -> str:
    return (
        f"{column} has {now}{lines}, but {before or 'no value'} in all rows before. Write values of one kind, or leave "
        "the column out by `views` (--views)."
    )


def _cut(source: Source, delimiter: str) -> Iterator[tuple[bytes, str]]:
    """Cut the lines of a CSV file into parts of `chunk` rows; cells in quotes may go over several lines."""
    if isinstance(source.data, Path):
        with source.data.open(encoding="utf-8-sig", newline="") as lines:
            yield from _cut(replace(source, data=lines), delimiter)
            return
    kept: list[str] = []
    rows, start = -1, 1  # the names of the columns are not a row

    def passed() -> Iterator[str]:
        for line in source.data:
            kept.append(line if line.endswith(("\n", "\r")) else line + "\n")
            yield line

    def part() -> tuple[bytes, str]:
        text = "".join(kept).encode(errors="surrogateescape")  # standard input has these for bytes that are not UTF-8
        return text, f" in lines {start} to {reader.line_num}"

    reader = csv.reader(passed(), delimiter=delimiter)
    for row in naming_file_of(reader, source.where, "CSV", (UnicodeDecodeError, csv.Error)):
        rows += bool(row)
        if rows == source.chunk:
            yield part()
            kept.clear()
            rows, start = 0, reader.line_num + 1
    if rows > 0 or start == 1:
        yield part()


def _parse_csv(part: Any, where: str, lines: str, delimiter: str, names: Any, types: dict[str, Any]) -> Any:
    pa = _arrow()
    size = len(part) if isinstance(part, bytes) else part.stat().st_size
    block = min(max(size, 1 << 20), _LONGEST_ROW)  # pyarrow refuses rows that are longer than a block
    try:
        with naming_file(where, "CSV"):
            return pa.csv.read_csv(
                pa.BufferReader(part) if isinstance(part, bytes) else part,
                read_options=pa.csv.ReadOptions(block_size=block, column_names=names),
                parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(strings_can_be_null=True, column_types=types),
            )
    except ValueError as error:
        wrong = re.search(r"In CSV column #(\d+): CSV conversion error to .*: invalid (value '.*')", str(error))
        if wrong is None or names is None:
            raise
        name = names[int(wrong[1])]
        column = f"Column '{name}' of {where}"
        raise ValueError(_other_kind(column, lines, f"the {wrong[2]}", _kind(types[name]))) from error


def _column_names(data: Any, where: str) -> list[str]:
    with naming_file(where, "CSV"):
        names: list[str] = data.column_names
    check_unique(names, where)
    if "" in names:
        warnings.warn(
            f"{where} has a column without a name, such as pandas writes for row numbers. It is ignored; name it to "
            "use it.",
            stacklevel=6,  # where read_samples is called
        )
    return names


def _as_written(column: Any) -> Any:
    """Return text as integers, numbers, or true and false, if no value loses characters by that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def matches(pattern: str) -> Any:
        return pc.match_substring_regex(column, pattern)

    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    if pc.any(matches(_NOT_EXACT)).as_py():
        return column
    try:
        return column.cast(pa.int64() if pc.all(matches(_INTEGER)).as_py() else pa.float64())
    except pa.ArrowInvalid:
        return column.cast(pa.bool_()) if pc.all(matches(r"^(?i:true|false)$")).as_py() else column


def _kind(arrow_type: Any) -> str | None:
    """Return what a column of a CSV file has, in words; None if it has no value yet."""
    name = str(arrow_type)
    words = {"null": None, "int64": "numbers", "double": "numbers", "bool": "true or false", "string": "text"}
    return words.get(name, name)


# -- Parquet
def read_parquet(source: Source) -> Iterator[Table]:
    """Yield the tables of a Parquet file, or of a folder of such files."""
    _arrow()
    for where, data in _load_parquet(source.data, source.chunk):
        table = Table(source.name, where)
        for column, values in zip(data.column_names, data.columns, strict=True):
            own = f"Column '{column}' of {where}"
            if _is_list(values.type):
                table.blocks[column] = rows_of_lists(values.to_pylist(), own)
            elif not _is_row_number(column):
                table.columns[column] = _values(values, own, "Parquet", column in source.exact)
        yield table


def _load_parquet(path: Path, chunk: int | None) -> Iterator[tuple[str, Any]]:
    pa = _arrow()
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"The folder '{path}' has no .parquet file.")
    whole = []
    for one in files:
        where = f"'{one.name}'"
        with naming_file(where, "Parquet"):
            file = pa.parquet.ParquetFile(one)
        with file:
            check_unique(file.schema_arrow.names, where)
            if chunk is None:
                with naming_file(where, "Parquet"):
                    whole.append(file.read())
                continue
            for batch in naming_file_of(file.iter_batches(batch_size=chunk), where, "Parquet"):
                yield where, pa.Table.from_batches([batch])
    if whole:
        with naming_file(f"'{path.name}'", "Parquet"):
            yield f"'{path.name}'", pa.concat_tables(whole, promote_options="permissive")


# -- columns
def _is_row_number(name: str) -> bool:
    """Tell whether a column has the row numbers that pandas writes: to CSV without a name, to Parquet by its own."""
    return not name or name.startswith("__index_level_")


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    nested = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return nested and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _values(column: Any, where: str, kind: str, exact: bool) -> np.ndarray:
    """Return one column: numbers with NaN where missing, or objects with None.

    Classes and sample names (`exact`) stay integers or booleans next to missing ones: as objects with None.
    """
    import pyarrow as pa

    arrow_type, complete = column.type, column.null_count == 0
    integer, truth = pa.types.is_integer(arrow_type), pa.types.is_boolean(arrow_type)
    with naming_file(where, kind):
        if pa.types.is_null(arrow_type) and not exact:
            return np.full(len(column), np.nan)
        if (integer or truth) and complete:
            return column.to_numpy().astype(bool) if truth else column.to_numpy()
        if truth and not exact:
            return column.cast(pa.int8()).cast(pa.float64()).to_numpy()
        if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type) or (integer and not exact):
            return column.cast(pa.float64()).to_numpy()
        return objects(column.to_pylist())
