"""OMCL: an online estimator for each view, and one on top of their margins."""

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..kernels.by_view import kernel_of
from ..solvers.linalg import norm
from ..views import _blocks
from ..views._docs import shared_docs
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ..views.validation import remember
from ._arrays import PassRecord, Rule
from ._classes import new_outputs
from ._counting import count
from ._dual import warn_full
from ._frame import OnlineEstimator
from ._linear import LinearMachine
from ._machine import Lesson
from ._parameters import CONSTRAINTS
from .kernelized import Projectron

__all__ = ["MultiCueClassifier"]

_MARGIN_ROUNDING = 1e-9  # relative rounding of the margins of the first layer


@shared_docs
@dataclass(eq=False, repr=False)
class MultiCueClassifier(ViewClassifier, OnlineEstimator):
    """OMCL, online multi-cue learning in two layers (Jie, Orabona and Caputo 2009).

    Each view has an online estimator of its own, by default Projectron++. Their margins on a sample, made before they
    learn it, form a new vector, on which a passive-aggressive estimator (PA-I) decides:

        s_v = f_v(x_v),   f(x) = <w, (s_1, .., s_m)>,   w <- w + τ y s,  τ = min(C, ℓ/‖s‖²)

    With K classes each view gives K margins, and there is one w for each class. A missing view gives zeros, and its
    estimator does not learn from the sample. However a stream is cut, scores agree up to rounding. If samples repeat,
    margins can tie exactly, and then rounding may decide.

    Parameters
    ----------
    {stream_kernel}
    threshold : float, default=0.1
        Threshold η of the Projectrons: distance from the span of the support up to which a sample is projected.
    C : float, default=0.01
        Longest step of the estimator on top; small, since margins are noisy while the views still learn.
    estimator : online estimator or dict, optional
        Online estimator of every view, or a dict of online estimators by view. Views without one have a Projectron++
        with `kernel`, `threshold` and `budget`, which other estimators do not use.
    average : {False, True, "recent", "with_last"}, default=False
        Whether the estimator on top predicts with its last hypothesis, the mean of those that predicted a sample, a
        mean in which later ones count more, or the mean of all and the last.
    budget : int, "auto" or None, default="auto"
        Maximum number of samples that the Projectron of a view keeps; "auto" means 1,000. When it is reached, all
        samples are projected, at any distance, and one warning says so. None means no limit.
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    estimators_ : dict
        Fitted estimator of each view.
    n_dropped_ : int
        Number of samples that the budgets of the estimators of the views dropped, or did not let in.
    view_weights_ : array of shape (n_views,)
        Length of each view's part of w.
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from consilience import MultiCueClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = MultiCueClassifier("rbf", threshold=0.3, max_iter=1)
    >>> sorted(model.fit(X[:500], y[:500]).estimators_) == sorted(X.names)
    True
    """

    _piece = 1024
    _pair_scale = 0.5  # see `PassiveAggressive`
    _parameter_constraints = {
        **CONSTRAINTS,
        "threshold": [Interval(Real, 0, None, closed="left")],
        "average": ["boolean", StrOptions({"recent", "with_last"})],
    }

    kernel: Any = "rbf"
    _: KW_ONLY
    threshold: float = 0.1
    C: float = 0.01
    estimator: Any = None
    average: Any = False
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    def _given(self) -> dict[str, Any]:
        """Return the estimators that the user gave, by view."""
        return dict(self.estimator) if isinstance(self.estimator, Mapping) else {"every view": self.estimator}

    @property
    def _late_classes(self) -> bool:  # type: ignore[override]
        return all(part is None or part._late_classes for part in self._given().values())

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, part in self._given().items():
            if part is not None and not (isinstance(part, OnlineEstimator) and isinstance(part, ViewClassifier)):
                raise TypeError(
                    "`estimator` must be an online estimator, such as Projectron or OnlinePerceptron, or a dict of "
                    f"them; got {type(part).__name__} for {name}."
                )

    # -- the estimators of views
    def _new_estimator(self, name: str) -> OnlineEstimator:
        given = self.estimator.get(name) if isinstance(self.estimator, Mapping) else self.estimator
        if given is not None:
            return clone(given)
        return Projectron(kernel_of(self.kernel, name), threshold=self.threshold, budget=self.budget)

    def _check_views(self, X: Views, whole: bool) -> None:
        for name in X.names:
            own, there = _present(X, name)
            if len(there):
                estimator = self._new_estimator(name)
                estimator._validate_params()
                estimator._check_views(own, whole)

    def _begin(self, *given: Any) -> None:
        super()._begin(*given)
        del self.kernels_  # the estimators of the views have them
        self.estimators_: dict[str, OnlineEstimator] = {}
        self._largest: dict[str, float] = {}  # margin of each view so far

    def _snapshot(self) -> dict[str, Any]:
        before = super()._snapshot()
        if "estimators_" in before:
            kept = {name: copy(part) for name, part in self.estimators_.items()}
            for name, part in self.estimators_.items():
                kept[name].__dict__ = part._snapshot()  # the estimators of views learn in place
            # a view may refuse samples after the machine on top has learned earlier ones
            before.update(estimators_=kept, _machine=deepcopy(self._machine))
        return before

    def _add_views(self, X: Views) -> None:
        for name in X.names:
            own, there = _present(X, name)
            if len(there):
                if name not in self.estimators_:
                    estimator = self._new_estimator(name)
                    estimator._check_views(own, whole=True)
                    estimator._begin(self.classes_, self._announced)
                    self.estimators_[name] = estimator
                remember(self.estimators_[name], own)

    def _resolve_kernels(self, X: Views) -> None:
        self._add_views(X)
        for name, estimator in self.estimators_.items():
            estimator._resolve_kernels(_present(X, name)[0])

    # -- the estimator on top
    def _new_machine(self, n_outputs: int) -> LinearMachine:
        return LinearMachine("joint", n_outputs, average=self._averages())

    def _rule(self) -> Rule:
        return Rule(1.0, 0.0, float(self.C), rounding=_MARGIN_ROUNDING)

    def _add_class(self, classes: np.ndarray) -> None:
        sources = new_outputs(self.classes_, classes)  # ±1, scaled by `_mixed` for each view
        if sources is not None:
            self._calibration.remap(len(classes))
        self._set_classes(classes)
        for estimator in self.estimators_.values():
            estimator._add_class(classes)
        if sources is None:
            return
        old, new = self._machine, self._new_machine(len(classes))
        new.add_views(_margin_views({name: np.zeros((1, len(classes))) for name in old.columns.offsets}))
        for name in old.columns.offsets:
            scale = self.estimators_[name]._pair_scale
            for part in ("V", "U"):
                if len(getattr(old, part)):
                    weights = getattr(old, part)[old.columns.span(name), 0]
                    getattr(new, part)[new.columns.span(name), 0] = _mixed(weights, sources, scale)
        # averages count the same hypotheses as before
        new.factors.C[:], new.factors.counters = old.factors.C[0, 0], old.factors.counters
        new.n_updates, new.n_hypotheses = old.n_updates, old.n_hypotheses
        self._machine = new

    # -- learning
    def _ready(self, X: Views) -> Views:
        return X

    def _read_one(self, x: Mapping[str, Any]) -> None:
        return None

    def _learn(self, chunk: Views, lesson: Lesson) -> PassRecord:
        self._add_views(chunk)
        ids, alone = np.asarray(lesson.ids), len(self.classes_) == 1
        margins, before = {}, self.n_dropped_
        for name, estimator in self.estimators_.items():
            own, there = _present(chunk, name)
            margins[name] = np.full((len(lesson.codes), self._machine.n_outputs), np.nan)  # NaN marks missing views
            if len(there):
                taught = Lesson(lesson.codes[there], lesson.weights[there], ids[there], quiet=True)
                scores, wrong, _ = estimator._learn(estimator._ready(own), taught)
                if not alone:
                    count(estimator, wrong, wrong)
                    margins[name][there] = self._without_rounding(name, scores)
        if self.n_dropped_ > before == 0:
            full = max(self.estimators_, key=lambda name: self.estimators_[name]._machine.n_dropped)
            machine = self.estimators_[full]._machine
            warn_full(machine.budget, machine.n_hypotheses, f"in the view '{full}', {machine._when_full}")
        if alone:
            return super()._learn(chunk, lesson)
        Z = _margin_views(margins)
        self._machine.add_views(Z)
        return super()._learn(self._machine.read(Z), lesson)

    def _without_rounding(self, name: str, margins: np.ndarray) -> np.ndarray:
        """Return margins with 0 for those that are rounding of the largest so far: a sample may have nothing else."""
        largest = np.maximum.accumulate(np.append(self._largest.get(name, 0.0), np.abs(margins).max(axis=1)))
        self._largest = {**self._largest, name: float(largest[-1])}
        return np.where(np.abs(margins) <= _MARGIN_ROUNDING * largest[1:, None], 0.0, margins)

    def _scores(self, X: Views) -> np.ndarray:
        margins = {}
        for name, estimator in self.estimators_.items():
            own, there = _present(X, name)
            margins[name] = np.full((len(X), self._machine.n_outputs), np.nan)
            if len(there):
                margins[name][there] = estimator._scores(own)
        if not self._machine.columns.offsets:
            return np.zeros((len(X), self._machine.n_outputs))
        return super()._scores(_margin_views(margins))

    @property
    def n_updates_(self) -> int:
        """Number of updates of all estimators."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._machine.n_updates) + sum(part.n_updates_ for part in self.estimators_.values())

    @property
    def n_dropped_(self) -> int:
        """Number of samples that the budgets of the estimators of the views dropped, or did not let in."""
        check_is_fitted(self, "n_samples_seen_")
        return sum(getattr(part, "n_dropped_", 0) for part in self.estimators_.values())

    @property
    def view_weights_(self) -> np.ndarray:
        """Length of each view's part of w."""
        check_is_fitted(self, "n_samples_seen_")
        parts = self._machine.coef()
        return np.array([norm(parts[name]) if name in parts else 0.0 for name in self.view_names_in_])


