"""The command line: demo, compare, fit, predict, evaluate, stream, inspect, estimators and kernels.

Exit codes: 0 done, 1 the data or the model cannot be used (one sentence says why), 2 the command was not understood,
130 stopped by Ctrl-C. Heavy packages are imported only when a command runs.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

try:
    import typer
except ImportError as error:  # pragma: no cover
    raise SystemExit("The command line needs typer and rich: pip install 'consilience[cli]'.") from error

from . import _options as option
from ._data import (
    check_outputs,
    is_numeric,
    labeled,
    load_model,
    read_for_model,
    read_preparation,
    views_of_model,
    warn_of_missing,
    with_batches,
)
from ._estimators import all_estimators, as_spelled, describe, make_estimator, task_of_class, without_samples
from ._output import BOARD, board_rows, csv_lines, show

app = typer.Typer(
    name="consilience",
    help="Learning from several views of the same samples.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


class _Stopped(Exception):
    """Ctrl-C, and what there is to say about it."""


@app.callback()
def _shared_options(debug: option.DebugFlag = False) -> None:
    """Learning from several views of the same samples."""
    if debug:
        os.environ["CONSILIENCE_DEBUG"] = "1"


def _form_of_files(transpose: bool, encoding: str | None, na: list[str] | None) -> dict[str, Any]:
    """Return the options of `read_samples` about the form of files."""
    return {"transpose": transpose, "encoding": encoding, "na_values": na or ()}


# -- compare
@app.command()
def demo(
    report: option.DemoReport = Path("demo.html"), jobs: option.NumberOfJobs = -1, json_out: option.JsonFlag = False
) -> None:
    """Compare estimators on example data.

    Cross-validates every estimator, and single views, on breast cancer and digits of scikit-learn, learns the digits as
    a stream, and writes a report. Takes under a minute on two cores.
    """
    from ..report import write_report
    from .demo import demo_parts

    check_outputs(report)
    parts: list[Any] = []
    summary: dict[str, Any] = {}
    for part in demo_parts(n_jobs=jobs, verbose=not json_out):
        parts.append(part)
        summary[part.title] = _show_board(part, json_out) if hasattr(part, "board") else _show_stream(part, json_out)
    write_report(report, parts, title="Estimators on several views")
    summary["report"] = str(report.absolute())
    if json_out:
        show(summary, True)
    else:
        typer.echo(f"\nReport: {report.absolute()}")


def _show_board(part: Any, json_out: bool) -> dict[str, Any]:
    """Print one comparison of the demo, and return it for JSON."""
    summary = {"samples": len(part.X), "views": list(part.X.names), **board_rows(part.board)}
    if not json_out:
        typer.echo(f"\n{part.title}: {part.X}\n")
        show({}, False, BOARD, summary["leaderboard"])
    return summary


def _show_stream(part: Any, json_out: bool) -> dict[str, Any]:
    """Print the stream of the demo, and return it for JSON."""
    results = {part.estimator: part.result, **part.others}
    rows = [{"estimator": n, "mistakes": r.n_mistakes, "error": r.error} for n, r in results.items()]
    if not json_out:
        typer.echo(f"\n{part.title}: {part.result.n_samples:,} samples, each predicted, then learned\n")
        show({}, False, ["estimator", "mistakes", "error"], rows)
        typer.echo(f"\n{part.estimator}: {part.certificate}")
    return {"samples": part.result.n_samples, "estimators": rows}


@app.command("compare")
def compare_files(
    data: option.DataFiles,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    groups: option.GroupsColumn = None,
    estimator: option.EstimatorNames = None,
    task: option.TaskName = None,
    scoring: option.ScoringName = None,
    prepare: option.Preparations = None,
    top_k: option.TopColumns = None,
    batch: option.BatchColumn = None,
    cv: option.NumberOfFolds = 5,
    seed: option.Seed = 0,
    jobs: option.NumberOfJobs = -1,
    save_to: option.SavedBest = None,
    share: option.ShareFlag = False,
    report: option.ReportFile = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Compare all estimators on your data.

    Nested cross-validation: parameters are chosen within the training part of each fold. The leaderboard shows scores
    with 95% confidence intervals, and fit times in seconds.
    """
    from ..evaluation.candidates import used_views
    from ..evaluation.comparison import candidates, compare
    from ..io import read_samples

    check_outputs(save_to, report, inputs=data)  # before minutes of work
    if share and save_to is None:
        raise ValueError("--share is about the model file: name it by --save.")
    if jobs == 0:
        raise ValueError("--jobs is at least 1, or -1 for all cores; got 0.")
    steps = read_preparation(prepare, batch, top_k)
    columns = [batch] if batch else []
    form = _form_of_files(transpose, encoding, na)
    samples = read_samples(data, views=views, target=target, ids=id_column, groups=groups, columns=columns, **form)
    samples, left_out = labeled(with_batches(samples, batch))
    X, y = samples.X, samples.y
    names = as_spelled(estimator, candidates(X, y, task=task, prepare=steps)) if estimator else None
    board = compare(
        X, y, task=task, scoring=scoring, cv=cv, groups=samples.groups, estimators=names, prepare=steps,
        random_state=seed, n_jobs=jobs, verbose=not json_out,
    )  # fmt: skip
    summary: dict[str, Any] = {"samples": len(X), "views": used_views(X, steps), **board_rows(board)}
    if left_out:
        summary["left out"] = left_out
    if not json_out:
        _print_board(board, X, summary["leaderboard"])
    if report is not None:
        title = ", ".join(path.name.partition(".")[0] for path in data)  # without .csv.gz
        _write_findings(report, samples, board, title, target or "A target", jobs, json_out)
        summary["report"] = str(report.absolute())
    if save_to is not None:
        summary.update(_save_best(board, samples, save_to, share, json_out))
    if json_out:
        show(summary, True)


