"""Weights of kernels, learned: the minimum of J(d) over d >= 0 with a penalty on d.

    J(d) = min_G ‖Y - Σ_v M_v G_v‖² + Σ_v ‖G_v‖²/d_v = tr Y'(I + Σ_v d_v D_v)⁻¹Y,   D_v = M_v M_v',

is convex in d. A penalty on the norms n_v = ‖G_v‖ that is concave in their squares is the minimum over d of Σ n_v²/d_v
plus a convex function of d. Both lp-norm multiple kernels and the block-sparse metric are of this kind, so one variable
per view is left. Newton steps on J, with the penalty on d unchanged, take one Cholesky factor each; the gap is that of
G.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from .._backend import is_device_array, like, namespace, to_numpy
from .._progress import report_progress
from .certificates import Solution
from .design import view_columns
from .linalg import (
    add_to_diagonal,
    cholesky,
    eigh_positive,
    forward,
    gram_of,
    largest_eigenvalue,
    multiply,
    solve,
    solve_lu,
)

_FEW = 64  # columns that an estimated Hessian is made of
# C = _A I + _B 11' of Theorem 4 in docs/guide/exact_metric.md, and Q(n) = n'Cn
_A, _B = 1 - np.sqrt(0.5), np.sqrt(0.5)


# -- J
@dataclass
class Fitted:
    """J at d, with the residuals B."""

    value: float  # J = <B, Y>
    loss: float  # ‖B‖²
    descent: np.ndarray  # ‖M_v'B‖² of each view: minus the gradient of J
    hessian: np.ndarray

    def norms(self, d: np.ndarray) -> np.ndarray:
        """Return n_v = ‖G_v‖ with G_v = d_v M_v'B."""
        return d * np.sqrt(self.descent)


class GramFit:
    """J over n x n matrices D_v; a solution is B. Matrices and targets are of one device."""

    def __init__(self, kernels: Sequence[Any], Y: Any):
        self.kernels, self.targets, self.Y = kernels, Y, Y
        if Y.shape[1] > Y.shape[0]:  # J depends on YY' alone
            values, vectors = eigh_positive(multiply(Y, Y.T))
            self.Y = vectors * like(np.sqrt(values)[None, :], vectors)
        self.signs = None
        if self.Y.shape[1] > 3 * _FEW:  # of many columns the Hessian is estimated, by sums with random signs
            rng = np.random.default_rng(0)
            self.signs = rng.choice([-1.0, 1.0], size=(self.Y.shape[1], _FEW)) / np.sqrt(_FEW)

    def __call__(self, d: np.ndarray) -> Fitted:
        """Return J and its derivatives."""
        L, xp = self._factor(d), namespace(self.Y)
        B = solve(L, self.Y)
        value, loss = float(xp.sum(B * self.Y)), float(xp.sum(B**2))
        if self.signs is None:
            moved = [multiply(D, B) for D in self.kernels]
            descent = np.array([float(xp.sum(B * one)) for one in moved])
        else:
            T = multiply(B, B.T)  # the gradient is exact, <D_v, BB'>
            descent = np.array([_inner(D, T) for D in self.kernels])
            few = multiply(B, like(self.signs, B))
            moved = [multiply(D, few) for D in self.kernels]
        halves = [forward(L, one) for one in moved]  # J_vw = 2 <D_vB, (I + Σ d D)⁻¹ D_wB>
        return Fitted(value, loss, np.maximum(descent, 0), 2 * _inner_products(halves))

    def solve(self, d: np.ndarray) -> Any:
        """Return B = (I + Σ_v d_v D_v)⁻¹Y, with which G_v = d_v M_v'B."""
        return solve(self._factor(d), self.targets)

    def _factor(self, d: np.ndarray) -> Any:
        if is_device_array(self.Y):
            whole = sum(float(weight) * D for weight, D in zip(d, self.kernels, strict=True))
            return cholesky(add_to_diagonal(whole, 1.0))
        total, part = (np.zeros((len(self.Y), len(self.Y)), order="F") for _ in range(2))
        for weight, D in zip(d, self.kernels, strict=True):
            if weight:
                total += np.multiply(D.T if D.flags.c_contiguous else D, weight, out=part)  # in the order of both
        return cholesky(add_to_diagonal(total, 1.0))

    def at_zero(self) -> Fitted:
        """Return J at d = 0."""
        xp = namespace(self.Y)
        squares = float(xp.sum(self.Y**2))
        descent = np.array([float(xp.sum(self.Y * multiply(D, self.Y))) for D in self.kernels])
        return Fitted(squares, squares, np.maximum(descent, 0), np.empty(0))


