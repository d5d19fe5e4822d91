"""At an optimum the residual of the optimality conditions is rounding."""

import numpy as np
import pytest

import consilience as cs
from consilience.kernels import RBF

rng = np.random.default_rng(0)
A, B = rng.normal(size=(25, 3)), rng.normal(size=(25, 2))
MASK = np.column_stack([np.arange(25) % 4 > 0, np.arange(25) % 5 > 0])
MASK[~MASK.any(axis=1), 0] = True
VIEWS = {"all views": cs.Views(a=A, b=B), "missing views": cs.Views({"a": A, "b": B}, mask=MASK)}
Y = np.column_stack([A[:, 0] + B[:, 1], B[:, 0], rng.normal(size=25)])


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("n_components", [None, 9])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("metric", "shared"), [("learned", False), ("learned", True), ("block_sparse", False)])
def test_optimality_conditions_of_learned_metrics_hold(metric, shared, outputs, n_components, name):
    model = cs.ViewMetricRidge(
        RBF(0.3),
        metric=metric,
        shared_metric=shared,
        tol=1e-12,
        max_iter=3000,
        n_components=n_components,
        random_state=0,
    )
    proof = model.fit(VIEWS[name], Y[:, :outputs]).certificate()
    assert proof.status in ("exact", "converged")
    assert proof.gap <= 1e-11 * proof.objective
    assert proof.residual <= 1e-6 * proof.objective  # the root of the relative gap


def test_alternation_ends_where_the_objective_rests():
    model = cs.ViewMetricRidge(RBF(0.3), solver="alternating", tol=1e-4, max_iter=500).fit(VIEWS["all views"], Y[:, :1])
    assert model.certificate().status == "settled"
    assert 1 <= model.n_iter_ < 500
