"""Consensus on arrays of other libraries: the fit of NumPy, views that stay where they are, sets and intervals."""

import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import consilience as cs
from consilience._backend import is_device_array
from consilience.kernels import RBF, FromCallable, Linear
from consilience.kernels.graphs import kernel_neighbors
from consilience.solvers.consensus import Sets, fit_base, fit_features

R, C = cs.ConsensusRegressor, cs.ConsensusClassifier


@pytest.fixture(params=["torch", "array_api_strict"])
def library(request):
    return pytest.importorskip(request.param)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    n = 80
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.column_stack([np.sin(hidden[:, 0]), hidden[:, 1] ** 2])
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low")).astype(object)
    mask = rng.random((n, 2)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    return views, y, labels, mask, rng.integers(0, 12, n), rng.random(n) < 0.25


def moved(views, library, mask=None, dtype=np.float64):
    return cs.Views({name: library.asarray(block.astype(dtype)) for name, block in views.items()}, mask=mask)


def same(found, expected, atol=1e-8):
    np.testing.assert_allclose(cs.to_numpy(found), expected, atol=atol * max(np.nanmax(np.abs(expected)), 1))


@pytest.mark.parametrize(
    ("library", "missing", "grouped"),  # every two of them together
    [
        ("array_api_strict", False, True),
        ("array_api_strict", True, False),
        ("torch", False, False),
        ("torch", True, True),
    ],
    indirect=["library"],
)
@pytest.mark.parametrize("model", [C(), R(), C(n_components=20)], ids=["classes", "numbers", "features"])
def test_probabilities_sets_intervals_and_scores(samples, library, model, missing, grouped):
    views, y, labels, mask, groups, hidden = samples
    y = (labels if is_classifier(model) else y).copy()
    if not grouped:
        y[hidden] = None if is_classifier(model) else np.nan
    mask, groups = mask if missing else None, groups if grouped else None
    X, Z = cs.Views(views, mask=mask), moved(views, library, mask)
    one, other = (clone(model).fit(V[:60], y[:60], groups=None if groups is None else groups[:60]) for V in (X, Z))
    assert other.loo_score_ == pytest.approx(one.loo_score_, abs=1e-8)
    assert other.view_importances_ == pytest.approx(one.view_importances_, abs=1e-8)
    assert other.certificate().objective == pytest.approx(one.certificate().objective, rel=1e-8)
    assert [m.penalty for m in other._models] == pytest.approx([m.penalty for m in one._models], rel=1e-10)
    assert other.score(Z[60:], y[60:]) == pytest.approx(one.score(X[60:], y[60:]))
    if not is_classifier(model):
        found = other.predict_interval(Z, coverage=0.8)
        assert is_device_array(found)
        same(found, one.predict_interval(X, coverage=0.8))
        np.testing.assert_array_equal(np.isinf(cs.to_numpy(other.predict_interval(Z[60:], coverage=0.999))), True)
        return
    found = other.predict_proba(Z)
    assert is_device_array(found)
    same(found, one.predict_proba(X))
    same(other.loo_probabilities_, one.loo_probabilities_)
    sets = other.predict_set(Z, coverage=0.95)
    assert isinstance(sets, np.ndarray)
    np.testing.assert_array_equal(sets, one.predict_set(X, coverage=0.95))


def test_two_classes_and_one(samples, library):
    views, labels = samples[0], samples[2]
    X, Z = cs.Views(views), moved(views, library)
    for y in (labels == "low", np.full(80, "only")):
        one, other = C().fit(X, y), C().fit(Z, y)
        same(other.decision_function(Z), one.decision_function(X))
        same(other.predict_proba(Z), one.predict_proba(X))
        np.testing.assert_array_equal(other.predict_set(Z), one.predict_set(X))
        np.testing.assert_array_equal(other.predict(Z), one.predict(X))


def test_blocks_of_samples_that_choose_the_penalty(library):
    """More samples than choose a penalty together, with and without folds."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(450, 3))
    y = np.sin(2 * A[:, 0]) + 0.1 * rng.normal(size=450)
    for cv in (None, 5):
        one, other = (R(RBF(0.3), cv=cv).fit(V, y) for V in ({"a": A}, {"a": library.asarray(A)}))
        same(other.predict({"a": library.asarray(A)}), one.predict({"a": A}))
        same(other.loo_predictions_, one.loo_predictions_)


# -- data of all kinds
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_are_missing_are_filled(samples, library, dtype):
    views, y = {name: block.astype(dtype) for name, block in samples[0].items()}, samples[1][:, 0]
    rng = np.random.default_rng(2)
    for block in views.values():
        block[rng.random(block.shape) < 0.05] = np.nan
    views["b"][3] = np.nan  # a view that is missing
    X, Z = cs.Views(views), moved(views, library, dtype=dtype)
    one, other = R().fit(X[:60], y[:60]), R().fit(Z[:60], y[:60])
    assert other.n_filled_ == one.n_filled_
    assert one.n_filled_["a"] > 0
    assert "Missing values filled" in str(other.certificate())
    same(other.predict(Z), one.predict(X), atol=1e-8 if dtype == np.float64 else 1e-4)
    views["a"][5, 0] = np.inf
    with pytest.raises(ValueError, match="View 'a' contains infinity in row 5, column 0"):
        R().fit(moved(views, library, dtype=dtype), y)


def test_single_precision_is_worked_on_in_double(samples, library):
    views, y = {name: block.astype(np.float32) for name, block in samples[0].items()}, samples[1][:, 0]
    X, Z = cs.Views(views), moved(views, library, dtype=np.float32)
    one, other = R().fit(X, y), R().fit(Z, y)
    assert all(str(model.coefficients.dtype).endswith("float64") for model in other._models)
    exact = cs.Views({name: block.astype(np.float64) for name, block in views.items()})
    same(other.predict(Z), one.predict(exact))


def test_counts_and_gram_matrices(samples, library):
    rng = np.random.default_rng(3)
    counts, y = rng.poisson(1.0, size=(80, 12)).astype(float), samples[1][:, 0]
    A = samples[0]["a"]
    for dtype, atol in ((np.float64, 1e-8), (np.float32, 1e-4)):
        K = RBF(0.1)(A).astype(dtype)
        X = cs.Views({"words": counts, "given": K}, precomputed="given")
        Z = cs.Views({"words": library.asarray(counts), "given": library.asarray(K)}, precomputed="given")
        one, other = R().fit(X[:60], y[:60]), R().fit(Z[:60], y[:60])
        assert {"cosine", "Hellinger", "precomputed"} <= set(other.kernel_weights_["kernel"])
        same(other.predict(Z[60:]), one.predict(X[60:]), atol=atol)
        same(other.predict_interval(Z[60:]), one.predict_interval(X[60:]), atol=atol)


def test_kernels_from_outside(samples, library):
    views, y = samples[0], samples[1][:, 0]
    X, Z = cs.Views(views), moved(views, library)
    on_host = FromCallable(lambda A, B: cs.to_numpy(A) @ cs.to_numpy(B).T)
    one, other = R([Linear(), on_host]).fit(X, y), R([Linear(), on_host]).fit(Z, y)
    same(other.predict(Z), one.predict(X))
    with pytest.raises(ValueError, match="View 'a': its kernel matrix is not positive semi-definite"):
        R(FromCallable(lambda A, B: -(A @ B.T))).fit(Z, y)
    with pytest.raises(ValueError, match="View 'a': its kernel matrix is not symmetric"):
        R(FromCallable(lambda A, B: A[:, :1] + 0 * B[:, 0])).fit(Z, y)


# -- what stays where it is
@pytest.mark.parametrize("model", [R(), C(cv=4), R(n_components=20)], ids=["numbers", "folds", "features"])
def test_no_view_is_copied_to_the_host(library, model, monkeypatch):
    """With kernels whose parameters are given, numbers per sample and column, and between few samples, leave it."""
    from consilience import _backend

    rng = np.random.default_rng(4)
    n, d = 70, 37
    views = {name: rng.normal(size=(n, d)) for name in "ab"}
    views["a"][2, 3] = np.nan
    mask = np.ones((n, 2), dtype=bool)
    mask[5:9, 1] = False
    y = views["b"][:, 0] > 0 if is_classifier(model) else views["b"][:, 0].copy()
    y = y.astype(object if is_classifier(model) else float)
    y[-10:] = None if is_classifier(model) else np.nan
    Z, shapes, real = moved(views, library, mask), [], _backend.to_numpy

    def watched(x):
        if is_device_array(x):
            shapes.append(x.shape)
        return real(x)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("consilience.") and getattr(module, "to_numpy", None) is real:
            monkeypatch.setattr(module, "to_numpy", watched)
    fitted = clone(model).set_params(kernel=[RBF(0.02), Linear()]).fit(Z, y)
    fitted.predict(Z)
    fitted.view_decision_function(Z)
    if is_classifier(model):
        fitted.predict_proba(Z)
        fitted.predict_set(Z)
    else:
        fitted.predict_interval(Z)
    assert shapes
    assert not [shape for shape in shapes if len(shape) > 1 and d in shape and 0 not in shape]


def test_views_of_several_libraries_are_refused(samples, library):
    views, y = samples[0], samples[1][:, 0]
    mixed = cs.Views({"a": library.asarray(views["a"]), "b": views["b"]})
    with pytest.raises(TypeError, match=r"Arrays are of different libraries: .*Move them to one"):
        R().fit(mixed, y)
    X, Z = cs.Views(views), moved(views, library)
    for training, new in ((X, Z), (Z, X)):
        model = R().fit(training, y)
        for predict in (model.predict, model.predict_interval):
            with pytest.raises(TypeError, match="Move the samples to that library and device, or convert both"):
                predict(new)


def test_models_on_the_host_and_in_files(samples, library, tmp_path):
    views, labels = samples[0], samples[2]
    X, Z = cs.Views(views), moved(views, library)
    model = C().fit(Z, labels)
    expected = cs.to_numpy(model.predict_proba(Z))
    cs.save(model, tmp_path / "model.cons")
    for host in (cs.to_numpy(model), cs.load(tmp_path / "model.cons")):
        found = host.predict_proba(X)
        assert isinstance(found, np.ndarray)
        same(found, expected)
        np.testing.assert_array_equal(host.predict_set(X), model.predict_set(Z))


def test_blocks_that_move_to_a_device(samples):
    torch = pytest.importorskip("torch")
    views, y, _, mask, _, _ = samples
    X = cs.Views(views, mask=mask)
    blocks = cs.RowBlocks.of(X, y, size=30).to_device("cpu")
    whole, streamed = R().fit(X, y), R().fit(blocks)
    assert all(isinstance(model.coefficients, torch.Tensor) for model in streamed._models)
    same(streamed.predict(blocks), whole.predict(X))
    found = streamed.predict_interval(blocks)
    assert isinstance(found, torch.Tensor)
    same(found, whole.predict_interval(X))
    assert streamed.score(blocks) == pytest.approx(whole.score(X, y))


def test_the_memory_of_the_gpu_counts(samples, monkeypatch):
    from consilience import _backend

    torch = pytest.importorskip("torch")
    views, y = samples[0], samples[1][:, 0]
    Z = cs.Views({name: torch.asarray(block) for name, block in views.items()})
    monkeypatch.delenv("CONSILIENCE_MEMORY", raising=False)
    monkeypatch.setattr(_backend, "_SMALL", 0)
    monkeypatch.setattr(_backend, "_GPU", ("cpu",))  # as if it were one
    monkeypatch.setattr(_backend, "_gpu_memory", lambda x: 100_000)
    with pytest.raises(MemoryError, match=r"ConsensusRegressor with 80 labeled samples.*0\.0954 MiB are available"):
        R().fit(Z, y)
    blocks = cs.RowBlocks.of({name: np.repeat(block, 100, axis=0) for name, block in views.items()}, np.repeat(y, 100))
    with pytest.raises(MemoryError, match=r"holds all samples in memory.*0\.0954 MiB are available"):
        R().fit(blocks.to_device("cpu"))


# -- solvers
@pytest.mark.parametrize("folds", [None, "several sizes"])
def test_solvers_of_base_models(library, folds):
    """Kernels of low rank have the smallest penalties, where rounding matters most."""
    rng = np.random.default_rng(5)
    n = 60
    A, s = rng.normal(size=(n, 3)), rng.uniform(0.3, 2, size=n)
    Y = np.column_stack([A[:, 0], np.sin(A[:, 1])])
    groups = rng.integers(0, 15, n)
    units = None if folds is None else groups
    assert len(set(np.bincount(groups))) > 2
    sets = Sets(units, groups % 5, 5)
    for K in (A @ A.T, RBF(0.01)(A), RBF(0.5)(A)):
        one, other = fit_base(K, Y, s, sets), fit_base(library.asarray(K), Y, s, sets)
        assert other.penalty == pytest.approx(one.penalty, rel=1e-10)
        assert isinstance(other.held, np.ndarray)
        same(other.held, one.held)
        same(other.by_fold, one.by_fold)
        same(other.inner, one.inner)
        same(other.coefficients, one.coefficients)
    for d in (3, 30):  # folds that are larger and smaller than the number of features
        F = np.hstack([A, rng.normal(size=(n, d - 3))])
        one, other = fit_features(F, Y, s, sets), fit_features(library.asarray(F), Y, s, sets)
        same(other.held, one.held)
        same(other.coefficients, one.coefficients)
        same(other.intercept, one.intercept)


def test_neighbors_on_a_device(library):
    K = RBF(0.3)(np.random.default_rng(6).normal(size=(40, 3)))
    np.testing.assert_array_equal(
        cs.to_numpy(kernel_neighbors(library.asarray(K), 5)), kernel_neighbors(K, 5).toarray()
    )


def test_the_order_of_the_samples_does_not_matter():
    """A wide kernel with a small penalty: coefficients are large, and a part of them along s½ would not cancel."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(90, 3))
    A = hidden @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(90, 6))
    y, s, order = A[:, 0] * A[:, 1], rng.uniform(0.2, 2, 90), rng.permutation(90)
    one, other = R().fit({"a": A}, y, s), R().fit({"a": A[order]}, y[order], s[order])
    assert max(np.abs(model.coefficients).max() for model in one._models) > 1000
    np.testing.assert_allclose(other.predict({"a": A}), one.predict({"a": A}), atol=1e-9)
    np.testing.assert_allclose(other.loo_predictions_, one.loo_predictions_[order], atol=1e-9)
