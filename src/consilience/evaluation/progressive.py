"""Predict, score, learn: progressive validation on streams of any source, with checkpoints."""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import progress
from ..io.model_files import load, save
from ..io.streams import read_csv_lines, read_json_lines, read_stream
from ..online._frame import OnlineLearner, check_count, one_row, uninterrupted
from ..views.container import Views

__all__ = ["ProgressiveResult", "progressive_validation", "read_csv_lines", "read_json_lines", "read_stream"]


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
    >>> from consilience.evaluation.progressive import ProgressiveResult
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
    >>> result.n_samples, result.mistakes == model.n_mistakes_
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
    place = _Place(0, getattr(model, "n_samples_seen_", 0), getattr(model, "n_mistakes_", 0))
    if path is not None and path.exists():
        if not resume:
            raise FileExistsError(
                f"The checkpoint '{path}' exists. Go on from it by resume=True (--resume), or remove it."
            )
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
                    elif given and not hasattr(model, "n_samples_seen_"):
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
            f"Stopped after {place.position} samples, saved to '{path}'. Go on by resume=True (--resume)."
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
        return int(getattr(model, "n_samples_seen_", 0)) - self.seen, int(
            getattr(model, "n_mistakes_", 0)
        ) - self.mistakes

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
