"""The machine of the p-norm perceptron, and its compiled pass."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._jit import jit
from ..kernels import Kernel
from ..views.container import Views
from ._arrays import PassRecord, RowArrays, Rule, new_record
from ._events import Events
from ._machine import Lesson, Machine, Sources, first_weight, includes_last, mean_of, remapped, takes_means
from ._rows import Columns, known_views, read_rows


class LinkState(NamedTuple):
    """State of a pass with w = c W, where W = sign(v)(|v|/scale)^(p-1) and c is a factor of each output."""

    V: np.ndarray  # (n_columns, n_outputs)
    W: np.ndarray
    U: np.ndarray  # Σ of W (C - last) over the values W had, for averages; empty without
    last: np.ndarray  # C when the weight last changed
    power: np.ndarray  # (n_outputs,): Σ (|v|/scale)^p
    scale: np.ndarray  # power of two near the largest |v|
    base: np.ndarray  # scale at the first step
    C: np.ndarray  # Σ c since the scale was chosen
    counters: np.ndarray  # hypotheses that C lacks
    p: float


class LinkRecord(NamedTuple):
    """What a pass reports; `scores` are those of the mean where there are averages."""

    scores: np.ndarray
    wrong: np.ndarray
    steps: np.ndarray  # (n, n_outputs)
    changes: np.ndarray  # change of W at each entry of the rows, for the scale `base`; empty unless hypotheses vote
    history: np.ndarray  # (n, n_outputs): factor c after a step, for the scale `base`; empty unless hypotheses vote


class LinkMachine(Machine):
    """State of a p-norm perceptron: v, its link W = sign(v)|v|^(p-1) up to factors, what averages and votes need."""

    shape = "joint"  # one vector for all views

    def __init__(self, n_outputs: int, *, p: float, average: Any, fit_intercept: bool):
        self.p, self.average, self.fit_intercept, self.n_outputs = float(p), average, fit_intercept, n_outputs
        self.columns = Columns(first=int(fit_intercept))  # the intercept is the weight of a column of ones
        self.V, self.W = np.zeros((self.columns.width, n_outputs)), np.zeros((self.columns.width, n_outputs))
        self.U, self.last = np.zeros((0, n_outputs)), np.zeros((0, n_outputs))
        self.power, self.C = np.zeros(n_outputs), np.zeros(n_outputs)
        self.scale, self.base = np.zeros(n_outputs), np.zeros(n_outputs)
        self.counters = np.zeros(1)
        self.events = Events()
        self.changes: list[sp.csr_array] = []

    def add_views(self, X: Views, kernels: Mapping[str, Kernel] | None = None) -> None:
        """Make room for the views of X that occur for the first time."""
        self.columns.add(X)
        for name in ("V", "W", "U", "last"):
            old = getattr(self, name)
            new = np.zeros((self.columns.width if name in "VW" or takes_means(self.average) else 0, self.n_outputs))
            if len(new) > len(old):
                new[: len(old)] = old
                setattr(self, name, new)

    def remap_outputs(self, sources: Sources) -> None:
        """Replace the outputs: each becomes an output before, with a sign, or 0."""
        for name in ("V", "W", "U", "last", "power", "scale", "base", "C"):
            setattr(self, name, remapped(getattr(self, name), sources, power=int(name in ("V", "W", "U"))))
        self.events.remap(sources)
        self.n_outputs = len(sources)

    def forget(self, share: float, view: str | None) -> None:
        """Multiply v by a share, of one view or of all; means of hypotheses start again."""
        spans = [slice(0, None)] if view is None else [self.columns.span(view)] * (view in self.columns.offsets)
        for span in spans:
            self.V[span] *= share
        sizes = np.abs(self.V) / np.where(self.scale > 0, self.scale, 1.0)
        self.W = np.ascontiguousarray(np.sign(self.V) * sizes ** (self.p - 1))
        self.power = (sizes**self.p).sum(axis=0)
        self.scale[self.power == 0] = 0.0  # as before the first step
        left = share > 0 or view is not None
        self.U[:], self.last[:], self.C[:] = 0, 0, 0
        self.counters[:] = first_weight(self.average) if left else 0.0
        self.n_hypotheses = int(left)

    def view_names(self) -> tuple[str, ...]:
        """Return the views that some sample had, in the order in which they joined."""
        return tuple(self.columns.offsets)

    def learn(self, chunk: Views, lesson: Lesson, rule: Rule) -> PassRecord:
        """Learn samples in order; return their scores before learning, and where the decision was wrong."""
        n, T, voted = len(lesson.codes), self.n_outputs, self.average == "voted"
        rows = read_rows(known_views(chunk, tuple(self.columns.offsets)), self.columns, self.fit_intercept)
        rows = _unshared(rows) if voted and self.fit_intercept else rows  # `changes` needs a place for each row
        record = LinkRecord(
            *new_record(n, T)[:2],
            steps=np.zeros((n, T)),
            changes=np.zeros((len(rows.values) if voted else 0, T)),
            history=np.zeros((n if voted else 0, T)),
        )
        state = LinkState(
            self.V, self.W, self.U, self.last, self.power, self.scale, self.base, self.C, self.counters, self.p
        )
        times = (self.n_hypotheses, mean_of(self.average))
        given = (lesson.codes, lesson.weights, rule.threshold, rule.least)
        _link_pass(tuple(rows), given, tuple(state), times, tuple(record))
        before = self.n_hypotheses
        if voted:
            self._add_events(rows, record)
        self.n_hypotheses += n
        self.n_updates += int(np.count_nonzero(record.steps.any(axis=1)))
        scores = self._votes(chunk, before + np.arange(n)) if voted and lesson.scored else record.scores
        return PassRecord(scores, record.wrong, np.zeros((0, 0)))

    def _add_events(self, rows: RowArrays, record: LinkRecord) -> None:
        """Keep the changes of W at each step: one sparse vector for each output that changed."""
        moved = np.argwhere(record.steps)
        if not len(moved):
            return
        values, columns, bounds = [], [], [0]
        for i, t in moved:
            for first, last, at in zip(rows.start[i], rows.stop[i], rows.column_start[i], strict=True):
                values.append(record.changes[first:last, t])
                columns.append(rows.columns[at : at + last - first])
            bounds.append(bounds[-1] + int((rows.stop[i] - rows.start[i]).sum()))
        slots = sum(part.shape[0] for part in self.changes) + np.arange(len(moved))
        vectors = (np.concatenate(values), np.concatenate(columns), np.array(bounds))
        self.changes.append(sp.csr_array(vectors, shape=(len(moved), self.columns.width)))
        factors = record.history[moved[:, 0], moved[:, 1]][:, None]
        self.events.add(slots, moved[:, 1], np.ones(len(moved)), factors, self.n_hypotheses + 1 + moved[:, 0])

    def weights(self) -> np.ndarray:
        """Return w by column and output: of the last hypothesis, or of the mean of all."""
        known = self.power > 0
        # `_factor` of each output
        c = np.where(known, self.scale * np.where(known, self.power, 1.0) ** (2 / self.p - 1), 1.0)
        if not takes_means(self.average):
            return self.W * c
        until = self.C + (self.counters[0] + includes_last(self.average)) * c  # Σ c up to now
        # the value that W has now has not been added yet
        return (self.U + self.W * (until - self.last)) / self.n_averaged

    def coef(self) -> dict[str, np.ndarray]:
        """Return the weights by view, (n_columns,) or (n_columns, n_classes)."""
        return self.columns.by_view(self.weights()[:, None])

    def intercepts(self) -> np.ndarray:
        """Return the intercept of each output; 0 without one."""
        return np.array(self.weights()[0]) if self.fit_intercept else np.zeros(self.n_outputs)

    def scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, n_outputs); with votes, the share of the votes for each class."""
        if self.average != "voted":
            return self.columns.products(X, self.weights()[:, None], self.intercepts())
        return self._votes(X, np.full(len(X), self.n_hypotheses))

    def _votes(self, X: Views, now: np.ndarray) -> np.ndarray:
        """Return the share of the votes for each class, after `now` samples of the stream."""
        Z, width = self.columns.matrix(X, self.fit_intercept), self.columns.width
        vectors = [sp.csr_array((v.data, v.indices, v.indptr), shape=(v.shape[0], width)) for v in self.changes]
        D = sp.vstack(vectors, format="csr") if vectors else sp.csr_array((0, width))
        identity = np.zeros((0, 0))
        return self.events.votes(lambda rows: (Z[rows] @ D.T).toarray()[:, None], self.n_outputs, now, identity)


