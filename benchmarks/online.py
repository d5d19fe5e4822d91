"""Online estimators compared with scikit-learn and river, and their memory: python benchmarks/online.py [part ...]

Parts: linear, rows, views, kernel, predict, memory; all by default. a9a and the 20 Newsgroups word pairs are in the
folder CONSILIENCE_DATA. Times are medians of alternating runs.

linear: one pass of OnlinePerceptron and of SGDClassifier(loss="perceptron", max_iter=1) on a9a and on the word pairs
(single precision), and river's Perceptron by learn_one on a9a. rows: a9a one row at a time, learn_one and partial_fit
of SGDClassifier. views: OrthogonalPerceptron on two halves of the columns, and one perceptron on both. kernel:
KernelPerceptron with a Gaussian kernel, and NumPy sample by sample. predict: averaged and last hypothesis. memory: a
million samples with a budget, in a separate process.
"""

import argparse
import resource
import statistics
import time
from functools import partial
from multiprocessing import get_context

import numpy as np
from sklearn.linear_model import SGDClassifier

import consilience as cs
from consilience import Views
from consilience.experiments._tables import load_set
from consilience.kernels import RBF


def medians(calls, repeats=15):
    """Return the median seconds of each call; the calls alternate."""
    times = {name: [] for name in calls}
    for name in calls:
        calls[name]()  # compiled, in memory
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def a9a():
    return load_set("a9a")[:2]


def sgd(**given):
    return SGDClassifier(loss="perceptron", max_iter=1, tol=None, **given)


def linear():
    X, y = a9a()
    found = medians(
        {
            "ours": lambda: cs.OnlinePerceptron().partial_fit(X, y),
            "SGD": lambda: sgd().fit(X, y),
            "SGD, not shuffled": lambda: sgd(shuffle=False).fit(X, y),
        }
    )
    report("a9a, one pass", found, X.shape[0])
    from river.linear_model import Perceptron

    rows = [dict(zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True)) for i in range(5000)]
    labels = (y[:5000] > 0).tolist()

    def river():
        model = Perceptron()
        for x, label in zip(rows, labels, strict=True):
            model.learn_one(x, label)

    some = X[:5000]
    found = medians({"ours": lambda: cs.OnlinePerceptron().partial_fit(some, y[:5000]), "river": river}, 5)
    report("a9a, 5,000 rows", found, 5000)
    X, groups, _ = load_set("news20_pairs")
    y = np.isin([str(g).split(".")[0] for g in groups], ["comp", "misc", "sci"]).astype(int)
    X, order = X.astype(np.float32), np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    X.data /= np.repeat(np.sqrt(np.diff(X.indptr)), np.diff(X.indptr)).astype(np.float32)
    found = medians(
        {
            "ours": lambda: cs.OnlinePerceptron().partial_fit(X, y),
            "SGD": lambda: sgd().fit(X, y),
            "SGD, not shuffled": lambda: sgd(shuffle=False).fit(X, y),
        },
        7,
    )
    report(f"word pairs, {X.shape[1]:,} columns, {X.nnz:,} nonzeros", found, X.shape[0])


def rows():
    X, y = a9a()
    n, sparse = 2000, [X[[i]] for i in range(2000)]
    dense = [np.ascontiguousarray(row.toarray()[0]) for row in sparse]
    classes = np.unique(y)

    def light(rows):
        model = cs.OnlinePerceptron().partial_fit({"a": X[:2]}, y[:2], classes=classes)
        for row, label in zip(rows, y[:n].tolist(), strict=True):
            model.learn_one({"a": row}, label)

    def theirs():
        model = SGDClassifier(loss="perceptron")
        for row, label in zip(sparse, y[:n], strict=True):
            model.partial_fit(row, [label], classes=classes)

    def predicting():
        for row in sparse:
            known.predict_one({"a": row})

    known = cs.OnlinePerceptron(average=True).partial_fit({"a": X}, y)
    known.learn_one({"a": sparse[0]}, y[0].item())
    calls = {"ours, sparse rows": lambda: light(sparse), "ours, dense rows": lambda: light(dense)}
    report("one row at a time", medians({**calls, "SGD partial_fit": theirs, "predict_one": predicting}, 5), n)


