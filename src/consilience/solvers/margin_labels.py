"""Labels of maximum margin regression: the kernel between them, and how they act on an operator over features.

A label is the output of a sample, by its position among the different outputs. Steps over the dual need inner products
A of labels; steps over features need to know which rows of the operator a label reads and writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .linalg import eigh

HELD = 4000  # up to so many labels, the kernel between them is held as a matrix


class LabelRows(NamedTuple):
    """Rows of the operator W that a label uses: label c has the score Σ_k read[c, k] <W[rows[c, k]], φ>.

    A sample of label c with the coefficient α adds α write[c, k] φ to these rows.
    """

    rows: np.ndarray
    read: np.ndarray
    write: np.ndarray

    @classmethod
    def of_vectors(cls, Y: np.ndarray) -> "LabelRows":
        """Return the rows for labels given as vectors: W is the operator itself."""
        T, P = Y.shape
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        return cls(np.tile(np.arange(P), (T, 1)), Y, Y)

    @classmethod
    def of_two_values(cls, own: float, b: float, T: int) -> "LabelRows":
        """Return the rows for labels of squared length `own` with b between any two.

        W holds v_c, the sum of α_i φ_i over each label, and after them the sum of all: a label reads two rows, whatever
        the number of labels, <y_c, Wφ> = (own - b) <v_c, φ> + b <Σ v, φ>.
        """
        rows = np.column_stack([np.arange(T), np.full(T, T)])
        return cls(rows, np.tile([own - b, b], (T, 1)), np.tile([1.0, 1.0 if b else 0.0], (T, 1)))

    @property
    def n_rows(self) -> int:
        """Number of rows of W."""
        return int(self.rows.max()) + 1


@dataclass(frozen=True)
class LabelKernel:
    """Labels of the samples and the kernel A between labels.

    Parameters
    ----------
    of : array of int of shape (n_samples,)
        Label of each sample.
    n : int
        Number of labels.
    rows : callable
        Maps positions of labels to their rows of A.
    A : array of shape (n, n) or None
        The kernel; None where there are too many labels to hold it.
    vectors : array of shape (n, n_dimensions) or None
        Vectors with these inner products, where they are known.
    alike : (float, float) or None
        The squared length of every label and the inner product of any two, where these are all the same.
    """

    of: np.ndarray
    n: int
    rows: Callable[[np.ndarray], np.ndarray]
    A: np.ndarray | None
    vectors: np.ndarray | None = None
    alike: tuple[float, float] | None = None

    @classmethod
    def of_matrix(cls, of: np.ndarray, A: np.ndarray) -> "LabelKernel":
        """Return labels whose kernel is a matrix."""
        return cls(of, len(A), A.__getitem__, A)

    @classmethod
    def of_vectors(cls, of: np.ndarray, Y: np.ndarray, alike: tuple[float, float] | None = None) -> "LabelKernel":
        """Return labels that are vectors."""
        T = len(Y)

        def rows(which: np.ndarray) -> np.ndarray:
            if alike is None:
                return np.asarray(Y[which] @ Y.T)
            return np.where(which[:, None] == np.arange(T), *alike)  # exact, where products of vectors would round

        return cls(of, T, rows, rows(np.arange(T)) if T <= HELD else None, Y, alike)

    @property
    def few(self) -> bool:
        """Whether many samples share a label, so that steps are faster if they take labels together."""
        return self.A is not None and (self.alike is not None or 8 * self.n <= len(self.of))

    @property
    def has_vectors(self) -> bool:
        """Whether `as_vectors` can return vectors."""
        return self.vectors is not None or self.A is not None

    def longest(self) -> float:
        """Return the largest squared length of a label, among the first ones where there are too many to compare."""
        if self.A is not None:
            return float(self.A.diagonal().max())
        if self.vectors is not None:
            return float(np.einsum("tp,tp->t", self.vectors, self.vectors).max())
        return float(self.rows(np.arange(100)).diagonal().max())

    def as_vectors(self) -> np.ndarray:
        """Return vectors with the inner products A."""
        if self.vectors is not None:
            return self.vectors
        assert self.A is not None
        values, vectors = eigh(self.A)
        kept = values > 1e-12 * max(values[-1], 1e-300)  # the others are zeros but for rounding
        return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))

    def operator_rows(self) -> LabelRows:
        """Return the rows of an operator over features that each label uses."""
        if self.alike is None:
            return LabelRows.of_vectors(self.as_vectors())
        return LabelRows.of_two_values(*self.alike, self.n)
