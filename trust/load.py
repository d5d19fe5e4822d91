"""Many threads, many processes and long streams: ``python trust/load.py [--long]``.

The short run has few learners, threads and samples. The long one has every estimator, 16 threads, 8 processes, and a
stream of a million samples for every online learner. Times are those of the processor, not of the clock.
"""

import os

if __name__ in ("__main__", "__mp_main__"):  # many threads and processes: none of BLAS besides
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import copy
import multiprocessing
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

import _soak
import cases
import consilience as cs
from _fits import ONLINE, answers, fitted, numbers, rows_of, samples
from _soak import MEGABYTES, SLOWER, Soaked
from _state import fingerprint
from check import Check, Figure, Found, main

SHORT = ["coregularized ridge", "consensus classifier", "perceptron", "kernel perceptron, budget", "cues"]
BATCHES = [slice(0, 1), slice(1, 8), slice(8, 24), slice(0, 24)]  # of the rows that threads and processes predict


# -- threads
def together(works: Sequence[Callable[[], object]]) -> list[str]:
    """Run all in threads that start at once and change often; return their errors and warnings."""
    barrier, wrong = threading.Barrier(len(works)), []

    def begin(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except Exception as error:  # whatever it is, one thread alone has none
            wrong.append(f"{type(error).__name__}: {error}")

    interval = sys.getswitchinterval()
    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    return wrong + [f"{one.category.__name__}: {one.message}" for one in told]


def batch_answers(model: Any, X: dict[str, np.ndarray]) -> list[bytes]:
    """Return the bits of all answers, batch by batch."""
    return [numbers(answers(model, rows_of(X, rows))).tobytes() for rows in BATCHES]


def predict_in_threads(name: str, n_threads: int, repeats: int) -> tuple[int, list[str]]:
    """Predict with one model in all threads, from its first prediction on; return the calls and what is wrong."""
    model, X = fitted(name), samples(name, 24, seed=1)[0]
    expected = batch_answers(copy.deepcopy(model), X)
    before, wrong = fingerprint(model), []

    def work(turn: int) -> None:
        order = np.roll(np.arange(len(BATCHES)), turn)
        for _ in range(repeats):
            for k in order:
                if numbers(answers(model, rows_of(X, BATCHES[k]))).tobytes() != expected[k]:
                    wrong.append("answers of a thread differ")

    wrong += together([lambda turn=turn: work(turn) for turn in range(n_threads)])
    if fingerprint(model) != before:
        wrong.append("predictions changed the model")
    return n_threads * repeats * len(BATCHES), wrong


def predict_while_learning(name: str, n_threads: int, n_samples: int) -> tuple[int, list[str]]:
    """Learn in one thread, which replaces a snapshot, and predict by it in the others; then compare every answer."""
    X, y = _soak.chunk_of(name, 0, n_samples)
    rows = [{view: block[i] for view, block in X.items()} for i in range(n_samples)]
    every, start = 10, n_samples // 4
    model = _soak.learn(clone(cases.LEARNERS[name]), rows_of(X, slice(0, start)), y[:start])
    twin, current, done = copy.deepcopy(model), [model.snapshot()], threading.Event()
    found: list[list[tuple[int, int, Any]]] = [[] for _ in range(n_threads - 1)]

    def teach() -> None:
        try:
            for i in range(start, n_samples):
                model.learn_one(rows[i], y[i])
                time.sleep(1e-4)  # the others ask between any two samples
                if (i + 1) % every == 0:
                    current[0] = model.snapshot()
        finally:
            done.set()

    def ask(place: int) -> None:
        rng, last = np.random.default_rng(place), False
        while not last:
            last = done.is_set()
            snapshot, i = current[0], int(rng.integers(n_samples))
            found[place].append((snapshot.n_samples_seen_, i, snapshot.predict_one(rows[i])))

    wrong = together([teach, *(lambda place=place: ask(place) for place in range(n_threads - 1))])
    asked: dict[int, list[tuple[int, Any]]] = {}
    for seen, i, answer in (one for own in found for one in own):
        asked.setdefault(seen, []).append((i, answer))
    for seen in range(start, n_samples + 1):
        for i, answer in asked.pop(seen, []) if seen == start or seen % every == 0 else []:
            if numbers(twin.predict_one(rows[i])).tobytes() != numbers(answer).tobytes():
                wrong.append(f"the answer of a snapshot after {seen} samples differs")
        if seen < n_samples:
            twin.learn_one(rows[seen], y[seen])
    if asked:
        wrong.append(f"snapshots have counts of samples at which none was taken: {sorted(asked)}")
    if fingerprint(model) != fingerprint(twin):
        wrong.append("the model that learned beside threads has another state")
    return sum(map(len, found)), wrong


# -- processes
def serve(folder: str, names: list[str], barrier: Any, repeats: int, results: Any) -> None:
    """Load every model file, predict together with the other processes, and send the bits of the answers."""
    for name in names:
        model, X = cs.load(Path(folder) / f"{name}.cons"), samples(name, 24, seed=1)[0]
        barrier.wait()
        start, found = time.perf_counter(), set()
        for _ in range(repeats):
            found.add(tuple(batch_answers(model, X)))
        results.put((name, found, time.perf_counter() - start))


def predict_in_processes(names: list[str], n_processes: int, start: str, repeats: int) -> tuple[int, list[str], float]:
    """Load the files of models in many processes at once; return calls, faults and rows per second, of all together."""
    context = multiprocessing.get_context(start)
    wrong, times, n_rows = [], [], sum(len(range(24)[rows]) for rows in BATCHES)
    with tempfile.TemporaryDirectory() as folder:
        expected = {}
        for name in names:
            model = fitted(name)
            cs.save(model, Path(folder) / f"{name}.cons")
            expected[name] = tuple(batch_answers(model, samples(name, 24, seed=1)[0]))
        barrier, results = context.Barrier(n_processes), context.Queue()
        given = (folder, names, barrier, repeats, results)
        children = [context.Process(target=serve, args=given) for _ in range(n_processes)]
        for child in children:
            child.start()
        for _ in range(n_processes * len(names)):
            name, found, seconds = results.get(timeout=600)
            times.append(seconds)
            if found != {expected[name]}:
                wrong.append(f"{name}: answers of a process differ")
        for child in children:
            child.join()
    rate = n_processes * len(names) * repeats * n_rows / (sum(times) / n_processes)
    return n_processes * len(names) * repeats * len(BATCHES), wrong, rate


def predict_in_pools(names: list[str], n_jobs: int) -> tuple[int, list[str]]:
    """Send models to pools of processes and threads, with joblib and concurrent.futures."""
    wrong, tried = [], 0
    with ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name in names:
            model, X = fitted(name), samples(name, 24, seed=1)[0]
            parts = [rows_of(X, rows) for rows in BATCHES]
            expected = [numbers(model.predict(part)).tobytes() for part in parts]
            ways = {
                "a pool of processes": list(pool.map(model.predict, parts)),
                "joblib": Parallel(n_jobs=n_jobs)(delayed(model.predict)(part) for part in parts),
                "joblib, threads": Parallel(n_jobs=n_jobs, prefer="threads")(delayed(model.predict)(p) for p in parts),
            }
            for way, found in ways.items():
                tried += len(parts)
                if [numbers(one).tobytes() for one in found] != expected:
                    wrong.append(f"{name}: answers of {way} differ")
    return tried, wrong


def rate_in_threads(name: str, n_threads: int, seconds: float) -> float:
    """Return the rows per second that threads predict together with one model, one row at a time."""
    model, row, counts = fitted(name), rows_of(samples(name, 24, seed=1)[0], slice(0, 1)), [0] * n_threads
    end = time.perf_counter() + seconds

    def work(place: int) -> None:
        while time.perf_counter() < end:
            model.predict(row)
            counts[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


# -- long work
def apart(function: Callable[..., Soaked], *given: Any) -> Soaked:
    """Call in a fresh process, whose memory nothing else has used."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def directly(function: Callable[..., Soaked], *given: Any) -> Soaked:
    """Call in this process."""
    return function(*given)


def soak_all(long: bool, folder: Path) -> dict[str, dict[str, Soaked]]:
    """Soak online learners, then other work; each in a process of its own in the long run."""
    call = apart if long else directly
    n_samples = 1_000_000 if long else 10_000
    learners = {}
    for name in ONLINE if long else ("perceptron", "kernel perceptron, budget", "passive-aggressive regression"):
        if hasattr(cases.LEARNERS[name], "partial_fit"):
            learners[name] = call(_soak.soak_learner, name, n_samples)
            _tell(name, learners[name])
    parts, everything = 50 if long else 10, list(cases.LEARNERS) if long else SHORT
    two = ["passive-aggressive", "kernel perceptron, budget"] if long else ["passive-aggressive"]
    works: dict[str, tuple[Any, ...]] = {}
    for name in two:
        works |= {
            f"`predict_one` and `learn_one`, {name}": (_soak.single_samples, name, parts, 4000 if long else 50),
            f"`StreamMonitor` by view with drift, {name}": (_soak.monitored, name, parts, 10_000 if long else 100),
            f"checkpoints, {name}": (_soak.checkpoints, name, parts, 40 if long else 2, folder),
        }
    for name in [*two, "coregularized ridge", "consensus classifier"] if long else two:
        works[f"all methods of predictions, {name}"] = (_soak.predictions, name, parts, 100 if long else 2)
        works[f"`save` and `load`, {name}"] = (_soak.files, name, parts, 20 if long else 1, folder)
        works[f"fits, {name}"] = (_soak.fits, [name], parts, 20 if long else 1)
    if long:
        works["fits, every estimator in turn"] = (_soak.fits, everything, 20, 1)
    others = {}
    for what, (function, *given) in works.items():
        others[what] = call(function, *given)
        _tell(what, others[what])
    return {"learners": learners, "others": others}


def _tell(what: str, found: Soaked) -> None:
    print(" | ".join(found.row(what)) + (f" | WRONG: {found.wrong}" if found.wrong else ""), flush=True)


# -- the check
def figure(what: str, cases_: dict[str, tuple[int, list[str]]], note: str = "") -> Figure:
    """Return a line, with the number of cases that failed, and print what was wrong."""
    for name, (_, wrong) in cases_.items():
        for text in dict.fromkeys(wrong):
            print(f"{what}, {name}: {text[:300]}")
    return Figure(what, sum(own[0] for own in cases_.values()), sum(len(own[1]) for own in cases_.values()), note)


def run(long: bool) -> Found:
    """Try threads, processes and long work."""
    names, n_threads = list(cases.LEARNERS) if long else SHORT, 16
    taught = [name for name in names if name in ONLINE and hasattr(cases.LEARNERS[name], "partial_fit")]
    print("Threads", flush=True)
    threads = {name: predict_in_threads(name, n_threads, 2 if long else 1) for name in names}
    print("Threads while one learns", flush=True)
    learning = {name: predict_while_learning(name, n_threads, 100 if long else 24) for name in taught}
    figures = [
        figure(f"predictions in {n_threads} threads, one model", threads, f"{len(threads)} estimators"),
        figure(f"`predict_one` by snapshots in {n_threads - 1} threads while one learns", learning,
               f"{len(learning)} online learners"),
    ]  # fmt: skip
    starts = [start for start in ("spawn", "fork") if start in multiprocessing.get_all_start_methods()]
    for start in starts if long else starts[-1:]:
        given = (names, 8, start, 2) if long else (["coregularized ridge", "perceptron"], 2, start, 1)
        print(f"Processes, {start}", flush=True)
        tried, wrong, rate = predict_in_processes(*given)
        what = f"predictions in {given[1]} processes ({start}) from one model file"
        figures.append(figure(what, {"": (tried, wrong)}, f"{rate:,.0f} rows per second, mean over estimators"))
    if long:
        pools = {"": predict_in_pools(names, 4)}
        figures.append(figure("predictions in pools: processes, joblib, joblib with threads", pools))
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak_all(long, Path(folder))
    for what, kind in (("streams of {:,} samples", "learners"), ("other work that goes on for long", "others")):
        own = soaked[kind]
        most = max((one.growth for one in own.values() if one.growth is not None), default=float("nan"))
        note = f"memory grows by at most {most:.1f} MB, parts become slower by at most a factor of "
        note += f"{max(one.slower for one in own.values()):.2f}"
        failed = sum(bool(one.wrong) for one in own.values())
        figures.append(Figure(what.format(max(one.done for one in own.values())), len(own), failed, note))
    rates = [
        [name, *(f"{rate_in_threads(name, k, 1.0 if long else 0.05):,.0f}" for k in (1, n_threads))]
        for name in ("coregularized ridge", "perceptron", "kernel perceptron")
    ]
    heads = ["", "done", "per second", "time late / early", "memory"]
    tables = [
        ("Streams", ["learner", "samples", "samples per second", *heads[3:]], _rows(soaked["learners"])),
        ("Other work", heads, _rows(soaked["others"])),
        ("Calls of `predict` with one row, per second", ["estimator", "1 thread", f"{n_threads} threads"], rates),
    ]
    return Found(figures, tables)


def _rows(found: dict[str, Soaked]) -> list[list[str]]:
    return [own.row(name) for name, own in found.items()]


CHECK = Check(
    "load",
    "Load",
    "One model predicts in 16 threads and 8 processes at once with the bits of one thread, and stays as it is. "
    "Snapshots predict while another thread learns. Every online learner learns a million samples: after the first "
    f"fifth, memory grows by at most {MEGABYTES:g} MB, and the median time of a chunk in the last fifth is at most "
    f"{SLOWER:g} times that in the second fifth. Other chunks give the same counts and scores.",
    run,
    (
        "Learners that vote, and the vector perceptron, keep all updates: their streams have a margin, so updates end.",
        "Without a snapshot nothing is promised about predictions while another thread learns.",
        "Two cores run all threads and processes, so rates in threads are not those of a machine with 16.",
    ),
)


if __name__ == "__main__":
    sys.exit(main(CHECK))
