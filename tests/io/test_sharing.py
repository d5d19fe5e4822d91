"""Models without training samples: no row in the file, the same predictions or nearly, refusals by name."""

import io
import json
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC

import cases
import consilience as cs
from consilience import Views, load, save, shareable
from consilience.datasets import load_breast_cancer_views, load_digits_views
from consilience.io import stored_samples
from consilience.io._averages import average_rows, project_functions, similar_groups
from consilience.io._states import BadState, check_state
from consilience.io._stored import check_no_rows, stored_text
from consilience.io.sharing import SharedModel
from consilience.kernels import RBF, Linear, Polynomial, Precomputed, Spectrum, center

rng = np.random.default_rng(0)
N = 200
HIDDEN, MIXED = rng.normal(size=(N + 30, 2)), rng.normal(size=(2, 4))
BOTH = Views(a=HIDDEN @ MIXED + 0.2 * rng.normal(size=(N + 30, 4)), b=HIDDEN + 0.2 * rng.normal(size=(N + 30, 2)))
X, NEW, HIDDEN = BOTH[:N], BOTH[N:], HIDDEN[:N]
TWO, THREE = np.where(HIDDEN[:, 0] > 0, "cat", "dog"), np.digitize(HIDDEN[:, 0], (-0.5, 0.5))
TARGETS = HIDDEN[:, 0] - np.sin(HIDDEN[:, 1])
HOLES = np.ones((N, 2), dtype=bool)
HOLES[:50, 0], HOLES[150:, 1] = False, False
PARTIAL = Views({"a": X["a"], "b": X["b"]}, mask=HOLES)
LESS = Views({"a": NEW["a"], "b": NEW["b"]}, mask=np.arange(60).reshape(30, 2) % 7 > 0)


def arrays_in(path):
    """All arrays of a model file, unpacked from it without the library."""
    payload = path.read_bytes().split(b"\n", 2)[2]
    found = []
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                found.append(np.load(io.BytesIO(archive.read(name)), allow_pickle=False))
            elif name.endswith(".npz"):
                found.append(sp.load_npz(io.BytesIO(archive.read(name))).toarray())
    return found


def rows_found(path, samples):
    """How many rows of the samples are in the arrays of a file, to 1e-6, along any axis of any array."""
    hits = 0
    for array in arrays_in(path):
        if array.dtype.kind != "f" or not array.ndim:
            continue
        for name in samples.names:
            block = samples.block(name)
            block = (block.toarray() if sp.issparse(block) else np.asarray(block))[samples.present(name)]
            for axis in range(array.ndim):
                if array.shape[axis] == block.shape[1] > 1:
                    rows = np.moveaxis(array, axis, -1).reshape(-1, block.shape[1])
                    hits += int((np.abs(rows[:, None] - block[None]).max(axis=2) < 1e-6).any(axis=1).sum())
    return hits


def outputs(model, data):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


# -- exact
LINEAR = {
    "linear": Linear(),
    "multiple": 0.3 * Linear(),
    "on columns": Linear().on([0, 1]),
    "sum": Linear() + 2.0 * Linear().on([1]),
    "mahalanobis": {"a": cs.kernels.Mahalanobis(np.diag([1.0, 2.0, 0.5, 0.0])), "b": Linear()},
}
BATCH = [
    cs.CoRegularizedRidge(agreement_penalty=1e-3),
    cs.CoRegularizedRidgeClassifier(view_weights="learned", random_state=0),
    cs.CoRegularizedSVC(class_vectors="simplex"),
    cs.ViewMetricRidge(),
    cs.ViewMetricRidgeClassifier(),
    cs.MultipleKernelRidgeClassifier(p=1.0),
    cs.OutputKernelRidge(),
    cs.OutputKernelRidgeClassifier(),
    cs.MaxMarginClassifier(C=0.1),  # with few support vectors averages of five would be far from them
    cs.CoRegularizedRidge(n_components=12, random_state=0),
    cs.ViewMetricRidgeClassifier(n_components=12, random_state=0),
    cs.MaxMarginClassifier(n_components=12, random_state=0),
]
each_estimator = pytest.mark.parametrize("estimator", BATCH, ids=lambda e: f"{type(e).__name__}-{e.n_components}")


