"""Vector-valued learning over several views in its general form (Minh, Bazzani and Murino 2016, sections 3 to 5).

    min Σ_e loss(y_e, g_e) + a ‖f‖² + w <f, (M ⊗ I)f>,   g = T ν C f,

over functions f = (f_1 .. f_m) with values in R^Q each, in the space of the kernel G ⊗ R. G (m × m) acts between views,
R (Q × Q) between outputs, M over views and rows. C = [C_1 .. C_m] combines the views, C_v of shape (P, Q); ν rescales
it where views are missing; T, the identity by default, maps rows to what is observed.

Along an eigenvector of R with eigenvalue λ the functions are those of G alone, with a/λ in place of a. A *system* says
how they respond to dual residuals r of the observations: `CoupledGrams` where G is diagonal and M has a form that it
knows, `Whole` for any G and M, with one matrix over all views and rows. Both losses need only the kernel between
observations that follows. Where one basis makes R and every C_v diagonal, it divides into one kernel per direction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .box_qp import class_qp
from .certificates import Solution
from .coupled import CoupledGrams
from .design import GramDesign, view_columns
from .hinge import HingeLoss
from .linalg import add_to_diagonal, cholesky, forward, gram_of, is_positive, multiply, root, solve
from .responses import Factored, Plain

_LARGEST = 4e9  # bytes of a matrix over all targets of all observations


class NotPositiveOperator(np.linalg.LinAlgError):
    """M is not positive semi-definite on the functions of the kernel."""


# -- systems
@dataclass
class WholeDesign:
    """One kernel matrix over all views and rows, view after view, and what multiplies by M.

    Parameters
    ----------
    gram : array of shape (Σ n_v, Σ n_v)
        G over the rows present in each view.
    rows : list of array of int
        Positions of each view's rows among the N, ascending.
    l : int
        Number of rows that observations use; they come first.
    N : int
        Number of rows.
    operator : callable, optional
        Maps F (Σ n_v, k) to MF.
    root : array of shape (Σ n_v, r), optional
        B with G = BB', where it is known.
    """

    gram: np.ndarray
    rows: list[np.ndarray]
    l: int
    N: int
    operator: Callable[[np.ndarray], np.ndarray] | None = None
    root: np.ndarray | None = None
    single = False  # always in double precision

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each view."""
        return [len(here) for here in self.rows]

    @property
    def present(self) -> np.ndarray:
        """Which rows each view has, (N, m)."""
        present = np.zeros((self.N, len(self.rows)), dtype=bool)
        for v, here in enumerate(self.rows):
            present[here, v] = True
        return present


class _Multiplied(Factored):
    """E = H(aI + wH'MH)⁻¹H' with G = HH', for an M that is only multiplied with."""

    def __init__(self, K: np.ndarray, root: np.ndarray, a: float, operator: Any, penalty: float):
        self.K, self.G, self.a, self.operator, self.graph_penalty = K, root, a, operator, penalty
        middle = multiply(self.G.T, operator(self.G))
        if np.abs(middle - middle.T).max() > 1e-8 * np.abs(middle).max() or not is_positive(middle):
            raise NotPositiveOperator("The operator is not symmetric positive semi-definite.")
        self.C = cholesky(add_to_diagonal(np.asfortranarray(penalty * middle), a))

    def penalize(self, x: np.ndarray) -> np.ndarray:
        """Return wMx."""
        return self.graph_penalty * self.operator(x)


