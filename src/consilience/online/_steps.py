"""Compiled passes of the online learners over rows and Gram blocks; `_linear.py` and `_dual.py` drive them.

One sample after the other: score, margin, step τ = clip((1 - margin) / (q + ridge), least, cap) where the margin is at
most the threshold, and V += ±τ X. Perceptrons have least = cap = step, passive-aggressive learners least = 0.
"""

import numpy as np

from .._jit import jit


# -- pieces
@jit()
def _dot(V, x, k):  # type: ignore[no-untyped-def]
    """Σ_j V[k_j] x_j by four sums that do not wait for each other."""
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
def _sum(alpha, K):  # type: ignore[no-untyped-def]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    last = len(alpha) & ~3
    for j in range(0, last, 4):
        s0 += alpha[j] * K[j]
        s1 += alpha[j + 1] * K[j + 1]
        s2 += alpha[j + 2] * K[j + 2]
        s3 += alpha[j + 3] * K[j + 3]
    for j in range(last, len(alpha)):
        s0 += alpha[j] * K[j]
    return (s0 + s1) + (s2 + s3)


@jit()
def _power(x, exponent):  # type: ignore[no-untyped-def]
    """x^exponent, for whole exponents of use without the function that is slow."""
    if exponent == 0:
        return 1.0
    if exponent == 1:
        return x
    return x * x if exponent == 2 else x**exponent


@jit()
def _shares(values, p, F):  # type: ignore[no-untyped-def]
    """F = (v / (Σ v^p)^(1/p))^(p-1) for values of at least 0; unchanged where all are 0."""
    top, total = 0.0, 0.0
    for g in range(len(values)):
        top = max(top, values[g])
    if top > 0:
        for g in range(len(values)):
            total += _power(values[g] / top, p)
        scale = top * (np.sqrt(total) if p == 2 else total ** (1 / p))
        for g in range(len(values)):
            F[g] = _power(values[g] / scale, p - 1)


@jit()
def factors(norms, prior, p, n_views, F):  # type: ignore[no-untyped-def]
    """F with W = V F: (N/‖V‖²)^(p-1), N = V'V, plus the prior norms on its diagonal; by eigenvalues if N is whole."""
    if len(norms) < n_views * n_views or n_views == 1:  # orthogonal: the diagonal of N
        for g in range(len(norms)):
            norms[g] = max(norms[g], 0.0)
        shifted = np.empty(len(norms))
        for g in range(len(norms)):
            shifted[g] = norms[g] + prior[g]
        _shares(shifted, p, F)
        return
    N = np.empty((n_views, n_views))  # loops: whole expressions take seconds more to compile
    for k in range(n_views):
        for l in range(n_views):
            N[k, l] = (norms[k * n_views + l] + norms[l * n_views + k]) / 2
    values, Q = np.linalg.eigh(N)
    if values[-1] > 0:
        powers = np.empty(n_views)
        for k in range(n_views):
            values[k] = max(values[k], 0.0)
        _shares(values, p, powers)
        for k in range(n_views):
            for l in range(n_views):
                total = 0.0
                for j in range(n_views):
                    total += Q[k, j] * powers[j] * Q[l, j]
                F[k * n_views + l] = total


@jit()
def _weighed(F, dots, t):  # type: ignore[no-untyped-def]
    total = 0.0
    for g in range(len(F)):
        total += F[g, t] * dots[g, t]
    return total


@jit()
def _rival(scores, code, whole, tol):  # type: ignore[no-untyped-def]
    """The best class but one's own, the first of those that rounding cannot tell apart; -1 with one output."""
    best = -1
    for t in range(len(scores)):
        if len(scores) > 1 and t != code and (best < 0 or scores[t] > scores[best]):
            best = t
    for t in range(best):
        if t != code and scores[best] - scores[t] <= tol * (whole[best] + whole[t]):
            return t
    return best


@jit()
def _is_close(scores, code, rival, near):  # type: ignore[no-untyped-def]
    """Whether the margin is near zero, or another class is near the rival, so that terms have to be looked at."""
    if abs(_margin(scores, code, rival)) <= near:
        return True
    close = False
    for t in range(rival):
        close = close or (t != code and scores[rival] - scores[t] <= near)
    return close


