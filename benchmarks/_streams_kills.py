"""The part `kills` of `streams.py`: a stream that is killed at random moments and resumed."""

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "trust"))

from _state import fingerprint, without_verbose  # isort: skip
from _streams_files import made_stream, peak_memory  # isort: skip

EVERY = 20_000  # rows between checkpoints


def learn(path, checkpoint):
    """Learn the stream from its checkpoint on; print the state, the measures and the peak of the memory as JSON."""
    import consilience as cs

    model = cs.PassiveAggressive(average="recent", prepare="standardize")
    start = time.perf_counter()
    result = cs.progressive_validation(
        model, path, views="prefix", classes=[0, 1], measures="log_loss", drift=True, on_drift="forget",
        checkpoint=checkpoint, every=EVERY, resume=True,
    )  # fmt: skip
    print(
        json.dumps(
            {
                "state": fingerprint(without_verbose(model)), "rows": result.n_samples, "error": result.error,
                "log_loss": result.measures["log_loss"], "seconds": time.perf_counter() - start,
                "peak": peak_memory(),
            }
        )
    )  # fmt: skip


def start_learning(path, checkpoint):
    script = Path(__file__).with_name("streams.py")
    return subprocess.Popen([sys.executable, script, "learn", path, checkpoint], stdout=subprocess.PIPE, text=True)


def learned(process):
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"The process ended with status {process.returncode}.")
    return json.loads(said.splitlines()[-1])


def kills(folder, rows, n_kills):
    """Compare a run that is killed `n_kills` times with an uninterrupted one; print memory and the reader's time."""
    path = Path(folder) / f"kills_{rows}.parquet"
    if not path.exists():
        made_stream(path, rows)
    for old in Path(folder).glob("kills_*.checkpoint"):
        old.unlink()
    begun = time.perf_counter()
    whole = learned(start_learning(path, Path(folder) / "kills_whole.checkpoint"))
    starting = time.perf_counter() - begun - whole["seconds"]  # of the process
    print(
        f"uninterrupted: {whole['seconds']:.1f} s, {rows / whole['seconds']:,.0f} rows/s, peak {whole['peak']:.0f} MiB"
    )
    checkpoint, rng, done = Path(folder) / "kills_some.checkpoint", random.Random(0), 0
    while done < n_kills:
        process = start_learning(path, checkpoint)
        try:  # together the parts are shorter than the stream
            process.wait(starting + rng.random() * 1.2 * whole["seconds"] / n_kills)
            raise RuntimeError(f"The stream ended after {done} kills; give more rows or fewer kills.")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            done += 1
    last = learned(start_learning(path, checkpoint))
    same = last["state"] == whole["state"] and last["error"] == whole["error"] and last["rows"] == whole["rows"]
    print(f"killed {done} times: peak of the last part {last['peak']:.0f} MiB, error {last['error']:.4f}")
    print(f"state at the end: {'the same bit for bit' if same else 'DIFFERENT'}, {rows:,} rows")
    print_reading(path, rows)
    if not same:
        raise SystemExit(f"{whole}\n{last}")


def print_reading(path, rows, repeats=3):
    """Print the seconds of the reader and those of Arrow's own loop to the same matrices."""
    import consilience as cs

    def ours():
        return sum(len(y) for _, y in cs.read_stream(path, views="prefix"))

    def arrow():
        for batch in pq.ParquetFile(path).iter_batches(8192):
            np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])

    seconds = {ours: [], arrow: []}
    next(iter(cs.read_stream(path, views="prefix")))  # compiled and imported
    for _ in range(repeats):
        for read, times in seconds.items():
            start = time.perf_counter()
            read()
            times.append(time.perf_counter() - start)
    own, other = (statistics.median(times) for times in seconds.values())
    print(f"reading {rows:,} rows: {own:.1f} s; Arrow's own loop {other:.1f} s; ratio {own / other:.2f}")
