"""
Which views agree
=================

Each view of a sample gives an answer of its own. Where the answers differ, the sample is worth a second look:
`view_agreement` says for every sample how many pairs of its views vote for the same class, without looking at labels.

We fit four views of handwritten digits and ask on new digits how often the learner is right, by agreement.
"""

# %%
# Agreement of four views
# -----------------------
# ``agreement`` is the share of the six pairs of views with the same vote: 1 where all four agree, 1/2 where three do,
# 1/3 where it is two against two, 1/6 where only two agree, 0 where all differ.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidgeClassifier, view_agreement
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
train, test = rows[:150], rows[150:]
model = CoRegularizedRidgeClassifier(alpha=1e-4).fit(X[train], y[train])
found = view_agreement(model, X[test])
right = model.predict(X[test]) == y[test]

# %%
# The sample with the least agreement among those the learner got wrong, and what its views say:
worst = np.flatnonzero(~right)[found.agreement[~right].argmin()]
print(f"the digit is {y[test][worst]}; the views vote {dict(zip(X.names, found.votes[worst].tolist(), strict=True))}")

# %%
# Accuracy by agreement
# ---------------------
# The numbers on the bars count samples. Where all views agree nearly all answers are right; most mistakes are among the
# few samples where they do not.
levels = np.unique(found.agreement)
groups = [right[found.agreement == level] for level in levels]
names = {0: "all differ", 1: "2 agree", 2: "2 against 2", 3: "3 agree", 6: "4 agree"}
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
bars = axis.bar(
    [names[round(6 * level)] for level in levels], [group.mean() for group in groups], color="#0072b2", width=0.6
)
axis.bar_label(bars, [f"{group.sum()} of {len(group)}" for group in groups], padding=3)
axis.axhline(right.mean(), color="black", ls="--", lw=1)
axis.text(-0.4, right.mean() + 0.015, f"all: {right.mean():.3f}")
axis.set(ylabel="accuracy on new digits", xlabel="votes of the four views", ylim=(0, 1.1))
axis.set_title("Digits: answers are right where views agree")
plt.show()
