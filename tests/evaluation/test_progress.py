"""Progress is shown where it was asked for: a bar in a terminal or notebook, a line per minute elsewhere."""

import sys
import types

import numpy as np
import pytest

import consilience as cs
from consilience import _progress

pytest.importorskip("rich", reason="rich is not installed")
X, y = cs.datasets.make_views(n_samples=60, n_classes=2, random_state=0, return_X_y=True)


@pytest.fixture
def terminal(monkeypatch):
    """Standard error taken for a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(_progress, "_on_terminal", lambda: True)


def test_a_line_with_a_share(capsys, terminal):
    with _progress.progress(True, "waiting [for] samples") as show:
        show("half [done]", 0.5)
        show("all", 1.0)
    shown = capsys.readouterr().err
    assert "waiting [for] samples" in shown
    assert "all" in shown


def test_silent_unless_asked(capsys, monkeypatch):
    for shown, seen in ((False, True), (False, False), (True, False)):  # the last is silent in its first minute
        monkeypatch.setattr(_progress, "_on_terminal", lambda seen=seen: seen)
        with _progress.progress(shown, "waiting") as show:
            show("something", 0.5)
    assert capsys.readouterr() == ("", "")


def test_a_line_per_minute_without_a_terminal(capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr(_progress, "_on_terminal", lambda: False)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    with _progress.progress(True, "waiting") as show:
        for seconds in range(0, 200, 5):
            now = 100.0 + seconds
            show(f"step {seconds}", None if seconds > 150 else seconds / 200)
    assert capsys.readouterr() == ("", "step 60, 30% done, 1 min\nstep 120, 60% done, 2 min\nstep 180, 3 min\n")


def test_notebooks_are_known(monkeypatch):
    assert not _progress._in_notebook()
    shell = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=shell))
    assert _progress._in_notebook()


def test_without_rich_work_goes_on(monkeypatch, terminal):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.warns(UserWarning, match="pip install 'consilience\\[cli\\]'"), _progress.progress(True, "a") as show:
        show("b", None)


def test_streams_and_comparisons_show_progress(capsys, terminal):
    cs.progressive_validation(cs.OrthogonalPerceptron(), X, y, verbose=True)
    assert "60 samples" in capsys.readouterr().err
    cs.compare(X, y, estimators=["OnlinePerceptron"], cv=2, verbose=True)
    assert "OnlinePerceptron, fold 1 of 2" in capsys.readouterr().err
    cs.progressive_validation(cs.OrthogonalPerceptron(), X, y)
    cs.OnlinePerceptron(verbose=True).partial_fit(X, y)  # a chunk of a stream is silent
    assert capsys.readouterr() == ("", "")


def test_reports_cost_nothing_unless_they_are_shown():
    _progress.report_progress(3, np.nan)
    assert _progress._shown_by.get() is None


ITERATIVE = {
    cs.CoRegularizedSVC: {},
    cs.CoRegularizedRidgeClassifier: {"view_weights": "learned"},
    cs.CoRegularizedRidgeClassifierCV: {},
    cs.ViewMetricRidgeClassifier: {"metric": "block_sparse"},
    cs.ViewMetricRidgeClassifierCV: {},
    cs.MultipleKernelRidgeClassifier: {},
    cs.MaxMarginClassifier: {},
    cs.OnlinePerceptron: {},
    cs.OrthogonalPerceptron: {},
    cs.MultiCueClassifier: {},
    cs.VectorPerceptron: {},
}


@pytest.mark.parametrize("cls", ITERATIVE, ids=lambda cls: cls.__name__)
def test_estimators_show_progress(cls, capsys, terminal, monkeypatch):
    shown_texts = []
    monkeypatch.setattr(_progress, "_plain", lambda text: shown_texts.append(text) or text)
    shown = cls(**ITERATIVE[cls], verbose=True).fit(X, y)
    assert any(text.startswith(f"{cls.__name__}: ") for text in shown_texts)
    assert capsys.readouterr().err
    shown_texts.clear()
    quiet = cls(**ITERATIVE[cls]).fit(X, y)
    assert not shown_texts
    assert capsys.readouterr() == ("", "")
    if "random_state" not in shown.get_params():
        np.testing.assert_array_equal(shown.predict(X), quiet.predict(X))
