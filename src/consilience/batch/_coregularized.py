"""What the co-regularized learners share: their rows in order, their penalties, their forms over Grams and features."""

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .. import _blocks
from .._backend import few_threads, is_device_array, to_numpy
from .._base import BatchLearner, presence
from ..approx import Nystroem
from ..certificates import Certificate, Solution, warn_unless_converged
from ..graphs import WeightLaplacian, kernel_neighbors, nearest_neighbors, weighted_laplacian
from ..kernels import kernels_by_view, present_grams, reference_views, resolve_kernels, view_grams
from ..solvers.coupled import CoupledGrams, NotPositive, row_scale
from ..solvers.moments import CoupledFeatures, FeatureMoments, RowBlock
from ..solvers.weights import sphere_starts
from ..views import Views

_ROWS = 4096  # rows at a time where features or predictions are made
Work = Callable[[Any], tuple[list[np.ndarray], np.ndarray, Solution]]  # a form -> coefficients, c, what is proved


# -- rows
@dataclass
class Rows:
    """The training samples in the order that solvers take: labeled ones first."""

    X: Views
    n: int  # how many samples were given
    order: np.ndarray  # positions among them
    l: int
    s: np.ndarray  # weights of the rows
    scale: float  # the sum of the labeled rows' weights: l where they are 1

    def first(self, values: np.ndarray) -> np.ndarray:
        """Values of the samples given, for the labeled rows."""
        return values[self.order[: self.l]]


@dataclass
class Penalties:
    """γ_A, γ_B, γ_W."""

    alpha: float
    between: float
    within: float

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, numbers.Real) and np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"`alpha` must be a number above 0; got {self.alpha!r}.")
        for name in ("between", "within"):
            value = getattr(self, name)
            if not (isinstance(value, numbers.Real) and np.isfinite(value) and value >= 0):
                raise ValueError(f"`{name}` must be at least 0; got {value!r}.")

    @property
    def uses_unlabeled(self) -> bool:
        """Whether rows without labels take part."""
        return self.between > 0 or self.within > 0


