"""Flower17 as in Minh, Bazzani and Murino (2016): kernels, parts of the rows, and draws of labels."""

from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..batch.coregularized import CoRegularizedRidgeClassifier
from ..batch.svc import CoRegularizedSVC
from ..datasets import fetch_flower17
from ..kernels import AdditiveChiSquared
from ..views.container import Views
from ._experiment import Cached

DESCRIPTORS = ("colour", "shape", "texture", "hsv", "siftint", "siftbdy", "hog")
_QUICK_CLASSES = 3
_GRID = ((1e-5, 1e-6, 1e-7), (1e-6, 1e-8, 1e-9), (1e-6, 1e-8, 1e-9))  # γ_A, γ_B, γ_W of the paper
UNLABELED = 5  # rows per class
_CHOOSING_LABELS, _CHOOSING_DRAWS = 10, 3


class Flowers(NamedTuple):
    """Gram matrices of all rows, classes from 0, and the three parts of a split: 40, 20 and 20 rows per class."""

    K: Views
    y: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@lru_cache(maxsize=1)
def flower_images() -> Any:
    """Return the set, read once."""
    return fetch_flower17()


def flowers(split: int, cached: Cached, quick: bool) -> Flowers:
    """Return a split with χ² kernels; their widths are the mean distances between its training rows.

    A quick run has the first classes only.
    """
    bunch = flower_images()
    y = np.unique(bunch.target, return_inverse=True)[1]
    rows = np.flatnonzero(y < _QUICK_CLASSES) if quick else np.arange(len(y))
    place = np.full(len(y), -1)
    place[rows] = np.arange(len(rows))
    (train, validation), (_, test) = bunch.validation_splits[split], bunch.splits[split]
    parts = [place[part][place[part] >= 0] for part in (train, validation, test)]
    grams = {}
    for name in DESCRIPTORS:
        distances = cached(f"chi-squared distances of {name}, {len(rows)} rows", partial(flower_distances, name, rows))
        width = distances[np.ix_(parts[0], parts[0])].sum() / (len(parts[0]) * (len(parts[0]) - 1))
        grams[name] = np.exp(-distances / width)
    return Flowers(Views(grams, precomputed=True), y[rows], *parts)


def flower_distances(name: str, rows: np.ndarray) -> np.ndarray:
    """Return χ² distances of these rows, for descriptors whose sum is one."""
    counts = np.asarray(flower_images().data[name][rows], dtype=np.float64)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return np.maximum(2 - 2 * AdditiveChiSquared()(shares), 0.0)  # (x - z)² / (x + z) = x + z - 4xz / (x + z)


def draw_labels(y: np.ndarray, rows: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return n rows of each class; a larger draw of the same seed contains the smaller one."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.concatenate([order[y[order] == label][:n] for label in np.unique(y)])


def percent_right(
    model: Any, K: Views, y: np.ndarray, labeled: np.ndarray, unlabeled: np.ndarray, rows: np.ndarray
) -> float:
    """Fit to labeled and unlabeled rows; return the percentage of other rows that are classified correctly."""
    used = np.concatenate([labeled, unlabeled]).astype(np.intp)
    known = np.where(np.arange(len(used)) < len(labeled), y[used], np.nan)
    return 100 * float(model.fit(K[used], known).score(K[rows], y[rows]))


def best_penalties(method: str, F: Flowers, quick: bool) -> np.ndarray:
    """Return the penalties with most validation rows right, over draws of labels; of equal ones the largest."""
    grid = list(product(*(values[: 1 if quick else None] for values in _GRID)))
    if len(F.K.names) == 1:  # no other view to agree with
        grid = [each for each in grid if each[1] == _GRID[1][0]]
    totals = np.zeros(len(grid))
    for seed in range(1000, 1000 + _CHOOSING_DRAWS):
        labeled = draw_labels(F.y, F.train, _CHOOSING_LABELS, seed)
        unlabeled = draw_labels(F.y, F.validation, UNLABELED, seed)
        rest = np.setdiff1d(F.validation, unlabeled)
        totals += [
            round(percent_right(flower_model(method, each), F.K, F.y, labeled, unlabeled, rest), 8) for each in grid
        ]
    return np.array(grid[int(totals.argmax())])


def flower_model(method: str, penalties: Any) -> Any:
    """Return an estimator of the paper, by its name there."""
    alpha, agreement, graph = map(float, penalties)
    given: dict[str, Any] = {"alpha": alpha, "agreement_penalty": agreement, "graph_penalty": graph}
    if method == "MVL-LS":
        return CoRegularizedRidgeClassifier("precomputed", **given)
    return CoRegularizedSVC("precomputed", class_vectors="ovr" if method == "MVL-binSVM" else "simplex", **given)
