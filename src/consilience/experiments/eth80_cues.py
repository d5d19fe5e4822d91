"""Fornoni (2009), Figures 4.7 to 4.10: images of ETH-80 in four views, OMMP for powers p from 1 to 20 and OMCL."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..datasets import fetch_eth80
from ..kernels._distances import squared_distances
from ..online.matrix import OrthogonalPerceptron
from ..online.multicue import MultiCueClassifier
from ..views.container import Views
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table, half_width, with_interval

VIEWS = ("color", "dxdy", "maglap", "shape")
POWERS = tuple(range(1, 21))
STEPS = (0.01, 0.1, 1.0)  # C of OMCL
WIDTHS = (0.25, 1.0, 4.0, 16.0)  # multiples of one over the mean distance
TRAIN = 574  # 70% of 820 images, and all images of 14 of 20 objects
SMALL = (40, 80)
ONCE: dict[str, Any] = {"kernel": "precomputed", "budget": None, "average": True}


class Problem(NamedTuple):
    """Two categories, the sets of views that are compared, and what the thesis says of single views."""

    categories: tuple[str, str]
    sets: dict[str, tuple[str, ...]]
    published: dict[str, str]  # training errors in percent, as described


class Images(NamedTuple):
    """Images of two categories: descriptors by view, categories and objects."""

    tables: dict[str, np.ndarray]
    y: np.ndarray
    objects: np.ndarray


@lru_cache(maxsize=1)
def _images(categories: tuple[str, str], per_object: int) -> Images:
    bunch = fetch_eth80()
    objects = [np.flatnonzero(bunch.groups == each)[:per_object] for each in np.unique(bunch.groups)]
    rows = np.concatenate([each for each in objects if bunch.target[each[0]] in categories])
    names = {"color": "colour", "dxdy": "dxdy", "maglap": "maglap"}
    tables = {name: np.asarray(bunch.data[old][rows], dtype=np.float64) for name, old in names.items()}
    tables = {name: counts / counts.sum(axis=1, keepdims=True) for name, counts in tables.items()}
    tables["shape"] = bunch.masks[rows].reshape(len(rows), 32, 2, 32, 2).mean(axis=(2, 4)).reshape(len(rows), -1) / 255
    return Images(tables, bunch.target[rows], bunch.groups[rows])


def _distances(view: str, table: np.ndarray) -> np.ndarray:
    return squared_distances(table) if view == "shape" else -additive_chi2_kernel(table)


def divided(y: np.ndarray, objects: np.ndarray, new_objects: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows in random order: 70% of the images, or those of 7 of 10 objects of a category."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    if not new_objects:
        return order[: round(0.7 * len(y))], order[round(0.7 * len(y)) :]
    chosen = np.concatenate([rng.permutation(np.unique(objects[y == each]))[:7] for each in np.unique(y)])
    inside = np.isin(objects[order], chosen)
    return order[inside], order[~inside]


def _cells(seeds: int, quick: bool) -> list[Cell]:
    powers, per_object, sizes = ((1, 3), 5, (40,)) if quick else (POWERS, 41, (TRAIN, *SMALL))
    return [
        {"new objects": new, "train": size, "draw": draw, "powers": list(powers), "per object": per_object}
        for new in (False, True)
        for size in sizes
        for draw in range(seeds)
    ]


def _measure(problem: Problem, cell: Cell, cached: Cached) -> Found:
    images, new, seed = _images(problem.categories, cell["per object"]), cell["new objects"], cell["draw"]
    train, test = divided(images.y, images.objects, new, seed)
    train = train[: cell["train"]]
    y = images.y
    folds = StratifiedGroupKFold(3, shuffle=True, random_state=seed) if new else StratifiedKFold(3)
    splits = [(train[a], train[b]) for a, b in folds.split(train, y[train], images.objects[train])]
    grams, widths = {}, []
    for view, table in images.tables.items():
        name = f"{problem.categories} {cell['per object']} {view}"
        distances = cached(name, lambda view=view, table=table: _distances(view, table))  # type: ignore[misc]
        unit = distances[np.ix_(train, train)].mean()
        tried = [Views({view: np.exp(-width * distances / unit)}, precomputed=True) for width in WIDTHS]
        errors = [np.mean([_passed(_ommp(1), K, y, *split)[1] for split in splits]) for K in tried]
        grams[view], _ = tried[int(np.argmin(errors))][view], widths.append(WIDTHS[int(np.argmin(errors))])
    K = Views(grams, precomputed=True)
    single = [_passed(_ommp(1), K[[view]], y, train, test) for view in VIEWS]
    found: Found = {"widths": widths} | _parts("single", single)
    for name, views in problem.sets.items():
        own = K[list(views)]
        found |= _parts(f"OMMP {name}", [_passed(_ommp(p), own, y, train, test) for p in cell["powers"]])
        if name != "three":
            omcl = [MultiCueClassifier(**ONCE, C=C) for C in STEPS]
            found |= _parts(f"OMCL {name}", [_passed(each, own, y, train, test) for each in omcl])
    return found


def _ommp(p: float) -> OrthogonalPerceptron:
    return OrthogonalPerceptron(**ONCE, p=p, fit_intercept=False)


def _passed(model: Any, K: Views, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return the mistakes of one pass over the training rows, and the errors on the test rows, in percent."""
    model.partial_fit(K[train], y[train])
    wrong = np.mean(model.predict(K[test]) != y[test])
    return round(100 * model.n_mistakes_ / len(train), 3), round(100 * float(wrong), 3)


