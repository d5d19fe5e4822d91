"""Do the tests notice a changed library? Each mutant is one change of the source; a good test fails with it.

    python trust/mutants.py            some mutants of one module
    python trust/mutants.py --long     a sample of all mutants, for MUTANTS_MINUTES (120); a later run continues;
                                       with 0 minutes it sums up what earlier ones found

`coverage_of_tests` records once which tests reach which line. One process of pytest collects these tests. For each
mutant it forks, and the child replaces the code of the mutated function and runs the tests of the line until one fails.
Compiled functions run as Python (NUMBA_DISABLE_JIT=1), with the tests that reach them so. A test that fails is tried
without the mutant too. Results are kept in build/mutants.jsonl, and mutants that change nothing that could be observed
are named in `equivalent_mutants.toml`, with reasons.
"""

import contextlib
import gc
import hashlib
import itertools
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from _mutations import Mutant, apply, functions_by_code, mutants_of, sample_order
from check import ROOT, Check, Figure, Found, main

PACKAGE = ROOT / "src" / "consilience"
RESULTS = ROOT / "build" / "mutants.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
ROOMS = ("solvers", "views", "io")
CERTIFICATES = ("solvers/bounds.py", "solvers/certificates.py")
SHORT = "solvers/bounds.py", "src/consilience/solvers/bounds.py", 12  # mutants of a file, against its examples
LEAST = 0.85  # share of mutants that the tests must kill
SECONDS, TESTS = 30.0, 400  # of tests per mutant: seconds as recorded, and number
HANG = 20  # seconds of the processor, and five times what was recorded, after which a test hangs
WARM = ("tests/solvers", "tests/kernels", "tests/batch", "tests/online")  # tests that start no threads
WARM_SECONDS = 60
BATCH = 200  # mutants of one process of pytest
WAIT = 400  # seconds without the end of a test after which it waits forever


# -- running tests with a mutant, as a plugin of pytest
class Outcome(NamedTuple):
    """What became of a mutant: "killed", "survived" or "not run", and by which test or why."""

    status: str
    by: str


def pytest_runtestloop(session: Any) -> bool:
    """Try the mutants of the file MUTANTS_JOBS, in place of running the tests."""
    given = json.loads(Path(os.environ["MUTANTS_JOBS"]).read_text(encoding="utf-8"))
    items = {item.nodeid: item for item in session.items}
    root = Path(given["root"])
    jobs = [(Mutant(*fields), tests) for fields, tests in given["jobs"]]
    for file in {mutant.file for mutant, _ in jobs}:
        __import__(f"{root.name}.{file.removesuffix('.py').replace('/', '.')}")
    functions = functions_by_code()
    trusted = warm_up([items[name] for _, tests in jobs for name in tests[:1] if name in items])
    gc.collect()
    gc.freeze()  # children share these pages
    with open(given["results"], "a", encoding="utf-8") as results:
        for mutant, tests in jobs:
            if time.time() > given["end"]:
                break
            chosen = [items[name] for name in tests if name in items]
            outcome = try_mutant(lambda m=mutant: apply(m, root / m.file, functions), chosen, given["limits"], trusted)
            line = {"key": mutant.key, "file": digest(root / mutant.file), **outcome._asdict()}
            passed = tests if outcome.status == "survived" else []
            text = json.dumps({**line, "passed": passed}) + "\n"
            os.write(results.fileno(), text.encode())  # in one piece: two processes write to this file
    return True


def warm_up(items: Sequence[Any]) -> dict[str, bool]:
    """Run tests here, so that children find loaded what these import; return those that fail, as not to be trusted."""
    from _pytest.runner import runtestprotocol

    quiet = [item for item in items if item.nodeid.startswith(WARM) and "dask" not in item.nodeid]
    start, found = time.process_time(), {}
    for item, _ in Counter(quiet).most_common():
        if time.process_time() - start < WARM_SECONDS:
            found[item.nodeid] = not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
    return {name: False for name, passed in found.items() if not passed}


