"""However a stream is cut: chunks, late classes, late views, single samples, refused chunks."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from online_cases import ALL, binary_patterns, in_chunks, late_stream, same_state, stream
from sklearn.base import clone

import consilience as cs
from consilience import Views
from consilience.kernels import RBF, ChiSquared


@pytest.mark.parametrize("average", [False, True, "voted"])
@pytest.mark.parametrize("name", ALL)
def test_any_chunking_gives_the_same_state(name, average):
    estimator = clone(ALL[name])
    no_history = name in ("projectron", "cues", "cues of perceptrons") or "budget" in name
    estimator.set_params(average=True if average == "voted" and no_history else average)
    X, y = stream(9, n=90, n_classes=4, missing=True)
    labels = np.array(["d", "b", "a", "c"])[y]  # classes appear in an order that is not theirs
    order = np.argsort(y > 1, kind="stable")  # and two of them late
    X, labels = X[order], labels[order]
    once = clone(estimator).partial_fit(X, labels)
    assert once.classes_.tolist() == ["a", "b", "c", "d"]
    for sizes in ([1] * 90, [7] * 13, [50, 1, 39]):
        parts, start = clone(estimator), 0
        for size in sizes:
            if start < 90:
                parts.partial_fit(X[start : start + size], labels[start : start + size])
            start += size
        same_state(once, parts, X)


@pytest.mark.parametrize("name", ALL)
def test_views_may_come_late_and_go(name):
    estimator = clone(ALL[name])
    X, y = stream(9, n=60, n_classes=3)
    mask = np.ones((60, 2), dtype=bool)
    mask[:25, 1] = False
    mask[45:, 0] = False
    holes = Views(X, mask=mask)
    once = clone(estimator).partial_fit(holes, y, classes=range(3))
    parts = clone(estimator).partial_fit({"v0": X["v0"][:25]}, y[:25], classes=range(3))
    parts.partial_fit(X[25:45], y[25:45])
    parts.partial_fit({"v1": X["v1"][45:]}, y[45:])
    same_state(once, parts, X)


@pytest.mark.parametrize("name", ALL)
def test_one_sample_at_a_time_is_the_same(name):
    X, y = stream(6, n=40, n_classes=3, missing=True)
    labels = np.array(["x", "y", "z"])[y]
    once, light = clone(ALL[name]).partial_fit(X, labels), clone(ALL[name])
    assert light.predict_one({"v0": X["v0"][0]}) is None
    for i in range(40):
        row = {v: X[v][i] for v in X.names if X.present(v)[i]}
        light.learn_one(row, labels[i])
        if i > 5:
            assert light.predict_one(row) == light.predict(X[i : i + 1])[0]
    same_state(once, light, X)


@pytest.mark.parametrize("average", [False, True])
def test_light_steps_take_sparse_rows_and_single_precision(average):
    X, y = stream(8, n=80)
    single = Views({v: sp.csr_array(X[v].astype(np.float32)) for v in X.names})
    once, light = (cs.OrthogonalPerceptron(average=average) for _ in range(2))
    once.partial_fit(single, y)
    for i in range(80):
        row = {v: single[v][[i]] for v in X.names}
        light.learn_one(row, y[i])
    assert once._machine.V.dtype == np.float32
    assert once.n_mistakes_ == light.n_mistakes_
    np.testing.assert_allclose(once.decision_function(single), light.decision_function(single), rtol=1e-5, atol=1e-6)
    assert [once.predict_one({v: single[v][[i]] for v in X.names}) for i in range(80)] == once.predict(single).tolist()


def test_single_samples_between_chunks():
    model = cs.OnlinePerceptron(fit_intercept=False)
    for x, c in (([1.0, 0], "a"), ([0, 1.0], "c"), ([0, 1.0], "c")):
        model.learn_one({"v": np.array(x)}, c)
    model.partial_fit({"v": [[1.0, 1.0]]}, ["b"])
    for _ in range(5):
        model.learn_one({"v": np.array([5.0, -3.0])}, "c")
    assert model.predict({"v": [[5.0, -3.0]]}) == ["c"]
    model.fit({"v": np.eye(2)}, ["u", "v"])
    with pytest.raises(TypeError, match="The labels of this chunk are numbers, those before were strings"):
        model.learn_one({"v": np.array([1.0, 2.0])}, 1)
    with pytest.raises((TypeError, ValueError)):
        model.learn_one({"v": np.array([1.0, 2.0])}, ["u", "v"])


def test_single_sparse_rows_out_of_order_go_the_long_way():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 5))
    y = (A[:, 0] > 0).astype(int)
    plain, odd = cs.OrthogonalPerceptron(), cs.OrthogonalPerceptron()
    for i in range(60):
        plain.learn_one({"a": A[i]}, y[i])
        order = rng.permutation(5)
        odd.learn_one({"a": sp.csr_array((A[i][order], order, [0, 5]), shape=(1, 5))}, y[i])
    np.testing.assert_allclose(odd.coef_["a"], plain.coef_["a"])
    with pytest.raises(ValueError):
        plain.learn_one({"a": sp.csr_array(A[:2])}, 1)
    plain.learn_one({"a": A[0].astype(np.float16)}, 0)
    plain.learn_one({"a": A[0].astype(">f8")}, 0)


def test_predictions_follow_when_classes_join():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 3))
    y = np.array(["a", "d"])[(A[:, 0] > 0).astype(int)]
    model = cs.MultiCueClassifier(estimator=cs.OnlinePerceptron(), C=1.0).partial_fit({"u": A, "v": A}, y)
    for new in ("b", "c"):
        model.predict({"u": A, "v": A})
        model.partial_fit({"u": A[:5]}, [new] * 5)
        fresh = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(model.predict({"u": A, "v": A}), fresh.predict({"u": A, "v": A}))
    late = cs.MultiCueClassifier(RBF(0.5)).partial_fit({"u": A[:3], "v": A[:3]}, ["a"] * 3)
    late.partial_fit({"u": A[:3]}, ["b"] * 3).partial_fit({"u": A[:3]}, ["c"] * 3)
    assert late.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "estimator",
    [
        cs.KernelPerceptron(RBF(3.0)), cs.PassiveAggressive(RBF(3.0), variant="PA"), cs.Projectron(RBF(3.0)),
        cs.MatrixPerceptron(average="voted"), cs.KernelPerceptron(RBF(3.0), average="voted"),
        cs.OnlinePerceptron(4, average="voted"), cs.VectorPerceptron(RBF(3.0)), cs.OrthogonalPerceptron(RBF(3.0), p=3),
    ],
    ids=repr,
)  # fmt: skip
def test_ties_do_not_depend_on_chunks(estimator):
    for seed in range(25):
        X, y = binary_patterns(seed)
        once, parts = clone(estimator), clone(estimator)
        once.partial_fit(X, y, classes=range(4))
        for start in range(0, 60, 7):
            parts.partial_fit(X[start : start + 7], y[start : start + 7], classes=range(4))
        assert (once.n_mistakes_, once.n_updates_) == (parts.n_mistakes_, parts.n_updates_)
        np.testing.assert_allclose(once.decision_function(X), parts.decision_function(X), atol=1e-8)


LATE = {
    "prior norms": cs.OrthogonalPerceptron(prior_norms=1.0),
    "prior norms, aggressive": cs.OrthogonalPerceptron(prior_norms=1.0, p=2, variant="passive-aggressive"),
    "prior norms by view": cs.OrthogonalPerceptron(prior_norms={"a": 2.0, "b": 0.5}, p=3),
    "prior norms, kernels": cs.OrthogonalPerceptron(RBF(0.3), prior_norms=0.5, p=2),
    "prior norms, average": cs.OrthogonalPerceptron(prior_norms=0.5, variant="passive-aggressive", average=True),
    "pad": cs.MatrixPerceptron(unequal="pad"),
    "pad, average": cs.MatrixPerceptron(unequal="pad", average=True, p=3),
    "pad, voted": cs.MatrixPerceptron(unequal="pad", average="voted"),
    "pad, kernel": cs.MatrixPerceptron(RBF(0.3), unequal="pad"),
    "pad, kernel, average": cs.MatrixPerceptron(RBF(0.3), unequal="pad", average=True),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LATE)
def test_a_view_that_comes_late_joins_at_its_first_sample_however_the_stream_is_cut(name, seed):
    X, y = late_stream(seed)
    once = in_chunks(LATE[name], X, y, len(y))
    for step in (7, 50):
        same_state(once, in_chunks(LATE[name], X, y, step), X)
    stepwise = clone(LATE[name])
    for i in range(len(y)):
        row = {name: X[name][i] for name in X.names if X.present(name)[i]}
        stepwise.learn_one(row, int(y[i])) if i else stepwise.partial_fit(X[[0]][["a"]], y[:1], classes=[0, 1])
    same_state(once, stepwise, X)


@pytest.mark.parametrize("average", [False, True, "voted"])
@pytest.mark.parametrize("kernel", ["linear", RBF(0.3)], ids=str)
def test_padding_for_a_wide_view_that_comes_late_is_padding_from_the_start(kernel, average):
    for seed in range(3):
        X, y = late_stream(seed)
        wide = Views({"a": np.pad(np.nan_to_num(X["a"]), ((0, 0), (0, 2))), "b": X["b"]}, mask=X.mask)
        known = cs.MatrixPerceptron(kernel, unequal="refuse", average=average)
        estimator = cs.MatrixPerceptron(kernel, unequal="pad", average=average)
        for step in (120, 30):
            late, from_start = in_chunks(estimator, X, y, step), in_chunks(known, wide, y, step)
            assert (late.n_mistakes_, late.n_updates_) == (from_start.n_mistakes_, from_start.n_updates_)
            np.testing.assert_allclose(late.decision_function(X), from_start.decision_function(wide), atol=1e-9)
        whole = clone(estimator).set_params(shuffle=False, max_iter=2)
        np.testing.assert_allclose(
            whole.fit(X, y).decision_function(X),
            clone(whole).set_params(unequal="refuse").fit(wide, y).decision_function(wide),
            atol=1e-9,
        )


@pytest.mark.parametrize("step", [120, 60, 30, 1])
def test_a_wide_view_that_comes_late_cannot_be_repeated_for(step):
    X, y = late_stream(0)
    for kernel in ("linear", RBF(0.3)):
        with pytest.raises(
            ValueError, match=r"View 'b' has 4 columns, the widest view so far 2: .* unequal='repeat' is"
        ):
            in_chunks(cs.MatrixPerceptron(kernel, unequal="repeat"), X, y, step)
        narrow, y = late_stream(0, widths=(4, 2))
        once = in_chunks(cs.MatrixPerceptron(kernel, unequal="repeat"), narrow, y, 120)
        same_state(once, in_chunks(cs.MatrixPerceptron(kernel, unequal="repeat"), narrow, y, step), narrow)


def test_vector_perceptron_takes_late_views_of_other_kernels():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    y = (A[:, 0] > 0).astype(int)
    estimator = cs.VectorPerceptron({"a": "linear", "b": RBF(0.5)})
    model = clone(estimator).partial_fit({"a": A}, y, classes=[0, 1]).partial_fit({"b": B}, y)
    holes = Views(
        {"a": np.vstack([A, A]), "b": np.vstack([B, B])}, mask=np.repeat([[True, False], [False, True]], 60, axis=0)
    )
    once = clone(estimator).partial_fit(holes, np.r_[y, y])
    np.testing.assert_allclose(model.decision_function({"b": B}), once.decision_function({"b": B}), atol=1e-9)
    assert abs(model.decision_function({"b": B})).max() > 0
    assert len(model.support_) == len(model.dual_coef_)


@pytest.mark.parametrize("average", [False, True])
def test_repeated_columns_of_sparse_views(average):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(100, 6)), rng.normal(size=(100, 4))
    y = (A[:, 0] + B[:, 1] > 0).astype(int)
    scores = []
    for form in (np.asarray, sp.csr_array):
        model = cs.MatrixPerceptron(p=3, unequal="repeat", average=average).partial_fit({"a": form(A), "b": form(B)}, y)
        scores.append(model.decision_function({"a": A, "b": B}))
    np.testing.assert_allclose(*scores, atol=1e-9)
    C = np.hstack([B, B[:, :2]])
    same = cs.MatrixPerceptron(p=3, average=average).partial_fit({"a": A, "b": C}, y)
    np.testing.assert_allclose(scores[0], same.decision_function({"a": A, "b": C}), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [1.0, 0.5])
@pytest.mark.parametrize("kind", [cs.Projectron, cs.MultiCueClassifier])
def test_distances_at_the_threshold_do_not_depend_on_chunks(kind, threshold, seed):
    own = np.random.default_rng(seed)
    Z = np.round(2 * own.normal(size=(300, 1)))
    y = (np.abs(Z[:, 0]) % 2).astype(int)
    estimator = kind(RBF(0.3), threshold=threshold)
    once = in_chunks(estimator, Views(a=Z), y, 300)
    for step in (100, 7, 1):
        same_state(once, in_chunks(estimator, Views(a=Z), y, step), Views(a=Z))


@pytest.mark.parametrize("far", [1e6, 1e8, 1e9, 1e10, 1e50])
@pytest.mark.parametrize("kind", [cs.KernelPerceptron, cs.Projectron, cs.OrthogonalPerceptron, cs.VectorPerceptron])
def test_one_far_sample_does_not_make_chunks_differ(kind, far):
    own = np.random.default_rng(0)
    Z = own.normal(size=(300, 3))
    y = (Z[:, 0] * Z[:, 1] > 0).astype(int)
    Z[50] = far
    once = in_chunks(kind(RBF(0.5)), Views(a=Z), y, 300)
    for step in (100, 7, 1):
        same_state(once, in_chunks(kind(RBF(0.5)), Views(a=Z), y, step), Views(a=Z))
    near = in_chunks(kind(RBF(0.5)), Views(a=np.delete(Z, 50, axis=0)), np.delete(y, 50), 299)
    agree = once.predict(Views(a=Z)) == near.predict(Views(a=Z))
    assert agree.mean() > 0.95


@pytest.mark.parametrize("name", ALL)
def test_a_refused_chunk_changes_nothing(name):
    X, y = stream(0, n=30)
    model = clone(ALL[name]).partial_fit(X, y, classes=[0, 1])
    before = model.decision_function(X)
    for bad in (lambda: model.partial_fit(X, [7] * 30), lambda: model.partial_fit({"v0": X["v0"][:, :2]}, y),
                lambda: model.partial_fit({"v0": X["v0"], "w": ["s"] * 30, "v1": X["v1"]}, y[:4])):  # fmt: skip
        with pytest.raises(ValueError):
            bad()
    same = clone(ALL[name]).partial_fit(X, y, classes=[0, 1])
    assert model.n_samples_seen_ == 30
    assert model.view_names_in_ == same.view_names_in_
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    "estimator",
    [
        cs.KernelPerceptron(ChiSquared(1.0)),
        cs.MultiCueClassifier(ChiSquared(1.0)),
        cs.VectorPerceptron(ChiSquared(1.0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_samples_that_a_kernel_refuses_leave_no_trace(estimator):
    rng = np.random.default_rng(0)
    A, y = rng.random((40, 3)), np.arange(40) % 2
    bad = np.where(np.arange(40)[:, None] == 30, -1.0, A)
    fresh = clone(estimator)
    with pytest.raises(ValueError, match="needs nonnegative data"):
        fresh.partial_fit(bad, y)
    assert not hasattr(fresh, "n_samples_seen_")
    model = clone(estimator).partial_fit(A, y, classes=[0, 1])
    before = model.decision_function(A)
    with pytest.raises(ValueError, match="needs nonnegative data"):
        model.partial_fit(bad, y)
    assert model.n_samples_seen_ == 40
    np.testing.assert_array_equal(model.decision_function(A), before)


def test_learning_goes_on_after_a_fit_with_unlabeled_samples():
    X, y = stream(0, n=200)
    labels = np.where(np.arange(200) % 10 == 0, y, np.nan)
    known = ~np.isnan(labels)
    Z, z = stream(1, n=200)
    one = cs.KernelPerceptron(RBF(0.5), random_state=0).fit(X, labels).partial_fit(Z, z)
    other = cs.KernelPerceptron(RBF(0.5), random_state=0).fit(X[known], y[known]).partial_fit(Z, z)
    assert one.n_mistakes_ == other.n_mistakes_
    np.testing.assert_allclose(one.decision_function(Z), other.decision_function(Z))
