"""
When views are missing
======================

In practice whole views are absent: a sensor was off, a test was not made. A row of NaN in a view says so, or a mask,
and every learner takes such rows. Late fusion averages the views that are there. Early fusion needs a full row of
numbers, so it writes the training means into the columns of an absent view.

We take cells (a sample in a view) away at random from the four views of the handwritten digits, from training and test
samples alike. Every sample keeps at least one view.
"""

# %%
# The data and the learners
# -------------------------
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
# Accuracy against the share of absent cells
# ------------------------------------------
# 400 training and 600 test digits, drawn five times; the bars are one standard deviation. On the right end each sample
# has one view only.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
styles = [{"fmt": "o-", "color": "black"}, {"fmt": "s--", "color": "#b35900", "mfc": "white"}]
for (name, fusion), style in zip(fusions.items(), styles, strict=True):
    scores = np.array([[accuracy(fusion, share, seed) for seed in seeds] for share in shares])
    axis.errorbar(100 * shares, scores.mean(axis=1), scores.std(axis=1), capsize=4, ms=7, label=name, **style)
axis.set(xlabel="absent cells (%)", ylabel="accuracy on new digits", title="Four views of digits, some absent")
axis.grid(color="0.9")
axis.legend()
plt.show()
