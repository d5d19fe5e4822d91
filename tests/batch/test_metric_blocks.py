"""Metrics, multiple kernels and output kernels over features: the result does not depend on how rows are read."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

import consilience as cs
from cases import random_mask
from consilience.kernels import RBF
from consilience.solvers import moment_matrix, moments
from consilience.solvers.design import FeatureDesign, FeatureRows
from consilience.solvers.fixed_metric import FixedMetric
from consilience.solvers.held_out_metric import HeldOutFixed, HeldOutLearned, HeldOutShared, HeldOutSparse
from consilience.solvers.learned_metric import BlockSparseMetric, MetricPerOutput, SharedMetric
from consilience.solvers.moment_matrix import MomentMatrix
from consilience.solvers.multiple_kernels import MultipleKernels, OutputKernel

SIZES = [4, 3, 5]
STEPS = {"tol": 1e-9, "max_iter": 300}


def features(seed, missing, n=60, P=3):
    """Features of three views, targets that depend on the first two, weights of the rows and of their losses."""
    rng = np.random.default_rng(seed)
    present = random_mask(rng, n, 3, missing)
    Phi = rng.normal(size=(n, sum(SIZES))) * np.repeat(present, SIZES, axis=1)
    Y = Phi[:, :6] @ rng.normal(size=(6, P)) + 0.5 * rng.normal(size=(n, P))
    s = rng.random(n) + 0.5
    return FeatureRows(Phi, present, s, s * rng.uniform(0.5, 2, size=n), Y)


def cut(rows, order, size):
    """The rows in another order, as blocks of some size."""
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    blocks = [FeatureRows(*(np.ascontiguousarray(part[here]) for part in rows)) for here in parts]
    return MomentMatrix(FeatureDesign(lambda: iter(blocks), SIZES, rows.Y.shape[1]))


PROBLEMS = {
    "learned": lambda system, w: MetricPerOutput(system, 0.3, 0.5, **STEPS).solve(w),
    "shared": lambda system, w: SharedMetric(system, 0.3, 0.5, **STEPS).solve(w),
    "block_sparse": lambda system, w: BlockSparseMetric(system, 4.0, 4.0, **STEPS).solve(w),
    "covariance": lambda system, w: FixedMetric(system, "covariance", 0.3, **STEPS).solve(w),
    "diagonal": lambda system, w: FixedMetric(system, "diagonal", 0.3, **STEPS).solve(w),
    "mkl": lambda system, w: MultipleKernels(system, 5.0, 1.5, shared=False).solve(**STEPS),
    "okl": lambda system, w: OutputKernel(system, 0.5).solve(w, **STEPS),
}
HELD_OUT = {
    "learned": HeldOutLearned,
    "shared": lambda system, w: HeldOutShared(system, w, **STEPS),
    "block_sparse": lambda system, w: HeldOutSparse(system, w, **STEPS),
    "covariance": lambda system, w: HeldOutFixed(FixedMetric(system, "covariance", 1.0, **STEPS), w),
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", PROBLEMS)
def test_neither_blocks_nor_the_order_of_rows_change_the_solution(name, missing):
    rows, w = features(0, missing), np.array([0.5, 0.3, 0.4])
    orders = [np.arange(60), *(np.random.default_rng(k).permutation(60) for k in range(2))]
    solutions = [PROBLEMS[name](cut(rows, order, size), w) for order, size in zip(orders, (60, 7, 1), strict=True)]
    first = np.concatenate(solutions[0].x[0])
    for other in solutions[1:]:
        np.testing.assert_allclose(np.concatenate(other.x[0]), first, atol=1e-10 * np.abs(first).max())
        assert other.objective == pytest.approx(solutions[0].objective, rel=1e-12)
        assert other.status == solutions[0].status


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", HELD_OUT)
def test_neither_blocks_nor_the_order_of_rows_change_held_out_residuals(name, missing):
    rows, w, pairs = features(1, missing), np.array([0.5, 0.3, 0.4]), [(0.1, 1.0), (3.0, 0.5)]
    order = np.random.default_rng(0).permutation(60)
    found = []
    for here, size in ((np.arange(60), 60), (order, 7)):
        parts = [[], []]
        for k, (Y, u, residuals) in HELD_OUT[name](cut(rows, here, size), w).residuals(pairs):
            assert len(Y) == len(u) == len(residuals)
            parts[k].append(residuals)
        found.append([np.concatenate(own) for own in parts])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one[order], atol=1e-9 * np.abs(one).max())


@pytest.mark.parametrize("name", ["learned", "shared"])
def test_held_out_residuals_depend_on_one_number_however_large_the_metric_is(name):
    """λ tr(G'A†G) + η‖A‖² is the same for tA, tλ and η/t²: only λ²η is left of the penalties."""
    rows, w, found = features(1, 0.0), np.array([0.5, 0.3, 0.4]), []
    for pair in ((0.3, 0.5), (0.3e-18, 0.5e36), (0.3e18, 0.5e-36)):
        held_out = HELD_OUT[name](cut(rows, np.arange(60), 60), w)
        ((_, (_, _, residuals)),) = held_out.residuals([pair])
        found.append((held_out.key(*pair), residuals))
    for key, residuals in found[1:]:
        assert key == pytest.approx(found[0][0])
        np.testing.assert_allclose(residuals, found[0][1], rtol=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_many_combinations_of_missing_views_are_read_again_for_each_weight(name, monkeypatch):
    rows, w = features(2, 0.3), np.array([0.5, 0.3, 0.4])
    by_pattern = PROBLEMS[name](cut(rows, np.arange(60), 13), w)
    monkeypatch.setattr(moments, "PATTERN_BYTES", 0)
    system = cut(rows, np.arange(60), 13)
    assert system.sums.moments.c is not None
    again = PROBLEMS[name](system, w)
    whole = np.concatenate(by_pattern.x[0])
    np.testing.assert_allclose(np.concatenate(again.x[0]), whole, atol=1e-10 * np.abs(whole).max())


@pytest.mark.parametrize("problem", [MetricPerOutput, SharedMetric, BlockSparseMetric])
def test_slopes_in_the_weights_are_those_of_differences(problem, monkeypatch):
    """Where views are missing, for sums by combination and, with too many of them, from the rows."""
    rows, w = features(3, 0.3), np.array([0.5, 0.3, 0.4])
    for limit in (1 << 30, 0):
        monkeypatch.setattr(moments, "PATTERN_BYTES", limit)
        learned = problem(cut(rows, np.arange(60), 13), 0.3, 0.5, tol=1e-12, max_iter=2000)
        value, slopes, _ = learned.evaluate(w)
        ends = [[learned.evaluate(w + h * e)[0] for h in (1e-5, -1e-5)] for e in np.eye(3)]
        np.testing.assert_allclose(slopes, [(up - down) / 2e-5 for up, down in ends], atol=1e-5 * value)


def test_a_small_loss_is_measured_row_by_row():
    """Differences of sums have no digits of a loss 12 orders below the squares of the targets; rows have them."""
    rng = np.random.default_rng(4)
    Phi = rng.normal(size=(40, 12))
    G = rng.normal(size=(12, 2))
    rows = FeatureRows(Phi, np.ones((40, 3), dtype=bool), np.ones(40), np.ones(40), Phi @ G)
    system, w = cut(rows, np.arange(40), 9), np.ones(3)
    moved = G + 1e-7 * rng.normal(size=G.shape)
    measured = system.measure(w, moved)
    B = rows.Y - Phi @ moved
    np.testing.assert_allclose(measured.losses, np.sum(B**2, axis=0), rtol=1e-6)
    np.testing.assert_allclose(measured.correlations, Phi.T @ B, rtol=1e-6)
    assert measured.unseen == 0
    # one that is not small is within the bound that it comes with
    moved = G + 0.1
    measured, B = system.measure(w, moved), rows.Y - Phi @ moved
    assert 0 < measured.unseen < 1e-10 * np.sum(B**2)
    assert abs(np.sum(measured.losses) - np.sum(B**2)) <= measured.unseen


def test_nothing_grows_with_the_rows():
    def arrays(value):
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict | list | tuple):
            for own in value.values() if isinstance(value, dict) else value:
                yield from arrays(own)
        elif type(value).__module__.startswith("consilience") and not isinstance(value, FeatureDesign):
            yield from arrays(vars(value))

    sizes = []
    for n in (60, 600):
        system = cut(features(5, 0.0, n=n), np.arange(n), 13)
        MetricPerOutput(system, 0.3, 0.5, **STEPS).solve(np.ones(3))
        HeldOutLearned(system, np.ones(3))
        sizes.append(sum(array.nbytes for array in arrays(system)))
    assert sizes[0] == sizes[1] > 0


# -- estimators
def model_of(kind, **given):
    return kind(RBF(0.4), n_components=12, random_state=0, **given)


ESTIMATORS = {
    **{
        f"{metric}, {weights}": model_of(cs.ViewMetricRidge, metric=metric, view_weights=weights, n_restarts=1)
        for metric in ("learned", "block_sparse", "covariance", "diagonal")
        for weights in ("uniform", "learned")
    },
    "shared": model_of(cs.ViewMetricRidge, shared_metric=True, tol=1e-9),
    "shared, learned": model_of(cs.ViewMetricRidge, shared_metric=True, view_weights="learned", n_restarts=1, tol=1e-9),
    "given weights": model_of(cs.ViewMetricRidge, view_weights=[0.2, 0.5, -0.3]),
    "alternating": model_of(cs.ViewMetricRidge, solver="alternating", alpha=1.0),
    "classes": model_of(cs.ViewMetricRidgeClassifier, class_weight="balanced"),
    "classes, covariance": model_of(cs.ViewMetricRidgeClassifier, metric="covariance", class_weight="balanced"),
    **{
        f"CV, {metric}": model_of(cs.ViewMetricRidgeCV, metric=metric)
        for metric in ("learned", "block_sparse", "covariance", "diagonal")
    },
    "CV, shared": model_of(cs.ViewMetricRidgeCV, shared_metric=True, tol=1e-9, max_iter=3000),
    "CV, classes": model_of(cs.ViewMetricRidgeClassifierCV, class_weight="balanced"),
    "mkl": model_of(cs.MultipleKernelRidge, p=1.5),
    "mkl, of each output": model_of(cs.MultipleKernelRidge, p=1, shared_weights=False),
    "mkl, classes": model_of(cs.MultipleKernelRidgeClassifier, class_weight={"left": 2.0}),
    "okl": model_of(cs.OutputKernelRidge, tol=1e-9),
    "okl, classes": model_of(cs.OutputKernelRidgeClassifier, class_weight="balanced", tol=1e-9),
}


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_blocks_of_rows_are_samples_in_memory(name, missing):
    rng = np.random.default_rng(6)
    hidden = rng.normal(size=(90, 2))
    X = cs.Views(
        {view: hidden[:, v % 2 :] + 0.3 * rng.normal(size=(90, 2 - v % 2)) for v, view in enumerate("abc")},
        mask=random_mask(rng, 90, 3, missing),
    )
    model, s = ESTIMATORS[name], rng.random(90) + 0.5
    y = np.stack([np.sin(2 * hidden[:, 0]), hidden[:, 1], hidden.sum(axis=1)], axis=1) + 0.3 * rng.normal(size=(90, 3))
    y[7] = np.nan  # left out
    if is_classifier(model):
        y = np.array(["left", "middle", "right"])[np.digitize(hidden[:, 0], [-0.5, 0.5])]
    blocks = cs.RowBlocks.of(X, y, s, size=17)
    whole = outputs(model.fit(X, y, s), X)
    proof, chosen = model.certificate(), getattr(model, "alpha_", None)
    scores = getattr(model, "cv_results_", {}).get("score")
    again = outputs(model.fit(blocks), X)
    np.testing.assert_allclose(again, whole, atol=1e-8 * np.abs(whole).max())
    assert model.certificate().objective == pytest.approx(proof.objective, rel=1e-8)
    assert model.certificate().status == proof.status
    assert getattr(model, "alpha_", None) == chosen
    if scores is not None:
        np.testing.assert_allclose(model.cv_results_["score"], scores, rtol=1e-8)
    if is_classifier(model):
        assert list(model.classes_) == ["left", "middle", "right"]


def outputs(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def test_held_out_factors_may_be_computed_again_for_each_block(monkeypatch):
    rows, w = features(7, 0.2), np.array([0.5, 0.3, 0.4])
    found = []
    for kept in (1e8, 0):
        monkeypatch.setattr(moment_matrix, "_FACTORS", kept)
        held = HELD_OUT["block_sparse"](cut(rows, np.arange(60), 13), w)
        found.append(np.concatenate([part for _, (_, _, part) in held.residuals([(1.0, 1.0)])]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_given_metrics_over_features_are_those_of_memory():
    rng = np.random.default_rng(8)
    X, y = cs.Views(a=rng.normal(size=(50, 2)), b=rng.normal(size=(50, 3))), rng.normal(size=50)
    F = rng.normal(size=(16, 16))
    model = cs.ViewMetricRidge(RBF(0.4), metric=F @ F.T, n_components=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = model.fit(X, y).predict(X)
        np.testing.assert_allclose(model.fit(cs.RowBlocks.of(X, y, size=9)).predict(X), whole, atol=1e-8)


@pytest.mark.parametrize("problem", [MetricPerOutput, SharedMetric])
def test_sizes_of_the_best_metric_are_those_of_its_matrix(problem):
    """‖A‖_F and tr(G'A†G)½, with which the penalties λ tr(G'A†G) + η‖A‖_F² add up to that of the coefficients."""
    metric, G = (
        problem(cut(features(0, 0.0), np.arange(60), 13), 0.3, 0.5, **STEPS),
        np.random.default_rng(1).normal(size=(12, 3)),
    )
    sizes, factors = metric.best_sizes(G), metric.factors(G)
    parts = [G] if problem.shared else [G[:, [p]] for p in range(3)]
    for (large, length), F, own in zip(sizes, factors, parts, strict=True):
        A = F @ F.T
        assert large == pytest.approx(np.linalg.norm(A))
        assert length**2 == pytest.approx(np.trace(own.T @ np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ own))
    assert metric.penalty(G) == pytest.approx(sum(0.3 * length**2 + 0.5 * large**2 for large, length in sizes))


@pytest.mark.parametrize("P", [2, 12, 20])
def test_the_bound_of_a_shared_metric_is_that_of_its_definition(P):
    """Also where the metric has full rank, so that its factor is square."""
    rows, w = features(9, 0.0, P=P), np.array([0.5, 0.3, 0.4])
    solution = SharedMetric(cut(rows, np.arange(60), 13), 0.3, 0.5, **STEPS).solve(w)
    G, F = np.concatenate(solution.x[0]), np.concatenate(solution.x[2][0])
    assert F.shape == (12, min(P, 12))
    A = F @ F.T
    length = np.sqrt(np.trace(G.T @ np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ G))
    expected = cs.certificates.rademacher_bound(
        np.linalg.norm(A), length, np.sum(rows.s[:, None] * rows.Phi**2), rows.s.sum()
    )
    assert solution.bound == pytest.approx(expected, rel=1e-6)


def test_losses_far_below_the_targets_are_measured_row_by_row():
    """Differences of sums lose them, whatever the coefficients are: here all are 1, and the targets are almost φ."""
    rng = np.random.default_rng(3)
    phi, rest = rng.normal(size=(50, 1)), 1e-7 * rng.normal(size=(50, 6))
    present, ones = np.ones((50, 1), dtype=bool), np.ones(50)
    blocks = [FeatureRows(phi, present, ones, ones, phi + rest)]
    found = MomentMatrix(FeatureDesign(lambda: iter(blocks), [1], 6)).measure(np.ones(1), np.ones((1, 6)))
    np.testing.assert_allclose(found.losses, np.sum(rest**2, axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.correlations, phi.T @ rest, rtol=1e-6)
