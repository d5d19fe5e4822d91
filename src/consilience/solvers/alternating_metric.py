"""The published scheme of metric learning: gradient steps on the metric, with backtracking or of a fixed length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._backend import is_device_array
from .._progress import report_progress
from .certificates import Solution
from .design import view_columns
from .learned_metric import LearnedMetric
from .linalg import add_to_diagonal, cholesky, eigh, eigh_positive, lstsq, multiply, norm, solve, solve_lu
from .sphere import sphere_least_squares

_LARGEST = 1e100  # a larger metric or coefficient has diverged: its square would soon leave the range of doubles


class AlternatingMetric:
    """Solves the problem of a learned metric by the published scheme, from the identity.

    Parameters
    ----------
    problem : LearnedMetric
        The problem; it also measures the result.
    step_size : float, optional
        Length μ of fixed steps on the metric. By default, steps with backtracking.
    free_weights : bool, default=False
        Whether learned weights have any length. By default, their length is fixed.
    """

    def __init__(self, problem: LearnedMetric, step_size: float | None = None, *, free_weights: bool = False):
        self.problem, self.step_size, self.free_weights = problem, step_size, free_weights

    def solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None = None) -> Solution:
        """Return (coefficients, w, factors of the metrics by view, signs of the factors) as x, for given or learned w.

        A metric is F diag(signs) F'; signs are None if it is positive semi-definite. Weights are learned only where
        every sample has every view. Where the matrices are not positive semi-definite, the status is "indefinite",
        and x is None.
        """
        try:
            return self._solve(w, starts)
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")

    def _solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None) -> Solution:
        problem, system, weights = self.problem, self.problem.system, "given"
        if w is None:
            assert starts is not None
            w, weights = starts[0], "free" if self.free_weights else "sphere"
        # where views are missing ν depends on w, so that the moments are those of w itself
        ones = np.ones_like(w)
        if is_device_array(system.example):
            raise ValueError(
                "solver='alternating' works with NumPy arrays; got arrays of a device. Use solver='exact', which has "
                "the same optimum, or give NumPy arrays."
            )
        C, c = system.moments(ones if system.complete else w)
        moments = MetricMoments(
            C,
            c,
            system.squares,
            system.sizes,
            problem.alpha,
            problem.metric_penalty,
            sparse=problem.sparse,
            shared=problem.shared,
        )
        first, tol, max_iter = w if system.complete else ones, problem.tol, problem.max_iter
        if self.step_size is None:
            end = alternate_metric(moments, first, weights=weights, tol=tol, max_iter=max_iter)
        else:
            end = fixed_metric_steps(moments, first, step=self.step_size, weights=weights, tol=tol, max_iter=max_iter)
        last = end.x.w if system.complete else w
        return self._measured(end, w, last, weights)

    def _measured(self, end: Solution, first: np.ndarray, w: np.ndarray, weights: str) -> Solution:
        """Return where the steps ended as a solution, with what is proved about it and a note on what is not."""
        problem, system, G = self.problem, self.problem.system, end.x.G
        spectra = [_factored(A) for A in end.x.metrics]
        factors, signs = [F for F, _, _ in spectra], [s for _, s, _ in spectra]
        positive = all(one is None for one in signs)
        status = end.status if positive or end.status == "diverged" else "indefinite_metric"
        # the bound on the complexity is for kernels
        solution = problem.measured(w, G, end.n_iter, status, factors if positive else None)
        x = system.by_view(G), w, [system.by_view(F) for F in factors], None if positive else signs
        notes = []
        if self.step_size is not None:
            # far from the optimum its own residuals prove little, so the lower bound is that of the exact solution
            best, n_iter, how = problem.minimize(w)
            exact = problem.measured(w, best, n_iter, how)
            gap = max(end.objective - exact.dual, 0.0)  # type: ignore[operator]
            remedy = " Lower `step_size`, or use step_size=None." if end.x.n_rises else ""
            notes.append(f"Fixed steps raised the objective in {end.x.n_rises} of {end.n_iter} rounds.{remedy}")
            if not positive:
                least = min(value for *_, value in spectra)
                notes.append(
                    f"The smallest eigenvalue of the metric is {least:.3g}. It is not a kernel, so its objective "
                    f"may be below {exact.objective:.6g}, the optimum over positive semi-definite metrics."
                )
        else:
            # the objective is that of the metric where the steps ended, not of the best one for these coefficients
            gap = end.objective - solution.dual  # type: ignore[operator]
        if weights == "free":
            notes.append(
                f"The length of the free weights went from {norm(first):.3g} to {norm(w):.3g}. Longer weights with "
                "smaller coefficients always lower the penalty, so there is no optimum over them."
            )
        if not positive:
            solution = replace(solution, bound=None)
        known = gap if positive and weights == "given" else None
        return replace(solution, x=x, objective=end.objective, gap=known, note=" ".join(notes))


def _factored(A: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Return F and signs with A = F diag(signs) F', no signs if A is positive semi-definite; its least eigenvalue."""
    try:
        return cholesky(A.copy(order="F")), None, 0.0
    except np.linalg.LinAlgError:
        values, vectors = eigh(A)
    size = float(np.abs(values).max())
    indefinite = bool(values[0] < -1e-10 * size)  # smaller ones are rounding
    kept = (np.abs(values) if indefinite else values) > len(values) * np.finfo(float).eps * size
    if not kept.any():
        return np.zeros((len(A), 1)), None, 0.0
    F = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
    return F, np.sign(values[kept]) if indefinite else None, float(values[0])


