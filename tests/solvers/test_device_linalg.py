"""Symmetric products on devices, by stripes, and spectra there."""

import numpy as np
import pytest

from consilience._backend import to_numpy
from consilience.solvers import device_linalg
from consilience.solvers.linalg import add_gram, drop_null_space, eigh_positive, gram_of, mirror


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


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("rank", [0, 1, 3, 7])
def test_the_spectrum_of_a_matrix_without_its_null_space_is_the_matrix(library, rank):
    xp = pytest.importorskip(library)
    F = np.random.default_rng(0).normal(size=(7, rank))
    values, vectors = drop_null_space(*eigh_positive(xp.asarray(F @ F.T)))
    V = to_numpy(vectors)
    assert values.shape == (max(rank, 1),)
    np.testing.assert_allclose(V.T @ V, np.eye(max(rank, 1)), atol=1e-12)
    np.testing.assert_allclose(V * values @ V.T, F @ F.T, atol=1e-12)
