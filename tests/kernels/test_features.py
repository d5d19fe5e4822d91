"""Finite features: Nyström and random Fourier."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cases
import reference
from consilience import Nystroem, PerView, RandomFeatures, Views
from consilience.kernels import RBF, Laplacian, Linear, Precomputed, Spectrum, center, normalize, view_grams

A = cases.histograms(60, 4)
B = cases.histograms(60, 7, seed=2)
V = Views(a=A, b=sp.csr_array(B), t=["anna", "otto", "ida", "hannah"] * 15)
KERNELS = {"a": RBF(0.3), "b": RBF("median"), "t": Spectrum(1)}
WAYS = ["uniform", "kmeans++", "leverage"]


def holed():
    mask = np.ones((60, 3), dtype=bool)
    mask[5:20, 0] = False
    mask[15:30, 2] = False
    return Views(V, mask=mask)


@pytest.mark.parametrize("landmarks", WAYS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size", [12, 0.2, 1.0])
def test_features_give_the_nystroem_matrix_of_their_landmarks(landmarks, shared, size):
    maker = Nystroem(kernel=KERNELS, n_components=size, landmarks=landmarks, shared=shared, random_state=0).fit(V)
    features = maker.transform(V)
    for name, K in zip(V.names, view_grams(maker.kernels_, V), strict=True):
        chosen = maker.landmark_indices_[name]
        assert len(set(chosen.tolist())) == len(chosen) <= (60 if size == 1.0 else 12)
        expected = K if size == 1.0 else reference.nystroem(K, chosen)
        np.testing.assert_allclose(features[name] @ features[name].T, expected, atol=1e-7 if size == 1.0 else 1e-8)
    if shared:
        assert len({tuple(chosen) for chosen in maker.landmark_indices_.values()}) == 1


def test_equals_scikit_learns_up_to_a_rotation_on_new_samples_and_in_single_precision():
    ours = Nystroem(RBF(0.3), n_components=10, random_state=0).fit(Views(a=A))
    theirs = SklearnNystroem(kernel="rbf", gamma=0.3, n_components=10, random_state=0)
    theirs.fit(A[ours.landmark_indices_["a"]])
    F, G = ours.transform(Views(a=A))["a"], theirs.transform(A)
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-8)


def test_directions_without_weight_and_views_missing_at_fit_are_dropped():
    maker = Nystroem(Linear(), n_components=30, random_state=0)
    assert maker.fit_transform(Views(a=A))["a"].shape[1] == 4
    assert maker.n_components_ == {"a": 4}
    twins = np.repeat(A[:5], 6, axis=0)
    for landmarks in WAYS:
        F = Nystroem(RBF(0.3), n_components=20, landmarks=landmarks, random_state=0).fit_transform(Views(a=twins))["a"]
        assert F.shape[1] <= 5
        assert np.isfinite(F).all()
    F = Nystroem("linear", n_components=3, random_state=0).fit_transform(Views(a=np.zeros((5, 2))))["a"]
    assert F.tolist() == [[0.0]] * 5
    maker = Nystroem(kernel={"a": RBF(0.3), "b": Linear()}, n_components=3, random_state=0).fit(Views(a=None, b=B))
    assert maker.transform({"a": A, "b": B}).names == ("b",)

    maker = Nystroem(RBF(0.3), n_components=0.5, random_state=0).fit(Views(a=A))
    np.testing.assert_allclose(maker.transform(Views(a=A[7:9]))["a"], maker.transform(Views(a=A))["a"][7:9], atol=1e-12)
    single = Nystroem(RBF(0.3), n_components=10, random_state=0).fit_transform(Views(a=A.astype(np.float32)))["a"]
    assert single.dtype == np.float32
    assert RandomFeatures(random_state=0).fit_transform(Views(a=A.astype(np.float32)))["a"].dtype == np.float32


@pytest.mark.parametrize("shared", [False, True])
def test_missing_rows_are_not_landmarks_and_stay_missing(shared):
    M = holed()
    maker = Nystroem(kernel=KERNELS, n_components=8, shared=shared, random_state=0).fit(M)
    features = maker.transform(M)
    for name in M.names:
        assert M.present(name)[maker.landmark_indices_[name]].all()
        assert np.array_equal(features.present(name), M.present(name))
        assert np.isnan(features[name][~M.present(name)]).all()
    assert maker.transform(Views(a=A)).names == ("a", "b", "t")
    assert not maker.transform(Views(a=A)).present("t").any()
    # shared landmarks beyond the complete samples serve the views that they have
    maker = Nystroem(kernel=KERNELS, n_components=45, shared=True, random_state=0).fit(M)
    complete = np.flatnonzero(M.mask.all(axis=1))
    chosen = np.unique(np.concatenate(list(maker.landmark_indices_.values())))
    assert len(chosen) == 45
    assert set(complete) <= set(chosen)
    for name in M.names:
        assert set(maker.landmark_indices_[name]) == set(chosen[M.present(name)[chosen]])


def test_precomputed_views_have_landmarks_too():
    K = RBF(0.3)(A)
    G = Views(g=K, precomputed="g")
    plain_train, plain_test = Views(g=K[:40, :40]), Views(g=K[40:, :40])
    for train, test in ((G[:40], G[40:]), (plain_train, plain_test)):
        maker = Nystroem("precomputed", n_components=20, random_state=0).fit(train)
        F = maker.transform(test)["g"]
        chosen = maker.landmark_indices_["g"]
        places = [*chosen, *range(40, 60)]
        expected = reference.nystroem(K[np.ix_(places, places)], range(20))[20:, 20:]
        np.testing.assert_allclose(F @ F.T, expected, atol=1e-8)
    for kernel in (normalize(Precomputed()), center(Precomputed()) + 1.0):
        F = Nystroem(kernel, n_components=1.0).fit(G).transform(G)["g"]
        np.testing.assert_allclose(F @ F.T, kernel.resolved(G.block("g"))(G.block("g")), atol=1e-7)


@pytest.mark.parametrize("kernel", [RBF(0.3), RBF("median"), Laplacian(0.2)], ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_random_features_approach_the_kernel(kernel, form):
    maker = RandomFeatures(kernel, n_components=20000, random_state=0).fit(Views(a=form(A)))
    F = maker.transform(Views(a=form(A)))["a"]
    assert np.abs(F @ F.T - kernel(A)).max() < 0.05


def test_better_landmarks_on_uneven_data():
    """Few samples lie far out: drawing by distance or leverage finds them, drawing uniformly mostly does not."""
    rng = np.random.default_rng(0)
    data = np.vstack([0.05 * rng.normal(size=(570, 3)), 4 * rng.normal(size=(30, 3))])
    K = RBF(0.2)(data)
    errors = {}
    for landmarks in WAYS:
        makers = [Nystroem(RBF(0.2), n_components=20, landmarks=landmarks, random_state=seed) for seed in range(5)]
        runs = [maker.fit_transform(Views(a=data))["a"] for maker in makers]
        errors[landmarks] = np.median([np.linalg.norm(K - F @ F.T) for F in runs])
    assert errors["kmeans++"] < errors["uniform"]
    assert errors["leverage"] < errors["uniform"]


@pytest.mark.parametrize(
    "maker", [Nystroem(n_components=5, random_state=0), RandomFeatures(n_components=5, random_state=0)]
)
def test_neither_order_nor_other_views_change_a_views_features(maker):
    both = clone(maker).fit_transform(Views(a=A, b=B))
    turned = clone(maker).fit_transform(Views(b=B, a=A))
    alone = clone(maker).fit_transform(Views(b=B))
    assert both[["b"]] == turned[["b"]] == alone
    frame = pd.DataFrame(np.hstack([A, B]), columns=[f"a__{j}" for j in range(4)] + [f"b__{j}" for j in range(7)])
    assert clone(maker).set_params(views="prefix").fit_transform(frame) == both


def test_seeds_clones_parameters_and_pipelines():
    first, second = (Nystroem(n_components=5, random_state=3).fit_transform(Views(a=A)) for _ in range(2))
    assert first == second
    assert clone(Nystroem(n_components=5)).n_components == 5
    assert Nystroem(kernel={"a": RBF(0.3)}).set_params(kernel__a__gamma=2.0).kernel["a"].gamma == 2.0
    assert Nystroem("rbf").set_params(kernel__gamma=2.0).kernel.gamma == 2.0
    pipe = make_pipeline(PerView(StandardScaler()), Nystroem(n_components=5, random_state=0))
    assert pipe.fit_transform(Views(a=A))["a"].shape == (60, 5)


def indefinite(A, B):
    return -(A @ B.T)


ONES = {name: np.ones((9, 1)) for name in "abc"}
LITTLE = Views(ONES, mask={"b": np.arange(9) == 8, "c": np.arange(9) < 8})  # no sample has both b and c
ERRORS = [
    (lambda: Nystroem(n_components=0).fit(Views(a=A)), "[1, inf) or a float in the range (0.0, 1.0]"),
    (lambda: RandomFeatures(n_components=1.5).fit(Views(a=A)), "'n_components' parameter of RandomFeatures must be an"),
    (lambda: Nystroem(n_components=0.0).fit_read(Views(a=A)), "The 'n_components' parameter of Nystroem"),
    (lambda: Nystroem(landmarks="best").fit(Views(a=A)), "The 'landmarks' parameter of Nystroem must be a str among"),
    (lambda: Nystroem(shared=2).fit(Views(a=A)), "The 'shared' parameter of Nystroem must be an instance of 'bool'"),
    (lambda: RandomFeatures(kernel=3).fit(Views(a=A)), "The 'kernel' parameter of RandomFeatures must be"),
    (lambda: Nystroem(n_components=1, shared=True, random_state=0).fit(LITTLE), "the 1 shared landmarks has view 'b'."),
    (lambda: Nystroem(indefinite).fit(Views(a=A)), "(func=indefinite, pairs=False) is not positive semi-definite"),
    (lambda: RandomFeatures("linear").fit(Views(a=A)), "takes the kernels RBF and Laplacian; got Linear(). Use"),
    (
        lambda: RandomFeatures().fit({"a": A}).transform({"a": B[:, :3]}),
        "3 features, but RandomFeatures is expecting 4",
    ),
    (lambda: Nystroem().fit({"a": A}).transform({"b": A}), "was fitted on the views 'a'; it does not know 'b'."),
    (lambda: Nystroem().fit(Views(a=[[1.0, np.nan], [2.0, 3.0]])), "View 'a' contains NaN in row 0"),
    (lambda: Nystroem().transform(Views(a=A)), "is not fitted yet"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)