def _save_best(board: Any, samples: Any, save_to: Path, share: bool, json_out: bool) -> dict[str, str]:
    """Fit the best estimator on all samples, save it, and return what was saved for JSON."""
    from ..io import save

    best, shared = without_samples(board.refit(board[0].name, samples.X, samples.y), share)
    save(best, save_to)
    if not json_out:
        typer.echo("\n".join([f"{board[0].name} saved to {save_to}", *shared.values()]))
    return {"saved": str(save_to), **shared}


def _print_board(board: Any, X: Any, rows: Any) -> None:
    """Print a leaderboard, the views that it does not have alone, and the estimators that failed."""
    from ..evaluation.candidates import used_views

    typer.echo(f"{board.scoring} on held-out samples of {len(X):,}, with 95% intervals; fit_time in seconds")
    show({}, False, BOARD, rows)
    names = used_views(X, board.prepare)
    lost = [name for name in names if not X.present(name).all()] if len(names) > 1 else []
    if lost:
        typer.echo(f"Not compared alone, because some samples lack them: {', '.join(lost)}.", err=True)
    for name, reason in board.failed.items():
        typer.echo(f"{name} could not be fitted: {reason}", err=True)


def _write_findings(report: Path, samples: Any, board: Any, title: str, target: str, jobs: int, json_out: bool) -> None:
    """Examine a comparison, and write the report on it."""
    from ..report import examine, write_report

    findings = examine(samples.X, samples.y, board, title=title, n_jobs=jobs, verbose=not json_out)
    write_report(report, findings, title=f"{target} from {title}")
    if not json_out:
        typer.echo(f"Report: {report.absolute()}")


