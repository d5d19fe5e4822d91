"""Validation of states that were read from a file: shapes, types, index ranges, before any compiled loop sees them.

A file of trusted types can still hold arrays of any shape. Compiled loops do not check their indices, so the arrays
that they index are checked here, once, after loading.
"""

import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..batch._partial import has_valid_sums
from ..batch._terms import names_of_terms
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.max_margin import MaxMarginClassifier
from ..batch.max_margin_outputs import MaxMarginRegressor
from ..kernels import Kernel
from ..kernels.features import Nystroem, RandomFeatures
from ..online._candidates import OutputList
from ..online._dual import Grams, KernelMachine, Support, SupportMachine
from ..online._factors import ViewFactors
from ..online._frame import FIXED, OnlineEstimator
from ..online._linear import LinearMachine
from ..online._link import LinkMachine
from ..online._machine import Machine, takes_means
from ..online._projectron import ProjectronMachine
from ..online._ranking import RankingMachine
from ..online._rows import Columns
from ..online._vector import VectorMachine
from ..online.multicue import MultiCueClassifier
from ..online.ranking import RankingPerceptron
from ..solvers.certificates import STATUSES, Certificate, Solution
from ..views._blocks import Gram, width
from ..views._reading import checked_sparse
from ..views.container import Views
from ._consensus_states import check_consensus
from ._remembered_states import check_remembered
from ._trees import check_trees

_NAMED = type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType  # in files by name alone


class BadState(ValueError):
    """Error for a state that `save` cannot have written."""


def check_state(model: Any) -> None:
    """Validate a model and everything in it.

    Parameters
    ----------
    model : object
        The loaded model.

    Raises
    ------
    BadState
        If an array, an index or a number cannot be what `save` wrote.
    """
    try:
        _walk(model, set())
    except BadState:
        raise
    except Exception as error:  # an attribute is missing, or is of another type than its checks expect
        raise BadState("its parts do not fit together") from error


def _walk(value: Any, seen: set[int]) -> None:
    """Check parts before the whole, each once."""
    if value is None or isinstance(value, (str, bytes, int, float)) or id(value) in seen:
        return
    seen.add(id(value))
    if sp.issparse(value):
        _require(value.format == "csr" or not _is_ours(value), "a sparse matrix is not in CSR format")
        try:
            checked_sparse(value, "A sparse matrix")
        except ValueError as error:
            raise BadState("a sparse matrix points outside its arrays") from error
        return
    for part in _parts(value):
        _walk(part, seen)
    for kind, check in _CHECKS.items():
        if isinstance(value, kind):
            check(value)
    check_trees(value, _require)
    check_consensus(value, _require)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, np.ndarray):
        return list(value.ravel()) if value.dtype == object else []
    return list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, _NAMED) else []


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "consilience"


# -- small checks
def _require(fits: Any, what: str) -> None:
    if not fits:
        raise BadState(what)


def _array(owner: Any, name: str, shape: tuple[int | None, ...], kinds: str = "f") -> np.ndarray:
    """Check an array: its type, its shape (None: any size), that it is contiguous and finite."""
    value, what = getattr(owner, name), f"{type(owner).__name__}.{name}"
    _require(isinstance(value, np.ndarray) and value.dtype.kind in kinds, f"{what} is not an array of its type")
    _require(value.dtype.isnative and value.dtype.itemsize <= 8, f"{what} has the type {value.dtype}")
    _require(kinds != "i" or value.dtype == np.int64, f"{what} has the type {value.dtype}")
    agrees = value.ndim == len(shape) and all(b is None or a == b for a, b in zip(value.shape, shape, strict=True))
    _require(agrees, f"{what} has the shape {value.shape}, not {shape}")
    _require(value.size == 0 or value.flags.c_contiguous or value.flags.f_contiguous, f"{what} is not contiguous")
    if value.dtype.kind == "f":
        _require(np.isfinite(value).all(), f"{what} is not finite")
    return value


