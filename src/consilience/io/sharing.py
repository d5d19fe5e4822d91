"""Models without training samples: what a kernel machine keeps of patients is replaced before its file is shared.

The function of each view is f(x) = Σ_i a_i k(x, x_i) over stored samples x_i. For kernels that are linear in z it is
k(x, w) with w = Σ_i a_i x_i, exactly. For other kernels of numbers, f is projected onto the functions k(., z_j), where
each z_j is the mean of at least `min_samples` samples: K_zz b = K_zx a. That is the nearest combination in the norm of
the kernel's space, it works for every kernel of numbers, and its basis is averages, which are easier to defend than
random features of a function that was fitted to few samples. Either way the result is features of each view with
landmarks that are not samples, which all batch estimators predict from.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._backend import to_numpy
from ..batch._estimator import BatchEstimator
from ..batch._terms import terms_of
from ..batch._view_metric import ViewMetric
from ..batch.banded_ridge import BandedRidgeCV
from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..batch.max_margin import MaxMarginClassifier
from ..batch.max_margin_outputs import MaxMarginRegressor
from ..kernels import Kernel
from ..kernels.features import Nystroem
from ..kernels.joint import view_scales
from ..kernels.normalization import Standardized
from ..online._frame import OnlineEstimator
from ..online._machine import Machine
from ..online._ranking import RankingMachine
from ..solvers.certificates import Solution
from ..solvers.linalg import column_norms, orthonormal
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.batch_effects import RemoveBatch
from ..views.container import Views
from ..views.conversion import as_views
from ._averages import (
    average_rows,
    check_coefficients,
    check_view,
    group_size,
    is_linear,
    project_functions,
    round_limits,
)
from ._shared_consensus import share_consensus
from ._stored import check_no_rows, foreign_rows, is_ours, stored_samples, stored_text, walk

__all__ = ["SharedModel", "shareable"]

_LEAST = 5  # samples that each average, and each function, is made of
_PER_SAMPLE = (
    "X_fit_", "dual_coef_", "support_", "_support_labels", "_in_fit", "_means", "_fit_weights", "_landmark_root",
    "_shares",
)  # fmt: skip
#: Modules of scikit-learn whose estimators keep sums over samples, but no sample; and estimators of others
_PLAIN_MODULES = (
    "calibration", "compose", "decomposition", "discriminant_analysis", "dummy", "feature_extraction",
    "feature_selection", "impute", "linear_model", "model_selection", "multiclass", "multioutput", "naive_bayes",
    "neural_network", "pipeline", "preprocessing", "random_projection",
)  # fmt: skip
_PLAIN_CLASSES = (
    "AdditiveChi2Sampler", "LinearSVC", "LinearSVR", "PolynomialCountSketch", "RBFSampler", "SkewedChi2Sampler",
    "StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor",
)  # fmt: skip


@dataclass(frozen=True)
class SharedModel:
    """A model without training samples, and what that costs; prints as a sentence.

    Parameters
    ----------
    model : estimator
        The converted model.
    replaced : dict of int
        Number of training samples of each view that the original holds and `model` does not.
    averages : dict of int
        Number of averages that stand for them; 0 where coefficients over columns do, exactly.
    min_samples : int
        Smallest number of samples in an average.
    change : float or None
        For classes the share of replaced samples whose prediction changed; otherwise the root mean squared change over
        the standard deviation of the predictions. None if it cannot be measured.
    classifies : bool
        Whether `change` is a share of samples.
    before, after : float or None
        Scores on given samples of the original and of `model`.

    Examples
    --------
    >>> from consilience.io.sharing import SharedModel
    >>> print(SharedModel(None, {"rna": 100}, {"rna": 20}, 5, 0.01, True))
    Holds 0 training samples: 100 training samples of the view 'rna' became averages of at least 5 samples (20 in
    'rna'). The predictions of 1% of them changed.
    """

    model: Any
    replaced: dict[str, int]
    averages: dict[str, int]
    min_samples: int
    change: float | None = None
    classifies: bool = False
    before: float | None = None
    after: float | None = None

    @property
    def exact(self) -> bool:
        """Whether predictions are those of the original but for rounding."""
        return not any(self.averages.values())

    def __str__(self) -> str:
        if not self.replaced:
            return "Holds 0 training samples, as the original does; nothing was changed."
        text = f"Holds 0 training samples: {stored_text(self.replaced)} became {self._became()}."
        if self.change is not None and self.classifies:
            text += f" The predictions of {100 * self.change:.3g}% of them changed."
        elif self.change is not None:
            text += f" Predictions for them moved by {100 * self.change:.3g}% of their standard deviation."
        if self.before is not None:
            text += f" Score on the given samples: {self.before:.4f} before, {self.after:.4f} after."
        return text

    def _became(self) -> str:
        if self.exact:
            return "coefficients over columns, which are exact to rounding"
        counts = ", ".join(f"{n} in '{name}'" for name, n in self.averages.items() if n)
        linear = [name for name, n in self.averages.items() if not n]
        columns = f"; coefficients over the columns of {_blocks.quoted(linear)}" if linear else ""
        return f"averages of at least {self.min_samples} samples ({counts}{columns})"


def shareable(model: Any, X: Any = None, y: Any = None, *, min_samples: int = _LEAST) -> SharedModel:
    """Return a copy of a fitted model that predicts without any training sample, and what that costs.

    Kernel estimators keep training samples, which a file would carry to others. Here the function of each view is
    written without them. Kernels that are linear (`Linear`, `Mahalanobis`, their sums and multiples) become
    coefficients over columns, exactly. Other kernels of numbers are projected onto kernels at averages z of groups of
    at least `min_samples` similar samples (microaggregation after Domingo-Ferrer and Mateo-Sanz 2002), the nearest
    function in the kernel's space: K_zz b = K_zx a, with 1e-12 of the mean diagonal added to K_zz. Averages that equal
    a sample are merged with others. At the end every array of the model is compared with the samples it held.

    A consensus compares samples by several views at once, so its averages are joint ones: each sample is in at most one
    average per view. The function f of a base model becomes the one at averages that is nearest to f at the samples,
    (K_zx K_xz + ε K_zz) b = K_zx f. The weights for samples that lack views are kept. Held-out predictions are not, and
    without them there are no prediction sets and intervals.

    Limits of standardized columns are rounded outward to whole standard deviations, because they are values of single
    samples. So values far outside the training range may count for more than in the original.

    Refused, with the view or attribute named: Gram matrices, strings and trees, which have no average; centered
    kernels; products of views; functions of fewer than `min_samples` samples; online kernel machines; and estimators
    of other packages that keep samples, such as `SVC`. The result is not a proof of privacy: coefficients and averages
    depend on the samples, and classes, candidate outputs and column means stay.

    Parameters
    ----------
    model : estimator
        A fitted estimator, pipeline or search. It is not changed.
    X : Views or what `as_views` reads, optional
        Samples on which both models are scored, if `y` is given. The copy must not hold any of their rows either.
    y : array-like, optional
        Their classes or targets.
    min_samples : int, default=5
        Smallest number of samples in an average, at least 5.

    Returns
    -------
    SharedModel
        The copy as ``model``, and how far its predictions moved; prints as a sentence.

    See Also
    --------
    save : Writes such a copy with ``share=True``.
    consilience.io.stored_samples : How many training samples a model holds.

    Examples
    --------
    >>> import consilience as cs
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier("linear").fit(X[:300], y[:300])
    >>> shared = cs.shareable(model, X[300:], y[300:])
    >>> shared.exact, shared.before == shared.after
    (True, True)
    >>> print(shared.model.certificate())
    A copy of the fitted function without training samples, possibly approximate; no optimum is claimed.
    """
    if not isinstance(min_samples, Integral) or min_samples < _LEAST:
        raise ValueError(f"`min_samples` must be an integer of at least {_LEAST}; got {min_samples!r}.")
    if y is not None and X is None:
        raise ValueError("`y` needs its samples: give `X` too.")
    _check_fitted(model)
    held = stored_samples(model)
    copy = deepcopy(model)
    samples: list[Views] = [] if X is None else [as_views(X)]
    averages: dict[str, int] = {}
    ours: list[Views] = []  # averages that a consensus keeps
    for part, views in walk(copy):  # parts are changed before the walk enters them
        if isinstance(part, Standardized):
            round_limits(part)
        if not any(part is own for own in ours):
            _check_part(part, views, int(min_samples))
        stored = _stored_views(part)
        if stored is not None and stored_samples(part):
            samples.append(stored)
            for name, n in _convert(part, int(min_samples)).items():
                averages[name] = max(n, averages.get(name, 0))
        ours += [vars(part)["_averages"]] if isinstance(part, BatchEstimator) and "_averages" in vars(part) else []
    left = stored_samples(copy)
    if left:
        raise ValueError(f"Not shared: {type(model).__name__} still holds {stored_text(left)}, which have no average.")
    check_no_rows(copy, samples)
    scores = (None, None) if y is None else (float(model.score(X, y)), float(copy.score(X, y)))
    change, classifies = _change(model, copy)
    return SharedModel(copy, held, averages, int(min_samples), change, classifies, *scores)


# -- what is refused
def _check_fitted(model: Any) -> None:
    if hasattr(model, "fit"):
        check_is_fitted(model)


def _check_part(part: Any, views: tuple[str, ...], least: int) -> None:
    """Refuse a part of a model that keeps samples and cannot do without."""
    of = f" of the view{'s' * (len(views) > 1)} {_blocks.quoted(views)}" if views else ""
    if isinstance(part, OnlineEstimator):
        held, machine = stored_samples(part), vars(part).get("_machine")
        if held:
            raise ValueError(
                f"Not shared: {type(part).__name__} learns on from {stored_text(held)}, and cannot do without. Fit a "
                "batch estimator, or an online one with weights of columns such as OnlinePerceptron."
            )
        if isinstance(machine, (Machine, RankingMachine)) and 0 < machine.n_updates < least:
            raise ValueError(
                f"Not shared: the weights of {type(part).__name__} are a sum of {machine.n_updates} samples, fewer "
                f"than {least}. Learn from more samples."
            )
    if isinstance(part, BatchEstimator):
        _check_parameters(part)
    if isinstance(part, RemoveBatch) and part.batch_sizes_.min() < least:
        small = part.batches_[int(part.batch_sizes_.argmin())]
        raise ValueError(
            f"Not shared: the effect of the batch '{small}' is a mean of {part.batch_sizes_.min()} training samples, "
            f"fewer than {least}, and would describe them. Join small batches before the fit."
        )
    if isinstance(part, Views) and any(part.kind(name) != "gram" for name in part.names):
        raise ValueError("Not shared: there are samples (Views) in what is shared. Give a fitted model alone.")
    if isinstance(part, Gram) and views:
        raise ValueError(
            f"Not shared: the view{of.removeprefix(' of the view')} is a Gram matrix, and predictions need kernels "
            "with training samples. Give the data of the view instead."
        )
    if is_ours(part) or not isinstance(part, BaseEstimator) or set(vars(part)) <= set(part.get_params(deep=False)):
        return
    name, rows = type(part).__name__, foreign_rows(part)
    if rows is not None:
        raise ValueError(
            f"Not shared: {name}{of} keeps training samples in its attribute `{rows[0]}`. Use an estimator that keeps "
            "coefficients, such as LogisticRegression, Ridge or LinearSVC."
        )
    package, _, module = type(part).__module__.partition(".")
    if package != "sklearn" or (module.partition(".")[0] not in _PLAIN_MODULES and name not in _PLAIN_CLASSES):
        raise ValueError(
            f"Not shared: it is not known whether {name}{of} keeps training samples. Use an estimator that keeps "
            "coefficients, such as LogisticRegression, Ridge or LinearSVC."
        )


def _check_parameters(estimator: Any) -> None:
    """Refuse matrices between training samples among the parameters; prediction does not need them."""
    for name in ("graph", "metric", "operator"):
        given = getattr(estimator, name, None)
        if any(isinstance(part, np.ndarray) or sp.issparse(part) for part, _ in walk([given])):
            raise ValueError(
                f"Not shared: the parameter `{name}` of {type(estimator).__name__} is a matrix between training "
                f"samples. Set it to a name or None by model.set_params({name}=...); predictions do not use it."
            )


# -- one part of a model
def _convert(part: Any, least: int) -> dict[str, int]:
    """Replace the samples of an estimator or of Nyström features; return the number of averages by view."""
    if isinstance(part, Nystroem):
        return _convert_features(part, least)
    if isinstance(part, (ConsensusClassifier, ConsensusRegressor)):
        return share_consensus(part, least)
    functions = view_functions(part)
    terms = {term.name: term for term in terms_of(part)}  # each kernel of a view has a function of its own
    bases = {name: _basis(name, terms[name].kernel, block, A, least) for name, (block, A) in functions.items()}
    if getattr(part, "metric_", None) is not None:
        _convert_metric(part, least)
    for name in (*_PER_SAMPLE, "_sums"):  # sums over features that the copy does not have
        vars(part).pop(name, None)
    part._features = _features(part, {name: (z, B / _or_one(s)) for name, (z, B, s) in bases.items()})
    part.coef_ = {name: np.diag(s) for name, (_, _, s) in bases.items()}
    part.solution_ = Solution(x=None, gap=None, n_iter=part.solution_.n_iter, status="shared")
    counts: dict[str, int] = {}
    for name, (z, _, _) in bases.items():
        view, n = terms[name].view, 0 if is_linear(terms[name].kernel) else z.shape[0]
        counts[view] = max(n, counts.get(view, 0))
    return counts


def view_functions(estimator: Any) -> dict[str, tuple[Block, np.ndarray]]:
    """Return the stored samples of each view and their coefficients: f_v(x) = k_v(x, samples) @ coefficients.

    A view with several kernels has an entry for each.
    """
    fitted = vars(estimator)
    if "_features" in fitted:
        features = estimator._features
        return {n: (features._landmarks[n], to_numpy(features._roots[n]) @ W) for n, W in estimator.coef_.items()}
    X = estimator.X_fit_
    if not isinstance(fitted.get("_view_kernel", "diagonal"), str):
        raise ValueError(
            f"Not shared: `view_kernel` compares the views {_blocks.quoted(X.names)} of different samples, so that "
            "they cannot be averaged one by one. Fit with view_kernel='diagonal' or 'covariance'."
        )
    if isinstance(estimator, (MaxMarginClassifier, MaxMarginRegressor)):
        if not (isinstance(estimator._combine, str) and estimator._combine == "sum"):
            raise ValueError(
                f"Not shared: combine={estimator._combine!r} joins the views {_blocks.quoted(X.names)} of each sample, "
                "so that views cannot be averaged one by one. Fit with combine='sum'."
            )
        labels = len(estimator._outputs if isinstance(estimator, MaxMarginRegressor) else estimator.classes_)
        A = np.zeros((len(X), labels))
        A[estimator._in_fit, estimator._support_labels] = estimator.dual_coef_
        A *= view_scales(X)[:, None]  # samples that lack views count more in the others
        A = A if isinstance(estimator, MaxMarginRegressor) else A @ estimator._score_map
        duals: Any = [A] * len(X.names)
    elif isinstance(estimator, BandedRidgeCV):
        duals = [estimator._duals(v) for v in range(len(X.names))]
    else:
        duals = estimator.dual_coef_
    found = {}
    for term, dual in zip(terms_of(estimator), duals, strict=True):
        rows = np.flatnonzero(X.present(term.view))
        found[term.name] = _blocks.take(X.block(term.view), rows), dual[rows]
    return found


def _basis(name: str, kernel: Kernel, block: Block, A: np.ndarray, least: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return landmarks z that are not samples, and B, s with k(x, samples) @ A = k(x, z) @ B, exactly or nearly.

    s are square roots of the columns' sizes, by which coefficients are divided between features and estimator.
    """
    check_view(name, kernel, block, least)
    check_coefficients(f"an output of the view '{name}'", A, least)
    block = (block if sp.issparse(block) else np.asarray(to_numpy(block))).astype(np.float64)
    if is_linear(kernel):
        W = np.asarray(block.T @ A)
        size = column_norms(W)
        return np.ascontiguousarray((W / _or_one(size)).T), np.diag(size), np.sqrt(size)
    z = average_rows(block, group_size(block.shape[0], least), name)
    B = project_functions(kernel, block, A, z)
    return z, B, np.sqrt(column_norms(B))


