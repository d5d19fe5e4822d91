"""Reading the parameters of vector-valued learning: the combination C, the kernel G between views, the operator M."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.between_views import between_views, checked_view_kernel, one_kernel
from ..kernels.by_view import kernels_by_view
from ..solvers.design import GramDesign, view_columns
from ..solvers.linalg import eigvalsh, is_positive
from ..solvers.vector_valued import NotPositiveOperator, WholeDesign
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views.conversion import to_float64
from ._fit import TrainingData, gram_design
from ._graphs import cut_graph

_LARGEST = 4e9  # bytes of a matrix over all views and samples


# -- C
def read_combination(estimator: Any, P: int) -> np.ndarray:
    """Return C_v of the views used, (m, P, Q)."""
    names, used, given = estimator.view_names_in_, estimator._used_views, estimator.combination
    m = len(names)
    if isinstance(given, str):
        return _named_combination(given, used, P)
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ValueError(
                f"`combination` names {_blocks.quoted(given)}; the views are {_blocks.quoted(names)}. Give each a "
                "number or a matrix."
            )
        parts = [given[name] for name in names]
    else:
        parts = list(np.asarray(given, dtype=np.float64)) if np.ndim(given) in (1, 3) else []
    if len(parts) != m:
        raise ValueError(
            "`combination` is 'average', 'separate', one number per view, or a matrix (n_targets, n_outputs) per view, "
            f"{m} in all; got {given!r}."
        )
    matrices = [_matrix_of_view(name, part, P) for name, part in zip(names, parts, strict=True)]
    if len({matrix.shape for matrix in matrices}) > 1:
        shapes = ", ".join(f"{matrix.shape} ({name})" for name, matrix in zip(names, matrices, strict=True))
        raise ValueError(f"The matrices of `combination` must have one shape for all views; they have {shapes}.")
    C = np.array(matrices)[[names.index(name) for name in used]]
    if not C.any(axis=(0, 2)).all():
        none = int(np.flatnonzero(~C.any(axis=(0, 2)))[0])
        raise ValueError(f"`combination` gives target {none} no view: every matrix has zeros in its row {none}.")
    return C


def _named_combination(given: str, used: Sequence[str], P: int) -> np.ndarray:
    m = len(used)
    if given == "average":
        return np.repeat(np.eye(P)[None] / m, m, axis=0)
    if given != "separate":
        raise ValueError(f"`combination` is 'average', 'separate', numbers or matrices; got {given!r}.")
    if P % m:
        raise ValueError(
            f"combination='separate' gives every view targets of its own, so that their number is a multiple of {m} "
            f"views; y has {P}. Repeat y for each view if all share one target."
        )
    Q = P // m
    return np.eye(P).reshape(P, m, Q).transpose(1, 0, 2)


def _matrix_of_view(name: str, part: Any, P: int) -> np.ndarray:
    try:
        matrix = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"View '{name}': `combination` must be numbers; got {part!r}.") from error
    matrix = matrix * np.eye(P) if matrix.ndim == 0 else matrix
    if matrix.ndim != 2 or len(matrix) != P or not matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(
            f"View '{name}': its part of `combination` must be a finite number or a matrix with a row per target, "
            f"{P} in all; got shape {matrix.shape}."
        )
    return matrix


# -- G
def make_vector_design(estimator: Any, data: TrainingData) -> tuple[Any, float]:
    """Return the design of all views with M in it, and the agreement where M is one of coupled views.

    Coupled views, which are much faster, need a diagonal kernel between views and an operator of pairs (V, L) that is
    diagonal over views or the same between any two.
    """
    kind, B = estimator._view_kernel, None
    if not isinstance(kind, str) or kind == "covariance":
        _check_size(data)
    if isinstance(kind, str):
        design = gram_design(replace(data, s=np.ones(len(data.order))))  # the weights are those of the loss alone
        if kind == "diagonal":
            coupled = read_coupled(estimator, data, design)
            if coupled is not None:
                return coupled
            _check_size(data)
            gram = sp.block_diag(design.grams).toarray()
        else:
            B = _covariance_root(design, covariance_weights(data))
            gram = B @ B.T
        rows = design.rows
    else:
        X = to_float64(data.X)
        rows = [np.flatnonzero(X.present(name)) for name in X.names]
        whole = between_views(kind, data.kernels, X, X)
        whole = whole.reshape(whole.shape[0] * whole.shape[1], -1)
        some = np.concatenate([v * len(X) + here for v, here in enumerate(rows)])
        gram = whole[np.ix_(some, some)]
        if np.abs(gram - gram.T).max() > 1e-8 * np.abs(gram).max() or not is_positive(gram):
            raise ValueError(
                "`view_kernel`: the matrix over all views and samples is not symmetric positive semi-definite, so the "
                "problem has no minimum. Give G_vw(x, z) = G_wv(z, x) with a positive semi-definite matrix."
            )
    multiply = read_operator(estimator, data, rows)
    return WholeDesign(gram, rows, data.l, len(data.order), multiply, B), 0.0


def _check_size(data: TrainingData) -> None:
    """Refuse a matrix over all views and samples that would not fit."""
    m, N = len(data.X.names), len(data.order)
    if (size := 8 * (m * N) ** 2) > _LARGEST:
        raise ValueError(
            f"This `view_kernel` or `operator` needs a matrix over {m} views and {N:,} samples, {size / 1e9:.3g} GB; "
            f"at most {_LARGEST / 1e9:.3g} GB are used. Give fewer samples, or view_kernel='diagonal' and an operator "
            "of agreement and graphs, or use CoRegularizedRidge with `n_components`."
        )


def covariance_weights(data: TrainingData) -> np.ndarray:
    """Return the weights of the training samples in the covariance between views; their sum is 1."""
    return np.asarray(data.s / data.s.sum())


def _covariance_root(design: GramDesign, weights: np.ndarray) -> np.ndarray:
    """Return B with G = BB': G_vw(x, z) = Σ_j weight_j k_v(x, x_j) k_w(x_j, z), over the samples that have both."""
    root = np.zeros((sum(design.sizes), len(weights)))
    for place, here, K in zip(view_columns(design.sizes), design.rows, design.grams, strict=True):
        root[place, here] = K * np.sqrt(weights[here])
    return root


