"""Progressive validation of online estimators: predict, score, learn; on streams of any source, with checkpoints."""

import os
import time
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)

from .._progress import progress
from ..io.checkpoints import read_checkpoint, write_checkpoint
from ..io.writing import check_output
from ._stream_items import SampleStream
from ._stream_result import ProgressiveResult
from ._stream_run import ACTING, StreamRun
from .monitoring import ACTIONS

__all__ = ["ProgressiveResult", "StreamOptions", "progressive_validation"]

_COUNT = Interval(Integral, 1, None, closed="left")
_FILE = [str, os.PathLike, None]
_COSTS = 0.02  # share of the time that checkpoints may take
_OPTIONS: dict[str, Any] = {
    "measures": "no_validation", "window": [_COUNT], "fading": [Interval(Real, 0, 1, closed="right")],
    "by_view": ["boolean"], "drift": ["boolean"], "on_drift": [StrOptions(set(ACTIONS))],
    "log": [*_FILE, HasMethods("write")], "log_every": [_COUNT], "predictions": _FILE,
    "on_error": [StrOptions({"stop", "skip"})], "quarantine": _FILE, "sample_weight": [str, "array-like", None],
    "ids": [str, None], "max_pending": [_COUNT],
}  # fmt: skip


@dataclass(frozen=True)
class StreamOptions:
    """Options of `progressive_validation`, given to it by name: what is measured, written, skipped and awaited.

    Parameters
    ----------
    measures : str, metric or sequence of these, optional
        Measures besides the error, such as ``["f1", "roc_auc"]``; see `StreamMonitor`.
    window : int, default=1000
        Number of samples in a window.
    fading : float, default=0.999
        Factor by which the weight of a sample falls with each later sample, for the fading measures.
    by_view : bool, default=False
        Whether to compute how often each view's own margin favors the true class. It takes time.
    drift : bool, default=False
        Whether to look for drift of the error, and with `by_view` of each view.
    on_drift : {"tell", "forget", "restart", "lower_view"}, default="tell"
        What to do about a drift: record it; halve what the model has learned; remove it; or halve the weights of the
        view that drifted. The model acts at the next multiple of 1,024 rows.
    log : path or file object, optional
        File for one JSON line every `log_every` rows and at the end: counts, measures, baseline, new drifts and rate.
    log_every : int, default=10000
        Number of rows between the lines of the log.
    predictions : path, optional
        File for the predictions, a line per sample: row, sample name, target, prediction and probabilities. CSV, or
        JSON lines if it ends in .jsonl or .ndjson.
    on_error : {"stop", "skip"}, default="stop"
        What to do if the model refuses samples. "stop" raises the error; nothing of the refused piece is learned.
        "skip" tries its rows one by one, and counts those that are refused.
    quarantine : path, optional
        File for the rows that are skipped, as JSON lines with their numbers in the stream and the errors.
    sample_weight : array-like or str, optional
        Sample weights for samples in memory; for a file, the name of their column.
    ids : str, optional
        Column of sample names in a file. Then a row without a target is predicted at once and kept. A later row with
        the same name and a target, whose other columns may be missing, is learned and scored with that prediction.
    max_pending : int, default=10000
        Maximum number of samples that wait for their target. Beyond it, the oldest is dropped and counted.

    Examples
    --------
    >>> from consilience import StreamOptions
    >>> StreamOptions(measures="f1", drift=True).window
    1000
    """

    measures: Any = None
    window: int = 1000
    fading: float = 0.999
    by_view: bool = False
    drift: bool = False
    on_drift: str = "tell"
    log: Any = None
    log_every: int = 10_000
    predictions: Any = None
    on_error: str = "stop"
    quarantine: Any = None
    sample_weight: Any = None
    ids: str | None = None
    max_pending: int = 10_000

    def __post_init__(self) -> None:
        checked = {name: getattr(self, name) for name, kinds in _OPTIONS.items() if kinds != "no_validation"}
        validate_parameter_constraints(_OPTIONS, checked, caller_name="progressive_validation")
        if self.quarantine is not None and self.on_error != "skip":
            raise ValueError(
                "A quarantine file holds the rows that are skipped. Use on_error='skip' (--on-error skip)."
            )


