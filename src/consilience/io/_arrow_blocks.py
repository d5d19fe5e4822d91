"""Files as batches of Arrow columns: only the columns asked for, in file order, the same at every pass."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from ._arrow import PandasNote, arrow, check_strings, checked, measured, naming_rows, pandas_note
from ._arrow_sizes import check_each
from ._delimited import read_csv_parts
from ._json_lines import read_json_lines
from ._nested import is_list_of_numbers
from ._parquet_sizes import FEWER, bounded_batches, open_parquet
from ._text import OPENERS, is_libsvm
from .tables import Source, Table, check_unique, naming_file

_PARQUET = (".parquet", ".pq")
_ARROW = (".feather", ".arrow")
_TEXT = {".csv": ",", ".tsv": "\t", ".txt": ""}  # the separator that a name suggests
_JSON = (".jsonl", ".ndjson")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what folders such as centre=__HIVE_DEFAULT_PARTITION__ write for null


class Batch(NamedTuple):
    """Rows of one file that follow one another."""

    columns: Mapping[str, Any]  # arrays of pyarrow by name
    n: int
    where: str  # the file, for messages
    first: int  # rows of the file before these
    missing: Mapping[str, int]  # cells by column that `na_values` made missing, where the reader of the format does it


@dataclass(frozen=True)
class DataFile:
    """A file, and what it was when it was first looked at."""

    path: Path
    where: str
    stamp: tuple[int, int]  # bytes, and time of the last change
    types: Mapping[str, Any] = field(default_factory=dict)  # types of pyarrow by column; none for text before a pass
    n_rows: int | None = None
    by_pandas: frozenset[str] = frozenset()  # columns of a categorical type of pandas
    complete: frozenset[str] = frozenset()  # columns that have no null, as the file says
    constants: Mapping[str, Any] = field(default_factory=dict)  # columns that the names of folders give


# -- looking at files
def look_at_files(path: Path) -> list[DataFile]:
    """Return the file, or the files of a folder in sorted order, with their columns where the format tells them."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder '{path}'.")
    if path.is_dir():
        return _look_at_folder(path)
    plain = Path(path.stem) if path.suffix.lower() in OPENERS else path
    suffix = plain.suffix.lower()
    if plain is not path and suffix in (*_PARQUET, *_ARROW):
        raise ValueError(f"'{path.name}' is packed. Unpack it first; text files alone are read packed.")
    if suffix in _PARQUET:
        return [_look_at_parquet(path, f"'{path.name}'")]
    if suffix in _ARROW:
        return [_look_at_arrow(path, f"'{path.name}'")]
    if suffix in (*_TEXT, *_JSON):
        return [DataFile(path, f"'{path.name}'", _stamp(path, f"'{path.name}'"))]
    raise ValueError(
        f"'{path.name}' is not read by blocks: its name must end in one of "
        f"{', '.join((*_PARQUET, *_ARROW, *_TEXT, *_JSON))}. Read other files at once by read_samples, and cut them by "
        "RowBlocks.of."
    )


def is_text(file: DataFile) -> bool:
    """Tell whether a pass over the file is needed to know its columns and rows."""
    return file.path.suffix.lower() not in (*_PARQUET, *_ARROW)


def _stamp(path: Path, where: str) -> tuple[int, int]:
    with naming_file(where, "a file", OSError):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _look_at_folder(path: Path) -> list[DataFile]:
    """Return the Parquet files of a folder and the folders below it; ``centre=3/`` is a column `centre` of 3."""
    found = [
        one
        for one in path.rglob("*")
        if one.suffix.lower() in _PARQUET
        and one.is_file()
        and not any(name.startswith(("_", ".")) for name in one.relative_to(path).parts)
    ]
    if not found:
        raise FileNotFoundError(f"The folder '{path}' has no .parquet file.")
    files = []
    for one in sorted(found, key=lambda own: own.relative_to(path).parts):
        within = one.relative_to(path)
        given = [part.partition("=") for part in within.parts[:-1] if "=" in part]
        values = {unquote(key): None if value == _NO_VALUE else unquote(value) for key, _, value in given}
        file = _look_at_parquet(one, f"'{within.as_posix()}'")
        files.append(replace(file, constants={key: own for key, own in values.items() if key not in file.types}))
    return _with_constants(files)


