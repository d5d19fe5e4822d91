"""The base of batch estimators: each view's own outputs, their combination, the certificate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._backend import to_numpy
from ..kernels import view_grams
from ..kernels.by_view import as_part, is_pairwise, reads_gram
from ..solvers.certificates import Certificate
from ..solvers.design import BLOCK
from ..views.container import Views
from ..views.estimator import ViewEstimator, combine_views, presence
from ..views.validation import read_views_to_predict
from ._fit import dense_block

_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: [Interval(Real, 0, None, closed="neither")] for name in ("alpha", "metric_penalty", "C", "cache_size")},
    **{name: [Interval(Real, 0, None, closed="left")] for name in ("agreement_penalty", "graph_penalty", "tol")},
    **{name: ["boolean"] for name in ("shared_metric", "shared_weights", "fit_intercept", "warm_start")},
    "view_weights": [StrOptions({"uniform", "learned"}), Mapping, "array-like"],
    "weights_norm": [Interval(Real, 0, None, closed="neither"), None],
    "weights_solver": [StrOptions({"exact", "alternating"})],
    "solver": [StrOptions({"exact", "alternating"})],
    "n_restarts": [Interval(Integral, 1, None, closed="left")],
    "validation_fraction": [Interval(RealNotInt, 0, 1, closed="neither"), None],
    "n_components": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="right"), None],
    "p": [Interval(Real, 1, None, closed="left"), Options(Real, {np.inf})],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "missing_columns": [StrOptions({"raise", "fill"})],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def constraints(*names: str, **own: list[Any]) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints of parameters that batch estimators share, and of others given as lists."""
    return {**{name: _CONSTRAINTS[name] for name in (*names, "missing_columns")}, **own}


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
        return reads_gram(getattr(self, "kernel", None), name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    def _view_outputs(self, X: Views) -> np.ndarray:
        """Return f_v(x) as (n, m, P); values of missing views are not used."""
        parts = [self._block_outputs(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _block_outputs(self, X: Views) -> np.ndarray:
        if hasattr(self, "coef_"):
            features = self._features.transform(X)
            outputs = [dense_block(features, name, len(W)) @ W for name, W in self.coef_.items()]
        else:
            outputs = []
            for name, dual in zip(self._used_views, self.dual_coef_, strict=True):
                outputs.append(to_numpy(view_grams({name: self.kernels_[name]}, X, self.X_fit_)[0]) @ dual)
        return np.stack(outputs, axis=1)

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
            f_v(x) before the views are combined; NaN where a view is missing.
        """
        X = read_views_to_predict(self, X)
        outputs = np.where(presence(X)[:, :, None], self._view_outputs(X), np.nan)
        return outputs[:, :, 0] if outputs.shape[2] == 1 else outputs

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
