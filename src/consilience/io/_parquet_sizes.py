"""What the columns of a Parquet file unpack to, as its footer tells, and readers that stay within the memory."""

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._backend import available_memory
from .tables import too_large

_PLAIN = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}  # encodings in which a string has all of its bytes
FEWER = "Read fewer rows at a time (`chunk` of `read_stream`, `size` of `read_blocks`)."


class _Leaf(NamedTuple):
    """A column of numbers or strings of a Parquet file; a nested column has several."""

    place: int  # among all of them
    column: int  # that it belongs to, in the schema
    width: int  # bytes of a value, or of the place of a string
    strings: bool  # whether values have more bytes than these


class _NoBytes(io.RawIOBase):
    """A file of a given length that returns no bytes: Arrow leaks memory where a read raises."""

    def __init__(self, size: int) -> None:
        self.size, self.place, self.asked = size, 0, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self.place = offset + (0, self.place, self.size)[whence]
        return self.place

    def read(self, size: int = -1, /) -> bytes:
        self.asked = True
        return b""


def open_parquet(path: Path, **options: Any) -> Any:
    """Open a Parquet file; raise OSError if what its footer says of a column of a row group cannot be.

    pyarrow says so where it reads rows, but ends the process where it is asked about the column. So it is first to read
    all rows from a file without bytes: it looks at all columns before it asks for bytes.
    """
    from pyarrow.parquet import ParquetFile

    file, bytes_of = ParquetFile(path, **options), _NoBytes(path.stat().st_size)
    try:
        with ParquetFile(bytes_of, metadata=file.metadata, pre_buffer=True) as trial:
            next(trial.iter_batches(batch_size=1, use_threads=False), None)  # no thread reads on afterwards
    except OSError:
        if not bytes_of.asked:
            file.close()
            raise
    return file


