"""Displays of curves: the gap of a solver, the cost of Nyström features, the mistakes of an online estimator."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_validate

from ..solvers.certificates import MistakeCertificate
from ..views._annotated import kind_of
from ..views._docs import shared_docs
from ..views._samples import in_order_of
from ..views.conversion import as_views
from ._drawing import BLUE, GRAY, ORANGE, CurveDisplay
from ._wrappers import final_estimator, fitted_final, parameter_of_final, to_fit_again
from .inspection import certificate

__all__ = ["GapDisplay", "MistakesDisplay", "NystroemCurveDisplay"]


@shared_docs
class GapDisplay(CurveDisplay):
    """Curve of the duality gap against the number of iterations.

    Parameters
    ----------
    iterations : array-like
        Values of `max_iter`.
    gaps : array-like
        Gap of each fit divided by its objective, an upper bound on the relative distance from the optimum.
    tol : float, optional
        Tolerance of the solver, drawn as a line.
    name : str, optional
        Label of the curve.

    Attributes
    ----------
    {ax_}
    line_ : Line2D
        Curve of the gaps.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> display = cs.GapDisplay.from_estimator(cs.MaxMarginClassifier("rbf", tol=1e-6), X, y, iterations=(1, 10, 100))
    >>> bool(display.gaps[-1] <= display.gaps[0])
    True
    """

    def __init__(self, iterations: Any, gaps: Any, *, tol: float | None = None, name: str | None = None):
        self.iterations = np.asarray(iterations)
        self.gaps = np.asarray(gaps, dtype=np.float64)
        self.tol = tol
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        iterations: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 200, 500),
        ax: Any = None,
    ) -> Self:
        """Fit with increasing numbers of iterations, and draw the gap of each fit.

        Parameters
        ----------
        model : estimator
            A batch estimator with `max_iter` and a certificate with a gap, or a pipeline that ends with one. Of a
            fitted search, the best estimator.
        X : Views or what `as_views` reads
            Training samples.
        y : array-like of shape (n_samples,)
            Their targets. A pandas Series is matched by the names of the samples.
        iterations : sequence of int
            Values of `max_iter`. The last is the first with which the solver converges.
        {ax}

        {returns_display}
        """
        model = to_fit_again(model)
        max_iter = parameter_of_final(model, "max_iter", "Give an estimator with an iterative solver.")
        final = final_estimator(model)
        X, y = _in_one_order(X, y)
        used, gaps = [], []
        for most in iterations:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the purpose here
                fitted = clone(model).set_params(**{max_iter: most}).fit(X, y)
            proof = certificate(fitted)
            if proof.gap is None or proof.objective is None:
                raise TypeError(f"The certificate of {type(final).__name__} has no duality gap to draw.")
            used.append(most)
            gaps.append(proof.gap / max(abs(proof.objective), 1e-300))  # an objective may be 0
            if proof.status in ("converged", "exact"):
                break
        return cls(used, gaps, tol=final.get_params().get("tol"), name=type(final).__name__).plot(ax=ax)

    def _draw(self, **line: Any) -> None:
        shown = np.maximum(self.gaps, 1e-16)  # a logarithmic axis has no 0
        (self.line_,) = self.ax_.plot(
            self.iterations, shown, **{"marker": "o", "color": BLUE, "label": self.name, **line}
        )
        if self.tol is not None:
            self.ax_.axhline(self.tol, linestyle="--", color=GRAY, label=f"tolerance {self.tol:g}")
        self.ax_.set(xlabel="maximum number of iterations", ylabel="gap / objective", xscale="log", yscale="log")
        if len(self.iterations) <= 12:  # a label for each point fits
            self.ax_.set_xticks(self.iterations, [f"{k:,.0f}" for k in self.iterations])
            self.ax_.set_xticks([], minor=True)
        self.ax_.legend()


@shared_docs
class NystroemCurveDisplay(CurveDisplay):
    """Curves of the held-out score and the fit time against the number of Nyström features.

    Parameters
    ----------
    n_components : array-like
        Numbers of features of each view.
    scores : array of shape (n, n_folds)
        Held-out scores of each fold.
    fit_times : array-like
        Mean time of a fit in seconds.
    exact : float, optional
        Score with exact kernels, drawn as a line.

    Attributes
    ----------
    {ax_}
    line_ : Line2D
        Curve of the scores.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier()
    >>> display = cs.NystroemCurveDisplay.from_estimator(model, X, y, n_components=(5, 50), cv=3)
    >>> display.scores.shape
    (2, 3)
    """

    def __init__(self, n_components: Any, scores: Any, fit_times: Any, *, exact: float | None = None):
        self.n_components = np.asarray(n_components)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.fit_times = np.asarray(fit_times, dtype=np.float64)
        self.exact = exact

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, n_components: Sequence[int] = (10, 20, 50, 100, 200), cv: Any = 5,
        scoring: Any = None, exact: bool = False, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Cross-validate with increasing numbers of features, and draw scores and fit times.

        Parameters
        ----------
        model : estimator
            An estimator with `n_components`, or a pipeline that ends with one. Of a fitted search, the best estimator.
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,)
            Their targets. A pandas Series is matched by the names of the samples.
        n_components : sequence of int
            Numbers of features of each view.
        cv : int or splitter, default=5
            Folds of the cross-validation.
        scoring : str or callable, optional
            Scorer of scikit-learn. Default: the `score` of the estimator.
        exact : bool, default=False
            Whether to fit with exact kernels too, and draw their score as a line.
        {ax}

        {returns_display}
        """
        model = to_fit_again(model)
        parameter = parameter_of_final(model, "n_components", "Give an estimator with Nyström features.")
        X, y = _in_one_order(X, y)
        results = [
            cross_validate(clone(model).set_params(**{parameter: count}), X, y, cv=cv, scoring=scoring)
            for count in (*n_components, *([None] if exact else []))  # without a number, kernels are exact
        ]
        exact_score = float(np.mean(results.pop()["test_score"])) if exact else None
        scores = [result["test_score"] for result in results]
        fit_times = [np.mean(result["fit_time"]) for result in results]
        return cls(n_components, scores, fit_times, exact=exact_score).plot(ax=ax)

    def _draw(self, **line: Any) -> None:
        given = {"marker": "o", "color": BLUE, "capsize": 3, "label": "held-out score", **line}
        mean, spread = self.scores.mean(axis=1), self.scores.std(axis=1)
        self.line_ = self.ax_.errorbar(self.n_components, mean, yerr=spread, **given)[0]
        if self.exact is not None:
            self.ax_.axhline(self.exact, linestyle="--", color=GRAY, label="exact kernels")
        self.ax_.set(xlabel="features of each view", ylabel="held-out score", xscale="log")
        times = self.ax_.twinx()  # its legend would cover the first one, so both are one legend
        times.plot(self.n_components, self.fit_times, color=ORANGE, linestyle=":", marker="s", label="fit time")
        times.set(ylabel="fit time in seconds", ylim=(0, None))
        handles = [*self.ax_.get_legend_handles_labels()[0], *times.get_legend_handles_labels()[0]]
        self.ax_.legend(handles=handles, loc="lower right")


