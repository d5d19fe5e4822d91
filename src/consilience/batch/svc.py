"""Support vector machines over several views: simplex codes for all classes at once, or one class against the rest."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..kernels.outputs import simplex_vectors
from ..solvers.box_qp import class_qp
from ..solvers.certificates import Solution
from ..solvers.linalg import cholesky_or_jitter
from ..solvers.ridge import weight_slopes
from ..solvers.weights import Evaluation, learn_weights
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ..views.validation import Labels, class_weights, read_labels, read_views_to_fit, read_weights
from ._coregularized import CoRegularized, GramForm
from ._frame import with_learned

__all__ = ["CoRegularizedSVC"]


class _Machine:
    """The program in α for the labels of l rows; what depends on c is the labeled kernel alone."""

    def __init__(self, codes: np.ndarray | None, of: np.ndarray, P: int, u: np.ndarray, scale: float):
        l = len(of)
        self.scale = scale
        if codes is None:  # one against the rest, or two classes: independent rows of signs
            self.codes = np.eye(P)
            self.signs = np.where(of[:, None] == np.arange(P), 1.0, -1.0) if P > 1 else np.where(of, 1.0, -1.0)[:, None]
            self.D = np.ones((l, P))
            self.upper = np.repeat(u[:, None] / scale, P, axis=1)
            self.Q_S = np.eye(P)
        else:
            self.codes = codes
            self.signs = -np.ones((l, P))  # α pulls f away from the codes of other classes
            self.Q_S = codes @ codes.T
            self.D = -self.Q_S[of]
            self.upper = np.where(of[:, None] == np.arange(P), 0.0, u[:, None] / scale)

    def solve(self, kernel: np.ndarray, *, tol: float, max_iter: int, x0: np.ndarray | None = None) -> Solution:
        """The optimum for the labeled kernel; scaled as in the paper, Q_G = l 𝒢."""
        kernel *= self.scale
        return class_qp(kernel, self.Q_S, self.D, self.upper, self.signs, tol=tol, max_iter=max_iter, x0=x0)

    def judge(self, found: Solution, outputs: tuple[Any, np.ndarray, float], tol: float) -> Solution:
        """The objective at the coefficients themselves, and its distance from the dual value."""
        _, g, penalty = outputs
        loss = float(np.sum(self.upper * np.maximum(0, self.D - self.signs * (g @ self.codes.T))))
        primal = loss + penalty / self.scale
        gap = max(primal - (float(found.objective) - float(found.gap)), 0.0)  # type: ignore[arg-type]
        status = found.status
        if found.converged and not gap <= 2 * max(tol, 1e-9) * abs(primal):
            status = "inexact"
        return Solution(found.x, gap, found.n_iter, status, objective=primal, residual=found.residual)

    def forces(self, alpha: np.ndarray) -> np.ndarray:
        """r = l/2 Σ_k ±α_ik s_k."""
        return 0.5 * self.scale * (self.signs * alpha) @ self.codes


class CoRegularizedSVC(ViewClassifier, CoRegularized):
    """MVL-SVM and MVL-binSVM: co-regularized support vector machines (Minh, Bazzani and Murino 2016).

    With codes s_k of the classes (``multi_class="simplex"``: MVL-SVM) solves, over one function f_v per view,

        min 1/l Σ_{i<=l} Σ_{k≠y_i} max(0, -<s_k, s_{y_i}> + <s_k, Σ_v c_v f_v(x_i)>) + γ_A Σ_v ‖f_v‖²
            + γ_B Σ_{i<=N} Σ_{v<w} ‖f_v(x_i) - f_w(x_i)‖² + γ_W Σ_v tr(f_v' L_v f_v)

    and decides for the class with the largest <s_k, Σ_v c_v f_v(x)>. With ``multi_class="ovr"`` (MVL-binSVM) each class
    has outputs of its own and hinge losses max(0, 1 ∓ Σ_v c_v f_v(x_i)) against the rest. Two classes are the same
    either way. With ``view_weights="learned"`` c is optimized too over ‖c‖ = `weights_norm`, with a bound on how far it
    is from the global optimum.

    With γ_B = γ_W = 0 and two classes it equals ``sklearn.svm.SVC(kernel="precomputed", C=1/(2 l alpha))`` on
    Σ_v c_v² k_v without bias; with one view the simplex cone SVM (Mroueh, Poggio, Rosasco and Slotine 2012), and with
    γ_W > 0 and two classes the Laplacian SVM (Belkin, Niyogi and Sindhwani 2006).

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alpha : float, default=1e-3
        γ_A > 0, the weight of the norms.
    agreement_penalty : float, default=0.0
        γ_B, the weight of the views' differences, on labeled and unlabeled samples.
    graph_penalty : float, default=0.0
        γ_W, the weight of smoothness along each view's graph, on labeled and unlabeled samples.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        The graphs of the views; see `CoRegularizedRidge`.
    multi_class : {"ovr", "simplex"}, default="ovr"
        Each class against the rest, or all classes in one machine, which takes much longer to train.
    codes : array of shape (n_classes, n_outputs), optional
        Codes s_k of the classes, in their sorted order, for "simplex"; `simplex_vectors` by default.
    view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
        c: 1/m each; numbers, negative ones too, by name or in the order of the views; or learned with f.
    weights_norm : float, optional
        ‖c‖ of learned weights; 1/√m by default, the length of uniform ones.
    n_restarts : int, default=5
        How many starts for learned weights, the first with equal ones; others only where a proof is missing.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole. The kernel between labeled samples is held as a matrix either way.
    tol : float, default=1e-4
        The duality gap to reach, relative to the objective; for learned weights the gap to the best weights too.
    max_iter : int, default=100
        The most rounds of the solver; for "ovr" times l the most steps for one class.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones.
    random_state : int, RandomState or None, default=None
        The seed of random starts and landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    view_weights_ : array of shape (n_views_used,)
        c; a view that no sample with a part in the objective has is left out.
    codes_ : array of shape (n_classes, n_outputs)
        s_k, for "simplex" with more than two classes or codes given.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        α as ``x``, the primal objective, the duality gap and the largest violation of the optimality conditions.

    Examples
    --------
    >>> from consilience import CoRegularizedSVC
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = CoRegularizedSVC(alpha=1e-4, agreement_penalty=1e-4).fit(X[:300], y[:300])
    >>> round(model.score(X[300:], y[300:]), 1)
    0.9
    >>> proof = model.certificate()
    >>> proof.gap <= 1e-4 * proof.objective
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alpha: float = 1e-3,
        agreement_penalty: float = 0.0,
        graph_penalty: float = 0.0,
        graph: Any = "kernel",
        multi_class: str = "ovr",
        codes: Any = None,
        view_weights: Any = "uniform",
        weights_norm: float | None = None,
        n_restarts: int = 5,
        n_components: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        unlabeled: Any = None,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.agreement_penalty = agreement_penalty
        self.graph_penalty = graph_penalty
        self.graph = graph
        self.multi_class = multi_class
        self.codes = codes
        self.view_weights = view_weights
        self.weights_norm = weights_norm
        self.n_restarts = n_restarts
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples, unlabeled ones too.
        y : array-like of shape (n_samples,)
            The classes, missing for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts, in the loss, between the views and in graphs made of kernels.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._whole():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = read_views_to_fit(self, X)
        labels = read_labels(y, len(X), self.unlabeled)
        self.classes_ = labels.classes
        s = read_weights(sample_weight, len(X))
        u = s * class_weights(self.class_weight, labels, s)
        penalties = self._penalties()
        codes = self._read_codes(labels)
        rows = self._arrange(X, labels.labeled & (u > 0), s, with_unlabeled=self._with_unlabeled(penalties))
        P = 1 if codes is None and len(labels.classes) <= 2 else len(labels.classes)
        of = rows.first(labels.codes) == len(labels.classes) - 1 if P == 1 else rows.first(labels.codes)
        machine = _Machine(codes, of, P, rows.first(u), rows.scale)
        if codes is not None:
            self.codes_ = codes
        elif hasattr(self, "codes_"):
            del self.codes_

        def work(form: Any) -> tuple[list[np.ndarray], np.ndarray, Solution]:
            system = form.system(penalties.alpha)
            given = self._given_weights()
            learned = None if given is not None else self._learn_weights(system, machine)
            c: Any = given if learned is None else learned.x
            kernel = system.labeled_kernel(c)
            cholesky_or_jitter(kernel)  # a kernel that is not positive semi-definite has no optimum
            tol = self.tol if learned is None else 0.1 * self.tol  # the rest of the gap is the weights'
            found = machine.solve(kernel, tol=tol, max_iter=self.max_iter)
            coefficients = system.coefficients(c, machine.forces(found.x))
            solution = machine.judge(found, system.outputs(c, coefficients), self.tol)
            if solution.converged and system.jitter:
                solution = replace(solution, status="jitter")
            parts = coefficients if isinstance(form, GramForm) else form.split(coefficients)
            return parts, c, solution if learned is None else with_learned(solution, learned)

        return self._solve(rows, penalties, work)

    def _read_codes(self, labels: Labels) -> np.ndarray | None:
        """The codes of the classes; None where each class has an output of its own."""
        P = len(labels.classes)
        if self.multi_class not in ("simplex", "ovr"):
            raise ValueError(f"`multi_class` is 'simplex' or 'ovr'; got {self.multi_class!r}.")
        if self.codes is None:
            return None if self.multi_class == "ovr" or P <= 2 else simplex_vectors(P)
        if self.multi_class == "ovr":
            raise ValueError("`codes` are for multi_class='simplex'; with 'ovr' each class has an output of its own.")
        codes = np.asarray(self.codes, dtype=np.float64)
        if codes.ndim != 2 or len(codes) != P or not np.isfinite(codes).all():
            raise ValueError(f"`codes` must be finite, one row per class, {P} in all; got shape {codes.shape}.")
        return codes

    def _learn_weights(self, system: Any, machine: _Machine) -> Solution:
        """Weights by the gradient of the dual value, which is a lower bound on the objective; its gap is its own."""
        system.keep()
        last: list[np.ndarray | None] = [None]

        def evaluate(c: np.ndarray) -> Evaluation:
            found = machine.solve(system.labeled_kernel(c), tol=0.1 * self.tol, max_iter=self.max_iter, x0=last[0])
            last[0] = found.x
            gradient, curvature = weight_slopes(system, c, machine.forces(found.x))
            dual = float(found.objective) - float(found.gap)  # type: ignore[arg-type]
            return dual, gradient / machine.scale, None if curvature is None else curvature / machine.scale

        starts = self._starts()
        return learn_weights(evaluate, starts, tol=0.5 * self.tol, max_iter=self.max_iter)

    def _view_outputs(self, X: Views) -> np.ndarray:
        outputs = super()._view_outputs(X)
        if not hasattr(self, "codes_"):
            return outputs
        return outputs @ (self.codes_.T if len(self.codes_) != 2 else (self.codes_[1:] - self.codes_[:1]).T)
