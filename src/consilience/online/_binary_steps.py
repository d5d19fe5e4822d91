"""The compiled pass over rows of two classes with one weight per column: the fastest case of `_steps.py`.

Helpers stand here again, since numba's cache does not notice changes of another file. Some are inlined, since a call
with so many arrays takes as long as a row.
"""

import numpy as np

from .._jit import jit
from ._arrays import Factors, LinearState, RowArrays, Rule


@jit()
def _dot(V, x, k):  # type: ignore[no-untyped-def]
    """Return Σ_j V[k_j] x_j; four partial sums do not wait for each other."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    last = len(x) & ~3
    for j in range(0, last, 4):
        s0 += V[k[j]] * x[j]
        s1 += V[k[j + 1]] * x[j + 1]
        s2 += V[k[j + 2]] * x[j + 2]
        s3 += V[k[j + 3]] * x[j + 3]
    for j in range(last, len(x)):
        s0 += V[k[j]] * x[j]
    return (s0 + s1) + (s2 + s3)


@jit()
def _power(x, exponent):  # type: ignore[no-untyped-def]
    """Return x^exponent; the usual exponents need no call of the slow function."""
    if exponent == 0:
        return 1.0
    if exponent == 1:
        return x
    return x * x if exponent == 2 else x**exponent


@jit()
def _p_norm(values, p):  # type: ignore[no-untyped-def]
    """Return (Σ v^p)^(1/p) for values v >= 0; of the squared norms of views it is the squared group norm."""
    top, total = 0.0, 0.0
    for g in range(len(values)):
        top = max(top, values[g])
    if top > 0:
        for g in range(len(values)):
            total += _power(values[g] / top, p)
    return top * (np.sqrt(total) if p == 2 else total ** (1 / p))


@jit()
def _weight(t, mean):  # type: ignore[no-untyped-def]
    """Return the weight of hypothesis t in the mean; with mean = 2 later ones count more (Shamir and Zhang 2013)."""
    return t * (t + 1.0) * (t + 2.0) if mean == 2 else 1.0


@jit()
def _total(n, mean):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of n hypotheses, and of one more with mean = 1; at least 1."""
    return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4 if mean == 2 else n + 1.0 * mean, 1.0)


@jit()
def _set_factors(norms, prior, p, F):  # type: ignore[no-untyped-def]
    """Set F = (N / ‖N‖_p)^(p-1) for N = norms + prior; leave it unchanged where N is 0."""
    values = np.empty(len(norms))
    for g in range(len(norms)):
        norms[g] = max(norms[g], 0.0)  # a squared norm, below 0 by rounding
        values[g] = norms[g] + prior[g]
    size = _p_norm(values, p)
    for g in range(len(F) if size > 0 else 0):
        F[g] = _power(values[g] / size, p - 1)


@jit()
def _step(rule, margin, size, weight):  # type: ignore[no-untyped-def]
    """Return τ, the length of the step; `size` is the squared norm of the sample."""
    below = rule.curvature * size + rule.ridge / weight
    if rule.least < rule.cap and 1 - margin <= 1e-10:  # a loss this small is rounding
        return 0.0
    least = weight * rule.least
    return max(least, min(weight * rule.cap, (1 - margin) / below)) if below > 0 else least


@jit(inline="always")
def _term_size(rows, i, state):  # type: ignore[no-untyped-def]
    """Return Σ |terms| of the score of row i."""
    size = 0.0
    for l in range(len(state.groups)):
        for j in range(rows.start[i, l], rows.stop[i, l]):
            column = rows.columns[rows.column_start[i, l] + j - rows.start[i, l]]
            size += state.factors.F[state.groups[l]] * abs(state.V[column] * rows.values[j])
    return size + (abs(state.intercept[0, 0]) if len(state.intercept) else 0.0)


@jit(inline="always")
def _set_squares(rows, i, groups, own):  # type: ignore[no-untyped-def]
    """Set own[g] = ‖x_g‖² for row i."""
    own[:] = 0
    for l in range(len(groups)):
        for j in range(rows.start[i, l], rows.stop[i, l]):
            own[groups[l]] += float(rows.values[j]) ** 2


