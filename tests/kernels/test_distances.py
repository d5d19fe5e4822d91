"""Gaussian kernels and squared distances against differences of rows, wherever the data lie."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.spatial.distance import cdist, pdist

import consilience as cs
import strategies
from consilience._backend import to_numpy
from consilience.kernels import RBF, center, normalize
from consilience.kernels._distances import squared_distances

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4))
GAMMA = 0.5
CLOSE = 3e-12  # the largest error of a kernel value


def far(size):
    """Near rows, and one at a distance of `size`."""
    return np.vstack([X[:50], np.full((1, 4), size), X[50:]])


DATA = {
    "near": X,
    **{f"one row at {size:.0e}": far(size) for size in (1e6, 1e8, 1e10, 1e12, 1e50, 1e100)},
    "rows at many distances": X * 10.0 ** rng.integers(-3, 12, size=(90, 1)),
    "several far rows": np.vstack([X, 1e9 + X[:3], -1e7 + X[:3]]),
    "two clusters": np.vstack([X, X + 1e8]),
    "two tight clusters": np.vstack([1e-3 * X, 1e-3 * X + 1e5]),
    "a common offset": X + 1e9,
    "one far column": np.column_stack([X, np.where(np.arange(90) == 7, 1e11, 0.0)]),
    "integers": np.round(3 * X) + 10**7 * (np.arange(90) == 3)[:, None],
    "rows that stand twice": np.vstack([X, X, far(1e9)]),
}
FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "integer": lambda A: A.astype(np.int64) if np.all(np.round(A) == A) and np.abs(A).max() < 1e15 else A,
    "sparse": sp.csr_array,
    "single": lambda A: (A if np.abs(A).max() < 1e15 else A * (np.abs(A) < 1e15)).astype(np.float32),
}


def values(form, name):
    """Data as they are given, and their rows as NumPy reads them in double precision."""
    given_as = FORMS[form](DATA[name])
    return given_as, (given_as.toarray() if sp.issparse(given_as) else given_as).astype(np.float64)


def gaussian(A, B=None):
    return np.exp(-GAMMA * cdist(A, A if B is None else B, "sqeuclidean"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DATA)
def test_kernels_and_squared_distances_are_those_of_the_differences(name, form):
    given_as, A = values(form, name)
    rounding = CLOSE if form != "single" else 2e-7
    K = RBF(GAMMA)(given_as)
    assert np.abs(K - gaussian(A)).max() <= rounding
    assert K.min() >= 0
    assert K.max() <= 1
    assert (K.diagonal() == 1).all()
    assert np.abs(K - K.T).max() <= rounding
    new = RBF(GAMMA)(given_as[::-3], given_as)
    assert np.abs(new - gaussian(A[::-3], A)).max() <= rounding
    assert new.max() <= 1
    exact = cdist(A, A, "sqeuclidean")
    np.testing.assert_allclose(squared_distances(given_as), exact, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(squared_distances(given_as[:5], given_as), exact[:5], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DATA)
def test_many_rows_against_one_reference_and_device_arrays_are_the_same(name, dtype):
    A = DATA[name]
    for Y, Z in ((A, A), (A, A[::-2]), (A[:7], A), (A[:1], far(1e6)[:, :1] * np.ones(A.shape[1]))):
        out = RBF(GAMMA)._against(Y, np.dtype(dtype))(Z, np.empty((len(Z), len(Y)), dtype=dtype))
        assert np.abs(out - gaussian(Z, Y)).max() <= (CLOSE if dtype == np.float64 else 5e-6)
        assert out.min() >= 0
        assert out.max() <= (1 if dtype == np.float64 else 1 + 5e-6)
    if name != "one row at 1e+100":  # arrays of a device
        for B in (A, A[::-3]):
            K = to_numpy(RBF(GAMMA)(strict.asarray(B), strict.asarray(A) if B is not A else None))
            assert np.abs(K - gaussian(B, A)).max() <= CLOSE
            assert K.max() <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_many_rows_in_threads_are_the_same(dtype, gamma, offset):
    own = np.random.default_rng(0)
    A, B = own.normal(size=(700, 4)) + offset, 3 * own.normal(size=(900, 4)) + offset
    rows = RBF(gamma)._against(B, dtype)(A, np.empty((700, 900), dtype=dtype))
    np.testing.assert_allclose(rows, RBF(gamma)(A, B), atol=2e-6 if dtype == np.float32 else 1e-10)
    for start in (0, 300):  # few rows, in one thread
        few = RBF(gamma)._against(B, dtype)(A[start : start + 3], np.empty((3, 900), dtype=dtype))
        np.testing.assert_allclose(few, rows[start : start + 3], atol=1e-6)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e100])
def test_a_median_of_distances_is_not_spoiled_by_far_rows(size):
    gamma = RBF("median").resolved(far(size)).gamma
    distances = pdist(far(size), "sqeuclidean")
    assert gamma == pytest.approx(1 / np.median(distances), rel=1e-9)
    assert gamma == pytest.approx(RBF("median").resolved(X).gamma, rel=0.2)
    assert RBF("mean_distance").resolved(far(size)).gamma == pytest.approx(1 / np.mean(distances), rel=1e-9)


@given(strategies.clusters(), strategies.numbers(-6, 3))
def test_rows_anywhere_have_the_kernel_of_their_differences(A, log_gamma):
    gamma = 10**log_gamma
    exact = np.exp(-gamma * cdist(A, A, "sqeuclidean"))
    assert np.abs(RBF(gamma)(A) - exact).max() <= CLOSE
    out = RBF(gamma)._against(A, np.float64)(A[::-1], np.empty((20, 20)))
    assert np.abs(out - exact[::-1]).max() <= CLOSE


def test_kernels_made_of_gaussian_ones_stay_positive():
    for kernel in (normalize(RBF(GAMMA)), center(RBF(GAMMA)), RBF(GAMMA) * RBF(GAMMA)):
        assert np.linalg.eigvalsh(kernel(far(1e10)))[0] >= -1e-12


@pytest.mark.parametrize("size", [1e6, 1e8, 1e9, 1e10, 1e12, 1e50])
def test_one_far_sample_changes_no_decision_elsewhere(size):
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with_far = np.vstack([X, np.full((1, 4), size)])
    new = rng.normal(size=(200, 4))
    online = (cs.KernelPerceptron, cs.Projectron, cs.OrthogonalPerceptron, cs.VectorPerceptron)
    for model in (cs.CoRegularizedRidgeClassifier(alpha=1e-3), *(kind(shuffle=False) for kind in online)):
        alone = model.set_params(kernel=RBF(GAMMA)).fit(X, y).predict(new)
        assert np.mean(model.fit(with_far, np.append(y, 0)).predict(new) == alone) > 0.97
