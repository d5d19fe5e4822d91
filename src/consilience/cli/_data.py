"""What commands read and write: samples of files, model files, and the places of outputs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._output import say


def check_outputs(*outputs: Path | None, inputs: Sequence[Path] = ()) -> None:
    """Validate, before any work is done, that outputs can be written, are not inputs, and differ from each other."""
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
            raise ValueError(f"'{path}' is an input and would be overwritten. Name another file to write.")
        if real in seen:
            raise ValueError(f"'{seen[real]}' and '{path}' are the same file; each output needs its own.")
        seen[real] = path


def labeled(samples: Any, *, quiet: bool = False) -> tuple[Any, int]:
    """Return the samples that have a target, and the number of those that have none."""
    import numpy as np

    from ..io import Samples
    from ..views._samples import sample_text

    y = samples.y
    if y is None:
        raise ValueError("Name the column of the class or target by --target (-y), or in the TOML file.")
    known = _is_known(y)
    if not known.any():
        raise ValueError("No sample has a target.")
    left_out = int((~known).sum())
    if left_out and not quiet:
        lost = sample_text(np.flatnonzero(~known), samples.X.sample_names)
        say(f"{left_out} samples without a target are left out: {lost}.", err=True)
    # without missing values, NumPy finds a type of its own
    labels = np.array(y[known].tolist()) if y.dtype == object else y[known]
    groups = None if samples.groups is None else samples.groups[known]
    if groups is not None and not _is_known(groups).all():
        raise ValueError(f"{(~_is_known(groups)).sum()} samples have no group. Complete the column of --groups.")
    columns = {name: values[known] for name, values in samples.columns.items()}
    return Samples(samples.X if known.all() else samples.X[known], labels, groups, columns), left_out


def _is_known(values: Any) -> Any:
    import numpy as np

    # NaN differs from itself
    return np.array([value is not None and value == value for value in values.tolist()], dtype=bool)


def read_weight_column(samples: Any, column: str | None) -> Any:
    """Return the weights of the samples from the column of --weights; None without one."""
    import numpy as np

    if column is None:
        return None
    values = samples.columns[column]
    numbers = values.dtype.kind in "biuf"
    if not numbers or not (np.isfinite(values).all() and (values >= 0).all()):
        wrong = next(v for v in values.tolist() if not numbers or not (np.isfinite(v) and v >= 0))
        raise ValueError(f"--weights needs a number of at least 0 for every sample; '{column}' has {wrong!r}.")
    if not values.any():
        raise ValueError(
            f"All weights of '{column}' are 0, so that no sample counts. Name another column by --weights."
        )
    return values.astype(np.float64)


def read_class_weight(given: list[str] | None, y: Any) -> Any:
    """Return weights of classes from --class-weight: "balanced", or a number for each class by name."""
    if not given:
        return None
    if given == ["balanced"]:
        return "balanced"
    classes = {str(label): label for label in sorted(set(y.tolist()), key=str)}
    weights = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        if not equals or name not in classes:
            raise ValueError(
                f"--class-weight takes 'balanced', or CLASS=NUMBER for classes of the target; got '{text}'. The "
                f"classes are {', '.join(classes)}."
            )
        try:
            weights[classes[name]] = float(number)
        except ValueError as error:
            raise ValueError(f"--class-weight takes a number for the class '{name}'; got '{number}'.") from error
    return weights


def is_numeric(y: Any) -> bool:
    """Tell whether a target has numbers, for regression or classification."""
    return y is not None and y.dtype.kind in "iuf"


def read_positive(text: str | None, classes: Any) -> Any:
    """Return the one of two classes that --positive names; None without one."""
    if text is None:
        return None
    by_name = {str(label): label for label in sorted(set(classes), key=str)}
    if len(by_name) != 2 or text not in by_name:
        raise ValueError(f"--positive names one of two classes; got '{text}'. The classes are {', '.join(by_name)}.")
    return by_name[text]


def reading_options(
    views: Any, target: Any, ids: Any, groups: Any, task: str | None, batch: Any, weights: Any, categories: Any
) -> dict[str, Any]:
    """Return the options of `read_samples` about columns: batches have names, and weights are numbers."""
    tasks = {batch: "classification", weights: "regression"}
    return {
        "views": views, "target": target, "ids": ids, "groups": groups, "task": task and str(task),
        "columns": {name: task for name, task in tasks.items() if name is not None}, "categories": categories or (),
    }  # fmt: skip


def training_samples(data: Sequence[Path], reading: dict[str, Any], batch: str | None) -> Any:
    """Return the samples to fit on, with a view of the batches if there is a column of them."""
    from ..io import read_samples

    return with_batches(read_samples(data, **reading), batch)


def settle_task(y: Any, column: str | None, task: str | None) -> tuple[str, str]:
    """Return the task of a target, and a sentence about it; whole numbers of many values need a `task`."""
    from ..evaluation._folds import needs_task

    what = f"The target '{column}'" if column else "The target"
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in y[_is_known(y)].tolist()]
    n, distinct = len(values), sorted(set(values), key=lambda value: (type(value).__name__, value))
    if task is None:
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        whole = numbers and all(float(value).is_integer() for value in values)
        if whole and needs_task(len(distinct), n):
            raise ValueError(
                f"{what} has {len(distinct)} different whole numbers in {n} samples. Pass --task "
                "regression if they are measurements, or --task classification if each one is a class."
            )
        task = "regression" if numbers and not whole else "classification"
    if task == "regression":
        return task, f"regression, {len(distinct)} values"
    if len(distinct) < 2:
        found = f"only the class {distinct[0]!r}" if distinct else "no class"
        raise ValueError(
            f"{what} has {found}; classification needs at least two. Name another column by --target (-y)."
        )
    more = f" and {len(distinct) - 10} more" if len(distinct) > 10 else ""
    return task, f"classification, {len(distinct)} classes: {', '.join(map(str, distinct[:10]))}{more}"


# -- preparation
def read_preparation(prepare: list[str] | None, batch: str | None, top_k: int | None) -> list[Any] | None:
    """Return the steps that --prepare, --batch and --top-k ask for, in this order; None if there are none."""
    from ..views.batch_effects import RemoveBatch
    from ..views.recipes import check_recipe

    steps: list[Any] = []
    for text in prepare or []:
        view, equals, recipe = text.rpartition("=")
        if (equals and not view) or (recipe == "drop" and not view):
            raise ValueError(f"--prepare takes RECIPE, or VIEW=RECIPE for one view; got '{text}'.")
        if recipe not in ("passthrough", "drop"):
            check_recipe(recipe)
        steps.append({view: recipe} if equals else recipe)
    if batch is not None:
        steps.append(RemoveBatch(batch))
    if top_k is not None:
        steps.append(f"top_k:{top_k}")
    return steps or None


def with_batches(samples: Any, column: str | None) -> Any:
    """Return samples with a view of the batches, if a column of them was read."""
    from dataclasses import replace

    from ..views.batch_effects import add_batches

    if column is None or column not in samples.columns:
        return samples
    return replace(samples, X=add_batches(samples.X, column, samples.columns[column]))


def read_for_model(model: Any, known: Any, data: Sequence[Path], **options: Any) -> tuple[Any, dict[str, Any]]:
    """Return new samples for a model, and the views to look for; batches come from their column, if files have it.

    The target has text where the classes of the model are text.
    """
    from dataclasses import replace

    from sklearn.base import is_classifier

    from ..evaluation._wrappers import steps_of
    from ..io import read_samples
    from ..io.tables import objects
    from ..views.batch_effects import RemoveBatch

    removed = [step for step in steps_of(model) if isinstance(step, RemoveBatch)]
    columns = [step.view for step in removed if step._known[step.view][0] == "objects"]  # others are views of files
    views = {view: about for view, about in known.items() if view not in columns}
    task = "classification" if is_classifier(model) else "regression"
    by_name = dict.fromkeys(columns, "classification")
    samples = read_samples(data, known=views, columns=by_name, task=task, **options)
    for column in columns:
        samples = with_batches(samples, column)
    if samples.y is not None and task == "classification" and isinstance(model.classes_.tolist()[0], str):
        known_labels = zip(samples.y.tolist(), _is_known(samples.y), strict=True)
        samples = replace(samples, y=objects([str(label) if there else None for label, there in known_labels]))
    return samples, views


# -- models
def load_model(path: Path, missing_columns: str | None = None) -> Any:
    """Return the model of a model file or of a checkpoint; `missing_columns` sets the parameter of its steps."""
    from ..evaluation._wrappers import steps_of
    from ..io import load

    content = load(path)
    model = content["model"] if isinstance(content, dict) and "model" in content else content
    for step in [] if missing_columns is None else steps_of(model):
        if hasattr(step, "missing_columns"):
            step.missing_columns = str(missing_columns)
    return model


def views_of_model(model: Any, source: Path) -> dict[str, tuple[str, int | None, Any]]:
    """Return kind, width and column names of each view, as the first step of a model needs them."""
    from ..evaluation._wrappers import steps_of

    # as the first step read them
    stored = next(filter(None, (getattr(step, "_known", None) for step in steps_of(model))), None)
    if not stored or not hasattr(model, "predict"):
        raise ValueError(
            f"'{source}' holds {type(model).__name__}, which does not say what views it was fitted on. Give the file "
            "of a fitted estimator of this package."
        )
    return dict(stored)


def warn_of_missing(known: Any, X: Any) -> dict[str, list[str]]:
    """Print which views of a model are missing in every sample; return them for JSON."""
    missing = [view for view in known if view not in X.names or not X.present(view).any()]
    if not missing:
        return {}
    names = ", ".join(f"'{view}'" for view in missing)
    say(
        f"Views of the model that are missing in every sample: {names}. Predictions use the other views. If the files "
        "have them, say by --views which columns make them.",
        err=True,
    )
    return {"missing views": missing}
