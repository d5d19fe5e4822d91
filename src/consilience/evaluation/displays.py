"""Displays of views: weights, learned metrics, agreement and Gram matrices, in the manner of scikit-learn."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..kernels import kernels_by_view, resolve_kernels
from ..views.container import as_views
from ._drawing import BLUE, ORANGE, axes_or_new, draw_matrix, load_pyplot, names_of_values
from .inspection import view_agreement

__all__ = ["AgreementDisplay", "GramDisplay", "MetricDisplay", "ViewWeightsDisplay"]


class ViewWeightsDisplay:
    """Bar chart of the weights of the views.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    weights : array of shape (n_views,) or (n_views, n_outputs)
        Weights of the views, for all outputs or for each.
    name : str, optional
        Title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure that hold the drawing.
    bars_ : list of BarContainer
        Bars, one container per output.

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
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        model : estimator
            A fitted estimator with ``view_weights_``. If it has learned weights of kernels (``kernel_weights_``), the
            display shows those, for each output that has its own.
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        ViewWeightsDisplay
            The display.
        """
        check_is_fitted(model)
        if not hasattr(model, "view_weights_"):
            raise TypeError(
                f"{type(model).__name__} has no `view_weights_` to draw. Give an estimator that weights its views."
            )
        weights = np.asarray(getattr(model, "kernel_weights_", model.view_weights_))
        return cls(names_of_values(model, len(weights)), weights, name=type(model).__name__).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        ViewWeightsDisplay
            The display.
        """
        table = self.weights.reshape(len(self.names), -1)
        self.ax_ = axes_or_new(ax, (6, 1 + 0.45 * len(self.names)))
        self.figure_ = self.ax_.figure
        places, n = np.arange(len(self.names)), table.shape[1]
        shades = [BLUE] if n == 1 else [str(shade) for shade in np.linspace(0.2, 0.8, n)]
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
    """Heat map of a learned metric between views: the norm of each block.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    norms : array of shape (n_views, n_views)
        Frobenius norms of the blocks of the metric.
    name : str, optional
        Title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure that hold the drawing.
    image_ : AxesImage
        Heat map.

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
        """Draw the learned metric of a fitted estimator.

        Parameters
        ----------
        model : estimator
            A fitted `ViewMetricRidge` or `ViewMetricRidgeClassifier` with a learned metric.
        output : int, optional
            Output whose metric is drawn. Default: the norm over the metrics of all outputs.
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        MetricDisplay
            The display.
        """
        check_is_fitted(model)
        if not hasattr(model, "metric_"):
            raise TypeError(
                f"{type(model).__name__} has no `metric_` to draw. Give a fitted ViewMetricRidge or its classifier."
            )
        if model.metric_ is None:
            raise TypeError(
                f"{type(model).__name__} has a fixed metric, metric={model.metric!r}, and no learned one to draw. "
                "Fit it with metric='learned' or metric='block_sparse'."
            )
        norms = model.metric_.block_norms(output)
        return cls(names_of_values(model, len(norms)), norms, name=type(model).__name__).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        MetricDisplay
            The display.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self.image_ = draw_matrix(self.ax_, self.norms, self.names, "norm of the block", vmin=0.0)
        self.ax_.set_title(self.name or "")
        return self


class AgreementDisplay:
    """Heat map of how often each two views predict the same.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    shares : array of shape (n_views, n_views)
        For classifiers, the share of samples with both views on which both predict the same class. For regressors, the
        correlation of the predictions.
    label : str, default="share of equal predictions"
        Label of the color bar.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure that hold the drawing.
    image_ : AxesImage
        Heat map.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> display = cs.AgreementDisplay.from_estimator(model, X[400:])
    >>> bool((display.shares >= 0).all() and (display.shares <= 1).all())
    True
    """

    def __init__(self, names: Sequence[str], shares: Any, *, label: str = "share of equal predictions"):
        self.names = tuple(names)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.label = label

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw how often the views of a fitted estimator agree.

        Parameters
        ----------
        model : estimator
            A fitted batch estimator with `view_decision_function`.
        X : Views or what `as_views` reads
            Samples to predict.
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        AgreementDisplay
            The display.
        """
        agreement = view_agreement(model, X)
        if "votes" not in agreement:
            predictions = model.view_decision_function(X)
            flat = predictions.reshape(*predictions.shape[:2], -1)
            m = flat.shape[1]
            shares = np.array([[_correlation(flat[:, v], flat[:, w]) for w in range(m)] for v in range(m)])
            return cls(names_of_values(model, m), shares, label="correlation of predictions").plot(ax=ax)
        votes = agreement.votes
        present = np.array([[vote is not None for vote in row] for row in votes])
        m = votes.shape[1]
        shares = np.full((m, m), np.nan)
        for v in range(m):
            for w in range(m):
                both = present[:, v] & present[:, w]
                if both.any():
                    shares[v, w] = np.mean(votes[both, v] == votes[both, w])
        return cls(names_of_values(model, m), shares).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        AgreementDisplay
            The display.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        low = min(0.0, float(np.nanmin(self.shares, initial=0.0)))
        self.image_ = draw_matrix(self.ax_, self.shares, self.names, self.label, vmin=low, vmax=1.0)
        return self


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    both = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    a, b = a[both].ravel(), b[both].ravel()
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else float("nan")


class GramDisplay:
    """Gram matrix of each view, with the samples sorted by class.

    Dark squares on the diagonal are classes that the view separates from the others.

    Parameters
    ----------
    grams : dict of array
        Square matrices by view.
    y : array-like of shape (n_samples,), optional
        Classes to sort by.

    Attributes
    ----------
    axes_ : array of Axes
        Axes of each view.
    figure_ : Figure
        Figure that holds them.

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
            Samples, a few hundred at most.
        y : array-like of shape (n_samples,), optional
            Classes to sort by.
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
            rows = np.flatnonzero(X.present(name))
            K = np.full((len(X), len(X)), np.nan)
            K[np.ix_(rows, rows)] = one(X[rows].block(name))
            grams[name] = K
        return cls(grams, y).plot()

    def plot(self) -> Self:
        """Draw the display.

        Returns
        -------
        GramDisplay
            The display.
        """
        m = len(self.grams)
        self.figure_, axes = load_pyplot().subplots(1, m, figsize=(3.2 * m, 3.4), layout="constrained", squeeze=False)
        self.axes_ = axes[0]
        n = len(next(iter(self.grams.values())))
        order = np.arange(n) if self.y is None else np.argsort(self.y.astype(str), kind="stable")
        classes = np.zeros(n) if self.y is None else self.y[order]
        borders = np.flatnonzero(classes[1:] != classes[:-1]) + 0.5
        for ax, (name, K) in zip(self.axes_, self.grams.items(), strict=True):
            ax.imshow(K[np.ix_(order, order)], cmap="Greys")
            for border in borders:
                ax.axhline(border, color=ORANGE, linewidth=0.8)
                ax.axvline(border, color=ORANGE, linewidth=0.8)
            ax.set(title=name, xticks=[], yticks=[])
        return self
