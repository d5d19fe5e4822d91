"""
Combine kernels
===============

A kernel is a similarity of two samples. Sums, products and maps of kernels are kernels. A combined kernel prints as its
expression. We show four kernels on points from -3 to 3: each image is the Gram matrix, dark where two points are
similar.
"""

# %%
# Four kernels
# ------------
# A Gaussian kernel compares neighbors. After a map of the line to a circle it is periodic. Multiplied by a wider
# Gaussian, the periods fade with distance. The last adds a normalized polynomial, which separates the two sides of
# zero.
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
