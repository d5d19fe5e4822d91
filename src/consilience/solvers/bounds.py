"""Bounds on mistakes, error rates and complexity, as plain functions; `certificates` has them too."""

from math import lgamma
from typing import Any

import numpy as np

__all__ = [
    "loss_bound", "novikoff_bound", "passive_aggressive_bound", "perceptron_bound", "rademacher_bound", "risk_bound",
    "sparsity_bound", "vector_perceptron_bounds",
]  # fmt: skip


def novikoff_bound(radius: float, margin: float) -> float:
    """Bound the mistakes of the perceptron on samples that a unit vector separates with a margin.

    At most (R/γ)² (Block 1962; Novikoff 1962), however often the samples are passed over. It is `perceptron_bound` with
    no loss and a comparator of norm 1/γ.

    Parameters
    ----------
    radius : float
        R, the largest length of a sample.
    margin : float
        γ > 0.

    Returns
    -------
    float
        The most mistakes.

    Examples
    --------
    >>> from consilience.solvers.certificates import novikoff_bound
    >>> novikoff_bound(1.0, 0.1)
    100.0
    """
    return float((radius / margin) ** 2)


def perceptron_bound(
    loss: float, size: float, norm: float, *, p: float = 2.0, margin: float = 0.0, eta0: float = 1.0, start: float = 0.0
) -> float:
    """Bound the updates of a perceptron whose potential is half a squared norm with exponent p.

    For any comparator u with hinge loss L = Σ max(0, 1 - y<u, x>) over all samples, X the largest ‖x‖_p and ‖u‖_q with
    1/p + 1/q = 1:

        updates <= L + A + √(A L),   A = ‖u‖_q² ((p - 1) X² + 2 margin / eta0)

    With margin 0 it counts mistakes: the p-norm perceptron (Grove, Littlestone and Schuurmans 2001; Gentile 2003), and
    with 2p in place of p and Schatten norms the matrix perceptron (Cavallanti, Cesa-Bianchi and Gentile 2008; Fornoni
    2009, equation 3.1.6, which follows for U/K since the hinge loss is convex), with group norms the orthogonal one.
    For several classes the loss is max(0, 1 - (s_y - max s_r)) and X is √2 times as large.

    If the vector starts at V_0 ≠ 0, orthogonal to all samples, the bound is larger by ‖u‖_q ‖V_0‖_p / eta0. So are
    prior norms of the orthogonal perceptron (its appendix A.2): ‖V_0‖² = (Σ_k b_k^p)^(1/p), once for each class vector.

    Parameters
    ----------
    loss : float
        L.
    size : float
        X.
    norm : float
        ‖u‖_q.
    p : float, default=2.0
        The exponent, at least 2.
    margin : float, default=0.0
        The margin at or below which an update is made.
    eta0 : float, default=1.0
        The length of an update.
    start : float, default=0.0
        ‖V_0‖_p.

    Returns
    -------
    float
        The most updates.

    Examples
    --------
    >>> from consilience.solvers.certificates import perceptron_bound
    >>> perceptron_bound(loss=0.0, size=1.0, norm=10.0)
    100.0
    """
    # (p - 1)‖x‖²/2 bounds the growth of the potential at an update
    A = norm**2 * ((p - 1) * size**2 + 2 * margin / eta0)
    # the updates M satisfy M <= L + √(A M + S²), S = ‖u‖‖V_0‖/eta0, which implies this
    return float(loss + A + (A * loss) ** 0.5 + norm * start / eta0)


def passive_aggressive_bound(
    losses: Any, sizes: Any, norm: float, *, variant: str = "PA-I", C: float = 1.0, p: float = 2.0
) -> float:
    """Bound the mistakes of passive-aggressive estimators (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006).

    For any comparator u with hinge losses ℓ_t, and R² the largest (p - 1)‖x_t‖²:

        PA     R² (b + √(b² + ‖u‖²))²,  b² = Σ ℓ_t² / ((p - 1)‖x_t‖²)
        PA-I   max(R², 1/C) (‖u‖² + 2C Σ ℓ_t)
        PA-II  (R² + 1/(2C)) (‖u‖² + 2C Σ ℓ_t²)

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        ℓ_t.
    sizes : array-like of shape (n_samples,)
        ‖x_t‖.
    norm : float
        ‖u‖.
    variant : {"PA", "PA-I", "PA-II"}, default="PA-I"
        The length of a step.
    C : float, default=1.0
        Its limit.
    p : float, default=2.0
        The exponent of the norm; 2 but for group norms.

    Returns
    -------
    float
        The most mistakes.

    Examples
    --------
    >>> from consilience.solvers.certificates import passive_aggressive_bound
    >>> passive_aggressive_bound([0.0, 0.5], [1.0, 1.0], 2.0, C=2.0)
    6.0
    """
    losses, squares = np.asarray(losses, dtype=np.float64), (p - 1) * np.asarray(sizes, dtype=np.float64) ** 2
    largest = float(squares.max())
    if variant == "PA":
        lost = losses > 0  # samples without a loss cause no step
        if (squares[lost] <= 0).any():  # no step removes the loss of a sample of length 0
            return float("inf")
        b2 = float(np.sum(losses[lost] ** 2 / squares[lost]))
        return float(largest * (b2**0.5 + (b2 + norm**2) ** 0.5) ** 2)
    if variant == "PA-I":
        return float(max(largest, 1 / C) * (norm**2 + 2 * C * losses.sum()))
    return float((largest + 1 / (2 * C)) * (norm**2 + 2 * C * np.sum(losses**2)))


