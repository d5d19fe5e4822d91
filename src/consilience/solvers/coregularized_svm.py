"""Co-regularized support vector machines over coupled views: the program in α, given or learned weights of the views.

What depends on the weights c of the views is the labeled kernel 𝒢(c) alone, one for each eigenvalue of the kernel R
between outputs; the program over it is that of `hinge` (Minh, Bazzani and Murino 2016, Theorem 11).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .box_qp import class_qp
from .certificates import Solution
from .coregularized import Penalties, WeightSearch, couple
from .coupled import Coupled, weight_slopes
from .design import Design, GramDesign
from .hinge import HingeLoss
from .linalg import is_positive
from .weights import Evaluation, learn_weights, with_learned


class SVMProblem:
    """The program in α for any weights of the views, over Gram matrices or features.

    `groups` are the eigenvalues of the output kernel with their eigenvectors.
    """

    def __init__(
        self, design: Design, loss: HingeLoss, penalties: Penalties, groups: Sequence[tuple[float, np.ndarray]]
    ):
        self.design, self.loss, self.penalties = design, loss, penalties
        self.groups = [(value, vectors) for value, vectors in groups if value > 0]

    def solve(self, c: np.ndarray | None, search: WeightSearch, rounds: int) -> Solution:
        """Return ((coefficients of each view, weights of the views), α) as x; see `RidgeProblem.solve`.

        `search.tol` is the gap to reach, relative to the objective, and `rounds` limits the rounds of the program.
        """
        try:
            systems = self._systems()
            learned = None
            if c is None:
                learned = self._learn_weights(systems, search, rounds)
                c = learned.x
            kernels = self._kernels(systems, c)
            # without penalties the kernel is a sum of Gram matrices, which are positive semi-definite
            summed = isinstance(self.design, GramDesign) and not self.penalties.use_unlabeled
            if not summed and not all(is_positive(kernel, single=self.design.single) for kernel, _ in kernels):
                raise np.linalg.LinAlgError("The labeled kernel is not positive semi-definite.")
            tol = search.tol if learned is None else 0.1 * search.tol  # the rest of the gap is that of the weights
            program = class_qp(*self.loss.program(kernels), tol=tol, max_iter=rounds)
            alpha = self.loss.shaped(program.x)
            coefficients, primal = self._functions(systems, c, alpha)
        except np.linalg.LinAlgError as error:
            return Solution(getattr(error, "view", None), None, 0, "indefinite")
        jitter = any(system.jitter for system, _ in systems)
        solution = self.loss.measured(program, primal, search.tol, jitter=jitter)
        solution = solution if learned is None else with_learned(solution, learned)
        return replace(solution, x=((coefficients, c), alpha))

    def _systems(self) -> list[tuple[Coupled, np.ndarray]]:
        """Return factored penalties with W: the kernel of labeled samples and outputs is Σ 𝒢(c) ⊗ WW'."""
        if self.penalties.use_unlabeled:
            return [(couple(self.design, self.penalties, value), vectors) for value, vectors in self.groups]
        # only γ_A is left: all eigenvalues share one kernel, and WW' = R
        return [(couple(self.design, self.penalties), np.hstack([value**0.5 * own for value, own in self.groups]))]

    @staticmethod
    def _kernels(systems: Sequence[tuple[Coupled, np.ndarray]], c: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(system.labeled_kernel(c), W @ W.T) for system, W in systems]

    def _functions(
        self, systems: Sequence[tuple[Coupled, np.ndarray]], c: np.ndarray, alpha: np.ndarray
    ) -> tuple[list[np.ndarray], float]:
        """Return the coefficients of each view for α, and the objective at the coefficients themselves."""
        r = self.loss.dual_residuals(alpha)
        coefficients = [np.zeros((size, r.shape[1])) for size in self.design.sizes]
        g, penalties = np.zeros_like(r), 0.0
        for system, W in systems:
            found = system.coefficients(c, r @ W)
            _, outputs, penalty = system.outputs(c, found)
            g, penalties = g + outputs @ W.T, penalties + penalty
            for total, own in zip(coefficients, found, strict=True):
                total += own @ W.T
        return coefficients, self.loss.value(g) + penalties / self.loss.scale

    def _learn_weights(
        self, systems: Sequence[tuple[Coupled, np.ndarray]], search: WeightSearch, rounds: int
    ) -> Solution:
        """Return weights by the gradient of the dual value, which is a lower bound on the objective."""
        for system, _ in systems:
            system.keep()
        last: list[np.ndarray | None] = [None]  # the next program starts at the last α

        def evaluate(c: np.ndarray) -> Evaluation:
            arrays = self.loss.program(self._kernels(systems, c))
            program = class_qp(*arrays, tol=0.1 * search.tol, max_iter=rounds, x0=last[0])
            last[0] = program.x
            # α is optimal, so only 𝒢(c) is differentiated
            r, scale = self.loss.dual_residuals(self.loss.shaped(program.x)), self.loss.scale
            slopes = [weight_slopes(system, c, r @ W) for system, W in systems]
            curvatures = [curvature for _, curvature in slopes if curvature is not None]
            proof = np.sum(curvatures, axis=0) / scale if len(curvatures) == len(slopes) else None
            return program.dual, np.sum([slope for slope, _ in slopes], axis=0) / scale, proof

        return learn_weights(evaluate, search.starts, tol=0.5 * search.tol, max_iter=search.max_iter)
