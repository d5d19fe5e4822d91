"""Rows of CSV files as text: cut where they end, with as many cells as there are columns, and with their places."""

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from ._text import NUMBER, Form, lines_before_damage, look_at, open_lines, other_bytes, peeked, rewritten
from .tables import Source, naming_file


@dataclass
class CsvRows:
    """Rows as text, each of which may go over several lines, with their places."""

    texts: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # from 0
    numbers: list[int] = field(default_factory=list)  # of their first lines, from 1

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, texts: list[str], row: int, number: int) -> None:
        """Add rows of one line each that follow one another, from a row and a line on."""
        self.texts += [text if text.endswith(("\n", "\r")) else text + "\n" for text in texts]
        self.rows += range(row, row + len(texts))
        self.numbers += range(number, number + len(texts))

    def joined(self, others: "CsvRows") -> "CsvRows":
        """Return these rows, and others after them."""
        return CsvRows(self.texts + others.texts, self.rows + others.rows, self.numbers + others.numbers)

    def chosen(self, places: Iterable[int]) -> "CsvRows":
        """Return some of the rows."""
        kept = CsvRows()
        for k in places:
            kept.add([self.texts[k]], self.rows[k], self.numbers[k])
        return kept


class RowsToParse(NamedTuple):
    """Rows that are parsed at once: a file, text, or records after the line of column names."""

    data: Any  # a path or bytes; None for records
    form: Form
    records: CsvRows | None = None
    header: str = ""
    end: int | None = None

    def encoded(self) -> Any:
        """Return what pyarrow reads; standard input has surrogates for bytes that are not UTF-8."""
        if self.records is None:
            return self.data
        return "".join([self.header, *self.records.texts]).encode(errors="surrogateescape")

    def place(self, k: int) -> str:
        """Return where a row is, for messages."""
        return "" if self.records is None else f" in line {self.records.numbers[k]}"

    def reject(self, k: int, error: str, source: Source, cause: Exception | None = None) -> None:
        """Raise the error of a row, or leave it out."""
        if self.records is None:
            raise ValueError(error) from cause
        source.errors.reject(self.records.rows[k], error, self.records.texts[k].rstrip("\r\n"), cause)

    def without(self, wrong: dict[int, str], source: Source) -> "RowsToParse":
        """Return the part without the rows that are wrong, if such rows are left out."""
        for k in sorted(wrong):
            self.reject(k, wrong[k], source)
        records = self.records or CsvRows()
        return self._replace(records=records.chosen(k for k in range(len(records)) if k not in wrong))


def parts_of_csv(source: Source, preferred: str, form: Form | None) -> Iterator[RowsToParse]:
    """Yield a file at once, as its path where pyarrow can read it so, or by parts of `chunk` rows."""
    from_path = isinstance(source.data, Path)
    if form is None and from_path:
        form = look_at(source, preferred)
    if source.chunk is None and from_path and form is not None and form.is_plain:
        yield RowsToParse(source.data, form)
        return
    with open_lines(source) as lines:
        if form is None:
            form, lines = peeked(lines, source.where, preferred)
        lines = islice(lines, form.skipped, None)
        first, form = form.skipped + 1, form._replace(skipped=0)
        if not form.is_plain:
            lines, form = rewritten(lines, form), Form(",")
        if source.chunk is None:
            with naming_file(source.where, "CSV"):
                yield RowsToParse("".join(lines).encode(), form)
            return
        yield from _cut(lines, source, form, first)


def _cut(lines: Iterator[str], source: Source, form: Form, first: int) -> Iterator[RowsToParse]:
    """Cut lines, from number `first` on, into parts of `chunk` rows."""
    damage = (UnicodeError, EOFError, OSError, csv.Error)
    reader = _RowReader(lines, form.delimiter, source, first)
    chunk, taught = source.chunk or 1, False
    while True:
        with naming_file(source.where, "CSV", damage):
            while taught and reader.row < source.start:
                if not reader.take(min(chunk, source.start - reader.row)):
                    return
            records = reader.take(chunk)
        if not records and taught:
            return
        yield RowsToParse(None, form, records, reader.header, reader.row)
        reader.header, taught = "", True


