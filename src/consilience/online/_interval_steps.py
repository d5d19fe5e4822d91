"""Compiled passes over samples whose scores must reach intervals: numbers, and several labels per sample.

Output t of a sample has an interval [lo, hi]. Where the score s is below lo, the weights of the output change by +τ x,
and above hi by -τ x, with

    τ = clip(distance of s from the interval / (curvature · size² + ridge/w), w·least, w·longest)

for a sample of weight w. The outputs are independent of each other. Numbers have [y - ε, y + ε], a label that applies
has [1, ∞), and one that does not has (-∞, -1]. Factors between views and means of hypotheses are those of `_steps.py`.

Helpers stand here again, since numba's cache does not notice changes of another file.
"""

import numpy as np

from .._jit import jit
from ._arrays import Factors, IntervalRecord, IntervalRule, KernelState, LinearState, RowArrays


# -- sums and factors
@jit(fastmath={"reassoc"})  # lets the compiler use several partial sums
def _sum(alpha, K):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(alpha)):
        total += alpha[j] * K[j]
    return total


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
def _weight(t, mean):  # type: ignore[no-untyped-def]
    """Return the weight of hypothesis t in the mean; with mean = 2 later ones count more (Shamir and Zhang 2013)."""
    return t * (t + 1.0) * (t + 2.0) if mean == 2 else 1.0