class MomentFit:
    """J over the moments C = M'M, c = M'Y and ‖Y‖² of features; a solution is G. Both moments are of one device."""

    def __init__(self, C: Any, c: Any, squares: float, sizes: Sequence[int]):
        self.C, self.c, self.squares = C, c, squares
        self.sizes, self.columns = sizes, view_columns(sizes)

    def _factor(self, d: np.ndarray) -> tuple[Any, Any]:
        """Return √d of each coefficient as a column, and the factor of I + Δ½CΔ½."""
        root = like(np.repeat(np.sqrt(d), self.sizes)[:, None], self.C)
        return root, cholesky(add_to_diagonal(root * self.C * root.T, 1.0))

    def __call__(self, d: np.ndarray) -> Fitted:
        """Return J and its derivatives."""
        (root, L), xp = self._factor(d), namespace(self.C)
        G = root * solve(L, root * self.c)
        U = self.c - multiply(self.C, G)  # M'B
        parts = [U[own, :] for own in self.columns]
        descent = np.array([float(xp.sum(part**2)) for part in parts])
        value = self.squares - float(xp.sum(G * self.c))
        loss = value - float(xp.sum(G * U))  # ‖B‖² = <B, Y> - <G, M'B>
        moved = [multiply(self.C[:, own], part) for own, part in zip(self.columns, parts, strict=True)]  # M'D_vB
        halves = [forward(L, root * one) for one in moved]
        # <D_vB, D_wB>; Woodbury's identity gives the rest
        pairs = list(zip(self.columns, parts, strict=True))
        whole = np.array([[float(xp.sum(part * one[own, :])) for own, part in pairs] for one in moved])
        return Fitted(value, max(loss, 0.0), descent, whole + whole.T - 2 * _inner_products(halves))

    def solve(self, d: np.ndarray) -> Any:
        """Return G."""
        root, L = self._factor(d)
        return root * solve(L, root * self.c)

    def at_zero(self) -> Fitted:
        """Return J at d = 0."""
        xp = namespace(self.c)
        descent = np.array([float(xp.sum(self.c[own, :] ** 2)) for own in self.columns])
        return Fitted(self.squares, self.squares, descent, np.empty(0))


def _inner(A: Any, B: Any) -> float:
    return float(namespace(A).sum(A * B)) if is_device_array(A) else float(np.vdot(A, B))


def _inner_products(matrices: Sequence[Any]) -> np.ndarray:
    """Return the inner products of matrices of one shape."""
    xp = namespace(*matrices)
    return to_numpy(gram_of(xp.stack([xp.reshape(one, (-1,)) for one in matrices], axis=1)))


# -- penalties
class ViewPenalty(ABC):
    """A penalty Ω(n) on the norms of the views' parts, in its two forms: on n and on d."""

    @abstractmethod
    def norm(self, n: np.ndarray) -> float:
        """Return Ω(n)."""

    @abstractmethod
    def best(self, n: np.ndarray) -> np.ndarray:
        """Return the d at which Σ n_v²/d_v plus the penalty on d equals Ω(n)."""

    @abstractmethod
    def on_weights(self, d: np.ndarray) -> float:
        """Return the penalty on d; 0 where it is a constraint."""

    @abstractmethod
    def dual(self, fitted: Fitted) -> float:
        """Return a lower bound on the optimum, from the residuals."""

    @abstractmethod
    def step(self, d: np.ndarray, start: np.ndarray, slope: np.ndarray, hessian: np.ndarray, size: float) -> np.ndarray:
        """Return the minimizer of slope'(x - d) + ½(x - d)'hessian(x - d) plus the penalty on x >= 0."""


