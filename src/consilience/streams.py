"""Predict, score, learn: progressive validation on streams of any source, with checkpoints."""

import csv
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from ._progress import progress
from ._tables import by_prefix, matching
from .online._frame import OnlineLearner, check_count, one_row, uninterrupted
from .persistence import load, save
from .views import Views, as_views

__all__ = ["ProgressiveResult", "progressive_validation", "read_csv_lines", "read_json_lines", "read_stream"]

_PIECE = 1 << 22  # bytes of a libsvm file read at a time


@dataclass(frozen=True)
class ProgressiveResult:
    """What `progressive_validation` found; prints as a sentence.

    Parameters
    ----------
    n_samples : int
        The samples predicted, scored and learned.
    mistakes : int
        Wrong predictions among them; a tie is one.
    curve : array of shape (n, 2)
        Samples so far and the share of mistakes, thinned out geometrically.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.streams import ProgressiveResult
    >>> print(ProgressiveResult(200, 30, np.array([[200, 0.15]])))
    30 mistakes in 200 samples, an error of 15.00 %.
    """

    n_samples: int
    mistakes: int
    curve: np.ndarray

    @property
    def error(self) -> float:
        """The share of mistakes."""
        return self.mistakes / self.n_samples if self.n_samples else float("nan")

    def __str__(self) -> str:
        return f"{self.mistakes} mistakes in {self.n_samples} samples, an error of {100 * self.error:.2f} %."


def progressive_validation(
    model: Any,
    stream: Any,
    y: Any = None,
    *,
    target: str = "y",
    views: Any = None,
    classes: Any = None,
    chunk: int = 4096,
    limit: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 10_000,
    resume: bool = False,
    verbose: bool = False,
) -> ProgressiveResult:
    """Predict each sample of a stream, score the prediction, then learn the sample.

    Predictions are those of the hypothesis that learns, as the mistake bounds count them, one sample after the other
    however the stream is cut. The model goes on from what it knows, and is trained afterwards.

    Parameters
    ----------
    model : online learner
        An online learner of the library; it learns in place.
    stream : Views, arrays, iterator or path
        Samples with `y`; an iterator of (views, label) for single samples or of (views, labels) for chunks; or a file:
        Parquet (or a folder of such files), CSV (.csv, .tsv), libsvm (.libsvm, .svm, .svmlight, .txt), JSON lines
        (.jsonl, .ndjson).
    y : array-like of shape (n_samples,), optional
        The classes, where `stream` has the samples alone.
    target : str, default="y"
        The column or key of the class in a file.
    views : dict, list or "prefix", optional
        How columns of a file are divided into views; see `as_views`. Columns of lists or of strings are views by
        themselves.
    classes : array-like, optional
        All classes there will be; see `partial_fit`.
    chunk : int, default=4096
        Samples read at a time; the result does not depend on it.
    limit : int, optional
        The most samples to take.
    checkpoint : path, optional
        Where the model and its place in the stream are written, whole or not at all, every `every` samples, at the end,
        and on Ctrl-C.
    every : int, default=10000
        Samples between checkpoints.
    resume : bool, default=False
        Whether to go on from the checkpoint if there is one: the model takes its state, and the samples it has seen are
        passed over.
    verbose : bool, default=False
        Whether to show samples, rate and error as the stream goes on, in a terminal or a notebook.

    Returns
    -------
    ProgressiveResult
        Mistakes, error and its curve.

    See Also
    --------
    save : Write a model alone.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=500, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron(average=True)
    >>> result = cs.progressive_validation(model, X, y)
    >>> result.n_samples, result.mistakes == model.mistakes_
    (500, True)
    """
    if not isinstance(model, OnlineLearner):
        raise TypeError(f"progressive_validation takes online learners of the library; got {type(model).__name__}.")
    for name, value in (("chunk", chunk), ("every", every)):
        check_count(name, value)
    check_count("limit", limit, optional=True)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder of the checkpoint, '{path.absolute().parent}', does not exist. Make it first."
        )
    place = _Place(0, getattr(model, "n_seen_", 0), getattr(model, "mistakes_", 0))
    if path is not None and path.exists():
        if not resume:
            raise FileExistsError(f"The checkpoint '{path}' exists. Go on from it by resume=True, or remove it.")
        place = _restored(model, path)
    given = {} if classes is None else {"classes": classes}
    most = min(every, model._piece)
    pieces = _pieces(read_stream(stream, y, target=target, views=views, chunk=chunk), place, most, limit)
    try:
        with progress(verbose, "waiting for samples") as told:
            start = time.perf_counter()
            for X, labels in pieces:
                with uninterrupted():
                    if isinstance(X, Views):
                        model.partial_fit(X, labels, **given)
                    elif given and not hasattr(model, "n_seen_"):
                        model.partial_fit(one_row(X), [labels], **given)
                    else:
                        model.learn_one(X, labels)
                    place.position += len(X) if isinstance(X, Views) else 1
                told(place.told(model, time.perf_counter() - start), place.position / limit if limit else None)
                if path is not None and place.position - place.saved >= every:
                    _write(model, place, path)
    except KeyboardInterrupt as stopped:
        if path is None:
            raise KeyboardInterrupt(
                f"Stopped after {place.position} samples of the stream; the model keeps what it has learned."
            ) from stopped
        _write(model, place, path)
        raise KeyboardInterrupt(
            f"Stopped after {place.position} samples, saved to '{path}'. Go on by resume=True."
        ) from stopped
    if path is not None:
        _write(model, place, path)
    return place.result(model)


