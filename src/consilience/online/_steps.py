"""Compiled passes over rows of numbers and over blocks of kernel values; `_linear.py` and `_dual.py` call them.

A pass takes one sample after the other. It computes the scores and the margin. Where the margin is at most
`rule.threshold`, it adds ±τ x to the weights V, with

    τ = clip((1 - margin) / (curvature · size² + ridge/s), s·least, s·cap)

for a sample of weight s.

Hypotheses are W = V F with factors F = (V'V / ‖V‖²)^(p-1) between the views (Fornoni 2009, 3.1).

The passes share their helpers, so they share this file: numba's cache does not notice changes of another file. The
fastest case, two classes with one weight per column, is in `_binary_steps.py`. Passes take named tuples as plain ones:
numba calls are faster with these, and its cache then names no class of ours.
"""

import numpy as np

from .._jit import jit
from ._arrays import Factors, KernelState, LinearState, PassRecord, RowArrays, Rule


# -- sums and factors
@jit(fastmath={"reassoc"})  # lets the compiler use several partial sums
def _sum(alpha, K):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(alpha)):
        total += alpha[j] * K[j]
    return total


@jit()
def _difference(sums, lacks):  # type: ignore[no-untyped-def]
    """Return the sum over the hypotheses so far: that of the last one, less what earlier ones lack; 0 by rounding."""
    left = sums - lacks
    return left if abs(left) > 1e-10 * (abs(sums) + abs(lacks)) else 0.0


@jit()
def _weight(t, mean):  # type: ignore[no-untyped-def]
    """Return the weight of hypothesis t in the mean; with mean = 2 later ones count more (Shamir and Zhang 2013)."""
    return t * (t + 1.0) * (t + 2.0) if mean == 2 else 1.0


