"""Columns shuffled among the samples: the score that is lost, for each column or by halving blocks of them."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..views import _blocks
from ..views.container import Views

_CLEAR = 2.0  # standard errors by which a block must lose score to be divided


@dataclass(frozen=True)
class ColumnUnit:
    """Columns of one view that belong together."""

    view: str
    name: str
    columns: np.ndarray
    is_column: bool = True


def present_block(X: Views, name: str) -> Any:
    block = _blocks.take(X.block(name), np.flatnonzero(X.present(name)))
    return block if sp.issparse(block) else np.asarray(to_numpy(block), dtype=np.float64)


def column_deviations(X: Views, name: str) -> np.ndarray:
    """Return the standard deviations of a view's columns among the samples that have it."""
    block = present_block(X, name)
    if not block.shape[0]:
        return np.full(block.shape[1], np.nan)
    if not sp.issparse(block):
        return np.asarray(np.nanstd(block, axis=0))
    mean = np.asarray(block.mean(axis=0)).ravel()
    second = np.asarray(block.multiply(block).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(second - mean**2, 0.0))


class ShuffledView:
    """One view whose columns can be shuffled among the samples that have it, and the scores of the model then."""

    def __init__(self, model: Any, score: Any, X: Views, y: np.ndarray, name: str, n_repeats: int, seed: int):
        rows = np.flatnonzero(X.present(name))
        self.model, self.score, self.name, self.rows = model, score, name, rows
        self.X: Views = X[rows]
        self.y = y[rows]
        rng = np.random.default_rng([seed, X.names.index(name)])
        self.orders = [rng.permutation(len(rows)) for _ in range(n_repeats)]
        self.whole = float(score(model, self.X, self.y)) if len(rows) > 1 else float("nan")

    def loss(self, columns: np.ndarray) -> tuple[float, float]:
        """Return the mean of the lost scores when columns are shuffled together, and its standard error."""
        if len(self.y) < 2:
            return float("nan"), float("nan")
        lost = np.array([self.whole - self.score(self.model, self._shuffled(columns, o), self.y) for o in self.orders])
        error = float(lost.std(ddof=1) / np.sqrt(len(lost))) if len(lost) > 1 else float("nan")
        return float(lost.mean()), error

    def _shuffled(self, columns: np.ndarray, order: np.ndarray) -> Views:
        block = self.X.block(self.name)
        moved = _blocks.take(block, order)
        if self.X.kind(self.name) in ("dense", "sparse"):
            chosen = np.zeros(block.shape[1], dtype=bool)
            chosen[columns] = True
            if sp.issparse(block):
                moved = sp.csr_array(_kept(block, ~chosen) + _kept(moved, chosen))
            else:
                moved = np.where(chosen, np.asarray(to_numpy(moved)), np.asarray(to_numpy(block)))
        return self.X._replaced({self.name: moved}, {})


def _kept(block: Any, chosen: np.ndarray) -> Any:
    """Return a CSR matrix with the values of chosen columns alone."""
    block = sp.csr_array(block)
    there = chosen[block.indices]
    before = np.concatenate([[0], np.cumsum(there)])
    return sp.csr_array((block.data[there], block.indices[there], before[block.indptr]), shape=block.shape)


def prediction_signals(model: Any, X: Views) -> np.ndarray:
    """Return numbers that tell how the model predicts each sample, (n_samples, n_outputs)."""
    if hasattr(model, "decision_function"):
        outputs = model.decision_function(X)
    elif hasattr(model, "predict_proba"):
        outputs = model.predict_proba(X)
    else:
        outputs = model.predict(X)
    values = np.asarray(outputs)
    if values.dtype.kind not in "fiub":
        values = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    return values.reshape(len(values), -1).astype(np.float64)


UnitLoss = tuple[ColumnUnit, float, float, bool]  # columns, loss, standard error, whether they are a block


def screened_losses(
    units: Sequence[ColumnUnit], tests: Mapping[str, ShuffledView], budget: int, signals: Callable[[], np.ndarray]
) -> list[UnitLoss]:
    """Return the losses of all units if the budget allows, else of those that halving finds, and of the other blocks.

    The budget is in tests of a block. Units are sorted by how far they go with the model's predictions, so that those
    that matter are in few blocks; this changes what is looked at first, not what is measured.
    """
    if len(units) <= budget:
        return [(unit, *tests[unit.view].loss(unit.columns), False) for unit in units]
    waiting: list[tuple[float, int, list[ColumnUnit], float, float]] = []
    done: list[UnitLoss] = []
    for block in _by_view(units, tests, signals()):
        loss, error = tests[block[0].view].loss(_columns(block))
        heapq.heappush(waiting, (-loss, len(waiting), block, loss, error))
        budget -= 1
    count = len(waiting)
    while waiting:
        _, _, block, loss, error = heapq.heappop(waiting)
        clear = loss > 0 and not loss <= _CLEAR * error  # the error of a single shuffle is not known
        if len(block) == 1 or not clear or budget < 2:
            done.append((block[0] if len(block) == 1 else _joined(block), loss, error, len(block) > 1))
            continue
        for half in (block[: len(block) // 2], block[len(block) // 2 :]):
            loss, error = tests[half[0].view].loss(_columns(half))
            heapq.heappush(waiting, (-loss, count, half, loss, error))
            count, budget = count + 1, budget - 1
    return done


def _by_view(
    units: Sequence[ColumnUnit], tests: Mapping[str, ShuffledView], signals: np.ndarray
) -> Iterator[list[ColumnUnit]]:
    """Yield the units of each view, those first that go most with the model's predictions."""
    for view in dict.fromkeys(unit.view for unit in units):
        own = [unit for unit in units if unit.view == view]
        if tests[view].X.kind(view) in ("dense", "sparse") and len(tests[view].y) > 1:
            sizes = _correlations(tests[view], signals)
            own.sort(key=lambda unit: -float(sizes[unit.columns].max()))
        yield own


def _correlations(test: ShuffledView, signals: np.ndarray) -> np.ndarray:
    """Return the largest correlation, in size, of each column with the model's predictions."""
    block, at = present_block(test.X, test.name), signals[test.rows]
    centered = at - at.mean(axis=0)
    if sp.issparse(block):
        product = np.asarray(block.T @ centered)
    else:
        there = ~np.isnan(block)
        means = np.nan_to_num(block).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        product = np.where(there, block - means, 0.0).T @ centered
    scale = column_deviations(test.X, test.name)
    return np.asarray(np.abs(product).max(axis=1) / np.where(scale > 0, scale, np.inf))


def _columns(block: Sequence[ColumnUnit]) -> np.ndarray:
    return np.unique(np.concatenate([unit.columns for unit in block]))


def _joined(block: Sequence[ColumnUnit]) -> ColumnUnit:
    columns = _columns(block)
    return ColumnUnit(block[0].view, f"{len(columns):,} columns ({block[0].name}, ...)", columns, is_column=False)
