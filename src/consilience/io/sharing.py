"""Models without training samples: weights of columns take the place of stored samples where kernels are linear.

The function of each view is f(x) = Σ_i a_i k(x, x_i) over stored samples x_i. For kernels that are linear in z it is
k(x, w) with w = Σ_i a_i x_i, exactly. The result is features of each view with one landmark w for each output, which
all batch estimators predict from.
"""

from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from .._backend import to_numpy
from ..batch._estimator import BatchEstimator
from ..batch._terms import terms_of
from ..batch._view_metric import ViewMetric
from ..batch.banded_ridge import BandedRidgeCV
from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..batch.max_margin import MaxMarginClassifier
from ..batch.max_margin_outputs import MaxMarginRegressor
from ..kernels import Kernel, Linear, Mahalanobis
from ..kernels.algebra import OnColumns, Scaled, Sum
from ..kernels.features import Nystroem
from ..kernels.joint import view_scales
from ..online._frame import OnlineEstimator
from ..online._machine import Machine
from ..online._ranking import RankingMachine
from ..solvers.certificates import Solution
from ..solvers.linalg import column_norms, orthonormal
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.batch_effects import RemoveBatch
from ..views.container import Views
from ._stored import LEAST_SAMPLES, is_ours, stored_samples, stored_text, walk

__all__ = ["shareable"]

