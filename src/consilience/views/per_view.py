"""Prepare each view by recipes or scikit-learn transformers of its own."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _raise_for_params
from sklearn.utils.validation import check_is_fitted

from .._backend import check_on_host, take_rows
from . import _blocks, _reading
from ._block_transforms import fit_by_blocks, survey_views, transformed_blocks
from ._blocks import Block
from ._construction import is_mapping
from ._docs import shared_docs
from ._samples import in_order_of
from ._streamed_views import learn_chunk, learn_row, tokens_as_objects, transform_chunk, transform_row
from .container import Views
from .conversion import as_views
from .estimator import ViewEstimator
from .recipes import check_recipe, fit_steps, hashes_tokens, is_recipe, naming_place, output_names, plain_result
from .row_blocks import RowBlocks
from .validation import read_as_fitted, store_views

__all__ = ["PerView"]  # `as_preparation` is for estimators that take a preparation as a parameter

_TRANSFORMER = [HasMethods(["fit", "transform"]), str, list, tuple]


@shared_docs
@dataclass(eq=False, repr=False)
class PerView(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Transform each view by recipes or a transformer of its own; the result is again `Views`.

    A transformer is fitted on the rows where its view is present; the view stays missing in the other rows. A view of
    strings reaches its transformer as a list of strings, so that text vectorizers work. `partial_fit` and
    `learn_transform` learn in a stream, without samples from the future.

    Parameters
    ----------
    transformers : dict, recipe, transformer or list of these
        Recipes and transformers by view, or those of every view. A list is applied in order. Transformers are cloned
        for each view. See the notes for the recipes. ``"passthrough"`` leaves a view unchanged, ``"drop"`` removes it.
    remainder : recipe, transformer or list of these, default="passthrough"
        What the views get that the dict `transformers` does not name.
    {views}
    {missing_columns}

    Attributes
    ----------
    transformers_ : dict
        Fitted transformers by view; None for views that are missing in every training sample.
    n_samples_seen_ : int
        Number of samples learned in a stream.
    view_names_in_ : tuple of str
        Views at fit.
    n_features_in_ : int
        Number of columns at fit, where there was one view.

    See Also
    --------
    RemoveBatch : Remove the effects of batches from all views.
    sklearn.compose.ColumnTransformer : Does the same for columns of one table; ``views="prefix"`` reads its output.

    Notes
    -----
    Recipes are names of preparations. For columns of numbers:

    - ``"standardize"``: mean 0 and variance 1; sparse views are only divided by the standard deviation.
    - ``"impute"``: single missing values are filled with the mean of their column.
    - ``"log"``: log(1 + x); negative values are refused.
    - ``"quantile"``: each column is mapped to a normal distribution by its ranks. Dense views only.
    - ``"variance:50"``: the 50 columns with the largest variance.
    - ``"top_k:50"``: the 50 columns most associated with y, by the F-test of classes or of the correlation. Samples
      without a target (NaN, None) are left out.

    For strings, lists of tokens or ids, maps of keys to numbers, and single ids:

    - ``"hash"``: tokens are counted in 262,144 columns that their hash chooses, ``"hash:1000"`` in 1,000. The tokens
      of a string are its words in lower case. The hash chooses a sign too, so that tokens that share a column cancel
      out on average. Columns are the same in every process, and nothing is learned.
    - ``"category"``: the same, with a string as one token, such as "New York".
    - ``"tfidf"``: counts without signs, weighted by ln((1 + n) / (1 + df)) + 1 for a token that df of n samples have,
      and rows of norm 1, as in `TfidfTransformer`.

    Statistics leave out single values that are NaN. Of equal columns the first is kept, and a view with fewer columns
    keeps all. Views of text and Gram matrices pass recipes for numbers unchanged that are given for all views, or as
    `remainder`; a recipe that the dict gives to such a view is refused. Tables pass recipes for tokens in the same way,
    but the dict may give one to a table of ids.

    In a stream, each row is transformed with the statistics of the rows so far, itself included, and of no later row.
    So the first value of a column becomes 0, and standard scores after n values are at most sqrt(n - 1). A column
    without variance so far is 0, also in sparse views. `transform` takes each row as the next one of the stream, and
    stores nothing. Any chunks, and single samples, give the same state bit for bit. Missing views change nothing, and
    new views may appear. Single NaN stay NaN unless they are imputed. Values beyond ±1e148 count as ±1e148, because
    their squares would overflow; infinity is refused.

    Streams take "standardize", "impute", "log", "hash", "category", "tfidf", and transformers that learn nothing, such
    as `Normalizer` and `FunctionTransformer`. They also take `RandomFeatures`, whose ``gamma="scale"`` is one over the
    number of columns. Others are refused: they need all samples, or their result would depend on the chunks.

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
    >>> PerView(["log", "standardize", "variance:1"]).fit_transform(X)["audio"].shape
    (3, 1)

    In a stream, by chunks or by single samples:

    >>> stream = PerView({"audio": ["impute", "standardize"], "text": "hash:16"}, remainder="drop")
    >>> stream.learn_transform(X)["audio"].round(2)
    array([[0.  , 0.  ],
           [1.  , 1.  ],
           [1.22, 1.22]])
    >>> stream.learn_transform_one({"audio": [6.0, 7.0], "text": "c d"})["audio"].round(2)
    array([1.34, 1.34])
    """

    _parameter_constraints = {
        "transformers": [Mapping, *_TRANSFORMER],
        "remainder": _TRANSFORMER,
        "missing_columns": [StrOptions({"raise", "fill"})],
    }

    transformers: Any
    _: KW_ONLY
    remainder: Any = "passthrough"
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit every view's transformer on the rows where the view is present.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows reach transformers by ``partial_fit``, with a pass for each transformer of
            a list. A transformer that has none is refused, unless it learns nothing, as the recipe "log".
        y : array-like of shape (n_samples,), optional
            Target, passed to the transformers for the rows where their view is present.
        **params : dict
            Sample weights and other metadata, for transformers that request them by scikit-learn's metadata routing.

        Returns
        -------
        self
            Fitted transformer.
        """
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            if isinstance(X, RowBlocks):
                self._fit_blocks(X, y, params)
            else:
                self._fit(X, y, params, transform=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and transform the same samples, each view by ``fit_transform`` of its transformer.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples.
        y : array-like of shape (n_samples,), optional
            Target, passed to the transformers for the rows where their view is present.
        **params : dict
            Metadata, as in `fit`.

        Returns
        -------
        Views or RowBlocks
            Transformed views.
        """
        if isinstance(X, RowBlocks):
            return self.fit(X, y, **params).transform(X)
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            views = self._joined(*self._fit(X, y, params, transform=True))
            if uses_target(self):
                views._chosen_by_target = True  # held-out scores of what is fitted to them are not honest
            return views

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that the transformers request.

        Returns
        -------
        MetadataRouter
            What scikit-learn's pipelines read.
        """
        given = [*self.transformers.values(), self.remainder] if self._is_by_view() else [self.transformers]
        steps = [step for own in given for step in (own if isinstance(own, (list, tuple)) else [own])]
        routed = {f"step{k}": step for k, step in enumerate(steps) if hasattr(step, "get_metadata_routing")}
        methods = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")
        return MetadataRouter(owner=self).add(method_mapping=methods, **routed)

    def _fit(self, X: Any, y: Any, params: dict[str, Any], transform: bool) -> tuple[Views, dict[str, Any]]:
        """Fit the transformers; return the samples and, if asked for, the transformed present rows of each view."""
        _raise_for_params(params, self, "fit")
        X = as_views(tokens_as_objects(self, X), None if isinstance(X, Views) or is_mapping(X) else self.views)
        self.__dict__.pop("n_samples_seen_", None)  # no longer in a stream
        by_view = self._steps_by_view(X)
        y = in_order_of(X, y, "y")
        if y is not None and len(np.asarray(y)) != len(X):
            raise ValueError(f"X has {len(X)} samples, but y has {len(np.asarray(y))}. Give one target per sample.")
        store_views(self, X)
        self._dense_views = tuple(name for name in X.names if X.kind(name) == "dense")
        self.transformers_: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for name, steps in by_view.items():
            if isinstance(steps, str):
                self.transformers_[name] = steps
                continue
            data, rows = _present(X, name)
            if data is None:  # no sample to fit on: the view stays missing
                self.transformers_[name] = None
                continue
            target = None if y is None else _column(y)[rows]
            more = {key: np.asarray(in_order_of(X, own, key))[rows] for key, own in params.items()}
            with naming_place(name, X):
                self.transformers_[name], results[name] = fit_steps(steps, data, target, name, transform, more)
        return X, results

    def _fit_blocks(self, blocks: RowBlocks, y: Any, params: dict[str, Any]) -> None:
        """Fit the transformers to blocks of rows, which have their targets with them."""
        if y is not None or params:
            raise ValueError("RowBlocks have targets in their blocks. Leave `y` and metadata out.")
        self.__dict__.pop("n_samples_seen_", None)
        some = survey_views(self, blocks)
        self._dense_views = tuple(name for name in some.names if some.kind(name) == "dense")
        self.transformers_ = fit_by_blocks(self, blocks, self._steps_by_view(some), _present)

    def transform(self, X: Any) -> Any:
        """Transform every view.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Samples; a view that is not given is missing.

        Returns
        -------
        Views or RowBlocks
            Transformed views. Blocks of rows are transformed at each pass, and keep their targets and weights.
        """
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            return transformed_blocks(X, self.transform)
        if self._in_stream():
            return transform_chunk(self, X)
        X = read_as_fitted(self, tokens_as_objects(self, X)).align(self.view_names_in_)
        results = {}
        data: Any
        for name, transformer in self.transformers_.items():
            data, _ = (None, None) if transformer is None or isinstance(transformer, str) else _present(X, name)
            if sp.issparse(data) and name in self._dense_views:  # transformers that center take dense data alone
                data = data.toarray()
            if data is not None:
                with naming_place(name, X, transformer):
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
            result = _reading.read_block(name, plain_result(results[name])) if name in results else None
            blocks[name] = result if result is None or len(rows) == len(X) else _blocks.place_rows(result, rows, len(X))
            names[name] = None if transformer is None else output_names(transformer, X.feature_names.get(name))
        return self._as_views(X, blocks, names)

    def _as_views(self, X: Views, blocks: Mapping[str, Block], names: Mapping[str, Any]) -> Views:
        """Return transformed views with the names of their columns; raise for samples that keep no view."""
        given = [X.present(name) & (block is not None) for name, block in blocks.items()]
        present = np.column_stack(given) if given else np.zeros((len(X), 1), dtype=bool)
        empty = np.flatnonzero(~present.any(axis=1))
        if len(empty):
            kept = [name for name in blocks if self.transformers_.get(name) is not None]
            raise ValueError(
                f"{_blocks.rows_text(empty, X.sample_names)} none of the remaining views {_blocks.quoted(kept)}. "
                "PerView drops the others, or they were missing in every training sample. Drop such samples."
            )
        columns = {name: known for name, known in names.items() if known is not None}
        same = {name: own for name, own in X.categories.items() if self.transformers_.get(name) == "passthrough"}
        return Views._of(blocks, len(X), present, columns, X.sample_names, same, X._default_index)

    # -- streams
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn a chunk of samples, in order; see the notes for what streams can learn.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Samples. Views may be missing, and new ones may appear. A chunk that is refused changes nothing.
        y : ignored
            Not used.

        Returns
        -------
        self
            The transformer.
        """
        if isinstance(X, RowBlocks):
            for block in X:
                self.learn_transform(block.X)
        else:
            self.learn_transform(X)
        return self

    def learn_transform(self, X: Any) -> Views:
        """Learn a chunk of samples and transform it: each row by the rows so far, itself included, and no later row.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples. Views may be missing, and new ones may appear. A chunk that is refused changes nothing.

        Returns
        -------
        Views
            Transformed views.
        """
        self._validate_params()
        self._check_in_stream()
        return learn_chunk(self, X)

    def learn_transform_one(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """Learn one sample and transform it, faster than as a chunk of one row, with the same result.

        Parameters
        ----------
        x : dict
            The row of each view: an array, a list of numbers, a sparse row, a Series or dict with the names of the
            columns, a string, a list of tokens, or a map of tokens. Missing views are left out, None, or rows of NaN.

        Returns
        -------
        dict
            The transformed row of each view that is present: a 1-D array, or a CSR matrix of one row.
        """
        self._check_in_stream()
        return learn_row(self, x)

    def transform_one(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """Transform one sample, in a stream as if it came next; nothing is stored.

        Parameters
        ----------
        x : dict
            The row of each view, as in `learn_transform_one`.

        Returns
        -------
        dict
            The transformed row of each view that is present: a 1-D array, or a CSR matrix of one row.
        """
        return transform_row(self, x)

    def _in_stream(self) -> bool:
        return "n_samples_seen_" in vars(self)

    def _check_in_stream(self) -> None:
        if "transformers_" in vars(self) and not self._in_stream():
            raise ValueError(
                "PerView was fitted by `fit`, and its transformers cannot learn from single rows. Start a stream with "
                "clone(prepare), or go on with `transform`."
            )

    # -- steps of views
    def _steps_by_view(self, X: Views) -> dict[str, Any]:
        """Return "passthrough", "drop" or the steps of each view; raise for unknown views and unsuitable steps."""
        unknown = [name for name in self.transformers if name not in X.names] if self._is_by_view() else []
        if unknown:
            raise ValueError(
                f"PerView has a transformer for the view {_blocks.quoted(unknown)}, but the views are "
                f"{_blocks.quoted(X.names)}. Remove or rename the entry."
            )
        return {name: self._steps_of(name, X) for name in X.names}

    def _steps_of(self, name: str, X: Views) -> Any:
        return _steps(name, X, self._given(name), named=self._is_by_view() and name in self.transformers)

    def _is_by_view(self) -> bool:
        return isinstance(self.transformers, Mapping)

    def _given(self, name: str) -> Any:
        return self.transformers.get(name, self.remainder) if self._is_by_view() else self.transformers

    def _hashes(self, name: str) -> bool:
        """Tell whether the first step of a view hashes tokens."""
        given = self._given(name)
        return hashes_tokens(given[0] if isinstance(given, (list, tuple)) and given else given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _steps(name: str, X: Views, given: Any, *, named: bool) -> Any:
    """Return "passthrough", "drop", or the steps of one view; `named` if they were given to this view by its name."""
    if isinstance(given, str) and given in ("passthrough", "drop"):
        return given
    steps = list(given) if isinstance(given, (list, tuple)) else [given]
    for step in steps:
        if isinstance(step, str) and step == "drop":
            raise ValueError(f"View '{name}' has 'drop' among other steps. Give 'drop' alone, or leave it out.")
        if isinstance(step, str) and step != "passthrough":
            check_recipe(step)
        elif not isinstance(step, str) and not (hasattr(step, "fit") and hasattr(step, "transform")):
            raise TypeError(
                f"The transformer of view '{name}' must be a recipe, have fit and transform, or be 'passthrough' or "
                f"'drop'; got {step!r}."
            )
    steps = [step for step in steps if not (isinstance(step, str) and step == "passthrough")]
    kind = X.kind(name)
    tokens = bool(steps) and hashes_tokens(steps[0])
    if tokens and not named and kind in ("dense", "sparse"):
        return "passthrough"
    if steps and is_recipe(steps[0]) and (kind == "gram" or (kind == "objects" and not tokens)):
        if not named and all(is_recipe(step) for step in steps):
            return "passthrough"
        what = "a Gram matrix" if kind == "gram" else "text or other objects"
        remedy = "" if kind == "gram" else ", or put a transformer such as TfidfVectorizer() before it"
        raise TypeError(
            f"View '{name}' is {what}, but the recipe {steps[0]!r} needs columns of numbers. Use 'passthrough' for "
            f"this view{remedy}."
        )
    return steps or "passthrough"


def _column(y: Any) -> np.ndarray:
    """Return targets as an array; NumPy would make text of NaN among strings."""
    if isinstance(y, (list, tuple)) and len({type(value) for value in y}) > 1 and any(isinstance(v, str) for v in y):
        return _reading.objects_of(y)
    return np.asarray(y)


def _present(X: Views, name: str) -> tuple[Any, np.ndarray]:
    """Return the present rows of a view in the form that transformers take (strings as a list), and their positions."""
    rows = np.flatnonzero(X.present(name))
    block = X.block(name)
    if block is None or not len(rows):
        return None, rows
    if isinstance(block, _blocks.Gram):
        raise TypeError(f"View '{name}' is a Gram matrix, but transformers need data. Use 'passthrough' for this view.")
    if not get_config()["array_api_dispatch"]:  # with it, transformers of scikit-learn may work on devices
        check_on_host(f"PerView's transformer of the view '{name}'", block)
    if len(rows) < len(X):
        block = take_rows(block, rows)
    return (block.tolist() if block.dtype == object else block), rows


def uses_target(given: Any) -> bool:
    """Tell whether a preparation uses the target, so that it may not see held-out samples.

    Parameters
    ----------
    given : recipe, transformer, dict or list of these
        What `PerView` takes, or a transformer of views.

    Returns
    -------
    bool
        Whether a part of it needs a target.
    """
    if isinstance(given, PerView):
        return uses_target([given.transformers, given.remainder])
    if isinstance(given, Mapping):
        return any(map(uses_target, given.values()))
    if isinstance(given, (list, tuple)):
        return any(map(uses_target, given))
    if isinstance(given, Pipeline):
        return uses_target([step for _, step in given.steps])
    if isinstance(given, str) or given is None:
        return given is not None and given.startswith("top_k")
    return bool(get_tags(given).target_tags.required) if hasattr(given, "__sklearn_tags__") else False


def as_preparation(given: Any) -> PerView | None:
    """Return the preparation that an estimator was given as a parameter, as a `PerView` of its own.

    Parameters
    ----------
    given : None, PerView, dict, recipe, transformer or list of these
        What `PerView` takes, or an unfitted or fitted `PerView`, which is cloned.

    Returns
    -------
    PerView or None
        An unfitted transformer; None if there is no preparation.
    """
    if given is None:
        return None
    return clone(given) if isinstance(given, PerView) else PerView(given)
