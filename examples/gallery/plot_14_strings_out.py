"""
Predict strings
===============

`MaxMarginRegressor` predicts anything that has a kernel. Here the targets are number words such as "forty two". A
string kernel between them counts common substrings of four letters, so that "forty two" is similar to "forty six" and
to "ninety two".

The estimator ranks candidates. It can predict a candidate that was not in the training set.
"""

# %%
# Noisy measurements of words
# ---------------------------
# Each word is measured in two views of six numbers: the first depends on the tens, the second on the ones. About 60% of
# 72 words are in the training set, ten times each.
import matplotlib.pyplot as plt
import numpy as np

from consilience import MaxMarginRegressor, Views
from consilience.kernels import Spectrum, center, normalize

tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
words = np.array([[f"{ten} {one}" for one in ones] for ten in tens])
rng = np.random.default_rng(0)
seen = rng.random(words.shape) < 0.6
of_tens, of_ones = rng.normal(size=(8, 6)), rng.normal(size=(9, 6))


def measure(which, times=10):
    i, j = np.repeat(np.argwhere(which), times, axis=0).T
    noise = 0.6 * rng.normal(size=(2, len(i), 6))
    return Views(tens=of_tens[i] + noise[0], ones=of_ones[j] + noise[1]), words[i, j]


kernel = normalize(center(Spectrum(4)))  # mean 0 and length 1
model = MaxMarginRegressor(output_kernel=kernel, candidates=words.ravel()).fit(*measure(seen))
for name, which in (("words seen in training", seen), ("words never seen", ~seen)):
    X, truth = measure(which)
    firsts = [[word for word, _ in ranked] for ranked in model.rank(X, top=3)]
    three = np.mean([word in best for word, best in zip(truth, firsts, strict=True)])
    print(f"{name}: accuracy {model.score(X, truth):.2f}, among the first three {three:.2f}, by chance {1 / 72:.2f}")

# %%
# The scores of one measurement
# -----------------------------
# The square is the correct word, which is not in the training set; dots are the words that are.
which = np.zeros_like(seen)
which[tuple(np.argwhere(~seen)[7])] = True
scores = model.candidate_scores(measure(which, 1)[0]).reshape(words.shape)
figure, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
image = axis.imshow(scores, cmap="Greys")
axis.plot(*np.argwhere(seen).T[::-1], "o", color="#0072b2", mec="white", ms=8)
axis.plot(*np.argwhere(which).T[::-1], "s", mfc="none", mec="#b35900", mew=3, ms=30)
axis.set_xticks(range(9), ones, rotation=45)
axis.set_yticks(range(8), tens)
axis.set_title(f"Scores for a measurement of “{words[which][0]}”")
figure.colorbar(image, label="score", shrink=0.8)
plt.show()