def _unshared(rows: RowArrays) -> RowArrays:
    """Return the same rows, each with an entry of its own for the intercept: the changes there differ."""
    n, end = len(rows.start), len(rows.values) - 1
    start, stop = rows.start.copy(), rows.stop.copy()
    start[:, -1] = end + np.arange(n)
    stop[:, -1] = start[:, -1] + 1
    return rows._replace(values=np.concatenate([rows.values[:end], np.ones(n)]), start=start, stop=stop)


# -- the compiled pass
@jit()
def _factor(power, scale, p):  # type: ignore[no-untyped-def]
    """Return c = ‖v‖_p^(2-p) scale^(p-1), so that w = c W."""
    return scale * power ** (2 / p - 1) if power > 0 else 1.0  # ‖v‖_p = scale · power^(1/p)


@jit()
def _decide(scores, code, sizes, tol):  # type: ignore[no-untyped-def]
    """Return the margin, 0 within rounding, and the best other class, the first among ties (-1 with one output).

    `sizes` are the sums of the absolute terms of the scores. A single score becomes 0 with its margin.
    """
    rival = -1
    for t in range(len(scores) if len(scores) > 1 else 0):
        if t != code and (rival < 0 or scores[t] > scores[rival]):
            rival = t
    for t in range(rival):
        if t != code and scores[rival] - scores[t] <= tol * (sizes[rival] + sizes[t]):
            rival = t
            break
    if rival < 0:
        scores[0] = 0.0 if abs(scores[0]) <= tol * sizes[0] else scores[0]
        return scores[0] if code == 1 else -scores[0], rival
    margin = scores[code] - scores[rival]
    return 0.0 if abs(margin) <= tol * (sizes[code] + sizes[rival]) else margin, rival


