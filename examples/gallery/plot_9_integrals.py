"""
Learn from integrals
====================

Some instruments measure a function through a blur: y = ∫ G(x, t) f(t) dt + noise. The framework of Minh, Bazzani and
Murino (2016, Appendix B) accepts any bounded linear measurement in place of a function value.

The kernel between two measurements is E(x, z) = ∫ G(x, t) G(z, t) dt. Ridge regression with E learns from the
measurements, and its coefficients give f: f(t) = Σᵢ aᵢ G(xᵢ, t).
"""

# %%
# The measurements
# ----------------
# f has two peaks. G is a bump around x, so wide that the peaks merge. Integrals over [0, 1] are sums over a fine grid.
# There are 100 measurements with noise.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from consilience import CoRegularizedRidgeCV
from consilience.kernels import FromCallable

t = (np.arange(1000) + 0.5) / 1000
f = norm.pdf(t, 0.4, 0.05) + 0.7 * norm.pdf(t, 0.57, 0.05)


def G(x):
    return norm.pdf(t, x, 0.06)  # x is a column: one row per measurement


def E(x, z):
    return G(x) @ G(z).T / len(t)


x = np.linspace(0, 1, 100)[:, None]
y = G(x) @ f / len(t) + 0.05 * np.random.default_rng(0).normal(size=100)

# %%
# The fit
# -------
# `alpha` is chosen by leave-one-out on the measurements. ``dual_coef_`` has a row for each view (here one), and
# ``support_`` lists the measurements that its entries belong to.
model = CoRegularizedRidgeCV(kernel=FromCallable(E), alphas=np.logspace(-9, 0, 37)).fit(x, y)
recovered = model.dual_coef_[0, :, 0] @ G(x[model.support_])
print(f"alpha {model.alpha_:.1e}, relative error of f {np.linalg.norm(recovered - f) / np.linalg.norm(f):.2f}")

# %%
# Measured and recovered
# ----------------------
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(t, f, color="0.65", lw=5, label="f")
axis.plot(x, y, "o", color="#b35900", mfc="white", ms=5, label="measurements: integrals of f with noise")
axis.plot(t, recovered, "--", color="black", label="f, recovered")
axis.set(
    xlabel="t (and x of the measurements)", ylabel="value", ylim=(-2, 11), title="A function known by its integrals"
)
axis.grid(color="0.9")
axis.legend()
plt.show()
