"""What the co-regularized learners share: their rows in order, their penalties, their forms over Grams and features."""

import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._backend import few_threads, to_numpy
from ..kernels.graphs import WeightLaplacian, kernel_neighbors, nearest_neighbors, weighted_laplacian
from ..solvers.certificates import Solution, warn_unless_converged
from ..solvers.coupled import CoupledGrams, NotPositive, row_scale
from ..solvers.moments import CoupledFeatures, FeatureMoments, RowBlock
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views.estimator import presence
from ._frame import ROWS, Features, Grams, KernelLearner, Rows

Work = Callable[[Any], tuple[list[np.ndarray], np.ndarray, Solution]]  # a form -> coefficients, c, what is proved


@dataclass
class Penalties:
    """γ_A, γ_B, γ_W."""

    alpha: float
    agreement_penalty: float
    graph_penalty: float

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, numbers.Real) and np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"`alpha` must be a number above 0; got {self.alpha!r}.")
        for name in ("agreement_penalty", "graph_penalty"):
            value = getattr(self, name)
            if not (isinstance(value, numbers.Real) and np.isfinite(value) and value >= 0):
                raise ValueError(f"`{name}` must be at least 0; got {value!r}.")

    @property
    def uses_unlabeled(self) -> bool:
        """Whether rows without labels take part."""
        return self.agreement_penalty > 0 or self.graph_penalty > 0


class CoRegularized(KernelLearner):
    """The frame of `CoRegularizedRidge`, its classifier and `CoRegularizedSVC`."""

    alpha: float
    agreement_penalty: float
    graph_penalty: float
    weights_norm: float | None
    graph: Any

    def _penalties(self) -> "Penalties":
        return Penalties(self.alpha, self.agreement_penalty, self.graph_penalty)

    # -- forms of the problem
    def _exact_kernels(self) -> bool:
        return self.n_components is None

    def _with_unlabeled(self, penalties: Penalties) -> bool:
        return penalties.uses_unlabeled

    def _check_parameters(self) -> None:
        """Refuse what cannot be."""
        self._penalties()
        self._check_numbers()

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
                if not form.single or solution.status not in ("inexact", "jitter"):
                    break
        self._keep(rows, coefficients, form)
        self.view_weights_ = c
        self.solution_ = solution
        warn_unless_converged(solution, type(self).__name__)
        return self


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
        "`graph` takes a Laplacian, which `consilience.kernels.graphs.laplacian` makes of weights of at least 0."
    )


# -- over Gram matrices
class GramForm(Grams):
    """Gram matrices and Laplacians of the rows present in each view."""

    def __init__(self, learner: CoRegularized, rows: Rows, penalties: Penalties, *, double: bool = False):
        super().__init__(learner, rows, double=double)
        self.l, self.s, self.scale = rows.l, rows.s, rows.scale
        self.penalties = penalties
        self.laplacians: list[Any] = []
        if penalties.graph_penalty:
            for v, name in enumerate(rows.X.names):
                with _blocks.naming(name):
                    self.laplacians.append(_laplacian(learner, rows, name, self.rows[v], self.grams[v]))

    def system(
        self, alpha: float, agreement_penalty: float | None = None, graph_penalty: float | None = None
    ) -> CoupledGrams:
        """The penalties, factored; `alpha` is γ_A, over an eigenvalue of the output kernel where there is one."""
        agreement_penalty = self.penalties.agreement_penalty if agreement_penalty is None else agreement_penalty
        graph_penalty = self.penalties.graph_penalty if graph_penalty is None else graph_penalty
        return CoupledGrams(
            self.grams,
            self.l,
            ridge=alpha * self.scale,
            agreement_penalty=agreement_penalty * self.scale,
            laplacians=self.laplacians,
            graph_penalty=graph_penalty * self.scale,
            rows=self.rows,
            weights=self.s,
        )


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


def _matrix(L: Any) -> Any:
    """Read a Laplacian as a CSR or dense matrix."""
    if sp.issparse(L):
        return sp.csr_array(checked_sparse(L, "Its Laplacian"))
    return np.asarray(L, dtype=np.float64)


