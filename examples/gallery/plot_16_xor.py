"""
Exclusive or with four kernels
==============================

The class is whether two numbers have the same sign. No line separates the classes, so the perceptron of Rosenblatt
(1958) never stops making mistakes. With a nonlinear kernel the same updates suffice (Aizerman, Braverman and Rozonoer
1964).

`KernelPerceptron` keeps only the samples on which it was wrong.
"""

# %%
# One estimator, four kernels
# ---------------------------
# 200 training points, at most twenty passes; a pass without a mistake is the last. Predictions use the mean of all
# hypotheses. The score is on 2,000 other points.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from consilience import KernelPerceptron
from consilience.kernels import RBF, Laplacian, Linear, Polynomial

rng = np.random.default_rng(0)
X = rng.choice([-1.0, 1.0], size=(2200, 2)) + rng.normal(scale=0.4, size=(2200, 2))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
kernels = {
    "linear": Linear(),
    "polynomial, degree 2": Polynomial(2),
    "Gaussian": RBF(gamma=1.0),
    "Laplacian": Laplacian(gamma=1.0),
}
models = {
    name: KernelPerceptron(kernel, average=True, max_iter=20, random_state=0).fit(X[:200], y[:200])
    for name, kernel in kernels.items()
}
for name, model in models.items():
    print(f"{name}: {model.n_mistakes_} mistakes, {len(model.support_)} support vectors")

# %%
# Regions of the classes
# ----------------------
# Shaded: the region of the second class. Rings are the support vectors. With the linear kernel all samples are support
# vectors.
figure, axes = plt.subplots(2, 2, figsize=(7.5, 7.2), sharex=True, sharey=True, layout="constrained")
side = np.linspace(-2.5, 2.5, 201)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
for axis, (name, model) in zip(axes.flat, models.items(), strict=True):
    scores = model.decision_function(grid).reshape(201, 201)
    axis.contourf(side, side, scores > 0, levels=[-0.5, 0.5, 1.5], cmap=ListedColormap(["white", "0.87"]))
    axis.contour(side, side, scores, levels=[0], colors="black", linewidths=1)
    for label, color, marker in ((0, "#b35900", "s"), (1, "#0072b2", "o")):
        own = X[:200][y[:200] == label]
        axis.scatter(*own.T, s=14, c=color, marker=marker, linewidths=0)
    axis.scatter(*X[model.support_].T, s=70, facecolors="none", edgecolors="black", linewidths=0.7)
    axis.set_title(f"{name}: {100 * model.score(X[200:], y[200:]):.1f}% correct")
    axis.set_aspect("equal")
figure.supxlabel("first number")
figure.supylabel("second number")
plt.show()
