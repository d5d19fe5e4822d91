"""Dask collections: the same fit as in memory, work done by workers, predictions that compute nothing yet."""

import contextlib
import os
import pickle
import signal
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import consilience as cs
from consilience.solvers.design import FeatureRows
from consilience.solvers.moments import Moments

dask = pytest.importorskip("dask", reason="Dask is an extra: pip install 'consilience[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

FAMILIES = {
    "ridge": cs.CoRegularizedRidge(n_components=30, agreement_penalty=1e-3, random_state=0),
    "learned weights": cs.CoRegularizedRidge(n_components=30, view_weights="learned", random_state=0),
    "classes": cs.CoRegularizedRidgeClassifier(
        n_components=30, agreement_penalty=1e-3, class_weight="balanced", random_state=0
    ),
    "metric": cs.ViewMetricRidge(n_components=20, random_state=0),
    "several kernels": cs.MultipleKernelRidge({"a": ["rbf", "linear"], "b": "rbf"}, n_components=20, random_state=0),
    "svm": cs.CoRegularizedSVC(n_components=20, random_state=0),
}
ALL_LABELED = {"metric", "several kernels"}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    n = 700
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.sin(hidden[:, 0]) + hidden[:, 1] ** 2
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low"))
    return views, y, labels, rng.uniform(0.2, 2, size=n)


def with_gaps(views, seed=1):
    """Return views of which some rows are NaN, never both."""
    which = np.random.default_rng(seed).integers(0, 6, size=len(views["a"]))
    return {name: np.where((which == k)[:, None], np.nan, own) for k, (name, own) in enumerate(views.items())}


def chunked(views, size=150):
    return {name: da.from_array(own, chunks=(size, own.shape[1])) for name, own in views.items()}


def assert_same_fit(one, other, tol=1e-8):
    assert set(one.coef_) == set(other.coef_)
    for name, W in one.coef_.items():
        np.testing.assert_allclose(other.coef_[name], W, atol=tol * np.abs(W).max())
    np.testing.assert_allclose(other.view_weights_, one.view_weights_, atol=tol)
    assert other.solution_.status == one.solution_.status
    np.testing.assert_allclose(other.solution_.objective, one.solution_.objective, rtol=tol)


# -- the same fit
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_fit_is_that_of_the_samples_in_memory(samples, family, missing):
    views, y, labels, weights = samples
    model, views = FAMILIES[family], with_gaps(views) if missing else views
    y = labels if is_classifier(model) else y
    whole = clone(model).fit(views, y, weights)
    for size in (97, 700):
        X, target = chunked(views, size), da.from_array(y, chunks=size)
        by_parts = clone(model).fit(X, target, da.from_array(weights, chunks=size))
        assert_same_fit(whole, by_parts)
        expected, found = whole.predict(views), by_parts.predict(X)
        assert isinstance(found, da.Array)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if is_classifier(model):
            assert (found.compute() == expected).all()
            np.testing.assert_allclose(
                by_parts.decision_function(X).compute(), whole.decision_function(views), atol=1e-7
            )
        else:
            np.testing.assert_allclose(found.compute(), expected, atol=1e-8)
        assert by_parts.score(X, target) == pytest.approx(whole.score(views, y))


def test_targets_in_memory_unlabeled_samples_and_weights_of_zero(samples):
    views, y, _, weights = samples
    y, weights = y.copy(), weights.copy()
    y[::3] = np.nan
    weights[:160] = 0.0  # a whole partition does not take part
    model = FAMILIES["ridge"]
    whole = clone(model).fit(views, y, weights)
    assert_same_fit(whole, clone(model).fit(chunked(views), y, weights))
    assert_same_fit(whole, clone(model).fit(cs.RowBlocks.of(views, y, weights, size=150)))


def test_several_outputs_and_labels(samples):
    views, y, labels, _ = samples
    Y = np.column_stack([y, y**2, 1 - y])
    model = FAMILIES["ridge"]
    whole, by_parts = clone(model).fit(views, Y), clone(model).fit(chunked(views), da.from_array(Y, chunks=(150, 2)))
    assert_same_fit(whole, by_parts)
    found = by_parts.predict(chunked(views))
    assert found.shape == Y.shape
    np.testing.assert_allclose(found.compute(), whole.predict(views), atol=1e-8)
    indicator = (labels[:, None] == np.unique(labels)).astype(int)
    classes = cs.CoRegularizedRidgeClassifier(n_components=20, random_state=0)
    whole, by_parts = clone(classes).fit(views, indicator), clone(classes).fit(chunked(views), indicator)
    assert_same_fit(whole, by_parts)
    found = by_parts.predict(chunked(views))
    assert found.dtype == int
    assert (found.compute() == whole.predict(views)).all()


def test_sparse_chunks_and_one_array(samples):
    views, y, _, _ = samples
    model = cs.CoRegularizedRidge(n_components=20, random_state=0)
    X = da.from_array(views["a"], chunks=(150, 2))  # chunks of columns too
    whole = clone(model).fit(views["a"], y)
    assert_same_fit(whole, clone(model).fit(X, y))
    assert_same_fit(whole, clone(model).fit([X], y))
    assert_same_fit(whole, clone(model).fit(X.rechunk((150, -1)).map_blocks(sp.csr_array), y))


def test_many_rows_are_sampled_alike(samples, monkeypatch):
    from consilience.views import row_blocks

    monkeypatch.setattr(row_blocks, "SAMPLE", 1000)
    rng = np.random.default_rng(1)
    views = {"a": rng.normal(size=(5000, 3)), "b": rng.normal(size=(5000, 2))}
    y = views["a"][:, 0] + views["b"][:, 1]
    model = cs.CoRegularizedRidge(n_components=40, random_state=3)
    whole, by_parts = clone(model).fit(views, y), clone(model).fit(chunked(views, 1300), y)
    assert_same_fit(whole, by_parts)
    for name, own in whole._features.landmark_indices_.items():
        assert own.max() > 1000
        np.testing.assert_array_equal(by_parts._features.landmark_indices_[name], own)
    few = np.where(np.arange(5000) % 4, np.nan, y)  # so few that the first samples of workers are too small
    whole, by_parts = clone(model).fit(views, few), clone(model).fit(chunked(views, 1300), few)
    assert_same_fit(whole, by_parts)


# -- data frames
def frame_of(views, y):
    table = pd.DataFrame({f"{name}__{k}": own[:, k] for name, own in views.items() for k in range(own.shape[1])})
    colors = np.array(["red", "green", "blue"])[(np.abs(y) * 7).astype(int) % 3]
    colors[:200] = "red"  # the first partition has one category
    return table.assign(a__color=colors, target=y)


@pytest.mark.parametrize("kind", ["strings", "known categories", "unknown categories"])
def test_data_frames_with_categories(samples, kind):
    views, y, _, _ = samples
    table = frame_of(views, y)
    if kind != "strings":
        table["a__color"] = table["a__color"].astype("category")
    lazy = dd.from_pandas(table, npartitions=5)
    if kind == "unknown categories":
        lazy["a__color"] = lazy["a__color"].cat.as_unknown()
    X = lazy.drop(columns="target")
    model = FAMILIES["ridge"]
    whole_X = cs.as_views(table.drop(columns="target"), "prefix")
    whole = clone(model).fit(whole_X, y)
    blocks = cs.RowBlocks.of(X, lazy["target"], views="prefix")
    by_parts = clone(model).fit(blocks)
    found = by_parts.predict(blocks)
    assert isinstance(found, da.Array)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.compute(), whole.predict(whole_X), atol=1e-7)
    assert by_parts.score(blocks) == pytest.approx(whole.score(whole_X, y))
    assert set(by_parts._known["a"][2]) == set(whole._known["a"][2])
    for name in ("a", "b"):
        means = dict(zip(whole._known[name][2], whole._column_means[name], strict=True))
        found = dict(zip(by_parts._known[name][2], by_parts._column_means[name], strict=True))
        assert found == pytest.approx(means)