class CoRegularized(BatchLearner):
    """The frame of `CoRegularizedRidge`, its classifier and `CoRegularizedSVC`."""

    alpha: float
    between: float
    within: float
    kernel: Any
    kernels: Mapping[str, Any] | None
    view_weights: Any
    weights_norm: float | None
    n_restarts: int
    graph: Any
    n_components: Any
    tol: float
    max_iter: int
    random_state: Any

    def _penalties(self) -> "Penalties":
        return Penalties(self.alpha, self.between, self.within)

    def _arrange(self, X: Views, labeled: np.ndarray, s: np.ndarray, *, with_unlabeled: bool) -> Rows:
        """Leave out rows that no term of the objective has, put the labeled ones first, resolve the kernels."""
        taken = s > 0
        if not (taken & labeled).any():
            raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
        chosen = kernels_by_view(self.kernel, self.kernels, self.view_names_in_)
        shown = [name for name in X.names if X.present(name)[taken].any()]
        resolved = resolve_kernels({name: chosen[name] for name in shown}, X[np.flatnonzero(taken)][shown])
        if not with_unlabeled:
            taken &= labeled
        order = np.concatenate([np.flatnonzero(taken & labeled), np.flatnonzero(taken & ~labeled)])
        l = int((taken & labeled).sum())
        X = X[order]
        self._used_views = tuple(name for name in X.names if X.present(name).any())
        X = X[list(self._used_views)]
        self.kernels_ = {name: resolved[name] for name in X.names}
        return Rows(X, len(s), order, l, s[order], float(s[order[:l]].sum()))

    # -- weights of the views
    def _given_weights(self) -> np.ndarray | None:
        """c of the views used, or None where it is to be learned."""
        names, given = self.view_names_in_, self.view_weights
        used = [names.index(name) for name in self._used_views]
        if isinstance(given, str):
            if given == "uniform":
                return np.full(len(used), 1 / len(used))
            if given == "learned":
                return None
            raise ValueError(f"`view_weights` is 'uniform', 'learned' or one number per view; got {given!r}.")
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise ValueError(
                    f"`view_weights` names {_blocks.quoted(given)}; the views are {_blocks.quoted(names)}. Give each "
                    "a weight, 0 to leave it out."
                )
            given = [given[name] for name in names]
        c = np.asarray(given, dtype=np.float64)
        if c.shape != (len(names),) or not np.isfinite(c).all():
            raise ValueError(f"`view_weights` must be one finite number per view, {len(names)} in all; got {given!r}.")
        if not c[used].any():
            raise ValueError("`view_weights` are zero for every view that the samples have.")
        return c[used]

    def _norm(self) -> float:
        m = len(self._used_views)
        norm = 1 / np.sqrt(m) if self.weights_norm is None else float(self.weights_norm)
        if not (np.isfinite(norm) and norm > 0):
            raise ValueError(f"`weights_norm` must be above 0 and finite; got {self.weights_norm!r}.")
        return float(norm)

    def _starts(self) -> list[np.ndarray]:
        if not (isinstance(self.n_restarts, numbers.Integral) and self.n_restarts >= 1):
            raise ValueError(f"`n_restarts` must be a whole number of at least 1; got {self.n_restarts!r}.")
        rng = check_random_state(self.random_state)
        return sphere_starts(len(self._used_views), self._norm(), int(self.n_restarts), rng)

    # -- forms of the problem
    def _exact_kernels(self) -> bool:
        return self.n_components is None

    def _with_unlabeled(self, penalties: Penalties) -> bool:
        return penalties.uses_unlabeled

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A fit that is refused or interrupted leaves the learner as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_parameters(self) -> None:
        """Refuse what cannot be."""
        self._penalties()
        for name, least in (("tol", 0), ("max_iter", 0)):
            value: Any = getattr(self, name)
            if not (isinstance(value, numbers.Real) and np.isfinite(float(value)) and float(value) >= least):
                raise ValueError(f"`{name}` must be a number of at least {least}; got {value!r}.")
        if isinstance(self.n_components, bool):
            raise ValueError(f"`n_components` must be a count, a fraction or None; got {self.n_components!r}.")

    def _solve(self, rows: Rows, penalties: Penalties, work: Work) -> Self:
        """Solve in the precision of the data; where rounding spoils that, in double precision."""
        with few_threads(len(rows.order)):
            for double in (False, True):
                form: Any
                if self._exact_kernels():
                    form = GramForm(self, rows, penalties, double=double)
                else:
                    form = FeatureForm(self, rows, penalties)
                try:
                    coefficients, c, solution = work(form)
                except np.linalg.LinAlgError as error:
                    if form.single:
                        continue
                    raise not_positive(self, error) from error
                if not form.single or solution.status != "inexact":
                    break
        self._keep(rows, coefficients, form)
        self.view_weights_ = c
        self.solution_ = solution
        warn_unless_converged(solution, type(self).__name__)
        return self

    def _keep(self, rows: Rows, coefficients: Sequence[np.ndarray], form: "GramForm | FeatureForm") -> None:
        """Remember what prediction needs."""
        for name in ("dual_coef_", "support_", "coef_", "X_fit_", "_features"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(form, FeatureForm):
            self._features = form.features
            self.coef_ = dict(zip(rows.X.names, coefficients, strict=True))
            return
        dual = np.zeros((len(rows.X.names), len(rows.order), coefficients[0].shape[1]))
        for v, (here, own) in enumerate(zip(form.rows, coefficients, strict=True)):
            dual[v, here] = own
        kept = np.flatnonzero(dual.any(axis=(0, 2)))
        kept = kept if len(kept) else np.arange(1)
        kept = kept[np.argsort(rows.order[kept])]
        self.dual_coef_ = np.ascontiguousarray(dual[:, kept])
        self.support_ = rows.order[kept]
        self.X_fit_ = reference_views(self.kernels_, rows.X[kept])

    def _view_outputs(self, X: Views) -> np.ndarray:
        parts = [self._outputs_of(X[start : start + _ROWS]) for start in range(0, len(X), _ROWS)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _outputs_of(self, X: Views) -> np.ndarray:
        if hasattr(self, "coef_"):
            features = self._features.transform(X)
            outputs = [_dense(features, name, len(W)) @ W for name, W in self.coef_.items()]
        else:
            outputs = []
            for name, dual in zip(self._used_views, self.dual_coef_, strict=True):
                outputs.append(to_numpy(view_grams({name: self.kernels_[name]}, X, self.X_fit_)[0]) @ dual)
        return np.stack(outputs, axis=1)

    @property
    def n_iter_(self) -> int:
        """The iterations of the solver; 1 where the solution is direct."""
        return max(int(self.solution_.n_iter), 1)

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            The objective, its gap to the optimum, and the largest violation of the optimality conditions.
        """
        return replace(super().certificate(), residual=self.solution_.residual)


def with_learned(solution: Solution, learned: Solution) -> Solution:
    """The solution for c, with what is proved of c: its gap is that to the best c, where one is known."""
    gap = None
    if learned.gap is not None and learned.objective is not None and solution.objective is not None:
        below = learned.objective - learned.gap
        gap = max(solution.objective - below, 0.0)
    status = learned.status if solution.converged else solution.status
    return Solution(solution.x, gap, learned.n_iter, status, objective=solution.objective, residual=solution.residual)


def not_positive(learner: CoRegularized, error: np.linalg.LinAlgError) -> ValueError:
    """The sentence for matrices that are not positive semi-definite, by the view where it is known."""
    if not isinstance(error, NotPositive):
        return ValueError(
            "The kernels of all views together are not positive semi-definite, or so near to singular that they seem "
            "so. Raise `alpha`; a precomputed kernel must be symmetric and positive semi-definite, "
            "`consilience.kernels.nearest_psd` makes one of a matrix."
        )
    name = learner._used_views[error.view]
    return ValueError(
        f"View '{name}': its kernel matrix or its graph's Laplacian is not positive semi-definite, so that the problem "
        "has no minimum. Use a positive semi-definite kernel; `consilience.kernels.nearest_psd` makes one of a matrix. "
        "`graph` takes a Laplacian, which `consilience.graphs.laplacian` makes of weights of at least 0."
    )


def _dense(X: Views, name: str, size: int) -> np.ndarray:
    """A view of dense features, zero where it is absent."""
    block = X.block(name)
    if block is None:
        return np.zeros((len(X), size))
    values = to_numpy(block)
    return values if X.present(name).all() else np.where(X.present(name)[:, None], values, 0.0)


# -- over Gram matrices
class GramForm:
    """Gram matrices and Laplacians of the rows present in each view."""

    def __init__(self, learner: CoRegularized, rows: Rows, penalties: Penalties, *, double: bool = False):
        self.rows = [np.flatnonzero(rows.X.present(name)) for name in rows.X.names]
        self.single = not double and all(_is_single(rows.X, name) for name in rows.X.names)
        X = rows.X if self.single else _in_double(rows.X)
        grams = [to_numpy(K) for K in present_grams(learner.kernels_, X)]
        self.grams = [np.ascontiguousarray(K, dtype=np.float32 if self.single else np.float64) for K in grams]
        K: Any
        for name, K in zip(rows.X.names, self.grams, strict=True):
            some = np.linspace(0, len(K) - 1, 32).astype(int)
            if np.abs(K[some] - K[:, some].T).max() > 1e-4 * np.abs(K[some]).max():
                raise ValueError(f"View '{name}': its kernel matrix is not symmetric.")
        self.l, self.s, self.scale = rows.l, rows.s, rows.scale
        self.penalties = penalties
        self.laplacians: list[Any] = []
        if penalties.within:
            for v, name in enumerate(rows.X.names):
                with _blocks.naming(name):
                    self.laplacians.append(_laplacian(learner, rows, name, self.rows[v], self.grams[v]))

    def system(self, alpha: float, between: float | None = None, within: float | None = None) -> CoupledGrams:
        """The penalties, factored; `alpha` is γ_A, over an eigenvalue of the output kernel where there is one."""
        between = self.penalties.between if between is None else between
        within = self.penalties.within if within is None else within
        return CoupledGrams(
            self.grams,
            self.l,
            ridge=alpha * self.scale,
            between=between * self.scale,
            laplacians=self.laplacians,
            within=within * self.scale,
            rows=self.rows,
            weights=self.s,
        )


def _is_single(X: Views, name: str) -> bool:
    block = X.block(name)
    if isinstance(block, _blocks.Gram):
        return block.values is not None and block.values.dtype == np.float32
    return str(getattr(block, "dtype", "")).endswith("float32")


def _in_double(X: Views) -> Views:
    """The same with single precision made double, but for kernels that are given and arrays of devices."""
    blocks = {}
    for name in X.names:
        block = X.block(name)
        ours = X.kind(name) in ("dense", "sparse") and not is_device_array(block)
        blocks[name] = block.astype(np.float64) if ours and _is_single(X, name) else block
    return Views._of(blocks, len(X), X.mask, X.feature_names)


def _graph_of(learner: CoRegularized, name: str) -> Any:
    graph = learner.graph
    if isinstance(graph, Mapping):
        unknown = [key for key in graph if key not in learner.view_names_in_]
        if unknown:
            raise ValueError(f"`graph` names {_blocks.quoted(unknown)}, which is no view.")
        if name not in graph:
            raise ValueError(f"`graph` has no entry for it, only for {_blocks.quoted(graph)}. Give one to every view.")
        graph = graph[name]
    if isinstance(graph, str) and graph not in ("kernel", "kernel_normalized", "knn"):
        raise ValueError(f"`graph` is 'kernel', 'kernel_normalized', 'knn', a callable or a Laplacian; got {graph!r}.")
    return graph


def _laplacian(learner: CoRegularized, rows: Rows, name: str, here: np.ndarray, K: np.ndarray) -> Any:
    """L of one view over the rows that have it."""
    graph = _graph_of(learner, name)
    if not isinstance(graph, str):
        return _given_laplacian(graph, rows, name, here).astype(K.dtype, copy=False)
    if graph == "knn":
        return weighted_laplacian(kernel_neighbors(K), np.ones(len(here)), normalized=False).astype(K.dtype)
    if K.min() < -len(K) * np.finfo(K.dtype).eps * np.abs(K).max():
        raise _negative(graph, K.min())
    W = K if K.min() >= 0 else np.maximum(K, 0)
    return WeightLaplacian(W, rows.s[here].astype(K.dtype), normalized=graph == "kernel_normalized")


def _negative(graph: str, smallest: float) -> ValueError:
    return ValueError(
        f"With graph='{graph}' the kernel's values are the weights of a graph and must be at least 0; the smallest is "
        f"{smallest:.4g}. Use a kernel without negative values, or graph='knn'."
    )


def _given_laplacian(graph: Any, rows: Rows, name: str, here: np.ndarray) -> Any:
    """A Laplacian by a callable on the rows that have the view, or a matrix over all samples."""
    if callable(graph):
        L = graph(rows.X[here][name])
        L = sp.csr_array(L) if sp.issparse(L) else np.asarray(L, dtype=np.float64)
        if L.shape != (len(here), len(here)):
            raise ValueError(f"`graph` must return one row and column per sample given, {len(here)}; got {L.shape}.")
    else:
        L = sp.csr_array(graph) if sp.issparse(graph) else np.asarray(graph, dtype=np.float64)
        positions = rows.order[here]
        if L.shape != (rows.n, rows.n):
            raise ValueError(
                f"Its Laplacian must have a row and a column per sample given to fit, {rows.n}; its shape is {L.shape}."
                " Where samples are divided, as in cross-validation, give a callable."
            )
        sums = np.asarray(L.sum(axis=1)).ravel()
        plain = np.abs(sums).max() <= 1e-8 * abs(L).max()
        L = L[positions][:, positions] if sp.issparse(L) else L[np.ix_(positions, positions)]
        if plain:  # a sample that leaves takes its edges along: sums of rows stay 0
            lost = -np.asarray(L.sum(axis=1)).ravel()
            L = L + (sp.diags_array(lost) if sp.issparse(L) else np.diag(lost))
    if not np.isfinite(L.data if sp.issparse(L) else L).all():
        raise ValueError("Its Laplacian has values that are NaN or infinite.")
    if abs(L - L.T).max() > 1e-8 * max(abs(L).max(), 1e-300):
        raise ValueError("Its Laplacian is not symmetric.")
    return L


# -- over finite features
class FeatureForm:
    """Nyström features of each view, made again block by block wherever sums over rows are needed."""

    single = False

    def __init__(self, learner: CoRegularized, rows: Rows, penalties: Penalties):
        self.learner, self.rows_in = learner, rows
        seed = check_random_state(learner.random_state).randint(2**31)
        self.features = Nystroem(kernels=learner.kernels_, n_components=learner.n_components, random_state=seed)
        self.features.fit_read(rows.X)
        self.names = rows.X.names
        self.sizes = [self.features.sizes[name] for name in self.names]
        self.l, self.s, self.scale = rows.l, rows.s, rows.scale
        self.between = penalties.between * rows.scale
        self.smooth: list[np.ndarray] | None = None
        if penalties.within:
            self.smooth = []
            for name in self.names:
                with _blocks.naming(name):
                    smooth = self._smoothness(name) * (penalties.within * rows.scale)
                values = np.linalg.eigvalsh(smooth)
                if values[0] < -1e-8 * max(values[-1], penalties.alpha * rows.scale):
                    raise not_positive(learner, NotPositive(self.names.index(name)))
                self.smooth.append(smooth)

    def blocks(self, Y: np.ndarray, u: np.ndarray) -> Callable[[], Iterator[RowBlock]]:
        """The rows, in blocks; Y and u are those of the labeled rows."""
        n = len(self.rows_in.order)

        def made() -> Iterator[RowBlock]:
            for start in range(0, n, _ROWS):
                stop = min(start + _ROWS, n)
                known = max(min(self.l, stop) - start, 0)
                weights, targets = np.zeros(stop - start), np.zeros((stop - start, Y.shape[1]))
                weights[:known], targets[:known] = u[start : start + known], Y[start : start + known]
                part = self.rows_in.X[start:stop]
                yield RowBlock(self._side_by_side(part), presence(part), self.s[start:stop], weights, targets)

        return made

    def _side_by_side(self, X: Views) -> np.ndarray:
        features = self.features.transform(X)
        parts = [_dense(features, name, size) for name, size in zip(self.names, self.sizes, strict=True)]
        return np.asarray(np.hstack(parts), dtype=np.float64)

    def moments(self, ridge: float, Y: np.ndarray, u: np.ndarray) -> FeatureMoments:
        """The normal equations; `ridge` is γ_A, over an eigenvalue of the output kernel where there is one."""
        return FeatureMoments(
            self.blocks(Y, u), self.sizes, ridge=ridge * self.scale, between=self.between, smooth=self.smooth
        )

    def system(self, ridge: float) -> CoupledFeatures:
        """The labeled kernel."""
        nothing, ones = np.zeros((self.l, 1)), np.ones(self.l)
        labeled = self.rows_in.X[: self.l]
        block = RowBlock(self._side_by_side(labeled), presence(labeled), self.s[: self.l], ones, nothing)
        return CoupledFeatures(self.moments(ridge, nothing, ones), block)

    def combined(self, W: np.ndarray, c: np.ndarray, labeled: np.ndarray) -> np.ndarray:
        """g at labeled rows."""
        X = self.rows_in.X[labeled]
        spread = np.repeat(c, self.sizes)
        return row_scale(presence(X), c)[:, None] * ((self._side_by_side(X) * spread) @ W)

    def split(self, W: np.ndarray) -> list[np.ndarray]:
        """The coefficients of each view."""
        ends = np.cumsum(self.sizes)
        return [W[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]

    # -- Φ'LΦ
    def _smoothness(self, name: str) -> np.ndarray:
        graph = _graph_of(self.learner, name)
        here = np.flatnonzero(self.rows_in.X.present(name))
        if isinstance(graph, str) and graph != "knn":
            return self._kernel_smoothness(name, here, normalized=graph == "kernel_normalized")
        Phi = np.concatenate(list(self._features_of(name, here)))
        if isinstance(graph, str):
            L = weighted_laplacian(nearest_neighbors(Phi), np.ones(len(here)), normalized=False)
        else:
            L = _given_laplacian(graph, self.rows_in, name, here)
        return Phi.T @ (L @ Phi)

    def _features_of(self, name: str, here: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, len(here), _ROWS):
            part = self.rows_in.X[here[start : start + _ROWS]][[name]]
            yield np.asarray(to_numpy(self.features.transform(part)[name]), dtype=np.float64)

    def _kernel_smoothness(self, name: str, here: np.ndarray, *, normalized: bool) -> np.ndarray:
        """Φ'LΦ for weights ΦΦ', never formed: the degrees are Φ(Φ's)."""
        s = self.s[here]
        total = np.sum([s[k * _ROWS : (k + 1) * _ROWS] @ Phi for k, Phi in enumerate(self._features_of(name, here))], 0)
        diagonal = np.zeros((len(total), len(total)))
        crossed = np.zeros_like(diagonal)
        for k, Phi in enumerate(self._features_of(name, here)):
            degrees, weights = Phi @ total, s[k * _ROWS : (k + 1) * _ROWS]
            if degrees.min() < 0:
                raise _negative("kernel_normalized" if normalized else "kernel", degrees.min())
            if normalized:
                root = np.divide(weights, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
                diagonal += Phi.T @ (np.where(degrees > 0, weights, 0)[:, None] * Phi)
                crossed += Phi.T @ (root[:, None] * Phi)
            else:
                diagonal += Phi.T @ ((weights * degrees)[:, None] * Phi)
                crossed += Phi.T @ (weights[:, None] * Phi)
        return diagonal - crossed @ crossed