class BlockNorm(ViewPenalty):
    """Ω(n) = 2√(λη) √((1 - 1/√2) Σ n_v² + (1/√2)(Σ n_v)²): λg'A†g + η Σ_γ ‖A_γ‖ at the best A.

    On d it is λη τ(d), where τ is the largest eigenvalue of (1 - 1/√2) diag(d) + (1/√2) √d√d'. τ is convex: {τ <= 1} is
    {d: Σ d_v/(√2 - (√2 - 1) d_v) <= 1}.
    """

    def __init__(self, alpha: float, metric_penalty: float):
        self.product = alpha * metric_penalty

    def norm(self, n: np.ndarray) -> float:
        """Return Ω(n)."""
        return 2 * float(np.sqrt(self.product * self.squared(n)))

    @staticmethod
    def squared(n: np.ndarray) -> float:
        """Return Q(n), the expression under the second root."""
        return float(_A * np.sum(n**2) + _B * np.sum(n) ** 2)

    def best(self, n: np.ndarray) -> np.ndarray:
        """Return the d at which Σ n_v²/d_v + λη τ(d) = Ω(n)."""
        if not n.any():
            return n
        # the multiple of n_v/(Cn)_v that makes the bound tight
        return np.sqrt(self.squared(n) / self.product) * n / (_A * n + _B * n.sum())

    @staticmethod
    def _tau(d: np.ndarray) -> float:
        root = np.sqrt(d)
        return largest_eigenvalue(_A * np.diag(d) + _B * np.outer(root, root))

    def on_weights(self, d: np.ndarray) -> float:
        """Return λη τ(d)."""
        return self.product * self._tau(d)

    def _slope(self, d: np.ndarray) -> np.ndarray:
        tau = self._tau(d)
        if tau < 1e-280:  # τ has a corner at 0; this is one of its slopes there
            return np.full_like(d, self.product)
        x = d / tau  # on the level set τ = 1
        h = _B / (1 - _A * x) ** 2  # its normal
        return self.product * h / float(h @ x)  # τ is homogeneous, so its gradient times d is τ(d)

    def room(self, u: np.ndarray) -> float:
        """Return the largest t with the dual norm of tu at most 1."""
        if not np.isfinite(u).all():
            raise FloatingPointError("norms are not finite")
        u = np.sort(u)[::-1]
        k, sums, squares = np.arange(1, len(u) + 1), np.cumsum(u), np.cumsum(u**2)
        # over k views C⁻¹ is (I - _B 11'/(_A + k _B))/_A: the maximizer keeps the k largest u while it is positive
        last = int(np.flatnonzero(u >= _B * sums / (_A + k * _B))[-1])
        inside = (squares[last] - _B * sums[last] ** 2 / (_A + k[last] * _B)) / _A
        return 2 * float(np.sqrt(self.product / inside)) if inside > 0 else np.inf

    def slopes(self, n: np.ndarray) -> tuple[float, np.ndarray]:
        """Return how long 2M_v'B may be where n_v = 0, and its multiple of g_v elsewhere."""
        scale = 2 * float(np.sqrt(self.product / self.squared(n)))
        within = scale * _B * float(n.sum())
        return within, np.divide(scale * _A * n + within, n, out=np.zeros_like(n), where=n > 0)

    def dual(self, fitted: Fitted) -> float:
        """Return 2t<B, Y> - t²‖B‖², with t such that the dual norm of 2tM'B is at most 1."""
        best = fitted.value / fitted.loss if fitted.loss else 1.0  # the t without a constraint
        room = self.room(2 * np.sqrt(fitted.descent))
        t = max(min(best, room), -room)  # <B, Y> is negative for coefficients that are too large
        return 2 * t * fitted.value - t**2 * fitted.loss

    def step(self, d: np.ndarray, start: np.ndarray, slope: np.ndarray, hessian: np.ndarray, size: float) -> np.ndarray:
        """Return the minimizer of the model plus λη τ(x)."""

        def model(x: np.ndarray) -> tuple[float, np.ndarray]:
            moved = x - d
            value = slope @ moved + moved @ hessian @ moved / 2 + self.on_weights(x)
            return value / size, (slope + hessian @ moved + self._slope(x)) / size

        return _minimize_bounded(model, start)


