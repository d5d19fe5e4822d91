"""Kernel machines: a support with coefficients, learned by blocks of kernel values."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from copy import copy
from typing import Any, Self

import numpy as np

from .._backend import few_threads
from ..kernels import Kernel, reference_views
from ..solvers.certificates import _outside
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import presence
from ._arrays import (
    IntervalRecord,
    KernelState,
    PassRecord,
    as_intervals,
    new_interval_record,
    new_record,
    target_intervals,
)
from ._events import Events
from ._factors import ViewFactors
from ._grams import Grams
from ._interval_steps import kernel_interval_pass
from ._machine import Lesson, Machine, Sources, includes_last, mean_of, plain, remapped, takes_means
from ._rows import known_views
from ._steps import kernel_pass
from ._support_rows import SingleRow, SupportRows, coefficient_columns, read_single

_ENTRIES = 1 << 22  # kernel values held at a time
_BLOCK = 256  # maximum number of samples whose kernels are computed at a time
_LEAVING = 32  # maximum number of members of the support whose kernels are computed at a time, to drop them
_NARROW = 1024  # number of columns up to which kernels of sparse views are faster on dense copies


class Support:
    """Samples kept, in parts of doubling size, so that keeping n samples copies O(n log n) rows."""

    def __init__(self) -> None:
        self.parts: list[Views] = []
        self.ids = np.zeros(0, dtype=np.int64)
        self._rows: SupportRows | None = None  # for single samples; None: not made yet

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts, "ids": self.ids}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.parts, self.ids, self._rows = state["parts"], state["ids"], None

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, X: Views, ids: np.ndarray) -> None:
        """Append samples."""
        if not len(X):
            return
        self.parts.append(X)
        self.ids = np.concatenate([self.ids, ids])
        self._rows = None if self._rows is None else self._rows.with_rows(X)
        # as soon as the last part is half of the one before
        while len(self.parts) > 1 and 2 * len(self.parts[-1]) >= len(self.parts[-2]):
            self.parts[-2:] = [Views.concat(self.parts[-2:])]

    def keep(self, rows: np.ndarray) -> None:
        """Drop all samples but some."""
        samples = self.parts[0] if len(self.parts) == 1 else Views.concat(self.parts)
        self.replace([samples[rows]] if len(rows) else [])
        self.ids = self.ids[rows]

    def replace(self, parts: list[Views]) -> None:
        """Take other data for the samples."""
        self.parts, self._rows = parts, None

    def rows(self) -> SupportRows | None:
        """Return the samples as dense arrays; None if they cannot be."""
        if self._rows is None:
            self._rows = SupportRows.of(self.parts)
        return self._rows

    def take(self, rows: np.ndarray) -> Views:
        """Return some of the samples, at sorted positions."""
        found, at = [], 0
        for part in self.parts:
            own = rows[(rows >= at) & (rows < at + len(part))] - at
            found += [part[own]] if len(own) else []
            at += len(part)
        return found[0] if len(found) == 1 else Views.concat(found)

    def positions(self, ids: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Return where samples of these ids are among the `used` members of the support, -1 where they are not."""
        slots = np.full(len(ids), -1, dtype=np.int64)
        if len(ids) == 1:  # faster than a sort
            same = used[self.ids[used] == ids[0]]
            slots[: len(same)] = same
            return slots
        _, mine, theirs = np.intersect1d(ids, self.ids[used], return_indices=True)
        slots[mine] = used[theirs]
        return slots

    def against(self, grams: Grams, X: Any, extra: int = 0) -> np.ndarray:
        """Return kernel values (n, n_groups, n_support), with room for more columns."""
        out = np.empty((len(X), grams.n_groups(), len(self) + extra))
        if isinstance(X, SingleRow):
            out[0, :, : len(self)] = X.values
            return out
        at = 0
        for part in self.parts:
            grams(X, part, out[:, :, at : at + len(part)])
            at += len(part)
        return out


