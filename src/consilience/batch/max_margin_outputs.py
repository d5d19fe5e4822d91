"""Maximum margin regression for outputs of any kind: numbers, strings, trees, by a kernel between them."""

import numbers
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ..kernels import Kernel, Linear
from ..solvers.linalg import is_positive
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import finite_outputs
from ..views.validation import read_views_to_fit, read_weights
from ._frame import ROWS
from ._max_margin import HELD, LabelKernel, MaxMargin
from ._outputs import as_block, read_output_kernel, read_outputs

__all__ = ["MaxMarginRegressor"]


class MaxMarginRegressor(RegressorMixin, MaxMargin):
    """MMR, maximum margin regression, for any outputs (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006).

    Outputs y live in the space of a kernel k_y; samples are mapped there by one operator W from the space of the
    input kernel k:

        min ½ ‖W‖² + C Σ_i ξ_i,  <ψ(y_i), Wφ(x_i)> >= 1 - ξ_i,  ξ >= 0
        dual: min ½ α'(K_y ∘ K)α - 1'α,  0 <= α <= C

    with one variable per sample. The answer for x is the candidate with the largest score
    <ψ(y), Wφ(x)> = Σ_i α_i k_y(y, y_i) k(x_i, x).

    With indicator vectors as outputs and the linear output kernel it equals `MaxMarginClassifier` with
    ``labels="indicator"``.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    C : float, default=1.0
        The weight of the errors.
    output_kernel : Kernel, str, callable or array, default="rbf"
        k_y: a kernel on numbers, strings or trees; or the matrix between all candidates, y being positions in it. With
        "linear" the longest candidates have the largest scores, and a part that all outputs share meets the margins by
        itself: ``normalize(center(kernel))`` of `consilience.kernels` takes both away.
    candidates : sequence, optional
        The answers there can be, each once; by default the different outputs among the training samples.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one; see `MaxMarginClassifier`.
    fit_intercept : bool, default=False
        Learn b too. Refused where b alone would meet all margins.
    normalize : {"item", "variable"}, optional
        Scale every sample of a view to length 1, or every column to mean 0 and variance 1.
    n_components : int or float, optional
        The number of Nyström landmarks, or their fraction of the samples; by default the kernel is taken whole.
    tol : float, default=1e-3
        The duality gap to reach, relative to the objective. From 1e-4 on kernels are evaluated in single precision,
        unless C·k(x, x) is above 10,000 or rounding stands in the way.
    max_iter : int, default=10000
        The most passes over the violating samples.
    cache_size : float, default=1000
        The megabytes that rows of the kernel may take.
    warm_start : bool, default=False
        Start from the last fit's α where the number of samples is the same.
    random_state : int, RandomState or None, default=None
        The seed of landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    candidates_ : array
        The candidates.
    dual_coef_ : array of shape (n_support,)
        α of the support.
    support_ : array of int
        The positions of the support among the samples given to `fit`.
    coef_ : dict of array
        With linear kernels or `n_components`: Σ α_i φ(x_i) over the samples of each output, a column per output.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    output_kernel_ : Kernel or array
        The kernel between outputs, with numbers for parameters.
    solution_ : Solution
        α as ``x``, the primal objective, the duality gap and the largest violation of the optimality conditions.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import MaxMarginRegressor
    >>> from consilience.kernels import Spectrum, normalize
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> words = ["anna", "hanna", "otto", "ottokar"]
    >>> model = MaxMarginRegressor(output_kernel=normalize(Spectrum(2))).fit(X, words)
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['anna', 'otto']
    >>> [word for word, score in model.rank([[0.05]], top=2)[0]]
    ['anna', 'hanna']
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        output_kernel: Any = "rbf",
        candidates: Any = None,
        combine: Any = "sum",
        fit_intercept: bool = False,
        normalize: str | None = None,
        n_components: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_size: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.output_kernel = output_kernel
        self.candidates = candidates
        self.combine = combine
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their outputs.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or a sequence of objects
            The outputs, missing (NaN, None) for samples to leave out.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error():
            self._check_parameters()
            X = read_views_to_fit(self, X)
            kernel, matrix = read_output_kernel(self.output_kernel)
            outputs = read_outputs(y, len(X), matrix)
            weights = read_weights(sample_weight, len(X))
            s = np.where(outputs.labeled, weights, 0.0)
            X = self._normalized(X, weights)
            rows = self._arrange(X, outputs.labeled, s, with_unlabeled=False)
            self._outputs, self._one_column = outputs.values, outputs.one_column
            self._reads_items = outputs.values.dtype.kind in "UO"
            of = rows.first(outputs.of)
            labels = self._output_labels(of, kernel, matrix)
            self.candidates_ = self._read_candidates(matrix)
            self._between = self._output_gram(self.candidates_) if labels.n * len(self.candidates_) <= HELD**2 else None
            self._learn(rows, labels, self.C * rows.s)
        return self

    def _output_labels(self, of: np.ndarray, kernel: Kernel | None, matrix: np.ndarray | None) -> LabelKernel:
        """The kernel between the different outputs."""
        if matrix is not None:
            self.output_kernel_ = matrix
            return LabelKernel(of, len(matrix), lambda which: matrix[which], matrix)
        block = as_block(self._outputs)
        with _blocks.naming("y", "Outputs"):
            resolved = kernel.resolved(block)  # type: ignore[union-attr]
            resolved.diag(block[:1])
        self.output_kernel_ = resolved
        if type(resolved) is Linear and not sp.issparse(block):
            return LabelKernel.of_vectors(of, np.asarray(block, dtype=np.float64))
        A = np.asarray(resolved(block), dtype=np.float64) if len(self._outputs) <= HELD else None
        if A is not None and resolved.may_be_indefinite and not is_positive(A):
            raise ValueError(
                f"`output_kernel`: {resolved!r} is not positive semi-definite between the outputs in y. Use another "
                "kernel, or give the matrix between all candidates; `consilience.kernels.nearest_psd` makes one."
            )
        rows = A.__getitem__ if A is not None else lambda which: np.asarray(resolved(_blocks.take(block, which), block))
        return LabelKernel(of, len(self._outputs), rows, A)

    def _read_candidates(self, matrix: np.ndarray | None) -> np.ndarray:
        if self.candidates is None:
            return self._outputs[:, 0] if self._outputs.ndim == 2 and self._one_column else self._outputs
        if not hasattr(self.candidates, "__len__"):
            raise ValueError(f"`candidates` must be a sequence of answers; got {self.candidates!r}.")
        given = list(self.candidates)
        if not given:
            raise ValueError("`candidates` is empty. Give at least one answer, or None for the training outputs.")
        found = read_outputs(given, len(given), matrix)
        if not found.labeled.all():
            raise ValueError("`candidates` has a missing value. Leave it out.")
        if len(np.unique(found.of)) < len(given):
            raise ValueError("`candidates` has the same answer twice. Give each once.")
        if (found.values.dtype.kind in "UO") != self._reads_items or found.values.shape[1:] != self._outputs.shape[1:]:
            raise ValueError(
                "`candidates` and y hold outputs of different kinds, or vectors of different lengths. Give candidates "
                "as y is given."
            )
        values = found.values[found.of]
        return values[:, 0] if values.ndim == 2 and self._one_column else values

    def _output_gram(self, candidates: np.ndarray) -> np.ndarray:
        """k_y between the training outputs and candidates."""
        if isinstance(self.output_kernel_, np.ndarray):
            return self.output_kernel_[:, candidates.astype(int)]
        return np.asarray(self.output_kernel_(as_block(self._outputs), as_block(candidates)))

    def _of_label_sums(self, sums: np.ndarray) -> np.ndarray:
        return sums

    def _sums(self, X: Views) -> np.ndarray:
        return self._over_features(X) if hasattr(self, "coef_") else self._label_sums(X, len(self._outputs))

    def _scores(self, sums: np.ndarray) -> np.ndarray:
        """The scores of the candidates from the sums of each output, along the last axis."""
        return sums @ (self._between if self._between is not None else self._output_gram(self.candidates_))

    def _by_rows(self, X: Any) -> Iterator[np.ndarray]:
        """The candidates' scores, some samples at a time."""
        check_is_fitted(self)
        X = self._read_new(X)
        size = max(1, min(ROWS, 2**24 // len(self.candidates_)))
        for start in range(0, len(X), size):
            sums = self._sums(X[start : start + size])
            yield finite_outputs(self, self._scores(sums if self._bias is None else sums + self._bias))

    def candidate_scores(self, X: Any) -> np.ndarray:
        """Return the score of every candidate.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_candidates)
            <ψ(y), Wφ(x)> for each y of ``candidates_``.
        """
        return np.concatenate(list(self._by_rows(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the candidate with the largest score.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The answers.
        """
        best = np.concatenate([scores.argmax(axis=1) for scores in self._by_rows(X)])
        return self.candidates_[best]

    def rank(self, X: Any, top: int = 5) -> list[list[tuple[Any, float]]]:
        """Return the best candidates of each sample, the best first, with their scores.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        top : int, default=5
            How many candidates.

        Returns
        -------
        list of list of (candidate, score)
            The ranking of each sample.
        """
        if not (isinstance(top, numbers.Integral) and top >= 1):
            raise ValueError(f"`top` must be a whole number of at least 1; got {top!r}.")
        ranked = []
        for scores in self._by_rows(X):
            best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
            answers = self.candidates_.tolist()
            ranked += [
                [(answers[k], float(row[k])) for k in order] for row, order in zip(scores, best.tolist(), strict=True)
            ]
        return ranked

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² where outputs are numbers, the share of right answers where they are objects or positions.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like
            The outputs; samples where they are missing are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            The score.
        """
        answers = self.predict(X)
        _, matrix = read_output_kernel(self.output_kernel)
        outputs = read_outputs(y, len(answers), matrix)
        there = np.flatnonzero(outputs.labeled)
        weights = None if sample_weight is None else np.asarray(sample_weight)[there]
        known = outputs.values[outputs.of[there]]
        if self._reads_items or matrix is not None:
            right = [repr(a) == repr(b) for a, b in zip(answers[there].tolist(), known.tolist(), strict=True)]
            return float(np.average(right, weights=weights))
        return float(r2_score(known, answers[there].reshape(known.shape), sample_weight=weights))

    def _view_outputs(self, X: Views) -> np.ndarray:
        X = self._scaled(X)
        by_view = (
            self._outputs_over_features(X) if hasattr(self, "coef_") else self._view_label_sums(X, len(self._outputs))
        )
        return self._scores(by_view)

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return each view's own scores, without the bias; where the kernels of views are added.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_views, n_candidates)
            The scores from each view's kernel alone; NaN where a view is absent.
        """
        check_is_fitted(self)
        self._check_adds()
        return super().view_decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
