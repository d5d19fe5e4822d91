"""Support vector machines over several views: class vectors for all classes at once, or one class against the rest."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .._backend import few_threads
from ..kernels.outputs import simplex_vectors
from ..solvers.coregularized import Penalties, WeightSearch
from ..solvers.coregularized_svm import SVMProblem
from ..solvers.hinge import HingeLoss
from ..views._docs import shared_docs
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, designs, given_weights, is_precise, raise_if_indefinite, read_training, store_fit
from ._graphs import add_graphs
from ._memory import plan_memory
from ._terms import learns_weights, weight_starts, weights_order
from .coregularized import output_groups

__all__ = ["CoRegularizedSVC"]


def read_vectors(given: Any, n_classes: int) -> np.ndarray | None:
    """Return the vectors of the classes; None where each class has an output of its own."""
    if isinstance(given, str):
        return None if given == "ovr" or n_classes <= 2 else simplex_vectors(n_classes)
    vectors = np.asarray(given, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != n_classes or not np.isfinite(vectors).all():
        raise ValueError(
            f"`class_vectors` must be finite, one row per class, {n_classes} in all; got shape {vectors.shape}."
        )
    return vectors


def hinge_loss(data: TrainingData, vectors: np.ndarray | None) -> HingeLoss:
    """Return the loss of the labeled samples."""
    Y, u, s = data.Y, data.u, data.s[: data.l]
    if data.by_blocks:  # targets and weights are read once; features are read block by block
        parts = [(Y[u > 0], u[u > 0], s[u > 0]) for _, s, u, Y in data.rows()]
        Y, u, s = (np.concatenate(column) for column in zip(*parts, strict=True))
    # one output has the sign of the class; otherwise that of the own class is the largest
    classes = (Y[:, 0] > 0).astype(int) if data.n_outputs == 1 else Y.argmax(axis=1)
    return HingeLoss(classes, vectors, data.n_outputs, u, float(s.sum()))


@shared_docs
@dataclass(eq=False, repr=False)
class CoRegularizedSVC(ViewClassifier, BatchEstimator):
    """MVL-SVM and MVL-binSVM: co-regularized support vector machines (Minh, Bazzani and Murino 2016).

    With vectors s_k of the classes (``class_vectors="simplex"``: MVL-SVM) solves, over one function f_v per view,

        min 1/l Σ_{i<=l} Σ_{k≠y_i} max(0, -<s_k, s_{y_i}> + <s_k, Σ_v c_v f_v(x_i)>) + γ_A Σ_v ‖f_v‖²
            + γ_B Σ_{i<=N} Σ_{v<w} ‖f_v(x_i) - f_w(x_i)‖² + γ_W Σ_v tr(f_v' L_v f_v)

    and decides for the class with the largest <s_k, Σ_v c_v f_v(x)>. With ``class_vectors="ovr"`` (MVL-binSVM) each
    class has outputs of its own and hinge losses max(0, 1 ∓ Σ_v c_v f_v(x_i)) against the rest. For two classes both
    are the same. With ``view_weights="learned"`` c is optimized too over ‖c‖ = `weights_norm`, with a bound on how far
    it is from the global optimum.

    With γ_B = γ_W = 0 and two classes it equals ``sklearn.svm.SVC(kernel="precomputed", C=1/(2 l alpha))`` on
    Σ_v c_v² k_v without bias; with one view the simplex cone SVM (Mroueh, Poggio, Rosasco and Slotine 2012), and with
    γ_W > 0 and two classes the Laplacian SVM (Belkin, Niyogi and Sindhwani 2006).

    Parameters
    ----------
    {kernel_several}
    alpha : float, default=1e-3
        Penalty on the norms of the functions, γ_A > 0.
    {agreement_penalty}
    {graph_penalty}
    {graph}
    class_vectors : {"ovr", "simplex"} or array of shape (n_classes, n_outputs), default="ovr"
        "ovr" fits each class against the rest. "simplex" fits all classes in one machine with the vertices of a
        simplex as vectors s_k. An array gives the vectors, classes in sorted order.
    {view_weights}
    {weights_norm}
    {weights_order}
    {n_restarts}
    output_kernel : array of shape (n_outputs, n_outputs), optional
        Symmetric positive semi-definite matrix R: the kernel of the vector-valued functions is k_v(x, z) R. Its rows
        are the classes for "ovr" (one row for two classes), and the columns of the class vectors otherwise. Default:
        identity.
    {n_components}
    tol : float, default=1e-4
        Duality gap to reach, relative to the objective; for learned weights also the gap to the best weights.
    max_iter : int, default=100
        Maximum number of rounds of the solver. Over exact kernels and for "ovr", max_iter times n_labeled steps per
        class; with `n_components`, a round visits each labeled sample up to four times.
    {class_weight}
    {unlabeled}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {classes_}
    {view_weights_several}
    class_vectors_ : array of shape (n_classes, n_outputs)
        Vectors s_k; not set for one class against the rest.
    {dual_coef_several}
    {support_}
    {coef_several}
    {kernels_several}
    {solution_dual}

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

    _cpu_only = True
    _parameter_constraints = constraints(
        "alpha", "agreement_penalty", "graph_penalty", "view_weights", "weights_norm", "weights_order", "n_restarts",
        "n_components", "tol", "max_iter", "random_state", "verbose",
        class_vectors=[StrOptions({"ovr", "simplex"}), "array-like"],
    )  # fmt: skip

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1e-3
    agreement_penalty: float = 0.0
    graph_penalty: float = 0.0
    graph: Any = "kernel"
    class_vectors: Any = "ovr"
    view_weights: Any = "uniform"
    weights_norm: float | None = None
    weights_order: float | None = None
    n_restarts: int = 5
    output_kernel: Any = None
    n_components: float | None = None
    tol: float = 1e-4
    max_iter: int = 100
    class_weight: Any = None
    unlabeled: Any = None
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the functions and weights of the views.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples, with or without labels. Blocks of rows have their targets and weights with them, and need
            `n_components`. Dual variables of all labeled samples are kept in memory, and their features if they fit.
        y : array-like of shape (n_samples,)
            Classes, missing for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss, in the agreement between views and in graphs made of kernels.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            penalties = Penalties(self.alpha, self.agreement_penalty, self.graph_penalty)
            several, unlabeled = learns_weights(self), penalties.use_unlabeled
            data = read_training(self, X, y, sample_weight, use_unlabeled=unlabeled, several=several)
            plan_memory(self, data, single=True)
            vectors = read_vectors(self.class_vectors, len(self.classes_))
            groups = output_groups(self.output_kernel, data.n_outputs if vectors is None else vectors.shape[1])
            loss = hinge_loss(data, vectors)
            c = given_weights(self)
            search = WeightSearch(
                weight_starts(self) if c is None else [], self.tol, self.max_iter, order=weights_order(self)
            )
            with few_threads(data.n_used):
                for design in designs(self, data):
                    if penalties.graph:
                        add_graphs(self, data, design, penalties)
                    solution = SVMProblem(design, loss, penalties, groups).solve(c, search, self.max_iter)
                    if is_precise(design, solution):
                        break
            return self._store(data, design, solution, vectors)

    def _store(self, data: Any, design: Any, solution: Any, vectors: np.ndarray | None) -> Self:
        raise_if_indefinite(self, solution)
        functions, alpha = solution.x
        store_fit(self, data, design, replace(solution, x=functions))
        self.solution_ = replace(solution, x=alpha)
        if vectors is not None:
            self.class_vectors_ = vectors
        elif hasattr(self, "class_vectors_"):
            del self.class_vectors_
        return self

    def _view_outputs(self, X: Views) -> np.ndarray:
        outputs = super()._view_outputs(X)
        if not hasattr(self, "class_vectors_"):
            return outputs
        vectors = self.class_vectors_
        return outputs @ (vectors if len(vectors) != 2 else vectors[1:] - vectors[:1]).T
