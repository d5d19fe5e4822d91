"""Weights of base models by pattern: where a sample lacks a view, the models that need it abstain."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._backend import like, namespace
from ..solvers.consensus import Sets, held_out_means
from ..solvers.stacking import calibrate, least_squares, normal_equations, softmax, stack_without, violation

Link = tuple[float, np.ndarray]  # slope and biases of the logits


@dataclass(frozen=True)
class Stack:
    """Predictions of base models at the labeled training samples that they have not seen, and the targets.

    Each of K folds is a second consensus, whose weights are fitted without the fold to predictions of samples that are
    held out once more. All numbers that are said of new samples come from these K: nothing in them has seen the sample.
    """

    Y: np.ndarray  # (n, P)
    held: np.ndarray  # (q, n, P): without the sample's unit; NaN where a model abstains
    by_fold: np.ndarray  # (q, n, P): without its fold
    inner: np.ndarray | None  # (K, q, n, P): without a fold and the sample's unit; None for many samples, `held` then
    u: np.ndarray  # (n,) weights of the samples
    sets: Sets
    present: np.ndarray  # (n, m) which samples have which views
    needs: np.ndarray  # (q, m) which models use which views
    shift: np.ndarray  # (P,) and
    scale: np.ndarray  # (P,): targets are their values here times the scale plus the shift
    codes: Any = None  # (n,) classes of the samples; None for regression
    n_classes: int = 0
    shared: bool = True  # whether all outputs have the same weights

    def available(self, pattern: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the models that can predict where these views are present."""
        can = ~(self.needs & ~pattern).any(axis=1)
        return np.flatnonzero(can if allowed is None else can & allowed)

    def rows(self, pattern: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the samples with at least these views, and true; if they are too few, those with one of the views."""
        rows = np.flatnonzero(self.present[:, pattern].all(axis=1))
        if len(rows) >= max(10, 2 * len(self.available(pattern))) or len(rows) == len(self.Y):
            return rows, True
        return np.flatnonzero(self.present[:, pattern].any(axis=1)), False

    def problem(self, fold: int | None, rows: np.ndarray) -> "Problem":
        """Return what weights are fitted to: some of the samples, without a fold."""
        rest = np.arange(len(self.Y)) if fold is None else self.sets.without(fold)
        held = self.held if fold is None or self.inner is None else self.inner[fold]
        means = held_out_means(self.Y[rest], self.u[rest], self.sets.of(rest).units)
        inside = np.isin(rest, rows)
        rest, means = rest[inside], means[inside]
        Z = held[:, rest] - means
        Z = np.where(np.abs(Z) > 1e-9, Z, 0.0)  # NaN, or rounding of the mean, which no weight may enlarge
        return Problem(rest, Z, self.Y[rest] - means, means, self.u[rest])

    def mean(self, fold: int | None) -> np.ndarray:
        """Return the mean of the targets outside of a fold; 0 if none would be left."""
        rest = np.flatnonzero(self.sets.folds != (-1 if fold is None else fold))
        return self.u[rest] @ self.Y[rest] / max(self.u[rest].sum(), 1e-300)

    def weights(
        self, problem: "Problem", pattern: np.ndarray, enough: bool, allowed: np.ndarray | None = None
    ) -> "Weights":
        """Return the weights where these views are present; 0 for models that abstain.

        If too few samples have all of them, the views are averaged, each with weights of its own models, by the share
        of the variance that these explain. Where the weights of all models that fit best to samples with some of the
        views have a smaller error at samples with all of them, these are used.
        """
        models = self.available(pattern, allowed)
        if enough:
            return Weights(self._fitted(models, problem)[None], np.ones((1, len(problem.rows))), np.ones(1))
        by_view, gains = [], []
        for v in np.flatnonzero(pattern).tolist():
            single = models[self.needs[models, v] & (self.needs[models].sum(axis=1) == 1)]
            weights, there = self._fitted(single, problem), self.present[problem.rows, v]
            left = problem.T - np.einsum("knp,kp->np", problem.Z, weights)
            before, after = (np.sum(problem.u[there, None] * error[there] ** 2) for error in (problem.T, left))
            by_view.append(weights)
            gains.append(max(1 - after / max(before, 1e-300), 0.0) if there.any() else 0.0)
        average = Weights(np.stack(by_view), self.present[problem.rows][:, pattern].T.astype(float), np.array(gains))
        complete, joint = average.present.all(axis=0), self._fitted(models, problem)
        scores = np.stack([average.scores(problem.Z), np.einsum("knp,kp->np", problem.Z, joint)])
        errors = np.einsum("n,enp->e", problem.u[complete], (problem.T - scores)[:, complete] ** 2)
        return replace(average, joint=joint) if complete.sum() >= 5 and errors[1] < errors[0] else average

    def certificate(self) -> tuple[float, float]:
        """Return the objective and the violation of its optimality conditions where all views are present."""
        pattern = np.ones(self.present.shape[1], dtype=bool)
        rows, enough = self.rows(pattern)
        problem = self.problem(None, rows)
        weights = self.weights(problem, pattern, enough)
        worst = 0.0
        for p in self.outputs() if len(self.held) and enough else ():
            G, b = normal_equations(problem.Z[..., p], problem.T[..., p], problem.u)
            worst = max(worst, violation(G, b, weights.whole()[:, p[0]]))
        return float(np.sum(problem.u[:, None] * (problem.T - weights.scores(problem.Z)) ** 2)), worst

    def outputs(self) -> list[list[int]]:
        """Return the outputs that share weights, as lists of positions."""
        P = self.Y.shape[1]
        return [list(range(P))] if self.shared else [[p] for p in range(P)]

    def _fitted(self, models: np.ndarray, problem: "Problem") -> np.ndarray:
        weights = np.zeros((len(self.held), self.Y.shape[1]))
        for p in self.outputs() if len(models) else ():
            equations = normal_equations(problem.Z[models][..., p], problem.T[..., p], problem.u)
            weights[models[:, None], p] = least_squares(*equations)[:, None]
        return weights


@dataclass(frozen=True)
class Problem:
    """Held-out predictions and targets, as differences from the held-out means, so that weights of 0 predict these."""

    rows: np.ndarray
    Z: np.ndarray  # (q, rows, P); 0 where a model abstains
    T: np.ndarray  # (rows, P)
    means: np.ndarray  # (rows, P)
    u: np.ndarray


@dataclass(frozen=True)
class Weights:
    """Weights of base models: one set of them, or one for each view, whose scores are averaged."""

    by_view: np.ndarray  # (views, q, P)
    present: np.ndarray  # (views, rows) whether samples have the view
    gains: np.ndarray  # (views,) how much each view counts in the average
    joint: np.ndarray | None = None  # (q, P): weights of samples that have all the views, if these are better

    def whole(self) -> np.ndarray:
        """Return the weights (q, P) of a sample that has all the views."""
        if self.joint is not None:
            return self.joint
        return np.asarray(np.tensordot(self.gains, self.by_view, axes=1) / max(self.gains.sum(), 1e-300))

    def scores(self, Z: np.ndarray, present: np.ndarray | None = None) -> np.ndarray:
        """Return the scores (rows, P) of samples from the views that they have."""
        present = self.present if present is None else present
        shares = self.gains[:, None] * present
        shares /= np.maximum(shares.sum(axis=0), 1e-300)
        scores = np.asarray(np.einsum("vn,knp,vkp->np", shares, Z, self.by_view, optimize=True))
        if self.joint is not None:
            complete = present.all(axis=0)
            scores[complete] = np.einsum("knp,kp->np", Z[:, complete], self.joint)
        return scores


# -- samples of one pattern
@dataclass(frozen=True)
class Expert:
    """What is known of samples with one pattern of views."""

    weights: np.ndarray  # (q, P) of the base models
    link: Link
    fold_weights: np.ndarray  # (K, q, P) of the base models without each fold
    fold_links: list[Link]
    rows: np.ndarray  # training samples that have at least these views
    held: np.ndarray  # (rows, P): their scores without their folds, from these views


def expert(stack: Stack, pattern: np.ndarray) -> Expert:
    """Return weights, scores without each fold and the maps to probabilities where these views are present."""
    rows, enough = stack.rows(pattern)
    weights, links = [], []
    for k in range(stack.sets.n_folds):
        problem = stack.problem(k, rows)
        weights.append(stack.weights(problem, pattern, enough))
        inner = problem.means
        if stack.n_classes > 1:
            inner = inner + _inner_scores(stack, problem, weights[k], pattern, enough)
        links.append(_link(stack, problem.rows, inner))
    held = held_scores(stack, rows, weights, pattern)
    whole = stack.weights(stack.problem(None, rows), pattern, enough).whole()
    fold_weights = np.stack([fold.whole() for fold in weights])
    return Expert(whole, _link(stack, rows, held), fold_weights, links, rows, held)


def held_scores(stack: Stack, rows: np.ndarray, weights: list[Weights], pattern: np.ndarray) -> np.ndarray:
    """Return the scores (rows, P) of samples without their folds, with the weights of the folds."""
    out = np.empty((len(rows), stack.Y.shape[1]))
    for k, fold_weights in enumerate(weights):
        chosen = stack.sets.folds[rows] == k
        mean, there = stack.mean(k), stack.present[rows[chosen]][:, pattern].T
        Z = stack.by_fold[:, rows[chosen]] - mean
        present = there if len(fold_weights.gains) > 1 else np.ones((1, chosen.sum()))
        out[chosen] = mean + fold_weights.scores(np.where(np.isnan(Z), 0.0, Z), present)
    return out


def _inner_scores(stack: Stack, problem: Problem, weights: Weights, pattern: np.ndarray, enough: bool) -> np.ndarray:
    """Return scores outside of a fold, minus means; if samples are enough, with weights without their folds too."""
    if not enough:
        return weights.scores(problem.Z)
    models = stack.available(pattern)
    place = np.unique(stack.sets.folds[problem.rows], return_inverse=True)[1]
    members = [np.flatnonzero(place == k) for k in range(place.max(initial=-1) + 1)]
    out = np.zeros_like(problem.means)
    Z = problem.Z[models]
    for p in stack.outputs() if len(models) and len(members) else ():
        without = stack_without(Z[..., p], problem.T[..., p], problem.u, members)[1]
        out[:, p] += np.einsum("nk,knp->np", without[place], Z[..., p])
    return out


def _link(stack: Stack, rows: np.ndarray, scores: np.ndarray) -> Link:
    """Return the map of scores to logits that is best for some samples."""
    if stack.n_classes < 2 or not len(rows):
        return 1.0, np.zeros(max(stack.n_classes, stack.Y.shape[1]))
    by_class = np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores
    return calibrate(by_class, stack.codes[rows], stack.u[rows], stack.n_classes)


def outputs_without_folds(stack: Stack, experts: dict[str, Expert], without: int | None = None) -> np.ndarray:
    """Return outputs (n, P) of every sample without its fold, from the views that it has, perhaps without one."""
    out = np.empty_like(stack.Y)
    for pattern in np.unique(stack.present, axis=0):
        known = experts[pattern_key(pattern)]
        scores = known.held if without is None else _held_without(stack, pattern, without)
        same = (stack.present[known.rows] == pattern).all(axis=1)
        for k, fold_link in enumerate(known.fold_links):
            chosen = same & (stack.sets.folds[known.rows] == k)
            out[known.rows[chosen]] = link(stack, scores[chosen], fold_link)
    return out


def _held_without(stack: Stack, pattern: np.ndarray, view: int) -> np.ndarray:
    rows, enough = stack.rows(pattern)
    problems = [stack.problem(k, rows) for k in range(stack.sets.n_folds)]
    weights = [stack.weights(problem, pattern, enough, ~stack.needs[:, view]) for problem in problems]
    return held_scores(stack, rows, weights, pattern)


def pattern_key(pattern: np.ndarray) -> str:
    """Return which views are present as text, such as "101"."""
    return "".join("1" if there else "0" for there in pattern)


def view_shares(stack: Stack, weights: np.ndarray) -> np.ndarray:
    """Return how much each view moves the held-out scores: shares of the spreads of its parts of them.

    A part is Σ_k β_k f_k^-i(x_i) over the base models of a view; models of several views are divided equally. Equal
    shares are returned if nothing moves.
    """
    every = np.arange(len(stack.Y))
    problem = stack.problem(None, every)
    shares = stack.needs / np.maximum(stack.needs.sum(axis=1, keepdims=True), 1)
    parts = np.einsum("knp,kp,kv->vnp", problem.Z, weights, shares)
    parts -= (stack.u @ parts / stack.u.sum())[:, None]
    spreads = np.sqrt(np.einsum("n,vnp->v", stack.u, parts**2))
    return spreads / spreads.sum() if spreads.sum() > 0 else np.full(len(spreads), 1 / len(spreads))


def link(stack: Stack, scores: Any, given: Link) -> Any:
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
