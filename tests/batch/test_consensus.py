"""Consensus against literal refits, scikit-learn, and simulations of what it promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

import consilience as cs
import reference
from consilience.batch._consensus_fit import outputs_by_fold
from consilience.kernels import RBF, Linear, Spectrum, auto_kernels, normalize, standardize
from consilience.solvers import consensus as solver
from consilience.solvers.consensus import PENALTIES, Sets, fit_base, fit_features
from consilience.solvers.stacking import calibrate, least_squares, normal_equations, stack_without


def made(seed=0, n=40, P=1, missing=0.0, noise=0.3):
    """Two informative views and one of noise, and targets."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    mask = rng.random((n, 3)) >= missing
    mask[~mask.any(axis=1), 0] = True
    blocks = {
        "a": hidden + 0.3 * rng.normal(size=(n, 2)),
        "b": hidden[:, :1] ** 2 + 0.3 * rng.normal(size=(n, 3)),
        "c": rng.normal(size=(n, 4)),
    }
    X = cs.Views(blocks, mask=mask)
    return X, np.sin(hidden @ rng.normal(size=(2, P))) + hidden[:, :1] ** 2 / 4 + noise * rng.normal(size=(n, P))


def stacked_weights(Z, T, u):
    return least_squares(*normal_equations(Z, T, u))


def parts_of(kind, n):
    """Single samples, folds, or groups of unequal sizes."""
    if kind == "samples":
        return [np.array([i]) for i in range(n)]
    if kind == "folds":
        return [np.arange(k, n, 4) for k in range(4)]
    return np.split(np.random.default_rng(5).permutation(n), [1, 4, 9, n // 2])


def singles(n, K=4):
    return Sets(None, np.arange(n) % K, K)


def sets_of(kind, n):
    """Units of one sample, units of several, and folds that are units; folds of four."""
    if kind == "samples":
        return singles(n)
    units = np.empty(n, dtype=int)
    for k, part in enumerate(parts_of(kind, n)):
        units[part] = k
    return Sets(units, units % 4, min(4, units.max() + 1))


# -- one base model
PATHS = {"nested penalties": (100, 400, 1000), "spectrum": (0, 400, 1000), "factor": (0, 10, 1000), "many": (0, 10, 0)}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["samples", "folds", "groups"])
@pytest.mark.parametrize(("weighted", "P"), [(False, 1), (True, 3)])
@pytest.mark.parametrize("features", [False, True])
def test_base_models_without_samples_equal_refits(path, kind, weighted, P, features, monkeypatch):
    """Without its unit, without its fold, without both, and the model of each fold at new samples; one penalty."""
    for name, size in zip(("NESTED_PENALTIES", "CHOOSING", "NESTED"), PATHS[path], strict=True):
        monkeypatch.setattr(solver, name, size)
    monkeypatch.setattr(solver, "PENALTIES", np.array([0.03]))
    rng = np.random.default_rng(P)
    X, new = rng.normal(size=(30, 6)) + 1.0, rng.normal(size=(5, 6))
    K, K_new = (X @ X.T, new @ X.T) if features else (RBF(0.2)(X), RBF(0.2)(new, X))
    Y = np.sin(X[:, :1] + np.arange(P)) + 0.1 * rng.normal(size=(30, P))
    s = rng.random(30) + 0.3 if weighted else np.ones(30)
    sets = sets_of(kind, 30)
    units = np.arange(30) if sets.units is None else sets.units
    fit = fit_features(X, Y, s, sets) if features else fit_base(K, Y, s, sets)
    parts = [np.flatnonzero(units == unit) for unit in np.unique(units)]
    folds = [np.flatnonzero(sets.folds == k) for k in range(sets.n_folds)]
    held, _ = reference.left_out_predictions(K, Y, s, fit.penalty, parts, K_new)
    np.testing.assert_allclose(fit.held, held, atol=1e-8)
    by_fold, without = reference.left_out_predictions(K, Y, s, fit.penalty, folds, K_new)
    np.testing.assert_allclose(fit.by_fold, by_fold, atol=1e-8)
    a, b = reference.ridge_with_intercept(K, Y, s, fit.penalty)
    outputs = (new if features else K_new) @ fit.coefficients + fit.intercept
    np.testing.assert_allclose(outputs[:, :P], K_new @ a + b, atol=1e-8)
    np.testing.assert_allclose(outputs[:, P:].reshape(5, -1, P), without, atol=1e-8)
    if path == "many":
        assert fit.inner is None
        return
    for k, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(30), fold)
        inside = [np.flatnonzero(units[rest] == unit) for unit in np.unique(units[rest])]
        literal, _ = reference.left_out_predictions(
            K[np.ix_(rest, rest)], Y[rest], s[rest], fit.penalty, inside, K[:1, rest]
        )
        np.testing.assert_allclose(fit.inner[k, rest], literal, atol=1e-8)
        assert np.isnan(fit.inner[k, fold]).all()


def test_the_penalty_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 8))
    y = X @ rng.normal(size=8) + 2.0 * rng.normal(size=50) + 3.0
    K = X @ X.T
    fit = fit_base(K, y[:, None], np.ones(50), singles(50))
    centered = X - X.mean(axis=0)
    unit = np.trace(centered @ centered.T) / 50
    peer = RidgeCV(unit * PENALTIES, store_cv_results=True).fit(X, y)
    assert fit.penalty == pytest.approx(peer.alpha_)
    errors = peer.cv_results_[:, list(peer.alphas).index(peer.alpha_)]
    np.testing.assert_allclose((y - fit.held[:, 0]) ** 2, errors, rtol=1e-8)


