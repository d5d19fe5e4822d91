"""Files that are cut off or change while they are read, and clocks that jump."""

import gzip
import io
import json
import os
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

import _forks
import consilience as cs
from _state import fingerprint, without_verbose
from _works import EXPERIMENT
from check import Figure
from consilience.evaluation import progressive
from consilience.experiments import _run
from consilience.io import read_checkpoint, read_stream, write_checkpoint
from fuzzing.properties import attempt, explain

ROWS = 24
RNG = np.random.default_rng(1)
A = RNG.normal(size=(ROWS, 3)).round(3)
Y = np.array(["no", "yes"])[np.arange(ROWS) % 2]
TEXT = ("csv", "jsonl", "libsvm")


# -- files of every format
def sound(folder, names=None):
    """Return a sound file of each format that this machine can write, by its name."""
    table = {"u": A[:, 0], "v": A[:, 1], "w": A[:, 2], "y": Y}
    lines = [",".join(map(str, [*row, label])) for row, label in zip(A.tolist(), Y, strict=True)]
    text = "\n".join(["u,v,w,y", *lines]) + "\n"
    rows = "".join(json.dumps({"a": row, "y": label}) + "\n" for row, label in zip(A.tolist(), Y.tolist(), strict=True))
    svm = "".join(f"{k % 2} 1:{a} 2:{b} 3:{c}\n" for k, (a, b, c) in enumerate(A.tolist()))
    packed = io.BytesIO()
    np.savez(packed, a=A, y=Y)
    files = {
        "t.csv": text.encode(), "t.jsonl": rows.encode(), "t.libsvm": svm.encode(),
        "t.csv.gz": gzip.compress(text.encode()), "t.jsonl.gz": gzip.compress(rows.encode()),
        "t.npz": packed.getvalue(),
    }  # fmt: skip
    model = cs.PassiveAggressive(average=True).partial_fit(A, Y, classes=["no", "yes"])
    cs.save(model, folder / "model.cons")
    write_checkpoint({"model": model, "position": ROWS}, folder / "state.cons")
    files |= {name: (folder / name).read_bytes() for name in ("model.cons", "state.cons")}
    files |= arrow_files(folder, table) | workbook(folder, table)
    return {name: content for name, content in files.items() if names is None or name in names}


