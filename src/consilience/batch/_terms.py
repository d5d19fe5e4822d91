"""Several kernels per view: each is a view of its own for solvers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..kernels import Kernel
from ..kernels.by_view import Term, kernel_terms
from ..solvers.weights import sphere_starts


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


def weight_starts(estimator: Any) -> list[np.ndarray]:
    """Return the starting points of learned weights, the first with equal weights; all have the length asked for."""
    m, order = len(terms_of(estimator)), weights_order(estimator)
    radius = getattr(estimator, "weights_norm", None)
    radius = m ** (1 / order - 1) if radius is None else float(radius)
    return sphere_starts(m, radius, int(estimator.n_restarts), check_random_state(estimator.random_state), order)


def weights_order(estimator: Any) -> float:
    """Return the order of the norm of learned weights: that of the estimator, 2 for the published alternation."""
    if not hasattr(estimator, "weights_order"):
        return 2.0
    given, alternating = estimator.weights_order, getattr(estimator, "weights_solver", "exact") == "alternating"
    if alternating and given not in (None, 2):
        raise ValueError(
            "weights_solver='alternating' finds weights of a given Euclidean norm. Leave `weights_order` out, or use "
            "weights_solver='exact'."
        )
    return float(given) if given is not None else 2.0 if alternating else 3.0
