"""Finite features of one view as a transformer of its table, which is a step among others, also in a stream."""

from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone

from ..views.container import Views
from .by_view import kernel_of
from .scalar import RBF, Laplacian


class TableFeatures(TransformerMixin, BaseEstimator):
    """Features of one view by `RandomFeatures` or `Nystroem`.

    Parameters
    ----------
    features : RandomFeatures or Nystroem
        Transformer of views.
    view : str
        Name of the view, which seeds its random numbers.
    """

    features_: Any

    def __init__(self, features: Any, view: str):
        self.features = features
        self.view = view

    # -- samples in memory
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the map from all samples."""
        self.features_ = clone(self.features).fit({self.view: X})
        return self

    def transform(self, X: Any) -> Any:
        """Return the features."""
        return self.features_.transform({self.view: X}).block(self.view)

    # -- streams
    def run(self, X: Any, present: np.ndarray, learn: bool) -> np.ndarray:
        """Return φ(x) = sqrt(2/p) cos(W'x + b) of each row; W and b are drawn at the first one and stay.

        Products are added up in the order of the columns, so that any chunks give the same bits.
        """
        from ._compiled import add_products, add_sparse_products  # numba loads at the first use

        if "features_" not in vars(self):
            self.features_ = self._drawn(X.shape[1])
        W, b = self.features_._weights[self.view], self.features_._phases[self.view]
        if X.shape[1] != len(W):
            raise ValueError(f"Got rows of {X.shape[1]} columns after rows of {len(W)}. Give the same columns.")
        angles = np.full((X.shape[0], W.shape[1]), np.nan)
        if sp.issparse(X):
            add_sparse_products(X.data, X.indices, X.indptr, present, W, b, angles)
        else:
            add_products(X, present, W, b, angles)
        np.cos(angles, out=angles)
        angles *= np.sqrt(2 / W.shape[1])
        return angles.astype(X.dtype, copy=False)

    def _drawn(self, width: int) -> Any:
        """Return the transformer with weights for a number of columns, and a kernel that takes nothing from data."""
        kernel = kernel_of(self.features.kernel, self.view)
        if not isinstance(kernel, (RBF, Laplacian)) or not self.features._draws_at_once:
            raise ValueError(
                f"View '{self.view}': {type(self.features).__name__} with {kernel!r} needs all samples. In a stream "
                "use RandomFeatures with the kernel RBF or Laplacian."
            )
        if isinstance(kernel.gamma, str) and kernel.gamma == "scale":
            kernel = clone(kernel).set_params(gamma=1.0 / width)  # a stream has no variance yet
        if kernel._unresolved():
            raise ValueError(
                f"View '{self.view}': {kernel!r} takes a parameter from the data, which a stream does not have at "
                "once. Give it a number."
            )
        if not isinstance(self.features.n_components, Integral):
            raise ValueError(
                f"View '{self.view}': n_components={self.features.n_components!r} is a fraction of the samples, whose "
                "number a stream does not know. Give an integer."
            )
        own = clone(self.features).set_params(kernel=kernel)
        return own.fit_read(Views({self.view: np.zeros((1, width))}))

    def get_feature_names_out(self, input_features: Any = None) -> None:
        """Return None: features have no names."""