@jit()
def _clean(scores, code, rival, whole, tol):  # type: ignore[no-untyped-def]
    """The margin, 0 where it is rounding; sets the only score where there is one."""
    margin = _margin(scores, code, rival)
    large = whole[0] if rival < 0 else whole[code] + whole[rival]
    if abs(margin) <= tol * large:
        margin = 0.0
    if rival < 0:
        scores[0] = margin if code == 1 else -margin
    return margin


@jit()
def _margin(scores, code, rival):  # type: ignore[no-untyped-def]
    if rival < 0:
        return scores[0] if code == 1 else -scores[0]
    return scores[code] - scores[rival]


@jit()
def _step(rule, margin, size):  # type: ignore[no-untyped-def]
    least, cap, ridge, curvature = rule[1], rule[2], rule[3], rule[4]
    below = curvature * size + ridge
    if least < cap and 1 - margin <= 1e-10:  # no loss but by rounding
        return 0.0
    return max(least, min(cap, (1 - margin) / below)) if below > 0 else least


@jit()
def _group_size(own, p):  # type: ignore[no-untyped-def]
    """The squared group norm (Σ_g ‖x_g‖^2p)^(1/p)."""
    top, total = 0.0, 0.0
    for g in range(len(own)):
        top = max(top, own[g])
    if top > 0:
        for g in range(len(own)):
            total += _power(own[g] / top, p)
    return top * total ** (1 / p)


# -- linear, two classes; inlined by hand of numba, since a call with so many arrays takes as long as a row
@jit(inline="always")
def _absolute(values, columns, start, stop, cstart, i, group, V, F):  # type: ignore[no-untyped-def]
    """Σ |terms| of the score of row i."""
    whole = 0.0
    for l in range(len(group)):
        for j in range(start[i, l], stop[i, l]):
            whole += F[group[l]] * abs(V[columns[cstart[i, l] + j - start[i, l]]] * values[j])
    return whole


@jit(inline="always")
def _squares(values, start, stop, i, group, own):  # type: ignore[no-untyped-def]
    """own = ‖x_g‖² of row i."""
    own[:] = 0
    for l in range(len(group)):
        for j in range(start[i, l], stop[i, l]):
            own[group[l]] += float(values[j]) ** 2


@jit(inline="always")
def _add_row(values, columns, start, stop, cstart, i, group, a, rounding, V, U, C):  # type: ignore[no-untyped-def]
    """V += a x of row i, 0 where its terms cancel up to `rounding` of them, and U += a C x where it is kept."""
    for l in range(len(group)):
        first, last, at = start[i, l], stop[i, l], cstart[i, l]
        x, k = values[first:last], columns[at : at + last - first]
        for j in range(len(x)):
            before, change = V[k[j]], a * x[j]
            V[k[j]] = before + change if abs(before + change) > rounding * abs(change) else 0.0
        if len(U):
            for j in range(len(x)):
                U[k[j]] += a * C[group[l]] * x[j]


@jit()
def binary_pass(values, columns, start, stop, cstart, B, group, codes, V, U, norms, F, C, prior, p, rule, tol, state, scores, wrong):  # type: ignore[no-untyped-def]  # noqa: E501  # fmt: skip
    """One pass for two classes, a weight per column; views are groups with factors F.

    V the weights, U = Σ ± τ C x for averages (or empty), B both of the bias (or empty), norms ‖v_g‖², C = Σ F over the
    hypotheses so far. Fills scores and mistakes, returns the number of steps.
    """
    moving, sized = p != 1, rule[1] < rule[2]
    near, limit = tol**0.5, rule[0] * (1 + tol)
    since, largest, n_steps = state[0], state[1], 0
    dots, own = np.empty(len(F)), np.empty(len(F))
    for i in range(len(codes)):
        score = B[0, 0] if len(B) else 0.0
        if moving:
            dots[:] = 0
        for l in range(len(group)):
            first, last, at = start[i, l], stop[i, l], cstart[i, l]
            product = _dot(V, values[first:last], columns[at : at + last - first])
            if moving:
                dots[group[l]] += product
                product *= F[group[l]]
            score += product
        if abs(score) <= near * largest:
            whole = _absolute(values, columns, start, stop, cstart, i, group, V, F)
            whole += abs(B[0, 0]) if len(B) else 0.0
            score = 0.0 if abs(score) <= tol * whole else score
        since += 1
        largest = max(largest, abs(score))
        scores[i] = score
        sign = 1.0 if codes[i] == 1 else -1.0
        wrong[i] = sign * score <= 0
        if sign * score > limit:
            continue
        size = 0.0
        if moving or sized:
            _squares(values, start, stop, i, group, own)
        if sized:
            size = _group_size(own, p) + (len(B) > 0)
        a = sign * _step(rule, sign * score, size)
        if a == 0:
            continue
        n_steps += 1
        for g in range(len(F)):
            C[g] += since * F[g]
        since = 0.0
        if len(B):
            B[0, 0] += a
            B[1, 0] += a * C[0]
        _add_row(values, columns, start, stop, cstart, i, group, a, rule[5], V, U, C)
        if moving:
            for g in range(len(F)):
                norms[g] += 2 * a * dots[g] + a * a * own[g]
            factors(norms, prior, p, len(F), F)
    state[0], state[1] = since, largest
    return n_steps


