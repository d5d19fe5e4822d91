"""Pictures of what was learned, in the manner of scikit-learn's displays; matplotlib loads as one is drawn."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_validate
from sklearn.utils.validation import check_is_fitted

from ..kernels import kernels_by_view, resolve_kernels
from ..solvers.certificates import MistakeCertificate
from ..views.container import as_views
from .inspection import view_agreement

__all__ = [
    "AgreementDisplay", "GapDisplay", "GramDisplay", "MetricDisplay", "MistakesDisplay", "NystroemCurveDisplay",
    "ViewWeightsDisplay",
]  # fmt: skip

DARK, LIGHT = "#1f4e79", "#c8d8e8"  # told apart in grey, and by all eyes


def _axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need the package matplotlib: pip install 'consilience[plot]'.") from error
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _heat(ax: Any, values: np.ndarray, names: Sequence[str], label: str, **limits: Any) -> Any:
    """A matrix between views: light to dark, with its numbers."""
    image = ax.imshow(values, cmap="Blues", **limits)
    middle = (image.get_clim()[0] + image.get_clim()[1]) / 2
    for v, row in enumerate(values):
        for w, value in enumerate(row):
            if np.isfinite(value):
                ax.text(w, v, f"{value:.2g}", ha="center", va="center", color="white" if value > middle else "black")
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.figure.colorbar(image, ax=ax, label=label)
    return image


def _names(model: Any, n: int) -> tuple[str, ...]:
    """The views that n numbers of a fitted learner are of."""
    return tuple(model.view_names_in_) if len(model.view_names_in_) == n else tuple(model._used_views)


class ViewWeightsDisplay:
    """How much each view counts: the weights of the combination.

    Parameters
    ----------
    names : sequence of str
        The views.
    weights : array of shape (n_views,) or (n_views, n_outputs)
        Their weights.
    name : str, optional
        What is shown, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : list of BarContainer
        The bars, one container per output.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.MultipleKernelRidgeClassifier(alpha=1e-2).fit(X, y)
    >>> display = cs.ViewWeightsDisplay.from_estimator(model)
    >>> len(display.bars_[0])
    3
    """

    def __init__(self, names: Sequence[str], weights: Any, *, name: str | None = None):
        self.names = tuple(names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.name = name

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the weights of a fitted learner.

        Parameters
        ----------
        model : learner
            A fitted learner with ``view_weights_``; of one that learns weights of kernels (``kernel_weights_``) those
            are drawn, for each output that has its own.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ViewWeightsDisplay
            The display.
        """
        check_is_fitted(model)
        if not hasattr(model, "view_weights_"):
            raise TypeError(f"{type(model).__name__} has no `view_weights_`: it has no weights of views to draw.")
        weights = np.asarray(getattr(model, "kernel_weights_", model.view_weights_))
        return cls(_names(model, len(weights)), weights, name=type(model).__name__).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ViewWeightsDisplay
            Itself.
        """
        table = self.weights.reshape(len(self.names), -1)
        self.ax_ = _axes(ax, (6, 1 + 0.45 * len(self.names)))
        self.figure_ = self.ax_.figure
        places, n = np.arange(len(self.names)), table.shape[1]
        shades = [DARK] if n == 1 else [str(shade) for shade in np.linspace(0.2, 0.8, n)]
        self.bars_ = [
            self.ax_.barh(places + 0.8 * (k - (n - 1) / 2) / n, table[:, k], 0.75 / n, color=shade, label=f"output {k}")
            for k, shade in enumerate(shades)
        ]
        self.ax_.set_yticks(places, self.names)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.set(xlabel="weight of the view", title=self.name)
        if n > 1:
            self.ax_.legend()
        return self


class MetricDisplay:
    """A learned metric between views: how much each pair of views counts.

    Parameters
    ----------
    names : sequence of str
        The views.
    norms : array of shape (n_views, n_views)
        Frobenius norms of the blocks of the metric.
    name : str, optional
        What is shown, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : AxesImage
        The heat map.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.ViewMetricRidgeClassifier(alpha=1e-2).fit(X[:200], y[:200])
    >>> cs.MetricDisplay.from_estimator(model).norms.shape
    (3, 3)
    """

    def __init__(self, names: Sequence[str], norms: Any, *, name: str | None = None):
        self.names = tuple(names)
        self.norms = np.asarray(norms, dtype=np.float64)
        self.name = name

    @classmethod
    def from_estimator(cls, model: Any, *, output: int | None = None, ax: Any = None) -> Self:
        """Draw the metric of a fitted learner.

        Parameters
        ----------
        model : learner
            A fitted `ViewMetricRidge` or `ViewMetricRidgeClassifier`.
        output : int, optional
            Of which output; all together by default.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        MetricDisplay
            The display.
        """
        check_is_fitted(model)
        if not hasattr(model, "metric_"):
            raise TypeError(
                f"{type(model).__name__} has no `metric_`: give a fitted ViewMetricRidge or its classifier."
            )
        norms = model.metric_.block_norms(output)
        return cls(_names(model, len(norms)), norms, name=type(model).__name__).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        MetricDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.image_ = _heat(self.ax_, self.norms, self.names, "norm of the block", vmin=0.0)
        self.ax_.set_title(self.name or "")
        return self


class AgreementDisplay:
    """How often each two views of a learner say the same, over samples.

    Parameters
    ----------
    names : sequence of str
        The views.
    shares : array of shape (n_views, n_views)
        The share of samples with both views on which they name one class; for regressors the correlation of their
        answers.
    label : str, default="share of samples with one answer"
        What the numbers are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : AxesImage
        The heat map.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> display = cs.AgreementDisplay.from_estimator(model, X[400:])
    >>> bool((display.shares >= 0).all() and (display.shares <= 1).all())
    True
    """

    def __init__(self, names: Sequence[str], shares: Any, *, label: str = "share of samples with one answer"):
        self.names = tuple(names)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.label = label

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw where the views of a fitted learner agree.

        Parameters
        ----------
        model : learner
            A fitted batch learner with `view_decision_function`.
        X : Views or what `as_views` reads
            Samples.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        AgreementDisplay
            The display.
        """
        found = view_agreement(model, X)
        if "votes" not in found:
            answers = model.view_decision_function(X)
            flat = answers.reshape(*answers.shape[:2], -1)
            m = flat.shape[1]
            shares = np.array([[_correlation(flat[:, v], flat[:, w]) for w in range(m)] for v in range(m)])
            return cls(_names(model, m), shares, label="correlation of answers").plot(ax=ax)
        votes = found.votes
        there = np.array([[vote is not None for vote in row] for row in votes])
        m = votes.shape[1]
        shares = np.full((m, m), np.nan)
        for v in range(m):
            for w in range(m):
                both = there[:, v] & there[:, w]
                if both.any():
                    shares[v, w] = np.mean(votes[both, v] == votes[both, w])
        return cls(_names(model, m), shares).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        AgreementDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        low = min(0.0, float(np.nanmin(self.shares, initial=0.0)))
        self.image_ = _heat(self.ax_, self.shares, self.names, self.label, vmin=low, vmax=1.0)
        return self


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    both = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    a, b = a[both].ravel(), b[both].ravel()
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else float("nan")


