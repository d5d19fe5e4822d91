"""Predictions of a stream before each sample is learned; probabilities, weights, preparation, forgetting."""

import numpy as np
import pytest
from online_cases import ALL, in_chunks, stream
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import consilience as cs
import reference
from consilience import PerView, Views
from consilience.kernels import RBF
from consilience.online._calibration import Calibration

VOTED = ("perceptron", "3-norm", "PA-I", "kernel perceptron", "matrix 2", "orthogonal, kernels")
AVERAGED = [
    (name, average)
    for name, model in ALL.items()
    for average in (False, True, "recent", "with_last", *(["voted"] if name in VOTED else []))
]


def leads(scores):
    """Positions of the leading classes, -1 for ties."""
    if scores.ndim == 1:
        return np.where(np.abs(scores) < 1e-9, -1, scores > 0).astype(int)
    top = np.sort(scores, axis=1)
    return np.where(top[:, -1] - top[:, -2] < 1e-9, -1, scores.argmax(axis=1))


# -- predictions
@pytest.mark.parametrize(("name", "average"), AVERAGED)
def test_predictions_are_those_of_the_hypothesis_before_each_sample(name, average):
    """The twin asks `decision_function` before every sample; every second case has three classes."""
    n_classes = 2 + AVERAGED.index((name, average)) % 2
    X, y = stream(4, n=45, n_classes=n_classes, missing=True)
    estimator = clone(ALL[name]).set_params(average=average)
    classes = np.arange(n_classes)
    model = clone(estimator).partial_fit(X[:1], y[:1], classes=classes)
    expected, likely = [], []
    for i in range(1, len(y)):
        expected.append(leads(model.decision_function(X[i : i + 1]))[0])
        likely.append(model.predict_proba(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    made = clone(estimator).predict_then_learn(X, y, classes=classes)
    np.testing.assert_array_equal(made.predicted[1:], expected)
    np.testing.assert_allclose(made.probabilities[1:], likely, atol=1e-7)
    np.testing.assert_array_equal(made.y, y)
    assert model.n_errors_ == made.n_errors
    assert average or model.n_errors_ == model.n_mistakes_


@pytest.mark.parametrize("name", [name for name in ALL if "budget" not in name and "cues" not in name])
def test_recent_means_weigh_hypotheses_by_their_time(name):
    """The twin adds up the scores of the last hypothesis before each sample, with the weights t(t+1)(t+2)."""
    X, y = stream(8, n=40)
    last = clone(ALL[name]).partial_fit(X[:1], y[:1], classes=(0, 1))
    sums = np.zeros(40)
    for t in range(2, 41):
        sums += t * (t + 1) * (t + 2) * last.decision_function(X)
        last.partial_fit(X[t - 1 : t], y[t - 1 : t])
    recent = clone(ALL[name]).set_params(average="recent").partial_fit(X, y, classes=(0, 1))
    expected = sums / (40 * 41 * 42 * 43 / 4)  # the first hypothesis is 0
    np.testing.assert_allclose(recent.decision_function(X), expected, atol=1e-7 * max(1.0, np.abs(expected).max()))


def test_late_classes_are_never_predicted_before_they_join():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 3))
    y = np.array(["c"] * 10 + ["a", "c"] * 5 + ["b", "a", "c", "d"] * 5)
    model = cs.OnlinePerceptron()
    made = model.predict_then_learn({"v": A}, y)
    assert made.classes.tolist() == ["a", "b", "c", "d"]
    first = {label: int(np.flatnonzero(y == label)[0]) for label in "abcd"}
    for i in range(40):
        known = [k for k, label in enumerate("abcd") if first[label] < i]
        assert made.predicted[i] in [-1, *known]
        assert (made.probabilities[i, [k for k in range(4) if k not in known]] == 0).all()
        assert made.probabilities[i].sum() == pytest.approx(1.0 if i else 0.0)
    assert made.predicted[0] == -1  # nothing is known
    assert (made.predicted[1:10] == 2).all()  # the only class so far
    assert model.n_errors_ == (made.predicted != made.y).sum()


