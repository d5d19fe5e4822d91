"""Mistake bounds and certificates of online estimators."""

import numpy as np
import pytest
from hypothesis import given, settings
from online_cases import stream
from sklearn.base import clone

import consilience as cs
import strategies
from consilience.kernels import RBF, Linear
from consilience.solvers.certificates import novikoff_bound, perceptron_bound, risk_bound


def check_bound(estimator, X, y, **given):
    model = clone(estimator).partial_fit(X, y, classes=np.unique(y))
    proof = model.certificate(X, y, **given)
    assert proof.n_mistakes == model.n_mistakes_ <= proof.bound + 1e-9
    return proof


def estimators(p):
    return [
        cs.OnlinePerceptron(max(2, p)), cs.OrthogonalPerceptron(p=p), cs.MatrixPerceptron(p=p),
        cs.OrthogonalPerceptron(p=p, variant="passive-aggressive"), cs.PassiveAggressive(variant="PA"),
        cs.PassiveAggressive(variant="PA-II", C=0.1), cs.OrthogonalPerceptron(p=p, margin=0.2, eta0=0.5),
        cs.KernelPerceptron(RBF(0.2)), cs.OrthogonalPerceptron(RBF(0.2), p=p), cs.MatrixPerceptron(RBF(0.2), p=p),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(10), ids=lambda which: repr(estimators(2)[which]))
@settings(max_examples=25)
@given(drawn=strategies.streams(one_width=True), p=strategies.numbers(1, 6))
def test_bounds_are_never_violated_by_the_best_comparators(which, drawn, p):
    X, y, _ = drawn
    check_bound(estimators(p)[which], X, y)


@settings(max_examples=100)
@given(drawn=strategies.streams_along(), p=strategies.numbers(1, 8), other=strategies.numbers(0.01, 3))
def test_bounds_are_never_violated_by_other_comparators(drawn, p, other):
    X, y, truth = drawn
    margins = np.abs(sum(X[v] @ truth[v] for v in truth))
    for estimator in estimators(p)[:3]:
        model = clone(estimator).partial_fit(X, y, classes=[0, 1])
        for scale in (1 / margins.min(), other):  # the first has no loss where the truth separates
            proof = model.certificate(X, y, comparator={v: scale * truth[v] for v in truth})
            assert proof.n_mistakes == model.n_mistakes_ <= proof.bound + 1e-9


@settings(max_examples=200, deadline=None)
@given(strategies.half_spaces(), strategies.seeds)
def test_novikoff_holds_however_often_samples_are_passed(drawn, seed):
    X, y, u = drawn
    model = cs.OnlinePerceptron(fit_intercept=False, max_iter=500, random_state=seed).fit(X, y)
    margin = float(np.abs(X @ u).min())
    assert model.n_updates_ <= novikoff_bound(float(np.linalg.norm(X, axis=1).max()), margin) + 1e-9


@pytest.mark.parametrize("kind", [cs.OnlinePerceptron, cs.KernelPerceptron, cs.OrthogonalPerceptron])
def test_bounds_where_announced_classes_do_not_occur(kind):
    rng = np.random.default_rng(0)
    A = np.hstack([np.ones((150, 1)), rng.normal(size=(150, 3))])
    for values, classes in (([0, 2], [0, 1, 2]), ([0, 1, 3], [0, 1, 2, 3]), ([0], [0, 1])):
        y = np.array(values)[rng.integers(len(values), size=150)]
        model = kind().partial_fit(A, y, classes=classes)
        assert model.certificate(A, y).bound >= model.n_mistakes_


def test_primal_and_dual_find_the_same_norms():
    X, y = stream(2, n=50)
    U = np.random.default_rng(0).normal(size=50)
    for p in (1, 2.5):
        for kind in (cs.OrthogonalPerceptron, cs.MatrixPerceptron):
            kernels = ("linear", 1.0 * Linear())
            proofs = [check_bound(kind(k, p=p, fit_intercept=True), X, y, comparator=U) for k in kernels]
            for field in ("bound", "loss", "norm", "size"):
                assert getattr(proofs[0], field) == pytest.approx(getattr(proofs[1], field), rel=1e-6)


