"""Measures of a stream: equal to scikit-learn's, however the stream is cut, also after a restored state."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sk

import consilience as cs
import reference
from consilience import StreamMonitor
from consilience.online._predictions import StreamPredictions

N = 700
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def made(kind="three", n=N, weighted=False, seed=0):
    """Predictions of a made-up estimator: two or three classes, numbers, or several labels; two views."""
    rng = np.random.default_rng(seed)
    classes, probabilities = None, None
    if kind == "numbers":
        y = 50 + rng.normal(size=n)
        predicted = y + rng.normal(size=n)
    elif kind == "labels":
        classes = np.array(["a", "b", "c"])
        y, predicted = (rng.random((2, n, 3)) < 0.3).astype(np.int64)
    else:
        classes = np.array(["x", "y", "z"][: 2 if kind == "two" else 3])
        y = rng.integers(len(classes), size=n)
        shares = rng.integers(1, 500, size=(n, len(classes))) + 200 * (np.arange(len(classes)) == y[:, None])
        probabilities = shares / shares.sum(axis=1, keepdims=True)
        predicted = probabilities.argmax(axis=1)
    margins = rng.normal(size=(n, 2)) + 0.5
    margins[rng.random((n, 2)) < 0.1] = np.nan
    weights = rng.random(n) if weighted else None
    return StreamPredictions(np.arange(n), y, predicted, classes, probabilities, margins, ("a", "b"), weights)


def part(found, start, stop):
    """Some samples of a stream, with the classes that occur up to there, as an estimator knows them."""
    rows = slice(start, stop)
    values = {"rows": np.arange(stop - start), "y": found.y[rows], "predicted": found.predicted[rows],
              "view_margins": found.view_margins[rows]}  # fmt: skip
    if found.sample_weight is not None:
        values["sample_weight"] = found.sample_weight[rows]
    if found.probabilities is not None:
        values["probabilities"] = found.probabilities[rows]
    return replace(found, **values)


def monitored(found, cuts=(), monitor=None, **options):
    monitor = StreamMonitor(**options) if monitor is None else monitor
    for start, stop in zip((0, *cuts), (*cuts, len(found.y)), strict=True):
        monitor.update(part(found, start, stop))
    return monitor


CLASSES = {
    "error": lambda y, p, q, w: 1 - sk.accuracy_score(y, p, sample_weight=w),
    "accuracy": lambda y, p, q, w: sk.accuracy_score(y, p, sample_weight=w),
    "balanced_accuracy": lambda y, p, q, w: sk.balanced_accuracy_score(y, p, sample_weight=w),
    "f1": lambda y, p, q, w: sk.f1_score(y, p, average="macro", sample_weight=w),
    "log_loss": lambda y, p, q, w: sk.log_loss(y, q, sample_weight=w, labels=np.arange(q.shape[1])),
}
NUMBERS = {
    "mae": lambda y, p, q, w: sk.mean_absolute_error(y, p, sample_weight=w),
    "rmse": lambda y, p, q, w: sk.root_mean_squared_error(y, p, sample_weight=w),
    "r2": lambda y, p, q, w: sk.r2_score(y, p, sample_weight=w),
}
LABELS = {
    "error": lambda y, p, q, w: 1 - sk.accuracy_score(y, p, sample_weight=w),
    "hamming": lambda y, p, q, w: sk.hamming_loss(y, p, sample_weight=w),
}
KINDS = {"two": CLASSES, "three": CLASSES, "numbers": NUMBERS, "labels": LABELS}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_measures_are_those_of_scikit_learn(kind, weighted):
    found = made(kind, weighted=weighted)
    result = monitored(found, (100, 450), measures=list(KINDS[kind]), window=200, fading=0.99).result()
    w = np.ones(N) if found.sample_weight is None else found.sample_weight
    faded = w * 0.99 ** np.arange(N)[::-1]
    parts = {"whole": (slice(0, N), w, result.measures), "fading": (slice(0, N), faded, result.fading)}
    for k, stop in enumerate(result.windows["samples"]):
        own = {name: result.windows[name][k] for name in KINDS[kind]}
        parts[f"window {k}"] = slice(stop - 200, stop), w, own
    assert result.windows["samples"].tolist() == [200, 400, 600]
    for rows, weights, values in parts.values():
        q = None if found.probabilities is None else found.probabilities[rows]
        for name, measure in KINDS[kind].items():
            expected = measure(found.y[rows], found.predicted[rows], q, weights[rows])
            np.testing.assert_allclose(values[name], expected, err_msg=name, **EXACT)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_areas_are_exact_up_to_ties_of_an_interval(kind):
    found = made(kind, n=400, weighted=True)
    exact = sk.roc_auc_score(
        found.y, found.probabilities[:, 1] if kind == "two" else found.probabilities, multi_class="ovr",
        sample_weight=found.sample_weight,
    )  # fmt: skip
    result = monitored(found, measures="roc_auc").result()
    assert result.measures["roc_auc"] == pytest.approx(exact, abs=2e-3)
    assert result.baseline["roc_auc"] == 0.5
    middles = (np.floor(found.probabilities * 1000) + 0.5) / 1000  # the same order for both
    area = np.mean(
        [reference.weighted_area(found.y == c, middles[:, c], found.sample_weight) for c in range(len(found.classes))]
    )
    np.testing.assert_allclose(result.measures["roc_auc"], area, **EXACT)


@pytest.mark.parametrize("kind", ["two", "three", "numbers", "labels"])
def test_the_baseline_knows_only_samples_before(kind):
    found = made(kind, n=300, weighted=True)
    w, y, guesses = found.sample_weight, found.y, []
    for i in range(300):
        if kind == "numbers":
            guesses.append(np.average(y[:i], weights=w[:i]) if i else 0.0)
        elif kind == "labels":
            guesses.append(2 * (w[:i, None] * y[:i]).sum(axis=0) > w[:i].sum())
        else:
            guesses.append(np.bincount(y[:i], w[:i], minlength=3).argmax() if i else -1)
    result = monitored(found).result()
    for name, measure in KINDS[kind].items():
        if name in ("error", "mae", "rmse", "r2", "hamming"):
            expected = measure(y, np.array(guesses).astype(y.dtype), None, w)
            np.testing.assert_allclose(result.baseline[name], expected, err_msg=name, **EXACT)
    np.testing.assert_allclose(result.baseline_curve[-1], [300, result.baseline_error], **EXACT)
    assert len(result.curve) == len(result.baseline_curve)


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b or (a != a and b != b)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_does_not_depend_on_cuts_nor_on_restoring(kind):
    found = made(kind, weighted=True)
    given = {"measures": [*KINDS[kind], *(["roc_auc"] if KINDS[kind] is CLASSES else [])], "window": 64, "fading": 0.5,
             "by_view": True, "drift": True, "delta": 0.5}  # fmt: skip
    whole = monitored(found, **given)
    for seed in range(3):
        cuts = sorted(np.random.default_rng(seed).choice(N, size=9, replace=False).tolist())
        pieces = monitored(found, cuts, **given)
        assert same(whole.state(), pieces.state())
        stopped = monitored(part(found, 0, 333), **given)
        again = StreamMonitor(**given)
        again.restore(stopped.state())
        for start, stop in ((333, 500), (500, N)):
            again.update(part(found, start, stop))
        assert same(whole.state(), again.state())
        assert same(whole.result().to_dict(), again.result().to_dict())
    assert len(whole.result().windows) == N // 64


def test_classes_that_join_late_change_nothing():
    found = made("three", weighted=True)
    order = np.r_[np.flatnonzero(found.y != 1), np.flatnonzero(found.y == 1)]  # the class in the middle comes last
    late = int((found.y != 1).sum())
    shares = found.probabilities[order].copy()
    shares[:late, 1] = 0.0
    predicted = shares.argmax(axis=1)
    found = replace(
        found, y=found.y[order], predicted=predicted, probabilities=shares, sample_weight=found.sample_weight[order]
    )
    given = {"measures": ["f1", "log_loss", "roc_auc"], "window": 50}
    whole = monitored(found, **given)
    monitor = StreamMonitor(**given)
    early = part(found, 0, late)
    two = np.searchsorted([0, 2], early.y), np.searchsorted([0, 2], early.predicted)
    monitor.update(
        replace(early, y=two[0], predicted=two[1], classes=found.classes[[0, 2]], probabilities=shares[:late, [0, 2]])
    )
    monitor.update(part(found, late, N))
    assert same(whole.state(), monitor.state())


def test_measures_by_class_and_by_view():
    found = made("three", weighted=True)
    result = monitored(found, (99,), by_view=True, fading=0.9).result()
    recall = sk.recall_score(found.y, found.predicted, average=None, sample_weight=found.sample_weight)
    precision = sk.precision_score(found.y, found.predicted, average=None, sample_weight=found.sample_weight)
    np.testing.assert_allclose([own.recall for own in result.by_class.values()], recall, **EXACT)
    np.testing.assert_allclose([own.precision for own in result.by_class.values()], precision, **EXACT)
    assert list(result.by_class) == ["x", "y", "z"]
    faded = found.sample_weight * 0.9 ** np.arange(N)[::-1]
    for margins, own in zip(found.view_margins.T, result.by_view.values(), strict=True):
        there = ~np.isnan(margins)
        for weights, share in ((found.sample_weight, own.share), (faded, own.recent)):
            expected = np.average(margins[there] > 0, weights=weights[there])
            np.testing.assert_allclose(share, expected, **EXACT)
    labels = made("labels")
    by_label = monitored(labels).result().by_class
    expected = sk.recall_score(labels.y, labels.predicted, average=None)
    np.testing.assert_allclose([own.recall for own in by_label.values()], expected, **EXACT)


def test_without_a_known_class_a_prediction_is_a_mistake():
    found = replace(made("two", n=4), predicted=np.array([-1, 0, 1, 1]), y=np.array([0, 0, 1, 0]))
    result = monitored(found).result()
    assert (result.n_mistakes, result.baseline["error"]) == (2, 0.5)
    assert result.by_class["x"].recall == pytest.approx(1 / 3)
    silent = monitored(replace(found, probabilities=None)).result()
    assert list(silent.measures) == ["error", "balanced_accuracy"]


def test_windows_are_thinned_out():
    found = made("two", n=4500)
    monitor = monitored(found, window=1)
    windows = monitor.result().windows
    assert windows["samples"][-1] == 4500
    assert set(np.diff(windows["samples"])) == {4}
    assert monitor.last_window()["samples"] == 4500


def test_metrics_of_river():
    metrics = pytest.importorskip("river.metrics", reason="river is not installed")
    for kind, names in {"two": ["F1", "LogLoss", "ROCAUC"], "three": ["MacroF1", "CrossEntropy"],
                        "numbers": ["MAE", "R2"]}.items():  # fmt: skip
        found = made(kind, n=200)
        if kind == "two":
            found = replace(found, classes=np.array([False, True]))
        own = [getattr(metrics, name)() for name in names]
        result = monitored(found, measures=own).result()
        same_as = {"F1": sk.f1_score, "MacroF1": lambda y, p: sk.f1_score(y, p, average="macro"), "R2": sk.r2_score,
                   "MAE": sk.mean_absolute_error}  # fmt: skip
        for name in names:
            if name in same_as:
                assert result.measures[name] == pytest.approx(same_as[name](found.y, found.predicted))
        if kind == "two":
            assert result.measures["LogLoss"] == pytest.approx(result.measures["log_loss"])
    with pytest.raises(ValueError, match="The metric MAE cannot be stored in a checkpoint"):
        StreamMonitor(metrics.MAE()).state()


def damaged(state, name):
    values = {
        "sums": {**state["sums"], "confusion": np.zeros((3, 9, 10))},
        "classes": {**state["sums"], "classes": np.array(["x", "x", "y"])},
        "losses": {**state["sums"], "losses": np.full((3, 2), np.nan)},
        "windows": np.zeros((1, 2)), "curve": np.zeros(3), "n_samples": -1, "views": ["a", "b", "c"],
        "detectors": [[None, {**state["detectors"][0][1], "filled": np.full(48, 9)}]], "task": "no",
    }  # fmt: skip
    return {**state, "sums" if name in ("classes", "losses") else name: values[name]}


@pytest.mark.parametrize(
    "name", ["sums", "classes", "losses", "windows", "curve", "n_samples", "views", "detectors", "task"]
)
def test_damaged_states_are_refused(name):
    state = monitored(made("three"), by_view=True, drift=True).state()
    StreamMonitor(by_view=True, drift=True).restore(state)
    with pytest.raises(ValueError, match="damaged"):
        StreamMonitor(by_view=True, drift=True).restore(damaged(state, name))
    with pytest.raises(ValueError, match="Continue with the same measures"):
        StreamMonitor(by_view=True).restore(state)


ERRORS = {
    "A measure is one of accuracy, balanced_accuracy, error": lambda: StreamMonitor("loss"),
    "'mae' is not for classification. Use some of: error": lambda: monitored(made("two"), measures="mae"),
    "The 'fading' parameter": lambda: StreamMonitor(fading=0.0),
    "needs probabilities, which this estimator does not have": lambda: monitored(
        replace(made("two"), probabilities=None), measures="log_loss"
    ),
    "The predictions point outside the 2 classes": lambda: monitored(replace(made("two"), y=np.full(N, 2))),
    "Sample weights must be 700 finite numbers": lambda: monitored(
        replace(made("two"), sample_weight=np.full(N, -1.0))
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_cannot_be_measured_is_refused(message):
    with pytest.raises(ValueError, match=message), warnings.catch_warnings():
        ERRORS[message]()


def test_the_result_says_how_the_error_compares_with_the_baseline():
    y = np.r_[np.zeros(97, dtype=int), 1, 1, 1]
    found = replace(made("two", n=100), y=y, predicted=np.r_[np.ones(12, dtype=int), np.zeros(88, dtype=int)])
    bad = monitored(found).result()
    assert str(bad).startswith(
        "15 mistakes in 100 samples, an error of 15.00%. The most frequent class so far has an error of 4.00%: the "
        "model's error is above the baseline. Balanced accuracy"
    )
    assert (bad.verdict, bad.to_dict()["compared"]) == ("above", "above the baseline")
    good = monitored(replace(found, predicted=y)).result()
    assert "the model's error is below the baseline" in str(good)
    numbers = monitored(made("numbers")).result()
    assert str(numbers).startswith(f"Mean absolute error {numbers.error:.4g} in 700 samples. The mean of the targets")
    assert numbers.to_dict()["task"] == "regression"
    assert "The usual value of each label" in str(monitored(made("labels")).result())
    frame = monitored(made("two"), window=100).result().to_frame()
    assert list(frame.index) == list(range(100, 800, 100))
    assert {"error", "baseline_error"} <= set(frame.columns)


# -- drift
@pytest.mark.parametrize("seed", range(4))
def test_adwin_is_its_naive_twin(seed):
    rng = np.random.default_rng(seed)
    values = np.r_[rng.random(300) < 0.2, rng.random(200) < 0.6, rng.random(200)]
    expected = reference.adwin(values, 0.01)
    assert expected
    detector, found = cs.ADWIN(0.01), []
    for start in range(0, 700, 90):  # in parts
        found += [(start + c.position, c.before, c.after) for c in detector.update(values[start : start + 90])]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert detector.mean == pytest.approx(values[-detector.width :].mean())


@pytest.mark.parametrize("seed", range(5))
def test_adwin_finds_a_change_when_rivers_does(seed):
    drift = pytest.importorskip("river.drift", reason="river is not installed")
    rng = np.random.default_rng(seed)
    values = np.r_[rng.random(700) < 0.2, rng.random(400) < 0.5].astype(float)
    other = drift.ADWIN()
    theirs = [i for i, value in enumerate(values) if (other.update(value), other.drift_detected)[1]]
    ours = [change.position for change in cs.ADWIN().update(values)]
    assert abs(ours[0] - theirs[0]) <= 32  # one test


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
def test_false_alarms_are_rarer_than_delta_and_changes_are_found_soon(share):
    delta, alarms, delays = 0.05, 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        alarms += len(cs.ADWIN(delta).update(rng.random(3200) < share))
        values = np.r_[rng.random(1000) < share, rng.random(1000) < share + 0.3]
        delays += [min(c.position for c in cs.ADWIN(0.002).update(values) if c.position >= 1000) - 1000]
    assert alarms / (60 * 100) <= delta  # a test every 32 values
    assert np.median(delays) < 130


def test_adwin_refuses_other_values_and_damaged_states():
    with pytest.raises(ValueError, match="takes values between 0 and 1"):
        cs.ADWIN().update([2.0])
    state = cs.ADWIN().state()
    with pytest.raises(ValueError, match="its buckets do not fit its window"):
        cs.ADWIN().restore({**state, "counts": np.array([5, 3])})


def test_drift_of_the_error_and_of_a_view():
    found = made("two", n=2000)
    rng = np.random.default_rng(0)
    wrong = np.r_[rng.random(1000) < 0.4, rng.random(500) < 0.1, rng.random(500) < 0.6]  # it learns, then drifts
    margins = np.column_stack([np.ones(2000), np.r_[np.ones(1200), -np.ones(800)]])
    margins[::2, 1] = np.nan
    found = replace(found, predicted=np.where(wrong, 1 - found.y, found.y), view_margins=margins)
    monitor = monitored(found, by_view=True, drift=True, on_drift="lower_view")
    assert [(e.signal, e.view, e.action) for e in monitor.events] == [
        ("view", "b", "lower_view"),
        ("error", None, "tell"),
    ]
    view, error = monitor.events
    assert 1200 < view.sample < 1300
    assert 1500 < error.sample < 1650
    assert error.before < 0.2 < 0.5 < error.after
    assert "rose from" in str(error)
    assert "The weights of view 'b' are halved" in str(view)
    assert f"2 drifts were found at samples {view.sample:,}, {error.sample:,}" in str(monitor.result())
    numbers = made("numbers", n=2000)
    numbers = replace(numbers, predicted=numbers.predicted + np.r_[np.zeros(1500), np.full(500, 9.0)])
    assert [1500 < e.sample < 1600 for e in monitored(numbers, drift=True).events] == [True]