def _doubles(owner: Any, **shapes: tuple[int | None, ...]) -> None:
    """Check arrays in double precision, in C's order."""
    for name, shape in shapes.items():
        value = _array(owner, name, shape)
        _require(value.dtype == np.float64 and (value.size == 0 or value.flags.c_contiguous), f"{name} is not double")


def _counts(owner: Any, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        _require(whole and 0 <= value < 2**62, f"{type(owner).__name__}.{name} is not a count")


def _number(owner: Any, name: str, least: float) -> None:
    value = getattr(owner, name)
    _require(isinstance(value, float) and np.isfinite(value) and value >= least, f"{name} is {value!r}")


def _names(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)


# -- data
def _check_views(X: Views) -> None:
    _counts(X, "_n")
    n, m = X._n, len(X.names)
    _require(_names(X.names) and m > 0 and tuple(X._blocks) == tuple(X.names), "Views have other names than data")
    if X.mask is not None:
        _require(isinstance(X.mask, np.ndarray) and X.mask.dtype == bool and X.mask.shape == (n, m), "Views.mask")
    for name, block in X._blocks.items():
        if block is None:
            continue
        numbers = not isinstance(block, Gram) and block.dtype in (np.float32, np.float64)
        kind = isinstance(block, Gram) or (numbers and block.ndim == 2) or (block.dtype == object and block.ndim == 1)
        _require(kind and block.shape[0] == n, f"view '{name}' is not data of {n} samples")
        if sp.issparse(block):
            again = type(block)((block.data, block.indices, block.indptr), shape=block.shape)
            _require(again.has_canonical_format and len(block.data) == block.indptr[-1], f"view '{name}' is not sorted")
            block.has_canonical_format = True  # the file may say otherwise
    for name, columns in X.feature_names.items():
        fits = name in X._blocks and isinstance(columns, tuple) and all(isinstance(c, str) for c in columns)
        _require(fits and len(columns) == (width(X._blocks[name]) or len(columns)), f"columns of view '{name}'")


def _check_gram(gram: Gram) -> None:
    if gram.values is not None:
        _array(gram, "values", (None, None))
        _require(gram.n_columns == gram.values.shape[1], "a Gram matrix has other columns than it says")
    index = _array(gram, "index", (None,), "iu")
    limit = gram.values.shape[0] if gram.values is not None else gram.n_columns
    _require(
        not len(index) or (index.min() >= 0 and index.max() < limit), "positions in a Gram matrix are out of range"
    )
    _counts(gram, "n_order")
    if gram.order is not None:
        order = _array(gram, "order", (len(index),), "iu")
        _require(not len(order) or (order.min() >= 0 and order.max() < gram.n_order), "orders of a Gram matrix")


def _check_solution(solution: Solution | Certificate) -> None:
    _require(solution.status in STATUSES, f"a status is {solution.status!r}")


# -- online machines
def _check_events(machine: LinkMachine | KernelMachine, n_slots: int, n_groups: int) -> None:
    events, E = machine.events, len(machine.events.slots)
    limits = (("slots", n_slots), ("outputs", machine.n_outputs), ("samples", machine.n_hypotheses + 1))
    for name, limit in limits:
        values = _array(events, name, (E,), "i")
        _require(not E or (values.min() >= 0 and values.max() < limit), f"Events.{name} are out of range")
    _doubles(events, coefs=(E,), factors=(E, n_groups if E else None))


def _check_support(support: Support) -> None:
    _require(isinstance(support.parts, list) and all(isinstance(X, Views) for X in support.parts), "Support.parts")
    _array(support, "ids", (sum(len(X) for X in support.parts),), "i")


def _check_grams(grams: Grams) -> None:
    _require(grams.shape in ("joint", "views", "pairs"), f"Grams.shape is {grams.shape!r}")
    named = isinstance(grams.kernels, dict) and _names(list(grams.kernels))
    _require(named and all(isinstance(k, Kernel) for k in grams.kernels.values()), "Grams.kernels")


def _check_columns(columns: Columns) -> None:
    """Check that the columns of views follow each other, or that all begin at 0 where they are shared."""
    _counts(columns, "width")
    offsets, widths, shared = columns.offsets, columns.widths, columns.shared
    _require(_names(list(offsets)) and list(widths) == list(offsets), "views of a machine")
    at = min(offsets.values(), default=columns.width)
    for name, wide in widths.items():
        whole = type(wide) is int and wide > 0 and type(offsets[name]) is int
        _require(whole and offsets[name] == (0 if shared else at), f"columns of view '{name}'")
        at = max(at, wide) if shared else at + wide
    _require(columns.width == at, "width of a machine")


def _check_factors(factors: ViewFactors) -> None:
    _require(factors.shape in ("joint", "views", "pairs"), f"ViewFactors.shape is {factors.shape!r}")
    m, T = len(factors.names), factors.F.shape[-1]
    _require(_names(factors.names), "ViewFactors.names")
    G = 1 if factors.shape == "joint" else m if factors.shape == "views" else m * m
    _doubles(factors, norms=(G, T), F=(G, T), C=(G, T), prior=(G,), counters=(2,))
    _number(factors, "p", 1.0)
    _doubles(factors, learned=(1 + m if factors.prior_norms == "learned" and factors.p != 1 else 0,))


def _check_machine(machine: Machine) -> None:
    _counts(machine, "n_outputs", "n_updates", "n_hypotheses")
    _require(machine.n_outputs > 0, "outputs of a machine")


def _check_linear(machine: LinearMachine) -> None:
    factors, columns, T = machine.factors, machine.columns, machine.n_outputs
    pairs, m = machine.shape == "pairs", len(columns.offsets)
    _require(machine.shape == factors.shape and columns.shared == pairs, f"LinearMachine.shape is {machine.shape!r}")
    _require(factors.names == tuple(columns.offsets) and factors.F.shape[1] == T, "factors of a machine")
    _require(not m or min(columns.offsets.values()) == 0, "columns of a machine")
    vectors = m if pairs else 1
    V = _array(machine, "V", (columns.width, vectors, T))
    _require(V.dtype in (np.float32, np.float64) and (not V.size or V.flags.c_contiguous), "LinearMachine.V")
    _doubles(machine, U=(columns.width if machine.average and m else 0, vectors, T))
    _doubles(machine, intercept=(2 if machine.fit_intercept else 0, T))
    _require(machine._state is None and machine._weights is None, "LinearMachine")


def _check_link(machine: LinkMachine) -> None:
    columns, T, first = machine.columns, machine.n_outputs, int(machine.fit_intercept)
    size, kept = columns.width, columns.width if takes_means(machine.average) else 0
    _require(not columns.shared and min(columns.offsets.values(), default=size) == first, "columns of a machine")
    _doubles(machine, V=(size, T), W=(size, T), power=(T,), scale=(T,), base=(T,), C=(T,), counters=(1,))
    for name in ("U", "last"):
        _doubles(machine, **{name: (len(getattr(machine, name)), T)})
        _require(len(getattr(machine, name)) in (0, kept), f"LinkMachine.{name}")
    _require(not kept or len(machine.U) == kept or not columns.offsets, "LinkMachine.U")
    changes = machine.changes
    _require(isinstance(changes, list) and all(sp.issparse(c) and c.shape[1] <= size for c in changes), "changes")
    _check_events(machine, sum(c.shape[0] for c in changes), 1)
    _number(machine, "p", 2.0)


def _check_support_machine(machine: SupportMachine) -> None:
    known = set(machine.grams.kernels)
    _require(all(set(X.names) <= known for X in machine.support.parts), "views of the support")


def _check_kernel_machine(machine: KernelMachine) -> None:
    _counts(machine, "budget")
    factors, T, S = machine.factors, machine.n_outputs, len(machine.support)
    _require(factors.shape == machine.grams.shape and factors.F.shape[1] == T, "factors of a machine")
    _require(factors.names == tuple(machine.grams.kernels), "factors of a machine")
    _array(machine, "alpha", (T, S))
    _array(machine, "beta", (machine.grams.n_groups() if takes_means(machine.average) else 0, T, S))
    _array(machine, "alive", (S,), "b")
    side = len(machine.output_gram)
    _doubles(machine, output_gram=(side, side))
    _require(side in (0, T), "KernelMachine.output_gram")
    _check_events(machine, S, machine.grams.n_groups())


def _check_projectron(machine: ProjectronMachine) -> None:
    _counts(machine, "budget", "n_projections")
    T, S = machine.n_outputs, len(machine.support)
    _require(machine.grams.shape == "joint", "groups of a machine")
    _doubles(machine, L=(S, S), largest=(1,))
    for name in ("alpha", "beta"):
        _array(machine, name, (T, S))
    _require(np.all(machine.L.diagonal() > 0), "ProjectronMachine.L")


def _check_vector_machine(machine: VectorMachine) -> None:
    T, S = machine.n_outputs, len(machine.support)
    _require(machine.grams.shape == "joint" and type(machine.linear) is bool, "groups of a machine")
    _doubles(machine, class_gram=(T, T))
    _array(machine, "class_vectors", (T, None))
    _number(machine, "squared_norm", -np.inf)
    for weights in machine.weights.values():
        _require(weights.ndim == 2 and weights.shape[1] == T and weights.dtype == np.float64, "weights")
    _array(machine, "alpha", (S,))
    codes = _array(machine, "codes", (S,), "i")
    _require(not S or (codes.min() >= 0 and codes.max() < T), "VectorMachine.codes")


# -- estimators
def _check_estimator(estimator: Any) -> None:
    """Check an estimator of the library; others have their parameters, but are not made of our arrays."""
    _require(set(estimator._get_param_names()) <= set(vars(estimator)), "a parameter is missing")
    if _is_ours(estimator):
        _check_fitted(estimator)
        if not isinstance(estimator, OnlineEstimator):
            _check_batch(estimator)


def _check_fitted(estimator: Any) -> None:
    """Check what all fitted estimators keep of their views and classes."""
    fitted = vars(estimator)
    if "view_names_in_" in fitted:
        _require(_names(estimator.view_names_in_), "view_names_in_")
    if "_used_views" in fitted:
        used = estimator._used_views
        _require(_names(used) and set(used) <= set(estimator.view_names_in_), "_used_views")
    check_remembered(estimator, _require)
    if "classes_" in fitted:
        classes = estimator.classes_
        _require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes), "classes_")
        _require(len(np.unique(classes)) == len(classes) and (np.unique(classes) == classes).all(), "classes_")


