"""The steps of a consensus: read the training data, store the fit, combine the base models."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import check_cv

from .._backend import like, spread_rows, take_rows, to_numpy
from ..kernels.given import definite_grams
from ..solvers.certificates import Solution
from ..solvers.consensus import Sets
from ..views._blocks import Gram
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import to_float64
from ..views.estimator import decide, presence
from ..views.repeated import sample_projections, tell_repeated
from ..views.validation import class_weights, read_groups, read_labels, read_targets, read_views_to_fit, read_weights
from ._consensus import EXACT, BaseModels, array_of
from ._estimator import pandas_for_weights
from ._stack import Expert, Stack, expert, link, outputs_without_folds, pattern_key, probabilities, view_shares

FOLDS = 10  # models that say how good the whole one is


# -- 1. the training data
@dataclass(frozen=True)
class ConsensusData:
    """Training samples, the labeled ones first."""

    X: Views
    Y: np.ndarray  # targets of the labeled rows, of standard deviation 1 for regression
    u: np.ndarray  # weights of their losses
    s: np.ndarray  # their weights without those of classes
    codes: np.ndarray | None  # their classes
    sets: Sets
    shift: np.ndarray  # of the targets
    scale: np.ndarray


def read_consensus(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> ConsensusData:
    """Validate samples, targets, weights and groups."""
    vars(estimator).pop("_models", None)  # which views were Gram matrices in an earlier fit
    estimator._honest = not getattr(X, "_chosen_by_target", False)
    if not estimator._honest:
        warnings.warn(
            f"The views were prepared with the target (as top_k does), so {type(estimator).__name__} has no honest "
            "held-out score, sets or intervals. Pass the preparation as `prepare=` instead.",
            UserWarning,
            stacklevel=4,
        )
    X = definite_grams(read_views_to_fit(estimator, X, sample_weight))
    array_of(X)  # refuses views of several libraries
    y, groups = (in_order_of(X, given, what) for given, what in ((y, "y"), (groups, "groups")))
    s = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
    codes = None
    if is_classifier(estimator):
        labels = read_labels(y, len(X), estimator.unlabeled, weights=s)
        estimator.classes_, codes, labeled = labels.classes, labels.codes, labels.labeled
        Y, u = labels.signs(), s * class_weights(estimator.class_weight, labels, s)
    else:
        Y, labeled = read_targets(y, len(X), weights=s)
        estimator._one_output, u = np.asarray(y).ndim == 1, s
    labeled = labeled & (u > 0)
    if not labeled.any():
        raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
    order = np.concatenate([np.flatnonzero(labeled), np.flatnonzero(~labeled & (s > 0))])
    first = np.flatnonzero(labeled)
    shift, scale = (np.zeros(Y.shape[1]), np.ones(Y.shape[1])) if codes is not None else _scales(Y[first], s[first])
    Y = (Y - shift) / scale
    X = to_float64(X if np.array_equal(order, np.arange(len(X))) else X[order], devices=True)
    estimator._used_views = tuple(name for name in X.names if X.present(name)[: len(first)].any())
    X = X if estimator._used_views == X.names else X[list(estimator._used_views)]
    there = presence(X).any(axis=1)
    if not there.all():  # unlabeled samples of which only views that no labeled sample has are known
        X = X[np.flatnonzero(there)]
    codes = None if codes is None else codes[first]
    sets = _read_sets(estimator, X[np.arange(len(first))], Y[first], codes, groups, first, len(s))
    return ConsensusData(X, Y[first], u[first], s[first], codes, sets, shift, scale)


def _scales(Y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of targets, so that outputs count equally; 1 for constant ones."""
    shift = s @ Y / s.sum()
    scale = np.sqrt(s @ (Y - shift) ** 2 / s.sum())
    return shift, np.where(scale > 1e-14 * np.abs(shift), scale, 1.0)


