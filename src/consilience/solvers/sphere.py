"""Least squares on a sphere: weights of given outputs, where only the length of the weights is fixed."""

import numpy as np
import scipy.optimize

from .linalg import norm, qr_r, svd


def sphere_least_squares(A: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """Return the global minimizer of ‖Ax - b‖ over ‖x‖ = radius, for any A and b (n x m, n).

    (A'A + γI)x = A'b with γ >= -μ, μ the smallest eigenvalue of A'A, is necessary and sufficient. Where A'b has a part
    in the eigenspace of μ, or what is left is long enough at γ = -μ, γ is the root of the secular equation
    ‖x(γ)‖ = radius; else γ = -μ, and an eigenvector of μ makes up the length. With A'b = 0 that is Theorem 15 of Minh,
    Bazzani and Murino (2016), with μ = 0 case II of their Theorem 16; the theorem leaves out μ > 0 with no part of A'b
    along its eigenvectors, which is treated alike here.
    """
    R = qr_r(np.column_stack([A, b]))[: A.shape[1] + 1]  # n may be large, m is not
    _, sigma, Vt = svd(R[:, :-1], full_matrices=True)
    m = A.shape[1]
    sigma = np.concatenate([sigma, np.zeros(m - len(sigma))])
    slack = sigma[0] * max(A.shape) * np.finfo(float).eps  # rounding of the singular values
    sigma[sigma <= slack] = 0.0
    mu = sigma**2
    along = Vt @ (R[:, :-1].T @ R[:, -1])  # A'b in the basis of eigenvectors
    along[(np.abs(along) <= slack * norm(b)) | (sigma == 0)] = 0.0  # no part of A'b lies in the null space of A
    last = mu <= mu[-1] + slack * sigma[0]  # the eigenspace of the smallest eigenvalue
    rest = np.divide(along, mu - mu[-1], out=np.zeros(m), where=~last)  # x at γ = -μ, outside of that eigenspace
    if not along[last].any() and norm(rest) < radius:
        rest[np.flatnonzero(last)[-1]] = np.sqrt(radius**2 - rest @ rest)  # makes up the length; either sign would do
        return Vt.T @ rest
    # the unknown is δ = γ + μ >= 0, which can be far smaller than μ
    above = mu - mu[-1]
    low = max(0.0, float(np.max(np.abs(along) / radius - above)))  # one term alone is as long as the radius there
    high = max(norm(along) / radius, low)

    def excess(delta: float) -> float:
        parts = np.divide(along, above + delta, out=np.zeros(m), where=along != 0)
        return 1 / radius - 1 / norm(parts)  # nearly linear in δ, unlike the length itself

    delta = low
    if excess(low) > 0 and excess(high) < 0:
        delta = scipy.optimize.brentq(excess, low, high, xtol=4 * np.finfo(float).eps * high)
    x = np.divide(along, above + delta, out=np.zeros(m), where=along != 0)
    return Vt.T @ (x * radius / norm(x))  # exactly on the sphere, also where δ is rounded