def read_bounded(file: Any, path: Path, where: str, most: int) -> Any:
    """Return all rows of an open Parquet file; refuse it once it is known that they have more than `most` bytes.

    A string in a dictionary has few bytes in the file, however many rows have it. So rows are counted while they are
    read if they would not fit with the longest strings.
    """
    import pyarrow as pa

    leaves, n_rows = _leaves(file), file.metadata.num_rows
    least = 8 * n_rows + sum(_least(own, chunk) for group in _groups(file) for own, chunk in _chunks(group, leaves))
    if least > most:
        raise too_large(where, least, most)
    rows = [group.num_rows for group in _groups(file)]
    largest = _bytes_of_rows(file, path, leaves, most, rows)
    if sum(n * own for n, own in zip(rows, largest, strict=True)) <= most:
        return file.read()
    kept, total = [], 8 * n_rows
    for batch in file.iter_batches(batch_size=_rows_within(most // 4, largest)):
        kept.append(batch)
        total += _size(batch)
        if total > most:
            raise too_large(where, total, most)
    return pa.Table.from_batches(kept, file.schema_arrow)


def bounded_batches(
    file: Any,
    path: Path,
    where: str,
    size: int,
    *,
    needed: int | None = None,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Yield the rows of an open Parquet file by `size`, or by those that are `needed` if so many might not fit.

    What is needed and does not fit into memory is refused.
    """
    most, named = available_memory(), {"columns": columns, "row_groups": row_groups}
    leaves, rows = _leaves(file, columns), [min(group.num_rows, size) for group in _groups(file)]
    for group in _groups(file):
        row = sum(_least(own, chunk) for own, chunk in _chunks(group, leaves)) // max(group.num_rows, 1)
        if row > most:
            raise too_large(f"A row of {where}", row, most, "Write shorter lists and strings.")
    largest = _bytes_of_rows(file, path, leaves, most, rows)
    if _rows_within(most, largest) >= size:
        yield from file.iter_batches(batch_size=size, **named)
        return
    size = min(size, needed or size)
    kept: list[Any] = []
    n_rows = n_bytes = 0
    for batch in file.iter_batches(batch_size=min(_rows_within(most // 4, largest), size), **named):
        while batch.num_rows:
            part = batch.slice(0, size - n_rows)
            batch = batch.slice(part.num_rows)
            kept.append(part)
            n_rows, n_bytes = n_rows + part.num_rows, n_bytes + _size(part)
            if n_bytes > most:
                raise too_large(f"{where}, in {n_rows} of its rows,", n_bytes, most, FEWER)
            if n_rows == size:
                yield from _joined(kept)
                kept, n_rows, n_bytes = [], 0, 0
    yield from _joined(kept)


def _joined(parts: list[Any]) -> list[Any]:
    import pyarrow as pa

    return pa.Table.from_batches(parts).combine_chunks().to_batches() if parts else []


def _size(batch: Any) -> int:
    """Return the bytes of a batch without its dictionaries, which batches share."""
    import pyarrow as pa

    return sum(own.indices.nbytes if pa.types.is_dictionary(own.type) else own.nbytes for own in batch.columns)


# -- columns
def _leaves(file: Any, columns: Sequence[str] | None = None) -> list[_Leaf]:
    """Return the columns of numbers and strings of a file, of all its columns or of those that are named."""
    schema, about = file.schema_arrow, file.metadata
    types = [(c, kind) for c, field in enumerate(schema) for kind in _types_within(field.type)]
    if len(types) != about.num_columns:  # of a type that is stored in another manner
        kinds = [about.schema.column(place).physical_type for place in range(about.num_columns)]
        return [_Leaf(place, -1, 4, kind == "BYTE_ARRAY") for place, kind in enumerate(kinds)]
    wanted = set(schema.names if columns is None else columns)
    return [
        _Leaf(place, column, *_width(kind))
        for place, (column, kind) in enumerate(types)
        if schema.field(column).name in wanted
    ]


def _types_within(kind: Any) -> Iterator[Any]:
    """Yield the types of numbers and strings that a type is made of, in the order of Parquet."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        inner = [kind.storage_type]
    elif pa.types.is_struct(kind):
        inner = [kind.field(k).type for k in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        inner = [kind.key_type, kind.item_type]
    elif pa.types.is_nested(kind) and hasattr(kind, "value_type"):
        inner = [kind.value_type]
    else:
        yield kind
        return
    for own in inner:
        yield from _types_within(own)


def _width(kind: Any) -> tuple[int, bool]:
    """Return the bytes of a value, and whether it is a string."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return 8, False  # of NaN
    if pa.types.is_dictionary(kind):
        return 4, False  # its strings stay in the dictionary
    try:
        return max(kind.bit_width // 8, 1), False
    except ValueError:
        return (8 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else 4), True


# -- sizes
def _groups(file: Any) -> list[Any]:
    return [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]


def _chunks(group: Any, leaves: Sequence[_Leaf]) -> Iterator[tuple[_Leaf, Any]]:
    return ((own, group.column(own.place)) for own in leaves)


def _least(leaf: _Leaf, chunk: Any) -> int:
    """Return how many bytes a column of a row group has at least; null and empty lists count as values."""
    values: int = chunk.num_values
    return max(values * leaf.width, chunk.total_uncompressed_size if leaf.strings else 0)


def _bytes_of_rows(file: Any, path: Path, leaves: Sequence[_Leaf], most: int, rows: Sequence[int]) -> list[int]:
    """Return how many bytes a row of each row group may have, if its lists and its plain strings have average lengths.

    Strings in dictionaries have the greatest length. It is looked up only if `rows` of each row group might not fit
    into `most` bytes otherwise.
    """
    groups = _groups(file)
    share = most // (4 * max(len(groups) * sum(own.strings for own in leaves), 1))
    found = []
    for g, group in enumerate(groups):
        own_rows, total, unknown = max(group.num_rows, 1), 0, []
        for leaf, chunk in _chunks(group, leaves):
            values: int = chunk.num_values
            total += values * leaf.width
            if leaf.strings:
                packed: int = chunk.total_uncompressed_size
                total += packed
                if set(chunk.encodings) <= _PLAIN:
                    continue
                if values * packed * rows[g] <= share * own_rows:
                    total += values * packed
                else:
                    unknown.append((leaf, chunk))
        total += sum(
            chunk.num_values * n for (_, chunk), n in zip(unknown, _longest(file, path, g, unknown), strict=True)
        )
        found.append(-(-total // own_rows))
    return found


def _rows_within(room: int, largest: Sequence[int]) -> int:
    return max(room // max([1, *largest]), 1)


def _longest(file: Any, path: Path, group: int, chunks: Sequence[tuple[_Leaf, Any]]) -> list[int]:
    """Return the length of the longest string in the dictionary of each column, or all its bytes if it is unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest: list[int] = [chunk.total_uncompressed_size for _, chunk in chunks]
    asked = {}
    for k, (leaf, chunk) in enumerate(chunks):
        kind = file.schema_arrow.field(leaf.column).type if leaf.column >= 0 else None
        if _strings_of(kind) and chunk.has_dictionary_page and "DELTA_BYTE_ARRAY" not in chunk.encodings:
            asked[file.schema_arrow.field(leaf.column).name] = (k, chunk.path_in_schema)
    if not asked:
        return longest
    options = {"read_dictionary": [own for _, own in asked.values()], "pre_buffer": False, "buffer_size": 1 << 17}
    with pa.parquet.ParquetFile(path, metadata=file.metadata, **options) as again:
        first = next(again.iter_batches(batch_size=1, row_groups=[group], columns=list(asked)), None)
    for name, (k, _) in asked.items():
        own = first.column(name) if first is not None else None
        own = own.values if own is not None and pa.types.is_nested(own.type) else own
        if own is not None and pa.types.is_dictionary(own.type) and len(own.dictionary):
            longest[k] = pc.max(pc.binary_length(own.dictionary)).as_py() or 0
    return longest


def _strings_of(kind: Any) -> bool:
    """Tell whether a column has strings, or lists of strings, whose dictionary pyarrow can return."""
    import pyarrow as pa

    return kind is not None and (
        pa.types.is_string(kind) or (pa.types.is_list(kind) and pa.types.is_string(kind.value_type))
    )