def test_certificates_speak():
    X, y = stream(2, n=50)
    model = cs.OrthogonalPerceptron().partial_fit(X, y)
    assert model.certificate().bound == 50
    assert "50, the number of samples; a better bound needs certificate(X, y)" in str(model.certificate())
    assert str(model.certificate(X, y)).startswith(f"{model.n_mistakes_} mistakes in 50 samples, at most ")
    assert model.certificate().risk == risk_bound(model.n_mistakes_ / 50, 50)
    spoken = "the mean error rate over all hypotheses of the stream is at most "
    assert f"{spoken}{model.certificate().risk:.4g} with probability 95%" in str(model.certificate())
    assert "the final one is not bounded" in str(model.certificate())
    with pytest.raises(ValueError, match="learned 50 samples, and 20 are given"):
        model.certificate(X[:20], y[:20])
    with pytest.raises(ValueError, match="`comparator` names the view 'w'; the views are 'v0', 'v1'"):
        model.certificate(X, y, comparator={"w": np.ones(4)})
    assert cs.KernelPerceptron(budget=5).partial_fit(X, y).certificate().bound is None
    assert perceptron_bound(4.0, 1.0, 1.0, margin=0.5, eta0=0.25) == 4 + 5 + np.sqrt(20)


def test_no_risk_is_claimed_after_several_passes():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(60, 20)), rng.integers(2, size=60)
    for estimator in (cs.MultiCueClassifier(RBF(0.05), max_iter=3), cs.OnlinePerceptron(max_iter=3)):
        assert estimator.fit(A, y).certificate().risk is None
        assert clone(estimator).partial_fit(A, y).certificate().risk is not None
        assert clone(estimator).set_params(max_iter=1).fit(A, y).certificate().risk is not None


def test_no_risk_is_claimed_where_fit_took_parameters_from_all_samples():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    for kernel, prepare in (("rbf", None), (RBF(0.5), "standardize")):
        model = cs.KernelPerceptron(kernel, prepare=prepare, max_iter=1)
        assert model.fit(A, y).certificate().risk is None
        assert clone(model).partial_fit(A, y).certificate().risk is not None
    assert cs.KernelPerceptron(RBF(0.5), max_iter=1).fit(A, y).certificate().risk is not None
    one_each = cs.MultiCueClassifier(estimator=cs.KernelPerceptron("rbf"), max_iter=1)
    assert one_each.fit(A, y).certificate().risk is None
    B, z = np.r_[A, A + 9], np.repeat([0, 1], 60)  # separated, so that a bound exists
    sure = cs.VectorPerceptron(RBF(0.01), max_iter=100, random_state=0)
    assert sure.fit(B, z).certificate(B, z).risk is not None
    assert clone(sure).set_params(prepare="standardize").fit(B, z).certificate(B, z).risk is None


def test_the_comparator_zero_is_named_where_it_is_the_best():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(12, 3)), rng.integers(2, size=12)
    y[:2] = [0, 1]
    proof = cs.OnlinePerceptron(5).partial_fit(A, y).certificate(A, y)
    assert "the number of samples" not in str(proof)
    assert proof.size is not None


@pytest.mark.parametrize("kernel", ["linear", RBF(0.5)], ids=str)
def test_the_vector_perceptron_has_a_certificate_on_single_precision(kernel):
    for seed in range(12):
        own = np.random.default_rng(seed)
        X = own.normal(size=(60, 3)).astype(np.float32)
        for y in ((X[:, 0] + own.normal(size=60) > 0).astype(int), (X[:, 0] > 0).astype(int)):
            model = cs.VectorPerceptron(kernel, random_state=0, max_iter=5).fit(X, y)
            proof, double = model.certificate(X, y), model.certificate(X.astype(np.float64), y)
            assert proof.bound is None or proof.bound >= model.n_updates_
            assert proof.status == double.status
            assert proof.margin == pytest.approx(double.margin, rel=1e-4, abs=1e-6)
