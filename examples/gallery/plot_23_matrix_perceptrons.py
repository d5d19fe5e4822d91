"""
Two halves of a table, and p
============================

The matrix perceptron (MMP) takes a sample as a matrix with a column per view. The orthogonal one (OMMP) needs no inner
products between views, so that these may be of any kind. With p = 1 both are the perceptron; the larger p, the louder
are views that have made long vectors. Fornoni (2009, Figures 4.2 and 4.3) cuts the 123 columns of a9a, census data of
32,561 people, into two halves, and finds that MMP and OMMP are alike and better than the perceptron. Where the file is
not at hand, a table of zeros and ones is made up.
"""

# %%
# Mistakes on the way
# -------------------
# Six orders of all people with the linear kernel; with the Gaussian one three, and the first 3,000 of each. Its γ is
# not tuned: one over the mean number of columns of a half. The shorter half, of 61 columns, is padded for MMP.
import matplotlib.pyplot as plt
import numpy as np

from consilience import MatrixPerceptron, OrthogonalPerceptron, Views
from consilience.datasets import fetch_a9a
from consilience.kernels import RBF, Linear

try:
    table, y = fetch_a9a(return_X_y=True)
    table, y = table["census"][:32561], y[:32561]
except FileNotFoundError:
    rng = np.random.default_rng(0)
    table = (rng.random((32561, 123)) < 0.11).astype(float)
    y = np.where(table @ np.sin(np.arange(123.0)) + 2 * rng.normal(size=32561) > 0, 1, -1)
X, powers = Views(first=table[:, :61], second=table[:, 61:]), [1, 2, 3, 5, 8, 12, 20]


def share(model, Z, z):
    return 100 * model.partial_fit(Z, z).n_mistakes_ / len(z)


def errors(kernel, n, orders):
    for order in range(orders):
        rows = np.random.default_rng(order).permutation(len(y))[:n]
        Z, z = X[rows], y[rows]
        alone = [[share(OrthogonalPerceptron(kernel), Z[[name]], z)] * len(powers) for name in Z.names]
        matrix = [share(MatrixPerceptron(kernel, p=p, unequal="pad"), Z, z) for p in powers]
        yield [*alone, matrix, [share(OrthogonalPerceptron(kernel, p=p), Z, z) for p in powers]]


# %%
# Errors against p
# ----------------
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
styles = {"first half alone": ":", "second half alone": "-.", "MMP": "s--", "OMMP": "o-"}
settings = {"Linear": (Linear(), 32561, 6), "Gaussian": (RBF(2 / 123), 3000, 3)}
for axis, (title, setting) in zip(axes, settings.items(), strict=True):
    for (name, line), means in zip(styles.items(), np.mean(list(errors(*setting)), axis=0), strict=True):
        axis.plot(powers, means, line, color={"MMP": "#b35900", "OMMP": "black"}.get(name, "#0072b2"), label=name)
    axis.set(xlabel="p", ylabel="mistakes (%)", title=f"{title} kernel", xticks=[1, 5, 10, 15, 20])
    axis.grid(color="0.9")
axis.legend()
plt.show()
