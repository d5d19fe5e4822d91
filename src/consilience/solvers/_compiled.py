"""Compiled passes over arrays; drivers in the files beside this one check, stop and speak."""

import numpy as np

from .._jit import jit


@jit()
def visit_samples(Q, half, order, x, H, D, upper, signs, tol):  # type: ignore[no-untyped-def]
    """Minimize over the P variables of each sample in turn; x (l, P) and H = (signs ∘ x)'Q (P, l) are changed.

    The gradient is taken where it is needed only, at the sample visited: O(P²); a variable that moves costs O(l).
    """
    P = x.shape[1]
    gradient = np.empty(P)
    for i in order:
        if Q[i, i] <= 0:
            continue
        for k in range(P):
            pull = 0.0
            for j in range(P):
                pull += half[k, j] * H[j, i]
            gradient[k] = signs[i, k] * pull - D[i, k]
        before = x[i].copy()
        _settle(Q[i, i], half, x[i], gradient, upper[i], signs[i], tol)
        for k in range(P):
            step = signs[i, k] * (x[i, k] - before[k])
            if step != 0.0:
                row, column = H[k], Q[i]
                for j in range(len(column)):
                    row[j] += step * column[j]


@jit()
def _settle(q, half, x, gradient, upper, sign, tol):  # type: ignore[no-untyped-def]
    """Minimize over one sample's variables, one after the other, until no gradient is above `tol`."""
    P = len(x)
    for _ in range(10 * P):
        largest = 0.0
        for k in range(P):
            if half[k, k] <= 0:
                continue
            new = min(max(x[k] - gradient[k] / (q * half[k, k]), 0.0), upper[k])
            step = sign[k] * (new - x[k])
            if step != 0:
                largest = max(largest, abs(step) * q * half[k, k])
                x[k] = new
                for j in range(P):
                    gradient[j] += sign[j] * half[j, k] * step * q
        if largest <= tol:
            return


@jit()
def principal_part(Q, rows, scaling, ridge):  # type: ignore[no-untyped-def]
    """The lower triangle of scaling·Q[rows, rows] + ridge·I, in single precision.

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


@jit(nogil=True)
def row_steps(Q, factor, x, gradient, upper, sign, linear, tol, max_steps):  # type: ignore[no-untyped-def]
    """Minimize ½ factor (s∘x)'Q(s∘x) - linear'x over a box, a variable a step, the largest violation first: O(l) each.

    `x` and `gradient` are changed. Every l/4 steps the gap is measured; it stops where the gap is at most tol of the
    primal value.
    """
    l = len(x)
    largest, best = -1.0, -1
    for step in range(max_steps):
        if step % max(l // 4, 1) == 0:
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
        if best < 0:
            return
        curvature = factor * Q[best, best]
        target = x[best] - gradient[best] / curvature if curvature > 0 else -gradient[best] * np.inf
        change = min(max(target, 0.0), upper[best]) - x[best]
        x[best] += change
        pull, row = factor * sign[best] * change, Q[best]
        largest, best = 0.0, -1
        for i in range(l):
            slope = gradient[i] + pull * sign[i] * row[i]
            gradient[i] = slope
            if (slope > largest and x[i] > 0) or (-slope > largest and x[i] < upper[i]):
                largest, best = abs(slope), i
