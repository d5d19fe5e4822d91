"""Online estimators against naive twins, the special cases of their papers, and independent programs."""

from itertools import pairwise

import numpy as np
import pytest
from online_cases import (
    TWINS,
    aggressive,
    as_sparse,
    binary_patterns,
    block_matrices,
    fixed,
    grams,
    identity,
    in_chunks,
    same_state,
    stream,
    two_signs,
)
from sklearn.base import clone
from sklearn.linear_model import Perceptron

import consilience as cs
import reference
from consilience import Views
from consilience.kernels import RBF, Linear
from consilience.online._machine import Lesson


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", ["dense", "sparse", "integers", "missing"])
@pytest.mark.parametrize("name", TWINS)
def test_equals_its_twin_decision_by_decision(name, form, n_classes):
    estimator, rows, link, threshold, step = TWINS[name]
    for seed in range(2):
        X, y = stream(seed, n_classes=n_classes, whole=form == "integers", missing=form == "missing")
        assert (X.mask is not None) == (form == "missing")
        R = rows(X)
        _, wrong, hypotheses = reference.online(R, y, n_classes, link, threshold, step)
        given_X = as_sparse(X) if form == "sparse" else X
        last = np.array([[np.sum(w * x) for w in hypotheses[-1]] for x in R])
        for size in (len(y), 9):
            model = in_chunks(estimator, given_X, y, size, range(n_classes))
            mistakes = model.error_curve_.prod(axis=1).round()  # after each sample
            np.testing.assert_array_equal(np.diff(mistakes, prepend=0), wrong)
            np.testing.assert_allclose(model.decision_function(given_X), two_signs(last), atol=1e-7)
        # the hypotheses that predicted a sample; with the one after the last sample, those of the lecture
        for average, used in ((True, hypotheses[:-1]), ("with_last", hypotheses)):
            mean = np.mean(used, axis=0)
            averaged = clone(estimator).set_params(average=average).partial_fit(given_X, y, classes=range(n_classes))
            expected = np.array([[np.sum(w * x) for w in mean] for x in R])
            np.testing.assert_allclose(averaged.decision_function(given_X), two_signs(expected), atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [n for n in TWINS if "PA" not in n])
def test_votes_are_those_of_all_hypotheses(name, n_classes):
    estimator, rows, link, threshold, step = TWINS[name]
    X, y = stream(5, n=40, n_classes=n_classes)
    R = rows(X)
    _, _, hypotheses = reference.online(R, y, n_classes, link, threshold, step)
    stepped = [not np.array_equal(a, b) for a, b in pairwise(hypotheses)]
    expected = reference.votes(hypotheses, stepped, R)
    model = clone(estimator).set_params(average="voted").partial_fit(X, y, classes=range(n_classes))
    lives = len(hypotheses) - 1 - stepped.index(True)
    np.testing.assert_allclose(model.decision_function(X) * lives, two_signs(expected), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True])
def test_matrix_perceptron_on_orthogonal_matrices_is_the_orthogonal_one(n_classes, average):
    for seed in range(5):
        X, y = stream(seed, widths=(3, 5, 2), n_classes=n_classes)
        B = block_matrices(X)
        blocks = Views({name: B[:, :, k] for k, name in enumerate(X.names)})
        for p in (1, 1.7, 4):
            one = cs.MatrixPerceptron(p=p, average=average, fit_intercept=False).partial_fit(blocks, y)
            other = cs.OrthogonalPerceptron(p=p, average=average, fit_intercept=False).partial_fit(X, y)
            assert one.n_mistakes_ == other.n_mistakes_
            np.testing.assert_allclose(one.decision_function(blocks), other.decision_function(X), atol=1e-8)


# -- special cases
DUAL = 1.0 * Linear()  # not recognized as linear, so that samples are kept in place of weights
PLAIN = cs.OnlinePerceptron(fit_intercept=False)


def with_p(p, fit_intercept=False):
    models = [cs.OrthogonalPerceptron(p=p), cs.MatrixPerceptron(p=p), cs.OrthogonalPerceptron(DUAL, p=p)]
    return [model.set_params(fit_intercept=fit_intercept) for model in models]