def test_two_samples_are_enough_for_a_base_model():
    """Each predicts the other one with any penalty; one of those that are tried makes the fit to both."""
    K, Y = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -1.0], [3.0, 4.0]])
    fit = fit_base(K, Y, np.ones(2), singles(2, 2))
    np.testing.assert_allclose(fit.held, Y[::-1])
    unit = (K.trace() - K.sum() / 2) / 2
    assert np.isclose(fit.penalty, unit * PENALTIES).any()
    a, b = reference.ridge_with_intercept(K, Y, np.ones(2), fit.penalty)
    outputs = K @ fit.coefficients + fit.intercept
    np.testing.assert_allclose(outputs[:, :2], K @ a + b, rtol=1e-10)
    assert np.isnan(fit.by_fold).all()  # no fold leaves two samples


@pytest.mark.parametrize("n", [2, 3])
def test_few_samples(n):
    X, Y = made(n=n)
    model = cs.ConsensusRegressor().fit(X, Y[:, 0])
    assert np.isfinite(model.predict(X)).all()


def test_the_held_out_score_of_two_or_three_samples_is_that_of_the_others():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 5))
    assert cs.ConsensusClassifier().fit(A[:2], ["p", "q"]).loo_score_ == 0.0
    np.testing.assert_allclose(cs.ConsensusRegressor().fit(A[:2], [1.0, 4.0]).loo_predictions_, [4.0, 1.0])
    held = cs.ConsensusRegressor().fit(A, A[:, 0]).loo_predictions_
    assert np.abs(held).max() < 10 * np.abs(A[:, 0]).max()


def test_one_sample_predicts_itself():
    X, _ = made(n=1)
    np.testing.assert_allclose(cs.ConsensusRegressor().fit(X, [3.0]).predict(X), [3.0])
    assert cs.ConsensusClassifier().fit(X, ["x"]).predict(X) == ["x"]
    assert cs.ConsensusClassifier().fit(X, ["x"]).predict_proba(X) == [[1.0]]


# -- stacking
def test_stacking_equals_nonnegative_least_squares(cp):
    rng = np.random.default_rng(0)
    Z, T, u = rng.normal(size=(6, 30, 2)), rng.normal(size=(30, 2)), rng.random(30) + 0.5
    Z[1] += T
    Z[4] += T
    root = np.sqrt(u)[:, None]
    literal = nnls((root * Z).reshape(6, -1).T, (root * T).ravel())[0]
    np.testing.assert_allclose(stacked_weights(Z, T, u), literal, atol=1e-10)
    beta = cp.Variable(6, nonneg=True)
    program = cp.Problem(cp.Minimize(cp.sum_squares((root * Z).reshape(6, -1).T @ beta - (root * T).ravel())))
    program.solve(solver="CLARABEL")
    np.testing.assert_allclose(stacked_weights(Z, T, u), beta.value, atol=1e-5)


@pytest.mark.parametrize("kind", ["samples", "folds", "groups"])
def test_stacking_without_parts_equals_refits(kind):
    rng = np.random.default_rng(1)
    Z, T, u = rng.normal(size=(7, 30, 2)), rng.normal(size=(30, 2)), rng.random(30) + 0.5
    Z[:3] += 0.5 * T
    parts = parts_of(kind, 30)
    beta, without = stack_without(Z, T, u, parts)
    np.testing.assert_allclose(beta, stacked_weights(Z, T, u))
    for part, own in zip(parts, without, strict=True):
        rest = np.setdiff1d(np.arange(30), part)
        np.testing.assert_allclose(own, stacked_weights(Z[:, rest], T[rest], u[rest]), atol=1e-8)


def test_calibration_equals_logistic_regression_for_two_classes():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 1))
    codes = (rng.random(4000) < 1 / (1 + np.exp(-2.0 * scores[:, 0] - 0.5))).astype(int)
    slope, biases = calibrate(np.hstack([-scores / 2, scores / 2]), codes, np.ones(4000), 2)
    peer = LogisticRegression(C=1e6).fit(scores, codes)
    assert slope == pytest.approx(peer.coef_[0, 0], rel=0.02)
    assert biases[1] - biases[0] == pytest.approx(peer.intercept_[0], abs=0.02)


def test_calibration_of_separated_classes_is_finite():
    scores = np.repeat([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]], 5, axis=0)
    slope, biases = calibrate(scores, np.repeat([0, 1, 2], 5), np.ones(15), 3)
    assert 0 < slope < 20
    np.testing.assert_allclose(biases, 0, atol=1e-3)


@pytest.mark.parametrize("each", [1, 2, 5, 20])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_separated_classes_get_the_probability_of_platts_targets(each, n_classes):
    """By symmetry no class has a bias, and the slope alone meets the target (n + 1) / (n + 2) at every sample."""
    codes = np.repeat(np.arange(n_classes), each)
    scores = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    slope, biases = calibrate(scores, codes, np.ones(len(codes)), n_classes)
    np.testing.assert_allclose(biases, 0, atol=1e-6)
    odds = np.exp(2 * slope)  # of the own class to another one
    expected = (len(codes) + 1) / (len(codes) + 2)
    assert odds / (odds + n_classes - 1) == pytest.approx(expected, rel=1e-4)


