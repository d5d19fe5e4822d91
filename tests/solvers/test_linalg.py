"""Shared parts of the solvers, each against its definition."""

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.kernels import RBF
from consilience.solvers import metric
from consilience.solvers.design import view_columns
from consilience.solvers.design_matrix import MetricSpectrum
from consilience.solvers.hinge import HingeLoss
from consilience.solvers.linalg import without_rounding
from consilience.solvers.margin_labels import LabelKernel
from consilience.solvers.metric import RootBounds, direct_metric, dual_value, metric_roots, rank_one_metric
from consilience.solvers.vector_valued import _is_diagonal

rng = np.random.default_rng(0)


def test_columns_of_views_stand_side_by_side():
    assert view_columns([2, 3, 0, 1]) == [slice(0, 2), slice(2, 5), slice(5, 5), slice(5, 6)]
    assert view_columns([]) == []


def test_only_negative_eigenvalues_of_rounding_are_taken_away():
    low = rng.normal(size=(12, 2))
    definite = low @ low.T + np.eye(12)
    assert without_rounding(definite) is definite
    for dtype, error in ((np.float32, 1e-6), (np.float64, 1e-14)):
        rounded = (low @ low.T).astype(dtype)
        rounded = (rounded + rounded.T) / 2
        found = without_rounding(rounded)
        assert found.dtype == np.float64
        assert np.linalg.eigvalsh(found)[0] >= -1e-14
        assert np.abs(found - rounded).max() <= error * np.abs(rounded).max()
        assert np.linalg.matrix_rank(found, tol=1e-9) == 2
        indefinite = rounded - 0.1 * np.eye(12, dtype=dtype)
        assert without_rounding(indefinite) is indefinite


