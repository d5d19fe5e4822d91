"""Random cases of the kinds that have found faults in this library, with the properties that must hold for each.

    python tests/fuzz.py --seconds 600 --seed 1000      every kind in turn, until the time is over
    python tests/fuzz.py --kind batch --cases 500       the seeds 0 to 499 of one kind
    python tests/fuzz.py --kind batch --seed 17         exactly one case again, with the whole traceback

With NUMBA_BOUNDSCHECK=1 compiled loops raise IndexError where they leave their arrays, which is a failure.

A kind is a function of a random generator. It raises AssertionError where a property fails, and Refused where the
library does not take what was drawn. The case of seed K is made by ``np.random.default_rng([number of the kind, K])``.
"""

import os

if __name__ == "__main__":  # threads of BLAS only wait for each other on matrices this small
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
if os.environ.get("NUMBA_BOUNDSCHECK") == "1":  # code compiled without checks must not come from the cache
    os.environ.setdefault("NUMBA_CACHE_DIR", f"/tmp/fuzz-boundscheck-{os.getuid()}")

import argparse
import ctypes
import faulthandler
import functools
import hashlib
import io
import itertools
import json
import multiprocessing
import pickle
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import cases
import consilience as cs
from consilience import Views, as_views
from consilience.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Spectrum, center, normalize
from consilience.solvers.certificates import STATUSES

# Texts of NumPy, SciPy, LAPACK and Python that say nothing to a reader of ours.
RAW = (
    "traceback", "infs or nans", "did not converge", "unable to allocate", "could not be broadcast", "illegal value",
    "leading minor", "singular matrix", "not aligned", "out of bounds", "object has no attribute", "float division",
    "cannot reshape", "positional argument", "is not subscriptable", "unsupported operand", "'nonetype' object",
    "mismatch in its core", "dimension mismatch",
)  # fmt: skip
RAW_STARTS = ("setting an array element", "could not convert", "invalid literal", "'utf-8' codec")  # fine as a reason
SEARCHED = 120  # seconds after which a case in a child process counts as one that never ends
FOLDER = tempfile.TemporaryDirectory(prefix="fuzz")  # for the files of this process


# -- properties that all kinds share
CASE = SimpleNamespace(tell=None)  # what: a function that describes the case; tell: where it may crash, sends a message


def describe(what):
    """Keep what describes the case that runs; where it may crash, the parent process is told before."""
    CASE.what = what
    if CASE.tell:
        CASE.tell(("about", what()[:600]))


def attempt(call, *, doing="", also=(), foreign=False, any_text=False):
    """Return the result and None, or None and the sentence of the refusal; anything else is a failure.

    `also` are more exceptions that may refuse. With `foreign` the sentence may be that of a wrapped estimator, with
    `any_text` anybody's, with both the exception too.
    """
    try:
        return call(), None
    except (ValueError, TypeError, *also) as error:
        if not any_text:
            check_sentence(error, foreign)
        return None, str(error)
    except Exception as error:
        if foreign and any_text and not is_ours(error):
            return None, str(error)
        raise AssertionError(f"{explain(error)} {doing}") from error


def is_ours(error):
    """Tell whether an exception was raised by a line of the library."""
    return "/consilience/" in traceback.extract_tb(error.__traceback__)[-1].filename


class Refused(Exception):
    """The case ends here, since the library refused it in a sentence."""


def take(call, **how):
    """Return the result, or end the case where the library refuses."""
    result, sentence = attempt(call, **how)
    if sentence is not None:
        raise Refused(sentence)
    return result


def take_both(one, two):
    """Return two results, or end the case where both are refused; one of them alone must not be refused."""
    (first, no), (second, other) = attempt(one), attempt(two)
    assert (no is None) == (other is None), f"the first: {no}; the second: {other}"
    if no is not None:
        raise Refused(no)
    return first, second


def check_sentence(error, foreign=False):
    """Check that a refusal is a sentence of ours, not a text of NumPy, SciPy or LAPACK."""
    text = str(error).strip("'\" \n")
    raw = any(part in text.lower() for part in RAW) or text.lower().startswith(RAW_STARTS)
    if raw or isinstance(error, np.linalg.LinAlgError):
        raise AssertionError(f"raw text {explain(error)}") from error
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    if foreign and not is_ours(first):
        return
    if len(text) <= 20 or not text.endswith((".", ".)")) or re.search(r"(?<!\.)\.\. ", text):
        raise AssertionError(f"no sentence: {explain(error)}") from error


def explain(error):
    """Return the type of an exception, the last place in the library that it went through, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/consilience/" in frame.filename]
    place = f" at {frames[-1].filename.rpartition('/consilience/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:300]!r}"


def pick(rng, choices):
    """Return one of the choices."""
    return choices[rng.integers(len(choices))]


def chance(rng, share):
    """Return True in this share of the calls."""
    return bool(rng.random() < share)


def magnitude(rng, low=-4.0, high=2.0, extreme=0.06):
    """Return a power of ten in a usual range, now and then anywhere in floating point."""
    return float(10.0 ** (rng.uniform(-300, 300) if chance(rng, extreme) else rng.uniform(low, high)))


def show(value):
    """Describe data, parameters or an estimator in a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {show(part)}" for key, part in value.items()) + "}"
    if sp.issparse(value):
        return f"{value.format}({value.dtype}, {value.shape})"
    if isinstance(value, np.ndarray):
        size = f" up to {np.nanmax(np.abs(value), initial=0.0):.3g}" if value.dtype.kind == "f" and value.size else ""
        return f"array({value.dtype}, {value.shape}{size})" if value.size > 8 else f"array({value.tolist()})"
    if hasattr(value, "get_params"):
        return " ".join(value.__repr__(N_CHAR_MAX=2000).split())
    return " ".join(repr(value).split()) if isinstance(value, Views) else repr(value)[:200]


# -- data
TABLES = {
    "normal": lambda rng, X: X,
    "whole": lambda rng, X: np.round(2 * X),
    "counts": lambda rng, X: np.abs(np.round(2 * X)),
    "constant": lambda rng, X: np.column_stack([np.ones(len(X)), X[:, 1:]]),
    "repeated": lambda rng, X: X[rng.integers(len(X), size=len(X))],
    "collinear": lambda rng, X: X[:, :1] * np.arange(1, X.shape[1] + 1),
    "zeros": lambda rng, X: X * (rng.random(X.shape) > 0.7),
}


def draw_table(rng, n, hostile=True):
    """Return n rows of 1 to 6 columns: continuous or whole numbers, constant, repeated, collinear, tiny or huge."""
    X = rng.normal(size=(n, int(rng.integers(1, 7))))
    X = TABLES[pick(rng, ["normal", "normal", *TABLES])](rng, X)
    if hostile and chance(rng, 0.25):
        X = X * magnitude(rng, -8, 8, extreme=0.4)
    if hostile and chance(rng, 0.04):
        X[rng.integers(n), rng.integers(X.shape[1])] *= magnitude(rng, 2, 100, extreme=0.3)
    return X


def draw_strings(rng, n):
    """Return n short strings, some empty."""
    return ["".join(pick(rng, "abc") for _ in range(rng.integers(0, 6))) for _ in range(n)]


def draw_gram(rng, n, hostile=True):
    """Return a Gram matrix of n samples; if hostile, now and then one that is indefinite or not symmetric."""
    X = draw_table(rng, n, hostile)
    with np.errstate(over="ignore", invalid="ignore"):
        K = X @ X.T
    if hostile and chance(rng, 0.15):
        K = rng.normal(size=(n, n))
        K = K if chance(rng, 0.2) else K + K.T
    return K


def draw_numeric_kernel(rng, X, fixed=False):
    """Return a kernel that takes a table; with `fixed`, one without parameters taken from the data."""
    gamma = magnitude(rng, -3, 1, extreme=0.0 if fixed else 0.04)
    square = Polynomial(degree=2, constant=1.0)
    choices = [Linear(), RBF(gamma), RBF(gamma), square, Laplacian(gamma), RBF(gamma) + 0.5, normalize(square)]
    if X.min(initial=0.0) >= 0:
        choices += [cs.kernels.ChiSquared(gamma), cs.kernels.Intersection()]
    if not fixed:
        choices += ["rbf", "linear", "rbf", RBF("median"), center(RBF(gamma))]
    return pick(rng, choices)


