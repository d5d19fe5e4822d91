"""The smallest estimators on the shared bases: they test the bases, not methods."""

import numpy as np

from consilience.batch._estimator import BatchEstimator
from consilience.kernels import reference_views, resolve_kernels, view_grams
from consilience.kernels.by_view import kernel_of
from consilience.online._frame import OnlineEstimator
from consilience.online._machine import Machine
from consilience.solvers.certificates import Solution
from consilience.views.estimator import ViewClassifier, ViewRegressor, presence
from consilience.views.validation import class_weights, read_labels, read_targets, read_views_to_fit, read_weights


class _SumOfKernels(BatchEstimator):
    """Kernel ridge with Σ K_v; terms of missing views are 0."""

    def __init__(self, kernel="rbf", *, alpha=0.1, views=None):
        self.kernel = kernel
        self.alpha = alpha
        self.views = views

    def _solve(self, X, Y, weights):
        names = X.names
        self.kernels_ = resolve_kernels({name: kernel_of(self.kernel, name) for name in names}, X)
        K = sum(view_grams(self.kernels_, X))
        root = np.sqrt(weights)[:, None]
        A = root * K * root.T + self.alpha * np.eye(len(K))
        self.dual_coef_ = root * np.linalg.solve(A, root * Y)
        self.X_fit_ = reference_views(self.kernels_, X)
        self.view_weights_ = np.ones(len(names))
        objective = float(np.sum(weights[:, None] * (Y - K @ self.dual_coef_) ** 2))
        self.solution_ = Solution(self.dual_coef_, gap=0.0, n_iter=1, status="exact", objective=objective)
        return self

    def _view_outputs(self, X):
        return np.stack([K @ self.dual_coef_ for K in view_grams(self.kernels_, X, self.X_fit_)], axis=1)


class TinyRidge(ViewRegressor, _SumOfKernels):
    def fit(self, X, y, sample_weight=None):
        X = read_views_to_fit(self, X)
        Y, labeled = read_targets(y, len(X))
        self._one_output = np.asarray(y).ndim == 1
        return self._solve(X[labeled], Y[labeled], read_weights(sample_weight, len(X))[labeled])


class TinyRidgeClassifier(ViewClassifier, _SumOfKernels):
    def __init__(self, kernel="rbf", *, alpha=0.1, class_weight=None, unlabeled=None, views=None):
        super().__init__(kernel, alpha=alpha, views=views)
        self.class_weight = class_weight
        self.unlabeled = unlabeled

    def fit(self, X, y, sample_weight=None):
        X = read_views_to_fit(self, X)
        labels = read_labels(y, len(X), self.unlabeled)
        self.classes_ = labels.classes
        rows = labels.labeled
        weights = read_weights(sample_weight, len(X))
        weights = weights * class_weights(self.class_weight, labels, weights)
        return self._solve(X[rows], labels.signs()[rows], weights[rows])


class TinyPerceptron(OnlineEstimator):
    """One linear perceptron per class on each view, one sample after the other."""

    def __init__(self, max_iter=3, shuffle=False, random_state=None, views=None):
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.views = views

    _late_classes = False

    def _is_primal(self):
        return True

    def _new_machine(self, n_outputs):
        return TinyMachine(len(self.classes_))

    def _rule(self):
        return 1.0

    @property
    def coef_(self):
        return self._machine.coef


class TinyMachine(Machine):
    """Weights by view and class."""

    def __init__(self, n_outputs):
        self.n_outputs = n_outputs
        self.coef = {}

    def add_views(self, X, kernels):
        for name in X.names:
            if X.present(name).any():
                self.coef.setdefault(name, np.zeros((X.block(name).shape[1], self.n_outputs)))

    def learn(self, chunk, codes, rule, ids):
        wrong = np.zeros(len(codes), dtype=bool)
        before = np.zeros((len(codes), self.n_outputs))
        for i, code in enumerate(codes):
            one = chunk[i]
            before[i] = self.class_scores(one)[0]
            guess = int(before[i].argmax())
            wrong[i] = guess != code
            self.n_updates += int(wrong[i])
            for v, name in enumerate(one.names):
                if wrong[i] and presence(one)[0, v]:
                    row = rule * _dense_row(one.block(name))
                    self.coef[name][:, code] += row
                    self.coef[name][:, guess] -= row
        return before, wrong

    def class_scores(self, X):
        scores = np.zeros((len(X), self.n_outputs))
        for name in X.names:
            there = X.present(name)
            if there.any() and name in self.coef:
                block = X.block(name)
                scores[there] += (block if there.all() else block[np.flatnonzero(there)]) @ self.coef[name]
        return scores

    def scores(self, X):
        scores = self.class_scores(X)
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

    def remap_outputs(self, sources):
        raise TypeError("needs all classes at the first call")


def _dense_row(block):
    return block.toarray()[0] if hasattr(block, "toarray") else block[0]
