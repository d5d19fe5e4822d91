"""The Adult data in views."""

import numpy as np
import pytest

from consilience.experiments._tables import load_set
from consilience.experiments.adult import _data, _gaussian, _linear

GIVEN = {"order": 3, "rows": 400, "width": 1.0}


def test_views_are_neighboring_columns(data_folder):
    X, y = _data(3)
    A, labels, _ = load_set("a9a")
    np.testing.assert_array_equal(X["view2"].toarray()[:50], A[:50, 40:80].toarray())
    np.testing.assert_array_equal(y, labels[:32561])


@pytest.mark.parametrize("n_views", [2, 4])
def test_the_first_power_is_the_perceptron_on_all_columns(data_folder, n_views):
    both = _linear({**GIVEN, "views": n_views, "p": 1}, None)
    alone = _linear({**GIVEN, "views": n_views, "p": None}, None)
    assert both["MMP"] == both["OMMP"] == alone["perceptron"]
    assert len(alone["alone"]) == n_views


def test_widths_of_gaussian_kernels_change_the_perceptron(data_folder):
    wide, narrow = (_gaussian({**GIVEN, "views": 2, "p": None, "width": width}, None) for width in (1.0, 2.0))
    assert wide["same width"] == narrow["perceptron"]  # γ of all columns is half that of the views
    assert wide["perceptron"] != narrow["perceptron"]
