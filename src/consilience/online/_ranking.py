"""What machines of the ranking perceptron share, and the one that has weights of joint features."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from .._jit import jit
from ._candidates import Choice, output_key
from ._machine import includes_last, takes_means

ROUNDING = 1e-12  # scores that differ by less than this fraction of their terms are ties
_SEARCHED = 1e-9  # the same for the outputs of a search, which adds the terms in another order


class RankingMachine(ABC):
    """State of a ranking perceptron.

    `joint` is the user's function: of the features of a sample and an output, or the kernel between two such pairs. It
    is handed in at every call, since functions are not part of the state.
    """

    coefs: np.ndarray  # of the last hypothesis
    late: np.ndarray  # Σ of each step times the number of its sample, for averages
    steps: list[Any]  # where hypotheses vote

    def __init__(self, average: Any):
        self.average, self.n_updates, self.n_hypotheses = average, 0, 0
        self.size = 0.0  # largest ‖φ(x, y) - φ(x, r)‖² of an update
        self.margin = 0.0  # largest lead of the true output at which there is an update
        self.coefs, self.late = np.zeros(0), np.zeros(0)
        self.step_samples: list[int] = []  # samples that caused a step, counted from 1, where hypotheses vote

    @abstractmethod
    def learn(self, joint: Any, X: Any, choices: Sequence[Choice], ids: np.ndarray) -> np.ndarray:
        """Learn samples in order; return where the true output did not win."""

    @abstractmethod
    def fresh(self) -> Self:
        """Return a machine that has learned nothing yet, for the same samples and outputs."""

    @abstractmethod
    def scores(self, joint: Any, X: Any, choices: Sequence[Choice], coefs: np.ndarray | None = None) -> list[Any]:
        """Return the scores of the outputs of each sample, by other coefficients than those learned if given."""

    def is_consistent(self) -> bool:
        """Return whether the steps that vote can be replayed; for states from a file."""
        times = [0, *self.step_samples, self.n_hypotheses + 1]
        return all(type(t) is int and s < t for s, t in pairwise(times)) and len(self.steps) == len(self.step_samples)

    @abstractmethod
    def norm(self, joint: Any, coefs: np.ndarray) -> float:
        """Return ‖w‖ of a hypothesis."""

    def is_definite(self, joint: Any) -> bool:
        """Return whether inner products are positive semi-definite, as bounds need."""
        return True

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change."""
        other = copy(self)
        other.coefs, other.late, other.step_samples = self.coefs.copy(), self.late.copy(), list(self.step_samples)
        return other

    def mean(self) -> np.ndarray:
        """Return the mean of the hypotheses that `average` says; of those in use so far where it says none."""
        n = self.n_hypotheses + includes_last(self.average)
        # a step at sample t is part of T - t of T hypotheses, and of T + 1 - t of T + 1 with the last
        return self.coefs - self.late / max(n, 1)

    def learned(self) -> np.ndarray:
        """Return the coefficients that predictions use."""
        return self.mean() if takes_means(self.average) else self.coefs

    def _votes(self, products: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the share of votes for each output; products[t, e] is the change of the score of t by step e."""
        if not self.step_samples:
            return np.zeros(len(products))
        scores, sizes = products.cumsum(axis=1), sizes.cumsum(axis=1)
        best, steps = scores.argmax(axis=0), np.arange(scores.shape[1])
        lead, rounding = scores[best, steps] - scores, ROUNDING * (sizes[best, steps] + sizes)
        # a hypothesis votes for the first of its best outputs, with the number of samples until the next step
        weights = np.diff([*self.step_samples, self.n_hypotheses + 1])
        votes = np.bincount((lead <= rounding).argmax(axis=0), weights, minlength=len(products))
        return np.asarray(votes / weights.sum())


# -- features
class Names(dict[Hashable, int]):
    """Columns of named features; a new name takes the next column."""

    def __missing__(self, name: Hashable) -> int:
        self[name] = column = len(self)
        return column


class FeatureWeights(dict[Hashable, float]):
    """Weights by the names of features; 0 for names that never changed a weight."""

    def __missing__(self, name: Hashable) -> float:
        return 0.0


class JointRows(NamedTuple):
    """Features φ(x, t) of some outputs: entries ends[t] to ends[t + 1] are those of output t."""

    values: np.ndarray
    columns: np.ndarray
    ends: np.ndarray


class FeatureMachine(RankingMachine):
    """State of a perceptron over joint features: the weight of each column, and the columns of names."""

    def __init__(self, average: Any):
        super().__init__(average)
        self.names: Names | None = None  # where features have names
        self.width = 0  # where they are vectors
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []  # columns and values of each step
        self._live: FeatureWeights | None = None  # the last hypothesis by name, for searches

    def __getstate__(self) -> dict[str, Any]:
        names = None if self.names is None else list(self.names)
        return {**self.__dict__, "names": names, "_live": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        if self.names is not None:
            self.names = Names({name: column for column, name in enumerate(self.names)})

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change."""
        other = super().snapshot()
        other.names = None if self.names is None else Names(self.names)
        other.steps, other._live = list(self.steps), None
        return other

    def fresh(self) -> Self:
        """Return a machine that has learned nothing yet, with the same names of features."""
        other = type(self)(False)
        other.names, other.width = self.names, self.width
        other._make_room()
        return other

    def is_consistent(self) -> bool:
        """Return whether columns are within the weights; for states from a file."""
        n, names = len(self.coefs), self.names or Names()
        within = type(self.width) is int and 0 <= self.width <= n and len(names) <= n
        for columns, change in self.steps:
            within = within and columns.dtype == np.int64 and columns.shape == change.shape == (len(change),)
            within = within and change.dtype == np.float64 and bool(((columns >= 0) & (columns < n)).all())
        return within and list(names.values()) == list(range(len(names))) and super().is_consistent()

    # -- reading
    def read(self, maps: Sequence[Any], *, grow: bool) -> JointRows:
        """Return features as rows; names that are new take columns with `grow`, and have the weight 0 without."""
        named = sum(isinstance(phi, Mapping) for phi in maps)
        if (named and (self.width or named < len(maps))) or (named < len(maps) and self.names is not None):
            raise TypeError("`features` returned a dict for some outputs and a vector for others. Return one kind.")
        rows = self._read_names(maps, grow) if named else self._read_vectors(maps)
        if not np.isfinite(np.dot(rows.values, rows.values)):
            raise ValueError(
                "`features` returned NaN, infinity, or values whose squares overflow. Return finite numbers."
            )
        self._make_room()
        return rows

    def _read_names(self, maps: Sequence[Mapping[Hashable, float]], grow: bool) -> JointRows:
        if self.names is None:
            self.names = Names()
        ends = np.array([0, *accumulate(map(len, maps))])
        try:
            values = np.fromiter(chain.from_iterable(phi.values() for phi in maps), np.float64, ends[-1])
        except (TypeError, ValueError) as error:
            raise TypeError("`features` returned a value that is not a number. Return numbers.") from error
        names = chain.from_iterable(maps)
        if grow:
            return JointRows(values, np.fromiter(map(self.names.__getitem__, names), np.int64, ends[-1]), ends)
        columns = np.fromiter((self.names.get(name, -1) for name in names), np.int64, ends[-1])
        unknown = columns < 0
        return JointRows(np.where(unknown, 0.0, values), np.where(unknown, 0, columns), ends)

    def _read_vectors(self, maps: Sequence[Any]) -> JointRows:
        found = [_as_row(phi) for phi in maps]
        widths = {row.shape[1] for row in found} | ({self.width} if self.width else set())
        if len(widths) > 1:
            raise ValueError(
                f"`features` returned vectors of {min(widths)} and of {max(widths)} numbers. Return the same columns "
                "for all samples and outputs."
            )
        self.width = widths.pop()
        ends = np.array([0, *accumulate(row.nnz for row in found)])
        columns = np.concatenate([row.indices for row in found]).astype(np.int64)
        return JointRows(np.concatenate([row.data for row in found]), columns, ends)

    def _make_room(self) -> None:
        n = max(self.width, 1 if self.names is None else len(self.names), 1)
        if n > len(self.coefs):
            more = np.zeros(max(n, 0 if self.width else 2 * len(self.coefs)) - len(self.coefs))
            self.coefs, self.late = np.concatenate([self.coefs, more]), np.concatenate([self.late, more])

    # -- learning
    def learn(self, joint: Any, X: Any, choices: Sequence[Choice], ids: np.ndarray) -> np.ndarray:
        """Learn samples in order; return where the true output did not win."""
        wrong = np.zeros(len(choices), dtype=bool)
        for i, (outputs, truth) in enumerate(choices):
            rows = self.read([joint(X[i], output) for output in outputs], grow=True)
            scores, sizes = _joint_scores(*rows, self.coefs)
            margin, rival = lead_and_rival(scores, sizes, truth, ROUNDING)
            self.n_hypotheses += 1
            wrong[i] = rival >= 0 and margin <= 0
            if rival >= 0 and margin <= self.margin:
                self._step(rows, truth, rival)
        return wrong

    def learn_searched(self, joint: Any, decode: Callable[[Any, Any], Any], X: Any, outputs: Sequence[Any]) -> Any:
        """Learn samples whose best outputs `decode` finds; return where these are not the true ones."""
        wrong = np.zeros(len(outputs), dtype=bool)
        for i, output in enumerate(outputs):
            if self.names is None and not self.width:
                self.read([joint(X[i], output)], grow=True)  # says whether `decode` takes names or a vector
            guess = decode(self.current(), X[i])
            if output_key(guess) == output_key(output):
                self.n_hypotheses += 1
                continue
            maps = [joint(X[i], output), joint(X[i], guess)]
            rows = self.read(maps, grow=True)
            scores, sizes = _joint_scores(*rows, self.coefs)
            if scores[0] - scores[1] > _SEARCHED * sizes.sum():
                raise ValueError(
                    f"`decode` returned {guess!r} with a score of {scores[1]:.6g}, but the true output {output!r} has "
                    f"{scores[0]:.6g}. `decode` must return the output whose features have the largest score: check "
                    "that it adds up the weights of the same features."
                )
            self.n_hypotheses += 1
            wrong[i] = True
            self._step(rows, 0, 1)
            if self._live is not None:
                self._live.update(zip(chain(*maps), self.coefs[rows.columns].tolist(), strict=True))
        return wrong

    def _step(self, rows: JointRows, truth: int, rival: int) -> None:
        """Add φ(x, truth) - φ(x, rival) to the weights."""
        columns, change = _change(*rows, truth, rival)
        self.coefs[columns] += change
        self.late[columns] += self.n_hypotheses * change
        self.size = max(self.size, float(change @ change))
        self.n_updates += 1
        if self.average == "voted":
            self.steps.append((columns, change))
            self.step_samples.append(self.n_hypotheses)

    # -- predicting
    def scores(self, joint: Any, X: Any, choices: Sequence[Choice], coefs: np.ndarray | None = None) -> list[Any]:
        """Return the scores of the outputs of each sample; with votes, shares of the votes."""
        voted, found = coefs is None and self.average == "voted", []
        coefs = self.learned() if coefs is None else coefs
        D: Any = self._all_steps() if voted else None
        for x, choice in zip(X, choices, strict=True):
            rows = self.read([joint(x, output) for output in choice.outputs], grow=False)
            if len(coefs) < len(self.coefs):  # nothing was learned yet
                coefs = np.zeros(len(self.coefs))
            if voted:
                Z = sp.csr_array((rows.values, rows.columns, rows.ends), shape=(len(rows.ends) - 1, len(self.coefs)))
                found.append(self._votes((Z @ D).toarray(), (abs(Z) @ abs(D)).toarray()))
            else:
                found.append(_joint_scores(*rows, coefs)[0])
        return found

    def _all_steps(self) -> Any:
        """Return the steps as columns of a matrix."""
        ends = np.cumsum([0, *(len(columns) for columns, _ in self.steps)])
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *(columns for columns, _ in self.steps)])
        values = np.concatenate([np.zeros(0), *(change for _, change in self.steps)])
        return sp.csr_array((values, columns, ends), shape=(len(self.steps), len(self.coefs))).T.tocsr()

    def norm(self, joint: Any, coefs: np.ndarray) -> float:
        """Return ‖w‖ of a hypothesis."""
        return float(np.sqrt(coefs @ coefs))

    def weights(self, coefs: np.ndarray) -> Any:
        """Return the weights of a hypothesis: by name where features have names, else as a vector."""
        if self.names is None:
            return coefs[: self.width]
        return FeatureWeights(zip(self.names, coefs.tolist(), strict=False))

    def current(self) -> Any:
        """Return the weights of the last hypothesis as `decode` takes them."""
        if self.names is None:
            view = self.coefs[: self.width]
            view.flags.writeable = False  # a view: the weights themselves still change
            return view
        if self._live is None:
            self._live = self.weights(self.coefs)
        return self._live

    def vector(self, given: Any) -> np.ndarray:
        """Return weights of the user, by name or as a vector, as coefficients."""
        rows = self.read([given], grow=False)
        unknown = [name for name in given if name not in self.names] if self.names is not None else []
        if unknown:
            raise ValueError(f"`comparator` names the feature {unknown[0]!r}, which no sample had.")
        u = np.zeros(len(self.coefs))
        np.add.at(u, rows.columns, rows.values)
        return u


