"""Streams of samples from arrays, iterators and files: Parquet, CSV, libsvm, JSON lines."""

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from ..views._tables import by_prefix
from ..views.container import Views, as_views

_PIECE = 1 << 22  # bytes of a libsvm file read at a time
_MOST_COLUMNS = 1 << 26  # of a libsvm file: a vector of so many numbers takes half a gigabyte
_WHOLE = re.compile(r"-?[0-9]{1,4000}")  # Python refuses to read longer ones
_WORDS = {"true": 1.0, "false": 0.0}  # numbers that CSV writes in letters


def read_stream(
    stream: Any, y: Any = None, *, target: str = "y", views: Any = None, chunk: int = 4096
) -> Iterator[tuple[Any, Any]]:
    """Read a stream as pairs: of Views and labels by chunks, or of one sample (a dict of rows) and its label.

    Parameters
    ----------
    stream : Views, arrays, iterator or path
        As `progressive_validation` takes it.
    y : array-like of shape (n_samples,), optional
        The classes, where `stream` has the samples alone.
    target : str, default="y"
        The column or key of the class in a file.
    views : dict, list or "prefix", optional
        How columns are divided into views.
    chunk : int, default=4096
        Samples read at a time.

    Yields
    ------
    (Views, array) or (dict, object)
        Samples and their classes.

    Examples
    --------
    >>> from consilience.evaluation.progressive import read_stream
    >>> [(len(X), len(labels)) for X, labels in read_stream([[1.0], [2.0], [3.0]], [0, 1, 0], chunk=2)]
    [(2, 2), (1, 1)]
    """
    if isinstance(stream, (str, os.PathLike)):
        if y is not None:
            raise ValueError("A file brings its own classes; name their column by `target`, and give no y.")
        yield from _read_file(Path(stream), target, views, chunk)
    elif y is not None:
        X = as_views(stream, None if isinstance(stream, Views) else views)
        labels = y if isinstance(y, (list, np.ndarray)) else y.to_numpy() if hasattr(y, "to_numpy") else list(y)
        if len(labels) != len(X):
            raise ValueError(f"The stream has {len(X)} samples and y has {len(labels)}; they must agree.")
        for start in range(0, len(X), chunk):
            yield X[start : start + chunk], labels[start : start + chunk]
    elif isinstance(stream, Views) or hasattr(stream, "shape"):
        raise ValueError("The stream has samples alone; give their classes by y.")
    else:
        yield from _read_pairs(stream, views)


def _read_pairs(stream: Iterable[Any], views: Any) -> Iterator[tuple[Any, Any]]:
    for number, pair in enumerate(stream):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(f"Item {number} of the stream is no pair of views and a label; got {type(pair).__name__}.")
        X, labels = pair
        if (labels is None or np.ndim(labels) == 0) and isinstance(X, Views):
            yield X, [labels]
        elif labels is None or np.ndim(labels) == 0:
            yield X if isinstance(X, Mapping) else {"view0": X}, labels
        else:
            X = X if isinstance(X, Views) else as_views(X, None if isinstance(X, Mapping) else views)
            yield X, labels if hasattr(labels, "dtype") else list(labels)


def _read_file(path: Path, target: str, views: Any, chunk: int) -> Iterator[tuple[Views, Any]]:
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder '{path}'.")
    layout = _Layout(views)
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise FileNotFoundError(f"The folder '{path}' has no .parquet file.")
        for file in files:
            yield from _read_parquet(file, target, layout, chunk)
        return
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        yield from _read_parquet(path, target, layout, chunk)
    elif kind in (".jsonl", ".ndjson"):
        yield from _read_json(path, target, views, chunk)
    elif kind in (".csv", ".tsv"):
        with path.open(encoding="utf-8-sig", newline="") as text:
            comma = "\t" if kind == ".tsv" else ","
            yield from read_csv_lines(text, f"'{path.name}'", target=target, views=views, chunk=chunk, delimiter=comma)
    elif kind in (".libsvm", ".svm", ".svmlight", ".txt"):
        yield from _read_libsvm(path, views, chunk)
    else:
        raise ValueError(
            f"'{path.name}' is none of .parquet, .csv, .tsv, .jsonl, .ndjson, .libsvm, .svm, .svmlight, .txt."
        )


def _read_parquet(path: Path, target: str, layout: "_Layout", chunk: int) -> Iterator[tuple[Views, Any]]:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need the package pyarrow: pip install 'consilience[frames]'.") from error
    where = f"'{path.name}'"
    with naming_file(where, "Parquet"):
        file = pq.ParquetFile(path)
    with file:
        names = file.schema_arrow.names
        check_unique(names, where)
        if target not in names:
            raise ValueError(f"{where} has no column '{target}'; name that of the class by `target` (--target).")
        layout.expect(_number_columns(file.schema_arrow, target))
        for part in _named(_batches(file, chunk), where, "Parquet"):
            columns = {name: values for name, values in part.items() if not is_row_number(name)}
            labels = columns.pop(target)
            yield layout.views(columns, where, fixed=True), labels


