"""Learned weights of the views for several orders of their norm, compared with uniform weights.

Run by ``python benchmarks/learned_weights.py``, with the data files in the folder named by CONSILIENCE_DATA. Prints the
mean over settings of the accuracy of `CoRegularizedRidgeClassifier` less that with uniform weights, in points, and the
worst setting. A setting is a data set (Flower17, Multiple Features, digits), a number of labels per class, and
penalties; its accuracy is the mean of three draws. The second half adds views whose rows were shuffled.

Scores are of validation rows: those of Flower17, and a quarter of the rows of the others. The default
of `weights_order` was chosen on such rows. Splits of Flower17 overlap: some are test rows of another split.
"""

import warnings

import numpy as np
from sklearn.preprocessing import Normalizer, StandardScaler

from consilience import CoRegularizedRidgeClassifier, PerView, Views
from consilience.datasets import fetch_flower17, fetch_mfeat, load_digits_views
from consilience.kernels import RBF, ChiSquared, resolve_kernels, view_grams

ORDERS = (2, 2.5, 3, 4)
PENALTIES = ((1e-3, 0.0), (1e-5, 0.0), (1e-5, 1e-6))  # alpha, graph_penalty
DRAWS = 3


def load(name):
    """Return Gram matrices, classes, (rows for fits, rows for scores) of each draw, numbers of labels per class."""
    fetch = {"flower17": fetch_flower17, "mfeat": fetch_mfeat, "digits": load_digits_views}[name]
    X, y = fetch(return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    histograms = name == "flower17"
    X = PerView(Normalizer("l1") if histograms else StandardScaler()).fit_transform(X)
    kernel = ChiSquared() if histograms else RBF("scale")
    grams = view_grams(resolve_kernels(dict.fromkeys(X.names, kernel), X), X)
    if histograms:
        return grams, y, fetch_flower17().validation_splits, (1, 5, 10)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[: len(y) // 2], order[len(y) // 2 : len(y) * 3 // 4]
    return grams, y, [(first, second)] * DRAWS, (1, 2, 5, 20)


def accuracies(K, y, parts, n_labels, alpha, graph_penalty):
    """Return percent right with uniform weights and with each order, the mean over draws."""
    results = []
    for seed, (rows, others) in enumerate(parts):
        order = np.random.default_rng(seed).permutation(rows)
        labeled = np.concatenate([order[y[order] == label][:n_labels] for label in np.unique(y)])
        given = {"alpha": alpha, "graph_penalty": graph_penalty, "random_state": 0}
        models = [CoRegularizedRidgeClassifier("precomputed", **given)]
        models += [
            CoRegularizedRidgeClassifier("precomputed", view_weights="learned", weights_order=q, **given)
            for q in ORDERS
        ]
        results.append([100 * model.fit(K[labeled], y[labeled]).score(K[others], y[others]) for model in models])
    return np.mean(results, axis=0)


def main():
    gains = {False: [], True: []}
    for name in ("flower17", "mfeat", "digits"):
        grams, y, parts, labels = load(name)
        for noise in (False, True):
            shuffles = [np.random.default_rng(100 + k).permutation(len(y)) for k in range(len(grams) * noise)]
            noisy = [K[np.ix_(rows, rows)] for K, rows in zip(grams, shuffles, strict=False)]
            K = Views([*grams, *noisy], precomputed=True)
            for alpha, graph_penalty in PENALTIES:
                for n in labels:
                    scores = accuracies(K, y, parts, n, alpha, graph_penalty)
                    gains[noise].append(scores[1:] - scores[0])
                    shown = " ".join(f"{score:6.2f}" for score in scores)
                    print(f"{name:9} noise {noise!s:5} {alpha:g} {graph_penalty:g} {n:2} labels: {shown}", flush=True)
    print("\n| weights_order | mean | worst | mean, with noise views | worst, with noise views |")
    print("| --- | --- | --- | --- | --- |")
    for k, q in enumerate(ORDERS):
        cells = [f(np.array(gains[noise])[:, k]) for noise in (False, True) for f in (np.mean, np.min)]
        print(f"| {q} | " + " | ".join(f"{cell:+.1f}" for cell in cells) + " |")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
