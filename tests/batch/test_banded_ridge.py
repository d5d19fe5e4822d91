"""Banded ridge for many outputs against scikit-learn and refits; targets, views and folds of all kinds."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

import consilience as cs
import reference
from consilience import BandedRidgeCV, Views, _progress
from consilience.kernels import RBF


def data(n=60, P=4, seed=0, widths=(3, 5)):
    rng = np.random.default_rng(seed)
    X = {name: rng.normal(size=(n, width)) + 1 for name, width in zip("ab", widths, strict=True)}
    Y = X["a"] @ rng.normal(size=(widths[0], P)) * (np.arange(P) % 2) + X["b"] @ rng.normal(size=(widths[1], P))
    return Views(X), Y + rng.normal(size=(n, P)) + 3


def standard(K):
    K = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    return K / np.trace(K) * len(K)


@pytest.mark.parametrize("cv", [None, 5])
def test_one_linear_view_is_scikit_learns_ridge_with_a_penalty_per_target(cv):
    X, Y = data()
    A, alphas = X["a"], np.array([0.1, 1.0, 10.0, 100.0])
    scale = np.trace((A - A.mean(axis=0)).T @ (A - A.mean(axis=0))) / len(A)
    model = BandedRidgeCV(alphas=alphas, cv=cv).fit(A, Y)
    if cv is None:
        peer = RidgeCV(alphas=alphas * scale, alpha_per_target=True).fit(A, Y)
        np.testing.assert_allclose(model.alpha_ * scale, peer.alpha_)
        np.testing.assert_allclose(model.predict(A), peer.predict(A), atol=1e-8)
        np.testing.assert_allclose(model.coef_["view0"] * model.view_weights_, peer.coef_.T, atol=1e-8)
    else:
        for p in range(Y.shape[1]):
            peer = RidgeCV(alphas=alphas * scale, cv=KFold(5), scoring="neg_mean_squared_error").fit(A, Y[:, p])
            assert model.alpha_[p] * scale == pytest.approx(peer.alpha_)


@pytest.mark.parametrize("kernel", ["linear", RBF(0.1)])
def test_the_choice_and_the_predictions_are_those_of_refits(kernel):
    X, Y = data(n=25)
    Y[3, 1] = np.nan
    model = BandedRidgeCV(kernel, n_iter=6, alphas=[0.01, 1.0, 100.0], random_state=0).fit(X, Y)
    grams = [standard(cs.kernels.view_grams({name: model.kernels_[name]}, X)[0]) for name in "ab"]
    for p, y in enumerate(Y.T):
        errors = reference.banded_errors(grams, y, np.ones(25), model.draws_, [0.01, 1.0, 100.0])
        d, k = np.unravel_index(errors.argmin(), errors.shape)
        assert model.alpha_[p] == [0.01, 1.0, 100.0][k]
        np.testing.assert_array_equal(model.view_weights_[:, p], model.draws_[d])
        known = np.flatnonzero(~np.isnan(y))
        expected = reference.banded_ridge(grams, y, np.ones(25), known, (model.draws_[d], model.alpha_[p]))
        np.testing.assert_allclose(model.predict(X)[:, p], expected, atol=1e-8)


def test_groups_are_held_out_together():
    X, Y = data()
    runs = np.repeat(["r1", "r2", "r3", "r4"], 15)
    one_out = BandedRidgeCV(random_state=0).fit(X, Y, groups=runs)
    folds = [(np.flatnonzero(runs != run), np.flatnonzero(runs == run)) for run in np.unique(runs)]
    given = BandedRidgeCV(cv=folds, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(one_out.cv_scores_, given.cv_scores_)
    two = BandedRidgeCV(cv=2, random_state=0).fit(X, Y, groups=runs)
    same = BandedRidgeCV(cv=GroupKFold(2), random_state=0).fit(X, Y, groups=runs)
    np.testing.assert_array_equal(two.cv_scores_, same.cv_scores_)


def test_batches_change_nothing():
    X, Y = data(P=9)
    whole, parts = (BandedRidgeCV(random_state=0, n_outputs_batch=size).fit(X, Y) for size in (None, 2))
    np.testing.assert_array_equal(whole.alpha_, parts.alpha_)
    np.testing.assert_allclose(whole.predict(X), parts.predict(X), atol=1e-10)


def test_parts_of_r2_add_to_r2_and_follow_the_product_measure():
    X, Y = data()
    model = BandedRidgeCV(random_state=0).fit(X[:40], Y[:40])
    parts, total = model.r2_by_view(X[40:], Y[40:]), model.score_by_output(X[40:], Y[40:])
    np.testing.assert_allclose(parts.sum(axis=0), total)
    np.testing.assert_allclose(total, r2_score(Y[40:], model.predict(X[40:]), multioutput="raw_values"))
    assert model.score(X[40:], Y[40:]) == pytest.approx(total.mean())
    outputs = model.view_decision_function(X[40:]) * model.view_weights_
    np.testing.assert_allclose(outputs.sum(axis=1) + model.intercept_, model.predict(X[40:]))
    left = Y[40:] - Y[40:].mean(axis=0)
    shift = (model.intercept_ - Y[40:].mean(axis=0)) / 2
    by_hand = np.sum((outputs[:, 0] + shift) * (2 * left - (model.predict(X[40:]) - Y[40:].mean(axis=0))), axis=0)
    np.testing.assert_allclose(parts[0], by_hand / np.sum(left**2, axis=0))


def test_missing_targets_are_left_out_output_by_output():
    X, Y = data()
    Y[5:9, 2] = np.nan
    Y[11] = np.nan
    model = BandedRidgeCV(random_state=0).fit(X, Y)
    rest = np.setdiff1d(np.arange(60), [5, 6, 7, 8, 11])
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_array_equal(model.score_by_output(X, Y)[2], model.score_by_output(X[rest], Y[rest])[2])
    scores = cross_val_score(clone(model), X, Y, cv=3)  # the score of the estimator leaves NaN out
    assert np.isfinite(scores).all()


def test_progress_counts_every_draw_of_weights_for_every_pattern_of_targets():
    X, Y = data()
    Y[5:9, 2] = np.nan
    shown = []
    token = _progress._shown_by.set(lambda text, share: shown.append((text, share)))
    try:
        BandedRidgeCV(n_iter=3, random_state=0).fit(X, Y)
    finally:
        _progress._shown_by.reset(token)
    assert [text for text, _ in shown] == [f"draw of weights {k} of 6" for k in range(1, 7)]
    np.testing.assert_allclose([share for _, share in shown], np.arange(1, 7) / 6)


def test_missing_views_add_nothing_and_are_the_mean():
    X, Y = data()
    mask = np.ones((60, 2), dtype=bool)
    mask[::3, 1] = False
    model = BandedRidgeCV(RBF(0.05), random_state=0).fit(Views(X, mask=mask), Y)
    values = model.view_decision_function(Views(X, mask=mask))
    assert np.isnan(values[::3, 1]).all()
    np.testing.assert_allclose(np.nanmean(values, axis=0), 0, atol=1e-7)
    alone = model.predict(Views(X, mask=mask)[::3])
    np.testing.assert_allclose(alone, values[::3, 0] * model.view_weights_[0] + model.intercept_, atol=1e-10)


def test_sparse_and_single_precision_views():
    X, Y = data()
    dense = BandedRidgeCV(random_state=0).fit(X, Y)
    sparse = BandedRidgeCV(random_state=0).fit(Views(a=sp.csr_array(X["a"]), b=sp.csr_array(X["b"])), Y)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X), atol=1e-9)
    single = Views(a=X["a"].astype(np.float32), b=X["b"].astype(np.float32))
    model = BandedRidgeCV(random_state=0).fit(single, Y)
    assert model.predict(single).dtype == np.float32
    np.testing.assert_allclose(model.cv_scores_, dense.cv_scores_, atol=1e-4)


def test_wide_linear_views_have_primal_coefficients_on_request():
    X, Y = data(n=20, widths=(30, 40))
    model = BandedRidgeCV(random_state=0).fit(X, Y)
    assert not hasattr(model, "coef_")
    W = model.primal_coef()
    added = sum(X[name] @ W[name] * c for name, c in zip("ab", model.view_weights_, strict=True))
    steps = np.diff(model.predict(X), axis=0)
    np.testing.assert_allclose(np.diff(added, axis=0), steps, atol=1e-8)
    with pytest.raises(ValueError, match="the view 'a' has RBF"):
        BandedRidgeCV(RBF(0.1)).fit(X, Y).primal_coef()


def test_a_model_of_many_outputs_is_saved_and_inspected(tmp_path):
    X, Y = data(P=70)
    for kernel in ("linear", RBF(0.1)):
        model = BandedRidgeCV(kernel, random_state=0).fit(X, Y)
        cs.save(model, tmp_path / "model.cons")
        np.testing.assert_array_equal(cs.load(tmp_path / "model.cons").predict(X), model.predict(X))
    shares = cs.view_importances(model, X, Y).weight
    assert sum(shares.values()) == pytest.approx(1)


def test_device_arrays_give_the_same():
    torch = pytest.importorskip("torch")
    X, Y = data()
    host = BandedRidgeCV(RBF(0.1), random_state=0).fit(X, Y)
    device = BandedRidgeCV(RBF(0.1), random_state=0).fit(Views({name: torch.asarray(X[name]) for name in "ab"}), Y)
    np.testing.assert_allclose(device.cv_scores_, host.cv_scores_, atol=1e-9)
    np.testing.assert_allclose(device.dual_coef_, host.dual_coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("params", "fit", "words"),
    [
        ({"alphas": [0.0, 1.0]}, {}, "`alphas` must be numbers above 0; got"),
        ({"alphas": []}, {}, "`alphas` must not be empty"),
        ({"cv": [(np.arange(60), np.arange(5))]}, {}, "must train on 2 samples at least and test others"),
        ({}, {"groups": np.zeros(3)}, "one value for each of the 60 samples"),
    ],
)
def test_what_makes_no_sense_is_refused(params, fit, words):
    X, Y = data()
    with pytest.raises(ValueError, match=words):
        BandedRidgeCV(**params).fit(X, Y, **fit)


def test_outputs_with_one_target_and_blocks_of_rows_are_refused():
    X, Y = data()
    with pytest.raises(TypeError, match="needs all samples at once"):
        BandedRidgeCV().fit(cs.RowBlocks.of(X, Y))
    Y[1:, 2] = np.nan
    with pytest.raises(ValueError, match="Output 2 of y has fewer than 2 targets"):
        BandedRidgeCV().fit(X, Y)


def test_the_display_shows_the_parts_of_r2_and_their_sum():
    pytest.importorskip("matplotlib").use("agg")
    X, Y = data(P=30)
    model = BandedRidgeCV(random_state=0).fit(X[:40], Y[:40])
    display = cs.BandedR2Display.from_estimator(model, X[40:], Y[40:])
    whole, *parts = (line.get_ydata() for line in display.lines_)
    np.testing.assert_allclose(whole, np.sum(parts, axis=0))
    assert (np.diff(whole) <= 0).all()
    with pytest.raises(TypeError, match="BandedRidgeCV, alone or at the end of a pipeline"):
        cs.BandedR2Display.from_estimator(cs.LateFusion(RidgeCV()).fit(X, Y[:, 0]), X, Y)


def test_small_penalties_do_not_enlarge_the_rounding_of_the_centers():
    rng = np.random.default_rng(0)
    A, new = rng.normal(size=(150, 3)), rng.normal(size=(20, 3))
    y = A[:, 0] + 0.1 * rng.normal(size=150)
    model = BandedRidgeCV(RBF(0.5), alphas=(1e-3,), random_state=0).fit({"a": A}, y)
    # coefficients of the centered kernel may move by a constant, which rounding divided by the penalty does
    moved = BandedRidgeCV(RBF(0.5), alphas=(1e-3,), random_state=0).fit({"a": A}, y)
    moved.dual_coef_ = moved.dual_coef_ + 1e-6
    moved._dual_sums = moved._dual_sums + 150e-6
    K, k = RBF(0.5)(A), RBF(0.5)(new, A)
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    scale = np.trace(centered) / 150
    dual = np.linalg.solve(centered / scale + 1e-3 * np.eye(150), y - y.mean())
    expected = y.mean() + (k - K.mean(axis=0) - k.mean(axis=1)[:, None] + K.mean()) @ dual / scale
    np.testing.assert_allclose(model.predict({"a": new}), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(moved.predict({"a": new}), expected, rtol=0, atol=1e-11)
