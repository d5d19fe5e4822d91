"""The command line: demo, fit, predict, evaluate, compare, stream and inspect from files.

Exit codes: 0 done, 1 the data or the model will not do (one sentence says why), 2 the command was not understood, 130
stopped by Ctrl-C. Nothing heavy is imported before a command runs.
"""

import json
import math
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

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
    from ._demo import demo_parts
    from .report import Findings, write_report

    _check_places(report)
    parts: list[Any] = []
    found: dict[str, Any] = {}
    for part in demo_parts(n_jobs=jobs, verbose=not json_out):
        parts.append(part)
        if isinstance(part, Findings):
            found[part.title] = {"samples": len(part.X), "views": list(part.X.names), **_listed(part.board)}
            if not json_out:
                typer.echo(f"\n{part.title}: {part.X}\n")
                _show({}, False, _BOARD, found[part.title]["leaderboard"])
        else:
            results = {part.learner: part.result, **part.others}
            rows = [{"learner": n, "mistakes": r.mistakes, "error": r.error} for n, r in results.items()]
            found[part.title] = {"samples": part.result.n_samples, "learners": rows}
            if not json_out:
                typer.echo(f"\n{part.title}: {part.result.n_samples:,} samples, each predicted, then learned\n")
                _show({}, False, ["learner", "mistakes", "error"], rows)
                typer.echo(f"\n{part.learner}: {part.certificate}")
    write_report(report, parts, title="Several views, one answer")
    found["report"] = str(report.absolute())
    if json_out:
        _show(found, True)
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
    from .comparison import candidates
    from .comparison import compare as run
    from .persistence import save

    _check_places(save_to, report)
    if jobs == 0:
        raise ValueError("--jobs is at least 1, or -1 for one per core; got 0.")
    samples, left_out = _labeled(_samples(data, views, target, id_column))
    if left_out:
        typer.echo(f"{left_out} samples without a target are left out.", err=True)
    X, y = samples.X, samples.y
    board = run(
        X, y, learners=_named(only, lambda: candidates(X, y, numbers=numbers)), numbers=numbers, folds=folds,
        random_state=seed, n_jobs=jobs, verbose=not json_out,
    )  # fmt: skip
    found: dict[str, Any] = {"samples": len(X), "views": list(X.names), **_listed(board)}
    if left_out:
        found["left out"] = left_out
    if not json_out:
        _show({}, False, _BOARD, found["leaderboard"])
        for name, reason in board.failed.items():
            typer.echo(f"{name} could not be fitted: {reason}", err=True)
    if save_to is not None:
        save(board.fitted(board[0].name, X, y), save_to)
        found["saved"] = str(save_to)
        if not json_out:
            typer.echo(f"{board[0].name} saved to {save_to}")
    if report is not None:
        from .report import examine, write_report

        title = ", ".join(path.stem for path in data)
        ids = None if samples.ids is None else samples.ids.tolist()
        findings = examine(X, y, board, title=title, ids=ids, n_jobs=jobs, verbose=not json_out)
        write_report(report, findings, title=f"{target or 'A target'} from {title}")
        found["report"] = str(report.absolute())
        if not json_out:
            typer.echo(f"The report: {report.absolute()}")
    if json_out:
        _show(found, True)


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

    from .comparison import is_numbers, scaled
    from .persistence import save

    _check_places(save_to)
    samples = _samples(data, views, target, id_column)
    cls = _learner(learner)
    model = _made(cls, settings, numbers=_is_numeric(samples.y) and is_numbers(samples.y[samples.y == samples.y]))
    whole = _is_numeric(samples.y) and bool((samples.y == samples.y).all())  # rows without a target may help too
    pipeline = scaled(samples.X, model, numbers=is_regressor(model) and whole) if scale else make_pipeline(model)
    pipeline.fit(samples.X, samples.y)
    save(pipeline, save_to)
    found = {**_about(pipeline), "samples": len(samples.X), "saved": str(save_to)}
    _show(found, json_out)


