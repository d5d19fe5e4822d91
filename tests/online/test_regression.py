"""Passive-aggressive regression against naive twins, other programs, its bounds, and however a stream is cut."""

import numpy as np
import pytest
import sklearn
from online_cases import (
    as_sparse,
    block_matrices,
    concatenated,
    features,
    grams,
    identity,
    kernel_blocks,
    late_stream,
    stream,
    with_ones,
)
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.utils.fixes import parse_version

import consilience as cs
import reference
from consilience import Views
from consilience.kernels import RBF, Linear
from consilience.solvers.certificates import loss_bound

Regressor = cs.PassiveAggressiveRegressor
DUAL = 1.0 * Linear()  # not recognized as linear, so that samples are kept in place of weights
pytestmark = pytest.mark.filterwarnings("ignore:The budget of")


def numbers(seed, n_outputs=1, **more):
    """A stream of views, and noisy numbers that depend on all of them."""
    X, _ = stream(seed, **more)
    own = np.random.default_rng(seed + 100)
    R = concatenated(X)
    Y = R @ own.normal(size=(R.shape[1], n_outputs)) + 0.5 * own.normal(size=(len(R), n_outputs))
    return X, Y[:, 0] if n_outputs == 1 else Y


def limited(C, up=1.0, down=1.0, curvature=1.0):
    return lambda gap, size, above: min(C * (up if above else down), gap / (curvature * size))


def softened(C, curvature=1.0):
    return lambda gap, size, above: gap / (curvature * size + 1 / (2 * C))


TWINS = {
    "epsilon": (Regressor(C=0.3, fit_intercept=False), concatenated, identity, 0.1, limited(0.3), 1),
    "intercept": (Regressor(C=0.3), lambda X: concatenated(X, True), identity, 0.1, limited(0.3), 1),
    "no limit": (Regressor(C=np.inf, fit_intercept=False), concatenated, identity, 0.1, limited(np.inf), 1),
    "squared epsilon": (
        Regressor(loss="squared_epsilon_insensitive", epsilon=0.3, C=0.2), lambda X: concatenated(X, True), identity,
        0.3, softened(0.2), 1,
    ),
    "absolute": (Regressor(loss="absolute", C=0.2), lambda X: concatenated(X, True), identity, 0, limited(0.2), 1),
    "squared": (Regressor(loss="squared", fit_intercept=False), concatenated, identity, 0, softened(1.0), 1),
    "quantile": (
        Regressor(loss="quantile", quantile=0.8, C=0.2), lambda X: concatenated(X, True), identity, 0,
        limited(0.2, 0.8, 0.2), 1,
    ),
    "kernel": (
        Regressor(RBF(0.2), C=0.5, fit_intercept=False), lambda X: features(sum(grams(X, RBF(0.2)))), identity, 0.1,
        limited(0.5), 1,
    ),
    "factors": (
        Regressor(p=2.5, C=0.3, fit_intercept=False), block_matrices, reference.matrix_link(2.5), 0.1,
        limited(0.3, curvature=4), 2.5,
    ),
    "factors, intercepts, squared": (
        Regressor(p=2, loss="squared"), lambda X: block_matrices(with_ones(X)), reference.matrix_link(2), 0,
        softened(1.0, curvature=3), 2,
    ),
    "factors, kernels": (
        Regressor(RBF(0.2), p=2, C=0.5), lambda X: kernel_blocks(X, lambda A: RBF(0.2)(A) + 1),
        reference.matrix_link(2), 0.1, limited(0.5, curvature=3), 2,
    ),
}  # fmt: skip
ALL = {
    **{name: case[0] for name, case in TWINS.items()},
    "budget": Regressor(RBF(0.2), budget=15),
    "projected": Regressor(RBF(0.2), threshold=0.3),
    "budget, factors": Regressor(RBF(0.2), p=2, budget=15),
    "projected, budget": Regressor(RBF(0.2), threshold=0.1, budget=12),
    "standardized": Regressor(prepare_target="standardize"),
    "standardized, squared, kernel": Regressor(RBF(0.2), loss="squared", prepare_target="standardize"),
}


