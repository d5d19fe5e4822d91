"""Several kernels per view: the same as views repeated once for each kernel, and "auto"."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score

import consilience as cs
import reference
from consilience.batch._terms import weights_of_views
from consilience.io._states import check_state
from consilience.kernels import (
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    auto_kernels,
    center,
    normalize,
)
from consilience.kernels.by_view import kernel_terms, views_of_terms
from consilience.views._notebook import weights_of
from consilience.views.conversion import to_float64

N, TRAIN = 60, 45
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2))
X = cs.Views(a=A, b=B)
PRESENT = np.ones((N, 2), dtype=bool)
PRESENT[3:12, 0] = PRESENT[15:23, 1] = PRESENT[50:53, 0] = PRESENT[55:58, 1] = False
HOLES = cs.Views(X, mask=PRESENT)
TARGET = np.sin(A[:, 0]) + 0.3 * B[:, 1] + 0.1 * RNG.normal(size=N)
LABELS = np.array(["low", "mid", "top"])[np.digitize(TARGET, [-0.4, 0.4])]

KERNELS = {"a": [Linear(), RBF(0.5)], "b": [Polynomial(2), RBF(1.0)]}
# the same views once for each kernel
NAMES = [("a", "a: Linear()"), ("a", "a: RBF(gamma=0.5)")]
NAMES += [("b", "b: Polynomial(degree=2, constant=1.0)"), ("b", "b: RBF(gamma=1.0)")]
REPEATED = dict(zip([name for _, name in NAMES], [kernel for own in KERNELS.values() for kernel in own], strict=True))
LEARNED = {"view_weights": "learned", "tol": 1e-10, "random_state": 0, "n_restarts": 1}
TERMS = {"agreement_penalty": 1e-3, "graph_penalty": 1e-4, "graph": "knn"}
DIVIDED = {"view_weights": dict.fromkeys(REPEATED, 0.25)}

MODELS = {
    "multiple kernels": cs.MultipleKernelRidge(alpha=0.1, tol=1e-12),
    "multiple kernels, sparse": cs.MultipleKernelRidge(alpha=0.1, p=1, tol=1e-12),
    "multiple kernels, classes": cs.MultipleKernelRidgeClassifier(alpha=0.1, shared_weights=False, tol=1e-12),
    "multiple kernels, features": cs.MultipleKernelRidge(alpha=0.1, n_components=1.0, random_state=0, tol=1e-12),
    "coregularized": cs.CoRegularizedRidge(alpha=1e-3, agreement_penalty=1e-3, **LEARNED),
    "coregularized, graphs": cs.CoRegularizedRidge(alpha=1e-3, **TERMS, **LEARNED),
    "coregularized, alternating": cs.CoRegularizedRidge(alpha=1e-3, weights_solver="alternating", **LEARNED),
    "coregularized, features": cs.CoRegularizedRidge(alpha=1e-3, n_components=1.0, **LEARNED),
    "coregularized, classes": cs.CoRegularizedRidgeClassifier(alpha=1e-3, agreement_penalty=1e-3, **LEARNED),
    "coregularized svc": cs.CoRegularizedSVC(alpha=1e-2, class_vectors="simplex", **LEARNED),
    "metric": cs.ViewMetricRidge(alpha=0.1),
    "metric, learned weights": cs.ViewMetricRidge(alpha=0.1, **LEARNED),
    "metric, block-sparse": cs.ViewMetricRidge(alpha=0.1, metric="block_sparse", tol=1e-10),
    "metric, diagonal": cs.ViewMetricRidge(alpha=0.1, metric="diagonal", **LEARNED),
    "metric, features": cs.ViewMetricRidge(alpha=0.1, n_components=15, random_state=0),
    "metric, classes": cs.ViewMetricRidgeClassifier(alpha=0.1, shared_metric=True, tol=1e-10),
    "metric cv": cs.ViewMetricRidgeCV(),
    "metric cv, classes": cs.ViewMetricRidgeClassifierCV(metric="block_sparse", alphas=[0.1, 1.0]),
}
parametrize = pytest.mark.parametrize


def repeated(data):
    """The views of samples, once for each kernel."""
    blocks = {new: data[name] for name, new in NAMES}
    mask = None if data.mask is None else np.column_stack([data.present(name) for name, _ in NAMES])
    return cs.Views(blocks, mask=mask)


def outputs(model, data):
    return model.decision_function(data) if is_classifier(model) else model.predict(data)


def test_the_table_has_every_estimator_that_takes_several_kernels():
    covered = {type(model) for model in MODELS.values()}
    for name in cs.__all__:
        cls = getattr(cs, name)
        if not (isinstance(cls, type) and hasattr(cls, "get_params") and "kernel" in cls._get_param_names()):
            continue
        if cls in covered or name.startswith("Consensus"):
            continue
        model = cls(kernel="auto")
        with pytest.raises(ValueError, match=r"no weights of kernels are learned|A kernel must be an object"):
            model.fit(cs.Views(a=A, b=A), LABELS if is_classifier(model) else TARGET)


# -- what it equals
@parametrize("data", [X, HOLES], ids=["complete", "missing views"])
@parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # both have it, or none
def test_several_kernels_are_views_repeated(name, data):
    model = MODELS[name]
    y = LABELS if is_classifier(model) else TARGET
    known, weights = y.copy(), 1 + np.arange(TRAIN) % 3 / 2
    if "graph_penalty" in model.get_params() and not is_classifier(model):
        known[30:TRAIN] = np.nan
    several = clone(model).set_params(kernel=KERNELS).fit(data[:TRAIN], known[:TRAIN], weights)
    again = clone(model).set_params(kernel=REPEATED)
    if "view_weights" in model.get_params() and model.view_weights == "uniform":
        again.set_params(**DIVIDED)
    again.fit(repeated(data[:TRAIN]), known[:TRAIN], weights)
    assert several.certificate().objective == pytest.approx(again.certificate().objective, rel=1e-10)
    np.testing.assert_allclose(outputs(several, data), outputs(again, repeated(data)), atol=1e-10)
    assert several.view_weights_.shape == (2,)
    assert not hasattr(several, "n_features_in_")  # which would promise that an array of columns is read
    if hasattr(several, "kernel_weights_"):
        own = getattr(again, "kernel_weights_", again.view_weights_)
        frame = several.kernel_weights_
        assert frame["view"].tolist()[:4] == ["a", "a", "b", "b"]
        assert frame["kernel"].tolist()[:4] == [new.partition(": ")[2] for _, new in NAMES]
        np.testing.assert_allclose(frame["weight"], own.T.ravel(), atol=1e-10)
    assert hasattr(several, "kernel_weights_") == (
        "multiple" in name or model.get_params()["view_weights"] == "learned"
    )
    if getattr(several, "metric_", None) is not None:
        assert several.metric_.names == again.metric_.names == tuple(REPEATED)
        np.testing.assert_allclose(several.metric_.toarray(), again.metric_.toarray(), atol=1e-10)
        spaces = several.metric_.transform(data), again.metric_.transform(repeated(data))
        assert spaces[0].names == tuple(REPEATED)
        np.testing.assert_array_equal(spaces[0].mask, spaces[1].mask)
        for new in REPEATED:
            np.testing.assert_allclose(spaces[0][new], spaces[1][new], atol=1e-10)


@parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_of_views_combine_to_predictions(name):
    model = clone(MODELS[name]).set_params(kernel=KERNELS)
    model.fit(HOLES[:TRAIN], (LABELS if is_classifier(model) else TARGET)[:TRAIN])
    by_view = model.view_decision_function(HOLES)
    by_view = by_view[:, :, None] if by_view.ndim == 2 else by_view
    assert by_view.shape[:2] == (N, 2)
    np.testing.assert_array_equal(np.isnan(by_view[:, :, 0]), ~PRESENT)
    expected = reference.combine(np.nan_to_num(by_view), model.view_weights_, PRESENT)
    np.testing.assert_allclose(outputs(model, HOLES).reshape(N, -1), expected.reshape(N, -1), atol=1e-10)


@parametrize("p", [1.0, 4 / 3, np.inf])
def test_missing_views_count_once_whatever_their_kernels(p):
    kernels = {"a": [Linear(), RBF(0.5), Laplacian(0.2)], "b": RBF(1.0)}  # three and one
    model = cs.MultipleKernelRidge(kernels, alpha=0.5, p=p, tol=1e-12).fit(HOLES, TARGET)
    grams = [[k(A) for k in kernels["a"]], [kernels["b"](B)]]
    flat = [K for own in reference.scaled_by_views(grams, PRESENT) for K in own]
    d = np.ones(4) if np.isinf(p) else model.kernel_weights_["weight"].to_numpy()
    total = sum(w * K for w, K in zip(d, flat, strict=True))
    expected = total @ np.linalg.solve(total + 0.5 * np.eye(N), TARGET)
    np.testing.assert_allclose(model.predict(HOLES), expected, atol=1e-8)
    np.testing.assert_allclose(model.view_weights_, 0.5)
    if p == 4 / 3:
        found, _ = reference.multiple_kernels(flat, TARGET[:, None], 0.5, p, 400)
        np.testing.assert_allclose(d, found, rtol=1e-6)
        assert model.kernel_weights_["kernel"].tolist()[-1] == "RBF(gamma=1.0)"


def test_infinite_norm_is_kernel_ridge_of_the_sum():
    model = cs.MultipleKernelRidge([Linear(), RBF(0.5)], p=np.inf, alpha=0.3).fit(A, TARGET)
    np.testing.assert_allclose(model.kernel_weights_["weight"], 1)
    K = Linear()(A) + RBF(0.5)(A)
    peer = KernelRidge(alpha=0.3, kernel="precomputed").fit(K, TARGET)
    np.testing.assert_allclose(model.predict(A), peer.predict(K), atol=1e-10)
    both = cs.MultipleKernelRidge(KERNELS, p=np.inf, alpha=0.3).fit(X, TARGET)
    sums = cs.MultipleKernelRidge({v: k1 + k2 for v, (k1, k2) in KERNELS.items()}, p=np.inf, alpha=0.3).fit(X, TARGET)
    np.testing.assert_allclose(both.predict(X), sums.predict(X), atol=1e-10)
    np.testing.assert_allclose(both.view_decision_function(X), sums.view_decision_function(X), atol=1e-9)


@parametrize("p", [1.0, 2.0])
def test_weights_of_kernels_equal_a_conic_solver(cp, p):
    n, alpha = 20, 0.5
    some, y = X[:n], TARGET[:n]
    model = cs.MultipleKernelRidge(KERNELS, p=p, alpha=alpha, tol=1e-10).fit(some, y)
    grams = [k(block[:n]) for block, own in ((A, KERNELS["a"]), (B, KERNELS["b"])) for k in own]
    roots = [np.linalg.cholesky(K + 1e-10 * np.eye(n)) for K in grams]
    W = [cp.Variable(n) for _ in roots]
    norms = cp.hstack([cp.norm(w) for w in W])
    loss = cp.sum_squares(y - sum(R @ w for R, w in zip(roots, W, strict=True)))
    program = cp.Problem(cp.Minimize(loss + alpha * cp.square(cp.pnorm(norms, 2 * p / (p + 1)))))
    program.solve(solver="CLARABEL")
    assert model.certificate().objective == pytest.approx(program.value, rel=1e-5)
    fitted = sum(R @ w.value for R, w in zip(roots, W, strict=True))
    np.testing.assert_allclose(model.predict(some), fitted, atol=2e-3)


def test_kernels_of_noise_get_no_weight():
    noise = RBF(200.0)  # every sample is similar to itself alone
    model = cs.MultipleKernelRidge({"a": [RBF(0.1), noise], "b": [noise]}, p=1, alpha=3.0).fit(X, np.sin(A[:, 0]))
    weights = model.kernel_weights_.set_index(["view", "kernel"])["weight"]
    assert weights["a", "RBF(gamma=0.1)"] == pytest.approx(1)
    assert weights["a", "RBF(gamma=200.0)"] == weights["b", "RBF(gamma=200.0)"] == 0
    assert model.active_views_ == ("a",)


def test_a_view_whose_kernels_have_weights_of_both_signs():
    two = {"x": Linear(), "y": RBF()}
    terms = kernel_terms({"a": two, "b": Linear(), "c": {"x": RBF()}, "d": two})
    weights, factors = weights_of_views(terms, np.array([0.5, -1.5, -2.0, -3.0, 0.0, 0.0]))
    np.testing.assert_allclose(weights, [2.0, -2.0, -3.0, 0.0])
    np.testing.assert_allclose(factors, [0.25, -0.75, 1.0, 1.0, 0.5, 0.5])


# -- parameters
def test_one_kernel_per_view_is_as_before():
    model = cs.MultipleKernelRidge(RBF(0.5)).fit(X, TARGET)
    assert isinstance(model.kernel_weights_, np.ndarray)
    assert model.kernel_weights_.shape == (2,)
    learned = cs.CoRegularizedRidge(RBF(0.5), view_weights="learned").fit(X, TARGET)
    assert not hasattr(learned, "kernel_weights_")
    several = clone(learned).set_params(kernel=KERNELS).fit(X, TARGET)
    assert hasattr(several, "kernel_weights_")
    assert not hasattr(several.set_params(kernel=RBF(0.5)).fit(X, TARGET), "kernel_weights_")


def test_lists_where_weights_are_given_are_refused():
    message = (
        r"View 'a' has the kernels \[Linear\(\), RBF\(gamma=0.5\)\], where no weights of kernels are learned. Give one "
        r"kernel, such as a sum k1 \+ k2, or use an estimator that learns weights: MultipleKernelRidge, .*"
        r"view_weights='learned'"
    )
    for model in (
        cs.CoRegularizedRidge(KERNELS), cs.CoRegularizedRidge(KERNELS, view_weights=[1, 2]),
        cs.CoRegularizedRidgeCV(KERNELS), cs.ViewMetricRidge(KERNELS, metric="diagonal"),
        cs.ViewMetricRidge(KERNELS, metric=np.eye(2 * N), view_weights="learned"), cs.OutputKernelRidge(KERNELS),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.fit(X, TARGET)
    with pytest.raises(ValueError, match="View 'a' has kernel='auto', which stands for several kernels, where no"):
        cs.Nystroem("auto").fit(X)
    with pytest.raises(ValueError, match="View 'b': `kernel` has an empty list"):
        cs.MultipleKernelRidge({"b": []}).fit(X, TARGET)
    with pytest.raises(ValueError, match="`kernel` names the view 'c'"):
        cs.MultipleKernelRidge({"c": "auto"}).fit(X, TARGET)
    with pytest.raises(ValueError, match="got 'nope'"):
        cs.MultipleKernelRidge(["rbf", "nope"]).fit(X, TARGET)
    twins = cs.Views({"a": A, "a: Linear()": B})
    with pytest.raises(ValueError, match=r"A view is named 'a: Linear\(\)', as is a kernel of another view. Rename"):
        cs.MultipleKernelRidge({"a": [Linear()]}).fit(twins, TARGET)


def test_parameters_of_lists():
    model = cs.MultipleKernelRidge(KERNELS)
    assert clone(model).get_params()["kernel__a"][1].gamma == 0.5
    with pytest.raises(ValueError, match=r"has no parameters of its own\. Set the kernel or list as a whole"):
        model.set_params(kernel__a__gamma=1.0)
    for several in ("auto", ["rbf"]):
        with pytest.raises(ValueError, match="has no parameters of its own"):
            cs.MultipleKernelRidge(several).set_params(kernel__gamma=1.0)
    choices = {"kernel__a": ["rbf", [RBF(0.1), RBF(1.0)], "auto"]}
    search = GridSearchCV(model, choices, cv=3).fit(X, TARGET)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 3
    equal = cs.MultipleKernelRidge(["rbf", RBF()]).fit(A, TARGET)
    assert list(equal.kernels_["view0"]) == ["RBF(gamma='scale')", "RBF(gamma='scale') (2)"]


def test_graphs_of_views_serve_all_their_kernels():
    L = cs.graphs.laplacian(RBF(1.0)(A))
    how = {"alpha": 1e-3, "graph_penalty": 1e-3, **LEARNED}
    given = cs.CoRegularizedRidge(KERNELS, graph={"a": L, "b": "knn"}, **how).fit(X, TARGET)
    graphs = {new: L if name == "a" else "knn" for name, new in NAMES}
    again = cs.CoRegularizedRidge(REPEATED, graph=graphs, **how).fit(repeated(X), TARGET)
    np.testing.assert_allclose(given.predict(X), again.predict(repeated(X)), atol=1e-10)


def test_kernels_that_are_not_positive_name_view_and_kernel():
    negative = FromCallable(lambda x, z: -(x @ z.T))
    with pytest.raises(ValueError, match=r"View 'a: FromCallable\(.*\)': its kernel matrix is not positive"):
        cs.MultipleKernelRidge({"a": [RBF(), negative]}).fit(X, TARGET)


# -- data
def test_precomputed_kernels_in_lists():
    K = RBF(0.5)(A) + Linear()(A)
    grams = cs.Views(g=K, b=B, precomputed=["g"])
    kernel = {"g": [Precomputed(), normalize(Precomputed()), center(Precomputed())], "b": ["rbf", "linear"]}
    model = cs.MultipleKernelRidge(kernel, alpha=0.1, tol=1e-10)
    same = cs.MultipleKernelRidge(
        {"g": [k := RBF(0.5) + Linear(), normalize(k), center(k)], "b": ["rbf", "linear"]}, alpha=0.1, tol=1e-10
    )
    data = cs.Views(g=A, b=B)
    scores = cross_val_score(same, data, TARGET, cv=3)
    np.testing.assert_allclose(cross_val_score(model, grams, TARGET, cv=3), scores, rtol=1e-7)
    model.fit({"g": K[:TRAIN, :TRAIN], "b": B[:TRAIN]}, TARGET[:TRAIN])
    same.fit(data[:TRAIN], TARGET[:TRAIN])
    np.testing.assert_allclose(model.predict({"b": B[TRAIN:]}), same.predict({"b": B[TRAIN:]}), rtol=1e-6)
    for own in (model, same):
        own.set_params(kernel={**own.kernel, "g": own.kernel["g"][::2]})  # without k(x, x) of new samples
    model.fit({"g": K[:TRAIN, :TRAIN], "b": B[:TRAIN]}, TARGET[:TRAIN])
    same.fit(data[:TRAIN], TARGET[:TRAIN])
    block = model.predict({"g": K[TRAIN:, :TRAIN], "b": B[TRAIN:]})
    np.testing.assert_allclose(block, same.predict(data[TRAIN:]), rtol=1e-6)
    with pytest.raises(ValueError, match=r"View 'g': some of the kernels .* take a Gram matrix"):
        cs.MultipleKernelRidge({"g": ["precomputed", "rbf"]}).fit({"g": K, "b": B}, TARGET)
    with pytest.raises(TypeError, match=r"View 'g': RBF.* takes numeric data .*; got gram"):
        cs.MultipleKernelRidge({"g": ["precomputed", "rbf"]}).fit(grams, TARGET)
    plain = cs.MultipleKernelRidge([Precomputed(), 2.0 * Precomputed()], alpha=0.1)
    assert plain.__sklearn_tags__().input_tags.pairwise
    alone = cs.MultipleKernelRidge("precomputed", p=1, alpha=0.1)
    np.testing.assert_allclose(
        cross_val_score(clone(plain).set_params(p=1), K, TARGET, cv=3),  # p = 1 takes the larger of the two
        cross_val_score(alone.set_params(kernel=2.0 * Precomputed()), K, TARGET, cv=3),
        rtol=1e-6,
    )


def test_auto_is_resolved_on_the_training_samples_of_each_fit():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abc"), size=6)) for _ in range(N)]
    trees = [f"(S (N {rng.choice(list('ab'))}) (V {rng.choice(list('cd'))}))" for _ in range(N)]
    counts = sp.csr_array(rng.poisson(1.0, size=(N, 20)).astype(float))
    data = cs.Views({"n": A, "w": words, "t": trees, "c": counts, "g": RBF(0.5)(B)}, precomputed=["g"])
    model = cs.MultipleKernelRidgeClassifier("auto", alpha=0.1, p=1).fit(data[:TRAIN], LABELS[:TRAIN])
    for name in data.names:
        own = auto_kernels(data[:TRAIN].block(name))
        assert list(model.kernels_[name]) == list(own)
        assert [repr(kernel) for kernel in model.kernels_[name].values()] == [repr(kernel) for kernel in own.values()]
    assert model.score(data, LABELS) > 0.7
    assert cross_val_score(model, data, LABELS, cv=3).shape == (3,)
    given = {name: list(auto_kernels(data[:TRAIN].block(name)).values()) for name in data.names}
    same = clone(model).set_params(kernel=given).fit(data[:TRAIN], LABELS[:TRAIN])
    np.testing.assert_allclose(same.decision_function(data), model.decision_function(data), atol=1e-10)
    assert "g: precomputed" not in model.kernels_


def test_auto_makes_no_gram_matrix_of_a_square_table():
    K = RBF(0.5)(B)
    model = cs.MultipleKernelRidge({"g": "auto"}, alpha=0.1)
    model.fit(cs.Views(g=K, precomputed=True), TARGET)
    assert model._view_is_gram("g")
    block = model.predict({"g": K[:7]})  # a block of kernel values, as with kernel="precomputed"
    np.testing.assert_allclose(block, model.predict(cs.Views(g=K, precomputed=True)[:7]))
    model.fit({"g": K}, TARGET)  # columns that happen to be as many as the samples
    assert "linear" in model.kernels_["g"]
    assert not model._view_is_gram("g")
    with pytest.raises(ValueError, match="features"):
        model.predict({"g": K[:7, :5]})


def test_small_samples_weights_and_single_precision():
    one = cs.MultipleKernelRidgeClassifier(KERNELS).fit(X[:1], ["only"])
    assert one.predict(X[:2]).tolist() == ["only", "only"]
    auto = cs.MultipleKernelRidge("auto").fit(X[:1], TARGET[:1])
    assert np.isfinite(auto.predict(X)).all()
    for name in ("multiple kernels", "coregularized", "metric"):
        model = clone(MODELS[name]).set_params(kernel=KERNELS)
        twice = clone(model).fit(X[np.r_[:20, :20]], TARGET[np.r_[:20, :20]])
        weighted = clone(model).fit(X[:20], TARGET[:20], np.full(20, 2.0))
        np.testing.assert_allclose(weighted.predict(X), twice.predict(X), atol=1e-6)
        single = cs.Views(a=A.astype(np.float32), b=B.astype(np.float32))
        np.testing.assert_allclose(
            model.fit(single, TARGET).predict(single), model.fit(X, TARGET).predict(X), atol=1e-3
        )
    terms = kernel_terms({"a": {"x": Linear(), "y": RBF()}, "b": Linear()})
    doubles = to_float64(views_of_terms(terms, single))
    assert doubles.block("a: x") is doubles.block("a: y")  # one copy serves all kernels
    assert doubles.block("a: x").dtype == np.float64
    missing = cs.Views(a=A, b=np.full((N, 2), np.nan))  # a view that no sample has
    model = cs.MultipleKernelRidge(KERNELS).fit(missing, TARGET)
    assert list(model.kernels_) == ["a"]
    assert model.kernel_weights_["view"].tolist() == ["a", "a"]


@parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_model_files_and_copies_to_share(name, tmp_path):
    model = clone(MODELS[name]).set_params(kernel={"a": [Linear(), RBF(0.5)], "b": "auto"})
    model.fit(HOLES, LABELS if is_classifier(model) else TARGET)
    cs.save(model, tmp_path / "model")
    loaded = cs.load(tmp_path / "model")
    np.testing.assert_allclose(outputs(loaded, HOLES), outputs(model, HOLES), atol=1e-12)
    if hasattr(model, "kernel_weights_"):
        assert loaded.kernel_weights_.equals(model.kernel_weights_)
    kept = HOLES[model.support_] if hasattr(model, "support_") else HOLES
    n = 15 if name == "metric, features" else int(kept.present("a").sum())
    assert cs.io.stored_samples(model)["a"] == n
    linear = clone(model).set_params(kernel=[Linear(), 0.5 * Linear().on([0, 1])])
    linear.fit(HOLES, LABELS if is_classifier(model) else TARGET)
    exact = cs.shareable(linear)
    assert not cs.io.stored_samples(exact)
    np.testing.assert_allclose(outputs(exact, HOLES), outputs(linear, HOLES), atol=1e-6)


def test_a_file_with_other_kernels_is_refused():
    model = cs.MultipleKernelRidge(KERNELS).fit(X, TARGET)
    for broken in ({"a": {}, "b": RBF()}, {"a": {"x": "rbf"}, "b": RBF()}, {"a": RBF()}):
        bad = cs.MultipleKernelRidge(KERNELS).fit(X, TARGET)
        bad.kernels_ = broken
        with pytest.raises(ValueError, match="kernels_"):
            check_state(bad)
    model._kernel_weights = model._kernel_weights[:3]
    with pytest.raises(ValueError, match="_kernel_weights"):
        check_state(model)


# -- what is shown
def test_notebooks_list_kernels_with_their_weights():
    model = cs.MultipleKernelRidge(KERNELS, alpha=0.1, p=1)
    assert "[Linear(), RBF(gamma=0.5)]" in model._repr_html_()
    shown = model.fit(X, TARGET)._repr_html_()
    for kernel, weight in zip(model.kernel_weights_["kernel"], model.kernel_weights_["weight"], strict=True):
        assert f"<code>{kernel}</code></td><td>{weight:.3g}</td>" in shown
    sums = model.kernel_weights_.groupby("view")["weight"].sum()
    np.testing.assert_allclose(weights_of(model), sums[["a", "b"]])
    assert "<code>&#x27;auto&#x27;</code>" in cs.MultipleKernelRidge("auto")._repr_html_()
    outputs_own = cs.MultipleKernelRidge(KERNELS, shared_weights=False).fit(X, np.column_stack([TARGET, -B[:, 0]]))
    frame = outputs_own.kernel_weights_
    assert list(frame) == ["view", "kernel", "output", "weight"]
    assert len(frame) == 8
    assert weights_of(outputs_own).shape == (2,)
