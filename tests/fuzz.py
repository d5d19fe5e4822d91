"""Random cases of the kinds that have found faults in this library, with the properties that must hold for each.

    python tests/fuzz.py --seconds 600 --seed 1000      every kind in turn, until the time is over
    python tests/fuzz.py --kind batch --cases 500       the seeds 0 to 499 of one kind
    python tests/fuzz.py --kind batch --seed 17         exactly one case again, with the whole traceback

With NUMBA_BOUNDSCHECK=1 compiled loops raise IndexError where they leave their arrays, which is a failure.

A kind is a function of a random generator. It returns "answered" or "refused: <first words>", and raises
AssertionError where a property fails. The case of seed K is made by ``np.random.default_rng([number of the kind, K])``.
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
import re
import select
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

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import consilience as cs
from consilience import Views, as_views
from consilience.kernels import (
    RBF,
    ChiSquared,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Spectrum,
    center,
    normalize,
)
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


# -- properties that all kinds share
def attempt(what, call, *, also=(), foreign=False, any_text=False):
    """Return the answer and None, or None and the sentence of the refusal; anything else is a failure.

    `what` is a function that describes the case and `also` are more exceptions that may refuse. With `foreign` the
    sentence may be that of a wrapped estimator, with `any_text` anybody's.
    """
    try:
        return call(), None
    except (ValueError, TypeError, *also) as error:
        if any_text:
            return None, str(error)
        if isinstance(error, np.linalg.LinAlgError):
            raise AssertionError(f"{explain(error)} in {what()}") from error
        check_sentence(what, error, foreign)
        return None, str(error)
    except Exception as error:
        raise AssertionError(f"{explain(error)} in {what()}") from error


def check_sentence(what, error, foreign=False):
    """Check that a refusal is a sentence of ours, not a text of NumPy, SciPy or LAPACK."""
    text = str(error).strip("'\" \n")
    if any(part in text.lower() for part in RAW) or text.lower().startswith(RAW_STARTS):
        raise AssertionError(f"raw text {explain(error)} in {what()}") from error
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    if foreign and "/consilience/" not in traceback.extract_tb(first.__traceback__)[-1].filename:
        return
    if len(text) <= 20 or not text.endswith((".", ".)")) or re.search(r"(?<!\.)\.\. ", text):
        raise AssertionError(f"no sentence: {explain(error)} in {what()}") from error


def explain(error):
    """Return the type of an exception, the last place in the library that it went through, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/consilience/" in frame.filename]
    place = f" at {frames[-1].filename.rpartition('/consilience/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:300]!r}"