def loss_bound(
    losses: Any, sizes: Any, norm: float, *, squared: bool = False, C: float = 1.0, slope: float = 1.0, p: float = 2.0
) -> float:
    """Bound the summed loss of passive-aggressive regression on any sequence of samples.

    Let ℓ*_t be the losses of a comparator u, c_t = (p - 1)‖x_t‖², R² their largest and S their sum. For losses of slope
    at most s, such as the ε-insensitive one (s = 1) and the quantile loss, steps are at most C s, and

        Σ ℓ_t <= Σ ℓ*_t + ‖u‖²/(2C) + C s² S/2
        Σ ℓ_t <= B/(2a) + a S/2,  B = ‖u‖² + 2C Σ ℓ*_t,  for every a <= C/2  (s = 1)

    The smaller one is returned, with the best a. Both follow from Σ τ_t (2ℓ_t - τ_t c_t - 2ℓ*_t) <= ‖u‖² (Lemma 1 of
    Crammer et al. 2006). By the first one, the mean loss exceeds that of u by a multiple of 1/√T for a suitable C.
    Without a limit on the steps, C = ∞, it is √S (b + √(b² + ‖u‖²)) with b² = Σ ℓ*_t² / c_t.

    For squared losses, it is `passive_aggressive_bound` of PA-II, which bounds Σ ℓ_t² by Theorem 5 of the paper.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        ℓ*_t before squaring; for the quantile loss, the loss itself.
    sizes : array-like of shape (n_samples,)
        ‖x_t‖.
    norm : float
        ‖u‖.
    squared : bool, default=False
        Whether the squares of the losses are summed, and steps are those of PA-II.
    C : float, default=1.0
        Limit of the steps.
    slope : float, default=1.0
        s, the larger one of q and 1 - q for quantile q.
    p : float, default=2.0
        The exponent of the norm; 2 but for group norms.

    Returns
    -------
    float
        The largest sum of losses.

    Examples
    --------
    >>> from consilience.solvers.certificates import loss_bound
    >>> loss_bound([0.0, 0.5], [1.0, 1.0], 2.0, C=2.0)
    3.5
    """
    if squared:
        return passive_aggressive_bound(losses, sizes, norm, variant="PA" if np.isinf(C) else "PA-II", C=C, p=p)
    losses, squares = np.asarray(losses, dtype=np.float64), (p - 1) * np.asarray(sizes, dtype=np.float64) ** 2
    total = float(squares.sum())
    if np.isinf(C):
        lost = losses > 0
        if slope != 1 or (squares[lost] <= 0).any():  # no bound is known, or no step removes the loss
            return float("inf")
        b2 = float(np.sum(losses[lost] ** 2 / squares[lost]))
        return float(total**0.5 * (b2**0.5 + (b2 + norm**2) ** 0.5))
    regret = float(losses.sum() + norm**2 / (2 * C) + C * slope**2 * total / 2)
    if slope != 1:
        return regret
    B = norm**2 + 2 * C * float(losses.sum())
    a = min(C / 2, (B / total) ** 0.5 if total > 0 else C / 2)
    return min(regret, B / (2 * a) + a * total / 2) if a > 0 else regret


def risk_bound(mean_loss: float, n_samples: int, delta: float = 0.05) -> float:
    """Bound the mean risk of the hypotheses of an online estimator after one pass over independent samples.

    Hypothesis t is the function of the estimator before sample t. Let r_t be its risk, the expected loss on a new
    sample. Let M be the mean loss of the hypotheses, each on its own sample. For a loss within [0, 1], with probability
    1 - δ,

        (r_1 + ... + r_T) / T <= M + √((2/T) ln(1/δ))

    (Cesa-Bianchi, Conconi and Gentile 2004; Fornoni 2009, Theorem 3.1.6). The mean risk is the error rate of
    predictions that each draw another of the T hypotheses at random. For a convex loss it is at least the risk of the
    mean hypothesis, which the bound then covers. The share of mistakes is not convex. For it, the bound covers neither
    the mean hypothesis, nor the final one, nor one that is drawn once and then kept: their error rates can be above
    it. To bound the error rate of one of these, test it on samples that it has not learned.

    Parameters
    ----------
    mean_loss : float
        M, such as the share of mistakes.
    n_samples : int
        T.
    delta : float, default=0.05
        δ.

    Returns
    -------
    float
        The bound on the mean risk.

    Examples
    --------
    >>> from consilience.solvers.certificates import risk_bound
    >>> round(risk_bound(0.1, 20_000), 4)
    0.1173
    """
    return float(mean_loss + (2 / n_samples * np.log(1 / delta)) ** 0.5)


