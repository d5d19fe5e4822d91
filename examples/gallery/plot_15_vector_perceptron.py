"""
A perceptron with bounds
========================

`VectorPerceptron` learns maximum margin regression sample by sample: if a sample misses the margin, the operator takes
a step of size s. Let Γ be the widest possible margin. Szedmak, Shawe-Taylor and Parrado-Hernandez (2006, Theorem 1)
prove at most (1 + 2/s)/Γ² steps and a final margin of at least Γ/(s + 2).

``certificate(X, y)`` computes Γ and both bounds.
"""

# %%
# Ten digits, many step sizes
# ---------------------------
# 300 digits in four views; the kernel is the mean of four Gaussian kernels, so that all samples have length 1. Passes
# continue until every sample has the margin.
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
print("accuracy on new digits:", np.round(scores, 2))

# %%
# Results and bounds
# ------------------
# Small steps: many updates and a wide margin. Large steps: few updates and a narrow margin. With ten classes a narrow
# margin does not guarantee the correct class: the scores above decrease.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.loglog(steps, [proof.bound for proof in proofs], "--", color="#b35900", label="bound")
left.loglog(steps, [proof.n_updates for proof in proofs], "o-", color="black", label="observed")
left.set(xlabel="step size s", ylabel="updates", title="Updates")
right.axhline(proofs[0].widest, color="0.45", ls=":", label="widest, Γ")
right.loglog(steps, [proof.margin for proof in proofs], "o-", color="black", label="observed")
right.loglog(steps, [proof.margin_bound for proof in proofs], "--", color="#b35900", label="bound")
right.set(xlabel="step size s", ylabel="margin", title="Margin")
for axis in (left, right):
    axis.grid(color="0.9")
    axis.legend()
plt.show()
