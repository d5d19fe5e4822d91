"""Perceptrons by kernels: all mistakes kept, a budget of them, or projections on few."""

from typing import Any

import numpy as np

from ..kernels.gram import is_psd
from ..views.container import Views
from ._bounds import Setting
from ._dual import Grams, KernelMachine, ProjectronMachine
from ._frame import check_choice, check_count, check_number
from ._learner import Machine, MachineLearner
from .perceptron import check_budget

__all__ = ["KernelPerceptron", "Projectron"]


class KernelPerceptron(MachineLearner):
    """The kernel perceptron, last, averaged or voted (Aizerman, Braverman and Rozonoer 1964; Freund and Schapire 1999).

    The perceptron in the space of a kernel k: samples on which a mistake was made are kept with coefficients α, and

        f(x) = Σ_s α_s y_s k(x_s, x),   on a mistake (y f(x) <= margin): α_t <- α_t + step

    With K classes f_c(x) = Σ_s α_sc k(x_s, x), and a mistake adds to the true class and takes from the best other one.
    `output_kernel` makes it the ranking form argmax_c <w, φ(x, c)> with the joint kernel k(x, x') κ(c, c'). Several
    views have one kernel, their sum or what `combine` says. With the linear kernel it decides as `OnlinePerceptron`
    without a bias does.

    Kernels are made for blocks of samples by matrix products; decisions are those of one sample after the other.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf". In a stream
        "scale" stands for one over the number of columns; other parameters must be numbers there.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one; see `MaxMarginClassifier`. Absent views are for sums.
    average : {False, True, "voted"}, default=False
        Whether predictions are by the last hypothesis, the mean of all, or their vote.
    margin : float, default=0.0
        Updates are made where y f(x) is at most this; for several classes the lead over the best other class.
    eta0 : float, default=1.0
        The length of an update.
    fit_intercept : bool, default=False
        Whether 1 is added to the kernel.
    output_kernel : array of shape (n_classes, n_classes), optional
        κ between the classes in their sorted order, positive semi-definite; the identity by default. Classes must be
        announced.
    budget : int, optional
        The most samples kept; the oldest goes, from averages too.
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
    support_ : array of int
        Positions of the samples kept, among those of `fit` or in the stream.
    dual_coef_ : array of shape (n_support,) or (n_classes, n_support)
        Their coefficients, signs included.
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from consilience import KernelPerceptron
    >>> from consilience.kernels import Polynomial
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]  # exclusive or
    >>> model = KernelPerceptron(Polynomial(2), max_iter=100, random_state=0).fit(X, y)
    >>> model.separated_, model.predict(X).tolist()
    (True, [0, 1, 1, 0])
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        combine: Any = "sum",
        average: Any = False,
        margin: float = 0.0,
        eta0: float = 1.0,
        fit_intercept: bool = False,
        output_kernel: Any = None,
        budget: int | None = None,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.combine = combine
        self.average = average
        self.margin = margin
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.output_kernel = output_kernel
        self.budget = budget
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        self._check_common()
        check_budget(self)

    def _start(self) -> None:
        if self.output_kernel is not None and not self._announced:
            raise ValueError("`output_kernel` is between all classes: announce them by `classes=`, or use `fit`.")
        super()._start()

    def _new_machine(self, n_outputs: int) -> Machine:
        table = None
        if self.output_kernel is not None:
            table = np.array(self.output_kernel, dtype=np.float64, order="C")
            T = len(self.classes_)
            if table.shape != (T, T) or not np.isfinite(table).all() or not is_psd(table):
                raise ValueError(
                    f"`output_kernel` must be a positive semi-definite matrix between the {T} classes; got one of "
                    f"shape {table.shape}."
                )
            n_outputs = T
        grams = Grams("joint", self.combine, bool(self.fit_intercept))
        return KernelMachine(grams, n_outputs, average=self.average, budget=self.budget, out_kernel=table)

    def _scores(self, X: Views) -> np.ndarray:
        scores = super()._scores(X)
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == len(self.classes_) == 2 else scores

    def _setting(self) -> Setting | None:
        if self.budget is not None or self.output_kernel is not None:
            return None
        return Setting(2.0, float(self.margin), float(self.eta0))


class Projectron(MachineLearner):
    """Projectron and Projectron++: a kernel perceptron whose support stays bounded (Orabona, Keshet and Caputo 2009).

    On a mistake the sample is projected on the span of the support S: d = K_SS^-1 k_S(x), at the distance
    δ = √(k(x,x) - k_S(x)'d). Where δ <= η (`threshold`) its projection is added to the coefficients, α <- α + y d, else
    the sample itself joins S. The ++ variant also steps where the decision is right but the hinge loss ℓ is above δ/η:

        α <- α + y τ d,   τ = min(ℓ, 2(ℓ - δ/η), ‖Pφ‖²) / ‖Pφ‖²,   ‖Pφ‖² = k_S(x)'d

    With η = 0 and ``plus=False`` it decides as `KernelPerceptron` does. With several classes the lead over the best
    other class takes the place of y f(x), ‖Pφ‖² counts twice, and that class loses what the true one gains.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf". In a stream
        "scale" stands for one over the number of columns; other parameters must be numbers there.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one; see `MaxMarginClassifier`. Absent views are for sums.
    threshold : float, default=0.1
        η, the distance from the span up to which a sample is projected.
    plus : bool, default=True
        Whether margins are learned too (Projectron++).
    squared : bool, default=False
        Whether δ² is held against η in place of δ, as the authors' own program does.
    average : bool, default=False
        Whether predictions are by the mean of all hypotheses, or by the last.
    fit_intercept : bool, default=False
        Whether 1 is added to the kernel.
    budget : int, optional
        The most samples kept; when it is reached all are projected, however far.
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
    support_ : array of int
        Positions of the samples kept, among those of `fit` or in the stream.
    dual_coef_ : array of shape (n_support,) or (n_classes, n_support)
        Their coefficients, signs included.
    projections_ : int
        Updates that kept no sample.
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import Projectron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Projectron("rbf", threshold=0.2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), len(model.support_) < 60
    (True, True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        combine: Any = "sum",
        threshold: float = 0.1,
        plus: bool = True,
        squared: bool = False,
        average: bool = False,
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
        self.threshold = threshold
        self.plus = plus
        self.squared = squared
        self.average = average
        self.fit_intercept = fit_intercept
        self.budget = budget
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        check_number("threshold", self.threshold)
        check_choice("average", self.average, (False, True))
        check_count("budget", self.budget, optional=True)

    def _new_machine(self, n_outputs: int) -> Machine:
        grams = Grams("joint", self.combine, bool(self.fit_intercept))
        return ProjectronMachine(grams, n_outputs, average=bool(self.average), budget=self.budget)

    def _learn(self, X: Views, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        if len(self.classes_) == 1:
            return self._wait(len(codes))
        how = float(self.threshold), bool(self.squared), bool(self.plus)
        return self._machine.learn(X, codes, ids, *how)

    @property
    def projections_(self) -> int:
        """Updates that kept no sample."""
        return int(self._of_kernels("projections_").n_projections)