@jit()
def _total(n, mean):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of n hypotheses, and of one more with mean = 1; at least 1."""
    return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4 if mean == 2 else n + 1.0 * mean, 1.0)


@jit()
def _difference(sums, lacks):  # type: ignore[no-untyped-def]
    """Return the sum over the hypotheses so far: that of the last one, less what earlier ones lack; 0 by rounding."""
    left = sums - lacks
    return left if abs(left) > 1e-10 * (abs(sums) + abs(lacks)) else 0.0


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
def _turn_factors(factors, dots, own, t, a):  # type: ignore[no-untyped-def]
    """Update the norms of output t for V += a X, and set F = (N / ‖N‖_p)^(p-1) for N = norms + prior."""
    norms, values = factors.norms, np.empty(len(own))
    for g in range(len(own)):
        norms[g, t] = max(norms[g, t] + 2 * a * dots[g, t] + a * a * own[g], 0.0)  # a squared norm, but for rounding
        values[g] = norms[g, t] + factors.prior[g]
    size = _p_norm(values, factors.p)
    for g in range(len(own) if size > 0 else 0):
        factors.F[g, t] = _power(values[g] / size, factors.p - 1)


@jit()
def _close_hypothesis(factors):  # type: ignore[no-untyped-def]
    """Add to C the factors of the hypothesis that was in use since the last step."""
    for g in range(factors.F.shape[0]):
        for t in range(factors.F.shape[1]):
            factors.C[g, t] += factors.counters[0] * factors.F[g, t]  # counters[0] samples saw it
    factors.counters[0] = 0


# -- steps
@jit()
def _length(rule, gap, longest, rounding, size, weight):  # type: ignore[no-untyped-def]
    """Return τ; `gap` is the distance from the interval and `size` the squared norm of the sample."""
    if rule.least < longest and gap <= rounding:
        return 0.0
    below, least = rule.curvature * size + rule.ridge / weight, weight * rule.least
    return max(least, min(weight * longest, gap / below)) if below > 0 else least


@jit()
def _step(rule, low, high, score, largest, size, weight, tol):  # type: ignore[no-untyped-def]
    """Return ±τ, 0 within the interval; ends within rounding count as outside, for steps of one length."""
    both = low > -np.inf and high < np.inf  # an interval around a number, else that of a label
    if score <= low + tol * abs(low):
        rounding = 1e-10 * max(abs(low), largest if both else 0.0)
        return _length(rule, low - score, rule.up, rounding, size, weight)
    if score >= high - tol * abs(high):
        rounding = 1e-10 * max(abs(high), largest if both else 0.0)
        return -_length(rule, score - high, rule.down, rounding, size, weight)
    return 0.0


@jit()
def _leaves(low, high, scores, tol):  # type: ignore[no-untyped-def]
    """Return whether some score is outside its interval or at its end."""
    for t in range(len(scores)):
        if scores[t] <= low[t] + tol * abs(low[t]) or scores[t] >= high[t] - tol * abs(high[t]):
            return True
    return False


@jit()
def _sign(low, high):  # type: ignore[no-untyped-def]
    """Return -1 for a label that does not apply, else 1."""
    return -1.0 if low == -np.inf and high < np.inf else 1.0


# -- linear
@jit()
def _row_sums(rows, i, l, V, products):  # type: ignore[no-untyped-def]
    """Set products[t] = <v_t, x> over the entries of one view of row i."""
    first, last, at = rows.start[i, l], rows.stop[i, l], rows.column_start[i, l]
    x, k = rows.values[first:last], rows.columns[at : at + last - first]
    if len(products) == 1:
        products[0] = _dot(V.reshape(V.size), x, k)
        return
    products[:] = 0
    for j in range(len(x)):
        for t in range(len(products)):
            products[t] += V[k[j], 0, t] * x[j]


@jit()
def _term_size(rows, i, state, t):  # type: ignore[no-untyped-def]
    """Return Σ |terms| of the score of row i in output t."""
    size = abs(state.intercept[0, t]) if len(state.intercept) else 0.0
    for l in range(len(state.groups)):
        for j in range(rows.start[i, l], rows.stop[i, l]):
            column = rows.columns[rows.column_start[i, l] + j - rows.start[i, l]]
            size += state.factors.F[state.groups[l], t] * abs(state.V[column, 0, t] * rows.values[j])
    return size


@jit()
def _set_squares(rows, i, groups, own):  # type: ignore[no-untyped-def]
    """Set own[g] = ‖x_g‖² for row i."""
    own[:] = 0
    for l in range(len(groups)):
        for j in range(rows.start[i, l], rows.stop[i, l]):
            own[groups[l]] += float(rows.values[j]) ** 2


@jit()
def _add_row(rows, i, steps, state):  # type: ignore[no-untyped-def]
    """Add a_t x to V and a_t C x to U for row i, in every output t."""
    V, U, B, C = state.V, state.U, state.intercept, state.factors.C
    for t in range(len(steps) if len(B) else 0):
        B[0, t] += steps[t]
        B[1, t] += steps[t] * C[0, t]
    for l in range(len(state.groups)):
        g, shift = state.groups[l], rows.column_start[i, l] - rows.start[i, l]
        for j in range(rows.start[i, l], rows.stop[i, l]):
            c, x = rows.columns[j + shift], rows.values[j]
            for t in range(len(steps)):
                V[c, 0, t] += steps[t] * x
            for t in range(len(steps) if len(U) else 0):
                U[c, 0, t] += steps[t] * C[g, t] * x


@jit()
def linear_interval_pass(rows, ends, weights, state, rule, tol, n_before, record):  # type: ignore[no-untyped-def]
    """Learn rows with one weight per column and output; fill the record, return the number of samples with a step."""
    rows, rule, record = RowArrays(*rows), IntervalRule(*rule), IntervalRecord(*record)
    state = LinearState(state[0], state[1], state[2], state[3], Factors(*state[4]), state[5])
    B, factors, groups = state.intercept, state.factors, state.groups
    F, C, counters, ((G, T), n_steps) = factors.F, factors.C, factors.counters, (factors.F.shape, 0)
    dots, own, products, steps, lacks = np.empty((G, T)), np.empty(G), np.empty(T), np.empty(T), np.empty(T)
    for i in range(len(weights)):
        low, high, scores = ends[0, i], ends[1, i], record.last[i]
        dots[:] = 0
        scores[:] = 0
        lacks[:] = 0
        for l in range(len(groups)):
            _row_sums(rows, i, l, state.V, products)
            for t in range(T):
                part = F[groups[l], t] * products[t]
                dots[groups[l], t] += products[t]
                scores[t] += part
                if len(record.shares):
                    record.shares[i, l] += _sign(low[t], high[t]) * part / T
            if len(state.U):
                _row_sums(rows, i, l, state.U, products)
                for t in range(T):
                    lacks[t] += products[t]
        for t in range(T):
            scores[t] += F[0, t] * B[0, t] if len(B) else 0.0
            if abs(scores[t]) <= tol**0.5 * counters[1] and abs(scores[t]) <= tol * _term_size(rows, i, state, t):
                scores[t] = 0.0  # what is left by rounding
            record.scores[i, t] = scores[t]
            if len(state.U):
                since = counters[0] + (state.mean == 1)
                sums = (C[0, t] + since * F[0, t]) * B[0, t] if len(B) else 0.0
                for g in range(G):
                    sums += (C[g, t] + since * F[g, t]) * dots[g, t]
                lacks[t] += B[1, t] if len(B) else 0.0
                record.scores[i, t] = _difference(sums, lacks[t]) / _total(n_before + i, state.mean)
            counters[1] = max(counters[1], abs(scores[t]))
        counters[0] += _weight(n_before + i + 1, state.mean)
        if not _leaves(low, high, scores, tol):
            continue
        _set_squares(rows, i, groups, own)
        size, stepped = _p_norm(own, factors.p) + (len(B) > 0), False
        for t in range(T):
            steps[t] = _step(rule, low[t], high[t], scores[t], counters[1], size, weights[i], tol)
            stepped = stepped or steps[t] != 0
        if stepped:
            n_steps += 1
            _close_hypothesis(factors)
            _add_row(rows, i, steps, state)
            for t in range(T if factors.p != 1 else 0):
                if steps[t] != 0:
                    _turn_factors(factors, dots, own, t, steps[t])
    return n_steps


# -- by kernels
@jit()
def _set_sums(alpha, K, F, dots, total):  # type: ignore[no-untyped-def]
    """Set dots[g, t] = Σ_s α_ts K_gs, and total[t] = Σ_g F_gt dots[g, t]."""
    for t in range(len(total)):
        total[t] = 0
        for g in range(len(K)):
            dots[g, t] = _sum(alpha[t], K[g])
            total[t] += F[g, t] * dots[g, t]


@jit()
def _set_means(beta, K, factors, mean, n, dots, means):  # type: ignore[no-untyped-def]
    """Set the scores by the mean of the hypotheses so far, n without the last."""
    C, F, since = factors.C, factors.F, factors.counters[0] + (mean == 1)
    for t in range(len(means)):
        sums, lacks = 0.0, 0.0
        for g in range(len(K)):
            sums += (C[g, t] + since * F[g, t]) * dots[g, t]
            lacks += _sum(beta[g, t], K[g])
        means[t] = _difference(sums, lacks) / _total(n, mean)


@jit()
def _drop_oldest(state, K):  # type: ignore[no-untyped-def]
    """Drop the oldest member, also from averages: V -= α x; K is its kernel with all members, for the norms."""
    alpha, factors, oldest = state.alpha, state.factors, 0
    while not state.alive[oldest]:
        oldest += 1
    (G, T), state.alive[oldest] = factors.F.shape, False
    dots = np.empty((G, T))
    for t in range(T):
        a = alpha[t, oldest]
        for g in range(G if a != 0 and factors.p != 1 else 0):
            dots[g, t] = _sum(alpha[t], K[g])
        alpha[t, oldest] = 0
        if a != 0 and factors.p != 1:
            if not alpha[t].any():
                factors.norms[:, t] = 0  # without rounding: the step below leaves 0
                a = 0.0
            _turn_factors(factors, dots, K[:, oldest], t, -a)
    if len(state.beta):
        state.beta[:, :, oldest] = 0


@jit()
def kernel_interval_pass(K, own, given, state, rule, tol, record, steps, history, going):  # type: ignore[no-untyped-def]
    """Learn a block of samples; fill the record and the steps ±τ. See `kernel_pass`, also for `going` and the result.

    K[i, g, s] is the kernel with the support, then with the block itself, own[i, g] that of a sample with itself.
    `given` are the ends of the intervals, weights, positions in the support and the number of samples before. The
    history stays empty, since these hypotheses do not vote.
    """
    (ends, weights, slots, n_before), rule, record = given, IntervalRule(*rule), IntervalRecord(*record)
    state = KernelState(state[0], state[1], state[2], state[3], state[4], Factors(*state[5]), state[6])
    alpha, beta, alive, factors, (begin, kernels) = state.alpha, state.beta, state.alive, state.factors, going
    F, counters, (G, T), S = factors.F, factors.counters, factors.F.shape, alpha.shape[1] - len(weights)
    dots, terms, sizes = np.empty((G, T)), np.empty((G, T)), np.empty(T)
    n_over, n_gone = alive.sum() - state.budget if state.budget > 0 else -len(weights) - 1, 0
    for i in range(begin, len(weights) + 1):
        while n_over > 0:  # after the step of the sample before
            if factors.p != 1 and n_gone == len(kernels):
                return i
            _drop_oldest(state, kernels[n_gone if factors.p != 1 else 0])
            n_over, n_gone = n_over - 1, n_gone + 1
        if i == len(weights):
            break
        low, high, scores, row = ends[0, i], ends[1, i], record.last[i], K[i, :, : S + i]
        _set_sums(alpha[:, : S + i], row, F, dots, scores)
        if np.min(np.abs(scores)) <= tol**0.5 * counters[1]:
            _set_sums(np.abs(alpha[:, : S + i]), np.abs(row), np.abs(F), terms, sizes)
            for t in range(T):
                scores[t] = scores[t] if abs(scores[t]) > tol * sizes[t] else 0.0  # what is left by rounding
        record.scores[i] = scores
        if len(beta):
            _set_means(beta[:, :, : S + i], row, factors, state.mean, n_before + i, dots, record.scores[i])
        for t in range(T):
            counters[1] = max(counters[1], abs(scores[t]))
            for g in range(record.shares.shape[1]):
                record.shares[i, g] += _sign(low[t], high[t]) * F[g, t] * dots[g, t] / T
        counters[0] += _weight(n_before + i + 1, state.mean)
        if not _leaves(low, high, scores, tol):
            continue
        size = _p_norm(own[i], factors.p)
        for t in range(T):
            steps[i, t] = _step(rule, low[t], high[t], scores[t], counters[1], size, weights[i], tol)
        if not np.any(steps[i] != 0):
            continue
        _close_hypothesis(factors)
        slot = slots[i] = slots[i] if slots[i] >= 0 and alive[slots[i]] else S + i  # members keep their places
        for t in range(T):
            a = steps[i, t]
            alpha[t, slot] += a
            for g in range(len(beta)):
                beta[g, t, slot] += a * factors.C[g, t]  # C before this step; see `KernelMachine.coefficients`
            if factors.p != 1 and a != 0:
                _turn_factors(factors, dots, own[i], t, a)
        n_over += not alive[slot]
        alive[slot] = True
    return len(weights) + 1


# -- by projections
@jit()
def _project(L, size, k, half, d):  # type: ignore[no-untyped-def]
    """Solve L half = k and L' d = half, L lower triangular; return ‖half‖², the squared norm of the projection."""
    for r in range(size):
        half[r] = (k[r] - _sum(L[r, :r], half[:r])) / L[r, r]
        d[r] = half[r]
    for r in range(size - 1, -1, -1):
        d[r] /= L[r, r]
        for q in range(r):
            d[q] -= L[r, q] * d[r]
    return _sum(half[:size], half[:size])


