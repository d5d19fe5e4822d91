"""The same kernels on NumPy, PyTorch and CuPy, on every device that is there: agreement and time.

Run by ``python benchmarks/devices.py``; PyTorch and CuPy need the extra ``gpu``.
"""

import operator
import statistics
import time
from functools import reduce

import numpy as np

from consilience import Nystroem, Views
from consilience._backend import to_numpy
from consilience.kernels import RBF, Linear, Polynomial, normalize, view_grams


def devices():
    """(name, function that moves an array there, function that waits for the device)."""
    yield "NumPy", np.asarray, lambda: None
    try:
        import torch
    except ImportError:
        pass
    else:
        yield "PyTorch, CPU", torch.asarray, lambda: None
        if torch.cuda.is_available():
            name = torch.cuda.get_device_name()
            yield f"PyTorch, {name}", lambda x: torch.asarray(x, device="cuda"), torch.cuda.synchronize
    try:
        import cupy
    except ImportError:
        pass
    else:
        yield "CuPy", cupy.asarray, lambda: cupy.cuda.Device().synchronize()


def seconds(function, wait, repeats=5):
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        function()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def sum_of_grams(kernels, X):
    return reduce(operator.iadd, view_grams(kernels, X))


def main():
    rng = np.random.default_rng(0)
    n = 8000
    data = {"a": rng.normal(size=(n, 200)), "b": rng.normal(size=(n, 50))}
    kernels = {"a": RBF(0.01), "b": normalize(Polynomial(3)) + 0.1 * Linear()}
    maker = Nystroem(kernel=kernels, n_components=500, random_state=0)
    small = Views({name: block[:300] for name, block in data.items()})
    expected = sum_of_grams(kernels, small)
    features = maker.fit(small).transform(small)
    print(f"Gram matrices of two views summed, and Nyström features of 500 landmarks; n = {n}; medians")
    base = None
    for precision in (np.float64, np.float32):
        for name, move, wait in devices():
            V = Views({view: move(block.astype(precision)) for view, block in data.items()})
            part = V[np.arange(300)]
            tolerance = 1e-9 if precision is np.float64 else 1e-3
            np.testing.assert_allclose(to_numpy(sum_of_grams(kernels, part)), expected, atol=tolerance)
            ours = maker.fit(part).transform(part)
            for view in V.names:
                F, G = to_numpy(ours[view]), features[view]
                np.testing.assert_allclose(F @ F.T, G @ G.T, atol=100 * tolerance)
            gram = seconds(lambda V=V: sum_of_grams(kernels, V), wait)
            nystroem = seconds(lambda V=V: maker.fit(V).transform(V), wait)
            base = base or (gram, nystroem)
            print(
                f"{name:<28}{np.dtype(precision).name:<9}{gram:>8.4f} s ({base[0] / gram:>5.1f}x)"
                f"{nystroem:>9.4f} s ({base[1] / nystroem:>5.1f}x)"
            )


if __name__ == "__main__":
    main()
