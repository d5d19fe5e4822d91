"""Compiled steps for the dual of the multi-class support vector machine: the variables of a sample at once.

`box_qp` calls them.
"""

import numpy as np

from .._jit import jit


# -- the variables of one sample
@jit()
def settle_samples(curvature, half, even, x, pushed, D, upper, signs, tol):  # type: ignore[no-untyped-def]
    """Minimize over each sample's variables, with the Hessian curvature·½Q_S; x is changed.

    The gradient is curvature·signs ∘ pushed - D.
    """
    gradient = np.empty(x.shape[1])
    for i in range(len(x)):
        for k in range(len(gradient)):
            gradient[k] = curvature * signs[i, k] * pushed[i, k] - D[i, k]
        _settle(curvature, half, even, x[i], gradient, upper[i], signs[i], tol)


@jit()
def loss_and_gap(x, pushed, D, upper, signs):  # type: ignore[no-untyped-def]
    """Return Σ u max(0, -gradient) and the gap, which is the same plus <α, gradient>; see `settle_samples`."""
    loss = linear = 0.0
    for i in range(len(x)):
        for k in range(x.shape[1]):
            slope = signs[i, k] * pushed[i, k] - D[i, k]
            loss += upper[i, k] * max(0.0, -slope)
            linear += x[i, k] * slope
    return loss, loss + linear


@jit()
def settle_block(Q, half, even, x, gradient, upper, signs, level):  # type: ignore[no-untyped-def]
    """Minimize over the samples of a block in turn; those whose violations are at most `level` stay.

    Q is the part of the kernel between them; x and their gradient are changed.
    """
    P = x.shape[1]
    change, push, own = np.empty(P), np.empty(P), np.empty(P)
    for i in range(len(x)):
        worst = 0.0
        for k in range(P):
            if (gradient[i, k] > 0.0 and x[i, k] > 0.0) or (gradient[i, k] < 0.0 and x[i, k] < upper[i, k]):
                worst = max(worst, abs(gradient[i, k]))
        if worst <= level:
            continue
        change[:], own[:] = x[i], gradient[i]
        _settle(Q[i, i], half, even, x[i], own, upper[i], signs[i], 0.01 * worst)
        for k in range(P):
            change[k] = signs[i, k] * (x[i, k] - change[k])
        _times(half, even, change, push)
        for j in range(len(x)):
            for k in range(P):
                gradient[j, k] += Q[i, j] * signs[j, k] * push[k]


@jit()
def add_changes(rows, change, pushed):  # type: ignore[no-untyped-def]
    """Add change'rows to `pushed`, entry by entry of the change: for changes that are mostly 0."""
    for i in range(len(change)):
        for k in range(change.shape[1]):
            step = change[i, k]
            if step != 0.0:
                for j in range(rows.shape[1]):
                    pushed[k, j] += step * rows[i, j]


@jit()
def _times(half, even, change, out):  # type: ignore[no-untyped-def]
    """Fill `out` with ½Q_S times the change, in O(P) where Q_S is even."""
    P = len(change)
    if even:
        shared = half[0, 1] * change.sum()
        for k in range(P):
            out[k] = (half[0, 0] - half[0, 1]) * change[k] + shared
        return
    out[:] = 0.0
    for j in range(P):
        if change[j] != 0.0:
            for k in range(P):
                out[k] += half[j, k] * change[j]


@jit()
def _settle(q, half, even, x, gradient, upper, sign, tol):  # type: ignore[no-untyped-def]
    """Minimize over one sample's variables with the Hessian q·½Q_S; x is changed, `gradient` is used up."""
    if even:
        _settle_even(q * (half[0, 0] - half[0, 1]), q * half[0, 1], x, gradient, upper)
    else:
        _settle_in_turn(q, half, x, gradient, upper, sign, tol)