def _check_online(estimator: OnlineEstimator) -> None:
    if "n_samples_seen_" not in vars(estimator):
        return
    _counts(estimator, "n_samples_seen_", "n_mistakes_", "_n_late", "_next_id", "n_iter_")
    _require(_names(estimator._met) and set(estimator._met) <= set(estimator.view_names_in_), "_met")
    _require(all(len(pair) == 2 for pair in estimator._curve), "_curve")
    _require(list(estimator._began_with) == [name for name in FIXED if hasattr(estimator, name)], "_began_with")
    estimator._check_fixed()
    if isinstance(estimator, RankingPerceptron) and estimator._ranks():
        _check_ranking(estimator)
        return
    codes = {label: code for code, label in enumerate(estimator.classes_.tolist())}
    _require(estimator._codes == codes and all(type(code) is int for code in estimator._codes.values()), "_codes")
    machine, P = estimator._machine, len(estimator.classes_)
    expected = estimator._new_machine(1 if P <= 2 else P)  # what the parameters of the estimator ask for
    kinds = type(machine).__name__, type(expected).__name__
    _require(type(machine) is type(expected), f"its machine is a {kinds[0]}, not a {kinds[1]}")
    _require(machine.n_outputs == expected.n_outputs, "outputs of its machine")
    for name in ("average", "shape", "fit_intercept", "linear", "budget"):
        _require(getattr(machine, name, None) == getattr(expected, name, None), f"{name} of its machine")
    names = machine.grams.kernels if isinstance(machine, SupportMachine) else machine.columns.widths
    _require(set(names) <= set(estimator.view_names_in_), "views of its machine")
    kernels = vars(estimator).get("kernels_", {})
    _require(isinstance(kernels, dict) and all(isinstance(k, Kernel) for k in kernels.values()), "kernels_")
    if hasattr(estimator, "_width"):
        _counts(estimator, "_width")


