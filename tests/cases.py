"""Tables of kernels, estimators and forms of data; the tests cross them with properties."""

import inspect

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier

import consilience as cs
from consilience.kernels import RBF, Laplacian, Linear, Polynomial, Spectrum, center, exp, normalize, standardize
from consilience.online._frame import OnlineEstimator


def linear_by_hand(X, Y):
    return (X @ Y.T).toarray() if sp.issparse(X) else X @ Y.T


# kernels on vectors of four columns
NUMERIC = {
    "linear": Linear(),
    "polynomial": Polynomial(degree=3, constant=0.5),
    "rbf": RBF(gamma=0.3),
    "rbf scale": RBF(),
    "rbf median": RBF("median"),
    "rbf mean": RBF("mean_distance"),
    "laplacian": Laplacian(gamma=0.3),
    "laplacian scale": Laplacian(),
    "chi2": cs.kernels.ChiSquared(gamma=0.7),
    "chi2 mean": cs.kernels.ChiSquared(),
    "additive chi2": cs.kernels.AdditiveChiSquared(),
    "hellinger": cs.kernels.Hellinger(),
    "intersection": cs.kernels.Intersection(),
    "mahalanobis": cs.kernels.Mahalanobis(np.diag([1.0, 2.0, 0.0, 0.5])),
    "callable": cs.kernels.FromCallable(linear_by_hand),
}
# what closure makes of them
COMPOSED = {
    "sum": RBF(gamma=0.3) + Linear(),
    "constant": Linear() + 0.5,
    "constant left": 0.5 + Linear(),
    "product": RBF(gamma=0.3) * Polynomial(),
    "scaled": 2.5 * cs.kernels.Intersection(),
    "scaled right": Linear() * np.float64(0.5),
    "power": (Linear() + 1.0) ** 3,
    "exp": exp(0.1 * Linear()),
    "normalize": normalize(Polynomial(degree=2)),
    "center": center(RBF(gamma=0.3)),
    "standardize": standardize(RBF(gamma=0.3)),
    "standardize, unresolved": standardize(RBF("median")) * 2.0,
    "center of unresolved": center(RBF("median")) + 1.0,
    "on": RBF("median").on([0, 2]),
    "on slice": Linear().on(slice(1, 3)),
    "mapped": Linear().mapped(np.sqrt),
    "f k f": RBF(gamma=0.3) * Linear().mapped(lambda X: np.asarray(X.sum(axis=1)).reshape(-1, 1)),
    "all together": normalize(0.5 * RBF(gamma=0.3) * Linear() + Polynomial()) + exp(0.1 * Linear().on([0, 1])),
}
STRUCTURED = {
    "spectrum": (Spectrum(2), ["anna", "hanna", "otto", "ottokar", ""]),
    "subsequence": (cs.kernels.Subsequence(2, 0.5), ["anna", "hanna", "otto", "ottokar", ""]),
    "tree": (cs.kernels.SubsetTree(), ["(S (NP I) (VP (V ran)))", "(S (NP we) (VP (V ran)))", "(NP I)"]),
    "pairs": (cs.kernels.FromCallable(lambda s, t: float(s[:1] == t[:1]), pairs=True), ["anna", "otto", "ab"]),
    "normalized strings": (normalize(Spectrum(1) + cs.kernels.Subsequence(2)), ["anna", "hanna", "otto"]),
}

# norms of the weights of multiple kernels
NORMS = [1.0, 1.001, 1.05, 4 / 3, 2.0, 8.0, 1000.0, np.inf]

