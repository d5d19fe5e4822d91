"""
Cows and dogs in four cues
==========================

Images of ten toy cows and ten toy dogs (ETH-80, Leibe and Schiele 2003): colour, two textures, outline. As in Fornoni
(2009, Figures 4.9 and 4.10), 70 % of 820 images are learned in one pass, and the others named by the mean hypothesis.
Images are divided, not objects: objects are on both sides. Where the file is not at hand, four views are made up.
"""

# %%
# Kernels once, for all learners
# ------------------------------
# χ² kernels for the histograms and a Gaussian one for the outline, over all images; learners look values up. Nothing is
# tuned: γ is one over the mean distance between the images.
import matplotlib.pyplot as plt
import numpy as np

from consilience import KernelPerceptron, MultiCueClassifier, OrthogonalPerceptron, Views
from consilience.datasets import fetch_eth80, make_views
from consilience.kernels import RBF, ChiSquared

kernels = {"colour": ChiSquared(), "dxdy": ChiSquared(), "maglap": ChiSquared(), "outline": RBF("mean_distance")}
try:
    found = fetch_eth80()
    two = np.flatnonzero(np.isin(found.target, ["cow", "dog"]))
    y, counts = found.target[two], {name: found.data[name][two] for name in ("colour", "dxdy", "maglap")}
    shares = {name: count / count.sum(axis=1, keepdims=True) for name, count in counts.items()}
    X = Views(shares, outline=found.masks[two].reshape(820, -1) / 255.0)
except FileNotFoundError:
    X, y = make_views(820, informative=4, noise=0, class_sep=1.2, view_noise=[0.1, 0.8, 0.8, 1.5], random_state=0)
    X = Views({name: np.exp(X[old]) for name, old in zip(kernels, X.names, strict=True)})
K = Views({name: kernel(X[name]) for name, kernel in kernels.items()}, precomputed=True)
powers, once = [1, 2, 3, 5, 10, 20], {"kernel": "precomputed", "epochs": 1, "shuffle": False, "average": True}
learners = {(name, 0): (KernelPerceptron(**once), [name]) for name in kernels}
for cues, own in (("four cues", list(kernels)), ("dxdy, outline", ["dxdy", "outline"])):
    learners.update({(f"OMMP, {cues}", p): (OrthogonalPerceptron(p=p, **once), own) for p in powers})
    learners[f"OMCL, {cues}", 0] = MultiCueClassifier(**once), own
errors = {key: np.zeros((5, 2)) for key in learners}
for draw in range(5):
    train, test = np.split(np.random.default_rng(draw).permutation(820), [574])
    for key, (model, own) in learners.items():
        model.fit(K[train][own], y[train])
        errors[key][draw] = 100 * model.n_mistakes_ / 574, 100 - 100 * model.score(K[test][own], y[test])

# %%
# Errors on the way and afterwards
# --------------------------------
# Means of five divisions. OMMP is the orthogonal matrix perceptron, OMCL the learner in two layers.
lines, colours = [":", "-.", "--", "-"] + ["-", "--"] * 2, ["#0072b2"] * 4 + ["black"] * 2 + ["#b35900"] * 2
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True, layout="constrained")
for part, (axis, title) in enumerate(zip(axes, ("Before an image is learned", "New images"), strict=True)):
    for name, line, colour in zip(dict.fromkeys(name for name, _ in learners), lines, colours, strict=True):
        means = [errors[name, p if (name, p) in errors else 0][:, part].mean() for p in powers]
        axis.semilogy(powers, means, ls=line, color=colour, marker="o" if "OMMP" in name else None, label=name)
    axis.set(xlabel="p", title=title, xticks=[1, 5, 10, 15, 20])
    axis.grid(color="0.9")
axes[0].set(ylabel="errors (%)", yticks=[1, 2, 5, 10, 20], yticklabels=["1", "2", "5", "10", "20"])
figure.legend(*axis.get_legend_handles_labels(), loc="outside right center")
plt.show()