def _present(X: Views, name: str) -> tuple[Views, np.ndarray]:
    """Return the samples that have a view, with this view alone, and their positions."""
    if name not in X.names or X.block(name) is None:
        return X, np.zeros(0, dtype=np.int64)
    there = np.flatnonzero(X.present(name))
    if not len(there):
        return X, there
    block = X.block(name) if len(there) == len(X) else _blocks.take(X.block(name), there)
    return Views._of({name: block}, len(there), None, X.feature_names, None), there


def _margin_views(margins: Mapping[str, np.ndarray]) -> Views:
    """Return the margins of each view as a view; NaN where the sample lacks it."""
    mask = np.column_stack([~np.isnan(values).any(axis=1) for values in margins.values()])
    return Views._of(dict(margins), len(mask), mask, {}, None)


def _mixed(weights: np.ndarray, sources: list[tuple[int, float]], scale: float) -> np.ndarray:
    """Return the weights on one view's margins for more classes, (margin, output), so that decisions stay the same."""
    T = len(sources)
    if weights.shape[1] == 1:  # two classes had one margin s and one weight w: ±scale s, ±1, and w s is split evenly
        signs = np.array([sign for _, sign in sources])
        return weights[0, 0] * np.outer(signs, signs) / (4 * scale)
    new = np.zeros((T, T))
    kept = [t for t, (source, _) in enumerate(sources) if source >= 0]
    before = [sources[t][0] for t in kept]
    new[np.ix_(kept, kept)] = weights[np.ix_(before, before)]
    return new