def draw_mask(rng, n, m, share=0.4, hostile=True):
    """Return which views are present, or None; every sample has a view, but in a few hostile cases."""
    if m == 1 or not chance(rng, share):
        return None
    mask = rng.random((n, m)) > rng.uniform(0.05, 0.6)
    if chance(rng, 0.1):
        mask[:, rng.integers(m)] = False
    if not (hostile and chance(rng, 0.03)):
        empty = np.flatnonzero(~mask.any(axis=1))
        mask[empty, rng.integers(m, size=len(empty))] = True
    return mask


def draw_views(rng, n, kinds, hostile=True):
    """Return the data by view, a kernel for each, the names of the Gram matrices, and a mask or None."""
    data, kernels, grams = {}, {}, []
    for name in "abcd"[: rng.integers(1, 5)]:
        kind = pick(rng, kinds)
        if kind == "strings":
            data[name] = draw_strings(rng, n)
            kernels[name] = pick(rng, [Spectrum(1), Spectrum(2), normalize(Spectrum(1) + 1.0)])
        elif kind == "gram":
            data[name] = draw_gram(rng, n, hostile)
            kernels[name] = pick(rng, ["precomputed", Precomputed()])
            grams.append(name)
        else:
            X = draw_table(rng, n, hostile)
            kernels[name] = draw_numeric_kernel(rng, X, fixed=not hostile)
            with np.errstate(over="ignore"):
                X = X.astype(np.float32) if hostile and chance(rng, 0.2) else X
            data[name] = sp.csr_array(X) if kind == "sparse" else X
    return data, kernels, grams, draw_mask(rng, n, len(data), hostile=hostile)


def draw_targets(rng, n):
    """Return targets of regression: one output or several, some missing, constant, or of any scale."""
    Y = rng.normal(size=(n, int(rng.integers(1, 4)))) if chance(rng, 0.35) else rng.normal(size=n)
    if chance(rng, 0.2):
        Y = Y * magnitude(rng, -6, 6, extreme=0.4)
    if chance(rng, 0.08):
        Y = np.zeros_like(Y)
    if chance(rng, 0.25):
        Y[rng.random(n) < rng.uniform(0, 0.8)] = np.nan
    return Y


def draw_labels(rng, n):
    """Return labels of 1 to 4 classes: whole numbers, strings, booleans or floats, some missing."""
    n_classes = int(rng.integers(1, 5)) if chance(rng, 0.2) else int(rng.integers(2, 4))
    codes = rng.integers(n_classes, size=n)
    codes[: min(n, n_classes)] = np.arange(min(n, n_classes))
    names = [3, -1, 7, 0], [3, -1, 7, 0], ["x", "y", "a", "zz"], [False, True, False, True], [0.0, 1.0, 2.0, -1.0]
    labels = np.array(pick(rng, names))[codes]
    if chance(rng, 0.2):
        labels = labels.astype(object)
        labels[rng.random(n) < rng.uniform(0, 0.7)] = pick(rng, [None, np.nan])
    return labels


def draw_weights(rng, n):
    """Return sample weights or None: ones, some of them zero, or of any scale."""
    style = pick(rng, ["none", "none", "none", "ones", "zeros", "random", "extreme"])
    if style == "extreme":
        return np.array([magnitude(rng, extreme=0.5) for _ in range(n)])
    given = {"ones": np.ones(n), "zeros": rng.integers(3, size=n) * 1.0, "random": rng.random(n)}
    return given.get(style)


# -- estimators: what a parameter is drawn from. A list: one of it. A pair: a power of ten between the exponents. A
# function: of the generator and the number of views. An estimator takes the parameters of its signature.
METRICS = ["learned", "block_sparse", "covariance", "diagonal"]
SQUARE = Polynomial(degree=2, constant=1.0)
HOSTILE = {
    "alpha": (-5, 2), "metric_penalty": (-2, 2), "C": (-3, 3), "metric": METRICS,
    "alphas": lambda rng, m: [magnitude(rng, -5, 1) for _ in range(rng.integers(1, 3))],
    "metric_penalties": lambda rng, m: [magnitude(rng, -2, 2)],
    "agreement_penalty": lambda rng, m: pick(rng, [0.0, magnitude(rng)]),
    "agreement_penalties": lambda rng, m: pick(rng, [[0.0], [0.0, magnitude(rng)]]),
    "graph_penalty": lambda rng, m: pick(rng, [0.0, 0.0, magnitude(rng)]),
    "graph": ["kernel", "kernel", "kernel_normalized", "knn"],
    "view_weights": lambda rng, m: pick(rng, [*["uniform"] * 6, *[rng.normal(size=m).tolist()] * 3, "learned"]),
    "n_components": [None, None, None, 2, 0.5], "cv": [None, None, 2, 3], "p": [1.0, 1.5, 2.0, 2.0, float("inf")],
    "shared_metric": [True, *[False] * 9], "solver": ["exact", "exact", "exact", "alternating"],
    "shared_weights": [False, *[True] * 4], "combine": ["sum", "sum", "sum", "product", SQUARE],
    "fit_intercept": [True, *[False] * 4], "max_iter": [6, 20], "n_restarts": [1], "random_state": [0],
    "CoRegularizedSVC": {"class_vectors": ["ovr", "ovr", "simplex"]},
    "MaxMarginClassifier": {"class_vectors": ["simplex", "simplex", "indicator", "centered_means"], "tol": [1e-3, 1e-8],
                            "max_iter": [100]},
    "MaxMarginRegressor": {"output_kernel": lambda rng, m: RBF(magnitude(rng, -2, 1)), "tol": [1e-3, 1e-8],
                           "max_iter": [100]},
}  # fmt: skip
# for weights that count samples: solved closely, by terms that repeated samples do not change
COUNTED = {
    "alpha": lambda rng, m: magnitude(rng, -3, 0, extreme=0), "metric": METRICS, "p": [1.0, 1.5, 2.0],
    "alphas": lambda rng, m: [magnitude(rng, -3, 0, extreme=0)],
    "agreement_penalty": [0.0, 0.01, 0.3], "agreement_penalties": [[0.0], [0.01], [0.3]],
    "graph_penalty": [0.0, 0.01], "graph": ["kernel", "kernel_normalized"],
    "view_weights": lambda rng, m: pick(rng, ["uniform", "uniform", rng.uniform(0.2, 1, size=m).tolist()]),
    "metric_penalty": lambda rng, m: magnitude(rng, -1, 1, extreme=0),
    "C": lambda rng, m: magnitude(rng, -2, 1, extreme=0), "combine": ["sum", "sum", SQUARE],
    "shared_weights": [False, True, True], "fit_intercept": [True, *[False] * 4], "tol": [1e-12], "max_iter": [5000],
    "CoRegularizedSVC": {"class_vectors": ["ovr", "simplex"]},
    "MaxMarginClassifier": {"class_vectors": ["simplex", "indicator"]},
    "MaxMarginRegressor": {"output_kernel": [RBF(0.5)]},
}  # fmt: skip
STREAMED = {
    "kernel": ["linear", RBF(0.3), RBF(0.05), SQUARE], "average": [False, True, "with_last", "voted"],
    "margin": [0.0, 0.0, 0.5], "eta0": [1.0, 1.0, 0.3], "budget": [None, None, 3, 8],
    "C": lambda rng, m: magnitude(rng, -2, 1, extreme=0),
    "fit_intercept": [False, True], "prior_norms": [None, 0.1, "learned"], "p": [1.0, 2.0, 3.0],
    "threshold": [0.0, 0.1, 0.5],
    "unequal": ["pad", "repeat"],
    "OnlinePerceptron": {"p": [2, 3]},
    "PassiveAggressive": {"variant": ["PA", "PA-I", "PA-II"]},
    "Projectron": {"variant": ["projectron", "projectron++"], "average": [False, True, "with_last"]},
    "OrthogonalPerceptron": {"variant": ["perceptron", "perceptron", "passive-aggressive"]},
    "VectorPerceptron": {"margin": [1.0]},
    "MultiCueClassifier": {"estimator": [None, cs.OnlinePerceptron()], "average": [False, True]},
}  # fmt: skip
FUSED = [RidgeClassifier(), GaussianNB(), LogisticRegression(max_iter=20), Ridge(), Ridge(1e-4),
         DecisionTreeRegressor(max_depth=2)]  # fmt: skip
BATCH = [cls for cls in cases.all_learners() if not hasattr(cls, "learn_one")]
ONLINE = [cls for cls in cases.all_learners() if hasattr(cls, "learn_one")]
FUSIONS = (cs.EarlyFusion, cs.LateFusion)


