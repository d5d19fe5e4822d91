"""
Learn the weights of seven views
================================

Equal weights give useless views the same influence as useful ones. With ``view_weights="learned"`` the weights of the
views are optimized together with the functions, over all weights of a fixed length. The problem is not convex, but a
certificate bounds the distance from the global optimum.

The truth is known here: three views carry the target, four are noise.
"""

# %%
# Uniform, learned and known
# --------------------------
# 150 training samples, 500 others for the score, drawn five times, at five values of `alpha`. The third model uses only
# the views that carry the target.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidge
from consilience.datasets import make_regression_views

alphas = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]
shares, scores = [], np.zeros((3, len(alphas), 5))
for seed in range(5):
    X, y, truth = make_regression_views(650, informative=3, noise=4, random_state=seed, return_truth=True)
    signal = list(truth.informative_views)
    for k, alpha in enumerate(alphas):
        uniform, known = CoRegularizedRidge(alpha=alpha), CoRegularizedRidge(alpha=alpha)
        learned = CoRegularizedRidge(alpha=alpha, view_weights="learned")
        for j, (model, data) in enumerate([(known, X[signal]), (learned, X), (uniform, X)]):
            scores[j, k, seed] = model.fit(data[:150], y[:150]).score(data[150:], y[150:])
        if alpha == 1e-3:
            shares.append(learned.view_weights_**2 / np.sum(learned.view_weights_**2))
print(learned.certificate())

# %%
# The learned weights
# -------------------
# Left: the share of each view at ``alpha=0.001``; a dot is a draw, a bar the mean. Right: means over the draws.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
colors = ["#0072b2" if name in signal else "white" for name in X.names]
left.bar(X.names, np.mean(shares, axis=0), color=colors, edgecolor="black")
left.plot(np.array(shares).T, "o", color="black", ms=4)
left.axhline(1 / 7, color="black", ls="--", lw=1)
left.text(6.4, 1 / 7 + 0.01, "uniform", ha="right")
left.set(ylabel="share of the squared weights", title="Noise views get little weight")
left.tick_params(axis="x", rotation=40)
styles = {"known": ("^:", "0.45"), "learned": ("o-", "#0072b2"), "uniform": ("s--", "#b35900")}
for (name, (style, color)), means in zip(styles.items(), scores.mean(axis=2), strict=True):
    right.semilogx(alphas, means, style, color=color, ms=7, label=name)
right.set(xlabel="alpha", ylabel="R² on new samples", ylim=(0, 1), title="Learned weights help")
right.grid(color="0.9")
right.legend()
plt.show()
