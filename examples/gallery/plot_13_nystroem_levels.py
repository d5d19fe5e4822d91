"""
Metrics from few landmarks
==========================

With `n_components` a metric is learned over Nyström features: the same landmark samples in all views, and a small
matrix in the place of one with a row for every view and sample. How much is lost with few landmarks is what Figure 2 of
Huusari, Kadri and Capponi (2018) asks; here it is asked of data with two views that carry the target and four that do
not.
"""

# %%
# Three metrics
# -------------
# 120 samples to learn from, 500 others for the score, drawn three times. λ is chosen anew at each level, by
# leave-one-out on the training samples.
import matplotlib.pyplot as plt
import numpy as np

from consilience import ViewMetricRidgeCV
from consilience.datasets import make_views

levels, draws = [0.02, 0.04, 0.08, 0.16, 0.32, 0.64], range(3)
data = [make_views(620, n_classes=None, informative=2, noise=4, random_state=draw) for draw in draws]


def error(metric, level, draw):
    X, y = data[draw]
    model = ViewMetricRidgeCV(metric=metric, alphas=np.logspace(-3, 1, 5), n_components=level, random_state=draw)
    return 1 - model.fit(X[:120], y[:120]).score(X[120:], y[120:])


# %%
# Error against the level
# -----------------------
# Means of three draws; the bars are one standard deviation. "diagonal" is ridge regression with the sum of the views'
# kernels, where nothing is learned of the views. A block-sparse metric gives noise a small part or none, and that is
# worth more the more landmarks there are.
styles = {"diagonal": ("^:", "#b35900"), "learned": ("o-", "black"), "block_sparse": ("s--", "#0072b2")}
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for place, (metric, (style, colour)) in enumerate(styles.items()):
    errors = np.array([[error(metric, level, draw) for draw in draws] for level in levels])
    shifted = np.array(levels) * 1.04 ** (place - 1)  # so that bars do not hide each other
    axis.errorbar(
        shifted, errors.mean(axis=1), errors.std(axis=1), fmt=style, color=colour, capsize=4, ms=7, label=metric
    )
axis.set_xscale("log")
axis.set_xticks(levels, [f"{100 * level:.0f} %" for level in levels])
axis.set_xticks([], minor=True)
axis.set(xlabel="landmarks, as a share of the samples (n_components)", ylabel="1 - R² on new samples", ylim=(0, None))
axis.set_title("Six views, four of them noise")
axis.grid(color="0.9")
axis.legend(title="metric")
plt.show()