@app.command()
def predict(
    model_file: Annotated[Path, typer.Argument(help="A model file.")],
    data: Data,
    views: Layout = None,
    id_column: Id = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A CSV file for the predictions; else they are printed.")
    ] = None,
    json_out: Json = False,
) -> None:
    """Predict the samples of files."""
    from ._files import write_atomically

    _check_places(out)
    model = _loaded(model_file)
    samples = _samples(data, views, None, id_column, model)
    answers = model.predict(_known(model, samples.X)).tolist()
    names = list(range(len(answers))) if samples.ids is None else samples.ids.tolist()
    if out is not None:
        lines = "\n".join(
            ["id,prediction", *(f"{_quoted(a)},{_quoted(b)}" for a, b in zip(names, answers, strict=True))]
        )
        write_atomically(out, lambda file: file.write((lines + "\n").encode()))
        _show({"predictions": len(answers), "written": str(out)}, json_out)
        return
    rows = [{"id": name, "prediction": answer} for name, answer in zip(names, answers, strict=True)]
    _show({"predictions": rows}, json_out, ["id", "prediction"], rows)


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

    model = _loaded(model_file)
    samples, left_out = _labeled(_samples(data, views, target, id_column, model))
    if not is_classifier(model) and not _is_numeric(samples.y):
        raise ValueError(f"The model predicts numbers, and the target has {samples.y[0]!r}, for example.")
    answers = model.predict(_known(model, samples.X))
    if is_classifier(model):
        found = {
            "accuracy": float(accuracy_score(samples.y, answers)),
            "balanced accuracy": float(balanced_accuracy_score(samples.y, answers)),
        }
    else:
        found = {"R2": float(r2_score(samples.y, answers)), "mse": float(mean_squared_error(samples.y, answers))}
    _show({**found, "samples": len(answers), **({"left out": left_out} if left_out else {})}, json_out)


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
    from .files import read_layout
    from .persistence import save
    from .streams import progressive_validation

    _check_places(save_to, report)
    model = _made(_learner(learner), settings)
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
    if not result.n_samples:
        raise ValueError("The stream has no samples with a class.")
    found: dict[str, Any] = {"samples": result.n_samples, "mistakes": result.mistakes, "error": result.error}
    if save_to is not None:
        save(model, save_to)
        found["saved"] = str(save_to)
    if checkpoint is not None:
        found["checkpoint"] = str(checkpoint)
    if report is not None:
        from .report import StreamFindings, write_report

        name = "standard input" if data == "-" else Path(data).name
        proof = _proved(model, result, data, options)
        write_report(report, StreamFindings(name, type(model).__name__, result, proof), title=f"{target} from {name}")
        found["report"] = str(report)
    _show(found, json_out)


def _proved(model: Any, result: Any, data: str, options: dict[str, Any], most: int = 5000) -> Any:
    """The mistake bound of a stream, where its samples can be read again and are few enough to look for one."""
    from .streams import read_stream

    if data == "-" or result.n_samples > most:
        return None
    pieces = list(read_stream(data, chunk=most, **options))
    return model.certificate(*pieces[0]) if len(pieces) == 1 and len(pieces[0][0]) == model.n_seen_ else None


def _standard_input(kind: str, target: str, views: Any) -> Any:
    from .streams import read_csv_lines, read_json_lines

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
    from .persistence import load

    found = load(model_file)
    if isinstance(found, dict) and "model" in found:
        _show({"checkpoint after": found["position"], **_about(found["model"])}, json_out)
    else:
        _show(_about(found), json_out)


@app.command()
def learners(json_out: Json = False) -> None:
    """List the learners, what they are for and the paper."""
    from sklearn.base import is_classifier, is_regressor

    from .online._frame import OnlineLearner

    rows = []
    for name, cls in _learners().items():
        kind = "stream" if issubclass(cls, OnlineLearner) else "classes" if is_classifier(_made(cls)) else "numbers"
        if kind == "numbers" and not is_regressor(_made(cls)):
            kind = "any"
        rows.append({"name": name, "for": kind, "what": (cls.__doc__ or "").strip().splitlines()[0]})
    _show({"learners": rows}, json_out, ["name", "for", "what"], rows)


@app.command()
def kernels(json_out: Json = False) -> None:
    """List the kernels."""
    from . import kernels as module
    from .kernels import Kernel

    found = {name: getattr(module, name) for name in module.__all__}
    rows = [
        {"name": name, "what": (cls.__doc__ or "").strip().splitlines()[0]}
        for name, cls in found.items()
        if isinstance(cls, type) and issubclass(cls, Kernel) and cls is not Kernel
    ]
    _show({"kernels": rows}, json_out, ["name", "what"], rows)


# -- pieces
_BOARD = ["learner", "score", "low", "high", "seconds"]


def _listed(board: Any) -> dict[str, Any]:
    rows = [{"learner": r.name, "score": r.score, "low": r.low, "high": r.high, "seconds": r.seconds} for r in board]
    return {"measure": board.measure, "leaderboard": rows}