class SquaredNorm(ViewPenalty):
    """Ω(n) = λ (Σ n_v^q)^(2/q), q = 2p/(p + 1): the norms of lp-norm multiple kernels, ‖d‖_p <= 1/λ.

    p = 1 is the square of a sum of norms, which leaves views out; p = ∞ is the sum of all kernels.
    """

    def __init__(self, alpha: float, p: float):
        self.alpha, self.p = alpha, p

    def norm(self, n: np.ndarray) -> float:
        """Return Ω(n)."""
        q = 2.0 if np.isinf(self.p) else 2 * self.p / (self.p + 1)
        return self.alpha * _lp_norm(n, q) ** 2

    def _length(self, d: np.ndarray) -> float:
        return self.alpha * _lp_norm(d, self.p)

    def best(self, n: np.ndarray) -> np.ndarray:
        """Return d in proportion to n^(2/(p + 1)), of the longest length allowed (Kloft et al. 2011)."""
        if not n.any():
            return n
        d = np.ones_like(n) if np.isinf(self.p) else (n / n.max()) ** (2 / (self.p + 1))
        return d / self._length(d)

    def on_weights(self, d: np.ndarray) -> float:
        """Return 0: the length of d is given."""
        return 0.0

    def dual(self, fitted: Fitted) -> float:
        """Return <B, Y>² over ‖B‖² + ‖(‖M_v'B‖²)_v‖_p*/λ: the dual at the best multiple of B."""
        conjugate = np.inf if self.p == 1 else 1.0 if np.isinf(self.p) else self.p / (self.p - 1)
        below = fitted.loss + _lp_norm(fitted.descent, conjugate) / self.alpha
        return fitted.value**2 / below if below else 0.0

    def step(self, d: np.ndarray, start: np.ndarray, slope: np.ndarray, hessian: np.ndarray, size: float) -> np.ndarray:
        """Return the minimizer of the model over ‖x‖_p <= 1/λ."""
        if np.isinf(self.p):
            return self.best(np.ones_like(d))  # J falls in d, so every d_v is 1/λ

        def model(x: np.ndarray) -> tuple[float, np.ndarray]:
            moved = x - d
            return (slope @ moved + moved @ hessian @ moved / 2) / size, (slope + hessian @ moved) / size

        def room(x: np.ndarray) -> tuple[float, np.ndarray]:
            length = max(self._length(x), np.finfo(float).tiny)
            return 1 - length, -self.alpha * (self.alpha * np.maximum(x, 0) / length) ** (self.p - 1)

        x = _minimize_bounded(model, start, room)
        return x / max(self._length(x), np.finfo(float).tiny)  # J falls in d: no length is left unused


def _lp_norm(x: np.ndarray, p: float) -> float:
    """Return ‖x‖_p for any p, without overflow."""
    largest = float(np.abs(x).max())
    if not largest or np.isinf(p):
        return largest
    return largest * float(np.sum(np.abs(x / largest) ** p)) ** (1 / p)


def _minimize_bounded(model: Any, start: np.ndarray, room: Any = None) -> np.ndarray:
    """Return the minimizer of a small convex function over x >= 0, and over room(x) >= 0 where it is given.

    Both functions return a value and a gradient. Sequential quadratic programs find which x are 0, Newton steps on the
    others the last digits.
    """
    unit = np.maximum(start, 1e-3 * float(start.max()))  # makes variables and gradients of size 1

    def scaled(function: Any) -> Any:
        def of(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = function(x * unit)
            return value, slope * unit

        return of

    target, inside = scaled(model), None if room is None else scaled(room)
    limits = []
    if inside is not None:
        limits = [{"type": "ineq", "fun": lambda x: inside(x)[0], "jac": lambda x: inside(x)[1]}]
    minimum = scipy.optimize.minimize(
        target,
        start / unit,
        jac=True,
        bounds=[(0, None)] * len(start),
        constraints=limits,
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 200},
    )
    x = np.maximum(minimum.x, 0)
    x[x < 1e-10 * x.max()] = 0.0  # zero but for rounding
    return _polish(target, inside, x) * unit