def _with_constants(files: Sequence[DataFile]) -> list[DataFile]:
    """Give the columns of folder names a type: integers where all values are, else strings."""
    pa = arrow()
    keys = dict.fromkeys(key for file in files for key in file.constants)
    given = {key: [file.constants[key] for file in files if file.constants.get(key) is not None] for key in keys}
    whole = {key for key, values in given.items() if values and all(_is_integer(value) for value in values)}
    typed = []
    for file in files:
        kinds = {key: pa.int64() if key in whole else pa.string() for key in file.constants}
        values = {
            key: int(value) if value is not None and key in whole else value for key, value in file.constants.items()
        }
        typed.append(replace(file, types={**file.types, **kinds}, constants=values))
    return typed


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and str(int(text)) == text  # 01 is a name


def _look_at_parquet(path: Path, where: str) -> DataFile:
    arrow()
    stamp = _stamp(path, where)
    with naming_file(where, "Parquet"), open_parquet(path) as file:
        schema, about = file.schema_arrow, file.metadata
        n_rows, nulls = about.num_rows, _null_counts(about)
    check_unique(schema.names, where)
    complete = frozenset(name for name, count in nulls.items() if count == 0)
    note = pandas_note(schema, where)
    return DataFile(path, where, stamp, _types_of(schema, note), n_rows, note.categorical, complete)


def _types_of(schema: Any, note: PandasNote) -> dict[str, Any]:
    """Return the type of each column; an index that had a name in pandas comes first, as in CSV files."""
    types = dict(zip(schema.names, schema.types, strict=True))
    return {**{name: types[name] for name in schema.names if name in note.named}, **types}


def _null_counts(about: Any) -> dict[str, int]:
    """Return how many nulls each column has, where all row groups of a Parquet file count them."""
    counts: dict[str, int] = {}
    unknown = set()
    for g in range(about.num_row_groups):
        group = about.row_group(g)
        for c in range(group.num_columns):
            column = group.column(c)
            own = column.statistics
            if own is None or not own.has_null_count:
                unknown.add(column.path_in_schema)
            else:
                counts[column.path_in_schema] = counts.get(column.path_in_schema, 0) + own.null_count
    return {name: count for name, count in counts.items() if name not in unknown}


def _look_at_arrow(path: Path, where: str) -> DataFile:
    stamp = _stamp(path, where)
    with naming_file(where, "Arrow"), _open_arrow(path, where) as opened:
        schema, n_rows = opened.reader.schema, sum(batch.num_rows for batch in opened.batches())
    check_unique(schema.names, where)
    note = pandas_note(schema, where)
    return DataFile(path, where, stamp, _types_of(schema, note), n_rows, note.categorical)


# -- batches
def read_batches(file: DataFile, columns: Collection[str] | None, size: int, options: Mapping[str, Any]) -> Any:
    """Yield the rows of a file by batches of at most `size` rows, with the columns asked for; None for all.

    The file must be what it was before, which is checked before and after.
    """
    check_unchanged(file)
    if not is_text(file):
        asked = [name for name in file.types if (columns is None or name in columns) and name not in file.constants]
        read = _read_parquet if file.path.suffix.lower() in _PARQUET else _read_arrow
        first = 0
        for data in _ahead(naming_rows(read(file, asked, size), file.where, "Parquet or Arrow")):
            own = dict(zip(data.schema.names, data.columns, strict=True))
            for name, column in own.items():
                check_strings(column, f"Column '{name}' of {file.where}", FEWER)
            own.update({name: _constant(file, name, data.num_rows) for name in file.constants})
            yield Batch(own, data.num_rows, file.where, first, {})
            first += data.num_rows
    else:
        yield from _ahead(_read_text(file, size, options))
    check_unchanged(file)


def check_unchanged(file: DataFile) -> None:
    """Refuse a file that is not the one that was looked at first."""
    now = _stamp(file.path, file.where)
    if now != file.stamp:
        what = f"{file.stamp[0]} bytes then, {now[0]} now" if now[0] != file.stamp[0] else "it was written again"
        raise changed(file.where, what)


def changed(where: str, what: str) -> ValueError:
    """Return the error for a file that is not the same at every pass."""
    return ValueError(
        f"{where} has changed since read_blocks looked at it first: {what}. All passes must read the same rows. Call "
        "read_blocks again when the file is complete."
    )


