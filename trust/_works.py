"""Commands that write files, and what these must be: whole, old or new, and equal in the end."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import _commands
import consilience as cs
import consilience.experiments
from _state import fingerprint, without_verbose
from consilience.experiments._experiment import Experiment

ROWS = 160


class Work(NamedTuple):
    """A command: its words, words that are added where it continues, and the files it writes."""

    words: tuple[str, ...]
    files: tuple[str, ...]
    resume: tuple[str, ...] = ()


WORKS = {
    "fit": Work(("fit", "good.csv", "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", "new.cons"),
                ("new.cons",)),
    "predict": Work(("predict", "model.cons", "good.csv", "--out", "out.csv"), ("out.csv",)),
    "evaluate": Work(("evaluate", "model.cons", "good.csv", "-y", "y", "--report", "external.html"),
                     ("external.html",)),
    "stream": Work(("stream", "rows.jsonl", "-y", "y", "--on-error", "skip", "--checkpoint", "state.cons", "--every",
                    "32", "--predictions", "p.csv", "--log", "log.jsonl", "--log-every", "50", "--quarantine",
                    "bad.jsonl", "--save", "last.cons", "--report", "stream.html"),
                   ("p.csv", "log.jsonl", "bad.jsonl", "last.cons", "stream.html", "state.cons"), ("--resume",)),
    "compare": Work(("compare", "good.csv", "-y", "y", "-e", "EarlyFusion", "--no-baselines", "--cv",
                     "2", "-j", "1", "--csv", "board.csv", "--save", "best.cons", "--report", "report.html"),
                    ("board.csv", "best.cons", "report.html")),
    "reproduce": Work(("reproduce", "tiny", "--folder", "results", "--page", "page.md"),
                      ("results/tiny.json", "results/tiny.times.json", "page.md")),
}  # fmt: skip
PRINTING = {
    "help": ("--help",), "estimators": ("estimators",), "estimators, JSON": ("estimators", "--json"),
    "kernels": ("kernels",), "inspect": ("inspect", "model.cons"), "experiments": ("reproduce", "--list"),
    "predict, printed": ("predict", "model.cons", "good.csv"),
    "predict, JSON": ("predict", "model.cons", "good.csv", "--json"),
    "evaluate, JSON": ("evaluate", "model.cons", "good.csv", "-y", "y", "--json"),
    "stream, printed": ("stream", "rows.jsonl", "-y", "y", "--on-error", "skip"),
}  # fmt: skip


# -- a tiny experiment
def measure(cell: dict[str, Any], cached: Any) -> dict[str, Any]:
    """Take an array that is kept, and return a number of it."""
    seed = cell["seed"]
    own = cached(f"array {seed % 3}", lambda: np.random.default_rng(seed % 3).normal(size=(12, 12)))
    return {"value": float(own.sum()) + seed, "seconds of a fit": 0.0}


EXPERIMENT = Experiment(
    name="tiny", title="A tiny experiment", paper="None", shown_in="Table 1", data="none", protocol="One number.",
    seeds=6, minutes=0.1, cells=lambda seeds, quick: [{"seed": seed} for seed in range(seeds)], measure=measure,
    tables=lambda results: [], claims=lambda results: [], differences=(),
)  # fmt: skip


def add_experiment() -> None:
    """Make the tiny experiment known to the commands of this process."""
    known = {**consilience.experiments.all_experiments(), "tiny": EXPERIMENT}
    consilience.experiments.all_experiments = lambda: known


_commands.BEFORE.append(add_experiment)


@contextlib.contextmanager
def with_experiment() -> Iterator[None]:
    """Make the tiny experiment known for a while."""
    before = consilience.experiments.all_experiments
    add_experiment()
    try:
        yield
    finally:
        consilience.experiments.all_experiments = before


# -- files
def write_inputs(folder: Path) -> None:
    """Write the files that the commands read: a table, a stream with rows that cannot be read, and a model."""
    rng = np.random.default_rng(0)
    labels = np.array(["p", "q"])[np.arange(ROWS) % 2]
    values = (rng.normal(size=(ROWS, 3)) + (labels == "p")[:, None]).round(4)
    lines = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(values, labels, strict=True)]
    (folder / "good.csv").write_text("\n".join(["a__1,a__2,b__1,y", *lines]) + "\n")
    rows = [
        json.dumps({"a": [a, b], "b": [c], "y": label})
        for (a, b, c), label in zip(values, labels.tolist(), strict=True)
    ]
    rows[17], rows[90] = rows[17][:9], "not JSON"
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    words = [*WORKS["fit"].words[:-1], "model.cons"]
    ended = _commands.run(words, folder)
    if ended.code:
        raise RuntimeError(f"The model was not fitted: {ended.errors}")


INPUTS = ("good.csv", "rows.jsonl", "model.cons")


def fresh(folder: Path, inputs: Path, older: dict[str, bytes] | None = None) -> Path:
    """Empty a folder, and put the inputs and older files there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in INPUTS:
        shutil.copy(inputs / name, folder / name)
    for name, content in (older or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def content_of(path: Path) -> Any:
    """Return what is in a file as a value that is equal for equal results; an error if the file is not whole."""
    if path.suffix == ".cons":
        found = cs.load(path)
        if isinstance(found, dict):  # a checkpoint
            found = {"model": without_verbose(found["model"]), "position": found["position"]}
        return fingerprint(found if isinstance(found, dict) else without_verbose(found))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        if not text.rstrip().endswith("</html>"):
            raise ValueError("the report has no end")
        return "a report"  # it names the time and the folder
    if path.suffix == ".jsonl":
        if text and not text.endswith("\n"):
            raise ValueError("the last line has no end")
        lines = [json.loads(line) for line in text.splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "rate")} for line in lines]
    if path.suffix == ".json":
        return {k: v for k, v in json.loads(text).items() if k != "cells" or "times" not in path.name}
    if path.suffix == ".csv" and text and not text.endswith("\n"):
        raise ValueError("the last line has no end")
    if path.name == "board.csv":  # times of fits
        return [line.split(",")[:3] for line in text.splitlines()]
    return text


def outcome(folder: Path, work: Work) -> dict[str, Any]:
    """Return what a work has left."""
    return {name: content_of(folder / name) for name in work.files if (folder / name).exists()}


def others(folder: Path, work: Work) -> list[str]:
    """Return the names of files that are neither inputs nor outputs."""
    found = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    arrays = f"results{os.sep}arrays"
    return [
        name for name in found
        if name not in INPUTS and name not in work.files and (not name.startswith(arrays) or "partial" in name)
    ]  # fmt: skip


def complaints(ended: _commands.Ended) -> str | None:
    """Return what is wrong about how a command ended that met a fault: a traceback, or an error without a sentence."""
    for word in ("Traceback", "Exception ignored", "object has no attribute", "NoneType"):
        if word in ended.errors:
            return f"'{word}' in the errors: {ended.errors[-700:]}"
    if ended.code < 0:
        return f"a signal ended it: {ended.code}"
    if ended.code == 1:
        last = (ended.errors.strip().splitlines() or [""])[-1]
        if not (last.startswith("Error: ") and last.endswith((".", ".)")) and len(last) > 20):
            return f"no sentence: {last!r}"
    return None
