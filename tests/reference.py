"""Every algorithm again: slow, short, and made from the definitions alone."""

from collections import Counter
from itertools import combinations, product

import numpy as np


def gram(k, X, Y=None):
    """A kernel's matrix, pair by pair."""
    return np.array([[k(x, z) for z in (X if Y is None else Y)] for x in X])


def linear(x, z):
    return sum(a * b for a, b in zip(x, z, strict=True))


def squared_distance(x, z):
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def city_block(x, z):
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


def chi_squared(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def additive_chi_squared(x, z):
    return sum(2 * a * b / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def intersection(x, z):
    return sum(min(a, b) for a, b in zip(x, z, strict=True))


def centered(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def normalized(K):
    return np.array([[K[i, j] / np.sqrt(K[i, i] * K[j, j]) for j in range(len(K))] for i in range(len(K))])


def nystroem(K, landmarks):
    """K(X, Z) K(Z, Z)⁺ K(Z, X)."""
    C = K[:, landmarks]
    return C @ np.linalg.pinv(K[np.ix_(landmarks, landmarks)], hermitian=True) @ C.T


def combine(outputs, weights, present):
    """Σ_v c_v f_v over the views present, c rescaled so that Σ|c| stays; sample by sample."""
    n, m, P = outputs.shape
    result = np.zeros((n, P))
    for i in range(n):
        there = [v for v in range(m) if present[i, v]]
        scale = sum(abs(w) for w in weights) / sum(abs(weights[v]) for v in there)
        for v in there:
            result[i] += scale * weights[v] * outputs[i, v]
    return result


def late_fusion(models, views, present, weights):
    """Weighted mean of the probabilities of the models whose view is there."""
    rows = []
    for i in range(len(present)):
        there = [v for v in range(len(models)) if present[i, v]]
        answers = [weights[v] * models[v].predict_proba(views[v][i : i + 1])[0] for v in there]
        rows.append(np.sum(answers, axis=0) / sum(weights[v] for v in there))
    return np.array(rows)


def spectrum(s, t, length):
    counts = [Counter(tuple(r[i : i + length]) for i in range(len(r) - length + 1)) for r in (s, t)]
    return sum(counts[0][u] * counts[1][u] for u in counts[0])


def subsequence(s, t, length, decay):
    features = []
    for r in (s, t):
        weights = Counter()
        for places in combinations(range(len(r)), length):
            weights[tuple(r[p] for p in places)] += decay ** (places[-1] - places[0] + 1)
        features.append(weights)
    return sum(features[0][u] * features[1][u] for u in features[0])


def subset_tree(s, t, decay):
    """Collins & Duffy 2001 by plain recursion, on nested tuples."""
    return sum(_common(v, w, decay) for v in _nodes(s) for w in _nodes(t))


def _nodes(tree):
    return [tree, *(node for child in tree[1:] if isinstance(child, tuple) for node in _nodes(child))] if tree else []


def _production(node):
    return [node[0], *((child[0], "inner") if isinstance(child, tuple) else (child, "leaf") for child in node[1:])]


def _common(v, w, decay):
    if _production(v) != _production(w):
        return 0.0
    value = decay
    for a, b in zip(v[1:], w[1:], strict=True):
        value *= 1 + (_common(a, b, decay) if isinstance(a, tuple) else 0)
    return value


def common_fragments(s, t):
    """The number of pairs of equal fragments: every fragment of both trees written out."""
    counts = [Counter(fragment for node in _nodes(tree) for fragment in _fragments(node)) for tree in (s, t)]
    return sum(counts[0][u] * counts[1][u] for u in counts[0])


def _fragments(node):
    """All fragments rooted at a node; ("NP",) stands for an inner node cut off, (label, (children)) for a kept one."""
    choices = [[(c[0],), *_fragments(c)] if isinstance(c, tuple) else [c] for c in node[1:]]
    return [(node[0], chosen) for chosen in product(*choices)]