def _or_one(size: np.ndarray) -> np.ndarray:
    return np.where(size > 0, size, 1.0)


def _features(estimator: Any, maps: dict[str, tuple[Any, np.ndarray]]) -> Nystroem:
    """Return features k(x, z) @ B of each view as an estimator predicts from them."""
    terms = {term.name: term for term in terms_of(estimator)}
    kernels = {name: terms[name].kernel for name in maps}
    features = Nystroem(kernels, n_components=max(z.shape[0] for z, _ in maps.values()))
    features.view_names_in_ = features._used_views = tuple(maps)
    features._known = {name: estimator._known[terms[name].view] for name in maps}
    features.kernels_, features._seed = kernels, 0
    features._landmarks = {name: z for name, (z, _) in maps.items()}
    features._roots = {name: np.ascontiguousarray(B) for name, (_, B) in maps.items()}
    features.landmark_indices_ = {name: np.arange(0) for name in maps}
    return features


def _convert_features(features: Nystroem, least: int) -> dict[str, int]:
    """Replace the landmarks of Nyström features by others, and project each feature on their kernels."""
    counts = {}
    for name, root in features._roots.items():
        kernel = features.kernels_[name]
        z, B, _ = _basis(name, kernel, features._landmarks[name], to_numpy(root), least)
        features._landmarks[name], features._roots[name] = z, np.ascontiguousarray(B)
        counts[name] = 0 if is_linear(kernel) else z.shape[0]
    features.landmark_indices_ = {name: np.arange(0) for name in features._roots}
    return counts


