"""Support vector machines over features compared with liblinear: python benchmarks/svm.py [part ...]

Parts: liblinear, classes, large; all by default. Samples have three views of random Fourier features, --features in
each, of noisy copies of 60 hidden variables.

liblinear: the solver of CoRegularizedSVC with n_components, and scikit-learn's LinearSVC (hinge loss, no intercept, its
dual), on the same features with the same C, two classes. LinearSVC has no gap to set, so it runs with smaller and
smaller values of its tol until the objective is within 1e-4 of the optimum, and the first run that is counts. classes:
the same for ten classes, one against the rest. large: CoRegularizedSVC on raw views of --large-rows labeled samples,
three views with 100 landmarks each, in a separate process: seconds, gap and memory, and the size of the kernel that is
not formed. Seconds are medians of three alternating runs, or one where a run takes more than 20 s.
"""

import argparse
import statistics
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import consilience as cs
from consilience.solvers.svm_features import svm_features

TOLERANCE = 1e-4  # of the objective


def fourier_views(rows, features, classes):
    """Return features of three views side by side, and classes."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 60))
    parts = []
    for _ in range(3):
        noisy = hidden + 0.5 * rng.normal(size=hidden.shape)
        angles = 0.12 * noisy @ rng.normal(size=(60, features)) + rng.uniform(0, 2 * np.pi, features)
        parts.append(np.sqrt(2 / features) * np.cos(angles))
    scores = hidden @ rng.normal(size=(60, classes)) + rng.normal(size=(rows, classes))
    return np.ascontiguousarray(np.hstack(parts)), scores.argmax(axis=1)


def objective(X, signs, coef, C):
    """Return ½‖w‖² + C Σ hinge, summed over the classes."""
    return 0.5 * np.sum(coef**2) + C * np.sum(np.maximum(0, 1 - signs * (X @ coef.T)))


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def ours(X, signs, C):
    T = X[None]
    arrays = np.ones(signs.shape), np.full(signs.shape, C), signs
    return svm_features(
        lambda: iter([(slice(0, len(X)), T)]), [np.eye(signs.shape[1])], *arrays, tol=TOLERANCE, max_iter=1000
    )


def liblinear(X, y, C, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=10_000, random_state=0)
        return model.fit(X, y)


def compare(rows, features, classes):
    X, y = fourier_views(rows, features, classes)
    signs = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    signs = signs[:, 1:] if classes == 2 else signs
    ours(X[:200], signs[:200], 1.0)  # loops are compiled
    print(f"{rows:,} samples, 3 x {features} features, {signs.shape[1]} machines, gap {TOLERANCE:g} of the objective")
    for C in (0.01, 0.1, 1.0):
        seconds, found = timed(lambda C=C: ours(X, signs, C))
        coef = (signs * found.x).T @ X
        value, best = objective(X, signs, coef, C), found.dual
        for tol in (0.1, 0.03, 0.01, 0.003, 0.001, 1e-4):
            theirs, model = timed(lambda C=C, tol=tol: liblinear(X, y, C, tol))
            other = objective(X, signs, model.coef_, C)
            if other - best <= TOLERANCE * best:
                break
        both = [[seconds], [theirs]]
        while len(both[0]) < 3 and max(seconds, theirs) < 20:
            both[0].append(timed(lambda C=C: ours(X, signs, C))[0])
            both[1].append(timed(lambda C=C, tol=tol: liblinear(X, y, C, tol))[0])
        seconds, theirs = (statistics.median(each) for each in both)
        print(
            f"  C={C:<5g} ours {seconds:7.2f} s (objective {value:.6g}, above the bound by {(value - best) / best:.1e})"
            f"   LinearSVC(tol={tol:g}) {theirs:7.2f} s (objective {other:.6g}, {(other - best) / best:.1e})"
            f"   ratio {seconds / theirs:.2f}",
            flush=True,
        )


def memory():
    """Return the largest memory of this process so far, in GB; Linux alone tells it for a process by itself."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM"))


def large(rows):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=rows)
    X = {name: rng.normal(size=(rows, 20)) + (y == k)[:, None] for k, name in enumerate("abc")}
    cs.CoRegularizedSVC(n_components=20).fit({name: block[:300] for name, block in X.items()}, y[:300])
    before = memory()
    for params in ({}, {"agreement_penalty": 1e-4}, {"class_vectors": "simplex"}):
        model = cs.CoRegularizedSVC(n_components=100, random_state=0, alpha=1e-5, **params)
        seconds, _ = timed(lambda model=model: model.fit(X, y))
        proof = model.certificate()
        print(
            f"{rows:,} labeled samples {params}: {seconds:.1f} s, gap {proof.gap / proof.objective:.1e}, "
            f"{memory() - before:.2f} GB more memory; the kernel would have {8 * rows**2 / 1e9:,.0f} GB",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", default=["liblinear", "classes", "large"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--large-rows", type=int, default=100_000)
    given = parser.parse_args()
    if "liblinear" in given.parts:
        compare(given.rows, given.features, 2)
    if "classes" in given.parts:
        compare(given.rows // 5, given.features, 10)
    if "large" in given.parts:
        process = get_context("spawn").Process(target=large, args=(given.large_rows,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
