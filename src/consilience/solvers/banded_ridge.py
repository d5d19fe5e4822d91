"""Banded ridge: weights of the kernels and the penalty of each of many outputs, chosen by exact held-out errors.

`held_out_errors` has the errors of one draw of weights. Here draws are compared, and outputs are fitted with the best
one. Outputs that are known for the same rows go together, in batches that bound the memory.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._backend import is_device_array, like, namespace, to_numpy
from .._progress import report_progress
from .held_out_errors import (
    MEMORY,
    FilterBasis,
    HeldOutErrors,
    ModelRows,
    RidgeSpectrum,
    all_folds,
    float_type,
    leave_one_out,
    one_fold,
    square_part,
)

Fold = tuple[np.ndarray, np.ndarray]  # rows to train on, rows to test


def simplex_draws(m: int, n_iter: int, rng: np.random.RandomState) -> np.ndarray:
    """Return weights of m kernels to try, (n_iter, m): equal ones, each kernel alone, then Dirichlet's draws.

    The concentration alternates between 0.1, where few kernels have most of the weight, and 1.
    """
    fixed = np.vstack([np.full((1, m), 1 / m), np.eye(m)]) if m > 1 else np.ones((1, 1))
    more = [rng.dirichlet(np.full(m, (0.1, 1.0)[k % 2])) for k in range(n_iter - len(fixed))] if m > 1 else []
    return np.vstack([fixed, *more])[:n_iter]


# -- the search
class Chosen(NamedTuple):
    """What the held-out errors chose for every output, and the models of all rows with it."""

    draw: np.ndarray  # (P,) position of the weights
    alpha: np.ndarray  # (P,)
    scores: np.ndarray  # (draws, P): R² of held-out predictions at the best penalty
    coefficients: np.ndarray  # (n, P): f(x) = Σ_i K(x, x_i) c_i, 0 at rows without a target
    intercept: np.ndarray  # (P,)


def search_banded(
    grams: Sequence[Any],
    Y: np.ndarray,
    s: np.ndarray,
    draws: np.ndarray,
    alphas: Any,
    folds: Sequence[Fold] | None = None,
    *,
    batch: int | None = None,
) -> Chosen:
    """Choose the weights and the penalty of each output by its held-out errors, and fit all outputs.

    Parameters
    ----------
    grams : list of array of shape (n, n)
        Kernel of each view, positive semi-definite, of one array library and device.
    Y : array of shape (n, P)
        Targets, NaN where an output is not known for a sample.
    s : array of shape (n,)
        Weights of the losses, above 0.
    draws : array of shape (D, m)
        Weights of the kernels to try.
    alphas : array-like
        Penalties to try.
    folds : list of pairs of arrays, optional
        Rows to train on and rows to test. By default each row is left out alone.
    batch : int, optional
        Number of outputs at a time.

    Returns
    -------
    Chosen
        The choice of each output and its model.
    """
    search = _Search(grams, Y, s, draws, np.sort(np.asarray(alphas, dtype=np.float64))[::-1], folds, batch)
    groups = list(_patterns(Y))
    for number, (rows, columns) in enumerate(groups):
        plan = search.plan(rows, columns)
        for k in range(len(draws)):
            report_progress(number * len(draws) + k + 1, None, of=len(groups) * len(draws), unit="draw of weights")
            # in functions of their own, so that nothing of a draw is in memory when the next one is decomposed
            by = search.errors_by_fold if plan.parts else search.errors_by_formula
            search.store_scores(k, columns, by(k, plan, columns), plan.total)
        search.finish(plan, columns)
    return Chosen(search.draw, search.alphas[search.penalty], search.scores, search.coefficients, search.intercept)


def _patterns(Y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that are known, and the outputs that are known there and only there."""
    found: dict[bytes, list[int]] = {}
    for start in range(0, Y.shape[1], 1024):
        known = np.packbits(~np.isnan(Y[:, start : start + 1024]), axis=0)
        for k, column in enumerate(np.ascontiguousarray(known.T)):
            found.setdefault(column.tobytes(), []).append(start + k)
    for packed, columns in found.items():
        known = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=Y.shape[0])
        yield np.flatnonzero(known), np.array(columns)


class _Plan(NamedTuple):
    """How the outputs of one pattern of known rows are held out."""

    whole: ModelRows
    parts: list[ModelRows]  # the training rows of each fold, where each is decomposed
    tests: list[np.ndarray] | None  # the rows of each fold, where one decomposition serves all
    total: np.ndarray  # variation of each output


