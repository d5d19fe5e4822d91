"""Budgets: the oldest samples are dropped exactly, also from norms and averages; defaults stay bounded."""

import warnings

import numpy as np
import pytest
from online_cases import features, in_chunks, kernel_blocks, one_by_one, same_state, stream, two_signs
from sklearn.base import clone

import consilience as cs
import reference
from consilience import RandomFeatures, Views
from consilience.kernels import RBF, Linear

pytestmark = pytest.mark.filterwarnings("ignore:The budget of")
DUAL = 1.0 * Linear()  # not recognized as linear, so that samples are kept


def noisy(seed, n=70, n_classes=2, missing=False):
    """A stream in which a third of the classes are drawn at random, so that there are many updates."""
    X, y = stream(seed, n=n, n_classes=n_classes, missing=missing)
    rng = np.random.default_rng(seed)
    return X, np.where(rng.random(n) < 0.3, rng.integers(n_classes, size=n), y)


def pair_features(X, kernel):
    """Samples as matrices of features with a column for each view, whose products are kernels between any two views."""
    there = np.concatenate([X.present(name) for name in X.names])
    Z = features(kernel(np.nan_to_num(np.vstack([X[name] for name in X.names])))) * there[:, None]
    return Z.reshape(len(X.names), len(X), -1).transpose(1, 2, 0)


def with_one(kernel):
    return lambda A: kernel(A) + 1


