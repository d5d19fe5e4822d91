"""How much of the library do the tests run? Lines and branches, with compiled loops measured as Python.

    python trust/coverage_of_tests.py            one test file and the module that it tests
    python trust/coverage_of_tests.py --long     all tests; a later run measures again what has changed; with data in
                                                 CONSILIENCE_DATA the tests of real data run too

Each part of the tests runs in a process of its own, under coverage.py with branches, also in the processes that tests
start. Compiled loops cannot be traced, so the tests that reach them run again with NUMBA_DISABLE_JIT=1; one that takes
too long so is stopped, since it passed before. `mutants` reads from the same data which tests reach a line.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from check import ROOT, Check, Figure, Found, main

PACKAGE = ROOT / "src" / "consilience"
FOLDER = ROOT / "build" / "coverage"
LEAST = 0.95  # share of lines and of branches
SHORT = "tests/io/test_writing.py", "io/writing.py"
BY_FILE = ("solvers", "views", "io", "batch")  # each file is a part of its own: what has changed is soon measured
SECONDS = 4  # of the processor for a test with the compiler off

# the tests that reach compiled loops on small arrays
WITHOUT_COMPILER = (
    "online", "solvers/test_margin.py", "solvers/test_box_qp.py", "solvers/test_svm_features.py", "kernels",
    "views/test_running.py", "io/test_libsvm_rows.py", "io/test_checkpoints.py", "evaluation/test_monitoring.py",
    "evaluation/test_progressive.py", "batch/test_max_margin.py", "batch/test_vector_valued.py",
    "batch/test_svc_features.py", "batch/test_coregularized.py", "experiments/test_adult.py",
)  # fmt: skip

_CONFIGURATION = """
[run]
branch = true
parallel = true
source = {source}
data_file = {folder}/data
concurrency = multiprocessing, thread
patch = _exit
disable_warnings = no-data-collected, module-not-imported