def test_a_frame_alone_is_one_view_and_predicts_with_unknown_lengths(samples):
    views, y, _, _ = samples
    table = pd.DataFrame(views["a"], columns=list("uvwxyz"))
    lazy, target = dd.from_pandas(table, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)
    model = cs.CoRegularizedRidge(n_components=20, missing_columns="fill", random_state=0)
    whole, by_parts = clone(model).fit(table, y), clone(model).fit(lazy, target)
    assert_same_fit(whole, by_parts)
    found = by_parts.predict(lazy)
    assert np.isnan(found.shape[0])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.compute(), whole.predict(table), atol=1e-8)
    with pytest.warns(UserWarning, match="mean"):  # a column that was there at fit gets its mean
        expected = whole.predict(table.drop(columns="v"))
    with pytest.warns(UserWarning, match="mean"):
        np.testing.assert_allclose(by_parts.predict(lazy.drop(columns="v")).compute(), expected, atol=1e-8)
    few = lazy[lazy["u"] > 1.5]  # partitions of other lengths
    kept = table["u"] > 1.5
    np.testing.assert_allclose(by_parts.predict(few).compute(), whole.predict(table[kept]), atol=1e-8)


def test_partitions_without_rows(samples):
    views, y, _, _ = samples
    table = pd.DataFrame(views["a"], columns=list("uvwxyz")).assign(target=y, place=np.arange(len(y)))
    lazy = dd.from_pandas(table, npartitions=5)
    lazy = lazy[lazy["place"] > 300]
    kept = table[table["place"] > 300]
    model = cs.CoRegularizedRidge(n_components=20, random_state=0)
    whole = clone(model).fit(kept[list("uvwxyz")], kept["target"])
    by_parts = clone(model).fit(lazy[list("uvwxyz")], lazy["target"])
    assert_same_fit(whole, by_parts)
    assert len(by_parts.predict(lazy[list("uvwxyz")]).compute()) == len(kept)