@pytest.mark.parametrize("kappa", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("moments", [True, False])
def test_the_metric_of_one_output_meets_its_equation(moments, kappa):
    M, y = rng.normal(size=(15, 8)), rng.normal(size=(15, 1))
    A, b = (M.T @ M, M.T @ y) if moments else (M @ M.T, y)
    x = direct_metric(A, b, kappa, moments=moments)
    g = x if moments else M.T @ x
    slope = 2 * M.T @ (y - M @ g) - 4 / 3 * kappa * np.linalg.norm(g) ** (-2 / 3) * g  # of |y - Mg|² + κ|g|^(4/3)
    assert np.abs(slope).max() <= 1e-9 * np.abs(M.T @ y).max()
    assert not direct_metric(A, 0 * b, kappa, moments=moments).any()


def test_steps_to_a_root_are_newtons_until_they_do_not_halve_the_excess():
    bounds = RootBounds()
    assert bounds.step(0.0, 3.0, 2.0) == -1.5  # between -3 and -1
    assert bounds.step(-1.5, 1.6, 2.0) == pytest.approx((-3 - 1.5 - 1.6 / 3) / 2)  # not halved: the middle
    assert bounds.step(-2.0, 0.7, 2.0) == pytest.approx(-2.35)
    assert bounds.step(-2.3, -0.1, 1.0) == pytest.approx(-2.0 - 0.7 / 3)  # Newton's step ends at the bound
    assert (bounds.low, bounds.high) == (pytest.approx(-2.3 + 0.1 / 3), pytest.approx(-2.0 - 0.7 / 3))


def test_roots_of_metrics_meet_their_equation_and_zeros_have_none():
    e = np.array([0.5, 2.0, 7.0])
    squares = rng.uniform(size=(3, 4))
    squares[:, 2] = 0
    rho = metric_roots(e, squares, 0.8)
    assert rho[2] == np.inf
    for p in (0, 1, 3):
        assert rho[p] ** 3 * np.sum(squares[:, p] / (e + rho[p]) ** 2) == pytest.approx((2 * 0.8 / 3) ** 3, rel=1e-10)


def test_metrics_of_rank_one_have_the_objective_of_their_definition():
    M, Y = rng.normal(size=(9, 5)), rng.normal(size=(9, 3))
    V, root, _ = np.linalg.svd(M, full_matrices=False)
    Z = V.T @ Y
    spectrum = MetricSpectrum(root[::-1] ** 2, V[:, ::-1], Z[::-1], np.sum(Y**2, axis=0) - np.sum(Z**2, axis=0))
    solution = rank_one_metric(spectrum, 0.7)
    G = M.T @ V[:, ::-1] @ solution.x
    expected = np.sum((Y - M @ G) ** 2) + 0.7 * np.sum(np.linalg.norm(G, axis=0) ** (4 / 3))
    assert solution.objective == pytest.approx(expected)
    assert solution.status == "exact"
    assert 0 <= solution.gap <= 1e-9
    for _ in range(20):  # a minimum
        other = G + 1e-3 * rng.normal(size=G.shape)
        assert np.sum((Y - M @ other) ** 2) + 0.7 * np.sum(np.linalg.norm(other, axis=0) ** (4 / 3)) > expected


def test_the_gap_of_metrics_of_rank_one_bounds_what_a_wrong_root_costs(monkeypatch):
    M, Y = rng.normal(size=(9, 5)), rng.normal(size=(9, 3))
    V, root, _ = np.linalg.svd(M, full_matrices=False)
    spectrum = MetricSpectrum(root**2, V, V.T @ Y, np.sum(Y**2, axis=0) - np.sum((V.T @ Y) ** 2, axis=0))
    best = rank_one_metric(spectrum, 0.7)
    monkeypatch.setattr(metric, "metric_roots", lambda *given: 1.5 * metric_roots(*given))
    worse = rank_one_metric(spectrum, 0.7)
    assert worse.status == "inexact"
    assert worse.gap >= worse.objective - best.objective > 1e-3


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_labels_of_a_kernel_have_vectors_with_its_inner_products(scale):
    Y = rng.normal(size=(6, 2))
    labels = LabelKernel.of_matrix(np.arange(6), scale * Y @ Y.T)
    vectors = labels.as_vectors()
    assert vectors.shape == (6, 2)
    np.testing.assert_allclose(vectors @ vectors.T, scale * Y @ Y.T, rtol=1e-9, atol=1e-12 * scale)
    assert labels.longest() == pytest.approx(scale * np.max(np.sum(Y**2, axis=1)))


def test_outputs_without_a_function_leave_their_squares_in_the_objective():
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    model = cs.CoRegularizedRidge(RBF(0.3), output_kernel=np.diag([1.0, 0.0]))
    alone = model.fit(X, y * [1, 0]).certificate().objective
    for factor in (1.0, 3.0):
        proof = model.fit(X, y * [1, factor]).certificate()
        assert proof.objective - alone == pytest.approx(np.mean((factor * y[:, 1]) ** 2))
        assert not model.predict(X)[:, 1].any()


def test_the_gap_of_learned_kernel_weights_is_not_below_the_true_one():
    X = cs.Views(a=rng.normal(size=(30, 2)), b=rng.normal(size=(30, 3)))
    y = X["a"][:, 0] * X["b"][:, 1]
    best = cs.MultipleKernelRidge(RBF(0.5), p=1.5, tol=1e-12).fit(X, y).certificate()
    for max_iter in (1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            early = cs.MultipleKernelRidge(RBF(0.5), p=1.5, tol=1e-15, max_iter=max_iter).fit(X, y).certificate()
        assert early.gap >= early.objective - best.objective - 1e-12
        assert early.gap >= 0


def test_matrices_are_diagonal_to_rounding_or_not():
    D = np.diag([1.0, 2.0, -3.0])
    assert _is_diagonal(D)
    assert _is_diagonal(D + 1e-13)
    for off in (1e-3, -1e-3, 5.0):
        assert not _is_diagonal(D + off * (1 - np.eye(3)))


def test_dual_values_of_metrics_are_bounds_at_their_best_multiple():
    for products, losses, fourth, kappa in ((2.0, 1.5, 0.7, 0.9), (1.0, 1.0, 1e-3, 2.0), (3.0, 0.5, 4.0, 1.3)):
        t = np.linspace(0, 5, 200_001)
        best = np.max(2 * t * products - t**2 * losses - t**4 * 27 / 16 * fourth / kappa**3)
        found = float(dual_value(np.array(products), np.array(losses), np.array(fourth), kappa))
        assert found <= best + 1e-9
        assert found >= 2 * products - losses - 27 / 16 * fourth / kappa**3
        assert found == pytest.approx(best, rel=0.02)
    # where the residuals are the best ones, the value at them is returned
    assert float(dual_value(np.array(2.0), np.array(1.0), np.array(0.0), 1.0)) == pytest.approx(4.0)


def test_programs_over_all_pairs_that_would_not_fit_are_refused(monkeypatch):
    loss = object.__new__(HingeLoss)
    monkeypatch.setattr(HingeLoss, "signs", np.zeros((10_000, 3)), raising=False)
    with pytest.raises(ValueError, match=r"10000 labeled samples and 3 classes has a matrix of 7\.2 GB; at most 4 GB"):
        loss.check_size()
    monkeypatch.setattr(HingeLoss, "signs", np.zeros((7000, 3)), raising=False)
    loss.check_size()
