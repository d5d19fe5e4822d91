"""The perceptron for vector labels: maximum margin regression learned by additive updates."""

import numbers
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._backend import is_device_array, to_numpy
from .._progress import report_progress
from ..kernels import Linear, kernels_by_view, reference_views, resolve_kernels
from ..kernels.by_view import kernel_of
from ..kernels.given import as_kernel
from ..kernels.joint import JointKernel
from ..kernels.outputs import read_class_vectors
from ..solvers.certificates import PerceptronCertificate, vector_perceptron_bounds
from ..solvers.linalg import is_positive
from ..views import _blocks
from ..views._blocks import is_single
from ..views.container import Views, to_float64
from ..views.validation import read_labels, read_views_to_learn, read_views_to_predict, remember
from ._bounds import solve_square
from ._frame import OnlineLearner
from ._learner import check_kernel, stream_kernel
from ._vector_steps import coefficient_pass, operator_pass

__all__ = ["VectorPerceptron"]

BLOCK = 256  # samples whose kernels are made at a time
ENTRIES = 1 << 20  # kernel values held at a time, where predictions are made


class VectorPerceptron(OnlineLearner):
    """The vector perceptron of MMR (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006, Figures 1 and 2).

    Classes have label vectors y_t, and an operator W maps samples to them. ``algorithm="operator"`` (Figure 1, the
    paper's primal one) takes the samples in turn and, with margin λ and step s, does

        if <y_i, Wφ(x_i)> < λ:  W <- W + s y_i φ(x_i)'

    It is the incremental subgradient method for Σ_i max(0, λ - <y_i, Wφ(x_i)>) over W, and needs kernels of φ only: W
    is s Σ y_i φ(x_i)' over the updates. ``algorithm="coefficients"`` (Figure 2, the paper's dual one) writes
    W = Σ_j α_j y_j φ(x_j)' and takes the subgradient in α, which is another algorithm:

        if Σ_j α_j κ_ij < λ:  α_j <- α_j + s κ_ij for all j,  κ_ij = <y_i, y_j> k(x_i, x_j)

    It changes the coefficients of all samples at once, so that it cannot learn from a stream.

    Where ‖y‖ = ‖φ‖ = 1, λ = 1 and some W* of norm 1 has margin Γ, the first makes at most (1/Γ²)(1 + 2/s) updates and
    ends with a margin of at least Γ/(s + 2) (Theorem 1); `certificate` gives both. With two classes and the simplex it
    is the perceptron with margin of Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola (2002) without a bias.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="linear"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    algorithm : {"operator", "coefficients"}, default="operator"
        Whether updates change W by one sample, or the coefficients of all.
    labels : {"simplex", "indicator"}, array or dict, default="simplex"
        The label vectors; see `MaxMarginClassifier`.
    margin : float, default=1.0
        λ > 0.
    eta0 : float, default=1.0
        s > 0.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one; see `MaxMarginClassifier`. Absent views are for sums.
    max_iter : int, default=100
        The most passes of `fit` over the samples; it ends after the first one without an update.
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
    label_vectors_ : array of shape (n_classes, n_dimensions)
        y_t as rows.
    dual_coef_ : array of shape (n_support,)
        α: s times the number of updates of a sample, or Figure 2's coefficients.
    support_ : array of int
        The positions of the support among the samples of `fit` or in the stream; kernels only, or after `fit`.
    n_updates_ : int
        How often the margin was missed.
    n_mistakes_ : int
        How often the prediction was wrong before learning; 0 with "coefficients", which does not predict on the way.
    n_samples_seen_ : int
        The samples seen, passes counted.
    separated_ : bool
        Whether the last pass of `fit` made no update: every sample has the margin λ.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import VectorPerceptron
    >>> from consilience.kernels import RBF
    >>> X, y = load_iris(return_X_y=True)
    >>> keep = y < 2
    >>> model = VectorPerceptron(RBF(0.5), random_state=0).fit(X[keep], y[keep])
    >>> model.separated_
    True
    >>> proof = model.certificate(X[keep], y[keep])
    >>> proof.updates <= proof.bound and proof.margin >= proof.margin_bound
    True
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        algorithm: str = "operator",
        labels: Any = "simplex",
        margin: float = 1.0,
        eta0: float = 1.0,
        combine: Any = "sum",
        max_iter: int = 100,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.algorithm = algorithm
        self.labels = labels
        self.margin = margin
        self.eta0 = eta0
        self.combine = combine
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        for name in ("margin", "eta0", "max_iter"):
            value: Any = getattr(self, name)
            known = isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(float(value))
            if not (known and float(value) > 0):
                raise ValueError(f"`{name}` must be a number above 0; got {value!r}.")
        if not isinstance(self.max_iter, numbers.Integral):
            raise ValueError(f"`max_iter` must be a whole number; got {self.epochs!r}.")
        if self.algorithm not in ("operator", "coefficients"):
            raise ValueError(f"`algorithm` is 'operator' or 'coefficients'; got {self.algorithm!r}.")

    def _streams(self) -> bool:
        if self.algorithm == "coefficients":
            raise AttributeError(
                "algorithm='coefficients' changes the coefficients of all samples at each update, so that it needs "
                "them all at once: use `fit`, or algorithm='operator' for a stream."
            )
        return True

    # -- learning
    @available_if(_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn a chunk of samples, in order.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like, optional
            All classes there will be. Needed at the first call unless the first chunk has them all.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        return super().partial_fit(X, y, classes)

    @available_if(_streams)
    def learn_one(self, x: Mapping[str, Any], y: Any) -> Self:
        """Learn one sample given as a dict of view -> row; only with ``algorithm="operator"``.

        Parameters
        ----------
        x : dict
            The row of each view; absent views are left out.
        y : object
            Its class.

        Returns
        -------
        self
            The learner.
        """
        return super().learn_one(x, y)

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and pass over the samples until each has the margin, `max_iter` times at most.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        with self._restore_on_error():
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        X = read_views_to_learn(self, X, fresh=True, grams=True)
        labels = read_labels(y, len(X))
        given = np.flatnonzero(labels.labeled)
        X, codes = X[given], labels.codes[given]
        self._begin(labels.classes, announced=True)
        remember(self, X)
        kernels = kernels_by_view(self.kernel, X.names)
        shown = [name for name in X.names if X.present(name).any()]
        self.kernels_ = resolve_kernels({name: kernels[name] for name in shown}, X)
        alpha, rng = np.zeros(len(X)), check_random_state(self.random_state)
        passes = self._operator_passes if self.algorithm == "operator" else self._coefficient_passes
        self._used_views = tuple(shown)
        X = X[shown]
        passes(X, codes, alpha, rng)
        kept = np.flatnonzero(alpha)
        self.support_, self.dual_coef_, self._codes = given[kept], alpha[kept], codes[kept]
        self._support = X[kept]
        if self._is_linear():
            self._add_to_coef(X[kept], codes[kept], alpha[kept])
        elif any(kernel.reads_gram for kernel in self.kernels_.values()):
            self._length = self._norm()  # while the Gram matrix between the support is there
        self._support = reference_views(self.kernels_, X[kept])
        return self

    def _operator_passes(self, X: Views, codes: np.ndarray, alpha: np.ndarray, rng: np.random.RandomState) -> None:
        for number in range(1, int(self.max_iter) + 1):
            report_progress(number, None, of=int(self.max_iter), unit=f"{self.n_updates_:,} updates, pass")
            order = rng.permutation(len(X)) if self.shuffle else np.arange(len(X))
            before = self.n_updates_
            for start in range(0, len(X), BLOCK):
                some = order[start : start + BLOCK]
                kept = np.flatnonzero(alpha)
                sums = (
                    self._label_sums(X[some], X[kept], alpha[kept], codes[kept])
                    if len(kept)
                    else self._no_sums(len(some))
                )
                updated, wrong, _ = self._turn(X[some], codes[some], sums)
                alpha[some[updated]] += self.eta0
                self._count(wrong)
            if self.n_updates_ == before:
                self.separated_ = True
                return

    def _coefficient_passes(self, X: Views, codes: np.ndarray, alpha: np.ndarray, rng: np.random.RandomState) -> None:
        Q = self._joint(X).cross(X) * self._gram[np.ix_(codes, codes)]
        for number in range(1, int(self.max_iter) + 1):
            report_progress(number, None, of=int(self.max_iter), unit=f"{self.n_updates_:,} updates, pass")
            order = rng.permutation(len(X)) if self.shuffle else np.arange(len(X))
            updates = int(coefficient_pass(Q, order, alpha, float(self.margin), float(self.eta0)))
            self.n_updates_ += updates
            self.n_samples_seen_ += len(X)
            if not updates:
                self.separated_ = True
                return

    def _start(self) -> None:
        self.label_vectors_, alike = read_class_vectors(self.labels, self.classes_)
        self._gram = self.label_vectors_ @ self.label_vectors_.T
        if alike is not None:  # to the last bit, so that ties are ties
            self._gram = np.where(np.eye(len(self.classes_), dtype=bool), *alike)
        self.n_updates_, self.separated_ = 0, False
        self.kernels_ = {}
        self.coef_: dict[str, np.ndarray] = {}
        for name in ("support_", "dual_coef_", "_support", "_codes", "_length"):
            if hasattr(self, name):
                delattr(self, name)

    def _snapshot(self) -> dict[str, Any]:
        before = super()._snapshot()
        before.update({name: dict(before[name]) for name in ("kernels_", "coef_") if name in before})
        return before

    _late_classes = False  # the label vectors are between all classes
    _piece = 1024

    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        for name in X.names:
            if not whole and X.block(name) is not None:
                check_kernel(kernel_of(self.kernel, name), name, X)

    def _learn(self, X: Views, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        kernels = {name: kernel_of(self.kernel, name) for name in X.names}
        for name, kernel in kernels.items():
            if name not in self.kernels_ and X.block(name) is not None:
                self.kernels_[name] = stream_kernel(kernel, name, _blocks.width(X.block(name)))
        scores = np.empty((len(codes), len(self.classes_)))
        wrong = np.empty(len(codes), dtype=bool)
        for start in range(0, len(codes), BLOCK):
            rows = slice(start, start + BLOCK)
            block, own = X[rows], codes[rows]
            updated, wrong[rows], scores[rows] = self._turn(block, own, self._sums(block))
            if not updated.any():
                continue
            steps = np.full(int(updated.sum()), float(self.eta0))
            block, own, named = block[np.flatnonzero(updated)], own[updated], np.asarray(ids)[rows][updated]
            if self._is_linear():
                self._add_to_coef(block, own, steps)
                for name in ("support_", "dual_coef_"):  # those of `fit` no longer tell all
                    self.__dict__.pop(name, None)
                continue
            grown = hasattr(self, "_support")
            self.__dict__.pop("_length", None)
            self.support_ = np.concatenate([self.support_, named]) if grown else named
            self._support = Views.concat([self._support, block]) if grown else block
            self._codes = np.concatenate([self._codes, own]) if grown else own
            self.dual_coef_ = np.concatenate([self.dual_coef_, steps]) if grown else steps
        return self._outputs(scores), wrong

    def _turn(self, X: Views, codes: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A pass over few samples: which changed W, which were predicted wrongly before, and their scores."""
        updated, wrong = np.empty(len(X), dtype=bool), np.empty(len(X), dtype=bool)
        K, sums = self._joint(X).cross(X), np.ascontiguousarray(sums)
        operator_pass(sums, K, codes, self._gram, float(self.margin), float(self.eta0), updated, wrong)
        self.n_updates_ += int(updated.sum())
        return updated, wrong, sums @ self._gram

    # -- sums over the support
    def _joint(self, X: Views) -> JointKernel:
        if X.mask is not None and not (isinstance(self.combine, str) and self.combine == "sum"):
            raise ValueError(
                f"combine={self.combine!r} needs every view in every sample: what stands for an absent one would "
                "depend on the samples around it. Use combine='sum'."
            )
        return JointKernel({name: self.kernels_[name] for name in X.names}, X, self.combine, scaled=False)

    def _no_sums(self, n: int) -> np.ndarray:
        return np.zeros((n, len(self.classes_)))

    def _label_sums(self, X: Views, support: Views, alpha: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Σ α_j k(x, x_j) over the support of each class."""
        support = support.align(X.names)  # a view that is new is absent in it
        self._joint(X)  # refuses what cannot be
        K = self._joint(support).cross(X)
        place = sp.csr_array((alpha, (codes, np.arange(len(codes)))), shape=(len(self.classes_), len(codes)))
        return np.asarray((place @ K.T).T)

    def _sums(self, X: Views) -> np.ndarray:
        if not self.coef_:
            if not hasattr(self, "_support") or not len(self._support):
                return self._no_sums(len(X))
            size = max(BLOCK, ENTRIES // len(self._support))  # rows whose kernels are held at a time
            parts = [X[start : start + size] for start in range(0, len(X), size)]
            kept = (self._support, self.dual_coef_, self._codes)
            return np.concatenate([self._label_sums(part, *kept) for part in parts])
        sums = self._no_sums(len(X))
        for name in X.names:
            there = np.flatnonzero(X.present(name))
            if name in self.coef_ and len(there):
                block = _blocks.take(X.block(name), there)
                block = to_numpy(block) if is_device_array(block) else block
                sums[there] += np.asarray(block @ self.coef_[name])
        return sums

    def _is_linear(self) -> bool:
        """Whether W can be kept itself."""
        adds = isinstance(self.combine, str) and self.combine == "sum"
        return adds and not isinstance(self.kernel, Mapping) and type(as_kernel(self.kernel)) is Linear

    def _add_to_coef(self, X: Views, codes: np.ndarray, alpha: np.ndarray) -> None:
        for name in X.names:
            there = np.flatnonzero(X.present(name))
            if len(there):
                block = _blocks.take(X.block(name), there)
                T = len(self.classes_)
                place = sp.csr_array((alpha[there], (codes[there], np.arange(len(there)))), shape=(T, len(there)))
                news = place @ (block if sp.issparse(block) else _blocks.to_numpy(block))
                before = self.coef_.get(name, np.zeros((block.shape[1], T)))
                self.coef_[name] = before + (news.toarray() if sp.issparse(news) else news).T

    def _scores(self, X: Views) -> np.ndarray:
        return self._outputs(self._sums(X) @ self._gram)

    def _outputs(self, scores: np.ndarray) -> np.ndarray:
        return (scores[:, 1:] - scores[:, :1]) / 2 if scores.shape[1] == 2 else scores

    # -- proof
    def certificate(self, X: Any = None, y: Any = None) -> PerceptronCertificate:
        """Return the updates made, and with the samples learned the bounds of Theorem 1.

        Parameters
        ----------
        X : Views or what `as_views` reads, optional
            The samples learned. The widest margin Γ on them is found by the hard-margin machine.
        y : array-like of shape (n_samples,), optional
            Their classes.

        Returns
        -------
        PerceptronCertificate
            The updates, at most ``bound``; the margin, at least ``margin_bound``, once every sample has the margin λ.
            Bounds are for algorithm="operator"; they are None where no operator separates the samples.
        """
        check_is_fitted(self, "n_samples_seen_")
        if X is None:
            return PerceptronCertificate(status="streamed", updates=self.n_updates_)
        X = read_views_to_predict(self, X)
        labels = read_labels(y, len(X), classes=self.classes_)
        X, codes = to_float64(X[np.flatnonzero(labels.labeled)]), labels.codes[labels.labeled]
        K = self._joint(X).cross(X)
        Q = K * self._gram[np.ix_(codes, codes)]
        sums = self._sums(X)
        margins = np.einsum("it,it->i", sums, self._gram[codes])
        margin = float(margins.min() / max(self._norm(), 1e-300))
        if self.algorithm != "operator":
            return PerceptronCertificate(status="streamed", updates=self.n_updates_, margin=margin)
        from_outside = any(kernel.may_be_indefinite for kernel in self.kernels_.values())
        single = any(is_single(X.block(name)) for name in X.names)
        widest = _widest_margin(Q) if not from_outside or is_positive(K, single=single) else None
        if widest is None:
            return PerceptronCertificate(status="streamed", updates=self.n_updates_, margin=margin)
        size = float(Q.diagonal().max())
        bound, margin_bound = vector_perceptron_bounds(widest, self.eta0, self.margin, size)
        reached = margin_bound if float(margins.min()) >= self.margin * (1 - 1e-9) else None
        return PerceptronCertificate(
            status="streamed", updates=self.n_updates_, bound=bound, margin=margin, margin_bound=reached, widest=widest
        )

    def _norm(self) -> float:
        """‖W‖."""
        if hasattr(self, "_length"):
            return self._length
        if self.coef_:
            by_class = sum(V.T @ V for V in self.coef_.values())
        elif hasattr(self, "_support") and len(self._support):
            sums = self._label_sums(self._support, self._support, self.dual_coef_, self._codes)
            by_class = self._no_sums(len(self.classes_))
            np.add.at(by_class, self._codes, self.dual_coef_[:, None] * sums)
        else:
            return 0.0
        return float(np.sqrt(max(np.sum(by_class * self._gram), 0.0)))


def _widest_margin(Q: np.ndarray) -> float | None:
    """The margin of the hard-margin machine, measured at its solution; None where samples are not separated."""
    scale = 1 / float(np.maximum(Q.diagonal(), 0).mean() or 1.0)
    found = solve_square(Q, 1e6 * scale, tol=1e-6, max_iter=10_000)
    if found.status == "indefinite":  # rounding of the kernel leaves no operator to compare with
        return None
    alpha, g = found.x
    norm = float(alpha @ (g + 1))
    widest = float((g + 1).min() / np.sqrt(norm)) if norm > 0 else 0.0
    return widest if widest > 0 else None
