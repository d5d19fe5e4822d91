"""The command `stream`."""

import sys
from pathlib import Path
from typing import Any

from . import _options as option
from ._app import Stopped, app, given_command
from ._data import check_outputs
from ._estimators import make_estimator
from ._output import show


@app.command()
def stream(
    data: option.StreamSource,
    target: option.TargetColumn = None,
    estimator: option.EstimatorName = "OrthogonalPerceptron",
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    settings: option.Settings = None,
    stdin_format: option.InputFormat = option.InputFormats.jsonl,
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
      tail -f log.jsonl | consilience stream - -y label -e KernelPerceptron --checkpoint state.cons
    """
    from ..evaluation.progressive import progressive_validation
    from ..io import read_layout, read_stream, save

    check_outputs(checkpoint, save_to, report, inputs=[] if data == "-" else [Path(data)])
    model = make_estimator(estimator, settings)
    layout, target, id_column = read_layout(views, target, id_column)
    options: dict[str, Any] = {"target": target or "y", "views": layout, "ids": id_column, "na_values": na or ()}
    if data == "-":
        if encoding is not None:
            sys.stdin.reconfigure(encoding=encoding)  # type: ignore[union-attr]
        source = read_stream(sys.stdin, format=stdin_format, chunk=64, **options)  # samples that come slowly
    else:
        options["encoding"] = encoding
        source = read_stream(data, **options)
    try:
        result = progressive_validation(
            model, source, checkpoint=checkpoint, every=every, resume=resume, verbose=not json_out
        )
    except KeyboardInterrupt as stopped:  # its message says where the checkpoint is
        raise Stopped(str(stopped)) from stopped
    name = "standard input" if data == "-" else Path(data).name
    if not result.n_samples:
        raise ValueError(
            f"The stream has no samples with a class. Check whether '{name}' is empty, and name the column of classes "
            "by --target (-y)."
        )
    summary: dict[str, Any] = {"samples": result.n_samples, "mistakes": result.n_mistakes, "error": result.error}
    if save_to is not None:
        save(model, save_to)
    if report is not None:
        from ..report import Provenance, StreamFindings, write_report

        bound = _mistake_bound(model, result, data, options)
        findings = StreamFindings(name, type(model).__name__, result, bound)
        files = () if data == "-" else (data,)
        source_of = Provenance(files, given_command(), save_to)
        write_report(report, findings, title=f"{target or 'y'} from {name}", provenance=source_of)
    written = {"saved": save_to, "checkpoint": checkpoint, "report": report}
    show({**summary, **{what: str(path) for what, path in written.items() if path is not None}}, json_out)


def _mistake_bound(model: Any, result: Any, data: str, options: dict[str, Any], most: int = 5000) -> Any:
    """Return the mistake bound of a stream, if its samples can be read again and are few enough."""
    from ..io import read_stream

    if data == "-" or result.n_samples > most:
        return None
    pieces = list(read_stream(data, chunk=most, **options))
    return model.certificate(*pieces[0]) if len(pieces) == 1 and len(pieces[0][0]) == model.n_samples_seen_ else None
