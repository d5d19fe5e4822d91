"""Ways to draw views, kernels, labels, masks, targets, weights, tables and streams, for all tests of properties.

The functions ``draw_...`` take a generator of NumPy. The strategies of hypothesis at the end draw sizes and structure
by hypothesis, so that a failing case shrinks, and values from a seed by these functions.
"""

import numpy as np
import scipy.sparse as sp

import consilience as cs
from consilience import Views
from consilience.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Spectrum, center, normalize


def pick(rng, choices):
    """Return one of the choices."""
    return choices[rng.integers(len(choices))]


def chance(rng, share):
    """Return True in this share of the calls."""
    return bool(rng.random() < share)


def magnitude(rng, low=-4.0, high=2.0, extreme=0.06):
    """Return a power of ten in a usual range, now and then anywhere in floating point."""
    return float(10.0 ** (rng.uniform(-300, 300) if chance(rng, extreme) else rng.uniform(low, high)))


def draw_or_odd(rng, share, odd, usual):
    """Return one of the usual values, in a share of the calls one of the odd ones."""
    return pick(rng, odd) if chance(rng, share) else pick(rng, usual)


# -- data
TABLES = {
    "normal": lambda rng, X: X,
    "whole": lambda rng, X: np.round(2 * X),
    "counts": lambda rng, X: np.abs(np.round(2 * X)),
    "constant": lambda rng, X: np.column_stack([np.ones(len(X)), X[:, 1:]]),
    "repeated": lambda rng, X: X[rng.integers(len(X), size=len(X))],
    "collinear": lambda rng, X: X[:, :1] * np.arange(1, X.shape[1] + 1),
    "zeros": lambda rng, X: X * (rng.random(X.shape) > 0.7),
}


def draw_table(rng, n, hostile=True):
    """Return n rows of 1 to 6 columns: continuous or whole numbers, constant, repeated, collinear, tiny or huge."""
    X = rng.normal(size=(n, int(rng.integers(1, 7))))
    X = TABLES[pick(rng, ["normal", "normal", *TABLES])](rng, X)
    if hostile and chance(rng, 0.25):
        X = X * magnitude(rng, -8, 8, extreme=0.4)
    if hostile and chance(rng, 0.04):
        X[rng.integers(n), rng.integers(X.shape[1])] *= magnitude(rng, 2, 100, extreme=0.3)
    return X


def draw_strings(rng, n):
    """Return n short strings, some empty."""
    return ["".join(pick(rng, "abc") for _ in range(rng.integers(0, 6))) for _ in range(n)]


def draw_tree(rng, size):
    """Return a tree as nested tuples with about this many nodes; leaves may be next to nodes, nodes may be empty."""
    node = [pick(rng, "ABC")]
    while size > 1 and len(node) < 4:
        part = int(rng.integers(1, size))
        node.append(draw_tree(rng, part) if chance(rng, 0.6) else pick(rng, ["A", "x", "\u00e9"]))
        size -= part
    return tuple(node)


def write_tree(tree, blank=lambda: " "):
    """Return a tree as a bracketed string; `blank` gives what stands between its parts."""
    if isinstance(tree, str):
        return tree
    return "(" + blank().join(write_tree(part, blank) for part in tree) + ")"


def draw_gram(rng, n, hostile=True):
    """Return a Gram matrix of n samples; if hostile, now and then one that is indefinite or not symmetric."""
    X = draw_table(rng, n, hostile)
    with np.errstate(over="ignore", invalid="ignore"):
        K = X @ X.T
    if hostile and chance(rng, 0.15):
        K = rng.normal(size=(n, n))
        K = K if chance(rng, 0.2) else K + K.T
    return K


def draw_numeric_kernel(rng, X, fixed=False):
    """Return a kernel that takes a table; with `fixed`, one without parameters taken from the data."""
    gamma = magnitude(rng, -3, 1, extreme=0.0 if fixed else 0.04)
    square = Polynomial(degree=2, constant=1.0)
    choices = [Linear(), RBF(gamma), RBF(gamma), square, Laplacian(gamma), RBF(gamma) + 0.5, normalize(square)]
    if X.min(initial=0.0) >= 0:
        choices += [cs.kernels.ChiSquared(gamma), cs.kernels.Intersection()]
    if not fixed:
        choices += ["rbf", "linear", "rbf", RBF("median"), center(RBF(gamma))]
    return pick(rng, choices)


