"""Kernels: similarities of samples of one view, and the algebra that makes new ones of them."""

from .algebra import center, exp, normalize
from .base import Kernel
from .gram import alignment, is_psd, nearest_psd
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

__all__ = [
    "AdditiveChiSquared", "ChiSquared", "FromCallable", "Intersection", "Kernel", "Laplacian", "Linear", "Mahalanobis",
    "Polynomial", "Precomputed", "RBF",
    "alignment", "as_kernel", "center", "exp", "is_psd", "nearest_psd", "normalize",
]  # fmt: skip
