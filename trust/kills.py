"""Kill work at random moments, and look at what is left: ``python trust/kills.py [--long]``.

Moments are uniform over the time that the work takes, which is measured first. Processes are forked from this one, so
that hundreds of kills take minutes. The short run leaves clusters out: `tests/batch/test_dask.py` kills a worker too.
"""

import os

if __name__ == "__main__":  # children are forked: no threads of BLAS
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import contextlib
import csv
import functools
import hashlib
import io
import itertools
import json
import random
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parent))

import _forks
import consilience as cs
from _state import fingerprint, without_verbose
from check import Check, Figure, Found, main
from consilience.evaluation import _kept_folds, progressive
from consilience.experiments import _run
from consilience.experiments._experiment import Experiment
from consilience.io import read_checkpoint, write_checkpoint
from consilience.kernels import RBF

PARTIAL = ".partial"  # ending of the file that a killed write may leave; the next write of the same file removes it


def count_kills(work, check, kills, rng, *, most=1.0, afterwards=None):
    """Kill work until so many kills met it at work; return kills, failures and seconds of the undisturbed work.

    `check` takes nothing and returns what is wrong after a kill, or None; `afterwards` the same when the work could
    end. Moments are uniform up to `most` times the seconds of the work.
    """
    seconds = _forks.seconds_of(work)
    done, wrong = 0, []
    for _ in range(50 * kills):
        if done == kills:
            break
        status = _forks.run_and_kill(work, rng.random() * most * seconds)
        if status == -9:
            done += 1
            found = check()
        else:
            found = f"the work ended with status {status}" if status else (afterwards or check)()
        if found:
            wrong.append(found)
    return done, wrong, seconds


def figure(what, done, wrong, seconds, note=""):
    """Return the line of one kind of work, and print what was wrong."""
    for text in dict.fromkeys(wrong):
        print(f"{what}: {text}", file=sys.stderr)
    took = f"the work takes {1000 * seconds:.0f} ms undisturbed"
    return Figure(what, done, len(wrong), f"{took}; {note}" if note else took)