# every estimator, on plain arrays and on views
TERMS = {"agreement_penalty": 1e-3, "graph_penalty": 1e-4}
LEARNED = {"view_weights": "learned", "tol": 1e-12, "random_state": 0}
LEARNERS = {
    "consensus": cs.ConsensusRegressor(),
    "consensus classifier": cs.ConsensusClassifier(),
    "early logistic": cs.EarlyFusion(LogisticRegression()),
    "early ridge": cs.EarlyFusion(Ridge(tol=1e-12)),
    "late logistic": cs.LateFusion(LogisticRegression()),
    "late ridge classifier": cs.LateFusion(RidgeClassifier(tol=1e-12)),  # scores, no probabilities
    # a gamma taken from the data changes where samples are repeated, so it is given
    "coregularized ridge": cs.CoRegularizedRidge(RBF(0.5), alpha=1e-4),
    "coregularized ridge, all terms": cs.CoRegularizedRidge(RBF(0.5), graph="kernel_normalized", **TERMS),
    "coregularized ridge, learned weights": cs.CoRegularizedRidge(RBF(0.5), agreement_penalty=1e-3, **LEARNED),
    "coregularized ridge, features": cs.CoRegularizedRidge(RBF(0.5), n_components=1.0, **TERMS),
    "coregularized ridge cv": cs.CoRegularizedRidgeCV(RBF(0.5), agreement_penalties=(0.0, 1e-3)),
    "coregularized classifier": cs.CoRegularizedRidgeClassifier(RBF(0.001), alpha=1e-4),
    "coregularized classifier, all terms": cs.CoRegularizedRidgeClassifier(
        RBF(0.001), alpha=1e-4, agreement_penalty=1e-4, graph_penalty=1e-4
    ),
    "coregularized classifier cv": cs.CoRegularizedRidgeClassifierCV(RBF(0.001), agreement_penalties=(0.0, 1e-3)),
    "coregularized svc": cs.CoRegularizedSVC(
        RBF(0.001), alpha=1e-2, agreement_penalty=1e-3, class_vectors="simplex", tol=1e-10
    ),
    "coregularized svc, ovr": cs.CoRegularizedSVC(RBF(0.001), alpha=1e-2, tol=1e-10),
    "coregularized ridge, several kernels per view": cs.CoRegularizedRidge(
        [RBF(0.5), Laplacian(0.1)], agreement_penalty=1e-3, **LEARNED
    ),
    "vector-valued": cs.VectorValuedRegressor(RBF(0.5), alpha=1e-3),
    "vector-valued, covariance": cs.VectorValuedRegressor(30.0 * RBF(0.5), alpha=1e-3, view_kernel="covariance"),
    "vector-valued classifier": cs.VectorValuedClassifier(RBF(0.001), alpha=1e-2, tol=1e-10),
    "vector-valued classifier, squares": cs.VectorValuedClassifier(RBF(0.001), alpha=1e-4, loss="squared"),
    "metric ridge": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3),
    "metric ridge, shared": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3, shared_metric=True, tol=1e-12),
    "metric ridge, covariance": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3, metric="covariance"),
    "metric ridge, diagonal": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3, metric="diagonal"),
    "metric ridge, features": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3, n_components=1.0),
    "metric ridge, learned weights": cs.ViewMetricRidge(RBF(0.5), alpha=1e-3, **LEARNED),
    "metric ridge cv": cs.ViewMetricRidgeCV(RBF(0.5)),
    "metric classifier": cs.ViewMetricRidgeClassifier(RBF(0.001), alpha=1e-3),
    "metric classifier, block-sparse": cs.ViewMetricRidgeClassifier(
        RBF(0.01), metric="block_sparse", alpha=0.1, metric_penalty=0.1, tol=1e-12
    ),
    "metric classifier cv": cs.ViewMetricRidgeClassifierCV(RBF(0.001)),
    "banded ridge": cs.BandedRidgeCV(RBF(0.5), random_state=0),
    "banded ridge, linear": cs.BandedRidgeCV(alphas=(0.1, 1.0, 10.0), cv=3, random_state=0),
    "multiple kernels": cs.MultipleKernelRidge(RBF(0.5), alpha=1e-2, tol=1e-12),
    "multiple kernels, per output": cs.MultipleKernelRidge(RBF(0.5), alpha=1e-2, shared_weights=False, tol=1e-12),
    "multiple kernels, several per view": cs.MultipleKernelRidge(
        [RBF(0.5), RBF(0.05), Laplacian(0.1)], alpha=1e-2, tol=1e-12
    ),
    "multiple kernels, sparse": cs.MultipleKernelRidgeClassifier(RBF(0.001), p=1, alpha=1e-2, tol=1e-10),
    "output kernel": cs.OutputKernelRidge(RBF(0.5), alpha=1e-2, tol=1e-12),
    "output kernel classifier": cs.OutputKernelRidgeClassifier(RBF(0.001), alpha=1e-2, tol=1e-12),
    "max margin": cs.MaxMarginClassifier(RBF(0.001), C=10.0, tol=1e-10),
    "max margin, indicator": cs.MaxMarginClassifier(RBF(0.001), C=10.0, class_vectors="indicator", tol=1e-10),
    "max margin, linear": cs.MaxMarginClassifier("linear", C=1.0, tol=1e-10),
    "max margin, features": cs.MaxMarginClassifier(RBF(0.01), C=1.0, n_components=1.0, tol=1e-10),
    # scikit-learn's checks fit one component, where the intercept converges slowly: few iterations are enough there
    "max margin, bias": cs.MaxMarginClassifier(RBF(0.001), C=1.0, fit_intercept=True, tol=1e-10, max_iter=200),
    "max margin regression": cs.MaxMarginRegressor(RBF(0.5), output_kernel=RBF(1.0), C=10.0, tol=1e-10),
    # passes in the order given, so that samples permuted or repeated are the same stream
    "perceptron": cs.OnlinePerceptron(random_state=0),
    "perceptron, averaged": cs.OnlinePerceptron(average=True, shuffle=False),
    "perceptron, voted": cs.OnlinePerceptron(average="voted", shuffle=False, max_iter=3),
    "p-norm perceptron": cs.OnlinePerceptron(3, average=True, shuffle=False),
    "kernel perceptron": cs.KernelPerceptron(RBF(0.05), shuffle=False),
    "kernel perceptron, voted": cs.KernelPerceptron(RBF(0.05), average="voted", shuffle=False, max_iter=3),
    "kernel perceptron, budget": cs.KernelPerceptron(RBF(0.05), budget=100, shuffle=False),
    "projectron": cs.Projectron(RBF(0.05), threshold=0.2, shuffle=False),
    "passive-aggressive": cs.PassiveAggressive(shuffle=False),
    "passive-aggressive, kernel": cs.PassiveAggressive(RBF(0.05), variant="PA-II", average=True, shuffle=False),
    "passive-aggressive regression": cs.PassiveAggressiveRegressor(shuffle=False),
    "passive-aggressive regression, squares": cs.PassiveAggressiveRegressor(
        loss="squared", average=False, shuffle=False
    ),
    "passive-aggressive regression, kernel": cs.PassiveAggressiveRegressor(RBF(0.05), average=False, shuffle=False),
    "passive-aggressive regression, projected": cs.PassiveAggressiveRegressor(
        RBF(0.05), threshold=0.1, average=False, shuffle=False
    ),
    "passive-aggressive regression, factors": cs.PassiveAggressiveRegressor(p=2, loss="absolute", shuffle=False),
    "matrix perceptron": cs.MatrixPerceptron(unequal="pad", shuffle=False),
    "matrix perceptron, kernel": cs.MatrixPerceptron(
        RBF(0.05), unequal="repeat", average=True, shuffle=False, max_iter=3
    ),
    "orthogonal perceptron": cs.OrthogonalPerceptron(shuffle=False),
    "orthogonal perceptron, kernel": cs.OrthogonalPerceptron(RBF(0.05), average=True, shuffle=False),
    "orthogonal perceptron, aggressive": cs.OrthogonalPerceptron(
        variant="passive-aggressive", prior_norms=0.1, shuffle=False
    ),
    "cues": cs.MultiCueClassifier(RBF(0.05), threshold=0.2, shuffle=False),
    "vector perceptron": cs.VectorPerceptron(RBF(0.05), shuffle=False, max_iter=20),
    "vector perceptron, coefficients": cs.VectorPerceptron(RBF(0.05), shuffle=False, variant="coefficients", eta0=0.01),
    "ranking": cs.RankingPerceptron(shuffle=False),
    "ranking, voted": cs.RankingPerceptron(average="voted", shuffle=False, max_iter=3),
    "late ridge": cs.LateFusion(Ridge(tol=1e-12), view_weights="uniform"),
}

