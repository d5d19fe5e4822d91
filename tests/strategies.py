"""Ways to draw views, kernels, labels, masks, targets, weights, tables and streams, for all tests of properties.

The functions ``draw_...`` take a generator of NumPy. The strategies of hypothesis at the end draw sizes and structure
by hypothesis, so that a failing case shrinks, and values from a seed by these functions.
"""

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import consilience as cs
from consilience import Views
from consilience.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Spectrum, center, exp, normalize


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


def draw_classes(rng, n, widths, n_classes, mask=None, whole=False):
    """Return Views v0, v1, .. of classes that overlap, and the classes; every class is there if n is large enough."""
    y = rng.integers(n_classes, size=n)
    y[: min(n, n_classes)] = np.arange(min(n, n_classes))
    data = {}
    for k, width in enumerate(widths):
        A = rng.normal(size=(n_classes, width))[y] + rng.normal(size=(n, width))
        data[f"v{k}"] = np.round(A) if whole else A
    return Views(data, mask=mask), y


def draw_separable(rng, n, n_classes, columns=4, margin=0.1):
    """Return rows of length 1 and classes that an operator onto the vectors of a simplex separates with this margin."""
    W, Y = rng.normal(size=(n_classes - 1, columns)), cs.simplex_vectors(n_classes)
    X = rng.normal(size=(20 * n, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ W.T @ Y.T).argmax(axis=1)
    sure = np.einsum("ij,ij->i", X @ W.T, Y[y]) / np.linalg.norm(W) > margin
    return X[sure][:n], y[sure][:n]


# -- strategies of hypothesis: single values
flags = st.booleans()
seeds = st.integers(0, 2**32 - 1)
generators = st.builds(np.random.default_rng, seeds)
orders = st.randoms(use_true_random=False)  # shuffles lists, and takes samples of them


def among(*choices):
    """Draw one of the choices; the first is the simplest."""
    return st.sampled_from(choices)


def whole(low, high):
    """Draw a whole number between two others, which may be drawn too."""
    return st.integers(low, high)


def numbers(low, high):
    """Draw a number between two others, which may be drawn too."""
    return st.floats(low, high)


# -- samples of one view
texts = st.text(alphabet="abc", max_size=8)
_nodes = among("A", "B", "C")
trees = st.recursive(
    st.tuples(_nodes, _nodes),
    lambda child: st.builds(lambda a, b: (a, *b), _nodes, st.lists(child | _nodes, max_size=3)),
    max_leaves=8,
)


def two_sets(samples):
    """Draw one to four samples, and up to three others."""
    return st.tuples(st.lists(samples, min_size=1, max_size=4), st.lists(samples, max_size=3))


def categories(low, high, levels=("a", "b", "c", "d")):
    """Draw a column of categories, some of which are missing, but not all."""
    cells = among(*levels, None)
    return st.lists(cells, min_size=low, max_size=high).filter(any)


def tables(rows=(1, 8), columns=(4, 4), low=-10.0, high=10.0):
    """Draw a table whose cells are drawn one by one, so that they shrink to zeros."""
    return arrays(np.float64, st.tuples(whole(*rows), whole(*columns)), elements=numbers(low, high))


@st.composite
def clusters(draw, n=20, columns=3, exponent=(0, 15)):
    """Draw rows around a few centers that may be far from zero and from each other."""
    rng, far = draw(generators), 10 ** draw(numbers(*exponent))
    return rng.normal(size=(n, columns)) + far * rng.integers(-1, 2, size=(n, 1))


# -- kernels
kernels = st.recursive(
    among(Linear(), RBF(0.5), RBF("median"), Polynomial(), cs.kernels.Intersection(), Linear().on([1])),
    lambda k: (
        st.builds(lambda a, b: a + b, k, k)
        | st.builds(lambda a, b: a * b, k, k)
        | st.builds(lambda a: 0.5 * a, k)
        | st.builds(lambda a: (a + 0.5) ** 2, k)
        | st.builds(normalize, k)
        | st.builds(center, k)
        | st.builds(lambda a: exp(normalize(a)), k)
    ),
    max_leaves=5,
)


# -- views, labels and streams
@st.composite
def masks(draw, n, m):
    """Draw which of m views n samples have; every sample has one."""
    rows = draw(st.lists(st.lists(flags, min_size=m, max_size=m), min_size=n, max_size=n))
    mask = ~np.array(rows, dtype=bool).reshape(n, m)  # the simplest mask has all views
    mask[~mask.any(axis=1), 0] = True
    return mask


def labels(n, n_classes):
    """Draw n labels of some classes, each of which is there if n is large enough."""
    return st.lists(whole(0, n_classes - 1), min_size=n, max_size=n).map(
        lambda codes: np.array([*range(min(n, n_classes)), *codes[n_classes:]], dtype=int)
    )


@st.composite
def outputs_of_views(draw, samples=(1, 5), views=(1, 3), outputs=(1, 2)):
    """Draw outputs of each view (samples, views, outputs), weights of the views, and which are present."""
    shape = n, m, _ = draw(whole(*samples)), draw(whole(*views)), draw(whole(*outputs))
    rng, mask = draw(generators), draw(masks(n, m))
    return rng.normal(size=shape), rng.normal(size=m), mask


@st.composite
def streams(draw, n=(4, 40), n_classes=(2, 4), views=(1, 3), columns=(1, 4), missing=True, one_width=False):
    """Draw Views of classes that overlap, the classes, and their number; views may be missing, or all of one width."""
    classes = draw(whole(*n_classes))
    count = max(draw(whole(*n)), classes)
    widths = draw(st.lists(whole(*columns), min_size=views[0], max_size=views[1]))
    widths = widths[:1] * len(widths) if one_width else widths
    mask = draw(masks(count, len(widths))) if missing and draw(flags) else None
    X, y = draw_classes(draw(generators), count, widths, classes, mask, draw(flags))
    return X, y, classes


@st.composite
def separable_samples(draw, n=(5, 40), n_classes=(2, 4)):
    """Draw rows of length 1 and classes that are separated with a margin of 0.1, and the number of classes."""
    classes = draw(whole(*n_classes))
    X, y = draw_separable(draw(generators), draw(whole(*n)), classes)
    assume(len(set(y)) == classes)
    return X, y, classes


@st.composite
def half_spaces(draw, n=(2, 30), columns=(1, 4), gap=(0.05, 2.0)):
    """Draw rows, two classes on both sides of a plane with a gap between them, and the normal of the plane."""
    rng, size, width = draw(generators), draw(whole(*n)), draw(whole(*columns))
    u = rng.normal(size=width)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(size, width))
    side = np.sign(X @ u)
    assume(len(set(side)) == 2)
    return X + draw(numbers(*gap)) * side[:, None] * u, (side > 0).astype(int), u


@st.composite
def streams_along(draw, n=(2, 25), views=(1, 2), columns=3, spread=(0.1, 6.0)):
    """Draw a stream of two classes with a margin along known vectors of the views, and these vectors."""
    rng, size = draw(generators), draw(whole(*n))
    truth = {f"v{k}": rng.normal(size=columns) for k in range(draw(whole(*views)))}
    data = {v: rng.normal(size=(size, columns)) for v in truth}
    scores = sum(data[v] @ truth[v] for v in truth)
    y = (scores + rng.normal(size=size) * 0.1 > 0).astype(int)
    y[:2] = [0, 1]
    far = draw(numbers(*spread)) * np.sign(scores)[:, None]
    return Views({v: data[v] + far * truth[v] / np.sum(truth[v] ** 2) for v in truth}), y, truth