def refused(sentence):
    """Return the outcome of a refusal: its first words, without names and numbers."""
    words = re.sub(r"'[^']*'|\d[\d.e+-]*", "_", sentence).split()
    return "refused: " + " ".join(words[:5])


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
    """Describe data or parameters in a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {show(part)}" for key, part in value.items()) + "}"
    if sp.issparse(value):
        return f"{value.format}({value.dtype}, {value.shape})"
    if isinstance(value, np.ndarray):
        largest = (
            f" up to {np.nanmax(np.abs(value), initial=0.0):.3g}" if value.dtype.kind == "f" and value.size else ""
        )
        return f"array({value.dtype}, {value.shape}{largest})" if value.size > 8 else f"array({value.tolist()})"
    if isinstance(value, Views):
        return " ".join(repr(value).split())
    return repr(value)[:200]


def show_model(model):
    """Describe an estimator with all its parameters that are not the defaults."""
    return " ".join(model.__repr__(N_CHAR_MAX=2000).split()) if hasattr(model, "get_params") else repr(model)


# -- data
def draw_table(rng, n, hostile=True):
    """Return n rows of 1 to 6 columns: continuous or whole numbers, constant, repeated, collinear, tiny or huge."""
    X = rng.normal(size=(n, int(rng.integers(1, 7))))
    style = pick(rng, ["normal", "normal", "normal", "whole", "counts", "constant", "repeated", "collinear", "zeros"])
    if style == "whole":
        X = np.round(2 * X)
    elif style == "counts":
        X = np.abs(np.round(2 * X))
    elif style == "constant":
        X[:, 0] = 1.0
    elif style == "repeated":
        X = X[rng.integers(n, size=n)]
    elif style == "collinear":
        X = X[:, :1] * np.arange(1, X.shape[1] + 1)
    elif style == "zeros":
        X *= rng.random(X.shape) > 0.7
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
    choices = [Linear(), RBF(gamma), RBF(gamma), Polynomial(degree=2, constant=1.0), Laplacian(gamma), RBF(gamma) + 0.5]
    choices.append(normalize(Polynomial(degree=2, constant=1.0)))
    if X.min(initial=0.0) >= 0:
        choices += [ChiSquared(gamma), Intersection()]
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


def draw_views(rng, n, hostile=True, fixed=False, kinds=("dense", "dense", "dense", "sparse", "strings", "gram")):
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
            kernels[name] = draw_numeric_kernel(rng, X, fixed)
            with np.errstate(over="ignore"):
                X = X.astype(np.float32) if chance(rng, 0.2) else X
            data[name] = sp.csr_array(X) if kind == "sparse" else X
    return data, kernels, grams, draw_mask(rng, n, len(data), hostile=hostile)


def draw_targets(rng, n, hostile=True):
    """Return targets of regression: one output or several, some missing, constant, or of any scale."""
    Y = rng.normal(size=(n, int(rng.integers(1, 4)))) if chance(rng, 0.35) else rng.normal(size=n)
    if hostile and chance(rng, 0.2):
        Y = Y * magnitude(rng, -6, 6, extreme=0.4)
    if hostile and chance(rng, 0.08):
        Y = np.zeros_like(Y)
    if chance(rng, 0.25):
        Y[rng.random(n) < rng.uniform(0, 0.8)] = np.nan
    return Y


def draw_labels(rng, n):
    """Return labels of 1 to 4 classes: whole numbers, strings, booleans or floats, some missing."""
    n_classes = int(rng.integers(1, 5)) if chance(rng, 0.2) else int(rng.integers(2, 4))
    codes = rng.integers(n_classes, size=n)
    codes[: min(n, n_classes)] = np.arange(min(n, n_classes))
    kind = pick(rng, ["int", "int", "str", "bool", "float"])
    names = {"int": np.array([3, -1, 7, 0]), "str": np.array(["x", "y", "a", "zz"])}
    names |= {"bool": np.array([False, True, False, True]), "float": np.array([0.0, 1.0, 2.0, -1.0])}
    labels = names[kind][codes]
    if chance(rng, 0.2):
        labels = labels.astype(object)
        labels[rng.random(n) < rng.uniform(0, 0.7)] = pick(rng, [None, np.nan])
    return labels


def draw_weights(rng, n, hostile=True):
    """Return sample weights or None: ones, some of them zero, or of any scale."""
    style = pick(rng, ["none", "none", "none", "ones", "zeros", "random", "extreme" if hostile else "ones"])
    if style == "none":
        return None
    if style == "extreme":
        return np.array([magnitude(rng, extreme=0.5) for _ in range(n)])
    return np.ones(n) if style == "ones" else rng.integers(3, size=n) * 1.0 if style == "zeros" else rng.random(n)


# -- estimators
def draw_view_weights(rng, m):
    """Return weights of views: mostly uniform ones, else numbers, and now and then learned ones, which take longer."""
    return "learned" if chance(rng, 0.1) else pick(rng, ["uniform", "uniform", rng.normal(size=m).tolist()])


def _coregularized(rng, m):
    return {
        "alpha": magnitude(rng, -5, 1),
        "agreement_penalty": pick(rng, [0.0, magnitude(rng)]),
        "graph_penalty": pick(rng, [0.0, 0.0, magnitude(rng)]),
        "graph": pick(rng, ["kernel", "kernel", "kernel_normalized", "knn"]),
        "view_weights": draw_view_weights(rng, m),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "max_iter": 6, "n_restarts": 1, "random_state": 0,
    }  # fmt: skip


def _coregularized_cv(rng, m):
    return {
        "alphas": tuple(magnitude(rng, -5, 1) for _ in range(rng.integers(1, 3))),
        "agreement_penalties": pick(rng, [(0.0,), (0.0, magnitude(rng))]),
        "graph_penalty": pick(rng, [0.0, 0.0, magnitude(rng)]),
        "cv": pick(rng, [None, None, 2, 3]),
    }  # fmt: skip


def _svc(rng, m):
    return {**_coregularized(rng, m), "class_vectors": pick(rng, ["ovr", "ovr", "simplex"])}


def _metric(rng, m):
    return {
        "metric": pick(rng, ["learned", "block_sparse", "covariance", "diagonal"]),
        "alpha": magnitude(rng, -4, 1),
        "metric_penalty": magnitude(rng, -2, 2),
        "shared_metric": chance(rng, 0.1),
        "view_weights": draw_view_weights(rng, m),
        "solver": pick(rng, ["exact", "exact", "exact", "alternating"]),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "max_iter": 6, "n_restarts": 1, "random_state": 0,
    }  # fmt: skip


def _metric_cv(rng, m):
    return {
        "metric": pick(rng, ["learned", "block_sparse", "covariance", "diagonal"]),
        "alphas": tuple(magnitude(rng, -4, 1) for _ in range(rng.integers(1, 3))),
        "metric_penalties": (magnitude(rng, -2, 2),),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "max_iter": 6, "random_state": 0,
    }  # fmt: skip


def _multiple_kernel(rng, m):
    return {
        "p": pick(rng, [1.0, 1.5, 2.0, 2.0, float("inf")]),
        "alpha": magnitude(rng, -3, 2),
        "shared_weights": chance(rng, 0.8),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "max_iter": 20, "random_state": 0,
    }  # fmt: skip


def _output_kernel(rng, m):
    return {
        "alpha": magnitude(rng, -3, 2),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "max_iter": 20, "random_state": 0,
    }  # fmt: skip


def _margin(rng, m):
    return {
        "C": magnitude(rng, -3, 3),
        "combine": pick(rng, ["sum", "sum", "sum", "product", Polynomial(degree=2, constant=1.0)]),
        "fit_intercept": chance(rng, 0.2),
        "n_components": pick(rng, [None, None, None, 2, 0.5]),
        "tol": pick(rng, [1e-3, 1e-8]),
        "max_iter": 100, "random_state": 0,
    }  # fmt: skip


def _margin_classes(rng, m):
    return {**_margin(rng, m), "class_vectors": pick(rng, ["simplex", "simplex", "indicator", "mean"])}


def _margin_outputs(rng, m):
    return {**_margin(rng, m), "output_kernel": RBF(magnitude(rng, -2, 1))}


def _fusion_classes(rng, m):
    return {"estimator": pick(rng, [RidgeClassifier(), GaussianNB(), LogisticRegression(max_iter=20)])}


def _fusion_numbers(rng, m):
    return {"estimator": pick(rng, [Ridge(), Ridge(alpha=magnitude(rng)), DecisionTreeRegressor(max_depth=2)])}


# every batch estimator: the task it solves, and a function that draws its parameters
BATCH = {
    "CoRegularizedRidge": ("numbers", _coregularized),
    "CoRegularizedRidgeCV": ("numbers", _coregularized_cv),
    "CoRegularizedRidgeClassifier": ("classes", _coregularized),
    "CoRegularizedRidgeClassifierCV": ("classes", _coregularized_cv),
    "CoRegularizedSVC": ("classes", _svc),
    "ViewMetricRidge": ("numbers", _metric),
    "ViewMetricRidgeCV": ("numbers", _metric_cv),
    "ViewMetricRidgeClassifier": ("classes", _metric),
    "ViewMetricRidgeClassifierCV": ("classes", _metric_cv),
    "MultipleKernelRidge": ("numbers", _multiple_kernel),
    "MultipleKernelRidgeClassifier": ("classes", _multiple_kernel),
    "OutputKernelRidge": ("numbers", _output_kernel),
    "MaxMarginClassifier": ("classes", _margin_classes),
    "MaxMarginRegressor": ("numbers", _margin_outputs),
    "EarlyFusion classifier": ("classes", _fusion_classes),
    "EarlyFusion regressor": ("numbers", _fusion_numbers),
    "LateFusion classifier": ("classes", _fusion_classes),
    "LateFusion regressor": ("numbers", _fusion_numbers),
}


# -- batch estimators on hostile data
def fuzz_batch(rng):
    """Fit any batch estimator on any data: it answers in finite numbers, or refuses and stays as it was."""
    name = pick(rng, list(BATCH))
    task, parameters = BATCH[name]
    fusion = "Fusion" in name
    n = int(rng.integers(1, 4)) if chance(rng, 0.08) else int(rng.integers(4, 25))
    kinds = ("dense", "dense", "sparse") if fusion else ("dense", "dense", "dense", "sparse", "strings", "gram")
    data, kernels, grams, mask = draw_views(rng, n + 4, kinds=kinds)
    push_far(rng, data, n + 3, grams)
    model = getattr(cs, name.split()[0])(**parameters(rng, len(data)), **({} if fusion else {"kernels": kernels}))
    y = draw_targets(rng, n) if task == "numbers" else draw_labels(rng, n)
    weights = draw_weights(rng, n)
    if name == "LateFusion classifier" or name == "EarlyFusion classifier":
        weights = None if chance(rng, 0.5) else weights

    def what():
        return f"{show_model(model)}.fit({show(data)}, {show(y)}, {show(weights)}) mask={mask is not None} n={n}"

    before = copies(data, y, weights)
    X, sentence = attempt(what, lambda: Views(data, mask=mask, precomputed=grams or None))
    if sentence:
        return refused(sentence)
    train, new = X[:n], X[n:]
    _, sentence = attempt(what, lambda: model.fit(train, y, weights), foreign=fusion)
    assert same_copies(before, copies(data, y, weights)), f"fit changed its input in {what()}"
    if sentence:
        check_refused_refit(rng, what, model, train, y, weights, fusion)
        return refused(sentence)
    for rows in (train, new):
        check_predictions(lambda: f"predict after {what()}", model, rows, task, fusion)
    check_certificate(what, model)
    assert same_copies(before, copies(data, y, weights)), f"predict changed its input in {what()}"
    return "answered"


def push_far(rng, data, row, grams):
    """Move one row of new data far away, in half of the cases."""
    if chance(rng, 0.5):
        return
    for name, value in data.items():
        if isinstance(value, np.ndarray) and name not in grams:
            with np.errstate(over="ignore"):
                value[row] *= value.dtype.type(magnitude(rng, 1, 8, extreme=0.2))


def copies(data, y, weights):
    """Return copies of what was given, to compare it with later."""
    parts = []
    for value in (*data.values(), y, weights):
        if sp.issparse(value):
            parts += [value.data.copy(), value.indices.copy(), value.indptr.copy()]
        else:
            parts.append(value.copy() if isinstance(value, np.ndarray) else value)
    return parts


def same_copies(one, other):
    """Tell whether two lists of copies hold the same values."""
    return all(
        np.array_equal(a, b, equal_nan=getattr(a, "dtype", np.dtype(object)).kind == "f")
        if isinstance(a, np.ndarray) and a.dtype != object
        else [repr(x) for x in np.ravel(a)] == [repr(x) for x in np.ravel(b)]
        for a, b in zip(one, other, strict=True)
    )


def check_predictions(what, model, X, task, foreign=False):
    """Check that predictions and scores are finite, or refused in a sentence."""
    answer, sentence = attempt(what, lambda: model.predict(X), foreign=foreign)
    if sentence is None and task == "numbers":
        assert np.isfinite(np.asarray(answer, dtype=np.float64)).all(), f"predictions are not finite: {what()}"
    if sentence is None and task == "classes":
        assert len(answer) == len(X), f"a prediction for each row: {what()}"
        assert np.isin(answer, model.classes_).all(), f"predictions are not classes: {what()}"
    if task == "classes" and hasattr(model, "decision_function"):
        scores, _ = attempt(what, lambda: model.decision_function(X), foreign=foreign)
        finite = scores is None or np.isfinite(scores).all()
        assert finite, f"scores are not finite: {what()}"
    return answer


def check_certificate(what, model):
    """Check that a certificate has a known status and a gap that is None or finite and not negative."""
    certificate, sentence = attempt(what, model.certificate)
    assert sentence is None, f"certificate refused ({sentence}) in {what()}"
    assert certificate.status in STATUSES, f"status {certificate.status!r} in {what()}"
    gap = certificate.gap
    assert gap is None or (np.isfinite(gap) and gap >= 0), f"gap {gap!r}, status {certificate.status} in {what()}"
    attempt(what, lambda: str(certificate))


def check_refused_refit(rng, what, model, X, y, weights, foreign):
    """Check that a refused fit leaves a fitted model with exactly the predictions it had."""
    n = 8
    good = {}
    for name in X.names:
        kind = X.kind(name)
        if kind == "objects":
            good[name] = draw_strings(rng, n)
        elif kind == "gram":
            good[name] = draw_gram(rng, n, hostile=False)
        else:
            good[name] = np.abs(rng.normal(size=(n, 2)))
    labels = np.arange(n) % 2 if hasattr(model, "classes_") or "Classifier" in type(model).__name__ else None
    labels = rng.normal(size=n) if labels is None and np.asarray(y).dtype.kind == "f" else np.arange(n) % 2
    fitted = clone(model)
    good = Views(good, precomputed=[name for name in X.names if X.kind(name) == "gram"] or None)
    try:
        before = fitted.fit(good, labels).predict(good)
    except Exception:
        return  # the parameters are refused for all data
    _, sentence = attempt(what, lambda: fitted.fit(X, y, weights), foreign=foreign)
    if sentence:
        after, lost = attempt(lambda: f"refused refit, then predict: {what()}", lambda: fitted.predict(good))
        assert lost is None, f"after a refused refit predict says {lost!r} in {what()}"
        assert np.array_equal(before, after), f"a refused refit changed predictions in {what()}"


# -- weights that count samples
def _counted(rng, m):
    """Draw an estimator whose weights say how often a sample counts, and its task."""
    alpha = magnitude(rng, -3, 0, extreme=0)
    weights = pick(rng, ["uniform", "uniform", rng.uniform(0.2, 1, size=m).tolist()])
    terms = {"agreement_penalty": pick(rng, [0.0, 0.01, 0.3]), "graph_penalty": pick(rng, [0.0, 0.01]), "alpha": alpha}
    terms |= {"graph": pick(rng, ["kernel", "kernel_normalized"]), "view_weights": weights}
    tight = {"tol": 1e-13, "max_iter": 2000}
    metric = {"metric": pick(rng, ["learned", "block_sparse", "covariance", "diagonal"]), **tight}
    metric |= {"metric_penalty": magnitude(rng, -1, 1, extreme=0), "alpha": alpha}
    margin = {"C": magnitude(rng, -2, 1, extreme=0), "tol": 1e-12, "max_iter": 20000}
    margin |= {
        "combine": pick(rng, ["sum", "sum", Polynomial(degree=2, constant=1.0)]),
        "fit_intercept": chance(rng, 0.2),
    }
    p = {"p": pick(rng, [1.0, 1.5, 2.0]), "alpha": alpha, "shared_weights": chance(rng, 0.7), **tight}
    vectors = pick(rng, ["simplex", "indicator"])
    return [
        lambda: ("numbers", cs.CoRegularizedRidge(**terms)),
        lambda: ("classes", cs.CoRegularizedRidgeClassifier(**terms)),
        lambda: (
            "numbers",
            cs.CoRegularizedRidgeCV(alphas=(alpha,), agreement_penalties=(terms["agreement_penalty"],)),
        ),
        lambda: ("classes", cs.CoRegularizedSVC(tol=1e-12, max_iter=5000, **terms)),
        lambda: ("numbers", cs.ViewMetricRidge(view_weights=weights, **metric)),
        lambda: ("classes", cs.ViewMetricRidgeClassifier(**metric)),
        lambda: ("numbers", cs.ViewMetricRidgeCV(metric=metric["metric"], alphas=(alpha,), **tight)),
        lambda: ("numbers", cs.MultipleKernelRidge(**p)),
        lambda: ("classes", cs.MultipleKernelRidgeClassifier(**p)),
        lambda: ("numbers", cs.OutputKernelRidge(alpha=alpha, **tight)),
        lambda: ("classes", cs.MaxMarginClassifier(class_vectors=vectors, **margin)),
        lambda: ("answers", cs.MaxMarginRegressor(output_kernel=RBF(0.5), **margin)),
    ][rng.integers(12)]()


def fuzz_weights(rng):
    """Fit with whole weights, and fit with each row given that often: both predict the same."""
    n = int(rng.integers(3, 13))
    data, kernels, _, mask = draw_views(
        rng, n, hostile=False, fixed=True, kinds=("dense", "dense", "sparse", "strings")
    )
    data = {name: value.astype(np.float64) if hasattr(value, "astype") else value for name, value in data.items()}
    task, model = _counted(rng, len(data))
    model.set_params(kernel=kernels)
    if task == "answers":
        y = np.arange(n) % 3 * 1.0
    elif task == "numbers":
        y = rng.normal(size=(n, 2)) if chance(rng, 0.3) else rng.normal(size=n)
        y[rng.random(n) < pick(rng, [0.0, 0.0, 0.3])] = np.nan
    else:
        y = np.arange(n) % int(rng.integers(2, 4))
    weights = rng.integers(1, 4, size=n)
    weights[rng.random(n) < pick(rng, [0.0, 0.2])] = 0
    rows = np.repeat(np.arange(n), weights)

    def what():
        there = None if mask is None else mask.astype(int).tolist()
        return f"{show_model(model)} on {show(data)} mask={there} y={y.tolist()} weights={weights.tolist()}"

    X = Views(data, mask=mask)
    if task != "numbers" and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        return "refused: a class has no weight"
    if any(X.present(v).any() and not X.present(v)[weights > 0].any() for v in X.names):
        return "refused: a view has no weight"
    counted, no = attempt(what, lambda: clone(model).fit(X, y, weights.astype(float)))
    given, other = attempt(what, lambda: clone(model).fit(X[rows], y[rows]))
    assert (no is None) == (other is None), f"weights: {no}; repeated rows: {other}; in {what()}"
    if no:
        return refused(no)
    if {counted.certificate().status, given.certificate().status} - {"exact", "converged"}:
        return f"refused: status {counted.certificate().status} and {given.certificate().status}"
    method = {"numbers": "predict", "classes": "decision_function", "answers": "candidate_scores"}[task]
    shown = X[np.flatnonzero(weights > 0)]
    one, no = attempt(what, lambda: getattr(counted, method)(shown))
    two, other = attempt(what, lambda: getattr(given, method)(shown))
    assert (no is None) == (other is None), f"predict with weights: {no}; repeated rows: {other}; in {what()}"
    if no:
        return refused(no)
    limit = 1e-6 if counted.certificate().status == "exact" else 1e-4
    difference = np.abs(one - two).max() / max(np.abs(two).max(), 1e-3)
    assert difference <= limit, f"weight 2 is not twice the row, by {difference:.2g} in {what()}"
    return "answered"


# -- streams in chunks
def _online(rng):
    """Draw an online estimator, and whether it takes views that are missing."""
    average = pick(rng, [False, True, "voted"])
    kernel = pick(rng, [RBF(0.3), RBF(0.05), Polynomial(degree=2, constant=1.0)])
    margin, step = pick(rng, [0.0, 0.0, 0.5]), pick(rng, [1.0, 1.0, 0.3])
    usual = {"average": average, "margin": margin, "eta0": step}
    budget = pick(rng, [None, 3, 8])
    mean = chance(rng, 0.5)
    if budget is not None and average == "voted":
        average = True
    variant = {"variant": pick(rng, ["PA", "PA-I", "PA-II"]), "C": magnitude(rng, -2, 1, extreme=0)}
    bias = {"fit_intercept": chance(rng, 0.5)}
    prior = {"prior_norms": pick(rng, [None, 0.1]), "p": pick(rng, [1.0, 2.0, 3.0]), "aggressive": chance(rng, 0.3)}
    threshold = pick(rng, [0.0, 0.1, 0.5])
    return [
        lambda: cs.OnlinePerceptron(2, **usual, **bias),
        lambda: cs.OnlinePerceptron(3, **usual, **bias),
        lambda: cs.KernelPerceptron(kernel, **usual, **bias),
        lambda: cs.KernelPerceptron(kernel, average=average, budget=budget, **bias),
        lambda: cs.Projectron(
            kernel,
            threshold=threshold,
            variant="projectron++" if mean else "projectron",
            average=chance(rng, 0.5),
            budget=budget,
            **bias,
        ),
        lambda: cs.PassiveAggressive(average=usual["average"], **variant, **bias),
        lambda: cs.PassiveAggressive(kernel, average=average, budget=budget, **variant, **bias),
        lambda: cs.MatrixPerceptron(unequal=pick(rng, ["pad", "repeat"]), p=prior["p"], **usual),
        lambda: cs.MatrixPerceptron(kernel, unequal=pick(rng, ["pad", "repeat"]), p=prior["p"], **usual),
        lambda: cs.OrthogonalPerceptron(**prior, **usual),
        lambda: cs.OrthogonalPerceptron(kernel, **prior, **usual),
        lambda: cs.VectorPerceptron(kernel, eta0=step),
        lambda: cs.MultiCueClassifier(kernel, threshold=threshold, average=mean),
        lambda: cs.MultiCueClassifier(estimator=cs.OnlinePerceptron(), average=mean),
    ][rng.integers(14)]()


def draw_stream(rng, n):
    """Return Views, labels and the names of views that are sparse: missing and late views, ties, far values."""
    m = int(rng.integers(1, 4))
    data = {}
    kind, width = pick(rng, ["whole", "whole", "normal"]), int(rng.integers(1, 5))
    for name in "abc"[:m]:
        X = rng.normal(size=(n, width if chance(rng, 0.7) else int(rng.integers(1, 5))))
        X = np.round(X) if kind == "whole" else X
        if chance(rng, 0.1):
            X[rng.integers(n)] *= magnitude(rng, 2, 6, extreme=0.1)
        with np.errstate(over="ignore"):
            X = X.astype(np.float32) if chance(rng, 0.15) else X
        data[name] = sp.csr_array(X) if chance(rng, 0.2) else X
    mask = draw_mask(rng, n, m, share=0.6, hostile=False)
    if m > 1 and chance(rng, 0.3):
        mask = np.ones((n, m), dtype=bool) if mask is None else mask
        mask[: rng.integers(n), 0] = False
        mask[~mask.any(axis=1), 1] = True
    y = rng.integers(int(rng.integers(2, 5)), size=n)
    if chance(rng, 0.3):
        y = y[np.argsort(y > 1, kind="stable")]
    return Views(data, mask=mask), np.array(["d", "b", "a", "c"])[y] if chance(rng, 0.4) else y


def fuzz_chunks(rng):
    """Learn a stream at once and in pieces of random sizes: the same mistakes, updates and scores."""
    n = int(rng.integers(2, 41))
    learner = _online(rng)
    X, y = draw_stream(rng, n)
    announced = np.unique(y) if not learner._late_classes or chance(rng, 0.3) else None
    sizes = draw_sizes(rng, n)
    single = chance(rng, 0.5)  # pieces of one row by learn_one

    def what():
        return (
            f"{show_model(learner)} on {show(X)} y={y.tolist()} pieces={sizes} learn_one={single} classes={announced}"
        )

    once, no = attempt(what, lambda: clone(learner).partial_fit(X, y, classes=announced))
    if no:
        return refused(no)
    parts, no = attempt(what, lambda: learn_pieces(clone(learner), X, y, announced, sizes, single))
    assert no is None, f"learned at once, but refused in pieces ({no}) in {what()}"
    whole = (once.n_mistakes_, once.n_updates_, once.n_samples_seen_, once.classes_.tolist())
    pieces = (parts.n_mistakes_, parts.n_updates_, parts.n_samples_seen_, parts.classes_.tolist())
    assert whole == pieces, f"mistakes, updates, samples, classes are {whole} and {pieces} in {what()}"
    shown = X[[v for v in X.names if X.present(v).any()]]
    one, no = attempt(what, lambda: once.decision_function(shown))
    two, other = attempt(what, lambda: parts.decision_function(shown))
    assert (no is None) == (other is None), f"at once: {no}; in pieces: {other}; in {what()}"
    if no:
        return refused(no)
    assert np.isfinite(one).all(), f"scores are not finite in {what()}"
    limit = 1e-4 if any(X.block(v) is not None and X.block(v).dtype == np.float32 for v in X.names) else 1e-8
    difference = np.abs(one - two).max() / max(np.abs(one).max(), 1.0)
    assert difference <= limit, f"scores differ by {difference:.2g} in {what()}"
    return "answered"


def draw_sizes(rng, n):
    """Return sizes of pieces that sum to n."""
    sizes = []
    while sum(sizes) < n:
        sizes.append(min(1 if chance(rng, 0.4) else int(rng.integers(1, 12)), n - sum(sizes)))
    return sizes


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
    """Return small fitted models of all families, each as (model file in parts, new data): made once a process."""
    rng = np.random.default_rng(7)
    n = 8
    A, B = rng.normal(size=(n, 2)), np.round(rng.normal(size=(n, 3)))
    y, t = np.arange(n) % 2, rng.normal(size=n)
    three = np.arange(n) % 3
    mask = np.ones((n, 2), dtype=bool)
    mask[2, 0] = mask[5, 1] = False
    X = Views({"a": A, "b": sp.csr_array(B)}, mask=mask)
    S = Views(a=A, s=["ab", "b", None, "a", "", "ba", "c", "ca"])
    G = Views(a=A, g=A @ A.T, precomputed="g")
    strings, grams = {"a": RBF(0.5), "s": Spectrum(1)}, {"a": RBF(0.5), "g": "precomputed"}
    models = [
        (cs.CoRegularizedRidge(RBF(0.5), agreement_penalty=0.1), X, t),
        (cs.CoRegularizedRidge(RBF(0.5), n_components=3, random_state=0), X, t),
        (cs.CoRegularizedRidge(kernel=grams), G, t),
        (cs.CoRegularizedRidgeCV(RBF(0.5)), X, np.column_stack([t, -t])),
        (cs.CoRegularizedRidgeClassifier(kernel=strings), S, three),
        (cs.CoRegularizedSVC(RBF(0.5), agreement_penalty=0.1), X, three),
        (cs.ViewMetricRidge(RBF(0.5)), X, t),
        (cs.ViewMetricRidgeClassifier(RBF(0.5), metric="block_sparse"), X, y),
        (cs.ViewMetricRidgeCV(RBF(0.5), metric="covariance"), X, t),
        (cs.MultipleKernelRidge(RBF(0.5)), X, t),
        (cs.MultipleKernelRidgeClassifier(kernel=grams), G, three),
        (cs.OutputKernelRidge(RBF(0.5)), X, np.column_stack([t, t * t])),
        (cs.MaxMarginClassifier(kernel=strings), S, three),
        (cs.MaxMarginClassifier("linear"), X, y),
        (cs.MaxMarginRegressor(RBF(0.5)), X, t),
        (cs.EarlyFusion(Ridge()), X, t),
        (cs.LateFusion(LogisticRegression()), X, three),
        (cs.OnlinePerceptron(shuffle=False), X, three),
        (cs.OnlinePerceptron(3, average=True, shuffle=False), X, y),
        (cs.OnlinePerceptron(average="voted", shuffle=False), X, y),
        (cs.KernelPerceptron(RBF(0.5), shuffle=False), X, three),
        (cs.KernelPerceptron(kernel=strings, average="voted", shuffle=False), S, y),
        (cs.KernelPerceptron(RBF(0.5), budget=3, average=True, shuffle=False), X, y),
        (cs.KernelPerceptron(kernel=grams, shuffle=False), G, y),
        (cs.Projectron(RBF(0.5), shuffle=False), X, three),
        (cs.PassiveAggressive(shuffle=False), X, three),
        (cs.PassiveAggressive(RBF(0.5), average=True, shuffle=False), X, y),
        (cs.MatrixPerceptron(unequal="pad", shuffle=False), X, y),
        (cs.MatrixPerceptron(RBF(0.5), unequal="repeat", shuffle=False), X, three),
        (cs.OrthogonalPerceptron(prior_norms=0.1, shuffle=False), X, y),
        (cs.OrthogonalPerceptron(RBF(0.5), variant="passive-aggressive", shuffle=False), X, three),
        (cs.VectorPerceptron(RBF(0.5), shuffle=False), X, three),
        (cs.VectorPerceptron(RBF(0.5), variant="coefficients", eta0=0.1, shuffle=False), X, y),
        (cs.MultiCueClassifier(RBF(0.5), shuffle=False), X, y),
        (X, None, None),
        (G[[3, 1, 4]], None, None),
        (cs.Nystroem(RBF(0.5), n_components=3, random_state=0), X, None),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(*members_of(m if data is None else m.fit(data, z)), m, data, z) for m, data, z in models]


@functools.cache
def workshop():
    """Return a folder for the files of this process."""
    made = tempfile.TemporaryDirectory(prefix="fuzz")
    return made, Path(made.name)


def members_of(model):
    """Return the header and the members of a model file, with numbers in place of addresses, so that cases repeat."""
    path = workshop()[1] / "whole.cons"
    cs.save(model, path)
    _, head, payload = path.read_bytes().split(b"\n", 2)
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    schema = members.pop("schema.json").decode()
    ids = list(dict.fromkeys(re.findall(r'"__id__": (\d+)', schema)))
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
    """Load a damaged model file: a sentence, or a model that answers or refuses; never a crash."""
    number = int(rng.integers(len(pool())))
    head, members, model, X, y = pool()[number]
    content, damage = damaged(rng, head, dict(members))
    path = workshop()[1] / "damaged.cons"
    path.write_bytes(content)

    def what():
        return f"load of {show(model) if isinstance(model, Views) else show_model(model)[:200]} after {damage}"

    announce(what)
    loaded, sentence = attempt(what, lambda: cs.load(path))
    if sentence:
        known = any(word in sentence for word in ("damaged", "refused", "is not a model file", "has file format"))
        assert known, f"the sentence does not say that the file is damaged: {sentence!r} in {what()}"
        return refused(sentence.replace(str(path), "''"))
    use(what, loaded, model, X, y)
    return "answered"


def use(what, loaded, model, X, y):
    """Do with a loaded model what a user would do next: it answers, or raises ValueError or TypeError."""
    acts = {"repr": lambda: repr(loaded)}
    if isinstance(loaded, Views):
        acts |= {
            "rows": lambda: loaded[[-1]],
            "concat": lambda: Views.concat([loaded, loaded]),
            "len": lambda: len(loaded),
        }
    elif X is not None and type(loaded) is type(model) and hasattr(loaded, "transform"):
        acts |= {"transform": lambda: loaded.transform(X)}
    elif X is not None and type(loaded) is type(model):
        acts |= {"predict": lambda: loaded.predict(X), "two rows": lambda: loaded.predict(X[[0, 3]])}
        acts |= {"certificate": loaded.certificate}
        if hasattr(loaded, "partial_fit") and "g" not in X.names:
            acts |= {"partial_fit": lambda: loaded.partial_fit(X, y), "predict again": lambda: loaded.predict(X)}
    for name, act in acts.items():
        attempt(lambda name=name: f"{name} after {what()}", act, any_text=True)


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
    change = {"schema": damage_schema, "arrays": damage_array, "members": damage_members}[style]
    note = change(rng, members)
    doubled = [*members.items(), ("schema.json", b"{}")] if style == "members" and chance(rng, 0.1) else members.items()
    return model_bytes(head, doubled, compress=chance(rng, 0.1)), note


def nodes_of(tree):
    """Return every dict inside a schema."""
    found, todo = [], [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            found.append(node)
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return found


def damage_schema(rng, members):
    """Change a value, a type, a list or a name in the schema."""
    schema = json.loads(members["schema.json"])
    nodes = nodes_of(schema)
    style = pick(rng, ["value", "value", "value", "value", "class", "drop", "swap", "list", "file"])
    if style == "value":
        node = pick(rng, [node for node in nodes if node.get("__loader__") == "JsonNode"])
        before = node["content"]
        node["content"] = pick(rng, ["-1", "0", "1", "7", "1000000", "1e308", "NaN", "null", '"x"', "true", "[]", "{}"])
        note = f"{key_of(schema, node)} {before} -> {node['content']}"
    elif style == "class":
        node, other = pick(rng, nodes), pick(rng, nodes)
        note = f"class {node.get('__class__')} -> {other.get('__class__')}"
        for key in ("__class__", "__module__", "__loader__"):
            if key in other:
                node[key] = other[key]
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


def key_of(tree, wanted, path=""):
    """Return where a node is in a schema."""
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in parts:
        if value is wanted:
            return f"{path}{key}"
        found = key_of(value, wanted, path if key == "content" else f"{path}{key}.") if value is not tree else None
        if found:
            return found
    return None


def damage_array(rng, members):
    """Put another array in the place of one: other shape, dtype or values."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return damage_schema(rng, members)
    name = pick(rng, names)
    array = np.load(io.BytesIO(members[name]))
    style = pick(rng, ["short", "long", "dtype", "value", "value", "value", "shape", "empty", "objects", "scalar"])
    if style == "value" and array.size and array.dtype.kind in "iuf":
        changed = np.array(array)
        changed.flat[rng.integers(array.size)] = pick(rng, [-1, 1, 127, 10**6, -(10**6)])
        if array.dtype.kind == "f" and chance(rng, 0.5):
            changed.flat[rng.integers(array.size)] = pick(rng, [np.nan, np.inf, 1e308, 1e-320])
    elif style == "short":
        changed = array[: len(array) // 2] if array.ndim else array
    elif style == "long":
        changed = np.concatenate([array, array]) if array.ndim else array
    elif style == "dtype":
        changed = array.astype(pick(rng, [np.int8, np.float32, np.complex128, "U3", bool, ">f8", ">i4"]))
    elif style == "shape":
        changed = pick(rng, [array.ravel(), array[None], array[..., None], array.T])
    elif style == "empty":
        changed = np.zeros((0,) * array.ndim, dtype=array.dtype)
    elif style == "objects":
        changed = np.array(["x", 1.0, None], dtype=object)
    else:
        changed = np.asarray(array.ravel()[0] if array.size else 0)
    target = io.BytesIO()
    np.save(target, changed)
    members[name] = target.getvalue()
    if chance(rng, 0.05):
        members[name] = members[name].replace(b"'shape': (", b"'shape': (99999999, ")
    return f"array {name} ({holder(members, name)}): {style}, {show(array)} -> {show(changed)}"


def holder(members, name):
    """Return where the schema names a file of an array."""

    def search(tree, path):
        parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
        for key, value in parts:
            if value == name:
                return path
            found = search(value, path if key == "content" else f"{path}.{key}")
            if found:
                return found
        return None

    return search(json.loads(members["schema.json"]), "")


def damage_members(rng, members):
    """Delete, cut, rename or add members of the archive."""
    name = pick(rng, list(members))
    style = pick(rng, ["delete", "cut", "rename", "zeros", "swap"])
    content = members.pop(name)
    if style == "cut":
        members[name] = content[: rng.integers(len(content))]
    elif style == "rename":
        members[name + "x"] = content
    elif style == "zeros":
        members[name] = bytes(int(rng.integers(0, 300)))
    elif style == "swap" and members:
        members[name] = pick(rng, list(members.values()))
    return f"member {name}: {style}"


# -- tables
NAMES = [
    "",
    "x",
    "x",
    "y",
    "id",
    "a__1",
    "a__2",
    "b__1",
    "__",
    "a__",
    "__b",
    "=1+1",
    "@sum",
    "n\nl",
    "N" * 5000,
    "é",
    " x",
]
CELLS = ["", "1", "2.5", "-3", "1e999", "nan", "inf", "NaN", "NA", "true", "False", "x", "1_000", "01", "1e-320", "é",
         " 4 ", "=1+1", "\x00", "null", "2020-01-01", "99999999999999999999", "0x10", '"', "'", "1,5",
         "[1, 2]"]  # fmt: skip


def fuzz_tables(rng):
    """Read a hostile table: Views, or a sentence."""
    suffix = pick(rng, [".csv", ".csv", ".tsv", ".jsonl", ".jsonl", ".libsvm", ".npz", ".parquet", ".frame", ".odd"])
    if suffix in (".frame", ".odd"):
        return fuzz_frame(rng)
    content = {".csv": csv_bytes, ".tsv": csv_bytes, ".jsonl": json_bytes, ".libsvm": libsvm_bytes, ".npz": npz_bytes,
               ".parquet": parquet_bytes}[suffix](rng)  # fmt: skip
    content = spoil(rng, content)
    path = workshop()[1] / f"table{suffix}"
    path.write_bytes(content)
    stream = chance(rng, 0.5)
    views = pick(rng, [None] * 9 + ["prefix", {"v": ["x"], "w": ["a__*"]}, {"v": ["nothing"]}, {"v": ["*"]}])
    target, ids = pick(rng, ["y"] * 9 + ["x", "none"]), pick(rng, [None] * 9 + ["id"])

    def read():
        if stream:
            return list(cs.io.read_stream(path, target=target, views=views, chunk=int(rng.integers(1, 6))))
        return cs.io.read_samples([path], views=views, target=target if target != "none" else None, ids=ids)

    def what():
        reader = "read_stream" if stream else "read_samples"
        return f"{reader}({suffix}, target={target!r}, ids={ids!r}, views={views!r}) of {content[:300]!r}"

    answer, sentence = attempt(what, read, also=(OSError,))
    if sentence:
        return refused(sentence)
    for X, _ in answer if stream else [(answer.X, None)]:
        assert isinstance(X, (Views, dict)), f"neither Views nor a dict: {what()}"
    return "answered"


def csv_bytes(rng):
    """Return a table in CSV whose header and cells are odd."""
    comma = pick(rng, ["\t", "\t", ",", ",", ","]) if chance(rng, 0.4) else ","
    plain = chance(rng, 0.5)
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 6))]
    if plain:
        names = pick(rng, [["a__1", "a__2", "b__1"], ["x", "z"], ["id", "x"]])
    names = [*names, "y"] if chance(rng, 0.95) else names
    lines = [comma.join(quoted(rng, name) for name in names)]
    usual = pick(rng, [["1", "2.5", "-3"], ["1", "", "2"], CELLS, ["1", "x"], ["1.5", "1e999", "nan"]])
    for _ in range(rng.integers(0, 7)):
        count = len(names) if chance(rng, 0.95) else int(rng.integers(0, 7))
        cells = [quoted(rng, pick(rng, CELLS) if chance(rng, 0.05) else pick(rng, usual)) for _ in range(count)]
        lines.append(comma.join(cells))
    return pick(rng, ["\n", "\n", "\r\n", "\r"]).join(lines).encode()


