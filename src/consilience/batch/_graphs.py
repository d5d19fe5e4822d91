"""Graphs over the samples of each view: their Laplacians, and the smoothness of functions of features along them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import check_on_host, in_single, is_device_array, like, namespace, take_rows, to_numpy
from ..kernels.graphs import WeightLaplacian, kernel_neighbors, nearest_neighbors, weighted_laplacian
from ..solvers.certificates import Solution
from ..solvers.coregularized import Penalties
from ..solvers.design import Design, FeatureDesign, view_columns
from ..solvers.linalg import eigvalsh, largest_entry
from ..views import _blocks
from ..views._reading import checked_sparse
from ._fit import TrainingData, raise_if_indefinite
from ._terms import terms_of


def add_graphs(estimator: Any, data: TrainingData, design: Design, penalties: Penalties) -> None:
    """Add the Laplacian of each view's graph to a design, or over features Φ'LΦ."""
    for v, (name, term) in enumerate(zip(data.X.names, terms_of(estimator), strict=True)):
        graph = _graph_of(estimator, term.view)
        with _blocks.naming(name):
            if isinstance(design, FeatureDesign):
                smoothness = _smoothness(graph, data, design, name, v)
                values = eigvalsh(to_numpy(smoothness))
                if values[0] < -1e-8 * max(values[-1], penalties.alpha / penalties.graph):
                    raise_if_indefinite(estimator, Solution(v, None, 0, "indefinite"))
                design.smoothness.append(smoothness)
            else:
                design.laplacians.append(_laplacian(graph, data, name, design.rows[v], design.grams[v]))


def _graph_of(estimator: Any, name: str) -> Any:
    graph = estimator.graph
    if isinstance(graph, Mapping):
        unknown = [key for key in graph if key not in estimator.view_names_in_]
        if unknown:
            raise ValueError(
                f"`graph` names {_blocks.quoted(unknown)}, which is not a view. The views are "
                f"{_blocks.quoted(estimator.view_names_in_)}."
            )
        if name not in graph:
            raise ValueError(
                f"View '{name}': `graph` has no entry for it, only for {_blocks.quoted(graph)}. Give one to every view."
            )
        graph = graph[name]
    if isinstance(graph, str) and graph not in ("kernel", "kernel_normalized", "knn"):
        raise ValueError(f"`graph` is 'kernel', 'kernel_normalized', 'knn', a callable or a Laplacian; got {graph!r}.")
    return graph


def _laplacian(graph: Any, data: TrainingData, name: str, here: np.ndarray, K: np.ndarray) -> Any:
    """Return the Laplacian of one view over the rows that have it."""
    _check_device(graph, K)
    if is_device_array(K):
        return _device_laplacian(graph, data.s[here], K)
    if not isinstance(graph, str):
        return _given_laplacian(graph, data, name, here).astype(K.dtype, copy=False)
    if graph == "knn":
        return weighted_laplacian(kernel_neighbors(K), np.ones(len(here)), normalized=False).astype(K.dtype)
    if K.min() < -len(K) * np.finfo(K.dtype).eps * np.abs(K).max():
        raise _negative(graph, K.min())
    W = K if K.min() >= 0 else np.maximum(K, 0)
    return WeightLaplacian(W, data.s[here].astype(K.dtype), normalized=graph == "kernel_normalized")


def _check_device(graph: Any, x: Any) -> None:
    """Refuse graphs that are made on the CPU where the samples are on a device."""
    if is_device_array(x) and not (isinstance(graph, str) and graph != "knn"):
        check_on_host("graph='knn'" if isinstance(graph, str) else "A graph that is given", x)


def _device_laplacian(graph: str, s: np.ndarray, K: Any) -> WeightLaplacian:
    """Return the Laplacian of a graph whose weights are a Gram matrix on a device."""
    xp = namespace(K)
    smallest, kind = float(xp.min(K)), np.finfo(np.float32 if in_single(K) else np.float64)
    if smallest < -K.shape[0] * float(kind.eps) * largest_entry(K):
        raise _negative(graph, smallest)
    W = K if smallest >= 0 else xp.maximum(K, xp.zeros_like(K))
    return WeightLaplacian(W, s, normalized=graph == "kernel_normalized")


def _negative(graph: str, smallest: float) -> ValueError:
    return ValueError(
        f"With graph='{graph}' the kernel's values are the weights of a graph and must be at least 0; the smallest is "
        f"{smallest:.4g}. Use a kernel without negative values, or graph='knn'."
    )


def _given_laplacian(graph: Any, data: TrainingData, name: str, here: np.ndarray) -> Any:
    """Return a Laplacian made by a callable on the rows that have the view, or cut from a matrix over all samples."""
    if callable(graph):
        L = _matrix(graph(data.X[here][name]))
        if L.shape != (len(here), len(here)):
            raise ValueError(f"`graph` must return one row and column per sample given, {len(here)}; got {L.shape}.")
    else:
        L = _matrix(graph)
        if L.shape != (data.n, data.n):
            raise ValueError(
                f"Its Laplacian must have a row and a column per sample given to fit, {data.n}; its shape is {L.shape}."
                " Where samples are divided, as in cross-validation, give a callable."
            )
        L = cut_graph(L, data.order[here])
    if not np.isfinite(L.data if sp.issparse(L) else L).all():
        raise ValueError("Its Laplacian has values that are NaN or infinite.")
    if abs(L - L.T).max() > 1e-8 * max(abs(L).max(), 1e-300):
        raise ValueError("Its Laplacian is not symmetric.")
    return L


def _matrix(L: Any) -> Any:
    """Return a Laplacian as a CSR or dense matrix."""
    if sp.issparse(L):
        return sp.csr_array(checked_sparse(L, "Its Laplacian"))
    return np.asarray(L, dtype=np.float64)


def cut_graph(L: Any, positions: np.ndarray) -> Any:
    """Return the Laplacian of the graph between some samples; a sample that leaves takes its edges with it."""
    sums = np.asarray(L.sum(axis=1)).ravel()
    plain = np.abs(sums).max() <= 1e-8 * abs(L).max()
    L = L[positions][:, positions] if sp.issparse(L) else L[np.ix_(positions, positions)]
    if plain:  # sums of rows stay 0
        lost = -np.asarray(L.sum(axis=1)).ravel()
        L = L + (sp.diags_array(lost) if sp.issparse(L) else np.diag(lost))
    return L


# -- over features: Φ'LΦ
def _smoothness(graph: Any, data: TrainingData, design: FeatureDesign, name: str, v: int) -> Any:
    if isinstance(graph, str) and graph != "knn":
        return _kernel_smoothness(design, v, normalized=graph == "kernel_normalized")
    if data.by_blocks:
        what = "graph='knn'" if isinstance(graph, str) else "A graph that is given"
        raise ValueError(
            f"{what} needs all samples in memory; these are read block by block. Use graph='kernel', or samples in "
            "memory."
        )
    here = np.flatnonzero(data.X.present(name))
    _check_device(graph, data.X.block(name))
    Phi = np.concatenate([to_numpy(own) for own, _ in _view_features(design, v)])
    if isinstance(graph, str):
        L = weighted_laplacian(nearest_neighbors(Phi), np.ones(len(here)), normalized=False)
    else:
        L = _given_laplacian(graph, data, name, here)
    return Phi.T @ (L @ Phi)


def _view_features(design: FeatureDesign, v: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield features and weights of the rows that have a view, block by block."""
    columns = view_columns(design.sizes)[v]
    for block in design.rows():
        here = np.flatnonzero(block.present[:, v])
        yield take_rows(block.Phi[:, columns], here), block.s[here]


def _kernel_smoothness(design: FeatureDesign, v: int, *, normalized: bool) -> Any:
    """Return Φ'LΦ for graph weights ΦΦ', which are never formed: the degrees are Φ(Φ's)."""
    total: Any = 0.0
    for Phi, s in _view_features(design, v):
        total = total + like(s, Phi) @ Phi
    diagonal: Any = 0.0
    crossed: Any = 0.0
    for Phi, s in _view_features(design, v):
        degrees = to_numpy(Phi @ total)
        if len(degrees) and degrees.min() < 0:
            raise _negative("kernel_normalized" if normalized else "kernel", degrees.min())
        if normalized:
            root = np.divide(s, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
            weights = np.where(degrees > 0, s, 0), root
        else:
            weights = s * degrees, s
        diagonal = diagonal + Phi.T @ (like(weights[0][:, None], Phi) * Phi)
        crossed = crossed + Phi.T @ (like(weights[1][:, None], Phi) * Phi)
    return diagonal - crossed @ crossed
