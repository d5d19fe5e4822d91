"""Learned metrics over views, solved in the coefficients alone (Huusari, Kadri and Capponi 2018, made exact).

    min_{A ⪰ 0, G} ‖Y - MG‖² + λ tr(G'A†G) + η‖A‖_F²

For G fixed the best metric is A = (λ/2η)^⅓ (GG')^⅓, and what is left of the two penalties is κ Σ_i s_i(G)^(4/3), the
singular values of G, with κ = 3 η^⅓ (λ/2)^⅔: convex in G. With one output that is κ‖g‖^(4/3), and g is the ridge
solution for a ρ that solves one equation. The singular values and left vectors of M serve every ρ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._progress import report_progress
from .certificates import Solution
from .linalg import add_to_diagonal, cholesky, forward, multiply, solve
from .sphere import sphere_least_squares


def kappa_of(alpha: float, metric_penalty: float) -> float:
    """κ = 3 η^⅓ (λ/2)^⅔."""
    return 3 * float(np.cbrt(metric_penalty)) * float(np.cbrt(alpha / 2)) ** 2


# -- what solvers need of M
@dataclass
class Spectrum:
    """M = V √e R': the squared singular values e, Z = V'Y, and the part ‖Y‖² - ‖Z‖² of each column out of reach.

    `lift` makes G = M'V S of S.
    """

    values: np.ndarray
    turned: np.ndarray
    rest: np.ndarray
    lift: Callable[[np.ndarray], np.ndarray]

    @classmethod
    def of_gram(
        cls, values: np.ndarray, V: np.ndarray, Y: np.ndarray, lift: Callable[[np.ndarray], np.ndarray]
    ) -> "Spectrum":
        """From the eigenvalues and vectors of MM'; `lift` makes M'B of B."""
        turned = multiply(V.T, Y)
        rest = np.zeros(Y.shape[1]) if V.shape[0] == V.shape[1] else np.sum((Y - multiply(V, turned)) ** 2, axis=0)
        return cls(values, turned, rest, lambda S: lift(multiply(V, S)))

    @classmethod
    def of_moments(cls, C: np.ndarray, c: np.ndarray, squares: np.ndarray) -> "Spectrum":
        """From C = M'M, used up, c = M'Y and the squares of the columns of Y."""
        values, R = within_reach(*eigen(C))
        turned = multiply(R.T, c) / np.sqrt(np.maximum(values, np.finfo(float).tiny))[:, None]
        rest = np.maximum(squares - np.sum(turned**2, axis=0), 0)
        return cls(values, turned, rest, lambda S: multiply(R, np.sqrt(values)[:, None] * S))


def eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of a symmetric positive semi-definite matrix, which is used up, and its eigenvectors."""
    values, vectors = scipy.linalg.eigh(A, overwrite_a=True, check_finite=False, driver="evd")
    return np.maximum(values, 0), vectors