@jit()
def projected_interval_pass(K, given, state, size, times, record, updates):  # type: ignore[no-untyped-def]
    """Learn a block by projections, and return the new size of the support; see `_projectron_pass`.

    A sample within `rule.distance` of the span of the support, or any sample once the budget is full, is replaced by
    its projection. The step is the one of least change within the span: the size of the projection takes the place of
    the size of the sample. `updates` become 2 for samples that joined the support, 3 where its budget was full,
    and 1 for other projections.
    """
    (ends, weights, rule), (n_before, mean), record = given, times, IntervalRecord(*record)
    rule, span = IntervalRule(*rule), 1e-10  # fraction of k(x, x), or of the terms of a score, that counts as zero
    alpha, beta, L, members, largest, budget = state
    T, first = alpha.shape[0], K.shape[1] - len(weights)
    k, half, d, steps = np.empty(alpha.shape[1]), np.empty(alpha.shape[1]), np.empty(alpha.shape[1]), np.empty(T)
    for i in range(len(weights)):
        low, high, scores, own = ends[0, i], ends[1, i], record.last[i], K[i, first + i]
        for s in range(size):
            k[s] = K[i, members[s]]  # kernel with the support, new members included
        for t in range(T):
            scores[t] = _sum(alpha[t, :size], k[:size])
            largest[0] = max(largest[0], _sum(np.abs(alpha[t, :size]), np.abs(k[:size])))
        for t in range(T):
            record.scores[i, t] = scores[t]
            if mean >= 0:  # the mean over the hypotheses so far
                record.scores[i, t] -= _sum(beta[t, :size], k[:size]) / _total(n_before + i, mean)
        if not _leaves(low, high, scores, span):
            continue
        inside = _project(L, size, k, half, d)
        residual = own - inside if own - inside > span * own else 0.0  # within rounding of the span
        # δ > η by more than rounding; a full budget projects at any distance
        wanted = residual - rule.distance**2 > span * own and residual > 0
        grows = wanted and not 0 < budget <= size
        length, stepped = own if grows else inside, False
        for t in range(T):
            steps[t] = _step(rule, low[t], high[t], scores[t], largest[0], length, weights[i], span)
            stepped = stepped or steps[t] != 0
        if not stepped or length <= span * own:  # nothing of the sample is in the span
            continue
        updates[i] = 1 if not wanted else 2 if grows else 3
        if grows:
            # the factor of the grown Gram matrix has the row (half', δ)
            L[size, :size] = half[:size]
            L[size, size] = np.sqrt(residual)
            members[size] = first + i
            d[:size] = 0
            d[size] = 1  # the sample itself, not its projection
            size += 1
        since = _total(n_before + i + 1, 2) if mean == 2 else n_before + i + 1.0  # weight of the hypotheses before
        for t in range(T):
            for s in range(size):
                alpha[t, s] += steps[t] * d[s]
                beta[t, s] += steps[t] * d[s] * since
    return size
