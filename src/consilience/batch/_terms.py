"""Several kernels per view: each is a view of its own for solvers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..kernels.by_view import Term, kernel_terms


def learns_weights(estimator: Any) -> bool:
    """Tell whether the parameter `view_weights` asks for learned weights."""
    given = estimator.view_weights
    return isinstance(given, str) and given in ("learned", "least_squares")


def terms_of(estimator: Any) -> list[Term]:
    """Return the kernels of the views used, one after the other: what is a view of its own for solvers."""
    return kernel_terms({name: estimator.kernels_[name] for name in estimator._used_views})


def names_of_terms(estimator: Any) -> tuple[str, ...]:
    """Return the names that the kernels of the views used have for solvers; none if there is not one for each view.

    Estimators without kernels have the names of their views.
    """
    views = estimator._used_views
    kernels = vars(estimator).get("kernels_")
    if kernels is None:
        return tuple(views)
    by_view = [own if isinstance(own, dict) else {"": own} for own in (kernels.get(view) for view in views)]
    if not all(own and all(isinstance(kernel, Kernel) for kernel in own.values()) for own in by_view):
        return ()
    return tuple(term.name for term in terms_of(estimator))


def has_several(estimator: Any) -> bool:
    """Tell whether a fitted estimator has views with several kernels."""
    return any(term.label is not None for term in terms_of(estimator))


def kernel_parts(estimator: Any) -> np.ndarray:
    """Return the part of each kernel in its view: one over the number of the view's kernels."""
    views = [term.view for term in terms_of(estimator)]
    return np.array([1 / views.count(view) for view in views])


def weights_of_views(terms: Sequence[Term], c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the views, and what kernels' functions are multiplied with to make those of their views.

    Kernels of a view have the weights c_k. The weight of the view is c = Σ|c_k|, negative if all c_k are, and its
    function f = Σ_k (c_k / c) f_k. So c f = Σ_k c_k f_k, and Σ|c| over the views is that over the kernels.
    """
    views = [term.view for term in terms]
    weights, factors = [], np.ones(len(terms))
    for view in dict.fromkeys(views):
        own = np.array([k for k, name in enumerate(views) if name == view])
        size = float(np.abs(c[own]).sum())
        weights.append(-size if size and (c[own] <= 0).all() else size)
        if len(own) > 1:
            factors[own] = c[own] / weights[-1] if size else 1 / len(own)
    return np.array(weights), factors