def target_of(estimator):
    if isinstance(estimator, cs.OutputKernelRidge):
        return np.column_stack([TARGETS, -TARGETS + HIDDEN[:, 1]])
    return THREE if is_classifier(estimator) else TARGETS


@pytest.mark.parametrize("kernel", LINEAR)
@each_estimator
def test_linear_kernels_are_exact(estimator, kernel, tmp_path):
    y = target_of(estimator)
    for data, new in ((PARTIAL, LESS), (X, NEW))[: 2 if kernel == "linear" else 1]:
        model = clone(estimator).set_params(kernel=LINEAR[kernel]).fit(data, y)
        shared = shareable(model)
        assert shared.exact
        assert stored_samples(model)
        assert stored_samples(shared.model) == {}
        scale = np.abs(outputs(model, new)).max()
        np.testing.assert_allclose(outputs(shared.model, new), outputs(model, new), atol=1e-10 * scale)
        np.testing.assert_allclose(
            shared.model.view_decision_function(new), model.view_decision_function(new), atol=1e-10 * scale
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what is exact needs no warning
            save(model, tmp_path / "m", share=True)
        assert rows_found(tmp_path / "m", data) == 0
        assert np.array_equal(outputs(load(tmp_path / "m"), new), outputs(shared.model, new))


def test_coefficients_over_columns_are_those_of_the_primal():
    model = cs.CoRegularizedRidge("linear", alpha=1e-2).fit(X, TARGETS)
    shared = shareable(model).model
    for v, name in enumerate(X.names):
        at_units = model.kernels_[name](np.eye(X[name].shape[1]), X[name]) @ model.dual_coef_[v]
        own = shared._features._landmarks[name].T @ shared._features._roots[name] @ shared.coef_[name]
        np.testing.assert_allclose(own, at_units, atol=1e-12)


# -- nearly
KERNELS = [RBF(0.5), cs.kernels.Laplacian(0.3), Polynomial(2, constant=1.0), cs.kernels.normalize(RBF(1.0) + 0.1)]


def naive_projection(kernel, samples, A, z):
    """The coefficients that minimize ‖k(., samples) A - k(., z) B‖² in the kernel's space, entry by entry."""

    def gram(left, right):
        return np.array([[kernel(p[None], q[None])[0, 0] for q in right] for p in left])

    return np.linalg.lstsq(gram(z, z), gram(z, samples) @ A, rcond=1e-11)[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_projection_is_that_of_a_naive_twin(kernel):
    samples, A = X["b"], rng.normal(size=(N, 2))
    z = average_rows(samples, 10, "b")
    np.testing.assert_allclose(
        kernel(NEW["b"], z) @ project_functions(kernel, samples, A, z),
        kernel(NEW["b"], z) @ naive_projection(kernel, samples, A, z),
        atol=1e-5 * np.abs(A).sum(),
    )


def test_the_projection_keeps_functions_of_the_averages():
    z = average_rows(X["b"], 10, "b")
    B = project_functions(RBF(0.5), z, np.eye(len(z)), z)
    np.testing.assert_allclose(RBF(0.5)(NEW["b"], z) @ B, RBF(0.5)(NEW["b"], z), atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "size"), [(5, 5), (9, 5), (10, 5), (83, 5), (83, 7), (83, 30)])
def test_groups_have_a_smallest_size(n, size, form, monkeypatch):
    block = form(np.abs(rng.normal(size=(n, 3))))
    for piece in (2500, 40):
        monkeypatch.setattr("consilience.io._averages._PIECE", piece)
        counts = np.bincount(similar_groups(block, size))
        assert counts.sum() == n
        assert counts.min() >= size
        assert counts.max() < 2 * size
    assert similar_groups(block, size).max() + 1 >= n // (2 * size)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_averages_are_never_samples(form):
    few = np.eye(3)[rng.integers(3, size=200)]  # groups of equal rows, whose mean is a row
    z = average_rows(form(few), 5, "few")
    z = z.toarray() if sp.issparse(z) else z
    assert len(z) > 5
    assert (np.abs(z[:, None] - np.eye(3)[None]).max(axis=2) > 1e-6).all()
    with pytest.raises(ValueError, match=r"all samples of the view 'same' equals a sample\. Leave the view out"):
        average_rows(form(np.tile([1.0, 2.0], (20, 1))), 5, "same")


MARGIN = 0.02  # of the accuracy on held-out samples, for averages of 5
NEAR = [
    cs.CoRegularizedRidgeClassifier(alpha=1e-2),
    cs.CoRegularizedRidgeClassifier(alpha=1e-3, agreement_penalty=1e-4),
    cs.CoRegularizedSVC(alpha=1e-2),
    cs.ViewMetricRidgeClassifier(),
    cs.MultipleKernelRidgeClassifier(),
]


@pytest.mark.parametrize("loader", [load_breast_cancer_views, load_digits_views])
@pytest.mark.parametrize("estimator", NEAR, ids=repr)
def test_accuracy_stays_within_the_margin(estimator, loader, tmp_path):
    data, y = loader(return_X_y=True)
    train, test, y_train, y_test = train_test_split(data[:800], y[:800], random_state=0)
    model = make_pipeline(cs.PerView(StandardScaler()), clone(estimator)).fit(train, y_train)
    with pytest.warns(UserWarning, match="Holds 0 training samples"):
        shared = save(model, tmp_path / "m", share=True, X=test, y=y_test)
    assert abs(shared.after - shared.before) <= MARGIN
    assert shared.before == model.score(test, y_test)
    assert shared.after == load(tmp_path / "m").score(test, y_test)
    assert 0 <= shared.change <= MARGIN
    inside = model[:-1].transform(train)
    assert rows_found(tmp_path / "m", inside) == rows_found(tmp_path / "m", train) == 0
    save(model, tmp_path / "whole")
    assert rows_found(tmp_path / "whole", inside) > 100


def test_regression_says_how_far_predictions_moved():
    model = cs.CoRegularizedRidge(alpha=1e-2).fit(X, TARGETS)
    shared = shareable(model, NEW, HIDDEN[:30, 0])
    before, after = model.predict(X), shared.model.predict(X)
    assert shared.change == pytest.approx(np.sqrt(np.mean((after - before) ** 2)) / np.std(before))
    assert 0 < shared.change < 0.05
    assert not shared.classifies
    assert f"moved by {100 * shared.change:.3g}% of their standard deviation" in str(shared)
    assert f"{shared.before:.4f} before, {shared.after:.4f} after" in str(shared)


@pytest.mark.parametrize("estimator", [cs.ViewMetricRidge(), cs.CoRegularizedRidge(n_components=12, random_state=0)])
def test_predictions_that_are_all_zero_do_not_move(estimator):
    shared = shareable(clone(estimator).fit(X, np.zeros(N)))
    assert shared.change == 0
    assert "moved by 0% of their standard deviation" in str(shared)


def test_larger_averages_lose_more():
    model = cs.CoRegularizedRidge(alpha=1e-3).fit(X, TARGETS)
    small, large = shareable(model), shareable(model, min_samples=20)
    assert small.averages["a"] > 2 * large.averages["a"]
    assert small.change < large.change
    assert large.min_samples == 20


@each_estimator
def test_every_batch_estimator_is_shared_with_missing_views_and_weights(estimator, tmp_path):
    y, weights = target_of(estimator), np.random.default_rng(4).uniform(0.5, 2.0, size=N)
    estimator = clone(estimator).set_params(kernel={"a": RBF(0.02), "b": RBF(0.1)})
    if estimator.n_components:
        estimator.set_params(n_components=60)
    model = estimator.fit(PARTIAL, y, weights)
    shared = shareable(model)
    assert 0 <= shared.change < 0.1
    old, new = outputs(model, LESS), outputs(shared.model, LESS)
    assert np.sqrt(np.mean((new - old) ** 2)) < 0.2 * np.std(old)
    both = model.view_decision_function(LESS), shared.model.view_decision_function(LESS)
    assert np.array_equal(np.isnan(both[0]), np.isnan(both[1]))
    with pytest.warns(UserWarning, match="averages of at least 5 samples"):
        save(model, tmp_path / "m", share=True)
    again = load(tmp_path / "m")
    assert np.array_equal(outputs(again, LESS), new)
    assert rows_found(tmp_path / "m", PARTIAL) == 0
    assert again.certificate().status == "shared"
    assert "no optimum is claimed" in str(again.certificate())
    assert again.certificate().gap is None
    assert clone(again).fit(PARTIAL, y).certificate().status != "shared"
    assert stored_samples(model), "the original is not changed"


@pytest.mark.parametrize("outputs_of", [TARGETS, np.column_stack([TARGETS, HIDDEN])], ids=["one", "three"])
@pytest.mark.parametrize("kernel", ["linear", RBF(0.05)], ids=repr)
@pytest.mark.parametrize("shared_metric", [True, False])
def test_learned_metrics_are_shared(kernel, shared_metric, outputs_of, tmp_path):
    model = cs.ViewMetricRidge(kernel, shared_metric=shared_metric, alpha=1e-2).fit(PARTIAL, outputs_of)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(model, tmp_path / "m", share=True)
    before, after = model.metric_, load(tmp_path / "m").metric_
    np.testing.assert_allclose(after.block_norms(), before.block_norms(), rtol=1e-10)
    old, new = before.transform(NEW), after.transform(NEW)
    for name in X.names:
        tolerance = 1e-10 if kernel == "linear" else 0.2
        np.testing.assert_allclose(new[name], old[name], atol=tolerance * np.abs(old[name]).max())
    assert all(len(factor[name]) <= 3 for factor in after.factors for name in X.names)  # nothing for each sample


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_views(kernel, tmp_path):
    topics = np.repeat([[1.5, 0.05], [0.05, 1.5]], 20, axis=1)  # each topic has words of its own
    counts = rng.poisson(topics[rng.integers(2, size=N)]) * 1.0
    data = Views(words=sp.csr_array(counts), b=X["b"])
    y = (counts[:, 0] + counts[:, 1] > 1).astype(int)
    model = cs.CoRegularizedRidgeClassifier(kernel, alpha=1e-2).fit(data, y)
    shared = shareable(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(model, tmp_path / "m", share=True)
    again = load(tmp_path / "m")
    assert rows_found(tmp_path / "m", data) == 0
    assert np.array_equal(again.decision_function(data), shared.model.decision_function(data))
    dense = Views(words=counts, b=data["b"])
    np.testing.assert_allclose(again.decision_function(dense), again.decision_function(data), atol=1e-10)
    if kernel == "linear":
        np.testing.assert_allclose(again.decision_function(data), model.decision_function(data), atol=1e-10)
    else:
        assert sp.issparse(again._features._landmarks["words"])
        assert shared.change < 0.1


def test_single_precision():
    model = cs.CoRegularizedRidge(alpha=1e-2).fit({name: X[name].astype(np.float32) for name in X.names}, TARGETS)
    assert model.X_fit_["a"].dtype == np.float32
    assert shareable(model).change < 0.05


def test_indicators_of_labels():
    Y = np.column_stack([HIDDEN > 0, THREE == 1]).astype(int)
    shared = shareable(cs.CoRegularizedRidgeClassifier(alpha=1e-2).fit(X, Y))
    assert shared.model.predict(NEW).shape == (30, 3)
    assert shared.change < 0.1


# -- models around models
PIPELINES = {
    "pipeline": make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedSVC()),
    "features": make_pipeline(cs.Nystroem(n_components=60, random_state=0), cs.CoRegularizedSVC("linear")),
    "random": make_pipeline(cs.RandomFeatures(n_components=50, random_state=0), cs.CoRegularizedSVC("linear")),
    "search": GridSearchCV(cs.CoRegularizedRidgeClassifier(), {"alpha": [1e-2, 1e-1]}, cv=2),
    "calibrated": CalibratedClassifierCV(cs.CoRegularizedSVC(), cv=2),
    "late fusion": cs.LateFusion(cs.CoRegularizedSVC()),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_models_around_models(name, tmp_path):
    model = clone(PIPELINES[name]).fit(X, TWO)
    shared = shareable(model, X, TWO)
    assert abs(shared.after - shared.before) <= 0.05
    assert (shared.change is None) == (name in ("calibrated", "late fusion"))
    assert stored_samples(model)
    assert not stored_samples(shared.model)
    trusted = [
        "sklearn.metrics._scorer._PassthroughScorer", "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    ]  # fmt: skip
    save(shared.model, tmp_path / "m", trusted=trusted)
    assert rows_found(tmp_path / "m", X) == 0
    assert np.array_equal(load(tmp_path / "m", trusted=trusted).predict(NEW), shared.model.predict(NEW))


def test_scaled_targets():
    scaled = TransformedTargetRegressor(
        make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidge(alpha=1e-2)), transformer=StandardScaler()
    ).fit(X, 1000 * TARGETS)
    shared = shareable(scaled, X, 1000 * TARGETS)
    assert 0 < shared.change < 0.05
    assert shared.before - shared.after < 0.02


def test_features_alone(tmp_path):
    features = cs.Nystroem(n_components=40, random_state=0).fit(X)
    shared = shareable(features)
    assert shared.replaced == {"a": 40, "b": 40}
    assert shared.averages == {"a": 8, "b": 8}
    assert {name: own.shape[0] for name, own in shared.model.landmark_indices_.items()} == {"a": 0, "b": 0}
    assert shared.model.n_components_ == features.n_components_
    save(shared.model, tmp_path / "m")
    assert load(tmp_path / "m").transform(NEW) == shared.model.transform(NEW)


@pytest.mark.parametrize("model", [cs.EarlyFusion(LogisticRegression()), cs.LateFusion(LogisticRegression())], ids=repr)
def test_linear_fusions_pass_as_they_are(model):
    shared = shareable(clone(model).fit(X, TWO))
    assert shared.replaced == {}
    assert "nothing was changed" in str(shared)
    assert shared.model.certificate().status == "delegated"


def test_a_shared_model_is_shared_again_as_it_is():
    once = shareable(cs.CoRegularizedRidgeClassifier().fit(X, TWO)).model
    twice = shareable(once)
    assert twice.replaced == {}
    assert np.array_equal(twice.model.decision_function(NEW), once.decision_function(NEW))


def test_online_weights_pass_as_they_are():
    for model in (cs.OnlinePerceptron(), cs.OrthogonalPerceptron(average=True), cs.VectorPerceptron("linear")):
        fitted = model.fit(X, THREE)
        assert stored_samples(fitted) == {}
        assert shareable(fitted).exact


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.LEARNERS)
def test_every_estimator_is_shared_or_refused(name, tmp_path):
    estimator = cases.LEARNERS[name]
    y = THREE if is_classifier(estimator) else TARGETS
    model = clone(estimator).fit(X, y)
    online = "online" in type(model).__module__ and stored_samples(model)
    few = name in ("max margin, indicator", "max margin regression")  # outputs of few samples
    if online or few:
        with pytest.raises(ValueError, match="learns on from" if online else "is made of"):
            shareable(model)
        return
    shared = shareable(model)
    save(model, tmp_path / "m", share=True)
    assert rows_found(tmp_path / "m", X) == 0
    loaded = load(tmp_path / "m")
    assert stored_samples(loaded) == {}
    assert np.array_equal(shared.model.predict(X), loaded.predict(X))


# -- refused
GRAM = Views(g=X["a"] @ X["a"].T, b=X["b"], precomputed="g")
WORDS = Views(words=["abc", "bcd", "cda", "dab"] * 50, b=X["b"])
REFUSED = {
    "a batch of few samples": (
        lambda: make_pipeline(cs.RemoveBatch(), cs.CoRegularizedRidge("linear")).fit(
            X | cs.Views(batch=["p"] * 2 + ["q"] * (N - 2)), TARGETS
        ),
        "the effect of the batch 'p' is a mean of 2 training samples",
    ),
    "a Gram matrix": (
        lambda: cs.CoRegularizedRidge({"g": Precomputed()}).fit(GRAM, TARGETS), "the view 'g' (holds|is) a Gram matrix"
    ),
    "Gram matrices alone": (
        lambda: cs.CoRegularizedRidge("precomputed").fit(GRAM[["g"]], TARGETS), "the view 'g' is a Gram matrix"
    ),
    "Gram matrices of other estimators": (
        lambda: cs.LateFusion(SVC(kernel="precomputed")).fit(GRAM[["g"]], TWO), "'g'"
    ),
    "strings": (
        lambda: cs.CoRegularizedRidge({"words": Spectrum(2)}).fit(WORDS, TARGETS),
        "the view 'words' holds strings or other objects, which have no average",
    ),
    "landmarks of strings": (
        lambda: cs.Nystroem({"words": Spectrum(2)}, n_components=6).fit(WORDS), "the view 'words' holds strings"
    ),
    "a centered kernel": (
        lambda: cs.CoRegularizedRidge({"a": center(RBF(0.1)), "b": "linear"}).fit(X, TARGETS),
        r"center\(RBF\(gamma=0.1\)\) of the view 'a' keeps the training samples as its center",
    ),
    "few samples": (
        lambda: cs.CoRegularizedRidge().fit(X[:4], TARGETS[:4]), "view 'a' holds 4 training samples; .* at least 5"
    ),
    "few samples of a view": (
        lambda: cs.CoRegularizedRidge().fit(Views(a=X["a"], b=[*X["b"][:3], *[None] * (N - 3)]), TARGETS),
        "view 'b' holds 3 training samples",
    ),
    "one sample for each output": (
        lambda: cs.MaxMarginRegressor().fit(X, TARGETS), "an output of the view 'a' is made of 1 training samples"
    ),
    "a product of views": (
        lambda: cs.MaxMarginClassifier(combine="product").fit(X, TWO), "combine='product' joins the views 'a', 'b'"
    ),
    "support of a stream": (
        lambda: cs.KernelPerceptron().fit(X, TWO), "KernelPerceptron learns on from [0-9]+ training samples"
    ),
    "support of a Projectron": (lambda: cs.Projectron().fit(X, TWO), "Projectron learns on from"),
    "support of cues": (lambda: cs.MultiCueClassifier(RBF(0.5)).fit(X, TWO), "learns on from"),
    "votes of a norm": (lambda: cs.OnlinePerceptron(3, average="voted").fit(X, THREE), "learns on from"),
    "few updates": (
        lambda: cs.OnlinePerceptron(max_iter=1).fit(X[:3], TWO[:3]), "OnlinePerceptron are a sum of [123] sam"
    ),
    "support vectors": (
        lambda: cs.LateFusion(SVC()).fit(X, TWO), "SVC of the view 'b' keeps training samples in .* `support_vectors_`"
    ),
    "neighbors": (
        lambda: cs.EarlyFusion(KNeighborsClassifier()).fit(X, TWO), "Classifier of the views 'a', 'b' .*`_fit_X`"
    ),
    "values of each column": (
        lambda: make_pipeline(
            cs.PerView(QuantileTransformer(n_quantiles=50)), cs.CoRegularizedSVC("linear")
        ).fit(X, TWO),
        "QuantileTransformer of the view '[ab]' keeps training samples in its attribute `quantiles_`",
    ),
    "samples themselves": (lambda: {"model": cs.OnlinePerceptron().fit(X, TWO), "data": X}, "there are samples"),
    "samples next to a Gram matrix": (
        lambda: {"model": cs.OnlinePerceptron().fit(X, TWO), "data": GRAM}, "there are samples"
    ),
    "a graph between samples": (
        lambda: cs.CoRegularizedRidge(graph_penalty=1e-3, graph={"a": np.eye(N), "b": "knn"}).fit(X, TARGETS),
        r"the parameter `graph` of CoRegularizedRidge .*model.set_params\(graph=...\)",
    ),
    "a metric between samples": (
        lambda: cs.ViewMetricRidge(metric=np.eye(2 * N)).fit(X, TARGETS), "the parameter `metric` of ViewMetricRidge"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_refused_by_name(name, tmp_path):
    make, message = REFUSED[name]
    model = make()
    with pytest.raises(ValueError, match=rf"^Not shared: .*{message}"):
        save(model, tmp_path / "m", share=True)
    assert not (tmp_path / "m").exists()


def test_a_parameter_that_is_reset_is_shared():
    model = cs.CoRegularizedRidge(graph_penalty=1e-3, graph={"a": np.eye(N), "b": "knn"}).fit(X, TARGETS)
    assert shareable(model.set_params(graph="knn")).change < 0.1


def test_estimators_that_are_not_known_are_refused():
    class Mine(Ridge):
        pass

    Mine.__module__ = "mine"
    with pytest.raises(ValueError, match=r"it is not known whether Mine of the view '[ab]' keeps training samples"):
        shareable(cs.LateFusion(Mine()).fit(X, TARGETS))


def test_arguments_are_validated(tmp_path):
    model = cs.CoRegularizedRidge().fit(X, TARGETS)
    with pytest.raises(ValueError, match="`min_samples` must be an integer of at least 5; got 4"):
        shareable(model, min_samples=4)
    with pytest.raises(ValueError, match="`y` needs its samples"):
        shareable(model, y=TARGETS)
    with pytest.raises(ValueError, match="use share=True"):
        save(model, tmp_path / "m", X=X, y=TARGETS)
    with pytest.raises(NotFittedError):
        shareable(cs.CoRegularizedRidge())
    assert save(model, tmp_path / "m") is None


# -- the last check
def hidden(row):
    """Models that hold a row where no rule looks for it."""
    model = make_pipeline(cs.PerView(PCA(2)), cs.CoRegularizedRidge("linear")).fit(X, TARGETS)
    model = shareable(model).model
    yield "nothing", model, False
    for place, value in {
        "a row": row,
        "a column": np.column_stack([row, row[::-1]]),
        "a deep array": {"x": [(np.stack([row[::-1], row])[None],)]},
        "a sparse row": sp.csr_array(row[None]),
        "a rounded row": row.astype(np.float32),
        "objects": np.array([{"x": row}, None], dtype=object),
    }.items():
        model[0].extra_ = value
        yield place, model, True
    model[0].extra_ = np.column_stack([row + 1e-3, row - 1e-3])
    yield "other rows", model, False


def test_the_last_check_finds_rows_anywhere():
    seen = []
    for place, model, found in hidden(X["a"][7]):
        seen.append(place)
        if found:
            with pytest.raises(ValueError, match="Pipeline still holds a training sample of the view 'a'"):
                check_no_rows(model, [X])
        else:
            check_no_rows(model, [X])
    assert len(seen) == 8
    early = np.hstack([X["a"], X["b"]])[3]
    with pytest.raises(ValueError, match=r"the view 'a \+ b'"):
        check_no_rows({"x": early}, [X])
    zeros = Views(a=np.zeros((3, 4)))
    check_no_rows({"x": np.zeros(4)}, [zeros])  # says nothing about a sample


def test_given_samples_are_looked_for_too():
    model = make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidge("linear")).fit(X, TARGETS)
    model.note_ = X["a"][3]  # not a sample that the model is known to hold, which are scaled
    shareable(model)
    with pytest.raises(ValueError, match="still holds a training sample of the view 'a'"):
        shareable(model, X)


# -- what is told
def test_counts_of_samples():
    assert stored_text(stored_samples(cs.CoRegularizedRidge().fit(X, TARGETS))) == (
        "200 training samples of the views 'a', 'b'"
    )
    assert stored_text(stored_samples(cs.CoRegularizedRidge().fit(PARTIAL, TARGETS))) == (
        "150 training samples of the views 'a', 'b'"
    )
    uneven = Views(a=X["a"], b=[*X["b"][:30], *[None] * (N - 30)])
    assert stored_text(stored_samples(cs.CoRegularizedRidge().fit(uneven, TARGETS))) == (
        "200 training samples of the view 'a', 30 training samples of the view 'b'"
    )
    assert stored_text(stored_samples(cs.RandomFeatures().fit(X))) == "0 training samples"
    assert stored_samples(cs.LateFusion({"a": SVC(), "b": LogisticRegression()}).fit(X, TWO)).keys() == {"a"}
    assert stored_samples(cs.CoRegularizedRidge("precomputed").fit(GRAM[["g"]], TARGETS)) == {}
    assert stored_samples(cs.CoRegularizedRidge(center(RBF(0.1))).fit(X[["a"]][:20], TARGETS[:20])) == {"a": 20}


def test_the_report_is_a_sentence():
    mixed = SharedModel(None, {"a": 10, "b": 10, "c": 10}, {"a": 2, "b": 0, "c": 1}, 5)
    assert str(mixed) == (
        "Holds 0 training samples: 10 training samples of the views 'a', 'b', 'c' became averages of at least 5 "
        "samples (2 in 'a', 1 in 'c'; coefficients over the columns of 'b')."
    )


def test_states_of_shared_models_are_validated(tmp_path):
    model = shareable(cs.CoRegularizedRidgeClassifier().fit(X, THREE)).model
    check_state(model)
    for change in (
        lambda: model.coef_.update(a=np.eye(5)),
        lambda: model.coef_.pop("a"),
        lambda: model._features._roots.update(a=np.ones((2, 3))),
    ):
        before = dict(model.coef_), dict(model._features._roots)
        change()
        with pytest.raises(BadState):
            check_state(model)
        model.coef_, model._features._roots = before
    check_state(model)


def test_the_command_line_shares(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from consilience.cli.main import app

    frame = pd.DataFrame({f"{v}__{j}": X[v][:, j] for v in X.names for j in range(X[v].shape[1])})
    frame["kind"] = TWO
    frame.to_csv(tmp_path / "data.csv", index=False)
    base = [str(tmp_path / "data.csv"), "-y", "kind", "--views", "prefix"]

    def run(*words):
        result = CliRunner().invoke(app, [*map(str, words), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    kernel = "CoRegularizedRidgeClassifier"
    whole = run("fit", *base, "--save", tmp_path / "whole.cons", "-e", kernel)
    assert whole["holds"] == "200 training samples of the views 'a', 'b'"
    assert "shared" not in whole
    told = run("fit", *base, "--save", tmp_path / "m.cons", "-e", kernel, "--share")
    assert "became averages of at least 5 samples" in told["shared"]
    assert "before, " in told["shared"]
    inspected = run("inspect", tmp_path / "m.cons")
    assert inspected["holds"] == "0 training samples"
    assert "no optimum is claimed" in inspected["certificate"]
    assert rows_found(tmp_path / "m.cons", X) == 0
    best = run(
        "compare", *base, "-e", "CoRegularizedSVC", "--cv", 2, "-j", 1, "--save", tmp_path / "best.cons", "--share"
    )
    assert "Holds 0 training samples" in best["shared"]
    refused = CliRunner().invoke(app, ["compare", *base, "--share"])
    assert "--save" in str(refused.exception)