def _check_ranking(estimator: RankingPerceptron) -> None:
    """Check a ranking of outputs of any kind; it has no classes."""
    machine, expected = estimator._machine, estimator._new_machine(1)
    _require(type(machine) is type(expected) and isinstance(estimator._outputs, OutputList), "its machine")
    for name in ("average", "grams", "output_kernel"):
        _require(type(getattr(machine, name, None)) is type(getattr(expected, name, None)), f"{name} of its machine")


def _check_ranking_machine(machine: RankingMachine) -> None:
    _counts(machine, "n_updates", "n_hypotheses")
    _number(machine, "size", 0.0)
    _doubles(machine, coefs=(None,), late=(len(machine.coefs),))
    _require(machine.is_consistent(), "arrays of a ranking")


def _check_cues(estimator: MultiCueClassifier) -> None:
    if "estimators_" in vars(estimator):
        top, parts = estimator._machine, estimator.estimators_
        _require(all(wide == top.n_outputs for wide in top.columns.widths.values()), "widths of the top layer")
        ours = all(isinstance(part, OnlineEstimator) for part in parts.values())
        _require(ours and set(top.columns.offsets) <= set(parts), "estimators_")
        _require(all((part.classes_ == estimator.classes_).all() for part in parts.values()), "classes_")


def _check_batch(estimator: Any) -> None:
    """Check what batch estimators keep of a fit: weights, coefficients, kernels and the solution."""
    fitted = vars(estimator)
    if "solution_" not in fitted or "_used_views" not in fitted:
        return
    if "view_weights_" in fitted:
        _array(estimator, "view_weights_", (len(estimator._used_views), None)[: estimator.view_weights_.ndim])
    names = names_of_terms(estimator)
    _require(names, "kernels_")
    if "dual_coef_" in fitted and estimator.dual_coef_.ndim == 3:
        _array(estimator, "dual_coef_", (len(names), len(estimator.X_fit_), None))
        _require(estimator.X_fit_.names == estimator._used_views, "X_fit_")
    for name in fitted.keys() & {"combination_", "cv_scores_"}:
        _require(estimator._is_consistent(), name)
    if "_features" in fitted:
        sizes = estimator._features.n_components_
        fits = isinstance(estimator.coef_, dict) and tuple(estimator.coef_) == names == tuple(sizes)
        _require(fits and all(len(W) == sizes[name] for name, W in estimator.coef_.items()), "coef_")
    if "_sums" in fitted:
        _require(has_valid_sums(estimator), "sums over samples")
    if "_kernel_weights" in fitted:
        _array(estimator, "_kernel_weights", (len(names), None)[: 1 + (not getattr(estimator, "shared_weights", True))])
    _require(isinstance(estimator.solution_, Solution), "solution_")


