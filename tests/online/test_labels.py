"""Several labels per sample in streams: one binary estimator for each label, late labels, lists and indicators."""

import numpy as np
import pytest
import scipy.sparse as sp
from online_cases import concatenated, stream
from sklearn.base import clone
from sklearn.multioutput import MultiOutputClassifier

import consilience as cs
from consilience import Views
from consilience.kernels import RBF

ESTIMATORS = {
    "perceptron": cs.OnlinePerceptron(),
    "perceptron, margin": cs.OnlinePerceptron(margin=0.5, eta0=0.25, fit_intercept=False),
    "passive-aggressive": cs.PassiveAggressive(C=0.2),
    "PA-II by kernels": cs.PassiveAggressive(RBF(0.2), variant="PA-II"),
    "budget": cs.PassiveAggressive(RBF(0.2), budget=20),
    "orthogonal": cs.OrthogonalPerceptron(p=2.5),
    "orthogonal, prior norms": cs.OrthogonalPerceptron(variant="passive-aggressive", prior_norms=0.5, C=0.3),
    "orthogonal, kernels": cs.OrthogonalPerceptron(RBF(0.2), p=2),
    "kernel perceptron": cs.KernelPerceptron(RBF(0.2)),
}
pytestmark = pytest.mark.filterwarnings("ignore:The budget of")
INDEPENDENT = [name for name in ESTIMATORS if name != "budget"]  # labels share the samples of a budget


def labels(seed, n=90, n_labels=3, **more):
    """A stream of views, and an indicator of labels that depend on them."""
    X, _ = stream(seed, n=n, **more)
    own = np.random.default_rng(seed)
    R = concatenated(X)
    return X, (R @ own.normal(size=(R.shape[1], n_labels)) + own.normal(size=(n, n_labels)) > 0).astype(int)


def as_lists(Y, names="abcdef"):
    return [[names[t] for t in np.flatnonzero(row)] for row in Y]


def same(one, other, X):
    for count in ("n_mistakes_", "n_errors_", "n_updates_", "n_samples_seen_"):
        assert getattr(one, count) == getattr(other, count)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("form", ["whole", "missing", "sparse"])