def quoted(rng, cell):
    """Return a cell in quotes where it needs them, now and then where it does not, or not where it does."""
    odd = chance(rng, 0.03)
    needs = any(mark in cell for mark in ',\n"\t')
    return '"' + cell.replace('"', '""') + '"' if needs != odd else cell


def json_bytes(rng):
    """Return lines of JSON, some of which are odd."""
    values = [
        1,
        2.5,
        None,
        True,
        "x",
        [1, 2],
        [1.0, 2.0],
        [],
        [[1]],
        {"a": 1},
        float("nan"),
        float("inf"),
        10**400,
        "é",
        ["p"],
    ]
    usual = pick(rng, [[1, 2.5], [[1, 2], [3, 4.5]], ["x", "yy"], values])
    names = [pick(rng, NAMES) for _ in range(rng.integers(1, 4))]
    lines = []
    for _ in range(rng.integers(0, 7)):
        record = {
            name: pick(rng, values) if chance(rng, 0.04) else pick(rng, usual) for name in names if chance(rng, 0.9)
        }
        record["y"] = pick(rng, [0, 1, "a", None, 1.5, [1], True]) if chance(rng, 0.1) else pick(rng, ["p", "q"])
        line = json.dumps(record if chance(rng, 0.99) else pick(rng, values))
        lines.append(line if chance(rng, 0.99) else line[: rng.integers(len(line) + 1)])
    return "\n".join(lines).encode()