class _RowReader:
    """Cuts lines into the names of the columns and rows; cells in quotes may go over several lines.

    A row must have as many cells as there are names. Where rows are left out, a quote that does not end costs one line.
    """

    def __init__(self, lines: Iterator[str], delimiter: str, source: Source, first: int):
        self.lines, self.delimiter, self.source = lines, delimiter, source
        self.row, self.number = 0, first - 1  # rows and lines so far
        self.width = 0
        self.header = ""  # the line of column names, if it comes before the rows that were taken last
        self.names: list[str] = []  # of columns, except for numbers, the longest ones first
        self.waiting: deque[str] = deque()  # lines that were read ahead
        self.damage: Exception | None = None  # what is raised after the rows before it

    def _take_names(self, text: str) -> None:
        cells = next(csv.reader(text.splitlines(keepends=True), delimiter=self.delimiter))
        self.header, self.width = text, len(cells)
        self.names = sorted({name for name in cells if name and not NUMBER.fullmatch(name)}, key=len, reverse=True)

    def _is_header(self, line: str) -> bool:
        """Tell whether a line names columns again, as in files that were joined: it has most of their names."""
        if not any(name in line for name in self.names[:2]):
            return False
        cells = (cell.strip('"') for cell in line.rstrip("\r\n").split(self.delimiter))
        n_named = len(set(self.names).intersection(cells))
        return n_named > 1 and 2 * n_named > len(self.names)

    def take(self, n: int) -> CsvRows:
        """Return the next n rows, or those that are left; an error is raised after the rows before it."""
        if self.damage is not None:
            raise self.damage
        found = CsvRows()
        while len(found) < n and self.damage is None:
            batch, self.damage = lines_before_damage(chain(_drained(self.waiting), self.lines), n - len(found))
            if not batch:
                break
            if self._add_plain(found, batch):
                continue
            self.waiting.extendleft(reversed(batch))
            try:
                for _ in range(len(batch)):
                    if not self.waiting or not self._add_row(found):
                        break
            except (ValueError, EOFError, OSError, csv.Error) as error:
                self.damage = error
            if found and self.waiting and self._is_header(self.waiting[0]):
                break
        if self.damage is not None and not found:
            raise self.damage
        return found

    def _add_plain(self, found: CsvRows, batch: list[str]) -> bool:
        """Add lines that are a row each; return False, and add none, if they have quotes, blanks or other cells."""
        text = "".join(batch)
        if '"' in text or not all(map(str.strip, batch)):
            return False
        if any(name in text for name in self.names[:2]) and any(map(self._is_header, batch)):
            return False
        if set(map(methodcaller("count", self.delimiter), batch)) != {self.width - 1}:
            return False
        if self.source.errors.skip and other_bytes(text):
            return False
        found.add(batch, self.row, self.number + 1)
        self.row, self.number = self.row + len(batch), self.number + len(batch)
        return True

    def _add_row(self, found: CsvRows) -> bool:
        """Add the next row, if it can be read; return False if there is no line."""
        kept: list[str] = []
        line = next(self._following(kept), None)
        if line is None:
            return False
        if self.width and self._is_header(line):
            if found:  # rows up to it have the names before
                self.waiting.appendleft(line)
                return False
            self.number += 1
            self._take_names(line)
            return True
        skip, broken = self.source.errors.skip and self.width > 0, None
        cells = line.count(self.delimiter) + 1 if line.strip("\r\n") else 0
        if '"' in line:
            try:
                cells = len(next(csv.reader(chain([line], self._following(kept)), delimiter=self.delimiter)))
            except csv.Error as error:
                if not skip:
                    raise
                broken = str(error)
        if self.width and cells not in (0, self.width) and broken is None:
            broken = f"Expected {self.width} columns, got {cells}: {line.strip()[:80]!r}. Write one cell per column"
        if broken and skip:
            self.waiting.extendleft(reversed(kept[1:]))
            del kept[1:]
        text, number = "".join(kept), self.number + 1
        self.number += len(kept)
        if not broken and skip and other_bytes(text):
            broken = "it is not encoded in UTF-8"
        if broken:
            wrong = f"{self.source.where} cannot be read as CSV: CSV parse error in line {number}: {broken}."
            wrong = "".join(sign if sign.isprintable() else " " for sign in wrong)
            self.source.errors.reject(self.row, wrong, text.rstrip("\r\n"))
        elif cells and not self.width:
            self._take_names(text)
            return True
        elif cells:
            found.add([text], self.row, number)
        self.row += bool(cells or broken)
        return True

    def _following(self, kept: list[str]) -> Iterator[str]:
        """Yield the lines that follow, and keep them."""
        for line in chain(_drained(self.waiting), self.lines):
            kept.append(line if line.endswith(("\n", "\r")) else line + "\n")
            yield line


def _drained(waiting: deque[str]) -> Iterator[str]:
    while waiting:
        yield waiting.popleft()
