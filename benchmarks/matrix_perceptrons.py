"""Matrix perceptrons on views of different widths, and with prior norms: open questions of Fornoni (2009), chapter 5.

python benchmarks/matrix_perceptrons.py [unequal] [prior] [--jobs 2] [--orders 10]; both by default. Data are in the
folder CONSILIENCE_DATA. The thesis's own experiments: ``consilience reproduce --list``.

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

from consilience import MatrixPerceptron, OrthogonalPerceptron, Views
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

PUBLISHED = {"fit_intercept": False}  # as in the thesis


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
    A, y, _ = load_set("a9a")
    yield "a9a, 3 views", Views({f"view{k}": A[:32561, 40 * k : 40 * (k + 1)] for k in range(3)}), y[:32561]
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


def standard_error(values):
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["unequal", "prior", []], default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--orders", type=int, default=10, help="number of orders of the rows")
    given = parser.parse_args()
    parts = {"unequal": (unequal_sets, report_unequal), "prior": (prior_sets, report_prior)}
    for part in given.parts or parts:
        sets, show = parts[part]
        for name, X, y in sets():
            show(name, X, y, given.orders, given.jobs)
