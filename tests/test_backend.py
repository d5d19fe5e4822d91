"""The same code on NumPy, array-api-strict and, where it is installed, PyTorch."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import cases
from consilience import EarlyFusion, LateFusion, Nystroem, RandomFeatures, Views
from consilience._backend import by_rows, is_device_array, like, namespace, take_rows, to_numpy
from consilience.kernels import (
    RBF,
    AdditiveChiSquared,
    ChiSquared,
    Intersection,
    Laplacian,
    Linear,
    Mahalanobis,
    Polynomial,
    exp,
    normalize,
    resolve_kernels,
    view_grams,
)

X = cases.histograms()


@pytest.fixture(params=["strict", "torch"])
def to_device(request):
    if request.param == "strict":
        import array_api_strict

        return array_api_strict.asarray
    return pytest.importorskip("torch", reason="PyTorch is not installed").asarray


KERNELS = [
    Linear(),
    Polynomial(3, 0.5),
    RBF(0.3),
    RBF("scale"),
    RBF("median"),
    ChiSquared(0.7),
    AdditiveChiSquared(),
    Laplacian("median"),
    Intersection(),
    Mahalanobis(np.diag([1.0, 2.0, 3.0, 0.0])),
    normalize(0.5 * RBF(0.3) * Linear() + Polynomial()) + exp(0.1 * Linear().on([0, 1])),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_on_device_arrays_equal_numpy(kernel, to_device):
    device = to_device(X)
    K = kernel(device)
    assert type(K) is type(device)
    np.testing.assert_allclose(to_numpy(K), kernel(X), atol=1e-12)
    np.testing.assert_allclose(to_numpy(kernel(device, to_device(X[:5]))), kernel(X, X[:5]), atol=1e-12)
    np.testing.assert_allclose(to_numpy(kernel.diag(device)), kernel.diag(X), atol=1e-12)
    assert to_numpy(kernel(to_device(X.astype(np.float32)))).dtype == np.float32


def test_views_on_device_arrays(to_device):
    holed = X.copy()
    holed[3] = np.nan
    V = Views(a=to_device(holed), b=to_device(X.astype(int)))
    W = Views(a=holed, b=X.astype(int).astype(float))
    assert type(V["a"]) is type(to_device(X))
    assert np.array_equal(V.mask, W.mask)
    assert V == W
    assert V[[5, 3, 1]] == W[[5, 3, 1]]
    assert Views.concat([V[:4], V[4:], V[["b"]][:2]]) == Views.concat([W[:4], W[4:], W[["b"]][:2]])
    mask = {"b": np.arange(30) < 25}
    assert Views(V, mask=mask) == Views(W, mask=mask)
    assert "dense float64" in repr(V)
    partly = X.copy()
    partly[2, 1] = np.nan
    with pytest.raises(ValueError, match="View 'a' contains NaN in row 2, column 1"):
        Views(a=to_device(partly)).check_finite()
    with pytest.raises(ValueError, match="View 'a' must have 2 dimensions"):
        Views(a=to_device(np.ones(3)))


def test_grams_and_features_on_device_arrays(to_device):
    holed = X.copy()
    holed[3] = np.nan
    V, W = Views(a=to_device(holed), b=to_device(X)), Views(a=holed, b=X)
    chosen = {"a": RBF("median"), "b": Linear()}
    for absent in ("zero", "mean"):
        ours, numpys = (view_grams(resolve_kernels(chosen, part), part, absent=absent) for part in (V, W))
        for K, L in zip(ours, numpys, strict=True):
            assert type(K) is type(V["b"])
            np.testing.assert_allclose(to_numpy(K), L, atol=1e-12)
    for maker in (Nystroem(kernels=chosen, n_components=6, random_state=0), RandomFeatures(random_state=0)):
        on_device, on_numpy = maker.fit(V).transform(V), maker.fit(W).transform(W)
        assert type(on_device["a"]) is type(V["a"])
        np.testing.assert_allclose(to_numpy(on_device["a"]), on_numpy["a"], atol=1e-9)


def test_early_and_late_fusion_take_device_arrays():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    y = np.arange(30) % 2
    for fusion in (EarlyFusion(LogisticRegression()), LateFusion(LogisticRegression())):
        expected = fusion.fit(Views(a=X, b=X[:, :2]), y).predict_proba({"a": X})
        found = fusion.fit(Views(a=torch.asarray(X), b=torch.asarray(X[:, :2])), y).predict_proba(
            {"a": torch.asarray(X)}
        )
        np.testing.assert_allclose(found, expected)


def test_namespace_and_moves(to_device):
    device = to_device(X)
    assert is_device_array(device)
    assert not is_device_array(X)
    assert namespace(X, None, sp.csr_array(X)) is np
    assert np.array_equal(to_numpy(device), X)
    assert to_numpy(X) is X
    assert type(like(X, device)) is type(device)
    assert like(X, X) is X
    assert np.array_equal(to_numpy(take_rows(device, np.array([2, 0]))), X[[2, 0]])
    with pytest.raises(TypeError, match="Arrays of different kinds meet here"):
        namespace(device, X)


def test_torch_without_array_api_compat_gets_a_sentence(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"pip install 'consilience\[gpu\]'"):
        namespace(torch.ones(2))


@pytest.mark.parametrize("threads", ["1", "3", "", "0", "4,2", "many"])
def test_rows_are_each_visited_once(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    for n, operations in ((7, 10), (7, 10**9), (1000, 10**9), (0, 10**9)):
        visited = np.zeros(n, dtype=int)

        def work(start, stop, visited=visited):
            visited[start:stop] += 1

        by_rows(work, n, operations)
        assert (visited == 1).all()


def test_an_error_in_a_thread_is_not_lost():
    def work(start, stop):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        by_rows(work, 100, 10**9)