# -- fit, predict, evaluate
@app.command()
def fit(
    data: option.DataFiles,
    save_to: option.NewModel,
    estimator: option.EstimatorName,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    settings: option.Settings = None,
    task: option.TaskName = None,
    scale: option.ScaleFlag = True,
    prepare: option.Preparations = None,
    top_k: option.TopColumns = None,
    batch: option.BatchColumn = None,
    share: option.ShareFlag = False,
    json_out: option.JsonFlag = False,
) -> None:
    """Fit an estimator and write it to a model file."""
    from sklearn.base import is_regressor
    from sklearn.pipeline import make_pipeline

    from ..evaluation.candidates import preparation_steps, prepared, scaled, task_of
    from ..io import read_samples, save

    check_outputs(save_to, inputs=data)
    preparation = read_preparation(prepare, batch, top_k)
    columns = [batch] if batch else []
    form = _form_of_files(transpose, encoding, na)
    samples = read_samples(data, views=views, target=target, ids=id_column, columns=columns, **form)
    samples = with_batches(samples, batch)
    X, y = samples.X, samples.y
    if y is None:
        raise ValueError("Name the column of the class or target by --target (-y), or in the TOML file.")
    numeric = is_numeric(y)
    default = task_of(y[y == y]) if numeric else "classification"  # without missing targets, which are NaN
    model = make_estimator(estimator, settings, task=task or default)
    complete = numeric and bool((y == y).all())  # samples without a target may take part; targets are then not scaled
    kind = "regression" if is_regressor(model) and complete else "classification"
    steps = preparation_steps(preparation, "regression" if is_regressor(model) else "classification")
    pipeline = make_pipeline(*steps, model)
    if scale:
        pipeline = scaled(prepared(steps, X, y), model, task=kind, steps=steps)
    pipeline.fit(X, y)
    pipeline, shared = without_samples(pipeline, share, X, y)
    save(pipeline, save_to)
    show({**describe(pipeline), "samples": len(X), "saved": str(save_to), **shared}, json_out)


