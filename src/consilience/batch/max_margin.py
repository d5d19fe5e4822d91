"""Maximum margin regression for classification: class vectors, and one dual variable per sample."""

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .._backend import to_numpy
from ..kernels.outputs import CENTERS, read_class_vectors
from ..solvers.certificates import MarginCertificate, sparsity_bound
from ..solvers.margin import solve_margin
from ..solvers.margin_intercept import solve_margin_intercept
from ..solvers.margin_labels import LabelKernel
from ..views import _blocks
from ..views._docs import shared_docs
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ..views.validation import class_weights, read_labels, read_views_to_fit, read_views_to_predict, read_weights
from ._collect import collect_blocks
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData
from ._max_margin import (
    check_intercept,
    margin_design,
    margin_outputs,
    margin_view_outputs,
    previous_alpha,
    select_labeled,
    store_margin,
)

__all__ = ["MaxMarginClassifier"]


@shared_docs
@dataclass(eq=False, repr=False)
class MaxMarginClassifier(ViewClassifier, BatchEstimator):
    """MMR, maximum margin regression, for classification (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006).

    Each class has a vector y_t. One operator W maps samples from the space of the kernel to these vectors:

        min ½ ‖W‖² + C Σ_i ξ_i,  <y_i, Wφ(x_i) (+ b)> >= 1 - ξ_i,  ξ >= 0
        dual: min ½ α'(K_y ∘ K)α - 1'α,  0 <= α <= C  (and Σ_i α_i y_i = 0 with an intercept)

    K_y holds the inner products of the samples' class vectors. The dual has one variable per sample, whatever the
    number of classes. The prediction is the class with the largest <y_t, Wφ(x)> = Σ_i α_i <y_t, y_i> k(x_i, x). With
    several views K is their sum, product or polynomial; see `combine`.

    With two classes and ``class_vectors="simplex"`` it equals ``sklearn.svm.SVC`` without an intercept. With
    ``class_vectors="indicator"`` it equals one one-class machine per class.

    Parameters
    ----------
    {kernel}
    {C}
    class_vectors : str, array or dict, default="simplex"
        Vectors of the classes. "simplex" takes the corners of a regular simplex, whose inner products are all
        -1/(T-1); "indicator" the unit vectors of R^T. "means" and "medians" take the mean or median of the samples of
        each class over all columns, as in the paper. "centered_means" and "centered_medians" subtract the mean of these
        vectors and scale them to length 1. An array gives one row per class in sorted order, a dict one vector per
        class. A part that all vectors share meets the margins by itself, so centered vectors are usually better.
    {combine}
    fit_intercept : bool, default=False
        Whether to learn b, by an augmented Lagrangian. An error is raised if b alone would meet all margins, as with
        indicators.
    {n_components_joint}
    {tol_margin}
    {max_iter_margin}
    {cache_size}
    {class_weight}
    {unlabeled_out}
    {warm_start}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {classes_}
    class_vectors_ : array of shape (n_classes, n_dimensions)
        Vectors y_t as rows.
    {dual_coef_margin}
    {support_}
    intercept_ : array of shape (n_classes,)
        <y_t, b> of each class; zeros without an intercept.
    coef_ : dict of array
        With `n_components`, or for linear kernels of many samples: coefficients of the features, one column per class.
    n_components_ : int or None
        Number of landmarks used; None for exact kernels.
    {kernels_}
    {solution_dual}

    Notes
    -----
    If views are added, a missing view adds nothing to the sum, and the sample is scaled by n_views over the number of
    its views. In products and polynomials, a missing view is replaced by its mean over the training samples that have
    it, in the space of its kernel.

    `view_decision_function` returns each view's own scores, without the intercept, if the views are added.

    To scale samples or columns first, put ``PerView(Normalizer())`` or ``PerView(StandardScaler())`` before the
    classifier in a pipeline.

    Examples
    --------
    >>> from consilience import MaxMarginClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = MaxMarginClassifier(C=10.0).fit(X[:600], y[:600])
    >>> round(model.score(X[600:], y[600:]), 1)
    0.9
    >>> proof = model.certificate()
    >>> proof.gap <= 1e-3 * proof.objective
    True
    """

    _cpu_only = True
    _parameter_constraints = constraints(
        "C", "fit_intercept", "n_components", "tol", "cache_size", "warm_start", "random_state", "verbose",
        class_vectors=[StrOptions({"simplex", "indicator", *CENTERS}), Mapping, "array-like"],
        max_iter=[Interval(Integral, 1, None, closed="left")],
    )  # fmt: skip

    kernel: Any = "rbf"
    _: KW_ONLY
    C: float = 1.0
    class_vectors: Any = "simplex"
    combine: Any = "sum"
    fit_intercept: bool = False
    n_components: float | None = None
    tol: float = 1e-3
    max_iter: int = 10_000
    cache_size: float = 1000
    class_weight: Any = None
    unlabeled: Any = None
    warm_start: bool = False
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the operator to samples and their classes.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and are collected in memory; they
            are refused if they do not fit.
        y : array-like of shape (n_samples,)
            Classes, missing for samples to leave out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss. A weight of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            X, y, sample_weight = collect_blocks(self, X, y, sample_weight)
            X = read_views_to_fit(self, X, sample_weight)
            s = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
            classes = read_labels(in_order_of(X, y, "y"), len(X), self.unlabeled, weights=s)
            data = select_labeled(self, X, classes.codes, s * class_weights(self.class_weight, classes, s))
            self.classes_ = classes.classes
            self.class_vectors_, alike = _read_vectors(self.class_vectors, self.classes_, data)
            labels = LabelKernel.of_vectors(data.Y, self.class_vectors_, alike)
            if self.fit_intercept:
                self._check_two_classes(data)
                check_intercept(labels)
            start = previous_alpha(self, data)
            design = margin_design(self, data, labels)
            solve = solve_margin_intercept if self.fit_intercept else solve_margin
            solution = solve(
                design.arrays, labels, self.C * data.u, tol=self.tol, max_iter=int(self.max_iter), x0=start
            )
            self._score_map = _score_map(labels.rows(np.arange(labels.n)) if labels.A is None else labels.A)
            store_margin(self, data, design, solution, labels.n, self._score_map)
            b = solution.x[2] if self.fit_intercept else np.zeros(self.class_vectors_.shape[1])
            self.intercept_ = self.class_vectors_ @ b
            return self

    def certificate(self, X: Any = None, y: Any = None) -> MarginCertificate:
        """Return what is proved about the fit and, for the training samples, a bound on the error rate.

        The fit depends on its support samples alone. A copy is fitted to these. If it is right on all other samples,
        their number bounds its error rate on new ones (`sparsity_bound`; Graepel, Herbrich and Williamson 2000).

        Parameters
        ----------
        X : Views or what `as_views` reads, optional
            The training samples, all of them in their order. By default, there is no bound on the error rate.
        y : array-like of shape (n_samples,), optional
            Classes of the samples.

        Returns
        -------
        MarginCertificate
            The objective, its gap to the optimum, the residual of the optimality conditions; with samples also
            ``risk``, a bound on the error rate of the copy, with probability 95%, for independent samples. Kernels,
            scales and `C` must not have been chosen by them. It is None if the copy is wrong on another sample.
        """
        known = super().certificate()
        if known.status == "shared":  # a copy without samples
            return MarginCertificate(**vars(known))
        proof = MarginCertificate(**vars(known), n_support=int(np.count_nonzero(self.dual_coef_)))
        if X is None:
            return proof
        X = read_views_to_predict(self, X)
        labels = read_labels(in_order_of(X, y, "y"), len(X), self.unlabeled, classes=self.classes_)
        if len(X) != self._n_fit:
            raise ValueError(
                f"MaxMarginClassifier was fitted to {self._n_fit} samples, and {len(X)} are given. The bound needs all "
                "of them."
            )
        kept, own = self.support_[self.dual_coef_ > 0], self.classes_[labels.codes]
        others = np.setdiff1d(np.flatnonzero(labels.labeled), kept)
        # a copy without a class is wrong on it, and from half of the samples on the bound is 1
        if len(np.unique(own[kept])) < len(self.classes_) or len(kept) >= len(others) or len(self.classes_) < 2:
            return proof
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the copy counts as it is
            copy = clone(self).set_params(unlabeled=None).fit(X[kept], own[kept])
        right = bool((copy.predict(X[others]) == own[others]).all())
        return replace(proof, risk=sparsity_bound(len(kept), len(kept) + len(others)) if right else None)

    def _check_two_classes(self, data: TrainingData) -> None:
        weighted = np.unique(data.Y)
        if len(weighted) == 1:
            raise ValueError(
                "`fit_intercept` is for two classes or more; samples with a weight have one class, "
                f"{self.classes_[weighted[0]]!r}."
            )

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        outputs = margin_outputs(self, X, len(self.classes_), self._score_map)
        two = len(self.classes_) == 2
        return outputs + ((self.intercept_[1:] - self.intercept_[:1]) / 2 if two else self.intercept_)

    def _view_outputs(self, X: Views) -> np.ndarray:
        return margin_view_outputs(self, X, len(self.classes_), self._score_map)


