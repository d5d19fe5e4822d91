"""Training samples that a model stores: which new samples repeat them, and which columns have other units."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array
from ..views.container import Views
from ..views.row_blocks import RowBlocks
from ..views.validation import read_views_to_predict
from ._wrappers import final_estimator, final_views

_FEWEST = 10  # samples that determine a median
_SHIFT = 2.0  # standard deviations that a median may move


def sample_keys(X: Views) -> list[bytes] | None:
    """Return a key per sample that only equal samples share; None for Gram matrices and arrays on devices."""
    keys = [b""] * len(X)
    for name in X.names:
        if X.kind(name) == "missing":
            continue
        if X.kind(name) == "gram" or is_device_array(X.block(name)):
            return None
        keys = [key + b"|" + name.encode() + row for key, row in zip(keys, _row_values(X, name), strict=True)]
    return keys


def _row_values(X: Views, name: str) -> Iterator[bytes]:
    """Yield the values of each row; nothing where the view is missing."""
    block: Any = X.block(name)
    present = X.present(name)
    if X.kind(name) == "objects":
        yield from (repr(block[k]).encode() if there else b"" for k, there in enumerate(present))
    elif sp.issparse(block):
        rows = sp.csr_array(block, dtype=np.float64)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for k, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
            cells = rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].tobytes()
            yield cells if present[k] else b""
    else:
        values = np.where(np.isnan(block), np.nan, np.asarray(block, dtype=np.float64)) + 0.0  # one NaN, one zero
        yield from (row.tobytes() if there else b"" for row, there in zip(values, present, strict=True))


class StoredSamples:
    """The training samples that a model stores, and new samples, both as its final estimator receives them."""

    def __init__(self, model: Any, X: Any):
        final = final_estimator(model)
        self.stored: Views | None = getattr(final, "X_fit_", None)
        support = np.sort(getattr(final, "support_", ()))
        self.all_stored = np.array_equal(support, np.arange(len(support)))  # else only the support samples
        if not isinstance(self.stored, Views) or isinstance(X, RowBlocks):
            self.stored = None
            return
        with warnings.catch_warnings():  # the prediction has given them
            warnings.simplefilter("ignore")
            new = read_views_to_predict(final, final_views(model, X))
            refits = vars(final).get("_prepared")  # of a consensus with `prepare`, which stores prepared samples
            new = new if refits is None else refits.whole.steps.transform(new)
        self.new = new[list(self.stored.names)]
        self.prepared = final is not model or refits is not None

    def repeated(self) -> np.ndarray | None:
        """Return which new samples have the values of a stored one in all views; None if that cannot be checked."""
        stored = None if self.stored is None else sample_keys(self.stored)
        new = None if stored is None else sample_keys(self.new)
        if stored is None or new is None:
            return None
        known = set(stored)
        return np.array([key in known for key in new])

    def other_units(self) -> list[str]:
        """Return a sentence for each view with columns whose values are far from those of the stored samples."""
        names = () if self.stored is None else self.stored.names
        return [sentence for name in names for sentence in self._other_units(name)]

    def _other_units(self, name: str) -> Iterator[str]:
        before, now = self.stored.block(name), self.new.block(name)  # type: ignore[union-attr]
        if not (isinstance(before, np.ndarray) and isinstance(now, np.ndarray) and before.dtype.kind in "iuf"):
            return
        before, now = before[self.stored.present(name)], now[self.new.present(name)]  # type: ignore[union-attr]
        if min(len(before), len(now)) < _FEWEST:
            return
        with warnings.catch_warnings():  # of columns without a value
            warnings.simplefilter("ignore", RuntimeWarning)
            low, high, spread = np.nanmin(before, axis=0), np.nanmax(before, axis=0), np.nanstd(before, axis=0)
            median = np.nanmedian(now, axis=0)
            moved = np.abs(median - np.nanmedian(before, axis=0)) > _SHIFT * spread
            outside = np.mean((now < low) | (now > high), axis=0) > 0.5
        columns = np.flatnonzero((moved | outside) & (high > low))
        if len(columns):
            feature_names: Sequence[Any] = self.new.feature_names.get(name, ())
            first = int(columns[0])
            label = f"'{feature_names[first]}'" if len(feature_names) else str(first)
            after = " after the preparation" if self.prepared else ""
            yield (
                f"{len(columns)} of {before.shape[1]} columns of view '{name}' have values far from those in training: "
                f"were they scaled otherwise? The median of {label} is {median[first]:.4g}; in training it was "
                f"{low[first]:.4g} to {high[first]:.4g}{after}."
            )
