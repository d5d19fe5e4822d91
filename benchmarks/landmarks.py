"""Nyström landmarks against exact kernels, the measurement behind n_components="auto": python benchmarks/landmarks.py

uWave (3 views, 8 classes), SARCOS (3 views, 7 outputs) and mfeat (6 views, 10 classes); the files are in the folder
named by CONSILIENCE_DATA. Three quarters of the samples train, the others test, and columns are scaled. The penalty is
chosen by leave-one-out on 1,000 training samples. With it, the estimator is fitted with exact kernels and with c √n
landmarks of each view, three draws each. Prints the held-out score in points, 100 times the accuracy or R², and how far
the mean over draws is below that of exact kernels.
"""

import time

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience.datasets import fetch_mfeat, fetch_sarcos, fetch_uwave

ALPHAS = 10.0 ** np.arange(-9, -1)
SETS = {"uWave": (fetch_uwave, True), "SARCOS": (fetch_sarcos, False), "mfeat": (fetch_mfeat, True)}


def compare(name, factors=(2, 4, 8, 10, 12, 16), draws=3):
    """Print the scores of one data set."""
    fetch, classes = SETS[name]
    X, y = fetch(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y if classes else None)
    scale = make_pipeline(cs.PerView(StandardScaler())).fit(X)
    X, X_test = scale.transform(X), scale.transform(X_test)
    if not classes:
        y, y_test = y / y.std(axis=0), y_test / y.std(axis=0)
    search = (cs.CoRegularizedRidgeClassifierCV if classes else cs.CoRegularizedRidgeCV)(alphas=ALPHAS)
    alpha = search.fit(X[:1000], y[:1000]).alpha_
    estimator = cs.CoRegularizedRidgeClassifier if classes else cs.CoRegularizedRidge

    def score(p, seed=0):
        start = time.perf_counter()
        model = estimator(alpha=alpha, n_components=p, random_state=seed).fit(X, y)
        return 100 * model.score(X_test, y_test), time.perf_counter() - start

    exact, seconds = score(None)
    print(f"{name}: n = {len(X)}, {len(X.names)} views, alpha = {alpha:.0e}: exact {exact:.2f} in {seconds:.1f} s")
    for factor in factors:
        p = min(int(factor * np.sqrt(len(X))), len(X))
        results = [score(p, seed) for seed in range(draws)]
        mean = np.mean([value for value, _ in results])
        print(f"  {factor:2d} √n = {p:4d} landmarks: {mean:.2f}, {exact - mean:+.2f} below, {results[0][1]:.1f} s")


if __name__ == "__main__":
    for name in SETS:
        compare(name)
