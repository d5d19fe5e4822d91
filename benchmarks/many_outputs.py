"""Many outputs compared with himalaya: python benchmarks/many_outputs.py [--samples 3000] [--outputs 20000]

BandedRidgeCV and the random search of himalaya 0.4.11 choose a penalty and weights of three views for every output,
from the same draws of weights and the same penalties, 41 between 1e-10 and 1e10 as in himalaya's examples. Kernels are
linear, centered, of one scale and in single precision. The views have more columns than there are samples. himalaya has
five folds, ours five folds or leave-one-out. himalaya gets the sizes of batches of its examples (200 outputs, 5
penalties).

Each program runs in a process of its own. Times are those of fit, by the clock and of the processor; for
himalaya without the kernel matrices. Memory is the
peak of the process above what it had with its data. R² is that of new samples, the mean over the outputs. himalaya must
be importable: install it, or put its folder on PYTHONPATH. --backend torch_cuda runs both on a GPU, torch both with
PyTorch.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ALPHAS = np.logspace(-10, 10, 41)
PROGRAMS = ("himalaya, 5 folds", "consilience, 5 folds", "consilience, leave-one-out")


def make_data(n, P, widths, seed=0):
    """Return views and outputs: each output has a share of signal from each view, and noise."""
    rng = np.random.default_rng(seed)
    views, Y = [], np.zeros((n, P), dtype=np.float32)
    shares = rng.dirichlet(np.full(len(widths), 0.3), size=P).astype(np.float32)
    for v, width in enumerate(widths):
        decay = (1 + np.arange(width)) ** -0.5  # as embeddings have it, the variances of directions fall
        X = (rng.normal(size=(n, width)) * decay).astype(np.float32)
        X /= np.sqrt(np.mean(np.sum(X**2, axis=1)))
        views.append(X)
        Y += np.sqrt(shares[:, v]) * (X @ rng.normal(size=(width, P)).astype(np.float32))
    Y += 1.5 * rng.normal(size=(n, P)).astype(np.float32)
    return views, Y


def memory(key):
    """Return a size of this process in bytes, on Linux; 0 elsewhere."""
    status = Path("/proc/self/status")
    match = re.search(key + r":\s+(\d+)", status.read_text()) if status.exists() else None
    return int(match.group(1)) * 1024 if match else 0


def clocks():
    """Return the time of the clock and that of the processor, of all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def r2(Y, predicted):
    """Return the mean R² over the outputs."""
    return float(np.mean(1 - np.sum((Y - predicted) ** 2, axis=0) / np.sum((Y - Y.mean(axis=0)) ** 2, axis=0)))


def run_ours(program, train, Y, test, draws, device):
    """Fit BandedRidgeCV; return the seconds and the predictions at new samples."""
    import consilience as cs

    if device is not None:
        import torch

        train = [torch.asarray(X, device=device) for X in train]
        test = [torch.asarray(X, device=device) for X in test]
    cv = 5 if "folds" in program else None
    model = cs.BandedRidgeCV(alphas=ALPHAS, n_iter=len(draws), cv=cv, random_state=0)
    small = cs.Views({f"v{v}": X[:50] for v, X in enumerate(train)})
    model.fit(small, Y[:50, :70])  # what is imported and compiled at first use
    X, X_test = (cs.Views({f"v{v}": own for v, own in enumerate(views)}) for views in (train, test))
    start = clocks()
    model.fit(X, Y)
    return clocks() - start, lambda: np.asarray(model.predict(X_test))


def run_himalaya(train, Y, test, draws, backend):
    """Fit himalaya's random search; return the seconds and the predictions at new samples."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    library = set_backend(backend)
    means = [X.mean(axis=0) for X in train]
    train, test = ([X - mean for X, mean in zip(views, means, strict=True)] for views in (train, test))
    grams = [X @ X.T for X in train]
    scales = [np.trace(K) / len(K) for K in grams]
    params = {"n_iter": draws.astype(np.float32), "alphas": ALPHAS.astype(np.float32), "progress_bar": False,
              "n_targets_batch": 200, "n_alphas_batch": 5, "n_targets_batch_refit": 200}  # fmt: skip
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver="random_search", solver_params=params, cv=5, fit_intercept=True
    )
    start = clocks()
    stacked = library.asarray(np.stack([K / scale for K, scale in zip(grams, scales, strict=True)]))
    model.fit(stacked, library.asarray(Y))
    seconds = clocks() - start
    new = np.stack([X @ Z.T / scale for X, Z, scale in zip(test, train, scales, strict=True)])
    return seconds, lambda: library.to_numpy(model.predict(library.asarray(new)))


def child(args):
    """Run one program; print what was measured."""
    views, Y = make_data(args.samples + args.test, args.outputs, args.columns)
    train, test = [X[: args.samples] for X in views], [X[args.samples :] for X in views]
    known, new = np.ascontiguousarray(Y[: args.samples]), Y[args.samples :].copy()
    del views, Y
    from consilience.solvers.banded_ridge import simplex_draws

    draws = simplex_draws(len(args.columns), args.draws, np.random.RandomState(0))
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    device = {"numpy": None, "torch": "cpu", "torch_cuda": "cuda"}[args.backend]
    if args.child.startswith("himalaya"):
        seconds, predict = run_himalaya(train, known, test, draws, args.backend)
    else:
        seconds, predict = run_ours(args.child, train, known, test, draws, device)
    peak = memory("VmHWM") - before
    print(json.dumps({"seconds": seconds.tolist(), "memory": peak, "r2": r2(new, predict())}))


def main():
    """Run every program in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--outputs", type=int, default=20000)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--columns", type=int, nargs="+", default=[500, 1500, 4000])
    parser.add_argument("--backend", choices=["numpy", "torch", "torch_cuda"], default="numpy")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    print(f"{args.samples:,} samples, {args.outputs:,} outputs, views of {args.columns} columns, {args.draws} draws")
    print(f"{'program':28} {'seconds':>8} {'CPU s':>8} {'ratio':>6} {'CPU':>6} {'GB':>6} {'R²':>6}")
    first = None
    for program in args.programs:
        done = subprocess.run([sys.executable, *sys.argv, "--child", program], stdout=subprocess.PIPE, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        first = first or found["seconds"]
        ratios = [a / b for a, b in zip(first, found["seconds"], strict=True)]
        numbers = *found["seconds"], *ratios, found["memory"] / 1e9, found["r2"]
        print("{:28} {:8.1f} {:8.1f} {:6.1f} {:6.1f} {:6.2f} {:6.3f}".format(program, *numbers), flush=True)


if __name__ == "__main__":
    main()