# -- the whole estimator against refits of everything
def literal_grams(model, X):
    """Gram matrices of the base models, and the penalties that are tried for each."""
    for base in model._models:
        K = base.gram(X, np.arange(len(X)))
        centered = K - K.mean(axis=0)
        yield K, np.trace(centered) / len(X) * PENALTIES[::-1]


@pytest.mark.parametrize("kind", ["samples", "groups"])
@pytest.mark.parametrize(("P", "shared"), [(1, True), (2, True)])
def test_held_out_predictions_and_intervals_equal_refits_of_everything(kind, P, shared):
    """Penalties and weights are chosen anew outside of each fold, by refits without one more unit."""
    n = 36
    X, Y = made(1, n=n, P=P)
    groups = None if kind == "samples" else np.arange(n) % 12
    model = cs.ConsensusRegressor(
        {name: [standardize(RBF(0.2)), Linear()] for name in X.names}, shared_weights=shared
    ).fit(X, Y, groups=groups)
    stack, folds = model._stack, model._stack.sets.folds
    scaled = (Y - stack.shift) / stack.scale
    grams, penalties = zip(*literal_grams(model, X), strict=True)
    units = np.arange(n) if groups is None else groups
    literal = np.empty_like(Y)
    for k in range(stack.sets.n_folds):
        g = np.flatnonzero(folds == k)
        literal[g], beta = reference.nested_predictions(grams, scaled, np.ones(n), units, g, penalties)
        np.testing.assert_allclose(model._experts["111"].fold_weights[k][:, 0], beta, atol=1e-6)
    literal = literal * stack.scale + stack.shift
    np.testing.assert_allclose(model.loo_predictions_.reshape(n, P), literal, atol=1e-6)
    assert model.loo_score_ == pytest.approx(r2_score(Y, literal))
    # CV+ (Barber and others 2021): quantiles of the fold models' predictions plus and minus the errors
    new, _ = made(2, n=6)
    found = next(iter(outputs_by_fold(model, new)))
    errors = np.abs(Y - literal)
    low, high = int(np.floor(0.2 * (n + 1))), int(np.ceil(0.8 * (n + 1)))
    ends = [
        np.sort(found.new[:, folds] - errors, axis=1)[:, low - 1],
        np.sort(found.new[:, folds] + errors, axis=1)[:, high - 1],
    ]
    expected = np.stack(ends, axis=2)
    intervals = model.predict_interval(new, coverage=0.8).reshape(6, -1, 2)
    np.testing.assert_allclose(intervals, expected[:, : intervals.shape[1]], atol=1e-5)


def test_models_of_folds_predict_as_refits():
    X, Y = made(3, n=40)
    new, _ = made(4, n=5)
    model = cs.ConsensusRegressor([standardize(RBF(0.2)), Linear()]).fit(X, Y[:, 0])
    found = next(iter(outputs_by_fold(model, X)))
    own = found.new[np.arange(40), model._stack.sets.folds]
    np.testing.assert_allclose(own, found.held, atol=1e-8)  # at the samples of a fold
    assert np.abs(next(iter(outputs_by_fold(model, new))).new[:, :, 0] - model.predict(new)[:, None]).max() < 1.0


def test_view_importances_equal_a_stack_without_the_view():
    X, Y = made(5, n=60)
    model = cs.ConsensusRegressor().fit(X, Y[:, 0])
    stack, literal = model._stack, np.empty(60)
    rest = np.flatnonzero(~stack.needs[:, 0])
    assert not any("a" in model._models[k].views for k in rest)
    for k in range(stack.sets.n_folds):
        inside, g = np.flatnonzero(stack.sets.folds != k), np.flatnonzero(stack.sets.folds == k)
        T = stack.Y[inside]
        means = (T.sum(axis=0) - T) / (len(T) - 1)
        beta = stacked_weights(stack.inner[k][rest][:, inside] - means, T - means, np.ones(len(T)))
        literal[g] = T.mean() + beta @ (stack.by_fold[rest][:, g, 0] - T.mean())
    score = r2_score(Y[:, 0], literal * stack.scale + stack.shift)
    assert model.view_importances_["a"] == pytest.approx(model.loo_score_ - score)
    assert model.view_importances_["a"] > 0.1 > abs(model.view_importances_["c"])


def test_sets_are_cross_conformal():
    """A class is in the set unless too few samples fit their class as little, both by the model of their fold."""
    X, Y = made(6, n=45)
    new, _ = made(7, n=8)
    y = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.3, 0.5])]
    model = cs.ConsensusClassifier([standardize(RBF(0.2)), Linear()]).fit(X, y)
    found = next(iter(outputs_by_fold(model, new)))
    likely = np.exp(found.new) / np.exp(found.new).sum(axis=2, keepdims=True)
    fits = model.loo_probabilities_[np.arange(45), np.searchsorted(model.classes_, y)]
    p_values = (1 + (fits[None, :, None] <= likely[:, model._stack.sets.folds]).sum(axis=1)) / 46
    expected = p_values > 0.25
    expected[np.arange(8), model.predict_proba(new).argmax(axis=1)] = True
    np.testing.assert_array_equal(model.predict_set(new, coverage=0.75), expected)


