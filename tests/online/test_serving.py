"""Single samples in every form, and predictions in many threads while one learns."""

import threading
from copy import deepcopy

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from online_cases import ALL, same_state, stream
from sklearn.base import clone

import consilience as cs
from consilience.kernels import RBF, Laplacian, Linear, Polynomial
from consilience.views._streamed_views import learn_row_undoable

pytestmark = pytest.mark.filterwarnings("ignore:The budget of")

# how a row of a view can be given; the first is what the others must equal
FORMS = {
    "an array": lambda row: row,
    "a list": lambda row: row.tolist(),
    "a tuple": tuple,
    "a table of one row": lambda row: row[None],
    "a strided array": lambda row: np.repeat(row, 2)[::2],
    "integers": lambda row: row.astype(np.int64),
    "unsigned integers": lambda row: (row + 100).astype(np.uint16),
    "a list of integers": lambda row: row.astype(int).tolist(),
    "single precision": lambda row: row.astype(np.float32),
    "a sparse row": lambda row: sp.csr_array(row[None]),
}
PREPARED = {
    "prepared": cs.PassiveAggressive(prepare=["impute", "standardize"]),
    "prepared, kernels": cs.KernelPerceptron(RBF(0.2), prepare="standardize"),
}


def row_of(X, i, form=FORMS["an array"]):
    return {name: form(X[name][i]) for name in X.names}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["perceptron", "matrix", "orthogonal", "kernel", *PREPARED])
def test_rows_of_any_form_are_learned_and_predicted_as_arrays(name, form):
    X, y = stream(3, n=60, whole=True)
    shift = 100.0 if "unsigned" in form else 0.0
    models = {
        "perceptron": cs.OnlinePerceptron(average=True), "matrix": cs.MatrixPerceptron(),
        "orthogonal": cs.OrthogonalPerceptron(RBF(0.2)), "kernel": cs.KernelPerceptron(RBF(0.2)), **PREPARED,
    }  # fmt: skip
    plain, given = clone(models[name]), clone(models[name])
    start = cs.Views({v: X[v][:4] + shift for v in X.names})
    for model in (plain, given):
        model.partial_fit(start, [0, 1, 0, 1])
    for i in range(4, 60):
        row = row_of(X, i, lambda row: row + shift)
        odd = row_of(X, i, FORMS[form])
        assert given.predict_one(odd) == plain.predict_one(row)
        assert given.learn_one(odd, y[i]) is given
        plain.learn_one(row, y[i])
    same_state(plain, given, cs.Views({v: X[v] + shift for v in X.names}), atol=1e-6)


@pytest.mark.parametrize("missing", [None, np.full(4, np.nan), [float("nan")] * 4], ids=["None", "array", "list"])
@pytest.mark.parametrize("estimator", [cs.OrthogonalPerceptron(), cs.KernelPerceptron(RBF(0.2)), *PREPARED.values()])
def test_a_row_of_nan_is_a_missing_view(estimator, missing):
    X, y = stream(5, n=60)
    left_out, given = (clone(estimator).partial_fit(X[:20], y[:20]) for _ in range(2))
    for i in range(20, 60):
        row = {"v0": X["v0"][i]}
        left_out.learn_one(row, y[i])
        given.learn_one({**row, "v1": missing}, y[i])
        assert left_out.predict_proba_one(row) == given.predict_proba_one({**row, "v1": missing})
    same_state(left_out, given, X)
    with pytest.raises(ValueError, match=r"none of|no view"):
        given.learn_one({"v0": missing, "v1": missing}, 1)


BAD = {
    "NaN among numbers": ({"v0": [1.0, float("nan"), 2.0, 3.0]}, "NaN"),
    "infinity": ({"v0": [1.0, float("inf"), 2.0, 3.0]}, "infinity"),
    "too few columns": ({"v0": [1.0, 2.0]}, "columns"),
    "text": ({"v0": ["1", "2", "3", "4"]}, None),
    "rows of unequal length": ({"v0": [[1.0], [2.0, 3.0], 1.0, 2.0]}, None),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "estimator",
    [cs.OnlinePerceptron(), cs.KernelPerceptron(RBF(0.2)), cs.PassiveAggressive(prepare="standardize")],
    ids=lambda own: type(own).__name__,
)
def test_a_refused_sample_changes_nothing(estimator, bad):
    X, y = stream(1, n=40)
    model, twin = (clone(estimator).partial_fit(X, y) for _ in range(2))
    sample, message = BAD[bad]
    for _ in range(2):
        with pytest.raises((ValueError, TypeError), match=message):
            model.learn_one({**sample, "v1": X["v1"][0]}, 1)
    for i in range(20):
        model.learn_one(row_of(X, i), y[i])
        twin.learn_one(row_of(X, i), y[i])
    same_state(model, twin, X, atol=0)


