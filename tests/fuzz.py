"""Random cases of the kinds that have found faults in this library, with the properties that must hold for each.

    python tests/fuzz.py --seconds 600 --seed 1000      every kind in turn, until the time is over
    python tests/fuzz.py --kind batch --cases 500       the seeds 0 to 499 of one kind
    python tests/fuzz.py --kind batch --seed 17         exactly one case again, with the whole traceback

With NUMBA_BOUNDSCHECK=1 compiled loops raise IndexError where they leave their arrays, which is a failure.

A kind is a function of a random generator in one of the modules of `fuzzing`. It raises AssertionError where a property
fails, and Refused where the library does not take what was drawn. The case of seed K is made by
``np.random.default_rng([number of the kind, K])``. The file of a failing case is kept in build/fuzz: named by its
format and fault, it belongs into tests/corpus.
"""

import os

if __name__ == "__main__":  # threads of BLAS only wait for each other on matrices this small
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others keep memory, which looks like a leak
if os.environ.get("NUMBA_BOUNDSCHECK") == "1":  # code compiled without checks must not come from the cache
    os.environ.setdefault("NUMBA_CACHE_DIR", f"/tmp/fuzz-boundscheck-{os.getuid()}")

import argparse
import ctypes
import faulthandler
import functools
import gc
import itertools
import multiprocessing
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fuzzing import commands, estimators, matrices, models, parsers, results, tables
from fuzzing.properties import CASE, Refused, explain

SEARCHED = 120  # seconds after which a case in a child process counts as one that never ends
PARSED = 30  # the same for a small file or a short text
GROWTH = (
    20 << 20
)  # bytes of memory that a process may gain in both the second and the third third of LEAST cases or more
LEAST = 1000
KEPT = Path(__file__).parents[1] / "build" / "fuzz"  # files of cases that failed


class Kind(NamedTuple):
    """A kind of cases: a function, and how its cases run."""

    number: int
    function: Callable
    what: str  # for the page of trust
    least: float  # share of cases that are not refused: with fewer, little is tested
    child: bool = False  # whether cases run in a child process, since they may crash
    limit: float = SEARCHED
    warm_up: Callable[[], object] = lambda: None  # loads compiled functions before a process forks


# the number of a kind is a part of its seeds, so it stays
KINDS = {
    "batch": Kind(1, estimators.fuzz_batch, "batch estimators on hostile data", 0.5),
    "weights": Kind(2, estimators.fuzz_weights, "whole weights and repeated rows", 0.5),
    "chunks": Kind(3, estimators.fuzz_chunks, "streams at once and in pieces", 0.6),
    "files": Kind(4, models.fuzz_files, "model files", 0.1, True, SEARCHED, models.warm_up),
    "tables": Kind(5, tables.fuzz_tables, "tables of any format, and frames", 0.25),
    "sparse": Kind(6, matrices.fuzz_sparse, "sparse matrices", 0.3, True, SEARCHED, matrices.warm_up),
    "views": Kind(7, matrices.fuzz_views, "operations on `Views`", 0.9),
    "trees": Kind(8, parsers.fuzz_trees, "trees as strings and tuples", 0.3, True, PARSED, parsers.warm_up),
    "libsvm": Kind(9, parsers.fuzz_libsvm, "libsvm files", 0.3, True, PARSED, parsers.warm_up),
    "json": Kind(10, parsers.fuzz_json, "JSON lines", 0.3, True, PARSED, parsers.warm_up),
    "csv": Kind(11, parsers.fuzz_csv, "CSV files", 0.2, True, PARSED, parsers.warm_up),
    "toml": Kind(12, parsers.fuzz_toml, "TOML files of views", 0.2, True, PARSED, parsers.warm_up),
    "npz": Kind(13, parsers.fuzz_npz, "NPZ files", 0.1, True, PARSED, parsers.warm_up),
    "arrow": Kind(14, parsers.fuzz_arrow, "Parquet, Feather and Arrow files", 0.2, True, PARSED, parsers.warm_up),
    "books": Kind(15, parsers.fuzz_books, "Excel, AnnData and MuData files", 0.1, True, PARSED, parsers.warm_up),
    "checkpoints": Kind(16, models.fuzz_checkpoints, "checkpoints of streams", 0.1, True, PARSED, models.warm_up_small),
    "results": Kind(17, results.fuzz_results, "files of stopped runs", 0.1, True, PARSED),
    "commands": Kind(18, commands.fuzz_commands, "the command line", 0.1, True, SEARCHED, commands.warm_up),
}


