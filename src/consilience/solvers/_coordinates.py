"""Compiled coordinate steps for the dual of maximum margin regression.

`margin` and `_by_class` call those over kernel rows, `margin_features` those over features.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit


class Variables(NamedTuple):
    """Dual variables of the samples, with what a step over features reads."""

    a: np.ndarray  # α
    upper: np.ndarray
    target: np.ndarray
    norms: np.ndarray  # diagonal of Q
    of: np.ndarray  # label of each sample


@jit()
def violations(a, g, upper, out):  # type: ignore[no-untyped-def]
    """Fill `out` with how far each variable is from optimal; return the duality gap Σ a g⁺ + (upper - a) g⁻."""
    gap = 0.0
    for i in range(len(a)):
        v = g[i]
        if v >= 0.0:
            out[i] = v if a[i] > 0.0 else 0.0  # at 0 a positive gradient is optimal
            gap += a[i] * v
        else:
            out[i] = -v if a[i] < upper[i] else 0.0  # at the upper bound a negative one is
            gap -= (upper[i] - a[i]) * v
    return gap


@jit()
def _minimum(a, v, q, upper):  # type: ignore[no-untyped-def]
    """Return where a variable has its minimum within 0..upper, at gradient v and curvature q."""
    if q <= 0.0:
        return upper if v < 0.0 else 0.0  # no curvature: the minimum is at a bound
    return min(max(a - v / q, 0.0), upper)


@jit()
def _is_held(a, v, upper, level):  # type: ignore[no-untyped-def]
    """Tell whether a bound holds a variable whose gradient is beyond `level`."""
    return (a <= 0.0 and v > level) or (a >= upper and v < -level)


@jit()
def _add(step, row, g):  # type: ignore[no-untyped-def]
    """Add a multiple of a row to g."""
    for j in range(len(g)):
        g[j] += step * row[j]


# -- over rows of the kernel
@jit()
def _settle(Q, g, a, upper, eps, sweeps):  # type: ignore[no-untyped-def]
    """Minimize over few variables in turn, where the gradient is above `eps`; a and g are changed."""
    for _ in range(sweeps):
        rested = True
        for i in range(len(a)):
            v = g[i]
            if abs(v) <= eps or _is_held(a[i], v, upper[i], 0.0):
                continue
            new = _minimum(a[i], v, Q[i, i], upper[i])
            d = new - a[i]
            if d != 0.0:
                rested = False
                a[i] = new
                for j in range(len(a)):
                    g[j] += d * Q[i, j]
        if rested:
            break


@jit()
def kernel_steps(chosen, rows, K, A, of, g, a, upper, eps, sweeps):  # type: ignore[no-untyped-def]
    """Minimize over the chosen variables, in at most `sweeps` turns over them; a is changed, its change returned.

    K[rows[k]] is the row of the input kernel of sample chosen[k], A the kernel of the labels.
    """
    Q = np.empty((len(chosen), len(chosen)))  # Q = A ∘ K between the chosen samples alone
    for k in range(len(chosen)):
        labels = A[of[chosen[k]]]
        for l in range(len(chosen)):
            Q[k, l] = K[rows[k], chosen[l]] * labels[of[chosen[l]]]
    before = a[chosen]
    new = before.copy()
    _settle(Q, g[chosen], new, upper[chosen], eps, sweeps)
    a[chosen] = new
    return new - before


@jit()
def spread(change, of_rows, rows, K, ends, labels, g):  # type: ignore[no-untyped-def]
    """Bring the gradient up to date with changes of some variables.

    Samples are sorted by label, those of label t end before ends[t]. `labels` is the label kernel as (base, starts,
    others, extra): it is base everywhere, and extra[p] more for the label others[p], starts[t] <= p < starts[t + 1].
    """
    base, starts, others, extra = labels
    for k in range(len(change)):
        if change[k] == 0.0:
            continue
        row, t = K[rows[k]], of_rows[k]
        if base != 0.0:  # row t of Q is base·K for all labels, and extra[p]·K more for the labels listed
            _add(change[k] * base, row, g)
        for p in range(starts[t], starts[t + 1]):
            u = others[p]
            same = slice(ends[u - 1] if u else 0, ends[u])
            _add(change[k] * extra[p], row[same], g[same])


@jit()
def add_rows(d, of_rows, K, A, of, g):  # type: ignore[no-untyped-def]
    """g += Σ_k d_k A[of_rows[k], of] ∘ K[k], A the label kernel."""
    for k in range(len(d)):
        labels = A[of_rows[k]]
        for j in range(len(g)):
            g[j] += d[k] * labels[of[j]] * K[k, j]


@jit()
def class_steps(ends, grams, starts, base, features, w, seen, g, a, upper, eps, sweeps):  # type: ignore[no-untyped-def]
    """One turn over the classes: minimize over the variables of each, in at most `sweeps` turns over them.

    Samples are sorted by class, those of class c end before ends[c]; grams[starts[c]:] is the class's own matrix.
    Changes of other classes arrive as base·features·w, w = Σ (changes of a)·features; seen[c] is the w that class c
    has taken into account. Returns the number of steps.
    """
    moved, first = 0, 0
    for c in range(len(ends)):
        last = ends[c]
        size = last - first
        own = grams[starts[c] : starts[c] + size * size].reshape(size, size)
        g_c, a_c, upper_c, features_c = g[first:last], a[first:last], upper[first:last], features[first:last]
        first = last
        if base != 0.0:
            # what other classes have changed since the last visit; own changes are part of seen[c]
            g_c += np.dot(features_c, (base * (w - seen[c])).astype(features.dtype))
        for _ in range(sweeps):
            rested = True
            for i in range(size):
                v = g_c[i]
                if abs(v) <= eps or _is_held(a_c[i], v, upper_c[i], 0.0):
                    continue
                new = _minimum(a_c[i], v, own[i, i], upper_c[i])
                d = new - a_c[i]
                if d != 0.0:
                    rested = False
                    moved += 1
                    a_c[i] = new
                    _add(d, own[i], g_c)  # b ΦΦ' included
                    _add(d, features_c[i], w)
            if rested:
                break
        seen[c] = w
    return moved


# -- over features
@jit(fastmath={"reassoc", "contract"})
def _dot(x, z):  # type: ignore[no-untyped-def]
    """Return <x, z>; the order of the additions is free, so that they run in parallel."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * z[j]
    return total


