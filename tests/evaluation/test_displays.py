"""Displays draw the numbers of the fitted estimators."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience import Views
from consilience.kernels import RBF

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
X, y = X[:150], y[:150]


@pytest.fixture(autouse=True)
def closed():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "model",
    [
        cs.MultipleKernelRidgeClassifier(RBF(1e-3), alpha=1e-2), cs.CoRegularizedRidgeClassifier(RBF(1e-3)),
        cs.OrthogonalPerceptron(RBF(1e-3)), cs.MultiCueClassifier(RBF(1e-3), max_iter=1),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_weights_are_bars(model):
    display = cs.ViewWeightsDisplay.from_estimator(model.fit(X, y))
    weights = getattr(model, "kernel_weights_", model.view_weights_)
    assert [bar.get_width() for bar in display.bars_[0]] == pytest.approx(
        weights if weights.ndim == 1 else weights[:, 0]
    )
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(X.names)


def test_weights_of_several_kernels_are_bars_with_their_names(monkeypatch):
    several = cs.MultipleKernelRidge([RBF(1e-3), "linear"], alpha=1e-2).fit(X, y.astype(float))
    frame = several.kernel_weights_
    consensus = cs.ConsensusClassifier([RBF(1e-3), "linear"]).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)  # not needed
    display = cs.ViewWeightsDisplay.from_estimator(several)
    assert display.names == tuple(
        f"{view}: {kernel}" for view, kernel in zip(frame["view"], frame["kernel"], strict=True)
    )
    np.testing.assert_array_equal(display.weights, frame["weight"])
    display = cs.ViewWeightsDisplay.from_estimator(consensus)
    assert display.names == X.names
    np.testing.assert_array_equal(display.weights, consensus.view_weights_)


def test_the_metric_is_a_heat_map():
    model = cs.ViewMetricRidgeClassifier(RBF(1e-3), alpha=1e-2).fit(X, y)
    display = cs.MetricDisplay.from_estimator(model)
    np.testing.assert_allclose(display.image_.get_array(), model.metric_.block_norms())
    assert len(display.ax_.texts) == 9


@pytest.mark.parametrize("metric", ["covariance", "diagonal"])
@pytest.mark.parametrize("estimator", [cs.ViewMetricRidge, cs.ViewMetricRidgeClassifier])
def test_fixed_metrics_are_not_drawn(metric, estimator):
    model = estimator(RBF(1e-3), metric=metric).fit(X, y)
    with pytest.raises(TypeError, match=f"has a fixed metric, metric='{metric}'.*metric='learned'"):
        cs.MetricDisplay.from_estimator(model)


def test_agreement_is_counted():
    model = cs.CoRegularizedRidgeClassifier(RBF(1e-3)).fit(X, y)
    holes = Views(X, mask=np.arange(450).reshape(150, 3) % 5 > 0)
    display = cs.AgreementDisplay.from_estimator(model, holes)
    outputs = model.view_decision_function(holes)
    for v in range(3):
        for w in range(3):
            both = ~np.isnan(outputs[:, v]) & ~np.isnan(outputs[:, w])
            assert display.shares[v, w] == pytest.approx(np.mean((outputs[both, v] > 0) == (outputs[both, w] > 0)))
    numbers = cs.CoRegularizedRidge(RBF(1e-3)).fit(X, y.astype(float) if y.dtype.kind in "iuf" else (y == y[0]) * 1.0)
    correlations = cs.AgreementDisplay.from_estimator(numbers, X)
    assert correlations.label == "correlation of predictions"
    np.testing.assert_allclose(np.diag(correlations.shares), 1.0)


def test_grams_are_sorted_by_class():
    display = cs.GramDisplay.from_views(X, y, kernel=RBF(1e-3))
    order = np.argsort(y.astype(str), kind="stable")
    shown = display.axes_[0].images[0].get_array()
    np.testing.assert_allclose(shown, RBF(1e-3)(X[X.names[0]][order]))
    assert [ax.get_title() for ax in display.axes_] == list(X.names)
    assert len(display.axes_[0].lines) == 2  # one border, each way


def test_gaps_fall_to_the_tolerance():
    display = cs.GapDisplay.from_estimator(cs.MaxMarginClassifier(RBF(1e-3), tol=1e-6), X, y, iterations=(1, 3, 1000))
    assert display.gaps[-1] <= 1e-6 < display.gaps[0]
    assert display.ax_.get_yscale() == "log"


def test_scores_and_fit_times_by_number_of_features():
    model = cs.CoRegularizedRidgeClassifier(RBF(1e-3))
    display = cs.NystroemCurveDisplay.from_estimator(model, X, y, n_components=(3, 60), cv=3, exact=True)
    assert display.scores.shape == (2, 3)
    assert display.scores[1].mean() == pytest.approx(display.exact, abs=0.05)
    np.testing.assert_allclose(display.line_.get_ydata(), display.scores.mean(axis=1))
    assert (display.fit_times > 0).all()


def test_displays_take_axes_and_weights_by_output_have_a_legend():
    _, ax = plt.subplots()
    assert cs.ViewWeightsDisplay(["a"], [1.0]).plot(ax=ax).ax_ is ax
    assert cs.MetricDisplay(["a"], [[1.0]]).plot(ax=ax).figure_ is ax.figure
    assert cs.GapDisplay([1, 2], [0.1, 0.01]).plot(ax=ax).ax_ is ax
    display = cs.ViewWeightsDisplay(["a", "b"], [[0.1, 0.9], [0.5, 0.5]]).plot()
    assert len(display.bars_) == 2
    assert display.ax_.get_legend() is not None


# -- pipelines, searches and names
def scaled(estimator):
    return make_pipeline(cs.PerView(StandardScaler()), estimator)


def searched(estimator):
    step = type(estimator).__name__.lower()
    return GridSearchCV(scaled(estimator), {f"{step}__alpha": [1e-3, 1e-1]}, cv=2)


NAMED = Views(X, sample_names=[f"p{k}" for k in range(len(X))])
SERIES = pd.Series(y, index=NAMED.sample_names).sample(frac=1, random_state=0)
KERNEL = RBF(0.1)


@pytest.mark.parametrize("wrap", [scaled, searched])
def test_what_was_learned_is_drawn_from_inside_pipelines_and_searches(wrap):
    model = wrap(cs.MultipleKernelRidgeClassifier(KERNEL)).fit(X, y)
    final = (model.best_estimator_ if wrap is searched else model)[-1]
    display = cs.ViewWeightsDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.weights, final.kernel_weights_)
    assert (display.name, display.names) == ("MultipleKernelRidgeClassifier", X.names)
    model = wrap(cs.ViewMetricRidgeClassifier(KERNEL)).fit(X, y)
    final = (model.best_estimator_ if wrap is searched else model)[-1]
    np.testing.assert_array_equal(cs.MetricDisplay.from_estimator(model).norms, final.metric_.block_norms())
    model = wrap(cs.CoRegularizedRidgeClassifier(KERNEL)).fit(X, y)
    pipeline = model.best_estimator_ if wrap is searched else model
    direct = cs.AgreementDisplay.from_estimator(pipeline[-1], pipeline[0].transform(X))
    np.testing.assert_array_equal(cs.AgreementDisplay.from_estimator(model, X).shares, direct.shares)


def test_correlations_are_of_predictions_in_the_units_of_the_target():
    numbers = np.exp(X["mean"][:, 0] / X["mean"][:, 0].std())
    model = TransformedTargetRegressor(scaled(cs.CoRegularizedRidge(KERNEL)), func=np.log, inverse_func=np.exp)
    model.fit(X, numbers)
    outputs = np.exp(model.regressor_[-1].view_decision_function(model.regressor_[0].transform(X)))
    display = cs.AgreementDisplay.from_estimator(model, X)
    np.testing.assert_allclose(display.shares, np.corrcoef(outputs.T))


def test_gaps_of_pipelines_and_searches():
    fitted = searched(cs.CoRegularizedSVC(KERNEL, tol=1e-6)).fit(X, y)
    best = fitted.best_estimator_
    direct = cs.GapDisplay.from_estimator(best[-1], best[0].transform(X), y, iterations=(1, 5))
    for model in (fitted, best):
        display = cs.GapDisplay.from_estimator(model, NAMED, SERIES, iterations=(1, 5))
        np.testing.assert_allclose(display.gaps, direct.gaps, rtol=1e-6)
        assert (display.name, display.tol) == ("CoRegularizedSVC", 1e-6)
    target = pd.Series(NAMED["mean"][:, 0], index=NAMED.sample_names)
    model = TransformedTargetRegressor(scaled(cs.MultipleKernelRidge(KERNEL)), transformer=StandardScaler())
    display = cs.GapDisplay.from_estimator(model, NAMED, target.sample(frac=1, random_state=0), iterations=(1, 3))
    scaled_target = (target - target.mean()).to_numpy() / target.std(ddof=0)
    same = cs.GapDisplay.from_estimator(model.regressor, X, scaled_target, iterations=(1, 3))
    np.testing.assert_allclose(display.gaps, same.gaps, rtol=1e-6)


def test_curves_of_pipelines_over_the_number_of_features():
    model = scaled(cs.CoRegularizedRidgeClassifier(KERNEL, random_state=0))
    display = cs.NystroemCurveDisplay.from_estimator(model, NAMED, SERIES, n_components=(5, 40), cv=3)
    for count, scores in zip((5, 40), display.scores, strict=True):
        model.set_params(coregularizedridgeclassifier__n_components=count)
        np.testing.assert_array_equal(scores, cross_validate(model, X, y, cv=3)["test_score"])
    ridge = cs.CoRegularizedRidgeClassifier(KERNEL, random_state=0)
    inside = scaled(GridSearchCV(ridge, {"alpha": [1e-3, 1e-1]}, cv=2)).fit(X, y)
    given = {name: X[name] for name in X.names}
    display = cs.NystroemCurveDisplay.from_estimator(inside, given, y, n_components=(10,), cv=3)
    model.set_params(
        **{
            "coregularizedridgeclassifier__alpha": inside[-1].best_params_["alpha"],
            "coregularizedridgeclassifier__n_components": 10,
        }
    )
    np.testing.assert_array_equal(display.scores[0], cross_validate(model, X, y, cv=3)["test_score"])


def test_mistakes_of_a_pipeline():
    model = scaled(cs.KernelPerceptron(KERNEL, random_state=0)).fit(X, y)
    display = cs.MistakesDisplay.from_estimator(model, NAMED, SERIES)
    np.testing.assert_array_equal(display.curve, model[-1].error_curve_)
    assert display.bound == model[-1].certificate(model[0].transform(X), y).bound
    assert display.name == "KernelPerceptron"


def test_grams_are_sorted_by_classes_with_names():
    direct = cs.GramDisplay.from_views(X, y, kernel=RBF(1e-3))
    np.testing.assert_array_equal(cs.GramDisplay.from_views(NAMED, SERIES, kernel=RBF(1e-3)).y, direct.y)


ERRORS = {
    r"OnlinePerceptron \(inside Pipeline\) has no `view_weights_`. Give an estimator that weights its views": (
        cs.ViewWeightsDisplay,
        scaled(cs.OnlinePerceptron()).fit(X, y),
    ),
    "GridSearchCV has no best estimator yet": (cs.GapDisplay, searched(cs.CoRegularizedSVC()), X, y),
    "CoRegularizedRidgeClassifier has no `error_curve_`. Give an online": (
        cs.MistakesDisplay,
        cs.CoRegularizedRidgeClassifier().fit(X, y),
    ),
    "OnlinePerceptron has no `view_weights_`": (cs.ViewWeightsDisplay, cs.OnlinePerceptron().fit(X, y)),
    "CoRegularizedRidgeClassifier has no `metric_`": (cs.MetricDisplay, cs.CoRegularizedRidgeClassifier().fit(X, y)),
    "GaussianNB has no `max_iter`": (cs.GapDisplay, GaussianNB(), X, y),
    "The certificate of OnlinePerceptron has no duality gap": (cs.GapDisplay, cs.OnlinePerceptron(), X, y),
    "OnlinePerceptron has no `n_components`": (cs.NystroemCurveDisplay, cs.OnlinePerceptron(), X, y),
}


@pytest.mark.parametrize("message", ERRORS)
def test_estimators_without_anything_to_draw_raise(message):
    display, *given = ERRORS[message]
    with pytest.raises(TypeError, match=message):
        display.from_estimator(*given)