@pytest.mark.parametrize("average", [False, True, "with_last"])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_labels_equal_binary_estimators(name, average, form):
    X, Y = labels(0, whole=form == "whole", missing=form == "missing")
    X = Views({v: sp.csr_array(X[v]) for v in X.names}) if form == "sparse" else X
    model = clone(ESTIMATORS[name]).set_params(average=average)
    together = clone(model).partial_fit(X, Y)
    each = [clone(model).partial_fit(X, Y[:, t], classes=[0, 1]) for t in range(3)]
    scores = np.column_stack([one.decision_function(X) for one in each])
    np.testing.assert_allclose(together.decision_function(X), scores, atol=1e-8)
    np.testing.assert_array_equal(together.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(
        together.predict_proba(X), np.column_stack([one.predict_proba(X)[:, 1] for one in each]), atol=1e-6
    )
    assert together.score(X, Y) == np.mean((together.predict(X) == Y).all(axis=1))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_label_is_a_binary_estimator(name):
    X, Y = labels(1, n_labels=1)
    one = clone(ESTIMATORS[name]).partial_fit(X, as_lists(Y), classes=["a"])
    binary = clone(ESTIMATORS[name]).partial_fit(X, Y[:, 0], classes=[0, 1])
    assert one.n_mistakes_ == binary.n_mistakes_
    assert one.n_updates_ == binary.n_updates_
    assert one.decision_function(X).shape == one.predict_proba(X).shape == (90, 1)
    np.testing.assert_allclose(one.decision_function(X)[:, 0], binary.decision_function(X), atol=1e-9)
    assert [bool(row) for row in one.predict(X)] == (binary.predict(X) == 1).tolist()


@pytest.mark.parametrize("name", INDEPENDENT)
def test_scikit_learns_wrapper_does_the_same(name):
    X, Y = labels(2, widths=(5,))
    model = clone(ESTIMATORS[name]).set_params(max_iter=1, shuffle=False)
    wrapped = MultiOutputClassifier(clone(model)).fit(X["v0"], Y)
    np.testing.assert_array_equal(clone(model).fit(X["v0"], Y).predict(X["v0"]), wrapped.predict(X["v0"]))


# -- however a stream is cut
def late(seed):
    """Lists of labels, of which two appear late, some empty from the start, some samples without labels."""
    X, Y = labels(seed, n_labels=4, missing=True)
    Y[:40, 1], Y[:60, 3], Y[:3], Y[3, 0] = 0, 0, 0, 1
    lists = as_lists(Y, "dbca")
    lists[10] = lists[50] = None
    return X, lists


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_state_does_not_depend_on_how_a_stream_is_cut(name, average):
    X, y = late(3)
    whole = clone(ESTIMATORS[name]).set_params(average=average).partial_fit(X, y)
    assert whole.classes_.tolist() == list("abcd")
    assert whole.n_samples_seen_ == 90 - 3 - 2  # nothing is to decide before the first label
    for size in (1, 7, 30):
        parts = clone(whole)
        for start in range(0, 90, size):
            parts.partial_fit(X[start : start + size], y[start : start + size])
        same(parts, whole, X)
    single = clone(whole)
    for i in range(90):
        row = {v: X[v][i] for v in X.names if X.present(v)[i]}
        single.learn_one(row, y[i] if y[i] is None or i % 2 else set(y[i]))
        if i % 13 == 12:
            assert single.predict_one(row) == single.predict(X[[i]][list(row)])[0]
            likely = single.predict_proba_one(row)
            assert list(likely) == single.classes_.tolist()
            np.testing.assert_allclose(list(likely.values()), single.predict_proba(X[[i]][list(row)])[0])
    same(single, whole, X)


def test_lists_and_indicators_are_the_same():
    X, Y = labels(4)
    forms = [Y, Y.tolist(), Y.astype(bool), sp.csr_array(Y), Y.astype(float)]
    expected = cs.PassiveAggressive().partial_fit(X, Y)
    for form in forms:
        same(cs.PassiveAggressive().partial_fit(X, form), expected, X)
    for form in (
        as_lists(Y),
        [set(row) for row in as_lists(Y)],
        np.array([*map(tuple, as_lists(Y)), None], object)[:-1],
    ):
        named = cs.PassiveAggressive().partial_fit(X, form, classes=list("abc"))
        np.testing.assert_allclose(named.decision_function(X), expected.decision_function(X))
        assert list(named.predict(X)) == as_lists(expected.predict(X))
        assert named.score(X, form) == expected.score(X, Y)
    single = cs.PassiveAggressive()
    for i in range(90):
        single.learn_one({v: X[v][i] for v in X.names}, Y[i])
    same(single, expected, X)
    np.testing.assert_array_equal(single.predict_one({v: X[v][5] for v in X.names}), expected.predict(X[[5]])[0])


def test_fit_passes_over_labels_until_nothing_changes():
    X, _ = stream(0, n=60)
    Y = (X["v0"][:, :2] > 0).astype(int)
    far = Views(v0=X["v0"] + 3 * np.hstack([2 * Y - 1, np.zeros((60, 2))]))
    model = cs.OnlinePerceptron(max_iter=200, random_state=0).fit(far, as_lists(Y))
    assert model.converged_
    assert model.score(far, as_lists(Y)) == 1
    model.fit(far, Y[:, 0])  # and starts again with classes
    assert model.predict(far).shape == (60,)


def test_predictions_of_a_stream_are_indicators_of_the_labels_at_the_end():
    X, y = late(5)
    model = cs.PassiveAggressive(average=True)
    made = model.predict_then_learn(X, y, view_margins=True)
    assert made.y.shape == made.predicted.shape == made.probabilities.shape == (85, 4)
    assert made.classes.tolist() == list("abcd")
    first = {name: int(np.flatnonzero(made.y[:, t])[0]) for t, name in enumerate(made.classes)}
    for t, row in enumerate(first.values()):
        assert not made.predicted[: row + 1, t].any()
        assert not made.probabilities[: row + 1, t].any()
        assert (made.probabilities[row + 1 :, t] > 0).all()
    assert model.n_errors_ == made.n_errors
    assert made.view_margins.shape == (85, 2)


def test_the_mean_margin_of_the_labels_is_divided_among_the_views():
    X, Y = labels(2)
    model = cs.OrthogonalPerceptron(fit_intercept=False)
    made, before = model.predict_then_learn(X, Y, view_margins=True), clone(model)
    for i in range(90):
        scores = before.decision_function(X[[i]])[0] if i else np.zeros(3)
        assert np.nansum(made.view_margins[i]) == pytest.approx(np.mean((2 * Y[i] - 1) * scores), abs=1e-9)
        before.partial_fit(X[[i]], Y[[i]])


def test_probabilities_follow_the_labels():
    X, Y = labels(6, n=3000)
    model = cs.PassiveAggressive(average=True, C=0.01).partial_fit(X, Y)
    likely = model.predict_proba(X)
    for t in range(3):
        assert np.mean(Y[likely[:, t] > 0.8, t]) > 0.8
        assert np.mean(likely[:, t]) == pytest.approx(np.mean(Y[:, t]), abs=0.05)


# -- bounds and refusals
@pytest.mark.parametrize("name", INDEPENDENT)
def test_certificates_bound_the_mistakes_of_labels(name):
    for seed in range(4):
        X, Y = labels(seed, n=60)
        model = clone(ESTIMATORS[name]).partial_fit(X, Y)
        each = [clone(ESTIMATORS[name]).partial_fit(X, Y[:, t], classes=[0, 1]) for t in range(3)]
        proof = model.certificate(X, Y)
        assert proof.n_mistakes == model.n_mistakes_ <= sum(one.n_mistakes_ for one in each) <= proof.bound
        assert model.certificate().bound == 60


REFUSED = {
    "MatrixPerceptron with these parameters learns one class per sample": lambda X, Y: cs.MatrixPerceptron().fit(X, Y),
    "Projectron with these parameters learns one class": lambda X, Y: cs.Projectron().partial_fit(X, as_lists(Y)),
    "MultiCueClassifier with these parameters learns": lambda X, Y: cs.MultiCueClassifier().partial_fit(X, Y),
    "VectorPerceptron with these parameters learns one class": lambda X, Y: cs.VectorPerceptron().fit(X, Y),
    "RankingPerceptron with these parameters learns one class": lambda X, Y: cs.RankingPerceptron().fit(X, Y),
    "OnlinePerceptron with these parameters learns one class": lambda X, Y: cs.OnlinePerceptron(3).fit(X, Y),
    "y has several labels per sample. Use PassiveAggressive": lambda X, Y: (
        cs.OnlinePerceptron(average="voted").fit(X, Y)
    ),
    "OrthogonalPerceptron with these": lambda X, Y: cs.OrthogonalPerceptron(prior_norms="learned").fit(X, Y),
    "An indicator of labels holds 0 and 1; y has 2": lambda X, Y: cs.OnlinePerceptron().fit(X, 2 * Y),
    "y has 2 columns; OnlinePerceptron began with 3 labels": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X, Y).partial_fit(X, Y[:, :2])
    ),
    "The label 'c' was not announced": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X, as_lists(Y), classes=["a", "b"])
    ),
    "the labels of an indicator of 3 columns are their positions": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X, Y, classes=["a", "b", "c"])
    ),
    "The labels of this chunk are numbers, those before were strings": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X, as_lists(Y)).learn_one({"v0": X["v0"][0]}, [7])
    ),
    "The labels of sample 1 must be a list or a set; got 'a'": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X[:2], [["a"], "a"])
    ),
    "y must have a list or a set of labels for each of the 90 samples": lambda X, Y: (
        cs.OnlinePerceptron().partial_fit(X, as_lists(Y)).partial_fit(X, Y[:, 0])
    ),
    "A list of labels in y has a missing value": lambda X, Y: cs.OnlinePerceptron().fit(X[:2], [["a", None], ["b"]]),
    "y has no label at all": lambda X, Y: cs.OnlinePerceptron().fit(X[:2], [[], []]),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_labels_are_refused_in_a_sentence(message):
    with pytest.raises((ValueError, TypeError)) as caught:
        REFUSED[message](*labels(0))
    assert message in str(caught.value)


def test_a_refused_chunk_of_labels_changes_nothing():
    X, Y = labels(0)
    model = cs.PassiveAggressive()
    with pytest.raises(ValueError, match="holds 0 and 1"):
        model.partial_fit(X, 3 * Y)
    assert set(vars(model)) == set(vars(cs.PassiveAggressive()))
    model.partial_fit(X, as_lists(Y))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="columns"):
        model.partial_fit({"v0": X["v0"][:, :2]}, as_lists(Y))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_models_of_labels_go_on_from_files(tmp_path):
    X, y = late(7)
    model = cs.OrthogonalPerceptron(average=True).partial_fit(X[:50], y[:50])
    cs.save(model, tmp_path / "model.cons")
    again = cs.load(tmp_path / "model.cons").partial_fit(X[50:], y[50:])
    same(again, model.partial_fit(X[50:], y[50:]), X)
