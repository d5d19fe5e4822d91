"""The streams of `streams.py` as files: Parquet for dense rows, libsvm for sparse ones."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

WIDTHS = {"audio": 40, "video": 30, "sensors": 22}  # of the made stream
STREAMS = ("a9a", "w8a", "pairs", "sarcos", "sarcos_shuffled", "made")
REGRESSION = ("sarcos", "sarcos_shuffled")


def stored(name):
    """Return the arrays of a file in the folder CONSILIENCE_DATA."""
    return np.load(Path(os.environ["CONSILIENCE_DATA"]) / name)


def binary_rows(arrays, name):
    """Return a CSR matrix whose values are all 1."""
    indices = arrays[f"{name}_indices"].astype(np.int32)
    parts = (np.ones(len(indices)), indices, arrays[f"{name}_indptr"])
    return sp.csr_matrix(parts, shape=tuple(arrays[f"{name}_shape"]))


def peak_memory():
    """Return the largest resident memory of this process in MiB; `getrusage` would include its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def shuffled(X, y):
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def write_stream(name, folder, rows):
    """Write a stream once; return its file."""
    path = Path(folder) / (f"{name}.libsvm" if name == "pairs" else f"{name}.parquet")
    if path.exists():
        return path
    if name == "pairs":  # in a random order, since the groups of posts follow one another
        arrays = stored("news20_bydate_binary_1_2gram.npz")
        write_libsvm(path, *shuffled(binary_rows(arrays, "X"), arrays["y_binary"]))
    elif name in REGRESSION:  # the first torque; in the order of the file, neighbors are similar
        arrays = stored("sarcos_test.npz")
        X, y = arrays["X"].astype(np.float64), arrays["Y"][:, 0].astype(np.float64)
        X, y = (X, y) if name == "sarcos" else shuffled(X, y)
        write_columns(path, {"x": X}, y)
    elif name == "made":
        made_stream(path, rows)
    else:
        arrays = stored(f"libsvm_{name}.npz")
        X, y = binary_rows(arrays, "X_train").toarray(), (arrays["y_train"] > 0).astype(np.int64)
        X, y = (X, y) if name == "a9a" else shuffled(X, y)  # the positive rows of w8a follow one another
        write_columns(path, {"x": X}, y)
    return path


def write_libsvm(path, X, y):
    with open(path, "w") as file:
        for i, label in enumerate(y.tolist()):
            row = X.indices[X.indptr[i] : X.indptr[i + 1]]
            file.write(f"{label} " + " ".join(f"{k + 1}:1" for k in np.sort(row).tolist()) + "\n")


def as_table(views, y):
    """Return a table with one column per number; missing rows of a view are null."""
    columns = {}
    for view, X in views.items():
        gone = np.isnan(X).all(axis=1)
        for j in range(X.shape[1]):
            columns[f"{view}__{j}"] = pa.array(X[:, j], mask=gone if gone.any() else None)
    return pa.table({**columns, "y": y})


def write_columns(path, views, y):
    pq.write_table(as_table(views, y), path, row_group_size=32_768)


def made_stream(path, rows, block=50_000):
    """Write three views of common factors; 20% of the views are missing, and the classes change halfway.

    Columns have different units, and the last sensor is a time stamp. The rows are written block by block.
    """
    rng, writer = np.random.default_rng(0), None
    mixing = {view: 0.5 * rng.normal(size=(6, d)) for view, d in WIDTHS.items()}
    truth = {view: rng.normal(size=(2, d)) / np.sqrt(d) for view, d in WIDTHS.items()}
    units = {view: (np.exp(rng.normal(size=d)), 3 * rng.normal(size=d)) for view, d in WIDTHS.items()}
    for first in range(0, rows, block):
        n = min(block, rows - first)
        late, factors = (first + np.arange(n) >= rows // 2).astype(int), rng.normal(size=(n, 6))
        gone = rng.random((n, 3)) < 0.2
        gone[gone.all(axis=1)] = False
        score, views = np.zeros(n), {}
        for k, view in enumerate(WIDTHS):
            X = factors @ mixing[view] + rng.normal(size=(n, WIDTHS[view]))
            score += np.einsum("ij,ij->i", X, truth[view][late])
            X = X * units[view][0] + units[view][1]
            if view == "sensors":
                X[:, -1] = 1.7e9 + 0.5 * (first + np.arange(n))
            X[gone[:, k]] = np.nan
            views[view] = X
        table = as_table(views, (score + 0.5 * rng.normal(size=n) > 0.3).astype(np.int64))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=32_768)
    writer.close()
