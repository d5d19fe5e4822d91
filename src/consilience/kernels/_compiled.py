"""Compiled loops of the kernels; imported at their first use, so that numba loads only then.

Each compiled function fills a block of rows of a matrix and releases Python's global lock; threads share the rows.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import by_rows
from .._jit import jit
from ..solvers.linalg import mirror


# -- histograms
def harmonic_sums(X: Any, Y: Any) -> np.ndarray:
    """Return Σ_j 2 x_j z_j / (x_j + z_j) between the rows of X and Y (None: of X, symmetric), dense or CSR."""
    symmetric = Y is None
    Y = X if symmetric else Y
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X.dtype, Y.dtype))
    if sp.issparse(X):
        arrays = (X.indptr, X.indices, X.data, Y.indptr, Y.indices, Y.data, X.shape[1], symmetric, out)
        # each row of X is compared with all nonzeros of Y
        by_rows(lambda a, b: _harmonic_sparse(a, b, *arrays), X.shape[0], X.shape[0] * Y.nnz)
    else:
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        by_rows(lambda a, b: _harmonic_dense(a, b, X, Y, symmetric, out), X.shape[0], X.shape[0] * Y.size)
    if symmetric:
        mirror(out)
    return out


@jit(nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _harmonic_dense(start, stop, X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    tiny = np.finfo(X.dtype).tiny  # makes 0/0 zero without a branch
    for i in range(start, stop):
        for j in range(i + 1 if symmetric else Y.shape[0]):  # one triangle; `mirror` copies it
            total = out.dtype.type(0)
            for c in range(X.shape[1]):
                total += X[i, c] * Y[j, c] / (X[i, c] + Y[j, c] + tiny)
            out[i, j] = 2 * total


@jit(nogil=True)
def _harmonic_sparse(start, stop, x_ptr, x_col, x_val, y_ptr, y_col, y_val, width, symmetric, out):  # type: ignore[no-untyped-def]
    row = np.zeros(width, dtype=out.dtype)  # row i of X as a dense vector, cleared after use
    for i in range(start, stop):
        for k in range(x_ptr[i], x_ptr[i + 1]):
            row[x_col[k]] += x_val[k]
        for j in range(i + 1 if symmetric else y_ptr.shape[0] - 1):
            total = 0.0
            for k in range(y_ptr[j], y_ptr[j + 1]):
                x = row[y_col[k]]
                if x > 0:  # terms with a zero are zero
                    total += x * y_val[k] / (x + y_val[k])
            out[i, j] = 2 * total
        for k in range(x_ptr[i], x_ptr[i + 1]):
            row[x_col[k]] = 0  # only what was set, so that the cost is that of the nonzeros


# -- strings
def subsequences(
    codes: np.ndarray,
    bounds: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    length: int,
    decay: float,
    out: np.ndarray,
) -> None:
    """Write to out[i] the gap-weighted subsequence kernel of sequence i with the sequences first[i] to last[i] - 1.

    Sequence i is codes[bounds[i] : bounds[i + 1]].
    """
    operations = length * _pairs(bounds, first, last)  # the dynamic program visits each pair of symbols once per level
    arrays = (codes, bounds, first, last, length, decay, out)
    by_rows(lambda a, b: _subsequence_rows(a, b, *arrays), len(first), operations)


def _pairs(bounds: np.ndarray, first: np.ndarray, last: np.ndarray) -> int:
    """Return the number of pairs of a member of sample i and a member of the samples first[i] to last[i] - 1."""
    return int(np.diff(bounds)[: len(first)] @ (bounds[last] - bounds[first]))


@jit(nogil=True)
def _subsequence_rows(start, stop, codes, bounds, first, last, length, decay, out):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, bounds[i + 1] - bounds[i])
    prefixes = np.empty((length, longest))  # one array for all pairs of this thread
    for i in range(start, stop):
        t = codes[bounds[i] : bounds[i + 1]]
        for j in range(first[i], last[i]):
            out[i, j - first[i]] = _gap_weighted(codes[bounds[j] : bounds[j + 1]], t, length, decay, prefixes)


@jit(nogil=True)
def _gap_weighted(s, t, length, decay, prefixes):  # type: ignore[no-untyped-def]
    # Lodhi et al. 2002: prefixes[i, b] is K'_i(s up to its current symbol x, t[:b]). Levels go from length down to 1,
    # so that level i reads level i - 1 of s without x. `ending` is K''_i, the part of K'_i that ends in x.
    prefixes[0, : len(t)] = 1.0
    prefixes[1:, : len(t)] = 0.0
    total = 0.0
    for x in s:
        for b in range(len(t)):
            if x == t[b]:
                total += prefixes[length - 1, b]  # subsequences of length - 1, extended by x
        for i in range(length - 1, 0, -1):
            ending = 0.0
            for b in range(len(t)):
                prefixes[i, b] = decay * prefixes[i, b] + ending
                ending *= decay
                if x == t[b]:
                    ending += decay * decay * prefixes[i - 1, b]
    return decay * decay * total  # λ for the last symbol of either sequence


# -- trees
def common_subtrees(
    forest: tuple[np.ndarray, ...], first: np.ndarray, last: np.ndarray, decay: float, out: np.ndarray
) -> None:
    """Write to out[i] the subset tree kernel of tree i with the trees first[i] to last[i] - 1.

    `forest` is (bounds, production, links, children): tree i has the nodes bounds[i] to bounds[i + 1] - 1, children
    before parents. Node v has the production production[v] and the inner children children[links[v] : links[v + 1]].
    """
    bounds, production = forest[:2]
    tree_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    by_production = np.lexsort((production, tree_of))  # within each tree
    place = np.empty_like(by_production)
    place[by_production] = np.arange(len(place))
    arrays = (*forest, by_production, place, first, last, decay, out)
    by_rows(lambda a, b: _subtree_rows(a, b, *arrays), len(first), _pairs(bounds, first, last))


@jit(nogil=True)
def _subtree_rows(start, stop, bounds, production, links, children, by_production, place, first, last, decay, out):  # type: ignore[no-untyped-def]
    n_productions = production.max() + 1 if len(production) else 0
    count = np.zeros(n_productions, dtype=np.int64)  # number of nodes of tree i with a production
    head = np.empty(n_productions, dtype=np.int64)  # position in by_production where those nodes begin
    stack = np.empty(256)
    offset = np.empty(len(production), dtype=np.int64)
    for i in range(start, stop):
        for k in range(bounds[i], bounds[i + 1]):
            p = production[by_production[k]]
            if count[p] == 0:
                head[p] = k
            count[p] += 1
        for j in range(first[i], last[i]):
            out[i, j - first[i]], stack = _subtree_pair(
                bounds[j], bounds[j + 1], production, links, children, by_production, place, count, head, decay,
                stack, offset,
            )  # fmt: skip
        for k in range(bounds[i], bounds[i + 1]):
            count[production[by_production[k]]] = 0  # cleared for the next tree


@jit(nogil=True)
def _subtree_pair(start, stop, production, links, children, by_production, place, count, head, decay, stack, offset):  # type: ignore[no-untyped-def]
    # Visits the nodes v of one tree, children first. stack[offset[v] + r] is C(v, w) for the r-th node w of the other
    # tree with the same production. The values of the children of v are on top of the stack; those of v replace them.
    total, top = 0.0, 0
    for v in range(start, stop):
        p = production[v]
        if top + count[p] > len(stack):
            stack = np.concatenate((stack, np.empty(len(stack) + count[p])))
        for r in range(count[p]):
            w = by_production[head[p] + r]
            value = decay  # C(v, w) = λ Π_i (1 + C(v_i, w_i)) (Collins and Duffy 2001)
            for c in range(links[v + 1] - links[v]):
                v_child, w_child = children[links[v] + c], children[links[w] + c]
                q = production[v_child]
                if q == production[w_child]:  # C of different productions is 0, a factor of 1
                    value *= 1.0 + stack[offset[v_child] + place[w_child] - head[q]]
            stack[top + r] = value
            total += value
        # children of v are the last nodes on the stack
        bottom = top if links[v] == links[v + 1] else offset[children[links[v]]]
        if bottom < top:  # values of the children are no longer needed
            for r in range(count[p]):
                stack[bottom + r] = stack[top + r]
        offset[v] = bottom
        top = bottom + count[p]
    return total, stack


# -- random features
@jit()
def add_products(X, present, W, b, out):  # type: ignore[no-untyped-def]
    """Write XW + b to the rows of `out` that are present."""
    for i in range(len(X)):
        if present[i]:
            out[i] = b
            for j in range(X.shape[1]):
                x = X[i, j]
                for k in range(W.shape[1]):
                    out[i, k] += x * W[j, k]


@jit()
def add_sparse_products(data, indices, indptr, present, W, b, out):  # type: ignore[no-untyped-def]
    """Write XW + b to the rows of `out` that are present, for sparse rows."""
    for i in range(len(indptr) - 1):
        if present[i]:
            out[i] = b
            for p in range(indptr[i], indptr[i + 1]):
                for k in range(W.shape[1]):
                    out[i, k] += data[p] * W[indices[p], k]
