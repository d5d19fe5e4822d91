"""The steps of a consensus: read the training data, store the fit, combine the base models."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import check_cv

from .._backend import is_device_array, like, namespace, spread_rows, take_rows
from ..kernels.given import definite_grams
from ..solvers.certificates import Solution
from ..solvers.consensus import Folds, Smoother, held_out_means, smoother
from ..solvers.linalg import multiply
from ..views._blocks import Gram, quoted
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import to_float64
from ..views.estimator import decide, presence
from ..views.validation import class_weights, read_groups, read_labels, read_targets, read_views_to_fit, read_weights
from ._consensus import EXACT, BaseModel, BaseModels, array_of, spread_map, symmetric
from ._estimator import pandas_for_weights
from ._stack import Expert, Stack, expert, link, probabilities

_CHUNK = 4_000_000  # numbers in memory at once while intervals and sets are computed


# -- 1. the training data
@dataclass(frozen=True)
class ConsensusData:
    """Training samples, the labeled ones first."""

    X: Views
    Y: np.ndarray  # targets of the labeled rows, of standard deviation 1 for regression
    u: np.ndarray  # weights of their losses
    s: np.ndarray  # their weights without those of classes
    codes: np.ndarray | None  # their classes
    folds: Folds
    shift: np.ndarray  # of the targets
    scale: np.ndarray


def read_consensus(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> ConsensusData:
    """Validate samples, targets, weights and groups."""
    vars(estimator).pop("_models", None)  # which views were Gram matrices in an earlier fit
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
    folds = _read_folds(estimator, Y[first], None if codes is None else codes[first], groups, first, len(s))
    codes = None if codes is None else codes[first]
    return ConsensusData(X, Y[first], u[first], s[first], codes, folds, shift, scale)


def _scales(Y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of targets, so that outputs count equally; 1 for constant ones."""
    shift = s @ Y / s.sum()
    scale = np.sqrt(s @ (Y - shift) ** 2 / s.sum())
    return shift, np.where(scale > 1e-14 * np.abs(shift), scale, 1.0)


def _read_folds(estimator: Any, Y: np.ndarray, codes: Any, groups: Any, first: np.ndarray, n: int) -> Folds:
    """Return the labeled samples that are held out together, as positions among them; None for single samples."""
    if groups is not None:
        groups = read_groups(groups, n)[first]
        if len(np.unique(groups)) < 2:
            raise ValueError("All labeled samples are of one group, so that none can be held out. Omit `groups`.")
    if estimator.cv is None:
        if groups is None:
            return None
        place = np.unique(groups, return_inverse=True)[1]
        return [np.flatnonzero(place == k) for k in range(place.max() + 1)]
    target = Y[:, 0] if codes is None else codes
    splitter = check_cv(estimator.cv, target, classifier=codes is not None)
    folds = [test for _, test in splitter.split(np.zeros((len(Y), 1)), target, groups)]
    if not np.array_equal(np.sort(np.concatenate(folds)), np.arange(len(Y))):
        raise ValueError(f"The test parts of `cv` must contain each sample exactly once; got {estimator.cv!r}.")
    if groups is not None and sum(len(np.unique(groups[fold])) for fold in folds) > len(np.unique(groups)):
        raise ValueError("`cv` puts samples of one group into several folds. Use a splitter such as GroupKFold.")
    return folds


# -- 2. the fit
def make_stack(estimator: Any, data: ConsensusData, base: BaseModels) -> Stack:
    """Return the held-out predictions of the base models and the targets."""
    means = held_out_means(data.Y, data.u, data.folds)
    parts = np.arange(len(data.Y))
    for k, fold in enumerate(data.folds or ()):
        parts[fold] = k
    return Stack(
        base.held - means, data.Y - means, means, data.u, presence(data.X)[: len(data.Y)], base.needs, parts,
        data.shift, data.scale, data.codes, 0 if data.codes is None else len(estimator.classes_),
        getattr(estimator, "shared_weights", True),
    )  # fmt: skip


def store_consensus(estimator: Any, data: ConsensusData, base: BaseModels, stack: Stack, whole: Expert) -> None:
    """Store what prediction needs and what is proved."""
    for name in ("_averages", "_experts"):  # of an earlier fit that was shared
        vars(estimator).pop(name, None)
    estimator._models, estimator._stack, estimator._whole = base.models, stack, whole
    estimator._mean = data.u @ data.Y / data.u.sum()
    estimator.X_fit_ = _references(base.stored)
    estimator.view_weights_ = _view_shares(whole.weights.sum(axis=1), base.needs)
    objective, residual = stack.certificate(np.ones(len(data.X.names), dtype=bool))
    filled = {name: count for name, count in estimator.n_filled_.items() if count}
    note = "Held-out predictions are those of refits, by exact formulas; penalties are chosen on the same samples."
    if filled:
        each = ", ".join(f"{count:,} in '{name}'" for name, count in filled.items())
        note += f" Missing values filled with the means of their columns: {each}."
    unlabeled = len(data.X) - len(data.Y)
    if unlabeled and not any(model.spread for model in base.models):
        note += f" {unlabeled:,} unlabeled samples only scale columns and kernels: for their graphs, at most {EXACT:,} "
        note += "samples in all are used, without `n_components`."
    estimator.solution_ = Solution(None, None, 1, "exact", objective=objective, residual=residual, note=note)


