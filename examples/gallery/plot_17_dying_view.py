"""
A stream that loses a view
==========================

Six words arrive one after the other, in audio and video. Each word is predicted before it is learned, so every mistake
is on an unseen sample. After half of the stream the video is missing.

- `OrthogonalPerceptron` has one vector per view and one decision (Fornoni 2009).
- `MultiCueClassifier` has an estimator per view and one on top (Jie, Orabona and Caputo 2009).
- `KernelPerceptron` on one view is the baseline.
"""

# %%
# The streams
# -----------
# `make_views` gives each view its own part of the signal. Four streams of 4,000 words. γ of the Gaussian kernel is one
# over the number of columns, the rule for streams.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from consilience import KernelPerceptron, MultiCueClassifier, OrthogonalPerceptron, Views
from consilience.datasets import make_views

n, lost, window, draws = 4000, 2000, 250, 4
estimators = {
    "orthogonal, p = 2": (OrthogonalPerceptron("rbf", p=2), "o-", "black"),
    "orthogonal, passive-aggressive": (OrthogonalPerceptron("rbf", p=2, variant="passive-aggressive"), "^--", "black"),
    "multi-cue": (MultiCueClassifier("rbf", threshold=0.3), "s-", "#b35900"),
    "audio alone": (KernelPerceptron("rbf"), ":", "#0072b2"),
    "video alone": (KernelPerceptron("rbf"), "-.", "#0072b2"),
}
ticks = np.arange(0, n + 1, window)
errors = {name: np.full((draws, n // window), np.nan) for name in estimators}
for draw in range(draws):
    X, y = make_views(n, n_classes=6, n_features=[12, 20], noise=0, class_sep=2.0, view_noise=0.5, random_state=draw)
    X = Views(audio=X["informative0"], video=X["informative1"])
    for name, (estimator, *_) in estimators.items():
        own = [name.split()[0]] if "alone" in name else ["audio", "video"]
        model = clone(estimator).partial_fit(X[:lost][own], y[:lost])
        if "audio" in own:
            model.partial_fit(X[lost:][["audio"]], y[lost:])
        seen, share = np.vstack([[0, 0], model.error_curve_]).T
        upto = ticks[ticks <= model.n_samples_seen_]
        errors[name][draw, : len(upto) - 1] = np.diff(np.interp(upto, seen, seen * share)) / window

# %%
# Error over time
# ---------------
# The error rate in each window of 250 words, mean of the four streams.
figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, (_, line, color) in estimators.items():
    axis.plot(ticks[1:] - window / 2, 100 * errors[name].mean(axis=0), line, color=color, ms=5, label=name)
axis.axvline(lost, color="0.5", lw=1)
axis.text(lost + 40, 31, "no more video")
axis.set(
    xlabel="words seen",
    ylabel="error rate in the window (%)",
    ylim=(0, 33),
    title="Fusion continues when the video is lost",
)
axis.grid(color="0.9")
axis.legend()
plt.show()