@pytest.mark.parametrize("form", ["dense", "sparse", "missing"])
@pytest.mark.parametrize("name", TWINS)
def test_equals_its_twin_prediction_by_prediction(name, form):
    estimator, rows, link, epsilon, step, p = TWINS[name]
    X, y = numbers(3, missing=form == "missing")
    R = rows(X)
    scores, hypotheses = reference.regression(R, y, link, epsilon, step, p)
    given = as_sparse(X) if form == "sparse" else X
    made = clone(estimator).set_params(average=False).predict_then_learn(given, y)
    np.testing.assert_allclose(made.predicted, scores, atol=1e-7)
    np.testing.assert_array_equal(made.y, y)
    t = np.arange(1.0, len(y) + 1)
    for average, used, weights in (
        (False, hypotheses[-1:], None), (True, hypotheses[:-1], None), ("with_last", hypotheses, None),
        ("recent", hypotheses[:-1], t * (t + 1) * (t + 2)),
    ):  # fmt: skip
        model = clone(estimator).set_params(average=average).partial_fit(given, y)
        mean = np.average(used, axis=0, weights=weights)
        np.testing.assert_allclose(model.predict(given), [np.sum(mean * x) for x in R], atol=1e-7)
        losses = model._losses(y, scores)
        assert model.total_loss_ == pytest.approx(losses.sum())


def test_scores_of_means_are_those_of_the_hypotheses_so_far():
    X, y = numbers(1)
    for estimator in (Regressor(), Regressor(RBF(0.2)), Regressor(p=2), Regressor(RBF(0.2), threshold=0.2)):
        for average in (True, "with_last", "recent"):
            model, single = (clone(estimator).set_params(average=average) for _ in range(2))
            made = model.predict_then_learn(X, y)
            for i in range(len(y)):
                before = single.predict(X[[i]])[0] if i else 0.0
                assert made.predicted[i] == pytest.approx(before, abs=1e-9)
                single.partial_fit(X[[i]], y[[i]])
            mean = np.mean(model._losses(y, made.predicted))
            np.testing.assert_allclose(model.loss_curve_[-1], [len(y), mean])


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.8"), reason="the rates are those of 1.8")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("loss", "rate"), [("epsilon_insensitive", "pa1"), ("squared_epsilon_insensitive", "pa2")])
def test_one_view_is_that_of_scikit_learn(loss, rate, fit_intercept):
    X, y = numbers(4, n=300, widths=(6,))
    ours = Regressor(loss=loss, C=0.2, average=False, fit_intercept=fit_intercept, shuffle=False, max_iter=3).fit(X, y)
    theirs = SGDRegressor(
        loss="epsilon_insensitive",
        penalty=None,
        learning_rate=rate,
        eta0=0.2,
        fit_intercept=False,
        shuffle=False,
        max_iter=3,
        tol=None,
    ).fit(concatenated(X, fit_intercept), y)
    weights = np.append(ours.intercept_, ours.coef_["v0"]) if fit_intercept else ours.coef_["v0"]
    np.testing.assert_allclose(weights, theirs.coef_, atol=1e-10)


@pytest.mark.parametrize("average", [False, True, "with_last"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "quantile"])
def test_a_linear_kernel_is_linear_and_outputs_are_independent(loss, average):
    X, Y = numbers(2, n=150, n_outputs=3, missing=True)
    for p in (1.0, 2.0):
        one, dual = (Regressor(k, loss=loss, p=p, average=average).partial_fit(X, Y) for k in ("linear", DUAL))
        np.testing.assert_allclose(dual.predict(X), one.predict(X), atol=1e-8)
        np.testing.assert_allclose(dual.intercept_, one.intercept_, atol=1e-8)
        each = [clone(one).partial_fit(X, Y[:, t]) for t in range(3)]
        np.testing.assert_allclose(one.predict(X), np.column_stack([own.predict(X) for own in each]), atol=1e-10)
        assert one.total_loss_ == pytest.approx(sum(own.total_loss_ for own in each))
    for kernel in (RBF(0.2), "linear"):
        both = Regressor(kernel, threshold=0.2, average=average).partial_fit(X, Y[:, :2])
        assert both.predict(X).shape == (150, 2)
        assert both.predict_one({"v0": X["v0"][0]}).shape == (2,)


