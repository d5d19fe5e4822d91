"""Consensus: many kernels of all views, weighted by what they predict at samples they have not seen."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from .._backend import few_threads, like, memory_of, namespace, to_numpy
from ..kernels.dictionary import reads_grams
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor, by_parts, finite_outputs
from ..views.validation import read_views_to_predict
from ._collect import collect_blocks
from ._consensus import THREADED, array_of, fit_base_models
from ._consensus_fit import (
    FoldOutputs,
    combined_outputs,
    kernel_weights_frame,
    make_stack,
    outputs_by_fold,
    read_consensus,
    store_consensus,
    weighted_kernels,
)
from ._estimator import BatchEstimator, constraints
from ._memory import plan_consensus, row_parts
from ._prepared import fit_prepared
from ._stack import probabilities

__all__ = ["ConsensusClassifier", "ConsensusRegressor"]

_OWN: dict[str, list[Any]] = {
    "cv": ["cv_object"],
    "prepare": [str, list, dict, HasMethods(["fit_transform", "transform"]), None],
    "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
}


@shared_docs
@dataclass(eq=False, repr=False)
class ConsensusRegressor(ViewRegressor, BatchEstimator):
    """Consensus of many kernels: kernel ridge regressions of all views, stacked by exact leave-one-out predictions.

    No parameter needs to be given. Base models k = 1, ..., q are kernel ridge regressions with an intercept, one for
    each kernel of each view, and some for sums and products of kernels over views,

        min_f,b Σ_i s_i ‖y_i - f(x_i) - b‖² + λ_k ‖f‖².

    What a base model predicts at a sample, or at a group of samples, that it has not seen is known without a refit:
    y_i - r_i / (1 - S_ii) for its residual r_i and its smoother S. So the penalty λ_k is the best one of a grid by
    leave-one-out, and the combination f = ȳ + Σ_k β_k (f_k - ȳ) is fitted to leave-one-out predictions (stacking,
    Breiman 1996; van der Laan, Polley and Hubbard 2007),

        min_{β >= 0} Σ_i s_i ‖y_i - ȳ^-i - Σ_k β_k (f_k^-i(x_i) - ȳ^-i)‖².

    What is said of new samples, the held-out score and intervals, comes from the same fit without each of ten folds:
    f_k without a fold g, and without g and a sample more, are known without a refit too, so that penalties and weights
    are chosen again outside of g.

    With one view and one kernel, and β = 1, it equals ``KernelRidge`` on centered kernels with the penalty of the
    smallest leave-one-out error. Where a sample lacks a view, the models that need it abstain, and β is fitted to the
    samples that have the other views. Single missing values (NaN) are filled with the means of their columns. Unlabeled
    samples add base models whose functions vary little between neighboring samples (Sindhwani, Niyogi and Belkin
    2005).

    Parameters
    ----------
    kernel : "auto", Kernel, str, callable, list or dict, default="auto"
        Kernels of every view: one, or a list. A dict gives kernels, or lists of them, by view; views that it does not
        name get "auto", the kernels that suit their data (`consilience.kernels.auto_kernels`).
    cv : int or splitter, optional
        Samples that are held out together: a number of folds, or a splitter whose test parts contain each sample once.
        Default: penalties and weights are chosen by single samples, or by the `groups` given to `fit`; the held-out
        score comes from ten folds of these, or from each group if there are fewer.
    prepare : str, list, dict or transformer, optional
        Preparation of the views that uses the target, such as ``"top_k:50"``, `PerView` or a pipeline of these. It is
        fitted again without each fold, so that held-out predictions do not profit from what it chose: K + 1 fits.
    shared_weights : bool, default=True
        Whether all outputs share the weights of the base models.
    n_components : int or "auto", optional
        Number of landmarks of Nyström features. "auto" chooses it by the number of samples and the memory, as other
        estimators do. Default: exact kernels up to 5,000 labeled samples, and for more, 1,000 landmarks up to 40,000
        samples, and fewer, at least 200, beyond.
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    loo_score_ : float
        R² of `loo_predictions_`; NaN if the views were prepared with the target before.
    loo_interval_ : tuple of two floats
        95% confidence interval of `loo_score_`, with groups and repeated samples as single observations.
    loo_predictions_ : array of shape (n_labeled,) or (n_labeled, n_outputs)
        Predictions of the samples that have targets, in the order given, by models that have not seen the fold of the
        sample. Up to 600 samples the weights, and up to 100 the penalties, are chosen again in each fold by samples
        that are held out once more. Beyond that the choices change the score by less than its standard error.
    view_weights_ : array of shape (n_views_used,)
        How much each view moves the prediction: shares of the spreads of its parts Σ_k β_k f_k^-i(x_i) of the
        leave-one-out predictions; sums and products are divided equally among their views.
    n_repeated_ : int
        Number of labeled samples that repeat another one in all views; equal samples are held out together. Samples
        whose equality may be chance, as in a table of a few categories, do not count.
    view_importances_ : dict
        By view, what `loo_score_` loses if the base models that use the view are left out and β is refitted.
    n_filled_ : dict
        By view, how many missing values (NaN) were filled at fit.
    n_components_ : int or None
        Number of landmarks used; None for exact kernels.
    {solution_}

    See Also
    --------
    ConsensusClassifier : The same for classes.
    consilience.compare : Scores of this and other estimators on the same folds.

    Notes
    -----
    Time grows as q n³ up to 5,000 samples. Intervals are those of CV+ (Barber, Candès, Ramdas and Tibshirani 2021,
    Theorem 4). Up to 100 samples, λ and β are chosen outside of each fold, so that its guarantee is of the whole
    procedure. Where few samples have all views of a new one, its views are averaged, each with its own weights.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import ConsensusRegressor, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(80, 1))
    >>> X = Views(a=hidden + 0.1 * rng.normal(size=(80, 3)), b=rng.normal(size=(80, 2)))
    >>> y = np.sin(2 * hidden[:, 0])
    >>> model = ConsensusRegressor().fit(X[:60], y[:60])
    >>> model.score(X[60:], y[60:]) > 0.9, model.loo_score_ > 0.9
    (True, True)
    >>> model.predict_interval(X[60:], coverage=0.9).shape
    (20, 2)
    """

    _parameter_constraints = constraints("shared_weights", "verbose", **_OWN)
    _fills_gaps = True

    kernel: Any = "auto"
    _: KW_ONLY
    cv: Any = None
    prepare: Any = None
    shared_weights: bool = True
    n_components: int | str | None = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the base models and their weights.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and are collected in memory; they
            are refused if they do not fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes, or targets for regression. Samples without one are used as unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses.
        groups : array-like of shape (n_samples,), optional
            Groups of samples that are held out together, such as patients or centers.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            X, y, sample_weight = collect_blocks(self, X, y, sample_weight)
            data = read_consensus(self, X, y, sample_weight, groups)
            self.__dict__.pop("_prepared", None)
            if self.prepare is not None:
                fit_prepared(self, data)
                return self
            place = array_of(data.X)
            with memory_of(place):
                sizes = len(data.Y), len(data.X.names)
                self.n_components_ = plan_consensus(self, *sizes, on_device=place is not None)
            with few_threads(len(data.X), THREADED):
                base = fit_base_models(self.kernel, data.X, data.Y, data.u, data.sets, self.n_components_)
                store_consensus(self, data, base, make_stack(self, data, base))
            return self

    def _view_is_gram(self, name: str) -> bool:
        known = vars(self).get("_models", ())  # "auto" takes Gram matrices as they come
        pairs = [pair for model in known for pair in zip(model.views, model.kernels, strict=True)]
        return reads_grams(self.kernel, name) or any(view == name and kernel.reads_gram for view, kernel in pairs)

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        if "_prepared" in vars(self):
            return self._prepared.outputs(X)
        with few_threads(len(self._stack.Y), THREADED):
            return combined_outputs(self, X)

    def _view_outputs(self, X: Any) -> np.ndarray:
        if "_prepared" in vars(self):
            return np.stack([self._prepared.outputs(X[[name]]) for name in X.names], axis=1)
        with few_threads(len(self._stack.Y), THREADED):
            outputs = [combined_outputs(self, X, alone=v) for v in range(len(X.names))]
            return namespace(*outputs).stack(outputs, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _by_fold(self, X: Any) -> Iterator[FoldOutputs]:
        """Yield the outputs without each fold, for the samples of each pattern of views."""
        if not self._honest:
            raise ValueError(
                f"The views of {type(self).__name__} were prepared with the target, so that it does not know how often "
                "it is right at new samples. Pass the preparation as `prepare=`."
            )
        if "_prepared" in vars(self):
            yield self._prepared.by_fold(X)
            return
        with few_threads(len(self._stack.Y), THREADED):
            yield from outputs_by_fold(self, X)

    @property
    def kernel_weights_(self) -> Any:
        """Weights of the base models: a pandas DataFrame with the columns view, kernel, weight and penalty."""
        return kernel_weights_frame(self._prepared.whole.model if "_prepared" in vars(self) else self)

    def _weighted_kernels(self) -> list[tuple[str, str, float]]:
        return weighted_kernels(self._prepared.whole.model if "_prepared" in vars(self) else self)

    def predict_interval(self, X: Any, *, coverage: float = 0.9) -> np.ndarray:
        """Return intervals that should contain the target of a new sample with a stated probability.

        They are CV+ intervals (Barber, Candès, Ramdas and Tibshirani 2021): quantiles of f^-k(x) ± e_i over the
        training samples i, where f^-k is the model without the fold of i, and e_i the size of its error at x_i. Groups
        of any size count equally.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.
        coverage : float, default=0.9
            Probability 1 - α, strictly between 0 and 1, on average over new samples. The guarantee is about 1 - 2α. In
            simulations the coverage at 0.9 was 0.94 to 0.97 with 20 to 150 samples of which many lack views, and 0.88
            for new groups after 6 groups, or 12 of unequal sizes.

        Returns
        -------
        array of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; infinite if there are too few training samples for the coverage.
        """
        alpha = _rest_of(coverage)
        tail = (2,) if vars(self).get("_one_output", True) else (len(self._mean), 2)
        return by_parts(
            self, X, lambda some: self._intervals(some, alpha), "predict_interval", tail, np.float64, coverage=coverage
        )

    def _intervals(self, X: Any, alpha: float) -> Any:
        X = read_views_to_predict(self, X)
        ends = np.empty((len(X), len(self._mean), 2))
        for found in self._by_fold(X):
            ends[found.rows] = _interval_ends(found, alpha)
        return like(ends[:, 0, :] if self._one_output else ends, array_of(X))


@shared_docs
@dataclass(eq=False, repr=False)
class ConsensusClassifier(ViewClassifier, BatchEstimator):
    """Consensus of many kernels for classes: `ConsensusRegressor` on targets of ±1, with probabilities.

    No parameter needs to be given. Targets are +1 for a sample's class and -1 for the others, one output per class, one
    in all for two classes. The base models and their weights are those of `ConsensusRegressor`. The combined scores
    g_c(x) become probabilities,

        p(c | x) ∝ exp(a g_c(x) + b_c),

    with a >= 0 and b fitted to the scores without each fold (Platt 2000, for two classes). The most probable class is
    predicted.

    Parameters
    ----------
    kernel : "auto", Kernel, str, callable, list or dict, default="auto"
        Kernels of every view: one, or a list. A dict gives kernels, or lists of them, by view; views that it does not
        name get "auto", the kernels that suit their data (`consilience.kernels.auto_kernels`).
    cv : int or splitter, optional
        Samples that are held out together: a number of folds, or a splitter whose test parts contain each sample once.
        Default: penalties and weights are chosen by single samples, or by the `groups` given to `fit`; the held-out
        score comes from ten folds of these, or from each group if there are fewer.
    prepare : str, list, dict or transformer, optional
        Preparation of the views that uses the target, such as ``"top_k:50"``, `PerView` or a pipeline of these. It is
        fitted again without each fold, so that held-out predictions do not profit from what it chose: K + 1 fits.
    n_components : int or "auto", optional
        Number of landmarks of Nyström features. "auto" chooses it by the number of samples and the memory, as other
        estimators do. Default: exact kernels up to 5,000 labeled samples, and for more, 1,000 landmarks up to 40,000
        samples, and fewer, at least 200, beyond.
    {verbose}
    {views}
    {missing_columns}
    class_weight : dict or "balanced", optional
        Weights of the classes in the losses, as in scikit-learn. Probabilities are those of a population in which the
        classes have these weights.
    {unlabeled}

    Attributes
    ----------
    loo_score_ : float
        Accuracy of `loo_predictions_`; NaN if the views were prepared with the target before.
    loo_interval_ : tuple of two floats
        95% confidence interval of `loo_score_` (Wilson 1927), with groups and repeated samples as single observations.
    loo_predictions_ : array of shape (n_labeled,)
        Predictions of the labeled samples, in the order given, by models that have not seen the fold of the sample, nor
        have a and b. Up to 600 samples the weights, and up to 100 the penalties, are chosen again in each fold by
        samples that are held out once more. Beyond that the choices change the score by less than its standard error.
    loo_probabilities_ : array of shape (n_labeled, n_classes)
        Probabilities of the labeled samples by the same models.
    view_weights_ : array of shape (n_views_used,)
        How much each view moves the prediction: shares of the spreads of its parts Σ_k β_k f_k^-i(x_i) of the
        leave-one-out predictions; sums and products are divided equally among their views.
    n_repeated_ : int
        Number of labeled samples that repeat another one in all views; equal samples are held out together. Samples
        whose equality may be chance, as in a table of a few categories, do not count.
    view_importances_ : dict
        By view, what `loo_score_` loses if the base models that use the view are left out and β is refitted.
    n_filled_ : dict
        By view, how many missing values (NaN) were filled at fit.
    n_components_ : int or None
        Number of landmarks used; None for exact kernels.
    {classes_}
    {solution_}

    See Also
    --------
    ConsensusRegressor : The same for numbers, with intervals.
    consilience.compare : Scores of this and other estimators on the same folds.

    Examples
    --------
    >>> from consilience import ConsensusClassifier
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = ConsensusClassifier().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.95, model.loo_score_ > 0.95
    (True, True)
    >>> model.predict_proba(X[300:302]).shape
    (2, 2)
    """

    _parameter_constraints = constraints("verbose", **_OWN)
    _fills_gaps = True

    kernel: Any = "auto"
    _: KW_ONLY
    cv: Any = None
    prepare: Any = None
    n_components: int | str | None = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = ConsensusRegressor.fit
    _view_is_gram = ConsensusRegressor._view_is_gram
    _combined = ConsensusRegressor._combined
    _view_outputs = ConsensusRegressor._view_outputs
    kernel_weights_ = ConsensusRegressor.kernel_weights_
    _by_fold = ConsensusRegressor._by_fold
    _weighted_kernels = ConsensusRegressor._weighted_kernels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities.
        """
        return by_parts(self, X, self._probabilities, "predict_proba", _for_each_class(self), np.float64)

    def _probabilities(self, X: Any) -> Any:
        return probabilities(finite_outputs(self, self._combined(X)), len(self.classes_))

    def predict_set(self, X: Any, *, coverage: float = 0.9) -> np.ndarray:
        """Return sets of classes that should contain the class of a new sample with a stated probability.

        They are cross-conformal sets (Vovk 2015). A class c is in the set of x unless at most a share 1 - coverage of
        the training samples i fit their class as little as x fits c: p^-k(y_i | x_i) <= p^-k(c | x), where p^-k is the
        model without the fold of i. The most probable class is always in the set. Groups of any size count equally.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.
        coverage : float, default=0.9
            Probability, strictly between 0 and 1, on average over all new samples. For samples of a rare class alone it
            can be far lower.

        Returns
        -------
        array of booleans of shape (n_samples, n_classes)
            Whether each class is in the set, in the order of ``classes_``.
        """
        alpha = _rest_of(coverage)
        return by_parts(
            self, X, lambda some: self._sets(some, alpha), "predict_set", _for_each_class(self), bool, coverage=coverage
        )

    def _sets(self, X: Any, alpha: float) -> np.ndarray:
        X = read_views_to_predict(self, X)
        n_classes = len(self.classes_)
        sets = np.empty((len(X), n_classes), dtype=bool)
        for found in self._by_fold(X):
            fits = probabilities(found.held, n_classes)[np.arange(len(found.held)), found.truth[:, 0]]
            likely = probabilities(found.new, n_classes)
            as_little = sum(
                _weight_up_to(fits[found.folds == k], found.weights[found.folds == k], likely[:, k])
                for k in range(likely.shape[1])
            )
            sets[found.rows] = (1 + as_little) / (len(fits) + 1) > alpha
        best = to_numpy(probabilities(self._combined(X), n_classes)).argmax(axis=1)
        sets[np.arange(len(X)), best] = True
        return sets


