"""Machines on Gram matrices, how their parameters are chosen, and plain coordinate descent, for many classes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from .._jit import jit
from ..kernels._distances import squared_distances
from ..kernels.outputs import read_class_vectors
from ..solvers.certificates import warn_unless_converged
from ..solvers.margin import KernelRows, solve_margin
from ..solvers.margin_labels import LabelKernel

SIGMAS = 0.001 * 2.0 ** np.arange(21)
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
SVM_COSTS = COSTS[2:]
Fit = Callable[[np.ndarray, np.ndarray, float], Any]  # (Gram matrix, codes of classes, C) -> a fitted machine
RowPairs = list[tuple[np.ndarray, np.ndarray]]


def normalized_distances(train: np.ndarray, all_rows: np.ndarray, normalized: str) -> np.ndarray:
    """Return squared distances of all rows to the training rows; variables have the scale of the training rows."""
    if normalized != "none":
        scaler = (Normalizer() if normalized == "item" else StandardScaler()).fit(train)
        train, all_rows = scaler.transform(train), scaler.transform(all_rows)
    return np.asarray(squared_distances(all_rows, train)).astype(np.float32)


def gaussian(squared: np.ndarray, i: int) -> np.ndarray:
    """Return the kernel exp(-‖x - z‖²/2σ²) with the σ of a position, from squared distances."""
    return np.asarray(np.exp(squared * np.float32(-0.5 / SIGMAS[i] ** 2)))


# -- parameters
def kept_widths(squared: np.ndarray) -> list[int]:
    """Return positions of the σ whose Gram matrix is neither the identity nor constant, almost.

    For narrower kernels the prediction is the class of the nearest row, whatever σ.
    """
    nearest = float(np.median(np.partition(squared, 1, axis=1)[:, 1]))
    typical = float(np.median(squared))
    kept = [i for i, s in enumerate(SIGMAS) if nearest < 2 * s**2 * np.log(1e3) and typical > 2 * s**2 * -np.log(0.99)]
    return kept or [int(np.argmin(np.abs(np.log(SIGMAS**2 / max(typical, 1e-300)))))]


def choose(squared: np.ndarray, y: np.ndarray, inner: RowPairs, machine: Fit, step: int = 3) -> tuple[int, float]:
    """Return the position of σ, and C, with the best mean accuracy on held-out folds; the smallest of equals.

    Every third of the kept σ is tried, then the neighbors of the best, each with all C.
    """
    kept = kept_widths(squared)
    scores = {i: _scores(gaussian(squared, i), y, inner, machine) for i in kept[::step]}
    best = max(scores, key=lambda i: scores[i].max())
    near = [i for i in (best - 1, best + 1) if i in kept and i not in scores]
    scores |= {i: _scores(gaussian(squared, i), y, inner, machine) for i in near}
    best = max(sorted(scores), key=lambda i: scores[i].max())
    return best, _costs(machine)[int(scores[best].argmax())]


def _costs(machine: Fit) -> tuple[float, ...]:
    return SVM_COSTS if machine in (OneVsOne, OneVsRest) else COSTS


def _scores(K: np.ndarray, y: np.ndarray, inner: RowPairs, machine: Fit) -> np.ndarray:
    """Return the mean accuracy for each C. If no variable is at its bound C, larger C have the same solution."""
    costs = _costs(machine)
    found = np.zeros((len(inner), len(costs)))
    for fold, (train, test) in enumerate(inner):
        classes, codes = np.unique(y[train], return_inverse=True)
        own, other = K[np.ix_(train, train)], K[np.ix_(test, train)]
        for k, C in enumerate(costs):
            fitted = machine(own, codes, C)
            found[fold, k:] = np.mean(classes[fitted.predict(other)] == y[test])
            if fitted.largest < 0.999 * C:
                break
    return found.mean(axis=0)


# -- machines
class MaxMargin:
    """Maximum margin regression on a Gram matrix."""

    def __init__(self, vectors: str, K: np.ndarray, codes: np.ndarray, C: float):
        classes = np.arange(codes.max() + 1)
        self.labels = LabelKernel.of_vectors(codes, *read_class_vectors(vectors, classes))
        self.solution = solve_margin(_rows(K), self.labels, np.full(len(K), C), tol=1e-3, max_iter=10_000)
        warn_unless_converged(self.solution, "MMR")
        self.alpha, self.one_hot = self.solution.x[0], codes[:, None] == classes
        self.largest = float(self.alpha.max())

    def predict(self, K: np.ndarray) -> np.ndarray:
        """Return the codes of the classes, from kernels with the training rows."""
        sums = K @ (self.alpha[:, None] * self.one_hot).astype(np.float32)
        return (sums @ self.labels.A).argmax(axis=1)


def _rows(K: np.ndarray) -> KernelRows:
    def against(columns: np.ndarray, dtype: Any) -> Any:
        def fill(which: np.ndarray, out: np.ndarray) -> np.ndarray:
            out[:] = K[which] if whole else K[np.ix_(which, columns)]
            return out

        whole = len(columns) == len(K) and bool((columns == np.arange(len(K))).all())
        return fill

    return KernelRows(against, K.diagonal().astype(np.float64), single=True)


class OneVsOne:
    """One SVM for each pair of classes."""

    def __init__(self, K: np.ndarray, codes: np.ndarray, C: float):
        self.model = SVC(C=C, kernel="precomputed").fit(K, codes)
        self.largest = float(np.abs(self.model.dual_coef_).max())

    def predict(self, K: np.ndarray) -> np.ndarray:
        """Return the codes of the classes, from kernels with the training rows."""
        return np.asarray(self.model.predict(K))


class OneVsRest:
    """One SVM for each class."""

    def __init__(self, K: np.ndarray, codes: np.ndarray, C: float):
        self.models = [SVC(C=C, kernel="precomputed").fit(K, codes == c) for c in range(codes.max() + 1)]
        self.largest = max(float(np.abs(model.dual_coef_).max()) for model in self.models)

    def predict(self, K: np.ndarray) -> np.ndarray:
        """Return the codes of the classes, from kernels with the training rows."""
        return np.argmax([model.decision_function(K) for model in self.models], axis=0)


MACHINES: dict[str, Fit] = {
    "simplex": lambda K, codes, C: MaxMargin("simplex", K, codes, C),
    "indicator": lambda K, codes, C: MaxMargin("indicator", K, codes, C),
    "one vs. one": OneVsOne,
    "one vs. rest": OneVsRest,
}


# -- the paper's solver
@jit()
def plain_steps(K, A, of, C, tol, sweeps):  # type: ignore[no-untyped-def]
    """Minimize ½ α'(A ∘ K)α - Σα over 0 <= α <= C, one variable after the other; return α and the number of steps.

    Each step takes one column of the kernel. It stops where the gap is at most `tol` of the primal value.
    """
    n, steps = len(K), 0
    a, g = np.zeros(n), -np.ones(n)
    for _ in range(sweeps):
        for i in range(n):
            curvature = A[of[i], of[i]] * K[i, i]
            change = min(max(a[i] - g[i] / curvature, 0.0), C) - a[i]
            if change != 0.0:
                a[i] += change
                steps += 1
                for j in range(n):
                    g[j] += change * A[of[i], of[j]] * K[i, j]
        gap = primal = 0.0
        for i in range(n):
            gap += a[i] * g[i] + C * max(0.0, -g[i])
            primal += 0.5 * a[i] * (g[i] + 1.0) + C * max(0.0, -g[i])
        if gap <= tol * primal:
            break
    return a, steps