def _in_one_order(X: Any, y: Any) -> tuple[Any, Any]:
    """Return samples that scikit-learn can split, and targets in the order of their names."""
    if not hasattr(X, "shape") or kind_of(X) is not None:  # a dict or list of views, AnnData, MuData
        X = as_views(X)
    return X, in_order_of(X, y, "y")


@shared_docs
class MistakesDisplay(CurveDisplay):
    """Curve of the error of an online estimator along its stream, with the mistake bound, a baseline and drifts.

    Parameters
    ----------
    curve : array of shape (n, 2)
        Samples seen, and the share of mistakes so far; for regression, the mean absolute error.
    bound : float, optional
        Upper bound on the number of mistakes on the whole stream.
    name : str, optional
        Label of the curve.
    baseline : array of shape (n, 2), optional
        Curve of a baseline.
    drifts : sequence of int, default=()
        Numbers of samples at which drift was found, drawn as vertical lines.

    Attributes
    ----------
    {ax_}
    line_ : Line2D
        Curve of the shares.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=300, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron().partial_fit(X, y)
    >>> display = cs.MistakesDisplay.from_estimator(model, X, y)
    >>> bool(display.bound >= model.n_mistakes_)
    True
    """

    def __init__(
        self,
        curve: Any,
        *,
        bound: float | None = None,
        name: str | None = None,
        baseline: Any = None,
        drifts: Sequence[int] = (),
    ):
        self.curve = np.asarray(curve, dtype=np.float64)
        self.bound = bound
        self.name = name
        self.baseline = None if baseline is None else np.asarray(baseline, dtype=np.float64)
        self.drifts = drifts

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None, **line: Any
    ) -> Self:
        """Draw the error curve of an online estimator.

        Parameters
        ----------
        model : online estimator
            An online estimator that has seen samples, or a fitted pipeline, search or other wrapper around one.
        X : Views or what `as_views` reads, optional
            The samples that it has learned from, as they were given to `model`. If given, the mistake bound is drawn.
        y : array-like of shape (n_samples,), optional
            Their classes. A pandas Series is matched by the names of the samples.
        {ax}
        name : str, optional
            Label of the curve. Default: the class of the estimator.
        **line : dict
            Arguments for ``ax.plot``.

        {returns_display}
        """
        final = fitted_final(model, "error_curve_", "Give an online estimator, alone or in a pipeline.")
        proof = None if X is None else certificate(model, X, y)
        # other certificates bound the number of updates, not of mistakes
        bound = proof.bound if isinstance(proof, MistakeCertificate) else None
        return cls(final.error_curve_, bound=bound, name=name or type(final).__name__).plot(ax=ax, **line)

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, name: str | None = None, **line: Any) -> Self:
        """Draw the result of `progressive_validation`, with its baseline and its drifts.

        Parameters
        ----------
        result : ProgressiveResult
            The result.
        {ax}
        name : str, optional
            Label of the curve.
        **line : dict
            Arguments for ``ax.plot``.

        {returns_display}
        """
        drifts = [event.sample for event in result.drifts]
        return cls(result.curve, name=name, baseline=result.baseline_curve, drifts=drifts).plot(ax=ax, **line)

    def _draw(self, **line: Any) -> None:
        seen, error = self.curve.T
        (self.line_,) = self.ax_.plot(seen, error, **{"label": self.name, **line})
        if self.baseline is not None and len(self.baseline):
            self.ax_.plot(*self.baseline.T, linestyle=":", color=GRAY, label="baseline")
        for place in self.drifts:
            self.ax_.axvline(place, linestyle="-.", color=ORANGE, linewidth=1)
        if self.bound is not None and len(seen):
            share = np.minimum(self.bound / seen, 1.0)  # the bound is on a number of mistakes
            self.ax_.plot(
                seen, share, linestyle="--", color=self.line_.get_color(), label=f"bound: {self.bound:.0f} mistakes"
            )
        self.ax_.set(xlabel="samples seen", ylabel="share of mistakes so far", xscale="log", ylim=(0, None))
        if self.name or self.bound is not None or self.baseline is not None:
            self.ax_.legend()
