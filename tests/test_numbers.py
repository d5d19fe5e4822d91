"""Numbers at the ends of floating point: a finite answer or a sentence, never NaN, and no half-learned chunk."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge

import cases
import consilience as cs
from consilience import Views
from consilience.kernels import Linear, Polynomial, exp

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
LABELS = np.digitize(X[:, 0], [-0.4, 0.4])
TARGETS = X[:, 0] - 0.5 * X[:, 1]
pytestmark = pytest.mark.filterwarnings("ignore")

ONLINE, BATCH = cases.with_kernels(online=True), cases.with_kernels(online=False)
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


FUSIONS = [name for name, model in LINEAR.items() if isinstance(model, (cs.EarlyFusion, cs.LateFusion))]
OVERFLOW = "values between these samples that are NaN or too"


def targets(model):
    return LABELS if is_classifier(model) else TARGETS


def outputs(model, data):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


def both(wild, calm=X):
    """Return two views, of which one has values that overflow."""
    return {"calm": calm[: len(wild)], "wild": wild}


# -- kernels that overflow
@pytest.mark.parametrize("name", KERNELIZED)
def test_a_kernel_that_overflows_is_refused_with_the_view_named(name):
    for kernel, scale in ((exp(Linear()), 50), (Polynomial(20), 1e20)):
        model = KERNELIZED[name](kernel)
        with pytest.raises(ValueError, match=f"View 'wild': .* has {OVERFLOW}"):
            model.fit(both(scale * X), targets(model))
        assert not hasattr(model, "view_names_in_")
    model = KERNELIZED[name](Polynomial(8))
    model.fit(both(X), targets(model))
    before = outputs(model, both(X[:4]))
    with pytest.raises(ValueError, match=f"View 'wild': .* has {OVERFLOW}"):
        model.predict(both(np.vstack([X[:3], [[1e60, 0, 0]]])))
    assert np.array_equal(outputs(model, both(X[:4])), before)


@pytest.mark.parametrize("value", [1e200, -1e308])
@pytest.mark.parametrize("name", [*KERNELIZED, *LINEAR])
def test_values_whose_squares_overflow_are_refused_at_fit_and_at_prediction(name, value):
    model = clone(LINEAR[name]) if name in LINEAR else KERNELIZED[name]("rbf")
    wild = both(np.vstack([X[:3], [[value, 0, 0]]]))
    message = r"View 'wild' has values up to 1e\+\d+; above 1.34e\+148 their squares and sums can overflow. Scale it."
    with pytest.raises(ValueError, match=message):
        model.fit(wild, targets(model)[:4])
    before = outputs(model.fit(both(X), targets(model)), both(X))
    calls = [lambda: model.predict(wild)]
    calls += [lambda: model.partial_fit(wild, LABELS[:4])] if hasattr(model, "learn_one") else []
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()
    assert np.array_equal(outputs(model, both(X)), before)


def test_single_precision_has_limits_of_its_own():
    wild = np.where(np.arange(60)[:, None] == 7, np.float32(1e30), X.astype(np.float32))
    with pytest.raises(ValueError, match=r"values up to 1e\+30; .* can overflow. Scale it, or give float64 data."):
        cs.CoRegularizedRidge("linear").fit(wild, TARGETS)
    assert np.isfinite(cs.CoRegularizedRidge("linear").fit(wild.astype(np.float64), TARGETS).predict(X)).all()


# -- a chunk that is refused halfway
COUNTS = (
    "n_mistakes_",
    "total_loss_",
    "n_updates_",
    "n_samples_seen_",
    "classes_",
    "view_names_in_",
    "support_",
    "online_error_",
)
AVERAGES = {
    "VectorPerceptron": [None],
    "PassiveAggressiveRegressor": [False, True],
    "Projectron": [False, True],
    "MultiCueClassifier": [False, True],
}
AVERAGED = [(name, average) for name in ONLINE for average in AVERAGES.get(name, [False, True, "voted"])]


@pytest.mark.parametrize("late", [False, True], ids=["the same views", "a view that is new"])
@pytest.mark.parametrize(("name", "average"), AVERAGED)
def test_a_chunk_in_which_a_kernel_overflows_halfway_leaves_no_trace(name, average, late):
    model = ONLINE[name](Polynomial(20), **({} if average is None else {"average": average}))
    rows = 0.5 * np.random.default_rng(1).normal(size=(700, 2))
    y = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    wild = rows[300:].copy()
    wild[-3:] = 1e20  # more than a block of samples comes before
    twin = clone(model).partial_fit({"a": rows[:300]}, y[:300])
    model.partial_fit({"a": rows[:300]}, y[:300])
    before, state = outputs(model, rows), [getattr(model, count, None) for count in COUNTS]
    chunk = {"a": rows[300:], "b": wild} if late else {"a": wild}
    for _ in range(2):
        with pytest.raises(ValueError, match=OVERFLOW):
            model.partial_fit(chunk, y[300:])
        assert all(np.array_equal(getattr(model, k, None), old) for k, old in zip(COUNTS, state, strict=True))
        assert np.array_equal(outputs(model, rows), before)
    for one in (model, twin):  # and it goes on as if nothing had been
        one.partial_fit({"a": rows[300:]}, y[300:])
    assert np.array_equal(outputs(model, rows), outputs(twin, rows))
    assert all(np.array_equal(getattr(model, k, None), getattr(twin, k, None)) for k in COUNTS)


@pytest.mark.parametrize("name", ONLINE)
def test_a_first_chunk_that_overflows_leaves_a_fresh_estimator(name):
    rows = np.random.default_rng(1).normal(size=(400, 2))
    rows[-1] = 1e20
    model = ONLINE[name](Polynomial(20))
    with pytest.raises(ValueError, match=OVERFLOW):
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


@pytest.mark.parametrize("name", [name for name, cls in BATCH.items() if not is_classifier(cls())])
@pytest.mark.parametrize("size", [1e140, 1e200])
def test_targets_that_are_too_large_are_refused(name, size):
    model = BATCH[name]("rbf")
    predicted, refusal = attempt(lambda: model.fit(X, size * TARGETS).predict(X))
    if refusal is None:
        assert size < 1e148 or name == "MaxMarginRegressor"  # its outputs are candidates, compared by a kernel
        assert np.isfinite(predicted).all()
    else:
        assert "y has values up to" in refusal or "found no finite solution" in refusal
        assert not hasattr(model, "view_names_in_")


SIZES = [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300]
PENALTIES = ("alpha", "agreement_penalty", "graph_penalty", "metric_penalty", "C", "eta0", "margin")
EXTREMES = [(name, k) for name, cls in KERNELIZED.items() for k in PENALTIES if k in cls._get_param_names()]
TWO = Views(a=X, b=np.hstack([X[:, :1] ** 2, X]))


def finite_or_refused(model, y, **more):
    """Fit and predict: numbers are finite, or a sentence of ours says why not."""
    predicted, refusal = attempt(lambda: outputs(model.fit(TWO, y, **more), TWO))
    if refusal is not None:
        assert refusal.endswith(".")
        assert any(part in refusal for part in (type(model).__name__, "`", "View '"))
        assert not hasattr(model, "view_names_in_") or "prediction" in refusal
        return
    assert np.isfinite(predicted).all()
    certificate = model.certificate()
    numbers = [getattr(certificate, name, None) for name in ("objective", "gap")]
    assert all(number is None or np.isfinite(number) for number in numbers)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "parameter"), EXTREMES)
def test_penalties_of_any_size_give_finite_numbers_or_a_sentence(name, parameter, size):
    model = KERNELIZED[name]("rbf", **{parameter: size})
    finite_or_refused(model, targets(model))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("name", [*BATCH, *FUSIONS])
def test_weights_of_any_size_give_finite_numbers_or_a_sentence(name, spread, size):
    model = clone(LINEAR[name]) if name in LINEAR else BATCH[name]("rbf")
    weights = np.where(np.arange(60) % 3 == 0, size, 1.0) if spread else np.full(60, size)
    finite_or_refused(model, targets(model), sample_weight=weights)