@jit()
def _total(n, mean):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of n hypotheses, and of one more with mean = 1; at least 1."""
    return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4 if mean == 2 else n + 1.0 * mean, 1.0)


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
def _rotate(A, k, l, c, s):  # type: ignore[no-untyped-def]
    for j in range(len(A)):
        x, y = A[j, k], A[j, l]
        A[j, k], A[j, l] = c * x - s * y, s * x + c * y


@jit()
def _diagonalize(N, Q):  # type: ignore[no-untyped-def]
    """Turn a small symmetric matrix into a diagonal one by Jacobi rotations, and the identity Q into eigenvectors."""
    left, tol, n_sweeps = np.inf, 0.0, 0
    for k in range(len(N)):  # no entry is larger than the trace of a positive semi-definite matrix
        tol += 1e-16 * abs(N[k, k])
    while left > tol and n_sweeps < 50:  # convergence is quadratic: a few sweeps do
        left, n_sweeps = 0.0, n_sweeps + 1
        for k in range(len(N)):
            for l in range(k):
                left = max(left, abs(N[k, l]))
                if abs(N[k, l]) > tol:
                    theta = (N[l, l] - N[k, k]) / (2 * N[k, l])
                    tangent = (1.0 if theta >= 0 else -1.0) / (abs(theta) + np.sqrt(theta**2 + 1))
                    c = 1 / np.sqrt(tangent**2 + 1)
                    _rotate(N, k, l, c, c * tangent)
                    _rotate(N.T, k, l, c, c * tangent)
                    _rotate(Q, k, l, c, c * tangent)


@jit()
def set_factors(norms, prior, p, side, F):  # type: ignore[no-untyped-def]
    """Set F = (N / ‖V‖²)^(p-1) for N = V'V + diag(prior); leave it unchanged where N is 0."""
    n = len(norms) if side <= 1 else side
    values, N, Q = np.empty(n), np.empty((side, side)), np.eye(side)
    if side <= 1:  # N is diagonal
        for g in range(n):
            norms[g] = max(norms[g], 0.0)  # a squared norm, below 0 by rounding
            values[g] = norms[g] + prior[g]
    else:
        for k in range(side):
            for l in range(side):
                N[k, l] = (norms[k * side + l] + norms[l * side + k]) / 2  # symmetric but for rounding
        _diagonalize(N, Q)
        for k in range(side):
            values[k] = max(N[k, k], 0.0)
    size = _p_norm(values, p)
    for g in range(len(F) if size > 0 else 0):
        if side <= 1:
            F[g] = _power(values[g] / size, p - 1)
            continue
        F[g] = 0.0
        for j in range(side):
            F[g] += Q[g // side, j] * _power(values[j] / size, p - 1) * Q[g % side, j]


@jit()
def _turn_factors(factors, dots, own, t, a):  # type: ignore[no-untyped-def]
    """Update norms and factors of output t for V += a X: V'V += a (V'X + X'V) + a² X'X."""
    for g in range(len(own)):
        # the group (l, k) of g = (k, l)
        other = g if factors.side == 0 else (g % factors.side) * factors.side + g // factors.side
        factors.norms[g, t] += a * (dots[g, t] + dots[other, t]) + a * a * own[g]
    set_factors(factors.norms[:, t], factors.prior, factors.p, factors.side, factors.F[:, t])


@jit()
def _learn_prior(factors, dots, own, code, rival, margin, tau, tol):  # type: ignore[no-untyped-def]
    """Set the prior norms b_k = (R - Σ_t ‖V_t‖²) q_k / (T ‖q‖_p), then the factors (`OrthogonalPerceptron`).

    R is the sum over the updates of 2 τ margin + (2p-1) τ² ‖X‖², with 2 ‖X‖² for two class vectors. It bounds the
    potential Σ_t ‖(v_k, √b_k)_k‖² after each update. q_k - 1 counts the updates at which view k alone was right.
    """
    norms, prior, q, T = factors.norms, factors.prior, factors.learned[1:], factors.norms.shape[1]
    size = _p_norm(own, factors.p) * (1 if rival < 0 else 2)
    factors.learned[0] += 2 * tau * margin + (2 * factors.p - 1) * tau**2 * size
    left = factors.learned[0]
    for t in range(T):
        left -= _p_norm(norms[:, t], factors.p)
    for g in range(len(q)):
        lead = dots[g, code] - dots[g, rival] if rival >= 0 else (2 * code - 1) * dots[g, 0]
        q[g] += lead > tol * np.sqrt(abs(factors.learned[0]) * own[g])  # a lead within rounding counts for no view
    share = max(left, 0.0) / (T * _p_norm(q, factors.p))
    for g in range(len(q)):
        prior[g] = share * q[g]
    for t in range(T):
        set_factors(norms[:, t], prior, factors.p, 0, factors.F[:, t])


@jit()
def _close_hypothesis(factors):  # type: ignore[no-untyped-def]
    """Add to C the factors of the hypothesis that was in use since the last step."""
    for g in range(factors.F.shape[0]):
        for t in range(factors.F.shape[1]):
            factors.C[g, t] += factors.counters[0] * factors.F[g, t]  # counters[0] samples saw it
    factors.counters[0] = 0


# -- decisions: differences within rounding are ties, so that the chunks of a stream do not change decisions
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
def _may_tie(scores, code, rival, margin, near):  # type: ignore[no-untyped-def]
    """Return whether the margin, or the lead of the rival, is so small that the terms must be summed to decide."""
    close = abs(margin) <= near  # larger margins are taken as they are
    for t in range(rival):
        close = close or (t != code and scores[rival] - scores[t] <= near)
    return close


@jit()
def _report(i, margin, weight, counters, wrong):  # type: ignore[no-untyped-def]
    """Record whether sample i is a mistake, and count the hypothesis that made it."""
    counters[0] += weight
    counters[1] = max(counters[1], abs(margin))
    wrong[i] = margin <= 0


@jit()
def _step(rule, margin, size, weight):  # type: ignore[no-untyped-def]
    """Return τ, the length of the step; `size` is the squared norm of the sample."""
    below = rule.curvature * size + rule.ridge / weight
    if rule.least < rule.cap and 1 - margin <= 1e-10:  # a loss this small is rounding
        return 0.0
    least = weight * rule.least
    return max(least, min(weight * rule.cap, (1 - margin) / below)) if below > 0 else least


# -- linear, any number of classes and of weight vectors
@jit()
def _row_products(rows, i, state, absolute, dots):  # type: ignore[no-untyped-def]
    """Set dots = <v_k, x_l> for row i, for all pairs of a weight vector and a view; or the sums of absolute terms."""
    dots[:] = 0
    for l in range(len(state.groups)):
        shift = rows.column_start[i, l] - rows.start[i, l]
        for j in range(rows.start[i, l], rows.stop[i, l]):
            w = state.V[rows.columns[j + shift]]
            for k in range(w.shape[0]):
                for t in range(w.shape[1]):
                    z = w[k, t] * rows.values[j]
                    # group (k, l), or (l) with one vector
                    dots[state.groups[l] + k * state.factors.side, t] += abs(z) if absolute else z


@jit()
def _overlap(rows, i, k, l):  # type: ignore[no-untyped-def]
    """Return <x_k, x_l> for two views of row i, whose columns are sorted."""
    a, b, total = rows.start[i, k], rows.start[i, l], 0.0
    while a < rows.stop[i, k] and b < rows.stop[i, l]:
        left = rows.columns[rows.column_start[i, k] + a - rows.start[i, k]]
        right = rows.columns[rows.column_start[i, l] + b - rows.start[i, l]]
        if left == right:
            total += float(rows.values[a]) * rows.values[b]
        a += left <= right  # as in a merge of sorted lists
        b += right <= left
    return total


@jit()
def _add_matrix(rows, i, t, a, state, rounding):  # type: ignore[no-untyped-def]
    """Add a X to V and a X C to U in output t for row i, each view in its own weight vector; see `_add_row`."""
    V, U, C, side = state.V, state.U, state.factors.C, state.factors.side
    if len(state.intercept):
        state.intercept[0, t] += a
        state.intercept[1, t] += a * C[0, t]
    for l in range(len(state.groups)):
        shift = rows.column_start[i, l] - rows.start[i, l]
        for j in range(rows.start[i, l], rows.stop[i, l]):
            c = rows.columns[j + shift]
            k, change = l if side > 0 else 0, a * rows.values[j]
            total = V[c, k, t] + change
            V[c, k, t] = total if abs(total) > rounding * abs(change) else 0.0
            if len(U):
                for w in range(V.shape[1]):
                    U[c, w, t] += a * C[state.groups[l] + w * side, t] * rows.values[j]


@jit()
def _set_means(rows, i, state, dots, n, means):  # type: ignore[no-untyped-def]
    """Set the scores of row i by the mean of the hypotheses so far, n without the last."""
    C, F, B, U = state.factors.C, state.factors.F, state.intercept, state.U
    since = state.factors.counters[0] + (state.mean == 1)
    for t in range(len(means)):
        sums, lacks = ((C[0, t] + since * F[0, t]) * B[0, t], B[1, t]) if len(B) else (0.0, 0.0)
        for g in range(len(F)):
            sums += (C[g, t] + since * F[g, t]) * dots[g, t]
        for l in range(len(state.groups)):
            k, shift = l if state.factors.side > 0 else 0, rows.column_start[i, l] - rows.start[i, l]
            for j in range(rows.start[i, l], rows.stop[i, l]):
                lacks += rows.values[j] * U[rows.columns[j + shift], k, t]
        means[t] = _difference(sums, lacks) / _total(n, state.mean)


@jit()
def _set_shares(rows, i, state, code, rival, n, shares):  # type: ignore[no-untyped-def]
    """Set the part of each view in the margin of row i: <w_l, x_l> of the true class less its rival.

    w is that of the hypothesis that predicts: V F, or the mean over the n hypotheses so far.
    """
    V, U, factors, side = state.V, state.U, state.factors, state.factors.side
    averages, since = len(U) > 0, factors.counters[0] + (state.mean == 1)
    for l in range(len(state.groups)):
        total, shift = 0.0, rows.column_start[i, l] - rows.start[i, l]
        for j in range(rows.start[i, l], rows.stop[i, l]):
            c = rows.columns[j + shift]
            for t in (code if rival >= 0 else 0, rival):
                if t < 0:
                    continue
                w = -U[c, l if side > 0 else 0, t] if averages else 0.0
                for k in range(V.shape[1]):
                    g = state.groups[l] + k * side
                    w += V[c, k, t] * (factors.C[g, t] + since * factors.F[g, t] if averages else factors.F[g, t])
                sign = -1.0 if t == rival or (rival < 0 and code == 0) else 1.0
                total += sign * rows.values[j] * w
        shares[l] = total / (_total(n, state.mean) if averages else 1.0)


@jit()
def linear_pass(rows, codes, weights, state, rule, tol, n_before, record):  # type: ignore[no-untyped-def]
    """Learn rows of any number of classes; fill the record, return the number of steps."""
    rows, rule, record = RowArrays(*rows), Rule(*rule), PassRecord(*record)
    state = LinearState(state[0], state[1], state[2], state[3], Factors(*state[4]), state[5])
    B, groups, F, side = state.intercept, state.groups, state.factors.F, state.factors.side
    (G, T), n_steps, counters = F.shape, 0, state.factors.counters
    dots, terms, own, total, sizes = np.empty((G, T)), np.empty((G, T)), np.empty(G), np.empty(T), np.zeros(T)
    for i in range(len(codes)):
        _row_products(rows, i, state, False, dots)
        for t in range(T):
            total[t] = 0.0
            for g in range(G):
                total[t] += F[g, t] * dots[g, t]
            total[t] += F[0, t] * B[0, t] if len(B) else 0.0
        code = codes[i]
        margin, rival = _decide(total, code, sizes, 0.0)  # no tolerance yet: sums of terms cost as much as scores
        if _may_tie(total, code, rival, margin, tol**0.5 * counters[1]):
            _row_products(rows, i, state, True, terms)
            for t in range(T):
                sizes[t] = np.sum(np.abs(F[:, t]) * terms[:, t]) + (abs(B[0, t]) if len(B) else 0.0)
            margin, rival = _decide(total, code, sizes, tol)
        record.scores[i] = total
        if len(state.U):
            _set_means(rows, i, state, dots, n_before + i, record.scores[i])
        if len(record.shares):
            _set_shares(rows, i, state, code, rival, n_before + i, record.shares[i])
        _report(i, margin, _weight(n_before + i + 1, state.mean), counters, record.wrong)
        if margin > rule.threshold * (1 + tol):
            continue
        own[:] = 0
        for l in range(len(groups)):
            for k in range(len(groups)):
                if k == l or side > 0:  # products between views matter for full matrices only
                    own[groups[l] + k * side] += _overlap(rows, i, k, l)
        size = _p_norm(own, state.factors.p) + (len(B) > 0) if side == 0 else own.sum()
        # two class vectors change: ‖x‖² counts twice
        tau = _step(rule, margin, size if rival < 0 else 2 * size, weights[i])
        if tau == 0:
            continue
        n_steps += 1
        _close_hypothesis(state.factors)
        for t in (code if T > 1 else 0, rival):  # the true class gains, the best other loses
            if t >= 0:
                a = -tau if t == rival or (T == 1 and code == 0) else tau
                _add_matrix(rows, i, t, a, state, rule.rounding)
                if state.factors.p != 1:
                    _turn_factors(state.factors, dots, own, t, a)
        if len(state.factors.learned):
            _learn_prior(state.factors, dots, own, code, rival, margin, tau, tol)
    return n_steps


# -- by kernels
@jit()
def _kernel_sums(alpha, K, F, dots, total):  # type: ignore[no-untyped-def]
    """Set dots[g, t] = Σ_s α_ts K_gs, and total[t] = Σ_g F_gt dots[g, t]."""
    for t in range(len(total)):
        total[t] = 0
        for g in range(len(K)):
            dots[g, t] = _sum(alpha[t], K[g])
            total[t] += F[g, t] * dots[g, t]


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
        if a != 0 and factors.p != 1:
            for g in range(G):
                dots[g, t] = _sum(alpha[t], K[g])
        alpha[t, oldest] = 0
        if a == 0 or factors.p == 1:
            continue
        if alpha[t].any():
            _turn_factors(factors, dots, K[:, oldest], t, -a)
        else:  # without rounding
            factors.norms[:, t] = 0
            set_factors(factors.norms[:, t], factors.prior, factors.p, factors.side, factors.F[:, t])
    if len(state.beta):
        state.beta[:, :, oldest] = 0


@jit()
def _set_kernel_means(beta, K, factors, mean, n, dots, means):  # type: ignore[no-untyped-def]
    """Set the scores by the mean of the hypotheses so far, n without the last."""
    C, F, since = factors.C, factors.F, factors.counters[0] + (mean == 1)
    for t in range(len(means)):
        sums, lacks = 0.0, 0.0
        for g in range(len(K)):
            sums += (C[g, t] + since * F[g, t]) * dots[g, t]
            lacks += _sum(beta[g, t], K[g])
        means[t] = _difference(sums, lacks) / _total(n, mean)


@jit()
def _set_group_shares(beta, K, factors, mean, n, dots, code, rival, shares):  # type: ignore[no-untyped-def]
    """Set the part of each view in the margin of the hypothesis that predicts, from the sums over the support."""
    C, F, since, m = factors.C, factors.F, factors.counters[0] + (mean == 1), len(shares)
    shares[:] = 0
    for g in range(len(F)):  # group (k, l) of a full matrix belongs to the view l of the sample
        for t in (code if rival >= 0 else 0, rival):
            if t < 0:
                continue
            own = F[g, t] * dots[g, t]
            if len(beta):
                own = ((C[g, t] + since * F[g, t]) * dots[g, t] - _sum(beta[g, t], K[g])) / _total(n, mean)
            shares[g % m] += -own if t == rival or (rival < 0 and code == 0) else own


@jit()
def kernel_pass(K, own, given, state, rule, tol, record, steps, history, going):  # type: ignore[no-untyped-def]
    """Learn a block of samples; fill the record, steps ±τ and, unless empty, the history of factors.

    K[i, g, s] is the kernel with the support, then with the block itself, own[i, g] that of a sample with itself.
    `given` are the classes, weights, positions in the support (-1 for new samples; the pass writes there where a sample
    went) and the number of samples before.

    With a budget and factors, dropping a member of the support needs its kernel with all members. `going` are the
    sample to begin with, and these kernels for the members to drop next, in the form of K. The pass returns the sample
    before which more members must go, or one more than the number of samples when it is done.
    """
    (codes, weights, slots, n_before), rule, record = given, Rule(*rule), PassRecord(*record)
    state = KernelState(state[0], state[1], state[2], state[3], state[4], Factors(*state[5]), state[6])
    alpha, beta, alive, R, _, factors, mean = state
    F, C, counters, (first, kernels) = factors.F, factors.C, factors.counters, going
    (G, T), S = F.shape, alpha.shape[1] - len(codes)
    dots, terms, total, sizes = np.empty((G, T)), np.empty((G, T)), np.empty(T), np.zeros(T)
    n_over, n_gone = alive.sum() - state.budget if state.budget > 0 else -len(codes) - 1, 0
    for i in range(first, len(codes) + 1):
        while n_over > 0:  # after the step of the sample before
            if factors.p != 1 and n_gone == len(kernels):
                return i
            _drop_oldest(state, kernels[n_gone if factors.p != 1 else 0])
            n_over, n_gone = n_over - 1, n_gone + 1
        if i == len(codes):
            break
        row, past = K[i, :, : S + i], beta[:, :, : S + i]
        _kernel_sums(alpha[:, : S + i], row, F, dots, total)
        if len(R):
            total = R @ total  # scores by the kernel between outputs
        code = codes[i]
        margin, rival = _decide(total, code, sizes, 0.0)
        if _may_tie(total, code, rival, margin, tol**0.5 * counters[1]):
            _kernel_sums(np.abs(alpha[:, : S + i]), np.abs(row), np.abs(F), terms, sizes)
            if len(R):
                sizes = np.abs(R) @ sizes
            margin, rival = _decide(total, code, sizes, tol)
        record.scores[i] = total
        if len(beta):
            _set_kernel_means(past, row, factors, mean, n_before + i, dots, record.scores[i])
            if len(R):
                record.scores[i] = R @ record.scores[i]
        if len(record.shares):
            _set_group_shares(past, row, factors, mean, n_before + i, dots, code, rival, record.shares[i])
        _report(i, margin, _weight(n_before + i + 1, mean), counters, record.wrong)
        if margin > rule.threshold * (1 + tol):
            continue
        size = _p_norm(own[i], factors.p) if factors.side <= 1 else own[i].sum()
        distance = R[code, code] + R[rival, rival] - 2 * R[code, rival] if len(R) else 1.0 if rival < 0 else 2.0
        tau = _step(rule, margin, size * distance, weights[i])
        if tau == 0:
            continue
        _close_hypothesis(factors)
        slot = slots[i] = slots[i] if slots[i] >= 0 and alive[slots[i]] else S + i  # members keep their places
        for t in (code if T > 1 else 0, rival):
            if t >= 0:
                a = -tau if t == rival or (T == 1 and code == 0) else tau
                steps[i, t] = a
                alpha[t, slot] += a
                for g in range(len(beta)):
                    beta[g, t, slot] += a * C[g, t]  # C before this step; see `KernelMachine.coefficients`
                if factors.p != 1:
                    _turn_factors(factors, dots, own[i], t, a)
        if len(factors.learned):
            _learn_prior(factors, dots, own[i], code, rival, margin, tau, tol)
        if len(history):
            history[i] = F
        n_over += not alive[slot]
        alive[slot] = True
    return len(codes) + 1
