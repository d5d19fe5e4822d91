"""
Sum and product of two views
============================

`MaxMarginClassifier` combines views by the sum or the product of their kernels. A sum adds one function per view. A
product can express whether two views belong together.

We compare both on data of either kind by their ROC curves. Each curve crosses the falling diagonal at the equal error
rate.
"""

# %%
# Two tasks
# ---------
# *Matching*: a voice and a face, ten numbers each, belong to one person or to two. Neither view alone is informative.
# *Tumors*: two informative views of 569 tumors; sixty are for training.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve
from sklearn.preprocessing import StandardScaler

from consilience import MaxMarginClassifier, PerView, Views, equal_error_rate
from consilience.datasets import load_breast_cancer_views

rng = np.random.default_rng(0)
person = rng.normal(size=(1200, 2))
same = rng.integers(2, size=1200)
other = np.where(same[:, None] == 1, person, rng.normal(size=(1200, 2)))
voice, face = person @ rng.normal(size=(2, 10)), other @ rng.normal(size=(2, 10))
pairs = Views(voice=voice, face=face + 0.1 * rng.normal(size=(1200, 10)))

X, y = load_breast_cancer_views(return_X_y=True)
tasks = {"Matching": (pairs, same, 600), "Tumors": (X[["mean", "error"]], 1 - y, 60)}  # 1: malignant

# %%
# ROC curves
# ----------
# The numbers are equal error rates on new samples. The sum cannot match. If every view is informative, the sum needs
# fewer training samples.
figure, axes = plt.subplots(1, 2, figsize=(9, 4.9), layout="constrained")
for axis, (title, (views, truth, n)) in zip(axes, tasks.items(), strict=True):
    views = PerView(StandardScaler()).fit(views[:n]).transform(views)
    for combine, color, line in (("sum", "#b35900", "--"), ("product", "black", "-")):
        model = MaxMarginClassifier(combine=combine, C=10.0).fit(views[:n], truth[:n])
        scores = model.decision_function(views[n:])
        false, true, _ = roc_curve(truth[n:], scores)
        label = f"{combine}: {equal_error_rate(truth[n:], scores):.1%}"
        axis.plot(false, true, line, color=color, label=label)
    axis.plot([0, 1], [1, 0], color="0.6", lw=1)
    axis.set(xlabel="false positive rate", ylabel="true positive rate", title=title, aspect="equal")
    axis.legend(title="equal error rate", loc="lower right")
plt.show()
