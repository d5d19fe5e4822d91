"""
Missing views
=============

In practice whole views are missing: a sensor was off, a test was not made. Mark them by a row of NaN or by a mask;
every estimator accepts such rows. Co-regularized estimators leave a missing view out of the terms of its row and rescale
the weights of the others. Late fusion averages the present views. Early fusion fills columns with the training means.

A common alternative is to drop rows with missing views. With four views few complete rows remain.
"""

# %%
# The data and the estimators
# ---------------------------
# We remove views of samples at random from four views of handwritten digits, for training and test. Every sample keeps
# at least one view.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from consilience import CoRegularizedRidgeClassifier, EarlyFusion, LateFusion, PerView, Views
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
ridge = CoRegularizedRidgeClassifier(alpha=1e-4)
estimators = {
    "co-regularized": (ridge, {"fmt": "o-", "color": "black"}),
    "late fusion": (LateFusion(LogisticRegression()), {"fmt": "^--", "color": "#0072b2"}),
    "early fusion": (EarlyFusion(LogisticRegression()), {"fmt": "s-.", "color": "#b35900", "mfc": "white"}),
    "co-regularized, complete rows only": (ridge, {"fmt": "D:", "color": "0.5", "mfc": "white"}),
}
shares, seeds = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75]), range(5)


def accuracy(name, share, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:1000]
    kept = np.arange(len(rows))[:, None] % 4 == np.arange(4)  # one view of each sample, in turn
    present = np.ones_like(kept)
    present.flat[rng.choice(np.flatnonzero(~kept), round(share * kept.size), replace=False)] = False
    part = Views(X[rows], mask=present)
    train = np.flatnonzero(present[:400].all(axis=1)) if "complete" in name else np.arange(400)
    if len(train) < 10:
        return np.nan
    model = make_pipeline(PerView(StandardScaler()), estimators[name][0]).fit(part[train], y[rows[train]])
    return model.score(part[400:], y[rows[400:]])


# %%
# Accuracy against the share of missing views
# -------------------------------------------
# 400 training and 600 test digits, drawn five times; the bars are one standard deviation. On the right each sample has
# only one view. From 60% on there are too few complete rows.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (_, style) in estimators.items():
    scores = np.array([[accuracy(name, share, seed) for seed in seeds] for share in shares])
    axis.errorbar(100 * shares, scores.mean(axis=1), scores.std(axis=1), capsize=4, ms=7, label=name, **style)
axis.set(xlabel="missing views (%)", ylabel="accuracy on new digits", title="Four views of digits, some missing")
axis.grid(color="0.9")
axis.legend()
plt.show()
