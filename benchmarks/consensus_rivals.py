"""Estimators that benchmarks/consensus.py compares, and how each is tuned.

A rival is tuned by three inner folds of the training part, with at most 12 settings (fewer where a fit is slow; the
lists are below). All settings are compared by accuracy, ties by log loss. The log loss reported is that of the setting
with the smallest inner log loss. Decision values become probabilities by sigmoids for each class, fitted to the
predictions of the inner folds (CalibratedClassifierCV). The class with the largest decision value is predicted, or the
most probable one, whichever was right more often in the inner folds. For regression, R² takes the place of all these.
"""

import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import f_classif, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, SVR

import consilience as cs
from consilience.kernels import RBF

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import consensus_peers as peers
from consensus_sets import ALL, MEAN

SMALLEST = 1e-6  # probabilities below it count as this, so that votes of 0 do not decide the log loss
LEVELS = (0.8, 0.9, 0.95)
EASYMKL_MOST = 400  # training samples; EasyMKL takes minutes on more
MISSING_RIVALS = ("Consensus", "LateFusion", "EarlyFusion HGB", "CoRegularizedRidgeCV, default")


# -- measures
def log_loss(P, y):
    P = np.clip(P, SMALLEST, None)
    return float(-np.mean(np.log((P / P.sum(axis=1, keepdims=True))[np.arange(len(y)), y])))


def calibration_error(P, y, n_bins=15):
    """Return the expected calibration error of the most probable class, in bins of equal width."""
    sure, right = P.max(axis=1), P.argmax(axis=1) == y
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    return float(sum(abs(np.sum(right[bins == b] - sure[bins == b])) for b in np.unique(bins)) / len(y))


def measured(cell, outputs, P=None):
    """Return the measures of outputs at the test samples: a column for each class, or values."""
    y = cell.y[cell.test]
    if not cell.classes:
        return {"score": float(r2_score(y, outputs))}
    found = {"score": float(np.mean(outputs.argmax(axis=1) == y))}
    if P is not None:
        found |= {"log_loss": log_loss(P, y), "ece": calibration_error(P, y)}
    return found