def read_view_kernel(estimator: Any, data: TrainingData) -> TrainingData:
    """Store the kernel between the views used; return the data with one kernel of all views where it is a matrix."""
    kind = checked_view_kernel(estimator.view_kernel, estimator.view_names_in_)
    if isinstance(kind, np.ndarray):
        used = [estimator.view_names_in_.index(name) for name in data.X.names]
        kind = kind[np.ix_(used, used)]
        given = kernels_by_view(estimator.kernel, estimator.view_names_in_)
        estimator.kernels_ = one_kernel({name: given[name] for name in data.X.names}, data.X)
        data = replace(data, kernels=estimator.kernels_)
    estimator._view_kernel = kind
    return data


# -- M
def read_coupled(estimator: Any, data: TrainingData, design: GramDesign) -> tuple[GramDesign, float] | None:
    """Return the design with a Laplacian per view, and the agreement b of M = b (mI - 11') ⊗ I + Laplacians.

    None if the operator has another form.
    """
    if estimator.operator is None:
        return design, 0.0
    pairs = read_pairs(estimator, data)
    if pairs is None:
        return None
    names = estimator.view_names_in_
    used = [names.index(name) for name in data.X.names]
    plain = sum((V for V, L in pairs if L is None), np.zeros((len(names), len(names))))[np.ix_(used, used)]
    graphs = [(V[np.ix_(used, used)], L) for V, L in pairs if L is not None]
    others = plain[~np.eye(len(used), dtype=bool)]
    agreement = -float(others[0]) if len(others) else 0.0
    even = not len(others) or np.ptp(others) <= 1e-14 * abs(agreement)  # the same between any two views
    if agreement < 0 or not even or any((V - np.diag(V.diagonal())).any() for V, _ in graphs):
        return None
    weights = [V.diagonal().min() for V, _ in graphs] + [eigvalsh(plain)[0] + 1e-12 * np.abs(plain).max()]
    if min(weights) < 0 or not all(_is_positive_graph(L) for _, L in graphs):
        raise NotPositiveOperator("The operator is not positive semi-definite.")
    rest = plain.diagonal() - agreement * (len(used) - 1)  # what a view has beside the agreement
    rest = np.where(np.abs(rest) <= 1e-14 * np.abs(plain.diagonal()), 0.0, rest)
    if graphs or rest.any():
        for v, here in enumerate(design.rows):
            own = [V[v, v] * cut_graph(L, data.order[here]) for V, L in graphs if V[v, v]]
            design.laplacians.append(_total([rest[v] * sp.eye_array(len(here), format="csr"), *own]))
    return design, agreement


def _is_positive_graph(L: Any) -> bool:
    """Tell whether a symmetric matrix is positive semi-definite; a Laplacian is by its rows."""
    diagonal = L.diagonal()
    others = np.asarray(abs(L).sum(axis=1)).ravel() - np.abs(diagonal)
    if (diagonal >= others - 1e-10 * np.abs(diagonal).max(initial=0.0)).all():
        return True
    return is_positive(L.toarray() if sp.issparse(L) else L)


def _total(parts: Sequence[Any]) -> Any:
    """Return a sum of matrices, sparse if all of them are."""
    if all(sp.issparse(part) for part in parts):
        return sum(parts[1:], parts[0])
    return np.sum([part.toarray() if sp.issparse(part) else part for part in parts], axis=0)


