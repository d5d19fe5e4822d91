"""Displays of views: weights, learned metrics, agreement and Gram matrices, in the manner of scikit-learn."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._backend import check_memory
from ..kernels import kernels_by_view, resolve_kernels
from ..views._docs import shared_docs
from ..views._notebook import labeled_weights
from ..views._samples import in_order_of
from ..views.conversion import as_views
from ._drawing import BLUE, GRAY, ORANGE, Display, draw_matrix, load_pyplot
from ._wrappers import final_estimator, fitted_final
from .importances import FeatureImportances, feature_importances
from .inspection import names_of_values, view_agreement, view_outputs

__all__ = ["AgreementDisplay", "FeatureImportancesDisplay", "GramDisplay", "MetricDisplay", "ViewWeightsDisplay"]


@shared_docs
class ViewWeightsDisplay(Display):
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
    {ax_}
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
            A fitted estimator with ``view_weights_``, or a pipeline, search or other wrapper around one. If it has
            learned weights of kernels (``kernel_weights_``), the display shows those, for each output that has its own.
            Of a consensus it shows the shares of the views.
        {ax}

        {returns_display}
        """
        final = fitted_final(
            model, "view_weights_", "Give an estimator that weights its views, alone or in a pipeline."
        )
        several = labeled_weights(final)
        if several is None:
            weights = np.asarray(vars(final).get("_kernel_weights", final.view_weights_))
            several = names_of_values(final, len(weights)), weights
        return cls(*several, name=type(final).__name__).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 6, 1 + 0.45 * len(self.names)

    def _draw(self) -> None:
        table = self.weights.reshape(len(self.names), -1)
        places, n = np.arange(len(self.names)), table.shape[1]
        shades = [BLUE] if n == 1 else [str(shade) for shade in np.linspace(0.2, 0.8, n)]  # gray levels, as text
        self.bars_ = [
            self.ax_.barh(places + 0.8 * (k - (n - 1) / 2) / n, table[:, k], 0.75 / n, color=shade, label=f"output {k}")
            for k, shade in enumerate(shades)
        ]
        self.ax_.set_yticks(places, self.names)
        self.ax_.invert_yaxis()  # the first view on top
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.set(xlabel="weight", title=self.name)
        if n > 1:
            self.ax_.legend()


@shared_docs
class MetricDisplay(Display):
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
    {ax_}
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
            A fitted `ViewMetricRidge` or `ViewMetricRidgeClassifier` with a learned metric, or a pipeline, search or
            other wrapper around one.
        output : int, optional
            Output whose metric is drawn. Default: the norm over the metrics of all outputs.
        {ax}

        {returns_display}
        """
        final = fitted_final(
            model, "metric_", "Give a fitted ViewMetricRidge or its classifier, alone or in a pipeline."
        )
        if final.metric_ is None:
            raise TypeError(
                f"{type(final).__name__} has a fixed metric, metric={final.metric!r}, and no learned one to draw. "
                "Fit it with metric='learned' or metric='block_sparse'."
            )
        norms = final.metric_.block_norms(output)
        return cls(names_of_values(final, len(norms)), norms, name=type(final).__name__).plot(ax=ax)

    def _draw(self) -> None:
        self.image_ = draw_matrix(self.ax_, self.norms, self.names, "norm of the block", vmin=0.0)
        self.ax_.set_title(self.name or "")


@shared_docs
class AgreementDisplay(Display):
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
    {ax_}
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
            A fitted batch estimator with `view_decision_function`, or a pipeline, search or other wrapper around one.
        X : Views or what `as_views` reads
            Samples to predict.
        {ax}

        {returns_display}
        """
        agreement = view_agreement(model, X)
        if "votes" in agreement:
            votes, similarity, label = agreement.votes, _share_of_equal, "share of equal predictions"
        else:
            votes, similarity, label = view_outputs(model, X)[0], _correlation, "correlation of predictions"
        m = votes.shape[1]
        shares = np.array([[similarity(votes[:, v], votes[:, w]) for w in range(m)] for v in range(m)])
        return cls(names_of_values(final_estimator(model), m), shares, label=label).plot(ax=ax)

    def _draw(self) -> None:
        low = min(0.0, float(np.nanmin(self.shares, initial=0.0)))
        self.image_ = draw_matrix(self.ax_, self.shares, self.names, self.label, vmin=low, vmax=1.0)


def _share_of_equal(a: np.ndarray, b: np.ndarray) -> float:
    both = np.array([one is not None and other is not None for one, other in zip(a, b, strict=True)])
    return float(np.mean(a[both] == b[both])) if both.any() else float("nan")


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    both = ~(np.isnan(a) | np.isnan(b))  # all outputs of a missing view are NaN
    a, b = a[both], b[both]
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else float("nan")


