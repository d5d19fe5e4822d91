"""Penalties by leave-one-out over features, against scikit-learn: python benchmarks/held_out.py

One view of 30,000 samples, 300 Nyström landmarks and 7 penalties, on one core. CoRegularizedRidgeCV in memory and from
blocks of rows, against scikit-learn's Nystroem with RidgeCV (leave-one-out too), and with GridSearchCV over Ridge in 5
folds. The runs alternate; the times are medians. The memory is the largest that Python and NumPy allocate beyond the
data, measured in a run of its own.
"""

import time
import tracemalloc

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import consilience as cs
from consilience.kernels import RBF

N, P, GAMMA = 30_000, 300, 0.05
ALPHAS = 10.0 ** np.arange(-8, -1)


def main(repeats=3):
    """Print times and memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=N)
    ours = cs.CoRegularizedRidgeCV(RBF(GAMMA), alphas=ALPHAS, n_components=P, random_state=0)
    features = Nystroem(gamma=GAMMA, n_components=P, random_state=0)
    blocks = cs.RowBlocks.of({"x": X}, y, size=4096)
    ridge = GridSearchCV(Ridge(fit_intercept=False), {"alpha": N * ALPHAS}, cv=5, scoring="neg_mean_squared_error")
    runs = {
        "CoRegularizedRidgeCV, in memory": lambda: ours.fit({"x": X}, y).best_score_,
        "CoRegularizedRidgeCV, blocks": lambda: ours.fit(blocks).best_score_,
        "Nystroem, RidgeCV": lambda: (
            make_pipeline(features, RidgeCV(N * ALPHAS, fit_intercept=False)).fit(X, y)[-1].best_score_
        ),
        "Nystroem, GridSearchCV(Ridge, cv=5)": lambda: make_pipeline(features, ridge).fit(X, y)[-1].best_score_,
    }
    times = {name: [] for name in runs}
    with threadpool_limits(1):
        for _ in range(repeats):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
        for name, run in runs.items():
            tracemalloc.start()
            score = run()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{name:36s} {np.median(times[name]):6.2f} s {peak / 2**20:7.0f} MB  score {score:.5f}")


if __name__ == "__main__":
    main()