class _Place:
    """Where a stream stands, and what the model had seen before it."""

    def __init__(self, position: int, seen: int, mistakes: int):
        self.position, self.seen, self.mistakes = position, seen, mistakes
        self.saved = self.begun = position

    def counts(self, model: Any) -> tuple[int, int]:
        """Samples and mistakes on this stream."""
        return int(getattr(model, "n_seen_", 0)) - self.seen, int(getattr(model, "mistakes_", 0)) - self.mistakes

    def told(self, model: Any, seconds: float) -> str:
        """How far the stream is, for people who wait."""
        samples, mistakes = self.counts(model)
        rate = (self.position - self.begun) / max(seconds, 1e-9)
        return f"{samples:,} samples, {rate:,.0f} a second, error {mistakes / max(samples, 1):.2%}"

    def result(self, model: Any) -> ProgressiveResult:
        n, mistakes = self.counts(model)
        curve = [(s - self.seen, m - self.mistakes) for s, m in getattr(model, "_curve", []) if s > self.seen]
        points = np.array(curve, dtype=np.float64).reshape(-1, 2)
        points[:, 1] /= np.maximum(points[:, 0], 1)
        return ProgressiveResult(n, mistakes, points)


# -- checkpoints
def _write(model: Any, place: _Place, path: Path) -> None:
    save({"model": model, "position": place.position, "seen": place.seen, "mistakes": place.mistakes}, path)
    place.saved = place.position


def _restored(model: Any, path: Path) -> _Place:
    """Give the model the state of a checkpoint; return its place in the stream."""
    found = load(path)
    if not (isinstance(found, dict) and found.keys() >= {"model", "position", "seen", "mistakes"}):
        raise ValueError(f"'{path}' is a model file, no checkpoint of a stream. Load it by consilience.load.")
    kept = found["model"]
    before, now = ({**learner.get_params(), "verbose": None} for learner in (kept, model))
    if type(kept) is not type(model) or repr(before) != repr(now):
        raise ValueError(
            f"The checkpoint '{path}' is of {kept!r}, the model is {model!r}. Give the model it was made of."
        )
    model.__dict__.update(kept.__dict__)
    return _Place(int(found["position"]), int(found["seen"]), int(found["mistakes"]))


def _pieces(source: Iterable[Any], place: _Place, most: int, limit: int | None) -> Iterator[tuple[Any, Any]]:
    """The stream from its place on, in pieces of at most so many samples that end where checkpoints are."""
    skip, left = place.position, np.inf if limit is None else limit - place.position
    if left <= 0:
        return
    for X, labels in source:
        if not isinstance(X, Views):
            if skip > 0:
                skip -= 1
                continue
            left -= 1
            yield X, labels
            if left <= 0:
                return
            continue
        start, n = min(skip, len(X)), len(X)
        skip -= start
        while start < n and left > 0:
            size = int(min(most - place.position % most, n - start, left))
            yield X[start : start + size], labels[start : start + size]
            start, left = start + size, left - size
        if left <= 0:
            return


# -- sources
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
    >>> from consilience.streams import read_stream
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
    with pq.ParquetFile(path) as file:
        if target not in file.schema_arrow.names:
            raise ValueError(f"'{path.name}' has no column '{target}'; name that of the class by `target`.")
        for batch in file.iter_batches(batch_size=chunk):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            labels = columns.pop(target)
            yield layout.views(columns, f"'{path.name}'", fixed=True), labels


