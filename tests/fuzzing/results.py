"""Files that a stopped run left behind, damaged: the run continues, or a sentence names the file."""

import functools
import json
import os
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV

import consilience.experiments._run as running
from consilience import as_views
from consilience.evaluation._kept_folds import _line_digest, keep_folds
from consilience.evaluation._measures import HeldOutPart
from consilience.evaluation._running import FoldData, FoldPlan, FoldResult
from consilience.evaluation._stream_files import drop_lines_from
from consilience.experiments._experiment import Experiment
from fuzzing.parsers import mutated
from fuzzing.properties import FOLDER, Refused, describe, take
from strategies import chance, pick

EXPERIMENT = Experiment(
    name="tiny", title="Tiny", paper="None", shown_in="", seeds=2, minutes=0, data="", protocol="",
    cells=lambda seeds, quick: [{"seed": seed, "method": name} for seed in range(seeds) for name in ("a", "b")],
    measure=lambda cell, cached: {"error": cell["seed"] + 0.5, "seconds of a fit": 0.1},
    tables=lambda results: [], claims=lambda results: [],
)  # fmt: skip
QUARANTINED = b"".join(
    json.dumps({"row": row, "error": "Line 3 is not JSON.", "content": "{"}).encode() + b"\n" for row in (2, 5, 9)
)


@functools.cache
def left_behind():
    """Return the record of a complete run, and the files of a complete and of a stopped one."""
    folder = Path(FOLDER.name) / "sound"
    record = running.run(EXPERIMENT, folder)
    complete = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    lines = [{"digest": running.code_digest()}]
    lines += [{"cell": line["cell"], "found": {**line["found"], "seconds of a fit": 0.1}} for line in record["cells"]]
    partial = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:4])
    return record, complete, {"tiny.partial.jsonl": partial, "tiny.lock": b"999999999"}


def fuzz_results(rng):
    """Go on with a run whose files are damaged: the same record, or a sentence that names a file."""
    drawn = rng.random()
    if drawn < 0.6:
        return fuzz_quarantine(rng) if drawn < 0.3 else fuzz_folds(rng)
    record, complete, stopped = left_behind()
    files = dict(complete if chance(rng, 0.5) else stopped)
    name = pick(rng, list(files))
    cut = chance(rng, 0.4)
    whole = files[name]
    files[name] = (
        whole[: int(rng.integers(len(whole) + 1))] if cut else mutated(rng, whole, list(files.values()), "json")
    )
    folder = Path(FOLDER.name) / "run"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for own, content in files.items():
        (folder / own).write_bytes(content)
    describe(lambda: f"run with {name} = {files[name]!r:.1500}", folder / name)
    found = take(lambda: running.run(EXPERIMENT, folder), also=(OSError,))
    assert set(record) <= set(found) or not cut, "a part of the record is lost"
    assert found == record or not cut, "a file that was cut off changed the results"
    take(lambda: running.read_results(folder, "tiny"))


def fuzz_quarantine(rng):
    """Cut a damaged file of rows that were left out: the lines before the position stay, or a sentence."""
    content = mutated(rng, QUARANTINED, [QUARANTINED], "json")
    path = Path(FOLDER.name) / "left_out.jsonl"
    path.write_bytes(content)
    describe(lambda: f"drop_lines_from({content!r:.600})", path)
    take(lambda: drop_lines_from(path, 6), also=(OSError,))
    assert os.path.getsize(path) <= len(content), "lines were added"


@functools.cache
def kept_folds():
    """Return the folds of a comparison without any work in them, their results, and the file that keeps them."""
    classes = np.array(["no", "yes"])
    y = classes[np.arange(6) % 2]
    X = as_views(np.zeros((6, 1)))
    splits = [(np.arange(2, 6), np.arange(2)), (np.arange(4), np.arange(4, 6))]
    data = FoldData(X, y, None, None, splits, np.arange(6))
    searches = {"a": GridSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}), "b": DummyClassifier()}
    plan = FoldPlan(searches, {"accuracy": None, "roc_auc": None}, dict.fromkeys("ab", data), classes, 2)
    found: dict = {("b", 1): "Too few samples."}
    for turn, index in {("a", 0): 1, ("a", 1): 0, ("b", 0): None}.items():
        params = {} if index is None else {"strategy": ["prior", "uniform"][index]}
        part = HeldOutPart(splits[turn[1]][1], classes, np.array([[0.3, 0.7], [1e-300, 1.0]]))
        measures = {"accuracy": 0.1, "roc_auc": float("nan")}
        found[turn] = FoldResult(0.1, 0.01, classes, params, measures, part, {"roc_auc": "One class."}, index)
    path = Path(FOLDER.name) / "folds.jsonl"
    path.unlink(missing_ok=True)
    with keep_folds(path, plan, describe_folds) as kept:
        for turn, result in found.items():
            kept.add(turn, result)
    return plan, found, path.read_bytes()


def describe_folds():
    """Return what the file of folds belongs to."""
    return {"the views": "1", "the estimators": {"a": "2", "b": "3"}}


def fuzz_folds(rng):
    """Continue a comparison from a damaged file: what is read is what was kept, or a sentence and the file stays."""
    plan, results, whole = kept_folds()
    cut, signed = chance(rng, 0.3), chance(rng, 0.5)
    if cut:
        content = whole[: int(rng.integers(len(whole) + 1))]
    elif signed:
        content = resigned(rng, whole)
    else:
        content = mutated(rng, whole, [whole, QUARANTINED], "json")
    path = Path(FOLDER.name) / "folds.jsonl"
    path.write_bytes(content)
    describe(lambda: f"keep_folds({content!r:.3000})")

    def read():
        with keep_folds(path, plan, describe_folds) as kept:
            return dict(kept.known)

    try:
        known = take(read)
    except Refused:
        assert path.read_bytes() == content, "a file that is refused was changed"
        raise
    for turn, result in known.items():
        assert turn in results, f"a fold that does not exist: {turn}"
        if not isinstance(result, str):
            assert len(result.predictions) == 2, "predictions of another number"
            assert np.isin(np.asarray(result.predictions, dtype=str), ["no", "yes"]).all(), "another class"
            assert list(result.measures) == list(plan.scorers), "other measures"
        assert signed or repr(result) == repr(results[turn]), f"another result of {turn}"
    if cut:
        assert len(known) == max(0, content.count(b"\n") - 1), "finished folds are lost"


def resigned(rng, whole):
    """Return the file with one line edited and its digest made right again, so that what it says is read."""
    lines = whole.decode().splitlines()
    k = int(rng.integers(1, len(lines)))
    line = json.loads(lines[k])
    del line["digest"]
    text = mutated(rng, json.dumps(line).encode(), [b"null", b"[]"], "json")
    try:
        changed = json.loads(text)
        digest = _line_digest(changed, lines[0])
        lines[k] = json.dumps({"digest": digest, **changed})
    except (ValueError, TypeError, RecursionError):
        lines[k] = text.decode(errors="replace").replace("\n", " ")
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogatepass")
