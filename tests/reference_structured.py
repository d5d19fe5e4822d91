"""The string and tree kernels again, by enumeration: slow, short, and made from the definitions alone."""

from collections import Counter
from itertools import combinations, product


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
