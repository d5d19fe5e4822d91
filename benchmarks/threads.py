"""Threads of BLAS and processes together: python benchmarks/threads.py [part ...]

Parts: compare, search, threads; all by default.

compare, search: wall and CPU seconds of `compare` and of scikit-learn's GridSearchCV over our estimators, with one
process and with two, BLAS as it is by default. CPU seconds are those of this process and its workers: if processes and
threads shared the cores badly, they would grow by much more than the start of the workers takes. The threads of BLAS
that workers have are printed first. threads: learned weights of views from four starts, and fits of single views, one
after the other and in threads of Python: what `n_jobs` would bring there. Give it a machine that is otherwise idle.
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky import get_reusable_executor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

import consilience as cs
from consilience.kernels import RBF


def threads_seen():
    """Return the number of threads of each library in this process."""
    cs.CoRegularizedRidge().fit(np.eye(4), np.arange(4.0))  # libraries are loaded
    return {f"{pool['internal_api']} ({pool['prefix']})": pool["num_threads"] for pool in threadpool_info()}


def cpu_seconds():
    """Return the CPU seconds of this process and of workers that have ended."""
    get_reusable_executor().shutdown(wait=True)
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def measured(name, call, repeats=3):
    """Print the wall and CPU seconds of the fastest run."""
    found = []
    for _ in range(repeats):
        start, cpu = time.perf_counter(), cpu_seconds()
        call()
        wall = time.perf_counter() - start
        found.append((wall, cpu_seconds() - cpu))
    wall, cpu = min(found)
    print(f"{name:<55} {wall:7.2f} s wall {cpu:7.2f} s CPU", flush=True)
    return wall


def data(rows):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=rows)
    views = {name: rng.normal(size=(rows, 30)) + 0.5 * (y == k)[:, None] for k, name in enumerate("abc")}
    return cs.Views(views), y


def restarts(X, y, threads):
    """Learn weights of the views from four starts, each by itself, by so many threads."""
    models = [
        cs.CoRegularizedRidgeClassifier(RBF(0.02), alpha=1e-4, view_weights="learned", n_restarts=1, random_state=k)
        for k in range(4)
    ]
    with threadpool_limits(1) if threads > 1 else threadpool_limits(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda model: model.fit(X, y), models))


def single_views(X, y, threads):
    """Fit one estimator for each view, as LateFusion does, by so many threads."""
    models = {name: LogisticRegression(max_iter=1000) for name in X.names}
    with threadpool_limits(1) if threads > 1 else threadpool_limits(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda name: models[name].fit(X[name], y), X.names))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", default=["compare", "search", "threads"])
    parser.add_argument("--rows", type=int, default=1500)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = data(given.rows)
    print(f"{cpu_count()} cores, {given.rows:,} samples")
    print("threads here:", threads_seen())
    for n_jobs in (1, 2):
        print(
            f"threads in workers, n_jobs={n_jobs}:", *Parallel(n_jobs=n_jobs)(delayed(threads_seen)() for _ in range(2))
        )
    measured("start of two workers", lambda: Parallel(n_jobs=2)(delayed(threads_seen)() for _ in range(2)))
    names = ["CoRegularizedRidgeClassifierCV", "ViewMetricRidgeClassifierCV", "CoRegularizedSVC"]
    for n_jobs in (1, 2) if "compare" in given.parts else ():
        measured(
            f"compare(n_jobs={n_jobs}), {len(names)} estimators",
            lambda n_jobs=n_jobs: cs.compare(X, y, estimators=names, cv=2, inner_cv=2, n_jobs=n_jobs, verbose=False),
        )
    grid = {"alpha": [1e-4, 1e-3, 1e-2]}
    for n_jobs in (1, 2) if "search" in given.parts else ():
        search = GridSearchCV(cs.CoRegularizedRidgeClassifier(agreement_penalty=1e-3), grid, cv=3, n_jobs=n_jobs)
        measured(f"GridSearchCV(n_jobs={n_jobs}), CoRegularizedRidgeClassifier", lambda search=search: search.fit(X, y))
    for work in (restarts, single_views) if "threads" in given.parts else ():
        walls = [
            measured(f"{work.__name__}, {threads} threads", lambda t=threads, w=work: w(X, y, t)) for threads in (1, 2)
        ]
        print(f"  {walls[0] / walls[1]:.2f} times as fast")


if __name__ == "__main__":
    main()
