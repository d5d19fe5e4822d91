"""Remove the effects of batches, such as plates or hospitals, from the columns of all views."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._backend import like, to_numpy
from . import _blocks
from ._construction import is_mapping
from ._docs import shared_docs
from ._reading import is_missing, objects_of
from .container import Views
from .conversion import as_views
from .estimator import ViewEstimator
from .validation import read_as_fitted, read_known, store_views

__all__ = ["RemoveBatch"]


@shared_docs
@dataclass(eq=False, repr=False)
class RemoveBatch(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Remove the effects of batches from all numeric views; the view that holds the batches is dropped.

    Every column is regressed on the batches, by least squares with an intercept on the training samples. The effects of
    the batches are subtracted, so that the mean of the training samples stays.

    Parameters
    ----------
    view : str, default="batch"
        View of the batches: strings, one column of numbers (each value is a batch), or one-hot columns. Several groups
        of one-hot columns, such as plate and hospital, have additive effects.
    {views}
    {missing_columns}

    Attributes
    ----------
    batches_ : tuple of str
        Names of the batches, or of the one-hot columns.
    batch_sizes_ : array of int of shape (n_batches,)
        Number of training samples of each batch.
    effects_ : dict of array of shape (n_batches, n_columns)
        Effect of each batch on each column, by view; NaN where no training sample of the batch has a value.
    view_names_in_ : tuple of str
        Views at fit.
    n_features_in_ : int
        Number of columns at fit, where there was one view.

    See Also
    --------
    PerView : Prepare each view by itself.

    Notes
    -----
    Samples whose batch is missing, or was not among the training samples, are left as they are, with a warning that
    counts them. Missing views stay missing, and single values that are NaN are left out. Views of text and Gram
    matrices stay as they are; sparse views are refused, because subtraction would make them dense.

    If classes and batches coincide, this removes the differences of the classes too.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import RemoveBatch, Views
    >>> X = Views(a=[[1.0], [3.0], [11.0], [13.0]], batch=["p", "p", "q", "q"])
    >>> RemoveBatch().fit_transform(X)["a"].ravel()
    array([6., 8., 6., 8.])
    """

    _parameter_constraints = {"view": [str], "missing_columns": [StrOptions({"raise", "fill"})]}

    view: str = "batch"
    _: KW_ONLY
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the effects of the batches.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples.
        y : None
            Not used.

        Returns
        -------
        self
            Fitted transformer.
        """
        self._validate_params()
        with self._restore_on_error(shows_progress=False):
            X = self._read(X)
            if self.view not in X.names:
                raise ValueError(
                    f"RemoveBatch needs the view '{self.view}' of the batches, but the views are "
                    f"{_blocks.quoted(X.names)}. Add it, or name another one by `view`."
                )
            if not X.present(self.view).any():
                raise ValueError(f"No training sample has the view '{self.view}' of the batches. Give batches.")
            store_views(self, X)
            self.batches_ = _batch_names(X, self.view)
            D = _indicators(X, self.view, self.batches_)
            self._n_groups = int(np.nanmax(D.sum(axis=1)))
            if not self._n_groups:
                raise ValueError(f"View '{self.view}' of the batches has only zeros. Give names, or one-hot columns.")
            known = self._known_rows(X, D)
            self.batch_sizes_ = D[known].sum(axis=0).astype(int)
            self.effects_ = {
                name: _effects(name, X, D, known) for name in X.names if name != self.view and _is_numeric(X, name)
            }
        return self

    def transform(self, X: Any) -> Views:
        """Subtract the effects of the batches, and drop their view.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples; a view that is not given is missing.

        Returns
        -------
        Views
            Other views, without the effects of the batches.
        """
        check_is_fitted(self)
        X = read_as_fitted(self, self._read(read_known(self, X))).align(self.view_names_in_)
        others = [name for name in X.names if name != self.view]
        bare = np.flatnonzero(~np.any([X.present(name) for name in others], axis=0))
        if len(bare):
            raise ValueError(
                f"{_blocks.rows_text(bare, X.sample_names)} none of the views {_blocks.quoted(others)}, only "
                f"'{self.view}', which RemoveBatch drops. Drop such samples."
            )
        D = _indicators(X, self.view, self.batches_)
        known = self._known_rows(X, D)
        self._tell_unknown(X, known)
        D = np.where(known[:, None], D, 0.0)
        blocks = {
            name: _without(name, X, D, self.effects_[name])
            for name in others
            if name in self.effects_ and X.block(name) is not None
        }
        return X[others]._replaced(blocks, {})

    def _read(self, X: Any) -> Views:
        """Read samples, with batches that are one column of numbers as names."""
        X = as_views(X, None if isinstance(X, Views) or is_mapping(X) else self.views)
        if self.view in X.names and X.kind(self.view) == "dense" and X[self.view].shape[1] == 1:
            names = category_names(to_numpy(X[self.view])[:, 0])
            X = X._replaced({self.view: names}, {})
        return X

    def _known_rows(self, X: Views, D: np.ndarray) -> np.ndarray:
        """Return which samples have a batch of the training samples."""
        return X.present(self.view) & (D.sum(axis=1) == self._n_groups)  # no sum with NaN is equal

    def _tell_unknown(self, X: Views, known: np.ndarray) -> None:
        """Warn of samples whose batch is missing or unknown, with their number."""
        new = np.flatnonzero(X.present(self.view) & ~known)
        count = int((~known).sum())
        if not count:
            return
        reasons = [f"{count - len(new)} without a batch"] * (count > len(new))
        if len(new):
            values = X[self.view]
            names = sorted({str(values[row]) for row in new}) if X.kind(self.view) == "objects" else []
            listed = f" ({_blocks.some(names, 5)})" if names else ""
            reasons.append(f"{len(new)} with a batch that no training sample had{listed}")
        warnings.warn(
            f"The effects of batches (view '{self.view}') stay in {count} of {len(X)} samples: "
            f"{' and '.join(reasons)}.",
            stacklevel=3,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# -- batches
def add_batches(X: Views, view: str, values: Any) -> Views:
    """Return samples with one more view, which holds the batch of each sample by name."""
    if view in X.names:
        raise ValueError(f"The samples have a view named '{view}' already, as the batches. Rename one of them.")
    names = category_names(values)
    there = np.array([name is not None for name in names], dtype=bool)
    mask = np.column_stack([*(X.present(name) for name in X.names), there])
    blocks = {**{name: X.block(name) for name in X.names}, view: names}
    return Views._of(blocks, len(X), mask, X.feature_names, X.sample_names, X.categories)


def category_names(values: Any) -> np.ndarray:
    """Return categories as strings, and None where one is missing; whole numbers are written without a point."""
    names = [None if is_missing(value) else _name(value) for value in np.asarray(values).tolist()]
    return objects_of(names)


def _name(value: Any) -> str:
    whole = isinstance(value, float) and np.isfinite(value) and value == int(value)
    return str(int(value)) if whole else str(value)


def _batch_names(X: Views, view: str) -> tuple[str, ...]:
    """Return the names of the batches, or of the one-hot columns."""
    if X.kind(view) == "gram":
        raise ValueError(f"View '{view}' of the batches is a Gram matrix. Give names of batches, or one-hot columns.")
    if X.kind(view) == "objects":
        return tuple(sorted({str(value) for value in X[view][X.present(view)]}))
    width = X[view].shape[1]
    return X.feature_names.get(view) or tuple(map(str, range(width)))


def _indicators(X: Views, view: str, batches: tuple[str, ...]) -> np.ndarray:
    """Return which sample is of which batch, as numbers 0 and 1; a row of zeros or NaN has no known batch."""
    block = X.block(view)
    if block is None:
        return np.zeros((len(X), len(batches)))
    if X.kind(view) == "objects":
        place = {name: k for k, name in enumerate(batches)}
        where = np.array([-1 if value is None else place.get(str(value), -1) for value in block])
        return np.asarray(where[:, None] == np.arange(len(batches))).astype(np.float64)
    D = block.toarray() if sp.issparse(block) else to_numpy(block)
    other = np.argwhere((D != 0) & (D != 1) & ~np.isnan(D))
    if len(other):
        raise ValueError(
            f"View '{view}' of the batches has several columns, but not only 0 and 1: {D[tuple(other[0])]:g} in column "
            f"'{batches[other[0][1]]}'. Give names of batches, or one-hot columns."
        )
    return np.asarray(D, dtype=np.float64)


# -- effects
def _is_numeric(X: Views, name: str) -> bool:
    """Tell whether a view has columns of numbers; refuse sparse ones."""
    if X.kind(name) == "sparse":
        raise ValueError(
            f"View '{name}' is sparse, and RemoveBatch would make it dense. If it is small enough, give it as an array "
            f"(X['{name}'].toarray()); else leave it out before."
        )
    return X.kind(name) == "dense"


def _effects(name: str, X: Views, D: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the effect of each batch on each column of a view, from the samples that have both."""
    rows = np.flatnonzero(known & X.present(name))
    values, D = to_numpy(X.block(name))[rows].astype(np.float64), D[rows]
    if np.isinf(values).any():
        raise ValueError(f"View '{name}' contains infinity. Correct such values first.")
    if (D.sum(axis=1) == 1).all():
        return _mean_differences(D, values)
    effects = np.full((D.shape[1], values.shape[1]), np.nan)
    holes = np.isnan(values)
    # columns with values in the same samples are regressed together
    _, which, sizes = np.unique(np.packbits(holes, axis=0), axis=1, return_inverse=True, return_counts=True)
    for columns in np.split(np.argsort(which.reshape(-1), kind="stable"), np.cumsum(sizes)[:-1]):
        there = np.flatnonzero(~holes[:, columns[0]])
        if len(there):
            effects[:, columns] = _regressed(D[there], values[np.ix_(there, columns)])
    return effects


