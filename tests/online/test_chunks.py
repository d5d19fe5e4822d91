"""However a stream is cut: chunks, late classes, late views, single samples, refused chunks."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from online_cases import ALL, binary_patterns, in_chunks, late_stream, one_by_one, same_state, stream
from sklearn.base import clone

import consilience as cs
from consilience import Views
from consilience.kernels import RBF, ChiSquared


# -- streams: samples, labels, and classes if they are announced
def classes_come_late(seed):
    """Classes in an order that is not theirs, two of them late; views are missing."""
    X, y = stream(9 + seed, n=50, n_classes=4, missing=True)
    order = np.argsort(y > 1, kind="stable")
    return X[order], np.array(["d", "b", "a", "c"])[y[order]], None


def views_come_and_go(seed):
    X, y = stream(9 + seed, n=60, n_classes=3)
    rows = np.arange(60)
    return Views(X, mask={"v0": rows < 45, "v1": rows >= 25}), y, range(3)


def a_view_comes_late(seed):
    return *late_stream(seed), (0, 1)


def a_narrow_view_comes_late(seed):
    return *late_stream(seed, widths=(4, 2)), (0, 1)


def ties(seed):
    return *binary_patterns(seed), range(4)


def distances_at_the_threshold(seed):
    Z = np.round(2 * np.random.default_rng(seed).normal(size=(150, 1)))
    return Views(a=Z), (np.abs(Z[:, 0]) % 2).astype(int), (0, 1)


def one_far_sample(seed):
    Z = np.random.default_rng(0).normal(size=(100, 3))
    y = (Z[:, 0] * Z[:, 1] > 0).astype(int)
    Z[50] = [1e6, 1e8, 1e9, 1e10, 1e50][seed]
    return Views(a=Z), y, (0, 1)


NOT_VOTED = [name for name in ALL if "budget" in name or name in ("projectron", "cues", "cues of perceptrons")]
LATE = [
    *(cs.OrthogonalPerceptron(prior_norms=1.0, **more) for more in ({}, {"p": 2, "variant": "passive-aggressive"})),
    cs.OrthogonalPerceptron(prior_norms={"a": 2.0, "b": 0.5}, p=3),
    cs.OrthogonalPerceptron(RBF(0.3), prior_norms=0.5, p=2),
    cs.OrthogonalPerceptron(prior_norms=0.5, variant="passive-aggressive", average=True),
    *(cs.MatrixPerceptron(unequal="pad", **more) for more in ({}, {"average": True, "p": 3}, {"average": "voted"})),
    *(cs.MatrixPerceptron(RBF(0.3), unequal="pad", average=average) for average in (False, True)),
]
TIED = [
    cs.KernelPerceptron(RBF(3.0)), cs.PassiveAggressive(RBF(3.0), variant="PA"), cs.Projectron(RBF(3.0)),
    cs.MatrixPerceptron(average="voted"), cs.KernelPerceptron(RBF(3.0), average="voted"),
    cs.OnlinePerceptron(4, average="voted"), cs.VectorPerceptron(RBF(3.0)), cs.OrthogonalPerceptron(RBF(3.0), p=3),
]  # fmt: skip
VECTOR = [cs.VectorPerceptron(kernel) for kernel in ("linear", RBF(0.5), {"v0": "linear", "v1": RBF(0.5)})]
# estimators, a stream of a seed, the number of seeds, sizes of chunks
CUTS = [
    (list(ALL.values()), classes_come_late, 1, (1, 7, 30)),
    ([clone(model).set_params(average=average) for name, model in ALL.items()
      for average in (True, "recent", "voted") if average != "voted" or name not in NOT_VOTED], classes_come_late, 1,
     (7, 30)),
    ([*ALL.values(), *VECTOR], views_come_and_go, 1, (17, 25)),
    (LATE, a_view_comes_late, 2, (7, 50)),
    ([cs.MatrixPerceptron(kernel, unequal="repeat") for kernel in ("linear", RBF(0.3))], a_narrow_view_comes_late, 1,
     (1, 30, 60)),
    (TIED, ties, 4, (7,)),
    ([kind(RBF(0.3), threshold=threshold) for kind in (cs.Projectron, cs.MultiCueClassifier)
      for threshold in (1.0, 0.5)], distances_at_the_threshold, 2, (50, 7)),
    ([kind(RBF(0.5)) for kind in (cs.KernelPerceptron, cs.Projectron, cs.OrthogonalPerceptron, cs.VectorPerceptron)],
     one_far_sample, 5, (50, 7)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "make", "seed", "steps"),
    [
        pytest.param(estimator, make, seed, steps, id=f"{make.__name__}-{seed}-{type(estimator).__name__}")
        for estimators, make, seeds, steps in CUTS
        for estimator in estimators
        for seed in range(seeds)
    ],
)
def test_the_state_does_not_depend_on_how_a_stream_is_cut(estimator, make, seed, steps):
    X, y, classes = make(seed)
    once = in_chunks(estimator, X, y, len(y), classes)
    assert once.classes_.tolist() == np.unique(y).tolist()
    for step in steps:
        same_state(once, in_chunks(estimator, X, y, step, classes), X)
    same_state(once, one_by_one(estimator, X, y, classes), X)


@pytest.mark.parametrize("average", [False, True, "with_last"])
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
@pytest.mark.parametrize("kernel", ["linear", RBF(0.3)], ids=str)
def test_a_wide_view_that_comes_late_cannot_be_repeated_for(kernel, step):
    message = r"View 'b' has 4 columns, the widest view so far 2: .* unequal='repeat' is"
    with pytest.raises(ValueError, match=message):
        in_chunks(cs.MatrixPerceptron(kernel, unequal="repeat"), *late_stream(0), step)


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


@pytest.mark.parametrize("model", [cs.MatrixPerceptron(), cs.OrthogonalPerceptron(), cs.OnlinePerceptron()], ids=str)
@pytest.mark.parametrize("labels", ["ab" * 10 + "abc" * 14, "bc" * 10 + "abc" * 14])
def test_the_average_is_the_mean_of_the_hypotheses_when_a_class_comes_late(model, labels):
    rng = np.random.default_rng(0)
    X, probe = (Views(u=rng.normal(size=(n, 3)), v=rng.normal(size=(n, 3))) for n in (len(labels), 5))

    def scores(fitted):
        """Return scores by class; of two classes the second has the decision, of one class there is nothing to say."""
        decision, by_class = fitted.decision_function(probe), np.zeros((5, 3))
        if len(fitted.classes_) > 1:
            own = np.column_stack([-decision, decision]) if len(fitted.classes_) == 2 else decision
            by_class[:, ["abc".index(name) for name in fitted.classes_]] = own
        return by_class

    last, *means = (clone(model).set_params(average=average) for average in (False, True, "with_last"))
    total = np.zeros((5, 3))  # of the hypotheses before each sample
    for i, label in enumerate(labels):
        total += scores(last) if i else 0
        last.partial_fit(X[[i]], [label])
        for mean in means:
            mean.partial_fit(X[[i]], [label])
    np.testing.assert_allclose(scores(means[0]), total / len(labels), atol=1e-12)
    np.testing.assert_allclose(scores(means[1]), (total + scores(last)) / (len(labels) + 1), atol=1e-12)


@pytest.mark.parametrize("model", [cs.OnlinePerceptron(), cs.OrthogonalPerceptron(), cs.KernelPerceptron()])
def test_rows_before_the_first_label_count_in_the_preparation(model):
    X, y = stream(3, n=60)
    far, labels = Views({v: 100 * X[v] + 50 for v in X.names}), np.where(y == 1, "p", "q").astype(object)
    labels[:20] = None
    whole = clone(model).set_params(prepare="standardize").partial_fit(far, labels)
    for size in (1, 7, 20):
        cut = clone(whole)
        for start in range(0, 60, size):
            cut.partial_fit(far[start : start + size], labels[start : start + size])
        same_state(whole, cut, far)
