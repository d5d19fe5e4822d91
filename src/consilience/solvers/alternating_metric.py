"""The published scheme of metric learning: gradient steps on the metric, with backtracking."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._progress import report_progress
from .certificates import Solution
from .design import view_columns
from .learned_metric import LearnedMetric
from .linalg import add_to_diagonal, cholesky, eigh_positive, multiply, norm, solve
from .sphere import sphere_least_squares


class AlternatingMetric:
    """Solves the problem of a learned metric by the published scheme, from the identity.

    Parameters
    ----------
    problem : LearnedMetric
        The problem; it also measures the result.
    """

    def __init__(self, problem: LearnedMetric):
        self.problem = problem

    def solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None = None) -> Solution:
        """Return (coefficients of each view, w, factors of the metrics by view) as x, for given w or learned ones.

        Weights are learned only where every sample has every view. Where the matrices are not positive semi-definite,
        the status is "indefinite", and x is None.
        """
        try:
            return self._solve(w, starts)
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")

    def _solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None) -> Solution:
        problem, system, learn = self.problem, self.problem.system, w is None
        if w is None:
            assert starts is not None
            w = starts[0]
        # where views are missing ν depends on w, so that the moments are those of w itself
        ones = np.ones_like(w)
        C, c = system.moments(ones if system.complete else w)
        end = alternate_metric(
            C,
            c,
            np.sum(system.Y**2, axis=0),
            system.sizes,
            w if system.complete else ones,
            problem.alpha,
            problem.metric_penalty,
            sparse=problem.sparse,
            shared=problem.shared,
            learn_weights=learn,
            tol=problem.tol,
            max_iter=problem.max_iter,
        )
        w = end.x.w if system.complete else w
        factors = [cholesky(A.copy(order="F")) for A in end.x.metrics]  # A = LL'
        solution = problem.measured(w, end.x.G, factors, end.n_iter, end.status)
        # the objective is that of the metric where the steps ended, not of the best one for these coefficients
        gap = None if learn else end.objective - solution.dual  # type: ignore[operator]
        return replace(solution, objective=end.objective, gap=gap)


@dataclass
class Alternated:
    """The state of the published scheme: coefficients, a metric for each group of columns, weights of the views."""

    G: np.ndarray
    metrics: list[np.ndarray]
    w: np.ndarray


def alternate_metric(
    C: np.ndarray,
    c: np.ndarray,
    squares: np.ndarray,
    sizes: Sequence[int],
    w: np.ndarray,
    alpha: float,
    metric_penalty: float,
    *,
    sparse: bool,
    shared: bool,
    learn_weights: bool,
    tol: float,
    max_iter: int,
) -> Solution:
    """Alternate between G for A fixed, weights on the sphere if they are learned, and a gradient step on A from A = I.

    C = M'M and c = M'Y without w, `squares` those of the columns of Y, `sizes` those of the views. There is one metric
    for each column, or one for all (`shared`). With `sparse` the penalty is η Σ_γ ‖A_γ‖_F over pairs of views, by
    proximal steps. The published step is fixed, and A grows without bound once it is nearly singular: its gradient is
    -λ A⁻¹GG'A⁻¹ + 2ηA. Here a step is halved until A is positive definite and the objective is not higher, and doubled
    after a success. Ends where a round lowers the objective by less than `tol` of it.
    """
    groups = [np.arange(c.shape[1])] if shared else [np.array([p]) for p in range(c.shape[1])]
    penalties = alpha, metric_penalty, view_columns(sizes) if sparse else None
    metrics = [np.eye(len(C)) for _ in groups]
    steps = [0.25 / metric_penalty] * len(groups)  # μ: the factor 1 - 2μη of A is then ½
    G = np.zeros_like(c)

    def moments(columns: np.ndarray) -> _Moments:
        spread = np.repeat(w, sizes)  # w of each column of M
        return spread[:, None] * C * spread, spread[:, None] * c[:, columns], float(squares[columns].sum())

    def solve_all() -> list[float]:
        values = []
        for columns, A in zip(groups, metrics, strict=True):
            G[:, columns], value = _coefficients(moments(columns), A, penalties)
            values.append(value)
        return values

    values = solve_all()
    status, n_iter = "max_iter", 0
    while n_iter < max_iter:
        n_iter += 1
        report_progress(n_iter, None)
        before = sum(values)
        if learn_weights:
            # the length stays fixed: a longer w with shorter coefficients would lower the penalty without end
            w = _sphere_weights(C, c, float(squares.sum()), G, sizes, norm(w))
            values = solve_all()
        for k, columns in enumerate(groups):
            now = metrics[k], G[:, columns], values[k]
            (metrics[k], G[:, columns], values[k]), steps[k] = _descend(moments(columns), now, penalties, steps[k])
        if before - sum(values) <= tol * abs(sum(values)):
            status = "settled"
            break
    return Solution(Alternated(G, metrics, w), None, n_iter, status, objective=sum(values))


_Moments = tuple[np.ndarray, np.ndarray, float]  # M'M, M'Y and ‖Y‖² of a group, for the weights of now
_Penalties = tuple[float, float, Sequence[slice] | None]  # λ, η, the columns of the views if blocks are penalized
_State = tuple[np.ndarray, np.ndarray, float]  # A, the best G for it, the objective


def _descend(moments: _Moments, now: _State, penalties: _Penalties, step: float) -> tuple[_State, float]:
    """Take a step on A, halved until the objective is not higher; return the state and the next step.

    If no step is left, the state does not change.
    """
    C, c, _ = moments
    A, G, value = now
    alpha, metric_penalty, blocks = penalties
    H = (c - multiply(C, G)) / alpha  # A⁻¹G, as G is the best for A
    slope = -alpha * multiply(H, H.T)  # gradient of λ tr(G'A⁻¹G) in A
    while step * metric_penalty > 1e-14:  # shorter steps are lost in rounding
        trial = _metric_step(A, slope, step, metric_penalty, blocks)
        try:
            coefficients, reached = _coefficients(moments, trial, penalties)
        except np.linalg.LinAlgError:
            reached = np.inf  # A is not positive definite so far along
        if reached <= value:
            return (trial, coefficients, reached), min(2 * step, 0.25 / metric_penalty)
        step /= 2
    return now, step


def _sphere_weights(
    C: np.ndarray, c: np.ndarray, squares: float, G: np.ndarray, sizes: Sequence[int], radius: float
) -> np.ndarray:
    """Return the best weights of the views' outputs for G, from moments: least squares on the sphere."""
    columns = view_columns(sizes)
    m = len(columns)
    products = np.empty((m + 1, m + 1))  # inner products of the views' outputs M_vG_v and, last, of Y
    for v, one in enumerate(columns):
        products[v, m] = products[m, v] = float(np.sum(G[one] * c[one]))
        for x, other in enumerate(columns):
            products[v, x] = float(np.sum(G[one] * multiply(C[one, other], G[other])))
    products[m, m] = squares
    values, vectors = eigh_positive((products + products.T) / 2)
    root = np.sqrt(values)[:, None] * vectors.T  # m + 1 short columns with the same inner products
    return sphere_least_squares(root[:, :m], root[:, m], radius)


