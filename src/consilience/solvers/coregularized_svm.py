"""Co-regularized support vector machines over coupled views: the program in α, given or learned weights of the views.

What depends on the weights c of the views is the labeled kernel 𝒢(c) alone, one for each eigenvalue of the kernel R
between outputs; the program over it is that of `hinge` (Minh, Bazzani and Murino 2016, Theorem 11). Over features
𝒢(c) = T'T is never formed: the program is that of `svm_features`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._backend import available_memory, to_numpy
from .box_qp import class_qp
from .certificates import Solution
from .coregularized import Penalties, WeightSearch, couple
from .coupled import Coupled, missing_slopes, row_scale, weight_slopes
from .coupled_features import FeatureSums
from .design import Design, FeatureDesign, GramDesign, view_columns
from .hinge import HingeLoss
from .linalg import add_to_diagonal, cholesky, forward, is_positive, multiply, solve
from .svm_features import ReadFeatures, keep_features, scaled_features, svm_features
from .weights import Evaluation, learn_weights, with_learned

_Groups = Sequence[tuple[float, np.ndarray]]  # eigenvalues of the output kernel with their eigenvectors


class SVMProblem:
    """The program in α for any weights of the views, over Gram matrices or features.

    `groups` are the eigenvalues of the output kernel with their eigenvectors.
    """

    def __init__(
        self, design: Design, loss: HingeLoss, penalties: Penalties, groups: Sequence[tuple[float, np.ndarray | None]]
    ):
        self.design, self.loss, self.penalties = design, loss, penalties
        every = np.eye(loss.vectors.shape[1])
        self.groups = [(value, every if vectors is None else vectors) for value, vectors in groups if value > 0]

    def solve(self, c: np.ndarray | None, search: WeightSearch, rounds: int) -> Solution:
        """Return ((coefficients of each view, weights of the views), α) as x; see `RidgeProblem.solve`.

        `search.tol` is the gap to reach, relative to the objective, and `rounds` limits the rounds of the program.
        """
        form: Any = _OverFeatures if isinstance(self.design, FeatureDesign) else _OverGrams
        try:
            problem = form(self.design, self.loss, self.penalties, self.groups)
            learned = None
            if c is None:
                learned = self._learn_weights(problem, search, rounds)
                c = learned.x
            tol = search.tol if learned is None else 0.1 * search.tol  # the rest of the gap is that of the weights
            program = problem.program(c, tol, rounds, check=True)
            alpha = self.loss.shaped(program.x)
            coefficients, primal = problem.functions(c, alpha)
        except np.linalg.LinAlgError as error:
            return Solution(getattr(error, "view", None), None, 0, "indefinite")
        solution = self.loss.measured(program, primal, search.tol, jitter=problem.jitter)
        solution = solution if learned is None else with_learned(solution, learned)
        return replace(solution, x=((coefficients, c), alpha))

    def _learn_weights(self, problem: Any, search: WeightSearch, rounds: int) -> Solution:
        """Return weights by the gradient of the dual value, which is a lower bound on the objective."""
        problem.keep()
        last: list[np.ndarray | None] = [None]  # the next program starts at the last α

        def evaluate(c: np.ndarray) -> Evaluation:
            program = problem.program(c, 0.1 * search.tol, rounds, start=last[0])
            last[0] = program.x
            # α is optimal, so only 𝒢(c) is differentiated
            r, scale = self.loss.dual_residuals(self.loss.shaped(program.x)), self.loss.scale
            slopes = problem.slopes(c, r)
            curvatures = [curvature for _, curvature in slopes if curvature is not None]
            proof = np.sum(curvatures, axis=0) / scale if len(curvatures) == len(slopes) else None
            return program.dual, np.sum([slope for slope, _ in slopes], axis=0) / scale, proof

        return learn_weights(
            evaluate, search.starts, tol=0.5 * search.tol, max_iter=search.max_iter, order=search.order
        )


def _kernel_groups(penalties: Penalties, groups: _Groups) -> list[tuple[float, np.ndarray]]:
    """Return eigenvalues with W: the kernel of labeled samples and outputs is Σ 𝒢(c) ⊗ WW'."""
    if penalties.use_unlabeled:
        return list(groups)
    # only γ_A is left: all eigenvalues share one kernel, and WW' = R
    return [(1.0, np.hstack([value**0.5 * own for value, own in groups]))]


