"""
Seven views, and which of them to trust
=======================================

A learner that counts every view alike counts the useless ones too. With ``view_weights="learned"`` the weights c of the
views are optimized together with the functions of the views, over all c of one length. The problem is not convex, but
the learner ends with a proof of how far its answer can be from the best one.

`make_views` knows the truth: three views carry the target, four have nothing to do with it.
"""

# %%
# Uniform, learned, and told
# --------------------------
# 150 training samples, 500 others for the score, drawn five times, at five values of γ_A. The third learner is told
# which views carry the target, and sees no others.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidge
from consilience.datasets import make_views

alphas = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]
shares, scores = [], np.zeros((3, len(alphas), 5))
for seed in range(5):
    X, y, truth = make_views(650, n_classes=None, informative=3, noise=4, random_state=seed, return_truth=True)
    signal = list(truth.informative_views)
    for k, alpha in enumerate(alphas):
        uniform, told = CoRegularizedRidge(alpha=alpha), CoRegularizedRidge(alpha=alpha)
        learned = CoRegularizedRidge(alpha=alpha, view_weights="learned")
        for j, (model, data) in enumerate([(told, X[signal]), (learned, X), (uniform, X)]):
            scores[j, k, seed] = model.fit(data[:150], y[:150]).score(data[150:], y[150:])
        if alpha == 1e-3:
            shares.append(learned.view_weights_**2 / np.sum(learned.view_weights_**2))
print(learned.certificate())

# %%
# What was learned
# ----------------
# Left: the share of each view at γ_A = 0.001; a dot is a draw, a bar the mean. Right: means over the draws.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
colours = ["#0072b2" if name in signal else "white" for name in X.names]
left.bar(X.names, np.mean(shares, axis=0), color=colours, edgecolor="black")
left.plot(np.array(shares).T, "o", color="black", ms=4)
left.axhline(1 / 7, color="black", ls="--", lw=1)
left.text(6.4, 1 / 7 + 0.01, "uniform", ha="right")
left.set(ylabel="share of the weight, c² / ‖c‖²", title="Three views with signal, four without")
left.tick_params(axis="x", rotation=40)
styles = {"told which": ("^:", "0.45"), "learned": ("o-", "#0072b2"), "uniform": ("s--", "#b35900")}
for (name, (style, colour)), means in zip(styles.items(), scores.mean(axis=2), strict=True):
    right.semilogx(alphas, means, style, color=colour, ms=7, label=name)
right.set(xlabel="γ_A (alpha)", ylabel="R² on new samples", ylim=(0, 1), title="Weights of the views")
right.grid(color="0.9")
right.legend()
plt.show()
