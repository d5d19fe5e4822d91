"""Learned metrics over views, solved in the coefficients alone (Huusari, Kadri and Capponi 2018, made exact).

    min_{A ⪰ 0, G} ‖Y - MG‖² + λ tr(G'A†G) + η‖A‖_F²

For G fixed the best metric is A = (λ/2η)^⅓ (GG')^⅓. What it leaves of the two penalties is κ Σ_i s_i(G)^(4/3), over the
singular values of G, with κ = 3 η^⅓ (λ/2)^⅔: convex in G. With one output that is κ‖g‖^(4/3), and g is the ridge
solution for a ρ that solves one equation. The singular values and left vectors of M serve every ρ.
"""

from typing import Any

import numpy as np

from .._backend import like, namespace, take_rows, to_numpy
from .certificates import Solution
from .design_matrix import MetricSpectrum
from .linalg import add_to_diagonal, cholesky, eigh_tridiagonal, forward, multiply, norm, solve

_LARGEST = 700.0  # the logarithm of the largest ρ


def kappa_of(alpha: float, metric_penalty: float) -> float:
    """Return κ = 3 η^⅓ (λ/2)^⅔."""
    return 3 * float(np.cbrt(metric_penalty)) * float(np.cbrt(alpha / 2)) ** 2


# -- one metric per output
class RootBounds:
    """Bounds on the root in x = log ρ of an increasing function whose slope is between 1 and 3, one or many at once."""

    def __init__(self, low: Any = -np.inf, high: Any = np.inf):
        self.low, self.high, self.before = low, high, np.inf

    def step(self, x: Any, excess: Any, slope: Any) -> Any:
        """Return the next x, from the function's value and slope at x.

        The slopes bound the root from any x. Newton's step stays between the bounds; where the last step has not halved
        the excess, the next x is their middle.
        """
        near, far = x - excess / 3, x - excess
        self.low = np.maximum(self.low, np.minimum(near, far))
        self.high = np.minimum(self.high, np.maximum(near, far))
        newton = np.clip(x - excess / slope, self.low, self.high)
        moved = np.where(np.abs(excess) > 0.5 * self.before, (self.low + self.high) / 2, newton)
        self.before = np.abs(excess)
        return moved


def metric_roots(e: np.ndarray, squares: Any, kappa: float | np.ndarray) -> np.ndarray:
    """Return ρ of each column: ρ³ ‖g(ρ)‖² = (2κ/3)³ with ‖g(ρ)‖² = Σ_i squares_i/(e_i + ρ)², squares = e z².

    In logarithms the left side rises with a slope between 1 and 3 (`RootBounds`). Columns of zeros have no root: ρ = ∞,
    and so has a column for which ρ is beyond floating point. `squares` may be on a device; ρ is NumPy's.
    """
    xp = namespace(squares)
    total = to_numpy(xp.sum(squares, axis=0))
    # Theorem 2 of docs/guide/exact_metric.md, in logarithms
    goal = 3 * np.log(2 * np.broadcast_to(np.asarray(kappa, dtype=np.float64), total.shape) / 3)
    t = np.full(total.shape, np.inf)
    start = goal - np.log(np.where(total > 0, total, 1.0))  # the root where e is small compared with ρ
    some = np.flatnonzero((total > 0) & (start < _LARGEST))
    if not len(some):
        return t
    own, aim, x = squares if len(some) == len(total) else take_rows(squares.T, some).T, goal[some], start[some]
    column, bounds = like(e[:, None], own), RootBounds()
    for _ in range(200):
        rho = np.exp(x)
        unit = np.maximum(rho, float(e.max(initial=0.0)))  # squares of 1/(e + ρ) could be below floating point
        inverse = like(unit[None, :], own) / (column + like(rho[None, :], own))
        parts = own * inverse * inverse
        size = to_numpy(xp.sum(parts, axis=0))
        excess = 3 * x + np.log(size) - 2 * np.log(unit) - aim
        moved = bounds.step(x, excess, 3 - 2 * rho / unit * to_numpy(xp.sum(parts * inverse, axis=0)) / size)
        done = np.abs(moved - x) <= 4 * np.finfo(float).eps * np.maximum(np.abs(x), 1)
        x = moved
        if done.all():
            break
    t[some] = np.exp(x)
    return t


