"""The functions of `consilience.solvers` on hostile arrays: what each is called with, and what its result must be."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
import consilience.solvers
from consilience.solvers import (
    banded_ridge,
    bounds,
    box_qp,
    consensus,
    held_out_errors,
    linalg,
    margin_features,
    output_kernel,
    sphere,
    stacking,
    svm_features,
    weights,
)
from consilience.solvers import metric as metrics
from consilience.solvers.alternating_metric import MetricMoments, alternate_metric, fixed_metric_steps
from consilience.solvers.certificates import Solution
from consilience.solvers.design_matrix import MetricSpectrum
from consilience.solvers.kernel_weights import GramFit, SquaredNorm, learn_kernel_weights
from consilience.solvers.margin import KernelRows, solve_margin
from consilience.solvers.margin_intercept import intercept_suffices, solve_margin_intercept
from consilience.solvers.margin_labels import LabelKernel


class Arrays(NamedTuple):
    """A problem as the solvers take it."""

    A: np.ndarray  # features, (n, 3)
    K: np.ndarray  # Gram matrix
    Y: np.ndarray  # (n, 2)
    codes: np.ndarray

    @property
    def ridge(self) -> np.ndarray:
        """K plus a little of the identity: positive definite."""
        size = float(np.abs(self.K).max())
        return np.array(self.K + (1e-3 * size if size else 1.0) * np.eye(len(self.K)), order="F", dtype=self.K.dtype)


# -- conditions: each changes well-behaved arrays
def _of(A: np.ndarray, data: Arrays) -> Arrays:
    return data._replace(A=A, K=A @ A.T)


def read_only(A: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written."""
    copy = A.copy()
    copy.setflags(write=False)
    return copy


def strided(A: np.ndarray) -> np.ndarray:
    """Return a view of some cells of a larger array."""
    large = np.zeros(tuple(2 * size for size in A.shape), dtype=A.dtype)
    inner = large[tuple(slice(None, None, -2) for _ in A.shape)]
    inner[...] = A
    return inner


def each(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays], Arrays]:
    """Return the condition in which each array is changed."""
    return lambda data: Arrays(*(change(part) for part in data))


