"""Banded ridge: kernel ridge for many outputs, each with its own penalty and its own weights of the views."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from .._backend import few_threads, is_device_array, like, to_numpy
from ..kernels import reference_views, view_grams
from ..kernels.scalar import Linear
from ..solvers.banded_ridge import Chosen, search_banded, simplex_draws
from ..solvers.certificates import Solution
from ..solvers.design import BLOCK
from ..solvers.linalg import multiply
from ..views import _blocks
from ..views._docs import shared_docs
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import to_float64
from ..views.estimator import ViewRegressor, finite_outputs, presence
from ..views.repeated import tell_repeated
from ..views.row_blocks import RowBlocks
from ..views.validation import read_groups, read_to_score, read_views_to_fit, read_views_to_predict, read_weights
from ._banded import (
    KernelScaling,
    checked_alphas,
    held_out_folds,
    is_single_precision,
    output_moments,
    read_many_outputs,
    standard_grams,
)
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, dense_block, select_training_rows
from ._memory import plan_memory

__all__ = ["BandedRidgeCV"]

_OUTPUTS = 4096  # outputs that are predicted at a time


def _product_on_host(A: Any, B: np.ndarray) -> np.ndarray:
    """Return AB as a NumPy array, multiplied on the device of A; the coefficients of many outputs are on the host."""
    return to_numpy(multiply(A, like(B, A))) if is_device_array(A) else np.asarray(A @ B)


@shared_docs
@dataclass(eq=False, repr=False)
class BandedRidgeCV(ViewRegressor, BatchEstimator):
    """Banded ridge: a penalty and weights of the views for each of many outputs, by exact held-out scores.

    Every output p is predicted by b + Σ_v γ_v f_v, which solves, with the kernels k_v of the views,

        min_{f_v, b} Σ_i (y_ip - b - Σ_v γ_v f_v(x_i))² + a Σ_v γ_v ‖f_v‖²,

    kernel ridge regression with the kernel Σ_v γ_v k_v, γ_v >= 0 and Σ_v γ_v = 1. Each kernel is centered and scaled
    so that k_v(x, x) has the mean 1 over the training samples that have the view. With linear kernels it is ridge
    regression with the penalty a / γ_v on the coefficients of each view, known as banded ridge, or group ridge with
    several penalties (Nunez-Elizalde, Huth and Gallant 2019; Dupré la Tour, Eickenberg, Nunez-Elizalde and Gallant
    2022). For outputs such as voxels or genes.

    Weights γ are drawn at random: equal ones, each view alone, then draws from Dirichlet distributions. For each draw
    one eigendecomposition serves all outputs and penalties. It gives the predictions at samples that were left out
    exactly, without refits. Each output takes the pair (γ, a) with the smallest squared held-out error, the largest
    penalty of equal ones. Parameters and scales of kernels come from all training samples.

    With one view it equals ``sklearn.kernel_ridge.KernelRidge`` with the scaled kernel and an intercept, and with one
    linear view ``sklearn.linear_model.RidgeCV(alphas, alpha_per_target=True)`` with penalties times the scale.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="linear"
        Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf".
    alphas : array-like, default=(1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6)
        Penalties a to try. Many cost little more than few.
    n_iter : int, default=20
        Number of weights γ to try. With one view there is one.
    cv : int, splitter or iterable, optional
        Folds of the held-out predictions. Default: leave-one-out, or leave-one-group-out if `fit` gets groups. An
        integer is a number of folds, of whole groups if `fit` gets groups.
    n_outputs_batch : int, optional
        Number of outputs that are scored at a time. It changes memory and time, not the result. By default, the
        arrays of a batch take 64 MiB, or 2 GiB on a device.
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    alpha_ : float or array of shape (n_outputs,)
        Chosen penalty a of each output.
    view_weights_ : array of shape (n_views_used,) or (n_views_used, n_outputs)
        Chosen weights γ of the views, for each output. Views missing in every training sample are omitted.
    best_score_ : float or array of shape (n_outputs,)
        R² of the held-out predictions with the chosen pair. The choice makes it optimistic.
    cv_scores_ : array of shape (n_draws,) or (n_draws, n_outputs)
        R² of the held-out predictions for each draw of weights, at its best penalty.
    draws_ : array of shape (n_draws, n_views_used)
        Weights γ that were tried.
    dual_coef_ : array of shape (n_samples_used, n_outputs)
        Coefficients c of f_v(x) = Σ_i k_v(x, x_i) c_i with the scaled kernels; not set with `coef_`.
    coef_ : dict of array of shape (n_columns, n_outputs)
        With linear kernels only, if the views have no more columns than there are samples: coefficients of each f_v.
        `primal_coef` returns them in other cases too.
    intercept_ : array of shape (n_outputs,)
        Intercept b. The f_v have the mean 0 over the training samples.
    {support_}
    {kernels_}
    {solution_}

    See Also
    --------
    MultipleKernelRidge : Weights of kernels by a convex program with a certificate, for few outputs.
    BandedR2Display : R² of each output, divided among the views.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import BandedRidgeCV, Views
    >>> rng = np.random.default_rng(0)
    >>> X = Views(motion=rng.normal(size=(100, 5)), words=rng.normal(size=(100, 8)))
    >>> Y = np.hstack([X["motion"] @ rng.normal(size=(5, 3)), X["words"] @ rng.normal(size=(8, 3))])
    >>> Y = Y + rng.normal(size=Y.shape)
    >>> model = BandedRidgeCV(random_state=0).fit(X[:70], Y[:70])
    >>> model.view_weights_.round(1)[0]  # of the view "motion", for six outputs
    array([1., 1., 1., 0., 0., 0.])
    >>> bool(model.score(X[70:], Y[70:]) > 0.6)
    True
    """

    _parameter_constraints = constraints(
        "random_state", "verbose", n_iter=[Interval(Integral, 1, None, closed="left")],
        n_outputs_batch=[Interval(Integral, 1, None, closed="left"), None],
    )  # fmt: skip

    kernel: Any = "linear"
    _: KW_ONLY
    alphas: Any = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
    n_iter: int = 20
    cv: Any = None
    n_outputs_batch: int | None = None
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose weights and penalty of each output, and fit all outputs.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples. Where a view is missing, its function is 0, its mean.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. NaN in single outputs is allowed: outputs that are known for the same samples are fitted together.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses, of held-out errors too.
        groups : array-like of shape (n_samples,), optional
            Group of each sample, such as the run of an experiment. Samples of one group are held out together.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            alphas = checked_alphas(self.alphas)
            data, groups = self._read(X, y, sample_weight, groups)
            plan_memory(self, data)
            folds = held_out_folds(self, data, groups)
            draws = self._draws()
            with few_threads(len(data.order)):
                grams, views = standard_grams(data)
                chosen = search_banded(
                    grams, data.Y, data.s, draws, alphas, folds, batch=self.n_outputs_batch
                )  # fmt: skip
            return self._store(data, draws, chosen, views)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[TrainingData, np.ndarray | None]:
        """Validate samples, targets, weights and groups; leave out samples without a target or with the weight 0."""
        if isinstance(X, RowBlocks):
            raise TypeError(
                f"{type(self).__name__} needs all samples at once, because it holds kernel matrices between them; got "
                "RowBlocks. Give Views, or use CoRegularizedRidge with `n_components`."
            )
        self.__dict__.pop("kernels_", None)
        X = read_views_to_fit(self, X, sample_weight)
        y = in_order_of(X, to_numpy(y) if is_device_array(y) else y, "y")
        y = y if hasattr(y, "dtype") or y is None else np.asarray(y)
        s = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
        Y, labeled = read_many_outputs(y, len(X), s)
        self._one_output = np.ndim(y) == 1
        n = len(X)
        s = np.where(labeled, s, 0.0)
        groups = read_groups(in_order_of(X, groups, "groups"), n)
        X, kernels, order = select_training_rows(self, X, labeled, s, use_unlabeled=False)
        if len(order) < 2:
            raise ValueError(
                f"{type(self).__name__} leaves samples out to choose penalties, so it needs 2 samples with a target "
                f"and a weight above 0 at least; got {len(order)} sample."
            )
        Y = Y if np.array_equal(order, np.arange(n)) else Y[order]
        few: Any = np.flatnonzero((~np.isnan(Y)).sum(axis=0) < 2) if np.isnan(Y).any() else ()
        if len(few):
            raise ValueError(f"Output {few[0]} of y has fewer than 2 targets. Leave it out, or give more of them.")
        if groups is None and self.cv is None:
            return TrainingData(X, kernels, order, n, s[order], Y, s[order]), tell_repeated(X, "Pass `groups` or `cv`.")
        return TrainingData(X, kernels, order, n, s[order], Y, s[order]), None if groups is None else groups[order]

    def _draws(self) -> np.ndarray:
        """Return the weights to try; they follow the names of the views, not their order."""
        used = self._used_views
        draws = simplex_draws(len(used), int(self.n_iter), check_random_state(self.random_state))
        return draws[:, np.argsort(np.argsort(used))]

    def _store(self, data: TrainingData, draws: np.ndarray, chosen: Chosen, views: KernelScaling) -> Self:
        for name in ("dual_coef_", "support_", "coef_", "X_fit_", "_features"):
            self.__dict__.pop(name, None)
        one = self._one_output
        P = np.arange(len(chosen.draw))
        self.draws_ = draws
        self.cv_scores_: Any = chosen.scores[:, 0] if one else chosen.scores
        best = chosen.scores[chosen.draw, P]
        self.alpha_: Any = float(chosen.alpha[0]) if one else chosen.alpha
        self.best_score_: Any = float(best[0]) if one else best
        weights = draws[chosen.draw].T
        self.view_weights_ = weights[:, 0].copy() if one else weights
        self.intercept_ = chosen.intercept
        self.support_ = data.order
        self._scales, self._shares = views.scales.astype(views.shares.dtype), views.shares
        duals = chosen.coefficients
        sums = views.shares.astype(bool).astype(duals.dtype) @ duals  # not 0 where a view is missing
        self._dual_sums = sums
        centered = views.means @ duals - np.sum(views.means * views.shares, axis=1, keepdims=True) * sums
        self._offsets = -centered / self._scales[:, None]
        X = data.X if is_single_precision(data.X) else to_float64(data.X)
        self.X_fit_, self.dual_coef_ = reference_views(self.kernels_, X), duals
        widths = [self._known[name][1] for name in X.names]
        if self._is_linear() and sum(widths) <= len(X):
            self.coef_ = self.primal_coef()
            del self.X_fit_, self.dual_coef_, self.support_, self._shares, self._dual_sums
        self.solution_ = Solution(None, None, len(draws), "exact")
        return self

    # -- coefficients
    def _is_linear(self) -> bool:
        return all(type(kernel) is Linear for kernel in self.kernels_.values())

    def _duals(self, v: int, columns: slice = slice(None)) -> np.ndarray:
        """Return the coefficients of one view's function with its kernel as given, centered over its samples."""
        dual = self.dual_coef_[:, columns] / self._scales[v]
        if self._dual_sums[v].any():  # also by rounding, which small penalties enlarge
            if not self._shares[v].all():
                dual = np.where((self._shares[v] > 0)[:, None], dual, 0)
            dual = dual - self._shares[v][:, None] * (self._dual_sums[v, columns] / self._scales[v])
        return dual

    def primal_coef(self) -> dict[str, np.ndarray]:
        """Return the coefficients of the columns of each view, with linear kernels.

        Returns
        -------
        dict of array of shape (n_columns, n_outputs)
            f_v(x) is x times these, up to a constant. The prediction has `view_weights_` times them.
        """
        if not self._is_linear():
            others = {name: kernel for name, kernel in self.kernels_.items() if type(kernel) is not Linear}
            name = next(iter(others))
            raise ValueError(
                f"Coefficients of columns need linear kernels; the view '{name}' has {others[name]!r}. Use "
                "`dual_coef_`."
            )
        if hasattr(self, "coef_"):
            return dict(self.coef_)
        found = {}
        for v, name in enumerate(self._used_views):
            block, rows = self.X_fit_.block(name), np.flatnonzero(self.X_fit_.present(name))
            block, dual = _blocks.take(block, rows), self._duals(v)[rows]
            found[name] = _product_on_host(block.T, dual)
        return found

    # -- prediction
    def _parts(self, X: Views) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Yield f_v(x) by blocks of samples and outputs: rows, outputs and (rows, m, outputs); 0 for missing views."""
        P = self._offsets.shape[1]
        for start in range(0, len(X), BLOCK):
            rows = slice(start, min(start + BLOCK, len(X)))
            part = X[rows]
            known, present = [self._known_values(part, name) for name in self._used_views], presence(part)
            for first in range(0, P, _OUTPUTS):
                columns = slice(first, min(first + _OUTPUTS, P))
                out = np.empty((len(part), len(known), columns.stop - first), dtype=self._offsets.dtype)
                for v, (name, values) in enumerate(zip(self._used_views, known, strict=True)):
                    right = self.coef_[name][:, columns] if "coef_" in vars(self) else self._duals(v, columns)
                    out[:, v] = _product_on_host(values, right) + self._offsets[v, columns]
                    out[~present[:, v], v] = 0
                yield rows, columns, out

    def _known_values(self, X: Views, name: str) -> Any:
        """Return what the coefficients of a view multiply: its columns, features or kernel with training samples."""
        if "_features" in vars(self):
            features = self._features.transform(X)
            return dense_block(features, name, self.coef_[name])
        if hasattr(self, "coef_"):
            block = X.block(name)
            if sp.issparse(block):
                return block
            return dense_block(X, name, self.coef_[name])
        return view_grams({name: self.kernels_[name]}, X, self.X_fit_)[0]

    def _view_outputs(self, X: Views) -> np.ndarray:
        found = np.empty((len(X), len(self._used_views), self._offsets.shape[1]), dtype=self._offsets.dtype)
        for rows, columns, out in self._parts(X):
            found[rows, :, columns] = out
        return found

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        outputs = np.empty((len(X), self._offsets.shape[1]), dtype=self._offsets.dtype)
        weights = self._weights_by_output()
        for rows, columns, out in self._parts(X):
            outputs[rows, columns] = np.einsum("nmp,mp->np", out, weights[:, columns]) + self.intercept_[columns]
        return outputs

    def _weights_by_output(self) -> np.ndarray:
        return self.view_weights_.reshape(len(self._used_views), -1).astype(self._offsets.dtype)

    # -- scores
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R², the mean of `score_by_output`; outputs that are known for fewer than 2 samples are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets; NaN in single outputs is allowed.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            R², averaged over the outputs.
        """
        if isinstance(X, RowBlocks):
            return super().score(X, y, sample_weight)
        scores = self.score_by_output(X, y, sample_weight)
        return float(np.nanmean(scores)) if not np.isnan(scores).all() else float("nan")

    def score_by_output(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return R² of the predictions of each output.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets; NaN in single outputs is allowed.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        array of shape (n_outputs,)
            R²; NaN for outputs that are known for fewer than 2 samples.
        """
        return self._explained(X, y, sample_weight).sum(axis=0)

    def r2_by_view(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return R² of each output, divided among the views; the parts add to R².

        With g_v = γ_v f_v + (b - ȳ) / m, the part of view v is Σ_i g_v(x_i) (2 (y_i - ȳ) - Σ_w g_w(x_i)) over
        Σ_i (y_i - ȳ)², known as the product measure (Dupré la Tour et al. 2022). A part is negative where the view
        makes predictions worse.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples, such as test samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets; NaN in single outputs is allowed.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        array of shape (n_views_used,) or (n_views_used, n_outputs)
            Parts of R².
        """
        parts = self._explained(X, y, sample_weight)
        return parts[:, 0] if self._one_output else parts

    def _explained(self, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
        """Return the parts of R² by view, (m, P)."""
        X, y, sample_weight = read_to_score(self, X, y, sample_weight)
        X = read_views_to_predict(self, X)
        s = read_weights(sample_weight, len(X))
        Y, _ = read_many_outputs(to_numpy(y) if is_device_array(y) else y, len(X))
        m, P = self._offsets.shape
        if Y.shape[1] != P:
            raise ValueError(f"y has {Y.shape[1]} outputs; {type(self).__name__} was fitted on {P}.")
        known, total, means, variation = output_moments(Y, s)
        weights, shares = self._weights_by_output(), np.zeros((m, P))
        for rows, columns, out in self._parts(X):
            parts = out.astype(np.float64) * weights[:, columns]
            parts += (self.intercept_[columns] - means[columns]) / m
            finite_outputs(self, parts.sum(axis=1))
            own = Y[rows, columns]
            slopes = np.where(np.isnan(own), 0.0, 2 * (own - means[columns]) - parts.sum(axis=1)) * s[rows, None]
            shares[:, columns] += np.einsum("np,nmp->mp", slopes, parts)
        found = np.divide(shares, variation, out=np.zeros_like(shares), where=variation > 0)
        # outputs that do not vary: 1 if they are predicted exactly, else 0, as in scikit-learn
        found[:, (variation == 0) & (np.abs(shares.sum(axis=0)) == 0)] = 1 / m
        found[:, (known < 2) | (total == 0)] = np.nan
        return found

    def _is_consistent(self) -> bool:
        """Tell whether arrays that were read from a file fit together."""
        m, P = len(self._used_views), len(self.intercept_)
        shapes = [self._offsets.shape == (m, P), self._weights_by_output().shape == (m, P), self._scales.shape == (m,)]
        if "coef_" in vars(self):
            fits = isinstance(self.coef_, dict) and tuple(self.coef_) == tuple(self._used_views)
            shapes += [fits, all(W.ndim == 2 and W.shape[1] == P for W in self.coef_.values())]
        else:
            n = len(self.X_fit_)
            shapes += [self.dual_coef_.shape == (n, P), self._shares.shape == (m, n), self._dual_sums.shape == (m, P)]
        arrays = [self.intercept_, self._offsets, self._scales]
        return all(shapes) and all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays)
