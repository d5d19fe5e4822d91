"""The data of metric learning, over Gram matrices or features: M for given weights of the views, and what is fixed.

    M = N [w_1 B_1 .. w_m B_m],   B_v = K_v S½ over Gram matrices, Φ_v over features,

rows times √u, the weights of their losses, N the factors of rows with views absent, S the weights of the samples: a
weight of two is a sample that stands twice. Coefficients are those of M; prediction takes S½G.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..solvers.coupled import missing_slopes, row_scale
from ..solvers.kernel_weights import GramFit
from ..solvers.linalg import add_to_diagonal, cholesky, forward, gram_of, multiply, solve
from ..solvers.metric import Spectrum, direct_metric, eigen, rank_one_metric, within_reach
from ..views.estimator import presence
from ._frame import Features, Grams, KernelLearner, Rows


@dataclass
class Measured:
    """What coefficients G come to: the loss ‖B‖² and <B, Y> by column, M'B, B'_vB by view, and the slope in w."""

    losses: np.ndarray  # (P,)
    products: np.ndarray  # (P,)
    pulls: np.ndarray  # M'B, (q, P)
    bare: list[np.ndarray]  # the same without w, by view
    slope: np.ndarray  # (m,), of the loss


@dataclass
class FixedSolution:
    """G = A M'B for a fixed metric, with the penalty λ tr(B'MAM'B), and as a matrix over views the same without w."""

    coefficients: list[np.ndarray]
    losses: np.ndarray
    products: np.ndarray
    penalties: np.ndarray
    between_views: np.ndarray  # (m, m): Σ_p β'B_v A_vw B_w'β
    slope: np.ndarray