def sparsity_bound(n_kept: float, n_samples: int, delta: float = 0.05) -> float:
    """Bound the error rate of a classifier that is made from few of the training samples and is right on the others.

    For m independent samples, of which d make the classifier, it is with probability 1 - δ at most

        (ln C(m, d) + ln m + ln(1/δ)) / (m - d)

    (Graepel, Herbrich and Williamson 2000, for the perceptron; Littlestone and Warmuth 1986). The classifier must be a
    function of the d samples and their positions alone, so kernels and penalties must not be chosen by the m samples. A
    perceptron is such a function: samples without an update have no effect. Its
    mistake bound is a bound on d too: with d = `novikoff_bound` this is the margin bound of Graepel, Herbrich and
    Williamson. With that of `vector_perceptron_bounds` it is what Szedmak, Shawe-Taylor and Parrado-Hernandez (2006)
    suggest, who cite Graepel, Herbrich and Shawe-Taylor (2000). The value increases with d, so an upper bound on d is
    enough.

    Parameters
    ----------
    n_kept : float
        d, or an upper bound on it, which is rounded down.
    n_samples : int
        m.
    delta : float, default=0.05
        δ.

    Returns
    -------
    float
        The bound, 1 where it says nothing.

    Examples
    --------
    >>> from consilience.solvers.certificates import sparsity_bound
    >>> round(sparsity_bound(10, 1000), 3)
    0.064
    """
    if 2 * n_kept >= n_samples:  # from there on the formula is above 1
        return 1.0
    d, m = int(n_kept), int(n_samples)
    subsets = lgamma(m + 1) - lgamma(d + 1) - lgamma(m - d + 1)  # ln C(m, d)
    return float(min(1.0, (subsets + np.log(m / delta)) / (m - d)))


def vector_perceptron_bounds(
    widest: float, eta0: float, margin: float = 1.0, squared_size: float = 1.0
) -> tuple[float, float]:
    """Bound the updates of the vector perceptron, and the margin it reaches.

    With steps of length s = eta0, margin λ, ‖y‖²‖φ‖² <= R² and an operator of norm 1 with margin Γ, there are at most
    (R² + 2λ/s) / Γ² updates, and the margin is at least λΓ / (2λ + sR²). For λ = R = 1 these are (1/Γ²)(1 + 2/s) and
    Γ/(s + 2), Theorem 1 of Szedmak, Shawe-Taylor and Parrado-Hernandez (2006).

    Parameters
    ----------
    widest : float
        Γ > 0.
    eta0 : float
        s > 0.
    margin : float, default=1.0
        λ.
    squared_size : float, default=1.0
        R², the largest product of the squared lengths of a label and a sample.

    Returns
    -------
    (float, float)
        The most updates, and the least margin.

    Examples
    --------
    >>> from consilience.solvers.certificates import vector_perceptron_bounds
    >>> vector_perceptron_bounds(0.5, eta0=2.0)
    (8.0, 0.125)
    """
    updates = (squared_size + 2 * margin / eta0) / widest**2
    return float(updates), float(margin * widest / (2 * margin + eta0 * squared_size))


def rademacher_bound(metric_norm: float, function_norm: float, squared_size: float, n_samples: float) -> float:
    """Bound the empirical Rademacher complexity of functions with a learned metric between views.

    Over all A ⪰ 0 with ‖A‖_F <= α and functions of norm at most β in the space of the kernel k_v(x)'A_vw k_w(z), it is
    at most β √(α Σ_v tr(K_v²)) / n (Huusari, Kadri and Capponi 2018, Theorem 1).

    Parameters
    ----------
    metric_norm : float
        α.
    function_norm : float
        β.
    squared_size : float
        Σ_v tr(K_v²); for features Σ_v ‖Φ_v‖_F².
    n_samples : float
        The number of samples, or the sum of their weights.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> from consilience.solvers.certificates import rademacher_bound
    >>> rademacher_bound(4.0, 0.5, 100.0, 10)
    1.0
    """
    return float(function_norm * (metric_norm * squared_size) ** 0.5 / n_samples)
