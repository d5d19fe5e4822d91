"""Changes of the data or the penalties whose effect on predictions is known, for every estimator of the tables.

The order of views, views that are always missing and other forms of the same data are contracts of
`check_multiview_estimator`; targets of another size are conditions of trust/numerics.py. They are not repeated here.
"""

import numpy as np
import pytest
from sklearn.base import clone

import cases
import consilience as cs
from _conditions import Data, duplicated_rows, is_kernelized, mapped
from _trials import Trial, is_online, try_one
from consilience.kernels import as_kernel
from consilience.solvers.certificates import Certificate

CLOSE = 1e-5  # of the largest prediction


def data_of(name):
    return Data(cases.LEARNERS[name], np.random.default_rng([3, list(cases.LEARNERS).index(name)]), n=21)


def with_kernel(model, change):
    """Return the estimator with another kernel, or with other ones for all kernels of a list."""
    given = model.get_params(deep=False)["kernel"]
    return clone(model).set_params(kernel=[change(k) for k in given] if isinstance(given, list) else change(given))


def settled(model):
    """Return an online estimator without an intercept, which is a column of ones that no kernel scales."""
    plain = is_online(model) and "fit_intercept" in model.get_params(deep=False)
    return clone(model).set_params(fit_intercept=False) if plain else clone(model)


def scaled(model, **factors):
    """Return an estimator with some of its parameters multiplied, numbers or lists of them."""
    known = model.get_params(deep=False)
    for name in factors.keys() & known.keys():
        value = known[name]
        model.set_params(**{name: factors[name] * (value if np.isscalar(value) else np.asarray(value))})
    return model


# -- relations: a function of the data, which returns a trial and its equal
def rows_permuted(data):
    """Samples in another order."""
    X, y = data.tables(), data.targets()
    rows = data.rng.permutation(data.n)
    return Trial(data.model, mapped(X, lambda A: A[rows]), y[rows], same=Trial(data.model, X, y), at=(X, X))


def rows_repeated(data):
    """Samples given several times, and weights of as many."""
    (trial,) = duplicated_rows(data)
    return trial


def kernel_scaled(data, s=4.0):
    """Kernels times s with penalties times s and bounds of coefficients divided by s; perceptrons have larger scores.

    The norm of a learned metric is one of coefficients of kernels, so that its penalty grows by the square. Banded
    ridge scales kernels itself.
    """
    X, y, plain = data.tables(), data.targets(), settled(data.model)
    known = plain.get_params(deep=False)
    model = with_kernel(plain, lambda k: s * as_kernel(k))
    coefficients = known.get("metric", "diagonal") != "diagonal" and known.get("n_components") is None
    power = s * s if coefficients else 1 if isinstance(plain, cs.BandedRidgeCV) else s
    scaled(model, alpha=power, alphas=power, C=1 / s)
    if known.get("graph") == "kernel":  # the weights of the graph are values of the kernel
        scaled(model, graph_penalty=1 / s)
    steps = is_online(plain) and "PassiveAggressive" not in type(plain).__name__  # of one length, whatever the scores
    steps = steps and known.get("variant") != "passive-aggressive"
    if steps:
        scaled(model, margin=s, C=s, threshold=np.sqrt(s))
    times = s if steps and known.get("average") != "voted" else 1.0
    return Trial(model, X, y, same=Trial(plain, X, y), times=times)


def zeros_added(data):
    """A view of zeros next to others, with linear kernels; means of views are of thirds then, not of halves."""
    X, y, model = data.tables(), data.targets(), settled(data.model)
    if is_kernelized(model):
        model.set_params(kernel="linear")
    three = scaled(clone(model), alpha=4 / 9, alphas=4 / 9) if isinstance(model, MEANS) else model
    more = {**X, "z": np.zeros((data.n, 2))}
    return Trial(three, more, y, same=Trial(model, X, y), at=(more, X))


def view_twice(data):
    """The same view under two names, and one view with the kernel times the factor that the program gives it.

    Sums of views count it twice. Means of two views are sums of halves, whose kernels have quarters. Weights of several
    kernels with a p-norm of 1 are 2^(-1/p) each. Late fusions have the same model twice.
    """
    A, y, model = data.tables()["a"], data.targets(), settled(data.model)
    factor = 2.0
    if isinstance(model, MEANS):
        factor = 0.5
    elif isinstance(model, (cs.MultipleKernelRidge, cs.MultipleKernelRidgeClassifier)):
        factor = 2 ** (1 - 1 / model.p)
    elif isinstance(model, cs.LateFusion):
        factor = 1.0
    if "kernel" in model.get_params(deep=False):
        once = Trial(with_kernel(model, lambda k: factor * as_kernel(k)), {"a": A}, y)
    else:
        once = Trial(model, {"a": np.sqrt(factor) * A}, y)
    return Trial(model, {"a": A, "b": A.copy()}, y, same=once)


MEANS = (
    cs.CoRegularizedRidge, cs.CoRegularizedRidgeCV, cs.CoRegularizedRidgeClassifier, cs.CoRegularizedRidgeClassifierCV,
    cs.CoRegularizedSVC, cs.VectorValuedRegressor, cs.VectorValuedClassifier, cs.ViewMetricRidge, cs.ViewMetricRidgeCV,
    cs.ViewMetricRidgeClassifier, cs.ViewMetricRidgeClassifierCV, cs.OutputKernelRidge, cs.OutputKernelRidgeClassifier,
)  # fmt: skip
RELATIONS = {
    "rows permuted": rows_permuted, "rows repeated": rows_repeated, "kernel scaled": kernel_scaled,
    "zeros added": zeros_added, "view twice": view_twice,
}  # fmt: skip


