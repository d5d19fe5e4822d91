"""Per-view preprocessing: scikit-learn's transformers, one per view, in a pipeline."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._backend import take_rows
from . import _blocks, _reading
from ._blocks import Block
from .container import Views, as_views, is_mapping
from .estimator import ViewEstimator
from .validation import named_as_before

__all__ = ["PerView"]


class PerView(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Transform each view by a transformer of its own; the result is again `Views`.

    A transformer is fitted on the rows where its view is present, and rows where it is absent stay absent. A view of
    strings reaches its transformer as a list of strings, so that text vectorizers work.

    Parameters
    ----------
    transformers : dict, transformer, "passthrough" or "drop"
        Transformers by view; or one for all views, which is cloned for each. ``"passthrough"`` leaves a view as it
        is, ``"drop"`` removes it.
    remainder : transformer, "passthrough" or "drop", default="passthrough"
        What happens to views that `transformers` does not name.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    transformers_ : dict
        The fitted transformers by view.

    See Also
    --------
    sklearn.compose.ColumnTransformer : The same for the columns of one table; its output is read by ``views="prefix"``.

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

    def __init__(self, transformers: Any, *, remainder: Any = "passthrough", views: Any = None):
        self.transformers = transformers
        self.remainder = remainder
        self.views = views

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit every view's transformer on the rows where the view is present.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The training samples.
        y : array-like, optional
            Handed to the transformers, cut to the same rows.

        Returns
        -------
        self
            The fitted transformer.
        """
        with self._whole(listens=False):
            self._fit(X, y, transform=False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Views:
        """Fit, and transform the same samples, each view by its transformer's own ``fit_transform``.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The training samples.
        y : array-like, optional
            Handed to the transformers, cut to the same rows.

        Returns
        -------
        Views
            The transformed views.
        """
        with self._whole(listens=False):
            return self._joined(*self._fit(X, y, transform=True))

    def _fit(self, X: Any, y: Any, transform: bool) -> tuple[Views, dict[str, Any]]:
        X = self._read(X)
        chosen = self._chosen(X.names)
        if y is not None and len(np.asarray(y)) != len(X):
            raise ValueError(f"X has {len(X)} samples, but y has {len(np.asarray(y))}.")
        self.view_names_in_ = X.names
        self.n_features_in_ = sum(_blocks.width(X.block(name)) for name in X.names)
        self.transformers_: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for name, transformer in chosen.items():
            if isinstance(transformer, str):
                self.transformers_[name] = transformer
                continue
            data, rows = _present(X, name)
            if data is None:  # nothing to fit on: the view stays absent
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
            The samples; a view that is not given is absent.

        Returns
        -------
        Views
            The transformed views.
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
        """The transformed rows at their places, beside the views that pass."""
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
            blocks[name] = result if result is None or len(rows) == len(X) else _blocks.spread(result, rows, len(X))
            names[name] = None if transformer is None else _output_names(transformer, X.feature_names.get(name))
        present = np.column_stack([X.present(name) & (block is not None) for name, block in blocks.items()])
        alone = np.flatnonzero(~present.any(axis=1))
        if len(alone):
            raise ValueError(
                f"{_blocks.rows_text(alone)} only views that PerView drops or that were absent in every training "
                f"sample: what is left is {_blocks.quoted(blocks)}."
            )
        return Views._of(blocks, len(X), present, {name: known for name, known in names.items() if known is not None})

    def _read(self, X: Any) -> Views:
        return as_views(X, None if isinstance(X, Views) or is_mapping(X) else self.views)

    def _chosen(self, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(self.transformers, Mapping):
            return {name: self._checked(name, self.transformers) for name in names}
        unknown = [name for name in self.transformers if name not in names]
        if unknown:
            raise ValueError(
                f"PerView has a transformer for the view {_blocks.quoted(unknown)}; the views are "
                f"{_blocks.quoted(names)}."
            )
        return {name: self._checked(name, self.transformers.get(name, self.remainder)) for name in names}

    @staticmethod
    def _checked(name: str, transformer: Any) -> Any:
        if isinstance(transformer, str) and transformer in ("passthrough", "drop"):
            return transformer
        if not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
            raise TypeError(
                f"The transformer of view '{name}' must have fit and transform, or be 'passthrough' or 'drop'; got "
                f"{transformer!r}."
            )
        return transformer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _present(X: Views, name: str) -> tuple[Any, np.ndarray]:
    """The rows of a view that are there, as a transformer takes them: strings as a list."""
    rows = np.flatnonzero(X.present(name))
    block = X.block(name)
    if block is None or not len(rows):
        return None, rows
    if isinstance(block, _blocks.Gram):
        raise TypeError(f"View '{name}' is precomputed; transformers need the data behind it. Use 'passthrough'.")
    if len(rows) < len(X):
        block = take_rows(block, rows)
    return (block.tolist() if block.dtype == object else block), rows


def _plain(result: Any) -> Any:
    if _reading.is_frame(result):
        return _reading.read_frame("output", result)[0]
    return result if sp.issparse(result) or hasattr(result, "shape") else np.asarray(result)


def _output_names(transformer: Any, names_in: tuple[str, ...] | None) -> tuple[str, ...] | None:
    try:
        given = transformer.get_feature_names_out(names_in and np.asarray(names_in, dtype=object))
    except (AttributeError, TypeError, ValueError):  # the transformer has no names to give
        return None
    names = tuple(str(c) for c in given)
    made_up = names_in is None and names == tuple(f"x{k}" for k in range(len(names)))  # for columns without names
    return None if made_up else names
