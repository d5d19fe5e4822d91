"""Prior norms of the orthogonal perceptron, given and learned: a twin, special cases, bounds, chunks, votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from online_cases import binary_patterns, fixed, in_chunks, late_stream, one_by_one, same_state, stream
from sklearn.base import clone

import consilience as cs
import reference
from consilience import Views
from consilience.kernels import RBF, Linear
from consilience.solvers.certificates import perceptron_bound
from strategies import among, flags, generators, numbers, streams


def learned(kernel="linear", **more):
    return cs.OrthogonalPerceptron(kernel, prior_norms="learned", **more)


def rows_of(X):
    return [tuple(np.nan_to_num(X[name][i]) for name in X.names) for i in range(len(X))]


def aggressive_step(p, C):
    return lambda margin, size: min(C, max(0, 1 - margin) / ((2 * p - 1) * size))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("p", [1.5, 2, 6])
def test_learned_norms_equal_their_twin(p, missing, n_classes):
    for seed in range(4):
        X, y = stream(seed, n_classes=n_classes, widths=(3, 2, 4), missing=missing)
        if missing:  # all views join with the first sample
            first = np.argsort(~X.mask.all(axis=1), kind="stable")
            X, y = X[first], y[first]
        cases = [({}, 0.0, fixed(1.0)), ({"margin": 0.3, "eta0": 0.5}, 0.3, fixed(0.5))]
        cases.append(({"variant": "passive-aggressive", "C": 0.7}, 1.0, aggressive_step(p, 0.7)))
        for more, threshold, step in cases:
            wrong, V, F, R, potential = reference.learned_prior_norms(rows_of(X), y, n_classes, p, threshold, step)
            assert potential <= R * (1 + 1e-9)  # what the bound rests on
            W = [np.concatenate([f * v for f, v in zip(*pair, strict=True)]) for pair in zip(F, V, strict=True)]
            scores = np.array([[w @ np.concatenate(x) for w in W] for x in rows_of(X)])
            for kernel in ("linear", 1.0 * Linear()):
                model = learned(kernel, p=p, fit_intercept=False, **more).partial_fit(X, y, classes=range(n_classes))
                assert model.n_mistakes_ == sum(wrong)
                expected = scores[:, 0] if n_classes == 2 else scores
                np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-7)
                np.testing.assert_allclose(model._machine.factors.learned[0], R, rtol=1e-7)


def test_learned_norms_without_an_effect():
    X, y = stream(3, n_classes=3)
    for p, views in ((1, ["v0", "v1"]), (4, ["v0"])):
        one = learned(p=p).partial_fit(X[views], y)
        other = cs.OrthogonalPerceptron(p=p).partial_fit(X[views], y)
        assert one.n_mistakes_ == other.n_mistakes_
        np.testing.assert_allclose(one.decision_function(X[views]), other.decision_function(X[views]), atol=1e-9)
        assert one.certificate(X[views], y).bound == pytest.approx(other.certificate(X[views], y).bound)


def test_large_prior_norms_are_the_perceptron_on_the_sum():
    X, y = stream(4)
    one = cs.OrthogonalPerceptron(p=3, prior_norms=1e9).partial_fit(X, y)
    other = cs.OrthogonalPerceptron(p=1).partial_fit(X, y)
    assert one.n_mistakes_ == other.n_mistakes_


MODELS = [
    learned(), learned(p=5, margin=0.2), learned(RBF(0.3), p=3), learned(variant="passive-aggressive", C=0.5),
    learned(average=True, p=2.5), learned(RBF(0.3), average=True), learned(average="voted"),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_state_does_not_depend_on_chunks(model):
    X, y = late_stream(1)
    once = in_chunks(model, X, y, len(y))
    for step in (7, 50):
        same_state(once, in_chunks(model, X, y, step), X)
    same_state(once, one_by_one(model, X, y, (0, 1)), X)
    for seed in range(5):  # ties: rows that come again and again
        X, y = binary_patterns(seed)
        X = Views(a=X["v0"][:, :2] + 0.1, b=X["v0"][:, 2:])
        once, parts = (in_chunks(model, X, y, size, range(4)) for size in (len(y), 7))
        same_state(once, parts, X)
        np.testing.assert_allclose(*(m._machine.factors.learned for m in (once, parts)))


def test_the_third_class_finds_the_state_of_announced_classes():
    X, y = stream(5, n_classes=3, widths=(3, 3))
    y[:30] %= 2
    for model in (learned(p=3), learned(p=3, variant="passive-aggressive")):
        late, known = (clone(model).partial_fit(X[:30], y[:30]) for _ in range(2))
        R, T = late._machine.factors.learned[0], late._machine.factors.norms.sum()
        late._add_class(np.arange(3))
        scale = late._machine.factors.norms.sum() / T
        assert late._machine.factors.learned[0] == pytest.approx(R * scale)
        leads = late.decision_function(X)[:, 1] - late.decision_function(X)[:, 0]
        np.testing.assert_array_equal(np.sign(leads), np.sign(known.decision_function(X)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", [{"a": 0.5, "b": 50.0}, "learned"], ids=str)
def test_votes_are_those_of_single_hypotheses_where_a_view_comes_late(prior, seed):
    X, y = late_stream(seed, n=60)
    y = (y + (X["a"][:, 1] > 0.5)) % 3
    model = cs.OrthogonalPerceptron(p=3, prior_norms=prior)
    voted = clone(model).set_params(average="voted").partial_fit(X, y, classes=range(3))
    shown = X[np.flatnonzero(X.present("a") & X.present("b"))]
    votes, single = np.zeros((len(shown), 3)), clone(model)
    for i in range(60):
        part = X[[i]][[name for name in X.names if X.present(name)[i]]]
        single.partial_fit(part, y[[i]], classes=range(3) if i == 0 else None)
        if i == 29:
            single._add_views(X[[30]])  # the late view changes factors just before its first sample
        scores = single._machine.scores(shown[list(single._machine.factors.names)])
        if single.n_updates_:
            votes[np.arange(len(shown)), scores.argmax(axis=1)] += 1
    np.testing.assert_allclose(voted.decision_function(shown), votes / votes.sum(axis=1, keepdims=True), atol=1e-9)


# -- bounds
@settings(max_examples=100, deadline=None)
@given(
    streams(n_classes=(2, 3)), generators, numbers(1, 8), among("learned", 0.1, 3.0, {"v0": 20.0}), flags,
    among({"variant": "passive-aggressive", "C": 0.5}, *({"margin": k / 5, "eta0": 0.7} for k in range(5))),
)  # fmt: skip
def test_bounds_hold_for_prior_norms(drawn, rng, p, prior, adversary, more):
    X, y, n_classes = drawn
    model = cs.OrthogonalPerceptron(p=p, prior_norms=prior, **more)
    if adversary:  # the label that the model does not expect
        for i in range(len(y)):
            part = X[[i]]
            if i and (X.mask is None or X.mask[i, [X.names.index(name) for name in model._used_views]].any()):
                y[i] = (int(model.predict(part)[0]) + 1 + rng.integers(n_classes - 1)) % n_classes
            model.partial_fit(part, y[[i]], classes=range(n_classes) if i == 0 else None)
    else:
        model.partial_fit(X, y, classes=range(n_classes))
    proof = model.certificate(X, y)
    assert model.n_mistakes_ <= proof.bound + 1e-9
    updates = model.n_updates_ if "C" not in more else model.n_mistakes_
    for _ in range(5):
        shape = (n_classes,) if n_classes > 2 else ()
        U = {v: rng.normal(size=(X[v].shape[1], *shape)) * rng.uniform(0.01, 2) for v in X.names}
        assert updates <= model.certificate(X, y, comparator=U).bound + 1e-9


def test_learned_norms_have_the_bound_of_no_prior_norms_and_given_ones_add_their_length():
    X, y = stream(7, n=60)
    U = {"v0": np.ones(X["v0"].shape[1]), "v1": -np.ones(X["v1"].shape[1])}
    plain, own, given_ = (
        cs.OrthogonalPerceptron(p=3, prior_norms=prior).partial_fit(X, y).certificate(X, y, comparator=U)
        for prior in (None, "learned", {"v0": 2.0, "v1": 1.0})
    )
    assert own.bound == plain.bound
    assert given_.bound == pytest.approx(plain.bound + plain.norm * (2.0**3 + 1) ** (1 / 6))
    assert perceptron_bound(1.0, 1.0, 2.0, start=3.0, eta0=0.5) == perceptron_bound(1.0, 1.0, 2.0, eta0=0.5) + 12


def test_no_bound_where_the_passive_aggressive_vectors_were_halved():
    X, y = stream(5, n_classes=3)
    model = cs.OrthogonalPerceptron(p=3, prior_norms=1.0, variant="passive-aggressive").partial_fit(X, y)
    assert model.certificate(X, y).bound is None
    assert learned(p=3, variant="passive-aggressive").partial_fit(X, y).certificate(X, y).bound is not None


def test_learned_norms_are_saved(tmp_path):
    X, y = stream(6, n=80, n_classes=3)
    for model in (learned(p=3), learned(RBF(0.2), average=True)):
        whole = clone(model).partial_fit(X, y, classes=range(3))
        cs.save(clone(model).partial_fit(X[:40], y[:40], classes=range(3)), tmp_path / "half.model")
        same_state(whole, cs.load(tmp_path / "half.model").partial_fit(X[40:], y[40:]), X)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match=r"'prior_norms' parameter .* must be"):
        cs.OrthogonalPerceptron(prior_norms="auto").fit([[1.0], [2.0]], [0, 1])