def libsvm_bytes(rng):
    """Return rows of libsvm, some of which are odd."""
    rows = []
    for _ in range(rng.integers(0, 7)):
        pairs = [f"{j}:{rng.integers(-3, 9)}" for j in np.unique(rng.integers(1, 9, size=rng.integers(0, 4)))]
        if chance(rng, 0.06):
            pairs.append(
                pick(rng, ["0:1", "-1:2", "99999999999:1", "5", "x:1", "3:nan", "3:1e999", "2:", "2147483648:1", ":"])
            )
        rows.append(
            " ".join([pick(rng, ["1", "-1", "0"]) if chance(rng, 0.97) else pick(rng, ["x", "", "nan", "1,2"]), *pairs])
        )
    return "\n".join(rows).encode()


def npz_bytes(rng):
    """Return an archive of arrays, some of which are odd."""
    n = int(rng.integers(0, 6))
    arrays = {}
    names = [pick(rng, ["a", "b", "y", "x", "id"]) for _ in range(rng.integers(1, 5))]
    for name in dict.fromkeys([*names, "y"] if chance(rng, 0.8) else names):
        rows = n if chance(rng, 0.93) else int(rng.integers(0, 6))
        shape = pick(rng, [(rows, 2), (rows, 3), (rows,)] if chance(rng, 0.93) else [(), (rows, 0), (rows, 1, 2)])
        array = np.round(rng.normal(size=shape) * 2)
        odd = pick(rng, ["c16", "U2", "M8[D]", "f2", ">f8", "?", "S2", "i8"]) if chance(rng, 0.15) else "f8"
        arrays[name] = array.astype("i8").astype(odd) if odd == "M8[D]" else np.asarray(array).astype(odd)
        if odd == "f8" and array.size and chance(rng, 0.1):
            arrays[name] = np.array(array)
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
    columns = [pick(rng, odd)() if chance(rng, 0.15) else pa.array(rng.normal(size=n)) for _ in names]
    if chance(rng, 0.85) and "y" not in names:
        names, columns = [*names, "y"], [*columns, pa.array(["u", "v"][i % 2] for i in range(n))]
    if chance(rng, 0.04):
        names = [names[0]] * len(names)
    target = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=names), target)
    return target.getvalue()


