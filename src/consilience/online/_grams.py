"""Kernel values between samples by group of views, as kernel machines take them."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..kernels import Kernel
from ..kernels.joint import JointKernel
from ..views import _blocks
from ..views.container import Views
from ._support_rows import SingleRow


class Grams:
    """Kernel values by group: "joint" (one of all views), "views" (one each), "pairs" (every view with every one)."""

    def __init__(self, shape: str, combine: Any = "sum", intercept: bool = False):
        self.shape, self.combine, self.intercept = shape, combine, intercept
        self.kernels: dict[str, Kernel] = {}

    def n_groups(self) -> int:
        """Return the number of groups."""
        m = len(self.kernels)
        return 1 if self.shape == "joint" else m if self.shape == "views" else m * m

    def groups(self) -> list[tuple[int, str, str]]:
        """Return the group, the view of the sample and the view of the support of each kernel; "joint" adds up."""
        names = list(self.kernels)
        if self.shape == "pairs":  # group (k, l): view k of the support with view l of the sample
            return [(k * len(names) + l, right, left) for k, left in enumerate(names) for l, right in enumerate(names)]
        return [(0 if self.shape == "joint" else k, name, name) for k, name in enumerate(names)]

    def adds(self) -> bool:
        """Return whether a joint kernel is the sum of the kernels of the views."""
        return isinstance(self.combine, str) and self.combine == "sum"

    def __call__(self, X: Any, Y: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return values of shape (n_X, n_groups, n_Y), written to `out` if given; 0 where a view is missing."""
        out = np.empty((len(X), self.n_groups(), len(Y))) if out is None else out
        if isinstance(X, SingleRow):
            out[...] = X.with_itself()
            return out
        names, same = tuple(self.kernels), X is Y
        X = X.align(names)
        Y = X if same else Y.align(names)
        if self.shape == "joint":
            # a product has no value without a view; batch estimators take means of the training samples
            if not self.adds() and (X.mask is not None or Y.mask is not None):
                raise ValueError(
                    f"combine={self.combine!r} needs every view in every sample: the value for a missing view would "
                    "depend on the other samples of its chunk. Use combine='sum'."
                )
            out[:, 0] = JointKernel(self.kernels, Y, self.combine, scaled=False).cross(X)
            out += float(self.intercept)
            return out
        if self.shape == "pairs":
            self._set_pairs(X, Y, out)
            return out
        for k, name in enumerate(names):
            rows, columns = np.flatnonzero(X.present(name)), np.flatnonzero(Y.present(name))
            whole = len(rows) == len(X) and len(columns) == len(Y)
            out[:, k] = 0.0
            if len(rows) and len(columns):
                with _blocks.naming(name):
                    right = None if same else _blocks.take(Y.block(name), columns)
                    inner = self._values(name, _blocks.take(X.block(name), rows), right, (len(rows), len(columns)))
                out[:, k][slice(None) if whole else np.ix_(rows, columns)] = inner
        return out

    def _values(self, name: str, left: Any, right: Any, shape: tuple[int, int]) -> np.ndarray:
        """Return the kernel of a view between samples; `right` is None for the same samples, which halves the work."""
        kernel = self.kernels[name]
        inner = to_numpy(kernel(left)) if right is None else kernel._against(right, np.float64)(left, np.empty(shape))
        if self.intercept:
            inner += 1.0
        return inner

    def _refuse_view(self, *samples: Views) -> None:
        """Name the view whose samples the kernel refuses, if it is one alone."""
        for X in samples:
            for name in X.names:
                rows = np.flatnonzero(X.present(name))
                if len(rows):
                    with _blocks.naming(name):
                        self.kernels[name](_blocks.take(X.block(name), rows))

    def _set_pairs(self, X: Views, Y: Views, out: np.ndarray) -> None:
        """Set the kernel of every view of X with every view of Y, by one call for the samples of all views.

        Group (k, l) is view k of Y with view l of X. All views have one kernel.
        """
        names = tuple(self.kernels)
        m, (left, there) = len(names), _of_all_views(X)
        right, present = (None, there) if X is Y else _of_all_views(Y)
        K, size = np.zeros((0, 0)), (m * len(X), m * len(Y))
        if len(there) and len(present):
            try:
                K = self._values(names[0], left, right, (len(there), len(present)))
            except ValueError as error:
                self._refuse_view(X, Y)
                raise error
        if K.shape != size:
            inner, K = K, np.zeros(size)
            K[np.ix_(there, present)] = inner if inner.size else 0.0
        values = K.reshape(m, len(X), m, len(Y)).transpose(1, 2, 0, 3)
        out.reshape(len(X), m, m, len(Y))[...] = values  # splits an axis, so it writes to `out`


def _of_all_views(X: Views) -> tuple[Any, np.ndarray]:
    """Return the samples of all views, one view after the other, without missing ones, and which they are."""
    there = [np.flatnonzero(X.present(name)) for name in X.names]
    parts = [_blocks.take(X.block(name), own) for name, own in zip(X.names, there, strict=True) if len(own)]
    rows = np.concatenate([k * len(X) + own for k, own in enumerate(there)])
    if len(parts) == 1:
        return parts[0], rows
    if all(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr"), rows
    dense = [part.toarray() if sp.issparse(part) else _blocks.to_numpy(part) for part in parts]
    return np.vstack(dense) if dense else np.zeros((0, 0)), rows
