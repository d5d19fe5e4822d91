"""The base models of a consensus: one kernel of one view, and sums and products of kernels over views."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from .._backend import cast, in_single, is_device_array, like, map_in_threads, namespace, to_numpy
from .._progress import report_progress
from ..kernels import Kernel
from ..kernels._distances import squared_distances
from ..kernels.dictionary import WIDTHS, kernels_of_view
from ..kernels.graphs import kernel_neighbors, weighted_laplacian
from ..kernels.normalization import Normalized, Standardized
from ..kernels.scalar import RBF
from ..solvers.consensus import NESTED, BaseFit, Sets, fit_base, fit_features
from ..solvers.linalg import (
    add_to_diagonal,
    diagonal_of,
    eigh,
    is_positive,
    largest_entry,
    multiply,
    solve_general,
    without_rounding,
)
from ..views import _blocks
from ..views.container import Views
from ._fit import indefinite
from ._memory import EXACT_SAMPLES, row_parts

EXACT = EXACT_SAMPLES  # samples up to which Gram matrices are used; features for more
SPREADS = (1.0, 30.0)  # weights of a graph over labeled and unlabeled samples, in units of the kernel
THREADED = 2000  # samples up to which base models are fitted in threads
MOST_PAIRS = 6  # pairs of views with models of their own, where views are missing
FEWEST = 10  # samples that a model of several views must have


@dataclass(frozen=True)
class BaseModel:
    """One base model: f(x) = Σ_j k(x, x_j) a_j + intercept over its rows of the stored samples."""

    views: tuple[str, ...]
    label: str
    kernels: tuple[Kernel, ...]  # one per view
    factors: tuple[float, ...]
    combine: str = "sum"  # or "product"
    spread: float = 0.0  # weight of the graph over labeled and unlabeled samples
    penalty: float = np.inf
    rows: Any = None  # positions of x_j among the stored samples, labeled ones first
    coefficients: Any = None  # of the whole and of each fold, (rows, (1 + K) P); where the samples are
    intercept: Any = None

    def gram(self, X: Views, rows: np.ndarray, Y: Views | None = None, columns: np.ndarray | None = None) -> Any:
        """Return the kernel between rows of X and rows of Y, or of X and itself, in double precision."""
        total: Any = None
        for name, kernel, factor in zip(self.views, self.kernels, self.factors, strict=True):
            with _blocks.naming(name):
                left = _rows_to_compare(X, name, rows)
                right = None if Y is None or columns is None else _rows_to_compare(Y, name, columns)
                K = kernel._finite_gram(left, right)
                # a function of the user may return a NumPy array for any
                K = cast(K if is_device_array(K) else like(np.asarray(K), left), "float64")
            if factor != 1.0:
                K *= factor
            if total is None:
                total = K
            elif self.combine == "sum":
                total += K
            else:
                total *= K
        return total

    def outputs(self, X: Views, rows: np.ndarray, stored: Views, columns: slice) -> Any:
        """Return f(x) at rows of X for some columns of the coefficients: the outputs of the whole, or of folds."""
        coefficients, intercept = self.coefficients[:, columns], self.intercept[columns]
        parts = [rows[some] for some in row_parts(len(rows), len(self.rows))]
        values = [multiply(self.gram(X, part, stored, self.rows), coefficients) for part in parts]
        values = values or [like(np.zeros((0, len(intercept))), coefficients)]
        return namespace(*values).concat(values, axis=0) + like(intercept, values[0])


def _rows_to_compare(X: Views, name: str, rows: np.ndarray) -> Any:
    """Return rows of a view; those on a device in double precision, because its libraries do not mix types."""
    block = _blocks.take(X.block(name), rows)
    return cast(block, "float64") if is_device_array(block) and in_single(block) else block


def array_of(X: Views) -> Any:
    """Return an array of the library and the device where the views are; None for NumPy, sparse matrices and objects.

    Views of several libraries are refused, because base models compare and add kernels of several views.
    """
    blocks = [X.block(name) for name in X.names]
    arrays = [block.values if isinstance(block, _blocks.Gram) else block for block in blocks]
    arrays = [array for array in arrays if array is not None]
    return None if namespace(*arrays) is np else arrays[0]


@dataclass(frozen=True)
class BaseModels:
    """Base models, and what they predict at samples they have not seen."""

    models: list[BaseModel]
    held: np.ndarray  # (q, n, P): without the sample's unit; NaN where a model abstains
    by_fold: np.ndarray  # (q, n, P): without its fold
    inner: np.ndarray | None  # (K, q, n, P): without each fold and the sample's unit; None for many samples
    needs: np.ndarray  # (q, m): which views a model uses
    stored: Views  # samples that predictions are made from


# -- fitting
def fit_base_models(
    kernel: Any, X: Views, Y: np.ndarray, u: np.ndarray, sets: Sets, n_components: int | None
) -> BaseModels:
    """Fit all base models; the first len(Y) rows of X are labeled."""
    n = len(Y)
    landmarks = _landmarks(n, n_components)
    kernels = {name: kernels_of_view(kernel, name, _present(X, name)) for name in X.names}
    found: list[tuple[BaseModel, BaseFit, np.ndarray]] = []
    planned = [
        BaseModel((name,), label, (each,), (1.0,)) for name, own in kernels.items() for label, each in own.items()
    ]
    fitter = _Fitter(X, Y, u, sets, landmarks)
    # threads take time to start; large matrices give them to BLAS, and devices have their own
    with map_in_threads(200 < n <= THREADED and array_of(X) is None) as each:
        found += [one for own in each(fitter.fit, planned) for one in own]
        found += [one for own in each(fitter.fit, list(_joint_models(X, n, found, Y, u))) for one in own]
        if len(X) > n and landmarks is None and len(X) <= EXACT:
            found += [one for own in each(fitter.fit, list(_spread_models(X, found, Y, u))) for one in own]
    held, by_fold = (np.full((len(found), n, Y.shape[1]), np.nan) for _ in range(2))
    inner = np.full((sets.n_folds, *held.shape), np.nan) if n <= NESTED else None
    for k, (_, fit, rows) in enumerate(found):
        held[k, rows], by_fold[k, rows] = fit.held, fit.by_fold
        if inner is not None:
            inner[:, k, rows] = fit.inner
    needs = np.array([[name in model.views for name in X.names] for model, _, _ in found], dtype=bool)
    models, X = _stored([model for model, _, _ in found], X)
    return BaseModels(models, held, by_fold, inner, needs.reshape(len(found), len(X.names)), X)


def _present(X: Views, name: str) -> Any:
    present = X.present(name)
    return X.block(name) if present.all() else _blocks.take(X.block(name), np.flatnonzero(present))


def _landmarks(n: int, n_components: int | None) -> np.ndarray | None:
    """Return positions of landmarks, evenly spaced among the labeled samples; None if all samples are used."""
    return None if n_components is None else np.unique(np.linspace(0, n - 1, min(n_components, n)).astype(int))


class _Fitter:
    """Fits models to one set of samples."""

    def __init__(self, X: Views, Y: np.ndarray, u: np.ndarray, sets: Sets, landmarks: np.ndarray | None):
        self.X, self.Y, self.u, self.sets, self.landmarks = X, Y, u, sets, landmarks
        self.count = 0
        self.distances: dict[tuple[str, bytes, bytes], Any] = {}

    def fit(self, model: BaseModel) -> list[tuple[BaseModel, BaseFit, np.ndarray]]:
        """Return the fitted model, its fit and its labeled rows; nothing if there is nothing to learn from."""
        self.count += 1
        report_progress(self.count, None, unit="base model")
        n = len(self.Y)
        there = np.all([self.X.present(name) for name in model.views], axis=0)
        rows = np.flatnonzero(there[:n])
        Y, u, sets = self.Y[rows], self.u[rows], self.sets.of(rows)
        if len(rows) < 2 or (sets.units is not None and np.ptp(sets.units) == 0):  # none can be held out
            return []
        fit: BaseFit | None
        if self.landmarks is not None:
            every, root, fit = self._features(model, rows, Y, u, sets)
        else:
            every = np.flatnonzero(there) if model.spread else rows
            K = self._gram(model, every)
            K = _checked_positive(model, K, self.X)
            spread = spread_map(K, len(rows), model.spread) if model.spread else None
            own = K if spread is None else symmetric(multiply(K[: len(rows), :], spread))
            root, fit = spread, fit_base(own, Y, u, sets)
        if fit is None or not np.isfinite(fit.held).all():
            return []
        coefficients = fit.coefficients if root is None else multiply(root, fit.coefficients)
        fitted = replace(model, penalty=fit.penalty, rows=every, coefficients=coefficients, intercept=fit.intercept)
        return [(fitted, fit, rows)]

    def _gram(self, model: BaseModel, rows: np.ndarray) -> Any:
        """Return the kernel between rows; Gaussian kernels of one view share the distances of all samples."""
        kernels = model.kernels
        shared = all(isinstance(kernel, Standardized) and isinstance(kernel.kernel, RBF) for kernel in kernels)
        if (
            not shared
            or len(rows) < len(self.X)
            or len(rows) > THREADED
            or (len(kernels) > 1 and model.combine == "sum")
        ):
            return model.gram(self.X, rows)
        exponent: Any = 0.0
        for name, kernel in zip(model.views, kernels, strict=True):
            exponent -= float(kernel.kernel.gamma) * self._distances(name, kernel)
        return namespace(exponent).exp(exponent) if is_device_array(exponent) else np.exp(exponent, out=exponent)

    def _distances(self, name: str, kernel: Any) -> Any:
        """Return squared distances between standardized samples of a view; threads may compute them twice."""
        key = name, np.asarray(kernel.shift).tobytes(), np.asarray(kernel.scale).tobytes()
        if key not in self.distances:
            self.distances[key] = squared_distances(kernel._standardized(self.X.block(name)), None)
        return self.distances[key]

    def _features(
        self, model: BaseModel, rows: np.ndarray, Y: np.ndarray, u: np.ndarray, sets: Sets
    ) -> tuple[np.ndarray, Any, BaseFit | None]:
        """Return landmarks, W^(-½) and the fit over K(x, landmarks) W^(-½), where W is the kernel between landmarks."""
        assert self.landmarks is not None
        landmarks = np.intersect1d(self.landmarks, rows)
        landmarks = landmarks if len(landmarks) else rows[: min(len(rows), len(self.landmarks))]
        K = model.gram(self.X, landmarks)
        K = _checked_positive(model, K, self.X)
        values, vectors = eigh(K, driver="evd")
        values = to_numpy(values)
        kept = values > 1e-10 * max(float(values[-1]), 1e-300)
        first = int(np.argmax(kept)) if kept.any() else len(values)  # the values ascend
        root = vectors[:, first:] / like(np.sqrt(values[first:]), K)
        parts = [rows[a : a + 4096] for a in range(0, len(rows), 4096)]
        features = [multiply(model.gram(self.X, part, self.X, landmarks), root) for part in parts]
        return landmarks, root, fit_features(namespace(*features).concat(features, axis=0), Y, u, sets)


def _checked_positive(model: BaseModel, K: Any, X: Views) -> Any:
    """Refuse kernels from outside that are not positive semi-definite; remove rounding errors of single precision."""
    given = [pair for pair in zip(model.views, model.kernels, strict=True) if pair[1].may_be_indefinite]
    single = any(_returns_single(kernel, X, name) for name, kernel in given)
    if single:
        K = cast(without_rounding(cast(K, "float32")), "float64")
    if len(model.views) == 1 and given:
        xp = namespace(K)
        if not bool(xp.all(xp.abs(K - K.T) <= 1e-4 * (largest_entry(K) + xp.abs(K.T)))):
            raise ValueError(f"View '{model.views[0]}': its kernel matrix is not symmetric. Give (K + K') / 2.")
        if not is_positive(K, single=single):
            raise indefinite(model.views[0])
    return K


def _returns_single(kernel: Kernel, X: Views, name: str) -> bool:
    """Tell whether the values of a kernel are in single precision, by the first sample."""
    first = _blocks.take(X.block(name), np.flatnonzero(X.present(name))[:1])
    return bool(to_numpy(kernel._finite_gram(first, None)).dtype == np.float32)


def symmetric(K: Any) -> Any:
    """Return the symmetric part of a matrix, without what rounding added."""
    return (K + K.T) / 2


# -- models of several views
def _joint_models(
    X: Views, n: int, found: Sequence[tuple[BaseModel, BaseFit, np.ndarray]], Y: np.ndarray, u: np.ndarray
) -> Iterator[BaseModel]:
    """Yield sums and products over all views, and over pairs of views where many samples lack others."""
    ranked = _ranked(found, Y, u)
    names = [name for name in X.names if name in ranked]
    if len(names) < 2:
        return
    pairs = list(combinations(names, 2)) if len(names) > 2 else []
    incomplete = any(not X.present(name)[:n].all() for name in names)
    chosen = [tuple(names)] + (pairs if incomplete and len(pairs) <= MOST_PAIRS else [])
    for views in chosen:
        if np.all([X.present(name)[:n] for name in views], axis=0).sum() < FEWEST:
            continue
        what = "all views" if len(views) == len(names) else " and ".join(views)
        best = [ranked[name][0] for name in views]
        first = [next(model for model, _, _ in found if model.views == (name,)) for name in views]
        smooth = [next(filter(_is_bounded, ranked[name]), ranked[name][0]) for name in views]
        yield _sum_model(f"sum of {what}, best kernels", best, X, n)
        if [model.label for model in first] != [model.label for model in best]:
            yield _sum_model(f"sum of {what}", first, X, n)
        gaussians = [model for name in views for model in _gaussians(name, found)]
        if len(gaussians) < len(views):
            yield _product_model(f"product of {what}", smooth, [1.0] * len(views))
            continue
        # with exponents in proportion to the views' widths, a product of Gaussians is one Gaussian of all columns
        widths = [1.0 / float(model.kernels[0].kernel.gamma) for model in gaussians]
        for label, exponent in WIDTHS.items():
            powers = [exponent * own / sum(widths) for own in widths]
            yield _product_model(f"{label} of {what}", gaussians, powers)


def _is_bounded(model: BaseModel) -> bool:
    """Tell whether the values of a kernel are at most 1, so that products do not explode."""
    return model.kernels[0]._bounded or isinstance(model.kernels[0], Normalized)


def _ranked(
    found: Sequence[tuple[BaseModel, BaseFit, np.ndarray]], Y: np.ndarray, u: np.ndarray
) -> Mapping[str, list[BaseModel]]:
    """Return the models of each view, those with the smallest held-out error first."""
    errors: dict[str, list[tuple[float, int]]] = {}
    for k, (model, fit, rows) in enumerate(found):
        error = float(np.sum(u[rows, None] * (Y[rows] - fit.held) ** 2))
        errors.setdefault(model.views[0], []).append((error, k))
    return {name: [found[k][0] for _, k in sorted(pairs)] for name, pairs in errors.items()}


def _sum_model(label: str, parts: Sequence[BaseModel], X: Views, n: int) -> BaseModel:
    """Return a sum of kernels of equal variance."""
    factors = []
    for part in parts:
        rows = np.flatnonzero(X.present(part.views[0])[:n])[:500]  # enough for a variance
        K = part.gram(X, rows)
        factors.append(1.0 / max(float(diagonal_of(K).mean()) - float(namespace(K).mean(K)), 1e-300))
    views = tuple(part.views[0] for part in parts)
    return BaseModel(views, label, tuple(part.kernels[0] for part in parts), tuple(factors))


def _product_model(label: str, parts: Sequence[BaseModel], powers: Sequence[float]) -> BaseModel:
    """Return a product of kernels, Gaussian ones raised to powers."""
    kernels = tuple(_raised(part.kernels[0], power) for part, power in zip(parts, powers, strict=True))
    return BaseModel(tuple(part.views[0] for part in parts), label, kernels, (1.0,) * len(parts), "product")


def _raised(kernel: Kernel, power: float) -> Kernel:
    """Return a power of a Gaussian kernel; other kernels as they are, because fractional powers may be indefinite."""
    if isinstance(kernel, Standardized):
        return Standardized(_raised(kernel.kernel, power), kernel.shift, kernel.scale, kernel.limits)
    return RBF(power * float(kernel.gamma)) if isinstance(kernel, RBF) else kernel


def _gaussians(name: str, found: Sequence[tuple[BaseModel, BaseFit, np.ndarray]]) -> list[BaseModel]:
    """Return a view's model with a Gaussian kernel of middle width on standardized columns, if it has one."""
    return [
        model
        for model, _, _ in found
        if model.views == (name,) and model.label == "Gaussian" and isinstance(model.kernels[0], Standardized)
    ]


