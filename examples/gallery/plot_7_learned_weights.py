"""
Seven views, and which of them to trust
=======================================

A learner that counts every view alike counts the useless ones too. With ``view_weights="learned"`` the weights c of the
views are optimized together with the functions of the views, over all c of one length. The problem is not convex, but
the learner ends with a proof of how far its answer can be from the best one.

`make_views` knows the truth: three views carry the classes, four are drawn alike but for classes of their own.
"""

# %%
# Uniform and learned weights
# ---------------------------
# 120 training samples, 2000 others for the score, drawn ten times. The best that any rule can do is known too: Φ(s √3),
# with s = class_sep / √(1 + view_noise²).
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from consilience import CoRegularizedRidgeClassifier
from consilience.datasets import make_views

uniform, learned = (
    CoRegularizedRidgeClassifier(alpha=1e-2),
    CoRegularizedRidgeClassifier(alpha=1e-2, view_weights="learned"),
)
weights, scores = [], []
for seed in range(10):
    X, y, truth = make_views(2120, informative=3, noise=4, class_sep=0.8, random_state=seed, return_truth=True)
    train, test, signal = slice(0, 120), slice(120, None), list(truth.informative_views)
    learned.fit(X[train], y[train])
    weights.append(learned.view_weights_**2 / np.sum(learned.view_weights_**2))
    told = uniform.fit(X[train][signal], y[train]).score(X[test][signal], y[test])
    scores.append([uniform.fit(X[train], y[train]).score(X[test], y[test]), learned.score(X[test], y[test]), told])
print(learned.certificate())

# %%
# What was learned
# ----------------
# Left: the share of each view, c² over its sum; a dot is a draw, a bar the mean. Right: the accuracy of the ten draws,
# beside that of a learner which is told the three views.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=[1.3, 1])
colours = ["#0072b2" if name in signal else "0.75" for name in X.names]
left.bar(X.names, np.mean(weights, axis=0), color=colours, edgecolor="black")
left.plot(np.array(weights).T, "o", color="black", ms=3)
left.axhline(1 / 7, color="black", ls="--", lw=1)
left.text(6.4, 1 / 7 + 0.005, "uniform", ha="right")
left.set(ylabel="share of the weight, c² / ‖c‖²", title="Views that carry the classes (blue) and noise")
left.tick_params(axis="x", rotation=40)
right.boxplot(np.array(scores), tick_labels=["uniform", "learned", "told"], medianprops={"color": "#b35900", "lw": 2})
right.axhline(norm.cdf(0.8 / np.sqrt(1.09) * np.sqrt(3)), color="black", ls=":")
right.set(ylabel="accuracy on new samples (dotted: best possible)", title="Ten draws")
plt.show()