# -- linear, any number of classes and of weights per column
@jit()
def _row_products(values, columns, start, stop, cstart, group, stride, absolute, V, dots):  # type: ignore[no-untyped-def]
    """<v_k, x_l> for the pairs of a weight vector and a view, or the sums of absolute terms."""
    dots[:] = 0
    for l in range(len(group)):
        shift = cstart[l] - start[l]
        for j in range(start[l], stop[l]):
            w = V[columns[j + shift]]
            for k in range(w.shape[0]):
                for t in range(w.shape[1]):
                    z = w[k, t] * values[j]
                    dots[group[l] + k * stride, t] += abs(z) if absolute else z


@jit()
def _overlap(values, columns, start, stop, cstart, k, l):  # type: ignore[no-untyped-def]
    """<x_k, x_l> of two views of one row, columns in order."""
    i, j, total = start[k], start[l], 0.0
    while i < stop[k] and j < stop[l]:
        a, b = columns[cstart[k] + i - start[k]], columns[cstart[l] + j - start[l]]
        if a == b:
            total += float(values[i]) * values[j]
        i += a <= b
        j += b <= a
    return total


@jit()
def _own_products(values, columns, start, stop, cstart, group, stride, own):  # type: ignore[no-untyped-def]
    own[:] = 0
    L = len(group)
    for l in range(L):
        if stride == 0:
            own[group[l]] += _overlap(values, columns, start, stop, cstart, l, l)
            continue
        for k in range(L):
            own[group[l] + k * stride] = _overlap(values, columns, start, stop, cstart, k, l)


@jit()
def _add_matrix(values, columns, start, stop, cstart, group, stride, t, a, rounding, V, U, C):  # type: ignore[no-untyped-def]
    """V += a X in output t, each view in its own weight vector, 0 where its terms cancel up to `rounding` of them, and
    U += a X C where it is kept.
    """
    for l in range(len(group)):
        shift = cstart[l] - start[l]
        for j in range(start[l], stop[l]):
            c = columns[j + shift]
            k, change = l if stride > 0 else 0, a * values[j]
            total = V[c, k, t] + change
            V[c, k, t] = total if abs(total) > rounding * abs(change) else 0.0
            if len(U):
                for w in range(V.shape[1]):
                    U[c, w, t] += a * C[group[l] + w * stride, t] * values[j]


@jit()
def _turn(dots, own, t, a, side, norms):  # type: ignore[no-untyped-def]
    """N = V'V as V += a X: N += a (V'X + X'V) + a² X'X; `side` views make whole matrices, 0 the diagonal alone."""
    for g in range(len(own)):
        other = g if side == 0 else (g % side) * side + g // side
        norms[g, t] += a * (dots[g, t] + dots[other, t]) + a * a * own[g]


