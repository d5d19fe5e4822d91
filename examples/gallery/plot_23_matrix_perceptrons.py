"""
Two halves of a table
=====================

The matrix perceptron (MMP) treats a sample as a matrix with a column per view. The orthogonal perceptron (OMMP) needs
no inner products between views, so views may have any kind. With p = 1 both are the perceptron; a larger p gives more
weight to views whose updates point in the same direction. Fornoni (2009, Figures 4.2 and 4.3) divides the columns of
census data into two halves and finds that both are similar and better than the perceptron.
``benchmarks/matrix_perceptrons.py`` repeats it. Here we do the same with a synthetic binary table whose first half is
informative.
"""

# %%
# Mistakes in one pass
# --------------------
# Six orders of the rows with the linear kernel; three orders of 2,000 rows with the Gaussian one, with γ one over the
# number of columns of a half.
import matplotlib.pyplot as plt
import numpy as np

from consilience import MatrixPerceptron, OrthogonalPerceptron, Views
from consilience.kernels import RBF, Linear

rng = np.random.default_rng(0)
table = (rng.random((20000, 120)) < 0.11).astype(float)
signal = table[:, :60] @ rng.normal(size=60)
y = np.where(signal + 0.5 * rng.normal(size=20000) > 0, 1, -1)
X, powers = Views(first=table[:, :60], second=table[:, 60:]), [1, 2, 3, 5, 8, 12, 20]


def share(model, Z, z):
    return 100 * model.partial_fit(Z, z).n_mistakes_ / len(z)


def errors(kernel, n, orders):
    for order in range(orders):
        rows = np.random.default_rng(order).permutation(len(y))[:n]
        Z, z = X[rows], y[rows]
        alone = [[share(OrthogonalPerceptron(kernel), Z[[name]], z)] * len(powers) for name in Z.names]
        matrix = [share(MatrixPerceptron(kernel, p=p), Z, z) for p in powers]
        yield [*alone, matrix, [share(OrthogonalPerceptron(kernel, p=p), Z, z) for p in powers]]


# %%
# Error against p
# ---------------
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
styles = {"first half alone": ":", "second half alone": "-.", "MMP": "s--", "OMMP": "o-"}
settings = {"Linear": (Linear(), 20000, 6), "Gaussian": (RBF(1 / 60), 2000, 3)}
for axis, (title, setting) in zip(axes, settings.items(), strict=True):
    for (name, line), means in zip(styles.items(), np.mean(list(errors(*setting)), axis=0), strict=True):
        axis.plot(powers, means, line, color={"MMP": "#b35900", "OMMP": "black"}.get(name, "#0072b2"), label=name)
    axis.set(xlabel="p", ylabel="error rate (%)", title=f"{title} kernel", xticks=[1, 5, 10, 15, 20])
    axis.grid(color="0.9")
axis.legend()
plt.show()