def _batches(file: Any, chunk: int) -> Iterator[dict[str, list[Any]]]:
    for batch in file.iter_batches(batch_size=chunk):
        values = (column.to_pylist() for column in batch.columns)
        yield dict(zip(batch.schema.names, values, strict=True))


def _number_columns(schema: Any, target: str) -> list[str]:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    fields = [field for field in schema if field.name != target and not is_row_number(field.name)]
    return [field.name for field in fields if any(test(field.type) for test in tests)]


# -- what all files have in common
@contextmanager
def naming_file(where: str, kind: str, errors: Any = Exception) -> Iterator[None]:
    """Make one sentence with the file's name of whatever a package raises on a damaged file."""
    try:
        yield
    except ImportError:
        raise
    except errors as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise type(error)(f"{where} cannot be read: {error.strerror}.") from error
        if isinstance(error, UnicodeDecodeError):
            raise ValueError(f"{where} is not encoded in UTF-8: {error.reason}. Save it as UTF-8.") from error
        said = "".join(c if c.isprintable() else " " for c in str(error)[:300])  # no codes that terminals obey
        said = " ".join(said.split()).rstrip(". ") or type(error).__name__
        raise ValueError(f"{where} cannot be read as {kind}: {said}. It may be empty, cut off or damaged.") from error


def _named(items: Iterable[Any], where: str, kind: str, errors: Any = Exception) -> Iterator[Any]:
    """The items of a file that is read step by step, errors with its name."""
    with naming_file(where, kind, errors):
        yield from items


def check_unique(names: Sequence[str], where: str) -> None:
    """Refuse two columns of one name; columns without a name are not among them."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise ValueError(f"{where} has two columns named '{name}'. Rename or remove one of them.")
        seen.add(name)


def is_row_number(name: str) -> bool:
    """Tell the column of row numbers that pandas writes to Parquet or, without a name, to CSV."""
    return not name or name.startswith("__index_level_")


def names_matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that are given themselves or fit a pattern such as ``mfcc_*``, in their own order."""
    given = set(patterns)
    wild = [re.compile(translate(pattern)).match for pattern in given if is_pattern(pattern)]
    return [name for name in names if name in given or any(fits(name) for fits in wild)]


def is_pattern(name: str) -> bool:
    """Tell a pattern from a plain name."""
    return any(sign in name for sign in "*?[")


def load_libsvm(path: Path, **part: Any) -> tuple[Any, np.ndarray]:
    """Read a libsvm file or a part of it. Columns are counted from 1, so that no two files can differ by a shift."""
    where = f"'{path.name}'"
    try:
        with naming_file(where, "libsvm"):
            X, y = load_svmlight_file(str(path), zero_based=False, **part)
    except ValueError as error:
        if "Invalid index 0 " in str(error.__cause__):
            raise ValueError(
                f"{where} has a column with the number 0; libsvm files number columns from 1 on. Add 1 to all column "
                "numbers; in scikit-learn: dump_svmlight_file(..., zero_based=False)."
            ) from error
        raise
    last = int(X.indices.max(initial=0)) + 1
    if last > _MOST_COLUMNS:
        raise ValueError(
            f"{where} has a column with the number {last}; numbers up to {_MOST_COLUMNS} are read. Number the columns "
            "from 1 on, without gaps."
        )
    return X, y


