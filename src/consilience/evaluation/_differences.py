"""Paired tests of held-out predictions: which differences between estimators are more than chance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from ._intervals import (
    LEVEL,
    mean_interval,
    mean_p_value,
    replicate_interval,
    replicate_weights,
    share_interval,
    sum_interval,
)
from ._measures import HeldOutPart, has_formula, is_accuracy, needs_order_only, range_of, weighted_scores

FEWEST_UNITS = 20  # samples, or groups, below which a difference that is not found says nothing
_CELLS = 10_000_000  # of the weights of all replicates
_REPLICATES = (200, 1000)  # for many and for few samples
_SLOW_REPLICATES = 300  # of measures that are computed one by one; and parts of many samples that are swapped together
# Standard errors are multiplied by these for the chance in the training samples, which the test samples do not show:
# those of an accuracy, and those of a difference of accuracies. Without it, up to 18% of pairs of equal estimators are
# called different instead of 5%, if there are many more columns than samples.
TRAINING_ALLOWANCE, DIFFERENCE_ALLOWANCE = 1.25, 1.35


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
        95% confidence interval. Of several comparisons, the intervals hold together with a probability of 95%. The
        verdict is "different" exactly if the interval does not contain 0.
    p_value : float
        Probability of a difference at least as large if there is none, multiplied by the number of comparisons.
    verdict : {"different", "not told apart", "too few samples to tell"}
        "different" if the p-value is at most 0.05. "too few samples to tell" if there are fewer than 20 samples (or
        groups, if groups were given), or so few that even estimators that differ on every sample would not be told
        apart.
    n_comparisons : int, default=1
        Number of comparisons for which interval and p-value are corrected (Bonferroni).

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
    n_comparisons: int = 1

    def __str__(self) -> str:
        interval = f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"
        many = f" (of {self.n_comparisons} comparisons)" if self.n_comparisons > 1 else ""
        return f"{self.first} - {self.second}: {interval}, p = {self.p_value:.2g}, {self.verdict}{many}"


def verdict_of(p_value: float, n_units: int, n_comparisons: int = 1) -> str:
    """Return the verdict of a corrected p-value from a number of independent samples or groups."""
    if p_value <= LEVEL:
        return "different"
    # the standard errors that estimators have which differ on every unit, always in favor of the same one
    most = n_units / np.sqrt(n_units + 1) / DIFFERENCE_ALLOWANCE
    hopeless = n_comparisons * 2 * norm.sf(most) > LEVEL
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
    def compare(self, first: Any, second: Any, n_comparisons: int = 1) -> Difference:
        """Return the difference of two rows, corrected for a number of comparisons.

        If two estimators are equally good, either one may have made either prediction of a sample. With e_u, half of
        what the swap of unit u changes, random swaps of all units give differences of mean 0 and variance Σ e_u². One
        more unit like the largest one is added, because few units may agree by chance.
        """
        both = first.scored & second.scored
        n_units = self._n_units(both)
        z = float(norm.isf(LEVEL / (2 * n_comparisons)))
        effects = self._effects(first, second, both) if n_units else None
        if effects is not None:
            value = self._score(first.parts, both) - self._score(second.parts, both)
            shares = self._shares([part.on(both) for part in first.parts])  # one disagreement, where there is none
            least = float(shares.max()) if range_of(self.scorer) == (0.0, 1.0) else 0.0
            largest = max(float(np.abs(effects).max()), least)
            error = self._difference_allowance * float(np.sqrt(effects @ effects + largest**2))
            low, high = value - z * error, value + z * error
            p_value = 2 * float(norm.sf(abs(value) / error)) if error > 0 else 1.0
        else:
            by_fold = np.array(first.scores) - np.array(second.scores)
            by_fold = by_fold[~np.isnan(by_fold)]
            value = float(by_fold.mean()) if len(by_fold) else np.nan
            low, high = mean_interval(by_fold, self.test_ratio, LEVEL / n_comparisons)
            p_value, n_units = mean_p_value(by_fold, self.test_ratio), n_units if len(by_fold) else 0
        p_value = min(1.0, n_comparisons * p_value)
        verdict = verdict_of(p_value, n_units, n_comparisons)
        return Difference(first.name, second.name, value, low, high, p_value, verdict, n_comparisons)

    @property
    def _difference_allowance(self) -> float:
        return DIFFERENCE_ALLOWANCE if is_accuracy(self.scorer) else self._allowance

    def _effects(self, first: Any, second: Any, samples: np.ndarray) -> np.ndarray | None:
        """Return half of what the swap of each unit changes, where all others count half with each prediction.

        Many units are swapped several at a time, the same at random in every call. None if the score cannot be computed
        from held-out predictions.
        """
        if not all(row.parts and self._is_computable(row.parts, row.scores) for row in (first, second)):
            return None
        units = self._units()
        n_units = int(units.max()) + 1
        n_swapped = n_units if n_units <= self._n_replicates() else _SLOW_REPLICATES
        units = (np.random.default_rng(0).permutation(n_units) % n_swapped)[units]
        effects, n_folds = np.zeros(n_swapped), 0
        for pair in zip(first.parts, second.parts, strict=True):
            one, two = (
                _in_order(part.on(samples)) if needs_order_only(self.scorer) else part.on(samples) for part in pair
            )
            if not len(one.test):
                continue
            swapped = np.unique(units[one.test])
            chosen = np.where(units[one.test] == swapped[:, None], 0.5, 0.0)
            W = np.hstack([0.5 + chosen, 0.5 - chosen])  # of the first estimator's predictions, then of the second's
            weights = 1.0 if self.sample_weight is None else np.tile(self.sample_weight[one.test], 2)
            turned = np.hstack([0.5 - chosen, 0.5 + chosen])
            scores = [
                weighted_scores(self.scorer, self.y, one.joined(two), V * weights, self.classes) for V in (W, turned)
            ]
            if any(values is None for values in scores):
                return None
            change: Any = scores[0] - scores[1]  # type: ignore[operator]
            if not np.isnan(change).any():  # undefined in this fold, as an area under the curve with one class
                effects[swapped] += change
                n_folds += 1
        return effects / n_folds if n_folds else None

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
    def _n_replicates(self) -> int:
        most = _REPLICATES[1] if has_formula(self.scorer) else _SLOW_REPLICATES
        return int(np.clip(_CELLS // max(len(self.y), 1), _REPLICATES[0], most))

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
                    self._weights = replicate_weights(self._units(), 0, self._n_replicates())
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
            by_fold = own.mean(axis=1)
            total, counted = total + by_fold * found, counted + by_fold
        return total / counted if counted.any() else None


def _in_order(part: HeldOutPart) -> HeldOutPart:
    """Return a part whose scores are ranks, so that those of two estimators can be swapped."""
    scores = (None if S is None else rankdata(S, axis=0) for S in (part.probabilities, part.decisions))
    return HeldOutPart(part.test, part.predictions, *scores)
