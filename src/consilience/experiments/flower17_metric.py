"""Huusari, Kadri and Capponi (2018), Table 1 and Figure 3: a metric between seven views of flowers."""

import time
from functools import partial
from typing import Any

import numpy as np

from ..batch.metric import ViewMetricRidgeClassifier
from ..views.container import Views
from ._classification import ALL, FEW, LEARNED, LEVELS, Data, claims, measure, tables
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table, with_interval
from ._flower17 import DESCRIPTORS, flower_distances, flower_images
from ._metric import PAPER, tuned

PUBLISHED = {  # at 6, 12 and 24%
    "MVML": ("75.98 ± 2.62", "77.89 ± 2.41", "78.60 ± 1.41"),
    "MVMLsparse": ("75.71 ± 2.48", "77.43 ± 2.44", "78.60 ± 1.36"),
    "MVML_Cov": ("75.71 ± 2.19", "77.30 ± 2.36", "79.00 ± 1.75"),
    "MVML_I": ("76.03 ± 2.36", "78.36 ± 2.52", "79.19 ± 1.51"),
    "lpMKL": ("75.54 ± 2.61", "77.87 ± 2.52", "78.75 ± 1.58"),
    "OKL": ("68.73 ± 1.95", "75.19 ± 1.97", "76.76 ± 1.62"),
    "MLKR": ("63.82 ± 2.51", "64.41 ± 2.41", "65.44 ± 1.36"),
    "lfSVM": ("15.32 ± 1.94", "23.82 ± 2.38", "38.24 ± 2.31"),
    "1 view SVM": ("11.59 ± 1.54", "15.74 ± 1.54", "22.79 ± 0.79"),
}


def _data(cell: Cell, cached: Cached) -> Data:
    """Return a split with exp(-χ²/2σ²), where σ is the mean of √χ² over pairs of training rows."""
    y, (train, test) = flower_images().target, flower_images().splits[cell["draw"] % 3]
    if "rows" in cell:  # of a quick run
        train, test = train[: cell["rows"]], test[: cell["rows"]]
    rows = np.concatenate([train, test])
    names, grams = DESCRIPTORS[:2] if "rows" in cell else DESCRIPTORS, {}
    for name in names:
        squares = cached(
            f"χ² distances of {name}, {len(rows)} rows, split {cell['draw'] % 3}", partial(flower_distances, name, rows)
        )
        width = float(np.sqrt(squares[: len(train), : len(train)]).mean())
        grams[name] = np.exp(-squares / (2 * width**2))
    X, first = Views(grams, precomputed=True), np.arange(len(rows)) < len(train)
    return Data(X[first], y[train], X[~first], y[test], "precomputed")


def _cells(seeds: int, quick: bool) -> list[Cell]:
    if quick:
        methods = ("MVML", "MVMLsparse", ALL, "SVM")
        return [{"level": 0.12, "draw": 0, "method": method, "rows": 150} for method in methods]
    return [
        {"level": level, "draw": draw, "method": method}
        for level in LEVELS
        for draw in range(seeds)
        for method in (*LEARNED, ALL, FEW, "SVM")
    ]


def _measure(cell: Cell, cached: Cached) -> Found:
    data = _data(cell, cached)
    if cell["method"] == "MVMLsparse" and cell["level"] == 0.12:
        return _blocks(data, cell)
    return measure(data, cell, max_iter=2 if "rows" in cell else 50, most=100)


def _blocks(data: Data, cell: Cell) -> Found:
    """Return block norms of the chosen metric, and of the sparsest one whose leave-one-out accuracy is close to it."""
    start = time.perf_counter()
    model = tuned("MVMLsparse", data.kernels, cell["level"], cell["draw"]).fit(data.X, data.y)
    seconds, grid = time.perf_counter() - start, model.cv_results_
    close = grid["score"] >= model.best_score_ - 0.05
    penalty = float((grid["alpha"] * grid["metric_penalty"])[close].max())  # predictions depend on λη alone
    sparser = ViewMetricRidgeClassifier(
        data.kernels, metric="block_sparse", alpha=1.0, metric_penalty=penalty,
        n_components=cell["level"], random_state=cell["draw"],
    ).fit(data.X, data.y)  # fmt: skip
    found: Found = {"on training rows": 100 * model.best_score_, "seconds": seconds}
    for name, each in (("", model), (", sparser", sparser)):
        norms = each.metric_.block_norms()
        used = np.mean([np.diag(each.metric_.block_norms(k)) > 0 for k in range(len(each.classes_))], axis=0)
        found[f"accuracy{name}"] = 100 * float(np.mean(each.predict(data.X_test) == data.y_test))
        found[f"norms{name}"] = (norms / norms.max())[np.triu_indices(len(norms))].round(4)
        found[f"used{name}"] = used.round(4)  # by which share of the classes
    return found


