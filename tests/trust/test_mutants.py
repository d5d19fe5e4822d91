"""Mutants: every kind of change is made, good tests kill them, bad ones do not, and faults of tests do not count."""

import ast
import importlib
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "trust"))

mutants = importlib.import_module("mutants")
mutations = importlib.import_module("_mutations")

SOURCE = '''
LEAST = 3


def clipped(values, low=0, *, high=10):
    """Return values within low and high."""
    return [min(max(value, low), high) for value in values]


def count_large(values):
    def is_large(value):
        return value >= LEAST

    total = 0
    for value in values:
        if is_large(value):
            total += 1
    return total


def waits(n):
    while n > 0:
        n -= 1
    return n


class Box:
    def __init__(self, size):
        if size < 0:
            raise ValueError("A size is not negative.")
        self.size = size
'''
GOOD = """
import pytest
from toy.sums import Box, clipped, count_large, waits

def test_clipped():
    assert clipped([-5, 0, 5, 10, 15]) == [0, 0, 5, 10, 10]

def test_count_large():
    assert count_large([1, 2, 3, 4, 5]) == 3

def test_waits():
    assert waits(3) == 0
    assert waits(0) == 0
    assert waits(-2) == -2

def test_box_from_end_to_end():  # a name that ends as the last message of a child does
    assert Box(0).size == 0
    with pytest.raises(ValueError, match="A size is not negative"):
        Box(-1)
"""
BAD = """
from toy.sums import Box, clipped, count_large, waits

def test_runs():
    clipped([5]), count_large([3]), waits(3), Box(1)
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Return the outcomes of all mutants of a module, by the names of its tests."""
    place = tmp_path_factory.mktemp("toy")
    package, results = place / "toy", place / "results"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "sums.py").write_text(SOURCE)
    (place / "tests").mkdir()
    found = {}
    for name, text in (("good", GOOD), ("bad", BAD), ("broken", f"{BAD}    assert False\n")):
        (place / "tests" / f"test_{name}.py").write_text(text)
        tests = [f"tests/test_{name}.py::{node.name}" for node in ast.parse(text).body if hasattr(node, "name")]
        every = [mutants.Job(mutant, tests) for mutant in mutants.mutants_of(package / "sums.py", package)]
        jobs = every if name == "good" else every[:9]
        mutants.run_jobs(jobs, {}, results, math.inf, root=package, place=place, hang=0.5)
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        results.unlink()
        assert [line["key"] for line in lines] == [job.mutant.key for job in jobs]
        found[name] = {line["key"].partition(" ")[2]: (line["status"], line["by"]) for line in lines}
    return found


def test_good_tests_kill_all_mutants(toy):
    alive = {key: outcome for key, outcome in toy["good"].items() if outcome[0] != "killed"}
    assert alive == {}
    assert {by.partition(":")[0] for _, by in toy["good"].values()} == {"failed", "hung or crashed"}
    assert toy["good"]["waits: n -= 1 -> pass #1"][1] == "hung or crashed: tests/test_good.py::test_waits"


def test_tests_without_assertions_kill_few(toy):
    status = {key: status for key, (status, _) in toy["bad"].items()}
    assert status["clipped: 0 -> 1 #1"] == status[": 3 -> 4 #1"] == "survived"
    assert list(status.values()).count("survived") > 5


def test_a_test_that_fails_without_the_mutant_kills_none(toy):
    assert {status for status, _ in toy["broken"].values()} == {"survived"}


CHANGES = {
    "a < b": ["a <= b", "a >= b"],
    "a is not None": ["a is None"],
    "a in b": ["a not in b"],
    "a + b": ["a - b"],
    "a @ b": [],
    "a // b": ["a * b"],
    "a ** 2": ["a * 2", "a ** 3"],
    "a and b": ["a or b"],
    "not a": ["a"],
    "-a": ["a"],
    "f(x, axis=1)": ["f(x, axis=0)"],
    "f(True)": ["f(False)"],
    "'text'": [],
    "'text' + a": [],
    "f'{a:.3f}'": [],
    "a if b else c": ["c if b else a"],
    "max(a, b)": ["min(a, b)"],
    "np.minimum(a, b)": ["np.maximum(a, b)"],
    "a.any(axis=1)": ["a.all(axis=1)", "a.any(axis=0)"],
    "a[b:c]": ["a[b + 1:c]", "a[b:c - 1]"],
    "a[:, :2]": ["a[1:, :2]", "a[:, 1:2]", "a[:, :3]"],
}


@pytest.mark.parametrize("expression", CHANGES)
def test_changes_of_expressions(expression, tmp_path):
    file = tmp_path / "file.py"
    file.write_text(f"def f(self):\n    self.x = 5.0\n    y = {expression}\n")
    found = []
    for mutant in mutants.mutants_of(file, tmp_path):
        tree = ast.parse(file.read_text())
        site = list(mutations.sites(tree))[mutant.place]
        if isinstance(site.holder, list):
            site.holder[site.key] = site.new
        else:
            setattr(site.holder, site.key, site.new)
        found.append(ast.unparse(ast.fix_missing_locations(tree)).splitlines()[1:])
    assert found[:2] == [["    pass", f"    y = {expression}"], ["    self.x = 6.0", f"    y = {expression}"]]
    assert [last.removeprefix("    y = ") for _, last in found[2:]] == CHANGES[expression]


