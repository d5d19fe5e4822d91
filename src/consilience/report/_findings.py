"""What a report shows, as numbers: results about a comparison and about a stream."""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..evaluation.external import ExternalEvaluation, Measure
from ..evaluation.leaderboard import Comparison, Leaderboard
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
class PredictionSets:
    """Prediction sets or intervals of held-out samples.

    Parameters
    ----------
    coverage : float
        Share of sets that should contain the true class or value.
    covered : Measure
        Share that does, with its interval.
    sizes : array of shape (n_samples,)
        Number of classes in each set, or width of each interval.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.evaluation.external import Measure
    >>> from consilience.report import PredictionSets
    >>> PredictionSets(0.9, Measure(0.92, 0.85, 0.96), np.array([1, 1, 2])).sizes.mean().round(2)
    np.float64(1.33)
    """

    coverage: float
    covered: Measure
    sizes: np.ndarray


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
    problems : list of str
        Sentences about problems in the data; empty if none was found.
    patterns : list of (tuple of bool, int)
        Which views are present together, and in how many samples; the most frequent first.
    alignments : array of shape (n_views + 1, n_views + 1)
        Unbiased alignments of Gram matrices; the last row and column are the target. NaN if fewer than 4 samples have
        both views.
    model : estimator
        The best estimator, fitted on all samples.
    chosen_params : list of dict
        Parameters chosen on all samples, then those chosen in each fold.
    certificate : Certificate or None
        Certificate of the fit on all samples.
    weights : dict
        Share of each view in the weights of the model; empty if it has no weights.
    kernel_weights : list of (str, str, float)
        View or views, kernel and weight of each base model with a positive weight; empty if the model has no such.
    importances : dict
        View -> held-out score that the model loses without it, as `view_importances_` of the model says. Empty if the
        model does not have it; then `losses` are computed.
    feature_importances : dict
        View -> list of (column, importance, low, high), the most important columns first. Empty if none was found.
    feature_meaning : str
        What these importances are.
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
        For classification: mean probability, observed share, number of samples. Of two classes the probability is that
        of the second, otherwise that of the predicted class. Empty if the model has no probabilities. For regression:
        mean prediction, mean target, number of samples.
    sets : PredictionSets or None
        Coverage and sizes of prediction sets or intervals on held-out samples, where the model has them.
    learning_curve : array of shape (n_sizes, 4)
        Number of training samples, mean score, and its confidence interval.
    """

    title: str
    X: Views
    y: np.ndarray
    board: Leaderboard
    problems: list[str]
    patterns: list[tuple[tuple[bool, ...], int]]
    alignments: np.ndarray
    model: Any
    chosen_params: list[dict[str, Any]]
    certificate: Any
    weights: dict[str, float]
    kernel_weights: list[tuple[str, str, float]]
    importances: dict[str, float]
    feature_importances: dict[str, list[tuple[str, float, float, float]]]
    feature_meaning: str
    loss_estimator: str
    losses: dict[str, tuple[float, float, float]]
    vote_estimator: str
    disagreements: list[Disagreement]
    agreed: tuple[int, float] | None
    disputed: tuple[int, float] | None
    calibration: np.ndarray
    sets: PredictionSets | None
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
        Its mistakes and measures, with those of the baseline, their curves, and drifts.
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

    @property
    def results(self) -> dict[str, Any]:
        """Results of all estimators by name, the one with the lowest error first."""
        both = {self.estimator: self.result, **self.others}
        return dict(sorted(both.items(), key=lambda item: item[1].error))


@dataclass(frozen=True)
class ExternalFindings:
    """What a report shows about a model on an external cohort; see `examine_external`.

    Parameters
    ----------
    title : str
        Title of the cohort.
    X : Views
        Its samples.
    model : estimator
        The fitted model.
    evaluation : ExternalEvaluation
        Measures with intervals.
    problems : list of str
        Sentences about what limits the evaluation; empty if nothing was found.
    """

    title: str
    X: Views
    model: Any
    evaluation: ExternalEvaluation
    problems: list[str]


@dataclass(frozen=True)
class Provenance:
    """Where a report comes from.

    Parameters
    ----------
    files : tuple of path
        Files of data; the report shows their names, sizes and SHA-256 digests.
    command : str
        Command line that made the report.
    model_file : path, optional
        Model file that contains the best estimator, for the lines of code that predict with it.
    random_state : int, optional
        Seed of the folds.

    Examples
    --------
    >>> from consilience.report import Provenance
    >>> Provenance(command="consilience compare data.csv --report report.html").files
    ()
    """

    files: tuple[str | os.PathLike[str], ...] = ()
    command: str = ""
    model_file: str | os.PathLike[str] | None = None
    random_state: int | None = None
