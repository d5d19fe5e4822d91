"""Kernel perceptrons: all mistakes kept, a budget of them, or projections on few."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..kernels.gram import is_psd
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier
from ._bounds import BoundSetting
from ._dual import KernelMachine
from ._frame import OnlineEstimator
from ._grams import Grams
from ._machine import Machine, from_machine
from ._parameters import CONSTRAINTS, budget_of
from ._projectron import ProjectionRule, ProjectronMachine

__all__ = ["KernelPerceptron", "Projectron"]


@shared_docs
@dataclass(eq=False, repr=False)
class KernelPerceptron(ViewClassifier, OnlineEstimator):
    """The kernel perceptron, last, averaged or voted (Aizerman, Braverman and Rozonoer 1964; Freund and Schapire 1999).

    The perceptron in the space of a kernel k. It keeps the samples of its mistakes with coefficients α:

        f(x) = Σ_s α_s y_s k(x_s, x),   on a mistake (y f(x) <= margin): α_t <- α_t + eta0

    With K classes f_c(x) = Σ_s α_sc k(x_s, x): a mistake adds to the true class and subtracts from the best other one.
    With `output_kernel` it is the ranking form argmax_c <w, φ(x, c)> with the joint kernel k(x, x') κ(c, c'). Several
    views have one kernel, their sum or what `combine` says. With the linear kernel it makes the decisions of
    `OnlinePerceptron` without an intercept.

    Kernels are computed for blocks of samples by matrix products; decisions are those of one sample after the other.

    Parameters
    ----------
    {stream_kernel}
    {stream_combine}
    {average}
    {margin}
    {eta0}
    {kernel_intercept}
    output_kernel : array of shape (n_classes, n_classes), optional
        Kernel κ between the classes in sorted order, positive semi-definite; by default the identity. Classes must be
        announced.
    {budget}
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    {stream_support_}
    {stream_dual_coef_}
    {intercept_}
    {n_dropped_}
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from consilience import KernelPerceptron
    >>> from consilience.kernels import Polynomial
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]  # exclusive or
    >>> model = KernelPerceptron(Polynomial(2), max_iter=100, random_state=0)
    >>> model.fit(X, y).converged_, model.predict(X).tolist()
    (True, [0, 1, 1, 0])
    """

    _parameter_constraints = {**CONSTRAINTS, "fit_intercept": ["boolean"], "output_kernel": ["array-like", None]}
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    intercept_ = from_machine("intercept_")
    n_dropped_ = from_machine("n_dropped_")

    kernel: Any = "rbf"
    _: KW_ONLY
    combine: Any = "sum"
    average: Any = False
    margin: float = 0.0
    eta0: float = 1.0
    fit_intercept: bool = False
    output_kernel: Any = None
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    @property
    def _multi_label(self) -> bool:  # type: ignore[override]
        return self.output_kernel is None and self._averages() != "voted"

    def _new_machine(self, n_outputs: int) -> Machine:
        table, T = None, len(self.classes_)
        if self.output_kernel is not None:
            if not self._announced:
                raise ValueError("`output_kernel` is between all classes: announce them by `classes=`, or use `fit`.")
            # an output for each class, also for two
            table, n_outputs = np.array(self.output_kernel, dtype=np.float64, order="C"), T
            if table.shape != (T, T) or not np.isfinite(table).all() or not is_psd(table):
                raise ValueError(
                    f"`output_kernel` must be a positive semi-definite matrix between the {T} classes; got one of "
                    f"shape {table.shape}."
                )
        grams = Grams("joint", self.combine, bool(self.fit_intercept))
        return KernelMachine(grams, n_outputs, average=self._averages(), budget=budget_of(self), output_gram=table)

    def _bound_setting(self) -> BoundSetting | None:
        if self._machine.n_dropped or self.output_kernel is not None:  # no bound is known
            return None
        return BoundSetting(2.0, float(self.margin), float(self.eta0))


@shared_docs
@dataclass(eq=False, repr=False)
class Projectron(ViewClassifier, OnlineEstimator):
    """Projectron and Projectron++: a kernel perceptron whose support stays bounded (Orabona, Keshet and Caputo 2009).

    On a mistake the sample is projected on the span of the support S: d = K_SS^-1 k_S(x), at the distance
    δ = √(k(x,x) - k_S(x)'d). Where δ <= η (`threshold`), its projection is added to the coefficients, α <- α + y d.
    Otherwise the sample itself joins S. Projectron++ also steps where the decision is correct but the hinge loss ℓ is
    above δ/η:

        α <- α + y τ d,   τ = min(ℓ, 2(ℓ - δ/η), ‖Pφ‖²) / ‖Pφ‖²,   ‖Pφ‖² = k_S(x)'d

    With η = 0 and ``variant="projectron"`` it makes the decisions of `KernelPerceptron`. With several classes the lead
    over the best other class replaces y f(x), ‖Pφ‖² counts twice, and that class loses what the true one gains.

    Parameters
    ----------
    {stream_kernel}
    {stream_combine}
    threshold : float, default=0.1
        Distance η from the span of the support up to which a sample is projected.
    variant : {"projectron++", "projectron"}, default="projectron++"
        Whether correct decisions with a small margin cause updates too, or mistakes alone.
    squared : bool, default=False
        Whether η bounds δ² instead of δ, as in the authors' own program.
    {mean}
    {kernel_intercept}
    budget : int, "auto" or None, default="auto"
        Maximum number of samples kept; "auto" means 1,000. When it is reached, all samples are projected, at any
        distance, and one warning says so. None means no limit, as published.
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    {stream_support_}
    {stream_dual_coef_}
    {intercept_}
    n_projections_ : int
        Number of updates that kept no sample.
    n_dropped_ : int
        Number of samples that were projected because the budget was full.
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import Projectron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Projectron("rbf", threshold=0.2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), len(model.support_) < 60
    (True, True)
    """

    _parameter_constraints = {
        **CONSTRAINTS,
        "fit_intercept": ["boolean"],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "variant": [StrOptions({"projectron++", "projectron"})],
        "squared": ["boolean"],
        "average": ["boolean", StrOptions({"recent", "with_last"})],
    }
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    intercept_ = from_machine("intercept_")
    n_dropped_ = from_machine("n_dropped_")

    kernel: Any = "rbf"
    _: KW_ONLY
    combine: Any = "sum"
    threshold: float = 0.1
    variant: str = "projectron++"
    squared: bool = False
    average: Any = False
    fit_intercept: bool = False
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    def _new_machine(self, n_outputs: int) -> Machine:
        grams = Grams("joint", self.combine, bool(self.fit_intercept))
        return ProjectronMachine(grams, n_outputs, average=self._averages(), budget=budget_of(self, auto=1000))

    def _rule(self) -> ProjectionRule:
        return ProjectionRule(float(self.threshold), bool(self.squared), self.variant == "projectron++")

    @property
    def n_projections_(self) -> int:
        """Number of updates that kept no sample."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._machine.n_projections)
