"""Maximum margin regression for outputs of any kind: numbers, strings or trees, by a kernel between them."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval

from ..kernels import Kernel, Linear
from ..solvers.design import BLOCK
from ..solvers.linalg import is_positive, lstsq
from ..solvers.margin import solve_margin
from ..solvers.margin_intercept import solve_margin_intercept
from ..solvers.margin_labels import HELD, LabelKernel
from ..views import _blocks
from ..views._docs import shared_docs
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.estimator import finite_outputs
from ..views.row_blocks import RowBlocks
from ..views.validation import read_to_score, read_views_to_fit, read_views_to_predict, read_weights
from ._collect import collect_blocks
from ._estimator import BatchEstimator, constraints
from ._max_margin import (
    check_intercept,
    margin_design,
    margin_outputs,
    margin_view_outputs,
    previous_alpha,
    select_labeled,
    store_margin,
)
from ._outputs import as_block, read_candidates, read_output_kernel, read_outputs

__all__ = ["MaxMarginRegressor"]


@shared_docs
@dataclass(eq=False, repr=False)
class MaxMarginRegressor(RegressorMixin, BatchEstimator):
    """MMR, maximum margin regression, for any outputs (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006).

    Outputs y are mapped by ψ to the space of a kernel k_y. One operator W maps samples to that space from the space of
    the input kernel k:

        min ½ ‖W‖² + C Σ_i ξ_i,  <ψ(y_i), Wφ(x_i) (+ b)> >= 1 - ξ_i,  ξ >= 0
        dual: min ½ α'(K_y ∘ K)α - 1'α,  0 <= α <= C  (and Σ_i α_i ψ(y_i) = 0 with an intercept)

    with one variable per sample. The prediction for x is the candidate with the largest score
    <ψ(y), Wφ(x)> = Σ_i α_i k_y(y, y_i) k(x_i, x).

    With indicator vectors as outputs and the linear output kernel it equals `MaxMarginClassifier` with
    ``class_vectors="indicator"``.

    Parameters
    ----------
    {kernel}
    {C}
    output_kernel : Kernel, str, callable or array, default="rbf"
        Kernel k_y between outputs: a kernel on numbers, strings or trees; or the matrix between all candidates, with
        positions in it as y. With "linear", the longest candidates have the largest scores, and a part that all
        outputs share meets the margins by itself; ``normalize(center(kernel))`` of `consilience.kernels` removes both.
    candidates : sequence, optional
        Possible predictions, each once. Default: the different outputs among the training samples.
    {combine}
    fit_intercept : bool, default=False
        Whether to learn b. An error is raised if b alone would meet all margins.
    {n_components_joint}
    {tol_margin}
    {max_iter_margin}
    {cache_size}
    {warm_start}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    candidates_ : array
        Candidates.
    {dual_coef_margin}
    {support_}
    intercept_ : array of shape (n_candidates,)
        <ψ(y), b> of each candidate; zeros without an intercept.
    coef_ : dict of array
        With `n_components`, or for linear kernels of many samples: Σ α_i φ(x_i) over the samples of each output, one
        column per output.
    {kernels_}
    output_kernel_ : Kernel or array
        Kernel between outputs, with numbers for all parameters.
    {solution_dual}

    See Also
    --------
    MaxMarginClassifier : The same for classes; its notes describe missing views and scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import MaxMarginRegressor
    >>> from consilience.kernels import Spectrum, normalize
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> words = ["anna", "hanna", "otto", "ottokar"]
    >>> model = MaxMarginRegressor(output_kernel=normalize(Spectrum(2)))
    >>> model.fit(X, words).predict([[0.05], [1.05]]).tolist()
    ['anna', 'otto']
    >>> [word for word, score in model.rank([[0.05]], top=2)[0]]
    ['anna', 'hanna']
    """

    _cpu_only = True
    _parameter_constraints = constraints(
        "C", "fit_intercept", "n_components", "tol", "cache_size", "warm_start", "random_state", "verbose",
        max_iter=[Interval(Integral, 1, None, closed="left")],
    )  # fmt: skip

    kernel: Any = "rbf"
    _: KW_ONLY
    C: float = 1.0
    output_kernel: Any = "rbf"
    candidates: Any = None
    combine: Any = "sum"
    fit_intercept: bool = False
    n_components: float | None = None
    tol: float = 1e-3
    max_iter: int = 10_000
    cache_size: float = 1000
    warm_start: bool = False
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the operator to samples and their outputs.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and are collected in memory; they
            are refused if they do not fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or a sequence of objects
            Outputs, missing (NaN, None) for samples to leave out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss. A weight of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            X, y, sample_weight = collect_blocks(self, X, y, sample_weight)
            X = read_views_to_fit(self, X, sample_weight)
            s = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
            kernel, matrix = read_output_kernel(self.output_kernel)
            outputs = read_outputs(in_order_of(X, y, "y"), len(X), matrix, s)
            data = select_labeled(self, X, outputs.of, s)
            self._outputs = outputs.values
            labels = self._read_labels(data.Y, kernel, matrix)
            self.candidates_ = read_candidates(self.candidates, outputs, matrix)
            held = labels.n * len(self.candidates_) <= HELD**2
            self._score_map = self._output_gram(self.candidates_) if held else None
            if self.fit_intercept:
                check_intercept(labels)
            start = previous_alpha(self, data)
            design = margin_design(self, data, labels)
            solve = solve_margin_intercept if self.fit_intercept else solve_margin
            solution = solve(
                design.arrays, labels, self.C * data.u, tol=self.tol, max_iter=int(self.max_iter), x0=start
            )
            store_margin(self, data, design, solution, labels.n)
            self.intercept_ = np.zeros(len(self.candidates_))
            if self.fit_intercept:  # b = Σ_t w_t ψ(y_t)
                self.intercept_ = self._scores(lstsq(labels.as_vectors().T, solution.x[2]))
            return self

    def _read_labels(self, of: np.ndarray, kernel: Kernel | None, matrix: np.ndarray | None) -> LabelKernel:
        """Return the kernel between the different outputs; store it with numbers for all parameters."""
        if matrix is not None:
            self.output_kernel_: Any = matrix
            return LabelKernel.of_matrix(of, matrix)
        block = as_block(self._outputs)
        with _blocks.naming("y", "Outputs"):
            resolved = kernel.resolved(block)  # type: ignore[union-attr]
            resolved.diag(block[:1])
        self.output_kernel_ = resolved
        if type(resolved) is Linear and not sp.issparse(block):
            return LabelKernel.of_vectors(of, np.asarray(block, dtype=np.float64))
        if len(self._outputs) > HELD:
            return LabelKernel(
                of, len(self._outputs), lambda which: np.asarray(resolved(_blocks.take(block, which), block)), None
            )
        A = np.asarray(resolved(block), dtype=np.float64)
        if resolved.may_be_indefinite and not is_positive(A):
            raise ValueError(
                f"`output_kernel`: {resolved!r} is not positive semi-definite between the outputs in y. Use another "
                "kernel, or give the matrix between all candidates; `consilience.kernels.nearest_psd` makes one."
            )
        return LabelKernel.of_matrix(of, A)

    def _output_gram(self, candidates: np.ndarray) -> np.ndarray:
        """Return k_y between the training outputs and candidates."""
        if isinstance(self.output_kernel_, np.ndarray):
            return self.output_kernel_[:, candidates.astype(int)]
        return np.asarray(self.output_kernel_(as_block(self._outputs), as_block(candidates)))

    def _scores(self, sums: np.ndarray) -> np.ndarray:
        """Return the scores of the candidates from the sums of each output, along the last axis."""
        return sums @ (self._output_gram(self.candidates_) if self._score_map is None else self._score_map)

    def _score_blocks(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the candidates' scores, some samples at a time."""
        X = read_views_to_predict(self, X)
        size = max(1, min(BLOCK, 2**24 // len(self.candidates_)))
        for start in range(0, len(X), size):
            sums = margin_outputs(self, X[start : start + size], len(self._outputs))
            yield finite_outputs(self, self._scores(sums) + self.intercept_)

    def candidate_scores(self, X: Any) -> np.ndarray:
        """Return the score of every candidate.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples, n_candidates)
            <ψ(y), Wφ(x)>, plus the intercept, for each y of ``candidates_``.
        """
        return np.concatenate(list(self._score_blocks(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the candidate with the largest score.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        if isinstance(X, RowBlocks):
            return np.concatenate([self.predict(block.X) for block in X])
        best = np.concatenate([scores.argmax(axis=1) for scores in self._score_blocks(X)])
        return self.candidates_[best]

    def rank(self, X: Any, top: int = 5) -> list[list[tuple[Any, float]]]:
        """Return the best candidates of each sample, the best first, with their scores.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        top : int, default=5
            Number of candidates per sample.

        Returns
        -------
        list of list of (candidate, score)
            Ranking of each sample.
        """
        if not (isinstance(top, Integral) and top >= 1):
            raise ValueError(f"`top` must be an integer of at least 1; got {top!r}.")
        ranked = []
        for scores in self._score_blocks(X):
            best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
            names = self.candidates_.tolist()
            ranked += [
                [(names[k], float(row[k])) for k in order] for row, order in zip(scores, best.tolist(), strict=True)
            ]
        return ranked

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² where outputs are numbers, the accuracy where they are objects or positions.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like
            Outputs; samples where they are missing are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            Score.
        """
        X, y, sample_weight = collect_blocks(self, X, y, sample_weight)
        X, y, sample_weight = read_to_score(self, X, y, sample_weight)
        predictions = self.predict(X)
        _, matrix = read_output_kernel(self.output_kernel)
        outputs = read_outputs(y, len(predictions), matrix)
        labeled = np.flatnonzero(outputs.labeled)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        known, predictions = outputs.values[outputs.of[labeled]], predictions[labeled]
        if matrix is not None or self._outputs.dtype.kind in "UO":
            right = [repr(a) == repr(b) for a, b in zip(predictions.tolist(), known.tolist(), strict=True)]
            return float(np.average(right, weights=weights))
        return float(r2_score(known, predictions.reshape(known.shape), sample_weight=weights))

    def _view_outputs(self, X: Views) -> np.ndarray:
        return self._scores(margin_view_outputs(self, X, len(self._outputs)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
