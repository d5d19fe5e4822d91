"""Weights of base models by pattern: where a sample lacks a view, the models that need it abstain."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._backend import like, namespace
from ..solvers.stacking import calibrate, least_squares, normal_equations, softmax, stack_without, violation


@dataclass(frozen=True)
class Stack:
    """Held-out predictions of base models at the labeled training samples, and their targets.

    Predictions and targets are differences from the held-out means, so that weights of 0 predict the mean.
    """

    Z: np.ndarray  # (q, n, P), NaN where a model abstains
    T: np.ndarray  # (n, P)
    means: np.ndarray  # (n, P): means of the targets that are not held out with a sample
    u: np.ndarray  # (n,) weights of the samples
    present: np.ndarray  # (n, m) which samples have which views
    needs: np.ndarray  # (q, m) which models use which views
    parts: np.ndarray  # (n,) number of the fold of each sample
    shift: np.ndarray  # (P,) and
    scale: np.ndarray  # (P,): targets are their values here times the scale plus the shift
    codes: Any = None  # (n,) classes of the samples; None for regression
    n_classes: int = 0
    shared: bool = True  # whether all outputs have the same weights

    def available(self, pattern: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the models that can predict where these views are present."""
        can = ~(self.needs & ~pattern).any(axis=1)
        return np.flatnonzero(can if allowed is None else can & allowed)

    def rows(self, pattern: np.ndarray) -> np.ndarray:
        """Return the samples that have at least these views."""
        return np.flatnonzero(self.present[:, pattern].all(axis=1))

    def weights(self, pattern: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """Return the weights (q, P) where these views are present; 0 for models that abstain.

        They are fitted to the samples that have at least these views. If these are too few, the weights of all views
        are rescaled.
        """
        models, rows = self.available(pattern, allowed), self.rows(pattern)
        weights = np.zeros((len(self.Z), self.T.shape[1]))
        if not len(models):
            return weights
        if self._enough(rows, models):
            weights[models] = self._fitted(models, rows)
            return weights
        every = np.arange(len(self.T))
        whole = self._fitted(np.arange(len(self.Z)), every)
        weights[models] = whole[models]
        left = weights.sum(axis=0)
        if allowed is None and (left > 0).all():
            return np.asarray(weights * (whole.sum(axis=0) / left))
        weights[models] = self._fitted(models, every)
        return weights

    def held_as(self, pattern: np.ndarray, allowed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples that have at least these views, and held-out scores (n, P) from these views alone.

        The weights are refitted without the fold of each sample. Where too few samples have the views, all samples are
        returned, and models that abstain predict the mean.
        """
        models, rows = self.available(pattern, allowed), self.rows(pattern)
        if not self._enough(rows, models):
            known = np.where(np.isnan(self.Z), 0.0, self.Z)
            every = np.arange(len(self.T))
            return every, self.means + np.einsum("knp,kp->np", known, self.weights(pattern, allowed))
        out = self.means[rows].copy()
        if len(models):
            place = np.unique(self.parts[rows], return_inverse=True)[1]
            order = np.argsort(place, kind="stable")
            members = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
            Z, T, u = self.Z[np.ix_(models, rows)], self.T[rows], self.u[rows]
            for p in self._outputs():
                without = stack_without(Z[..., p], T[..., p], u, members)[1]
                out[:, p] += np.einsum("nk,knp->np", without[place], Z[..., p])
        return rows, out

    def certificate(self, pattern: np.ndarray) -> tuple[float, float]:
        """Return the objective and the violation of its optimality conditions where these views are present."""
        models, rows, beta = self.available(pattern), self.rows(pattern), self.weights(pattern)
        if not len(models) or not len(rows):
            return 0.0, 0.0
        Z, T, u = self.Z[np.ix_(models, rows)], self.T[rows], self.u[rows]
        error = T - np.einsum("knp,kp->np", Z, beta[models])
        worst = 0.0
        for p in self._outputs() if self._enough(rows, models) else ():
            G, b = normal_equations(Z[..., p], T[..., p], u)
            worst = max(worst, violation(G, b, beta[models][:, p[0]]))
        return float(np.sum(u[:, None] * error**2)), worst

    def _enough(self, rows: np.ndarray, models: np.ndarray) -> bool:
        return len(rows) >= max(10, 2 * len(models)) or len(rows) == len(self.T)

    def _outputs(self) -> list[list[int]]:
        """Return the outputs that share weights, as lists of positions."""
        P = self.T.shape[1]
        return [list(range(P))] if self.shared else [[p] for p in range(P)]

    def _fitted(self, models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the best weights (models, P) for some samples; models that abstain predict the mean."""
        Z, T, u = self.Z[np.ix_(models, rows)], self.T[rows], self.u[rows]
        Z = np.where(np.isnan(Z), 0.0, Z)
        columns = [least_squares(*normal_equations(Z[..., p], T[..., p], u)) for p in self._outputs()]
        return np.repeat(columns[0][:, None], T.shape[1], axis=1) if self.shared else np.stack(columns, axis=1)


# -- samples of one pattern
@dataclass(frozen=True)
class Expert:
    """What is known of samples with one pattern of views."""

    weights: np.ndarray  # (q, P) of the base models
    rows: np.ndarray  # training samples that have at least these views
    held: np.ndarray  # (rows, P): their held-out scores from these views alone
    link: tuple[float, np.ndarray]  # slope and biases of the logits


def expert(stack: Stack, pattern: np.ndarray, allowed: np.ndarray | None = None) -> Expert:
    """Return weights, held-out scores and the map to probabilities where these views are present."""
    rows, held = stack.held_as(pattern, allowed)
    slope, biases = 1.0, np.zeros(held.shape[1])
    if stack.n_classes > 1:
        by_class = np.hstack([-held / 2, held / 2]) if held.shape[1] == 1 else held
        slope, biases = calibrate(by_class, stack.codes[rows], stack.u[rows], stack.n_classes)
    return Expert(stack.weights(pattern, allowed), rows, held, (slope, biases))


def held_out_outputs(stack: Stack, without: int | None = None) -> np.ndarray:
    """Return held-out outputs (n, P) of every sample from the views that it has, perhaps without one view."""
    out = np.empty_like(stack.T)
    allowed = None if without is None else ~stack.needs[:, without]
    for pattern in np.unique(stack.present, axis=0):
        own = expert(stack, pattern, allowed)
        here = (stack.present[own.rows] == pattern).all(axis=1)
        out[own.rows[here]] = link(stack, own.held[here], own.link)
    return out


def link(stack: Stack, scores: Any, given: tuple[float, np.ndarray]) -> Any:
    """Return outputs of scores (..., P): numbers in the units of y, or logits of the classes."""
    if stack.codes is None:
        return scores * like(stack.scale, scores) + like(stack.shift, scores)
    slope, biases = given
    biases = biases[1:2] - biases[:1] if stack.n_classes == 2 else biases
    return float(slope) * scores + like(np.asarray(biases, dtype=np.float64), scores)


def probabilities(logits: Any, n_classes: int) -> Any:
    """Return probabilities of logits (..., P); one logit stands for two classes."""
    xp = namespace(logits)
    if n_classes == 1:
        return xp.ones_like(logits)
    return softmax(xp.concat([xp.zeros_like(logits), logits], axis=-1) if n_classes == 2 else logits)
