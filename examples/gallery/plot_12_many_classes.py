"""
Many classes in one machine
===========================

`MaxMarginClassifier` gives every class a vector and maps samples to these vectors. It has one variable per sample, for
two classes or for fifty (Szedmak, Shawe-Taylor and Parrado-Hernandez 2006).

The data are infrared spectra of 531 sources in the sky in two views, a blue and a red part. They have 48 classes; 13
classes have only one source. If the file is not available, the spectra are synthetic: 48 random curves with noise and a
random brightness.
"""

# %%
# The spectra
# -----------
# Brightness has little information about the class. ``Normalizer`` scales every spectrum to length 1;
# ``StandardScaler`` scales every wavelength to mean 0 and variance 1.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from consilience import MaxMarginClassifier, PerView, Views
from consilience.datasets import fetch_spectrometer
from consilience.kernels import RBF

try:
    X, y = fetch_spectrometer(return_X_y=True)
    X = X[["blue", "red"]]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(48), rng.geometric(0.06, size=483) % 48])
    curves = 3 + np.cumsum(rng.normal(size=(48, 93)), axis=1) / 10
    spectra = (curves[y] + 0.3 * rng.normal(size=(531, 93))) * rng.lognormal(size=(531, 1))
    X = Views(blue=spectra[:, :44], red=spectra[:, 44:])
print(X, f"{len(np.unique(y))} classes", sep="\n")

# %%
# Error against the width of the kernel
# -------------------------------------
# Five-fold cross-validation; every machine has one variable for each of about 425 sources. At the best width simplex
# and indicator vectors are similar, but the normalization matters.
warnings.simplefilter("ignore", UserWarning)  # a class of one source is in one fold only
widths, folds = 2.0 ** np.arange(-8, 5, 2), StratifiedKFold(5, shuffle=True, random_state=0)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for scaler, line in ((Normalizer(), "-"), (StandardScaler(), "--")):
    for vectors, color, marker in (("simplex", "black", "o"), ("indicator", "#b35900", "s")):
        errors = []
        for width in widths:
            model = MaxMarginClassifier(RBF(1 / (2 * width**2)), C=10.0, class_vectors=vectors)
            model = make_pipeline(PerView(scaler), model)
            errors.append(1 - cross_val_score(model, X, y, cv=folds).mean())
        fill = color if vectors == "simplex" else "white"
        axis.plot(widths, errors, marker + line, color=color, mfc=fill, label=f"{type(scaler).__name__}, {vectors}")
axis.set_xscale("log", base=2)
axis.set(xlabel="σ of the Gaussian kernel", ylabel="error on new sources", ylim=(0, 1.02))
axis.set_title("One machine for 48 classes")
axis.grid(color="0.9")
figure.legend(title="scaler, class vectors", loc="outside right center")
plt.show()