def _read_json(path: Path, target: str, views: Any, chunk: int) -> Iterator[tuple[Views, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        yield from read_json_lines(file, f"'{path.name}'", target=target, views=views, chunk=chunk)


def read_json_lines(
    lines: Iterable[str], where: str, *, target: str = "y", views: Any = None, chunk: int = 64
) -> Iterator[tuple[Views, list[Any]]]:
    """Read samples from lines of JSON, such as those of standard input.

    Parameters
    ----------
    lines : iterable of str
        An object a line: views as lists, strings, or numbers by column.
    where : str
        What the lines are of, for messages.
    target : str, default="y"
        The key of the class.
    views : dict, "prefix" or None
        How columns of numbers are divided.
    chunk : int, default=64
        Lines read at a time.

    Yields
    ------
    (Views, list)
        Samples and their classes.

    Examples
    --------
    >>> from consilience.evaluation.progressive import read_json_lines
    >>> lines = ['{"audio": [1, 2], "y": "a"}', '{"audio": [3, 4], "y": "b"}']
    >>> [(X.names, y) for X, y in read_json_lines(lines, "example")]
    [(('audio',), ['a', 'b'])]
    """
    layout, records = _Layout(views), []
    for number, line in enumerate(_named(lines, where, "JSON lines", UnicodeDecodeError), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"Line {number} of {where} is no JSON: {error}.") from error
        if not isinstance(record, dict) or target not in record:
            raise ValueError(f"Line {number} of {where} is no object with the key '{target}'.")
        records.append(record)
        if len(records) == chunk:
            yield _from_records(records, target, layout, where)
            records = []
    if records:
        yield _from_records(records, target, layout, where)


def _from_records(records: list[dict[str, Any]], target: str, layout: "_Layout", where: str) -> tuple[Views, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record if name != target)
    columns = {name: [record.get(name) for record in records] for name in names}
    return layout.views(columns, where, fixed=False), [record[target] for record in records]


def read_csv_lines(
    lines: Iterable[str], where: str, *, target: str = "y", views: Any = None, chunk: int = 64, delimiter: str = ","
) -> Iterator[tuple[Views, list[Any]]]:
    """Read samples from lines of CSV, the first of which names the columns; an empty cell is a missing value.

    The first chunk tells columns of numbers from columns of strings, and classes that are numbers from others.

    Parameters
    ----------
    lines : iterable of str
        The lines, such as those of standard input.
    where : str
        What the lines are of, for messages.
    target : str, default="y"
        The column of the class.
    views : dict, "prefix" or None
        How columns of numbers are divided.
    chunk : int, default=64
        Rows read at a time.
    delimiter : str, default=","
        What stands between cells.

    Yields
    ------
    (Views, list)
        Samples and their classes.

    Examples
    --------
    >>> from consilience.evaluation.progressive import read_csv_lines
    >>> lines = ["sound__a,sound__b,size__m2,y", "1,2,20,a", "3,4,,b"]
    >>> [(X.names, y) for X, y in read_csv_lines(lines, "example")]
    [(('sound', 'size'), ['a', 'b'])]
    """
    reader = csv.reader(lines, delimiter=delimiter)
    rows = (row for row in _named(reader, where, "CSV", (UnicodeDecodeError, csv.Error)) if row)
    names = next(rows, None)
    if not names:
        raise ValueError(f"{where} is empty; its first line names the columns.")
    if target not in names:
        raise ValueError(f"{where} has no column '{target}' for the class; name that by `target` (--target).")
    check_unique(names, where)
    layout, texts, of_class = _Layout(views), set[str](), None
    first = True
    while part := list(islice(rows, chunk)):
        for row in part:
            if len(row) != len(names):
                raise ValueError(
                    f"{where} has a row of {len(row)} cells near line {reader.line_num}, not {len(names)}."
                )
        cells = dict(zip(names, zip(*part, strict=True), strict=True))
        cells.pop("", None)  # row numbers that pandas wrote
        labels = cells.pop(target)
        if first:
            texts = {name for name, values in cells.items() if not all(_is_number(v) for v in values if v)}
            plain = [name for name in cells if name not in texts]
            layout.numbers = _divided(plain, views) if plain else {}
            first = False
        if of_class is None and any(labels):
            of_class = _class_of([label for label in labels if label])
        columns = {
            name: [v or None for v in values] if name in texts else _numbers(values, name, where, reader.line_num)
            for name, values in cells.items()
        }
        yield layout.views(columns, where, fixed=True), [_label(v, of_class, where, reader.line_num) for v in labels]


def _class_of(labels: Sequence[str]) -> Any:
    """Whether classes are whole numbers as they are written (01 is none), other numbers, or strings."""
    whole = [label for label in labels if _WHOLE.fullmatch(label)]
    if any(str(int(label)) != label for label in whole):
        return str
    numbers = all(_is_number(label) and label.lower() not in _WORDS for label in labels)
    return int if len(whole) == len(labels) else float if numbers else str


def _label(cell: str, of_class: Any, where: str, line: int) -> Any:
    if not cell:
        return None  # no class: the sample is passed over
    if of_class is str or _class_of([cell]) in (int, of_class):
        return of_class(cell)
    kind = "whole numbers" if of_class is int else "numbers"
    raise ValueError(f"{where} has the class '{cell}' near line {line}; those before are {kind}.")


def _numbers(cells: Iterable[str], name: str, where: str, line: int) -> list[float | None]:
    try:
        return [None if not cell else _WORDS[cell.lower()] if cell.lower() in _WORDS else float(cell) for cell in cells]
    except ValueError as error:
        raise ValueError(
            f"Column '{name}' of {where} was empty or held numbers, and near line {line} it holds something else: "
            f"{error}."
        ) from error


def _is_number(cell: str) -> bool:
    if "_" in cell:
        return False
    try:
        float(cell)
    except ValueError:
        return cell.lower() in _WORDS
    return True


class _Layout:
    """Which columns of a file make which view: those of lists or strings each one, those of numbers as `views` says.

    Numbers are divided by prefixes where all names have them, else they are one view. The first chunk with numbers
    settles their columns; later only whole new views may come.
    """

    def __init__(self, views: Any):
        self.given = views
        self.numbers: dict[str, list[str]] | None = None

    def expect(self, names: list[str]) -> None:
        """Say which columns hold numbers, before the first chunk is read."""
        if self.numbers is None and names:
            self.numbers = _divided(names, self.given)

    def views(self, columns: Mapping[str, list[Any]], where: str, *, fixed: bool) -> Views:
        """A chunk as Views; where columns are `fixed`, those asked for must be there, else a view may be absent."""
        whole = {n: v for n, v in columns.items() if any(isinstance(x, (list, str)) for x in v)}
        plain = [n for n, values in columns.items() if n not in whole and any(x is not None for x in values)]
        if isinstance(self.given, Mapping):
            for view, chosen in self.given.items():
                unknown = [name for name in chosen if name not in columns]
                lost = [name for name in unknown if not (is_pattern(name) and names_matching(columns, [name]))]
                if lost and (len(lost) < len(chosen) or fixed):
                    raise ValueError(f"`views` names the column '{lost[0]}' of '{view}', which {where} has not.")
        for name in plain if not isinstance(self.given, Mapping) else ():
            if not _are_numbers([next(value for value in columns[name] if value is not None)]):
                raise ValueError(
                    f"Column '{name}' of {where} holds neither numbers nor strings. Make some of it, or leave it out "
                    "by `views` (--views)."
                )
        self._settle(plain, where)
        found: dict[str, Any] = dict(whole)
        n = len(next(iter(columns.values()), []))
        for view, chosen in (self.numbers or {}).items():
            if any(name in columns for name in chosen):
                table = [[np.nan if x is None else x for x in columns.get(name, [None] * n)] for name in chosen]
                found[view] = _table(table, chosen, where)
        read = Views(found)
        names = {view: tuple(chosen) for view, chosen in (self.numbers or {}).items() if view in found}
        return Views._of({name: read.block(name) for name in read.names}, len(read), read.mask, names)

    def _settle(self, plain: list[str], where: str) -> None:
        """Take columns of numbers that come for the first time: all at first, later those of views that are new."""
        if self.numbers is None:
            self.numbers = _divided(plain, self.given) if plain else None
            return
        known = {name for chosen in self.numbers.values() for name in chosen}
        new = [name for name in plain if name not in known]
        if not new or isinstance(self.given, Mapping):
            return
        late = by_prefix(new) if all("__" in name for name in new) else {}
        if not late or set(late) & set(self.numbers):
            raise ValueError(f"{where} has a column '{new[0]}' that it did not have before; all rows have the same.")
        self.numbers.update(late)


def _table(columns: list[list[Any]], names: Sequence[str], where: str) -> np.ndarray:
    try:
        return np.array(columns, dtype=np.float64).T
    except (TypeError, ValueError, OverflowError) as error:
        odd = next((n for n, values in zip(names, columns, strict=True) if not _are_numbers(values)), names[0])
        raise ValueError(
            f"Column '{odd}' of {where} holds something else than numbers: {str(error).rstrip('.')}. Make numbers of "
            "it, or leave it out by `views` (--views)."
        ) from error


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, (int, float, np.number, Decimal)) for value in values)


