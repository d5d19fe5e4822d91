"""Solutions and certificates: what a solver returns, how close it is to the optimum, and what to do if it is not."""

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "STATUSES", "Certificate", "MistakeCertificate", "PerceptronCertificate", "Solution", "novikoff_bound",
    "passive_aggressive_bound", "perceptron_bound", "rademacher_bound", "risk_bound", "vector_perceptron_bounds",
    "warn_unless_converged",
]  # fmt: skip

#: What a status means, and its remedy. Every solver ends with one of these.
STATUSES: dict[str, str] = {
    "converged": "The optimality gap is below the tolerance.",
    "exact": "Direct solution; there is nothing to iterate.",
    "max_iter": "The maximum number of iterations was reached before the tolerance. Raise `max_iter`, or `tol` if the "
    "gap is fine.",
    "settled": "Converged to a stationary point; global optimality is not guaranteed. If weights of views are "
    "learned, try more `n_restarts`.",
    "stalled": "Steps no longer improve the objective in floating point. Scale the data, or raise `tol`.",
    "inexact": "Rounding errors keep the solution away from the optimum. Raise `alpha`, lower the other penalties, or "
    "give float64 data.",
    "jitter": "The matrix was singular, so a small multiple of the identity was added. Raise `alpha`, or drop "
    "duplicate samples.",
    "indefinite": "The matrices are not positive semi-definite, so the problem has no minimum.",
    "streamed": "Learned as the samples arrived; no optimum is claimed.",
    "delegated": "The wrapped estimator solved its own problem; no gap is known for it.",
    "shared": "A copy of the fitted function without training samples, possibly approximate; no optimum is claimed.",
}


@dataclass(frozen=True)
class Solution:
    """Result of a solver: a value and its proof.

    Parameters
    ----------
    x : object
        Solution, usually arrays.
    gap : float or None
        Upper bound on the distance of the objective from its optimum; None if none is known.
    n_iter : int
        Number of iterations.
    status : str
        A key of `STATUSES`.
    objective : float or None
        Objective at `x`.
    residual : float or None
        Largest violation of the optimality conditions.
    bound : float or None
        A bound that the solution proves, as the estimator's documentation says.

    Examples
    --------
    >>> from consilience.solvers.certificates import Solution
    >>> Solution(x=0.5, gap=1e-9, n_iter=12, status="converged").converged
    True
    """

    x: Any
    gap: float | None
    n_iter: int
    status: str
    objective: float | None = None
    residual: float | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"A solution's status is one of {', '.join(STATUSES)}; got {self.status!r}.")

    @property
    def converged(self) -> bool:
        """Whether the solver reached the accuracy asked for."""
        return self.status in ("converged", "exact", "settled", "streamed", "delegated", "shared")

    @property
    def dual(self) -> float:
        """Lower bound on the optimum: the objective minus the gap, where both are known."""
        assert self.objective is not None
        assert self.gap is not None
        return self.objective - self.gap


@dataclass(frozen=True)
class Certificate:
    """What is proved about a fitted estimator; prints as a sentence.

    Parameters
    ----------
    status : str
        A key of `STATUSES`.
    objective : float, optional
        Objective.
    gap : float, optional
        Upper bound on the distance of `objective` from the optimum.
    residual : float, optional
        Largest violation of the optimality conditions.
    bound : float, optional
        Bound on mistakes or risk, as the estimator's documentation says.

    Examples
    --------
    >>> from consilience.solvers.certificates import Certificate
    >>> print(Certificate(status="converged", objective=2.0, gap=1e-6))
    Objective 2, at most 1e-06 (5e-05%) above the optimum. The optimality gap is below the tolerance.
    """

    status: str
    objective: float | None = None
    gap: float | None = None
    residual: float | None = None
    bound: float | None = None

    @property
    def dual(self) -> float | None:
        """Lower bound on the optimum: the objective minus the gap."""
        return None if self.objective is None or self.gap is None else self.objective - self.gap

    def __str__(self) -> str:
        parts = []
        if self.objective is not None and self.gap is not None:
            share = f" ({100 * self.gap / abs(self.objective):.2g}%)" if self.objective else ""
            parts.append(f"Objective {self.objective:.6g}, at most {self.gap:.2g}{share} above the optimum.")
        elif self.objective is not None:
            parts.append(f"Objective {self.objective:.6g}.")
        if self.residual is not None:
            parts.append(f"Optimality conditions hold to {self.residual:.2g}.")
        if self.bound is not None:
            parts.append(f"Bound {self.bound:.6g}.")
        return " ".join([*parts, STATUSES[self.status]])


@dataclass(frozen=True)
class PerceptronCertificate(Certificate):
    """What is proved about a perceptron; prints as a sentence.

    Parameters
    ----------
    status : str
        A key of `STATUSES`.
    objective, gap, residual : float, optional
        Not known for perceptrons.
    bound : float, optional
        Upper bound on the number of updates.
    n_updates : int
        Number of updates.
    margin : float, optional
        Margin of the operator on the samples, at norm 1.
    margin_bound : float, optional
        Lower bound on the margin, once every sample has the requested margin.
    widest : float, optional
        Margin of the operator that the bounds compare with.

    Examples
    --------
    >>> from consilience.solvers.certificates import PerceptronCertificate
    >>> print(PerceptronCertificate(status="streamed", n_updates=7, bound=30.0, widest=0.3))
    7 updates, at most 30 by the margin 0.3 of the best operator. Learned as the samples arrived; no optimum is claimed.
    """

    n_updates: int = 0
    margin: float | None = None
    margin_bound: float | None = None
    widest: float | None = None

    def __str__(self) -> str:
        text = f"{self.n_updates} updates"
        if self.bound is not None:
            text += f", at most {self.bound:.6g} by the margin {self.widest:.4g} of the best operator"
        if self.margin is not None:
            text += f". Margin {self.margin:.4g}"
        if self.margin_bound is not None:
            text += f", at least {self.margin_bound:.4g}"
        return f"{text}. {STATUSES[self.status]}"


