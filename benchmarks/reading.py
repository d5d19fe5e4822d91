"""Reading files beside the packages that write them: time and memory of `read_samples` and of pyarrow and mudata.

Run by ``python benchmarks/reading.py`` (10,000 samples of 20,000 columns), or quickly by
``python benchmarks/reading.py --samples 1000 --columns 2000``. The peer ends where ours does, with one matrix per view
in memory: for Parquet ``pyarrow.parquet.read_table`` and its columns in one NumPy matrix. Memory is the largest
resident size of a process that reads the file once, beyond the size that it had after its imports.

``python benchmarks/reading.py blocks --samples 1000000 --columns 60`` reads a Parquet file block by block instead, by
`read_blocks`, by pyarrow's ``iter_batches`` alone, and by ``iter_batches`` with the columns of each batch in one NumPy
matrix, which is where `read_blocks` ends.
"""

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

READERS = ("parquet", "dense.h5mu", "sparse.h5mu", "csv")


# -- files
def write(path, samples, columns, density=0.05):
    """Write random numbers to a file; those of .h5mu files are two modalities of half the columns each."""
    rng = np.random.default_rng(0)
    names = [f"gene{j}" for j in range(columns)]
    if path.suffix in (".parquet", ".csv"):
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        table = pa.table({name: rng.normal(size=samples) for name in names})
        pq.write_table(table, path) if path.suffix == ".parquet" else pa.csv.write_csv(table, path)
        return
    import anndata
    import mudata
    import scipy.sparse as sp

    parts = {}
    for name, own in (("rna", names[: columns // 2]), ("protein", names[columns // 2 :])):
        if path.name.startswith("sparse"):
            X = sp.random(samples, len(own), density=density, format="csr", dtype=np.float32, random_state=rng)
        else:
            X = rng.normal(size=(samples, len(own))).astype(np.float32)
        parts[name] = anndata.AnnData(X)
        parts[name].var_names = own
        parts[name].obs_names = [f"cell{i}" for i in range(samples)]
    mudata.MuData(parts).write(path)


# -- readers
def ours(path):
    from consilience.io import read_samples

    X = read_samples([path]).X
    return [X[name] for name in X.names]


def theirs(path):
    if path.suffix == ".h5mu":
        import mudata

        data = mudata.read_h5mu(path)
        return [part.X for part in data.mod.values()]
    if path.suffix == ".csv":
        import pyarrow.csv

        table = pyarrow.csv.read_csv(path)
    else:
        import pyarrow.parquet as pq

        table = pq.read_table(path)
    return [np.column_stack([column.to_numpy() for column in table.columns])]


def blocks_ours(path):
    from consilience import read_blocks

    return sum(len(X) for X, _, _ in read_blocks(path))


def blocks_arrow(path, matrix=False):
    import pyarrow.parquet as pq

    n = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=max(4_000_000 // file.metadata.num_columns, 256)):
            n += len(np.column_stack([column.to_numpy() for column in batch.columns]) if matrix else batch)
    return n


def blocks_matrix(path):
    return blocks_arrow(path, matrix=True)


def compare_blocks(folder, given):
    path = Path(folder) / "table.parquet"
    write(path, given.samples, given.columns)
    write(path.with_name(f"small.{path.name}"), 4, 8)
    names = ("blocks_ours", "blocks_arrow", "blocks_matrix")
    readers = [PEAKS[name] for name in names]
    assert {reader(path) for reader in readers} == {given.samples}
    times = seconds([lambda reader=reader: reader(path) for reader in readers], given.repeats)
    memory = [peak(name, path) for name in names]
    size = given.samples * given.columns * 8 / 2**20
    print(f"by blocks, from {size:.0f} MB in memory; ratio = our time / theirs")
    for what, spent, own in zip(("read_blocks", "iter_batches", "iter_batches, matrix"), times, memory, strict=True):
        print(f"{what:<22}{spent:>8.2f}s{times[0] / spent:>7.2f}{own:>8.0f} MB", flush=True)


def seconds(functions, repeats):
    """Median times of functions that take turns, so that a slow moment of the machine meets all of them."""
    times = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, record in zip(functions, times, strict=True):
            gc.collect()
            start = time.perf_counter()
            read = function()
            if turn:  # the first turn imports packages and fills caches
                record.append(time.perf_counter() - start)
            del read
    return [statistics.median(record) for record in times]


def peak(who, path):
    """Return the memory that one reader takes in a process of its own, in megabytes."""
    command = [sys.executable, __file__, "--peak", who, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(who, path):
    small = path.with_name(f"small.{path.name}")
    reader = PEAKS[who]
    reader(small)  # imports
    before = resident("VmRSS")
    read = reader(path)
    print(resident("VmHWM") - before)
    del read


PEAKS = {
    "ours": ours, "theirs": theirs, "blocks_ours": blocks_ours, "blocks_arrow": blocks_arrow,
    "blocks_matrix": blocks_matrix,
}  # fmt: skip


def resident(field):
    """Return a size of this process as Linux counts it, in megabytes; `resource` counts that of its parent too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 2**10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", default=READERS[:3], help=f"some of {', '.join(READERS)}; or blocks")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write the files; default: a temporary folder")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.peak:
        print_peak(given.peak[0], Path(given.peak[1]))
        return
    print(f"{given.samples:,} samples of {given.columns:,} columns; medians of {given.repeats}", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if "blocks" in given.formats:
            compare_blocks(folder, given)
        forms = [form for form in given.formats if form != "blocks"]
        if forms:
            heads = f"{'ours':>9}{'theirs':>9}{'ratio':>7}{'ours MB':>10}{'theirs MB':>11}{'data MB':>9}"
            print(f"ratio = our time / theirs\n{'format':<14}{heads}", flush=True)
        for form in forms:
            name = form if "." in form else f"table.{form}"
            path = Path(folder) / name
            write(path, given.samples, given.columns)
            write(path.with_name(f"small.{path.name}"), 4, 8)
            mine, other = ours(path), theirs(path)
            size = 0.0
            for left, right in zip(mine, other, strict=True):
                assert left.shape == right.shape
                assert abs(left - right).max() == 0
                size += sum(part.nbytes for part in (left.data, left.indices)) if hasattr(left, "nnz") else left.nbytes
            del mine, other, left, right
            times = seconds([lambda path=path: ours(path), lambda path=path: theirs(path)], given.repeats)
            memory = [peak(who, path) for who in ("ours", "theirs")]
            print(
                f"{form:<14}{times[0]:>8.2f}s{times[1]:>8.2f}s{times[0] / times[1]:>7.2f}{memory[0]:>10.0f}"
                f"{memory[1]:>11.0f}{size / 2**20:>9.0f}",
                flush=True,
            )
            path.unlink()


if __name__ == "__main__":
    main()
