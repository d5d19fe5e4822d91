"""Paired tests of held-out predictions: which differences between estimators are more than chance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ._intervals import (
    LEVEL,
    flip_p_value,
    holm,
    mean_interval,
    mean_p_value,
    replicate_interval,
    replicate_p_value,
    replicate_weights,
    share_interval,
    sum_interval,
    weaker,
)
from ._measures import HeldOutPart, is_accuracy, range_of, weighted_scores

FEWEST_UNITS = 20  # samples, or groups, below which a difference that is not found says nothing
VERDICTS = ("different", "not told apart", "too few samples to tell")
_CELLS = 10_000_000  # of the weights of all replicates
_REPLICATES = (200, 1000)  # for many and for few samples
_EQUAL_FOLDS = 1.1  # folds whose sizes have at most this ratio count as equal
# Standard errors of accuracies are multiplied by this for the chance in the training samples, which the test samples
# do not show. Without it, more than 7% of pairs of equal estimators are called different instead of 5%, if there are
# many more columns than samples (tests/evaluation/test_differences.py).
TRAINING_ALLOWANCE = 1.25


@dataclass(frozen=True)
class Difference:
    """Difference between the scores of two estimators on the same held-out samples.

    Parameters
    ----------
    first, second : str
        Names of the estimators.
    value : float
        Score of the first minus score of the second, on the samples that both predicted.
    low, high : float
        95% confidence interval of this difference alone.
    p_value : float
        Probability of a difference at least as large if there is none. `Leaderboard.differences` corrects it for the
        number of comparisons.
    verdict : {"different", "not told apart", "too few samples to tell"}
        "different" if the p-value is at most 0.05. "too few samples to tell" if there are fewer than 20 samples (or
        groups, if groups were given), or so few that even estimators that differ on every sample would not be told
        apart.

    Examples
    --------
    >>> from consilience.evaluation.comparison import Difference
    >>> print(Difference("LateFusion", "a alone", 0.052, 0.021, 0.083, 0.0004, "different"))
    LateFusion - a alone: 0.0520 (0.0210 to 0.0830), p = 0.0004, different
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float
    verdict: str

    def __str__(self) -> str:
        interval = f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"
        return f"{self.first} - {self.second}: {interval}, p = {self.p_value:.2g}, {self.verdict}"


def verdict_of(p_value: float, n_units: int, n_comparisons: int = 1) -> str:
    """Return the verdict of a corrected p-value from a number of independent samples or groups."""
    if p_value <= LEVEL:
        return "different"
    # estimators that differ on every unit, always in favor of the same one, have the p-value 2 / 2^n
    hopeless = n_comparisons * weaker(2.0 ** (1 - min(n_units, 1000)), TRAINING_ALLOWANCE) > LEVEL
    return "too few samples to tell" if n_units < FEWEST_UNITS or hopeless else "not told apart"


