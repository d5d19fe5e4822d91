"""What every estimator of views shares: parameters by view, combination of views, prediction."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._backend import cast, is_device_array, like, namespace, to_numpy
from .._progress import show_progress
from . import _blocks
from ._notebook import summary
from .container import Views
from .label_sets import read_label_sets, sets_of, share_of_equal_sets
from .partitions import Partitions, is_dask, lazy_outputs, partitions_of
from .row_blocks import RowBlocks, naming_block
from .validation import labeled_rows, read_to_score


# -- combining views
def combine_views(outputs: np.ndarray, weights: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return Σ_v c_v f_v(x) over the views present, with c rescaled per sample so that Σ|c| stays the same.

    `outputs` is (n, m, P), `weights` (m,), `present` (n, m) booleans; the result is (n, P).
    """
    c = np.where(present, weights, 0.0)
    there = np.abs(c).sum(axis=1)
    scale = np.divide(np.abs(weights).sum(), there, out=np.zeros_like(there), where=there > 0)
    c = c * scale[:, None]
    if not is_device_array(outputs):
        return np.einsum("nm,nmp->np", c, np.where(present[:, :, None], outputs, 0.0))
    xp = namespace(outputs)
    shown = outputs if present.all() else xp.where(like(present[:, :, None], outputs), outputs, xp.zeros_like(outputs))
    return xp.sum(cast(like(c[:, :, None], outputs), outputs.dtype) * shown, axis=1)


def presence(X: Views) -> np.ndarray:
    """Return which samples have which views, (n_samples, n_views)."""
    return np.ones((len(X), len(X.names)), dtype=bool) if X.mask is None else X.mask