def _for_each_class(estimator: Any) -> tuple[int]:
    """Return the shape of a row with one value for each class; the estimator may not be fitted yet."""
    return (len(vars(estimator).get("classes_", ())),)


def _weight_up_to(values: np.ndarray, weights: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the weight of the values that are at most each limit."""
    order = np.argsort(values)
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(total[np.searchsorted(values[order], limits, side="right")])


def _rest_of(coverage: float) -> float:
    """Return 1 - coverage, without the rounding that would move a quantile by one sample."""
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must be strictly between 0 and 1; got {coverage!r}.")
    return round(1 - float(coverage), 12)


def _interval_ends(found: FoldOutputs, alpha: float) -> np.ndarray:
    """Return the ends of intervals, (rows, P, 2): quantiles of f^-k(i)(x) ± e_i over the training samples i."""
    n, errors = len(found.held), np.abs(found.truth - found.held)
    ends = np.empty((*found.new.shape[::2], 2))
    for part in row_parts(len(found.new), n * found.new.shape[2]):
        new = found.new[part][:, found.folds]
        ends[part, :, 0] = -_upper_quantile(errors - new, found.weights, alpha)
        ends[part, :, 1] = _upper_quantile(errors + new, found.weights, alpha)
    return np.sort(ends, axis=2)  # a low coverage may exchange them


def _upper_quantile(values: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """Return the smallest value with a weight of at least (1 - α)(n + 1) up to it; infinity if there is none."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weights[order], axis=1) >= (1 - alpha) * (len(weights) + 1) - 1e-9
    place = np.where(reached.any(axis=1), reached.argmax(axis=1), len(weights))[:, None]
    ordered = np.take_along_axis(values, order, axis=1)
    infinite = np.full_like(ordered[:, :1], np.inf)
    return np.asarray(np.take_along_axis(np.concatenate([ordered, infinite], axis=1), place, axis=1)[:, 0])
