"""Random cases: the short run, its plan, and that failures of each way are counted."""

import ctypes
import itertools
import time

import pytest

import fuzz
import random_cases
from fuzzing.properties import taken


@pytest.fixture(autouse=True)
def _kept(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "KEPT", tmp_path)


def test_a_short_run():
    found = random_cases.run(False)
    assert [figure.failed for figure in found.figures] == [0, 0]
    assert sum(figure.tried for figure in found.figures) == sum(short for short, _ in random_cases.CASES.values())
    (_, heads, rows), *_ = found.tables
    assert len(rows) == len(fuzz.KINDS)
    assert all(len(row) == len(heads) for row in rows)


def test_the_long_run_has_every_kind_and_a_million_cases_of_parsers():
    assert set(random_cases.CASES) == set(fuzz.KINDS)
    assert set(random_cases.PARSERS) < set(fuzz.KINDS)
    assert sum(random_cases.CASES[kind][1] for kind in random_cases.PARSERS) >= 1_000_000
    apart = random_cases.FIRST
    assert all(short <= long < apart for short, long in random_cases.CASES.values())


# -- failures are found and counted by their way
def plan(monkeypatch, function, cases=3, **how):
    """Let the check run one kind with another function."""
    kind = fuzz.KINDS["json"]._replace(function=function, warm_up=lambda: None, **how)
    monkeypatch.setattr(fuzz, "KINDS", {"json": kind})
    monkeypatch.setattr(random_cases, "CASES", {"json": (cases, cases)})


def broken(rng):
    raise KeyError("x")


def crash(rng):
    ctypes.string_at(0)


HELD: list[object] = []
FAULTS = {"error": broken, "crash": crash, "hang": lambda rng: time.sleep(60)}


@pytest.mark.parametrize("way", FAULTS)
def test_faults_are_counted(way, monkeypatch, capsys):
    plan(monkeypatch, FAULTS[way], limit=0.3)
    found = random_cases.run(False)
    assert [figure.failed for figure in found.figures] == [3, 0]
    assert f"3 {random_cases.WAYS[way]}" in found.figures[0].note
    assert "python tests/fuzz.py --kind json --seed 2    failed" in capsys.readouterr().out


def test_a_leak_is_counted(monkeypatch):
    monkeypatch.setattr(fuzz, "LEAST", 40)
    monkeypatch.setattr(fuzz, "GROWTH", 4 << 20)
    plan(monkeypatch, lambda rng: HELD.append(taken(1 << 19)), cases=40)
    found = random_cases.run(False)
    assert found.figures[0].failed == 1
    assert "1 leaks" in found.figures[0].note


@pytest.mark.parametrize("third", [0, 1, 2])
def test_memory_that_is_taken_once_is_not_a_leak(third, monkeypatch):
    monkeypatch.setattr(fuzz, "LEAST", 40)
    monkeypatch.setattr(fuzz, "GROWTH", 4 << 20)
    calls = itertools.count()
    plan(monkeypatch, lambda rng: HELD.append(taken(1 << 19)) if next(calls) // 14 == third else None, cases=40)
    assert random_cases.run(False).figures[0].failed == 0


def test_a_sound_kind_has_no_failures(monkeypatch):
    plan(monkeypatch, lambda rng: None, cases=5)
    found = random_cases.run(False)
    assert [figure.failed for figure in found.figures] == [0, 0]
    assert found.figures[0].note.startswith("5 with a result, 0 refused")
