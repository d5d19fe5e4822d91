"""Penalties chosen over features, transformers and other estimators: blocks of rows give what memory gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import consilience as cs
import reference
from cases import random_mask
from consilience.kernels import RBF
from consilience.solvers import held_out_features
from consilience.solvers.coregularized import Penalties
from consilience.solvers.coupled_features import FeatureSums
from consilience.solvers.design import FeatureDesign, FeatureRows
from consilience.solvers.held_out_features import held_rows
from consilience.views import row_blocks

SIZES = [4, 3, 5]
GRID = [Penalties(alpha, agreement, 0.0) for alpha in (1e-3, 0.1, 3.0) for agreement in (0.0, 1e-2, 1.0)]


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    n = 400
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.column_stack([np.sin(hidden[:, 0]), hidden[:, 1] ** 2]) + 0.2 * rng.normal(size=(n, 2))
    y[rng.random(n) < 0.3] = np.nan
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low")).astype(object)
    labels[rng.random(n) < 0.3] = None
    return views, y, labels, rng.uniform(0.2, 2, size=n), random_mask(rng, n, 2, 0.2)


# -- held-out scores over features
def feature_rows(seed, missing, n=40, P=2):
    rng = np.random.default_rng(seed)
    present = random_mask(rng, n, 3, missing)
    Phi = rng.normal(size=(n, sum(SIZES))) * np.repeat(present, SIZES, axis=1)
    Y = Phi[:, :6] @ rng.normal(size=(6, P)) + 0.5 * rng.normal(size=(n, P))
    s = rng.random(n) + 0.5
    labeled = rng.random(n) < 0.7
    u = np.where(labeled, s * rng.uniform(0.5, 2, size=n), 0.0)
    return FeatureRows(Phi, present, s, u, np.where(labeled[:, None], Y, 0.0))


def sums_of(rows, c, size=11):
    blocks = [FeatureRows(*(part[k : k + size] for part in rows)) for k in range(0, len(rows.u), size)]
    return FeatureSums(FeatureDesign(lambda: iter(blocks), SIZES, rows.Y.shape[1], outer=True), c)


def held(rows, c, groups, folds):
    """Outputs of every pair of penalties, row after row as they are held out."""
    found = [[] for _ in GRID]
    for k, Y, u, outputs in held_rows(sums_of(rows, c), c, GRID, groups, folds):
        assert Y.shape == outputs.shape
        assert len(u) == len(Y)
        found[k].append(np.column_stack([Y, outputs]))
    return [np.concatenate(own) for own in found]


@pytest.mark.parametrize("with_kernel", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_folds", [None, 1, 4, 9])
def test_held_out_outputs_are_those_of_refits(n_folds, missing, with_kernel, monkeypatch):
    rows, c = feature_rows(0, missing), np.array([0.5, 0.3, -0.4])
    R = np.array([[1.0, 0.4], [0.4, 0.7]]) if with_kernel else None
    groups = [(1.0, None)]
    if with_kernel:
        values, vectors = np.linalg.eigh(R)
        groups = [(float(values[k]), vectors[:, [k]]) for k in range(2)]
    labeled = np.flatnonzero(rows.u)
    order = np.random.default_rng(1).permutation(len(labeled))
    folds = None if n_folds is None else np.array_split(order, n_folds)
    total = rows.s[labeled].sum()
    for kept in (held_out_features._KEPT, 0):  # with 0, a pass for each decomposition or fold
        monkeypatch.setattr(held_out_features, "_KEPT", kept)
        found = held(rows, c, groups, folds)
        for penalties, own in zip(GRID, found, strict=True):
            expected = np.empty((len(rows.u), 2))
            for fold in folds or np.arange(len(labeled))[:, None]:
                u = rows.u.copy()
                u[labeled[fold]] = 0.0
                W, G = reference.coregularized_features(rows._replace(u=u), SIZES, c, penalties, total, R)
                expected[labeled[fold]] = (G @ W)[labeled[fold]]
            place = {tuple(y): i for i, y in enumerate(rows.Y)}
            here = [place[tuple(y)] for y in own[:, :2]]
            assert sorted(here) == labeled.tolist()
            np.testing.assert_allclose(own[:, 2:], expected[here], atol=1e-9 * np.abs(rows.Y).max())


def test_fewer_rows_than_features():
    rows, c = feature_rows(3, 0.0, n=9), np.full(3, 1 / 3)
    labeled = np.flatnonzero(rows.u)
    assert len(labeled) < sum(SIZES)
    for penalties, own in zip(GRID, held(rows, c, [(1.0, None)], None), strict=True):
        for k, i in enumerate(labeled):
            u = np.where(np.arange(9) == i, 0.0, rows.u)
            total = rows.s[labeled].sum()
            W, G = reference.coregularized_features(rows._replace(u=u), SIZES, c, penalties, total)
            np.testing.assert_allclose(own[k, 2:], (G @ W)[i], atol=1e-8 * np.abs(own[:, 2:]).max())


CHOOSING = {
    "ridge": cs.CoRegularizedRidgeCV(RBF(0.1), n_components=20, random_state=0),
    "agreement": cs.CoRegularizedRidgeCV(
        RBF(0.1), agreement_penalties=[0, 1e-3, 0.1], n_components=20, view_weights=[0.7, 0.2], random_state=0
    ),
    "folds": cs.CoRegularizedRidgeCV(RBF(0.1), agreement_penalties=[0, 1e-3], n_components=20, cv=4, random_state=0),
    "splitter": cs.CoRegularizedRidgeCV(
        RBF(0.1), n_components=20, cv=ShuffleSplit(3, test_size=0.2, random_state=0), random_state=0
    ),
    "graph": cs.CoRegularizedRidgeCV(
        RBF(0.1), agreement_penalties=[0, 1e-3], graph_penalty=1e-5, n_components=20, random_state=0
    ),
    "output kernel": cs.CoRegularizedRidgeCV(
        RBF(0.1), n_components=0.05, output_kernel=[[1.0, 0.5], [0.5, 1.0]], random_state=0
    ),
    "classes": cs.CoRegularizedRidgeClassifierCV(
        agreement_penalties=[0, 1e-3], n_components=20, class_weight="balanced", random_state=0
    ),
    "classes, folds": cs.CoRegularizedRidgeClassifierCV(n_components=20, cv=3, random_state=0),
    "classes, shuffled folds": cs.CoRegularizedRidgeClassifierCV(
        n_components=20, cv=KFold(5, shuffle=True, random_state=1), random_state=0
    ),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", CHOOSING)
def test_penalties_chosen_from_blocks(samples, name, missing):
    views, y, labels, weights, mask = samples
    model, X = CHOOSING[name], cs.Views(views, mask=mask if missing else None)
    y = labels if is_classifier(model) else y
    whole = clone(model).fit(X, y, weights)
    blocks = cs.RowBlocks.of(X, y, weights, size=67)
    other = clone(model).fit(blocks)
    np.testing.assert_allclose(other.cv_results_["score"], whole.cv_results_["score"], rtol=1e-8)
    assert (other.alpha_, other.agreement_penalty_) == (whole.alpha_, whole.agreement_penalty_)
    assert other.best_score_ == other.cv_results_["score"].max()
    for view, W in whole.coef_.items():
        np.testing.assert_allclose(other.coef_[view], W, atol=1e-8 * np.abs(W).max())
    assert other.solution_.objective == pytest.approx(whole.solution_.objective, rel=1e-10)
    assert other.score(blocks) == pytest.approx(whole.score(X, y, weights))
    # it is the estimator for given penalties
    given = {key: value for key, value in model.get_params(deep=False).items() if key not in ("alphas", "cv")}
    del given["agreement_penalties"]
    kind = cs.CoRegularizedRidgeClassifier if is_classifier(model) else cs.CoRegularizedRidge
    same = kind(alpha=other.alpha_, agreement_penalty=other.agreement_penalty_, **given).fit(X, y, weights)
    if model.agreement_penalties == (0.0,) or other.agreement_penalty_ or model.graph_penalty:
        np.testing.assert_allclose(other._combined(X), same._combined(X), atol=1e-8)


@pytest.mark.parametrize("cv", [None, 5])
def test_all_landmarks_are_exact_kernels(samples, cv):
    views, y, _, weights, mask = samples
    X, y = cs.Views(views, mask=mask)[:80], y[:80]
    model = cs.CoRegularizedRidgeCV(RBF(0.3), alphas=[1e-3, 1e-1], agreement_penalties=[0, 1e-2], cv=cv, random_state=0)
    exact = clone(model).fit(X, y, weights[:80])
    features = clone(model).set_params(n_components=1.0).fit(X, y, weights[:80])
    np.testing.assert_allclose(features.cv_results_["score"], exact.cv_results_["score"], rtol=1e-6)
    np.testing.assert_allclose(features.predict(X), exact.predict(X), atol=1e-6)


@pytest.mark.parametrize("cv", [None, 4])
def test_linear_kernels_are_scikit_learns_ridge(samples, cv):
    """All directions of a linear kernel are those of the columns; alpha is l times ours."""
    views, y, _, _, _ = samples
    known = ~np.isnan(y).any(axis=1)
    A, y, alphas = views["a"][known], y[known, 0], np.array([1e-3, 1e-2, 0.1, 1.0])
    l = len(y)
    model = cs.CoRegularizedRidgeCV("linear", alphas=alphas, n_components=40, cv=cv, random_state=0)
    blocks = cs.RowBlocks.of({"a": A}, y, size=50)
    ours = clone(model).fit(blocks).cv_results_["score"]
    if cv is None:
        peer = RidgeCV(l * alphas, fit_intercept=False, store_cv_results=True).fit(A, y)
        np.testing.assert_allclose(ours, -peer.cv_results_.mean(axis=0), rtol=1e-8)
        return
    for score, alpha in zip(ours, alphas, strict=True):
        errors = []
        for train, test in KFold(cv).split(A):
            W = np.linalg.solve(A[train].T @ A[train] + l * alpha * np.eye(6), A[train].T @ y[train])
            errors.append((A[test] @ W - y[test]) ** 2)
        assert score == pytest.approx(-np.mean(np.concatenate(errors)), rel=1e-8)


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_penalties_chosen_on_devices(samples, library, cv):
    xp = pytest.importorskip(library)
    views, y, _, weights, mask = samples
    model = clone(CHOOSING["agreement"]).set_params(cv=cv)
    there = cs.Views({name: xp.asarray(block) for name, block in views.items()}, mask=mask)
    whole, other = clone(model).fit(cs.Views(views, mask=mask), y, weights), clone(model).fit(there, y, weights)
    np.testing.assert_allclose(other.cv_results_["score"], whole.cv_results_["score"], rtol=1e-8)
    assert all(type(W).__module__.startswith(library) for W in other.coef_.values())


def test_auto_landmarks_of_chosen_penalties(samples, tmp_path):
    views, y, _, _, _ = samples
    model = cs.CoRegularizedRidgeCV(n_components="auto", random_state=0)
    fitted = clone(model).fit(cs.RowBlocks.of(views, y))
    assert fitted.n_components_ is None  # exact kernels, as in memory
    cs.save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(cs.load(tmp_path / "model").predict(views), fitted.predict(views))


@pytest.mark.parametrize("estimator", [cs.ViewMetricRidgeClassifierCV, cs.CoRegularizedSVC, cs.CoRegularizedRidge])
def test_auto_is_the_same_for_blocks_as_in_memory(estimator, samples):
    views, targets, labels, weights, _ = samples
    y = labels if is_classifier(estimator()) else targets
    whole = estimator(n_components="auto", random_state=0).fit(views, y, weights)
    blocks = cs.RowBlocks.of(views, y, weights, size=70)
    for X in (blocks, cs.RowBlocks(lambda: iter(blocks))):  # of known number, and of unknown
        model = estimator(n_components="auto", random_state=0).fit(X)
        assert model.n_components_ == whole.n_components_
        np.testing.assert_array_equal(model.predict(views), whole.predict(views))


def test_what_penalties_from_blocks_cannot_do(samples):
    views, y, _, _, _ = samples
    blocks = cs.RowBlocks.of(views, y, size=100)
    with pytest.raises(ValueError, match="Set `n_components`"):
        cs.CoRegularizedRidgeCV().fit(blocks)
    with pytest.raises(ValueError, match="must train on all labeled samples that it does not test"):
        cs.CoRegularizedRidgeCV(n_components=5, cv=TimeSeriesSplit(3)).fit(blocks)
    with pytest.raises(ValueError, match="graph='knn' needs all samples in memory"):
        cs.CoRegularizedRidgeCV(n_components=5, graph_penalty=1e-3, graph="knn").fit(blocks)
    with pytest.raises(ValueError, match="takes given weights"):
        cs.CoRegularizedRidgeCV(n_components=5, view_weights="learned").fit(blocks)


# -- transformers
TRANSFORMERS = {
    "nystroem": cs.Nystroem(n_components=12, random_state=0),
    "fraction": cs.Nystroem(n_components=0.03, random_state=0),
    "shared": cs.Nystroem(RBF(0.2), n_components=12, shared=True, landmarks="kmeans++", random_state=0),
    "random features": cs.RandomFeatures(n_components=7, random_state=0),
    "random features, fraction": cs.RandomFeatures(n_components=0.05, random_state=0),
    "standard": cs.PerView(StandardScaler()),
    "recipes": cs.PerView({"a": "standardize", "b": ["standardize", MinMaxScaler()]}),
    "passthrough": cs.PerView({"a": MaxAbsScaler()}),
    "stateless": cs.PerView({"a": Normalizer(), "b": "drop"}),
}


def unknown_size(X, y=None, weights=None, size=67):
    """Blocks whose number of samples is not known before they are read."""
    known = cs.RowBlocks.of(X, y, weights, size=size)
    return cs.RowBlocks(lambda: iter(known))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_of_blocks(samples, name, missing):
    views, y, _, weights, mask = samples
    X = cs.Views(views, mask=mask if missing else None)
    if name == "stateless" and missing:
        X = X[X.present("a")]
    y, weights = y[: len(X)], weights[: len(X)]
    whole, blocks = clone(TRANSFORMERS[name]).fit(X), unknown_size(X, y, weights)
    expected, by_blocks = whole.transform(X), clone(TRANSFORMERS[name]).fit(blocks)
    transformed = by_blocks.transform(blocks)
    assert isinstance(transformed, cs.RowBlocks)
    for _ in range(2):  # as many passes as are asked for
        parts = list(transformed)
        found = cs.Views.concat([part.X for part in parts])
        assert found.names == expected.names
        for view in found.names:
            here = expected.present(view)
            assert (found.present(view) == here).all()
            np.testing.assert_allclose(found[view][here], expected[view][here], atol=1e-8)
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), y)
        np.testing.assert_array_equal(np.concatenate([part.sample_weight for part in parts]), weights)
    if hasattr(whole, "landmark_indices_"):
        for view, own in whole.landmark_indices_.items():
            np.testing.assert_array_equal(by_blocks.landmark_indices_[view], own)
    again = clone(TRANSFORMERS[name]).fit_transform(blocks)
    np.testing.assert_array_equal(next(iter(again)).X[found.names[0]], parts[0].X[found.names[0]])


@pytest.mark.parametrize("name", ["nystroem", "fraction", "random features, fraction"])
def test_many_rows_are_sampled_alike(name, monkeypatch):
    monkeypatch.setattr(row_blocks, "SAMPLE", 1000)
    X = {"a": np.random.default_rng(0).normal(size=(5000, 3))}
    model = clone(TRANSFORMERS[name])
    whole = clone(model).fit(X).transform(X)
    found = clone(model).fit(unknown_size(X, size=123)).transform(X)
    assert whole["a"].shape[1] == {"nystroem": 12, "fraction": 150, "random features, fraction": 250}[name]
    np.testing.assert_allclose(found["a"], whole["a"], atol=1e-10)


def test_sparse_views_and_text(samples):
    rng = np.random.default_rng(0)
    A = sp.csr_array(sp.random(60, 5, density=0.5, random_state=rng))
    texts = ["a b c", "c d", "e a a"] * 20
    X = cs.Views(s=A, t=texts)
    model = cs.PerView({"s": "standardize", "t": HashingVectorizer(n_features=8)})
    whole, blocks = clone(model).fit_transform(X), cs.RowBlocks.of(X, size=11)
    found = cs.Views.concat([block.X for block in clone(model).fit_transform(blocks)])
    for view in ("s", "t"):
        np.testing.assert_allclose(found[view].toarray(), whole[view].toarray(), atol=1e-10)


def test_pipelines_of_blocks(samples):
    views, y, labels, _, mask = samples
    X = cs.Views(views, mask=mask)
    pipelines = {
        "scaled": make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidge(n_components=20, random_state=0)),
        "features": make_pipeline(
            cs.PerView("standardize"),
            cs.Nystroem(n_components=15, random_state=0),
            cs.CoRegularizedRidgeClassifierCV("linear", n_components=40, random_state=0),
        ),
    }
    for name, model in pipelines.items():
        target = labels if name == "features" else y
        blocks = cs.RowBlocks.of(X, target, size=67)
        whole, found = clone(model).fit(X, target), clone(model).fit(blocks)
        if name == "scaled":
            np.testing.assert_allclose(found.predict(blocks), whole.predict(X), atol=1e-8)
        else:
            np.testing.assert_allclose(found.decision_function(blocks), whole.decision_function(X), atol=1e-8)
        assert found.score(blocks) == pytest.approx(whole.score(X, target))


def test_views_that_come_late_are_transformed(samples):
    views = samples[0]
    mask = np.ones((400, 2), dtype=bool)
    mask[:200, 1] = False
    X = cs.Views(views, mask=mask)

    def source():
        yield {"a": views["a"][:200]}
        yield {name: block[200:] for name, block in views.items()}

    for model in (cs.PerView(StandardScaler()), cs.Nystroem(n_components=5, random_state=0)):
        whole, found = clone(model).fit_transform(X), clone(model).fit(cs.RowBlocks(source)).transform(X)
        for view in ("a", "b"):
            here = X.present(view)
            np.testing.assert_allclose(found[view][here], whole[view][here], atol=1e-10)


def test_what_transformers_of_blocks_cannot_do(samples):
    views, y, _, _, _ = samples
    blocks = cs.RowBlocks.of(views, y, size=100)
    with pytest.raises(ValueError, match=r"View 'b': PCA\(\) has no partial_fit, so it needs all samples in memory"):
        cs.PerView({"b": PCA()}).fit(blocks)
    with pytest.raises(ValueError, match=r"View 'a': MostVariable.* has no partial_fit"):
        cs.PerView(["standardize", "variance:2"]).fit(blocks)
    with pytest.raises(ValueError, match="RowBlocks have targets in their blocks"):
        cs.PerView("standardize").fit(blocks, y)
    with pytest.raises(ValueError, match="does not know 'c'"):
        list(cs.PerView("standardize").fit(blocks).transform(cs.RowBlocks.of({"c": views["a"]})))


# -- estimators that hold all samples
HOLDING = {
    "margin": cs.MaxMarginClassifier(RBF(0.1)),
    "margin over features": cs.MaxMarginClassifier(RBF(0.1), n_components=20, random_state=0),
    "margin, auto": cs.MaxMarginClassifier(n_components="auto", class_weight="balanced", random_state=0),
    "margin of outputs": cs.MaxMarginRegressor(RBF(0.1), n_components=20, random_state=0),
    "consensus": cs.ConsensusClassifier(),
    "consensus over features": cs.ConsensusClassifier(n_components=20),
    "consensus of targets": cs.ConsensusRegressor(n_components=20),
}


@pytest.mark.parametrize("name", HOLDING)
def test_samples_are_collected(samples, name):
    views, y, labels, weights, mask = samples
    X, model = cs.Views(views, mask=mask)[:150], HOLDING[name]
    y = (labels if is_classifier(model) else y)[:150]
    whole, found = clone(model).fit(X, y, weights[:150]), clone(model).fit(unknown_size(X, y, weights[:150], size=40))
    blocks = cs.RowBlocks.of(X, y, weights[:150], size=23)
    np.testing.assert_array_equal(found.predict(X), whole.predict(X))
    np.testing.assert_allclose(found.score(blocks), whole.score(X, y, weights[:150]))
    expected, by_blocks = whole.predict(X), found.predict(blocks)
    if is_classifier(model):
        assert (by_blocks == expected).all()
    else:
        np.testing.assert_allclose(by_blocks, expected, atol=1e-10)


@pytest.mark.parametrize("name", HOLDING)
def test_samples_that_do_not_fit_are_refused(samples, name, monkeypatch):
    views, y, labels, _, _ = samples
    model = HOLDING[name]
    y = labels if is_classifier(model) else y
    blocks = cs.RowBlocks.of(views, y, size=40)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "50000")
    message = r"which holds all samples in memory, needs about 0\.0916 MiB.* such as CoRegularizedRidge"
    with pytest.raises(MemoryError, match=message):
        clone(model).fit(blocks)
    monkeypatch.delenv("CONSILIENCE_MEMORY")
    with pytest.raises(ValueError, match="Leave `y` and `sample_weight` out"):
        clone(model).fit(blocks, y)
    with pytest.raises(ValueError, match="needs targets, and the samples have none"):
        clone(model).fit(cs.RowBlocks.of(views))