_PER_SAMPLE = (
    "X_fit_", "dual_coef_", "support_", "_support_labels", "_in_fit", "_means", "_fit_weights", "_landmark_root",
    "_shares", "_sums",
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


def shareable(model: Any) -> Any:
    """Return a copy of a fitted model that predicts the same without any training sample.

    Kernel estimators keep training samples, which a file would carry to others. Where all kernels are linear (`Linear`,
    `Mahalanobis`, their sums and multiples, on some columns), the function of each view becomes weights of its columns,
    which is exact to rounding. Linear online estimators, random features and fusions of linear estimators hold no
    samples and stay as they are.

    All other models raise an error that names what they hold: other kernels, also with `n_components`, whose landmarks
    are samples; the consensus; online kernel machines; Gram matrices; products of views; functions or statistics of
    fewer than 5 samples; and estimators of other packages that keep samples, such as `SVC`. Put `RandomFeatures` in
    front of a linear kernel to share a model that is not linear.

    The copy is not a proof of privacy: weights depend on the samples. Classes, candidate outputs, column means, and the
    smallest and largest value of columns where a scaler uses them, stay.

    Parameters
    ----------
    model : estimator
        A fitted estimator, pipeline or search. It is not changed.

    Returns
    -------
    estimator
        The copy.

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
    >>> shared = cs.shareable(model)
    >>> cs.io.stored_samples(model), cs.io.stored_samples(shared)
    ({'mean': 300, 'error': 300, 'worst': 300}, {})
    >>> shared.score(X[300:], y[300:]) == model.score(X[300:], y[300:])
    True
    """
    if hasattr(model, "fit"):
        check_is_fitted(model)
    copy = deepcopy(model)
    for part, _ in walk(copy):  # parts are changed before the walk enters them
        if _is_linear_machine(part) and stored_samples(part):
            _convert(part)
    left = stored_samples(copy)
    if left:
        name = "CoRegularizedRidgeClassifier" if is_classifier(model) else "CoRegularizedRidge"
        raise ValueError(
            f"Not shared: {type(model).__name__} predicts from {stored_text(left)}. Fit an estimator of column weights "
            f"such as {name}('linear') (-e {name} --set kernel=linear), also behind RandomFeatures, or "
            f"OnlinePerceptron, to at least {LEAST_SAMPLES} samples of each view."
        )
    for part, views in walk(copy):
        _check_part(part, views)
    return copy


# -- what is refused
def _check_part(part: Any, views: tuple[str, ...]) -> None:
    """Refuse a part of a model that keeps samples and cannot do without."""
    of = f" of the view{'s' * (len(views) > 1)} {_blocks.quoted(views)}" if views else ""
    if isinstance(part, OnlineEstimator):
        machine = vars(part).get("_machine")
        if isinstance(machine, (Machine, RankingMachine)) and 0 < machine.n_updates < LEAST_SAMPLES:
            raise ValueError(
                f"Not shared: the weights of {type(part).__name__} are a sum of {machine.n_updates} samples, fewer "
                f"than {LEAST_SAMPLES}. Learn from more samples."
            )
    if isinstance(part, BatchEstimator):
        _check_parameters(part)
    if isinstance(part, RemoveBatch) and part.batch_sizes_.min() < LEAST_SAMPLES:
        small = part.batches_[int(part.batch_sizes_.argmin())]
        raise ValueError(
            f"Not shared: the effect of the batch '{small}' is a mean of {part.batch_sizes_.min()} training samples, "
            f"fewer than {LEAST_SAMPLES}, and would describe them. Join small batches before the fit."
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
    name = type(part).__name__
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
def is_linear(kernel: Kernel) -> bool:
    """Tell whether k(x, z) is linear in z, so that a combination of kernels is the kernel at a combination."""
    if isinstance(kernel, (Sum, Scaled, OnColumns)):
        return all(map(is_linear, kernel._children()))
    return isinstance(kernel, (Linear, Mahalanobis))


def _is_linear_machine(part: Any) -> bool:
    """Tell whether an object is an estimator, or features, of linear kernels over stored samples."""
    if isinstance(part, Nystroem):
        return all(map(is_linear, getattr(part, "kernels_", {}).values()))
    stores = isinstance(part, BatchEstimator) and {"X_fit_", "_features"} & set(vars(part))
    if not stores or isinstance(part, (ConsensusClassifier, ConsensusRegressor)):
        return False
    return all(is_linear(term.kernel) for term in terms_of(part))


def _convert(part: Any) -> None:
    """Replace the samples of an estimator or of Nyström features."""
    if isinstance(part, Nystroem):
        for name, root in part._roots.items():
            part._landmarks[name], size = _weights(name, part._landmarks[name], to_numpy(root))
            part._roots[name] = np.diag(size)
        part.landmark_indices_ = {name: np.arange(0) for name in part._roots}
        return
    weights = {name: _weights(name, block, A) for name, (block, A) in view_functions(part).items()}
    if getattr(part, "metric_", None) is not None:
        _convert_metric(part)
    for name in _PER_SAMPLE:
        vars(part).pop(name, None)
    # the size of each output is divided between features and coefficients
    part._features = _features(part, {name: (z, np.diag(np.sqrt(size))) for name, (z, size) in weights.items()})
    part.coef_ = {name: np.diag(np.sqrt(size)) for name, (_, size) in weights.items()}
    part.solution_ = Solution(x=None, gap=None, n_iter=part.solution_.n_iter, status="shared")


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
            "views have no weights of columns. Fit with view_kernel='diagonal' or 'covariance'."
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


def _weights(name: str, block: Block, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows z of length 1 and sizes with k(x, samples) @ A = k(x, z) * sizes for a linear kernel."""
    used = np.count_nonzero(A, axis=0)
    few = used[(used > 0) & (used < LEAST_SAMPLES)]
    if len(few):
        raise ValueError(
            f"Not shared: an output of the view '{name}' is made of {few[0]} training samples, fewer than "
            f"{LEAST_SAMPLES}, and would describe them. Fit with more samples for each output."
        )
    W = np.asarray((block if sp.issparse(block) else np.asarray(to_numpy(block))).astype(np.float64).T @ A)
    size = column_norms(W)
    return np.ascontiguousarray((W / np.where(size > 0, size, 1.0)).T), size


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


def _convert_metric(estimator: Any) -> None:
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
        z, size = _weights(name, block, A)
        maps[name], T, at = (z, np.diag(size)), Q.T @ F, 0
        for factor, own in zip(outputs, shared, strict=True):
            wide = factor[name].shape[1]
            own[name], at = np.ascontiguousarray(T[:, at : at + wide]), at + wide
    metric.factors = shared
    space.__dict__.pop("X_fit_", None)
    space._features = _features(estimator, maps)
