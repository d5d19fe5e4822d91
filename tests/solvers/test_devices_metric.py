"""Metrics, multiple kernels and output kernels on arrays of other libraries: the results are NumPy's."""

import numpy as np
import pytest

from cases import random_mask
from consilience._backend import is_device_array, to_numpy
from consilience.kernels import RBF
from consilience.solvers.alternating_metric import AlternatingMetric
from consilience.solvers.design import FeatureDesign, FeatureRows, GramDesign
from consilience.solvers.design_matrix import DesignMatrix
from consilience.solvers.fixed_metric import FixedMetric
from consilience.solvers.held_out_metric import HeldOutFixed, HeldOutLearned, HeldOutShared, HeldOutSparse
from consilience.solvers.learned_metric import BlockSparseMetric, MetricPerOutput, SharedMetric
from consilience.solvers.moment_matrix import MomentMatrix
from consilience.solvers.multiple_kernels import MultipleKernels, OutputKernel

STEPS = {"tol": 1e-9, "max_iter": 300}
W = np.array([0.5, 0.3, 0.4])


def torch_array(values):
    return pytest.importorskip("torch", reason="torch is not installed").asarray(values)


def strict_array(values):
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not installed").asarray(values)


@pytest.fixture(params=[torch_array, strict_array], ids=["torch", "strict"])
def library(request):
    request.param(np.zeros(1))
    return request.param


def of_kernels(missing, to, *, P=3, roots=False, n=30):
    """The matrix over Gram matrices of three views, as arrays of a library."""
    rng = np.random.default_rng(0)
    present = random_mask(rng, n, 3, missing)
    blocks = [rng.normal(size=(n, 3)) for _ in range(3)]
    rows = [np.flatnonzero(there) for there in present.T]
    grams = [to(RBF(0.3)(block[here])) for block, here in zip(blocks, rows, strict=True)]
    Y = np.sin(blocks[0] @ rng.normal(size=(3, P))) + 0.2 * rng.normal(size=(n, P))
    s, u = rng.random(n) + 0.5, rng.random(n) + 0.5
    return DesignMatrix(GramDesign(grams, rows, n, s), Y, u, roots=roots)


def of_features(missing, to, *, P=3, roots=False, n=40):
    """The matrix over features of three views, in blocks of rows that are arrays of a library."""
    rng = np.random.default_rng(1)
    present = random_mask(rng, n, 3, missing)
    Phi = rng.normal(size=(n, 9)) * np.repeat(present, 3, axis=1)
    Y = Phi[:, :5] @ rng.normal(size=(5, P)) + 0.3 * rng.normal(size=(n, P))
    s = rng.random(n) + 0.5
    cuts = [slice(0, 17), slice(17, n)]
    blocks = [FeatureRows(to(Phi[r]), present[r], s[r], 1.5 * s[r], Y[r]) for r in cuts]
    return MomentMatrix(FeatureDesign(lambda: iter(blocks), [3, 3, 3], P))


def metric_of(system):
    F = np.random.default_rng(2).normal(size=(sum(system.sizes), sum(system.sizes)))
    return F @ F.T / len(F)


PROBLEMS = {
    "learned": lambda system, **given: MetricPerOutput(system, 0.3, 0.5, **STEPS).solve(**given),
    "shared": lambda system, **given: SharedMetric(system, 0.3, 0.5, **STEPS).solve(**given),
    "block_sparse": lambda system, **given: BlockSparseMetric(system, 0.5, 0.5, **STEPS).solve(**given),
    "covariance": lambda system, **given: FixedMetric(system, "covariance", 0.3, **STEPS).solve(**given),
    "diagonal": lambda system, **given: FixedMetric(system, "diagonal", 0.3, **STEPS).solve(**given),
    "given": lambda system, **given: FixedMetric(system, metric_of(system), 0.3, **STEPS).solve(**given),
    "mkl": lambda system, w: MultipleKernels(system, 1.0, 1.5, shared=True).solve(**STEPS),
    "okl": lambda system, w: OutputKernel(system, 0.5).solve(w, **STEPS),
}
ROOTS = ("diagonal", "mkl", "okl")


