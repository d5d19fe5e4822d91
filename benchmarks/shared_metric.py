"""One metric for many outputs, and kernels between outputs: time and memory of a fit.

    python benchmarks/shared_metric.py [--samples 400 1000 3000] [--outputs 1000]

Three views of 20 columns from ten hidden variables; Gaussian kernels, default penalties. Each fit runs in a process of
its own. Memory is the peak of the process above what it had with its data.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from many_outputs import memory

import consilience as cs

MODELS = {
    "ViewMetricRidge(shared_metric=True)": lambda: cs.ViewMetricRidge(shared_metric=True),
    "ViewMetricRidge(shared_metric=True, n_components=300)": lambda: cs.ViewMetricRidge(
        shared_metric=True, n_components=300, random_state=0
    ),
    "ViewMetricRidgeCV(shared_metric=True)": lambda: cs.ViewMetricRidgeCV(shared_metric=True),
    "OutputKernelRidge()": lambda: cs.OutputKernelRidge(),
}


def make_data(n, P, seed=0):
    """Return three views, and outputs that are functions of the hidden variables with noise."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 10))
    X = {f"view{v}": hidden @ rng.normal(size=(10, 20)) + rng.normal(size=(n, 20)) for v in range(3)}
    return cs.Views(X), np.tanh(hidden @ rng.normal(size=(10, P))) + 0.5 * rng.normal(size=(n, P))


def child(name, n, P):
    """Run one fit; print what was measured."""
    X, Y = make_data(n, P)
    MODELS[name]().fit(*make_data(400, 5))  # what is imported and compiled at first use
    before = memory("VmRSS")
    start = time.perf_counter()
    model = MODELS[name]().fit(X, Y)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "memory": memory("VmHWM") - before, "steps": model.solution_.n_iter,
                      "gap": model.solution_.gap / model.solution_.objective}))  # fmt: skip


def main():
    """Run every model in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[400, 1000, 3000])
    parser.add_argument("--outputs", type=int, default=1000)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], int(args.child[1]), args.outputs)
        return
    print(f"{'model':54} {'n':>6} {'outputs':>8} {'seconds':>8} {'GB':>5} {'steps':>6} {'gap':>8}")
    for name in args.models:
        for n in args.samples:
            command = [sys.executable, __file__, "--outputs", str(args.outputs), "--child", name, str(n)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{name:54} {n:6} {args.outputs:8} {found['seconds']:8.1f} {found['memory'] / 1e9:5.2f} "
                  f"{found['steps']:6} {found['gap']:8.1e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
