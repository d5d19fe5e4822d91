"""What a report shows, as numbers: results about a comparison and about a stream."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..evaluation.comparison import Comparison, Leaderboard
from ..views.container import Views


@dataclass(frozen=True)
class Disagreement:
    """A sample whose views predict different classes or values.

    Parameters
    ----------
    sample : str
        Name of the sample.
    votes : tuple of str
        Prediction of each view; empty for a missing view.
    prediction, truth : str
        Prediction from all views, and the true class or value.
    spread : float
        Distance between the outputs of the views; see `view_agreement`.
    """

    sample: str
    votes: tuple[str, ...]
    prediction: str
    truth: str
    spread: float


@dataclass(frozen=True)
class Findings:
    """What a report shows about a comparison; see `examine`.

    Parameters
    ----------
    title : str
        Title of the data.
    X : Views
        The samples.
    y : array of shape (n_samples,)
        Their classes or targets.
    board : Leaderboard
        Results of the comparison.
    patterns : list of (tuple of bool, int)
        Which views are present together, and in how many samples; the most frequent first.
    alignments : array of shape (n_views + 1, n_views + 1)
        Alignments of centered Gram matrices; the last row and column are the target. NaN if no sample has both views.
    model : estimator
        The best estimator, fitted on all samples.
    chosen_params : list of dict
        Parameters chosen on all samples, then those chosen in each fold.
    certificate : Certificate or None
        Certificate of the fit on all samples.
    weights : dict
        Share of each view in the weights of the model; empty if it has no weights.
    loss_estimator : str
        Estimator that was fitted without each view: the best one that uses all views.
    losses : dict
        View -> (mean, low, high) of the score lost by fitting without the view.
    vote_estimator : str
        Estimator whose views were compared: the best one in which each view predicts by itself. Empty if there is none.
    disagreements : list of Disagreement
        Samples on which its views differ most.
    agreed, disputed : tuple of (int, float), or None
        Number of samples on which all views agree, and the share of correct predictions there. The same for samples
        on which views disagree.
    calibration : array of shape (n_bins, 3)
        For classification: mean confidence, share of correct predictions, number of samples. For regression: mean
        prediction, mean target, number of samples.
    confidence : str
        How the confidence of a prediction is computed; empty if it is not available.
    learning_curve : array of shape (n_sizes, 4)
        Number of training samples, mean score, and its confidence interval.
    """

    title: str
    X: Views
    y: np.ndarray
    board: Leaderboard
    patterns: list[tuple[tuple[bool, ...], int]]
    alignments: np.ndarray
    model: Any
    chosen_params: list[dict[str, Any]]
    certificate: Any
    weights: dict[str, float]
    loss_estimator: str
    losses: dict[str, tuple[float, float, float]]
    vote_estimator: str
    disagreements: list[Disagreement]
    agreed: tuple[int, float] | None
    disputed: tuple[int, float] | None
    calibration: np.ndarray
    confidence: str
    learning_curve: np.ndarray

    @property
    def best(self) -> Comparison:
        """Result of the best estimator."""
        row: Comparison = self.board[0]
        return row


@dataclass(frozen=True)
class StreamFindings:
    """What a report shows about a stream.

    Parameters
    ----------
    title : str
        Title of the data.
    estimator : str
        Name of the online estimator.
    result : ProgressiveResult
        Its mistakes and their curve.
    certificate : MistakeCertificate or None
        Its mistake bound, if you have the samples to compute it.
    others : dict
        Name -> ProgressiveResult of other estimators on the same stream.

    Examples
    --------
    >>> import consilience as cs
    >>> from consilience.report import StreamFindings
    >>> X, y = cs.datasets.make_views(n_samples=300, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron()
    >>> result = cs.progressive_validation(model, X, y)
    >>> certificate = model.certificate(X, y)
    >>> findings = StreamFindings("made", "OrthogonalPerceptron", result, certificate)
    >>> findings.certificate.bound >= result.n_mistakes
    True
    """

    title: str
    estimator: str
    result: Any
    certificate: Any = None
    others: dict[str, Any] = field(default_factory=dict)
