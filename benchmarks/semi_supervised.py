"""What unlabeled rows are worth: accuracy against the number of labels per class, on three public sets of views.

Run by ``python benchmarks/semi_supervised.py [--set mfeat flower17 webkb] [--draws 10] [--markdown]``, with the data
files in the folder named by CONSILIENCE_DATA. Prints the chosen penalties and one table per set: percent of rows that
`CoRegularizedRidgeClassifier` gets right,

    (a) with labeled rows only and no penalty between or within views,
    (b) with the penalties of (c), but labeled rows only,
    (c) with all unlabeled training rows: views tied to each other (`between`) and smooth along graphs (`within`),

on test rows, which have no part in the fit, and on the unlabeled training rows. Mean ± standard deviation over draws of
labels, the same draws for all three; then the paired difference (c) - (a) ± its standard error.

Protocol. Half of the rows of each class are test rows, the same for all draws. Scaling and kernel widths come from all
training rows without their labels, for (a), (b) and (c) alike. Penalties are chosen once per set, on three draws of 5
labels per class that are not among the reported ones. There a third of the other training rows is left out altogether.
The penalties best on the rows left out are used for the test rows, those best on the unlabeled rows of the fit for the
unlabeled rows; the alpha of (a) in the same way. So the labels of the training rows serve as a validation set, and the
figures on unlabeled rows share rows (not draws) with the choice. Test rows take no part in any choice.

Graphs to choose from: the ten nearest neighbors in each view ("knn"), or by the mean of all kernels ("joint"), or the
kernel's values ("kernel_normalized"). In WebKB 78 % of the pages are of one class and the learner has no offset, so
a constant is added to the kernel; a page or link without words is an absent view. Flower17 is seven descriptors of our
own, their visual words found without labels on all images, test images too.
"""

import argparse
import itertools

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import Normalizer, StandardScaler

from consilience import CoRegularizedRidgeClassifier, PerView, Views
from consilience.datasets import fetch_flower17, fetch_mfeat, fetch_webkb
from consilience.kernels import RBF, ChiSquared, Linear, Precomputed, resolve_kernels, view_grams
from consilience.kernels.graphs import laplacian

SETS = {  # fetcher, then preprocessing and kernel of every view
    "mfeat": (fetch_mfeat, StandardScaler(), RBF("scale")),
    "flower17": (fetch_flower17, Normalizer("l1"), ChiSquared()),
    "webkb": (fetch_webkb, "passthrough", Linear() + 0.1),
}
GRAPHS = ("knn", "joint", "kernel_normalized")
ALPHAS, BETWEENS, WITHINS = (1e-5, 1e-3), (1e-8, 1e-6, 1e-4), (1e-7, 1e-6, 1e-5, 1e-4)
LABELS_PER_CLASS = (1, 2, 5, 10, 20)
CHOOSING_DRAWS = (1001, 1002, 1003)  # the reported ones are 1, 2, ...


def load(fetch):
    """Views and numbered classes; a row of zeros becomes a row of NaN, which is an absent view."""
    X, y = fetch(return_X_y=True)
    blocks = {name: X[name].toarray() if hasattr(X[name], "toarray") else X[name] for name in X.names}
    blocks = {name: np.where(B.any(axis=1, keepdims=True), B, np.nan).astype(float) for name, B in blocks.items()}
    return Views(blocks), np.unique(y, return_inverse=True)[1].astype(float)


def grams(X, rows, transformer, kernel):
    """Kernel matrices of all rows, with scales and widths from `rows`."""
    X = PerView(transformer).fit(X[rows]).transform(X)
    kernels = resolve_kernels(dict.fromkeys(X.names, kernel), X[rows])
    return Views(dict(zip(X.names, view_grams(kernels, X), strict=True)), mask=X.mask, precomputed=True)


def draw_labels(y, train, seed, n_per_class):
    """Training rows that keep their labels; a larger draw of the same seed holds the smaller ones."""
    order = np.random.default_rng(seed).permutation(train)
    return np.concatenate([order[y[order] == label][:n_per_class] for label in np.unique(y)])


def joint_graph(K, n_neighbors=10):
    """The Laplacian of the nearest neighbors by the mean of the views' kernels, scaled to ones on its diagonal."""
    mean = sum(view_grams(dict.fromkeys(K.names, Precomputed()), K))
    lengths = np.sqrt(mean.diagonal())
    distances = np.maximum(1 - mean / lengths / lengths[:, None], 0)
    near = kneighbors_graph(distances, min(n_neighbors, len(K) - 1), metric="precomputed")
    return laplacian(near.maximum(near.T))