@jit()
def _weight(t, mean):  # type: ignore[no-untyped-def]
    """Return the weight of hypothesis t in the mean; with mean = 2 later ones count more (Shamir and Zhang 2013)."""
    return t * (t + 1.0) * (t + 2.0) if mean == 2 else 1.0


@jit()
def _total(n, mean):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of n hypotheses, and of one more with mean = 1; at least 1."""
    return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4 if mean == 2 else n + 1.0 * mean, 1.0)


@jit()
def _rescale(state, t):  # type: ignore[no-untyped-def]
    """Choose the scale of an output again, a power of two from its largest |v|; U takes the averages until now."""
    V, W, U, last, p = state.V, state.W, state.U, state.last, state.p
    top = 0.0
    for k in range(len(V)):
        top = max(top, abs(V[k, t]))
    if top == 0:
        return
    state.scale[t] = 2.0 ** np.ceil(np.log2(top))  # a division by it is exact
    state.power[t] = 0
    for k in range(len(V)):
        if len(U):
            U[k, t] += W[k, t] * (state.C[t] - last[k, t])
            last[k, t] = 0  # C starts again
        share = abs(V[k, t]) / state.scale[t]
        W[k, t] = np.sign(V[k, t]) * share ** (p - 1)
        state.power[t] += share**p
    state.C[t] = 0


@jit()
def _first_scale(values, start, stop, a):  # type: ignore[no-untyped-def]
    """Return a power of two from the largest entry of a row; 0 for a row of zeros."""
    top = 0.0
    for l in range(len(start)):
        for j in range(start[l], stop[l]):
            top = max(top, abs(a * values[j]))
    return 2.0 ** np.ceil(np.log2(top)) if top > 0 else 0.0


@jit()
def _add_row(values, columns, start, stop, column_start, state, t, a, changes):  # type: ignore[no-untyped-def]
    """Add a x to v in output t, and update W, its power and the averages; return the largest |v| over the scale."""
    V, W, U, last, power, scale, base, C, _, p = state
    top = 0.0
    for l in range(len(start)):
        shift = column_start[l] - start[l]
        for j in range(start[l], stop[l]):
            k = columns[j + shift]
            v, w = V[k, t], W[k, t]
            if len(U):
                U[k, t] += w * (C[t] - last[k, t])
                last[k, t] = C[t]
            V[k, t] = v + a * values[j]
            share = abs(V[k, t]) / scale[t]
            top = max(top, share)
            W[k, t] = np.sign(V[k, t]) * share ** (p - 1)
            power[t] = max(power[t] + share**p - (abs(v) / scale[t]) ** p, 0.0)  # below 0 only by rounding
            if len(changes):
                # in units of the first scale, which stays
                changes[j, t] = (W[k, t] - w) * (scale[t] / base[t]) ** (p - 1)
    return top


@jit()
def _set_means(rows, i, state, times, means):  # type: ignore[no-untyped-def]
    """Set the scores of row i by the mean of the hypotheses so far; `times` are their number, and which mean it is."""
    values, columns, start, stop, column_start = rows
    n, mean = times
    for t in range(len(means)):
        until = state.C[t] + (state.counters[0] + (mean == 1)) * _factor(state.power[t], state.scale[t], state.p)
        means[t] = 0.0
        for l in range(start.shape[1]):
            shift = column_start[i, l] - start[i, l]
            for j in range(start[i, l], stop[i, l]):
                k = columns[j + shift]
                means[t] += values[j] * (state.U[k, t] + state.W[k, t] * (until - state.last[k, t]))
        means[t] /= _total(n + i, mean)


@jit()
def _link_pass(rows, given, state, times, record):  # type: ignore[no-untyped-def]
    """Learn rows: where the margin is at most the threshold, add ±eta0 x to v, times the weight of the sample."""
    (values, columns, start, stop, column_start), (codes, weights, threshold, eta0) = rows, given
    state, record = LinkState(*state), LinkRecord(*record)
    W, power, scale, base, C, p, tol = state.W, state.power, state.scale, state.base, state.C, state.p, 1e-12
    T = W.shape[1]
    total, sizes = np.empty(T), np.empty(T)
    for i in range(len(codes)):
        total[:] = 0
        sizes[:] = 0
        for l in range(start.shape[1]):
            shift = column_start[i, l] - start[i, l]
            for j in range(start[i, l], stop[i, l]):
                for t in range(T):
                    z = W[columns[j + shift], t] * values[j]
                    total[t] += z
                    sizes[t] += abs(z)
        for t in range(T):
            total[t] *= _factor(power[t], scale[t], p)
            sizes[t] *= _factor(power[t], scale[t], p)
        code = codes[i]
        margin, rival = _decide(total, code, sizes, tol)
        for t in range(T):  # loops compile faster than array expressions
            record.scores[i, t] = total[t]
        if len(state.U):
            _set_means(rows, i, state, times, record.scores[i])
        state.counters[0] += _weight(times[0] + i + 1, times[1])
        record.wrong[i] = margin <= 0
        if margin > threshold * (1 + tol):
            continue
        for t in range(T):
            # closes the hypotheses in use since the last step
            C[t] += state.counters[0] * _factor(power[t], scale[t], p)
        state.counters[0] = 0
        for t in (code if T > 1 else 0, rival):
            if t < 0:
                continue
            a = weights[i] * (-eta0 if t == rival or (T == 1 and code == 0) else eta0)
            record.steps[i, t] = a
            if scale[t] == 0:  # the first step of the output
                scale[t] = base[t] = _first_scale(values, start[i], stop[i], a)
                if scale[t] == 0:
                    continue
            before = power[t]
            top = _add_row(values, columns, start[i], stop[i], column_start[i], state, t, a, record.changes)
            if len(record.history):
                record.history[i, t] = _factor(power[t] * (scale[t] / base[t]) ** p, base[t], p)
            # a scale far from |v| loses accuracy in `power`, and so does a C much larger than its next terms
            if top > 4 or power[t] < 1e-3 * before or C[t] > 1e4 * _factor(power[t], scale[t], p):
                _rescale(state, t)