# -- parameters by view
class ViewEstimator(BaseEstimator):
    """An estimator of views: parameters that are dicts by view are set and searched as ``kernel__audio__gamma``."""

    _cpu_only = False  # whether arrays of other libraries than NumPy are refused

    def _view_is_gram(self, name: str) -> bool:
        """Tell whether a view's kernel takes Gram matrices."""
        return False

    def _part(self, parameter: str, value: Any) -> Any:
        """Return a parameter, or its entry for one view, as an object with parameters of its own."""
        return value

    @contextmanager
    def _restore_on_error(self, *, shows_progress: bool = True) -> Iterator[None]:
        """Restore the estimator if the fit is refused or interrupted; show progress with `verbose`.

        Overflow on the way ends in one clear error.
        """
        before = dict(self.__dict__)
        shown = shows_progress and bool(getattr(self, "verbose", False))
        try:
            quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
            with show_progress(shown, type(self).__name__), quiet:
                yield
            _check_fitted_numbers(self)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if _is_out_of_range(error):
                raise _out_of_range(self) from error
            raise

    def _repr_html_inner(self) -> str:
        """Return what notebooks show: scikit-learn's diagram, kernels by view, and what was learned."""
        return str(super()._repr_html_inner()) + summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {kind: self._repr_html_inner() if kind == "text/html" else text for kind, text in bundle.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of kernels and estimators by view.

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
            The estimator.
        """
        super().set_params(**{key: value for key, value in params.items() if "__" not in key})
        for key, value in sorted(params.items(), key=lambda item: item[0].count("__")):  # outer parameters come first
            outer, _, inner = key.partition("__")
            held = getattr(self, outer, None) if outer in self._get_param_names() else None
            if not inner:
                continue
            if isinstance(held, Mapping):
                setattr(self, outer, self._with_part(outer, held, inner, value))
            elif isinstance(held, (str, list, tuple)):
                setattr(self, outer, self._part(outer, held).set_params(**{inner: value}))
            elif held is None and outer in self._get_param_names():
                raise ValueError(f"`{outer}` is None, so '{key}' has nothing to set; give `{outer}` first.")
            else:
                super().set_params(**{key: value})
        return self

    def _with_part(self, outer: str, held: Mapping[str, Any], inner: str, value: Any) -> dict[str, Any]:
        if inner in held:
            return {**held, inner: value}
        fitting = [name for name in held if inner.startswith(f"{name}__")]
        if not fitting:
            raise ValueError(f"'{outer}__{inner}' names no part of `{outer}`, which has {_blocks.quoted(held)}.")
        name = max(fitting, key=len)
        part = self._part(outer, held[name])
        if not hasattr(part, "set_params"):
            raise ValueError(f"'{outer}__{inner}' has nothing to set: `{outer}` has {part!r} for '{name}'.")
        return {**held, name: clone(part).set_params(**{inner[len(name) + 2 :]: value})}


# -- overflow
def _is_out_of_range(error: BaseException) -> bool:
    """Tell whether an error comes from arithmetic or LAPACK, whose texts do not mention the estimator's input."""
    raw = ("infs or NaNs", "NaN to integer", "infinity to integer", "did not converge")
    arithmetic = (ArithmeticError, np.linalg.LinAlgError)
    return isinstance(error, arithmetic) or (type(error) is ValueError and any(text in str(error) for text in raw))


def _out_of_range(estimator: Any) -> ValueError:
    numbers = {k: v for k, v in estimator.get_params(deep=False).items() if isinstance(v, float) and np.isfinite(v)}
    given = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
    return ValueError(
        f"{type(estimator).__name__} found no finite solution: the targets, the sample weights, the kernels or the "
        f"parameters{f' ({given})' * bool(given)} are too large, too small or too far apart for floating point. Scale "
        "the views, y and the weights, and choose penalties nearer to 1."
    )


def _check_fitted_numbers(estimator: Any) -> None:
    """Refuse a fit whose coefficients, weights or certificate are not finite."""
    solution = getattr(estimator, "solution_", None)
    found = [
        value for value in (getattr(solution, "objective", None), getattr(solution, "gap", None)) if value is not None
    ]
    for name in ("dual_coef_", "coef_", "view_weights_"):
        value = vars(estimator).get(name)
        found += list(value.values()) if isinstance(value, dict) else [value] if value is not None else []
    if not all(_is_finite(value) for value in found):
        raise FloatingPointError("the fit is not finite")


def _is_finite(value: Any) -> bool:
    """Tell whether all entries are finite: as a rule their sum says so."""
    if not is_device_array(value):
        return bool(np.isfinite(np.sum(value)) or np.isfinite(value).all())
    xp = namespace(value)
    return bool(xp.isfinite(xp.sum(value))) or bool(xp.all(xp.isfinite(value)))


def finite_outputs(estimator: Any, outputs: np.ndarray) -> np.ndarray:
    """Return predictions or scores; refuse them where they overflow."""
    if not _is_finite(outputs):
        row = int(np.argwhere(~np.isfinite(to_numpy(outputs)))[0][0])
        raise ValueError(
            f"{type(estimator).__name__} has no finite prediction for sample {row}: its values are too large for the "
            "coefficients. Scale the samples as those given to fit."
        )
    return outputs


# -- prediction
def outputs_by_blocks(estimator: Any, X: Any) -> Any:
    """Return the combined outputs of samples, block by block where they are read so; refuse what overflows."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, in one sentence
        if not isinstance(X, RowBlocks):
            return finite_outputs(estimator, estimator._combined(X))
        parts = []
        for number, block in enumerate(X):
            with naming_block(f"Block {number} of {X.name}"):
                parts.append(finite_outputs(estimator, estimator._combined(block.X)))
        return _joined(parts, X)


def by_parts(
    estimator: Any, X: Any, call: Callable[[Any], Any], method: str, tail: tuple[int, ...] | None, dtype: Any,
    **options: Any,
) -> Any:  # fmt: skip
    """Return what `call` returns for samples in memory, and for blocks of rows one block after the other.

    Dask collections give a Dask array of what the estimator's method returns with these options, of which nothing is
    computed yet. Its rows have the shape `tail`; None stands for that of the targets.
    """
    if _is_lazy(estimator, X):
        if tail is None:
            tail = () if estimator._one_output else (_number_of_outputs(estimator),)
        return lazy_outputs(_partitions(estimator, X), estimator, method, tail, dtype, **options)
    return _joined([call(block.X) for block in X], X) if isinstance(X, RowBlocks) else call(X)


def _joined(parts: list[Any], blocks: RowBlocks) -> Any:
    """Return the outputs of all blocks."""
    if not parts:
        raise ValueError(f"{blocks.name[0].upper()}{blocks.name[1:]} have no samples.")
    return namespace(*parts).concat(parts, axis=0)


def _lazily(estimator: Any, X: Any, method: str, tail: tuple[int, ...], dtype: Any) -> Any:
    """Return a Dask array of what a method returns for Dask collections; nothing is computed yet."""
    return lazy_outputs(_partitions(estimator, X), estimator, method, tail, dtype)


def _partitions(estimator: Any, X: Any) -> Partitions:
    if isinstance(X, RowBlocks):
        assert X.partitions is not None
        return X.partitions
    return partitions_of(X, views=getattr(estimator, "views", None))


def _is_lazy(estimator: Any, X: Any) -> bool:
    """Tell whether predictions are made by Dask, which needs a fitted estimator."""
    lazy = X.partitions is not None if isinstance(X, RowBlocks) else is_dask(X)
    if lazy:
        check_is_fitted(estimator, "view_names_in_")
    return lazy


def _number_of_outputs(estimator: Any) -> int:
    """Return the number of outputs of a fitted estimator with several, without data."""
    known = vars(estimator)
    coefficients = known.get("coef_", known.get("dual_coef_", known.get("_mean")))  # `_mean` is that of a consensus
    if coefficients is None:
        raise TypeError(
            f"{type(estimator).__name__} with several outputs does not predict Dask collections. Compute them first."
        )
    return int((next(iter(coefficients.values())) if isinstance(coefficients, dict) else coefficients).shape[-1])


def _score_part(estimator: Any, block: Any) -> Any:
    """Return the known targets of a partition, their predictions and weights; a task of Dask."""
    return None if block is None else to_score(estimator, *block)


def to_score(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the known targets, their predictions and weights; samples without a target are left out."""
    if is_dask(X):
        X = RowBlocks.of(X, y, sample_weight, views=getattr(estimator, "views", None))
        y = sample_weight = None
    if isinstance(X, RowBlocks):
        if y is not None or sample_weight is not None:
            raise ValueError("RowBlocks have targets and weights in their blocks. Leave `y` and `sample_weight` out.")
        if X.partitions is None:
            parts = [to_score(estimator, *block) for block in X]
        else:
            parts = [part for part in X.partitions.map(_score_part, estimator) if part is not None]
        columns = [None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)]
        return columns[0], columns[1], columns[2]
    if y is None:
        raise ValueError("A score needs targets, and y is None. Give y; blocks of rows have it with them, as (X, y).")
    X, y, sample_weight = read_to_score(estimator, X, y, sample_weight)
    if getattr(estimator, "_label_lists", False):
        labeled, known = read_label_sets(y, len(X), estimator.classes_)
    else:
        labeled, known = labeled_rows(y, getattr(estimator, "unlabeled", None) if is_classifier(estimator) else None)
    own = None if sample_weight is None else np.asarray(sample_weight)[labeled]
    return known, to_numpy(estimator.predict(X))[labeled], own


