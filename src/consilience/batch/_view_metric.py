"""A learned metric in factors, and the space that it defines."""

from typing import Any

import numpy as np

from .._backend import check_memory, like, namespace, to_numpy
from ..kernels import view_grams
from ..kernels.by_view import kernel_terms, views_of_terms
from ..views.container import Views
from ..views.estimator import ViewEstimator
from ..views.validation import read_views_to_predict
from ._fit import dense_block
from ._memory import row_parts
from ._terms import terms_of

__all__ = ["ViewMetric"]


class ViewMetric:
    """A metric A = FF' within and between views, as metric learning finds it: in factors, never as one big matrix.

    The kernel between view v of x and view w of z is k_v(x)'A_vw k_w(z) = <F_v'k_v(x), F_w'k_w(z)>. So F_v'k_v(x) are
    the coordinates of x in the space of the metric (Huusari, Kadri and Capponi 2018). There is one metric for each
    output, of rank one if it is exact, or one for all outputs (``shared``).

    Fixed steps of the published scheme may end at a metric that is not positive semi-definite. It is A = F diag(s) F'
    with `signs` s of ±1, is not a kernel, and has no `transform`.

    Estimators create it; see `ViewMetricRidge`.

    Attributes
    ----------
    names : tuple of str
        Views; where a view has several kernels, ``"view: kernel"`` for each.
    shared : bool
        Whether there is one metric for all outputs.
    factors : list of dict of array of shape (n_v, rank)
        F_v by view, for each output, or one for all. With exact kernels the rows are the samples at ``support_`` of the
        estimator, 0 where the view is missing; with `n_components` they are the features.
    signs : list of array of shape (rank,) or None, or None
        s for each metric, None for a positive semi-definite one; None if all are.

    Examples
    --------
    >>> from consilience import ViewMetricRidgeClassifier
    >>> from consilience.datasets import make_sheared_views
    >>> X, y = make_sheared_views(n_samples=60, random_state=0)
    >>> metric = ViewMetricRidgeClassifier("linear").fit(X, y).metric_
    >>> metric.rank, metric.toarray().shape, metric.block_norms().round(3).shape
    (1, (120, 120), (2, 2))
    >>> metric.transform(X)
    Views of 60 samples
      view0  dense float64  1 column
      view1  dense float64  1 column
    """

    names: tuple[str, ...]
    shared: bool
    factors: list[dict[str, np.ndarray]]
    signs: list[np.ndarray | None] | None = None
    _space: "MetricSpace"

    @classmethod
    def _of(
        cls,
        estimator: Any,
        factors: list[dict[str, np.ndarray]],
        shared: bool,
        signs: list[np.ndarray | None] | None = None,
    ) -> "ViewMetric":
        metric = cls()
        metric.signs = signs
        metric.names, metric.factors, metric.shared = tuple(factors[0]), factors, shared
        # only what evaluates kernels: the estimator itself holds this metric
        needed = ("view_names_in_", "_used_views", "_known", "_categories", "kernels_", "X_fit_", "_features")
        metric._space = MetricSpace()
        metric._space.__dict__.update({key: value for key, value in vars(estimator).items() if key in needed})
        return metric

    @property
    def rank(self) -> int:
        """Rank of each metric."""
        return max(int(factor[self.names[0]].shape[1]) for factor in self.factors)

    def _factor(self, output: int) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        """Return the factors of an output's metric and their signs."""
        if self.shared:
            output = 0
        if not -len(self.factors) <= output < len(self.factors):
            raise ValueError(f"There are metrics for {len(self.factors)} outputs; got output={output!r}.")
        return self.factors[output], None if self.signs is None else self.signs[output]

    def toarray(self, output: int = 0) -> np.ndarray:
        """Return A as one matrix, view after view.

        Parameters
        ----------
        output : int, default=0
            Output whose metric is returned, if each has its own.

        Returns
        -------
        array of shape (Σ n_v, Σ n_v)
            A.
        """
        factor, signs = self._factor(output)
        parts = [factor[name] for name in self.names]
        F = namespace(*parts).concat(parts, axis=0)
        what = f"ViewMetric.toarray of {F.shape[0]:,} rows"
        check_memory(16.0 * F.shape[0] ** 2, what, "Use `factors`, whose product is the metric, or `block_norms`.")
        return (F if signs is None else F * like(signs, F)) @ F.T

    def block_norms(self, output: int | None = None) -> np.ndarray:
        """Return the Frobenius norms of the blocks A_vw: the importance of each pair of views.

        Parameters
        ----------
        output : int, optional
            Output whose metric is measured. By default, the norm is taken over the metrics of all outputs.

        Returns
        -------
        array of shape (n_views, n_views)
            ‖A_vw‖_F; 0 where a view is left out.
        """
        used = [self._factor(k) for k in (range(len(self.factors)) if output is None else [output])]
        squares = np.zeros((len(self.names), len(self.names)))
        for factor, signs in used:
            inner = [to_numpy(factor[name].T @ factor[name]) for name in self.names]
            turned = inner if signs is None else [signs[:, None] * one * signs for one in inner]
            squares += [[float(np.sum(one * other)) for other in inner] for one in turned]
        return np.sqrt(np.maximum(squares, 0))

    def transform(self, X: Any, output: int = 0) -> Views:
        """Return the coordinates of samples in the space of the metric.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        output : int, default=0
            Output whose metric is used, if each has its own.

        Returns
        -------
        Views
            F_v'k_v(x) for each view, missing where the view is.
        """
        factor, signs = self._factor(output)
        if signs is not None:
            raise ValueError(
                "The metric is not positive semi-definite, so it has no coordinates. Fit with solver='exact', or with "
                "step_size=None."
            )
        X = views_of_terms(terms_of(self._space), read_views_to_predict(self._space, X))
        parts = [self._space.evaluate(X[rows]) for rows in row_parts(len(X), factor[self.names[0]].shape[0])]
        blocks: dict[str, Any] = dict.fromkeys(X.names)
        for name in X.names:
            if X.block(name) is not None:
                own = [part[name] @ factor[name] for part in parts]
                blocks[name] = namespace(*own).concat(own, axis=0)
        return Views._of(blocks, len(X), X.mask, {}, X.sample_names)

    def __repr__(self) -> str:
        first = self.factors[0]
        views = ", ".join(f"'{name}' ({first[name].shape[0]})" for name in self.names)
        each = "" if self.shared or len(self.factors) == 1 else f" for each of {len(self.factors)} outputs"
        return f"ViewMetric of rank {self.rank}{each} over the views {views}"


class MetricSpace(ViewEstimator):
    """The kernels or features of an estimator, and the training samples that kernels compare with."""

    kernels_: Any
    X_fit_: Views
    _features: Any

    def fit(self, X: Any) -> "MetricSpace":
        """Return itself: the state comes from the estimator."""
        return self

    def _view_is_gram(self, name: str) -> bool:
        return any(term.kernel.reads_gram for term in kernel_terms(self.kernels_) if term.view == name)

    def evaluate(self, X: Views) -> dict[str, np.ndarray]:
        """Return k_v(x), or the features of x, for each view or kernel; zero where the view is missing."""
        if "_features" in vars(self):
            features = self._features.transform(X)
            return {name: dense_block(features, name, root.T) for name, root in self._features._roots.items()}
        terms = terms_of(self)
        fitted = views_of_terms(terms, self.X_fit_)
        return {term.name: view_grams({term.name: term.kernel}, X, fitted)[0] for term in terms}