# -- special cases
def test_one_kernel_equals_kernel_ridge_with_its_weight():
    X, Y = made(8, n=50)
    model = cs.ConsensusRegressor(RBF(0.3)).fit(X["a"], Y[:, 0])
    (base,) = model._models
    scaled = (Y - model._stack.shift) / model._stack.scale
    a, b = reference.ridge_with_intercept(RBF(0.3)(X["a"]), scaled, np.ones(50), base.penalty)
    outputs = RBF(0.3)(X["a"]) @ a + b
    expected = (
        model._experts["1"].weights[0, 0] * outputs * model._stack.scale + model._stack.shift
    )  # the mean of the targets is 0 here
    np.testing.assert_allclose(model.predict(X["a"]), expected[:, 0], atol=1e-8)
    assert 0.8 < model._experts["1"].weights[0, 0] < 1.2


def test_many_features_equal_kernels():
    X, Y = made(9, n=50)
    exact = cs.ConsensusRegressor([RBF(0.3), Linear()]).fit(X, Y)
    features = cs.ConsensusRegressor([RBF(0.3), Linear()], n_components=50).fit(X, Y)
    same = [k for k, base in enumerate(exact._models) if np.isclose(base.penalty, features._models[k].penalty)]
    assert len(same) >= len(exact._models) - 2  # single precision may choose the next one of two equal penalties
    np.testing.assert_allclose(features._stack.held[same], exact._stack.held[same], atol=1e-6)
    for k in same:
        whole = slice(0, 1)
        outputs = [model._models[k].outputs(X, np.arange(50), model.X_fit_, whole) for model in (exact, features)]
        np.testing.assert_allclose(*outputs, atol=1e-6)


def test_groups_and_folds_agree():
    X, Y = made(10, n=40)
    groups = np.repeat(np.arange(8), 5)
    by_groups = cs.ConsensusRegressor().fit(X, Y, groups=groups)
    by_cv = cs.ConsensusRegressor(cv=GroupKFold(8)).fit(X, Y, groups=groups)
    np.testing.assert_allclose(by_groups.loo_predictions_, by_cv.loo_predictions_, atol=1e-10)
    with pytest.raises(ValueError, match="several folds"):
        cs.ConsensusRegressor(cv=KFold(4, shuffle=True, random_state=0)).fit(X, Y, groups=groups)


def test_a_view_of_one_group_only_has_no_base_models():
    X, Y = made(22, n=40)
    mask = np.ones((40, 3), dtype=bool)
    groups = np.repeat([0, 1, 2, 3], 10)
    mask[groups > 0, 1] = False  # only the first group has b
    model = cs.ConsensusRegressor().fit(cs.Views({name: X[name] for name in X.names}, mask=mask), Y, groups=groups)
    assert not any("b" in base.views for base in model._models)
    assert np.isfinite(model.predict(X)).all()


def test_views_without_information_predict_the_mean():
    y = np.repeat(["x", "z"], [30, 10])
    X = cs.Views(a=np.ones((40, 3)), b=np.full((40, 2), 5.0))
    model = cs.ConsensusClassifier().fit(X, y)
    assert (model.predict(X) == "x").all()
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], 0.75, atol=0.05)  # a prior pulls biases to 0
    assert model.loo_score_ == 0.75
    np.testing.assert_allclose(cs.ConsensusRegressor().fit(X, np.arange(40.0)).predict(X), 19.5)


def test_samples_that_stand_twice_are_held_out_together():
    """Leave-one-out leaves a twin in, and finds penalties and scores of samples that are known already."""
    X, Y = made(11, n=60)
    kernels = [standardize(RBF(0.2)), Linear()]
    once = cs.ConsensusRegressor(kernels).fit(X, Y[:, 0])
    with pytest.warns(UserWarning, match="60 of 120 labeled samples repeat another"):
        twice = cs.ConsensusRegressor(kernels).fit(X[np.repeat(np.arange(60), 2)], np.repeat(Y[:, 0], 2))
    assert twice.n_repeated_ == 60
    assert "60 samples repeat others" in str(twice.certificate())
    assert twice.loo_score_ == pytest.approx(once.loo_score_, abs=1e-6)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), atol=1e-6)
    np.testing.assert_allclose(twice.predict_interval(X), once.predict_interval(X), atol=1e-1)


@pytest.mark.parametrize("kind", ["numbers", "texts", "sparse", "missing", "grams"])
def test_equal_samples_are_found_in_any_kind_of_view(kind):
    rng = np.random.default_rng(0)
    A, rows = rng.normal(size=(40, 7)) * 10.0 ** np.arange(-3, 4), np.r_[np.arange(40), 5, 5, 17]
    y = rng.normal(size=40)[rows]
    X = cs.Views(a=A[rows])
    if kind == "texts":
        X = cs.Views(t=[f"a text of patient {k * k} {'ab' * (k % 3)}" for k in rows])
    elif kind == "sparse":
        X = cs.Views(a=sp.csr_array(np.where(A > 0, A, 0.0))[rows])
    elif kind == "missing":
        B = rng.normal(size=(43, 4))
        B[np.r_[0:10, 40, 41]] = np.nan
        X = cs.Views(a=A[rows], b=B)  # sample 17 has another b
    elif kind == "grams":
        X = cs.Views(a=(A @ A.T)[np.ix_(rows, rows)], precomputed="a")
    expected = 1 if kind == "missing" else 3
    if kind == "missing":
        B[5] = B[40] = B[41] = 1.5  # three samples are equal, and 17 is not
        X, expected = cs.Views(a=A[rows], b=B), 2
    with pytest.warns(UserWarning, match=f"{expected} of 43 labeled samples repeat"):
        cs.ConsensusRegressor().fit(X, y)