def _convert_metric(estimator: Any, least: int) -> None:
    """Replace the samples of a learned metric A = FF' by features q(x) = Q'k(x), with F = QT and the metric TT'.

    Q has orthonormal columns, so that norms of the metric's blocks stay as they are.
    """
    metric: ViewMetric = estimator.metric_
    space = metric._space
    outputs, maps = metric.factors, {}
    shared: list[dict[str, np.ndarray]] = [{} for _ in outputs]
    for name, term in zip(metric.names, terms_of(space), strict=True):
        F = np.hstack([factor[name] for factor in outputs])
        factors = F[:, F.any(axis=0)]  # a view that is left out has none, and a basis of nothing is single samples
        Q = orthonormal(factors) if factors.size else np.zeros((len(F), 1))
        if "_features" in vars(space):
            block, A = space._features._landmarks[name], to_numpy(space._features._roots[name]) @ Q
        else:
            rows = np.flatnonzero(space.X_fit_.present(term.view))
            block, A = _blocks.take(space.X_fit_.block(term.view), rows), Q[rows]
        z, B, _ = _basis(name, term.kernel, block, A, least)
        maps[name], T, at = (z, B), Q.T @ F, 0
        for factor, own in zip(outputs, shared, strict=True):
            wide = factor[name].shape[1]
            own[name], at = np.ascontiguousarray(T[:, at : at + wide]), at + wide
    metric.factors = shared
    space.__dict__.pop("X_fit_", None)
    space._features = _features(estimator, maps)


