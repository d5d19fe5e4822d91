"""Metric learning against a conic solver, the paper's formulas, its special cases and its own scheme."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.exceptions import ConvergenceWarning

import consilience as cs
import reference
from cases import gram_views, random_mask
from consilience.batch import _row_blocks as batch_blocks
from consilience.batch import metric as batch
from consilience.batch._fit import double_design, read_training
from consilience.kernels import RBF, Linear
from consilience.solvers import design, design_matrix, fixed_metric, learned_metric, linalg, output_kernel
from consilience.solvers.alternating_metric import MetricMoments, alternate_metric, fixed_metric_steps
from consilience.solvers.held_out_metric import HeldOutSpectrum
from consilience.solvers.metric import kappa_of, metric_roots
from consilience.solvers.moment_matrix import MomentMatrix
from consilience.solvers.moments import slopes_by_rows

METRICS = ["learned", "block_sparse", "covariance", "diagonal"]
PENALTIES = [(0.1, 1.0), (1.0, 0.3), (0.01, 0.01), (5.0, 5.0)]


def problem(seed=0, n=12, m=2, P=1, missing=0.0):
    """Gram matrices of random views, zero in missing rows, targets that depend on the first view, weights."""
    rng = np.random.default_rng(seed)
    present = random_mask(rng, n, m, missing)
    grams, blocks = [], []
    for v in range(m):
        blocks.append(rng.normal(size=(n, 3)))
        there = present[:, v]
        grams.append(RBF(0.3)(blocks[-1]) * there * there[:, None])
    Y = np.sin(blocks[0][:, :1]) + 0.3 * rng.normal(size=(n, P))
    return grams, Y, rng.uniform(0.3, 1.0, size=m), present


def two_views(seed, n=20, widths=(2, 2), outputs=None):
    """Random views "a" and "b", random targets, and the generator that made them."""
    rng = np.random.default_rng(seed)
    X = cs.Views({name: rng.normal(size=(n, width)) for name, width in zip("ab", widths, strict=True)})
    return X, rng.normal(size=n if outputs is None else (n, outputs)), rng


def made(n, n_classes=2, informative=2, noise=1):
    return cs.datasets.make_views(
        n_samples=n, n_classes=n_classes, informative=informative, redundant=0, noise=noise, random_state=0
    )


def fixed(metric, grams, present):
    """The matrix of a fixed metric by its definition, with zeros where views are missing; "given" is a random one."""
    if metric == "diagonal":
        return block_diag(*(np.linalg.pinv(K, rcond=1e-12, hermitian=True) for K in grams))
    n, m = present.shape
    F, there = np.random.default_rng(0).normal(size=(m * n, m * n)), present.T.ravel()
    A = np.kron(np.ones((m, m)), np.eye(n)) / n if metric == "covariance" else F @ F.T / (m * n)
    return A * there * there[:, None]


def ridge(alpha, penalty, w, **more):
    """The estimator on precomputed kernels, with a small tolerance."""
    return cs.ViewMetricRidge(
        "precomputed", alpha=alpha, metric_penalty=penalty, view_weights=w, **{"tol": 1e-11, **more}
    )


def named(metric):
    """The parameters for a metric of this name; "shared" is a learned one for all outputs."""
    return {"metric": "learned", "shared_metric": True} if metric == "shared" else {"metric": metric}


def coefficients(model):
    """G, view after view, rows in the order of the samples."""
    assert (model.support_ == np.arange(len(model.support_))).all()
    return np.concatenate(list(model.dual_coef_))


def conic(cp, M, Y, alpha, penalty, blocks=None):
    """Solve the program in A and G by a conic solver: one metric for all columns of Y."""
    q, P = M.shape[1], Y.shape[1]
    A, G, T = cp.Variable((q, q), PSD=True), cp.Variable((q, P)), cp.Variable((P, P), symmetric=True)
    size = cp.sum_squares(A)
    if blocks is not None:
        ends = np.cumsum(blocks)
        own = [slice(end - k, end) for k, end in zip(blocks, ends, strict=True)]
        norms = [
            (1 if v == w else np.sqrt(2)) * cp.norm(A[own[v], own[w]], "fro")
            for v in range(len(own))
            for w in range(v + 1)
        ]
        size = sum(norms)
    program = cp.Problem(
        cp.Minimize(cp.sum_squares(Y - M @ G) + alpha * cp.trace(T) + penalty * size),
        [cp.bmat([[A, G], [G.T, T]]) >> 0],
    )
    found = []
    for tol in (1e-9, 1e-11):  # at a tolerance that it cannot reach it may end far off, so the better solution counts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        spent = alpha * np.sum(G.value * np.linalg.solve(A.value, G.value)) + penalty * size.value
        found.append((np.sum((Y - M @ G.value) ** 2) + spent, A.value, G.value))
    return min(found, key=lambda one: one[0])


def trimmed(A, rank):
    """The largest eigenvalues only: a conic solver stays inside the cone, where the others are not quite 0."""
    values, V = np.linalg.eigh(A)
    assert values[: len(A) - rank].max() <= 2e-4 * max(values[-1], 0.01)
    return (V[:, -rank:] * values[-rank:]) @ V[:, -rank:].T


# -- the exact solutions are those of a conic solver
@pytest.mark.parametrize(("alpha", "penalty"), PENALTIES)
@pytest.mark.parametrize(
    ("metric", "seed", "n", "m", "P"),
    [
        ("learned", 0, 12, 2, 1),
        ("block_sparse", 2, 9, 2, 1),
        ("block_sparse", 3, 9, 3, 1),
        ("shared", 2, 8, 2, 2),
        ("shared", 3, 8, 2, 3),
    ],
)
def test_learned_metrics_equal_a_conic_solver(cp, alpha, penalty, metric, seed, n, m, P):
    grams, Y, w, _ = problem(seed, n=n, m=m, P=P)
    blocks = [n] * m if metric == "block_sparse" else None
    value, A, G = conic(cp, reference.stacked(grams, w), Y, alpha, penalty, blocks)
    model = ridge(alpha, penalty, w, **named(metric)).fit(gram_views(grams), Y)
    assert abs(model.certificate().objective - value) <= 1e-6 * value
    expected = A if metric == "shared" else trimmed(A, 1)
    assert np.abs(model.metric_.toarray() - expected).max() <= 1e-5 * max(np.abs(A).max(), 1)
    if metric == "learned":
        np.testing.assert_allclose(coefficients(model), G, atol=1e-5 * np.abs(G).max())


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("alpha", "penalty"), [*PENALTIES, (1e-6, 1e-3), (1e3, 10.0)])
def test_learned_metric_equals_its_twin_in_the_coefficients(alpha, penalty, missing):
    grams, Y, w, present = problem(3, n=40, m=3, P=3, missing=missing)
    M = reference.stacked(grams, w, present)
    model = ridge(alpha, penalty, w).fit(gram_views(grams, present), Y)
    G = coefficients(model)
    for p in range(3):
        g = reference.metric_coefficients(M, Y[:, p], alpha, penalty)
        assert np.abs(M @ (G[:, p] - g)).max() <= 1e-7 * np.abs(M @ g).max()
    np.testing.assert_allclose(model.predict(gram_views(grams, present)), M @ G, atol=1e-9)


@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
@pytest.mark.parametrize(("seed", "n", "m"), [(0, 10, 2), (1, 10, 2), (2, 10, 2), (4, 20, 3)])
def test_the_objective_is_that_of_the_metric_and_no_other_is_better(metric, seed, n, m):
    grams, Y, w, _ = problem(seed, n=n, m=m)
    M, y, blocks = reference.stacked(grams, w), Y[:, 0], [n] * m if metric == "block_sparse" else None
    model = ridge(0.5, 0.7, w, metric=metric).fit(gram_views(grams), y)
    best, rng = model.certificate().objective, np.random.default_rng(seed)
    A, g = model.metric_.toarray(), coefficients(model)[:, 0]
    assert best == pytest.approx(reference.metric_objective(M, A, g, y, 0.5, 0.7, blocks), rel=1e-8)
    for _ in range(30):
        F = np.concatenate(list(model.metric_.factors[0].values())) + 0.1 * rng.normal(size=(m * n, 1))
        A = F @ F.T + 1e-3 * rng.random() * np.eye(m * n)
        g = reference.metric_ridge(M, A, y, 0.5)
        assert reference.metric_objective(M, A, g, y, 0.5, 0.7, blocks) >= best * (1 - 1e-9)


def test_the_optimum_is_a_fixed_point_of_the_given_metric():
    grams, Y, w, _ = problem(5, n=25, m=3)
    model = ridge(0.5, 0.7, w).fit(gram_views(grams), Y[:, 0])
    given = ridge(0.5, 1.0, w, metric=model.metric_.toarray()).fit(gram_views(grams), Y[:, 0])
    np.testing.assert_allclose(given.dual_coef_, model.dual_coef_, atol=1e-7)
    assert given.metric_ is None


# -- fixed metrics are the paper's formulas
def test_a_given_metric_has_the_coefficients_of_equation_8():
    grams, Y, w, present = problem(7, n=30, m=3, P=2)
    near = fixed("covariance", grams, present) + 1e-3 * np.eye(90)  # full rank
    given = ridge(0.3, 1.0, w, metric=near).fit(gram_views(grams), Y)
    literal = reference.metric_ridge(reference.stacked(grams, w), near, Y, 0.3)
    np.testing.assert_allclose(coefficients(given), literal, atol=1e-8)


@pytest.mark.parametrize("metric", ["diagonal", "covariance", "given"])
@pytest.mark.parametrize(("seed", "n", "missing"), [(7, 30, 0.0), (8, 20, 0.3)])
def test_fixed_metrics_are_the_formulas_of_the_paper(metric, seed, n, missing):
    grams, Y, w, present = problem(seed, n=n, m=3, P=2, missing=missing)
    M, A = reference.stacked(grams, w, present), fixed(metric, grams, present)
    model = ridge(0.3, 1.0, w, metric=A if metric == "given" else metric).fit(gram_views(grams, present), Y)
    residual = np.linalg.solve(M @ A @ M.T + 0.3 * np.eye(n), Y)
    np.testing.assert_allclose(model.predict(gram_views(grams, present)), M @ A @ M.T @ residual, atol=1e-9)
    proof, value = model.certificate(), 0.3 * np.sum(Y * residual)
    assert proof.status == "exact"
    assert proof.objective == pytest.approx(value, rel=1e-8)
    assert proof.gap <= 1e-8 * value


# -- Nyström
@pytest.mark.parametrize("metric", METRICS)
def test_all_samples_as_landmarks_are_the_problem_with_roots_of_the_kernels(metric):
    X, y, _ = two_views(9, n=25, widths=(3, 2))
    model = cs.ViewMetricRidge(RBF(0.5), metric=metric, alpha=0.4, metric_penalty=0.6, n_components=1.0, tol=1e-11)
    outputs = model.fit(X, y).predict(X)
    roots = []
    for name in X.names:
        values, V = np.linalg.eigh(RBF(0.5)(X[name]))
        roots.append((V * np.sqrt(np.maximum(values, 0))) @ V.T)
    if metric == "learned":
        M = reference.stacked(roots, np.full(2, 0.5))
        expected = M @ reference.metric_coefficients(M, y, 0.4, 0.6)
        whole = cs.ViewMetricRidge(RBF(0.5), alpha=0.4, metric_penalty=0.6).fit(X, y).predict(X)
        assert np.abs(outputs - whole).max() > 1e-3  # not the problem without landmarks
    elif metric == "block_sparse":
        twin = ridge(0.4, 0.6, np.full(2, 0.5), metric=metric)
        expected = twin.fit(gram_views(roots), y).predict(gram_views(roots))
    else:
        K = [R @ R for R in roots]
        M, A = np.hstack(K) / 2, np.linalg.inv(block_diag(*K) + 1e-13 * np.eye(50))
        if metric == "covariance":
            A = fixed(metric, K, np.ones((25, 2)))
        expected = M @ A @ M.T @ np.linalg.solve(M @ A @ M.T + 0.4 * np.eye(25), y)
    np.testing.assert_allclose(outputs, expected, atol=2e-6)


def test_landmarks_are_the_same_samples_in_all_views():
    X, y, _ = two_views(0, n=60, widths=(3, 2))
    model = cs.ViewMetricRidge(n_components=0.2, random_state=0).fit(X, y)
    chosen = model._features.landmark_indices_
    assert (chosen["a"] == chosen["b"]).all()
    assert model.coef_["a"].shape == (12, 1)
    assert model.metric_.toarray().shape == (24, 24)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("masked", [False, True])
def test_rows_in_blocks_are_rows_at_once(monkeypatch, metric, masked):
    X, y, rng = two_views(1, n=50, widths=(3, 2), outputs=2)
    mask = rng.random((50, 2)) < (0.8 if masked else 1)
    mask[~mask.any(axis=1)] = True
    X, s = cs.Views(X, mask=mask), rng.random(50) + 0.5
    model = cs.ViewMetricRidge(RBF(0.5), metric=metric, n_components=10, random_state=0)
    whole = model.fit(X, y, s).predict(X)
    monkeypatch.setattr(batch_blocks, "BLOCK", 7)
    np.testing.assert_allclose(model.fit(X, y, s).predict(X), whole, atol=1e-10)


# -- the published scheme
@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
@pytest.mark.parametrize(("alpha", "penalty"), PENALTIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exact_is_never_above_alternating_which_never_rises(metric, alpha, penalty):
    grams, Y, w, _ = problem(10, n=20, m=2)
    exact = ridge(alpha, penalty, w, metric=metric).fit(gram_views(grams), Y[:, 0]).certificate()
    before = np.inf
    for rounds in (0, 1, 2, 5, 20, 80):
        model = ridge(alpha, penalty, w, metric=metric, solver="alternating", max_iter=rounds, tol=0)
        proof = model.fit(gram_views(grams), Y[:, 0]).certificate()
        assert proof.objective <= before * (1 + 1e-12)
        assert exact.objective <= proof.objective * (1 + 1e-9)
        assert proof.objective - proof.gap <= exact.objective * (1 + 1e-9)  # its own bound is true
        before = proof.objective
    A, g, blocks = model.metric_.toarray(), coefficients(model)[:, 0], [20, 20] if metric == "block_sparse" else None
    literal = reference.metric_objective(reference.stacked(grams, w), A, g, Y[:, 0], alpha, penalty, blocks)
    assert proof.objective == pytest.approx(literal, rel=1e-6)


def test_alternating_ends_near_the_exact_solution():
    grams, Y, w, _ = problem(11, n=15, m=2, P=2)
    for shared in (False, True):
        exact = ridge(0.5, 0.5, w, shared_metric=shared).fit(gram_views(grams), Y)
        model = ridge(0.5, 0.5, w, shared_metric=shared, solver="alternating", max_iter=3000, tol=1e-10)
        model.fit(gram_views(grams), Y)
        assert model.certificate().objective == pytest.approx(exact.certificate().objective, rel=1e-5)
        assert model.certificate().status == "settled"
        np.testing.assert_allclose(model.predict(gram_views(grams)), exact.predict(gram_views(grams)), atol=1e-2)


def test_the_first_step_is_the_published_one():
    grams, Y, w, _ = problem(12, n=10, m=2)
    M = reference.stacked(grams, w)
    moments = MetricMoments(M.T @ M, M.T @ Y, np.sum(Y**2, axis=0), [10, 10], 0.3, 0.4, sparse=False, shared=True)
    alternated = alternate_metric(moments, np.ones(2), weights="given", tol=0, max_iter=1)
    published = reference.metric_gradient_steps(M, Y[:, 0], 0.3, 0.4, 0.25 / 0.4, 1, 1)[0][0]
    np.testing.assert_allclose(alternated.x.metrics[0], published, atol=1e-9)


def test_a_fixed_step_blows_up_where_backtracking_does_not():
    grams, Y, w, _ = problem(13, n=15, m=2)
    M, y = reference.stacked(grams, w), Y[:, 0]
    path = reference.metric_gradient_steps(M, y, 0.1, 1.0, 0.3, 8, 5)  # μη < 1/2, as the paper asks
    values = [reference.metric_objective(M, A, g, y, 0.1, 1.0) for A, g in path]
    best = ridge(0.1, 1.0, w).fit(gram_views(grams), y).certificate().objective
    assert values[0] <= 1.1 * best
    assert max(values) > 1e4 * best
    model = ridge(0.1, 1.0, w, solver="alternating", tol=1e-8, max_iter=500).fit(gram_views(grams), y)
    assert best <= model.certificate().objective <= best * (1 + 1e-3)


@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
def test_alternating_learns_weights_on_the_sphere(metric):
    grams, Y, _, _ = problem(14, n=20, m=3)
    how = {"metric": metric, "tol": 1e-9}
    fixed, both = (ridge(0.1, 0.1, w, solver="alternating", max_iter=500, **how) for w in ("uniform", "learned"))
    exact = ridge(0.1, 0.1, "learned", random_state=0, **how)
    values = [model.fit(gram_views(grams), Y[:, 0]).certificate().objective for model in (exact, both, fixed)]
    assert np.linalg.norm(both.view_weights_) == pytest.approx(1 / np.sqrt(3))
    assert values[1] < values[2]
    assert values[0] <= values[1] * (1 + 1e-9)
    mask = np.arange(60).reshape(20, 3) > 0
    with pytest.raises(ValueError, match="learns weights of views only if every sample has every view"):
        both.fit(gram_views(grams, mask), Y[:, 0])


@pytest.mark.parametrize("penalty", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("sparse", [False, True])
def test_alternating_lowers_the_objective_whatever_the_penalty_on_the_metric_is(penalty, sparse):
    X, Y, _ = two_views(15, outputs=2)
    M = np.hstack([X["a"], X["b"]])
    moments = MetricMoments(M.T @ M, M.T @ Y, np.sum(Y**2, axis=0), [2, 2], 0.1, penalty, sparse=sparse, shared=True)
    first, end = (alternate_metric(moments, np.ones(2), weights="given", tol=0, max_iter=k) for k in (0, 20))
    least = np.sum((Y - M @ np.linalg.lstsq(M, Y, rcond=None)[0]) ** 2)  # without any penalty
    assert least <= end.objective < least + 0.9 * (first.objective - least)


# -- the published scheme as it is printed
def published(alpha, penalty, w, **more):
    """The estimator with fixed steps on precomputed kernels; rounds never end early."""
    return ridge(alpha, penalty, w, solver="alternating", **{"tol": 0.0, **more})


fixed_steps = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@fixed_steps
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("metric", "alpha", "penalty", "step"),
    [("learned", 0.3, 0.4, 0.3), ("learned", 0.1, 1.0, 0.2), ("block_sparse", 0.3, 0.4, 0.4),
     ("block_sparse", 0.3, 0.4, 0.2)],
)  # fmt: skip
def test_every_round_is_algorithm_1(metric, alpha, penalty, step, free):
    grams, Y, w, _ = problem(40, n=12, m=3)
    w, y, sparse = np.full(3, 1 / 3), Y[:, 0], metric == "block_sparse"
    twin = reference.published_metric(grams, y, w, alpha, penalty, step, 12, sparse, free)
    # (12) shrinks by η where the proximal map of its own penalty, μη, has μη: the same scheme has η/μ for η
    scale = penalty / step if sparse else penalty
    for rounds in (0, 1, 2, 5, 12):
        model = published(alpha, scale, "least_squares" if free else w, metric=metric, step_size=step, max_iter=rounds)
        model.fit(gram_views(grams), y)
        A, g, weights = twin[rounds]
        np.testing.assert_allclose(model.metric_.toarray(), A, atol=1e-8 * np.abs(A).max())
        np.testing.assert_allclose(coefficients(model)[:, 0], g, atol=1e-8 * np.abs(g).max())
        np.testing.assert_allclose(model.view_weights_, weights, rtol=1e-8)
        assert model.n_iter_ == max(rounds, 1)
    values = [np.linalg.eigvalsh(A)[0] for A, *_ in twin]
    assert (min(values) < -1e-3) == sparse  # (9) keeps A positive, (12) does not


@fixed_steps
def test_certificates_say_what_fixed_steps_lack():
    grams, Y, w, _ = problem(41, n=20, m=3)
    X, y, M = gram_views(grams), Y[:, 0], reference.stacked(grams, w)
    best = ridge(0.1, 1.0, w).fit(X, y).certificate().objective
    model = published(0.1, 1.0, w, step_size=0.2, max_iter=30).fit(X, y)
    proof, twin = model.certificate(), reference.published_metric(grams, y, w, 0.1, 1.0, 0.2, 30)
    values = [reference.metric_objective(M, A, g, y, 0.1, 1.0) for A, g, _ in twin]
    assert proof.objective == pytest.approx(values[-1], rel=1e-6)
    assert proof.objective - proof.gap == pytest.approx(best, rel=1e-6)  # the bound is that of the exact solution
    rises = int(np.sum(np.diff(values) > 0))
    assert rises > 5
    assert f"Fixed steps raised the objective in {rises} of 30 rounds. Lower `step_size`" in str(proof)
    small = published(0.1, 1.0, w, step_size=1e-3, max_iter=3).fit(X, y)
    assert str(small.certificate()).endswith("Fixed steps raised the objective in 0 of 3 rounds.")


def test_a_block_sparse_metric_that_is_not_a_kernel(tmp_path):
    grams, Y, w, _ = problem(42, n=15, m=3)
    X, y = gram_views(grams), Y[:, 0]
    model = published(0.1, 1.0, w, metric="block_sparse", step_size=0.4, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="The learned metric is not positive semi-definite, so no optimum"):
        model.fit(X, y)
    proof, A = model.certificate(), model.metric_.toarray()
    least, best = np.linalg.eigvalsh(A)[0], ridge(0.1, 1.0, w, metric="block_sparse").fit(X, y).certificate().objective
    assert least < -0.1
    assert proof.status == "indefinite_metric"
    assert proof.gap is None
    assert proof.bound is None
    assert f"The smallest eigenvalue of the metric is {least:.3g}. It is not a kernel" in str(proof)
    assert f"may be below {best:.6g}, the optimum over positive semi-definite metrics" in str(proof)
    blocks = [[np.linalg.norm(A[15 * v :, 15 * u :][:15, :15]) for u in range(3)] for v in range(3)]
    np.testing.assert_allclose(model.metric_.block_norms(), blocks, rtol=1e-9)
    with pytest.raises(ValueError, match="The metric is not positive semi-definite, so it has no coordinates"):
        model.metric_.transform(X)
    cs.save(model, tmp_path / "model")
    again = cs.load(tmp_path / "model")
    assert (again.metric_.toarray() == A).all()
    assert str(again.certificate()) == str(proof)
    guarded = published(0.1, 1.0, w, metric="block_sparse", max_iter=30)  # backtracking keeps it positive definite
    with pytest.warns(ConvergenceWarning, match="maximum number of iterations"):
        guarded.fit(X, y)
    assert np.linalg.eigvalsh(guarded.metric_.toarray())[0] > 0


@fixed_steps
def test_a_view_left_out_stays_out_and_has_no_coefficients():
    grams, Y, w, _ = problem(43, n=15, m=3)
    grams[2] *= 0.05
    model = published(1.0, 0.4, w, metric="block_sparse", step_size=0.1, max_iter=300).fit(gram_views(grams), Y[:, 0])
    assert model.active_views_ == ("v0", "v1")
    assert not model.metric_.toarray()[30:].any()
    # (8) as it is printed, with A† = 0 there, would use the view without any penalty
    M, A = reference.stacked(grams, w), model.metric_.toarray()
    printed = np.linalg.lstsq(M.T @ M + np.linalg.pinv(A, rcond=1e-9, hermitian=True), M.T @ Y[:, 0], rcond=1e-12)[0]
    assert np.linalg.norm(printed[30:]) > 1
    none = published(1.0, 50.0, "least_squares", metric="block_sparse", step_size=0.1, max_iter=5, tol=1e-9)
    none.fit(gram_views(grams), Y[:, 0])
    assert none.active_views_ == ()
    assert none.certificate().objective == pytest.approx(np.sum(Y[:, 0] ** 2))
    assert np.isfinite(none.view_weights_).all()
    assert not none.predict(gram_views(grams)).any()


@fixed_steps
@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
def test_free_weights_drift(metric, step):
    grams, Y, _, _ = problem(44, n=20, m=3, P=2)
    lengths, values = [], []
    for rounds in (1, 10, 100):
        model = published(0.1, 0.1, "least_squares", metric=metric, step_size=step, max_iter=rounds)
        proof = model.fit(gram_views(grams), Y).certificate()
        lengths.append(np.linalg.norm(model.view_weights_))
        values.append(proof.objective)
        assert proof.gap is None
        assert f"The length of the free weights went from 0.577 to {lengths[-1]:.3g}" in str(proof)
    assert lengths[0] < lengths[1] < lengths[2]
    assert lengths[2] > 3
    fixed = ridge(0.1, 0.1, "learned", metric=metric, random_state=0).fit(gram_views(grams), Y)
    assert values[2] < fixed.certificate().objective  # no minimum: longer weights go below that of a fixed length


@fixed_steps
@pytest.mark.parametrize("metric", ["learned", "block_sparse", "shared"])
@pytest.mark.parametrize("n_components", [None, 6])
def test_fixed_steps_with_missing_views_weights_and_outputs(metric, n_components):
    X, y, rng = two_views(45, n=20, widths=(2, 3), outputs=2)
    mask = rng.random((20, 2)) < 0.8
    mask[~mask.any(axis=1)] = True
    X, s = cs.Views(X, mask=mask), rng.integers(1, 3, size=20)
    how = {"solver": "alternating", "step_size": 0.2, "max_iter": 5, "random_state": 0, **named(metric)}
    model = cs.ViewMetricRidge(RBF(0.5), alpha=0.5, n_components=n_components, **how)
    outputs, proof = model.fit(X, y, s).predict(X), model.certificate()
    assert np.isfinite(outputs).all()
    best = cs.ViewMetricRidge(RBF(0.5), alpha=0.5, n_components=n_components, random_state=0, **named(metric))
    assert proof.objective - proof.gap == pytest.approx(best.fit(X, y, s).certificate().objective, rel=1e-5)
    if metric == "learned" and n_components is None:  # a weight of 2 is a sample that stands twice
        rows = np.repeat(np.arange(20), s)
        np.testing.assert_allclose(outputs, model.fit(X[rows], y[rows]).predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="learns weights of views only if every sample has every view"):
        model.set_params(view_weights="least_squares").fit(X, y)


def test_steps_that_leave_the_range_of_doubles_keep_the_last_state():
    M, y = np.eye(2), np.array([1.0, 2.0])
    moments = MetricMoments(M, 1e90 * y[:, None], np.array([5e180]), [1, 1], 1e-60, 1.0, sparse=True, shared=True)
    end = fixed_metric_steps(moments, np.ones(2), step=1e-3, weights="given", tol=0, max_iter=50)
    assert end.status == "diverged"
    assert np.isfinite(end.x.G).all()
    assert np.isfinite(end.objective)


def test_fixed_steps_have_settled_where_a_round_changes_nothing():
    """No coefficients explain these targets: steps of ½ take the metric from 1 to 0, where it stays."""
    moments = MetricMoments(np.eye(1), np.zeros((1, 1)), np.array([4.0]), [1], 1.0, 2.0, sparse=True, shared=True)
    end = fixed_metric_steps(moments, np.ones(1), step=0.25, weights="given", tol=0, max_iter=50)
    assert (end.status, end.n_iter, end.objective) == ("settled", 3, 4.0)
    np.testing.assert_array_equal(end.x.metrics, np.zeros((1, 1, 1)))


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_metric_of_one_output_that_leaves_the_range_of_doubles_ends_the_steps(order):
    y = np.array([[1e60, 1.0]])[:, order]
    moments = MetricMoments(np.eye(1), y, y[0] ** 2, [1], 1.0, 1.0, sparse=False, shared=False)
    end = fixed_metric_steps(moments, np.ones(1), step=1e-3, weights="given", tol=0, max_iter=3)
    assert end.status == "diverged"
    np.testing.assert_array_equal(end.x.metrics, np.ones((2, 1, 1)))  # where they started


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_size": 0.1}, "`step_size` is for solver='alternating', .* takes no steps on the metric"),
        (
            {"view_weights": "least_squares"},
            "for solver='alternating', .* no optimum, and view_weights='learned' fixes",
        ),
        ({"step_size": 0.1, "metric": "diagonal"}, "`step_size` is a step of the published scheme, which learns a met"),
        ({"view_weights": "least_squares", "metric": "covariance", "solver": "alternating"}, "which learns a metric"),
        ({"solver": "alternating", "step_size": 0.25, "metric_penalty": 2.0}, "below 1/2, .* got 0.25 times 2"),
        ({"solver": "alternating", "step_size": 0.0}, "'step_size' parameter .* must be"),
    ],
)
def test_parameters_of_the_published_scheme_are_refused_where_they_mean_nothing(settings, message):
    X, y, _ = two_views(47)
    with pytest.raises(ValueError, match=message):
        cs.ViewMetricRidge(**settings).fit(X, y)
    for other in (cs.ViewMetricRidgeCV, cs.CoRegularizedRidge, cs.OutputKernelRidge):
        with pytest.raises(ValueError, match="'view_weights' parameter"):
            other(view_weights="least_squares").fit(X, y)


def test_a_constant_target_one_sample_and_one_class():
    for y in (np.zeros(6), np.ones(6)):
        X, _, _ = two_views(46, n=6)
        model = cs.ViewMetricRidge(solver="alternating", step_size=0.1, view_weights="least_squares", max_iter=500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert np.isfinite(model.fit(X, y).predict(X)).all()
            assert np.isfinite(model.fit(X[:1], y[:1]).predict(X)).all()


# -- learned weights
@pytest.mark.parametrize("metric", [*METRICS, "shared"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_components", [None, 8])
def test_slopes_in_the_weights_are_differences(metric, missing, n_components):
    rng = np.random.default_rng(15)
    _, Y, _, present = problem(15, n=20, m=3, P=2, missing=missing)
    X = cs.Views({f"v{v}": rng.normal(size=(20, 2)) for v in range(3)}, mask=present)
    s = rng.random(20) + 0.5
    model = cs.ViewMetricRidge(
        RBF(0.5), alpha=0.3, metric_penalty=0.4, n_components=n_components, tol=1e-12, random_state=0, **named(metric)
    )

    data = read_training(model, X, Y, s)
    system = batch.metric_system(model, data, double_design(model, data, shared_landmarks=True))
    evaluate = batch.metric_problem(model, data, system, model.alpha, model.metric_penalty).evaluate
    w = np.array([0.7, 0.4, -0.5])
    value, slopes, _ = evaluate(w)
    differences = [(evaluate(w + 1e-5 * e)[0] - evaluate(w - 1e-5 * e)[0]) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(slopes, differences, rtol=1e-4, atol=1e-4)
    fitted = model.set_params(view_weights=w).fit(X, Y, s)
    assert fitted.certificate().objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("metric", ["learned", "diagonal", "covariance"])
@pytest.mark.parametrize("seed", range(3))
def test_learned_weights_are_the_best_on_the_circle(metric, seed):
    grams, Y, _, _ = problem(seed, n=20, m=2)
    model = ridge(0.5, 0.5, "learned", metric=metric, tol=1e-8, random_state=0).fit(gram_views(grams), Y[:, 0])
    proof = model.certificate()
    assert proof.status == "converged"
    values = []
    for angle in np.linspace(0, np.pi, 61):
        w = np.array([np.cos(angle), np.sin(angle)]) / np.sqrt(2)
        values.append(ridge(0.5, 0.5, w, metric=metric).fit(gram_views(grams), Y[:, 0]).certificate().objective)
    assert proof.objective <= min(values) * (1 + 1e-7)
    assert proof.objective - proof.gap <= min(values) * (1 + 1e-12)
    assert np.linalg.norm(model.view_weights_) == pytest.approx(1 / np.sqrt(2))


@pytest.mark.parametrize("metric", ["learned", "block_sparse", "diagonal"])
def test_learned_weights_lean_to_the_view_that_knows(metric):
    X, _, _ = two_views(0, n=80)
    model = cs.ViewMetricRidge(metric=metric, view_weights="learned", random_state=0).fit(X, np.sin(2 * X["a"][:, 0]))
    assert model.view_weights_[0] > 2 * model.view_weights_[1] >= 0


# -- leave-one-out
@pytest.mark.parametrize("metric", ["learned", "covariance", "diagonal"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_held_out_scores_are_those_of_refits(metric, missing):
    grams, y, w, present = problem(16, n=20, m=2, P=2, missing=missing)
    M, A = reference.stacked(grams, w, present), fixed(metric, grams, present)
    model = cs.ViewMetricRidgeCV(
        "precomputed", metric=metric, view_weights=w, alphas=[0.03, 3.0], metric_penalties=[0.1, 2.0]
    ).fit(gram_views(grams, present), y)
    scores = []
    for alpha, penalty in zip(model.cv_results_["alpha"], model.cv_results_["metric_penalty"], strict=True):
        errors = []
        for i in range(20):
            rest = np.arange(20) != i
            if metric == "learned":
                g = np.stack([reference.metric_coefficients(M[rest], y[rest, p], alpha, penalty) for p in range(2)], 1)
            else:
                g = A @ M[rest].T @ np.linalg.solve(M[rest] @ A @ M[rest].T + alpha * np.eye(19), y[rest])
            errors.append(np.mean((y[i] - M[i] @ g) ** 2))
        scores.append(-np.mean(errors))
    np.testing.assert_allclose(model.cv_results_["score"], scores, rtol=1e-6)
    best = int(np.argmax(scores))
    assert (model.alpha_, model.best_score_) == (model.cv_results_["alpha"][best], max(model.cv_results_["score"]))
    direct = ridge(model.alpha_, model.metric_penalty_, w, metric=metric).fit(gram_views(grams, present), y)
    np.testing.assert_allclose(model.predict(gram_views(grams)), direct.predict(gram_views(grams)), atol=1e-9)


@pytest.mark.parametrize("metric", [*METRICS, "shared"])
def test_held_out_scores_of_features_are_those_of_refits(metric):
    X, y, rng = two_views(17, n=30, widths=(2, 3), outputs=2)
    y, s = y + np.sin(X["a"]), rng.random(30) + 0.5
    model = cs.ViewMetricRidgeCV(
        RBF(0.5), alphas=[0.2], metric_penalties=[0.5], n_components=6, random_state=0, tol=1e-11, **named(metric)
    ).fit(X, y, s)
    Phi = [np.asarray(model._features.transform(X)[name]) for name in X.names]
    M, Y = np.sqrt(s)[:, None] * np.hstack(Phi) / 2, np.sqrt(s)[:, None] * y
    if metric == "covariance":  # the coordinates where the metric is the identity
        side = np.hstack(Phi)
        values, V = np.linalg.eigh((side * (s / s.sum())[:, None]).T @ side)
        M = M @ (V * np.sqrt(np.maximum(values, 0)))

    def held_out(i, penalties, targets):
        """Return the error of sample i where ridge regression with these penalties learns from the others."""
        rest = np.arange(30) != i
        inner = M[rest].T @ M[rest] + np.diag(np.broadcast_to(penalties, M.shape[1]))
        return targets[i] - M[i] @ np.linalg.solve(inner, M[rest].T @ targets[rest])

    errors = np.empty((30, 2))
    for i in range(30):
        if metric == "learned":
            rest = np.arange(30) != i
            g = np.stack([reference.metric_coefficients(M[rest], Y[rest, p], 0.2, 0.5) for p in range(2)], 1)
            errors[i] = Y[i] - M[i] @ g
        elif metric == "shared":  # with the kernel between outputs held
            G = np.concatenate(list(model.coef_.values()))
            values, Q = np.linalg.eigh(G.T @ G)
            c = np.cbrt(0.2 / (2 * 0.5) * values)
            errors[i] = [held_out(i, 0.2 / c[j], Y @ Q[:, j]) for j in range(2)] @ Q.T
        elif metric == "block_sparse":  # with the weights of the views held
            for p in range(2):
                n = np.array([np.linalg.norm(model.coef_[name][:, p]) for name in X.names])
                root = np.sqrt(0.29289321881345254 * np.sum(n**2) + 0.7071067811865475 * n.sum() ** 2)
                d = root * n / np.sqrt(0.1) / (0.29289321881345254 * n + 0.7071067811865475 * n.sum())
                errors[i, p] = held_out(i, np.repeat(1 / d, 6), Y[:, p])
        else:
            errors[i] = held_out(i, 0.2, Y)
    expected = -np.average(np.mean((errors / np.sqrt(s)[:, None]) ** 2, axis=1), weights=s)
    assert model.best_score_ == pytest.approx(expected, rel=1e-6)


def test_the_grid_costs_one_decomposition(monkeypatch):
    grams, Y, w, _ = problem(18, n=30, m=2, P=5)
    calls = []
    for module in (design_matrix, fixed_metric, learned_metric, output_kernel):
        monkeypatch.setattr(module, "eigh_positive", lambda A: (calls.append(A.shape), linalg.eigh_positive(A))[1])
    cs.ViewMetricRidgeCV("precomputed", view_weights=w, metric_penalties=[0.1, 1.0]).fit(gram_views(grams), Y)
    assert calls == [(30, 30)]  # the scores of 14 pairs, and the fit
    calls.clear()
    cs.ViewMetricRidge("precomputed", view_weights=w).fit(gram_views(grams), np.repeat(Y, 400, axis=1))  # 2,000 outputs
    assert calls == [(30, 30)]


def test_only_kappa_counts_and_ties_go_to_the_larger_penalty():
    grams, Y, w, _ = problem(19, n=20, m=2)
    model = cs.ViewMetricRidgeCV("precomputed", alphas=[0.1, 1.0], metric_penalties=[1.0, 0.01]).fit(
        gram_views(grams), Y[:, 0]
    )
    scores = model.cv_results_["score"]
    assert scores[0] == scores[3]  # λ²η is the same
    assert len(set(scores)) == 3
    first = ridge(0.1, 1.0, w).fit(gram_views(grams), Y[:, 0])
    second = ridge(1.0, 0.01, w).fit(gram_views(grams), Y[:, 0])
    np.testing.assert_allclose(first.dual_coef_, second.dual_coef_, atol=1e-9)


def test_classifier_scores_count_right_decisions():
    X, y = made(80, n_classes=3, noise=0)
    model = cs.ViewMetricRidgeClassifierCV(RBF("scale"), alphas=[0.01, 1.0]).fit(X, y)
    right = []
    for i in range(80):
        rest = np.where(np.arange(80) == i, np.nan, y)  # the label is hidden, and the sample is left out of the kernels
        refit = cs.ViewMetricRidgeClassifier(kernel=model.kernels_, alpha=model.alpha_).fit(X, rest)
        right.append(refit.predict(X[[i]])[0] == y[i])
    assert abs(np.mean(right) - model.best_score_) <= 0.05


# -- what is proved
@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
@pytest.mark.parametrize("n_components", [None, 10])
def test_certificate(metric, n_components):
    X, y = made(60, n_classes=3)
    model = cs.ViewMetricRidgeClassifier(metric=metric, n_components=n_components, random_state=0).fit(X, y)
    proof = model.certificate()
    assert 0 <= proof.gap <= 1e-6 * proof.objective
    assert proof.residual <= 1e-3
    assert "above the optimum" in str(proof)
    assert model.n_iter_ >= 1
    # the bound, from the metric and the coefficients, output by output
    if n_components is None:
        bounds, size = [], sum(np.sum(model.kernels_[v](X[v]) ** 2) for v in X.names)
        for p in range(3):
            A, g = model.metric_.toarray(p), np.concatenate(list(model.dual_coef_[:, :, p]))
            length = np.sqrt(g @ np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ g)
            bounds.append(cs.certificates.rademacher_bound(np.linalg.norm(A), length, size, 60))
        assert proof.bound == pytest.approx(max(bounds), rel=1e-6)


def test_rademacher_bound_holds_for_random_signs():
    grams, Y, _, _ = problem(20, n=30, m=2)
    model = ridge(0.5, 0.5, np.ones(2)).fit(gram_views(grams), Y[:, 0])
    A, g, H = model.metric_.toarray(), coefficients(model)[:, 0], block_diag(*grams)
    beta = np.sqrt(g @ np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ g)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(60, 200))
    # the supremum over ‖A‖_F <= α is that of the rank-one metric along Hσ
    supremum = beta / 30 * np.sqrt(np.linalg.norm(A)) * np.linalg.norm(H @ signs, axis=0)
    assert np.mean(supremum) <= model.certificate().bound * 1.01


# -- the metric
def test_metric_in_factors():
    X, y = made(50, n_classes=3)
    model = cs.ViewMetricRidgeClassifier(alpha=0.5, metric_penalty=2.0).fit(X, y)
    metric = model.metric_
    assert repr(metric).startswith("ViewMetric of rank 1 for each of 3 outputs over the views 'informative0' (50)")
    for p in range(3):
        g = np.concatenate(list(model.dual_coef_[:, :, p]))
        a = np.cbrt(0.5 * (g @ g) / 4.0)
        np.testing.assert_allclose(metric.toarray(p), a * np.outer(g, g) / (g @ g), atol=1e-10)
    blocks = metric.toarray(1).reshape(3, 50, 3, 50)
    np.testing.assert_allclose(metric.block_norms(1), np.sqrt(np.einsum("aibj->ab", blocks**2)))
    np.testing.assert_allclose(metric.block_norms() ** 2, sum(metric.block_norms(p) ** 2 for p in range(3)))
    new = X[:7]
    moved = metric.transform(new, output=2)
    K = {name: model.kernels_[name](new[name], X[name]) for name in X.names}
    A = metric.toarray(2)
    for v, one in enumerate(X.names):
        for w, other in enumerate(X.names):
            block = K[one] @ A[v * 50 : (v + 1) * 50, w * 50 : (w + 1) * 50] @ K[other].T
            np.testing.assert_allclose(moved[one] @ moved[other].T, block, atol=1e-9)
    with pytest.raises(ValueError, match="There are metrics for 3 outputs; got output=3"):
        metric.toarray(3)


def test_metric_of_features_missing_views_and_one_for_all_outputs():
    X, y = made(60, n_classes=3, noise=0)
    mask = np.ones((60, 2), bool)
    mask[:10, 1] = False
    X = cs.Views(X, mask=mask)
    model = cs.ViewMetricRidgeClassifier(shared_metric=True).fit(X, y)
    A = model.metric_.toarray()
    assert not A[60:70].any()
    assert A[70:].any()
    assert model.metric_.rank == 3
    assert np.linalg.eigvalsh(A)[0] > -1e-10
    U, sigma, _ = np.linalg.svd(np.concatenate(list(model.dual_coef_)), full_matrices=False)
    np.testing.assert_allclose(A, np.cbrt(0.1 / 2) * (U * np.cbrt(sigma) ** 2) @ U.T, atol=1e-7)
    assert (model.metric_.transform(X).mask == mask).all()
    features = cs.ViewMetricRidgeClassifier(n_components=9, random_state=0).fit(X, y)
    moved = features.metric_.transform(X[:5], output=1)
    Phi = features._features.transform(X[:5])
    np.testing.assert_allclose(moved["informative0"], Phi["informative0"] @ features.metric_.factors[1]["informative0"])


def test_block_sparse_metric_leaves_views_out():
    X, y, truth = cs.datasets.make_views(
        n_samples=200, n_classes=2, informative=2, redundant=0, noise=2, random_state=0, return_truth=True
    )
    few = cs.ViewMetricRidgeClassifier(metric="block_sparse", alpha=20, metric_penalty=20).fit(X, y)
    assert set(few.active_views_) == set(truth.informative_views)
    norms = few.metric_.block_norms()
    left_out = [X.names.index(name) for name in X.names if name not in few.active_views_]
    assert not norms[left_out].any()
    none = cs.ViewMetricRidgeClassifier(metric="block_sparse", alpha=1e4, metric_penalty=1e4).fit(X, y)
    assert none.active_views_ == ()
    assert not none.metric_.toarray().any()
    assert none.certificate().objective == pytest.approx(200)
    assert none.certificate().gap <= 1e-9
    assert (none.decision_function(X) == 0).all()


# -- many outputs, weights, kinds of data
@pytest.mark.parametrize("metric", ["learned", "block_sparse"])
def test_outputs_are_learned_as_if_alone(metric):
    grams, Y, w, _ = problem(21, n=25, m=2, P=4)
    together, *alone = (ridge(0.3, 0.3, w, metric=metric).fit(gram_views(grams), y) for y in (Y, *Y.T))
    for p in range(4):
        np.testing.assert_allclose(together.dual_coef_[:, :, p], alone[p].dual_coef_[:, :, 0], atol=1e-7)
    total = sum(model.certificate().objective for model in alone)
    assert together.certificate().objective == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("metric", [*METRICS, "shared"])
@pytest.mark.parametrize("heavy", [2, 30])
def test_a_weight_of_two_is_a_sample_that_stands_twice(metric, heavy):
    X, y, rng = two_views(22, widths=(2, 3), outputs=2)
    s = rng.integers(0, 3, size=20) * np.where(np.arange(20) < 2, heavy // 2, 1)
    model = cs.ViewMetricRidge(RBF(0.5), alpha=0.5, tol=1e-13, **named(metric))
    outputs, bound = model.fit(X, y, s).predict(X), model.certificate().bound
    repeated = np.repeat(np.arange(20), s)
    np.testing.assert_allclose(outputs, model.fit(X[repeated], y[repeated]).predict(X), atol=1e-6)
    assert bound == (None if model.metric_ is None else pytest.approx(model.certificate().bound))


def test_class_weights_are_weights_of_losses():
    X, y = made(60, informative=1)
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    model = cs.ViewMetricRidgeClassifier(RBF(0.1), alpha=0.3, class_weight={np.unique(y)[1]: 4.0}).fit(X, y)
    root = np.sqrt(np.where(signs > 0, 4.0, 1.0))
    M = root[:, None] * reference.stacked([RBF(0.1)(X[name]) for name in X.names], np.full(2, 0.5))
    g = reference.metric_coefficients(M, root * signs, 0.3, 1.0)
    np.testing.assert_allclose(model.decision_function(X), M @ g / root, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("metric", ["learned", "block_sparse", "shared"])
def test_scales_of_targets_and_kernels(scale, metric):
    X, noise, _ = two_views(23, n=40, widths=(3, 2), outputs=2)
    y = np.stack([X["a"] @ np.ones(3), X["b"][:, 0]], axis=1) + 0.1 * noise

    def fit(kernel, y, power):
        factor = scale ** (1 if metric == "block_sparse" else power)
        return cs.ViewMetricRidge(kernel, alpha=0.1 * factor, metric_penalty=factor, **named(metric)).fit(X, y)

    plain = cs.ViewMetricRidge(Linear(), **named(metric)).fit(X, y).predict(X)
    # targets times t ask for κ times t^(2/3), or λη times t² for the block-sparse one
    scaled = fit(Linear(), scale * y, 2 / 3)
    np.testing.assert_allclose(scaled.predict(X) / scale, plain, rtol=1e-4, atol=1e-4)
    assert scaled.certificate().status in ("exact", "converged")
    # kernels times t ask for g over t
    np.testing.assert_allclose(fit(scale * Linear(), y, 4 / 3).predict(X), plain, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("error")
def test_block_sparse_at_every_size_of_the_penalty():
    X, noise, _ = two_views(27, n=40, widths=(2, 1))
    for y in (noise, np.sin(X["a"][:, 0]), np.sign(X["b"][:, 0])):
        for alpha in 10.0 ** np.arange(-4, 4.25, 0.25):
            model = cs.ViewMetricRidge(RBF(0.5), metric="block_sparse", alpha=alpha).fit(X, y)
            assert model.certificate().status == "converged"
            assert model.n_iter_ <= 20


@pytest.mark.filterwarnings("ignore:ViewMetricRidgeCV stopped")
def test_scores_of_a_block_sparse_grid_do_not_depend_on_its_order():
    X, noise, _ = two_views(28, n=40, widths=(2, 1))
    y, alphas = np.sin(X["a"][:, 0]) + 0.3 * noise, 10.0 ** np.arange(-3, 3)
    model = cs.ViewMetricRidgeCV(RBF(0.5), metric="block_sparse")
    up, down = (model.set_params(alphas=order).fit(X, y).cv_results_["score"] for order in (alphas, alphas[::-1]))
    np.testing.assert_allclose(up, down[::-1], atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="some solutions of the grid did not reach `tol`"):
        model.set_params(max_iter=0).fit(X, y)


@pytest.mark.parametrize("scale", [1e3, 1e4])
@pytest.mark.parametrize("shared", [False, True])
def test_linear_kernels_of_data_that_are_not_scaled(scale, shared):
    X, noise, _ = two_views(29, n=60)
    y, features = np.stack([X["a"][:, 0], noise], axis=1), scale * np.hstack([X["a"], X["b"]])
    X = cs.Views(a=features[:, :2], b=features[:, 2:])
    model = cs.ViewMetricRidge("linear", shared_metric=shared).fit(X, y)
    assert model.certificate().status in ("exact", "converged")
    best = np.sum((y - features @ np.linalg.lstsq(features, y, rcond=None)[0]) ** 2)
    assert np.sum((model.predict(X) - y) ** 2) <= best * (1 + 1e-3)


def test_kernels_too_close_to_singular_raise():
    X, y, _ = two_views(30, n=40)
    with pytest.raises(ValueError, match="or so close to singular that it appears so"):
        cs.ViewMetricRidge("linear", metric="covariance").fit(cs.Views(a=1e7 * X["a"], b=1e7 * X["b"]), y)


def test_a_given_metric_is_not_changed_and_is_cut_to_the_rows_used():
    X, y, rng = two_views(31)
    F = rng.normal(size=(8, 8))
    F = np.asfortranarray(F @ F.T)
    before = F.copy()
    model = cs.ViewMetricRidge(RBF(0.5), metric=F, n_components=4, random_state=0)
    assert model.fit(X, y).certificate().status == "exact"
    assert (before == F).all()
    A = fixed("given", [], np.ones((20, 2)))
    kept = np.flatnonzero(~np.isin(np.arange(20), [2, 7]))
    both = np.concatenate([kept, 20 + kept])
    holes = np.where(np.isin(np.arange(20), kept), y, np.nan)
    whole = cs.ViewMetricRidgeCV(RBF(0.5), metric=A, alphas=[1.0]).fit(X, holes)
    part = cs.ViewMetricRidgeCV(RBF(0.5), metric=A[np.ix_(both, both)].tolist(), alphas=[1.0]).fit(X[kept], y[kept])
    assert whole.best_score_ == pytest.approx(part.best_score_)


@pytest.mark.parametrize("shared", [False, True])
def test_many_outputs_take_little_memory(shared):
    X, Y, _ = two_views(33, n=50, outputs=1000)
    tracemalloc.start()
    model = cs.ViewMetricRidge(RBF(0.5), shared_metric=shared).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # G has 0.8 MB, a matrix between outputs 8 MB
    if shared:
        assert 45 <= model.metric_.rank <= 50
        assert model.predict(X).shape == (50, 1000)


def test_left_out_targets_where_nothing_is_learned_with_all():
    X = cs.Views(a=[[1.0], [1.0], [-1.0], [-1.0]])
    model = cs.ViewMetricRidgeCV("linear", alphas=[0.1]).fit(X, np.ones(4))
    M = np.array([[1.0], [1], [-1], [-1]]) @ np.array([[1.0, 1, -1, -1]])
    errors = [1 - M[i] @ reference.metric_coefficients(M[r], np.ones(3), 0.1, 1.0) for i in range(4)
              for r in [np.arange(4) != i]]  # fmt: skip
    assert model.best_score_ == pytest.approx(-np.mean(np.square(errors)), rel=1e-6)


def test_views_that_are_known_but_not_used():
    X, y, _ = two_views(34)
    model = cs.ViewMetricRidge(RBF(0.5)).fit(cs.Views(X, mask=np.tile([True, False], (20, 1))), y)
    assert model.metric_.transform(X).names == ("a",)
    with pytest.raises(ValueError, match="MetricSpace was fitted on the views 'a', 'b'; it does not know 'c'"):
        model.metric_.transform({"c": X["a"]})


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_view_has_a_landmark(seed):
    X, y, _ = two_views(35, n=100)
    mask = np.tile([True, False], (100, 1))
    mask[[3, 77]] = [False, True]
    model = cs.ViewMetricRidge(n_components=10, random_state=seed).fit(cs.Views(X, mask=mask), y)
    assert model.coef_["b"].shape[0] >= 1


# -- the solvers alone
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_both_forms_are_the_same_problem(missing):
    """Over features [K_v S½], with rows of zeros where a view is missing, M is that of the Gram matrices."""
    grams, Y, w, present = problem(37, n=15, m=2, P=3, missing=missing)
    rng = np.random.default_rng(37)
    s, u = rng.random(15) + 0.5, rng.random(15) + 0.5
    rows = [np.flatnonzero(there) for there in present.T]
    dual = design_matrix.DesignMatrix(
        design.GramDesign([K[np.ix_(r, r)] for K, r in zip(grams, rows, strict=True)], rows, 15, s), Y, u
    )
    side = np.hstack([K[:, r] * np.sqrt(s[r]) for K, r in zip(grams, rows, strict=True)])
    parts = [slice(0, 4), slice(4, 15)]
    blocks = [design.FeatureRows(side[r], present[r], s[r], u[r], Y[r]) for r in parts]
    primal = MomentMatrix(design.FeatureDesign(lambda: iter(blocks), [len(r) for r in rows], 3))
    M, B, scaled = dual.matrix(w), rng.normal(size=(15, 3)), np.sqrt(u)[:, None] * Y
    np.testing.assert_allclose(dual.Y, scaled)
    np.testing.assert_allclose(dual.gram(w), M @ M.T, atol=1e-12)
    np.testing.assert_allclose(dual.lift(w, B), M.T @ B, atol=1e-12)
    np.testing.assert_allclose(dual.inverse_diagonal(w, d := np.array([0.3, 2.0])), hat(M, d, dual.sizes))
    for one in (dual, primal):
        G = one.from_spectrum(w, spectrum := one.spectrum(w), spectrum.turned)
        np.testing.assert_allclose(G, M.T @ scaled, atol=1e-10)  # V√e R' turned back
        unreached = np.sum((scaled - M @ np.linalg.lstsq(M, scaled)[0]) ** 2, axis=0)
        np.testing.assert_allclose(spectrum.rest, unreached, atol=1e-10)
        G = 0.1 * G
        left = scaled - M @ G
        for measured in [one.measure(w, G), *([primal._measured_by_rows(w, G)] if one is primal else [])]:
            np.testing.assert_allclose(measured.losses, np.sum(left**2, axis=0), rtol=1e-10)
            np.testing.assert_allclose(measured.products, np.sum(left * scaled, axis=0), rtol=1e-10)
            np.testing.assert_allclose(measured.correlations, M.T @ left, atol=1e-10)
            np.testing.assert_allclose(np.repeat(w, one.sizes)[:, None] * measured.unweighted, M.T @ left, atol=1e-10)
        np.testing.assert_allclose(one.moments(w)[0], M.T @ M, atol=1e-12)
        np.testing.assert_allclose(one.moments(w)[1], M.T @ scaled, atol=1e-12)
        held = np.concatenate([part for _, _, part in one.leave_one_out(w, G, [d] * 3)])
        np.testing.assert_allclose(held, left / hat(M, d, one.sizes)[:, None], rtol=1e-9)
        values, vectors, turned = one.left_vectors(w)
        V = np.concatenate([part for _, _, part in one.left_rows(w, vectors)])
        np.testing.assert_allclose(M @ M.T @ V, V * values, atol=1e-10)
        np.testing.assert_allclose(V.T @ scaled, turned, atol=1e-10)
        assert one.squared_size() == pytest.approx(np.sum(s[:, None] * side**2))
    slopes = [one.weight_slopes(w, G, one.measure(w, G)) for one in (dual, primal)]
    np.testing.assert_allclose(*slopes, rtol=1e-9)
    np.testing.assert_allclose(
        slopes_by_rows(primal.rows(), primal.columns, w, primal.by_view(G)), slopes[0], rtol=1e-9
    )


def hat(M, d, sizes):
    """The diagonal of (I + Σ_v d_v M_vM_v')⁻¹."""
    return np.diag(np.linalg.inv(np.eye(len(M)) + M @ np.diag(np.repeat(d, sizes)) @ M.T))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_roots_solve_their_equation_at_every_scale(scale):
    rng = np.random.default_rng(25)
    e = np.concatenate([10.0 ** rng.uniform(-12, 6, size=40), np.zeros(3)])
    squares = e[:, None] * rng.normal(size=(43, 7)) ** 2
    squares[:, 3] = 0
    rho = metric_roots(e, squares, scale)
    assert np.isinf(rho[3])
    some = np.arange(7) != 3
    left = rho[some] ** 3 * np.sum(squares[:, some] / (e[:, None] + rho[some]) ** 2, axis=0)
    np.testing.assert_allclose(left, (2 * scale / 3) ** 3, rtol=1e-9)


def test_roots_end_where_newtons_steps_would_run_in_circles():
    e = np.array([1e-11, 1e5])
    rho = metric_roots(e, e[:, None] * 100.0, 0.4)
    assert rho**3 * np.sum(e * 100 / (e + rho) ** 2) == pytest.approx((0.8 / 3) ** 3)


def test_held_out_solver_at_rows_whose_steps_end_earlier_than_those_of_others():
    """Nothing is divided by the distance between two steps of a row that has come to rest."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        M, y = rng.normal(size=(40, 4)), rng.normal(size=(40, 1)) * np.exp(3 * rng.normal(size=(40, 1)))
        U, sigma, _ = np.linalg.svd(M, full_matrices=False)
        with np.errstate(divide="raise", invalid="raise"):
            found = HeldOutSpectrum(sigma**2, U, y, U.T @ y, reaches_all=False).residuals(kappa_of(0.5, 0.7))
        for i in (0, 20):
            rest = np.arange(40) != i
            g = reference.metric_coefficients(M[rest], y[rest, 0], 0.5, 0.7)
            assert found[i, 0] == pytest.approx(y[i, 0] - M[i] @ g, abs=1e-7 * np.abs(y).max())


def test_held_out_solver_with_directions_out_of_reach():
    rng = np.random.default_rng(26)
    M, Y = rng.normal(size=(20, 5)), rng.normal(size=(20, 2))
    U, sigma, _ = np.linalg.svd(M, full_matrices=False)
    kappa = kappa_of(0.5, 0.7)
    found = HeldOutSpectrum(sigma**2, U, Y, U.T @ Y, reaches_all=False).residuals(kappa)
    for i in range(20):
        rest = np.arange(20) != i
        for p in range(2):
            g = reference.metric_coefficients(M[rest], Y[rest, p], 0.5, 0.7)
            assert found[i, p] == pytest.approx(Y[i, p] - M[i] @ g, abs=1e-7)


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0])  # of the features
@pytest.mark.parametrize("targets", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_held_out_solver_with_features_targets_and_penalties_of_any_size(size, targets, alpha):
    rng = np.random.default_rng(27)
    M, y = size * rng.normal(size=(8, 1)), targets * rng.normal(size=8)
    Y = np.column_stack([y, -y])  # of any sign too
    U, sigma, _ = np.linalg.svd(M, full_matrices=False)
    found = HeldOutSpectrum(sigma**2, U, Y, U.T @ Y, reaches_all=False).residuals(kappa_of(alpha, 0.7))
    for i in range(8):
        rest = np.arange(8) != i
        left = y[i] - M[i] @ reference.metric_coefficients(M[rest], y[rest], alpha, 0.7)
        np.testing.assert_allclose(found[i], [left, -left], atol=1e-7 * targets)


def test_the_spectrum_is_that_of_the_weights_even_if_some_are_as_before():
    grams, Y, _, _ = problem(28, m=2)
    system = design_matrix.DesignMatrix(design.GramDesign.of(grams, 12), Y, np.ones(12))
    for w in ([1.0, 0.5], [1.0, 2.0], [1.0, 2.0], [3.0, 2.0]):
        expected = np.linalg.svd(reference.stacked(grams, np.array(w)), compute_uv=False)[::-1] ** 2
        np.testing.assert_allclose(system.spectrum(np.array(w)).values, expected, atol=1e-12)


# -- one metric for many outputs
def _many_outputs(kind, n=24):
    """Targets that a basis of the outputs could get wrong: more outputs than samples, of low rank, of mixed sizes."""
    rng = np.random.default_rng(41)
    Y = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 26)) + 0.3 * rng.normal(size=(n, 26))
    return {
        "more than samples": Y,
        "rank one": np.outer(Y[:, 0], rng.normal(size=7)),
        "constant": np.hstack([np.ones((n, 3)), np.zeros((n, 2)), Y[:, :2]]),
        "duplicated": np.hstack([Y[:, :4], Y[:, :4]]),
        "sizes": Y[:, :6] * 10.0 ** np.arange(-3, 3),
    }[kind]


@pytest.mark.parametrize("kind", ["more than samples", "rank one", "constant", "duplicated", "sizes"])
@pytest.mark.parametrize(("alpha", "weighted"), [(1e-3, False), (1e-3, True), (0.3, True), (30.0, False)])
def test_many_outputs_equal_the_twin(kind, alpha, weighted):
    grams, *_ = problem(42, n=24, m=2)
    Y, w = _many_outputs(kind), np.array([0.5, 0.5])
    u = np.where(np.arange(24) % 3 == 0, 2.0, 1.0) if weighted else np.ones(24)
    model = ridge(alpha, 0.5, w, shared_metric=True, tol=1e-18).fit(gram_views(grams), Y, sample_weight=u)
    root = np.sqrt(u)[:, None]
    M = root * np.hstack([c * K for c, K in zip(w, grams, strict=True)]) * np.tile(np.sqrt(u), 2)
    expected = reference.shared_metric_residuals(M, root * Y, alpha, 0.5)
    ours = root * (Y - model.predict(gram_views(grams)))
    np.testing.assert_allclose(ours, expected, atol=1e-8 * np.abs(Y).max())
    assert model.certificate().gap <= 1e-6 * model.certificate().objective


def test_a_shared_metric_is_that_of_the_outputs_in_any_basis():
    grams, *_ = problem(43, n=24, m=2)
    Y, rng = _many_outputs("more than samples"), np.random.default_rng(44)
    turn = np.linalg.qr(rng.normal(size=(26, 26)))[0]
    one, other = (
        ridge(0.3, 0.5, np.array([0.5, 0.5]), shared_metric=True, tol=1e-18).fit(gram_views(grams), targets)
        for targets in (Y, Y @ turn)
    )
    np.testing.assert_allclose(one.dual_coef_ @ turn, other.dual_coef_, atol=1e-8)
    np.testing.assert_allclose(one.metric_.toarray(), other.metric_.toarray(), atol=1e-7)


def test_samples_without_targets_are_left_out_of_a_shared_metric():
    X, Y, _ = two_views(45, n=30, outputs=50)
    Y[::5] = np.nan
    kept = ~np.isnan(Y[:, 0])
    whole = cs.ViewMetricRidge(RBF(0.5), shared_metric=True).fit(X, Y)
    part = cs.ViewMetricRidge(RBF(0.5), shared_metric=True).fit(X[kept], Y[kept])
    np.testing.assert_allclose(whole.predict(X), part.predict(X), atol=1e-10)