def test_samples_of_few_categories_are_equal_by_chance(recwarn):
    rng = np.random.default_rng(0)
    sex, stage, mutations = rng.integers(2, size=(90, 1)), rng.integers(4, size=(90, 2)), rng.random((90, 20)) < 0.02
    X = cs.Views(clinical=np.hstack([sex, stage]).astype(float), mutations=mutations.astype(float))
    model = cs.ConsensusClassifier().fit(X, np.where(rng.random(90) < 0.5, "a", "b"))
    assert model.n_repeated_ == 0
    assert not [w for w in recwarn if "repeat" in str(w.message)]


# -- missing views and values
def test_missing_views_use_weights_of_their_pattern():
    X, Y = made(12, n=120, missing=0.25)
    model = cs.ConsensusRegressor().fit(X, Y[:, 0])
    complete, _ = made(13, n=20)
    stack, weights = model._stack, model._experts["010"].weights
    models, rows = stack.available(np.array([False, True, False])), np.flatnonzero(X.present("b"))
    assert all(model._models[k].views == ("b",) for k in np.flatnonzero(weights[:, 0]))
    means = (stack.Y.sum(axis=0) - stack.Y) / 119
    expected = stacked_weights((stack.held - means)[np.ix_(models, rows)], (stack.Y - means)[rows], np.ones(len(rows)))
    np.testing.assert_allclose(weights[models, 0], expected, atol=1e-10)
    assert expected.sum() > 0
    np.testing.assert_allclose(model.predict(complete[["b"]]), model.view_decision_function(complete)[:, 1], atol=1e-10)


def test_a_pattern_with_few_samples_averages_its_views():
    both, Y = made(14, n=100)
    mask = np.zeros((60, 3), dtype=bool)
    mask[:30, [0, 2]], mask[30:, [1, 2]] = True, True  # no sample has a and b
    X = cs.Views({name: both[name][:60] for name in both.names}, mask=mask)
    model = cs.ConsensusRegressor().fit(X, Y[:60, 0])
    assert not any({"a", "b"} <= set(base.views) for base in model._models)
    new = both[60:]
    mean, a, b = Y[:60, 0].mean(), model.predict(new[["a"]]), model.predict(new[["b"]])
    A = np.column_stack([a - mean, b - mean])
    shares = np.linalg.lstsq(A, model.predict(new[["a", "b"]]) - mean, rcond=None)[0]
    np.testing.assert_allclose(A @ shares, model.predict(new[["a", "b"]]) - mean, atol=1e-8)
    assert shares.sum() == pytest.approx(1.0)
    assert shares.min() > 0
    assert model.score(new[["a", "b"]], Y[60:, 0]) > max(0.1, model.score(new[["b"]], Y[60:, 0]))


def test_single_missing_values_are_filled_and_counted():
    X, Y = made(16, n=50)
    a = X["a"].copy()
    a[[3, 7], 0] = np.nan
    gaps = cs.Views(a=a, b=X["b"], c=X["c"])
    filled = np.where(np.isnan(a), np.nanmean(a, axis=0), a)
    model = cs.ConsensusRegressor().fit(gaps, Y[:, 0])
    whole = cs.ConsensusRegressor().fit(cs.Views(a=filled, b=X["b"], c=X["c"]), Y[:, 0])
    np.testing.assert_allclose(model.predict(gaps), whole.predict(cs.Views(a=filled, b=X["b"], c=X["c"])))
    assert model.n_filled_ == {"a": 2, "b": 0, "c": 0}
    assert "2 in 'a'" in str(model.certificate())
    sparse = sp.csr_array(np.where(np.abs(a) < 0.3, 0.0, a))
    model = cs.ConsensusRegressor().fit(cs.Views(a=sparse), Y[:, 0])
    assert model.n_filled_ == {"a": 2}
    with pytest.raises(ValueError, match="infinity"):
        cs.ConsensusRegressor().fit(cs.Views(a=np.where(np.isnan(a), np.inf, a)), Y[:, 0])


def test_unlabeled_samples_help():
    rng = np.random.default_rng(0)
    angle = rng.random(300) * np.pi
    side = rng.integers(0, 2, 300)
    moons = np.stack([np.cos(angle) * (1 - 2 * side) + side, np.sin(angle) * (1 - 2 * side) + 0.4 * side], axis=1)
    X = cs.Views(a=moons + 0.08 * rng.normal(size=(300, 2)), b=rng.normal(size=(300, 3)))
    y = np.array([None] * 300, dtype=object)
    few = np.concatenate([np.flatnonzero(side == k)[:6] for k in (0, 1)])
    y[few] = np.array(["up", "down"])[side[few]]
    truth = np.array(["up", "down"])[side]
    with_all = cs.ConsensusClassifier().fit(X, y)
    assert any(model.spread for model in with_all._models)
    labeled_only = cs.ConsensusClassifier().fit(X[few], truth[few])
    assert with_all.score(X, truth) > labeled_only.score(X, truth) + 0.03


