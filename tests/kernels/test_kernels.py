"""Kernels on vectors and their algebra, Gram functions, one kernel per view."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.preprocessing import KernelCenterer

import cases
import reference
import strategies
from consilience import Views
from consilience import kernels as ks
from consilience.kernels import RBF, ChiSquared, Laplacian, Linear, Polynomial, Precomputed, center, exp, normalize
from consilience.kernels.given import NAMED
from consilience.kernels.normalization import Centered
from consilience.views.container import Gram

X = cases.histograms()
K30 = X @ X.T
Y = cases.histograms(7, seed=1)
ON_VECTORS = {**cases.NUMERIC, **cases.COMPOSED}


# -- against the definitions and, where there is one, against scikit-learn's function
TWINS = {
    "linear": (Linear(), reference.linear, pairwise.linear_kernel),
    "polynomial": (Polynomial(3, 0.5), lambda x, z: (0.5 + reference.linear(x, z)) ** 3,
                   partial(pairwise.polynomial_kernel, degree=3, gamma=1, coef0=0.5)),
    "rbf": (RBF(0.3), lambda x, z: reference.gaussian(x, z, 0.3), partial(pairwise.rbf_kernel, gamma=0.3)),
    "laplacian": (Laplacian(0.3), lambda x, z: np.exp(-0.3 * reference.city_block(x, z)),
                  partial(pairwise.laplacian_kernel, gamma=0.3)),
    "chi2": (ChiSquared(0.7), lambda x, z: np.exp(-0.7 * reference.chi_squared(x, z)),
             partial(pairwise.chi2_kernel, gamma=0.7)),
    "additive chi2": (ks.AdditiveChiSquared(), reference.additive_chi_squared, None),
    "intersection": (ks.Intersection(), reference.intersection, None),
    "mahalanobis": (ks.Mahalanobis(np.diag([1.0, 2, 3, 0])), lambda x, z: x @ np.diag([1.0, 2, 3, 0]) @ z, None),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_kernels_equal_their_definitions_and_scikit_learns(name):
    kernel, definition, peer = TWINS[name]
    for form in (np.asarray, sp.csr_array, sp.csc_matrix):
        assert_allclose(kernel(form(X)), reference.gram(definition, X), atol=1e-12)
        assert_allclose(kernel(form(X), form(Y)), reference.gram(definition, X, Y), atol=1e-12)
        assert_allclose(kernel(form(X), Y), reference.gram(definition, X, Y), atol=1e-12)
    for width in (1, 4, 130) if peer else ():
        A, B = cases.histograms(60, width), cases.histograms(40, width, seed=1)
        assert_allclose(kernel(A), peer(A), rtol=1e-12, atol=1e-12)
        assert_allclose(kernel(A, B), peer(A, B), rtol=1e-12, atol=1e-12)


def test_additive_kernels_by_their_identities():
    sums = X.sum(axis=1)[:, None] + X.sum(axis=1)
    assert_allclose(ks.AdditiveChiSquared()(X), (sums + pairwise.additive_chi2_kernel(X)) / 2, atol=1e-12)
    assert not ks.is_psd(pairwise.additive_chi2_kernel(X))
    assert_allclose(ks.Intersection()(X), (sums - pairwise.manhattan_distances(X)) / 2, atol=1e-12)


def test_large_matrices_in_threads_equal_small_ones():
    big = cases.histograms(700, 40)
    for kernel in (RBF(0.1), ChiSquared(0.1)):
        assert_allclose(kernel(big)[::99, ::77], kernel(big[::99], big[::77]), rtol=1e-12)
        assert_allclose(kernel(sp.csr_array(big)), kernel(big), rtol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_single_precision_and_large_counts_lose_no_digits(form):
    two = np.vstack([X, X + 300]).astype(np.float32)
    exact = RBF(0.05)(two.astype(np.float64))
    assert_allclose(RBF(0.05)(form(two)), exact, atol=3e-7)
    assert_allclose(RBF(0.05)(form(two), form(two.copy())), exact, atol=3e-7)
    assert RBF(0.05)(form(two)).dtype == np.float32
    counts = np.random.default_rng(0).poisson(200_000, size=(6, 20)).astype(np.float32)
    for kernel in (ChiSquared(0.05), ks.Intersection(), ks.AdditiveChiSquared()):
        assert kernel(form(counts)).dtype == np.float32
        assert_allclose(kernel(form(counts)), kernel(counts.astype(float)), rtol=1e-6)


def test_sparse_matrices_in_any_state_give_the_same_numbers_from_many_threads():
    dense = cases.histograms(80, 300)
    tidy = sp.csr_array(dense)
    back = np.concatenate([np.arange(a, b)[::-1] for a, b in itertools.pairwise(tidy.indptr)])
    messy = sp.csr_array((tidy.data[back], tidy.indices[back], tidy.indptr), shape=tidy.shape)
    kept = messy.indices.copy()
    for kernel in (ChiSquared(0.7), ks.AdditiveChiSquared(), ks.Intersection(), Laplacian(0.3), RBF(0.3)):
        with ThreadPoolExecutor(8) as pool:
            for K in pool.map(lambda _, k=kernel: k(messy), range(16)):
                assert_allclose(K, kernel(dense), atol=1e-10)
    assert np.array_equal(messy.indices, kept)


# -- properties of every kernel
@pytest.mark.parametrize("name", ON_VECTORS)
def test_symmetric_psd_and_consistent_in_every_form(name):
    kernel = ON_VECTORS[name]
    K = kernel(X)
    assert np.allclose(K, K.T)
    assert ks.is_psd(K)
    assert np.allclose(kernel.diag(X), K.diagonal())
    resolved = kernel.resolved(X)
    assert_allclose(resolved(X), K, atol=1e-12)
    assert_allclose(resolved(X[3:9], X), K[3:9], atol=1e-12)
    assert_allclose(resolved(X[3:9], X[10:]), K[3:9, 10:], atol=1e-12)
    assert_allclose(resolved.diag(X[3:9]), K.diagonal()[3:9], atol=1e-12)
    assert resolved(X[:1]).shape == (1, 1)
    if "callable" not in name and "f k f" not in name:
        assert resolved(X[:0], X).shape == (0, 30)
    assert_allclose(kernel(sp.csr_array(X)), K, atol=1e-9)
    assert_allclose(kernel.diag(sp.csr_array(X)), kernel.diag(X), atol=1e-9)
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, K, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", [*ON_VECTORS, *cases.STRUCTURED])
def test_parameters_clone_and_nothing_is_changed(name):
    kernel, data = (ON_VECTORS[name], X) if name in ON_VECTORS else cases.STRUCTURED[name]
    before = repr(kernel)
    data_before = np.array(data, dtype=object if isinstance(data, list) else None, copy=True)
    copy = clone(kernel)
    kernel.resolved(data)
    assert_allclose(kernel(data), copy(data))
    assert repr(kernel) == before == repr(copy)
    assert np.array_equal(np.array(data, dtype=data_before.dtype), data_before)


@given(strategies.tables(low=0), strategies.among(*sorted(ON_VECTORS)))
def test_every_kernel_and_closure_is_psd_on_random_data(data, name):
    kernel = ON_VECTORS[name]
    K = kernel(data)
    assert np.isfinite(K).all()
    assert ks.is_psd(K, tol=1e-7) or np.abs(K).max() < 1e-12


@given(strategies.kernels)
def test_random_expressions_are_kernels_and_read_as_themselves(kernel):
    K = kernel(X)
    assert ks.is_psd(K, tol=1e-7)
    assert_allclose(kernel.diag(X), K.diagonal(), rtol=1e-9, atol=1e-9 * np.abs(K).max())
    again = eval(repr(kernel), vars(ks))
    assert repr(again) == repr(kernel)
    assert_allclose(again(X), K)


# -- expressions
EXPRESSIONS = {
    "RBF(gamma=0.3) + Linear() * Polynomial(degree=2, constant=1.0)": RBF(0.3) + Linear() * Polynomial(),
    "(RBF(gamma=0.3) + Linear()) * Linear()": (RBF(0.3) + Linear()) * Linear(),
    "Linear() + (Linear() + 1.0)": Linear() + (Linear() + 1.0),
    "2 * Linear() * Linear()": 2 * Linear() * Linear(),
    "Linear() * (Linear() * Linear())": Linear() * (Linear() * Linear()),
    "(2 * Linear()) ** 3": (2 * Linear()) ** 3,
    "(Linear() ** 2) ** 3": (Linear() ** 2) ** 3,
    "(Linear() ** 2).on([1])": (Linear() ** 2).on([1]),
    "(Linear() + 0.5).on(slice(None, 2, None))": (Linear() + 0.5).on(slice(2)),
    "exp(normalize(center(Linear())))": exp(normalize(center(Linear()))),
    "Linear().on([0, 1]).mapped(sqrt)": Linear().on([0, 1]).mapped(np.sqrt),
    "Mahalanobis(A=array of shape (2, 2))": ks.Mahalanobis(np.eye(2)),
    "RBF(gamma=nan)": RBF(float("nan")),
    "normalize(Subsequence(length=2, decay=0.5) + Spectrum(length=2)) * SubsetTree(decay=0.4)": (
        normalize(ks.Subsequence(length=2, decay=0.5) + ks.Spectrum(2)) * ks.SubsetTree()
    ),
    "RBF(gamma=2.0) + 1.5 * Polynomial(degree=3, constant=1.0)": (RBF(0.3) + 0.5 * Polynomial()).set_params(
        k1__gamma=2.0, k2__kernel__degree=3, k2__scale=1.5
    ),
    "Precomputed()": Precomputed(),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_repr_reads_as_the_expression(text):
    assert repr(EXPRESSIONS[text]) == text


# -- gamma
def pairs_of(distances):
    return distances[np.triu_indices(len(distances), 1)]


RULES = [
    (RBF("scale"), lambda A: 1 / (A.shape[1] * A.var())),
    (RBF("median"), lambda A: 1 / np.median(pairs_of(pairwise.euclidean_distances(A, squared=True)))),
    (RBF("mean_distance"), lambda A: 1 / np.mean(pairs_of(pairwise.euclidean_distances(A, squared=True)))),
    (Laplacian("scale"), lambda A: 1 / (A.shape[1] * A.std())),
    (Laplacian("median"), lambda A: 1 / np.median(pairs_of(pairwise.manhattan_distances(A)))),
    (ChiSquared("mean_distance"), lambda A: 1 / np.mean(pairs_of(-pairwise.additive_chi2_kernel(A)))),
    (ChiSquared("median"), lambda A: 1 / np.median(pairs_of(-pairwise.additive_chi2_kernel(A)))),
]


@pytest.mark.parametrize(("kernel", "rule"), RULES, ids=lambda value: repr(value) if hasattr(value, "gamma") else "")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_rules(kernel, rule, form):
    assert kernel.resolved(form(X)).gamma == pytest.approx(rule(X), rel=1e-9)
    assert isinstance(kernel.gamma, str), "the kernel itself was changed"


def test_gamma_of_many_samples_of_sparse_ones_far_from_zero_and_of_a_reference():
    big = np.random.default_rng(0).normal(size=(9000, 3))
    assert RBF("median").resolved(big).gamma == pytest.approx(RBF("median").resolved(big[:1500]).gamma, rel=0.05)
    far = (X + 1e4).astype(np.float32)
    assert RBF().resolved(sp.csr_array(far)).gamma == pytest.approx(RBF().resolved(far.astype(float)).gamma, rel=1e-6)
    assert_allclose(RBF("median")(Y, X), RBF("median").resolved(X)(Y, X))


@pytest.mark.parametrize("data", [np.zeros((1, 2)), np.zeros((5, 2)), np.ones((3, 1)), np.full((10, 10), 0.1)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_of_data_without_spread_is_finite(data, form):
    assert RBF("scale").resolved(form(data)).gamma == 1 / data.shape[1]
    for kernel in (RBF("scale"), RBF("median"), RBF("mean_distance"), Laplacian("scale"), ChiSquared()):
        assert np.array_equal(kernel(form(data)), np.ones((len(data), len(data))))


# -- centering and normalizing
def test_center_and_normalize_equal_their_definitions_and_scikit_learns_on_new_samples():
    K = RBF(0.3)(X)
    assert_allclose(center(RBF(0.3))(X), reference.centered(K), atol=1e-12)
    assert_allclose(center(K), reference.centered(K), atol=1e-12)
    theirs = KernelCenterer().fit(K).transform(RBF(0.3)(Y, X))
    kernel = center(RBF(0.3)).resolved(X)
    assert_allclose(kernel(Y, X), theirs, atol=1e-12)
    assert_allclose(clone(kernel)(Y), kernel(Y))  # the reference stays through clones and resolving
    assert_allclose(kernel.resolved(Y)(Y), kernel(Y))
    assert_allclose((kernel + RBF("scale"))(Y), kernel(Y) + RBF("scale")(Y))
    assert_allclose(Centered(RBF(0.3), X)(Y), kernel(Y))
    assert_allclose(center(Precomputed())(sp.csr_array(RBF(0.3)(X))), center(RBF(0.3))(X), atol=1e-12)
    # what was worked out is forgotten when parameters change
    kernel = center(RBF(1.0)).resolved(X).set_params(kernel__gamma=0.1)
    assert_allclose(kernel(X), center(RBF(0.1))(X), atol=1e-12)
    kernel.set_params(reference=X[:3])
    assert_allclose(kernel(X), center(RBF(0.1)).resolved(X[:3])(X), atol=1e-12)
    with pytest.raises(ValueError, match="`A` must be symmetric and positive semi-definite"):
        ks.Mahalanobis(np.eye(4)).resolved(X).set_params(A=-np.eye(4))(X)
    assert_allclose(normalize(Linear())(X), reference.normalized(Linear()(X)), atol=1e-12)
    assert_allclose(normalize(Linear()(X)), reference.normalized(Linear()(X)), atol=1e-12)
    with_zero = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert normalize(Linear())(with_zero).tolist() == [[0, 0], [0, 1]]
    assert normalize(Linear()).diag(with_zero).tolist() == [0, 1]


# -- Gram functions
def test_is_psd_nearest_psd_and_alignment():
    assert ks.is_psd(Linear()(np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)))
    assert all(ks.is_psd(K) for K in (np.eye(3), np.zeros((2, 2)), np.empty((0, 0))))
    assert not any(ks.is_psd(np.array(K)) for K in ([[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [0.0, 1.0]], [[np.nan]]))

    # the nearest positive semi-definite matrix: no other one is nearer
    rng = np.random.default_rng(0)
    K = rng.normal(size=(5, 5))
    near = ks.nearest_psd(K)
    assert ks.is_psd(near)
    for _ in range(200):
        R = rng.normal(size=(5, 5)) * 0.3
        other = ks.nearest_psd(near + R)
        assert np.linalg.norm(K - near) <= np.linalg.norm(K - other) + 1e-12
    assert_allclose(ks.nearest_psd(np.eye(3)), np.eye(3), atol=1e-12)
    # alignment
    K = Linear()(X)
    assert ks.alignment(K, 3 * K) == pytest.approx(1)
    assert ks.alignment(K, np.zeros_like(K)) == 0
    L = RBF(0.3)(X)
    expected = np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))
    assert ks.alignment(K, L, centered=False) == pytest.approx(expected)
    centered = [reference.centered(part) for part in (K, L)]
    assert ks.alignment(K, L) == pytest.approx(ks.alignment(*centered, centered=False))


def test_unbiased_alignment_is_a_ratio_of_unbiased_estimates():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    K, L = RBF(0.3)(A), Linear()(np.column_stack([A[:, 0], B]))
    hsic = reference.unbiased_hsic
    expected = hsic(K, L) / np.sqrt(hsic(K, K) * hsic(L, L))
    assert ks.alignment(K, L, unbiased=True) == pytest.approx(expected, rel=1e-12)
    # by the traces of Song et al. 2012, equation 4
    n, one = 8, np.ones(8)
    P, Q = K - np.diag(K.diagonal()), L - np.diag(L.diagonal())
    traces = np.trace(P @ Q) + (one @ P @ one) * (one @ Q @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * one @ P @ Q @ one
    assert hsic(K, L) == pytest.approx(traces / (n * (n - 3)), rel=1e-12)
    # the diagonal and constants do not matter, single precision hardly
    changed = 5 * K + 3 + np.diag(rng.random(8))
    assert ks.alignment(changed, L, unbiased=True) == pytest.approx(expected, rel=1e-9)
    assert ks.alignment(K.astype(np.float32), L, unbiased=True) == pytest.approx(expected, rel=1e-5)
    assert ks.alignment(K, -2 * K, unbiased=True) == pytest.approx(-1, rel=1e-12)
    for nothing in (np.eye(8), np.full((8, 8), 0.1), np.zeros((8, 8))):
        assert ks.alignment(nothing, nothing, unbiased=True) == 0


@pytest.mark.parametrize("kernel", [Linear(), RBF()], ids=str)
def test_unbiased_alignment_of_independent_noise_is_0_on_average(kernel):
    rng, values, biased = np.random.default_rng(1), [], []
    for _ in range(60):
        K, L = (kernel.resolved(Z)(Z) for Z in rng.normal(size=(2, 40, 1000)))
        values.append(ks.alignment(K, L, unbiased=True))
        biased.append(ks.alignment(K, L))
        assert ks.alignment(K, K, unbiased=True) == pytest.approx(1)
    assert np.mean(biased) > 0.9
    assert np.max(np.abs(values)) < 0.2
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(60)


# -- kernels that are given as matrices and functions
def test_precomputed_in_scikit_learns_manner_and_by_rows_of_one_gram():
    K = RBF(0.3)(X)
    assert np.array_equal(Precomputed()(K), K)
    assert np.array_equal(Precomputed()(K[20:, :20], K[:20, :20]), K[20:, :20])
    gram = Gram(K)
    assert np.array_equal(Precomputed()(gram[[5, 2]], gram[[1]]), K[[5, 2]][:, [1]])
    assert np.array_equal(Precomputed().diag(gram[[5, 2]]), K.diagonal()[[5, 2]])
    assert_allclose((normalize(Precomputed()) + 1.0)(gram[[5, 2]]), (normalize(K) + 1)[np.ix_([5, 2], [5, 2])])
    whole = Gram([[2, 1], [1, 2]], [1, 0])
    assert (0.5 * Precomputed())(whole).tolist() == [[1, 0.5], [0.5, 1]]
    assert whole[[0]].index.tolist() == [1]
    assert_allclose(center(Precomputed())(K), reference.centered(K), atol=1e-12)
    centered = center(Precomputed()).resolved(gram)
    assert_allclose(centered(gram[[1, 2]], gram), reference.centered(K)[[1, 2]], atol=1e-12)


def test_a_frame_and_lists_are_arrays():
    pd = pytest.importorskip("pandas")
    np.testing.assert_array_equal(RBF(0.3)(pd.DataFrame(X), X.tolist()), RBF(0.3)(X, X))


def test_functions_of_sets_and_of_pairs():
    double = ks.FromCallable(lambda A, B: (A @ B.T).astype(np.float64))
    for kernel in (Linear() + double, Linear() * double):
        assert kernel(X.astype(np.float32)).dtype == np.float64, "the wider precision"
    assert (0.5 * ks.FromCallable(lambda A, B: (A @ B.T).astype(int)))(X).dtype == np.float64
    kept = X @ X.T
    (exp(2.0 * ks.FromCallable(lambda A, B: kept) + 1.0) * Linear())(X)
    np.testing.assert_array_equal(kept, X @ X.T)
    by_pairs = ks.FromCallable(lambda x, z: float(x @ z), pairs=True)
    assert_allclose(by_pairs(X), X @ X.T)
    assert_allclose(by_pairs(X, Y), X @ Y.T)
    assert_allclose(ks.FromCallable(lambda A, B: A @ B.T).diag(X), (X * X).sum(1))
    assert repr(ks.as_kernel(cases.linear_by_hand)) == "FromCallable(func=linear_by_hand, pairs=False)"


# -- one kernel per view
V = Views(a=X, b=cases.histograms(30, 2, seed=3), t=["anna", "otto", "ida"] * 10)
K_BY_VIEW = ks.kernels_by_view({"t": ks.Spectrum(2), "b": Linear()}, V.names)


def test_kernels_by_view_and_resolving():
    assert repr(K_BY_VIEW) == "{'a': RBF(gamma='scale'), 'b': Linear(), 't': Spectrum(length=2)}"
    resolved = ks.resolve_kernels(K_BY_VIEW, V)
    assert isinstance(resolved["a"].gamma, float)
    grams = ks.view_grams(resolved, V)
    assert_allclose(grams[1], V["b"] @ V["b"].T)
    blocks = ks.view_grams(resolved, V[:4], V)
    for full, block in zip(grams, blocks, strict=True):
        assert_allclose(block, full[:4], atol=1e-12)


def test_missing_views_are_zero_or_the_mean():
    n = np.arange(30)
    M = Views(V, mask={"a": (n < 2) | (n >= 7), "b": (n < 5) | (n >= 11)})
    resolved = ks.resolve_kernels(K_BY_VIEW, M)
    present = M.present("a")
    inner = resolved["a"](X[present])
    zero = ks.view_grams(resolved, M)[0]
    assert not zero[~present].any()
    assert not zero[:, ~present].any()
    assert_allclose(zero[np.ix_(present, present)], inner)
    mean = ks.view_grams(resolved, M, missing="mean")[0]
    assert_allclose(mean[3, present], inner.mean(axis=0))
    assert mean[3, 4] == pytest.approx(inner.mean())
    assert all(ks.is_psd(K) for K in ks.view_grams(resolved, M, missing="mean"))
    assert ks.is_psd(np.prod(ks.view_grams(resolved, M, missing="mean"), axis=0))
    for choice in ("zero", "mean"):
        whole = ks.view_grams(resolved, M, missing=choice)
        part = ks.view_grams(resolved, M[1:9], M, missing=choice)
        for K, block in zip(whole, part, strict=True):
            assert_allclose(block, K[1:9], atol=1e-12)
        single = Views(a=X.astype(np.float32), b=V["b"], mask={"a": np.arange(30) > 4})
        K = ks.view_grams({"a": RBF(0.3)}, single, missing=choice)[0]
        assert K.dtype == np.float32
        assert_allclose(K[5:, 5:], RBF(0.3)(X[5:]), atol=1e-6)


def test_a_view_missing_in_all_new_samples_gives_zeros():
    resolved = ks.resolve_kernels(K_BY_VIEW, V)
    new = Views(t=["anna", "otto"]).align(V.names)
    grams = ks.view_grams(resolved, new, V)
    assert not grams[0].any()
    assert grams[2].any()
    means = ks.view_grams(resolved, new, V, missing="mean")[0]
    assert_allclose(means, np.tile(ks.view_grams(resolved, V)[0].mean(axis=0), (2, 1)))
    assert not ks.view_grams(resolved, V, new)[0].any()


def test_reference_views_leave_gram_matrices_behind():
    K = Linear()(X)
    G = Views(g=K, a=X, precomputed="g")
    chosen = {"g": Precomputed(), "a": Linear()}
    kept = ks.reference_views(chosen, G[:20])
    assert kept.block("g").values is None
    assert_allclose(ks.view_grams(chosen, G[20:], kept)[0], K[20:, :20])
    for kernel in (normalize(Precomputed()), center(Precomputed())):
        kernel = kernel.resolved(G[:20].block("g"))
        kept = ks.reference_views({"g": kernel}, G[["g"]][:20])
        expected = kernel(G[20:].block("g"), G[:20].block("g"))
        assert_allclose(ks.view_grams({"g": kernel}, G[["g"]][20:], kept)[0], expected)
    plain = ks.reference_views(chosen, Views(g=K[:20, :20], a=X[:20]))
    assert_allclose(ks.view_grams(chosen, Views(g=K[20:, :20], a=X[20:]), plain)[0], K[20:, :20])


# -- errors
NEGATIVE = -np.ones((2, 2))
ERRORS = [
    (lambda: RBF(-1.0)(X), "RBF(gamma=-1.0): `gamma` must be a positive number or one of 'scale', 'median', "),
    (lambda: RBF("auto")(X), "RBF(gamma='auto'): `gamma` must be a positive number"),
    (lambda: RBF(None)(X), "RBF(gamma=None): `gamma` must be a positive number"),
    (lambda: RBF(float("nan"))(X), "RBF(gamma=nan): `gamma` must be a positive number"),
    (lambda: ChiSquared("scale")(X), "(gamma='scale'): `gamma` must be a positive number or one of 'median', "),
    (lambda: ChiSquared(1.0)(NEGATIVE), "nonnegative data such as histograms; the smallest value is -1."),
    (lambda: ks.Intersection()(np.eye(2), NEGATIVE), "Intersection() needs nonnegative data"),
    (lambda: ks.AdditiveChiSquared().diag(sp.csr_array(NEGATIVE)), "AdditiveChiSquared() needs nonnegative data"),
    (lambda: RBF(1.0)(X, X[:, :3]), "RBF(gamma=1.0) got samples with 4 and with 3 columns. Give the same columns"),
    (lambda: Linear()(["a", "b"]), "takes numeric data (dense or sparse); got objects. For strings use Spectrum"),
    (lambda: Polynomial(0)(X), "Polynomial(degree=0, constant=1.0): `degree` must be an integer of at least 1"),
    (lambda: Polynomial(2.5).diag(X), "Polynomial(degree=2.5, constant=1.0): `degree` must be an integer"),
    (lambda: Polynomial(2, -1.0)(X), "Polynomial(degree=2, constant=-1.0): `constant` must be at least 0"),
    (lambda: (Linear() ** 0.5)(X), "Linear() ** 0.5: `degree` must be an integer of at least 1"),
    (lambda: (-2 * Linear())(X), "The factor of a kernel must be a number of at least 0; got -2"),
    (lambda: (Linear() * "x")(X), "The factor of a kernel must be a number of at least 0; got 'x'"),
    (lambda: (Linear() + -1)(X), "The constant added to a kernel must be a number of at least 0; got -1"),
    (lambda: ks.Mahalanobis(np.eye(2))(X), "Mahalanobis: `A` must be 4 x 4 for data of 4 columns; got (2, 2)."),
    (lambda: ks.Mahalanobis(-np.eye(4))(X), "`A` must be symmetric and positive semi-definite. Use nearest_psd"),
    (lambda: exp(X), "exp takes a kernel; got ndarray. For arrays use numpy.exp."),
    (lambda: ks.Mahalanobis(-np.eye(4)).diag(X), "Mahalanobis: `A` must be symmetric and positive semi-definite"),
    (lambda: ks.Mahalanobis(np.eye(3))(X, X[:2]), "Mahalanobis: `A` must be 4 x 4 for data of 4 columns; got (3, 3)."),
    (lambda: Linear()(np.array([[1.0], [np.nan]])), "X contains NaN in row 1, column 0"),
    (lambda: normalize(Precomputed())(K30[15:, :15], Gram(K30)[:15]), "needs k(x, x) of each new sample, which a"),
    (lambda: Precomputed()(np.array([[1.0, np.nan]]), Gram(np.eye(2))), "The block contains NaN in row 0, column 1"),
    (lambda: Linear().on([0, 9])(X), "Linear().on([0, 9]) selects columns that data of 4 columns do not have."),
    (lambda: Linear().mapped(lambda A: A[:2])(X), "the function must return 30 rows; it returned 2."),
    (lambda: ks.FromCallable(lambda A, B: A[:, 0])(X), "must return a matrix of shape (30, 30); got shape (30,)."),
    (lambda: Precomputed()(X[:2]), "A precomputed kernel must be square at fit; got 2 x 4."),
    (lambda: Precomputed()(["a"]), "A precomputed kernel must be a numeric matrix; got a sequence of objects."),
    (lambda: ks.Spectrum(1)(["a", None]), "cannot evaluate missing samples; X contains None. Select the present"),
    (lambda: ks.as_kernel("gauss"), "A kernel must be an object of consilience.kernels such as RBF(gamma=0.5)"),
    (lambda: ks.as_kernel(RBF), "got <class 'consilience.kernels.scalar.RBF'>"),
    (lambda: ks.kernels_by_view({"c": "rbf"}, ["a", "b"]), "`kernel` names the view 'c'; the views are 'a', 'b'."),
    (lambda: ks.resolve_kernels({"t": RBF()}, V[["t"]]), "View 't': RBF(gamma='scale') takes numeric data"),
    (lambda: ks.view_grams({"b": RBF(1.0)}, Views(b=X), V[["b"]]), "View 'b': RBF(gamma=1.0) got samples"),
    (lambda: ks.resolve_kernels({"a": RBF()}, Views(a=None, b=X)), "View 'a': It is missing in every sample. Omit it."),
    (lambda: ks.view_grams({"a": Linear()}, V, missing="nan"), "`missing` must be 'zero' or 'mean'; got 'nan'."),
    (lambda: ks.is_psd(X), "A Gram matrix must be square; got shape (30, 4)."),
    (lambda: ks.alignment(np.eye(3), np.eye(3), unbiased=True), "needs at least 4 samples; got 3."),
    (lambda: ks.alignment(np.eye(4), np.eye(4), centered=False, unbiased=True), "is of centered matrices. Omit"),
    (lambda: ks.alignment(np.eye(2), np.eye(3)), "Gram matrices of the same samples; got shapes (2, 2) and (3, 3)."),
    (lambda: ks.nearest_psd([[np.nan]]), "nearest_psd needs a finite matrix; K contains NaN or infinity."),
    (lambda: Precomputed()(np.ones((2, 3)), np.eye(2)), "view has 3 columns, but its reference has 2 samples"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


def test_every_public_kernel_states_its_short_name_and_is_in_the_tables():
    public = [name for name in ks.__all__ if isinstance(getattr(ks, name), type) and name != "Kernel"]
    for name, kernel in NAMED.items():
        assert type(ks.as_kernel(name)) is kernel
        assert f'Short name: ``"{name}"``.' in kernel.__doc__
    assert 0 < len(NAMED) == sum(getattr(ks, name)._name is not None for name in public)
    tested = repr([*ON_VECTORS.values(), *cases.STRUCTURED.values(), Precomputed()])
    assert [name for name in public if f"{name}(" not in tested] == []
