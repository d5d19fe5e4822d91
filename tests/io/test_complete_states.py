"""A file whose states lack an attribute is refused, or gives a model that works or raises a sentence."""

import copy
import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import cases
import consilience as cs
from consilience import Views
from consilience.io._checks import BadState
from consilience.io._states import check_state
from consilience.kernels import RBF, normalize
from fuzzing.properties import attempt

rng = np.random.default_rng(7)
N = 8
MASK = np.ones((N, 2), dtype=bool)
MASK[2, 0] = MASK[5, 1] = False
X = Views({"a": rng.normal(size=(N, 2)), "b": sp.csr_array(np.round(rng.normal(size=(N, 3))))}, mask=MASK)
NUMBERS = rng.normal(size=(N, 2))


def is_refused(model):
    try:
        check_state(model)
    except BadState:
        return True
    return False


@functools.cache
def fitted(name):
    model = clone(cases.LEARNERS[name])
    if hasattr(model, "max_iter"):
        model.set_params(max_iter=min(model.max_iter, 20))
    numbers = NUMBERS if isinstance(model, cs.OutputKernelRidge) else NUMBERS[:, 0]
    y = np.arange(N) % 3 if is_classifier(model) else numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y), y


def acts(model, y):
    """Yield the names and calls of what a user does with a model."""
    yield "certificate", model.certificate
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            yield name, lambda name=name: getattr(model, name)(X)
    if hasattr(model, "partial_fit"):
        yield "partial_fit", lambda: model.partial_fit(X, y)
        yield "predict again", lambda: model.predict(X)


def broken_without(model, y, attribute):
    """Return the errors other than sentences of a model that lost an attribute."""
    model = copy.deepcopy(model)
    del vars(model)[attribute]
    if is_refused(model):
        return []
    errors = []
    for name, act in acts(model, y):
        try:
            attempt(act, doing=f"in {name}", any_text=True)
        except AssertionError as error:
            errors.append(f"without {attribute}: {error}")
    return errors


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.LEARNERS)
def test_a_model_that_lost_an_attribute_is_refused_or_raises_a_sentence(name, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed: model files run with its extra")
    model, y = fitted(name)
    cs.save(model, tmp_path / "model.cons")
    model = cs.load(tmp_path / "model.cons")  # arrays as files hold them
    errors = [error for attribute in list(vars(model)) for error in broken_without(model, y, attribute)]
    assert errors == []


@pytest.mark.parametrize("attribute", list(vars(X)))
def test_views_that_lost_an_attribute_are_refused(attribute):
    check_state(X)
    views = copy.copy(X)
    del vars(views)[attribute]
    with pytest.raises(BadState, match="Views have other attributes"):
        check_state(views)


def test_views_with_another_attribute_are_refused():
    views = copy.copy(X)
    vars(views)["other"] = 1
    with pytest.raises(BadState, match="Views have other attributes"):
        check_state({"data": [views]})


def test_a_class_in_the_place_of_a_kernel_is_refused():
    features = cs.Nystroem(RBF(0.5), n_components=3, random_state=0).fit(X)
    check_state(features)
    features.kernels_ = {**features.kernels_, "a": str}
    assert is_refused(features)
    kernel = normalize(RBF(0.5))
    check_state(kernel)
    for other in (str, 1.0, None):
        kernel.kernel = other
        with pytest.raises(BadState, match="kernel of a kernel"):
            check_state(kernel)


@pytest.mark.parametrize(
    ("name", "remembered"),
    [
        ("other", ("numbers", 2, None)),
        ("a", (0, 2, None)),
        ("a", ("numbers", 2.0, None)),
        ("a", ("numbers", 2, ("u",))),
    ],
)
def test_only_views_of_the_fit_are_remembered_by_their_kinds_and_columns(name, remembered):
    model = cs.CoRegularizedRidge().fit(X, NUMBERS[:, 0])
    assert model._known["a"] == ("numbers", 2, None)
    check_state(model)
    model._known = {**model._known, name: remembered}
    with pytest.raises(BadState, match=r"^_known"):
        check_state(model)


@pytest.mark.parametrize("attribute", ["n_samples_seen_", "_largest", "estimators_"])
def test_what_learning_begins_with_is_named_where_it_is_missing(attribute):
    model = copy.deepcopy(fitted("cues")[0])
    check_state(model)
    del vars(model)[attribute]
    with pytest.raises(BadState, match=f"^{attribute} is missing"):
        check_state(model)


@pytest.mark.parametrize("change", [np.asfortranarray, np.float32])
def test_arrays_of_compiled_passes_are_in_double_precision_and_row_by_row(change):
    calibration = cs.OnlinePerceptron().partial_fit(X, np.arange(N) % 2)._calibration
    assert calibration.curvature.shape == (2, 3)
    check_state(calibration)
    calibration.curvature = change(calibration.curvature)
    with pytest.raises(BadState, match="curvature is not double"):
        check_state(calibration)


@pytest.mark.parametrize("attribute", ["coef_", "_features"])
def test_what_a_model_of_features_predicts_with_is_named_where_it_is_missing(attribute):
    model = cs.CoRegularizedRidge("linear", n_components=3).fit(X, NUMBERS[:, 0])
    check_state(model)
    del vars(model)[attribute]
    with pytest.raises(BadState, match=f"^{attribute} is missing"):
        check_state(model)


def test_an_estimator_that_refused_its_first_samples_is_not_taken_for_a_fitted_one():
    model = cs.MatrixPerceptron(unequal="pad")
    with pytest.raises(ValueError):
        model.partial_fit(X, np.arange(N) % 2, classes=[0, 5])
    check_state(model)
