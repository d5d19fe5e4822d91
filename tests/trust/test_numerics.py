"""Hostile numbers: the short run, every function of the solvers is known, and faults are found."""

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import cases
import consilience as cs
from consilience.kernels import RBF
from consilience.solvers import held_out_errors, linalg, metric, sphere
from consilience.solvers.certificates import Certificate

sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

numerics = importlib.import_module("numerics")
solvers = importlib.import_module("_solvers")


def test_the_short_run_has_no_failures():
    found = numerics.run(False)
    assert [figure.failed for figure in found.figures] == [0, 0]
    assert found.figures[0].tried >= len(cases.LEARNERS)
    assert len(found.tables[1][2]) == len(cases.LEARNERS)
    assert all(len(row) == len(found.tables[1][1]) for row in found.tables[1][2])


def test_every_public_function_of_the_solvers_is_tried_or_has_a_reason():
    assert not set(solvers.CALLS) & set(solvers.COVERED)
    assert sorted([*solvers.CALLS, *solvers.COVERED]) == sorted(solvers.public_functions())


# -- faults are found
def outcome(model, condition):
    cell = numerics.try_cell(model, condition, [0])
    return cell.outcomes[0]


def nan(self, X):
    return np.full(len(X), np.nan)


def loud(self, X, predict=cs.CoRegularizedRidge.predict):
    warnings.warn("overflow encountered in multiply", RuntimeWarning, stacklevel=1)
    return predict(self, X)


def greedy(self, X, y, sample_weight=None, fit=cs.CoRegularizedRidge.fit):
    y *= 2
    return fit(self, X, y, sample_weight)


def raw(self, X, y, sample_weight=None):
    raise ValueError("operands could not be broadcast together with shapes (3,) (4,).")


def uncounted(self, X, y, sample_weight=None, fit=cs.CoRegularizedRidge.fit):
    return fit(self, X, y)


def silent(self):
    return Certificate("inexact", objective=1.0, gap=0.5)


def boastful(self):
    return Certificate("exact", objective=1.0, gap=0.5)


SABOTAGE = {
    "predict": (nan, "width 1", "not finite"),
    "predict with a warning": (loud, "width 1", "RuntimeWarning"),
    "fit that changes": (greedy, "width 1", "input was changed"),
    "fit that raises": (raw, "width 1", "raw text"),
    "fit without weights": (uncounted, "duplicated rows", "differs from its equal"),
    "certificate": (silent, "width 1", "without a warning"),
    "certificate that boasts": (boastful, "width 1", "but the gap is"),
}


@pytest.mark.parametrize("what", SABOTAGE)
def test_a_fault_is_found(what, monkeypatch):
    change, condition, text = SABOTAGE[what]
    assert outcome("coregularized ridge", condition).mark == "certified"
    monkeypatch.setattr(cs.CoRegularizedRidge, what.split()[0], change)
    found = outcome("coregularized ridge", condition)
    assert found.mark == "failed"
    assert text in found.text


def test_accepting_what_must_be_refused_is_a_fault(monkeypatch):
    assert outcome("coregularized ridge", "inf").mark == "refused"
    monkeypatch.setattr(cs.CoRegularizedRidge, "fit", lambda self, X, y: self)
    monkeypatch.setattr(cs.CoRegularizedRidge, "predict", lambda self, X: np.zeros(len(X["a"])))
    monkeypatch.setattr(cs.CoRegularizedRidge, "certificate", lambda self: Certificate("exact"))
    assert outcome("coregularized ridge", "inf").mark == "failed"


def test_a_fault_of_a_solver_is_found(monkeypatch):
    assert numerics.try_solver("linalg.solve", "plain", 0).mark == "answered"
    monkeypatch.setattr(linalg, "solve", lambda L, T: T)
    assert numerics.try_solver("linalg.solve", "plain", 0).mark == "failed"


# -- faults that were found
@pytest.mark.parametrize("cls", [cs.OutputKernelRidge, cs.OutputKernelRidgeClassifier])
def test_a_kernel_of_zeros_explains_nothing(cls):
    y = np.arange(9) % 3
    proof = cls("precomputed").fit(cases.gram_views([np.zeros((9, 9))]), y).certificate()
    targets = y if cls is cs.OutputKernelRidge else np.where(y[:, None] == np.arange(3), 1, -1)
    assert proof.objective == pytest.approx(np.sum(targets**2))
    assert proof.gap == pytest.approx(0, abs=1e-12 * proof.objective)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1e-100, 1e-300])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_metrics_of_any_targets_are_certified(factor, n_outputs):
    rng = np.random.default_rng(0)
    A, Y = rng.normal(size=(12, 3)), factor * rng.normal(size=(12, n_outputs))
    for shared in (False, True):
        model = cs.ViewMetricRidge(RBF(0.5), shared_metric=shared).fit(A, Y)
        assert model.certificate().status in ("exact", "converged")
        assert np.isfinite(model.predict(A)).all()


@pytest.mark.filterwarnings("error")
def test_roots_of_metrics_at_the_ends_of_floating_point():
    e, squares = np.array([0.0, 1e-200, 1e-198]), np.array([[1e-200], [1e-200], [1e-199]])
    rho = metric.metric_roots(e, squares, 1.0)
    assert 3 * np.log(rho) + np.log(np.sum(squares)) - 2 * np.log(rho) == pytest.approx(3 * np.log(2 / 3))
    assert metric.metric_roots(e, 1e-120 * squares, 1e10)[0] == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("size", "right"), [(1e60, 1.0), (1.0, 1e-100), (1e-60, 1e60)])
def test_least_squares_on_a_sphere_of_any_scale(size, right):
    rng = np.random.default_rng(0)
    A, b = size * rng.normal(size=(8, 3)), right * rng.normal(size=8)
    x = sphere.sphere_least_squares(A, b, 2.0)
    assert np.linalg.norm(x) == pytest.approx(2.0)
    others = rng.normal(size=(500, 3))
    others *= 2 / np.linalg.norm(others, axis=1)[:, None]
    assert np.linalg.norm(A @ x - b) <= np.linalg.norm(A @ others.T - b[:, None], axis=0).min() * (1 + 1e-12)


@pytest.mark.filterwarnings("error")
def test_filters_of_a_spectrum_of_zeros_and_factors_of_large_numbers():
    basis = held_out_errors.filter_basis(np.zeros(3), np.ones((2, 3)), 1e-12)
    assert np.isfinite(basis.coefficients).all()
    U = linalg.upper_factor(np.eye(3, dtype=np.float32, order="F"))
    np.testing.assert_allclose(linalg.factor_solve(U, np.full((3, 1), 1e60)), 1e60, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_scores_that_overflow_are_refused_without_a_warning_of_numpy():
    rng = np.random.default_rng(0)
    X, y = 1e100 * rng.normal(size=(24, 3)), np.arange(24) % 3
    model = cs.VectorPerceptron("linear", shuffle=False, variant="coefficients", eta0=0.01)
    with pytest.raises(ValueError, match=r"has no finite prediction for sample \d+|found no finite solution"):
        model.fit(X, y).decision_function(X)
