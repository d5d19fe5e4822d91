"""Kernel estimators on a noisy stream: python benchmarks/kernel_streams.py [--rows 10000] [--chunk 1000]

Three views of 30 columns, whose class depends on products of columns and is random for one sample in ten. Each row of
the table is an estimator: samples per second over the whole stream and over its last tenth, milliseconds of `learn_one`
on the state after the stream, samples kept, megabytes of the model file, and the error of predictions before learning.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

import consilience as cs
from consilience.kernels import RBF

GAMMA = 1 / 30


def noisy_stream(n, width=30, seed=0):
    """Return three views and classes: the sign of a sum of products of columns, one in ten at random."""
    rng = np.random.default_rng(seed)
    X = cs.Views({f"v{k}": rng.normal(size=(n, width)) for k in range(3)})
    score = sum(X[name][:, 0] * X[name][:, 1] + X[name][:, 2] for name in X.names)
    return X, np.where(rng.random(n) < 0.1, rng.integers(2, size=n), score > 0).astype(int)


def estimators():
    """Return the estimators by name."""
    kernel = RBF(GAMMA)
    features = cs.RandomFeatures(kernel, n_components=500, random_state=0)
    return {
        "KernelPerceptron": cs.KernelPerceptron(kernel),
        "KernelPerceptron, budget=None": cs.KernelPerceptron(kernel, budget=None),
        "PassiveAggressive": cs.PassiveAggressive(kernel),
        "Projectron": cs.Projectron(kernel),
        "Projectron, budget=None": cs.Projectron(kernel, budget=None),
        "OrthogonalPerceptron": cs.OrthogonalPerceptron(kernel),
        "MatrixPerceptron": cs.MatrixPerceptron(kernel),
        "MultiCueClassifier": cs.MultiCueClassifier(kernel),
        "perceptron, random features": cs.OnlinePerceptron(prepare=features),
        "PA-I, random features": cs.PassiveAggressive(C=0.1, prepare=features),
        "PA-I, linear": cs.PassiveAggressive(C=0.1),
    }


def n_kept(model):
    """Return the number of samples in the state."""
    parts = getattr(model, "estimators_", {"": model}).values()
    return sum(len(part.support_) if hasattr(part, "support_") else 0 for part in parts)


def megabytes(model):
    """Return the size of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cons"
        cs.save(model, path)
        return path.stat().st_size / 2**20


def measure(model, X, y, chunk):
    """Learn the stream by chunks; return the columns of the table."""
    times = []
    for start in range(0, len(y), chunk):
        rows, begin = slice(start, start + chunk), time.perf_counter()
        model.partial_fit(X[rows], y[rows])
        times.append(time.perf_counter() - begin)
    last = max(1, len(times) // 10)
    found = [len(y) / sum(times), last * chunk / sum(times[-last:])]
    error, kept, size = model.n_errors_ / model.n_samples_seen_, n_kept(model), megabytes(model)
    samples = [{name: X[name][i] for name in X.names} for i in range(100)]
    begin = time.perf_counter()
    for x, target in zip(samples, y[:100], strict=True):
        model.learn_one(x, target)
    single = (time.perf_counter() - begin) / 100
    return [*found, 1e3 * single, kept, size, error]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--chunk", type=int, default=1000)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message="The budget of")
    X, y = noisy_stream(given.rows)
    print(f"{given.rows:,} samples, {len(X.names)} views of 30 columns, chunks of {given.chunk:,}\n")
    print("| estimator | rows/s | rows/s at the end | learn_one, ms | kept | file, MB | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, model in estimators().items():
        measure(model, X[:300], y[:300], 100)  # compiles
        fast, late, single, kept, size, error = measure(clone(model), X, y, given.chunk)
        print(f"| {name} | {fast:,.0f} | {late:,.0f} | {single:.2f} | {kept:,} | {size:.1f} | {error:.3f} |")


if __name__ == "__main__":
    main()