class _Search:
    """The best choice so far of every output, and its coefficients."""

    def __init__(
        self, grams: Sequence[Any], Y: np.ndarray, s: np.ndarray, draws: np.ndarray, alphas: np.ndarray,
        folds: Sequence[Fold] | None, batch: int | None,
    ):  # fmt: skip
        P = Y.shape[1]
        self.grams, self.Y, self.s, self.draws, self.alphas = grams, Y, s, draws, alphas  # alphas from large to small
        self.folds, self.batch, self.kind = folds, batch, float_type(grams[0])
        self.draw, self.penalty = np.zeros(P, dtype=int), np.zeros(P, dtype=int)
        self.error, self.scores = np.full(P, np.inf), np.zeros((len(draws), P), dtype=self.kind)
        self.coefficients, self.intercept = np.zeros(Y.shape, dtype=self.kind), np.zeros(P, dtype=self.kind)

    # -- one pattern of known rows
    def plan(self, rows: np.ndarray, columns: np.ndarray) -> _Plan:
        """Prepare the outputs that are known at the same rows."""
        folds = None if self.folds is None else _folds_among(self.folds, rows)
        tested = rows if folds is None else np.concatenate([test for _, test in folds])
        total = self._variation(tested, columns)
        whole = ModelRows.of(self.grams, self.s, rows, None)
        if folds is None:
            return _Plan(whole, [], None, total)
        if _formula_is_cheaper(folds, len(rows), len(columns), len(self.alphas)):
            return _Plan(whole, [], _places(folds, rows), total)
        low = whole.basis is not None  # if all rows have a full rank, so do folds
        return _Plan(whole, [ModelRows.of(self.grams, self.s, *fold, low_rank=low) for fold in folds], None, total)

    def store_scores(self, k: int, columns: np.ndarray, errors: np.ndarray, total: np.ndarray) -> None:
        """Store R² of one draw at the best penalty of each output."""
        best = errors.min(axis=0)
        self.scores[k, columns] = 1 - np.divide(best, total, out=(best > 0).astype(float), where=total > 0)

    def finish(self, plan: _Plan, columns: np.ndarray) -> None:
        """Fit the outputs, unless that is done, and find their intercepts."""
        if plan.parts:
            self._refit(plan.whole, columns)
        self._intercepts(plan.whole.rows, columns)

    def errors_by_formula(self, k: int, plan: _Plan, columns: np.ndarray) -> np.ndarray:
        """Return the errors of one draw from one decomposition, and fit the outputs for which it is the best so far."""
        model, tests = plan.whole, plan.tests
        spectrum = model.spectrum(self.grams, self.draws[k])
        if tests is None:
            held = leave_one_out(model, spectrum, self.alphas)
        else:
            held = all_folds(model, spectrum, self.alphas, tests)
        errors = np.zeros((len(self.alphas), len(columns)))
        for some, part, Z in self._turned(held, columns):
            errors[:, some] = held.errors(part, Z)
            better = self._choose(k, columns[some], errors[:, some])
            self._fit(spectrum, model, columns[some][better], namespace(Z).take(Z, like(better, Z), axis=1))
        return errors

    def errors_by_fold(self, k: int, plan: _Plan, columns: np.ndarray) -> np.ndarray:
        """Return the errors of one draw from a decomposition of each fold's training rows, and choose by them."""
        errors = np.zeros((len(self.alphas), len(columns)))
        for model in plan.parts:
            held = one_fold(self.grams, model, self.draws[k], self.alphas, self.s)
            for some, part, Z in self._turned(held, columns):
                errors[:, some] += held.errors(part, Z)
        self._choose(k, columns, errors)
        return errors

    def _turned(self, held: HeldOutErrors, columns: np.ndarray) -> Iterator[tuple[slice, Any, Any]]:
        """Yield batches of outputs: their place, their targets at the held-out rows, and Z."""
        room = MEMORY * (32 if is_device_array(held.left) else 1)
        size = self.batch or max(room // (4 * len(held.model.rows) * np.dtype(self.kind).itemsize), 16)
        for start in range(0, len(columns), size):
            some = slice(start, min(start + size, len(columns)))
            yield some, *self._targets(held, columns[some])

    def _targets(self, held: HeldOutErrors, columns: np.ndarray) -> tuple[Any, Any]:
        """Return targets at the held-out rows, centered by the training rows, times s½; and Z."""
        model, V = held.model, held.spectrum.vectors
        own = self._columns(model.rows, columns, V)
        means = model.share.T @ own
        centered = (own - means) * model.root
        Z = V.T @ centered
        if model.test is None:
            return centered, Z
        root = like(np.sqrt(self.s[model.test])[:, None].astype(self.kind), V)
        return (self._columns(model.test, columns, V) - means) * root, Z

    def _columns(self, rows: np.ndarray, columns: np.ndarray, x: Any) -> Any:
        at: Any = columns
        if columns[-1] - columns[0] == len(columns) - 1:
            at = slice(int(columns[0]), int(columns[-1]) + 1)  # without a copy of all rows
        own = self.Y[:, at] if len(rows) == len(self.Y) and (np.diff(rows) > 0).all() else self.Y[:, at][rows]
        return like(np.ascontiguousarray(own, dtype=self.kind), x)

    def _variation(self, tested: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the weighted sum of squares of the targets around their means."""
        s, out = self.s[tested], np.zeros(len(columns))
        for start in range(0, len(columns), 1024):
            own = self.Y[:, columns[start : start + 1024]][tested].astype(np.float64)
            out[start : start + 1024] = s @ (own - s @ own / s.sum()) ** 2
        return out

    # -- choices and models
    def _choose(self, draw: int, columns: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Store the outputs for which this draw is better than those before; return their positions."""
        errors = np.where(np.isfinite(errors), errors, np.inf)
        best = errors.argmin(axis=0)  # the largest penalty of equal ones
        found = errors[best, np.arange(len(columns))]
        better = np.flatnonzero((found < self.error[columns] * (1 - 10 * np.finfo(self.kind).eps)) | (draw == 0))
        self.draw[columns[better]], self.penalty[columns[better]] = draw, best[better]
        self.error[columns[better]] = found[better]
        return better

    def _fit(self, spectrum: RidgeSpectrum, model: ModelRows, columns: np.ndarray, Z: Any) -> None:
        """Store the coefficients s½ V diag(1 / (e + a)) Z of outputs with their penalties a."""
        if not len(columns):
            return
        shrunk = 1 / (spectrum.values[:, None] + self.alphas[self.penalty[columns]])
        found = model.root * (spectrum.vectors @ (Z * like(shrunk.astype(self.kind), Z)))
        if len(model.rows) == len(self.Y):
            self.coefficients[:, columns] = to_numpy(found)
        else:
            self.coefficients[np.ix_(model.rows, columns)] = to_numpy(found)

    def _refit(self, model: ModelRows, columns: np.ndarray) -> None:
        """Fit all outputs; those that share a draw share a decomposition."""
        for k in np.unique(self.draw[columns]):
            own = columns[self.draw[columns] == k]
            spectrum = model.spectrum(self.grams, self.draws[k])
            held = HeldOutErrors(model, spectrum, spectrum.vectors, FilterBasis(np.zeros((1, 1)), []))
            for some, _, Z in self._turned(held, own):
                self._fit(spectrum, model, own[some], Z)

    def _intercepts(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Store b = ȳ - the mean of f over the training rows."""
        share = (self.s[rows] / self.s[rows].sum()).astype(self.kind)
        means = np.stack([to_numpy(like(share[None, :], K) @ square_part(K, rows))[0] for K in self.grams])  # (m, n)
        for start in range(0, len(columns), 1024):
            own = columns[start : start + 1024]
            coefficients = self.coefficients[:, own][rows]
            of_views = (means @ coefficients) * self.draws[self.draw[own]].T
            self.intercept[own] = share @ self.Y[:, own][rows] - of_views.sum(axis=0)


def _folds_among(folds: Sequence[Fold], rows: np.ndarray) -> list[Fold]:
    """Return the folds among the rows where some outputs are known."""
    inside = [(np.intersect1d(train, rows), np.intersect1d(test, rows)) for train, test in folds]
    kept = [fold for fold in inside if len(fold[1])]
    for train, _ in kept:
        if len(train) < 2:
            raise ValueError(
                f"A fold of `cv` has {len(train)} training samples for some outputs, after samples without their "
                "target are left out. Use fewer folds, or leave these outputs out."
            )
    return kept


def _places(folds: Sequence[Fold], rows: np.ndarray) -> list[np.ndarray]:
    """Return the positions among `rows` of the rows that each fold holds out."""
    place = {row: k for k, row in enumerate(rows.tolist())}
    return [np.array([place[row] for row in test.tolist()]) for _, test in folds]


def _formula_is_cheaper(folds: Sequence[Fold], n: int, P: int, A: int) -> bool:
    """Tell whether the formula for all folds from one decomposition takes less time than a decomposition for each.

    The formula needs folds that train on all rows which they do not test.
    """
    if any(len(train) + len(test) != n or len(np.intersect1d(train, test)) for train, test in folds):
        return False
    tests, trains = np.array([len(test) for _, test in folds]), np.array([len(train) for train, _ in folds])
    formula = 9.0 * n**3 + A * np.sum(2 * n * tests**2 + 2 * tests**3) + 2.0 * P * (n**2 + A * np.sum(tests**2))
    return bool(formula < np.sum(9.0 * trains**3 + 2 * P * trains**2))
