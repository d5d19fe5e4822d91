"""Estimators by name: found, made with their parameters, and described."""

import json
from typing import Any


def all_estimators() -> dict[str, Any]:
    """Return every public estimator by its name."""
    import inspect

    import consilience

    values = {name: getattr(consilience, name) for name in consilience.__all__}
    return {n: c for n, c in values.items() if inspect.isclass(c) and hasattr(c, "fit") and hasattr(c, "predict")}


def as_spelled(names: list[str], known: Any) -> list[str]:
    """Return names as they are spelled in `known`, however case, hyphens and underscores were written."""
    plain = {_letters(name): name for name in known}
    return [plain.get(_letters(name), name) for name in names]


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def make_estimator(name: str | None, settings: list[str] | None = None, *, task: str = "classification") -> Any:
    """Return an estimator with its settings, given as name=value; the consensus of the task without a name.

    Fusions get a linear estimator of scikit-learn.
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    known = all_estimators()
    if name is None:
        name = "ConsensusRegressor" if task == "regression" else "ConsensusClassifier"
    (name,) = as_spelled([name], known)
    if name not in known:
        raise ValueError(f"There is no estimator '{name}'. `consilience estimators` lists them.")
    linear = Ridge() if task == "regression" else LogisticRegression(max_iter=5000)
    model = known[name](linear) if name in ("EarlyFusion", "LateFusion") else known[name]()
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value; got '{setting}'.")
        try:
            parsed = json.loads(value)  # numbers, lists, dicts, true, false and null
        except ValueError:
            # as Python writes them; other words are text
            parsed = {"None": None, "True": True, "False": False}.get(value, value)
        model.set_params(**{key: parsed})
    return model


def fit_arguments(model: Any, groups: Any, weights: Any, class_weight: Any) -> dict[str, Any]:
    """Return the arguments of `fit` besides X and y, and set the weights of classes; refuse what has no place."""
    from inspect import signature

    name, own = type(model).__name__, signature(model.fit).parameters
    arguments: dict[str, Any] = {}
    if groups is not None:
        if "groups" not in own:
            raise ValueError(f"{name} does not use groups. Leave --groups out, or fit the default estimator.")
        arguments["groups"] = groups
    if weights is not None:
        if "sample_weight" not in own:
            raise ValueError(f"{name} does not use sample weights. Leave --weights out, or choose another estimator.")
        arguments["sample_weight"] = weights
    if class_weight is not None:
        if "class_weight" not in model.get_params():
            raise ValueError(f"{name} does not use class weights. Leave --class-weight out.")
        model.set_params(class_weight=class_weight)
    return arguments


def fit_pipeline(model: Any, X: Any, y: Any, preparation: Any, scale: bool | None, arguments: dict[str, Any]) -> Any:
    """Fit an estimator behind its preparation and scaling; the consensus scales by itself.

    Regression targets are scaled too, unless some are missing: samples without one may take part.
    """
    from sklearn.base import is_regressor
    from sklearn.pipeline import make_pipeline

    from ..evaluation.candidates import behind, preparation_steps, prepared, scaled
    from ._data import is_numeric

    name = type(model).__name__
    by_itself = name.startswith("Consensus")
    if by_itself and scale is not None:
        raise ValueError(f"{name} scales its views by itself. Leave --scale and --no-scale out.")
    steps = preparation_steps(preparation, "regression" if is_regressor(model) else "classification")
    complete = is_numeric(y) and bool((y == y).all())
    pipeline: Any = behind(steps, model) if by_itself else make_pipeline(*steps, model) if steps else model
    if not by_itself and scale is not False:
        task = "regression" if is_regressor(model) and complete else "classification"
        pipeline = scaled(prepared(steps, X, y), model, task=task, steps=steps)
    if type(pipeline) is type(model):
        return pipeline.fit(X, y, **arguments)
    return pipeline.fit(X, y, **{f"{name.lower()}__{key}": value for key, value in arguments.items()})


def task_of_class(name: str) -> str:
    """Return what an estimator is for."""
    task = needed_task(name)
    return "both" if task is None else "online" if hasattr(make_estimator(name), "partial_fit") else task


def needed_task(name: str) -> str | None:
    """Return the task of an estimator; None for fusions, which are for both."""
    from sklearn.base import is_classifier

    model = make_estimator(name)
    fusion = type(model).__name__ in ("EarlyFusion", "LateFusion")
    return None if fusion else "classification" if is_classifier(model) else "regression"


def describe(model: Any) -> dict[str, Any]:
    """Return what is in a model, for people."""
    from ..evaluation._wrappers import final_estimator
    from ..io._stored import stored_samples, stored_text

    last = final_estimator(model)
    fitted = hasattr(last, "view_names_in_")
    summary: dict[str, Any] = {"estimator": type(last).__name__ if fitted else repr(last), "parameters": {}}
    if hasattr(last, "get_params"):
        summary["parameters"] = {k: v for k, v in last.get_params(deep=False).items() if v is not None}
    for name in ("view_names_in_", "classes_", "n_features_in_", "view_weights_", "n_samples_seen_", "n_mistakes_"):
        if hasattr(last, name):
            value = getattr(last, name)
            shown = value.tolist() if hasattr(value, "tolist") else value
            summary[name.strip("_").replace("_in", "").replace("_", " ")] = shown
    if fitted:
        summary["n features"] = sum(width for _, width, _ in vars(last).get("_known", {}).values())  # of all views
    if hasattr(last, "loo_score_") and last.loo_score_ == last.loo_score_:  # of samples that the models have not seen
        measure = "accuracy" if hasattr(last, "classes_") else "R2"
        summary[f"held-out {measure}"] = round(last.loo_score_, 4)
        summary["95% CI"] = " to ".join(f"{end:.4g}" for end in last.loo_interval_)
        summary["lost without"] = {view: round(lost, 4) for view, lost in last.view_importances_.items()}
    summary["holds"] = stored_text(stored_samples(model))
    if hasattr(last, "certificate"):
        summary["certificate"] = str(last.certificate())
    return summary