def spoil(rng, content):
    """Cut a file, put marks or bytes into it, or leave it as it is, which is most common."""
    style = pick(rng, ["whole"] * 28 + ["cut", "empty", "mark", "latin", "null", "flip", "spaces"])
    place = int(rng.integers(len(content) + 1))
    changed = {
        "cut": content[:place], "empty": b"", "mark": b"\xef\xbb\xbf" + content, "spaces": b"\n\n  \n" + content,
        "latin": content[:place] + b"\xe9\xff" + content[place:], "null": content[:place] + b"\0" + content[place:],
        "flip": content[:place] + bytes([7]) + content[place + 1 :],
    }  # fmt: skip
    return changed.get(style, content)


def fuzz_frame(rng):
    """Read an odd frame, dict or list by as_views: Views, or a sentence."""
    import pandas as pd

    n = int(rng.integers(0, 5))
    odd = [
        None,
        float("nan"),
        float("inf"),
        "x",
        1,
        True,
        2.5,
        [1],
        {},
        b"x",
        1j,
        pd.NA,
        pd.NaT,
        10**400,
        np.float32(2),
        (1, 2),
    ]

    def column():
        if chance(rng, 0.7):
            return rng.normal(size=n)
        return [pick(rng, odd) for _ in range(n)]

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
    except Exception:
        return "refused: not a table"
    views = pick(
        rng,
        [None, None, None, None, "prefix", {"v": [0]}, {"v": ["x"]}, [slice(0, 1), slice(1, 3)], {"v": [True, False]}],
    )

    def what():
        return f"as_views({form}: {X!r:.300}, views={views!r})"

    answer, sentence = attempt(what, lambda: as_views(X, views))
    if sentence:
        return refused(sentence)
    attempt(what, answer.check_finite)
    attempt(what, lambda: repr(answer) + answer._repr_html_())
    return "answered"


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

    def what():
        return f"{note} ({act} of {matrix.format} {matrix.dtype} {n}x{d})"

    def answer(given):
        return sparse_act(act, given, dense, y)

    announce(what)
    got, sentence = attempt(what, lambda: answer(matrix))
    if sentence:
        assert not sound, f"a sound matrix is refused ({sentence}) in {what()}"
        assert "'s'" in sentence or "'view0'" in sentence or "1d" in sentence, f"{sentence!r} names no view in {what()}"
        return refused(sentence)
    assert sound, f"a broken matrix is taken in {what()}"
    wanted = answer(expected)
    single = matrix.dtype == np.float32
    same = np.allclose(got, wanted, rtol=1e-3 if single else 1e-6, atol=1e-4 if single else 1e-9)
    assert same, f"not as the dense matrix in {what()}: {got.tolist()} and {wanted.tolist()}"
    return "answered"


