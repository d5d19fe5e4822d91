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