def test_a_sample_has_all_files_by_their_size(tmp_path):
    for name, size in (("large", 90), ("small", 10)):
        (tmp_path / f"{name}.py").write_text("def f():\n    return [" + ", ".join(["2"] * (size - 1)) + "]\n")
    every = [mutant for name in ("large", "small") for mutant in mutants.mutants_of(tmp_path / f"{name}.py", tmp_path)]
    order = mutants.sample_order(every)
    assert sorted(order) == sorted(every)
    assert len({mutant.key for mutant in every}) == 100
    for n in (10, 20, 50):
        assert abs(sum(mutant.file == "small.py" for mutant in order[:n]) - n / 10) <= 1


def test_the_fastest_cases_of_all_functions_come_first():
    seconds = {"a.py::slow": 40.0, "a.py::f[1]": 2.0, "a.py::f[2]": 1.0, "b.py::g": 0.5, "b.py::h": 29.0}
    assert mutants.choose(seconds, seconds) == ["b.py::g", "a.py::f[2]", "a.py::f[1]"]
    assert mutants.choose([], seconds) == []


def test_results_hold_for_the_present_file_and_survivors_meet_new_tests_only(tmp_path):
    every = mutants.mutants_of(mutants.PACKAGE / "solvers/bounds.py", mutants.PACKAGE)[:4]
    names, results = ["t.py::old", "t.py::new"], tmp_path / "results"
    present = mutants.digest(mutants.PACKAGE / "solvers/bounds.py")
    lines = [
        ("killed", present, []),
        ("survived", present, names[:1]),
        ("survived", present, names),
        ("killed", "-", []),
    ]
    results.write_text(
        "".join(
            json.dumps({"key": mutant.key, "file": file, "status": status, "by": "", "passed": passed}) + "\n"
            for mutant, (status, file, passed) in zip(every, lines, strict=True)
        )
    )
    outcomes, passed = mutants.read_results(every, results)
    assert [outcomes.get(mutant.key, ("none",))[0] for mutant in every] == ["killed", "survived", "survived", "none"]
    assert passed[every[1].key] == {"t.py::old"}
    first = mutants.first_outcomes(every, results)
    assert [first.get(mutant.key) for mutant in every] == ["killed", "survived", "survived", None]
    with open(results, "a") as file:
        line = {"key": every[1].key, "file": present, "status": "killed", "by": "", "passed": []}
        file.write(json.dumps(line) + "\n")
    assert mutants.first_outcomes(every, results)[every[1].key] == "survived"
    assert mutants.read_results(every, results)[0][every[1].key][0] == "killed"
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:-1]))

    class Recorded:
        def job(self, mutant):
            return mutants.Job(mutant, names)

    assert mutants.new_jobs(every, Recorded(), results) == [(every[1], names[1:]), (every[3], names)]


def test_the_order_begins_with_certificates_as_every_ninth_mutant():
    order = mutants.whole_order()
    assert len({mutant.key for mutant in order}) == len(order)
    own = [mutant.file in mutants.CERTIFICATES for mutant in order[:900]]
    assert sum(own) == 100


def test_mutants_of_a_room_count_up_to_the_first_that_was_not_tried():
    order = mutants.whole_order()[:60]
    killed = mutants.Outcome("killed", "failed: t")
    views = [mutant for mutant in order if mutants.room_of(mutant) == "views"]
    outcomes = {mutant.key: killed for mutant in order if mutant != views[2]}
    found = mutants.without_gaps(order, outcomes)
    assert found == [mutant for mutant in order if mutant not in views[2:]]
    assert {mutants.room_of(mutant) for mutant in order} == {"certificates", "io", "solvers", "views"}


def test_intervals_are_wilsons():
    from scipy.stats import binomtest

    for k, n in ((0, 5), (5, 5), (170, 200)):
        expected = binomtest(k, n).proportion_ci(method="wilson")
        assert mutants.wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_too_many_survivors_fail_and_are_listed():
    every = mutants.mutants_of(mutants.PACKAGE / "solvers/bounds.py", mutants.PACKAGE)[:20]
    killed, survived = mutants.Outcome("killed", "failed: t"), mutants.Outcome("survived", "passed: all")
    for n_survived, failed in ((0, 0), (3, 0), (4, 1), (20, 17)):
        outcomes = {mutant.key: survived if k < n_survived else killed for k, mutant in enumerate(every)}
        found = mutants.summarize(every, outcomes, dict.fromkeys(outcomes, "survived"))
        assert [(figure.what, figure.tried, figure.failed) for figure in found.figures] == [
            ("mutants of certificates", 20, failed)
        ]
        assert len(found.tables[0][2]) == n_survived
        share = "100%" if n_survived == 0 else f"{1 - n_survived / 20:.0%}"
        assert found.figures[0].note.startswith(f"{share} killed; 0% when first tried, 95% interval 0% to")


def test_equivalent_mutants_are_mutants_of_the_present_source():
    named = mutants.read_equivalent()
    files = {mutants.PACKAGE / key[0] for key in named}
    found = {mutant[:5] for file in files for mutant in mutants.mutants_of(file, mutants.PACKAGE)}
    assert set(named) <= found
    assert all(len(reason) > 20 and reason.endswith(".") for reason in named.values())
