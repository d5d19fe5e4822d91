"""Threads, processes and long work: the short run, and faults are found."""

import importlib
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import cases
import consilience as cs
from consilience.online import serving
from fuzzing.properties import taken

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

load = importlib.import_module("load")
soak = importlib.import_module("_soak")
fits = importlib.import_module("_fits")


def test_the_short_run_has_no_failures():
    found = load.run(False)
    assert [figure.failed for figure in found.figures] == [0] * len(found.figures)
    assert all(figure.tried for figure in found.figures)
    assert all(len(row) == len(heads) for _, heads, rows in found.tables for row in rows)


def test_every_online_estimator_is_soaked():
    streamed = {name for name, own in cases.LEARNERS.items() if hasattr(own, "learn_one")}
    assert streamed == set(fits.ONLINE)
    assert {type(cases.LEARNERS[name]) for name in streamed} == {
        cls for cls in cases.all_learners() if hasattr(cls, "learn_one")
    }


# -- faults are found
BUFFER = {}


def forgetful(self, X, predict=cs.OnlinePerceptron.predict):
    self.last_ = len(X["a"])
    return predict(self, X)


def shared(self, X, predict=cs.OnlinePerceptron.predict):
    BUFFER["X"] = X
    time.sleep(1e-3)
    return predict(self, BUFFER["X"])


def loud(self, X, predict=cs.OnlinePerceptron.predict):
    warnings.warn("something", UserWarning, stacklevel=1)
    return predict(self, X)


@pytest.mark.parametrize(
    ("change", "text"),
    [(forgetful, "changed the model"), (shared, "answers of a thread differ"), (loud, "UserWarning: something")],
)
def test_faults_in_threads_are_found(change, text, monkeypatch):
    assert load.predict_in_threads("perceptron", 4, 1)[1] == []
    monkeypatch.setattr(cs.OnlinePerceptron, "predict", change)
    assert any(text in wrong for wrong in load.predict_in_threads("perceptron", 4, 1)[1])


def test_errors_in_threads_are_found():
    def broken():
        raise RuntimeError("dictionary changed size during iteration")

    assert load.together([broken, int]) == ["RuntimeError: dictionary changed size during iteration"]


def test_snapshots_that_share_their_state_are_found(monkeypatch):
    assert load.predict_while_learning("perceptron", 4, 60)[1] == []
    monkeypatch.setattr(serving, "_frozen_estimator", lambda model: model)
    assert load.predict_while_learning("perceptron", 4, 60)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_processes_with_other_answers_are_found(monkeypatch):
    names = ["perceptron", "passive-aggressive"]
    other = fits.fitted("perceptron", seed=5)
    monkeypatch.setattr(cs, "load", lambda path: other)
    tried, wrong, _ = load.predict_in_processes(names[:1], 2, "fork", 1)
    assert tried == 8
    assert wrong == ["perceptron: answers of a process differ"] * 2
    assert "fork" in multiprocessing.get_all_start_methods()


def test_memory_that_grows_is_found():
    if soak.resident() is None:
        pytest.skip("this system does not tell the memory of a process")
    kept = []
    found = soak.soak(lambda k: kept.append(taken(1 << 20)) or 1, 20)
    assert "memory grows" in found.wrong
    assert soak.soak(lambda k: len(np.ones(2**17)), 20).wrong == ""


def test_time_that_grows_is_found():
    found = soak.soak(lambda k: sum(range(20_000 if k < soak.ENOUGH // 2 else 200_000)) and 1, soak.ENOUGH)
    assert found.slower > soak.SLOWER
    assert "slower" in found.wrong


def test_streams_that_depend_on_their_chunks_are_found(monkeypatch):
    assert soak.soak_learner("perceptron", 2000).wrong == ""
    learn = soak.learn
    monkeypatch.setattr(soak, "learn", lambda model, X, y: learn(model, *(X, y) if len(y) > 100 else (X, 0 * y)))
    assert "other chunks differ" in soak.soak_learner("perceptron", 2000).wrong


def test_predictions_that_are_not_finite_are_found(monkeypatch):
    monkeypatch.setattr(soak, "scores", lambda model, X: np.array([np.nan]))
    assert "not finite" in soak.soak_learner("perceptron", 2000).wrong
