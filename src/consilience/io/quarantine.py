"""Rows of a stream that cannot be used: named in an error, or left out, counted and written to a file."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

from .writing import append_whole, check_output, naming_output

__all__ = ["Quarantine"]

_LONGEST = 10_000  # characters of a row that are written
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Quarantine:
    """Rows of a stream that were left out: counted, and appended to a file of JSON lines.

    Each line is an object with the keys ``row``, the number of the row in the stream counted from 0, ``error``, a
    sentence, and ``content``, the row as text or null. Every line is written at once, so that none is lost if the
    process ends.

    Parameters
    ----------
    path : path, optional
        File to append to. It is created with the first row. Default: rows are only counted.

    Attributes
    ----------
    count : int
        Number of rows left out since the object was made.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience.io import Quarantine
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bad.jsonl"
    ...     with Quarantine(path) as quarantine:
    ...         quarantine.add(7, "Line 8 of 'log.jsonl' is not JSON.", '{"a": ')
    ...     quarantine.count, path.read_text().startswith('{"row": 7, "error": "Line 8')
    (1, True)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        self.path = None if path is None else Path(path)
        self.count = 0
        self.start = 0  # rows before it were left out by a run that this one continues
        self._handle: int | None = None
        if self.path is not None:
            check_output(self.path)  # before the stream is read

    def add(self, row: int, error: str, content: Any = None) -> None:
        """Count a row and write it.

        Parameters
        ----------
        row : int
            Number of the row in the stream, counted from 0.
        error : str
            Why the row is left out, as a sentence.
        content : object, optional
            The row: text, or another value, which is written as JSON where that is possible and else as text.
        """
        self.count += 1
        if self.path is None:
            return
        content = content[:_LONGEST] if isinstance(content, str) else content
        record = {"row": int(row), "error": str(error), "content": content}
        line = json.dumps(record, ensure_ascii=False, default=str, skipkeys=True) + "\n"
        with naming_output(self.path):
            if self._handle is None:
                self._handle = os.open(self.path, _APPEND, 0o666)
            append_whole(self._handle, line.encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close the file; a later row opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> "Quarantine":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RowErrors:
    """What happens to rows that cannot be read: the first one stops the reader, or all of them are left out.

    Parameters
    ----------
    quarantine : Quarantine, optional
        Where rows are left out. Default: a row that cannot be read is an error.
    start : int, default=0
        First row that counts. Rows before it are read only to learn the kinds of the columns.
    """

    def __init__(self, quarantine: Quarantine | None = None, start: int = 0):
        self.quarantine, self.start = quarantine, start
        self.count = 0
        self.last = -1  # the last row that was left out

    @property
    def skip(self) -> bool:
        """Whether rows are left out."""
        return self.quarantine is not None

    def reject(self, row: int, error: str, content: Any = None, cause: BaseException | None = None) -> None:
        """Raise the error of a row, or leave the row out."""
        if self.quarantine is None:
            raise ValueError(error) from cause
        self.last = max(self.last, row)
        if row >= max(self.start, self.quarantine.start):
            self.count += 1
            self.quarantine.add(row, error, content)

    def tell(self, where: str) -> None:
        """Warn how many rows were left out."""
        if self.count and self.quarantine is not None:
            path = self.quarantine.path
            place = "Name a file by `quarantine` (--quarantine) to see them" if path is None else f"See '{path}'"
            what = "row cannot be read and is" if self.count == 1 else "rows cannot be read and are"
            warnings.warn(f"{self.count} {what} left out of {where}. {place}.", stacklevel=2)