@jit()
def dense_steps(order, Phi, labels, W, variables, least):  # type: ignore[no-untyped-def]
    """One turn over the variables of samples with features Phi; W and α are changed.

    `labels` are `LabelRows`. Variables at a bound with a gradient beyond `least` are left out of the next turns:
    `order` holds the others first. Returns the largest violation and the number of variables that stay.
    """
    a, upper, target, norms, of = variables
    rows, read, write = labels
    largest, kept = 0.0, 0
    for position in range(len(order)):
        i = order[position]
        c = of[i]
        v = -target[i]  # the gradient <y_c, Wφ_i> - target
        for k in range(rows.shape[1]):
            if read[c, k] != 0.0:  # coordinates of labels are often 0
                v += read[c, k] * _dot(W[rows[c, k]], Phi[i])
        if _is_held(a[i], v, upper[i], least):
            continue
        order[position], order[kept] = order[kept], i  # variables that stay come first
        kept += 1
        if (a[i] <= 0.0 and v >= 0.0) or (a[i] >= upper[i] and v <= 0.0):
            continue
        largest = max(largest, abs(v))
        new = _minimum(a[i], v, norms[i], upper[i])
        d = new - a[i]
        if d != 0.0:
            a[i] = new
            for k in range(rows.shape[1]):
                if write[c, k] != 0.0:
                    _add(d * write[c, k], Phi[i], W[rows[c, k]])
    return largest, kept


@jit()
def sparse_steps(order, matrix, labels, W, variables, least):  # type: ignore[no-untyped-def]
    """One turn over the same, for features in compressed rows (data, indices, indptr); only nonzeros are touched."""
    data, indices, indptr = matrix
    a, upper, target, norms, of = variables
    rows, read, write = labels
    largest, kept = 0.0, 0
    for position in range(len(order)):
        i = order[position]
        c = of[i]
        own, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        v = -target[i]
        for k in range(rows.shape[1]):
            row, weight = W[rows[c, k]], read[c, k]
            if weight != 0.0:
                for p in range(len(own)):
                    v += weight * row[columns[p]] * own[p]
        if _is_held(a[i], v, upper[i], least):
            continue
        order[position], order[kept] = order[kept], i
        kept += 1
        if (a[i] <= 0.0 and v >= 0.0) or (a[i] >= upper[i] and v <= 0.0):
            continue
        largest = max(largest, abs(v))
        new = _minimum(a[i], v, norms[i], upper[i])
        d = new - a[i]
        if d != 0.0:
            a[i] = new
            for k in range(rows.shape[1]):
                row, step = W[rows[c, k]], d * write[c, k]
                if step != 0.0:
                    for p in range(len(own)):
                        row[columns[p]] += step * own[p]
    return largest, kept
