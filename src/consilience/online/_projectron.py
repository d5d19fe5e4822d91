"""The machine of the Projectron, and its compiled pass."""

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from .._jit import jit
from ..solvers.linalg import multiply, solve_rows
from ..views.container import Views
from ._arrays import IntervalRule, target_intervals
from ._dual import Support, SupportMachine, refuse_one_view
from ._grams import Grams
from ._interval_steps import projected_interval_pass
from ._machine import Lesson, Sources, mean_of, remapped

_SPAN = 1e-10  # a fraction of k(x, x), or of the terms of a score, below which it counts as zero


class ProjectionRule(NamedTuple):
    """When and how far a Projectron steps."""

    threshold: float  # η: distance from the span of the support up to which samples are projected
    squared: bool  # whether η bounds the squared distance
    margins: bool  # whether correct decisions with a hinge loss cause steps too (Projectron++)


class ProjectronState(NamedTuple):
    """State of a pass; arrays over the support have room for the block."""

    alpha: np.ndarray  # (n_outputs, n_support)
    beta: np.ndarray  # Σ ± τ d t over the steps at sample t, for averages
    L: np.ndarray  # Cholesky factor of the support's Gram matrix, with room for more rows
    members: np.ndarray  # columns of K that belong to the support
    largest: np.ndarray  # (1,): largest Σ |terms| of a score so far
    budget: int


class ProjectronMachine(SupportMachine):
    """State of a Projectron: support, the factor of its Gram matrix, coefficients."""

    _when_full = "each further sample is projected on these, at any distance"

    def __init__(self, grams: Grams, n_outputs: int, *, average: Any, budget: int | None):
        self.grams, self.average, self.budget, self.n_outputs = grams, average, budget or 0, n_outputs
        self.support = Support()
        self.alpha, self.beta = np.zeros((n_outputs, 0)), np.zeros((n_outputs, 0))
        self.L = np.zeros((0, 0))  # with room for more rows
        self.written = np.zeros(1, dtype=np.int64)  # rows of L in use, by whichever machine
        self.largest = np.zeros(1)
        self.n_projections = 0

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change."""
        other = super().snapshot()
        other.largest = copy(self.largest)
        return other

    def remap_outputs(self, sources: Sources) -> None:
        """Replace the outputs: each becomes a multiple of an output before, or 0."""
        self.alpha, self.beta = remapped(self.alpha, sources, axis=0), remapped(self.beta, sources, axis=0)
        self.n_outputs = len(sources)

    def forget(self, share: float, view: str | None) -> None:
        """Multiply the coefficients by a share; means of hypotheses start again."""
        refuse_one_view(view)
        self.alpha, self.beta = share * self.alpha, 0 * self.beta
        self.n_hypotheses = int(share > 0)

    def _learn_block(self, X: Views, lesson: Lesson, rule: Any, record: Any) -> None:
        b, S, T = len(lesson.codes), len(self.support), self.n_outputs
        K = self.support.against(self.grams, X, extra=b)
        K[:, :, S:] = self.grams(X, X)
        alpha, beta = (np.concatenate([a, np.zeros((T, b))], axis=1) for a in (self.alpha, self.beta))
        self._make_room(b)
        state = ProjectronState(alpha, beta, self.L, np.arange(S + b), self.largest, self.budget)
        updates, times = np.zeros(b, dtype=np.int64), (self.n_hypotheses, _mean_of(self.average))
        if isinstance(rule, IntervalRule):
            given: Any = (target_intervals(rule, lesson.codes), lesson.weights, tuple(rule))
            size = projected_interval_pass(K[:, 0], given, tuple(state), S, times, tuple(record), updates)
        else:
            given = (lesson.codes, lesson.weights, tuple(rule))
            made = tuple(state), S, times, record.scores, record.wrong, updates
            at, size = _projectron_pass(K[:, 0], given, (0, *[np.empty((0, 0))] * 3), *made)
            if at < b:  # the first sample that must be projected: solve for all samples of the block at once
                H = np.zeros((b, len(self.L)))  # room of L that is not used yet changes nothing for zeros
                H[:, :S] = K[:, 0, :S]
                H = solve_rows(self.L, H)
                H[:, S:] = 0.0
                D = solve_rows(self.L, H.copy(), transposed=True)
                at, size = _projectron_pass(K[:, 0], given, (at, H, D, multiply(H, H.T)), *made)
        entered = state.members[S:size] - S  # positions in the block
        self.keep(X[entered], lesson.ids[entered])
        self.alpha, self.beta = alpha[:, :size], beta[:, :size]
        self.written[0] = size
        self.n_updates += int(np.count_nonzero(updates))
        self.n_projections += int(np.count_nonzero(updates % 2))
        self.n_dropped += int(np.count_nonzero(updates == 3))

    def _make_room(self, more: int) -> None:
        """Make room in L for more members of the support; the room grows in proportion, so that copies are rare.

        Rows that were written never change, so a snapshot shares the array. A machine copies it where another one has
        added rows.
        """
        S, room = len(self.support), len(self.L)
        needed = min(S + more, max(S, self.budget)) if self.budget else S + more
        if needed > room or self.written[0] != S:
            wanted = room if needed <= room else max(needed, room + room // 4)
            L = np.eye(min(wanted, max(S, self.budget)) if self.budget else wanted)
            L[:S, :S] = self.L[:S, :S]
            self.L, self.written = L, np.array([S])

    def coefficients(self) -> np.ndarray:
        """Return coefficients (1, n_outputs, n_support) of the last hypothesis, or of the mean of all."""
        # a step at sample t is part of T - t of T hypotheses, and of T + 1 - t of T + 1 with the last
        mean = self.alpha - self.beta / self.n_averaged if self.average else self.alpha
        return mean[None]

    def dual_coef(self) -> np.ndarray:
        """Return the coefficients of the support, before averages: (n_support,) or by output."""
        return self.alpha[0] if self.n_outputs == 1 else self.alpha

    def support_ids(self) -> np.ndarray:
        """Return the names of the samples in the support."""
        return self.support.ids


def _mean_of(average: Any) -> int:
    """Return -1 where the last hypothesis predicts, else which mean does."""
    return mean_of(average) if average else -1


# -- the compiled pass
@jit(fastmath={"reassoc"})  # lets the compiler use several partial sums
def _sum(alpha, K):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(alpha)):
        total += alpha[j] * K[j]
    return total


@jit()
def _total(n, mean):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of n hypotheses, and of one more with mean = 1; at least 1."""
    return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4 if mean == 2 else n + 1.0 * mean, 1.0)


