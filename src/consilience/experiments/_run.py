"""Running an experiment: cells in parallel, each result kept at once, the same JSON for the same seeds."""

import hashlib
import json
import os
import platform
import subprocess  # nosec B404 # git, without a shell
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .. import __version__
from .._progress import progress
from ..io._digests import code_digest
from ..io._locks import hold_lock
from ..io.writing import append_whole, naming_output, write_atomically
from ._experiment import Cell, Experiment, Found, Results

SHORT = "not converged"  # the number of fits that ended before their tolerance
TIMES = "seconds"  # numbers with names that begin so differ from run to run and have a file of their own


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> dict[str, Any]:
    """Measure what the folder lacks, and write and return the results.

    The results of each cell are appended to ``NAME.partial.jsonl`` when it is done, so that a run that was stopped
    continues. At the end there are ``NAME.json``, which depends on the seeds alone, and ``NAME.times.json``. Files that
    the same code has completed are returned as they are.
    """
    _make_folder(folder)
    n_seeds = _number_of_seeds(experiment, quick, seeds)
    stem, digest = file_stem(experiment, quick, seeds), code_digest()
    partial, own_lock = folder / f"{stem}.partial.jsonl", folder / f"{stem}.lock"
    if (finished := _finished(folder, stem, digest)) is not None:
        _remove_leftovers(partial, own_lock)
        return finished
    cells = experiment.cells(n_seeds, quick)
    with _locked(own_lock):
        done = _known(partial, digest)
        missing = [cell for cell in cells if _key(cell) not in done]
        with progress(verbose, experiment.name) as show, partial.open("ab", buffering=0) as file:
            if file.tell() == 0:
                _append(file, {"digest": digest})
            for k, (cell, found) in enumerate(_measure_all(experiment, missing, folder, n_jobs)):
                _append(file, {"cell": cell, "found": found})
                done[_key(cell)] = found
                count = len(cells) - len(missing) + k + 1
                show(f"{experiment.name}: {count} of {len(cells)} measurements", count / len(cells))
        results = _assembled(experiment, cells, done, quick, n_seeds)
        times = [_part(done[_key(cell)], times=True) for cell in cells]
        _write(folder / f"{stem}.json", results)
        # last: its digest says that both files are those of this code
        _write(folder / f"{stem}.times.json", {"machine": _machine(), "digest": digest, "cells": times})
        partial.unlink()
    return results


def file_stem(experiment: Experiment, quick: bool, seeds: int | None = None) -> str:
    """Return the name of the files of a run, without what follows the first dot; a full run has the plain name."""
    name = f"{experiment.name}-quick" if quick else experiment.name
    return name if seeds in (None, experiment.seeds) and not (quick and seeds) else f"{name}-{seeds}-draws"


def _number_of_seeds(experiment: Experiment, quick: bool, seeds: int | None) -> int:
    if seeds is not None:
        return seeds
    return min(2, experiment.seeds) if quick else experiment.seeds


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"'{folder}' is a file. Name a folder for the results.")
    folder.mkdir(parents=True, exist_ok=True)


def _locked(file: Path) -> AbstractContextManager[None]:
    """Let one process at a time measure an experiment in a folder."""
    return hold_lock(
        file,
        lambda holder: (
            f"Process {holder} measures the same experiment in '{file.parent}'. Wait for it, or name another folder."
        ),
    )


def _remove_leftovers(partial: Path, own_lock: Path) -> None:
    """Remove what a process has left that was killed after its results were complete."""
    if partial.exists() or own_lock.exists():
        with suppress(OSError), _locked(own_lock):  # another process is about to do it
            partial.unlink(missing_ok=True)


def _finished(folder: Path, stem: str, digest: str) -> dict[str, Any] | None:
    """Return the record of a run that the same code has completed."""
    record, times = folder / f"{stem}.json", folder / f"{stem}.times.json"
    if not (record.exists() and times.exists()):
        return None
    if _read(times).get("digest") != digest:
        return None
    return _read(record)


def _read(file: Path) -> dict[str, Any]:
    """Return what `_write` wrote."""
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        value = None
    if not (isinstance(value, dict) and isinstance(value.get("cells"), list)):
        raise _damaged(file)
    return value


def _damaged(file: Path) -> ValueError:
    return ValueError(f"'{file}' is damaged: it does not hold the results of a run. Remove it to measure them again.")


def read_results(folder: Path, stem: str) -> tuple[dict[str, Any], Results]:
    """Return what a run wrote: the record, and its measurements together with their times."""
    file, times_file = folder / f"{stem}.json", folder / f"{stem}.times.json"
    record = _read(file)
    times: list[Found] = [{} for _ in record["cells"]]
    if times_file.exists():
        times = _read(times_file)["cells"]
    if not all(map(_is_measurement, record["cells"])):
        raise _damaged(file)
    if len(times) != len(record["cells"]) or not all(isinstance(took, dict) for took in times):
        raise _damaged(times_file)
    cells = [(line["cell"], line["found"] | took) for line, took in zip(record["cells"], times, strict=True)]
    return record, Results(cells)