# -- what it costs
def _stored_views(part: Any) -> Views | None:
    """Return the samples that an estimator, or Nyström features, hold as Views; None if they hold none."""
    fitted = vars(part) if hasattr(part, "__dict__") else {}
    if isinstance(fitted.get("X_fit_"), Views) and isinstance(part, BatchEstimator):
        return part.X_fit_
    features = part if isinstance(part, Nystroem) else fitted.get("_features")
    if not isinstance(part, (BatchEstimator, Nystroem)) or not isinstance(features, Nystroem):
        return None
    of = vars(features).get("_view_of", {})  # kernels of one view have the same landmarks
    first = {of.get(name, name): name for name in reversed(vars(features).get("landmark_indices_", {}))}
    indices = {view: features.landmark_indices_[first[view]] for view in reversed(first)}
    everyone = np.unique(np.concatenate([np.arange(0), *indices.values()]))
    if not len(everyone):
        return None
    blocks, mask, names = {}, np.zeros((len(everyone), len(indices)), dtype=bool), {}
    for v, (name, own) in enumerate(indices.items()):
        rows = np.searchsorted(everyone, own)
        mask[rows, v] = True
        blocks[name] = _blocks.place_rows(features._landmarks[first[name]], rows, len(everyone))
        names[name] = part._known[name][2]
    return Views._of(blocks, len(everyone), mask, {k: v for k, v in names.items() if v is not None}, None)


