"""The matrix multi-view perceptron, and its orthogonal variant for views of any kind."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..kernels.given import as_kernel
from ..views import _blocks
from ..views._docs import shared_docs
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ._arrays import Rule
from ._bounds import BoundSetting, ComparedSamples
from ._dual import KernelMachine
from ._frame import OnlineEstimator
from ._grams import Grams
from ._linear import LinearMachine
from ._machine import Machine, from_machine
from ._parameters import CONSTRAINTS, budget_of, has_intercept

__all__ = ["MatrixPerceptron", "OrthogonalPerceptron"]


@shared_docs
@dataclass(eq=False, repr=False)
class OrthogonalPerceptron(ViewClassifier, OnlineEstimator):
    """OMMP, the orthogonal matrix multi-view perceptron (Fornoni 2009, chapter 4): views of any kind, a kernel each.

    Each view k has a vector v_k in the space of its kernel. A mistake, y f(x) <= margin, adds eta0·y x_k to each. Views
    with longer vectors get larger factors, p >= 1:

        f(x) = Σ_k F_k <v_k, x_k>,   F_k = (‖v_k‖² / ‖V‖²)^(p-1),   ‖V‖² = (Σ_k ‖v_k‖^2p)^(1/p)

    It is the matrix perceptron on matrices whose columns are orthogonal, and mirror descent with the group norm ‖V‖.
    With p = 1 it is the perceptron on the sum of the kernels, with one view the perceptron for every p. Missing views
    add nothing. With several classes there is one V each.

    `prior_norms` add to the norms: F_k = ((‖v_k‖² + b_k) / ·)^(p-1) (appendix A.2, "leaving the span"). The thesis asks
    whether the b_k can be learned. With "learned" they are

        b_k = (R - Σ_t ‖V_t‖²) q_k / (T ‖q‖_p),   R = Σ 2 τ y f(x) + (2p-1) τ² ‖X‖²

    after each update, for T vectors V_t. R sums over the updates by ±τ what the squared norm can grow. q_k - 1 counts
    the updates at which view k alone was right, y <v_k, x_k> > 0. So views that are right more often get more weight,
    and all get similar weights, as with p = 1, while V is short for its number of updates.

    ``variant="passive-aggressive"`` steps where the hinge loss ℓ is above 0, by τ = min(C, ℓ / ((2p-1)‖X‖²)). For p = 1
    it is PA-I.

    For any U with hinge loss L, the number of mistakes is at most L + A + √(A L), A = (2p-1) (X‖U‖)². Here X is the
    largest group norm of a sample and ‖U‖ the norm with the conjugate exponent (`certificate`). The same bound holds
    for learned prior norms; given ones add ‖U‖ ‖√b‖, with the group norm of √b.

    Parameters
    ----------
    {linear_kernel}
    p : float, default=2.0
        Exponent of the factors, at least 1.
    prior_norms : float, dict or "learned", optional
        Prior norms b_k >= 0, for all views or by view. "learned" sets them from the samples so far, with the mistake
        bound of no prior norms. By default, there are none. They have no effect for p = 1 or one view.
    variant : {"perceptron", "passive-aggressive"}, default="perceptron"
        Whether to step at mistakes, or by the hinge loss; the latter does not use `margin` and `eta0`.
    C : float, default=1.0
        Longest step of the passive-aggressive variant.
    {average}
    {margin}
    {eta0}
    {view_intercepts}
    {budget}
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    view_weights_ : array of shape (n_views,)
        Factors F_k of the last hypothesis, the mean over classes.
    {linear_coef_}
    {kept_samples_}
    {intercept_}
    {n_dropped_}
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from consilience import OrthogonalPerceptron
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = OrthogonalPerceptron("rbf", average=True, random_state=0)
    >>> model.fit(X, y).view_weights_.shape
    (3,)
    """

    _parameter_constraints = {
        **CONSTRAINTS,
        "prior_norms": [Interval(Real, 0, None, closed="left"), dict, StrOptions({"learned"}), None],
        "variant": [StrOptions({"perceptron", "passive-aggressive"})],
    }
    coef_ = from_machine("coef_")
    intercept_ = from_machine("intercept_")
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    n_dropped_ = from_machine("n_dropped_")

    kernel: Any = "linear"
    _: KW_ONLY
    p: float = 2.0
    prior_norms: Any = None
    variant: str = "perceptron"
    C: float = 1.0
    average: Any = False
    margin: float = 0.0
    eta0: float = 1.0
    fit_intercept: Any = "auto"
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        given = self.prior_norms if isinstance(self.prior_norms, Mapping) else {}
        unknown = [name for name in given if name not in X.names]
        if whole and unknown:
            raise ValueError(f"`prior_norms` names the view '{unknown[0]}'; the views are {_blocks.quoted(X.names)}.")
        for name, value in given.items():
            if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"`prior_norms` must be at least 0 and finite; got {value!r} for the view '{name}'.")
        gram = next((name for name in X.names if X.kind(name) == "gram"), None)
        if isinstance(self.budget, Integral) and self.p != 1 and gram is not None:
            raise ValueError(
                f"budget={self.budget!r} needs kernels between the samples kept, but view '{gram}' is a Gram matrix, "
                "of which only positions are kept. Use budget=None, or p=1."
            )

    @property
    def _multi_label(self) -> bool:  # type: ignore[override]
        return self._averages() != "voted" and not isinstance(self.prior_norms, str)  # learned ones join the outputs

    def _is_primal(self) -> bool:
        return self._has_linear_kernel() and self._averages() != "voted"

    def _new_machine(self, n_outputs: int) -> Machine:
        average, prior = self._averages(), self.prior_norms
        prior = dict(prior) if isinstance(prior, Mapping) else prior  # a copy: the machine keeps it
        if self._is_primal():
            ones = has_intercept(self)
            return LinearMachine("views", n_outputs, p=self.p, average=average, fit_intercept=ones, prior_norms=prior)
        grams = Grams("views", intercept=has_intercept(self))
        return KernelMachine(grams, n_outputs, p=self.p, average=average, budget=budget_of(self), prior_norms=prior)

    @property
    def _pair_scale(self) -> float:  # type: ignore[override]
        return 0.5 if self.variant == "passive-aggressive" else 1.0

    def _rule(self) -> Any:
        if self.variant == "passive-aggressive":
            return Rule(1.0, 0.0, float(self.C), 0.0, 2 * float(self.p) - 1)  # 2p - 1 bounds the curvature of ½‖V‖²
        return super()._rule()

    @property
    def view_weights_(self) -> np.ndarray:
        """Factors F_k of the last hypothesis, the mean over classes."""
        check_is_fitted(self, "n_samples_seen_")
        factors = self._machine.factors
        weights = dict(zip(factors.names, factors.F.mean(axis=1), strict=True))
        return np.array([weights.get(name, 0.0) for name in self.view_names_in_])

    def _bound_setting(self) -> BoundSetting | None:
        if self._machine.n_dropped:
            return None
        variant, p = "PA-I" if self.variant == "passive-aggressive" else None, float(self.p)
        start, factors = 0.0, self._machine.factors
        # for p = 1 prior norms have no effect, and learned ones stay below what the bound allows anyway
        if p != 1 and not isinstance(self.prior_norms, str) and factors.prior.any():
            if variant is not None and self._n_late:  # the vectors are halved when a third class joins, b is not
                return None
            top = factors.prior.max()
            start = (factors.F.shape[1] * top * float(np.sum((factors.prior / top) ** p)) ** (1 / p)) ** 0.5
        return BoundSetting(2 * p, float(self.margin), float(self.eta0), variant, float(self.C), start)


@shared_docs
@dataclass(eq=False, repr=False)
class MatrixPerceptron(ViewClassifier, OnlineEstimator):
    """MMP, the matrix multi-view perceptron (Cavallanti, Cesa-Bianchi and Gentile 2008; Fornoni 2009, chapter 3).

    A sample is a matrix X = [x_1 .. x_K] with one column for each view, all of d rows. A mistake, y <W, X> <= margin,
    does V <- V + eta0·y X, and, p >= 1:

        W = ∇ ½‖V‖²_S2p = V F,   F = (V'V / ‖V‖²_S2p)^(p-1),   ‖V‖²_S2p = (tr (V'V)^p)^(1/p)

    Only the K x K matrices V'X and V'V are needed, so kernels k(x_i, z_j) between every two views work too. They take
    K² kernel values per pair of samples, where `OrthogonalPerceptron` takes K. With p = 1 it is the perceptron on the
    sum of the views, with one view the perceptron for every p. Where the columns of every X are orthogonal it is
    `OrthogonalPerceptron`, which accepts views of any kind. Missing views are columns of zeros. With several classes
    there is one V each.

    For any U with hinge loss L, the number of mistakes is at most L + A + √(A L), A = (2p-1) (X‖U‖)². Here X is the
    largest Schatten 2p-norm of a sample and ‖U‖ the conjugate norm; 3.1.6 of the thesis is the case U/K
    (`certificate`).

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        The one kernel between all views. With "linear", the estimator keeps weights instead of samples.
    p : float, default=2.0
        Exponent of the factors, at least 1.
    unequal : {"refuse", "pad", "repeat"}, default="refuse"
        How views of different widths are handled: refused, padded with zeros to the widest, or repeated up to the
        widest. In a stream, views can be padded for a wider view that comes later, but not repeated.
    {average}
    {margin}
    {eta0}
    {view_intercepts}
    {budget}
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    {linear_coef_}
    {kept_samples_}
    {intercept_}
    {n_dropped_}
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from consilience import MatrixPerceptron
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = MatrixPerceptron(p=2, average=True, random_state=0).fit(X, y)
    >>> sorted(model.coef_) == sorted(X.names)
    True
    """

    _parameter_constraints = {**CONSTRAINTS, "unequal": [StrOptions({"refuse", "pad", "repeat"})]}
    coef_ = from_machine("coef_")
    intercept_ = from_machine("intercept_")
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    n_dropped_ = from_machine("n_dropped_")

    kernel: Any = "linear"
    _: KW_ONLY
    p: float = 2.0
    unequal: str = "refuse"
    average: Any = False
    margin: float = 0.0
    eta0: float = 1.0
    fit_intercept: Any = "auto"
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    def _is_primal(self) -> bool:
        return self._has_linear_kernel() and self._averages() != "voted"

    def _begin(self, *given: Any) -> None:
        super()._begin(*given)
        self._width: int = self._first_width  # of the widest view so far

    def _new_machine(self, n_outputs: int) -> Machine:
        average, ones = self._averages(), has_intercept(self)
        if self._is_primal():
            return LinearMachine("pairs", n_outputs, p=self.p, average=average, fit_intercept=ones)
        grams = Grams("pairs", intercept=ones)
        return KernelMachine(grams, n_outputs, p=self.p, average=average, budget=budget_of(self))

    # -- views of one width
    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        widths = _widths(X)
        for name in widths:
            if X.kind(name) not in ("dense", "sparse"):
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)}; the matrix perceptron needs numbers, one column of a matrix "
                    "for each view. OrthogonalPerceptron takes a kernel for each view."
                )
        started = hasattr(self, "n_samples_seen_")
        first = {name: 0 if whole else int(X.present(name).argmax()) for name in widths}
        # views of the first sample set the width
        at_once = [widths[name] for name, row in first.items() if row == min(first.values())]
        widest = self._width if started and not whole else max(at_once, default=1)
        self._first_width = widest
        for name in sorted(first, key=lambda name: first[name]):
            if widths[name] > widest and self.unequal == "pad":
                widest = widths[name]
            if widths[name] > widest or (widths[name] < widest and self.unequal == "refuse"):
                raise ValueError(
                    f"View '{name}' has {widths[name]} columns, the widest view so far {widest}: the matrix perceptron "
                    "needs views of one width. Use OrthogonalPerceptron, which takes views of any width, or "
                    "unequal='pad'; unequal='repeat' is for views that are narrower than those before them."
                )

    def _equal(self, X: Views) -> Views:
        """Return views of fewer columns padded with zeros, or repeated; linear machines need no padding."""
        numbers = [name for name in X.names if X.kind(name) in ("dense", "sparse")]
        short = [name for name in numbers if _blocks.width(X.block(name)) < self._width]
        if not short or (self.unequal == "pad" and self._is_primal()):
            return X
        blocks = {n: _widened(X.block(n), self._width, self.unequal) if n in short else X.block(n) for n in X.names}
        return Views._of(blocks, len(X), X.mask, {}, X.sample_names)

    def _ready(self, X: Views) -> Any:
        widest = max(_widths(X).values(), default=0)
        if widest > self._width:
            self._width = widest
            if not self._is_primal():  # the support is padded too
                support = self._machine.support
                support.replace([self._equal(part) for part in support.parts])
        return super()._ready(self._equal(X))

    def _add_views(self, X: Views) -> None:
        """Make room for new views, which all have the kernel of the first."""
        for kernel in list(self.kernels_.values())[:1]:
            self.kernels_ = {**self.kernels_, **{name: kernel for name in X.names if X.present(name).any()}}
        super()._add_views(X)

    def _resolve_kernels(self, X: Views) -> None:
        """Compute the parameters of the one kernel from the samples of all views."""
        if not self._is_primal():
            X = self._equal(X)
            shown = [name for name in X.names if X.present(name).any()]
            parts = [_blocks.take(X.block(name), np.flatnonzero(X.present(name))) for name in shown]
            if all(sp.issparse(part) for part in parts):
                samples = sp.vstack(parts, format="csr")
            else:
                samples = np.vstack([part.toarray() if sp.issparse(part) else _blocks.to_numpy(part) for part in parts])
            self.kernels_ = dict.fromkeys(shown, as_kernel(self.kernel).resolved(samples))

    def _scores(self, X: Views) -> np.ndarray:
        return super()._scores(self._equal(X))

    def _read_pairs(self, comparison: ComparedSamples) -> tuple[Views, np.ndarray]:
        X, codes = super()._read_pairs(comparison)
        return self._equal(X), codes

    def _read_one(self, x: Mapping[str, Any]) -> Any:
        return None if self.unequal == "repeat" else super()._read_one(x)

    def _bound_setting(self) -> BoundSetting | None:
        # exponent 2p of the Schatten norm
        setting = BoundSetting(2 * float(self.p), float(self.margin), float(self.eta0))
        return None if self._machine.n_dropped else setting


def _widths(X: Views) -> dict[str, int]:
    """Return the number of columns of each view that some sample has."""
    return {name: _blocks.width(X.block(name)) for name in X.names if X.present(name).any()}


def _widened(block: Any, width: int, how: str) -> Any:
    """Return a block of more columns: repeated ones, or zeros."""
    if how == "repeat":
        repeated = block[:, np.arange(width) % block.shape[1]]
        if sp.issparse(repeated):
            repeated.sort_indices()  # compiled passes merge sorted columns
        return repeated
    if sp.issparse(block):
        return sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], width))
    wide = np.zeros((block.shape[0], width), dtype=block.dtype)
    wide[:, : block.shape[1]] = block
    wide[np.isnan(block).all(axis=1)] = np.nan  # missing rows stay missing
    return wide
