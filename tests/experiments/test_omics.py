"""What the experiments on multi-omics compute by themselves: EasyMKL, missing views, the best view, differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.model_selection import GridSearchCV

from consilience import ConsensusClassifier, Views
from consilience.datasets import make_views
from consilience.experiments import _omics_methods as methods
from consilience.experiments._easymkl import EasyMKL, easymkl_weights, gaussian_grams
from consilience.experiments._experiment import Results
from consilience.experiments._omics_tables import best_of, compared_claims, gap
from consilience.experiments.omics import PAM50, _splits, without_some


@pytest.fixture(scope="module")
def data():
    return make_views(60, n_classes=3, informative=2, noise=1, n_features=6, random_state=0)


# -- EasyMKL
@pytest.mark.parametrize("lam", [0.1, 0.5])
def test_weights_are_those_of_the_quadratic_program(data, lam):
    X, y = data[0][:24], np.where(data[1][:24] == data[1][0], 1.0, -1.0)
    grams = gaussian_grams(X, X, 1.0)
    K = y[:, None] * ((1 - lam) * sum(grams) + lam * np.eye(24)) * y
    sums = [{"type": "eq", "fun": lambda g, side=side: g[y == side].sum() - 1} for side in (1, -1)]
    start = np.where(y > 0, 1 / np.sum(y > 0), 1 / np.sum(y < 0))
    found = minimize(
        lambda g: g @ K @ g, start, jac=lambda g: 2 * K @ g, bounds=[(0, 1)] * 24, constraints=sums,
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    weights = np.array([(found.x * y) @ gram @ (found.x * y) for gram in grams])
    assert_allclose(easymkl_weights(grams, y, lam), weights / weights.sum(), atol=1e-5)


def test_a_view_without_information_gets_the_smaller_weight():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = Views(told=3 * np.eye(3)[y] + rng.normal(size=(90, 3)), noise=rng.normal(size=(90, 3)))
    model = EasyMKL(1.0, 0.1, 10.0).fit(X, y)
    assert len(model.weights_) == len(model.machines_) == 3
    assert all(weights[0] > 2 * weights[1] for weights in model.weights_)
    assert model.score(X, y) > 0.9


def test_two_classes_have_one_machine(data):
    X, y = data
    pair = y != y[0]
    model = EasyMKL(C=10.0).fit(X[pair], y[pair])
    assert len(model.machines_) == 1
    assert model.score(X[pair], y[pair]) > 0.9


# -- methods
def test_no_search_has_more_settings_than_the_table_says(data):
    tuning = methods.Tuning(data[0], 0, small=False)
    searched = {}
    for name, make in methods.METHODS.items():
        model = make(tuning)
        model = next(iter(model.estimators.values())) if isinstance(model, methods.BestView) else model
        search = model if isinstance(model, GridSearchCV) else getattr(model, "estimator", None)
        if isinstance(search, GridSearchCV):
            own = search.estimator.named_steps["model"].get_params()
            paths = [len(own[grid]) for grid in ("alphas", "agreement_penalties") if grid in own]
            searched[name] = int(np.prod([*map(len, search.param_grid.values()), *paths]))
    assert searched == {
        name: methods.SETTINGS[name]
        for name in methods.METHODS
        if name not in (methods.CONSENSUS, methods.SINGLE_CONSENSUS, methods.HIMALAYA)
    }


def test_equal_accuracies_are_decided_by_the_log_loss():
    found = {"mean_test_accuracy": np.array([0.8, 0.9, 0.9]), "mean_test_neg_log_loss": -np.array([0.1, 0.5, 0.4])}
    assert methods._best(found) == 2


def test_the_best_view_is_chosen_on_the_training_rows(data):
    X, y = data
    model = methods.METHODS[methods.SINGLE_CONSENSUS](methods.Tuning(X, 0, small=True)).fit(X[:40], y[:40])
    scores = {name: ConsensusClassifier().fit(X[[name]][:40], y[:40]).loo_score_ for name in X.names}
    assert model.view_ == max(scores, key=scores.get)
    assert (model.predict(X[40:]) == model.predict_by(model.view_, X[40:])).all()


# -- rows and views
def test_every_sample_keeps_a_view(data):
    X, _ = data
    some = without_some(X, 0.5, 3)
    assert some.mask.any(axis=1).all()
    assert 0.3 < 1 - some.mask.mean() < 0.6
    assert (without_some(X, 0.5, 3).mask == some.mask).all()
    assert (without_some(X, 0.5, 4).mask != some.mask).any()


def test_random_splits_have_the_sizes_of_the_published_one():
    y = np.repeat([0, 1], 30)
    published = [(np.arange(40), np.arange(40, 55))]
    ((train, test),) = _splits({"rows": "random", "draw": 1}, y, published)
    assert (len(train), len(test)) == (40, 15)
    assert not set(train) & set(test)
    assert _splits({"rows": "published"}, y, published) is published


# -- differences and claims
def _results(accuracies, loss=0.3):
    cells = []
    for method, values in accuracies.items():
        for missing in (0.0, 0.2, 0.5):
            for draw, value in enumerate(values):
                found = {"accuracy": value, "balanced accuracy": value, "macro F1": value, "log loss": loss}
                cell = {"rows": "random", "missing": missing, "method": method, "draw": draw}
                cells.append((cell, found if method != methods.HIMALAYA else {}))
    return Results(cells)


def test_the_interval_of_a_difference_is_wider_than_that_of_independent_draws():
    results = _results({"Consensus": [0.90, 0.92, 0.94], "EasyMKL": [0.89, 0.90, 0.91]})
    found = gap(results, "Consensus", "EasyMKL", rows="random", missing=0.0)
    assert found.mean == pytest.approx(2.0)
    error = np.sqrt((1 / 3 + 211 / 558) * 1.0)  # the differences are 1, 2 and 3 points
    assert found.high - found.mean == pytest.approx(4.302652729696142 * error)
    assert str(found) == "+2.0 ± 3.6"


def test_claims_follow_the_measurements_and_a_method_that_is_not_installed_is_told():
    low = {method: [0.80, 0.81, 0.80] for method in methods.METHODS}
    above = compared_claims(_results(low | {"Consensus": [0.90, 0.91, 0.90]}), rows="random")
    assert [claim.holds for claim in above] == [True, True, True, False, True]
    below = compared_claims(_results(low | {"Consensus": [0.70, 0.71, 0.70]}), rows="random")
    assert not any(claim.holds for claim in below)
    assert all(claim.note for claim in below)
    results = _results(low)
    assert best_of(results, [methods.HIMALAYA, "EasyMKL"], rows="random", missing=0.0) == "EasyMKL"
    texts = [row for table in PAM50.tables(results)[:2] for row in table.rows if row[0] == methods.HIMALAYA]
    assert [row[2] for row in texts] == ["not installed"]
