"""
Metrics from few landmarks
==========================

With `n_components` a metric is learned over Nyström features: all views share the landmark samples, and the metric is a
small matrix. Figure 2 of Huusari, Kadri and Capponi (2018) shows how much few landmarks cost. Here two views carry the
target and four are noise.
"""

# %%
# Three metrics
# -------------
# 120 training samples, 500 others for the score, drawn three times. `alpha` is chosen at each level by leave-one-out on
# the training samples.
import matplotlib.pyplot as plt
import numpy as np

from consilience import ViewMetricRidgeCV
from consilience.datasets import make_regression_views

levels, draws = [0.02, 0.04, 0.08, 0.16, 0.32, 0.64], range(3)
data = [make_regression_views(620, informative=2, noise=4, random_state=draw) for draw in draws]


def error(metric, level, draw):
    X, y = data[draw]
    model = ViewMetricRidgeCV(metric=metric, alphas=np.logspace(-3, 1, 5), n_components=level, random_state=draw)
    return 1 - model.fit(X[:120], y[:120]).score(X[120:], y[120:])


# %%
# Error against the level
# -----------------------
# Means of three draws; the bars are one standard deviation. "diagonal" is ridge regression with the sum of the kernels.
# A block-sparse metric gives noise little weight, which helps more with more landmarks.
styles = {"diagonal": ("^:", "#b35900"), "learned": ("o-", "black"), "block_sparse": ("s--", "#0072b2")}
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for place, (metric, (style, color)) in enumerate(styles.items()):
    errors = np.array([[error(metric, level, draw) for draw in draws] for level in levels])
    shifted = np.array(levels) * 1.04 ** (place - 1)  # so that bars do not hide each other
    axis.errorbar(
        shifted, errors.mean(axis=1), errors.std(axis=1), fmt=style, color=color, capsize=4, ms=7, label=metric
    )
axis.set_xscale("log")
axis.set_xticks(levels, [f"{100 * level:.0f}%" for level in levels])
axis.set_xticks([], minor=True)
axis.set(xlabel="landmarks, as a share of the samples (n_components)", ylabel="1 - R² on new samples", ylim=(0, None))
axis.set_title("Six views, four of them noise")
axis.grid(color="0.9")
axis.legend(title="metric")
plt.show()
