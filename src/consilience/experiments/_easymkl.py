"""EasyMKL (Aiolli and Donini 2015): kernel weights from the distance between classes, then a machine on the sum."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

from ..kernels import RBF
from ..views.container import Views

_Grams = list[np.ndarray]


def easymkl_weights(grams: _Grams, sign: np.ndarray, lam: float) -> np.ndarray:
    """Return the weights of kernels that separate two classes, with a sum of one.

    γ minimizes γ'Y((1 - λ) Σ_r K_r + λI)Yγ over γ >= 0 with a sum of one in each class, and the weight of kernel r is
    proportional to γ'Y K_r Yγ. This γ is the dual solution of a support vector machine without slack, up to its scale.
    """
    machine = SVC(kernel="precomputed", C=1e8, tol=1e-6)
    machine.fit((1 - lam) * np.sum(grams, axis=0) + lam * np.eye(len(sign)), sign)
    signed = np.zeros(len(sign))
    signed[machine.support_] = machine.dual_coef_[0]
    signed /= signed[sign > 0].sum()
    weights = np.array([signed @ gram @ signed for gram in grams])
    return np.asarray(weights / weights.sum())


class EasyMKL(ClassifierMixin, BaseEstimator):
    """EasyMKL with a Gaussian kernel for each view and support vector machines, one class against the others.

    Parameters
    ----------
    width : float
        The kernel of a view with d columns has γ = width / d.
    lam : float
        λ, between 0 and 1: with 1, all samples of a class have the same part in the weights.
    C : float
        Penalty on errors of the machines.
    """

    def __init__(self, width: float = 1.0, lam: float = 0.1, C: float = 1.0) -> None:
        self.width = width
        self.lam = lam
        self.C = C

    def fit(self, X: Views, y: np.ndarray) -> Self:
        """Learn the weights and the machine of each class; of the second class alone if there are two."""
        self.classes_, self.X_ = np.unique(y), X
        positive = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        grams = self._grams(X)
        self.weights_, self.machines_ = [], []
        for label in positive:
            sign = np.where(y == label, 1, -1)
            self.weights_.append(easymkl_weights(grams, sign, self.lam))
            self.machines_.append(SVC(kernel="precomputed", C=self.C).fit(self._sum(grams, -1), sign))
        return self

    def decision_function(self, X: Views) -> np.ndarray:
        """Return the decision values, a column for each machine."""
        grams = self._grams(X)
        parts = [each.decision_function(self._sum(grams, k)) for k, each in enumerate(self.machines_)]
        return np.column_stack(parts)

    def predict(self, X: Views) -> np.ndarray:
        """Return the class with the largest decision value."""
        values = self.decision_function(X)
        best = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[best])

    def _grams(self, X: Views) -> _Grams:
        return gaussian_grams(X, self.X_, self.width)

    def _sum(self, grams: _Grams, machine: int) -> Any:
        return np.einsum("r,rij->ij", self.weights_[machine], np.stack(grams))


def gaussian_grams(X: Views, Z: Views, width: float) -> _Grams:
    """Return a Gaussian Gram matrix for each view, whose inverse width is `width` over the number of columns."""
    return [RBF(width / X[name].shape[1])(X[name], Z[name]) for name in X.names]
