"""Published experiments: quick runs of each, resuming, the same JSON for the same seeds, the page, the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from consilience.cli.main import app
from consilience.experiments import _experiment, _page, _run, adult, all_experiments
from consilience.experiments._experiment import Claim, Experiment, Results, Table
from consilience.io import _locks

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"
EXPERIMENTS = all_experiments()
FULL = sorted(path.stem for path in RESULTS.glob("*.json") if not path.stem.endswith(".times"))
CALLS: list[int] = []


def tiny_measure(cell, cached):
    CALLS.append(cell["seed"])
    if cell["seed"] == cell.get("stop"):
        raise KeyboardInterrupt
    Gram = cached(f"gram {cell['seed']}", lambda: np.full((2, 2), float(cell["seed"])))
    return {"value": Gram.sum() / 3, "missing": float("nan"), "seconds of a fit": time.perf_counter()}


def tiny(stop=None, claims=lambda results: []):
    return Experiment(
        name="tiny", title="Nothing much", paper="Nobody (2026)", shown_in="Table 1", data="none", protocol="Draws.",
        cells=lambda seeds, quick: [{"seed": seed, "stop": stop} for seed in range(seeds)], measure=tiny_measure,
        tables=lambda results: [Table("Values", ["published", "here"], [["1.0", results.text("value")]])],
        claims=claims, seeds=4, minutes=0.1, differences=("There is no paper.",),
    )  # fmt: skip


# -- the experiments themselves
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_of_each_experiment(name, data_folder, tmp_path):
    experiment = EXPERIMENTS[name]
    record = _run.run(experiment, tmp_path, quick=True)
    assert record["cells"]
    text = _page.summary(experiment, *_run.read_results(tmp_path, f"{name}-quick"))
    assert text.count("|") > 6
    assert "nan" not in text.replace("± nan", "").lower()


@pytest.mark.parametrize("name", ["adult-linear", "flower17-labels"])
def test_two_runs_with_the_same_seeds_write_the_same_file(name, data_folder, tmp_path):
    texts = []
    for k, jobs in enumerate((1, 2)):
        _run.run(EXPERIMENTS[name], tmp_path / str(k), quick=True, n_jobs=jobs)
        texts.append((tmp_path / str(k) / f"{name}-quick.json").read_bytes())
    assert texts[0] == texts[1]


def test_names_and_titles_are_unique_and_every_text_is_a_sentence():
    titles = [each.title for each in EXPERIMENTS.values()]
    assert len(set(titles)) == len(titles)
    for each in EXPERIMENTS.values():
        for text in (each.protocol, *each.differences):
            assert text.rstrip().endswith("."), (each.name, text)
        assert each.differences, f"{each.name} says nothing about how it differs from the paper"


# -- the committed results
@pytest.mark.parametrize("name", FULL)
def test_kept_results_are_those_of_the_experiment_as_it_is(name):
    record, _ = _run.read_results(RESULTS, name)
    assert record["commit"]
    assert "changed" not in record["commit"]
    assert not record["quick"]
    assert record["seeds"] == EXPERIMENTS[name].seeds
    assert [line["cell"] for line in record["cells"]] == EXPERIMENTS[name].cells(record["seeds"], False)


@pytest.mark.parametrize("name", FULL)
def test_each_claim_holds_or_the_page_says_that_it_does_not(name):
    claims = EXPERIMENTS[name].claims(_run.read_results(RESULTS, name)[1])
    assert claims
    for claim in claims:
        assert claim.holds or claim.note.rstrip().endswith("."), claim
        assert claim.evidence


def test_the_page_is_made_from_the_committed_results():
    made = _page.page(EXPERIMENTS.values(), RESULTS)
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == made, "make docs/reproduction.md again"
    assert set(FULL) == set(EXPERIMENTS)
    assert "no full results yet" not in made


# -- running
@pytest.mark.parametrize("last", ['{"cell": {"se', '{"cell": {"seed": 2}, "found": {"seconds": 1e999}}\n'])
def test_a_run_that_was_stopped_continues_and_ends_in_the_same_file(last, tmp_path):
    whole = _run.run(tiny(), tmp_path / "whole")
    CALLS.clear()
    stopping = tiny(stop=2)
    with pytest.raises(KeyboardInterrupt):
        _run.run(stopping, tmp_path / "stopped")
    kept = tmp_path / "stopped" / "tiny.partial.jsonl"
    kept.write_text(kept.read_text().replace('"stop": 2', '"stop": null') + last)  # killed within a line, or damaged
    assert CALLS == [0, 1, 2]
    CALLS.clear()
    again = _run.run(tiny(), tmp_path / "stopped")
    assert CALLS == [2, 3]
    assert again == whole
    names = [(tmp_path / folder / "tiny.json").read_bytes() for folder in ("whole", "stopped")]
    assert names[0] == names[1]
    assert not kept.exists()


def test_kept_results_of_other_code_are_dropped(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        _run.run(tiny(stop=1), tmp_path)
    monkeypatch.setattr(_run, "code_digest", lambda: "other")
    CALLS.clear()
    _run.run(tiny(), tmp_path)
    assert CALLS == [0, 1, 2, 3]
    CALLS.clear()
    _run.run(tiny(), tmp_path)  # what the same code has completed is not measured again
    assert CALLS == []
    monkeypatch.setattr(_run, "code_digest", lambda: "new")
    _run.run(tiny(), tmp_path)
    assert CALLS == [0, 1, 2, 3]


def test_a_run_that_was_killed_before_its_first_result_continues(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            _run.run(tiny(stop=0), tmp_path)
    assert len(_run.run(tiny(), tmp_path)["cells"]) == 4


def test_fewer_draws_have_files_of_their_own(tmp_path):
    _run.run(tiny(), tmp_path, seeds=1)
    assert (tmp_path / "tiny-1-draws.json").exists()
    record, results = _run.read_results(tmp_path, "tiny-1-draws")
    assert "claims of the paper need all draws" in _page.summary(tiny(), record, results)
    with pytest.raises(FileNotFoundError, match="no results of a full experiment"):
        _page.page([tiny()], tmp_path)


def test_two_processes_do_not_measure_the_same(tmp_path):
    lock = tmp_path / "tiny.lock"
    with _run._locked(lock), pytest.raises(OSError, match=f"Process {os.getpid()} measures the same experiment"):
        _run.run(tiny(), tmp_path)
    assert not lock.exists()
    lock.write_text(str(os.getppid()))  # of a process that was killed; its number is that of another one now
    _run.run(tiny(), tmp_path)
    assert not lock.exists()


def test_without_locks_of_files_a_living_process_is_respected(tmp_path, monkeypatch):
    monkeypatch.setattr(_locks, "lock", lambda handle, wait: None)
    (tmp_path / "tiny.lock").write_text(str(os.getppid()))
    with pytest.raises(OSError, match=f"Process {os.getppid()} measures the same experiment"):
        _run.run(tiny(), tmp_path)
    (tmp_path / "tiny.lock").write_text("999999999")  # nobody: it was killed
    _run.run(tiny(), tmp_path)
    assert not (tmp_path / "tiny.lock").exists()


@pytest.mark.parametrize("last", ["tiny.json", "tiny.times.json", "tiny.partial.jsonl", "tiny.lock"])
def test_a_run_over_older_results_killed_at_its_end_gives_the_new_ones(tmp_path, monkeypatch, last):
    """Results of other code are there, and the process ends just before it writes or removes the last file."""
    _run.run(tiny(), tmp_path / "whole")
    whole = (tmp_path / "whole" / "tiny.json").read_bytes()
    monkeypatch.setattr(_run, "code_digest", lambda: "other")
    _run.run(tiny(), tmp_path)
    monkeypatch.undo()
    (tmp_path / "tiny.json").write_bytes(b'{"experiment": "tiny", "cells": []}')

    def killed_at(owner, name):
        before = getattr(owner, name)

        def call(path, *given, **named):
            if Path(path).name == last:
                raise SystemExit
            return before(path, *given, **named)

        monkeypatch.setattr(owner, name, call)

    killed_at(_run, "_write")
    killed_at(Path, "unlink")
    with pytest.raises(SystemExit):
        _run.run(tiny(), tmp_path)
    monkeypatch.undo()
    _run.run(tiny(), tmp_path)
    assert (tmp_path / "tiny.json").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.glob("tiny*")) == ["tiny.json", "tiny.times.json"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"is a file\. Name a folder for the results"):
        _run.run(tiny(), tmp_path / "file")


def test_times_and_values_are_kept_apart_and_nan_is_null(tmp_path):
    record = _run.run(tiny(), tmp_path)
    assert record["cells"][1]["found"] == {"value": 1.333333333, "missing": None}
    _, results = _run.read_results(tmp_path, "tiny")
    assert results.values("seconds of a fit").shape == (4,)
    assert len(list((tmp_path / "arrays").glob("*.npy"))) == 4


def test_results_are_selected_by_parameters():
    results = Results([({"p": p, "order": k}, {"error": p + k}) for p in (1, 2) for k in range(3)])
    assert results.levels("p") == [1, 2]
    np.testing.assert_array_equal(results.values("error", p=2), [2, 3, 4])
    assert results.text("error", p=1) == f"2.00 ± {4.302652729911275 / 3**0.5:.2f}"  # Student's t, 2 degrees
    assert not results.has("error", p=3)
    with pytest.raises(KeyError, match="No cell with"):
        results.values("error", p=3)


def test_claims_that_fail_are_told(tmp_path):
    claims = [Claim("A is below B.", False, "1 and 2", "B has fewer samples here."), Claim("C.", True, "3")]
    experiment = tiny(claims=lambda results: claims)
    _run.run(experiment, tmp_path)
    text = _page.page([experiment], tmp_path)
    assert "- *Does not hold:* A is below B. Measured: 1 and 2. B has fewer samples here." in text
    assert "| 1 of 2 |" in text


def test_half_widths_are_students():
    rng = np.random.default_rng(0)
    inside = [abs(draws.mean()) < _experiment.half_width(draws) for draws in rng.normal(size=(4000, 5))]
    assert abs(np.mean(inside) - 0.95) < 4 * (0.95 * 0.05 / 4000) ** 0.5


# -- the command
def command(*words):
    return CliRunner().invoke(app, ["reproduce", *words])


def test_the_list_has_every_experiment():
    shown = json.loads(command("--list", "--json").stdout)["experiments"]
    assert [row["name"] for row in shown] == list(EXPERIMENTS)


def test_an_unknown_name_is_refused_with_the_remedy():
    result = command("nothing", "--quick")
    assert "There is no experiment 'nothing'. `consilience reproduce --list` shows" in str(result.exception)


def test_one_experiment_by_the_command(tmp_path):
    result = command("lecture-xor", "--quick", "--folder", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "Bunescu" in result.stdout
    as_json = command("lecture-xor", "--quick", "--json", "--folder", str(tmp_path))
    assert json.loads(as_json.stdout)["experiment"] == "lecture-xor"


def test_data_that_are_missing_are_named_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    adult._data.cache_clear()  # what another test has read
    monkeypatch.setattr("consilience.datasets._store._open", lambda url: (_ for _ in ()).throw(OSError("off")))
    result = command("adult-linear", "lecture-xor", "--quick", "--folder", str(tmp_path))
    assert "1 of 2 experiments could not be run: adult-linear." in str(result.exception)
    assert (tmp_path / "lecture-xor-quick.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for other processes")
def test_ctrl_c_keeps_what_was_measured(tmp_path):
    words = [sys.executable, "-m", "consilience.cli.main", "reproduce", "lecture-quadratic", "--folder", str(tmp_path)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    kept = tmp_path / "lecture-quadratic.partial.jsonl"
    for _ in range(1200):
        if kept.exists() and len(kept.read_text().splitlines()) > 1:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert b"The same command continues lecture-quadratic." in told
    assert len(kept.read_text().splitlines()) > 1
    assert not (tmp_path / "lecture-quadratic.lock").exists()


def test_an_array_that_a_full_disk_cannot_hold_is_an_error(tmp_path):
    """`np.save` says nothing: the C library loses what it had not written yet."""
    array, file = np.arange(144.0).reshape(12, 12), tmp_path / "a.npy"
    with open(file, "wb") as out:
        _run._write_array(out, array)
    np.testing.assert_array_equal(np.load(file), array)
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with open("/dev/full", "wb", buffering=0) as out, pytest.raises(OSError, match="No space left"):
        _run._write_array(out, array)
