"""Examine a comparison for a report: fits on parts of the data show which views matter and where they disagree."""

from collections import Counter
from typing import Any

import numpy as np

from .._progress import progress
from ..evaluation._wrappers import final_estimator
from ..evaluation.candidates import single_view, used_views
from ..evaluation.leaderboard import Comparison, Leaderboard
from ..views._notebook import weights_of
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.estimator import presence
from ._examine_predictions import calibration_of, held_out_sets, learning_curve_of
from ._examine_views import disagreements_of, held_out_votes, important_columns, losses_without_views, view_alignments
from ._findings import Findings
from ._fold_fits import FoldFits
from ._problems import find_problems


def examine(
    X: Any, y: Any, board: Leaderboard, *, title: str = "Data", n_jobs: int | None = None, verbose: bool = False
) -> Findings:
    """Examine the data and the estimators of a comparison, for a report.

    All statements about the quality of predictions are about held-out samples. Estimators are fitted on the training
    part of each fold of the comparison, with the parameters chosen there.

    Parameters
    ----------
    X : Views or what `as_views` reads
        The samples of the comparison.
    y : array-like of shape (n_samples,)
        Their classes or targets.
    board : Leaderboard
        Result of `compare`.
    title : str, default="Data"
        Title of the data.
    n_jobs : int, optional
        Number of processes, each of which fits one estimator at a time; -1 uses all cores.
    verbose : bool, default=False
        Whether to show progress, in a terminal or a notebook.

    Returns
    -------
    Findings
        What a report shows; see `write_report`.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> from consilience.report import examine
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> X, y = X[::4], y[::4]
    >>> board = compare(X, y, estimators=["CoRegularizedRidgeClassifierCV"], cv=2)
    >>> findings = examine(X, y, board, title="Breast cancer")
    >>> findings.losses["worst"][0] > findings.losses["error"][0]
    True
    """
    X = as_views(X)
    y = np.asarray(in_order_of(X, y, "y"))
    best: Comparison = board[0]
    used = used_views(X, board.prepare)
    shown = X[used]  # without batches and dropped views, which the models do not learn from
    kinds = ("estimator", "own")
    of_all_views = next((row for row in board if row.kind in kinds and single_view(row.name, X) is None), None)
    fits = FoldFits(board, X, y, n_jobs)
    with progress(verbose, "examining the data") as show:
        show("fitting on all samples", 0.05)
        model = board.refit(best.name, X, y)
        show("comparing the predictions of the views", 0.15)
        votes = _disagreements(fits)
        show("fitting without each view", 0.3)
        importances = _own_importances(final_estimator(model))
        losses = {}
        if of_all_views is not None and len(used) > 1 and not importances:
            losses = losses_without_views(fits, of_all_views)
        show("shuffling columns", 0.5)
        columns, meaning = important_columns(fits, best)
        show("fitting on fewer samples", 0.7)
        curve = learning_curve_of(fits, best)
        show("comparing kernels", 0.95)
        alignments = view_alignments(shown, y, board)
    each = zip(best.best_params, fits.models(best), strict=True)
    chosen = [_chosen_params(best.best_params[0], model), *(_chosen_params(given, part) for given, part in each)]
    final = final_estimator(model)
    return Findings(
        title=title, X=shown, y=y, board=board,
        problems=find_problems(shown, y, board.task, len(board.splits), board.random_state),
        patterns=_patterns(shown), alignments=alignments, model=model, chosen_params=chosen,
        certificate=final.certificate() if hasattr(final, "certificate") else None,
        weights=_weights(final), kernel_weights=_kernel_weights(final), importances=importances,
        feature_importances=columns, feature_meaning=meaning, loss_estimator=(of_all_views or best).title,
        losses=losses, **votes, calibration=calibration_of(best, y, board), sets=held_out_sets(fits, best),
        learning_curve=curve,
    )  # fmt: skip


def _chosen_params(best_params: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the parameters that the search chose, and those that the estimator chose by itself."""
    final, values = final_estimator(model), model.get_params()
    step = f"{type(final).__name__.lower()}__"  # the name that `make_pipeline` gives to the estimator
    searched = {key.partition(step)[2] or key: values[key] for key in best_params}
    own = ("alpha", "agreement_penalty", "metric_penalty")
    return {**searched, **{name: getattr(final, f"{name}_") for name in own if hasattr(final, f"{name}_")}}


# -- the data
def _patterns(X: Views) -> list[tuple[tuple[bool, ...], int]]:
    return Counter(map(tuple, presence(X).tolist())).most_common()


# -- the views
def _weights(final: Any) -> dict[str, float]:
    """Return the share of each view in the weights of an estimator; empty if it does not weight all views."""
    weights = np.asarray(final.view_weights_) if hasattr(final, "view_importances_") else weights_of(final)
    if weights is None or len(weights) != len(getattr(final, "view_names_in_", ())):
        return {}
    total = np.abs(weights).sum() or 1.0
    return dict(zip(final.view_names_in_, (np.abs(weights) / total).tolist(), strict=True))


def _kernel_weights(final: Any) -> list[tuple[str, str, float]]:
    """Return view, kernel and weight of the base models of a consensus that have a positive weight."""
    if not hasattr(final, "_weighted_kernels"):
        return []
    found: list[tuple[str, str, float]] = final._weighted_kernels()
    return found


def _own_importances(final: Any) -> dict[str, float]:
    found: dict[str, float] = getattr(final, "view_importances_", {})
    return {str(view): float(loss) for view, loss in found.items()}


def _disagreements(fits: FoldFits) -> dict[str, Any]:
    """Return what `Findings` say about the disagreement of views."""
    X, board = fits.X, fits.board
    names = [str(name) for name in (range(len(X)) if X.sample_names is None else X.sample_names)]
    name, votes, spread = held_out_votes(fits)
    voter = next((row for row in board if row.name == name), board[0])
    agreed, disputed, rows = disagreements_of(votes, spread, voter.predictions, fits.y, names, board.task)
    title = voter.title if name else ""
    return {"vote_estimator": title, "agreed": agreed, "disputed": disputed, "disagreements": rows}
