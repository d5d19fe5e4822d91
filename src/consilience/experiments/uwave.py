"""Huusari, Kadri and Capponi (2018), Table 1: a metric between the three axes of uWave gestures, and other methods."""

from functools import lru_cache

import numpy as np
from sklearn.metrics import pairwise_distances

from ..datasets import fetch_uwave
from ..kernels import RBF
from ..views.container import Views
from ._classification import ALL, FEW, LEARNED, LEVELS, Data, claims, measure, tables
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results
from ._metric import PAPER

METRIC_DRAWS = 4  # MLKR takes most of the time, so it has the number of draws of the paper
PUBLISHED = {  # at 6, 12 and 24%
    "MVML": ("92.67 ± 0.21", "93.03 ± 0.11", "92.59 ± 0.99"),
    "MVMLsparse": ("92.68 ± 0.17", "92.86 ± 0.26", "93.26 ± 0.15"),
    "MVML_Cov": ("92.34 ± 0.20", "92.53 ± 0.18", "92.66 ± 0.05"),
    "MVML_I": ("92.34 ± 0.19", "92.59 ± 0.13", "93.10 ± 0.11"),
    "lpMKL": ("92.34 ± 0.18", "92.48 ± 0.21", "92.85 ± 0.13"),
    "OKL": ("70.09 ± 1.07", "74.07 ± 0.26", "76.65 ± 0.33"),
    "MLKR": ("71.09 ± 0.94", "80.22 ± 0.38", "86.38 ± 0.31"),
    "efSVM": ("80.00 ± 0.74", "82.29 ± 0.63", "84.07 ± 0.23"),
    "lfSVM": ("71.24 ± 0.41", "72.53 ± 0.16", "72.99 ± 0.06"),
    "1 view SVM": ("56.54 ± 0.38", "57.50 ± 0.17", "58.01 ± 0.05"),
}


@lru_cache(maxsize=1)
def uwave_data(rows: int | None = None) -> Data:
    """Return the gestures with exp(-‖x - z‖²/2σ²), σ the mean distance of training rows; or few of the rows."""
    data = fetch_uwave()
    train, test = (part[:rows] if rows else part for part in data.splits[0])
    views = Views({name: data.data[name].astype(np.float64) for name in data.data.names})
    joint = Views(joint=np.hstack([views[name] for name in views.names]))
    kernels = {
        name: RBF(1 / (2 * float(pairwise_distances(X[name][train]).mean()) ** 2))
        for X in (views, joint)
        for name in X.names
    }
    one = joint[train], joint[test], kernels.pop("joint")
    return Data(views[train], data.target[train], views[test], data.target[test], kernels, one)


def _cells(seeds: int, quick: bool) -> list[Cell]:
    if quick:
        return [{"level": 0.06, "draw": 0, "method": method, "rows": 120} for method in ("MVML", "MVML_I", ALL, "SVM")]
    return [
        {"level": level, "draw": draw, "method": method}
        for level in LEVELS
        for draw in range(seeds)
        for method in (*LEARNED, ALL, FEW, "SVM")
        if draw < METRIC_DRAWS or method not in (ALL, FEW)
    ]


def _measure(cell: Cell, cached: Cached) -> Found:
    return measure(uwave_data(cell.get("rows")), cell, max_iter=2 if "rows" in cell else 50)


def _claims(results: Results) -> list[Claim]:
    return claims(
        results,
        PUBLISHED,
        svm_note="It holds as published, for C = 1 and machines that answer ±1. If C is chosen on training rows and "
        "the largest output decides, an SVM on all columns is as good as MVML or better.",
        others_note="The paper does not state the inputs of OKL and MLKR. On Nyström features of all views both are "
        "much better than published.",
    )


UWAVE = Experiment(
    name="uwave",
    title="A metric between views and other methods on uWave gestures",
    paper=PAPER,
    shown_in="Table 1, uWave",
    data="uwave",
    protocol="Three axes of an accelerometer, 8 gestures, 896 training and 3,582 test rows. Gaussian kernels have σ "
    "equal to the mean distance of training rows, for each view. Landmarks are 6, 12 and 24% of the training rows, the "
    "same in all views (lpMKL and OKL: each view has its own). λ = 1e-8, .., 10 and η = 1e-3, .., 100 are chosen on "
    "training rows: by leave-one-out, for lpMKL (p = 2) and OKL by five folds. MLKR has one metric for each class, 50 "
    "steps and four draws. Its input is the Nyström features of all rows, or the recordings of the landmark rows. "
    "SVMs are linear on Nyström features, one class against the rest; early fusion has those of all columns in one "
    "view. Late fusion is the sum of outputs. C = 1, or one of 1, 10 and 100 by three folds. The best view is the best "
    "one on test rows, as in the paper.",
    cells=_cells,
    measure=_measure,
    tables=lambda results: tables(results, PUBLISHED),
    claims=_claims,
    seeds=10,
    minutes=10,
    differences=(
        "The test rows are rebuilt from the raw recordings.",
        "Our metrics are exact optima; the paper takes steps from the identity.",
        "The paper has four draws, and states neither its folds nor the inputs of OKL, MLKR and SVM.",
    ),
)
EXPERIMENTS = (UWAVE,)
