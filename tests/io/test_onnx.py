"""Export to ONNX: the graph predicts what the model predicts."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import consilience as cs
from consilience.io import to_onnx
from consilience.kernels import RBF

RNG = np.random.default_rng(0)
VIEWS = {name: 5 + 3 * RNG.normal(size=(300, width)) for name, width in (("a", 4), ("b", 4))}
VIEWS["b"][::5] = np.nan  # missing
TRUTH = sum(np.nan_to_num(block) @ RNG.normal(size=(4, 3)) for block in VIEWS.values())
LABELS = {
    "two": TRUTH[:, 0] > TRUTH[:, 1],
    "numbers": TRUTH.argmax(axis=1) - 1,
    "text": np.array(["red", "green", "blu"])[TRUTH.argmax(axis=1)],
    "floats": 2.0 * TRUTH.argmax(axis=1),
}
MODELS = {
    "perceptron": cs.OnlinePerceptron(),
    "averaged": cs.OnlinePerceptron(average=True, fit_intercept=False),
    "passive-aggressive": cs.PassiveAggressive(average="with_last"),
    "orthogonal": cs.OrthogonalPerceptron(average=True),
    "matrix": cs.MatrixPerceptron(),
    "matrix, padded": cs.MatrixPerceptron(unequal="pad", fit_intercept=False),
}


def run(model, views):
    """Labels and probabilities of the graph."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the graphs")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    return session.run(["label", "probabilities"], views)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_predicts_what_the_model_predicts(name, labels):
    model = clone(MODELS[name]).partial_fit(VIEWS, LABELS[labels])
    found, probabilities = run(model, VIEWS)
    assert found.tolist() == model.predict(VIEWS).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(VIEWS), atol=1e-5)


def prepared(model, rows):
    """Rows by the statistics of the samples so far, which do not include these rows."""
    out = {}
    for name, block in rows.items():
        own = model.preparation_.transformers_[name]
        for step in [] if isinstance(own, str) else own.steps:
            if hasattr(step, "n_imputed_"):
                lost = np.isnan(block) & ~np.isnan(block).all(axis=1, keepdims=True)
                block = np.where(lost, step._mean, block)
            else:
                deviation = np.sqrt(step.var_)
                block = (block - step.mean_) / np.where(deviation > 0, deviation, np.inf)
        out[name] = block
    return cs.Views(out)


@pytest.mark.parametrize("labels", ["two", "text"])
@pytest.mark.parametrize("recipes", ["standardize", ["impute", "standardize"], {"a": "impute"}], ids=str)
def test_statistics_of_a_preparation_are_frozen(recipes, labels):
    views = {**VIEWS, "a": np.column_stack([VIEWS["a"][:, :3], np.full(300, 7.0)])}  # a column without variance
    model = cs.OrthogonalPerceptron(prepare=recipes).partial_fit(views, LABELS[labels])
    rows = {name: block[:50].copy() for name, block in views.items()}
    if recipes != "standardize":
        rows["a"][::3, 1] = np.nan
    _, probabilities = run(model, rows)
    scores = model._scores(prepared(model, rows))
    np.testing.assert_allclose(probabilities, model._calibration.probabilities(scores), atol=1e-9)
    # the model counts the row itself
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=10 / model.n_samples_seen_)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_regression_has_one_output(n_targets):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the graphs")
    model = cs.PassiveAggressiveRegressor(average=True).partial_fit(VIEWS, TRUTH[:, :n_targets].squeeze())
    (found,) = runtime.InferenceSession(to_onnx(model).SerializeToString()).run(None, VIEWS)
    assert found.shape == (300, n_targets)
    np.testing.assert_allclose(found.squeeze(), model.predict(VIEWS), rtol=1e-5)


REFUSED = {
    "takes online estimators; got EarlyFusion.": lambda: cs.EarlyFusion(Ridge()),
    "is not fitted yet": lambda: cs.OnlinePerceptron(),
    "KernelPerceptron is not linear with these parameters": lambda: cs.KernelPerceptron(RBF(0.1)).partial_fit(
        VIEWS, LABELS["two"]
    ),
    "MultiCueClassifier is not linear": lambda: cs.MultiCueClassifier(RBF(0.1)).partial_fit(VIEWS, LABELS["two"]),
    "OnlinePerceptron is not linear": lambda: cs.OnlinePerceptron(3.0).partial_fit(VIEWS, LABELS["two"]),
    "has learned fewer than two classes": lambda: cs.OnlinePerceptron().partial_fit(VIEWS, np.zeros(300)),
    "View 'a' is prepared by 'FixedStep'": lambda: cs.OnlinePerceptron(prepare={"a": "log"}).partial_fit(
        {name: np.abs(block) for name, block in VIEWS.items()}, LABELS["two"]
    ),
    "OnlinePerceptron has learned several labels per sample": lambda: cs.OnlinePerceptron().partial_fit(
        VIEWS, np.column_stack([LABELS["two"], ~LABELS["two"]]).astype(int)
    ),
    "ONNX has no labels of type datetime64.* Use numbers or strings": lambda: cs.OnlinePerceptron().partial_fit(
        VIEWS, np.array(["2026-01-01", "2026-07-01"], dtype="datetime64[D]")[LABELS["two"].astype(int)]
    ),
    "unequal='repeat' repeats columns": lambda: cs.MatrixPerceptron(unequal="repeat").partial_fit(VIEWS, LABELS["two"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_graph_is_refused(message):
    pytest.importorskip("onnx", reason="onnx makes the graphs")
    with pytest.raises((TypeError, ValueError), match=message):
        to_onnx(REFUSED[message]())


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'consilience\[onnx\]'"):
        to_onnx(cs.OnlinePerceptron())
