"""Examine a fitted model on an external cohort, for a report."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..evaluation._wrappers import steps_of
from ..evaluation.external import evaluate_external
from ..views._blocks import some
from ..views.container import Views
from ..views.conversion import as_views
from ._findings import ExternalFindings
from ._problems import RARE


def examine_external(
    model: Any, X: Any, y: Any, *, title: str = "External cohort", n_resamples: int = 1000, random_state: int = 0,
    positive: Any = None,
) -> ExternalFindings:  # fmt: skip
    """Evaluate a fitted model on an external cohort, for a report.

    The model is not fitted again. Every measure has a 95% confidence interval; see `evaluate_external`.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor.
    X : Views or what `as_views` reads
        Samples that took no part in the fit.
    y : array-like of shape (n_samples,)
        Their classes or targets. Samples whose target is missing are left out and counted.
    title : str, default="External cohort"
        Title of the cohort.
    n_resamples : int, default=1000
        Number of bootstrap resamples of the samples.
    random_state : int, default=0
        Seed of the resamples.
    positive : object, optional
        The class that ROC curve and calibration are of, if there are two. Default: the second one in sorted order.

    Returns
    -------
    ExternalFindings
        What a report shows; see `write_report`.

    Examples
    --------
    >>> import tempfile
    >>> import consilience as cs
    >>> from consilience.report import examine_external, write_report
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier(alpha=1e-2).fit(X[:300], y[:300])
    >>> findings = examine_external(model, X[300:], y[300:], title="Second half")
    >>> findings.evaluation.measures["AUC"].low > 0.9
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(f"{folder}/external.html", findings)
    ...     "Sensitivity" in file.read_text()
    True
    """
    views = as_views(X)
    cohort = X if isinstance(X, Views) else views
    evaluation = evaluate_external(
        model, cohort, y, n_resamples=n_resamples, random_state=random_state, positive=positive
    )
    return ExternalFindings(title, views, model, evaluation, _limits(model, views, evaluation))


def _limits(model: Any, X: Views, evaluation: Any) -> list[str]:
    """Return sentences about what limits an evaluation."""
    limits = list(evaluation.notes)
    if is_classifier(model):
        rare = [f"{own.label} ({own.n_samples})" for own in evaluation.by_class if own.n_samples < RARE]
        if rare:
            limits.append(f"Fewer than {RARE} samples of {some(rare, 5)}: their sensitivity is hardly known.")
    expected = next((step.view_names_in_ for step in steps_of(model) if hasattr(step, "view_names_in_")), X.names)
    for name in expected:
        missing = len(X) if name not in X.names else int(np.sum(~X.present(name)))
        if missing:
            limits.append(f"{missing:,} of {len(X):,} samples lack the view '{name}'.")
    return limits