# -- however a stream is cut
def with_gaps(X, y):
    y = y.astype(float)
    y[5::11] = np.nan
    return X, y


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_the_state_does_not_depend_on_how_a_stream_is_cut(name, average):
    late = late_stream(0)[0]
    streams = [with_gaps(*numbers(7, missing=True)), (late, concatenated(late).sum(axis=1))]
    for X, y in streams:
        whole = clone(ALL[name]).set_params(average=average).partial_fit(X, y)
        for size in (7, 30) if average else (1, 7, 30):
            parts = clone(whole)
            for start in range(0, len(y), size):
                parts.partial_fit(X[start : start + size], y[start : start + size])
            same(parts, whole, X)
        single = clone(whole)
        for i in range(len(y)):
            row = {v: X[v][i] for v in X.names if X.present(v)[i]}
            single.learn_one(row, y[i])
            if i % 13 == 12:
                assert single.predict_one(row) == pytest.approx(single.predict(X[[i]][list(row)])[0], abs=1e-9)
        same(single, whole, X)


def same(one, other, X):
    assert one.n_samples_seen_ == other.n_samples_seen_
    assert one.n_updates_ == other.n_updates_
    np.testing.assert_allclose(one.total_loss_, other.total_loss_)
    np.testing.assert_allclose(one.loss_curve_, other.loss_curve_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_a_refused_chunk_changes_nothing(name):
    X, y = numbers(0, n=40)
    model = clone(ALL[name]).partial_fit(X, y)
    before, loss = model.predict(X), model.total_loss_
    for bad, message in (
        (lambda: model.partial_fit(X, np.full(40, np.inf)), "contains infinity"),
        (lambda: model.partial_fit(X, ["a"] * 40), "y must be numbers"),
        (lambda: model.partial_fit(X, np.ones((40, 2))), "y has 2 columns; PassiveAggressiveRegressor began with 1"),
        (lambda: model.partial_fit(X, y, classes=[0, 1]), "`classes` are for classification"),
        (lambda: model.partial_fit({"v0": X["v0"][:, :2]}, y), "columns"),
    ):
        with pytest.raises(ValueError, match=message):
            bad()
    assert model.total_loss_ == loss
    np.testing.assert_array_equal(model.predict(X), before)


def test_samples_without_a_target_or_a_weight_are_skipped():
    X, y = numbers(5, n=60)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    gaps = np.where(weights == 0, np.nan, y)
    expected = Regressor(loss="squared").partial_fit(X[weights > 0], y[weights > 0])
    for other in (
        Regressor(loss="squared").partial_fit(X, y, None, weights),
        Regressor(loss="squared").partial_fit(X, gaps),
    ):
        np.testing.assert_allclose(other.predict(X), expected.predict(X))
    single = clone(expected)
    for i in range(60):
        single.learn_one({v: X[v][i] for v in X.names}, None if i % 3 == 0 else y[i])
    np.testing.assert_allclose(single.predict(X), expected.predict(X))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "quantile"])
def test_a_weight_of_all_samples_is_a_factor_of_the_limit(loss):
    X, y = numbers(6, n=80)
    for kernel in ("linear", RBF(0.2)):
        for more in ({}, {"threshold": 0.2}):
            one = Regressor(kernel, loss=loss, C=0.1, **more).partial_fit(X, y, None, np.full(80, 3.0))
            np.testing.assert_allclose(one.predict(X), clone(one).set_params(C=0.3).partial_fit(X, y).predict(X))


