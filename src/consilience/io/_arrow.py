"""Parquet and Arrow files as tables, read by pyarrow: at once, or a part of the rows at a time."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._backend import available_memory
from ._arrow_sizes import check_each, check_whole
from ._nested import ListKind, is_list_of_numbers, read_nested
from ._parquet_sizes import bounded_batches, open_parquet, read_bounded
from .tables import IN_PARTS, Source, Table, check_unique, naming_file, objects, too_large

_ROWS = 8_192  # that are read at a time, unless they have more than so many bytes, and cut into chunks afterwards
_BYTES = 1 << 24


def arrow() -> Any:
    """Return pyarrow with its readers; say how to install it where it is not."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("CSV, Parquet and Arrow files need pyarrow: pip install 'consilience[frames]'.") from error
    return pyarrow


# -- files
class _Rows(NamedTuple):
    """Rows of a file that follow one another."""

    data: Any  # a table or a batch of pyarrow
    where: str  # the file, for messages
    first: int  # rows of the source before these


def read_parquet(source: Source) -> Iterator[Table]:
    """Yield the tables of a Parquet file, or of a folder of such files, whose rows are counted in order of names."""
    arrow()
    yield from _tables_of(_load_parquet(source), source, "Parquet")


def read_arrow(source: Source) -> Iterator[Table]:
    """Yield the tables of an Arrow or Feather file."""
    arrow()
    yield from _tables_of(_load_arrow(source), source, "Arrow")


