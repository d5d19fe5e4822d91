"""What unlabeled rows are worth: accuracy against the number of labels per class, on three public sets of views.

Run by ``python benchmarks/semi_supervised.py [--set mfeat flower17 webkb] [--draws 10] [--markdown]``; the data files are
looked for in the folder named by CONSILIENCE_DATA. Prints the chosen penalties and one table per set: percent of rows
that `CoRegularizedRidgeClassifier` gets right,

    (a) with labeled rows only and no penalty between or within views,
    (b) with the penalties of (c), but labeled rows only,
    (c) with all unlabeled training rows: views tied to each other (`between`) and smooth along graphs (`within`),

on test rows, which have no part in the fit, and on the unlabeled training rows. Mean ± standard deviation over draws of
labels, the same draws for all three; then the paired difference (c) - (a) ± its standard error.

Protocol. Half of the rows, by class, are test rows, the same for all draws. Scaling, centering and kernel widths come
from all training rows without labels, for (a), (b) and (c) alike. Draw 0 chooses the penalties, once per set: at 5 labels
per class, by the accuracy on its unlabeled training rows, whose labels thus serve as a validation set. The alpha of (a)
is chosen in the same way. Draws 1, 2, ... are reported with these penalties for every number of labels. Test rows never
take part in a choice, so theirs are the clean figures; those on unlabeled rows share rows (not draws) with the choice.

Graphs to choose from: ten nearest neighbors in each view ("knn"), or in all views at once by the mean of the kernels
("joint"), or the kernel's values ("kernel_normalized", for kernels without negative values). The learner has no offset,
so the words of WebKB, with 78 % of the pages in one class, are centered; a page or link without words is an absent view.
Flower17 is seven descriptors of our own, their visual words found without labels on all images, test images too.
"""

import argparse
import itertools

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import Normalizer, StandardScaler

from consilience import CoRegularizedRidgeClassifier, PerView, Views
from consilience.datasets import fetch_flower17, fetch_mfeat, fetch_webkb
from consilience.graphs import laplacian
from consilience.kernels import RBF, ChiSquared, Linear, Precomputed, resolve_kernels, view_grams

SETS = {  # fetcher, preprocessing and kernel of every view, graphs
    "mfeat": (fetch_mfeat, StandardScaler(), RBF("scale"), ("knn", "joint", "kernel_normalized")),
    "flower17": (fetch_flower17, Normalizer("l1"), ChiSquared(), ("knn", "joint", "kernel_normalized")),
    "webkb": (fetch_webkb, StandardScaler(with_std=False), Linear(), ("knn", "joint")),
}
ALPHAS, BETWEENS, WITHINS = (1e-5, 1e-4, 1e-3), (1e-8, 1e-6, 1e-4), (1e-7, 1e-6, 1e-5, 1e-4)
LABELS_PER_CLASS = (1, 2, 5, 10, 20)


def load(fetch, transformer, kernel):
    """Gram matrices of all rows as Views, numbered classes, training and test rows."""
    X, y = fetch(return_X_y=True)
    y = np.unique(y, return_inverse=True)[1].astype(float)
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    X = Views({name: dense(X[name]) for name in X.names})
    X = PerView(transformer).fit(X[train]).transform(X)
    kernels = resolve_kernels(dict.fromkeys(X.names, kernel), X[train])
    grams = dict(zip(X.names, view_grams(kernels, X), strict=True))
    return Views(grams, mask=X.mask, precomputed=True), y, train, test


def dense(block):
    """A view in double precision; a row of zeros becomes a row of NaN, which is an absent view."""
    block = np.array(block.toarray() if hasattr(block, "toarray") else block, dtype=float)
    block[~block.any(axis=1)] = np.nan
    return block


def draw_labels(y, train, seed, n_per_class):
    """Training rows that keep their labels; a larger draw of the same seed holds the smaller ones."""
    order = np.random.default_rng(seed).permutation(train)
    return np.concatenate([order[y[order] == label][:n_per_class] for label in np.unique(y)])


def joint_graph(X, n_neighbors=10):
    """The Laplacian of the nearest neighbors by the mean of the views' kernels, scaled to ones on its diagonal."""
    K = sum(view_grams(dict.fromkeys(X.names, Precomputed()), X))
    lengths = np.sqrt(K.diagonal())
    distances = np.maximum(1 - K / lengths / lengths[:, None], 0)
    near = kneighbors_graph(distances, min(n_neighbors, len(X) - 1), metric="precomputed")
    return laplacian(near.maximum(near.T))


def fit(X, y, rows, labeled, *, graph="knn", **penalties):
    """The classifier on `rows`, with the labels of those that are `labeled`."""
    X, y = X[rows], np.where(np.isin(rows, labeled), y[rows], np.nan)
    graph = joint_graph(X) if graph == "joint" else graph
    return CoRegularizedRidgeClassifier("precomputed", graph=graph, **penalties).fit(X, y)


def choose(X, y, train, graphs):
    """The alpha of (a) and the penalties of (c), by draw 0; of equal ones the first."""
    labeled = draw_labels(y, train, 0, 5)
    unlabeled = np.setdiff1d(train, labeled)
    plain = [{"alpha": alpha} for alpha in ALPHAS]
    grid = itertools.product(ALPHAS, BETWEENS, WITHINS, graphs)
    full = [dict(zip(("alpha", "between", "within", "graph"), values, strict=True)) for values in grid]

    def accuracy(penalties):
        return fit(X, y, train, labeled, **penalties).score(X[unlabeled], y[unlabeled])

    return max(plain, key=accuracy), max(full, key=accuracy)


def measure(X, y, train, test, plain, full, seeds, n_per_class):
    """Percent right as (draws, 2, 3): test and unlabeled rows, by (a), (b), (c)."""
    results = []
    for seed in seeds:
        labeled = draw_labels(y, train, seed, n_per_class)
        unlabeled = np.setdiff1d(train, labeled)
        models = [
            fit(X, y, labeled, labeled, **plain),
            fit(X, y, labeled, labeled, **full),
            fit(X, y, train, labeled, **full),
        ]
        results.append([[100 * model.score(X[rows], y[rows]) for model in models] for rows in (test, unlabeled)])
    return np.array(results)


def cells(results):
    """Mean ± deviation of (a), (b), (c), and the paired difference ± its standard error, for test and unlabeled rows."""
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
        *preparation, graphs = SETS[name]
        X, y, train, test = load(*preparation)
        plain, full = choose(X, y, train, graphs)
        share = 100 * np.bincount(y[test].astype(int)).max() / len(test)
        print(
            f"{name}: {len(X.names)} views, {len(np.unique(y))} classes (the largest {share:.1f} % of the test rows),"
        )
        print(f"{len(train)} training rows, {len(test)} test rows, {options.draws} draws of labels.")
        print(f"(a) {plain}; (b), (c) {full}", end="\n\n")
        heads = [f"{rows}: {what}" for rows in ("test", "unlabeled") for what in ("(a)", "(b)", "(c)", "(c)-(a)")]
        table = [["labels per class", *heads]]
        for n in LABELS_PER_CLASS:
            results = measure(X, y, train, test, plain, full, range(1, 1 + options.draws), n)
            table.append([str(n), *cells(results)])
        show(table, options.markdown)


if __name__ == "__main__":
    main()
