"""The history that a vote needs: every step of a learner, and how long each hypothesis lived."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._steps import voted_pass

BLOCK = 128


class Events:
    """Steps in order: which vector was added to which output with what coefficient, and the factors from then on."""

    def __init__(self) -> None:
        self.slots = np.zeros(0, dtype=np.int64)
        self.outputs = np.zeros(0, dtype=np.int64)
        self.coefs = np.zeros(0)
        self.factors = np.zeros((0, 1))
        self.born = np.zeros(0, dtype=np.int64)  # the sample, counted from 1, after which the step was made

    def add(self, slots: Any, outputs: Any, coefs: Any, factors: np.ndarray, born: Any) -> None:
        """Append steps; those of one sample follow each other."""
        if len(self.factors) == 0 or self.factors.shape[1] < factors.shape[1]:
            wider = np.ones((len(self.factors), factors.shape[1]))
            wider[:, : self.factors.shape[1]] = self.factors
            self.factors = wider
        self.slots = np.concatenate([self.slots, slots])
        self.outputs = np.concatenate([self.outputs, outputs])
        self.coefs = np.concatenate([self.coefs, coefs])
        self.factors = np.concatenate([self.factors, factors])
        self.born = np.concatenate([self.born, born])

    def place(self, sources: Sequence[tuple[int, float]]) -> None:
        """Make the outputs anew: a step on an old output becomes one on each that is made of it."""
        pieces = [(t, np.flatnonzero(self.outputs == source), scale) for t, (source, scale) in enumerate(sources)]
        old = np.concatenate([which for _, which, _ in pieces])
        order = np.argsort(old, kind="stable")
        self.outputs = np.concatenate([np.full(len(which), t) for t, which, _ in pieces])[order]
        coefs = np.concatenate([self.coefs[which] * scale for _, which, scale in pieces])
        self.slots, self.factors, self.born = self.slots[old][order], self.factors[old][order], self.born[old][order]
        self.coefs = coefs[order]

    def votes(
        self,
        kernel: Callable[[np.ndarray], np.ndarray],
        n: int,
        n_outputs: int,
        n_hypotheses: int,
        out_kernel: np.ndarray | None = None,
    ) -> np.ndarray:
        """The share of lives that vote for each output; for one output those for it less those against.

        `kernel` gives K[i, g, slot] for rows. A hypothesis lives from its making to the next one's (Freund and Schapire
        1999: one more than the samples it got right).
        """
        following = np.append(self.born[1:], n_hypotheses + 1)
        lives = (following - self.born).astype(np.float64)
        votes = np.zeros((n, n_outputs))
        table = np.zeros((0, 0)) if out_kernel is None else out_kernel
        for start in range(0, n, BLOCK):
            rows = np.arange(start, min(start + BLOCK, n))
            if len(self.slots):
                K = np.ascontiguousarray(kernel(rows))
                voted_pass(
                    K, self.slots, self.outputs, self.coefs, self.factors, lives, table, votes[rows[0] : rows[-1] + 1]
                )
        return votes / max(float(lives.sum()), 1.0)