# -- projections
@pytest.mark.parametrize(("threshold", "budget"), [(0.0, 1000), (0.3, 1000), (0.6, 1000), (0.1, 8)])
def test_projections_equal_their_twin(threshold, budget):
    for seed in range(3):
        X, y = numbers(seed, n=60, widths=(3,))
        scores, S, alpha = reference.projected_regression(RBF(0.3)(X["v0"]), y, 0.1, threshold, budget, 0.7)
        model = Regressor(RBF(0.3), C=0.7, fit_intercept=False, threshold=threshold, budget=budget, average=False)
        np.testing.assert_allclose(model.predict_then_learn(X, y).predicted, scores, atol=1e-6)
        np.testing.assert_array_equal(model.support_, S)
        np.testing.assert_allclose(model.dual_coef_, alpha[S], atol=1e-6)


def test_projections_without_a_threshold_are_the_kernel_estimator():
    X, y = numbers(8, n=100)
    plain, projected = (Regressor(RBF(0.5), threshold=t).partial_fit(X, y) for t in (None, 0.0))
    np.testing.assert_allclose(projected.predict(X), plain.predict(X), atol=1e-6)
    line = Regressor(Linear(), threshold=0.0, fit_intercept=False).partial_fit(X["v0"], y)
    assert len(line.support_) == 4  # the space has four dimensions


def test_a_budget_forgets_the_oldest():
    X, y = numbers(3, n=120)
    K, kept = sum(grams(X, RBF(0.2))) + 1, {}
    for i, target in enumerate(y):
        error = target - sum(a * K[s, i] for s, a in kept.items())
        if abs(error) > 0.1:
            kept[i] = np.sign(error) * min(1.0, (abs(error) - 0.1) / K[i, i])
            kept = dict(list(kept.items())[-12:])
    model = Regressor(RBF(0.2), budget=12).partial_fit(X, y)
    np.testing.assert_array_equal(model.support_, list(kept))
    np.testing.assert_allclose(model.dual_coef_, list(kept.values()))


@pytest.mark.parametrize("kernel", [DUAL, RBF(0.2)], ids=str)
def test_a_budget_with_factors_leaves_what_is_made_of_the_samples_kept(kernel):
    X, y = numbers(3, n=150)
    model = Regressor(kernel, p=2.5, budget=20, fit_intercept=False, average=False).partial_fit(X, y)
    assert len(model.support_) == 20
    assert model.n_dropped_ == model.n_updates_ - 20
    K, S, alpha = grams(X, kernel), model.support_, model.dual_coef_
    squares = np.array([alpha @ own[np.ix_(S, S)] @ alpha for own in K])
    factors = (squares / np.sum(squares**2.5) ** (1 / 2.5)) ** 1.5
    np.testing.assert_allclose(model.view_weights_, factors, atol=1e-8)
    scores = sum(f * own[:, S] @ alpha for f, own in zip(factors, K, strict=True))
    np.testing.assert_allclose(model.predict(X), scores, atol=1e-8)


# -- targets that are standardized
@pytest.mark.parametrize("average", [False, True])
def test_standardized_targets_follow_the_stream(average):
    X, Y = numbers(2, n=60, n_outputs=2)
    Y = Y * [3.0, 1e-3] + [1e5, 0.0]
    one, plain = (Regressor(prepare_target=how, average=average) for how in ("standardize", None))
    made = one.predict_then_learn(X, Y)
    for i, y in enumerate(Y):
        before = Y[:i]
        mean, deviation = (before.mean(axis=0), before.std(axis=0)) if i else (0.0, 1.0)
        deviation = np.where(deviation == 0, 1.0, deviation)
        score = plain.predict(X[[i]])[0] if i else 0.0
        np.testing.assert_allclose(made.predicted[i], mean + deviation * score, rtol=1e-9)
        known = Y[: i + 1]
        spread = known.std(axis=0)
        plain.partial_fit(X[[i]], ((y - known.mean(axis=0)) / np.where(spread == 0, 1.0, spread))[None])
    np.testing.assert_array_equal(made.y, Y)
    assert one.total_loss_ == pytest.approx(plain.total_loss_)
    row = {v: X[v][3] for v in X.names}
    np.testing.assert_allclose(one.predict_one(row), one.predict(X[[3]])[0])
    np.testing.assert_allclose(one.predict(X), Y.mean(axis=0) + Y.std(axis=0) * plain.predict(X), rtol=1e-9)


