"""
Weights of kernels, from sparse to uniform
==========================================

Multiple kernel learning uses the kernel Σ dᵥ kᵥ and learns the weights together with the function, under ‖d‖ₚ ≤ 1
(Kloft, Brefeld, Sonnenburg and Zien 2011). With p = 1 it selects views, p = ∞ gives equal weights, and values between
them control how much the weights differ.

The truth is known here: three views carry the target, four are noise.
"""

# %%
# One estimator, many p
# ---------------------
# 120 training samples, 500 others for the score, drawn five times. `alpha` is the same everywhere.
import matplotlib.pyplot as plt
import numpy as np

from consilience import MultipleKernelRidge
from consilience.datasets import make_regression_views

exponents = [1, 1.05, 1.1, 1.25, 1.5, 2, 3, 6, np.inf]
weights, scores = np.zeros((5, len(exponents), 7)), np.zeros((5, len(exponents)))
for draw in range(5):
    X, y, truth = make_regression_views(620, informative=3, noise=4, random_state=draw, return_truth=True)
    for k, p in enumerate(exponents):
        model = MultipleKernelRidge(p=p, alpha=1.0).fit(X[:120], y[:120])
        weights[draw, k] = model.kernel_weights_ / model.kernel_weights_.max()
        scores[draw, k] = model.score(X[120:], y[120:])
print(model.certificate())
for k in (0, 5, 8):
    print(f"p = {exponents[k]}: {np.count_nonzero(weights[0, k])} views in the first draw")

# %%
# Effect of p
# -----------
# Left: means of the weights, each draw divided by its largest. Right: mean score; the bars are one standard deviation.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for place, (name, own) in enumerate(zip(X.names, weights.mean(axis=0).T, strict=True)):
    signal = name in truth.informative_views
    style = {"color": "#0072b2", "marker": "os^"[place % 3]} if signal else {"color": "0.45", "ls": "--"}
    left.plot(own, label=name if signal else ("noise" if name == "noise0" else None), **style)
left.set(ylabel="weight, relative to the largest", ylim=(-0.03, 1.05), title="Weights of seven kernels")
left.legend()
right.errorbar(range(len(exponents)), scores.mean(axis=0), scores.std(axis=0), fmt="o-", color="black", capsize=4)
right.set(ylabel="R² on new samples", title="Score of the weighted sum")
for axis in (left, right):
    axis.set_xticks(range(len(exponents)), [*map(str, exponents[:-1]), "∞"])
    axis.set_xlabel("p")
    axis.grid(color="0.9")
plt.show()
