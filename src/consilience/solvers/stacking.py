"""Stacking: the non-negative combination of base models that is best for predictions of samples they have not seen.

For held-out predictions z_ki (Breiman 1996; van der Laan, Polley and Hubbard 2007),

    min_{β >= 0} Σ_i u_i ‖t_i - Σ_k β_k z_ki‖²,

a problem in as many variables as there are base models. Both t and z are differences from the held-out mean of the
targets, so that β = 0 predicts the mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from .._backend import namespace
from .linalg import eigh, gram_of, multiply, solve_each


def normal_equations(Z: np.ndarray, T: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return G and b of the objective β'Gβ - 2b'β + constant."""
    root = np.sqrt(u)[:, None]
    A = (root * Z).reshape(len(Z), -1)
    return gram_of(A.T), multiply(A, (root * T).reshape(-1, 1))[:, 0]


def least_squares(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return β >= 0 with the smallest β'Gβ - 2b'β."""
    if not np.any(b > 0):  # nothing is gained by any model
        return np.zeros_like(b)
    values, vectors = eigh(G)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    root = np.sqrt(values[kept])
    return np.asarray(nnls(root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ b) / root)[0])


def violation(G: np.ndarray, b: np.ndarray, beta: np.ndarray) -> float:
    """Return the largest violation of the optimality conditions, relative to b."""
    gradient = G @ beta - b
    worst = max(float(np.max(-gradient, initial=0.0)), float(np.max(np.abs(gradient[beta > 0]), initial=0.0)))
    return worst / max(float(np.abs(b).max(initial=0.0)), 1e-300)


def stack_without(
    Z: np.ndarray, T: np.ndarray, u: np.ndarray, parts: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return β fitted to all samples, and β fitted without each part, (n_parts, q).

    Without a part, most weights that are zero stay so. Many parts are solved at once under this assumption, and again
    one by one where the optimality conditions say that it fails.
    """
    G, b = normal_equations(Z, T, u)
    beta = least_squares(G, b)
    active = np.flatnonzero(beta > 0)
    little = 1e-12 * np.trace(G) / max(len(b), 1) * np.eye(len(active))
    out = np.zeros((len(parts), len(b)))
    for start in range(0, len(parts), 1024):
        some = parts[start : start + 1024]
        lost = _lost_equations(Z, T, u, some)
        reduced_G, reduced_b = G - lost[0], b - lost[1]
        found = np.zeros((len(some), len(b)))
        if len(active):
            systems = reduced_G[:, active[:, None], active] + little
            found[:, active] = solve_each(systems, reduced_b[:, active, None])[..., 0]
        gradient = np.einsum("nkl,nl->nk", reduced_G, found) - reduced_b
        worst = np.maximum(-gradient, np.where(found > 0, gradient, 0.0)).max(axis=1, initial=0.0)
        fails = (found.min(axis=1, initial=0.0) < 0) | (worst > 1e-7 * np.abs(reduced_b).max(axis=1, initial=0.0))
        for k in np.flatnonzero(fails):
            found[k] = least_squares(reduced_G[k], reduced_b[k])
        out[start : start + len(some)] = found
    return beta, out


def _lost_equations(
    Z: np.ndarray, T: np.ndarray, u: np.ndarray, parts: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the normal equations lose without each part, (n_parts, q, q) and (n_parts, q)."""
    if all(len(part) == 1 for part in parts):
        rows = np.concatenate(parts)
        A = np.sqrt(u[rows])[:, None, None] * Z[:, rows].transpose(1, 0, 2)  # (n_parts, q, P)
        return A @ A.transpose(0, 2, 1), (A @ (np.sqrt(u[rows])[:, None] * T[rows])[..., None])[..., 0]
    lost = [normal_equations(Z[:, part], T[part], u[part]) for part in parts]
    return np.stack([G for G, _ in lost]), np.stack([b for _, b in lost])


# -- probabilities
def calibrate(scores: np.ndarray, codes: np.ndarray, u: np.ndarray, n_classes: int) -> tuple[float, np.ndarray]:
    """Return a >= 0 and b with p(class c | x) proportional to exp(a score_c + b_c), Σ_c b_c = 0.

    Scores are (n, n_classes) and have not seen their samples. The targets are smoothed as if one more sample had
    another class (as in Platt 2000), so that separated classes do not make a infinite.
    """
    counts = np.bincount(codes, weights=u, minlength=n_classes)
    doubt = 1 / (len(codes) + 2)
    wanted = np.full((len(codes), n_classes), doubt / (n_classes - 1))
    wanted[np.arange(len(codes)), codes] = 1 - doubt
    scale = max(float(np.sqrt(np.average(np.var(scores, axis=1), weights=u))), 1e-12)
    X = scores / scale
    total = u.sum()

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        logits = x[0] * X + x[1:]
        logits -= logits.max(axis=1, keepdims=True)
        log_total = np.log(np.exp(logits).sum(axis=1, keepdims=True))
        excess = (np.exp(logits - log_total) - wanted) * (u / total)[:, None]
        value = -float(np.sum(wanted * (logits - log_total) * (u / total)[:, None]))
        bias = x[1:] - x[1:].mean()
        ridge = 2 / len(codes)  # a prior of standard deviation ½: few samples say little about ten classes
        gradient = np.concatenate([[np.sum(excess * X)], excess.sum(axis=0) + 2 * ridge * bias])
        return value + ridge * float(bias @ bias), gradient

    start = np.concatenate([[1.0], np.log((counts + 1) / (counts + 1).sum())])
    exact = {"ftol": 1e-15, "gtol": 1e-9}  # rounding of the scores must not show in the probabilities
    bounds = [(0.0, None)] + [(None, None)] * n_classes
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=exact)
    return float(found.x[0]) / scale, found.x[1:] - found.x[1:].mean()


def softmax(logits: Any) -> Any:
    """Return probabilities of logits along the last axis."""
    xp = namespace(logits)
    powers = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)
