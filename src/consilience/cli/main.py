"""The command line: demo, fit, predict, evaluate, compare, stream and inspect from files.

Exit codes: 0 done, 1 the data or the model cannot be used (one sentence says why), 2 the command was not understood,
130 stopped by Ctrl-C. Nothing heavy is imported before a command runs.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

from ._commands import (  # fmt: skip
    BOARD,
    about,
    all_learners,
    board_rows,
    check_places,
    csv_lines,
    is_numeric,
    known_views,
    labeled,
    learner_called,
    loaded,
    made,
    named,
    not_alone,
    samples_of,
    show,
    tell_missing,
)

try:
    import typer
except ImportError as error:  # pragma: no cover
    raise SystemExit("The command line needs typer and rich: pip install 'consilience[cli]'.") from error

app = typer.Typer(
    name="consilience",
    help="Learning from several views of the same things.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Data = Annotated[list[Path], typer.Argument(help="One file, or one file per view matched by --id.")]
Target = Annotated[
    str | None, typer.Option("--target", "-y", help="The column of the class or target; a TOML file may name it too.")
]
Layout = Annotated[
    str | None,
    typer.Option(
        "--views", help="'prefix' (audio__mfcc1 is of audio), or a TOML file with columns by view in [views]."
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="The column that names the samples.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Folds worked on at a time; -1 is one per core.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write a report to look at, one HTML file.")]
Setting = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the learner, as name=value.")]


class _Stopped(Exception):
    """Ctrl-C, and what there is to say about it."""


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from; anywhere in a command.")
    ] = False,
) -> None:
    """Learning from several views of the same things."""
    if debug:
        os.environ["CONSILIENCE_DEBUG"] = "1"


# -- compare
@app.command()
def demo(
    report: Annotated[Path, typer.Option("--report", help="Where the report is written.")] = Path("demo.html"),
    jobs: Jobs = -1,
    json_out: Json = False,
) -> None:
    """Do the main job on embedded data, and write a report.

    Every learner is cross-validated on breast cancer and digits as views, single views beside them; digits come as a
    stream. It takes under a minute on two cores.
    """
    from ..report import Findings, write_report
    from .demo import demo_parts

    check_places(report)
    parts: list[Any] = []
    found: dict[str, Any] = {}
    for part in demo_parts(n_jobs=jobs, verbose=not json_out):
        parts.append(part)
        if isinstance(part, Findings):
            found[part.title] = {"samples": len(part.X), "views": list(part.X.names), **board_rows(part.board)}
            if not json_out:
                typer.echo(f"\n{part.title}: {part.X}\n")
                show({}, False, BOARD, found[part.title]["leaderboard"])
        else:
            results = {part.learner: part.result, **part.others}
            rows = [{"learner": n, "mistakes": r.mistakes, "error": r.error} for n, r in results.items()]
            found[part.title] = {"samples": part.result.n_samples, "learners": rows}
            if not json_out:
                typer.echo(f"\n{part.title}: {part.result.n_samples:,} samples, each predicted, then learned\n")
                show({}, False, ["learner", "mistakes", "error"], rows)
                typer.echo(f"\n{part.learner}: {part.certificate}")
    write_report(report, parts, title="Several views, one answer")
    found["report"] = str(report.absolute())
    if json_out:
        show(found, True)
    else:
        typer.echo(f"\nThe report: {report.absolute()}")


@app.command()
def compare(
    data: Data,
    target: Target = None,
    views: Layout = None,
    id_column: Id = None,
    only: Annotated[list[str] | None, typer.Option("--learner", "-l", help="Compare these only.")] = None,
    numbers: Annotated[
        bool | None,
        typer.Option("--numbers/--classes", help="What the target has; by default numbers where they are not whole."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Outer folds.")] = 5,
    seed: Annotated[int, typer.Option(help="The seed of the folds.")] = 0,
    jobs: Jobs = -1,
    save_to: Annotated[Path | None, typer.Option("--save", help="Write the best model, fitted on all samples.")] = None,
    report: Report = None,
    json_out: Json = False,
) -> None:
    """Compare all learners on your data: a leaderboard.

    Nested cross-validation: parameters are chosen within the training part of each fold. Scores come with confidence
    intervals and times.
    """
    from ..evaluation.comparison import candidates
    from ..evaluation.comparison import compare as run
    from ..io.model_files import save

    check_places(save_to, report, inputs=data)
    if jobs == 0:
        raise ValueError("--jobs is at least 1, or -1 for one per core; got 0.")
    samples, left_out = labeled(samples_of(data, views, target, id_column))
    if left_out:
        typer.echo(f"{left_out} samples without a target are left out.", err=True)
    X, y = samples.X, samples.y
    board = run(
        X, y, learners=named(only, lambda: candidates(X, y, numbers=numbers)), numbers=numbers, folds=folds,
        random_state=seed, n_jobs=jobs, verbose=not json_out,
    )  # fmt: skip
    found: dict[str, Any] = {"samples": len(X), "views": list(X.names), **board_rows(board)}
    if left_out:
        found["left out"] = left_out
    if not json_out:
        print(f"{board.measure} on held-out samples of {len(X):,}, with 95 % intervals")
        show({}, False, BOARD, found["leaderboard"])
        for told in not_alone(X):
            print(told, file=sys.stderr)
        for name, reason in board.failed.items():
            typer.echo(f"{name} could not be fitted: {reason}", err=True)
    if report is not None:
        from ..report import examine, write_report

        title = ", ".join(path.stem for path in data)
        ids = None if samples.ids is None else samples.ids.tolist()
        findings = examine(X, y, board, title=title, ids=ids, n_jobs=jobs, verbose=not json_out)
        write_report(report, findings, title=f"{target or 'A target'} from {title}")
        found["report"] = str(report.absolute())
        if not json_out:
            typer.echo(f"The report: {report.absolute()}")
    if save_to is not None:
        save(board.fitted(board[0].name, X, y), save_to)
        found["saved"] = str(save_to)
        if not json_out:
            typer.echo(f"{board[0].name} saved to {save_to}")
    if json_out:
        show(found, True)


# -- fit, predict, evaluate
@app.command()
def fit(
    data: Data,
    save_to: Annotated[Path, typer.Option("--save", help="Where the model file is written.")],
    learner: Annotated[str, typer.Option("--learner", "-l", help="See `consilience learners`.")],
    target: Target = None,
    views: Layout = None,
    id_column: Id = None,
    settings: Setting = None,
    scale: Annotated[
        bool, typer.Option(help="Scale dense views, gaps in them filled with means, and numbers that are predicted.")
    ] = True,
    json_out: Json = False,
) -> None:
    """Fit a learner and write it to a file."""
    from sklearn.base import is_regressor
    from sklearn.pipeline import make_pipeline

    from ..evaluation.candidates import is_numbers, scaled
    from ..io.model_files import save

    check_places(save_to, inputs=data)
    samples = samples_of(data, views, target, id_column)
    cls = learner_called(learner)
    model = made(cls, settings, numbers=is_numeric(samples.y) and is_numbers(samples.y[samples.y == samples.y]))
    whole = is_numeric(samples.y) and bool((samples.y == samples.y).all())  # rows without a target may help too
    pipeline = scaled(samples.X, model, numbers=is_regressor(model) and whole) if scale else make_pipeline(model)
    pipeline.fit(samples.X, samples.y)
    save(pipeline, save_to)
    found = {**about(pipeline), "samples": len(samples.X), "saved": str(save_to)}
    show(found, json_out)


@app.command()
def predict(
    model_file: Annotated[Path, typer.Argument(help="A model file.")],
    data: Data,
    views: Layout = None,
    id_column: Id = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A CSV file, device or pipe for the predictions; else they are printed. Text that begins with = + - "
            "@, a tab or a line break gets an apostrophe (') in front, so that spreadsheet programs do not run it.",
        ),
    ] = None,
    json_out: Json = False,
) -> None:
    """Predict the samples of files."""
    from ..io.writing import is_standard_output, write_atomically

    check_places(out, inputs=[model_file, *data])
    model = loaded(model_file)
    known = known_views(model, model_file)
    samples = samples_of(data, views, None, id_column, known)
    missing = tell_missing(known, samples.X)
    answers = model.predict(samples.X).tolist()
    names = list(range(len(answers))) if samples.ids is None else samples.ids.tolist()
    pairs = list(zip(names, answers, strict=True))
    if out is None:
        rows = [{"id": name, "prediction": answer} for name, answer in pairs]
        show({"predictions": rows, **missing}, json_out, ["id", "prediction"], rows)
        return
    text, changed = csv_lines([(id_column or "id", "prediction"), *pairs])
    write_atomically(out, lambda file: file.write(text.encode()))
    if changed:
        typer.echo(f"{changed} cells that begin like formulas got an apostrophe (') in front.", err=True)
    if not is_standard_output(out):
        told = {"predictions": len(answers), "written": str(out), **missing}
        show({**told, **({"changed cells": changed} if changed else {})}, json_out)


@app.command()
def evaluate(
    model_file: Annotated[Path, typer.Argument(help="A model file.")],
    data: Data,
    target: Target = None,
    views: Layout = None,
    id_column: Id = None,
    json_out: Json = False,
) -> None:
    """Score a model on samples with their classes or targets."""
    from sklearn.base import is_classifier
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_squared_error, r2_score

    model = loaded(model_file)
    known = known_views(model, model_file)
    samples, left_out = labeled(samples_of(data, views, target, id_column, known))
    missing = tell_missing(known, samples.X)
    if not is_classifier(model) and not is_numeric(samples.y):
        raise ValueError(f"The model predicts numbers, and the target has {samples.y[0]!r}, for example.")
    answers = model.predict(samples.X)
    if is_classifier(model):
        found = {
            "accuracy": float(accuracy_score(samples.y, answers)),
            "balanced accuracy": float(balanced_accuracy_score(samples.y, answers)),
        }
    else:
        found = {"R2": float(r2_score(samples.y, answers)), "mse": float(mean_squared_error(samples.y, answers))}
    show({**found, "samples": len(answers), **({"left out": left_out} if left_out else {}), **missing}, json_out)


# -- streams
@app.command()
def stream(
    data: Annotated[
        str, typer.Argument(help="Parquet, a folder of it, CSV, libsvm, JSON lines; '-' reads standard input.")
    ],
    target: Target = None,
    learner: Annotated[str, typer.Option("--learner", "-l", help="An online learner.")] = "OrthogonalPerceptron",
    views: Layout = None,
    settings: Setting = None,
    stdin_is: Annotated[str, typer.Option("--format", help="Of standard input: jsonl, csv or tsv.")] = "jsonl",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Written every --every samples, at the end and on Ctrl-C.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Samples between checkpoints.")] = 10_000,
    resume: Annotated[bool, typer.Option(help="Go on from the checkpoint.")] = False,
    save_to: Annotated[Path | None, typer.Option("--save", help="Where the model file is written.")] = None,
    report: Report = None,
    json_out: Json = False,
) -> None:
    """Predict, score, learn: one pass over a stream."""
    from ..evaluation.progressive import progressive_validation
    from ..io.files import read_layout
    from ..io.model_files import save

    check_places(checkpoint, save_to, report, inputs=[] if data == "-" else [Path(data)])
    model = made(learner_called(learner), settings)
    given, target, _ = read_layout(views, target)
    target = target or "y"
    source: Any = _standard_input(stdin_is, target, given) if data == "-" else data
    options = {} if data == "-" else {"target": target, "views": given}
    try:
        result = progressive_validation(
            model, source, checkpoint=checkpoint, every=every, resume=resume, verbose=not json_out, **options
        )
    except KeyboardInterrupt as stopped:  # the sentence says where all was saved
        raise _Stopped(str(stopped)) from stopped
    name = "standard input" if data == "-" else Path(data).name
    if not result.n_samples:
        raise ValueError(
            f"The stream has no samples with a class. See whether '{name}' is empty, and name the column of classes by "
            "--target (-y)."
        )
    found: dict[str, Any] = {"samples": result.n_samples, "mistakes": result.mistakes, "error": result.error}
    if save_to is not None:
        save(model, save_to)
        found["saved"] = str(save_to)
    if checkpoint is not None:
        found["checkpoint"] = str(checkpoint)
    if report is not None:
        from ..report import StreamFindings, write_report

        proof = _proved(model, result, data, options)
        write_report(report, StreamFindings(name, type(model).__name__, result, proof), title=f"{target} from {name}")
        found["report"] = str(report)
    show(found, json_out)


def _proved(model: Any, result: Any, data: str, options: dict[str, Any], most: int = 5000) -> Any:
    """The mistake bound of a stream, where its samples can be read again and are few enough to look for one."""
    from ..evaluation.progressive import read_stream

    if data == "-" or result.n_samples > most:
        return None
    pieces = list(read_stream(data, chunk=most, **options))
    return model.certificate(*pieces[0]) if len(pieces) == 1 and len(pieces[0][0]) == model.n_samples_seen_ else None


def _standard_input(kind: str, target: str, views: Any) -> Any:
    from ..evaluation.progressive import read_csv_lines, read_json_lines

    if kind == "jsonl":
        return read_json_lines(sys.stdin, "standard input", target=target, views=views)
    if kind not in ("csv", "tsv"):
        raise ValueError(f"--format is jsonl, csv or tsv; got '{kind}'.")
    comma = "," if kind == "csv" else "\t"
    return read_csv_lines(sys.stdin, "standard input", target=target, views=views, delimiter=comma)


# -- what there is
@app.command()
def inspect(model_file: Annotated[Path, typer.Argument(help="A model file.")], json_out: Json = False) -> None:
    """Say what is in a model file."""
    from ..io.model_files import load

    found = load(model_file)
    if isinstance(found, dict) and "model" in found:
        show({"checkpoint after": found["position"], **about(found["model"])}, json_out)
    else:
        show(about(found), json_out)


@app.command()
def learners(json_out: Json = False) -> None:
    """List the learners, what they are for and the paper."""
    from sklearn.base import is_classifier, is_regressor

    from ..online._frame import OnlineLearner

    rows = []
    for name, cls in all_learners().items():
        kind = "stream" if issubclass(cls, OnlineLearner) else "classes" if is_classifier(made(cls)) else "numbers"
        if kind == "numbers" and not is_regressor(made(cls)):
            kind = "any"
        rows.append({"name": name, "for": kind, "what": (cls.__doc__ or "").strip().splitlines()[0]})
    show({"learners": rows}, json_out, ["name", "for", "what"], rows)


@app.command()
def kernels(json_out: Json = False) -> None:
    """List the kernels."""
    from .. import kernels as module
    from ..kernels import Kernel

    found = {name: getattr(module, name) for name in module.__all__}
    rows = [
        {"name": name, "what": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in found.items()
        if isinstance(cls, type) and issubclass(cls, Kernel) and cls is not Kernel
    ]
    show({"kernels": rows}, json_out, ["name", "what"], rows)


def main() -> None:
    """Run the command line; errors are one sentence unless --debug is given."""
    words = [word for word in sys.argv[1:] if word != "--debug"]
    if len(words) < len(sys.argv) - 1:
        os.environ["CONSILIENCE_DEBUG"] = "1"
    debug = bool(os.environ.get("CONSILIENCE_DEBUG"))
    if not debug:
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers that are none get a sentence of their own
        warnings.showwarning = lambda message, *rest: typer.echo(f"Warning: {message}", err=True)
    try:
        code = app(words, standalone_mode=False)
        if code == 130:
            typer.echo("Stopped.", err=True)
        sys.exit(code)
    except (_Stopped, typer.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # which typer takes for the end of a dialog
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