# -- laziness and schedulers
def test_predictions_compute_nothing(samples):
    views, y, labels, _ = samples
    X, computed = chunked(views), []
    regressor = clone(FAMILIES["ridge"]).fit(X, y)
    classifier = clone(FAMILIES["classes"]).fit(X, labels)
    with dask.callbacks.Callback(pretask=lambda key, *_: computed.append(key)):
        lazy = [regressor.predict(X), classifier.predict(X), classifier.decision_function(X)]
        assert not computed
        assert [own.chunks[0] for own in lazy] == [(150, 150, 150, 150, 100)] * 3
        assert [own.dtype for own in lazy] == [np.dtype(float), classifier.classes_.dtype, np.dtype(float)]
        dask.compute(*lazy)
        assert computed


def test_work_is_done_in_threads_and_sums_are_added_in_one_order(samples):
    views, y, _, _ = samples
    X, threads = chunked(views, 50), set()

    class Seen(dask.callbacks.Callback):
        def _posttask(self, key, result, dsk, state, worker_id):
            threads.add(worker_id)

    with Seen():
        one = clone(FAMILIES["ridge"]).fit(X, y)
    assert any(worker != threading.get_ident() for worker in threads)
    for scheduler, workers in (("sync", 1), ("threads", 1), ("threads", 7)):
        with dask.config.set(scheduler=scheduler, num_workers=workers):
            other = clone(FAMILIES["ridge"]).fit(X, y)
        for name, W in one.coef_.items():
            np.testing.assert_array_equal(other.coef_[name], W)


def test_collections_that_change_between_passes_are_refused(samples):
    views, y, _, _ = samples
    noise = np.random.default_rng(0)
    X = chunked(views)
    X["a"] = X["a"].map_blocks(lambda own: own + noise.normal(size=own.shape))
    with pytest.raises(ValueError, match="is not the one that it was at an earlier pass"):
        clone(FAMILIES["ridge"]).fit(X, y)