def draw_estimator(rng, cls, m, table):
    """Return an estimator of a class, with parameters drawn from a table and from what it has for the class."""
    table = {"estimator": FUSED} if cls in FUSIONS else {**table, **table.get(cls.__name__, {})}
    drawn = {}
    for name in sorted(table.keys() & set(cls._get_param_names())):
        of = table[name]
        drawn[name] = of(rng, m) if callable(of) else magnitude(rng, *of) if isinstance(of, tuple) else pick(rng, of)
    return cls(**drawn)


# -- batch estimators on hostile data
def fuzz_batch(rng):
    """Fit any batch estimator on any data: it predicts finite numbers, or refuses and stays as it was."""
    cls = pick(rng, [*BATCH, *FUSIONS])
    fusion = cls in FUSIONS
    n = int(rng.integers(1, 4)) if chance(rng, 0.08) else int(rng.integers(4, 25))
    kinds = ["dense", "dense", "sparse"] if fusion else ["dense", "dense", "dense", "sparse", "strings", "gram"]
    data, kernels, grams, mask = draw_views(rng, n + 4, kinds)
    for name in data if chance(rng, 0.5) else ():  # one row of new data is far away
        if isinstance(data[name], np.ndarray) and name not in grams:
            with np.errstate(over="ignore"):
                data[name][n + 3] *= data[name].dtype.type(magnitude(rng, 1, 8, extreme=0.2))
    model = draw_estimator(rng, cls, len(data), HOSTILE)
    model.set_params(**({} if fusion else {"kernel": kernels}))
    y = draw_labels(rng, n) if is_classifier(model) else draw_targets(rng, n)
    weights = draw_weights(rng, n)

    describe(lambda: f"{show(model)}.fit({show(data)}, {show(y)}, {show(weights)}) mask={mask is not None} n={n}")
    before = frozen(data, y, weights)
    X = take(lambda: Views(data, mask=mask, precomputed=grams or None))
    train, new = X[:n], X[n:]
    _, sentence = attempt(lambda: model.fit(train, y, weights), foreign=fusion)
    assert frozen(data, y, weights) == before, "fit changed its input"
    if sentence:
        check_refused_refit(rng, model, train, y, weights, fusion)
        raise Refused(sentence)
    for rows in (train, new):
        check_predictions(model, rows, fusion)
    check_certificate(model)
    assert frozen(data, y, weights) == before, "predict changed its input"


def frozen(data, y, weights):
    """Return the bytes of what was given, to compare them with later ones."""
    given = (*data.values(), y, weights)
    return pickle.dumps([[value.data, value.indices, value.indptr] if sp.issparse(value) else value for value in given])


def check_predictions(model, X, foreign=False):
    """Check that predictions and scores are finite, or refused in a sentence."""
    predicted, sentence = attempt(lambda: model.predict(X), foreign=foreign)
    if is_classifier(model):
        if sentence is None:
            assert len(predicted) == len(X), "a prediction for each row"
            assert np.isin(predicted, model.classes_).all(), "predictions are not classes"
        if hasattr(model, "decision_function"):
            scores, _ = attempt(lambda: model.decision_function(X), foreign=foreign)
            assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    elif sentence is None:
        assert np.isfinite(np.asarray(predicted, dtype=np.float64)).all(), "predictions are not finite"


def check_certificate(model):
    """Check that a certificate has a known status and a gap that is None or finite and not negative."""
    certificate, sentence = attempt(model.certificate)
    assert sentence is None, f"certificate refused ({sentence})"
    assert certificate.status in STATUSES, f"status {certificate.status!r}"
    gap = certificate.gap
    assert gap is None or (np.isfinite(gap) and gap >= 0), f"gap {gap!r}, status {certificate.status}"
    attempt(lambda: str(certificate))


def check_refused_refit(rng, model, X, y, weights, foreign):
    """Check that a refused fit leaves a fitted model with exactly the predictions it had."""
    n = 8
    make = {"objects": lambda: draw_strings(rng, n), "gram": lambda: draw_gram(rng, n, hostile=False)}
    good = {name: make.get(X.kind(name), lambda: np.abs(rng.normal(size=(n, 2))))() for name in X.names}
    good = Views(good, precomputed=[name for name in X.names if X.kind(name) == "gram"] or None)
    fitted = clone(model)
    try:
        before = fitted.fit(good, np.arange(n) % 2 if is_classifier(model) else rng.normal(size=n)).predict(good)
    except Exception:
        return  # the parameters are refused for all data
    _, sentence = attempt(lambda: fitted.fit(X, y, weights), foreign=foreign)
    if sentence:
        after, lost = attempt(lambda: fitted.predict(good), doing="in predict after a refused refit")
        assert lost is None, f"after a refused refit predict says {lost!r}"
        assert np.array_equal(before, after), "a refused refit changed predictions"


# -- weights that count samples
def fuzz_weights(rng):
    """Fit with whole weights, and fit with each row given that often: both predict the same."""
    n = int(rng.integers(3, 13))
    data, kernels, _, mask = draw_views(rng, n, ["dense", "dense", "sparse", "strings"], hostile=False)
    # a row that stands twice is left out once only, so a consensus gives it other held-out predictions
    cls = pick(rng, [cls for cls in BATCH if cls not in FUSIONS and not cls.__name__.startswith("Consensus")])
    model = draw_estimator(rng, cls, len(data), COUNTED).set_params(kernel=kernels)
    regression = not is_classifier(model)
    if cls is cs.MaxMarginRegressor:  # outputs that repeat, so that the candidates stay the same
        y, method = np.arange(n) % 3 * 1.0, "candidate_scores"
    elif regression:
        y, method = rng.normal(size=(n, 2)) if chance(rng, 0.3) else rng.normal(size=n), "predict"
        y[rng.random(n) < pick(rng, [0.0, 0.0, 0.3])] = np.nan
    else:
        y, method = np.arange(n) % int(rng.integers(2, 4)), "decision_function"
    weights = rng.integers(1, 4, size=n)
    weights[rng.random(n) < pick(rng, [0.0, 0.2])] = 0
    rows = np.repeat(np.arange(n), weights)

    there = None if mask is None else mask.astype(int).tolist()
    describe(lambda: f"{show(model)} on {show(data)} mask={there} y={y.tolist()} weights={weights.tolist()}")
    X = Views(data, mask=mask)
    if method != "predict" and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        raise Refused("a class has no weight")
    if any(X.present(v).any() and not X.present(v)[weights > 0].any() for v in X.names):
        raise Refused("a view has no weight")
    counted, given = take_both(
        lambda: clone(model).fit(X, y, weights.astype(float)), lambda: clone(model).fit(X[rows], y[rows])
    )
    statuses = {counted.certificate().status, given.certificate().status}
    if statuses - {"exact", "converged"}:
        raise Refused(f"status {statuses}")
    shown = X[np.flatnonzero(weights > 0)]
    one, two = take_both(lambda: getattr(counted, method)(shown), lambda: getattr(given, method)(shown))
    limit = 1e-6 if counted.certificate().status == "exact" else 1e-4
    difference = np.abs(one - two).max() / max(np.abs(two).max(), 1e-3)
    assert difference <= limit, f"weight 2 is not twice the row, by {difference:.2g}"


# -- streams in chunks
def draw_stream(rng, n):
    """Return Views and labels: sparse, missing and late views, ties, far values, late classes."""
    data, _, _, mask = draw_views(rng, n, ["dense"] * 4 + ["sparse"], hostile=False)
    for name, X in data.items():
        if chance(rng, 0.1) and not sp.issparse(X):
            X[rng.integers(n)] *= magnitude(rng, 2, 6, extreme=0.1)
        with np.errstate(over="ignore"):
            data[name] = X.astype(np.float32) if chance(rng, 0.15) else X
    if len(data) > 1 and chance(rng, 0.3):
        mask = np.ones((n, len(data)), dtype=bool) if mask is None else mask
        mask[: rng.integers(n), 0] = False
        mask[~mask.any(axis=1), 1] = True
    y = rng.integers(int(rng.integers(2, 5)), size=n)
    if chance(rng, 0.3):
        y = y[np.argsort(y > 1, kind="stable")]
    return Views(data, mask=mask), np.array(["d", "b", "a", "c"])[y] if chance(rng, 0.4) else y


