"""Linear perceptrons with the p-norm link; passive-aggressive learners."""

from typing import Any

import numpy as np

from ._bounds import Setting
from ._dual import Grams, KernelMachine
from ._frame import check_choice, check_count, check_number
from ._learner import Machine, MachineLearner
from ._linear import LinearMachine, LinkMachine, Rule

__all__ = ["OnlinePerceptron", "PassiveAggressive"]


class OnlinePerceptron(MachineLearner):
    """The perceptron and the p-norm perceptron, last, averaged or voted (Rosenblatt 1958; Grove et al. 2001).

    On a mistake, y <w, x> <= margin, for p >= 2:

        v <- v + step y x,   w = ∇ ½‖v‖_p²,  w_i = sign(v_i) abs(v_i)^(p-1) / ‖v‖_p^(p-2)

    With p = 2 it is the perceptron w <- w + y x; a large p (about 2 ln d) suits targets on few of d columns. Views
    stand side by side, one vector for all. With K classes there is one vector each, and a mistake adds x to the true
    class and takes it from the best other one; two classes are the same with w of the first the opposite of the second.

    ``average=True`` predicts with the mean (1/T) Σ w_(t-1) of all hypotheses, made without work on right answers;
    ``"voted"`` lets each hypothesis vote with the number of samples it lived for (Freund and Schapire 1999), which
    keeps every update.

    For any u with hinge loss L, X = max‖x‖_p and 1/p + 1/q = 1, mistakes are at most
    L + (p-1)(X‖u‖_q)² + X‖u‖_q √((p-1) L) (`certificate`); with L = 0 and p = 2 it is Novikoff's (R/γ)².

    Parameters
    ----------
    p : float, default=2.0
        The norm, at least 2.
    average : {False, True, "voted"}, default=False
        Whether predictions are by the last hypothesis, the mean of all, or their vote.
    margin : float, default=0.0
        Updates are made where y <w, x> is at most this; for several classes the lead over the best other class.
    eta0 : float, default=1.0
        The length of an update.
    fit_intercept : bool, default=True
        Whether a column of ones is added.
    max_iter : int, default=10
        The most passes of `fit`; it ends after the first one without an update.
    shuffle : bool, default=True
        Whether `fit` takes the samples in a new random order at each pass.
    random_state : int, RandomState or None, default=None
        The seed of the order.
    verbose : bool, default=False
        Whether to show passes and mistakes while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : dict of array
        Weights by view, of the last hypothesis or the mean.
    bias_ : array
        The bias of each output.
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

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
    >>> proof.mistakes <= proof.bound
    True
    """

    def __init__(
        self,
        p: float = 2.0,
        *,
        average: Any = False,
        margin: float = 0.0,
        eta0: float = 1.0,
        fit_intercept: bool = True,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.p = p
        self.average = average
        self.margin = margin
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        check_number("p", self.p, 2.0)
        self._check_common()

    def _by_columns(self) -> bool:
        return True

    def _new_machine(self, n_outputs: int) -> Machine:
        if self.p == 2 and self.average != "voted":
            return LinearMachine("joint", n_outputs, average=self.average is True, bias=bool(self.fit_intercept))
        return LinkMachine(n_outputs, p=self.p, average=self.average, bias=bool(self.fit_intercept))

    def _setting(self) -> Setting | None:
        return Setting(float(self.p), float(self.margin), float(self.eta0))


class PassiveAggressive(MachineLearner):
    """Passive-aggressive learning, PA, PA-I and PA-II, linear and by kernels (Crammer et al. 2006).

    Where the hinge loss ℓ = max(0, 1 - y f(x)) is above 0:

        f <- f + τ y k(x, ·),  τ = ℓ/k(x,x) (PA),  min(C, ℓ/k(x,x)) (PA-I),  ℓ/(k(x,x) + 1/(2C)) (PA-II)

    PA goes to the nearest f without loss on the sample, the others pay for what they leave. With several classes
    ℓ = max(0, 1 - (s_y - s_r)) for the best other class r, k(x,x) counts twice, and f_y gains what f_r loses. With one
    view, the linear kernel and no bias PA-I is scikit-learn's ``PassiveAggressiveClassifier`` for two classes.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        The kernel of the views that `kernels` does not name. If all are linear, weights are kept, no samples. In a
        stream "scale" stands for one over the number of columns.
    kernels : dict, optional
        Kernels by view.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one; see `MaxMarginClassifier`. Absent views are for sums.
    variant : {"PA", "PA-I", "PA-II"}, default="PA-I"
        The step.
    C : float, default=1.0
        Its limit; not for "PA".
    average : {False, True, "voted"}, default=False
        Whether predictions are by the last hypothesis, the mean of all, or their vote.
    fit_intercept : bool, default=False
        Whether a column of ones is added, or 1 to the kernel.
    budget : int, optional
        The most samples kept by a kernel learner; the oldest goes, from averages too.
    max_iter : int, default=10
        The most passes of `fit`; it ends after the first one without an update.
    shuffle : bool, default=True
        Whether `fit` takes the samples in a new random order at each pass.
    random_state : int, RandomState or None, default=None
        The seed of the order.
    verbose : bool, default=False
        Whether to show passes and mistakes while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : dict of array
        Weights by view (linear).
    support_, dual_coef_ : array
        Samples kept and their coefficients (kernels).
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import PassiveAggressive
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PassiveAggressive("rbf", C=0.5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _second_class = 0.5

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        combine: Any = "sum",
        variant: str = "PA-I",
        C: float = 1.0,
        average: Any = False,
        fit_intercept: bool = False,
        budget: int | None = None,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.combine = combine
        self.variant = variant
        self.C = C
        self.average = average
        self.fit_intercept = fit_intercept
        self.budget = budget
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        check_choice("variant", self.variant, ("PA", "PA-I", "PA-II"))
        check_number("C", self.C, above=True, infinite=True)
        self._check_common()
        check_budget(self)

    def _rule(self) -> Rule:
        cap = float(self.C) if self.variant == "PA-I" else float("inf")
        return Rule(1.0, 0.0, cap, 1 / (2 * float(self.C)) if self.variant == "PA-II" else 0.0)

    def _by_columns(self) -> bool:
        adds = isinstance(self.combine, str) and self.combine == "sum"
        return self._is_linear() and adds and self.average != "voted" and self.budget is None

    def _new_machine(self, n_outputs: int) -> Machine:
        if self._by_columns():
            return LinearMachine("joint", n_outputs, average=self.average is True, bias=bool(self.fit_intercept))
        grams = Grams("joint", self.combine, bool(self.fit_intercept))
        return KernelMachine(grams, n_outputs, average=self.average, budget=self.budget)

    def _setting(self) -> Setting | None:
        variant = "PA" if np.isinf(self.C) else self.variant
        return None if self.budget is not None else Setting(2.0, variant=variant, C=float(self.C))


def check_budget(learner: Any) -> None:
    """A vote needs every hypothesis, which a budget forgets."""
    check_count("budget", learner.budget, optional=True)
    if learner.budget is not None and learner.average == "voted":
        raise ValueError("average='voted' keeps every update, which `budget` forbids. Use average=True, or no budget.")
