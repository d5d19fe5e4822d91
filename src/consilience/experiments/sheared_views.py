"""Huusari, Kadri and Capponi (2018), Figure 1: one line for two views that are linear maps of each other."""

import numpy as np

from ..batch.metric import ViewMetricRidgeClassifier
from ..batch.multiple_kernel import MultipleKernelRidgeClassifier, OutputKernelRidge
from ..datasets import make_sheared_views
from ..solvers.linalg import eigvalsh
from ..views.container import Views
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table
from ._metric import PAPER

METHODS = {"the views": "original data", "MKL": "MKL", "OKL": "OKL", "MVML": "MVML"}
ALPHAS = (1.0, 100.0)


def best_line(points: np.ndarray, y: np.ndarray) -> float:
    """Return the largest share of points on the side of their class, over all lines in the plane.

    A best line can be moved until it passes through two points, of which each may be on either side. No three points
    may be on one line, unless all are: then they have one column, and a threshold separates them.
    """
    if points.shape[1] == 1:
        ones = np.r_[0, np.cumsum(y[np.argsort(points[:, 0])])]  # of class 1 below each threshold
        right = ones[-1] - 2 * ones + np.arange(len(y) + 1)
        return float(max(right.max(), len(y) - right.min())) / len(y)
    i, j = np.triu_indices(len(points), 1)
    normals = np.stack([points[j, 1] - points[i, 1], points[i, 0] - points[j, 0]])
    above = points @ normals - np.sum(normals * points[i].T, axis=0) > 0
    right = above == y[:, None].astype(bool)
    pairs = np.arange(len(i))
    own = right[i, pairs].astype(int) + right[j, pairs]  # the two points on the line count as right in any case
    one = right.sum(axis=0) - own
    return float(np.maximum(one, len(points) - 2 - one).max() + 2) / len(points)


def _cells(seeds: int, quick: bool) -> list[Cell]:
    rows, alphas = (30, ALPHAS[1:]) if quick else (200, ALPHAS)
    return [{"draw": draw, "alpha": alpha, "rows": rows} for draw in range(seeds) for alpha in alphas]


def _measure(cell: Cell, cached: Cached) -> Found:
    X, y = make_sheared_views(cell["rows"], random_state=cell["draw"])
    points = _transformed(X, y, cell["alpha"])
    through_origin = {name: _best_direction(np.vstack(each), np.tile(y, 2)) for name, each in points.items()}
    any_line = {name: best_line(np.vstack(each), np.tile(y, 2)) for name, each in points.items()}
    found: Found = {f"{name}, through the origin": 100 * share for name, share in through_origin.items()}
    return found | {f"{name}, any line": 100 * share for name, share in any_line.items()}


def _transformed(X: Views, y: np.ndarray, alpha: float) -> dict[str, list[np.ndarray]]:
    """Return the points of both views in the space of each method; every training row shows one view, in turn."""
    shown = Views(X, mask=np.arange(len(y))[:, None] % 2 == np.arange(2))
    weights = MultipleKernelRidgeClassifier("linear", alpha=alpha).fit(shown, y).kernel_weights_
    outputs = OutputKernelRidge("linear", alpha=alpha).fit(shown, np.where(y[:, None] == [0, 1], 1.0, -1.0))
    line = ViewMetricRidgeClassifier("linear", alpha=alpha).fit(shown, y).metric_.transform(X)
    scale = np.sqrt(eigvalsh(outputs.output_kernel_)[-1]) * outputs.view_weights_
    return {
        "the views": [X[name] for name in X.names],
        "MKL": [np.sqrt(d) * X[name] for d, name in zip(weights, X.names, strict=True)],
        "OKL": [w * X[name] for w, name in zip(scale, X.names, strict=True)],
        "MVML": [line[name] for name in X.names],  # the metric has rank one
    }


def _best_direction(points: np.ndarray, y: np.ndarray) -> float:
    """Return the largest share of points on the side of their class, over lines through the origin."""
    angles = np.linspace(0, 2 * np.pi, 3600, endpoint=False)
    sides = points @ np.stack([np.cos(angles), np.sin(angles)])[: points.shape[1]] > 0
    return float((sides == y[:, None].astype(bool)).mean(axis=0).max())


def _tables(results: Results) -> list[Table]:
    lines = ("through the origin", "any line")
    rows = [
        [f"{name}, λ = {alpha:g}", *(results.text(f"{name}, {line}", alpha=alpha) for line in lines)]
        for name in METHODS
        for alpha in results.levels("alpha")
    ]
    title = "Percent of the points of both views that the best line separates; published as a plot"
    return [Table(title, ["space", *(f"line {line}" if "any" not in line else line for line in lines)], rows)]


def _claims(results: Results) -> list[Claim]:
    def worst(name: str) -> float:
        return float(results.values(f"{name}, any line").min())

    others = {name: float(results.values(f"{name}, any line").max()) for name in ("MKL", "OKL")}
    return [
        Claim(
            "After the transformation of MVML a line separates the classes in both views together.",
            worst("MVML") >= 99.5,
            f"at least {worst('MVML'):.2f}% of the points in each draw",
            "A few points are on the other side.",
        ),
        Claim(
            "After the transformations of MKL and OKL no line does.",
            max(others.values()) < 99.5,
            ", ".join(f"at most {value:.2f}% for {name}" for name, value in others.items()),
            "A line separates these draws.",
        ),
    ]


SHEARED = Experiment(
    name="sheared-views",
    title="One line for two views that are linear maps of each other",
    paper=PAPER,
    shown_in="Figure 1",
    data="made",
    protocol="200 rows of two classes and two views of two columns; the second view is the first one, sheared and "
    "rotated. Kernels are linear. Every row shows one of its views to the method, in turn, so that each view must "
    "predict alone. Then the points of both views are put into one space: √d times the view for MKL with the weight "
    "d, the view times √ℓ for OKL with the eigenvalue ℓ of its output kernel, and the coordinates of the metric for "
    "MVML. The best line of all lines is found on all these points. λ = 1 and 100, η = 1.",
    cells=_cells,
    measure=_measure,
    tables=_tables,
    claims=_claims,
    seeds=20,
    minutes=1,
    differences=(
        "The paper describes its data in words; the numbers of the shear and the rotation are ours.",
        "The exact metric has rank one, so that the space of MVML is a line and not a plane.",
    ),
)
EXPERIMENTS = (SHEARED,)