def fuzz_chunks(rng):
    """Learn a stream at once and in pieces of random sizes: the same mistakes, updates and scores."""
    n = int(rng.integers(2, 41))
    X, y = draw_stream(rng, n)
    model = draw_estimator(rng, pick(rng, ONLINE), len(X.names), STREAMED)
    # vectors of classes are between all of them, so that they must be given at first
    classes = np.unique(y) if isinstance(model, cs.VectorPerceptron) or chance(rng, 0.3) else None
    regresses = is_regressor(model)
    if regresses:
        y, classes = np.unique(y, return_inverse=True)[1] + rng.normal(size=n), None
    sizes = []
    while sum(sizes) < n:
        sizes.append(min(1 if chance(rng, 0.4) else int(rng.integers(1, 12)), n - sum(sizes)))
    single = chance(rng, 0.5)  # pieces of one row by learn_one

    describe(lambda: f"{show(model)} on {show(X)} y={y.tolist()} {sizes=} learn_one={single} {classes=}")

    def counts(learned):
        shared = learned.n_updates_, learned.n_samples_seen_
        return shared if regresses else (learned.n_mistakes_, *shared, learned.classes_.tolist())

    def scores(learned, data):
        return learned.predict(data) if regresses else learned.decision_function(data)

    once = take(lambda: clone(model).partial_fit(X, y, classes=classes))
    parts, no = attempt(lambda: learn_pieces(clone(model), X, y, classes, sizes, single))
    assert no is None, f"learned at once, but refused in pieces ({no})"
    same = counts(once) == counts(parts)
    assert same, f"mistakes, updates, samples, classes are {counts(once)} and {counts(parts)}"
    shown = X[[v for v in X.names if X.present(v).any()]]
    one, two = take_both(lambda: scores(once, shown), lambda: scores(parts, shown))
    assert np.isfinite(one).all(), "scores are not finite"
    limit = 1e-4 if any(X.block(v) is not None and X.block(v).dtype == np.float32 for v in X.names) else 1e-8
    difference = np.abs(one - two).max() / max(np.abs(one).max(), 1.0)
    assert difference <= limit, f"scores differ by {difference:.2g}"


def learn_pieces(model, X, y, classes, sizes, single):
    """Learn a stream in pieces, as Views, as dicts without the views that are missing, or one row at a time."""
    start = 0
    for number, size in enumerate(sizes):
        rows = slice(start, start + size)
        there = [v for v in X.names if X.present(v)[rows].any()]
        start += size
        if size == 1 and single and (number or classes is None):
            row = {v: X[v][rows] if sp.issparse(X[v]) else X[v][rows][0] for v in there}
            model.learn_one(row, y[rows][0])
        else:
            piece = X[rows][there] if number % 2 else X[rows]
            model.partial_fit(piece, y[rows], **({} if number else {"classes": classes}))
    return model


# -- model files
@functools.cache
def pool():
    """Return what is saved, as (header, members of the file, object, data, targets): made once a process."""
    rng = np.random.default_rng(7)
    n = 8
    A, B, t = rng.normal(size=(n, 2)), np.round(rng.normal(size=(n, 3))), rng.normal(size=n)
    mask = np.ones((n, 2), dtype=bool)
    mask[2, 0] = mask[5, 1] = False
    X = Views({"a": A, "b": sp.csr_array(B)}, mask=mask)
    S, strings = Views(a=A, s=["ab", "b", None, "a", "", "ba", "c", "ca"]), {"a": RBF(0.5), "s": Spectrum(1)}
    G, grams = Views(a=A, g=A @ A.T, precomputed="g"), {"a": RBF(0.5), "g": "precomputed"}
    known = [(model, X) for model in cases.LEARNERS.values()]
    known += [(cs.CoRegularizedRidge(RBF(0.5), n_components=3, random_state=0), X)]
    known += [(cs.KernelPerceptron(RBF(0.5), budget=3, average=True, shuffle=False), X)]
    for cls in (cs.CoRegularizedRidge, cs.MultipleKernelRidgeClassifier, cs.MaxMarginClassifier, cs.KernelPerceptron):
        known += [(cls(kernel=strings), S), (cls(kernel=grams), G)]
    saved = [(X, None, None), (G[[3, 1, 4]], None, None)]
    saved += [(cs.Nystroem(RBF(0.5), n_components=3, random_state=0), X, None)]
    for i, (model, data) in enumerate(known):
        numbers = np.column_stack([t, t * t]) if isinstance(model, cs.OutputKernelRidge) else t
        saved.append((clone(model), data, np.arange(n) % (2 + i % 2) if is_classifier(model) else numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(*members_of(m if data is None else m.fit(data, y)), m, data, y) for m, data, y in saved]


def members_of(model):
    """Return the header and the members of a model file, with numbers in place of addresses, so that cases repeat."""
    path = Path(FOLDER.name) / "whole.cons"
    cs.save(model, path)
    _, head, payload = path.read_bytes().split(b"\n", 2)
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    schema = members.pop("schema.json").decode()
    ids = dict.fromkeys(re.findall(r'"__id__": (\d+)', schema))
    numbers = {old: str(1000 + i) for i, old in enumerate(ids)}
    schema = re.sub(r"\d{12,}", lambda found: numbers.get(found.group(), found.group()), schema)
    renamed = {re.sub(r"\d{12,}", lambda found: numbers.get(found.group(), "0"), k): v for k, v in members.items()}
    return json.loads(head), {**renamed, "schema.json": schema.encode()}


def model_bytes(head, members, digest=True, compress=False):
    """Return the bytes of a model file; with `digest`, the checksum is right whatever the members hold."""
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if compress else 0) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    payload = target.getvalue()
    head = {**head, "sha256": hashlib.sha256(payload).hexdigest()} if digest else head
    return b"consilience model\n" + json.dumps(head).encode() + b"\n" + payload


def fuzz_files(rng):
    """Load a damaged model file: a sentence, or a model that predicts or refuses; never a crash."""
    head, members, model, X, y = pick(rng, pool())
    content, damage = damaged(rng, head, dict(members))
    path = Path(FOLDER.name) / "damaged.cons"
    path.write_bytes(content)

    describe(lambda: f"load of {show(model)[:200]} after {damage}")
    loaded, sentence = attempt(lambda: cs.load(path))
    if sentence:
        known = any(word in sentence for word in ("damaged", "refused", "is not a model file", "has file format"))
        assert known, f"the sentence does not say that the file is damaged: {sentence!r}"
        raise Refused(sentence.replace(str(path), "''"))
    use(loaded, model, X, y)


def use(loaded, model, X, y):
    """Do with a loaded model what a user would do next: it works, or raises ValueError or TypeError.

    The arrays of a wrapped estimator belong to another library, which may raise what it likes where they are damaged.
    """
    acts = {"repr": lambda: repr(loaded)}
    if isinstance(loaded, Views):
        acts |= {"rows": lambda: loaded[[-1]], "concat": lambda: Views.concat([loaded] * 2), "len": lambda: len(loaded)}
    elif X is not None and type(loaded) is type(model) and hasattr(loaded, "transform"):
        acts |= {"transform": lambda: loaded.transform(X)}
    elif X is not None and type(loaded) is type(model):
        acts |= {"predict": lambda: loaded.predict(X), "two rows": lambda: loaded.predict(X[[0, 3]])}
        acts |= {"certificate": loaded.certificate}
        if hasattr(loaded, "learn_one") and "g" not in X.names:
            acts |= {"partial_fit": lambda: loaded.partial_fit(X, y), "predict again": lambda: loaded.predict(X)}
    for name, act in acts.items():
        attempt(act, doing=f"in {name}", foreign=isinstance(model, FUSIONS), any_text=True)


def damaged(rng, head, members):
    """Return the bytes of a damaged file, and what was done to it."""
    style = pick(rng, ["bytes", "header", "schema", "schema", "schema", "arrays", "arrays", "arrays", "members"])
    if style == "bytes":
        content = bytearray(model_bytes(head, members.items()))
        place = int(rng.integers(len(content)))
        if chance(rng, 0.5):
            return bytes(content[:place]), f"cut at {place}"
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            content[at] ^= int(rng.integers(1, 256))
        return bytes(content), "flipped bytes"
    if style == "header":
        key = pick(rng, ["format", "version", "sha256"])
        value = pick(rng, [None, 7, -1, "x", [], {}, 1e400, "9" * 3000])
        return model_bytes({**head, key: value}, members.items(), digest=key != "sha256"), f"header {key}={value!r:.20}"
    note = {"schema": damage_schema, "arrays": damage_array, "members": damage_members}[style](rng, members)
    doubled = [*members.items(), ("schema.json", b"{}")] if style == "members" and chance(rng, 0.1) else members.items()
    return model_bytes(head, doubled, compress=chance(rng, 0.1)), note