# -- estimators for which a relation does not hold, with the reason
def named(reason, *names):
    return dict.fromkeys(names, reason)


ONLINE = [name for name, model in cases.LEARNERS.items() if is_online(model)]
WITHOUT = [name for name, model in cases.LEARNERS.items() if "kernel" not in model.get_params(deep=False)]
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
GRAPHS = ("coregularized ridge, all terms", "coregularized ridge, features", "coregularized classifier, all terms")
METRICS = (
    "metric ridge", "metric ridge, shared", "metric ridge, covariance", "metric ridge, learned weights",
    "metric ridge cv", "metric classifier", "metric classifier, block-sparse", "metric classifier cv",
)  # fmt: skip
OUTPUTS = ("output kernel", "output kernel classifier")
EXEMPT = {
    "rows permuted": named("a stream has an order", *ONLINE),
    "rows repeated": {
        **{name: checks[WEIGHTS] for name, checks in cases.EXEMPT.items() if WEIGHTS in checks},
        **named("a sample that is there twice is left out once only", "banded ridge", "banded ridge, linear"),
    },
    "kernel scaled": {
        **named("it has no kernel", *WITHOUT),
        **named("it chooses kernels and penalties itself", "consensus", "consensus classifier"),
        **named("the covariance of the views has the scale of the kernels", "vector-valued, covariance"),
        **named("the output kernel has a penalty of its own, which does not scale", *OUTPUTS),
        **named("projections have limits in units of the kernel and of the scores", "projectron",
                "passive-aggressive regression, projected", "cues"),
        **named("prior norms are in units of the weights", "orthogonal perceptron, aggressive"),
        **named("steps of coefficients do not scale with the margin", "vector perceptron, coefficients"),
    },
    "zeros added": {
        **named("each view has a model, also that of zeros", "late logistic", "late ridge classifier", "late ridge"),
        **named("linear kernels are no weights of a graph", *GRAPHS),
        **named("views agree with that of zeros, as far as a penalty asks for it", "coregularized ridge cv",
                "coregularized svc", "coregularized ridge, learned weights"),
        **named("the kernels of a list are not linear", "coregularized ridge, several kernels per view",
                "multiple kernels, several per view"),
        **named("weights of views are learned from equal ones", "metric ridge, learned weights"),
        **named("weights are drawn at random for each view", "banded ridge", "banded ridge, linear"),
        **named("the output kernel has a penalty of its own, which does not scale", *OUTPUTS),
        **named("its intercept may not be unique, so that outputs are compared by view", "max margin, bias"),
        **named("prior norms count views", "orthogonal perceptron, aggressive"),
    },
    "view twice": {
        **named("it chooses kernels and penalties itself", "consensus", "consensus classifier"),
        **named("each view has a graph, whose penalty counts twice", *GRAPHS),
        **named("the metric joins the coefficients of both views", *METRICS),
        **named("several kernels of a view have weights of their own", "coregularized ridge, several kernels per view"),
        **named("the covariance of the views has the scale of the kernels", "vector-valued, covariance"),
        **named("its intercept may not be unique, so that outputs are compared by view", "max margin, bias"),
        **named("its norm is not that of a sum of views", "p-norm perceptron", "orthogonal perceptron",
                "orthogonal perceptron, kernel"),
        **named("views have estimators of their own under a second layer", "cues"),
    },
}  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", cases.LEARNERS)
def test_predictions_follow_from_those_of_the_other_fit(name, relation):
    if name in EXEMPT[relation]:
        return
    trial = RELATIONS[relation](data_of(name))._replace(within=CLOSE)
    assert trial.same is not None
    outcome = try_one(trial)
    assert outcome.mark in ("certified", "answered"), outcome.text


def test_exemptions_name_estimators_and_few():
    assert set(EXEMPT) == set(RELATIONS)
    for relation, names in EXEMPT.items():
        assert set(names) <= set(cases.LEARNERS), relation
        assert len(names) <= len(cases.LEARNERS) / 2, relation


# -- the relations can fail
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fit_that_breaks_a_relation_is_found(relation, monkeypatch):
    predict, fit = cs.MaxMarginClassifier.decision_function, cs.MaxMarginClassifier.fit
    name = "max margin"
    assert try_one(RELATIONS[relation](data_of(name))._replace(within=CLOSE)).mark == "certified"

    def uneven(
        self, X, y, sample_weight=None
    ):  # what is learned depends on the order, the number and the size of views
        return fit(self.set_params(C=self.C * self.odd(X, sample_weight)), X, y, sample_weight)

    def odd(self, X, weights):
        first = next(iter(X.values()))
        return 1 + first[0, 0] ** 2 + len(X) + (0 if weights is None else weights.sum())

    monkeypatch.setattr(cs.MaxMarginClassifier, "odd", odd, raising=False)
    if relation == "kernel scaled":
        monkeypatch.setattr(cs.MaxMarginClassifier, "decision_function", lambda self, X: predict(self, X) * self.C)
    else:
        monkeypatch.setattr(cs.MaxMarginClassifier, "fit", uneven)
        monkeypatch.setattr(cs.MaxMarginClassifier, "certificate", lambda self: Certificate("exact"))
    outcome = try_one(RELATIONS[relation](data_of(name))._replace(within=CLOSE))
    assert outcome.mark == "failed"
    assert "differs from its equal" in outcome.text
