"""Orders of the columns of the newsgroups."""

import numpy as np
import pytest

from consilience.experiments._experiment import Results
from consilience.experiments.newsgroups import POWERS, _best, _claims, _gaps, column_order


@pytest.mark.parametrize("n_views", [2, 3, 5])
@pytest.mark.parametrize("arrangement", ["shuffled", "cut", "interleaved"])
def test_views_have_the_same_width_and_no_column_twice(arrangement, n_views):
    columns = column_order(arrangement, 31, n_views)
    assert len(columns) == 31 // n_views * n_views == len(set(columns))


def test_the_order_decides_which_columns_meet():
    def position_of_neighbors(arrangement):
        first, second = np.split(column_order(arrangement, 1000, 2), 2)
        return np.abs(first - second)

    np.testing.assert_array_equal(position_of_neighbors("interleaved"), 1)
    np.testing.assert_array_equal(position_of_neighbors("cut"), 500)
    shuffled = position_of_neighbors("shuffled")
    assert 250 < shuffled.mean() < 420  # a third of 1,000 is expected
    np.testing.assert_array_equal(column_order("shuffled", 1000, 2), column_order("shuffled", 1000, 2))


def errors(columns, n_views, order, shift):
    mmp = [9.0 - (p == 3) + shift for p in POWERS]
    ommp = [9.0 - (p == 3) for p in POWERS]
    cell = {"columns": columns, "views": n_views, "order": order}
    return cell, {"MMP": mmp, "OMMP": ommp, "perceptron": 8.3 + 0.1 * order, "alone": [10.0] * n_views}


def test_gains_and_claims_follow_from_the_errors():
    kinds = [("shuffled", n_views, 0.1) for n_views in (2, 3, 5, 6)] + [("cut", 2, 0.0), ("interleaved", 2, 0.5)]
    results = Results([errors(columns, n_views, order, shift) for columns, n_views, shift in kinds for order in (0, 1)])
    power, gain = _best(results, "OMMP", 2)
    assert power == 3
    np.testing.assert_allclose(gain, [0.3, 0.4])
    np.testing.assert_allclose(_gaps(results, "interleaved", 2), 0.5)
    alike, no_gain, sparse = [claim.holds for claim in _claims(results)][3:]
    assert alike
    assert not no_gain  # OMMP gains 0.35 points
    assert not sparse
