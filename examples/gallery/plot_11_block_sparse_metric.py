"""
Select views and pairs of views
===============================

A block-sparse metric has a penalty for each pair of views that it uses (Huusari, Kadri and Capponi 2018). A view that
does not reduce the loss enough is removed with all its pairs.

The truth is known here: three views carry the target, four are noise.
"""

# %%
# The path
# --------
# Predictions depend only on the product of the two penalties, so one number is varied. ``block_norms()`` returns the
# norm of the metric's block for each pair of views.
import matplotlib.pyplot as plt
import numpy as np

from consilience import ViewMetricRidge
from consilience.datasets import make_regression_views

X, y, truth = make_regression_views(500, informative=3, noise=4, random_state=0, return_truth=True)
penalties = np.logspace(-2, 2, 25)
path, scores = [], []
for penalty in penalties:
    model = ViewMetricRidge(metric="block_sparse", alpha=penalty).fit(X[:150], y[:150])
    path.append(model.metric_.block_norms())
    scores.append(model.score(X[150:], y[150:]))
shares = np.sqrt([norms.diagonal() / norms.trace() for norms in path])
sparse = next(k for k, own in enumerate(shares) if np.count_nonzero(own) == 3)
for place in (int(np.argmax(scores)), sparse):
    kept = [name for name, share in zip(X.names, shares[place], strict=True) if share]
    print(f"penalty {penalties[place]:.2g}: R² {scores[place]:.2f} with {', '.join(kept)}")

# %%
# The remaining metric
# --------------------
# Left: the blocks at the first penalty that leaves three views, the dotted line on the right. Right: the share of each
# view, √(‖A_vv‖ / Σ ‖A_ww‖). The score on 350 other samples is best at a smaller penalty, because a larger one also
# shrinks the signal.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", width_ratios=[1, 1.15])
image = left.imshow(path[sparse] / path[sparse].max(), cmap="Greys", vmin=0, vmax=1)
left.set_xticks(range(len(X.names)), X.names, rotation=50, ha="right")
left.set_yticks(range(len(X.names)), X.names)
left.set_title("Norm of each block of the metric")
figure.colorbar(image, ax=left, label="relative to the largest", shrink=0.8)
for place, (name, own) in enumerate(zip(X.names, shares.T, strict=True)):
    signal = name in truth.informative_views
    style = {"color": "#0072b2", "marker": "os^"[place % 3]} if signal else {"color": "0.45", "ls": "--", "lw": 1}
    right.semilogx(penalties, own, ms=5, label=name if signal else ("noise" if name == "noise0" else None), **style)
right.axvline(penalties[sparse], color="black", ls=":")
right.set(xlabel="alpha (metric_penalty = 1)", ylabel="share of a view", title="A larger penalty removes views")
right.grid(color="0.9")
right.legend()
plt.show()
