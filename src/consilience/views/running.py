"""Transformers that learn in a stream: each row is transformed with the rows so far, itself included, and no later row.

Including the row itself leaves no division by zero: the first value of a column becomes 0, and after n values standard
scores are at most sqrt(n - 1). Any chunks of a stream give the same bits, since rows are taken one after the other.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from .._backend import take_rows
from . import _blocks, _reading
from .hashing import HashedTokens
from .recipes import LogColumns, NegativeValue, check_recipe, hashed_tokens, output_names, plain_result

_CELLS = 2**15  # values that several steps take at a time
_RECIPE_FOR = {  # what streams have in place of transformers that need all samples, or depend on chunks
    "StandardScaler": "standardize", "MinMaxScaler": "standardize", "MaxAbsScaler": "standardize",
    "RobustScaler": "standardize", "SimpleImputer": "impute", "TfidfVectorizer": "tfidf", "CountVectorizer": "hash",
    "DictVectorizer": "hash", "OneHotEncoder": "category", "OrdinalEncoder": "category",
}  # fmt: skip


class RunningStep(BaseEstimator):
    """A transformer of one view that learns from each row and transforms it by all rows so far."""

    @abstractmethod
    def run(self, X: Any, present: np.ndarray, learn: bool) -> Any:
        """Return transformed rows; rows that are not present are missing in the result and are not learned."""

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn rows in order."""
        self.run(X, np.ones(X.shape[0], dtype=bool), True)
        return self

    def learn_transform(self, X: Any) -> Any:
        """Learn rows in order; return each one transformed by the rows up to itself."""
        return self.run(X, np.ones(X.shape[0], dtype=bool), True)

    def transform(self, X: Any) -> Any:
        """Return each row transformed as the next one after those learned; nothing is stored."""
        return self.run(X, np.ones(X.shape[0], dtype=bool), False)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, which stay."""
        return input_features

    def _begin(self, X: Any, dense: Sequence[str], sparse: Sequence[str]) -> bool:
        """Set statistics of the columns to 0 before the first row; return whether X is sparse."""
        width = X.shape[1]
        if "_count" not in vars(self):
            for name in ("_count", *(sparse if sp.issparse(X) else dense)):
                setattr(self, name, np.zeros(width))
            self._rows = np.zeros(1)  # of sparse views
        elif len(self._count) != width:
            raise ValueError(f"Got rows of {width} columns after rows of {len(self._count)}. Give the same columns.")
        if not self._count.flags.writeable:  # as in a memory map
            arrays = {name: own.copy() for name, own in vars(self).items() if isinstance(own, np.ndarray)}
            self.__dict__.update(arrays)
        return sp.issparse(X)


class RunningScaler(RunningStep):
    """Standard scores by running means and variances; sparse rows are only divided by the standard deviation.

    Means and variances are Welford's, with NaN left out. The variance is that of all values, as in `StandardScaler`. A
    column without variance so far becomes 0. Values beyond ±1e148 count as ±1e148, since squares of larger ones
    overflow.
    """

    _count: np.ndarray

    def run(self, X: Any, present: np.ndarray, learn: bool) -> Any:
        """Return standard scores."""
        from ._running_steps import scale_sparse_rows, standardize_rows  # numba loads at the first use

        if self._begin(X, ("_origin", "_mean", "_squares"), ("_mean", "_squares", "_lost")):
            values = np.empty_like(X.data)
            state = self._rows, self._count, self._mean, self._squares, self._lost
            scale_sparse_rows((X.data, X.indices, X.indptr), present, *state, learn, values)
            return _with_values(X, values)
        Z = np.empty_like(X)
        standardize_rows(X, present, self._count, self._origin, self._mean, self._squares, learn, Z)
        return Z

    @property
    def mean_(self) -> np.ndarray:
        """Mean of each column."""
        return self._origin + self._mean if hasattr(self, "_origin") else self._mean * self._share_of_values()

    @property
    def var_(self) -> np.ndarray:
        """Variance of each column; NaN before its first value."""
        with np.errstate(invalid="ignore"):
            if hasattr(self, "_origin"):
                return self._squares / self._count
            share, n = self._share_of_values(), self._rows - self._lost
            return self._squares / n + self._mean**2 * share * (1 - share)

    def _share_of_values(self) -> np.ndarray:
        """Return the share of the values that are not 0 in each column of sparse rows."""
        return self._count / (self._rows - self._lost)


class RunningImputer(RunningStep):
    """Single NaN replaced by the mean of the column so far, and by 0 before its first value."""

    _count: np.ndarray
    n_imputed_ = 0  # values that were replaced

    def run(self, X: Any, present: np.ndarray, learn: bool) -> Any:
        """Return rows without NaN."""
        from ._running_steps import impute_rows, impute_sparse_rows  # numba loads at the first use

        if self._begin(X, ("_mean",), ("_mean", "_lost")):
            Z = np.empty_like(X.data)
            state = self._rows, self._count, self._mean, self._lost
            filled = impute_sparse_rows((X.data, X.indices, X.indptr), present, *state, learn, Z)
        else:
            Z = np.empty_like(X)
            filled = impute_rows(X, present, self._count, self._mean, learn, Z)
        if learn:
            self.n_imputed_ += int(filled)
        return _with_values(X, Z) if sp.issparse(X) else Z


class RunningTfidf(RunningStep):
    """Weights tf (ln((1 + n) / (1 + df)) + 1) of counted tokens, and rows of norm 1, as in `TfidfTransformer`.

    The number n of rows so far, and the number df of those that have the token, include the row itself.
    """

    _count: np.ndarray

    def run(self, X: Any, present: np.ndarray, learn: bool) -> Any:
        """Return weighted counts."""
        from ._running_steps import weight_terms  # numba loads at the first use

        self._begin(X, (), ())
        values = np.empty_like(X.data)
        weight_terms((X.data, X.indices, X.indptr), present, self._rows, self._count, learn, values)
        return _with_values(X, values)

    @property
    def idf_(self) -> np.ndarray:
        """Weight of each column, after the rows so far."""
        return np.log((1 + self._rows) / (1 + self._count)) + 1


class FixedStep(RunningStep):
    """A transformer that learns nothing, such as log(1 + x), hashing or a function of each row."""

    def __init__(self, transformer: Any):
        self.transformer = transformer

    def run(self, X: Any, present: np.ndarray, learn: bool) -> Any:
        """Return transformed rows."""
        rows = np.flatnonzero(present)
        data = X if len(rows) == len(present) else take_rows(X, rows)
        data = data.tolist() if data.dtype == object else data
        if "_fitted" not in vars(self):
            self.transformer.fit(data)  # which only validates
            self._fitted = True
        result = self.transformer.transform(data)
        if not isinstance(self.transformer, HashedTokens):  # which returns valid rows
            result = _reading.read_block("output", plain_result(result))
        return result if len(rows) == len(present) else _blocks.place_rows(result, rows, len(present))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the transformer's columns, or None."""
        return output_names(self.transformer, input_features)


