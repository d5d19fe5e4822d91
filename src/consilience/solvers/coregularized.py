"""Co-regularized least squares over coupled views: given or learned weights of the views, held-out scores.

For a kernel R between outputs the problem divides into one part for each eigenvalue of R: the outputs are turned into
its eigenvectors, and the ridge is divided by the eigenvalue (Minh, Bazzani and Murino 2016, Theorems 10 and 11).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._backend import like, namespace, take_rows, to_numpy
from .certificates import Solution
from .coupled import Coupled, CoupledGrams
from .coupled_features import CoupledFeatures, FeatureSums, sum_of_squares
from .design import Design, FeatureDesign, FeatureRows, GramDesign
from .linalg import eigh, multiply, solve_general
from .weights import Evaluation, alternate_weights, learn_weights, with_learned


class Penalties(NamedTuple):
    """γ_A, γ_B and γ_W of the paper."""

    alpha: float
    agreement: float
    graph: float

    @property
    def use_unlabeled(self) -> bool:
        """Whether rows without labels take part."""
        return self.agreement > 0 or self.graph > 0


def couple(
    design: Design, penalties: Penalties, eigenvalue: float = 1.0, *, sums: FeatureSums | None = None
) -> Coupled:
    """Return the factored penalties of all views, for an eigenvalue of the output kernel."""
    if isinstance(design, FeatureDesign):
        sums = FeatureSums(design) if sums is None else sums
        return CoupledFeatures(design, sums=sums, **_sizes(penalties, eigenvalue, sums.total))
    return CoupledGrams(design, **_sizes(penalties, eigenvalue, design.total))


def _sizes(penalties: Penalties, eigenvalue: float, scale: float) -> dict[str, float]:
    """Return a, b and w: the loss of the paper is a mean, here it is a sum, so that all are times l."""
    return {
        "ridge": penalties.alpha / eigenvalue * scale,  # ‖f‖² is divided by the eigenvalue of R along its eigenvector
        "agreement_penalty": penalties.agreement * scale,
        "graph_penalty": penalties.graph * scale,
    }


def penalty_ratios(penalties: Penalties, value: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return γ_B/γ_A and γ_W/γ_A for an eigenvalue of the output kernel, and the same rounded, as a key."""
    alpha = penalties.alpha / value
    ratios = penalties.agreement / alpha, penalties.graph / alpha
    return ratios, (float(f"{ratios[0]:.9e}"), float(f"{ratios[1]:.9e}"))


class WeightSearch(NamedTuple):
    """How weights of the views are learned."""

    starts: list[np.ndarray]  # all of one length
    tol: float
    max_iter: int
    alternating: bool = False  # the published scheme, not the exact one
    hidden: np.ndarray = np.arange(0)  # labeled rows that choose among the weights the alternation visits
    classification: str | None = None  # "classes" or "labels": the error of hidden rows is counted, not squared
    order: float = 2.0  # of the norm of the weights that is given