def test_standardized_targets_have_no_scale_and_no_origin():
    X, y = numbers(0, n=200)
    for estimator in (Regressor(), Regressor(RBF(0.2)), Regressor(RBF(0.2), threshold=0.2), Regressor(p=2)):
        one, other = (
            clone(estimator).set_params(prepare_target="standardize").partial_fit(X, s * y + b)
            for s, b in ((1.0, 0.0), (1e-3, 1e4))
        )
        np.testing.assert_allclose((other.predict(X) - 1e4) / 1e-3, one.predict(X), atol=1e-5)
    assert one.score(X, y) > 0.7
    assert clone(estimator).partial_fit(X, 1e-3 * y + 1e4).score(X, 1e-3 * y + 1e4) < 0


def test_bounds_of_standardized_targets_are_for_a_stream():
    X, y = numbers(1, n=80)
    model = Regressor(prepare_target="standardize").partial_fit(X, 1e3 + y)
    assert model.total_loss_ <= model.certificate(X, 1e3 + y).bound < 1000
    assert clone(model).fit(X, y).certificate(X, y).bound is None
    constant = clone(model).fit(X, np.full(80, 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0)


# -- what is learned
def test_a_quantile_is_that_of_the_targets():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 1))
    y = x[:, 0] + rng.normal(size=6000)
    for q in (0.1, 0.5, 0.9):
        model = Regressor(loss="quantile", quantile=q, C=0.03).partial_fit(x, y)
        assert np.mean(y < model.predict(x)) == pytest.approx(q, abs=0.03)


def test_factors_find_the_view_that_matters():
    X, _ = stream(0, n=400, widths=(3, 3, 3))
    model = Regressor(p=3, C=0.1).partial_fit(X, X["v1"].sum(axis=1))
    assert model.view_weights_.argmax() == 1
    assert model.view_weights_[[0, 2]].max() < 0.2 * model.view_weights_[1]
    np.testing.assert_array_equal(Regressor().partial_fit(X, X["v1"][:, 0]).view_weights_, 1)


def test_squared_losses_do_not_depend_on_the_scale_of_the_targets():
    X, y = numbers(0, n=100)
    for loss in ("squared", "squared_epsilon_insensitive"):
        one, other = (Regressor(loss=loss, epsilon=0.1 * s).partial_fit(X, s * y) for s in (1.0, 1e4))
        np.testing.assert_allclose(other.predict(X), 1e4 * one.predict(X))


@pytest.mark.parametrize("average", [False, True, "recent"])
@pytest.mark.parametrize("kernel", ["linear", RBF(0.2)], ids=str)
def test_parts_of_the_views_add_up_to_the_prediction(kernel, average):
    X, y = numbers(1, n=50, missing=True)
    model = Regressor(kernel, p=2, average=average, fit_intercept=False)
    made = model.predict_then_learn(X, y, view_margins=True)
    np.testing.assert_allclose(np.nansum(made.view_margins, axis=1), made.predicted, atol=1e-9)
    assert made.view_names == X.names
    joint = Regressor(average=average, fit_intercept=False).predict_then_learn(X, y, view_margins=True)
    np.testing.assert_allclose(np.nansum(joint.view_margins, axis=1), joint.predicted, atol=1e-9)


def test_fit_passes_over_the_samples_until_nothing_changes():
    X, _ = stream(0, n=60)
    y = X["v0"].sum(axis=1)
    model = Regressor(C=np.inf, epsilon=0.5, max_iter=500, random_state=0, average=False).fit(X, y)
    assert model.converged_
    assert np.abs(model.predict(X) - y).max() <= 0.5 + 1e-8
    assert model.n_samples_seen_ == 60 * model.n_iter_ < 500 * 60