def _check_margin(estimator: MaxMarginClassifier | MaxMarginRegressor) -> None:
    if "dual_coef_" not in vars(estimator):
        return
    S = len(estimator.dual_coef_)
    _array(estimator, "dual_coef_", (S,))
    regresses = isinstance(estimator, MaxMarginRegressor)
    labels = len(estimator._outputs) if regresses else len(estimator.classes_)
    for name, limit in (("_support_labels", labels), ("support_", estimator._n_fit)):
        values = _array(estimator, name, (S,), "iu")
        _require(not S or (values.min() >= 0 and values.max() < limit), name)
    if "_in_fit" in vars(estimator):
        inside, n = _array(estimator, "_in_fit", (None,), "iu"), len(estimator.X_fit_)
        _require(not len(inside) or (inside.min() >= 0 and inside.max() < n), "_in_fit")
        _array(estimator, "_fit_weights", (n,))
    outputs = len(estimator.candidates_) if regresses else labels
    _array(estimator, "intercept_", (outputs,))
    if estimator._score_map is not None:
        _array(estimator, "_score_map", (labels, outputs if regresses or labels != 2 else 1))


def _check_features(features: Nystroem | RandomFeatures) -> None:
    if "view_names_in_" not in vars(features):
        return
    used = set(features._used_views)
    _require(set(features.kernels_) == used, "kernels_")
    if isinstance(features, RandomFeatures):
        _require(set(features._weights) == set(features._phases) == used, "weights of features")
        shapes = [(features._weights[name].shape, features._phases[name].shape) for name in used]
        _require(all(len(w) == 2 and b == w[1:] for w, b in shapes), "weights of features")
        return
    _require(set(features._roots) == set(features._landmarks) == set(features.landmark_indices_) == used, "landmarks")
    for name, root in features._roots.items():
        landmarks = features._landmarks[name]
        block = isinstance(landmarks, Gram) or len(landmarks.shape) == (1 if landmarks.dtype == object else 2)
        _require(block and root.ndim == 2 and len(root) == landmarks.shape[0], "landmarks")