def _mean_differences(D: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of each batch minus the mean of all, which is the regression on batches that exclude each other.

    Cells that are NaN are left out. Batches without values get NaN.
    """
    holes = np.isnan(values)
    counts = D.sum(axis=0)[:, None] - D.T @ holes
    total = counts.sum(axis=0)
    centered = values - np.nansum(values, axis=0) / np.maximum(total, 1)
    sums = D.T @ np.where(holes, 0.0, centered)
    sums[counts == total] = 0.0  # all values are of one batch: not even rounding changes them
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _regressed(D: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return B such that D @ B are the fitted values of the columns minus their means.

    The regression is (D - mean of D) @ C. All rows of D have the same sum s, so its constant part is spread over the
    rows of C. Batches without samples get NaN.
    """
    C = LinearRegression().fit(D, values).coef_.T
    B = C - (D.mean(axis=0) @ C) / D[0].sum()
    B[~D.any(axis=0)] = np.nan
    return np.asarray(B)


def _without(name: str, X: Views, D: np.ndarray, effects: np.ndarray) -> Any:
    """Return a view without the effects of the batches; values whose effect is not known stay as they are."""
    block = X.block(name)
    block = block.toarray() if sp.issparse(block) else block  # it was dense at fit
    values, there = to_numpy(block), X.present(name)
    unknown = np.isnan(effects)
    if unknown.any():
        left = (D @ unknown > 0) & ~np.isnan(values)
        count = int(left.any(axis=1).sum())
        effects = np.where(unknown, 0.0, effects)
        if count:
            warnings.warn(
                f"View '{name}': {int(left.sum())} values in {count} of {int(there.sum())} samples keep the effects of "
                "batches, because no training sample of their batch has a value there.",
                stacklevel=3,
            )
            return like(np.where(left, values, values - D @ effects).astype(values.dtype), block)
    return like((values - D @ effects).astype(values.dtype), block)