@jit()
def _settle_even(a, b, x, gradient, upper):  # type: ignore[no-untyped-def]
    """Minimize gradient'd + ½a|d|² + ½b(Σd)² exactly, over changes d that keep x in its box.

    If the sum of the changes is given, each variable has its own parabola, and the changes that follow have a sum. The
    two agree at the root of a decreasing function with linear pieces, found by Newton's method between known ends.
    """
    low = high = total = 0.0
    for k in range(len(x)):
        low -= x[k]
        high += upper[k] - x[k]
    margin = 1e-14 * (high - low)
    low, high = low - margin, high + margin  # the root may lie at an end
    for _ in range(100):
        follows, slope = 0.0, -1.0
        for k in range(len(x)):
            new = x[k] - (gradient[k] + b * total) / a
            if 0.0 < new < upper[k]:
                slope -= b / a
            follows += min(max(new, 0.0), upper[k]) - x[k]
        excess = follows - total
        if abs(excess) <= margin:
            break
        if excess > 0.0:
            low = total
        else:
            high = total
        new = total - excess / slope if slope < 0.0 else np.inf
        total = new if low < new < high else 0.5 * (low + high)
    for k in range(len(x)):
        x[k] = min(max(x[k] - (gradient[k] + b * total) / a, 0.0), upper[k])


@jit()
def _settle_in_turn(q, half, x, gradient, upper, sign, tol):  # type: ignore[no-untyped-def]
    """Minimize over one variable after the other until no gradient is above `tol`, for any Q_S."""
    P = len(x)
    for _ in range(10 * P):
        largest = 0.0
        for k in range(P):
            new = min(max(x[k] - gradient[k] / (q * half[k, k]), 0.0), upper[k])
            step = sign[k] * (new - x[k])
            if step != 0:
                largest = max(largest, abs(step) * q * half[k, k])
                x[k] = new
                for j in range(P):
                    gradient[j] += sign[j] * half[j, k] * step * q
        if largest <= tol:
            return


# -- classes that do not interact
@jit(nogil=True)
def class_rows(first, last, Q, factors, x, gradient, upper, signs, linear, tol, max_steps):  # type: ignore[no-untyped-def]
    """Solve the problems of the classes first..last-1, which are rows of the arrays; `x` and `gradient` are changed."""
    for k in range(first, last):
        _row_steps(Q, factors[k], x[k], gradient[k], upper[k], signs[k], linear[k], tol, max_steps)


