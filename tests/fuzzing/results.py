"""Files that a stopped run left behind, damaged: the run continues, or a sentence names the file."""

import functools
import json
import os
from pathlib import Path

import consilience.experiments._run as running
from consilience.evaluation._stream_files import drop_lines_from
from consilience.experiments._experiment import Experiment
from fuzzing.parsers import mutated
from fuzzing.properties import FOLDER, describe, take
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
    if chance(rng, 0.3):
        return fuzz_quarantine(rng)
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
