"""The frame of every learner: reading data, labels and weights, combining views, the two abstract bases.

The only file that uses names of scikit-learn that it does not document.
"""

import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _blocks, _reading
from .certificates import Certificate
from .kernels.scalar import as_kernel
from .views import Views, as_views, is_mapping


# -- reading data
def read_views_to_fit(learner: Any, X: Any) -> Views:
    """Read the training samples, remember their views on the learner, leave out views that no sample has."""
    X = _read(learner, X)
    X = _with_grams(learner, X).check_finite()
    learner._known = {}
    _remember(learner, X)
    learner._used_views = tuple(name for name in X.names if X.present(name).any())
    return X if learner._used_views == X.names else X[list(learner._used_views)]


def read_views_to_learn(learner: Any, X: Any, fresh: bool) -> Views:
    """Read the next samples of a stream: views by name, absent where not given; new ones may appear at any time."""
    X = _read(learner, X)
    if not fresh:
        X = _named_as_before(learner, X)
        _check_as_before(learner, X)
        X = X.align((*learner.view_names_in_, *(name for name in X.names if name not in learner.view_names_in_)))
    return X.check_finite()


def read_views_to_predict(learner: Any, X: Any) -> Views:
    """Read new samples: views by name, one that is not given is absent, columns as at fit."""
    check_is_fitted(learner, "view_names_in_")
    X = _named_as_before(learner, _read(learner, X))
    expected = learner.view_names_in_
    unknown = [name for name in X.names if name not in expected]
    if unknown:
        raise ValueError(
            f"{type(learner).__name__} was fitted on the views {_blocks.quoted(expected)}; it does not know "
            f"{_blocks.quoted(unknown)}. Give views by the names they had at fit."
        )
    _check_as_before(learner, X)
    used = [name for name in X.names if name in learner._used_views]
    if not used:
        raise ValueError(
            f"{type(learner).__name__} learned from the views {_blocks.quoted(learner._used_views)}; the samples given "
            f"have only {_blocks.quoted(X.names)}, which was absent in every training sample."
        )
    for name in used:  # a plain block against training samples is looked at when its columns are known
        if not (learner._view_is_gram(name) and X.kind(name) in ("dense", "sparse")):
            _blocks.check_finite(name, X.block(name), X.present(name))
    return X[used].align(learner._used_views)


def _read(learner: Any, X: Any) -> Views:
    divided = isinstance(X, Views) or is_mapping(X)
    X = as_views(X, None if divided else getattr(learner, "views", None))
    if len(X) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def _with_grams(learner: Any, X: Views) -> Views:
    """Plain square arrays become Gram matrices where the learner takes them for such, so that rows can be taken."""
    plain = [name for name in X.names if X.kind(name) in ("dense", "sparse") and learner._view_is_gram(name)]
    return Views(X, precomputed=plain) if plain else X


def _remember(learner: Any, X: Views) -> None:
    """Keep what new samples are held against: the views, their kinds, their columns, the names of those."""
    before = learner._known
    learner.view_names_in_ = learner._used_views = X.names
    seen = {}
    for name in X.names:
        kind = X.kind(name)
        names = X.feature_names.get(name) or (before[name][2] if name in before else None)
        if kind != "absent":
            seen[name] = ("numbers" if kind in ("dense", "sparse") else kind, _blocks.width(X.block(name)), names)
    learner._known = {**before, **seen}
    learner.n_features_in_ = sum(width for _, width, _ in learner._known.values())


def _named_as_before(learner: Any, X: Views) -> Views:
    """A bare table given to a learner of one named view is that view."""
    known = learner.view_names_in_
    return X.renamed({"view0": known[0]}) if X.names == ("view0",) and len(known) == 1 else X


