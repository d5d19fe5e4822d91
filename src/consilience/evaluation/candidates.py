"""Learners to compare on given data: which of them fit, with which kernels and grids, behind which scaling."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target

from ..batch.coregularized_cv import CoRegularizedRidgeClassifierCV, CoRegularizedRidgeCV
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.max_margin import MaxMarginClassifier
from ..batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
from ..batch.multiple_kernel import MultipleKernelRidge, MultipleKernelRidgeClassifier
from ..batch.svc import CoRegularizedSVC
from ..kernels import Linear, Spectrum, SubsetTree, normalize
from ..online.kernelized import KernelPerceptron, Projectron
from ..online.matrix import MatrixPerceptron, OrthogonalPerceptron
from ..online.multicue import MultiCueClassifier
from ..online.perceptron import OnlinePerceptron, PassiveAggressive
from ..online.vector import VectorPerceptron
from ..views.container import Views
from ..views.per_view import PerView


def default_kernels(X: Views) -> dict[str, Any] | None:
    """Return kernels for views that the Gaussian one will not do for: sparse ones, strings, trees, Gram matrices.

    Parameters
    ----------
    X : Views
        The samples.

    Returns
    -------
    dict or None
        Kernels by view; None where no view needs one.

    Examples
    --------
    >>> from consilience import Views
    >>> from consilience.evaluation.comparison import default_kernels
    >>> default_kernels(Views({"sound": [[1.0], [2.0]], "word": ["yes", "no"]}))
    {'word': normalize(Spectrum(length=1) + Spectrum(length=2) + Spectrum(length=3))}
    """
    found: dict[str, Any] = {}
    for name in X.names:
        kind = X.kind(name)
        if kind == "sparse":
            found[name] = Linear()
        elif kind == "gram":
            found[name] = "precomputed"
        elif kind == "objects":
            first = X[name][int(np.flatnonzero(X.present(name))[0])]
            strings = isinstance(first, (str, bytes, list))
            found[name] = normalize(Spectrum(1) + Spectrum(2) + Spectrum(3) if strings else SubsetTree())
    return found or None


def candidates(X: Views, y: Any, *, numbers: bool | None = None) -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Learners to compare and their grids, by name: for classes or for numbers, complete views alone among them.

    Dense views are scaled, and gaps in a row filled with the means of the training part; numbers to be predicted are
    scaled too, since ridge learners have no offset.

    Parameters
    ----------
    X : Views
        The samples.
    y : array-like
        Classes or numbers.
    numbers : bool, optional
        Whether y has numbers; by default where they are not whole.

    Returns
    -------
    dict
        Name -> (learner behind its scaling, grid of its parameters).

    Examples
    --------
    >>> from consilience.evaluation.comparison import candidates
    >>> from consilience.datasets import load_breast_cancer_views
    >>> list(candidates(*load_breast_cancer_views(return_X_y=True)))[:2]
    ['CoRegularizedRidgeClassifierCV', 'CoRegularizedSVC']
    """
    kernels = default_kernels(X)
    numeric = all(X.kind(name) in ("dense", "sparse", "absent") for name in X.names)
    numbers = is_numbers(y) if numbers is None else numbers
    if numbers:
        learners, plain = _of_numbers(kernels), (Ridge(), {"estimator__alpha": [0.1, 1.0, 10.0, 100.0]})
    else:
        widths = {X[name].shape[1] for name in X.names} if numeric else set()
        learners = _of_classes(kernels, numeric, len(widths) == 1)
        plain = LogisticRegression(max_iter=5000), {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    found = {type(learner).__name__: (learner, grid) for learner, grid in learners}
    if numeric:
        found["EarlyFusion"] = EarlyFusion(plain[0]), plain[1]
        found["LateFusion"] = LateFusion(plain[0]), plain[1]
        for name in X.names if len(X.names) > 1 else ():
            if X.present(name).all():  # else some samples would have no answer
                found[f"{name} alone"] = LateFusion(plain[0]), plain[1]
    return {name: _with_grid(views_of(name, X), *pair, numbers) for name, pair in found.items()}


def scaled(X: Views, learner: Any, *, numbers: bool) -> Any:
    """A learner behind the scaling of dense views, their gaps filled, and of the numbers it predicts."""
    filled = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())  # gaps may come later too
    steps = {name: clone(filled) for name in X.names if X.kind(name) == "dense"}
    pipeline = make_pipeline(PerView(steps), learner) if steps else make_pipeline(learner)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if numbers else pipeline


def learner_of(model: Any) -> Any:
    """The learner itself, behind scaling of views and targets."""
    if isinstance(model, TransformedTargetRegressor):
        model = getattr(model, "regressor_", model.regressor)
    return model[-1] if isinstance(model, Pipeline) else model


def shown_to_learner(model: Any, X: Views) -> Views:
    """The samples as the learner itself sees them."""
    inside = model.regressor_ if isinstance(model, TransformedTargetRegressor) else model
    seen: Views = inside[:-1].transform(X) if isinstance(inside, Pipeline) and len(inside) > 1 else X
    return seen


def _with_grid(
    X: Views, learner: Any, grid: Mapping[str, list[Any]], numbers: bool
) -> tuple[Any, dict[str, list[Any]]]:
    """The scaled learner, and the grid by the names that parameters have in there."""
    key = ("regressor__" if numbers else "") + type(learner).__name__.lower()
    return scaled(X, learner, numbers=numbers), {f"{key}__{name}": values for name, values in grid.items()}


def _of_numbers(kernels: Any) -> list[tuple[Any, dict[str, list[Any]]]]:
    return [
        (CoRegularizedRidgeCV(kernel=kernels, agreement_penalties=(0.0, 1e-4)), {}),
        (ViewMetricRidgeCV(kernel=kernels), {}),
        (MultipleKernelRidge(kernel=kernels), {"alpha": [1e-2, 1e-1, 1.0]}),
    ]


def _of_classes(kernels: Any, numeric: bool, one_width: bool) -> list[tuple[Any, dict[str, list[Any]]]]:
    online = {"kernel": kernels, "average": True, "random_state": 0}
    found = [
        (CoRegularizedRidgeClassifierCV(kernel=kernels, agreement_penalties=(0.0, 1e-4)), {}),
        (CoRegularizedSVC(kernel=kernels), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}),
        (ViewMetricRidgeClassifierCV(kernel=kernels), {}),
        (MultipleKernelRidgeClassifier(kernel=kernels), {"alpha": [1e-2, 1e-1, 1.0]}),
        (MaxMarginClassifier(kernel=kernels), {"C": [0.1, 1.0, 10.0]}),
        (OrthogonalPerceptron(**online), {"p": [2.0, 4.0]}),  # p = 1 is the kernel perceptron
        (Projectron(**online), {}),
    ]
    if numeric:
        found += [(OnlinePerceptron(average=True, random_state=0), {}), (VectorPerceptron(random_state=0), {})]
    found += [
        (MultiCueClassifier(**online), {}),
        (PassiveAggressive(**online), {}),
        (KernelPerceptron(**online), {}),
    ]
    if one_width:
        found.append((MatrixPerceptron("rbf", average=True, random_state=0), {}))
    return found


def is_numbers(y: Any) -> bool:
    """Whether targets are numbers, and not classes."""
    return type_of_target(np.asarray(y)) in ("continuous", "continuous-multioutput")


def views_of(name: str, X: Views) -> Views:
    """The views that a learner of the board takes: all, or one alone."""
    alone = name.removesuffix(" alone")
    return X[[alone]] if alone != name else X