@jit(inline="always")
def _add_row(rows, i, a, state, rounding):  # type: ignore[no-untyped-def]
    """Add a x to V for row i, 0 where terms cancel up to `rounding`; add a C x to U where averages are kept."""
    V, U, C = state.V, state.U, state.factors.C
    for l in range(len(state.groups)):
        first, last, at = rows.start[i, l], rows.stop[i, l], rows.column_start[i, l]
        x, k = rows.values[first:last], rows.columns[at : at + last - first]
        for j in range(len(x)):
            before, change = V[k[j]], a * x[j]
            V[k[j]] = before + change if abs(before + change) > rounding * abs(change) else 0.0
        if len(U):
            for j in range(len(x)):
                U[k[j]] += a * C[state.groups[l]] * x[j]


@jit()
def binary_pass(rows, codes, weights, state, rule, tol, n_before, record):  # type: ignore[no-untyped-def]
    """Learn rows of two classes with one weight per column; fill the record, return the number of steps."""
    rows, rule, (scores, wrong, shares) = RowArrays(*rows), Rule(*rule), record
    state = LinearState(state[0], state[1], state[2], state[3], Factors(*state[4]), state[5])
    V, B, groups, (norms, F, C, prior, counters, p, _, _) = state.V, state.intercept, state.groups, state.factors
    moving, sized, averages = p != 1, rule.least < rule.cap, len(state.U) > 0
    # a margin within rounding of the threshold counts as equal to it
    near, limit = tol**0.5, rule.threshold * (1 + tol)
    since, largest, n_steps, last = counters[0], counters[1], 0, 1.0 * (state.mean == 1)
    dots, own = np.zeros(len(F)), np.empty(len(F))
    for i in range(len(codes)):
        sign = 1.0 if codes[i] == 1 else -1.0  # y
        score = F[0] * B[0, 0] if len(B) else 0.0
        # sums over the hypotheses so far: of the last one, and what the earlier ones lack of it
        sums, lacks = ((C[0] + (since + last) * F[0]) * B[0, 0], B[1, 0]) if len(B) else (0.0, 0.0)
        dots[:] = 0
        for l in range(len(groups)):
            first, end, at = rows.start[i, l], rows.stop[i, l], rows.column_start[i, l]
            x, k, g = rows.values[first:end], rows.columns[at : at + end - first], groups[l]
            product, before = _dot(V, x, k), sums - lacks
            if averages:
                sums += (C[g] + (since + last) * F[g]) * product
                lacks += _dot(state.U, x, k)
            dots[g] += product
            score += F[g] * product
            if len(shares):  # of the hypothesis that predicts
                own_share = (sums - lacks - before) / _total(n_before + i, state.mean) if averages else F[g] * product
                shares[i, l] = sign * own_share
        if abs(score) <= near * largest and abs(score) <= tol * _term_size(rows, i, state):
            score = 0.0
        scores[i, 0] = score
        if averages:  # what is left by rounding is a tie
            exact = abs(sums - lacks) > 1e-10 * (abs(sums) + abs(lacks))
            scores[i, 0] = (sums - lacks) / _total(n_before + i, state.mean) if exact else 0.0
        since += _weight(n_before + i + 1, state.mean)
        largest = max(largest, abs(score))
        wrong[i] = sign * score <= 0
        if sign * score > limit:
            continue
        if moving or sized:
            _set_squares(rows, i, groups, own)
        a = sign * _step(rule, sign * score, _p_norm(own, p) + (len(B) > 0) if sized else 0.0, weights[i])
        if a == 0:
            continue
        n_steps += 1
        for g in range(len(F)):
            C[g] += since * F[g]  # as in `_close_hypothesis`
        since = 0.0
        if len(B):
            B[0, 0] += a
            B[1, 0] += a * C[0]
        _add_row(rows, i, a, state, rule.rounding)
        if moving:
            for g in range(len(F)):
                norms[g] += 2 * a * dots[g] + a * a * own[g]  # ‖v + a x‖²
            _set_factors(norms, prior, p, F)
    counters[0], counters[1] = since, largest
    return n_steps
