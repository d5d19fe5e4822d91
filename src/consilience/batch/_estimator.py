"""The base of batch estimators: each view's own outputs, their combination, the certificate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._backend import cast, is_device_array, like, namespace
from ..kernels import view_grams
from ..kernels.by_view import Term, as_part, is_auto, is_pairwise, kernel_terms, reads_gram, views_of_terms
from ..solvers.certificates import Certificate
from ..solvers.linalg import multiply
from ..views.container import Views
from ..views.estimator import ViewEstimator, combine_views, presence
from ..views.validation import read_views_to_predict
from ._fit import dense_block
from ._memory import row_parts
from ._row_blocks import block_rows
from ._terms import has_several, terms_of

_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: [Interval(Real, 0, None, closed="neither")] for name in ("alpha", "metric_penalty", "C", "cache_size")},
    **{name: [Interval(Real, 0, None, closed="left")] for name in ("agreement_penalty", "graph_penalty", "tol")},
    **{name: ["boolean"] for name in ("shared_metric", "shared_weights", "fit_intercept", "warm_start")},
    "view_weights": [StrOptions({"uniform", "learned"}), Mapping, "array-like"],
    "weights_norm": [Interval(Real, 0, None, closed="neither"), None],
    "weights_order": [Interval(Real, 2, None, closed="left"), None],
    "weights_solver": [StrOptions({"exact", "alternating"})],
    "solver": [StrOptions({"exact", "alternating"})],
    "n_restarts": [Interval(Integral, 1, None, closed="left")],
    "validation_fraction": [Interval(RealNotInt, 0, 1, closed="neither"), None],
    "n_components": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="right"),
        StrOptions({"auto"}),
        None,
    ],
    "p": [Interval(Real, 1, None, closed="left"), Options(Real, {np.inf})],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "missing_columns": [StrOptions({"raise", "fill"})],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def constraints(*names: str, **own: list[Any]) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints of parameters that batch estimators share, and of others given as lists."""
    return {**{name: _CONSTRAINTS[name] for name in (*names, "missing_columns")}, **own}


def _add_by_view(terms: Sequence[Term], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of the views: the sums of those of their kernels."""
    by_view: dict[str, np.ndarray] = {}
    for term, own in zip(terms, outputs, strict=True):
        by_view[term.view] = by_view[term.view] + own if term.view in by_view else own
    return list(by_view.values())


def _weights_frame(terms: Sequence[Term], weights: np.ndarray) -> Any:
    """Return the weights of kernels as a frame, a row for each kernel, and for each output that has its own weights."""
    pd = pandas_for_weights()
    rows = pd.DataFrame(
        {"view": [term.view for term in terms], "kernel": [term.label or repr(term.kernel) for term in terms]}
    )
    if weights.ndim == 1:
        return rows.assign(weight=weights)
    parts = [rows.assign(output=k, weight=own) for k, own in enumerate(weights.T)]
    return pd.concat(parts, ignore_index=True)


def _times(Phi: Any, W: Any) -> Any:
    """Return ΦW in the precision of the features, where they are on a device."""
    return Phi @ (cast(W, Phi.dtype) if is_device_array(Phi) else W)


def pandas_for_weights() -> Any:
    """Return the package pandas; without it an estimator does not have the attribute, so that `dir` works."""
    try:
        import pandas as pd
    except ImportError as error:
        raise AttributeError("`kernel_weights_` needs pandas: pip install pandas.") from error
    return pd


class BatchEstimator(ViewEstimator, ABC):
    """An estimator that sees all samples at once.

    Subclasses define `fit`, which ends with `store_fit`. Each view's function is a combination of its kernel with the
    training samples (``dual_coef_``) or of its features (``coef_``); a subclass with other functions defines
    `_view_outputs`.
    """

    view_weights_: np.ndarray
    solution_: Any

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator to samples and their targets."""

    def _view_is_gram(self, name: str) -> bool:
        kernel = getattr(self, "kernel", None)
        if is_auto(kernel, name):  # known once the kernels are chosen
            terms = kernel_terms(vars(self).get("kernels_", {}))
            return any(term.kernel.reads_gram for term in terms if term.view == name)
        return reads_gram(kernel, name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    def _view_outputs(self, X: Views) -> np.ndarray:
        """Return f_v(x) as (n, m, P); values of missing views are not used."""
        n_fit = max(W.shape[0] for W in self.coef_.values()) if hasattr(self, "coef_") else self.dual_coef_.shape[1]
        parts = [self._block_outputs(X[rows]) for rows in row_parts(len(X), n_fit, block_rows(X))]
        return parts[0] if len(parts) == 1 else namespace(*parts).concat(parts, axis=0)

    def _block_outputs(self, X: Views) -> np.ndarray:
        terms = terms_of(self)
        if hasattr(self, "coef_"):
            features = self._features.transform(views_of_terms(terms, X))
            outputs = [_times(dense_block(features, name, W), W) for name, W in self.coef_.items()]
        else:
            outputs = []
            for v, term in enumerate(terms):
                K, dual = view_grams({term.view: term.kernel}, X, self.X_fit_)[0], self.dual_coef_[v, ...]
                outputs.append(multiply(K, dual) if is_device_array(K) else K @ dual)
        return namespace(*outputs).stack(_add_by_view(terms, outputs), axis=1)

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        return combine_views(self._view_outputs(X), self.view_weights_, presence(X))

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return each view's own prediction.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples, n_views) or (n_samples, n_views, n_outputs)
            f_v(x) before the views are combined; NaN where a view is missing. With several kernels it is the sum of
            their functions.
        """
        X = read_views_to_predict(self, X)
        outputs = self._view_outputs(X)
        outputs = namespace(outputs).where(like(presence(X)[:, :, None], outputs), outputs, np.nan)
        return outputs[:, :, 0] if outputs.shape[2] == 1 else outputs

    @property
    def kernel_weights_(self) -> Any:
        """Weights of the kernels, where they are learned: an array, or a frame if views have several kernels."""
        weights = vars(self).get("_kernel_weights")
        if weights is None:
            raise AttributeError(
                f"{type(self).__name__} has no weights of kernels: it has one kernel per view, or weights that were "
                "given. See `view_weights_`."
            )
        return _weights_frame(terms_of(self), weights) if has_several(self) else weights

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the solver; 1 for a direct solution. Not set if another estimator solves."""
        if self.solution_.status == "delegated":
            raise AttributeError(f"{type(self).__name__} has no iterations of its own.")
        return max(int(self.solution_.n_iter), 1)

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            The objective, its gap to the optimum, the residual of the optimality conditions and bounds on the
            solution, where they are known.
        """
        check_is_fitted(self)
        known = self.solution_
        return Certificate(
            known.status,
            objective=known.objective,
            gap=known.gap,
            residual=known.residual,
            bound=known.bound,
            note=known.note,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(getattr(self, "kernel", None))
        return tags
