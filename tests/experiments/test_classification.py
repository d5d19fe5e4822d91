"""Machines that answer ±1: a row that no class claims counts for the first class."""

import numpy as np

from consilience import Views
from consilience.experiments._classification import FEW, PUBLISHED_SVM, Data, measure
from consilience.kernels import RBF


def test_rows_that_no_class_claims_count_for_the_first_class():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "d", "e"], 30)
    x = rng.normal(size=(150, 3))  # says nothing of the classes, and one in five rows is of a class: all answer no
    X = Views(one=x, two=x[:, :2])
    found = measure(Data(X, y, X, y, RBF(0.1)), {"method": "SVM", "level": 0.2, "draw": 0})
    for name in ("one", "two", "lfSVM"):
        assert found[f"{name}, {PUBLISHED_SVM}"] == 20.0  # the share of class "a"
    assert "efSVM, " + PUBLISHED_SVM not in found


def test_all_methods_find_separate_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = Views(one=rng.normal(size=(80, 2)) + 8 * y[:, None], two=rng.normal(size=(80, 1)))
    data = Data(X[::2], y[::2], X[1::2], y[1::2], {"one": RBF(0.02), "two": RBF(0.02)})
    for method in ("MVML", "MVML_I", FEW):
        assert measure(data, {"method": method, "level": 0.5, "draw": 1}, most=2)["accuracy"] == 100.0
