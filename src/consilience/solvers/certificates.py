"""Solutions and certificates: what a solver returns, how close it is to the optimum, and what to do if it is not."""

import sys
import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from .bounds import (
    loss_bound,
    novikoff_bound,
    passive_aggressive_bound,
    perceptron_bound,
    rademacher_bound,
    risk_bound,
    sparsity_bound,
    vector_perceptron_bounds,
)

__all__ = [
    "STATUSES", "Certificate", "LossCertificate", "MarginCertificate", "MistakeCertificate", "PerceptronCertificate",
    "Solution", "loss_bound", "novikoff_bound", "passive_aggressive_bound", "perceptron_bound", "rademacher_bound",
    "risk_bound", "sparsity_bound", "vector_perceptron_bounds", "warn_unless_converged",
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
    "indefinite_metric": "The learned metric is not positive semi-definite, so no optimum is claimed. Use "
    "solver='exact', or step_size=None.",
    "diverged": "Fixed steps made the metric too large or too close to singular; the last usable one is kept. Lower "
    "`step_size`, or use step_size=None.",
    "streamed": "Learned as the samples arrived; no optimum is claimed.",
    "delegated": "The wrapped estimator solved its own problem; no gap is known for it.",
    "shared": "A copy of the fitted function without training samples, exact to rounding; no optimum is claimed.",
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
    note : str
        What else the certificate says, in sentences.

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
    note: str = ""

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
    note : str
        What else there is to say, in sentences.

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
    note: str = ""

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
        return " ".join([*parts, STATUSES[self.status], *([self.note] if self.note else [])])


@dataclass(frozen=True)
class MarginCertificate(Certificate):
    """What is proved about a maximum margin classifier; prints as a sentence.

    Parameters
    ----------
    status : str
        A key of `STATUSES`.
    objective, gap, residual, bound : float, optional
        See `Certificate`.
    note : str
        What else there is to say, in sentences.
    n_support : int
        Number of samples with a dual variable above 0.
    risk : float, optional
        Bound on the error rate of the classifier that is fitted to these samples alone, with probability 95%, for
        independent samples and parameters that were not chosen by them (`sparsity_bound`).

    Examples
    --------
    >>> from consilience.solvers.certificates import MarginCertificate
    >>> print(MarginCertificate(status="converged", objective=2.0, gap=1e-6, n_support=9, risk=0.1))
    Objective 2, at most 1e-06 (5e-05%) above the optimum. The optimality gap is below the tolerance. Fitted to its 9
    support samples alone, it has an error rate of at most 0.1 with probability 95%, if the samples are independent.
    """

    n_support: int = 0
    risk: float | None = None

    def __str__(self) -> str:
        if self.risk is None:
            return super().__str__()
        return (
            f"{super().__str__()} Fitted to its {self.n_support} support samples alone, it has an error rate of at "
            f"most {self.risk:.4g} with probability 95%, if the samples are independent."
        )


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
    risk : float, optional
        Bound on the error rate, with probability 95%, for independent samples that are all classified correctly and
        parameters that were not chosen by them (`sparsity_bound` of the number of updates).

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
    risk: float | None = None

    def __str__(self) -> str:
        text = f"{self.n_updates} updates"
        if self.bound is not None:
            text += f", at most {self.bound:.6g} by the margin {self.widest:.4g} of the best operator"
        if self.margin is not None:
            text += f". Margin {self.margin:.4g}"
        if self.margin_bound is not None:
            text += f", at least {self.margin_bound:.4g}"
        if self.risk is not None:
            text += f". Error rate at most {self.risk:.4g} with probability 95%, if the samples are independent"
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
        Bound on the mean error rate over all hypotheses of the stream, each of which predicted one sample, with
        probability 95%, for independent samples that are seen once (`risk_bound` of the share of mistakes). It does not
        bound the error rate of the final hypothesis, of an average or of any other single one.

    Examples
    --------
    >>> from consilience.solvers.certificates import MistakeCertificate
    >>> proof = MistakeCertificate("streamed", bound=30.0, n_mistakes=7, n_samples=100, loss=2.0, norm=3.0, size=1.0)
    >>> print(proof)
    7 mistakes in 100 samples, at most 30 by a comparator of loss 2 and norm 3 on samples of size 1. Learned as the
    samples arrived; no optimum is claimed.
    >>> print(MistakeCertificate("streamed", n_mistakes=7, n_samples=1000, risk=0.08))
    7 mistakes in 1000 samples. If the samples are independent, the mean error rate over all hypotheses of the stream is
    at most 0.08 with probability 95%; the final one is not bounded. Learned as the samples arrived; no optimum is
    claimed.
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
            text += (
                ". If the samples are independent, the mean error rate over all hypotheses of the stream is at most "
                f"{self.risk:.4g} with probability 95%; the final one is not bounded"
            )
        return f"{text}. {STATUSES[self.status]}"


@dataclass(frozen=True)
class LossCertificate(Certificate):
    """What is proved about online regression; prints as a sentence.

    Parameters
    ----------
    status : str
        A key of `STATUSES`.
    objective, gap, residual : float, optional
        Not known for streams.
    bound : float, optional
        Upper bound on the summed loss.
    total_loss : float
        Summed loss of the last hypotheses, each before its sample was learned.
    n_samples : int
        Number of samples seen.
    loss, norm, size : float, optional
        Summed loss and norm of the comparator of the bound, and the largest norm of a sample.

    Examples
    --------
    >>> from consilience.solvers.certificates import LossCertificate
    >>> print(LossCertificate("streamed", bound=30.0, total_loss=7.5, n_samples=100, loss=2.0, norm=3.0, size=1.0))
    Summed loss 7.5 over 100 samples, at most 30 by a comparator of loss 2 and norm 3 on samples of size 1. Learned as
    the samples arrived; no optimum is claimed.
    """

    total_loss: float = 0.0
    n_samples: int = 0
    loss: float | None = None
    norm: float | None = None
    size: float | None = None

    def __str__(self) -> str:
        text = f"Summed loss {self.total_loss:.6g} over {self.n_samples} samples"
        if self.bound is not None:
            text += (
                f", at most {self.bound:.6g} by a comparator of loss {self.loss:.4g} and norm {self.norm:.4g} on "
                f"samples of size {self.size:.4g}"
            )
        return f"{text}. {STATUSES[self.status]}"


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
