"""Co-regularized learning beside the published programs: python benchmarks/coregularized.py [part ...]

Parts: solver, memory, weights, cv, svm, growth; all by default. "literal" is the system of Minh, Bazzani and Murino
(2016, Theorem 10) built and solved as written, "SMO" their Algorithm 3; both are the twins in tests/reference.py. Times
are medians, run in turn in one process; memory is the peak of a process of its own above what it had with its data.
"""

import argparse
import statistics
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC

import consilience as cs
from consilience.kernels import RBF
from consilience.kernels.graphs import laplacian
from consilience.solvers.box_qp import class_qp

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import reference

VARIANTS = {"all three": (1e-5, 1e-6, 1e-6), "within=0": (1e-5, 1e-6, 0.0), "both 0": (1e-5, 0.0, 0.0)}


def data(N, m, P, labeled, seed=0):
    """Gram matrices of m views of N samples of P classes, their Laplacians, the classes (NaN where unlabeled)."""
    rng = np.random.default_rng(seed)
    of = rng.integers(P, size=N)
    centers = rng.normal(size=(P, 10))
    blocks = [centers[of] @ rng.normal(size=(10, 20)) / 3 + rng.normal(size=(N, 20)) for _ in range(m)]
    grams = [RBF("scale").resolved(block)(block) for block in blocks]
    return grams, [laplacian(K) for K in grams], np.where(np.arange(N) < labeled, of, np.nan)


def views(grams):
    return cs.Views({f"v{v}": K for v, K in enumerate(grams)}, precomputed=True)


def ridge(penalties, **more):
    alpha, between, within = penalties
    return cs.CoRegularizedRidgeClassifier(
        "precomputed", alpha=alpha, agreement_penalty=between, graph_penalty=within, **more
    )


def literal(grams, graphs, of, penalties):
    known = ~np.isnan(of)
    Y = np.where(of[known, None] == np.unique(of[known]), 1.0, -1.0)
    c = np.full(len(grams), 1 / len(grams))
    return reference.coregularized_ridge(grams, graphs, Y, *penalties, c)


