"""Coupled views: m factorizations and one coupled system instead of an (Nm) x (Nm) matrix.

Each view v has a Gram matrix K_v over the rows present in it. The penalties are

    a Σ_v ‖f_v‖² + b Σ_i s_i Σ_{v<w} ‖f_v(x_i) - f_w(x_i)‖² + w Σ_v tr(f_v' L_v f_v),

and a loss acts on the combined outputs g(x_i) = ν_i Σ_v c_v f_v(x_i) of the labeled rows. With r, minus half
its gradient there (the dual residuals), the stationary point is

    f_v = E_v (c_v ν [r; 0] + b s Σ_w f_w),   E_v = K_v (aI + B_v K_v)⁻¹,   B_v = b diag(s_i m_i) + w L_v.

Here a = lγ_A, b = lγ_B, w = lγ_W; m_i counts the views present in row i, and ν_i = Σ|c| / Σ_present |c_v|. The labeled
rows come first. Dual residuals r lead to the outputs ν 𝒢(c) ν r there, with 𝒢(c) = Σ_vw c_v c_w G_vw, the *labeled
kernel*. Least squares is one solve with it, a support vector machine one quadratic program over it. Only that sum
depends on c, so c can change without a new factorization.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .._backend import cast, is_device_array, like, namespace, spread_rows, take_rows, to_numpy
from .design import GramDesign
from .linalg import (
    add_symmetric,
    add_to_diagonal,
    cholesky,
    cholesky_or_jitter,
    forward,
    gram_of,
    inner_product,
    largest_entry,
    multiply,
    solve,
)
from .responses import Factored, Formed, Plain
from .weights import Evaluation


class RidgeFit(NamedTuple):
    """Least squares for given weights of the views; all but the coefficients times l."""

    coefficients: list[np.ndarray]  # of each view
    value: float  # the objective
    residual: float  # of the optimality conditions
    bound: float  # on the distance of the objective from its optimum
    jitter: float  # the multiple of the identity that a factor needed


class Coupled(ABC):
    """Coupled views as the labeled rows see them: G_vw = δ_vw E_v + T_v'T_w, mixed by the weights c.

    Subclasses set the numbers of rows and views and which views the labeled rows have, and define `own` and `half`.
    """

    l: int
    m: int
    coupled: bool
    jitter = 0.0  # the multiple of the identity that a factor needed
    present: np.ndarray  # (l, m)
    _kept: tuple[list[np.ndarray | None], list[np.ndarray]] | None = None

    @abstractmethod
    def own(self, v: int) -> np.ndarray | None:
        """Return E_v between the labeled rows, zero where the view is missing; None where T has it all."""

    @abstractmethod
    def half(self, c: np.ndarray) -> np.ndarray:
        """Return Σ_v c_v T_v."""

    @abstractmethod
    def ridge_fit(self, c: np.ndarray, *targets: Any) -> RidgeFit:
        """Return the optimum of Σ u_i ‖y_i - g_i‖² + penalties.

        `targets` are y and u over Gram matrices; over features, whose sums have them, the directions of outputs.
        """

    @abstractmethod
    def evaluate_ridge(self, c: np.ndarray, *targets: Any) -> Evaluation:
        """Return the optimal value for c, its gradient in c and in cc'; all times l."""

    @abstractmethod
    def view_outputs(self, cs: Sequence[np.ndarray], *targets: Any) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return, for every c, the optimal value, the views' outputs and targets, as least squares takes them."""

    @abstractmethod
    def held_outputs(self, c: np.ndarray, *targets: Any) -> np.ndarray:
        """Return g at labeled rows whose targets are hidden, which are the last of `targets`."""

    @abstractmethod
    def coefficients(self, c: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
        """Return the coefficients of each view, for dual residuals r (l, P) of the labeled rows."""

    @abstractmethod
    def outputs(self, c: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[Any, np.ndarray, float]:
        """Return f_v at all rows where they are known, g at the labeled ones, and the penalties."""

    def keep(self) -> None:
        """Keep E_v and T_v of all views, so that a change of c needs no factorization."""
        if self._kept is None:
            owns = [self.own(v) for v in range(self.m)]
            owns = [np.asfortranarray(own) if isinstance(own, np.ndarray) else own for own in owns]
            self._kept = owns, [self.half(e) for e in np.eye(self.m)] if self.coupled else []

    def nu(self, c: np.ndarray) -> np.ndarray:
        """Return ν of the labeled rows."""
        return row_scale(self.present, c)

    def labeled_kernel(self, c: np.ndarray) -> np.ndarray:
        """Return ν 𝒢(c) ν."""
        total: Any = None
        for v in np.flatnonzero(c).tolist():
            own = self.own(v) if self._kept is None else self._kept[0][v]
            if own is not None:
                total = self._zeros_like(own) if total is None else total
                total = add_symmetric(total, own, c[v] ** 2)  # Σ c_v² E_v
        if self.coupled:
            if self._kept is None:
                mixed = self.half(c)  # T = Σ c_v T_v
            else:
                mixed = float(c[0]) * self._kept[1][0]
                for weight, half in zip(c[1:].tolist(), self._kept[1][1:], strict=True):
                    mixed += weight * half
            total = self._zeros_like(mixed) if total is None else total
            total += gram_of(mixed)  # T'T
        if not self.present.all():
            nu = self.nu(c)
            total *= like(nu[None, :], total)  # both sides by ν
            total *= like(nu[:, None], total)
        return total

    def _zeros_like(self, x: Any) -> Any:
        """Return zeros between the labeled rows, in double precision."""
        if not is_device_array(x):
            return np.zeros((self.l, self.l), order="F")
        xp = namespace(x)
        return xp.zeros((self.l, self.l), dtype=xp.float64, device=x.device)

    def responses(self, c: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return f_v at the labeled rows for dual residuals r, as (m, l, P), and <νr, G_vw νr> as (m, m); NumPy's."""
        return self.responses_together([c], [r])[0]

    def responses_together(
        self, cs: Sequence[np.ndarray], rs: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """`responses` for several c with their dual residuals: one matrix right-hand side for all of them."""
        self.keep()
        assert self._kept is not None
        owns, halves = self._kept
        # νr of all c, side by side
        scaled = namespace(*rs).concat([like(self.nu(c)[:, None], r) * r for c, r in zip(cs, rs, strict=True)], axis=1)
        P = rs[0].shape[1]
        parts = [slice(k * P, (k + 1) * P) for k in range(len(cs))]
        f = np.zeros((len(cs), self.m, *rs[0].shape))  # (c, view, row, output)
        inner = np.zeros((len(cs), self.m, self.m))
        for v, own in enumerate(owns):
            if own is None:
                continue
            moved = multiply(own, scaled)
            for k, part in enumerate(parts):
                inner[k, v, v] = inner_product(scaled[:, part], moved[:, part])
                f[k, v] = cs[k][v] * to_numpy(moved[:, part])
        if self.coupled:
            through = [multiply(half, scaled) for half in halves]
            total = namespace(scaled).zeros_like(through[0])
            for k, part in enumerate(parts):
                for v in range(self.m):
                    total[:, part] += float(cs[k][v]) * through[v][:, part]
                    for w in range(v + 1):
                        inner[k, v, w] += inner_product(through[v][:, part], through[w][:, part])
                        inner[k, w, v] = inner[k, v, w]
            for v, half in enumerate(halves):
                back = multiply(half.T, total)  # T_v'Tνr: what reaches view v through the coupling
                for k, part in enumerate(parts):
                    f[k, v] += to_numpy(back[:, part])
        return list(zip(f, inner, strict=True))


def ridge_residuals(kernel: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
    """Return r = u (y - g) at the optimum of Σ u_i ‖y_i - g_i‖² + penalties, and its value.

    (𝒢 + u⁻¹) r = Y, and the value is <Y, r>. The labeled kernel is overwritten.
    """
    r = solve(cholesky(add_to_diagonal(kernel, 1 / u)), Y)
    return r, inner_product(Y, r)


def weight_slopes(system: Coupled, c: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the gradient of the optimal value in c, and in cc' where every row has every view; both times l.

    By the envelope theorem only the loss is differentiated: -2 Σ_i <r_i, d(ν_i Σ_w c_w f_w(x_i))/dc>.
    """
    f, inner = system.responses(c, r)
    r = to_numpy(r)
    if system.present.all():
        return -2 * np.einsum("ip,vip->v", r, f), -inner
    return missing_slopes(c, system.present, np.einsum("ip,vip->iv", r, f)), None


def missing_slopes(c: np.ndarray, present: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the gradient where views are missing: ν depends on c too. `products` are <r_i, f_v(x_i)> as (l, m)."""
    sizes = np.abs(c)
    there = present @ sizes
    inverse = np.divide(1.0, there, out=np.zeros_like(there), where=there > 0)
    nu = sizes.sum() * inverse
    combined = np.where(present, products, 0) @ c  # <r_i, Σ_v c_v f_v(x_i)>
    change = np.sign(c) * (inverse[:, None] - present * (nu * inverse)[:, None])  # dν_i/dc_v
    return -2 * (nu @ np.where(present, products, 0) + combined @ change)


def row_scale(present: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return ν of rows: Σ|c| over the sum of the weights present."""
    there = present @ np.abs(c)
    return np.divide(np.abs(c).sum(), there, out=np.zeros(len(present)), where=there > 0)


class CoupledGrams(Coupled):
    """The penalties of all views over Gram matrices, factored.

    Parameters
    ----------
    design : GramDesign
        Gram matrices and, where there are graphs, Laplacians.
    ridge, agreement_penalty, graph_penalty : float
        a, b and w: l times the penalties.
    """

    def __init__(self, design: GramDesign, *, ridge: float, agreement_penalty: float = 0.0, graph_penalty: float = 0.0):
        self.design, self.l, self.m, self.grams, self.ridge = design, design.l, len(design.grams), design.grams, ridge
        self.rows, self.N = design.rows, len(design.s)
        present = design.present
        self.present = present[: self.l]
        self.known = self.present.sum(axis=0)  # labeled rows of each view
        self.count = present.sum(axis=1)
        self.coupled = agreement_penalty > 0 and self.m > 1
        self.shared = agreement_penalty * design.s  # bs
        self.views: list[Any] = []
        if not self.coupled:
            for v, K in enumerate(self.grams):
                L = design.laplacians[v] if graph_penalty else None
                with _of_view(v):
                    self.views.append(Plain(K, ridge) if L is None else Factored(K, ridge, 0.0, L, graph_penalty))
            return
        some = self.grams[0]
        dtype = np.float32 if design.single else np.float64
        self.q = like(np.sqrt(self.shared).astype(dtype)[:, None], some)
        H = like(
            np.zeros((self.N, self.N), dtype=dtype), some
        )  # I - q ΣE q = M^{-½} Σ_v (I - pE_vp) M^{-½}, M = diag(m_i)
        for v, (K, here) in enumerate(zip(self.grams, self.rows, strict=True)):
            L = design.laplacians[v] if graph_penalty else None
            diagonal = (self.shared * self.count)[here].astype(dtype)
            with _of_view(v):
                self.views.append(view := Formed(K, ridge, diagonal, L, graph_penalty))
            H = _add_at(H, view.complement, here, here)
            del view.complement  # only H needs it
        scale = (1 / np.sqrt(self.count)).astype(dtype)
        H *= like(scale[None, :], some)
        H *= like(scale[:, None], some)
        self.H, self.jitter = cholesky_or_jitter(H)

    def own(self, v: int) -> np.ndarray:
        """Return E_v between the labeled rows, zero where the view is missing."""
        block = self.views[v].block(int(self.known[v]))  # labeled rows come first in each view too
        if block.shape[0] == self.l:
            return block
        here = self.rows[v][: self.known[v]]
        padded = np.zeros((self.l, self.l), dtype=np.float32 if self.design.single else np.float64)
        return _add_at(like(padded, block), block, here, here)

    def half(self, c: np.ndarray) -> np.ndarray:
        """Return Σ_v c_v T_v, T_v = H^{-½} q E_v[:, labeled]."""
        dtype = np.float32 if self.design.single else np.float64
        across = like(np.zeros((self.N, self.l), dtype=dtype, order="F"), self.q)
        for v in np.flatnonzero(c).tolist():
            here, columns = self.rows[v], self.views[v].E[:, : int(self.known[v])]
            across = _add_at(across, float(c[v]) * columns, here, here[: self.known[v]])
        across *= self.q
        return forward(self.H, across)

    def ridge_fit(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> RidgeFit:
        """Return the optimum of Σ u_i ‖y_i - g_i‖² + penalties, measured at the coefficients themselves."""
        r, _ = ridge_residuals(self.labeled_kernel(c), Y, u)
        coefficients = self.coefficients(c, r)
        f, g, penalty = self.outputs(c, coefficients)
        loss = like(u[:, None], Y) * (Y - g)
        rest, bound = self.optimality(c, coefficients, f, loss)
        value = inner_product(loss, Y - g) + penalty
        return RidgeFit(coefficients, value, rest, bound, self.jitter)

    def evaluate_ridge(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> Evaluation:
        """Return the optimal value for c, its gradient in c and in cc'; all times l."""
        r, value = ridge_residuals(self.labeled_kernel(c), Y, u)
        return value, *weight_slopes(self, c, r)

    def _shown_residuals(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Return r and the optimal value where labeled rows of weight 0 have no loss."""
        kernel, shown = self.labeled_kernel(c), np.flatnonzero(u)
        if len(shown) < self.l:
            kernel = take_rows(take_rows(kernel, shown).T, shown)  # symmetric
        r, value = ridge_residuals(kernel, take_rows(Y, shown), u[shown])
        return spread_rows(r, shown, self.l), value

    def view_outputs(
        self, cs: Sequence[np.ndarray], Y: np.ndarray, u: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return, for every c, the optimal value, each view's outputs as columns, and the targets, both times √u."""
        fits = [self._shown_residuals(c, Y, u) for c in cs]
        shown = np.flatnonzero(u)
        weights = np.sqrt(u[shown])[:, None]
        targets = (weights * to_numpy(Y)[shown]).ravel()
        parts = []
        for c, (_, value), (f, _) in zip(cs, fits, self.responses_together(cs, [r for r, _ in fits]), strict=True):
            weighted = f[:, shown] * (self.nu(c)[shown, None] * weights)
            parts.append((value, weighted.reshape(len(c), -1).T, targets))
        return parts

    def held_outputs(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Return g at labeled rows whose weight in `u` is 0, learned from the others."""
        r, _ = self._shown_residuals(c, Y, u)
        return to_numpy(multiply(take_rows(self.labeled_kernel(c), hidden), r))

    def coefficients(self, c: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
        """Return a_v with f_v = K_v a_v, for dual residuals r (l, P) of the labeled rows."""
        return self.respond(self._view_residuals(c, r))

    def respond(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """Return a_v for what drives each view's function, here c_v ν r."""
        if self.coupled:
            total = self._summed([view.apply(own) for view, own in zip(self.views, parts, strict=True)])
            total = self.q * solve(self.H, self.q * total)  # b s Σ_w f_w
            parts = [own + take_rows(total, here) for own, here in zip(parts, self.rows, strict=True)]
        return [view.coefficients(own) for view, own in zip(self.views, parts, strict=True)]

    def values(self, coefficients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return f_v = K_v a_v at all rows."""
        return [multiply(K, a) for K, a in zip(self.grams, coefficients, strict=True)]

    def slopes(self, coefficients: Sequence[np.ndarray], f: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return a a_v + B_v f_v - b s Σ_w f_w: half the gradient of the penalties is K_v times it, per view."""
        total = like(self.shared[:, None], f[0]) * self._summed(f) if self.coupled else None
        parts = [self.ridge * a + view.penalize(own) for a, view, own in zip(coefficients, self.views, f, strict=True)]
        if total is None:
            return parts
        return [part - take_rows(total, here) for part, here in zip(parts, self.rows, strict=True)]

    def gap_bound(self, rests: Sequence[np.ndarray]) -> float:
        """Return Σ_v tr(ρ_v'K_vρ_v)/a, for what is left of the optimality conditions.

        It bounds the distance from the optimum: the objective, times l, is strongly convex.
        """
        parts = [inner_product(rest, multiply(K, rest)) for K, rest in zip(self.grams, rests, strict=True)]
        return max(float(np.sum(parts)) / self.ridge, 0.0)

    def outputs(self, c: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray, float]:
        """Return f_v = K_v a_v at all rows, g at the labeled ones, and the penalties, all from the coefficients."""
        f = self.values(coefficients)
        g: Any = 0.0
        for v, here in enumerate(self.rows):
            k = int(self.known[v])
            g = g + spread_rows(float(c[v]) * f[v][:k, :], here[:k], self.l)
        # Σ_{v<w} ‖f_v - f_w‖² = m_i Σ_v ‖f_v‖² - ‖Σ_v f_v‖², and B has the first part
        penalty = sum(inner_product(own, slope) for own, slope in zip(f, self.slopes(coefficients, f), strict=True))
        return f, like(self.nu(c)[:, None], f[0]) * g, penalty

    def optimality(
        self, c: np.ndarray, coefficients: Sequence[np.ndarray], f: Sequence[np.ndarray], r: np.ndarray
    ) -> tuple[float, float]:
        """Return how far f_v = K_v a_v is from stationary, and a bound on its distance from the optimum (both times l).

        With the dual residuals r at f, ρ_v are the slopes of the penalties minus c_v ν r.
        """
        slopes = self.slopes(coefficients, f)
        rests = [slope - wanted for slope, wanted in zip(slopes, self._view_residuals(c, r), strict=True)]
        return max(largest_entry(rest) for rest in rests), self.gap_bound(rests)

    def _view_residuals(self, c: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
        """Return c_v ν r on the rows of each view."""
        scaled = like(self.nu(c)[:, None], r) * r
        parts = []
        for v, here in enumerate(self.rows):
            first = np.arange(self.known[v])  # labeled rows come first in each view too
            parts.append(spread_rows(float(c[v]) * take_rows(scaled, here[first]), first, len(here)))
        return parts

    def _summed(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        total: Any = 0.0
        for part, here in zip(parts, self.rows, strict=True):
            total = total + spread_rows(part, here, self.N)
        return total


def _add_at(A: Any, B: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return A with B added at some rows and columns; in place for NumPy."""
    if not is_device_array(A):
        A[np.ix_(rows, columns) if B.shape != A.shape else ...] += B
        return A
    wide = spread_rows(spread_rows(B, rows, A.shape[0]).T, columns, A.shape[1])
    return A + cast(wide.T, A.dtype)


@contextmanager
def _of_view(v: int) -> Iterator[None]:
    """Say which view a failed factorization belongs to."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise NotPositive(v) from error


class NotPositive(np.linalg.LinAlgError):
    """A view's matrices are not positive semi-definite; `view` is its position."""

    def __init__(self, view: int):
        super().__init__(f"The matrices of view {view} are not positive semi-definite.")
        self.view = view