class GramDisplay:
    """The Gram matrix of each view, samples sorted by class: squares on the diagonal are classes that the view sees.

    Parameters
    ----------
    grams : dict of array
        A square matrix by view.
    y : array-like of shape (n_samples,), optional
        Classes, to sort by.

    Attributes
    ----------
    axes_ : array of Axes
        One for each view.
    figure_ : Figure
        The figure.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> display = cs.GramDisplay.from_views(X[:100], y[:100])
    >>> len(display.axes_)
    3
    """

    def __init__(self, grams: dict[str, Any], y: Any = None):
        self.grams = {name: np.asarray(K) for name, K in grams.items()}
        self.y = None if y is None else np.asarray(y)

    @classmethod
    def from_views(cls, X: Any, y: Any = None, *, kernel: Any = "rbf") -> Self:
        """Draw the Gram matrices of views.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples, some hundred.
        y : array-like of shape (n_samples,), optional
            Classes, to sort by.
        kernel : Kernel, str, callable or dict, default="rbf"
            Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf".

        Returns
        -------
        GramDisplay
            The display.
        """
        X = as_views(X)
        chosen = resolve_kernels(kernels_by_view(kernel, X.names), X)
        grams = {}
        for name, one in chosen.items():
            there = np.flatnonzero(X.present(name))
            K = np.full((len(X), len(X)), np.nan)
            K[np.ix_(there, there)] = one(X[there].block(name))
            grams[name] = K
        return cls(grams, y).plot()

    def plot(self) -> Self:
        """Draw.

        Returns
        -------
        GramDisplay
            Itself.
        """
        _axes(object())  # says so if matplotlib is missing
        import matplotlib.pyplot as plt

        m = len(self.grams)
        self.figure_, axes = plt.subplots(1, m, figsize=(3.2 * m, 3.4), layout="constrained", squeeze=False)
        self.axes_ = axes[0]
        n = len(next(iter(self.grams.values())))
        order = np.arange(n) if self.y is None else np.argsort(self.y.astype(str), kind="stable")
        kinds = np.zeros(n) if self.y is None else self.y[order]
        borders = np.flatnonzero(kinds[1:] != kinds[:-1]) + 0.5
        for ax, (name, K) in zip(self.axes_, self.grams.items(), strict=True):
            ax.imshow(K[np.ix_(order, order)], cmap="Greys")
            for border in borders:
                ax.axhline(border, color="#b35900", linewidth=0.8)
                ax.axvline(border, color="#b35900", linewidth=0.8)
            ax.set(title=name, xticks=[], yticks=[])
        return self