def _change(before: Any, after: Any) -> tuple[float | None, bool]:
    """Return how far predictions for the stored samples moved, and whether that is a share of changed classes."""
    before, after = _inside(before), _inside(after)
    X = _stored_views(before)
    if isinstance(before, Pipeline):  # from the first step that holds samples
        first = next((k for k, (_, step) in enumerate(before.steps) if _stored_views(step) is not None), len(before))
        X = _stored_views(before[first]) if first < len(before) else None
        before, after = before[first:], after[first:]
    if X is None:
        return None, False
    old, new = (_outputs(model, X) for model in (before, after))
    if old.dtype.kind != "f" or is_classifier(before):
        differ = np.array([a != b for a, b in zip(old.tolist(), new.tolist(), strict=True)])
        return float(differ.mean()), True
    spread = float(np.std(old, axis=0).max()) or float(np.abs(old).max()) or 1.0
    return float(np.sqrt(np.mean((new - old) ** 2))) / spread, False


def _inside(model: Any) -> Any:
    """Return the model inside a search, and inside the scaling of targets."""
    model = getattr(model, "best_estimator_", model)
    return model.regressor_ if isinstance(model, TransformedTargetRegressor) else model


def _outputs(model: Any, X: Views) -> np.ndarray:
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X))
    transformed = model.transform(X)
    blocks: Sequence[Any] = [np.asarray(transformed.block(name)) for name in transformed.names]
    return np.nan_to_num(np.hstack(blocks))