def nodes_of(tree, path=""):
    """Yield every dict inside a schema with its place, the outer ones first."""
    if isinstance(tree, dict):
        yield tree, path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from nodes_of(value, path if key == "content" else f"{path}.{key}")


def damage_schema(rng, members):
    """Change a value, a type, a list or a name in the schema."""
    schema = json.loads(members["schema.json"])
    places = list(nodes_of(schema))
    nodes = [node for node, _ in places]
    style = pick(rng, ["value", "value", "value", "value", "class", "drop", "swap", "list", "file"])
    if style == "value":
        node, path = pick(rng, [place for place in places if place[0].get("__loader__") == "JsonNode"])
        before = node["content"]
        node["content"] = pick(rng, ["-1", "0", "1", "7", "1000000", "1e308", "NaN", "null", '"x"', "true", "[]", "{}"])
        note = f"{path} {before} -> {node['content']}"
    elif style == "class":
        node, other = pick(rng, nodes), pick(rng, nodes)
        note = f"class {node.get('__class__')} -> {other.get('__class__')}"
        node.update({key: other[key] for key in ("__class__", "__module__", "__loader__") if key in other})
    elif style == "drop":
        node = pick(rng, [node for node in nodes if node])
        key = pick(rng, list(node))
        del node[key]
        note = f"dropped {key!r}"
    elif style == "swap":
        one, two = (pick(rng, nodes) for _ in range(2))
        held = json.loads(json.dumps(two))
        one.clear()
        one.update(held)
        note = f"put {held.get('__class__')} in another place"
    elif style == "list":
        lists = [node for node in nodes if isinstance(node.get("content"), list)]
        node = pick(rng, lists) if lists else schema
        content = node["content"]
        node["content"] = pick(rng, [[], content[:-1], content[::-1], content * 2]) if lists else []
        note = f"list of {len(content)} -> {len(node['content'])}"
    else:
        files = [node for node in nodes if "file" in node]
        node = pick(rng, files) if files else schema
        node["file"] = pick(rng, [*(n["file"] for n in files), "schema.json", "../x.npy", "none.npy"])
        note = f"file -> {node['file']}"
    members["schema.json"] = json.dumps(schema).encode()
    return f"schema: {note}"


def damage_array(rng, members):
    """Put another array in the place of one: other shape, dtype or values."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return damage_schema(rng, members)
    name = pick(rng, names)
    array = np.load(io.BytesIO(members[name]))
    changes = {
        "short": lambda: array[: len(array) // 2] if array.ndim else array,
        "long": lambda: np.concatenate([array, array]) if array.ndim else array,
        "dtype": lambda: array.astype(pick(rng, [np.int8, np.float32, np.complex128, "U3", bool, ">f8", ">i4"])),
        "shape": lambda: pick(rng, [array.ravel(), array[None], array[..., None], array.T]),
        "empty": lambda: np.zeros((0,) * array.ndim, dtype=array.dtype),
        "objects": lambda: np.array(["x", 1.0, None], dtype=object),
        "scalar": lambda: np.asarray(array.ravel()[0] if array.size else 0),
    }
    style = pick(rng, [*changes, "value", "value", "value"])
    changed = np.array(array) if style == "value" else changes[style]()
    if style == "value" and array.size and array.dtype.kind in "iuf":
        changed.flat[rng.integers(array.size)] = pick(rng, [-1, 1, 127, 10**6, -(10**6)])
        if array.dtype.kind == "f" and chance(rng, 0.5):
            changed.flat[rng.integers(array.size)] = pick(rng, [np.nan, np.inf, 1e308, 1e-320])
    target = io.BytesIO()
    np.save(target, changed)
    members[name] = target.getvalue()
    if chance(rng, 0.05):
        members[name] = members[name].replace(b"'shape': (", b"'shape': (99999999, ")
    place = [path for node, path in nodes_of(json.loads(members["schema.json"])) if node.get("file") == name]
    return f"array {name} ({place}): {style}, {show(array)} -> {show(changed)}"


def damage_members(rng, members):
    """Delete, cut, rename or add members of the archive."""
    name = pick(rng, list(members))
    content = members.pop(name)
    changes = {"delete": {}, "cut": {name: content[: rng.integers(len(content))]}, "rename": {name + "x": content}}
    changes |= {"zeros": {name: bytes(int(rng.integers(0, 300)))}, "swap": {name: pick(rng, [*members.values(), b""])}}
    style = pick(rng, list(changes))
    members.update(changes[style])
    return f"member {name}: {style}"


# -- tables
NAMES = ["", "x", "x", "y", "id", "a__1", "a__2", "b__1", "__", "a__", "__b", "=1+1", "@sum", "n\nl", "N" * 5000, "é",
         " x"]  # fmt: skip
CELLS = ["", "1", "2.5", "-3", "1e999", "nan", "inf", "NaN", "NA", "true", "False", "x", "1_000", "01", "1e-320", "é",
         " 4 ", "=1+1", "\x00", "null", "2020-01-01", "99999999999999999999", "0x10", '"', "'", "1,5",
         "[1, 2]"]  # fmt: skip
VALUES = [1, 2.5, None, True, "x", [1, 2], [1.0, 2.0], [], [[1]], {"a": 1}, float("nan"), float("inf"), 10**400, "é",
          ["p"]]  # fmt: skip


def draw_or_odd(rng, share, odd, usual):
    """Return one of the usual values, in a share of the calls one of the odd ones."""
    return pick(rng, odd) if chance(rng, share) else pick(rng, usual)


def fuzz_tables(rng):
    """Read a hostile table: Views, or a sentence."""
    suffix = pick(rng, [".csv", ".csv", ".tsv", ".jsonl", ".jsonl", ".libsvm", ".npz", ".parquet", ".frame", ".odd"])
    if suffix in (".frame", ".odd"):
        return fuzz_frame(rng)
    content = {".csv": csv_bytes, ".tsv": csv_bytes, ".jsonl": json_bytes, ".libsvm": libsvm_bytes, ".npz": npz_bytes,
               ".parquet": parquet_bytes}[suffix](rng)  # fmt: skip
    content = spoil(rng, content)
    path = Path(FOLDER.name) / f"table{suffix}"
    path.write_bytes(content)
    stream = chance(rng, 0.5)
    views = pick(rng, [None] * 9 + ["prefix", {"v": ["x"], "w": ["a__*"]}, {"v": ["nothing"]}, {"v": ["*"]}])
    target, ids = pick(rng, ["y"] * 9 + ["x", "none"]), pick(rng, [None] * 9 + ["id"])
    start, on_error = pick(rng, [0, 0, 0, 1, 2, 5]), pick(rng, ["stop", "skip"])

    def read():
        if stream:
            options = {"target": target, "views": views, "start": start, "on_error": on_error}
            return list(cs.io.read_stream(path, chunk=int(rng.integers(1, 6)), **options))
        return cs.io.read_samples([path], views=views, target=target if target != "none" else None, ids=ids)

    reader = "read_stream" if stream else "read_samples"
    describe(lambda: f"{reader}({suffix}, {target=}, {ids=}, {views=}, {start=}, {on_error=}) of {content[:300]!r}")
    got = take(read, also=(OSError,))
    for X, _ in got if stream else [(got.X, None)]:
        assert isinstance(X, (Views, dict)), "neither Views nor a dict"


def csv_bytes(rng):
    """Return a table in CSV whose header and cells are odd."""
    comma = pick(rng, ["\t", "\t", ",", ",", ","]) if chance(rng, 0.4) else ","
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 6))]
    if chance(rng, 0.5):
        names = pick(rng, [["a__1", "a__2", "b__1"], ["x", "z"], ["id", "x"]])
    names = [*names, "y"] if chance(rng, 0.95) else names
    usual = pick(rng, [["1", "2.5", "-3"], ["1", "", "2"], CELLS, ["1", "x"], ["1.5", "1e999", "nan"]])
    rows = [names]
    for _ in range(rng.integers(0, 7)):
        count = len(names) if chance(rng, 0.95) else int(rng.integers(0, 7))
        rows.append([draw_or_odd(rng, 0.05, CELLS, usual) for _ in range(count)])

    def quoted(cell):  # where it needs quotes, now and then where it does not, or not where it does
        needs = any(mark in cell for mark in ',\n"\t')
        return '"' + cell.replace('"', '""') + '"' if needs != chance(rng, 0.03) else cell

    lines = [comma.join(quoted(cell) for cell in row) for row in rows]
    return pick(rng, ["\n", "\n", "\r\n", "\r"]).join(lines).encode()


def json_bytes(rng):
    """Return lines of JSON, some of which are odd."""
    usual = pick(rng, [[1, 2.5], [[1, 2], [3, 4.5]], ["x", "yy"], VALUES])
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 4))]
    lines = []
    for _ in range(rng.integers(0, 7)):
        record = {name: draw_or_odd(rng, 0.04, VALUES, usual) for name in names if chance(rng, 0.9)}
        record["y"] = draw_or_odd(rng, 0.1, [0, 1, "a", None, 1.5, [1], True], ["p", "q"])
        line = json.dumps(record if chance(rng, 0.99) else pick(rng, VALUES))
        lines.append(line if chance(rng, 0.99) else line[: rng.integers(len(line) + 1)])
    return "\n".join(lines).encode()


def libsvm_bytes(rng):
    """Return rows of libsvm, some of which are odd."""
    odd = ["0:1", "-1:2", "99999999999:1", "5", "x:1", "3:nan", "3:1e999", "2:", "2147483648:1", ":"]
    rows = []
    for _ in range(rng.integers(0, 7)):
        pairs = [f"{j}:{rng.integers(-3, 9)}" for j in np.unique(rng.integers(1, 9, size=rng.integers(0, 4)))]
        pairs += [pick(rng, odd)] if chance(rng, 0.06) else []
        rows.append(" ".join([draw_or_odd(rng, 0.03, ["x", "", "nan", "1,2"], ["1", "-1", "0"]), *pairs]))
    return "\n".join(rows).encode()


def npz_bytes(rng):
    """Return an archive of arrays, some of which are odd."""
    n = int(rng.integers(0, 6))
    arrays = {}
    names = [pick(rng, ["a", "b", "y", "x", "id"]) for _ in range(rng.integers(1, 5))]
    for name in dict.fromkeys([*names, "y"] if chance(rng, 0.8) else names):
        rows = n if chance(rng, 0.93) else int(rng.integers(0, 6))
        shape = draw_or_odd(rng, 0.07, [(), (rows, 0), (rows, 1, 2)], [(rows, 2), (rows, 3), (rows,)])
        array = np.asarray(np.round(rng.normal(size=shape) * 2))
        dtype = draw_or_odd(rng, 0.15, ["c16", "U2", "M8[D]", "f2", ">f8", "?", "S2", "i8"], ["f8"])
        arrays[name] = (array.astype("i8") if dtype == "M8[D]" else array).astype(dtype)
        if dtype == "f8" and array.size and chance(rng, 0.1):
            arrays[name].flat[0] = pick(rng, [np.nan, np.inf])
    if chance(rng, 0.03):
        arrays["o"] = np.array([{}, 1], dtype=object)
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def parquet_bytes(rng):
    """Return a table in Parquet, some columns of which are odd."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = int(rng.integers(0, 6))
    odd = [
        lambda: pa.array([{"a": 1}] * n), lambda: pa.array([b"x"] * n), lambda: pa.nulls(n),
        lambda: pa.array([[1, 2], [1]][i % 2] for i in range(n)), lambda: pa.array([[["x"]]] * n),
        lambda: pa.array(["a", None][i % 2] for i in range(n)), lambda: pa.array([True, None][i % 2] for i in range(n)),
        lambda: pa.array(np.arange(n).astype("M8[s]")), lambda: pa.array(["p"] * n).dictionary_encode(),
        lambda: pa.array([2**63] * n, pa.uint64()), lambda: pa.array([float("nan")] * n),
        lambda: pa.array([[None]] * n), lambda: pa.array([[1]] * n),
    ]  # fmt: skip
    names = list(dict.fromkeys(pick(rng, NAMES) for _ in range(rng.integers(1, 5))))
    columns = [draw_or_odd(rng, 0.15, odd, [lambda: pa.array(rng.normal(size=n))])() for _ in names]
    if chance(rng, 0.85) and "y" not in names:
        names, columns = [*names, "y"], [*columns, pa.array(["u", "v"][i % 2] for i in range(n))]
    if chance(rng, 0.04):
        names = [names[0]] * len(names)
    target = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=names), target)
    return target.getvalue()