class _OverGrams:
    """The program over the labeled kernel, a matrix."""

    def __init__(self, design: GramDesign, loss: HingeLoss, penalties: Penalties, groups: _Groups):
        self.design, self.loss, self.penalties = design, loss, penalties
        self.systems: list[tuple[Coupled, np.ndarray]] = [
            (couple(design, penalties, value), W) for value, W in _kernel_groups(penalties, groups)
        ]

    @property
    def jitter(self) -> bool:
        """Whether a factor needed a multiple of the identity."""
        return any(system.jitter for system, _ in self.systems)

    def keep(self) -> None:
        """Keep what does not depend on c."""
        for system, _ in self.systems:
            system.keep()

    def program(
        self, c: np.ndarray, tol: float, rounds: int, *, start: np.ndarray | None = None, check: bool = False
    ) -> Solution:
        """Return α for weights c; with `check`, raise if the labeled kernel is not positive semi-definite."""
        kernels = [(system.labeled_kernel(c), W @ W.T) for system, W in self.systems]
        # without penalties the kernel is a sum of Gram matrices, which are positive semi-definite
        unsure = kernels if check and self.penalties.use_unlabeled else []
        if not all(is_positive(kernel, single=self.design.single) for kernel, _ in unsure):
            raise np.linalg.LinAlgError("The labeled kernel is not positive semi-definite.")
        return class_qp(*self.loss.program(kernels), tol=tol, max_iter=rounds, x0=start)

    def functions(self, c: np.ndarray, alpha: np.ndarray) -> tuple[list[np.ndarray], float]:
        """Return the coefficients of each view for α, and the objective at the coefficients themselves."""
        r = self.loss.dual_residuals(alpha)
        coefficients = [np.zeros((size, r.shape[1])) for size in self.design.sizes]
        g, penalties = np.zeros_like(r), 0.0
        for system, W in self.systems:
            found = system.coefficients(c, r @ W)
            _, outputs, penalty = system.outputs(c, found)
            g, penalties = g + outputs @ W.T, penalties + penalty
            for total, own in zip(coefficients, found, strict=True):
                total += own @ W.T
        return coefficients, self.loss.value(g) + penalties / self.loss.scale

    def slopes(self, c: np.ndarray, r: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Return the gradients of the optimal value in c and in cc', times l, of each system."""
        return [weight_slopes(system, c, r @ W) for system, W in self.systems]


class _OverFeatures:
    """The program over features: with R = LL' as in `coupled_features`, 𝒢(c) = T'T for T = L⁻¹ D_c Φ'.

    Features of the labeled rows are kept in memory if they take at most half of it; otherwise each pass makes them
    again, block by block.
    """

    jitter = False

    def __init__(self, design: FeatureDesign, loss: HingeLoss, penalties: Penalties, groups: _Groups):
        self.design, self.loss, self.l, self.room = design, loss, len(loss.signs), 0.5 * available_memory()
        self.groups = _kernel_groups(penalties, groups)
        self.q, self.m = sum(design.sizes), len(design.sizes)
        R = np.zeros((self.q, self.q), order="F")
        if penalties.agreement > 0 and self.m > 1:
            R += loss.scale * penalties.agreement * to_numpy(FeatureSums(design).moments.disagreement())
        if penalties.graph > 0:
            for part, smoothness in zip(view_columns(design.sizes), design.smoothness, strict=True):
                R[part, part] += loss.scale * penalties.graph * to_numpy(smoothness)
        self.R = [add_to_diagonal(R.copy(order="F"), penalties.alpha / value * loss.scale) for value, _ in self.groups]
        self.factors = [cholesky(R.copy(order="F")) for R in self.R]
        self.kept: tuple[np.ndarray, np.ndarray] | None = None
        self.read: tuple[np.ndarray, ReadFeatures] | None = None  # passes over T, and the c that they belong to

    def _rows(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the features of the labeled rows, and which views they have."""
        if self.kept is not None:
            yield self.kept
            return
        for block in self.design.rows():
            shown = np.flatnonzero(block.u)
            if len(shown):
                Phi = np.asarray(to_numpy(block.Phi), dtype=np.float64)
                yield (Phi, block.present) if len(shown) == len(Phi) else (Phi[shown], block.present[shown])

    def keep(self) -> None:
        """Keep the features, for many c, if they fit beside T."""
        if 8.0 * self.l * self.q * (1 + len(self.groups)) <= self.room:
            Phi, present, start = np.empty((self.l, self.q)), np.empty((self.l, self.m), dtype=bool), 0
            for part, there in self._rows():
                Phi[start : start + len(part)], present[start : start + len(part)] = part, there
                start += len(part)
            self.kept = Phi, present

    def _read(self, c: np.ndarray) -> ReadFeatures:
        """Return passes over √(l/2) νT' for weights c."""
        if self.read is None or not np.array_equal(self.read[0], c):
            self.read = None  # before others are made
            d = np.repeat(c, self.design.sizes)

            def parts() -> Iterator[np.ndarray]:
                blocks = ((Phi, row_scale(present, c)) for Phi, present in self._rows())
                return scaled_features(blocks, self.factors, d, self.loss.scale)

            used = 0.0 if self.kept is None else 8.0 * self.l * self.q
            self.read = c, keep_features(parts, (len(self.groups), self.l, self.q), self.room - used)
        return self.read[1]

    def program(
        self, c: np.ndarray, tol: float, rounds: int, *, start: np.ndarray | None = None, check: bool = False
    ) -> Solution:
        """Return α for weights c; the kernel is positive semi-definite, since the penalties have a factor."""
        loss = self.loss
        codes = [loss.vectors @ W for _, W in self.groups]
        arrays = loss.margins, loss.upper, loss.signs
        return svm_features(self._read(c), codes, *arrays, tol=tol, max_iter=rounds, x0=start)

    def functions(self, c: np.ndarray, alpha: np.ndarray) -> tuple[list[np.ndarray], float]:
        """Return the coefficients of each view for α, and the objective at the coefficients themselves."""
        r, read = self.loss.dual_residuals(alpha), self._read(c)
        unit = (0.5 * self.loss.scale) ** 0.5  # that of the rows of T
        sums = [np.zeros((self.q, W.shape[1])) for _, W in self.groups]
        for place, T in read():
            for total, own, (_, W) in zip(sums, T, self.groups, strict=True):
                total += multiply(own.T, r[place] @ W) / unit
        found = [solve(L, multiply(L, total)) for L, total in zip(self.factors, sums, strict=True)]  # L⁻ᵀTνr
        penalty = sum(float(np.sum(own * multiply(R, own))) for own, R in zip(found, self.R, strict=True))
        back = [multiply(L.T, own) / unit for L, own in zip(self.factors, found, strict=True)]
        g = np.zeros_like(r)
        for place, T in read():
            for own, turned, (_, W) in zip(T, back, self.groups, strict=True):
                g[place] += multiply(own, turned) @ W.T
        total = np.sum([own @ W.T for own, (_, W) in zip(found, self.groups, strict=True)], axis=0)
        return self.design.split(total), self.loss.value(g) + penalty / self.loss.scale

    def slopes(self, c: np.ndarray, r: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Return the gradients of the optimal value in c and in cc', times l, of each system."""
        d, columns = np.repeat(c, self.design.sizes), view_columns(self.design.sizes)
        pushed = [np.zeros((self.q, W.shape[1])) for _, W in self.groups]  # Φ'νr
        complete, start = True, 0
        for Phi, present in self._rows():
            scaled = row_scale(present, c)[:, None] * r[start : start + len(Phi)]
            start, complete = start + len(Phi), complete and bool(present.all())
            for total, (_, W) in zip(pushed, self.groups, strict=True):
                total += multiply(Phi.T, scaled @ W)
        found: list[tuple[np.ndarray, np.ndarray | None]] = []
        for L, own, (_, W) in zip(self.factors, pushed, self.groups, strict=True):
            coefficients = solve(L, d[:, None] * own)
            if not complete:
                found.append((self._missing_slopes(c, r @ W, coefficients), None))
                continue
            halves = []
            for part in columns:
                alone = np.zeros_like(own)
                alone[part] = own[part]
                halves.append(forward(L, alone).ravel())  # L⁻¹ of Φ'r of each view alone
            gradient = np.array([-2 * np.sum(own[part] * coefficients[part]) for part in columns])
            found.append((gradient, -np.array(halves) @ np.array(halves).T))
        return found

    def _missing_slopes(self, c: np.ndarray, r: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Return the gradient in c where views are missing."""
        total, start, columns = np.zeros(self.m), 0, view_columns(self.design.sizes)
        for Phi, present in self._rows():
            own = r[start : start + len(Phi)]
            start += len(Phi)
            products = [np.sum(own * multiply(Phi[:, part], W[part]), axis=1) for part in columns]
            total = total + missing_slopes(c, present, np.stack(products, axis=1))
        return total
