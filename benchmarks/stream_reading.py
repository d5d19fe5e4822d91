"""Files as streams compared with Arrow's own loop: rows per second of `read_stream`, and where a stream continues.

Run by ``python benchmarks/stream_reading.py`` (200,000 rows of 92 numbers in 3 views), or quickly by
``python benchmarks/stream_reading.py --rows 20000``. Arrow's loop ends where ours does, with a matrix per view and the
labels of each chunk in memory: ``ParquetFile.iter_batches`` and the columns of each batch in NumPy. CSV files are read
by ``pyarrow.csv.open_csv``, JSON lines by ``json.loads`` and one matrix per view. Both sides take turns.

The last lines are the seconds until the first chunk, from the beginning of a Parquet file, and after 90% of its rows.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from consilience import read_stream

VIEWS = {"audio": 40, "video": 32, "sensors": 20}
FORMS = ("lists.parquet", "columns.parquet", "lists.feather", "columns.csv", "lists.jsonl")


# -- files
def write(path, rows):
    """Write random numbers: a column of lists per view, or a column per number."""
    rng = np.random.default_rng(0)
    values = {view: rng.normal(size=(rows, width)).round(4) for view, width in VIEWS.items()}
    labels = rng.integers(0, 2, rows)
    if path.suffix == ".jsonl":
        with open(path, "w") as file:
            for i in range(rows):
                file.write(json.dumps({**{view: own[i].tolist() for view, own in values.items()}, "y": int(labels[i])}))
                file.write("\n")
        return
    if path.name.startswith("lists"):
        sizes = {view: np.arange(0, own.size + 1, own.shape[1], dtype=np.int32) for view, own in values.items()}
        columns = {view: pa.ListArray.from_arrays(sizes[view], own.ravel()) for view, own in values.items()}
    else:
        columns = {f"{view}__{j}": own[:, j] for view, own in values.items() for j in range(own.shape[1])}
    table = pa.table({**columns, "y": labels})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=max(rows // 10, 1))
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=65_536)
    else:
        pa.csv.write_csv(table, path)


# -- readers
def ours(path, chunk):
    return sum(len(labels) for _, labels in read_stream(path, chunk=chunk))


def theirs(path, chunk):
    if path.suffix == ".jsonl":
        return sum(len(labels) for _, labels in chunks_of_json(path, chunk))
    n = 0
    for batch in batches(path, chunk):
        names = batch.schema.names
        if path.name.startswith("lists"):
            views = {view: matrix(batch.column(names.index(view))) for view in VIEWS}
        else:
            own = {view: [k for k, name in enumerate(names) if name.startswith(f"{view}__")] for view in VIEWS}
            views = {
                view: np.column_stack([batch.column(k).to_numpy() for k in places]) for view, places in own.items()
            }
        n += len(batch.column(names.index("y")).to_numpy())
        assert len(views) == len(VIEWS)
    return n


def matrix(column):
    return column.flatten().to_numpy().reshape(len(column), -1)


def batches(path, chunk):
    if path.suffix == ".parquet":
        yield from pq.ParquetFile(path).iter_batches(batch_size=chunk)
    elif path.suffix == ".csv":
        yield from pa.csv.open_csv(path)
    else:
        with pa.memory_map(str(path)) as file:
            opened = pa.ipc.open_file(file)
            for k in range(opened.num_record_batches):
                batch = opened.get_batch(k)
                yield from (batch.slice(start, chunk) for start in range(0, batch.num_rows, chunk))


def chunks_of_json(path, chunk):
    with open(path) as lines:
        records = []
        for line in lines:
            records.append(json.loads(line))
            if len(records) == chunk:
                yield arrays(records)
                records = []
        if records:
            yield arrays(records)


def arrays(records):
    return {view: np.array([record[view] for record in records]) for view in VIEWS}, [own["y"] for own in records]


# -- times
def seconds(functions, repeats):
    """Median times of functions that take turns, so that a slow moment of the machine meets all of them."""
    times = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            if turn:  # the first turn imports packages and fills caches
                record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", default=FORMS, help=f"some of {', '.join(FORMS)}")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--chunk", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write the files; default: a temporary folder")
    given = parser.parse_args()
    width = sum(VIEWS.values())
    print(f"{given.rows:,} rows of {width} numbers in {len(VIEWS)} views; medians of {given.repeats}", flush=True)
    print(f"{'file':<17}{'our rows/s':>13}{'their rows/s':>14}{'time ratio':>12}", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for form in given.forms:
            path = Path(folder) / form
            write(path, given.rows)
            assert ours(path, given.chunk) == theirs(path, given.chunk) == given.rows
            mine, other = seconds(
                [lambda path=path: ours(path, given.chunk), lambda path=path: theirs(path, given.chunk)], given.repeats
            )
            rates = f"{given.rows / mine:>13,.0f}{given.rows / other:>14,.0f}"
            print(f"{form:<17}{rates}{mine / other:>12.2f}", flush=True)
            if path.suffix != ".parquet":
                path.unlink()
        for path in sorted(Path(folder).glob("*.parquet")):
            late = 9 * given.rows // 10
            first, seek = seconds(
                [lambda path=path, start=start: next(read_stream(path, start=start)) for start in (0, late)],
                given.repeats,
            )
            print(f"{path.name}: first chunk after {first:.3f} s; from row {late:,} on after {seek:.3f} s", flush=True)


if __name__ == "__main__":
    main()
