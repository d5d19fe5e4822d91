"""String and tree kernels beside the same algorithms in plain Python, in one process.

Two hundred random strings of 100 characters (subsequences of 4 symbols) and two hundred random trees of about 50 nodes.
Plain Python is timed on random pairs and scaled to the number of pairs of the matrix, which the printed line says.
"""

import random
import statistics
import time

from consilience.kernels import Subsequence, SubsetTree

N_SAMPLES = 200
N_PAIRS = N_SAMPLES * (N_SAMPLES + 1) // 2


def main():
    rng = random.Random(0)
    strings = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=100)) for _ in range(N_SAMPLES)]
    compare("gap-weighted subsequences", Subsequence(4, 0.5), strings, subsequence_in_python, strings, rng)
    trees = [random_tree(rng, rng.randint(40, 60)) for _ in range(N_SAMPLES)]
    compare("subset trees", SubsetTree(0.4), trees, subset_tree_in_python, [nodes_of(tree) for tree in trees], rng)


def compare(title, kernel, samples, plain, prepared, rng, repeats=5, n_timed=200):
    """Print both times; ours reads the samples in the measured time, plain Python gets them `prepared`."""
    first_call, _ = timed(lambda: kernel(samples[:2]))
    ours, theirs = [], []
    for _ in range(repeats):
        seconds, gram = timed(lambda: kernel(samples))
        ours.append(seconds)
        pairs = [(rng.randrange(N_SAMPLES), rng.randrange(N_SAMPLES)) for _ in range(n_timed)]
        seconds, values = timed(lambda pairs=pairs: [plain(prepared[i], prepared[j]) for i, j in pairs])
        theirs.append(seconds / n_timed * N_PAIRS)
        assert all(abs(gram[i, j] - v) <= 1e-10 * abs(v) for (i, j), v in zip(pairs, values, strict=True))
    median_ours, median_theirs = statistics.median(ours), statistics.median(theirs)
    print(f"{title}: {N_SAMPLES} samples, {N_PAIRS} pairs; first call {first_call:.2f} s (compiling, or loading it)")
    print(f"  ours {median_ours:.3f} s (median of {repeats}, {min(ours):.3f} to {max(ours):.3f})")
    print(
        f"  plain Python {median_theirs:.1f} s (median of {repeats}; each {n_timed} random pairs scaled to all pairs)"
    )
    print(f"  ratio {median_theirs / median_ours:.0f}x (at least 50x expected)")


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def subsequence_in_python(s, t, length=4, decay=0.5):
    """Lodhi et al. 2002, the O(length |s| |t|) dynamic program over lists."""
    prefixes = [[1.0] * len(t)] + [[0.0] * len(t) for _ in range(length - 1)]
    square = decay * decay
    total = 0.0
    for x in s:
        total += sum([value for value, y in zip(prefixes[-1], t, strict=True) if x == y])
        for i in range(length - 1, 0, -1):
            shorter, row, ending = prefixes[i - 1], prefixes[i], 0.0
            for b, y in enumerate(t):
                row[b] = decay * row[b] + ending
                ending *= decay
                if x == y:
                    ending += square * shorter[b]
    return square * total


def subset_tree_in_python(s, t, decay=0.4):
    """Collins & Duffy 2001, the memoized recursion over pairs of nodes of equal production."""
    known = {}

    def common(v, w):
        if v[0] != w[0]:
            return 0.0
        key = (id(v), id(w))
        if key not in known:
            value = decay
            for a, b in zip(v[1], w[1], strict=True):
                value *= 1.0 + common(a, b)
            known[key] = value
        return known[key]

    return sum([common(v, w) for v in s for w in t])


def nodes_of(tree, nodes=None):
    """All nodes as (production, inner children), the root last."""
    nodes = [] if nodes is None else nodes
    inner = [nodes_of(child, nodes)[-1] for child in tree[1:] if isinstance(child, tuple)]
    nodes.append(((tree[0], *(c if isinstance(c, str) else (c[0],) for c in tree[1:])), inner))
    return nodes


def random_tree(rng, n_nodes):
    if n_nodes < 3:
        return (rng.choice("NVDA"), rng.choice(["dog", "cat", "saw", "ran", "the", "old"]))
    left = rng.randint(1, n_nodes - 2)
    return (rng.choice(["S", "NP", "VP", "PP"]), random_tree(rng, left), random_tree(rng, n_nodes - 1 - left))


if __name__ == "__main__":
    main()
