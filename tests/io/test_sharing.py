"""Models without training samples: no row in the file, the same predictions or nearly, refusals by name."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC

import cases
import consilience as cs
from consilience import Views, load, save, shareable
from consilience.io import stored_samples
from consilience.io._states import BadState, check_state
from consilience.io._stored import stored_text
from consilience.kernels import RBF, Linear, Precomputed, Spectrum, center

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
        assert stored_samples(model)
        shared = shareable(model)
        assert stored_samples(shared) == {}
        scale = np.abs(outputs(model, new)).max()
        np.testing.assert_allclose(outputs(shared, new), outputs(model, new), atol=1e-10 * scale)
        np.testing.assert_allclose(
            shared.view_decision_function(new), model.view_decision_function(new), atol=1e-10 * scale
        )
        save(model, tmp_path / "m", share=True)
        assert rows_found(tmp_path / "m", data) == 0
        again = load(tmp_path / "m")
        assert np.array_equal(outputs(again, new), outputs(shared, new))
        assert again.certificate().status == "shared"
        assert "no optimum is claimed" in str(again.certificate())
        assert clone(again).fit(data, y).certificate().status != "shared"


def test_coefficients_over_columns_are_those_of_the_primal():
    model = cs.CoRegularizedRidge("linear", alpha=1e-2).fit(X, TARGETS)
    shared = shareable(model)
    for v, name in enumerate(X.names):
        at_units = model.kernels_[name](np.eye(X[name].shape[1]), X[name]) @ model.dual_coef_[v]
        own = shared._features._landmarks[name].T @ shared._features._roots[name] @ shared.coef_[name]
        np.testing.assert_allclose(own, at_units, atol=1e-12)


@pytest.mark.parametrize("outputs_of", [TARGETS, np.column_stack([TARGETS, HIDDEN])], ids=["one", "three"])
@pytest.mark.parametrize("shared_metric", [True, False])
def test_learned_metrics_are_shared(shared_metric, outputs_of, tmp_path):
    model = cs.ViewMetricRidge("linear", shared_metric=shared_metric, alpha=1e-2).fit(PARTIAL, outputs_of)
    save(model, tmp_path / "m", share=True)
    before, after = model.metric_, load(tmp_path / "m").metric_
    np.testing.assert_allclose(after.block_norms(), before.block_norms(), rtol=1e-10)
    old, new = before.transform(NEW), after.transform(NEW)
    for name in X.names:
        np.testing.assert_allclose(new[name], old[name], atol=1e-10 * np.abs(old[name]).max())
    assert all(len(factor[name]) <= 3 for factor in after.factors for name in X.names)  # nothing for each sample


def test_sparse_views(tmp_path):
    topics = np.repeat([[1.5, 0.05], [0.05, 1.5]], 20, axis=1)  # each topic has words of its own
    counts = rng.poisson(topics[rng.integers(2, size=N)]) * 1.0
    data = Views(words=sp.csr_array(counts), b=X["b"])
    model = cs.CoRegularizedRidgeClassifier("linear", alpha=1e-2).fit(data, (counts[:, 0] > 1).astype(int))
    save(model, tmp_path / "m", share=True)
    again = load(tmp_path / "m")
    assert rows_found(tmp_path / "m", data) == 0
    dense = Views(words=counts, b=data["b"])
    np.testing.assert_allclose(again.decision_function(dense), again.decision_function(data), atol=1e-10)
    np.testing.assert_allclose(again.decision_function(data), model.decision_function(data), atol=1e-10)


def test_single_precision():
    single = Views({name: X[name].astype(np.float32) for name in X.names})
    model = cs.CoRegularizedRidge("linear", alpha=1e-2).fit(single, TARGETS)
    assert model.X_fit_["a"].dtype == np.float32
    np.testing.assert_allclose(shareable(model).predict(single), model.predict(single), atol=1e-5)


def test_indicators_of_labels():
    Y = np.column_stack([HIDDEN > 0, THREE == 1]).astype(int)
    model = cs.CoRegularizedRidgeClassifier("linear", alpha=1e-2).fit(X, Y)
    assert np.array_equal(shareable(model).predict(NEW), model.predict(NEW))


# -- models around models
PIPELINES = {
    "pipeline": make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedSVC("linear")),
    "landmarks of linear kernels": make_pipeline(
        cs.Nystroem("linear", n_components=6, random_state=0), cs.CoRegularizedSVC("linear")
    ),
    "random": make_pipeline(cs.RandomFeatures(n_components=50, random_state=0), cs.CoRegularizedSVC("linear")),
    "search": GridSearchCV(cs.CoRegularizedRidgeClassifier("linear"), {"alpha": [1e-2, 1e-1]}, cv=2),
    "calibrated": CalibratedClassifierCV(cs.CoRegularizedSVC("linear"), cv=2),
    "late fusion": cs.LateFusion(cs.CoRegularizedSVC("linear")),
    "scaled targets": TransformedTargetRegressor(cs.CoRegularizedRidge("linear"), transformer=StandardScaler()),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_models_around_models(name, tmp_path):
    model = clone(PIPELINES[name]).fit(X, TWO if is_classifier(PIPELINES[name]) else TARGETS)
    assert stored_samples(model)
    trusted = [
        "sklearn.metrics._scorer._PassthroughScorer", "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    ]  # fmt: skip
    save(model, tmp_path / "m", trusted=trusted, share=True)
    assert rows_found(tmp_path / "m", X) == 0
    again = load(tmp_path / "m", trusted=trusted)
    assert stored_samples(again) == {}
    if is_classifier(model):
        assert np.array_equal(again.predict(NEW), model.predict(NEW))
    else:
        np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), atol=1e-10)


def test_features_alone(tmp_path):
    features = cs.Nystroem("linear", n_components=6, random_state=0).fit(X)
    save(features, tmp_path / "m", share=True)
    again = load(tmp_path / "m")
    assert rows_found(tmp_path / "m", X) == 0
    assert again.n_components_ == features.n_components_
    for name in X.names:
        np.testing.assert_allclose(again.transform(NEW)[name], features.transform(NEW)[name], atol=1e-10)


@pytest.mark.parametrize(
    "estimator",
    [
        cs.EarlyFusion(LogisticRegression()), cs.LateFusion(LogisticRegression()), cs.OnlinePerceptron(),
        cs.OrthogonalPerceptron(average=True), cs.VectorPerceptron("linear"),
    ],
    ids=repr,
)  # fmt: skip
def test_models_of_column_weights_pass_as_they_are(estimator):
    model = clone(estimator).fit(X, THREE)
    assert stored_samples(model) == {}
    shared = shareable(model)
    assert np.array_equal(shared.decision_function(NEW), model.decision_function(NEW))
    assert shared.certificate().status in ("delegated", "streamed")


def test_a_shared_model_is_shared_again_as_it_is():
    once = shareable(cs.CoRegularizedRidgeClassifier("linear").fit(X, TWO))
    assert np.array_equal(shareable(once).decision_function(NEW), once.decision_function(NEW))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.LEARNERS)
def test_every_estimator_is_shared_exactly_or_refused(name, tmp_path):
    estimator = cases.LEARNERS[name]
    model = clone(estimator).fit(X, THREE if is_classifier(estimator) else TARGETS)
    if stored_samples(model) and "linear" not in name:
        with pytest.raises(ValueError, match=r"Not shared: .*([0-9]+ training samples|combine=)"):
            save(model, tmp_path / "m", share=True)
        return
    save(model, tmp_path / "m", share=True)
    assert rows_found(tmp_path / "m", X) == 0
    loaded = load(tmp_path / "m")
    assert stored_samples(loaded) == {}
    np.testing.assert_allclose(outputs(loaded, NEW), outputs(model, NEW), atol=1e-8)


def test_a_view_that_few_samples_of_a_stream_have(tmp_path):
    """Running means of few samples are these samples."""
    rare = np.full((N, 3), np.nan)
    stream = Views(a=X["a"], rare=rare)
    for n in (1, 4, 5, 12):
        rare[50 : 50 + n] = np.round(rng.normal(size=(n, 3)) * [1, 10, 100], 3)
        stream = Views(a=X["a"], rare=rare)
        model = cs.PassiveAggressive(prepare="standardize").partial_fit(stream, TWO)
        if n < 5:
            assert stored_samples(model) == {"rare": n}
            with pytest.raises(ValueError, match=f"{n} training samples? of the view 'rare'.* at least 5 samples of"):
                save(model, tmp_path / "m", share=True)
        else:
            save(model, tmp_path / "m", share=True)
            assert stored_samples(load(tmp_path / "m")) == {}
            assert rows_found(tmp_path / "m", stream) == 0


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
        lambda: cs.CoRegularizedRidge({"g": Precomputed()}).fit(GRAM, TARGETS), "200 training samples of the view 'b'"
    ),
    "Gram matrices alone": (
        lambda: cs.CoRegularizedRidge("precomputed").fit(GRAM[["g"]], TARGETS), "the view 'g' is a Gram matrix"
    ),
    "Gram matrices of other estimators": (
        lambda: cs.LateFusion(SVC(kernel="precomputed")).fit(GRAM[["g"]], TWO), "'g'"
    ),
    "other kernels": (
        lambda: cs.CoRegularizedRidgeClassifier().fit(X, TWO),
        r"CoRegularizedRidgeClassifier predicts from 200 training samples of the views 'a', 'b'\. Fit .*"
        r"CoRegularizedRidgeClassifier\('linear'\) \(-e CoRegularizedRidgeClassifier --set kernel=linear\)",
    ),
    "another kernel of one view": (
        lambda: cs.CoRegularizedRidge({"a": "linear", "b": RBF(0.1)}).fit(X, TARGETS), "200 training samples"
    ),
    "landmarks": (
        lambda: cs.CoRegularizedRidge(n_components=12, random_state=0).fit(X, TARGETS), "12 training samples of the v"
    ),
    "a consensus": (
        lambda: cs.ConsensusRegressor("linear").fit(X, TARGETS),
        r"ConsensusRegressor predicts from 200 training samples .* such as CoRegularizedRidge\('linear'\)",
    ),
    "strings": (
        lambda: cs.CoRegularizedRidge({"words": Spectrum(2)}).fit(WORDS, TARGETS), "samples of the views 'words', 'b'"
    ),
    "a centered kernel": (
        lambda: cs.CoRegularizedRidge({"a": center(Linear()), "b": "linear"}).fit(X, TARGETS), "200 training samples"
    ),
    "few samples": (
        lambda: cs.CoRegularizedRidge("linear").fit(X[:4], TARGETS[:4]),
        "an output of the view 'a' is made of 4 training samples, fewer than 5",
    ),
    "few samples of a view": (
        lambda: cs.CoRegularizedRidge("linear").fit(Views(a=X["a"], b=[*X["b"][:3], *[None] * (N - 3)]), TARGETS),
        "view 'b' is made of 3 training samples",
    ),
    "one sample for each output": (
        lambda: cs.MaxMarginRegressor("linear").fit(X, TARGETS), "output of the view 'a' is made of 1 training samples"
    ),
    "a product of views": (
        lambda: cs.MaxMarginClassifier("linear", combine="product").fit(X, TWO),
        "combine='product' joins the views 'a', 'b'",
    ),
    "support of a stream": (
        lambda: cs.KernelPerceptron().fit(X, TWO), "KernelPerceptron predicts from [0-9]+ training samples"
    ),
    "support of a Projectron": (lambda: cs.Projectron().fit(X, TWO), "Projectron predicts from"),
    "support of cues": (lambda: cs.MultiCueClassifier(RBF(0.5)).fit(X, TWO), "predicts from"),
    "votes of a norm": (lambda: cs.OnlinePerceptron(3, average="voted").fit(X, THREE), "predicts from"),
    "few updates": (
        lambda: cs.OnlinePerceptron(max_iter=1).fit(X[:3], TWO[:3]), "OnlinePerceptron are a sum of [123] sam"
    ),
    "support vectors": (
        lambda: cs.LateFusion(SVC()).fit(X, TWO), "LateFusion predicts from [0-9]+ training samples of the view '[ab]'"
    ),
    "neighbors": (
        lambda: cs.EarlyFusion(KNeighborsClassifier()).fit(X, TWO), "200 training samples of the views 'a', 'b'"
    ),
    "values of each column": (
        lambda: make_pipeline(
            cs.PerView(QuantileTransformer(n_quantiles=50)), cs.CoRegularizedSVC("linear")
        ).fit(X, TWO),
        "Pipeline predicts from 50 training samples",
    ),
    "samples themselves": (lambda: {"model": cs.OnlinePerceptron().fit(X, TWO), "data": X}, "there are samples"),
    "samples next to a Gram matrix": (
        lambda: {"model": cs.OnlinePerceptron().fit(X, TWO), "data": GRAM}, "there are samples"
    ),
    "a graph between samples": (
        lambda: cs.CoRegularizedRidge("linear", graph_penalty=1e-3, graph={"a": np.eye(N), "b": "knn"}).fit(X, TARGETS),
        r"the parameter `graph` of CoRegularizedRidge .*model.set_params\(graph=...\)",
    ),
    "a metric between samples": (
        lambda: cs.ViewMetricRidge("linear", metric=np.eye(2 * N)).fit(X, TARGETS), "the parameter `metric` of ViewM"
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
    model = cs.CoRegularizedRidge("linear", graph_penalty=1e-3, graph={"a": np.eye(N), "b": "knn"}).fit(X, TARGETS)
    assert stored_samples(shareable(model.set_params(graph="knn"))) == {}


def test_estimators_that_are_not_known_are_refused():
    class Mine(Ridge):
        pass

    Mine.__module__ = "mine"
    with pytest.raises(ValueError, match=r"it is not known whether Mine of the view '[ab]' keeps training samples"):
        shareable(cs.LateFusion(Mine()).fit(X, TARGETS))


def test_unfitted_models_are_refused():
    with pytest.raises(NotFittedError):
        shareable(cs.CoRegularizedRidge())


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


def test_states_of_shared_models_are_validated(tmp_path):
    model = shareable(cs.CoRegularizedRidgeClassifier("linear").fit(X, THREE))
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
    linear = ["-e", kernel, "--set", "kernel=linear"]
    assert run("fit", *base, "--save", tmp_path / "m.cons", *linear, "--share")["holds"] == "0 training samples"
    inspected = run("inspect", tmp_path / "m.cons")
    assert inspected["holds"] == "0 training samples"
    assert "no optimum is claimed" in inspected["certificate"]
    assert rows_found(tmp_path / "m.cons", X) == 0
    refused = CliRunner().invoke(app, ["fit", *base, "--save", str(tmp_path / "no.cons"), "--share"])
    assert "-e CoRegularizedRidgeClassifier --set kernel=linear" in str(refused.exception)
    assert not (tmp_path / "no.cons").exists()