@jit()
def linear_pass(values, columns, start, stop, cstart, B, group, stride, codes, V, U, norms, F, C, prior, p, rule, tol, state, scores, wrong, steps):  # type: ignore[no-untyped-def]  # noqa: E501  # fmt: skip
    """One pass with weights V[column, k, class]: k = 0 where views have columns of their own (stride 0), or one weight
    vector per view over shared columns (stride = number of views). Fills scores, mistakes and steps by class.
    """
    G, T = F.shape
    L = len(group)
    moving = p != 1
    dots, whole, own, total, large = np.empty((G, T)), np.empty((G, T)), np.empty(G), np.empty(T), np.zeros(T)
    for i in range(len(codes)):
        row = (start[i], stop[i], cstart[i])
        _row_products(values, columns, row[0], row[1], row[2], group, stride, False, V, dots)
        for t in range(T):
            total[t] = _weighed(F, dots, t) + (B[0, t] if len(B) else 0.0)
        code, rival = codes[i], _rival(total, codes[i], large, 0.0)
        margin = _margin(total, code, rival)
        if _is_close(total, code, rival, tol**0.5 * state[1]):
            _row_products(values, columns, row[0], row[1], row[2], group, stride, True, V, whole)
            for t in range(T):
                large[t] = np.sum(np.abs(F[:, t]) * whole[:, t]) + (abs(B[0, t]) if len(B) else 0.0)
            rival = _rival(total, code, large, tol)
            margin = _clean(total, code, rival, large, tol)
        state[0] += 1
        state[1] = max(state[1], abs(margin))
        for t in range(len(total)):
            scores[i, t] = total[t]
        wrong[i] = margin <= 0
        if margin > rule[0] * (1 + tol):
            continue
        _own_products(values, columns, row[0], row[1], row[2], group, stride, own)
        size = (1 if rival < 0 else 2) * (_group_size(own, p) + (len(B) > 0) if stride == 0 else own.sum())
        tau = _step(rule, margin, size)
        if tau == 0:
            continue
        for g in range(F.shape[0]):
            for t in range(T):
                C[g, t] += state[0] * F[g, t]
        state[0] = 0
        for t in (code if T > 1 else 0, rival):
            if t < 0:
                continue
            a = -tau if t == rival or (T == 1 and code == 0) else tau
            steps[i, t] = a
            if len(B):
                B[0, t] += a
                B[1, t] += a * C[0, t]
            _add_matrix(values, columns, row[0], row[1], row[2], group, stride, t, a, rule[5], V, U, C)
            if moving:
                _turn(dots, own, t, a, stride, norms)
                factors(norms[:, t], prior, p, L if stride > 0 else G, F[:, t])


@jit()
def row_scores(values, columns, start, stop, cstart, B, group, stride, V, U, F, n_hypotheses):  # type: ignore[no-untyped-def]
    """Scores of one row by the factors F; with U (not empty) of the mean of `n_hypotheses`."""
    G, T = F.shape
    dots, total = np.empty((G, T)), np.zeros((1, T))
    _row_products(values, columns, start[0], stop[0], cstart[0], group, stride, False, V, dots)
    for t in range(T):
        total[0, t] = _weighed(F, dots, t) + (F[0, t] * B[0, t] - (B[1, t] if len(U) else 0) if len(B) else 0)
    if len(U):
        for l in range(len(group)):
            for j in range(start[0, l], stop[0, l]):
                for t in range(T):
                    total[0, t] -= U[columns[cstart[0, l] + j - start[0, l]], l if stride > 0 else 0, t] * values[j]
        total /= n_hypotheses
    return total


# -- linear with the p-norm link
@jit()
def _factor(power, scale, p):  # type: ignore[no-untyped-def]
    """‖v‖_p^(2-p) scale^(p-1), by which W = sign(v)(|v|/scale)^(p-1) becomes w."""
    return scale * power ** (2 / p - 1) if power > 0 else 1.0


@jit()
def _rescale(t, V, W, last, U, power, scale, C, p):  # type: ignore[no-untyped-def]
    """Take the scale of a class from its largest |v|, a power of two; what averages have so far is put into U."""
    top = 0.0
    for k in range(len(V)):
        top = max(top, abs(V[k, t]))
    if top == 0:
        return
    scale[t] = 2.0 ** np.ceil(np.log2(top))
    power[t] = 0
    for k in range(len(V)):
        if len(U):
            U[k, t] += W[k, t] * (C[t] - last[k, t])
            last[k, t] = 0
        share = abs(V[k, t]) / scale[t]
        W[k, t] = np.sign(V[k, t]) * share ** (p - 1)
        power[t] += share**p
    C[t] = 0