class RidgeProblem:
    """Least squares for any weights of the views, over Gram matrices or features.

    `groups` are the eigenvalues of the output kernel with their eigenvectors, or None for the outputs themselves; `u`
    are the weights of the losses. A design of features has the targets and their weights itself. `sums` are its sums
    over rows, where they are at hand.
    """

    def __init__(
        self,
        design: Design,
        Y: np.ndarray,
        u: np.ndarray,
        penalties: Penalties,
        groups: Sequence[tuple[float, np.ndarray | None]],
        sums: FeatureSums | None = None,
    ):
        self.design, self.Y, self.u, self.penalties, self.all_groups = design, Y, u, penalties, groups
        self.groups = [group for group in groups if group[0] > 0]
        self.sums = sums
        self._systems: list[Coupled] | None = None

    def read(self, c: np.ndarray | None) -> None:
        """Read the sums over rows of features, for given weights of the views or for any."""
        if self.sums is None and isinstance(self.design, FeatureDesign):
            self.sums = FeatureSums(self.design, c)

    @property
    def total(self) -> float:
        """The sum of the labeled rows' weights: l where they are 1."""
        return self.sums.total if self.sums is not None else self.design.total  # type: ignore[union-attr]

    @property
    def lost(self) -> float:
        """What outputs that R maps to 0 leave unexplained."""
        none = [vectors for value, vectors in self.all_groups if not value]
        if self.sums is not None:
            return sum(sum_of_squares(self.sums.moments.squares, vectors) for vectors in none)
        return sum(float(np.sum(self.u[:, None] * (self.Y @ vectors) ** 2)) for vectors in none)

    def keep(self) -> None:
        """Keep the factorizations, for many c."""
        self._systems = [system for system, _, _ in self._parts(self.u)]

    def _parts(self, u: np.ndarray) -> Iterator[tuple[Any, np.ndarray | None, tuple[Any, ...]]]:
        """Yield systems, eigenvectors and targets; one system at a time in memory unless they are kept."""
        for k, (value, vectors) in enumerate(self.groups):
            system = self._systems[k] if self._systems else couple(self.design, self.penalties, value, sums=self.sums)
            targets: tuple[Any, ...] = (vectors,)
            if self.sums is None:
                Y = self.Y if vectors is None else self.Y @ vectors
                targets = (like(Y, self.design.grams[0]), u)  # type: ignore[union-attr]
            yield system, vectors, targets

    def evaluate(self, c: np.ndarray) -> Evaluation:
        """Return the optimal value for c, its gradient in c and in cc'."""
        value, gradient, curvature = self.lost, np.zeros(len(c)), np.zeros((len(c), len(c)))
        proved = True
        for system, _, targets in self._parts(self.u):
            own, slope, proof = system.evaluate_ridge(c, *targets)
            value, gradient = value + own, gradient + slope
            proved &= proof is not None  # no bound where views are missing
            curvature = curvature + (0 if proof is None else proof)
        scale = self.total
        return value / scale, gradient / scale, curvature / scale if proved else None

    def view_outputs(self, cs: Sequence[np.ndarray], u: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return, for every c, the optimal value, the views' outputs and targets, as least squares takes them."""
        by_part = [system.view_outputs(cs, *targets) for system, _, targets in self._parts(u)]
        found = []
        for parts in zip(*by_part, strict=True):
            value = (self.lost + sum(part[0] for part in parts)) / self.total
            found.append((value, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])))
        return found

    def held_outputs(self, c: np.ndarray, u: np.ndarray, hidden: Any) -> np.ndarray:
        """Return the outputs at hidden labeled rows, learned from the others."""
        parts = [
            turn_back(system.held_outputs(c, *targets, hidden), vectors) for system, vectors, targets in self._parts(u)
        ]
        return np.sum(parts, axis=0)

    def solve(self, c: np.ndarray | None, search: WeightSearch | None = None) -> Solution:
        """Return (coefficients of each view, weights of the views) as x, for given weights or those of `search`.

        The objective is measured at the coefficients themselves. Where the matrices are not positive semi-definite,
        the status is "indefinite", and x is the position of the view, if it is known.
        """
        try:
            self.read(c)
            if c is not None:
                return self._solve_given(c)
            assert search is not None
            if search.alternating:
                learned = _alternate(self, search)
            else:
                self.keep()
                learned = learn_weights(
                    self.evaluate, search.starts, tol=search.tol, max_iter=search.max_iter, order=search.order
                )
            return with_learned(self._solve_given(self._upright(learned.x)), learned)
        except np.linalg.LinAlgError as error:
            return Solution(getattr(error, "view", None), None, 0, "indefinite")

    def _upright(self, c: np.ndarray) -> np.ndarray:
        """Return the weights with signs that rounding does not choose: -c is as good as c, and f_v as -f_v.

        Without a penalty on differences the sign of each view is free.
        """
        return np.abs(c) if not self.penalties.agreement else c * np.sign(c[np.abs(c).argmax()])

    def _solve_given(self, c: np.ndarray) -> Solution:
        coefficients: list[Any] = []
        value, worst, gap, jitter = self.lost, 0.0, 0.0, 0.0
        for system, vectors, targets in self._parts(self.u):
            part = system.ridge_fit(c, *targets)
            value, worst, gap = value + part.value, max(worst, part.residual), gap + part.bound
            jitter = max(jitter, part.jitter)
            own = [turn_back(W, vectors) for W in part.coefficients]
            coefficients = [a + b for a, b in zip(coefficients, own, strict=True)] if coefficients else own
        if not coefficients:  # R maps all outputs to 0
            zeros = [np.zeros((size, self.Y.shape[1])) for size in self.design.sizes]
            some = self.design.grams[0] if isinstance(self.design, GramDesign) else None
            coefficients = [like(own, some) for own in zeros]
        scale = self.total
        objective, gap = value / scale, gap / scale
        # a direct solution: only rounding separates it from the optimum
        status = "inexact" if not gap <= 1e-6 * abs(objective) else "jitter" if jitter else "exact"
        return Solution((coefficients, c), gap, 1, status, objective=objective, residual=worst / scale)