def test_unlabeled_samples_equal_refits():
    X, Y = made(17, n=50)
    y = Y[:, 0].copy()
    y[35:] = np.nan
    model = cs.ConsensusRegressor(RBF(0.3)).fit(X, y)
    new, _ = made(18, n=4)
    scaled = (Y[:35] - model._stack.shift) / model._stack.scale
    alone = [np.array([i]) for i in range(35)]
    changed = [k for k, base in enumerate(model._models) if base.spread]
    assert len(changed) == 6
    for k in changed:
        base = model._models[k]
        K = base.gram(X, np.arange(50))
        near = cs.graphs.laplacian(reference_neighbors(K), normalized=True) * base.spread
        deformed = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(50)) + near)
        held, _ = reference.left_out_predictions(
            deformed[:35, :35], scaled, np.ones(35), base.penalty, alone, deformed[:1, :35]
        )
        np.testing.assert_allclose(model._stack.held[k], held, atol=1e-5)
    assert np.isfinite(model.predict_interval(new)).all()


def reference_neighbors(K):
    """The graph of the ten nearest neighbors by the distance of the kernel."""
    distances = K.diagonal()[:, None] + K.diagonal() - 2 * K
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :10]
    W = np.zeros_like(K)
    W[np.repeat(np.arange(len(K)), 10), near.ravel()] = 1.0
    return np.maximum(W, W.T)


# -- kinds of data
def test_every_kind_of_view():
    rng = np.random.default_rng(0)
    y = np.repeat(["x", "z"], 20)
    words = [("ab" if label == "x" else "ba") * 3 + rng.choice(["c", "d"]) for label in y]
    trees = ["(S (A a) (B b))" if label == "x" else "(S (C c))" for label in y]
    counts = sp.csr_array(rng.poisson(np.where((y == "x")[:, None], 0.3, 0.1), size=(40, 30)).astype(float))
    numbers = rng.normal(size=(40, 3)) + (y == "x")[:, None]
    K = RBF(0.5)(numbers)
    X = cs.Views(
        {"words": words, "trees": trees, "counts": counts, "numbers": numbers, "gram": K}, precomputed=["gram"]
    )
    model = cs.ConsensusClassifier().fit(X, y)
    assert {" + ".join(base.views) for base in model._models} >= set(X.names)
    assert model.score(X, y) == 1.0
    assert model.loo_score_ > 0.9
    frame = model.kernel_weights_
    assert list(frame.columns) == ["view", "kernel", "weight", "penalty"]
    assert frame["weight"].min() >= 0
    np.testing.assert_allclose(model.view_weights_.sum(), 1.0)


def test_gram_matrices_equal_the_kernel_that_made_them():
    X, Y = made(23, n=70)
    K, y = RBF(0.3)(X["a"]), np.where(Y[:, 0] > 0.2, "high", "low")
    grams = cs.Views(a=K, precomputed=["a"])
    model = cs.ConsensusClassifier(cv=5).fit(grams[:50], y[:50])
    same = cs.ConsensusClassifier(RBF(0.3), cv=5).fit(cs.Views(a=X["a"][:50]), y[:50])
    new = cs.Views(a=X["a"][50:])
    np.testing.assert_allclose(model.predict_proba(grams[50:]), same.predict_proba(new), atol=1e-8)
    np.testing.assert_array_equal(model.predict_set(grams[50:]), same.predict_set(new))
    square = cs.Views(a=X["a"][:50] @ np.ones((2, 50)))  # a square table is no Gram matrix, also at a second fit
    assert "precomputed" not in [base.label for base in model.fit(square, y[:50])._models]


def test_unlabeled_samples_that_are_not_used_are_told():
    X, Y = made(24, n=60)
    Y[40:] = np.nan
    told = str(cs.ConsensusRegressor(n_components=20).fit(X, Y[:, 0]).certificate())
    assert "20 unlabeled samples only scale columns" in told
    assert "unlabeled" not in str(cs.ConsensusRegressor().fit(X, Y[:, 0]).certificate())


def test_kernels_given_by_the_user():
    X, Y = made(19, n=40)
    model = cs.ConsensusRegressor({"a": [Linear(), RBF(0.5)], "b": "rbf"}).fit(X, Y[:, 0])
    labels = {name: [base.label for base in model._models if base.views == (name,)] for name in X.names}
    assert labels["a"] == ["Linear()", "RBF(gamma=0.5)"]
    assert labels["b"] == ["RBF(gamma='scale')"]
    assert labels["c"] == list(auto_kernels(X["c"]))
    with pytest.raises(ValueError, match="empty list"):
        cs.ConsensusRegressor({"a": []}).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="not positive semi-definite"):
        cs.ConsensusRegressor("precomputed").fit(cs.Views(a=-np.eye(40), precomputed=["a"]), Y[:, 0])
    strings = cs.ConsensusClassifier(normalize(Spectrum(2))).fit(["anna", "otto", "hanna", "lotto"], [0, 1, 0, 1])
    assert strings.score(["anna", "otto"], [0, 1]) == 1.0


def test_outputs_of_very_different_scales_count_equally():
    X, Y = made(20, n=80, P=2)
    Y = Y * [1e-6, 1e6] + [0.0, 1e7]
    model = cs.ConsensusRegressor(shared_weights=False).fit(X, Y)
    scores = r2_score(Y, model.loo_predictions_, multioutput="raw_values")
    assert scores.min() > 0.5
    assert {"weight 0", "weight 1"} <= set(model.kernel_weights_.columns)


