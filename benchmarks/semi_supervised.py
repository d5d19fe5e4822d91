"""What unlabeled rows are worth: accuracy against the number of labels per class, on three public sets of views.

Run by ``python benchmarks/semi_supervised.py [--set mfeat flower17 webkb] [--draws 10] [--markdown]``, with the data
files in the folder named by CONSILIENCE_DATA. Prints the chosen penalties and one table per set: percent of rows that
`CoRegularizedRidgeClassifier` gets right,

    (a) with labeled rows only and no penalty between or within views,
    (b) with the penalties of (c), but labeled rows only,
    (c) with all unlabeled training rows: views tied to each other (`between`) and smooth along graphs (`within`),

on test rows, which have no part in the fit, and on the unlabeled training rows. Mean ± standard deviation over draws of
labels, the same draws for all three; then the paired difference (c) - (a) ± its standard error.

Protocol. Half of the rows of each class are test rows, the same for all draws. Scaling, centering and kernel widths
come from all training rows without labels, for (a), (b) and (c) alike. Penalties are chosen once per set, on three draws
of 5 labels per class that are not among the reported ones. There a third of the other training rows is left out of the
fit. The penalties best on the rows left out are used for the test rows, those best on the unlabeled rows in the fit for
the unlabeled rows; the alpha of (a) in the same way. So the labels of the training rows serve as a validation set, and
the figures on unlabeled rows share rows (not draws) with the choice. Test rows take no part in any choice.

Graphs to choose from: the ten nearest neighbors in each view ("knn"), or by the mean of the views' kernels ("joint"), or
the kernel's values ("kernel_normalized", for kernels without negative values). The learner has no offset, so the words
of WebKB, with 78 % of the pages in one class, are centered; a page or link without words is an absent view. Flower17 is
seven descriptors of our own, their visual words found without labels on all images, test images too.
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
CHOOSING_DRAWS = (1001, 1002, 1003)  # the reported ones are 1, 2, ...


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


def choose(X, y, train, candidates):
    """The candidate best on rows left out of the fit, and that best on unlabeled rows in the fit; of equal the first."""
    scores = np.zeros((len(candidates), 2))
    for seed in CHOOSING_DRAWS:
        labeled = draw_labels(y, train, seed, 5)
        others = np.setdiff1d(train, labeled)
        unlabeled, left_out = train_test_split(others, test_size=1 / 3, stratify=y[others], random_state=seed)
        for k, penalties in enumerate(candidates):
            model = fit(X, y, np.concatenate([labeled, unlabeled]), labeled, **penalties)
            scores[k] += [model.score(X[rows], y[rows]) for rows in (left_out, unlabeled)]
    return [candidates[k] for k in scores.argmax(axis=0)]


def measure(X, y, train, test, chosen, seeds, n_per_class):
    """Percent right as (draws, 2, 3): on test and on unlabeled rows, by (a), (b), (c)."""
    results = []
    for seed in seeds:
        labeled = draw_labels(y, train, seed, n_per_class)
        for rows, (plain, full) in zip((test, np.setdiff1d(train, labeled)), chosen, strict=True):
            fits = (labeled, plain), (labeled, full), (train, full)
            models = [fit(X, y, taken, labeled, **penalties) for taken, penalties in fits]
            results.append([100 * model.score(X[rows], y[rows]) for model in models])
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


def words(penalties):
    return ", ".join(f"{key}={value}" for key, value in penalties.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help="the data sets")
    parser.add_argument("--draws", type=int, default=10, help="the number of draws of labels, at least 2")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    options = parser.parse_args()
    for name in options.set:
        *preparation, graphs = SETS[name]
        X, y, train, test = load(*preparation)
        plain = [{"alpha": alpha} for alpha in ALPHAS]
        grid = itertools.product(ALPHAS, BETWEENS, WITHINS, graphs)
        full = [{"alpha": a, "between": b, "within": w, "graph": graph} for a, b, w, graph in grid]
        chosen = list(zip(choose(X, y, train, plain), choose(X, y, train, full), strict=True))
        share = 100 * np.bincount(y[test].astype(int)).max() / len(test)
        print(
            f"{name}: {len(X.names)} views, {len(np.unique(y))} classes (the largest {share:.1f} % of the test rows),"
        )
        print(f"{len(train)} training rows, {len(test)} test rows, {options.draws} draws of labels.")
        for rows, penalties in zip(("test", "unlabeled"), chosen, strict=True):
            print(f"For {rows} rows: (a) {words(penalties[0])}; (b) and (c) {words(penalties[1])}.")
        print()
        heads = [f"{rows}: {what}" for rows in ("test", "unlabeled") for what in ("(a)", "(b)", "(c)", "(c)-(a)")]
        table = [["labels per class", *heads]]
        for n in LABELS_PER_CLASS:
            results = measure(X, y, train, test, chosen, range(1, 1 + options.draws), n)
            table.append([str(n), *cells(results)])
        show(table, options.markdown)


if __name__ == "__main__":
    main()
