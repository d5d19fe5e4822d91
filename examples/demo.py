"""Learners of several views beside single views and fusion, cross-validated, on data that come with scikit-learn."""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs


def scored(model, X, y):
    folds = StratifiedKFold(5 if len(X) < 1000 else 2, shuffle=True, random_state=0)
    start = time.perf_counter()
    scores = cross_val_score(model, X, y, cv=folds)
    return scores, time.perf_counter() - start


def rows(X, y):
    plain = LogisticRegression(max_iter=2000)
    scaled = cs.PerView(StandardScaler())
    for name in X.names:
        yield f"logistic regression, {name} alone", make_pipeline(StandardScaler(), plain), X[name]
    yield "logistic regression, early fusion", make_pipeline(scaled, cs.EarlyFusion(plain)), X
    yield "logistic regression, late fusion", make_pipeline(scaled, cs.LateFusion(plain)), X
    ridge = cs.CoRegularizedRidgeClassifier(alpha=1e-4, between=1e-5)
    yield "co-regularized ridge", make_pipeline(scaled, ridge), X
    learned = cs.CoRegularizedRidgeClassifier(alpha=1e-4, between=1e-5, view_weights="learned", tol=1e-3)
    yield "co-regularized ridge, weights learned", make_pipeline(scaled, learned), X
    yield "co-regularized SVM", make_pipeline(scaled, cs.CoRegularizedSVC(alpha=1e-4, between=1e-5)), X
    metric = cs.ViewMetricRidgeClassifierCV()
    yield "metric learning, penalty by leave-one-out", make_pipeline(scaled, metric), X
    sparse = cs.MultipleKernelRidgeClassifier(p=1, alpha=0.1)
    yield "multiple kernels, p = 1", make_pipeline(scaled, sparse), X
    yield "maximum margin regression", make_pipeline(scaled, cs.MaxMarginClassifier(C=10.0)), X
    online = cs.OrthogonalPerceptron("rbf", average=True, random_state=0)
    yield "orthogonal perceptron, averaged", make_pipeline(scaled, online), X
    rng = np.random.default_rng(0)
    mask = rng.random((len(X), len(X.names))) > 0.3
    mask[~mask.any(axis=1), 0] = True
    holes = cs.Views(X, mask=mask)
    yield "late fusion, 30 % of the views missing", make_pipeline(scaled, cs.LateFusion(plain)), holes
    yield "co-regularized ridge, 30 % missing", make_pipeline(scaled, ridge), holes
    yield "metric learning, 30 % missing", make_pipeline(scaled, metric), holes


def stream(X, y):
    order = np.random.default_rng(0).permutation(len(y))
    model = cs.OrthogonalPerceptron("rbf", aggressive=True)
    result = cs.progressive_validation(model, X[order], y[order])
    print("\ndigits as a stream, one after the other: share of mistakes so far\n")
    for seen in (50, 200, 800, len(y)):
        last = np.searchsorted(result.curve[:, 0], seen, side="right") - 1
        print(f"  after {seen:>5,} samples{'':<24}{result.curve[last, 1]:>9.3f}")


def main():
    loaders = {"breast cancer": cs.datasets.load_breast_cancer_views, "digits": cs.datasets.load_digits_views}
    for title, loader in loaders.items():
        X, y = loader(return_X_y=True)
        print(f"\n{title}: {X}\n")
        print(f"  {'':<44}{'accuracy':>9}{'±':>7}{'seconds':>9}")
        for name, model, data in rows(X, y):
            scores, seconds = scored(model, data, y)
            print(f"  {name:<44}{scores.mean():>9.3f}{scores.std():>7.3f}{seconds:>9.2f}")
    stream(cs.PerView(StandardScaler()).fit_transform(X), y)
    rng = np.random.default_rng(0)
    shown = np.concatenate([rng.choice(np.flatnonzero(y == k), 5, replace=False) for k in range(10)])
    half = np.full(len(y), np.nan)
    half[shown] = y[shown]
    hidden = np.isnan(half)
    model = cs.CoRegularizedRidgeClassifier(alpha=1e-4, graph="knn")
    search = GridSearchCV(model, {"within": [1e-6, 1e-5, 1e-4]}, cv=cs.LabeledFolds(5)).fit(X, half)
    print(f"\ndigits with 5 labels per class, accuracy on the {hidden.sum()} other samples\n")
    print(f"  {'labeled samples only':<44}{model.fit(X, half).score(X[hidden], y[hidden]):>9.3f}")
    print(f"  {'with the unlabeled samples':<44}{search.score(X[hidden], y[hidden]):>9.3f}")
    print(f"\n{search.best_estimator_.certificate()}")


if __name__ == "__main__":
    main()