def test_losses_take_the_place_of_mistakes():
    X, y = numbers(0)
    model = Regressor().fit(X, y)
    for name in ("n_mistakes_", "n_errors_", "error_curve_"):
        with pytest.raises(AttributeError, match="counts losses, not mistakes: see `total_loss_`, `loss_curve_`"):
            getattr(model, name)
    assert not hasattr(model, "predict_proba")
    assert "mean loss" in model._repr_html_()


REFUSED = {
    r"p=2 gives each view a factor, .* `threshold` is 0.1": {"p": 2, "threshold": 0.1},
    r"p=2 gives each view a factor, .* `combine` is 'product'": {"p": 2, "kernel": "rbf", "combine": "product"},
    "'loss' parameter of PassiveAggressiveRegressor": {"loss": "huber"},
    "'quantile' parameter of PassiveAggressiveRegressor": {"quantile": 1.0},
    "'average' parameter of PassiveAggressiveRegressor": {"average": "voted"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_parameters_are_refused_in_a_sentence(message):
    X, y = numbers(0)
    with pytest.raises(ValueError, match=message):
        Regressor(**REFUSED[message]).partial_fit(X, y)


def test_what_the_state_depends_on_stays():
    X, y = numbers(0)
    for change in ({"loss": "squared"}, {"threshold": 0.3}, {"p": 2.0}):
        model = Regressor(RBF(0.2)).partial_fit(X, y)
        with pytest.raises(ValueError, match=f"`{next(iter(change))}` "):
            model.set_params(**change).partial_fit(X, y)
    with pytest.raises(TypeError, match="must be an online estimator, such as Projectron"):
        cs.MultiCueClassifier(estimator=Regressor()).partial_fit(X, y > 0)


# -- bounds
def test_bounds_hold_on_thousands_of_streams():
    rng = np.random.default_rng(0)
    for number in range(3000):
        n, C = int(rng.integers(1, 12)), float(10 ** rng.uniform(-2, 1.5))
        p = (1.0, 1.5, 3.0)[number % 3]
        R = rng.normal(size=(n, 2, 2)) * 10 ** rng.uniform(-1, 1)
        R[:, 0, 1] = R[:, 1, 0] = 0  # views in rows of their own
        U, q = np.diag(rng.normal(size=2)), (0.5, 0.2, 0.9)[number % 3]
        target = np.sum(R * U, axis=(1, 2)) + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=n)
        epsilon = float(rng.choice([0.0, 0.1]))
        sizes = np.sum(np.sum(R**2, axis=1) ** p, axis=1) ** (0.5 / p)
        norm = np.sum(np.abs(np.diag(U)) ** (2 * p / (2 * p - 1))) ** ((2 * p - 1) / (2 * p))  # conjugate to 2p
        best, given = target - np.sum(R * U, axis=(1, 2)), {"C": C, "p": 2 * p}
        for reach, steps, slopes, more in (
            (epsilon, limited(C, curvature=2 * p - 1), (1, 1), {}),
            (epsilon, softened(C, curvature=2 * p - 1), (1, 1), {"squared": True}),
            (epsilon, limited(np.inf, curvature=2 * p - 1), (1, 1), {"C": np.inf}),
            (0.0, limited(C, q, 1 - q, 2 * p - 1), (q, 1 - q), {"slope": max(q, 1 - q)}),
        ):
            scores, _ = reference.regression(R, target, reference.matrix_link(p), reach, steps, p)
            losses, least = (
                slopes[0] * np.maximum(e - reach, 0) + slopes[1] * np.maximum(-e - reach, 0)
                for e in (target - scores, best)
            )
            summed = np.sum(losses ** (2 if "squared" in more else 1))
            assert summed <= loss_bound(least, sizes, norm, **{**given, **more}) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", TWINS)
def test_certificates_bound_the_loss(name):
    for seed in range(3):
        X, y = numbers(seed, n=80, missing=True)
        model = clone(TWINS[name][0]).partial_fit(X, y)
        proof = model.certificate(X, y)
        assert proof.total_loss == model.total_loss_ <= proof.bound
        assert str(proof).startswith(
            f"Summed loss {model.total_loss_:.6g} over 80 samples, at most {proof.bound:.6g} by"
        )
        given = model.certificate(X, y, comparator=np.random.default_rng(seed).normal(size=80))
        assert given.bound >= model.total_loss_
        twice = clone(model).set_params(max_iter=2, random_state=0).fit(X, y)
        assert twice.total_loss_ <= twice.certificate(X, y).bound


def test_certificates_of_several_outputs_are_sums():
    X, Y = numbers(1, n=80, n_outputs=2)
    proofs = [Regressor().partial_fit(X, Y[:, t]).certificate(X, Y[:, t]) for t in range(2)]
    both = Regressor().partial_fit(X, Y).certificate(X, Y)
    assert both.bound == pytest.approx(sum(proof.bound for proof in proofs))
    with pytest.raises(ValueError, match="learned 80 samples, and 30 are given"):
        Regressor().partial_fit(X, Y).certificate(X[:30], Y[:30])


def test_where_no_bound_is_known_there_is_none():
    X, y = numbers(1, n=80)
    weighted = Regressor().partial_fit(X, y, None, np.linspace(0.5, 1, 80))
    cases = [(weighted, (X, y)), (Regressor().partial_fit(X, y), ())]
    with pytest.warns(UserWarning, match="budget"):
        cases += [(Regressor(RBF(0.2), budget=9).partial_fit(X, y), (X, y))]
    cases += [(Regressor(RBF(0.2), threshold=0.1).partial_fit(X, y), (X, y))]
    for model, given in cases:
        proof = model.certificate(*given)
        assert proof.bound is None
        assert str(proof).startswith(f"Summed loss {model.total_loss_:.6g} over 80 samples. Learned")


def test_views_come_late_and_models_go_on_from_files(tmp_path):
    X, y = late_stream(1)[0], np.random.default_rng(0).normal(size=80)
    for model in (Regressor(), Regressor(RBF(0.3), p=2), Regressor(RBF(0.3), threshold=0.2)):
        model.partial_fit(X[:50], y[:50])
        cs.save(model, tmp_path / "model.cons")
        again = cs.load(tmp_path / "model.cons").partial_fit(X[50:], y[50:])
        np.testing.assert_array_equal(again.predict(X), model.partial_fit(X[50:], y[50:]).predict(X))
        assert again.total_loss_ == model.total_loss_


def test_single_precision_and_forgetting():
    X, y = numbers(2, n=80)
    single = Views({v: X[v].astype(np.float32) for v in X.names})
    model = Regressor().partial_fit(single, y)
    assert model._machine.V.dtype == np.float32
    np.testing.assert_allclose(model.predict(X), Regressor().partial_fit(X, y).predict(X), rtol=1e-3, atol=1e-3)
    for some in (model, Regressor(RBF(0.2)).partial_fit(X, y), Regressor(RBF(0.2), threshold=0.1).partial_fit(X, y)):
        assert not some.forget(0.0).predict(X).any()


@pytest.mark.parametrize("n_outputs", [1, 11])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared"])
def test_sums_of_losses_have_the_same_bits_however_a_stream_is_cut(loss, n_outputs):
    rng = np.random.default_rng(0)
    X, Y = {"a": rng.normal(size=(300, 3))}, rng.normal(size=(300, n_outputs))
    found = []
    for size in (1, 7, 300):
        model = cs.PassiveAggressiveRegressor(loss=loss, average=True)
        for start in range(0, 300, size):
            model.partial_fit({"a": X["a"][start : start + size]}, Y[start : start + size])
        found.append((model.total_loss_, model._predicted_loss, model.loss_curve_.tobytes()))
    single = cs.PassiveAggressiveRegressor(loss=loss, average=True)
    for row, y in zip(X["a"], Y, strict=True):
        single.learn_one({"a": row}, y)
    found.append((single.total_loss_, single._predicted_loss, single.loss_curve_.tobytes()))
    assert len(set(found)) == 1
