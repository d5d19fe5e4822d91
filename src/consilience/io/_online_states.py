"""Validation of online estimators that were read from a file: what their compiled passes index."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels import Kernel
from ..online._calibration import Calibration
from ..online._candidates import OutputList
from ..online._counting import curve_marks
from ..online._dual import KernelMachine, Support, SupportMachine
from ..online._factors import ViewFactors
from ..online._frame import OnlineEstimator
from ..online._grams import Grams
from ..online._labels import LabelCalibration
from ..online._linear import LinearMachine
from ..online._link import LinkMachine
from ..online._machine import Machine, takes_means
from ..online._parameters import FIXED
from ..online._projectron import ProjectronMachine
from ..online._ranking import RankingMachine
from ..online._rows import Columns
from ..online._vector import VectorMachine
from ..online.matrix import MatrixPerceptron
from ..online.multicue import MultiCueClassifier
from ..online.ranking import RankingPerceptron
from ..online.regression import PassiveAggressiveRegressor
from ..views.container import Views
from ._checks import are_names, check_array, check_counts, check_doubles, check_number, require


# -- machines
def _check_events(machine: LinkMachine | KernelMachine, n_slots: int, n_groups: int) -> None:
    events, E = machine.events, len(machine.events.slots)
    limits = (("slots", n_slots), ("outputs", machine.n_outputs), ("samples", machine.n_hypotheses + 1))
    for name, limit in limits:
        values = check_array(events, name, (E,), "i")
        require(not E or (values.min() >= 0 and values.max() < limit), f"Events.{name} are out of range")
    check_doubles(events, coefs=(E,), factors=(E, n_groups if E else None))


def _check_support(support: Support) -> None:
    require(isinstance(support.parts, list) and all(isinstance(X, Views) for X in support.parts), "Support.parts")
    check_array(support, "ids", (sum(len(X) for X in support.parts),), "i")


def _check_grams(grams: Grams) -> None:
    require(grams.shape in ("joint", "views", "pairs"), f"Grams.shape is {grams.shape!r}")
    named = isinstance(grams.kernels, dict) and are_names(list(grams.kernels))
    require(named and all(isinstance(k, Kernel) for k in grams.kernels.values()), "Grams.kernels")


def _check_columns(columns: Columns) -> None:
    """Check that the columns of views follow each other, or that all begin at 0 where they are shared."""
    check_counts(columns, "width", "ones")
    require(columns.ones <= 1, "columns of ones")
    offsets, widths, shared = columns.offsets, columns.widths, columns.shared
    require(are_names(list(offsets)) and list(widths) == list(offsets), "views of a machine")
    at = min(offsets.values(), default=columns.width)
    for name, wide in widths.items():
        whole = type(wide) is int and wide > columns.ones and type(offsets[name]) is int
        require(whole and offsets[name] == (0 if shared else at), f"columns of view '{name}'")
        at = max(at, wide) if shared else at + wide
    require(columns.width == at, "width of a machine")


def _check_factors(factors: ViewFactors) -> None:
    require(factors.shape in ("joint", "views", "pairs"), f"ViewFactors.shape is {factors.shape!r}")
    m, T = len(factors.names), factors.F.shape[-1]
    require(are_names(factors.names), "ViewFactors.names")
    G = 1 if factors.shape == "joint" else m if factors.shape == "views" else m * m
    check_doubles(factors, norms=(G, T), F=(G, T), C=(G, T), prior=(G,), counters=(2,))
    check_number(factors, "p", 1.0)
    check_doubles(factors, learned=(1 + m if factors.prior_norms == "learned" and factors.p != 1 else 0,))


def _check_machine(machine: Machine) -> None:
    check_counts(machine, "n_outputs", "n_updates", "n_hypotheses", "n_dropped")
    require(machine.n_outputs > 0, "outputs of a machine")


def _check_linear(machine: LinearMachine) -> None:
    factors, columns, T = machine.factors, machine.columns, machine.n_outputs
    pairs, m = machine.shape == "pairs", len(columns.offsets)
    require(machine.shape == factors.shape and columns.shared == pairs, f"LinearMachine.shape is {machine.shape!r}")
    require(factors.names == tuple(columns.offsets) and factors.F.shape[1] == T, "factors of a machine")
    require(not m or min(columns.offsets.values()) == 0, "columns of a machine")
    vectors = m if pairs else 1
    V = check_array(machine, "V", (columns.width, vectors, T))
    require(V.dtype in (np.float32, np.float64) and (not V.size or V.flags.c_contiguous), "LinearMachine.V")
    check_doubles(machine, U=(columns.width if machine.average and m else 0, vectors, T))
    joint = machine.shape == "joint"
    require(type(machine.fit_intercept) is bool, "LinearMachine.fit_intercept")
    require(columns.ones == (machine.fit_intercept and not joint), "columns of ones")
    check_doubles(machine, intercept=(2 if machine.fit_intercept and joint else 0, T))
    require(machine._state is machine._interval_state is machine._weights is None, "LinearMachine")


def _check_link(machine: LinkMachine) -> None:
    columns, T, first = machine.columns, machine.n_outputs, int(machine.fit_intercept)
    size, kept = columns.width, columns.width if takes_means(machine.average) else 0
    require(not columns.shared and min(columns.offsets.values(), default=size) == first, "columns of a machine")
    check_doubles(machine, V=(size, T), W=(size, T), power=(T,), scale=(T,), base=(T,), C=(T,), counters=(1,))
    for name in ("U", "last"):
        check_doubles(machine, **{name: (len(getattr(machine, name)), T)})
        require(len(getattr(machine, name)) in (0, kept), f"LinkMachine.{name}")
    require(not kept or len(machine.U) == kept or not columns.offsets, "LinkMachine.U")
    changes = machine.changes
    require(isinstance(changes, list) and all(sp.issparse(c) and c.shape[1] <= size for c in changes), "changes")
    _check_events(machine, sum(c.shape[0] for c in changes), 1)
    check_number(machine, "p", 2.0)


def _check_support_machine(machine: SupportMachine) -> None:
    known = set(machine.grams.kernels)
    require(all(set(X.names) <= known for X in machine.support.parts), "views of the support")


def _check_kernel_machine(machine: KernelMachine) -> None:
    check_counts(machine, "budget")
    factors, T, S = machine.factors, machine.n_outputs, len(machine.support)
    require(factors.shape == machine.grams.shape and factors.F.shape[1] == T, "factors of a machine")
    require(factors.names == tuple(machine.grams.kernels), "factors of a machine")
    check_array(machine, "alpha", (T, S))
    check_array(machine, "beta", (machine.grams.n_groups() if takes_means(machine.average) else 0, T, S))
    check_array(machine, "alive", (S,), "b")
    side = len(machine.output_gram)
    check_doubles(machine, output_gram=(side, side))
    require(side in (0, T), "KernelMachine.output_gram")
    _check_events(machine, S, machine.grams.n_groups())


def _check_projectron(machine: ProjectronMachine) -> None:
    check_counts(machine, "budget", "n_projections")
    T, S = machine.n_outputs, len(machine.support)
    require(machine.grams.shape == "joint", "groups of a machine")
    check_doubles(machine, L=(None, len(machine.L)), largest=(1,))
    written = check_array(machine, "written", (1,), "i")
    require(len(machine.L) >= S and 0 <= written[0] <= len(machine.L), "rows of ProjectronMachine.L")
    for name in ("alpha", "beta"):
        check_array(machine, name, (T, S))
    require(np.all(machine.L.diagonal() > 0), "ProjectronMachine.L")


def _check_vector_machine(machine: VectorMachine) -> None:
    T, S = machine.n_outputs, len(machine.support)
    require(machine.grams.shape == "joint" and type(machine.linear) is bool, "groups of a machine")
    check_doubles(machine, class_gram=(T, T))
    check_array(machine, "class_vectors", (T, None))
    check_number(machine, "squared_norm", -np.inf)
    for weights in machine.weights.values():
        require(weights.ndim == 2 and weights.shape[1] == T and weights.dtype == np.float64, "weights")
    check_array(machine, "alpha", (S,))
    codes = check_array(machine, "codes", (S,), "i")
    require(not S or (codes.min() >= 0 and codes.max() < T), "VectorMachine.codes")


# -- estimators
def _check_online(estimator: OnlineEstimator) -> None:
    if "n_samples_seen_" not in vars(estimator):
        return
    check_counts(estimator, "n_samples_seen_", "_next_id", "n_iter_")
    cues = isinstance(estimator, MultiCueClassifier)  # whose estimators have the kernels
    for name in ("_used_views", "_known", *(() if cues else ("kernels_",))):
        require(name in vars(estimator), name)
    require(type(estimator._off_bounds) is bool, "_off_bounds")
    require(estimator.preparation_ is None or hasattr(estimator.preparation_, "transform"), "preparation_")
    require(are_names(estimator._met) and set(estimator._met) <= set(estimator.view_names_in_), "_met")
    require(list(estimator._began_with) == [name for name in FIXED if hasattr(estimator, name)], "_began_with")
    estimator._check_fixed()
    if isinstance(estimator, PassiveAggressiveRegressor):
        n_outputs = _check_numbers(estimator)
    else:
        check_counts(estimator, "n_mistakes_", "n_errors_")
        _check_curve(estimator)
        if isinstance(estimator, RankingPerceptron) and estimator._ranks():
            _check_ranking(estimator)
            return
        n_outputs = _check_classes(estimator)
    machine, expected = estimator._machine, estimator._new_machine(n_outputs)  # what the parameters ask for
    kinds = type(machine).__name__, type(expected).__name__
    require(type(machine) is type(expected), f"its machine is a {kinds[0]}, not a {kinds[1]}")
    require(machine.n_outputs == expected.n_outputs, "outputs of its machine")
    for name in ("average", "shape", "fit_intercept", "linear", "budget"):
        require(getattr(machine, name, None) == getattr(expected, name, None), f"{name} of its machine")
    _check_parts(machine, expected)
    names = machine.grams.kernels if isinstance(machine, SupportMachine) else machine.columns.widths
    require(set(names) <= set(estimator.view_names_in_), "views of its machine")
    kernels = vars(estimator).get("kernels_", {})
    require(isinstance(kernels, dict) and all(isinstance(k, Kernel) for k in kernels.values()), "kernels_")
    if isinstance(estimator, MatrixPerceptron):
        check_counts(estimator, "_width")


def _check_parts(found: Any, expected: Any) -> None:
    """Check that a machine and the objects in it have all attributes that new ones have."""
    for name, value in vars(expected).items():
        require(name in vars(found), f"{type(found).__name__} has no {name}")
        if type(value).__module__.startswith("consilience.online") and hasattr(value, "__dict__"):
            _check_parts(getattr(found, name), value)


def _check_curve(estimator: OnlineEstimator) -> None:
    """Check the error curve; samples that are learned all together leave none."""
    seen, errors = check_array(estimator, "_curve", (None, 2), "i").T
    marks = curve_marks(0, estimator.n_samples_seen_) if estimator.n_samples_seen_ and len(seen) else seen
    require(np.array_equal(seen, marks), "samples of the error curve")
    steps = np.diff(np.append(0, errors))
    require((steps >= 0).all() and (errors <= np.minimum(seen, estimator.n_errors_)).all(), "error curve")


def _check_numbers(estimator: PassiveAggressiveRegressor) -> int:
    """Check the loss and its sums in a regression; return the number of outputs."""
    require(isinstance(estimator.loss, str), "loss")
    check_doubles(estimator, _curve=(None, 2))
    seen, sums = estimator._curve.T
    require(np.array_equal(seen, curve_marks(0, estimator.n_samples_seen_) if len(seen) else seen), "loss curve")
    require((np.diff(np.append(0.0, sums)) >= 0).all(), "loss curve")
    check_number(estimator, "total_loss_", 0.0)
    check_number(estimator, "_predicted_loss", 0.0)
    require(type(estimator._one_output) is bool, "_one_output")
    n_outputs: int = estimator._machine.n_outputs
    require(n_outputs == 1 or not estimator._one_output, "_one_output")
    check_doubles(estimator, _target_sums=(0 if estimator.prepare_target is None else 4, n_outputs))
    return n_outputs


def _check_classes(estimator: Any) -> int:
    """Check the classes or labels of an estimator and their probabilities; return the number of outputs."""
    codes, P = {label: code for code, label in enumerate(estimator.classes_.tolist())}, len(estimator.classes_)
    require(estimator._codes == codes and all(type(code) is int for code in estimator._codes.values()), "_codes")
    check_counts(estimator, "_n_late")
    for name in ("_indicator", "_announced"):
        require(type(getattr(estimator, name)) is bool, name)
    if not estimator._indicator:
        n_outputs = 1 if P <= 2 else P
        fits = isinstance(estimator._calibration, Calibration) and estimator._calibration.n_outputs == n_outputs
        require(fits, "_calibration")
        return n_outputs
    require(estimator._multi_label and type(estimator._label_lists) is bool, "_label_lists")
    require(isinstance(estimator._calibration, LabelCalibration), "_calibration")
    require(len(estimator._calibration.parts) == P, "_calibration")
    return P


def _check_label_calibration(calibration: LabelCalibration) -> None:
    parts = calibration.parts
    require(isinstance(parts, list) and all(isinstance(part, Calibration) for part in parts), "LabelCalibration.parts")
    require(all(part.n_outputs == 1 for part in parts), "LabelCalibration.parts")


def _check_calibration(calibration: Calibration) -> None:
    check_counts(calibration, "n_outputs")
    sides = 2 if calibration.n_outputs == 1 else 1
    check_doubles(calibration, slopes=(sides,), biases=(sides,), curvature=(sides, 3), squares=(2,))
    check_doubles(calibration, memory=(sides + 1,), seen=(1,))
    require(bool((calibration.memory >= 1).all() and calibration.seen[0] >= 0), "memory of the probabilities")
    total, weight = calibration.squares  # as sums that compiled passes divide by
    require(total >= 0 and weight >= 0 and (weight > 0 or total == 0), "squares of the scores")
    first, mixed, second = calibration.curvature.T
    positive = (first >= 0) & (second >= 0) & (mixed**2 <= first * second * (1 + 1e-6))
    require(bool(positive.all()), "curvature of the probabilities")


def _check_ranking(estimator: RankingPerceptron) -> None:
    """Check a ranking of outputs of any kind; it has no classes."""
    machine, expected = estimator._machine, estimator._new_machine(1)
    require(type(machine) is type(expected) and isinstance(estimator._outputs, OutputList), "its machine")
    for name in ("average", "grams", "output_kernel"):
        require(type(getattr(machine, name, None)) is type(getattr(expected, name, None)), f"{name} of its machine")


def _check_ranking_machine(machine: RankingMachine) -> None:
    check_counts(machine, "n_updates", "n_hypotheses")
    check_number(machine, "size", 0.0)
    check_doubles(machine, coefs=(None,), late=(len(machine.coefs),))
    require(machine.is_consistent(), "arrays of a ranking")


def _check_cues(estimator: MultiCueClassifier) -> None:
    if "estimators_" in vars(estimator):
        top, parts = estimator._machine, estimator.estimators_
        require(all(wide == top.n_outputs for wide in top.columns.widths.values()), "widths of the top layer")
        ours = all(isinstance(part, OnlineEstimator) for part in parts.values())
        require(ours and set(top.columns.offsets) <= set(parts), "estimators_")
        require(all((part.classes_ == estimator.classes_).all() for part in parts.values()), "classes_")


ONLINE_CHECKS: dict[type, Any] = {
    Support: _check_support,
    Grams: _check_grams,
    Columns: _check_columns,
    ViewFactors: _check_factors,
    Calibration: _check_calibration,
    LabelCalibration: _check_label_calibration,
    Machine: _check_machine,
    LinearMachine: _check_linear,
    LinkMachine: _check_link,
    SupportMachine: _check_support_machine,
    KernelMachine: _check_kernel_machine,
    ProjectronMachine: _check_projectron,
    VectorMachine: _check_vector_machine,
    RankingMachine: _check_ranking_machine,
    OnlineEstimator: _check_online,
    MultiCueClassifier: _check_cues,
}
