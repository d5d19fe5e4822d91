"""Preprocess each view by a scikit-learn transformer of its own."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._backend import take_rows
from . import _blocks, _reading
from ._blocks import Block
from ._docs import shared_docs
from .container import Views, as_views, is_mapping
from .estimator import ViewEstimator
from .validation import named_as_before

__all__ = ["PerView"]

_TRANSFORMER = [HasMethods(["fit", "transform"]), StrOptions({"passthrough", "drop"})]


@shared_docs
@dataclass(eq=False, repr=False)
class PerView(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Transform each view by a transformer of its own; the result is again `Views`.

    A transformer is fitted on the rows where its view is present; the view stays missing in the other rows. A view of
    strings reaches its transformer as a list of strings, so that text vectorizers work.

    Parameters
    ----------
    transformers : dict, transformer, "passthrough" or "drop"
        Transformers by view, or one transformer that is cloned for every view. ``"passthrough"`` leaves a view
        unchanged, ``"drop"`` removes it.
    remainder : transformer, "passthrough" or "drop", default="passthrough"
        Transformer of the views that the dict `transformers` does not name.
    {views}

    Attributes
    ----------
    transformers_ : dict
        Fitted transformers by view; None for views that are missing in every training sample.
    view_names_in_ : tuple of str
        Views at fit.
    n_features_in_ : int
        Total number of columns at fit.

    See Also
    --------
    sklearn.compose.ColumnTransformer : Does the same for columns of one table; ``views="prefix"`` reads its output.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from consilience import PerView, Views
    >>> X = Views(audio=np.arange(6.0).reshape(3, 2), text=["a b", "b c", "c c d"], id=[1, 2, 3])
    >>> prepare = PerView({"audio": StandardScaler(), "text": TfidfVectorizer(token_pattern=r"\\w"), "id": "drop"})
    >>> prepare.fit_transform(X)
    Views of 3 samples
      audio  dense float64   2 columns
      text   sparse float64  4 columns
    """

    _parameter_constraints = {"transformers": [Mapping, *_TRANSFORMER], "remainder": _TRANSFORMER}

    transformers: Any
    _: KW_ONLY
    remainder: Any = "passthrough"
    views: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit every view's transformer on the rows where the view is present.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples.
        y : array-like of shape (n_samples,), optional
            Target, passed to the transformers for the rows where their view is present.

        Returns
        -------
        self
            Fitted transformer.
        """
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            self._fit(X, y, transform=False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Views:
        """Fit and transform the same samples, each view by ``fit_transform`` of its transformer.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples.
        y : array-like of shape (n_samples,), optional
            Target, passed to the transformers for the rows where their view is present.

        Returns
        -------
        Views
            Transformed views.
        """
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            return self._joined(*self._fit(X, y, transform=True))

    def _fit(self, X: Any, y: Any, transform: bool) -> tuple[Views, dict[str, Any]]:
        """Fit the transformers; return the samples and, if asked for, the transformed present rows of each view."""
        X = self._read(X)
        by_view = self._transformers_by_view(X.names)
        if y is not None and len(np.asarray(y)) != len(X):
            raise ValueError(f"X has {len(X)} samples, but y has {len(np.asarray(y))}. Give one target per sample.")
        self.view_names_in_ = X.names
        self.n_features_in_ = sum(_blocks.width(X.block(name)) for name in X.names)
        self.transformers_: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for name, transformer in by_view.items():
            if isinstance(transformer, str):
                self.transformers_[name] = transformer
                continue
            data, rows = _present(X, name)
            if data is None:  # no sample to fit on: the view stays missing
                self.transformers_[name] = None
                continue
            target = None if y is None else np.asarray(y)[rows]
            fitted = self.transformers_[name] = clone(transformer)
            with _blocks.naming(name):
                if transform and hasattr(fitted, "fit_transform"):
                    results[name] = fitted.fit_transform(data, target)
                else:
                    fitted.fit(data, target)
                    results[name] = fitted.transform(data) if transform else None
        return X, results

    def transform(self, X: Any) -> Views:
        """Transform every view.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples; a view that is not given is missing.

        Returns
        -------
        Views
            Transformed views.
        """
        check_is_fitted(self)
        X = named_as_before(self, self._read(X)).align(self.view_names_in_)
        results = {}
        for name, transformer in self.transformers_.items():
            data, _ = (None, None) if transformer is None or isinstance(transformer, str) else _present(X, name)
            if data is not None:
                with _blocks.naming(name):
                    results[name] = transformer.transform(data)
        return self._joined(X, results)

    def _joined(self, X: Views, results: Mapping[str, Any]) -> Views:
        """Return the transformed rows at their positions, together with the views that pass through."""
        blocks: dict[str, Block] = {}
        names = {}
        for name, transformer in self.transformers_.items():
            if isinstance(transformer, str):
                if transformer == "passthrough":
                    blocks[name] = X.block(name)
                    names[name] = X.feature_names.get(name)
                continue
            rows = np.flatnonzero(X.present(name))
            result = _reading.read_block(name, _plain(results[name])) if name in results else None
            blocks[name] = result if result is None or len(rows) == len(X) else _blocks.place_rows(result, rows, len(X))
            names[name] = None if transformer is None else _output_names(transformer, X.feature_names.get(name))
        present = np.column_stack([X.present(name) & (block is not None) for name, block in blocks.items()])
        empty = np.flatnonzero(~present.any(axis=1))
        if len(empty):
            kept = [name for name in blocks if self.transformers_[name] is not None]
            raise ValueError(
                f"{_blocks.rows_text(empty)} none of the remaining views {_blocks.quoted(kept)}. PerView drops the "
                "others, or they were missing in every training sample. Drop such samples."
            )
        return Views._of(blocks, len(X), present, {name: known for name, known in names.items() if known is not None})

    def _read(self, X: Any) -> Views:
        return as_views(X, None if isinstance(X, Views) or is_mapping(X) else self.views)

    def _transformers_by_view(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the transformer of each view; raise for unknown views and for entries that are not transformers."""
        if not isinstance(self.transformers, Mapping):
            return dict.fromkeys(names, self.transformers)
        unknown = [name for name in self.transformers if name not in names]
        if unknown:
            raise ValueError(
                f"PerView has a transformer for the view {_blocks.quoted(unknown)}, but the views are "
                f"{_blocks.quoted(names)}. Remove or rename the entry."
            )
        for name, transformer in self.transformers.items():
            if not any(constraint.is_satisfied_by(transformer) for constraint in _TRANSFORMER):
                raise TypeError(
                    f"The transformer of view '{name}' must have fit and transform, or be 'passthrough' or 'drop'; got "
                    f"{transformer!r}."
                )
        return {name: self.transformers.get(name, self.remainder) for name in names}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _present(X: Views, name: str) -> tuple[Any, np.ndarray]:
    """Return the present rows of a view in the form that transformers take (strings as a list), and their positions."""
    rows = np.flatnonzero(X.present(name))
    block = X.block(name)
    if block is None or not len(rows):
        return None, rows
    if isinstance(block, _blocks.Gram):
        raise TypeError(f"View '{name}' is a Gram matrix, but transformers need data. Use 'passthrough' for this view.")
    if len(rows) < len(X):
        block = take_rows(block, rows)
    return (block.tolist() if block.dtype == object else block), rows


def _plain(result: Any) -> Any:
    """Return what a transformer returned as an array or a sparse matrix."""
    if _reading.is_frame(result):
        return _reading.read_frame("output", result)[0]
    return result if sp.issparse(result) or hasattr(result, "shape") else np.asarray(result)


def _output_names(transformer: Any, names_in: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of a transformer's output columns, or None if it has none."""
    try:
        given = transformer.get_feature_names_out(names_in and np.asarray(names_in, dtype=object))
    except (AttributeError, TypeError, ValueError):  # the transformer does not name its outputs
        return None
    names = tuple(str(c) for c in given)
    generated = names_in is None and names == tuple(f"x{k}" for k in range(len(names)))  # scikit-learn's default names
    return None if generated else names
