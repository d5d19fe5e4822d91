"""The frame of every learner: combining views, parameters by view, prediction, the batch learner."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score

from .._progress import listening
from . import _blocks
from ._notebook import summary
from .container import Views
from .validation import labeled_rows


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
class ViewEstimator(BaseEstimator):
    """Parameters that are dicts by view can be set and searched as ``kernel__audio__gamma``."""

    def _view_is_gram(self, name: str) -> bool:
        """Whether a view's kernel takes Gram matrices."""
        return False

    def _part(self, parameter: str, value: Any) -> Any:
        """Return a parameter, or its entry for one view, as an object with parameters of its own."""
        return value

    @contextmanager
    def _whole(self, *, listens: bool = True) -> Iterator[None]:
        """A fit that is refused or interrupted leaves the learner as it was; with `verbose` it shows how far it is.

        Numbers that leave the range of floating point on the way end in a sentence.
        """
        before = dict(self.__dict__)
        shown = listens and bool(getattr(self, "verbose", False))
        try:
            with listening(shown, type(self).__name__), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                yield
            _check_fitted_numbers(self)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if _is_out_of_range(error):
                raise _out_of_range(self) from error
            raise

    def _repr_html_inner(self) -> str:
        """What notebooks show: scikit-learn's diagram, kernels by view, and what was learned."""
        return str(super()._repr_html_inner()) + summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {kind: self._repr_html_inner() if kind == "text/html" else text for kind, text in bundle.items()}

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
        for key, value in sorted(params.items(), key=lambda item: item[0].count("__")):  # what holds comes first
            outer, _, inner = key.partition("__")
            held = getattr(self, outer, None) if outer in self._get_param_names() else None
            if not inner:
                continue
            if isinstance(held, Mapping):
                setattr(self, outer, self._with_part(outer, held, inner, value))
            elif isinstance(held, str):
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


# -- numbers that leave the range of floating point
def _is_out_of_range(error: BaseException) -> bool:
    """Tell errors of arithmetic and of LAPACK, whose texts say nothing of the learner's input."""
    raw = ("infs or NaNs", "NaN to integer", "infinity to integer", "did not converge")
    arithmetic = (ArithmeticError, np.linalg.LinAlgError)
    return isinstance(error, arithmetic) or (type(error) is ValueError and any(text in str(error) for text in raw))


def _out_of_range(learner: Any) -> ValueError:
    numbers = {k: v for k, v in learner.get_params(deep=False).items() if isinstance(v, float) and np.isfinite(v)}
    given = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
    return ValueError(
        f"{type(learner).__name__} found no finite solution: the targets, the sample weights, the kernels or the "
        f"parameters{f' ({given})' * bool(given)} are too large, too small or too far apart for floating point. Scale "
        "the views, y and the weights, and choose penalties nearer to 1."
    )


def _check_fitted_numbers(learner: Any) -> None:
    """Refuse a fit whose coefficients, weights or certificate are not finite."""
    solution = getattr(learner, "solution_", None)
    found = [
        value for value in (getattr(solution, "objective", None), getattr(solution, "gap", None)) if value is not None
    ]
    for name in ("dual_coef_", "coef_", "view_weights_"):
        value = vars(learner).get(name)
        found += list(value.values()) if isinstance(value, dict) else [value] if value is not None else []
    if not all(np.isfinite(np.sum(value)) or np.isfinite(value).all() for value in found):
        raise FloatingPointError("the fit is not finite")


def finite_outputs(learner: Any, outputs: np.ndarray) -> np.ndarray:
    """Return predictions or scores; refuse them where they overflow."""
    if not np.isfinite(np.sum(outputs)) and not np.isfinite(outputs).all():
        row = int(np.argwhere(~np.isfinite(outputs))[0][0])
        raise ValueError(
            f"{type(learner).__name__} has no finite prediction for sample {row}: its values are too large for the "
            "coefficients. Scale the samples as those given to fit."
        )
    return outputs


# -- prediction
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
        outputs = finite_outputs(self, self._combined(X))
        return outputs[:, 0] if self._one_output else outputs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions; samples without a target (NaN) are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            R², averaged over the outputs.
        """
        labeled, known = labeled_rows(y)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        return float(r2_score(known, self.predict(X)[labeled], sample_weight=weights))

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
        outputs = finite_outputs(self, self._combined(X))
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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right predictions; samples without a label are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            The classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            The accuracy; with several labels per sample, all of them must be right.
        """
        labeled, known = labeled_rows(y, getattr(self, "unlabeled", None))
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        return float(accuracy_score(known, self.predict(X)[labeled], sample_weight=weights))


def decide(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Positions of the chosen classes: the largest score, or for one score its sign (a tie is the first class)."""
    if n_classes == 1:
        return np.zeros(len(scores), dtype=int)
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
