"""The same fit in other circumstances: the short run, and faults are found."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import cases
import consilience as cs
from consilience.io import _arrow_blocks

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

determinism = importlib.import_module("determinism")
one_run = importlib.import_module("_one_run")

HOW = {"names": ["coregularized ridge"], "n": 30}
SIMPLE = {
    "answers": [1.0, -2.0], "classes": [1.0], "objective": 1.0, "gap": 1e-3, "exact": True, "counts": [1, 4, 3],
}  # fmt: skip


def test_the_short_run_has_no_failures():
    found = determinism.run(False)
    assert [figure.failed for figure in found.figures] == [0] * len(found.figures)
    assert all(figure.tried for figure in found.figures)
    assert found.figures[0].note == "the same bits"
    assert all(len(row) == len(heads) for _, heads, rows in found.tables for row in rows)


def test_every_estimator_with_random_numbers_says_what_none_does():
    for cls in cases.all_learners():
        if "random_state" in cls._get_param_names():
            assert "NumPy's global generator" in " ".join(cls.__doc__.split()), cls.__name__


# -- faults are found
def test_other_bits_are_found():
    assert determinism.bits(SIMPLE, SIMPLE).wrong == ""
    other = {**SIMPLE, "answers": [1.0, np.nextafter(-2.0, 0.0)]}
    assert "the bits differ" in determinism.bits(SIMPLE, other).wrong
    assert "the bits differ" in determinism.bits(SIMPLE, {**SIMPLE, "objective": 1.0 + 1e-15}).wrong
    assert determinism.rounding(SIMPLE, other).wrong == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"answers": [1.0, -2.0 - 1e-7]}, "scores differ by"),
        ({"answers": [1.0]}, "scores differ by inf"),
        ({"classes": [0.0]}, "classes differ"),
        ({"counts": [1, 5, 3]}, "updates or mistakes differ"),
        ({"objective": 1.01}, "objectives are"),
        ({"error": "TypeError: no"}, "TypeError: no"),
    ],
)
def test_more_than_rounding_is_found(change, text):
    assert determinism.rounding(SIMPLE, SIMPLE).wrong == ""
    assert text in determinism.rounding(SIMPLE, {**SIMPLE, **change}).wrong
    if "answers" in change and len(change["answers"]) == 2:  # an iteration that ends at a tolerance may differ by more
        assert determinism.rounding({**SIMPLE, "exact": False}, {**SIMPLE, **change}).wrong == ""


def test_a_fit_that_differs_from_run_to_run_is_found(monkeypatch):
    fit, turn = cs.CoRegularizedRidge.fit, iter(range(1, 9))

    def moody(self, X, y, sample_weight=None):
        return fit(self, X, np.asarray(y) * (1 + 1e-15 * next(turn)), sample_weight)

    given = determinism.Circumstance("again", one_run.outcomes, determinism.bits)
    before = one_run.outcomes(HOW)
    assert determinism.compared(before, given, HOW)["coregularized ridge"].wrong == ""
    monkeypatch.setattr(cs.CoRegularizedRidge, "fit", moody)
    assert "the bits differ" in determinism.compared(before, given, HOW)["coregularized ridge"].wrong


def test_states_that_depend_on_chunks_are_found(monkeypatch):
    assert determinism.chunkings(["perceptron"], 40)["perceptron"] == (0.0, "")
    learn = cs.OnlinePerceptron.partial_fit

    def chunked(self, X, y, classes=None):
        return learn(self, {view: block * (1 + 1e-15 * len(y)) for view, block in X.items()}, y, classes)

    monkeypatch.setattr(cs.OnlinePerceptron, "partial_fit", chunked)
    assert "the bits differ" in determinism.chunkings(["perceptron"], 40)["perceptron"].wrong


def test_blocks_that_lose_samples_are_found(monkeypatch):
    names = ["metric ridge, features", "coregularized ridge"]
    assert determinism.partitions(names, "row blocks", 40) == {names[0]: (pytest.approx(0, abs=1e-10), "")}
    of = cs.RowBlocks.of
    monkeypatch.setattr(cs.RowBlocks, "of", lambda X, y, size: of({v: b[1:] for v, b in X.items()}, y[1:], size=size))
    assert "scores differ" in determinism.partitions(names, "row blocks", 40)[names[0]].wrong


def test_an_order_of_files_that_matters_is_found(monkeypatch):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    assert determinism.orders_of_files().wrong == ""
    monkeypatch.setattr(_arrow_blocks, "sorted", lambda found, key: found, raising=False)
    assert determinism.orders_of_files().wrong


def test_a_run_that_fails_is_not_a_result():
    with pytest.raises(RuntimeError, match="PYTHONHASHSEED must be"):
        determinism.in_child(HOW, {"PYTHONHASHSEED": "no"})
