"""Linear machines: weights of columns, learned row by row at the nonzero entries alone."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._jit import jit
from ..kernels import Kernel
from ..views.container import Views
from ._arrays import (
    IntervalRecord,
    LinearState,
    PassRecord,
    RowArrays,
    Rule,
    as_intervals,
    new_interval_record,
    new_record,
    target_intervals,
)
from ._binary_steps import binary_pass
from ._factors import ViewFactors
from ._interval_steps import linear_interval_pass
from ._machine import Lesson, Machine, Sources, first_weight, includes_last, mean_of, plain, remapped
from ._rows import Columns, Rows, joined, known_views, read_numbers, read_only, read_rows
from ._steps import linear_pass

_LAYOUTS = 64  # sets of views of single samples whose columns are kept
_ONE = {np.dtype(kind): np.ones(1, dtype=kind) for kind in (np.float32, np.float64)}
_TOL = {"float32": 1e-6, "float64": 1e-12}  # scores below this fraction of their terms are rounding, and count as 0


class LinearMachine(Machine):
    """State of a linear estimator: V, the factors F by view and output, and what averages need.

    `shape` is "joint" (one vector for all views), "views" (one each, with factors) or "pairs" (one each over shared
    columns, with a matrix of factors). An intercept is a weight of its own for "joint", else a column of ones in each
    view.
    """

    def __init__(
        self,
        shape: str,
        n_outputs: int,
        *,
        p: float = 1.0,
        average: Any = False,
        fit_intercept: bool = False,
        prior_norms: Any = None,
    ):
        self.shape, self.average, self.fit_intercept, self.n_outputs = shape, average, fit_intercept, n_outputs
        joint = shape == "joint"
        self.columns = Columns(shared=shape == "pairs", ones=fit_intercept and not joint)
        self.factors = ViewFactors(shape, n_outputs, p, prior_norms)
        self.V = np.zeros((0, 0 if shape == "pairs" else 1, n_outputs))  # views that come later add columns and vectors
        self.U = np.zeros_like(self.V)
        self.intercept = np.zeros((2 if fit_intercept and joint else 0, n_outputs))  # its weight, what averages need
        self._forget_caches()

    def _forget_caches(self) -> None:
        """Drop what is derived from the arrays, after one of them was replaced."""
        self._weights: list[np.ndarray] | None = None  # W where it is computed already
        self._state: tuple[Any, ...] | None = None
        self._interval_state: tuple[Any, ...] | None = None
        self._layouts: dict[tuple[str, ...], tuple[np.ndarray, ...]] = {}  # of single samples, by their views

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_weights": None, "_state": None, "_interval_state": None, "_layouts": {}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_caches()  # a file could hold others

    # -- growth
    def add_views(self, X: Views, kernels: Mapping[str, Kernel] | None = None) -> None:
        """Make room for views that occur for the first time, and for columns in double precision."""
        new = self.columns.add(X)
        single = all(X.block(name).dtype == np.float32 for name in X.names if X.present(name).any())
        was_single = self.V.dtype == np.float32 or len(new) == len(self.columns.offsets)
        dtype = np.float32 if single and was_single else np.float64  # the first views may be single
        if self.V.dtype != dtype:
            self.V = self.V.astype(dtype)
            self._forget_caches()
        if not new:
            return
        m, T = len(self.columns.offsets), self.n_outputs
        vectors = m if self.columns.shared else 1
        for name in ("V", "U"):
            old = getattr(self, name)
            wide = np.zeros((self.columns.width if name == "V" or self.average else 0, vectors, T), dtype=old.dtype)
            if len(old) and len(wide):
                wide[: len(old), : old.shape[1]] = old
            setattr(self, name, wide)
        self.factors.add_views(tuple(self.columns.offsets))
        self._forget_caches()

    def remap_outputs(self, sources: Sources) -> None:
        """Replace the outputs: each becomes a multiple of an output before, or 0."""
        self.V, self.U, self.intercept = (remapped(a, sources) for a in (self.V, self.U, self.intercept))
        self.factors.remap(sources)
        self.n_outputs = len(sources)
        self._forget_caches()

    def forget(self, share: float, view: str | None) -> None:
        """Multiply the weights by a share, of one view or of all; means of hypotheses start again."""
        m, factors = len(self.columns.offsets), self.factors
        which = [l for l, name in enumerate(self.columns.offsets) if view in (None, name)]
        scale = np.ones(m)
        scale[which] = share
        for l, name in enumerate(self.columns.offsets):
            self.V[self.columns.span(name), l if self.columns.shared else 0] *= scale[l]
        self.intercept[:1] *= share if view is None else 1.0
        self.U[:], self.intercept[1:] = 0, 0
        left = share > 0 or view is not None
        factors.forget(scale, first_weight(self.average) if left else 0.0)
        self.n_hypotheses = int(left)
        self._weights = None

    def view_names(self) -> tuple[str, ...]:
        """Return the views that some sample had, in the order in which they joined."""
        return tuple(self.columns.offsets)

    # -- learning
    def read(self, X: Views) -> Rows:
        """Return samples as rows; their views are known."""
        names = tuple(self.columns.offsets)
        return Rows(read_rows(X if X.names == names else known_views(X, names), self.columns))

    def learn(self, chunk: Rows, lesson: Lesson, rule: Rule) -> PassRecord | IntervalRecord:
        """Learn samples in order; return their scores before learning, and where the decision was wrong."""
        if lesson.codes.ndim == 2:
            return self.learn_intervals(chunk, lesson, rule)
        n = len(lesson.codes)
        record = new_record(n, self.n_outputs, len(self.columns.offsets) if lesson.shares else 0)
        tol = rule.rounding or _TOL[self.V.dtype.name]
        rows, state = tuple(chunk.arrays), self._state or self._pass_state()
        one_pass = binary_pass if self._is_plain() else linear_pass  # the first is faster
        self.n_updates += one_pass(
            rows, lesson.codes, lesson.weights, state, tuple(rule), tol, self.n_hypotheses, tuple(record)
        )
        self.n_hypotheses += n
        self._weights = None
        return record

    def learn_intervals(self, chunk: Rows, lesson: Lesson, rule: Any) -> IntervalRecord:
        """Learn samples with numbers or labels for the outputs, in order; return their scores before learning."""
        n, rule = len(lesson.codes), as_intervals(rule)
        record = new_interval_record(n, self.n_outputs, len(self.columns.offsets) if lesson.shares else 0)
        self._weights, tol = None, _TOL[self.V.dtype.name]
        if self._interval_state is None:
            self._interval_state = plain(self._arrays())
        given = (tuple(chunk.arrays), target_intervals(rule, lesson.codes), lesson.weights, self._interval_state)
        self.n_updates += linear_interval_pass(*given, tuple(rule), tol, self.n_hypotheses, tuple(record))
        self.n_hypotheses += n
        return record

    def _is_plain(self) -> bool:
        """Return whether there is one weight per column, and no prior norms are learned."""
        return self.n_outputs == 1 and not self.columns.shared and not len(self.factors.learned)

    def _arrays(self) -> LinearState:
        """Return the arrays of a compiled pass."""
        m = len(self.columns.offsets)
        groups = np.zeros(m, dtype=np.int64) if self.shape == "joint" else np.arange(m)
        return LinearState(self.V, self.U, self.intercept, groups, self.factors.arrays(), mean_of(self.average))

    def _pass_state(self) -> tuple[Any, ...]:
        """Return the arrays of a compiled pass, kept until one of them is replaced; vectors for a single output."""
        state = self._arrays()
        if self._is_plain():
            factors = state.factors
            factors = factors._replace(norms=factors.norms[:, 0], F=factors.F[:, 0], C=factors.C[:, 0])
            state = state._replace(V=self.V.reshape(-1), U=self.U.reshape(-1), factors=factors)
        self._state = plain(state)
        return self._state

    # -- one row
    def read_one(self, x: Mapping[str, Any]) -> Rows | None:
        """Return one sample as rows; None if it must be validated as Views first."""
        given, n_given, ones = {}, 0, self.columns.ones
        single = self.V.dtype == np.float32  # such weights are not for samples in double precision
        for name, width in self.columns.widths.items():
            if name in x:
                n_given += 1
                own = _read_row(x[name], width - ones)
                if own is NotImplemented or (single and own is not None and own.dtype != np.float32):
                    return None
                if own is not None:
                    given[name] = own
        if not given or n_given < len(x):  # x has a view that is not known yet
            return None
        return Rows(RowArrays(read_only(_joined_values(given, ones)), *self._layout(given)))

    def _layout(self, given: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        """Return all of `RowArrays` but the values of one row; dense rows of the same views share it."""
        dense = all(type(own) is np.ndarray for own in given.values())
        if dense and (known := self._layouts.get(tuple(given))) is not None:
            return known
        columns: list[Any] = []
        bounds, at, ones = [0], 0, self.columns.ones
        for name, offset in self.columns.offsets.items():
            if name in given:
                own = given[name]
                width = self.columns.widths[name]
                columns += [np.array([offset], dtype=np.int32)] * ones
                columns.append(
                    own.indices + (offset + ones) if sp.issparse(own) else np.arange(offset + ones, offset + width)
                )
                at += ones + len(columns[-1])
            bounds.append(at)
        edges = np.array([bounds])
        places = read_only(joined(columns).astype(np.int32, copy=False))
        layout = (places, edges[:, :-1], edges[:, 1:], edges[:, :-1])
        if dense and len(self._layouts) < _LAYOUTS:
            self._layouts[tuple(given)] = layout
        return layout

    def score_one(self, row: Rows) -> np.ndarray:
        """Return the scores of one row, computed at its nonzero entries alone."""
        scale = self.n_averaged if self.average else 1  # ΣF and U are sums over all hypotheses
        groups = (self._state or self._pass_state())[3]
        arrays = (groups, self.factors.side, self.V, self.U, self.intercept, self._sums())
        return np.asarray(_row_scores(*row.arrays, *arrays)) / scale

    # -- predicting
    def _sums(self) -> np.ndarray:
        """Return the factors of the last hypothesis or, for averages, Σ F."""
        return self.factors.sums_with(includes_last(self.average)) if self.average else self.factors.F

    def weights(self) -> np.ndarray:
        """Return W by column, view ("pairs") and output: of the last hypothesis, or of the mean of all."""
        kept = self._weights
        if kept is None:  # another thread may learn: it replaces the list, so weights from before are not used after
            self._weights = kept = []
        if not kept:
            F, V = self._sums(), self.V.astype(np.float64, copy=False)
            m = len(self.columns.offsets)
            if self.columns.shared:
                # W = VF: the weights of view l mix the vectors of all views
                W = np.einsum("jkt,klt->jlt", V, F.reshape(m, m, -1))
            elif self.shape == "joint":
                W = V * F[0]
            else:  # the factors of each view at its columns
                W = V * np.repeat(F, list(self.columns.widths.values()), axis=0)[:, None]
            # V ΣF - U: a step counts from its own time on
            kept.append((W - self.U) / self.n_averaged if self.average else W)
        return kept[0]

    def coef(self) -> dict[str, np.ndarray]:
        """Return the weights by view, (n_columns,) or (n_columns, n_classes)."""
        return self.columns.by_view(self.weights())

    def intercepts(self) -> np.ndarray:
        """Return the intercept of each output; 0 without one."""
        B, F = self.intercept, self._sums()
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        if self.columns.ones:
            return self.columns.intercepts(self.weights()) if self.columns.offsets else np.zeros(self.n_outputs)
        return np.asarray((F[0] * B[0] - B[1]) / self.n_averaged if self.average else F[0] * B[0])

    def scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, n_outputs)."""
        if not self.columns.offsets:
            return np.zeros((len(X), self.n_outputs))
        return self.columns.products(X, self.weights(), 0.0 if self.columns.ones else self.intercepts())


