"""The batch learner: views combined, certificate, scikit-learn's tags."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..kernels.by_view import as_part, is_pairwise, reads_gram
from ..solvers.certificates import Certificate
from ..views.container import Views
from ..views.estimator import ViewEstimator, combine_views, presence
from ..views.validation import read_views_to_predict


class BatchLearner(ViewEstimator, ABC):
    """A learner that sees all samples at once.

    Subclasses define `fit`, which sets ``view_weights_`` (and, of a solver, ``solution_``), and `_view_outputs`, each
    view's own f_v.
    """

    view_weights_: np.ndarray
    solution_: Any

    def _view_is_gram(self, name: str) -> bool:
        return reads_gram(getattr(self, "kernel", None), name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from samples and their targets."""

    @abstractmethod
    def _view_outputs(self, X: Views) -> np.ndarray:
        """f_v(x) as (n, m, P); where a view is absent any number will do."""

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        return combine_views(self._view_outputs(X), self.view_weights_, presence(X))

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return each view's own answer.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_views) or (n_samples, n_views, n_outputs)
            f_v(x) before views are combined; NaN where a view is absent.
        """
        X = read_views_to_predict(self, X)
        outputs = np.where(presence(X)[:, :, None], self._view_outputs(X), np.nan)
        return outputs[:, :, 0] if outputs.shape[2] == 1 else outputs

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            Objective, gap and the like; prints as a sentence.
        """
        check_is_fitted(self)
        solution = self.solution_
        return Certificate(status=solution.status, objective=solution.objective, gap=solution.gap)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(getattr(self, "kernel", None))
        return tags
