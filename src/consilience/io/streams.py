"""Streams of samples from arrays, iterators and files, by parts of their rows."""

import os
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..views._samples import as_names, in_order_of, sample_text
from ..views.container import Views
from ..views.conversion import as_views
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from . import layout
from ._delimited import read_csv
from ._json_lines import read_json_lines
from .formats import read_tables
from .layout import Part, divide_tables, read_layout, settle_index, take_column, tell_missing_cells, views_with_rows
from .quarantine import Quarantine, RowErrors
from .tables import Source, Table

__all__ = ["StreamReader", "read_stream"]

_SAME = "Give the same columns in all rows."
_VIEW = "view0"  # of columns without a prefix, whatever the names of files are
_NO_LABELS = "The stream has samples alone; give their labels by y."

_Pair = tuple[Any, Any, np.ndarray, int]  # samples, labels, their row numbers, and the rows up to here


class _Columns:
    """Columns of a table besides its views and labels: their names, and what the current table has in them."""

    def __init__(self, ids: str | None = None, weights: str | None = None):
        self.ids, self.weights = ids, weights
        self.rows = np.zeros(0, dtype=np.int64)
        self.heavy: np.ndarray | None = None
        self.labels_alone: deque[tuple[int, Any, Any]] = deque()

    def read_weights(self, table: Table) -> None:
        """Take the column of weights out of a table."""
        if self.weights is not None:
            try:
                self.heavy = np.asarray(take_column([table], self.weights), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"The column '{self.weights}' of {table.where} must hold sample weights.") from error


class StreamReader:
    """Iterator over a stream: pairs of samples and labels, as `read_stream` returns it.

    Attributes
    ----------
    rows : array of int
        Numbers of the rows of the last pair in the stream, counted from 0. Rows that were left out, because they cannot
        be read or have no view, are counted too.
    n_rows : int
        Number of rows of the stream up to the end of the last pair, which is where ``start=`` continues.
    labels_alone : deque of (int, object, object)
        With `ids`, rows that have a label and no view, up to the end of the last pair: number, sample name and label.

    Examples
    --------
    >>> from consilience import read_stream
    >>> reader = read_stream([[1.0], [2.0], [3.0]], [0, 1, 0], chunk=2)
    >>> X, labels = next(reader)
    >>> reader.rows, reader.n_rows
    (array([0, 1]), 2)
    """

    def __init__(self, pairs: Iterator[_Pair], start: int = 0, columns: "_Columns | None" = None):
        self._pairs = pairs
        self._columns = _Columns() if columns is None else columns
        self.rows = np.zeros(0, dtype=np.int64)
        self.n_rows = start
        self.labels_alone = self._columns.labels_alone

    @property
    def weights(self) -> np.ndarray | None:
        """Sample weights of the last pair; None without a column of weights."""
        own = self._columns
        return None if own.heavy is None else own.heavy[np.searchsorted(own.rows, self.rows)]

    def __iter__(self) -> "StreamReader":
        return self

    def __next__(self) -> tuple[Any, Any]:
        while True:
            X, labels, self.rows, n_rows = next(self._pairs)
            self.n_rows = max(self.n_rows, n_rows)
            if X is not None:  # otherwise no row is left of those that were read
                return X, labels

    def close(self) -> None:
        """Close the files of the stream."""
        close = getattr(self._pairs, "close", None)
        if close is not None:
            close()