# -- one case
def run_case(kind, seed, raising=False):
    """Run one case; return its outcome, which begins with "failed" where a property does not hold."""
    CASE.what, CASE.file = lambda: f"{kind} {seed}", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            KINDS[kind].function(np.random.default_rng([KINDS[kind].number, seed]))
            return "passed"
        except Refused as refusal:  # its first words, without names and numbers
            return "refused: " + " ".join(re.sub(r"'[^']*'|\d[\d.e+-]*", "_", str(refusal)[:500]).split()[:5])
        except Exception as error:
            if raising:
                raise
            keep_file(kind, seed, CASE.file)
            return f"failed: {error if isinstance(error, AssertionError) else explain(error)} in {CASE.what()}"


def keep_file(kind, seed, file):
    """Copy the file that a failing case reads to the folder of such files."""
    if file is not None and file.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, KEPT / f"{kind}-{seed}-{file.name}")


@contextmanager
def captured_output():
    """Collect what is written to the file descriptors of output and errors, as BLAS does; yield a function for it."""
    with tempfile.TemporaryFile() as target:
        flush = ctypes.CDLL(None).fflush

        def written():
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            flush(None)
            if not os.lseek(target.fileno(), 0, os.SEEK_END):
                return ""
            text = os.pread(target.fileno(), 10_000, 0).decode(errors="replace").strip()
            os.lseek(target.fileno(), 0, os.SEEK_SET)
            os.ftruncate(target.fileno(), 0)
            return text

        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        try:
            for descriptor in (1, 2):
                os.dup2(target.fileno(), descriptor)
            yield written
        finally:
            for descriptor, old in zip((1, 2), kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)