def within_reach(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without eigenvalues that are rounding; at least one is kept."""
    kept = values > len(values) * np.finfo(float).eps * float(values[-1])
    kept[-1] = True
    return (values, vectors) if kept.all() else (values[kept], np.asfortranarray(vectors[:, kept]))


# -- one metric per output
def metric_roots(e: np.ndarray, squares: np.ndarray, kappa: float | np.ndarray) -> np.ndarray:
    """ρ of each column: ρ³ ‖g(ρ)‖² = (2κ/3)³ with ‖g(ρ)‖² = Σ_i squares_i/(e_i + ρ)², squares = e z².

    In logarithms the left side rises with a slope between 1 and 3, which bounds the root from any x; Newton's steps are
    kept between the bounds, and halve them where a step has not halved what was left. Columns of zeros have no root:
    ρ = ∞.
    """
    total = np.sum(squares, axis=0)
    goal = 3 * np.log(2 * np.broadcast_to(np.asarray(kappa, dtype=np.float64), total.shape) / 3)
    some = total > 0
    t = np.full(total.shape, np.inf)
    if not some.any():
        return t
    own, aim = squares[:, some], goal[some]
    x = aim - np.log(total[some])  # where e is small beside ρ
    low, high, before = np.full_like(x, -np.inf), np.full_like(x, np.inf), np.full_like(x, np.inf)
    for _ in range(200):
        below = e[:, None] + np.exp(x)
        parts = own / below**2
        size = np.sum(parts, axis=0)
        excess = 3 * x + np.log(size) - aim
        near, far = x - excess / 3, x - excess
        low, high = np.maximum(low, np.minimum(near, far)), np.minimum(high, np.maximum(near, far))
        slope = 3 - 2 * np.exp(x) * np.sum(parts / below, axis=0) / size
        newton = np.clip(x - excess / slope, low, high)
        moved = np.where(np.abs(excess) > 0.5 * before, (low + high) / 2, newton)
        before = np.abs(excess)
        done = np.abs(moved - x) <= 4 * np.finfo(float).eps * np.maximum(np.abs(x), 1)
        x = moved
        if done.all():
            break
    t[some] = np.exp(x)
    return t


def rank_one_metric(spectrum: Spectrum, kappa: float) -> Solution:
    """G of min Σ_p ‖y_p - M g_p‖² + κ‖g_p‖^(4/3); ``x`` is (G, the optimum and the norm of each column)."""
    e, Z = spectrum.values, spectrum.turned
    rho = metric_roots(e, e[:, None] * Z**2, kappa)
    S = Z / (e[:, None] + rho)
    G = spectrum.lift(S)
    norms = np.linalg.norm(G, axis=0)  # of the coefficients that are returned
    B = Z - e[:, None] * S
    losses = np.sum(B**2, axis=0) + spectrum.rest
    objective = losses + kappa * norms ** (4 / 3)
    gap = objective - dual_value(
        np.sum(B * Z, axis=0) + spectrum.rest, losses, np.sum(e[:, None] * B**2, axis=0) ** 2, kappa
    )
    total = float(np.sum(objective))
    worst = float(np.sum(np.maximum(gap, 0)))
    status = "exact" if worst <= 1e-6 * abs(total) else "inexact"
    return Solution((G, norms), worst, 1, status, objective=total)


def direct_metric(A: np.ndarray, b: np.ndarray, kappa: float, *, moments: bool) -> np.ndarray:
    """x with (A + ρI)x = b for the ρ of one output, by a few Cholesky factors instead of a decomposition.

    With `moments` A = M'M, b = M'y and x = g; else A = MM', b = y and g = M'x. Lanczos' steps from b give a small
    spectrum whose root is near (Gauss quadrature of ‖g(ρ)‖²), Newton's steps on the whole matrix the rest. Raises
    LinAlgError where ρ is so small that rounding of A would count.
    """
    least = 1e-12 * float(np.trace(A))
    nodes, shares = _lanczos(A, b, 20)
    root = metric_roots(nodes, (shares if moments else nodes * shares)[:, None], kappa)[0]
    if np.isinf(root):
        return np.zeros_like(b)
    x, goal = float(np.log(root)), 3 * np.log(2 * kappa / 3)
    low, high, before = -np.inf, np.inf, np.inf
    for _ in range(100):
        rho = np.exp(x)
        if not rho > least:
            raise np.linalg.LinAlgError("ρ is not above rounding.")
        L = cholesky(add_to_diagonal(A.copy(order="F"), rho))
        found = solve(L, b)
        third = float(np.sum(forward(L, found[:, None]) ** 2))  # b'(A + ρI)⁻³b
        second = float(found @ found)
        norm = second if moments else float(found @ multiply(A, found[:, None])[:, 0])
        change = -2 * rho * third if moments else 2 * rho * (rho * third - second)  # of the norm in log ρ
        excess = 3 * x + np.log(max(norm, np.finfo(float).tiny)) - goal
        bounds = sorted((x - excess / 3, x - excess))
        low, high = max(low, bounds[0]), min(high, bounds[1])
        newton = min(max(x - excess / max(3 + change / norm, 1.0), low), high)
        moved = (low + high) / 2 if abs(excess) > 0.5 * before else newton
        if abs(moved - x) <= 1e-12 * max(abs(x), 1):
            break
        before, x = abs(excess), moved
    return found


def _lanczos(A: np.ndarray, b: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the measure of b on the spectrum of A, by steps with full orthogonalization."""
    size = float(np.linalg.norm(b))
    if not size:
        return np.zeros(1), np.zeros(1)
    basis = [b / size]
    diagonal, beside = [], []
    for _ in range(min(steps, len(b))):
        v = multiply(A, basis[-1][:, None])[:, 0]
        diagonal.append(float(basis[-1] @ v))
        whole = np.array(basis)
        for _ in range(2):
            v = v - whole.T @ (whole @ v)
        length = float(np.linalg.norm(v))
        if length <= 1e-12 * max(diagonal[0], np.finfo(float).tiny):
            break
        beside.append(length)
        basis.append(v / length)
    values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside[: len(diagonal) - 1])
    return np.maximum(values, 0), size**2 * vectors[0] ** 2


