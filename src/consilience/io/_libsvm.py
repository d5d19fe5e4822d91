"""libsvm files as tables: columns numbered from 0 or from 1, all rows as wide as the widest."""

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ._libsvm_rows import parse_plain_lines
from ._text import open_bytes
from .tables import MOST_COLUMNS, Source, Table, naming_file

_PIECE = 1 << 22  # bytes of a libsvm file that are read at a time
_MOST_INDEX = int(np.iinfo(np.int32).max)


class _Line(NamedTuple):
    """A line with a sample, and its place."""

    text: bytes
    row: int
    number: int


def read_libsvm(source: Source) -> Iterator[Table]:
    """Yield the tables of a libsvm file by pieces of its bytes, or one.

    A column with the number 0 means that columns are numbered from 0, unless `libsvm_base` says so. A stream is read
    twice, first for its width and for such a column.
    """
    if source.libsvm_base not in (None, 0, 1):
        raise ValueError(f"`libsvm_base` is the number of the first column: 0, 1 or None; got {source.libsvm_base!r}.")
    width, base = (None, source.libsvm_base) if source.chunk is None else _survey(source)
    for lines, end in _pieces(source):
        X, y, rows = _load(lines, source, base)
        if base is None:  # all rows are here
            base = 0 if len(X.indices) and X.indices.min() == 0 else 1
        width = int(X.indices.max(initial=base)) + 1 - base if width is None else width
        X = sp.csr_matrix((X.data, X.indices - X.indices.dtype.type(base), X.indptr), shape=(X.shape[0], width))
        blocks = {source.name: X}
        yield Table(source.name, source.where, {"y": y}, blocks, numbered=True, rows=np.array(rows, int), end=end)


def _pieces(source: Source) -> Iterator[tuple[list[_Line], int]]:
    """Yield the lines with samples from row `start` on, and the number of rows of the file up to their end."""
    row = before = 0  # rows and lines so far
    with open_bytes(source.data, whole=source.chunk is None) as file:
        while True:
            with naming_file(source.where, "libsvm"):
                lines = file.readlines(_PIECE if source.chunk else -1)
            if not lines:
                return
            kept = []
            for number, line in enumerate(lines, start=before + 1):
                if _has_sample(line):
                    if row >= source.start:
                        kept.append(_Line(line, row, number))
                    row += 1
            before += len(lines)
            if kept:
                yield kept, row


def _has_sample(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())


def _survey(source: Source) -> tuple[int, int]:
    """Return the number of columns of a file, and the number of the first one, without reading values."""
    last, zero = 0, False
    with open_bytes(source.data) as file, naming_file(source.where, "libsvm"):
        for line in file:
            words = line.partition(b"#")[0].split(None, 3)[1:3]  # a number, perhaps qid:number, and the first column
            zero = zero or any(word.startswith(b"0:") for word in words)
            if words:
                column, _, value = line.partition(b"#")[0].rsplit(None, 1)[-1].partition(b":")  # the highest one
                with suppress(ValueError):  # reading the rows tells what is wrong
                    float(value)
                    last = max(last, int(column) if int(column) <= MOST_COLUMNS else 0)
    base = (0 if zero else 1) if source.libsvm_base is None else source.libsvm_base
    return max(last + 1 - base, 1), base


def _load(lines: Sequence[_Line], source: Source, base: int | None) -> tuple[Any, np.ndarray, list[int]]:
    """Read lines with columns as they are numbered, and return the rows that could be read."""
    try:
        text = b"".join(line.text if line.text.endswith(b"\n") else line.text + b"\n" for line in lines)
        plain = parse_plain_lines(text, _MOST_INDEX)
        X, y = plain or load_svmlight_file(io.BytesIO(text), n_features=_MOST_INDEX, zero_based=True)
        wrong = _wrong_columns(X, base)
    except Exception as error:
        wrong, cause = "", error
    else:
        if not wrong:
            return X, y, [line.row for line in lines]
        cause = ValueError(wrong)
    if len(lines) > 1:  # look for the lines that are wrong
        half = len(lines) // 2
        parts = [_load(own, source, base) for own in (lines[:half], lines[half:])]
        rows = [row for _, _, own in parts for row in own]
        return sp.vstack([X for X, _, _ in parts], format="csr"), np.concatenate([y for _, y, _ in parts]), rows
    where = f"Line {lines[0].number} of {source.where}"
    try:
        if wrong:
            raise ValueError(f"{where} {wrong}")
        with naming_file(where, "libsvm"):
            raise cause
    except (ValueError, OSError) as error:
        source.errors.reject(lines[0].row, str(error), lines[0].text.decode(errors="replace").rstrip("\r\n"), cause)
    return sp.csr_matrix((0, _MOST_INDEX)), np.zeros(0), []


def _wrong_columns(X: Any, base: int | None) -> str:
    """Return what is wrong with the numbers of columns; an empty text if nothing is."""
    if base == 1 and len(X.indices) and X.indices.min() == 0:
        return (
            "has a column with the number 0, but columns are numbered from 1 on. Number them so, or give libsvm_base=0 "
            "(--libsvm-base 0)."
        )
    if X.indices.max(initial=0) > MOST_COLUMNS:
        return (
            f"has a column with the number {X.indices.max()}; numbers up to {MOST_COLUMNS} are read. Number the "
            "columns without gaps."
        )
    return ""
