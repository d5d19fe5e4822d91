"""Work that is killed loses nothing; the check would see it otherwise."""

import dataclasses
import importlib
import multiprocessing
import os
import random
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation import _kept_folds, _stream_run
from consilience.experiments import _run

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

kills = importlib.import_module("kills")
read_line = _kept_folds._read_line
pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def test_nothing_is_lost_in_the_short_run():
    for figure in kills.run(False).figures:
        assert figure.tried > 0, figure
        assert figure.failed == 0, figure


def test_a_file_that_is_written_in_place_is_seen(capsys):
    def write(model, path):
        with open(path, "wb", buffering=0) as file:
            for part in range(20):
                file.write(bytes(200_000) if part else b"consilience")
        cs.save(model, path)

    models = [kills.blob(seed, 200) for seed in (1, 2)]
    figure = kills.kill_replacing("in place", write, cs.load, models, 3, random.Random(0))
    assert figure.failed > 0
    assert "in place: the file cannot be read" in capsys.readouterr().err


def test_results_of_older_code_and_leftovers_are_seen(monkeypatch, capsys):
    monkeypatch.setattr(_run, "_remove_leftovers", lambda *given: None)
    assert kills.kill_experiment_at_calls(13).failed > 0
    assert "tiny.lock" in capsys.readouterr().err


def test_rows_that_are_written_twice_are_seen(monkeypatch, capsys):
    monkeypatch.setattr(_stream_run, "drop_lines_from", lambda *given: None)
    assert kills.kill_stream_at_calls(29).failed > 0
    assert "quarantine.jsonl differ" in capsys.readouterr().err


def halved(turn, result):
    return turn, dataclasses.replace(result, score=result.score / 2)


@pytest.mark.parametrize(
    ("name", "sabotage", "sentence"),
    [
        (
            "os",
            mock.Mock(wraps=os, truncate=lambda *given: None),
            "in line 12 at 50%: the leaderboard, the model or the folds",
        ),
        ("_read_line", lambda *given: halved(*read_line(*given)), "the leaderboard, the model or the folds differ"),
        ("_append", lambda *given: None, "no fold is kept"),
    ],
)
def test_folds_that_are_lost_or_read_wrongly_are_seen(name, sabotage, sentence, monkeypatch, capfd):
    monkeypatch.setattr(_kept_folds, name, sabotage)
    assert kills.kill_comparison_in_lines((0.5,), 11).failed > 0
    assert sentence in capfd.readouterr().err


def test_a_quarantine_keeps_the_rows_of_other_streams(tmp_path):
    """Row 3 of another stream is there already, and stays when this one is resumed before its row 3."""
    X, y = np.arange(40.0).reshape(20, 2), [0, 1] * 10
    bad = X.copy()
    bad[7, 0] = np.inf
    given = {"on_error": "skip", "quarantine": tmp_path / "bad.jsonl", "checkpoint": tmp_path / "c.cons"}
    (tmp_path / "bad.jsonl").write_text('{"row": 9, "error": "Another stream.", "content": null}\n')
    rows = [({"a": row}, label) for row, label in zip(bad, y, strict=True)]
    cs.progressive_validation(cs.OnlinePerceptron(), rows[:5], **given)
    with open(tmp_path / "bad.jsonl", "a") as file:
        file.write('{"row": 7, "error": "Written by a process that was killed.", "content": null}\n')
    result = cs.progressive_validation(cs.OnlinePerceptron(), rows, **given, resume=True)
    assert result.n_samples == 19
    lines = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert [line[:9] for line in lines] == ['{"row": 9', '{"row": 7']
    assert "killed" not in lines[1]
