"""The history that a vote needs: every step of an estimator, and how long each hypothesis was in use."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._jit import jit
from ._machine import Sources

_BLOCK = 128  # samples whose kernels are computed at a time


class Events:
    """Steps in order: which vector was added to which output by what coefficient, and the factors from then on."""

    def __init__(self) -> None:
        self.slots = np.zeros(0, dtype=np.int64)
        self.outputs = np.zeros(0, dtype=np.int64)
        self.coefs = np.zeros(0)
        self.factors = np.zeros((0, 1))
        self.samples = np.zeros(0, dtype=np.int64)  # the sample of the stream, counted from 1, that caused the step

    def add(self, slots: Any, outputs: Any, coefs: Any, factors: np.ndarray, samples: Any) -> None:
        """Append steps; those of one sample follow each other."""
        if len(self.factors) == 0 or self.factors.shape[1] < factors.shape[1]:
            wider = np.ones((len(self.factors), factors.shape[1]))  # the first steps widen an array without groups
            wider[:, : self.factors.shape[1]] = self.factors
            self.factors = wider
        self.slots = np.concatenate([self.slots, slots])
        self.outputs = np.concatenate([self.outputs, outputs])
        self.coefs = np.concatenate([self.coefs, coefs])
        self.factors = np.concatenate([self.factors, factors])
        self.samples = np.concatenate([self.samples, samples])

    def remap(self, sources: Sources) -> None:
        """Replace the outputs: a step of one output becomes a step of each output that comes from it."""
        pieces = [(t, np.flatnonzero(self.outputs == source), scale) for t, (source, scale) in enumerate(sources)]
        old = np.concatenate([which for _, which, _ in pieces])
        order = np.argsort(old, kind="stable")  # steps stay in the order of the stream
        self.outputs = np.concatenate([np.full(len(which), t) for t, which, _ in pieces])[order]
        coefs = np.concatenate([self.coefs[which] * scale for _, which, scale in pieces])
        self.slots, self.factors, self.samples = (a[old][order] for a in (self.slots, self.factors, self.samples))
        self.coefs = coefs[order]

    def votes(
        self, kernel: Callable[[np.ndarray], np.ndarray], n_outputs: int, now: np.ndarray, R: np.ndarray
    ) -> np.ndarray:
        """Return the share of votes for each output; for one output, the votes for it less those against.

        `kernel` returns K[i, g, slot] for rows, R is the kernel between outputs (or empty). Row i is predicted after
        `now[i]` samples of the stream, by the hypotheses up to then. A hypothesis votes with the number of samples from
        its step to the next (Freund and Schapire 1999: one more than it predicted correctly).
        """
        following = np.append(self.samples[1:], np.iinfo(np.int64).max)  # the sample at which the next step is taken
        votes = np.zeros((len(now), n_outputs))
        if not len(self.slots):
            return votes
        for start in range(0, len(now), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(now)))
            K, own = np.ascontiguousarray(kernel(rows)), votes[start : start + _BLOCK]
            times = (self.samples, following, now[rows])
            _vote(K, self.slots, self.outputs, self.coefs, self.factors, times, R, own)
        return votes / np.maximum(now + 1 - self.samples[0], 1)[:, None]


@jit()
def _first_best(scores, sizes):  # type: ignore[no-untyped-def]
    """Return the largest score, the first among those within rounding of it."""
    best = 0
    for t in range(1, len(scores)):
        if scores[t] > scores[best]:
            best = t
    for t in range(best):
        if scores[best] - scores[t] <= 1e-12 * (sizes[best] + sizes[t]):
            return t
    return best


@jit()
def _vote(K, slots, outputs, coefs, factors, times, R, votes):  # type: ignore[no-untyped-def]
    """Let the hypotheses vote on a block of samples.

    Event e adds coefs[e] K[i, g, slots[e]] to output outputs[e], whose factors become factors[e, g]. The hypothesis
    then has a vote for each sample up to the next event, or up to now; none where both belong to the same step.
    """
    (samples, following, now), G, T = times, factors.shape[1], votes.shape[1]
    for i in range(len(votes)):
        run, terms = np.zeros((G, T)), np.zeros((G, T))
        total, sizes = np.zeros(T), np.zeros(T)
        for e in range(len(slots)):
            if samples[e] > now[i]:
                break
            t, weight = outputs[e], min(following[e], now[i] + 1) - samples[e]
            total[t] = 0
            sizes[t] = 0
            for g in range(G):
                term = coefs[e] * K[i, g, slots[e]]
                run[g, t] += term
                terms[g, t] += abs(term)  # for the rounding of the sum
                total[t] += factors[e, g] * run[g, t]
                sizes[t] += abs(factors[e, g]) * terms[g, t]
            if T == 1:
                votes[i, 0] += weight * np.sign(total[0]) * (abs(total[0]) > 1e-12 * sizes[0])
            elif weight > 0:
                score, size = (R @ total, np.abs(R) @ sizes) if len(R) else (total, sizes)
                votes[i, _first_best(score, size)] += weight
