"""
Many outputs, each with its own views
=====================================

Two hundred outputs depend on two views in different shares. One fit chooses weights of the views and a penalty for each
output, by exact held-out scores. The display divides R² of new samples among the views.
"""

# %%
# The data
# --------
# The first outputs depend on the view "motion" only, the last ones on "words" only. The third view is noise.
import matplotlib.pyplot as plt
import numpy as np

from consilience import BandedR2Display, BandedRidgeCV, Views

rng = np.random.default_rng(0)
X = Views(motion=rng.normal(size=(400, 20)), words=rng.normal(size=(400, 60)), noise=rng.normal(size=(400, 40)))
share = np.linspace(0, 1, 200)
motion = X["motion"] @ rng.normal(size=(20, 200)) / np.sqrt(20)
words = X["words"] @ rng.normal(size=(60, 200)) / np.sqrt(60)
Y = np.sqrt(1 - share) * motion + np.sqrt(share) * words + rng.normal(size=(400, 200))

# %%
# One fit
# -------
# Forty draws of weights, eleven penalties, leave-one-out: 88,000 held-out scores from forty eigendecompositions.
model = BandedRidgeCV(n_iter=40, random_state=0).fit(X[:300], Y[:300])

# %%
# Weights and R² by view
# ----------------------
# The weights of a view follow its share of the signal. The parts of R² of new samples add to the black line.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for name, weights, color, marker in zip(
    X.names, model.view_weights_, ("#1f4e79", "#b35900", "0.4"), "o^s", strict=True
):
    left.scatter(share, weights, s=12, color=color, marker=marker, label=name)
left.set(xlabel="share of words in the signal", ylabel="weight of the view", title="weights of 200 outputs")
left.legend()
BandedR2Display.from_estimator(model, X[300:], Y[300:], ax=right)
plt.show()
