"""Equal error rates."""

import numpy as np
import pytest

import consilience as cs


def test_equal_error_rates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    scores = rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[y]
    for t in range(3):
        rate = cs.equal_error_rate(y, scores, positive=t)
        thresholds = [np.inf, *np.sort(scores[:, t])]
        errors = [max((scores[y != t, t] >= c).mean(), (scores[y == t, t] < c).mean()) for c in thresholds]
        assert min(errors) - 0.02 < rate <= min(errors) + 1e-12
    assert cs.equal_error_rate(y == 0, scores[:, 0]) == cs.equal_error_rate(y, scores[:, 0], positive=0)
    assert cs.equal_error_rate([0, 0, 1, 1], [3.0, 3.0, 3.0, 3.0]) == 0.5
    assert cs.equal_error_rate([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], positive=0) == 0.0
    assert cs.equal_error_rate([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0]) == 1.0


@pytest.mark.parametrize(
    ("y", "scores", "positive", "message"),
    [
        ([0, 0], [1.0, 2.0], None, "needs samples of two classes; y has only '0'"),
        ([0, 1, 2], [1.0, 2.0, 3.0], None, "y has 3 classes. Choose one of them by `positive`"),
        ([0, 1], [1.0, 2.0], 5, "`positive` must be a class of y, '0', '1'; got 5"),
        ([0, 1], [[1.0, 2.0, 3.0]] * 2, None, "`scores` has 3 columns and y has 2 classes"),
        ([0, 1], [1.0, np.nan], None, "must be finite, one per sample"),
    ],
)
def test_scores_without_an_equal_error_rate_raise(y, scores, positive, message):
    with pytest.raises(ValueError, match=message):
        cs.equal_error_rate(y, scores, positive=positive)
