"""The same code on NumPy, array-api-strict and, where it is installed, PyTorch."""

import os
import re
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import cases
import consilience as cs
from consilience import Nystroem, RandomFeatures, Views
from consilience._backend import by_rows, few_threads, is_device_array, like, namespace, take_rows, to_numpy
from consilience.kernels import RBF, Linear, Polynomial, exp, normalize, resolve_kernels, view_grams

X = cases.histograms()
HOLED = np.where(np.arange(30)[:, None] == 3, np.nan, X)


@pytest.fixture(params=["strict", "torch"])
def to_device(request):
    if request.param == "strict":
        import array_api_strict

        return array_api_strict.asarray
    return pytest.importorskip("torch", reason="PyTorch is not installed").asarray


KERNELS = [
    *(cases.NUMERIC[name] for name in cases.NUMERIC if name not in ("callable", "laplacian", "laplacian scale")),
    cs.kernels.Laplacian("median"),
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
    V = Views(a=to_device(HOLED), b=to_device(X.astype(int)))
    W = Views(a=HOLED, b=X.astype(int).astype(float))
    assert type(V["a"]) is type(to_device(X))
    assert np.array_equal(V.mask, W.mask)
    assert V == W
    assert V[[5, 3, 1]] == W[[5, 3, 1]]
    assert Views.concat([V[:4], V[4:], V[["b"]][:2]]) == Views.concat([W[:4], W[4:], W[["b"]][:2]])
    mask = {"b": np.arange(30) < 25}
    assert Views(V, mask=mask) == Views(W, mask=mask)
    assert "dense float64" in repr(V)
    with pytest.raises(ValueError, match="View 'a' contains NaN in row 3, column 1"):
        Views(a=to_device(np.where(np.arange(4) == 1, HOLED, X))).check_finite()
    with pytest.raises(ValueError, match="View 'a' must have 2 dimensions"):
        Views(a=to_device(np.ones(3)))


def test_grams_and_features_on_device_arrays(to_device):
    V, W = Views(a=to_device(HOLED), b=to_device(X)), Views(a=HOLED, b=X)
    chosen = {"a": RBF("median"), "b": Linear()}
    for missing in ("zero", "mean"):
        ours, numpys = (view_grams(resolve_kernels(chosen, part), part, missing=missing) for part in (V, W))
        for K, L in zip(ours, numpys, strict=True):
            assert type(K) is type(V["b"])
            np.testing.assert_allclose(to_numpy(K), L, atol=1e-12)
    for maker in (Nystroem(kernel=chosen, n_components=6, random_state=0), RandomFeatures(random_state=0)):
        on_device, on_numpy = maker.fit(V).transform(V), maker.fit(W).transform(W)
        assert type(on_device["a"]) is type(V["a"])
        np.testing.assert_allclose(to_numpy(on_device["a"]), on_numpy["a"], atol=1e-9)


def test_early_and_late_fusion_refuse_device_arrays():
    to_torch = pytest.importorskip("torch", reason="PyTorch is not installed").asarray
    for fusion in (cs.EarlyFusion(LogisticRegression()), cs.LateFusion(LogisticRegression())):
        fusion.fit(Views(a=X, b=X[:, :2]), np.arange(30) % 2)
        with pytest.raises(TypeError, match=f"{type(fusion).__name__} works on the CPU"):
            fusion.predict_proba({"a": to_torch(X)})


def test_namespace_and_moves(to_device, monkeypatch):
    device = to_device(X)
    assert is_device_array(device)
    assert not is_device_array(X)
    assert namespace(X, None, sp.csr_array(X)) is np
    assert np.array_equal(to_numpy(device), X)
    assert to_numpy(X) is X
    assert type(like(X, device)) is type(device)
    assert like(X, X) is X
    assert np.array_equal(to_numpy(take_rows(device, np.array([2, 0]))), X[[2, 0]])
    with pytest.raises(TypeError, match="Arrays are of different libraries"):
        namespace(device, X)
    if type(device).__module__ == "torch":
        monkeypatch.setitem(sys.modules, "array_api_compat", None)
        with pytest.raises(ImportError, match=r"pip install 'consilience\[gpu\]'"):
            namespace(device)


@pytest.mark.parametrize("threads", ["1", "3", "", "0", "4,2", "many"])
def test_rows_are_each_visited_once_and_errors_in_threads_are_not_lost(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    for n, operations in ((7, 10), (7, 10**9), (1000, 10**9), (0, 10**9)):
        visited = np.zeros(n, dtype=int)

        def work(start, stop, visited=visited):
            visited[start:stop] += 1

        by_rows(work, n, operations)
        assert (visited == 1).all()
    with pytest.raises(ZeroDivisionError):
        by_rows(lambda start, stop: 1 / 0, 100, 10**9)


def test_loops_are_compiled_without_a_cache_where_no_folder_can_be_written(monkeypatch):
    import numba

    from consilience import _jit

    def refusing(cache=False, *, real=numba.njit, **options):
        def decorate(function):
            if cache:
                raise RuntimeError(f"cannot cache function {function.__name__!r}: no locator available for file 'f.py'")
            return real(**options)(function)

        return decorate

    monkeypatch.setattr(numba, "njit", refusing)
    _jit._warn_without_cache.cache_clear()
    with pytest.warns(UserWarning, match="Compiled loops cannot be cached, since no cache folder is writable"):
        double = _jit.jit()(lambda x: 2 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        triple = _jit.jit(nogil=True)(lambda x: 3 * x)
    assert (double(3), triple(3)) == (6, 9)


# -- threads of BLAS
def blas_threads():
    """Return the numbers of threads of NumPy's and SciPy's BLAS; other packages may bring one of their own."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ours = [pool for pool in pools if re.search(r"[/\\](numpy|scipy)\.libs[/\\]", pool["filepath"])]
    return {pool["num_threads"] for pool in ours or pools}


def release_blas():
    """Let any thread set the threads of BLAS: from threadpoolctl 3.8 on only the one that did so last can."""
    if hasattr(threadpoolctl.OpenBLASController, "clear_controlling_thread"):
        threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)


@pytest.fixture
def three_threads():
    """Set BLAS to a number of threads that neither the machine nor the library would choose."""
    release_blas()
    limit = threadpool_limits(3, "blas")
    release_blas()
    if blas_threads() != {3}:
        pytest.skip("BLAS does not take a number of threads")
    yield
    release_blas()
    limit.restore_original_limits()
    release_blas()


THREADED = {
    "kernel perceptron": cs.KernelPerceptron(random_state=0),
    "voted": cs.KernelPerceptron(average="voted", random_state=0),
    "projectron": cs.Projectron(random_state=0),
    "orthogonal": cs.OrthogonalPerceptron(random_state=0),
}


@pytest.mark.parametrize("alive", [False, True], ids=["threads end", "threads of a pool"])
@pytest.mark.parametrize("name", THREADED)
def test_threads_that_predict_at_the_same_time_leave_blas_as_it_was(name, alive, three_threads):
    inside, leave, left = ([threading.Event() for _ in range(8)] for _ in range(3))
    place, end = threading.local(), threading.Event()

    def linear(left, right):
        if hasattr(place, "number"):
            inside[place.number].set()
            leave[place.number].wait(60)
        return left @ right.T

    model = clone(THREADED[name]).set_params(kernel=linear).fit(X, np.arange(30) % 2)
    expected, found = model.decision_function(X), {}
    assert blas_threads() == {3}
    release_blas()

    def work(number):
        place.number = number
        found[number] = model.decision_function(X)
        left[number].set()
        end.wait(60 if alive else 0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for number, thread in enumerate(threads):  # each starts while those before it are at work
        thread.start()
        inside[number].wait(60)
    for number, thread in enumerate(threads):  # who came first leaves first
        leave[number].set()
        left[number].wait(60)
        thread.join(None if not alive else 0)
    threads_of_blas = blas_threads()
    end.set()
    for thread in threads:
        thread.join()
    assert threads_of_blas == {3}
    assert all(np.array_equal(found[number], expected) for number in range(8))


def test_whoever_holds_blas_last_restores_it(three_threads):
    first, second = few_threads(10), few_threads(10)
    first.__enter__()
    assert blas_threads() == {1}
    second.__enter__()
    first.__exit__(None, None, None)  # not nested: threads end in any order
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {3}
    with few_threads(10), few_threads(10**6), few_threads(10):
        assert blas_threads() == {1}
    assert blas_threads() == {3}
    with pytest.raises(RuntimeError, match="broken"), few_threads(10):
        raise RuntimeError("broken")
    assert blas_threads() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_was_forked_while_threads_held_blas_fits(three_threads):
    held, release = threading.Event(), threading.Event()

    def hold():
        with few_threads(10):
            held.set()
            release.wait(60)

    keeper = threading.Thread(target=hold)
    keeper.start()
    held.wait(60)
    child = os.fork()
    if child == 0:  # the thread that holds BLAS is not in the child
        try:
            with few_threads(10), few_threads(10):
                fine = (X @ X.T).shape == (30, 30)
            cs.KernelPerceptron(RBF(0.5)).partial_fit(X, np.arange(30) % 2).predict(X)
            os._exit(0 if fine else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    release.set()
    keeper.join()
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("agreement_penalty", [0.0, 0.1])
def test_blas_writes_nothing_where_a_view_is_in_unlabeled_samples_only(agreement_penalty, capfd):
    rng = np.random.default_rng(0)
    y = np.r_[rng.normal(size=5), np.full(5, np.nan)]
    views = Views({"a": rng.normal(size=(10, 2)), "b": rng.normal(size=(10, 3))}, mask={"b": np.arange(10) >= 5})
    penalties = {"graph_penalty": 0.1, "agreement_penalty": agreement_penalty}
    for more in ({}, {"view_weights": "learned"}, {"n_components": 3, "random_state": 0}):
        model = cs.CoRegularizedRidge(**penalties, **more).fit(views, y)
        assert np.isfinite(model.predict(views)).all()
    cs.CoRegularizedSVC(**penalties).fit(views, np.where(np.isnan(y), np.nan, np.arange(10) % 2))
    assert capfd.readouterr() == ("", "")