def read_stream(
    stream: Any,
    y: Any = None,
    *,
    target: str = "y",
    views: Any = None,
    ids: str | None = None,
    weights: str | None = None,
    format: str | None = None,
    chunk: int = 4096,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    objects: Sequence[str] = (),
    libsvm_base: int | None = None,
    task: str | None = None,
    start: int = 0,
    on_error: str = "stop",
    quarantine: Any = None,
) -> StreamReader:
    """Read a stream as pairs: of Views and labels by chunks, or of one sample (a dict of rows) and its label.

    Parameters
    ----------
    stream : Views, arrays, RowBlocks, Dask collections, iterator, path or lines
        Samples with `y`; an iterator of (views, label) for single samples or of (views, labels) for chunks; a file of
        any format that `read_samples` takes, or a folder of Parquet files; or lines of text in `format`.
    y : array-like of shape (n_samples,), optional
        The labels, if `stream` has the samples alone.
    target : str, default="y"
        The column or key of the label in a file or in lines.
    views : dict, list or "prefix", optional
        Columns of each view: of a file or of lines as `read_samples` takes it, of arrays as `as_views` does.
    ids : str, optional
        The column of the sample names in a file or in lines, which is not a feature.
    weights : str, optional
        The column of sample weights in a file or in lines, which is not a feature. The reader's attribute `weights` has
        those of the last pair.
    format : {"jsonl", "csv", "tsv"}, optional
        The format of `stream` if it is an iterable of lines, such as ``sys.stdin``: a JSON object per line with lists,
        strings, numbers or objects by name, or CSV whose first line names the columns.
    chunk : int, default=4096
        Largest number of samples in a pair.
    encoding : str, optional
        Encoding of a text file without a byte order mark, such as ``"cp1252"``. Default: UTF-8.
    na_values : sequence of str, optional
        Cells of a file or of lines to read as missing, such as ``["n.d."]``, besides empty cells and words such as NA,
        NaN and null. A warning at the end says how many cells these are.
    objects : sequence of str, optional
        Columns of lists or maps that stay as they are, whatever the first rows look like: lists of ids, for example.
    libsvm_base : {0, 1}, optional
        Number of the first column of a libsvm file. Default: 0 if any row has a column with the number 0, else 1.
    task : {"classification", "regression"}, optional
        What the target is: text files have classes as text as written, or numbers. By default, the first rows decide as
        in `read_samples`.
    start : int, default=0
        Number of rows at the beginning of the stream to leave out. They are rows of the file: those without a view, and
        those that cannot be read, count too. Files are not parsed up to there. Row groups of Parquet files are not
        read, except for the first one.
    on_error : {"stop", "skip"}, default="stop"
        What happens to a row that cannot be read: a line that is not JSON, a wrong number of cells, text in a column of
        numbers, a list of another length. It raises an error that names its line, or in binary files its row counted
        from 0. Or it is left out, and a warning at the end says how many rows are.
    quarantine : path or Quarantine, optional
        With ``on_error="skip"``, the file of JSON lines to which rows that are left out are appended.

    Returns
    -------
    StreamReader
        Iterator over pairs of samples and labels, (Views, list or array) or (dict, object). Its attribute `rows` has
        the row numbers of the last pair.

    See Also
    --------
    read_samples : Read a file at once; the values are the same.

    Notes
    -----
    Packed files, separators and decimal commas are as in `read_samples`. Only a whole file tells categories from text.
    So a stream of numbers and strings needs `views`, in which a column of strings is a view alone. Columns of
    dictionary strings in Parquet and Arrow files, such as categories of pandas, are views of strings by themselves.

    The first rows decide what lists and maps are, by the rules of `read_samples`; later rows that differ are errors.
    They are read for this purpose even if `start` leaves them out. A file that continues with the same `chunk` is
    therefore read in the same way.

    A column that appears after the first rows is left out with a warning, unless it makes a view that comes late. A
    column that `views` names is missing until it comes. The names of the columns may come again in a CSV file, in
    another order or with others.

    Examples
    --------
    >>> from consilience import read_stream
    >>> parts = read_stream([[1.0], [2.0], [3.0]], [0, 1, 0], chunk=2)
    >>> [(len(X), len(labels)) for X, labels in parts]
    [(2, 2), (1, 1)]
    >>> lines = ['{"audio": [1, 2], "y": "a"}', '{"audio": [3, 4], "y": "b"}']
    >>> [(X.names, labels) for X, labels in read_stream(lines, format="jsonl")]
    [(('audio',), ['a', 'b'])]
    """
    errors = _row_errors(on_error, quarantine, start)
    if isinstance(stream, StreamReader):
        if start:
            raise ValueError("The stream is open already. Give `start` where it is opened by read_stream.")
        return stream
    is_path = isinstance(stream, (str, os.PathLike))
    if format is not None or is_path:
        if y is not None:
            raise ValueError("A file has its own labels; name their column by `target`, and do not give y.")
        exact, columns = [column for column in (target, ids) if column is not None], _Columns(ids, weights)
        options: dict[str, Any] = {
            "name": _VIEW, "chunk": chunk, "exact": exact, "encoding": encoding, "texts": set(_listed(objects)),
            "na_values": _listed(na_values), "start": start, "errors": errors, "libsvm_base": libsvm_base,
            "targets": {target: task},
        }  # fmt: skip
        tables = read_tables(Path(stream), **options) if is_path else _read_lines(stream, str(format), options)
        return StreamReader(_pairs(tables, target, views, columns, options), start, columns)
    return StreamReader(_pairs_of_arrays(stream, y, views, chunk, start, errors), start)


