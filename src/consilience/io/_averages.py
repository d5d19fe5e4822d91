"""Averages of similar samples, and functions projected on the kernels at them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..kernels import Kernel, Linear, Mahalanobis
from ..kernels.algebra import OnColumns, Scaled, Sum
from ..kernels.normalization import Centered, Standardized
from ..solvers.linalg import add_to_diagonal, cholesky_or_jitter, multiply, solve
from ..views import _blocks
from ..views._blocks import Block
from ._stored import kernels_inside, row_keys

_PIECE = 2500  # samples that are grouped together
_JITTER = 1e-12  # times the mean of the diagonal of K_zz
_LITTLE = 1e-8  # of the squares of outputs: weight of the norm in the kernel's space
_MOST_CENTERS = 2000  # of a view: beyond, averages are of more samples


# -- what can be averaged
def check_view(name: str, kernel: Kernel, block: Block, least: int) -> None:
    """Refuse a view whose samples have no average, or are too few."""
    what, kind = f"Not shared: the view '{name}' holds", _blocks.kind(block)
    if kind == "gram" or kernel.reads_gram:
        raise ValueError(
            f"{what} a Gram matrix, and predictions need kernels with training samples. Give its data instead."
        )
    if kind == "objects":
        raise ValueError(
            f"{what} strings or other objects, which have no average. Turn them into numbers with PerView first."
        )
    if any(isinstance(part, Centered) for part in kernels_inside(kernel)):
        raise ValueError(
            f"Not shared: the kernel {kernel!r} of the view '{name}' keeps the training samples as its center. "
            "Subtract means of columns by PerView(StandardScaler()), and use the kernel without `center`."
        )
    if block.shape[0] < least:
        raise ValueError(f"{what} {block.shape[0]} training samples; an average takes at least {least}.")


def check_coefficients(what: str, A: np.ndarray, least: int) -> None:
    """Refuse functions of few samples, which would describe them."""
    used = np.count_nonzero(A, axis=0)
    if ((used > 0) & (used < least)).any():
        raise ValueError(
            f"Not shared: {what} is made of {used[(used > 0) & (used < least)][0]} training samples, fewer than "
            f"{least}, and would describe them. Fit with more samples for each output."
        )


def is_linear(kernel: Kernel) -> bool:
    """Tell whether k(x, z) is linear in z, so that a combination of kernels is the kernel at a combination."""
    if isinstance(kernel, (Sum, Scaled, OnColumns)):
        return all(map(is_linear, kernel._children()))
    return isinstance(kernel, (Linear, Mahalanobis))


def round_limits(kernel: Standardized) -> None:
    """Move the limits of columns outward to whole standard deviations: they are values of single samples."""
    if kernel.limits is None:
        return
    size = np.where(np.isfinite(kernel.scale), kernel.scale, 0.0)  # 0 for constant columns, which count as 0 anyway
    low, high = ((end - kernel.shift) / kernel.scale for end in kernel.limits)
    kernel.limits = np.stack([kernel.shift + size * np.floor(low), kernel.shift + size * np.ceil(high)])


# -- averages
def group_size(n: int, least: int) -> int:
    """Return how many of n samples an average takes at least."""
    return max(least, -(-n // _MOST_CENTERS))


def average_rows(block: Any, size: int, name: str) -> Any:
    """Return means of groups of at least `size` similar samples; no mean equals a sample."""
    z = average_views({name: block}, block, size)
    if z is None:
        raise ValueError(
            f"Not shared: the average of all samples of the view '{name}' equals a sample. Leave the view out."
        )
    return z[name]


def average_views(blocks: Mapping[str, Any], positions: Any, size: int) -> dict[str, Any] | None:
    """Return means of groups of at least `size` samples with similar positions, by view.

    No mean equals a sample. None is returned where even the mean of all samples does.
    """
    labels = similar_groups(positions, size)
    samples = {name: set(row_keys(block)) for name, block in blocks.items()}
    while True:
        n = int(labels.max()) + 1
        counts = np.bincount(labels, minlength=n)
        member = sp.csr_array((1 / counts[labels], (labels, np.arange(len(labels)))), shape=(n, len(labels)))
        z = {name: member @ block for name, block in blocks.items()}
        equal = {
            name: np.array([any(key in samples[name] for key in row_keys(own[[j]])) for j in range(n)])
            for name, own in z.items()
        }
        if not any(own.any() for own in equal.values()):
            return z
        if n == 1:
            return None
        labels = np.unique(_merged(labels, member @ positions, z, equal), return_inverse=True)[1]


def _merged(labels: np.ndarray, positions: Any, z: Mapping[str, Any], equal: Mapping[str, np.ndarray]) -> np.ndarray:
    """Merge each group whose mean equals a sample in some view with the nearest other one, every group once at most."""
    free, merged = np.ones(positions.shape[0], dtype=bool), labels.copy()
    for j in np.flatnonzero(np.any(list(equal.values()), axis=0)):
        distance, differs = _squared_distances(positions, positions[[j]]), free.copy()
        for name, own in z.items():
            if equal[name][j]:  # a mean of the same samples would not help
                apart = _squared_distances(own, own[[j]])
                differs &= apart > 1e-12 * apart.max()
        others = np.flatnonzero(differs)
        if free[j] and len(others):
            nearest = others[distance[others].argmin()]
            merged[labels == j] = nearest
            free[[j, nearest]] = False
    if free.all():  # all means are the same
        merged[labels == 1] = 0
    return merged


def similar_groups(block: Any, size: int) -> np.ndarray:
    """Divide samples into groups of `size` to 2 size - 1 similar ones (after Domingo-Ferrer and Mateo-Sanz 2002).

    Many samples are first divided in halves, the one far from a border sample and the one near to it, so that the
    matrix of all products stays small.
    """
    labels = np.empty(block.shape[0], dtype=np.int64)
    parts, n_groups = [np.arange(block.shape[0])], 0
    while parts:
        rows = parts.pop()
        if len(rows) > max(_PIECE, 4 * size):  # halves have room for groups
            far = rows[[_squared_distances(block[rows], _mean(block[rows])).argmax()]]
            order = rows[np.argsort(_squared_distances(block[rows], block[far]), kind="stable")]
            parts += [order[: len(rows) // 2], order[len(rows) // 2 :]]
        else:
            own = _grouped(block[rows], size)
            labels[rows] = n_groups + own
            n_groups += int(own.max()) + 1
    return labels


def _grouped(block: Any, size: int) -> np.ndarray:
    """Return the group of each sample: the one farthest from the mean of those left, and the nearest to it, and so on.

    All distances come from the products of samples, so that a group costs as many steps as there are samples.
    """
    block = block if sp.issparse(block) else block - _mean(block)  # products of distant samples would lose digits
    products = block @ block.T
    products = products.toarray() if sp.issparse(products) else products
    squares, labels, n_groups = products.diagonal(), np.full(block.shape[0], -1), 0
    left, sums = np.arange(len(labels)), products.sum(axis=1)  # sums: products with the sum of the samples left
    while len(left) >= 2 * size:
        far = left[(squares[left] - 2 * sums[left] / len(left)).argmax()]  # ‖x - mean‖² but for a constant
        order = np.argsort(squares[left] - 2 * products[far, left], kind="stable")
        group = left[order[:size]]
        labels[group] = n_groups
        n_groups += 1
        left, sums = left[np.sort(order[size:])], sums - products[:, group].sum(axis=1)
    labels[left] = n_groups
    return labels


def _mean(block: Any) -> np.ndarray:
    return np.asarray(block.mean(axis=0)).reshape(1, -1)


def _squared_distances(block: Any, point: Any) -> np.ndarray:
    """Return the squared distance of each row from one point."""
    if not sp.issparse(block):
        difference = block - point
        return np.einsum("ij,ij->i", difference, difference)
    point = point.toarray() if sp.issparse(point) else point
    squares = np.asarray(block.multiply(block).sum(axis=1)).reshape(-1)
    return squares - 2 * np.asarray(block @ point[0]).reshape(-1) + float(point[0] @ point[0])


# -- functions
def project_functions(kernel: Kernel, block: Any, A: np.ndarray, z: Any) -> np.ndarray:
    """Return B for which k(., z) @ B is nearest to k(., samples) @ A in the kernel's space: K_zz B = K_zx A."""
    K = np.asarray(to_numpy(kernel(z)), dtype=np.float64)
    target = np.asarray(to_numpy(kernel(z, block)), dtype=np.float64) @ A
    factor, _ = cholesky_or_jitter(add_to_diagonal(K, _JITTER * float(np.abs(K.diagonal()).mean())))
    return np.asarray(solve(factor, target))


def fit_functions(K_zz: np.ndarray, K_zx: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return B for which k(., z) @ B is nearest to the outputs at the samples x, with a small norm.

    It solves (K_zx K_xz + ε K_zz) B = K_zx outputs. Predictions for similar samples then change less than those of the
    nearest function in the kernel's space.
    """
    squares = multiply(K_zx, K_zx.T)
    K = squares + _LITTLE * float(np.trace(squares)) / max(float(np.trace(K_zz)), 1e-300) * K_zz
    factor, _ = cholesky_or_jitter(add_to_diagonal(K, _JITTER * float(np.abs(K.diagonal()).mean())))
    return np.asarray(solve(factor, multiply(K_zx, outputs)))
