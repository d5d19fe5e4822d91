"""Parts of the solvers by their definitions: what steps count, what slopes are, what factors invert.

A solver that corrects itself until its gap is small would hide a fault here, and only take longer.
"""

import numpy as np
import pytest

import consilience as cs
from consilience.solvers import box_qp, coregularized_svm, kernel_weights
from consilience.solvers._coordinates import class_steps
from consilience.solvers.alternating_metric import _factored
from consilience.solvers.coupled_features import CoupledFeatures
from consilience.solvers.design import FeatureDesign, FeatureRows
from consilience.solvers.design_matrix import MetricSpectrum
from consilience.solvers.kernel_weights import BlockNorm, GramFit
from consilience.solvers.output_kernel import learn_output_kernel
from consilience.solvers.responses import Factored, Formed
from consilience.solvers.stacking import least_squares, violation
from consilience.solvers.vector_valued import _Multiplied


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_turn_over_the_classes_counts_its_steps():
    """With a diagonal Q each variable that violates moves once, to its minimum or its bound."""
    ends, sizes = np.array([2, 5]), np.array([2, 3])
    grams = np.concatenate([np.diag([2.0] * size).ravel() for size in sizes])
    g = np.array([-1.0, 0.0, -4.0, 1.0, -1.0])
    a, upper, none = np.zeros(5), np.full(5, 1.0), np.zeros((5, 1))
    given = (ends, grams, np.array([0, 4, 13]), 0.0, none, np.zeros(1), np.zeros((2, 1)))
    assert class_steps(*given, g, a, upper, 1e-9, 3) == 3
    np.testing.assert_array_equal(a, [0.5, 0, 1, 0, 0.5])
    assert class_steps(*given, g, a, upper, 1e-9, 3) == 0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_components", [None, 12])
@pytest.mark.parametrize("vectors", ["ovr", "simplex"])
def test_slopes_of_machines_in_the_weights_are_differences(rng, vectors, n_components, missing, monkeypatch):
    """The value is a function of cc' where no view is missing: its slope in c is then 2 (slope in cc') c."""
    y = rng.integers(3, size=40)
    blocks = {"a": rng.normal(size=(40, 4)) + y[:, None], "b": rng.normal(size=(40, 3)) - (y == 1)[:, None]}
    mask = np.ones((40, 2), dtype=bool)
    mask[::5, 0], mask[3::7, 1] = not missing, True
    evaluations = []
    learn = coregularized_svm.learn_weights
    monkeypatch.setattr(
        coregularized_svm, "learn_weights", lambda f, *a, **k: (evaluations.append(f), learn(f, *a, **k))[1]
    )
    cs.CoRegularizedSVC(
        "rbf", alpha=1e-2, agreement_penalty=1e-2, class_vectors=vectors, view_weights="learned", tol=1e-9,
        max_iter=500, n_components=n_components, random_state=0,
    ).fit(cs.Views(blocks, mask=mask), y)  # fmt: skip
    (evaluate,) = evaluations
    for c in ([0.6, 0.8], [0.9, 0.3]):
        _, slopes, proof = evaluate(np.array(c))
        ends = [[evaluate(c + sign * 1e-4 * e)[0] for sign in (1, -1)] for e in np.eye(2)]
        differences = [(up - down) / 2e-4 for up, down in ends]
        np.testing.assert_allclose(slopes, differences, rtol=2e-3, atol=1e-6)
        assert (proof is None) == missing
        if proof is not None:
            np.testing.assert_allclose(2 * proof @ c, slopes, rtol=1e-6)


def test_factors_are_the_inverse_of_the_curvature_over_free_variables(rng):
    X, half = rng.normal(size=(8, 20)), np.diag([0.5, 3.0])
    Q, free, signs = X @ X.T, np.ones((8, 2), dtype=bool), np.where(rng.random((8, 2)) < 0.5, 1.0, -1.0)
    free[:3, 0] = False
    factors = box_qp._Factors(Q, half, free, 0.0)
    V = np.where(free, rng.normal(size=(8, 2)), 0)
    R = np.where(free, signs * (Q @ (signs * V)) @ half, 0)
    np.testing.assert_allclose(factors.solve(R, signs), V, atol=1e-3)
    free = free & (np.arange(8) != 5)[:, None]  # held since then
    factors.hold(free)
    V = np.where(free, V, 0)
    R = np.where(free, signs * (Q @ (signs * V)) @ half, 0)
    np.testing.assert_allclose(factors.solve(R, signs), V, atol=1e-3)


