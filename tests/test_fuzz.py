"""Random cases of the kinds that have found faults, and that each property can fail at all; `make fuzz` runs more."""

import ctypes
import os
import signal
import time
from functools import partialmethod
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import consilience as cs
import consilience.experiments._run as running
import fuzz
from consilience.cli import main as entry
from consilience.kernels import SubsetTree
from fuzzing import estimators, matrices, properties

# kind: number of items, cases of each
SIZES = {
    "batch": (2, 80),
    "weights": (2, 40),
    "chunks": (2, 45),
    "files": (1, 110),
    "tables": (1, 400),
    "sparse": (1, 200),
    "views": (1, 500),
    "trees": (1, 500),
    "libsvm": (1, 500),
    "json": (1, 500),
    "csv": (1, 400),
    "toml": (1, 500),
    "npz": (1, 300),
    "arrow": (1, 300),
    "books": (1, 60),
    "checkpoints": (1, 300),
    "results": (1, 100),
    "commands": (1, 40),
}


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """Return the folder of the files of failing cases, which is another one in each test."""
    monkeypatch.setattr(fuzz, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


@pytest.mark.parametrize(("kind", "item"), [(kind, item) for kind in fuzz.KINDS for item in range(SIZES[kind][0])])
def test_properties_hold(kind, item):
    size = SIZES[kind][1]
    outcomes = fuzz.run(kind, range(item * size, (item + 1) * size))
    failed = fuzz.failures(outcomes)
    lines = [f"python tests/fuzz.py --kind {kind} --seed {seed}    {text[:1000]}" for seed, text in failed.items()]
    assert not failed, f"{len(failed)} of {size} cases failed.\n" + "\n".join(lines[:5])
    share = sum(outcome == "passed" for outcome in outcomes.values()) / size
    assert share >= fuzz.KINDS[kind].least, f"only {share:.0%} were not refused, so little is tested"


def test_every_parameter_is_one_of_an_estimator():
    known = {
        name: set(cls._get_param_names()) for cls in (*estimators.BATCH, *estimators.ONLINE) for name in [cls.__name__]
    }
    for table in (estimators.HOSTILE, estimators.COUNTED, estimators.STREAMED):
        for name, of in table.items():
            found = set(of) - known[name] if isinstance(of, dict) else {name} - set().union(*known.values())
            assert not found, f"no estimator has the parameters {found}"


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_case_repeats(kind):
    assert fuzz.run(kind, range(3)) == fuzz.run(kind, range(3))


def test_no_two_kinds_have_the_same_seeds():
    numbers = [kind.number for kind in fuzz.KINDS.values()]
    assert len(numbers) == len(set(numbers))


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


def listed(paths, read=cs.io.read_samples, **options):
    got = read(paths, **options)
    return SimpleNamespace(X=[got.X[name] for name in got.X.names])


def nothing(*given, **named):
    return {}, None, None


def crash(*given, **named):
    ctypes.string_at(0)


# kind: objects, the attribute that is replaced, by what
WEIGHTED = [cs.MultipleKernelRidge, cs.CoRegularizedRidge, cs.ViewMetricRidge]
RAW = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
SABOTAGE = {
    "batch": ([cs.LateFusion], "predict", lambda cls: lambda self, X: np.full(len(X), np.nan)),
    "weights": (WEIGHTED, "fit", lambda cls: lambda self, X, y, sample_weight=None, fit=cls.fit: fit(self, X, y)),
    "chunks": (estimators.ONLINE, "partial_fit", lambda cls: partialmethod(forgetful, learn=cls.partial_fit)),
    "files": ([cs], "load", lambda module: crash),
    "tables": ([cs.io], "read_samples", lambda module: fail(EOFError("the end"))),
    "sparse": ([matrices], "as_views", lambda module: lossy),
    "views": ([cs.Views], "__getitem__", lambda cls: reversed_rows),
    "trees": ([SubsetTree], "__call__", lambda cls: lambda self, X: -np.ones((len(X), len(X)))),
    "libsvm": ([cs.io], "read_stream", lambda module: fail(IndexError("list index out of range"))),
    "json": ([cs.io], "read_samples", lambda module: fail(RecursionError("maximum recursion depth exceeded"))),
    "csv": ([cs.io], "read_samples", lambda module: fail(RAW)),
    "toml": ([cs.io], "read_layout", lambda module: nothing),
    "npz": ([cs.io], "read_samples", lambda module: listed),
    "arrow": ([cs], "read_blocks", lambda module: crash),
    "books": ([cs.io], "read_samples", lambda module: fail(KeyError("[Content_Types].xml"))),
    "checkpoints": ([cs.io], "read_checkpoint", lambda module: fail(ValueError("Expecting value: line 1 column 1"))),
    "results": ([running], "read_results", lambda module: fail(KeyError("cells"))),
    "commands": ([entry], "main", lambda module: fail(ZeroDivisionError("division by zero"))),
}


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_fault_is_found(kind, monkeypatch):
    owners, name, change = SABOTAGE[kind]
    fuzz.warm_up(kind)  # which is not part of a case
    for owner in owners:
        monkeypatch.setattr(owner, name, change(owner))
    found = fuzz.failures(fuzz.run(kind, range(6 if kind in ("files", "commands") else 30)))
    assert found
    assert not any("before its first case" in text for text in found.values())


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
        properties.attempt(fail(error))
    text = "View 'audio' has 90 rows, the others 100."
    assert properties.attempt(fail(ValueError(text))) == (None, text)
    with pytest.raises(AssertionError, match="the second: None"):
        properties.take_both(fail(ValueError(text)), lambda: 1)


@pytest.mark.parametrize("gap", [np.nan, np.inf, -1.0])
def test_a_wrong_gap_is_found(gap, monkeypatch):
    model = cs.EarlyFusion(Ridge()).fit(np.eye(4), np.arange(4.0))
    wrong = cs.certificates.Certificate(status="exact", objective=1.0, gap=gap)
    monkeypatch.setattr(cs.EarlyFusion, "certificate", lambda self: wrong)
    with pytest.raises(AssertionError, match="gap"):
        estimators.check_certificate(model)


def test_a_changed_input_and_a_changed_model_are_found():
    values, labels = np.array([[np.nan, 1.0], [0.0, 3.0]]), np.array(["x", None], dtype=object)
    for data in ({"a": values}, {"s": sp.csr_array(values)}):
        before = estimators.frozen(data, labels, None)
        assert estimators.frozen(data, labels, None) == before
        next(iter(data.values()))[0, 0] = 7
        assert estimators.frozen(data, labels, None) != before

    class Forgetful(cs.EarlyFusion):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, -np.asarray(y) if len(y) == 5 else y)
            if len(y) == 5:
                raise ValueError("This fit is refused too late to leave the model alone.")
            return self

    rng, model, X = np.random.default_rng(0), Forgetful(Ridge()), cs.Views(a=np.eye(5, 2))
    with pytest.raises(AssertionError, match="a refused refit changed predictions"):
        estimators.check_refused_refit(rng, model, X, np.arange(5.0), None, False)


