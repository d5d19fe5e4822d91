"""Symmetric products on devices, by stripes."""

import numpy as np
import pytest

from consilience._backend import to_numpy
from consilience.solvers import device_linalg
from consilience.solvers.linalg import add_gram, gram_of, mirror


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("width", [1, 6, 7, 8])
def test_products_by_stripes_are_whole_products(monkeypatch, library, width):
    xp = pytest.importorskip(library)
    monkeypatch.setattr(device_linalg, "_STRIPE", 3)
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(5, width)), rng.normal(size=(width, width))
    C = C + C.T
    np.testing.assert_allclose(to_numpy(gram_of(xp.asarray(X))), X.T @ X, atol=1e-13)
    for sign in (1, -1):
        found = mirror(add_gram(xp.asarray(C, copy=True), xp.asarray(X), sign))
        np.testing.assert_allclose(to_numpy(found), C + sign * X.T @ X, atol=1e-13)