@dataclass
class MetricMoments:
    """What the published scheme needs of the data, and the penalties."""

    C: np.ndarray  # M'M without w
    c: np.ndarray  # M'Y without w
    squares: np.ndarray  # ‖y‖² of the columns of Y
    sizes: Sequence[int]  # of the views
    alpha: float
    metric_penalty: float
    sparse: bool  # the penalty on the metric is η Σ_γ ‖A_γ‖_F over pairs of views
    shared: bool  # one metric for all columns of Y; else one for each

    @property
    def groups(self) -> list[np.ndarray]:
        """The columns of Y that each metric serves."""
        P = self.c.shape[1]
        return [np.arange(P)] if self.shared else [np.array([p]) for p in range(P)]

    @property
    def penalties(self) -> "_Penalties":
        """λ, η, and the columns of the views if blocks are penalized."""
        return self.alpha, self.metric_penalty, view_columns(self.sizes) if self.sparse else None

    def weighted(self, w: np.ndarray, columns: np.ndarray) -> "_Moments":
        """Return M'M, M'Y and ‖Y‖² of a group of columns, for weights of the views."""
        spread = np.repeat(w, self.sizes)  # w of each column of M
        return (
            spread[:, None] * self.C * spread,
            spread[:, None] * self.c[:, columns],
            float(self.squares[columns].sum()),
        )


@dataclass
class Alternated:
    """The state of the published scheme: coefficients, a metric for each group of columns, weights of the views."""

    G: np.ndarray
    metrics: list[np.ndarray]
    w: np.ndarray
    n_rises: int = 0  # rounds that raised the objective


def alternate_metric(moments: MetricMoments, w: np.ndarray, *, weights: str, tol: float, max_iter: int) -> Solution:
    """Alternate between G for A fixed, weights if they are learned, and a gradient step on A from A = I.

    `weights` are "given", or learned on the "sphere" of their length, or "free". With a block-sparse penalty the steps
    are proximal. Here a step is halved until A is positive definite and the objective is not higher, and doubled after
    a success. Ends where a round lowers the objective by at most `tol` of it.
    """
    groups, penalties = moments.groups, moments.penalties
    metrics = [np.eye(len(moments.C)) for _ in groups]
    steps = [0.25 / moments.metric_penalty] * len(groups)  # μ: the factor 1 - 2μη of A is then ½
    G, values = _solve_all(moments, w, metrics)
    status, n_iter = "max_iter", 0
    while n_iter < max_iter:
        n_iter += 1
        report_progress(n_iter, None)
        before = sum(values)
        if weights != "given":
            w = _best_weights(moments, G, w, weights)
            G, values = _solve_all(moments, w, metrics)
        for k, columns in enumerate(groups):
            now = metrics[k], G[:, columns], values[k]
            own = moments.weighted(w, columns)
            (metrics[k], G[:, columns], values[k]), steps[k] = _descend(own, now, penalties, steps[k])
        if before - sum(values) <= tol * abs(sum(values)):
            status = "settled"
            break
    return Solution(Alternated(G, metrics, w), None, n_iter, status, objective=sum(values))


