"""CSV files and their relatives as tables, parsed by pyarrow: at once, or a part of the rows at a time."""

import csv
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ._arrow import arrow, values_of
from ._text import OPENERS, Form, encoding_of, look_at, open_bytes, open_lines, peeked, rewritten
from .tables import Source, Table, check_unique, naming_file, naming_file_of, not_encoded

_LONGEST_ROW = 1 << 26  # bytes of a CSV file
_INTEGER = r"^(-?[1-9][0-9]*|0)$"
_NOT_EXACT = r"^(-?0[0-9]+|-0|-?[0-9]{19,})$"  # which would lose characters as integers or numbers
_WITH_COMMA = r"^\s*[-+]?([0-9]+(,[0-9]*)?|,[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_THOUSANDS = r"^\s*[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*$"  # or, with one comma, a number with three decimals
_WITH_POINT = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"


def read_csv(source: Source, preferred: str = ",", form: Form | None = None) -> Iterator[Table]:
    """Yield the tables of a CSV file, or of its lines.

    The first line names the columns. Tabs, semicolons or commas separate cells, as in the first rows; where these do
    not tell, as `preferred` says. An empty cell, and words such as NA and NaN, are missing values. A column has
    numbers, true and false, dates, or else text; the first table decides for the following ones.
    """
    for part in read_csv_parts(source, preferred, form):
        table = Table(source.name, source.where, read_as_missing=part.missing)
        for place, (column, values) in enumerate(part.columns):
            own = f"Column '{column}' of {source.where}"
            if column:
                table.columns[column] = values_of(values, own, "CSV", column in source.exact)
            elif place == 0:  # names of the rows, or row numbers
                table.index = values_of(values, own, "CSV", True)
        yield table


class CsvPart(NamedTuple):
    """Rows of a CSV file: columns of pyarrow by name, and how many cells of each `na_values` made missing."""

    columns: list[tuple[str, Any]]
    missing: dict[str, int]


def read_csv_parts(source: Source, preferred: str = ",", form: Form | None = None) -> Iterator[CsvPart]:
    """Yield the rows of a CSV file as columns of pyarrow, which have the same kind in all parts."""
    pa, where = arrow(), source.where
    parser = _Parser(source)
    kinds: dict[str, Any] = {}
    for part, lines, shape in _parts(source, preferred, form):
        data, missing = parser.parse(part, lines, shape)
        columns: list[tuple[str, Any]] = []
        for column, values in zip(parser.names, data.columns, strict=True):
            own, exact = f"Column '{column}' of {where}", column in source.exact
            if pa.types.is_binary(values.type):
                raise not_encoded(where, "utf-8", f"column '{column}' has other bytes")
            if not column:
                columns.append((column, values))
                continue
            if exact and kinds.get(column) != "text":
                values = _as_written(values, parser.decimal)
            before, now = kinds.get(column), _kind(values.type)
            late_text = column in kinds and now == "text" and not exact  # an empty column counts as numbers
            if now not in (None, before) and (before or late_text):
                raise ValueError(_other_kind(own, lines, now, before))
            kinds[column] = now or before
            if now and not exact:  # the following tables are parsed as this one, and not by what they happen to have
                parser.types[column] = pa.float64() if now == "numbers" else values.type
            columns.append((column, values))
        yield CsvPart(columns, missing)


def _other_kind(column: str, lines: str, now: str, before: str | None) -> str:
    return (
        f"{column} has {now}{lines}, but {before or 'no value'} in all rows before. Write values of one kind, or leave "
        "the column out by `views` (--views)."
    )


# -- parts of a file
def _parts(source: Source, preferred: str, form: Form | None) -> Iterator[tuple[Any, str, Form]]:
    """Yield a file at once, as its path where pyarrow can read it so, or by parts of `chunk` rows, as bytes."""
    from_path = isinstance(source.data, Path)
    if form is None and from_path:
        form = look_at(source, preferred)
    if source.chunk is None and from_path and form is not None and form.is_plain:
        yield source.data, "", form
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
                yield "".join(lines).encode(), "", form
            return
        for part, place in _cut(lines, source, form.delimiter, first):
            yield part, place, form


def _cut(lines: Iterator[str], source: Source, delimiter: str, first: int) -> Iterator[tuple[bytes, str]]:
    """Cut lines, from number `first` on, into parts of `chunk` rows; cells in quotes may go over several lines."""
    kept: list[str] = []
    rows, start = -1, first  # the names of the columns are not a row

    def passed() -> Iterator[str]:
        for line in lines:
            kept.append(line if line.endswith(("\n", "\r")) else line + "\n")
            yield line

    def part() -> tuple[bytes, str]:
        text = "".join(kept).encode(errors="surrogateescape")  # standard input has these for bytes that are not UTF-8
        return text, f" in lines {start} to {reader.line_num + first - 1}"

    reader = csv.reader(passed(), delimiter=delimiter)
    for row in naming_file_of(reader, source.where, "CSV", (UnicodeDecodeError, EOFError, OSError, csv.Error)):
        rows += bool(row)
        if rows == source.chunk:
            yield part()
            kept.clear()
            rows, start = 0, reader.line_num + first
    if rows > 0 or start == first:
        yield part()


# -- parsing
class _Parser:
    """Parses the parts of one file: knows the names and types of its columns, and its decimal sign."""

    def __init__(self, source: Source):
        self.source = source
        self.names: list[str] = []
        self.decimal = "."
        self.types: dict[str, Any] = dict.fromkeys([*source.texts, *source.exact], arrow().string())

    def parse(self, part: Any, lines: str, form: Form) -> tuple[Any, dict[str, int]]:
        """Return a part of the file as a table of pyarrow, and the cells by column that `na_values` makes missing.

        The first part has the names of the columns.
        """
        known = self.names or None
        data = self._parse(part, lines, form)
        if known is None:
            with naming_file(self.source.where, "CSV"):
                names: list[str] = data.column_names
            check_unique(names, self.source.where)
            if "" in names[1:]:
                warnings.warn(
                    f"{self.source.where} has columns without a name besides the first one: {names[1:].count('')}. "
                    "They are ignored; name them to use them.",
                    stacklevel=7,  # where read_samples is called
                )
            if _has_decimal_commas(data, form.delimiter, self.source):
                self.decimal = ","
                data = self._parse(part, lines, form)
                _refuse_points(data, self.source)
            self.names = names
        if not self.source.na_values:
            return data, {}
        cells = self._read(part, form, known, dict.fromkeys(self.names, arrow().string()), self.source.na_values)
        counts = zip(self.names, [values.null_count for values in cells.columns], strict=True)
        return data, {name: count for name, count in counts if count and name}

    def _parse(self, part: Any, lines: str, form: Form) -> Any:
        where, names = self.source.where, self.names or None
        usual = arrow().csv.ConvertOptions().null_values
        try:
            return self._read(part, form, names, self.types, [*usual, *self.source.na_values])
        except ValueError as error:
            wrong = re.search(r"In CSV column #(\d+): CSV conversion error to .*: invalid (value '.*')", str(error))
            if wrong is None or names is None:
                raise
            name = names[int(wrong[1])]
            now = _other_kind(f"Column '{name}' of {where}", lines, f"the {wrong[2]}", _kind(self.types[name]))
            raise ValueError(now) from error

    def _read(self, part: Any, form: Form, names: Any, types: dict[str, Any], missing: Sequence[str]) -> Any:
        pa = arrow()
        packed = not isinstance(part, bytes) and part.suffix.lower() in OPENERS
        size = len(part) if isinstance(part, bytes) else _LONGEST_ROW if packed else part.stat().st_size
        block = min(max(size, 1 << 20), _LONGEST_ROW)  # pyarrow refuses rows that are longer than a block
        encoding = "utf-8" if isinstance(part, bytes) else encoding_of(self.source).removesuffix("-sig")
        with naming_file(self.source.where, "CSV"):
            return pa.csv.read_csv(
                pa.BufferReader(part) if isinstance(part, bytes) else open_bytes(part) if packed else part,
                read_options=pa.csv.ReadOptions(
                    block_size=block, column_names=names, encoding=encoding, skip_rows=form.skipped
                ),
                parse_options=pa.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    strings_can_be_null=True, column_types=types, null_values=missing, decimal_point=self.decimal
                ),
            )


