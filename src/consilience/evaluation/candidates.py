"""Estimators to compare on given data, with the kernels, parameter grids and scaling that suit the data."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import StrOptions, validate_params
from sklearn.utils.multiclass import type_of_target

from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..batch.coregularized import CoRegularizedRidge, CoRegularizedRidgeClassifier
from ..batch.coregularized_cv import CoRegularizedRidgeClassifierCV, CoRegularizedRidgeCV
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.max_margin import MaxMarginClassifier
from ..batch.metric import ViewMetricRidge, ViewMetricRidgeClassifier
from ..batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
from ..batch.multiple_kernel import MultipleKernelRidge, MultipleKernelRidgeClassifier
from ..batch.svc import CoRegularizedSVC
from ..kernels import Linear, Spectrum, SubsetTree, normalize
from ..online.kernelized import KernelPerceptron, Projectron
from ..online.matrix import MatrixPerceptron, OrthogonalPerceptron
from ..online.multicue import MultiCueClassifier
from ..online.perceptron import OnlinePerceptron, PassiveAggressive
from ..online.vector import VectorPerceptron
from ..views._blocks import some
from ..views.batch_effects import RemoveBatch
from ..views.container import Views
from ..views.per_view import PerView, uses_target
from ..views.recipes import MostAssociated, check_recipe

TASKS = ("classification", "regression")
Grid = dict[str, list[Any]]
Candidates = dict[str, tuple[Any, Grid]]

_AGREEMENT_PENALTIES = (0.0, 1e-4)
# the candidates that `compare` tries unless it is told otherwise, next to single views and baselines
_DEFAULT = (
    "ConsensusClassifier", "ConsensusRegressor", "CoRegularizedRidgeClassifierCV", "CoRegularizedRidgeCV",
    "CoRegularizedSVC", "ViewMetricRidgeClassifierCV", "ViewMetricRidgeCV", "MultipleKernelRidgeClassifier",
    "MultipleKernelRidge", "EarlyFusion", "LateFusion",
)  # fmt: skip
_TITLES = {
    "ConsensusClassifier": "Consensus of all kernels",
    "ConsensusRegressor": "Consensus of all kernels",
    "CoRegularizedRidgeClassifierCV": "Ridge with agreeing views",
    "CoRegularizedRidgeCV": "Ridge with agreeing views",
    "CoRegularizedSVC": "Support vector machine with agreeing views",
    "ViewMetricRidgeClassifierCV": "Ridge with a learned metric between views",
    "ViewMetricRidgeCV": "Ridge with a learned metric between views",
    "MultipleKernelRidgeClassifier": "Ridge with learned kernel weights",
    "MultipleKernelRidge": "Ridge with learned kernel weights",
    "MaxMarginClassifier": "Maximum margin with class vectors",
    "OrthogonalPerceptron": "Online matrix perceptron, one kernel per view",
    "Projectron": "Online kernel perceptron with bounded memory",
    "OnlinePerceptron": "Online linear perceptron",
    "VectorPerceptron": "Online perceptron with class vectors",
    "MultiCueClassifier": "Online classifier per view, combined online",
    "PassiveAggressive": "Online passive-aggressive classifier",
    "KernelPerceptron": "Online kernel perceptron",
    "MatrixPerceptron": "Online matrix perceptron, pairs of views",
    "DummyClassifier": "Most frequent class",
    "DummyRegressor": "Mean of the targets",
    "RandomForestClassifier": "Random forest on all columns",
    "RandomForestRegressor": "Random forest on all columns",
    "HistGradientBoostingClassifier": "Boosted trees on all columns",
    "HistGradientBoostingRegressor": "Boosted trees on all columns",
}
# from simple to complex; see `Leaderboard.simplest`
_SIMPLICITY = (
    ("DummyClassifier", "DummyRegressor"),
    ("single view",),
    ("EarlyFusion", "LateFusion"),
    (
        "OrthogonalPerceptron", "Projectron", "OnlinePerceptron", "VectorPerceptron", "MultiCueClassifier",
        "PassiveAggressive", "KernelPerceptron", "MatrixPerceptron",
    ),
    ("estimator",),
    ("ConsensusClassifier", "ConsensusRegressor"),
    ("RandomForestClassifier", "RandomForestRegressor"),
    ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
    ("own",),
)  # fmt: skip


def default_kernels(X: Views) -> dict[str, Any]:
    """Return kernels for the views that a Gaussian kernel cannot read or does not suit.

    Sparse views get a linear kernel, strings a sum of spectrum kernels, trees a subset-tree kernel, Gram matrices
    "precomputed". Dense views are not named, so that estimators use their default, the Gaussian kernel.

    Parameters
    ----------
    X : Views
        The samples.

    Returns
    -------
    dict
        Kernels by view; empty if all views are dense.

    Examples
    --------
    >>> from consilience import Views, default_kernels
    >>> default_kernels(Views({"sound": [[1.0], [2.0]], "word": ["yes", "no"]}))
    {'word': normalize(Spectrum(length=1) + Spectrum(length=2) + Spectrum(length=3))}
    """
    kernels: dict[str, Any] = {}
    for name in X.names:
        kind = X.kind(name)
        if kind == "sparse":
            kernels[name] = Linear()
        elif kind == "gram":
            kernels[name] = "precomputed"
        elif kind == "objects":
            first = X[name][int(np.flatnonzero(X.present(name))[0])]
            strings = isinstance(first, (str, bytes, list))  # otherwise trees, as nested tuples
            kernels[name] = normalize(Spectrum(1) + Spectrum(2) + Spectrum(3) if strings else SubsetTree())
    return kernels


@validate_params(
    {"X": [Views], "task": [StrOptions(set(TASKS)), None], "built_in_cv": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def candidates(
    X: Views, y: Any, *, task: str | None = None, built_in_cv: bool = True, prepare: Any = None
) -> Candidates:
    """Return the estimators that suit the data and the task, with their parameter grids.

    Every estimator scales dense views and fills single missing values with the mean of the training samples. For
    regression it scales the target too, because ridge estimators have no intercept. The consensus does all of that by
    itself. An estimator named "<view> alone" receives only that view.

    Parameters
    ----------
    X : Views
        The samples.
    y : array-like of shape (n_samples,)
        Class labels or targets.
    task : {"classification", "regression"}, optional
        Kind of prediction. Default: regression if any target value is not an integer.
    built_in_cv : bool, default=True
        Whether the estimators whose names end with "CV" choose their penalties by built-in leave-one-out. Otherwise
        they get a grid of the same penalties, which any splitter and scorer can search.
    prepare : recipe, dict, transformer of Views or list of these, optional
        First steps of every estimator, before the scaling; see `compare`.

    Returns
    -------
    dict
        Name -> (estimator, grid). The keys of the grid are parameters of the estimator.

    Examples
    --------
    >>> from consilience import candidates
    >>> from consilience.datasets import load_breast_cancer_views
    >>> list(candidates(*load_breast_cancer_views(return_X_y=True)))[:2]
    ['ConsensusClassifier', 'CoRegularizedRidgeClassifierCV']
    """
    task = task_of(y) if task is None else task
    steps = preparation_steps(prepare, task)
    whole, X = X, prepared(steps, X, y)  # what the final estimators receive decides which of them suit
    kernel = default_kernels(X) or "rbf"
    numeric = not any(X.kind(name) in ("objects", "gram") for name in X.names)
    if task == "regression":
        chosen = _regressors(kernel, built_in_cv)
        linear, grid = Ridge(), {"estimator__alpha": [0.1, 1.0, 10.0, 100.0]}
    else:
        widths = {X[name].shape[1] for name in X.names} if numeric else set()
        chosen = _classifiers(kernel, built_in_cv, numeric, len(widths) == 1)
        linear, grid = LogisticRegression(max_iter=5000), {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    if numeric:
        chosen["EarlyFusion"] = EarlyFusion(linear), grid
        chosen["LateFusion"] = LateFusion(linear), grid
    by_view = all(isinstance(step, (PerView, RemoveBatch)) for step in steps)  # others may need all views
    for name in X.names if len(X.names) > 1 and by_view else ():
        if X.kind(name) in ("dense", "sparse"):
            chosen[f"{name} alone"] = LateFusion(linear), grid
        elif X.kind(name) != "missing":
            own = {name: default_kernels(X)[name]}
            if task == "regression":
                chosen[f"{name} alone"] = _regressors(own, built_in_cv)["CoRegularizedRidgeCV"]
            else:
                found = _classifiers(own, built_in_cv, numeric=False, one_width=False)
                chosen[f"{name} alone"] = found["CoRegularizedRidgeClassifierCV"]
    suited: Candidates = {}
    for name, pair in chosen.items():
        rows = samples_for(name, X)
        names = views_of(name, whole[rows], prepare).names
        suited[name] = _scaled_pair(views_of(name, X[rows]), *pair, task, _for_views(steps, names))
    return suited


def default_names(names: Sequence[str], X: Views) -> list[str]:
    """Return the candidates that `compare` tries by default: estimators of all views, then single views."""
    return [name for name in names if name in _DEFAULT or single_view(name, X) is not None]


def title_of(name: str, X: Views, task: str) -> str:
    """Return the plain-language name of a candidate or baseline."""
    linear = "ridge" if task == "regression" else "logistic regression"
    view = single_view(name, X)
    if view is not None:
        method = linear.capitalize() if X.kind(view) in ("dense", "sparse") else "Kernel ridge"
        return f"{method} on {view} alone"
    if name == "EarlyFusion":
        return f"{linear.capitalize()} on all columns"
    return f"Average of one {linear} per view" if name == "LateFusion" else _TITLES.get(name, name)


def simplicity(name: str, kind: str) -> int:
    """Return the place of a row in the order from simple to complex."""
    places = {each: k for k, names in enumerate(_SIMPLICITY) for each in names}
    return places[kind] if kind in ("single view", "own") else places.get(name, places["estimator"])


def _regressors(kernel: Any, built_in_cv: bool) -> Candidates:
    coregularized = _penalized(CoRegularizedRidge, CoRegularizedRidgeCV, kernel, built_in_cv, _AGREEMENT_PENALTIES)
    metric = _penalized(ViewMetricRidge, ViewMetricRidgeCV, kernel, built_in_cv)
    learned = MultipleKernelRidge(kernel), {"alpha": [1e-2, 1e-1, 1.0]}
    return {
        "ConsensusRegressor": (ConsensusRegressor(), {}),
        "CoRegularizedRidgeCV": coregularized,
        "ViewMetricRidgeCV": metric,
        "MultipleKernelRidge": learned,
    }


def _classifiers(kernel: Any, built_in_cv: bool, numeric: bool, one_width: bool) -> Candidates:
    pair = CoRegularizedRidgeClassifier, CoRegularizedRidgeClassifierCV
    coregularized = _penalized(*pair, kernel, built_in_cv, _AGREEMENT_PENALTIES)
    metric = _penalized(ViewMetricRidgeClassifier, ViewMetricRidgeClassifierCV, kernel, built_in_cv)
    online = {"kernel": kernel, "average": True, "random_state": 0}
    whole = {**online, "budget": None}  # all samples are in memory anyway
    chosen: Candidates = {
        "ConsensusClassifier": (ConsensusClassifier(), {}),
        "CoRegularizedRidgeClassifierCV": coregularized,
        "CoRegularizedSVC": (CoRegularizedSVC(kernel), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}),
        "ViewMetricRidgeClassifierCV": metric,
        "MultipleKernelRidgeClassifier": (MultipleKernelRidgeClassifier(kernel), {"alpha": [1e-2, 1e-1, 1.0]}),
        "MaxMarginClassifier": (MaxMarginClassifier(kernel=kernel), {"C": [0.1, 1.0, 10.0]}),
        # p = 1 would repeat the kernel perceptron
        "OrthogonalPerceptron": (OrthogonalPerceptron(**whole), {"p": [2.0, 4.0]}),
        "Projectron": (Projectron(**online), {}),
    }
    if numeric:
        chosen["OnlinePerceptron"] = OnlinePerceptron(average=True, random_state=0), {}
        chosen["VectorPerceptron"] = VectorPerceptron(random_state=0), {}
    chosen["MultiCueClassifier"] = MultiCueClassifier(**online), {}
    chosen["PassiveAggressive"] = PassiveAggressive(**whole), {}
    chosen["KernelPerceptron"] = KernelPerceptron(**whole), {}
    if one_width:  # its matrix is over pairs of views with the same columns
        chosen["MatrixPerceptron"] = MatrixPerceptron(**{**whole, "kernel": "rbf"}), {}
    return chosen


def _penalized(plain: Any, cv_form: Any, kernel: Any, built_in_cv: bool, agreement: Any = None) -> tuple[Any, Grid]:
    """Return the CV form of an estimator, or the estimator with a grid of the penalties that the CV form tries."""
    if built_in_cv:
        return (cv_form(kernel) if agreement is None else cv_form(kernel, agreement_penalties=agreement)), {}
    penalties = {"alpha": list(cv_form().alphas)}
    return plain(kernel), penalties if agreement is None else {**penalties, "agreement_penalty": list(agreement)}


def _scaled_pair(X: Views, estimator: Any, grid: Grid, task: str, steps: Sequence[Any]) -> tuple[Any, Grid]:
    """Return the estimator inside its scaling, and the grid by the parameter names there."""
    if isinstance(estimator, (ConsensusClassifier, ConsensusRegressor)):  # they scale and fill by themselves
        return behind(steps, estimator), grid
    # the names of steps that `make_pipeline` and `TransformedTargetRegressor` give
    prefix = ("regressor__" if task == "regression" else "") + type(estimator).__name__.lower()
    inside = scaled(X, estimator, task=task, steps=steps)
    return inside, {f"{prefix}__{name}": values for name, values in grid.items()}


def scaled(X: Views, estimator: Any, *, task: str, steps: Sequence[Any] = ()) -> Any:
    """Return an estimator that first scales dense views and fills gaps; for regression it scales the target too.

    With the steps of a preparation, which come before the scaling, X are the prepared views.
    """
    # a column that is empty in one training part keeps its place
    impute_and_scale = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    by_view = {name: clone(impute_and_scale) for name in X.names if X.kind(name) == "dense"}
    pipeline = make_pipeline(*map(clone, steps), *([PerView(by_view)] if by_view else []), estimator)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if task == "regression" else pipeline


def behind(steps: Sequence[Any], estimator: Any) -> Any:
    """Return a consensus behind the steps of a preparation; inside of it if they use the target."""
    steps = [clone(step) for step in steps]
    if uses_target(steps):
        return clone(estimator).set_params(prepare=steps[0] if len(steps) == 1 else make_pipeline(*steps))
    return make_pipeline(*steps, estimator) if steps else estimator


def without_view(estimator: Any, view: str) -> Any:
    """Return a clone of an estimator for samples without a view: its parameters by view no longer name the view."""
    estimator = clone(estimator)
    by_view = {
        key: {name: part for name, part in value.items() if name != view}
        for key, value in estimator.get_params().items()
        if isinstance(value, Mapping) and view in value and not key.endswith("class_weight")  # whose keys are classes
    }
    return estimator.set_params(**by_view)


def task_of(y: Any) -> str:
    """Return "regression" if some target value is not an integer, otherwise "classification"."""
    continuous = type_of_target(np.asarray(y)) in ("continuous", "continuous-multioutput")
    return "regression" if continuous else "classification"


def single_view(name: str, X: Views) -> str | None:
    """Return the view that an estimator named "<view> alone" receives; None for all other names."""
    view = name.removesuffix(" alone")
    return view if view != name and view in X.names else None


def samples_for(name: str, X: Views) -> np.ndarray:
    """Return the samples that an estimator of this name receives: all, or those that have its single view."""
    view = single_view(name, X)
    return np.arange(len(X)) if view is None else np.flatnonzero(X.present(view))


def views_of(name: str, X: Views, prepare: Any = None) -> Views:
    """Return the views that an estimator of this name receives: all, or a single one and those of batches.

    All samples must have the single view; see `samples_for`.
    """
    view = single_view(name, X)
    return X if view is None else X[[view, *(other for other in _batch_views(prepare) if other in X.names)]]


# -- preparation
def preparation_steps(prepare: Any, task: str | None = None) -> list[Any]:
    """Return a preparation as transformers of `Views`, in order; recipes and dicts by view become `PerView`.

    Recipes for all views do not change the batches of a `RemoveBatch` that follows.
    """
    steps: list[Any] = []
    items = _items(prepare)
    names: list[Any] = []  # recipes for all views, up to the next other step
    for k, item in enumerate([*items, None]):
        if isinstance(item, str):
            names.append(_for_task(item, task))
            continue
        if names:
            batches = [later.view for later in items[k:] if isinstance(later, RemoveBatch)]
            steps.append(PerView(dict.fromkeys(batches, "passthrough"), remainder=names) if batches else PerView(names))
            names = []
        if isinstance(item, Mapping):
            steps.append(PerView({view: _for_task(given, task) for view, given in item.items()}))
        elif item is not None and not (hasattr(item, "fit") and hasattr(item, "transform")):
            raise TypeError(
                "`prepare` takes recipes by name, a dict of recipes or transformers by view, transformers of Views "
                f"such as PerView, or a list of these; got {item!r}."
            )
        elif item is not None:
            steps.append(item)
    return steps


def _items(prepare: Any) -> list[Any]:
    """Return the parts of a preparation; those of pipelines one by one."""
    parts = list(prepare) if isinstance(prepare, (list, tuple)) else [] if prepare is None else [prepare]
    inside = [_items([step for _, step in part.steps]) if isinstance(part, Pipeline) else [part] for part in parts]
    return [item for items in inside for item in items]


def _for_task(given: Any, task: str | None) -> Any:
    """Return recipes with those that read the target made for the task, since regression may have whole numbers."""
    if isinstance(given, (list, tuple)):
        return [_for_task(step, task) for step in given]
    if not isinstance(given, str) or given in ("passthrough", "drop"):
        return given
    name, _, number = check_recipe(given).partition(":")
    return MostAssociated(int(number), task=str(task)) if name == "top_k" and task is not None else given


def prepared(steps: Sequence[Any], X: Views, y: Any) -> Views:
    """Return samples after a preparation that is fitted on them: the views, kinds and columns that it makes."""
    for step in steps:
        X = clone(step).fit_transform(X, y)
        if not isinstance(X, Views):
            raise TypeError(
                f"`prepare` must return Views, but {type(step).__name__} returned {type(X).__name__}. Give "
                "transformers of tables by view: {'view': transformer}."
            )
    return X


def _for_views(steps: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return a preparation for some of the views: parameters by view do not name the others."""
    kept = []
    for step in steps:
        if isinstance(step, PerView) and isinstance(step.transformers, Mapping):
            own = {name: given for name, given in step.transformers.items() if name in names}
            step = clone(step).set_params(transformers=own)
        kept.append(step)
    return kept


