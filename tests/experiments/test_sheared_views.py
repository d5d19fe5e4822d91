"""The best line is at least as good as any of many random lines, and exact where the answer is known."""

import numpy as np

from consilience.experiments.sheared_views import best_line


def test_best_line_is_at_least_as_good_as_random_lines():
    rng = np.random.default_rng(0)
    points, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    normals, offsets = rng.normal(size=(2, 20000)), rng.normal(size=20000)
    shares = ((points @ normals > offsets) == y[:, None].astype(bool)).mean(axis=0)
    assert best_line(points, y) >= shares.max()
    assert best_line(points, y) < 1


def test_best_line_of_known_points():
    square = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert best_line(square, np.array([0, 1, 0, 1])) == 1.0
    assert best_line(square, np.array([0, 0, 1, 1])) == 0.75  # no line separates the diagonals
    on_a_line = np.arange(6.0)[:, None]
    assert best_line(on_a_line, np.array([0, 0, 0, 1, 1, 1])) == 1.0
    assert best_line(on_a_line, np.array([0, 1, 0, 1, 0, 1])) == 4 / 6