# Checks of scikit-learn that an estimator cannot pass, with the reason; each is tested to fail
_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
_GIVEN_WEIGHTS = (
    "check_sample_weights_pandas_series", "check_sample_weights_not_an_array", "check_sample_weights_list",
    "check_all_zero_sample_weights_error", "check_sample_weights_shape", "check_sample_weights_not_overwritten",
    "check_classifiers_one_label_sample_weights",
)  # fmt: skip
_LEFT_OUT_ONCE = "a sample that is there twice is left out once only: held-out scores are not those of a weight of two"
_MET_TWICE = "a weight of two is one step of twice the length; a sample that is there twice is met twice"
_NO_WEIGHTS = "variant='coefficients' is defined without sample weights and refuses them; the signature has them"
_NO_SUMS = "`fit` keeps no sums over samples, so `partial_fit` after it is refused in a sentence"
_HELD_OUT = (
    "coregularized ridge cv", "coregularized classifier cv", "consensus",
    "consensus classifier",
)  # fmt: skip
EXEMPT = {
    **{name: dict.fromkeys(_WEIGHTS, _LEFT_OUT_ONCE) for name in _HELD_OUT},
    **{
        name: dict.fromkeys(_WEIGHTS, _MET_TWICE)
        for name, estimator in LEARNERS.items()
        if isinstance(estimator, OnlineEstimator)
    },
    "vector perceptron, coefficients": dict.fromkeys((*_WEIGHTS, *_GIVEN_WEIGHTS), _NO_WEIGHTS),
    "metric ridge, features": {"check_fit_score_takes_y": _NO_SUMS},
    "max margin, linear": {
        "check_class_weight_classifiers": "without an intercept no linear machine predicts one class everywhere"
    },
}


