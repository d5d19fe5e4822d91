"""
Few labels, many rows without
=============================

Labels are dear, rows are cheap. `CoRegularizedRidgeClassifier` learns from rows without a label too: its answers shall
be smooth along a graph of near neighbours in each view (`graph_penalty`), and the views shall agree (`agreement_penalty`). Both terms
look at all rows.

We take 500 handwritten digits in four views, of which one to twenty per class are labeled, and score on 600 others.
"""

# %%
# The learners
# ------------
# A missing label is NaN. Without `agreement_penalty` and `graph_penalty` the rows without a label take no part; that is the learner we
# compare with.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidgeClassifier
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
learners = {
    "all 500 rows": CoRegularizedRidgeClassifier(alpha=1e-4, graph_penalty=1e-4, agreement_penalty=1e-5, graph="knn"),
    "labeled rows only": CoRegularizedRidgeClassifier(alpha=1e-4),
}
counts, seeds = [1, 2, 5, 10, 20], range(5)


def accuracy(learner, count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    train, test = rows[:500], rows[500:1100]
    half = np.full(500, np.nan)
    for digit in range(10):
        known = np.flatnonzero(y[train] == digit)[:count]
        half[known] = digit
    return learner.fit(X[train], half).score(X[test], y[test])


# %%
# Accuracy against the number of labels
# -------------------------------------
# Means of five draws; the bars are one standard deviation. The penalties are the same everywhere. The fewer labels
# there are, the more the other rows are worth; with twenty per class they are worth nothing here.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
styles = [{"fmt": "o-", "color": "black"}, {"fmt": "s--", "color": "#b35900", "mfc": "white"}]
for (name, learner), style in zip(learners.items(), styles, strict=True):
    scores = np.array([[accuracy(learner, count, seed) for seed in seeds] for count in counts])
    axis.errorbar(counts, scores.mean(axis=1), scores.std(axis=1), capsize=4, ms=7, label=name, **style)
axis.set_xscale("log")
axis.set_xticks(counts, [str(count) for count in counts])
axis.set_xticks([], minor=True)
axis.set(xlabel="labels per class", ylabel="accuracy on new digits", title="Four views of digits, few labels")
axis.grid(color="0.9")
axis.legend(title="learned from", loc="lower right")
plt.show()
