"""Twenty thousand random cases of the kinds that have found faults, and that each property can fail at all."""

import ctypes
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import consilience as cs
import fuzz

# kind: number of items, cases of each
SIZES = {
    "batch": (10, 130),
    "weights": (5, 80),
    "chunks": (6, 90),
    "files": (6, 130),
    "tables": (12, 700),
    "sparse": (8, 150),
    "views": (10, 750),
}
ITEMS = [(kind, item) for item in range(12) for kind in fuzz.KINDS if item < SIZES[kind][0]]


@pytest.mark.parametrize(("kind", "item"), ITEMS)
def test_properties_hold(kind, item):
    size = SIZES[kind][1]
    outcomes = fuzz.run(kind, range(item * size, (item + 1) * size))
    failed = fuzz.failures(outcomes)
    lines = [f"python tests/fuzz.py --kind {kind} --seed {seed}    {text[:1000]}" for seed, text in failed.items()]
    assert not failed, f"{len(failed)} of {size} cases failed.\n" + "\n".join(lines[:5])
    share = sum(outcome == "answered" for outcome in outcomes.values()) / size
    assert share >= fuzz.KINDS[kind][3], f"only {share:.0%} were answered, so little is tested"


def test_there_are_twenty_thousand_cases():
    assert set(SIZES) == set(fuzz.KINDS)
    assert sum(items * size for items, size in SIZES.values()) >= 20_000


def test_every_batch_estimator_is_among_the_cases():
    fitted = [name for name in cs.__all__ if hasattr(getattr(cs, name), "predict")]
    batch = {name for name in fitted if not hasattr(getattr(cs, name), "partial_fit")}
    assert batch - {"VectorPerceptron"} == {name.split()[0] for name in fuzz.BATCH}


def test_a_case_repeats():
    for kind in fuzz.KINDS:
        assert fuzz.run(kind, range(3)) == fuzz.run(kind, range(3))


# -- the properties can fail
def nothing_learned(monkeypatch):
    monkeypatch.setattr(cs.LateFusion, "predict", lambda self, X: np.full(len(X), np.nan))


def weights_ignored(monkeypatch):
    for cls in (cs.MultipleKernelRidge, cs.CoRegularizedRidge, cs.ViewMetricRidge):
        monkeypatch.setattr(cls, "fit", lambda self, X, y, sample_weight=None, fit=cls.fit: fit(self, X, y))


def chunks_forgotten(monkeypatch):
    from consilience.online._frame import OnlineLearner

    learn = OnlineLearner.partial_fit

    def forgetful(self, X, y, classes=None):
        return learn(self, X, y, classes) if len(y) > 1 or not hasattr(self, "n_samples_seen_") else self

    monkeypatch.setattr(OnlineLearner, "partial_fit", forgetful)


def crash_at_load(monkeypatch):
    monkeypatch.setattr(cs, "load", lambda path: ctypes.string_at(0))


def other_error_in_tables(monkeypatch):
    def read(*given, **named):
        raise EOFError("the end")

    monkeypatch.setattr(cs.io, "read_samples", read)


def entries_lost(monkeypatch):
    def lossy(matrix):
        return {"s": sp.csr_array(np.abs(matrix["s"].toarray())) if sp.issparse(matrix["s"]) else matrix["s"]}

    monkeypatch.setattr(fuzz, "as_views", lambda X, *more: cs.as_views(lossy(X), *more))


def rows_reversed(monkeypatch):
    take = cs.Views.__getitem__

    def reversed_rows(self, key):
        return take(self, key[::-1] if isinstance(key, list) and isinstance(key[0], int) else key)

    monkeypatch.setattr(cs.Views, "__getitem__", reversed_rows)