def all_learners():
    """The estimator classes among the public names, found, not listed."""
    found = [getattr(cs, name) for name in cs.__all__]
    return [c for c in found if inspect.isclass(c) and hasattr(c, "fit") and hasattr(c, "predict")]


def with_kernels(*, online):
    """Return the estimator classes that have a kernel by their names: those that learn streams, or the others."""
    kernelized = [cls for cls in all_learners() if "kernel" in cls._get_param_names()]
    return {cls.__name__: cls for cls in kernelized if hasattr(cls, "learn_one") == online}


def gram_views(grams, mask=None):
    """Return Gram matrices as the precomputed views v0, v1, .."""
    return cs.Views({f"v{v}": K for v, K in enumerate(grams)}, precomputed=True, mask=mask)


def random_mask(rng, n, m, missing):
    """Return a mask in which every sample has a view; the others are missing with this probability."""
    present = rng.random((n, m)) >= missing
    present[~present.any(axis=1), 0] = True
    return present


def normal_views(n, widths, seed=0, shift=None):
    """Return normal data of views a, b, ..; a shift is one number per sample."""
    rng = np.random.default_rng(seed)
    data = {name: rng.normal(size=(n, width)) for name, width in zip("abc", widths, strict=False)}
    return data if shift is None else {name: block + shift[:, None] for name, block in data.items()}


def histograms(n=30, columns=4, seed=0):
    """Nonnegative data with zeros, so that every kernel on vectors takes them."""
    rng = np.random.default_rng(seed)
    return rng.random((n, columns)) * (rng.random((n, columns)) > 0.3)
