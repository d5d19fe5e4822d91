"""What commands share: reading what is given, showing what was found. Nothing heavy is imported before it is used."""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

BOARD = ["learner", "score", "low", "high", "seconds"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that spreadsheet programs may run
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")


def board_rows(board: Any) -> dict[str, Any]:
    """A leaderboard as rows of a table."""
    rows = [{"learner": r.name, "score": r.score, "low": r.low, "high": r.high, "seconds": r.seconds} for r in board]
    return {"measure": board.measure, "leaderboard": rows}


def check_places(*outputs: Path | None, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, places that cannot be written, that are read too, or that are named twice."""
    from ..io.writing import check_output

    seen: dict[str, Path] = {}
    read = {os.path.realpath(path) for path in inputs}
    for path in [output for output in outputs if output is not None]:
        try:
            check_output(path)
        except OSError as error:
            raise ValueError(str(error)) from error
        real = os.path.realpath(path)
        if path.exists() and not path.is_file():
            continue  # a device or a pipe takes more than one output
        if real in read:
            raise ValueError(f"'{path}' is read, and would be replaced by what is written. Name another file to write.")
        if real in seen:
            raise ValueError(f"'{seen[real]}' and '{path}' are the same file; each output needs its own.")
        seen[real] = path


def samples_of(data: list[Path], views: Any, target: str | None, id_column: str | None, known: Any = None) -> Any:
    """The samples of files; where a model is used, `known` is what it knows of its views."""
    from ..io.files import read_samples

    return read_samples(data, views=views, target=target, ids=id_column, known=known)


def known_views(model: Any, source: Path) -> dict[str, tuple[str, int | None, Any]]:
    """Return kind, width and column names of each view, as a model file wants them before any step of a pipeline."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    model = getattr(model, "best_estimator_", model)
    inside = getattr(model, "regressor_", None) if isinstance(model, TransformedTargetRegressor) else model
    steps = [step for _, step in inside.steps] if isinstance(inside, Pipeline) else [inside]
    stored = getattr(steps[-1], "_known", None)
    if not stored or not hasattr(model, "predict"):
        raise ValueError(
            f"'{source}' holds {type(model).__name__}, which does not say what views it was fitted on. Give the file "
            "of a fitted estimator of this package."
        )
    first = steps[0] if len(steps) == 2 else None
    return {view: about if len(steps) == 1 else _before(first, view, about) for view, about in stored.items()}


def _before(step: Any, view: str, about: tuple[str, int, Any]) -> tuple[str, int | None, Any]:
    """What a view was before each view was transformed; column names are known where the columns stay the same."""
    transformer: Any = getattr(step, "transformers_", {}).get(view)
    if isinstance(transformer, str):  # passthrough
        return about
    _, width, names = about
    wide = getattr(transformer, "n_features_in_", None)
    if wide is None:
        return "", None, None
    try:
        probe = [f"{view}__{k}" for k in range(wide)]
        same = wide == width and list(transformer.get_feature_names_out(probe)) == probe
    except (AttributeError, TypeError, ValueError):  # no names come out of it
        same = False
    return "numbers", wide, names if same else None


def tell_missing(known: Any, X: Any) -> dict[str, list[str]]:
    """Say which views of a model no sample has; return them for JSON."""
    missing = [view for view in known if view not in X.names or not X.present(view).any()]
    if not missing:
        return {}
    listed = ", ".join(f"'{view}'" for view in missing)
    print(
        f"Views of the model that are missing in every sample: {listed}. The others decide. If the files have them, "
        "say by --views which columns they are made of.",
        file=sys.stderr,
    )
    return {"missing views": missing}


def loaded(path: Path) -> Any:
    """The model of a model file or of a checkpoint."""
    from ..io.model_files import load

    found = load(path)
    return found["model"] if isinstance(found, dict) and "model" in found else found


def is_numeric(y: Any) -> bool:
    """Whether a target has numbers, be they classes or not."""
    return y is not None and y.dtype.kind in "iuf"


def named(only: list[str] | None, known: Any) -> list[str] | None:
    """Learners as they are called, however they were written."""
    if not only:
        return None
    plain = {name.lower().replace("-", "").replace("_", ""): name for name in known()}
    return [plain.get(name.lower().replace("-", "").replace("_", ""), name) for name in only]


def not_alone(X: Any) -> list[str]:
    """Which views have no row of their own in a comparison."""
    lost = [name for name in X.names if not X.present(name).all()] if len(X.names) > 1 else []
    return [f"Not compared alone, since some samples lack them: {', '.join(lost)}."] if lost else []


def labeled(samples: Any) -> tuple[Any, int]:
    """The samples that have a target, and how many have none."""
    import numpy as np

    from ..io.files import Samples

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


def all_learners() -> dict[str, Any]:
    """Every learner by its name."""
    import inspect as look

    import consilience

    found = {name: getattr(consilience, name) for name in consilience.__all__}
    return {n: c for n, c in found.items() if look.isclass(c) and hasattr(c, "fit") and hasattr(c, "predict")}


def learner_called(name: str) -> Any:
    """The learner of a name, however it was written."""
    found = all_learners()
    fitting = [known for known in found if known.lower() == name.lower().replace("-", "").replace("_", "")]
    if not fitting:
        raise ValueError(f"There is no learner '{name}'. `consilience learners` lists them.")
    return found[fitting[0]]


def made(cls: Any, settings: list[str] | None = None, *, numbers: bool = False) -> Any:
    """A learner with its settings, given as name=value; fusion is of a linear estimator."""
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


def about(model: Any) -> dict[str, Any]:
    """What is in a model, for people."""
    from ..evaluation.candidates import learner_of

    last = learner_of(model)
    found: dict[str, Any] = {"learner": repr(last) if not hasattr(last, "view_names_in_") else type(last).__name__}
    found["parameters"] = (
        {k: v for k, v in last.get_params(deep=False).items() if v is not None} if hasattr(last, "get_params") else {}
    )
    for name in ("view_names_in_", "classes_", "n_features_in_", "view_weights_", "n_samples_seen_", "n_mistakes_"):
        if hasattr(last, name):
            value = getattr(last, name)
            found[name.strip("_").replace("_in", "").replace("_", " ")] = (
                value.tolist() if hasattr(value, "tolist") else value
            )
    if hasattr(last, "certificate"):
        found["certificate"] = str(last.certificate())
    return found


def csv_lines(rows: Iterable[Sequence[Any]]) -> tuple[str, int]:
    """Return rows as CSV, and how many cells were changed so that spreadsheet programs do not run them as formulas."""
    changed, lines = 0, []
    for row in rows:
        safe = [_harmless(value) for value in row]
        changed += sum(text != str(value) for text, value in zip(safe, row, strict=True))
        lines.append(",".join(map(_quoted, safe)) + "\n")
    return "".join(lines), changed


def _harmless(value: Any) -> str:
    """A cell as text; an apostrophe stands before text that begins like a formula, never before numbers."""
    text = str(value)
    formula = isinstance(value, str) and text.startswith(_FORMULA) and not _NUMBER.fullmatch(text)
    return "'" + text if formula else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text


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


def show(found: dict[str, Any], as_json: bool, columns: list[str] | None = None, rows: Any = None) -> None:
    """Print as JSON, as a table, or line by line."""
    if as_json:
        print(json.dumps(_plain(found), default=str, allow_nan=False))
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
