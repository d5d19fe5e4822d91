"""Co-regularized support vector machines over coupled views: the program in α, given or learned weights of the views.

What depends on the weights c of the views is the labeled kernel 𝒢(c) alone; the program over it is that of `box_qp`,
scaled as in the paper (Minh, Bazzani and Murino 2016, Theorem 10) with Q_G = l 𝒢.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from .box_qp import class_qp
from .certificates import Solution
from .coregularized import Penalties, WeightSearch, couple
from .coupled import Coupled, weight_slopes
from .design import Design
from .linalg import is_positive
from .weights import Evaluation, learn_weights, with_learned


class SVMProblem:
    """The program in α for the classes of l rows.

    Parameters
    ----------
    design : GramDesign or FeatureDesign
        The views.
    classes : array of int of shape (l,)
        The class of each labeled row.
    vectors : array of shape (n_classes, n_outputs) or None
        Vectors of the classes; None for one class against the rest, each with an output of its own.
    n_outputs : int
        Number of outputs; 1 for two classes without vectors.
    u : array of shape (l,)
        Weights of the losses.
    """

    def __init__(
        self,
        design: Design,
        classes: np.ndarray,
        vectors: np.ndarray | None,
        n_outputs: int,
        u: np.ndarray,
        penalties: Penalties,
    ):
        self.design, self.penalties, self.scale = design, penalties, design.total
        upper = u[:, None] / self.scale  # 0 <= α_ik <= u_i/l
        own = classes[:, None] == np.arange(n_outputs) if n_outputs > 1 else classes[:, None] > 0
        if vectors is None:  # independent rows of signs
            self.vectors = np.eye(n_outputs)
            self.signs = np.where(own, 1.0, -1.0)
            self.margins = np.ones((len(classes), n_outputs))
            self.upper = np.repeat(upper, n_outputs, axis=1)
            self.inner = np.eye(n_outputs)
        else:
            self.vectors = vectors
            self.inner = vectors @ vectors.T
            self.signs = -np.ones((len(classes), n_outputs))  # the output moves away from vectors of other classes
            self.margins = -self.inner[classes]  # -<s_k, s_y>, which is 1/(P - 1) for the simplex
            self.upper = np.where(own, 0.0, upper)  # the loss has no term for the own class

    def solve(self, c: np.ndarray | None, search: WeightSearch, rounds: int) -> Solution:
        """Return ((coefficients of each view, weights of the views), α) as x; see `RidgeProblem.solve`.

        `search.tol` is the gap to reach, relative to the objective, and `rounds` limits the rounds of `box_qp`.
        """
        try:
            system = couple(self.design, self.penalties)
            learned = None
            if c is None:
                learned = self._learn_weights(system, search, rounds)
                c = learned.x
            kernel = system.labeled_kernel(c)
            if not is_positive(kernel, single=self.design.single):
                raise np.linalg.LinAlgError("The labeled kernel is not positive semi-definite.")
            tol = search.tol if learned is None else 0.1 * search.tol  # the rest of the gap is that of the weights
            program = self._program(kernel, tol, rounds)
            coefficients = system.coefficients(c, self.dual_residuals(program.x))
        except np.linalg.LinAlgError as error:
            return Solution(getattr(error, "view", None), None, 0, "indefinite")
        solution = self._with_gap(program, system.outputs(c, coefficients), search.tol)
        if solution.converged and system.jitter:
            solution = replace(solution, status="jitter")
        solution = solution if learned is None else with_learned(solution, learned)
        return replace(solution, x=((coefficients, c), program.x))

    def _program(self, kernel: np.ndarray, tol: float, rounds: int, x0: np.ndarray | None = None) -> Solution:
        kernel *= self.scale  # Q_G = l 𝒢
        return class_qp(kernel, self.inner, self.margins, self.upper, self.signs, tol=tol, max_iter=rounds, x0=x0)

    def dual_residuals(self, alpha: np.ndarray) -> np.ndarray:
        """Return r = l/2 Σ_k ±α_ik s_k."""
        return 0.5 * self.scale * (self.signs * alpha) @ self.vectors

    def _with_gap(self, program: Solution, outputs: tuple[Any, np.ndarray, float], tol: float) -> Solution:
        """Return the objective at the coefficients themselves, and its distance from the dual value."""
        _, g, penalty = outputs
        # max(0, 1 - ±g_k), or max(0, -<s_k, s_y> + <s_k, g>) for class vectors
        loss = float(np.sum(self.upper * np.maximum(0, self.margins - self.signs * (g @ self.vectors.T))))
        primal = loss + penalty / self.scale
        gap = max(primal - program.dual, 0.0)
        status = program.status
        if program.converged and not gap <= 2 * max(tol, 1e-9) * abs(primal):
            status = "inexact"
        return Solution(None, gap, program.n_iter, status, objective=primal, residual=program.residual)

    def _learn_weights(self, system: Coupled, search: WeightSearch, rounds: int) -> Solution:
        """Return weights by the gradient of the dual value, which is a lower bound on the objective."""
        system.keep()
        last: list[np.ndarray | None] = [None]  # the next program starts at the last α

        def evaluate(c: np.ndarray) -> Evaluation:
            program = self._program(system.labeled_kernel(c), 0.1 * search.tol, rounds, last[0])
            last[0] = program.x
            # α is optimal, so only 𝒢(c) is differentiated
            gradient, curvature = weight_slopes(system, c, self.dual_residuals(program.x))
            return program.dual, gradient / self.scale, None if curvature is None else curvature / self.scale

        return learn_weights(evaluate, search.starts, tol=0.5 * search.tol, max_iter=search.max_iter)
