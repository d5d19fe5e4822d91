"""Where the samples of a stream come from: pieces of rows with labels, names and weights, from any row on."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..io.quarantine import Quarantine
from ..io.streams import StreamReader, read_stream
from ..online._stream import one_row
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from ..views.validation import read_weights


class Piece(NamedTuple):
    """Consecutive samples.

    `X` is None for one row that has no features. `rows` are the numbers of the samples in the stream, and `end` is the
    number of rows up to the end of the piece: more, if rows between samples were left out.
    """

    X: Views | None
    labels: Any
    rows: np.ndarray
    end: int
    ids: Any = None
    weights: Any = None

    def part(self, start: int, stop: int) -> "Piece":
        """Return some of the samples."""
        if start == 0 and stop == len(self.rows):
            return self
        assert self.X is not None
        ids, weights = (None if v is None else v[start:stop] for v in (self.ids, self.weights))
        end = self.end if stop == len(self.rows) else int(self.rows[stop])
        return Piece(self.X[start:stop], self.labels[start:stop], self.rows[start:stop], end, ids, weights)


class _Relay(Quarantine):
    """A quarantine that passes its rows on to another, once there is one."""

    def __init__(self) -> None:
        super().__init__()
        self._to: Quarantine | None = None
        self._kept: list[tuple[int, str, Any]] = []

    def add(self, row: int, error: str, content: Any = None) -> None:
        if self._to is None:
            self._kept.append((row, error, content))
        else:
            self._to.add(row, error, content)

    def send_to(self, other: Quarantine | None) -> None:
        """Pass on the rows so far, and those to come."""
        self._to = other
        if other is not None:
            for kept in self._kept:
                other.add(*kept)
            self._kept.clear()


@dataclass
class SampleStream:
    """A stream, and how to read it: the arguments of `read_stream`, and sample weights or their column."""

    stream: Any
    y: Any = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    sample_weight: Any = None
    _opened: "tuple[list[Piece], Iterator[Piece], _Relay] | None" = field(default=None, init=False)

    def first_views(self, *, skip: bool = False) -> Views | None:
        """Return the first samples of the stream, which `pieces` yields again; None if there are none.

        With `skip`, rows that cannot be read are left out. `pieces` refuses them.
        """
        relay, seen = _Relay(), []
        rest = self._read(0, relay if skip else None)
        for piece in rest:
            seen.append(piece)
            if piece.X is not None:
                break
        if not isinstance(self.stream, (str, os.PathLike)):  # a file is read again
            self._opened = seen, rest, relay
        return seen[-1].X if seen else None

    def pieces(self, start: int, refused: Quarantine | None = None) -> Iterator[Piece]:
        """Yield the samples from a row on; rows that cannot be read are refused, or raise an error."""
        if self._opened is not None and start == 0:
            seen, rest, relay = self._opened
            relay.send_to(refused)
            yield from seen
            yield from rest
        else:
            yield from self._read(start, refused)

    def _read(self, start: int, refused: Quarantine | None) -> Iterator[Piece]:
        stream, reading = self.stream, {**self.reading, "start": start}
        if refused is not None:
            reading |= {"on_error": "skip", "quarantine": refused}
        if self.reading.get("format") is not None or isinstance(stream, (str, os.PathLike)):
            if self.sample_weight is not None and not isinstance(self.sample_weight, str):
                raise ValueError("Give the sample weights of a file as the name of their column.")
            reader = read_stream(stream, self.y, weights=self.sample_weight, **reading)
            return _rows_of_tables(reader, named=reading.get("ids") is not None)
        reading["ids"] = None
        if self.y is not None or isinstance(stream, (RowBlocks, Views)) or is_dask(stream) or hasattr(stream, "shape"):
            weights = self.sample_weight
            if weights is not None and not isinstance(stream, RowBlocks) and not is_dask(stream):
                stream = as_views(stream, None if isinstance(stream, Views) else reading.get("views"))
                weights = in_order_of(stream, weights, "sample_weight")
            return _rows_in_memory(read_stream(stream, self.y, **reading), weights)
        if self.sample_weight is not None:
            raise ValueError("An iterator has no sample weights. Give arrays or a file, or leave them out.")
        return _items(stream, reading)


def _rows_of_tables(reader: StreamReader, named: bool) -> Iterator[Piece]:
    """Yield samples of a file, and between them the rows that have a label alone, in the order of the rows."""
    for X, labels in reader:
        ids = X.sample_names if named else None
        piece = Piece(X, labels, reader.rows, reader.n_rows, ids, reader.weights)
        start, alone = 0, reader.labels_alone
        while start < len(labels):
            at = int(np.searchsorted(reader.rows, alone[0][0])) if alone else len(labels)
            if at > start:
                part = piece.part(start, at)
                yield part._replace(end=min(part.end, alone[0][0])) if alone else part
                start = at
            else:
                yield _label_alone(*alone.popleft())
    while reader.labels_alone:
        yield _label_alone(*reader.labels_alone.popleft())


def _label_alone(row: int, name: Any, label: Any) -> Piece:
    return Piece(None, [label], np.array([row]), row + 1, [name])


def _rows_in_memory(reader: StreamReader, sample_weight: Any) -> Iterator[Piece]:
    """Yield samples of arrays, blocks of rows and Dask collections."""
    if isinstance(sample_weight, str):
        raise ValueError(f"Sample weights are the column '{sample_weight}' of a file; give an array with arrays.")
    weights = None if sample_weight is None else read_weights(sample_weight, len(sample_weight), required=False)
    for X, labels in reader:
        if weights is not None and reader.rows[-1] >= len(weights):
            raise ValueError(f"`sample_weight` has {len(weights)} values, fewer than there are samples.")
        yield Piece(X, labels, reader.rows, reader.n_rows, None, None if weights is None else weights[reader.rows])


def _items(stream: Iterable[Any], reading: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield what an iterator gives: pairs of views and labels, or with the name of the sample as third part."""
    last: list[Any] = [None]  # name of the item that was read last

    def pairs() -> Iterator[Any]:
        for item in stream:
            triple = isinstance(item, (tuple, list)) and len(item) == 3
            last[0] = item[2] if triple else None
            yield ({} if item[0] is None else item[0], item[1]) if triple else item

    reader = read_stream(pairs(), **reading)
    for X, labels in reader:
        name, ids = last[0], None
        if name is not None:
            ids = [name] if np.ndim(name) == 0 else list(name)[-len(reader.rows) :]
        if isinstance(X, Views):
            yield Piece(X, labels, reader.rows, reader.n_rows, ids)
        else:
            own = {view: row for view, row in X.items() if row is not None}
            yield Piece(one_row(own) if own else None, [labels], reader.rows, reader.n_rows, ids)