def check_equal(one, other):
    """Compare a solution of NumPy with one of a device."""
    assert one.status == other.status
    assert other.objective == pytest.approx(one.objective, rel=1e-10)
    for mine, theirs in zip(one.x[0], other.x[0], strict=True):
        assert is_device_array(theirs)
        np.testing.assert_allclose(to_numpy(theirs), mine, atol=1e-10 * max(np.abs(mine).max(), 1))
    np.testing.assert_allclose(other.x[1], one.x[1], atol=1e-10)
    if one.bound is not None:
        assert other.bound == pytest.approx(one.bound, rel=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("form", [of_kernels, of_features])
def test_a_device_has_the_solution_of_numpy(library, form, name, missing):
    systems = [form(missing, to, roots=name in ROOTS) for to in (np.asarray, library)]
    check_equal(*(PROBLEMS[name](system, w=W) for system in systems))


@pytest.mark.parametrize("P", [1, 50])
@pytest.mark.parametrize("name", ["learned", "shared", "block_sparse", "mkl", "okl"])
@pytest.mark.parametrize("form", [of_kernels, of_features])
def test_one_output_and_more_outputs_than_rows(library, form, name, P):
    systems = [form(0.0, to, P=P, roots=name in ROOTS) for to in (np.asarray, library)]
    check_equal(*(PROBLEMS[name](system, w=W) for system in systems))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", ["learned", "shared", "block_sparse", "covariance", "diagonal"])
@pytest.mark.parametrize("form", [of_kernels, of_features])
def test_value_and_slopes_in_the_weights(library, form, name, missing):
    found = []
    for to in (np.asarray, library):
        system = form(missing, to, roots=name in ROOTS)
        kinds = {"learned": MetricPerOutput, "shared": SharedMetric, "block_sparse": BlockSparseMetric}
        problem = kinds[name](system, 0.3, 0.5, **STEPS) if name in kinds else FixedMetric(system, name, 0.3, **STEPS)
        found.append(problem.evaluate(W))
    (value, slopes, bound), (same, others, also) = found
    assert same == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(others, slopes, atol=1e-8 * np.abs(slopes).max())
    assert (bound is None) == (also is None) == (missing > 0 or name in ("shared", "block_sparse"))
    assert bound is None or also == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("form", [of_kernels, of_features])
def test_held_out_residuals(library, form, missing):
    pairs = [(0.1, 1.0), (2.0, 0.5)]
    found = []
    for to in (np.asarray, library):
        system = form(missing, to)
        held = [
            HeldOutLearned(system, W),
            HeldOutShared(system, W, **STEPS),
            HeldOutSparse(system, W, **STEPS),
            HeldOutFixed(FixedMetric(system, "covariance", 1.0, **STEPS), W),
        ]
        found.append([[part for _, (_, _, part) in one.residuals(pairs)] for one in held])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(np.concatenate(theirs), np.concatenate(mine), atol=1e-9)


def test_no_square_matrix_is_copied_to_the_host(library, monkeypatch):
    """Over Gram matrices only columns, one for each output or direction, leave the device."""
    from consilience.solvers import (
        design_matrix,
        fixed_metric,
        held_out_metric,
        kernel_weights,
        learned_metric,
        linalg,
        metric,
    )

    sizes = []

    def watched(x):
        if is_device_array(x):
            sizes.append(tuple(x.shape))
        return to_numpy(x)

    modules = [design_matrix, fixed_metric, held_out_metric, kernel_weights, learned_metric, linalg, metric]
    for module in modules:
        if hasattr(module, "to_numpy"):
            monkeypatch.setattr(module, "to_numpy", watched)
    for name, solve in PROBLEMS.items():
        for P in (1, 3):
            solve(of_kernels(0.3, library, P=P, roots=name in ROOTS), w=W)
    assert sizes
    assert max(int(np.prod(shape)) for shape in sizes) <= 30 * 3 * 3  # outputs of three views


def test_the_published_scheme_refuses_devices(library):
    problem = MetricPerOutput(of_features(0.0, library), 0.3, 0.5, **STEPS)
    with pytest.raises(ValueError, match="solver='alternating' works with NumPy arrays"):
        AlternatingMetric(problem).solve(W)