def spoil(rng, content):
    """Cut a file, put marks or bytes into it, or leave it as it is, which is most common."""
    place = int(rng.integers(len(content) + 1))
    begin, end = content[:place], content[place:]
    changes = [begin, b"", b"\xef\xbb\xbf" + content, b"\n\n  \n" + content, begin + b"\xe9\xff" + end]
    changes += [begin + b"\0" + end, begin + bytes([7]) + end[1:]]
    return pick(rng, [content] * 28 + changes)


def fuzz_frame(rng):
    """Read an odd frame, dict or list by as_views: Views, or a sentence."""
    import pandas as pd

    n = int(rng.integers(0, 5))
    odd = [None, float("nan"), float("inf"), "x", 1, True, 2.5, [1], {}, b"x", 1j, pd.NA, pd.NaT, 10**400,
           np.float32(2), (1, 2)]  # fmt: skip

    def column():
        return rng.normal(size=n) if chance(rng, 0.7) else [pick(rng, odd) for _ in range(n)]

    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 5))]
    forms = {
        "frame": lambda: pd.DataFrame(dict(enumerate(column() for _ in names))).set_axis(names, axis=1),
        "categories": lambda: pd.DataFrame({name: pd.Categorical(list("abcde"[:n])) for name in names}),
        "dict": lambda: {name: column() for name in names},
        "dict of rows": lambda: {name: [column() for _ in range(n)] for name in names},
        "list": lambda: [np.atleast_2d(rng.normal(size=(n, 2))) if chance(rng, 0.8) else column() for _ in names],
        "rows": lambda: [[pick(rng, odd) if chance(rng, 0.1) else 1.5 for _ in range(2)] for _ in range(n)],
        "scalar": lambda: pick(rng, odd),
        "object array": lambda: np.array([pick(rng, odd) for _ in range(4)] + [None], dtype=object)[:4].reshape(2, 2),
        "masked": lambda: np.ma.masked_array(rng.normal(size=(n, 2)), mask=rng.random((n, 2)) > 0.7),
    }
    form = pick(rng, list(forms))
    try:
        X = forms[form]()
    except Exception as error:
        raise Refused("not a table") from error
    choices = ["prefix", {"v": [0]}, {"v": ["x"]}, [slice(0, 1), slice(1, 3)], {"v": [True, False]}]
    views = pick(rng, [None] * 4 + choices)
    describe(lambda: f"as_views({form}: {X!r:.300}, {views=})")
    got = take(lambda: as_views(X, views))
    attempt(got.check_finite)
    attempt(lambda: repr(got) + got._repr_html_())


# -- sparse matrices
SPARSE_ACTS = ("as_views", "fit", "predict", "partial_fit", "learn_one", "fusion")


def fuzz_sparse(rng):
    """Give a sparse matrix whose parts may be broken: refused by name, or read like the dense matrix it stands for."""
    act = pick(rng, SPARSE_ACTS)
    n, d = 1 if act == "learn_one" else int(rng.integers(2, 12)), int(rng.integers(1, 6))
    dense = np.round(rng.normal(size=(n, d)) * 2) * (rng.random((n, d)) > 0.4)
    matrix = pick(rng, [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])(dense)
    note, sound = break_matrix(rng, matrix)
    expected = twin_of(matrix) if sound else None
    y = np.arange(n) % 2

    describe(lambda: f"{note} ({act} of {matrix.format} {matrix.dtype} {n}x{d})")
    got, sentence = attempt(lambda: sparse_act(act, matrix, dense, y))
    if sentence:
        assert not sound, f"a sound matrix is refused ({sentence})"
        assert "'s'" in sentence or "'view0'" in sentence or "1d" in sentence, f"{sentence!r} names no view"
        raise Refused(sentence)
    assert sound, "a broken matrix is taken"
    wanted = sparse_act(act, expected, dense, y)
    single = matrix.dtype == np.float32
    same = np.allclose(got, wanted, rtol=1e-3 if single else 1e-6, atol=1e-4 if single else 1e-9)
    assert same, f"not as the dense matrix: {got.tolist()} and {wanted.tolist()}"


