"""Estimators on arrays of PyTorch, CuPy and the array API standard: the fit of NumPy, on every device that is there."""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_classifier

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import consilience as cs
from check import Check, Figure, Found, main
from device_cases import RUNS, draw_samples, outputs, targets

CLOSED, ITERATIVE = 1e-8, 1e-5  # limits of relative differences: of closed forms, and of iterations with a tolerance
SHORT = ("agreement", "learned weights", "metric", "kernel weights", "consensus of classes")


def libraries():
    """Yield a name, and a function that moves an array, for each library and device that is there."""
    for name, module in (("array-api-strict", "array_api_strict"), ("PyTorch, CPU", "torch"), ("CuPy", "cupy")):
        try:
            library = import_module(module)
        except ImportError:
            continue
        if module != "cupy" or library.cuda.runtime.getDeviceCount():
            yield name, library.asarray
        if module == "torch" and library.cuda.is_available():
            yield f"PyTorch, {library.cuda.get_device_name()}", lambda x, to=library: to.asarray(x, device="cuda")


def difference(name, samples, missing, move):
    """Return the largest relative difference to the fit of NumPy, of scores, weights and objective, and its limit."""
    views, _, _, weights, mask, _ = samples
    mask, y = mask if missing else None, targets(name, samples)
    X, Z = cs.Views(views, mask=mask), cs.Views({view: move(block) for view, block in views.items()}, mask=mask)
    one, other = (clone(RUNS[name]).fit(V, y, weights) for V in (X, Z))
    expected, found = outputs(one, X), cs.to_numpy(outputs(other, Z))
    differences = [np.abs(found - expected).max() / max(np.abs(expected).max(), 1)]
    differences.append(np.abs(np.asarray(other.view_weights_) - one.view_weights_).max())
    if one.solution_.objective is not None:
        ours, theirs = one.certificate().objective, other.certificate().objective
        differences.append(abs(ours - theirs) / max(abs(ours), 1e-300))
    if is_classifier(one):
        differences.append(float((other.predict(Z) != one.predict(X)).any()))
    # a consensus has the weights of its base models by an iteration
    closed = one.solution_.status == "exact" and not type(one).__name__.startswith("Consensus")
    return float(np.max(differences)), CLOSED if closed else ITERATIVE


def run(long: bool) -> Found:
    """Fit every estimator on every library, for complete and missing views, on drawn samples."""
    figures = []
    names, seeds = (RUNS, range(6)) if long else (SHORT, range(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library, move in libraries():
            found = {
                (name, seed, missing): difference(name, draw_samples(seed), missing, move)
                for name in names
                for seed in seeds
                for missing in (False, True)
            }
            for limit, how in ((CLOSED, "closed form"), (ITERATIVE, "iterative")):
                own = {case: value for case, (value, its_limit) in found.items() if its_limit == limit}
                wrong = {case: value for case, value in own.items() if not value <= limit}
                for case, value in wrong.items():
                    print(f"{library}: {case} differs by {value:.2g}")
                note = f"largest relative difference {max(own.values()):.1e}"
                figures.append(Figure(f"fits with arrays of {library}, {how}", len(own), len(wrong), note))
    return Found(figures)


CHECK = Check(
    name="devices",
    title="Devices",
    property=(
        "Every estimator that works on arrays of other libraries has the fit of NumPy: scores, weights of the views, "
        f"objective and predicted classes agree to {CLOSED:g} where the fit is a closed form, and to {ITERATIVE:g} "
        "where it is an iteration that ends at a tolerance. Some labels are missing, samples have weights, and every "
        "second fit has missing views."
    ),
    run=run,
    limits=("Double precision alone; single precision has tests of its own, with other limits.",),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
