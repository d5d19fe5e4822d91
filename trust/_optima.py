"""Optima of the published programs by other means: least squares, a conic solver, quasi-Newton steps.

Each function returns the objective at a point that is allowed, so that no optimum is above it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse as sp


def root(K: np.ndarray) -> np.ndarray:
    """Return R with RR' = K, a column for each eigenvalue above rounding."""
    values, U = np.linalg.eigh(K)
    kept = values > 1e-15 * len(K) * max(values[-1], 1e-300)
    return U[:, kept] * np.sqrt(values[kept])


# -- co-regularized programs, in coordinates b_v with f_v = R_v b_v
class Coordinates(NamedTuple):
    """The outputs of all views as Φb, and penalties ‖Eb‖²."""

    Phi: np.ndarray  # (l, k)
    E: np.ndarray


class Terms(NamedTuple):
    """What the penalties are made of."""

    alpha: float
    agreement: float = 0.0
    graph: float = 0.0
    laplacians: Any = ()
    present: Any = None  # (N, m)
    s: Any = None  # weights of the samples
    operator: Any = None  # M over all views and samples, times its penalty


def combined(present: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the factors of the views' functions, (N, m): c rescaled over the views that are there."""
    return present * c * (np.abs(c).sum() / (present @ np.abs(c)))[:, None]


def coordinates(grams: Sequence[np.ndarray], terms: Terms, c: np.ndarray, l: int) -> Coordinates:
    """Return the program in coordinates of the views' functions."""
    N, m = len(grams[0]), len(grams)
    present = np.ones((N, m), dtype=bool) if terms.present is None else terms.present
    s = np.ones(N) if terms.s is None else terms.s
    roots = [root(K) for K in grams]
    factors = combined(present, c)
    Phi = np.hstack([factors[:l, v, None] * R[:l] for v, R in enumerate(roots)])
    ours = [np.hstack([R if w == v else np.zeros_like(S) for w, S in enumerate(roots)]) for v, R in enumerate(roots)]
    rows = [np.sqrt(terms.alpha) * np.eye(Phi.shape[1])]
    for v in range(m):
        if terms.graph:
            rows.append(np.sqrt(terms.graph) * root(terms.laplacians[v]).T @ ours[v])
        for w in range(v) if terms.agreement else ():
            both = np.sqrt(terms.agreement * s * present[:, v] * present[:, w])
            rows.append(both[:, None] * (ours[v] - ours[w]))
    if terms.operator is not None:
        rows.append(root(terms.operator).T @ np.vstack(ours))
    return Coordinates(Phi, np.vstack(rows))


def least_squares(at: Coordinates, Y: np.ndarray, u: np.ndarray) -> float:
    """Return min Σ u_i ‖y_i - (Φb)_i‖² + ‖Eb‖²."""
    A = np.vstack([np.sqrt(u)[:, None] * at.Phi, at.E])
    right = np.vstack([np.sqrt(u)[:, None] * Y, np.zeros((len(at.E), Y.shape[1]))])
    b = np.linalg.lstsq(A, right, rcond=None)[0]
    return float(np.sum((A @ b - right) ** 2))


class Hinges(NamedTuple):
    """Σ_ik upper_ik max(0, margins_ik - signs_ik <s_k, g_i>), written out from the classes."""

    vectors: np.ndarray
    signs: np.ndarray
    margins: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, n_classes: int, vectors: np.ndarray | None, u: np.ndarray) -> "Hinges":
        """Return the loss of class vectors, or of each class against the rest."""
        T = n_classes
        if vectors is None:
            k = 1 if T == 2 else T
            signs = np.array(
                [[1.0 if (code == 1 if T == 2 else code == t) else -1.0 for t in range(k)] for code in codes]
            )
            return cls(np.eye(k), signs, np.ones((len(codes), k)), np.repeat(u[:, None], k, axis=1))
        upper = np.array(
            [[0.0 if t == code else weight for t in range(T)] for code, weight in zip(codes, u, strict=True)]
        )
        margins = np.array([[-vectors[t] @ vectors[code] for t in range(T)] for code in codes])
        return cls(vectors, -np.ones((len(codes), T)), margins, upper)

    def value(self, g: np.ndarray) -> float:
        """Return the loss of outputs."""
        return float(np.sum(self.upper * np.maximum(0, self.margins - self.signs * (g @ self.vectors.T))))


