"""
Learn the weights of seven views
================================

Equal weights give useless views the same influence as useful ones. Multiple kernel learning uses the kernel Σ dᵥ kᵥ and
learns the weights together with the function, under ‖d‖ₚ ≤ 1 (Kloft, Brefeld, Sonnenburg and Zien 2011). With p = 1 it
selects views, p = ∞ gives equal weights, and values between them control how much the weights differ.

The truth is known here: three views carry the target, four are noise.
"""

# %%
# One estimator, many p
# ---------------------
# 120 training samples, 500 others for the score, drawn five times. "Known" uses only the views that carry the target.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidge, MultipleKernelRidge
from consilience.datasets import make_regression_views

exponents, alphas = [1, 1.05, 1.1, 1.25, 1.5, 2, 3, 6, np.inf], np.logspace(-2, 2, 9)
weights, scores = np.zeros((5, len(exponents), 7)), {"known": [], "p = 1": [], "p = 2": [], "p = ∞": []}
for draw in range(5):
    X, y, truth = make_regression_views(620, informative=3, noise=4, random_state=draw, return_truth=True)
    for k, p in enumerate(exponents):
        model = MultipleKernelRidge(p=p, alpha=1.0).fit(X[:120], y[:120])
        weights[draw, k] = model.kernel_weights_ / model.kernel_weights_.max()
    known = X[list(truth.informative_views)]
    for own, data, p in zip(scores.values(), (known, X, X, X), (np.inf, 1, 2, np.inf), strict=True):
        models = [MultipleKernelRidge(p=p, alpha=alpha).fit(data[:120], y[:120]) for alpha in alphas]
        own.append([model.score(data[120:], y[120:]) for model in models])

# %%
# The weights are the squares of those that a co-regularized estimator learns with ``weights_order=2 * p``, here for
# p = 1. The certificate of either estimator bounds the distance from the global optimum.
squares = CoRegularizedRidge(view_weights="learned", weights_norm=1, weights_order=2, alpha=1 / 120)
squares.fit(X[:120], y[:120])
print((squares.view_weights_**2 / np.max(squares.view_weights_**2)).round(2), weights[-1, 0].round(2), sep="\n")
print(squares.certificate())

# %%
# Effect of p
# -----------
# Left: means of the weights at ``alpha=1``, each draw divided by its largest. Right: mean score on new samples.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for place, (name, own) in enumerate(zip(X.names, weights.mean(axis=0).T, strict=True)):
    signal = name in truth.informative_views
    style = {"color": "#0072b2", "marker": "os^"[place % 3]} if signal else {"color": "0.45", "ls": "--"}
    left.plot(own, label=name if signal else ("noise" if name == "noise0" else None), **style)
left.set_xticks(range(len(exponents)), [*map(str, exponents[:-1]), "∞"])
left.set(xlabel="p", ylabel="weight, relative to the largest", ylim=(-0.03, 1.05), title="Weights of seven kernels")
for (name, own), style in zip(scores.items(), ("^:", "o-", "D-.", "s--"), strict=True):
    color = {"known": "0.45", "p = ∞": "#b35900", "p = 2": "black"}.get(name, "#0072b2")
    right.semilogx(alphas, np.mean(own, axis=0), style, color=color, ms=6, label=name)
right.set(xlabel="alpha", ylabel="R² on new samples", ylim=(0, 1), title="Learned weights help")
for axis in (left, right):
    axis.grid(color="0.9")
    axis.legend()
plt.show()