def rank_one_metric(spectrum: MetricSpectrum, kappa: float) -> Solution:
    """Return S with G = M'VS of min Σ_p ‖y_p - M g_p‖² + κ‖g_p‖^(4/3) as ``x``."""
    e, Z = spectrum.values[:, None], spectrum.turned
    rho = metric_roots(spectrum.values, e * Z**2, kappa)
    S = Z / (e + rho)  # β = VS solves (MM' + ρI)β = y
    norms = np.sqrt(np.sum(e * S**2, axis=0))  # of the columns of G
    B = Z - e * S  # V'(Y - MG)
    losses = np.sum(B**2, axis=0) + spectrum.rest
    objective = losses + kappa * norms ** (4 / 3)
    products, fourth = np.sum(B * Z, axis=0) + spectrum.rest, np.sum(e * B**2, axis=0) ** 2
    gap = float(np.sum(np.maximum(objective - dual_value(products, losses, fourth, kappa), 0)))
    total = float(np.sum(objective))
    return Solution(S, gap, 1, "exact" if gap <= 1e-6 * abs(total) else "inexact", objective=total)


def direct_metric(A: Any, b: Any, kappa: float, *, moments: bool) -> Any:
    """Return x with (A + ρI)x = b for the ρ of one output, by a few Cholesky factors instead of a decomposition.

    With `moments` A = M'M, b = M'y and x = g; else A = MM', b = y and g = M'x. b and x are columns, all of one device.
    Lanczos' steps from b give a small spectrum whose root is near (Gauss quadrature of ‖g(ρ)‖²); Newton's steps on the
    whole matrix follow. Raises LinAlgError where ρ is so small that rounding of A would matter.
    """
    xp = namespace(A)
    least = 1e-12 * float(xp.linalg.trace(A))  # a smaller ρ would be lost in the rounding of A
    nodes, shares = _lanczos(A, to_numpy(b)[:, 0], 20)
    root = metric_roots(nodes, (shares if moments else nodes * shares)[:, None], kappa)[0]
    if np.isinf(root):
        return 0 * b
    x, goal = float(np.log(root)), 3 * np.log(2 * kappa / 3)
    bounds, near = RootBounds(), False
    for _ in range(100):
        rho = float(np.exp(x))
        if not rho > least:
            raise np.linalg.LinAlgError("ρ is not above rounding.")
        L = cholesky(add_to_diagonal(A + 0, rho))
        solution = solve(L, b)
        third = float(xp.sum(forward(L, solution) ** 2))  # b'(A + ρI)⁻³b
        second = float(xp.sum(solution**2))
        size = second if moments else float(xp.sum(solution * multiply(A, solution)))  # ‖g‖²
        if not size > np.finfo(float).tiny:
            raise np.linalg.LinAlgError("The squared norm is below floating point.")
        change = -2 * rho * third if moments else 2 * rho * (rho * third - second)  # of ‖g‖² in log ρ
        excess = 3 * x + np.log(size) - goal
        moved = float(bounds.step(x, excess, max(3 + change / size, 1.0)))
        if near or abs(moved - x) <= 1e-12 * max(abs(x), 1):
            break
        # Newton's steps square the excess: the next one leaves rounding, which no further step makes smaller.
        x, near = moved, abs(excess) <= 1e-6
    return solution


def _lanczos(A: Any, b: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the measure of b on the spectrum of A, by steps with full orthogonalization.

    Products with A are computed on its device; the vectors are NumPy's.
    """
    size = norm(b)
    if not size:
        return np.zeros(1), np.zeros(1)
    basis = [b / size]
    diagonal, off_diagonal = [], []
    for _ in range(min(steps, len(b))):
        v = to_numpy(multiply(A, like(basis[-1][:, None], A)))[:, 0]
        diagonal.append(float(basis[-1] @ v))
        whole = np.array(basis)
        for _ in range(2):  # once leaves rounding along the first vectors
            v = v - whole.T @ (whole @ v)
        length = norm(v)
        if length <= 1e-12 * max(diagonal[0], np.finfo(float).tiny):
            break
        off_diagonal.append(length)
        basis.append(v / length)
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[: len(diagonal) - 1])
    # Gauss quadrature: eigenvalues of the tridiagonal matrix, and squares of first components
    return np.maximum(values, 0), size**2 * vectors[0] ** 2


def dual_value(products: np.ndarray, losses: np.ndarray, fourth: np.ndarray, kappa: float) -> np.ndarray:
    """Return 2<B, Y> - ‖B‖² - (27/16κ³) Σ_i s_i(M'B)⁴ at the residuals B, or at a better multiple of them."""
    penalty = 27 / 16 * fourth / kappa**3
    t = np.ones_like(np.asarray(products, dtype=np.float64))
    for _ in range(3):  # Newton's steps on a concave function of t; each t gives a bound
        slope = 2 * products - 2 * t * losses - 4 * t**3 * penalty
        curve = 2 * losses + 12 * t**2 * penalty
        t = t + np.divide(slope, curve, out=np.zeros_like(t), where=curve > 0)
    return np.maximum(2 * t * products - t**2 * losses - t**4 * penalty, 2 * products - losses - penalty)