# -- unlabeled samples
def _spread_models(
    X: Views, found: Sequence[tuple[BaseModel, BaseFit, np.ndarray]], Y: np.ndarray, u: np.ndarray
) -> Iterator[BaseModel]:
    """Yield each view's best kernel, changed so that its functions vary little between neighbors.

    The neighbors are labeled and unlabeled samples: (K⁻¹ + μL)⁻¹ with the Laplacian L of their graph (Sindhwani, Niyogi
    and Belkin 2005). Stacking decides whether this helps.
    """
    for name, models in _ranked([each for each in found if len(each[0].views) == 1], Y, u).items():
        if X.present(name)[len(Y) :].any():
            for spread in SPREADS:
                yield replace(models[0], label=f"{models[0].label}, graph {spread:g}", spread=spread)


def spread_map(K: Any, n: int, spread: float) -> Any:
    """Return T (N, n) such that k(x, all) T are the values of the changed kernel between x and labeled samples."""
    N = K.shape[0]
    unit = max(float(diagonal_of(K).mean()), 1e-300)
    W = kernel_neighbors(K, min(10, N - 1))
    LK = multiply(weighted_laplacian(W, np.ones(N), normalized=True) * (spread / unit), K)
    changed = -solve_general(add_to_diagonal(LK + 0.0, 1.0), LK[:, :n])
    if is_device_array(changed):
        return changed + namespace(changed).eye(N, n, dtype=changed.dtype, device=changed.device)
    changed[np.arange(n), np.arange(n)] += 1.0
    return changed


# -- what is stored
def _stored(models: list[BaseModel], X: Views) -> tuple[list[BaseModel], Views]:
    """Return the models and the samples that predictions need, and no others."""
    used = np.unique(np.concatenate([model.rows for model in models])) if models else np.arange(1)
    if len(used) < len(X):
        models = [replace(model, rows=np.searchsorted(used, model.rows)) for model in models]
        X = X[used]
    return models, X
