"""Kernels: similarities of samples of one view, and the algebra that makes new ones of them."""

from .algebra import center, exp, normalize
from .base import Kernel
from .by_view import (
    cross_grams,
    kernels_by_view,
    polynomial,
    present_grams,
    product,
    reference_views,
    resolve_kernels,
    side_by_side,
    view_grams,
    weighted_sum,
)
from .gram import alignment, is_psd, nearest_psd
from .outputs import multi_task, output_graph
from .scalar import (
    RBF,
    AdditiveChiSquared,
    ChiSquared,
    FromCallable,
    Intersection,
    Laplacian,
    Linear,
    Mahalanobis,
    Polynomial,
    Precomputed,
    as_kernel,
)
from .structured import Spectrum, Subsequence, SubsetTree

__all__ = [
    "AdditiveChiSquared", "ChiSquared", "FromCallable", "Intersection", "Kernel", "Laplacian", "Linear", "Mahalanobis",
    "Polynomial", "Precomputed", "RBF", "Spectrum", "Subsequence", "SubsetTree",
    "alignment", "as_kernel", "center", "exp", "is_psd", "nearest_psd", "normalize",
    "multi_task", "output_graph",
    "cross_grams", "kernels_by_view", "polynomial", "present_grams", "product", "reference_views", "resolve_kernels",
    "side_by_side", "view_grams", "weighted_sum",
]  # fmt: skip