# -- one file that is replaced
def blob(seed, size):
    """Return a model with coefficients of about `size` numbers, fitted at once."""
    rng = np.random.default_rng(seed)
    X = {"a": rng.normal(size=(12, size // 2)), "b": rng.normal(size=(12, size // 2))}
    return cs.OnlinePerceptron(random_state=seed).fit(X, np.arange(12) % 2)


def kill_replacing(what, write, read, versions, kills, rng):
    """Kill writes of one version over another: what is there afterwards is one of them, and at most one leftover."""
    with tempfile.TemporaryDirectory() as name:
        folder, known = Path(name), [fingerprint(version) for version in versions]
        path, turn, seen = folder / "file.cons", [0], [0, 0]
        write(versions[0], path)

        def work():
            write(versions[1 - turn[0]], path)

        def check():
            try:
                found = fingerprint(read(path))
            except Exception as error:
                return f"the file cannot be read: {error}"
            if found not in known:
                return "the file is neither the old nor the new version"
            seen[known.index(found) != turn[0]] += 1
            turn[0] = known.index(found)
            left = [entry for entry in os.listdir(folder) if entry != path.name]
            if len(left) > 1 or not all(entry.endswith(PARTIAL) for entry in left):
                return f"files are left: {left}"
            return None

        done, wrong, seconds = count_kills(work, check, kills, rng)
        write(versions[0], path)
        if os.listdir(folder) != [path.name]:
            wrong.append(f"files are left after a whole write: {os.listdir(folder)}")
        return figure(what, done, wrong, seconds, f"{seen[0]} times the old version was there, {seen[1]} the new one")


def kill_saves(kills, rng):
    """Kill `save`, and the writing of checkpoints, over an existing file."""
    models = [blob(1, 60_000), blob(2, 60_000)]
    contents = [{"model": model, "position": k} for k, model in enumerate(models)]
    return [
        kill_replacing("`save` over an existing model file", cs.save, cs.load, models, kills, rng),
        kill_replacing(
            "`write_checkpoint` over an existing file", write_checkpoint, read_checkpoint, contents, kills, rng
        ),
    ]


# -- streams
def write_stream(path, rows, bad):
    """Write a file of three views: rows lack one of them, classes change halfway, some rows cannot be read."""
    rng = np.random.default_rng(0)
    with open(path, "w", encoding="utf-8") as file:
        for t in range(rows):
            row = {view: (5 + 9 * rng.normal(size=3)).round(3).tolist() for view in ("audio", "video", "text")}
            label = int((row["audio"][0] - row["video"][1]) * (1 if t < rows // 2 else -1) > 0)
            del row[rng.choice(["text", "audio"])]
            line = json.dumps({**row, "y": label})
            file.write((line[: len(line) // 2] if t % bad == 7 else line) + "\n")


LEARNERS = {
    "linear": lambda: cs.PassiveAggressive(average=True, prepare="standardize"),
    "by kernels": lambda: cs.KernelPerceptron(RBF(0.01), budget=60, prepare="standardize"),
}


def learn(path, folder, learner, files):
    """Learn the stream from its checkpoint on; write the state and the measures at the end."""
    given = {name: folder / f"{name}.jsonl" for name in files}
    given |= {"log_every": 500} if "log" in files else {}
    model = LEARNERS[learner]()
    with warnings.catch_warnings(), mock.patch.object(progressive, "_COSTS", np.inf):  # every checkpoint that is due
        warnings.simplefilter("ignore", UserWarning)  # rows that are left out are counted
        result = cs.progressive_validation(
            model, path, classes=[0, 1], measures="log_loss", drift=True, on_drift="forget", on_error="skip",
            checkpoint=folder / "state.cons", every=256, resume=True, **given,
        )  # fmt: skip
    (folder / "result.json").write_text(
        json.dumps({"state": fingerprint(without_verbose(model)), "result": result.to_dict()}, default=str)
    )


def outcome(folder):
    """Return what a run has left: results, and files without their times."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name == "log.jsonl":
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            found["log"] = [{k: v for k, v in line.items() if k not in ("seconds", "rate")} for line in lines]
        elif path.name != "state.cons":
            found[path.name] = path.read_text(encoding="utf-8")
    return found


def kill_stream(path, learner, files, kills, rng):
    """Kill a stream again and again until it ends, several times over; all that it leaves is as if undisturbed."""
    with tempfile.TemporaryDirectory() as whole:
        learn(path, Path(whole), learner, files)
        expected = outcome(Path(whole))
    place = [tempfile.TemporaryDirectory()]
    ends = [0]

    def work():
        learn(path, Path(place[0].name), learner, files)

    def after_a_kill():
        left = [name for name in os.listdir(place[0].name) if name.endswith(PARTIAL)]
        return f"files pile up: {left}" if len(left) > 2 else None  # of the checkpoint, and of a file that is cut

    def at_the_end():
        found = outcome(Path(place[0].name))
        place[0].cleanup()
        place[0] = tempfile.TemporaryDirectory()
        ends[0] += 1
        different = [name for name in {*expected, *found} if expected.get(name) != found.get(name)]
        return f"{', '.join(sorted(different))} differ from an undisturbed run" if different else None

    def measured():  # the whole stream each time
        with tempfile.TemporaryDirectory() as folder:
            learn(path, Path(folder), learner, files)

    seconds, done, wrong = _forks.seconds_of(measured), 0, []
    while done < kills or not ends[0]:
        moment = rng.random() * 0.6 * seconds if done < kills else 60 * seconds  # parts that together reach the end
        status = _forks.run_and_kill(work, moment) if done < kills else _forks.ended(_forks.fork(work))
        done += status == -9
        found = after_a_kill() if status == -9 else f"status {status}" if status else at_the_end()
        if found:
            wrong.append(found)
    place[0].cleanup()
    kept = f"with {', '.join(files)}" if files else "without other files"
    what = f"a stream learned {learner} and resumed, {kept}"
    return figure(what, done, wrong, seconds, f"{ends[0]} streams ended, all of them equal bit for bit")


def kill_streams(kills, rng, long):
    """Kill streams of several learners and files."""
    sets = [("predictions", "log", "quarantine"), ("quarantine",)] if long else [("predictions", "quarantine")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        write_stream(path, 12_000 if long else 1200, 251)
        return [
            kill_stream(path, learner, files, kills, rng)
            for learner in (LEARNERS if long else ["linear"])
            for files in sets
        ]


# -- experiments
def measure(cell, cached):
    """Take about 2 ms, with an array that is kept."""
    seed = cell["seed"]
    own = cached(f"array {seed % 5}", lambda: np.random.default_rng(seed % 5).normal(size=(40, 40)))
    time.sleep(0.001)
    return {"value": float(np.linalg.eigvalsh(own @ own.T)[seed % 40]), "seconds of a fit": time.perf_counter()}


EXPERIMENT = Experiment(
    name="tiny", title="A tiny experiment", paper="", shown_in="", data="none", protocol="", seeds=12, minutes=0.1,
    cells=lambda seeds, quick: [{"seed": seed} for seed in range(seeds)], measure=measure,
    tables=lambda results: [], claims=lambda results: [], differences=(),
)  # fmt: skip


def experiment_files(folder):
    """Return the results of an experiment and the names of all files but the arrays."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return (folder / "tiny.json").read_text(encoding="utf-8"), names


def older_results(folder):
    """Return the files of an experiment as other code would have written them: another digest, other values."""
    found = {}
    for path in folder.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        found[path.name] = text.replace(_run.code_digest(), "0" * 64).replace('"value": ', '"value": 1')
        if found[path.name] == text:
            raise RuntimeError(f"'{path.name}' of older code is not another file.")
    return found


def kill_experiment(kills, rng):
    """Kill an experiment until it ends, several times over; half of the time results of older code are there."""
    place, ends = [tempfile.TemporaryDirectory()], [0]

    def prepare(with_older):
        folder = Path(place[0].name)
        for name, text in (older if with_older else {}).items():
            (folder / name).write_text(text, encoding="utf-8")

    def work():
        _run.run(EXPERIMENT, Path(place[0].name))

    with tempfile.TemporaryDirectory() as name:
        _run.run(EXPERIMENT, Path(name))
        expected, older = experiment_files(Path(name)), older_results(Path(name))

    def at_the_end():
        found = experiment_files(Path(place[0].name))
        place[0].cleanup()
        place[0] = tempfile.TemporaryDirectory()
        ends[0] += 1
        prepare(ends[0] % 2)
        return None if found == expected else f"results or files differ: {found[1]}"

    def measured():
        with tempfile.TemporaryDirectory() as folder:
            _run.run(EXPERIMENT, Path(folder))

    seconds, done, wrong = _forks.seconds_of(measured), 0, []
    while done < kills or ends[0] < 2:
        moment = rng.random() * 0.7 * seconds
        status = _forks.run_and_kill(work, moment) if done < kills else _forks.ended(_forks.fork(work))
        done += status == -9
        found = None if status == -9 else f"status {status}" if status else at_the_end()
        if found:
            wrong.append(found)
    place[0].cleanup()
    note = f"{ends[0]} experiments ended, every second over results of older code"
    return figure("an experiment of `reproduce`, resumed", done, wrong, seconds, note)


# -- the moments between which something changes on disk
def calls_of(work):
    """Return how many files the work opens, renames, removes or cuts, as Python's audit events count them."""
    with tempfile.NamedTemporaryFile() as file:
        if _forks.ended(_forks.fork(lambda: _forks.count_calls(work, file.name))):
            raise RuntimeError("The work failed without being disturbed.")
        return int(Path(file.name).read_text())


def kill_at_every_call(what, work, check, every=1):
    """Kill the work just before calls that change a file, and the last six; `check` ends the work and compares."""
    calls, wrong = calls_of(work), []
    moments = {*range(1, calls + 1, every), *range(max(1, calls - 5), calls + 1)}
    for k in sorted(moments):
        if _forks.ended(_forks.fork(functools.partial(_forks.kill_at_call, work, k))) == -9 and (found := check()):
            wrong.append(f"before call {k}: {found}")
    for text in dict.fromkeys(wrong):
        print(f"{what}: {text}", file=sys.stderr)
    return Figure(what, len(moments), len(wrong), f"of {calls} calls, each from a fresh start")


def kill_at_calls(long):
    """Kill a save, an experiment and a stream before their calls of the system, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder, models = Path(name), [blob(1, 2000), blob(2, 2000)]
        path, known = folder / "file.cons", [fingerprint(model) for model in models]
        cs.save(models[0], path)

        def saved():
            found = fingerprint(cs.load(path))
            cs.save(models[0], path)
            return None if found in known and os.listdir(folder) == [path.name] else "a part is there, or more files"

        what = "`save`, killed before each of its calls that change a file"
        figures = [kill_at_every_call(what, lambda: cs.save(models[1], path), saved)]
    return [*figures, kill_experiment_at_calls(1 if long else 29), kill_stream_at_calls(1 if long else 29)]


def kill_experiment_at_calls(every=1):
    """Kill an experiment over results of older code before each call; the next run ends as if undisturbed."""
    place, older = [tempfile.TemporaryDirectory()], {}
    with tempfile.TemporaryDirectory() as name:
        _run.run(EXPERIMENT, Path(name))
        expected, older = experiment_files(Path(name)), older_results(Path(name))

    def renew():
        place[0].cleanup()
        place[0] = tempfile.TemporaryDirectory()
        for name, text in older.items():
            (Path(place[0].name) / name).write_text(text, encoding="utf-8")

    def check():
        _run.run(EXPERIMENT, Path(place[0].name))
        found = experiment_files(Path(place[0].name))
        renew()
        return None if found == expected else f"results or files differ: {found[1]}"

    def work():
        _run.run(EXPERIMENT, Path(place[0].name))

    renew()
    calls_of(work)
    renew()
    what = "an experiment over results of older code, killed before each of its calls that change a file"
    found = kill_at_every_call(what, work, check, every)
    place[0].cleanup()
    return found


def kill_stream_at_calls(every=1):
    """Kill a stream before its calls; the next run ends as if undisturbed."""
    files, place = ("predictions", "log", "quarantine"), [tempfile.TemporaryDirectory()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        write_stream(path, 1500, 251)

        def work():
            learn(path, Path(place[0].name), "linear", files)

        def renew():
            place[0].cleanup()
            place[0] = tempfile.TemporaryDirectory()

        work()
        expected = outcome(Path(place[0].name))
        renew()

        def check():
            work()
            found = outcome(Path(place[0].name))
            renew()
            different = [name for name in {*expected, *found} if expected.get(name) != found.get(name)]
            return f"{', '.join(sorted(different))} differ" if different else None

        what = "a stream with checkpoints, killed before each of its calls that change a file"
        figure = kill_at_every_call(what, work, check, every)
        place[0].cleanup()
        return figure


# -- comparisons
def table(path):
    """Write a table of two views and a class."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    columns = {f"{view}__{j}": rng.normal(size=60) + y for view in "ab" for j in range(3)}
    lines = [",".join([*columns, "y"])]
    lines += [",".join([*(f"{own[i]:.6f}" for own in columns.values()), "nc"[y[i]]]) for i in range(60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def command(*words):
    """Run a command of the library in this process, without its output."""
    from consilience.cli.main import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        app([str(word) for word in words], standalone_mode=False)


def folds_in(file):
    """Return the finished folds that a file keeps, without their times; a line that was cut off is not one of them."""
    lines = file.read_bytes().split(b"\n")[1:-1] if file.exists() else []
    found = {}
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            return {"damaged": text}
        result = {name: value for name, value in line["result"].items() if name != "fit_time"}
        found[line["estimator"], line["fold"]] = result
    return found


def compared(folder):
    """Return what `compare` has written: per file "old", or what does not depend on times."""
    found = {}
    for name in ("best.cons", "board.csv"):
        content = (folder / name).read_bytes()
        if content == b"old":
            found[name] = "old"
        elif name == "best.cons":
            rows = cs.read_samples([folder / "data.csv"], target="y").X
            found[name] = hashlib.sha256(cs.load(folder / name).decision_function(rows).tobytes()).hexdigest()
        else:
            heads, *rows = csv.reader(io.StringIO(content.decode()))
            found[name] = [[cell for head, cell in zip(heads, row, strict=True) if "time" not in head] for row in rows]
    return found


class Comparisons:
    """`consilience compare --resume` in a folder, from nothing to its end, again and again."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "folds.jsonl"
        table(folder / "data.csv")
        names = (
            "CoRegularizedRidgeClassifierCV",
            "ViewMetricRidgeClassifierCV",
            "PassiveAggressive",
            "DummyClassifier",
        )
        self.words = ["compare", folder / "data.csv", "-y", "y", "--cv", "3", "--jobs", "1", "--resume", self.file,
                      "--save", folder / "best.cons", "--csv", folder / "board.csv",
                      *(word for name in names for word in ("-e", name))]  # fmt: skip
        self.renew()
        self.work()
        self.expected, self.whole, self.kept = compared(folder), folds_in(self.file), {}
        self.renew()

    def renew(self):
        """Remove what was kept, and put old files where the results will be."""
        self.file.unlink(missing_ok=True)
        self.kept = {}
        for name in ("best.cons", "board.csv"):
            (self.folder / name).write_bytes(b"old")

    def work(self):
        """Compare, from the kept folds on."""
        command(*self.words)

    def after_a_kill(self):
        """Return what is wrong: a result that is neither old nor new, or a kept fold that is lost or another one."""
        torn = [name for name, value in compared(self.folder).items() if value not in ("old", self.expected[name])]
        if torn:
            return f"{', '.join(torn)} is neither old nor new"
        before, self.kept = self.kept, folds_in(self.file)
        if not before.keys() <= self.kept.keys():
            return "finished folds are lost"
        return None if self.kept.items() <= self.whole.items() else "kept folds differ from an undisturbed run"

    def at_the_end(self):
        """Return what differs from an undisturbed comparison, and start again."""
        found, folds = compared(self.folder), folds_in(self.file)
        left = {*os.listdir(self.folder)} - {"data.csv", "folds.jsonl", *found}
        self.renew()
        if found != self.expected or folds != self.whole:
            return "the leaderboard, the model or the folds differ from an undisturbed run"
        return f"files are left: {sorted(left)}" if left else None


def kill_comparisons(kills, rng):
    """Kill `consilience compare --resume` until it ends, several times over; the end is as if undisturbed."""
    with tempfile.TemporaryDirectory() as name:
        comparisons = Comparisons(Path(name))

        def measured():  # from nothing each time
            comparisons.renew()
            comparisons.work()

        seconds, done, wrong, ends, continued = _forks.seconds_of(measured), 0, [], 0, 0
        comparisons.renew()
        while done < kills or not ends:
            continued += bool(comparisons.kept)
            moment = rng.random() * 0.7 * seconds  # parts that together reach the end
            work = comparisons.work
            status = _forks.run_and_kill(work, moment) if done < kills else _forks.ended(_forks.fork(work))
            if status == -9:
                done, found = done + 1, comparisons.after_a_kill()
            else:
                ends, found = ends + 1, f"status {status}" if status else comparisons.at_the_end()
            if found:
                wrong.append(found)
                comparisons.renew()
    note = f"{ends} comparisons ended, all of them equal bit for bit; {continued} processes went on from kept folds"
    return figure("`consilience compare --resume`", done, wrong, seconds, note)


def write_a_part(share, handle, line):
    """Write a share of a line, and end this process."""
    os.write(handle, line[: round(share * len(line))])
    os.kill(os.getpid(), 9)


def kill_comparison_in_lines(shares, every=1):
    """Kill a comparison while it writes its folds, after a share of the line; the next run ends the same."""
    append, done = _kept_folds.append_whole, 0
    with tempfile.TemporaryDirectory() as name:
        comparisons = Comparisons(Path(name))
        wrong = [] if comparisons.whole else ["no fold is kept"]

        def work(number, share):
            count = 0

            def cut(handle, line):
                nonlocal count
                count += 1
                write_a_part(share, handle, line) if count == number else append(handle, line)

            with mock.patch.object(_kept_folds, "append_whole", cut):
                comparisons.work()

        for number, share in itertools.product(range(1, len(comparisons.whole) + 1, every), shares):
            status = _forks.ended(_forks.fork(functools.partial(work, number, share)))
            done += status == -9
            found = comparisons.after_a_kill() if status == -9 else f"status {status}"
            if not found and len(comparisons.kept) != number - (share < 1):
                found = f"{len(comparisons.kept)} folds are kept when fold {number} is written"
            status = _forks.ended(_forks.fork(comparisons.work))
            found = found or (f"the next run has status {status}" if status else comparisons.at_the_end())
            if found:
                wrong.append(f"in line {number} at {share:.0%}: {found}")
                comparisons.renew()
    what = "`consilience compare --resume`, killed within the lines of finished folds"
    for text in dict.fromkeys(wrong):
        print(f"{what}: {text}", file=sys.stderr)
    return Figure(what, done, len(wrong), f"at {', '.join(f'{share:.0%}' for share in shares)} of the line")


# -- workers of a cluster
def kill_workers(kills, rng):
    """Kill a worker of a Dask cluster during a fit: the fit is that of an undisturbed cluster bit for bit."""
    import dask
    import dask.array as da
    import distributed

    data = np.random.default_rng(0)
    views = {view: data.normal(size=(6000, 8)) for view in "ab"}
    y = views["a"][:, 0] + views["b"][:, 1] ** 2
    X = {view: da.from_array(own, chunks=(300, 8)) for view, own in views.items()}
    # at most three of four are killed: whether Dask replaces them in time is not asked here
    options = {"n_workers": 4, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    limits = {"distributed.scheduler.no-workers-timeout": "60s", "distributed.scheduler.allowed-failures": 20}
    limits |= {"distributed.comm.timeouts.connect": "5s"}  # a worker that was killed does not answer
    done, wrong, clusters, seconds = 0, [], 0, 0.0
    while done < kills:
        clusters += 1
        with (
            dask.config.set(limits),
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster) as client,
        ):
            more, failed, seconds = kill_on_cluster(client, X, y, min(3, kills - done), rng)
        done, wrong = done + more, wrong + failed
    note = f"{clusters} clusters of four workers; coefficients equal bit for bit"
    return figure("a Dask fit, of which a worker is killed", done, wrong, seconds, note)


def kill_on_cluster(client, X, y, kills, rng):
    """Kill workers of one cluster, one after the other; return kills, failures and seconds."""
    model = cs.CoRegularizedRidge(n_components=60, agreement_penalty=1e-3, random_state=0)

    def fitted():
        start = time.monotonic()
        return fingerprint(clone(model).fit(X, y).coef_), time.monotonic() - start

    fitted()  # imported and compiled by the workers
    (expected, seconds), done, wrong = fitted(), 0, []
    while done < kills:
        workers = sorted(client.run(os.getpid, on_error="ignore").values())
        if len(workers) < 2:
            break
        timer = threading.Timer(rng.random() * seconds, os.kill, (rng.choice(workers), 9))
        timer.start()
        found, _ = fitted()
        done += not timer.is_alive()
        timer.cancel()
        timer.join()
        if found != expected:
            wrong.append("the coefficients differ")
    return done, wrong, seconds


# -- all
def run(long):
    """Kill everything; in the long run hundreds of times."""
    rng = random.Random(0)
    figures = kill_saves(400 if long else 3, rng)
    figures += kill_streams(120 if long else 2, rng, long)
    figures.append(kill_experiment(300 if long else 2, rng))
    figures += kill_at_calls(long)
    figures.append(kill_comparisons(200 if long else 2, rng))
    figures.append(kill_comparison_in_lines((0, 0.3, 0.99, 1)) if long else kill_comparison_in_lines((0.5,), 11))
    if long:
        figures.append(kill_workers(20, rng))
    return Found(figures)


CHECK = Check(
    "kills",
    "Work that is killed",
    "A process killed at any moment (SIGKILL) loses nothing that it had reported as written. A file is the old one or "
    "the new one, never a part. Streams, comparisons, experiments and fits on a cluster that continue end in the same "
    "bits.",
    run,
    ("A power cut, which may undo what the disk had confirmed.",),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
