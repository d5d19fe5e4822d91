"""Progressive validation of online estimators: predict, score, learn; on streams of any source, with checkpoints."""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params

from .._progress import progress
from ..io.model_files import load, save
from ..io.streams import read_stream
from ..io.writing import check_output
from ..online._frame import OnlineEstimator
from ..online._stream import one_row, uninterrupted
from ..views.container import Views

__all__ = ["ProgressiveResult", "progressive_validation"]

_COUNT = Interval(Integral, 1, None, closed="left")


@dataclass(frozen=True)
class ProgressiveResult:
    """Result of `progressive_validation`; prints as a sentence.

    Parameters
    ----------
    n_samples : int
        Number of samples that were predicted, scored and learned.
    n_mistakes : int
        Number of wrong predictions among them; a tie counts as a mistake.
    curve : array of shape (n, 2)
        Number of samples so far, and the share of mistakes among them, at geometrically spaced points.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import ProgressiveResult
    >>> print(ProgressiveResult(200, 30, np.array([[200, 0.15]])))
    30 mistakes in 200 samples, an error of 15.00%.
    """

    n_samples: int
    n_mistakes: int
    curve: np.ndarray

    @property
    def error(self) -> float:
        """Share of mistakes."""
        return self.n_mistakes / self.n_samples if self.n_samples else float("nan")

    def __str__(self) -> str:
        return f"{self.n_mistakes} mistakes in {self.n_samples} samples, an error of {100 * self.error:.2f}%."


