"""Multiple kernels and output kernels against conic programs, the published alternations and their special cases."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

import consilience as cs
import reference
from cases import NORMS, gram_views
from consilience.kernels import RBF
from consilience.solvers.kernel_weights import BlockNorm, GramFit, MomentFit, SquaredNorm, learn_kernel_weights
from consilience.solvers.output_kernel import _OutputBasis


def problem(seed=0, n=30, m=4, P=1, informative=2):
    """Gram matrices of views of which some determine the targets."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    grams = []
    for v in range(m):
        block = rng.normal(size=(n, 3))
        if v < informative:
            block[:, :2] += 2 * hidden
        grams.append(RBF(0.1)(block))
    return grams, np.sin(hidden @ rng.normal(size=(2, P))) + 0.2 * rng.normal(size=(n, P))


def multiple(alpha, p, **more):
    """The estimator on precomputed kernels, with a small tolerance."""
    return cs.MultipleKernelRidge("precomputed", alpha=alpha, p=p, **{"tol": 1e-10, **more})


# -- lp-norm multiple kernels
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("p", [p for p in NORMS if p not in (1.001, 1000.0)])  # powers that a conic solver can take
@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_multiple_kernels_equal_a_conic_solver(cp, p, alpha):
    grams, Y = problem(1, n=15, P=2)
    roots = [np.linalg.cholesky(K + 1e-12 * np.eye(15)) for K in grams]
    W = [cp.Variable((15, 2)) for _ in grams]
    q = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    norms = cp.hstack([cp.norm(w, "fro") for w in W])
    loss = cp.sum_squares(Y - sum(R @ w for R, w in zip(roots, W, strict=True)))
    program = cp.Problem(cp.Minimize(loss + alpha * cp.square(cp.pnorm(norms, q))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL")
    model = multiple(alpha, p).fit(gram_views(grams), Y)
    assert model.certificate().objective == pytest.approx(program.value, rel=1e-5)
    outputs = sum(R @ w.value for R, w in zip(roots, W, strict=True))
    np.testing.assert_allclose(model.predict(gram_views(grams)), outputs, atol=2e-3)
    assert model.certificate().gap <= 1e-9 * model.certificate().objective


@pytest.mark.parametrize(("p", "P", "rounds"), [(4 / 3, 3, 400), (2.0, 3, 400), (8.0, 3, 400), (2.0, 300, 200)])
def test_multiple_kernels_equal_the_published_alternation(p, P, rounds):
    grams, Y = problem(2, P=P)
    d, B = reference.multiple_kernels(grams, Y, 0.5, p, rounds)
    model = multiple(0.5, p).fit(gram_views(grams), Y)
    np.testing.assert_allclose(model.kernel_weights_, d, rtol=1e-6)
    outputs = sum(w * K for w, K in zip(d, grams, strict=True)) @ B
    np.testing.assert_allclose(model.predict(gram_views(grams)), outputs, atol=1e-6)
    assert GramFit(grams, Y).Y.shape == (30, min(P, 30))  # more outputs than samples are reduced to as many


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("m", [1, 4])
def test_multiple_kernels_are_kernel_ridge_with_the_learned_kernel(p, m):
    grams, Y = problem(3, m=m, P=2)
    model = multiple(0.5, p).fit(gram_views(grams), Y)
    assert np.linalg.norm(model.kernel_weights_, p) == pytest.approx(1)
    total = sum(w * K for w, K in zip(model.kernel_weights_, grams, strict=True))
    expected = KernelRidge(alpha=0.5, kernel="precomputed").fit(total, Y).predict(total)
    np.testing.assert_allclose(model.predict(gram_views(grams)), expected, atol=1e-8)
    assert (model.view_weights_ == 1 / m).all()
    assert model.certificate().status == "converged"
    if p == np.inf or m == 1:
        np.testing.assert_allclose(model.kernel_weights_, 1, rtol=0 if p == np.inf else 1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_p_is_half_the_order_of_weights_of_co_regularized_ridge(p):
    grams, Y = problem(5, P=2)
    model = multiple(0.6, p).fit(gram_views(grams), Y)
    twin = cs.CoRegularizedRidge(
        "precomputed", alpha=0.6 / 30, view_weights="learned", weights_norm=1.0, weights_order=2 * p, tol=1e-12,
        random_state=0,
    ).fit(gram_views(grams), Y)  # fmt: skip
    assert model.certificate().objective == pytest.approx(30 * twin.certificate().objective, rel=1e-6)
    np.testing.assert_allclose(model.kernel_weights_, twin.view_weights_**2, atol=2e-3)
    np.testing.assert_allclose(model.predict(gram_views(grams)), twin.predict(gram_views(grams)), atol=1e-3)


def test_p_of_one_leaves_views_out_and_larger_p_does_not():
    grams, Y = problem(6, n=60, m=6)
    sparse, dense = (multiple(3.0, p).fit(gram_views(grams), Y[:, 0]) for p in (1.0, 2.0))
    assert sparse.active_views_ == ("v0", "v1")
    assert (sparse.kernel_weights_[2:] == 0).all()
    assert len(dense.active_views_) == 6


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("n_components", [None, 12])
def test_weights_for_each_output(p, n_components):
    rng = np.random.default_rng(7)
    X = cs.Views({f"v{v}": rng.normal(size=(40, 2)) for v in range(3)})
    Y = np.stack([np.sin(X["v0"][:, 0]), np.cos(X["v1"][:, 1])], axis=1)
    more = {"p": p, "alpha": 0.5, "n_components": n_components, "random_state": 0, "tol": 1e-10}
    model = cs.MultipleKernelRidge(RBF(0.5), shared_weights=False, **more).fit(X, Y)
    assert model.kernel_weights_.shape == (3, 2)
    total = 0.0
    for column in range(2):
        alone = cs.MultipleKernelRidge(RBF(0.5), **more).fit(X, Y[:, column])
        np.testing.assert_allclose(model.kernel_weights_[:, column], alone.kernel_weights_, atol=1e-6)
        np.testing.assert_allclose(model.predict(X)[:, column], alone.predict(X), atol=1e-7)
        total += alone.certificate().objective
    assert model.certificate().objective == pytest.approx(total)
    assert model.kernel_weights_[0, 0] > model.kernel_weights_[0, 1]


@pytest.mark.parametrize("n_components", [None, 10])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_other_views_make_up_for_missing_ones(n_components, p):
    rng = np.random.default_rng(10)
    mask = rng.random((40, 3)) < 0.7
    mask[~mask.any(axis=1)] = True
    X = cs.Views({f"v{v}": rng.normal(size=(40, 2)) for v in range(3)}, mask=mask)
    y = np.where(mask[:, 0], np.sin(np.nan_to_num(X["v0"][:, 0])), 0)
    model = cs.MultipleKernelRidge(RBF(0.5), p=p, n_components=n_components, random_state=0, tol=1e-9).fit(X, y)
    proof = model.certificate()
    assert proof.status == "converged"
    nu = 3 / mask.sum(axis=1)
    if n_components is None:
        K = [RBF(0.5)(np.nan_to_num(X[v])) * mask[:, k] * mask[:, k][:, None] for k, v in enumerate(X.names)]
    else:
        Phi = model._features.transform(X)
        blocks = [np.nan_to_num(np.asarray(Phi[v])) * mask[:, [k]] for k, v in enumerate(X.names)]
        K = [block @ block.T for block in blocks]
    K = [nu[:, None] * own * nu for own in K]
    total = sum(w * own for w, own in zip(model.kernel_weights_, K, strict=True))
    B = np.linalg.solve(total + np.eye(40), y)
    np.testing.assert_allclose(model.predict(X), total @ B, atol=1e-7)
    norms = np.array([w * np.sqrt(B @ own @ B) for w, own in zip(model.kernel_weights_, K, strict=True)])
    value = np.sum((y - total @ B) ** 2) + np.linalg.norm(norms, 2 * p / (p + 1)) ** 2
    assert proof.objective == pytest.approx(value, rel=1e-7)


# -- output kernels
@pytest.mark.parametrize("alpha", [0.1, 2.0])
@pytest.mark.parametrize("P", [1, 3])
def test_output_kernels_equal_the_published_alternation(alpha, P):
    grams, Y = problem(11, m=2, P=P)
    K = sum(grams) / 4
    L, outputs = reference.output_kernels(K, Y, alpha, 300)
    model = cs.OutputKernelRidge("precomputed", alpha=alpha, tol=1e-10).fit(gram_views(grams), Y)
    np.testing.assert_allclose(model.output_kernel_, L, atol=5e-5)
    np.testing.assert_allclose(model.predict(gram_views(grams)), outputs, atol=5e-5)


def test_output_kernels_equal_a_conic_solver(cp):
    grams, Y = problem(12, n=10, m=1, P=3)
    root = np.linalg.cholesky(grams[0] + 1e-12 * np.eye(10))
    W, L, T = cp.Variable((10, 3)), cp.Variable((3, 3), PSD=True), cp.Variable((10, 10), symmetric=True)
    objective = cp.sum_squares(Y - root @ W) + 0.7 * cp.trace(T) + 0.7 * cp.sum_squares(L)
    program = cp.Problem(cp.Minimize(objective), [cp.bmat([[L, W.T], [W, T]]) >> 0])
    program.solve(solver="CLARABEL")
    model = cs.OutputKernelRidge("precomputed", alpha=0.7, tol=1e-10).fit(gram_views(grams), Y)
    assert model.certificate().objective == pytest.approx(program.value, rel=1e-6)
    np.testing.assert_allclose(model.output_kernel_, L.value, atol=1e-3)
    np.testing.assert_allclose(model.predict(gram_views(grams)), root @ W.value, atol=1e-3)


def test_a_shared_metric_is_an_output_kernel_on_squared_kernels():
    grams, Y = problem(13, m=3, P=4)
    metric = cs.ViewMetricRidge(
        "precomputed", alpha=0.4, metric_penalty=0.4, shared_metric=True, tol=1e-10, max_iter=500
    )
    metric.fit(gram_views(grams), Y)
    squared = [K @ K for K in grams]
    outputs = cs.OutputKernelRidge("precomputed", alpha=0.4, tol=1e-10).fit(gram_views(squared), Y)
    assert metric.certificate().objective == pytest.approx(outputs.certificate().objective, rel=1e-8)
    np.testing.assert_allclose(metric.predict(gram_views(grams)), outputs.predict(gram_views(squared)), atol=1e-6)


def test_output_kernels_with_missing_views_and_weights():
    rng = np.random.default_rng(14)
    mask = rng.random((40, 2)) < 0.8
    mask[~mask.any(axis=1)] = True
    X = cs.Views({"a": rng.normal(size=(40, 2)), "b": rng.normal(size=(40, 3))}, mask=mask)
    Y, s, w = rng.normal(size=(40, 2)), rng.random(40) + 0.5, np.array([0.7, -0.4])
    model = cs.OutputKernelRidge(RBF(0.5), view_weights=w, alpha=0.5, tol=1e-10).fit(X, Y, s)
    nu = np.abs(w).sum() / (mask @ np.abs(w))
    K = sum(
        c**2 * RBF(0.5)(np.nan_to_num(X[v])) * mask[:, [k]] * mask[:, k]
        for k, (v, c) in enumerate(zip("ab", w, strict=True))
    )
    K = nu[:, None] * K * nu
    root = np.sqrt(s)
    L, outputs = reference.output_kernels(root[:, None] * K * root, root[:, None] * Y, 0.5, 300)
    # a gap of 1e-10 of the objective is 1e-5 of the predictions
    np.testing.assert_allclose(model.predict(X), outputs / root[:, None], atol=5e-5)
    np.testing.assert_allclose(model.output_kernel_, L, atol=5e-5)


def test_outputs_beyond_the_rank_of_the_targets():
    grams, Y = problem(15, m=2, P=3)
    many = Y @ np.random.default_rng(0).normal(size=(3, 12))
    model = cs.OutputKernelRidge("precomputed", alpha=0.5, tol=1e-9).fit(gram_views(grams), many)
    assert np.linalg.matrix_rank(model.output_kernel_, tol=1e-8) == 3
    L, outputs = reference.output_kernels(sum(grams) / 4, many, 0.5, 60)
    np.testing.assert_allclose(model.predict(gram_views(grams)), outputs, atol=2e-4)
    np.testing.assert_allclose(model.output_kernel_, L, atol=2e-4)
    nothing = cs.OutputKernelRidge("precomputed").fit(gram_views(grams), np.zeros((30, 2)))
    assert not nothing.predict(gram_views(grams)).any()
    assert not nothing.output_kernel_.any()
    with pytest.raises(ValueError, match=r"y has no outputs: its shape is \(30, 0\)"):
        nothing.fit(gram_views(grams), np.empty((30, 0)))


def test_certificates_are_those_of_the_coefficients():
    rng = np.random.default_rng(21)
    A, B = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    y, Y = np.sin(A[:, 0]) + 0.1 * rng.normal(size=60), rng.normal(size=(60, 8))
    low = np.sum((Y - np.hstack([A, B]) @ np.linalg.lstsq(np.hstack([A, B]), Y, rcond=None)[0]) ** 2)
    for X in (cs.Views(a=A, b=B), cs.Views(a=1e8 * A, b=1e-8 * B), cs.Views(a=1e4 * A, b=1e4 * B)):
        for model, targets in (
            (cs.OutputKernelRidge("linear", alpha=1e-6), Y),
            (cs.MultipleKernelRidge("linear", n_components=1.0, random_state=0), y),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, targets)
            proof = model.certificate()
            loss = np.sum((model.predict(X) - targets) ** 2)
            assert proof.objective >= loss * (1 - 1e-6)
            if targets is Y and proof.status == "converged":
                assert proof.objective >= low * (1 - 1e-6)


@pytest.mark.filterwarnings("error")
def test_more_outputs_than_directions_give_no_warning():
    rng = np.random.default_rng(22)
    X = cs.Views(a=rng.normal(size=(40, 1)), b=rng.normal(size=(40, 1)))
    model = cs.OutputKernelRidge("linear", alpha=10.0).fit(X, rng.normal(size=(40, 8)))
    assert np.linalg.matrix_rank(model.output_kernel_, tol=1e-7) <= 2


# -- the solver alone
@pytest.mark.parametrize("form", ["grams", "moments"])
def test_derivatives_are_differences(form):
    rng = np.random.default_rng(16)
    M = [rng.normal(size=(12, k)) for k in (3, 4, 5)]
    Y = rng.normal(size=(12, 2))
    whole = np.hstack(M)
    fit = GramFit([B @ B.T for B in M], Y) if form == "grams" else None
    fit = fit or MomentFit(whole.T @ whole, whole.T @ Y, float(np.sum(Y**2)), [3, 4, 5])
    d = np.array([0.7, 0.2, 1.3])
    found = fit(d)
    inner = np.eye(12) + sum(w * B @ B.T for w, B in zip(d, M, strict=True))
    B = np.linalg.solve(inner, Y)
    assert found.value == pytest.approx(np.sum(B * Y))
    assert found.loss == pytest.approx(np.sum(B**2))
    for v, e in enumerate(1e-5 * np.eye(3)):
        assert -found.descent[v] == pytest.approx((fit(d + e).value - fit(d - e).value) / 2e-5, rel=1e-6)
        np.testing.assert_allclose(-found.hessian[v], (fit(d + e).descent - fit(d - e).descent) / 2e-5, rtol=1e-5)
    zero = fit.at_zero()
    np.testing.assert_allclose(zero.descent, fit(np.zeros(3)).descent)
    assert zero.value == pytest.approx(np.sum(Y**2))


@pytest.mark.parametrize(
    "penalty", [BlockNorm(0.3, 0.7), SquaredNorm(0.4, 1.0), SquaredNorm(0.4, 1.5), SquaredNorm(0.4, 3.0)]
)
def test_penalties_on_norms_are_the_least_over_weights(penalty):
    rng = np.random.default_rng(17)
    for _ in range(20):
        n = rng.random(4) * (rng.random(4) < 0.8)
        if not n.any():
            continue
        d = penalty.best(n)

        def spent(d, n=n):
            return sum(a**2 / b for a, b in zip(n, d, strict=True) if a) + penalty.on_weights(d)

        assert spent(d) == pytest.approx(penalty.norm(n))
        for _ in range(20):
            other = d * np.exp(0.3 * rng.normal(size=4)) + 1e-3
            if isinstance(penalty, SquaredNorm):
                other /= 0.4 * np.linalg.norm(other, penalty.p)
            assert spent(other) >= penalty.norm(n) * (1 - 1e-12)


def test_dual_norm_of_blocks_is_the_largest_product():
    rng = np.random.default_rng(18)
    penalty = BlockNorm(0.3, 0.7)
    for _ in range(30):
        u = rng.random(3) * (rng.random(3) < 0.8) + 1e-3
        sample = rng.random((2000, 3))
        ratios = sample @ u / np.array([penalty.norm(row) for row in sample])
        assert ratios.max() <= 1 / penalty.room(u) * (1 + 1e-12)
        assert ratios.max() >= 0.9 / penalty.room(u)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_the_dual_of_squared_norms_is_below_every_objective_and_meets_the_least(p):
    grams, Y = problem(23, n=20, m=3, informative=2)
    fit, penalty, rng = GramFit(grams, Y), SquaredNorm(2.0, p), np.random.default_rng(24)

    def bounds(d):
        found = fit(d)
        return penalty.dual(found), found.loss + penalty.norm(found.norms(d))

    found = [bounds(np.exp(rng.normal(size=3))) for _ in range(20)]
    assert max(dual for dual, _ in found) <= min(objective for _, objective in found)
    best = learn_kernel_weights(fit, penalty, np.ones(3), tol=1e-9, max_iter=100)
    assert best.status == "converged"
    dual, objective = bounds(best.x)
    assert dual == pytest.approx(objective, rel=1e-8)
    assert max(dual for dual, _ in found) <= objective <= min(objective for _, objective in found)


def test_many_kernels():
    grams, Y = problem(19, n=80, m=60, informative=3)
    start = np.full(60, 1 / 120)
    solution = learn_kernel_weights(GramFit(grams, Y), SquaredNorm(2.0, 1.0), start, tol=1e-8, max_iter=50)
    assert solution.status == "converged"
    assert 3 <= np.count_nonzero(solution.x) < 60
    assert solution.x[:3].sum() > 0.5 * solution.x.sum()


@pytest.mark.parametrize("penalty", [BlockNorm(0.1, 0.1), SquaredNorm(0.01, 2.0)], ids=["blocks", "squares"])
@pytest.mark.parametrize("seed", range(10))
def test_the_last_step_does_not_depend_on_the_rounding_of_values(penalty, seed):
    """Near the optimum an error of 1e-7 changes values by 1e-14: less than their rounding, which is noise here."""
    rng = np.random.default_rng(seed)
    X, Y = rng.random((45, 30)), rng.choice([-1.0, 1.0], size=(45, 1))
    exact = GramFit([RBF(0.1)(one) for one in (X[:, :10], X[:, 10:])], Y)
    noise = iter(1 + 2e-12 * rng.standard_normal(1000))

    class Rounded:
        at_zero = exact.at_zero

        def __call__(self, d):
            found = exact(d)
            return replace(found, value=found.value * next(noise), loss=found.loss * next(noise))

    d = learn_kernel_weights(Rounded(), penalty, np.full(2, 10.0), tol=1e-12, max_iter=100).x
    best = penalty.best(exact(d).norms(d))  # d itself at the optimum
    np.testing.assert_allclose(d, best, rtol=0, atol=1e-10 * d.max())


def test_steps_to_a_better_output_kernel_are_in_its_logarithm_and_end_with_the_best_one_for_the_coefficients():
    """Each is given by eigenvectors of another C, which the published step takes in proportion to G'G to a power."""
    rng = np.random.default_rng(25)
    e, Z = rng.uniform(0.5, 2, size=6), rng.normal(size=(6, 3))
    state = _OutputBasis(e, Z, 1.0)
    W, root, turns = state.newton_step(), np.sqrt(np.diag(state.t)), list(state.turns())
    inner = np.linalg.solve(root, np.linalg.solve(root, W).T)
    G = np.sqrt(e)[:, None] * state.B * state.t
    better = [root @ scipy.linalg.expm(length * inner) @ root for length in (1, 0.5, 0.25, 0.125)]
    assert np.abs(np.linalg.eigvalsh(inner)).max() < 3
    for U, C in zip(turns[-5:], [*better, G.T @ G], strict=True):
        turned = U.T @ C @ U
        np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-10 * np.trace(C))
        np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-12)


# -- output kernels for classes
@pytest.mark.parametrize("n_components", [None, 0.5])
def test_classes_are_the_outputs_of_an_output_kernel(n_components):
    X, y = cs.datasets.make_views(90, n_classes=3, informative=2, noise=1, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    s = np.random.default_rng(0).random(90) + 0.5
    how = {"kernel": RBF(0.1), "alpha": 0.3, "tol": 1e-10, "n_components": n_components, "random_state": 0}
    model = cs.OutputKernelRidgeClassifier(**how).fit(X, names, s)
    codes = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    twin = cs.OutputKernelRidge(**how).fit(X, codes, s)
    np.testing.assert_allclose(model.decision_function(X), twin.predict(X), atol=1e-9)
    np.testing.assert_allclose(model.output_kernel_, twin.output_kernel_, atol=1e-9)
    assert (model.predict(X) == names[[np.flatnonzero(y == k)[0] for k in twin.predict(X).argmax(axis=1)]]).all()
    indicator = cs.OutputKernelRidgeClassifier(**how).fit(X, codes > 0, s)
    np.testing.assert_allclose(indicator.decision_function(X), twin.predict(X), atol=1e-9)
    assert (indicator.predict(X) == (twin.predict(X) > 0)).all()
    assert indicator.output_kernel_.shape == (3, 3)


def test_two_classes_are_one_output_and_unlabeled_samples_are_left_out():
    X, y = cs.datasets.make_views(60, n_classes=2, informative=2, noise=0, random_state=0)
    K = [RBF(0.1)(X[name]) for name in X.names]
    L, outputs = reference.output_kernels(sum(K) / 4, np.where(y == 1, 1.0, -1.0)[:, None], 0.5, 300)
    model = cs.OutputKernelRidgeClassifier(RBF(0.1), alpha=0.5, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), outputs[:, 0], atol=5e-5)
    np.testing.assert_allclose(model.output_kernel_, L, atol=5e-5)
    some = np.where(np.arange(60) < 40, y, -7)
    part = cs.OutputKernelRidgeClassifier(RBF(0.1), alpha=0.5, unlabeled=-7).fit(X, some)
    alone = cs.OutputKernelRidgeClassifier(RBF(0.1), alpha=0.5).fit(X[:40], y[:40])
    np.testing.assert_allclose(part.decision_function(X), alone.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="OutputKernelRidgeClassifier takes given weights"):
        model.set_params(view_weights="learned").fit(X, y)
    with pytest.raises(ValueError, match="`class_weight` is for one class per sample"):
        cs.OutputKernelRidgeClassifier(class_weight="balanced").fit(X, np.eye(2)[y])
