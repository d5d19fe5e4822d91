"""
Keep rows with missing views
============================

If views are missing in some rows, a common way is to drop those rows. With four views few complete rows remain. The
co-regularized estimators use every row: a missing view drops out of the terms of its row, and the weights of the others
are rescaled.

We remove views of samples at random from handwritten digits, for training and test, and compare a fit on all rows with
a fit on the complete rows.
"""

# %%
# One estimator, two training sets
# --------------------------------
# 300 training rows. Both fits predict the same 700 test rows with missing views.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidgeClassifier, Views
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
estimator = CoRegularizedRidgeClassifier(alpha=1e-4)
shares, seeds = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), range(5)


def run(share, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:1000]
    kept = np.arange(1000)[:, None] % 4 == np.arange(4)  # one view of each sample, in turn
    present = np.ones_like(kept)
    present.flat[rng.choice(np.flatnonzero(~kept), round(share * kept.size), replace=False)] = False
    part, labels = Views(X[rows], mask=present), y[rows]
    complete = np.flatnonzero(present[:300].all(axis=1))
    every = estimator.fit(part[:300], labels[:300]).score(part[300:], labels[300:])
    return every, estimator.fit(part[complete], labels[complete]).score(part[300:], labels[300:]), len(complete)


results = np.array([[run(share, seed) for seed in seeds] for share in shares])

# %%
# Accuracy against the share of missing views
# -------------------------------------------
# Means of five draws; the bars are one standard deviation. The numbers count the complete rows among 300.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.errorbar(100 * shares, results[:, :, 0].mean(1), results[:, :, 0].std(1), fmt="o-", color="black", capsize=4, ms=7)
dropped = {"fmt": "s--", "color": "#b35900", "mfc": "white", "capsize": 4, "ms": 7}
axis.errorbar(100 * shares, results[:, :, 1].mean(1), results[:, :, 1].std(1), **dropped)
for share, mean, count in zip(shares, results[:, :, 1].mean(1), results[:, :, 2].mean(1), strict=True):
    axis.annotate(f"{count:.0f}", (100 * share, mean), (-8, -16), textcoords="offset points", ha="right")
axis.set(xlabel="missing views (%)", ylabel="accuracy on new digits", title="Four views of digits, some missing")
axis.margins(x=0.08)
axis.legend(["all rows", "complete rows only"], loc="lower left")
axis.grid(color="0.9")
plt.show()
