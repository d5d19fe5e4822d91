"""
Probabilities from a margin
===========================

A maximum margin machine gives scores, not probabilities. scikit-learn's ``CalibratedClassifierCV`` learns from held-out
samples how scores become probabilities. It takes `MaxMarginClassifier` as any classifier, and `Views` as any data.

A reliability diagram says whether it worked: of all samples with a probability of about 0.8, do 80 % belong to the class?
"""

# %%
# The same machine, with and without
# ----------------------------------
# 300 samples to learn from, 4,000 others. Without calibration all one has is a squashed score, 1/(1 + exp(-f)). The log
# loss is the smaller the better.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import log_loss

from consilience import MaxMarginClassifier
from consilience.datasets import make_views

X, y = make_views(4300, noise=2, random_state=0)
learn, new = slice(0, 300), slice(300, None)
machine = MaxMarginClassifier(C=10.0)
calibrated = CalibratedClassifierCV(machine, cv=5).fit(X[learn], y[learn])
answers = {
    "1/(1 + exp(-f))": expit(machine.fit(X[learn], y[learn]).decision_function(X[new])),
    "calibrated": calibrated.predict_proba(X[new])[:, 1],
}
for name, chance in answers.items():
    print(f"{name}: log loss {log_loss(y[new], chance):.3f}, right {np.mean((chance > 0.5) == y[new]):.3f}")

# %%
# Reliability
# -----------
# Above: the share of the second class among samples with about the same probability. Below: how many samples there are.
figure, (above, below) = plt.subplots(2, 1, figsize=(6, 6.5), height_ratios=(3, 1), sharex=True, layout="constrained")
above.plot([0, 1], [0, 1], color="0.6", lw=1)
styles = ({"color": "#b35900", "ls": "--", "marker": "s", "mfc": "white"}, {"color": "black", "marker": "o"})
for (name, chance), style in zip(answers.items(), styles, strict=True):
    share, mean = calibration_curve(y[new], chance, n_bins=10)
    above.plot(mean, share, label=name, **style)
    below.hist(chance, np.linspace(0, 1, 21), histtype="step", color=style["color"], ls=style.get("ls", "-"), lw=1.5)
above.set(ylabel="share of the class", ylim=(0, 1), title="How far probabilities can be believed")
above.grid(color="0.9")
above.legend()
below.set(xlabel="probability", ylabel="samples")
plt.show()