def one_class_after_the_other(n_classes):
    X, y = stream(2, n=150, n_classes=n_classes, missing=True)
    order = np.r_[np.arange(60), np.random.default_rng(0).permutation(150)]
    return X[order], np.sort(y)[order]


# an estimator, others that are equal to it, streams
EQUAL = {
    "views are summed for p of one": (
        PLAIN, [cs.KernelPerceptron(Linear()), *with_p(1)], [stream(0, n=200, widths=(3, 3))],
    ),
    "one view for every p": (
        PLAIN, [model for p in (1, 1.5, 2, 9) for model in with_p(p)], [stream(3, n=150, widths=(5,), n_classes=3)],
    ),
    "one view with an intercept": (
        cs.OnlinePerceptron(), [model for p in (1, 2, 5) for model in with_p(p, fit_intercept=True)],
        [stream(3, n=150, widths=(5,), n_classes=n_classes) for n_classes in (2, 3)],
    ),
    "tied rivals": (PLAIN, [cs.KernelPerceptron(Linear())], [(*binary_patterns(seed), range(4)) for seed in range(40)]),
    "aggressive for p of one": (
        cs.PassiveAggressive(C=0.3, average=True, fit_intercept=False),
        [cs.OrthogonalPerceptron(p=1, variant="passive-aggressive", C=0.3, average=True, fit_intercept=False)],
        [one_class_after_the_other(n_classes) for n_classes in (2, 3, 4)],
    ),
    **{
        f"dual {type(other).__name__}, average={average}": (
            clone(one).set_params(average=average), [clone(other).set_params(average=average)],
            [stream(1, n=200, n_classes=n_classes, missing=True) for n_classes in (2, 3)],
        )
        for average in (False, True, "with_last", "voted")
        for one, other in [
            (PLAIN, cs.KernelPerceptron(DUAL)),
            (cs.PassiveAggressive(), cs.PassiveAggressive(DUAL, fit_intercept=True)),
            (cs.OrthogonalPerceptron(p=3), cs.OrthogonalPerceptron(DUAL, p=3, fit_intercept=True)),
            (cs.MatrixPerceptron(p=3), cs.MatrixPerceptron(DUAL, p=3, fit_intercept=True)),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_special_cases_are_other_methods(name):
    plain, others, streams = EQUAL[name]
    for X, y, *classes in streams:
        expected = clone(plain).partial_fit(X, y, *classes)
        for other in others:
            same_state(clone(other).partial_fit(X, y, *classes), expected, X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("variant", "squared"), [("projectron++", False), ("projectron", False), ("projectron++", True)]
)
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.6])
def test_projectron_equals_its_twin(threshold, variant, squared, n_classes):
    for seed in range(3):
        X, y = stream(seed, n=60, widths=(3,), n_classes=n_classes)
        kernel = RBF(0.3)
        plus = variant == "projectron++"
        scores, S, alpha = reference.projectron(kernel(X["v0"]), y, n_classes, threshold, plus, squared)
        model = cs.Projectron(kernel, threshold=threshold, variant=variant, squared=squared)
        model.partial_fit(X, y, classes=range(n_classes))
        np.testing.assert_array_equal(model.support_, S)
        np.testing.assert_allclose(model.dual_coef_, alpha[0, S] if n_classes == 2 else alpha[:, S], atol=1e-6)
        made = cs.Projectron(kernel, threshold=threshold, variant=variant, squared=squared)
        made._begin(np.arange(n_classes), True)
        lesson = Lesson(y, np.ones(len(y)), np.arange(len(y)))
        before = made._learn(made._ready(X), lesson).scores
        np.testing.assert_allclose(before, scores, atol=1e-6)


def test_projectron_without_a_threshold_decides_as_the_kernel_perceptron():
    for seed in range(5):
        X, y = stream(seed, n=120, n_classes=2 + seed % 2)
        plain = cs.KernelPerceptron(RBF(0.3)).partial_fit(X, y)
        for variant in ("projectron", "projectron++"):  # δ/0 is above every loss, so margins are not learned either
            model = cs.Projectron(RBF(0.3), threshold=0.0, variant=variant).partial_fit(X, y)
            np.testing.assert_array_equal(model.support_, plain.support_)
            same_state(model, plain, X, atol=1e-6)


def test_projectron_takes_repeated_samples():
    X, y = stream(0, n=30, widths=(2,))
    twice = Views.concat([X] * 4)
    model = cs.Projectron(RBF(0.3), threshold=0.0).partial_fit(twice, np.tile(y, 4))
    assert len(model.support_) <= 30
    assert np.isfinite(model.decision_function(X)).all()
    small = cs.Projectron(Linear(), threshold=0.0).partial_fit(twice, np.tile(y, 4))
    assert len(small.support_) <= 2  # the plane has two dimensions


def test_projectron_is_stable_at_small_thresholds():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(800, 2)), rng.integers(2, size=800)
    model = cs.Projectron(RBF(0.5), threshold=1e-3, variant="projectron").partial_fit(A, y, classes=[0, 1])
    S = model.support_
    K = RBF(0.5)(A)
    L = model._machine.L[: len(S), : len(S)]
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K[np.ix_(S, S)], atol=1e-9)
    plain = cs.KernelPerceptron(RBF(0.5)).partial_fit(A, y, classes=[0, 1])
    assert abs(model.n_mistakes_ - plain.n_mistakes_) < 60
    assert abs(model.decision_function(A)).max() < 10 * abs(plain.decision_function(A)).max()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cues_equal_their_layers_one_after_the_other(n_classes):
    X, y = stream(2, n=60, n_classes=n_classes)
    margins = [reference.projectron(RBF(0.3)(X[v]), y, n_classes, 0.2, True)[0] for v in X.names]
    _, wrong, hypotheses = reference.online(np.hstack(margins), y, n_classes, identity, 1.0, aggressive(0.5))
    model = cs.MultiCueClassifier(RBF(0.3), threshold=0.2, C=0.5).partial_fit(X, y, classes=range(n_classes))
    assert model.n_mistakes_ == wrong.sum()
    top = np.concatenate([model._machine.V[:, 0].T])
    np.testing.assert_allclose(top, hypotheses[-1], atol=1e-6)


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


