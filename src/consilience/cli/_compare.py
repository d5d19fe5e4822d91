"""The commands `compare` and `demo`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from . import _options as option
from ._app import Stopped, app, form_of_files, given_command
from ._data import (
    check_outputs,
    labeled,
    read_class_weight,
    read_positive,
    read_preparation,
    read_weight_column,
    reading_options,
    settle_task,
    training_samples,
)
from ._estimators import as_spelled
from ._output import board_rows, how_to_use, say, show
from ._reading import tell_views

#: Baselines that may be named by --estimator, as scikit-learn spells them
BASELINES = (
    "DummyClassifier", "DummyRegressor", "RandomForestClassifier", "RandomForestRegressor",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor",
)  # fmt: skip


@app.command("compare")
def compare_files(
    data: option.DataFiles,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    libsvm_base: option.LibsvmBase = None,
    groups: option.GroupsColumn = None,
    weights: option.WeightsColumn = None,
    class_weight: option.ClassWeights = None,
    estimator: option.EstimatorNames = None,
    every: option.AllFlag = False,
    baselines: option.BaselinesFlag = None,
    task: option.TaskName = None,
    scoring: option.ScoringNames = None,
    positive: option.PositiveClass = None,
    prepare: option.Preparations = None,
    top_k: option.TopColumns = None,
    batch: option.BatchColumn = None,
    category: option.CategoryColumns = None,
    cv: option.NumberOfFolds = 5,
    repeats: option.NumberOfRepeats = 1,
    seed: option.Seed = 0,
    jobs: option.NumberOfJobs = -1,
    save_to: option.SavedBest = None,
    report: option.ReportFile = None,
    csv: option.BoardTable = None,
    resume: option.ResumedFile = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Compare estimators, single views and baselines on your data.

    Nested cross-validation: parameters are chosen within the training part of each fold. The leaderboard shows scores
    with 95% confidence intervals, and which estimators cannot be told apart from the best.

    \b
    Examples:
      consilience compare patients.csv -y diagnosis
      consilience compare rna.parquet protein.parquet --id patient -y subtype \\
          --groups center --report report.html --save best.cons
      consilience compare patients.csv -y diagnosis --scoring roc_auc,accuracy --cv 5 --repeats 3 --csv board.csv
      consilience compare patients.csv -y diagnosis --all --resume folds.jsonl
    """
    from ..evaluation.candidates import used_views
    from ..evaluation.comparison import compare

    outputs = _Outputs(save_to, report, csv, json_out)
    check_outputs(save_to, report, csv, resume, inputs=data)  # before minutes of work
    _check_options(estimator, every, outputs, jobs)
    steps = read_preparation(prepare, batch, top_k)
    form = form_of_files(transpose, encoding, na, libsvm_base)
    reading = reading_options(views, target, id_column, groups, task, batch, weights, category) | form
    samples, left_out = labeled(training_samples(data, reading, batch))
    X, y = samples.X, samples.y
    kind, told = settle_task(y, target, task)
    read = tell_views(X, json_out, layout=views, task=told)
    with _resumed(resume):
        board = compare(
            X, y, task=kind, groups=samples.groups, scoring=_scorers(scoring, read_positive(positive, y)),
            estimators="all" if every else _spelled(estimator, X, y, kind, steps),
            cv=repeated_folds(cv, repeats, y, kind, samples.groups, seed),
            baselines=not estimator if baselines is None else baselines,
            sample_weight=read_weight_column(samples, weights), class_weight=read_class_weight(class_weight, y),
            prepare=steps, random_state=seed, n_jobs=jobs, verbose=not json_out, resume=resume,
        )  # fmt: skip
    summary: dict[str, Any] = {"samples": len(X), "views": used_views(X, steps), **read, **board_rows(board)}
    summary |= {"left out": left_out} if left_out else {}
    summary.update(_write_outputs(board, samples, data, reading, batch, outputs, jobs))
    if json_out:
        show(summary, True)