def fixed_metric_steps(
    moments: MetricMoments, w: np.ndarray, *, step: float, weights: str, tol: float, max_iter: int
) -> Solution:
    """Take the steps of Algorithm 1 of Huusari, Kadri and Capponi (2018): G, then w, then one step μ on A, from A = I.

    Nothing keeps A positive semi-definite or the objective from rising. The loop is left after G, so that G is the one
    for the last A and w. Ends where a round changes the objective by at most `tol` of it. If a value leaves the range
    of doubles the status is "diverged", and the state before it is returned.
    """
    groups = moments.groups
    metrics = [np.eye(len(moments.C)) for _ in groups]
    G, values = _solve_all(moments, w, metrics)
    status, n_iter, rises = "max_iter", 0, 0
    while n_iter < max_iter:
        n_iter += 1
        report_progress(n_iter, None)
        next_w = w if weights == "given" else _best_weights(moments, G, w, weights)
        trial = []
        for columns, A in zip(groups, metrics, strict=True):  # G is that for the weights before
            H = _in_range(A, _inverse_times(moments.weighted(w, columns), G[:, columns], moments.alpha))  # A†G
            slope = -moments.alpha * multiply(H, H.T)
            trial.append(_metric_step(A, slope, step, moments.metric_penalty, moments.penalties[2]))
        try:
            if max(_largest(A) for A in trial) > _LARGEST:
                raise np.linalg.LinAlgError("The metric is too large.")
            coefficients, reached = _solve_all(moments, next_w, trial)
        except np.linalg.LinAlgError:
            coefficients = np.full_like(G, np.inf)
        if not _largest(coefficients) <= _LARGEST:
            status = "diverged"
            break
        before, after = sum(values), sum(reached)
        rises += after > before + 1e-12 * abs(before)
        G, values, metrics, w = coefficients, reached, trial, next_w
        if abs(before - after) <= tol * abs(after):
            status = "settled"
            break
    return Solution(Alternated(G, metrics, w, rises), None, n_iter, status, objective=sum(values))


def _largest(A: np.ndarray) -> float:
    """Return the largest absolute entry, infinite if some entry is not a number."""
    largest = float(np.abs(A).max())
    return largest if np.isfinite(largest) else np.inf


def _solve_all(moments: MetricMoments, w: np.ndarray, metrics: list[np.ndarray]) -> tuple[np.ndarray, list[float]]:
    """Return G for all metrics, and the objective of each group of columns."""
    G, values = np.zeros_like(moments.c), []
    for columns, A in zip(moments.groups, metrics, strict=True):
        G[:, columns], value = _stationary(moments.weighted(w, columns), A, moments.penalties)
        values.append(value)
    return G, values


_Moments = tuple[np.ndarray, np.ndarray, float]  # M'M, M'Y and ‖Y‖² of a group, for the weights of now
_Penalties = tuple[float, float, Sequence[slice] | None]  # λ, η, the columns of the views if blocks are penalized
_State = tuple[np.ndarray, np.ndarray, float]  # A, the best G for it, the objective


def _descend(moments: _Moments, now: _State, penalties: _Penalties, step: float) -> tuple[_State, float]:
    """Take a step on A, halved until the objective is not higher; return the state and the next step.

    If no step is left, the state does not change.
    """
    A, G, value = now
    alpha, metric_penalty, blocks = penalties
    H = _inverse_times(moments, G, alpha)
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


