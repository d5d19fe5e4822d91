"""What kernel learners over views share: their rows in order, weights of views, Grams or features, what they keep."""

import numbers
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._backend import to_numpy
from ..kernels import kernels_by_view, present_grams, reference_views, resolve_kernels, view_grams
from ..kernels.features import Nystroem
from ..solvers.certificates import Certificate, Solution
from ..solvers.coupled import NotPositive
from ..solvers.linalg import is_positive
from ..solvers.weights import sphere_starts
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views.container import Views, to_float64
from ..views.estimator import ViewClassifier
from ..views.validation import class_weights, read_labels, read_targets, read_views_to_fit, read_weights
from ._base import BatchLearner

ROWS = 4096  # rows at a time where features or predictions are made


# -- rows
@dataclass
class Rows:
    """The training samples in the order that solvers take: labeled ones first."""

    X: Views
    n: int  # how many samples were given
    order: np.ndarray  # positions among them
    l: int
    s: np.ndarray  # weights of the rows
    scale: float  # the sum of the labeled rows' weights: l where they are 1

    def first(self, values: np.ndarray) -> np.ndarray:
        """Values of the samples given, for the labeled rows."""
        return values[self.order[: self.l]]


# -- the frame
class KernelLearner(BatchLearner):
    """A learner of one function per view in the space of the view's kernel, or over its Nyström features."""

    kernel: Any
    view_weights: Any
    n_restarts: int
    n_components: Any
    tol: float
    max_iter: int
    random_state: Any

    def _arrange(self, X: Views, labeled: np.ndarray, s: np.ndarray, *, with_unlabeled: bool) -> Rows:
        """Leave out rows that no term of the objective has, put the labeled ones first, resolve the kernels."""
        taken = s > 0
        if not (taken & labeled).any():
            raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
        chosen = kernels_by_view(self.kernel, self.view_names_in_)
        shown = [name for name in X.names if X.present(name)[taken].any()]
        resolved = resolve_kernels({name: chosen[name] for name in shown}, X[np.flatnonzero(taken)][shown])
        if not with_unlabeled:
            taken &= labeled
        order = np.concatenate([np.flatnonzero(taken & labeled), np.flatnonzero(taken & ~labeled)])
        l = int((taken & labeled).sum())
        X = X[order]
        self._used_views = tuple(name for name in X.names if X.present(name).any())
        X = X[list(self._used_views)]
        self.kernels_ = {name: resolved[name] for name in X.names}
        return Rows(X, len(s), order, l, s[order], float(s[order[:l]].sum()))

    # -- weights of the views
    def _given_weights(self) -> np.ndarray | None:
        """c of the views used, or None where it is to be learned."""
        names, given = self.view_names_in_, self.view_weights
        used = [names.index(name) for name in self._used_views]
        if isinstance(given, str):
            if given == "uniform":
                return np.full(len(used), 1 / len(used))
            if given == "learned":
                return None
            raise ValueError(f"`view_weights` is 'uniform', 'learned' or one number per view; got {given!r}.")
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise ValueError(
                    f"`view_weights` names {_blocks.quoted(given)}; the views are {_blocks.quoted(names)}. Give each "
                    "a weight, 0 to leave it out."
                )
            given = [given[name] for name in names]
        c = np.asarray(given, dtype=np.float64)
        if c.shape != (len(names),) or not np.isfinite(c).all():
            raise ValueError(f"`view_weights` must be one finite number per view, {len(names)} in all; got {given!r}.")
        if not c[used].any():
            raise ValueError("`view_weights` are zero for every view that the samples have.")
        return c[used]

    def _norm(self) -> float:
        """The length of learned weights: that of uniform ones, where no other is asked for."""
        given = getattr(self, "weights_norm", None)
        norm = 1 / np.sqrt(len(self._used_views)) if given is None else float(given)
        if not (np.isfinite(norm) and norm > 0):
            raise ValueError(f"`weights_norm` must be above 0 and finite; got {given!r}.")
        return float(norm)

    def _starts(self) -> list[np.ndarray]:
        if not (isinstance(self.n_restarts, numbers.Integral) and self.n_restarts >= 1):
            raise ValueError(f"`n_restarts` must be a whole number of at least 1; got {self.n_restarts!r}.")
        rng = check_random_state(self.random_state)
        return sphere_starts(len(self._used_views), self._norm(), int(self.n_restarts), rng)

    def _check_numbers(self, above: Sequence[str] = (), least: Sequence[str] = ("tol", "max_iter")) -> None:
        """Refuse parameters that are no numbers above 0, or of at least 0."""
        for name in (*above, *least):
            value: Any = getattr(self, name)
            known = isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(float(value))
            if not (known and (value > 0 or (value == 0 and name in least))):
                what = "above 0" if name in above else "of at least 0"
                raise ValueError(f"`{name}` must be a number {what}; got {value!r}.")
        if isinstance(getattr(self, "n_components", None), bool):
            raise ValueError(f"`n_components` must be a count, a fraction or None; got {self.n_components!r}.")

    # -- what is kept
    def _keep(
        self, rows: Rows, coefficients: Sequence[np.ndarray], form: "Grams | Features", *, every_row: bool = False
    ) -> None:
        """Remember what prediction needs; rows without coefficients are kept where `every_row` asks for them."""
        for name in ("dual_coef_", "support_", "coef_", "X_fit_", "_features"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(form, Features):
            self._features = form.features
            self.coef_ = dict(zip(rows.X.names, coefficients, strict=True))
            return
        dual = np.zeros((len(rows.X.names), len(rows.order), coefficients[0].shape[1]))
        for v, (here, own) in enumerate(zip(form.rows, coefficients, strict=True)):
            dual[v, here] = own
        kept = np.arange(len(rows.order)) if every_row else np.flatnonzero(dual.any(axis=(0, 2)))
        kept = kept if len(kept) else np.arange(1)
        kept = kept[np.argsort(rows.order[kept])]
        whole = np.array_equal(kept, np.arange(dual.shape[1]))
        self.dual_coef_ = dual if whole else np.ascontiguousarray(dual[:, kept])
        self.support_ = rows.order[kept]
        X = rows.X[kept]  # predictions are made in the precision that coefficients were found in
        self.X_fit_ = reference_views(self.kernels_, X if form.single else to_float64(X))

    def _view_outputs(self, X: Views) -> np.ndarray:
        parts = [self._outputs_of(X[start : start + ROWS]) for start in range(0, len(X), ROWS)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _outputs_of(self, X: Views) -> np.ndarray:
        if hasattr(self, "coef_"):
            features = self._features.transform(X)
            outputs = [dense_view(features, name, len(W)) @ W for name, W in self.coef_.items()]
        else:
            outputs = []
            for name, dual in zip(self._used_views, self.dual_coef_, strict=True):
                outputs.append(to_numpy(view_grams({name: self.kernels_[name]}, X, self.X_fit_)[0]) @ dual)
        return np.stack(outputs, axis=1)

    @property
    def n_iter_(self) -> int:
        """The iterations of the solver; 1 where the solution is direct."""
        return max(int(self.solution_.n_iter), 1)

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            The objective, its gap to the optimum, and the largest violation of the optimality conditions.
        """
        return replace(super().certificate(), residual=self.solution_.residual)


def not_positive_kernels(learner: KernelLearner, error: np.linalg.LinAlgError) -> ValueError:
    """The sentence for kernels that are not positive semi-definite, by the view where it is known."""
    which = (
        f"View '{learner._used_views[error.view]}': its kernel matrix is"
        if isinstance(error, NotPositive)
        else ("The kernel matrices of the views together are")
    )
    return ValueError(
        f"{which} not positive semi-definite, so that the problem has no minimum, or so near to singular that it seems "
        "so. Scale the views, raise `alpha`, or use a positive semi-definite kernel; `consilience.kernels.nearest_psd` "
        "makes one of a matrix."
    )


def indefinite(name: str) -> ValueError:
    """Return the error for a kernel from outside that is not positive semi-definite."""
    return ValueError(
        f"View '{name}': its kernel matrix is not positive semi-definite, so the problem has no minimum. Use a "
        "positive semi-definite kernel; `consilience.kernels.nearest_psd` makes one of a matrix."
    )


def with_learned(solution: Solution, learned: Solution) -> Solution:
    """The solution for c, with what is proved of c: its gap is that to the best c, where one is known."""
    gap = None
    if learned.gap is not None and learned.objective is not None and solution.objective is not None:
        below = learned.objective - learned.gap
        gap = max(solution.objective - below, 0.0)
    status = learned.status if solution.converged else solution.status
    return Solution(solution.x, gap, learned.n_iter, status, objective=solution.objective, residual=solution.residual)


# -- reading targets and classes
class ReadsTargets(KernelLearner):
    """Numbers to learn; `_fit_targets` learns them."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse what cannot be."""

    @abstractmethod
    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        """Learn; `s` are the weights of the samples, `u` those of their losses."""

    def _fit_regressor(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = read_views_to_fit(self, X)
        Y, labeled = read_targets(y, len(X))
        self._one_output = np.asarray(y).ndim == 1
        s = read_weights(sample_weight, len(X))
        return self._fit_targets(X, Y, labeled, s, s)


class ReadsClasses(ViewClassifier, ReadsTargets):
    """Classes to learn by ±1 codes, or indicators of labels."""

    class_weight: Any
    unlabeled: Any

    def _fit_classifier(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = read_views_to_fit(self, X)
        s = read_weights(sample_weight, len(X))
        y = checked_sparse(y, "y").toarray() if sp.issparse(y) else y
        self._indicator = y is not None and np.asarray(y).ndim == 2 and np.asarray(y).shape[1] > 1
        if self._indicator:
            if self.class_weight is not None:
                raise ValueError("`class_weight` is for one class per sample; y is an indicator of several labels.")
            Y, labeled = read_targets(y, len(X))
            others = np.setdiff1d(Y[labeled], (0, 1))
            if len(others):
                raise ValueError(f"An indicator of labels holds 0 and 1; y has {others[0]:g}.")
            self.classes_ = np.arange(Y.shape[1])
            return self._fit_targets(X, 2 * Y - 1, labeled, s, s)
        labels = read_labels(y, len(X), self.unlabeled)
        self.classes_ = labels.classes
        u = s * class_weights(self.class_weight, labels, s)
        return self._fit_targets(X, labels.signs(), labels.labeled, s, u)

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes, or the indicator of labels.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_labels)
            The classes; 0 and 1 where y was an indicator.
        """
        check_is_fitted(self)
        return (self.decision_function(X) > 0).astype(int) if self._indicator else super().predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def right_share(outputs: np.ndarray, Y: np.ndarray, weights: np.ndarray, indicator: bool) -> float:
    """The share of rows decided rightly; with an indicator the share of right entries."""
    if indicator or Y.shape[1] == 1:
        right = ((outputs > 0) == (Y > 0)).mean(axis=1)
    else:
        right = outputs.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.average(right, weights=weights))


# -- forms of the data
def dense_view(X: Views, name: str, size: int) -> np.ndarray:
    """A view of dense features, zero where it is absent."""
    block = X.block(name)
    if block is None:
        return np.zeros((len(X), size))
    values = to_numpy(block)
    return values if X.present(name).all() else np.where(X.present(name)[:, None], values, 0.0)


class Grams:
    """Gram matrices of the rows present in each view."""

    def __init__(self, learner: KernelLearner, rows: Rows, *, double: bool):
        self.rows = [np.flatnonzero(rows.X.present(name)) for name in rows.X.names]
        self.single = not double and all(_blocks.is_single(rows.X.block(name)) for name in rows.X.names)
        X = rows.X if self.single else to_float64(rows.X)
        grams = [to_numpy(K) for K in present_grams(learner.kernels_, X)]
        self.grams = [np.ascontiguousarray(K, dtype=np.float32 if self.single else np.float64) for K in grams]
        K: Any
        for name, K, given in zip(rows.X.names, self.grams, grams, strict=True):
            some = np.linspace(0, len(K) - 1, 32).astype(int)
            if np.abs(K[some] - K[:, some].T).max() > 1e-4 * np.abs(K[some]).max():
                raise ValueError(
                    f"View '{name}': its kernel matrix is not symmetric: entries that should be equal differ by "
                    f"{np.abs(K[some] - K[:, some].T).max():.4g}. Give (K + K') / 2 if that is meant."
                )
            if learner.kernels_[name].may_be_indefinite and not is_positive(given):
                raise indefinite(name)


class Features:
    """Nyström features of each view, made again block by block wherever they are needed."""

    single = False

    def __init__(self, learner: KernelLearner, rows: Rows, *, shared: bool = False):
        self.rows_in = rows
        seed = check_random_state(learner.random_state).randint(2**31)
        self.features = Nystroem(
            kernel=learner.kernels_, n_components=learner.n_components, shared=shared, random_state=seed
        )
        self.features.fit_read(to_float64(rows.X))  # in single precision directions would be lost
        self.names = rows.X.names
        self.sizes = [self.features.n_components_[name] for name in self.names]

    def side_by_side(self, X: Views) -> np.ndarray:
        """The features of all views, zero where a view is absent."""
        features = self.features.transform(to_float64(X))
        parts = [dense_view(features, name, size) for name, size in zip(self.names, self.sizes, strict=True)]
        return np.asarray(np.hstack(parts), dtype=np.float64)

    def split(self, W: np.ndarray) -> list[np.ndarray]:
        """The coefficients of each view."""
        ends = np.cumsum(self.sizes)
        return [W[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]