def fit(K, y, rows, labeled, *, graph="knn", **penalties):
    """The classifier on `rows`, with the labels of those that are `labeled`."""
    K, y = K[rows], np.where(np.isin(rows, labeled), y[rows], np.nan)
    graph = joint_graph(K) if graph == "joint" else graph
    return CoRegularizedRidgeClassifier("precomputed", graph=graph, **penalties).fit(K, y)


def choose(X, y, train, preparation):
    """Penalties of (a) and of (c), for test rows and for unlabeled ones; of equally good ones the first."""
    plain = [{"alpha": alpha} for alpha in ALPHAS]
    grid = itertools.product(ALPHAS, BETWEENS, WITHINS, GRAPHS)
    full = [{"alpha": a, "agreement_penalty": b, "graph_penalty": w, "graph": graph} for a, b, w, graph in grid]
    scores = np.zeros((len(plain + full), 2))  # counts of right rows, so that ties are exact
    for seed in CHOOSING_DRAWS:
        labeled = draw_labels(y, train, seed, 5)
        others = np.setdiff1d(train, labeled)
        unlabeled, left_out = train_test_split(others, test_size=1 / 3, stratify=y[others], random_state=seed)
        rows = np.concatenate([labeled, unlabeled])
        K = grams(X, rows, *preparation)
        for score, penalties in zip(scores, plain + full, strict=True):
            model = fit(K, y, rows, labeled, **penalties)
            score += [np.sum(model.predict(K[part]) == y[part]) for part in (left_out, unlabeled)]
    best = (part.argmax(axis=0) for part in np.split(scores, [len(plain)]))
    return [(plain[first], full[second]) for first, second in zip(*best, strict=True)]


def measure(K, y, train, test, chosen, seeds, n_per_class):
    """Percent right as (draws, 2, 3): on test and on unlabeled rows, by (a), (b), (c)."""
    results = []
    for seed in seeds:
        labeled = draw_labels(y, train, seed, n_per_class)
        for rows, (plain, full) in zip((test, np.setdiff1d(train, labeled)), chosen, strict=True):
            fits = (labeled, plain), (labeled, full), (train, full)
            models = [fit(K, y, taken, labeled, **penalties) for taken, penalties in fits]
            results.append([100 * model.score(K[rows], y[rows]) for model in models])
    return np.reshape(results, (-1, 2, 3))


def cells(results):
    """Mean ± deviation of (a), (b), (c), paired difference ± standard error; for test rows, then for unlabeled ones."""
    for part in (results[:, 0], results[:, 1]):
        yield from (f"{column.mean():.1f} ± {column.std(ddof=1):.1f}" for column in part.T)
        gain = part[:, 2] - part[:, 0]
        yield f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.1f}"


def show(table, markdown):
    """Print rows of text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for k, row in enumerate(table):
        line = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("| " + " | ".join(line) + " |" if markdown else "   ".join(line))
        if k == 0 and markdown:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help="the data sets")
    parser.add_argument("--draws", type=int, default=10, help="the number of draws of labels, at least 2")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    options = parser.parse_args()
    for name in options.set:
        fetch, *preparation = SETS[name]
        X, y = load(fetch)
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
        chosen = choose(X, y, train, preparation)
        share = 100 * np.bincount(y[test].astype(int)).max() / len(test)
        print(
            f"{name}: {len(X.names)} views, {len(np.unique(y))} classes (the largest {share:.1f} % of the test rows),"
        )
        print(f"{len(train)} training rows, {len(test)} test rows, {options.draws} draws of labels.")
        for rows, pair in zip(("test", "unlabeled"), chosen, strict=True):
            plain, full = (", ".join(f"{key}={value}" for key, value in given.items()) for given in pair)
            print(f"Chosen for {rows} rows: (a) {plain}; (b) and (c) {full}.")
        print()
        K = grams(X, train, *preparation)
        heads = [f"{rows} {what}" for rows in ("test", "unlabeled") for what in ("(a)", "(b)", "(c)", "(c)-(a)")]
        table = [["labels per class", *heads]]
        for n in LABELS_PER_CLASS:
            table.append([str(n), *cells(measure(K, y, train, test, chosen, range(1, 1 + options.draws), n))])
        show(table, options.markdown)


if __name__ == "__main__":
    main()