@dataclass
class PairedScores:
    """Intervals and paired tests of one measure, from the held-out predictions of a comparison.

    A row has `parts` (one `HeldOutPart` per fold), `scores` by fold, and `scored`, the samples that it predicted.
    """

    scorer: Any
    y: np.ndarray
    classes: np.ndarray | None
    groups: np.ndarray | None
    sample_weight: np.ndarray | None
    test_ratio: float
    _replicates: dict[Any, np.ndarray | None] = field(default_factory=dict, repr=False)
    _weights: Any = field(default=None, repr=False)

    @property
    def _allowance(self) -> float:
        """Return the factor of standard errors for the chance in the training samples.

        For measures other than accuracy it is that of Nadeau and Bengio (2003): the variance of the mean over k folds
        is multiplied by 1 + k n_test/n_train, where k n_test = n_train + n_test.
        """
        return TRAINING_ALLOWANCE if is_accuracy(self.scorer) else float(np.sqrt(2 + self.test_ratio))

    # -- one estimator
    def interval(self, scores: np.ndarray, parts: Sequence[HeldOutPart], scored: np.ndarray) -> tuple[float, float]:
        """Return the 95% interval of the mean of fold scores, within the range that the score can have."""
        defined = scores[~np.isnan(scores)]
        if not len(defined):
            return np.nan, np.nan
        low, high = self._interval(defined, scores, parts, scored)
        least, most = range_of(self.scorer)
        return max(low, least), min(high, most)

    def _interval(
        self, defined: np.ndarray, scores: np.ndarray, parts: Sequence[HeldOutPart], scored: np.ndarray
    ) -> tuple[float, float]:
        mean, n_units = float(defined.mean()), self._n_units(scored)
        if is_accuracy(self.scorer):
            low, high = share_interval(mean, self._effective_size(scored) / self._allowance**2)
            if self.groups is None:
                return low, high
            terms = self._by_unit(self._correct(parts) - mean * self._shares(parts), scored)
            below, above = sum_interval(terms, allowance=self._allowance)
            return min(low, mean + below), max(high, mean + above)
        replicates = self._replicated(parts, scored, scores)
        if replicates is None or n_units < 2:
            return mean_interval(defined, self.test_ratio)
        low, high = replicate_interval(mean, replicates, n_units, self._allowance)
        if range_of(self.scorer) == (0.0, 1.0) and replicates.std() < 1e-12:  # all correct, or all wrong
            size = self._balanced_size(scored) / self._allowance**2
            least, most = share_interval(min(max(mean, 0.0), 1.0), size)
            return min(low, least), max(high, most)
        return low, high

    def _effective_size(self, scored: np.ndarray) -> float:
        if self.sample_weight is None:
            return float(scored.sum())
        weights = self.sample_weight[scored]
        return float(weights.sum() ** 2 / (weights @ weights))

    def _balanced_size(self, scored: np.ndarray) -> float:
        """Return the number of samples that estimates a mean over classes as well as these samples do."""
        counts = np.unique(self.y[scored], return_counts=True)[1]
        return float(len(counts) ** 2 / np.sum(1 / counts))

    # -- two estimators
    def compare(self, first: Any, second: Any) -> tuple[float, float, float, float, int]:
        """Return value, interval and p-value of a difference, and the number of independent samples or groups."""
        both = first.scored & second.scored
        n_units = self._n_units(both)
        if n_units and is_accuracy(self.scorer):
            return *self._compare_accuracies(first, second, both), n_units
        one, two = (self._replicated(row.parts, both, np.array(row.scores)) for row in (first, second))
        if n_units and one is not None and two is not None:
            value = self._score(first.parts, both) - self._score(second.parts, both)
            size = min(len(one), len(two))
            spread = one[:size] - two[:size]
            low, high = replicate_interval(value, spread, n_units, self._allowance)
            # the standard error of a few units is too uncertain for small p-values
            few = n_units < FEWEST_UNITS
            p_value = 1.0 if few else replicate_p_value(value, spread, n_units, self._allowance)
            return value, low, high, p_value, n_units
        by_fold = np.array(first.scores) - np.array(second.scores)
        by_fold = by_fold[~np.isnan(by_fold)]
        if not len(by_fold):
            return np.nan, np.nan, np.nan, 1.0, 0
        low, high = mean_interval(by_fold, self.test_ratio)
        return float(by_fold.mean()), low, high, mean_p_value(by_fold, self.test_ratio), n_units

    def _compare_accuracies(self, first: Any, second: Any, both: np.ndarray) -> tuple[float, float, float, float]:
        """Compare the shares of correct predictions: an exact test of the samples that only one has right."""
        parts = [[part.on(both) for part in row.parts] for row in (first, second)]
        terms = self._by_unit(self._correct(parts[0]) - self._correct(parts[1]), both)
        largest = float(self._shares(parts[0]).max())  # a sample's part of the score
        # one disagreement more than observed, because a few samples may agree by chance
        low, high = sum_interval(terms, extra=largest**2, allowance=self._allowance)
        counted = terms
        if self._has_equal_shares(parts[0]):
            counts = [np.zeros(len(self.y)), np.zeros(len(self.y))]
            for count, own in zip(counts, parts, strict=True):
                for part in own:
                    np.add.at(count, part.test, part.predictions == self.y[part.test])
            counted = self._by_unit(counts[0] - counts[1], both)
        return float(terms.sum()), low, high, weaker(flip_p_value(counted), self._allowance)

    # -- sums over samples
    def _shares(self, parts: Sequence[HeldOutPart]) -> np.ndarray:
        """Return the part of each sample in the mean of the fold scores."""
        return self._spread(parts, [np.ones(len(part.test)) for part in parts])

    def _correct(self, parts: Sequence[HeldOutPart]) -> np.ndarray:
        """Return the part of each sample in the mean of the fold accuracies."""
        return self._spread(parts, [part.predictions == self.y[part.test] for part in parts])

    def _spread(self, parts: Sequence[HeldOutPart], values: Sequence[np.ndarray]) -> np.ndarray:
        found, used = np.zeros(len(self.y)), sum(len(part.test) > 0 for part in parts)
        for part, value in zip(parts, values, strict=True):
            if len(part.test):
                weights = np.ones(len(part.test)) if self.sample_weight is None else self.sample_weight[part.test]
                np.add.at(found, part.test, value * weights / weights.sum() / used)
        return found

    def _has_equal_shares(self, parts: Sequence[HeldOutPart]) -> bool:
        sizes = [len(part.test) for part in parts if len(part.test)]
        return self.sample_weight is None and max(sizes) <= max(_EQUAL_FOLDS * min(sizes), min(sizes) + 1)

    def _by_unit(self, terms: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """Return sums of terms over the units, of the units that have one of the samples."""
        units = self._units()
        sums = np.bincount(units[samples], weights=terms[samples], minlength=int(units.max()) + 1)
        return sums[np.unique(units[samples])]

    def _units(self) -> np.ndarray:
        if self.groups is None:
            return np.arange(len(self.y))
        return np.unique(self.groups, return_inverse=True)[1].reshape(-1)

    def _n_units(self, samples: np.ndarray) -> int:
        return len(np.unique(self._units()[samples]))

    # -- replicates
    def _score(self, parts: Sequence[HeldOutPart], samples: np.ndarray) -> float:
        found = self._mean_scores([part.on(samples) for part in parts], np.ones((1, len(self.y))))
        return np.nan if found is None else float(found[0])

    def _replicated(self, parts: Sequence[HeldOutPart], samples: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
        """Return the score in each replicate; None if it cannot be computed from held-out predictions."""
        key = id(parts), samples.tobytes()
        if key not in self._replicates:
            self._replicates[key] = None
            if parts and self._is_computable(parts, scores):
                if self._weights is None:
                    n_replicates = int(np.clip(_CELLS // max(len(self.y), 1), *_REPLICATES))
                    self._weights = replicate_weights(self._units(), 0, n_replicates)
                found = self._mean_scores([part.on(samples) for part in parts], self._weights)
                self._replicates[key] = None if found is None or np.isnan(found).any() else found
        return self._replicates[key]

    def _is_computable(self, parts: Sequence[HeldOutPart], scores: np.ndarray) -> bool:
        """Tell whether the score of each fold is what its held-out predictions give."""
        for part, score in zip(parts, scores, strict=True):
            if np.isnan(score):
                continue
            weights = np.ones(len(part.test)) if self.sample_weight is None else self.sample_weight[part.test]
            found = weighted_scores(self.scorer, self.y, part, weights[None, :], self.classes)
            if found is None or not np.isclose(found[0], score, rtol=1e-6, atol=1e-9):
                return False
        return True

    def _mean_scores(self, parts: Sequence[HeldOutPart], W: np.ndarray) -> np.ndarray | None:
        """Return the mean of the fold scores for each row of weights; a fold counts by the mean of its weights."""
        total, counted = np.zeros(len(W)), np.zeros(len(W))
        for part in parts:
            own = W[:, part.test]
            weights = own if self.sample_weight is None else own * self.sample_weight[part.test]
            found = weighted_scores(self.scorer, self.y, part, weights, self.classes) if len(part.test) else None
            if found is None:
                if len(part.test):
                    return None
                continue
            if np.isnan(found).all():  # undefined in this fold, as an area under the curve with one class
                continue
            size = len(found)  # fewer for measures that are computed one by one
            by_fold = own[:size].mean(axis=1)
            total, counted = total[:size] + by_fold * found, counted[:size] + by_fold
        return total / counted if counted.any() else None


def compare_all(scores: PairedScores, rows: Sequence[Any]) -> dict[tuple[int, int], Difference]:
    """Return the differences of all pairs of rows, corrected for the number of pairs.

    The best row is chosen by the same predictions, so that the comparisons with it are a choice of all pairs.
    """
    pairs = list(combinations(range(len(rows)), 2))
    found = [scores.compare(rows[a], rows[b]) for a, b in pairs]
    corrected = holm(np.array([p_value for *_, p_value, _ in found]))
    return {
        (a, b): Difference(
            rows[a].name, rows[b].name, value, low, high, float(p_value), verdict_of(p_value, n_units, len(pairs))
        )
        for (a, b), (value, low, high, _, n_units), p_value in zip(pairs, found, corrected, strict=True)
    }
