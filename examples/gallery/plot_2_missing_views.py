"""
Missing views
=============

In practice whole views are missing: a sensor was off, a test was not made. Mark them by a row of NaN or by a mask;
every estimator accepts such rows. Late fusion averages the views that are present. Early fusion fills the columns of a
missing view with the training means.

We remove views of samples at random from four views of handwritten digits, for training and test. Every sample keeps at
least one view.
"""

# %%
# The data and the estimators
# ---------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from consilience import EarlyFusion, LateFusion, PerView, Views
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
fusions = {"late fusion": LateFusion(LogisticRegression()), "early fusion": EarlyFusion(LogisticRegression())}
shares, seeds = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75]), range(5)


def accuracy(fusion, share, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:1000]
    kept = np.arange(len(rows))[:, None] % 4 == np.arange(4)  # one view of each sample, in turn
    present = np.ones_like(kept)
    present.flat[rng.choice(np.flatnonzero(~kept), round(share * kept.size), replace=False)] = False
    part = Views(X[rows], mask=present)
    model = make_pipeline(PerView(StandardScaler()), fusion).fit(part[:400], y[rows[:400]])
    return model.score(part[400:], y[rows[400:]])


# %%
# Accuracy against the share of missing views
# -------------------------------------------
# 400 training and 600 test digits, drawn five times; the bars are one standard deviation. On the right each sample has
# only one view.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
styles = [{"fmt": "o-", "color": "black"}, {"fmt": "s--", "color": "#b35900", "mfc": "white"}]
for (name, fusion), style in zip(fusions.items(), styles, strict=True):
    scores = np.array([[accuracy(fusion, share, seed) for seed in seeds] for share in shares])
    axis.errorbar(100 * shares, scores.mean(axis=1), scores.std(axis=1), capsize=4, ms=7, label=name, **style)
axis.set(xlabel="missing views (%)", ylabel="accuracy on new digits", title="Four views of digits, some missing")
axis.grid(color="0.9")
axis.legend()
plt.show()
