"""Divisions of the images of ETH-80, and what is chosen from the errors."""

import numpy as np
import pytest

from consilience.experiments._cue_tables import SAME, best_errors, chosen_errors, gain_over_best, omcl_less_ommp
from consilience.experiments._experiment import Results
from consilience.experiments.eth80_cues import COWS, divided

Y = np.repeat(["cow", "dog"], 410)
OBJECTS = np.repeat(np.arange(20), 41)


@pytest.mark.parametrize("new_objects", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_images_are_divided_by_seventy_and_thirty(new_objects, seed):
    train, test = divided(Y, OBJECTS, new_objects, seed)
    assert (len(train), len(test)) == (574, 246)
    assert sorted([*train, *test]) == list(range(820))
    assert np.any(np.diff(train) < 0)  # in random order
    assert not np.array_equal(train, divided(Y, OBJECTS, new_objects, seed + 7)[0])


def test_new_objects_are_in_the_test_alone():
    train, test = divided(Y, OBJECTS, True, 0)
    assert not set(OBJECTS[train]) & set(OBJECTS[test])
    assert [len(set(OBJECTS[train][Y[train] == each])) for each in ("cow", "dog")] == [7, 7]
    train, test = divided(Y, OBJECTS, False, 0)
    assert set(OBJECTS[train]) & set(OBJECTS[test])


def test_settings_are_chosen_in_training_or_in_hindsight():
    names = {
        "single training": [[9, 5, 8, 7], [9, 5, 8, 7]],
        "single test": [[1, 2, 8, 7], [1, 4, 8, 7]],
        "OMMP two training": [[3, 4], [6, 5]],
        "OMMP two test": [[2, 1], [4, 1]],
        "OMCL two test": [[3, 3], [2, 4]],
    }
    results = Results([(SAME | {"draw": k}, {name: found[k] for name, found in names.items()}) for k in range(2)])
    assert best_errors(results, "OMMP two", "test", **SAME).tolist() == [1, 1]
    assert chosen_errors(results, "OMMP two", **SAME).tolist() == [2, 1]  # p of the fewest mistakes in each draw
    assert best_errors(results, "single", "test", ("dxdy", "shape"), **SAME).tolist() == [2, 4]  # color is not in it
    assert gain_over_best(results, COWS, "OMMP two", "test").tolist() == [1, 3]
    assert omcl_less_ommp(results, "two", "test", **SAME).tolist() == [2, 1]
