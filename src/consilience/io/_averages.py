"""Averages of similar samples, and functions projected on the kernels at them."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..kernels import Kernel
from ..solvers.linalg import add_to_diagonal, cholesky_or_jitter, solve
from ._stored import row_keys

_PIECE = 2500  # samples that are grouped together
_JITTER = 1e-12  # times the mean of the diagonal of K_zz


def average_rows(block: Any, size: int, name: str) -> Any:
    """Return means of groups of at least `size` similar samples; no mean equals a sample."""
    labels = similar_groups(block, size)
    samples = set(row_keys(block))
    while True:
        n = int(labels.max()) + 1
        counts = np.bincount(labels, minlength=n)
        member = sp.csr_array((1 / counts[labels], (labels, np.arange(len(labels)))), shape=(n, len(labels)))
        z = member @ block
        equal = [j for j in range(n) if any(key in samples for key in row_keys(z[[j]]))]
        if not equal:
            return z
        if n == 1:
            raise ValueError(
                f"Not shared: the average of all samples of the view '{name}' equals a sample. Leave the view out."
            )
        labels = np.unique(_merged(labels, z, equal), return_inverse=True)[1]


def _merged(labels: np.ndarray, z: Any, equal: list[int]) -> np.ndarray:
    """Merge each of the groups `equal` with the nearest other one, every group once at most."""
    free, merged = np.ones(z.shape[0], dtype=bool), labels.copy()
    for j in equal:
        distance = _squared_distances(z, z[[j]])
        # a mean of the same samples would not help
        others = np.flatnonzero(free & (distance > 1e-12 * distance.max()))
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


def project_functions(kernel: Kernel, block: Any, A: np.ndarray, z: Any) -> np.ndarray:
    """Return B for which k(., z) @ B is nearest to k(., samples) @ A in the kernel's space: K_zz B = K_zx A."""
    K = np.asarray(to_numpy(kernel(z)), dtype=np.float64)
    target = np.asarray(to_numpy(kernel(z, block)), dtype=np.float64) @ A
    factor, _ = cholesky_or_jitter(add_to_diagonal(K, _JITTER * float(np.abs(K.diagonal()).mean())))
    return np.asarray(solve(factor, target))
