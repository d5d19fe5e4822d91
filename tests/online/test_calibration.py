"""Running probabilities: scores that change their scale, outliers, models that forget, classes that join."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

import consilience as cs
from consilience.online._calibration import Calibration


def simulated(n, scale, seed=0, outliers=0.0):
    """Scores of a given scale at each time, classes and the true probabilities."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) + 1.5 * rng.choice([-1, 1], size=n)
    truth = expit(1.2 * z)
    codes = (rng.random(n) < truth).astype(np.int64)
    z[rng.random(n) < outliers] *= 30
    return (z * scale)[:, None], codes, truth


def calibration_error(p, y, bins=15):
    which = np.minimum((p * bins).astype(int), bins - 1)
    parts = [which == k for k in range(bins) if (which == k).any()]
    return sum(abs(p[part].mean() - y[part].mean()) * part.mean() for part in parts)


@pytest.mark.parametrize(
    ("growth", "outliers"), [(lambda t: 1.0, 0.0), (np.sqrt, 0.0), (np.log1p, 0.01), (lambda t: 1 / (1 + t), 0.0)]
)
def test_probabilities_are_calibrated_while_scores_grow_or_shrink(growth, outliers):
    n = 6000
    scores, codes, truth = simulated(n, growth(1.0 + np.arange(n)), outliers=outliers)
    p = Calibration(1).learn(scores, codes, np.ones(n), True)[:, 1]
    assert calibration_error(p[500:], codes[500:]) < 0.03
    assert log_loss(codes[500:], p[500:]) < log_loss(codes[500:], truth[500:]) + (0.03 if outliers else 0.015)


def test_probabilities_follow_a_model_that_forgets():
    """Without `forget`, the scale of 10,000 samples would fade slowly."""
    scores, codes, _ = simulated(12_000, np.where(np.arange(12_000) < 10_000, 1.0, 0.01))
    losses = []
    for forgets in (False, True):
        running = Calibration(1)
        running.learn(scores[:10_000], codes[:10_000], np.ones(10_000), True)
        if forgets:
            running.forget()
        p = running.learn(scores[10_000:], codes[10_000:], np.ones(2000), True)[:, 1]
        losses.append(log_loss(codes[10_000:], p))
    assert losses[1] < losses[0] - 0.04


def test_an_estimator_that_forgets_lets_its_probabilities_follow():
    X, y = cs.datasets.make_views(n_samples=400, n_classes=2, random_state=0, return_X_y=True)
    model = cs.OnlinePerceptron(average=True).partial_fit(X, y)
    assert (model._calibration.memory > 2).any()
    model.forget(0.5)
    assert (model._calibration.memory == 2).all()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_probabilities_agree_with_the_decisions_for_every_scale(n_outputs):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(500, n_outputs)) * np.exp(3 * rng.normal(size=(500, 1)))
    codes = (scores[:, 0] > 0).astype(int) if n_outputs == 1 else scores.argmax(axis=1)
    running = Calibration(n_outputs)
    running.learn(scores, np.where(rng.random(500) < 0.2, 0, codes), np.ones(500), True)
    assert (running.probabilities(scores).argmax(axis=1) == codes).all()


def test_a_class_that_joins_keeps_what_was_learned_about_the_scores():
    scores, codes, _ = simulated(2000, 4.0)
    running = Calibration(1)
    running.learn(scores, codes, np.ones(2000), True)
    before = running.probabilities(scores[:50])
    running.remap(3)
    p = running.probabilities(np.column_stack([-scores, scores, np.full(2000, -1e3)])[:50])
    assert p.shape == (50, 3)
    assert (p[:, :2].argmax(axis=1) == before.argmax(axis=1)).all()
    made = running.learn(np.column_stack([-scores, scores, 0 * scores - 9]), codes, np.ones(2000), True)
    np.testing.assert_allclose(made.sum(axis=1), 1.0)
    assert calibration_error(made[1000:, 1], codes[1000:]) < 0.08