def sparse_act(act, given, dense, y):
    """Use a matrix as the view 's' in one of the places that take data, and return numbers."""
    if act == "as_views":
        block = as_views({"s": given})["s"]
        return block.toarray() if sp.issparse(block) else block
    if act == "fit":
        return cs.CoRegularizedRidge(Linear(), alpha=0.1).fit({"s": given}, y * 1.0).predict({"s": dense})
    if act == "fusion":
        return (
            cs.EarlyFusion(Ridge(solver="cholesky", fit_intercept=False))
            .fit({"s": given}, y * 1.0)
            .predict({"s": dense})
        )
    if act == "predict":
        return cs.CoRegularizedRidge(RBF(0.5), alpha=0.1).fit({"s": dense}, y * 1.0).predict({"s": given})
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
    compressed = matrix.format in ("csr", "csc")
    size = len(matrix.data)
    if style == "none" or size == 0:
        return "as it is", True
    if style == "dtype":
        matrix.data = matrix.data.astype(pick(rng, ["f4", "i4", "i8", "f8"]))
        return f"dtype {matrix.dtype}", True
    if not compressed:
        return break_coordinates(rng, matrix, style)
    if style in ("unsorted", "stale"):
        matrix.has_canonical_format  # the flags are computed before, and wrong after, where they are stale
        for i in range(len(matrix.indptr) - 1):
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            matrix.indices[part], matrix.data[part] = matrix.indices[part][::-1].copy(), matrix.data[part][::-1].copy()
        if style == "unsorted":
            matrix.has_sorted_indices = matrix.has_canonical_format = False
        return style, True
    if style == "repeated":
        matrix.indices = np.repeat(matrix.indices, 2)
        matrix.data, matrix.indptr = np.repeat(matrix.data, 2), matrix.indptr * 2
        for flag in ("_has_canonical_format", "_has_sorted_indices"):
            matrix.__dict__.pop(flag, None)
        return style, True
    if style == "int64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        return style, True
    if style == "read-only":
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        return style, True
    if style in ("far", "negative"):
        matrix.indices[rng.integers(size)] = pick(rng, [matrix.shape[1] + matrix.shape[0], 10**4, 2**31 - 1]) * (
            1 if style == "far" else -1
        )
    elif style == "decreasing":
        matrix.indptr[rng.integers(1, len(matrix.indptr) - 1) if len(matrix.indptr) > 2 else 1] = pick(
            rng, [-1, size + 5, 10**6]
        )
    elif style == "lengths":
        matrix.indices = matrix.indices[: size // 2]
    elif style == "start":
        matrix.indptr[0] = pick(rng, [1, -3]) if size > 1 else -3
    else:
        matrix.indptr[-1] = size + int(pick(rng, [1, 1000, 10**8]))
    return style, False


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
    order = rng.permutation(len(row))
    matrix.coords, matrix.data = (row[order], column[order]), matrix.data[order]
    if style == "repeated":
        matrix.coords = tuple(np.repeat(part, 2) for part in matrix.coords)
        matrix.data = np.repeat(matrix.data, 2)
    matrix.has_canonical_format = False
    return f"coordinates {style}", True


def twin_of(matrix):
    """Return the dense matrix that a sparse one stands for, entry by entry."""
    dense = np.zeros(matrix.shape)
    if matrix.format == "coo":
        for i, j, value in zip(*matrix.coords, matrix.data, strict=True):
            dense[i, j] += value
        return dense
    for i in range(len(matrix.indptr) - 1):
        for k in range(matrix.indptr[i], matrix.indptr[i + 1]):
            j = matrix.indices[k]
            dense[(i, j) if matrix.format == "csr" else (j, i)] += matrix.data[k]
    return dense


# -- views and their twin
def fuzz_views(rng):
    """Apply random operations to Views and to a dict of plain rows: both hold the same."""
    n = int(rng.integers(1, 9))
    raw, mask = {}, draw_mask(rng, n, 3, share=0.6, hostile=False)
    names = ["a", "s", "t"]
    raw["a"] = np.round(rng.normal(size=(n, int(rng.integers(1, 4)))) * 2)
    raw["s"] = np.round(rng.normal(size=(n, 2))) * (rng.random((n, 2)) > 0.5)
    raw["t"] = draw_strings(rng, n)
    twin = {
        v: [None if mask is not None and not mask[i, j] else plain(raw[v][i]) for i in range(n)]
        for j, v in enumerate(names)
    }
    given = {"a": raw["a"], "s": pick(rng, [sp.csr_array, sp.csc_array, sp.coo_array])(raw["s"]), "t": raw["t"]}
    form = pick(rng, ["mask", "dict", "marked"])
    if mask is None:
        X = Views(given)
    elif form == "dict":
        X = Views(given, mask={v: mask[:, j] for j, v in enumerate(names)})
    elif form == "marked":
        marked = [None if not mask[i, 2] else raw["t"][i] for i in range(n)]
        X = Views({"a": np.where(mask[:, :1], raw["a"], np.nan), "s": given["s"], "t": marked}, mask={"s": mask[:, 1]})
    else:
        X = Views(given, mask=mask)
    trail = [f"{n} samples", f"mask {form}" if mask is not None else "no mask"]
    for _ in range(rng.integers(1, 5)):
        try:
            X, twin, step = one_step(rng, X, twin)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{explain(error)} after {trail}") from error
        trail.append(step)
        check_twin(X, twin, trail)
    return "answered"


def plain(value):
    """Return a row as a plain value."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def one_step(rng, X, twin):
    """Apply one random operation to Views and to the twin."""
    n = len(X)
    step = pick(rng, ["rows", "rows", "mask", "slice", "select", "align", "concat", "side", "rename", "again", "each"])
    if step in ("rows", "mask", "slice"):
        rows = rng.integers(-n, n, size=rng.integers(1, 6))
        key = rows.tolist() if chance(rng, 0.5) else rows
        if step == "mask":
            key = rng.random(n) > 0.3
            key[rng.integers(n)] = True
            rows = np.flatnonzero(key)
        if step == "slice":
            start = int(rng.integers(n))
            key = slice(start, None, pick(rng, [None, 1, 2]))
            rows = np.arange(n)[key]
        return X[key], {v: [part[i] for i in rows] for v, part in twin.items()}, f"rows {np.asarray(rows).tolist()}"
    if step == "select":
        kept = [v for v in X.names if chance(rng, 0.8)]
        if kept and all(any(twin[v][i] is not None for v in kept) for i in range(n)):
            order = [kept[i] for i in rng.permutation(len(kept))]
            return X[order], {v: twin[v] for v in order}, f"select {order}"
        return X, twin, "nothing"
    if step == "align":
        order = [[*X.names, "z"][i] for i in rng.permutation(len(X.names) + 1)] if "z" not in X.names else list(X.names)
        return X.align(order), {v: twin.get(v, [None] * n) for v in order}, f"align {order}"
    if step == "concat":
        cut, whole = int(rng.integers(0, n + 1)), chance(rng, 0.5)
        parts = [X, X[:cut]] if whole else [X[:cut], X[cut:]]
        rows = [*range(n), *range(cut)] if whole else range(n)
        joined = Views.concat([part for part in parts if len(part)])
        return joined, {v: [part[i] for i in rows] for v, part in twin.items()}, f"concat at {cut}"
    if step == "side" and "w" not in X.names:
        other = rng.normal(size=(n, 1))
        return X | Views(w=other), {**twin, "w": other.tolist()}, "side by side"
    if step == "rename" and "q" not in X.names:
        return (
            X.renamed({X.names[0]: "q"}),
            {("q" if v == X.names[0] else v): part for v, part in twin.items()},
            "rename",
        )
    if step == "again":
        return Views(X), twin, "Views of Views"
    if step == "each":
        return Views.concat(list(X)), twin, "row by row"
    return X, twin, "nothing"


def check_twin(X, twin, trail):
    """Check that Views hold what the twin holds: names, presence, values."""
    n = len(next(iter(twin.values())))
    assert X.names == tuple(twin), f"names {X.names} and {tuple(twin)} after {trail}"
    assert len(X) == n == X.shape[0], f"{len(X)} samples, not {n}, after {trail}"
    complete = all(x is not None for part in twin.values() for x in part)
    assert (X.mask is None) == complete, f"mask {X.mask} after {trail}"
    for v, part in twin.items():
        there = [x is not None for x in part]
        assert X.present(v).tolist() == there, f"view {v} present {X.present(v).tolist()}, not {there}, after {trail}"
        block = X[v]
        if block is None:
            assert not any(there), f"view {v} is absent after {trail}"
            continue
        rows = block.toarray().tolist() if sp.issparse(block) else plain(block)
        wrong = [i for i in range(n) if there[i] and rows[i] != part[i]]
        assert not wrong, f"view {v} row {wrong[0]} is {rows[wrong[0]]}, not {part[wrong[0]]}, after {trail}"
        if sp.issparse(block):
            assert not any(any(rows[i]) for i in range(n) if not there[i]), (
                f"absent rows of {v} hold data after {trail}"
            )
    assert X[list(range(n))] == X, f"not equal to itself after {trail}"


# -- running cases
# name: number of the kind, function, whether each batch runs in a child process, least share of answers
KINDS = {
    "batch": (1, fuzz_batch, False, 0.5),
    "weights": (2, fuzz_weights, False, 0.5),
    "chunks": (3, fuzz_chunks, False, 0.6),
    "files": (4, fuzz_files, True, 0.1),
    "tables": (5, fuzz_tables, False, 0.25),
    "sparse": (6, fuzz_sparse, True, 0.3),
    "views": (7, fuzz_views, False, 0.9),
}


def run_case(kind, seed):
    """Run one case; return its outcome, which begins with "failed" where a property does not hold."""
    number, function, _, _ = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(np.random.default_rng([number, seed]))
        except AssertionError as error:
            return f"failed: {error}"
        except Exception as error:
            return f"failed: {explain(error)} (in the case itself)"


@contextmanager
def captured_output():
    """Collect what is written to the file descriptors of output and errors, as BLAS does, in a list of one text."""
    flush = ctypes.CDLL(None).fflush
    found = []
    with tempfile.TemporaryFile() as target:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        flush(None)
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(target.fileno(), descriptor)
        try:
            yield found
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            flush(None)
            for descriptor, old in zip((1, 2), kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)
            target.seek(0)
            found.append(target.read().decode(errors="replace"))


def run_here(kind, seeds):
    """Run cases in this process; what they write at the level of file descriptors is a failure."""
    with captured_output() as written:
        outcomes = {seed: run_case(kind, seed) for seed in seeds}
    if written[0].strip():
        for seed in seeds:
            with captured_output() as own:
                run_case(kind, seed)
            if own[0].strip():
                outcomes[seed] = f"failed: wrote {own[0].strip()[:200]!r} past Python's output"
    return outcomes


def run_forked(kind, seeds):
    """Run cases in a child process, another one after each crash; a crash is the failure of the case that ran."""
    warm_up(kind)
    outcomes, todo = {}, list(seeds)
    while todo:
        lines, ending = one_child(kind, todo)
        started = [int(line[1]) for line in lines if line[0] == "start"]
        outcomes.update({int(line[1]): line[2] for line in lines if line[0] == "end"})
        if ending and started and started[-1] not in outcomes:
            about = f" ({lines[-1][1]})" if lines[-1][0] == "about" else ""
            outcomes[started[-1]] = f"failed: the process ended with {ending}{about}"
        elif ending and not started:
            raise RuntimeError(f"The child process ended with {ending} before its first case.")
        todo = [seed for seed in todo if seed not in outcomes]
    return outcomes


@functools.cache
def warm_up(kind):
    """Load compiled functions before a process forks, so that not every child loads them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "files":
            for _, _, model, X, y in pool():
                use(lambda: "the pool", clone(model).fit(X, y) if X is not None else model, model, X, y)
        if kind == "sparse":
            for act, matrix in itertools.product(SPARSE_ACTS, (np.eye(1), sp.csr_array(np.eye(1)))):
                dense = np.eye(1) if act == "learn_one" else np.eye(4)
                sparse_act(act, sp.csr_array(dense) if sp.issparse(matrix) else dense, dense, np.arange(len(dense)) % 2)


def one_child(kind, seeds):
    """Run cases in one child process; return the lines it sent, and how it ended where that was not well."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work_in_child(kind, seeds, writing)
        finally:
            os._exit(0)
    os.close(writing)
    content, ending = bytearray(), ""
    while True:
        ready, _, _ = select.select([reading], [], [], SEARCHED)
        if not ready:
            os.kill(child, signal.SIGKILL)
            ending = f"no answer in {SEARCHED} seconds"
            break
        part = os.read(reading, 1 << 16)
        if not part:
            break
        content += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and not ending:
        ending = signal.Signals(os.WTERMSIG(status)).name
    return [json.loads(line) for line in content.splitlines()], ending


LISTENERS = []  # of descriptions of cases that may crash


def announce(what):
    """Describe a case to the parent process before it can crash."""
    for listener in LISTENERS:
        listener(what())


def work_in_child(kind, seeds, writing):
    """Run cases and send a line before and after each."""
    faulthandler.disable()  # the parent says which case crashed
    LISTENERS.append(lambda text: os.write(writing, json.dumps(["about", text[:600]]).encode() + b"\n"))
    quiet = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(quiet, descriptor)
    for seed in seeds:
        os.write(writing, json.dumps(["start", seed]).encode() + b"\n")
        outcome = run_case(kind, seed)
        os.write(writing, json.dumps(["end", seed, outcome[:3000]]).encode() + b"\n")


def run(kind, seeds):
    """Run cases of a kind; return seed -> outcome."""
    return (run_forked if KINDS[kind][2] else run_here)(kind, list(seeds))


def failures(outcomes):
    """Return the cases that failed, as seed -> description."""
    return {seed: outcome for seed, outcome in outcomes.items() if outcome.startswith("failed")}


def signature(outcome):
    """Return what failures of one cause have in common: the exception and its place, or the property that failed."""
    found = re.match(r"failed: (.*?\w+ at [\w/]+\.py:\d+): (.{0,30})", outcome)
    if found:
        return f"{found.group(1)} {found.group(2)}"
    return re.sub(r"'[^']*'|[-+]?\d[\d.e+-]*", "#", outcome[8:].split("(")[0])[:110]


def report(kind, outcomes, shown=3):
    """Print counts by outcome, and for each cause of failure how to run it again."""
    counts = Counter(outcome.split(":")[0] for outcome in outcomes.values())
    print(
        f"{kind:8s} {len(outcomes):7d} cases: " + ", ".join(f"{count} {what}" for what, count in counts.most_common())
    )
    causes = {}
    for seed, outcome in sorted(failures(outcomes).items()):
        causes.setdefault(signature(outcome), []).append(seed)
    for cause, seeds in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds)} x {cause}")
        for seed in seeds[:shown]:
            print(f"    python tests/fuzz.py --kind {kind} --seed {seed}    {outcomes[seed][8:900]}")


def replay(kind, seed):
    """Run one case in this process, or in a child where it may crash, and print all there is to know."""
    number, function, _, _ = KINDS[kind]
    outcome = run(kind, [seed])[seed]
    print(f"{kind} {seed}: {outcome}")
    if outcome.startswith("failed") and "the process ended" not in outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(np.random.default_rng([number, seed]))
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
    parser.add_argument("--shown", type=int, default=1, help="How many cases of each cause to print.")
    given = parser.parse_args(arguments)
    if given.kind and given.seed is not None and given.cases is None and given.seconds is None:
        return replay(given.kind, given.seed)
    kinds = [given.kind] if given.kind else list(KINDS)
    cases = given.cases if given.cases is not None else None if given.seconds else 200
    end = time.monotonic() + given.seconds if given.seconds else float("inf")
    outcomes, spent = {kind: {} for kind in kinds}, Counter()
    for start in itertools.count(given.seed or 0, 50):
        last = start + 50 if cases is None else min(start + 50, (given.seed or 0) + cases)
        for kind in kinds:
            began = sum(os.times()[:4])  # of the processor, that of children too
            if time.monotonic() < end:
                outcomes[kind].update(run(kind, range(start, last)))
                spent[kind] += sum(os.times()[:4]) - began
        if time.monotonic() >= end or (cases is not None and last >= (given.seed or 0) + cases):
            break
    for kind in kinds:
        report(kind, outcomes[kind], given.shown)
    for kind in kinds:
        print(f"{kind:8s} {1000 * spent[kind] / max(len(outcomes[kind]), 1):.1f} ms of a core for a case")
    return int(any(failures(outcomes[kind]) for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
