"""The machine of the ranking perceptron with a joint kernel: coefficients of pairs of a sample and an output."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from ..kernels import Kernel, reference_views
from ..kernels.base import check_overflow, read
from ..solvers.linalg import is_positive
from ..views._reading import objects_of
from ..views.container import Views
from ._candidates import Choice, OutputList, output_key
from ._dual import Support, compact
from ._grams import Grams
from ._ranking import ROUNDING, RankingMachine, lead_and_rival
from ._rows import known_views

_PAIRS = 512  # maximum number of pairs whose kernels are computed at a time
_ENTRIES = 1 << 22  # kernel values held at a time


class Pairs(NamedTuple):
    """Pairs of a sample and an output, by positions among different samples and different outputs."""

    xs: Any  # samples: Views, a Support, or an array of objects
    sample: np.ndarray
    ts: Sequence[Any]
    output: np.ndarray

    def take(self, which: Any) -> "Pairs":
        """Return some of the pairs."""
        used, output = np.unique(self.output[which], return_inverse=True)  # kernels of the other outputs are not needed
        return Pairs(self.xs, self.sample[which], [self.ts[t] for t in used.tolist()], output)


class PairMachine(RankingMachine):
    """State of a perceptron over a joint kernel: pairs (x, t) with coefficients.

    With `grams` or `outputs` the joint kernel is the product k(x, x') κ(t, t'): without `grams` k is 1, without
    `outputs` κ is 1 for equal outputs and else 0. With neither it is the user's function.
    """

    def __init__(self, grams: Grams | None, outputs: Kernel | None, average: Any):
        super().__init__(average)
        self.grams, self.output_kernel = grams, outputs
        self.support = Support()  # samples, where there is a kernel between them
        self.samples: list[Any] = []  # samples, where the joint kernel is a function
        self.ids: dict[int, int] = {}  # where the sample of an id is among those kept
        self.outputs = OutputList()  # outputs kept
        self.pairs = np.zeros((0, 2), dtype=np.int64)  # positions of the sample and of the output
        self.steps: list[tuple[int, int]] = []  # the pairs that gained and lost in each step
        self._slots: dict[tuple[int, int], int] = {}  # where pairs are

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ids": list(self.ids), "_slots": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.ids = {id: place for place, id in enumerate(self.ids)}
        self._slots = {(int(i), int(t)): slot for slot, (i, t) in enumerate(self.pairs)}

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change."""
        other = super().snapshot()
        other.grams, other.support = copy(self.grams), copy(self.support)
        other.support.parts, other.outputs = list(self.support.parts), OutputList(self.outputs.outputs)
        if other.grams is not None:
            other.grams.kernels = dict(other.grams.kernels)
        for name in ("samples", "ids", "steps", "_slots"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    def fresh(self) -> Self:
        """Return a machine that has learned nothing yet, with the same kernels."""
        return type(self)(self.grams, self.output_kernel, False)

    def is_consistent(self) -> bool:
        """Return whether pairs are within the samples and outputs; for states from a file."""
        n, S, kept = len(self.ids), len(self.coefs), self.pairs
        within = kept.dtype == np.int64 and kept.shape == (S, 2) and bool((kept >= 0).all())
        within = within and bool((kept < (n, len(self.outputs.outputs))).all())
        within = within and all(type(slot) is int and 0 <= slot < S for step in self.steps for slot in step)
        known = set() if self.grams is None else set(self.grams.kernels)
        within = within and all(set(X.names) <= known for X in self.support.parts)
        by_function = self.grams is None and self.output_kernel is None
        stored = len(self.support) if self.grams is not None else len(self.samples) if by_function else n
        return within and stored == n and super().is_consistent()

    def add_views(self, X: Views, kernels: Mapping[str, Kernel]) -> None:
        """Add the kernels of the views of X that occur for the first time."""
        if self.grams is not None:
            self.grams.kernels.update({name: kernels[name] for name in X.names if name in kernels})

    # -- kernels
    def kernel(self, joint: Any, Q: Pairs, P: Pairs, between: np.ndarray | None = None) -> np.ndarray:
        """Return the joint kernel between all pairs of Q and all of P; `between` are kernels of their samples."""
        if not len(P.sample):
            return np.zeros((len(Q.sample), 0))
        if self.grams is None and self.output_kernel is None:
            left = [(Q.xs[i], Q.ts[t]) for i, t in zip(Q.sample, Q.output, strict=True)]
            right = [(P.xs[i], P.ts[t]) for i, t in zip(P.sample, P.output, strict=True)]
            K = np.array([[joint(q, p) for p in right] for q in left], dtype=np.float64).reshape(len(left), len(right))
            check_overflow("`joint_kernel`", K)
            return K
        K = np.ones((len(Q.sample), len(P.sample)))
        if self.grams is not None:
            if between is None:
                kept = isinstance(P.xs, Support)
                between = (P.xs.against(self.grams, Q.xs) if kept else self.grams(Q.xs, P.xs))[:, 0]
            K = between[np.ix_(Q.sample, P.sample)]
        if self.output_kernel is None:
            known = OutputList(P.ts).places
            places = np.array([known.get(output_key(t), -1) for t in Q.ts], dtype=np.int64)
            table = (places[:, None] == np.arange(len(P.ts))).astype(np.float64)
        else:
            table = np.asarray(self.output_kernel(as_output_block(Q.ts), as_output_block(P.ts)), dtype=np.float64)
        return np.asarray(K * table[np.ix_(Q.output, P.output)])

    def _kept(self) -> Pairs:
        """Return the pairs with coefficients."""
        xs = self.support if self.grams is not None else self.samples
        return Pairs(xs, self.pairs[:, 0], self.outputs.outputs, self.pairs[:, 1])

    def _blocks(self, X: Any, choices: Sequence[Choice]) -> Iterable[tuple[slice, Pairs, np.ndarray]]:
        """Yield the rows of a block of samples, their pairs, and where the pairs of each sample begin."""
        start = 0
        while start < len(choices):
            most, stop, n = max(1, min(_PAIRS, _ENTRIES // max(1, len(self.pairs)))), start, 0
            while stop < len(choices) and (stop == start or n + len(choices[stop].outputs) <= most):
                n, stop = n + len(choices[stop].outputs), stop + 1
            rows, some = slice(start, stop), choices[start:stop]
            counts = [len(choice.outputs) for choice in some]
            different: dict[Hashable, int] = {}
            outputs: list[int] = []
            ts: list[Any] = []
            for choice in some:
                for output in choice.outputs:
                    place = different.setdefault(output_key(output), len(ts))
                    ts += [output] if place == len(ts) else []
                    outputs.append(place)
            xs = X[rows]
            if self.grams is not None:
                xs = compact(known_views(xs, tuple(self.grams.kernels)))
            yield (
                rows,
                Pairs(xs, np.repeat(np.arange(len(some)), counts), ts, np.array(outputs)),
                np.cumsum([0, *counts]),
            )
            start = stop

    # -- learning
    def learn(self, joint: Any, X: Any, choices: Sequence[Choice], ids: np.ndarray) -> np.ndarray:
        """Learn samples in order, in blocks; return where the true output did not win."""
        wrong = np.zeros(len(choices), dtype=bool)
        for rows, Q, ends in self._blocks(X, choices):
            K = self.kernel(joint, Q, self._kept())
            scores, sizes = K @ self.coefs, np.abs(K) @ np.abs(self.coefs)
            between = None if self.grams is None else self.grams(Q.xs, Q.xs)[:, 0]
            for i in range(len(ends) - 1):
                own, truth = slice(ends[i], ends[i + 1]), choices[rows.start + i].truth
                margin, rival = lead_and_rival(scores[own], sizes[own], truth, ROUNDING)
                self.n_hypotheses += 1
                if rival < 0 or margin > self.margin:
                    continue
                wrong[rows.start + i] = margin <= 0
                two = np.array([ends[i] + truth, ends[i] + rival])
                # the pairs of later samples meet the two that take coefficients
                change = self.kernel(joint, Q.take(slice(ends[i], None)), Q.take(two), between)
                scores[ends[i] :] += change[:, 0] - change[:, 1]
                sizes[ends[i] :] += np.abs(change).sum(axis=1)
                inner = change[[truth, rival]]
                self._step(Q, i, two, int(ids[rows.start + i]))
                self.size = max(self.size, float(inner[0, 0] + inner[1, 1] - inner[0, 1] - inner[1, 0]))
        return wrong

    def _step(self, Q: Pairs, i: int, two: np.ndarray, id: int) -> None:
        """Add 1 to the coefficient of the first pair and -1 to that of the second, both of sample i of a block."""
        if id not in self.ids:  # `fit` sees a sample once in each pass
            self.ids[id] = len(self.ids)
            if self.grams is not None:
                kernels = {name: self.grams.kernels[name] for name in Q.xs.names}
                self.support.add(reference_views(kernels, Q.xs[[i]]), np.array([id]))
            elif self.output_kernel is None:
                self.samples.append(Q.xs[i])
        slots = []
        for t, a in zip(Q.output[two].tolist(), (1.0, -1.0), strict=True):
            pair = self.ids[id], self.outputs.place(Q.ts[t])
            if pair not in self._slots:
                self._slots[pair] = len(self.pairs)
                self.pairs = np.concatenate([self.pairs, [pair]])
                self.coefs, self.late = np.append(self.coefs, 0.0), np.append(self.late, 0.0)
            slots.append(self._slots[pair])
            self.coefs[slots[-1]] += a
            self.late[slots[-1]] += a * self.n_hypotheses
        self.n_updates += 1
        if self.average == "voted":
            self.steps.append((slots[0], slots[1]))
            self.step_samples.append(self.n_hypotheses)

    def is_definite(self, joint: Any) -> bool:
        """Return whether the joint kernel is positive semi-definite between the pairs kept."""
        kernels = [] if self.grams is None else list(self.grams.kernels.values())
        kernels += [] if self.output_kernel is None else [self.output_kernel]
        if kernels and not any(kernel.may_be_indefinite for kernel in kernels):
            return True
        return is_positive(self._inner(joint))

    def _inner(self, joint: Any) -> np.ndarray:
        """Return the kernel between the pairs kept."""
        P = self._kept()
        if self.grams is not None and self.support.parts:
            P = P._replace(xs=Views.concat(self.support.parts))
        return self.kernel(joint, P, P)

    # -- predicting
    def scores(self, joint: Any, X: Any, choices: Sequence[Choice], coefs: np.ndarray | None = None) -> list[Any]:
        """Return the scores of the outputs of each sample; with votes, shares of the votes."""
        voted, found = coefs is None and self.average == "voted", []
        coefs = self.learned() if coefs is None else coefs
        gain, loss = np.array(self.steps, dtype=np.int64).reshape(-1, 2).T
        for _, Q, ends in self._blocks(X, choices):
            K = self.kernel(joint, Q, self._kept())
            total = None if voted else K @ coefs
            for first, last in pairwise(ends.tolist()):
                if total is not None:
                    found.append(total[first:last])
                else:
                    up, down = K[first:last, gain], K[first:last, loss]
                    found.append(self._votes(up - down, np.abs(up) + np.abs(down)))
        return found

    def norm(self, joint: Any, coefs: np.ndarray) -> float:
        """Return ‖w‖ of a hypothesis."""
        return float(np.sqrt(max(coefs @ self._inner(joint) @ coefs, 0.0)))


def as_output_block(outputs: Sequence[Any]) -> Any:
    """Return outputs as kernels take them: numbers and vectors as rows, others as objects."""
    if all(isinstance(t, (int, float, np.number, np.bool_)) for t in outputs) or all(
        isinstance(t, np.ndarray) and t.dtype.kind in "biuf" for t in outputs
    ):
        return read(np.array([np.ravel(t) for t in outputs], dtype=np.float64))
    return read(objects_of(list(outputs)))
