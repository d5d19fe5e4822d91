"""Preparation of one view by name: "log", "top_k:50" and other recipes, as transformers of a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import fdtrc
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _blocks
from ._frames import is_frame, read_frame
from .container import Views
from .hashing import HASHED_COLUMNS, HashedTokens
from .validation import labeled_rows

RECIPES = ("standardize", "impute", "log", "quantile", "variance:K", "top_k:K", "hash", "category", "tfidf")
_OF_TOKENS = ("hash", "category", "tfidf")  # recipes for text, lists of tokens, maps and ids; a number is optional
_CELLS = 4_000_000  # cells of a table that are worked on at a time
_QUANTILES = 1000  # as many as scikit-learn takes


class NegativeValue(ValueError):
    """A value that the logarithm refuses, with its place in the table."""

    def __init__(self, owner: Any, row: int, column: int, value: float):
        super().__init__(f"The recipe 'log' found {value:g} in row {row}, column {column}; values must not be negative")
        self.owner, self.row, self.column, self.value = owner, row, column, value
        self.before: Sequence[Any] = ()  # fitted steps that the table has gone through


# -- transformers
class Recipe(TransformerMixin, BaseEstimator):
    """A transformer of numbers that has a name; sparse tables stay sparse, and NaN stays NaN."""

    def _read(self, X: Any, *, fit: bool) -> Any:
        return validate_data(
            self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_all_finite="allow-nan", reset=fit
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


class LogColumns(OneToOneFeatureMixin, Recipe):
    """Replace every value x by log(1 + x); refuse negative values."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Validate the values."""
        self._checked(X, fit=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the logarithms."""
        check_is_fitted(self, "n_features_in_")
        X = self._checked(X, fit=False)
        return type(X)((np.log1p(X.data), X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else np.log1p(X)

    def _checked(self, X: Any, *, fit: bool) -> Any:
        X = self._read(X, fit=fit)
        values = X.data if sp.issparse(X) else X
        if (values < 0).any():  # does not hold of NaN
            place = np.argwhere(values < 0)[0]
            if sp.issparse(X):
                row, column = np.searchsorted(X.indptr, place[0], side="right") - 1, X.indices[place[0]]
            else:
                row, column = place
            raise NegativeValue(self, int(row), int(column), float(values[tuple(place)]))
        return X


class ColumnSelection(SelectorMixin, Recipe):
    """Keep the k columns that rank first; `fit` sets `support_`."""

    def _select(self, order: np.ndarray) -> Self:
        self.support_ = np.zeros(len(order), dtype=bool)
        self.support_[order[: self.k]] = True
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_


class MostVariable(ColumnSelection):
    """Keep the k columns with the largest variance, without NaN; of equal ones the first. Empty columns rank last."""

    def __init__(self, k: int = 10):
        self.k = k

    def fit(self, X: Any, y: Any = None) -> Self:
        """Rank the columns."""
        X = self._read(X, fit=True)
        self.variances_ = _variances(X)
        return self._select(np.argsort(-np.nan_to_num(self.variances_, nan=-1.0), kind="stable"))


class MostAssociated(ColumnSelection):
    """Keep the k columns that are most associated with the target, by an F-test; of equal ones the first.

    The test is the analysis of variance for classes, and that of the correlation for numbers. With several outputs, a
    column counts by its best one. Cells and targets that are NaN are left out. The columns are ranked by F, or by its
    p-value if they have different numbers of NaN. Constant columns rank last.
    """

    def __init__(self, k: int = 10, task: str | None = None):
        self.k = k
        self.task = task  # default: regression if some target is not an integer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Rank the columns."""
        X = self._read(X, fit=True)
        if y is None:
            raise ValueError("The recipe 'top_k' ranks columns by their association with y. Give y to fit.")
        labeled, known = labeled_rows(y)
        X = X if labeled.all() else X[np.flatnonzero(labeled)]
        weights = _weights(known, self.task)
        self.scores_, self.pvalues_ = _f_tests(X, weights, classes=weights.dtype == bool)
        ranks = [-np.nan_to_num(self.scores_, nan=-1.0, posinf=np.inf)]
        if np.isnan(X.data if sp.issparse(X) else X).any():  # F of fewer values means less
            ranks.append(np.nan_to_num(self.pvalues_, nan=2.0))
        return self._select(np.lexsort(ranks))


# -- statistics of columns
def _variances(X: Any) -> np.ndarray:
    """Return the variance of each column without NaN; NaN where a column has no value."""
    if sp.issparse(X):
        return np.asarray(mean_variance_axis(X.astype(np.float64), axis=0)[1])
    parts = []
    for columns in _slices(X):
        part = X[:, columns].astype(np.float64)
        counts = np.count_nonzero(~np.isnan(part), axis=0)
        part -= np.nansum(part, axis=0) / np.maximum(counts, 1)
        squares = np.nansum(part**2, axis=0) / np.maximum(counts, 1)
        parts.append(np.where(counts > 0, squares, np.nan))
    return np.concatenate(parts)


def _slices(X: Any) -> list[slice]:
    """Return slices of columns that fit into the memory for one step."""
    step = max(1, _CELLS // max(1, X.shape[0]))
    return [slice(start, start + step) for start in range(0, X.shape[1], step)]


def _weights(y: np.ndarray, task: str | None) -> np.ndarray:
    """Return an indicator of the classes (booleans), or centered targets, with a column for each."""
    numeric = y.dtype.kind in "fiu"
    if task is None:
        task = "regression" if y.ndim == 2 or (y.dtype.kind == "f" and (y != np.round(y)).any()) else "classification"
    if task == "regression" or y.ndim == 2:
        if not numeric:
            first = y.ravel()[:1].tolist()[0]
            raise ValueError(f"The recipe 'top_k' for regression needs numbers as targets; y has {first!r}.")
        Y = y.reshape(len(y), -1).astype(np.float64)
        if not np.ptp(Y, axis=0).any():
            raise ValueError("The recipe 'top_k' ranks columns by their association with y, but y is constant.")
        return Y - Y.mean(axis=0)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The recipe 'top_k' compares classes, but y has only the class {classes.tolist()[0]!r}. Give two."
        )
    return np.asarray(codes[:, None] == np.arange(len(classes)))


def _totals(X: Any, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Σ_i w_i over the rows that have a value, Σ_i w_i x_i and Σ_i w_i x_i², for columns w of W and x of X."""
    W = W.astype(np.float64)
    if sp.issparse(X):
        X = X.astype(np.float64)
        holes = np.isnan(X.data)
        lost = type(X)((holes.astype(np.float64), X.indices, X.indptr), shape=X.shape)
        V = type(X)((np.where(holes, 0.0, X.data), X.indices, X.indptr), shape=X.shape)
        return W.sum(axis=0)[:, None] - (lost.T @ W).T, (V.T @ W).T, (V.multiply(V).T.tocsr() @ W).T
    holes = np.isnan(X)
    there = W.sum(axis=0)[:, None] - (W.T @ holes if holes.any() else np.zeros((1, X.shape[1])))
    V = np.where(holes, 0.0, X)
    return there, W.T @ V, W.T @ V**2


def _f_tests(X: Any, weights: np.ndarray, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return F and its p-value for each column; NaN where a column is constant or has too few values."""
    test = _class_tests if classes else _regression_tests
    if sp.issparse(X):
        F, p = test(X, weights)
        low, high = min_max_axis(X, axis=0, ignore_nan=True)
        constant = ~(np.asarray(low).ravel() < np.asarray(high).ravel())
        return np.where(constant, np.nan, F), np.where(constant, np.nan, p)
    parts = []
    for columns in _slices(X):
        part = X[:, columns].astype(np.float64)
        counts = np.maximum(np.count_nonzero(~np.isnan(part), axis=0), 1)
        low, high = np.fmin.reduce(part), np.fmax.reduce(part)
        part -= np.nansum(part, axis=0) / counts  # sums of squares lose digits far from 0
        parts.append(np.where(low < high, test(part, weights), np.nan))
    F, p = np.concatenate(parts, axis=1)
    return F, p


def _class_tests(X: Any, indicator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the analysis of variance of each column between classes."""
    n, s, q = _totals(X, indicator)
    total, groups = n.sum(axis=0), np.count_nonzero(n, axis=0)
    squared_means = np.divide(s**2, n, out=np.zeros_like(s), where=n > 0).sum(axis=0)
    between = squared_means - s.sum(axis=0) ** 2 / np.maximum(total, 1)
    within = np.maximum(q.sum(axis=0) - squared_means, 0.0)
    return _f_values(between, within, groups - 1.0, total - groups)


def _regression_tests(X: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the test of the correlation of each column with the output that it is most correlated with."""
    ones = np.ones((len(Y), 1))
    (n,), (sx,), (sxx,) = _totals(X, ones)
    sy, sxy, _ = _totals(X, Y)
    syy = _totals(X, Y**2)[0]
    n1 = np.maximum(n, 1)
    vx, vy, cov = sxx - sx**2 / n1, syy - sy**2 / n1, sxy - sx * sy / n1
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where((vx > 0) & (vy > 0), cov**2 / (vx * vy), np.nan)
    best = np.minimum(np.fmax.reduce(r2), 1.0)
    return _f_values(best, 1 - best, np.ones_like(n), n - 2)


def _f_values(
    explained: np.ndarray, rest: np.ndarray, df_explained: np.ndarray, df_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    defined = (df_explained > 0) & (df_rest > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        F = np.where(defined, (np.maximum(explained, 0.0) / df_explained) / (rest / df_rest), np.nan)
        p = np.where(np.isinf(F), 0.0, fdtrc(df_explained, df_rest, F))
    return F, np.where(np.isnan(F), np.nan, p)


# -- recipes by name
def is_recipe(step: Any) -> bool:
    """Tell whether a step is a recipe, by name or as its transformer."""
    return isinstance(step, (str, Recipe))


def check_recipe(recipe: str) -> str:
    """Return a recipe; raise if no recipe has this name, or if its number is wrong."""
    name, colon, number = recipe.partition(":")
    by_name = {known.partition(":")[0]: known for known in RECIPES}
    if name not in by_name:
        raise ValueError(f"There is no recipe '{recipe}'. The recipes are {', '.join(RECIPES)}, passthrough and drop.")
    counts, hashes = ":" in by_name[name], name in _OF_TOKENS
    whole = number.isascii() and number.isdigit() and 0 < int(number) < 2**31
    if (counts or (hashes and colon)) and not whole:
        raise ValueError(f"The recipe '{recipe}' must have a number of columns, at least 1, such as '{name}:50'.")
    if colon and not (counts or hashes):
        raise ValueError(f"The recipe '{name}' takes no number; got '{recipe}'.")
    return recipe


def hashes_tokens(step: Any) -> bool:
    """Tell whether a step takes text, lists of tokens, maps or ids and hashes them."""
    return isinstance(step, HashedTokens) or (isinstance(step, str) and step.partition(":")[0] in _OF_TOKENS)


def hashed_tokens(recipe: str) -> HashedTokens:
    """Return the transformer that counts tokens for the recipes "hash", "category" and "tfidf"."""
    name, _, number = recipe.partition(":")
    n_features = int(number) if number else HASHED_COLUMNS
    return HashedTokens(n_features, signed=name != "tfidf", whole=name == "category")


def transformer_of(step: Any, data: Any, view: str) -> Any:
    """Return an unfitted transformer of a view's table: that of a recipe by name, or a clone of the one given."""
    if not isinstance(step, str):
        return step.of_view(view) if hasattr(step, "of_view") else clone(step)
    name, _, number = check_recipe(step).partition(":")
    if name in _OF_TOKENS:
        tokens = hashed_tokens(step)
        return make_pipeline(tokens, TfidfTransformer()) if name == "tfidf" else tokens
    if name == "standardize":
        return StandardScaler(with_mean=not sp.issparse(data))
    if name == "impute":
        return SimpleImputer(keep_empty_features=True)  # a column that is empty in one training part keeps its place
    if name == "log":
        return LogColumns()
    if name == "quantile":
        if sp.issparse(data):
            raise ValueError(
                "The recipe 'quantile' would have to move the zeros of a sparse view, which would make it dense. Give "
                "the recipe by name to the dense views, or make this view dense."
            )
        n_quantiles = max(1, min(_QUANTILES, data.shape[0]))
        return QuantileTransformer(n_quantiles=n_quantiles, output_distribution="normal", random_state=0)
    return MostVariable(int(number)) if name == "variance" else MostAssociated(int(number))


def routed_to_fit(owner: Any, step: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that `fit` of a step requests by scikit-learn's metadata routing."""
    router = MetadataRouter(owner=owner).add(step=step, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    return dict(router.route_params(params=params, caller="fit")["step"]["fit"])


def fit_steps(
    steps: Sequence[Any], data: Any, y: Any, view: str, transform: bool, params: dict[str, Any]
) -> tuple[Any, Any]:
    """Fit steps one after another; return them as one transformer, and the transformed table if it is asked for.

    `params` are weights and other metadata of the samples, for steps that request them.
    """
    fitted: list[Any] = []
    try:
        for k, step in enumerate(steps):
            own = transformer_of(step, data, view)
            more = routed_to_fit("PerView", own, params) if params else {}
            if transform or k < len(steps) - 1:
                has = hasattr(own, "fit_transform") and not more
                data = own.fit_transform(data, y) if has else own.fit(data, y, **more).transform(data)
            else:
                own.fit(data, y, **more)
            fitted.append(own)
    except NegativeValue as error:
        error.before = fitted
        raise
    return (fitted[0] if len(fitted) == 1 else make_pipeline(*fitted)), (data if transform else None)


def chained_steps(transformer: Any) -> list[Any]:
    """Return the steps of a pipeline, and any other transformer as the only step."""
    return [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]


# -- what transformers return
def plain_result(result: Any) -> Any:
    """Return what a transformer returned as an array or a sparse matrix."""
    if is_frame(result):
        return read_frame("output", result).block
    return result if sp.issparse(result) or hasattr(result, "shape") else np.asarray(result)


def output_names(transformer: Any, names_in: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of a transformer's output columns, or None if it has none."""
    try:
        given = transformer.get_feature_names_out(None if names_in is None else np.asarray(names_in, dtype=object))
    except (AttributeError, TypeError, ValueError):  # the transformer does not name its outputs
        return None
    if given is None:
        return None
    names = tuple(str(c) for c in given)
    generated = names_in is None and names == tuple(f"x{k}" for k in range(len(names)))  # scikit-learn's default names
    return None if generated else names


@contextmanager
def naming_place(name: str, X: Views, transformer: Any = None) -> Iterator[None]:
    """Name the view in errors about its data; in those of the recipe "log" the sample and the column too."""
    try:
        with _blocks.naming(name):
            yield
    except NegativeValue as error:
        names = X.feature_names.get(name)
        before = error.before if transformer is None else chained_steps(transformer)
        for step in before:
            if step is error.owner:
                break
            names = output_names(step, names)
        row = int(np.flatnonzero(X.present(name))[error.row])
        where = f"row {row}" if X.sample_names is None else f"sample '{X.sample_names[row]}'"
        column = error.column if names is None else f"'{names[error.column]}'"
        raise ValueError(
            f"View '{name}' has {error.value:g} in {where}, column {column}, but the recipe 'log' takes no negative "
            "values. Correct it, or use another recipe for this view."
        ) from error
