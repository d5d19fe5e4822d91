"""The same fit in other circumstances: ``python trust/determinism.py [--long]``.

Each circumstance is a process of its own, with variables, a folder or a form of the data that differ from those of the
first run. CONSILIENCE_OTHER_PYTHON names an interpreter of another environment, with other builds of NumPy and SciPy.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import numpy as np

import _one_run
import cases
import consilience as cs
from _fits import ONLINE, samples
from check import ROOT, Check, Figure, Found, main

EXACT, ITERATIVE = 1e-8, 1e-5  # limits of relative differences: closed forms and streams, and iterations
STREAM = 1e-9  # of streams of kernel estimators in other chunks; linear ones have the same bits
CHUNKS = (1, 7, 64)
REFUSALS = (  # of estimators that need all samples in memory
    "which needs them in memory", "needs all samples at once", "takes samples in memory", "is not loaded into memory",
    "missing 1 required positional argument: 'y'", "has no attribute 'partial_fit'",
)  # fmt: skip
CORES = ("Prescott", "Nehalem", "Haswell", "Zen")  # names of OpenBLAS for its sets of routines
SHORT = ["coregularized ridge", "metric ridge, features", "kernel perceptron", "perceptron"]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}

Outcomes = dict[str, Any]


class Difference(NamedTuple):
    """How far two fits are apart, relative to the largest number, and what is wrong, if anything."""

    largest: float
    wrong: str = ""


# -- runs
def child(how: dict[str, Any], variables: dict[str, str], folder: str, python: str = sys.executable) -> Outcomes:
    """Fit in a process with these variables, in this working folder; return the outcomes."""
    request, result = Path(folder) / "request.json", Path(folder) / "result.json"
    request.write_text(json.dumps({**how, "to": str(result)}), encoding="utf-8")
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src"), **variables}
    script = str(ROOT / "trust" / "_one_run.py")
    done = subprocess.run([python, script, str(request)], env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"A run with {variables} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(result.read_text(encoding="utf-8")))


def in_child(how: dict[str, Any], variables: dict[str, str] | None = None, python: str = sys.executable) -> Outcomes:
    """Fit in a process with its own working folder."""
    with tempfile.TemporaryDirectory() as folder:
        return child(how, variables or {}, folder, python)


# -- comparisons
def bits(one: Outcomes, other: Outcomes) -> Difference:
    """Return whether all numbers are the same, bit for bit."""
    if "error" in one or "error" in other:
        return Difference(np.nan, "" if one.get("error") == other.get("error") else str((one, other))[:300])
    own, theirs = np.array(one["answers"]), np.array(other["answers"])
    off = _relative(own, theirs)
    rest = ("objective", "gap", "counts")
    equal = own.tobytes() == theirs.tobytes() and repr([one[k] for k in rest]) == repr([other[k] for k in rest])
    return Difference(off, "" if equal else f"the bits differ, scores by {off:.1e}")


def rounding(one: Outcomes, other: Outcomes, limit: float | None = None) -> Difference:
    """Return whether scores are within a limit, classes and counts equal, and objectives as close as their gaps say."""
    if "error" in one or "error" in other:
        return Difference(np.nan, str((one, other))[:300])
    off = _relative(np.array(one["answers"]), np.array(other["answers"]))
    limit = limit or (EXACT if one["exact"] else ITERATIVE)
    wrong = [] if off <= limit else [f"scores differ by {off:.1e}, at most {limit:g} is allowed"]
    if one["classes"] != other["classes"]:
        wrong.append("predicted classes differ")
    if one["exact"] and one["counts"][1:] != other["counts"][1:]:
        wrong.append(f"updates or mistakes differ: {one['counts']}, {other['counts']}")
    if one["objective"] is not None and one["gap"] is not None and other["gap"] is not None:
        apart, size = abs(one["objective"] - other["objective"]), max(abs(one["objective"]), 1e-300)
        if apart > max(one["gap"], other["gap"], 0.0) + 1e-9 * size:
            wrong.append(f"objectives are {apart / size:.1e} apart, gaps are {one['gap']:.1e} and {other['gap']:.1e}")
    return Difference(off, "; ".join(wrong))


def _relative(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return np.inf
    scale = max(float(np.abs(one).max(initial=0.0)), 1e-300)
    return float(np.abs(one - other).max(initial=0.0)) / scale


# -- circumstances
class Circumstance(NamedTuple):
    """What differs from the first run, and how the outcome is compared."""

    what: str
    run: Callable[[dict[str, Any]], Outcomes]
    compare: Callable[[Outcomes, Outcomes], Difference]


def same_bits(long: bool) -> list[Circumstance]:
    """Return circumstances in which nothing may differ."""
    other = {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
    found = [Circumstance("another hash seed, folder, time zone and locale", _with(other), bits)]
    if long:
        found.append(Circumstance("2 threads of numba", _with({"NUMBA_NUM_THREADS": "2"}), bits))
        if hasattr(os, "fork"):
            found.append(Circumstance("a forked process", _asked({"way": "forked"}), bits))
    return found


def up_to_rounding(long: bool) -> list[Circumstance]:
    """Return circumstances in which sums may be taken in another order."""
    found = [
        Circumstance(f"routines of OpenBLAS for {core}", _with({"OPENBLAS_CORETYPE": core}), rounding)
        for core in (CORES if long else ())
    ]
    if not long:
        found.append(Circumstance("the process of the tests", _one_run.outcomes, rounding))
    else:
        found[:0] = [
            Circumstance(f"{k} threads of BLAS", _with({name: str(k) for name in ONE_THREAD}), rounding) for k in (2, 4)
        ]
        found.append(Circumstance("views in another order", _asked({"reverse": True}), rounding))
        if "CONSILIENCE_OTHER_PYTHON" in os.environ:
            python = os.environ["CONSILIENCE_OTHER_PYTHON"]
            found.append(Circumstance(f"other packages: {builds(python)}", _elsewhere(python), rounding))
    return found


def _with(variables: dict[str, str]) -> Callable[[dict[str, Any]], Outcomes]:
    return lambda how: in_child(how, variables)


def _asked(more: dict[str, Any]) -> Callable[[dict[str, Any]], Outcomes]:
    return lambda how: in_child({**how, **more})


def _elsewhere(python: str) -> Callable[[dict[str, Any]], Outcomes]:
    def run(how: dict[str, Any]) -> Outcomes:
        with tempfile.TemporaryDirectory() as folder:  # compiled loops of another numba
            return in_child(how, {"NUMBA_CACHE_DIR": folder}, python)

    return run


def builds(python: str) -> str:
    """Return the versions of NumPy, SciPy and their BLAS in another environment."""
    code = (
        "import numpy, scipy.linalg, threadpoolctl; "
        "blas = sorted({one['internal_api'] + ' ' + str(one['version']) for one in threadpoolctl.threadpool_info()}); "
        "print(f'NumPy {numpy.__version__}, SciPy {scipy.__version__}, ' + ', '.join(blas))"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def compared(first: Outcomes, given: Circumstance, how: dict[str, Any]) -> dict[str, Difference]:
    """Return the difference of each estimator in a circumstance."""
    found = given.run(how)
    return {name: given.compare(first[name], found[name]) for name in how["names"]}


# -- forms of the data
def chunkings(names: Iterable[str], n: int) -> dict[str, Difference]:
    """Learn the same stream in chunks of several sizes: linear estimators have the same bits."""
    found = {}
    for name in names:
        how = {"names": [name], "n": n}
        whole = _one_run.outcomes({**how, "chunk": n})[name]
        compare = bits if cases.LEARNERS[name]._is_primal() else functools.partial(rounding, limit=STREAM)
        each = [compare(whole, _one_run.outcomes({**how, "chunk": size})[name]) for size in CHUNKS]
        wrong = [one.wrong for one in each if one.wrong]
        found[name] = Difference(max(one.largest for one in each), "; ".join(wrong))
    return found


def partitions(names: Iterable[str], way: str, n: int) -> dict[str, Difference]:
    """Fit on row blocks or partitions of Dask, where an estimator takes them."""
    found = {}
    for name in names:
        how = {"names": [name], "n": n}
        parts = _one_run.outcomes({**how, "way": way})[name]
        if "error" in parts and any(text in parts["error"] for text in REFUSALS):
            continue
        found[name] = rounding(_one_run.outcomes({**how, "chunk": n} if name in ONLINE else how)[name], parts)
    return found


def orders_of_files() -> Difference:
    """Read a folder of files that the system lists in another order."""
    import pandas as pd

    found, listed = [], Path.rglob
    X, y = samples("perceptron", 30)
    with tempfile.TemporaryDirectory() as folder:
        for k in range(3):
            rows = slice(10 * k, 10 * k + 10)
            columns = {f"a__{j}": X["a"][rows, j] for j in range(3)}
            pd.DataFrame({**columns, "y": y[rows]}).to_parquet(Path(folder) / f"{'bca'[k]}.parquet")
        for backwards in (False, True):
            names = functools.partial(_sorted_files, listed, backwards)
            with mock.patch.object(Path, "rglob", lambda self, pattern, names=names: names(self, pattern)):
                blocks = list(cs.read_blocks(folder, target="y", size=7))
            found.append(b"".join(np.asarray(own[0]["a"]).tobytes() for own in blocks))
    return Difference(0.0, "" if found[0] == found[1] else "the order of files matters")


def _sorted_files(listed: Any, backwards: bool, folder: Path, pattern: str) -> list[Path]:
    return sorted(listed(folder, pattern), reverse=backwards)


def jobs() -> Difference:
    """Compare estimators in one process and in two."""
    X, y = samples("coregularized classifier", 60)
    boards = [
        cs.compare(X, y, task="classification", estimators={"a": cs.CoRegularizedRidgeClassifier("rbf", alpha=0.1),
                   "b": cs.OnlinePerceptron(random_state=0)}, cv=3, n_jobs=k)
        for k in (1, 2)
    ]  # fmt: skip
    rows = [[(row.name, np.asarray(row.scores).tobytes(), row.predictions.tobytes()) for row in b.rows] for b in boards]
    return Difference(0.0, "" if sorted(rows[0]) == sorted(rows[1]) else "the number of jobs matters")


# -- the check
def figure(what: str, found: dict[str, Difference]) -> Figure:
    """Return a line, and print what is wrong."""
    for name, own in found.items():
        if own.wrong:
            print(f"{what}, {name}: {own.wrong}", flush=True)
    known = [own.largest for own in found.values() if not np.isnan(own.largest)]
    note = f"largest relative difference {max(known):.1e}" if known and max(known) else "the same bits"
    return Figure(what, len(found), sum(bool(own.wrong) for own in found.values()), note)


def run(long: bool) -> Found:
    """Fit in all circumstances, and compare."""
    names, n = (list(cases.LEARNERS), 200) if long else (SHORT, 40)
    how = {"names": names, "n": n}
    first = in_child(how)
    broken = [name for name in names if "error" in first[name]]
    if broken:
        raise RuntimeError(f"{broken[0]} cannot be fitted: {first[broken[0]]['error']}")
    found = {each.what: compared(first, each, how) for each in (*same_bits(long), *up_to_rounding(long))}
    streams = [name for name in names if name in ONLINE and hasattr(cases.LEARNERS[name], "partial_fit")]
    found[f"chunks of {', '.join(map(str, CHUNKS))} and all samples"] = chunkings(streams, n)
    found["row blocks"] = partitions(names, "row blocks", n)
    if long and importlib.util.find_spec("dask"):
        found["partitions of Dask"] = partitions(names, "dask", n)
    if long and importlib.util.find_spec("pyarrow") and importlib.util.find_spec("pandas"):
        found["files of a folder in another order"] = {"read_blocks": orders_of_files()}
    if long:
        found["`compare` with 1 and 2 jobs"] = {"compare": jobs()}
    figures = [figure(what, own) for what, own in found.items()]
    shown = [each.what for each in up_to_rounding(long)] + [
        f.what for f in figures if f.what.startswith(("ch", "row", "par"))
    ]
    rows = [[name, *(_cell(found[what].get(name)) for what in shown)] for name in names]
    return Found(figures, [("Largest relative difference of all scores, 0 for the same bits", ["", *shown], rows)])


def _cell(found: Difference | None) -> str:
    return "-" if found is None else "0" if found.largest == 0 else f"{found.largest:.0e}"


CHECK = Check(
    "determinism",
    "Determinism",
    "A fit has the same bits in every process on one machine: with any hash seed, folder, time zone and locale, forked "
    "or not. Other threads, routines and builds of BLAS, and other orders of the views, change it by rounding. Scores "
    f"then agree to {EXACT:g} where the fit is a closed form or a stream, and to {ITERATIVE:g} where it is an "
    "iteration that ends at a tolerance. Predicted classes are equal, and objectives differ by no more than the "
    f"printed gap. Linear estimators learn a stream to the same bits in any chunks, kernel estimators to {STREAM:g}.",
    run,
    (
        "Fits have 200 samples and two views. Differences grow with the condition of the problem.",
        "All builds of BLAS are versions and routines of OpenBLAS on one processor: not MKL, BLIS or Accelerate.",
        "Estimators have a `random_state`; with None, which is the default, two fits may differ.",
    ),
)


if __name__ == "__main__":
    sys.exit(main(CHECK))