@contextmanager
def _resumed(file: Path | None) -> Iterator[None]:
    """Say after Ctrl-C how to continue, if finished folds are kept in a file."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        if file is None:
            raise
        raise Stopped(f"Stopped. Finished folds are in '{file}': the same command continues.") from stopped


class _Outputs(NamedTuple):
    """What a comparison writes."""

    save_to: Path | None
    report: Path | None
    csv: Path | None
    json_out: bool


def _write_outputs(
    board: Any, samples: Any, data: list[Path], reading: dict[str, Any], batch: str | None, outputs: _Outputs, jobs: int
) -> dict[str, Any]:
    """Print the leaderboard; write it, the best model and the report where they are asked for, and return where."""
    written: dict[str, Any] = {}
    if not outputs.json_out:
        say(str(board))
    if outputs.csv is not None:
        board.to_csv(outputs.csv)
        written["csv"] = str(outputs.csv)
    if outputs.save_to is not None:
        saved, best = _save_best(board, samples, outputs.save_to)
        how = how_to_use(outputs.save_to, data, best, reading, batch)
        written.update({**saved, "use": how.parts})
        if not outputs.json_out:
            say(f"\n{board[0].title} ({board[0].name}) saved to {outputs.save_to}\n{how.text}")
    if outputs.report is not None:
        _write_findings(outputs, samples, board, data, reading["target"], jobs)
        written["report"] = str(outputs.report.absolute())
    return written


def _spelled(estimator: list[str] | None, X: Any, y: Any, task: Any, steps: Any) -> list[str] | None:
    """Return the names of --estimator as candidates and baselines are spelled."""
    from ..evaluation.candidates import candidates

    if not estimator:
        return None
    return as_spelled(estimator, [*candidates(X, y, task=task, prepare=steps), *BASELINES])


def _check_options(estimator: Any, every: bool, outputs: _Outputs, jobs: int) -> None:
    """Validate options before anything is read."""
    if estimator and every:
        raise ValueError("--all compares every estimator, and --estimator (-e) some. Give one of the two.")
    if jobs == 0:
        raise ValueError("--jobs is at least 1, or -1 for all cores; got 0.")


def _scorers(given: list[str] | None, positive: Any) -> Any:
    """Return the scorers of --scoring: None, one name, or several; those of a `positive` class by name."""
    from ..evaluation._measures import scorer_of_class

    names = [name.strip() for text in given or () for name in text.split(",") if name.strip()]
    if positive is not None and names:
        return {name: scorer_of_class(name, positive) for name in names}
    return list(dict.fromkeys(names)) if len(names) > 1 else names[0] if names else None


def repeated_folds(cv: int, repeats: int, y: Any, task: str, groups: Any, seed: int) -> Any:
    """Return the outer folds: their number, or for repeats all their splits, each with other random folds."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    if repeats == 1:
        return cv
    regression = task == "regression"
    if groups is None:
        kind: Any = KFold if regression else StratifiedKFold
    else:
        kind, cv = GroupKFold if regression else StratifiedGroupKFold, min(cv, len(set(groups)))
    folds = [kind(cv, shuffle=True, random_state=seed + k) for k in range(repeats)]
    return [split for fold in folds for split in fold.split(y, y, groups)]


def _save_best(board: Any, samples: Any, save_to: Path) -> tuple[dict[str, str], Any]:
    """Fit the best estimator on all samples and save it; return what was saved, and the model."""
    from ..io import save

    best = _with_views(board.refit(board[0].name, samples.X, samples.y), samples.X)
    save(best, save_to)
    return {"saved": str(save_to), "saved estimator": board[0].name}, best


def _with_views(model: Any, X: Any) -> Any:
    """Return a fitted model that knows its views: one that predicts without columns gets a first step that does."""
    from sklearn.pipeline import make_pipeline

    from ..evaluation._wrappers import steps_of
    from ..views.per_view import PerView

    if any(hasattr(step, "_known") for step in steps_of(model)):
        return model
    say("No estimator was better than a prediction without any column.", err=True)
    return make_pipeline(PerView("passthrough").fit(X), model)


def _write_findings(outputs: _Outputs, samples: Any, board: Any, data: list[Path], target: Any, jobs: int) -> None:
    """Examine a comparison, and write the report on it."""
    from ..report import Provenance, examine, write_report

    report: Any = outputs.report
    title = ", ".join(path.name.partition(".")[0] for path in data)  # without .csv.gz
    findings = examine(samples.X, samples.y, board, title=title, n_jobs=jobs, verbose=not outputs.json_out)
    source = Provenance(tuple(data), given_command(), outputs.save_to, board.random_state)
    write_report(report, findings, title=f"{target or 'A target'} from {title}", provenance=source)
    if not outputs.json_out:
        say(f"Report: {report.absolute()}")


# -- demo
@app.command()
def demo(
    report: option.DemoReport = Path("demo.html"), jobs: option.NumberOfJobs = -1, json_out: option.JsonFlag = False
) -> None:
    """Compare estimators on example data.

    Cross-validates estimators, and single views, on breast cancer and digits of scikit-learn, learns the digits as
    a stream, and writes a report. Takes under a minute on two cores.

    \b
    Examples:
      consilience demo
      consilience demo --report example.html
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
        say(f"\nReport: {report.absolute()}")


def _show_board(part: Any, json_out: bool) -> dict[str, Any]:
    """Print one comparison of the demo, and return it for JSON."""
    summary = {"samples": len(part.X), "views": list(part.X.names), **board_rows(part.board)}
    if not json_out:
        say(f"\n{part.title}: {part.X}\n\n{part.board}")
    return summary


def _show_stream(part: Any, json_out: bool) -> dict[str, Any]:
    """Print the stream of the demo, and return it for JSON."""
    results = {part.estimator: part.result, **part.others}
    rows = [{"estimator": n, "mistakes": r.n_mistakes, "error": r.error} for n, r in results.items()]
    if not json_out:
        say(f"\n{part.title}: {part.result.n_samples:,} samples, each predicted, then learned\n")
        show({}, False, ["estimator", "mistakes", "error"], rows)
        say(f"\n{part.estimator}: {part.certificate}")
    return {"samples": part.result.n_samples, "estimators": rows}
