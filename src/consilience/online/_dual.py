"""Kernel online machines: a support with coefficients, learned by blocks of kernel values."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from .._backend import few_threads, to_numpy
from ..kernels import Kernel, reference_views
from ..kernels.joint import JointKernel
from ..views import _blocks
from ..views.container import Views
from ._events import Events
from ._linear import TOL, Rule, known_views
from ._steps import factors, kernel_pass, projectron_pass

ENTRIES = 1 << 22  # kernel values held at a time
BLOCK = 256  # samples whose kernels are made at a time, at most
SPAN = 1e-10  # a share of k(x, x), or of the terms of a score, below which a Projectron counts it as zero
NARROW = 1024  # columns of a sparse view up to which it is faster dense


class Grams:
    """Kernel values by group: "joint" (one of all views), "views" (one each), "pairs" (every view with every)."""

    def __init__(self, shape: str, combine: Any = "sum", bias: bool = False):
        self.shape, self.combine, self.bias = shape, combine, bias
        self.kernels: dict[str, Kernel] = {}

    def snapshot(self) -> "Grams":
        """The same kernels, whatever views come later."""
        other = copy(self)
        other.kernels = dict(self.kernels)
        return other

    def n_groups(self) -> int:
        m = len(self.kernels)
        return 1 if self.shape == "joint" else m if self.shape == "views" else m * m

    def __call__(self, X: Views, Y: Views) -> np.ndarray:
        """Values of shape (n_X, n_groups, n_Y); 0 where a view is absent."""
        names = tuple(self.kernels)
        X, Y = X.align(names), Y.align(names)
        if self.shape == "joint":
            if not (isinstance(self.combine, str) and self.combine == "sum"):
                for Z in (X, Y):
                    if Z.mask is not None:
                        raise ValueError(
                            f"combine={self.combine!r} needs every view in every sample: what stands for an absent one "
                            "would depend on the samples around it. Use combine='sum'."
                        )
            K = JointKernel(self.kernels, Y, self.combine, scaled=False).cross(X)
            return (K + 1.0 if self.bias else K)[:, None]
        out = np.zeros((len(X), self.n_groups(), len(Y)))
        for k, left in enumerate(names):
            for l, right in enumerate(names):
                if self.shape == "pairs":
                    # group (k, l): view k of the support with view l of the sample
                    _fill(self.kernels[left], X, right, Y, left, out[:, k * len(names) + l])
                elif k == l:
                    _fill(self.kernels[left], X, left, Y, left, out[:, k])
        return out


def _fill(kernel: Kernel, X: Views, of_x: str, Y: Views, of_y: str, out: np.ndarray) -> None:
    rows, columns = np.flatnonzero(X.present(of_x)), np.flatnonzero(Y.present(of_y))
    if len(rows) and len(columns):
        with _blocks.naming(of_x):
            inner = to_numpy(kernel(_blocks.take(X.block(of_x), rows), _blocks.take(Y.block(of_y), columns)))
        if len(rows) == len(X) and len(columns) == len(Y):
            out[...] = inner
        else:
            out[np.ix_(rows, columns)] = inner


class Support:
    """Samples kept, in parts that double, so that keeping n of them copies O(n log n)."""

    def __init__(self) -> None:
        self.parts: list[Views] = []
        self.ids = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def snapshot(self) -> "Support":
        """The same samples, whatever is kept later."""
        other = copy(self)
        other.parts = list(self.parts)
        return other

    def add(self, X: Views, ids: np.ndarray) -> None:
        """Keep more samples."""
        if not len(X):
            return
        self.parts.append(X)
        self.ids = np.concatenate([self.ids, ids])
        while len(self.parts) > 1 and 2 * len(self.parts[-1]) >= len(self.parts[-2]):
            self.parts[-2:] = [Views.concat(self.parts[-2:])]

    def keep(self, rows: np.ndarray) -> None:
        """Forget all but some."""
        self.parts = [self.samples()[rows]] if len(rows) else []
        self.ids = self.ids[rows]

    def samples(self) -> Views:
        """All of them."""
        return self.parts[0] if len(self.parts) == 1 else Views.concat(self.parts)

    def against(self, grams: Grams, X: Views, extra: int = 0) -> np.ndarray:
        """Kernel values (n, n_groups, n_support), and room for more."""
        out = np.empty((len(X), grams.n_groups(), len(self) + extra))
        at = 0
        for part in self.parts:
            out[:, :, at : at + len(part)] = grams(X, part)
            at += len(part)
        return out


def compact(X: Views) -> Views:
    """Sparse views of few columns as dense ones: kernels between them are faster."""
    narrow = [n for n in X.names if X.kind(n) == "sparse" and _blocks.width(X.block(n)) <= NARROW]
    if not narrow:
        return X
    blocks = {}
    for name in X.names:
        block = X.block(name)
        if name in narrow:
            block = block.toarray()
            block[~X.present(name)] = np.nan
        blocks[name] = block
    return Views._of(blocks, len(X), X.mask, X.feature_names)


class _Dual:
    """What kernel machines share: reading by blocks."""

    grams: Grams
    support: Support
    changed_in_place: tuple[str, ...] = ()  # arrays that a pass writes to; others are made again

    def snapshot(self) -> Self:
        """A machine that what this one learns next does not change."""
        other = copy(self)
        other.grams, other.support = self.grams.snapshot(), self.support.snapshot()
        for name in self.changed_in_place:
            setattr(other, name, copy(getattr(self, name)))
        return other

    def _blocks_of(self, n: int) -> list[slice]:
        size = max(16, min(BLOCK, ENTRIES // max(1, self.grams.n_groups() * (len(self.support) + BLOCK))))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def meet(self, X: Views, kernels: Mapping[str, Kernel], prior: Mapping[str, float] | None = None) -> None:
        """Take up the kernels of views that are new."""
        shown = [name for name in X.names if name not in self.grams.kernels and X.present(name).any()]
        new = {name: kernels[name] for name in shown if name in kernels}
        if new:
            before = len(self.grams.kernels)
            self.grams.kernels.update(new)
            self._enlarge(before, prior)

    def _enlarge(self, before: int, prior: Mapping[str, float] | None) -> None:
        """Make room for more views."""

    def _read(self, X: Views) -> Views:
        return compact(known_views(X, tuple(self.grams.kernels)))

    def _kept(self, X: Views) -> Views:
        return reference_views({name: self.grams.kernels[name] for name in X.names}, X)


class KernelMachine(_Dual):
    """The state of a kernel learner: support, coefficients by output, factors by group, sums for averages, events."""

    changed_in_place = ("norms", "F", "C", "state", "events")

    def __init__(
        self,
        grams: Grams,
        n_outputs: int,
        *,
        p: float = 1.0,
        average: Any = False,
        budget: int | None = None,
        out_kernel: np.ndarray | None = None,
    ):
        self.grams, self.p, self.average, self.budget = grams, float(p), average, budget or 0
        self.n_outputs = n_outputs
        self.out_kernel = np.zeros((0, 0)) if out_kernel is None else out_kernel
        self.support = Support()
        groups = grams.n_groups()
        self.alpha = np.zeros((n_outputs, 0))
        self.beta = np.zeros((groups if average is True else 0, n_outputs, 0))
        self.norms, self.C = np.zeros((groups, n_outputs)), np.zeros((groups, n_outputs))
        self.F, self.prior = np.ones((groups, n_outputs)), np.zeros(groups)
        self.alive = np.zeros(0, dtype=bool)
        self.state = np.zeros(2)
        self.n_steps = self.n_hypotheses = 0
        self.events = Events()

    def _enlarge(self, before: int, prior: Mapping[str, float] | None) -> None:
        if self.grams.shape == "joint":
            return
        self.C = self.C + self.state[0] * self.F
        self.state[0] = 0
        m, T = len(self.grams.kernels), self.n_outputs
        pairs = self.grams.shape == "pairs"
        grid = np.arange(m * m).reshape(m, m)
        places = grid[:before, :before].ravel() if pairs else np.arange(before)
        ones = np.eye(m).ravel() if pairs else np.ones(m)
        for name in ("norms", "F", "C"):
            old = getattr(self, name)
            new = np.zeros((len(ones), T))
            if name == "F" and self.p == 1:
                new += ones[:, None]
            new[places] = old
            setattr(self, name, new)
        if self.average is True:
            beta = np.zeros((len(ones), *self.beta.shape[1:]))
            beta[places] = self.beta
            self.beta = beta
        if len(self.events.slots):
            history = np.zeros((len(self.events.slots), len(ones)))
            history[:, places] = self.events.factors
            self.events.factors = history
        self.prior = np.zeros(len(ones))
        if not pairs:
            self.prior = np.array([float((prior or {}).get(name, 0.0)) for name in self.grams.kernels])
            if self.prior.any():
                for t in range(T):
                    factors(self.norms[:, t], self.prior, self.p, m, self.F[:, t])

    def place(self, sources: Sequence[tuple[int, float]]) -> None:
        """Make the outputs anew: output t becomes a multiple of an old one (or of none, -1)."""
        for name, power in (("alpha", 1), ("beta", 1), ("norms", 2), ("F", 0), ("C", 0)):
            old = getattr(self, name)
            axis = {"alpha": 0, "beta": 1}.get(name, -1)
            pieces = [
                np.take(old, source, axis=axis) * scale**power if source >= 0 else np.take(old, 0, axis=axis) * 0.0
                for source, scale in sources
            ]
            setattr(self, name, np.ascontiguousarray(np.stack(pieces, axis=axis)))
        if self.p == 1:
            ones = np.eye(len(self.grams.kernels)).ravel() if self.grams.shape == "pairs" else np.ones(len(self.F))
            self.F[:] = ones[:, None]
        self.events.place(sources)
        self.n_outputs = len(sources)

    def learn(self, X: Views, codes: np.ndarray, rule: Rule, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores before each sample was learned, and where they were wrong; `ids` name the samples."""
        X, ids = self._read(X), np.asarray(ids)
        scores, wrong = np.empty((len(codes), self.n_outputs)), np.empty(len(codes), dtype=bool)
        with few_threads(0):
            for rows in self._blocks_of(len(codes)):
                self._learn_block(X[rows], codes[rows], rule, ids[rows], scores[rows], wrong[rows])
        return scores, wrong

    def _learn_block(
        self, X: Views, codes: np.ndarray, rule: Rule, ids: np.ndarray, scores: np.ndarray, wrong: np.ndarray
    ) -> None:
        b, S, (G, T) = len(codes), len(self.support), self.F.shape
        K = self.support.against(self.grams, X, extra=b)
        K[:, :, S:] = self.grams(X, X)
        voted = self.average == "voted"
        steps, history = np.zeros((b, T)), np.zeros((b if voted else 0, G, T))
        there, own = np.flatnonzero(self.alive), K[np.arange(b), :, S + np.arange(b)]
        slots = _positions(self.support.ids[there], ids)
        slots = np.where(slots >= 0, there[slots] if len(there) else -1, -1)
        alpha = np.concatenate([self.alpha, np.zeros((T, b))], axis=1)
        beta = np.concatenate([self.beta, np.zeros((len(self.beta), T, b))], axis=2)
        alive = np.concatenate([self.alive, np.zeros(b, dtype=bool)])
        views = 1 if self.grams.shape == "joint" else len(self.grams.kernels)
        kernel_pass(
            K, own, codes, slots, alpha, beta, self.norms, self.F, self.C, self.prior, self.p, views,
            self.out_kernel, rule, TOL["float64"], self.state, alive, self.budget, scores, wrong, steps, history,
        )  # fmt: skip
        stepped = steps.any(axis=1)
        fresh = stepped & (slots >= S)
        entered = np.flatnonzero(fresh)
        self.support.add(self._kept(X[entered]), ids[entered])
        columns = np.concatenate([np.arange(S), S + entered])
        self.alpha, self.beta = np.take(alpha, columns, axis=1), np.take(beta, columns, axis=2)
        self.alive = alive[columns]
        if voted:
            where = np.where(fresh, S - 1 + np.cumsum(fresh), slots)
            moved = np.argwhere(steps)
            i, t = moved[:, 0], moved[:, 1]
            self.events.add(where[i], t, steps[i, t], history[i, :, t], self.n_hypotheses + 1 + i)
        self.n_hypotheses += b
        self.n_steps += int(stepped.sum())
        if self.budget and len(self.support) > 2 * self.budget:
            self._forget()

    def _forget(self) -> None:
        rows = np.flatnonzero(self.alive)
        self.support.keep(rows)
        self.alpha, self.beta = np.take(self.alpha, rows, axis=1), np.take(self.beta, rows, axis=2)
        self.alive = self.alive[rows]

    def coefficients(self, averaged: bool) -> np.ndarray:
        """Coefficients (n_groups, n_outputs, n_support) of the last hypothesis, or of the mean of all so far."""
        if not averaged:
            return self._mixed(self.F[:, :, None] * self.alpha)
        until = self.C + self.state[0] * self.F
        return self._mixed((until[:, :, None] * self.alpha - self.beta) / max(self.n_hypotheses, 1))

    def _mixed(self, coefficients: np.ndarray) -> np.ndarray:
        return np.einsum("ut,gts->gus", self.out_kernel, coefficients) if len(self.out_kernel) else coefficients

    def scores(self, X: Views) -> np.ndarray:
        """Scores of shape (n, n_outputs); with votes the share of lives that vote for a class."""
        if not len(self.support):
            return np.zeros((len(X), self.n_outputs))
        X = self._read(X)
        with few_threads(0):
            if self.average == "voted":
                table = self.out_kernel if len(self.out_kernel) else None
                kernel: Callable[[np.ndarray], np.ndarray] = lambda rows: self.support.against(self.grams, X[rows])  # noqa: E731
                return self.events.votes(kernel, len(X), self.n_outputs, self.n_hypotheses, table)
            return self.sums(X, self.coefficients(self.average is True))

    def sums(self, X: Views, coefficients: np.ndarray) -> np.ndarray:
        """Σ_g Σ_s c_gts k_g(x, x_s): (n, n_outputs)."""
        out = np.zeros((len(X), coefficients.shape[1]))
        for rows in self._blocks_of(len(X)):
            at = 0
            for part in self.support.parts:
                K = self.grams(X[rows], part)
                for g in range(K.shape[1]):
                    out[rows] += K[:, g] @ coefficients[g, :, at : at + len(part)].T
                at += len(part)
        return out