def _references(X: Views) -> Views:
    """Return what is stored of the training samples; Gram matrices too, because sets and intervals need them."""
    blocks = {name: X.block(name) for name in X.names}
    blocks |= {name: block.reference(strip=False) for name, block in blocks.items() if isinstance(block, Gram)}
    return Views._of(blocks, len(X), X.mask, X.feature_names, None)


def _view_shares(weights: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Return the shares of the views; equal ones if all weights are 0."""
    each = needs / np.maximum(needs.sum(axis=1, keepdims=True), 1)
    shares = weights @ each
    return shares / shares.sum() if shares.sum() > 0 else np.full(needs.shape[1], 1 / needs.shape[1])


def store_held_out(estimator: Any, data: ConsensusData, held: np.ndarray, without: dict[str, np.ndarray]) -> None:
    """Store held-out predictions, their score, and what the score loses without each view."""
    estimator.loo_predictions_ = _predictions(estimator, held)
    if data.codes is not None:
        estimator.loo_probabilities_ = probabilities(held, len(estimator.classes_))
    estimator.loo_score_ = _score(estimator, data, held)
    estimator.view_importances_ = {
        name: estimator.loo_score_ - _score(estimator, data, outputs) for name, outputs in without.items()
    }


def _score(estimator: Any, data: ConsensusData, outputs: np.ndarray) -> float:
    if data.codes is not None:
        truth = estimator.classes_[data.codes]
        return float(accuracy_score(truth, _predictions(estimator, outputs), sample_weight=data.s))
    truth = data.Y * data.scale + data.shift
    return float(r2_score(truth, outputs, sample_weight=data.s)) if len(truth) > 1 else float("nan")


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
        rows = np.flatnonzero((there == pattern).all(axis=1))
        yield rows, _expert_of(estimator, pattern)


def _expert_of(estimator: Any, pattern: np.ndarray) -> Expert:
    """Return what is known of samples with these views; a model without training samples knows some patterns."""
    if pattern.all():
        whole: Expert = estimator._whole
        return whole
    known: dict[str, Expert] | None = vars(estimator).get("_experts")
    if known is None:
        return expert(estimator._stack, pattern)
    if pattern_key(pattern) not in known:
        views = [name for name, there in zip(estimator._used_views, pattern, strict=True) if there]
        raise ValueError(
            f"{type(estimator).__name__} was shared without its training samples, and has no weights for samples that "
            f"have only the views {quoted(views)}. Give all views, a single one, or those of a training sample."
        )
    return known[pattern_key(pattern)]


def pattern_key(pattern: np.ndarray) -> str:
    """Return which views are present as text, such as "101"."""
    return "".join("1" if there else "0" for there in pattern)


def combined_outputs(estimator: Any, X: Views, alone: int | None = None) -> Any:
    """Return outputs (n, P), those of one view alone if it is given; they are where the samples are."""
    if alone is None:
        experts = list(experts_of(estimator, X))
    else:
        rows = np.flatnonzero(presence(X)[:, alone])
        experts = [(rows, _expert_of(estimator, np.arange(len(X.names)) == alone))]
    stored = vars(estimator).get("_averages")  # of a model without training samples
    stored = estimator.X_fit_ if stored is None else stored
    place, n = array_of(X), len(X)
    scores = like(np.tile(estimator._mean, (n, 1)), place)
    for k, model in enumerate(estimator._models):
        needed = [(rows, own.weights[k]) for rows, own in experts if own.weights[k].any() and len(rows)]
        if needed:
            every = np.concatenate([rows for rows, _ in needed])
            weights = np.concatenate([np.tile(own, (len(rows), 1)) for rows, own in needed])
            change = like(weights, place) * (model.outputs(X, every, stored) - like(estimator._mean, place))
            if place is None:
                scores[every] += change
            else:
                scores = scores + spread_rows(change, every, n)
    if place is not None:
        parts = [
            spread_rows(link(estimator._stack, take_rows(scores, rows), own.link), rows, n) for rows, own in experts
        ]
        return sum(parts[1:], start=parts[0])
    outputs = np.empty_like(scores)
    for rows, own in experts:
        outputs[rows] = link(estimator._stack, scores[rows], own.link)
    return outputs


def left_out_outputs(
    estimator: Any, X: Views, smoothers: "Smoothers"
) -> Iterator[tuple[np.ndarray, Any, np.ndarray, np.ndarray]]:
    """Yield rows of X, their outputs without each training sample (rows, n, P), and the samples' own and their truth.

    The outputs of the rows are where the samples are. A sample's own outputs are held out too. The truth is the
    targets, or the classes in one column. The training samples are those that have at least the views of the rows, seen
    through these views alone. `smoothers` keeps what several calls need, a matrix of all training samples for each base
    model.
    """
    if "_averages" in vars(estimator):
        raise ValueError(
            f"{type(estimator).__name__} was shared without its training samples, and intervals and sets need their "
            "held-out predictions. Use the original model."
        )
    stack: Stack = estimator._stack
    place = array_of(X)
    for rows, own in experts_of(estimator, X):
        means = like(stack.means[own.rows], place)
        truth = (stack.T + stack.means)[own.rows] * stack.scale + stack.shift
        truth = truth if stack.codes is None else stack.codes[own.rows, None]
        size = max(1, _CHUNK // max(len(stack.T) * stack.T.shape[1], 1))
        needed = np.flatnonzero(own.weights.any(axis=1)).tolist()
        left_out = [_LeftOut(estimator, k, own.rows, smoothers) for k in needed]
        for part in (rows[a : a + size] for a in range(0, len(rows), size)):
            new = like(np.zeros((len(part), 1, 1)), place) + means
            for model in left_out:
                new += like(own.weights[model.k], place) * (model.scores(X, part) - means)
            yield part, link(stack, new, own.link), link(stack, own.held, own.link), truth


Smoothers = dict[int, tuple[Smoother, Any]]  # by base model, with the map of its graph or None


class _LeftOut:
    """A base model without each training sample, its group or its fold."""

    def __init__(self, estimator: Any, k: int, samples: np.ndarray, smoothers: Smoothers):
        stack: Stack = estimator._stack
        self.model: BaseModel = estimator._models[k]
        self.k, self.n_samples, self.stored = k, len(samples), estimator.X_fit_
        labeled = np.flatnonzero(~np.isnan(stack.Z[k]).any(axis=1))
        self.errors = (stack.T - stack.Z[k])[labeled]
        self.smoother: Smoother | None = None
        if len(self.model.rows) < len(labeled):  # features of landmarks: the model itself
            return
        if k not in smoothers:
            K = self.model.gram(self.stored, self.model.rows)
            spread = spread_map(K, len(labeled), self.model.spread) if self.model.spread else None
            K = K if spread is None else symmetric(multiply(K[: len(labeled), :], spread))
            smoothers[k] = smoother(K, stack.u[labeled], self.model.penalty), spread
        self.smoother, self.spread = smoothers[k]
        # which samples are left out with sample i
        parts, place = np.unique(stack.parts, return_inverse=True)
        self.members = None
        self.known = np.isin(samples, labeled)  # a model that abstains for a sample has not seen it
        single = len(parts) == len(place)
        self.place = np.searchsorted(labeled, samples[self.known]) if single else place[samples[self.known]]
        if len(parts) < len(place):
            shape = len(labeled), len(parts)
            self.members = sp.csr_array((np.ones(len(labeled)), (np.arange(len(labeled)), place[labeled])), shape=shape)

    def scores(self, X: Views, rows: np.ndarray) -> Any:
        """Return f^-i(x), (rows, samples, P): f(x) less s_j(x) times the held-out error of each j left out with i."""
        K_new = self.model.gram(X, rows, self.stored, self.model.rows)
        f = multiply(K_new, self.model.coefficients) + like(self.model.intercept, K_new)
        if is_device_array(K_new):
            return self._scores_there(f, K_new)
        out = np.repeat(f[:, None, :], self.n_samples, axis=1)
        if self.smoother is not None:
            S = self.smoother.rows(K_new if self.spread is None else multiply(K_new, self.spread))
            for p in range(out.shape[2]):
                change = S * self.errors[:, p]
                change = change if self.members is None else np.asarray(change @ self.members)
                out[:, self.known, p] -= change[:, self.place]
        return out

    def _scores_there(self, f: Any, K_new: Any) -> Any:
        """Return the same on a device, whose arrays may not be assigned to by positions."""
        xp = namespace(K_new)
        if self.smoother is None:
            return f[:, None, :] + like(np.zeros((1, self.n_samples, 1)), f)
        S = self.smoother.rows(K_new if self.spread is None else multiply(K_new, self.spread))
        known = np.flatnonzero(self.known)
        out = []
        for p in range(f.shape[1]):
            change = S * like(self.errors[:, p], S)
            change = change if self.members is None else multiply(change, like(self.members.toarray(), S))
            change = spread_rows(take_rows(change.T, self.place), known, self.n_samples)  # 0 for others
            out.append(f[:, p : p + 1] - change.T)
        return xp.stack(out, axis=2)


def weighted_kernels(estimator: Any) -> list[tuple[str, str, float]]:
    """Return views, kernel and weight (mean over outputs) of the base models that have one, the largest first."""
    weights = estimator._whole.weights.mean(axis=1)
    order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
    models = estimator._models
    return [(" + ".join(models[k].views), models[k].label, float(weights[k])) for k in order]


def kernel_weights_frame(estimator: Any) -> Any:
    """Return the weights of the base models as a data frame."""
    pd = pandas_for_weights()
    models, weights = estimator._models, estimator._whole.weights
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
