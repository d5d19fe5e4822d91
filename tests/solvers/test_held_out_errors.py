"""Banded ridge over matrices: held-out errors against refits, filters, array libraries."""

import numpy as np
import pytest

import reference
from consilience.solvers import banded_ridge as solver
from consilience.solvers.banded_ridge import search_banded, simplex_draws
from consilience.solvers.held_out_errors import filter_basis

ALPHAS = [1e-3, 0.1, 1.0, 10.0, 1e3]
FOLDS = {
    "leave one out": None,
    "folds": [(np.setdiff1d(np.arange(18), np.arange(k, 18, 4)), np.arange(k, 18, 4)) for k in range(4)],
    "past and future": [(np.arange(8), np.arange(8, 12)), (np.arange(12), np.arange(12, 18))],
}


def problem(widths=(3, 30, 4), n=18, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.5, 2, n)
    grams = []
    for width in widths:
        X = rng.normal(size=(n, width))
        X -= s @ X / s.sum()
        K = X @ X.T
        grams.append(K * n / np.trace(K))
    Y = rng.normal(size=(n, 5)) + 2
    Y[3, 1] = np.nan
    Y[[4, 7], 2:4] = np.nan
    return grams, Y, s, simplex_draws(len(widths), 6, np.random.RandomState(seed))


@pytest.mark.parametrize("by_formula", [True, False])
@pytest.mark.parametrize("widths", [(3, 30, 4), (2, 3, 2)], ids=["full rank", "low rank"])
@pytest.mark.parametrize("folds", FOLDS)
def test_choices_scores_and_models_are_those_of_refits(monkeypatch, folds, widths, by_formula):
    cut = FOLDS[folds]
    if folds == "past and future" and by_formula:
        return  # the formula needs folds that train on all other rows
    monkeypatch.setattr(solver, "_formula_is_cheaper", lambda *_: by_formula)
    grams, Y, s, draws = problem(widths)
    found = search_banded(grams, Y, s, draws, ALPHAS, cut, batch=2)
    for p, y in enumerate(Y.T):
        errors = reference.banded_errors(grams, y, s, draws, ALPHAS, cut)
        d, k = np.unravel_index(errors.argmin(), errors.shape)
        assert (found.draw[p], found.alpha[p]) == (d, ALPHAS[k])
        known = np.flatnonzero(~np.isnan(y))
        tested = known if cut is None else np.concatenate([np.intersect1d(test, known) for _, test in cut])
        total = s[tested] @ (y[tested] - np.average(y[tested], weights=s[tested])) ** 2
        np.testing.assert_allclose(found.scores[:, p], 1 - errors.min(axis=1) / total, atol=1e-8)
        K = np.tensordot(draws[d], grams, 1)
        predicted = K @ found.coefficients[:, p] + found.intercept[p]
        expected = reference.banded_ridge(grams, y, s, known, (draws[d], ALPHAS[k]))
        np.testing.assert_allclose(predicted, expected, atol=1e-8)


def test_the_cheaper_way_to_cut_folds_depends_on_their_number():
    def cheaper(k, n=1000, outputs=5000, penalties=10):
        folds = [(np.setdiff1d(np.arange(n), test), test) for test in np.array_split(np.arange(n), k)]
        return solver._formula_is_cheaper(folds, n, outputs, penalties)

    assert not cheaper(3)
    assert cheaper(50)
    assert cheaper(10, outputs=1, penalties=100)
    assert not cheaper(10, outputs=1, penalties=1000)  # the formula solves each fold again for each penalty
    assert not solver._formula_is_cheaper(FOLDS["past and future"], 18, 5000, 10)


@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_filters_are_combinations_of_few_functions(spread):
    values = np.sort(10 ** np.random.default_rng(0).uniform(-spread, spread, 2000))
    alphas = np.logspace(-10, 10, 41)[:, None]
    filters = alphas / (values + alphas)
    basis = filter_basis(values, filters, 1e-11)
    made = np.hstack([basis.coefficients[:, a:b] @ G for (own, G), a, b in _places(basis)])
    np.testing.assert_allclose(
        made / filters.max(axis=1, keepdims=True), filters / filters.max(axis=1, keepdims=True), atol=1e-10
    )
    products = sum(len(G) * G.shape[1] for _, G in basis.parts) / 2000
    assert products < {0.0: 2, 1.0: 12, 6.0: 16}[spread]  # 41 without the basis


def _places(basis):
    ends = np.cumsum([len(G) for _, G in basis.parts])
    return [(part, int(end - len(part[1])), int(end)) for part, end in zip(basis.parts, ends, strict=True)]


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("folds", ["leave one out", "folds"])
def test_other_array_libraries_give_the_same(library, folds):
    xp = pytest.importorskip(library)
    pytest.importorskip("array_api_compat")
    grams, Y, s, draws = problem()
    host = search_banded(grams, Y, s, draws, ALPHAS, FOLDS[folds])
    device = search_banded([xp.asarray(K) for K in grams], Y, s, draws, ALPHAS, FOLDS[folds])
    np.testing.assert_array_equal(host.draw, device.draw)
    np.testing.assert_array_equal(host.alpha, device.alpha)
    for name in ("scores", "coefficients", "intercept"):
        np.testing.assert_allclose(getattr(device, name), getattr(host, name), atol=1e-9)


@pytest.mark.parametrize("folds", FOLDS)
def test_single_precision_chooses_as_well_as_double_precision(folds):
    grams, Y, s, draws = problem()
    double = search_banded(grams, Y, s, draws, ALPHAS, FOLDS[folds])
    single = search_banded([K.astype(np.float32) for K in grams], Y, s, draws, ALPHAS, FOLDS[folds])
    assert single.coefficients.dtype == np.float32
    np.testing.assert_allclose(single.scores, double.scores, atol=1e-3)


def test_draws_are_on_the_simplex_and_begin_with_equal_weights_and_single_views():
    draws = simplex_draws(3, 30, np.random.RandomState(0))
    assert draws.shape == (30, 3)
    assert draws.min() >= 0
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    np.testing.assert_array_equal(draws[:4], np.vstack([np.full(3, 1 / 3), np.eye(3)]))
    assert simplex_draws(1, 30, np.random.RandomState(0)).tolist() == [[1.0]]
    assert len(simplex_draws(5, 2, np.random.RandomState(0))) == 2


def test_a_kernel_of_zeros_gives_the_mean():
    Y = np.arange(12.0).reshape(6, 2)
    found = search_banded([np.zeros((6, 6))], Y, np.ones(6), np.ones((1, 1)), [1.0])
    np.testing.assert_allclose(found.intercept, Y.mean(axis=0))
    assert not found.coefficients.any()