def test_classes_beyond_the_memory_of_factors_are_scaled_by_their_diagonal(rng, monkeypatch):
    monkeypatch.setattr(box_qp, "_ENTRIES", 2 * 8**2)
    X, half, signs = rng.normal(size=(8, 20)), np.diag([0.5, 3.0, 2.0]), np.where(rng.random((8, 3)) < 0.5, 1.0, -1.0)
    Q, V = X @ X.T, rng.normal(size=(8, 3))
    R = signs * (Q @ (signs * V)) @ half
    found = box_qp._Factors(Q, half, np.ones((8, 3), dtype=bool), 0.0).solve(R, signs)
    np.testing.assert_allclose(found[:, :2], V[:, :2], atol=1e-3)
    np.testing.assert_allclose(found[:, 2], R[:, 2] / (2.0 * Q.diagonal()), rtol=1e-12)


def test_the_last_digits_of_kernel_weights_stay_above_zero():
    """The Newton step from here leaves x > 0 in one variable: the point stays as it is."""

    def target(x):
        return float(np.sum((x - [2.0, -1.0]) ** 2)), 2 * (x - [2.0, -1.0])

    start = np.array([1.0, 1.0])
    np.testing.assert_array_equal(kernel_weights._polish(target, None, start), start)
    np.testing.assert_allclose(kernel_weights._polish(target, None, np.array([1.0, 0.0])), [2, 0], atol=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_one_norm_that_is_not_finite_leaves_no_bound(wrong):
    with pytest.raises(FloatingPointError, match="norms are not finite"):
        BlockNorm(0.5, 2.0).room(np.array([1.0, wrong]))


def test_stacking_violates_optimality_by_weights_that_should_be_positive(rng):
    """The slope of β'Gβ/2 - b'β is 0 where β > 0 and not below 0 elsewhere; relative to the largest b."""
    b = np.array([2.0, 1.0, -4.0])
    assert violation(np.eye(3), b, np.zeros(3)) == 0.5
    assert violation(np.eye(3), b, np.array([2.0, 1.0, 0.0])) == 0
    assert violation(np.eye(3), b, np.array([2.0, 1.0, 1.0])) == 1.25
    A = rng.normal(size=(20, 3))
    assert violation(A.T @ A, A.T @ A @ np.ones(3), least_squares(A.T @ A, A.T @ A @ np.ones(3))) < 1e-12


def test_without_kernels_the_objective_falls_by_their_products_with_the_targets(rng):
    Y, F = 0.1 * rng.normal(size=(6, 2)), [0.1 * rng.normal(size=(6, 3)) for _ in range(2)]
    found = GramFit([own @ own.T for own in F], Y).at_zero()
    expected = [np.sum((own.T @ Y) ** 2) for own in F]
    np.testing.assert_allclose(found.descent, expected, rtol=1e-12)
    assert max(expected) < 1
    assert found.value == found.loss == pytest.approx(np.sum(Y**2))


@pytest.mark.parametrize(("noise", "taken"), [(1e-10, True), (1e-5, False)])
def test_an_operator_is_symmetric_to_rounding(rng, noise, taken):
    F = rng.normal(size=(5, 3))
    M = F @ F.T
    M[0, 1] += noise * np.abs(M).max()
    K = np.eye(5)
    if taken:
        _Multiplied(K, K, 0.1, lambda x: M @ x, 1.0)
    else:
        with pytest.raises(ValueError, match="not symmetric"):
            _Multiplied(K, K, 0.1, lambda x: M @ x, 1.0)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1e9])
