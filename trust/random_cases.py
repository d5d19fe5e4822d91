"""Random and damaged files, texts, commands and data: a result or a sentence, no crash, hang or leak.

python trust/random_cases.py            a few cases of each kind, as in the tests
python trust/random_cases.py --long     more than a million cases of parsers
"""

import os

if __name__ == "__main__":  # threads of BLAS only wait for each other on matrices this small
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others keep memory, which looks like a leak

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import fuzz
from check import Check, Figure, Found, main

# kind: cases of the short run, and of the long one: more of those that take little time; the models of "files" take
# seconds to make, and tests/test_fuzz.py has cases of them
CASES = {
    "trees": (40, 200_000), "libsvm": (40, 250_000), "json": (40, 200_000), "csv": (30, 90_000),
    "toml": (40, 260_000), "npz": (20, 30_000), "arrow": (20, 20_000), "books": (2, 2_000), "tables": (20, 20_000),
    "files": (0, 5_000), "checkpoints": (20, 30_000), "results": (10, 6_000), "commands": (2, 1_000),
    "batch": (6, 1_500), "weights": (4, 1_500), "chunks": (6, 2_000), "sparse": (10, 2_000), "views": (20, 6_000),
}  # fmt: skip
PARSERS = (
    "trees", "libsvm", "json", "csv", "toml", "npz", "arrow", "books", "tables", "files", "checkpoints", "results",
    "commands",
)  # fmt: skip
SIZE = 10_000  # cases of one child process
FIRST = 1_000_000  # the first seed of the long run: other cases than those of the tests


class Tally(NamedTuple):
    """Outcomes of the cases of one kind."""

    tried: int
    failures: Counter  # "crash", "hang", "leak", "error"
    passed: int
    seconds: float

    @property
    def failed(self) -> int:
        """Return the number of failures."""
        return self.failures.total()


def way(outcome: str) -> str:
    """Return in which way a case failed."""
    if "no result in" in outcome:
        return "hang"
    return "crash" if "the process ended" in outcome else "leak" if "MB of memory" in outcome else "error"


def run_kind(kind: str, count: int, first: int) -> Tally:
    """Run cases of a kind with seeds from the first one on; print those that fail."""
    if count:
        fuzz.warm_up(kind)
    begin, passed, failures = fuzz.processor_time(), 0, Counter[str]()
    for start in range(first, first + count, SIZE):
        outcomes = fuzz.run(kind, range(start, min(start + SIZE, first + count)))
        passed += sum(outcome == "passed" for outcome in outcomes.values())
        for seed, outcome in fuzz.failures(outcomes).items():
            failures[way(outcome)] += 1
            print(f"python tests/fuzz.py --kind {kind} --seed {seed}    {outcome[:600]}", flush=True)
    return Tally(count, failures, passed, fuzz.processor_time() - begin)


def run(long: bool) -> Found:
    """Run cases of every kind."""
    tallies = {}
    for kind in fuzz.KINDS:
        tallies[kind] = tally = run_kind(kind, CASES[kind][long], FIRST if long else 0)
        if long:
            print(f"{kind}: {tally.tried:,} cases, {tally.failed:,} failed, {tally.seconds:.0f} s", flush=True)
    figures = []
    for what, parses in (("files, texts and commands read", True), ("estimators, streams and views", False)):
        own = [tally for kind, tally in tallies.items() if (kind in PARSERS) == parses]
        tried, passed = sum(tally.tried for tally in own), sum(tally.passed for tally in own)
        failures = sum((tally.failures for tally in own), Counter())
        ways = ", ".join(f"{failures[each]:,} {name}" for each, name in WAYS.items())
        note = f"{passed:,} with a result, {tried - passed - failures.total():,} refused in a sentence, {ways}"
        figures.append(Figure(what, tried, failures.total(), note))
    rows = []
    for kind, tally in tallies.items():
        refused = tally.tried - tally.passed - tally.failed
        counts = (tally.tried, tally.passed, refused, *(tally.failures[each] for each in WAYS))
        rate = f"{tally.tried / tally.seconds:,.0f}" if tally.seconds else ""
        rows.append([fuzz.KINDS[kind].what, *(f"{count:,}" for count in counts), rate])
    heads = ["kind", "tried", "result", "refused", *WAYS.values(), "cases a second of one core"]
    return Found(figures, [("Cases by kind", heads, rows)])


WAYS = {"crash": "crashes", "hang": "hangs", "leak": "leaks", "error": "other failures"}
CHECK = Check(
    "random_cases",
    "Random cases",
    "Whatever a file, a text or a command holds, it gives a result or is refused in one sentence. There is no crash, "
    "no hang, no leak of memory, and no error of another library. Estimators on hostile data predict finite numbers, "
    "whole weights equal repeated rows, and streams in pieces equal streams at once.",
    run,
    (
        f"A case of a parser that takes less than {fuzz.PARSED} seconds counts as one that ends, and one of the "
        f"estimators and model files less than {fuzz.SEARCHED}.",
        f"A leak is found from {fuzz.GROWTH >> 20} MB on in {SIZE // 3:,} cases, or a third of those there are.",
        "In HDF5 files (AnnData, MuData) numbers are damaged and the end is cut off, but not structures: the HDF5 "
        "library crashes on some of these.",
    ),
)


if __name__ == "__main__":
    sys.exit(main(CHECK))