@jit()
def _row_scores(values, columns, start, stop, column_start, groups, side, V, U, intercept, F):  # type: ignore[no-untyped-def]  # fmt: skip
    """Return Σ_l x_l'(V F - U)_l of one row, plus the intercept; U is empty without averages."""
    T = F.shape[1]
    total = np.zeros((1, T))
    for t in range(T):
        if len(intercept):
            total[0, t] = F[0, t] * intercept[0, t] - (intercept[1, t] if len(U) else 0.0)
        for l in range(len(groups)):
            shift = column_start[0, l] - start[0, l]
            for j in range(start[0, l], stop[0, l]):
                c, weight = columns[j + shift], 0.0
                for k in range(V.shape[1]):
                    weight += F[groups[l] + k * side, t] * V[c, k, t]
                total[0, t] += values[j] * (weight - (U[c, l if side > 0 else 0, t] if len(U) else 0.0))
    return total


def _read_row(row: Any, width: int) -> Any:
    """Return the row of one view; None if it is missing, `NotImplemented` if it must be validated."""
    if row is None:
        return None
    if type(row) is np.ndarray or not sp.issparse(row):  # the first test is faster
        return read_numbers(row, width)
    return row if _is_valid_row(row, width) and math.isfinite(np.dot(row.data, row.data)) else NotImplemented


def _joined_values(given: Mapping[str, Any], ones: int) -> np.ndarray:
    """Return the values of the rows of several views, one after the other, each after its column of ones."""
    values = [own if type(own) is np.ndarray else own.data for own in given.values()]
    return joined([part for own in values for part in (_ONE[own.dtype], own)] if ones else values)


def _is_valid_row(row: Any, width: int) -> bool:
    """Return whether a sparse row can be used as it is; validation as Views says what is wrong with the others."""
    if not (sp.issparse(row) and row.format == "csr" and row.shape == (1, width)):
        return False
    k, ends = row.indices, row.indptr
    if not (k.dtype.kind == "i" and len(ends) == 2 and ends[0] == 0 and ends[1] == len(k) == len(row.data)):
        return False
    if row.dtype not in (np.float32, np.float64):
        return False
    return not len(k) or bool(k[0] >= 0 and k[-1] < width and (k[1:] > k[:-1]).all())
