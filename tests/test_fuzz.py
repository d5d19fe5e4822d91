"""Random cases of the kinds that have found faults, and that each property can fail at all; `make fuzz` runs more."""

import ctypes
import os
import signal
from functools import partialmethod

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import consilience as cs
import fuzz

# kind: number of items, cases of each
SIZES = {
    "batch": (2, 100),
    "weights": (2, 40),
    "chunks": (2, 45),
    "files": (1, 110),
    "tables": (1, 800),
    "sparse": (1, 200),
    "views": (1, 500),
}


@pytest.mark.parametrize(("kind", "item"), [(kind, item) for kind in fuzz.KINDS for item in range(SIZES[kind][0])])
def test_properties_hold(kind, item):
    size = SIZES[kind][1]
    outcomes = fuzz.run(kind, range(item * size, (item + 1) * size))
    failed = fuzz.failures(outcomes)
    lines = [f"python tests/fuzz.py --kind {kind} --seed {seed}    {text[:1000]}" for seed, text in failed.items()]
    assert not failed, f"{len(failed)} of {size} cases failed.\n" + "\n".join(lines[:5])
    share = sum(outcome == "passed" for outcome in outcomes.values()) / size
    assert share >= fuzz.KINDS[kind][3], f"only {share:.0%} were not refused, so little is tested"


def test_every_parameter_is_one_of_an_estimator():
    known = {name: set(cls._get_param_names()) for cls in (*fuzz.BATCH, *fuzz.ONLINE) for name in [cls.__name__]}
    for table in (fuzz.HOSTILE, fuzz.COUNTED, fuzz.STREAMED):
        for name, of in table.items():
            found = set(of) - known[name] if isinstance(of, dict) else {name} - set().union(*known.values())
            assert not found, f"no estimator has the parameters {found}"


def test_a_case_repeats():
    for kind in fuzz.KINDS:
        assert fuzz.run(kind, range(3)) == fuzz.run(kind, range(3))


# -- the properties can fail
def fail(error):
    def call(*given, **named):
        raise error

    return call


def lossy(X, *more):
    return cs.as_views({"s": sp.csr_array(np.abs(X["s"].toarray())) if sp.issparse(X["s"]) else X["s"]}, *more)


def reversed_rows(self, key, take=cs.Views.__getitem__):
    return take(self, key[::-1] if isinstance(key, list) and isinstance(key[0], int) else key)


def forgetful(self, X, y, classes=None, learn=None):
    return learn(self, X, y, classes) if len(y) > 1 or not hasattr(self, "n_samples_seen_") else self


# kind: objects, the attribute that is replaced, by what
WEIGHTED = [cs.MultipleKernelRidge, cs.CoRegularizedRidge, cs.ViewMetricRidge]
SABOTAGE = {
    "batch": ([cs.LateFusion], "predict", lambda cls: lambda self, X: np.full(len(X), np.nan)),
    "weights": (WEIGHTED, "fit", lambda cls: lambda self, X, y, sample_weight=None, fit=cls.fit: fit(self, X, y)),
    "chunks": (fuzz.ONLINE, "partial_fit", lambda cls: partialmethod(forgetful, learn=cls.partial_fit)),
    "files": ([cs], "load", lambda module: lambda path: ctypes.string_at(0)),  # a crash
    "tables": ([cs.io], "read_samples", lambda module: fail(EOFError("the end"))),
    "sparse": ([fuzz], "as_views", lambda module: lossy),
    "views": ([cs.Views], "__getitem__", lambda cls: reversed_rows),
}


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_fault_is_found(kind, monkeypatch):
    owners, name, change = SABOTAGE[kind]
    for owner in owners:
        monkeypatch.setattr(owner, name, change(owner))
    assert fuzz.failures(fuzz.run(kind, range(6 if kind == "files" else 30)))


@pytest.mark.parametrize(
    "error",
    [
        np.linalg.LinAlgError("SVD did not converge in linear least squares."),
        np.linalg.LinAlgError("Any text of this exception is a failure."),
        ValueError("array must not contain infs or NaNs."),
        ValueError("operands could not be broadcast together with shapes (3,) (4,)."),
        ValueError("too short."),
        ValueError("a text without a period at its end"),
        KeyError("Any other exception is a failure."),
        IndexError("Any other exception is a failure."),
    ],
)
def test_only_sentences_of_ours_are_refusals(error):
    with pytest.raises(AssertionError, match=f"{type(error).__name__}.*{error.args[0][:9]}"):
        fuzz.attempt(fail(error))
    text = "View 'audio' has 90 rows, the others 100."
    assert fuzz.attempt(fail(ValueError(text))) == (None, text)
    with pytest.raises(AssertionError, match="the second: None"):
        fuzz.take_both(fail(ValueError(text)), lambda: 1)


@pytest.mark.parametrize("gap", [np.nan, np.inf, -1.0])
def test_a_wrong_gap_is_found(gap, monkeypatch):
    model = cs.EarlyFusion(Ridge()).fit(np.eye(4), np.arange(4.0))
    wrong = cs.certificates.Certificate(status="exact", objective=1.0, gap=gap)
    monkeypatch.setattr(cs.EarlyFusion, "certificate", lambda self: wrong)
    with pytest.raises(AssertionError, match="gap"):
        fuzz.check_certificate(model)


def test_a_changed_input_and_a_changed_model_are_found():
    values, labels = np.array([[np.nan, 1.0], [0.0, 3.0]]), np.array(["x", None], dtype=object)
    for data in ({"a": values}, {"s": sp.csr_array(values)}):
        before = fuzz.frozen(data, labels, None)
        assert fuzz.frozen(data, labels, None) == before
        next(iter(data.values()))[0, 0] = 7
        assert fuzz.frozen(data, labels, None) != before

    class Forgetful(cs.EarlyFusion):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, -np.asarray(y) if len(y) == 5 else y)
            if len(y) == 5:
                raise ValueError("This fit is refused too late to leave the model alone.")
            return self

    rng, model, X = np.random.default_rng(0), Forgetful(Ridge()), cs.Views(a=np.eye(5, 2))
    with pytest.raises(AssertionError, match="a refused refit changed predictions"):
        fuzz.check_refused_refit(rng, model, X, np.arange(5.0), None, False)


def test_what_is_written_past_python_is_found(monkeypatch):
    def loud(rng):
        os.write(1, b" ** On entry to DSYRK parameter number 10 had an illegal value\n")

    monkeypatch.setitem(fuzz.KINDS, "views", (7, loud, False, 0.9))
    found = fuzz.failures(fuzz.run("views", range(2)))
    assert len(found) == 2
    assert all("On entry to DSYRK" in text for text in found.values())


def test_a_crash_is_the_failure_of_its_case(monkeypatch):
    def fatal(rng):
        if rng.random() < 0.3:
            os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setitem(fuzz.KINDS, "sparse", (6, fatal, True, 0.5))
    outcomes = fuzz.run("sparse", range(20))
    crashed = [seed for seed in range(20) if np.random.default_rng([6, seed]).random() < 0.3]
    assert len(outcomes) == 20
    assert crashed
    assert fuzz.failures(outcomes) == dict.fromkeys(crashed, "failed: the process ended with SIGSEGV")
