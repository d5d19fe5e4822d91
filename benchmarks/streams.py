"""Streams from files, compared with river and scikit-learn: python benchmarks/streams.py [part ...]

compare: rows per second from the file to the last prediction, progressive measures and peak memory of each system, on
the same rows in the same order. Every system predicts a row before it learns it, with its default parameters. Dense
rows are standardized in the stream by each system. Ours forgets half of what it learned at a drift, on every stream.

| stream | rows | file |
| --- | --- | --- |
| a9a | 32,561 x 123 (training part, in its order) | Parquet |
| w8a | 49,749 x 300 (in a random order) | Parquet |
| pairs | 18,846 x 1,664,476 word pairs of 20 Newsgroups, sparse (in a random order) | libsvm |
| sarcos | 4,449 x 21, the first torque, regression (in its order: a trajectory) | Parquet |
| sarcos_shuffled | the same in a random order | Parquet |
| made | 200,000 x 92 in 3 views; 20% of the views missing, other coefficients after half, a time stamp | Parquet |

kills: a stream of 3 views is learned with checkpoints, killed at random moments and resumed; the state at the end is
compared bit for bit with an uninterrupted run. Prints memory, the time of the reader, and that of Arrow's own loop.

Each system runs in a process of its own, with two threads. scikit-learn predicts and learns 100 rows at a time. Times
are medians of `--repeats` runs, and of one run where it takes more than 20 seconds. Rates are by the clock and by the
time of the processor, which other work on the machine disturbs less. The data sets are in the folder CONSILIENCE_DATA.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

from _streams_files import REGRESSION, STREAMS, peak_memory, write_stream  # isort: skip
from _streams_systems import SYSTEMS  # isort: skip


def run_one(system, name, stream, path, limit, repeats):
    """Run one model of a system in this process; print the result as JSON."""
    warnings.filterwarnings("ignore")
    models, run = SYSTEMS[system]
    model, times, busy = models(stream)[name], [], []
    run(model, path, stream, min(limit or 1000, 1000))  # compiled, imported, in the cache of the disk
    while len(times) < (1 if times and times[0] > 20 else repeats):
        start, used = time.perf_counter(), time.process_time()
        measures, rows = run(model, path, stream, limit)
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    rates = {"rate": rows / statistics.median(times), "cpu_rate": rows / statistics.median(busy)}
    print(json.dumps({**rates, "rows": rows, "peak": peak_memory(), **measures}))


def in_process(*words):
    """Run this script in another process; return what its last line says."""
    done = subprocess.run([sys.executable, __file__, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(streams, folder, rows, repeats, out):
    for stream in streams:
        path = write_stream(stream, folder, rows)
        found = {}
        for system, (models, _) in SYSTEMS.items():
            for name in models(stream):
                found[system, name] = in_process("one", system, name, stream, path, "--repeats", repeats)
                if out:
                    with open(out, "a") as file:
                        line = {"stream": stream, "system": system, "model": name, **found[system, name]}
                        file.write(json.dumps(line) + "\n")
        print_table(stream, found)


def print_table(stream, found):
    """Print one line per model; the ratio is to river's fastest model, by the time of the processor."""
    river = max(row["cpu_rate"] for (system, _), row in found.items() if system == "river")
    measures = ("mae", "r2") if stream in REGRESSION else ("error", "log_loss")
    heads = f"{'rows/s':>9} {'per CPU s':>9} {'x river':>8} {'MiB':>6} {measures[0]:>9} {measures[1]:>9}"
    print(f"\n{stream}, {next(iter(found.values()))['rows']:,} rows\n{'':<56} {heads}")
    for (system, name), row in found.items():
        rates = f"{row['rate']:9,.0f} {row['cpu_rate']:9,.0f} {row['cpu_rate'] / river:8.1f} {row['peak']:6.0f}"
        print(f"  {system + ': ' + name:<54} {rates} {' '.join(f'{row[m]:9.4f}' for m in measures)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part")
    part = parts.add_parser("compare", help="rows per second, measures and memory of each system")
    part.add_argument("streams", nargs="*", choices=[*STREAMS, []], default=[])
    part.add_argument("--rows", type=int, default=200_000, help="rows of the made stream")
    part.add_argument("--repeats", type=int, default=3)
    part.add_argument("--folder", help="folder of the files; a temporary one by default")
    part.add_argument("--out", help="file for one JSON line per model")
    part = parts.add_parser("one", help="one model of one system, in this process")
    for word in ("system", "model", "stream", "path"):
        part.add_argument(word)
    part.add_argument("--limit", type=int)
    part.add_argument("--repeats", type=int, default=3)
    part = parts.add_parser("kills", help="a stream that is killed and resumed")
    part.add_argument("--rows", type=int, default=2_000_000)
    part.add_argument("--kills", type=int, default=20)
    part.add_argument("--folder", help="folder of the files; a temporary one by default")
    part = parts.add_parser("learn", help="learn a stream with checkpoints, in this process")
    for word in ("path", "checkpoint"):
        part.add_argument(word)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(getattr(given, "folder", None) or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if given.part == "one":
            run_one(given.system, given.model, given.stream, Path(given.path), given.limit, given.repeats)
        elif given.part == "learn":
            kill_part().learn(Path(given.path), Path(given.checkpoint))
        elif given.part == "kills":
            kill_part().kills(folder, given.rows, given.kills)
        elif given.part == "compare":
            compare(given.streams or STREAMS, folder, given.rows, given.repeats, given.out)
        else:
            compare(STREAMS, folder, 200_000, 3, None)
            kill_part().kills(folder, 2_000_000, 20)


def kill_part():
    import _streams_kills

    return _streams_kills


if __name__ == "__main__":
    main()