@jit()
def _decide(scores, code, sizes, tol):  # type: ignore[no-untyped-def]
    """Return the margin, 0 within rounding, and the best other class, the first among ties (-1 with one output).

    `sizes` are the sums of the absolute terms of the scores. A single score becomes 0 with its margin.
    """
    rival = -1
    for t in range(len(scores) if len(scores) > 1 else 0):
        if t != code and (rival < 0 or scores[t] > scores[rival]):
            rival = t
    for t in range(rival):
        if t != code and scores[rival] - scores[t] <= tol * (sizes[rival] + sizes[t]):
            rival = t
            break
    if rival < 0:
        scores[0] = 0.0 if abs(scores[0]) <= tol * sizes[0] else scores[0]
        return scores[0] if code == 1 else -scores[0], rival
    margin = scores[code] - scores[rival]
    return 0.0 if abs(margin) <= tol * (sizes[code] + sizes[rival]) else margin, rival


@jit()
def _extend(L, first, size, k, P, own, members, half):  # type: ignore[no-untyped-def]
    """Solve L half = k for the rows of members that joined in this block; return ‖half‖², all rows included.

    P are the products between the solutions for the first rows, of all samples of the block; `own` is this one.
    """
    inside = P[own, own]
    for r in range(first, size):
        half[r] = (k[r] - P[own, members[r] - first] - _sum(L[r, first:r], half[first:r])) / L[r, r]
        inside += half[r] * half[r]
    return inside


@jit()
def _set_projection(L, first, size, half, D, own, members, d):  # type: ignore[no-untyped-def]
    """Solve L' d = half; D are the solutions for the first rows alone, of all samples of the block."""
    for r in range(size - 1, first - 1, -1):
        d[r] = half[r]
        for q in range(r + 1, size):
            d[r] -= L[q, r] * d[q]
        d[r] /= L[r, r]
    d[:first] = D[own, :first]
    for r in range(first, size):
        for s in range(first):
            d[s] -= d[r] * D[members[r] - first, s]


