"""What the maximum margin estimators share: their samples, the kernel or features of all views, and prediction."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..kernels import Linear, reference_views
from ..kernels.features import inverse_root
from ..kernels.joint import JointKernel, view_scales
from ..solvers.certificates import Solution, warn_unless_converged
from ..solvers.linalg import is_positive
from ..solvers.margin import KernelRows, MarginInput, RowFiller
from ..solvers.margin_intercept import intercept_suffices
from ..solvers.margin_labels import HELD, LabelKernel
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import presence
from ._estimator import BatchEstimator
from ._fit import TrainingData, feature_design, indefinite, select_training_rows
from ._memory import check_cache, margin_components, row_parts

_FEW = 2000  # up to so many samples, the Gram matrix is faster than the data of linear kernels
_CHECKED = 4000  # number of samples between which a kernel from outside is checked
_STORED = ("coef_", "X_fit_", "_features", "_in_fit", "_means", "_fit_weights", "_landmark_root")


# -- 1. the training data
def select_labeled(estimator: Any, X: Views, of: np.ndarray, u: np.ndarray) -> TrainingData:
    """Return the samples that have a label and a weight above 0; their targets are the positions of their labels.

    Other samples take no part, not even in kernel parameters that depend on the data. `of` is -1 without a label.
    """
    labeled = of >= 0
    u = np.where(labeled, u, 0.0)
    X, kernels, order = select_training_rows(estimator, X, labeled, u, use_unlabeled=False)
    return TrainingData(X, kernels, order, len(u), u[order], of[order], u[order], of[order])


def check_intercept(labels: LabelKernel) -> None:
    """Refuse an intercept where it meets all margins by itself."""
    if not labels.has_vectors:
        raise _too_many(labels)
    if intercept_suffices(labels.as_vectors()[np.unique(labels.of)]):
        raise ValueError(
            "`fit_intercept` is not possible with these label vectors: one vector b has <y, b> >= 1 for each of them, "
            "so the intercept alone would meet every margin (in the dual Σ α_i y_i = 0 leaves α = 0 only). Use vectors "
            "that balance, such as 'simplex', or leave `fit_intercept` out."
        )


def _too_many(labels: LabelKernel) -> ValueError:
    return ValueError(
        f"There are {labels.n} different outputs; `n_components` and `fit_intercept` hold the kernel between outputs "
        f"as a matrix, for {HELD} of them at most. Leave these out, or give outputs as vectors."
    )


def previous_alpha(estimator: Any, data: TrainingData) -> np.ndarray | None:
    """Return α of the last fit for the samples at the same positions, if `warm_start` asks for it."""
    if not estimator.warm_start or not hasattr(estimator, "dual_coef_") or estimator._n_fit != data.n:
        return None
    alpha = np.zeros(data.n)
    alpha[estimator.support_] = estimator.dual_coef_
    return alpha[data.order]


# -- 2. the design
@dataclass
class MarginDesign:
    """One kernel of all views: its rows as the solver asks for them, or features."""

    joint: JointKernel
    arrays: MarginInput  # what the solver reads
    sizes: list[int] = field(default_factory=list)  # number of features of each view; empty for features of all views
    landmarks: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))  # of features of all views
    root: np.ndarray | None = None  # K(landmarks, landmarks)^(-1/2)
    proved: bool = True  # whether the kernel is known to be positive semi-definite, so that the gap is a bound


def margin_design(estimator: Any, data: TrainingData, labels: LabelKernel) -> MarginDesign:
    """Return the kernel of all views, or its features for `n_components` and for many samples of linear kernels."""
    for name in _STORED:
        vars(estimator).pop(name, None)
    joint = JointKernel(data.kernels, data.X, estimator.combine, weights=data.s)
    proved = _check_definite(joint)
    few_labels = labels.vectors is not None or labels.n <= _FEW // 10
    size = estimator.n_components_ = margin_components(estimator, len(data.order), len(data.X.names))
    if size is None and not (few_labels and _is_linear(joint)):
        check_cache(estimator, len(data.order))
        single = estimator.tol >= 1e-4
        rows = KernelRows(_row_filler(joint), joint.diagonal(), 1e6 * estimator.cache_size, single)
        return MarginDesign(joint, rows, proved=proved)
    if not labels.has_vectors:
        raise _too_many(labels)
    if not joint.adds:
        landmarks, root, Phi = _joint_features(estimator, joint)
        return MarginDesign(joint, Phi, [], landmarks, root, proved)
    if size is None:
        Phi, sizes = _linear_features(data.X)
    else:
        features = feature_design(estimator, data)
        Phi, sizes = np.concatenate([block.Phi for block in features.rows()]), features.sizes
    if data.X.mask is not None:
        scale = view_scales(data.X)
        Phi = sp.csr_array(sp.diags_array(scale) @ Phi) if sp.issparse(Phi) else Phi * scale[:, None]
    return MarginDesign(joint, Phi, sizes, proved=proved)


def _row_filler(joint: JointKernel) -> Any:
    """Return the function by which the solver asks for rows of the kernel."""

    def against(columns: np.ndarray, dtype: Any) -> RowFiller:
        fill = joint.against(columns, dtype)
        return lambda which, out: fill(joint.X[which], out)

    return against


def _check_definite(joint: JointKernel) -> bool:
    """Refuse kernels from outside that are not positive semi-definite; return whether all samples were checked."""
    proved = True
    for name, kernel in joint.kernels.items():
        rows = np.flatnonzero(joint.X.present(name))
        if not kernel.may_be_indefinite:
            continue
        if len(rows) > _CHECKED:
            rows, proved = rows[np.linspace(0, len(rows) - 1, _CHECKED).astype(int)], False
        with _blocks.naming(name):
            K = _blocks.to_numpy(kernel(_blocks.take(joint.X.block(name), rows)))
        if not is_positive(K):
            raise indefinite(name)
    return proved


def _is_linear(joint: JointKernel) -> bool:
    """Tell whether the features of the kernels are the data, with fewer entries than the Gram matrix."""
    plain = all(type(kernel) is Linear for kernel in joint.kernels.values())
    if not (joint.adds and plain and all(joint.X.kind(name) in ("dense", "sparse") for name in joint.X.names)):
        return False
    n = len(joint.X)
    return n > _FEW and sum(_blocks.entries(joint.X.block(name)) for name in joint.X.names) <= n**2


def _linear_features(X: Views) -> tuple[Any, list[int]]:
    """Return the data of all views as one matrix, 0 where a view is missing, and the columns of each view."""
    blocks = []
    for name in X.names:
        block, present = X.block(name), X.present(name)
        if sp.issparse(block):
            block = block.astype(np.float64)
            blocks.append(block if present.all() else sp.csr_array(sp.diags_array(present.astype(np.float64)) @ block))
        else:
            values = np.asarray(_blocks.to_numpy(block), dtype=np.float64)
            blocks.append(values if present.all() else np.where(present[:, None], values, 0.0))
    sizes = [block.shape[1] for block in blocks]
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks])), sizes
    return np.ascontiguousarray(np.hstack(blocks)), sizes


def _joint_features(estimator: Any, joint: JointKernel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return landmarks among the samples, K(landmarks, landmarks)^(-1/2), and Nyström features of the joint kernel."""
    n, size = len(joint.X), estimator.n_components_
    landmarks = np.sort(check_random_state(estimator.random_state).choice(n, min(n, size), replace=False))
    K = joint.cross(joint.X, landmarks)
    root = inverse_root(K[landmarks])
    return landmarks, root, np.ascontiguousarray(K @ root)