def _tables(results: Results) -> list[Table]:
    sparse: dict[str, Any] = {"method": "MVMLsparse", "level": 0.12}
    names = DESCRIPTORS[: len(results.values("used", **sparse)[0])]
    found = tables(results, PUBLISHED)
    for title, part in (
        ("chosen penalties", ""),
        ("the largest penalties within five points of the best", ", sparser"),
    ):
        upper = np.zeros((len(names), len(names)))
        upper[np.triu_indices(len(names))] = results.values(f"norms{part}", **sparse).mean(axis=0)
        used = results.values(f"used{part}", **sparse).mean(axis=0)
        rows = [
            [name, *("" if x < v else f"{upper[v, x]:.2f}" for x in range(len(names))), f"{used[v]:.0%}"]
            for v, name in enumerate(names)
        ]
        accuracy = results.text(f"accuracy{part}", **sparse)
        heading = f"Figure 3: block norms of MVMLsparse at 12%, {title}, mean over draws, largest block 1; {accuracy}%"
        found.append(Table(heading, ["", *names, "classes that use the view"], rows))
    return found


def _claims(results: Results) -> list[Claim]:
    found = claims(
        results,
        PUBLISHED,
        svm_note="It holds as published, for C = 1 and machines that answer ±1. If C is chosen on training rows and "
        "the largest output decides, late fusion is about as good as MVML.",
        others_note="The paper does not state the inputs of OKL and MLKR. On Nyström features of all views both are "
        "about as good as MVML here.",
        svm_within=10.0,  # for other descriptors
    )
    used = results.values("used", method="MVMLsparse", level=0.12)
    sparser = results.values("used, sparser", method="MVMLsparse", level=0.12)
    lost = results.values("accuracy", method="MVMLsparse", level=0.12) - results.values(
        "accuracy, sparser", method="MVMLsparse", level=0.12
    )
    leaves_out = Claim(
        "At 12% MVMLsparse often leaves out views or pairs of views.",
        1 - float(np.mean(used)) > 0.05,
        f"{np.mean(used == 0):.0%} of the views are left out for every class, and a class leaves out "
        f"{1 - np.mean(used):.0%} of the views on average; {1 - np.mean(sparser):.0%} with larger penalties, for "
        f"{with_interval(lost)} points of accuracy",
        "The penalties with the best leave-one-out accuracy are small, so that the classes use nearly every view.",
    )
    return [*found, leaves_out]


FLOWER17 = Experiment(
    name="flower17-metric",
    title="A metric between views and other methods on Flower17",
    paper=PAPER,
    shown_in="Table 1, Flower17, and Figure 3",
    data="flower17",
    protocol="Seven descriptors, 17 classes of 80 flowers: 1,020 training and 340 test rows, three splits in turn. "
    "Kernels are exp(-χ²/2σ²), σ the mean of √χ² over pairs of training rows. Landmarks are 6, 12 and 24% of the "
    "training rows, the same in all views (lpMKL and OKL: each view has its own). λ = 1e-8, .., 10 and η = 1e-3, .., "
    "100 are chosen on training rows: by leave-one-out, for lpMKL (p = 2) and OKL by five folds. MLKR has one metric "
    "for each class and 50 steps on 100 principal components of the Nyström features of all views: of all rows, or of "
    "the landmark rows. SVMs are linear on Nyström features, one class against the rest. Late fusion is the sum of "
    "outputs. C = 1, or one of 1, 10 and 100 by three folds. The best view is the best one on test rows, as in the "
    "paper. Figure 3 has the chosen penalties, and the largest ones within five points of the best leave-one-out "
    "accuracy.",
    cells=_cells,
    measure=_measure,
    tables=_tables,
    claims=_claims,
    seeds=4,
    minutes=27,
    differences=(
        "The descriptors and splits are our own: the published ones are not at hand. Accuracies are comparable in "
        "kind alone.",
        "Our metrics are exact optima; the paper takes steps from the identity.",
        "The paper states neither its split, its folds nor the inputs of OKL, MLKR and SVM.",
    ),
)
EXPERIMENTS = (FLOWER17,)
