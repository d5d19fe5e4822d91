"""What notebooks show of estimators: kernels by view and, once fitted, a summary."""

import sys

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

import consilience as cs
from consilience.kernels import RBF
from consilience.views._notebook import kernels_of, labeled_weights

X, y = cs.datasets.make_views(n_samples=80, n_classes=3, random_state=0, return_X_y=True)
first, second, *_ = X.names


def test_kernels_by_view_before_and_after_and_names():
    model = cs.CoRegularizedSVC(kernel={second: "linear"})
    shown = model._repr_html_()
    assert "<code>Linear()</code>" in shown
    assert "every other view" in shown
    assert kernels_of(cs.KernelPerceptron("rbf")) == {"": "RBF(gamma='scale')"}
    shown = model.fit(X, y)._repr_html_()
    assert "every other view" not in shown
    assert "RBF(gamma=0." in shown  # as it was used
    assert f"<td>{first}</td>" in shown
    assert "3 classes: 0, 1, 2." in shown
    assert "above the optimum" in shown
    assert set(kernels_of(model)) == set(X.names)


def test_weights_are_named_after_kernels_only_where_kernels_have_learned_weights():
    kernels, target = [RBF(0.1), "linear"], y.astype(float)
    several = cs.MultipleKernelRidge(kernels).fit(X, target)
    names, weights = labeled_weights(several)
    assert names == tuple(f"{view}: {kernel}" for view in X.names for kernel in ("RBF(gamma=0.1)", "Linear()"))
    np.testing.assert_array_equal(weights, several.kernel_weights_["weight"])
    for model in (cs.MultipleKernelRidge(), cs.ViewMetricRidge(kernels), cs.CoRegularizedRidge()):
        assert labeled_weights(model.fit(X, target)) is None


def test_streams_tell_their_share_of_mistakes():
    model = cs.OrthogonalPerceptron().partial_fit(X, y)
    rate = 100 * model.n_mistakes_ / 80
    assert f"80 samples learned; {model.n_mistakes_} mistakes ({rate:.1f}%) before learning." in model._repr_html_()


def test_fusion_and_leaderboards():
    shown = cs.LateFusion(LogisticRegression()).fit(X, y)._repr_html_()
    assert "<th>weight</th>" in shown
    assert "<th>kernel</th>" not in shown
    board = cs.compare(X, y, estimators=["OnlinePerceptron", f"{first} alone"], cv=2)
    assert f"<td>{first} alone</td>" in board._repr_html_()
    # names are escaped
    views = cs.Views({"<b>x</b>": X[first], "b": X[second]})
    model = cs.ViewMetricRidgeClassifier().fit(views, np.array(["<i>", "b", "c"])[y])
    shown = model._repr_html_()
    assert "<b>x</b>" not in shown
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "&lt;i&gt;" in shown


def test_scikit_learns_switch_is_kept():
    model = cs.MaxMarginClassifier().fit(X, y)
    assert model._repr_mimebundle_()["text/html"].endswith(model._repr_html_()[-200:])
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize("model", [cs.EarlyFusion(LogisticRegression()), cs.LateFusion(LogisticRegression())])
def test_fusion_scores_only_samples_with_labels(model):
    some = np.where(np.arange(80) < 60, y, np.nan)
    model.fit(X, some)
    assert model.score(X, some) == pytest.approx(np.mean(model.predict(X)[:60] == y[:60]))


def test_what_an_estimator_does_not_have_is_not_shown():
    assert hasattr(cs.VectorPerceptron(), "learn_one")
    assert not hasattr(cs.VectorPerceptron(variant="coefficients"), "learn_one")
    with pytest.raises(TypeError, match="learns from all views together and has no `view_weights_`"):
        cs.view_importances(cs.OnlinePerceptron().fit(X, y), X, y)


@pytest.mark.parametrize("kernel", ["bogus", ["rbf", "linear"], None])
def test_estimators_that_cannot_be_fitted_are_shown_all_the_same_without_sentences(kernel):
    assert "CoRegularizedRidgeClassifier" in cs.CoRegularizedRidgeClassifier(kernel)._repr_html_()
    assert "classes" not in cs.MaxMarginClassifier()._repr_html_().rpartition("</style>")[2].rpartition("<table>")[2]


def test_a_consensus_lists_its_largest_kernels(monkeypatch):
    model = cs.ConsensusClassifier()
    assert "&#x27;auto&#x27;" in model._repr_html_()
    model.fit(X, y)
    several = cs.MultipleKernelRidgeClassifier(["linear", "rbf"]).fit(X, y)
    frame = model.kernel_weights_
    monkeypatch.setitem(sys.modules, "pandas", None)  # not needed
    with pytest.raises(AttributeError, match="`kernel_weights_` needs pandas"):
        _ = model.kernel_weights_
    assert "<code>Linear()</code>" in several._repr_html_()
    shown = model._repr_html_()
    n = int((frame["weight"] > 0).sum())
    assert shown.count("<code>") == min(n, 8)
    assert f"<td><code>{frame['kernel'][0]}</code></td><td>{frame['weight'][0]:.3g}</td>" in shown
    assert ("largest of" in shown) == (n > 8)
    monkeypatch.setattr("consilience.views._notebook._MOST_KERNELS", 2)
    shown = model._repr_html_()
    assert shown.count("<code>") == 2
    assert f"The 2 largest of {n} weights are shown." in shown
