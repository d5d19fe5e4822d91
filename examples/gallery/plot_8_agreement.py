"""
Find samples on which views disagree
====================================

Each view of a sample has its own prediction. If the predictions differ, check the sample: `view_agreement` computes for
every sample the share of pairs of views that vote for the same class. It needs no labels.

We fit four views of handwritten digits and compute accuracy by agreement on new digits. With `agreement_penalty` each
view must predict well alone.
"""

# %%
# Agreement of four views
# -----------------------
# ``agreement`` is the share of the six pairs of views with the same vote: 1 if all four agree, 1/2 if three agree, 1/3
# for two against two, 1/6 if only two agree, 0 if all differ.
import matplotlib.pyplot as plt
import numpy as np

from consilience import CoRegularizedRidgeClassifier, view_agreement
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
train, test = rows[:150], rows[150:]
model = CoRegularizedRidgeClassifier(alpha=1e-4, agreement_penalty=1e-4).fit(X[train], y[train])
result = view_agreement(model, X[test])
correct = model.predict(X[test]) == y[test]

# %%
# A digit with a wrong prediction, and the votes of its views:
wrong = np.flatnonzero(~correct)[0]
print(f"a {y[test][wrong]}, votes:", dict(zip(X.names, result.votes[wrong].tolist(), strict=True)))

# %%
# Accuracy by agreement
# ---------------------
# The numbers in the bars count samples. Three quarters of the digits have four equal votes, and nearly all of these are
# correct. Nearly all mistakes are among the others.
pairs = np.rint(6 * result.agreement)
groups = {"two at most": pairs < 2, "two against two": pairs == 2, "three": pairs == 3, "four": pairs == 6}
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
bars = axis.bar(list(groups), [correct[rows].mean() for rows in groups.values()], color="#0072b2", width=0.6)
counts = [f"{correct[rows].sum()} of {rows.sum()}" for rows in groups.values()]
axis.bar_label(bars, counts, label_type="center", color="white")
axis.axhline(correct.mean(), color="black", ls="--", lw=1)
axis.text(-0.4, correct.mean() + 0.015, f"all: {correct.mean():.3f}")
axis.set(
    xlabel="number of views that agree", ylabel="accuracy on new digits", ylim=(0, 1.1), title="Digits in four views"
)
plt.show()
