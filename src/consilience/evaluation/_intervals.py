"""95% confidence intervals of cross-validated scores and of their differences."""

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student


def mean_interval(scores: np.ndarray, test_ratio: float) -> tuple[float, float]:
    """Return the t-interval of the mean of fold scores.

    Training parts share samples, so the variance of the mean is (1/k + n_test/n_train) s² (Nadeau and Bengio 2003).
    """
    k, mean = len(scores), float(scores.mean())
    if k < 2:
        return -np.inf, np.inf
    half = float(student.ppf(0.975, k - 1)) * float(np.sqrt((1 / k + test_ratio) * scores.var(ddof=1)))
    return mean - half, mean + half


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


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Return the interval of a proportion of n samples (Wilson 1927)."""
    z = float(norm.ppf(0.975)) / np.sqrt(n)
    middle, half = share + z**2 / 2, z * np.sqrt(share * (1 - share) + z**2 / 4)
    return float((middle - half) / (1 + z**2)), float((middle + half) / (1 + z**2))
