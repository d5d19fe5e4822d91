"""Certificates are those of independent computations, every estimator with a gap is tried, and false ones are found."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import cases
import consilience as cs
from consilience.kernels import RBF
from consilience.online import _bounds
from consilience.solvers import kernel_weights, learned_metric

pytest.importorskip("clarabel", reason="cvxpy is not installed: conic comparisons run with the dev extra")
sys.path.insert(0, str(Path(__file__).parents[2] / "trust"))

certificates = importlib.import_module("certificates")
_claims = importlib.import_module("_claims")


def test_the_short_run_has_no_failures():
    found = certificates.run(False)
    assert [figure.failed for figure in found.figures] == [0, 0, 0]
    families = len(certificates.BATCH) + len(certificates.MOVED) + len(certificates.STREAMS)
    assert len(found.tables[0][2]) == families
    assert sum(figure.tried for figure in found.figures) >= 0.8 * families * certificates.SHORT
    assert all(int(row[2]) >= 0.75 * int(row[1]) for row in found.tables[0][2]), "the independent optima say little"


@pytest.mark.filterwarnings("ignore")
def test_every_estimator_with_a_gap_is_tried():
    rng = np.random.default_rng(0)
    X, tried = {"a": rng.normal(size=(12, 2)), "b": rng.normal(size=(12, 3))}, set()
    for model in cases.LEARNERS.values():
        fitted = clone(model).fit(X, np.arange(12) % 2 if is_classifier(model) else rng.normal(size=12))
        tried |= {type(model)} if fitted.certificate().gap is not None else set()
    assert tried == {cls for classes in certificates.BATCH.values() for cls in classes}


# -- false certificates are found
FALSE = {
    "objective": lambda proof: replace(proof, objective=proof.objective * (1 + 1e-6)),
    "gap": lambda proof: replace(proof, gap=0.0),  # solvers that stop early have one
}


@pytest.mark.parametrize("what", FALSE)
@pytest.mark.parametrize("family", [f for f in certificates.BATCH if f.__name__ in ("multiple_kernels", "max_margin")])
def test_a_false_certificate_is_found(family, what, monkeypatch):
    for cls in certificates.BATCH[family]:
        monkeypatch.setattr(cls, "certificate", lambda self, own=cls.certificate: FALSE[what](own(self)))
    assert any(certificates.try_family(family, [seed]).failures for seed in range(60))


def test_a_false_bound_on_mistakes_is_found(monkeypatch):
    monkeypatch.setattr(_bounds, "perceptron_bound", lambda loss, size, norm, **more: 0.5 * loss)
    family = next(f for f in certificates.STREAMS if f.__name__ == "mistakes")
    assert certificates.try_family(family, range(6)).failures


def test_errors_are_failures_and_refusals_are_counted():
    def fail(error):
        def family(rng):
            raise error

        return family

    assert certificates.try_family(fail(KeyError("a")), [0]).failures
    assert certificates.try_family(fail(ValueError("operands could not be broadcast")), [0]).failures
    assert certificates.try_family(fail(ValueError("View 'audio' has 90 rows, the others 100.")), [0, 1]).n_refused == 2


# -- faults that were found
def test_the_bound_of_a_block_sparse_metric_holds_for_coefficients_that_are_too_large():
    norm = kernel_weights.BlockNorm(1.0, 1.0)
    # Y = 1, M = 1, g = 3: B = -2, <B, Y> = -2; the optimum is 1, since 2|M'Y| = 2 is within the subgradients at 0
    fitted = kernel_weights.Fitted(-2.0, 4.0, np.array([4.0]), np.empty(0))
    assert norm.dual(fitted) <= 1.0
    family = next(f for f in certificates.MOVED if f.__name__ == "moved_metric")
    assert not certificates.try_family(family, range(3)).failures
    assert learned_metric.BlockSparseMetric.sparse


def test_the_gap_of_a_maximum_margin_is_that_of_double_precision():
    rng = np.random.default_rng(3)
    A, y = rng.normal(size=(25, 3)), np.arange(25) % 3
    K, V = RBF(0.05)(A), cs.simplex_vectors(3)
    model = cs.MaxMarginClassifier("precomputed", C=50.0, tol=1e-4).fit(cases.gram_views([K]), y)
    alpha = np.zeros(25)
    alpha[model.support_] = model.dual_coef_
    Q = K * (V @ V.T)[np.ix_(y, y)]
    primal, proof = 0.5 * alpha @ Q @ alpha + 50 * np.maximum(0, 1 - Q @ alpha).sum(), model.certificate()
    assert proof.objective == pytest.approx(primal, rel=1e-12)
    assert proof.gap == pytest.approx(primal - (alpha.sum() - 0.5 * alpha @ Q @ alpha), abs=1e-11 * primal)
