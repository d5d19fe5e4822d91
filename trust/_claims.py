"""Random problems, what a certificate claims about them, and what was computed independently."""

import warnings
from typing import Any, NamedTuple

import numpy as np

import cases
from consilience.kernels import RBF

ROUNDING = 1e-9  # of the objective


class Claim(NamedTuple):
    """What a certificate claims about one problem, and what was computed independently."""

    objective: float  # printed
    gap: float  # printed
    own: float  # the published formula at the returned coefficients
    size: float  # the same with absolute values: what rounding is relative to
    best: float  # the objective at the independent optimum
    status: str = "exact"

    @property
    def slack(self) -> float:
        """What rounding explains."""
        return ROUNDING * abs(self.own) + 1e-13 * self.size

    @property
    def misprint(self) -> float:
        """How far the printed objective is from that of the coefficients, relative to it."""
        return abs(self.objective - self.own) / max(abs(self.own), 1e-300)

    @property
    def violation(self) -> float:
        """How far the optimum is below the printed bound, relative to the objective."""
        return max(self.objective - self.gap - self.best, 0.0) / max(abs(self.own), 1e-300)

    @property
    def holds(self) -> bool:
        """Whether both are within rounding."""
        return abs(self.objective - self.own) <= self.slack and self.objective - self.gap - self.best <= self.slack

    @property
    def found(self) -> bool:
        """Whether the independent optimum is as good as ours, so that it says something."""
        return self.best <= self.own + 1e-5 * abs(self.own) + self.slack


# -- problems
class Problem(NamedTuple):
    """Gram matrices of views, and targets."""

    rng: np.random.Generator
    grams: list[np.ndarray]
    n: int
    P: int

    @property
    def m(self) -> int:
        """Number of views."""
        return len(self.grams)

    @property
    def X(self) -> Any:
        """The Gram matrices as views."""
        return cases.gram_views(self.grams)

    def targets(self) -> np.ndarray:
        """Return targets with a part that the kernels explain."""
        signal = sum(K @ self.rng.normal(size=(self.n, self.P)) for K in self.grams) / self.n
        return signal + 10.0 ** self.rng.uniform(-3, 0.5) * self.rng.normal(size=(self.n, self.P))

    def codes(self, n_classes: int) -> np.ndarray:
        """Return classes, each there once at least."""
        codes = self.rng.integers(n_classes, size=self.n)
        codes[:n_classes] = np.arange(n_classes)
        return codes

    def power(self, low: float, high: float) -> float:
        """Return a power of ten."""
        return float(10.0 ** self.rng.uniform(low, high))


def draw(rng: np.random.Generator, *, most: int = 30, views: int = 4, outputs: int = 3) -> Problem:
    """Return a random problem: kernels of full and of low rank, smooth and narrow, of several scales."""
    n, m = int(rng.integers(4, most + 1)), int(rng.integers(1, views + 1))
    grams = []
    for _ in range(m):
        A = rng.normal(size=(n, int(rng.integers(1, 6))))
        if rng.random() < 0.2:
            A[rng.integers(n)] = A[0]
        K = A @ A.T if rng.random() < 0.4 else RBF(10.0 ** rng.uniform(-2, 1))(A)
        grams.append(K * 10.0 ** (rng.uniform(-2, 2) if rng.random() < 0.3 else 0.0))
    return Problem(rng, grams, n, int(rng.integers(1, outputs + 1)))


def stopping(rng: np.random.Generator, *limits: int) -> dict[str, Any]:
    """Return a tolerance and a limit of steps: now and then so low that the solver stops early."""
    tol = float(rng.choice([1e-2, 1e-4, 1e-6, 1e-9, 1e-12]))
    return {"tol": tol, "max_iter": int(rng.choice(limits)) if rng.random() < 0.35 else 2000}


def fitted(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Fit without warnings, which say what the status says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) if weights is None else model.fit(X, y, weights)


def claim(model: Any, own: tuple[float, float], best: float) -> Claim:
    """Return what the certificate says, with the objective at the coefficients and the independent optimum."""
    proof = model.certificate()
    assert proof.gap is not None, f"{model} has no gap"
    return Claim(proof.objective, proof.gap, own[0], own[1], min(best, own[0]), proof.status)


def duals(model: Any, n: int) -> np.ndarray:
    """Return the coefficients of all samples, (m, n, P), zero for those that are not kept."""
    whole = np.zeros((len(model.dual_coef_), n, model.dual_coef_.shape[2]))
    whole[:, model.support_] = model.dual_coef_
    return whole


def kappa(alpha: float, metric_penalty: float) -> float:
    """Return κ of the penalty that the best metric leaves: λs²/a + ηa² is κ s^(4/3) at its least, a³ = λs²/2η."""
    return 3 * metric_penalty ** (1 / 3) * (alpha / 2) ** (2 / 3)


def squares_and(M: np.ndarray, G: np.ndarray, Y: np.ndarray, penalty: float) -> tuple[float, float]:
    """Return ‖Y - MG‖² plus the penalty, and its size."""
    value = float(np.sum((Y - M @ G) ** 2)) + penalty
    return value, float(np.sum((np.abs(Y) + np.abs(M) @ np.abs(G)) ** 2)) + abs(penalty)
