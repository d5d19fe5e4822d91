"""Hostile input: the short run, and what the check would see."""

import importlib
import json
import multiprocessing
import os
import pickle
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from consilience.cli import _output
from consilience.datasets import _store
from consilience.io import formats, model_files, writing
from consilience.report import _html
from consilience.views import _notebook

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

pytest.importorskip("typer", reason="typer is not installed")
pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here"),
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="memory is measured by Linux"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
security = importlib.import_module("security")
hostile, guards, requests = security._hostile, security._guards, security._requests


def test_nothing_happens_in_the_short_run():
    for figure in security.run(False).figures:
        assert figure.tried > 0, figure
        assert figure.failed == 0, figure


# -- faults would be seen
def test_names_that_become_markup_are_seen(monkeypatch):
    assert security.hostile_views(False, random.Random(0)).failed == 0
    monkeypatch.setattr(_notebook, "escape", str)
    assert security.hostile_views(False, random.Random(0)).failed > 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<p>a</p><script>1</script>", None),
        ("<p onclick=x>a</p><script>1</script>", "new elements"),
        ("<p>a</p><script>2</script>", "another script"),
        ("<p>a</p><i></i><script>1</script>", "new elements"),
        ("<p>a</p>", "another script"),
    ],
)
def test_what_differs_between_pages(text, wrong):
    found = security.markup_of(text, security.Elements("<p>one</p><script>1</script>"))
    assert found == wrong if wrong is None else found.startswith(wrong)


def test_a_cell_of_a_report_that_is_not_escaped_is_seen(monkeypatch):
    plain = security.Elements(_html.html_table(["a"], [["b"]]))
    rows = [["<x-evil>"]]
    assert security.markup_of(_html.html_table(["a"], rows), plain) is None
    monkeypatch.setattr(_html, "escape", str)
    assert "x-evil" in security.markup_of(_html.html_table(["a"], rows), plain)


def test_control_sequences_and_short_rows_are_seen(monkeypatch, tmp_path):
    security.write_table(tmp_path / "t.csv", ["\x1b[2J", "=1+1", "a"])
    words = ["fit", str(tmp_path / "t.csv"), "-y", "\x1b[2Jnone", "--save", str(tmp_path / "m.cons")]
    assert security.wrong_command(words) is None
    monkeypatch.setattr(_output, "printable", str)
    assert "U+001B is printed" in security.wrong_command(words)
    (tmp_path / "out.csv").write_text("id,prediction\n1,2,3\n")
    assert "rows of several lengths" in security.wrong_tables(tmp_path)


def test_cells_that_leave_their_place_are_seen(monkeypatch):
    assert security.hostile_cells(False, random.Random(0)).failed == 0
    monkeypatch.setattr(writing, "_quoted", str)
    assert security.hostile_cells(False, random.Random(0)).failed > 0


def test_code_that_runs_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "objects.npz"
    path.write_bytes(hostile.files_with_code(str(tmp_path / "canary"))["objects.npz"])
    assert security.try_file(path) is None
    load = np.load
    monkeypatch.setattr(formats.np, "load", lambda *given, **named: load(*given, **{**named, "allow_pickle": True}))
    assert "find_class" in security.try_file(path)


@pytest.mark.parametrize(
    ("work", "event"),
    [
        (lambda: eval("1 + 1"), "exec"),
        (lambda: os.system("true"), "os.system"),
        (lambda: pickle.loads(pickle.dumps(Path("x"))), "pickle.find_class"),
        (lambda: open("/tmp/outside", "a").close(), "open to write"),
    ],
)
def test_events_are_seen(tmp_path, work, event):
    status, events = guards.guarded(work, tmp_path)
    Path("/tmp/outside").unlink(missing_ok=True)
    assert status == 0
    assert events
    assert events[0].startswith(event)
    assert guards.guarded(lambda: json.loads("[1]"), tmp_path) == (0, [])


def test_a_bomb_that_is_unpacked_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    path.write_bytes(hostile.few_bombs(10 * security.MEGABYTES)["bomb.npz"])
    assert security.try_bomb(path) is None
    monkeypatch.setattr(formats, "_check_unpacked", lambda source: None)
    assert security.try_bomb(path)


def test_a_model_file_without_a_check_of_its_size_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "bomb.cons"
    path.write_bytes(hostile.few_bombs(10 * security.MEGABYTES)["bomb.cons"])
    assert security.try_bomb(path) is None
    monkeypatch.setattr(model_files, "check_sizes", lambda payload: bytearray(400 << 20))
    assert "memory grew" in security.try_bomb(path)


def test_downloads_that_are_not_https_are_seen(monkeypatch):
    assert not [wrong for wrong, _ in security.wrong_downloads() if wrong]
    monkeypatch.setattr(_store, "_require_https", lambda url: None)
    assert [about for wrong, about in security.wrong_downloads() if wrong]


def test_a_service_that_breaks_is_seen(monkeypatch):
    program = requests.program

    def fragile():
        module = program()
        module.Handler.routes = {**module.Handler.routes, "/learn": lambda learner, request: 1 / 0}
        return module

    monkeypatch.setattr(requests, "program", fragile)
    monkeypatch.setattr(requests, "_wait", lambda done: bool(done()))
    assert [wrong for wrong, _ in requests.hostile_requests(8, random.Random(0)) if wrong]


def test_the_threat_model_names_the_check():
    text = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    assert "python trust/security.py" in text
    assert re.search(r"\| what an attacker controls \|", text)