def _parts(name: str, errors: list[tuple[float, float]]) -> Found:
    return {f"{name} training": [each[0] for each in errors], f"{name} test": [each[1] for each in errors]}


# -- tables: each method has an error for each draw and each setting (a view, p or C)
def _best(results: Results, name: str, part: str, views: Any = VIEWS, **given: Any) -> np.ndarray:
    """Return the errors of all draws in the setting with the least mean: the best p, C or single view."""
    errors = results.values(f"{name} {part}", **given)
    if name == "single":
        errors = errors[:, [VIEWS.index(view) for view in views]]
    return errors[:, errors.mean(axis=0).argmin()]


def _chosen(results: Results, name: str, **given: Any) -> np.ndarray:
    """Return test errors in the setting that made the fewest mistakes in the training pass of the same draw."""
    settings = results.values(f"{name} training", **given).argmin(axis=1)
    return results.values(f"{name} test", **given)[np.arange(len(settings)), settings]


def _tables(problem: Problem, results: Results) -> list[Table]:
    sizes = results.levels("train")
    largest = {"train": sizes[0]}
    old, new = ({**largest, "new objects": each} for each in (False, True))
    single = [(part, given) for given in (old, new) for part in ("training", "test")]
    rows = [
        [view, problem.published[view]]
        + [with_interval(results.values(f"single {part}", **given)[:, k]) for part, given in single]
        for k, view in enumerate(VIEWS)
    ]
    methods = [f"{kind} {name}" for name in problem.sets for kind in ("OMMP", "OMCL") if (kind, name) != ("OMCL", "three")]
    several = [
        [f"{method.split()[0]}, {', '.join(problem.sets[method.split()[1]])}"]
        + [
            with_interval(values)
            for given in (old, new)
            for values in (
                _best(results, method, "training", **given),
                _best(results, method, "test", **given),
                _chosen(results, method, **given),
            )
        ]
        for method in methods
    ]
    powers = results.cells[0][0]["powers"]
    shown = [k for k, p in enumerate(powers) if p in (1, 2, 3, 5, 8, 12, 16, 20)]
    by_power = [
        [f"{', '.join(problem.sets[name])}; {part}"]
        + [f"{error:.2f}" for error in results.values(f"OMMP {name} {part}", **old).mean(axis=0)[shown]]
        for name in problem.sets
        for part in ("training", "test")
    ]
    few = [
        [str(size), "new" if given["new objects"] else "the same", with_interval(_best(results, "single", "test", **given))]
        + [with_interval(_chosen(results, method, **given)) for method in ("OMMP two", "OMCL two", "OMMP four", "OMCL four")]
        for size in sorted(sizes)
        for given in ({"train": size, "new objects": False}, {"train": size, "new objects": True})
    ]
    ways = ["same objects, training", "same objects, test", "new objects, training", "new objects, test"]
    ends = ["training", "test", "test, chosen"]
    return [
        Table("Single views, errors in percent", ["view", "thesis, training", *ways], rows),
        Table(
            "Several views, errors in percent at the best p or C in hindsight, and at the one chosen in the training pass",
            ["", *(f"{start} objects, {end}" for start in ("same", "new") for end in ends)],
            several,
        ),
        Table("OMMP by p, same objects, errors in percent", ["views", *(f"p = {powers[k]}" for k in shown)], by_power),
        Table(
            "Test errors in percent by the number of training images, p and C chosen in the training pass",
            ["training images", "test objects", "best single view", "OMMP, two views", "OMCL, two views",
             "OMMP, four views", "OMCL, four views"],
            few,
        ),
    ]  # fmt: skip
