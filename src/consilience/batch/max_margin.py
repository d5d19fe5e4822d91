"""Maximum margin regression for classes: label vectors, one dual variable per sample whatever their number."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..kernels.outputs import label_vectors
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import ViewClassifier
from ..views.validation import class_weights, read_labels, read_views_to_fit, read_weights
from ._max_margin import LabelKernel, MaxMargin

__all__ = ["MaxMarginClassifier"]


class MaxMarginClassifier(ViewClassifier, MaxMargin):
    """MMR, maximum margin regression, for classes (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006).

    Classes have label vectors y_t, and samples are mapped to them by one operator W from the space of the kernel:

        min ½ ‖W‖² + C Σ_i ξ_i,  <y_i, Wφ(x_i) (+ b)> >= 1 - ξ_i,  ξ >= 0
        dual: min ½ α'(K_y ∘ K)α - 1'α,  0 <= α <= C  (and Σ_i α_i y_i = 0 with a bias)

    K_y holds the inner products of labels. The dual has one variable per sample, whatever the number of classes, and
    decides for the class with the largest <y_t, Wφ(x)> = Σ_i α_i <y_t, y_i> k(x_i, x). With several views K is their
    sum, product or polynomial; see `combine`.

    With two classes and ``labels="simplex"`` it equals ``sklearn.svm.SVC`` without a bias; with ``labels="indicator"``
    it is one one-class machine per class.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    C : float, default=1.0
        The weight of the errors.
    labels : {"simplex", "indicator", "mean", "median"}, array or dict, default="simplex"
        The label vectors: corners of a hyper-tetrahedron, whose inner products are all -1/(T-1); unit vectors of R^T;
        the mean or median of each class over all columns, less their mean over the classes, at length 1; or given,
        an array of one row per class in sorted order, or a dict of vectors by class. Given vectors should have no
        common part: take their mean away, or it meets the margins by itself.
    combine : {"sum", "product"}, Polynomial or list, default="sum"
        How the views' kernels make one: their sum; their product; ``Polynomial(degree, constant)`` of their sum; or
        products of views with weights, such as ``[("audio", 1.0), (("audio", "video"), 0.5)]``.
    fit_intercept : bool, default=False
        Learn b too, by an augmented Lagrangian. Refused where b alone would meet all margins, as with indicators.
    normalize : {"item", "variable"}, optional
        Scale every sample of a view to length 1, or every column to mean 0 and variance 1.
    n_components : int or float, optional
        The number of Nyström landmarks, or their fraction of the samples; by default the kernel is taken whole.
    tol : float, default=1e-3
        The duality gap to reach, relative to the objective. From 1e-4 on kernels are evaluated in single precision,
        unless C·k(x, x) is above 10,000 or rounding stands in the way.
    max_iter : int, default=10000
        The most passes over the violating samples.
    cache_size : float, default=1000
        The megabytes that rows of the kernel may take.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones; they are left out.
    warm_start : bool, default=False
        Start from the last fit's α where the number of samples is the same.
    random_state : int, RandomState or None, default=None
        The seed of landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    label_vectors_ : array of shape (n_classes, n_dimensions)
        y_t as rows.
    dual_coef_ : array of shape (n_support,)
        α of the support.
    support_ : array of int
        The positions of the support among the samples given to `fit`.
    intercept_ : array of shape (n_classes,)
        <y_t, b>; zeros without a bias.
    coef_ : dict of array
        With linear kernels or `n_components`: the coefficients of the features, a column per class.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        α as ``x``, the primal objective, the duality gap and the largest violation of the optimality conditions.

    Notes
    -----
    A view that is absent in a sample adds nothing to a sum, and the sample is scaled by m over the number of its views;
    in products and polynomials the mean over the training samples that have the view stands for it.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        labels: Any = "simplex",
        combine: Any = "sum",
        fit_intercept: bool = False,
        normalize: str | None = None,
        n_components: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_size: float = 1000,
        class_weight: Any = None,
        unlabeled: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.labels = labels
        self.combine = combine
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,)
            The classes, missing for samples to leave out.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error():
            self._check_parameters()
            X = read_views_to_fit(self, X)
            labels = read_labels(y, len(X), self.unlabeled)
            s = read_weights(sample_weight, len(X))
            u = s * class_weights(self.class_weight, labels, s)
            u = np.where(labels.labeled, u, 0.0)
            weighted = np.unique(labels.codes[u > 0])
            if self.fit_intercept and len(weighted) == 1:
                only = labels.classes[weighted[0]]
                raise ValueError(
                    f"`fit_intercept` is for two classes or more; samples with a weight have one class, {only!r}."
                )
            X = self._normalized(X, s)
            rows = self._arrange(X, labels.labeled, u, with_unlabeled=False)
            self.classes_ = labels.classes
            of = rows.first(labels.codes)
            alike = None
            if isinstance(self.labels, str) and self.labels in ("mean", "median") and len(labels.classes) > 1:
                self.label_vectors_ = self._class_centers(labels.classes, rows.X, of, rows.s)
            else:
                self.label_vectors_, alike = label_vectors(self.labels, labels.classes)
            found = LabelKernel.of_vectors(of, self.label_vectors_, alike)
            self._label_gram = found.rows(np.arange(found.n)) if found.A is None else found.A
            self._learn(rows, found, self.C * rows.s)
            self.intercept_ = np.zeros(found.n) if self._bias is None else self._label_gram @ self._bias
        return self

    def _class_centers(self, classes: np.ndarray, X: Views, of: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Means or medians of the classes over all columns, less their own mean, at length 1."""
        parts = []
        for name in X.names:
            if X.kind(name) not in ("dense", "sparse"):
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)} data; labels='{self.labels}' takes the {self.labels} of "
                    "numbers. Use 'simplex'."
                )
            centers = np.zeros((len(classes), _blocks.width(X.block(name))))
            for t in range(len(classes)):
                own = np.flatnonzero((of == t) & X.present(name))
                if len(own):
                    block = _blocks.take(X.block(name), own)
                    if self.labels == "mean":
                        centers[t] = s[own] @ (block if sp.issparse(block) else _blocks.to_numpy(block)) / s[own].sum()
                    else:
                        centers[t] = np.median(
                            block.toarray() if sp.issparse(block) else _blocks.to_numpy(block), axis=0
                        )
            parts.append(centers)
        centers = np.hstack(parts)
        centers -= centers.mean(axis=0)
        lengths = np.sqrt((centers**2).sum(axis=1))
        if not (lengths > 1e-12 * lengths.max()).all():
            which = classes[int(lengths.argmin())]
            raise ValueError(
                f"labels='{self.labels}': the {self.labels} of class {which!r} is that of all classes, which leaves it "
                "no direction. Use 'simplex'."
            )
        return centers / lengths[:, None]

    def _of_label_sums(self, sums: np.ndarray) -> np.ndarray:
        """The scores of the classes; for two classes half their difference, which is f of the binary machine."""
        scores = sums @ self._label_gram
        return scores if len(self.classes_) != 2 else (scores[..., 1:] - scores[..., :1]) / 2

    def _combined(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self._read_new(X)
        if hasattr(self, "coef_"):
            scores = self._over_features(X)
        else:
            scores = self._of_label_sums(self._label_sums(X, len(self.classes_)))
        bias = self.intercept_ if len(self.classes_) != 2 else (self.intercept_[1:] - self.intercept_[:1]) / 2
        return scores + bias

    def _view_outputs(self, X: Views) -> np.ndarray:
        X = self._scaled(X)
        if hasattr(self, "coef_"):
            return self._outputs_over_features(X)
        return self._of_label_sums(self._view_label_sums(X, len(self.classes_)))

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return each view's own answer, without the bias; where the kernels of views are added.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_views) or (n_samples, n_views, n_classes)
            The scores from each view's kernel alone; NaN where a view is absent.
        """
        check_is_fitted(self)
        self._check_adds()
        return super().view_decision_function(X)