def _divided(names: list[str], views: Any) -> dict[str, list[str]]:
    if isinstance(views, Mapping):
        return {view: names_matching(names, chosen) or list(chosen) for view, chosen in views.items()}
    if views == "prefix" or (views is None and all("__" in name for name in names)):
        return by_prefix(names)
    if views is not None:
        raise ValueError(f"`views` of a file is a dict of view -> columns, 'prefix' or None; got {views!r}.")
    return {"view0": names}


def _read_libsvm(path: Path, views: Any, chunk: int) -> Iterator[tuple[Views, Any]]:
    if views is not None and not isinstance(views, Mapping):
        raise ValueError(f"`views` of a libsvm file is a dict of view -> slice of columns, or None; got {views!r}.")
    size = path.stat().st_size
    pieces = [(offset, min(_PIECE, size - offset)) for offset in range(0, size, _PIECE)]
    width, most = 1, np.iinfo(np.int32).max
    for offset, length in pieces:  # the columns of all rows, before the first is learned
        X, _ = load_libsvm(path, n_features=most, offset=offset, length=length)
        width = max(width, int(X.indices.max(initial=0)) + 1)
    for offset, length in pieces:
        X, y = load_libsvm(path, n_features=width, offset=offset, length=length)
        for start in range(0, len(y), chunk):
            yield as_views(X[start : start + chunk], views), y[start : start + chunk]