def compact(X: Views) -> Views:
    """Return sparse views of few columns as dense ones: kernels between them are faster."""
    narrow = [n for n in X.names if X.kind(n) == "sparse" and _blocks.width(X.block(n)) <= _NARROW]
    if not narrow:
        return X
    blocks = {}
    for name in X.names:
        block = X.block(name)
        if name in narrow:
            block = block.toarray()
            block[~X.present(name)] = np.nan  # a row of zeros would not be missing
        blocks[name] = block
    return Views._of(blocks, len(X), X.mask, X.feature_names, None)


def warn_full(budget: int, n_samples: int, what: str) -> None:
    """Warn that a budget is full, and what happens from now on."""
    warnings.warn(
        f"The budget of {budget:,} samples was full within {n_samples:,} samples: {what}. Predictions can differ from "
        "those without a limit. To keep all samples, at a cost that grows with the stream, use budget=None.",
        stacklevel=_outside(),
    )


def refuse_one_view(view: str | None) -> None:
    """Refuse to forget one view where all views have one kernel together."""
    if view is not None:
        raise ValueError(
            f"The view '{view}' cannot be forgotten alone: all views have one kernel together. Forget all views, or "
            "use OrthogonalPerceptron, which has weights for each view."
        )


class SupportMachine(Machine):
    """What kernel machines share: the support, its kernels, learning by blocks."""

    grams: Grams
    support: Support
    budget: int  # maximum number of samples kept; 0: no limit
    _lead = 1.0  # scale of the lead of the second of two classes
    _when_full: str  # what happens to samples once the budget is full
    _computed: tuple[Any, ...] | None = None  # coefficients, and the state that they are of

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_computed"}

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change: kernels may refuse samples halfway."""
        other = copy(self)
        other.grams, other.support = copy(self.grams), copy(self.support)
        other.grams.kernels, other.support.parts = dict(self.grams.kernels), list(self.support.parts)
        other.support._rows = self.support._rows
        return other

    def frozen(self) -> Self:
        """Return a machine that predicts as this one does now: learning replaces what a snapshot shares with it."""
        return self.snapshot()

    def add_views(self, X: Views, kernels: Mapping[str, Kernel]) -> None:
        """Add the kernels of the views of X that occur for the first time."""
        shown = [name for name in X.names if name not in self.grams.kernels and X.present(name).any()]
        self.grams.kernels.update({name: kernels[name] for name in shown if name in kernels})

    def view_names(self) -> tuple[str, ...]:
        """Return the views that some sample had, in the order in which they joined."""
        return tuple(self.grams.kernels)

    def blocks(self, n: int) -> list[slice]:
        """Return slices of n samples whose kernel values fit into memory."""
        size = max(16, min(_BLOCK, _ENTRIES // max(1, self.grams.n_groups() * (len(self.support) + _BLOCK))))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def known(self, X: Any) -> Any:
        """Return the views that have kernels."""
        if isinstance(X, SingleRow):
            return X
        return compact(known_views(X, tuple(self.grams.kernels)))

    def keep(self, X: Views, ids: np.ndarray) -> None:
        """Append samples to the support."""
        if not len(X):
            return
        self.support.add(reference_views({name: self.grams.kernels[name] for name in X.names}, X), ids)

    def learn(self, chunk: Views, lesson: Lesson, rule: Any) -> PassRecord | IntervalRecord:
        """Learn samples in order; return their scores before learning, and where the decision was wrong."""
        X, lesson = self.known(chunk), lesson._replace(ids=np.asarray(lesson.ids))
        by_view = lesson.shares and self.grams.shape != "joint"  # a joint kernel does not tell views apart
        new = new_interval_record if lesson.codes.ndim == 2 else new_record
        record: Any = new(len(lesson.codes), self.n_outputs, len(self.grams.kernels) if by_view else 0)
        before = self.n_dropped
        with nullcontext() if isinstance(X, SingleRow) else few_threads(0):
            for rows in self.blocks(len(lesson.codes)):
                part = type(record)(*(values[rows] for values in record))
                self._learn_block(X[rows], lesson.take(rows), rule, part)
                self.n_hypotheses += rows.stop - rows.start
        if self.n_dropped > before == 0 and not lesson.quiet:
            warn_full(self.budget, self.n_hypotheses, self._when_full)
        learned: PassRecord | IntervalRecord = record._replace(scores=self._outputs(record.scores))
        return learned

    @abstractmethod
    def _learn_block(self, X: Views, lesson: Lesson, rule: Any, record: Any) -> None:
        """Learn few samples; record their scores by output before learning, and where the decision was wrong."""

    @abstractmethod
    def coefficients(self) -> np.ndarray:
        """Return coefficients (n_groups, n_outputs, n_support) of the last hypothesis, or of the mean of all."""

    def read_one(self, x: Mapping[str, Any]) -> SingleRow | None:
        """Return one sample of dense views; None if it must be validated as Views first."""
        return read_single(self, x)

    def score_one(self, row: SingleRow) -> np.ndarray:
        """Return the scores of what `read_one` returned."""
        sample: Any = row  # stands for Views where sums of kernel values are asked for
        return self._outputs(self._class_scores(sample))

    def sums(self, X: Any) -> np.ndarray:
        """Return Σ_g Σ_s c_gts k_g(x, x_s) for each output t."""
        if isinstance(X, SingleRow):
            return X.values.reshape(1, -1) @ coefficient_columns(self)
        total, coefficients = np.zeros((len(X), self.n_outputs)), self.coefficients()
        for rows in self.blocks(len(X)):
            at = 0
            for part in self.support.parts:
                K = self.grams(X[rows], part)
                for g in range(K.shape[1]):
                    total[rows] += K[:, g] @ coefficients[g, :, at : at + len(part)].T
                at += len(part)
        return total

    def scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, 1) for two classes, (n, n_classes) for more."""
        if not self.grams.kernels:  # nothing was learned yet
            return self._outputs(np.zeros((len(X), self.n_outputs)))
        with few_threads(0):
            return self._outputs(self._class_scores(self.known(X)))

    def _class_scores(self, X: Views) -> np.ndarray:
        """Return the scores by output."""
        return self.sums(X)

    def _outputs(self, scores: np.ndarray) -> np.ndarray:
        """Return the lead of the second class where two classes have an output each; other scores as they are."""
        return self._lead * (scores[:, 1:] - scores[:, :1]) if self._has_two_classes() else scores

    def _has_two_classes(self) -> bool:
        """Return whether there are two classes with an output each; other outputs are independent."""
        return False

    def intercepts(self) -> np.ndarray:
        """Return the intercept of each output: the sum of the coefficients where 1 is added to the kernels."""
        if not (self.grams.intercept and len(self.support)):
            return np.asarray(self._outputs(np.zeros((1, self.n_outputs)))[0])
        there = np.ones((1, len(self.support)))
        if self.grams.shape != "joint":  # a sample adds 1 to the kernels of the views that it has
            names = tuple(self.grams.kernels)
            there = np.concatenate([presence(known_views(part, names)) for part in self.support.parts]).T
            there = np.repeat(there, len(names), axis=0) if self.grams.shape == "pairs" else there
        return np.asarray(self._outputs(np.einsum("gts,gs->t", self.coefficients(), there)[None])[0])


