"""A million rows from Parquet on one machine: time, memory and growth, beside scikit-learn's Nystroem and Ridge.

    python benchmarks/scale.py           # 10^4, 10^5 and 10^6 rows x 3 views x 20 columns, 300 features each
    python benchmarks/scale.py --rows 100000

Both programs run in processes of their own, one after the other, on the same file. scikit-learn has no fit over blocks:
its program keeps the features of all rows in memory (7.2 GB for a million), so it is run on 100,000 rows, and its time
is multiplied by rows / 100,000. The share of the matrix product rate is that of the products that both programs need:
features, and the sums of the normal equations.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

VIEWS, COLUMNS, FEATURES, ALPHA = 3, 20, 300, 1e-3
PEER_ROWS = 100_000


def make(path, n):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"view{v}__x{k}" for v in range(VIEWS) for k in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    rng = np.random.default_rng(0)
    mix = [rng.normal(size=(5, COLUMNS)) for _ in range(VIEWS)]
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 50_000):
            size = min(50_000, n - start)
            hidden = rng.normal(size=(size, 5))
            X = np.hstack([hidden @ own + rng.normal(size=(size, COLUMNS)) for own in mix])
            y = np.sin(hidden[:, 0]) + hidden[:, 1] * hidden[:, 2] + 0.1 * rng.normal(size=size)
            writer.write_table(pa.table([*X.T, y], schema=schema))


def ours(path):
    import consilience as cs

    kernel = cs.kernels.RBF(gamma=1 / (6 * COLUMNS))
    model = cs.CoRegularizedRidge(
        kernel, alpha=ALPHA, view_weights=np.ones(VIEWS), n_components=FEATURES, random_state=0
    )
    blocks = cs.read_blocks(path, target="y")
    start = time.perf_counter()
    model.fit(blocks)
    return {
        "seconds": time.perf_counter() - start,
        "score": model.score(cs.RowBlocks(lambda: iter([next(iter(blocks))]))),
    }


def peer(path):
    import pyarrow.parquet as pq
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge

    start = time.perf_counter()
    table = pq.read_table(path)
    X = np.column_stack([table.column(k).to_numpy() for k in range(VIEWS * COLUMNS)])
    y = table.column("y").to_numpy()
    parts = [
        Nystroem(gamma=1 / (6 * COLUMNS), n_components=FEATURES, random_state=0).fit_transform(
            X[:, v * COLUMNS : (v + 1) * COLUMNS]
        )
        for v in range(VIEWS)
    ]
    Phi = np.hstack(parts)
    del parts, X, table
    model = Ridge(alpha=ALPHA * len(y), fit_intercept=False, solver="cholesky").fit(Phi, y)
    return {"seconds": time.perf_counter() - start, "score": model.score(Phi[:50_000], y[:50_000])}


def product_rate(size=2000):
    """Return the rate of matrix products of this machine in GFLOP/s."""
    A = np.random.default_rng(0).normal(size=(size, size))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        A @ A
        times.append(time.perf_counter() - start)
    return 2 * size**3 / np.median(times) / 1e9


def peak_megabytes():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def in_a_process(what, path):
    found = subprocess.run(
        [sys.executable, __file__, "--run", what, "--path", str(path)], capture_output=True, text=True, check=True
    )
    return json.loads(found.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--run", choices=["ours", "peer"])
    parser.add_argument("--path", type=Path)
    args = parser.parse_args()
    if args.run:
        print(json.dumps({**{"ours": ours, "peer": peer}[args.run](args.path), "megabytes": peak_megabytes()}))
        return
    rate = product_rate()
    print(f"matrix products: {rate:.0f} GFLOP/s")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "peer.parquet"
        make(small, PEER_ROWS)
        for n in args.rows:
            path = Path(folder) / f"{n}.parquet"
            make(path, n)
            runs = [
                (in_a_process("ours", path), in_a_process("peer", path if n <= PEER_ROWS else small))
                for _ in range(args.repeats)
            ]
            mine, theirs = (float(np.median([run[k]["seconds"] for run in runs])) for k in (0, 1))
            theirs *= max(n / PEER_ROWS, 1)
            q = VIEWS * FEATURES
            work = 2 * n * q * (COLUMNS + FEATURES) + n * q * q  # half of the products of symmetric sums
            print(
                f"{n:>9,} rows: {mine:.2f} s, {n / mine:,.0f} rows a second, {runs[0][0]['megabytes']:,.0f} MB, "
                f"{work / mine / 1e9 / rate:.0%} of the product rate, R² {runs[0][0]['score']:.4f}; scikit-learn "
                f"{theirs:.2f} s{' (from 100,000 rows)' if n > PEER_ROWS else ''}, {runs[0][1]['megabytes']:,.0f} MB, "
                f"R² {runs[0][1]['score']:.4f}; ratio {mine / theirs:.2f}",
                flush=True,
            )
            path.unlink()


if __name__ == "__main__":
    main()