SABOTAGE = {
    "batch": nothing_learned,
    "weights": weights_ignored,
    "chunks": chunks_forgotten,
    "files": crash_at_load,
    "tables": other_error_in_tables,
    "sparse": entries_lost,
    "views": rows_reversed,
}


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_fault_is_found(kind, monkeypatch):
    SABOTAGE[kind](monkeypatch)
    assert fuzz.failures(fuzz.run(kind, range(6 if kind == "files" else 30)))


@pytest.mark.parametrize(
    "error",
    [
        np.linalg.LinAlgError("SVD did not converge in linear least squares."),
        ValueError("array must not contain infs or NaNs."),
        ValueError("operands could not be broadcast together with shapes (3,) (4,)."),
        ValueError("too short."),
        ValueError("a text without a period at its end"),
        KeyError("Any other exception is a failure."),
        IndexError("Any other exception is a failure."),
    ],
)
def test_refusals_that_are_no_sentences_of_ours_are_failures(error):
    def refuse():
        raise error

    with pytest.raises(AssertionError, match="in this case"):
        fuzz.attempt(lambda: "this case", refuse)


def test_a_sentence_is_a_refusal():
    def refuse():
        raise ValueError("View 'audio' has 90 rows, the others 100.")

    assert fuzz.attempt(lambda: "this case", refuse) == (None, "View 'audio' has 90 rows, the others 100.")


@pytest.mark.parametrize("gap", [np.nan, np.inf, -1.0])
def test_a_wrong_gap_is_found(gap, monkeypatch):
    model = cs.EarlyFusion(Ridge()).fit(np.eye(4), np.arange(4.0))
    wrong = cs.certificates.Certificate(status="exact", objective=1.0, gap=gap)
    monkeypatch.setattr(cs.EarlyFusion, "certificate", lambda self: wrong)
    with pytest.raises(AssertionError, match="gap"):
        fuzz.check_certificate(lambda: "this case", model)


def test_a_changed_input_and_a_changed_model_are_found():
    values = np.arange(6.0).reshape(3, 2)
    before = fuzz.copies({"a": values, "s": sp.csr_array(values)}, np.array(["x", None], dtype=object), None)
    values[0, 0] = 7
    after = fuzz.copies({"a": values, "s": sp.csr_array(values)}, np.array(["x", None], dtype=object), None)
    assert not fuzz.same_copies(before, after)
    assert fuzz.same_copies(after, after)

    class Forgetful(cs.EarlyFusion):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, -np.asarray(y) if len(y) == 5 else y)
            if len(y) == 5:
                raise ValueError("This fit is refused too late to leave the model alone.")
            return self

    rng, model, X = np.random.default_rng(0), Forgetful(Ridge()), cs.Views(a=np.eye(5, 2))
    with pytest.raises(AssertionError, match="a refused refit changed predictions"):
        fuzz.check_refused_refit(rng, lambda: "this case", model, X, np.arange(5.0), None, False)


def test_what_is_written_past_python_is_found(monkeypatch):
    def loud(rng):
        os.write(1, b" ** On entry to DSYRK parameter number 10 had an illegal value\n")
        return "answered"

    monkeypatch.setitem(fuzz.KINDS, "views", (7, loud, False, 0.9))
    assert all("On entry to DSYRK" in text for text in fuzz.failures(fuzz.run("views", range(2))).values())
    assert len(fuzz.failures(fuzz.run("views", range(2)))) == 2


def test_a_crash_is_the_failure_of_its_case(monkeypatch):
    def fatal(rng):
        if rng.random() < 0.3:
            os.kill(os.getpid(), signal.SIGSEGV)
        return "answered"

    monkeypatch.setitem(fuzz.KINDS, "sparse", (6, fatal, True, 0.5))
    outcomes = fuzz.run("sparse", range(20))
    crashed = [seed for seed in range(20) if np.random.default_rng([6, seed]).random() < 0.3]
    assert len(outcomes) == 20
    assert crashed
    assert fuzz.failures(outcomes) == dict.fromkeys(crashed, "failed: the process ended with SIGSEGV")
