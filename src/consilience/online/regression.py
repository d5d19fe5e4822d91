"""Passive-aggressive regression: linear, by kernels, by projections and by views."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..views._docs import shared_docs
from ..views.estimator import ViewRegressor
from ._arrays import IntervalRule
from ._bounds import BoundSetting
from ._dual import KernelMachine
from ._frame import OnlineEstimator
from ._grams import Grams
from ._linear import LinearMachine
from ._machine import Machine, from_machine
from ._numbers import NumberTargets
from ._parameters import CONSTRAINTS, budget_of
from ._projectron import ProjectronMachine

__all__ = ["PassiveAggressiveRegressor"]

_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "squared", "quantile")


def _no_counts(self: Any) -> Any:
    raise AttributeError(
        f"{type(self).__name__} counts losses, not mistakes: see `total_loss_`, `loss_curve_` and `certificate`."
    )


@shared_docs
@dataclass(eq=False, repr=False)
class PassiveAggressiveRegressor(ViewRegressor, OnlineEstimator):
    """Passive-aggressive regression, linear, by kernels, projected and multi-view (Crammer et al. 2006, section 5).

    Each sample solves, for its loss ℓ and its weight w,

        f <- argmin_g ½‖g - f‖² + C w ℓ(y, g(x)),   so   f <- f ± τ k(x, ·)

    Let r = abs(y - f(x)) - ε be above 0, with ε = 0 but for the ε-insensitive losses. Then

        τ = min(C w, r/k(x,x))            epsilon_insensitive (PA-I), absolute
        τ = r / (k(x,x) + 1/(2Cw))        squared_epsilon_insensitive (PA-II), squared
        τ = min(C w q, r/k(x,x)) upwards, with 1 - q in place of q downwards      quantile q

    These steps solve the program exactly, so no learning rate is needed, and no step overshoots its target. With one
    view, the linear kernel, no intercept and ``average=False``, it is scikit-learn's ``SGDRegressor`` with the learning
    rate "pa1" or "pa2". The intercept is a column of ones here, so k(x,x) counts it too.

    With p > 1 each view has a vector of its own, and views with longer vectors get larger factors, as in
    `OrthogonalPerceptron`. k(x,x) becomes (2p-1) (Σ_k k_k(x_k,x_k)^p)^(1/p).

    With `threshold`, a sample within this distance of the span of the samples kept is replaced by its projection Pφ(x)
    (as in `Projectron`), and ‖Pφ(x)‖² takes the place of k(x,x). That is the same program with g within the span.

    For any sequence of samples and any comparator u with losses ℓ*, the summed loss of the last hypotheses is at most
    Σ ℓ* + ‖u‖²/(2C) + (C/2) Σ k(x,x), and for squared losses (R² + 1/(2C)) (‖u‖² + 2C Σ ℓ*), R² the largest k(x,x)
    (`certificate`). With p > 1 the norms are those of `OrthogonalPerceptron`.

    Parameters
    ----------
    {linear_kernel}
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "squared", "quantile"}, \
default="epsilon_insensitive"
        Loss.
    C : float, default=1.0
        Limit of the steps. Smaller values follow single samples less.
    epsilon : float, default=0.1
        Error ε that causes no step, of the ε-insensitive losses.
    quantile : float, default=0.5
        Quantile q that the quantile loss predicts, for small C. A large C moves the predictions towards the median,
        because a step ends at the target: choose C so small that the share q of the targets is below.
    p : float, default=1.0
        Exponent of the factors between views, at least 1; 1 gives all views the factor 1.
    {stream_combine}
    {regression_mean}
    fit_intercept : bool, default=True
        Whether to fit an intercept, by adding 1 to the kernel; with p > 1 to the kernel of each view.
    {budget}
    threshold : float, optional
        Distance from the span of the samples kept up to which a sample is projected. Once the budget is full, by
        default with 1,000 samples, all samples are projected. By default, nothing is projected.
    prepare_target : {"standardize"} or None, default=None
        Whether to learn standardized targets. Their mean and deviation follow the stream, and predictions are in the
        units of the targets. `epsilon`, losses, weights and intercepts are in units of the deviation. Without it,
        predictions start at 0 and steps are limited by C, so targets far from 0, or of a scale far from 1, need many
        samples.
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {linear_coef_}
    {kept_samples_}
    {intercept_}
    {n_dropped_}
    view_weights_ : array of shape (n_views,)
        Factors of the views in the last hypothesis, the mean over outputs.
    total_loss_ : float
        Summed loss of the last hypotheses, each before its sample was learned; it is what `certificate` bounds. With
        several outputs, the losses of a sample are added up.
    loss_curve_ : array of shape (n, 2)
        Samples seen, and mean loss of the predictions so far, by the hypothesis that `predict` uses.
    n_updates_, n_samples_seen_ : int
        Numbers of samples with an update, and of samples seen.
    n_iter_ : int
        Number of passes that `fit` made; 1 in a stream.
    converged_ : bool
        Whether the last pass of `fit` made no update.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import PassiveAggressiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=500)
    >>> model = PassiveAggressiveRegressor(C=0.1).partial_fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    >>> proof = model.certificate(X[:400], y[:400])
    >>> proof.total_loss <= proof.bound
    True
    """

    _targets = NumberTargets()
    _parameter_constraints = {
        **CONSTRAINTS,
        "fit_intercept": ["boolean"],
        "loss": [StrOptions(set(_LOSSES))],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "threshold": [Interval(Real, 0, None, closed="left"), None],
        "prepare_target": [StrOptions({"standardize"}), None],
        "average": ["boolean", StrOptions({"recent", "with_last"})],
    }
    coef_ = from_machine("coef_")
    intercept_ = from_machine("intercept_")
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    n_dropped_ = from_machine("n_dropped_")
    n_mistakes_ = n_errors_ = error_curve_ = property(_no_counts)

    kernel: Any = "linear"
    _: KW_ONLY
    loss: str = "epsilon_insensitive"
    C: float = 1.0
    epsilon: float = 0.1
    quantile: float = 0.5
    p: float = 1.0
    combine: Any = "sum"
    average: Any = "recent"
    fit_intercept: bool = True
    budget: Any = "auto"
    threshold: float | None = None
    prepare_target: str | None = None
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    # -- parameters
    def _validate_params(self) -> None:
        super()._validate_params()
        if self.p > 1 and (self.threshold is not None or not self._adds()):
            other = "threshold" if self.threshold is not None else "combine"
            raise ValueError(
                f"p={self.p:g} gives each view a factor, which needs combine='sum' and threshold=None; `{other}` is "
                f"{getattr(self, other)!r}. Use p=1."
            )

    def _check_fixed(self) -> None:
        super()._check_fixed()
        if isinstance(self._machine, ProjectronMachine) != (self.threshold is not None):
            raise ValueError(
                f"`threshold` is {self.threshold!r} now, and learning began "
                f"{'without' if self.threshold is not None else 'with'} one. Set it back, or start again with "
                "clone(model)."
            )

    def _adds(self) -> bool:
        return isinstance(self.combine, str) and self.combine == "sum"

    def _is_primal(self) -> bool:
        return self._has_linear_kernel() and self._adds() and self.threshold is None

    def _is_squared(self) -> bool:
        return self.loss.startswith("squared")

    def _tolerance(self) -> float:
        return float(self.epsilon) if self.loss.endswith("epsilon_insensitive") else 0.0

    def _slopes(self) -> tuple[float, float]:
        """Return the slopes of the loss for predictions that are too small, and too large."""
        q = float(self.quantile)
        return (q, 1 - q) if self.loss == "quantile" else (1.0, 1.0)

    # -- state
    def _new_machine(self, n_outputs: int) -> Machine:
        average, intercept, p = self._averages(), bool(self.fit_intercept), float(self.p)
        shape = "views" if p > 1 else "joint"
        if self._is_primal():
            return LinearMachine(shape, n_outputs, p=p, average=average, fit_intercept=intercept)
        grams = Grams(shape, self.combine, intercept)
        if self.threshold is not None:
            return ProjectronMachine(grams, n_outputs, average=average, budget=budget_of(self, auto=1000))
        return KernelMachine(grams, n_outputs, p=p, average=average, budget=budget_of(self))

    def _rule(self) -> IntervalRule:
        up, down = (np.inf if self._is_squared() else float(self.C) * slope for slope in self._slopes())
        ridge = 1 / (2 * float(self.C)) if self._is_squared() else 0.0
        curvature = 2 * float(self.p) - 1  # bounds that of ½‖V‖²
        return IntervalRule(self._tolerance(), 0.0, up, down, ridge, curvature, float(self.threshold or 0.0))

    def _losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each sample and output."""
        (up, down), error, epsilon = self._slopes(), y - scores, self._tolerance()
        losses = up * np.maximum(error - epsilon, 0.0) + down * np.maximum(-error - epsilon, 0.0)
        return losses**2 if self._is_squared() else losses

    def _loss_of_one(self, y: float, score: float) -> float:
        """Return the loss of one sample and output."""
        gap, slopes = abs(y - score) - self._tolerance(), self._slopes()
        loss = max(gap, 0.0) * slopes[0 if y > score else 1]
        return loss * loss if self._is_squared() else loss  # as an array is squared

    def _bound_setting(self) -> BoundSetting | None:
        if self._machine.n_dropped or self.threshold is not None:  # no bound is known
            return None
        variant, p = "PA-II" if self._is_squared() else "PA-I", float(self.p)
        exponent = 2 * p if p > 1 else 2.0
        return BoundSetting(exponent, variant=variant, C=float(self.C), slope=max(self._slopes()))

    # -- what was learned
    @property
    def loss_curve_(self) -> np.ndarray:
        """Progressive loss: rows of (samples seen, mean loss of the predictions), thinned out geometrically."""
        check_is_fitted(self, "n_samples_seen_")
        return np.column_stack([self._curve[:, 0], self._curve[:, 1] / np.maximum(self._curve[:, 0], 1)])

    @property
    def view_weights_(self) -> np.ndarray:
        """Factors of the views in the last hypothesis, the mean over outputs."""
        check_is_fitted(self, "n_samples_seen_")
        if self.p == 1:
            return np.ones(len(self.view_names_in_))
        factors = self._machine.factors
        weights = dict(zip(factors.names, factors.F.mean(axis=1), strict=True))
        return np.array([weights.get(name, 0.0) for name in self.view_names_in_])