@jit()
def _link_row(values, columns, start, stop, cstart, a, t, V, W, last, U, power, scale, base, C, p, changes):  # type: ignore[no-untyped-def]  # fmt: skip
    """v += a x in class t, with W, its power, what averages and votes need; returns the largest |v| over the scale."""
    top = 0.0
    for l in range(len(start)):
        shift = cstart[l] - start[l]
        for j in range(start[l], stop[l]):
            k = columns[j + shift]
            v, w = V[k, t], W[k, t]
            if len(U):
                U[k, t] += w * (C[t] - last[k, t])
                last[k, t] = C[t]
            V[k, t] = v + a * values[j]
            share = abs(V[k, t]) / scale[t]
            top = max(top, share)
            W[k, t] = np.sign(V[k, t]) * share ** (p - 1)
            power[t] = max(power[t] + share**p - (abs(v) / scale[t]) ** p, 0.0)
            if len(changes):
                changes[j, t] = (W[k, t] - w) * (scale[t] / base[t]) ** (p - 1)
    return top


@jit()
def _first_scale(values, start, stop, a):  # type: ignore[no-untyped-def]
    """A power of two from the largest entry of a row; 0 of a row of zeros."""
    top = 0.0
    for l in range(len(start)):
        for j in range(start[l], stop[l]):
            top = max(top, abs(a * values[j]))
    return 2.0 ** np.ceil(np.log2(top)) if top > 0 else 0.0


@jit()
def link_pass(values, columns, start, stop, cstart, codes, V, W, last, U, power, scale, base, C, p, rule, tol, state, scores, wrong, steps, changes, history):  # type: ignore[no-untyped-def]  # noqa: E501  # fmt: skip
    """One pass with w = c W, W = sign(v)(|v|/scale)^(p-1) and c its factor by class; `power` holds Σ(|v|/scale)^p.

    Averages: U += W (C - last) before a weight changes, C = Σ c since the scale was taken. `changes` (or empty) takes
    the change of W at the entries of a row by class, `history` the factors c after a step, both for the scale `base`.
    """
    T, L = V.shape[1], start.shape[1]
    total, whole = np.empty(T), np.empty(T)
    for i in range(len(codes)):
        total[:] = 0
        whole[:] = 0
        for l in range(L):
            shift = cstart[i, l] - start[i, l]
            for j in range(start[i, l], stop[i, l]):
                for t in range(T):
                    z = W[columns[j + shift], t] * values[j]
                    total[t] += z
                    whole[t] += abs(z)
        for t in range(T):
            total[t] *= _factor(power[t], scale[t], p)
            whole[t] *= _factor(power[t], scale[t], p)
        code, rival = codes[i], _rival(total, codes[i], whole, tol)
        margin = _clean(total, code, rival, whole, tol)
        state[0] += 1
        for t in range(len(total)):
            scores[i, t] = total[t]
        wrong[i] = margin <= 0
        if margin > rule[0] * (1 + tol):
            continue
        for t in range(T):
            C[t] += state[0] * _factor(power[t], scale[t], p)
        state[0] = 0
        for t in (code if T > 1 else 0, rival):
            if t < 0:
                continue
            a = -rule[1] if t == rival or (T == 1 and code == 0) else rule[1]
            steps[i, t] = a
            if scale[t] == 0:  # the first step of the class
                scale[t] = base[t] = _first_scale(values, start[i], stop[i], a)
                if scale[t] == 0:
                    continue
            before = power[t]
            row = (start[i], stop[i], cstart[i])
            top = _link_row(
                values, columns, row[0], row[1], row[2], a, t, V, W, last, U, power, scale, base, C, p, changes
            )
            if len(history):
                history[i, t] = _factor(power[t] * (scale[t] / base[t]) ** p, base[t], p)
            if top > 4 or power[t] < 1e-3 * before or C[t] > 1e4 * _factor(power[t], scale[t], p):
                _rescale(t, V, W, last, U, power, scale, C, p)


# -- by kernels
@jit()
def _kernel_sums(alpha, K, F, dots, total):  # type: ignore[no-untyped-def]
    """dots[g, t] = Σ α_ts K_gs, and their sums by the factors."""
    for t in range(len(total)):
        total[t] = 0
        for g in range(len(K)):
            dots[g, t] = _sum(alpha[t], K[g])
            total[t] += F[g, t] * dots[g, t]