def _given_laplacian(graph: Any, rows: Rows, name: str, here: np.ndarray) -> Any:
    """A Laplacian by a callable on the rows that have the view, or a matrix over all samples."""
    if callable(graph):
        L = _matrix(graph(rows.X[here][name]))
        if L.shape != (len(here), len(here)):
            raise ValueError(f"`graph` must return one row and column per sample given, {len(here)}; got {L.shape}.")
    else:
        L = _matrix(graph)
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
class FeatureForm(Features):
    """Nyström features, and the smoothness of functions of them along the views' graphs."""

    def __init__(self, learner: CoRegularized, rows: Rows, penalties: Penalties):
        super().__init__(learner, rows)
        self.learner = learner
        self.l, self.s, self.scale = rows.l, rows.s, rows.scale
        self.agreement_penalty = penalties.agreement_penalty * rows.scale
        self.smooth: list[np.ndarray] | None = None
        if penalties.graph_penalty:
            self.smooth = []
            for name in self.names:
                with _blocks.naming(name):
                    smooth = self._smoothness(name) * (penalties.graph_penalty * rows.scale)
                values = np.linalg.eigvalsh(smooth)
                if values[0] < -1e-8 * max(values[-1], penalties.alpha * rows.scale):
                    raise not_positive(learner, NotPositive(self.names.index(name)))
                self.smooth.append(smooth)

    def blocks(self, Y: np.ndarray, u: np.ndarray) -> Callable[[], Iterator[RowBlock]]:
        """The rows, in blocks; Y and u are those of the labeled rows."""
        n = len(self.rows_in.order)

        def made() -> Iterator[RowBlock]:
            for start in range(0, n, ROWS):
                stop = min(start + ROWS, n)
                known = max(min(self.l, stop) - start, 0)
                weights, targets = np.zeros(stop - start), np.zeros((stop - start, Y.shape[1]))
                weights[:known], targets[:known] = u[start : start + known], Y[start : start + known]
                part = self.rows_in.X[start:stop]
                yield RowBlock(self.side_by_side(part), presence(part), self.s[start:stop], weights, targets)

        return made

    def moments(self, ridge: float, Y: np.ndarray, u: np.ndarray) -> FeatureMoments:
        """The normal equations; `ridge` is γ_A, over an eigenvalue of the output kernel where there is one."""
        return FeatureMoments(
            self.blocks(Y, u),
            self.sizes,
            ridge=ridge * self.scale,
            agreement_penalty=self.agreement_penalty,
            smooth=self.smooth,
        )

    def system(self, ridge: float) -> CoupledFeatures:
        """The labeled kernel."""
        nothing, ones = np.zeros((self.l, 1)), np.ones(self.l)
        labeled = self.rows_in.X[: self.l]
        block = RowBlock(self.side_by_side(labeled), presence(labeled), self.s[: self.l], ones, nothing)
        return CoupledFeatures(self.moments(ridge, nothing, ones), block)

    def combined(self, W: np.ndarray, c: np.ndarray, labeled: np.ndarray) -> np.ndarray:
        """g at labeled rows."""
        X = self.rows_in.X[labeled]
        spread = np.repeat(c, self.sizes)
        return row_scale(presence(X), c)[:, None] * ((self.side_by_side(X) * spread) @ W)

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
        for start in range(0, len(here), ROWS):
            part = self.rows_in.X[here[start : start + ROWS]][[name]]
            yield np.asarray(to_numpy(self.features.transform(part)[name]), dtype=np.float64)

    def _kernel_smoothness(self, name: str, here: np.ndarray, *, normalized: bool) -> np.ndarray:
        """Φ'LΦ for weights ΦΦ', never formed: the degrees are Φ(Φ's)."""
        s = self.s[here]
        total = np.sum([s[k * ROWS : (k + 1) * ROWS] @ Phi for k, Phi in enumerate(self._features_of(name, here))], 0)
        diagonal = np.zeros((len(total), len(total)))
        crossed = np.zeros_like(diagonal)
        for k, Phi in enumerate(self._features_of(name, here)):
            degrees, weights = Phi @ total, s[k * ROWS : (k + 1) * ROWS]
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