@shared_docs
class FeatureImportancesDisplay(Display):
    """Bar chart of the most important columns of the views.

    Bars of coefficients show their sign if the model has one output. Bars of permutation have an error bar of one
    standard error to each side. The views differ in shade and hatching.

    Parameters
    ----------
    importances : FeatureImportances
        What `feature_importances` returns.
    max_rows : int, default=20
        Largest number of columns or groups to show.

    Attributes
    ----------
    {ax_}
    bars_ : list of BarContainer
        Bars, one container per view.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> display = cs.FeatureImportancesDisplay.from_estimator(model, X[400:], y[400:], view="worst", max_rows=5)
    >>> len(display.bars_[0])
    5
    """

    def __init__(self, importances: FeatureImportances, *, max_rows: int = 20):
        self.importances = importances
        self.max_rows = max_rows

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, max_rows: int = 20, ax: Any = None, **options: Any
    ) -> Self:
        """Compute and draw the importances of the columns of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted estimator of views, or a pipeline, search or other wrapper around one.
        X : Views or what `as_views` reads
            Samples that were not used to fit it.
        y : array-like of shape (n_samples,), optional
            Their classes or targets; needed unless the model is linear.
        max_rows : int, default=20
            Largest number of columns or groups to show.
        {ax}
        **options : dict
            Arguments of `feature_importances`, such as `view`, `groups` and `scoring`.

        {returns_display}
        """
        return cls(feature_importances(model, X, y, **options), max_rows=max_rows).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 6, 1.2 + 0.25 * min(len(self.importances), self.max_rows)

    def _draw(self) -> None:
        found, n = self.importances, min(len(self.importances), self.max_rows)
        values = found.importances[:n].copy()
        if (
            found.coefficients is not None and found.coefficients.shape[1] == 1
        ):  # groups of columns have a size, but no sign
            signs = np.sign(np.nan_to_num(found.coefficients[:n, 0], nan=1.0))
            values *= np.where(signs == 0, 1.0, signs)
        views = list(dict.fromkeys(found.views[:n]))
        self.bars_ = []
        for view, color, hatch in zip(views, _cycled((BLUE, ORANGE, GRAY), len(views)), _hatches(views), strict=True):
            rows = np.array([k for k in range(n) if found.views[k] == view], dtype=int)
            errors = None if found.standard_errors is None else np.nan_to_num(found.standard_errors[rows])
            look = {"color": color, "hatch": hatch, "edgecolor": "white", "ecolor": "black"}
            self.bars_.append(self.ax_.barh(rows, values[rows], xerr=errors, label=view, **look))
        self.ax_.set_yticks(range(n), found.names[:n])
        self.ax_.invert_yaxis()  # the most important on top
        self.ax_.axvline(0, color="black", linewidth=0.8)
        unit = "change by one standard deviation" if found.coefficients is not None else "loss of score when shuffled"
        self.ax_.set(xlabel=unit)
        if len(views) > 1:
            self.ax_.legend(title="view")


def _cycled(values: Sequence[str], n: int) -> list[str]:
    return [values[k % len(values)] for k in range(n)]


def _hatches(views: Sequence[str]) -> list[str]:
    """Return a hatching for each view, so that colors that repeat can be told apart."""
    return [("", "//", "xx", "..")[k // 3 % 4] for k in range(len(views))]


@shared_docs
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
            Classes to sort by. A pandas Series is matched by the names of the samples.
        kernel : Kernel, str, callable or dict, default="rbf"
            Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf".

        {returns_display}
        """
        X = as_views(X)
        what = f"GramDisplay of {len(X):,} samples, {len(X.names)} views"
        check_memory(8.0 * (len(X.names) + 1) * len(X) ** 2, what, "Give fewer samples, such as X[::10] and y[::10].")
        chosen = resolve_kernels(kernels_by_view(kernel, X.names), X)
        grams = {}
        for name, one in chosen.items():
            rows = np.flatnonzero(X.present(name))
            K = np.full((len(X), len(X)), np.nan)  # white where the view is missing
            K[np.ix_(rows, rows)] = one(X[rows].block(name))
            grams[name] = K
        return cls(grams, in_order_of(X, y, "y")).plot()

    def plot(self) -> Self:
        """Draw the display.

        {returns_display}
        """
        m = len(self.grams)
        self.figure_, axes = load_pyplot().subplots(1, m, figsize=(3.2 * m, 3.4), layout="constrained", squeeze=False)
        self.axes_ = axes[0]
        n = len(next(iter(self.grams.values())))
        # text also orders labels of mixed types
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
