"""The command `stream`."""

import sys
from pathlib import Path
from typing import Any

from . import _options as option
from ._app import Stopped, app, given_command
from ._data import check_outputs
from ._estimators import make_estimator
from ._output import show

_DEFAULTS = {"classification": "PassiveAggressive", "regression": "PassiveAggressiveRegressor"}
_SETTINGS = {  # of the estimators that are used unless another one is named
    "classification": ["average=recent"],
    "regression": ["average=recent", "prepare_target=standardize"],  # targets far from 0 need many steps otherwise
}


@app.command()
def stream(
    data: option.StreamSource,
    target: option.TargetColumn = None,
    estimator: option.StreamEstimator = None,
    model_file: option.GoOnWith = None,
    task: option.StreamTask = option.Tasks.classification,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    weights: option.WeightsColumn = None,
    scale: option.StreamScale = True,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    settings: option.Settings = None,
    stdin_format: option.InputFormat = option.InputFormats.jsonl,
    objects: option.ObjectColumns = None,
    libsvm_base: option.LibsvmBase = None,
    on_error: option.OnError = option.OnErrors.stop,
    quarantine: option.QuarantineFile = None,
    measures: option.MeasureNames = None,
    max_pending: option.MostPending = 10_000,
    window: option.WindowSize = 1000,
    by_view: option.ByViewFlag = False,
    drift: option.DriftFlag = False,
    on_drift: option.OnDrift = option.OnDrifts.tell,
    predictions: option.PredictionsFile = None,
    log: option.LogFile = None,
    log_every: option.RowsBetween = 10_000,
    checkpoint: option.CheckpointFile = None,
    every: option.SamplesBetween = 10_000,
    resume: option.ResumeFlag = False,
    save_to: option.SavedModel = None,
    report: option.ReportFile = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Predict, score and learn the samples of a stream, one by one.

    \b
    Examples:
      consilience stream log.jsonl -y label
      consilience stream log.parquet -y label --drift --by-view --report report.html
      consilience stream new.csv -y label --model model.cons --save model.cons
      tail -f log.jsonl | consilience stream - -y label -e KernelPerceptron --checkpoint state.cons --log -
    """
    log_file = None if log in (None, "-") else Path(str(log))
    inputs = [Path(data)] if data != "-" else []
    check_outputs(checkpoint, save_to, report, predictions, quarantine, log_file, inputs=inputs)
    model = _model(estimator, settings, model_file, task)
    numbers = "regression" if task == "regression" else None  # classes that are not whole numbers are refused
    kinds = {"objects": objects or (), "libsvm_base": libsvm_base, "task": numbers}
    source = _source(data, target, views, id_column, weights, encoding, na, stdin_format, kinds)
    if scale and model_file is None:
        _prepare(model, source, skip=on_error == "skip")
    result = _result(
        model, source, checkpoint=checkpoint, every=every, verbose=not json_out,
        resume="continue" if resume and data == "-" else resume,  # a pipe has only what is new
        measures=_listed(measures), window=window, by_view=by_view, drift=drift, on_drift=str(on_drift),
        log=sys.stderr if log == "-" else log_file, log_every=log_every, predictions=predictions,
        on_error=str(on_error), quarantine=quarantine, max_pending=max_pending,
    )  # fmt: skip
    written = {"saved": save_to, "checkpoint": checkpoint, "predictions": predictions, "log": log_file,
               "quarantine": quarantine, "report": report}  # fmt: skip
    _write(model, result, source, save_to, report)
    files = {what: str(path) for what, path in written.items() if path is not None}
    seen = {} if model_file is None else {"samples before": int(model.n_samples_seen_) - result.n_samples}
    shown = {**result.to_dict(), "views": _views(model)} if json_out else {"views": _views(model), **_lines(result)}
    show({**shown, **seen, **files}, json_out)


def _result(model: Any, source: Any, **options: Any) -> Any:
    """Return the result of the stream; an error if it has no samples."""
    from ..evaluation.progressive import progressive_validation

    try:
        result = progressive_validation(model, source, **options)
    except KeyboardInterrupt as stopped:  # its message says where the checkpoint is
        raise Stopped(str(stopped)) from stopped
    except ValueError as error:
        if "label type: continuous" not in str(error):
            raise
        raise ValueError(
            "The target has numbers that are not whole, which are not classes. Use --task regression, or name another "
            "column by --target (-y)."
        ) from error
    if not result.n_samples:
        raise ValueError(
            f"The stream has no samples with a target. Check whether '{_name(source.stream)}' is empty, and name the "
            "column of targets by --target (-y)."
        )
    return result


def _model(estimator: str | None, settings: list[str] | None, model_file: Path | None, task: str) -> Any:
    """Return a new estimator, or the model to go on with."""
    from sklearn.base import is_regressor

    from ..io import load

    if model_file is None:
        chosen = [
            *([] if estimator else _SETTINGS[task]),
            *(settings or []),
        ]  # what the user sets comes last, and holds
        model = make_estimator(estimator or _DEFAULTS[task], chosen, task=task)
        if is_regressor(model) != (task == "regression"):
            raise ValueError(f"{type(model).__name__} is not for {task}. Choose another estimator, or another --task.")
        return model
    if estimator is not None or settings:
        raise ValueError(f"'{model_file}' has its own estimator and parameters. Leave --estimator (-e) and --set out.")
    model = load(model_file)
    if not hasattr(model, "predict_then_learn"):
        what = "a checkpoint; continue from it by --checkpoint and --resume"
        raise ValueError(
            f"'{model_file}' must be a model file of an online estimator; it holds "
            f"{what if isinstance(model, dict) else type(model).__name__}."
        )
    return model


def _source(
    data: str, target: str | None, views: str | None, id_column: str | None, weights: str | None, encoding: str | None,
    na: list[str] | None, stdin_format: str, kinds: dict[str, Any],
) -> Any:  # fmt: skip
    """Return where samples come from."""
    from ..evaluation._stream_items import SampleStream
    from ..io import read_layout

    layout, target, id_column = read_layout(views, target, id_column)
    reading: dict[str, Any] = {"target": target or "y", "views": layout, "ids": id_column, "na_values": na or ()}
    reading |= kinds
    if data != "-":
        return SampleStream(data, None, {**reading, "encoding": encoding}, weights)
    if encoding is not None:
        sys.stdin.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    slow = {"format": str(stdin_format), "chunk": 64}  # samples that come slowly
    return SampleStream(sys.stdin, None, {**reading, **slow}, weights)


def _prepare(model: Any, source: Any, *, skip: bool) -> None:
    """Let a new estimator scale the views of its stream, also later ones, if it was not told how to prepare them."""
    if "prepare" not in model.get_params(deep=False) or model.prepare is not None:
        return
    from ..views.per_view import PerView

    first = source.first_views(skip=skip)
    if first is not None:
        kinds = {name: first.kind(name) for name in first.names}
        others = {
            name: "hash" if kind == "objects" else "passthrough" for name, kind in kinds.items() if kind != "dense"
        }
        model.set_params(prepare=PerView(others, remainder=["impute", "standardize"]))


def _views(model: Any) -> str:
    """Return what was read as views, and how they were prepared."""
    steps = getattr(getattr(model, "preparation_", None), "transformers_", {})
    words = []
    for name, (kind, width, _) in model._known.items():
        columns = f"{width} column{'s' * (width != 1)}" if kind == "numbers" else kind
        recipes = map(str, getattr(steps.get(name), "given", []))
        words.append(f"{name} ({', '.join([columns, *recipes])})")
    return ", ".join(words)


def _listed(names: list[str] | None) -> list[str] | None:
    return [name for part in names for name in part.split(",") if name] if names else None


def _name(data: Any) -> str:
    return "standard input" if data in ("-", sys.stdin) else Path(data).name


def _lines(result: Any) -> dict[str, Any]:
    """Return what the command prints for people, line by line."""
    from ..evaluation._stream_result import WORDS

    shown = {} if result.task == "regression" else {"samples": result.n_samples, "mistakes": result.n_mistakes}
    main = "MAE" if result.task == "regression" else "error"
    verdict = f" (the {main} is {result.verdict} the baseline)" if result.verdict else ""
    lines = {**shown, "samples": result.n_samples, main: result.error}
    lines[f"baseline {main}"] = f"{result.baseline_error:.4g}{verdict}"
    for name, value in result.measures.items():
        if WORDS.get(name) != main:
            base = result.baseline.get(name)
            lines[WORDS.get(name, name)] = f"{value:.4g}" + ("" if base is None else f" (baseline {base:.4g})")
    for name, own in result.by_view.items():
        lines[f"view {name}"] = f"right in {own.share:.1%} of {own.weight:,.0f} samples, {own.recent:.1%} recently"
    if result.drifts:
        lines["drifts"] = " ".join(map(str, result.drifts))
    counts = {"skipped": result.n_skipped, "awaited": result.n_pending, "dropped": result.n_dropped,
              "ignored": result.n_ignored}  # fmt: skip
    return {**lines, **{name: count for name, count in counts.items() if count}}


def _write(model: Any, result: Any, source: Any, save_to: Path | None, report: Path | None) -> None:
    """Write the model file and the report."""
    from ..io import save

    if save_to is not None:
        save(model, save_to)
    if report is None:
        return
    from ..report import Provenance, StreamFindings, write_report

    data, name = source.stream, _name(source.stream)
    findings = StreamFindings(name, type(model).__name__, result, _mistake_bound(model, result, source))
    files = () if data is sys.stdin else (data,)
    origin = Provenance(files, given_command(), save_to)
    write_report(report, findings, title=f"{source.reading['target']} from {name}", provenance=origin)


def _mistake_bound(model: Any, result: Any, source: Any, most: int = 5000) -> Any:
    """Return the mistake bound of a stream, if its samples can be read again and are few enough."""
    from ..io import read_stream

    if source.stream is sys.stdin or result.n_samples > most or result.task != "classification":
        return None
    if source.sample_weight is not None or result.n_skipped or model.n_samples_seen_ != result.n_samples:
        return None
    pieces = list(read_stream(source.stream, chunk=most, **source.reading))
    return model.certificate(*pieces[0]) if len(pieces) == 1 and len(pieces[0][0]) == model.n_samples_seen_ else None
