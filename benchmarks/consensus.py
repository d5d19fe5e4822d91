"""Consensus without parameters compared with tuned rivals: python benchmarks/consensus.py run|summary|time

run --out FILE [--jobs N] [--sets ...] [--sizes ...] [--draws 10] [--part i/k] [--minutes M] [--only NAME ...]
    Fit every estimator on every set, training size and draw, and append one JSON line for each to FILE. What FILE has
    already is skipped, so that a run can be stopped and continued. Draw 0 of all sets comes first, then draw 1, and so
    on. Every process uses one thread. After M minutes no estimator is started; what runs 45 s later is stopped.
summary FILE
    Print mean ranks, wins and losses, shortfalls, log loss, calibration, coverage and results with missing views.
time
    Print fit times compared with GridSearchCV(SVC) on all columns, and growth with the number of samples.

Each estimator gets the same training samples, at least three of each class, and at most 1,000 other samples as test
part. Images of one object (eth80) are never in both; the inner folds of all respect the objects. The file
consensus_rivals.py says how rivals are tuned. EasyMKL gets at most 400 training samples. Views are missing at random in
20 and 50% of the cells of both parts, for the middle training size of each set. Sets that cannot be loaded, himalaya
and MKLpy are skipped with a notice.
"""

import os
import sys

if sys.argv[1:2] == ["run"]:  # before NumPy is imported
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import statistics
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from consensus_rivals import rivals, timed
from consensus_sets import SETS, Cell
from consensus_summary import summary
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import consilience as cs
from consilience.datasets import fetch_mfeat, fetch_uwave, make_views

MISSING = (0.2, 0.5)
GRACE = 45  # seconds
SOURCES = {}  # filled before the processes are forked, so that they share the arrays


# -- run
def load(names):
    for name in names:
        try:
            SOURCES[name] = SETS[name]()
        except Exception as error:  # a set that is not at hand
            print(f"{name} is skipped: {type(error).__name__}: {error}", flush=True)


def cells(options):
    """Return (draw, set, size, share missing) in the order of work: within a draw, the large ones first."""
    found = []
    for name, source in SOURCES.items():
        sizes = [size for size in source.sizes if not options.sizes or size in options.sizes] or source.sizes[:1]
        cost = len(source.X.names) * (source.y.max() + 1 if source.classes else 1)
        for draw in range(options.draws):
            found += [(draw, -cost * size, name, size, 0.0) for size in sizes]
            found += [(draw, 0, name, sizes[len(sizes) // 2], share) for share in MISSING]
    return [(draw, name, size, missing) for draw, _, name, size, missing in sorted(found)]


def key(line):
    return line["set"], line["size"], line["draw"], line["missing"], line["estimator"]


def known(path):
    """Return what a file has; fits that failed are tried again."""
    if not path.exists():
        return set()
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    return {key(line) for line in lines if "error" not in line}


def work(job):
    """Fit what a cell lacks, and append a line for each estimator."""
    (draw, name, size, missing), done, path, only, deadline = job
    found, _ = rivals(SOURCES[name].classes, missing, size)
    cell, count = None, 0
    for estimator, run in found.items():
        if (name, size, draw, missing, estimator) in done or (only and estimator not in only):
            continue
        if time.time() > deadline:
            return count, False
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cell = Cell(SOURCES[name], size, draw, missing) if cell is None else cell
            try:
                result = timed(run, cell)
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"[:300]}
        where = {"set": name, "size": size, "draw": draw, "missing": missing}
        lines = [where | {"estimator": estimator} | _plain(result)]
        lines += [where | {"estimator": own} | each for own, each in result.items() if isinstance(each, dict)]
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", buffering=0) as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        count += 1
    return count, True


def _plain(result):
    """Return a result without the parts that get a line of their own."""
    return {name: value for name, value in result.items() if not isinstance(value, dict)}


def run(options):
    start = time.time()
    deadline = start + 60 * options.minutes if options.minutes else np.inf
    load(options.sets or SETS)
    for classes, task in ((True, "classification"), (False, "regression")):
        for name, why in rivals(classes, 0)[1].items():
            print(f"{name} is skipped for {task}: {why}", flush=True)
    part, parts = map(int, options.part.split("/"))
    done = known(options.out)
    chosen = cells(options)[part - 1 :: parts]
    jobs = [(cell, done, str(options.out), options.only, deadline) for cell in chosen]
    print(f"{len(jobs)} cells, {len(done)} lines known, {options.jobs} processes", flush=True)
    fitted = complete = 0
    with get_context("fork").Pool(options.jobs) as pool:
        results = pool.imap_unordered(work, jobs)
        for k in range(len(jobs)):
            try:
                count, whole = results.next(max(deadline + GRACE - time.time(), 0.1) if options.minutes else None)
            except TimeoutError:
                print("out of time: the estimators that still ran were stopped", flush=True)
                break
            fitted, complete = fitted + count, complete + whole
            if k % 20 == 19:
                print(f"{time.time() - start:6.0f} s: {complete} cells complete, {fitted} fits", flush=True)
        pool.terminate()
    print(f"{time.time() - start:.0f} s: {complete} of {len(jobs)} cells complete, {fitted} fits")


# -- time
def seconds(calls, repeats=5):
    """Return the median times of calls in turn, after a first round that is not counted."""
    rounds = []
    for _ in range(repeats + 1):
        rounds.append([])
        for call in calls:
            start = time.perf_counter()
            call()
            rounds[-1].append(time.perf_counter() - start)
    return [statistics.median(times) for times in zip(*rounds[1:], strict=True)]


def search():
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0, 10.0, 100.0]}, cv=3)