def arrow_files(folder, table):
    """Return the table in the formats of Arrow; nothing where pyarrow is missing."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        return {}
    own = pa.table(table)
    parquet.write_table(own, folder / "t.parquet", row_group_size=8)
    feather.write_feather(own, folder / "t.feather")
    with pa.OSFile(str(folder / "t.arrow"), "wb") as out, pa.ipc.new_stream(out, own.schema) as writer:
        writer.write_table(own, max_chunksize=8)
    return {name: (folder / name).read_bytes() for name in ("t.parquet", "t.feather", "t.arrow")}


def workbook(folder, table):
    """Return the table as an Excel file; nothing where openpyxl is missing."""
    try:
        import openpyxl
    except ImportError:
        return {}
    book = openpyxl.Workbook()
    for row in ([*table], *zip(*(column.tolist() for column in table.values()), strict=True)):
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return {"t.xlsx": (folder / "t.xlsx").read_bytes()}


def use(path):
    """Read a file in the manner of its format, and return the values of its rows; None for models."""
    if path.suffix == ".cons":
        (read_checkpoint if path.name.startswith("state") else cs.load)(path)
        return None
    given = {} if path.suffix == ".libsvm" else {"target": "y"}
    samples = cs.read_samples(path, **given)
    return np.hstack([np.asarray(samples.X[name].todense() if hasattr(samples.X[name], "todense") else samples.X[name])
                      for name in samples.X.names])  # fmt: skip


# -- cut off
def try_cut(path, content, size):
    """Cut a file at a size and read it: return what is wrong, or None."""
    path.write_bytes(content[:size])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values, sentence = attempt(lambda: use(path), also=(OSError, EOFError, MemoryError))
        except AssertionError as error:
            return str(error)[:500]
    if sentence is not None:
        return None if path.name in sentence else f"the sentence does not name the file: {sentence}"
    kind = path.suffix[1:]
    if kind not in TEXT:
        if kind == "arrow" and values is not None and len(values) % 8 == 0 and np.array_equal(values, A[: len(values)]):
            return None  # a stream of Arrow may end after any of its pieces
        same = values is None or np.array_equal(values, A)
        return None if same and size > 0.9 * len(content) else f"read as whole after {size} of {len(content)} bytes"
    n = len(values)
    known = np.zeros((n, 3))
    known[:, : values.shape[1]] = values[:, :3]
    # the last cell of a line without an end may be cut, which nobody can tell
    return None if np.array_equal(known[:-1], A[: n - 1]) or n == 0 else "other rows than those before the cut"


def cut_stream(path, content, size):
    """Learn a stream that is cut at a size: rows before the damage are learned, and the error names the row."""
    path.write_bytes(content[:size])
    model = cs.PassiveAggressive()
    whole = content[:size].count(b"\n") - (path.suffix == ".csv")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result, sentence = attempt(
                lambda: cs.progressive_validation(model, path, classes=["no", "yes"], target="y"),
                also=(OSError, EOFError),
            )
    except AssertionError as error:
        return str(error)[:500]
    learned = getattr(model, "n_samples_seen_", 0)
    if sentence is None:
        return None if result.n_samples in (whole, whole + 1) else f"{result.n_samples} rows learned of {whole}"
    if whole <= 0:
        return (
            None
            if path.name in sentence or "was not announced" in sentence
            else f"the sentence does not name the file: {sentence}"
        )
    if "was not announced" in sentence:  # a label that is cut is another label: the chunk that has it is refused
        return None if f"to {whole} of" in sentence and learned == 0 else f"{learned} rows learned: {sentence}"
    if not any(f"{word} {number}" in sentence for word in ("ow", "ine") for number in (whole, whole + 1, whole + 2)):
        return f"the error does not name row {whole}: {sentence}"
    return None if learned == whole else f"{learned} rows learned of {whole}, before: {sentence}"


def in_child(cases):
    """Try cases in a child, which might crash; return what is wrong by case."""
    with tempfile.NamedTemporaryFile() as file:

        def work():
            found = [(about, call()) for about, call in cases]
            Path(file.name).write_text(json.dumps([(about, wrong) for about, wrong in found if wrong]))

        status = _forks.ended(_forks.fork(work))
        return [("all", f"the process ended with {status}")] if status else json.loads(Path(file.name).read_text())


def report(what, tried, wrong, note=""):
    """Return a line of the record, and print what is wrong."""
    for about, text in wrong:
        print(f"{what}: {about}: {text}", file=sys.stderr)
    return Figure(what, tried, len(wrong), note)


def cut_files(long, rng):
    """Cut files of every format at every byte, or at some."""
    tried, wrong, streams, failed = 0, [], 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = sound(folder)
        for file, content in files.items():
            every = range(0, len(content), 1 + len(content) // 4000)
            sizes = every if long else sorted(rng.sample(every, 5))
            own = [(f"{file}, {size} bytes", partial(try_cut, folder / file, content, size)) for size in sizes]
            tried += len(own)
            wrong += in_child(own)
            if file in ("t.csv", "t.jsonl"):
                own = [(f"{file}, {size} bytes", partial(cut_stream, folder / file, content, size)) for size in sizes]
                streams += len(own)
                failed += in_child(own)
    return [
        report("files cut off at a byte", tried, wrong, f"{len(files)} formats, model files and checkpoints"),
        report(
            "streams cut off at a byte",
            streams,
            failed,
            "rows before the damage were learned; a chunk with a label that is cut is refused",
        ),
    ]


# -- files that change while they are read
def grow(path, content):
    """Append the rows once more."""
    body = content if path.suffix == ".jsonl" else content.partition(b"\n")[2]
    with path.open("ab") as file:
        file.write(body)


def replace(path, content):
    """Put another file in the place, by a rename."""
    other = path.with_suffix(".new")
    other.write_bytes(content.replace(b"no", b"on"))
    other.replace(path)


def shorten(path, content):
    """Cut the file."""
    os.truncate(path, len(content) // 3)


def remove(path, content):
    """Remove the file."""
    path.unlink()


def change_while_read(path, content, change, after):
    """Read a stream in pieces, and change the file between two of them; return what is wrong."""
    path.write_bytes(content)
    rows = []

    def read():
        for k, (X, y) in enumerate(read_stream(path, target="y", chunk=4)):
            rows.extend(zip(np.hstack([np.asarray(X[name]) for name in X.names]).tolist(), list(y), strict=True))
            if k == after:
                change(path, content)

    try:
        attempt(read, also=(OSError, EOFError))
    except AssertionError as error:
        return str(error)[:500]
    known = [(row, str(label)) for row, label in zip(A.tolist(), Y, strict=True)]
    expected = (known * 2)[: len(rows)]
    if [(row, str(label)) for row, label in rows] != expected:
        return f"{len(rows)} rows, and not those of the file"
    return None


def changing_files(long):
    """Let files grow, shrink, vanish and be replaced while a stream reads them."""
    cases = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in sound(folder, None if long else ("t.csv", "t.jsonl")).items():
            changes = [replace, remove]
            changes += [grow, shorten] if file in ("t.csv", "t.jsonl") else []
            if not file.startswith("t.") or file.endswith(("gz", "libsvm", "npz", "xlsx")):
                continue
            for change in changes:
                for after in range(5):
                    about = f"{file}, {change.__name__} after {after} pieces"
                    cases.append((about, partial(change_while_read, folder / file, content, change, after)))
        wrong = in_child(cases)
    return [report("files that grow, shrink, vanish or are replaced while a stream reads them", len(cases), wrong)]


# -- clocks
def still(real, start):
    """A clock that stands still."""
    return lambda: start


def back(real, start):
    """A clock that goes back a day at every fifth look."""
    looks = [0]

    def clock():
        looks[0] += 1
        return start + real() % 1 - 86_400 * (looks[0] // 5)

    return clock


def forward(real, start):
    """A clock that goes a day forward at every look."""
    looks = [0]

    def clock():
        looks[0] += 1
        return start + 86_400.0 * looks[0]

    return clock


CLOCKS = {"stands still": still, "goes back": back, "jumps forward": forward}
STARTS = {"now": time.time(), "1969": -3.0e7, "2038": 2.0**31 - 1, "0": 0.0}


def set_clocks(clock, start):
    """Replace the clocks of this process, which is a child."""
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, clock(getattr(time, name), start))


def work_with_clock(folder, mtime=None):
    """Learn a stream with all its files, run an experiment, write a model over leftovers; return the results."""
    stream = folder / "rows.jsonl"
    stream.write_bytes(b"".join(json.dumps({"a": row, "y": label}).encode() + b"\n" for row, label in
                                zip(np.tile(A, (20, 1)).tolist(), np.tile(Y, 20).tolist(), strict=True)))  # fmt: skip
    left = folder / ".model.cons.0123456789abcdef.partial"
    left.write_bytes(b"half")
    if mtime is not None:
        os.utime(stream, (mtime, mtime))
        os.utime(left, (mtime, mtime))
    model = cs.PassiveAggressive(average=True)
    result = cs.progressive_validation(
        model, stream, classes=["no", "yes"], target="y", checkpoint=folder / "state.cons", every=64,
        predictions=folder / "p.csv", log=folder / "log.jsonl", log_every=50, verbose=True,
    )  # fmt: skip
    try:
        cs.save(model, folder / "model.cons")
    except OSError as error:
        if "the clock of this machine says 19" not in str(error) or time.time() > 3e8:
            raise
        left.rename(folder / "model.cons")  # refused in a sentence
    record = _run.run(EXPERIMENT, folder / "results", verbose=True)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in log:
        for name in ("seconds", "rate"):
            value = line.pop(name, 0)
            if value is not None and not 0 <= value < 1e18:
                raise AssertionError(f"{name} is {value}")
    return {
        "state": fingerprint(without_verbose(model)), "result": json.loads(json.dumps(result.to_dict(), default=str)),
        "log": log, "predictions": (folder / "p.csv").read_text(), "cells": record["cells"],
        "files": sorted(path.name for path in folder.iterdir()),
    }  # fmt: skip


def compare_with_clock(folder, mtime=None):
    """Compare estimators and write a report; return scores."""
    from consilience.report import examine, write_report

    X, y = cs.Views(a=np.tile(A, (2, 1)), b=np.tile(A[:, :1], (2, 1)) ** 2), np.tile(Y, 2)
    board = cs.compare(X, y, estimators=["EarlyFusion"], cv=2, n_jobs=1, baselines=False, verbose=True)
    if any(row.fit_time < 0 for row in board):
        raise AssertionError("a fit took less than no time")
    write_report(folder / "report.html", examine(X, y, board, title="t", n_jobs=1), title="t")
    return {"scores": [float(row.score) for row in board]}


def try_clock(work, name, start, mtime):
    """Do work in a child with another clock; return its results as JSON, or what is wrong."""
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:

        def child():
            warnings.simplefilter("ignore")
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress
            try:
                if name is not None:
                    set_clocks(CLOCKS[name], STARTS[start])
                with mock.patch.object(progressive, "_COSTS", np.inf):
                    found = work(Path(folder), mtime)
            except BaseException as error:
                found = {"failed": explain(error)}
            Path(file.name).write_text(json.dumps(found))

        status = _forks.ended(_forks.fork(child))
        return {"failed": f"status {status}"} if status else json.loads(Path(file.name).read_text())


def clocks(long, rng):
    """Compare the results of streams, experiments and comparisons under odd clocks with those under a good one."""
    works = SimpleNamespace(stream=work_with_clock, compare=compare_with_clock)
    tried, wrong = 0, []
    mtimes = (None, 0.0, 1.0, time.time() + 1e6, 2.0**32 + 5)
    for what, work in vars(works).items():
        if what == "compare" and not long:
            continue
        expected = try_clock(work, None, "now", None)
        cases = [(name, start, mtime) for name in CLOCKS for start in STARTS for mtime in mtimes]
        cases = cases if long and what == "stream" else rng.sample(cases, 12 if long else 3)
        for name, start, mtime in cases:
            found = try_clock(work, name, start, mtime)
            tried += 1
            if found != expected or "failed" in found:
                different = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
                wrong.append(
                    (f"{what}, the clock {name} from {start}, {mtime}", found.get("failed", f"{different} differ"))
                )
    return [report("clocks that stand still or jump, and files of the future or of 1970", tried, wrong,
                   "the results are the same, and no rate or time is negative")]  # fmt: skip