def _polish(target: Any, inside: Any, x: np.ndarray) -> np.ndarray:
    """Take Newton steps on the optimality conditions of the x above 0; differences give derivatives of gradients."""
    active = np.flatnonzero(x > 0)
    k = len(active)
    if k == 0:
        return x

    def conditions(y: np.ndarray) -> np.ndarray:
        whole = np.zeros_like(x)
        whole[active] = y[:k]
        slope = target(whole)[1][active]
        if inside is None:
            return slope
        value, normal = inside(whole)
        return np.append(slope - y[k] * normal[active], value)

    y = x[active]
    if inside is not None:
        normal = inside(x)[1][active]
        # the multiplier of the constraint, by least squares
        y = np.append(y, float(target(x)[1][active] @ normal) / float(normal @ normal))
    now = conditions(y)
    for _ in range(4):
        steps = 1e-6 * np.where(y == 0, 1.0, np.abs(y))  # none leaves x > 0
        jacobian = np.stack([(conditions(y + e) - conditions(y - e)) / (2 * e.max()) for e in np.diag(steps)], axis=1)
        try:
            moved = y - solve_lu(jacobian, now)
        except np.linalg.LinAlgError:
            break
        if not (np.isfinite(moved).all() and (moved[:k] > 0).all()):
            break
        after = conditions(moved)
        if np.abs(after).max() >= np.abs(now).max():
            break
        y, now = moved, after
    polished = np.zeros_like(x)
    polished[active] = y[:k]
    return polished


# -- the solver
def _distance(penalty: ViewPenalty, fitted: Fitted, d: np.ndarray) -> float:
    """Return how far d is from the best one for the norms that follow from it."""
    return float(np.abs(penalty.best(fitted.norms(d)) - d).max())


def learn_kernel_weights(
    fit: GramFit | MomentFit, penalty: ViewPenalty, start: np.ndarray, *, tol: float, max_iter: int
) -> Solution:
    """Take Newton steps on J with the penalty on d unchanged, until the gap of G is at most `tol` of the objective.

    A step that does not lower the objective is halved toward the d before it. If even that fails, d becomes the best
    one for the norms at hand, which never raises the objective (the published alternation). After the tolerance is met
    one more step follows: near the optimum it squares the remaining error. Steps there count by their distance to the
    best d for the norms at hand, since differences of values are rounding. A good start saves steps.
    """
    zero = fit.at_zero()
    if penalty.dual(zero) >= zero.loss * (1 - 1e-15):  # G = 0 is the optimum
        return Solution(np.zeros_like(start), 0.0, 0, "converged", objective=zero.loss)
    for _ in range(2):  # the alternation finds the right size from any start
        better = penalty.best(fit(start).norms(start))
        start = better if better.any() else start
    d, now = start, fit(start)
    objective, bound = now.loss + penalty.norm(now.norms(d)), penalty.dual(now)
    n_iter = 0
    while True:
        enough = objective - bound <= tol * abs(objective)
        report_progress(n_iter, objective - bound)
        if n_iter >= max_iter or not now.norms(d).any():
            break
        n_iter += 1
        alternated = penalty.best(now.norms(d))
        before = now.value + penalty.on_weights(d)
        # views with equal kernels make it singular
        hessian = now.hessian + 1e-13 * np.trace(now.hessian) * np.eye(len(d))
        # start where the alternation leads, with all d above 0, so that a view left out may come back
        goal = penalty.step(d, np.maximum(alternated, 1e-9 * alternated.max()), -now.descent, hessian, before)
        rounding = 1e-11 * abs(objective)
        near = objective - bound <= max(tol * abs(objective), rounding)
        moved = None
        if goal.max() < 0.1 * d.max():  # the model of J does not hold so far down
            goal = goal + 0.1 * d
        for share in (1.0,) if enough else (1.0, 0.5, 0.25, 0.05, 0.0):  # 0 stands for the alternation
            trial = d + share * (goal - d) if share else alternated
            after = fit(trial)
            value = after.value + penalty.on_weights(trial)  # what steps in d lower
            reached = after.loss + penalty.norm(after.norms(trial))  # the objective at G itself, for the gap
            dual = max(bound, penalty.dual(after))
            if near:  # differences of values may be rounding; at the optimum d is the best one for its norms
                nearer = _distance(penalty, after, trial) < _distance(penalty, now, d)
                accepted = nearer and reached - dual <= objective - bound + rounding and value <= before + rounding
            else:
                accepted = value < before or (reached - dual < objective - bound and value <= before * (1 + 1e-12))
            if accepted:
                moved = trial, after, reached, dual
                break
        if moved is None:
            break
        d, now, objective, bound = moved
        if enough:
            break
    status = "converged" if enough else "max_iter" if n_iter >= max_iter else "stalled"
    gap = max(objective - bound, 0.0)
    return Solution(d, gap, n_iter, status, objective=objective)
