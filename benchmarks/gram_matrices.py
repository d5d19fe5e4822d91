"""Gram matrices beside scikit-learn's, in one process: time, memory and growth with n.

Run by ``python benchmarks/gram_matrices.py``.
"""

import statistics
import time
import tracemalloc

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel

from consilience.kernels import RBF, ChiSquared, Laplacian


def seconds(functions, repeats):
    """Median times of functions that take turns, so that a slow moment of the machine meets all of them."""
    times = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def peak_megabytes(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main():
    rng = np.random.default_rng(0)
    print("Gram matrix of n samples of 200 columns; medians; ratio = scikit-learn's time / ours")
    print(f"{'kernel':<22}{'n':>6}{'ours':>10}{'sklearn':>10}{'ratio':>8}{'ours MB':>9}{'sklearn MB':>12}")
    peers = {
        "RBF": (RBF(0.1), lambda X: rbf_kernel(X, gamma=0.1), (1000, 2000, 4000), 9),
        "ChiSquared": (ChiSquared(0.1), lambda X: chi2_kernel(X, gamma=0.1), (1000, 2000, 4000), 3),
        "Laplacian": (Laplacian(0.1), lambda X: laplacian_kernel(X, gamma=0.1), (1000, 2000), 3),
    }
    for name, (kernel, peer, sizes, repeats) in peers.items():
        for n in sizes:
            X = rng.random((n, 200))
            assert np.allclose(kernel(X), peer(X), rtol=1e-12, atol=1e-12)
            ours, theirs = seconds([lambda k=kernel, X=X: k(X), lambda p=peer, X=X: p(X)], repeats)
            memory = [peak_megabytes(lambda f=f, X=X: f(X)) for f in (kernel, peer)]
            print(
                f"{name:<22}{n:>6}{ours:>9.3f}s{theirs:>9.3f}s{theirs / ours:>8.2f}{memory[0]:>9.0f}{memory[1]:>12.0f}"
            )
    S = sp.random(4000, 2000, density=0.05, random_state=0, format="csr")
    ours, dense = seconds([lambda: ChiSquared(0.1)(S), lambda: ChiSquared(0.1)(S.toarray())], 3)
    print(f"ChiSquared on CSR, 4000 x 2000, 5 % nonzero: {ours:.2f} s; the same made dense: {dense:.2f} s")


if __name__ == "__main__":
    main()
