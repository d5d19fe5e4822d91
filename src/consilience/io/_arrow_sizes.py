"""What the batches of an Arrow file unpack to, told by their headers before any of them is unpacked."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .._backend import available_memory
from .tables import too_large

_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3  # types of messages
_OLD_PACKING = b"ARROW:experimental_compression"  # a note of messages that Arrow 0.17 packed
_PLACES = np.dtype([("start", "<i8"), ("length", "<i8")])
_BLOCKS = np.dtype([("start", "<i8"), ("header", "<i4"), ("", "<i4"), ("body", "<i8")])


class BatchSize(NamedTuple):
    """What one batch of rows, or of strings of a dictionary, unpacks to."""

    n_rows: int
    n_bytes: int
    packed: bool
    dictionary: int | None = None  # its number; None for rows
    delta: bool = False  # whether it adds to the dictionary before


class _Message(NamedTuple):
    header: bytes
    body: int  # place of the body in the file


def check_whole(path: Path, where: str, footer: bool, row: int) -> None:
    """Refuse a file whose batches do not fit into memory together; `row` bytes per row are needed besides them."""
    most, total = available_memory(), 0
    for own in batch_sizes(path, footer):
        total += own.n_bytes + (row * own.n_rows if own.dictionary is None else 0)
        if total > most:
            raise too_large(where, total, most)


def check_each(path: Path, where: str, footer: bool, *, mapped: bool = False) -> Iterator[bool]:
    """Yield True once per batch of rows, which is refused before if it does not fit into memory with its dictionaries.

    The buffers of a file that is mapped into memory take none unless they are packed.
    """
    dictionaries: dict[int, int] = {}
    for own in batch_sizes(path, footer):
        n_bytes = 0 if mapped and not own.packed else own.n_bytes
        if own.dictionary is not None:
            dictionaries[own.dictionary] = n_bytes + (dictionaries.get(own.dictionary, 0) if own.delta else 0)
            n_bytes = 0
        n_bytes += sum(dictionaries.values())
        if n_bytes > (most := available_memory()):
            raise too_large(f"A batch of {where}", n_bytes, most, "Write the file again with fewer rows in a batch.")
        if own.dictionary is None:
            yield True


def batch_sizes(path: Path, footer: bool) -> Iterator[BatchSize]:
    """Yield the sizes of the batches of an Arrow file in the order in which pyarrow reads them.

    Parameters
    ----------
    path : path
        A file of either form. It is read, not mapped: a file that becomes shorter meanwhile raises an error.
    footer : bool
        Whether the places of the batches are in a footer; otherwise they follow each other.

    Yields
    ------
    BatchSize
        Dictionaries come first if the file has a footer, otherwise where they are used.

    Raises
    ------
    ValueError
        Where a header cannot be read, or a batch is not inside of the file.
    """
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for message in _messages_of_footer(file, size) if footer else _messages_in_order(file, size):
            own = _size_of(message, file, size)
            if own is not None:
                yield own


# -- messages
def _read(file: IO[bytes], place: int, n: int) -> bytes:
    file.seek(place)
    found = file.read(n)
    if len(found) < n:
        raise ValueError("it ends inside of a batch")
    return found


def _messages_of_footer(file: IO[bytes], size: int) -> Iterator[_Message]:
    end = _read(file, max(size - 10, 0), min(size, 10))
    if len(end) < 10 or end[4:] != _MAGIC:
        raise ValueError("it has no footer")
    length = _number(end, 0, "<i")
    if not 0 < length <= size - 10:
        raise ValueError("its footer is not inside of the file")
    data = _read(file, size - 10 - length, length)
    footer = _Table(data, _number(data, 0, "<I"))
    for field in (2, 3):  # dictionaries, then rows
        for start, header, _, body in footer.items(field, _BLOCKS).tolist():
            if start < 0 or header < 8 or body < 0 or start + header + body > size:
                raise ValueError("its footer names a batch that is not inside of the file")
            found = _read(file, start, header)
            mark = 8 if _number(found, 0, "<i") == -1 else 4  # files before Arrow 0.15 have the length alone
            length = _number(found, mark - 4, "<i")
            if not 0 < length <= header - mark:
                raise ValueError("a header is not as long as it says")
            yield _Message(found[mark : mark + length], start + header)


def _messages_in_order(file: IO[bytes], size: int) -> Iterator[_Message]:
    place = 0
    while place + 4 <= size:
        length = _number(_read(file, place, 4), 0, "<i")
        place += 4
        if length == -1:
            if place + 4 > size:
                return
            length = _number(_read(file, place, 4), 0, "<i")
            place += 4
        if length == 0:  # the end, whatever follows
            return
        if not 0 < length <= size - place:
            raise ValueError("a header is not inside of the file")
        header = _read(file, place, length)
        place += length
        yield _Message(header, place)
        body = _Table(header, _number(header, 0, "<I")).number(3, "<q")
        if not 0 <= body <= size - place:
            raise ValueError("it ends inside of a batch")
        place += body


def _size_of(message: _Message, file: IO[bytes], size: int) -> BatchSize | None:
    """Return what a message unpacks to; None for a schema."""
    data = message.header
    root = _Table(data, _number(data, 0, "<I"))
    kind, body = root.number(1, "<B"), root.number(3, "<q")
    if not 0 <= body <= size - message.body:
        raise ValueError("it ends inside of a batch")
    if kind not in (_DICTIONARY, _RECORDS):
        return None
    own = batch = root.table(2)
    if kind == _DICTIONARY:
        batch = own.table(1)
    packed = bool(batch.place_of(3)) or _OLD_PACKING in data
    places = batch.items(2, _PLACES)
    if np.any(places["start"] < 0) or np.any(places["length"] < 0) or np.any(places["start"] > body - places["length"]):
        raise ValueError("a buffer is not inside of its batch")
    lengths = places["length"].tolist()
    if packed:
        starts = places["start"].tolist()
        lengths = [_unpacked(file, message.body + at, n) for at, n in zip(starts, lengths, strict=True) if n]
    n_rows = batch.number(0, "<q")
    if n_rows < 0:
        raise ValueError("a batch has a negative number of rows")
    n_bytes = max(sum(lengths), body)
    if kind == _RECORDS:
        return BatchSize(n_rows, n_bytes, packed)
    return BatchSize(n_rows, n_bytes, packed, own.number(0, "<q"), bool(own.number(2, "<B")))


def _unpacked(file: IO[bytes], place: int, length: int) -> int:
    """Return the size of a packed buffer, which stands in front of it; -1 for a buffer that is not packed."""
    n = _number(_read(file, place, 8), 0, "<q") if length >= 8 else -2
    if n < -1:
        raise ValueError("a packed buffer does not tell its size")
    return length - 8 if n == -1 else n


# -- flatbuffers
def _number(data: bytes, place: int, form: str) -> Any:
    try:
        if place < 0:
            raise ValueError
        return struct.unpack_from(form, data, place)[0]
    except (struct.error, ValueError):
        raise ValueError("a header points outside of itself") from None


class _Table:
    """A table of flatbuffers, the format of the headers: its fields are known by number."""

    def __init__(self, data: bytes, place: int):
        self._data, self._place = data, place
        self._fields = place - _number(data, place, "<i")
        self._size = _number(data, self._fields, "<H")

    def place_of(self, field: int) -> int:
        """Return the place of a field, 0 if the table does not have it."""
        slot = 4 + 2 * field
        found = _number(self._data, self._fields + slot, "<H") if slot + 2 <= self._size else 0
        return self._place + found if found else 0

    def number(self, field: int, form: str) -> int:
        """Return a number, 0 if the table does not have it."""
        place = self.place_of(field)
        return int(_number(self._data, place, form)) if place else 0

    def table(self, field: int) -> "_Table":
        """Return a table inside of this one."""
        place = self.place_of(field)
        if not place:
            raise ValueError("a header is not complete")
        return _Table(self._data, place + _number(self._data, place, "<I"))

    def items(self, field: int, dtype: np.dtype) -> np.ndarray:
        """Return a list of equal items, an empty one if the table does not have it."""
        place = self.place_of(field)
        if not place:
            return np.zeros(0, dtype)
        place += _number(self._data, place, "<I")
        n = _number(self._data, place, "<I")
        if n * dtype.itemsize > len(self._data) - place - 4:
            raise ValueError("a header points outside of itself")
        return np.frombuffer(self._data, dtype, n, place + 4)
