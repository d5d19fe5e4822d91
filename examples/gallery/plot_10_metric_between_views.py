"""
A metric between views
======================

One view is the other, sheared and rotated. A line separates the classes in each view, but each view needs another line.
To separate the points of both views in one space, an estimator must learn how the views are related.

The data follow Figure 1 of Huusari, Kadri and Capponi (2018). Every row has only one of its two views, in turn, so that
each view must predict alone. All kernels are linear.
"""

# %%
# Three estimators
# ----------------
# Multiple kernel learning weights the views: its space has the points √dᵥ xᵥ. Output kernel learning has a kernel
# between the two ±1 codes of the classes and equal weights: √ℓ wᵥ xᵥ, with ℓ the eigenvalue of that kernel.
# ``metric_.transform`` returns the coordinates of a learned metric. It has rank one, so the space is a line.
import matplotlib.pyplot as plt
import numpy as np

from consilience import MultipleKernelRidgeClassifier, OutputKernelRidge, ViewMetricRidgeClassifier, Views
from consilience.datasets import make_sheared_views

X, y = make_sheared_views(200, random_state=0)
shown = Views(X, mask=np.arange(200)[:, None] % 2 == np.arange(2))
weights = MultipleKernelRidgeClassifier("linear", alpha=100.0).fit(shown, y).kernel_weights_
outputs = OutputKernelRidge("linear", alpha=100.0).fit(shown, np.where(y[:, None] == [0, 1], 1.0, -1.0))
metric = ViewMetricRidgeClassifier("linear", alpha=100.0).fit(shown, y).metric_
scale = np.sqrt(np.linalg.eigvalsh(outputs.output_kernel_)[-1]) * outputs.view_weights_
line = metric.transform(X)
spaces = {
    "the views": [X[name] for name in X.names],
    "multiple kernels": [np.sqrt(d) * X[name] for d, name in zip(weights, X.names, strict=True)],
    "output kernel": [w * X[name] for w, name in zip(scale, X.names, strict=True)],
    "metric between views": [np.c_[line[name], np.zeros(200)] for name in X.names],
}

# %%
# One line for both views
# -----------------------
# The dashed line through the origin is the best one for the points of both views together; the title shows its
# accuracy. Full markers are one class, open ones the other. In the last plot the vertical positions are random.
angles = np.linspace(0, 2 * np.pi, 720, endpoint=False)
normals, rng = np.stack([np.cos(angles), np.sin(angles)]), np.random.default_rng(0)
figure, axes = plt.subplots(2, 2, figsize=(8, 7.5), layout="constrained")
for axis, (title, points) in zip(axes.flat, spaces.items(), strict=True):
    right = ((np.vstack(points) @ normals > 0) == np.tile(y, 2)[:, None]).mean(axis=0)
    for own, marker, color, name in zip(points, "o^", ("#0072b2", "#b35900"), X.names, strict=True):
        own = own if own[:, 1].any() else own + rng.uniform(-1, 1, size=(200, 1)) * [0, 1]
        axis.scatter(*own[y == 1].T, s=22, marker=marker, color=color, label=name)
        axis.scatter(*own[y == 0].T, s=22, marker=marker, facecolor="white", edgecolor=color)
    along = normals[:, right == right.max()].mean(axis=1)
    axis.axline((0, 0), (-along[1], along[0]), color="black", ls="--", lw=1)
    axis.set(title=f"{title}: {right.max():.2f}", xlabel="first coordinate", ylabel="second coordinate")
axes[1, 1].set(ylabel="", yticks=[])
axes[0, 0].legend()
plt.show()
