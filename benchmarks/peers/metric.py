"""The peers of benchmarks/metric.py, in environments of their own: python metric.py mvml|mkl DATA.npz OUT.npz

Does not use consilience: reads arrays, fits, writes seconds and predictions.
"""

import sys
import time

import numpy as np


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def mvml(data):
    """MVML of scikit-multimodallearn, on one wide array with the limits of its views."""
    from multimodal.kernels.mvml import MVML

    model = MVML(nystrom_param=float(data["share"]), kernel="rbf", kernel_params={"gamma": float(data["gamma"])})
    _, seconds = timed(lambda: model.fit(data["X"], data["y"], list(data["limits"])))
    predictions = model.predict(data["X_test"])
    features = np.hstack([model.U_dict[v] for v in range(len(model.U_dict))])  # exact kernels without approximation
    return {
        "seconds": seconds,
        "predictions": predictions,
        "features": features,
        "A": model.A,
        "g": model.g,
        "w": model.w,
    }


def mkl(data):
    """Multiple kernels by himalaya, and for classes by EasyMKL of MKLpy, on Gram matrices."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    cases = {
        f"random_search {n}": {"n_iter": int(n), "alphas": data["alphas"], "progress_bar": False}
        for n in data["n_iter"]
    }
    if "y" in data:
        cases["hyper_gradient"] = {"progress_bar": False}
    found = {}
    for name, settings in cases.items():
        solver = name.split()[0]
        model = MultipleKernelRidgeCV("precomputed", solver=solver, solver_params=settings, cv=5, random_state=0)
        _, found[f"{name} seconds"] = timed(lambda model=model: model.fit(data["K"], data["Y"]))
        found[f"{name} predictions"] = model.predict(data["K_test"])
        weights = np.exp(model.deltas_)
        found[f"{name} weights"] = (weights / weights.sum(axis=0)).mean(axis=1)
    if "y" in data:
        import torch
        from MKLpy.algorithms import EasyMKL

        given = [torch.tensor(K) for K in data["K"]]
        model = EasyMKL()
        _, found["EasyMKL seconds"] = timed(lambda: model.fit(given, torch.tensor(data["y"])))
        found["EasyMKL predictions"] = np.asarray(model.predict([torch.tensor(K) for K in data["K_test"]]))
    return found


if __name__ == "__main__":
    part, given, results = sys.argv[1:]
    with np.load(given) as arrays:
        np.savez(results, **{"mvml": mvml, "mkl": mkl}[part](dict(arrays)))