@jit()
def _forget(alive, alpha, beta, kept, budget, oldest, newest):  # type: ignore[no-untyped-def]
    """Drop the oldest of the support until the budget is met; returns where to go on, and how many are left."""
    while kept > budget and oldest <= newest:
        if alive[oldest]:
            alive[oldest] = False
            alpha[:, oldest] = 0
            if len(beta):
                beta[:, :, oldest] = 0
            kept -= 1
        oldest += 1
    return oldest, kept


@jit()
def kernel_pass(K, own, codes, slots, alpha, beta, norms, F, C, prior, p, n_views, out_kernel, rule, tol, state, alive, budget, scores, wrong, steps, history):  # type: ignore[no-untyped-def]  # noqa: E501  # fmt: skip
    """One pass over a block: K[i, g, s] between its samples and the support, then the block; own[i, g] = k_g(x, x).

    `slots` says where in the support a sample is already (-1: not), and then where it went. alpha[t, s]; beta[g, t, s]
    = Σ ± τ C for averages (or empty). With a budget the oldest of the support goes as another comes; `alive` marks who
    is there. `history` (or empty) takes the factors after each step.
    """
    G, T = F.shape
    S = alpha.shape[1] - len(codes)
    moving = p != 1
    joint = len(out_kernel) > 0
    dots, terms, total, large = np.empty((G, T)), np.empty((G, T)), np.empty(T), np.zeros(T)
    kept, oldest = alive.sum(), 0
    for i in range(len(codes)):
        _kernel_sums(alpha[:, : S + i], K[i, :, : S + i], F, dots, total)
        if joint:
            total = out_kernel @ total
        code, rival = codes[i], _rival(total, codes[i], large, 0.0)
        margin = _margin(total, code, rival)
        if _is_close(total, code, rival, tol**0.5 * state[1]):
            _kernel_sums(np.abs(alpha[:, : S + i]), np.abs(K[i, :, : S + i]), np.abs(F), terms, large)
            if joint:
                large = np.abs(out_kernel) @ large
            rival = _rival(total, code, large, tol)
            margin = _clean(total, code, rival, large, tol)
        state[0] += 1
        state[1] = max(state[1], abs(margin))
        for t in range(T):
            scores[i, t] = total[t]
        wrong[i] = margin <= 0
        if margin > rule[0] * (1 + tol):
            continue
        size = _group_size(own[i], p) if n_views * n_views > G or n_views == 1 else own[i].sum()
        if joint:
            size *= out_kernel[code, code] + out_kernel[rival, rival] - 2 * out_kernel[code, rival]
        elif rival >= 0:
            size *= 2
        tau = _step(rule, margin, size)
        if tau == 0:
            continue
        for g in range(G):
            for t in range(T):
                C[g, t] += state[0] * F[g, t]
        state[0] = 0
        slot = slots[i] if slots[i] >= 0 and alive[slots[i]] else S + i
        slots[i] = slot
        for t in (code if T > 1 else 0, rival):
            if t < 0:
                continue
            a = -tau if t == rival or (T == 1 and code == 0) else tau
            steps[i, t] = a
            alpha[t, slot] += a
            if len(beta):
                for g in range(G):
                    beta[g, t, slot] += a * C[g, t]
            if moving:
                _turn(dots, own[i], t, a, n_views if n_views * n_views == G else 0, norms)
                factors(norms[:, t], prior, p, n_views, F[:, t])
        if len(history):
            for g in range(G):
                for t in range(T):
                    history[i, g, t] = F[g, t]
        if not alive[slot]:
            alive[slot] = True
            kept += 1
        if budget > 0:
            oldest, kept = _forget(alive, alpha, beta, kept, budget, oldest, S + i)


@jit()
def _solve(L, size, k, half, d):  # type: ignore[no-untyped-def]
    """L half = k and L' d = half, L lower triangular."""
    for r in range(size):
        half[r] = (k[r] - _sum(L[r, :r], half[:r])) / L[r, r]
        d[r] = half[r]
    for r in range(size - 1, -1, -1):
        d[r] /= L[r, r]
        for q in range(r):
            d[q] -= L[r, q] * d[r]


