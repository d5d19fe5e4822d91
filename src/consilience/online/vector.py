"""The perceptron for class vectors: maximum margin regression learned by additive updates."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..kernels.outputs import read_class_vectors
from ..solvers.certificates import PerceptronCertificate, sparsity_bound, vector_perceptron_bounds
from ..solvers.linalg import is_positive
from ..views._blocks import is_single
from ..views._docs import shared_docs
from ..views.conversion import to_float64
from ..views.estimator import ViewClassifier
from ._bounds import ComparedSamples, machine_without_intercept, takes_from_all
from ._frame import OnlineEstimator
from ._grams import Grams
from ._parameters import CONSTRAINTS
from ._vector import VectorMachine, VectorRule, coefficient_pass

__all__ = ["VectorPerceptron"]


@shared_docs
@dataclass(eq=False, repr=False)
class VectorPerceptron(ViewClassifier, OnlineEstimator):
    """The vector perceptron of MMR (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006, Figures 1 and 2).

    Classes have vectors y_t, and an operator W maps samples to them. ``variant="operator"`` (Figure 1, the paper's
    primal algorithm) takes the samples in turn and, with margin λ and step s, does

        if <y_i, Wφ(x_i)> < λ:  W <- W + s y_i φ(x_i)'

    It is the incremental subgradient method for Σ_i max(0, λ - <y_i, Wφ(x_i)>) over W, and needs only kernels of φ: W
    is s Σ y_i φ(x_i)' over the updates. ``variant="coefficients"`` (Figure 2, the paper's dual algorithm) writes
    W = Σ_j α_j y_j φ(x_j)' and takes the subgradient in α, which is another algorithm:

        if Σ_j α_j κ_ij < λ:  α_j <- α_j + s κ_ij for all j,  κ_ij = <y_i, y_j> k(x_i, x_j)

    It changes the coefficients of all samples at once, so it cannot learn from a stream.

    Where ‖y‖ = ‖φ‖ = 1, λ = 1 and some W* of norm 1 has margin Γ, the first makes at most (1/Γ²)(1 + 2/s) updates and
    ends with a margin of at least Γ/(s + 2) (Theorem 1). Few updates also bound the error rate on new samples (Graepel,
    Herbrich and Williamson 2000); `certificate` returns all three. With two classes and the simplex it is the
    perceptron with margin of Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola (2002) without an intercept.

    Parameters
    ----------
    {linear_kernel}
    variant : {"operator", "coefficients"}, default="operator"
        Whether an update changes W by one sample, or the coefficients of all samples.
    class_vectors : {"simplex", "indicator"}, array or dict, default="simplex"
        Vectors y_t of the classes; see `MaxMarginClassifier`.
    margin : float, default=1.0
        Margin λ > 0 that every sample must have.
    eta0 : float, default=1.0
        Length s > 0 of an update.
    {stream_combine}
    max_iter : int, default=100
        Maximum number of passes over the samples in `fit`, which stops after the first pass without an update.
    {stream_ending}

    Attributes
    ----------
    {classes_}
    class_vectors_ : array of shape (n_classes, n_dimensions)
        Vectors y_t of the classes as rows.
    coef_ : dict of array
        With the linear kernel: Σ_j α_j x_j of each class by view, (n_columns, n_classes). Empty with other kernels.
    dual_coef_ : array of shape (n_support,)
        With other kernels, or ``variant="coefficients"``: α_j, which is s times the number of updates by a sample with
        ``variant="operator"``.
    support_ : array of int
        Positions of the x_j among the samples of `fit` or in the stream, where there is `dual_coef_`.
    n_updates_ : int
        Number of updates: how often the margin was missed.
    n_mistakes_ : int
        Number of wrong predictions before learning; 0 with ``variant="coefficients"``, which does not predict.
    n_samples_seen_ : int
        Number of samples seen, in all passes.
    n_iter_ : int
        Number of passes that `fit` made; 1 in a stream.
    {error_curve_}
    converged_ : bool
        Whether the last pass of `fit` made no update: every sample has the margin λ.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import VectorPerceptron
    >>> from consilience.kernels import RBF
    >>> X, y = load_iris(return_X_y=True)
    >>> keep = y < 2
    >>> model = VectorPerceptron(RBF(0.5), random_state=0).fit(X[keep], y[keep])
    >>> model.converged_
    True
    >>> proof = model.certificate(X[keep], y[keep])
    >>> proof.n_updates <= proof.bound and proof.margin >= proof.margin_bound
    True
    """

    _late_classes = False  # the class vectors are chosen for all classes together
    _parameter_constraints = {
        **CONSTRAINTS,
        "variant": [StrOptions({"operator", "coefficients"})],
        "margin": [Interval(Real, 0, None, closed="neither")],
    }

    kernel: Any = "linear"
    _: KW_ONLY
    variant: str = "operator"
    class_vectors: Any = "simplex"
    margin: float = 1.0
    eta0: float = 1.0
    combine: Any = "sum"
    max_iter: int = 100
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    prepare: Any = None
    views: Any = None

    def _streams(self) -> bool:
        if self.variant == "coefficients":
            raise AttributeError(
                "variant='coefficients' changes the coefficients of all samples at each update, so it needs them all "
                "at once: use `fit`, or variant='operator' for a stream."
            )
        return True

    def _new_machine(self, n_outputs: int) -> VectorMachine:
        vectors, alike = read_class_vectors(self.class_vectors, self.classes_)
        gram = vectors @ vectors.T
        if alike is not None:  # exact to the last bit, so that ties are ties
            gram = np.where(np.eye(len(self.classes_), dtype=bool), *alike)
        adds = isinstance(self.combine, str) and self.combine == "sum"
        linear = adds and self._has_linear_kernel() and self.variant == "operator"
        return VectorMachine(Grams("joint", self.combine), vectors, gram, linear=linear)

    def _rule(self) -> VectorRule:
        return VectorRule(float(self.margin), float(self.eta0))

    # -- learning
    partial_fit = available_if(_streams)(OnlineEstimator.partial_fit)
    predict_then_learn = available_if(_streams)(OnlineEstimator.predict_then_learn)
    learn_one = available_if(_streams)(OnlineEstimator.learn_one)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start again and pass over the samples until each has the margin, `max_iter` times at most.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,)
            Classes; samples without one are skipped.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the steps, for variant="operator"; samples of weight 0 are skipped.

        Returns
        -------
        self
            The estimator.
        """
        if self.variant != "coefficients":
            return super().fit(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError("variant='coefficients' takes no sample weights. Use variant='operator'.")
        self._validate_params()
        with self._restore_on_error():
            X, labels, _, ids = self._begin_fit(X, y)
            self._add_views(X)
            machine, codes, alpha = self._machine, np.searchsorted(self.classes_, labels), np.zeros(len(X))
            _, Q = machine.products(X, codes)
            for order in self._passes(len(X)):
                order = np.arange(len(X)) if order is None else order
                machine.n_updates += int(coefficient_pass(Q, order, alpha, *self._rule()))
                self.n_samples_seen_ += len(X)
            used = np.flatnonzero(alpha)
            machine.add(machine.known(X)[used], codes[used], alpha[used], ids[used])
            machine.squared_norm = float(alpha @ (Q @ alpha))  # ‖W‖²
            self._used_views = tuple(self.kernels_)
        return self

    # -- what was learned
    @property
    def class_vectors_(self) -> np.ndarray:
        """Vectors y_t of the classes as rows."""
        check_is_fitted(self, "n_samples_seen_")
        return np.asarray(self._machine.class_vectors)

    @property
    def coef_(self) -> dict[str, np.ndarray]:
        """Σ_j α_j x_j of each class by view with the linear kernel; empty with other kernels."""
        check_is_fitted(self, "n_samples_seen_")
        return dict(self._machine.weights)

    @property
    def support_(self) -> np.ndarray:
        """Positions of the samples kept, among those of `fit` or in the stream."""
        ids: np.ndarray = self._kept("support_").support.ids
        return np.sort(ids)

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the samples kept."""
        machine = self._kept("dual_coef_")
        return np.asarray(machine.alpha[np.argsort(machine.support.ids)])

    def _kept(self, name: str) -> Any:
        check_is_fitted(self, "n_samples_seen_")
        if self._machine.linear:
            raise AttributeError(f"VectorPerceptron has `coef_` with the linear kernel, not `{name}`.")
        return self._machine

    # -- proof
    def certificate(self, X: Any = None, y: Any = None) -> PerceptronCertificate:  # type: ignore[override]
        """Return the number of updates and, for the samples learned, the bounds of Theorem 1 and on the error rate.

        Parameters
        ----------
        X : Views or what `as_views` reads, optional
            The samples learned. The hard-margin machine finds the widest margin Γ on them.
        y : array-like of shape (n_samples,), optional
            Classes of the samples.

        Returns
        -------
        PerceptronCertificate
            The number of updates, at most ``bound``; the margin, at least ``margin_bound`` once every sample has the
            margin λ. ``risk`` bounds the error rate with probability 95%, for independent samples, classes that are
            known in advance, no `prepare`, and kernels that take no parameter from the data in `fit`. It is None if a
            sample is not classified correctly. Bounds are for variant="operator"; those of Theorem 1 are None where no
            operator separates the samples.
        """
        check_is_fitted(self, "n_samples_seen_")
        counts = PerceptronCertificate(status="streamed", n_updates=self.n_updates_)
        if X is None:
            return counts
        X, codes = self._read_pairs(ComparedSamples(X, y, None))
        X, machine = to_float64(X), self._machine
        K, Q = machine.products(X, codes)
        scores = machine.sums(machine.known(X)) @ machine.class_gram
        margins = scores[np.arange(len(codes)), codes]
        margin = float(margins.min() / max(machine.squared_norm, 0.0) ** 0.5) if machine.squared_norm > 0 else 0.0
        counts = replace(counts, margin=margin, risk=self._risk(scores, codes))
        single = any(is_single(X.block(name)) for name in X.names)
        definite = not any(kernel.may_be_indefinite for kernel in self.kernels_.values())
        widest = _widest_margin(Q) if definite or is_positive(K, single=single) else None
        if self.variant != "operator" or widest is None:
            return counts
        size = float(Q.diagonal().max())  # R² = max ‖y_i‖²‖φ_i‖²
        bound, margin_bound = vector_perceptron_bounds(widest, self.eta0, self.margin, size)
        # the bound on the margin is for a finished run
        reached = margin_bound if float(margins.min()) >= self.margin * (1 - 1e-9) else None
        return replace(counts, bound=bound, margin_bound=reached, widest=widest)

    def _risk(self, scores: np.ndarray, codes: np.ndarray) -> float | None:
        """Return the bound on the error rate by the number of samples that caused updates, where one holds."""
        n, machine = len(codes), self._machine
        own, others = scores[np.arange(n), codes], scores.copy()
        others[np.arange(n), codes] = -np.inf
        right = scores.shape[1] > 1 and bool((own > others.max(axis=1)).all())
        # W is a function of the samples with updates only if the others did not shape kernels or scales
        shaped = takes_from_all(self) or self.prepare is not None
        if not right or shaped or self.variant != "operator" or self.n_samples_seen_ % n:
            return None
        # with linear kernels, updates of several passes are not told apart
        return sparsity_bound(self.n_updates_ if machine.linear else len(machine.support), n)


def _widest_margin(Q: np.ndarray) -> float | None:
    """Return the margin of the hard-margin machine at its solution; None where samples are not separated."""
    scale = 1 / float(np.maximum(Q.diagonal(), 0).mean() or 1.0)
    alpha, products = machine_without_intercept(Q, 1e6 * scale, 1e-6, 10_000)  # C so large that the margin is hard
    squared_norm = float(alpha @ products)
    widest = float(products.min() / np.sqrt(squared_norm)) if squared_norm > 0 else 0.0  # min <y_i, Wφ_i> / ‖W‖
    return widest if widest > 0 else None
