"""Evaluation of an external cohort: the measures are scikit-learn's, and the intervals cover as often as they say."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
import reference
from consilience.evaluation.external import evaluate_external, proportion


class Known(ClassifierMixin, BaseEstimator):
    """The true probabilities of two normal classes at -d and d, the second of share 0.35 at threshold 0."""

    def __init__(self, d=1.0):
        self.d, self.classes_ = d, np.array([0, 1])

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-2 * self.d * X[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)

    def draw(self, rng, n):
        y = (rng.random(n) < 0.35).astype(int)
        return (rng.normal(size=n) + self.d * (2 * y - 1))[:, None], y


class Line(RegressorMixin, BaseEstimator):
    def predict(self, X):
        return X[:, 0]


@pytest.fixture(scope="module")
def three():
    """A model of three classes with probabilities, and samples that it has not seen."""
    X, y = cs.datasets.make_views(n_samples=500, n_classes=3, random_state=0, return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    model = make_pipeline(cs.PerView(StandardScaler()), cs.LateFusion(LogisticRegression()))
    return model.fit(X[:200], y[:200]), X[200:], y[200:]


def test_measures_are_those_of_scikit_learn(three):
    model, X, y = three
    result = evaluate_external(model, X, y, n_resamples=100)
    predictions, P = model.predict(X), model.predict_proba(X)
    truth = y[:, None] == model.classes_
    expected = {
        "accuracy": metrics.accuracy_score(y, predictions),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predictions),
        "F1": metrics.f1_score(y, predictions, average="macro"),
        "AUC": metrics.roc_auc_score(y, P, multi_class="ovr"),
        "log loss": metrics.log_loss(y, P),
        "Brier score": np.mean(np.sum((P - truth) ** 2, axis=1)),
    }
    assert list(result.measures) == list(expected)
    for name, value in expected.items():
        own = result.measures[name]
        assert own.value == pytest.approx(value), name
        assert own.low < own.value < own.high, name
    precision = metrics.precision_score(y, predictions, average=None)
    recall = metrics.recall_score(y, predictions, average=None)
    for k, own in enumerate(result.by_class):
        assert (own.label, own.n_samples, own.n_predicted) == (
            model.classes_[k], np.sum(y == model.classes_[k]), np.sum(predictions == model.classes_[k]),
        )  # fmt: skip
        assert (own.sensitivity.value, own.ppv.value) == pytest.approx((recall[k], precision[k]))
        assert own.sensitivity == proportion(round(recall[k] * own.n_samples), own.n_samples)
    false, true, _ = metrics.roc_curve(y == "b", P[:, 1])
    np.testing.assert_allclose(result.roc["b"], np.column_stack([false, true]))
    assert result.calibration[:, 2].sum() == len(y)
    share = np.average(result.calibration[:, 1], weights=result.calibration[:, 2])
    assert share == pytest.approx(np.mean(model.classes_[P.argmax(axis=1)] == y))


def test_two_classes_and_scores_without_probabilities():
    model = Known()
    X, y = model.draw(np.random.default_rng(0), 300)
    X = np.round(X, 1)  # ties
    result = evaluate_external(model, X, y, n_resamples=100)
    p = model.predict_proba(X)[:, 1]
    assert result.measures["AUC"].value == pytest.approx(metrics.roc_auc_score(y, p))
    assert result.measures["Brier score"].value == pytest.approx(metrics.brier_score_loss(y, p))
    assert list(result.roc) == [1]
    ridge = cs.CoRegularizedRidgeClassifier().fit({"a": X[:100]}, y[:100])
    scored = evaluate_external(ridge, cs.Views(a=X[100:]), y[100:], n_resamples=100)
    area = metrics.roc_auc_score(y[100:], ridge.decision_function({"a": X[100:]}))
    assert scored.measures["AUC"].value == pytest.approx(area)
    assert list(scored.measures) == ["accuracy", "balanced accuracy", "F1", "AUC"]
    assert len(scored.calibration) == 0


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1))
    y = X[:, 0] + 0.5 * rng.normal(size=120)
    result = evaluate_external(Line(), X, y)
    expected = metrics.r2_score(y, X[:, 0]), metrics.mean_absolute_error(y, X[:, 0])
    assert [own.value for own in result.measures.values()][:2] == pytest.approx(expected)
    root = result.measures["root mean squared error"]
    assert root.value == pytest.approx(metrics.root_mean_squared_error(y, X[:, 0]))
    assert root.low < 0.5 < root.high
    assert "mean absolute error" in str(result)
    assert np.isnan(evaluate_external(Line(), X[:3], np.ones(3)).measures["R2"].value)


def test_weighted_areas_are_means_over_pairs():
    from consilience.evaluation.external import _area

    rng = np.random.default_rng(0)
    scores, positive = np.round(rng.normal(size=30), 1), rng.random(30) < 0.4
    W = rng.integers(0, 3, size=(5, 30)).astype(float)
    expected = [reference.weighted_area(positive, scores, w) for w in W]
    np.testing.assert_allclose(_area(positive, scores)(W), expected)


@pytest.mark.parametrize(("d", "n"), [(0.6, 40), (2.0, 150)])
def test_intervals_cover_as_often_as_they_say(d, n):
    model, rng = Known(d), np.random.default_rng(1)
    X, y = model.draw(rng, 200_000)
    truth = {name: own.value for name, own in evaluate_external(model, X, y, n_resamples=100).measures.items()}
    hits = dict.fromkeys(truth, 0)
    for k in range(100):
        X, y = model.draw(rng, n)
        for name, own in evaluate_external(model, X, y, n_resamples=200, random_state=k).measures.items():
            hits[name] += own.low <= truth[name] <= own.high
    # 0.95 less three standard errors of 100 trials
    assert min(hits.values()) >= 100 * 0.95 - 3 * np.sqrt(100 * 0.95 * 0.05), hits


def test_perfect_predictions_have_wide_intervals():
    X = np.r_[-np.ones(8), np.ones(8)][:, None] * 5
    y = (X[:, 0] > 0).astype(int)
    measures = evaluate_external(Known(), X, y).measures
    for name in ("accuracy", "balanced accuracy", "F1", "AUC"):
        assert measures[name].value == measures[name].high == 1
        assert 0.5 < measures[name].low < 0.95, name


def test_unlabeled_unknown_and_single_classes(three):
    model, X, y = three
    y = y.astype(object)
    y[0], y[1:4] = None, "new"
    result = evaluate_external(model, X, y, n_resamples=100)
    assert (result.n_unlabeled, result.unknown, result.n_unknown, len(result.y)) == (1, ("new",), 3, len(y) - 4)
    kept = np.r_[4 : len(y)]
    known = evaluate_external(model, X[kept], y[kept], n_resamples=100)
    assert result.measures == known.measures  # all measures are of the same samples
    assert "The model does not know new: 3 samples left out of all measures." in str(result)
    one = evaluate_external(model, X[y == "a"], y[y == "a"], n_resamples=100)
    assert "AUC" not in one.measures
    assert one.measures["log loss"].value > 0
    single = evaluate_external(model, X[[5]], y[[5]], n_resamples=100)
    assert single.measures["accuracy"].low < single.measures["accuracy"].high


def test_targets_are_matched_by_name(three):
    model, X, y = three
    named = cs.Views(X, sample_names=[f"s{i}" for i in range(len(y))])
    series = pd.Series(y, index=named.sample_names).sample(frac=1, random_state=0)
    expected = evaluate_external(model, X, y, n_resamples=100).measures
    assert evaluate_external(model, named, series, n_resamples=100).measures == expected


def test_training_samples_are_counted(three):
    _, X, y = three
    names = [f"p{k}" for k in range(len(y))]
    model = make_pipeline(cs.PerView("standardize"), cs.CoRegularizedRidgeClassifier()).fit(X[:100], y[:100])
    new = evaluate_external(model, X[100:200], y[100:200], n_resamples=100)
    assert (new.n_training, new.measures_of_new, new.notes) == (0, {}, ())
    rows = np.r_[150:90:-1]  # ten of them are training samples, under other names
    both = evaluate_external(model, cs.Views(X[rows], sample_names=names[:60]), y[rows], n_resamples=100)
    assert both.n_training == 9
    others = np.r_[150:99:-1]
    assert both.measures_of_new == evaluate_external(model, X[others], y[others], n_resamples=100).measures
    assert "9 of 60 samples are training samples of the model" in str(both)
    assert "On the other 51 samples: accuracy" in str(both)
    whole = evaluate_external(model, X[:100], y[:100], n_resamples=100)
    assert (whole.n_training, whole.measures_of_new) == (100, {})
    machine = evaluate_external(cs.CoRegularizedSVC().fit(X[:100], y[:100]), X[50:150], y[50:150], n_resamples=100)
    assert 0 < machine.n_training < 50  # support samples only, so the others need not be new
    assert f"At least {machine.n_training} of 100 samples are training samples" in str(machine)
    assert machine.measures_of_new == {}
    linear = evaluate_external(cs.LateFusion(LogisticRegression()).fit(X[:99], y[:99]), X[99:], y[99:], n_resamples=100)
    assert linear.n_training is None
    assert "it cannot be checked that these samples are new" in str(linear)


def test_samples_with_missing_views_and_gaps_are_compared_too():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(80, 3)), np.arange(80) % 2
    A[::5, 1] = np.nan
    B = np.where((np.arange(80) % 3 == 0)[:, None], np.nan, rng.normal(size=(80, 2)))
    frames = {"a": pd.DataFrame(A, columns=list("xyz")), "b": pd.DataFrame(B, columns=list("uv"))}
    model = cs.ConsensusClassifier().fit(cs.Views(frames), y)
    turned = {"b": frames["b"][["v", "u"]][40:], "a": frames["a"].assign(more=1.0)[["z", "more", "x", "y"]][40:]}
    assert evaluate_external(model, cs.Views(turned), y[40:], n_resamples=100).n_training == 40
    assert evaluate_external(model, cs.Views(a=A + 1e-9, b=B), y, n_resamples=100).n_training == 0


def test_columns_in_other_units_are_told():
    rng = np.random.default_rng(0)
    names = [f"g{k}" for k in range(200)]
    spreads = rng.uniform(0.1, 2, 200)

    def draw(n):
        return pd.DataFrame(rng.lognormal(sigma=spreads, size=(n, 200)), columns=names)

    A, B, y = draw(100), draw(100), np.arange(100) % 2
    for model in (cs.ConsensusClassifier(), make_pipeline(cs.PerView("log"), cs.CoRegularizedRidgeClassifier())):
        model.fit(cs.Views(a=A, b=B), y)
        for n in (10, 40, 100):
            new = {"a": draw(n), "b": draw(n)}
            assert evaluate_external(model, cs.Views(new), y[:n], n_resamples=100).notes == ()
        (note,) = evaluate_external(model, cs.Views({**new, "b": 1000 * new["b"]}), y, n_resamples=100).notes
        assert note.startswith("200 of 200 columns of view 'b' have values far from those in training")
        few = new["a"].assign(g7=new["a"]["g7"] * 1e4 + 1e5)
        (note,) = evaluate_external(model, cs.Views({**new, "a": few}), y, n_resamples=100).notes
        assert note.startswith("1 of 200 columns of view 'a'")
        assert "The median of 'g7' is" in note


def test_a_preparation_within_the_model_is_followed():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 5))
    X, y = cs.Views(a=A), (A[:, 0] > 0).astype(int)
    model = cs.ConsensusClassifier(prepare="top_k:2").fit(X[:40], y[:40])
    assert evaluate_external(model, X[20:], y[20:]).n_training == 20
    notes = evaluate_external(model, cs.Views(a=100 + A[40:]), y[40:]).notes
    assert any(note.startswith("2 of 2 columns of view 'a'") for note in notes)


def test_messages(three):
    model, X, y = three
    with pytest.raises(ValueError, match="The model has the classes a, b, c, but y has 1, for example"):
        evaluate_external(model, X, np.ones(len(y), dtype=int))
    with pytest.raises(ValueError, match="The model is for regression, but y has 'a'"):
        evaluate_external(Line(), np.ones((2, 1)), ["a", "b"])
    with pytest.raises(ValueError, match="needs one known target per sample"):
        evaluate_external(Line(), np.ones((2, 1)), [np.nan, np.nan])
    with pytest.raises(ValueError, match="n_resamples"):
        evaluate_external(model, X, y, n_resamples=1)


@pytest.mark.parametrize("n", range(1, 200))
def test_the_interval_of_a_share_contains_it_and_is_within_its_range(n):
    for hits in (0, n // 2, n):
        value, low, high = proportion(hits, n)
        assert 0.0 <= low <= value <= high <= 1.0
    assert proportion(n, n).high == 1.0
    assert proportion(0, n).low == 0.0