def _read_sets(estimator: Any, X: Views, Y: np.ndarray, codes: Any, groups: Any, first: np.ndarray, n: int) -> Sets:
    """Return which labeled samples are held out together: repeated ones, groups, or the folds of a splitter."""
    if groups is not None:
        groups = np.unique(read_groups(groups, n)[first], return_inverse=True)[1]
        if groups.max() == 0:
            raise ValueError("All labeled samples are of one group, so that none can be held out. Omit `groups`.")
    estimator.n_repeated_ = 0
    if estimator.cv is None:
        remedy = "Pass `groups` if samples belong together in another way."
        units = tell_repeated(X, remedy) if groups is None else groups
        if groups is None and units is not None:
            estimator.n_repeated_ = int(len(units) - units.max() - 1)
        return Sets(units, *_folds(X, units, codes, by_size=groups is not None), repeated=groups is None)
    target = Y[:, 0] if codes is None else codes
    splitter = check_cv(estimator.cv, target, classifier=codes is not None)
    folds = [test for _, test in splitter.split(np.zeros((len(Y), 1)), target, groups)]
    if not np.array_equal(np.sort(np.concatenate(folds)), np.arange(len(Y))):
        raise ValueError(f"The test parts of `cv` must contain each sample exactly once; got {estimator.cv!r}.")
    place = np.empty(len(Y), dtype=int)
    for k, fold in enumerate(folds):
        place[fold] = k
    if groups is not None and len(np.unique(np.column_stack([groups, place]), axis=0)) > groups.max() + 1:
        raise ValueError("`cv` puts samples of one group into several folds. Use a splitter such as GroupKFold.")
    return Sets(place, place, len(folds))


def _folds(X: Views, units: np.ndarray | None, codes: Any, *, by_size: bool) -> tuple[np.ndarray, int]:
    """Return the fold of each sample and the number of folds, which have about equal shares of each class.

    Units go to the folds in turn, in an order that follows from their values; groups by size, the largest one first,
    each to the fold that has fewest samples of its classes.
    """
    units = np.arange(len(X)) if units is None else units
    keys = sample_projections(X)[:, ::2].sum(axis=1)
    labels = np.zeros(len(X), dtype=int) if codes is None else codes
    order = np.lexsort((keys, labels))
    ranked = units[order][np.sort(np.unique(units[order], return_index=True)[1])]  # units by their first samples
    K = min(FOLDS, len(ranked))
    fold = np.empty(units.max() + 1, dtype=int)
    if not by_size:
        fold[ranked] = np.arange(len(ranked)) % K
        return fold[units], K
    counts = np.zeros((units.max() + 1, labels.max() + 1))
    np.add.at(counts, (units, labels), 1)
    filled = np.zeros((K, labels.max() + 1))
    for unit in ranked[np.argsort(-counts[ranked].sum(axis=1), kind="stable")].tolist():
        best = np.lexsort((filled.sum(axis=1), filled @ (counts[unit] / np.maximum(counts.sum(axis=0), 1))))[0]
        fold[unit] = best
        filled[best] += counts[unit]
    return fold[units], K


# -- 2. the fit
def make_stack(estimator: Any, data: ConsensusData, base: BaseModels) -> Stack:
    """Return the held-out predictions of the base models and the targets."""
    return Stack(
        data.Y, base.held, base.by_fold, base.inner, data.u, data.sets, presence(data.X)[: len(data.Y)], base.needs,
        data.shift, data.scale, data.codes, 0 if data.codes is None else len(estimator.classes_),
        getattr(estimator, "shared_weights", True),
    )  # fmt: skip


def store_consensus(estimator: Any, data: ConsensusData, base: BaseModels, stack: Stack) -> None:
    """Store what prediction needs, what is proved, held-out predictions and their score."""
    whole = np.ones(len(data.X.names), dtype=bool)
    experts = {pattern_key(pattern): expert(stack, pattern) for pattern in np.unique([whole, *stack.present], axis=0)}
    estimator._models, estimator._stack, estimator._experts = base.models, stack, experts
    estimator._mean = stack.mean(None)
    estimator.X_fit_ = _references(base.stored)
    estimator.view_weights_ = view_shares(stack, experts[pattern_key(whole)].weights)
    objective, residual = stack.certificate()
    filled = {name: count for name, count in estimator.n_filled_.items() if count}
    note = f"Held-out predictions are those of refits without each of {stack.sets.n_folds} folds, by exact formulas"
    note += "; penalties and weights are chosen in each fold." if stack.inner is not None else "."
    if not estimator._honest:
        note = "No held-out predictions: the views were prepared with the target. Pass the preparation as `prepare=`."
    if estimator.n_repeated_:
        note += f" {estimator.n_repeated_:,} samples repeat others, and are held out with them."
    if filled:
        each = ", ".join(f"{count:,} in '{name}'" for name, count in filled.items())
        note += f" Missing values filled with the means of their columns: {each}."
    unlabeled = len(data.X) - len(data.Y)
    if unlabeled and not any(model.spread for model in base.models):
        note += f" {unlabeled:,} unlabeled samples only scale columns and kernels: for their graphs, at most {EXACT:,} "
        note += "samples in all are used, without `n_components`."
    estimator.solution_ = Solution(None, None, 1, "exact", objective=objective, residual=residual, note=note)
    without = {name: outputs_without_folds(stack, experts, v) for v, name in enumerate(estimator._used_views)}
    store_held_out(estimator, data, outputs_without_folds(stack, experts), without)


