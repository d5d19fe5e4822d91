"""A test that takes too long is stopped, but not while it imports a module."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("coverage", reason="coverage is not installed: tests are measured with the dev extra")
sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))
contexts = importlib.import_module("_contexts")


def stack(*files):
    frame = None
    for file in files:
        frame = SimpleNamespace(f_code=SimpleNamespace(co_filename=file), f_back=frame)
    return frame


def test_tests_are_stopped_outside_of_imports_only(monkeypatch):
    timers = []
    monkeypatch.setattr(contexts.signal, "setitimer", lambda *given: timers.append(given))
    contexts._stop(0, stack("test_a.py", "<frozen importlib._bootstrap>", "torch/__init__.py"))
    assert timers == [(contexts.signal.ITIMER_VIRTUAL, 1)]
    with pytest.raises(pytest.skip.Exception, match="took more than"):
        contexts._stop(0, stack("test_a.py", "solver.py"))
    assert len(timers) == 1