class GapDisplay:
    """How the duality gap falls as a solver goes on.

    Parameters
    ----------
    iterations : array-like
        Iterations used.
    gaps : array-like
        The gap after each, over the objective; at most how far the objective is from its optimum.
    tol : float, optional
        The tolerance asked for.
    name : str, optional
        What the curve is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : Line2D
        The curve.

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
        """Fit with more and more iterations, and draw the gap of each fit.

        Parameters
        ----------
        model : learner
            A batch learner with `max_iter` and a certificate with a gap.
        X, y : Views and array-like
            Samples.
        iterations : sequence of int
            Values of `max_iter`.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        GapDisplay
            The display.
        """
        if "max_iter" not in model.get_params():
            raise TypeError(f"{type(model).__name__} has no `max_iter`: it does not iterate.")
        used, gaps = [], []
        for most in iterations:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = clone(model).set_params(max_iter=most).fit(X, y)
            proof = fitted.certificate()
            if proof.gap is None or proof.objective is None:
                raise TypeError(f"{type(model).__name__} has no duality gap to draw.")
            used.append(most)
            gaps.append(proof.gap / max(abs(proof.objective), 1e-300))
            if fitted.solution_.status in ("converged", "exact"):
                break
        tol = model.get_params().get("tol")
        return cls(used, gaps, tol=tol, name=type(model).__name__).plot(ax=ax)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        GapDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        shown = np.maximum(self.gaps, 1e-16)
        (self.line_,) = self.ax_.plot(
            self.iterations, shown, **{"marker": "o", "color": DARK, "label": self.name, **line}
        )
        if self.tol is not None:
            self.ax_.axhline(self.tol, linestyle="--", color="0.4", label=f"tolerance {self.tol:g}")
        self.ax_.set(xlabel="iterations at most", ylabel="gap / objective", xscale="log", yscale="log")
        if len(self.iterations) <= 12:  # plain numbers, where they fit
            self.ax_.set_xticks(self.iterations, [f"{k:,.0f}" for k in self.iterations])
            self.ax_.set_xticks([], minor=True)
        self.ax_.legend()
        return self


class NystroemCurveDisplay:
    """What Nyström features cost and lose: held-out score and seconds by their number.

    Parameters
    ----------
    n_components : array-like
        Numbers of features per view.
    scores : array of shape (n, n_folds)
        Held-out scores.
    seconds : array-like
        Time of a fit.
    exact : float, optional
        The score without features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : Line2D
        The curve of scores.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier()
    >>> display = cs.NystroemCurveDisplay.from_estimator(model, X, y, n_components=(5, 50), cv=3)
    >>> display.scores.shape
    (2, 3)
    """

    def __init__(self, n_components: Any, scores: Any, seconds: Any, *, exact: float | None = None):
        self.n_components = np.asarray(n_components)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.seconds = np.asarray(seconds, dtype=np.float64)
        self.exact = exact

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, n_components: Sequence[int] = (10, 20, 50, 100, 200), cv: Any = 5,
        scoring: Any = None, exact: bool = False, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Cross-validate with more and more features, and draw scores and seconds.

        Parameters
        ----------
        model : learner
            A learner with `n_components`.
        X, y : Views and array-like
            Samples.
        n_components : sequence of int
            Numbers of features per view.
        cv : int or splitter, default=5
            Folds.
        scoring : str or callable, optional
            A scorer of scikit-learn.
        exact : bool, default=False
            Whether to fit without features too, for a line to compare with.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        NystroemCurveDisplay
            The display.
        """
        if "n_components" not in model.get_params():
            raise TypeError(f"{type(model).__name__} has no `n_components`: it has no Nyström features.")
        scores, seconds = [], []
        for count in n_components:
            found = cross_validate(clone(model).set_params(n_components=count), X, y, cv=cv, scoring=scoring)
            scores.append(found["test_score"])
            seconds.append(float(np.mean(found["fit_time"])))
        whole = None
        if exact:
            found = cross_validate(clone(model).set_params(n_components=None), X, y, cv=cv, scoring=scoring)
            whole = float(np.mean(found["test_score"]))
        return cls(n_components, scores, seconds, exact=whole).plot(ax=ax)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **line : dict
            Given to ``ax.errorbar``.

        Returns
        -------
        NystroemCurveDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        given = {"marker": "o", "color": DARK, "capsize": 3, "label": "held-out score", **line}
        mean, spread = self.scores.mean(axis=1), self.scores.std(axis=1)
        self.line_ = self.ax_.errorbar(self.n_components, mean, yerr=spread, **given)[0]
        if self.exact is not None:
            self.ax_.axhline(self.exact, linestyle="--", color="0.4", label="without features")
        self.ax_.set(xlabel="features per view", ylabel="held-out score", xscale="log")
        times = self.ax_.twinx()
        times.plot(
            self.n_components, self.seconds, color="#b35900", linestyle=":", marker="s", label="seconds of a fit"
        )
        times.set(ylabel="seconds of a fit", ylim=(0, None))
        handles = [*self.ax_.get_legend_handles_labels()[0], *times.get_legend_handles_labels()[0]]
        self.ax_.legend(handles=handles, loc="lower right")
        return self