def seconds(call, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_turn(*calls, repeats=5):
    """Median seconds of each call, one after the other in every round; the first round is not counted."""
    rounds = [[seconds(call, 1) for call in calls] for _ in range(repeats + 1)][1:]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def peak(which, N, m, P, labeled, penalties):
    """Megabytes that a fit takes beyond its data, in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (which, N, m, P, labeled, penalties))


def _peak(which, N, m, P, labeled, penalties):
    grams, graphs, of = data(N, m, P, labeled)
    X, model = views(grams), ridge(penalties)
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak is counted from here
    before = _status("VmRSS")
    if which == "ours":
        model.fit(X, of)
    else:
        literal(grams, graphs, of, penalties)
    return _status("VmHWM") - before


def _status(field):
    """A size of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def solver():
    size = {"N": 765, "m": 7, "P": 17, "labeled": 680}
    grams, graphs, of = data(**size)
    X = views(grams)
    print(f"\nLeast squares, {size}")
    print(f"{'penalties':12}{'literal':>10}{'ours':>10}{'ratio':>8}{'literal MB':>12}{'ours MB':>10}{'ratio':>8}")
    for name, penalties in VARIANTS.items():
        model = ridge(penalties)
        model.fit(X, of)
        ours = seconds(lambda model=model: model.fit(X, of))
        theirs = seconds(lambda penalties=penalties: literal(grams, graphs, of, penalties), 1)
        big, small = (peak(which, *size.values(), penalties) for which in ("literal", "ours"))
        print(f"{name:12}{theirs:9.2f}s{ours:9.3f}s{theirs / ours:8.0f}{big:12.0f}{small:10.0f}{big / small:8.1f}")


def memory():
    size = {"N": 2000, "m": 10, "P": 17, "labeled": 1000}
    print(f"\nMemory, {size}: two matrices of the literal system alone take {2 * 8 * (2000 * 10) ** 2 / 1e9:.1f} GB")
    for name, penalties in VARIANTS.items():
        used = peak("ours", *size.values(), penalties) / 1024
        print(f"{name:12}{used:8.2f} GB beyond the kernels")


def weights():
    size = {"N": 765, "m": 7, "P": 17, "labeled": 680}
    grams, _, of = data(**size)
    X = views(grams)
    print(f"\nLearned weights, {size}, all three penalties")
    once = seconds(lambda: ridge(VARIANTS["all three"]).fit(X, of))
    print(f"{'one fit, uniform weights':52}{once:8.2f} s")
    for solver, starts, most in (("exact", 20, 100), ("alternating", 20, 25)):
        model = ridge(
            VARIANTS["all three"], view_weights="learned", weights_order=2, weights_solver=solver,
            n_restarts=starts, max_iter=most, random_state=0,
        )  # fmt: skip
        took = seconds(lambda model=model: model.fit(X, of), 1)
        label = f"{solver}, up to {starts} starts x {most} iterations"
        print(f"{label:52}{took:8.2f} s {took / once:6.1f} fits   {model.certificate()}")


def cv():
    grams, _, of = data(765, 7, 17, 680)
    X = views(grams)
    print("\nPenalties by leave-one-out, 680 labeled and 85 unlabeled samples, 7 views, 17 classes")
    once = seconds(lambda: ridge(VARIANTS["within=0"]).fit(X, of))
    grid = 10.0 ** np.arange(-7, 0)
    for agreement_penalties in ((0.0,), grid):
        model = cs.CoRegularizedRidgeClassifierCV("precomputed", alphas=grid, agreement_penalties=agreement_penalties)
        took = seconds(lambda model=model: model.fit(X, of), 1)
        points = len(grid) * len(agreement_penalties)
        print(f"{points:4} pairs of penalties{took:8.2f} s = {took / once:5.1f} fits, instead of {points * 680} fits")


def svm():
    grams, _, of = data(2000, 7, 17, 2000)
    of = of.astype(int)
    K = sum(grams) / 49
    X = views([K * 49])
    inner = cs.simplex_vectors(17) @ cs.simplex_vectors(17).T
    arrays = (inner, -inner[of], np.where(of[:, None] == np.arange(17), 0, 1 / 2000), -np.ones((2000, 17)))
    print("\nSupport vector machines, 2,000 samples, 17 classes, relative gap 1e-4, summed kernel of 7 views")
    header = f"{'alpha':>8}{'SVC (one vs one)':>18}{'ours, ovr':>12}{'ratio':>7}{'ours, simplex':>15}{'ratio':>7}"
    print(header + f"{'its solver':>12}{'ratio':>7}{'SMO, simplex':>30}")
    for alpha in (1e-2, 1e-3, 1e-4, 1e-5):
        Q, rest = K / alpha, cs.CoRegularizedSVC("precomputed", alpha=alpha, view_weights=[1 / 7])
        simplex = clone(rest).set_params(class_vectors="simplex")
        peer, ovr, ours, solver = in_turn(
            lambda alpha=alpha: SVC(kernel="precomputed", C=1 / (2 * 2000 * alpha)).fit(K, of),
            lambda rest=rest: rest.fit(X, of),
            lambda simplex=simplex: simplex.fit(X, of),
            lambda Q=Q: class_qp(Q, *arrays, tol=1e-4, max_iter=100),
        )
        proof = simplex.certificate()
        start, steps, alpha_ki, gap = time.perf_counter(), 0, None, np.inf
        while time.perf_counter() - start < 25 * ours and gap > 1e-4 * proof.objective:
            alpha_ki, taken = reference.simplex_smo(Q, of, 17, 1e-6, np.random.default_rng(steps), 200, alpha_ki)
            steps += taken
            gap = proof.objective - _dual(alpha_ki, Q)
        took = time.perf_counter() - start
        short = ">" if gap > 1e-4 * proof.objective else ""  # out of patience
        smo = f"{took:.0f} s, gap {gap / proof.objective:.0%}, {short}{took / ours:.0f}x"
        print(
            f"{alpha:8.0e}{peer:17.3f}s{ovr:11.3f}s{ovr / peer:7.1f}{ours:14.3f}s{ours / peer:7.1f}"
            f"{solver:11.3f}s{solver / peer:7.1f}{smo:>30}"
        )


def _dual(alpha, Q):
    P = len(alpha)
    pushed = alpha @ Q
    quadratic = P / (P - 1) * np.sum(alpha * pushed) - np.sum(alpha.sum(axis=0) * pushed.sum(axis=0)) / (P - 1)
    return alpha.sum() / (P - 1) - 0.25 * quadratic


def growth():
    print("\nGrowth of one fit, all three penalties, 17 classes, 90 % labeled")
    for m, sizes in ((5, (250, 500, 1000, 2000)), (2, (1000,)), (10, (1000,))):
        for N in sizes:
            grams, _, of = data(N, m, 17, int(0.9 * N))
            X, model = views(grams), ridge(VARIANTS["all three"])
            print(f"m = {m:2}, N = {N:5}{seconds(lambda model=model, X=X, of=of: model.fit(X, of)):9.3f} s")


if __name__ == "__main__":
    parts = {"solver": solver, "memory": memory, "weights": weights, "cv": cv, "svm": svm, "growth": growth}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    for name in parser.parse_args().part or parts:
        parts[name]()
