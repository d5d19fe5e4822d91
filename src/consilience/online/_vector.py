"""The machine of the vector perceptron, and its compiled passes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._jit import jit
from ..views.container import Views
from ._arrays import PassRecord
from ._dual import Support, SupportMachine, refuse_one_view
from ._grams import Grams
from ._machine import Lesson, Sources
from ._rows import present_rows


class VectorRule(NamedTuple):
    """The margin λ that is asked for, and the length s of a step."""

    margin: float
    eta0: float


class VectorMachine(SupportMachine):
    """State of a vector perceptron: W = Σ_j α_j y_j φ(x_j)', by its support or, for linear kernels, by its weights.

    `class_gram` are the products of the class vectors y. Σ_j α_j φ(x_j) is kept for each class apart.
    """

    _lead = 0.5  # of two opposite vectors

    def __init__(self, grams: Grams, class_vectors: np.ndarray, class_gram: np.ndarray, *, linear: bool):
        self.grams, self.class_vectors, self.class_gram, self.linear = grams, class_vectors, class_gram, linear
        self.n_outputs = len(class_gram)
        self.support = Support()
        self.alpha, self.codes = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.weights: dict[str, np.ndarray] = {}  # Σ_j α_j x_j by view, (n_columns, n_classes), for linear kernels
        self.squared_norm = 0.0  # ‖W‖²

    def _has_two_classes(self) -> bool:
        return self.n_outputs == 2

    def remap_outputs(self, sources: Sources) -> None:
        """Refuse more classes: the class vectors are chosen for all of them together."""
        raise TypeError("A vector perceptron needs all its classes at the first call.")

    def forget(self, share: float, view: str | None) -> None:
        """Multiply W by a share; its views have one operator together."""
        refuse_one_view(view)
        self.alpha, self.squared_norm = share * self.alpha, share**2 * self.squared_norm
        self.weights = {name: share * own for name, own in self.weights.items()}

    def _learn_block(self, X: Views, lesson: Lesson, rule: VectorRule, record: PassRecord) -> None:
        sums, steps = self.sums(X), rule.eta0 * lesson.weights
        updated, codes = np.empty(len(X), dtype=bool), lesson.codes
        K = self.grams(X, X)[:, 0]
        self.squared_norm += _operator_pass(sums, K, codes, self.class_gram, rule.margin, steps, updated, record.wrong)
        self.n_updates += int(updated.sum())
        if updated.any():
            some = np.flatnonzero(updated)
            self.add(X[some], codes[some], steps[some], lesson.ids[some])
        record.scores[:] = sums @ self.class_gram

    def read_one(self, x: Mapping[str, Any]) -> Any:
        """Return one sample for kernels; weights of linear kernels take Views."""
        return None if self.linear else super().read_one(x)

    def add(self, X: Views, codes: np.ndarray, alpha: np.ndarray, ids: np.ndarray) -> None:
        """Add Σ α_j y_j φ(x_j)' to W; a sample that is in the support already keeps its place there."""
        if self.linear:
            self._add_to_weights(X, codes, alpha)
            return
        slots = self.support.positions(ids, np.arange(len(self.support)))
        self.alpha = self.alpha.copy()  # a snapshot may hold the array
        self.alpha[slots[slots >= 0]] += alpha[slots >= 0]
        new = np.flatnonzero(slots < 0)
        self.keep(X[new], ids[new])
        self.alpha, self.codes = np.concatenate([self.alpha, alpha[new]]), np.concatenate([self.codes, codes[new]])

    def _add_to_weights(self, X: Views, codes: np.ndarray, alpha: np.ndarray) -> None:
        for name in X.names:
            there, block = present_rows(X, name)
            if len(there):
                T = self.n_outputs
                # (classes, samples): adds up samples by class
                place = sp.csr_array((alpha[there], (codes[there], np.arange(len(there)))), shape=(T, len(there)))
                change = place @ block
                before = self.weights.get(name, np.zeros((block.shape[1], T)))
                change = change.toarray() if sp.issparse(change) else change
                self.weights = {**self.weights, name: before + change.T}

    def sums(self, X: Views) -> np.ndarray:
        """Return Σ_j α_j k(x, x_j) over the support of each class, (n, n_classes)."""
        if not self.linear:
            return super().sums(X)
        total = np.zeros((len(X), self.n_outputs))
        for name in X.names:
            there, block = present_rows(X, name)
            if name in self.weights and len(there):
                total[there] += block @ self.weights[name]
        return total

    def _class_scores(self, X: Views) -> np.ndarray:
        """Return <y_t, Wφ(x)> by class."""
        return self.sums(X) @ self.class_gram

    def coefficients(self) -> np.ndarray:
        """Return coefficients (1, n_classes, n_support) of Σ_j α_j φ(x_j) by class."""
        dense = np.zeros((1, self.n_outputs, len(self.alpha)))
        dense[0, self.codes, np.arange(len(self.alpha))] = self.alpha
        return dense

    def products(self, X: Views, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return k(x_i, x_j) and <y_i, y_j> k(x_i, x_j) between all samples."""
        X = self.known(X)
        K = self.grams(X, X)[:, 0]
        return K, K * self.class_gram[np.ix_(codes, codes)]


# -- the compiled passes
@jit()
def _operator_pass(sums, K, codes, A, margin, steps, updated, wrong):  # type: ignore[no-untyped-def]
    """Run Figure 1 over a block: where <y_i, Wφ_i> < margin, W += s_i y_i φ_i'. Return the change of ‖W‖².

    sums[i, t] = Σ α_j k(x_i, x_j) over the support of class t before sample i; K is the kernel of the block, A that of
    the classes. A tie counts as wrong, and so does what is within rounding of one.
    """
    change = 0.0
    for i in range(len(codes)):
        c = codes[i]
        scores, sizes = A @ sums[i], np.abs(A) @ np.abs(sums[i])
        wrong[i] = False
        for t in range(len(scores)):
            tied = scores[c] - scores[t] <= 1e-10 * (sizes[c] + sizes[t])
            wrong[i] = wrong[i] or (t != c and tied)
        updated[i] = scores[c] < margin * (1 - 1e-10)  # a margin within rounding of λ is enough
        if updated[i]:
            change += steps[i] * (2 * scores[c] + steps[i] * A[c, c] * K[i, i])  # ‖W + s y φ'‖² - ‖W‖²
            for j in range(i + 1, len(codes)):
                sums[j, c] += steps[i] * K[i, j]  # later samples of the block see the update
    return change


@jit()
def coefficient_pass(Q, order, alpha, margin, eta0):  # type: ignore[no-untyped-def]
    """Run Figure 2 over the samples in order: where Σ_j α_j Q_ij < margin, α += eta0 Q_i; return how often."""
    n_updates = 0
    for i in order:
        if np.dot(Q[i], alpha) < margin:
            n_updates += 1
            for j in range(len(alpha)):
                alpha[j] += eta0 * Q[i, j]
    return n_updates