@app.command()
def predict(
    model_file: option.ModelFile,
    data: option.DataFiles,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    out: option.OutputTable = None,
    missing_columns: option.MissingColumnsOption = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Predict the samples of files."""
    from ..io.writing import is_standard_output, write_atomically

    check_outputs(out, inputs=[model_file, *data])
    model = load_model(model_file, missing_columns)
    known = views_of_model(model, model_file)
    form = _form_of_files(transpose, encoding, na)
    samples, known = read_for_model(model, known, data, views=views, ids=id_column, **form)
    missing = warn_of_missing(known, samples.X)
    predictions = model.predict(samples.X).tolist()
    known_names = samples.X.sample_names
    names = list(range(len(predictions))) if known_names is None else known_names.tolist()
    pairs = list(zip(names, predictions, strict=True))
    if out is None:
        rows = [{"id": name, "prediction": prediction} for name, prediction in pairs]
        show({"predictions": rows, **missing}, json_out, ["id", "prediction"], rows)
        return
    text, changed = csv_lines([(id_column or "id", "prediction"), *pairs])
    write_atomically(out, lambda file: file.write(text.encode()))
    if changed:
        typer.echo(f"{changed} cells that begin like formulas got an apostrophe (') in front.", err=True)
    if not is_standard_output(out):
        summary = {"predictions": len(predictions), "written": str(out), **missing}
        show({**summary, **({"changed cells": changed} if changed else {})}, json_out)


@app.command()
def evaluate(
    model_file: option.ModelFile,
    data: option.DataFiles,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    missing_columns: option.MissingColumnsOption = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Score a model on samples with known targets."""
    from sklearn.base import is_classifier
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_squared_error, r2_score

    model = load_model(model_file, missing_columns)
    known = views_of_model(model, model_file)
    form = _form_of_files(transpose, encoding, na)
    samples, known = read_for_model(model, known, data, views=views, target=target, ids=id_column, **form)
    samples, left_out = labeled(samples, quiet=True)
    missing = warn_of_missing(known, samples.X)
    if not is_classifier(model) and not is_numeric(samples.y):
        raise ValueError(f"The model is for regression, but the target has {samples.y[0]!r}, for example.")
    predictions = model.predict(samples.X)
    if is_classifier(model):
        scores = {"accuracy": accuracy_score, "balanced accuracy": balanced_accuracy_score}
    else:
        scores = {"r2": r2_score, "mean squared error": mean_squared_error}
    results = {name: float(score(samples.y, predictions)) for name, score in scores.items()}
    show({**results, "samples": len(predictions), **({"left out": left_out} if left_out else {}), **missing}, json_out)


# -- streams
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
    """Predict, score and learn the samples of a stream, one by one."""
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
        raise _Stopped(str(stopped)) from stopped
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
        from ..report import StreamFindings, write_report

        bound = _mistake_bound(model, result, data, options)
        findings = StreamFindings(name, type(model).__name__, result, bound)
        write_report(report, findings, title=f"{target or 'y'} from {name}")
    written = {"saved": save_to, "checkpoint": checkpoint, "report": report}
    show({**summary, **{what: str(path) for what, path in written.items() if path is not None}}, json_out)


def _mistake_bound(model: Any, result: Any, data: str, options: dict[str, Any], most: int = 5000) -> Any:
    """Return the mistake bound of a stream, if its samples can be read again and are few enough."""
    from ..io import read_stream

    if data == "-" or result.n_samples > most:
        return None
    pieces = list(read_stream(data, chunk=most, **options))
    return model.certificate(*pieces[0]) if len(pieces) == 1 and len(pieces[0][0]) == model.n_samples_seen_ else None


# -- lists
@app.command()
def inspect(model_file: option.ModelFile, json_out: option.JsonFlag = False) -> None:
    """Describe a model file."""
    from ..io import load

    content = load(model_file)
    if isinstance(content, dict) and "model" in content:
        show({"checkpoint after": content["position"], **describe(content["model"])}, json_out)
    else:
        show(describe(content), json_out)


@app.command()
def estimators(json_out: option.JsonFlag = False) -> None:
    """List the estimators, with their task and paper."""
    rows = [
        {"name": name, "task": task_of_class(name), "description": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in all_estimators().items()
    ]
    show({"estimators": rows}, json_out, ["name", "task", "description"], rows)


@app.command()
def kernels(json_out: option.JsonFlag = False) -> None:
    """List the kernels."""
    from .. import kernels as module
    from ..kernels import Kernel

    values = {name: getattr(module, name) for name in module.__all__}
    rows = [
        {"name": name, "description": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in values.items()
        if isinstance(cls, type) and issubclass(cls, Kernel) and cls is not Kernel
    ]
    show({"kernels": rows}, json_out, ["name", "description"], rows)


def main() -> None:
    """Run the command line; an error is one sentence unless --debug is given."""
    words = [word for word in sys.argv[1:] if word != "--debug"]  # typer would accept it before the command only
    if len(words) < len(sys.argv) - 1:
        os.environ["CONSILIENCE_DEBUG"] = "1"
    debug = bool(os.environ.get("CONSILIENCE_DEBUG"))
    if not debug:
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers out of range get a sentence of their own
        warnings.showwarning = lambda message, *rest: typer.echo(f"Warning: {message}", err=True)
    try:
        code = app(words, standalone_mode=False)  # otherwise typer prints errors its own way and exits
        if code == 130:
            typer.echo("Stopped.", err=True)
        sys.exit(code)
    except (_Stopped, typer.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # which typer considers the end of a dialog
            typer.echo(f"Error: A file ends too early: {stopped.__cause__}", err=True)
            sys.exit(1)
        typer.echo(str(stopped) or "Stopped.", err=True)
        sys.exit(130)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # the command was not understood
            error.show()
            sys.exit(error.exit_code)
        if debug:
            raise
        typer.echo(f"Error: {_sentence(error)}", err=True)
        sys.exit(1)


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"There is no file '{error.filename}'."
    if isinstance(error, OSError) and error.strerror:  # of the system
        return f"'{error.filename}': {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error) or type(error).__name__


if __name__ == "__main__":
    main()
