"""Online learners against naive twins, their papers' special cases, and independent programs."""

import pickle
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Perceptron

import consilience as cs
import reference
from consilience import Views
from consilience.kernels import RBF, ChiSquared, Linear
from consilience.solvers.certificates import novikoff_bound, perceptron_bound, risk_bound


def stream(seed, n=70, widths=(4, 4), n_classes=2, whole=False, missing=False):
    """A noisy stream of views; of small integers, so that scores meet zero, or of real numbers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    views = {}
    for k, width in enumerate(widths):
        centers = rng.normal(size=(n_classes, width))
        A = centers[y] + rng.normal(size=(n, width))
        A = np.round(A) if whole else A
        if missing and k:
            A[rng.random(n) < 0.3] = np.nan
        views[f"v{k}"] = A
    return Views(views), y


def concatenated(X, bias=False):
    rows = np.hstack([np.nan_to_num(X[name]) for name in X.names])
    return np.hstack([np.ones((len(rows), 1)), rows]) if bias else rows


def matrices(X):
    width = max(X[name].shape[1] for name in X.names)
    out = np.zeros((len(X), width, len(X.names)))
    for k, name in enumerate(X.names):
        out[:, : X[name].shape[1], k] = np.nan_to_num(X[name])
    return out


def block_matrices(X):
    """The orthogonal form: each view in rows of its own."""
    widths = [X[name].shape[1] for name in X.names]
    out, at = np.zeros((len(X), sum(widths), len(widths))), 0
    for k, name in enumerate(X.names):
        out[:, at : at + widths[k], k] = np.nan_to_num(X[name])
        at += widths[k]
    return out


def features(K):
    """Vectors with this Gram matrix."""
    values, Q = np.linalg.eigh(K)
    return Q * np.sqrt(np.maximum(values, 0))


def kernel_blocks(X, kernel):
    """The orthogonal form of kernels: the features of each view in rows of their own."""
    parts = Views({name: features(kernel(X[name])) for name in X.names})
    return block_matrices(parts)


def identity(v):
    return v


def fixed(step):
    return lambda margin, size: step


def aggressive(C=np.inf, ridge=0.0, curvature=1.0):
    return lambda m, size: 0.0 if size == 0 else min(C, max(0, 1 - m) / (curvature * size + ridge))


def as_sparse(X):
    return Views({name: sp.csr_array(np.nan_to_num(X[name])) for name in X.names}, mask=X.mask)


def two_signs(scores):
    return scores[:, 0] if scores.shape[1] == 1 else scores


# each case: the learner, and its twin's rows, link, threshold and step
TWINS = {
    "perceptron": (cs.OnlinePerceptron(), lambda X: concatenated(X, bias=True), identity, 0.0, fixed(1.0)),
    "margin and step": (
        cs.OnlinePerceptron(margin=0.7, eta0=0.25, fit_intercept=False), concatenated, identity, 0.7, fixed(0.25),
    ),
    "3-norm": (cs.OnlinePerceptron(3, fit_intercept=False), concatenated, reference.p_norm_link(3), 0.0, fixed(1.0)),
    "5.5-norm": (
        cs.OnlinePerceptron(5.5, margin=0.1), lambda X: concatenated(X, True), reference.p_norm_link(5.5), 0.1,
        fixed(1.0),
    ),
    "PA": (cs.PassiveAggressive(variant="PA"), concatenated, identity, 1.0, aggressive()),
    "PA-I": (cs.PassiveAggressive(C=0.1), concatenated, identity, 1.0, aggressive(C=0.1)),
    "PA-II": (
        cs.PassiveAggressive(variant="PA-II", C=0.5, fit_intercept=True), lambda X: concatenated(X, True), identity, 1.0,
        aggressive(ridge=1.0),
    ),
    "kernel perceptron": (
        cs.KernelPerceptron(RBF(0.2)), lambda X: features(sum(grams(X, RBF(0.2)))), identity, 0.0, fixed(1.0),
    ),
    "kernel PA-I": (
        cs.PassiveAggressive(RBF(0.2), C=0.3), lambda X: features(sum(grams(X, RBF(0.2)))), identity, 1.0,
        aggressive(0.3),
    ),
    "matrix 2": (cs.MatrixPerceptron(p=2), matrices, reference.matrix_link(2), 0.0, fixed(1.0)),
    "matrix 1.5": (cs.MatrixPerceptron(p=1.5, margin=0.3), matrices, reference.matrix_link(1.5), 0.3, fixed(1.0)),
    "matrix 7": (cs.MatrixPerceptron(p=7, eta0=0.5), matrices, reference.matrix_link(7), 0.0, fixed(0.5)),
    "orthogonal 2": (cs.OrthogonalPerceptron(p=2), block_matrices, reference.matrix_link(2), 0.0, fixed(1.0)),
    "orthogonal 1.3": (
        cs.OrthogonalPerceptron(p=1.3, margin=0.2), block_matrices, reference.matrix_link(1.3), 0.2, fixed(1.0),
    ),
    "orthogonal, prior norms": (
        cs.OrthogonalPerceptron(p=3, prior_norms={"v0": 5.0, "v1": 0.5}), block_matrices,
        reference.matrix_link(3, [5.0, 0.5]), 0.0, fixed(1.0),
    ),
    "orthogonal, kernels": (
        cs.OrthogonalPerceptron(RBF(0.2), p=2.5), lambda X: kernel_blocks(X, RBF(0.2)), reference.matrix_link(2.5), 0.0,
        fixed(1.0),
    ),
}  # fmt: skip


def grams(X, kernel):
    found = []
    for name in X.names:
        there = X.present(name)
        K = np.zeros((len(X), len(X)))
        K[np.ix_(there, there)] = kernel(X[name][there])
        found.append(K)
    return found


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", ["dense", "sparse", "integers", "missing"])
@pytest.mark.parametrize("name", TWINS)
def test_equals_its_twin_decision_by_decision(name, form, n_classes):
    learner, rows, link, threshold, step = TWINS[name]
    for seed in range(3):
        missing = form == "missing" and "kernel" not in name.replace("kernel perceptron", "")
        X, y = stream(seed, n_classes=n_classes, whole=form == "integers", missing=missing)
        R = rows(X)
        _, wrong, hypotheses = reference.online(R, y, n_classes, link, threshold, step)
        given_X = as_sparse(X) if form == "sparse" else X
        model = clone(learner)
        decided = [model.n_mistakes_ for model in [clone(learner).partial_fit(given_X, y, classes=range(n_classes))]]
        assert decided == [wrong.sum()]
        model = clone(learner)
        made = []
        for i in range(len(y)):  # one at a time: every decision
            before = model.n_mistakes_ if i else 0
            model.partial_fit(given_X[i : i + 1], y[i : i + 1], classes=range(n_classes))
            made.append(model.n_mistakes_ - before)
        np.testing.assert_array_equal(made, wrong)
        last = np.array([[np.sum(w * x) for w in hypotheses[-1]] for x in R])
        np.testing.assert_allclose(model.decision_function(given_X), two_signs(last), atol=1e-7)
        mean = np.mean(hypotheses[:-1], axis=0)
        averaged = clone(learner).set_params(average=True).partial_fit(given_X, y, classes=range(n_classes))
        expected = np.array([[np.sum(w * x) for w in mean] for x in R])
        np.testing.assert_allclose(averaged.decision_function(given_X), two_signs(expected), atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [n for n in TWINS if "PA" not in n])
def test_votes_are_those_of_all_hypotheses(name, n_classes):
    learner, rows, link, threshold, step = TWINS[name]
    X, y = stream(5, n=40, n_classes=n_classes)
    R = rows(X)
    _, _, hypotheses = reference.online(R, y, n_classes, link, threshold, step)
    stepped = [not np.array_equal(a, b) for a, b in pairwise(hypotheses)]
    expected = reference.votes(hypotheses, stepped, R)
    model = clone(learner).set_params(average="voted").partial_fit(X, y, classes=range(n_classes))
    lives = len(hypotheses) - 1 - stepped.index(True)
    np.testing.assert_allclose(model.decision_function(X) * lives, two_signs(expected), atol=1e-9)


# -- special cases of the papers
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True])
def test_matrix_perceptron_on_orthogonal_matrices_is_the_orthogonal_one(n_classes, average):
    for seed in range(5):
        X, y = stream(seed, widths=(3, 5, 2), n_classes=n_classes)
        B = block_matrices(X)
        blocks = Views({name: B[:, :, k] for k, name in enumerate(X.names)})
        for p in (1, 1.7, 4):
            one = cs.MatrixPerceptron(p=p, average=average).partial_fit(blocks, y)
            other = cs.OrthogonalPerceptron(p=p, average=average).partial_fit(X, y)
            assert one.n_mistakes_ == other.n_mistakes_
            np.testing.assert_allclose(one.decision_function(blocks), other.decision_function(X), atol=1e-8)


def test_with_p_of_one_views_are_summed():
    X, y = stream(0, n=200, widths=(3, 3))
    summed = cs.KernelPerceptron(Linear()).partial_fit(X, y)
    plain = cs.OnlinePerceptron(fit_intercept=False).partial_fit(X, y)
    for model in (cs.OrthogonalPerceptron(p=1), cs.MatrixPerceptron(p=1), cs.OrthogonalPerceptron(1.0 * Linear(), p=1)):
        model.partial_fit(X, y)
        assert model.n_mistakes_ == plain.n_mistakes_ == summed.n_mistakes_
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("p", [1, 1.5, 2, 9])
def test_one_view_is_the_perceptron_for_every_p(p):
    X, y = stream(3, n=150, widths=(5,), n_classes=3)
    plain = cs.OnlinePerceptron(fit_intercept=False).partial_fit(X, y)
    for model in (cs.OrthogonalPerceptron(p=p), cs.MatrixPerceptron(p=p), cs.OrthogonalPerceptron(1.0 * Linear(), p=p)):
        model.partial_fit(X, y)
        assert model.n_mistakes_ == plain.n_mistakes_
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True, "voted"])
def test_dual_is_primal(average, n_classes):
    """Linear kernels by weights and by samples; scaled by 1, they are not recognized as linear."""
    X, y = stream(1, n=200, n_classes=n_classes, missing=True)
    dual = 1.0 * Linear()
    pairs = [
        (cs.OnlinePerceptron(fit_intercept=False, average=average), cs.KernelPerceptron(dual, average=average)),
        (cs.PassiveAggressive(average=average), cs.PassiveAggressive(dual, average=average)),
        (cs.OrthogonalPerceptron(p=3, average=average), cs.OrthogonalPerceptron(dual, p=3, average=average)),
        (cs.MatrixPerceptron(p=3, average=average), cs.MatrixPerceptron(dual, p=3, average=average)),
    ]
    for one, other in pairs:
        one.partial_fit(X, y), other.partial_fit(X, y)
        assert one.n_mistakes_ == other.n_mistakes_
        assert one.n_updates_ == other.n_updates_
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("plus", "squared"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.6])
def test_projectron_equals_its_twin(threshold, plus, squared, n_classes):
    for seed in range(3):
        X, y = stream(seed, n=60, widths=(3,), n_classes=n_classes)
        kernel = RBF(0.3)
        scores, S, alpha = reference.projectron(kernel(X["v0"]), y, n_classes, threshold, plus, squared)
        model = cs.Projectron(kernel, threshold=threshold, plus=plus, squared=squared)
        model.partial_fit(X, y, classes=range(n_classes))
        np.testing.assert_array_equal(model.support_, S)
        np.testing.assert_allclose(model.dual_coef_, alpha[0, S] if n_classes == 2 else alpha[:, S], atol=1e-6)
        made = cs.Projectron(kernel, threshold=threshold, plus=plus, squared=squared)
        made._begin(np.arange(n_classes), True)
        before, _ = made._learn(made._ready(X), y, np.arange(len(y)))
        np.testing.assert_allclose(before, scores, atol=1e-6)


def test_projectron_without_a_threshold_decides_as_the_kernel_perceptron():
    for seed in range(5):
        X, y = stream(seed, n=120, n_classes=2 + seed % 2)
        plain = cs.KernelPerceptron(RBF(0.3)).partial_fit(X, y)
        for plus in (False, True):  # δ/0 is above every loss, so margins are not learned either
            model = cs.Projectron(RBF(0.3), threshold=0.0, plus=plus).partial_fit(X, y)
            assert model.n_mistakes_ == plain.n_mistakes_
            np.testing.assert_array_equal(model.support_, plain.support_)
            np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_projectron_takes_repeated_samples():
    X, y = stream(0, n=30, widths=(2,))
    twice = Views.concat([X] * 4)
    model = cs.Projectron(RBF(0.3), threshold=0.0).partial_fit(twice, np.tile(y, 4))
    assert len(model.support_) <= 30
    assert np.isfinite(model.decision_function(X)).all()
    small = cs.Projectron(Linear(), threshold=0.0).partial_fit(twice, np.tile(y, 4))
    assert len(small.support_) <= 2  # the plane has two dimensions


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cues_equal_their_layers_one_after_the_other(n_classes):
    X, y = stream(2, n=60, n_classes=n_classes)
    margins = [reference.projectron(RBF(0.3)(X[v]), y, n_classes, 0.2, True)[0] for v in X.names]
    _, wrong, hypotheses = reference.online(np.hstack(margins), y, n_classes, identity, 1.0, aggressive(0.5))
    model = cs.MultiCueClassifier(RBF(0.3), threshold=0.2, C=0.5).partial_fit(X, y, classes=range(n_classes))
    assert model.n_mistakes_ == wrong.sum()
    top = np.concatenate([model._top.V[:, 0].T])
    np.testing.assert_allclose(top, hypotheses[-1], atol=1e-6)


def test_any_online_learner_is_a_cue():
    X, y = stream(4, n=150, n_classes=3)
    learners = {"v0": cs.OrthogonalPerceptron(RBF(0.2)), "v1": cs.VectorPerceptron(RBF(0.2))}
    model = cs.MultiCueClassifier(learners=learners).fit(X, y)
    assert {name: type(learner) for name, learner in model.learners_.items()} == {
        name: type(learner) for name, learner in learners.items()
    }
    assert model.score(X, y) > 0.6
    with pytest.raises(TypeError, match="are online learners, such as Projectron or OnlinePerceptron; got Perceptron"):
        cs.MultiCueClassifier(learner=Perceptron()).fit(X, y)


def test_an_output_kernel_ranks_classes_together():
    """With κ = I it is the plain one; with features φ(x) ⊗ ψ(c) made explicit a perceptron on differences."""
    X, y = stream(7, n=150, widths=(3,), n_classes=3)
    plain = cs.KernelPerceptron(Linear()).partial_fit(X, y, classes=range(3))
    same = cs.KernelPerceptron(Linear(), output_kernel=np.eye(3)).partial_fit(X, y, classes=range(3))
    np.testing.assert_allclose(same.decision_function(X), plain.decision_function(X))
    psi = np.array([[1.0, 0.2], [0.0, 1.0], [-1.0, 0.3]])
    W, mistakes = np.zeros((3, 2)), 0
    for x, c in zip(X["v0"], y, strict=True):
        s = psi @ (x @ W)
        r = max((t for t in range(3) if t != c), key=lambda t: s[t])
        if s[c] - s[r] <= 1e-12:
            mistakes += 1
            W += np.outer(x, psi[c] - psi[r])
    model = cs.KernelPerceptron(Linear(), output_kernel=psi @ psi.T).partial_fit(X, y, classes=range(3))
    assert model.n_mistakes_ == mistakes
    np.testing.assert_allclose(model.decision_function(X), X["v0"] @ W @ psi.T, atol=1e-9)


def test_two_classes_are_those_of_scikit_learn():
    X, y = stream(11, n=400, widths=(6,))
    ours = cs.OnlinePerceptron(shuffle=False, max_iter=1, fit_intercept=False).fit(X, y)
    theirs = Perceptron(max_iter=1, tol=None, shuffle=False, fit_intercept=False).fit(X["v0"], y)
    np.testing.assert_allclose(ours.coef_["v0"], theirs.coef_[0])


# -- any chunks, late classes, late views
ALL = {
    **{name: case[0] for name, case in TWINS.items()},
    "projectron": cs.Projectron(RBF(0.2), threshold=0.3),
    "cues": cs.MultiCueClassifier(RBF(0.2), threshold=0.3),
    "cues of perceptrons": cs.MultiCueClassifier(learner=cs.OnlinePerceptron()),
    "budget": cs.KernelPerceptron(RBF(0.2), budget=15),
    "budget of PA": cs.PassiveAggressive(RBF(0.2), budget=15),
    "matrix by kernels": cs.MatrixPerceptron(RBF(0.2)),
    "aggressive": cs.OrthogonalPerceptron(aggressive=True, C=0.1),
}


def same_state(one, other, X):
    assert (one.n_mistakes_, one.n_updates_, one.n_samples_seen_) == (
        other.n_mistakes_,
        other.n_updates_,
        other.n_samples_seen_,
    )
    np.testing.assert_array_equal(one.error_curve_, other.error_curve_)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("average", [False, True, "voted"])
@pytest.mark.parametrize("name", ALL)
def test_any_chunking_gives_the_same_state(name, average):
    learner = clone(ALL[name])
    no_history = name in ("projectron", "cues", "cues of perceptrons") or "budget" in name
    learner.set_params(average=True if average == "voted" and no_history else average)
    X, y = stream(9, n=90, n_classes=4, missing="kernel" not in name)
    labels = np.array(["d", "b", "a", "c"])[y]  # classes appear in an order that is not theirs
    order = np.argsort(y > 1, kind="stable")  # and two of them late
    X, labels = X[order], labels[order]
    once = clone(learner).partial_fit(X, labels)
    assert once.classes_.tolist() == ["a", "b", "c", "d"]
    for sizes in ([1] * 90, [7] * 13, [50, 1, 39]):
        parts, start = clone(learner), 0
        for size in sizes:
            if start < 90:
                parts.partial_fit(X[start : start + size], labels[start : start + size])
            start += size
        same_state(once, parts, X)


@pytest.mark.parametrize("name", ALL)
def test_views_may_come_late_and_go(name):
    learner = clone(ALL[name])
    X, y = stream(9, n=60, n_classes=3)
    mask = np.ones((60, 2), dtype=bool)
    mask[:25, 1] = False
    mask[45:, 0] = False
    holes = Views(X, mask=mask)
    once = clone(learner).partial_fit(holes, y, classes=range(3))
    parts = clone(learner).partial_fit({"v0": X["v0"][:25]}, y[:25], classes=range(3))
    parts.partial_fit(X[25:45], y[25:45])
    parts.partial_fit({"v1": X["v1"][45:]}, y[45:])
    same_state(once, parts, X)


@pytest.mark.parametrize("name", ALL)
def test_one_sample_at_a_time_is_the_same(name):
    X, y = stream(6, n=40, n_classes=3, missing="kernel" not in name)
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


# -- fit
@pytest.mark.parametrize("name", ALL)
def test_fit_stops_where_samples_are_separated_and_is_whole(name):
    X, y = stream(0, n=40, widths=(4, 4))
    far = Views({v: X[v] + 12 * (2 * y - 1)[:, None] for v in X.names})
    model = clone(ALL[name]).set_params(max_iter=200, random_state=0)
    if "budget" in name:
        model.set_params(budget=40)
    model.fit(far, y)
    if "norm" not in name and name not in ("PA-II", "cues", "cues of perceptrons", "budget of PA", "aggressive"):
        assert model.separated_
        assert model.n_samples_seen_ < 200 * 40
    assert model.score(far, y) == 1
    before = model.decision_function(far)
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit({v: np.where(X[v] > 1, np.inf, X[v]) for v in X.names}, y)
    np.testing.assert_array_equal(model.decision_function(far), before)
    again = clone(model).fit(far, y)
    np.testing.assert_array_equal(again.decision_function(far), before)


def test_samples_of_many_epochs_are_kept_once():
    X, y = stream(1, n=60)
    model = cs.KernelPerceptron(RBF(0.01), max_iter=20, random_state=0, average=True).fit(X, y)
    assert len(np.unique(model.support_)) == len(model.support_) <= 60
    assert model.n_updates_ > len(model.support_)
    K = sum(grams(X, RBF(0.01)))
    last = clone(model).set_params(average=False).fit(X, y)
    np.testing.assert_allclose(last.decision_function(X), K[:, last.support_] @ last.dual_coef_, atol=1e-9)


# -- budget
def test_a_budget_forgets_the_oldest():
    X, y = stream(3, n=200)
    K, budget = sum(grams(X, RBF(0.2))), 12
    kept: list[int] = []
    for i, c in enumerate(2 * y - 1):
        if c * sum((2 * y[s] - 1) * K[s, i] for s in kept) <= 0:
            kept = [*kept, i][-budget:]
    model = cs.KernelPerceptron(RBF(0.2), budget=budget).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(model.support_, kept)
    assert len(model._machine.support) <= 2 * budget + 256
    hard = cs.Projectron(RBF(0.2), threshold=0.01, budget=budget).partial_fit(X, y)
    assert len(hard.support_) == budget


# -- bounds
def check_bound(learner, X, y, **given):
    model = clone(learner).partial_fit(X, y, classes=np.unique(y))
    proof = model.certificate(X, y, **given)
    assert proof.mistakes == model.n_mistakes_ <= proof.bound + 1e-9
    return proof


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.floats(1, 6), n_classes=st.integers(2, 4), missing=st.booleans())
def test_bounds_are_never_violated_by_the_best_comparators(seed, p, n_classes, missing):
    X, y = stream(seed, n=40, n_classes=n_classes, missing=missing)
    y[:n_classes] = np.arange(n_classes)
    for learner in (
        cs.OnlinePerceptron(max(2, p)), cs.OrthogonalPerceptron(p=p), cs.MatrixPerceptron(p=p),
        cs.OrthogonalPerceptron(p=p, aggressive=True), cs.PassiveAggressive(variant="PA"),
        cs.PassiveAggressive(variant="PA-II", C=0.1), cs.OrthogonalPerceptron(p=p, margin=0.2, eta0=0.5),
    ):  # fmt: skip
        check_bound(learner, X, y)


@settings(max_examples=1500, deadline=None)
@given(seed=st.integers(0, 10**9), p=st.floats(1, 8), scale=st.floats(0.01, 3), spread=st.floats(0.1, 6))
def test_bounds_are_never_violated_by_comparators_at_random(seed, p, scale, spread):
    rng = np.random.default_rng(seed)
    n, widths = 25, (3, 3)
    truth = {f"v{k}": rng.normal(size=w) for k, w in enumerate(widths)}
    views = {v: rng.normal(size=(n, 3)) for v in truth}
    s = sum(views[v] @ truth[v] for v in truth)
    y = (s + rng.normal(size=n) * 0.1 > 0).astype(int)
    for v in truth:  # a margin along the truth
        views[v] = views[v] + spread * np.sign(s)[:, None] * truth[v] / np.sum(truth[v] ** 2)
    comparator = {v: scale * truth[v] for v in truth}
    y[:2] = [0, 1]
    for learner in (cs.OnlinePerceptron(max(2, p)), cs.OrthogonalPerceptron(p=p), cs.MatrixPerceptron(p=p)):
        check_bound(learner, Views(views), y, comparator=comparator)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.floats(1, 5), n_classes=st.integers(2, 3))
def test_bounds_by_kernels_are_never_violated(seed, p, n_classes):
    X, y = stream(seed, n=35, n_classes=n_classes)
    y[:n_classes] = np.arange(n_classes)
    for learner in (
        cs.KernelPerceptron(RBF(0.2)),
        cs.OrthogonalPerceptron(RBF(0.2), p=p),
        cs.MatrixPerceptron(RBF(0.2), p=p),
    ):
        check_bound(learner, X, y)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), gap=st.floats(0.05, 2))
def test_novikoff_holds_however_often_samples_are_passed(seed, gap):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=4)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(30, 4))
    side = np.sign(X @ u)
    X += gap * side[:, None] * u
    y = (side > 0).astype(int)
    if len(np.unique(y)) < 2:
        return
    model = cs.OnlinePerceptron(fit_intercept=False, max_iter=500, random_state=seed).fit(X, y)
    margin = float((side * (X @ u)).min())
    assert model.n_updates_ <= novikoff_bound(float(np.linalg.norm(X, axis=1).max()), margin) + 1e-9


def test_primal_and_dual_find_the_same_norms():
    X, y = stream(2, n=50)
    U = np.random.default_rng(0).normal(size=50)
    for p in (1, 2.5):
        for kind in (cs.OrthogonalPerceptron, cs.MatrixPerceptron):
            proofs = [check_bound(kind(k, p=p), X, y, comparator=U) for k in ("linear", 1.0 * Linear())]
            for field in ("bound", "loss", "norm", "size"):
                assert getattr(proofs[0], field) == pytest.approx(getattr(proofs[1], field), rel=1e-6)


def test_certificates_speak():
    X, y = stream(2, n=50)
    model = cs.OrthogonalPerceptron().partial_fit(X, y)
    assert model.certificate().bound == 50
    assert "since there were no more samples" in str(model.certificate())
    assert str(model.certificate(X, y)).startswith(f"{model.n_mistakes_} mistakes in 50 samples, at most ")
    assert model.certificate().risk == risk_bound(model.n_mistakes_ / 50, 50)
    with pytest.raises(ValueError, match="learned 50 samples, and 20 are given"):
        model.certificate(X[:20], y[:20])
    with pytest.raises(ValueError, match="`comparator` names the view 'w'; the views are 'v0', 'v1'"):
        model.certificate(X, y, comparator={"w": np.ones(4)})
    assert cs.KernelPerceptron(budget=5).partial_fit(X, y).certificate().bound is None
    assert perceptron_bound(4.0, 1.0, 1.0, margin=0.5, eta0=0.25) == 4 + 5 + np.sqrt(20)


# -- bad input
ERRORS = {
    "`p` must be a number of at least 2; got 1.5.": lambda X, y: cs.OnlinePerceptron(1.5).fit(X, y),
    "`p` must be a number of at least 1; got 0.5.": lambda X, y: cs.OrthogonalPerceptron(p=0.5).fit(X, y),
    "`average` must be False, True or 'voted'; got 'mean'.": lambda X, y: cs.OnlinePerceptron(average="mean").fit(X, y),
    "`step` must be a number above 0; got 0.": lambda X, y: cs.OnlinePerceptron(eta0=0).fit(X, y),
    "`epochs` must be a whole number of at least 1; got 0.": lambda X, y: cs.OnlinePerceptron(max_iter=0).fit(X, y),
    "`variant` must be 'PA', 'PA-I' or 'PA-II'; got 'PA-3'.": lambda X, y: cs.PassiveAggressive(variant="PA-3").fit(
        X, y
    ),
    "`budget` must be a whole number of at least 1, or None; got 0.": lambda X, y: cs.KernelPerceptron(budget=0).fit(
        X, y
    ),
    "average='voted' keeps every update, which `budget` forbids.": (
        lambda X, y: cs.KernelPerceptron(budget=9, average="voted").fit(X, y)
    ),
    "has 2 columns, the widest view so far 4: the matrix perceptron needs views of one width. Use Orthogonal": (
        lambda X, y: cs.MatrixPerceptron().fit({"a": X["v0"], "b": X["v1"][:, :2]}, y)
    ),
    "View 'v0' holds objects; OnlinePerceptron is linear here and takes numbers.": (
        lambda X, y: cs.OnlinePerceptron().fit({"v0": ["a"] * len(y)}, y)
    ),
    "View 'v0': RBF(gamma='median') takes a parameter from the data, which a stream does not have at once.": (
        lambda X, y: cs.KernelPerceptron(RBF("median")).partial_fit(X, y)
    ),
    "`output_kernel` must be a positive semi-definite matrix between the 2 classes": (
        lambda X, y: cs.KernelPerceptron(output_kernel=np.eye(3)).fit(X, y)
    ),
    "`output_kernel` is between all classes: announce them": (
        lambda X, y: cs.KernelPerceptron(output_kernel=np.eye(2)).partial_fit(X, y)
    ),
    "The labels of this chunk are strings, those before were numbers: np.str_('a') beside": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y).partial_fit(X[:1], ["a"])
    ),
    "`classes` are '0', '9' now, but '0', '1' at the first call.": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y, classes=[0, 1]).partial_fit(X, y, classes=[0, 9])
    ),
    "The class 1 was not announced; the classes are '0', '5'.": (
        lambda X, y: cs.OnlinePerceptron().partial_fit(X, y, classes=[0, 5])
    ),
    "`prior_norms` must be a number of at least 0; got -1.": (
        lambda X, y: cs.OrthogonalPerceptron(prior_norms={"v0": -1}).fit(X, y)
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_bad_input_gets_a_sentence(message):
    X, y = stream(0, n=20)
    y[:2] = [0, 1]
    with pytest.raises((ValueError, TypeError)) as caught:
        ERRORS[message](X, y)
    assert message in str(caught.value)


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


@pytest.mark.parametrize("name", ALL)
def test_one_class_one_sample_and_no_column_that_speaks(name):
    X, y = stream(0, n=12)
    alone = clone(ALL[name]).partial_fit(X[:1], ["only"])
    assert alone.predict(X).tolist() == ["only"] * 12
    zeros = Views({v: np.zeros((12, 4)) for v in X.names})
    model = clone(ALL[name]).partial_fit(zeros, y, classes=[0, 1])
    assert np.isfinite(model.decision_function(X)).all()


# -- Gram matrices and objects
def test_precomputed_views_are_looked_up():
    X, y = stream(4, n=120)
    K = RBF(0.2)(X["v0"])
    plain = cs.KernelPerceptron(RBF(0.2), shuffle=False, average=True).fit(X[["v0"]][:80], y[:80])
    for kind in (cs.KernelPerceptron, cs.OrthogonalPerceptron, cs.PassiveAggressive, cs.Projectron):
        given_rows = Views({"v0": K}, precomputed=True)
        vectors = kind(RBF(0.2), shuffle=False).fit(X[["v0"]][:80], y[:80])
        rows = kind("precomputed", shuffle=False).fit(given_rows[:80], y[:80])
        square = kind("precomputed", shuffle=False).fit(K[:80, :80], y[:80])
        expected = vectors.decision_function(X[["v0"]][80:])
        np.testing.assert_allclose(rows.decision_function(given_rows[80:]), expected, atol=1e-7)
        np.testing.assert_allclose(square.decision_function(K[80:, :80]), expected, atol=1e-7)
    stream_of_rows = cs.KernelPerceptron("precomputed", average=True)
    for start in range(0, 80, 9):
        stream_of_rows.partial_fit(
            given_rows[start : min(start + 9, 80)], y[start : min(start + 9, 80)], classes=[0, 1]
        )
    once = cs.KernelPerceptron(RBF(0.2), average=True).partial_fit(X[["v0"]][:80], y[:80], classes=[0, 1])
    np.testing.assert_allclose(
        stream_of_rows.decision_function(given_rows[80:]), once.decision_function(X[["v0"]][80:]), atol=1e-9
    )
    assert plain.n_samples_seen_ >= 80
    vector = cs.VectorPerceptron("precomputed", shuffle=False).fit(K[:80, :80], y[:80])
    same = cs.VectorPerceptron(RBF(0.2), shuffle=False).fit(X["v0"][:80], y[:80])
    np.testing.assert_allclose(vector.decision_function(K[80:, :80]), same.decision_function(X["v0"][80:]), atol=1e-9)


def test_aggressive_with_p_of_one_is_passive_aggressive():
    for n_classes in (2, 3, 4):
        X, y = stream(2, n=150, n_classes=n_classes, missing=True)
        y = np.sort(y)  # classes come one after the other
        order = np.random.default_rng(0).permutation(150)
        X, y = X[np.r_[np.arange(60), order]], y[np.r_[np.arange(60), order]]
        one = cs.OrthogonalPerceptron(p=1, aggressive=True, C=0.3, average=True).partial_fit(X, y)
        other = cs.PassiveAggressive(C=0.3, average=True).partial_fit(X, y)
        assert one.n_mistakes_ == other.n_mistakes_
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-9)


# -- what an adversary tries
def binary_patterns(seed, n=60, n_classes=4):
    """Few rows that come again and again, so that scores and rivals tie."""
    rng = np.random.default_rng(seed)
    patterns = 0.1 * (rng.random((7, 5)) < 0.5)
    return Views(v0=patterns[rng.integers(7, size=n)]), rng.integers(n_classes, size=n)


@pytest.mark.parametrize(
    "learner",
    [
        cs.KernelPerceptron(RBF(3.0)), cs.PassiveAggressive(RBF(3.0), variant="PA"), cs.Projectron(RBF(3.0)),
        cs.MatrixPerceptron(average="voted"), cs.KernelPerceptron(RBF(3.0), average="voted"),
        cs.OnlinePerceptron(4, average="voted"), cs.VectorPerceptron(RBF(3.0)), cs.OrthogonalPerceptron(RBF(3.0), p=3),
    ],
    ids=repr,
)  # fmt: skip
def test_ties_do_not_depend_on_chunks(learner):
    for seed in range(25):
        X, y = binary_patterns(seed)
        once, parts = clone(learner), clone(learner)
        once.partial_fit(X, y, classes=range(4))
        for start in range(0, 60, 7):
            parts.partial_fit(X[start : start + 7], y[start : start + 7], classes=range(4))
        assert (once.n_mistakes_, once.n_updates_) == (parts.n_mistakes_, parts.n_updates_)
        np.testing.assert_allclose(once.decision_function(X), parts.decision_function(X), atol=1e-8)


def test_tied_rivals_are_the_same_in_primal_and_dual():
    for seed in range(40):
        X, y = binary_patterns(seed)
        one = cs.OnlinePerceptron(fit_intercept=False).partial_fit(X, y, classes=range(4))
        other = cs.KernelPerceptron(Linear()).partial_fit(X, y, classes=range(4))
        assert one.n_mistakes_ == other.n_mistakes_
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_budget_over_several_epochs_is_first_in_first_out(shuffle):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A, y = rng.normal(size=(40, 2)), rng.integers(2, size=40)
        y[:2] = [0, 1]
        K, kept, mistakes = RBF(0.5)(A), {}, 0
        order = np.random.RandomState(7)
        for _ in range(3):
            for i in order.permutation(40) if shuffle else range(40):
                if (2 * y[i] - 1) * sum(a * K[s, i] for s, a in kept.items()) <= 0:
                    kept[i] = kept.get(i, 0) + 2 * y[i] - 1
                    mistakes += 1
                    while len(kept) > 8:
                        del kept[next(iter(kept))]
        model = cs.KernelPerceptron(RBF(0.5), budget=8, max_iter=3, shuffle=shuffle, random_state=7).fit(A, y)
        if model.n_samples_seen_ == 120:
            assert model.n_mistakes_ == mistakes
            assert dict(zip(model.support_.tolist(), model.dual_coef_, strict=True)) == kept


@pytest.mark.parametrize("p", [2 * np.log(200), 40.0])
def test_the_mean_of_a_large_norm_is_the_mean(p):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 200))
    y = (A[:, 0] + A[:, 1] > 0).astype(int)
    _, wrong, hypotheses = reference.online(A, y, 2, reference.p_norm_link(p), 0.0, fixed(1.0))
    model = cs.OnlinePerceptron(p, fit_intercept=False, average=True).partial_fit(A, y, classes=[0, 1])
    assert model.n_mistakes_ == wrong.sum()
    expected = np.mean(hypotheses[:-1], axis=0)[0]
    np.testing.assert_allclose(model.coef_["view0"], expected, atol=1e-9 * abs(expected).max())


def test_a_norm_does_not_depend_on_the_scale():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(200, 6))
    y = (A[:, 0] > 0).astype(int)
    found = {
        cs.OnlinePerceptron(50, fit_intercept=False).partial_fit(s * A, y).n_mistakes_ for s in (1.0, 2.0**-30, 2.0**40)
    }
    assert len(found) == 1


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


def test_predictions_follow_when_classes_join():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 3))
    y = np.array(["a", "d"])[(A[:, 0] > 0).astype(int)]
    model = cs.MultiCueClassifier(learner=cs.OnlinePerceptron(), C=1.0).partial_fit({"u": A, "v": A}, y)
    for new in ("b", "c"):
        model.predict({"u": A, "v": A})
        model.partial_fit({"u": A[:5]}, [new] * 5)
        fresh = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(model.predict({"u": A, "v": A}), fresh.predict({"u": A, "v": A}))
    late = cs.MultiCueClassifier(RBF(0.5)).partial_fit({"u": A[:3], "v": A[:3]}, ["a"] * 3)
    late.partial_fit({"u": A[:3]}, ["b"] * 3).partial_fit({"u": A[:3]}, ["c"] * 3)
    assert late.classes_.tolist() == ["a", "b", "c"]


def test_learning_goes_on_after_a_fit_with_unlabeled_samples():
    X, y = stream(0, n=200)
    labels = np.where(np.arange(200) % 10 == 0, y, np.nan)
    known = ~np.isnan(labels)
    Z, z = stream(1, n=200)
    one = cs.KernelPerceptron(RBF(0.5), random_state=0).fit(X, labels).partial_fit(Z, z)
    other = cs.KernelPerceptron(RBF(0.5), random_state=0).fit(X[known], y[known]).partial_fit(Z, z)
    assert one.n_mistakes_ == other.n_mistakes_
    np.testing.assert_allclose(one.decision_function(Z), other.decision_function(Z))


@pytest.mark.parametrize("average", [False, True])
def test_repeated_columns_of_sparse_views(average):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(100, 6)), rng.normal(size=(100, 4))
    y = (A[:, 0] + B[:, 1] > 0).astype(int)
    answers = []
    for form in (np.asarray, sp.csr_array):
        model = cs.MatrixPerceptron(p=3, unequal="repeat", average=average).partial_fit({"a": form(A), "b": form(B)}, y)
        answers.append(model.decision_function({"a": A, "b": B}))
    np.testing.assert_allclose(*answers, atol=1e-9)
    C = np.hstack([B, B[:, :2]])
    same = cs.MatrixPerceptron(p=3, average=average).partial_fit({"a": A, "b": C}, y)
    np.testing.assert_allclose(answers[0], same.decision_function({"a": A, "b": C}), atol=1e-9)


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


@pytest.mark.parametrize("kind", [cs.OnlinePerceptron, cs.KernelPerceptron, cs.OrthogonalPerceptron])
def test_bounds_where_announced_classes_do_not_occur(kind):
    rng = np.random.default_rng(0)
    A = np.hstack([np.ones((150, 1)), rng.normal(size=(150, 3))])
    for values, classes in (([0, 2], [0, 1, 2]), ([0, 1, 3], [0, 1, 2, 3]), ([0], [0, 1])):
        y = np.array(values)[rng.integers(len(values), size=150)]
        model = kind().partial_fit(A, y, classes=classes)
        assert model.certificate(A, y).bound >= model.n_mistakes_


def test_no_risk_is_claimed_after_several_passes():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(60, 20)), rng.integers(2, size=60)
    for learner in (cs.MultiCueClassifier(max_iter=3), cs.OnlinePerceptron(max_iter=3)):
        assert learner.fit(A, y).certificate().risk is None
        assert clone(learner).partial_fit(A, y).certificate().risk is not None
        assert clone(learner).set_params(max_iter=1).fit(A, y).certificate().risk is not None


def test_vector_perceptron_takes_late_views_of_other_kernels():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    y = (A[:, 0] > 0).astype(int)
    model = (
        cs.VectorPerceptron(kernel={"b": RBF(0.5)}).partial_fit({"a": A}, y, classes=[0, 1]).partial_fit({"b": B}, y)
    )
    holes = Views(
        {"a": np.vstack([A, A]), "b": np.vstack([B, B])}, mask=np.repeat([[True, False], [False, True]], 60, axis=0)
    )
    once = cs.VectorPerceptron(kernel={"b": RBF(0.5)}).partial_fit(holes, np.r_[y, y])
    np.testing.assert_allclose(model.decision_function({"b": B}), once.decision_function({"b": B}), atol=1e-9)
    assert abs(model.decision_function({"b": B})).max() > 0
    assert len(model.support_) == len(model.dual_coef_)


def test_projectron_is_stable_at_small_thresholds():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(800, 2)), rng.integers(2, size=800)
    model = cs.Projectron(RBF(0.5), threshold=1e-3, plus=False).partial_fit(A, y, classes=[0, 1])
    S = model.support_
    K = RBF(0.5)(A)
    L = model._machine.L
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K[np.ix_(S, S)], atol=1e-9)
    plain = cs.KernelPerceptron(RBF(0.5)).partial_fit(A, y, classes=[0, 1])
    assert abs(model.n_mistakes_ - plain.n_mistakes_) < 60
    assert abs(model.decision_function(A)).max() < 10 * abs(plain.decision_function(A)).max()


ODD = {
    "is to be a Gram matrix, and a stream needs kernels between samples of all chunks.": (
        lambda A, y: cs.KernelPerceptron("precomputed").partial_fit(A @ A.T, y)
    ),
    "`average` was False when learning began and is True now. Set it back": (
        lambda A, y: cs.OnlinePerceptron().partial_fit(A, y).set_params(average=True).predict(A)
    ),
    "`p` was 2.0 when learning began and is 3 now.": (
        lambda A, y: cs.OrthogonalPerceptron().partial_fit(A, y).set_params(p=3).partial_fit(A, y)
    ),
    "View 'view0' has values up to 1e+200; above 1.34e+148 their squares and sums can overflow. Scale it.": (
        lambda A, y: cs.MatrixPerceptron().partial_fit(np.where(A > 1, 1e200, A), y)
    ),
    "The class 1 was not announced; the classes are '0'. Give all classes by `classes=` at the first call of partial": (
        lambda A, y: cs.VectorPerceptron().learn_one({"a": A[0]}, 0).learn_one({"a": A[0]}, 1)
    ),
    "`prior_norms` names the view 'zz'; the views are 'view0'.": (
        lambda A, y: cs.OrthogonalPerceptron(prior_norms={"zz": 3.0}).fit(A, y)
    ),
    "`comparator` has 3 outputs; for these classes it needs 1.": (
        lambda A, y: cs.OnlinePerceptron().partial_fit(A, y).certificate(A, y, comparator=np.ones((len(A), 3)))
    ),
    "must be an array of coefficients, one for each of the 40 samples.": (
        lambda A, y: cs.KernelPerceptron().partial_fit(A, y).certificate(A, y, comparator=np.ones(3))
    ),
}


@pytest.mark.parametrize("message", ODD)
def test_odd_input_gets_a_sentence(message):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError) as caught:
        ODD[message](A, y)
    assert message in str(caught.value)


def test_odd_cases_that_work():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    for learner in (
        cs.KernelPerceptron(),
        cs.Projectron(),
        cs.MatrixPerceptron(),
        cs.OnlinePerceptron(),
        cs.MultiCueClassifier(),
    ):
        waiting = clone(learner).partial_fit(A, [None] * 40, classes=[0, 1])
        assert (waiting.decision_function(A) == 0).all()
    proof = cs.PassiveAggressive(C=np.inf).partial_fit(A, y).certificate(A, y, comparator=np.zeros(40))
    assert proof.bound >= 40
    cues = cs.MultiCueClassifier(learner=cs.VectorPerceptron()).partial_fit(A, y)
    assert cues.classes_.tolist() == [0, 1]
    nested = cs.MultiCueClassifier(learner=cs.MultiCueClassifier(learner=cs.OnlinePerceptron()))
    assert nested.partial_fit(A, y).partial_fit(A, np.arange(40) % 3).n_samples_seen_ == 80
    kappa = np.eye(2)
    model = cs.KernelPerceptron(output_kernel=kappa).fit(A, y)
    before = model.decision_function(A)
    kappa[:] = 7
    np.testing.assert_array_equal(model.decision_function(A), before)
    mixed = cs.OnlinePerceptron()
    for i in range(40):
        mixed.learn_one({"a": A[i].astype(np.float32 if i < 10 else np.float64)}, y[i])
    assert mixed._machine.V.dtype == np.float64


@pytest.mark.parametrize(
    "learner",
    [
        cs.KernelPerceptron(ChiSquared(1.0)),
        cs.MultiCueClassifier(ChiSquared(1.0)),
        cs.VectorPerceptron(ChiSquared(1.0)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_samples_that_a_kernel_refuses_leave_no_trace(learner):
    rng = np.random.default_rng(0)
    A, y = rng.random((40, 3)), np.arange(40) % 2
    bad = np.where(np.arange(40)[:, None] == 30, -1.0, A)
    fresh = clone(learner)
    with pytest.raises(ValueError, match="needs nonnegative data"):
        fresh.partial_fit(bad, y)
    assert not hasattr(fresh, "n_samples_seen_")
    model = clone(learner).partial_fit(A, y, classes=[0, 1])
    before = model.decision_function(A)
    with pytest.raises(ValueError, match="needs nonnegative data"):
        model.partial_fit(bad, y)
    assert model.n_samples_seen_ == 40
    np.testing.assert_array_equal(model.decision_function(A), before)


def test_the_comparator_zero_is_named_where_it_is_the_best():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(12, 3)), rng.integers(2, size=12)
    y[:2] = [0, 1]
    proof = cs.OnlinePerceptron(5).partial_fit(A, y).certificate(A, y)
    assert "since there were no more samples" not in str(proof)
    assert proof.size is not None


# -- however a stream is cut
def in_chunks(learner, X, y, step, classes=(0, 1)):
    """The learner after chunks of `step` samples, each with the views that occur in it."""
    model = clone(learner)
    for start in range(0, len(y), step):
        part = X[start : start + step]
        shown = [name for name in part.names if part.present(name).any()]
        model.partial_fit(part[shown], y[start : start + step], classes=classes if start == 0 else None)
    return model


LATE = {
    "prior norms": cs.OrthogonalPerceptron(prior_norms=1.0),
    "prior norms, aggressive": cs.OrthogonalPerceptron(prior_norms=1.0, p=2, aggressive=True),
    "prior norms by view": cs.OrthogonalPerceptron(prior_norms={"a": 2.0, "b": 0.5}, p=3),
    "prior norms, kernels": cs.OrthogonalPerceptron(RBF(0.3), prior_norms=0.5, p=2),
    "prior norms, average": cs.OrthogonalPerceptron(prior_norms=0.5, aggressive=True, average=True),
    "pad": cs.MatrixPerceptron(unequal="pad"),
    "pad, average": cs.MatrixPerceptron(unequal="pad", average=True, p=3),
    "pad, voted": cs.MatrixPerceptron(unequal="pad", average="voted"),
    "pad, kernel": cs.MatrixPerceptron(RBF(0.3), unequal="pad"),
    "pad, kernel, average": cs.MatrixPerceptron(RBF(0.3), unequal="pad", average=True),
}


def late_stream(seed, n=120, widths=(2, 4)):
    """Two views, the second from the middle on; and a row in which it is alone."""
    own = np.random.default_rng(seed)
    A, B = (own.normal(size=(n, width)) for width in widths)
    mask = {"a": np.arange(n) != n - 5, "b": np.arange(n) >= n // 2}
    return Views({"a": A, "b": B}, mask=mask), (A[:, 0] + 0.5 * own.normal(size=n) > 0).astype(int)


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
        learner = cs.MatrixPerceptron(kernel, unequal="pad", average=average)
        for step in (120, 30):
            late, from_start = in_chunks(learner, X, y, step), in_chunks(known, wide, y, step)
            assert (late.n_mistakes_, late.n_updates_) == (from_start.n_mistakes_, from_start.n_updates_)
            np.testing.assert_allclose(late.decision_function(X), from_start.decision_function(wide), atol=1e-9)
        whole = clone(learner).set_params(shuffle=False, max_iter=2)
        np.testing.assert_allclose(
            whole.fit(X, y).decision_function(X),
            clone(whole).set_params(unequal="refuse").fit(wide, y).decision_function(wide),
            atol=1e-9,
        )


@pytest.mark.parametrize("eta0", [120, 60, 30, 1])
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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [1.0, 0.5])
@pytest.mark.parametrize("kind", [cs.Projectron, cs.MultiCueClassifier])
def test_distances_at_the_threshold_do_not_depend_on_chunks(kind, threshold, seed):
    own = np.random.default_rng(seed)
    Z = np.round(2 * own.normal(size=(300, 1)))
    y = (np.abs(Z[:, 0]) % 2).astype(int)
    learner = kind(RBF(0.3), threshold=threshold)
    once = in_chunks(learner, Views(a=Z), y, 300)
    for step in (100, 7, 1):
        same_state(once, in_chunks(learner, Views(a=Z), y, step), Views(a=Z))


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


# -- the vector perceptron
def test_the_vector_perceptron_predicts_in_blocks():
    own = np.random.default_rng(0)
    model = cs.VectorPerceptron("rbf", random_state=0, max_iter=1)
    model.fit(own.normal(size=(1200, 4)), own.integers(3, size=1200))
    assert len(model.support_) > 800
    new = own.normal(size=(20_000, 4))
    few = np.concatenate([model.decision_function(new[i : i + 1000]) for i in range(0, 3000, 1000)])
    tracemalloc.start()
    scores = model.decision_function(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    np.testing.assert_allclose(scores[:3000], few, atol=1e-12)


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


# -- rows of views that were never met
NEVER_MET = {
    **{name: ALL[name] for name in ("perceptron", "3-norm", "kernel perceptron", "projectron", "cues", "orthogonal 2")},
    "vector perceptron": cs.VectorPerceptron(),
    "ridge": cs.CoRegularizedRidgeClassifier(),
    "margin": cs.MaxMarginClassifier(),
    "metric": cs.ViewMetricRidgeClassifier(),
    "early": cs.EarlyFusion(LogisticRegression()),
    "late": cs.LateFusion(LogisticRegression()),
}


@pytest.mark.parametrize("name", NEVER_MET)
def test_rows_with_only_views_that_nothing_was_learned_from_are_named(name):
    X, y = stream(0, n=40)
    mask = {"v1": np.zeros(40, dtype=bool)}
    model = clone(NEVER_MET[name]).fit(Views(X, mask=mask), y)
    new = Views(X[:6], mask={"v0": np.arange(6) != 4, "v1": np.ones(6, dtype=bool)})
    kind = type(model).__name__
    uses = [getattr(model, use, model.predict) for use in ("predict", "decision_function", "view_decision_function")]
    for use in uses:
        with pytest.raises(ValueError, match=rf"4 .*none of the views that {kind} learned from, 'v0': nothing was"):
            use(new)
    assert np.array_equal(model.predict(new[[0, 1, 2, 3, 5]]), model.predict(X[[0, 1, 2, 3, 5]][["v0"]]))