def run_cases(kind, seeds, tell):
    """Run cases one after the other; `tell` gets a message before and after each, and one about lost memory."""
    many = len(seeds) >= LEAST  # a look at the memory takes longer than a few cases
    with captured_output() as written:

        def run_each(some):
            before = memory() if many else 0
            for seed in some:
                tell(("start", seed))
                outcome, text = run_case(kind, seed), written()
                tell(("end", seed, f"failed: wrote {text[:200]!r} past Python's output" if text else outcome[:3000]))
            return memory() - before if many else 0

        third = -(-len(seeds) // 3)
        gained = [run_each(seeds[start : start + third]) for start in range(0, len(seeds), third)]
    # what is loaded or compiled at its first use is gained once; a leak is gained again by other cases
    if many and min(gained[1:]) > GROWTH:
        lost = " and ".join(f"{size >> 20}" for size in gained[1:])
        tell(("end", seeds[-1], f"failed: twice {third} cases gained {lost} MB of memory"))


def memory():
    """Return the bytes of memory that this process holds and does not keep for later; 0 where the system is silent."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(AttributeError):  # of C libraries but GNU's
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return 0


# -- many cases
FORK = multiprocessing.get_context("fork")


def run_in_child(kind, seeds):
    """Run cases in a child process; return the messages, and how it ended where that was not well."""
    receiving, sending = FORK.Pipe(duplex=False)

    def work():
        faulthandler.disable()  # the parent says which case crashed
        CASE.tell = sending.send
        run_cases(kind, seeds, sending.send)

    child = FORK.Process(target=work)
    child.start()
    sending.close()
    messages, ending = [], ""
    try:
        while receiving.poll(KINDS[kind].limit):
            messages.append(receiving.recv())
        child.kill()
        ending = f"no result in {KINDS[kind].limit} seconds"
    except EOFError:  # the child has ended
        pass
    child.join()
    if child.exitcode and not ending:
        ending = signal.Signals(-child.exitcode).name if child.exitcode < 0 else f"status {child.exitcode}"
    return messages, ending


@functools.cache
def warm_up(kind):
    """Load compiled functions before a process forks, so that not every child loads them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KINDS[kind].warm_up()


def run(kind, seeds):
    """Run cases of a kind; return seed -> outcome. A crash is the failure of its case; another child goes on."""
    outcomes, todo, messages, ending = {}, list(seeds), [], ""
    while todo:
        if KINDS[kind].child:
            warm_up(kind)
            messages, ending = run_in_child(kind, todo)
        else:
            run_cases(kind, todo, messages.append)
        started = [message[1] for message in messages if message[0] == "start"]
        outcomes.update({message[1]: message[2] for message in messages if message[0] == "end"})
        if ending and not started:
            raise RuntimeError(f"The child process ended with {ending} before its first case.")
        if ending and started[-1] not in outcomes:
            about = ""
            if messages[-1][0] == "about":
                about = f" ({messages[-1][1]})"
                keep_file(kind, started[-1], messages[-1][2])
            outcomes[started[-1]] = f"failed: the process ended with {ending}{about}"
        todo = [seed for seed in todo if seed not in outcomes]
    return outcomes


def processor_time():
    """Return the seconds that this process and its children that have ended took of processors."""
    return sum(os.times()[:4])


def failures(outcomes):
    """Return the cases that failed, as seed -> description."""
    return {seed: outcome for seed, outcome in outcomes.items() if outcome.startswith("failed")}


def report(kind, outcomes, seconds):
    """Print counts by outcome, and for each cause of failure how to run one case again."""
    counts = Counter(outcome.split(":")[0] for outcome in outcomes.values()).most_common()
    rate = f", {len(outcomes) / seconds:.0f} a second of one core" if seconds else ""
    print(f"{kind:11s} {len(outcomes):7d} cases: " + ", ".join(f"{count} {what}" for what, count in counts) + rate)
    causes = {}
    for seed, outcome in sorted(failures(outcomes).items()):  # of one cause: the same words, other names and numbers
        words = re.sub(r"'[^']*'|(?<!\.py:)[-+]?\b\d[\d.e+-]*", "#", outcome[8:].split("(")[0])
        causes.setdefault(words[:110], []).append(seed)
    for cause, seeds in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds)} x {cause}")
        print(f"    python tests/fuzz.py --kind {kind} --seed {seeds[0]}    {outcomes[seeds[0]][8:900]}")


def replay(kind, seed):
    """Run one case in this process, or in a child where it may crash, and print all there is to know."""
    outcome = run(kind, [seed])[seed]
    print(f"{kind} {seed}: {outcome}")
    if outcome.startswith("failed") and "the process ended" not in outcome:
        try:
            run_case(kind, seed, raising=True)
        except Exception:
            traceback.print_exc()
    return int(outcome.startswith("failed"))


def main(arguments=None):
    """Run cases from the command line; the exit status is 1 where a property fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=list(KINDS), help="One kind of cases; all by default.")
    parser.add_argument("--seed", type=int, help="The first seed; with --kind alone, the one case to run again.")
    parser.add_argument("--cases", type=int, help="How many cases of each kind.")
    parser.add_argument("--seconds", type=float, help="How long to go on.")
    given = parser.parse_args(arguments)
    if given.kind and given.seed is not None and given.cases is None and given.seconds is None:
        return replay(given.kind, given.seed)
    outcomes = {kind: {} for kind in ([given.kind] if given.kind else KINDS)}
    took = Counter()
    count = given.cases if given.cases is not None else None if given.seconds else 200
    end = time.monotonic() + given.seconds if given.seconds else float("inf")
    first = given.seed or 0
    size = 50 if given.seconds else 2000  # cases of a kind in turn
    for start in itertools.count(first, size):
        last = start + size if count is None else min(start + size, first + count)
        for kind in outcomes:
            if time.monotonic() < end:
                warm_up(kind)
                begin = processor_time()
                outcomes[kind].update(run(kind, range(start, last)))
                took[kind] += processor_time() - begin
        if time.monotonic() >= end or (count is not None and last >= first + count):
            break
    for kind in outcomes:
        report(kind, outcomes[kind], took[kind])
    return int(any(failures(of_kind) for of_kind in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
