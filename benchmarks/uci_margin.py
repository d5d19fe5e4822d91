"""Table 3 of Szedmak, Shawe-Taylor and Parrado-Hernandez (2006): python benchmarks/uci_margin.py [set ...] [--choose-C]

With --vectors means centered_means (or others of MaxMarginClassifier), other class vectors in place of the two there.

Maximum margin regression on seven UCI sets, whose files are in the folder CONSILIENCE_DATA. Prints test errors in
percent and the published ones, standard errors, the chosen σ and seconds, for two kinds of class vectors (corners of a
hyper-tetrahedron, indicators) and three normalizations (none, by item, by variable).

Protocol, as far as the paper states it: Gaussian kernels exp(-‖x - z‖²/2σ²), no intercept, σ in 0.001·2^i, i = 0 .. 20,
by the best mean accuracy of 5-fold cross-validation on training rows, the smallest of equals. Sets with a split of
their own are tested on it; others by an outer 5-fold cross-validation, whose errors are averaged, with --draws over
several draws of folds. Normalization by variable is learned on training rows alone.

The paper does not state C. --C sets it (1); several values, or --choose-C (0.1, 1, 10 and 100), are searched with σ. It
does not state how folds are drawn: here at random and stratified, with --plain not stratified. All columns of a set
make one table; the sex of abalone is three 0/1 columns. The standard error is sqrt(p(1 - p)/n), n the number of test
rows. Seconds are those of all fits of a column, in one thread, and of one fit with the chosen parameters.
"""

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import Normalizer, StandardScaler

import consilience as cs
from consilience.datasets import fetch_spectrometer
from consilience.experiments._tables import load_set
from consilience.kernels import RBF

SIGMAS = 0.001 * 2.0 ** np.arange(21)
COLUMNS = [(vectors, normalize) for vectors in ("simplex", "indicator") for normalize in (None, "item", "variable")]
PUBLISHED = {
    "abalone": (73.0, 73.0, 73.4, 73.9, 73.0, 74.1),
    "glass": (27.3, 27.6, 29.2, 26.4, 29.0, 29.0),
    "optdigits": (2.0, 1.6, 3.3, 2.1, 1.9, 3.3),
    "page_blocks": (4.4, 3.4, 3.7, 4.5, 3.6, 3.3),
    "satimage": (8.2, 17.5, 8.6, 8.7, 17.7, 9.1),
    "spectrometer": (99.5, 37.5, 53.9, 99.6, 38.4, 53.3),
    "yeast": (41.6, 40.6, 40.3, 42.6, 41.6, 40.9),
}


def load(name):
    """Return all columns as one table, the classes, and the set's own split, if it has one."""
    if name != "spectrometer":
        return load_set(name)
    views, y = fetch_spectrometer(return_X_y=True)
    return np.hstack([views[view] for view in views.names]), y, []


def folds(y, rows, seed, plain):
    """Return five pairs of training and test rows."""
    parts = KFold(5, shuffle=True, random_state=seed) if plain else StratifiedKFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes of fewer than five rows
        return [(rows[train], rows[test]) for train, test in parts.split(rows, y[rows])]


