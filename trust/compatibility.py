"""Versions of Python and packages, scikit-learn's checks, and the files of a release.

    python trust/compatibility.py            compares files: versions, bounds, workflows, contents of wheel and sdist
    python trust/compatibility.py --long     runs the sessions of noxfile.py and all checks of `check_estimator`

The long run needs nox. Sessions that ran on the same files before, ``nox -s oldest -- quick``, are read from build/nox.
"""

import os

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn leaves a check out without it

import json
import re
import shutil
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from sklearn.utils.estimator_checks import check_estimator

import _releases as releases
import cases
from check import ROOT, Check, Figure, Found, main

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "polars", "narwhals", "pyarrow", "skops", "dask",
    "typer",
)  # fmt: skip
FILES: dict[str, Callable[[Path], releases.Compared]] = {
    "places that state the version": releases.compare_versions,
    "places that state versions of Python": releases.compare_pythons,
    "places that state lower bounds of packages": releases.compare_bounds,
    "actions, jobs and permissions of workflows": releases.check_workflows,
    "files that the wheel and the source distribution must have": releases.check_files,
}


# -- sessions
class Session(NamedTuple):
    """What a session of noxfile.py found."""

    name: str
    python: str
    packages: dict[str, str]
    passed: int
    failed: int
    skipped: Counter
    minutes: float


def session_names(root: Path) -> list[str]:
    """Return the sessions that test versions and packages, in the order in which they run."""
    tests = [f"tests-{version}" for version in releases.pythons(root)[1:]]  # the first has all other sessions
    return ["minimal", "build", "package(wheel)", "package(sdist)", "oldest", *tests, "newest"]