def test_rows_without_a_label_or_a_weight_are_left_out():
    X, y = stream(1, n=20)
    labels = [None if i % 5 == 0 else int(c) for i, c in enumerate(y)]
    weights = np.where(np.arange(20) % 5 == 1, 0.0, 1.0)
    made = cs.OnlinePerceptron().predict_then_learn(X, labels, weights)
    assert made.rows.tolist() == [i for i in range(20) if i % 5 > 1]
    assert made.sample_weight.tolist() == [1.0] * 12
    assert len(made.y) == len(made.predicted) == 12


@pytest.mark.parametrize(
    "estimator", [cs.OnlinePerceptron(), cs.OrthogonalPerceptron(), cs.OrthogonalPerceptron(RBF(0.3)),
                  cs.MatrixPerceptron(), cs.MatrixPerceptron(RBF(0.3)), cs.PassiveAggressive()],
)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True, "recent"])
def test_the_parts_of_the_views_add_up_to_the_margin(estimator, n_classes, average):
    """With averages, the rival is that of the last hypothesis, so only two classes have one margin."""
    X, y = stream(2, n=40, n_classes=n_classes, missing=True)
    estimator = clone(estimator).set_params(fit_intercept=False, average=average)
    model = estimator.partial_fit(X[:30], y[:30], classes=range(n_classes))
    scores = model.decision_function(X[30:31])[0]
    made = model.predict_then_learn(X[30:31], y[30:31], view_margins=True)
    c = int(y[30])
    margin = scores * (2 * c - 1) if n_classes == 2 else scores[c] - np.delete(scores, c).max()
    assert made.view_names == X.names
    if n_classes == 2 or not average:
        assert np.nansum(made.view_margins[0]) == pytest.approx(margin)
    assert np.isnan(made.view_margins[0]).tolist() == [not X.present(name)[30] for name in X.names]


# -- weights
@pytest.mark.parametrize("name", ["perceptron", "3-norm", "PA-I", "PA-II", "kernel perceptron", "matrix 2"])
def test_weights_are_factors_of_the_steps(name):
    X, y = stream(3, n=60)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.2, 3.0, size=60)
    scale = {"eta0": 2.0} if "PA" not in name else {"C": 2.0 * ALL[name].C}
    one = clone(ALL[name]).partial_fit(X, y, sample_weight=np.full(60, 2.0))
    other = clone(ALL[name]).set_params(**scale).partial_fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)
    once = clone(ALL[name]).partial_fit(X, y, sample_weight=weights)
    many = clone(ALL[name])
    for i in range(60):
        many.learn_one({v: X[v][i] for v in X.names}, y[i], weights[i])
    np.testing.assert_allclose(once.decision_function(X), many.decision_function(X), atol=1e-8)
    assert once.n_errors_ == many.n_errors_
    assert once.certificate(X, y).bound is None  # the bounds are for steps of one length


def test_a_weight_of_zero_skips_the_sample_in_fit_too():
    X, y = stream(3, n=60)
    keep = np.arange(60) % 3 > 0
    one = cs.PassiveAggressive(shuffle=False).fit(X, y, sample_weight=keep.astype(float))
    other = cs.PassiveAggressive(shuffle=False).fit(X[keep], y[keep])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("weights", [[1.0], [-1.0] * 20, [np.nan] * 20])
def test_wrong_weights_are_refused_before_anything_is_learned(weights):
    X, y = stream(1, n=20)
    model = cs.OnlinePerceptron().partial_fit(X, y)
    before = model.n_samples_seen_
    with pytest.raises(ValueError, match="sample_weight must"):
        model.partial_fit(X, y, sample_weight=weights)
    assert model.n_samples_seen_ == before