def _check_places(*paths: Path | None) -> None:
    """Nothing is worked on for minutes and then not written."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"The folder '{path.absolute().parent}' does not exist. Make it first.")
        if path is not None and path.is_dir():
            raise ValueError(f"'{path}' is a folder. Name a file to write.")


def _samples(data: list[Path], views: Any, target: str | None, id_column: str | None, model: Any = None) -> Any:
    from .comparison import learner_of
    from .files import read_samples

    stored = getattr(learner_of(model), "_known", {}) if model is not None else {}
    known = {name: columns for name, (_, _, columns) in stored.items() if columns}
    return read_samples(data, views=views, target=target, ids=id_column, known=known)


def _loaded(path: Path) -> Any:
    """The model of a model file or of a checkpoint."""
    from .persistence import load

    found = load(path)
    return found["model"] if isinstance(found, dict) and "model" in found else found


def _is_numeric(y: Any) -> bool:
    return y is not None and y.dtype.kind in "iuf"


def _named(only: list[str] | None, known: Any) -> list[str] | None:
    """Learners as they are called, however they were written."""
    if not only:
        return None
    plain = {name.lower().replace("-", "").replace("_", ""): name for name in known()}
    return [plain.get(name.lower().replace("-", "").replace("_", ""), name) for name in only]


def _labeled(samples: Any) -> tuple[Any, int]:
    """The samples that have a target, and how many have none."""
    import numpy as np

    from .files import Samples

    y = samples.y
    if y is None:
        raise ValueError("Name the column of the class or target by --target (-y), or in the TOML file.")
    known = np.array([v is not None and v == v for v in y.tolist()], dtype=bool)
    if not known.any():
        raise ValueError("No sample has a target.")
    kept = y[known]
    ids = None if samples.ids is None else samples.ids[known]
    labels = np.array(kept.tolist()) if y.dtype == object else kept
    return Samples(samples.X if known.all() else samples.X[known], labels, ids), int((~known).sum())


def _known(model: Any, X: Any) -> Any:
    """The views and columns that the model knows, so that files with the target or more columns serve too."""
    from .comparison import learner_of
    from .views import Views

    last = learner_of(model)
    if len(X.names) == len(last.view_names_in_) == 1 and X.names != tuple(last.view_names_in_):
        X = Views._of({last.view_names_in_[0]: X.block(X.names[0])}, len(X), X.mask, {})  # one view needs no name
    names = [name for name in X.names if name in last.view_names_in_]
    blocks, columns = {name: X.block(name) for name in names}, dict(X.feature_names)
    for name in names:
        wanted, there = last._known.get(name, (None, 0, None))[2], X.feature_names.get(name)
        if wanted and there and wanted != there:
            lost = [column for column in wanted if column not in there]
            if lost:
                raise ValueError(f"View '{name}' has no column '{lost[0]}', which the model was fitted on.")
            blocks[name], columns[name] = blocks[name][:, [there.index(column) for column in wanted]], wanted
    if not names:
        raise ValueError(
            f"The model knows the views {', '.join(last.view_names_in_)}; the data have {', '.join(X.names)}."
        )
    mask = None if X.mask is None else X.mask[:, [X.names.index(name) for name in names]]
    return Views._of(blocks, len(X), mask, columns)


def _learners() -> dict[str, Any]:
    import inspect as look

    import consilience

    found = {name: getattr(consilience, name) for name in consilience.__all__}
    return {n: c for n, c in found.items() if look.isclass(c) and hasattr(c, "fit") and hasattr(c, "predict")}


def _learner(name: str) -> Any:
    found = _learners()
    fitting = [known for known in found if known.lower() == name.lower().replace("-", "").replace("_", "")]
    if not fitting:
        raise ValueError(f"There is no learner '{name}'. `consilience learners` lists them.")
    return found[fitting[0]]


def _made(cls: Any, settings: list[str] | None = None, *, numbers: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    plain = Ridge() if numbers else LogisticRegression(max_iter=5000)
    model = cls(plain) if cls.__name__ in ("EarlyFusion", "LateFusion") else cls()
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value; got '{setting}'.")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = {"None": None, "True": True, "False": False}.get(value, value)
        model.set_params(**{name: parsed})
    return model


def _about(model: Any) -> dict[str, Any]:
    from .comparison import learner_of

    last = learner_of(model)
    found: dict[str, Any] = {"learner": repr(last) if not hasattr(last, "view_names_in_") else type(last).__name__}
    found["parameters"] = (
        {k: v for k, v in last.get_params(deep=False).items() if v is not None} if hasattr(last, "get_params") else {}
    )
    for name in ("view_names_in_", "classes_", "n_features_in_", "view_weights_", "n_seen_", "mistakes_"):
        if hasattr(last, name):
            value = getattr(last, name)
            found[name.strip("_").replace("_in", "").replace("_", " ")] = (
                value.tolist() if hasattr(value, "tolist") else value
            )
    if hasattr(last, "certificate"):
        found["certificate"] = str(last.certificate())
    return found


def _quoted(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers that are none are null."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any, digits: int) -> Any:
    from rich.text import Text

    return Text(f"{value:.{digits}f}" if isinstance(value, float) else str(value))


def _show(found: dict[str, Any], as_json: bool, columns: list[str] | None = None, rows: Any = None) -> None:
    """Print as JSON, as a table, or line by line."""
    if as_json:
        typer.echo(json.dumps(_plain(found), default=str, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=10_000)  # lines of a file are not folded
    if rows is not None and columns is not None:
        table = Table(box=None, header_style="bold")
        for column in columns:
            numbers = all(isinstance(row[column], (int, float)) for row in rows)
            table.add_column(column, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row[column], 2 if column == "seconds" else 4) for column in columns))
        console.print(table)
        return
    for name, value in found.items():
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        if isinstance(value, dict):
            text = ", ".join(f"{k}={v!r}" for k, v in value.items())
        line = f"{name:<18} {text:.4g}" if isinstance(text, float) else f"{name:<18} {text}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


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
        typer.echo(str(stopped) or "Stopped.", err=True)
        sys.exit(130)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # the command was not understood
            error.show()
            sys.exit(error.exit_code)
        if debug:
            raise
        lost = getattr(error, "filename", None) if isinstance(error, FileNotFoundError) else None
        typer.echo(f"Error: There is no file '{lost}'." if lost else f"Error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
