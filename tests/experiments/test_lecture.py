"""Passes, features and made data of the lecture's experiments."""

import numpy as np
import pytest

from consilience import OnlinePerceptron
from consilience.experiments._passes import passes
from consilience.experiments.lecture import BOUNDARIES, POINTS, bounded_points, quadratic_features
from consilience.experiments.lecture_averages import separable
from consilience.kernels import Polynomial


def naive_passes(X, y, most):
    w, counts = np.zeros(X.shape[1]), []
    while len(counts) < most and (not counts or counts[-1]):
        counts.append(0)
        for x, t in zip(X, y, strict=True):
            if t * (w @ x) <= 0:
                w += t * x
                counts[-1] += 1
    return counts


@pytest.mark.parametrize("margin", [0.2, 0.02])
def test_mistakes_of_each_pass_equal_those_of_the_textbook(margin):
    X, y, _ = separable(margin, 80, np.random.default_rng(0))
    found = passes(OnlinePerceptron(fit_intercept=False), X, y, 200)
    assert found.tolist() == naive_passes(X, y, 200)
    assert found[-1] == 0


def test_passes_end_where_nothing_can_be_learned():
    counts = passes(OnlinePerceptron(), POINTS, np.array([0, 1, 1, 0]), 7)
    assert len(counts) == 7
    assert min(counts) > 0


@pytest.mark.parametrize("margin", [0.3, 0.01])
def test_separable_points_have_the_margin(margin):
    X, y, normal = separable(margin, 100, np.random.default_rng(1))
    np.testing.assert_allclose((X**2).sum(axis=1), 1)
    assert len(X) == 100
    assert (y * (X @ normal)).min() >= margin


def test_quadratic_features_have_the_inner_products_of_the_kernel():
    X = np.random.default_rng(0).standard_normal((20, 2))
    features = quadratic_features(X)
    np.testing.assert_allclose(features @ features.T, Polynomial(2, 1.0)(X))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_points_are_on_both_sides_of_a_boundary(boundary):
    X, y = bounded_points(boundary, 100, np.random.default_rng(0))
    assert len(X) == 100
    assert 10 < y.sum() < 90
    np.testing.assert_array_equal(BOUNDARIES[boundary](*X.T) > 0, y == 1)
