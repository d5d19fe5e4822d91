"""Compiled passes of the vector perceptron; `vector.py` drives them."""

import numpy as np

from .._jit import jit


@jit()
def operator_pass(sums, K, codes, A, margin, step, updated, wrong):  # type: ignore[no-untyped-def]
    """Figure 1 over a block of samples in order: where <y_i, Wφ_i> < margin, W += step y_i φ_i'.

    sums[i, t] = Σ α_j k(x_i, x_j) over the support of class t before the block, kept up within it; K is the kernel of
    the block, A that of the labels. Fills which samples changed W, and which were predicted wrongly before; a tie is
    wrong, and what rounding cannot tell apart is one.
    """
    for i in range(len(codes)):
        scores, terms = A @ sums[i], np.abs(A) @ np.abs(sums[i])
        wrong[i] = False
        for t in range(len(scores)):
            tied = scores[codes[i]] - scores[t] <= 1e-10 * (terms[codes[i]] + terms[t])
            wrong[i] = wrong[i] or (t != codes[i] and tied)
        updated[i] = scores[codes[i]] < margin * (1 - 1e-10)
        if updated[i]:
            for j in range(i + 1, len(codes)):
                sums[j, codes[i]] += step * K[i, j]


@jit()
def coefficient_pass(Q, order, alpha, margin, step):  # type: ignore[no-untyped-def]
    """Figure 2 over the samples in order: where Σ_j α_j Q_ij < margin, α += step Q_i; returns how often."""
    updates = 0
    for i in order:
        if np.dot(Q[i], alpha) < margin:
            updates += 1
            for j in range(len(alpha)):
                alpha[j] += step * Q[i, j]
    return updates
