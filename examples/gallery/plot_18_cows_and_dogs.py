"""
Cows and dogs in four views
===========================

The orthogonal perceptron (OMMP) has one vector per view. With p = 1 it is the perceptron; a larger p gives more weight
to views whose updates point in the same direction. How does p change its errors?

The data are images of ten toy cows and ten toy dogs (ETH-80, Leibe and Schiele 2003): color, two textures, outline. As
in Fornoni (2009, Figures 4.9 and 4.10), one pass learns 70% of 820 images, and the averaged model predicts the others.
Images are divided, not objects, so objects are on both sides. If the file is not available, four views are synthetic.
"""

# %%
# Kernels for all estimators
# --------------------------
# χ² kernels for the histograms and a Gaussian one for the outline, computed once over all images. γ is one over the
# mean distance between images, without tuning.
import matplotlib.pyplot as plt
import numpy as np

from consilience import KernelPerceptron, MultiCueClassifier, OrthogonalPerceptron, Views
from consilience.datasets import fetch_eth80, make_views
from consilience.kernels import RBF, ChiSquared

kernels = {"colour": ChiSquared(), "dxdy": ChiSquared(), "maglap": ChiSquared(), "outline": RBF("mean_distance")}
try:
    bunch = fetch_eth80()
    two = np.flatnonzero(np.isin(bunch.target, ["cow", "dog"]))
    y, counts = bunch.target[two], {name: bunch.data[name][two] for name in ("colour", "dxdy", "maglap")}
    shares = {name: count / count.sum(axis=1, keepdims=True) for name, count in counts.items()}
    X = Views(shares, outline=bunch.masks[two].reshape(820, -1) / 255.0)
except FileNotFoundError:
    X, y = make_views(820, informative=4, noise=0, class_sep=1.2, view_noise=[0.1, 0.8, 0.8, 1.5], random_state=0)
    X = Views({name: np.exp(X[old]) for name, old in zip(kernels, X.names, strict=True)})
K = Views({name: kernel(X[name]) for name, kernel in kernels.items()}, precomputed=True)
powers, once = [1, 2, 3, 5, 10, 20], {"kernel": "precomputed", "max_iter": 1, "shuffle": False, "average": True}
estimators = {(name, 0): (KernelPerceptron(**once), [name]) for name in kernels}
for views, own in (("four views", list(kernels)), ("dxdy, outline", ["dxdy", "outline"])):
    estimators.update({(f"OMMP, {views}", p): (OrthogonalPerceptron(p=p, **once), own) for p in powers})
    estimators[f"OMCL, {views}", 0] = MultiCueClassifier(**once), own
errors = {key: np.zeros((5, 2)) for key in estimators}
for draw in range(5):
    train, test = np.split(np.random.default_rng(draw).permutation(820), [574])
    for key, (model, own) in estimators.items():
        model.fit(K[train][own], y[train])
        errors[key][draw] = 100 * model.n_mistakes_ / 574, 100 - 100 * model.score(K[test][own], y[test])

# %%
# Errors during and after learning
# --------------------------------
# Means of five divisions. OMCL is the multi-cue classifier.
lines, colors = [":", "-.", "--", "-"] + ["-", "--"] * 2, ["#0072b2"] * 4 + ["black"] * 2 + ["#b35900"] * 2
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True, layout="constrained")
for part, (axis, title) in enumerate(zip(axes, ("Images before they are learned", "New images"), strict=True)):
    for name, line, color in zip(dict.fromkeys(name for name, _ in estimators), lines, colors, strict=True):
        means = [errors[name, p if (name, p) in errors else 0][:, part].mean() for p in powers]
        axis.semilogy(powers, means, ls=line, color=color, marker="o" if "OMMP" in name else None, label=name)
    axis.set(xlabel="p", title=title, xticks=[1, 5, 10, 15, 20])
    axis.grid(color="0.9")
axes[0].set(ylabel="errors (%)", yticks=[1, 2, 5, 10, 20], yticklabels=["1", "2", "5", "10", "20"])
figure.legend(*axis.get_legend_handles_labels(), loc="outside right center")
plt.show()
