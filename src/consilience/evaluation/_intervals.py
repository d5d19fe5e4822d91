"""95% confidence intervals and p-values of cross-validated scores and of their differences."""

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

LEVEL = 0.05  # of the tests; the intervals cover 1 - LEVEL


# -- intervals over folds
def mean_interval(scores: np.ndarray, test_ratio: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the t-interval of the mean of fold scores, which covers 1 - level.

    Training parts share samples, so the variance of the mean is (1/k + n_test/n_train) s² (Nadeau and Bengio 2003).
    """
    k, mean = len(scores), float(scores.mean()) if len(scores) else np.nan
    if k < 2:
        return -np.inf, np.inf
    half = float(student.ppf(1 - level / 2, k - 1)) * _fold_error(scores, test_ratio)
    return mean - half, mean + half


def mean_p_value(differences: np.ndarray, test_ratio: float) -> float:
    """Return the p-value of fold differences under a mean of zero, with the same variance (Nadeau and Bengio 2003)."""
    if len(differences) < 2:
        return 1.0
    error = _fold_error(differences, test_ratio)
    mean = abs(float(differences.mean()))
    return float(2 * student.sf(mean / error, len(differences) - 1)) if error > 0 else float(mean == 0)


def _fold_error(scores: np.ndarray, test_ratio: float) -> float:
    return float(np.sqrt((1 / len(scores) + test_ratio) * scores.var(ddof=1)))


def difference_interval(
    differences: np.ndarray, test_ratio: float, correct: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[float, float]:
    """Return the interval of the mean of fold differences; for accuracies at least that of paired predictions.

    `correct` tells which predictions of the one and of the other estimator are correct, for the same samples.
    """
    low, high = mean_interval(differences, test_ratio)
    if correct is None:
        return low, high
    n, n_different = len(correct[0]), int(np.sum(correct[0] != correct[1]))
    # one more than observed, because a few samples may agree by chance
    half = float(norm.ppf(0.975)) * np.sqrt(n_different + 1) / n
    mean = float(differences.mean())
    return min(low, mean - half), max(high, mean + half)


# -- proportions
def share_interval(share: float, n: float) -> tuple[float, float]:
    """Return the interval of a proportion of n samples (Wilson 1927)."""
    z = float(norm.ppf(1 - LEVEL / 2)) / np.sqrt(n)
    middle, half = share + z**2 / 2, z * np.sqrt(share * (1 - share) + z**2 / 4)
    low, high = float((middle - half) / (1 + z**2)), float((middle + half) / (1 + z**2))
    return min(max(low, 0.0), share), max(min(high, 1.0), share)  # beyond only by rounding


# -- sums over independent units: samples, or groups of samples
def sum_interval(terms: np.ndarray, extra: float = 0.0, allowance: float = 1.0) -> tuple[float, float]:
    """Return the t-interval of a sum of independent terms; `extra` is added to its variance."""
    k, total = len(terms), float(terms.sum())
    if k < 2:
        return -np.inf, np.inf
    variance = k * float(terms.var(ddof=1)) + extra
    half = allowance * float(student.ppf(1 - LEVEL / 2, k - 1)) * float(np.sqrt(variance))
    return total - half, total + half


# -- replicates of a bootstrap
def replicate_weights(units: np.ndarray, random_state: int, n_replicates: int) -> np.ndarray:
    """Return weights of the samples in each replicate of the Bayesian bootstrap (Rubin 1981).

    `units` numbers the independent unit of each sample. Weights are exponential, so that every class keeps a sample in
    every replicate.
    """
    rng = np.random.default_rng(random_state)
    return rng.standard_exponential((n_replicates, int(units.max()) + 1))[:, units]


def replicate_scale(n_units: int) -> float:
    """Return the factor from the spread of replicates to the half-width of an interval, in normal deviates.

    The replicates of a mean of k units have the variance Σ(x - x̄)²/(k (k + 1)); the t-interval has k - 1 in place of
    k + 1, and quantiles of Student's distribution in place of the normal one.
    """
    wider = float(student.ppf(1 - LEVEL / 2, n_units - 1) / norm.ppf(1 - LEVEL / 2))
    return wider * float(np.sqrt((n_units + 1) / (n_units - 1)))


def replicate_interval(
    value: float, replicates: np.ndarray, n_units: int, allowance: float = 1.0
) -> tuple[float, float]:
    """Return the percentile interval of replicates around a value, widened for a small number of units."""
    if n_units < 2:
        return -np.inf, np.inf
    low, high = np.quantile(replicates, [LEVEL / 2, 1 - LEVEL / 2])
    scale = allowance * replicate_scale(n_units)
    return value - scale * max(value - float(low), 0.0), value + scale * max(float(high) - value, 0.0)
