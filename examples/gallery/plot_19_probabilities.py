"""
Calibrated probabilities
========================

A maximum margin classifier gives scores, not probabilities. scikit-learn's ``CalibratedClassifierCV`` learns the map
from scores to probabilities on held-out samples. It accepts `MaxMarginClassifier` and `Views`.

A reliability diagram checks the result: of all samples with a probability near 0.8, do 80% belong to the class?
"""

# %%
# The same classifier, with and without calibration
# -------------------------------------------------
# 300 training samples, 4,000 others. Without calibration we use the logistic function of the score. A smaller log loss
# is better.
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
outputs = {
    "1/(1 + exp(-f))": expit(machine.fit(X[learn], y[learn]).decision_function(X[new])),
    "calibrated": calibrated.predict_proba(X[new])[:, 1],
}
for name, chance in outputs.items():
    print(f"{name}: log loss {log_loss(y[new], chance):.3f}, accuracy {np.mean((chance > 0.5) == y[new]):.3f}")

# %%
# Reliability
# -----------
# Top: the share of the second class among samples with similar probability. Bottom: the number of samples.
figure, (above, below) = plt.subplots(2, 1, figsize=(6, 6.5), height_ratios=(3, 1), sharex=True, layout="constrained")
above.plot([0, 1], [0, 1], color="0.6", lw=1)
styles = ({"color": "#b35900", "ls": "--", "marker": "s", "mfc": "white"}, {"color": "black", "marker": "o"})
for (name, chance), style in zip(outputs.items(), styles, strict=True):
    share, mean = calibration_curve(y[new], chance, n_bins=10)
    above.plot(mean, share, label=name, **style)
    below.hist(chance, np.linspace(0, 1, 21), histtype="step", color=style["color"], ls=style.get("ls", "-"), lw=1.5)
above.set(ylabel="share of the class", ylim=(0, 1), title="Calibration makes probabilities more reliable")
above.grid(color="0.9")
above.legend()
below.set(xlabel="probability", ylabel="samples")
plt.show()
