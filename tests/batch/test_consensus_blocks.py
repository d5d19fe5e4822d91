"""Probabilities, sets and intervals of consensus and fusion from blocks of rows and Dask collections."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.svm import SVC

import consilience as cs

METHODS = ("predict", "predict_proba", "predict_set", "predict_interval", "decision_function")
MODELS = {
    "classes": cs.ConsensusClassifier(),
    "two classes": cs.ConsensusClassifier(),
    "features": cs.ConsensusClassifier(n_components=20),
    "numbers": cs.ConsensusRegressor(),
    "several numbers": cs.ConsensusRegressor(cv=4),
    "early fusion": cs.EarlyFusion(LogisticRegression()),
    "early fusion of pairs": cs.EarlyFusion(SVC(decision_function_shape="ovo")),
    "early fusion of numbers": cs.EarlyFusion(LinearRegression()),
    "late fusion": cs.LateFusion(LogisticRegression()),
    "late fusion of two classes": cs.LateFusion(RidgeClassifier()),
    "late fusion of numbers": cs.LateFusion(LinearRegression()),
}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    n = 150
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.column_stack([np.sin(hidden[:, 0]), hidden[:, 1] ** 2])
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low"))
    mask = rng.random((n, 2)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    return views, y, labels, mask, rng.uniform(0.2, 2, size=n)


def fitted(name, samples, X):
    _, y, labels, _, _ = samples
    if "numbers" not in name:
        y = labels == "low" if "two" in name else labels
    elif "several" not in name:
        y = y[:, 0]
    return clone(MODELS[name]).fit(X[:70], y[:70]), y


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_blocks_of_rows(samples, name, missing):
    views, _, _, mask, weights = samples
    X = cs.Views(views, mask=mask if missing else None)
    model, y = fitted(name, samples, X)
    blocks = cs.RowBlocks.of(X, y, weights, size=40)
    for method in (own for own in METHODS if hasattr(model, own)):
        found, expected = getattr(model, method)(blocks), getattr(model, method)(X)
        assert found.dtype == expected.dtype
        if method in ("predict_set", "predict") and expected.dtype.kind != "f":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, atol=1e-10)
    assert model.score(blocks) == pytest.approx(model.score(X, y, weights))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_dask_collections(samples, name, known):
    da = pytest.importorskip("dask.array")
    views, X = samples[0], cs.Views(samples[0])
    model, y = fitted(name, samples, X)
    lazy = {view: da.from_array(block, chunks=(40, block.shape[1])) for view, block in views.items()}
    if not known:
        lazy = {view: block[da.from_array(np.ones(150, dtype=bool), chunks=40)] for view, block in lazy.items()}
    for method in (own for own in METHODS if hasattr(model, own)):
        found, expected = getattr(model, method)(lazy), getattr(model, method)(X)
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert found.shape[1:] == expected.shape[1:]
        assert found.shape[0] == 150 or not known
        found = found.compute()
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, atol=1e-10)
        else:
            np.testing.assert_array_equal(found, expected)
    if known:
        assert model.score(lazy, da.from_array(y, chunks=(40, *y.shape[1:]))) == pytest.approx(model.score(X, y))


def test_nothing_is_computed_before_it_is_asked_for(samples):
    da = pytest.importorskip("dask.array")
    model, _ = fitted("classes", samples, cs.Views(samples[0]))
    touched = []

    def watched(block):
        touched.append(len(block))
        return block

    lazy = {
        view: da.from_array(block, chunks=(50, block.shape[1])).map_blocks(watched, dtype=float, meta=np.empty((0, 0)))
        for view, block in samples[0].items()
    }
    sets, probabilities = model.predict_set(lazy, coverage=0.8), model.predict_proba(lazy)
    assert not touched
    np.testing.assert_array_equal(sets.compute(), model.predict_set(samples[0], coverage=0.8))
    np.testing.assert_allclose(probabilities.compute(), model.predict_proba(samples[0]), atol=1e-10)
    assert touched
    with pytest.raises(ValueError, match="`coverage` must be strictly between 0 and 1; got 1"):
        model.predict_set(lazy, coverage=1)


def test_blocks_without_samples_and_models_without_fit(samples):
    model, _ = fitted("numbers", samples, cs.Views(samples[0]))
    empty = cs.RowBlocks(lambda: iter(()))
    for predict in (
        model.predict,
        model.predict_interval,
        fitted("late fusion", samples, cs.Views(samples[0]))[0].predict,
    ):
        with pytest.raises(ValueError, match="no samples"):
            predict(empty)
    blocks = cs.RowBlocks.of(samples[0], size=40)
    for unfitted in (cs.ConsensusClassifier(), cs.EarlyFusion(LogisticRegression())):
        with pytest.raises(Exception, match="not fitted"):
            unfitted.predict_proba(blocks)


def test_targets_of_fusion_that_look_like_unlabeled(samples):
    """`unlabeled` marks classes; numbers of a regression that equal it are targets."""
    y = samples[1][:, 0].round()
    model = cs.EarlyFusion(LinearRegression(), unlabeled=-1).fit(samples[0], y)
    assert (y == -1).any()
    same = cs.EarlyFusion(LinearRegression()).fit(samples[0], y).score(samples[0], y)
    assert model.score(samples[0], y) == pytest.approx(same)
    assert model.score(cs.RowBlocks.of(samples[0], y, size=40)) == pytest.approx(same)