# -- probabilities
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_running_calibration_equals_its_twin(n_outputs):
    rng = np.random.default_rng(n_outputs)
    n = 4500  # of which the last 500 are learned in part
    scores = rng.normal(size=(n, n_outputs)) * 3
    codes = rng.integers(max(n_outputs, 2), size=n)
    weights = rng.uniform(0.5, 2, size=n)
    whole = Calibration(n_outputs)
    likely = whole.learn(scores, codes, weights, True)
    np.testing.assert_allclose(likely, reference.running_calibration(scores, codes, weights), atol=1e-12)
    unreported = Calibration(n_outputs)
    for size in (7, 1):
        parts = Calibration(n_outputs)
        for start in range(0, n, size):
            rows = slice(start, start + size)
            np.testing.assert_array_equal(parts.learn(scores[rows], codes[rows], weights[rows], True), likely[rows])
            if size == 1:
                assert unreported.learn(scores[rows], codes[rows], weights[rows], True, False) is None
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(vars(parts)[name], value)
        np.testing.assert_array_equal(vars(unreported)[name], value)


def test_running_calibration_approaches_logistic_regression():
    """Of the decisions for each class, on their own scores."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 1)) * 7
    truth = 1 / (1 + np.exp(-(0.3 * scores[:, 0] + 0.4 * np.sign(scores[:, 0]))))
    codes = (rng.random(20_000) < truth).astype(int)
    running = Calibration(1)
    running.learn(scores, codes, np.ones(20_000), True)
    likely = running.probabilities(scores)[:, 1]
    for side in (scores[:, 0] > 0, scores[:, 0] <= 0):
        batch = LogisticRegression(C=1e6).fit(scores[side], codes[side]).predict_proba(scores[side])[:, 1]
        assert np.abs(likely[side] - batch).max() < 0.06
    assert np.abs(likely - truth).mean() < 0.015
    assert ((likely > 0.5) == (scores[:, 0] > 0)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_any_chunks_reported_or_not(n_classes):
    X, y = stream(2, n=4600, n_classes=n_classes)
    models = [cs.OnlinePerceptron(average=True) for _ in range(3)]
    models[0].predict_then_learn(X, y, classes=range(n_classes))
    for start in range(0, len(y), 300):
        models[1].partial_fit(X[start : start + 300], y[start : start + 300], classes=range(n_classes))
    models[2].partial_fit(X[:4100], y[:4100], classes=range(n_classes))
    for i in range(4100, len(y)):
        models[2].learn_one({name: X[name][i] for name in X.names}, y[i])
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_probabilities_are_by_class_and_sum_to_one():
    X, y = stream(5, n=80, n_classes=3)
    names = np.array(["x", "y", "z"])[y]
    model = cs.OrthogonalPerceptron().partial_fit(X, names)
    P = model.predict_proba(X)
    assert P.shape == (80, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    row = {v: X[v][3] for v in X.names}
    one = model.predict_proba_one(row)
    assert list(one) == ["x", "y", "z"]
    np.testing.assert_allclose(list(one.values()), P[3])
    assert cs.OrthogonalPerceptron().predict_proba_one(row) == {}


# -- preparation
@pytest.mark.parametrize("estimator", [cs.OrthogonalPerceptron(average=True), cs.KernelPerceptron(RBF(0.1))])
def test_preparation_follows_the_stream_however_it_is_cut(estimator):
    X, y = stream(6, n=60, missing=True)
    A = {name: 1e6 + 50 * X[name] for name in X.names}
    X = Views(A, mask=X.mask)
    estimator = clone(estimator).set_params(prepare="standardize")
    once = in_chunks(estimator, X, y, 60)
    by_hand = clone(estimator).set_params(prepare=None)
    by_hand.partial_fit(PerView("standardize").learn_transform(X), y, classes=(0, 1))
    assert once.n_mistakes_ == by_hand.n_mistakes_
    for step in (1, 7):
        other = in_chunks(estimator, X, y, step)
        assert other.n_errors_ == once.n_errors_
        np.testing.assert_allclose(other.decision_function(X), once.decision_function(X), atol=1e-8)
    light = clone(estimator).partial_fit(X[:1], y[:1], classes=(0, 1))
    for i in range(1, 60):
        light.learn_one({name: X[name][i] for name in X.names if X.present(name)[i]}, y[i])
    np.testing.assert_allclose(light.decision_function(X), once.decision_function(X), atol=1e-8)
    row = {name: X[name][9] for name in X.names if X.present(name)[9]}
    assert light.predict_one(row) == light.predict(X[[9]])[0]


def test_one_large_column_no_longer_decides():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3000, 4))
    y = (A[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    timed = Views(v=np.column_stack([A, 1.7e9 + np.arange(3000.0)]))
    errors = {
        prepare: cs.OrthogonalPerceptron(average=True, prepare=prepare).partial_fit(timed, y).n_errors_
        for prepare in (None, "standardize")
    }
    assert errors["standardize"] < 450 < 1200 < errors[None]


def test_a_refused_chunk_leaves_the_preparation_as_it_was():
    X, y = stream(6, n=60)
    model = cs.KernelPerceptron(RBF(0.1), prepare="standardize").partial_fit(X[:30], y[:30])
    before = model.decision_function(X)
    bad = Views({"v0": np.full((3, 4), np.inf), "v1": np.ones((3, 4))})
    with pytest.raises(ValueError, match="View 'v0'"):
        model.partial_fit(bad, y[:3])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_samples_seen_ == 30


def test_the_bound_of_prepared_samples_holds():
    X, y = stream(6, n=80)
    model = cs.OrthogonalPerceptron(prepare="standardize").partial_fit(X, y)
    proof = model.certificate(X, y)
    assert model.n_mistakes_ <= proof.bound < 81
    fitted = cs.OrthogonalPerceptron(prepare="standardize", max_iter=2, random_state=0).fit(X, y)
    assert fitted.n_mistakes_ <= fitted.certificate(X, y).bound


# -- forgetting
@pytest.mark.parametrize("name", [n for n in ALL if "cues" not in n])
def test_forgetting_all_starts_again(name):
    X, y = stream(7, n=80)
    model = clone(ALL[name]).partial_fit(X[:40], y[:40])
    if "projectron" not in name and "budget" not in name:
        model.forget(0.0)
        fresh = clone(ALL[name]).partial_fit(X[40:], y[40:], classes=(0, 1))
        model.partial_fit(X[40:], y[40:])
        np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), atol=1e-8)
    if "prior_norms={" in repr(ALL[name]):  # prior norms that are given do not shrink
        return
    half = clone(ALL[name]).partial_fit(X, y)
    before = half.decision_function(X)
    np.testing.assert_allclose(half.forget(0.5).decision_function(X), 0.5 * before, atol=1e-8)


@pytest.mark.parametrize("average", [True, "recent", "with_last"])
@pytest.mark.parametrize("name", ["perceptron", "3-norm", "PA-I", "kernel perceptron", "projectron", "matrix 2"])
def test_means_go_on_with_the_hypothesis_that_is_left(name, average):
    X, y = stream(7, n=80)
    last = clone(ALL[name]).partial_fit(X, y)
    model = clone(ALL[name]).set_params(average=average).partial_fit(X, y).forget(0.5)
    np.testing.assert_allclose(model.decision_function(X), 0.5 * last.decision_function(X), atol=1e-8)
    assert model.certificate(X, y).bound is None  # the bounds are for what learns from all samples


@pytest.mark.parametrize("kernel", ["linear", RBF(0.3)])
@pytest.mark.parametrize("average", [False, True])
def test_one_view_can_be_forgotten_alone(kernel, average):
    X, y = stream(7, n=80)
    model = cs.OrthogonalPerceptron(kernel, average=average, fit_intercept=False).partial_fit(X, y)
    other = model.view_weights_[1]
    model.forget(0.01, view="v0")
    assert model.view_weights_[0] < 0.05 < other <= model.view_weights_[1] + 1e-12
    model.partial_fit(X, y)
    assert model.n_samples_seen_ == 160


def test_what_cannot_be_forgotten_is_said():
    X, y = stream(7, n=30)
    model = cs.OrthogonalPerceptron().partial_fit(X, y)
    for given, words in (((2.0,), "from 0 to 1"), ((0.5, "v9"), "no view 'v9'")):
        with pytest.raises(ValueError, match=words):
            model.forget(*given)
    with pytest.raises(ValueError, match="one kernel together"):
        cs.KernelPerceptron(RBF(0.3)).partial_fit(X, y).forget(0.5, "v0")
    with pytest.raises(ValueError, match="keeps every hypothesis"):
        cs.OnlinePerceptron(average="voted").partial_fit(X, y).forget(0.5)
