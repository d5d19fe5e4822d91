"""
Few labels, many unlabeled rows
===============================

Labels are expensive; unlabeled rows are cheap. `CoRegularizedRidgeClassifier` learns from unlabeled rows too. With
`graph_penalty` its predictions are smooth along a graph of near neighbors in each view; with `agreement_penalty` the
views agree. Both terms use all rows.

We take 500 handwritten digits in four views, one to twenty labels per class, and score on 600 others.
"""

# %%
# The estimators
# --------------
# A missing label is NaN. Without `agreement_penalty` and `graph_penalty` the unlabeled rows have no effect; this is the
# baseline.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidgeClassifier
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
estimators = {
    "all 500 rows": CoRegularizedRidgeClassifier(alpha=1e-4, graph_penalty=1e-4, agreement_penalty=1e-5, graph="knn"),
    "labeled rows only": CoRegularizedRidgeClassifier(alpha=1e-4),
}
counts, seeds = [1, 2, 5, 10, 20], range(5)


def accuracy(estimator, count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    train, test = rows[:500], rows[500:1100]
    half = np.full(500, np.nan)
    for digit in range(10):
        known = np.flatnonzero(y[train] == digit)[:count]
        half[known] = digit
    return estimator.fit(X[train], half).score(X[test], y[test])


# %%
# Accuracy against the number of labels
# -------------------------------------
# Means of five draws; the bars are one standard deviation. The penalties are the same everywhere. The fewer labels
# there are, the more the unlabeled rows help. With twenty labels per class they do not help here.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
styles = [{"fmt": "o-", "color": "black"}, {"fmt": "s--", "color": "#b35900", "mfc": "white"}]
for (name, estimator), style in zip(estimators.items(), styles, strict=True):
    scores = np.array([[accuracy(estimator, count, seed) for seed in seeds] for count in counts])
    axis.errorbar(counts, scores.mean(axis=1), scores.std(axis=1), capsize=4, ms=7, label=name, **style)
axis.set_xscale("log")
axis.set_xticks(counts, [str(count) for count in counts])
axis.set_xticks([], minor=True)
axis.set(xlabel="labels per class", ylabel="accuracy on new digits", title="Four views of digits, few labels")
axis.grid(color="0.9")
axis.legend(title="learned from", loc="lower right")
plt.show()