# -- tuning
class Given(ClassifierMixin, BaseEstimator):
    """Decision values that are known already."""

    def fit(self, F, y):
        """Store the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, F):
        """Return the values as given; for two classes their difference."""
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict(self, F):
        """Return the class of the largest value."""
        return self.classes_[F.argmax(axis=1)]


def sigmoids(F, y):
    """Return a map from decision values to probabilities, fitted to values of the inner folds."""
    return CalibratedClassifierCV(FrozenEstimator(Given().fit(F, y)), method="sigmoid", cv=2).fit(F, y).predict_proba


def tune(cell, fit, settings, kind):
    """Return the measures of the best setting. `fit(setting, rows)` returns a function from rows to outputs.

    `kind` says what the outputs are: "scores" or "probabilities" of each class, or "values".
    """
    y, found = cell.y, []
    inner = np.sort(np.concatenate([held for _, held in cell.folds]))
    for setting in settings:
        out = np.zeros((cell.n, cell.n_classes) if cell.classes else cell.n)
        for kept, held in cell.folds:
            out[held] = fit(setting, kept)(held)
        if not cell.classes:
            found.append((-float(np.mean((out - y[: cell.n])[inner] ** 2)), 0.0, None, None))
            continue
        link = sigmoids(out[inner], y[inner]) if kind == "scores" else lambda P: P
        P = link(out[inner])
        rules = (lambda F: F, link) if kind == "scores" else (link,)
        right = [float(np.mean(rule(out[inner]).argmax(axis=1) == y[inner])) for rule in rules]
        found.append((max(right), -log_loss(P, y[inner]), link, rules[int(np.argmax(right))]))
    best = max(range(len(found)), key=lambda k: found[k][:2])
    outputs = fit(settings[best], cell.train)(cell.test)
    if not cell.classes:
        return measured(cell, outputs) | {"inner": found[best][0], "setting": str(settings[best])}
    likely = max(range(len(found)), key=lambda k: found[k][1])
    other = outputs if likely == best else fit(settings[likely], cell.train)(cell.test)
    result = measured(cell, found[best][3](outputs), found[likely][2](other))
    return result | {"inner": found[best][0], "setting": str(settings[best])}


def columns(model, outputs, n_classes):
    """Return outputs with a column for every class, also those that the model has not seen."""
    outputs = np.column_stack([-outputs, outputs]) if outputs.ndim == 1 else outputs
    full = np.full((len(outputs), n_classes), min(float(outputs.min()), 0.0))
    full[:, np.asarray(model.classes_, dtype=int)] = outputs
    return full


# -- settings
def kernel_grid(cell, strengths, gammas=(0.1, 1 / 3, 1.0, 3.0)):
    """Return (preparation, width, strength): four widths, or two and both preparations, or linear for sparse."""
    if cell.source.counts:
        gammas = ("linear", 1.0) if cell.sparse else (1 / 3, 1.0)
    elif cell.sparse:
        gammas = ("linear", 1 / 3, 1.0, 3.0)
    return list(product(cell.preparations, gammas, strengths))


def widths(cell, few=False):
    """Return (preparation, width) for our estimators, whose penalty has a grid of its own."""
    gammas = (1 / 3, 1.0) if few or cell.source.counts else (0.1, 1 / 3, 1.0, 3.0)
    return list(product(cell.preparations, gammas))


# -- rivals with one kernel
def svm(name):
    def run(cell):
        def fit(setting, rows):
            preparation, gamma, C = setting
            K = cell.gram(name, preparation, gamma)
            if cell.classes:
                model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(rows, rows)], cell.y[rows])
                return lambda new: columns(model, model.decision_function(K[np.ix_(new, rows)]), cell.n_classes)
            model = SVR(kernel="precomputed", C=C).fit(K[np.ix_(rows, rows)], cell.y[rows])
            return lambda new: model.predict(K[np.ix_(new, rows)])

        return tune(cell, fit, kernel_grid(cell, (1.0, 10.0, 100.0)), "scores")

    return run


def single_views(cell):
    """Return SVC or SVR on each view, and the one whose inner score is best."""
    found = {f"SVM on view {name}": timed(svm(name), cell) for name in cell.X.names}
    best = max(found.values(), key=lambda each: each["inner"])
    return found | {"SVM, best view": best | {"seconds": sum(each["seconds"] for each in found.values())}}


def kernel_ridge(name):
    def run(cell):
        def fit(setting, rows):
            preparation, gamma, alpha = setting
            K = cell.gram(name, preparation, gamma)
            model = KernelRidge(alpha=alpha, kernel="precomputed").fit(K[np.ix_(rows, rows)], cell.y[rows])
            return lambda new: model.predict(K[np.ix_(new, rows)])

        return tune(cell, fit, kernel_grid(cell, (1e-3, 1e-2, 1e-1)), "values")

    return run


def linear(cell):
    """Tune logistic regression or ridge regression on all columns, in the span of the training samples."""

    def fit(setting, rows):
        preparation, strength, weight = setting
        Z = cell.features(ALL, preparation) / np.sqrt(cell.width(ALL, preparation))
        if cell.classes:
            model = LogisticRegression(C=strength, class_weight=weight, max_iter=300).fit(Z[rows], cell.y[rows])
            return lambda new: columns(model, model.predict_proba(Z[new]), cell.n_classes)
        model = Ridge(alpha=1 / strength).fit(Z[rows], cell.y[rows])
        return lambda new: model.predict(Z[new])

    strengths, weights = 10.0 ** np.arange(-2, 4), (None, "balanced")
    if not cell.classes:
        strengths, weights = 10.0 ** np.arange(-6, 6), (None,)
    elif len(cell.preparations) > 1:
        strengths = (1.0, 100.0, 1e4)
    settings = list(product(cell.preparations, map(float, strengths), weights))
    return tune(cell, fit, settings, "probabilities")


# -- trees
def forest(cell):
    Z = cell.table

    def fit(setting, rows):
        share, leaf = setting
        trees = 60 if len(rows) < cell.n else 300
        make = RandomForestClassifier if cell.classes else RandomForestRegressor
        model = make(trees, max_features=share, min_samples_leaf=leaf, random_state=0).fit(Z[rows], cell.y[rows])
        if cell.classes:
            return lambda new: columns(model, model.predict_proba(Z[new]), cell.n_classes)
        return lambda new: model.predict(Z[new])

    few = Z.shape[1] > 1000
    shares = ("sqrt",) if few else ("sqrt", 1 / 3) if cell.classes else (1 / 3, 1.0)
    return tune(cell, fit, list(product(shares, (1, 3))), "probabilities")


def boosting_model(cell, rate, depth):
    """Return boosted trees; with over 500 columns, each split looks at some 100 of them."""
    make = HistGradientBoostingClassifier if cell.classes else HistGradientBoostingRegressor
    width = min(cell.table.shape[1], 1000)
    share = 100 / width if width > 500 else 1.0
    most = 100 if cell.n_classes <= 3 else 50
    return make(
        learning_rate=rate, max_depth=depth, max_iter=most, max_features=share, min_samples_leaf=5,
        early_stopping=False, random_state=0,
    )  # fmt: skip


def best_columns(Z, y, classes, most=1000):
    """Return the columns with the largest F statistics; boosting takes minutes on more of them."""
    if Z.shape[1] <= most:
        return np.arange(Z.shape[1])
    filled = np.where(np.isnan(Z), np.nanmean(Z, axis=0), Z)
    F = np.nan_to_num((f_classif if classes else f_regression)(filled, y)[0], nan=0.0)
    return np.sort(np.argsort(-F, kind="stable")[:most])


def boosting(cell):
    Z = cell.table

    def fit(setting, rows):
        kept = best_columns(Z[rows], cell.y[rows], cell.classes)
        model = boosting_model(cell, *setting).fit(Z[rows][:, kept], cell.y[rows])
        if cell.classes:
            return lambda new: columns(model, model.predict_proba(Z[new][:, kept]), cell.n_classes)
        return lambda new: model.predict(Z[new][:, kept])

    heavy = cell.n_classes > 3
    return tune(cell, fit, [(0.1, 3)] if heavy else list(product((0.05, 0.15), (2, None))), "probabilities")


# -- our estimators
def pipeline(cell, estimator):
    """Return an estimator behind the scaling that `compare` uses: dense columns are standardized."""
    return estimator if cell.sparse else make_pipeline(cs.PerView(StandardScaler()), estimator)


def default(classifier, regressor=None):
    def run(cell):
        model = pipeline(cell, classifier() if cell.classes else regressor()).fit(
            cell.X[cell.train], cell.y[cell.train]
        )
        test = cell.X[cell.test]
        if not cell.classes:
            return measured(cell, model.predict(test))
        outputs = model.decision_function(test)
        return measured(cell, columns(model, outputs, cell.n_classes))

    return run


def tuned(make, grid):
    """Tune one of our estimators: `make(cell, kernel, *setting)` over widths and a grid of its own."""

    def run(cell):
        views = {
            preparation: cs.Views({name: cell.features(name, preparation) for name in cell.X.names})
            for preparation in cell.preparations
        }

        def fit(setting, rows):
            (preparation, gamma), own = setting
            kernel = {name: RBF(gamma / cell.width(name, preparation)) for name in cell.X.names}
            X = views[preparation]
            model = make(cell, kernel, *own).fit(X[rows], cell.y[rows])
            if not cell.classes:
                return lambda new: model.predict(X[new])
            return lambda new: columns(model, model.decision_function(X[new]), cell.n_classes)

        own = list(product(*grid))
        few = len(own) * len(widths(cell)) > 12
        return tune(cell, fit, list(product(widths(cell, few), own)), "scores")

    return run


def choose(classifier, regressor):
    return lambda cell: classifier if cell.classes else regressor


def _ridge_cv(cell, kernel):
    return choose(cs.CoRegularizedRidgeClassifierCV, cs.CoRegularizedRidgeCV)(cell)(kernel)


def _agreeing(cell, kernel, alpha, agreement):
    make = choose(cs.CoRegularizedRidgeClassifier, cs.CoRegularizedRidge)(cell)
    return make(kernel, alpha=alpha, agreement_penalty=agreement)


def _metric_cv(cell, kernel):
    return choose(cs.ViewMetricRidgeClassifierCV, cs.ViewMetricRidgeCV)(cell)(kernel)


def _multiple(cell, kernel, alpha, p):
    return choose(cs.MultipleKernelRidgeClassifier, cs.MultipleKernelRidge)(cell)(kernel, alpha=alpha, p=p)


# -- Consensus
def consensus(cell):
    model = cs.ConsensusClassifier() if cell.classes else cs.ConsensusRegressor()
    start = time.perf_counter()
    model.fit(cell.X[cell.train], cell.y[cell.train], groups=cell.groups)
    fitted = time.perf_counter() - start
    test, y = cell.X[cell.test], cell.y[cell.test]
    if cell.classes:
        P = model.predict_proba(test)
        found = measured(cell, P, P)
        for level in LEVELS:
            inside = model.predict_set(test, coverage=level)
            found[f"coverage_{level}"] = float(inside[np.arange(len(y)), y].mean())
            found[f"size_{level}"] = float(inside.sum(axis=1).mean())
    else:
        found = measured(cell, model.predict(test))
        for level in LEVELS:
            ends = model.predict_interval(test, coverage=level)
            found[f"coverage_{level}"] = float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
            width = ends[:, 1] - ends[:, 0]
            finite = np.isfinite(width)
            found[f"size_{level}"] = float(width[finite].mean()) if finite.any() else None
            found[f"infinite_{level}"] = float(1 - finite.mean())
    return found | {"loo_score": float(model.loo_score_), "fit_seconds": fitted}


# -- fusion, also where views are missing
class TunedLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression behind the scaling of its data, with the penalty of the smallest inner log loss."""

    def __init__(self, preparations=("standard",)):
        self.preparations = preparations

    def fit(self, X, y):
        """Choose the preparation and the penalty, and fit."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_folds = max(2, min(3, int(np.bincount(codes).min())))
        folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(codes, codes))
        best = (np.inf, None)
        for preparation in self.preparations:
            Z = self._prepare(preparation, X, fit=True)
            for C in 10.0 ** np.arange(-1, 5):
                losses = []
                for kept, held in folds:
                    model = LogisticRegression(C=C, max_iter=300).fit(Z[kept], codes[kept])
                    losses.append(
                        log_loss(columns(model, model.predict_proba(Z[held]), len(self.classes_)), codes[held])
                    )
                best = min(best, (float(np.mean(losses)), (preparation, C)))
        self.preparation_, C = best[1]
        self.model_ = LogisticRegression(C=C, max_iter=300).fit(self._prepare(self.preparation_, X, fit=True), codes)
        return self

    def _prepare(self, preparation, X, fit=False):
        if preparation == "roots":
            X = np.sqrt(X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12))
        X = X.sqrt() if preparation == "unit roots" else X
        if fit:
            unit = preparation.startswith("unit")
            self._scaler = (Normalizer() if unit else StandardScaler(with_std=preparation != "roots")).fit(X)
        Z = self._scaler.transform(X)
        if fit:
            self._rotation, width = None, float(np.sum(Z.multiply(Z))) if sp.issparse(Z) else float(np.sum(Z**2))
            self._scale = np.sqrt(max(width / Z.shape[0], 1e-12))
            if Z.shape[1] > Z.shape[0]:  # the coefficients lie in the span of the training samples
                products = (Z @ Z.T).toarray() if sp.issparse(Z) else Z @ Z.T
                values, vectors = np.linalg.eigh(products)
                kept = values > 1e-10 * values[-1]
                self._rotation = Z.T @ (vectors[:, kept] / np.sqrt(values[kept]))
        Z = Z if self._rotation is None else Z @ self._rotation
        return (Z.toarray() if sp.issparse(Z) else Z) / self._scale

    def predict_proba(self, X):
        """Return the probability of each class."""
        return self.model_.predict_proba(self._prepare(self.preparation_, X))

    def predict(self, X):
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def fused(make):
    def run(cell):
        model = make(cell).fit(cell.X[cell.train], cell.y[cell.train])
        if not cell.classes:
            return measured(cell, model.predict(cell.X[cell.test]))
        P = columns(model, model.predict_proba(cell.X[cell.test]), cell.n_classes)
        return measured(cell, P, P)

    return run


def _late(cell):
    if cell.classes:
        return cs.LateFusion(TunedLogistic(cell.preparations))
    return cs.LateFusion(make_pipeline(StandardScaler(), RidgeCV(10.0 ** np.arange(-2, 4))))


def early_boosting(cell):
    """Tune boosted trees on all columns, NaN where a view is missing: what EarlyFusion(fill="nan") gives them."""
    return boosting(cell)


# -- other programs
def himalaya(cell):
    grams = [cell.gram(v, p, g) for v in cell.X.names for p, g in widths(cell, few=True)]
    K = np.stack(grams)
    Y = np.where(cell.y[:, None] == np.arange(cell.n_classes), 1.0, -1.0) if cell.classes else cell.y[:, None]

    def fit(setting, rows):
        center = Y[rows].mean(axis=0)  # it has no intercept
        model = peers.himalaya_ridge(K[:, rows[:, None], rows], Y[rows] - center, 3, 12, 10.0 ** np.arange(-4, 3))

        def outputs(new):
            found = np.asarray(model.predict(K[:, new[:, None], rows])) + center
            return found if cell.classes else found.ravel()

        return outputs

    return tune(cell, fit, [None], "scores")


def easymkl(cell):
    def fit(setting, rows):
        (preparation, gamma), lam, C = setting
        K = [cell.gram(v, preparation, gamma) for v in cell.X.names]
        model = peers.easy_mkl([k[np.ix_(rows, rows)] for k in K], cell.y[rows], lam, C)
        return lambda new: peers.easy_mkl_scores(model, [k[np.ix_(new, rows)] for k in K], cell.n_classes)

    return tune(cell, fit, list(product(widths(cell, few=True), (0.1,), (1.0, 10.0, 100.0))), "scores")


# -- the table
def timed(run, cell):
    start = time.perf_counter()
    found = run(cell)
    return found | {"seconds": time.perf_counter() - start}


_OURS = {
    "CoRegularizedRidgeCV, default": default(cs.CoRegularizedRidgeClassifierCV, cs.CoRegularizedRidgeCV),
    "CoRegularizedRidgeCV, tuned": tuned(_ridge_cv, ()),
    "CoRegularizedRidge, default": default(cs.CoRegularizedRidgeClassifier, cs.CoRegularizedRidge),
    "CoRegularizedRidge, tuned": tuned(_agreeing, ((1e-4, 1e-2), (0.0, 1e-3, 1e-1))),
    "ViewMetricRidgeCV, default": default(cs.ViewMetricRidgeClassifierCV, cs.ViewMetricRidgeCV),
    "ViewMetricRidgeCV, tuned": tuned(_metric_cv, ()),
    "MultipleKernelRidge, default": default(cs.MultipleKernelRidgeClassifier, cs.MultipleKernelRidge),
    "MultipleKernelRidge, tuned": tuned(_multiple, ((1e-2, 1e-1, 1.0), (1.0, 2.0))),
}
_OURS_CLASSES = {
    "CoRegularizedSVC, default": default(cs.CoRegularizedSVC),
    "CoRegularizedSVC, tuned": tuned(
        lambda cell, kernel, alpha: cs.CoRegularizedSVC(kernel, alpha=alpha), ((1e-4, 1e-3, 1e-2),)
    ),
    "MaxMarginClassifier, default": default(cs.MaxMarginClassifier),
    "MaxMarginClassifier, tuned": tuned(
        lambda cell, kernel, C: cs.MaxMarginClassifier(kernel, C=C), ((1.0, 10.0, 100.0),)
    ),
}


def rivals(classes, missing, size=0):
    """Return the estimators of a cell by name, and the names that were skipped with the reason."""
    found = {"Consensus": consensus, "LateFusion": fused(_late)}
    if missing:
        chosen = found | {"EarlyFusion HGB": early_boosting, **_OURS}
        return {name: chosen[name] for name in MISSING_RIVALS}, {}
    found |= {"SVM, views": single_views, "SVM, all columns": svm(ALL), "SVM, mean kernel": svm(MEAN)}
    if not classes:
        found |= {"KernelRidge, all columns": kernel_ridge(ALL), "KernelRidge, mean kernel": kernel_ridge(MEAN)}
    found |= {"linear, all columns": linear, "RandomForest": forest, "HistGradientBoosting": boosting}
    found |= _OURS | (_OURS_CLASSES if classes else {})
    skipped = {}
    if peers.HIMALAYA:
        found["himalaya"] = himalaya
    else:
        skipped["himalaya"] = "himalaya cannot be imported"
    if classes and peers.EASYMKL:
        found |= {"EasyMKL": easymkl} if size <= EASYMKL_MOST else {}
    elif classes:
        skipped["EasyMKL"] = "MKLpy, torch or cvxopt cannot be imported"
    return found, skipped