def draw_mask(rng, n, m, share=0.4, hostile=True):
    """Return which views are present, or None; every sample has a view, but in a few hostile cases."""
    if m == 1 or not chance(rng, share):
        return None
    mask = rng.random((n, m)) > rng.uniform(0.05, 0.6)
    if chance(rng, 0.1):
        mask[:, rng.integers(m)] = False
    if not (hostile and chance(rng, 0.03)):
        empty = np.flatnonzero(~mask.any(axis=1))
        mask[empty, rng.integers(m, size=len(empty))] = True
    return mask


def draw_views(rng, n, kinds, hostile=True):
    """Return the data by view, a kernel for each, the names of the Gram matrices, and a mask or None."""
    data, kernels, grams = {}, {}, []
    for name in "abcd"[: rng.integers(1, 5)]:
        kind = pick(rng, kinds)
        if kind == "strings":
            data[name] = draw_strings(rng, n)
            kernels[name] = pick(rng, [Spectrum(1), Spectrum(2), normalize(Spectrum(1) + 1.0)])
        elif kind == "gram":
            data[name] = draw_gram(rng, n, hostile)
            kernels[name] = pick(rng, ["precomputed", Precomputed()])
            grams.append(name)
        else:
            X = draw_table(rng, n, hostile)
            kernels[name] = draw_numeric_kernel(rng, X, fixed=not hostile)
            with np.errstate(over="ignore"):
                X = X.astype(np.float32) if hostile and chance(rng, 0.2) else X
            data[name] = sp.csr_array(X) if kind == "sparse" else X
    return data, kernels, grams, draw_mask(rng, n, len(data), hostile=hostile)


def draw_targets(rng, n):
    """Return targets of regression: one output or several, some missing, constant, or of any scale."""
    Y = rng.normal(size=(n, int(rng.integers(1, 4)))) if chance(rng, 0.35) else rng.normal(size=n)
    if chance(rng, 0.2):
        Y = Y * magnitude(rng, -6, 6, extreme=0.4)
    if chance(rng, 0.08):
        Y = np.zeros_like(Y)
    if chance(rng, 0.25):
        Y[rng.random(n) < rng.uniform(0, 0.8)] = np.nan
    return Y


def draw_labels(rng, n):
    """Return labels of 1 to 4 classes: whole numbers, strings, booleans or floats, some missing."""
    n_classes = int(rng.integers(1, 5)) if chance(rng, 0.2) else int(rng.integers(2, 4))
    codes = rng.integers(n_classes, size=n)
    codes[: min(n, n_classes)] = np.arange(min(n, n_classes))
    names = [3, -1, 7, 0], [3, -1, 7, 0], ["x", "y", "a", "zz"], [False, True, False, True], [0.0, 1.0, 2.0, -1.0]
    labels = np.array(pick(rng, names))[codes]
    if chance(rng, 0.2):
        labels = labels.astype(object)
        labels[rng.random(n) < rng.uniform(0, 0.7)] = pick(rng, [None, np.nan])
    return labels


def draw_weights(rng, n):
    """Return sample weights or None: ones, some of them zero, or of any scale."""
    style = pick(rng, ["none", "none", "none", "ones", "zeros", "random", "extreme"])
    if style == "extreme":
        return np.array([magnitude(rng, extreme=0.5) for _ in range(n)])
    given = {"ones": np.ones(n), "zeros": rng.integers(3, size=n) * 1.0, "random": rng.random(n)}
    return given.get(style)


# -- streams
def draw_stream(rng, n):
    """Return Views and labels: sparse, missing and late views, ties, far values, late classes."""
    data, _, _, mask = draw_views(rng, n, ["dense"] * 4 + ["sparse"], hostile=False)
    for name, X in data.items():
        if chance(rng, 0.1) and not sp.issparse(X):
            X[rng.integers(n)] *= magnitude(rng, 2, 6, extreme=0.1)
        with np.errstate(over="ignore"):
            data[name] = X.astype(np.float32) if chance(rng, 0.15) else X
    if len(data) > 1 and chance(rng, 0.3):
        mask = np.ones((n, len(data)), dtype=bool) if mask is None else mask
        mask[: rng.integers(n), 0] = False
        mask[~mask.any(axis=1), 1] = True
    y = rng.integers(int(rng.integers(2, 5)), size=n)
    if chance(rng, 0.3):
        y = y[np.argsort(y > 1, kind="stable")]
    return Views(data, mask=mask), np.array(["d", "b", "a", "c"])[y] if chance(rng, 0.4) else y
