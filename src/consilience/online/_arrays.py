"""What compiled passes take, as named tuples; a change of the order of fields needs an edit of `_steps.py` too.

numba's cache notices changes of the file with the compiled function, and of the number and types of its arguments.
"""

from typing import NamedTuple

import numpy as np


class Rule(NamedTuple):
    """When and how far an estimator steps; a perceptron has least = cap, a passive-aggressive estimator least = 0."""

    threshold: float  # largest margin that causes a step
    least: float  # bounds of the step length τ
    cap: float
    ridge: float = 0.0  # 1/(2C) for PA-II
    curvature: float = 1.0  # 2p - 1 for the passive-aggressive OMMP
    rounding: float = 0.0  # relative rounding of the samples themselves: weights that cancel up to it become 0


class IntervalRule(NamedTuple):
    """How far an estimator steps where the score of an output leaves its interval; see `_interval_steps.py`."""

    reach: float  # half the width of intervals around numbers; the margin of labels
    least: float  # shortest step
    up: float  # longest steps to larger and to smaller scores
    down: float
    ridge: float = 0.0  # 1/(2C) for PA-II
    curvature: float = 1.0  # 2p - 1 for group norms
    distance: float = 0.0  # η of a projection on the span of the support


class RowArrays(NamedTuple):
    """Rows of several views: entry j of view l in row i is values[start + j], in column columns[column_start + j]."""

    values: np.ndarray
    columns: np.ndarray
    start: np.ndarray  # (n_rows, n_views), as the next two
    stop: np.ndarray
    column_start: np.ndarray


class Factors(NamedTuple):
    """The factors between views, and what they are made of; `binary_pass` takes norms, F and C as vectors."""

    norms: np.ndarray  # (n_groups, n_outputs): V'V, or its diagonal
    F: np.ndarray  # (n_groups, n_outputs)
    C: np.ndarray  # Σ F over the hypotheses so far
    prior: np.ndarray  # (n_groups,): added to the norms
    counters: np.ndarray  # hypotheses that C lacks; largest |margin| so far
    p: float
    side: int  # number of views where V'V is a full matrix; 0: its diagonal alone
    learned: np.ndarray  # R and the q_k of learned prior norms (`_learn_prior`); empty if they are given


class LinearState(NamedTuple):
    """State of a linear pass; `binary_pass` takes V and U as vectors over the columns."""

    V: np.ndarray  # (n_columns, n_vectors, n_outputs); one vector, or one for each view over shared columns
    U: np.ndarray  # Σ ± τ C x, for the mean of all hypotheses; empty without averages
    intercept: np.ndarray  # (2, n_outputs): its V and its U; empty without an intercept
    groups: np.ndarray  # row of each view in the factors
    factors: Factors
    mean: int  # of hypotheses: 0 those in use so far, 1 also the last, 2 later ones with more weight


class KernelState(NamedTuple):
    """State of a kernel pass; arrays over the support have room for the block."""

    alpha: np.ndarray  # (n_outputs, n_support)
    beta: np.ndarray  # (n_groups, n_outputs, n_support): Σ ± τ C, for averages; empty without
    alive: np.ndarray  # whether a member of the support is still used
    output_gram: np.ndarray  # (n_outputs, n_outputs); empty for the identity
    budget: int  # maximum size of the support; 0: no limit
    factors: Factors
    mean: int  # of hypotheses: 0 those in use so far, 1 also the last, 2 later ones with more weight


class PassRecord(NamedTuple):
    """What a pass reports of each sample, all before the sample is learned."""

    scores: np.ndarray  # (n, n_outputs): of the hypothesis that predicts, the mean where there are averages
    wrong: np.ndarray  # (n,): whether the decision of the last hypothesis was wrong
    shares: np.ndarray  # (n, n_views): the part of each view in the margin of the last hypothesis; empty unless asked


class IntervalRecord(NamedTuple):
    """What a pass over intervals reports of each sample, all before the sample is learned."""

    scores: np.ndarray  # (n, n_outputs): of the hypothesis that predicts, the mean where there are averages
    last: np.ndarray  # (n, n_outputs): of the last hypothesis
    shares: np.ndarray  # (n, n_views): the part of each view in the mean score or margin; empty unless asked


def target_intervals(rule: IntervalRule, targets: np.ndarray) -> np.ndarray:
    """Return the ends of the intervals that scores must reach, (2, n, n_outputs).

    Numbers y have [y - reach, y + reach], labels that apply (1) have [reach, ∞), and others (0) have (-∞, -reach].
    """
    ends = np.empty((2, *targets.shape))
    if targets.dtype.kind == "f":
        np.subtract(targets, rule.reach, ends[0])
        np.add(targets, rule.reach, ends[1])
    else:
        ends[0], ends[1] = np.where(targets == 1, rule.reach, -np.inf), np.where(targets == 1, np.inf, -rule.reach)
    return ends


def as_intervals(rule: Rule | IntervalRule) -> IntervalRule:
    """Return the rule of two classes as one for labels."""
    if isinstance(rule, IntervalRule):
        return rule
    return IntervalRule(rule.threshold, rule.least, rule.cap, rule.cap, rule.ridge, rule.curvature)


def new_interval_record(n: int, n_outputs: int, n_views: int = 0) -> IntervalRecord:
    """Return the arrays that a pass over intervals fills; without views, their shares are not reported."""
    shares = np.zeros((n if n_views else 0, n_views))
    return IntervalRecord(np.empty((n, n_outputs)), np.empty((n, n_outputs)), shares)


def new_record(n: int, n_outputs: int, n_views: int = 0) -> PassRecord:
    """Return the arrays that a pass over n samples fills; without views, their shares are not reported."""
    shares = np.zeros((n if n_views else 0, n_views))
    return PassRecord(np.empty((n, n_outputs)), np.empty(n, dtype=bool), shares)