@validate_params(
    {
        "target": [str],
        "chunk": [_COUNT],
        "limit": [_COUNT, None],
        "checkpoint": [str, os.PathLike, None],
        "every": [_COUNT],
        "resume": ["boolean", StrOptions({"continue"})],
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
    resume: bool | str = False,
    verbose: bool = False,
    **options: Any,
) -> ProgressiveResult:
    """Predict each sample of a stream, score the prediction, then learn from the sample.

    The predictions are those that `predict` would make just before the sample is learned, also with ``average=True``.
    They do not depend on how the stream is divided into chunks. The model continues from its current state.

    Parameters
    ----------
    model : online estimator
        An online estimator of the library. It learns in place.
    stream : Views, arrays, RowBlocks, Dask collections, iterator or path
        Samples, with their classes in `y`. RowBlocks have their own. Partitions of Dask collections are learned in
        order. Or an iterator of (views, label) for single samples, or of (views, labels) for chunks. For labels that
        come later, of (views, label, id): see `ids` of `StreamOptions`. Or a file: Parquet (or a folder of Parquet
        files), CSV (.csv, .tsv), libsvm (.libsvm, .svm, .svmlight, .txt) or JSON lines (.jsonl, .ndjson).
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
        File for the model, the measures and the position in the stream. It is replaced atomically after every `every`
        rows, at the end, and on Ctrl-C. One that is due is left out while checkpoints took more than 2% of the time.
    every : int, default=10000
        Number of rows between checkpoints.
    resume : bool or "continue", default=False
        Whether to continue from an existing checkpoint. The model takes over its state. With True it skips the rows
        that it has seen, and raises an error if the stream does not have the last samples before the checkpoint. With
        "continue" it learns what comes, such as new samples of a pipe.
    verbose : bool, default=False
        Whether to show the number of samples, the rate and the error, in a terminal or a notebook.
    **options : dict
        The fields of `StreamOptions` by name: `measures`, `window`, `fading`, `by_view`, `drift`, `on_drift`, `log`,
        `log_every`, `predictions`, `on_error`, `quarantine`, `sample_weight`, `ids` and `max_pending`.

    Returns
    -------
    ProgressiveResult
        Mistakes, measures and those of a baseline, windows, drifts, error curve.

    See Also
    --------
    StreamOptions : Options for measures, files, errors and labels that come later.
    StreamMonitor : The measures alone.
    save : Write a model without a position in a stream.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=500, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron(average=True)
    >>> result = cs.progressive_validation(model, X, y, measures="roc_auc")
    >>> result.n_samples, result.error < result.baseline_error
    (500, True)
    >>> list(result.measures)
    ['error', 'roc_auc']
    """
    if not hasattr(model, "predict_then_learn"):
        raise TypeError(f"`model` must be an online estimator of the library; got {type(model).__name__}.")
    given = _read_options(options)
    reading = {"target": target, "views": views, "ids": given.ids, "chunk": chunk}
    source = stream if isinstance(stream, SampleStream) else SampleStream(stream, y, reading, given.sample_weight)
    run = StreamRun(model, given, classes, verbose)
    path = None if checkpoint is None else Path(checkpoint)
    run.open({} if path is None else _prepare_checkpoint(run, path, bool(resume)))
    try:
        _go_along(run, source, path, every, limit, new_rows=resume == "continue")
    finally:
        run.close()
    result: ProgressiveResult = run.result()
    if not result.n_samples and run.refused is not None and run.refused.count:
        raise ValueError(f"All {run.n_skipped:,} rows of the stream were refused. The first: {run.refused.first}")
    _warn_of_losses(result, run.position, given.max_pending)
    return result


def _warn_of_losses(result: ProgressiveResult, n_rows: int, most: int) -> None:
    """Warn of samples that were not learned."""
    told = {
        f"{result.n_skipped / max(n_rows, 1):.1%} of {n_rows:,} rows were refused and skipped. Write them to a file "
        "with the reasons (`quarantine`, --quarantine).": result.n_skipped > 0.01 * n_rows,
        "Labels whose id does not wait for one, and rows without a label whose id waits already: "
        f"{result.n_ignored:,}. They are ignored. See them with on_error='skip' and `quarantine` (--on-error skip "
        "--quarantine FILE).": result.n_ignored,
        f"Samples that were dropped before their label came: {result.n_dropped:,}, because at most {most:,} may wait. "
        "Raise `max_pending` (--max-pending) to learn them.": result.n_dropped,
    }
    for text, lost in told.items():
        if lost:
            warnings.warn(text, stacklevel=4)


def _read_options(options: dict[str, Any]) -> StreamOptions:
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(
            f"progressive_validation has no option '{unknown[0]}'. The options of a stream are: {', '.join(_OPTIONS)}."
        )
    return StreamOptions(**options)


def _go_along(
    run: StreamRun, source: SampleStream, path: Path | None, every: int, limit: int | None, *, new_rows: bool
) -> None:
    """Learn the stream from its position on, or `new_rows` of another; write checkpoints and the end of the log."""
    start, offset = run.begin(source.stream, new_rows=new_rows), run.position if new_rows else 0
    if run.refused is not None:
        run.refused.offset = offset
    ends = [getattr(run.model, "_piece", 65_536), *([every] if path is not None else [])]
    ends += [run.options.log_every] if run.options.log is not None else []
    ends += [ACTING] if run.options.on_drift != "tell" else []
    saved, costs = run.position, 0.0
    if path is not None and run.options.quarantine is not None and not path.exists():
        _write_checkpoint(run, path)  # what the quarantine file has before the first row
    try:
        with progress(run.verbose, "waiting for samples") as show:
            for piece in run.pieces(source.pieces(start, run.refused), ends, limit, offset):
                run.learn(piece)
                if run.verbose:
                    show(run.summary(), run.position / limit if limit else None)
                due = path is not None and run.position - saved >= every
                if due and path is not None and costs <= _COSTS * run.seconds:
                    begun = time.perf_counter()
                    _write_checkpoint(run, path)
                    saved, costs = run.position, costs + time.perf_counter() - begun
    except Exception:
        if path is not None and run.complete and run.position > saved:
            _write_checkpoint(run, path)
        raise
    except KeyboardInterrupt as interrupt:
        stopped = f"Stopped after {run.position} samples of the stream."
        if path is None:
            raise KeyboardInterrupt(f"{stopped} The model keeps what it has learned.") from interrupt
        _write_checkpoint(run, path)
        raise KeyboardInterrupt(f"{stopped} Saved to '{path}'. Continue with resume=True (--resume).") from interrupt
    if run.position % run.options.log_every or not run.position:
        run.write_log()
    if path is not None:
        _write_checkpoint(run, path)


# -- checkpoints
def _prepare_checkpoint(run: StreamRun, path: Path, resume: bool) -> dict[str, int]:
    """Continue from a checkpoint, if there is one; return the sizes that the files had then."""
    check_output(path)  # before the stream is read
    run.monitor.state()  # refuses metrics that cannot be stored
    if not path.exists():
        return {}
    if not resume:
        raise FileExistsError(
            f"The checkpoint '{path}' exists. Continue from it with resume=True (--resume), or remove it."
        )
    return _restore_checkpoint(run, path)


def _write_checkpoint(run: StreamRun, path: Path) -> None:
    write_checkpoint({"model": run.model, **run.state()}, path)


def _restore_checkpoint(run: StreamRun, path: Path) -> dict[str, int]:
    """Give the model and the run the state of a checkpoint."""
    content, model = read_checkpoint(path), run.model
    if not (isinstance(content, dict) and content.keys() >= {"model", "position", "monitor", "pending", "sizes"}):
        raise ValueError(f"'{path}' is a model file and not a checkpoint of a stream. Use consilience.load.")
    saved = content["model"]
    before, now = ({**estimator.get_params(), "verbose": None} for estimator in (saved, model))  # `verbose` may differ
    if type(saved) is not type(model) or repr(before) != repr(now):
        raise ValueError(
            f"The checkpoint '{path}' belongs to {saved!r}; got {model!r}. Give a model with the same parameters."
        )
    run.restore(content)
    model.__dict__.update(saved.__dict__)  # in place: the caller holds this model
    return {name: int(size) for name, size in content["sizes"].items()}