# -- 3. the fit
def store_margin(
    estimator: Any,
    data: TrainingData,
    design: MarginDesign,
    solution: Solution,
    n_labels: int,
    score_map: np.ndarray | None = None,
) -> Any:
    """Store α, what prediction needs and what is proved; return the estimator.

    ``score_map`` (n_labels, n_outputs) makes outputs of the sums Σ α_i k(x, x_i) over the support of each label; by
    default, these sums are the outputs.
    """
    if solution.status == "indefinite":
        raise ValueError(
            "The kernel of all views together is not positive semi-definite, so the problem has no minimum. Use "
            "positive semi-definite kernels; `consilience.kernels.nearest_psd` makes one of a matrix."
        )
    alpha = solution.x[0]
    estimator.solution_ = replace(solution, x=alpha)
    if not design.proved and solution.converged:  # the gap is a bound only for positive semi-definite kernels
        estimator.solution_ = replace(estimator.solution_, gap=None, status="settled")
    estimator.view_weights_ = np.ones(len(estimator._used_views))
    kept = np.flatnonzero(alpha)
    kept = kept if len(kept) else np.arange(1)
    kept = kept[np.argsort(data.order[kept])]
    estimator._n_fit, estimator._combine = data.n, estimator.combine  # the parameter may be set anew before prediction
    estimator.support_, estimator.dual_coef_ = data.order[kept], alpha[kept]
    estimator._support_labels = data.Y[kept]
    if isinstance(design.arrays, KernelRows):
        _store_samples(estimator, design.joint, kept)
    else:
        sums = _by_label(estimator, n_labels) @ design.arrays[kept]
        sums = (sums.toarray() if sp.issparse(sums) else sums).T
        _store_coefficients(estimator, design, sums if score_map is None else sums @ score_map)
    warn_unless_converged(estimator.solution_, type(estimator).__name__)
    return estimator