def conic(P: np.ndarray, q: np.ndarray, A: np.ndarray, b: np.ndarray, cones: Sequence[Any]) -> np.ndarray:
    """Return x of min ½x'Px + q'x with b - Ax in the cones."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_threads = 1
    program = clarabel.DefaultSolver(sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(A), b, list(cones), settings)
    return np.array(program.solve().x)


def hinges(at: Coordinates, loss: Hinges) -> float:
    """Return the least loss plus ‖Eb‖², by a conic solver."""
    import clarabel

    k, Q = at.Phi.shape[1], loss.vectors.shape[1]
    active = np.argwhere(loss.upper > 0)
    n = len(active)
    H = at.E.T @ at.E
    scale = max(float(np.trace(H)) / k, 1e-300)
    P, q = np.zeros((k * Q + n, k * Q + n)), np.zeros(k * Q + n)
    P[: k * Q, : k * Q] = 2 * np.kron(H, np.eye(Q)) / scale
    q[k * Q :] = loss.upper[tuple(active.T)] / scale
    rows = [-loss.signs[i, t] * np.kron(at.Phi[i], loss.vectors[t]) for i, t in active]
    A = np.vstack([np.hstack([np.array(rows), -np.eye(n)]), np.hstack([np.zeros((n, k * Q)), -np.eye(n)])])
    right = np.concatenate([-loss.margins[tuple(active.T)], np.zeros(n)])
    x = conic(P, q, A, right, [clarabel.NonnegativeConeT(2 * n)])
    b = x[: k * Q].reshape(k, Q)
    return loss.value(at.Phi @ b) + float(np.sum((at.E @ b) ** 2))


def best_weights(
    value: Callable[[np.ndarray], float], m: int, radius: float, order: float, rng: np.random.Generator, steps: int
) -> float:
    """Return the least value found over ‖c‖_q = radius, from many directions and by simplex steps from the best."""

    def on_sphere(u: np.ndarray) -> float:
        size = float(np.sum(np.abs(u) ** order) ** (1 / order))
        return value(radius * u / size) if size > 1e-12 else np.inf

    starts = [np.ones(m), *np.eye(m), *rng.normal(size=(4 * m, m))]
    values = [on_sphere(u) for u in starts]
    best = starts[int(np.argmin(values))]
    options = {"maxfev": steps, "xatol": 1e-9, "fatol": 1e-14 * abs(min(values))}
    return min(*values, float(scipy.optimize.minimize(on_sphere, best, method="Nelder-Mead", options=options).fun))


# -- metrics and kernels
def singular_powers(M: np.ndarray, Y: np.ndarray, kappa: float) -> float:
    """Return min_G ‖Y - MG‖² + κ Σ_i s_i(G)^(4/3), by quasi-Newton steps."""
    U, sizes, _ = np.linalg.svd(M, full_matrices=False)
    kept = sizes > 1e-14 * max(sizes[0], 1e-300)
    sizes, Z = sizes[kept], U[:, kept].T @ Y
    rest = float(np.sum(Y**2)) - float(np.sum(Z**2))
    shape = (len(sizes), Y.shape[1])
    unit = float(np.abs(Z).max() / sizes.max()) if len(sizes) else 1.0

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        G = unit * flat.reshape(shape)
        left, s, right = np.linalg.svd(G, full_matrices=False)
        R = sizes[:, None] * G - Z
        slope = 2 * sizes[:, None] * R + 4 / 3 * kappa * (left * np.cbrt(s)) @ right
        return float(np.sum(R**2)) + kappa * float(np.sum(np.cbrt(s) ** 4)), unit * slope.ravel()

    if not len(sizes):
        return float(np.sum(Y**2))
    found, at = np.inf, (Z / (sizes + 1e-3 * sizes.max())[:, None] / unit).ravel()
    for start in (at, 1e-3 * at, 0 * at + 1e-9):
        run = scipy.optimize.minimize(
            value, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 6000, "ftol": 0, "gtol": 0}
        )
        found = min(found, float(run.fun), value(run.x)[0])
    return max(rest, 0.0) + min(found, float(np.sum(Z**2)))


def block_norm(norms: np.ndarray) -> float:
    """Return √((1 - 1/√2) Σ n_v² + (1/√2)(Σ n_v)²): Σ_γ ‖A_γ‖_F and the norm of g at the best metric."""
    return float(np.sqrt((1 - np.sqrt(0.5)) * np.sum(norms**2) + np.sqrt(0.5) * np.sum(norms) ** 2))


def block_sparse(parts: Sequence[np.ndarray], y: np.ndarray, product: float) -> float:
    """Return min ‖y - Σ M_v g_v‖² + 2√(λη) block_norm(‖g_v‖), by a conic solver."""
    import clarabel

    m, bases = len(parts), []
    for M in parts:
        _, sizes, V = np.linalg.svd(M, full_matrices=False)
        bases.append(V[sizes > 1e-14 * max(sizes[0], 1e-300)].T)
    M = np.hstack([part @ V for part, V in zip(parts, bases, strict=True)])
    own = np.split(np.arange(M.shape[1]), np.cumsum([V.shape[1] for V in bases])[:-1])
    k, weight = M.shape[1], 2 * np.sqrt(product)
    P, q = np.zeros((k + m + 1, k + m + 1)), np.zeros(k + m + 1)
    P[:k, :k], q[:k], q[-1] = 2 * M.T @ M, -2 * M.T @ y, weight
    C = np.linalg.cholesky((1 - np.sqrt(0.5)) * np.eye(m) + np.sqrt(0.5)).T
    rows, cones = [], []
    for v, place in enumerate(own):  # ‖g_v‖ <= n_v
        rows += [-np.eye(k + m + 1)[k + v], *-np.eye(k + m + 1)[place]]
        cones.append(clarabel.SecondOrderConeT(1 + len(place)))
    rows += [-np.eye(k + m + 1)[-1], *np.hstack([np.zeros((m, k)), -C, np.zeros((m, 1))])]
    cones.append(clarabel.SecondOrderConeT(1 + m))
    x = conic(P, q, np.array(rows), np.zeros(len(rows)), cones)

    def value(g: np.ndarray) -> float:
        norms = np.array([np.linalg.norm(g[place]) for place in own])
        return float(np.sum((y - M @ g) ** 2)) + weight * block_norm(norms)

    return min(value(x[:k]), value(np.zeros(k)))


def multiple_kernels(grams: Sequence[np.ndarray], Y: np.ndarray, alpha: float, p: float) -> float:
    """Return min over ‖d‖_p <= 1 of kernel ridge with Σ d_v K_v, by quasi-Newton steps on d."""

    def ridge(d: np.ndarray) -> tuple[float, np.ndarray]:
        values, U = np.linalg.eigh(np.tensordot(d, grams, axes=1))
        B = U @ ((U.T @ Y) / (np.maximum(values, 0) + alpha)[:, None])
        return alpha * float(np.sum(Y * B)), np.array([-alpha * float(np.sum(B * (K @ B))) for K in grams])

    grams = np.array(grams)
    m = len(grams)
    if np.isinf(p) or m == 1:
        return ridge(np.ones(m))[0]

    def value(t: np.ndarray) -> tuple[float, np.ndarray]:
        share = np.exp(t - t.max())
        share /= share.sum()
        d = share ** (1 / p)
        J, slope = ridge(d)
        along = slope * d / p
        return J, along - share * along.sum()

    found = [ridge(np.eye(m)[v])[0] for v in range(m)]
    for start in (np.zeros(m), *4 * np.eye(m)):
        run = scipy.optimize.minimize(
            value, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 0, "maxiter": 500}
        )
        found.append(float(run.fun))
    return min(found)


# -- maximum margins
def margins(Q: np.ndarray, C: np.ndarray, vectors: np.ndarray | None = None, target: Any = None) -> float:
    """Return min ½‖W‖² + Σ C_i ξ_i by its dual, at W = Σ α_i y_i φ_i'; with vectors also over an intercept.

    `target` are the margins, 1 by default.
    """
    import clarabel

    n = len(Q)
    target = np.ones(n) if target is None else target
    A, b = np.vstack([-np.eye(n), np.eye(n)]), np.concatenate([np.zeros(n), C])
    cones = [clarabel.NonnegativeConeT(2 * n)]
    unit = max(float(C.max()), 1e-300)
    A, b = A * 1.0, b / unit
    if vectors is not None:
        A, b = np.vstack([vectors.T, A]), np.concatenate([np.zeros(vectors.shape[1]), b])
        cones.insert(0, clarabel.ZeroConeT(vectors.shape[1]))
    alpha = np.clip(unit * conic(unit * Q, -target, A, b, cones), 0, C)
    half, scores = 0.5 * float(alpha @ Q @ alpha), Q @ alpha
    if vectors is None:
        return half + float(C @ np.maximum(0, target - scores))
    # the best intercept for this W: a linear program
    k = vectors.shape[1]
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(k), C]), A_ub=np.hstack([-vectors, -np.eye(n)]), b_ub=scores - 1,
        bounds=[(None, None)] * k + [(0, None)] * n,
    )  # fmt: skip
    return half + float(C @ np.maximum(0, 1 - scores - vectors @ found.x[:k]))