def _positions(known: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Where each id stands among those known, -1 where it does not."""
    slots = np.full(len(ids), -1, dtype=np.int64)
    _, mine, theirs = np.intersect1d(ids, known, return_indices=True)
    slots[mine] = theirs
    return slots


class ProjectronMachine(_Dual):
    """The state of a Projectron: support, the factor of its Gram matrix, coefficients."""

    changed_in_place = ("state",)

    def __init__(self, grams: Grams, n_outputs: int, *, average: bool, budget: int | None):
        self.grams, self.average, self.budget, self.n_outputs = grams, average, budget or 0, n_outputs
        self.support = Support()
        self.alpha, self.beta = np.zeros((n_outputs, 0)), np.zeros((n_outputs, 0))
        self.L = np.zeros((0, 0))  # the Cholesky factor of the support's Gram matrix
        self.state = np.zeros(1)  # the largest sum of terms so far
        self.n_steps = self.n_hypotheses = self.n_projections = 0

    def place(self, sources: Sequence[tuple[int, float]]) -> None:
        """Make the outputs anew: output t becomes a multiple of an old one (or of none, -1)."""
        for name in ("alpha", "beta"):
            old = getattr(self, name)
            pieces = [old[s] * scale if s >= 0 else np.zeros(old.shape[1]) for s, scale in sources]
            setattr(self, name, np.stack(pieces))
        self.n_outputs = len(sources)

    def learn(
        self, X: Views, codes: np.ndarray, ids: Any, threshold: float, squared: bool, plus: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores before each sample was learned, and where they were wrong; `ids` name the samples."""
        X, ids = self._read(X), np.asarray(ids)
        scores, wrong = np.empty((len(codes), self.n_outputs)), np.empty(len(codes), dtype=bool)
        with few_threads(0):
            for rows in self._blocks_of(len(codes)):
                b, S = rows.stop - rows.start, len(self.support)
                block = X[rows]
                K = self.support.against(self.grams, block, extra=b)
                K[:, :, S:] = self.grams(block, block)
                alpha, beta = (
                    np.concatenate([a, np.zeros((self.n_outputs, b))], axis=1) for a in (self.alpha, self.beta)
                )
                L, members = np.zeros((S + b, S + b)), np.arange(S + b)
                L[:S, :S] = self.L
                updates, own = np.zeros(b, dtype=np.int64), K[np.arange(b), 0, S + np.arange(b)]
                size = projectron_pass(
                    np.ascontiguousarray(K[:, 0]), own, codes[rows], alpha, beta, L, members, S,
                    float(self.n_hypotheses), threshold, squared, plus, self.budget, SPAN, self.state, scores[rows],
                    wrong[rows], updates,
                )  # fmt: skip
                entered = members[S:size] - S
                self.support.add(self._kept(block[entered]), ids[rows][entered])
                self.alpha, self.beta = alpha[:, :size], beta[:, :size]
                self.L = L[:size, :size].copy()
                self.n_hypotheses += b
                self.n_steps += int(np.count_nonzero(updates))
                self.n_projections += int(np.count_nonzero(updates == 1))
        return scores, wrong

    def coefficients(self) -> np.ndarray:
        """Coefficients (n_outputs, n_support) of the last hypothesis, or of the mean of all so far."""
        if not self.average:
            return self.alpha
        return self.alpha - self.beta / max(self.n_hypotheses, 1)

    def scores(self, X: Views) -> np.ndarray:
        """Scores of shape (n, n_outputs)."""
        if not len(self.support):
            return np.zeros((len(X), self.n_outputs))
        X = self._read(X)
        out, coefficients = np.zeros((len(X), self.n_outputs)), self.coefficients()
        with few_threads(0):
            for rows in self._blocks_of(len(X)):
                out[rows] = self.support.against(self.grams, X[rows])[:, 0] @ coefficients.T
        return out
