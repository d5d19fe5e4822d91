"""
One view, or all of them
========================

The breast cancer data describe the nuclei in an image by three views. They are the mean of ten measurements, their
standard error, and the mean of their three largest values. We compare each view alone with early fusion (one estimator
on all columns) and late fusion (one estimator per view, probabilities averaged).

`Views` has rows, so scikit-learn's pipeline and cross-validation accept it. The scaler is inside the pipeline, so it is
fitted on the training rows of each fold only.
"""

# %%
# The models
# ----------
# Each is a pipeline of a scaler per view and a classifier. ``X[["mean"]]`` selects views and is again `Views`.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from consilience import EarlyFusion, LateFusion, PerView
from consilience.datasets import load_breast_cancer_views

X, y = load_breast_cancer_views(return_X_y=True)


def scaled(estimator):
    return make_pipeline(PerView(StandardScaler()), estimator)


early, late = scaled(EarlyFusion(LogisticRegression())), scaled(LateFusion(LogisticRegression()))
runs = {f"{name} alone": (late, X[[name]]) for name in X.names}
runs |= {"late fusion": (late, X), "early fusion": (early, X)}

# %%
# The scores
# ----------
# Five folds, drawn four times, the same for every model.
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
scores = {name: cross_val_score(model, data, y, cv=folds) for name, (model, data) in runs.items()}

# %%
# Each line shows the mean and the standard deviation over the twenty folds. Late fusion gives the weak view the same
# weight as the strong ones, so more views are not always better.
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, (name, values) in enumerate(reversed(scores.items())):
    fused = "fusion" in name
    axis.errorbar(
        np.mean(values), place, xerr=np.std(values), fmt="s" if fused else "o", color="black", ms=8, capsize=5,
        mfc="black" if fused else "white",
    )  # fmt: skip
axis.set_yticks(range(len(scores)), list(reversed(scores)))
axis.set(xlabel="accuracy (mean ± standard deviation over 20 folds)", title="Breast cancer, three views")
axis.grid(axis="x", color="0.85")
axis.margins(y=0.15)
plt.show()
