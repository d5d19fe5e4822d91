"""Maximum margin regression compared with scikit-learn, growth and memory: python benchmarks/margin.py [part ...]

Parts: classes, linear, large, growth, precision; all by default. Data are Gaussian blobs except for linear.

classes: compared with SVC (one against one; the same kernel, γ and C = 1), few and many classes, easy and overlapping.
Seconds of the fits are medians of alternating runs; SVC with 500 classes or more runs once. linear: linear kernels,
compared with LinearSVC on 20 Newsgroups, whose file is in the folder CONSILIENCE_DATA; C by three folds of training
rows. large: 50,000 rows with the default cache, in a separate process, and the size of the whole kernel matrix. growth:
one fit by the number of samples and of classes. precision: seconds to gaps of 1e-2 .. 1e-6 of the objective. --rows is
for classes, growth and precision, --large-rows and --news-rows for large and linear.
"""

import argparse
import statistics
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

import consilience as cs
from consilience.experiments._tables import load_set
from consilience.kernels import RBF

SPREADS = {"easy": 2.5, "overlapping": 6.0}


def blobs(rows, test, classes, spread, columns=20):
    """Return training rows, their classes, test rows, their classes, and γ as in scikit-learn's "scale"."""
    X, y = make_blobs(rows + test, n_features=columns, centers=classes, cluster_std=spread, random_state=0)
    return X[:rows], y[:rows], X[rows:], y[rows:], 1 / (columns * X[:rows].var())


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def seconds(call, repeats=3):
    """Return the median time, or the first if it is over 20 s."""
    times = []
    while len(times) < repeats and max(times, default=0) < 20:
        times.append(timed(call)[0])
    return statistics.median(times)


def relative_gap(model):
    certificate = model.certificate()
    return certificate.gap / certificate.objective


def warm_up():
    """Compile what is compiled at the first use."""
    for classes in (3, 30):
        X, y, X_test, _, gamma = blobs(300, 10, classes, 2.5)
        for vectors in ("simplex", "indicator"):
            for tol in (1e-3, 1e-6):
                cs.MaxMarginClassifier(RBF(gamma), class_vectors=vectors, tol=tol).fit(X, y).predict(X_test)


# -- compared with SVC
def classes(options):
    test = options.rows // 5
    print(
        f"\nCompared with SVC: {options.rows} training rows x 20 columns, {test} test rows, C = 1, γ = scale, seconds"
    )
    heads = f"{'SVC fit':>9}{'ours':>9}{'ratio':>7}{'predict':>9}{'ours':>8}{'accuracy':>10}{'ours':>7}"
    print(f"{'':13}{'classes':>7}{heads}{'support':>9}{'ours':>7}{'gap':>9}")
    for name, spread in SPREADS.items():
        for T in options.classes:
            X, y, X_test, y_test, gamma = blobs(options.rows, test, T, spread)
            ours, theirs = cs.MaxMarginClassifier(RBF(gamma)), SVC(gamma=gamma)
            times = ([], [])
            for k in range(3):
                times[0].append(timed(lambda model=ours, X=X, y=y: model.fit(X, y))[0])
                if k == 0 or T < 500:
                    times[1].append(timed(lambda model=theirs, X=X, y=y: model.fit(X, y))[0])
            fit, its_fit = (statistics.median(some) for some in times)
            took, predictions = timed(lambda model=ours, X=X_test: model.predict(X))
            its, its_predictions = timed(lambda model=theirs, X=X_test: model.predict(X))
            right, its_right = np.mean(predictions == y_test), np.mean(its_predictions == y_test)
            line = f"{name:13}{T:7}{its_fit:8.2f}s{fit:8.2f}s{its_fit / fit:7.1f}{its:8.2f}s{took:7.2f}s"
            line += f"{its_right:10.4f}{right:7.4f}{len(theirs.support_):9}{len(ours.support_):7}"
            print(f"{line}{relative_gap(ours):9.1e}", flush=True)


# -- linear kernels
def linear(options):
    counts, y, ((train, test),) = load_set("news20")
    tables = {
        "counts, rows of length 1": normalize(counts),
        "tf-idf, rows of length 1": TfidfTransformer(sublinear_tf=True).fit(counts[train]).transform(counts),
    }
    train = np.random.default_rng(0).permutation(train)[: options.news_rows]
    print(
        f"\nLinear kernels: 20 Newsgroups, {len(train)} training rows, {len(test)} test rows, {counts.shape[1]} words"
    )
    print("C of 0.01, 0.1, 1, 10 by three folds; seconds of the choice and of the fit with it")
    print(f"{'':26}{'estimator':26}{'choice':>9}{'fit':>9}{'C':>7}{'folds':>8}{'test':>8}")
    for table, X in tables.items():
        models = {
            "ours, simplex": cs.MaxMarginClassifier("linear"),
            "ours, indicator": cs.MaxMarginClassifier("linear", class_vectors="indicator"),
            "LinearSVC, hinge": LinearSVC(loss="hinge", random_state=0),
            "LinearSVC, squared hinge": LinearSVC(random_state=0),
        }
        for name, model in models.items():
            parts = StratifiedKFold(3, shuffle=True, random_state=0)
            search = GridSearchCV(model, {"C": [0.01, 0.1, 1.0, 10.0]}, cv=parts)
            with warnings.catch_warnings(record=True) as short:
                warnings.simplefilter("always", ConvergenceWarning)
                took, _ = timed(lambda search=search, X=X: search.fit(X[train], y[train]))
            short = sum(issubclass(each.category, ConvergenceWarning) for each in short)
            line = f"{table:26}{name:26}{took:8.1f}s{search.refit_time_:8.2f}s{search.best_params_['C']:7g}"
            line += f"{search.best_score_:8.4f}{search.score(X[test], y[test]):8.4f}"
            print(line + (f"  {short} of 13 fits short of their tolerance" if short else ""), flush=True)