# -- decimal commas
def _has_decimal_commas(data: Any, delimiter: str, source: Source) -> bool:
    """Tell whether a file writes numbers with decimal commas.

    That is so if a column has a number with a comma in which it cannot separate thousands, such as 0,5, and no cell
    that is not a number. A file whose numbers may be either is refused.
    """
    import pyarrow.compute as pc

    unclear: ValueError | None = None
    clear = False
    for name, column in _columns_of_text(data, source.texts):
        commas = column.filter(pc.match_substring(column, ","))
        if not len(commas):
            continue
        numbers, grouped = (pc.match_substring_regex(column, pattern) for pattern in (_WITH_COMMA, _THOUSANDS))
        if not pc.all(pc.or_(numbers, grouped)).as_py():
            continue  # text
        if pc.all(pc.match_substring_regex(commas, _THOUSANDS)).as_py():
            unclear = ValueError(
                f"Column '{name}' of {source.where} has {commas[0].as_py()!r}, for example: the comma may separate "
                "thousands or decimals. Write its numbers without commas, with a point before the decimals."
            )
            if delimiter == "," or pc.any(pc.greater(pc.count_substring(commas, ","), 1)).as_py():
                raise unclear  # thousands
        elif delimiter != "," and pc.all(numbers).as_py():
            clear = True
    if unclear is not None and not clear:
        raise unclear
    return clear