def _store_samples(estimator: Any, joint: JointKernel, kept: np.ndarray) -> None:
    """Store the samples to predict from: the support; all samples where missing views are replaced by means."""
    some = kept if joint.adds else np.arange(len(joint.X))
    estimator.X_fit_ = reference_views(joint.kernels, joint.X[some])
    estimator._in_fit = np.arange(len(kept)) if joint.adds else kept
    estimator._means, estimator._fit_weights = joint.means, joint.weights[some]


def _store_coefficients(estimator: Any, design: MarginDesign, W: np.ndarray) -> None:
    """Store the coefficients of the features, by view unless they are features of all views together."""
    W = np.ascontiguousarray(W)
    if design.sizes:
        ends = np.cumsum(design.sizes)
        names = design.joint.X.names
        estimator.coef_ = {n: W[end - size : end] for n, size, end in zip(names, design.sizes, ends, strict=True)}
        return
    _store_samples(estimator, design.joint, design.landmarks)
    estimator.coef_, estimator._landmark_root = {"all views": W}, design.root


# -- prediction
def _by_label(estimator: Any, n_labels: int) -> sp.csr_array:
    """Return α of the support by label, (n_labels, n_support)."""
    n = len(estimator._support_labels)
    return sp.csr_array((estimator.dual_coef_, (estimator._support_labels, np.arange(n))), shape=(n_labels, n))


def _fitted_kernel(estimator: Any) -> JointKernel:
    """Return the kernel of all views against the stored samples."""
    means, weights = dict(estimator._means), estimator._fit_weights
    return JointKernel(estimator.kernels_, estimator.X_fit_, estimator._combine, means, weights=weights)


def margin_outputs(estimator: Any, X: Views, n_labels: int, score_map: np.ndarray | None = None) -> np.ndarray:
    """Return the outputs of new samples without the intercept, (n, n_outputs); see `store_margin`."""
    if "coef_" in vars(estimator) and not hasattr(estimator, "_landmark_root"):
        outputs = np.where(presence(X)[:, :, None], _linear_outputs(estimator, X), 0.0)
        return outputs.sum(axis=1) * view_scales(X)[:, None]
    joint, n_fit = _fitted_kernel(estimator), len(estimator._in_fit)
    parts = [X[rows] for rows in row_parts(len(X), n_fit)]
    if "coef_" in vars(estimator):
        root, W = estimator._landmark_root, estimator.coef_["all views"]
        return np.concatenate([joint.cross(part, estimator._in_fit) @ root for part in parts]) @ W
    place = _by_label(estimator, n_labels)
    sums = np.concatenate([(place @ joint.cross(part, estimator._in_fit).T).T for part in parts])
    return sums if score_map is None else sums @ score_map


def margin_view_outputs(estimator: Any, X: Views, n_labels: int, score_map: np.ndarray | None = None) -> np.ndarray:
    """Return each view's own outputs, (n, n_views, n_outputs); 0 where a view is missing."""
    if not (isinstance(estimator._combine, str) and estimator._combine == "sum"):
        raise ValueError(
            f"With combine={estimator._combine!r} views have no predictions of their own: the kernel is not a sum over "
            "views."
        )
    if "coef_" in vars(estimator):
        return _linear_outputs(estimator, X)
    place, sums = _by_label(estimator, n_labels), np.zeros((len(X), len(X.names), n_labels))
    support = estimator.X_fit_[estimator._in_fit]
    scales = view_scales(estimator.X_fit_)[estimator._in_fit]
    for v, name in enumerate(X.names):
        rows, members = np.flatnonzero(X.present(name)), np.flatnonzero(support.present(name))
        if not len(rows) or not len(members):
            continue
        alone = JointKernel({name: estimator.kernels_[name]}, support[members][[name]], "sum")
        for part in row_parts(len(rows), len(members)):
            some = rows[part]
            kernel = alone.cross(X[some][[name]]) * scales[members]
            sums[some, v] = (place[:, members] @ kernel.T).T
    return sums if score_map is None else sums @ score_map


def _linear_outputs(estimator: Any, X: Views) -> np.ndarray:
    """Return each view's own outputs over its features, (n, n_views, n_outputs)."""
    if hasattr(estimator, "_features"):
        return BatchEstimator._view_outputs(estimator, X)
    outputs = np.zeros((len(X), len(X.names), next(iter(estimator.coef_.values())).shape[1]))
    for v, name in enumerate(X.names):
        rows = np.flatnonzero(X.present(name))
        if len(rows):
            block = _blocks.take(X.block(name), rows)
            outputs[rows, v] = np.asarray(_blocks.to_numpy(block @ estimator.coef_[name]))
    return outputs
