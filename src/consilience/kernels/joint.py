"""One kernel of all views: the sum, product or polynomial of their kernels, evaluated by blocks of rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._backend import to_numpy
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import presence
from .base import Kernel, check_overflow, integer_power
from .scalar import Polynomial

Fill = Callable[[Views, np.ndarray], np.ndarray]


class JointKernel:
    """The kernel K(x, z) of all views against reference samples; the kernels of the views are resolved.

    A sum goes over the views that both samples have. With `scaled`, each sample is scaled by m over the number of its
    views, so that a missing view does not shorten it. In products, a missing view is replaced in the feature space of
    its kernel by the weighted mean of the reference samples that have it.

    Parameters
    ----------
    kernels : dict of Kernel
        Kernel of each view.
    X : Views
        Reference samples.
    combine : {"sum", "product"}, Polynomial, or list of (views, weight)
        How the kernels of the views are combined. A list is a weighted sum of products of views.
    means : dict, optional
        Mean kernel values by view, from another kernel on the same reference samples.
    weights : array of shape (n_samples,), optional
        Weights of the reference samples in the means. Default: ones.
    scaled : bool, default=True
        Whether to scale samples with missing views in sums.
    """

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        X: Views,
        combine: Any,
        means: dict[str, tuple[np.ndarray, float]] | None = None,
        *,
        weights: np.ndarray | None = None,
        scaled: bool = True,
    ):
        self.kernels, self.X, self.combine = dict(kernels), X, combine
        self.weights = np.ones(len(X)) if weights is None else weights
        self.terms = _terms(combine, tuple(X.names))
        self.scaled = scaled
        self.adds = isinstance(combine, str) and combine == "sum"  # sums need no value for a missing view
        self.means = {} if means is None else means  # for products: of each view that a sample lacks
        if not self.adds and X.mask is not None:
            for name in X.names:
                if name not in self.means and not X.present(name).all():
                    self.means[name] = self._mean(name)

    def _mean(self, name: str) -> tuple[np.ndarray, float]:
        """Return the mean of k(x, r) over the samples r that have the view, for each reference sample x, and its mean.

        A reference sample x without the view has the mean value itself.
        """
        present = np.flatnonzero(self.X.present(name))
        block = _blocks.take(self.X.block(name), present)
        fill = self.kernels[name]._against(block, np.float64)
        means, share = np.zeros(len(self.X)), self._shares(name)
        for start in range(0, len(present), 256):
            some = present[start : start + 256]
            rows = fill(_blocks.take(self.X.block(name), some), np.empty((len(some), len(present))))
            means[some] = rows @ share
        grand = float(means[present] @ share)  # the squared norm of the mean in feature space
        means[~self.X.present(name)] = grand
        return means, grand

    def _shares(self, name: str) -> np.ndarray:
        """Return the weights of the reference samples that have a view, scaled to sum 1."""
        own = self.weights[self.X.present(name)]
        return own / own.sum()

    # -- rows
    def against(self, columns: np.ndarray, dtype: Any) -> Fill:
        """Return a function (X, out) that writes to `out` K between new samples and the reference samples `columns`."""
        parts = {name: self._view_against(name, columns, dtype) for name in self.X.names}
        scales = view_scales(self.X[columns]) if self.adds and self.scaled and self.X.mask is not None else None

        def fill(X: Views, out: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):
                return combined(X, out)

        def combined(X: Views, out: np.ndarray) -> np.ndarray:
            first = True
            for weight, names in self.terms:  # out = Σ_t weight_t Π_(views of t) k_v; the first term uses `out` itself
                target = out if first else np.empty_like(out)
                for k, name in enumerate(names):
                    if k == 0:
                        parts[name](X, target)
                    else:
                        target *= parts[name](X, np.empty_like(out))
                if weight != 1:
                    target *= weight
                if not first:
                    out += target
                first = False
            if scales is not None:  # of the reference samples; new ones follow
                out *= scales
            if self.adds and self.scaled and X.mask is not None:
                out *= view_scales(X)[:, None]
            if isinstance(self.combine, Polynomial):
                out += self.combine.constant
                out[...] = integer_power(out, int(self.combine.degree))
            if not self.adds:
                check_overflow(f"The kernel of all views with combine={self.combine!r}", out)
            return out

        return fill

    def _view_against(self, name: str, columns: np.ndarray, dtype: Any) -> Fill:
        """Return the same function for one view; it writes 0, or in products means, where the view is missing."""
        kernel, block = self.kernels[name], self.X.block(name)
        present = self.X.present(name)[columns]  # of the reference samples
        known = columns[present]
        inner = kernel._against(_blocks.take(block, known), dtype) if len(known) else None
        needs_means = not (self.adds or present.all())
        everyone = np.flatnonzero(self.X.present(name)) if needs_means else None
        to_all = None if everyone is None else kernel._against(_blocks.take(block, everyone), np.float64)

        def fill(X: Views, out: np.ndarray) -> np.ndarray:
            present_new = X.present(name)
            with _blocks.naming(name):
                if inner is not None and present.all() and present_new.all():
                    return inner(X.block(name), out)
                out[...] = 0
                rows = np.flatnonzero(present_new)
                own = _blocks.take(X.block(name), rows) if len(rows) else None
                if len(rows) and inner is not None:
                    values = inner(own, np.empty((len(rows), len(known)), dtype=out.dtype))
                    out[np.ix_(rows, np.flatnonzero(present))] = values
            if self.adds:
                return out
            if name not in self.means:  # the view is missing in a new sample, but in no reference sample
                self.means[name] = self._mean(name)
            means, grand = self.means[name]
            if len(rows) and to_all is not None and everyone is not None:
                mean_rows = to_all(own, np.empty((len(rows), len(everyone)))) @ self._shares(name)  # <φ(x), mean>
                out[np.ix_(rows, np.flatnonzero(~present))] = mean_rows[:, None]
            # <mean, φ(z)>, or <mean, mean> where z lacks the view too
            out[~present_new] = np.where(present, means[columns], grand)
            return out

        return fill

    def cross(self, X: Views, columns: np.ndarray | None = None) -> np.ndarray:
        """Return K between new samples and reference samples (all by default) in double precision."""
        columns = np.arange(len(self.X)) if columns is None else columns
        return self.against(columns, np.float64)(X, np.empty((len(X), len(columns))))

    def diagonal(self) -> np.ndarray:
        """Return K(x, x) of the reference samples."""
        own = {}
        for name in self.X.names:
            values, rows = np.zeros(len(self.X)), np.flatnonzero(self.X.present(name))
            with _blocks.naming(name):
                values[rows] = to_numpy(self.kernels[name].diag(_blocks.take(self.X.block(name), rows)))
                check_overflow(repr(self.kernels[name]), values)
            own[name] = values
            if name in self.means:
                values[~self.X.present(name)] = self.means[name][1]  # <mean, mean>
        total = sum(weight * np.prod([own[name] for name in names], axis=0) for weight, names in self.terms)
        if self.adds and self.scaled and self.X.mask is not None:
            total = total * view_scales(self.X) ** 2  # once for each argument of K(x, x)
        if isinstance(self.combine, Polynomial):
            total = integer_power(total + self.combine.constant, int(self.combine.degree))
        return np.asarray(total)


def view_scales(X: Views) -> np.ndarray:
    """Return the number of views divided by the number of views that each sample has."""
    return len(X.names) / np.maximum(presence(X).sum(axis=1), 1)


def _terms(combine: Any, names: Sequence[str]) -> list[tuple[float, tuple[str, ...]]]:
    """Return `combine` as a sum of products: the weight and the views of each product."""
    if isinstance(combine, Polynomial):
        combine._check()
        return [(1.0, (name,)) for name in names]
    if isinstance(combine, str) and combine in ("sum", "product"):
        return [(1.0, (name,)) for name in names] if combine == "sum" else [(1.0, tuple(names))]
    if isinstance(combine, str) or not isinstance(combine, Sequence) or not combine:
        raise ValueError(
            "`combine` must be 'sum', 'product', a Polynomial, or a list of views with weights such as "
            f"[('audio', 1.0), (('audio', 'video'), 0.5)]; got {combine!r}."
        )
    return [_read_term(term, names) for term in combine]


def _read_term(term: Any, names: Sequence[str]) -> tuple[float, tuple[str, ...]]:
    """Return the weight and the views of one entry of `combine`."""
    try:
        views, weight = term
        # a name alone is a product of one view
        product, weight = (views,) if isinstance(views, str) else tuple(views), float(weight)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"An entry of `combine` must be views and a weight, such as (('a', 'b'), 0.5); got {term!r}."
        ) from error
    unknown = [name for name in product if name not in names]
    if unknown or not product:
        raise ValueError(
            f"`combine` names {_blocks.quoted(unknown or ['no view'])}; the views are {_blocks.quoted(names)}."
        )
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(
            f"Weights in `combine` must be positive, so that the kernel is positive semi-definite; got {weight!r} for "
            f"{product}."
        )
    return weight, product