def _check_as_before(learner: Any, X: Views) -> None:
    who = type(learner).__name__
    for name in X.names:
        kind, width = X.kind(name), _blocks.width(X.block(name))
        if name not in learner._known or kind == "absent" or learner._view_is_gram(name):
            continue
        before, width_before, names_before = learner._known[name]
        kind = "numbers" if kind in ("dense", "sparse") else kind
        if kind != before:
            raise ValueError(f"View '{name}' holds {kind}, but held {before} when {who} was fitted.")
        if width != width_before:
            raise ValueError(
                f"View '{name}' of X has {width} features, but {who} is expecting {width_before} features as input. "
                "Give the same columns as at fit."
            )
        names = X.feature_names.get(name)
        if names is not None and names_before is not None and names != names_before:
            first = next(j for j in range(width) if names[j] != names_before[j])
            raise ValueError(
                f"Column {first} of view '{name}' is called '{names[first]}', but '{names_before[first]}' at fit. Give "
                "the same columns in the same order."
            )


# -- reading labels, targets, weights
@dataclass(frozen=True)
class Labels:
    """Class labels as integers."""

    classes: np.ndarray
    codes: np.ndarray  # position in classes, -1 where unlabeled
    labeled: np.ndarray  # booleans

    def signs(self) -> np.ndarray:
        """±1 codes: (n, 1) for two classes or one, (n, P) one against the rest for more; 0 where unlabeled."""
        P = len(self.classes)
        if P <= 2:
            column = np.where(self.codes == P - 1, 1.0, -1.0)[:, None]
        else:
            column = np.where(self.codes[:, None] == np.arange(P), 1.0, -1.0)
        column[~self.labeled] = 0
        return column


def read_labels(y: Any, n: int, unlabeled: Any = None, classes: np.ndarray | None = None) -> Labels:
    """Read class labels of any type; missing ones, and those equal to `unlabeled`, mark unlabeled samples.

    With `classes` the labels are held against these, and there may be none at all.
    """
    values = _read_column(y, n)
    missing = _missing(values)
    if unlabeled is not None:
        missing |= np.array([x == unlabeled for x in values], dtype=bool)
    if missing.all() and classes is None:
        raise ValueError("y has no label at all: every value is missing. Give labels for some samples.")
    known = _plain_labels(values[~missing])
    if len(known):
        check_classification_targets(known)
    found, codes_known = np.unique(known, return_inverse=True)
    if classes is not None:
        unknown = [c for c in found.tolist() if c not in classes]
        if unknown:
            raise ValueError(
                f"The class {unknown[0]!r} was not announced; the classes are {_blocks.quoted(classes)}. Give all "
                "classes by `classes=` at the first call of partial_fit."
            )
        codes_known = np.searchsorted(classes, found)[codes_known] if len(found) else codes_known
        found = classes
    codes = np.full(n, -1)
    codes[~missing] = codes_known
    return Labels(found, codes, ~missing)


def _plain_labels(known: np.ndarray) -> np.ndarray:
    """Objects as an array of their own type; strings, numbers and booleans do not mix."""
    if known.dtype != object:
        return known
    kinds = {next((k for k in (str, bool, numbers.Real, bytes) if isinstance(x, k)), type(x)) for x in known.tolist()}
    if len(kinds - {numbers.Real}) > 1 or (len(kinds) > 1 and numbers.Real in kinds and bool not in kinds):
        names = sorted(kind.__name__ for kind in kinds)
        raise TypeError(f"The labels in y are of types that cannot be sorted together: {', '.join(names)}. Use one.")
    if kinds and not kinds <= {str, bool, numbers.Real, bytes}:
        raise TypeError(f"Labels are strings, numbers or booleans; y holds {kinds.pop().__name__}.")
    return np.array(known.tolist())


