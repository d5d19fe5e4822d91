"""Text files as people have them: packed or not, in any encoding, with one of several separators."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from .._backend import available_memory, size_text
from .tables import Source, naming_file, not_encoded

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MARKS = {  # UTF-32 first, because its mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig",
}  # fmt: skip
_LOOK = 6  # rows of a file that tell its separator
_WORDS = {"\t": "tabs", ";": "semicolons", ",": "commas", " ": "blanks"}
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


# -- bytes and lines
def open_bytes(path: Path, *, whole: bool = False) -> Any:
    """Open a file for reading, unpacked if its name ends in .gz, .bz2 or .xz.

    A packed file that is read as a whole must fit into memory: a few bytes may unpack to any number.
    """
    if path.suffix.lower() not in OPENERS:
        return path.open("rb")
    file = OPENERS[path.suffix.lower()](path, "rb")
    return io.BufferedReader(_Limited(file, f"'{path.name}'"), 1 << 18) if whole else file


class _Limited(io.RawIOBase):
    """The bytes that a packed file unpacks to, no more of them than there is memory."""

    def __init__(self, file: Any, where: str):
        self._file, self._where = file, where
        self._most, self._read = available_memory(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self._file.readinto(buffer)
        self._read += n
        if self._read > self._most:
            raise MemoryError(
                f"{self._where} unpacks to more than {size_text(self._most)}, the memory that is available. If it is "
                "what you expect, read it in parts by `read_blocks` or `read_stream`."
            )
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def encoding_of(source: Source) -> str:
    """Return the encoding of a text file: that of its byte order mark, else the one given, else UTF-8."""
    given = source.encoding or "utf-8"
    try:
        "a".encode(given)
    except LookupError as error:
        raise ValueError(
            f"There is no encoding '{given}'. Name one that Python knows, such as cp1252, latin-1 or utf-16."
        ) from error
    with naming_file(source.where, "text"), open_bytes(source.data) as file:
        start = file.read(64)
    found = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if found is None and source.encoding is None and b"\0" in start:  # which UTF-8 would take for letters
        raise not_encoded(source.where, given, "it has bytes that are zero, as UTF-16 has")
    return found or given


@contextmanager
def open_lines(source: Source) -> Iterator[Iterator[str]]:
    """Open the lines of a text file; those of a source that has lines are returned as they are."""
    if not isinstance(source.data, Path):
        yield iter(source.data)
        return
    encoding = encoding_of(source)
    errors = "surrogateescape" if source.errors.skip else "strict"  # a row with other bytes is found later
    whole = source.chunk is None
    with open_bytes(source.data, whole=whole) as file, io.TextIOWrapper(file, encoding, errors, newline="") as lines:
        yield lines


def lines_before_damage(lines: Iterator[str], n: int | None) -> tuple[list[str], Exception | None]:
    """Return the next n lines, or all of them, and the error that came before their end."""
    found: list[str] = []
    try:
        found.extend(islice(lines, n))  # which keeps what came before an error
    except (ValueError, EOFError, OSError) as error:
        return found, error
    return found, None


def other_bytes(line: str) -> bool:
    """Tell whether a line was opened with bytes that are not of its encoding."""
    if line.isascii():
        return False
    try:
        line.encode()
    except UnicodeEncodeError:
        return True
    return False


# -- separators
class Form(NamedTuple):
    """How the cells of a text file are separated."""

    delimiter: str
    skipped: int = 0  # lines before the names of the columns
    short: bool = False  # whether the first column has no place among the names, as in files of R

    @property
    def is_plain(self) -> bool:
        """Whether pyarrow can read the file as it is."""
        return self.delimiter != " " and not self.short


def look_at(source: Source, preferred: str) -> Form:
    """Return how the cells of a file are separated, from its first rows."""
    return form_of(first_lines(source), source.where, preferred)


def first_lines(source: Source) -> list[str]:
    """Return the first lines of a text file that are not blank."""
    with naming_file(source.where, "text"), open_lines(source) as lines:
        return list(islice(_not_blank(lines), _LOOK))


def peeked(lines: Iterator[str], where: str, preferred: str) -> tuple[Form, Iterator[str]]:
    """Return how the cells of lines are separated, from the names of columns and one row, and all lines.

    No more lines are taken, since later ones may come slowly.
    """
    first = list(islice(_not_blank(lines), 2))
    first[:1] = [line.removeprefix("\ufeff") for line in first[:1]]  # the byte order mark of UTF-8
    return form_of(first, where, preferred), chain(first, lines)


def _not_blank(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line.strip())


def form_of(lines: Sequence[str], where: str, preferred: str) -> Form:
    """Return how the cells of lines are separated; `preferred` is what the name of the file says.

    The names of the columns decide. If they have commas and semicolons, the separator is the one that gives all rows
    the same number of cells.
    """
    told = re.fullmatch(r'"?sep=(.)"?\s*', lines[0], re.IGNORECASE) if lines else None
    if told:  # written by spreadsheet programs
        return Form(told[1], 1)
    widths = {sign: [len(row) for row in _first_rows(lines, sign)] for sign in "\t;,"}
    found = [sign for sign, own in widths.items() if own and own[0] > 1]
    if "\t" in found and (preferred != "," or len(set(widths["\t"])) == 1):  # names hardly ever have tabs
        found = ["\t"]
    if len(found) > 1:
        even = [sign for sign in found if len(set(widths[sign])) == 1]
        if len(even) > 1 and len(lines) > 1:
            names = " or ".join(_WORDS[sign] for sign in even)
            raise ValueError(
                f"The cells of {where} may be separated by {names}: {lines[0].strip()[:80]!r}. Write sep={even[0]} (or "
                "another separator) as its first line, or put names with such signs in quotes."
            )
        found = even or ([preferred] if preferred else found)
    sign = found[0] if found else preferred or " "
    return Form(sign, short=_is_short(lines, sign))


def rows_of(lines: Iterable[str], sign: str) -> Iterator[list[str]]:
    """Yield the cells of lines; several blanks separate as one does."""
    if sign == " ":
        lines = (line.strip(" \r\n") for line in lines)
    return (row for row in csv.reader(lines, delimiter=sign, skipinitialspace=sign == " ") if row)


def _first_rows(lines: Sequence[str], sign: str) -> list[list[str]]:
    """Return the cells of the first lines, up to one that is not CSV; its reader gives the reason."""
    rows = []
    with suppress(csv.Error):
        for row in rows_of(lines, sign):
            rows.append(row)
    return rows


def _is_short(lines: Sequence[str], sign: str) -> bool:
    """Tell whether rows have one cell more than there are names, and begin with a name of their own.

    R writes tables so. Rows that begin with a number may as well have a cell too many, and are left to the reader to
    refuse.
    """
    rows = _first_rows(lines, sign)
    if sign not in "\t " or len(rows) < 2:
        return False
    return all(len(row) == len(rows[0]) + 1 and row[-1] and not NUMBER.fullmatch(row[0].strip()) for row in rows[1:])


def rewritten(lines: Iterable[str], form: Form) -> Iterator[str]:
    """Yield lines as CSV with commas; the first column has an empty name where it has none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, row in enumerate(rows_of(lines, form.delimiter)):
        writer.writerow(["", *row] if form.short and not number else row)
        yield out.getvalue()
        out.seek(0)
        out.truncate()


# -- .txt
def is_libsvm(source: Source) -> bool:
    """Tell whether a .txt file is libsvm and not a table; refuse what is neither."""
    first = first_lines(source)
    plain = [line.partition("#")[0].split() for line in first]
    if all(not words or (NUMBER.fullmatch(words[0]) and all(":" in word for word in words[1:])) for words in plain):
        if not first or any(len(words) > 1 for words in plain):
            return True
    else:
        form = form_of(first, source.where, "")
        rows = _first_rows(first[form.skipped :], form.delimiter)
        even = form.short or len({len(row) for row in rows}) == 1
        if rows and even and len(rows[0]) > 1 and not all(NUMBER.fullmatch(cell.strip()) for cell in rows[0]):
            return False
    raise ValueError(
        f"{source.where} is neither a table, with the names of columns in its first line, nor libsvm, with a number "
        f"and column:value in each line. It begins with {first[0].strip()[:80]!r}. Write the names of the columns, or "
        "name the file .csv, .tsv or .libsvm."
    )
