"""The same samples by all routes, memory, blocks, memory maps, files and devices: the same fit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import consilience as cs
from consilience.solvers import moments
from consilience.views import row_blocks

FAMILIES = {
    "ridge": cs.CoRegularizedRidge(n_components=30, random_state=0),
    "agreement": cs.CoRegularizedRidge(n_components=30, agreement_penalty=1e-3, random_state=0),
    "graph": cs.CoRegularizedRidge(n_components=30, graph_penalty=1e-6, random_state=0),
    "learned weights": cs.CoRegularizedRidge(n_components=30, view_weights="learned", random_state=0),
    "output kernel": cs.CoRegularizedRidge(n_components=0.05, output_kernel=[[1.0, 0.5], [0.5, 1.0]], random_state=0),
    "classes": cs.CoRegularizedRidgeClassifier(
        n_components=30, agreement_penalty=1e-3, class_weight="balanced", random_state=0
    ),
    "metric": cs.ViewMetricRidge(n_components=30, random_state=0),
    "kernel weights": cs.MultipleKernelRidge(n_components=30, random_state=0),
    "linear kernel": cs.CoRegularizedRidgeClassifier("linear", n_components=10, random_state=0),
}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    n = 700
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.column_stack([np.sin(hidden[:, 0]), hidden[:, 1] ** 2])
    y[rng.random(n) < 0.3] = np.nan
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low")).astype(object)
    labels[rng.random(n) < 0.3] = None
    mask = rng.random((n, 2)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    return views, y, labels, rng.uniform(0.2, 2, size=n), mask


def targets(model, samples):
    _, y, labels, _, _ = samples
    if is_classifier(model):
        return labels
    return y if "output_kernel" in model.get_params() and model.output_kernel is not None else y[:, 0]


def assert_same_fit(one, other, tol=1e-8):
    assert set(one.coef_) == set(other.coef_)
    for name, W in one.coef_.items():
        np.testing.assert_allclose(np.asarray(other.coef_[name]), W, atol=tol * np.abs(W).max())
    np.testing.assert_allclose(other.view_weights_, one.view_weights_, atol=tol)
    assert other.solution_.status == one.solution_.status
    np.testing.assert_allclose(other.solution_.objective, one.solution_.objective, rtol=tol)


def assert_same_predictions(one, other, X, Z):
    expected, found = one.predict(X), other.predict(Z)
    if is_classifier(one):
        assert (found == expected).all()
    else:
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_any_size_are_the_samples_in_memory(samples, family, missing):
    views, _, _, weights, mask = samples
    model, X = FAMILIES[family], cs.Views(views, mask=mask if missing else None)
    y = targets(model, samples)
    whole = clone(model).fit(X, y, weights)
    for size in (97, 700):
        blocks = cs.RowBlocks.of(X, y, weights, size=size)
        by_blocks = clone(model).fit(blocks)
        assert_same_fit(whole, by_blocks)
        assert_same_predictions(whole, by_blocks, X, blocks)
        assert by_blocks.score(blocks) == pytest.approx(whole.score(X, y, weights))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("family", FAMILIES)
def test_arrays_of_other_libraries(samples, family, library, missing):
    xp = pytest.importorskip(library)
    views, _, _, weights, mask = samples
    model, mask = FAMILIES[family], mask if missing else None
    X, y = cs.Views(views, mask=mask), targets(model, samples)
    there = cs.Views({name: xp.asarray(block) for name, block in views.items()}, mask=mask)
    whole, on_device = clone(model).fit(X, y, weights), clone(model).fit(there, y, weights)
    assert all(type(W).__module__.startswith(library) for W in on_device.coef_.values())
    assert_same_fit(whole, on_device)
    assert_same_predictions(whole, on_device, X, there)
    assert on_device.score(there, y) == pytest.approx(whole.score(X, y))


@pytest.mark.parametrize("family", ["agreement", "classes"])
def test_memory_maps_sparse_matrices_and_functions(samples, family, tmp_path):
    views, _, _, _, _ = samples
    model = FAMILIES[family]
    y = targets(model, samples)
    whole = clone(model).fit(views, y)
    maps = {}
    for name, block in views.items():
        maps[name] = np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", block.dtype, block.shape)
        maps[name][...] = block

    def cut():
        for start in range(0, 700, 130):
            yield {name: block[start : start + 130] for name, block in views.items()}, y[start : start + 130]

    assert_same_fit(whole, clone(model).fit(maps, y))
    assert_same_fit(whole, clone(model).fit(cs.RowBlocks.of(maps, y, size=200)))
    assert_same_fit(whole, clone(model).fit(cs.RowBlocks(cut)))
    sparse = {name: sp.csr_array(block) for name, block in views.items()}
    assert_same_fit(whole, clone(model).fit(cs.RowBlocks.of(sparse, y, size=200)))


@pytest.mark.parametrize("family", ["agreement", "classes"])
def test_parquet(samples, family, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    views, _, _, _, _ = samples
    model = FAMILIES[family]
    y = targets(model, samples)
    table = pd.DataFrame({f"{name}__{k}": block[:, k] for name, block in views.items() for k in range(block.shape[1])})
    table["target"] = y
    table.iloc[:300].to_parquet(tmp_path / "part0.parquet", row_group_size=110)
    table.iloc[300:].to_parquet(tmp_path / "part1.parquet", row_group_size=110)
    by_blocks = clone(model).fit(cs.read_blocks(tmp_path, target="target"))
    assert_same_fit(clone(model).fit(views, y), by_blocks)


def test_many_rows_are_sampled_alike(samples, monkeypatch):
    monkeypatch.setattr(row_blocks, "SAMPLE", 1000)
    rng = np.random.default_rng(1)
    X = cs.Views(a=rng.normal(size=(5000, 3)), b=rng.normal(size=(5000, 2)))
    y = X["a"][:, 0] + X["b"][:, 1]
    model = cs.CoRegularizedRidge(n_components=40, random_state=3)
    whole = clone(model).fit(X, y)
    assert_same_fit(whole, clone(model).fit(cs.RowBlocks.of(X, y, size=123)))
    for own in whole._features.landmark_indices_.values():
        assert own.max() > 1000  # from all rows, not from the first ones


def test_row_order_does_not_matter_where_landmarks_are_given(samples):
    views, y, _, weights, mask = samples
    X, order = cs.Views(views, mask=mask), np.random.default_rng(0).permutation(700)
    model = cs.CoRegularizedRidge("linear", n_components=10, agreement_penalty=1e-3, random_state=0)
    one = clone(model).fit(X, y[:, 0], weights)
    other = clone(model).fit(cs.RowBlocks.of(X[order], y[order, 0], weights[order], size=61))
    # all landmarks of a linear kernel span the same functions
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=1e-7)


def test_what_blocks_cannot_do_is_refused(samples):
    views, y, _, _, _ = samples
    blocks = cs.RowBlocks.of(views, y[:, 0], size=100)
    with pytest.raises(ValueError, match="Set `n_components`"):
        cs.CoRegularizedRidge().fit(blocks)
    with pytest.raises(ValueError, match="Leave `y` and `sample_weight` out"):
        cs.CoRegularizedRidge(n_components=5).fit(blocks, y[:, 0])
    with pytest.raises(ValueError, match="needs targets, and the samples have none"):
        cs.CoRegularizedRidge(n_components=5).fit(cs.RowBlocks.of(views))
    with pytest.raises(ValueError, match="graph='knn' needs all samples in memory"):
        cs.CoRegularizedRidge(n_components=5, graph_penalty=1e-3, graph="knn").fit(blocks)
    with pytest.raises(ValueError, match="No labeled sample"):
        cs.CoRegularizedRidge(n_components=5).fit(cs.RowBlocks.of(views, np.full(700, np.nan), size=100))
    for model in (cs.VectorValuedRegressor(), cs.OnlinePerceptron()):
        with pytest.raises(TypeError, match=r"takes samples in memory; got RowBlocks of the samples: 700 samples"):
            model.fit(blocks, None)
    with pytest.raises(TypeError, match="Samples in memory are needed here; got RowBlocks of the samples: 700"):
        cs.as_views(blocks)
    fitted = cs.CoRegularizedRidge(n_components=5).fit(blocks)
    with pytest.raises(ValueError, match="y is None"):
        fitted.fit(views)


def test_a_class_that_comes_late_is_a_class(samples):
    views, _, _, _, _ = samples
    labels = np.repeat(["x", "y", "z"], [600, 60, 40])
    model = cs.CoRegularizedRidgeClassifier(n_components=20, random_state=0)
    by_blocks = clone(model).fit(cs.RowBlocks.of(views, labels, size=50))
    assert by_blocks.classes_.tolist() == ["x", "y", "z"]
    assert_same_fit(clone(model).fit(views, labels), by_blocks)


def test_a_view_that_comes_late_is_a_view(samples):
    views, y, _, _, _ = samples
    mask = np.ones((700, 2), dtype=bool)
    mask[:350, 1] = False
    X, target = cs.Views(views, mask=mask), y[:, 0]
    model = cs.CoRegularizedRidge(n_components=20, random_state=0)
    assert_same_fit(clone(model).fit(X, target), clone(model).fit(cs.RowBlocks.of(X, target, size=100)))


@pytest.mark.parametrize("family", ["agreement", "learned weights", "classes"])
def test_sums_are_computed_again_where_too_many_views_are_missing_together(samples, family, monkeypatch):
    views, _, _, weights, mask = samples
    model, X = FAMILIES[family], cs.Views(views, mask=mask)
    y = targets(model, samples)
    whole = clone(model).fit(X, y, weights)
    monkeypatch.setattr(moments, "PATTERN_BYTES", 0)
    again = clone(model).fit(X, y, weights)
    assert_same_fit(whole, again, tol=1e-6 if family == "learned weights" else 1e-8)  # the search stops elsewhere


def test_blocks_without_any_target_or_weight_are_blocks(samples):
    views, y, _, weights, _ = samples
    target, weights = y[:, 0].copy(), weights.copy()
    target[100:200], weights[200:300] = np.nan, 0.0
    model = cs.CoRegularizedRidge(n_components=20, agreement_penalty=1e-3, random_state=0)
    blocks = cs.RowBlocks.of(views, target, weights, size=100)
    assert_same_fit(clone(model).fit(views, target, weights), clone(model).fit(blocks))


def test_a_fraction_of_samples_that_are_not_counted_yet(samples):
    views, y, _, _, _ = samples
    source = cs.RowBlocks(lambda: iter(cs.RowBlocks.of(views, y[:, 0], size=100)))
    model = cs.CoRegularizedRidge(n_components=0.1, random_state=0)
    assert_same_fit(clone(model).fit(views, y[:, 0]), clone(model).fit(source))


def test_scores_need_targets(samples):
    views, y, _, _, _ = samples
    model = cs.CoRegularizedRidge(n_components=5).fit(views, y[:, 0])
    for X in (views, cs.RowBlocks.of(views)):
        with pytest.raises(ValueError, match="A score needs targets, and y is None"):
            model.score(X)


@pytest.mark.parametrize("model", [cs.CoRegularizedSVC(n_components=5), cs.MaxMarginClassifier(n_components=5)])
def test_compiled_loops_refuse_device_arrays(samples, model):
    xp = pytest.importorskip("array_api_strict")
    views, _, labels, _, _ = samples
    with pytest.raises(TypeError, match=r"works on the CPU with NumPy arrays; got arrays of array_api_strict"):
        model.fit({name: xp.asarray(block) for name, block in views.items()}, labels)


def test_errors_name_the_block_of_their_row(samples):
    views, y, _, _, _ = samples
    broken = {name: block.copy() for name, block in views.items()}
    name = next(iter(broken))
    broken[name][205, 0] = np.nan
    model = cs.CoRegularizedRidge(n_components=5, random_state=0)
    with pytest.raises(ValueError, match=rf"^Block 2 of the samples: View '{name}' contains NaN in row 5, column 0"):
        clone(model).fit(cs.RowBlocks.of(broken, y[:, 0], size=100))
    target = y[:, 0].copy()
    target[301] = np.inf
    with pytest.raises(ValueError, match=r"^Block 3 of the samples: Input y contains infinity"):
        clone(model).fit(cs.RowBlocks.of(views, target, size=100))
    fitted = model.fit(cs.RowBlocks.of(views, y[:, 0], size=100))
    with pytest.raises(ValueError, match=r"^Block 2 of the samples: View .* contains NaN in row 5"):
        fitted.predict(cs.RowBlocks.of(broken, size=100))
