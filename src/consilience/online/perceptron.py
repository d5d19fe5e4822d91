"""Linear perceptrons with the p-norm link; passive-aggressive estimators."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier
from ._arrays import Rule
from ._bounds import BoundSetting
from ._dual import KernelMachine
from ._frame import OnlineEstimator
from ._grams import Grams
from ._linear import LinearMachine
from ._link import LinkMachine
from ._machine import Machine, from_machine
from ._parameters import CONSTRAINTS, budget_of, has_intercept

__all__ = ["OnlinePerceptron", "PassiveAggressive"]


@shared_docs
@dataclass(eq=False, repr=False)
class OnlinePerceptron(ViewClassifier, OnlineEstimator):
    """The perceptron and the p-norm perceptron, last, averaged or voted (Rosenblatt 1958; Grove et al. 2001).

    On a mistake, y <w, x> <= margin, for p >= 2:

        v <- v + eta0 y x,   w = ∇ ½‖v‖_p²,  w_i = sign(v_i) abs(v_i)^(p-1) / ‖v‖_p^(p-2)

    With p = 2 it is the perceptron w <- w + y x. A large p (about 2 ln d) suits targets that depend on few of d
    columns. All views together have one vector. With K classes there is one vector each: a mistake adds x to the true
    class and subtracts it from the best other one. Two classes are the same with opposite vectors.

    ``average=True`` predicts with (1/T) Σ w_(t-1), the mean of the hypotheses that predicted one of the T samples;
    correct predictions cost no extra work. ``"with_last"`` adds the last hypothesis, (1/(T+1)) Σ w_t over t = 0 .. T,
    as where w is added up after each sample (Bunescu, *The perceptron algorithm*). With ``"voted"`` each hypothesis
    votes with the number of samples it was in use for (Freund and Schapire 1999), which keeps every update.

    For any u with hinge loss L, X = max‖x‖_p and 1/p + 1/q = 1, the number of mistakes is at most
    L + (p-1)(X‖u‖_q)² + X‖u‖_q √((p-1) L) (`certificate`). With L = 0 and p = 2 it is Novikoff's (R/γ)².

    Parameters
    ----------
    p : float, default=2.0
        Exponent of the norm, at least 2.
    {average}
    {margin}
    {eta0}
    fit_intercept : bool, default=True
        Whether to fit an intercept, by adding a column of ones.
    {max_iter}
    {stream_ending}

    Attributes
    ----------
    {classes_}
    coef_ : dict of array
        Weights by view, of the last hypothesis or of the mean of all.
    {intercept_}
    {counts_}
    {error_curve_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import OnlinePerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OnlinePerceptron(average=True, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = OnlinePerceptron().partial_fit(X[:100], y[:100])
    >>> proof = model.certificate(X[:100], y[:100])
    >>> proof.n_mistakes <= proof.bound
    True
    """

    _parameter_constraints = {
        **CONSTRAINTS,
        "p": [Interval(Real, 2, None, closed="left")],
        "fit_intercept": ["boolean"],
    }
    coef_ = from_machine("coef_")
    intercept_ = from_machine("intercept_")

    p: float = 2.0
    _: KW_ONLY
    average: Any = False
    margin: float = 0.0
    eta0: float = 1.0
    fit_intercept: bool = True
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    @property
    def _multi_label(self) -> bool:  # type: ignore[override]
        return self.p == 2 and self._averages() != "voted"

    def _is_primal(self) -> bool:
        return True

    def _new_machine(self, n_outputs: int) -> Machine:
        average, intercept = self._averages(), bool(self.fit_intercept)
        if self.p == 2 and average != "voted":  # the link is the identity, and no history is kept
            return LinearMachine("joint", n_outputs, average=average, fit_intercept=intercept)
        return LinkMachine(n_outputs, p=self.p, average=average, fit_intercept=intercept)

    def _bound_setting(self) -> BoundSetting:
        return BoundSetting(float(self.p), float(self.margin), float(self.eta0))


@shared_docs
@dataclass(eq=False, repr=False)
class PassiveAggressive(ViewClassifier, OnlineEstimator):
    """Passive-aggressive learning, PA, PA-I and PA-II, linear and by kernels (Crammer et al. 2006).

    Where the hinge loss ℓ = max(0, 1 - y f(x)) is above 0:

        f <- f + τ y k(x, ·),  τ = ℓ/k(x,x) (PA),  min(C, ℓ/k(x,x)) (PA-I),  ℓ/(k(x,x) + 1/(2C)) (PA-II)

    PA moves to the nearest f without loss on the sample; the others limit the step. With several classes
    ℓ = max(0, 1 - (s_y - s_r)) for the best other class r, k(x,x) counts twice, and f_y gains what f_r loses. With one
    view, the linear kernel, two classes and no intercept, PA-I is scikit-learn's ``PassiveAggressiveClassifier``.

    Parameters
    ----------
    {linear_kernel}
    {stream_combine}
    variant : {"PA", "PA-I", "PA-II"}, default="PA-I"
        Length of a step.
    C : float, default=1.0
        Limit of the steps: the longest one of PA-I, softer for PA-II; not used by PA.
    {average}
    fit_intercept : bool or "auto", default="auto"
        Whether to fit an intercept, by adding 1 to the kernel. "auto" does so with the linear kernel.
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
    >>> from sklearn.datasets import load_iris
    >>> from consilience import PassiveAggressive
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PassiveAggressive("rbf", C=0.5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _pair_scale = 0.5  # two vectors move by half of what one alone does, for the same lead
    _parameter_constraints = {**CONSTRAINTS, "variant": [StrOptions({"PA", "PA-I", "PA-II"})]}
    coef_ = from_machine("coef_")
    intercept_ = from_machine("intercept_")
    support_ = from_machine("support_")
    dual_coef_ = from_machine("dual_coef_")
    n_dropped_ = from_machine("n_dropped_")

    kernel: Any = "linear"
    _: KW_ONLY
    combine: Any = "sum"
    variant: str = "PA-I"
    C: float = 1.0
    average: Any = False
    fit_intercept: Any = "auto"
    budget: Any = "auto"
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    @property
    def _multi_label(self) -> bool:  # type: ignore[override]
        return self._averages() != "voted"

    def _is_primal(self) -> bool:
        adds = isinstance(self.combine, str) and self.combine == "sum"
        return self._has_linear_kernel() and adds and self._averages() != "voted"

    def _new_machine(self, n_outputs: int) -> Machine:
        average, intercept = self._averages(), has_intercept(self)
        if self._is_primal():
            return LinearMachine("joint", n_outputs, average=average, fit_intercept=intercept)
        grams = Grams("joint", self.combine, intercept)
        return KernelMachine(grams, n_outputs, average=average, budget=budget_of(self))

    def _rule(self) -> Rule:
        cap = float(self.C) if self.variant == "PA-I" else float("inf")  # τ <= C for PA-I alone
        # any hinge loss causes a step
        return Rule(1.0, 0.0, cap, 1 / (2 * float(self.C)) if self.variant == "PA-II" else 0.0)

    def _bound_setting(self) -> BoundSetting | None:
        variant = "PA" if np.isinf(self.C) else self.variant  # no limit on the steps
        return None if self._machine.n_dropped else BoundSetting(2.0, variant=variant, C=float(self.C))
