"""The vector perceptron against its twins, its bounds, and streams."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from online_cases import in_chunks, same_state
from scipy.special import comb
from sklearn.datasets import make_blobs

import consilience as cs
import reference
import strategies
from consilience.kernels import RBF, Linear, Polynomial
from consilience.solvers.certificates import sparsity_bound, vector_perceptron_bounds
from strategies import among, seeds, separable_samples


def two_views(n=90, missing=False):
    A, y = make_blobs(n, 3, centers=3, cluster_std=4.0, random_state=0)
    B, mask = np.random.default_rng(0).normal(size=(n, 2)) + y[:, None], np.ones((n, 2), dtype=bool)
    if missing:
        mask[::5, 0] = False
        mask[1::4, 1] = False
        mask[~mask.any(axis=1), 0] = True
    return cs.Views({"a": A / 5, "b": B}, mask=mask), y


def separable(seed, T=3):
    return strategies.draw_separable(np.random.default_rng(seed), 40, T)


@pytest.mark.parametrize("T", [2, 3])
@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
def test_the_perceptron_is_its_twin(T, step):
    X, y = separable(0, T=T)
    Y = cs.simplex_vectors(T)
    W, updates = reference.vector_perceptron(X, Y[y], 1.0, step, 50)
    model = cs.VectorPerceptron(eta0=step, max_iter=50, shuffle=False).fit(X, y)
    assert model.n_updates_ == updates
    expected = X @ W.T @ Y.T
    expected = expected if T > 2 else (expected[:, 1] - expected[:, 0]) / 2
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)
    kernel = cs.VectorPerceptron(Polynomial(1, 0.0), eta0=step, max_iter=50, shuffle=False).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), expected, atol=1e-10)
    gram = X @ X.T * (Y @ Y.T)[np.ix_(y, y)]
    alpha, updates = reference.dual_vector_perceptron(gram, 1.0, 0.01 * step, 50)
    dual = cs.VectorPerceptron(variant="coefficients", eta0=0.01 * step, max_iter=50, shuffle=False).fit(X, y)
    assert dual.n_updates_ == updates
    expected = X @ X.T @ (alpha[:, None] * (Y @ Y.T)[y])
    expected = expected if T > 2 else (expected[:, 1] - expected[:, 0]) / 2
    np.testing.assert_allclose(dual.decision_function(X), expected, atol=1e-8)


def test_both_algorithms_are_different():
    X, y = separable(1)
    first = cs.VectorPerceptron(shuffle=False).fit(X, y)
    second = cs.VectorPerceptron(shuffle=False, variant="coefficients", eta0=0.01).fit(X, y)
    assert first.converged_
    assert second.converged_
    assert abs(np.corrcoef(first.decision_function(X).ravel(), second.decision_function(X).ravel())[0, 1]) < 0.9999
    assert not hasattr(second, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = second.partial_fit
    assert "use `fit`, or variant='operator' for a stream" in str(caught.value.__cause__)


@settings(max_examples=60, deadline=None)
@given(separable_samples(), seeds, among(0.2, 1.0, 4.0), among(0.5, 1.0, 2.0))
def test_bounds_hold(drawn, seed, step, margin):
    X, y, T = drawn
    model = cs.VectorPerceptron(eta0=step, margin=margin, max_iter=10_000, random_state=seed).fit(X, y)
    proof = model.certificate(X, y)
    assert model.converged_
    assert proof.widest >= 0.1 * (1 - 1e-3)
    assert proof.n_updates <= proof.bound
    assert proof.margin >= proof.margin_bound
    assert proof.margin <= proof.widest * (1 + 1e-4)
    Y = cs.simplex_vectors(T)
    W, updates = reference.vector_perceptron(X, Y[y], margin, step, 10_000)
    assert updates <= proof.bound
    assert np.einsum("ij,ij->i", X @ W.T, Y[y]).min() / np.linalg.norm(W) >= proof.margin_bound


def test_bounds_as_the_paper_states_them():
    for widest, step in ((0.1, 1.0), (0.5, 0.2)):
        updates, margin = vector_perceptron_bounds(widest, step)
        np.testing.assert_allclose([updates, margin], [(1 + 2 / step) / widest**2, widest / (step + 2)])


def test_samples_that_nothing_separates_have_no_bound():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = cs.VectorPerceptron(max_iter=3).fit(X, [0, 1, 0])
    proof = model.certificate(X, [0, 1, 0])
    assert not model.converged_
    assert proof.bound is None
    assert proof.margin_bound is None
    text = f"{model.n_updates_} updates. Learned as the samples arrived; no optimum is claimed."
    assert str(model.certificate()) == text


@pytest.mark.parametrize("kernel", ["linear", RBF(0.5)])
def test_chunks_and_one_epoch_in_order_are_the_same(kernel):
    X, y = two_views(n=300, missing=True)
    whole, epoch = cs.VectorPerceptron(kernel), cs.VectorPerceptron(kernel, max_iter=1, shuffle=False)
    whole.partial_fit(X, y, classes=range(3))
    for other in (epoch.fit(X, y), in_chunks(whole, X, y, 17, range(3))):
        same_state(other, whole, X, atol=1e-10)


def test_products_of_streams_need_every_view():
    X, y = two_views(missing=True)
    whole, _ = two_views()
    for learn in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="needs every view in every sample"):
            getattr(cs.VectorPerceptron(RBF(0.5), combine="product"), learn)(X, y)
    model = cs.VectorPerceptron(RBF(0.5), combine="product").fit(whole, y)
    with pytest.raises(ValueError, match="needs every view in every sample"):
        model.predict(X)


def test_certificates_leave_samples_without_a_label_out():
    X, y = separable(0)
    model = cs.VectorPerceptron(random_state=0).fit(X, y)
    some = y.astype(float)
    some[:5] = np.nan
    assert model.certificate(X, some).margin == model.certificate(X[5:], y[5:]).margin


def test_streams_ask_for_numbers_and_take_new_views():
    X, y = two_views()
    message = r"View 'a': RBF\(gamma='median'\) takes a parameter from the data.*Give it a number"
    with pytest.raises(ValueError, match=message):
        (fresh := cs.VectorPerceptron(RBF("median"))).partial_fit(X, y)
    assert not hasattr(fresh, "n_samples_seen_")
    scaled = cs.VectorPerceptron("rbf").partial_fit(X, y)  # by the columns, since a stream has no variance yet
    assert scaled.kernels_["a"].gamma == 1 / X["a"].shape[1]
    for kernel in ("linear", RBF(0.5)):
        model = cs.VectorPerceptron({"a": kernel, "b": Linear()}).partial_fit({"a": X["a"]}, y)
        model.partial_fit(X, y)
        assert model.decision_function({"b": X["b"]}).shape == (90, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": X["a"][0]}, 1)
        assert model.predict_one({"a": X["a"][0]}) in range(3)


# -- error rates by the number of updates
def test_the_risk_is_that_of_the_samples_with_updates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 0.5, -0.5)
    for kernel in ("linear", RBF(0.3)):
        model = cs.VectorPerceptron(kernel, random_state=0, margin=0.01).fit(X, y)
        proof = model.certificate(X, y)
        d = model.n_updates_ if kernel == "linear" else len(model.support_)
        assert proof.risk == sparsity_bound(d, 300) < 1
        assert f"Error rate at most {proof.risk:.4g} with probability 95%" in str(proof)
        # other samples have no effect: without them, in the same order, it is the same operator
        plain = cs.VectorPerceptron(kernel, shuffle=False, margin=0.01, max_iter=200).fit(X, y)
        if kernel != "linear":
            kept = plain.support_
            alone = cs.VectorPerceptron(kernel, shuffle=False, margin=0.01, max_iter=200).fit(X[kept], y[kept])
            np.testing.assert_allclose(alone.decision_function(X), plain.decision_function(X))
    stream = cs.VectorPerceptron(RBF(0.3)).partial_fit(X[:150], y[:150], classes=[0, 1]).partial_fit(X[150:], y[150:])
    right = bool((stream.predict(X) == y).all())
    assert stream.certificate(X, y).risk == (sparsity_bound(len(stream.support_), 300) if right else None)


def test_no_risk_is_claimed_where_none_is_proved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 0.5, -0.5)
    scaled = cs.VectorPerceptron("rbf", random_state=0).fit(X, y)  # its γ depends on all samples
    assert scaled.certificate(X, y).margin > 0
    assert scaled.certificate(X, y).risk is None
    assert cs.VectorPerceptron("rbf").partial_fit(X, y, classes=[0, 1]).n_updates_ > 0  # γ of a stream does not
    noisy = cs.VectorPerceptron(RBF(0.1), max_iter=2, random_state=0).fit(X, rng.integers(2, size=100))
    assert noisy.certificate(X, y).risk is None
    assert cs.VectorPerceptron(RBF(0.5), variant="coefficients").fit(X, y).certificate(X, y).risk is None
    assert scaled.fit(X[:1], y[:1]).certificate(X[:1], y[:1]).risk is None  # one class


def test_sparsity_bound():
    assert sparsity_bound(0, 100) == pytest.approx(np.log(100 / 0.05) / 100)
    assert sparsity_bound(3, 100, 0.1) == pytest.approx((np.log(161700) + np.log(1000)) / 97)
    assert sparsity_bound(50, 100) == sparsity_bound(1e9, 100) == 1.0
    values = [sparsity_bound(d, 200) for d in range(201)]
    assert (np.diff(values) >= 0).all()
    # the formula says nothing from half of the samples on
    assert all((np.log(float(comb(200, d))) + np.log(200)) / (200 - d) > 1 for d in range(100, 200))
