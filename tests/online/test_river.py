"""Estimators in river: its checks through its converter, its transformers before ours, the cost of a row."""

import copy
import time

import numpy as np
import pytest

import consilience as cs
from consilience.online import _single_samples

checks = pytest.importorskip("river.checks", reason="river is not installed")
from river import compat, compose, datasets, preprocessing  # noqa: E402

MODELS = {
    "perceptron": cs.OnlinePerceptron(average=True),
    "passive-aggressive": cs.PassiveAggressive(average="recent"),
    "prepared": cs.PassiveAggressive(average=True, prepare="standardize"),
    "orthogonal": cs.OrthogonalPerceptron(average=True),
    "kernel": cs.KernelPerceptron("rbf", budget=30),
}
REGRESSORS = {"passive-aggressive": cs.PassiveAggressiveRegressor(prepare="standardize")}


def in_river(name):
    return compat.convert_sklearn_to_river(MODELS[name], classes=[False, True])


def run_checks(make):
    """Run river's checks but those that its converter skips: columns that come and go; return their number."""
    skipped = make()._unit_test_skips()
    own = [check for check in checks.yield_checks(make()) if check.__name__ not in skipped]
    for check in own:
        check(make())
    return len(own)


def rows_of(n):
    return list(datasets.Phishing().take(n))


@pytest.mark.filterwarnings("ignore:The budget of")
@pytest.mark.parametrize("name", ["perceptron", "prepared", "orthogonal", "kernel"])  # each class once
def test_estimators_pass_rivers_checks(name):
    assert run_checks(lambda: in_river(name)) > 30


@pytest.mark.parametrize("name", ["passive-aggressive"])
def test_regressors_pass_rivers_checks(name):
    assert run_checks(lambda: compat.convert_sklearn_to_river(REGRESSORS[name])) > 20


@pytest.mark.parametrize("name", ["perceptron", "passive-aggressive", "orthogonal"])
def test_rivers_scaler_before_an_estimator_equals_scaled_rows(name):
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), in_river(name))
    scaler, direct = preprocessing.StandardScaler(), copy.deepcopy(MODELS[name])
    for x, label in rows_of(200):
        pipeline.learn_one(x, label)
        scaler.learn_one(x)
        direct.partial_fit([list(scaler.transform_one(x).values())], [label], classes=[False, True])
    learned = pipeline.steps["SKL2RiverClassifier"].estimator
    np.testing.assert_array_equal(learned.coef_["view0"], direct.coef_["view0"])
    for x, _ in rows_of(20):
        row = [list(scaler.transform_one(x).values())]
        assert pipeline.predict_one(x) == direct.predict(row)[0]
        assert pipeline.predict_proba_one(x)[True] == direct.predict_proba(row)[0, 1]


# -- tables of one row
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The budget of")
def test_a_row_at_a_time_equals_one_chunk(name, monkeypatch):
    X = np.array([list(x.values()) for x, _ in rows_of(150)], dtype=float)
    y = np.array([label for _, label in rows_of(150)])
    whole, single = copy.deepcopy(MODELS[name]).partial_fit(X, y, classes=[False, True]), copy.deepcopy(MODELS[name])
    for k in range(150):
        row = X[k : k + 1] if k % 2 else X[k : k + 1].tolist()
        single.partial_fit(row, [y[k]], classes=[False, True])
    assert single.n_errors_ == whole.n_errors_
    assert single.n_mistakes_ == whole.n_mistakes_
    np.testing.assert_allclose(single.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-12)
    for row in (X[:1], X[:1].tolist()):
        np.testing.assert_allclose(whole.predict_proba(row), whole.predict_proba(X)[:1], rtol=1e-9)
        assert whole.predict(row)[0] == whole.predict(X)[0]
    monkeypatch.setattr(_single_samples, "_plain_row", lambda *given: pytest.fail("asked"))
    with pytest.raises(pytest.fail.Exception):
        whole.predict(X[:1])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0]], "features"), ([[1.0, np.nan, 2.0]], "NaN"), ([[1.0, np.inf, 2.0]], "infinite|inf"),
        ([["a", 1.0, 2.0]], "could not convert|holds|number"),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_is_refused_as_in_a_chunk(X, message):
    model = cs.OnlinePerceptron().partial_fit(np.eye(3), [0, 1, 0])
    before = model.n_samples_seen_
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, [0])
    assert model.n_samples_seen_ == before
    with pytest.raises(ValueError, match="`classes` are"):
        model.partial_fit([[1.0, 2.0, 3.0]], [0], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="2"):
        model.partial_fit([[1.0, 2.0, 3.0]], [0, 1])


def test_rivers_converter_takes_microseconds():
    """About 50; scikit-learn's SGDClassifier takes about 1,000. The limit leaves room for a busy machine."""
    model, rows = in_river("passive-aggressive"), rows_of(400)
    times = []
    for x, label in rows:
        start = time.perf_counter()
        model.learn_one(x, label)
        times.append(time.perf_counter() - start)
    assert np.median(times[50:]) < 400e-6