def test_samples_of_many_epochs_are_kept_once():
    X, y = stream(1, n=60)
    model = cs.KernelPerceptron(RBF(0.01), max_iter=20, random_state=0, average=True).fit(X, y)
    assert len(np.unique(model.support_)) == len(model.support_) <= 60
    assert model.n_updates_ > len(model.support_)
    K = sum(grams(X, RBF(0.01)))
    last = clone(model).set_params(average=False).fit(X, y)
    np.testing.assert_allclose(last.decision_function(X), K[:, last.support_] @ last.dual_coef_, atol=1e-9)


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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_average_of_the_lecture_adds_up_after_each_sample(n_classes):
    """Bunescu: w̄ += w after the update, τ = 1 and τ += 1 for each sample, and w̄ / τ at the end."""
    X, y = stream(4, n=80, widths=(5,), n_classes=n_classes)
    w, total, tau = np.zeros((n_classes, 5)), 0.0, 1
    for x, c in zip(X["v0"], y, strict=True):
        s = w @ x
        r = max((t for t in range(n_classes) if t != c), key=lambda t: s[t])
        if s[c] <= s[r]:
            w[c] += x
            w[r] -= x
        total, tau = total + w, tau + 1
    last = total / tau
    model = cs.OnlinePerceptron(fit_intercept=False, average="with_last").partial_fit(X, y, classes=range(n_classes))
    np.testing.assert_allclose(model.coef_["v0"], last[1] if n_classes == 2 else last.T, atol=1e-12)


@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_the_mean_of_projections_with_the_last_hypothesis(threshold):
    X, y = stream(2, n=60, widths=(3,))
    mean = cs.Projectron(RBF(0.3), threshold=threshold, average="with_last")
    last, total = cs.Projectron(RBF(0.3), threshold=threshold), 0.0
    for i in range(60):
        last.partial_fit(X[[i]], y[[i]], **({} if i else {"classes": [0, 1]}))
        total = total + last.decision_function(X)
    np.testing.assert_allclose(mean.partial_fit(X, y, classes=[0, 1]).decision_function(X), total / 61, atol=1e-9)
    with pytest.raises(ValueError, match="'average' parameter of Projectron must be"):
        cs.Projectron(average="voted").partial_fit(X, y)
