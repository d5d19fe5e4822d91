"""Estimators on arrays of other libraries: the fit of NumPy, arrays that stay where they are, and clear refusals."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline

import consilience as cs
from consilience._backend import is_device_array, namespace
from consilience.kernels import RBF, ChiSquared, Laplacian
from consilience.solvers import consensus
from consilience.views.estimator import finite_outputs
from device_cases import RUNS, C, R, draw_samples, outputs, targets

REFUSED = {
    "svc": cs.CoRegularizedSVC(),
    "margin": cs.MaxMarginClassifier(),
    "margin of vectors": cs.MaxMarginRegressor(),
    "vector-valued": cs.VectorValuedRegressor(),
    "early fusion": cs.EarlyFusion(C()),
    "late fusion": cs.LateFusion(C()),
    "perceptron": cs.OnlinePerceptron(),
    "kernel perceptron": cs.KernelPerceptron(),
    "vector perceptron": cs.VectorPerceptron(),
    "multi-cue": cs.MultiCueClassifier(),
}


@pytest.fixture(scope="module")
def samples():
    return draw_samples()


@pytest.fixture(params=["torch", "array_api_strict"])
def library(request):
    return pytest.importorskip(request.param)


def moved(views, library, mask=None, dtype=np.float64):
    return cs.Views({name: library.asarray(block.astype(dtype)) for name, block in views.items()}, mask=mask)


@pytest.mark.filterwarnings("ignore:overflow encountered in reduce")
def test_one_output_that_overflows_is_refused_and_large_ones_are_not(library):
    model = cs.CoRegularizedRidge()
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="CoRegularizedRidge has no finite prediction for sample 1: its values"):
            finite_outputs(model, library.asarray([[1.0], [bad], [2.0]]))
    large = library.asarray(np.full((3, 1), 1e308))  # their sum is not finite
    assert finite_outputs(model, large) is large


@pytest.mark.parametrize(
    ("library", "missing"),  # the strict library takes what the standard of arrays has, so it tells more
    [("array_api_strict", False), ("array_api_strict", True), ("torch", True)],
    indirect=["library"],
)
@pytest.mark.parametrize("name", RUNS)
def test_the_fit_of_numpy(samples, library, name, missing):
    views, _, _, weights, mask, _ = samples
    mask, y = mask if missing else None, targets(name, samples)
    X, Z = cs.Views(views, mask=mask), moved(views, library, mask)
    one, other = clone(RUNS[name]).fit(X, y, weights), clone(RUNS[name]).fit(Z, y, weights)
    expected, found = outputs(one, X), outputs(other, Z)
    np.testing.assert_allclose(cs.to_numpy(found), expected, atol=1e-8 * max(np.abs(expected).max(), 1))
    np.testing.assert_allclose(other.view_weights_, one.view_weights_, atol=1e-8)
    assert other.solution_.status == one.solution_.status
    if one.solution_.objective is not None:
        assert other.certificate().objective == pytest.approx(one.certificate().objective, rel=1e-8)
    if not name.startswith("banded"):  # whose coefficients of many outputs are on the host
        assert is_device_array(found)
        assert all(is_device_array(block) for block in kept_arrays(other))
    if is_classifier(one):
        assert (other.predict(Z) == one.predict(X)).all()
    single, expected = other.view_decision_function(Z), one.view_decision_function(X)
    np.testing.assert_allclose(cs.to_numpy(single), expected, atol=1e-7 * np.nanmax(np.abs(expected)) + 1e-300)


def kept_arrays(model):
    """Yield the coefficients and training samples that a model holds."""
    if hasattr(model, "_models"):  # base models of a consensus
        yield from (own.coefficients for own in model._models)
        yield from (model.X_fit_.block(name) for name in model.X_fit_.names)
    elif hasattr(model, "coef_"):
        yield from model.coef_.values()
        yield from model._features._landmarks.values()
    else:
        yield model.dual_coef_
        yield from (model.X_fit_.block(name) for name in model.X_fit_.names)


@pytest.mark.parametrize(
    "name",
    [
        "agreement",
        "metric",
        "kernel weights",
        "learned output kernel",
        "leave-one-out",
        "consensus",
        "consensus of folds",
    ],
)
def test_no_square_matrix_is_copied_to_the_host(samples, library, name, monkeypatch):
    """Only columns, one for each output, leave the device, and samples that parameters of kernels are made of.

    A consensus of few samples holds folds out on the host, where many small systems are solved.
    """
    import sys

    from consilience import _backend

    views, y = samples[0], targets(name, samples, unlabeled=False)
    Z, sizes, real = moved(views, library), [], _backend.to_numpy

    def watched(x):
        if is_device_array(x):
            sizes.append(tuple(x.shape))
        return real(x)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("consilience.") and getattr(module, "to_numpy", None) is real:
            monkeypatch.setattr(module, "to_numpy", watched)
    monkeypatch.setattr(consensus, "NESTED", 0)
    monkeypatch.setattr(consensus, "CHOOSING", 20)
    clone(RUNS[name]).set_params(kernel=RBF(0.2)).fit(Z, y).predict(Z)
    assert sizes
    assert max(int(np.prod(shape)) for shape in sizes) <= 90 * 32  # 32 rows are checked for symmetry


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_matrices_as_views(samples, library, dtype, missing):
    views, y, _, _, mask, _ = samples
    grams = {"a": RBF(0.2)(views["a"]).astype(dtype), "b": (views["b"] @ views["b"].T).astype(dtype)}
    X, Z = (
        cs.Views({name: to(K) for name, K in grams.items()}, precomputed=True, mask=mask if missing else None)
        for to in (np.asarray, library.asarray)
    )
    one, other = (R("precomputed", agreement_penalty=1e-3).fit(V[:60], y[:60, 0]) for V in (X, Z))
    found = other.predict(Z[60:])
    assert is_device_array(found)
    np.testing.assert_allclose(cs.to_numpy(found), one.predict(X[60:]), atol=1e-8 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize(
    "name",
    ["ridge", "agreement", "learned weights", "leave-one-out", "metric", "kernel weights", "consensus", "banded"],
)
def test_single_precision(samples, library, name):
    views, y = samples[0], targets(name, samples)
    X, Z = cs.Views(views), moved(views, library, dtype=np.float32)
    one, other = clone(RUNS[name]).fit(X, y), clone(RUNS[name]).fit(Z, y)
    np.testing.assert_allclose(cs.to_numpy(other.predict(Z)), one.predict(X), atol=1e-4)


def test_single_precision_over_features(samples, library):
    views, y = samples[0], samples[1][:, 0]
    model = R(n_components=40, agreement_penalty=1e-3, random_state=0)
    X, Z = cs.Views(views), moved(views, library, dtype=np.float32)
    one, other = clone(model).fit(X, y), clone(model).fit(Z, y)
    np.testing.assert_allclose(cs.to_numpy(other.predict(Z)), one.predict(X), atol=1e-4)


# -- what does not run there
@pytest.mark.parametrize("name", REFUSED)
def test_estimators_of_the_host_name_themselves_the_library_and_the_remedy(samples, library, name):
    views, model = samples[0], REFUSED[name]
    y = samples[1][:, 0] if not is_classifier(model) and "fusion" not in name else samples[2]
    match = rf"{type(model).__name__} works on the CPU with NumPy arrays; got arrays of {library.__name__}"
    Z = moved(views, library)
    with pytest.raises(TypeError, match=match):
        clone(model).fit(Z, y)
    fitted = clone(model).fit(cs.to_numpy(Z), y)
    with pytest.raises(TypeError, match=rf"{match}.*to_numpy"):
        fitted.predict(Z)


@pytest.mark.parametrize("n_components", [None, 20])
def test_graphs_of_the_host(samples, library, n_components):
    views, y = samples[0], samples[1][:, 0]
    for graph, what in (("knn", "graph='knn'"), (np.zeros((90, 90)), "A graph that is given")):
        with pytest.raises(TypeError, match=f"{what} works on the CPU"):
            R(graph_penalty=1e-3, graph=graph, n_components=n_components).fit(moved(views, library), y)


def test_the_published_metric_works_on_the_host(samples, library):
    with pytest.raises(ValueError, match="works with NumPy arrays"):
        cs.ViewMetricRidge(solver="alternating").fit(moved(samples[0], library), samples[1][:, 0])


@pytest.mark.parametrize("n_components", [None, 20])
def test_samples_of_another_library_than_the_training_samples(samples, library, n_components):
    views, y = samples[0], samples[1][:, 0]
    X, Z = cs.Views(views), moved(views, library)
    model = R(n_components=n_components, random_state=0)
    for training, new in ((X, Z), (Z, X)):
        with pytest.raises(TypeError, match="Move the samples to that library and device, or convert both"):
            clone(model).fit(training, y).predict(new)


# -- conversion, files, pickles
@pytest.mark.parametrize(
    "name", ["agreement", "metric", "metric over features", "automatic kernels", "centered", "consensus", "banded"]
)
def test_models_on_the_host(samples, library, name, tmp_path):
    views, y = samples[0], targets(name, samples)
    X, Z = cs.Views(views), moved(views, library)
    model = clone(RUNS[name]).fit(Z, y)
    expected = cs.to_numpy(outputs(model, Z))
    cs.save(model, tmp_path / "model.cons")
    for host in (cs.to_numpy(model), cs.load(tmp_path / "model.cons")):
        found = outputs(host, X)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, atol=1e-8)
        if name != "banded":  # whose coefficients of columns go to the device of the samples
            with pytest.raises(TypeError, match="convert both"):
                host.predict(Z)
    np.testing.assert_array_equal(cs.to_numpy(outputs(pickle.loads(pickle.dumps(model)), Z)), expected)
    np.testing.assert_array_equal(cs.to_numpy(outputs(model, Z)), expected)  # the model itself stays where it is
    if getattr(model, "metric_", None) is not None:
        host = cs.to_numpy(model)
        assert is_device_array(model.metric_.toarray())
        np.testing.assert_allclose(cs.to_numpy(model.metric_.toarray()), host.metric_.toarray(), atol=1e-12)
        np.testing.assert_allclose(model.metric_.block_norms(), host.metric_.block_norms(), atol=1e-12)
        there, here = model.metric_.transform(Z), host.metric_.transform(X)
        np.testing.assert_allclose(cs.to_numpy(there)["a"], here["a"], atol=1e-8)


def test_to_numpy_of_arrays_views_pipelines_and_what_has_no_device_arrays(samples, library):
    views, y, _, _, mask, _ = samples
    A = views["a"]
    assert cs.to_numpy(A) is A
    np.testing.assert_array_equal(cs.to_numpy(library.asarray(A)), A)
    X = cs.to_numpy(moved(views, library, mask))
    assert (X.mask == mask).all()
    assert isinstance(X["a"], np.ndarray)
    np.testing.assert_array_equal(X["b"][mask[:, 1]], views["b"][mask[:, 1]])
    pipe = make_pipeline(cs.Nystroem(n_components=20, random_state=0), R("linear")).fit(moved(views, library), y[:, 0])
    expected = cs.to_numpy(pipe.predict(moved(views, library)))
    np.testing.assert_allclose(cs.to_numpy(pipe).predict(cs.Views(views)), expected, atol=1e-8)
    fitted = R().fit(views, y[:, 0])
    assert cs.to_numpy(fitted).dual_coef_ is fitted.dual_coef_


def test_targets_and_weights_of_the_device(samples, library):
    views, y, _, weights, _, _ = samples
    Z = moved(views, library)
    one = R().fit(Z, y[:, 0], weights)
    other = R().fit(Z, library.asarray(y[:, 0]), library.asarray(weights))
    np.testing.assert_array_equal(cs.to_numpy(other.dual_coef_), cs.to_numpy(one.dual_coef_))
    score = other.score(Z, library.asarray(y[:, 0]), library.asarray(weights))
    assert score == pytest.approx(one.score(Z, y[:, 0], weights))


# -- rows that are streamed to a device
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "model", [R(n_components=30, agreement_penalty=1e-3, random_state=0), C(n_components=30, random_state=0)]
)
def test_blocks_that_move_to_a_device(samples, model, missing):
    torch = pytest.importorskip("torch")
    views, y, labels, weights, mask, _ = samples
    X, t = cs.Views(views, mask=mask if missing else None), labels if is_classifier(model) else y[:, 0]
    blocks = cs.RowBlocks.of(X, t, weights, size=25).to_device("cpu")
    assert all(isinstance(block.X["a"], torch.Tensor) for block in blocks)
    whole, streamed = clone(model).fit(X, t, weights), clone(model).fit(blocks)
    assert all(isinstance(W, torch.Tensor) for W in streamed.coef_.values())
    np.testing.assert_allclose(cs.to_numpy(outputs(streamed, blocks)), outputs(whole, X), atol=1e-8)
    assert streamed.score(blocks) == pytest.approx(whole.score(X, t, weights))


def test_blocks_of_a_read_only_memory_map(samples, tmp_path):
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "a.npy", samples[0]["a"])
    stored = np.load(tmp_path / "a.npy", mmap_mode="r")
    blocks = cs.RowBlocks.of({"a": stored}, size=40).to_device("cpu")
    np.testing.assert_array_equal(torch.cat([block.X["a"] for block in blocks]).numpy(), samples[0]["a"])


def test_devices_that_are_not_there(samples):
    torch = pytest.importorskip("torch")
    blocks = cs.RowBlocks.of(samples[0], size=40)
    with pytest.raises(ValueError, match="is the name of a device of PyTorch, such as 'cuda'; got 'gpu'"):
        list(blocks.to_device("gpu"))
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch finds no GPU"):
            list(blocks.to_device("cuda"))
    with pytest.raises(TypeError, match="View 'a' is sparse, and devices take dense arrays"):
        list(cs.RowBlocks.of({"a": sp.csr_array(samples[0]["a"])}).to_device("cpu"))


# -- kernels
@pytest.mark.parametrize(
    "kernel", [Laplacian(0.3), ChiSquared(0.3), cs.kernels.Intersection(), cs.kernels.AdditiveChiSquared()]
)
def test_kernels_by_columns(samples, library, kernel):
    A = np.abs(samples[0]["a"])
    A[A < 0.3] = 0
    there = library.asarray(A)
    for Z, W in ((None, None), (A[:7], there[:7, :])):
        K = kernel(there, W)
        assert namespace(K) is namespace(there)
        np.testing.assert_allclose(cs.to_numpy(K), kernel(A, Z), atol=1e-12)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage"])
def test_landmarks_are_those_of_numpy(samples, library, landmarks):
    X, Z = cs.Views(samples[0]), moved(samples[0], library)
    one, other = (cs.Nystroem(n_components=15, landmarks=landmarks, random_state=0).fit(V) for V in (X, Z))
    for name, own in one.landmark_indices_.items():
        np.testing.assert_array_equal(other.landmark_indices_[name], own)


# -- memory
def test_the_memory_of_the_gpu_counts_for_arrays_there(samples, monkeypatch):
    from consilience import _backend

    torch = pytest.importorskip("torch")
    views, y = samples[0], samples[1][:, 0]
    Z = cs.Views({name: torch.asarray(block) for name, block in views.items()})
    monkeypatch.delenv("CONSILIENCE_MEMORY", raising=False)
    monkeypatch.setattr(_backend, "_SMALL", 0)
    monkeypatch.setattr(_backend, "_GPU", ("cpu",))  # as if it were one
    monkeypatch.setattr(_backend, "_gpu_memory", lambda x: 100_000)
    with pytest.raises(MemoryError, match=r"CoRegularizedRidge with 90 samples.*0\.0954 MiB are available"):
        R().fit(Z, y)
    R().fit(views, y)  # the host has enough
    monkeypatch.setattr(_backend, "_gpu_memory", lambda x: 10**9)
    monkeypatch.setattr(_backend, "_system_memory", lambda: 2000)
    R().fit(Z, y)
    with pytest.raises(MemoryError):
        R().fit(views, y)


# -- around estimators
def test_inspection_and_searches_on_devices(samples, library):
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

    views, y = samples[0], samples[1][:, 0]
    X, Z = cs.Views(views), moved(views, library)
    one, other = R().fit(X, y), R().fit(Z, y)
    spreads = [cs.view_agreement(model, V)["spread"] for model, V in ((other, Z), (one, X))]
    np.testing.assert_allclose(*spreads, atol=1e-10)
    assert cs.view_importances(other, Z, y)["loss"] == pytest.approx(cs.view_importances(one, X, y)["loss"], abs=1e-8)
    np.testing.assert_allclose(cross_val_score(R(), Z, y, cv=KFold(3)), cross_val_score(R(), X, y, cv=KFold(3)))
    searches = [GridSearchCV(R(), {"alpha": [1e-3, 1e-1]}, cv=KFold(3)).fit(V, y) for V in (X, Z)]
    np.testing.assert_allclose(*(search.cv_results_["mean_test_score"] for search in searches))


def test_transformers_of_the_host(samples, library):
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(TypeError, match=f"PerView's transformer of the view 'a' works on the CPU.*{library.__name__}"):
        cs.PerView(StandardScaler()).fit(moved(samples[0], library))


def test_means_of_named_columns(samples, library):
    pd = pytest.importorskip("pandas")
    A = samples[0]["a"].copy()
    A[3] = np.nan
    names = [f"x{k}" for k in range(A.shape[1])]
    X = cs.Views(a=pd.DataFrame(A, columns=names), b=samples[0]["b"])
    Z = X._with({"a": library.asarray(A), "b": library.asarray(samples[0]["b"])}, X.mask)
    one, other = (R(missing_columns="fill").fit(V, samples[1][:, 0]) for V in (X, Z))
    np.testing.assert_allclose(other._column_means["a"], one._column_means["a"], atol=1e-14)
