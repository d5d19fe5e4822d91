"""
A stream that loses a view
==========================

Six words come one after the other, heard and seen. Each is named before it is learned, so that every mistake is on a
sample that the learner did not know. Half-way the camera dies; the learners are told nothing, the view just stays away.

- `OrthogonalPerceptron` has one vector per view and one decision (Fornoni 2009).
- `MultiCueClassifier` has a learner per view and one on top of them (Jie, Orabona and Caputo 2009).
- `KernelPerceptron` on one view is what fusion must beat.
"""

# %%
# The streams
# -----------
# `make_views` gives each view a part of the signal of its own. Four streams of 4,000 words. γ of the Gaussian kernel is
# one over the number of columns, the rule for streams.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from consilience import KernelPerceptron, MultiCueClassifier, OrthogonalPerceptron, Views
from consilience.datasets import make_views

n, death, window, draws = 4000, 2000, 250, 4
learners = {
    "orthogonal, p = 2": (OrthogonalPerceptron("rbf", p=2), "o-", "black"),
    "orthogonal, aggressive": (OrthogonalPerceptron("rbf", p=2, aggressive=True), "^--", "black"),
    "multi-cue": (MultiCueClassifier("rbf", threshold=0.3), "s-", "#b35900"),
    "audio alone": (KernelPerceptron("rbf"), ":", "#0072b2"),
    "video alone": (KernelPerceptron("rbf"), "-.", "#0072b2"),
}
ticks = np.arange(0, n + 1, window)
errors = {name: np.full((draws, n // window), np.nan) for name in learners}
for draw in range(draws):
    X, y = make_views(n, n_classes=6, n_features=[12, 20], noise=0, class_sep=2.0, view_noise=0.5, random_state=draw)
    X = Views(audio=X["informative0"], video=X["informative1"])
    for name, (learner, *_) in learners.items():
        own = [name.split()[0]] if "alone" in name else ["audio", "video"]
        model = clone(learner).partial_fit(X[:death][own], y[:death])
        if "audio" in own:
            model.partial_fit(X[death:][["audio"]], y[death:])
        seen, share = np.vstack([[0, 0], model.error_curve_]).T
        upto = ticks[ticks <= model.n_samples_seen_]
        errors[name][draw, : len(upto) - 1] = np.diff(np.interp(upto, seen, seen * share)) / window

# %%
# What is lost
# ------------
# The share of mistakes in each window of 250 words, mean of the four streams.
figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, (_, line, colour) in learners.items():
    axis.plot(ticks[1:] - window / 2, 100 * errors[name].mean(axis=0), line, color=colour, ms=5, label=name)
axis.axvline(death, color="0.5", lw=1)
axis.text(death + 40, 31, "no more video")
axis.set(xlabel="words so far", ylabel="mistakes in the window (%)", ylim=(0, 33), title="Six words, heard and seen")
axis.grid(color="0.9")
axis.legend()
plt.show()