@jit(nogil=True)
def _row_steps(Q, factor, x, gradient, upper, sign, linear, tol, max_steps):  # type: ignore[no-untyped-def]
    """Minimize ½ factor (s∘x)'Q(s∘x) - linear'x over a box, a variable a step, the largest violation first: O(l) each.

    `x` and `gradient` are changed. Every l/4 steps the gap is measured; it stops where the gap is at most tol of the
    primal value.
    """
    l = len(x)
    largest, best = -1.0, -1
    for step in range(max_steps):
        if step % max(l // 4, 1) == 0:  # the gap costs as much as a step
            gap = primal = 0.0
            largest, best = 0.0, -1
            for i in range(l):
                slope = gradient[i]
                slack = upper[i] * max(0.0, -slope)
                gap += slack + x[i] * slope
                primal += slack + 0.5 * x[i] * (slope + linear[i])
                if (slope > largest and x[i] > 0) or (-slope > largest and x[i] < upper[i]):
                    largest, best = abs(slope), i
            if gap <= tol * primal:
                return
        if best < 0:  # no violation is left
            return
        # the largest violation (Minh, Bazzani and Murino 2016, Lemma 31)
        target = x[best] - gradient[best] / (factor * Q[best, best])
        change = min(max(target, 0.0), upper[best]) - x[best]
        x[best] += change
        signed, row = factor * sign[best] * change, Q[best]
        largest, best = 0.0, -1
        for i in range(l):
            slope = gradient[i] + signed * sign[i] * row[i]  # the next largest violation comes with the update
            gradient[i] = slope
            if (slope > largest and x[i] > 0) or (-slope > largest and x[i] < upper[i]):
                largest, best = abs(slope), i


# -- factors
@jit()
def principal_part(Q, rows, scaling, ridge):  # type: ignore[no-untyped-def]
    """Return the lower triangle of scaling·Q[rows, rows] + ridge·I, in single precision.

    Tiny entries become 0: single precision does not see them, but computes slowly with products below its range.
    """
    part = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for a in range(len(rows)):
        row = Q[rows[a]]
        for b in range(a + 1):
            entry = scaling * row[rows[b]]
            part[a, b] = entry if abs(entry) > 1e-9 else 0.0
        part[a, a] += ridge
    return part


# -- over features: Q = 2TT', and M = Σ_i (signs ∘ α)_i S ⊗ t_i is kept instead of Q
@jit(nogil=True, fastmath={"reassoc", "contract"})
def _dot(x, z):  # type: ignore[no-untyped-def]
    """Return <x, z>; the order of the additions is free, so that they run in parallel."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * z[j]
    return total


@jit(nogil=True)
def _add(step, row, out):  # type: ignore[no-untyped-def]
    """Add a multiple of a row to `out`."""
    for j in range(len(row)):
        out[j] += step * row[j]


@jit(nogil=True)
def _shuffle(order, state):  # type: ignore[no-untyped-def]
    """Put `order` in random order, by Fisher and Yates with Marsaglia's xorshift; return the generator's state."""
    for last in range(len(order) - 1, 0, -1):
        state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        state ^= state >> np.uint64(7)
        state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        chosen = np.int64(state % np.uint64(last + 1))
        order[last], order[chosen] = order[chosen], order[last]
    return state


@jit(nogil=True)
def row_feature_steps(T, weight, row, active, w, eps, visits, state):  # type: ignore[no-untyped-def]
    """Minimize over one class's variables in turn, by turns over the active ones; x, w and `active` are changed.

    `row` has x, the upper bounds, the signs and D of the samples whose features are T; w = weight Σ sign x t. A
    variable that a bound holds by more than the largest violation of the last turn is no longer active. It stops after
    `visits` variables or where no violation is above `eps`.
    """
    x, upper, sign, linear = row
    order, least, largest = np.flatnonzero(active), np.inf, 0.0
    while visits > 0 and len(order):
        state = _shuffle(order, state)
        largest, kept = 0.0, 0
        visits -= len(order)
        for place in range(len(order)):
            i = order[place]
            t = T[i]
            slope = sign[i] * weight * _dot(w, t) - linear[i]
            low, high = x[i] <= 0.0, x[i] >= upper[i]
            if (low and slope > least) or (high and slope < -least):
                active[i] = False
                continue
            order[place], order[kept] = order[kept], i
            kept += 1
            if (low and slope >= 0.0) or (high and slope <= 0.0):
                continue
            largest = max(largest, abs(slope))
            curvature = weight * weight * _dot(t, t)
            if curvature > 0.0:
                new = min(max(x[i] - slope / curvature, 0.0), upper[i])
            else:
                new = upper[i] if slope < 0.0 else 0.0
            if new != x[i]:
                _add(sign[i] * weight * (new - x[i]), t, w)
                x[i] = new
        order = order[:kept]
        least = largest if largest > 0.0 else np.inf
        if largest <= eps:
            break


@jit(nogil=True)
def row_feature_gap(T, weight, row, active, w):  # type: ignore[no-untyped-def]
    """Return Σ u max(0, -gradient), <x, gradient>, and the largest violation of active variables and of the others."""
    x, upper, sign, linear = row
    loss = product = 0.0
    worst, hidden = 0.0, 0.0
    for i in range(len(x)):
        slope = sign[i] * weight * _dot(w, T[i]) - linear[i]
        loss += upper[i] * max(0.0, -slope)
        product += x[i] * slope
        if (slope > 0.0 and x[i] > 0.0) or (slope < 0.0 and x[i] < upper[i]):
            if active[i]:
                worst = max(worst, abs(slope))
            else:
                hidden = max(hidden, abs(slope))
    return loss, product, worst, hidden


@jit(nogil=True)
def _sample_slopes(T, i, codes, M, x, upper, sign, linear, slopes):  # type: ignore[no-untyped-def]
    """Fill the gradient of one sample's variables, signs ∘ SM t_i - D; return the largest violation."""
    S, group = codes
    for k in range(len(x)):
        slopes[k] = 0.0
    for d in range(len(M)):
        score = _dot(M[d], T[group[d], i])
        for k in range(len(x)):
            slopes[k] += S[k, d] * score
    worst = 0.0
    for k in range(len(x)):
        slope = sign[k] * slopes[k] - linear[k]
        slopes[k] = slope
        if (slope > 0.0 and x[k] > 0.0) or (slope < 0.0 and x[k] < upper[k]):
            worst = max(worst, abs(slope))
    return worst


@jit(nogil=True)
def _all_held(x, upper, slopes, least):  # type: ignore[no-untyped-def]
    """Tell whether bounds hold all variables of a sample whose bounds differ, by more than `least`."""
    for k in range(len(x)):
        low, high = x[k] <= 0.0 and slopes[k] > least, x[k] >= upper[k] and slopes[k] < -least
        if upper[k] > 0.0 and not (low or high):
            return False
    return True


@jit(nogil=True)
def sample_feature_steps(T, codes, halves, even, parts, active, M, eps, visits, state):  # type: ignore[no-untyped-def]
    """Minimize over the variables of one sample after the other, by turns over the active samples; see above.

    T (J, n, q) has the features of the samples once for each kernel between outputs, `halves` (J, P, P) are these
    kernels between classes, and `codes` are S and the kernel of each of its columns, which is a row of M.
    """
    x, upper, sign, linear = parts
    S, group = codes
    slopes, change, half = np.empty(x.shape[1]), np.empty(x.shape[1]), halves[0].copy()
    order, least, largest = np.flatnonzero(active), np.inf, 0.0
    while visits > 0 and len(order):
        state = _shuffle(order, state)
        largest, kept = 0.0, 0
        visits -= len(order)
        for place in range(len(order)):
            i = order[place]
            worst = _sample_slopes(T, i, codes, M, x[i], upper[i], sign[i], linear[i], slopes)
            if _all_held(x[i], upper[i], slopes, least):
                active[i] = False
                continue
            order[place], order[kept] = order[kept], i
            kept += 1
            if worst <= 0.0:
                continue
            largest = max(largest, worst)
            curvature = _dot(T[0, i], T[0, i])
            if len(T) > 1:  # the Hessian Σ_j |t_ij|² Q_j is not a multiple of one matrix
                half[:], curvature = curvature * halves[0], 1.0
                for j in range(1, len(T)):
                    half += _dot(T[j, i], T[j, i]) * halves[j]
            change[:] = x[i]
            if half[0, 0] * curvature > 0.0:
                _settle(curvature, half, even, x[i], slopes, upper[i], sign[i], 0.01 * worst)
            else:  # all features are 0: only -Dα is left
                for k in range(len(change)):
                    x[i, k] = upper[i, k] if linear[i, k] > 0.0 else 0.0
            for d in range(len(M)):
                step = 0.0
                for k in range(len(change)):
                    step += sign[i, k] * (x[i, k] - change[k]) * S[k, d]
                if step != 0.0:
                    _add(step, T[group[d], i], M[d])
        order = order[:kept]
        least = largest if largest > 0.0 else np.inf
        if largest <= eps:
            break


@jit(nogil=True)
def sample_feature_gap(T, codes, parts, active, M):  # type: ignore[no-untyped-def]
    """Return Σ u max(0, -gradient), <x, gradient>, and the largest violation of active samples and of the others."""
    x, upper, sign, linear = parts
    slopes = np.empty(x.shape[1])
    loss = product = 0.0
    worst, hidden = 0.0, 0.0
    for i in range(len(x)):
        own = _sample_slopes(T, i, codes, M, x[i], upper[i], sign[i], linear[i], slopes)
        for k in range(len(slopes)):
            loss += upper[i, k] * max(0.0, -slopes[k])
            product += x[i, k] * slopes[k]
        if active[i]:
            worst = max(worst, own)
        else:
            hidden = max(hidden, own)
    return loss, product, worst, hidden
