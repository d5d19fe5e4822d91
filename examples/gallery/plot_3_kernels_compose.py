"""
Kernels compose
===============

A kernel is a similarity of two samples. Sums, products and maps of kernels are kernels again, and the expression that
made one is how it prints. We look at four of them on points of a line, from -3 to 3: each picture is the Gram matrix,
dark where two points are similar.
"""

# %%
# Four kernels
# ------------
# A Gaussian kernel sees neighbours. Behind a map of the line to a circle it becomes periodic. Times a wider Gaussian,
# the periods fade with distance. The last adds a normalized polynomial, which tells the two sides of zero apart.
import matplotlib.pyplot as plt
import numpy as np

from consilience.kernels import RBF, Linear, is_psd, normalize

points = np.linspace(-3, 3, 121)[:, None]


def circle(x):
    return np.column_stack([np.cos(2 * np.pi * x[:, 0]), np.sin(2 * np.pi * x[:, 0])])


near = RBF(gamma=2.0)
periodic = RBF(gamma=1.0).mapped(circle)
fading = periodic * RBF(gamma=0.3)
mixed = normalize((Linear() + 1.0) ** 2) + 0.5 * fading

kernels = {"near": near, "periodic": periodic, "fading": fading, "mixed": mixed}
for name, kernel in kernels.items():
    print(f"{name} = {kernel!r}\n    positive semi-definite: {is_psd(kernel(points))}")

# %%
# Their Gram matrices
# -------------------
figure, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True, layout="compressed")
for axis, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    image = axis.imshow(kernel(points), cmap="Greys", extent=(-3, 3, 3, -3), vmin=0)
    figure.colorbar(image, ax=axis, ticks=[0, 0.5, 1, 1.5])
    axis.set(title=name, xticks=[-3, 0, 3], yticks=[-3, 0, 3])
figure.supxlabel("z")
figure.supylabel("x")
figure.suptitle("k(x, z): dark is similar")
plt.show()