def dual_value(products: np.ndarray, losses: np.ndarray, fourth: np.ndarray, kappa: float) -> np.ndarray:
    """2<B, Y> - ‖B‖² - (27/16κ³) Σ_i s_i(M'B)⁴ at the residuals B, or at the multiple of them that is best near 1."""
    penalty = 27 / 16 * fourth / kappa**3
    t = np.ones_like(np.asarray(products, dtype=np.float64))
    for _ in range(3):  # Newton's steps on a concave function of t; each t gives a bound
        slope = 2 * products - 2 * t * losses - 4 * t**3 * penalty
        curve = 2 * losses + 12 * t**2 * penalty
        t = t + np.divide(slope, curve, out=np.zeros_like(t), where=curve > 0)
    return np.maximum(2 * t * products - t**2 * losses - t**4 * penalty, 2 * products - losses - penalty)


class HeldOutMetric:
    """Outputs at rows whose own target is hidden, for every κ from one decomposition of M.

    Without the target of row i the solution for ρ is that with y_i moved by the residual e_i = (Qy)_i/Q_ii,
    Q = (MM' + ρI)⁻¹, so that ‖g‖² without it is known too, and ρ solves its equation anew for each row. All that takes
    are sums over 1/(e + ρ), smooth in log ρ: they are computed at a few ρ by matrix products and interpolated.
    """

    def __init__(self, values: np.ndarray, V: np.ndarray, Y: np.ndarray):
        self.e, self.V, self.Y = values, V, Y
        self.squares = V**2
        self.Z = multiply(V.T, Y)
        square = V.shape[0] == V.shape[1]
        self.out_of_reach = np.zeros_like(Y) if square else Y - multiply(V, self.Z)
        self.left = np.zeros(len(V)) if square else np.maximum(1 - np.sum(self.squares, axis=1), 0)

    def ridge(self, Y: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """y_i - g(x_i) at each row when its target is hidden, for ρ given, one for each column of Y."""
        inverse = 1 / (self.e[:, None] + rho)
        turned = multiply(self.V.T, Y)
        rest = multiply(self.V, turned * inverse)
        if self.left.any():
            rest += (Y - multiply(self.V, turned)) / rho
        return rest / (multiply(self.squares, inverse) + self.left[:, None] / rho)

    def residuals(self, kappa: float) -> np.ndarray:
        """The same for the ρ of every row, from κ."""
        roots = metric_roots(self.e, self.e[:, None] * self.Z**2, kappa)
        columns = [self._of_column(p, rho, 3 * np.log(2 * kappa / 3)) for p, rho in enumerate(roots)]
        return np.stack(columns, axis=1)

    def _of_column(self, p: int, rho: float, goal: float) -> np.ndarray:
        if not self.e.any():  # M = 0
            return self.Y[:, p].copy()
        x = np.full(len(self.V), np.log(rho) if np.isfinite(rho) else np.log(self.e[-1]))
        _, excess = self._judged(x, [part[..., 0] for part in self._sums(p, x[:1])], p, goal)
        # slopes lie between 1 and 3, as in `metric_roots`: the roots of all rows are between these
        low, high = float(np.min(x - np.maximum(excess, 0))), float(np.max(x - np.minimum(excess, 0)))
        half = max((high - low) / 2, 1e-9)
        rate = np.pi / half + np.hypot(np.pi / half, 1)  # of Chebyshev's points: poles are π away from the real axis
        J = int(np.clip(np.ceil(26 / np.log(rate)), 4, 256))
        interpolated = half < 30  # farther apart, every row has sums of its own
        angles = np.pi * (np.arange(J) + 0.5) / J
        places, weights = (low + high) / 2 + half * np.cos(angles), (-1.0) ** np.arange(J) * np.sin(angles)
        sums = self._sums(p, places) if interpolated else []
        lows, highs, before = np.full_like(x, low), np.full_like(x, high), np.full_like(x, np.inf)
        old, last = np.zeros_like(x), x
        for _ in range(100):
            if interpolated:
                shares = weights / np.where(x[:, None] == places, 1e-300, x[:, None] - places)
                shares /= np.sum(shares, axis=1, keepdims=True)
                at = [np.sum(shares * part, axis=1) for part in sums]
            else:
                at = self._sums_by_row(p, x)
            residual, excess = self._judged(x, at, p, goal)
            near, far = x - excess / 3, x - excess
            lows, highs = np.maximum(lows, np.minimum(near, far)), np.minimum(highs, np.maximum(near, far))
            secant = np.divide(excess - old, x - last, out=np.full_like(x, 2.0), where=x != last)
            moved = np.clip(x - excess / np.clip(secant, 1, 3), lows, highs)
            moved = np.where(np.abs(excess) > 0.5 * before, (lows + highs) / 2, moved)
            if np.abs(moved - x).max() <= 1e-12 * max(float(np.abs(x).max()), 1):
                break
            before, old, last, x = np.abs(excess), excess, x, moved
        return residual

    def _sums(self, p: int, x: np.ndarray) -> list[np.ndarray]:
        """For each row and each x = log ρ: (Qy)_i, Q_ii, (QDQy)_i, (QDQ)_ii within reach of M; y'QDQy for each x."""
        e, z = self.e[:, None], self.Z[:, p : p + 1]
        inverse = 1 / (e + np.exp(x))
        damped = e * inverse**2
        with_y = multiply(self.V, np.hstack([z * inverse, z * damped]))
        own = multiply(self.squares, np.hstack([inverse, damped]))
        J = len(x)
        return [with_y[:, :J], own[:, :J], with_y[:, J:], own[:, J:], np.sum(z**2 * damped, axis=0)]

    def _sums_by_row(self, p: int, x: np.ndarray) -> list[np.ndarray]:
        """The same for one x of each row."""
        inverse = 1 / (self.e + np.exp(x)[:, None])
        damped = self.e * inverse**2
        with_y = self.V * self.Z[:, p]
        parts = [with_y * inverse, self.squares * inverse, with_y * damped, self.squares * damped]
        return [*(np.sum(part, axis=1) for part in parts), damped @ self.Z[:, p] ** 2]

    def _judged(self, x: np.ndarray, sums: list[np.ndarray], p: int, goal: float) -> tuple[np.ndarray, np.ndarray]:
        """The residual of each row at its x, and how far log ρ³‖g‖² is from its goal."""
        rest, own, pulled, damped, norm = sums
        rho = np.exp(x)
        residual = (rest + self.out_of_reach[:, p] / rho) / (own + self.left / rho)
        squared = norm - 2 * residual * pulled + residual**2 * damped
        return residual, np.where(squared > 0, 3 * x + np.log(np.maximum(squared, 1e-300)) - goal, 0.0)


# -- one metric for all outputs, and kernels between outputs
def output_kernel(spectrum: Spectrum, alpha: float, metric_penalty: float, *, tol: float, max_iter: int) -> Solution:
    """min_{C ⪰ 0, G} ‖Y - MG‖² + λ tr(G C† G') + η‖C‖_F²: output kernel learning; ``x`` is (G, C).

    At the best C = (λ/2η)^⅓ (G'G)^⅓ the penalty is κ Σ_i s_i(G)^(4/3), the same as that of one metric for all outputs.
    C for G and G for C take turns: with C = Q c Q' G is a ridge solution for λ/c_j in each direction Q_j. Directions in
    which the columns of Y do not lie are left out. The gap is not asked to be below 1e-10 of the objective: singular
    values are the roots of eigenvalues.
    """
    tol = max(tol, 1e-10)
    e, Z = spectrum.values, spectrum.turned
    kappa, scale = kappa_of(alpha, metric_penalty), float(np.cbrt(alpha / (2 * metric_penalty)))
    P = Z.shape[1]
    rest = float(np.sum(spectrum.rest))
    Q = row_space(Z)
    if not Z.any():
        nothing = spectrum.lift(np.zeros_like(Z))
        return Solution((nothing, np.zeros((P, P))), 0.0, 1, "exact", objective=rest)
    c = np.full(Q.shape[1], scale)
    objective, before, bound, status, n_iter = np.inf, np.inf, -np.inf, "max_iter", 0
    while True:
        turned = multiply(Z, Q)
        S = turned * c / (e[:, None] * c + alpha)
        squared, vectors = eigen(multiply(S.T, e[:, None] * S))
        B = turned - e[:, None] * S
        loss = float(np.sum(B**2)) + rest
        objective = loss + kappa * float(np.sum(squared ** (2 / 3)))
        last = n_iter >= max_iter
        if last or before - objective <= 10 * tol * objective or n_iter % 10 == 0:  # near the end, bounds are worth it
            pulls = np.maximum(scipy.linalg.eigvalsh(multiply(B.T, e[:, None] * B), check_finite=False), 0)
            products = float(np.sum(B * turned)) + rest
            bound = max(bound, float(dual_value(np.array(products), np.array(loss), np.sum(pulls**2), kappa)))
        report_progress(n_iter, objective - bound if np.isfinite(bound) else None)
        if objective - bound <= tol * objective:
            status = "converged"
            break
        if last:
            break
        before = objective
        n_iter += 1
        Q = multiply(Q, vectors)
        c = scale * np.cbrt(squared)
    G = spectrum.lift(multiply(S, Q.T))
    turned_back = multiply(Q, vectors)
    C = multiply(turned_back * (scale * np.cbrt(squared)), turned_back.T)
    return Solution((G, C), max(objective - bound, 0.0), n_iter, status, objective=objective)


def row_space(Y: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the rows of Y."""
    n, P = Y.shape
    if n >= P:
        return within_reach(*eigen(multiply(Y.T, Y)))[1]
    values, U = within_reach(*eigen(multiply(Y, Y.T)))
    return multiply(Y.T, U / np.sqrt(np.maximum(values, np.finfo(float).tiny)))


# -- the published scheme
@dataclass
class Alternated:
    """Where the published scheme stands: coefficients, a metric for each group of columns, weights of the views."""

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
    """G for A fixed, weights on the sphere where they are learned, a gradient step on A, from A = I.

    C = M'M and c = M'Y without w, `squares` those of the columns of Y, `sizes` those of the views. There is one metric
    for each column, or one for all (`shared`). With `sparse` the penalty is η Σ_γ ‖A_γ‖_F over pairs of views, by
    proximal steps. The published step is fixed, and A grows without bound once it is nearly singular: its gradient is
    -λ A⁻¹GG'A⁻¹ + 2ηA. Here a step is halved until A is positive definite and the objective no higher, and doubled
    after one that went well. Ends where a round lowers the objective by less than `tol` of it.
    """
    groups = [np.arange(c.shape[1])] if shared else [np.array([p]) for p in range(c.shape[1])]
    penalties = alpha, metric_penalty, list(sizes) if sparse else None
    metrics = [np.eye(len(C)) for _ in groups]
    steps = [0.25 / metric_penalty] * len(groups)
    G = np.zeros_like(c)

    def problem(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """M'M, M'Y and ‖Y‖² of a group, for the weights of now."""
        spread = np.repeat(w, sizes)
        return spread[:, None] * C * spread, spread[:, None] * c[:, columns], float(squares[columns].sum())

    def solve_all() -> list[float]:
        values = []
        for columns, A in zip(groups, metrics, strict=True):
            G[:, columns], value = _coefficients(*problem(columns), A, *penalties)
            values.append(value)
        return values

    values = solve_all()
    status, n_iter = "max_iter", 0
    while n_iter < max_iter:
        n_iter += 1
        report_progress(n_iter, None)
        before = sum(values)
        if learn_weights:
            w = _sphere_weights(C, c, float(squares.sum()), G, sizes, float(np.linalg.norm(w)))
            values = solve_all()
        for k, columns in enumerate(groups):
            now = metrics[k], G[:, columns], values[k]
            (metrics[k], G[:, columns], values[k]), steps[k] = _lowered(problem(columns), now, penalties, steps[k])
        if before - sum(values) <= tol * abs(sum(values)):
            status = "settled"
            break
    return Solution(Alternated(G, metrics, w), None, n_iter, status, objective=sum(values))


_Penalties = tuple[float, float, Sequence[int] | None]  # λ, η, the sizes of the views where blocks are to vanish
_Standing = tuple[np.ndarray, np.ndarray, float]  # A, the best G for it, the objective


def _lowered(
    problem: tuple[np.ndarray, np.ndarray, float], now: _Standing, penalties: _Penalties, step: float
) -> tuple[_Standing, float]:
    """One step on A, halved until the objective is no higher, and the next step; where none is left, what was there."""
    C, c, _ = problem
    A, G, value = now
    alpha, metric_penalty, blocks = penalties
    H = (c - multiply(C, G)) / alpha  # A⁻¹G, as G is the best for A
    slope = -alpha * multiply(H, H.T)
    while step * metric_penalty > 1e-14:
        trial = _metric_step(A, slope, step, metric_penalty, blocks)
        try:
            found, reached = _coefficients(*problem, trial, *penalties)
        except np.linalg.LinAlgError:
            reached = np.inf
        if reached <= value:
            return (trial, found, reached), min(2 * step, 0.25 / metric_penalty)
        step /= 2
    return now, step


def _sphere_weights(
    C: np.ndarray, c: np.ndarray, squares: float, G: np.ndarray, sizes: Sequence[int], radius: float
) -> np.ndarray:
    """The best weights of the answers of G, from moments: least squares on the sphere."""
    ends = np.cumsum(sizes)
    own = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    m = len(own)
    products = np.empty((m + 1, m + 1))
    for v, one in enumerate(own):
        products[v, m] = products[m, v] = float(np.sum(G[one] * c[one]))
        for x, other in enumerate(own):
            products[v, x] = float(np.sum(G[one] * multiply(C[one, other], G[other])))
    products[m, m] = squares
    values, vectors = eigen((products + products.T) / 2)
    root = np.sqrt(values)[:, None] * vectors.T
    return sphere_least_squares(root[:, :m], root[:, m], radius)


def _metric_step(
    A: np.ndarray, slope: np.ndarray, step: float, metric_penalty: float, blocks: Sequence[int] | None
) -> np.ndarray:
    if blocks is None:
        return (1 - 2 * step * metric_penalty) * A - step * slope
    moved = A - step * slope
    ends = np.cumsum(blocks)
    for v, stop in enumerate(ends):
        for w, end in enumerate(ends[: v + 1]):
            one, other = slice(stop - blocks[v], stop), slice(end - blocks[w], end)
            norm = float(np.linalg.norm(moved[one, other])) * (1 if v == w else np.sqrt(2))
            shrink = max(1 - step * metric_penalty / norm, 0.0) if norm else 0.0
            moved[one, other] *= shrink
            if v != w:
                moved[other, one] *= shrink
    return moved


def _coefficients(
    C: np.ndarray,
    c: np.ndarray,
    squares: float,
    A: np.ndarray,
    alpha: float,
    metric_penalty: float,
    blocks: Sequence[int] | None,
) -> tuple[np.ndarray, float]:
    """G = L(L'CL + λI)⁻¹L'c with A = LL', and the objective."""
    L = scipy.linalg.cholesky(A, lower=True, check_finite=False)
    inner = multiply(L.T, multiply(C, L))
    inner[np.diag_indices_from(inner)] += alpha
    H = scipy.linalg.solve(inner, multiply(L.T, c), assume_a="pos", check_finite=False)
    G = multiply(L, H)
    # the least over G of loss + λ tr(G'A⁻¹G) is ‖Y‖² - <G, c>
    return G, squares - float(np.sum(G * c)) + metric_penalty * metric_size(A, blocks)


def metric_size(A: np.ndarray, blocks: Sequence[int] | None) -> float:
    """‖A‖_F², or with `blocks` Σ_γ ‖A_γ‖_F over pairs of views."""
    if blocks is None:
        return float(np.sum(A**2))
    norms = block_norms(A, blocks)
    return float(np.sum(np.diag(norms)) + np.sqrt(2) * np.sum(np.triu(norms, 1)))


def block_norms(A: np.ndarray, blocks: Sequence[int]) -> np.ndarray:
    """‖A_vw‖_F for every pair of views."""
    ends = np.cumsum(blocks)
    own = [slice(end - size, end) for size, end in zip(blocks, ends, strict=True)]
    return np.array([[np.linalg.norm(A[one, other]) for other in own] for one in own])
