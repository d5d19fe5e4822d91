"""Parts of the solvers by their definitions: what steps count, what slopes are, what factors invert.

A solver that corrects itself until its gap is small would hide a fault here, and only take longer.
"""

import numpy as np
import pytest

import consilience as cs
from consilience.solvers import box_qp, coregularized_svm, kernel_weights
from consilience.solvers._coordinates import class_steps
from consilience.solvers.alternating_metric import _factored
from consilience.solvers.kernel_weights import GramFit
from consilience.solvers.responses import Formed
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


def test_the_last_digits_of_kernel_weights_stay_above_zero():
    """The Newton step from here leaves x > 0 in one variable: the point stays as it is."""

    def target(x):
        return float(np.sum((x - [2.0, -1.0]) ** 2)), 2 * (x - [2.0, -1.0])

    start = np.array([1.0, 1.0])
    np.testing.assert_array_equal(kernel_weights._polish(target, None, start), start)
    np.testing.assert_allclose(kernel_weights._polish(target, None, np.array([1.0, 0.0])), [2, 0], atol=1e-9)


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


def test_metrics_are_factored_with_signs_only_where_they_are_indefinite(rng):
    F = rng.normal(size=(6, 2))
    for A, definite in ((F @ F.T, True), (F @ np.diag([1.0, -1.0]) @ F.T, False), (np.zeros((3, 3)), True)):
        found, signs, least = _factored(A)
        assert (signs is None) == definite
        np.testing.assert_allclose((found if signs is None else found * signs) @ found.T, A, atol=1e-12)
        assert least == pytest.approx(min(np.linalg.eigvalsh(A)[0], 0), abs=1e-12)