def _metric_step(
    A: np.ndarray, slope: np.ndarray, step: float, metric_penalty: float, blocks: Sequence[slice] | None
) -> np.ndarray:
    """Return A after a gradient step, or a proximal one that shrinks the blocks of pairs of views."""
    if blocks is None:
        return (1 - 2 * step * metric_penalty) * A - step * slope  # A - μ (slope + 2ηA)
    moved = A - step * slope
    for v, one in enumerate(blocks):
        for w, other in enumerate(blocks[: v + 1]):
            size = norm(moved[one, other]) * (1 if v == w else np.sqrt(2))  # both blocks of a pair are one group
            shrink = max(1 - step * metric_penalty / size, 0.0) if size else 0.0  # proximal map of μη‖A_γ‖_F
            moved[one, other] *= shrink
            if v != w:
                moved[other, one] *= shrink
    return moved


def _coefficients(moments: _Moments, A: np.ndarray, penalties: _Penalties) -> tuple[np.ndarray, float]:
    """Return G = L(L'CL + λI)⁻¹L'c with A = LL', and the objective."""
    C, c, squares = moments
    alpha, metric_penalty, blocks = penalties
    L = cholesky(np.array(A, order="F"))
    inner = multiply(L.T, multiply(C, L))
    H = solve(cholesky(add_to_diagonal(inner, alpha)), multiply(L.T, c))
    G = multiply(L, H)
    # the minimum over G of loss + λ tr(G'A⁻¹G) is ‖Y‖² - <G, c>
    return G, squares - float(np.sum(G * c)) + metric_penalty * _metric_size(A, blocks)


def _metric_size(A: np.ndarray, blocks: Sequence[slice] | None) -> float:
    """Return ‖A‖_F², or Σ_γ ‖A_γ‖_F over pairs of views."""
    if blocks is None:
        return float(np.sum(A**2))
    norms = np.array([[norm(A[one, other]) for other in blocks] for one in blocks])
    # √2: the two equal blocks of a pair in one norm
    return float(np.sum(np.diag(norms)) + np.sqrt(2) * np.sum(np.triu(norms, 1)))