def sparse_act(act, given, dense, y):
    """Use a matrix as the view 's' in one of the places that take data, and return numbers."""
    if act == "as_views":
        block = as_views({"s": given})["s"]
        return block.toarray() if sp.issparse(block) else block
    if act in ("fit", "fusion", "predict"):
        model = cs.CoRegularizedRidge(Linear() if act == "fit" else RBF(0.5), alpha=0.1)
        model = cs.EarlyFusion(Ridge(solver="cholesky", fit_intercept=False)) if act == "fusion" else model
        train, new = (dense, given) if act == "predict" else (given, dense)
        return model.fit({"s": train}, y * 1.0).predict({"s": new})
    model = cs.OnlinePerceptron()
    if act == "partial_fit":
        return model.partial_fit({"s": given}, y, classes=[0, 1]).decision_function({"s": dense})
    model.partial_fit({"s": np.ones((2, dense.shape[1]))}, [0, 1], classes=[0, 1])
    for label in (1, 0, 1):
        model.learn_one({"s": given if sp.issparse(given) else given[0]}, label)
    return model.decision_function({"s": dense})


def break_matrix(rng, matrix):
    """Change the parts of a sparse matrix in place; return what was done, and whether it still stands for a matrix."""
    style = pick(rng, ["none", "unsorted", "repeated", "int64", "far", "negative", "decreasing", "lengths", "start",
                       "end", "dtype", "read-only", "stale"])  # fmt: skip
    size = len(matrix.data)
    if style == "none" or size == 0:
        return "as it is", True
    if style == "dtype":
        matrix.data = matrix.data.astype(pick(rng, ["f4", "i4", "i8", "f8"]))
        return f"dtype {matrix.dtype}", True
    if matrix.format == "coo":
        return break_coordinates(rng, matrix, style)
    if style in ("unsorted", "stale"):
        matrix.has_canonical_format  # the flags are computed before, and wrong after, where they are stale
        for i in range(len(matrix.indptr) - 1):
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            matrix.indices[part], matrix.data[part] = matrix.indices[part][::-1].copy(), matrix.data[part][::-1].copy()
        if style == "unsorted":
            matrix.has_sorted_indices = matrix.has_canonical_format = False
    elif style == "repeated":
        matrix.indices, matrix.data = np.repeat(matrix.indices, 2), np.repeat(matrix.data, 2)
        matrix.indptr = matrix.indptr * 2
        for flag in ("_has_canonical_format", "_has_sorted_indices"):
            matrix.__dict__.pop(flag, None)
    elif style == "int64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    elif style == "read-only":
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
    elif style in ("far", "negative"):
        far = pick(rng, [matrix.shape[1] + matrix.shape[0], 10**4, 2**31 - 1])
        matrix.indices[rng.integers(size)] = far if style == "far" else -far
    elif style == "decreasing":
        place = rng.integers(1, len(matrix.indptr) - 1) if len(matrix.indptr) > 2 else 1
        matrix.indptr[place] = pick(rng, [-1, size + 5, 10**6])
    elif style == "lengths":
        matrix.indices = matrix.indices[: size // 2]
    elif style == "start":
        matrix.indptr[0] = pick(rng, [1, -3]) if size > 1 else -3
    else:
        matrix.indptr[-1] = size + int(pick(rng, [1, 1000, 10**8]))
    return style, style in ("unsorted", "stale", "repeated", "int64", "read-only")


def break_coordinates(rng, matrix, style):
    """Change the coordinates of a COO matrix."""
    row, column = (np.array(part) for part in matrix.coords)
    if style in ("far", "negative", "start"):
        place = rng.integers(len(row))
        (row if chance(rng, 0.5) else column)[place] = pick(rng, [100, 10**6]) * (1 if style == "far" else -1)
        matrix.coords = (row, column)
        return f"coordinate {style}", False
    if style in ("lengths", "end"):
        matrix.coords = (row[:-1], column)
        return "coordinates of other length", False
    order = np.repeat(rng.permutation(len(row)), 2 if style == "repeated" else 1)
    matrix.coords, matrix.data = (row[order], column[order]), matrix.data[order]
    matrix.has_canonical_format = False
    return f"coordinates {style}", True


def twin_of(matrix):
    """Return the dense matrix that a sparse one stands for, entry by entry."""
    if matrix.format == "coo":
        rows, columns = matrix.coords
    else:
        rows, columns = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr)), matrix.indices
        rows, columns = (rows, columns) if matrix.format == "csr" else (columns, rows)
    dense = np.zeros(matrix.shape)
    for i, j, value in zip(rows, columns, matrix.data, strict=True):
        dense[i, j] += value
    return dense


# -- views and their twin
def fuzz_views(rng):
    """Apply random operations to Views and to a dict of plain rows: both hold the same."""
    n = int(rng.integers(1, 9))
    mask = draw_mask(rng, n, 3, share=0.6, hostile=False)
    there = np.ones((n, 3), dtype=bool) if mask is None else mask
    raw = {"a": np.round(rng.normal(size=(n, int(rng.integers(1, 4)))) * 2)}
    raw |= {"s": np.round(rng.normal(size=(n, 2))) * (rng.random((n, 2)) > 0.5), "t": draw_strings(rng, n)}
    rows = {v: part.tolist() if v != "t" else part for v, part in raw.items()}
    twin = {v: [rows[v][i] if there[i, j] else None for i in range(n)] for j, v in enumerate(raw)}
    given = {**raw, "s": pick(rng, [sp.csr_array, sp.csc_array, sp.coo_array])(raw["s"])}
    form = pick(rng, ["mask", "dict", "marked"])
    if form == "dict" and mask is not None:
        mask = {v: mask[:, j] for j, v in enumerate(raw)}
    elif form == "marked" and mask is not None:
        given, mask = {**given, "a": np.where(there[:, :1], raw["a"], np.nan), "t": twin["t"]}, {"s": mask[:, 1]}
    X = Views(given, mask=mask)
    trail = [f"{n} samples", f"mask {form}" if mask is not None else "no mask"]
    describe(lambda: ", ".join(trail))
    for _ in range(rng.integers(1, 5)):
        X, twin, step = one_step(rng, X, twin)
        trail.append(step)
        check_twin(X, twin)


def one_step(rng, X, twin):
    """Apply one random operation to Views and to the twin."""
    n = len(X)
    step = pick(rng, ["rows", "rows", "mask", "slice", "select", "align", "concat", "side", "rename", "again", "each"])

    def taken(rows):
        return {v: [part[i] for i in rows] for v, part in twin.items()}

    if step in ("rows", "mask", "slice"):
        rows = rng.integers(-n, n, size=rng.integers(1, 6))
        key = rows.tolist() if chance(rng, 0.5) else rows
        if step == "mask":
            key = rng.random(n) > 0.3
            key[rng.integers(n)] = True
            rows = np.flatnonzero(key)
        if step == "slice":
            key = slice(int(rng.integers(n)), None, pick(rng, [None, 1, 2]))
            rows = np.arange(n)[key]
        return X[key], taken(rows), f"rows {np.asarray(rows).tolist()}"
    if step == "select":
        kept = [v for v in X.names if chance(rng, 0.8)]
        if kept and all(any(twin[v][i] is not None for v in kept) for i in range(n)):
            order = [kept[i] for i in rng.permutation(len(kept))]
            return X[order], {v: twin[v] for v in order}, f"select {order}"
    if step == "align":
        order = [[*X.names, "z"][i] for i in rng.permutation(len(X.names) + 1)] if "z" not in X.names else list(X.names)
        return X.align(order), {v: twin.get(v, [None] * n) for v in order}, f"align {order}"
    if step == "concat":
        cut, whole = int(rng.integers(0, n + 1)), chance(rng, 0.5)
        parts = [X, X[:cut]] if whole else [X[:cut], X[cut:]]
        joined = Views.concat([part for part in parts if len(part)])
        return joined, taken([*range(n), *range(cut)] if whole else range(n)), f"concat at {cut}"
    if step == "side" and "w" not in X.names:
        other = rng.normal(size=(n, 1))
        return X | Views(w=other), {**twin, "w": other.tolist()}, "side by side"
    if step == "rename" and "q" not in X.names:
        old = X.names[0]
        return X.renamed({old: "q"}), {("q" if v == old else v): part for v, part in twin.items()}, "rename"
    if step == "again":
        return Views(X), twin, "Views of Views"
    if step == "each":
        return Views.concat(list(X)), twin, "row by row"
    return X, twin, "nothing"