def cached_in(folder: Path, digest: str) -> Callable[[str, Callable[[], np.ndarray]], np.ndarray]:
    """Return a function that keeps arrays in a folder, such as Gram matrices, and reads them when asked again."""

    def cached(name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        file = folder / f"{hashlib.sha256(f'{digest} {name}'.encode()).hexdigest()[:24]}.npy"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            array = np.ascontiguousarray(make())
            write_atomically(file, lambda out: _write_array(out, array), sync_folder=False)
        return np.load(file, allow_pickle=False)

    return cached


def _write_array(out: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `np.save` does, which leaves it to C, and would say nothing of a disk that is full."""
    np.lib.format.write_array(SimpleNamespace(write=out.write), array, allow_pickle=False)


def _measure_all(experiment: Experiment, cells: list[Cell], folder: Path, n_jobs: int) -> Iterator[tuple[Cell, Found]]:
    if n_jobs == 1:
        for cell in cells:
            yield cell, _measured(experiment.measure, cell, folder, code_digest())
        return
    module, digest = experiment.measure.__module__, code_digest()
    tasks = (delayed(_measured_by_name)(module, experiment.name, cell, folder, digest) for cell in cells)
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)


def _measured_by_name(module: str, name: str, cell: Cell, folder: Path, digest: str) -> tuple[Cell, Found]:
    """Measure a cell in another process, which imports the experiment."""
    experiment = next(each for each in import_module(module).EXPERIMENTS if each.name == name)
    return cell, _measured(experiment.measure, cell, folder, digest)


def _measured(measure: Any, cell: Cell, folder: Path, digest: str) -> Found:
    # one thread: sums of several threads are rounded in another way
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = {name: _plain(value) for name, value in measure(cell, cached_in(folder / "arrays", digest)).items()}
    short = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if short:
        found[SHORT] = short
    took = {f"{TIMES} of the cell": time.process_time() - start} | _part(found, times=True)
    return found | {name: float(f"{value:.4g}") for name, value in took.items()}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; numbers of results have ten significant digits."""
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() else float(f"{number:.10g}")


def _assembled(
    experiment: Experiment, cells: list[Cell], done: dict[str, Found], quick: bool, seeds: int
) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "shown_in": experiment.shown_in,
        "quick": quick,
        "seeds": seeds,
        "consilience": __version__,
        "commit": commit(),
        "cells": [{"cell": cell, "found": _part(done[_key(cell)], times=False)} for cell in cells],
    }


@cache
def commit() -> str | None:
    """Return the commit of the source files, with a mark if they were changed.

    Outside of a repository it is that of the variable CONSILIENCE_COMMIT, or None.
    """
    folder = Path(__file__).parents[1]

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]  # no word comes from data
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)  # nosec B603
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # an environment inside of another repository is not it
        return git("rev-parse", "HEAD")[:12] + (", changed" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("CONSILIENCE_COMMIT")


def _machine() -> str:
    return f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores"


def _part(found: Found, *, times: bool) -> Found:
    return {name: value for name, value in found.items() if name.startswith(TIMES) == times}


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def _known(partial: Path, digest: str) -> dict[str, Found]:
    """Return what a stopped run has kept; nothing if the experiment has changed since."""
    if not partial.exists():
        return {}
    first, *rest = partial.read_bytes().splitlines() or [b""]
    head = json.dumps({"digest": digest})
    if first.decode(errors="replace") != head:
        partial.unlink()
        return {}
    kept: list[dict[str, Any]] = []
    for line in rest:
        try:
            value = json.loads(line)
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):  # the last line of a run that was killed
            break
        kept.append(value)
    kept = [line for line in kept if _is_measurement(line)]
    text = "".join(f"{line}\n" for line in (head, *map(json.dumps, kept)))
    write_atomically(partial, lambda out: out.write(text.encode()))
    return {_key(line["cell"]): line["found"] for line in kept}


def _is_measurement(line: Any) -> bool:
    return isinstance(line, dict) and all(isinstance(line.get(key), dict) for key in ("cell", "found"))


def _append(file: Any, line: dict[str, Any]) -> None:
    with naming_output(file.name):
        append_whole(file.fileno(), json.dumps(line, allow_nan=False).encode() + b"\n")


def _write(path: Path, value: dict[str, Any]) -> None:
    """Write JSON with a line for each cell."""
    head = {name: each for name, each in value.items() if name != "cells"}
    lines = ",\n".join(json.dumps(line, allow_nan=False) for line in value["cells"])
    text = json.dumps(head)[:-1] + ', "cells": [\n' + lines + "\n]}\n"
    write_atomically(path, lambda out: out.write(text.encode()))