def test_the_response_of_a_view_keeps_its_digits_for_kernels_of_any_size(rng, size):
    F = rng.normal(size=(7, 9))
    K, a, diagonal = size * F @ F.T, 0.7, np.linspace(0.5, 2, 7)
    expected = K @ np.linalg.inv(a * np.eye(7) + diagonal[:, None] * K)  # (aK⁻¹ + p²)⁻¹
    found = Formed(K, a, diagonal, None, 0.0)
    np.testing.assert_allclose(found.E, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    p = np.sqrt(diagonal)
    np.testing.assert_allclose(found.complement, np.eye(7) - p[:, None] * expected * p, atol=1e-12)


@pytest.mark.parametrize("response", [Factored, Formed])
@pytest.mark.parametrize("a", [0.05, 20.0])
def test_coefficients_solve_their_equations_where_the_kernel_is_large(rng, response, a):
    """(aI + BK)x = b to rounding: a product with K alone would lose as many digits as K is larger than a."""
    F, B, b = rng.normal(size=(7, 9)), np.linspace(0.5, 2, 7)[:, None], rng.normal(size=(7, 2))
    K = 1e7 * F @ F.T
    x = response(K, a, B[:, 0], None, 0.0).coefficients(b)
    np.testing.assert_allclose(a * x + B * (K @ x), b, atol=1e-11)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_products_of_the_outputs_of_views_stand_for_the_outputs(rng, size):
    """For outputs F, R'R = F'uF and R'q = F'uy, with targets of any size."""
    Phi, u = rng.normal(size=(30, 5)), rng.uniform(0.5, 2, size=30)
    Y = size * (Phi @ rng.normal(size=(5, 2)) + rng.normal(size=(30, 2)))
    rows = FeatureRows(Phi, np.ones((30, 2), dtype=bool), np.ones(30), u, Y)
    problem = CoupledFeatures(FeatureDesign(lambda: iter([rows]), [2, 3], 2), ridge=0.3, agreement_penalty=0.1)
    c = np.array([0.6, 0.4])
    ((_, R, q),) = problem.view_outputs([c], None)
    W = problem.ridge_fit(c, None).coefficients
    F = np.stack([Phi[:, own] @ part for own, part in zip((slice(0, 2), slice(2, 5)), W, strict=True)])
    np.testing.assert_allclose(R.T @ R, np.einsum("vip,i,wip->vw", F, u, F), rtol=1e-9)
    np.testing.assert_allclose(R.T @ q, np.einsum("vip,i,ip->v", F, u, Y), rtol=1e-9)


@pytest.mark.parametrize("seed", [1, 4, 10])
def test_steps_to_an_output_kernel_do_not_depend_on_the_unit_of_the_features(seed):
    """With the features times √c and η times c² the objective is the same, and C is divided by c."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(20, 5)) * np.logspace(0, -2, 5)
    Y = rng.normal(size=(20, 5)) @ rng.normal(size=(5, 5))
    V, s, _ = np.linalg.svd(M, full_matrices=False)
    Z, found = V.T @ Y, []
    for c in (1.0, 2.0**60, 2.0**-60):
        spectrum = MetricSpectrum(c * s[::-1] ** 2, V[:, ::-1], Z[::-1], np.sum(Y**2, axis=0) - np.sum(Z**2, axis=0))
        found.append(learn_output_kernel(spectrum, 0.3, 0.3 * c**2, tol=1e-10, max_iter=30))
        np.testing.assert_allclose(c * found[-1].x[2], found[0].x[2], rtol=1e-6)
    assert {solution.status for solution in found} == {"converged"}
    assert len({solution.n_iter for solution in found}) == 1
    np.testing.assert_allclose([solution.objective for solution in found], found[0].objective, rtol=1e-9)


def test_metrics_are_factored_with_signs_only_where_they_are_indefinite(rng):
    F = rng.normal(size=(6, 2))
    for A, definite in ((F @ F.T, True), (F @ np.diag([1.0, -1.0]) @ F.T, False), (np.zeros((3, 3)), True)):
        found, signs, least = _factored(A)
        assert (signs is None) == definite
        np.testing.assert_allclose((found if signs is None else found * signs) @ found.T, A, atol=1e-12)
        assert least == pytest.approx(min(np.linalg.eigvalsh(A)[0], 0), abs=1e-12)