# -- cross-validation
def test_cross_validation_by_rows(samples):
    views, y, labels, _ = samples
    model, cv = cs.CoRegularizedRidge(n_components=20, random_state=0), KFold(4, shuffle=True, random_state=0)
    expected = cross_val_score(model, cs.Views(views), y, cv=cv)
    blocks = cs.RowBlocks.of(chunked(views), y)
    np.testing.assert_allclose(cross_val_score(model, blocks, cv=cv), expected, rtol=1e-8)
    in_memory = cs.RowBlocks.of(views, y, size=99)
    np.testing.assert_allclose(cross_val_score(model, in_memory, cv=cv), expected, rtol=1e-8)
    one, target = da.from_array(views["a"], chunks=(150, 6)), da.from_array(y, chunks=150)
    np.testing.assert_allclose(
        cross_val_score(model, one, target, cv=cv), cross_val_score(model, views["a"], y, cv=cv), rtol=1e-8
    )
    search = GridSearchCV(model, {"alpha": [1e-4, 1e-2, 1.0]}, cv=cv).fit(blocks)
    alone = GridSearchCV(model, {"alpha": [1e-4, 1e-2, 1.0]}, cv=cv).fit(cs.Views(views), y)
    assert search.best_params_ == alone.best_params_
    assert search.best_score_ == pytest.approx(alone.best_score_)
    model = cs.CoRegularizedRidgeClassifier(n_components=20, random_state=0)
    folds = list(StratifiedKFold(3).split(labels, labels))
    np.testing.assert_allclose(
        cross_val_score(model, cs.RowBlocks.of(chunked(views), labels), cv=folds),
        cross_val_score(model, cs.Views(views), labels, cv=folds),
    )
    with pytest.raises(IndexError, match="in ascending order"):
        blocks[[3, 1]]


# -- streams
def test_online_estimators_learn_partitions_in_order(samples):
    views, _, labels, _ = samples
    X, y = chunked(views, 130), da.from_array(labels, chunks=130)
    whole = cs.OnlinePerceptron().partial_fit(views, labels)
    by_parts = cs.OnlinePerceptron().partial_fit(X, y)
    assert (by_parts.n_mistakes_, by_parts.n_samples_seen_) == (whole.n_mistakes_, 700)
    np.testing.assert_allclose(by_parts.decision_function(views), whole.decision_function(views))
    np.testing.assert_allclose(by_parts.decision_function(X).compute(), whole.decision_function(views))
    streamed = cs.OnlinePerceptron()
    result = cs.progressive_validation(streamed, X, y)
    expected = cs.progressive_validation(cs.OnlinePerceptron(), views, labels).n_mistakes
    assert (result.n_samples, result.n_mistakes) == (700, expected)
    blocks = cs.RowBlocks.of(views, labels, size=60)
    assert cs.OnlinePerceptron().partial_fit(blocks).n_mistakes_ == whole.n_mistakes_
    assert cs.progressive_validation(cs.OnlinePerceptron(), blocks).n_mistakes == expected


# -- refusals
def test_what_is_refused_and_told(samples):
    views, y, _, _ = samples
    X, model = chunked(views), cs.CoRegularizedRidge(n_components=10, random_state=0)
    with pytest.raises(TypeError, match="View 'a' is a Dask collection"):
        cs.Views(X)
    with pytest.raises(ValueError, match="Set `n_components`"):
        cs.CoRegularizedRidge().fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="Rechunk them"):
        cs.RowBlocks.of(X, y, size=10)
    with pytest.raises(ValueError, match="`y` has 699 rows"):
        model.fit(X, y[1:])
    with pytest.raises(ValueError, match="needs targets, and the samples have none"):
        model.fit(X, None)
    other = {**X, "b": X["b"].rechunk((200, -1))}
    with pytest.warns(UserWarning, match="View 'b' has other chunks of rows than the first view"):
        again = clone(model).fit(other, y)
    assert_same_fit(clone(model).fit(views, y), again)
    with pytest.raises(ValueError, match="View 'b' has 150 rows"):
        clone(model).fit({**X, "b": X["b"][:150]}, y)
    frames = dd.from_pandas(pd.DataFrame(views["a"]), npartitions=3)
    with pytest.raises(ValueError, match="different numbers of partitions"):
        clone(model).fit(frames, dd.from_pandas(pd.Series(y), npartitions=2))
    with pytest.raises(ValueError, match="is not that of the samples"):
        clone(model).fit(frames, dd.from_pandas(pd.Series(y, index=np.arange(700) + 5), npartitions=3))