def _listed(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _row_errors(on_error: str, quarantine: Any, start: int) -> RowErrors:
    if on_error not in ("stop", "skip"):
        raise ValueError(f"`on_error` must be 'stop' or 'skip'; got {on_error!r}.")
    if isinstance(start, bool) or int(start) != start or start < 0:
        raise ValueError(f"`start` is a number of rows, an integer of at least 0; got {start!r}.")
    if on_error == "stop":
        if quarantine is not None:
            raise ValueError("`quarantine` has the rows that are left out. Give on_error='skip' (--on-error skip) too.")
        return RowErrors(None, start)
    return RowErrors(quarantine if isinstance(quarantine, Quarantine) else Quarantine(quarantine), start)


# -- arrays and iterators
def _pairs_of_arrays(stream: Any, y: Any, views: Any, chunk: int, start: int, errors: RowErrors) -> Iterator[_Pair]:
    """Yield samples that are not in a file: arrays, blocks, or items of an iterator."""
    if isinstance(stream, RowBlocks) or is_dask(stream):
        if isinstance(stream, RowBlocks) and y is not None:
            raise ValueError("RowBlocks have targets in their blocks. Leave `y` out.")
        blocks = stream if isinstance(stream, RowBlocks) else RowBlocks.of(stream, y, views=views)
        yield from _pairs_of_blocks(blocks, chunk, start)
    elif y is not None:
        X = as_views(stream, None if isinstance(stream, Views) else views)
        y = in_order_of(X, y, "y")
        labels = y if isinstance(y, (list, np.ndarray)) else y.to_numpy() if hasattr(y, "to_numpy") else list(y)
        if len(labels) != len(X):
            raise ValueError(f"The stream has {len(X)} samples and y has {len(labels)}; they must agree.")
        yield from _cut(X, labels, np.arange(len(X)), len(X), chunk, start)
    elif isinstance(stream, Views) or hasattr(stream, "shape"):
        raise ValueError(_NO_LABELS)
    else:
        yield from _read_items(stream, views, start, errors)


def _cut(X: Views, labels: Any, rows: np.ndarray, end: int, chunk: int, start: int) -> Iterator[_Pair]:
    """Yield samples from row `start` on by chunks; `end` is the number of rows up to their end."""
    for first in range(int(np.searchsorted(rows, start)), len(X), chunk):
        stop = min(first + chunk, len(X))
        whole = first == 0 and stop == len(X)
        own = (X, labels) if whole else (X[first:stop], labels[first:stop])
        yield *own, rows[first:stop], int(rows[stop]) if stop < len(X) else end


def _pairs_of_blocks(blocks: RowBlocks, chunk: int, start: int) -> Iterator[_Pair]:
    """Yield blocks of rows and their labels in order."""
    n = 0
    for X, labels, sample_weight in blocks:
        if labels is None:
            raise ValueError(_NO_LABELS)
        if sample_weight is not None:
            raise ValueError("A stream has no sample weights. Leave `sample_weight` out of the blocks.")
        labels = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
        yield from _cut(X, labels, np.arange(n, n + len(X)), n + len(X), chunk, start)
        n += len(X)


def _read_items(stream: Iterable[Any], views: Any, start: int, errors: RowErrors) -> Iterator[_Pair]:
    """Yield the items of an iterator; one that cannot be read counts as one row."""
    n = 0
    for number, pair in enumerate(stream):
        try:
            X, labels, size = _read_item(pair, number, views)
        except (TypeError, ValueError) as error:
            if not errors.skip:
                raise
            errors.reject(n, str(error), repr(pair))
            n += 1
            continue
        if size is None:
            if n >= start:
                yield X, labels, np.array([n]), n + 1
            n += 1
        else:
            yield from _cut(X, labels, np.arange(n, n + size), n + size, max(size, 1), start)
            n += size
    errors.tell("the stream")


def _read_item(pair: Any, number: int, views: Any) -> tuple[Any, Any, int | None]:
    """Return samples, labels and the number of samples; None for one sample that is not in Views."""
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
        raise TypeError(f"Item {number} of the stream is not a pair of views and label; got {type(pair).__name__}.")
    X, labels = pair
    if labels is None or np.ndim(labels) == 0:
        if isinstance(X, Views):
            return X, [labels], len(X)
        return (X if isinstance(X, Mapping) else {_VIEW: X}), labels, None
    X = X if isinstance(X, Views) else as_views(X, None if isinstance(X, Mapping) else views)
    return X, labels if hasattr(labels, "dtype") else list(labels), len(X)


# -- files and lines
def _read_lines(lines: Iterable[str], format: str, options: dict[str, Any]) -> Iterator[Table]:
    source = Source(lines, "standard input" if lines is sys.stdin else "the stream", **options)
    if format not in ("jsonl", "csv", "tsv"):
        raise ValueError(f"The format of {source.where} must be 'jsonl', 'csv' or 'tsv'; got '{format}'.")
    return read_json_lines(source) if format == "jsonl" else read_csv(source, "," if format == "csv" else "\t")


def _pairs(
    tables: Iterable[Table], target: str, views: Any, columns: _Columns, options: dict[str, Any]
) -> Iterator[_Pair]:
    """Yield the rows of tables as views and labels, with the same columns throughout."""
    spec, _, _ = read_layout(views)
    seen: dict[str, Part] = {}
    flat: dict[str, str] = {}  # the view of each column so far, besides those of blocks
    told: set[str] = set()  # columns that appeared halfway
    missing: dict[str, int] = {}
    where, n, errors = "", 0, options["errors"]
    without: list[int] = []  # rows that have no view: the first of them
    n_without = 0
    try:
        for table in tables:
            where = table.where
            if table.rows is not None and not len(table.rows) and not table.columns:  # no row could be read
                n = table.end or n
                yield None, None, table.rows, n
                continue
            for name, own in (table.read_as_missing or {}).items():
                missing[name] = missing.get(name, 0) + own
            labels = take_column([table], target).tolist()
            columns.read_weights(table)
            settle_index(table)
            names = table.samples if columns.ids is None else as_names(take_column([table], columns.ids).tolist())
            rows = columns.rows = np.arange(n, n + len(labels)) if table.rows is None else table.rows
            n = n + len(labels) if table.end is None else table.end
            if not labels:
                continue
            table.streamed = True
            table.texts = set(table.columns) if seen else ()  # the first rows told what is text
            parts = _same_columns(_known_columns(table, spec, seen, flat, told, rows), seen, table)
            X, kept = views_with_rows(parts, names, len(labels))
            if len(kept) != len(labels):
                raise ValueError(f"'{target}' of {table.where} has {len(labels)} values for {len(kept)} samples.")
            if not kept.all():
                alone = [k for k in np.flatnonzero(~kept).tolist() if rows[k] >= errors.start]
                if columns.ids is None or names is None:
                    without = (without + rows[alone[:5]].tolist())[:5]  # a stream may have any number
                    n_without += len(alone)
                else:
                    columns.labels_alone += [(int(rows[k]), names[k], labels[k]) for k in alone]
                labels = [label for label, there in zip(labels, kept, strict=True) if there]
                rows = rows[kept]
            if X is None:
                yield None, None, rows, n
            else:
                yield from _cut(X, labels, rows, n, options["chunk"], errors.start)
    finally:
        if errors.quarantine is not None:
            errors.quarantine.close()
    yield None, None, np.zeros(0, dtype=np.int64), max(n, errors.last + 1)
    if where:
        tell_missing_cells([Table("", where, read_as_missing=missing)], options["na_values"])
        errors.tell(where)
    if without:
        what = "row has" if n_without == 1 else "rows have"
        shown = sample_text(without, None) + (f" and {n_without - 5} more" if n_without > 5 else "")
        text = f"{n_without} {what} no view at all and are left out of {where}: {shown}."
        warnings.warn(f"{text} Rows are counted from 0.", stacklevel=2)


def _named_columns(spec: Any) -> dict[str, list[str]]:
    """Return the columns that a layout names, each with all columns and patterns of its view."""
    listed = [own for own in spec.values() if isinstance(own, list)] if isinstance(spec, Mapping) else []
    return {name: own for own in listed for name in own if isinstance(name, str) and not set(name) & set("*?[")}


def _known_columns(
    table: Table, spec: Any, seen: dict[str, Part], flat: dict[str, str], told: set[str], rows: np.ndarray
) -> dict[str, Part]:
    """Return the views of a table; a column that appears halfway is left out, unless it makes a view that comes late.

    A column that `spec` names is missing until it comes, if its view has others.
    """
    for name, others in _named_columns(spec).items():
        if name not in table.columns and name not in table.blocks and layout.names_matching(table.columns, others):
            table.columns[name] = np.full(len(rows), np.nan)
            if not seen:
                warnings.warn(f"{table.where} has no column '{name}' yet. It is missing until it comes.", stacklevel=2)
    parts = divide_tables([table], spec, missing_allowed=table.growing)
    named = [(view, name) for view, part in parts.items() for name in part.names if name in table.columns]
    if any(flat.get(name, view) != view for view, name in named):  # since not all columns have a prefix now
        new = {name: table.columns.pop(name) for name in list(table.columns) if name not in flat}
        parts = divide_tables([table], spec, missing_allowed=table.growing)
    else:
        new = {name: part.block[:, k] for view, part in parts.items() if view in seen
               for k, name in enumerate(part.names) if name not in seen[view].names}  # fmt: skip
        flat.update({name: view for view, name in named if name not in new})
    for name, values in new.items():
        there = np.flatnonzero([value is not None and value == value for value in values.tolist()])
        if len(there) and name not in told:
            warnings.warn(
                f"Column '{name}' of {table.where} has no value before row {rows[there[0]]:,} (counted from 0), and is "
                "left out. To use it, write it in the first rows too (empty or null), or name it by `views` (--views).",
                stacklevel=2,
            )
            told.add(name)
    return parts


def _same_columns(parts: dict[str, Part], seen: dict[str, Part], table: Table) -> dict[str, Part]:
    """Return views with the columns that they had before, in the same order; `seen` has these."""
    for view, part in parts.items():
        names = seen[view].names if view in seen else part.names
        if part.names != names:
            place = {name: k for k, name in enumerate(part.names)}
            lost = next((name for name in names if name not in place), None)
            if lost is not None:
                raise ValueError(f"{table.where} has no column '{lost}', which it had before. {_SAME}")
            part = part._replace(block=part.block[:, [place[name] for name in names]], names=names)
        widths = {own.block.shape[1] for own in (part, seen.get(view, part)) if getattr(own.block, "ndim", 0) == 2}
        if len(widths) > 1:
            raise ValueError(f"View '{view}' of {table.where} has {min(widths)} and {max(widths)} columns. {_SAME}")
        parts[view] = part
        if part.block is not None:
            seen[view] = part
    return parts
