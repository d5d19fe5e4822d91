"""Examine the views of a comparison: how alike they are, what is lost without each, where they disagree."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.preprocessing import StandardScaler

from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..batch.fusion import EarlyFusion, LateFusion
from ..evaluation._intervals import difference_interval
from ..evaluation._wrappers import final_estimator
from ..evaluation.candidates import default_kernels, single_view, used_views, without_view
from ..evaluation.importances import feature_importances
from ..evaluation.inspection import view_agreement, view_outputs
from ..evaluation.leaderboard import Comparison, Leaderboard
from ..kernels.given import as_kernel
from ..kernels.gram import alignment
from ..views.container import Views
from ..views.estimator import presence
from ._findings import Disagreement
from ._fold_fits import FoldFits

ALIGNED_SAMPLES = 600  # a random subset of this size changes an alignment by less than the report shows
SHOWN_DISAGREEMENTS = 12
COLUMN_SAMPLES = 200  # held-out samples on which columns are shuffled
COLUMN_SCORES = 150  # of shuffled samples
COLUMN_SHUFFLES = 3  # of each column


# -- likeness
def view_alignments(X: Views, y: np.ndarray, board: Leaderboard) -> np.ndarray:
    """Return unbiased alignments between views, and of each view with the target, on samples that have both."""
    rng = np.random.default_rng(board.random_state)
    kernels, m = default_kernels(X), len(X.names)
    regression = board.task == "regression"
    target = (y - y.mean())[:, None] if regression else (y[:, None] == np.unique(y)).astype(np.float64)
    alignments, present = np.full((m + 1, m + 1), np.nan), presence(X)  # the target has the last row and column
    np.fill_diagonal(alignments, 1.0)
    for v in range(m):
        for w in range(v + 1, m + 1):
            rows = np.flatnonzero(present[:, v] & (present[:, w] if w < m else True))
            if len(rows) < 4:  # the unbiased estimate needs four
                continue
            rows = np.sort(rng.permutation(rows)[:ALIGNED_SAMPLES])
            other = _gram(X, X.names[w], rows, kernels) if w < m else target[rows] @ target[rows].T
            alignments[v, w] = alignments[w, v] = alignment(_gram(X, X.names[v], rows, kernels), other, unbiased=True)
    return alignments


def _gram(X: Views, name: str, rows: np.ndarray, kernels: dict[str, Any]) -> np.ndarray:
    """Return the Gram matrix of some samples of a view, by its default kernel; dense views are scaled."""
    block = X[rows].block(name)
    if X.kind(name) == "dense":
        block = np.nan_to_num(StandardScaler().fit_transform(np.asarray(block)))
    return np.asarray(as_kernel(kernels.get(name, "rbf")).resolved(block)(block))


# -- importance
def losses_without_views(fits: FoldFits, row: Comparison) -> dict[str, tuple[float, float, float]]:
    """Return the score lost by fitting and predicting without each view, with its interval over the folds."""
    X, y, board = fits.X, fits.y, fits.board
    jobs: list[tuple[Any, ...]] = []
    places = []
    used = used_views(X, board.prepare)
    for v, name in enumerate(used):
        kept = np.flatnonzero(np.delete(presence(X[used]), v, axis=1).any(axis=1))  # samples that have another view
        others = X[kept][[other for other in X.names if other != name]]
        groups, weights = (None if part is None else part[kept] for part in (board.groups, board.sample_weight))
        for k, split in enumerate(board.splits):
            train, test = (np.flatnonzero(np.isin(kept, part)) for part in split)
            if len(train) and len(test) > 1:
                jobs.append((without_view(fits.estimator(row, k), name), others, y[kept], groups, train, test, weights))
                places.append((name, k, kept[test]))
    lost: dict[str, list[float]] = {}
    correct: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for (name, k, test), result in zip(places, fits.scores(jobs), strict=True):
        loss = np.nan if result is None else _score_on(fits, row, k, test) - result.score
        if result is not None and np.isfinite(loss):  # a score may be undefined in a fold
            lost.setdefault(name, []).append(loss)
            whole = dict(zip(row.parts[k].test.tolist(), row.parts[k].predictions.tolist(), strict=True))
            with_all = np.array([whole[i] == y[i] for i in test.tolist()])
            correct.setdefault(name, []).append((with_all, result.predictions == y[test]))
    losses = {}
    for name, values in lost.items():
        pair = tuple(np.concatenate(part) for part in zip(*correct[name], strict=True))
        paired: Any = pair if board.scoring == "accuracy" else None
        losses[name] = (float(np.mean(values)), *difference_interval(np.array(values), board.test_ratio, paired))
    return losses


def _score_on(fits: FoldFits, row: Comparison, fold: int, test: np.ndarray) -> float:
    """Return the score of a row on some test samples of a fold."""
    if len(test) == len(fits.board.splits[fold][1]):  # all test samples, whose score is known
        return row.scores[fold]
    return float(fits.board.scorer(fits.models(row)[fold], fits.views(row, test), fits.y[test]))


def important_columns(fits: FoldFits, row: Comparison) -> tuple[dict[str, list[tuple[str, float, float, float]]], str]:
    """Return the most important columns by view, on the held-out samples of the first fold, and what that means."""
    test = fits.board.splits[0][1]
    test = test[row.scored[test]][:COLUMN_SAMPLES]
    try:
        found = feature_importances(
            fits.models(row)[0],
            fits.views(row, test),
            fits.y[test],
            scoring=fits.board.scorer,
            n_repeats=COLUMN_SHUFFLES,
            max_scores=COLUMN_SCORES,
        )
    except (TypeError, ValueError) as error:  # a model that does not read views, or a score that needs all classes
        return {}, f"The importance of columns could not be computed: {error}"
    columns: dict[str, list[tuple[str, float, float, float]]] = {}
    errors = found.standard_errors if found.standard_errors is not None else np.full(len(found), np.nan)
    halves = float(student.ppf(0.975, COLUMN_SHUFFLES - 1)) * errors  # few shuffles: not the normal 1.96
    rows = zip(found.views, found.names, found.importances.tolist(), halves.tolist(), found.is_block, strict=True)
    for view, name, value, half, is_block in rows:
        if value > 0 and not is_block:
            columns.setdefault(view, []).append((name, value, value - half, value + half))
    return columns, found.meaning


# -- disagreement
def held_out_votes(fits: FoldFits) -> tuple[str, np.ndarray | None, np.ndarray]:
    """Return the best estimator whose views predict one by one, their predictions and spreads on held-out samples."""
    X, used = fits.X, tuple(used_views(fits.X, fits.board.prepare))
    m = len(used)
    for row in fits.board if m > 1 else ():
        if single_view(row.name, X) is not None or not _may_vote(final_estimator(fits.board.estimators[row.name][0])):
            continue
        finals = [final_estimator(model) for model in fits.models(row)]
        # a preparation may make other views; without a penalty on their disagreement, only the sum of views is learned
        if finals[0].view_names_in_ != used or not all(_votes_by_view(final) for final in finals):
            continue
        votes, spread = np.full((len(X), m), None, dtype=object), np.full(len(X), np.nan)
        for model, (_, test) in zip(fits.models(row), fits.board.splits, strict=True):
            if len(test):
                votes[test], spread[test] = _fold_votes(model, X[test])
        return row.name, votes, spread
    return "", None, np.zeros(0)


def _may_vote(final: Any) -> bool:
    """Tell whether each view of an estimator may predict by itself.

    Not if it concatenates views, combines pairs of them by a metric, or learns only the sum of their functions.
    """
    if not hasattr(final, "view_decision_function") or isinstance(final, EarlyFusion):
        return False
    by_view = isinstance(final, (LateFusion, ConsensusClassifier, ConsensusRegressor))
    return by_view or bool({"agreement_penalty", "agreement_penalties"} & final.get_params().keys())


def _votes_by_view(final: Any) -> bool:
    """Tell whether a fitted estimator asks its views to agree, so that each of them predicts the target."""
    penalty = getattr(final, "agreement_penalty_", getattr(final, "agreement_penalty", None))
    return penalty is None or bool(np.max(penalty) > 0)


def _fold_votes(model: Any, X: Views) -> tuple[np.ndarray, np.ndarray]:
    """Return the prediction of each view for samples, and their spread, in the units of the target."""
    agreement = view_agreement(model, X)
    if "votes" in agreement:
        return agreement.votes, agreement.spread
    outputs = view_outputs(model, X)[0].reshape(len(X), -1)
    votes = outputs.astype(object)
    votes[np.isnan(outputs)] = None
    return votes, agreement.spread


def disagreements_of(
    votes: np.ndarray | None,
    spread: np.ndarray,
    predictions: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    task: str,
) -> tuple[tuple[int, float] | None, tuple[int, float] | None, list[Disagreement]]:
    """Return how often views agree and disagree, and the samples on which they differ most."""
    if votes is None:
        return None, None, []
    several = ~np.isnan(spread)  # samples with at least two views
    agreed = disputed = None
    show: Callable[[Any], str] = str
    if task == "regression":
        chosen, show = np.flatnonzero(several), "{:.4g}".format
    else:
        differ = several & np.array([len({str(v) for v in row if v is not None}) > 1 for row in votes])
        correct, same = np.asarray(predictions == y), several & ~differ
        agreed = (int(same.sum()), float(correct[same].mean())) if same.any() else None
        disputed = (int(differ.sum()), float(correct[differ].mean())) if differ.any() else None
        chosen = np.flatnonzero(differ)
    rows = [
        Disagreement(
            names[i], tuple("" if v is None else show(v) for v in votes[i]), show(predictions[i]), show(y[i]),
            float(spread[i]),
        )
        for i in chosen[np.argsort(-spread[chosen], kind="stable")][:SHOWN_DISAGREEMENTS]
    ]  # fmt: skip
    return agreed, disputed, rows
