"""MMP, OMMP and perceptrons on a9a and 20 Newsgroups by p (Fornoni 2009, 4.2.1 and 4.2.2): error rates of one pass.

python benchmarks/matrix_perceptrons.py [a9a] [gaussian] [news20] [unequal] [prior] [--jobs 2] [--orders N] [--rows N];
a9a and news20 by default; gaussian takes 45 minutes of one core.

a9a: 32,561 training rows, the first 122 columns cut into 2 to 6 views of one width, 10 orders of the rows, p = 1..20,
linear kernel. gaussian: the same with two views and a Gaussian kernel, its γ one over the mean squared distance of the
first 1,000 rows (of both views together for the perceptron on both, of the views for the others). news20: presence of
words and word pairs, 5 orders, p = 1..20, the columns cut into K = 2..6 views of one width, rows of each view of length
1; the two classes are comp, misc, sci against the others. Columns are in the order of how often they occur; --columns
says whether they are cut so ("cut"), after a random permutation ("shuffled"), or dealt out one after the other
("interleaved"): MMP multiplies columns at the same position of two views. Data are in the folder CONSILIENCE_DATA.

Printed: the mean error rate in percent over the orders by p; below, the best p, what it gains over the perceptron on
all columns, and how far MMP is from OMMP, with standard errors of the differences by order.

unequal: MMP on views of different widths, padded with zeros or repeated (the thesis's future work), and OMMP, which
needs neither. Views of digits and mfeat, a9a cut into two views, and make_views. Columns have mean 0 and variance 1,
rows of a view a mean squared length of 1, except for a9a. Columns of the table: padded; repeated; repeated, with views
scaled so that their length is the same after it; OMMP; padded less repeated with its standard error. Error rates in
percent, mean ± standard deviation over 10 orders: those on the way of one pass ("last"), and of the average of half a
pass on the other half of the rows.

prior: OMMP with prior norms 0, 1, 10 and learned ones, p = 2, 3, 5, 10, and the perceptron (p = 1); one pass.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone

from consilience import KernelPerceptron, MatrixPerceptron, OnlinePerceptron, OrthogonalPerceptron, Views
from consilience.datasets import (
    fetch_mfeat,
    fetch_three_sources,
    fetch_uwave,
    fetch_webkb,
    load_breast_cancer_views,
    load_digits_views,
    make_views,
)
from consilience.experiments._tables import load_set
from consilience.kernels import RBF
from consilience.kernels._distances import squared_distances

PUBLISHED = {"fit_intercept": False}  # as in the thesis
POWERS = tuple(range(1, 21))


def a9a_views(n_views):
    X, y, _ = load_set("a9a")
    X = X[:32561]
    width = 122 // n_views
    return Views({f"view{k}": X[:, k * width : (k + 1) * width] for k in range(n_views)}), y[:32561]


def news20_views(n_views, columns):
    X, groups, _ = load_set("news20_pairs")
    X = sp.csc_array(X.astype(np.float32))
    width = X.shape[1] // n_views
    places = {
        "cut": np.arange(width * n_views),
        "shuffled": np.random.default_rng(0).permutation(X.shape[1])[: width * n_views],
        "interleaved": np.arange(width * n_views).reshape(width, n_views).T.ravel(),
    }[columns]
    views = {}
    for k in range(n_views):
        part = sp.csr_array(X[:, places[k * width : (k + 1) * width]])
        part.sort_indices()
        counts = np.maximum(np.diff(part.indptr), 1)
        part.data /= np.repeat(np.sqrt(counts), np.diff(part.indptr)).astype(np.float32)
        views[f"view{k}"] = part
    y = np.isin([str(group).split(".")[0] for group in groups], ["comp", "misc", "sci"]).astype(int)
    return Views(views), y


def errors(X, y, order, p, kernel=None, joint=None):
    """Return error rates of one pass in one order: MMP and OMMP for one p, or each view alone and all columns."""
    rows = np.random.default_rng(order).permutation(len(y))
    X, y = X[rows], y[rows]
    given = {"kernel": "linear" if kernel is None else kernel, "budget": None}  # as published
    if p is not None:
        models = {
            "MMP": MatrixPerceptron(**given, **PUBLISHED, p=p),
            "OMMP": OrthogonalPerceptron(**given, **PUBLISHED, p=p),
        }
        return {(name, p): percent(model.partial_fit(X, y)) for name, model in models.items()}
    found = {name: OrthogonalPerceptron(**given, **PUBLISHED).partial_fit(X[[name]], y) for name in X.names}
    if kernel is None:
        found["all columns"] = OnlinePerceptron(fit_intercept=False).partial_fit(X, y)
    else:
        both = np.hstack([X[name].toarray() for name in X.names])
        found["all columns"] = KernelPerceptron(joint, budget=None).partial_fit(both, y)
    return {name: percent(model) for name, model in found.items()}


def unequal_sets():
    """Yield names, views of different widths and classes."""
    for name, load in (("digits", load_digits_views), ("mfeat", fetch_mfeat)):
        X, y = load(return_X_y=True)
        yield name, scaled(X), y
    A, y, _ = load_set("a9a")
    for first in (12, 24, 41):  # ratios of widths of about 9, 4 and 2
        views = Views(a=A[:32561, :first].toarray(), b=A[:32561, first:122].toarray())
        yield f"a9a, {first} and {122 - first} columns", views, y[:32561]
    for wide in (20, 40, 80):
        X, y = make_views(3000, informative=2, noise=0, n_features=(10, wide), class_sep=1.5, random_state=0)
        yield f"make_views, 10 and {wide} columns", scaled(X), y


def prior_sets():
    """Yield names, views and classes: first those on which the rule of learned prior norms was chosen, then others."""
    for name, load in (
        ("digits", load_digits_views), ("mfeat", fetch_mfeat), ("breast cancer", load_breast_cancer_views)
    ):  # fmt: skip
        X, y = load(return_X_y=True)
        yield name, scaled(X), y
    yield "a9a, 3 views", *a9a_views(3)
    for informative, noise in ((3, 0), (1, 5)):
        X, y = make_views(3000, informative=informative, noise=noise, class_sep=1.5, random_state=0)
        yield f"make_views, {informative} of {informative + noise} informative", scaled(X), y
    for name, columns in (("satimage", 4), ("optdigits", 4), ("page_blocks", 2)):  # columns dealt out to views
        A, y, _ = load_set(name)
        yield f"{name}, {columns} views", scaled(Views({f"v{k}": A[:, k::columns] for k in range(columns)})), y
    for name, load in (("uWave", fetch_uwave), ("WebKB", fetch_webkb), ("3 sources", fetch_three_sources)):
        X, y = load(return_X_y=True)
        yield name, scaled(X), y


def scaled(X):
    """Columns of mean 0 and variance 1, rows of each view of mean squared length 1."""
    views = {}
    for name in X.names:
        A = X[name].toarray() if sp.issparse(X[name]) else X[name]
        A = np.asarray(A, dtype=np.float64)
        A = (A - A.mean(axis=0)) / np.maximum(A.std(axis=0), 1e-9)
        views[name] = A / np.sqrt((A**2).sum(axis=1).mean())
    return Views(views)


def one_pass(model, X, y, order):
    """Return the error rates of one pass, and of the average of half a pass on the other half of the rows."""
    rows = np.random.default_rng(order).permutation(len(y))
    X, y, half = X[rows], y[rows], len(y) // 2
    whole = clone(model).partial_fit(X, y, classes=np.unique(y))
    mean = clone(model).set_params(average=True).partial_fit(X[:half], y[:half], classes=np.unique(y))
    return percent(whole), 100 * (1 - mean.score(X[half:], y[half:]))


def report_unequal(name, X, y, orders, jobs):
    widest = max(X[v].shape[1] for v in X.names)
    # repetition makes narrow views longer: here they have the same length after it
    level = Views({v: X[v] * np.sqrt(X[v].shape[1] / widest) for v in X.names})
    pad, repeat = (MatrixPerceptron(unequal=how, **PUBLISHED) for how in ("pad", "repeat"))
    kinds = [(pad, X), (repeat, X), (repeat, level), (OrthogonalPerceptron(**PUBLISHED), X)]
    for p in (2, 5):
        tasks = [(clone(model).set_params(p=p), views, order) for model, views in kinds for order in range(orders)]
        found = Parallel(n_jobs=jobs)(delayed(one_pass)(model, views, y, order) for model, views, order in tasks)
        found = np.reshape(found, (len(kinds), orders, 2))
        for k, kind in enumerate(("last", "average")):
            cells = " | ".join(f"{row.mean():.2f} ± {row.std(ddof=1):.2f}" for row in found[..., k])
            gap = found[0, :, k] - found[1, :, k]
            print(f"| {name} | {p} | {kind} | {cells} | {gap.mean():+.2f} ± {standard_error(gap):.2f} |", flush=True)


def report_prior(name, X, y, orders, jobs):
    given = (None, 1.0, 10.0, "learned")
    models = [OrthogonalPerceptron(p=p, prior_norms=b, **PUBLISHED) for p in (2, 3, 5, 10) for b in given]
    models = [OrthogonalPerceptron(p=1, **PUBLISHED), *models]
    tasks = [(model, order) for model in models for order in range(orders)]
    found = Parallel(n_jobs=jobs)(delayed(one_pass)(model, X, y, order) for model, order in tasks)
    found = np.reshape(found, (len(models), orders, 2))[..., 0]
    cells = [f"{row.mean():.2f} ± {row.std(ddof=1):.2f}" for row in found]
    print(f"| {name} | 1 | {cells[0]} | | | |")
    for k, p in enumerate((2, 3, 5, 10)):
        print(f"| | {p} | {' | '.join(cells[1 + len(given) * k : 1 + len(given) * (k + 1)])} |", flush=True)


def percent(model):
    return 100 * model.n_mistakes_ / model.n_samples_seen_


def report(title, runs):
    mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
    print(f"\n{title}: error in percent, {len(runs)} orders")
    alone = ", ".join(f"{mean[name]:.2f}" for name in mean if isinstance(name, str) and name != "all columns")
    print(f"  views alone {alone}; perceptron on all columns {mean['all columns']:.2f}")
    print("  p    " + " ".join(f"{p:>5}" for p in POWERS))
    for kind in ("MMP", "OMMP"):
        print(f"  {kind:<4} " + " ".join(f"{mean[kind, p]:5.2f}" for p in POWERS))
    for kind in ("MMP", "OMMP"):
        best = min(POWERS, key=lambda p: mean[kind, p])
        gains = np.array([run["all columns"] - run[kind, best] for run in runs])
        gain = f"{gains.mean():+.2f} ± {standard_error(gains):.2f} points"
        print(f"  {kind} at its best p = {best}: {gain} over the perceptron")
    gaps = np.array([[run["MMP", p] - run["OMMP", p] for p in POWERS] for run in runs])
    most = int(np.abs(gaps.mean(axis=0)).argmax())
    print(
        f"  MMP less OMMP: {gaps.mean():+.3f} over all p; at most {gaps[:, most].mean():+.3f} ± "
        f"{standard_error(gaps[:, most]):.3f}, at p = {POWERS[most]}"
    )


def standard_error(values):
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def mean_distance(A):
    distances = squared_distances(A[:1000].toarray() if sp.issparse(A) else A[:1000])
    return float(distances.mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["a9a", "gaussian", "news20", "unequal", "prior", []], default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--orders", type=int, help="fewer orders of the rows")
    parser.add_argument("--rows", type=int, help="fewer rows")
    parser.add_argument("--views", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--columns", choices=["cut", "shuffled", "interleaved"], default="cut")
    given = parser.parse_args()
    for part in given.parts or ("a9a", "news20"):
        if part in ("unequal", "prior"):
            show = report_unequal if part == "unequal" else report_prior
            for name, X, y in unequal_sets() if part == "unequal" else prior_sets():
                show(name, X, y, given.orders or 10, given.jobs)
            continue
        for n_views in given.views if part != "gaussian" else [2]:
            X, y = news20_views(n_views, given.columns) if part == "news20" else a9a_views(n_views)
            X, y = X[: given.rows], y[: given.rows]
            kernel = joint = None
            if part == "gaussian":
                sizes = [mean_distance(X[name]) for name in X.names]
                kernel, joint = RBF(1 / np.mean(sizes)), RBF(1 / np.sum(sizes))
            orders = given.orders or (5 if part == "news20" else 10)
            tasks = [(order, p) for order in range(orders) for p in (None, *POWERS)]
            parts = Parallel(n_jobs=given.jobs)(delayed(errors)(X, y, *task, kernel, joint) for task in tasks)
            runs = [{} for _ in range(orders)]
            for (order, _), found in zip(tasks, parts, strict=True):
                runs[order].update(found)
            report(f"{part}, {n_views} views", runs)
