"""How the experiment with equal error rates divides images."""

import numpy as np

from consilience.experiments.equal_errors import TRAINING_OBJECTS, divide_objects


def test_no_object_is_in_two_parts():
    target = np.repeat(["cow", "dog"], 50)
    objects = np.repeat(np.arange(20), 5)
    parts, test = divide_objects(target, objects, ["cow", "dog"], draw=0)
    groups = [set(objects[rows]) for rows in (*parts, test)]
    assert sum(len(group) for group in groups) == len(set.union(*groups)) == 20
    assert sorted(np.concatenate([*parts, test])) == list(range(100))
    assert len(parts) == TRAINING_OBJECTS
    for part in parts:  # one object of both categories
        assert len(set(objects[part])) == 2
        assert set(target[part]) == {"cow", "dog"}
    assert set(objects[test]) != set(objects[divide_objects(target, objects, ["cow", "dog"], draw=1)[1]])