@dataclass(frozen=True)
class MistakeCertificate(Certificate):
    """What is proved about an online estimator; prints as a sentence.

    Parameters
    ----------
    status : str
        A key of `STATUSES`.
    objective, gap, residual : float, optional
        Not known for streams.
    bound : float, optional
        Upper bound on the number of mistakes.
    n_mistakes : int
        Number of mistakes; a score of zero is a mistake for either class.
    n_samples : int
        Number of samples seen.
    loss, norm, size : float, optional
        Summed hinge loss and norm of the comparator of the bound, and the largest norm of a sample.
    risk : float, optional
        Bound on the risk of a hypothesis drawn from those of the stream, with probability 95%, for independent samples
        that are seen once (`risk_bound` of the share of mistakes).

    Examples
    --------
    >>> from consilience.solvers.certificates import MistakeCertificate
    >>> proof = MistakeCertificate("streamed", bound=30.0, n_mistakes=7, n_samples=100, loss=2.0, norm=3.0, size=1.0)
    >>> print(proof)
    7 mistakes in 100 samples, at most 30 by a comparator of loss 2 and norm 3 on samples of size 1. Learned as the
    samples arrived; no optimum is claimed.
    """

    n_mistakes: int = 0
    n_samples: int = 0
    loss: float | None = None
    norm: float | None = None
    size: float | None = None
    risk: float | None = None

    def __str__(self) -> str:
        text = f"{self.n_mistakes} mistakes in {self.n_samples} samples"
        if self.bound is not None and self.size is None:
            text += f", at most {self.bound:.6g}, the number of samples; a better bound needs certificate(X, y)"
        elif self.bound is not None:
            text += (
                f", at most {self.bound:.6g} by a comparator of loss {self.loss:.4g} and norm {self.norm:.4g} on "
                f"samples of size {self.size:.4g}"
            )
        if self.risk is not None:
            text += f". Risk of a hypothesis drawn from the stream at most {self.risk:.4g} with probability 95%"
        return f"{text}. {STATUSES[self.status]}"


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
    loss: float, size: float, norm: float, *, p: float = 2.0, margin: float = 0.0, eta0: float = 1.0
) -> float:
    """Bound the updates of a perceptron whose potential is half a squared norm with exponent p.

    For any comparator u with hinge loss L = Σ max(0, 1 - y<u, x>) over all samples, X the largest ‖x‖_p and ‖u‖_q with
    1/p + 1/q = 1:

        updates <= L + A + √(A L),   A = ‖u‖_q² ((p - 1) X² + 2 margin / eta0)

    With margin 0 it counts mistakes: the p-norm perceptron (Grove, Littlestone and Schuurmans 2001; Gentile 2003), and
    with 2p in place of p and Schatten norms the matrix perceptron (Cavallanti, Cesa-Bianchi and Gentile 2008; Fornoni
    2009, 3.1.6, which follows for U/K since the hinge loss is convex), with group norms the orthogonal one. For several
    classes the loss is max(0, 1 - (s_y - max s_r)) and X is √2 times as large.

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
    # the updates M satisfy M <= L + √(A M), which implies this
    return float(loss + A + (A * loss) ** 0.5)


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


def risk_bound(mean_loss: float, n_samples: int, delta: float = 0.05) -> float:
    """Bound the risk after one pass over independent samples.

    With probability 1 - δ the mean hypothesis of an online estimator has, for a convex loss within [0, 1], a risk of at
    most M + √((2/T) ln(1/δ)), M the mean loss on the way (Cesa-Bianchi, Conconi and Gentile 2004; Fornoni 2009, 3.1.6).
    For the share of mistakes, which is not convex, it holds for a hypothesis drawn at random from those of the stream.

    Parameters
    ----------
    mean_loss : float
        M.
    n_samples : int
        T.
    delta : float, default=0.05
        δ.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> from consilience.solvers.certificates import risk_bound
    >>> round(risk_bound(0.1, 20_000), 4)
    0.1173
    """
    return float(mean_loss + (2 / n_samples * np.log(1 / delta)) ** 0.5)


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


def warn_unless_converged(solution: Solution, name: str) -> None:
    """Give one ConvergenceWarning that names the gap, the cause and the remedy, where a solver fell short.

    Parameters
    ----------
    solution : Solution
        What the solver returned.
    name : str
        Name of the estimator.

    Examples
    --------
    >>> from consilience.solvers.certificates import Solution, warn_unless_converged
    >>> warn_unless_converged(Solution(x=0.5, gap=0.0, n_iter=1, status="exact"), "Ridge")
    """
    if not solution.converged:
        gap = "" if solution.gap is None else f" with a gap of {solution.gap:.3g}"
        warnings.warn(
            f"{name} stopped after {solution.n_iter} iterations{gap}. {STATUSES[solution.status]}",
            ConvergenceWarning,
            stacklevel=_outside(),
        )


def _outside() -> int:
    """Return how many frames up the first one is that is not the library's: the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "consilience":
        level, frame = level + 1, frame.f_back
    return level
