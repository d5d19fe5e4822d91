"""scikit-learn's tools work on views unchanged."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as selection
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import resample, shuffle

from consilience import LateFusion, MultipleKernelRidge, MultipleKernelRidgeClassifier, Nystroem, PerView, Views
from consilience.kernels import RBF, Linear

rng = np.random.default_rng(0)
y = np.repeat(["ant", "bee", "cow"], 20)
code = np.repeat([0, 1, 2], 20)
A = rng.normal(size=(60, 3)) + code[:, None]
S = sp.csr_array(rng.poisson(0.3 + (code[:, None] == np.arange(3)), size=(60, 3)).astype(float))
T = [f"{'xyz'[c] * 3} w{i % 4}" for i, c in enumerate(code)]
holes = np.ones((60, 3), dtype=bool)
holes[::7, 0] = holes[3::8, 1] = False
X = Views({"a": A, "s": S, "t": T}, mask=holes)
N, BOTH = Views({"a": A, "s": S}), {"a": RBF(0.5), "s": Linear()}
pipe = make_pipeline(
    PerView({"a": StandardScaler(), "t": TfidfVectorizer()}), LateFusion(LogisticRegression(max_iter=500))
)


def test_splitting():
    X_train, X_test, y_train, _ = selection.train_test_split(X, y, stratify=y, random_state=0, test_size=15)
    assert isinstance(X_train, Views)
    assert (len(X_train), len(X_test)) == (45, 15)
    assert [word[0] for word in X_train["t"]] == ["xyz"[np.unique(y).tolist().index(label)] for label in y_train]
    for train, test in selection.KFold(4).split(X):
        assert len(X[train]) + len(X[test]) == 60
    for _, test in selection.GroupKFold(3).split(X, y, groups=np.arange(60) % 6):
        assert len(X[test]) == 20
    turned, labels = shuffle(X, y, random_state=0)
    pairs = {str(row["t"][0])[:3] + label for row, label in zip(turned, labels, strict=True)}
    assert pairs == {"xxxant", "yyybee", "zzzcow"}
    assert len(resample(X, n_samples=10, random_state=0)) == 10


def test_scores_predictions_and_curves():
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.6
    assert selection.cross_validate(pipe, X, y, cv=3, return_train_score=True)["train_score"].shape == (3,)
    assert np.mean(cross_val_predict(pipe, X, y, cv=3) == y) > 0.6
    assert cross_val_predict(pipe, X, y, cv=3, method="predict_proba").shape == (60, 3)
    folds = selection.StratifiedKFold(3, shuffle=True, random_state=0)
    assert selection.learning_curve(pipe, X, y, cv=folds, train_sizes=[0.5, 1.0])[1].shape == (2, 3)
    selection.validation_curve(pipe, X, y, param_name="latefusion__estimator__C", param_range=[0.1, 1.0], cv=3)
    score, permuted, _ = selection.permutation_test_score(pipe, X, y, cv=3, n_permutations=5, random_state=0)
    assert score > permuted.mean()


def test_searching_in_processes():
    grid = {"latefusion__estimator__C": [0.01, 1.0], "perview__transformers__a__with_std": [True, False]}
    search = GridSearchCV(pipe, grid, cv=3, n_jobs=2).fit(X, y)
    assert search.score(X, y) > 0.8
    grid = {"kernel__a__gamma": [0.1, 1.0], "kernel__s": [Linear(), RBF(0.2)]}
    kernels = GridSearchCV(MultipleKernelRidgeClassifier(BOTH), grid, cv=3, n_jobs=2).fit(N, y)
    assert set(kernels.best_params_) == set(grid)
    named = GridSearchCV(MultipleKernelRidgeClassifier("rbf"), {"kernel__gamma": [0.1, 1.0]}, cv=3).fit(N, y)
    assert named.best_params_["kernel__gamma"] in (0.1, 1.0)
    halving = selection.HalvingGridSearchCV(
        MultipleKernelRidgeClassifier(), {"alpha": [0.01, 0.1, 1.0]}, cv=3, random_state=0
    ).fit(N, y)
    assert halving.best_score_ > 0.5


def test_wrapping():
    base = LateFusion(LogisticRegression(max_iter=500))
    assert CalibratedClassifierCV(MultipleKernelRidgeClassifier(), cv=3).fit(N, y).predict_proba(N).shape == (60, 3)
    stacked = StackingClassifier([("late", base), ("kernel", MultipleKernelRidgeClassifier())], cv=3).fit(N, y)
    assert stacked.score(N, y) > 0.7
    assert VotingClassifier([("late", base), ("pipe", clone(base))]).fit(N, y).score(N, y) > 0.7
    assert OneVsRestClassifier(base).fit(N, y).score(N, y) > 0.7
    deep = make_pipeline(PerView(StandardScaler(with_mean=False)), Nystroem(n_components=20, random_state=0), base)
    assert deep.fit(N, y).score(N, y) > 0.7


def test_clones_and_joblib(tmp_path):
    model = clone(pipe).fit(X, y)
    joblib.dump((model, X), tmp_path / "model.joblib")
    again, rows = joblib.load(tmp_path / "model.joblib")
    assert rows == X
    assert np.array_equal(again.predict(rows), model.predict(X))
    halves = joblib.Parallel(n_jobs=2)(joblib.delayed(model.predict)(X[part]) for part in (range(30), range(30, 60)))
    assert np.array_equal(np.concatenate(halves), model.predict(X))


# -- precomputed kernels: rows and columns are cut
K, L = RBF(0.5)(A), Linear()(S)
FORMS = {
    "views of plain Grams": (Views(k=K, l=L), "precomputed"),
    "views told to be precomputed": (Views(k=K, l=L, precomputed=True), "precomputed"),
    "a Gram and data": (Views(k=K, s=S, precomputed="k"), {"k": "precomputed", "s": Linear()}),
    "one plain Gram": (K + L, "precomputed"),
}


@pytest.mark.parametrize("form", FORMS)
def test_cross_validation_cuts_rows_and_columns_of_grams(form):
    data, kernel = FORMS[form]
    expected = cross_val_predict(MultipleKernelRidge(BOTH, p=np.inf), N, code, cv=4)
    np.testing.assert_allclose(cross_val_predict(MultipleKernelRidge(kernel, p=np.inf), data, code, cv=4), expected)
    search = GridSearchCV(MultipleKernelRidgeClassifier(kernel), {"alpha": [0.1, 1.0]}, cv=3).fit(data, y)
    assert np.mean(search.predict(data) == y) > 0.7
    assert cross_val_score(search, data, y, cv=3).shape == (3,)


def test_one_plain_gram_as_scikit_learn_has_it():
    total = K + L
    machine = SVC(kernel="precomputed", break_ties=True)  # its predictions are then the largest of its scores
    theirs = cross_val_score(machine, total, y, cv=3)
    np.testing.assert_allclose(cross_val_score(LateFusion(machine), total, y, cv=3), theirs)
    by_rows = cross_val_score(LateFusion(machine), Views(g=total, precomputed="g"), y, cv=3)
    np.testing.assert_allclose(by_rows, theirs)