def read_pairs(estimator: Any, data: TrainingData) -> list[tuple[np.ndarray, Any]] | None:
    """Return an operator Σ V ⊗ L as pairs of V (m, m) and L (n, n), or None for the identity; None for other forms."""
    given, names = estimator.operator, estimator.view_names_in_
    if not isinstance(given, list | tuple) or not all(
        isinstance(part, list | tuple) and len(part) == 2 for part in given
    ):
        return None
    pairs = []
    for V, L in given:
        if isinstance(V, str):
            if V not in names:
                raise ValueError(f"`operator` names the view '{V}'; the views are {_blocks.quoted(names)}.")
            V = np.diag([1.0 if name == V else 0.0 for name in names])
        matrix = _symmetric(V, len(names), "over views")
        pairs.append((matrix, None if L is None else _symmetric(L, data.n, "over samples")))
    return pairs


def _symmetric(given: Any, size: int, what: str) -> Any:
    """Return a matrix of the operator, sparse or dense."""
    A = sp.csr_array(checked_sparse(given, "`operator`")) if sp.issparse(given) else np.asarray(given, dtype=np.float64)
    if A.shape != (size, size):
        raise ValueError(
            f"`operator`: its matrix {what} must have {size} rows and columns; got shape {A.shape}. Samples are those "
            "given to fit, so that it cannot be divided as in cross-validation."
        )
    if not np.isfinite(A.data if sp.issparse(A) else A).all():
        raise ValueError(f"`operator`: its matrix {what} has values that are NaN or infinite.")
    if size and abs(A - A.T).max() > 1e-8 * max(abs(A).max(), 1e-300):
        raise ValueError(f"`operator`: its matrix {what} is not symmetric. Give (M + M') / 2 if that is meant.")
    return A


def read_operator(estimator: Any, data: TrainingData, rows: Sequence[np.ndarray]) -> Callable[[Any], Any] | None:
    """Return what multiplies functions at the rows of each view, (Σ n_v, k), by M; None without an operator."""
    given, names = estimator.operator, estimator.view_names_in_
    if given is None:
        return None
    m, n = len(names), data.n
    used = zip(data.X.names, rows, strict=True)
    places = np.concatenate([names.index(name) * n + data.order[here] for name, here in used])
    absent = np.ones(m * n, dtype=bool)
    absent[places] = False
    product = _product(estimator, data)

    def multiply(F: np.ndarray) -> np.ndarray:
        whole = np.zeros((m * n, F.shape[1]))
        whole[places] = F
        image = product(whole)
        if absent.any() and np.abs(image[absent]).max(initial=0.0) > 1e-10 * np.abs(image).max():
            i = int(np.flatnonzero(absent & (np.abs(image) > 1e-10 * np.abs(image).max()).any(axis=1))[0])
            raise ValueError(
                f"View '{names[i // n]}': it is missing in sample {i % n}, but `operator` is not 0 there. Give an "
                "operator whose rows and columns are 0 where views are missing."
            )
        return image[places]

    return multiply


def _product(estimator: Any, data: TrainingData) -> Callable[[np.ndarray], np.ndarray]:
    """Return what multiplies by M over all views and samples given to fit, view after view."""
    given, m, n = estimator.operator, len(estimator.view_names_in_), data.n
    pairs = read_pairs(estimator, data)
    if pairs is not None:
        return lambda F: _multiply_pairs(pairs, F.reshape(m, n, -1)).reshape(m * n, -1)
    if callable(given) and not hasattr(given, "matmat"):
        return lambda F: _checked_image(given(F.reshape(m, n, -1)), F, (m, n)).reshape(m * n, -1)
    if hasattr(given, "matmat"):  # SciPy's LinearOperator
        if given.shape != (m * n, m * n):
            raise ValueError(f"`operator` must have shape {(m * n, m * n)}, view after view; got {given.shape}.")
        return lambda F: _checked_image(np.asarray(given @ F), F, (m, n)).reshape(m * n, -1)
    M = _symmetric(given, m * n, "over views and samples, view after view,")
    return lambda F: np.asarray(M @ F)


def _multiply_pairs(pairs: Sequence[tuple[np.ndarray, Any]], F: np.ndarray) -> np.ndarray:
    total = np.zeros_like(F)
    for V, L in pairs:
        inner = np.stack([part if L is None else np.asarray(L @ part) for part in F])
        total += np.einsum("vw,wnk->vnk", V, inner)
    return total


def _checked_image(image: Any, F: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    image = np.asarray(image, dtype=np.float64)
    if image.size != F.size or not np.isfinite(image).all():
        raise ValueError(
            f"`operator` must return as many finite numbers as it is given, an array of shape (n_views, n_samples, k), "
            f"here {(*shape, F.shape[1])}; got {image.shape}."
        )
    return image