def wide(X):
    return np.hstack([X[name] for name in X.names])


def made(n, n_classes=3):
    return make_views(n, n_classes=n_classes, informative=2, noise=1, n_features=20, random_state=0)


def times(options):
    print(
        "1,000 samples, 3 views: one fit of Consensus, and GridSearchCV of SVC on all columns, 4 values of C, 3 folds"
    )
    print(f"{'':34}{'Consensus':>11}{'search':>9}{'ratio':>8}{'models':>8}")
    sets = {"made, 3 x 20 columns, 3 classes": made(1000), "made, 3 x 20 columns, 10 classes": made(1000, 10)}
    for name, fetch, views in (("uWave", fetch_uwave, ("x", "y", "z")), ("mfeat", fetch_mfeat, ("fou", "kar", "zer"))):
        try:
            X, y = fetch(return_X_y=True)
        except Exception as error:
            print(f"{name} is skipped: {type(error).__name__}")
            continue
        rows = np.random.default_rng(0).permutation(len(y))[:1000]
        sets[f"{name}, {len(np.unique(y))} classes"] = X[rows][list(views)], y[rows]
    for name, (X, y) in sets.items():
        model, table = cs.ConsensusClassifier(), wide(X)
        fits = lambda model=model, X=X, y=y: model.fit(X, y)  # noqa: E731
        ours, theirs = seconds([fits, lambda table=table, y=y: search().fit(table, y)])
        print(f"{name:34}{ours:10.2f}s{theirs:8.2f}s{ours / theirs:8.2f}{len(model.kernel_weights_):8}", flush=True)
    print("\nGrowth: made data, 3 views of 20 columns, 3 classes, and a target of its own for regression")
    print(f"{'samples':>8}{'classes':>10}{'numbers':>10}{'search':>10}")
    for n in (250, 500, 1000, 2000, 4000, 5000):
        X, y = made(n)
        target = wide(X)[:, :5].sum(axis=1)
        calls = [
            lambda X=X, y=y: cs.ConsensusClassifier().fit(X, y),
            lambda X=X, t=target: cs.ConsensusRegressor().fit(X, t),
            lambda X=X, y=y: search().fit(wide(X), y),
        ]
        found = seconds(calls, 5 if n <= 1000 else 1)
        print(f"{n:8}" + "".join(f"{took:9.2f}s" for took in found), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(call=times)
    commands = parser.add_subparsers()
    command = commands.add_parser("run")
    command.set_defaults(call=run)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--jobs", type=int, default=1)
    command.add_argument("--sets", nargs="+", choices=SETS)
    command.add_argument("--sizes", nargs="+", type=int, help="a set that has none of them gets its smallest size")
    command.add_argument("--draws", type=int, default=10)
    command.add_argument("--part", default="1/1")
    command.add_argument("--minutes", type=float)
    command.add_argument("--only", nargs="+", help="names of estimators")
    command = commands.add_parser("summary")
    command.set_defaults(call=summary)
    command.add_argument("file", type=Path, nargs="+")
    commands.add_parser("time").set_defaults(call=times)
    chosen = parser.parse_args()
    chosen.call(chosen)