def _refuse_points(data: Any, source: Source) -> None:
    """Raise if a file with decimal commas has a column of numbers with points, which may separate thousands."""
    import pyarrow.compute as pc

    for name, column in _columns_of_text(data, [*source.texts, *source.exact]):
        if len(column) and pc.all(pc.match_substring_regex(column, _WITH_POINT)).as_py():
            cell = column.filter(pc.match_substring(column, "."))
            raise ValueError(
                f"Column '{name}' of {source.where} has {cell[0].as_py()!r}, for example, while other columns have "
                "decimal commas. Write all numbers of the file in one way."
            )


def _columns_of_text(data: Any, texts: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the columns of text by name, without missing cells, except those that have text on purpose."""
    import pyarrow as pa

    known = set(texts)
    for name, column in zip(data.column_names, data.columns, strict=True):
        if pa.types.is_string(column.type) and name and name not in known:
            yield name, column.drop_null()


def _as_written(column: Any, decimal: str) -> Any:
    """Return text as integers, numbers, or true and false, if no value loses characters by that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def matches(pattern: str) -> Any:
        return pc.match_substring_regex(column, pattern)

    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    if decimal == "," and pc.all(matches(_WITH_COMMA)).as_py():
        column = pc.replace_substring(column, ",", ".")
    if pc.any(matches(_NOT_EXACT)).as_py():
        return column
    try:
        return column.cast(pa.int64() if pc.all(matches(_INTEGER)).as_py() else pa.float64())
    except pa.ArrowInvalid:
        return column.cast(pa.bool_()) if pc.all(matches(r"^(?i:true|false)$")).as_py() else column


def _kind(arrow_type: Any) -> str | None:
    """Return what a column of a CSV file has, in words; None if it has no value yet."""
    name = str(arrow_type)
    words = {"null": None, "int64": "numbers", "double": "numbers", "bool": "true or false", "string": "text"}
    return words.get(name, name)