[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
"""


def all_parts() -> list[tuple[str, bool]]:
    """Return the parts of the tests that run in one process each, and whether loops are compiled there."""
    tests = ROOT / "tests"
    others = {tests / name for name in ("trust", *BY_FILE)}
    folders = sorted({file.parent for file in tests.glob("*/test_*.py")} - others)
    files = [file for name in BY_FILE for file in sorted((tests / name).glob("test_*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in [*files, *folders, *sorted(tests.glob("test_*.py"))]]
    again = [file for name in WITHOUT_COMPILER for file in sorted((tests / name).glob("test_*.py")) or [tests / name]]
    return [(name, True) for name in [*names, "src"]] + [(file.relative_to(ROOT).as_posix(), False) for file in again]


def measure(part: str, compiler: bool, folder: Path = FOLDER, root: Path = ROOT, source: Path = PACKAGE) -> Path:
    """Run a part of the tests under coverage.py, if that was not done for the present files; return its folder."""
    own = folder / ("" if compiler else "without_compiler") / part.replace("/", ".")
    shared = [file for file in sorted((root / "tests").rglob("*.py")) if not file.name.startswith("test_")]
    digest, kept = digest_of([source, root / part, *shared]), own / "digest"
    if kept.exists() and kept.read_text() == digest:
        return own
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    (own / "sitecustomize.py").write_text("import coverage\n\ncoverage.process_startup()\n")
    (own / "rc").write_text(_CONFIGURATION.format(source=source, folder=own))
    paths = [own, Path(__file__).parent, root / "src", *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COVERAGE_PROCESS_START": str(own / "rc"),
        "CONTEXTS_OF_TESTS": str(own / "tests.json"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    if not compiler:
        environment |= {"NUMBA_DISABLE_JIT": "1", "SECONDS_OF_TESTS": str(SECONDS)}
    command = [sys.executable, "-m", "pytest", "-p", "_contexts", "-p", "no:cacheprovider", part]
    with open(own / "log", "w") as log:
        run = subprocess.run(command, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT)
    if run.returncode == 0:
        kept.write_text(digest)
    return own


def digest_of(paths: Iterable[Path]) -> str:
    """Return a digest of Python files and of all those in folders."""
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(file.read_bytes())
    return found.hexdigest()


def tests_by_line(folders: Sequence[Path], file: Path) -> dict[int, set[str]]:
    """Return the tests that reach each line of a file, with those that use a fixture that reaches it."""
    from coverage import CoverageData

    found = defaultdict(set)
    for folder in folders:
        users = defaultdict(set)
        for name, (_, fixtures) in json.loads((folder / "tests.json").read_text(encoding="utf-8")).items():
            users[name] = {name}
            for fixture in fixtures:
                users[f"fixture {fixture}"].add(name)
        for data in _data_files(folder):
            measured = CoverageData(str(data))
            measured.read()
            for line, contexts in measured.contexts_by_lineno(str(file)).items():
                found[line].update(*(users[context] for context in contexts if context))
    return found


def _data_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("data.*") if "-journal" not in path.name)


def summary(folders: Sequence[Path], source: Path = PACKAGE) -> dict[str, dict[str, Any]]:
    """Return the summary of coverage.py for each file of the library."""
    import coverage

    with tempfile.TemporaryDirectory() as place:
        settings, report = Path(place) / "rc", Path(place) / "report.json"
        settings.write_text(_CONFIGURATION.format(source=source, folder=place).replace("parallel = true", ""))
        whole = coverage.Coverage(config_file=str(settings))
        arcs = defaultdict(set)
        for folder in folders:
            for file in _data_files(folder):
                data = coverage.CoverageData(str(file))
                data.read()
                for name in data.measured_files():
                    arcs[name].update(data.arcs(name) or ())
        whole.get_data().add_arcs(arcs)
        whole.json_report(outfile=str(report))
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    return {Path(ROOT, name).relative_to(source).as_posix(): of for name, of in files.items()}


def rows_of(files: dict[str, dict[str, Any]]) -> list[tuple[str, int, int, int, int]]:
    """Return for each room and for all of it: lines, lines that were run, branches, branches that were taken."""
    keys = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    rooms = defaultdict(lambda: [0, 0, 0, 0])
    for name, of in files.items():
        room = name.partition("/")[0] if "/" in name else "the package itself"
        for target in (room, "all"):
            rooms[target] = [a + of["summary"][key] for a, key in zip(rooms[target], keys, strict=True)]
    last = rooms.pop("all")
    return [(room, *counts) for room, counts in sorted(rooms.items())] + [("all", *last)]


def run(long: bool) -> Found:
    """Measure the tests; fail if less than 95% of lines or branches were run, or if a test failed."""
    parts = all_parts() if long else [(SHORT[0], True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = list(pool.map(lambda part: measure(*part), parts))
    failed = [part for (part, _), folder in zip(parts, folders, strict=True) if not (folder / "digest").exists()]
    files = summary(folders)
    rows = rows_of(files if long else {SHORT[1]: files[SHORT[1]]})
    *_, (_, lines, run_lines, branches, taken) = rows
    figures = [Figure("parts of the tests under coverage.py", len(parts), len(failed), ", ".join(failed))]
    for what, total, covered in (("lines", lines, run_lines), ("branches", branches, taken)):
        missing = total - covered
        allowed = int((1 - LEAST) * total)
        figures.append(Figure(what, total, max(0, missing - allowed), f"{covered / total:.1%} run, {missing:,} not"))
    heads = ["room", "lines", "run", "branches", "taken"]
    table = [[room, f"{a:,}", f"{b / a:.1%}", f"{c:,}", f"{d / c:.1%}" if c else ""] for room, a, b, c, d in rows]
    return Found(figures, [("By room", heads, table)])


CHECK = Check(
    "coverage_of_tests",
    "Coverage",
    "The tests run at least 95% of the lines and of the branches of the library. Compiled loops are run as Python.",
    run,
    (
        "A line that is run may still be wrong: the mutants below show what the tests notice.",
        "Lines for a GPU and for other operating systems are not run on this machine.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