def _references(X: Views) -> Views:
    """Return what is stored of the training samples; Gram matrices too, because sets and intervals need them."""
    blocks = {name: X.block(name) for name in X.names}
    blocks |= {name: block.reference(strip=False) for name, block in blocks.items() if isinstance(block, Gram)}
    return Views._of(blocks, len(X), X.mask, X.feature_names, None)


def store_held_out(estimator: Any, data: ConsensusData, held: np.ndarray, without: dict[str, np.ndarray]) -> None:
    """Store held-out predictions, their score, and what the score loses without each view."""
    if not estimator._honest:
        for name in ("loo_predictions_", "loo_probabilities_"):  # of an earlier fit
            vars(estimator).pop(name, None)
        estimator.loo_score_, estimator.loo_interval_ = float("nan"), (float("nan"), float("nan"))
        estimator.view_importances_ = dict.fromkeys(without, float("nan"))
        return
    estimator.loo_predictions_ = _predictions(estimator, held)
    if data.codes is not None:
        estimator.loo_probabilities_ = probabilities(held, len(estimator.classes_))
    estimator.loo_score_ = _score(estimator, data, held)
    estimator.loo_interval_ = _score_interval(estimator, data, held)
    estimator.view_importances_ = {
        name: estimator.loo_score_ - _score(estimator, data, outputs) for name, outputs in without.items()
    }


def _score(estimator: Any, data: ConsensusData, outputs: np.ndarray) -> float:
    if data.codes is not None:
        truth = estimator.classes_[data.codes]
        return float(accuracy_score(truth, _predictions(estimator, outputs), sample_weight=data.s))
    truth = data.Y * data.scale + data.shift
    return float(r2_score(truth, outputs, sample_weight=data.s)) if len(truth) > 1 else float("nan")


def _score_interval(estimator: Any, data: ConsensusData, outputs: np.ndarray) -> tuple[float, float]:
    """Return a 95% confidence interval of the held-out score, with units as independent observations.

    Of an accuracy p, that of Wilson (1927) with p(1 - p) / se² as the number of samples; R² plus and minus 1.96 se.
    """
    score, s, z = estimator.loo_score_, data.s, 1.96
    if data.codes is not None:
        parts = s * ((_predictions(estimator, outputs) == estimator.classes_[data.codes]) - score) / s.sum()
    else:
        truth = data.Y * data.scale + data.shift
        errors, centered = (truth - outputs) ** 2, (truth - s @ truth / s.sum()) ** 2
        ratio = s @ errors / np.maximum(s @ centered, 1e-300)
        parts = -(s[:, None] * (errors - ratio * centered) / np.maximum(s @ centered, 1e-300)).mean(axis=1)
    units = np.arange(len(s)) if data.sets.units is None else data.sets.units
    sums = np.bincount(units, weights=parts)[np.unique(units)]
    n = len(sums)
    if n < 2:
        return (0.0, 1.0) if data.codes is not None else (-np.inf, 1.0)
    variance = n / (n - 1) * float(sums @ sums)
    if data.codes is None:
        return score - z * variance**0.5, min(score + z * variance**0.5, 1.0)
    n = min(score * (1 - score) / variance, n) if variance > 0 else n
    middle, spread = score + z**2 / (2 * n), z * (score * (1 - score) / n + z**2 / (4 * n**2)) ** 0.5
    return (middle - spread) / (1 + z**2 / n), (middle + spread) / (1 + z**2 / n)


def _predictions(estimator: Any, outputs: np.ndarray) -> np.ndarray:
    """Return predictions of outputs: classes, or numbers in the shape of y."""
    if not is_classifier(estimator):
        return outputs[:, 0] if estimator._one_output else outputs
    scores = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    return np.asarray(estimator.classes_[decide(scores, len(estimator.classes_))])


# -- 3. prediction
def experts_of(estimator: Any, X: Views) -> Iterator[tuple[np.ndarray, Expert]]:
    """Yield the rows of each pattern of views, and what is known of samples like these."""
    there = presence(X)
    for pattern in np.unique(there, axis=0):
        yield np.flatnonzero((there == pattern).all(axis=1)), _expert_of(estimator, pattern)


def _expert_of(estimator: Any, pattern: np.ndarray) -> Expert:
    """Return what is known of samples with these views; patterns that no training sample has are learned anew."""
    known: Expert | None = estimator._experts.get(pattern_key(pattern))
    return expert(estimator._stack, pattern) if known is None else known