def try_mutant(change: Callable[[], None], items: list[Any], limits: dict, trusted: dict[str, bool]) -> Outcome:
    """Run tests in a child with a change; a test that fails without the change too does not count."""
    while True:
        items = [item for item in items if trusted.get(item.nodeid, True)]
        if not items:
            return Outcome("survived", "no test reaches it")
        outcome = in_child(change, items, limits)
        if outcome.status != "killed":
            return outcome
        name = outcome.by.partition(": ")[2]
        if name not in trusted:
            alone = [item for item in items if item.nodeid == name]
            trusted[name] = in_child(lambda: None, alone, limits).status == "survived"
        if trusted[name]:
            return outcome


def in_child(change: Callable[[], None], items: list[Any], limits: dict[str, float]) -> Outcome:
    """Run tests in a forked process until one fails."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        _work(change, items, limits, sending)
    os.close(sending)
    text = ""
    while select.select([receiving], [], [], WAIT)[0]:
        part = os.read(receiving, 10_000).decode()
        text += part
        if not part or text.endswith("\nend\n"):  # a name of a test may end so too
            break
    for stop in (os.killpg, os.kill):  # with what tests may have started
        with contextlib.suppress(ProcessLookupError):
            stop(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(receiving)
    kind, _, name = (text.removesuffix("end\n").splitlines() or ["not run: the process ended"])[-1].partition(": ")
    if kind == "test":
        return Outcome("killed", f"hung or crashed: {name}")
    return Outcome({"failed": "killed", "passed": "survived"}.get(kind, "not run"), f"{kind}: {name}")


def _work(change: Callable[[], None], items: list[Any], limits: dict[str, float], sending: int) -> None:
    from _pytest.runner import runtestprotocol

    def tell(text: str) -> None:
        os.write(sending, f"{text}\n".encode())

    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        change()
        for item, later in zip(items, [*items[1:], None], strict=True):
            tell(f"test: {item.nodeid}")
            limit = math.ceil(time.process_time() + limits[item.nodeid])
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=later)):
                tell(f"failed: {item.nodeid}\nend")
                return
        tell("passed: all\nend")
    except ValueError as error:  # of `apply`
        tell(f"not run: {error}\nend")
    finally:
        os._exit(0)


# -- jobs
class Job(NamedTuple):
    """A mutant and the tests to run, the most promising first."""

    mutant: Mutant
    tests: list[str]


def run_jobs(
    jobs: Sequence[Job], seconds: dict[str, float], results: Path, end: float, *,
    compiler: bool = True, root: Path = PACKAGE, place: Path = ROOT, hang: float = HANG,
) -> None:  # fmt: skip
    """Try mutants in one process of pytest, which appends the outcomes to `results`."""
    files = sorted({name.partition("::")[0] for job in jobs for name in job.tests})
    names = {name for job in jobs for name in job.tests}
    results.parent.mkdir(parents=True, exist_ok=True)
    paths = [Path(__file__).parent, root.parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jobs.json"
        given = {
            "root": str(root), "jobs": jobs, "end": end, "results": str(results),
            "limits": {name: hang + 5 * seconds.get(name, 0.0) for name in names},
        }  # fmt: skip
        file.write_text(json.dumps(given), encoding="utf-8")
        environment = {
            **os.environ, "MUTANTS_JOBS": str(file), "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "NUMBA_DISABLE_JIT": "0" if compiler else "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-p", "mutants", "-p", "no:cacheprovider", *files]
        subprocess.run(command, cwd=place, env=environment, stdout=subprocess.DEVNULL, check=False)


def choose(reaching: Iterable[str], seconds: dict[str, float]) -> list[str]:
    """Return tests for `SECONDS`: of each test function the fastest case first, those of a file together."""
    counts: Counter[str] = Counter()
    ranked = []
    for name in sorted(reaching, key=lambda name: (seconds[name], name)):
        function = name.partition("[")[0]
        ranked.append((counts[function], seconds[name], name))
        counts[function] += 1
    by_file, total = defaultdict(list), 0.0
    for position, (_, cost, name) in enumerate(sorted(ranked)):
        if total + cost <= SECONDS and position < TESTS:
            by_file[name.partition("::")[0]].append(name)
            total += cost
    cost_of = {file: sum(map(seconds.__getitem__, names)) / len(names) for file, names in by_file.items()}
    return [name for file in sorted(by_file, key=cost_of.__getitem__) for name in by_file[file]]


class Recorded:
    """Which tests reach a line, with the compiler on and off, and how long they take."""

    def __init__(self, folders: dict[bool, list[Path]]) -> None:
        self.folders = folders
        self.seconds: dict[bool, dict[str, float]] = {True: {}, False: {}}
        for compiler, own in folders.items():
            for folder in own:
                tests = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
                self.seconds[compiler] |= {name: seconds for name, (seconds, _) in tests.items()}
        self._by_line = lru_cache(maxsize=4)(self._read)

    def _read(self, file: str, compiler: bool) -> dict[int, set[str]]:
        from coverage_of_tests import tests_by_line

        return tests_by_line(self.folders[compiler], PACKAGE / file)

    def job(self, mutant: Mutant) -> Job:
        """Return a mutant with its tests."""
        by_line, (first, last) = self._by_line(mutant.file, not mutant.compiled), mutant.reached_by
        reaching = set().union(*(tests for line, tests in by_line.items() if first <= line <= last))
        return Job(mutant, choose(reaching, self.seconds[not mutant.compiled]))


def try_jobs(jobs: Sequence[Job], recorded: Recorded, end: float, results: Path = RESULTS) -> None:
    """Try mutants in a process for each core, those of compiled functions in processes without the compiler."""
    cores = os.cpu_count() or 1

    def work(compiler: bool, first: int) -> None:
        own = [job for job in jobs if job.mutant.compiled != compiler][first::cores]
        if own:
            run_jobs(own, recorded.seconds[compiler], results, end, compiler=compiler)

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(work, *zip(*itertools.product((True, False), range(cores)), strict=True)))


def digest(path: Path) -> str:
    """Return a digest of a Python file, or of all those in a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def kept_results(mutants: Sequence[Mutant], results: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the results that hold for the present files, the oldest first."""
    digests = {file: digest(PACKAGE / file) for file in {mutant.file for mutant in mutants}}
    file_of = {mutant.key: mutant.file for mutant in mutants}
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return [each for each in map(json.loads, lines) if digests.get(file_of.get(each["key"])) == each["file"]]


def read_results(mutants: Sequence[Mutant], results: Path = RESULTS) -> tuple[dict[str, Outcome], dict[str, set[str]]]:
    """Return by key the outcomes that hold for the present files, and the tests that passed with a mutant."""
    found, passed = {}, defaultdict(set)
    for result in kept_results(mutants, results):
        found[result["key"]] = Outcome(result["status"], result["by"])
        passed[result["key"]].update(result["passed"])
    return found, passed


def first_outcomes(mutants: Sequence[Mutant], results: Path = RESULTS) -> dict[str, str]:
    """Return by key what became of mutants when they were first tried, before tests were written for survivors."""
    return {result["key"]: result["status"] for result in reversed(kept_results(mutants, results))}


def new_jobs(mutants: Sequence[Mutant], recorded: Recorded, results: Path = RESULTS) -> list[Job]:
    """Return mutants that were not tried, and those that survived with the tests that are new since then."""
    outcomes, passed = read_results(mutants, results)
    todo = [mutant for mutant in mutants if outcomes.get(mutant.key, ("survived",))[0] == "survived"]
    by_file = sorted(todo, key=lambda mutant: mutant.file)  # data of a file are read once
    jobs = {mutant.key: recorded.job(mutant) for mutant in by_file}
    found = []
    for mutant in todo:
        tests = [name for name in jobs[mutant.key].tests if name not in passed[mutant.key]]
        if tests or mutant.key not in outcomes:
            found.append(Job(mutant, tests))
    return found


# -- the check
def read_equivalent() -> dict[tuple[Any, ...], str]:
    """Return reasons by file, function, text before and after, and number."""
    table = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    fields = ("file", "function", "before", "after", "number")
    return {tuple(row.get(field, 1) for field in fields): row["reason"] for row in table}


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95% interval of a share k / n."""
    center, spread = k + z * z / 2, z * math.sqrt(k * (n - k) / n + z * z / 4)
    return max(0.0, (center - spread) / (n + z * z)), min(1.0, (center + spread) / (n + z * z))


def summarize(mutants: Sequence[Mutant], outcomes: dict[str, Outcome], first: dict[str, str]) -> Found:
    """Return the share of killed mutants by room, now and when they were first tried, and those that survive."""
    equivalent, figures, survivors = read_equivalent(), [], []
    rooms = defaultdict(list)
    for mutant in mutants:
        rooms[room_of(mutant)].append(mutant)
    for room, own in sorted(rooms.items()):
        named = [mutant for mutant in own if mutant[:5] in equivalent]
        tried = [m for m in own if m[:5] not in equivalent and outcomes[m.key].status != "not run"]
        alive = [mutant for mutant in tried if outcomes[mutant.key].status == "survived"]
        if not tried:
            continue
        n, killed = len(tried), len(tried) - len(alive)
        at_once = sum(first[mutant.key] == "killed" for mutant in tried)
        low, high = wilson(at_once, n)
        note = (
            f"{killed / n:.0%} killed; {at_once / n:.0%} when first tried, 95% interval {low:.0%} to {high:.0%}; "
            f"{len(named)} more are equivalent"
        )
        figures.append(Figure(f"mutants of {room}", n, max(0, len(alive) - int((1 - LEAST) * n)), note))
        survivors += [
            [f"{m.file}:{m.line}", f"`{m.before}`", f"`{m.after}`", outcomes[m.key].by.replace("passed: ", "")]
            for m in alive
        ]
    return Found(figures, [("Mutants that survived", ["place", "before", "after", "tests that passed"], survivors)])


def run(long: bool) -> Found:
    """Try mutants until the time is over, and sum up those of each room that were tried without a gap in the order."""
    from coverage_of_tests import all_parts, measure

    if not long:
        file, part, size = SHORT
        with tempfile.TemporaryDirectory() as folder:
            recorded = Recorded({True: [measure(part, True, Path(folder))], False: []})
            mutants = sample_order([m for m in mutants_of(PACKAGE / file, PACKAGE) if not m.compiled])[:size]
            results = Path(folder) / "results"
            try_jobs(new_jobs(mutants, recorded, results), recorded, math.inf, results)
            return summarize(mutants, read_results(mutants, results)[0], first_outcomes(mutants, results))
    order, minutes = whole_order(), float(os.environ.get("MUTANTS_MINUTES", 120))
    if minutes > 0:
        parts = {on: [measure(*part) for part in all_parts() if part[1] == on] for on in (True, False)}
        recorded, end = Recorded(parts), time.time() + 60 * minutes
        for first in range(0, len(order), BATCH):
            if time.time() < end:
                try_jobs(new_jobs(order[first : first + BATCH], recorded), recorded, end)
    outcomes, _ = read_results(order)
    return summarize(without_gaps(order, outcomes), outcomes, first_outcomes(order))


def room_of(mutant: Mutant) -> str:
    """Return the room of a mutant; certificates count as one."""
    return "certificates" if mutant.file in CERTIFICATES else mutant.file.partition("/")[0]


def without_gaps(order: Sequence[Mutant], outcomes: dict[str, Outcome]) -> list[Mutant]:
    """Return of each room the mutants before the first that was not tried, so that the sample stays random."""
    found, ended = [], set()
    for mutant in order:
        if mutant.key not in outcomes:
            ended.add(room_of(mutant))
        elif room_of(mutant) not in ended:
            found.append(mutant)
    return found


def whole_order() -> list[Mutant]:
    """Return all mutants in the order in which they are tried: one of the certificates for eight others."""
    files = [file for room in ROOMS for file in sorted((PACKAGE / room).glob("*.py"))]
    every = [mutant for file in files for mutant in mutants_of(file, PACKAGE)]
    own = sample_order([mutant for mutant in every if mutant.file in CERTIFICATES])
    others = sample_order([mutant for mutant in every if mutant.file not in CERTIFICATES])
    ranked = [(8 * k, mutant) for k, mutant in enumerate(own)] + list(enumerate(others))
    return [mutant for _, mutant in sorted(ranked, key=lambda each: each[0])]


CHECK = Check(
    "mutants",
    "Mutants",
    "The tests notice at least 85% of small changes of the solvers, the certificates, the views and the files: other "
    "operators, numbers, conditions, bounds of slices and defaults, and statements that are left out.",
    run,
    (
        "The sample is random, by file, with a fixed seed. Tests were written for mutants that survived when they were "
        "first tried, so the first share is the one to expect of other mutants.",
        f"Each mutant meets tests of at most {SECONDS:.0f} seconds; others might notice more.",
        "Tests that start other processes do not see the change.",
        "A test that does not end counts as one that fails.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
