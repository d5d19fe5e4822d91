"""Linear online machines: weights per column, learned row by row at the nonzeros alone."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..views import _blocks
from ..views.container import Views
from ._events import Events
from ._steps import binary_pass, factors, linear_pass, link_pass, row_scores

TOL = {"float32": 1e-6, "float64": 1e-12}  # a score below this share of its terms is rounding, and counts as zero


class Rule(NamedTuple):
    """When and how far a learner steps: where the margin is at most `threshold`, by τ from `least` to `cap`.

    τ = (1 - margin) / (curvature · size² + ridge) within these; a perceptron has least = cap. Weights whose terms
    cancel up to `rounding` of them become 0: for samples that are rounded themselves.
    """

    threshold: float
    least: float
    cap: float
    ridge: float = 0.0
    curvature: float = 1.0
    rounding: float = 0.0


class Rows:
    """Rows of several views: entry j of view l in row i is values[start + j] in column columns[cstart + j]."""

    def __init__(self, *parts: np.ndarray):
        self.parts = parts
        self.values, self.columns, self.start, self.stop, self.cstart = parts

    def __getitem__(self, rows: slice) -> "Rows":
        return Rows(self.values, self.columns, self.start[rows], self.stop[rows], self.cstart[rows])


def read_rows(X: Views, offsets: Sequence[int], bias: int | None = None) -> Rows:
    """The rows of X, view l from column offsets[l] on; with a bias a last view of ones in that column."""
    n, starts = len(X), []
    values: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    before = at = 0
    for name, offset in zip(X.names, offsets, strict=True):
        block = X.block(name)
        if block is None:
            starts.append((np.zeros(n, dtype=np.int64),) * 3)
            continue
        if sp.issparse(block):
            values.append(block.data)
            columns.append(block.indices if offset == 0 else block.indices + offset)
            first, last = block.indptr[:-1], block.indptr[1:]
            placed = first
        else:
            dense = _blocks.to_numpy(block)
            values.append(np.ascontiguousarray(dense).reshape(-1))
            columns.append(np.arange(offset, offset + dense.shape[1], dtype=np.int32))
            first = np.arange(n) * dense.shape[1]
            last, placed = first + dense.shape[1], np.zeros(n, dtype=np.int64)
        if X.mask is not None:
            last = np.where(X.present(name), last, first)
        starts.append((first + before, last + before, placed + at) if before or at else (first, last, placed))
        before, at = before + len(values[-1]), at + len(columns[-1])
    if bias is not None:
        one = np.full(n, before, dtype=np.int64)
        starts.append((one, one + 1, np.full(n, at, dtype=np.int64)))
        values.append(np.ones(1, dtype=np.result_type(*values) if values else np.float64))
        columns.append(np.array([bias], dtype=np.int32))
    return Rows(_joined(values), _joined(columns), *(_side_by_side([s[k] for s in starts]) for k in range(3)))


def known_views(X: Views, names: Sequence[str]) -> Views:
    """The views of these names, absent where they are not; samples may have none of them."""
    blocks = {name: X.block(name) if name in X.names else None for name in names}
    views = Views.__new__(Views)
    views.names, views.feature_names, views._blocks, views._n = tuple(names), {}, blocks, len(X)
    none = np.zeros(len(X), dtype=bool)
    mask = np.column_stack([X.present(name) if name in X.names else none for name in names])
    views.mask = None if mask.all() else mask
    return views


def _is_row(row: Any, width: int) -> bool:
    """Whether a sparse row can be used as it is; others go the long way, where what is wrong with them is said."""
    if not (sp.issparse(row) and row.format == "csr" and row.shape == (1, width)):
        return False
    k, ends = row.indices, row.indptr
    if not (k.dtype.kind == "i" and len(ends) == 2 and ends[0] == 0 and ends[1] == len(k) == len(row.data)):
        return False
    return not len(k) or bool(k[0] >= 0 and k[-1] < width and (k[1:] > k[:-1]).all())


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _side_by_side(columns: list[np.ndarray]) -> np.ndarray:
    return columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)


class LinearMachine:
    """The state of a linear learner: V, its factors F by view and class, and what averages need.

    `shape` is "joint" (all views one vector), "views" (a vector each, factors between them) or "matrix" (columns shared
    by all views). Scores are by output: one for two classes, else one per class.
    """

    def __init__(self, shape: str, n_outputs: int, *, p: float = 1.0, average: bool = False, bias: bool = False):
        self.shape, self.p, self.average, self.n_outputs = shape, float(p), average, n_outputs
        self.offsets: dict[str, int] = {}
        self.widths: dict[str, int] = {}
        self.width = 0
        self.bias = bias
        self.B = np.zeros((2 if bias else 0, n_outputs))  # of the bias: its weight, and what averages need
        self.V = np.zeros((self.width, 1 if shape != "matrix" else 0, n_outputs))
        self.U = np.zeros_like(self.V)
        groups = 1 if shape == "joint" else 0
        self.norms, self.C = np.zeros((groups, n_outputs)), np.zeros((groups, n_outputs))
        self.F = np.ones((groups, n_outputs))
        self.prior = np.zeros(groups)
        self.state = np.zeros(2)  # hypotheses not yet in C; the largest score so far
        self.n_steps = 0
        self.n_hypotheses = 0  # how many have been in use, one per sample
        self._cache: tuple[bool, np.ndarray] | None = None  # W as it was last asked for

    def snapshot(self) -> "LinearMachine":
        """Itself: samples are read whole before the first is learned, so that nothing is refused halfway."""
        return self

    # -- growth
    def meet(self, X: Views, prior: Mapping[str, float] | None = None) -> None:
        """Make room for views that are new, and for columns in double precision."""
        new = [name for name in X.names if name not in self.offsets and X.present(name).any()]
        if not self.offsets and new:
            single = all(X.block(name).dtype == np.float32 for name in new)
            self.V = self.V.astype(np.float32 if single else np.float64)
        elif self.V.dtype == np.float32:
            shown = [X.block(name) for name in X.names if X.present(name).any()]
            if any(block is not None and block.dtype != np.float32 for block in shown):
                self.V = self.V.astype(np.float64)
        for name in new:
            width = _blocks.width(X.block(name))
            self.widths[name] = width
            if self.shape == "matrix":
                self.offsets[name] = 0
                self.width = max(self.width, width)
            else:
                self.offsets[name] = self.width
                self.width += width
        if new:
            self._enlarge(len(new), prior)

    def _enlarge(self, n_new: int, prior: Mapping[str, float] | None) -> None:
        self._cache = None
        self.C = self.C + self.state[0] * self.F
        self.state[0] = 0
        K, T = len(self.offsets), self.n_outputs
        weights = K if self.shape == "matrix" else 1
        for name in ("V", "U"):
            old = getattr(self, name)
            new = np.zeros((self.width if name == "V" or self.average else 0, weights, T), dtype=old.dtype)
            if len(old) and len(new):
                new[: len(old), : old.shape[1]] = old
            setattr(self, name, new)
        self.groups = np.zeros(K, dtype=np.int64) if self.shape == "joint" else np.arange(K)
        if self.shape == "joint":
            return
        before = K - n_new
        for name in ("norms", "F", "C"):
            old, fill = getattr(self, name), 1.0 if name == "F" and self.p == 1 else 0.0
            if self.shape == "views":
                new = np.full((K, T), fill)
                new[:before] = old
            else:
                grid = np.zeros((K, K, T)) + (np.eye(K)[:, :, None] if name == "F" and self.p == 1 else 0.0)
                grid[:before, :before] = old.reshape(before, before, T)
                new = grid.reshape(K * K, T)
            setattr(self, name, new)
        self.prior = np.array([float((prior or {}).get(name, 0.0)) for name in self.offsets])
        if self.shape == "matrix":
            self.prior = np.zeros(K * K)
        elif self.prior.any() or self.norms.any():
            for t in range(T):
                factors(self.norms[:, t], self.prior, self.p, K, self.F[:, t])

    def place(self, sources: Sequence[tuple[int, float]]) -> None:
        """Make the outputs anew: output t becomes a multiple of an old one (or of none, -1)."""
        self._cache = None
        for name in ("V", "U", "B", "norms", "F", "C"):
            old = getattr(self, name)
            fill = 1.0 if name == "F" else 0.0
            new = np.full((*old.shape[:-1], len(sources)), fill, dtype=old.dtype)
            for t, (source, scale) in enumerate(sources):
                if source >= 0:
                    power = {"V": scale, "U": scale, "B": scale, "norms": scale**2}.get(name, 1.0)
                    new[..., t] = old[..., source] * power
            setattr(self, name, new)
        if self.shape == "matrix":
            fresh = [t for t, (source, _) in enumerate(sources) if source < 0]
            self.F[:, fresh] = np.eye(len(self.offsets)).reshape(-1, 1)
        self.n_outputs = len(sources)

    # -- learning
    def read(self, X: Views) -> Rows:
        """Samples as rows; their views are known."""
        names = tuple(self.offsets)
        X = X if X.names == names else known_views(X, names)
        return read_rows(X, list(self.offsets.values()))

    @property
    def stride(self) -> int:
        """From one weight vector of a column to the next in pairs; 0 where there is one only."""
        return len(self.offsets) if self.shape == "matrix" else 0

    def learn(
        self, rows: Rows, codes: np.ndarray, rule: Rule, tol: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores before each sample was learned, and where they were wrong; `tol` is that of data which are rounded."""
        n, T, tol = len(codes), self.n_outputs, TOL[self.V.dtype.name] if tol is None else tol
        self._cache = None
        self.n_hypotheses += n
        scores, wrong = np.empty((n, T)), np.empty(n, dtype=bool)
        if T == 1 and self.shape != "matrix":
            flat = (self.V.reshape(-1), self.U.reshape(-1), self.norms[:, 0], self.F[:, 0], self.C[:, 0])
            how = (self.prior, self.p, rule, tol, self.state, scores[:, 0], wrong)
            self.n_steps += binary_pass(*rows.parts, self.B, self.groups, codes, *flat, *how)
            return scores, wrong
        steps = np.zeros((n, T))
        state = (self.V, self.U, self.norms, self.F, self.C, self.prior, self.p)
        linear_pass(
            *rows.parts,
            self.B,
            self.groups,
            self.stride,
            codes,
            *state,
            rule,
            tol,
            self.state,
            scores,
            wrong,
            steps,
        )
        self.n_steps += int(np.count_nonzero(steps.any(axis=1)))
        return scores, wrong

    # -- one row
    def read_one(self, x: Mapping[str, Any]) -> Rows | None:
        """One sample as rows; None where it has to be read the long way."""
        values, columns, bounds, places, found = [], [], [0], [], 0
        before = at = 0
        for name, offset in self.offsets.items():
            row, width = x.get(name), self.widths[name]
            places.append(at)
            if row is not None:
                found += 1
                if type(row) is np.ndarray and row.shape == (width,) and row.dtype in self._light:
                    values.append(row)
                    columns.append(np.arange(offset, offset + width, dtype=np.int32))
                elif _is_row(row, width) and row.dtype in self._light:
                    values.append(row.data)
                    columns.append(row.indices + offset if offset else row.indices)
                else:
                    return None
                before, at = before + len(values[-1]), at + len(columns[-1])
            bounds.append(before)
        if not found or found < len(x):
            return None
        entries, edges = _joined(values), np.array([bounds])
        if not math.isfinite(np.dot(entries, entries)):
            return None
        return Rows(entries, _joined(columns), edges[:, :-1], edges[:, 1:], np.array([places]))

    @property
    def _light(self) -> tuple[type, ...]:
        """Types of rows that need no conversion: weights in single precision are not for doubles."""
        return (np.float32,) if self.V.dtype == np.float32 else (np.float32, np.float64)

    def row_scores(self, rows: Rows, averaged: bool) -> np.ndarray:
        """Scores of one row, at its nonzeros alone."""
        by_view = self.C + self.state[0] * self.F if averaged else self.F
        U = self.U if averaged else self.U[:0]
        return np.asarray(
            row_scores(*rows.parts, self.B, self.groups, self.stride, self.V, U, by_view, max(self.n_hypotheses, 1))
        )

    # -- predicting
    def weights(self, averaged: bool) -> np.ndarray:
        """W by column, view ("matrix") and output: of the last hypothesis, or the mean of all so far."""
        cached = getattr(self, "_cache", None)
        if cached is not None and cached[0] == averaged:
            return cached[1]
        by_view = self.C + self.state[0] * self.F if averaged else self.F
        V = self.V.astype(np.float64, copy=False)
        if self.shape == "joint":
            W = V * by_view[0]
        elif self.shape == "views":
            by_column = np.repeat(by_view, [self.widths[name] for name in self.offsets], axis=0)
            W = V * by_column[:, None]
        else:
            K = len(self.offsets)
            W = np.einsum("jkt,klt->jlt", V, by_view.reshape(K, K, -1))
        if averaged:
            W = (W - self.U) / max(self.n_hypotheses, 1)
        self._cache = (averaged, W)
        return W

    def bias_weights(self, averaged: bool) -> np.ndarray:
        """The bias by output; 0 without one."""
        if not self.bias:
            return np.zeros(self.n_outputs)
        if not averaged:
            return self.F[0] * self.B[0]
        until = self.C[0] + self.state[0] * self.F[0]
        return np.asarray((until * self.B[0] - self.B[1]) / max(self.n_hypotheses, 1))

    def scores(self, X: Views, averaged: bool) -> np.ndarray:
        """Scores of shape (n, n_outputs)."""
        if not self.offsets:
            return np.zeros((len(X), self.n_outputs))
        W = self.weights(averaged)
        return _products(X, W, self.offsets, self.widths, self.bias_weights(averaged), by_view=self.shape == "matrix")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}


