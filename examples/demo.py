"""Early and late fusion beside single views, cross-validated, on data that come with scikit-learn."""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs


def scored(model, X, y):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    start = time.perf_counter()
    scores = cross_val_score(model, X, y, cv=folds)
    return scores, time.perf_counter() - start


def rows(X, y):
    plain = LogisticRegression(max_iter=2000)
    scaled = cs.PerView(StandardScaler())
    for name in X.names:
        yield f"{name} alone", make_pipeline(StandardScaler(), plain), X[name]
    yield "early fusion", make_pipeline(scaled, cs.EarlyFusion(plain)), X
    yield "late fusion", make_pipeline(scaled, cs.LateFusion(plain)), X
    rng = np.random.default_rng(0)
    mask = rng.random((len(X), len(X.names))) > 0.3
    mask[~mask.any(axis=1), 0] = True
    yield "late fusion, 30 % of the views missing", make_pipeline(scaled, cs.LateFusion(plain)), cs.Views(X, mask=mask)


def main():
    loaders = {"breast cancer": cs.datasets.load_breast_cancer_views, "digits": cs.datasets.load_digits_views}
    for title, loader in loaders.items():
        X, y = loader(return_X_y=True)
        print(f"\n{title}: {X}\n")
        print(f"  {'logistic regression on':<40}{'accuracy':>9}{'±':>7}{'seconds':>9}")
        for name, model, data in rows(X, y):
            scores, seconds = scored(model, data, y)
            print(f"  {name:<40}{scores.mean():>9.3f}{scores.std():>7.3f}{seconds:>9.2f}")


if __name__ == "__main__":
    main()