def _inverse_times(moments: _Moments, G: np.ndarray, alpha: float) -> np.ndarray:
    """Return A⁻¹G, where G is that for A."""
    C, c, _ = moments
    return (c - multiply(C, G)) / alpha


def _in_range(A: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return the part of H in the range of A: a proximal step makes A singular where it leaves blocks out."""
    try:
        cholesky(np.array(A, order="F"))
        return H
    except np.linalg.LinAlgError:
        values, vectors = eigh(A)
    size = np.abs(values)
    vectors = vectors[:, size > 1e-12 * size.max()]
    return multiply(vectors, multiply(vectors.T, H))


def _best_weights(moments: MetricMoments, G: np.ndarray, w: np.ndarray, weights: str) -> np.ndarray:
    """Return the best weights of the views' outputs for G, from moments: least squares, free or on the sphere."""
    columns = view_columns(moments.sizes)
    m = len(columns)
    products = np.empty((m + 1, m + 1))  # inner products of the views' outputs M_vG_v and, last, of Y
    for v, one in enumerate(columns):
        products[v, m] = products[m, v] = float(np.sum(G[one] * moments.c[one]))
        for x, other in enumerate(columns):
            products[v, x] = float(np.sum(G[one] * multiply(moments.C[one, other], G[other])))
    products[m, m] = float(moments.squares.sum())
    if weights == "free":
        if not G.any():  # all weights are as good
            return w
        # equation 10, w = (Z'Z)⁻¹Z'y; the shortest w where outputs of views depend on each other
        return lstsq(products[:m, :m], products[:m, m], cutoff=1e-12)
    values, vectors = eigh_positive((products + products.T) / 2)
    root = np.sqrt(values)[:, None] * vectors.T  # m + 1 short columns with the same inner products
    # the length stays fixed: a longer w with shorter coefficients would lower the penalty without end
    return sphere_least_squares(root[:, :m], root[:, m], norm(w))


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


def _coefficients(
    moments: _Moments, A: np.ndarray, penalties: _Penalties, L: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Return G = L(L'CL + λI)⁻¹L'c with A = LL', and the objective; L is computed if it is not given."""
    C, c, squares = moments
    alpha, metric_penalty, blocks = penalties
    L = cholesky(np.array(A, order="F")) if L is None else L
    inner = multiply(L.T, multiply(C, L))
    H = solve(cholesky(add_to_diagonal(inner, alpha)), multiply(L.T, c))
    G = multiply(L, H)
    # the minimum over G of loss + λ tr(G'A⁻¹G) is ‖Y‖² - <G, c>
    return G, squares - float(np.sum(G * c)) + metric_penalty * _metric_size(A, blocks)


def _stationary(moments: _Moments, A: np.ndarray, penalties: _Penalties) -> tuple[np.ndarray, float]:
    """Return G of equation 8 for any symmetric A, and the objective: the best G only if A is positive semi-definite.

    The printed (C + λA†)⁻¹c leaves directions outside of the range of A without a penalty, where g'A†g is infinite.
    (AC + λI)⁻¹Ac is the same for an invertible A, and its limit for others.
    """
    try:
        L = cholesky(np.array(A, order="F"))
    except np.linalg.LinAlgError:
        L = None
    if L is not None:
        return _coefficients(moments, A, penalties, L)
    C, c, squares = moments
    alpha, metric_penalty, blocks = penalties
    G = solve_lu(add_to_diagonal(multiply(A, C), alpha), multiply(A, c))
    return G, squares - float(np.sum(G * c)) + metric_penalty * _metric_size(A, blocks)


def _metric_size(A: np.ndarray, blocks: Sequence[slice] | None) -> float:
    """Return ‖A‖_F², or Σ_γ ‖A_γ‖_F over pairs of views."""
    if blocks is None:
        return float(np.sum(A**2))
    norms = np.array([[norm(A[one, other]) for other in blocks] for one in blocks])
    # √2: the two equal blocks of a pair in one norm
    return float(np.sum(np.diag(norms)) + np.sqrt(2) * np.sum(np.triu(norms, 1)))