def read_session(name: str, folder: Path, digest: str) -> Session | None:
    """Return what a session found, or None if it has not run on these files."""
    described, counts = folder / f"{name}.json", folder / f"{name}.xml"
    if not described.exists():
        return None
    found = json.loads(described.read_text(encoding="utf-8"))
    if found["digest"] != digest:
        return None
    if "built" in found:
        return Session(name, found["python"], found["packages"], len(found["built"]), 0, Counter(), 0.0)
    if not counts.exists():
        return None
    (suite,) = ElementTree.parse(counts).iter("testsuite")
    total, failures, errors, skipped = (int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped"))
    reasons = Counter(plain_reason(each.get("message")) for each in suite.iter("skipped"))
    failed, minutes = failures + errors, float(suite.get("time")) / 60
    return Session(name, found["python"], found["packages"], total - failed - skipped, failed, reasons, minutes)


def plain_reason(text: str) -> str:
    """Return why a test was skipped, without what differs from test to test."""
    found = re.search(r"could not import '(\w+)'|^([\w-]+) is not installed", text)
    return f"{(found[1] or found[2]).replace('_', '-')} is not installed" if found else text


def run_sessions(root: Path, names: Sequence[str]) -> dict[str, Session | None]:
    """Run the sessions that have not run on these files; a session without an interpreter stays None."""
    digest, folder = releases.load_sessions(root).digest(root), root / "build" / "nox"
    found = {name: read_session(name, folder, digest) for name in names}
    missing = [name for name, session in found.items() if session is None]
    if missing:
        nox = shutil.which("nox", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        if nox is None:
            raise SystemExit("nox is not installed: pip install '.[release]'.")
        # nox skips a Python that is not there; failures are read from the counts
        subprocess.run([nox, "--noxfile", str(root / "noxfile.py"), "-s", *missing, "--", "quick"], cwd=root)
        found |= {name: read_session(name, folder, digest) for name in missing}
    return found


def figures_of_sessions(found: dict[str, Session | None]) -> list[Figure]:
    """Return a figure for each session; a session that left no counts failed, unless its Python is not installed."""
    figures = []
    for name, session in found.items():
        if session is None:
            there = interpreter(name)
            note = "no result" if there else "not run: this Python is not installed here"
            figures.append(Figure(f"session `{name}`", 0, int(there), note))
        elif name == "build":
            figures.append(Figure("session `build`: files that `twine check --strict` accepts", session.passed))
        else:
            note = f"Python {session.python}; {session.skipped.total():,} tests skipped"
            figures.append(Figure(f"tests in session `{name}`", session.passed + session.failed, session.failed, note))
    return figures


def interpreter(name: str) -> bool:
    """Tell whether the Python of a session is installed."""
    versions = releases.pythons(ROOT)
    version = name.removeprefix("tests-") if name.startswith("tests-") else versions[-1 if name == "newest" else 0]
    return shutil.which(f"python{version}") is not None


def tables_of_sessions(found: dict[str, Session | None]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the versions of each session, and what it skipped."""
    ran = [session for session in found.values() if session and session.name != "build"]
    versions = []
    for s in ran:
        numbers = f"{s.passed:,}", f"{s.failed:,}", f"{s.skipped.total():,}", f"{s.minutes:.1f}"
        versions.append([s.name, s.python, *(s.packages.get(name, "-") for name in PACKAGES), *numbers])
    heads = ["session", "Python", *PACKAGES, "passed", "failed", "skipped", "minutes"]
    reasons = [[s.name, reason, f"{count:,}"] for s in ran for reason, count in s.skipped.most_common()]
    return [
        ("Versions of the sessions", heads, versions),
        ("Tests that were skipped", ["session", "reason", "tests"], reasons),
    ]


# -- scikit-learn's checks
def check_contracts(names: Sequence[str]) -> tuple[Counter, list[str]]:
    """Run all checks of `check_estimator`; return the outcomes, and a sentence for each that is wrong.

    A check that is exempted must fail, and one that is skipped must say that the estimator has no such method.
    """
    total, problems = Counter(), []
    for name in names:
        exempt = cases.EXEMPT.get(name, {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(
                cases.LEARNERS[name], expected_failed_checks=exempt, on_skip=None, on_fail=None
            )  # fmt: skip
        for each in results:
            status, check = each["status"], each["check_name"]
            total[status] += 1
            if status == "failed":
                problems.append(f"{name}, {check}: {each['exception']}")
            elif status == "passed" and check in exempt:
                problems.append(f"{name}, {check}: passes, but is exempted")
            elif status == "skipped" and "does not have a" not in str(each["exception"]):
                problems.append(f"{name}, {check}: skipped, {each['exception']}")
        made = {each["check_name"] for each in results}
        problems += [f"{name}, {check}: there is no such check" for check in exempt.keys() - made]
    return total, problems


def exemptions() -> list[list[str]]:
    """Return the checks that are exempted, the estimators and the reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, reasons in cases.EXEMPT.items():
        for check, reason in reasons.items():
            grouped.setdefault((reason, type(cases.LEARNERS[name]).__name__), []).append(check)
    rows: dict[str, tuple[set[str], set[str]]] = {}
    for (reason, estimator), checks in grouped.items():
        estimators, known = rows.setdefault(reason, (set(), set()))
        estimators.add(estimator)
        known.update(checks)
    return [
        [", ".join(f"`{check}`" for check in sorted(checks)), ", ".join(sorted(estimators)), reason]
        for reason, (estimators, checks) in rows.items()
    ]


# -- all of it
def compare_files(root: Path) -> list[Figure]:
    """Return a figure for each kind of file that was compared, with the sentences printed."""
    figures = []
    for what, compare in FILES.items():
        try:
            n, problems = compare(root)
        except ModuleNotFoundError as error:
            figures.append(Figure(what, 0, 0, f"not compared: {error.name} is not installed"))
            continue
        for problem in problems:
            print(f"{what}: {problem}")
        figures.append(Figure(what, n, len(problems)))
    return figures


def built_figure(root: Path) -> Figure:
    """Compare what the session `build` made with the repository, byte for byte."""
    n, problems = releases.check_built(root, root / "build" / "dist")
    for problem in problems:
        print(problem)
    return Figure("files of the wheel and of the source distribution, byte for byte", n, len(problems))


def not_run(root: Path) -> list[list[str]]:
    """Return the systems on which the workflows run the tests, and this machine does not."""
    jobs: dict[str, list[str]] = {}
    for system, version in releases.tested_jobs(root):
        jobs.setdefault(system, []).append(version)
    here = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    return [
        [system, ", ".join(versions), "`.github/workflows/tests.yml`"]
        for system, versions in jobs.items()
        if system != here
    ]


def run(long: bool) -> Found:
    """Compare the files of a release; the long run has the sessions and all checks of scikit-learn."""
    figures = compare_files(ROOT)
    if not long:
        return Found(figures)
    sessions = run_sessions(ROOT, session_names(ROOT))
    outcomes, problems = check_contracts(list(cases.LEARNERS))
    for problem in problems:
        print(problem)
    note = f"{outcomes['xfail']} exempted and found to fail, {outcomes['skipped']} not applicable"
    contracts = Figure(
        f"checks of `check_estimator` on {len(cases.LEARNERS)} estimators", outcomes.total(), len(problems), note
    )  # fmt: skip
    figures += [*figures_of_sessions(sessions), built_figure(ROOT), contracts]
    tables = [
        *tables_of_sessions(sessions),
        ("Checks of `check_estimator` that are exempted", ["checks", "estimators", "reason"], exemptions()),
        ("Systems that the workflows test, not this run", ["system", "Python", "workflow"], not_run(ROOT)),
    ]
    return Found(figures, tables)


CHECK = Check(
    "compatibility",
    "Python, packages and releases",
    "The tests pass with every supported Python, with the oldest and with the newest packages, without any extra, and "
    "from the wheel and the source distribution without the source tree. Every estimator passes all checks of "
    "scikit-learn's `check_estimator` but the exempted ones, and these fail. Versions and bounds agree in all files.",
    run,
    (
        "Sessions run the part of the tests that `QUICK` in noxfile.py names; the workflows run all tests on Linux.",
        "macOS and Windows have workflows, which this run does not start.",
        "Combinations of the oldest version of one package with the newest of another are not tried.",
    ),
)


if __name__ == "__main__":
    sys.exit(main(CHECK))