def combined_outputs(estimator: Any, X: Views, alone: int | None = None) -> Any:
    """Return outputs (n, P), those of one view alone if it is given; they are where the samples are."""
    if alone is None:
        experts = list(experts_of(estimator, X))
    else:
        rows = np.flatnonzero(presence(X)[:, alone])
        experts = [(rows, _expert_of(estimator, np.arange(len(X.names)) == alone))]
    place, n, mean = array_of(X), len(X), estimator._mean
    scores = like(np.tile(mean, (n, 1)), place)
    for k, model in enumerate(estimator._models):
        needed = [(rows, known.weights[k]) for rows, known in experts if known.weights[k].any() and len(rows)]
        if needed:
            every = np.concatenate([rows for rows, _ in needed])
            weights = np.concatenate([np.tile(weight, (len(rows), 1)) for rows, weight in needed])
            f = model.outputs(X, every, estimator.X_fit_, slice(0, len(mean)))
            change = like(weights, place) * (f - like(mean, place))
            if place is None:
                scores[every] += change
            else:
                scores = scores + spread_rows(change, every, n)
    if place is not None:
        parts = [
            spread_rows(link(estimator._stack, take_rows(scores, rows), known.link), rows, n) for rows, known in experts
        ]
        return sum(parts[1:], start=parts[0])
    outputs = np.empty_like(scores)
    for rows, known in experts:
        outputs[rows] = link(estimator._stack, scores[rows], known.link)
    return outputs


@dataclass(frozen=True)
class FoldOutputs:
    """Outputs at some new samples by the models without each fold, and at training samples by the one without theirs.

    The training samples are those that have at least the views of the new ones, seen only through these views.
    """

    rows: np.ndarray  # positions of the new samples
    new: np.ndarray  # (rows, K, P)
    held: np.ndarray  # (samples, P)
    truth: np.ndarray  # (samples, P) targets, or (samples, 1) classes
    folds: np.ndarray  # (samples,)
    weights: np.ndarray  # (samples,) of sum n; units of any size count equally


def outputs_by_fold(estimator: Any, X: Views) -> Iterator[FoldOutputs]:
    """Yield the outputs without each fold, for the samples of each pattern of views."""
    stack: Stack = estimator._stack
    K, P = stack.sets.n_folds, stack.Y.shape[1]
    means = np.stack([stack.mean(k) for k in range(K)])
    for rows, known in experts_of(estimator, X):
        new = np.tile(means, (len(rows), 1, 1))
        for k, model in enumerate(estimator._models):
            if known.fold_weights[:, k].any():
                f = to_numpy(model.outputs(X, rows, estimator.X_fit_, slice(P, None)))
                new += known.fold_weights[:, k] * (f.reshape(len(rows), K, P) - means)
        folds, held = stack.sets.folds[known.rows], np.empty_like(known.held)
        for k, fold_link in enumerate(known.fold_links):
            new[:, k] = link(stack, new[:, k], fold_link)
            held[folds == k] = link(stack, known.held[folds == k], fold_link)
        truth = stack.codes[known.rows, None] if stack.codes is not None else None
        truth = stack.Y[known.rows] * stack.scale + stack.shift if truth is None else truth
        weights = 1 / stack.sets.of(known.rows).sizes()
        yield FoldOutputs(rows, new, held, truth, folds, weights * (len(weights) / weights.sum()))


def whole_weights(estimator: Any) -> np.ndarray:
    """Return the weights (q, P) of the base models where all views are present."""
    return np.asarray(_expert_of(estimator, np.ones(len(estimator._used_views), dtype=bool)).weights)


def weighted_kernels(estimator: Any) -> list[tuple[str, str, float]]:
    """Return views, kernel and weight (mean over outputs) of the base models that have one, the largest first."""
    weights = whole_weights(estimator).mean(axis=1)
    order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
    models = estimator._models
    return [(" + ".join(models[k].views), models[k].label, float(weights[k])) for k in order]


def kernel_weights_frame(estimator: Any) -> Any:
    """Return the weights of the base models as a data frame."""
    pd = pandas_for_weights()
    models, weights = estimator._models, whole_weights(estimator)
    columns: dict[str, Any] = {
        "view": [" + ".join(model.views) for model in models],
        "kernel": [model.label for model in models],
    }
    if weights.shape[1] == 1 or getattr(estimator, "shared_weights", True):
        columns["weight"] = weights[:, 0]
    else:
        columns |= {f"weight {p}": weights[:, p] for p in range(weights.shape[1])}
    columns["penalty"] = [model.penalty for model in models]
    return pd.DataFrame(columns).sort_values(list(columns)[2], ascending=False, ignore_index=True)
