"""Streams of samples from arrays, iterators and files, by parts of their rows."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..views._samples import as_names, in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from ._delimited import read_csv
from .formats import read_json_lines, read_tables
from .layout import Part, divide_tables, read_layout, settle_index, take_column, tell_missing_cells, views_of_parts
from .tables import Source, Table

__all__ = ["read_stream"]

_SAME = "Give the same columns in all rows."
_VIEW = "view0"  # of columns without a prefix, whatever the names of files are


def read_stream(
    stream: Any,
    y: Any = None,
    *,
    target: str = "y",
    views: Any = None,
    ids: str | None = None,
    format: str | None = None,
    chunk: int = 4096,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
) -> Iterator[tuple[Any, Any]]:
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
    format : {"jsonl", "csv", "tsv"}, optional
        The format of `stream` if it is an iterable of lines, such as ``sys.stdin``: a JSON object per line with lists,
        strings or numbers by name, or CSV whose first line names the columns.
    chunk : int, default=4096
        Samples read at a time.
    encoding : str, optional
        Encoding of a text file without a byte order mark, such as ``"cp1252"``. Default: UTF-8.
    na_values : sequence of str, optional
        Cells of a file or of lines to read as missing, such as ``["n.d."]``, besides empty cells and words such as NA,
        NaN and null. A warning at the end says how many cells these are.

    Yields
    ------
    (Views, array) or (dict, object)
        Samples and their labels.

    See Also
    --------
    read_samples : Read a file at once; the values are the same.

    Notes
    -----
    Packed files, separators and decimal commas are as in `read_samples`. Only a whole file tells categories from text.
    So a stream of numbers and strings needs `views`, in which a column of strings is a view alone.

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
    is_path = isinstance(stream, (str, os.PathLike))
    if format is not None or is_path:
        if y is not None:
            raise ValueError("A file has its own labels; name their column by `target`, and do not give y.")
        exact = [column for column in (target, ids) if column is not None]
        options: dict[str, Any] = {
            "name": _VIEW, "chunk": chunk, "exact": exact, "encoding": encoding,
            "na_values": [na_values] if isinstance(na_values, str) else list(na_values),
        }  # fmt: skip
        tables = read_tables(Path(stream), **options) if is_path else _read_lines(stream, str(format), options)
        yield from _pairs(tables, target, views, ids, options)
    elif isinstance(stream, RowBlocks) or is_dask(stream):
        if isinstance(stream, RowBlocks) and y is not None:
            raise ValueError("RowBlocks have targets in their blocks. Leave `y` out.")
        blocks = stream if isinstance(stream, RowBlocks) else RowBlocks.of(stream, y, views=views)
        yield from _pairs_of_blocks(blocks, chunk)
    elif y is not None:
        X = as_views(stream, None if isinstance(stream, Views) else views)
        y = in_order_of(X.sample_names, y, "y")
        labels = y if isinstance(y, (list, np.ndarray)) else y.to_numpy() if hasattr(y, "to_numpy") else list(y)
        if len(labels) != len(X):
            raise ValueError(f"The stream has {len(X)} samples and y has {len(labels)}; they must agree.")
        for start in range(0, len(X), chunk):
            yield X[start : start + chunk], labels[start : start + chunk]
    elif isinstance(stream, Views) or hasattr(stream, "shape"):
        raise ValueError("The stream has samples alone; give their labels by y.")
    else:
        yield from _read_items(stream, views)


def _pairs_of_blocks(blocks: RowBlocks, chunk: int) -> Iterator[tuple[Views, Any]]:
    """Yield blocks of rows and their labels in order."""
    for X, labels, sample_weight in blocks:
        if labels is None:
            raise ValueError("The stream has samples alone; give their labels by y.")
        if sample_weight is not None:
            raise ValueError("A stream has no sample weights. Leave `sample_weight` out of the blocks.")
        labels = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
        for start in range(0, len(X), chunk):
            yield X[start : start + chunk], labels[start : start + chunk]


def _read_lines(lines: Iterable[str], format: str, options: dict[str, Any]) -> Iterator[Table]:
    source = Source(lines, "standard input" if lines is sys.stdin else "the stream", **options)
    if format not in ("jsonl", "csv", "tsv"):
        raise ValueError(f"The format of {source.where} must be 'jsonl', 'csv' or 'tsv'; got '{format}'.")
    return read_json_lines(source) if format == "jsonl" else read_csv(source, "," if format == "csv" else "\t")


def _read_items(stream: Iterable[Any], views: Any) -> Iterator[tuple[Any, Any]]:
    for number, pair in enumerate(stream):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(f"Item {number} of the stream is not a pair of views and label; got {type(pair).__name__}.")
        X, labels = pair
        if (labels is None or np.ndim(labels) == 0) and isinstance(X, Views):
            yield X, [labels]
        elif labels is None or np.ndim(labels) == 0:
            yield X if isinstance(X, Mapping) else {_VIEW: X}, labels
        else:
            X = X if isinstance(X, Views) else as_views(X, None if isinstance(X, Mapping) else views)
            yield X, labels if hasattr(labels, "dtype") else list(labels)


def _pairs(
    tables: Iterable[Table], target: str, views: Any, ids: str | None, options: dict[str, Any]
) -> Iterator[tuple[Views, list[Any]]]:
    """Yield the rows of tables as views and labels, with the same columns throughout."""
    spec, _, _ = read_layout(views)
    seen: dict[str, Part] = {}
    missing: dict[str, int] = {}
    where, chunk = "", options["chunk"]
    for table in tables:
        where = table.where
        for name, count in (table.read_as_missing or {}).items():
            missing[name] = missing.get(name, 0) + count
        labels = take_column([table], target).tolist()
        settle_index(table)
        names = table.samples if ids is None else as_names(take_column([table], ids).tolist())
        if not labels:
            continue
        table.streamed = True
        table.texts = set(table.columns) if seen else ()  # the first rows told what is text
        parts = _same_columns(divide_tables([table], spec, missing_allowed=table.growing), seen, table)
        X, kept = views_of_parts(parts, names)
        if len(kept) != len(labels):
            raise ValueError(f"'{target}' of {table.where} has {len(labels)} values for {len(kept)} samples.")
        labels = [label for label, there in zip(labels, kept, strict=True) if there]
        for start in range(0, len(X), chunk):
            yield X[start : start + chunk] if len(X) > chunk else X, labels[start : start + chunk]
    if where:
        tell_missing_cells([Table("", where, read_as_missing=missing)], options["na_values"])


def _same_columns(parts: dict[str, Part], seen: dict[str, Part], table: Table) -> dict[str, Part]:
    """Return views with the columns that they had before, in the same order; `seen` has these."""
    owners = {name: view for view, part in seen.items() for name in part.names}  # the view of each column so far
    new = next((name for part in parts.values() for name in part.names if name not in owners), None)
    for view, part in parts.items():
        moved = any(owners.get(name, view) != view for name in part.names)  # since not all columns have a prefix now
        if moved or (view in seen and any(name not in owners for name in part.names)):
            raise ValueError(f"{table.where} has a column '{new}' that it did not have before. {_SAME}")
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