def test_a_preparation_is_undone_where_the_estimator_refuses_the_sample():
    X, y = stream(2, n=40)
    estimator = cs.PassiveAggressive(Polynomial(3), prepare="impute")
    model, twin = (clone(estimator).partial_fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="too large for floating point"):
        model.learn_one({"v0": np.full(4, 1e140), "v1": X["v1"][0]}, 1)
    assert model.preparation_.n_samples_seen_ == twin.preparation_.n_samples_seen_
    same_state(model, twin, X, atol=0)
    model.learn_one(row_of(X, 1), 0)
    twin.learn_one(row_of(X, 1), 0)
    same_state(model, twin, X, atol=0)


@pytest.mark.parametrize("recipes", ["tfidf", ["tfidf", "standardize"], ["hash", "impute"]], ids=str)
def test_statistics_of_sparse_rows_are_undone_at_their_columns(recipes):
    texts = ["red car", "blue car", "red boat", "blue boat"] * 5
    one, other = (cs.PerView({"text": recipes}).partial_fit({"text": texts}) for _ in range(2))
    rows, undo = learn_row_undoable(one, {"text": "green green car"})
    assert rows["text"].nnz == 2
    assert one.n_samples_seen_ == 21
    undo()
    assert one.n_samples_seen_ == 20
    for mine, theirs in zip(one.transformers_["text"].steps, other.transformers_["text"].steps, strict=True):
        for name in ("_count", "_mean", "_squares", "_lost", "_rows"):
            np.testing.assert_array_equal(getattr(mine, name, 0), getattr(theirs, name, 0))


KERNELS = [RBF(0.3), Linear(), Polynomial(2), Laplacian(0.4), RBF(0.3) * 0.5 + Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", [cs.KernelPerceptron, cs.OrthogonalPerceptron, cs.MatrixPerceptron, cs.Projectron,
                                  cs.PassiveAggressive])  # fmt: skip
def test_kernel_values_of_single_samples_are_those_of_chunks(kind, kernel):
    X, y = stream(7, n=90, n_classes=3, missing=True)
    options = {} if kind is cs.Projectron else {"average": True}
    model = kind(kernel, fit_intercept=True, **options).partial_fit(X[:60], y[:60], classes=[0, 1, 2])
    rows = [{v: X[v][i] for v in X.names if X.present(v)[i]} for i in range(90)]
    for i in range(60, 90):
        if not model._is_primal():
            assert model._machine.read_one(rows[i]) is not None
        np.testing.assert_allclose(
            list(model.predict_proba_one(rows[i]).values()), model.predict_proba(X[[i]])[0], atol=1e-9
        )
        model.learn_one(rows[i], y[i])
    whole = kind(kernel, fit_intercept=True, **options).partial_fit(X, y, classes=[0, 1, 2])
    same_state(whole, model, X)


@pytest.mark.parametrize("kernel", ["linear", RBF(0.3)], ids=str)
@pytest.mark.parametrize("form", ["a list", "integers", "a sparse row"])
def test_regression_of_single_samples(kernel, form):
    X, y = stream(4, n=60, whole=True)
    targets = X["v0"] @ np.arange(4.0) + y
    one, whole = (cs.PassiveAggressiveRegressor(kernel).partial_fit(X[:10], targets[:10]) for _ in range(2))
    for i in range(10, 60):
        one.learn_one(row_of(X, i, FORMS[form]), targets[i])
    whole.partial_fit(X[10:], targets[10:])
    kept, before = one.snapshot(), one.predict(X)
    np.testing.assert_allclose(before, whole.predict(X), atol=1e-8)
    one.learn_one(row_of(X, 0), 1e3)
    np.testing.assert_array_equal(kept.predict(X), before)
    assert kept.predict_one(row_of(X, 7, FORMS[form])) == pytest.approx(before[7], abs=1e-8)
    assert not hasattr(kept, "predict_proba")


