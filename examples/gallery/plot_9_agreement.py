"""
Which views agree
=================

Each view of a sample gives an answer of its own. Where the answers differ, the sample is worth a second look:
`view_agreement` says for every sample how many pairs of its views vote for the same class. It needs no labels.

We fit four views of handwritten digits and ask on new digits how often the learner is right, by agreement. `agreement_penalty`
makes each view answer for itself; without it a view may carry a part of the answer only.
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
model = CoRegularizedRidgeClassifier(alpha=1e-4, agreement_penalty=1e-4).fit(X[train], y[train])
found = view_agreement(model, X[test])
right = model.predict(X[test]) == y[test]

# %%
# A digit that the learner got wrong, and what its views say:
wrong = np.flatnonzero(~right)[0]
print(f"a {y[test][wrong]}, and the votes are", dict(zip(X.names, found.votes[wrong].tolist(), strict=True)))

# %%
# Accuracy by agreement
# ---------------------
# The numbers in the bars count samples. Three quarters of the digits have four equal votes, and of these nearly all are
# right. To look again at the others is to find nearly all mistakes.
pairs = np.rint(6 * found.agreement)
groups = {"two at most": pairs < 2, "two against two": pairs == 2, "three": pairs == 3, "four": pairs == 6}
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
bars = axis.bar(list(groups), [right[rows].mean() for rows in groups.values()], color="#0072b2", width=0.6)
counts = [f"{right[rows].sum()} of {rows.sum()}" for rows in groups.values()]
axis.bar_label(bars, counts, label_type="center", color="white")
axis.axhline(right.mean(), color="black", ls="--", lw=1)
axis.text(-0.4, right.mean() + 0.015, f"all: {right.mean():.3f}")
axis.set(xlabel="views that agree", ylabel="accuracy on new digits", ylim=(0, 1.1), title="Digits in four views")
plt.show()