def read_targets(y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Read regression targets as (n, P) float64 and which samples have them; a row of NaN only has none."""
    if y is None:
        raise ValueError("This learner requires y to be passed, but the target y is None.")
    values = y.to_numpy() if hasattr(y, "to_numpy") and not hasattr(y, "to_pylist") else y
    values = np.asarray(values.to_pylist() if hasattr(values, "to_pylist") else values)
    if values.dtype == object:
        flat = [np.nan if _reading.is_missing(x) else x for x in values.ravel()]
        values = np.array(flat, dtype=object).reshape(values.shape)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers for regression.")
    try:
        Y = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must be numbers for regression: {error}.") from error
    if Y.ndim not in (1, 2) or Y.shape[0] != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n}, y has shape {Y.shape}."
        )
    Y = Y.reshape(n, -1)
    if np.isinf(Y).any():
        raise ValueError("Input y contains infinity or a value too large for float64.")
    labeled = np.asarray(~np.isnan(Y).any(axis=1))
    part = np.flatnonzero(~labeled & ~np.isnan(Y).all(axis=1))
    if len(part):
        raise ValueError(f"Row {part[0]} of y is NaN in some outputs only. Give all outputs of a sample, or none.")
    if not labeled.any():
        raise ValueError("y has no target at all: every value is NaN. Give targets for some samples.")
    return Y, labeled


def read_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Read sample weights: (n,), finite, at least 0, not all 0; ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per sample; got {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError(
            "sample_weight must be finite and at least 0, and not zero for every sample (a zero weight "
            "leaves a sample out)."
        )
    return weights


def class_weights(class_weight: Any, labels: Labels) -> np.ndarray:
    """Return the weight of each sample's class: None, "balanced" or a dict, as scikit-learn reads them; 1 unlabeled."""
    known = labels.classes[labels.codes[labels.labeled]]
    by_class = compute_class_weight(class_weight, classes=labels.classes, y=known)
    return np.where(labels.labeled, by_class[labels.codes], 1.0)


def _read_column(y: Any, n: int) -> np.ndarray:
    if y is None:
        raise ValueError("This learner requires y to be passed, but the target y is None.")
    if hasattr(y, "to_pylist"):  # Arrow
        y = y.to_pylist()
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, (list, tuple)) and len({type(x) for x in y}) > 1:  # NumPy would make one type of them
        column = np.empty(len(y), dtype=object)
        column[:] = y
        y = column
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is read as y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y must be 1d, one label per sample; got shape {values.shape}.")
    if len(values) != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n}, y has {len(values)}.")
    return values