# -- snapshots
@pytest.mark.parametrize("name", [*ALL, *PREPARED])
def test_a_snapshot_stays_while_the_model_learns(name):
    X, y = stream(6, n=120)
    model = clone({**ALL, **PREPARED}[name]).partial_fit(X[:60], y[:60], classes=[0, 1])
    rows = [row_of(X, i) for i in range(120)]
    before = model.decision_function(X), model.predict_proba(X), [model.predict_one(row) for row in rows]
    kept = model.snapshot()
    for i in range(60, 90):
        model.learn_one(rows[i], y[i])
    model.partial_fit({**{v: X[v][90:] for v in X.names}, "new": np.ones((30, 4))}, y[90:])
    model.forget(0.5) if "voted" not in name else None
    assert np.abs(model.decision_function(X) - before[0]).max() > 0
    np.testing.assert_array_equal(kept.decision_function(X), before[0])
    np.testing.assert_array_equal(kept.predict_proba(X), before[1])
    assert [kept.predict_one(row) for row in rows] == before[2] == kept.predict(X).tolist()
    assert kept.n_samples_seen_ == 60
    assert kept.classes_.tolist() == [0, 1]
    assert list(kept.predict_proba_one(rows[0])) == [0, 1]
    assert repr(kept) == f"Snapshot of {type(model).__name__} after 60 samples"
    assert not hasattr(kept, "learn_one")


def test_a_snapshot_of_a_model_that_has_learned_nothing_predicts_nothing():
    kept = cs.OnlinePerceptron().snapshot()
    assert kept.predict_one({"a": [1.0]}) is None
    assert kept.predict_proba_one({"a": [1.0]}) == {}
    with pytest.raises(ValueError, match="not fitted"):
        kept.predict({"a": [[1.0]]})


def predicting(work, n=8):
    """Run `work` in threads until the event that it takes is set; return what it raised."""
    stop, errors = threading.Event(), []

    def run():
        try:
            while not stop.is_set():
                work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    return stop, threads, errors


@pytest.mark.parametrize(
    "estimator",
    [cs.OnlinePerceptron(average=True), cs.KernelPerceptron(RBF(0.2), budget=30), PREPARED["prepared"]],
    ids=lambda own: type(own).__name__,
)
def test_threads_predict_with_the_latest_snapshot_while_one_learns(estimator):
    X, y = stream(9, n=400)
    model = clone(estimator).partial_fit(X[:50], y[:50])
    some = X[:20]
    rows = [row_of(X, i) for i in range(400)]

    def taken():
        kept = model.snapshot()
        return kept, kept.decision_function(some), kept.predict_one(rows[0])

    latest = [taken()]
    counts = []

    def work():
        kept, scores, one = latest[0]  # an assignment to a list's entry is atomic
        np.testing.assert_array_equal(kept.decision_function(some), scores)
        assert kept.predict_one(rows[0]) == one
        counts.append(1)

    stop, threads, errors = predicting(work)
    for i in range(50, 400):
        model.learn_one(rows[i], y[i])
        if i % 10 == 0:
            latest[0] = taken()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not errors
    assert len(counts) > 8


def test_a_linear_model_that_learns_can_be_asked_at_the_same_time():
    X, y = stream(9, n=400)
    model = cs.OrthogonalPerceptron(average=True).partial_fit(X[:50], y[:50])
    rows = [row_of(X, i) for i in range(400)]
    stop, threads, errors = predicting(lambda: (model.predict(X[:20]), model.predict_one(rows[3])))
    for i in range(50, 400):
        model.learn_one(rows[i], y[i])
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not errors
    once = cs.OrthogonalPerceptron(average=True).partial_fit(X, y)
    same_state(once, model, X)  # weights computed halfway are not kept


@pytest.mark.parametrize("prepare", [None, ["impute", "standardize"]])
@pytest.mark.parametrize("name", [*ALL, "regression", "cues of views"])
def test_models_and_samples_in_read_only_memory(name, prepare, tmp_path):
    more = {"regression": cs.PassiveAggressiveRegressor(), "cues of views": cs.MultiCueClassifier()}
    X, y = stream(0, n=40)
    model = clone({**ALL, **more}[name]).set_params(prepare=prepare).partial_fit(X[:20], y[:20])
    joblib.dump((model, {v: X[v] for v in X.names}, y, np.ones(40)), tmp_path / "all")

    def read_only():
        return joblib.load(tmp_path / "all", mmap_mode="r")

    mapped, data, labels, weights = read_only()
    assert not data["v0"].flags.writeable
    np.testing.assert_array_equal(mapped.predict(data), model.predict(X))
    row = {v: data[v][30] for v in data}
    assert mapped.predict_one(row) == model.predict_one(row) == mapped.snapshot().predict_one(row)
    single = read_only()[0].learn_one(row, y[30])
    forgetful = read_only()[0].forget(0.5)
    np.testing.assert_array_equal(single.predict(X), deepcopy(model).learn_one(row, y[30]).predict(X))
    np.testing.assert_array_equal(forgetful.predict(X), deepcopy(model).forget(0.5).predict(X))
    mapped.partial_fit(data, labels, sample_weight=weights)
    model.partial_fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(mapped.predict(X), model.predict(X))
