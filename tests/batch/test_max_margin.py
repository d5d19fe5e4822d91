"""Maximum margin regression against twins, special cases and other programs; `tests/solvers` has its solvers."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

import consilience as cs
import reference
from consilience.batch import _max_margin, max_margin_outputs
from consilience.kernels import RBF, FromCallable, Laplacian, Polynomial, Spectrum, Subsequence, normalize
from consilience.kernels.joint import JointKernel
from consilience.solvers import margin, margin_labels

VECTORS = ("simplex", "indicator", "centered_means", "centered_medians")


def blobs(n=90, T=4, spread=4.0, columns=3, seed=0):
    X, y = make_blobs(n, columns, centers=T, cluster_std=spread, random_state=seed)
    return X / 5, y


def two_values(T):
    return np.full((T, T), -1 / (T - 1)) + np.eye(T) * (1 + 1 / (T - 1))


def coefficients(model, y):
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_
    return alpha


# -- the intercept
@pytest.mark.parametrize("T", [2, 3, 5])
def test_an_intercept_is_that_of_the_conic_solver(cp, T):
    X, y = blobs(n=60, T=T)
    Y = cs.simplex_vectors(T)
    W, b, slack = cp.Variable((Y.shape[1], 3)), cp.Variable(Y.shape[1]), cp.Variable(60)
    margins = cp.sum(cp.multiply(Y[y], X @ W.T + cp.reshape(b, (1, Y.shape[1]), order="C")), axis=1)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + 2 * cp.sum(slack)), [margins >= 1 - slack, slack >= 0])
    program.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11)
    model = cs.MaxMarginClassifier("linear", C=2.0, fit_intercept=True, tol=1e-7).fit(X, y)
    proof = model.certificate()
    np.testing.assert_allclose(proof.objective, program.value, rtol=1e-6)
    assert proof.objective - program.value <= proof.gap + 1e-7 * program.value
    np.testing.assert_allclose(model.intercept_, Y @ b.value, atol=1e-2)
    balance = np.bincount(y[model.support_], model.dual_coef_, T) @ Y
    assert np.abs(balance).max() < 1e-3 * model.dual_coef_.sum()


ALONE = "the intercept alone would meet every margin"


@pytest.mark.parametrize(
    ("vectors", "T", "some", "message"),
    [
        ("indicator", 4, slice(4), rf"{ALONE} .*such as 'simplex'"),
        ([[1.0, 0.1], [0.9, 0.2], [1.0, -0.3], [0.2, 1.0]], 4, slice(4), rf"{ALONE} .*such as 'simplex'"),
        ("simplex", 3, [2], r"`fit_intercept` is for two classes or more; .* one class, np.int64\(2\)"),
        ([[1.0, 0], [1, 1]], 3, [0, 1], ALONE),  # the third class has weight 0, and is absent
    ],
)
def test_an_intercept_that_would_suffice_alone_is_refused(vectors, T, some, message):
    X, y = blobs(T=T)
    weight = np.isin(y, np.arange(T)[some]) * 1.0
    with pytest.raises(ValueError, match=message):
        cs.MaxMarginClassifier(class_vectors=vectors, fit_intercept=True).fit(X, y, sample_weight=weight)


# -- the classifier
DIGITS = tuple(part[:500] for part in load_digits(return_X_y=True))


@pytest.mark.parametrize(
    ("data", "gamma", "C", "vectors", "tol", "near", "rtol", "atol"),
    [
        *((DIGITS, 1e-3, 2.0, vectors, 1e-3, 1e-5, 0.02, 1e-6) for vectors in VECTORS),
        *((DIGITS, 1e-3, 2.0, vectors, 1e-6, 1e-9, 0.02, 1e-9) for vectors in VECTORS),
        *((blobs(n=150, T=3), 0.1, C, "simplex", 1e-3, 2e-5, 0, 2e-5) for C in (1.0, 50.0, 1e3, 1e4)),
    ],
)
def test_the_gap_is_that_of_the_coefficients_whatever_the_precision(data, gamma, C, vectors, tol, near, rtol, atol):
    X, y = data
    model = cs.MaxMarginClassifier(RBF(gamma), C=C, class_vectors=vectors, tol=tol).fit(X, y)
    proof, A, alpha = model.certificate(), model.class_vectors_ @ model.class_vectors_.T, coefficients(model, y)
    Q = RBF(gamma)(X) * A[np.ix_(y, y)]
    primal, dual = reference.margin_objective(Q, alpha, np.full(len(y), C)), alpha.sum() - 0.5 * alpha @ Q @ alpha
    assert proof.gap <= tol * proof.objective
    np.testing.assert_allclose(proof.objective, primal, rtol=near)
    np.testing.assert_allclose(proof.gap, primal - dual, rtol=rtol, atol=atol * primal)
    scores = RBF(gamma)(X) @ (alpha[:, None] * A[y])
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8 * max(C / 2, 1))


def test_two_classes_are_the_support_vector_machine():
    X, y = blobs(n=100, T=2)
    K, sign = RBF(0.5)(X), np.where(y == 1, 1.0, -1.0)
    model = cs.MaxMarginClassifier(RBF(0.5), C=3.0, tol=1e-10).fit(X, y)
    expected = reference.margin_dual(K * np.outer(sign, sign), np.full(100, 3.0), np.ones(100))
    np.testing.assert_allclose(model.decision_function(X), K @ (expected * sign), atol=1e-4)
    # each sample once more, mirrored, so that the intercept of the support vector machine is 0
    mirrored = SVC(kernel="linear", C=1.5, tol=1e-9).fit(np.vstack([X, -X]), np.concatenate([sign, -sign]))
    linear = cs.MaxMarginClassifier("linear", C=3.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(mirrored.intercept_, 0, atol=1e-6)
    np.testing.assert_allclose(linear.decision_function(X), mirrored.decision_function(X), atol=1e-4)
    model = cs.MaxMarginClassifier(RBF(0.5), C=3.0, fit_intercept=True, tol=1e-8).fit(X, y)
    other = SVC(C=3.0, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose((model.intercept_[1] - model.intercept_[0]) / 2, other.intercept_[0], atol=1e-3)


@pytest.mark.parametrize("T", [2, 3, 10, 48])
def test_simplex_vectors_have_equal_products_and_one_variable_per_sample(T):
    vectors = cs.simplex_vectors(T)
    np.testing.assert_allclose(vectors @ vectors.T, two_values(T), atol=1e-12)
    assert vectors.shape == (T, T - 1)
    model = cs.MaxMarginClassifier().fit(*blobs(n=120, T=T))
    np.testing.assert_allclose(model.class_vectors_ @ model.class_vectors_.T, two_values(T), atol=1e-12)
    assert model.solution_.x.shape == (120,)


def test_indicators_are_one_machine_for_each_class():
    X, y = blobs(T=3)
    model = cs.MaxMarginClassifier(RBF(0.5), C=2.0, class_vectors="indicator", tol=1e-10).fit(X, y)
    for t in range(3):
        own = X[y == t]
        alpha = reference.margin_dual(RBF(0.5)(own), np.full(len(own), 2.0), np.ones(len(own)))
        np.testing.assert_allclose(model.decision_function(X)[:, t], RBF(0.5)(X, own) @ alpha, atol=1e-4)


def test_vectors_of_classes():
    X, y = blobs(T=4, columns=5)
    weights = np.random.default_rng(0).integers(1, 4, size=len(y))  # a weight of 2 is the sample given twice
    for vectors, center in (("means", np.mean), ("medians", np.median)):
        for often in (np.ones(len(y), dtype=int), weights):
            A, b = np.repeat(X, often, axis=0), np.repeat(y, often)
            centers = np.array([center(A[b == t], axis=0) for t in range(4)])  # as in the paper: not centered
            for given in (X, sp.csr_array(X)):
                model = cs.MaxMarginClassifier("linear", class_vectors=vectors).fit(given, y, sample_weight=often)
                np.testing.assert_allclose(model.class_vectors_, centers, atol=1e-12)
            Q = (X @ X.T) * (centers[y] @ centers[y].T)
            alpha = reference.margin_dual(Q, often.astype(float), np.ones(len(y)))
            exact = cs.MaxMarginClassifier("linear", class_vectors=vectors, tol=1e-10).fit(X, y, sample_weight=often)
            expected = (X @ X.T * alpha) @ (centers[y] @ centers.T)
            np.testing.assert_allclose(exact.decision_function(X), expected, atol=1e-3 * abs(expected).max())
            centers = centers - centers.mean(axis=0)
            centers /= np.linalg.norm(centers, axis=1, keepdims=True)
            model = cs.MaxMarginClassifier(class_vectors=f"centered_{vectors}").fit(X, y, sample_weight=often)
            np.testing.assert_allclose(model.class_vectors_, centers, atol=1e-12)
    names = np.array(["d", "c", "b", "a"])[y]
    given = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0], "d": [0.0, -1.0]}
    by_name = cs.MaxMarginClassifier(class_vectors=given, tol=1e-9).fit(X, names)
    as_rows = cs.MaxMarginClassifier(class_vectors=[given[c] for c in "abcd"], tol=1e-9).fit(X, names)
    np.testing.assert_array_equal(by_name.decision_function(X), as_rows.decision_function(X))
    doubled = cs.MaxMarginClassifier(class_vectors=2 * cs.simplex_vectors(4), C=0.25, tol=1e-10).fit(X, y)
    plain = cs.MaxMarginClassifier(tol=1e-10).fit(X, y)  # vectors twice as long make operators half as large
    np.testing.assert_allclose(doubled.certificate().objective, plain.certificate().objective / 4, rtol=1e-6)


def test_class_weights_scale_C():
    X, y = blobs(n=80)
    how = {"kernel": RBF(0.5), "tol": 1e-10}
    balanced = cs.MaxMarginClassifier(class_weight={0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0}, **how).fit(X, y)
    by_sample = cs.MaxMarginClassifier(**how).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(balanced.decision_function(X), by_sample.decision_function(X), atol=1e-6)


def test_a_warm_start_follows_a_path_of_C():
    X, y = blobs(n=300, T=5)
    warm = cs.MaxMarginClassifier(RBF(0.5), warm_start=True, tol=1e-8)
    for C in (0.1, 1.0, 10.0, 1.0):
        warm.set_params(C=C).fit(X, y)
        cold = cs.MaxMarginClassifier(RBF(0.5), C=C, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(warm.certificate().objective, cold.certificate().objective, rtol=3e-8)
    before = warm.n_iter_
    assert warm.fit(X, y).n_iter_ <= before
    assert warm.n_iter_ <= 2
    warm.fit(X[:50], y[:50])  # another number of samples: a start from nothing
    assert warm.certificate().gap <= 1e-8 * warm.certificate().objective


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_kernels_work_on_the_data_themselves(sparse, monkeypatch):
    X, y = blobs(n=150, columns=6)
    given = sp.csr_array(X) if sparse else X
    by_gram = cs.MaxMarginClassifier("linear", C=0.5, tol=1e-9).fit(given, y)
    monkeypatch.setattr(_max_margin, "_FEW", 10)
    by_data = cs.MaxMarginClassifier("linear", C=0.5, tol=1e-9).fit(given, y)
    assert hasattr(by_data, "coef_")
    assert not hasattr(by_gram, "coef_")
    np.testing.assert_allclose(by_data.certificate().objective, by_gram.certificate().objective, rtol=1e-8)
    np.testing.assert_allclose(by_data.decision_function(given), by_gram.decision_function(given), atol=1e-4)
    np.testing.assert_allclose(by_data.decision_function(given), X @ by_data.coef_["view0"], atol=1e-10)


@pytest.mark.parametrize("combine", ["sum", "product", Polynomial(2, 0.5)])
@pytest.mark.parametrize("missing", [False, True])
def test_landmarks_have_the_slack_of_their_features(combine, missing):
    X, y = two_views(missing=missing)
    few = cs.MaxMarginClassifier(RBF(0.3), combine=combine, n_components=20, tol=1e-6, random_state=0).fit(X, y)
    assert few.score(X, y) > 0.6
    slack = np.maximum(0, 1 - few.decision_function(X)[np.arange(90), y])  # the features of fit are those of prediction
    assert slack.sum() == pytest.approx(2 * few.certificate().objective - few.dual_coef_.sum(), rel=1e-3)
    assert few.certificate().dual <= few.certificate().objective


SIZES = (1e-4, 0.01, 100.0)


def overlapping(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 500)
    return rng.normal(size=(500, 5)) + 0.7 * y[:, None], y


@pytest.mark.parametrize(
    ("data", "kernel", "how"),
    [
        *((overlapping(seed), RBF(1e-3), {"C": 20.0}) for seed in range(4)),
        *((overlapping(seed), "linear", {"C": 10.0, "tol": 1e-6}) for seed in range(4)),
        *((overlapping(seed), RBF(1e-3), {"tol": 1e-6}) for seed in range(4)),
        *((blobs(n=200, T=T), RBF(0.5), {"C": C, "fit_intercept": True}) for T, C in product((2, 3, 25), SIZES)),
    ],
)
def test_few_free_variables_and_intercepts_converge(data, kernel, how):
    assert cs.MaxMarginClassifier(kernel, **how).fit(*data).solution_.status == "converged"


# -- several views
def two_views(n=90, missing=False, seed=0):
    A, y = blobs(n=n, T=3, seed=seed)
    B = np.random.default_rng(seed).normal(size=(n, 2)) + y[:, None]
    mask = np.ones((n, 2), dtype=bool)
    if missing:
        mask[::5, 0] = False
        mask[1::4, 1] = False
        mask[~mask.any(axis=1), 0] = True
    return cs.Views({"a": A, "b": B}, mask=mask), y


def combined_by_hand(X, combine, missing):
    """The joint kernel from its definition."""
    present = X.mask if X.mask is not None else np.ones((len(X), 2), dtype=bool)
    grams = []
    for v, name in enumerate(X.names):
        K, there = RBF(0.3)(np.nan_to_num(np.asarray(X[name]))), present[:, v]
        if combine == "sum":
            K = K * np.outer(there, there)
        elif missing:  # a missing view is the mean of the present ones in feature space
            M = np.eye(len(K))
            M[~there] = there / there.sum()
            K = M @ (K * np.outer(there, there)) @ M.T
        grams.append(K)
    if combine == "sum":
        scale = 2 / present.sum(axis=1)
        return (grams[0] + grams[1]) * np.outer(scale, scale)
    if combine == "product":
        return grams[0] * grams[1]
    if isinstance(combine, list):
        return 0.5 * grams[0] + 2.0 * grams[0] * grams[1]
    return (grams[0] + grams[1] + 0.5) ** 2


@pytest.mark.parametrize("combine", ["sum", "product", Polynomial(2, 0.5), [("a", 0.5), (("a", "b"), 2.0)]], ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_views_make_one_kernel(combine, missing):
    X, y = two_views(missing=missing)
    K = combined_by_hand(X, combine, missing)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    joint = JointKernel({"a": RBF(0.3), "b": RBF(0.3)}, X, combine)
    np.testing.assert_allclose(joint.cross(X), K, atol=1e-12)
    np.testing.assert_allclose(joint.diagonal(), K.diagonal(), atol=1e-12)
    model = cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-9).fit(X, y)
    alone = cs.MaxMarginClassifier("precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(K), atol=1e-3)
    np.testing.assert_allclose(model.certificate().objective, alone.certificate().objective, rtol=1e-8)


@pytest.mark.parametrize("combine", ["sum", "product"])
def test_views_missing_at_prediction_only(combine):
    X, y = two_views()
    model = cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-8).fit(X, y)
    scores = model.decision_function({"a": X["a"]})
    K = RBF(0.3)(X["a"]) * (RBF(0.3)(X["b"]).mean(axis=0) if combine == "product" else 2)
    np.testing.assert_allclose(scores, K @ (coefficients(model, y)[:, None] * two_values(3)[y]), atol=1e-8)
    assert (scores.argmax(axis=1) == y).mean() > 0.6


def test_each_views_scores_add_up():
    X, y = two_views(missing=True)
    for n_components in (None, 30):
        model = cs.MaxMarginClassifier(RBF(0.3), n_components=n_components, random_state=0).fit(X, y)
        parts = model.view_decision_function(X)
        np.testing.assert_array_equal(np.isnan(parts[:, :, 0]), ~X.mask)
        scale = 2 / X.mask.sum(axis=1)
        np.testing.assert_allclose(np.nansum(parts, axis=1) * scale[:, None], model.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="the kernel is not a sum over views"):
        cs.MaxMarginClassifier(combine="product").fit(X, y).view_decision_function(X)


def test_kernels_without_fast_rows_converge():
    slow = cs.MaxMarginClassifier(Laplacian(0.5), tol=1e-8).fit(*blobs())
    assert slow.certificate().gap <= 1e-8 * slow.certificate().objective


# -- outputs of any kind
def test_indicator_vectors_as_outputs_are_the_classifier():
    X, y = blobs()
    how = {"kernel": RBF(0.5), "tol": 1e-9}
    regressor = cs.MaxMarginRegressor(output_kernel="linear", **how).fit(X, np.eye(4)[y])
    classifier = cs.MaxMarginClassifier(class_vectors="indicator", **how).fit(X, y)
    np.testing.assert_array_equal(regressor.predict(X).argmax(axis=1), classifier.predict(X))
    order = np.argsort(-regressor.candidates_.argmax(axis=1))[::-1]
    np.testing.assert_allclose(regressor.candidate_scores(X)[:, order], classifier.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("n_components", [None, 1.0])
def test_scores_of_candidates_are_those_of_the_twin(n_components):
    X, y = blobs(n=60)
    words = np.array(["anna", "hanna", "otto", "ottokar"])[y]
    k_y = normalize(Spectrum(2))
    model = cs.MaxMarginRegressor(
        RBF(0.5), output_kernel=k_y, candidates=["otto", "johanna", "anna"], n_components=n_components, tol=1e-9
    ).fit(X, words)
    K_y = k_y(words.tolist())
    alpha = reference.margin_dual(K_y * RBF(0.5)(X), np.ones(60), np.ones(60))
    expected = (RBF(0.5)(X) * alpha) @ k_y(words.tolist(), ["otto", "johanna", "anna"])
    np.testing.assert_allclose(model.candidate_scores(X), expected, atol=1e-3)
    ranked = model.rank(X, top=2)
    assert [first for (first, _), _ in ranked] == model.predict(X).tolist()
    assert all(a[1] >= b[1] for a, b in ranked)
    assert model.score(X, model.predict(X)) == 1.0


def test_numbers_are_regressed_through_an_output_kernel():
    X = np.random.default_rng(0).uniform(-2, 2, (400, 1))
    y, grid = np.sin(2 * X[:, 0]), np.linspace(-1, 1, 21)
    for targets, candidates in ((y, None), (np.column_stack([y, np.cos(2 * X[:, 0])]), None), (y, grid)):
        model = cs.MaxMarginRegressor(RBF(5.0), C=10.0, candidates=candidates).fit(X, targets)
        assert model.score(X, targets) > 0.95
        assert model.predict(X).shape == targets.shape
    assert set(model.predict(X)) <= set(grid)


def test_many_different_outputs_go_without_their_matrix(monkeypatch):
    X = np.random.default_rng(0).uniform(-2, 2, (150, 1))
    y = np.sin(2 * X[:, 0])
    held = cs.MaxMarginRegressor(RBF(5.0), output_kernel=RBF(1.0), tol=1e-8).fit(X, y)
    for module in (margin_labels, max_margin_outputs, _max_margin):
        monkeypatch.setattr(module, "HELD", 10)
    rows = cs.MaxMarginRegressor(RBF(5.0), output_kernel=RBF(1.0), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(rows.certificate().objective, held.certificate().objective, rtol=1e-7)
    np.testing.assert_allclose(rows.candidate_scores(X), held.candidate_scores(X), atol=1e-3)
    for wrong, message in (
        ({"candidates": [0.5, 0.5]}, "the same output twice"),
        ({"candidates": []}, "is empty"),
        ({"candidates": ["a"]}, "of different kinds"),
        ({"n_components": 10}, "There are 150 different outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            cs.MaxMarginRegressor(RBF(5.0), **wrong).fit(X, y)


def test_a_matrix_between_outputs_takes_positions():
    X, y = blobs(spread=1.5)
    K_y = block_diag([[1, 0.5], [0.5, 1]], [[1, 0.5], [0.5, 1]], 1.0)
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel=K_y).fit(X, y)
    assert model.candidates_.tolist() == [0, 1, 2, 3, 4]
    assert model.score(X, y) > 0.8
    assert cross_val_score(model, X, y, cv=3).min() > 0.6
    only = cs.MaxMarginRegressor(RBF(0.5), output_kernel=K_y, candidates=[1, 3]).fit(X, y)
    assert set(only.predict(X)) <= {1, 3}
    for wrong, targets, message in (
        (K_y, np.where(y == 3, 9, y), "position of each sample's output in it, 0 to 4; got values from 0 to 9"),
        ("precomputed", y, "given as the matrix itself"),
        (-np.eye(4), y, "square, symmetric and positive semi-definite"),
    ):
        with pytest.raises(ValueError, match=message):
            cs.MaxMarginRegressor(output_kernel=wrong).fit(X, targets)


def test_an_intercept_for_vector_outputs():
    X, y = blobs(T=3)
    Y = cs.simplex_vectors(3)[y]
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel="linear", fit_intercept=True, tol=1e-8).fit(X, Y)
    classifier = cs.MaxMarginClassifier(RBF(0.5), fit_intercept=True, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.certificate().objective, classifier.certificate().objective, rtol=1e-7)
    np.testing.assert_allclose(np.sort(model.candidate_scores(X)), np.sort(classifier.decision_function(X)), atol=1e-3)
    assert model.intercept_.shape == (3,)
    np.testing.assert_allclose(np.sort(model.intercept_), np.sort(classifier.intercept_), atol=1e-3)
    assert not cs.MaxMarginRegressor(RBF(0.5)).fit(X, y).intercept_.any()
    with pytest.raises(ValueError, match="the intercept alone would meet every margin"):
        cs.MaxMarginRegressor(RBF(0.5), fit_intercept=True).fit(X, y)  # a Gaussian kernel makes outputs independent


def test_missing_outputs_are_left_out():
    X, y = blobs()
    words = np.array(["anna", "hanna", "otto", None], dtype=object)[y]
    model = cs.MaxMarginRegressor(RBF(0.5), output_kernel=Spectrum(2)).fit(X, words)
    assert set(model.candidates_) == {"anna", "hanna", "otto"}
    some = y != 3
    same = cs.MaxMarginRegressor(model.kernels_["view0"], output_kernel=Spectrum(2)).fit(X[some], words[some])
    np.testing.assert_allclose(model.candidate_scores(X), same.candidate_scores(X), atol=1e-6)
    with pytest.raises(ValueError, match="y has no target at all"):
        cs.MaxMarginRegressor(output_kernel=Spectrum(2)).fit(X[:3], [None, None, None])


# -- what users do
@pytest.mark.parametrize("scaler", [Normalizer(), StandardScaler()])
def test_samples_and_columns_are_scaled_before(scaler):
    X, y = two_views(missing=True)
    model = make_pipeline(cs.PerView(scaler), cs.MaxMarginClassifier(RBF(0.5), tol=1e-9)).fit(X[:60], y[:60])
    scaled = cs.PerView(scaler).fit(X[:60])
    plain = cs.MaxMarginClassifier(RBF(0.5), tol=1e-9).fit(scaled.transform(X[:60]), y[:60])
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(scaled.transform(X)), atol=1e-10)


def test_probabilities_come_from_scikit_learns_calibration():
    X, y = load_digits(return_X_y=True)
    model = CalibratedClassifierCV(cs.MaxMarginClassifier(C=10.0), cv=3).fit(X[:600], y[:600])
    shares = model.predict_proba(X[600:900])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares.argmax(axis=1) == y[600:900]).mean() > 0.85


WORDS, NOT_FINITE = cs.Views(words=list("abcd")), FromCallable(lambda A, B: np.full((len(A), len(B)), np.nan))


@pytest.mark.parametrize(
    ("kernel", "vectors", "X", "message"),
    [
        (Spectrum(2), "means", WORDS, "View 'words' holds objects data; class_vectors='means' needs numbers"),
        ("rbf", "centered_means", np.array([[1.0], [2.0], [3.0], [2.0]]), "the mean of these vectors over the classes"),
        ("rbf", "medians", np.array([[1.0], [0.0], [3.0], [0.0]]), "the vector of class 1 equals 0, so it has no dir"),
        (NOT_FINITE, "simplex", np.eye(4), r"View 'view0': .* has values .*that are NaN or too large"),
    ],
)
def test_data_without_a_solution_are_refused(kernel, vectors, X, message):
    with pytest.raises(ValueError, match=message):
        cs.MaxMarginClassifier(kernel, class_vectors=vectors).fit(X, [0, 1, 2, 1])


def test_one_output_and_zero_kernels():
    assert cs.MaxMarginRegressor().fit([[1.0]], [3.0]).predict([[2.0]]).tolist() == [3.0]
    zero = cs.MaxMarginClassifier("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert zero.solution_.status == "converged"
    assert zero.certificate().objective == 4.0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_scales_and_offsets_do_not_matter_to_gaussian_kernels(scale, offset):
    X, y = blobs(n=150)
    plain = cs.MaxMarginClassifier(RBF(0.5)).fit(X, y)
    moved = cs.MaxMarginClassifier(RBF(0.5 / scale**2)).fit(scale * (X + offset), y)
    np.testing.assert_allclose(moved.certificate().objective, plain.certificate().objective, rtol=2e-3)
    assert moved.certificate().gap <= 1e-3 * moved.certificate().objective


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize(
    ("kernel", "degree", "n_components"), [("linear", 1, None), (Polynomial(2, 0.0), 2, None), ("linear", 1, 3)]
)
def test_linear_kernels_of_any_scale_are_certified(scale, kernel, degree, n_components, monkeypatch):
    monkeypatch.setattr(_max_margin, "_FEW", 10)
    X, y = blobs(n=150)
    proof = cs.MaxMarginClassifier(kernel, C=scale ** (-2 * degree), n_components=n_components).fit(scale * X, y)
    assert proof.certificate().gap <= 1e-3 * proof.certificate().objective


def test_models_survive_files(tmp_path):
    X, y = two_views(missing=True)
    words = np.array(["anna", "otto", "ottokar"])[y]
    features = {"n_components": 20, "random_state": 0}
    for model, targets in (
        (cs.MaxMarginClassifier(RBF(0.3), combine="product"), y),
        (cs.MaxMarginClassifier(RBF(0.3), combine=[("a", 1.0), (("a", "b"), 0.5)]), y),
        (cs.MaxMarginClassifier(RBF(0.3), **features), words),
        (cs.MaxMarginClassifier(RBF(0.3), combine="product", fit_intercept=True, **features), y),
        (cs.MaxMarginRegressor(RBF(0.3), output_kernel=normalize(Subsequence(2, 0.5))), words),
        (cs.MaxMarginRegressor("linear", output_kernel="linear", fit_intercept=True), cs.simplex_vectors(3)[y]),
    ):
        cs.save(model.fit(X, targets), tmp_path / "model.cons")
        np.testing.assert_array_equal(cs.load(tmp_path / "model.cons").predict(X), model.predict(X))


@pytest.mark.parametrize("estimator", [cs.MaxMarginClassifier, cs.MaxMarginRegressor])
def test_the_documented_limit_of_single_precision_is_that_of_the_solver(estimator):
    text = " ".join(estimator.__doc__.split())
    assert f"in single precision, unless C·k(x, x) is above {margin._SINGLE} or" in text


# -- error rates by the number of support samples
def test_the_copy_on_the_support_is_the_fit_and_has_a_risk():
    X, y = blobs(n=300, T=3, columns=3)
    X = X + 3 * np.eye(3)[y]
    names = np.array(["x", "y", "z"])[y]
    model = cs.MaxMarginClassifier(RBF(0.05), C=100.0, tol=1e-9).fit(X, names)
    proof = model.certificate(X, names)
    copy = cs.MaxMarginClassifier(RBF(0.05), C=100.0, tol=1e-9).fit(X[model.support_], names[model.support_])
    np.testing.assert_allclose(copy.decision_function(X), model.decision_function(X), atol=1e-5)
    assert proof.risk == cs.certificates.sparsity_bound(len(model.support_), 300) < 1
    assert f"Fitted to its {len(model.support_)} support samples alone, it has an error rate of at most" in str(proof)
    assert model.certificate().risk is None
    assert cs.certificate(model, X, names) == proof
    labels = np.where(np.arange(300) < 40, None, names)  # samples without a class take no part
    part = cs.MaxMarginClassifier(RBF(0.05), C=100.0).fit(X, labels)
    assert part.certificate(X, labels).risk == cs.certificates.sparsity_bound(np.count_nonzero(part.dual_coef_), 260)
    with pytest.raises(ValueError, match="was fitted to 300 samples, and 20 are given"):
        model.certificate(X[:20], names[:20])


def test_no_risk_where_the_copy_is_wrong_or_keeps_too_many():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 2))
    y = (A[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = cs.MaxMarginClassifier(C=0.1).fit(A, y)
    assert model.certificate(A, y).risk is None
    one = cs.MaxMarginClassifier().fit(A, np.zeros(200))
    assert one.certificate(A, np.zeros(200)).risk is None


def two_sides(rng, n):
    """Draw points of the plane on both sides of a line."""
    A = rng.uniform(-1, 1, size=(n, 2))
    return A, (A[:, 0] > 0.3 * A[:, 1]).astype(int)


@pytest.mark.parametrize("kind", ["machine", "perceptron"])
def test_error_rates_are_below_their_bounds_as_often_as_stated(kind):
    rng = np.random.default_rng(0)
    A_new, y_new = two_sides(rng, 5000)  # measures the error rate of each fit
    above, bounds = np.zeros(2), []
    for _ in range(80):
        A, y = two_sides(rng, 150)
        if kind == "machine":
            model = cs.MaxMarginClassifier("linear", C=1e4).fit(A, y)
            proof, kept = model.certificate(A, y), model.support_[model.dual_coef_ > 0]
            judged, d = cs.MaxMarginClassifier("linear", C=1e4).fit(A[kept], y[kept]), len(kept)
        else:
            judged = model = cs.VectorPerceptron(RBF(0.1), max_iter=1000, margin=1e-6, random_state=0).fit(A, y)
            proof, d = model.certificate(A, y), len(model.support_)
        if proof.risk is not None:
            assert proof.risk == cs.certificates.sparsity_bound(d, 150)
            bounds.append(proof.risk)
            error = 1 - judged.score(A_new, y_new)
            above += [error > cs.certificates.sparsity_bound(d, 150, delta) for delta in (0.5, 0.05)]
    assert len(bounds) > 40
    assert np.mean(bounds) < 0.8
    assert (above <= np.array([0.5, 0.05]) * len(bounds)).all()


def test_rows_of_a_kernel_are_computed_with_one_blas_thread():
    """Threads of BLAS take several times longer for a few rows, in steps and in the last measurement."""
    rng = np.random.default_rng(0)
    samples, threads = rng.normal(size=(200, 3)).astype(np.float32), []

    def gaussian(X, Y):
        if len(X) < len(Y):
            threads.append(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    with threadpool_limits(2, user_api="blas"):
        cs.MaxMarginClassifier(gaussian).fit({"a": samples}, np.arange(200) % 3)
    assert set(threads) == {1}