class LinkMachine:
    """The state of a p-norm perceptron: v, W = sign(v)|v|^(p-1) scaled by ‖v‖_p^(2-p), what averages and votes need."""

    def __init__(self, n_outputs: int, *, p: float, average: Any, bias: bool):
        self.p, self.average, self.bias, self.n_outputs = float(p), average, bias, n_outputs
        self.offsets: dict[str, int] = {}
        self.widths: dict[str, int] = {}
        self.width = 1 if bias else 0
        self.V, self.W = np.zeros((self.width, n_outputs)), np.zeros((self.width, n_outputs))
        self.U, self.last = np.zeros((0, n_outputs)), np.zeros((0, n_outputs))
        self.power, self.C = np.zeros(n_outputs), np.zeros(n_outputs)
        self.scale, self.base = np.zeros(n_outputs), np.zeros(n_outputs)  # of |v| now, and at the first step
        self.state = np.zeros(2)
        self.n_steps = self.n_hypotheses = 0
        self.events = Events()
        self.changes: list[sp.csr_array] = []

    def snapshot(self) -> "LinkMachine":
        """Itself: samples are read whole before the first is learned, so that nothing is refused halfway."""
        return self

    def meet(self, X: Views) -> None:
        """Make room for views that are new."""
        for name in X.names:
            if name not in self.offsets and X.present(name).any():
                self.widths[name] = _blocks.width(X.block(name))
                self.offsets[name], self.width = self.width, self.width + self.widths[name]
        for name in ("V", "W", "U", "last"):
            old = getattr(self, name)
            new = np.zeros((self.width if name in "VW" or self.average is True else 0, self.n_outputs))
            if len(new) > len(old):
                new[: len(old)] = old
                setattr(self, name, new)

    def place(self, sources: Sequence[tuple[int, float]]) -> None:
        """Make the outputs anew: output t becomes an old one (or none, -1) with a sign."""
        for name in ("V", "W", "U", "last", "power", "scale", "base", "C"):
            old = getattr(self, name)
            new = np.zeros((*old.shape[:-1], len(sources)))
            for t, (source, sign) in enumerate(sources):
                if source >= 0:
                    new[..., t] = old[..., source] * (sign if name in ("V", "W", "U") else 1.0)
            setattr(self, name, new)
        self.events.place(sources)
        self.n_outputs = len(sources)

    def learn(self, X: Views, codes: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
        """Scores before each sample was learned, and where they were wrong."""
        names = tuple(self.offsets)
        rows = read_rows(known_views(X, names), list(self.offsets.values()), 0 if self.bias else None)
        n, T = len(codes), self.n_outputs
        scores, wrong, steps = np.empty((n, T)), np.empty(n, dtype=bool), np.zeros((n, T))
        voted = self.average == "voted"
        rows = _unshared(rows) if voted and self.bias else rows
        changes, history = np.zeros((len(rows.values) if voted else 0, T)), np.zeros((n if voted else 0, T))
        state = (self.V, self.W, self.last, self.U, self.power, self.scale, self.base, self.C, self.p)
        link_pass(*rows.parts, codes, *state, rule, TOL["float64"], self.state, scores, wrong, steps, changes, history)
        if voted:
            self._note(rows, steps, changes, history)
        self.n_hypotheses += n
        self.n_steps += int(np.count_nonzero(steps.any(axis=1)))
        return scores, wrong

    def _note(self, rows: Rows, steps: np.ndarray, changes: np.ndarray, history: np.ndarray) -> None:
        """Keep the changes of W at each step: one vector for each class that changed."""
        moved = np.argwhere(steps)
        values, columns, bounds = [], [], [0]
        for i, t in moved:
            for first, last, at in zip(rows.start[i], rows.stop[i], rows.cstart[i], strict=True):
                values.append(changes[first:last, t])
                columns.append(rows.columns[at : at + last - first])
            bounds.append(bounds[-1] + int((rows.stop[i] - rows.start[i]).sum()))
        if len(moved):
            known = sum(part.shape[0] for part in self.changes)
            vectors = (np.concatenate(values), np.concatenate(columns), np.array(bounds))
            self.changes.append(sp.csr_array(vectors, shape=(len(moved), self.width)))
            factors = history[moved[:, 0], moved[:, 1]][:, None]
            slots = known + np.arange(len(moved))
            self.events.add(slots, moved[:, 1], np.ones(len(moved)), factors, self.n_hypotheses + 1 + moved[:, 0])

    def weights(self) -> np.ndarray:
        """W by column and output: of the last hypothesis, or the mean of all so far."""
        known = self.power > 0
        c = np.where(known, self.scale * np.where(known, self.power, 1.0) ** (2 / self.p - 1), 1.0)
        if self.average is not True:
            return self.W * c
        until = self.C + self.state[0] * c
        return (self.U + self.W * (until - self.last)) / max(self.n_hypotheses, 1)

    def scores(self, X: Views) -> np.ndarray:
        """Scores of shape (n, n_outputs); with votes the share of lives that vote for a class."""
        if self.average == "voted":
            Z = read_matrix(X, self.offsets, self.widths, self.width, self.bias)
            vectors = [
                sp.csr_array((v.data, v.indices, v.indptr), shape=(v.shape[0], self.width)) for v in self.changes
            ]
            D = sp.vstack(vectors, format="csr") if vectors else sp.csr_array((0, self.width))
            return self.events.votes(
                lambda rows: (Z[rows] @ D.T).toarray()[:, None], len(X), self.n_outputs, self.n_hypotheses
            )
        W = self.weights()
        return _products(X, W[:, None], self.offsets, self.widths, W[0] if self.bias else 0.0)


def _unshared(rows: Rows) -> Rows:
    """The same rows, the one of the bias repeated so that each has an entry of its own."""
    n, end = len(rows.start), len(rows.values) - 1
    start, stop = rows.start.copy(), rows.stop.copy()
    start[:, -1] = end + np.arange(n)
    stop[:, -1] = start[:, -1] + 1
    return Rows(np.concatenate([rows.values[:end], np.ones(n)]), rows.columns, start, stop, rows.cstart)


def read_matrix(
    X: Views, offsets: Mapping[str, int], widths: Mapping[str, int], width: int, bias: bool
) -> sp.csr_array:
    """All views in one sparse matrix, absent rows empty."""
    parts = [sp.csr_array(np.ones((len(X), 1)))] if bias else []
    for name in offsets:
        there = np.flatnonzero(X.present(name)) if name in X.names and X.block(name) is not None else np.zeros(0, int)
        block = sp.csr_array(_blocks.take(X.block(name), there)) if len(there) else sp.csr_array((0, widths[name]))
        place = sp.csr_array((np.ones(len(there)), (there, np.arange(len(there)))), shape=(len(X), len(there)))
        parts.append(place @ block)
    return sp.hstack(parts, format="csr")


def _products(
    X: Views, W: np.ndarray, offsets: Mapping[str, int], widths: Mapping[str, int], start: Any, by_view: bool = False
) -> np.ndarray:
    """Σ over the views present of x_v' W_v, from `start` on."""
    total = np.zeros((len(X), W.shape[2])) + start
    for l, name in enumerate(offsets):
        if name not in X.names or X.block(name) is None:
            continue
        own = W[offsets[name] : offsets[name] + widths[name], l if by_view else 0]
        there = np.flatnonzero(X.present(name))
        block = X.block(name) if len(there) == len(X) else _blocks.take(X.block(name), there)
        total[there] += np.asarray((block if sp.issparse(block) else _blocks.to_numpy(block)) @ own)
    return total