def check_twin(X, twin):
    """Check that Views hold what the twin holds: names, presence, values."""
    n = len(next(iter(twin.values())))
    assert X.names == tuple(twin), f"names {X.names} and {tuple(twin)}"
    assert len(X) == n == X.shape[0], f"{len(X)} samples, not {n}"
    complete = all(x is not None for part in twin.values() for x in part)
    assert (X.mask is None) == complete, f"mask {X.mask}"
    for v, part in twin.items():
        there = [x is not None for x in part]
        assert X.present(v).tolist() == there, f"view {v} present {X.present(v).tolist()}, not {there}"
        block = X[v]
        if block is None:
            assert not any(there), f"view {v} is missing"
            continue
        rows = (block.toarray() if sp.issparse(block) else block).tolist()
        wrong = [i for i in range(n) if there[i] and rows[i] != part[i]]
        assert not wrong, f"view {v} row {wrong[0]} is {rows[wrong[0]]}, not {part[wrong[0]]}"
        filled = sp.issparse(block) and any(any(rows[i]) for i in range(n) if not there[i])
        assert not filled, f"missing rows of {v} hold data"
    assert X[list(range(n))] == X, "not equal to itself"


# -- running cases
# name: number of the kind, function, whether each batch runs in a child process, least share of cases not refused
KINDS = {
    "batch": (1, fuzz_batch, False, 0.5),
    "weights": (2, fuzz_weights, False, 0.5),
    "chunks": (3, fuzz_chunks, False, 0.6),
    "files": (4, fuzz_files, True, 0.1),
    "tables": (5, fuzz_tables, False, 0.25),
    "sparse": (6, fuzz_sparse, True, 0.3),
    "views": (7, fuzz_views, False, 0.9),
}


def run_case(kind, seed, raising=False):
    """Run one case; return its outcome, which begins with "failed" where a property does not hold."""
    number, function, _, _ = KINDS[kind]
    CASE.what = lambda: f"{kind} {seed}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(np.random.default_rng([number, seed]))
            return "passed"
        except Refused as refusal:  # its first words, without names and numbers
            return "refused: " + " ".join(re.sub(r"'[^']*'|\d[\d.e+-]*", "_", str(refusal)).split()[:5])
        except Exception as error:
            if raising:
                raise
            return f"failed: {error if isinstance(error, AssertionError) else explain(error)} in {CASE.what()}"


@contextmanager
def captured_output():
    """Collect what is written to the file descriptors of output and errors, as BLAS does; yield a function for it."""
    with tempfile.TemporaryFile() as target:

        def written():
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            ctypes.CDLL(None).fflush(None)
            text = os.pread(target.fileno(), 10_000, 0).decode(errors="replace").strip()
            os.lseek(target.fileno(), 0, os.SEEK_SET)
            os.ftruncate(target.fileno(), 0)
            return text

        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        try:
            for descriptor in (1, 2):
                os.dup2(target.fileno(), descriptor)
            yield written
        finally:
            for descriptor, old in zip((1, 2), kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)


def run_cases(kind, seeds, tell):
    """Run cases one after the other; `tell` gets a message before and after each."""
    with captured_output() as written:
        for seed in seeds:
            tell(("start", seed))
            outcome, text = run_case(kind, seed), written()
            tell(("end", seed, f"failed: wrote {text[:200]!r} past Python's output" if text else outcome[:3000]))


def run_in_child(kind, seeds):
    """Run cases in a child process; return the messages, and how it ended where that was not well."""
    receiving, sending = FORK.Pipe(duplex=False)

    def work():
        faulthandler.disable()  # the parent says which case crashed
        CASE.tell = sending.send
        run_cases(kind, seeds, sending.send)

    child = FORK.Process(target=work)
    child.start()
    sending.close()
    messages, ending = [], ""
    try:
        while receiving.poll(SEARCHED):
            messages.append(receiving.recv())
        child.kill()
        ending = f"no result in {SEARCHED} seconds"
    except EOFError:  # the child has ended
        pass
    child.join()
    if child.exitcode < 0 and not ending:
        ending = signal.Signals(-child.exitcode).name
    return messages, ending


FORK = multiprocessing.get_context("fork")


@functools.cache
def warm_up(kind):
    """Load compiled functions before a process forks, so that not every child loads them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "files":
            for _, _, model, X, y in pool():
                use(model, model, X, y)
        if kind == "sparse":
            for act, form in itertools.product(SPARSE_ACTS, (np.asarray, sp.csr_array)):
                dense = np.eye(1) if act == "learn_one" else np.eye(4)
                sparse_act(act, form(dense), dense, np.arange(len(dense)) % 2)


def run(kind, seeds):
    """Run cases of a kind; return seed -> outcome. A crash is the failure of its case; another child goes on."""
    outcomes, todo, messages, ending = {}, list(seeds), [], ""
    while todo:
        if KINDS[kind][2]:
            warm_up(kind)
            messages, ending = run_in_child(kind, todo)
        else:
            run_cases(kind, todo, messages.append)
        started = [message[1] for message in messages if message[0] == "start"]
        outcomes.update({message[1]: message[2] for message in messages if message[0] == "end"})
        if ending and not started:
            raise RuntimeError(f"The child process ended with {ending} before its first case.")
        if ending and started[-1] not in outcomes:
            about = f" ({messages[-1][1]})" if messages[-1][0] == "about" else ""
            outcomes[started[-1]] = f"failed: the process ended with {ending}{about}"
        todo = [seed for seed in todo if seed not in outcomes]
    return outcomes


def failures(outcomes):
    """Return the cases that failed, as seed -> description."""
    return {seed: outcome for seed, outcome in outcomes.items() if outcome.startswith("failed")}


def report(kind, outcomes):
    """Print counts by outcome, and for each cause of failure how to run one case again."""
    counts = Counter(outcome.split(":")[0] for outcome in outcomes.values()).most_common()
    print(f"{kind:8s} {len(outcomes):7d} cases: " + ", ".join(f"{count} {what}" for what, count in counts))
    causes = {}
    for seed, outcome in sorted(failures(outcomes).items()):  # of one cause: the same words, other names and numbers
        words = re.sub(r"'[^']*'|(?<!\.py:)[-+]?\b\d[\d.e+-]*", "#", outcome[8:].split("(")[0])
        causes.setdefault(words[:110], []).append(seed)
    for cause, seeds in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds)} x {cause}")
        print(f"    python tests/fuzz.py --kind {kind} --seed {seeds[0]}    {outcomes[seeds[0]][8:900]}")


def replay(kind, seed):
    """Run one case in this process, or in a child where it may crash, and print all there is to know."""
    outcome = run(kind, [seed])[seed]
    print(f"{kind} {seed}: {outcome}")
    if outcome.startswith("failed") and "the process ended" not in outcome:
        try:
            run_case(kind, seed, raising=True)
        except Exception:
            traceback.print_exc()
    return int(outcome.startswith("failed"))


def main(arguments=None):
    """Run cases from the command line; the exit status is 1 where a property fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=list(KINDS), help="One kind of cases; all by default.")
    parser.add_argument("--seed", type=int, help="The first seed; with --kind alone, the one case to run again.")
    parser.add_argument("--cases", type=int, help="How many cases of each kind.")
    parser.add_argument("--seconds", type=float, help="How long to go on.")
    given = parser.parse_args(arguments)
    if given.kind and given.seed is not None and given.cases is None and given.seconds is None:
        return replay(given.kind, given.seed)
    outcomes = {kind: {} for kind in ([given.kind] if given.kind else KINDS)}
    count = given.cases if given.cases is not None else None if given.seconds else 200
    end = time.monotonic() + given.seconds if given.seconds else float("inf")
    first = given.seed or 0
    for start in itertools.count(first, 50):
        last = start + 50 if count is None else min(start + 50, first + count)
        for kind in outcomes:
            if time.monotonic() < end:
                outcomes[kind].update(run(kind, range(start, last)))
        if time.monotonic() >= end or (count is not None and last >= first + count):
            break
    for kind in outcomes:
        report(kind, outcomes[kind])
    return int(any(failures(of_kind) for of_kind in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