def turn_back(W: Any, vectors: np.ndarray | None) -> Any:
    """Return values along eigenvectors of R as values of the outputs."""
    return W if vectors is None else multiply(W, like(vectors, W).T)


def _alternate(problem: RidgeProblem, search: WeightSearch) -> Solution:
    """Return the best weights that the published scheme visits, by the objective or by hidden rows."""
    hidden: Any = search.hidden
    shown, u = problem, problem.u
    if len(hidden):  # hidden rows have no loss but stay as unlabeled ones
        if isinstance(problem.design, FeatureDesign):
            shown = RidgeProblem(problem.design.hide(hidden), problem.Y, u, problem.penalties, problem.all_groups)
            shown.read(None)
            assert shown.sums is not None
            shown.sums.total = problem.total  # the penalties keep the l of all labeled rows
            hidden = FeatureRows(*(part[search.hidden] for part in problem.design.labeled()))
        else:
            u = problem.u.copy()
            u[hidden] = 0.0
    shown.keep()
    outputs_of = partial(shown.view_outputs, u=u)
    learned, visited = alternate_weights(outputs_of, search.starts, tol=search.tol, max_iter=search.max_iter)
    if not len(search.hidden):
        return learned
    targets = hidden.Y if isinstance(hidden, FeatureRows) else problem.Y[hidden]
    losses = []
    for c in visited:
        outputs = shown.held_outputs(c, u, hidden)
        if search.classification:
            losses.append(1 - right_share(outputs, targets, np.ones(len(targets)), search.classification == "labels"))
        else:
            losses.append(float(np.mean((outputs - targets) ** 2)))
    return Solution(visited[int(np.argmin(losses))], None, learned.n_iter, learned.status)


def right_share(outputs: np.ndarray, Y: np.ndarray, weights: np.ndarray, indicator: bool) -> float:
    """Return the share of rows classified correctly; with an indicator the share of correct entries."""
    if indicator or Y.shape[1] == 1:
        right = ((outputs > 0) == (Y > 0)).mean(axis=1)
    else:
        right = outputs.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.average(right, weights=weights))


# -- held-out scores
class HeldOut:
    """Outputs at rows whose targets are hidden, for every γ_A and every fold from one eigendecomposition.

    Hidden targets are u = 0; the penalties stay as they are, and the rows stay among the unlabeled ones. With
    M = 𝒢/γ_A + u⁻¹ the residuals of a fold F are (M⁻¹[F, F])⁻¹ (M⁻¹Y)[F]. `kernel` is 𝒢 for γ_A = 1.
    """

    def __init__(self, kernel: np.ndarray, Y: np.ndarray, u: np.ndarray):
        self.Y, self.root = Y, np.sqrt(u)
        # with γ_B/γ_A and γ_W/γ_A as they are, another γ_A only divides the eigenvalues
        across, down = like(self.root[None, :], kernel), like(self.root[:, None], kernel)
        values, self.vectors = eigh(down * kernel * across)
        self.values = to_numpy(values)
        self.turned = multiply(self.vectors.T, down * like(Y, kernel))

    def outputs(self, alpha: float, folds: Sequence[np.ndarray] | None) -> np.ndarray:
        """Return g at the rows of each fold, one fold after the other; leave-one-out where there are no folds."""
        inverse = 1 / (np.maximum(self.values, 0) / alpha + 1)
        V, xp = self.vectors, namespace(self.vectors)
        r = to_numpy(multiply(V, like(inverse[:, None], V) * self.turned))  # (u½ 𝒢 u½/γ_A + I)⁻¹ u½ Y
        if folds is None:
            # (M⁻¹Y)_i / (M⁻¹)_ii, with M⁻¹ = u½ (u½ 𝒢 u½/γ_A + I)⁻¹ u½
            own = to_numpy(xp.matmul(V**2, like(inverse, V)))
            return self.Y - r / (own * self.root)[:, None]
        parts = []
        for fold in folds:
            rows = take_rows(V, fold)
            # the same for the rows of a fold together
            rest = solve_general(xp.matmul(rows * like(inverse[None, :], V), rows.T), like(r[fold], V))
            parts.append(self.Y[fold] - to_numpy(rest) / self.root[fold, None])
        return np.concatenate(parts)
