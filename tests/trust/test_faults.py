"""Faults of the system: the short run, what the check would see, and what commands do about them."""

import errno
import importlib
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.cli import _output
from consilience.cli import main as entry
from consilience.evaluation import _stream_files
from consilience.io import writing

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

pytest.importorskip("typer", reason="typer is not installed")
pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here"),
    pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
faults = importlib.import_module("faults")
works, commands, damage = faults._works, faults._commands, faults._damage


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    works.write_inputs(folder)
    return folder


def test_nothing_breaks_in_the_short_run():
    for figure in faults.run(False).figures:
        assert figure.tried > 0, figure
        assert figure.failed == 0, figure


# -- faults of the library would be seen
def in_place(path, write, *, sync_folder=True):
    with open(path, "wb") as file:
        write(file)


def test_a_file_that_is_written_in_place_is_seen(inputs, tmp_path, monkeypatch):
    place = faults.Place("predict", tmp_path, inputs)
    size = (place.folder / "out.csv").stat().st_size
    for write, wrong in ((writing.write_atomically, False), (in_place, True)):
        monkeypatch.setattr(writing, "write_atomically", write)
        place.start()
        ended = commands.run([*place.work.words], place.folder, commands.limited(size // 2))
        assert bool(place.after_a_fault(ended)) == wrong


def test_half_a_line_is_seen(inputs, tmp_path, monkeypatch):
    def write(handle, content):
        while content:
            content = content[os.write(handle, content) :]

    place = faults.Place("stream", tmp_path, inputs)
    for append, wrong in ((writing.append_whole, False), (write, True)):
        monkeypatch.setattr(_stream_files, "append_whole", append)
        place.start()
        ended = commands.run([*place.work.words], place.folder, commands.limited(1501))
        assert ended.code == 1
        assert "cannot be written: File too large" in ended.errors
        assert bool(place.files()) == wrong


def test_output_that_is_lost_without_a_word_is_seen(inputs, tmp_path, monkeypatch):
    works.fresh(tmp_path / "work", inputs)
    words = [*works.PRINTING["predict, JSON"]]
    ended = commands.run(words, tmp_path / "work", out=faults.full_device)
    assert ended.code == 1
    assert works.complaints(ended) is None
    monkeypatch.setattr(entry, "flush_output", lambda: False)
    ended = commands.run(words, tmp_path / "work", out=faults.full_device)
    assert "Exception ignored" in works.complaints(ended)
    assert ended.code == 120


def test_a_missing_stream_is_seen(inputs, tmp_path, monkeypatch):
    works.fresh(tmp_path / "work", inputs)
    words = [*works.PRINTING["kernels"]]
    assert commands.run(words, tmp_path / "work", out=lambda: None).code == 0
    monkeypatch.setattr(entry, "open_missing_streams", lambda: None)
    assert works.complaints(commands.run(words, tmp_path / "work", out=lambda: None))


def test_a_clock_that_changes_results_is_seen(monkeypatch, tmp_path):
    def work(folder, mtime):
        return {"hour": time.time() // 3600}

    expected = damage.try_clock(work, None, "now", None)
    assert damage.try_clock(work, "jumps forward", "2038", None) != expected
    assert "failed" in damage.try_clock(lambda folder, mtime: 1 / 0, "stands still", "0", None)


def test_a_cut_file_that_is_taken_as_whole_is_seen(tmp_path, monkeypatch):
    content = damage.sound(tmp_path, ("t.npz",))["t.npz"]
    assert damage.try_cut(tmp_path / "t.npz", content, len(content) // 2) is None
    monkeypatch.setattr(damage, "use", lambda path: damage.A)
    assert "read as whole" in damage.try_cut(tmp_path / "t.npz", content, len(content) // 2)
    monkeypatch.setattr(damage, "use", lambda path: {}["missing"])
    assert "KeyError" in damage.try_cut(tmp_path / "t.npz", content, len(content) // 2)


# -- what commands do
def test_a_reader_that_is_gone_does_not_stop_the_work(inputs, tmp_path):
    """The files are complete, and the exit status is that of shells for a closed pipe."""
    place = faults.Place("fit", tmp_path, inputs)
    place.start()
    (place.folder / "new.cons").unlink()
    ended = commands.run([*place.work.words], place.folder, out=faults.closed_pipe, err=faults.closed_pipe)
    assert ended.code == 141
    assert faults.whole(place) is None


def test_a_full_device_is_told_in_a_sentence(inputs, tmp_path):
    works.fresh(tmp_path / "work", inputs)
    ended = commands.run([*works.PRINTING["kernels"]], tmp_path / "work", out=faults.full_device)
    assert (ended.code, ended.errors) == (1, "Error: The output cannot be written: No space left on device.\n")


def test_messages_that_cannot_be_printed_do_not_stop_the_work(capsys, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    _output.say("Read 3 samples.", err=True)
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match=r"^The output cannot be written: No space left on device.$"):
        _output.say("a result")


def test_sigterm_writes_the_checkpoint_of_a_stream(inputs, tmp_path):
    """It comes while a piece is learned, which is delayed to its end."""
    figure = faults.signal_faults(tmp_path, inputs, False, random.Random(3))[0]
    assert figure.failed == 0


def test_a_quarantine_has_whole_lines_after_a_full_disk(tmp_path, monkeypatch):
    path, write = tmp_path / "bad.jsonl", os.write
    quarantine = cs.io.Quarantine(path)
    quarantine.add(1, "It is not JSON.", "x")
    monkeypatch.setattr(os, "write", lambda handle, content: write(handle, bytes(content)[:9]))
    calls = []

    def full(handle, content):
        calls.append(handle)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, bytes(content)[:9])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match=r"bad.jsonl' cannot be written: No space left on device\.$"):
        quarantine.add(2, "It is not JSON.", "y")
    monkeypatch.setattr(os, "write", write)
    quarantine.add(3, "It is not JSON.", "z")
    quarantine.close()
    assert [json.loads(line)["row"] for line in path.read_text().splitlines()] == [1, 3]


def test_a_stream_that_has_ended_logs_its_end_once(tmp_path):
    rows = [({"a": [float(k)]}, k % 2) for k in range(25)]
    given = {"checkpoint": tmp_path / "state.cons", "log": tmp_path / "log.jsonl", "log_every": 10, "resume": True}
    for _ in range(2):
        cs.progressive_validation(cs.OnlinePerceptron(), rows, **given)
        lines = (tmp_path / "log.jsonl").read_text().splitlines()
        assert [json.loads(line)["row"] for line in lines] == [10, 20, 25]


@pytest.mark.parametrize("end", ["jsonl", "csv"])
def test_rows_before_a_damaged_one_are_learned(tmp_path, end):
    lines = [json.dumps({"a": [float(k)], "y": k % 2}) for k in range(20)]
    if end == "csv":
        lines = ["a,b,y", *(f"{k},{k + 1},{k % 2}" for k in range(20))]
    path = tmp_path / f"rows.{end}"
    path.write_text("\n".join([*lines, lines[-1][:3]]))
    model = cs.OnlinePerceptron()
    with pytest.raises(ValueError, match=f"ine {len(lines) + 1}"):
        cs.progressive_validation(model, path, target="y", classes=[0, 1])
    assert model.n_samples_seen_ == 20


def test_a_clock_before_archives_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with pytest.raises(OSError, match="the clock of this machine says 19"):
        cs.save(cs.Views(a=np.ones((2, 1))), tmp_path / "v.cons")
