"""A fit that is refused or interrupted leaves fusions and transformers as they were."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import consilience as cs
from consilience import Views
from consilience.kernels import FromCallable

rng = np.random.default_rng(0)
X = Views(a=rng.normal(size=(40, 3)), b=rng.normal(size=(40, 2)))
OTHER = Views(a=rng.normal(size=(40, 3)), c=rng.normal(size=(40, 4)))
CLASSES = np.where(X["a"][:, 0] > 0, "cat", "dog")
TARGETS = X["a"][:, 0] - X["b"][:, 0]


class Interrupted(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A model of a view whose fit ends by Control-C, or by an error, where `when` says so."""

    def __init__(self, when="never"):
        self.when = when

    def fit(self, X, y=None, sample_weight=None):
        if self.when == "now" or (self.when == "wide" and X.shape[1] == 2):
            raise KeyboardInterrupt
        self.classes_ = np.unique(y)
        self.mean_ = np.asarray(X).mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > self.mean_[0]).astype(int)]


def broken(A, B):
    raise KeyboardInterrupt


MODELS = {
    "early": cs.EarlyFusion(LogisticRegression()),
    "early regression": cs.EarlyFusion(Ridge()),
    "early slow": cs.EarlyFusion(Interrupted()),
    "late": cs.LateFusion(LogisticRegression()),
    "late regression": cs.LateFusion(Ridge()),
    "late slow": cs.LateFusion(Interrupted()),
    "nystroem": cs.Nystroem(n_components=5, random_state=0),
    "fourier": cs.RandomFeatures(n_components=5, random_state=0),
    "per view": cs.PerView(StandardScaler()),
    "per view slow": cs.PerView(Interrupted()),
}
# each case: what is fitted, the parameters and the arguments of fit that are refused, and the error
REFUSED = [
    ("early", {}, (OTHER, CLASSES, -np.ones(40)), ValueError),
    ("early", {"fill": "median"}, (OTHER, CLASSES), ValueError),
    ("early", {}, (OTHER, np.zeros(40)), ValueError),
    ("early regression", {}, (OTHER, np.full(40, np.inf)), ValueError),
    ("early slow", {"estimator": Interrupted("now")}, (OTHER, CLASSES), KeyboardInterrupt),
    ("late", {}, (OTHER, CLASSES, -np.ones(40)), ValueError),
    ("late regression", {"view_weights": "best"}, (OTHER, TARGETS), ValueError),
    ("late regression", {"estimator": {"a": Ridge(), "d": Ridge()}}, (OTHER, TARGETS), ValueError),
    ("late regression", {"estimator": {"a": Ridge(), "c": Ridge(alpha=-1.0)}}, (OTHER, TARGETS), ValueError),
    ("late slow", {"estimator": {"a": Interrupted(), "b": Interrupted("now")}}, (X, CLASSES[::-1]), KeyboardInterrupt),
    ("nystroem", {"n_components": -1}, (OTHER,), ValueError),
    ("nystroem", {"kernel": {"c": "chi2"}}, (OTHER,), ValueError),
    ("nystroem", {"kernel": {"c": FromCallable(broken)}}, (OTHER,), KeyboardInterrupt),
    ("fourier", {"kernel": "linear"}, (OTHER,), Exception),
    ("fourier", {"n_components": 0}, (OTHER,), ValueError),
    ("per view", {"transformers": {"nope": StandardScaler()}}, (OTHER,), ValueError),
    ("per view slow", {"transformers": {"a": Interrupted(), "b": Interrupted("wide")}}, (X,), KeyboardInterrupt),
]
each_refusal = pytest.mark.parametrize(("name", "parameters", "given", "error"), REFUSED)


def answers(model):
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


def same(left, right):
    return left == right if isinstance(left, Views) else np.array_equal(left, right)


def good_targets(model):
    kind = getattr(model, "estimator", None)
    return (TARGETS if isinstance(kind, Ridge) else CLASSES,) if hasattr(model, "predict") else ()


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@each_refusal
def test_a_refused_refit_leaves_everything_as_it_was(name, parameters, given, error, method):
    model = MODELS[name]
    if method == "fit_transform" and not hasattr(model, "transform"):
        method = "fit"
    model = clone(model).fit(X, *good_targets(model))
    before, state = answers(model), dict(vars(model))
    old = {key: model.get_params(deep=False)[key] for key in parameters}
    model.set_params(**parameters)
    with pytest.raises(error):
        getattr(model, method)(*given)
    model.set_params(**old)
    assert vars(model).keys() == state.keys()
    assert all(vars(model)[key] is state[key] for key in state if key not in old)
    assert same(answers(model), before)
    with pytest.raises(ValueError, match="view"):
        (model.predict if hasattr(model, "predict") else model.transform)(Views(c=OTHER["c"]))


@each_refusal
def test_what_never_was_fitted_is_not_fitted_by_a_refusal(name, parameters, given, error):
    model = clone(MODELS[name]).set_params(**parameters)
    with pytest.raises(error):
        model.fit(*given)
    assert set(vars(model)) == set(vars(clone(model)))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        answers(model)