def _score_map(gram: np.ndarray) -> np.ndarray:
    """Return the matrix from sums by class to scores; for two classes half their difference, as in a binary machine."""
    return gram if len(gram) != 2 else (gram[:, 1:] - gram[:, :1]) / 2


# -- vectors of the classes
def _read_vectors(given: Any, classes: np.ndarray, data: TrainingData) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Return the vectors of the classes; also their squared length and any inner product, if these are all the same."""
    if isinstance(given, str) and given in CENTERS and len(classes) > 1:
        return _class_centers(given, classes, data), None
    return read_class_vectors(given, classes)


def _class_centers(kind: str, classes: np.ndarray, data: TrainingData) -> np.ndarray:
    """Return means or medians of the classes over all columns; centered ones less their own mean, at length 1."""
    X, parts = data.X, []
    for name in X.names:
        if X.kind(name) not in ("dense", "sparse"):
            raise ValueError(
                f"View '{name}' holds {X.kind(name)} data; class_vectors='{kind}' needs numbers. Use 'simplex'."
            )
        centers = np.zeros((len(classes), _blocks.width(X.block(name))))
        for t in range(len(classes)):
            rows = np.flatnonzero((t == data.Y) & X.present(name))
            if len(rows):
                centers[t] = _center(kind, _blocks.take(X.block(name), rows), data.u[rows])
        parts.append(centers)
    centers = np.hstack(parts)
    centered = kind.startswith("centered")
    if centered:
        centers -= centers.mean(axis=0)
    lengths = np.sqrt((centers**2).sum(axis=1))
    if not (lengths > 1e-12 * lengths.max()).all():
        which = classes.tolist()[int(lengths.argmin())]
        zero = "the mean of these vectors over the classes" if centered else "0"
        raise ValueError(
            f"class_vectors='{kind}': the vector of class {which!r} equals {zero}, so it has no direction. Use "
            "'simplex'."
        )
    return centers / lengths[:, None] if centered else centers


def _center(kind: str, block: Any, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean, or the weighted median, of the rows of a block."""
    sparse = sp.issparse(block)
    if kind.endswith("means"):
        return weights @ (block if sparse else to_numpy(block)) / weights.sum()
    values = np.asarray(block.toarray() if sparse else to_numpy(block))
    order = np.argsort(values, axis=0)
    sums = np.cumsum(weights[order], axis=0)  # by column, in the order of its values
    half, columns = sums[-1] / 2, np.arange(values.shape[1])
    # the middle value, or the mean of the two where half of the weight is below; whole weights are repetitions
    middle = [(sums < half * (1 - 1e-12)).sum(axis=0), (sums <= half * (1 + 1e-12)).sum(axis=0)]
    low, high = (values[order[np.minimum(row, len(values) - 1), columns], columns] for row in middle)
    return np.asarray((low.astype(np.float64) + high) / 2)
