"""A consensus without training samples: nearly the same predictions, the same weights, no sample in the file."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from test_sharing import HIDDEN, LESS, NEW, PARTIAL, TARGETS, THREE, TWO, N, X, rows_found

import consilience as cs
from consilience import ConsensusClassifier, ConsensusRegressor, Views, load, save, shareable
from consilience.batch._consensus_fit import pattern_key
from consilience.batch._stack import expert
from consilience.datasets import load_breast_cancer_views, load_digits_views
from consilience.io import stored_samples
from consilience.io._averages import fit_functions, round_limits
from consilience.io._shared_consensus import _averages
from consilience.io._states import BadState, check_state
from consilience.kernels import RBF, Linear, Polynomial, Precomputed, Spectrum, center, normalize, standardize

MARGIN = 0.02  # of the accuracy on held-out samples


def quiet_save(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return save(model, path, share=True)


# -- nearly the same
@pytest.mark.parametrize("loader", [load_breast_cancer_views, load_digits_views])
def test_accuracy_stays_within_the_margin(loader, tmp_path):
    data, y = loader(return_X_y=True)
    train, test, y_train, y_test = train_test_split(data[:1000], y[:1000], random_state=0)
    model = ConsensusClassifier().fit(train, y_train)
    with pytest.warns(UserWarning, match="averages of at least 5 samples"):
        shared = save(model, tmp_path / "m", share=True, X=test, y=y_test)
    assert abs(shared.after - shared.before) <= MARGIN
    assert 0 <= shared.change <= MARGIN
    assert set(shared.averages.values()) == {len(train) // 5}
    assert rows_found(tmp_path / "m", train) == 0
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(test), shared.model.predict_proba(test))
    assert stored_samples(again) == {}
    assert stored_samples(model), "the original is not changed"


@pytest.mark.parametrize("data", [X, PARTIAL], ids=["complete", "missing views"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (ConsensusRegressor(), TARGETS),
        (ConsensusRegressor(shared_weights=False), np.column_stack([TARGETS, HIDDEN])),
        (ConsensusRegressor(n_components=120), TARGETS),
        (ConsensusRegressor(RBF(0.02), cv=5), TARGETS),
        (ConsensusClassifier(), TWO),
        (ConsensusClassifier(class_weight="balanced"), THREE),
    ],
    ids=["one", "several outputs", "landmarks", "folds", "two classes", "three classes"],
)
def test_predictions_with_and_without_views(estimator, y, data, tmp_path):
    weights = np.random.default_rng(4).uniform(0.5, 2.0, size=N)
    model = clone(estimator).fit(data, y, weights)
    shared = shareable(model)
    assert 0 <= shared.change < 0.1
    for new in (NEW, LESS, NEW[["b"]]):
        method, scale = (
            ("predict_proba", 1.0) if hasattr(model, "classes_") else ("predict", np.std(model.predict(new)))
        )
        old, after = (getattr(each, method)(new) for each in (model, shared.model))
        assert np.sqrt(np.mean((after - old) ** 2)) < 0.15 * scale
        both = [each.view_decision_function(new) for each in (model, shared.model)]
        assert np.array_equal(*map(np.isnan, both))
    quiet_save(model, tmp_path / "m")
    assert rows_found(tmp_path / "m", data) == 0
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(LESS), shared.model.predict(LESS))
    assert again.certificate().status == "shared"
    assert not {"X_fit_", "loo_predictions_", "loo_probabilities_"} & set(vars(again))
    assert again.loo_score_ == model.loo_score_
    assert again.view_importances_ == model.view_importances_
    np.testing.assert_array_equal(again.view_weights_, model.view_weights_)
    pd = pytest.importorskip("pandas")
    pd.testing.assert_frame_equal(again.kernel_weights_, model.kernel_weights_)


def test_unlabeled_samples_and_single_missing_values():
    blocks = {name: X[name].copy() for name in X.names}
    blocks["a"][::7, 1] = np.nan
    y = np.where(np.arange(N) % 2, THREE.astype(float), np.nan)
    model = ConsensusClassifier().fit(Views(blocks), y)
    shared = shareable(model)
    assert shared.replaced["a"] > 100, "unlabeled samples are kept for the graph"
    assert shared.change < 0.1
    gap = {name: NEW[name].copy() for name in NEW.names}
    gap["a"][0, 0] = np.nan
    assert np.mean(shared.model.predict(gap) == model.predict(gap)) >= 0.9


# -- weights of patterns
def test_every_pattern_of_views_has_the_weights_of_the_original():
    data, y = load_digits_views(return_X_y=True)
    mask = np.random.default_rng(0).random((800, 4)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    model = ConsensusClassifier().fit(Views({name: data[:800][name] for name in data.names}, mask=mask), y[:800])
    shared = shareable(model).model
    assert len(shared._experts) == 14
    for key, own in shared._experts.items():
        before = expert(model._stack, np.array([c == "1" for c in key]))
        np.testing.assert_array_equal(own.weights, before.weights)
        assert own.link[0] == before.link[0]
        np.testing.assert_array_equal(own.link[1], before.link[1])
    assert not len(shared._stack.T)
    new, truth = data[800:1200], y[800:1200]
    for views in (["fourier"], ["pixels", "gradients"], ["profiles", "gradients", "fourier"]):
        assert model.score(new[views], truth) - shared.score(new[views], truth) < 0.05, views


def test_of_many_views_only_known_patterns_are_kept():
    rng = np.random.default_rng(0)
    blocks = {f"v{k}": TARGETS[:, None] + rng.normal(size=(N, 2)) for k in range(9)}
    mask = np.ones((N, 9), dtype=bool)
    mask[:60, 2:] = False
    model = ConsensusRegressor("linear").fit(Views(blocks, mask=mask), TARGETS)
    shared = shareable(model).model
    assert set(shared._experts) == {"110000000", *(pattern_key(row) for row in np.eye(9))}
    for views in (list(blocks), ["v0", "v1"], ["v8"]):
        new = Views(blocks)[views]
        before, after = model.predict(new), shared.predict(new)
        assert np.sqrt(np.mean((after - before) ** 2)) < 0.2 * np.std(before)
    with pytest.raises(ValueError, match=r"no weights for samples that have only the views 'v0', 'v2'\. Give all"):
        shared.predict(Views(blocks)[["v0", "v2"]])


# -- exact
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), 0.3 * Linear(), standardize(Linear()), normalize(Linear()), normalize(Linear().on([0, 1, 2]))],
    ids=repr,
)
def test_linear_kernels_are_exact(kernel, form, tmp_path):
    rng = np.random.default_rng(1)
    block = np.abs(rng.normal(size=(N, 4))) * (rng.random((N, 4)) > 0.3)
    block[:, 0] += 0.1  # no row of zeros
    y = np.column_stack([block @ [1.0, -2.0, 0.5, 3.0], TARGETS])
    block[150:] = np.minimum(block[150:], block[:150].max(axis=0))  # within the range of the training samples
    data, new = Views(a=form(block[:150])), Views(a=form(block[150:]))
    model = ConsensusRegressor(kernel).fit(data, y[:150])
    assert model._whole.weights.any()
    shared = shareable(model)
    assert shared.exact
    assert "coefficients over columns" in str(shared)
    scale = np.abs(model.predict(new)).max()
    np.testing.assert_allclose(shared.model.predict(new), model.predict(new), atol=1e-9 * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(model, tmp_path / "m", share=True)
    assert rows_found(tmp_path / "m", data) == 0


def test_linear_and_other_kernels_together():
    data = Views(a=X["a"], b=sp.csr_array(np.abs(X["b"]) * (np.abs(X["b"]) > 0.5)))
    model = ConsensusRegressor().fit(data, TARGETS)
    shared = shareable(model)
    assert shared.change < 0.1
    assert sp.issparse(shared.model._averages.block("b"))
    assert shared.averages["a"] == N // 5


def test_least_squares_at_the_samples_is_that_of_a_naive_twin():
    z, kernel = X["b"][:150].reshape(30, 5, 2).mean(axis=1), RBF(0.5)
    outputs = np.column_stack([TARGETS, np.sin(TARGETS)])
    B = fit_functions(kernel(z), kernel(z, X["b"]), outputs)
    K, inner = kernel(X["b"], z), kernel(z)
    norm = 1e-8 * np.trace(K.T @ K) / np.trace(inner) * inner
    norm += 1e-12 * np.diag(K.T @ K + norm).mean() * np.eye(30)
    both = np.vstack([K, np.linalg.cholesky(norm).T])  # least squares with rows for the norm
    naive = np.linalg.lstsq(both, np.vstack([outputs, np.zeros((30, 2))]), rcond=None)[0]
    np.testing.assert_allclose(kernel(NEW["b"], z) @ B, kernel(NEW["b"], z) @ naive, atol=1e-3)
    exact = kernel(X["b"], z) @ np.ones((30, 1))
    again = fit_functions(kernel(z), kernel(z, X["b"]), exact)
    np.testing.assert_allclose(kernel(NEW["b"], z) @ again, kernel(NEW["b"], z) @ np.ones((30, 1)), atol=1e-3)


# -- averages
def test_no_sample_is_in_two_averages_of_a_view():
    n, rng = 60, np.random.default_rng(3)
    mask = rng.random((n, 3)) > 0.3
    mask[~mask.any(axis=1)] = True
    data = Views({name: np.eye(n) for name in "abc"}, mask=mask)  # the columns of an average are its samples
    needed = [("a", "b", "c"), ("a", "b"), ("a", "c"), ("a",), ("b",), ("c",)]
    for sets in (needed, needed[1:], [("a", "b"), ("c",)], [("b", "c"), ("a", "b")]):
        parts = _averages(data, sets, 5)
        assert {tuple(part) for part in parts} >= {sets[0]} - {("a", "b")}
        for v, name in enumerate("abc"):
            own = [part[name] for part in parts if name in part]
            members = np.vstack(own) > 0 if own else np.zeros((0, n), dtype=bool)
            assert members.sum(axis=0).max(initial=0) <= 1
            assert (members.sum(axis=1) >= 5).all()
            assert not members[:, ~mask[:, v]].any()
        for part in parts:  # the same samples in all views
            first = next(iter(part.values())) > 0
            assert all(np.array_equal(own > 0, first) for own in part.values())


def test_views_of_categories_are_averaged_with_others():
    categories = np.eye(3)[np.arange(N) % 3]  # many equal rows, whose mean is a row
    model = ConsensusClassifier().fit(Views(a=X["a"], kind=categories), TWO)
    shared = shareable(model)
    assert shared.change < 0.1
    means = shared.model._averages["kind"][shared.model._averages.present("kind")]
    assert (np.abs(means[:, None] - np.eye(3)[None]).max(axis=2) > 1e-6).all()


def test_limits_of_columns_are_whole_standard_deviations():
    kernel = standardize(RBF(0.5))._resolved(np.column_stack([X["a"], np.ones(N)]))
    before = kernel.limits.copy()
    inside = np.column_stack([X["a"], np.ones(N)])
    values = kernel(inside)
    round_limits(kernel)
    assert (kernel.limits[0] <= before[0]).all()
    assert (kernel.limits[1] >= before[1]).all()
    steps = (kernel.limits[:, :4] - kernel.shift[:4]) / kernel.scale[:4]
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    np.testing.assert_array_equal(kernel(inside), values)
    shared = shareable(ConsensusRegressor().fit(X, TARGETS)).model
    assert all(np.abs(shared._models[0].kernels[0].limits - end).min() > 1e-9 for end in (X["a"].min(0), X["a"].max(0)))


# -- refused
GRAM = Views(g=X["a"] @ X["a"].T, b=X["b"], precomputed="g")
WORDS = Views(words=["abc", "bcd", "cda", "dab"] * 50, b=X["b"])


def of_three_samples():
    model = ConsensusRegressor().fit(X, TARGETS)
    k = int(model._whole.weights.sum(axis=1).argmax())
    few = model._models[k].coefficients * (np.arange(N) < 3)[:, None]
    model._models[k] = replace(model._models[k], coefficients=few)
    return model


REFUSED = {
    "strings": (lambda: ConsensusClassifier().fit(WORDS, TWO), "view 'words' holds strings"),
    "kernel of strings": (lambda: ConsensusClassifier({"words": Spectrum(2)}).fit(WORDS, TWO), "holds strings"),
    "a Gram matrix": (lambda: ConsensusRegressor({"g": Precomputed()}).fit(GRAM, TARGETS), "'g' (holds|is) a Gram mat"),
    "Gram matrices alone": (
        lambda: ConsensusRegressor("precomputed").fit(GRAM[["g"]], TARGETS),
        "'g' (holds|is) a Gram matrix",
    ),
    "a center": (lambda: ConsensusRegressor(center(RBF(0.1))).fit(X, TARGETS), "keeps the training samples as its cen"),
    "few samples": (lambda: ConsensusRegressor().fit(X[:4], TARGETS[:4]), "view 'a' holds 4 training samples"),
    "few samples of a view": (
        lambda: ConsensusRegressor().fit(Views(a=X["a"], b=[*X["b"][:3], *[None] * (N - 3)]), TARGETS),
        "view 'b' holds 3 training samples",
    ),
    "a function of few samples": (lambda: of_three_samples(), "of the views? .* is made of 3 training samples"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_refused(name, tmp_path):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=rf"^Not shared: .*{message}"):
        quiet_save(make(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_intervals_and_sets_need_the_training_samples():
    shared = shareable(ConsensusClassifier().fit(X, TWO)).model
    with pytest.raises(ValueError, match=r"ConsensusClassifier was shared without .* sets need their held-out"):
        shared.predict_set(NEW)
    shared = shareable(ConsensusRegressor().fit(X, TARGETS)).model
    with pytest.raises(ValueError, match=r"Use the original model"):
        shared.predict_interval(NEW)


def test_a_shared_consensus_is_shared_again_and_fitted_again():
    model = shareable(ConsensusClassifier().fit(X, TWO)).model
    twice = shareable(model)
    assert twice.replaced == {}
    np.testing.assert_array_equal(twice.model.predict_proba(NEW), model.predict_proba(NEW))
    model.fit(X, TWO)
    assert model.certificate().status == "exact"
    assert model.predict_set(NEW).shape == (30, 2)
    assert stored_samples(model) == {"a": N, "b": N}
    check_state(model)


def test_models_around_a_consensus():
    late = cs.LateFusion({"a": ConsensusClassifier(), "b": LogisticRegression()}).fit(X, TWO)
    shared = shareable(late, X, TWO)
    assert stored_samples(shared.model) == {}
    assert abs(shared.after - shared.before) <= 0.05


# -- model files
def forged(model):
    """Yield changes of a shared model that no file may have."""
    yield "samples", lambda: setattr(model, "X_fit_", X)
    yield "pattern", lambda: model._experts.update({"2x": model._whole})
    yield "pattern of views", lambda: model._experts.update({"10": model._whole})
    yield "weights", lambda: model._experts.update({"10": replace(model._whole, weights=model._whole.weights[:-1])})
    yield "probabilities", lambda: model._experts.update({"10": replace(model._whole, link=(1.0, np.zeros(9)))})
    yield "weights by pattern", lambda: delattr(model, "_experts")
    yield "keeps of its samples", lambda: setattr(model, "_averages", None)
    outside = [replace(own, rows=own.rows + 10_000) for own in model._models]
    yield "rows of a base model", lambda: setattr(model, "_models", outside)
    emptied = [replace(own, rows=own.rows[:0], coefficients=own.coefficients[:0]) for own in model._models]
    yield "rows of a base model", lambda: setattr(model, "_models", emptied)


@pytest.mark.parametrize("k", range(9))
def test_forged_states_are_refused(k):
    model = shareable(ConsensusClassifier([RBF(0.1), Polynomial()]).fit(X, THREE)).model
    check_state(model)
    what, change = list(forged(model))[k]
    change()
    with pytest.raises(BadState, match=what):
        check_state(model)


def test_texts_name_one_view_or_several():
    from consilience.io._shared_consensus import _views_text

    assert _views_text(["a"]) == "the view 'a'"
    assert _views_text(["a", "b"]) == "the views 'a', 'b'"


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_similar_samples_have_their_sizes_also_after_halving(sparse, monkeypatch):
    import scipy.sparse as sp

    from consilience.io import _averages

    monkeypatch.setattr(_averages, "_PIECE", 8)
    points = np.random.default_rng(0).normal(size=(57, 2)) + 5
    for size in (1, 2, 5):
        labels = _averages.similar_groups(sp.csr_array(points) if sparse else points, size)
        counts = np.bincount(labels)
        assert size <= counts.min()
        assert counts.max() <= 2 * size - 1
    # far groups stay apart
    points = np.repeat(np.array([[0.0, 0], [100, 0], [0, 100], [100, 100]]), 5, axis=0)
    labels = _averages.similar_groups(sp.csr_array(points) if sparse else points, 5)
    assert sorted(map(tuple, np.unique(labels.reshape(4, 5), axis=1).tolist())) == [(0,), (1,), (2,), (3,)]


def test_similar_samples_of_sparse_views_are_averaged():
    kinds = np.arange(40) % 2  # neighbors among the samples differ
    block = np.zeros((40, 4))
    block[np.arange(40), 2 * kinds] = 1 + 0.1 * np.random.default_rng(0).random(40)
    (part,) = _averages(Views(s=sp.csr_array(block)), [("s",)], 5)
    assert len(part["s"].toarray()) >= 4
    assert (np.count_nonzero(part["s"].toarray(), axis=1) == 1).all()  # no average of both kinds
    # the unit of a view does not change which samples are similar
    dense = np.random.default_rng(1).normal(size=(40, 2))
    small, large = (_averages(Views(s=sp.csr_array(c * block), d=dense), [("s", "d")], 5)[0] for c in (1e-3, 1e3))
    np.testing.assert_allclose(small["d"], large["d"])
