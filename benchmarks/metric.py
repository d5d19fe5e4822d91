"""Learned metrics and kernels compared with other programs: python benchmarks/metric.py [part ...]

Parts: mvml, mkl, growth, alternating; all by default.

mvml: MVML of scikit-multimodallearn 0.1.0 at its defaults (λ = 0.1, η = 1), on the same kernels and, with Nyström
features, the same landmarks. --sizes are its training rows; 600 rows take it minutes.

mkl: multiple kernels by himalaya 0.4.11 and by EasyMKL of MKLpy 0.6, at their defaults otherwise. himalaya runs on
NumPy with five folds, --n-iter draws of weights or hyper-gradients, and its own weights and penalty for every target.
Its hyper-gradients of 2,000 targets take over seven minutes and are left out. Ours has the same weights for all
targets, and its time includes the choice of the penalty. The peers run in environments of their own, which are created
in the user's cache folder when they are first needed.

growth: one fit by the number of samples, views and outputs. alternating: the exact solution compared with the published
scheme, with backtracking, with fixed steps and with free weights of the views, and with MVML of scikit-multimodallearn,
whose six rounds iterate the metric with steps from 0.45 down. Times of ours are medians where a fit takes less than
5 s. Memory is the peak of a process of its own above what it had with its data.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, ShuffleSplit, train_test_split
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience.datasets import fetch_mfeat, make_regression_views, make_views
from consilience.kernels import RBF, resolve_kernels, view_grams
from consilience.solvers.metric import kappa_of

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "consilience-benchmarks"
PEERS = {
    "mvml": ("scikit-multimodallearn==0.1.0", "scikit-learn==1.9.1", "numpy==2.4.6", "scipy==1.17.1"),
    "mkl": ("himalaya==0.4.11", "MKLpy==0.6", "torch==2.13.0", "packaging", "scikit-learn==1.9.1", "numpy==2.4.6"),
}
METRICS = {
    "learned": {"metric": "learned"},
    "shared": {"metric": "learned", "shared_metric": True},
    "block_sparse": {"metric": "block_sparse"},
}


def seconds(call, repeats=5):
    """Return the median time, or the first one if it is over 5 s."""
    times = []
    while len(times) < repeats and max(times, default=0) < 5:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# -- peers
def environment(name):
    """Return the interpreter of a peer's environment, which is created if there is none; exit if that fails."""
    folder = CACHE / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "complete"
    if not done.exists():
        print(f"Making an environment with {', '.join(PEERS[name])} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        made = subprocess.run([python, "-m", "pip", "install", "-qq", *PEERS[name]], capture_output=True, text=True)
        if made.returncode:
            sys.exit(f"{name}: {', '.join(PEERS[name])} could not be installed:\n{made.stderr}")
        done.touch()
    return python


def peer(name, **arrays):
    """Return the results of a peer for these arrays."""
    script = Path(__file__).parent / "peers" / "metric.py"
    with tempfile.TemporaryDirectory() as folder:
        given, results = Path(folder) / "data.npz", Path(folder) / "results.npz"
        np.savez(given, **arrays)
        quiet = {"capture_output": True, "text": True}
        run = subprocess.run([environment(name), script, name, given, results], **quiet)
        if run.returncode:
            sys.exit(f"{name}: the peer failed with\n{run.stderr}")
        with np.load(results) as found:
            return dict(found)


# -- MVML
def two_classes(n, n_test=2000):
    """Return two views with a part of the signal each and one with none; the best possible accuracy is 0.875."""
    X, y = make_views(n + n_test, informative=2, noise=1, class_sep=0.85, random_state=0)
    gamma = 1 / np.mean([X[name].shape[1] * X[name][:n].var() for name in X.names])
    return X[:n], y[:n], X[n:], y[n:], gamma


def wide(X):
    return np.hstack([X[name] for name in X.names])


def its_objective(found, y, alpha, eta):
    """Return ‖y - Mg‖² + λg'A†g + η‖A‖², the same with the best metric for its g, and a description of its metric."""
    A, g, w = found["A"], found["g"].ravel(), found["w"].ravel()
    loss = np.sum((y - found["features"] * np.repeat(w, len(g) // len(w)) @ g) ** 2)
    size, least = float(np.linalg.norm(A)), float(np.linalg.eigvalsh((A + A.T) / 2)[0])
    skew = float(np.linalg.norm(A - A.T)) / size
    value = loss + alpha * g @ np.linalg.lstsq(A, g, rcond=1e-12)[0] + eta * size**2
    best = loss + kappa_of(alpha, eta) * np.linalg.norm(g) ** (4 / 3)
    sound = skew < 1e-8 and least > -1e-8 * size
    what = "positive semi-definite" if sound else "not positive semi-definite"
    return value, best, f"‖A‖ {size:.2g}, {what}: smallest eigenvalue {least:.2g}, ‖A - A'‖/‖A‖ {skew:.1g}"


def mvml(options):
    environment("mvml")
    print("\nMVML compared with scikit-multimodallearn 0.1.0: 3 views, 2 classes, 2,000 test rows, λ = 0.1, η = 1")
    print(f"{'rows':>6}{'Nyström':>9}{'its fit':>10}{'ours':>9}{'ratio':>8}{'its accuracy':>14}{'ours':>8}")
    for n, share in [*((n, None) for n in options.sizes), (1200, 0.2)]:
        X, y, X_test, y_test, gamma = two_classes(n)
        model = cs.ViewMetricRidgeClassifier(RBF(gamma), n_components=share, random_state=0).fit(X, y)
        ours = seconds(lambda model=model, X=X, y=y: model.fit(X, y))
        order = np.arange(n)
        if share is not None:  # its landmarks are the first rows: put those that were drawn here first
            drawn = model._features.landmark_indices_[X.names[0]]
            order = np.concatenate([drawn, np.setdiff1d(order, drawn)])
        limits = np.cumsum([0, *(X[name].shape[1] for name in X.names)])
        found = peer(
            "mvml", X=wide(X[order]), y=y[order], X_test=wide(X_test), limits=limits, gamma=gamma, share=share or 1.0
        )
        theirs, right = float(found["seconds"]), np.mean(found["predictions"] == y_test)
        level = "none" if share is None else f"{share:.0%}"
        score = model.score(X_test, y_test)
        print(f"{n:6}{level:>9}{theirs:9.1f}s{ours:8.3f}s{theirs / ours:8.0f}{right:14.3f}{score:8.3f}")
        value, best, what = its_objective(found, np.where(y[order] == 1, 1, -1), 0.1, 1.0)
        proof = model.certificate()
        print(f"       its objective {value:.6g}, with the best metric for its coefficients {best:.6g}; {what}")
        print(f"       ours {proof.objective:.6g}, at most {proof.gap:.1g} above the optimum")
        chosen = cs.ViewMetricRidgeClassifierCV(
            RBF(gamma), alphas=10.0 ** np.arange(-4, 4), n_components=share, random_state=0
        )
        took = seconds(lambda model=chosen, X=X, y=y: model.fit(X, y))
        score = chosen.score(X_test, y_test)
        print(f"       with λ = {chosen.alpha_:g} by leave-one-out {took:.3f} s, accuracy {score:.3f}", flush=True)


# -- multiple kernels
def digits():
    """Return six descriptors of handwritten digits, a thousand training rows, and targets of ±1."""
    X, y = fetch_mfeat(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), train_size=1000, stratify=y, random_state=0)
    X = cs.PerView(StandardScaler()).fit(X[train]).transform(X)
    y = np.unique(y, return_inverse=True)[1]
    return X, np.where(y[:, None] == np.arange(10), 1.0, -1.0), train, test, y


def many_targets():
    """Return targets that depend on three of five views."""
    X, Y = make_regression_views(
        2000, informative=3, noise=2, n_features=20, n_outputs=2000, target_noise=0.5, random_state=0
    )
    return X, Y, np.arange(1000), np.arange(1000, 2000), None


def mkl(options):
    environment("mkl")
    for title, data, alphas in (
        ("mfeat digits, 6 views, 10 classes, 1,000 rows; accuracy on 1,000", digits(), 10.0 ** np.arange(-5, 2)),
        ("5 views, 2,000 targets, 1,000 rows; mean R² on 1,000", many_targets(), 10.0 ** np.arange(-2, 3)),
    ):
        X, Y, train, test, y = data
        kernels = resolve_kernels(dict.fromkeys(X.names, RBF("scale")), X[train])
        grams = [np.asarray(K, dtype=np.float64) for K in view_grams(kernels, X)]
        K = cs.Views(dict(zip(X.names, grams, strict=True)), precomputed=True)

        def score(predictions, Y=Y, y=y, test=test):
            if y is None:
                return r2_score(Y[test], predictions)
            return np.mean((predictions.argmax(axis=1) if predictions.ndim == 2 else predictions) == y[test])

        print(f"\nMultiple kernels: {title}. Penalties {alphas[0]:g} .. {alphas[-1]:g}, {len(alphas)} of them")
        print(f"{'':44}{'seconds':>9}{'score':>8}   weights of the views, their sum 1")
        for p in (1, 2):
            if y is None:
                estimator, goal = cs.MultipleKernelRidge("precomputed", p=p), Y
            else:
                estimator, goal = cs.MultipleKernelRidgeClassifier("precomputed", p=p), y
            search = GridSearchCV(estimator, {"alpha": alphas}, cv=ShuffleSplit(1, test_size=0.2, random_state=0))
            took = seconds(lambda search=search, K=K, goal=goal, train=train: search.fit(K[train], goal[train]))
            weights = search.best_estimator_.kernel_weights_
            label = f"ours, p = {p}, penalty on a fifth left out"
            show(label, took, score(search.predict(K[test])), weights / weights.sum())
        more = {} if y is None else {"y": y[train]}
        found = peer(
            "mkl",
            K=np.stack([own[np.ix_(train, train)] for own in grams]),
            K_test=np.stack([own[np.ix_(test, train)] for own in grams]),
            Y=Y[train],
            alphas=alphas,
            n_iter=options.n_iter,
            **more,
        )
        names = {f"random_search {n}": f"himalaya, random search, n_iter={n}" for n in options.n_iter}
        names |= {"hyper_gradient": "himalaya, hyper-gradient", "EasyMKL": "MKLpy EasyMKL"}
        for key, label in names.items():
            if f"{key} seconds" in found:
                predictions, weights = found[f"{key} predictions"], found.get(f"{key} weights", ())
                show(label, float(found[f"{key} seconds"]), score(predictions), weights)


def show(label, took, score, weights):
    print(f"{label:44}{took:8.2f}s{score:8.4f}   {' '.join(f'{weight:.2f}' for weight in weights)}", flush=True)


# -- growth
def regression(n, m, P, seed=0):
    """Return Gram matrices of m views, and P outputs that are functions of hidden variables."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 5))
    blocks = [hidden @ rng.normal(size=(5, 20)) / 2 + rng.normal(size=(n, 20)) for _ in range(m)]
    grams = {f"v{v}": RBF("scale").resolved(block)(block) for v, block in enumerate(blocks)}
    Y = np.sin(hidden @ rng.normal(size=(5, P))) + 0.3 * rng.normal(size=(n, P))
    return cs.Views(grams, precomputed=True), Y


def peak(name, n, m, P):
    """Return the megabytes that a fit takes beyond its data, in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (name, n, m, P))


def _peak(name, n, m, P):
    X, Y = regression(n, m, P)
    model = cs.ViewMetricRidge("precomputed", **METRICS[name])
    model.fit(X[:20], Y[:20])  # loads what is loaded on first use
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak is counted from here
    before = _status("VmRSS")
    model.fit(X, Y)
    return _status("VmHWM") - before


def _status(field):
    """Return a size of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def growth(options):
    print("\nGrowth of one fit on precomputed kernels, seconds")
    print(f"{'rows':>6}{'views':>7}{'outputs':>9}" + "".join(f"{name:>14}" for name in METRICS))
    cases = [(n, 4, 10) for n in (250, 500, 1000, 2000)]
    cases += [(1000, m, 10) for m in (2, 4, 8)] + [(1000, 4, P) for P in (1, 10, 100, 1000)]
    for n, m, P in cases:
        X, Y = regression(n, m, P)
        line = f"{n:6}{m:7}{P:9}"
        for name, settings in METRICS.items():
            if name == "block_sparse" and P > 100:  # each output is solved on its own: minutes
                line += f"{'-':>14}"
                continue
            model = cs.ViewMetricRidge("precomputed", **settings)
            line += f"{seconds(lambda model=model, X=X, Y=Y: model.fit(X, Y), 3):13.3f}s"
        print(line, flush=True)
    print("\nPeak memory of one fit beyond the kernels, MB (one n x n matrix of doubles in parentheses)")
    print(f"{'rows':>6}{'views':>7}{'outputs':>9}" + "".join(f"{name:>14}" for name in METRICS))
    for n, m, P in ((1000, 4, 10), (2000, 4, 10), (2000, 8, 10), (1000, 4, 100)):
        line = "".join(f"{peak(name, n, m, P):14.0f}" for name in METRICS)
        print(f"{n:6}{m:7}{P:9}{line}   ({8 * n**2 / 2**20:.0f})", flush=True)


# -- the published scheme
def alternating(options):
    print(
        "\nThe exact solution compared with the published alternation: 3 views, 2 classes, λ = 0.1, η = 1. The gap "
        "bounds the distance from the optimum"
    )
    environment("mvml")
    print(f"{'rows':>6}  {'solver':34}{'seconds':>9}{'objective':>12}{'gap':>10}{'rises':>7}{'accuracy':>10}")
    for n in (100, 200, 300):
        X, y, X_test, y_test, gamma = two_classes(n)
        cases = [("exact", {}), *((f"backtracking, {k} rounds", {"max_iter": k}) for k in (6, 30, 150))]
        cases += as_printed() if n == 100 else []
        for label, settings in cases:
            solver = "alternating" if "max_iter" in settings else "exact"
            model = cs.ViewMetricRidgeClassifier(RBF(gamma), tol=1e-8, solver=solver, **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # some rounds are meant to run out
                took = seconds(lambda model=model, X=X, y=y: model.fit(X, y))
            proof, right = model.certificate(), model.score(X_test, y_test)
            gap = "-" if proof.gap is None else f"{proof.gap:.1e}"
            rises = re.search(r"in (\d+) of", proof.note)
            line = f"{n:6}  {label:34}{took:8.3f}s{proof.objective:12.5g}{gap:>10}{rises[1] if rises else '-':>7}"
            what = re.findall(r"smallest eigenvalue of the metric is \S+|went from \S+ to \S+", proof.note)
            print(f"{line}{right:10.3f}   {' '.join(what).rstrip('.')}", flush=True)
        if n == 100:
            limits = np.cumsum([0, *(X[name].shape[1] for name in X.names)])
            found = peer("mvml", X=wide(X), y=y, X_test=wide(X_test), limits=limits, gamma=gamma, share=1.0)
            value, _, what = its_objective(found, np.where(y == 1, 1, -1), 0.1, 1.0)
            right, took = np.mean(found["predictions"] == y_test), float(found["seconds"])
            line = f"{n:6}  {'MVML of scikit-multimodallearn':34}{took:8.3f}s{value:12.5g}{'-':>10}{'-':>7}"
            print(f"{line}{right:10.3f}   {what}", flush=True)


def as_printed():
    """Return cases with fixed steps, free weights and a block-sparse metric that may be indefinite."""
    cases = []
    for step in (0.05, 0.45):
        cases += [(f"steps of {step}, {k} rounds", {"step_size": step, "max_iter": k}) for k in (6, 30, 150)]
    free = {"step_size": 0.05, "view_weights": "least_squares", "max_iter": 150}
    cases += [("free weights, steps of 0.05, 150", free), ("block-sparse, exact", {"metric": "block_sparse"})]
    sparse = {"metric": "block_sparse", "max_iter": 150}
    return cases + [(f"block-sparse, steps of {step}, 150", {"step_size": step, **sparse}) for step in (0.05, 0.45)]


if __name__ == "__main__":
    parts = {"mvml": mvml, "mkl": mkl, "growth": growth, "alternating": alternating}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--sizes", nargs="*", type=int, default=[300, 600], help="training rows of mvml")
    parser.add_argument("--n-iter", nargs="*", type=int, default=[20, 100], help="draws of weights by himalaya")
    options = parser.parse_args()
    for name in options.part or parts:
        parts[name](options)
