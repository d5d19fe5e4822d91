"""Fits of Dask collections: time against workers and rows, overhead over one process, and bytes that move.

    python benchmarks/dask_scale.py                       # 50,000 and 200,000 rows; 1, 2 and 4 worker processes
    python benchmarks/dask_scale.py --rows 1000000 --workers 4

The samples are two views of 20 columns, in files of NumPy that each worker maps. The estimator is CoRegularizedRidge
with 200 features of each view. "blocks" is the same fit in one process from `RowBlocks.of` the same maps, with the same
number of BLAS threads as a worker has (1). "moved" are the bytes that workers report to have sent to one another.
The samples of rows of the first pass, about 2 x 25,000 at most, go to this process and are not counted. Times are the
best of three. "rows" are the bytes of all samples: what would move if rows did.
"""

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from numpy.lib.format import open_memmap
from threadpoolctl import threadpool_limits

import consilience as cs

COLUMNS, FEATURES, PARTS = 20, 200, 16


def make(folder, n):
    """Write two views and a target."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 5))
    for name in "ab":
        block = open_memmap(folder / f"{name}.npy", "w+", np.float64, (n, COLUMNS))
        block[...] = hidden @ rng.normal(size=(5, COLUMNS)) + rng.normal(size=(n, COLUMNS))
    np.save(folder / "y.npy", np.sin(hidden[:, 0]) + hidden[:, 1] * hidden[:, 2])


def read(folder, name, start, stop):
    """Return some rows of a file."""
    return np.load(folder / f"{name}.npy", mmap_mode="r")[start:stop]


def collections(folder, n):
    """Return the samples and the targets as Dask arrays, one chunk for each of `PARTS` parts."""
    import dask
    import dask.array as da

    bounds = np.linspace(0, n, PARTS + 1).astype(int)

    def array(name, tail):
        parts = [
            da.from_delayed(dask.delayed(read)(folder, name, start, stop), (stop - start, *tail), dtype=float)
            for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        return da.concatenate(parts)

    return {name: array(name, (COLUMNS,)) for name in "ab"}, array("y", ())


def best_time(work, times=3):
    """Return the shortest time of a function, and what it returned last."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        found.append(time.perf_counter() - start)
    return min(found), result


def bytes_sent(client):
    """Return the bytes that workers have sent to one another so far."""
    logs = client.run(lambda dask_worker: sum(own["total"] for own in dask_worker.transfer_outgoing_log))
    return sum(logs.values())


def fit(X, y=None):
    return cs.CoRegularizedRidge(n_components=FEATURES, agreement_penalty=1e-3, random_state=0).fit(X, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    print(f"{'rows':>9}  {'route':<12} {'time':>8}  {'of blocks':>9}  {'moved':>8}  {'rows':>8}  largest difference")
    for n in given.rows:
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where)
            make(folder, n)
            maps = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in "ab"}
            blocks = cs.RowBlocks.of(maps, np.load(folder / "y.npy"))
            with threadpool_limits(1):
                alone, expected = best_time(partial(fit, blocks))
            print(f"{n:>9,}  {'blocks':<12} {alone:>6.2f} s  {1:>9.2f}")
            for workers in given.workers:
                options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
                with LocalCluster(**options) as cluster, Client(cluster) as client:
                    X, y = collections(folder, n)
                    fit(X, y)  # workers import and compile
                    before = bytes_sent(client)
                    seconds, model = best_time(partial(fit, X, y))
                    moved = (bytes_sent(client) - before) / 3e6
                largest = max(np.abs(model.coef_[name] - own).max() for name, own in expected.coef_.items())
                route = f"{workers} worker{'s' * (workers > 1)}"
                sent = 8e-6 * n * (2 * COLUMNS + 1)
                print(
                    f"{n:>9,}  {route:<12} {seconds:>6.2f} s  {seconds / alone:>9.2f}  {moved:>5.1f} MB  "
                    f"{sent:>5.1f} MB  {largest:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
