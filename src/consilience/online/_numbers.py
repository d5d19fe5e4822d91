"""Numbers as targets of a stream: regression, its losses, their sums and their bound."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._jit import jit
from ..solvers.certificates import LossCertificate, loss_bound
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.validation import read_targets
from ._arrays import IntervalRecord
from ._bounds import BoundSetting, ComparedSamples, comparators_of, given_comparator, passes_of
from ._counting import begin_losses, count_losses, count_one_loss
from ._machine import Lesson
from ._predictions import StreamPredictions
from ._targets import Targets, read_shares

_LARGEST = 1e100  # single targets above are validated like chunks


class NumberTargets(Targets):
    """One or several numbers per sample; the estimator's `_losses` says how far predictions are from them."""

    # -- reading
    def read(self, estimator: Any, X: Views, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have targets, these targets, and how many outputs there are."""
        if classes is not None:
            raise ValueError(f"`classes` are for classification; {type(estimator).__name__} predicts numbers.")
        labeled, Y, given = _read(X, y, required=False)
        if not fresh and Y.shape[1] != estimator._machine.n_outputs:
            raise ValueError(
                f"y has {Y.shape[1]} columns; {type(estimator).__name__} began with {estimator._machine.n_outputs}. "
                "Give all targets of a sample."
            )
        return labeled, Y[labeled], given

    def read_all(self, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the same for all samples of `fit`."""
        labeled, Y, given = _read(X, y, required=True)
        return labeled, Y[labeled], given

    def read_known(self, estimator: Any, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which samples that were learned have targets, and these targets."""
        labeled, Y, _ = _read(X, y, required=False)
        return labeled, Y[labeled]

    # -- state
    def begin(self, estimator: Any, *given: Any) -> int:
        """Set the sums of losses to 0; return the number of outputs."""
        n_outputs, estimator._one_output = given
        begin_losses(estimator)
        # of the targets so far: their number, the first one, Σ d and Σ d² for differences d from it
        estimator._target_sums = np.zeros((0 if estimator.prepare_target is None else 4, n_outputs))
        return int(n_outputs)

    def snapshot(self, estimator: Any) -> dict[str, Any]:
        """Return nothing: sums are replaced, not changed in place."""
        return {}

    def certify(self, estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> LossCertificate:
        """Return the summed loss and its bound."""
        return _loss_certificate(estimator, given, setting)

    def names(self, estimator: Any) -> None:
        """Return None: numbers have no names."""
        return

    def summary(self, estimator: Any) -> str:
        """Return the mean loss of the last hypotheses."""
        return f"mean loss {estimator.total_loss_ / max(estimator.n_samples_seen_, 1):.4g}"

    def in_units(self, estimator: Any, scores: np.ndarray) -> np.ndarray:
        """Return predictions in the units of the targets."""
        if not len(estimator._target_sums):
            return scores
        units = [_moments(*own) for own in estimator._target_sums.T.tolist()]
        return np.array([deviation for _, deviation in units]) * scores + [mean for mean, _ in units]

    # -- learning
    def lessons(
        self, estimator: Any, y: np.ndarray, weights: np.ndarray, ids: np.ndarray
    ) -> Iterator[tuple[slice, Lesson, bool]]:
        """Yield rows in pieces."""
        for start in range(0, len(y), estimator._piece):
            rows = slice(start, min(start + estimator._piece, len(y)))
            yield rows, _prepared(estimator, Lesson(y[rows], weights[rows], ids[rows])), False

    def record(
        self, estimator: Any, lesson: Lesson, record: IntervalRecord, *, joining: bool, first: bool
    ) -> StreamPredictions:
        """Add up the losses, and return the predictions."""
        _count(estimator, lesson, record)
        y, predicted = lesson.codes, record.scores
        if lesson.units is not None:
            y, predicted = lesson.units.y, lesson.units.mean + lesson.units.deviation * predicted
        shares, names = read_shares(estimator, record, len(y)) if lesson.shares else (None, ())
        if estimator._one_output:
            y, predicted = y[:, 0], predicted[:, 0]
        return StreamPredictions(np.zeros(0, int), y, predicted, view_margins=shares, view_names=names)

    # -- single samples
    def lesson_of_one(self, estimator: Any, y: Any, weight: float) -> Lesson | None:
        """Return what is learned about a sample with finite targets."""
        if type(y) is float and estimator._machine.n_outputs == 1:
            targets, fits = np.array([[y]]), abs(y) < _LARGEST
        else:
            try:
                targets = np.array(y, dtype=np.float64).reshape(1, -1)
            except (TypeError, ValueError):
                return None
            fits = targets.shape[1] == estimator._machine.n_outputs and bool((np.abs(targets) < _LARGEST).all())
        return _prepared(estimator, Lesson(targets, np.array([weight]), None)) if fits else None

    def record_one(self, estimator: Any, lesson: Lesson, record: IntervalRecord) -> None:
        """Add up the losses of a single sample."""
        _follow(estimator, lesson)
        y, last, scores = lesson.codes[0].tolist(), record.last[0].tolist(), record.scores[0].tolist()
        lost = sum(map(estimator._loss_of_one, y, last))
        missed = sum(map(estimator._loss_of_one, y, scores)) if estimator._averages() else lost
        count_one_loss(estimator, lost, missed)

    def one(self, estimator: Any, scores: np.ndarray) -> Any:
        """Return the prediction for a single sample: a number, or an array for several outputs."""
        return float(scores[0, 0]) if estimator._one_output else scores[0]


def _read(X: Views, y: Any, *, required: bool) -> tuple[np.ndarray, np.ndarray, tuple[int, bool]]:
    y = in_order_of(X, y, "y")
    Y, labeled = read_targets(y, len(X), required=required)
    return labeled, Y, (Y.shape[1], np.asarray(y).ndim == 1)


# -- targets that are standardized
class Units(NamedTuple):
    """Mean and deviation of the targets before each sample, the targets, and their sums after the last one."""

    mean: np.ndarray
    deviation: np.ndarray
    y: np.ndarray
    sums: np.ndarray


@jit()
def _moments(n, first, total, squares):  # type: ignore[no-untyped-def]
    """Return mean and deviation from sums of n differences to the first target; a deviation of 0 becomes 1."""
    if n == 0:
        return 0.0, 1.0
    variance = squares / n - (total / n) ** 2
    return first + total / n, np.sqrt(variance) if variance > 1e-12 * squares / n else 1.0  # less is rounding


@jit()
def _standardize(y, sums, mean, deviation, z):  # type: ignore[no-untyped-def]
    """Set mean and deviation before each target, and z with those that include it, so that no target is far off."""
    for i in range(len(y)):
        for t in range(y.shape[1]):
            n, first, total, squares = sums[0, t], sums[1, t], sums[2, t], sums[3, t]
            mean[i, t], deviation[i, t] = _moments(n, first, total, squares)
            first = y[i, t] if n == 0 else first
            d = y[i, t] - first
            sums[0, t], sums[1, t], sums[2, t], sums[3, t] = n + 1, first, total + d, squares + d * d
            center, scale = _moments(n + 1, first, total + d, squares + d * d)
            z[i, t] = (y[i, t] - center) / scale


def _standardized(sums: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Units]:
    """Return standardized targets, and the units in which they were predicted."""
    units, z = Units(np.empty_like(y), np.empty_like(y), y, sums.copy()), np.empty_like(y)
    _standardize(y, units.sums, units.mean, units.deviation, z)
    return z, units


def _prepared(estimator: Any, lesson: Lesson) -> Lesson:
    """Return what is learned, with standardized targets if the estimator asks for them."""
    if not len(estimator._target_sums):
        return lesson
    z, units = _standardized(estimator._target_sums, lesson.codes)
    return lesson._replace(codes=z, units=units)


def _follow(estimator: Any, lesson: Lesson) -> None:
    """Keep the sums of targets that were learned, where they are standardized."""
    if lesson.units is not None:
        estimator._target_sums = lesson.units.sums


def _count(estimator: Any, lesson: Lesson, record: IntervalRecord) -> None:
    """Add up the losses of samples, over their outputs; without averages the last hypothesis predicts."""
    y = lesson.codes
    _follow(estimator, lesson)
    last = _added_outputs(estimator._losses(y, record.last))
    predicted = _added_outputs(estimator._losses(y, record.scores)) if estimator._averages() else last
    count_losses(estimator, last, predicted)


def _added_outputs(losses: np.ndarray) -> np.ndarray:
    """Return the sum over outputs, added in the order in which a single sample adds them."""
    return np.cumsum(losses, axis=1)[:, -1]


# -- the bound
def _loss_certificate(estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> LossCertificate:
    """Return the summed loss and the sum of the bounds of the outputs, each by its best comparator."""
    n, loss = int(estimator.n_samples_seen_), float(estimator.total_loss_)
    trivial = LossCertificate(status="streamed", total_loss=loss, n_samples=n)
    if setting is None or estimator._off_bounds or given.X is None:
        return trivial
    X, Y = estimator._read_pairs(given)
    if len(estimator._target_sums):
        if hasattr(estimator, "converged_"):  # passes of `fit` standardize differently
            return trivial
        Y = _standardized(np.zeros_like(estimator._target_sums), Y)[0]
    n_passes = passes_of(estimator, len(Y))
    data = comparators_of(estimator, X, setting.p)
    if not data.are_definite():
        return trivial
    sizes = data.sizes()
    U = None if given.comparator is None else given_comparator(data, given.comparator, Y.shape[1])
    parts = []
    for t in range(Y.shape[1]):
        candidates = data.regressions(Y[:, t]) if U is None else [U[:, [t]]]
        scored = [(data.scores(each), data.norm(each)) for each in candidates]
        scored += [(np.zeros((len(Y), 1)), 0.0)] if U is None else []  # the comparator 0
        parts.append(min(_bound(estimator, setting, Y[:, [t]], *own, sizes, n_passes) for own in scored))
    bound, losses = sum(part[0] for part in parts), sum(part[1] for part in parts)
    if not np.isfinite(bound):
        return trivial
    norm = float(np.sqrt(sum(part[2] ** 2 for part in parts)))
    return replace(trivial, bound=bound, loss=losses, norm=norm, size=float(sizes.max()))


def _bound(
    estimator: Any, setting: BoundSetting, y: np.ndarray, scores: np.ndarray, norm: float, sizes: np.ndarray,
    n_passes: int,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the bound by a comparator, its summed loss and its norm."""
    losses, squared = estimator._losses(y, scores)[:, 0], setting.variant == "PA-II"
    given = np.tile(np.sqrt(losses) if squared else losses, n_passes), np.tile(sizes, n_passes)
    bound = loss_bound(*given, norm, squared=squared, C=setting.C, slope=setting.slope, p=setting.p)
    return bound, float(n_passes * losses.sum()), norm