def views():
    X, y = a9a()
    half = X.shape[1] // 2
    halves = Views(left=X[:, :half], right=X[:, half:])
    found = medians(
        {
            "one perceptron on both": lambda: cs.OnlinePerceptron(fit_intercept=False).partial_fit(X, y),
            "OMMP on two views": lambda: cs.OrthogonalPerceptron(p=2, fit_intercept=False).partial_fit(halves, y),
            "OMMP, averaged": lambda: cs.OrthogonalPerceptron(p=2, average=True, fit_intercept=False).partial_fit(
                halves, y
            ),
            "MMP on two views": lambda: cs.MatrixPerceptron(p=2, unequal="pad", fit_intercept=False).partial_fit(
                halves, y
            ),
        }
    )
    report("a9a in two views, one pass", found, X.shape[0], first=True)


def numpy_kernel_perceptron(X, y, gamma):
    """Run a kernel perceptron sample by sample in NumPy, in preallocated memory; return the mistakes."""
    n, d = X.shape
    kept, norms, alpha, size, mistakes = np.empty((n, d)), np.empty(n), np.empty(n), 0, 0
    squares = np.einsum("ij,ij->i", X, X)
    for x, square, label in zip(X, squares, y, strict=True):
        k = np.exp(-gamma * (norms[:size] + square - 2 * kept[:size] @ x))
        if label * (alpha[:size] @ k) <= 0:
            kept[size], norms[size], alpha[size] = x, square, label
            size, mistakes = size + 1, mistakes + 1
    return mistakes


def kernel(n=None):
    X, y = a9a()
    X, y = X[:n], y[:n]
    dense, signs = X.toarray(), np.where(y > 0, 1.0, -1.0)
    cs.KernelPerceptron(RBF(0.05), budget=None).partial_fit(X[:500], y[:500])
    start = time.perf_counter()
    ours = cs.KernelPerceptron(RBF(0.05), budget=None).partial_fit(X, y, classes=np.unique(y))
    middle = time.perf_counter()
    theirs = numpy_kernel_perceptron(dense, signs, 0.05)
    end = time.perf_counter()
    print(f"mistakes {ours.n_mistakes_} and {theirs}")
    report("a9a, Gaussian kernel, one pass", {"ours": middle - start, "NumPy": end - middle}, len(y))


def predict():
    X, y = a9a()
    for name, make in {
        "linear": lambda average: cs.OnlinePerceptron(average=average).partial_fit(X, y),
        "kernel": lambda average: cs.KernelPerceptron(RBF(0.05), average=average, budget=None).partial_fit(
            X[:8000], y[:8000]
        ),
    }.items():
        last, averaged = make(False), make(True)
        some = X if name == "linear" else X[:4000]
        found = medians({"averaged": partial(averaged.predict, some), "last": partial(last.predict, some)}, 7)
        report(f"predict, {name}", found, some.shape[0])


def long_stream(pipe, n, budget):
    rng = np.random.default_rng(0)
    model, sizes = cs.KernelPerceptron(RBF(0.1), budget=budget), []
    truth, chunk = rng.normal(size=(2, 10)), 5000
    started = time.perf_counter()
    for start in range(0, n, chunk):
        labels = rng.integers(2, size=chunk)
        model.partial_fit(truth[labels] + 1.5 * rng.normal(size=(chunk, 10)), labels)
        if (start + chunk) % (n // 5) == 0:
            with open("/proc/self/statm") as file:
                sizes.append((start + chunk, int(file.read().split()[1]) * resource.getpagesize() / 2**20))
    pipe.send((sizes, time.perf_counter() - started, len(model.support_), model.n_mistakes_))


def memory(n=1_000_000, budget=500):
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=long_stream, args=(there, n, budget))
    process.start()
    sizes, seconds, support, mistakes = here.recv()
    process.join()
    print(f"\n{n:,} samples, budget {budget}: {seconds:.0f} s, {support} kept, {mistakes:,} mistakes")
    for seen, size in sizes:
        print(f"  after {seen:>9,} samples {size:7.1f} MiB")


def report(title, found, n, first=False):
    print(f"\n{title}")
    ours = found[next(iter(found))]
    for name, seconds in found.items():
        ratio = seconds / ours
        print(f"  {name:<26} {1e3 * seconds:10.2f} ms {n / seconds:14,.0f} rows/s   x {ratio:.2f}")


if __name__ == "__main__":
    parts = {part.__name__: part for part in (linear, rows, views, kernel, predict, memory)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    for part in parser.parse_args().parts or parts:
        parts[part]()