class KernelMachine(SupportMachine):
    """State of a kernel estimator: support, coefficients by output, factors, sums for averages, events for votes."""

    _when_full = "the oldest one is dropped at each new update"

    def __init__(
        self,
        grams: Grams,
        n_outputs: int,
        *,
        p: float = 1.0,
        average: Any = False,
        budget: int | None = None,
        output_gram: np.ndarray | None = None,
        prior_norms: Any = None,
    ):
        self.grams, self.average, self.budget = grams, average, budget or 0
        self.n_outputs = n_outputs
        self.output_gram = np.zeros((0, 0)) if output_gram is None else output_gram
        self.support = Support()
        self.factors = ViewFactors(grams.shape, n_outputs, p, prior_norms)
        self.alpha = np.zeros((n_outputs, 0))
        self.beta = np.zeros((grams.n_groups() if takes_means(average) else 0, n_outputs, 0))
        self.alive = np.zeros(0, dtype=bool)
        self.events = Events()

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change."""
        other = super().snapshot()
        other.factors, other.events = self.factors.snapshot(), copy(self.events)
        return other

    def add_views(self, X: Views, kernels: Mapping[str, Kernel]) -> None:
        """Add the kernels of the views of X that occur for the first time, and room for their groups."""
        before = len(self.grams.kernels)
        super().add_views(X, kernels)
        if len(self.grams.kernels) == before:
            return
        self.factors.add_views(tuple(self.grams.kernels))
        if self.grams.shape == "joint":
            return
        places, G = self.factors.places(before), self.grams.n_groups()
        if takes_means(self.average):
            beta = np.zeros((G, *self.beta.shape[1:]))
            beta[places] = self.beta
            self.beta = beta
        if len(self.events.slots):
            history = np.zeros((len(self.events.slots), G))  # views that came later had the factor 0
            history[:, places] = self.events.factors
            self.events.factors = history
            if self.factors.prior.any():  # prior norms of the new views changed the factors: steps of length 0
                T = np.arange(self.n_outputs)
                factors = np.ascontiguousarray(self.factors.F.T)
                self.events.add(0 * T, T, np.zeros(len(T)), factors, np.full(len(T), self.n_hypotheses))

    def forget(self, share: float, view: str | None) -> None:
        """Multiply the coefficients by a share, or the kernel of one view, also for samples to come."""
        scale = np.ones(len(self.grams.kernels))
        if view is None:
            self.alpha = share * self.alpha
            scale[:] = share
        elif self.grams.shape == "joint":
            refuse_one_view(view)
        elif self.grams.shape == "pairs":
            raise ValueError("A matrix perceptron by kernels has one kernel between all views. Forget all views.")
        elif view in self.grams.kernels:
            scale[list(self.grams.kernels).index(view)] = share**0.5  # ‖v‖² in the space of the smaller kernel
            self.grams.kernels[view] = self.grams.kernels[view] * share
        self.beta = 0 * self.beta
        self.factors.forget(scale)
        self.n_hypotheses = 0

    def remap_outputs(self, sources: Sources) -> None:
        """Replace the outputs: each becomes a multiple of an output before, or 0."""
        self.alpha, self.beta = remapped(self.alpha, sources, axis=0), remapped(self.beta, sources, axis=1)
        self.factors.remap(sources)
        self.events.remap(sources)
        self.n_outputs = len(sources)

    def _has_two_classes(self) -> bool:
        return len(self.output_gram) == 2

    def _learn_block(self, X: Views, lesson: Lesson, rule: Any, record: Any) -> None:
        b, S, (G, T), ids = len(lesson.codes), len(self.support), self.factors.F.shape, lesson.ids
        K = self.support.against(self.grams, X, extra=b)
        K[:, :, S:] = self.grams(X, X)  # samples of the block that enter the support meet later ones
        slots = self.support.positions(ids, np.flatnonzero(self.alive))  # `fit` sees a sample once in each pass
        own = K[np.arange(b), :, S + np.arange(b)]  # k(x_i, x_i) by group
        alpha = np.concatenate([self.alpha, np.zeros((T, b))], axis=1)
        beta = np.concatenate([self.beta, np.zeros((len(self.beta), T, b))], axis=2)
        alive = np.concatenate([self.alive, np.zeros(b, dtype=bool)])
        mean = mean_of(self.average)
        state = KernelState(alpha, beta, alive, self.output_gram, self._limit(), self.factors.arrays(), mean)
        voted = self.average == "voted"
        steps, history = np.zeros((b, T)), np.zeros((b if voted else 0, G, T))
        one_pass, targets = kernel_pass, lesson.codes
        if targets.ndim == 2:
            rule = as_intervals(rule)
            one_pass, targets = kernel_interval_pass, target_intervals(rule, targets)
        given = (targets, lesson.weights, slots, self.n_hypotheses)
        made = plain(state), tuple(rule), 1e-12, tuple(record), steps, history
        at, going = 0, np.empty((int(self.factors.p == 1), G, 0))  # without factors nothing depends on norms
        while (at := one_pass(K, own, given, *made, (at, going))) <= b:
            going = self._kernels_of_oldest(K, np.flatnonzero(alive)[: min(_LEAVING, b + 1 - at)])
        # the block's columns of the arrays stay only for samples that entered the support
        stepped = steps.any(axis=1)
        fresh = stepped & (slots >= S)
        self.n_dropped += int(self.alive.sum() + fresh.sum() - alive.sum())
        entered = np.flatnonzero(fresh)
        self.keep(X[entered], ids[entered])
        columns = np.concatenate([np.arange(S), S + entered])
        self.alpha, self.beta = np.take(alpha, columns, axis=1), np.take(beta, columns, axis=2)
        self.alive = alive[columns]
        if voted:
            slots = np.where(fresh, S - 1 + np.cumsum(fresh), slots)  # columns of samples that did not enter are gone
            # learned prior norms change the factors of all outputs at each step
            changed = np.outer(stepped, np.ones(T)) if len(self.factors.learned) else steps
            i, t = np.nonzero(changed)
            self.events.add(slots[i], t, steps[i, t], history[i, :, t], self.n_hypotheses + 1 + i)
            if lesson.scored:
                now, R = self.n_hypotheses + np.arange(b), self.output_gram
                record.scores[:] = self.events.votes(lambda rows: K[rows][:, :, columns], T, now, R)
        self.n_updates += int(stepped.sum())
        if self.budget and len(self.support) - self.alive.sum() > 16 + self.budget // 8:  # it copies the support
            self._drop_unused()

    def _limit(self) -> int:
        """Return the maximum number of samples kept, 0 for no limit."""
        # with factors, dropping a sample needs its kernel with the others, and of Gram matrices only positions are kept
        free = self.factors.p != 1 and any(kernel.reads_gram for kernel in self.grams.kernels.values())
        return 0 if free else self.budget

    def _kernels_of_oldest(self, K: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return the kernel of members of the support, or of the block, with all of them, in the form of K.

        A drop costs as much as a prediction. Keeping these values would take budget² numbers for each group.
        """
        (_, G, n), S = K.shape, len(self.support)
        old, new = members[members < S], members[members >= S] - S
        if not len(old):
            return K[new]
        out = np.empty((len(members), G, n))
        out[: len(old), :, :S] = self.support.against(self.grams, self.support.take(old))
        # group (k, l): view k of the second sample with view l of the first; K has them the other way round
        turned = np.arange(G).reshape(self.factors.side, -1).T.ravel() if self.factors.side else np.arange(G)
        out[: len(old), :, S:] = K[:, :, old][:, turned].transpose(2, 1, 0)
        out[len(old) :] = K[new]
        return out

    def _drop_unused(self) -> None:
        """Remove the members of the support that the budget has dropped."""
        rows = np.flatnonzero(self.alive)
        self.support.keep(rows)
        self.alpha, self.beta = np.take(self.alpha, rows, axis=1), np.take(self.beta, rows, axis=2)
        self.alive = self.alive[rows]

    def coefficients(self) -> np.ndarray:
        """Return coefficients (n_groups, n_outputs, n_support) of the last hypothesis, or of the mean of all."""
        F = self.factors
        if takes_means(self.average):
            # a step at time s is part of the hypotheses after it, whose factors add up to C_T - C_s
            sums = F.sums_with(includes_last(self.average))
            mean = (sums[:, :, None] * self.alpha - self.beta) / self.n_averaged
        else:
            mean = F.F[:, :, None] * self.alpha  # W = VF for the last V
        return np.einsum("ut,gts->gus", self.output_gram, mean) if len(self.output_gram) else mean

    def _class_scores(self, X: Views) -> np.ndarray:
        """Return the scores by output; with votes, shares of the votes."""
        if self.average != "voted":
            return self.sums(X)
        now = np.full(len(X), self.n_hypotheses)
        return self.events.votes(
            lambda rows: self.support.against(self.grams, X[rows]), self.n_outputs, now, self.output_gram
        )

    def dual_coef(self) -> np.ndarray:
        """Return the coefficients of the support, before factors and averages: (n_support,) or by output."""
        alpha = self.alpha[:, self.alive]
        return alpha[0] if len(alpha) == 1 else alpha

    def support_ids(self) -> np.ndarray:
        """Return the names of the samples in the support."""
        return self.support.ids[self.alive]
