"""CSV files and their relatives as tables, parsed by pyarrow: at once, or a part of the rows at a time."""

import csv
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._arrow import arrow, values_of
from ._csv_rows import CsvRows, RowsToParse, parts_of_csv
from ._text import OPENERS, Form, encoding_of, open_bytes
from .tables import Source, Table, check_unique, naming_file, not_encoded

_LONGEST_ROW = 1 << 26  # bytes of a CSV file
_INTEGER = r"^(-?[1-9][0-9]*|0)$"  # as Python writes integers
_WHOLE = r"^(-?[1-9][0-9]{0,14}|0)[.]0$"  # as Python writes floats
_NOT_EXACT = r"^[-+]?(0[0-9]+|[0-9]{16,})$"  # which would lose characters as floats
_WITH_COMMA = r"^\s*[-+]?([0-9]+(,[0-9]*)?|,[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_THOUSANDS = r"^\s*[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*$"  # or, with one comma, a number with three decimals
_NUMBER = re.compile(r"^\s*[-+]?(([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?|inf|infinity|nan)\s*$", re.IGNORECASE)
_WITH_POINT = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"


def read_csv(source: Source, preferred: str = ",", form: Form | None = None) -> Iterator[Table]:
    """Yield the tables of a CSV file, or of its lines.

    The first line names the columns. Tabs, semicolons or commas separate cells, as in the first rows; where these do
    not tell, as `preferred` says. An empty cell, and words such as NA and NaN, are missing values. A column has
    numbers, true and false, dates, or else text; the first table decides for the following ones.
    """
    for part in read_csv_parts(source, preferred, form):
        table = Table(source.name, source.where, read_as_missing=part.missing, rows=part.rows, end=part.end)
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
    rows: np.ndarray | None = None  # numbers of the rows in the file, from 0
    end: int | None = None  # rows of the file up to the end of the part


def read_csv_parts(source: Source, preferred: str = ",", form: Form | None = None) -> Iterator[CsvPart]:
    """Yield the rows of a CSV file as columns of pyarrow, which have the same kind in all parts."""
    parser = _Parser(source)
    kinds: dict[str, Any] = {}
    for part in parts_of_csv(source, preferred, form):
        if part.header and parser.names:  # columns are named again, in another order or with others
            parser.names = next(csv.reader(part.header.splitlines(keepends=True), delimiter=part.form.delimiter))
            check_unique(parser.names, source.where)
            part = part._replace(header="")
        left: RowsToParse | None = part
        while left is not None and (left.records is None or left.records or not parser.names):
            known = bool(parser.names)
            data, missing, left = parser.parse(left)
            if known and left.records is not None and not left.records:
                continue
            columns, wrong, now = _same_kinds(data, parser, kinds, left)
            if not wrong:
                kinds.update(now)
                rows = None if left.records is None else np.array(left.records.rows, dtype=np.int64)
                yield CsvPart(columns, missing, rows, part.end)
                break
            left = left.without(wrong, source)
        else:  # no row is left
            yield CsvPart([], {}, np.zeros(0, int), part.end)


def _same_kinds(
    data: Any, parser: "_Parser", kinds: dict[str, Any], part: "RowsToParse"
) -> tuple[Any, dict[int, str], Any]:
    """Return the columns of a part, errors by row where a column has another kind than before, and all kinds."""
    pa, source = arrow(), parser.source
    columns: list[tuple[str, Any]] = []
    found: dict[str, Any] = {}
    wrong: dict[int, str] = {}
    for column, values in zip(parser.names, data.columns, strict=True):
        own, exact = f"Column '{column}' of {source.where}", column in source.exact
        if pa.types.is_binary(values.type):
            raise not_encoded(source.where, "utf-8", f"column '{column}' has other bytes")
        if not column:
            columns.append((column, read_target(values, None, parser.decimal)))
            continue
        written = values
        if column in source.targets and kinds.get(column) != "text":
            values = read_target(values, parser.tasks[column], parser.decimal)
            if pa.types.is_floating(values.type) and not is_whole(values):
                parser.tasks[column] = "regression"  # the numbers of a following table may all be whole
        before, now = kinds.get(column), _kind(values.type)
        late_text = column in kinds and now == "text" and not exact  # an empty column counts as numbers
        if now not in (None, before) and (before or late_text):
            for k in _others(written, before, parser.tasks.get(column), parser.decimal):
                wrong.setdefault(k, _other_kind(own, part.place(k), now, before))
            continue
        found[column] = now or before
        if now and not exact:  # the following tables are parsed as this one, and not by what they happen to have
            parser.types[column] = pa.float64() if now == "numbers" else values.type
        columns.append((column, values))
    return columns, wrong, found


def _others(column: Any, kind: str | None, task: str | None, decimal: str) -> list[int]:
    """Return the cells of a column of text that are not of a kind by themselves; all of them if none is."""
    kinds = [_kind(read_target(column.slice(k, 1), task, decimal).type) for k in range(len(column))]
    there = [k for k, own in enumerate(kinds) if own is not None]
    return [k for k in there if kinds[k] != kind] or there


def _other_kind(column: str, place: str, now: str, before: str | None) -> str:
    return (
        f"{column} has {now}{place}, but {before or 'no value'} in all rows before. Write values of one kind, or leave "
        "the column out by `views` (--views)."
    )


# -- parsing
class _Parser:
    """Parses the parts of one file: knows the names and types of its columns, and its decimal sign."""

    def __init__(self, source: Source):
        self.source = source
        self.names: list[str] = []
        self.decimal = "."
        self.tasks = dict(source.targets)
        self.types: dict[str, Any] = dict.fromkeys(["", *source.texts, *source.exact], arrow().string())

    def parse(self, part: RowsToParse) -> tuple[Any, dict[str, int], RowsToParse]:
        """Return a part of the file as a table of pyarrow, the cells by column that `na_values` makes missing, and its
        rows without those that cannot be read.

        The first part has the names of the columns.
        """
        known = self.names or None
        data, part = self._parse(part)
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
            if _has_decimal_commas(data, part.form.delimiter, self.source):
                self.decimal = ","
                data, part = self._parse(part)
                _refuse_points(data, self.source)
            wrong = _unreadable(data, part, self.source)
            if wrong:
                part = part.without(wrong, self.source)
                data, part = self._parse(part)
            self.names = names
        if not self.source.na_values or (part.records is not None and not part.records):
            return data, {}, part
        cells = self._read(part, known, dict.fromkeys(self.names, arrow().string()), self.source.na_values)
        counts = zip(self.names, [values.null_count for values in cells.columns], strict=True)
        return data, {name: count for name, count in counts if count and name}, part

    def _parse(self, part: RowsToParse) -> tuple[Any, RowsToParse]:
        """Return a part as a table, and its rows without those whose cells are not of the type of their column."""
        usual = arrow().csv.ConvertOptions().null_values
        try:
            return self._read(part, self.names or None, self.types, [*usual, *self.source.na_values]), part
        except ValueError as error:
            found = re.search(
                r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to .*: invalid (value '.*')", str(error)
            )
            if found is None or not self.names or part.records is None:
                raise
            if len(part.records) > 1:  # look for the rows that are wrong
                n = len(part.records)
                halves = [part.records.chosen(own) for own in (range(n // 2), range(n // 2, n))]
                first, second = (self._parse(part._replace(records=own))[1].records or CsvRows() for own in halves)
                kept = first.joined(second)
                part = part._replace(records=kept)
                return self._parse(part) if kept else (arrow().table({}), part)
            name = self.names[int(found[1])]
            kind = _kind(self.types[name])
            said = _other_kind(f"Column '{name}' of {self.source.where}", part.place(0), f"the {found[2]}", kind)
            part.reject(0, said, self.source, error)
            return arrow().table({}), part._replace(records=CsvRows())

    def _read(self, part: RowsToParse, names: Any, types: dict[str, Any], missing: Sequence[str]) -> Any:
        pa, form = arrow(), part.form
        data = part.encoded()
        packed = not isinstance(data, bytes) and data.suffix.lower() in OPENERS
        size = len(data) if isinstance(data, bytes) else _LONGEST_ROW if packed else data.stat().st_size
        block = min(max(size, 1 << 20), _LONGEST_ROW)  # pyarrow refuses rows that are longer than a block
        threads = size > 1 << 20  # a thread that outlives a short command would abort it
        encoding = "utf-8" if isinstance(data, bytes) else encoding_of(self.source).removesuffix("-sig")
        with naming_file(self.source.where, "CSV"):
            return pa.csv.read_csv(
                pa.BufferReader(data) if isinstance(data, bytes) else open_bytes(data, whole=True) if packed else data,
                read_options=pa.csv.ReadOptions(
                    block_size=block, column_names=names, encoding=encoding, skip_rows=form.skipped, use_threads=threads
                ),
                parse_options=pa.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    strings_can_be_null=True, column_types=types, null_values=missing, decimal_point=self.decimal
                ),
            )


def _unreadable(data: Any, part: RowsToParse, source: Source) -> dict[int, str]:
    """Return the rows to leave out of the first part because a column of numbers has another cell there."""
    wrong: dict[int, str] = {}
    for name, column in zip(data.column_names, data.columns, strict=True) if source.errors.skip else ():
        if _kind(column.type) == "text" and name and name not in (*source.exact, *source.texts):
            cells = column.to_pylist()
            own = [k for k, cell in enumerate(cells) if cell is not None and not _NUMBER.match(cell)]
            if 0 < len(own) <= (len(cells) - column.null_count) / 2:  # otherwise the column has text
                what = f"Column '{name}' of {source.where}"
                for k in own:
                    said = f"the value {cells[k][:40]!r}"
                    wrong.setdefault(k, _other_kind(what, part.place(k), said, "numbers"))
    return wrong


# -- decimal commas
def _has_decimal_commas(data: Any, delimiter: str, source: Source) -> bool:
    """Tell whether a file writes numbers with decimal commas.

    That is so if a column has a number with a comma in which it cannot separate thousands, such as 0,5, and no cell
    that is not a number. A file whose numbers may be either is refused.
    """
    import pyarrow.compute as pc

    unclear: ValueError | None = None
    clear = False
    for name, column in _columns_of_text(data, {*source.texts, *source.exact} - {*source.targets}):
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


def read_target(column: Any, task: str | None, decimal: str = ".") -> Any:
    """Return the text of a target as numbers, or as true and false.

    For regression, all numbers are. Otherwise integers and whole floats are, if they are written as Python writes them,
    so that no text is lost. Without a task, a number that is not whole makes it regression, unless other text is lost.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def matches(pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())

    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    if matches(r"^(?i:true|false)$"):
        return column.cast(pa.bool_())
    try:
        if matches(_INTEGER) and task != "regression":
            return column.cast(pa.int64())
        comma = decimal == "," and matches(_WITH_COMMA)
        numbers = (pc.replace_substring(column, ",", ".") if comma else column).cast(pa.float64())
    except pa.ArrowInvalid:
        return column
    lost = pc.any(pc.match_substring_regex(column, _NOT_EXACT)).as_py()
    measured = task is None and not lost and not is_whole(numbers)
    return numbers if task == "regression" or measured or matches(_WHOLE) else column


def is_whole(numbers: Any) -> bool:
    """Return whether all numbers of a column are whole."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.equal(numbers, pc.floor(numbers))).as_py())


def _kind(arrow_type: Any) -> str | None:
    """Return what a column of a CSV file has, in words; None if it has no value yet."""
    name = str(arrow_type)
    words = {"null": None, "int64": "numbers", "double": "numbers", "bool": "true or false", "string": "text"}
    return words.get(name, name)
