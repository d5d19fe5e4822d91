"""Single samples while a model serves: python benchmarks/serving.py [--seconds 2]

A stream of three views of 30 columns. latency: median and 99th percentile of predict_one and learn_one of linear and
kernel estimators, for arrays, lists and samples with a row of NaN, and of river's logistic regression on the same
samples as dicts, in the same run. threads: predictions a second of 8 threads with the latest snapshot, while one thread
learns and takes a snapshot after every 100 samples, and the same without the learner. checkpoint: time and size of a
checkpoint and of a model file.
"""

import argparse
import itertools
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import consilience as cs
from consilience.io import write_checkpoint
from consilience.kernels import RBF

WIDTH, N = 30, 4000
MODELS = {
    "OnlinePerceptron": cs.OnlinePerceptron(),
    "OrthogonalPerceptron, averaged": cs.OrthogonalPerceptron(average=True),
    "PassiveAggressive, standardized": cs.PassiveAggressive(prepare="standardize"),
    "KernelPerceptron, 100 kept": cs.KernelPerceptron(RBF(0.02), budget=100),
    "PassiveAggressive by kernels, 100 kept": cs.PassiveAggressive(RBF(0.02), budget=100),
    "Projectron, 100 kept": cs.Projectron(RBF(0.02), budget=100),
    "OrthogonalPerceptron by kernels, 100 kept": cs.OrthogonalPerceptron(RBF(0.02), budget=100),
}


def stream():
    rng = np.random.default_rng(0)
    blocks = {name: rng.normal(size=(N, WIDTH)) for name in "abc"}
    return blocks, (sum(block @ rng.normal(size=WIDTH) for block in blocks.values()) > 0).astype(int)


def rows_of(blocks, form):
    return [{name: form(name, block[i]) for name, block in blocks.items()} for i in range(N)]


def times(call, samples):
    """Return the median and the 99th percentile of the microseconds that a call takes."""
    found = []
    for given in samples:
        start = time.perf_counter()
        call(*given)
        found.append(time.perf_counter() - start)
    return np.median(found) * 1e6, np.quantile(found, 0.99) * 1e6


def show(name, form, predict, learn):
    print(f"{name:42} {form:8} predict {predict[0]:7.1f} {predict[1]:8.1f}   learn {learn[0]:7.1f} {learn[1]:8.1f}")


def latency(blocks, y):
    print("microseconds: median and 99th percentile")
    missing = np.full(WIDTH, np.nan)
    forms = {
        "arrays": rows_of(blocks, lambda name, row: row),
        "lists": rows_of(blocks, lambda name, row: row.tolist()),
        "NaN row": rows_of(blocks, lambda name, row: missing if name == "b" else row),
    }
    for name, model in MODELS.items():
        model.partial_fit(blocks, y)
        for form, rows in forms.items():
            samples = [(row, int(label)) for row, label in zip(rows, y, strict=True)]
            for row, label in samples[:20]:  # compiled, in memory
                model.learn_one(row, label).predict_one(row)
            show(
                name,
                form,
                times(model.predict_one, [(row,) for row in rows[:1000]]),
                times(model.learn_one, samples[-500:]),
            )
    rivers(blocks, y)


def rivers(blocks, y):
    try:
        from river import linear_model
    except ImportError:
        print("river is not installed")
        return
    flat = [{f"{name}{j}": float(v) for name in blocks for j, v in enumerate(blocks[name][i])} for i in range(N)]
    for kind in ("Perceptron", "LogisticRegression"):
        model = getattr(linear_model, kind)()
        samples = list(zip(flat, y.astype(bool).tolist(), strict=True))
        for given in samples[:1000]:
            model.learn_one(*given)
        show(
            f"river {kind}",
            "dicts",
            times(model.predict_one, [(x,) for x in flat[:1000]]),
            times(model.learn_one, samples[-500:]),
        )


def threads(blocks, y, seconds):
    print(f"\npredictions a second by 8 threads, in {seconds} s")
    rows = rows_of(blocks, lambda name, row: row)
    for name, model in MODELS.items():
        alone = throughput(model, rows, None, seconds)
        both = throughput(model, rows, y, seconds)
        print(f"{name:42} {alone[0]:9,.0f} alone {both[0]:9,.0f} while {both[1]:7,.0f} samples a second are learned")


def throughput(model, rows, y, seconds):
    latest, stop, counts = [model.snapshot()], threading.Event(), [0] * 8

    def predict(number):
        for row in itertools.cycle(rows):
            if stop.is_set():
                return
            latest[0].predict_one(row)
            counts[number] += 1

    workers = [threading.Thread(target=predict, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    start, learned = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        if y is None:
            time.sleep(0.05)
            continue
        i = learned % N
        model.learn_one(rows[i], int(y[i]))
        learned += 1
        if learned % 100 == 0:
            latest[0] = model.snapshot()
    stop.set()
    for worker in workers:
        worker.join()
    passed = time.perf_counter() - start
    return sum(counts) / passed, learned / passed


def checkpoints():
    print("\nmilliseconds and bytes of checkpoints and of model files, microseconds of snapshots")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cons"
        for name, model in MODELS.items():
            found = []
            for write in (write_checkpoint, cs.save):
                middle = times(write, [({"model": model, "position": 1}, path)] * 20)[0] / 1000
                found.append(f"{middle:6.1f} ms {path.stat().st_size:8,} bytes")
            taken = times(model.snapshot, [()] * 50)[0]
            print(f"{name:42} {found[0]}   {found[1]}   snapshot {taken:6.0f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    seconds = parser.parse_args().seconds
    warnings.filterwarnings("ignore", message="The budget of")
    blocks, y = stream()
    latency(blocks, y)
    threads(blocks, y, seconds)
    checkpoints()


if __name__ == "__main__":
    main()
