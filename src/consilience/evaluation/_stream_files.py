"""Files that are written along a stream: complete lines only, cut back to the checkpoint when a stream continues."""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from ..io.writing import append_whole, check_output, csv_lines, naming_output, write_atomically


class LineFile:
    """A file of lines, or an open file object.

    Lines are written by one call of the system each time, so a killed process and a full disk leave complete lines. A
    new stream replaces the file. A stream that continues cuts it to the size that it had at the checkpoint.
    """

    def __init__(self, given: Any, size: int | None = None):
        self._given: Any = given if hasattr(given, "write") else None
        self._handle: int | None = None
        self._path = given
        if self._given is None:
            check_output(Path(given))
            with naming_output(given):
                self._handle = os.open(given, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
                if self._is_regular():
                    cut_file(given, 0 if size is None else size)
                    os.lseek(self._handle, 0, os.SEEK_END)

    def _is_regular(self) -> bool:
        return self._handle is not None and stat.S_ISREG(os.fstat(self._handle).st_mode)

    @property
    def size(self) -> int:
        """Number of bytes; 0 if it is not a regular file."""
        return os.fstat(self._handle).st_size if self._handle is not None and self._is_regular() else 0

    def write(self, text: str) -> None:
        """Write complete lines."""
        if self._handle is None:
            self._given.write(text)
            if hasattr(self._given, "flush"):
                self._given.flush()
            return
        with naming_output(self._path):
            append_whole(self._handle, text.encode())

    def close(self) -> None:
        """Close the file, unless it was given open."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def cut_file(path: Any, size: int) -> None:
    """Cut a file to a size, if it is there and larger."""
    if os.path.isfile(path) and os.path.getsize(path) > size:
        os.truncate(path, size)


def file_size(path: Any) -> int:
    """Return the number of bytes of a file; 0 if there is none, or if it is a device or a pipe."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def last_row(path: Any) -> int | None:
    """Return the row that the last JSON line of a file names; None if there is none."""
    if hasattr(path, "write") or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        file.seek(max(os.path.getsize(path) - (1 << 20), 0))
        lines = file.read().splitlines() or [b""]
    try:
        row = json.loads(lines[-1])["row"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return row if type(row) is int else None


def drop_lines_from(path: Any, position: int, begin: int = 0) -> None:
    """Remove the JSON lines of rows from a position on: they are read again after a checkpoint.

    The first `begin` bytes are lines of other streams, which stay.
    """
    file = Path(path)
    if file.is_file():
        content = file.read_bytes()
        before = content[:begin].count(b"\n")
        lines = list(enumerate(content[begin:].splitlines(keepends=True), before + 1))
        kept = [line for k, line in lines if line.endswith(b"\n") and _row_of(line, k, file) < position]
        if len(kept) < len(lines):
            write_atomically(file, lambda out: out.writelines([content[:begin], *kept]))


def _row_of(line: bytes, k: int, file: Path) -> int:
    try:
        row = json.loads(line)["row"]
    except (ValueError, TypeError, KeyError, RecursionError):
        row = None
    if type(row) is not int:
        raise ValueError(
            f"Line {k} of '{file}' does not name a row of a stream that was left out, so the file cannot be "
            "continued. Remove the line, or name another file by `quarantine` (--quarantine)."
        )
    return row


class PredictionFile:
    """A file with a line per prediction: CSV, or JSON lines for the endings .jsonl and .ndjson."""

    def __init__(self, path: Any, size: int | None = None):
        self._json = Path(path).suffix in (".jsonl", ".ndjson")
        self.file = LineFile(path, size)
        if not self._json and self.file.size == 0:
            self.file.write("row,id,target,prediction,probabilities\n")

    def write(self, rows: Any, names: Any, found: Any) -> None:
        """Write predictions of rows of the stream."""
        classes = None if found.classes is None else found.classes.tolist()
        lines = []
        for i, row in enumerate(rows):
            target, predicted = (_shown(values[i], classes) for values in (found.y, found.predicted))
            shares = None
            if found.probabilities is not None and classes is not None:
                shares = dict(zip(map(str, classes), found.probabilities[i].tolist(), strict=True))
            lines.append((int(row), None if names is None else as_python(names[i]), target, predicted, shares))
        self._write(lines)

    def write_early(self, row: int, name: Any, predicted: Any, shares: dict[Any, float] | None) -> None:
        """Write the prediction of a sample whose target is not known yet."""
        named = None if shares is None else {str(label): share for label, share in shares.items()}
        self._write([(row, name, None, predicted, named)])

    def _write(self, lines: list[tuple[Any, ...]]) -> None:
        text = _json_lines(lines) if self._json else csv_lines([[_csv_cell(v) for v in line] for line in lines])
        self.file.write(text)


def as_python(value: Any) -> Any:
    """Return a value of Python for one of NumPy."""
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any, classes: list[Any] | None) -> Any:
    """Return a target or a prediction as it is shown: a class, a number, or the labels that a sample has."""
    if classes is None:
        return float(value)
    if np.ndim(value):
        return [label for label, there in zip(classes, value, strict=True) if there]
    return classes[value] if value >= 0 else None


def _json_lines(lines: list[tuple[Any, ...]]) -> str:
    names = ("row", "id", "target", "prediction", "probabilities")
    shown = ({k: v for k, v in zip(names, line, strict=True) if v is not None} for line in lines)
    return "".join(json.dumps(line, default=str) + "\n" for line in shown)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str)
    return "" if value is None else value


def json_line(values: dict[str, Any]) -> str:
    """Return a dict as one line of JSON, with null for numbers that are not finite."""
    return json.dumps(_finite(values), default=str, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
