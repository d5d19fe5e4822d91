"""A consensus behind a preparation that uses the target, such as a choice of columns: both are fitted in folds.

What the target chose on all samples says nothing of new ones. So each fold has a preparation and a consensus that have
not seen it, and held-out predictions, scores, probabilities, sets and intervals come from these refits.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from .._backend import to_numpy
from ..solvers.certificates import Solution
from ..solvers.consensus import Sets
from ..solvers.stacking import calibrate
from ..views.container import Views
from ..views.per_view import PerView
from ._consensus_fit import ConsensusData, FoldOutputs, store_held_out


@dataclass(frozen=True)
class Refit:
    """A preparation and the consensus of the prepared views, perhaps without a fold."""

    steps: Any
    model: Any

    def outputs(self, X: Views, n_classes: int) -> np.ndarray:
        """Return outputs (n, P): numbers in the units of y, or logits of the classes."""
        Z = self.steps.transform(X)
        if not is_classifier(self.model):
            return np.asarray(to_numpy(self.model._combined(Z)))
        likely = np.full((len(X), n_classes), 1e-12)  # a class that no training sample of the fold has
        likely[:, self.model.classes_] = np.maximum(to_numpy(self.model.predict_proba(Z)), 1e-12)
        logits = np.log(likely)
        return logits if n_classes > 2 else logits[:, 1:] - logits[:, :1] if n_classes == 2 else 0 * logits


@dataclass(frozen=True)
class Prepared:
    """The refits of a consensus with a preparation."""

    whole: Refit
    folds: list[Refit | None]  # None if nothing would be left
    held: np.ndarray  # (n, P) outputs without the fold of each sample
    truth: np.ndarray  # (n, P) targets, or (n, 1) classes
    sets: Sets
    mean: np.ndarray  # (P,): what is predicted where nothing would be left
    n_classes: int  # 0 for regression
    link: tuple[float, np.ndarray]  # of the whole's logits to those of new samples

    def outputs(self, X: Views) -> np.ndarray:
        """Return the outputs (n, P) at new samples."""
        slope, biases = self.link
        return slope * self.whole.outputs(X, self.n_classes) + biases

    def by_fold(self, X: Views) -> FoldOutputs:
        """Return the outputs at new samples without each fold."""
        mean = np.tile(self.mean, (len(X), 1))
        new = [mean if fold is None else fold.outputs(X, self.n_classes) for fold in self.folds]
        weights = 1 / self.sets.sizes()
        weights *= len(weights) / weights.sum()
        return FoldOutputs(np.arange(len(X)), np.stack(new, axis=1), self.held, self.truth, self.sets.folds, weights)


def fit_prepared(estimator: Any, data: ConsensusData) -> None:
    """Fit the preparation and the consensus to all samples and without each fold; store what they say."""
    n, classes = len(data.Y), data.codes is not None
    n_classes = len(estimator.classes_) if classes else 0
    truth = data.codes[:, None] if data.codes is not None else data.Y * data.scale + data.shift
    mean = np.zeros(data.Y.shape[1]) if classes else truth.mean(axis=0)
    whole = _refit(estimator, data, truth, np.arange(n))
    folds: list[Refit | None] = []
    held = np.tile(mean, (n, 1))
    without = {name: held.copy() for name in estimator._used_views}
    for k in range(data.sets.n_folds):
        g, rest = np.flatnonzero(data.sets.folds == k), data.sets.without(k)
        refit = _refit(estimator, data, truth, rest) if len(rest) else None
        folds.append(refit)
        if refit is None:
            continue
        held[g] = refit.outputs(data.X[g], n_classes)
        for name, outputs in without.items():
            others = [other for other in refit.model._used_views if other != name]
            left = g[np.any([data.X.present(other)[g] for other in others], axis=0)] if others else g[:0]
            if len(left):
                outputs[left] = refit.outputs(data.X[left][others], n_classes)
    link = 1.0, np.zeros(1)
    if data.codes is not None and n_classes > 1:
        by_class = np.hstack([-held / 2, held / 2]) if n_classes == 2 else held
        slope, biases = calibrate(by_class, data.codes, data.u, n_classes)
        link = slope, biases[1:] - biases[:1] if n_classes == 2 else biases
    estimator._prepared = Prepared(whole, folds, held, truth, data.sets, mean, n_classes, link)
    estimator._mean, final = mean, whole.model
    shares = dict(zip(final._used_views, final.view_weights_, strict=True))
    estimator.view_weights_ = np.array([shares.get(name, 0.0) for name in estimator._used_views])
    estimator.n_components_, estimator.X_fit_ = final.n_components_, final.X_fit_
    note = f"Held-out predictions are those of refits without each of {data.sets.n_folds} folds, with the preparation."
    if estimator.n_repeated_:
        note += f" {estimator.n_repeated_:,} samples repeat others, and are held out with them."
    solution = final.solution_
    estimator.solution_ = Solution(
        None, None, 1, "exact", objective=solution.objective, residual=solution.residual, note=note
    )
    store_held_out(estimator, data, held, without)


def _refit(estimator: Any, data: ConsensusData, truth: np.ndarray, rows: np.ndarray) -> Refit:
    """Fit to some labeled samples and all unlabeled ones. Classes are given as their numbers, -1 for unlabeled."""
    n, every = len(truth), np.concatenate([rows, np.arange(len(truth), len(data.X))])
    y = np.full((len(data.X), truth.shape[1]), -1 if data.codes is not None else np.nan)
    y[:n] = truth
    target = (y if y.shape[1] > 1 else y[:, 0])[every]
    changed: dict[str, Any] = {"prepare": None, "cv": None, "views": None, "verbose": False}
    if data.codes is not None:
        target, changed["unlabeled"] = target.astype(int), -1
        if isinstance(estimator.class_weight, dict):
            names = estimator.classes_.tolist()
            changed["class_weight"] = {names.index(c): w for c, w in estimator.class_weight.items() if c in names}
    weights = np.concatenate([data.s, np.ones(len(data.X) - n)])[every]
    units = data.sets.units
    groups = None if units is None else np.concatenate([units, np.zeros(len(data.X) - n, dtype=int)])[every]
    steps = estimator.prepare
    steps = clone(steps) if hasattr(steps, "fit_transform") else PerView(steps)
    known = np.where(target < 0, np.nan, target) if len(data.X) > n and data.codes is not None else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # those of the whole data were given
        Z = steps.fit_transform(data.X[every], known)
        Z._chosen_by_target = False  # the held-out predictions of these models are not used
        model = clone(estimator).set_params(**changed).fit(Z, target, weights, groups)
    return Refit(steps, model)