# an estimator with a budget of 9, its samples as matrices of features, exponent and prior norms of its factors, margin
BUDGETS = {
    "orthogonal": (
        cs.OrthogonalPerceptron(RBF(0.2), p=2.5, budget=9, fit_intercept=False),
        lambda X: kernel_blocks(X, RBF(0.2)), (2.5, None), 0.0,
    ),
    "orthogonal, prior norms": (
        cs.OrthogonalPerceptron(
            RBF(0.2), p=3, prior_norms={"v0": 2.0, "v1": 0.5}, budget=9, margin=0.3, fit_intercept=True
        ),
        lambda X: kernel_blocks(X, with_one(RBF(0.2))), (3, [2.0, 0.5]), 0.3,
    ),
    "matrix": (
        cs.MatrixPerceptron(RBF(0.2), p=2, budget=9, fit_intercept=True),
        lambda X: pair_features(X, with_one(RBF(0.2))), (2, None), 0.0,
    ),
    "matrix, products": (
        cs.MatrixPerceptron(DUAL, p=3, budget=9, margin=0.2, fit_intercept=False),
        lambda X: pair_features(X, Linear()), (3, None), 0.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("missing", "n_classes"), [(False, 2), (True, 3)])
@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_equals_its_twin(name, missing, n_classes):
    estimator, made, link, margin = BUDGETS[name]
    X, y = noisy(3, n_classes=n_classes, missing=missing)
    rows = made(X)
    wrong, kept, hypotheses = reference.budgeted(rows, y, n_classes, reference.matrix_link(*link), margin, 9)
    last = np.array([[np.sum(w * x) for w in hypotheses[-1][1]] for x in rows])
    mean = np.zeros_like(hypotheses[0][0])
    for h, (V, W) in enumerate(hypotheses[:-1]):  # what is left of each hypothesis, with its factors
        for t in range(len(V)):
            left = sum((a[t] * rows[s] for s, a in kept.items() if s < h), 0 * V[t])
            mean[t] += left @ np.linalg.pinv(V[t], rcond=1e-9) @ W[t] / len(y)
    means = np.array([[np.sum(w * x) for w in mean] for x in rows])
    for average, expected in ((False, last), (True, means)):
        for size in (1, 7, len(y)):
            model = in_chunks(clone(estimator).set_params(average=average), X, y, size, range(n_classes))
            np.testing.assert_array_equal(model.support_, list(kept))
            assert model.n_mistakes_ == wrong.sum()
            assert model.n_dropped_ == model.n_updates_ - 9 > 5
            np.testing.assert_allclose(model.decision_function(X), two_signs(expected), atol=1e-8)
    V = hypotheses[-1][0]  # the norms follow exactly
    norms = np.array([(v.T @ v).ravel() if "matrix" in name else (v**2).sum(axis=0) for v in V]).T
    np.testing.assert_allclose(model._machine.factors.norms, norms, atol=1e-9)


KERNEL = {
    "perceptron": cs.KernelPerceptron(RBF(0.2)),
    "passive-aggressive": cs.PassiveAggressive(RBF(0.2)),
    "projectron": cs.Projectron(RBF(0.2), threshold=0.05),
    "orthogonal": cs.OrthogonalPerceptron(RBF(0.2)),
    "matrix": cs.MatrixPerceptron(RBF(0.2)),
    "cues": cs.MultiCueClassifier(RBF(0.2), threshold=0.05),
}


def limits(model):
    """The budgets of the machines that keep samples; 0 is no limit."""
    parts = getattr(model, "estimators_", {"": model}).values()
    return {part._machine.budget for part in parts}


@pytest.mark.parametrize("name", KERNEL)
def test_a_large_budget_changes_nothing(name):
    X, y = noisy(1)
    free = clone(KERNEL[name]).set_params(budget=None).partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for budget in (70, "auto"):
            model = clone(KERNEL[name]).set_params(budget=budget).partial_fit(X, y)
            same_state(model, free, X)
            assert model.n_dropped_ == 0
            assert (model.certificate().bound is None) == (free.certificate().bound is None)
    assert (limits(free), limits(model)) == ({0}, {1000 if name in ("projectron", "cues") else 2000})


@pytest.mark.parametrize("name", KERNEL)
def test_a_full_budget_is_told_once(name):
    X, y = noisy(2)
    model = clone(KERNEL[name]).set_params(budget=6)
    with pytest.warns(UserWarning, match=r"The budget of 6 samples was full within .* use budget=None") as told:
        model.partial_fit(X, y).partial_fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert model.n_dropped_ > 0
    assert model.certificate().bound is None
    with pytest.warns(UserWarning, match="The budget of 6") as told:
        model.fit(X, y)  # several passes
    assert len(told) == 1


@pytest.mark.parametrize("estimator", [KERNEL["perceptron"], KERNEL["orthogonal"], KERNEL["matrix"]], ids=str)
def test_a_vote_keeps_every_update(estimator):
    X, y = noisy(2)
    model = clone(estimator).set_params(average="voted").partial_fit(X, y)
    assert limits(model) == {0}
    with pytest.raises(ValueError, match="average='voted' keeps every update, but budget=9 limits them"):
        model.set_params(budget=9).fit(X, y)


@pytest.mark.parametrize("kind", [cs.PassiveAggressive, cs.OrthogonalPerceptron, cs.MatrixPerceptron])
def test_linear_estimators_need_no_budget(kind):
    X, y = noisy(2)
    one, other = kind(budget=3).partial_fit(X, y), kind(budget=None).partial_fit(X, y)
    same_state(one, other, X)
    assert one.n_dropped_ == 0


def test_gram_matrices_have_no_budget_with_factors():
    X, y = noisy(2, n=60)
    given = Views(g=RBF(0.2)(X["v0"]), v=X["v1"], precomputed=["g"])
    kernel = {"g": "precomputed", "v": RBF(0.2)}
    with pytest.raises(ValueError, match=r"budget=9 needs kernels .* view 'g' is a Gram matrix"):
        cs.OrthogonalPerceptron(kernel, budget=9).fit(given, y)
    free, auto = (cs.OrthogonalPerceptron(kernel, budget=b, shuffle=False).fit(given, y) for b in (None, "auto"))
    auto._machine.budget = 9  # as a long stream would reach 2,000
    same_state(auto.partial_fit(given, y), free.partial_fit(given, y), given)
    short = cs.OrthogonalPerceptron(kernel, budget=9, p=1, shuffle=False).fit(given, y)  # needs no norms
    assert len(short.support_) == 9


def test_machines_that_share_rows_do_not_disturb_each_other():
    X, y = noisy(3, n=120)
    one = cs.Projectron(RBF(0.2), threshold=0.01, budget=None).partial_fit(X[:40], y[:40])
    machine, other = one._machine, clone(one).partial_fit(X[:40], y[:40])
    other._machine = machine.snapshot()
    assert other._machine.L is machine.L
    one.partial_fit(X[40:80], y[40:80])
    other.partial_fit(X[80:], y[80:])
    for model, rows in ((one, np.r_[:80]), (other, np.r_[:40, 80:120])):
        same_state(model, clone(one).partial_fit(X[rows], y[rows]), X)


@pytest.mark.parametrize("kind", [cs.OnlinePerceptron, cs.OrthogonalPerceptron])
def test_random_features_follow_a_stream(kind, tmp_path):
    X, y = noisy(4, missing=True)
    model = kind(average=True, prepare=["standardize", RandomFeatures(n_components=20, random_state=0)])
    once = clone(model).partial_fit(X, y)
    for other in (*(in_chunks(model, X, y, size, None) for size in (1, 7)), one_by_one(model, X, y)):
        same_state(other, once, X)
    cs.save(once, tmp_path / "model")
    loaded = cs.load(tmp_path / "model")
    same_state(loaded, once, X)
    same_state(loaded.partial_fit(X, y), once.partial_fit(X, y), X)
    assert loaded.coef_["v0"].shape[0] == 20  # the memory does not grow
