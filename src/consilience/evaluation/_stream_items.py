"""Where the samples of a stream come from: pieces of rows with labels, names and weights, from any row on."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..io.streams import read_stream
from ..online._stream import one_row
from ..views.container import Views
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from ..views.validation import read_weights


class Piece(NamedTuple):
    """Consecutive samples: Views (None if the only one has no features), labels, names or None, weights or None."""

    X: Views | None
    labels: Any
    ids: Any = None
    weights: Any = None

    def __len__(self) -> int:
        return 1 if self.X is None else len(self.X)

    def part(self, start: int, stop: int) -> "Piece":
        """Return some of the samples."""
        if start == 0 and stop == len(self):
            return self
        assert self.X is not None
        ids, weights = (None if v is None else v[start:stop] for v in (self.ids, self.weights))
        return Piece(self.X[start:stop], self.labels[start:stop], ids, weights)


@dataclass(frozen=True)
class StreamSource:
    """A stream, and how to read it: the arguments of `read_stream`, and sample weights of samples in memory."""

    stream: Any
    y: Any = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    sample_weight: Any = None

    def pieces(self, start: int) -> Iterator[Piece]:
        """Yield the samples from a row on."""
        skip = start
        for piece in self._all_pieces():
            if skip >= len(piece):
                skip -= len(piece)
                continue
            yield piece.part(skip, len(piece))
            skip = 0

    def _all_pieces(self) -> Iterator[Piece]:
        stream = self.stream
        if self.reading.get("format") is not None or isinstance(stream, (str, os.PathLike)):
            if self.sample_weight is not None and not isinstance(self.sample_weight, str):
                raise ValueError("Give the sample weights of a file as the name of their column.")
            yield from self._rows_of_tables()
        elif self.y is not None or isinstance(stream, RowBlocks) or is_dask(stream) or hasattr(stream, "shape"):
            yield from self._rows_in_memory()
        else:
            if self.sample_weight is not None:
                raise ValueError("An iterator has no sample weights. Give arrays or a file, or leave them out.")
            yield from _items(stream, self.reading)

    def _rows_of_tables(self) -> Iterator[Piece]:
        named = self.reading.get("ids") is not None
        for X, labels, *weights in read_stream(self.stream, self.y, weights=self.sample_weight, **self.reading):
            yield Piece(X, labels, X.sample_names if named else None, weights[0] if weights else None)

    def _rows_in_memory(self) -> Iterator[Piece]:
        weights, start = self.sample_weight, 0
        if isinstance(weights, str):
            raise ValueError(f"Sample weights are the column '{weights}' of a file; give an array with arrays.")
        weights = None if weights is None else read_weights(weights, len(weights), required=False)
        for X, labels in read_stream(self.stream, self.y, **{**self.reading, "ids": None}):
            own = None if weights is None else weights[start : start + len(X)]
            if own is not None and len(own) != len(X):
                raise ValueError(f"`sample_weight` has {len(self.sample_weight)} values, fewer than there are samples.")
            yield Piece(X, labels, None, own)
            start += len(X)


def _items(stream: Iterable[Any], reading: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield what an iterator gives: pairs of views and labels, or with the name of the sample as third part."""
    names: deque[Any] = deque()

    def pairs() -> Iterator[Any]:
        for item in stream:
            if isinstance(item, (tuple, list)) and len(item) == 3:
                names.append(item[2])
                yield ({} if item[0] is None else item[0]), item[1]
            else:
                names.append(None)
                yield item

    for X, labels in read_stream(pairs(), **{**reading, "ids": None}):
        ids = names.popleft()
        if isinstance(X, Views):
            several = isinstance(ids, (Sequence, np.ndarray)) and not isinstance(ids, (str, bytes))
            yield Piece(X, labels, None if ids is None else ids if several else [ids])
        else:
            own = {name: row for name, row in X.items() if row is not None}
            yield Piece(one_row(own) if own else None, [labels], None if ids is None else [ids])
