"""
A perceptron with bounds
========================

`VectorPerceptron` learns the maps of maximum margin regression sample by sample: where a sample misses the margin, the
operator takes a step of size s. Szedmak, Shawe-Taylor and Parrado-Hernandez (2006, Theorem 1) bound the number of steps
by (1 + 2/s)/Γ², and the margin in the end from below by Γ/(s + 2), with Γ the widest margin there is.

``certificate(X, y)`` finds Γ and sets the bounds beside what happened.
"""

# %%
# Ten digits, many step sizes
# ---------------------------
# 300 digits in four views; the kernel is the mean of four Gaussian ones, so that all samples have length 1. The passes
# go on until every sample has the margin.
import matplotlib.pyplot as plt
import numpy as np

from consilience import VectorPerceptron
from consilience.datasets import load_digits_views

X, y = load_digits_views(return_X_y=True)
steps = np.logspace(-1.5, 1.5, 7)
mean = [(name, 0.25) for name in X.names]
proofs, scores = [], []
for step in steps:
    model = VectorPerceptron("rbf", combine=mean, eta0=step, max_iter=10_000, random_state=0).fit(X[:300], y[:300])
    proofs.append(model.certificate(X[:300], y[:300]))
    scores.append(model.score(X[300:], y[300:]))
print(proofs[3])
print("right on new digits:", np.round(scores, 2))

# %%
# What is made, and what is allowed
# ---------------------------------
# Small steps: many updates, and a wide margin. Large steps: the first updates are more than enough for their samples,
# and the margin is narrower. With ten classes a narrow margin is not yet a right answer: the scores above fall.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.loglog(steps, [proof.bound for proof in proofs], "--", color="#b35900", label="at most")
left.loglog(steps, [proof.updates for proof in proofs], "o-", color="black", label="made")
left.set(xlabel="step size s", ylabel="updates", title="Updates")
right.axhline(proofs[0].widest, color="0.45", ls=":", label="widest, Γ")
right.loglog(steps, [proof.margin for proof in proofs], "o-", color="black", label="reached")
right.loglog(steps, [proof.margin_bound for proof in proofs], "--", color="#b35900", label="at least")
right.set(xlabel="step size s", ylabel="margin", title="Margin")
for axis in (left, right):
    axis.grid(color="0.9")
    axis.legend()
plt.show()
