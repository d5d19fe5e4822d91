"""The least squares problems of the co-regularized learners, a part for each eigenvalue of the output kernel."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..solvers.certificates import Solution
from ..solvers.coupled import CoupledGrams
from ..solvers.moments import FeatureMoments
from ..solvers.ridge import evaluate_ridge, ridge_forces
from ..solvers.weights import Evaluation


def output_groups(R: Any, P: int) -> list[tuple[float, np.ndarray]]:
    """The eigenvalues of R, equal ones together, and their eigenvectors as columns."""
    if R is None:
        return [(1.0, np.eye(P))]
    R = np.asarray(R, dtype=np.float64)
    if R.shape != (P, P) or not np.isfinite(R).all():
        raise ValueError(f"`output_kernel` must be a finite matrix of shape ({P}, {P}), one row per output; got {R!r}.")
    largest = float(np.abs(R).max())
    if np.abs(R - R.T).max() > 1e-8 * largest:
        raise ValueError("`output_kernel` is not symmetric.")
    values, vectors = np.linalg.eigh(R)
    if values[0] < -1e-8 * largest:
        raise ValueError(f"`output_kernel` must be positive semi-definite; its smallest eigenvalue is {values[0]:.4g}.")
    values[values <= 1e-12 * values[-1]] = 0.0
    new = np.flatnonzero(np.diff(values, prepend=-1.0) > 1e-12 * values[-1])
    return [(float(values[k[0]]), vectors[:, k]) for k in np.split(np.arange(P), new[1:])]


class Problem(ABC):
    """min over f for c given; what Gram matrices and features share."""

    def __init__(self, form: Any, alpha: float, Y: np.ndarray, u: np.ndarray, groups: list[tuple[float, np.ndarray]]):
        self.form, self.alpha, self.Y, self.u = form, alpha, Y, u
        self.groups = [(value, vectors) for value, vectors in groups if value > 0]
        self.lost = sum(float(np.sum(u[:, None] * (Y @ vectors) ** 2)) for value, vectors in groups if not value)

    @abstractmethod
    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        """φ, its gradient and ∇ of every part, times l."""

    def evaluate(self, c: np.ndarray) -> Evaluation:
        """φ, its gradient and ∇."""
        value, gradient, curvature = self.lost, np.zeros(len(c)), np.zeros((len(c), len(c)))
        known = True
        for more in self._evaluations(c):
            value, gradient = value + more[0], gradient + more[1]
            known &= more[2] is not None
            curvature = curvature + (0 if more[2] is None else more[2])
        scale = self.form.scale
        return value / scale, gradient / scale, curvature / scale if known else None


class GramRidge(Problem):
    """The problem over Gram matrices."""

    _systems: list[CoupledGrams] | None = None

    def _parts(self) -> Iterator[tuple[CoupledGrams, np.ndarray]]:
        """The systems; those of several eigenvalues are not held at once unless weights are learned."""
        for k, (value, vectors) in enumerate(self.groups):
            yield (self.form.system(self.alpha / value) if self._systems is None else self._systems[k]), vectors

    def keep(self) -> None:
        """Hold the factorizations, for many c."""
        if self._systems is None:
            self._systems = [system for system, _ in self._parts()]

    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        for system, vectors in self._parts():
            yield evaluate_ridge(system, c, self.Y @ vectors, self.u)

    def answers(self, cs: Sequence[np.ndarray], shown: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """φ, the views' answers at the labeled rows shown, and their targets, as least squares takes them."""
        root = np.sqrt(self.u[shown])[:, None]
        values, F = np.full(len(cs), float(self.lost)), [[] for _ in cs]  # type: ignore[var-annotated]
        b = []
        for system, vectors in self._parts():
            forces = [self._shown_forces(system, c, vectors, shown) for c in cs]
            values += [value for _, value in forces]
            b.append((root * (self.Y[shown] @ vectors)).ravel())
            for k, (f, _) in enumerate(system.answers_together(cs, [r for r, _ in forces])):
                weighed = f[:, shown] * (system.nu(cs[k])[shown, None] * root)
                F[k].append(weighed.reshape(len(cs[k]), -1).T)
        targets = np.concatenate(b)
        return [(value / self.form.scale, np.concatenate(f), targets) for value, f in zip(values, F, strict=True)]

    def _shown_forces(
        self, system: CoupledGrams, c: np.ndarray, vectors: np.ndarray, shown: np.ndarray
    ) -> tuple[np.ndarray, float]:
        kernel = system.labeled_kernel(c)
        kernel = kernel if len(shown) == len(kernel) else kernel[np.ix_(shown, shown)]
        r = np.zeros((len(self.Y), vectors.shape[1]))
        r[shown], value = ridge_forces(kernel, self.Y[shown] @ vectors, self.u[shown])
        return r, value

    def outputs(self, c: np.ndarray, shown: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """g at hidden labeled rows, learned from those shown."""
        total = np.zeros((len(hidden), self.Y.shape[1]))
        for system, vectors in self._parts():
            r, _ = self._shown_forces(system, c, vectors, shown)
            total += system.labeled_kernel(c)[hidden] @ r @ vectors.T
        return total

    def solve(self, c: np.ndarray) -> tuple[list[np.ndarray], Solution]:
        """a_v with f_v = K_v a_v."""
        coefficients = [np.zeros((len(K), self.Y.shape[1])) for K in self.form.grams]
        value, worst, gap, jitter = self.lost, 0.0, 0.0, 0.0
        for system, vectors in self._parts():
            jitter = max(jitter, system.jitter)
            Y = self.Y @ vectors
            r, _ = ridge_forces(system.labeled_kernel(c), Y, self.u)
            found = system.coefficients(c, r)
            f, g, penalty = system.outputs(c, found)
            rest, bound = system.optimality(c, found, f, self.u[:, None] * (Y - g))
            value += float(np.sum(self.u[:, None] * (Y - g) ** 2)) + penalty
            worst, gap = max(worst, rest), gap + bound
            for total, part in zip(coefficients, found, strict=True):
                total += part @ vectors.T
        scale = self.form.scale
        return coefficients, _direct(value / scale, gap / scale, worst / scale, jitter)


def _direct(objective: float, gap: float, residual: float, jitter: float = 0.0) -> Solution:
    """A direct solution, and whether rounding left it one."""
    status = "inexact" if not gap <= 1e-6 * abs(objective) else "jitter" if jitter else "exact"
    return Solution(None, gap, 1, status, objective=objective, residual=residual)


class FeatureRidge(Problem):
    """The problem over finite features."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._moments: dict[bytes, list[FeatureMoments]] = {}

    def keep(self) -> None:
        """Sums over rows are kept as they are made."""

    def _parts(self, shown: np.ndarray | None = None) -> Iterator[tuple[FeatureMoments, np.ndarray]]:
        key = b"" if shown is None else shown.tobytes()
        if key not in self._moments:
            u = self.u if shown is None else np.where(np.isin(np.arange(len(self.u)), shown), self.u, 0.0)
            self._moments[key] = [
                self.form.moments(self.alpha / value, self.Y @ vectors, u) for value, vectors in self.groups
            ]
        yield from zip(self._moments[key], (vectors for _, vectors in self.groups), strict=True)

    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        for moments, _ in self._parts():
            yield moments.evaluate(c)

    def answers(self, cs: Sequence[np.ndarray], shown: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """φ, and the views' answers and targets, as least squares takes them."""
        found = []
        for c in cs:
            parts = [moments.answer_products(c) for moments, _ in self._parts(shown)]
            value = (self.lost + sum(part[0] for part in parts)) / self.form.scale
            found.append((value, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])))
        return found

    def outputs(self, c: np.ndarray, shown: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """g at hidden labeled rows, learned from those shown."""
        return self.form.combined(self._weights(c, shown), c, hidden)

    def _weights(self, c: np.ndarray, shown: np.ndarray | None = None) -> np.ndarray:
        return sum(m.ridge_solution(c)[0] @ vectors.T for m, vectors in self._parts(shown))

    def solve(self, c: np.ndarray) -> tuple[list[np.ndarray], Solution]:
        """W_v with f_v = Φ_v W_v."""
        value, worst, gap = self.lost, 0.0, 0.0
        total = np.zeros((sum(self.form.sizes), self.Y.shape[1]))
        for moments, vectors in self._parts():
            W, more, rest, bound = moments.ridge_solution(c)
            total += W @ vectors.T
            value, worst, gap = value + more, max(worst, rest), gap + bound
        scale = self.form.scale
        return self.form.split(total), _direct(value / scale, gap / scale, worst / scale)