def _missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            raise ValueError("Input y contains infinity or a value too large for its type.")
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.array([_reading.is_missing(x) for x in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


# -- combining views
def combine_views(outputs: np.ndarray, weights: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Σ_v c_v f_v(x) over the views present, c rescaled per sample so that Σ|c| stays.

    `outputs` is (n, m, P), `weights` (m,), `present` (n, m) booleans; the result is (n, P).
    """
    c = np.where(present, weights, 0.0)
    there = np.abs(c).sum(axis=1)
    scale = np.divide(np.abs(weights).sum(), there, out=np.zeros_like(there), where=there > 0)
    return np.einsum("nm,nmp->np", c * scale[:, None], np.where(present[:, :, None], outputs, 0.0))


def presence(X: Views) -> np.ndarray:
    """The mask of X, whole where nothing is absent."""
    return np.ones((len(X), len(X.names)), dtype=bool) if X.mask is None else X.mask


# -- parameters by view
class ViewParameters(BaseEstimator):
    """Parameters that are dicts by view can be set and searched as ``kernels__audio__gamma``."""

    def _view_is_gram(self, name: str) -> bool:
        """Whether a view's kernel takes Gram matrices."""
        kernels = dict(getattr(self, "kernels", None) or {})
        kernel = kernels.get(name, getattr(self, "kernel", None))
        return kernel is not None and as_kernel(kernel).reads_gram

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of kernels and estimators by view among them.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of parameters.

        Returns
        -------
        dict
            Name -> value.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for key, value in list(params.items()):
                if isinstance(value, Mapping) and key in self._get_param_names():
                    for name, part in value.items():
                        params[f"{key}__{name}"] = part
                        inner = part.get_params(deep=True) if hasattr(part, "get_params") else {}
                        params.update({f"{key}__{name}__{k}": v for k, v in inner.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by view too.

        Parameters
        ----------
        **params : dict
            Name -> value.

        Returns
        -------
        self
            The learner.
        """
        super().set_params(**{key: value for key, value in params.items() if "__" not in key})
        for key, value in params.items():  # what is inside comes after what holds it
            outer, _, inner = key.partition("__")
            held = getattr(self, outer, None) if outer in self._get_param_names() else None
            if not inner:
                continue
            if isinstance(held, Mapping):
                setattr(self, outer, _with_part(outer, held, inner, value))
            elif outer == "kernel" and isinstance(held, str):
                setattr(self, outer, as_kernel(held).set_params(**{inner: value}))
            elif held is None and outer in self._get_param_names():
                raise ValueError(f"`{outer}` is None, so '{key}' has nothing to set; give `{outer}` first.")
            else:
                super().set_params(**{key: value})
        return self


def _with_part(outer: str, held: Mapping[str, Any], inner: str, value: Any) -> dict[str, Any]:
    if inner in held:
        return {**held, inner: value}
    fitting = [name for name in held if inner.startswith(f"{name}__")]
    if not fitting:
        raise ValueError(f"'{outer}__{inner}' names no part of `{outer}`, which has {_blocks.quoted(held)}.")
    name = max(fitting, key=len)
    part = as_kernel(held[name]) if outer == "kernels" else held[name]
    if not hasattr(part, "set_params"):
        raise ValueError(f"'{outer}__{inner}' has nothing to set: `{outer}` has {part!r} for '{name}'.")
    return {**held, name: clone(part).set_params(**{inner[len(name) + 2 :]: value})}


# -- the batch learner
class BatchLearner(ViewParameters, ABC):
    """A learner that sees all samples at once.

    Subclasses define `fit`, which sets ``view_weights_`` (and, of a solver, ``solution_``), and `_view_outputs`, each
    view's own f_v.
    """

    view_weights_: np.ndarray
    solution_: Any

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from samples and their targets."""

    @abstractmethod
    def _view_outputs(self, X: Views) -> np.ndarray:
        """f_v(x) as (n, m, P); where a view is absent any number will do."""

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        return combine_views(self._view_outputs(X), self.view_weights_, presence(X))

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return each view's own answer.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_views) or (n_samples, n_views, n_outputs)
            f_v(x) before views are combined; NaN where a view is absent.
        """
        X = read_views_to_predict(self, X)
        outputs = np.where(presence(X)[:, :, None], self._view_outputs(X), np.nan)
        return outputs[:, :, 0] if outputs.shape[2] == 1 else outputs

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            Objective, gap and the like; prints as a sentence.
        """
        check_is_fitted(self)
        solution = self.solution_
        return Certificate(status=solution.status, objective=solution.objective, gap=solution.gap)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = _is_pairwise(self)
        return tags


def _is_pairwise(learner: Any) -> bool:
    """Whether every view is to be a Gram matrix, so that splitting cuts rows and columns."""
    kernel = getattr(learner, "kernel", None)
    return not getattr(learner, "kernels", None) and kernel is not None and as_kernel(kernel).reads_gram


class ViewRegressor(RegressorMixin):
    """Prediction of numbers from combined views; `fit` sets ``_one_output``, whether targets came as one column."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        """
        outputs = self._combined(X)
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ViewClassifier(ClassifierMixin):
    """Prediction of classes from combined views: the sign of one output, or the largest of several."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the combined score of each class.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes one score, positive for the second.
        """
        outputs = self._combined(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,)
            The classes.
        """
        scores = self.decision_function(X)
        return self.classes_[decide(scores, len(self.classes_))]


def decide(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Positions of the chosen classes: the largest score, or for one score its sign (a tie is the first class)."""
    if n_classes == 1:
        return np.zeros(len(scores), dtype=int)
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


# -- the online learner
class OnlineLearner(ViewParameters, ABC):
    """A learner that sees samples one after the other; any chunking of the same samples gives the same state.

    Subclasses define `_start` (empty state), `_learn` (one pass over a chunk; returns which samples it got wrong
    before learning them) and `_scores`. Parameters `epochs`, `shuffle` and `random_state` are those of `fit`.
    """

    classes_: np.ndarray
    epochs: int
    shuffle: bool
    random_state: Any

    @abstractmethod
    def _start(self) -> None:
        """Set the empty state; views make themselves known as they come."""

    @abstractmethod
    def _learn(self, X: Views, codes: np.ndarray) -> np.ndarray:
        """Learn a chunk in order; return booleans, True where the prediction before learning was wrong.

        The chunk has every view seen so far, absent where it was not given.
        """

    @abstractmethod
    def _scores(self, X: Views) -> np.ndarray:
        """Scores of shape (n,) for two classes, (n, n_classes) for more."""

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
        fresh = not hasattr(self, "n_seen_")
        X = read_views_to_learn(self, X, fresh)
        announced = self.classes_ if not fresh else None if classes is None else np.unique(np.asarray(classes))
        labels = read_labels(y, len(X), classes=announced)
        if fresh:
            self._known: dict[str, Any] = {}
        _remember(self, X)  # all is read: from here on the state changes
        if fresh:
            self.classes_ = labels.classes
            self.n_seen_ = 0
            self.mistakes_ = 0
            self._curve: list[tuple[int, int]] = []
            self._start()
        if labels.labeled.any():
            self._count(self._learn(X[labels.labeled], labels.codes[labels.labeled]))
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and pass over the samples `epochs` times.

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
        if hasattr(self, "n_seen_"):
            del self.n_seen_
        X = _read(self, X)
        labels = read_labels(y, len(X))
        values = labels.classes[labels.codes[labels.labeled]]
        X = X[labels.labeled]
        rng = check_random_state(self.random_state)
        for _ in range(self.epochs):
            order = rng.permutation(len(X)) if self.shuffle else np.arange(len(X))
            self.partial_fit(X[order], values[order], classes=labels.classes)
        return self

    def learn_one(self, x: Mapping[str, Any], y: Any) -> Self:
        """Learn one sample given as a dict of view -> row.

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
        return self.partial_fit(_one_row(x), [y])

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the class of one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view; absent views are left out.

        Returns
        -------
        object
            The class.
        """
        return self.predict(_one_row(x))[0]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes one score, positive for the second.
        """
        return self._scores(read_views_to_predict(self, X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,)
            The classes.
        """
        scores = self.decision_function(X)
        return self.classes_[decide(scores, len(self.classes_))]

    @property
    def error_curve_(self) -> np.ndarray:
        """The progressive error: rows of (samples seen, share of mistakes), thinned out geometrically."""
        check_is_fitted(self, "n_seen_")
        curve = np.array(self._curve, dtype=np.float64).reshape(-1, 2)
        return np.column_stack([curve[:, 0], curve[:, 1] / np.maximum(curve[:, 0], 1)])

    def _count(self, wrong: np.ndarray) -> None:
        seen = self.n_seen_ + np.arange(1, len(wrong) + 1)
        total = self.mistakes_ + np.cumsum(wrong)
        spacing = 1 << np.maximum(np.floor(np.log2(np.maximum(seen, 1))).astype(int) - 10, 0)  # about 1,000 a doubling
        kept = seen % spacing == 0
        self._curve.extend(zip(seen[kept].tolist(), total[kept].tolist(), strict=True))
        self.n_seen_ += len(wrong)
        self.mistakes_ += int(np.sum(wrong))

    def certificate(self) -> Certificate:
        """Return what is proved about the stream.

        Returns
        -------
        Certificate
            Bounds where the learner has them; prints as a sentence.
        """
        check_is_fitted(self, "n_seen_")
        return Certificate(status="exact")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _one_row(x: Mapping[str, Any]) -> Views:
    rows = {}
    for name, row in x.items():
        if hasattr(row, "to_numpy"):
            row = row.to_numpy()
        if sp.issparse(row):
            rows[name] = row.reshape((1, -1))
        elif hasattr(row, "ndim"):
            rows[name] = row.reshape(1, -1)
        else:
            rows[name] = [row]
    return Views(rows)