def test_class_weights_change_decisions():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [180, 20])
    X = cs.Views(a=rng.normal(size=(200, 2)) + 1.2 * y[:, None])
    plain = cs.ConsensusClassifier().fit(X, y)
    balanced = cs.ConsensusClassifier(class_weight="balanced").fit(X, y)
    assert balanced.predict(X)[y == 1].mean() > plain.predict(X)[y == 1].mean() + 0.2
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba(X).argmax(axis=1))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, 2.0])
def test_coverage_is_strictly_between_0_and_1(coverage):
    X, Y = made(n=20)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        cs.ConsensusRegressor().fit(X, Y[:, 0]).predict_interval(X, coverage=coverage)


def test_too_few_samples_for_a_coverage_give_infinite_ends():
    X, Y = made(n=8)
    ends = cs.ConsensusRegressor().fit(X, Y[:, 0]).predict_interval(X, coverage=0.95)
    assert np.isinf(ends).all()


# -- what it promises, simulated
def test_intervals_cover_as_often_as_they_say():
    covered = {0.8: [], 0.95: []}
    for seed in range(25):
        X, Y = made(seed + 100, n=110)
        model = cs.ConsensusRegressor([standardize(RBF("median")), Linear()]).fit(X[:60], Y[:60, 0])
        for coverage, hits in covered.items():
            ends = model.predict_interval(X[60:], coverage=coverage)
            hits.append(np.mean((ends[:, 0] <= Y[60:, 0]) & (Y[60:, 0] <= ends[:, 1])))
    for coverage, hits in covered.items():
        assert coverage - 0.04 < np.mean(hits) < coverage + 0.06


def test_sets_cover_as_often_as_they_say_and_probabilities_are_calibrated():
    covered, sizes, excess = {0.8: [], 0.95: []}, [], []
    for seed in range(25):
        X, Y = made(seed + 200, n=160, noise=0.8)
        y = np.digitize(Y[:, 0], [-0.3, 0.5])
        model = cs.ConsensusClassifier([standardize(RBF("median")), Linear()]).fit(X[:80], y[:80])
        for coverage, hits in covered.items():
            sets = model.predict_set(X[80:], coverage=coverage)
            hits.append(sets[np.arange(80), y[80:]].mean())
            sizes.append(sets.sum(axis=1).mean())
        chosen = model.predict_proba(X[80:])
        excess.append(np.mean(chosen.max(axis=1)) - np.mean(chosen.argmax(axis=1) == y[80:]))
    for coverage, hits in covered.items():
        assert coverage - 0.04 < np.mean(hits) < coverage + 0.06
    assert 1.0 <= np.mean(sizes) < 3.0
    assert abs(np.mean(excess)) < 0.05


def test_the_honest_score_is_honest():
    """Held-out scores are close to scores on new samples; of noise they are at chance, whatever is chosen."""
    differences, noise = [], []
    for seed in range(20):
        X, Y = made(seed + 300, n=260)
        model = cs.ConsensusRegressor().fit(X[:60], Y[:60, 0])
        differences.append(model.loo_score_ - model.score(X[60:], Y[60:, 0]))
        noise.append(cs.ConsensusRegressor().fit(X[:60], np.random.default_rng(seed).normal(size=60)).loo_score_)
    assert abs(np.mean(differences)) < 0.05
    assert np.mean(noise) < 0.02


def test_columns_chosen_by_the_target_do_not_leak():
    """Of noise, the 20 columns with the largest F out of 2,000 predict the samples that chose them."""
    scores, hits = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = cs.Views({v: rng.normal(size=(160, 1000)) for v in "ab"}), rng.permutation(np.tile(["x", "z"], 80))
        model = cs.ConsensusClassifier(prepare="top_k:20").fit(X[:60], y[:60])
        scores.append(model.loo_score_)
        sets = model.predict_set(X[60:], coverage=0.9)
        hits.append(sets[np.arange(100), np.searchsorted(model.classes_, y[60:])].mean())
    assert abs(np.mean(scores) - 0.5) < 0.12
    assert np.mean(hits) > 0.87
    pipeline = make_pipeline(cs.PerView("top_k:20"), cs.ConsensusClassifier())
    with pytest.warns(UserWarning, match="prepared with the target.*Pass the preparation as `prepare=`"):
        pipeline.fit(X[:60], y[:60])
    assert np.isnan(pipeline[-1].loo_score_)
    with pytest.raises(ValueError, match="prepared with the target"):
        pipeline[-1].predict_set(pipeline[:-1].transform(X[60:]))
    assert "No held-out predictions" in str(pipeline[-1].certificate())


@pytest.mark.parametrize("labels", ["numbers", "several numbers", "two", "three", "unlabeled"])
def test_preparations_inside_equal_refits(labels, tmp_path):
    X, Y = made(30, n=50, P=2)
    y = {"numbers": Y[:, 0], "several numbers": Y, "two": np.where(Y[:, 0] > 0, "up", "down")}.get(labels)
    y = np.array(["a", "b", "c"], dtype=object)[np.digitize(Y[:, 0], [-0.3, 0.5])] if y is None else y
    if labels == "unlabeled":
        y[:6] = None
    Model = cs.ConsensusRegressor if "numbers" in labels else cs.ConsensusClassifier
    model = Model([standardize(RBF(0.2)), Linear()], prepare=["standardize", "top_k:2"]).fit(X, y)
    labeled = np.arange(6 if labels == "unlabeled" else 0, 50)
    folds, n = model._prepared.sets.folds, len(labeled)
    for k in range(2):
        rest = np.concatenate([labeled[folds != k], np.setdiff1d(np.arange(50), labeled)])
        steps = cs.PerView(["standardize", "top_k:2"])
        with pytest.warns(UserWarning, match="prepared with the target"):
            alone = Model([standardize(RBF(0.2)), Linear()]).fit(steps.fit_transform(X[rest], y[rest]), y[rest])
        predicted = alone.predict(steps.transform(X[labeled[folds == k]]))
        if "numbers" in labels:
            np.testing.assert_allclose(model.loo_predictions_[folds == k], predicted, atol=1e-8)
        else:
            np.testing.assert_array_equal(model.loo_predictions_[folds == k], predicted)
    assert len(model.loo_predictions_) == n
    assert set(model.view_importances_) == set(X.names)
    assert model.view_decision_function(X).shape[:2] == (50, 3)
    cs.save(model, tmp_path / "model.cons")
    again = cs.load(tmp_path / "model.cons")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    method = "predict_interval" if "numbers" in labels else "predict_set"
    np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))