@jit()
def projectron_pass(K, own, codes, alpha, beta, L, members, size, C, threshold, squared, plus, budget, tol, state, scores, wrong, updates):  # type: ignore[no-untyped-def]  # noqa: E501  # fmt: skip
    """One pass of Projectron(++) over a block; K[i] holds the kernel with the support, then with the block.

    `members` are the positions of the support among the columns of K, `size` of them, L the Cholesky factor of their
    Gram matrix; alpha[t, s] and beta (averages) go by place in the support. Scores that differ by less than `tol` of
    the largest terms so far, state[0], are ties, and so are distances and the threshold: solving with L leaves more
    rounding than sums do. Returns the new size.
    """
    T, most = alpha.shape
    total, large = np.empty(T), np.empty(T)
    k, half, d = np.empty(most), np.empty(most), np.empty(most)
    for i in range(len(codes)):
        for s in range(size):
            k[s] = K[i, members[s]]
        for t in range(T):
            total[t] = _sum(alpha[t, :size], k[:size])
            state[0] = max(state[0], _sum(np.abs(alpha[t, :size]), np.abs(k[:size])))
        large[:] = state[0]  # where coefficients cancel, what is left is rounding of what they were
        code, rival = codes[i], _rival(total, codes[i], large, tol)
        margin = _clean(total, code, rival, large, tol)
        for t in range(len(total)):
            scores[i, t] = total[t]
        wrong[i] = margin <= 0
        C += 1
        if margin > 1 - 1e-10 or (margin > 0 and not plus):
            continue
        _solve(L, size, k, half, d)
        inside = _sum(half[:size], half[:size])
        residual = own[i] - inside if own[i] - inside > tol * own[i] else 0.0  # within rounding of the span
        distance = residual if squared else np.sqrt(residual)
        reached = residual - (threshold if squared else threshold**2) > tol * own[i]
        grows = margin <= 0 and reached and residual > 0 and not 0 < budget <= size
        tau = 1.0
        if margin > 0:
            excess = 1 - margin - (distance / threshold if threshold > 0 else np.inf * (distance > 0))
            if not excess > 1e-10 or inside <= 0:
                continue
            below = inside * (1 if rival < 0 else 2)
            tau = min((1 - margin) / below, 2 * excess / below, 1.0)
        updates[i] = 2 if grows else 1
        if grows:
            L[size, :size] = half[:size]
            L[size, size] = np.sqrt(residual)
            members[size] = K.shape[1] - len(codes) + i
            d[:size] = 0
            d[size] = 1
            size += 1
        for t in (code if T > 1 else 0, rival):
            if t < 0:
                continue
            a = -tau if t == rival or (T == 1 and code == 0) else tau
            for s in range(size):
                alpha[t, s] += a * d[s]
                beta[t, s] += a * d[s] * C
    return size


# -- the vote of all hypotheses
@jit()
def voted_pass(K, slots, outputs, coefs, weights, lives, out_kernel, votes):  # type: ignore[no-untyped-def]
    """Let every hypothesis vote: event e adds coefs[e] K[i, g, slots[e]] to output outputs[e], whose factors become
    weights[e, g]; the hypothesis then lives for lives[e] samples (0: the next event belongs to it too).
    """
    G, T = weights.shape[1], votes.shape[1]
    joint = len(out_kernel) > 0
    for i in range(len(votes)):
        run, whole = np.zeros((G, T)), np.zeros((G, T))
        total, large = np.zeros(T), np.zeros(T)
        for e in range(len(slots)):
            t = outputs[e]
            total[t] = 0
            large[t] = 0
            for g in range(G):
                term = coefs[e] * K[i, g, slots[e]]
                run[g, t] += term
                whole[g, t] += abs(term)
                total[t] += weights[e, g] * run[g, t]
                large[t] += abs(weights[e, g]) * whole[g, t]
            if T == 1:
                votes[i, 0] += lives[e] * np.sign(total[0]) * (abs(total[0]) > 1e-12 * large[0])
            elif lives[e] > 0:
                score, size = (out_kernel @ total, np.abs(out_kernel) @ large) if joint else (total, large)
                votes[i, _rival(score, -1, size, 1e-12)] += lives[e]