#: Conditions, and whether the result must be that of the plain arrays.
CONDITIONS: dict[str, tuple[Callable[[Arrays], Arrays], bool]] = {
    "plain": (lambda data: data, False),
    "Fortran order": (each(np.asfortranarray), True),
    "read-only": (each(read_only), True),
    "strided": (each(strided), True),
    "duplicated rows": (lambda data: _of(np.repeat(data.A[: len(data.A) // 2], 2, axis=0), data), False),
    "rank one": (lambda data: _of(data.A[:, :1] * np.ones(3), data), False),
    "zeros": (lambda data: _of(0 * data.A, data), False),
    "rows scaled to 1e16": (lambda data: _of(np.logspace(-4, 4, len(data.A))[:, None] * data.A, data), False),
    "columns scaled to 1e16": (lambda data: _of(data.A * np.array([1e-4, 1.0, 1e4]), data), False),
    "values of 1e-100": (lambda data: _of(1e-100 * data.A, data), False),
    "values of 1e60": (lambda data: _of(1e60 * data.A, data), False),
    "targets of 1e-100": (lambda data: data._replace(Y=1e-100 * data.Y), False),
    "targets of 1e60": (lambda data: data._replace(Y=1e60 * data.Y), False),
    "targets of zero": (lambda data: data._replace(Y=0 * data.Y), False),
    "one sample": (lambda data: Arrays(data.A[:1], data.K[:1, :1], data.Y[:1], data.codes[:1]), False),
}


def arrays(rng: np.random.Generator, n: int = 12) -> Arrays:
    """Return well-behaved arrays."""
    A = rng.normal(size=(n, 3))
    codes = np.arange(n) % 3
    return Arrays(A, A @ A.T, rng.normal(size=(n, 2)), codes)


# -- calls: functions of the arrays, which return numbers; an AssertionError is a failure
def near(found: Any, wanted: Any, within: float = 1e-8, scale: Any = None) -> None:
    """Check that two arrays are the same, relative to the larger one."""
    found, wanted = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    size = max(np.abs(wanted if scale is None else scale).max(initial=0.0), np.abs(found).max(initial=0.0), 1e-300)
    off = float(np.abs(found / size - wanted / size).max(initial=0.0))
    assert off <= within, f"off by {off:.2g}"


def solved(found: Solution, tol: float | None = None) -> Any:
    """Check that a solution does not contradict itself; return its objective."""
    assert found.status in cs.certificates.STATUSES
    if found.gap is not None:
        assert np.isfinite(found.gap), f"gap {found.gap}"
        assert found.gap >= 0, f"gap {found.gap}"
        assert np.isfinite(found.objective), f"objective {found.objective}"
        if found.status in ("exact", "converged"):
            limit = max(2 * (tol or 0.0), 1e-6) * abs(found.objective)
            assert found.gap <= limit, f"{found.status}, but the gap is {found.gap} of {found.objective}"
    return found.objective


def _rows(K: np.ndarray) -> KernelRows:
    def against(columns: np.ndarray, dtype: Any) -> Any:
        def fill(which: np.ndarray, out: np.ndarray) -> np.ndarray:
            out[...] = K[np.ix_(which, columns)]
            return out

        return fill

    return KernelRows(against, K.diagonal().copy())


def _labels(data: Arrays) -> LabelKernel:
    return LabelKernel.of_vectors(data.codes, cs.simplex_vectors(3), (1.0, -0.5))


def _spectrum(data: Arrays) -> MetricSpectrum:
    values, V = np.linalg.eigh(data.K)
    Z = V.T @ data.Y
    return MetricSpectrum(np.maximum(values, 0), V, Z, np.zeros(2))


def _moments(data: Arrays, sparse: bool = False) -> MetricMoments:
    C, c = data.A.T @ data.A, data.A.T @ data.Y
    return MetricMoments(C, c, np.sum(data.Y**2, axis=0), [1, 2], 0.5, 0.3, sparse, shared=False)


def _unit(data: Arrays) -> Arrays:
    """Return the arrays at a size that the published scheme, which starts at the identity, is made for."""
    size = max(float(np.abs(data.A).max()), 1e-300)
    return data._replace(A=data.A / size, Y=data.Y / max(float(np.abs(data.Y).max()), 1e-300))


def _factor(data: Arrays) -> np.ndarray:
    return linalg.cholesky(data.ridge)


def _cholesky(data: Arrays) -> Any:
    L = _factor(data)
    near(L @ L.T, data.ridge)
    return L


def _jitter(data: Arrays) -> Any:
    L, jitter = linalg.cholesky_or_jitter(data.K)
    near(L @ L.T, data.K + jitter * np.eye(len(data.K)), scale=np.abs(data.K).max() + jitter)
    assert jitter <= 1e-9 * max(float(np.abs(data.K).max()), 1e-290), f"jitter {jitter}"


def _root(data: Arrays) -> Any:
    G, _ = linalg.root(data.K)
    near(G @ G.T, data.K, 1e-7)


def _eigh(data: Arrays) -> Any:
    values, V = linalg.eigh(data.K)
    near((V * values) @ V.T, data.K)
    return values


def _eigh_positive(data: Arrays) -> Any:
    values, V = linalg.drop_null_space(*linalg.eigh_positive(data.K.copy()))
    assert (values >= 0).all()
    near((V * values) @ V.T, data.K)


def _lstsq(data: Arrays) -> Any:
    X = linalg.lstsq(data.A, data.Y)
    R = data.Y - data.A @ X
    size = np.abs(data.A).max() * np.abs(data.Y).max()
    near(data.A.T @ R, 0 * X, 1e-6, scale=size)


def _sphere(data: Arrays) -> Any:
    b = data.Y[:, 0].copy()
    x = sphere.sphere_least_squares(data.A, b, 2.0)
    near(np.linalg.norm(x), 2.0)
    value = lambda x: float(np.linalg.norm(data.A @ x - b))  # noqa: E731
    for u in np.random.default_rng(0).normal(size=(200, 3)):
        other = 2.0 * u / np.linalg.norm(u)
        assert value(x) <= value(other) * (1 + 1e-9), "another point of the sphere is better"
    return value(x)


def _nonnegative(data: Arrays) -> Any:
    Z = np.stack([data.A, data.A[:, ::-1]])[:, :, :2]
    G, b = stacking.normal_equations(Z, data.Y, np.ones(len(data.Y)))
    beta = stacking.least_squares(G, b)
    assert (beta >= 0).all()
    assert stacking.violation(G, b, beta) <= 1e-6, f"violation {stacking.violation(G, b, beta)}"
    parts = [np.array([i]) for i in range(len(data.Y))]
    whole, others = stacking.stack_without(Z, data.Y, np.ones(len(data.Y)), parts)
    near(whole, beta)
    assert (others >= 0).all()


def _calibrate(data: Arrays) -> Any:
    a, b = stacking.calibrate(data.A, data.codes, np.ones(len(data.A)), 3)
    assert a >= 0
    proba = stacking.softmax(a * data.A + b)
    near(proba.sum(axis=1), np.ones(len(proba)))
    return proba


def _sets(data: Arrays) -> consensus.Sets:
    n_folds = min(len(data.Y), 5)
    return consensus.Sets(None, np.arange(len(data.Y)) % n_folds, n_folds)


def _base(data: Arrays) -> Any:
    fit = consensus.fit_base(data.K, data.Y, np.ones(len(data.Y)), _sets(data))
    if fit is None:
        return None  # a constant kernel has nothing to learn from
    values = data.K @ fit.coefficients + fit.intercept
    assert np.isfinite(fit.held).all(), "held-out predictions are not finite"
    return values


def _base_features(data: Arrays) -> Any:
    fit = consensus.fit_features(data.A, data.Y, np.ones(len(data.Y)), _sets(data))
    if fit is None:
        return None
    assert np.isfinite(fit.held).all(), "held-out predictions are not finite"
    return data.A @ fit.coefficients + fit.intercept


def _banded(data: Arrays) -> Any:
    if len(data.Y) < 2:
        return None  # one sample cannot be left out
    draws = banded_ridge.simplex_draws(2, 4, np.random.RandomState(0))
    found = banded_ridge.search_banded([data.K, data.ridge], data.Y, np.ones(len(data.Y)), draws, [0.1, 1.0])
    return found.intercept


def _class_qp(data: Arrays) -> Any:
    l = len(data.codes)
    S = cs.simplex_vectors(3)
    upper = (np.arange(3) != data.codes[:, None]) / l
    return solved(box_qp.class_qp(data.K, S @ S.T, np.full((l, 3), 0.5), upper, tol=1e-8, max_iter=200), 1e-8)


def _svm_features(data: Arrays) -> Any:
    l, T = len(data.codes), np.ascontiguousarray(data.A)[None]
    upper = (np.arange(3) != data.codes[:, None]) / l
    read = lambda: iter([(slice(0, l), T)])  # noqa: E731
    found = svm_features.svm_features(
        read, [cs.simplex_vectors(3)], np.full((l, 3), 0.5), upper, -np.ones((l, 3)), tol=1e-8, max_iter=200
    )
    return solved(found, 1e-8)


def _margin(data: Arrays) -> Any:
    return solved(solve_margin(_rows(data.K), _labels(data), np.ones(len(data.K)), tol=1e-8, max_iter=5000), 1e-8)


def _margin_features(data: Arrays) -> Any:
    labels, n = _labels(data), len(data.A)
    found = margin_features.margin_features(
        np.ascontiguousarray(data.A), labels.operator_rows(), labels.of, np.ones(n), np.ones(n), tol=1e-8, max_iter=5000
    )
    return solved(found, 1e-8)


def _margin_intercept(data: Arrays) -> Any:
    if len(data.codes) < 3 or intercept_suffices(cs.simplex_vectors(3)[data.codes]):
        return None  # an intercept alone meets all margins
    return solved(
        solve_margin_intercept(_rows(data.K), _labels(data), np.ones(len(data.K)), tol=1e-6, max_iter=2000), 1e-6
    )


def _kernel_weights(data: Arrays) -> Any:
    size = max(float(np.abs(data.K).max()), 1e-300)
    fit, norm = GramFit([data.K, data.ridge], data.Y), SquaredNorm(0.1 * size, 2.0)
    return solved(learn_kernel_weights(fit, norm, norm.best(np.ones(2)), tol=1e-8, max_iter=200), 1e-8)


def _learn_weights(data: Arrays) -> Any:
    S = data.A.T @ data.A
    evaluate = lambda c: (float(c @ S @ c), 2 * S @ c, S)  # noqa: E731
    found = weights.learn_weights(evaluate, [np.ones(3) / np.sqrt(3)], tol=1e-8, max_iter=200)
    assert found.objective - found.gap <= float(np.linalg.eigvalsh(S)[0]) + 1e-9 * float(np.trace(S)), "no lower bound"
    return solved(found, 1e-8)


def _filters(data: Arrays) -> Any:
    values = np.sort(np.abs(np.linalg.eigvalsh(data.K)))
    unit = max(values[-1], 1e-300)
    filters = 1 / (values + np.array([[1e-3], [1.0]]) * unit) * unit
    basis = held_out_errors.filter_basis(values, filters, 1e-12)
    whole, at = np.zeros(filters.shape), 0
    for place, G in basis.parts:
        whole[:, place] = basis.coefficients[:, at : at + len(G)] @ G
        at += len(G)
    near(whole, filters, 1e-9)


#: What each function is called with. Functions that are not here are in `COVERED`, with a reason.
CALLS: dict[str, Callable[[Arrays], Any]] = {
    "linalg.multiply": lambda data: near(linalg.multiply(data.A.T, data.Y), data.A.T @ data.Y),
    "linalg.gram_of": lambda data: near(linalg.gram_of(data.A), data.A.T @ data.A),
    "linalg.cholesky": _cholesky,
    "linalg.cholesky_or_jitter": _jitter,
    "linalg.is_positive": lambda data: near(linalg.is_positive(data.K), True),
    "linalg.inverse": lambda data: near(linalg.inverse(data.ridge) @ data.ridge, np.eye(len(data.K)), 1e-6),
    "linalg.inverse_factor": lambda data: near(
        linalg.inverse_factor(_factor(data)) @ _factor(data), np.eye(len(data.K)), 1e-6
    ),
    "linalg.inverse_diagonal": lambda data: near(
        linalg.inverse_diagonal(_factor(data)), np.linalg.inv(data.ridge).diagonal(), 1e-6
    ),
    "linalg.root": _root,
    "linalg.without_rounding": lambda data: near(linalg.without_rounding(data.K), data.K),
    "linalg.sandwich": lambda data: near(
        linalg.sandwich(_factor(data), data.K, triangular=True), _factor(data).T @ data.K @ _factor(data)
    ),
    "linalg.forward": lambda data: near(_factor(data) @ linalg.forward(_factor(data), data.Y), data.Y),
    "linalg.solve": lambda data: near(data.ridge @ linalg.solve(_factor(data), data.Y), data.Y, 1e-6),
    "linalg.solve_positive": lambda data: near(data.ridge @ linalg.solve_positive(data.ridge, data.Y), data.Y, 1e-6),
    "linalg.solve_general": lambda data: near(data.ridge @ linalg.solve_general(data.ridge, data.Y), data.Y, 1e-6),
    "linalg.solve_lu": lambda data: near(data.ridge @ linalg.solve_lu(data.ridge, data.Y[:, 0]), data.Y[:, 0], 1e-6),
    "linalg.eigh": _eigh,
    "linalg.eigh_positive": _eigh_positive,
    "linalg.eigvalsh": lambda data: near(linalg.eigvalsh(data.K).sum(), np.trace(data.K)),
    "linalg.largest_eigenvalue": lambda data: near(linalg.largest_eigenvalue(data.K), np.linalg.norm(data.K, 2)),
    "linalg.svd": lambda data: near(np.multiply(*linalg.svd(data.A)[:2]) @ linalg.svd(data.A)[2], data.A),
    "linalg.qr_r": lambda data: near(linalg.qr_r(data.A).T @ linalg.qr_r(data.A), data.A.T @ data.A),
    "linalg.lstsq": _lstsq,
    "linalg.norm": lambda data: linalg.norm(data.A),
    "linalg.column_norms": lambda data: near(linalg.column_norms(data.A), np.linalg.norm(data.A, axis=0)),
    "linalg.row_space": lambda data: near(data.Y @ linalg.row_space(data.Y) @ linalg.row_space(data.Y).T, data.Y, 1e-6),
    "linalg.orthonormal": lambda data: near(
        linalg.orthonormal(data.A.copy()).T @ linalg.orthonormal(data.A.copy()), np.eye(min(data.A.shape))
    ),
    "linalg.largest_entry": lambda data: linalg.largest_entry(data.A),
    "linalg.inner_product": lambda data: near(linalg.inner_product(data.Y, data.Y), np.sum(data.Y**2)),
    "sphere.sphere_least_squares": _sphere,
    "stacking.normal_equations": _nonnegative,
    "stacking.least_squares": _nonnegative,
    "stacking.violation": _nonnegative,
    "stacking.stack_without": _nonnegative,
    "stacking.calibrate": _calibrate,
    "stacking.softmax": _calibrate,
    "consensus.fit_base": _base,
    "consensus.fit_features": _base_features,
    "consensus.held_out_means": lambda data: consensus.held_out_means(data.Y, np.ones(len(data.Y)), None),
    "banded_ridge.simplex_draws": _banded,
    "banded_ridge.search_banded": _banded,
    "box_qp.class_qp": _class_qp,
    "box_qp.primal_and_gap": _class_qp,
    "box_qp.kkt_violations": _class_qp,
    "box_qp.is_even": _class_qp,
    "svm_features.svm_features": _svm_features,
    "margin.solve_margin": _margin,
    "margin.kernel_diagonal": _margin,
    "margin_features.margin_features": _margin_features,
    "margin_features.squared_lengths": lambda data: near(margin_features.squared_lengths(data.A), data.K.diagonal()),
    "margin_intercept.solve_margin_intercept": _margin_intercept,
    "margin_intercept.intercept_suffices": _margin_intercept,
    "kernel_weights.learn_kernel_weights": _kernel_weights,
    "weights.learn_weights": _learn_weights,
    "weights.lower_bound": _learn_weights,
    "weights.length": lambda data: near(
        weights.length(data.A[0], 3.0), np.sum(np.abs(data.A[0] / 1e30) ** 3) ** (1 / 3) * 1e30, 1
    ),
    "metric.rank_one_metric": lambda data: solved(metrics.rank_one_metric(_spectrum(data), 0.7)),
    "metric.metric_roots": lambda data: solved(metrics.rank_one_metric(_spectrum(data), 0.7)),
    "metric.dual_value": lambda data: solved(metrics.rank_one_metric(_spectrum(data), 0.7)),
    "metric.kappa_of": lambda data: metrics.kappa_of(1e-12, 1e12),
    "output_kernel.learn_output_kernel": lambda data: solved(
        output_kernel.learn_output_kernel(_spectrum(data), 0.5, 0.3, tol=1e-8, max_iter=500), 1e-8
    ),
    "alternating_metric.alternate_metric": lambda data: solved(
        alternate_metric(_moments(_unit(data)), np.ones(2), weights="given", tol=1e-6, max_iter=50)
    ),
    "alternating_metric.fixed_metric_steps": lambda data: solved(
        fixed_metric_steps(_moments(_unit(data)), np.ones(2), step=0.1, weights="given", tol=1e-6, max_iter=50)
    ),
    "held_out_errors.filter_basis": _filters,
    "bounds.perceptron_bound": lambda data: bounds.perceptron_bound(1.0, linalg.norm(data.A[0]), 1.0),
    "bounds.passive_aggressive_bound": lambda data: bounds.passive_aggressive_bound(
        np.ones(len(data.A)), 1 + np.linalg.norm(data.A, axis=1), 1.0, variant="PA"
    ),
    "bounds.loss_bound": lambda data: bounds.loss_bound(np.ones(len(data.A)), np.linalg.norm(data.A, axis=1), 1.0),
}
_FITS = "called by every fit of its family, which the estimators try"
_SUMS = "adds to an array in place or reads one entry; the functions that are tried call it"
#: Functions that are tried through others, and the reason.
COVERED: dict[str, str] = {
    **dict.fromkeys(
        ("linalg.add_product", "linalg.add_gram", "linalg.add_product_transposed", "linalg.add_to_diagonal",
         "linalg.add_symmetric", "linalg.diagonal_of", "linalg.mirror", "linalg.solve_rows", "linalg.inverse_general",
         "linalg.solve_each", "linalg.drop_null_space", "linalg.eigh_tridiagonal", "linalg.eigvalsh_stack"), _SUMS),
    **dict.fromkeys(
        ("linalg.upper_factor", "linalg.upper_solve", "linalg.factor_solve", "linalg.project_out"),
        "a preconditioner in single precision, whose errors only cost steps"),
    **dict.fromkeys(
        ("device_linalg.add_gram_on_device", "device_linalg.mirror_on_device", "device_linalg.device_cholesky",
         "device_linalg.of_one_type", "device_linalg.device_triangular"), "for arrays on a device"),
    **dict.fromkeys(
        ("coregularized.couple", "coregularized.penalty_ratios", "coregularized.turn_back", "coregularized.right_share",
         "coupled.ridge_residuals", "coupled.weight_slopes", "coupled.missing_slopes", "coupled.row_scale",
         "coupled_features.turned", "coupled_features.sum_of_squares", "design.view_columns", "design_matrix.at_rows",
         "design_matrix.at_rows_and_columns", "moment_matrix.view_matrix", "moments.unfinished_moments",
         "moments.slopes_by_rows", "svm_features.scaled_features", "svm_features.keep_features",
         "vector_valued.target_scale", "weights.alternate_weights", "weights.with_learned", "weights.sphere_starts",
         "held_out_errors.float_type", "held_out_errors.square_part", "held_out_errors.leave_one_out",
         "held_out_errors.all_folds", "held_out_errors.one_fold", "held_out_features.held_rows",
         "metric.direct_metric", "certificates.warn_unless_converged"), _FITS),
    **dict.fromkeys(
        ("bounds.novikoff_bound", "bounds.risk_bound", "bounds.sparsity_bound", "bounds.vector_perceptron_bounds",
         "bounds.rademacher_bound"), "a formula of numbers"),
}  # fmt: skip


def public_functions() -> list[str]:
    """Return the public functions of the modules of `consilience.solvers`, found, not listed."""
    names = []
    for module in pkgutil.iter_modules(consilience.solvers.__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"consilience.solvers.{module.name}")
        for name, thing in inspect.getmembers(loaded, inspect.isfunction):
            if thing.__module__ == loaded.__name__ and not name.startswith("_"):
                names.append(f"{module.name}.{name}")
    return names