def accuracies(X, y, train, test, column, settings):
    """Return the test accuracy for every (C, σ), whether the gap was reached, and seconds of the fit."""
    vectors, normalize = column
    train_rows, test_rows = X[train], X[test]
    if normalize is not None:
        scaler = (Normalizer() if normalize == "item" else StandardScaler()).fit(train_rows)
        train_rows, test_rows = scaler.transform(train_rows), scaler.transform(test_rows)
    found = np.empty((len(settings), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
        for k, (C, sigma) in enumerate(settings):
            model = cs.MaxMarginClassifier(RBF(1 / (2 * sigma**2)), C=C, class_vectors=vectors)
            start = time.perf_counter()
            model.fit(train_rows, y[train])
            took = time.perf_counter() - start
            found[k] = model.score(test_rows, y[test]), model.solution_.converged, took
    return found


def run(name, options):
    X, y, splits = load(name)
    own = bool(splits)
    if not own:
        splits = [pair for draw in range(options.draws) for pair in folds(y, np.arange(len(y)), draw, options.plain)]
    settings = [(C, sigma) for C in options.C for sigma in SIGMAS]
    start = time.perf_counter()
    pairs = [(s, c) for s in range(len(splits)) for c in range(len(COLUMNS))]
    with Parallel(n_jobs=options.jobs) as parallel:
        inner = [folds(y, train, 1000 + s, options.plain) for s, (train, _) in enumerate(splits)]
        held = parallel(
            delayed(accuracies)(X, y, train, test, COLUMNS[c], settings) for s, c in pairs for train, test in inner[s]
        )
        held = np.reshape(held, (len(splits), len(COLUMNS), 5, len(settings), 3))
        chosen = held[..., 0].mean(axis=2).argmax(axis=2)
        tested = parallel(delayed(accuracies)(X, y, *splits[s], COLUMNS[c], [settings[chosen[s, c]]]) for s, c in pairs)
    tested = np.reshape(tested, (len(splits), len(COLUMNS), 3))
    errors = 100 * (1 - tested[..., 0].mean(axis=0))
    n_test = len(splits[0][1]) if own else len(y)
    how = f"{len(splits[0][0])} training and {n_test} test rows" if own else f"{n_test} rows, 5 folds x {options.draws}"
    level = f"C = {', '.join(format(C, 'g') for C in options.C)}"
    print(f"\n{name}: {how}, {X.shape[1]} columns, {len(np.unique(y))} classes, {level}")
    print(f"{'':18}" + "".join(f"{vectors:>17}" for vectors, _ in COLUMNS))
    print(f"{'':18}" + "".join(f"{normalize or 'none':>17}" for _, normalize in COLUMNS))
    published = PUBLISHED[name] if options.vectors == ["simplex", "indicator"] else None
    if published:
        show("published", published, ".1f")
    show("ours", errors, ".1f")
    if published:
        show("difference", errors - published, "+.1f")
    show("standard error", np.sqrt(errors * (100 - errors) / n_test), ".1f")
    picked = np.array(settings)[chosen]
    show("σ, median", np.median(picked[..., 1], axis=0), ".4g")
    if len(options.C) > 1:
        show("C, median", np.median(picked[..., 0], axis=0), "g")
    show("seconds, all fits", held[..., 2].sum(axis=(0, 2, 3)) + tested[..., 2].sum(axis=0), ".1f")
    show("seconds, one fit", tested[..., 2].mean(axis=0), ".3f")
    show("short of the gap", 100 * (1 - held[..., 1].mean(axis=(0, 2, 3))), ".1f", "% of the fits in the choice")
    show("", 100 * (1 - tested[..., 1].mean(axis=0)), ".1f", "% of the fits tested")
    print(f"{time.perf_counter() - start:.0f} seconds", flush=True)


def show(label, values, form, note=""):
    print(f"{label:18}" + "".join(f"{format(value, form):>17}" for value in values) + f"  {note}".rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="*", choices=[*PUBLISHED, []], default=[])
    parser.add_argument("--C", nargs="+", type=float, default=[1.0], help="weights of the errors to choose from")
    parser.add_argument("--choose-C", action="store_const", dest="C", const=[0.1, 1.0, 10.0, 100.0])
    parser.add_argument("--draws", type=int, default=1, help="draws of outer folds, for sets without a split")
    parser.add_argument("--plain", action="store_true", help="folds that are not stratified")
    parser.add_argument("--vectors", nargs="+", default=["simplex", "indicator"], help="class vectors")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    COLUMNS = [(vectors, normalize) for vectors in options.vectors for normalize in (None, "item", "variable")]
    for name in options.set or PUBLISHED:
        run(name, options)