def _load_arrow(source: Source) -> Iterator[_Rows]:
    pa, where, first = arrow(), source.where, 0
    with pa.OSFile(str(source.data)) as file:
        with naming_file(where, "Arrow"):
            try:
                opened = pa.ipc.open_file(file)
                batches: Any = (opened.get_batch(k) for k in range(opened.num_record_batches))
            except pa.ArrowInvalid:  # the other form of Arrow files, whose parts follow each other as in a stream
                file.seek(0)
                opened = batches = pa.ipc.open_stream(file)
            check_unique(opened.schema.names, where)
        footer = opened is not batches
        if source.chunk is None:
            with naming_file(where, "Arrow"):
                check_whole(source.data, where, footer, row_bytes(opened.schema))
                whole = checked(opened.read_all())
            yield _Rows(whole, where, 0)
            return
        batches = measured(iter(batches), check_each(source.data, where, footer))
        for batch in naming_rows(map(checked, batches), where, "Arrow"):
            size = max(source.chunk, min(_ROWS, _BYTES * batch.num_rows // max(batch.nbytes, 1)))
            for place in range(0, batch.num_rows, size):
                part = batch.slice(place, size)
                if not first or first + part.num_rows > source.start:  # the first rows tell what the columns are
                    yield _Rows(part, where, first)
                first += part.num_rows


def row_bytes(schema: Any) -> int:
    """Return the bytes that a row needs besides its columns: for its number, and for columns that have no bytes."""
    import pyarrow as pa

    return 8 * (1 + sum(pa.types.is_null(kind) for kind in schema.types))


def measured(batches: Iterator[Any], sizes: Iterator[bool]) -> Iterator[Any]:
    """Yield batches; `sizes` refuses one that is too large before it is read."""
    while True:
        next(sizes, None)
        batch = next(batches, None)
        if batch is None:
            return
        yield batch


def checked(data: Any) -> Any:
    """Return rows of an Arrow file whose offsets stay inside of it, which pyarrow does not check when it reads them."""
    data.validate(full=True)
    return data


def _load_parquet(source: Source) -> Iterator[_Rows]:
    pa, path, chunk = arrow(), source.data, source.chunk
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"The folder '{path}' has no .parquet file.")
    whole: list[Any] = []
    before, most = 0, available_memory()
    for one in files:
        where = f"'{one.name}'"
        with naming_file(where, "Parquet"):
            # pages are read as they are needed, and not whole row groups, which may be the whole file
            file = open_parquet(one, pre_buffer=False, buffer_size=0 if chunk is None else 1 << 17)
        with file:
            check_unique(file.schema_arrow.names, where)
            if chunk is None:
                with naming_file(where, "Parquet"):
                    whole.append(read_bounded(file, one, where, most - sum(own.nbytes for own in whole)))
                continue
            for batch, first in _batches_of(file, one, where, source, before):
                yield _Rows(batch, where, before + first)
            before += file.metadata.num_rows
    if whole:
        with naming_file(f"'{path.name}'", "Parquet"):
            data = whole.pop() if len(whole) == 1 else pa.concat_tables(whole, promote_options="permissive")
        yield _Rows(data, f"'{path.name}'", 0)


def _batches_of(file: Any, path: Path, where: str, source: Source, before: int) -> Iterator[tuple[Any, int]]:
    """Yield the batches of a Parquet file with the rows before them; `before` counts the rows of other files.

    The first batch of the source is always among them, since it tells what the columns are. Row groups between it and
    `start` are not read.
    """
    groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    n, start = sum(groups), source.start - before
    nbytes = sum(file.metadata.row_group(g).total_byte_size for g in range(len(groups)))
    size = max(source.chunk or 1, min(_ROWS, _BYTES * n // max(nbytes, 1)))
    batches = partial(bounded_batches, file, path, where, size, needed=source.chunk)
    if before == 0 and start > 0 and n:
        for batch in islice(naming_rows(_rows_from(batches, groups, 0), where, "Parquet"), 1):  # none if it is damaged
            yield batch, 0
            start = max(start, batch.num_rows)
    for batch in naming_rows(_rows_from(batches, groups, max(start, 0)), where, "Parquet", max(start, 0)):
        yield batch, max(start, 0)
        start = max(start, 0) + batch.num_rows


def _rows_from(batches: Callable[..., Iterator[Any]], groups: Sequence[int], start: int) -> Iterator[Any]:
    """Yield the rows of a Parquet file from `start` on, without reading the row groups before."""
    ends = np.cumsum([0, *groups])
    first = int(np.searchsorted(ends, start, side="right")) - 1
    skip = start - int(ends[first])
    for batch in batches(row_groups=range(first, len(groups))):
        if skip < batch.num_rows:
            yield batch.slice(skip)
        skip = max(skip - batch.num_rows, 0)


def naming_rows(batches: Iterator[Any], where: str, kind: str, first: int = 0) -> Iterator[Any]:
    """Yield batches; errors name the file and the row from which on it cannot be read."""
    while True:
        with naming_file(f"{where}, from row {first} on,", kind):
            batch = next(batches, None)
        if batch is None:
            return
        first += batch.num_rows
        yield batch


# -- tables
class _Step(NamedTuple):
    """What becomes of one column."""

    name: str
    place: int  # in the schema
    what: str  # "index", "lists", "fields", "dictionary", "categories" or "values"


class PandasNote(NamedTuple):
    """What pandas wrote about its columns."""

    named: list[Any] = []  # columns of the index, or a dict for a range
    categorical: frozenset[str] = frozenset()


def pandas_note(schema: Any, where: str) -> PandasNote:
    """Return what pandas wrote about the columns of a file, if it did; refuse what pandas does not write."""
    text = (schema.metadata or {}).get(b"pandas")
    if text is None:
        return PandasNote()
    try:
        note = json.loads(text.decode())
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise _wrong_note(where, "it is not JSON" if isinstance(error, ValueError) else "it is too deep") from error
    if not isinstance(note, dict):
        raise _wrong_note(where, "it is not an object")
    index, columns = note.get("index_columns", []), note.get("columns", [])
    if not isinstance(index, list) or not isinstance(columns, list):
        raise _wrong_note(where, "its columns are not a list")
    if not all(isinstance(own, dict) for own in columns):
        raise _wrong_note(where, "a column in it is not an object")
    names = [own.get("field_name") for own in columns if own.get("pandas_type") == "categorical"]
    if not all(isinstance(name, str | None) for name in names):
        raise _wrong_note(where, "a name in it is not a string")
    return PandasNote(index, frozenset(name for name in names if name is not None))


def _wrong_note(where: str, reason: str) -> ValueError:
    return ValueError(
        f"{where} has a note of pandas about its columns that cannot be read: {reason}. Write the file again, with "
        "pandas or without the note."
    )


def _plan(schema: Any, source: Source, where: str) -> list[_Step]:
    """Return what becomes of the columns of a file; an index that had a name in pandas comes first, as in CSV files."""
    import pyarrow as pa

    about = pandas_note(schema, where)
    named, own = about.named, about.categorical
    steps = []
    for name in dict.fromkeys([*(name for name in schema.names if name in named), *schema.names]):
        place = schema.get_field_index(name)
        kind, what = schema.field(place).type, "values"
        if not name or name.startswith("__index_level_"):  # names of the rows, or row numbers, which pandas keeps
            what = "index"
        elif name in source.exact:
            what = "values"
        elif pa.types.is_struct(kind) or is_list_of_numbers(kind):
            what = "fields" if pa.types.is_struct(kind) else "lists"
        elif source.chunk is not None and pa.types.is_dictionary(kind) and _is_text(kind.value_type):
            what = "dictionary"  # only a whole file tells all categories
        elif name not in source.texts and (name in own or (pa.types.is_dictionary(kind) and kind.ordered)):
            what = "categories"
        steps.append(_Step(name, place, what))
    return steps


def _tables_of(parts: Iterator[_Rows], source: Source, kind: str) -> Iterator[Table]:
    """Yield the rows of files as tables; the first ones decide what lists are."""
    kinds: dict[str, ListKind] = {}
    schema, steps = None, []
    for part in parts:
        if part.data.schema is not schema:
            schema, steps = part.data.schema, _plan(part.data.schema, source, part.where)
        rows = np.arange(part.first, part.first + part.data.num_rows)
        end, data = part.first + part.data.num_rows, part.data
        while True:
            table = Table(source.name, part.where, rows=rows, end=end)
            faults: dict[int, str] = {}
            for step in steps:
                _add_column(table, step, data.column(step.place), source, kind, kinds, faults)
            if not faults:
                break
            for k in sorted(faults):
                source.errors.reject(int(rows[k]), faults[k])
            fine = np.isin(np.arange(len(rows)), list(faults), invert=True)
            data, rows = data.filter(fine), rows[fine]  # and again, without these rows
        yield table


def _add_column(
    table: Table,
    step: _Step,
    column: Any,
    source: Source,
    kind: str,
    kinds: dict[str, ListKind],
    faults: dict[int, str],
) -> None:
    """Add a column to a table, or what is wrong with some of its rows to `faults`."""
    name, own = step.name, f"Column '{step.name}' of {table.where}"
    rows = table.rows if table.rows is not None else np.arange(len(column))
    if step.what in ("lists", "fields"):
        found = read_nested(column, own, name, kinds, name in source.texts, rows)
        faults.update(found.faults)
        if found.values is not None:
            table.columns[name] = found.values
        else:
            table.blocks[name] = found.block
            table.names.update({name: found.names} if found.names else {})
        return
    if step.what == "index":
        index = values_of(column, own, kind, True)
        table.index = index if index.dtype == object and table.index is None else table.index
        return
    table.columns[name] = values_of(column, own, kind, name in source.exact)
    if step.what == "dictionary":
        table.alone.add(name)
    elif step.what == "categories":
        table.levels[name] = _levels_of(column)


def _levels_of(column: Any) -> list[Any]:
    """Return the categories of a column whose type says that it has some.

    Those are columns of categories in pandas, and dictionaries with an order. Other dictionaries may have text, which
    takes less space so. Parquet files have categories of pandas that are numbers in a column of numbers.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return []
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries()
        return column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    return column.dictionary.to_pylist()


# -- columns
def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def check_strings(column: Any, where: str, remedy: str = IN_PARTS) -> None:
    """Refuse a dictionary column of text whose rows do not fit into memory, each with its own string."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    lengths = [pc.binary_length(own.dictionary) for own in parts]
    largest = sum(len(own) * (pc.max(n).as_py() or 0) for own, n in zip(parts, lengths, strict=True))
    if largest > _BYTES and largest > (most := available_memory()):
        total = sum(pc.sum(n.take(own.indices)).as_py() or 0 for own, n in zip(parts, lengths, strict=True))
        if total > most:
            raise too_large(where, total, most, remedy)


def values_of(column: Any, where: str, kind: str, exact: bool) -> np.ndarray:
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
            values = column.to_numpy(zero_copy_only=False)
            return values.astype(bool) if truth else values
        if truth and not exact:
            return column.cast(pa.int8()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type) or (integer and not exact):
            if arrow_type != pa.float64():  # integers above 2^53 are rounded, as NumPy does it
                column = column.cast(pa.float64(), safe=not integer)
            return column.to_numpy(zero_copy_only=False)
        check_strings(column, where)
        if pa.types.is_dictionary(arrow_type) and _is_text(arrow_type.value_type):
            column = column.cast(arrow_type.value_type)
        if _is_text(column.type):
            return column.to_numpy(zero_copy_only=False)
        items = column.to_pylist()
        return objects([None if own is None else dict(own) for own in items] if pa.types.is_map(arrow_type) else items)
