"""Peak memory of exact fits, in matrices of n x n double-precision values: python benchmarks/memory.py [estimator ...]

Each fit runs in a process of its own, at two numbers of samples; the growth of the peak of resident memory between them
is divided by that of n². Next to it stands the estimate by which fits are refused before they start. Linux only.
"""

import argparse
import json
import subprocess
import sys

CASES = {
    "CoRegularizedRidge": [
        {}, {"agreement_penalty": 1e-3}, {"graph_penalty": 1e-6}, {"agreement_penalty": 1e-3, "graph_penalty": 1e-6},
        {"view_weights": "learned", "max_iter": 3},
        {"view_weights": "learned", "agreement_penalty": 1e-3, "max_iter": 3},
    ],
    "CoRegularizedRidgeCV": [{}, {"agreement_penalties": [0.0, 1e-3, 1e-2]}],
    "CoRegularizedSVC": [{}, {"agreement_penalty": 1e-3}],
    "ViewMetricRidge": [{"metric": kind} for kind in ("learned", "block_sparse", "covariance", "diagonal")],
    "ViewMetricRidgeCV": [{}, {"metric": "diagonal"}],
    "MultipleKernelRidge": [{}],
    "OutputKernelRidge": [{}],
    "BandedRidgeCV": [{}],
    "VectorValuedRegressor": [{}, {"view_kernel": "covariance"}],
}  # fmt: skip

CHILD = """
import json, re, sys, warnings
import numpy as np
import consilience as cs
from consilience.batch import _memory
warnings.simplefilter("ignore")
name, params, n, m, outputs = json.loads(sys.argv[1])

def fit(n):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 3))
    X = cs.Views({f"v{k}": hidden @ rng.normal(size=(3, 8)) + rng.normal(size=(n, 8)) for k in range(m)})
    y = hidden @ rng.normal(size=(3, outputs))
    model = getattr(cs, name)(**params)
    y = (y[:, 0] > 0) if name.endswith("SVC") else y
    return lambda: model.fit(X, y)

def status(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))

fit(200)()  # imports and compiled loops
run = fit(n)
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
before = status("VmRSS")
model = run()
estimate = _memory.exact_bytes(model, _memory.FitSize(n, m, outputs))
print(json.dumps([status("VmHWM") - before, estimate]))
"""


def peak(name, params, n, m, outputs):
    """Return the bytes of one fit at its peak, and the estimate."""
    command = [sys.executable, "-c", CHILD, json.dumps([name, params, n, m, outputs])]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(names, few, many, views):
    for name in names:
        for params in CASES[name]:
            for m in views:
                outputs = 4 if name == "OutputKernelRidge" else 1
                (a, low), (b, high) = (peak(name, params, n, m, outputs) for n in (few, many))
                growth = 8 * (many**2 - few**2)
                row = f"{name:22s} {json.dumps(params):64s} {m} views"
                print(f"{row}: {(b - a) / growth:5.2f}, estimate {(high - low) / growth:5.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(CASES), metavar="estimator")
    parser.add_argument("--samples", type=int, nargs=2, default=(600, 1200))
    parser.add_argument("--views", type=int, nargs="+", default=(1, 2, 4))
    given = parser.parse_args()
    main(given.names, *given.samples, given.views)