def _as_row(phi: Any) -> Any:
    """Return a vector of features as a sparse row."""
    if sp.issparse(phi):
        row = sp.csr_array(phi.reshape((1, -1)), dtype=np.float64)
        row.sum_duplicates()
        return row
    try:
        values = np.asarray(phi, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.ndim == 2 and len(values) == 1:
        values = values[0]
    if values.ndim != 1 or not len(values):
        raise TypeError(
            f"`features` must return a dict of names and numbers, a vector or a sparse row; got {type(phi).__name__}"
            f"{f' of shape {values.shape}' * bool(values.ndim)}."
        )
    return sp.csr_array((values, np.arange(len(values)), [0, len(values)]), shape=(1, len(values)))


# -- compiled functions
@jit()
def _joint_scores(values, columns, ends, w):  # type: ignore[no-untyped-def]
    """Return <w, φ(x, t)> for each output t, and the sums of the absolute terms."""
    scores, sizes = np.zeros(len(ends) - 1), np.zeros(len(ends) - 1)
    for t in range(len(scores)):
        for j in range(ends[t], ends[t + 1]):
            z = values[j] * w[columns[j]]
            scores[t] += z
            sizes[t] += abs(z)
    return scores, sizes


@jit()
def _change(values, columns, ends, truth, rival):  # type: ignore[no-untyped-def]
    """Return φ(x, truth) - φ(x, rival): its columns in order, each once, and its values."""
    first, last = ends[truth], ends[truth + 1]
    n, m = last - first, ends[rival + 1] - ends[rival]
    every, signed = np.empty(n + m, dtype=np.int64), np.empty(n + m)
    for j in range(n):
        every[j], signed[j] = columns[first + j], values[first + j]
    for j in range(m):
        every[n + j], signed[n + j] = columns[ends[rival] + j], -values[ends[rival] + j]
    order, k = np.argsort(every), -1
    found, change = np.empty(n + m, dtype=np.int64), np.zeros(n + m)
    for j in order:
        if k < 0 or found[k] != every[j]:
            k += 1
            found[k] = every[j]
        change[k] += signed[j]
    return found[: k + 1], change[: k + 1]


@jit()
def lead_and_rival(scores, sizes, truth, tol):  # type: ignore[no-untyped-def]
    """Return the lead of the true output, 0 within rounding, and the best other one, the first among ties (-1: none).

    As in the other machines, differences within rounding are ties.
    """
    rival = -1
    for t in range(len(scores)):
        if t != truth and (rival < 0 or scores[t] > scores[rival]):
            rival = t
    for t in range(rival):
        if t != truth and scores[rival] - scores[t] <= tol * (sizes[rival] + sizes[t]):
            rival = t
            break
    if rival < 0:
        return 0.0, rival
    margin = scores[truth] - scores[rival]
    return 0.0 if abs(margin) <= tol * (sizes[truth] + sizes[rival]) else margin, rival