# -- memory
def large(options):
    """Fit twenty overlapping classes in a separate process."""
    with get_context("spawn").Pool(1) as pool:
        found = pool.apply(_large, (options.large_rows,))
    rows, whole = options.large_rows, 4 * options.large_rows**2 / 1e9
    print(
        f"\nLarge: {rows} rows x 50 columns, 20 classes, cache_size=1000; the kernel matrix would take {whole:.1f} GB"
    )
    print(f"fit {found['fit']:.1f} s, prediction of {rows // 10} rows {found['predict']:.1f} s")
    print(f"peak memory {found['peak']:.2f} GB, before the fit {found['before']:.2f} GB")
    line = f"accuracy {found['accuracy']:.4f}, support {found['support']} rows, relative gap {found['gap']:.1e}"
    print(line, flush=True)


def _large(rows):
    warm_up()
    X, y, X_test, y_test, gamma = blobs(rows, rows // 10, 20, 15.0, columns=50)
    before = _peak()
    model = cs.MaxMarginClassifier(RBF(gamma))
    fit, _ = timed(lambda: model.fit(X, y))
    peak = _peak()
    predict, predictions = timed(lambda: model.predict(X_test))
    found = {"fit": fit, "predict": predict, "before": before, "peak": peak}
    return found | {
        "accuracy": np.mean(predictions == y_test), "support": len(model.support_), "gap": relative_gap(model)
    }  # fmt: skip


def _peak():
    """Return the peak memory of this process in GB (Linux; ru_maxrss would include that of the parent)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e9


# -- growth
def growth(options):
    n = options.rows
    print("\nGrowth of one fit, overlapping classes, 20 columns, C = 1, seconds")
    print(f"{'rows':>7}{'classes':>9}{'simplex':>10}{'indicator':>11}{'support':>9}{'indicator':>11}")
    for rows, T in [(k, 50) for k in (n // 4, n // 2, n, 2 * n)] + [(n, T) for T in (2, 10, 50, 200, 1000)]:
        X, y, _, _, gamma = blobs(rows, 0, T, SPREADS["overlapping"])
        models = [cs.MaxMarginClassifier(RBF(gamma), class_vectors=vectors) for vectors in ("simplex", "indicator")]
        took = [seconds(lambda model=model, X=X, y=y: model.fit(X, y)) for model in models]
        sizes = [len(model.support_) for model in models]
        print(f"{rows:7}{T:9}{took[0]:9.2f}s{took[1]:10.2f}s{sizes[0]:9}{sizes[1]:11}", flush=True)


# -- precision
def precision(options):
    n = options.rows
    print(f"\nSeconds to a gap relative to the objective, {n} rows x 20 columns, overlapping classes, C = 1")
    print(
        f"{'classes':>7}  {'vectors':11}{'tol':>7}{'seconds':>10}{'gap':>10}{'passes':>8}{'support':>9}{'accuracy':>10}"
    )
    for T in (10, 50):
        X, y, X_test, y_test, gamma = blobs(n, n // 5, T, SPREADS["overlapping"])
        for vectors in ("simplex", "indicator"):
            for tol in (1e-2, 1e-3, 1e-4, 1e-6):
                model = cs.MaxMarginClassifier(RBF(gamma), class_vectors=vectors, tol=tol)
                took = seconds(lambda model=model, X=X, y=y: model.fit(X, y))
                line = f"{T:7}  {vectors:11}{tol:7.0e}{took:9.2f}s{relative_gap(model):10.1e}{model.solution_.n_iter:8}"
                print(f"{line}{len(model.support_):9}{model.score(X_test, y_test):10.4f}", flush=True)


if __name__ == "__main__":
    parts = {"classes": classes, "linear": linear, "large": large, "growth": growth, "precision": precision}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--rows", type=int, default=10_000, help="training rows of classes, growth and precision")
    parser.add_argument("--classes", nargs="*", type=int, default=[10, 50, 200, 500], help="numbers of classes for SVC")
    parser.add_argument("--large-rows", type=int, default=50_000, help="training rows of large")
    parser.add_argument("--news-rows", type=int, help="training rows of linear; all by default")
    options = parser.parse_args()
    warm_up()
    for name in options.part or parts:
        parts[name](options)