def _ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield items while the next one is read in another thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="read_blocks") as pool:
        following = pool.submit(next, items, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item


def _read_parquet(file: DataFile, columns: Sequence[str], size: int) -> Iterator[Any]:
    # so that pyarrow reads pages as they are needed, and not whole row groups, which may be the whole file
    with open_parquet(file.path, pre_buffer=False, buffer_size=1 << 17) as opened:
        yield from bounded_batches(opened, file.path, file.where, size, columns=list(columns))


def _read_arrow(file: DataFile, columns: Sequence[str], size: int) -> Iterator[Any]:
    with _open_arrow(file.path, file.where) as opened:
        fields = [opened.reader.schema.get_field_index(name) for name in columns]
    with _open_arrow(file.path, file.where, fields) as opened:
        for batch in opened.batches():
            for start in range(0, checked(batch).num_rows, size):
                yield batch.slice(start, size)


class _open_arrow:
    """An Arrow file in a memory map, in either form of the format."""

    def __init__(self, path: Path, where: str, fields: list[int] | None = None):
        self._path, self._where, self._fields = path, where, fields

    def __enter__(self) -> "_open_arrow":
        pa = arrow()
        self._map = pa.memory_map(str(self._path)) if self._path.stat().st_size else pa.BufferReader(b"")
        options = pa.ipc.IpcReadOptions(included_fields=self._fields)
        try:
            self.reader = pa.ipc.open_file(self._map, options=options)
        except pa.ArrowInvalid:  # the form whose parts follow each other as in a stream
            self._map.seek(0)
            self.reader = pa.ipc.open_stream(self._map, options=options)
        return self

    def batches(self) -> Iterator[Any]:
        footer = hasattr(self.reader, "num_record_batches")
        in_order = (self.reader.get_batch(k) for k in range(self.reader.num_record_batches)) if footer else self.reader
        return measured(iter(in_order), check_each(self._path, self._where, footer, mapped=True))

    def __exit__(self, *error: object) -> None:
        self._map.close()


def _constant(file: DataFile, name: str, n: int) -> Any:
    pa = arrow()
    value = file.constants[name]
    kind = file.types[name]
    return pa.nulls(n, kind) if value is None else pa.repeat(pa.scalar(value, kind), n)


# -- text
def _read_text(file: DataFile, size: int, options: Mapping[str, Any]) -> Iterator[Batch]:
    """Yield the rows of a file of text; its columns have the same kind in all batches."""
    plain = Path(file.path.stem) if file.path.suffix.lower() in OPENERS else file.path
    suffix, first = plain.suffix.lower(), 0
    source = Source(file.path, file.where, "view0", chunk=size, **options)
    if suffix in _JSON:
        for table in read_json_lines(source):
            columns = _columns_of_table(table)
            n = len(next(iter(columns.values()))) if columns else 0
            yield Batch(columns, n, file.where, first, table.read_as_missing or {})
            first += n
        return
    if suffix == ".txt" and is_libsvm(source):
        raise ValueError(
            f"{file.where} is a libsvm file, which is not read by blocks. Read it by read_samples, and cut it by "
            "RowBlocks.of."
        )
    for part in read_csv_parts(source, _TEXT[suffix]):
        # a column without a name is there under the name '': names of the rows, or row numbers, if it is the first
        named = [(name, values) for place, (name, values) in enumerate(part.columns) if name or place == 0]
        n = len(part.columns[0][1]) if part.columns else 0
        if n:
            yield Batch(dict(named), n, file.where, first, part.missing)
        first += n


def _columns_of_table(table: Table) -> dict[str, Any]:
    pa = arrow()
    columns = {name: _array_of(values, name, table.where) for name, values in table.columns.items()}
    for name, block in table.blocks.items():
        if block is not None:
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1])
    return columns


def _array_of(values: np.ndarray, name: str, where: str) -> Any:
    pa = arrow()
    if values.dtype != object:
        return pa.array(values, from_pandas=True)
    try:
        return pa.array(values.tolist())
    except UnicodeEncodeError as error:  # which JSON can write, but no encoding
        raise ValueError(
            f"Column '{name}' of {where} has half of a character, {error.object[error.start]!a}. Write whole ones."
        ) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(
            f"Column '{name}' of {where} has values of several kinds, such as numbers and strings. Write one kind."
        ) from error


# -- types
def kind_of_type(kind: Any) -> str:
    """Return what a column has: "numbers", "strings", "lists", "dates", "nothing", or the type if it is another."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    if is_list_of_numbers(kind):
        return "lists"
    tests = {
        "nothing": [pa.types.is_null],
        "numbers": [pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean],
        "strings": [pa.types.is_string, pa.types.is_large_string],
        "dates": [pa.types.is_temporal],
    }
    found = next((name for name, own in tests.items() if any(test(kind) for test in own)), None)
    return found or ("strings" if str(kind) == "string_view" else str(kind))
