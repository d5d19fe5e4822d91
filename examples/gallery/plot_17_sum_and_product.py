"""
Two views, their sum and their product
======================================

With several views the kernel of `MaxMarginClassifier` is their sum, or their product. A sum adds up what each view says.
A product compares pairs of views, and sees what no view says alone: whether the two belong together.

We compare both on data of either kind, by the whole curve of true against false alarms. Where it crosses the falling
diagonal, as many of the ones are missed as of the others raise an alarm: the equal error rate.
"""

# %%
# Two tasks
# ---------
# *Matching*: a voice and a face, ten numbers each, are of one person or of two. Neither view alone knows anything.
# *Tumours*: two views of 569 tumours, each of which knows a good deal; sixty are to learn from.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from consilience import MaxMarginClassifier, PerView, Views, equal_error_rate, roc_points
from consilience.datasets import load_breast_cancer_views

rng = np.random.default_rng(0)
person = rng.normal(size=(1200, 2))
same = rng.integers(2, size=1200)
other = np.where(same[:, None] == 1, person, rng.normal(size=(1200, 2)))
voice, face = person @ rng.normal(size=(2, 10)), other @ rng.normal(size=(2, 10))
pairs = Views(voice=voice, face=face + 0.1 * rng.normal(size=(1200, 10)))

X, y = load_breast_cancer_views(return_X_y=True)
tasks = {"Matching": (pairs, same, 600), "Tumours": (X[["mean", "error"]], 1 - y, 60)}  # 1: malignant

# %%
# Curves
# ------
# The numbers are equal error rates on new samples. The sum cannot match; but where every view knows a part, it needs
# fewer samples to learn from.
figure, axes = plt.subplots(1, 2, figsize=(9, 4.9), layout="constrained")
for axis, (title, (views, truth, n)) in zip(axes, tasks.items(), strict=True):
    views = PerView(StandardScaler()).fit(views[:n]).transform(views)
    for combine, colour, line in (("sum", "#b35900", "--"), ("product", "black", "-")):
        model = MaxMarginClassifier(combine=combine, C=10.0).fit(views[:n], truth[:n])
        scores = model.decision_function(views[n:])
        false, true = roc_points(truth[n:], scores)[:2]
        label = f"{combine}: {equal_error_rate(truth[n:], scores):.1%}"
        axis.plot(false, true, line, color=colour, label=label)
    axis.plot([0, 1], [1, 0], color="0.6", lw=1)
    axis.set(xlabel="false alarms", ylabel="true alarms", title=title, aspect="equal")
    axis.legend(title="equal error rate", loc="lower right")
plt.show()