@validate_params(
    {
        "target": [str],
        "chunk": [_COUNT],
        "limit": [_COUNT, None],
        "checkpoint": [str, os.PathLike, None],
        "every": [_COUNT],
        "resume": ["boolean"],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
)
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
    """Predict each sample of a stream, score the prediction, then learn from the sample.

    The predictions are those of the current hypothesis, which the mistake bounds count, one sample after the other.
    They do not depend on how the stream is divided into chunks. The model continues from its current state.

    Parameters
    ----------
    model : online estimator
        An online estimator of the library. It learns in place.
    stream : Views, arrays, RowBlocks, Dask collections, iterator or path
        Samples, with their classes in `y`. RowBlocks have their own. Partitions of Dask collections are learned in
        order. Or an iterator of (views, label) for single samples, or of (views, labels) for chunks. Or a file: Parquet
        (or a folder of Parquet files), CSV (.csv, .tsv), libsvm (.libsvm, .svm, .svmlight, .txt) or JSON lines (.jsonl,
        .ndjson).
    y : array-like of shape (n_samples,), optional
        The classes, if `stream` contains only the samples.
    target : str, default="y"
        Column or key of the class in a file.
    views : dict, list or "prefix", optional
        How the columns of a file are divided into views; see `as_views`. A column of lists or of strings is a view.
    classes : array-like, optional
        All classes that the stream may contain; see `partial_fit`.
    chunk : int, default=4096
        Number of samples that are read at a time. It does not change the result.
    limit : int, optional
        Maximum number of samples. Default: the whole stream.
    checkpoint : path, optional
        File for the model and its position in the stream. It is replaced atomically after every `every` samples, at
        the end, and on Ctrl-C.
    every : int, default=10000
        Number of samples between checkpoints.
    resume : bool, default=False
        Whether to continue from an existing checkpoint. The model takes over its state and skips the samples that it
        has seen.
    verbose : bool, default=False
        Whether to show the number of samples, the rate and the error, in a terminal or a notebook.

    Returns
    -------
    ProgressiveResult
        Number of mistakes, error and error curve.

    See Also
    --------
    save : Write a model without a position in a stream.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=500, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron(average=True)
    >>> result = cs.progressive_validation(model, X, y)
    >>> result.n_samples, result.n_mistakes == model.n_mistakes_
    (500, True)
    """
    if not isinstance(model, OnlineEstimator):
        raise TypeError(f"`model` must be an online estimator of the library; got {type(model).__name__}.")
    path = None if checkpoint is None else Path(checkpoint)
    place = _first_place(model, path, resume)
    source = read_stream(stream, y, target=target, views=views, chunk=chunk)
    try:
        with progress(verbose, "waiting for samples") as show:
            start = time.perf_counter()
            for X, labels in _pieces(source, place, min(every, model._piece), limit):
                with uninterrupted():  # so that model and position always agree
                    place.position += _learn_piece(model, X, labels, classes)
                share = place.position / limit if limit else None
                show(place.summary(model, time.perf_counter() - start), share)
                if path is not None and place.position - place.saved >= every:
                    _write_checkpoint(model, place, path)
    except KeyboardInterrupt as interrupt:
        stopped = f"Stopped after {place.position} samples of the stream."
        if path is None:
            raise KeyboardInterrupt(f"{stopped} The model keeps what it has learned.") from interrupt
        _write_checkpoint(model, place, path)
        raise KeyboardInterrupt(f"{stopped} Saved to '{path}'. Continue with resume=True (--resume).") from interrupt
    if path is not None:
        _write_checkpoint(model, place, path)
    return place.result(model)


def _learn_piece(model: Any, X: Any, labels: Any, classes: Any) -> int:
    """Learn from a chunk or a single sample; return the number of samples."""
    if isinstance(X, Views):
        model.partial_fit(X, labels, classes=classes)
        return len(X)
    if classes is not None and not hasattr(model, "n_samples_seen_"):  # `learn_one` does not take the classes
        model.partial_fit(one_row(X), [labels], classes=classes)
    else:
        model.learn_one(X, labels)
    return 1


class _Place:
    """Position in a stream, and the counts of the model before the stream."""

    def __init__(self, position: int, seen: int, mistakes: int):
        self.position, self.seen, self.mistakes = position, seen, mistakes
        self.saved = self.first = position

    def counts(self, model: Any) -> tuple[int, int]:
        """Return the numbers of samples and of mistakes on this stream."""
        samples, mistakes = getattr(model, "n_samples_seen_", 0), getattr(model, "n_mistakes_", 0)
        return int(samples) - self.seen, int(mistakes) - self.mistakes

    def summary(self, model: Any, seconds: float) -> str:
        """Return the text of the progress bar."""
        samples, mistakes = self.counts(model)
        rate = (self.position - self.first) / max(seconds, 1e-9)
        return f"{samples:,} samples, {rate:,.0f} per second, error {mistakes / max(samples, 1):.2%}"

    def result(self, model: Any) -> ProgressiveResult:
        samples, mistakes = self.counts(model)
        # the model may have learned before this stream
        curve = [(s - self.seen, m - self.mistakes) for s, m in getattr(model, "_curve", []) if s > self.seen]
        points = np.array(curve, dtype=np.float64).reshape(-1, 2)
        points[:, 1] /= np.maximum(points[:, 0], 1)
        return ProgressiveResult(samples, mistakes, points)


# -- checkpoints
def _first_place(model: Any, path: Path | None, resume: bool) -> _Place:
    """Return the place to start from: the beginning of the stream, or the place of the checkpoint."""
    if path is not None:
        check_output(path)  # before the stream is read
    if path is None or not path.exists():
        return _Place(0, getattr(model, "n_samples_seen_", 0), getattr(model, "n_mistakes_", 0))
    if not resume:
        raise FileExistsError(
            f"The checkpoint '{path}' exists. Continue from it with resume=True (--resume), or remove it."
        )
    return _restore_checkpoint(model, path)


def _write_checkpoint(model: Any, place: _Place, path: Path) -> None:
    save({"model": model, "position": place.position, "seen": place.seen, "mistakes": place.mistakes}, path)
    place.saved = place.position


def _restore_checkpoint(model: Any, path: Path) -> _Place:
    """Give the model the state of a checkpoint; return its place in the stream."""
    content = load(path)
    if not (isinstance(content, dict) and content.keys() >= {"model", "position", "seen", "mistakes"}):
        raise ValueError(f"'{path}' is a model file and not a checkpoint of a stream. Use consilience.load.")
    saved = content["model"]
    before, now = ({**estimator.get_params(), "verbose": None} for estimator in (saved, model))  # `verbose` may differ
    if type(saved) is not type(model) or repr(before) != repr(now):
        raise ValueError(
            f"The checkpoint '{path}' belongs to {saved!r}; got {model!r}. Give a model with the same parameters."
        )
    model.__dict__.update(saved.__dict__)  # in place: the caller holds this model
    return _Place(int(content["position"]), int(content["seen"]), int(content["mistakes"]))


def _pieces(source: Iterable[Any], place: _Place, most: int, limit: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield the stream from its place on, in pieces of at most `most` samples that end where checkpoints are due."""
    skip, left = place.position, np.inf if limit is None else limit - place.position
    if left <= 0:
        return
    for X, labels in source:
        single = not isinstance(X, Views)
        n = 1 if single else len(X)
        start = min(skip, n)
        skip -= start
        while start < n and left > 0:
            # pieces end at multiples of `most`, however the stream is divided
            size = int(min(most - place.position % most, n - start, left))
            yield (X, labels) if single else (X[start : start + size], labels[start : start + size])
            start, left = start + size, left - size
        if left <= 0:
            return