class Whole:
    """All views and rows as one function: the literal system, of Σ n_v unknowns, for any G and M."""

    def __init__(self, design: WholeDesign, *, ridge: float, penalty: float = 0.0):
        self.design, self.ridge, self.jitter, self.coupled = design, ridge, 0.0, True
        self.m, self.rows, self.columns = len(design.rows), design.rows, view_columns(design.sizes)
        self.known = design.present[: design.l].sum(axis=0)
        K, self.root = design.gram, root(design.gram)[0] if design.root is None else design.root
        self.view: Any = Plain(K, ridge)
        if design.operator is not None and penalty:
            self.view = _Multiplied(K, self.root, ridge, design.operator, penalty)

    def own(self, v: int) -> None:
        """Return nothing: `half` has the whole response."""

    def half(self, c: np.ndarray) -> np.ndarray:
        """Return T with T'T = Σ_vw c_v c_w E_vw between the rows observed."""
        mixed = np.zeros((self.root.shape[1], self.design.l), order="F")
        for v in np.flatnonzero(c):
            first, here = self.columns[v].start, self.rows[v][: self.known[v]]
            mixed[:, here] += c[v] * self.root[first : first + self.known[v]].T
        # E = H(aI + wH'MH)⁻¹H' for G = HH'
        return mixed / np.sqrt(self.ridge) if isinstance(self.view, Plain) else forward(self.view.C, mixed)

    def respond(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """Return the coefficients of each view for what drives it."""
        return self._split(self.view.coefficients(np.concatenate(parts)))

    def values(self, coefficients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the functions at all rows."""
        return self._split(multiply(self.design.gram, np.concatenate(coefficients)))

    def slopes(self, coefficients: Sequence[np.ndarray], f: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return a a_v + w(Mf)_v: half the gradient of the penalties is G times it."""
        return self._split(self.ridge * np.concatenate(coefficients) + self.view.penalize(np.concatenate(f)))

    def gap_bound(self, rests: Sequence[np.ndarray]) -> float:
        """Return ρ'Gρ/a, which bounds the distance from the optimum; see `CoupledGrams.gap_bound`."""
        rest = np.concatenate(rests)
        return max(float(np.sum(rest * multiply(self.design.gram, rest))) / self.ridge, 0.0)

    def _split(self, whole: np.ndarray) -> list[np.ndarray]:
        return [whole[own] for own in self.columns]


# -- the problem
class Penalty(NamedTuple):
    """a and w, and the agreement in M where the design is one of coupled views: M = agreement + Laplacians."""

    ridge: float
    weight: float = 0.0
    agreement: float = 0.0


class _Directions(NamedTuple):
    """Directions of the targets that have one kernel in common and do not interact with others."""

    eigenvalue: float  # of R
    c: np.ndarray  # weights of the views along them
    basis: np.ndarray  # (P, k)


class VectorProblem:
    """The program for given C, R and penalties; `solve_squares` and `solve_hinges` are its losses.

    Parameters
    ----------
    design : GramDesign or WholeDesign
        The kernel between views, and M or the Laplacians in it. The rows that observations use come first.
    C : array of shape (m, P, Q)
        The combination of the views.
    groups : list of (float, array of shape (Q, q))
        Eigenvalues of R with their eigenvectors.
    penalty : Penalty
        Both penalties, times l.
    known : array of bool of shape (n, P)
        Which targets are known.
    functionals : matrix of shape (n, l), optional
        T; by default the first l rows are observed themselves.
    """

    def __init__(
        self,
        design: GramDesign | WholeDesign,
        C: np.ndarray,
        groups: Sequence[tuple[float, np.ndarray]],
        penalty: Penalty,
        known: np.ndarray,
        functionals: Any = None,
    ):
        self.design, self.C, self.penalty, self.T = design, C, penalty, functionals
        present = design.present[: design.l]
        self.nu = target_scale(C, present)
        reached = self.nu > 0 if self.T is None else np.asarray(abs(self.T) @ (self.nu > 0).astype(float)) > 0
        self.known = known & reached  # a target that no view present adds to says nothing
        self.groups = [(value, vectors) for value, vectors in groups if value > 0]
        self.systems = {value: self._system(value) for value, _ in self.groups}
        complete = bool(self.known.all() and present.all())
        self.directions = self._directions(np.hstack([vectors for _, vectors in groups]), complete)

    def _system(self, eigenvalue: float) -> Any:
        ridge, weight, agreement = self.penalty
        ridge /= eigenvalue  # ‖f‖² is divided by the eigenvalue of R along its eigenvector
        if isinstance(self.design, WholeDesign):
            return Whole(self.design, ridge=ridge, penalty=weight)
        graphs = weight if self.design.laplacians else 0.0
        return CoupledGrams(self.design, ridge=ridge, agreement_penalty=weight * agreement, graph_penalty=graphs)

    # -- directions that do not interact
    def _directions(self, eigenvectors: np.ndarray, complete: bool) -> list[_Directions] | None:
        """Return the directions of a basis that makes R and every C_v diagonal; None if neither of two does.

        Where targets or views are missing, only the outputs themselves can be taken apart.
        """
        P, Q = self.C.shape[1:]
        R = sum((value * (own @ own.T) for value, own in self.groups), np.zeros((Q, Q)))
        for basis in (np.eye(Q), eigenvectors) if complete else (np.eye(Q),):
            if P == Q and all(_is_diagonal(basis.T @ A @ basis) for A in (R, *self.C)):
                values = np.einsum("pk,pq,qk->k", basis, R, basis)
                weights = np.einsum("pk,vpq,qk->kv", basis, self.C, basis)
                return self._equal_directions(values, weights, basis)
        return None

    def _equal_directions(self, values: np.ndarray, weights: np.ndarray, basis: np.ndarray) -> list[_Directions]:
        eigenvalues = np.array(list(self.systems))
        found: dict[tuple[float, ...], list[int]] = {}
        for k, value in enumerate(values):
            if value > 1e-12 * values.max():  # R maps the others to 0
                nearest = float(eigenvalues[np.abs(eigenvalues - value).argmin()])
                found.setdefault((nearest, *weights[k]), []).append(k)
        return [_Directions(key[0], np.array(key[1:]), basis[:, some]) for key, some in found.items()]

    # -- kernels between observations
    def _kernel_along(self, directions: _Directions) -> np.ndarray:
        """Return T ν 𝒢(c) ν T' (n, n), with 𝒢(c) = Σ_vw c_v c_w E_vw."""
        output = int(np.abs(directions.basis[:, 0]).argmax())  # ν is the same for outputs of equal weights
        return self._response(self.systems[directions.eigenvalue], directions.c[:, None], self.nu[:, [output]])

    def _whole_kernel(self) -> np.ndarray:
        """Return the kernel between all targets of all observations, (Pn, Pn), target after target."""
        n, P = self.known.shape
        if (size := 8 * (n * P) ** 2) > _LARGEST:
            raise ValueError(
                f"The combination of the views or the output kernel makes {P} targets interact, so that {n} "
                f"observations need a matrix of {size / 1e9:.3g} GB; at most {_LARGEST / 1e9:.3g} GB are used. Give "
                "fewer of them, or numbers for the combination."
            )
        parts = [(self.systems[value], self.C @ vectors) for value, vectors in self.groups]
        responses = [
            self._response(system, along[:, :, q], self.nu) for system, along in parts for q in range(along.shape[2])
        ]
        return np.sum(responses, axis=0) if responses else np.zeros((n * P, n * P))

    def _response(self, system: Any, weights: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """Return Σ_vw weights_vp weights_wq T ν_p E_vw ν_q T' for targets p and q, target after target."""
        k = weights.shape[1]
        total = np.zeros((k * len(self.known), k * len(self.known)), order="F")
        if system.coupled:
            halves = [self._observe(nu[:, [p]] * system.half(weights[:, p]).T).T for p in range(k)]
            total += gram_of(np.asfortranarray(np.hstack(halves)))
        for v in np.flatnonzero(weights.any(axis=1)):
            own = system.own(v)
            if own is not None:
                scaled = np.concatenate([self._observe(weights[v, p] * nu[:, [p]] * own) for p in range(k)])
                blocks = [self._observe(weights[v, p] * nu[:, [p]] * scaled.T) for p in range(k)]
                total += np.concatenate(blocks)
        return total

    def _observe(self, rows: np.ndarray) -> np.ndarray:
        """Return T times an array over the rows observed."""
        return rows if self.T is None else np.asarray(self.T @ rows)

    # -- functions
    def _driven(self, residuals: np.ndarray) -> Iterator[tuple[Any, np.ndarray, list[np.ndarray]]]:
        """Yield systems, eigenvectors of R, and what drives each view's function along them: C_v'ν T'r."""
        back = self.nu * (residuals if self.T is None else np.asarray(self.T.T @ residuals))
        for value, vectors in self.groups:
            parts = [np.zeros((size, vectors.shape[1])) for size in self.design.sizes]
            for part, C_v, here in zip(parts, self.C, self.design.rows, strict=True):
                inside = here[here < self.design.l]
                part[: len(inside)] = back[inside] @ (C_v @ vectors)
            yield self.systems[value], vectors, parts

    def functions(self, residuals: np.ndarray) -> list[np.ndarray]:
        """Return the coefficients of each view, (n_v, Q), for dual residuals (n, P) of the observations."""
        coefficients = [np.zeros((size, self.C.shape[2])) for size in self.design.sizes]
        for system, vectors, parts in self._driven(residuals):
            for total, own in zip(coefficients, system.respond(parts), strict=True):
                total += own @ vectors.T
        return coefficients

    def evaluate(self, coefficients: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
        """Return g (n, P) and the penalties, from the coefficients themselves."""
        outputs, penalty = np.zeros((self.design.l, self.C.shape[1])), 0.0
        for value, vectors in self.groups:
            system, own = self.systems[value], [a @ vectors for a in coefficients]
            f = system.values(own)
            penalty += sum(float(np.sum(x * slope)) for x, slope in zip(f, system.slopes(own, f), strict=True))
            for x, C_v, here in zip(f, self.C, self.design.rows, strict=True):
                inside = here[here < self.design.l]
                outputs[inside] += x[: len(inside)] @ (C_v @ vectors).T
        return self._observe(self.nu * outputs), penalty

    def optimality(self, coefficients: Sequence[np.ndarray], residuals: np.ndarray) -> tuple[float, float]:
        """Return the largest violation of the optimality conditions, and a bound on the distance from the optimum."""
        worst = bound = 0.0
        for system, vectors, wanted in self._driven(residuals):
            own = [a @ vectors for a in coefficients]
            slopes = system.slopes(own, system.values(own))
            rests = [slope - part for slope, part in zip(slopes, wanted, strict=True)]
            worst = max([worst, *(float(np.abs(rest).max(initial=0.0)) for rest in rests)])
            bound += system.gap_bound(rests)
        return worst, bound

    # -- losses
    def solve_squares(self, Y: np.ndarray, u: np.ndarray, scale: float) -> Solution:
        """Minimize (Σ u_i (y_ip - g_ip)² over the known targets + penalties) / scale; x are the coefficients."""
        Y, weights = np.where(self.known, Y, 0.0), u[:, None] * self.known
        coefficients = self.functions(self._square_residuals(Y, weights))
        g, penalty = self.evaluate(coefficients)
        worst, bound = self.optimality(coefficients, weights * (Y - g))
        objective, gap = (float(np.sum(weights * (Y - g) ** 2)) + penalty) / scale, bound / scale
        # a direct solution: only rounding separates it from the optimum
        status = "inexact" if not gap <= 1e-6 * abs(objective) else "jitter" if self._jitter else "exact"
        return Solution(coefficients, gap, 1, status, objective=objective, residual=worst / scale)

    def _square_residuals(self, Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return r = u(y - g) at the optimum: (kernel + u⁻¹) r = y over the known targets."""
        r = np.zeros_like(Y)
        if self.directions is None:
            flat = _ridge_residuals(self._whole_kernel(), Y.T.reshape(-1, 1), weights.T.ravel())
            return flat.reshape(Y.shape[::-1]).T
        for some in self.directions:
            kernel = self._kernel_along(some)
            if self.known.all():
                r += _ridge_residuals(kernel, Y @ some.basis, weights[:, 0]) @ some.basis.T
                continue
            for p in np.flatnonzero(some.basis.any(axis=1)):  # outputs with targets of their own known
                r[:, [p]] = _ridge_residuals(kernel, Y[:, [p]], weights[:, p])
        return r

    def solve_hinges(self, loss: HingeLoss, tol: float, max_iter: int) -> Solution:
        """Minimize loss + penalties / l; x are the coefficients and the dual variables α."""
        if self.directions is None:
            loss.check_size()
            P, n = self.known.T.shape
            kernel = self._whole_kernel().reshape(P, n, P, n)
            Q = np.einsum("kp,piqj,rq->ikjr", loss.vectors, kernel, loss.vectors, optimize=True)
            arrays = loss.whole_program(loss.scale * Q.reshape(loss.signs.size, loss.signs.size))
        else:
            arrays = loss.program(self._kernels())
        program = class_qp(*arrays, tol=tol, max_iter=max_iter)
        alpha = loss.shaped(program.x)
        coefficients = self.functions(loss.dual_residuals(alpha))
        g, penalty = self.evaluate(coefficients)
        primal = loss.value(g) + penalty / loss.scale
        return replace(loss.measured(program, primal, tol, jitter=self._jitter), x=(coefficients, alpha))

    def _kernels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return K_j and B_j: the kernel of observations and targets is Σ_j K_j ⊗ B_j."""
        found: dict[Any, tuple[np.ndarray, np.ndarray, float]] = {}
        for some in self.directions or ():
            # without M the kernel along an eigenvector of R is its eigenvalue times that of another
            key = tuple(some.c) if not self.penalty.weight else (some.eigenvalue, *some.c)
            projector = some.basis @ some.basis.T
            if key in found:
                kernel, inner, value = found[key]
                found[key] = kernel, inner + some.eigenvalue / value * projector, value
            else:
                found[key] = self._kernel_along(some), projector, some.eigenvalue
        return [(kernel, inner) for kernel, inner, _ in found.values()]

    @property
    def _jitter(self) -> bool:
        return any(system.jitter for system in self.systems.values())


def target_scale(C: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return ν (n, P): what each target has of all views over what it has of those present, 0 where it has none."""
    sizes = np.abs(C).sum(axis=2)  # (m, P): how much each view adds to each target
    there = present @ sizes
    return np.divide(sizes.sum(axis=0), there, out=np.zeros_like(there), where=there > 0)


def _is_diagonal(A: np.ndarray) -> bool:
    return bool(np.abs(A - np.diag(A.diagonal())).max() <= 1e-12 * np.abs(A).max())


def _ridge_residuals(kernel: np.ndarray, Y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return (kernel + u⁻¹)⁻¹Y over the rows of positive weight, 0 at the others."""
    there, r = np.flatnonzero(u), np.zeros_like(Y)
    part = np.array(kernel if len(there) == len(kernel) else kernel[np.ix_(there, there)], order="F")
    r[there] = solve(cholesky(add_to_diagonal(part, 1 / u[there])), Y[there])
    return r