class RunningSteps:
    """The steps of one view in a stream, which are made when its first row comes.

    Parameters
    ----------
    given : list
        Recipes and transformers.
    view : str
        Name of the view.
    """

    def __init__(self, given: Sequence[Any], view: str):
        self.given, self.view = list(given), view
        self.steps: list[Any] = []
        self.n_fixed = 0  # first steps, which learn nothing and may refuse a row
        self.kind = ""  # of the first rows: "dense", "sparse" or "objects"
        self.width = 0
        self.in_order = True  # whether only steps follow that cannot refuse a row

    def begin(self, X: Any) -> None:
        """Make the steps by the first rows."""
        self.kind, self.width = _blocks.kind(X), _blocks.width(X)
        for given in self.given:
            for step in steps_in_stream(given, self.view):
                self.steps.append(step)
        learning = [k for k, step in enumerate(self.steps) if not isinstance(step, FixedStep)]
        self.n_fixed = learning[0] if learning else len(self.steps)
        self.in_order = not any(isinstance(step, FixedStep) for step in self.steps[self.n_fixed :])

    def read(self, X: Any, present: np.ndarray) -> Any:
        """Return rows in the form of the first ones: dense in C's order, sparse, or objects."""
        if self.kind == "dense":
            return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)
        if self.kind == "sparse" and not sp.issparse(X):
            return sp.csr_array(np.where(present[:, None], X, 0.0))
        return X

    def read_one(self, row: Any) -> Any:
        """Return one raw row in that form; None if it is missing, and `NotImplemented` if it must be validated."""
        if self.kind == "objects":
            return None if _reading.is_missing(row) else _reading.objects_of([row])
        if self.kind == "sparse" or sp.issparse(row):
            if self.kind == "dense" or not sp.issparse(row) or row.shape not in ((1, self.width), (self.width,)):
                return NotImplemented
            block = _reading.read_block(self.view, _reading.checked_sparse(row, self.view).reshape((1, -1)))
            return NotImplemented if np.isinf(block.data).any() else block
        if type(row) is not np.ndarray or row.dtype not in (np.float64, np.float32):
            row = _as_numbers(row)
            if row is None:
                return NotImplemented
        if row.shape not in ((self.width,), (1, self.width)):
            return NotImplemented
        if not np.isfinite(np.add.reduce(row, axis=None)):
            if np.isinf(row).any():
                return NotImplemented
            if np.isnan(row).all():
                return None
        return np.ascontiguousarray(row.reshape(1, -1))

    def run(self, X: Any, present: np.ndarray, learn: bool, first: int = 0, last: int | None = None) -> Any:
        """Return rows after the steps from `first` up to `last`; parts of dense rows that stay in the cache."""
        rows = max(1, _CELLS // max(1, self.width))
        if self.kind != "dense" or self.n_fixed or not self.in_order or len(present) <= rows or len(self.steps) < 2:
            return self._run(X, present, learn, first, last)
        Z = np.empty(0)
        for k in range(0, len(present), rows):
            part = self._run(X[k : k + rows], present[k : k + rows], learn, first, last)
            Z = Z if k else np.empty((len(present), part.shape[1]), dtype=part.dtype)
            Z[k : k + rows] = part
        return Z

    def _run(self, X: Any, present: np.ndarray, learn: bool, first: int, last: int | None) -> Any:
        for k, step in enumerate(self.steps[first:last], start=first):
            try:
                X = step.run(X, present, learn)
            except NegativeValue as error:
                error.before = self.steps[:k]
                raise
        return X

    def names_out(self, names: Any) -> Any:
        """Return the names of the columns after all steps, or None."""
        for step in self.steps:
            names = step.get_feature_names_out(names)
        return names

    def snapshot(self) -> list[dict[str, Any]]:
        """Return what `restore` needs to undo what is learned after this call."""
        return [{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in vars(s).items()} for s in self.steps]

    def restore(self, states: list[dict[str, Any]]) -> None:
        """Set the state that `snapshot` returned."""
        for step, state in zip(self.steps, states, strict=True):
            vars(step).clear()
            vars(step).update(state)


def _as_numbers(row: Any) -> np.ndarray | None:
    """Return a plain row in double precision, None for others and for text, even if it reads as a number."""
    if type(row) not in (list, tuple, np.ndarray):  # such as a Series, whose names decide, or a masked array
        return None
    try:
        given = np.asarray(row)
        text = given.dtype.kind in "US" or (
            given.dtype == object and any(isinstance(value, str) for value in given.flat)
        )
        return None if text else given.astype(np.float64)
    except (TypeError, ValueError):
        return None


def steps_in_stream(given: Any, view: str) -> list[Any]:
    """Return the steps of a recipe or transformer in a stream; raise for those that need all samples."""
    if not isinstance(given, str):
        return [_transformer_in_stream(given, view)]
    name = check_recipe(given).partition(":")[0]
    running: dict[str, Callable[[], list[Any]]] = {
        "standardize": lambda: [RunningScaler()],
        "impute": lambda: [RunningImputer()],
        "log": lambda: [FixedStep(LogColumns())],
        "hash": lambda: [FixedStep(hashed_tokens(given))],
        "category": lambda: [FixedStep(hashed_tokens(given))],
        "tfidf": lambda: [FixedStep(hashed_tokens(given)), RunningTfidf()],
    }
    if name not in running:
        raise ValueError(
            f"View '{view}': the recipe '{given}' needs all samples, which a stream does not have. Use "
            f"{_blocks.quoted(running)}, or prepare samples in memory by `fit`."
        )
    return running[name]()


def _transformer_in_stream(given: Any, view: str) -> Any:
    if hasattr(given, "of_view"):  # features of kernels
        return given.of_view(view)
    if isinstance(given, LogColumns) or not get_tags(given).requires_fit:
        return FixedStep(clone(given))
    recipe = _RECIPE_FOR.get(type(given).__name__)
    remedy = f"Use the recipe '{recipe}'" if recipe else "Use a recipe such as 'standardize', or RandomFeatures"
    reason = "would depend on the chunks of a stream" if hasattr(given, "partial_fit") else "needs all samples"
    raise ValueError(f"View '{view}': {given!r} {reason}. {remedy}, or prepare samples in memory by `fit`.")


def _with_values(X: Any, values: np.ndarray) -> Any:
    """Return a sparse matrix with other values at the same places."""
    new = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=False)
    new.has_canonical_format = True  # every block is, and SciPy would check again
    return new
