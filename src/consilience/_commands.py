"""What commands share: reading what is given, showing what was found. Nothing heavy is imported before it is used."""

import json
import math
import sys
from pathlib import Path
from typing import Any

BOARD = ["learner", "score", "low", "high", "seconds"]


def board_rows(board: Any) -> dict[str, Any]:
    """A leaderboard as rows of a table."""
    rows = [{"learner": r.name, "score": r.score, "low": r.low, "high": r.high, "seconds": r.seconds} for r in board]
    return {"measure": board.measure, "leaderboard": rows}


def check_places(*paths: Path | None) -> None:
    """Nothing is worked on for minutes and then not written."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"The folder '{path.absolute().parent}' does not exist. Make it first.")
        if path is not None and path.is_dir():
            raise ValueError(f"'{path}' is a folder. Name a file to write.")


def samples_of(data: list[Path], views: Any, target: str | None, id_column: str | None, model: Any = None) -> Any:
    """The samples of files; a model says which of their columns it knows."""
    from ._candidates import learner_of
    from .files import read_samples

    stored = getattr(learner_of(model), "_known", {}) if model is not None else {}
    known = {name: columns for name, (_, _, columns) in stored.items() if columns}
    return read_samples(data, views=views, target=target, ids=id_column, known=known)


def loaded(path: Path) -> Any:
    """The model of a model file or of a checkpoint."""
    from .persistence import load

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


def known_to(model: Any, X: Any) -> Any:
    """The views and columns that the model knows, so that files with the target or more columns serve too."""
    from ._candidates import learner_of
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
    from ._candidates import learner_of

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


def quoted(value: Any) -> str:
    """A cell of a CSV file."""
    text = str(value)
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