class MistakesDisplay:
    """The error of an online learner along its stream, and the mistake bound.

    Parameters
    ----------
    curve : array of shape (n, 2)
        Samples seen and the share of mistakes so far.
    bound : float, optional
        The most mistakes there can be on the whole stream.
    name : str, optional
        What the curve is called.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=300, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron().partial_fit(X, y)
    >>> display = cs.MistakesDisplay.from_estimator(model, X, y)
    >>> bool(display.bound >= model.n_mistakes_)
    True
    """

    def __init__(self, curve: Any, *, bound: float | None = None, name: str | None = None):
        self.curve = np.asarray(curve, dtype=np.float64)
        self.bound = bound
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None, **line: Any
    ) -> Self:
        """Draw the error curve of an online learner.

        Parameters
        ----------
        model : online learner
            A learner that has seen samples.
        X, y : Views and array-like, optional
            The samples learned; with them the mistake bound is drawn.
        ax : matplotlib Axes, optional
            Where to draw.
        name : str, optional
            What the curve is called; the learner's class by default.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            The display.
        """
        proof = None if X is None else model.certificate(X, y)
        bound = proof.bound if isinstance(proof, MistakeCertificate) else None  # others bound updates
        return cls(model.error_curve_, bound=bound, name=name or type(model).__name__).plot(ax=ax, **line)

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, name: str | None = None, **line: Any) -> Self:
        """Draw what `progressive_validation` found.

        Parameters
        ----------
        result : ProgressiveResult
            The result.
        ax : matplotlib Axes, optional
            Where to draw.
        name : str, optional
            What the curve is called.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            The display.
        """
        return cls(result.curve, name=name).plot(ax=ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        seen, error = self.curve.T
        (self.line_,) = self.ax_.plot(seen, error, **{"label": self.name, **line})
        if self.bound is not None and len(seen):
            share = np.minimum(self.bound / seen, 1.0)
            self.ax_.plot(
                seen, share, linestyle="--", color=self.line_.get_color(), label=f"bound {self.bound:.0f} mistakes"
            )
        self.ax_.set(xlabel="samples seen", ylabel="share of mistakes so far", xscale="log", ylim=(0, None))
        if self.name or self.bound is not None:
            self.ax_.legend()
        return self