@jit()
def _step(rule, margin, inside, residual, n_sides):  # type: ignore[no-untyped-def]
    """Return τ: 1 for a mistake, less for a correct decision, 0 where the projection is too far for its loss."""
    if margin <= 0:
        return 1.0
    distance = residual if rule.squared else np.sqrt(residual)  # the authors' program compares δ², their paper δ
    # ℓ - δ/η; for η = 0 only samples in the span have a step
    excess = 1 - margin - (distance / rule.threshold if rule.threshold > 0 else np.inf * (distance > 0))
    if not excess > 1e-10 or inside <= 0:
        return 0.0
    below = inside * n_sides  # ‖Pφ‖², twice for two class vectors
    return min((1 - margin) / below, 2 * excess / below, 1.0)


@jit()
def _projectron_pass(K, given, solved, state, size, times, scores, wrong, updates):  # type: ignore[no-untyped-def]
    """Learn a block, and return where it stops and the size of the support; K[i] is the kernel with it and the block.

    `solved` are the sample to begin with, H with the rows L⁻¹k, D with L⁻ᵀL⁻¹k and HH', all for the members before this
    block. Where these are empty, the pass stops at the first sample that needs them. `updates` become 2 for new
    members, 1 for projections and 3 for those that only a full budget requires.

    Scores that differ by less than _SPAN of the largest terms so far are ties, and so are distances and the threshold:
    solving with L leaves more rounding than sums do.
    """
    (codes, weights, rule), (n_before, mean), (start, H, D, P) = given, times, solved
    rule = ProjectionRule(*rule)
    alpha, beta, L, members, largest, budget = state
    T, most = alpha.shape
    first = K.shape[1] - len(codes)
    total, sizes = np.empty(T), np.empty(T)
    k, half, d = np.empty(most), np.empty(most), np.empty(most)
    for i in range(start, len(codes)):
        own = K[i, first + i]
        for s in range(size):
            k[s] = K[i, members[s]]  # kernel with the support, new members included
        for t in range(T):
            total[t] = _sum(alpha[t, :size], k[:size])
            # kept from all samples: where coefficients cancel, what is left is rounding of what they were
            largest[0] = max(largest[0], _sum(np.abs(alpha[t, :size]), np.abs(k[:size])))
        code = codes[i]
        sizes[:] = largest[0]
        margin, rival = _decide(total, code, sizes, _SPAN)
        for t in range(T):  # loops compile faster than array expressions
            scores[i, t] = total[t]
            if mean >= 0:  # the mean over the hypotheses so far; what is left by rounding is a tie
                lacks = _sum(beta[t, :size], k[:size]) / _total(n_before + i, mean)
                scores[i, t] = total[t] - lacks if abs(total[t] - lacks) > _SPAN * largest[0] else 0.0
        wrong[i] = margin <= 0
        # no hinge loss, or a correct decision of the plain Projectron
        if margin > 1 - 1e-10 or (margin > 0 and not rule.margins):
            continue
        if len(P) == 0:
            return i, size
        inside = _extend(L, first, size, k, P, i, members, half)
        residual = own - inside if own - inside > _SPAN * own else 0.0  # within rounding of the span
        tau = _step(rule, margin, inside, residual, 1 if rival < 0 else 2)
        # a larger step at a correct decision could leave the hypothesis worse off
        tau *= weights[i] if margin <= 0 else min(weights[i], 1.0)
        if tau == 0:
            continue
        # δ > η by more than rounding
        far = residual - (rule.threshold if rule.squared else rule.threshold**2) > _SPAN * own
        wanted, full = margin <= 0 and far and residual > 0, 0 < budget <= size
        updates[i] = 1 if not wanted else 3 if full else 2  # a full budget projects at any distance
        if updates[i] == 2:
            # the factor of the grown Gram matrix has the row (half', δ); the paper updates the inverse instead
            L[size, :first] = H[i, :first]
            L[size, first:size] = half[first:size]
            L[size, size] = np.sqrt(residual)
            members[size] = first + i
            d[:size] = 0
            d[size] = 1  # the sample itself, not its projection
            size += 1
        else:
            _set_projection(L, first, size, half, D, i, members, d)
        since = _total(n_before + i + 1, 2) if mean == 2 else n_before + i + 1.0  # weight of the hypotheses before
        for t in (code if T > 1 else 0, rival):
            if t >= 0:
                a = -tau if t == rival or (T == 1 and code == 0) else tau
                for s in range(size):
                    alpha[t, s] += a * d[s]
                    beta[t, s] += a * d[s] * since
    return len(codes), size