def _check_fusion(estimator: EarlyFusion | LateFusion) -> None:
    if "solution_" not in vars(estimator):
        _require("view_names_in_" not in vars(estimator), "solution_")
        return
    _array(estimator, "view_weights_", (len(estimator._used_views),))
    if isinstance(estimator, LateFusion):
        fits = isinstance(estimator.estimators_, dict) and tuple(estimator.estimators_) == tuple(estimator._used_views)
        _require(fits and isinstance(estimator._train, dict), "estimators_")
        parts = list(estimator.estimators_.values())
    else:
        _require(set(estimator._means) == set(estimator._used_views), "_means")
        for name, (means, sparse) in estimator._means.items():
            fits = isinstance(means, np.ndarray) and means.dtype.kind == "f" and isinstance(sparse, bool)
            _require(fits and means.shape == (estimator._known[name][1],), "_means")
        parts = [estimator.estimator_]
    for part in parts:
        _require(isinstance(part, BaseEstimator), "an estimator")
        if hasattr(estimator, "classes_"):
            known = len(part.classes_) and np.isin(part.classes_, estimator.classes_).all()
            _require(known, "classes_ of an estimator")
    by_view = isinstance(estimator, LateFusion) and isinstance(estimator.estimator, dict)
    given = list(estimator.estimator.values()) if by_view else [estimator.estimator]
    _require(given and all(isinstance(part, BaseEstimator) for part in given), "estimator")


_CHECKS: dict[type, Any] = {
    Views: _check_views,
    Gram: _check_gram,
    Solution: _check_solution,
    Certificate: _check_solution,
    Support: _check_support,
    Grams: _check_grams,
    Columns: _check_columns,
    ViewFactors: _check_factors,
    Machine: _check_machine,
    LinearMachine: _check_linear,
    LinkMachine: _check_link,
    SupportMachine: _check_support_machine,
    KernelMachine: _check_kernel_machine,
    ProjectronMachine: _check_projectron,
    VectorMachine: _check_vector_machine,
    RankingMachine: _check_ranking_machine,
    BaseEstimator: _check_estimator,
    OnlineEstimator: _check_online,
    MultiCueClassifier: _check_cues,
    MaxMarginClassifier: _check_margin,
    MaxMarginRegressor: _check_margin,
    Nystroem: _check_features,
    RandomFeatures: _check_features,
    EarlyFusion: _check_fusion,
    LateFusion: _check_fusion,
}
