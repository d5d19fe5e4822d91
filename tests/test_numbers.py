"""Numbers at the ends of floating point: a finite answer or a sentence, never NaN, and no half-learned chunk."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge

import consilience as cs
from consilience import Views
from consilience.kernels import Linear, Polynomial, exp

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
LABELS = np.digitize(X[:, 0], [-0.4, 0.4])
TARGETS = X[:, 0] - 0.5 * X[:, 1]
pytestmark = pytest.mark.filterwarnings("ignore")

ONLINE = {
    "kernel perceptron": cs.KernelPerceptron,
    "projectron": cs.Projectron,
    "orthogonal perceptron": cs.OrthogonalPerceptron,
    "matrix perceptron": cs.MatrixPerceptron,
    "passive-aggressive": cs.PassiveAggressive,
    "vector perceptron": cs.VectorPerceptron,
    "cues": cs.MultiCueClassifier,
}
BATCH = {
    "ridge": cs.CoRegularizedRidge,
    "ridge cv": cs.CoRegularizedRidgeCV,
    "classifier": cs.CoRegularizedRidgeClassifier,
    "classifier cv": cs.CoRegularizedRidgeClassifierCV,
    "svc": cs.CoRegularizedSVC,
    "metric": cs.ViewMetricRidge,
    "metric cv": cs.ViewMetricRidgeCV,
    "metric classifier": cs.ViewMetricRidgeClassifier,
    "metric classifier cv": cs.ViewMetricRidgeClassifierCV,
    "kernels": cs.MultipleKernelRidge,
    "kernels classifier": cs.MultipleKernelRidgeClassifier,
    "output kernel": cs.OutputKernelRidge,
    "max margin": cs.MaxMarginClassifier,
    "max margin regression": cs.MaxMarginRegressor,
}
KERNELIZED = {**ONLINE, **BATCH}
LINEAR = {
    "perceptron": cs.OnlinePerceptron(shuffle=False),
    "3-norm": cs.OnlinePerceptron(3, shuffle=False),
    "orthogonal": cs.OrthogonalPerceptron(shuffle=False),
    "matrix": cs.MatrixPerceptron(shuffle=False),
    "passive-aggressive": cs.PassiveAggressive(shuffle=False),
    "early": cs.EarlyFusion(LogisticRegression()),
    "late": cs.LateFusion(LogisticRegression()),
    "early ridge": cs.EarlyFusion(Ridge()),
    "late ridge": cs.LateFusion(Ridge()),
}


def targets(learner):
    return LABELS if is_classifier(learner) else TARGETS


def outputs(learner, data):
    if hasattr(learner, "decision_function"):
        return learner.decision_function(data)
    return learner.predict(data)


# -- kernels that overflow
@pytest.mark.parametrize("kernel", [exp(Linear()), Polynomial(20)], ids=repr)
@pytest.mark.parametrize("name", KERNELIZED)
def test_a_kernel_that_overflows_is_refused_at_fit_with_the_view_named(name, kernel):
    learner = KERNELIZED[name](kernel)
    huge = {"calm": X, "wild": (1e20 if isinstance(kernel, Polynomial) else 50) * X}
    with pytest.raises(ValueError, match=r"View 'wild': .* has values between these samples that are NaN or too"):
        learner.fit(huge, targets(learner))
    assert not hasattr(learner, "view_names_in_")


@pytest.mark.parametrize("name", KERNELIZED)
def test_a_kernel_that_overflows_is_refused_at_prediction_with_the_view_named(name):
    learner = KERNELIZED[name](Polynomial(8))
    learner.fit({"calm": X, "wild": X}, targets(learner))
    before = outputs(learner, {"calm": X[:4], "wild": X[:4]})
    with pytest.raises(ValueError, match=r"View 'wild': .* has values between these samples that are NaN or too"):
        learner.predict({"calm": X[:4], "wild": np.vstack([X[:3], [[1e60, 0, 0]]])})
    assert np.array_equal(outputs(learner, {"calm": X[:4], "wild": X[:4]}), before)


@pytest.mark.parametrize("value", [1e200, -1e308])
@pytest.mark.parametrize("name", [*KERNELIZED, *LINEAR])
def test_values_whose_squares_overflow_are_refused_at_fit_and_at_prediction(name, value):
    learner = clone(LINEAR[name]) if name in LINEAR else KERNELIZED[name]("rbf")
    wild = np.vstack([X[:3], [[value, 0, 0]]])
    message = r"View 'wild' has values up to 1e\+\d+; above 1.34e\+148 their squares and sums can overflow. Scale it."
    with pytest.raises(ValueError, match=message):
        learner.fit({"calm": X[:4], "wild": wild}, targets(learner)[:4])
    learner.fit({"calm": X, "wild": X}, targets(learner))
    with pytest.raises(ValueError, match=message):
        learner.predict({"calm": X[:4], "wild": wild})
    if hasattr(learner, "partial_fit"):
        before = outputs(learner, {"calm": X, "wild": X})
        with pytest.raises(ValueError, match=message):
            learner.partial_fit({"calm": X[:4], "wild": wild}, LABELS[:4])
        assert np.array_equal(outputs(learner, {"calm": X, "wild": X}), before)


def test_single_precision_has_limits_of_its_own():
    wild = np.where(np.arange(60)[:, None] == 7, np.float32(1e30), X.astype(np.float32))
    with pytest.raises(ValueError, match=r"values up to 1e\+30; .* can overflow. Scale it, or give float64 data."):
        cs.CoRegularizedRidge("linear").fit(wild, TARGETS)
    assert np.isfinite(cs.CoRegularizedRidge("linear").fit(wild.astype(np.float64), TARGETS).predict(X)).all()


# -- a chunk that is refused halfway
def counts(model):
    return {
        name: getattr(model, name, None)
        for name in (
            "n_mistakes_",
            "n_updates_",
            "n_samples_seen_",
            "classes_",
            "view_names_in_",
            "support_",
            "online_error_",
        )
    }


AVERAGES = {"vector perceptron": [None], "projectron": [False, True], "cues": [False, True]}
AVERAGED = [(name, average) for name in ONLINE for average in AVERAGES.get(name, [False, True, "voted"])]


@pytest.mark.parametrize("late", [False, True], ids=["the same views", "a view that is new"])
@pytest.mark.parametrize(("name", "average"), AVERAGED)
def test_a_chunk_in_which_a_kernel_overflows_halfway_leaves_no_trace(name, average, late):
    model = ONLINE[name](Polynomial(20))
    model.set_params(**({} if average is None else {"average": average}))
    rows = 0.5 * np.random.default_rng(1).normal(size=(700, 2))
    y = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    wild = rows[300:].copy()
    wild[-3:] = 1e20  # more than a block of samples comes before
    model.partial_fit({"a": rows[:300]}, y[:300])
    twin = clone(model).partial_fit({"a": rows[:300]}, y[:300])
    before, state = model.decision_function(rows), counts(model)
    chunk = {"a": rows[300:], "b": wild} if late else {"a": wild}
    for _ in range(2):
        with pytest.raises(ValueError, match="values between these samples that are NaN or too large"):
            model.partial_fit(chunk, y[300:])
        after = counts(model)
        assert all(np.array_equal(after[key], state[key]) for key in state)
        assert np.array_equal(model.decision_function(rows), before)
    for learner in (model, twin):  # and it goes on as if nothing had been
        learner.partial_fit({"a": rows[300:]}, y[300:])
    assert np.array_equal(model.decision_function(rows), twin.decision_function(rows))
    assert counts(model)["n_mistakes_"] == counts(twin)["n_mistakes_"]


@pytest.mark.parametrize("name", ONLINE)
def test_a_first_chunk_that_overflows_leaves_a_fresh_learner(name):
    rows = np.random.default_rng(1).normal(size=(400, 2))
    rows[-1] = 1e20
    model = ONLINE[name](Polynomial(20))
    with pytest.raises(ValueError, match="values between these samples that are NaN or too large"):
        model.partial_fit(rows, np.arange(400) % 2)
    assert set(vars(model)) == set(vars(ONLINE[name](Polynomial(20))))
    model.partial_fit(rows[:-1], np.arange(399) % 2).predict(rows[:2])


# -- targets, weights and penalties
def attempt(work):
    """Return the result and None, or None and the text of a plain ValueError; other errors fail the test."""
    try:
        return work(), None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        return None, str(error)


@pytest.mark.parametrize("name", ["ridge", "ridge cv", "metric", "kernels", "output kernel", "max margin regression"])
@pytest.mark.parametrize("size", [1e140, 1e200])
def test_targets_that_are_too_large_are_refused(name, size):
    learner = BATCH[name]("rbf")
    found, refusal = attempt(lambda: learner.fit(X, size * TARGETS).predict(X))
    if refusal is None:
        assert size < 1e148 or name == "max margin regression"  # its outputs are candidates, compared by a kernel
        assert np.isfinite(found).all()
    else:
        assert "y has values up to" in refusal or "found no finite solution" in refusal
        assert not hasattr(learner, "view_names_in_")


SIZES = [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300]
PENALTIES = {
    "ridge": ["alpha", "agreement_penalty", "graph_penalty"],
    "classifier": ["alpha", "agreement_penalty", "graph_penalty"],
    "svc": ["alpha", "agreement_penalty", "graph_penalty"],
    "metric": ["alpha", "metric_penalty"],
    "metric classifier": ["alpha", "metric_penalty"],
    "kernels": ["alpha"],
    "kernels classifier": ["alpha"],
    "output kernel": ["alpha"],
    "max margin": ["C"],
    "max margin regression": ["C"],
    "passive-aggressive": ["C"],
    "cues": ["C"],
    "vector perceptron": ["eta0", "margin"],
    "kernel perceptron": ["eta0", "margin"],
    "orthogonal perceptron": ["eta0", "margin"],
}
EXTREMES = [(name, parameter) for name, parameters in PENALTIES.items() for parameter in parameters]
TWO = Views(a=X, b=np.hstack([X[:, :1] ** 2, X]))


def finite_or_refused(learner, y, **more):
    """Fit and predict: numbers are finite, or a sentence of ours says why not."""
    found, refusal = attempt(lambda: outputs(learner.fit(TWO, y, **more), TWO))
    if refusal is not None:
        assert refusal.endswith(".")
        assert any(part in refusal for part in (type(learner).__name__, "`", "View '"))
        assert not hasattr(learner, "view_names_in_") or "prediction" in refusal
        return
    assert np.isfinite(found).all()
    certificate = learner.certificate()
    numbers = [getattr(certificate, name, None) for name in ("objective", "gap")]
    assert all(number is None or np.isfinite(number) for number in numbers)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "parameter"), EXTREMES)
def test_penalties_of_any_size_give_finite_numbers_or_a_sentence(name, parameter, size):
    learner = KERNELIZED[name]("rbf")
    learner.set_params(**{parameter: size})
    finite_or_refused(learner, targets(learner))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("name", [*BATCH, "early", "late", "early ridge", "late ridge"])
def test_weights_of_any_size_give_finite_numbers_or_a_sentence(name, spread, size):
    learner = clone(LINEAR[name]) if name in LINEAR else BATCH[name]("rbf")
    weights = np.where(np.arange(60) % 3 == 0, size, 1.0) if spread else np.full(60, size)
    finite_or_refused(learner, targets(learner), sample_weight=weights)