def test_a_fitted_estimator_has_no_collections(samples):
    views, y, _, _ = samples
    fitted = clone(FAMILIES["ridge"]).fit(chunked(views), y)
    assert b"dask" not in pickle.dumps(fitted)


@pytest.mark.parametrize("form", [lambda X: X, lambda X: {"a": X}])
def test_collections_are_not_loaded_unasked(form):
    with pytest.raises(TypeError, match="not loaded into memory unless you ask for it"):
        cs.as_views(form(da.ones((10, 3))))


@pytest.mark.parametrize("model", [cs.MaxMarginClassifier(), cs.ConsensusClassifier(kernel="linear")])
def test_estimators_that_need_all_samples_collect_them(samples, model, monkeypatch):
    views, _, labels, _ = samples
    views = {name: own[:100] for name, own in views.items()}
    fitted = clone(model).fit(chunked(views, 40), labels[:100])
    expected = clone(model).fit(views, labels[:100]).decision_function(views)
    np.testing.assert_allclose(fitted.decision_function(views), expected, atol=1e-8)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "5000")
    with pytest.raises(MemoryError, match="which holds all samples in memory, needs"):
        clone(model).fit(chunked(views, 40), labels[:100])


# -- a cluster, which every test below computes on, so these come last
LIMIT = 120  # seconds that a test may take; a cluster that stops to answer fails it instead of blocking all


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeoutError in this block after some seconds, with the place where it waited."""

    def stop(*_):
        raise TimeoutError(f"The cluster did not answer for {seconds} seconds.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with dask.config.set({"distributed.scheduler.no-workers-timeout": "60s"}), time_limit(LIMIT):
        cluster = distributed.LocalCluster(**options)
    client = distributed.Client(cluster, timeout=60)
    yield client
    with time_limit(LIMIT):
        client.close(timeout=20)
        cluster.close(timeout=60)


@pytest.fixture
def client(cluster):
    with time_limit(LIMIT):
        yield cluster


def _die_at_the_second_pass(own, folder):
    """Kill the process that reads the last rows for the second time; it has sums of other rows by then."""
    if len(own) == 100:
        return own
    for reading in ("first", "second"):
        path = os.path.join(folder, reading)
        if not os.path.exists(path):
            with open(path, "w") as file:
                file.write(str(os.getpid()))
            if reading == "second":
                os.kill(os.getpid(), signal.SIGKILL)
            return own
    return own


def test_a_worker_that_is_killed_during_the_fit_changes_nothing(samples, client, tmp_path):
    views, y = {name: own[:650] for name, own in samples[0].items()}, samples[1][:650]
    X = chunked(views, 100)
    expected = clone(FAMILIES["ridge"]).fit(X, y)
    X["a"] = X["a"].map_blocks(_die_at_the_second_pass, folder=str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    before = set(client.run(os.getpid).values())
    found = clone(FAMILIES["ridge"]).fit(X, y)
    killed = int((tmp_path / "second").read_text())  # during the fit
    assert killed in before
    client.wait_for_workers(2, timeout=60)  # the cluster starts another one
    assert killed not in client.run(os.getpid).values()  # it was really killed
    for name, W in expected.coef_.items():
        np.testing.assert_array_equal(found.coef_[name], W)
    assert_same_fit(clone(FAMILIES["ridge"]).fit(views, y), found)


def _fail_once(own, folder):
    """Fail at the first call for these rows, as a task does whose file system was away."""
    path = os.path.join(folder, f"{own[0, 0]:.17g}")
    if not os.path.exists(path):
        open(path, "w").close()
        raise OSError("away")
    return own


def test_tasks_that_run_again_change_nothing(samples, client, tmp_path):
    views, _, _, _ = samples
    expected = clone(FAMILIES["classes"]).fit(chunked(views, 100), samples[2])
    X = chunked(views, 100)
    with dask.annotate(retries=3):
        X["a"] = X["a"].map_blocks(_fail_once, folder=str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    with dask.config.set({"optimization.fuse.active": False}), dask.annotate(retries=3):
        found = clone(FAMILIES["classes"]).fit(X, samples[2])
    assert len(os.listdir(tmp_path)) == 7  # each failed once
    for name, W in expected.coef_.items():
        np.testing.assert_array_equal(found.coef_[name], W)


def bytes_sent(client):
    """Return the bytes that workers have sent to one another so far."""
    return sum(client.run(lambda dask_worker: sum(own["total"] for own in dask_worker.transfer_outgoing_log)).values())


def test_sums_travel_and_rows_do_not(client):
    n, d = 120_000, 100
    X = da.random.default_rng(0).normal(size=(n, d), chunks=(10_000, d))
    y = X[:, 0] + X[:, 1] ** 2
    client.run(_set_sample, 1000)
    before = bytes_sent(client)
    cs.CoRegularizedRidge(n_components=50, random_state=0).fit(X, y)
    moved = bytes_sent(client) - before
    client.run(_set_sample, 20_000)
    assert 0 < moved < 8 * n * d / 5


def _set_sample(size):
    from consilience.views import row_blocks

    row_blocks.SAMPLE = size


def test_sums_travel_as_triangles():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(50, 40)) for _ in range(2)]
    every, ones, Y = np.ones((50, 1), dtype=bool), np.ones(50), rng.normal(size=(50, 2))
    sums, expected = [Moments([40], 2) for _ in rows], Moments([40], 2)
    for own, Phi in zip(sums, rows, strict=True):
        own.add(FeatureRows(Phi, every, ones, ones, Y))
        expected.add(FeatureRows(Phi, every, ones, ones, Y))
    sent = [pickle.loads(pickle.dumps(own)) for own in sums]
    for total in (sums[0] + sums[1], sent[0] + sums[1], sums[0] + sent[1]):
        (own,), (other,) = total.finish().parts.values(), expected.finish().parts.values()
        np.testing.assert_allclose(own.X, rows[0].T @ rows[0] + rows[1].T @ rows[1], atol=1e-12)
        np.testing.assert_allclose(own.Z, other.Z, atol=1e-12)
        assert not own.T.any()
        assert own.n == other.n == 100
    assert len(pickle.dumps(sums[0])) < 8 * (40 * 41 / 2 + 40 * 2) + 2000


def test_searches_and_compare_run_on_the_cluster(samples, client):
    views, y, labels, _ = samples
    X, y, labels, grid = cs.Views(views)[:200], y[:200], labels[:200], {"alpha": [1e-4, 1.0]}
    model = cs.CoRegularizedRidge(n_components=20, random_state=0)
    here = GridSearchCV(model, grid, cv=2).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        there = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], rtol=1e-9)
    ridge = cs.CoRegularizedRidgeClassifier(n_components=20, random_state=0)
    estimators = {"ridge": ridge, "agreement": clone(ridge).set_params(agreement_penalty=1e-2)}
    options = {"task": "classification", "cv": 2, "baselines": False, "estimators": estimators}
    alone = cs.compare(X, labels, **options)
    with joblib.parallel_config(backend="dask"):
        together = cs.compare(X, labels, n_jobs=2, **options)
    pd.testing.assert_series_equal(together.to_frame()["score"], alone.to_frame()["score"])
