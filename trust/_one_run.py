"""Fit estimators in a process of its own, with the variables that its parent has set, and write all numbers.

The parent gives a JSON file: names of estimators, the number of samples, views in reverse order or not, the way to fit,
and the file for the result.
"""

import json
import multiprocessing
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import numpy as np
from sklearn.base import clone, is_regressor

import cases
import consilience as cs
from _fits import ONLINE, answers, numbers, samples


def given_samples(name: str, how: dict[str, Any]) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """Return training data in the form that was asked for, and rows to predict."""
    X, y = samples(name, how["n"])
    test = samples(name, 20, seed=1)[0]
    if how.get("reverse"):
        X, test = (dict(reversed(own.items())) for own in (X, test))
    if how.get("way") == "row blocks":
        return cs.RowBlocks.of(X, y, size=17), None, test
    if how.get("way") == "dask":
        import dask.array as da

        parts = {view: da.from_array(block, chunks=(17, -1)) for view, block in X.items()}
        return parts, da.from_array(y, chunks=17), test
    return X, y, test


def fit(name: str, how: dict[str, Any]) -> Any:
    """Return an estimator fitted in the way that was asked for."""
    model = clone(cases.LEARNERS[name])
    X, y, _ = given_samples(name, how)
    size = how.get("chunk")
    if how.get("way") in ("row blocks", "dask") and name in ONLINE:  # as a stream
        known = {} if is_regressor(model) else {"classes": np.unique(samples(name, how["n"])[1])}
        return model.partial_fit(X, y, **known)
    if size is None:
        return model.fit(X, y) if y is not None else model.fit(X)
    known = {} if is_regressor(model) else {"classes": np.unique(y)}
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        model.partial_fit({view: block[rows] for view, block in X.items()}, y[rows], **known if start == 0 else {})
    return model


def outcome(name: str, how: dict[str, Any]) -> dict[str, Any]:
    """Return answers, weights of the views, and the objective with its gap; or the error."""
    model = fit(name, how)
    test = given_samples(name, how)[2]
    found = answers(model, dict(sorted(test.items())))
    found.pop("view_decision_function", None)  # in the order of the views that were given
    proof = model.certificate() if hasattr(model, "certificate") else None
    values = [getattr(proof, field, None) for field in ("objective", "gap")]
    counts = [getattr(model, field, 0) for field in ("n_iter_", "n_updates_", "n_mistakes_")]
    return {
        "answers": numbers(found).tolist(),
        "classes": numbers(found["predict"]).tolist() if not is_regressor(model) else [],
        "objective": None if values[0] is None else float(np.sum(values[0])),
        "gap": None if values[1] is None else float(np.sum(values[1])),
        "exact": _is_exact(model, proof),
        "counts": [int(np.max(count)) for count in counts],
    }


def _is_exact(model: Any, proof: Any) -> bool:
    """Return whether the fit is a closed form or a pass over a stream, without a tolerance at which it ends."""
    consensus = type(model).__name__.startswith("Consensus")  # weights of its base models by an iteration
    return getattr(proof, "status", "") in ("exact", "streamed") and not consensus


def outcomes(how: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each estimator."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in how["names"]:
            try:
                found[name] = outcome(name, how)
            except (TypeError, ValueError, AttributeError) as error:  # a way that an estimator does not take
                found[name] = {"error": f"{type(error).__name__}: {error}"}
    return found


if __name__ == "__main__":
    how = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if how.get("way") == "forked":
        fit(how["names"][0], how)  # what the parent has loaded and computed is there in the child
        with multiprocessing.get_context("fork").Pool(1) as pool:
            found = pool.apply(outcomes, (how,))
    else:
        found = outcomes(how)
    Path(how["to"]).write_text(json.dumps(found), encoding="utf-8")