# -- cases that end otherwise
def replace(monkeypatch, kind, function, **how):
    """Put another function in the place of a kind's."""
    other = fuzz.KINDS[kind]._replace(function=function, warm_up=lambda: None, **how)
    monkeypatch.setitem(fuzz.KINDS, kind, other)


def test_what_is_written_past_python_is_found(monkeypatch):
    def loud(rng):
        os.write(1, b" ** On entry to DSYRK parameter number 10 had an illegal value\n")

    replace(monkeypatch, "views", loud)
    found = fuzz.failures(fuzz.run("views", range(2)))
    assert len(found) == 2
    assert all("On entry to DSYRK" in text for text in found.values())


def test_a_crash_is_the_failure_of_its_case(monkeypatch):
    def fatal(rng):
        if rng.random() < 0.3:
            os.kill(os.getpid(), signal.SIGSEGV)

    replace(monkeypatch, "sparse", fatal)
    outcomes = fuzz.run("sparse", range(20))
    crashed = [seed for seed in range(20) if np.random.default_rng([6, seed]).random() < 0.3]
    assert len(outcomes) == 20
    assert crashed
    assert fuzz.failures(outcomes) == dict.fromkeys(crashed, "failed: the process ended with SIGSEGV")


def test_a_case_without_an_end_is_a_failure(monkeypatch):
    def slow(rng):
        if rng.random() < 0.3:
            time.sleep(60)

    replace(monkeypatch, "json", slow, limit=0.5)
    outcomes = fuzz.run("json", range(6))
    stuck = [seed for seed in range(6) if np.random.default_rng([10, seed]).random() < 0.3]
    assert 0 < len(stuck) < 6
    assert fuzz.failures(outcomes) == dict.fromkeys(stuck, "failed: the process ended with no result in 0.5 seconds")


def test_lost_memory_is_a_failure(monkeypatch):
    held = []
    monkeypatch.setattr(fuzz, "LEAST", 40)
    monkeypatch.setattr(fuzz, "GROWTH", 4 << 20)
    replace(monkeypatch, "json", lambda rng: None)
    assert not fuzz.failures(fuzz.run("json", range(40)))
    replace(monkeypatch, "json", lambda rng: held.append(properties.taken(1 << 19)))
    assert "of memory" in fuzz.failures(fuzz.run("json", range(40)))[39]


@pytest.mark.parametrize("ends", [lambda: fail(KeyError("x"))(), crash], ids=["raises", "crashes"])
def test_the_file_of_a_failing_case_is_kept(ends, monkeypatch, tmp_path, kept):
    def reads(rng):
        path = tmp_path / "t.jsonl"
        path.write_bytes(b"[" * rng.integers(1, 100))
        properties.describe(lambda: "a file", path)
        ends()

    replace(monkeypatch, "json", reads)
    assert len(fuzz.failures(fuzz.run("json", range(2)))) == 2
    for seed in range(2):
        expected = b"[" * np.random.default_rng([10, seed]).integers(1, 100)
        assert (kept / f"json-{seed}-t.jsonl").read_bytes() == expected