def _batch_views(prepare: Any) -> list[str]:
    return [item.view for item in _items(prepare) if isinstance(item, RemoveBatch)]


def tell_new_batches(X: Views, prepare: Any, splits: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Warn of held-out samples whose batch is not in the training part of their fold, with their number."""
    for view in _batch_views(prepare):
        if view not in X.names or X.kind(view) not in ("objects", "dense"):
            continue
        batches, codes = np.unique(X[view].astype(str), axis=0, return_inverse=True)
        codes, there = codes.reshape(-1), np.flatnonzero(X.present(view))
        new = [row for train, test in splits for row in np.intersect1d(test, there) if codes[row] not in codes[train]]
        if new:
            names = [" ".join(np.atleast_1d(batches[k])) for k in sorted(set(codes[new]))]
            warnings.warn(
                f"{len(new)} of {len(X)} held-out samples are of a batch (view '{view}') that no training sample of "
                f"their fold has ({some(names, 5)}), so they keep its effects.",
                stacklevel=4,  # where compare is called
            )


def used_views(X: Views, prepare: Any) -> list[str]:
    """Return the views that a preparation leaves for the final estimator: without batches and dropped ones."""
    gone = set(_batch_views(prepare))
    for step in preparation_steps(prepare):
        if isinstance(step, PerView) and isinstance(step.transformers, Mapping):
            rest = [name for name in X.names if name not in step.transformers] if step.remainder == "drop" else []
            gone.update(
                rest, (name for name, given in step.transformers.items() if isinstance(given, str) and given == "drop")
            )
    return [name for name in X.names if name not in gone]


def with_preparation(pair: tuple[Any, Grid], prepare: Any, names: Sequence[str], task: str) -> tuple[Any, Grid]:
    """Return an estimator behind a preparation, and its grid by the parameter names there."""
    estimator, grid = pair
    steps = _for_views(preparation_steps(prepare, task), names)
    if not steps:
        return pair
    if isinstance(estimator, (ConsensusClassifier, ConsensusRegressor)) and uses_target(steps):
        return behind(steps, estimator), grid
    first = [(f"prepare{k}", clone(step)) for k, step in enumerate(steps)]
    if isinstance(estimator, Pipeline):
        return Pipeline([*first, *estimator.steps]), grid
    own = type(estimator).__name__.lower()
    return Pipeline([*first, (own, estimator)]), {f"{own}__{name}": values for name, values in grid.items()}