class ViewRegressor(RegressorMixin):
    """Regression from combined views; `fit` sets ``_one_output``, whether the targets were one column."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        """
        if _is_lazy(self, X):
            return _lazily(self, X, "predict", () if self._one_output else (_number_of_outputs(self),), np.float64)
        outputs = outputs_by_blocks(self, X)
        return outputs[:, 0] if self._one_output else outputs

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² of the predictions; samples without a target (NaN) are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            R², averaged over the outputs.
        """
        known, predicted, weights = to_score(self, X, y, sample_weight)
        return float(r2_score(known, predicted, sample_weight=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ViewClassifier(ClassifierMixin):
    """Classification from combined views: the sign of one output, or the largest of several."""

    classes_: np.ndarray
    _multi_label = False  # whether y may be an indicator of several labels per sample
    _indicator = False  # whether it was one in the last fit
    _label_lists = False  # whether samples had lists of labels, instead of an indicator

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the combined score of each class.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes one score, positive for the second.
        """
        if _is_lazy(self, X):
            columns = len(self.classes_) if self._indicator or len(self.classes_) > 2 else 1
            return _lazily(self, X, "decision_function", () if columns == 1 else (columns,), np.float64)
        outputs = outputs_by_blocks(self, X)
        return outputs[:, 0] if outputs.shape[1] == 1 and not self._indicator else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes, or an indicator of labels.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_labels)
            Classes; 0 and 1 where y was an indicator, lists where y had lists of labels.
        """
        if _is_lazy(self, X):
            if self._indicator:
                return _lazily(self, X, "predict", (len(self.classes_),), int)
            return _lazily(self, X, "predict", (), self.classes_.dtype)
        scores = self.decision_function(X)
        scores = to_numpy(scores)  # classes are on the host
        if self._indicator:
            labels = (scores > 0).astype(int)
            return sets_of(labels, self.classes_) if self._label_lists else labels
        return self.classes_[decide(scores, len(self.classes_))]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; samples without a label are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            The classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            Accuracy; with several labels per sample, all of them must be correct.
        """
        known, predicted, weights = to_score(self, X, y, sample_weight)
        if self._label_lists:
            return share_of_equal_sets(known, predicted, weights)
        return float(accuracy_score(known, predicted, sample_weight=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._multi_label
        return tags


def decide(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return positions of predicted classes: the largest score, or the sign of one score (a tie is the first class)."""
    if n_classes == 1:
        return np.zeros(len(scores), dtype=int)
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
