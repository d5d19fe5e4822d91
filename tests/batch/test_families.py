"""What all families of batch estimators keep: kinds of data, landmarks, weights, small data, fits that are refused."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

import cases
import consilience as cs
from consilience.kernels import RBF, Polynomial, Spectrum, SubsetTree, multi_task, normalize
from consilience.solvers import design
from consilience.solvers.coupled import CoupledGrams
from consilience.solvers.design_matrix import DesignMatrix

CODES = np.arange(48) % 3
X = cs.Views(cases.normal_views(48, (3, 2), shift=2 * CODES))
METRICS = ("learned", "block_sparse", "covariance", "diagonal")
CLASSIFIERS = [
    cs.CoRegularizedRidgeClassifier(alpha=1e-3),
    cs.CoRegularizedSVC(alpha=1e-3, tol=1e-9),
    *(cs.ViewMetricRidgeClassifier(metric=metric, tol=1e-9) for metric in METRICS),
    cs.MultipleKernelRidgeClassifier(tol=1e-9),
    cs.MaxMarginClassifier(tol=1e-9),
]
classifiers = pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)


def outputs(model, data):
    return model.decision_function(data) if is_classifier(model) else model.predict(data)


# -- all samples as landmarks
GRAPHS = {"kernel": "uniform", "kernel_normalized": "uniform", "knn": "uniform", "learned weights": "learned"}
TERMS = {"alpha": 1e-2, "agreement_penalty": 1e-2, "graph_penalty": 1e-3, "random_state": 0, "n_restarts": 2}
LANDMARKS = {
    **{
        f"coregularized, {graph}": cs.CoRegularizedRidge(
            RBF(0.3), graph="kernel" if weights == "learned" else graph, view_weights=weights, tol=1e-10,
            output_kernel=multi_task(2, 0.5), **TERMS,
        )
        for graph, weights in GRAPHS.items()
    },
    "svc": cs.CoRegularizedSVC(RBF(0.3), tol=1e-9, **TERMS),
    **{f"p = {p:.4g}": cs.MultipleKernelRidge(RBF(0.5), p=p, tol=1e-10) for p in cases.NORMS},
    "output kernel": cs.OutputKernelRidge(RBF(0.5), view_weights=[0.7, -0.4, 0.5], alpha=0.5, tol=1e-10),
    **{
        f"max margin, {combine}": cs.MaxMarginClassifier(RBF(0.3), combine=combine, tol=1e-8, random_state=0)
        for combine in ("sum", "product", Polynomial(2, 0.5))
    },
}  # fmt: skip
ACCURACY = {"coregularized": 1e-4, "svc": 1e-4, "p =": 1e-5, "output kernel": 5e-5, "max margin": 1e-3}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", LANDMARKS)
def test_all_samples_as_landmarks_are_the_problem_of_the_kernels(name, missing, monkeypatch):
    model = LANDMARKS[name]
    rng = np.random.default_rng(1)
    data = cases.normal_views(36, (3, 2, 4), shift=np.arange(36) % 3)
    y = np.arange(36) % 3.0 if is_classifier(model) else rng.normal(size=(36, 2))
    if hasattr(model, "agreement_penalty"):
        y[20:] = np.nan
    if missing:
        for block in ("b", "c"):
            data[block][rng.random(36) < 0.3] = np.nan
    s = rng.random(36) + 0.5
    monkeypatch.setattr(design, "BLOCK", 17)
    whole, landmarks = (clone(model).set_params(n_components=number).fit(data, y, s) for number in (None, 1.0))
    atol = next(ACCURACY[family] for family in ACCURACY if name.startswith(family))
    rel = 1e-6 if atol == 1e-3 else 1e-7
    assert landmarks.certificate().objective == pytest.approx(whole.certificate().objective, rel=rel)
    np.testing.assert_allclose(outputs(landmarks, data), outputs(whole, data), atol=atol)
    for weights in ("view_weights_", "kernel_weights_", "output_kernel_"):
        if hasattr(whole, weights):
            np.testing.assert_allclose(getattr(landmarks, weights), getattr(whole, weights), atol=atol)
    if name.startswith("coregularized"):
        assert set(landmarks.coef_) == {"a", "b", "c"}


# -- kinds of data, searches
@classifiers
def test_strings_trees_sparse_columns_and_indicators(model):
    data = cs.Views(
        words=["anna", "hanna", "johanna", "otto", "ottokar", "lotto"],
        trees=["(S (N a) (V b))", "(S (N a) (V c))", "(S (N a))", "(S (V b))", "(S (V c) (N a))", "(S (V b) (N d))"],
        counts=sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(6, 30))),
    )
    kernel = {"words": Spectrum(2), "trees": normalize(SubsetTree()), "counts": "linear"}
    how = {"C": 1e3} if isinstance(model, cs.MaxMarginClassifier) else {"alpha": 1e-6}
    one = np.array(list("nnnttt"))
    several = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [0, 1, 1]])
    for y in (one, several)[: 2 if hasattr(model, "alpha") and not isinstance(model, cs.CoRegularizedSVC) else 1]:
        fitted = clone(model).set_params(kernel=kernel, **how).fit(data, y)
        assert (fitted.predict(data) == y).all()


@classifiers
def test_precomputed_kernels_pass_through_cross_validation(model):
    K = RBF(0.5)(X["a"])
    plain = cross_val_score(clone(model).set_params(kernel=RBF(0.5)), X["a"], CODES, cv=3)
    assert plain.mean() > 0.6
    for given in (K, cs.Views({"k": K}, precomputed=["k"])):
        scores = cross_val_score(clone(model).set_params(kernel="precomputed"), given, CODES, cv=3)
        np.testing.assert_allclose(scores, plain)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (cs.ViewMetricRidgeClassifier(), {"metric": ["learned", "block_sparse"], "alpha": [0.1, 1]}),
        (cs.MultipleKernelRidgeClassifier(), {"p": [1, 2, np.inf], "alpha": [0.1, 1]}),
        (
            cs.MaxMarginClassifier(),
            {"kernel__gamma": [0.1, 1.0], "class_vectors": ["simplex", "indicator"], "C": [1.0, 10.0]},
        ),
    ],
    ids=repr,
)
def test_parameters_can_be_searched(model, grid):
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, CODES)
    assert search.best_score_ > 0.7
    assert len(search.cv_results_["params"]) == np.prod([len(values) for values in grid.values()])


@pytest.mark.parametrize("kernel", [RBF(0.1), "rbf"], ids=str)  # the width of "rbf" comes from the samples used
@pytest.mark.parametrize(
    "model",
    [
        *CLASSIFIERS[2:],
        cs.ViewMetricRidge(),
        cs.MaxMarginRegressor(output_kernel=RBF(1.0)),
        cs.EarlyFusion(LogisticRegression()),
        cs.LateFusion(LogisticRegression()),
    ],
    ids=repr,
)
def test_unlabeled_samples_are_left_out(model, kernel):
    model = clone(model).set_params(kernel=kernel) if hasattr(model, "kernel") else model
    some = np.arange(0, 48, 2)
    half = np.where(np.arange(48) % 2, np.nan, CODES)
    only = outputs(clone(model).fit(X[some], CODES[some]), X)
    np.testing.assert_allclose(outputs(model.fit(X, half), X), only)
    assert not hasattr(model, "support_") or set(model.support_) <= set(some)
    assert not hasattr(model, "metric") or model.support_.tolist() == some.tolist()


# -- small data
ONE = {"a": [[1.0]], "b": [[2.0, 3.0]]}
SMALL = [
    (ONE, [2.0]),
    ({"a": np.ones((5, 1)), "b": np.ones((5, 2))}, np.zeros(5)),
    ({"a": np.zeros((5, 1)), "b": np.zeros((5, 2))}, np.arange(5.0)),
]


@pytest.mark.parametrize("n_components", [None, 1.0])
@pytest.mark.parametrize(
    "model",
    [
        *(cs.MultipleKernelRidge("linear", p=p, shared_weights=s) for p in (1, 2, np.inf) for s in (True, False)),
        *(cs.ViewMetricRidge("linear", metric=metric) for metric in METRICS),
        cs.CoRegularizedRidge("linear", agreement_penalty=1e-3),
        cs.OutputKernelRidge("linear"),
    ],
    ids=repr,
)
def test_small_and_empty_problems(model, n_components):
    for data, y in SMALL:
        model.set_params(n_components=n_components).fit(data, y)
        assert np.isfinite(model.predict(data)).all()
        exact = None if isinstance(model, cs.MultipleKernelRidge) else "exact"
        assert model.certificate().status in ("converged", exact)


@classifiers
def test_one_sample_of_one_class_is_predicted_everywhere(model):
    terms = {"agreement_penalty": 1e-3, "graph_penalty": 1e-3} if hasattr(model, "graph_penalty") else {}
    for data, y in ((ONE, ["only"]), ({"a": [[1.0], [2.0]]}, ["only", "only"])):
        fitted = clone(model).set_params(**terms).fit(data, y)
        assert fitted.predict({"a": [[5.0]]}).tolist() == ["only"]


# -- fits that are refused, interrupted or not finished
RIDGE, SVC, METRIC, MULTIPLE = (
    cs.CoRegularizedRidge(),
    cs.CoRegularizedSVC(),
    cs.ViewMetricRidge(),
    cs.MultipleKernelRidge(),
)
MARGIN, OUTPUT, METRIC_CV = cs.MaxMarginClassifier(), cs.OutputKernelRidge(), cs.ViewMetricRidgeCV()
GRAPH = cs.CoRegularizedRidge(graph_penalty=1.0)
POSITIVE, FROM_1 = r"a float in the range \(0.0, inf\)", r"an int in the range \[1, inf\)"
RANGES = [
    (RIDGE, "alpha", 0.0, POSITIVE),
    (RIDGE, "alpha", "1", "a float"),
    (RIDGE, "agreement_penalty", -1.0, "a float"),
    (RIDGE, "graph_penalty", np.nan, "a float"),
    (RIDGE, "view_weights", "best", "a str among"),
    (RIDGE, "n_restarts", 0, "an int"),
    (RIDGE, "weights_norm", 0, "a float"),
    (RIDGE, "weights_order", 1.5, "a float"),
    (RIDGE, "weights_solver", "fast", "a str"),
    (RIDGE, "n_components", 0, "an int"),
    (RIDGE, "n_components", 2.5, "an int"),
    (RIDGE, "max_iter", -3, "an int"),
    (SVC, "class_vectors", "ovo", "a str among"),
    (METRIC, "alpha", 0, POSITIVE),
    (METRIC, "metric_penalty", -1, POSITIVE),
    (METRIC, "metric", "best", "a str among"),
    (METRIC, "solver", "fast", "a str among"),
    (METRIC, "tol", np.nan, r"a float in the range \[0.0, inf\)"),
    (METRIC, "n_components", 0, ""),
    (MULTIPLE, "p", 0.5, ""),
    (MULTIPLE, "alpha", 0, "a float"),
    (MARGIN, "C", 0, POSITIVE),
    (MARGIN, "cache_size", -1, POSITIVE),
    (MARGIN, "class_vectors", "corners", "a str among .*'simplex'"),
    (MARGIN, "max_iter", 0, FROM_1),
    (MARGIN, "max_iter", 0.5, FROM_1),
    (MARGIN, "n_components", 1.5, rf"{FROM_1}, a float"),
    (MARGIN, "fit_intercept", "yes", "an instance of 'bool'"),
]
BAD = [
    (RIDGE, {"view_weights": [1.0]}, r"must be one finite number per view, 2 in all; got \[1.0\]"),
    (RIDGE, {"view_weights": {"a": 1.0}}, "`view_weights` names 'a'; the views are 'a', 'b'."),
    (RIDGE, {"view_weights": [0.0, 0.0]}, "are zero for every view"),
    (RIDGE, {"view_weights": "learned", "validation_fraction": 0.2}, "the exact solver has one solution"),
    (RIDGE, {"output_kernel": np.eye(3)}, r"`output_kernel` must be a finite matrix of shape \(1, 1\)"),
    (RIDGE, {"output_kernel": [[-1.0]]}, "`output_kernel` must be positive semi-definite; its .* eigenvalue is -1"),
    (GRAPH, {"graph": "tree"}, "`graph` is 'kernel', 'kernel_normalized', 'knn'"),
    (GRAPH, {"kernel": "linear"}, "View 'a': With graph='kernel' the kernel's values are the weights"),
    (GRAPH, {"graph": {"a": "knn"}}, "View 'b': `graph` has no entry for it, only for 'a'"),
    (GRAPH, {"graph": {"a": "knn", "b": "knn", "z": "knn"}}, "`graph` names 'z', which is not a view"),
    (GRAPH, {"graph": np.eye(3)}, r"View 'a': .*per sample given to fit, 12; its shape is \(3, 3\).*give a callable"),
    (GRAPH, {"graph": lambda data: np.eye(3)}, "must return one row and column per sample given, 12"),
    (GRAPH, {"graph": np.triu(np.ones((12, 12)))}, "View 'a': Its Laplacian is not symmetric"),
    (GRAPH, {"graph": np.full((12, 12), np.nan)}, "NaN or infinite"),
    (GRAPH, {"graph": -np.eye(12)}, "View 'a': its kernel matrix or its graph's Laplacian is not positive"),
    (GRAPH, {"graph": -np.eye(12), "n_components": 10}, "is not positive semi-definite"),
    (SVC, {"class_vectors": np.eye(2)}, "`class_vectors` must be finite, one row per class, 4 in all"),
    (cs.CoRegularizedRidgeCV(), {"view_weights": "learned"}, "takes given weights"),
    (METRIC, {"metric": "block_sparse", "shared_metric": True}, "`shared_metric` is for metric='learned'"),
    (METRIC, {"metric": [["a"]]}, "`metric` must be a name or a matrix of numbers"),
    (METRIC, {"metric": np.eye(6)}, "finite square matrix with a row for each view and sample given to fit, 2 x 12"),
    (METRIC, {"metric": np.triu(np.ones((24, 24)))}, "`metric` is not symmetric: .* should be equal differ by 1."),
    (METRIC, {"metric": -np.eye(24)}, "`metric` must be positive semi-definite; its smallest eigenvalue is -1."),
    (METRIC, {"view_weights": [1.0]}, "`view_weights` must be one finite number per view, 2 in all"),
    (METRIC_CV, {"alphas": []}, r"`alphas` must hold finite numbers above 0; got \[\]"),
    (METRIC_CV, {"view_weights": "learned"}, "takes given weights"),
    (METRIC_CV, {"metric": np.eye(7)}, "`metric` must be a finite square matrix"),
    (OUTPUT, {"view_weights": "learned"}, "OutputKernelRidge takes given weights"),
    (cs.MultipleKernelRidgeClassifier(), {"class_weight": {0: -1.0}}, "`class_weight` must be finite and at least 0"),
    (MARGIN, {"class_vectors": np.eye(3)}, r"`class_vectors` must be 4 finite nonzero vectors.* shape \(3, 3\)"),
    (MARGIN, {"class_vectors": {0: [1.0]}}, r"`class_vectors` has no vector for '?1'?, '?2'?, '?3'?"),
    (MARGIN, {"class_vectors": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, "`class_vectors` must be 4 vectors of one length"),
    (MARGIN, {"combine": "max"}, "`combine` must be 'sum', 'product', a Polynomial, or a list of views with weights"),
    (MARGIN, {"combine": [("c", 1.0)]}, "`combine` names 'c'"),
    (MARGIN, {"combine": [("a", 0.0)]}, "Weights in `combine` must be positive"),
    (MARGIN, {"combine": [("a", "b")]}, "An entry of `combine` must be views and a weight"),
]  # fmt: skip
BAD += [
    (
        model,
        {name: value},
        rf"'{name}' parameter of {type(model).__name__} must be {kind}.* Got {re.escape(repr(value))}",
    )
    for model, name, value, kind in RANGES
]


@pytest.mark.parametrize(("model", "parameters", "message"), BAD, ids=[message for *_, message in BAD])
def test_a_fit_with_bad_parameters_is_refused_and_leaves_the_model_as_it_was(model, parameters, message):
    data = cases.normal_views(12, (2, 2))
    y = np.arange(12) % 4 if is_classifier(model) else np.random.default_rng(1).normal(size=12)
    model = clone(model).fit({"q": data["a"]}, y)
    before = outputs(model, {"q": data["a"]})
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters).fit(data, y)
    assert (outputs(model, {"q": data["a"]}) == before).all()


@pytest.mark.parametrize(
    ("model", "owner", "method"),
    [
        *((one, CoupledGrams, "__init__") for one in (*CLASSIFIERS[:2], cs.CoRegularizedRidgeClassifierCV())),
        (cs.ViewMetricRidgeClassifier(), DesignMatrix, "measure"),
        (cs.MultipleKernelRidgeClassifier(), DesignMatrix, "kernel_fits"),
    ],
    ids=repr,
)
def test_an_interrupted_refit_leaves_the_model_as_it_was(model, owner, method, monkeypatch):
    expected = model.fit(X, CODES).predict(X)

    def interrupt(*args, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, method, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit({"other": X["a"]}, np.where(CODES == 1, "good", "bad"))
    monkeypatch.undo()
    assert (model.predict(X) == expected).all()


@pytest.mark.parametrize(
    ("model", "n_iter"),
    [
        (cs.CoRegularizedSVC(alpha=1e-3, max_iter=0), 0),
        (cs.ViewMetricRidgeClassifier(metric="block_sparse", max_iter=1, tol=1e-12), 1),
        (cs.ViewMetricRidgeClassifier(shared_metric=True, max_iter=1, tol=1e-12), 1),
        (cs.ViewMetricRidgeClassifier(solver="alternating", max_iter=1, tol=1e-12), 1),
        (cs.MultipleKernelRidgeClassifier(p=1, max_iter=0), 0),
        (cs.MaxMarginClassifier(RBF(5.0), tol=1e-9, max_iter=2), 2),
    ],
    ids=repr,
)
def test_a_warning_names_the_gap_and_the_users_line_if_a_fit_does_not_converge(model, n_iter):
    sentence = f"{type(model).__name__} stopped after {n_iter} iterations with a gap of"
    with pytest.warns(ConvergenceWarning, match=sentence) as caught:
        model.fit(X, CODES)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("model", [RIDGE, SVC, MULTIPLE, OUTPUT], ids=repr)
def test_matrices_that_are_not_kernels_are_refused_with_the_view_named(model):
    S, y = np.random.default_rng(0).normal(size=(8, 8)), [1, 2] * 4
    model = clone(model).set_params(kernel="precomputed", alpha=1e-3)
    with pytest.raises(ValueError, match="View 'v0': its kernel matrix is not symmetric"):
        model.fit(cases.gram_views([S]), y)
    if hasattr(model, "agreement_penalty"):  # without it, tests of certificates do the same for all estimators
        model.set_params(agreement_penalty=1.0)
    with pytest.raises(ValueError, match="View 'v1': its kernel matrix is not positive semi-definite"):
        model.fit(cases.gram_views([np.eye(8), S + S.T]), y)


@pytest.mark.parametrize("cls", [cs.CoRegularizedRidgeCV, cs.ViewMetricRidgeCV, cs.BandedRidgeCV])
def test_leave_one_out_holds_equal_samples_out_together(cls):
    """Else a twin of each sample is left in, and penalties that interpolate win."""
    rng = np.random.default_rng(0)
    h = rng.normal(size=(700, 2))
    views = {"a": h + rng.normal(size=(700, 2)), "b": h @ rng.normal(size=(2, 6)) + rng.normal(size=(700, 6))}
    X, y, rows = cs.Views(views), h[:, 0] + rng.normal(size=700), np.repeat(np.arange(200), 2)
    once = cls().fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="200 of 400 labeled samples repeat another one"):
        twice = cls().fit(X[rows], y[rows])
    assert twice.score(X[200:], y[200:]) > once.score(X[200:], y[200:]) - 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if "cv" in cls().get_params():
            cls(cv=3).fit(X[rows], y[rows])