def _read_json(path: Path, target: str, views: Any, chunk: int) -> Iterator[tuple[Views, Any]]:
    with path.open(encoding="utf-8") as file:
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
    >>> from consilience.streams import read_json_lines
    >>> lines = ['{"audio": [1, 2], "y": "a"}', '{"audio": [3, 4], "y": "b"}']
    >>> [(X.names, y) for X, y in read_json_lines(lines, "example")]
    [(('audio',), ['a', 'b'])]
    """
    layout, records = _Layout(views), []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
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
    >>> from consilience.streams import read_csv_lines
    >>> lines = ["sound__a,sound__b,size__m2,y", "1,2,20,a", "3,4,,b"]
    >>> [(X.names, y) for X, y in read_csv_lines(lines, "example")]
    [(('sound', 'size'), ['a', 'b'])]
    """
    rows = csv.reader(lines, delimiter=delimiter)
    names = next(rows, None)
    if not names:
        raise ValueError(f"{where} is empty; its first line names the columns.")
    if target not in names:
        raise ValueError(f"{where} has no column '{target}'; name that of the class by `target`.")
    if len(set(names)) < len(names):
        raise ValueError(f"{where} has two columns named '{next(n for n in names if names.count(n) > 1)}'.")
    layout, texts, of_class = _Layout(views), None, None
    while part := [row for row in islice(rows, chunk) if row]:
        for row in part:
            if len(row) != len(names):
                raise ValueError(f"{where} has a row of {len(row)} cells near line {rows.line_num}, not {len(names)}.")
        cells = dict(zip(names, zip(*part, strict=True), strict=True))
        labels = list(cells.pop(target))
        if texts is None or of_class is None:
            texts = {name for name, values in cells.items() if any(v and not _is_number(v) for v in values)}
            of_class = next(kind for kind in (int, float, str) if all(_reads(kind, label) for label in labels))
            layout.numbers = (
                _divided([name for name in cells if name not in texts], views) if set(cells) - texts else {}
            )
        for label in labels:
            if not _reads(of_class, label):
                raise ValueError(
                    f"{where} has the class '{label}' near line {rows.line_num}; those before are numbers."
                )
        columns = {
            name: [v or None for v in values] if name in texts else _numbers(values, name, where, rows.line_num)
            for name, values in cells.items()
        }
        yield layout.views(columns, where, fixed=True), [of_class(label) for label in labels]


def _numbers(cells: Iterable[str], name: str, where: str, line: int) -> list[float | None]:
    try:
        return [float(cell) if cell else None for cell in cells]
    except ValueError as error:
        raise ValueError(
            f"Column '{name}' of {where} held numbers, and near line {line} holds something else: {error}."
        ) from error


def _is_number(cell: str) -> bool:
    return _reads(float, cell)


def _reads(kind: Any, cell: str) -> bool:
    try:
        kind(cell)
    except ValueError:
        return False
    return True


class _Layout:
    """Which columns of a file make which view: those of lists or strings each one, those of numbers as `views` says.

    Numbers are divided by prefixes where all names have them, else they are one view. The first chunk with numbers
    settles their columns for all.
    """

    def __init__(self, views: Any):
        self.given = views
        self.numbers: dict[str, list[str]] | None = None

    def views(self, columns: Mapping[str, list[Any]], where: str, *, fixed: bool) -> Views:
        """A chunk as Views; where columns are `fixed`, those asked for must be there, else a view may be absent."""
        whole = {n: v for n, v in columns.items() if any(isinstance(x, (list, str)) for x in v)}
        plain = [n for n, values in columns.items() if n not in whole and any(x is not None for x in values)]
        if self.numbers is None and plain:
            self.numbers = _divided(plain, self.given)
        if isinstance(self.given, Mapping):
            for view, chosen in self.given.items():
                lost = [name for name in chosen if not matching(list(columns), [name])]
                if lost and (len(lost) < len(chosen) or fixed):
                    raise ValueError(f"`views` names the column '{lost[0]}' of '{view}', which {where} has not.")
        known = [name for chosen in (self.numbers or {}).values() for name in chosen]
        new = [name for name in plain if name not in known]
        if new and not isinstance(self.given, Mapping):
            raise ValueError(f"{where} has a column '{new[0]}' that it did not have before; all rows have the same.")
        found: dict[str, Any] = dict(whole)
        n = len(next(iter(columns.values()), []))
        for view, chosen in (self.numbers or {}).items():
            table = [[np.nan if x is None else x for x in columns.get(name, [None] * n)] for name in chosen]
            found[view] = np.array(table, dtype=np.float64).T
        return Views(found)


def _divided(names: list[str], views: Any) -> dict[str, list[str]]:
    if isinstance(views, Mapping):
        return {view: matching(names, chosen) or list(chosen) for view, chosen in views.items()}
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
        X, _ = load_svmlight_file(str(path), n_features=most, offset=offset, length=length, zero_based=False)
        width = max(width, int(X.indices.max(initial=0)) + 1)
    for offset, length in pieces:
        X, y = load_svmlight_file(str(path), n_features=width, offset=offset, length=length, zero_based=False)
        for start in range(0, len(y), chunk):
            yield as_views(X[start : start + chunk], views), y[start : start + chunk]