class MetricData(ABC):
    """M for any weights of the views."""

    form: Grams | Features
    sizes: list[int]

    def __init__(self, rows: Rows, Y: np.ndarray, u: np.ndarray):
        self.present = presence(rows.X)
        self.complete = bool(self.present.all())
        self.u_root = np.sqrt(u)
        self.s = rows.s
        self.Y = self.u_root[:, None] * Y

    def nu(self, w: np.ndarray) -> np.ndarray:
        """The factors of rows with views absent."""
        return np.ones(len(self.present)) if self.complete else row_scale(self.present, w)

    def parts(self) -> list[slice]:
        """The places of the views among the coefficients."""
        ends = np.cumsum(self.sizes)
        return [slice(int(end - size), int(end)) for size, end in zip(self.sizes, ends, strict=True)]

    @abstractmethod
    def spectrum(self, w: np.ndarray) -> Spectrum:
        """The singular values and vectors of M."""

    @abstractmethod
    def direct(self, w: np.ndarray, kappa: float) -> np.ndarray:
        """G of one metric for each output, where they are few."""

    @abstractmethod
    def left_vectors(self, w: np.ndarray, A: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The squared singular values of M, or of MA½ for a fixed metric, and the left vectors."""

    @abstractmethod
    def fits(self, w: np.ndarray) -> Iterator[Any]:
        """J of every output."""

    @abstractmethod
    def weighed(self, fit: Any, w: np.ndarray, d: np.ndarray, p: int) -> np.ndarray:
        """The coefficients of output p for weights d of the views' kernels."""

    @abstractmethod
    def own_inverse(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The diagonal of (I + Σ_v d_v D_v)⁻¹."""

    @abstractmethod
    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M'M and M'Y."""

    @abstractmethod
    def measure(self, w: np.ndarray, G: np.ndarray) -> Measured:
        """What coefficients come to."""

    @abstractmethod
    def residuals(self, w: np.ndarray, G: np.ndarray) -> np.ndarray:
        """B = Y - MG."""

    @abstractmethod
    def fixed(self, w: np.ndarray, A: Any, alpha: float) -> FixedSolution:
        """The ridge solution for a metric that is "diagonal", "covariance" or a matrix."""

    @abstractmethod
    def for_prediction(self, G: np.ndarray) -> list[np.ndarray]:
        """S½G by view."""

    @abstractmethod
    def squared_size(self) -> float:
        """Σ_v ‖B_v‖_F², samples counted by their weights: Σ_v tr(K_v²) over Gram matrices."""

    @abstractmethod
    def functions(self, w: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each output, and the squared norms of the views' functions as (m, P)."""

    def slope_of(self, w: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """The gradient of the loss in w, from <r_i, f_v(x_i)> as (n, m)."""
        return -2 * pulls.sum(axis=0) if self.complete else missing_slopes(w, self.present, pulls)


class GramData(MetricData):
    """Over Gram matrices of the rows present in each view."""

    def __init__(self, learner: KernelLearner, rows: Rows, Y: np.ndarray, u: np.ndarray):
        super().__init__(rows, Y, u)
        self.form = form = Grams(learner, rows, double=True)
        self.grams, self.rows = form.grams, form.rows
        self.sizes = [len(K) for K in self.grams]
        self.n = len(rows.order)
        self.s_roots = [np.sqrt(self.s[here]) for here in self.rows]
        self._squared: list[np.ndarray] | None = None
        self._eigen: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def _squares(self) -> list[np.ndarray]:
        """√u K_v S K_v √u."""
        if self._squared is None:
            self._squared = []
            for K, here, s in zip(self.grams, self.rows, self.s_roots, strict=True):
                square = gram_of(K if np.all(s == 1) else s[:, None] * K)
                u = self.u_root[here]
                self._squared.append(square if np.all(u == 1) else u[:, None] * square * u)
        return self._squared

    def _spread(self, matrices: Sequence[np.ndarray], nu: np.ndarray, factors: np.ndarray) -> list[np.ndarray]:
        """Matrices over the rows present in each view, times ν of their rows and a factor, over all rows."""
        spread = []
        for matrix, here, factor in zip(matrices, self.rows, factors, strict=True):
            scale = nu[here]
            own = factor * (matrix if self.complete else scale[:, None] * matrix * scale)
            if len(here) < self.n:
                whole = np.zeros((self.n, self.n), order="F")
                whole[np.ix_(here, here)] = own
                own = whole
            spread.append(own)
        return spread

    def kernels(self, w: np.ndarray) -> list[np.ndarray]:
        """D_v = M_v M_v'."""
        return self._spread(self._squares(), self.nu(w), w**2)

    def plain_kernels(self, nu: np.ndarray, factors: np.ndarray) -> list[np.ndarray]:
        """The kernels themselves, times ν and √u of their rows and a factor."""
        views = zip(self.grams, self.rows, strict=True)
        return self._spread([self.u_root[h][:, None] * K * self.u_root[h] for K, h in views], nu, factors)

    def _total(self, w: np.ndarray) -> np.ndarray:
        total = np.zeros((self.n, self.n), order="F")
        for D in self.kernels(w):
            total += D
        return total

    def _rows_scaled(self, w: np.ndarray, B: np.ndarray) -> np.ndarray:
        return (self.nu(w) * self.u_root)[:, None] * B

    def _bare(self, w: np.ndarray, B: np.ndarray) -> list[np.ndarray]:
        """B_v'N B: M'B without w."""
        scaled = self._rows_scaled(w, B)
        views = zip(self.grams, self.rows, self.s_roots, strict=True)
        return [s[:, None] * multiply(K, scaled[here]) for K, here, s in views]

    def lift(self, w: np.ndarray, B: np.ndarray) -> np.ndarray:
        """M'B."""
        return np.concatenate([weight * own for weight, own in zip(w, self._bare(w, B), strict=True)])

    def spectrum(self, w: np.ndarray) -> Spectrum:
        """The singular values and vectors of M."""
        return Spectrum.of_gram(*self._decomposed(w), self.Y, lambda B: self.lift(w, B))

    def direct(self, w: np.ndarray, kappa: float) -> np.ndarray:
        """G of one metric for each output, where they are few."""
        if self._eigen is None or (self._eigen[0] != w).any():  # no grid has decomposed it
            total = self._total(w)
            try:
                columns = [direct_metric(total, y, kappa, moments=False) for y in self.Y.T]
                return self.lift(w, np.stack(columns, axis=1))
            except np.linalg.LinAlgError:
                pass
        return rank_one_metric(self.spectrum(w), kappa).x[0]

    def _decomposed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues and vectors of MM', for the weights asked for last."""
        if self._eigen is None or (self._eigen[0] != w).any():
            self._eigen = (w.copy(), *within_reach(*eigen(self._total(w))))
        return self._eigen[1:]

    def left_vectors(self, w: np.ndarray, A: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The squared singular values of M, or of MA½ for a fixed metric, and the left vectors."""
        return self._decomposed(w) if A is None else within_reach(*eigen(self._fixed_kernel(w, A)[0]))

    def fits(self, w: np.ndarray) -> Iterator[GramFit]:
        """J of every output."""
        kernels = self.kernels(w)
        for p in range(self.Y.shape[1]):
            yield GramFit(kernels, self.Y[:, p : p + 1])

    def weighed(self, fit: GramFit, w: np.ndarray, d: np.ndarray, p: int) -> np.ndarray:
        """The coefficients of output p for weights d of the views' kernels."""
        return np.repeat(d, self.sizes)[:, None] * self.lift(w, fit.forces(d, self.Y[:, p : p + 1]))

    def own_inverse(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The diagonal of (I + Σ_v d_v D_v)⁻¹."""
        total = np.asfortranarray(np.sum([weight * D for weight, D in zip(d, self.kernels(w), strict=True)], axis=0))
        half = forward(cholesky(add_to_diagonal(total, 1.0)), np.eye(self.n, order="F"))
        return np.sum(half**2, axis=0)

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M'M and M'Y."""
        M = np.zeros((self.n, sum(self.sizes)), order="F")
        scale = self.nu(w) * self.u_root
        for K, here, s, weight, own in zip(self.grams, self.rows, self.s_roots, w, self.parts(), strict=True):
            M[here, own] = weight * scale[here][:, None] * K * s
        return gram_of(M), multiply(M.T, self.Y)

    def _answers(self, coefficients: Sequence[np.ndarray]) -> np.ndarray:
        """f_v at the rows, zero where absent: (n, m, P)."""
        answers = np.zeros((self.n, len(self.grams), self.Y.shape[1]))
        for v, (K, here, a) in enumerate(zip(self.grams, self.rows, coefficients, strict=True)):
            answers[here, v] = multiply(K, a)
        return answers

    def _residuals(self, w: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """B = √u (y - Σ_v ν w_v f_v), and the slope of the loss in w."""
        answers = self._answers(coefficients)
        scale = self.nu(w) * self.u_root
        B = self.Y - scale[:, None] * np.einsum("m,nmp->np", w, answers)
        pulls = np.einsum("np,nmp->nm", self.u_root[:, None] * B, answers)
        return B, self.slope_of(w, pulls)

    def measure(self, w: np.ndarray, G: np.ndarray) -> Measured:
        """What coefficients come to."""
        B, slope = self._residuals(w, self.for_prediction(G))
        bare = self._bare(w, B)
        pulls = np.concatenate([weight * own for weight, own in zip(w, bare, strict=True)])
        return Measured(np.sum(B**2, axis=0), np.sum(B * self.Y, axis=0), pulls, bare, slope)

    def residuals(self, w: np.ndarray, G: np.ndarray) -> np.ndarray:
        """B = Y - MG."""
        return self._residuals(w, self.for_prediction(G))[0]

    def _fixed_kernel(self, w: np.ndarray, A: Any) -> tuple[np.ndarray, Callable[[np.ndarray], list[np.ndarray]]]:
        """MAM', and what makes AM'B of B, by view and as prediction takes it."""
        scale = self.nu(w) * self.u_root
        if isinstance(A, str) and A == "diagonal":  # A_vv = K_v⁻¹: the kernels themselves
            total = np.asfortranarray(np.sum(self.plain_kernels(self.nu(w), w**2), axis=0))
            return total, lambda B: [
                weight * (scale[:, None] * B)[here] for weight, here in zip(w, self.rows, strict=True)
            ]
        if isinstance(A, str):  # A_vw = S/Σs between the samples that both views have
            T = np.zeros((self.n, self.n), order="F")
            for K, here, s, weight in zip(self.grams, self.rows, self.s_roots, w, strict=True):
                T[np.ix_(here, here)] += weight * scale[here][:, None] * K * s
            T /= np.sqrt(self.s.sum())
            root = np.sqrt(self.s / self.s.sum())[:, None]
            return gram_of(T.T), lambda B: [(root * multiply(T.T, B))[here] for here in self.rows]
        M = np.zeros((self.n, len(A)))
        for v, (K, here, weight) in enumerate(zip(self.grams, self.rows, w, strict=True)):
            M[np.ix_(here, v * self.n + here)] = weight * scale[here][:, None] * K
        AM = multiply(A, M.T)
        whole = [v * self.n + here for v, here in enumerate(self.rows)]
        return multiply(M, AM), lambda B: [multiply(AM, B)[here] for here in whole]

    def fixed(self, w: np.ndarray, A: Any, alpha: float) -> FixedSolution:
        """The ridge solution for a metric that is "diagonal", "covariance" or a matrix."""
        kernel, lift = self._fixed_kernel(w, A)
        inner = solve(cholesky(add_to_diagonal(kernel.copy(order="F"), alpha)), self.Y)
        coefficients = lift(inner)
        B, slope = self._residuals(w, coefficients)
        penalties = alpha * np.sum(inner * multiply(kernel, inner), axis=0)
        return FixedSolution(
            coefficients, np.sum(B**2, axis=0), np.sum(B * self.Y, axis=0), penalties, self._between(w, A, B), slope
        )

    def _between(self, w: np.ndarray, A: Any, B: np.ndarray) -> np.ndarray:
        """Σ_p β'B_v A_vw B_w'β, the quadratic form of the penalty's conjugate in w."""
        scaled = self._rows_scaled(w, B)
        pulled = []
        for K, here in zip(self.grams, self.rows, strict=True):
            whole = np.zeros_like(scaled)
            whole[here] = multiply(K, scaled[here])
            pulled.append(whole)
        if isinstance(A, str) and A == "diagonal":
            return np.diag(
                [float(np.sum(own[here] * scaled[here])) for own, here in zip(pulled, self.rows, strict=True)]
            )
        flat = np.stack([own.ravel() for own in pulled])
        if isinstance(A, str):
            return multiply(flat * np.repeat(self.s / self.s.sum(), B.shape[1]), flat.T)
        n, m = self.n, len(pulled)
        return np.array(
            [
                [
                    float(np.sum(pulled[v] * multiply(A[v * n : (v + 1) * n, x * n : (x + 1) * n], pulled[x])))
                    for x in range(m)
                ]
                for v in range(m)
            ]
        )

    def functions(self, w: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each output, and the squared norms of the views' functions as (m, P)."""
        scale = self.nu(w) * self.u_root
        rest, norms = self.Y.copy(), []
        for K, here, a, weight in zip(self.grams, self.rows, coefficients, w, strict=True):
            answers = multiply(K, a)
            norms.append(np.einsum("np,np->p", a, answers))
            rest[here] -= (weight * scale[here])[:, None] * answers
        return np.sum(rest**2, axis=0), np.array(norms)

    def products(self, coefficients: Sequence[np.ndarray]) -> np.ndarray:
        """The inner products of functions, outputs by outputs, all views together."""
        return np.sum([multiply(a.T, multiply(K, a)) for K, a in zip(self.grams, coefficients, strict=True)], axis=0)

    def for_prediction(self, G: np.ndarray) -> list[np.ndarray]:
        """S½G by view."""
        return [s[:, None] * G[own] for s, own in zip(self.s_roots, self.parts(), strict=True)]

    def squared_size(self) -> float:
        """Σ_v tr(K_v²), samples counted by their weights."""
        return float(sum(s**2 @ K**2 @ s**2 for K, s in zip(self.grams, self.s_roots, strict=True)))
