"""What commands read and write: samples of files, model files, and the places of outputs."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


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

    y = samples.y
    if y is None:
        raise ValueError("Name the column of the class or target by --target (-y), or in the TOML file.")
    known = _is_known(y)
    if not known.any():
        raise ValueError("No sample has a target.")
    left_out = int((~known).sum())
    if left_out and not quiet:
        print(f"{left_out} samples without a target are left out.", file=sys.stderr)
    # without missing values, NumPy finds a type of its own
    labels = np.array(y[known].tolist()) if y.dtype == object else y[known]
    rest = [None if values is None else values[known] for values in (samples.ids, samples.groups)]
    if rest[1] is not None and not _is_known(rest[1]).all():
        raise ValueError(f"{(~_is_known(rest[1])).sum()} samples have no group. Complete the column of --groups.")
    return Samples(samples.X if known.all() else samples.X[known], labels, *rest), left_out


def _is_known(values: Any) -> Any:
    import numpy as np

    # NaN differs from itself
    return np.array([value is not None and value == value for value in values.tolist()], dtype=bool)


def is_numeric(y: Any) -> bool:
    """Tell whether a target has numbers, for regression or classification."""
    return y is not None and y.dtype.kind in "iuf"


# -- models
def load_model(path: Path) -> Any:
    """Return the model of a model file or of a checkpoint."""
    from ..io import load

    content = load(path)
    return content["model"] if isinstance(content, dict) and "model" in content else content


def views_of_model(model: Any, source: Path) -> dict[str, tuple[str, int | None, Any]]:
    """Return kind, width and column names of each view, as a model needs them before any step of a pipeline."""
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
    first = steps[0] if len(steps) == 2 else None  # of longer pipelines, only the views' names are known
    return {view: about if len(steps) == 1 else _before_step(first, view, about) for view, about in stored.items()}


def _before_step(step: Any, view: str, about: tuple[str, int, Any]) -> tuple[str, int | None, Any]:
    """Return what a view was before it was transformed; column names are known if the columns stay the same."""
    transformer: Any = getattr(step, "transformers_", {}).get(view)
    if isinstance(transformer, str):  # passthrough
        return about
    _, width, names = about
    wide = getattr(transformer, "n_features_in_", None)
    if wide is None:
        return "", None, None
    try:
        probe = [f"{view}__{k}" for k in range(wide)]  # a transformer that keeps these names keeps the columns
        same = wide == width and list(transformer.get_feature_names_out(probe)) == probe
    except (AttributeError, TypeError, ValueError):  # the transformer names no columns
        same = False
    return "numbers", wide, names if same else None


def warn_of_missing(known: Any, X: Any) -> dict[str, list[str]]:
    """Print which views of a model are missing in every sample; return them for JSON."""
    missing = [view for view in known if view not in X.names or not X.present(view).any()]
    if not missing:
        return {}
    names = ", ".join(f"'{view}'" for view in missing)
    print(
        f"Views of the model that are missing in every sample: {names}. Predictions use the other views. If the files "
        "have them, say by --views which columns make them.",
        file=sys.stderr,
    )
    return {"missing views": missing}