def test_the_interval_of_the_score_contains_chance():
    above = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = cs.Views(a=rng.normal(size=(60, 4)), b=rng.normal(size=(60, 4)))
        model = cs.ConsensusClassifier([standardize(RBF("median")), Linear()])
        low, high = model.fit(X, rng.permutation(np.tile([0, 1], 30))).loo_interval_
        assert low < model.loo_score_ < high
        above += low > 0.5
    assert above <= 5  # 2.5% of 40, and two standard errors


@pytest.mark.parametrize(("n", "m"), [(20, 2), (20, 8), (60, 12), pytest.param(200, 4, marks=pytest.mark.further)])
def test_the_accuracy_of_noise_is_at_chance(n, m):
    scores = []
    for seed in range(24):
        rng = np.random.default_rng([seed, n, m])
        X = cs.Views({f"v{k}": rng.normal(size=(n, 5)) for k in range(m)})
        scores.append(cs.ConsensusClassifier().fit(X, rng.permutation(np.tile(["a", "b"], n // 2))).loo_score_)
    assert abs(np.mean(scores) - 0.5) < 0.03 + 2 * np.std(scores) / 24**0.5


@pytest.mark.parametrize(
    ("n", "m", "missing"), [(20, 4, 0.5), (30, 6, 0.6), pytest.param(150, 6, 0.8, marks=pytest.mark.further)]
)
def test_intervals_cover_where_many_views_are_missing(n, m, missing):
    hits = []
    for seed in range(20):
        rng = np.random.default_rng([seed, n])
        mask = rng.random((n + 60, m)) >= missing
        bare = ~mask.any(axis=1)
        mask[bare, rng.integers(m, size=bare.sum())] = True
        h = rng.normal(size=n + 60)
        X = {f"v{k}": rng.normal(size=(n + 60, 3)) + h[:, None] * (k + 1) / 2 for k in range(m)}
        X, y = cs.Views(X, mask=mask), np.sin(2 * h) + 0.3 * rng.normal(size=n + 60)
        ends = cs.ConsensusRegressor().fit(X[:n], y[:n]).predict_interval(X[n:], coverage=0.9)
        hits.append(np.mean((ends[:, 0] <= y[n:]) & (y[n:] <= ends[:, 1])))
    assert np.mean(hits) > 0.87


def test_intervals_cover_new_groups_of_other_sizes():
    hits = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = [*rng.permutation([1] * 9 + [15] * 3), *[2] * 30]
        groups = np.repeat(np.arange(len(sizes)), sizes)
        centers, shift = rng.normal(size=(42, 3)), rng.normal(size=42)
        X = cs.Views(a=centers[groups] + 0.2 * rng.normal(size=(len(groups), 3)))
        y = centers[groups, 0] + shift[groups] + 0.2 * rng.normal(size=len(groups))
        ends = cs.ConsensusRegressor().fit(X[:54], y[:54], groups=groups[:54]).predict_interval(X[54:], coverage=0.9)
        hits.append(np.mean((ends[:, 0] <= y[54:]) & (y[54:] <= ends[:, 1])))
    assert np.mean(hits) > 0.87


def test_ends_of_intervals_are_in_order():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    y = A[:, 0] + 0.3 * rng.normal(size=60)
    ends = cs.ConsensusRegressor().fit(A[:8], y[:8]).predict_interval(A[8:], coverage=0.1)
    assert (ends[:, 0] <= ends[:, 1]).all()


def test_weights_of_views_say_how_much_they_move_the_prediction():
    """Coefficients of a kernel with a large penalty are large, and its outputs are small."""
    for seed in (0, 6, 7):
        rng = np.random.default_rng(seed)
        h = rng.normal(size=200)
        y = h + 0.7 * rng.normal(size=200) > 0
        good, fair = h[:, None] + rng.normal(size=(200, 20)), h[:, None] + 3 * rng.normal(size=(200, 20))
        model = cs.ConsensusClassifier().fit({"good": good, "fair": fair, "noise": rng.normal(size=(200, 200))}, y)
        assert model.view_weights_[2] < 0.25 < 0.5 < model.view_weights_[0]


def test_a_kernel_without_features_leaves_the_mean():
    rng = np.random.default_rng(0)
    X = cs.Views({"a": rng.normal(size=(12, 2)), "d": np.zeros((12, 12))}, precomputed="d")
    y = X["a"][:, 0]
    kernels = {"a": "linear", "d": "precomputed"}
    model = cs.ConsensusRegressor(kernel=kernels, n_components=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert fit_features(np.empty((12, 0)), y[:, None], np.ones(12), singles(12)) is None
