"""Bunescu's lecture on perceptrons and kernels: Boolean functions, and quadratic boundaries."""

from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from ..kernels import Polynomial
from ..online.kernelized import KernelPerceptron
from ..online.perceptron import OnlinePerceptron
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table
from ._passes import passes


def quadratic_features(X: np.ndarray) -> np.ndarray:
    """Return the features whose inner products are (1 + x'z)² for two columns, as in the lecture."""
    a, b = X.T
    return np.column_stack([np.ones(len(X)), 2**0.5 * a, 2**0.5 * b, a**2, 2**0.5 * a * b, b**2])


def _kernel_model(constant: float) -> KernelPerceptron:
    return KernelPerceptron(Polynomial(2, constant), budget=None)


# -- XOR
POINTS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
BOOLEAN = {"and": (0, 0, 0, 1), "or": (0, 1, 1, 1), "xor": (0, 1, 1, 0)}
FORMS = {"x₁, x₂": "columns", "x₁, x₂, x₁x₂": "product", "(1 + x'z)²": "kernel"}


def _xor_cells(seeds: int, quick: bool) -> list[Cell]:
    problems = [*BOOLEAN, "xor, 4 clusters"]
    most = 20 if quick else 200
    return [
        {"problem": problem, "form": form, "order": order, "most": most}
        for problem in problems
        for form in FORMS.values()
        for order in range(seeds)
    ]


def _xor(cell: Cell, cached: Cached) -> Found:
    rng = np.random.default_rng(cell["order"])
    if cell["problem"] in BOOLEAN:
        X, y = POINTS, np.array(BOOLEAN[cell["problem"]])
    else:
        which = rng.integers(4, size=200)
        X, y = POINTS[which] + rng.uniform(-0.7, 0.7, size=(200, 2)), np.array(BOOLEAN["xor"])[which]
    rows = rng.permutation(len(y))
    X, y = X[rows], y[rows]
    model: Any = _kernel_model(1.0) if cell["form"] == "kernel" else OnlinePerceptron()
    if cell["form"] == "product":
        X = np.column_stack([X, X[:, 0] * X[:, 1]])
    mistakes = passes(model, X, y, cell["most"])
    return {"passes": len(mistakes), "last": mistakes[-1], "mistakes": mistakes.sum(), "least": mistakes.min()}


def _xor_tables(results: Results) -> list[Table]:
    rows = []
    for problem in results.levels("problem"):
        for name, form in FORMS.items():
            given = {"problem": problem, "form": form}
            converged = results.values("last", **given) == 0
            most = int(results.values("passes", **given).max())
            rows.append([problem, name, f"{converged.mean():.0%}", str(most), results.text("last", 1, **given)])
    heads = ["function", "features or kernel", "orders that converge", "most passes", "mistakes of the last pass"]
    return [Table("Perceptron with an intercept, passes until one without a mistake", heads, rows)]


def _converge(results: Results, problems: Any, forms: Any) -> np.ndarray:
    last = [results.values("last", problem=problem, form=form) for problem in problems for form in forms]
    return np.concatenate(last) == 0


def _xor_claims(results: Results) -> list[Claim]:
    xors = ["xor", "xor, 4 clusters"]
    easy = _converge(results, ["and", "or"], FORMS.values())
    never = np.concatenate([results.values("least", problem=problem, form="columns") for problem in xors])
    lifted = _converge(results, xors, ["product", "kernel"])
    return [
        Claim("AND and OR are linearly separable.", bool(easy.all()), f"{easy.mean():.0%} of the runs converge"),
        Claim(
            "XOR is not: no pass of the perceptron is without a mistake.",
            bool((never > 0).all()),
            f"the best of 200 passes has {never.min():.0f} mistakes or more",
        ),
        Claim(
            "With the feature x₁x₂, or with the kernel (1 + x'z)², the perceptron separates XOR.",
            bool(lifted.all()),
            f"{lifted.mean():.0%} of the runs converge",
        ),
    ]


# -- quadratic boundaries
BOUNDARIES: dict[str, Any] = {
    "circle": lambda a, b: a**2 + b**2 - 1,
    "ellipse, off center": lambda a, b: (a - 0.5) ** 2 / 2 + 2 * (b + 0.3) ** 2 - 1,
    "hyperbola": lambda a, b: a**2 - b**2 - 0.5,
    "cone x₁² = 2x₂²": lambda a, b: a**2 - 2 * b**2,
}
KERNELS = {"linear": "linear", "(x'z)²": "homogeneous", "(1 + x'z)²": "quadratic", "features of (1 + x'z)²": "features"}


def bounded_points(boundary: str, n: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a square, not too near to the boundary, and the side on which they are."""
    X = rng.uniform(-2, 2, size=(20 * n, 2))
    side = BOUNDARIES[boundary](*X.T)
    far = np.flatnonzero(np.abs(side) > 0.2)[:n]
    return X[far], (side[far] > 0).astype(int)


def _quadratic_cells(seeds: int, quick: bool) -> list[Cell]:
    n, most = (60, 20) if quick else (300, 50)
    return [{"boundary": each, "draw": draw, "n": n, "most": most} for each in BOUNDARIES for draw in range(seeds)]


def _quadratic(cell: Cell, cached: Cached) -> Found:
    rng = np.random.default_rng(cell["draw"])
    X, y = bounded_points(cell["boundary"], 2 * cell["n"], rng)
    half = cell["n"]
    models: dict[str, Any] = {
        "linear": OnlinePerceptron(),
        "homogeneous": _kernel_model(0.0),
        "quadratic": _kernel_model(1.0),
        "features": OnlinePerceptron(fit_intercept=False),
    }
    found: Found = {}
    decisions = {}
    for name, model in models.items():
        A = quadratic_features(X) if name == "features" else X
        mistakes = passes(model, A[:half], y[:half], cell["most"])
        wrong = np.mean(model.predict(A[half:]) != y[half:])
        found |= {name: 100 * wrong, f"{name} last": mistakes[-1], f"{name} passes": len(mistakes)}
        found[f"{name} mistakes"] = mistakes.sum()
        decisions[name] = model.decision_function(A[half:])
    gap = np.abs(decisions["quadratic"] - decisions["features"]).max() / np.abs(decisions["quadratic"]).max()
    return found | {"largest difference": gap}


def _quadratic_tables(results: Results) -> list[Table]:
    rows = []
    for boundary in results.levels("boundary"):
        for title, name in KERNELS.items():
            converged = results.values(f"{name} last", boundary=boundary) == 0
            numbers = [results.text(f"{name} passes", 0, boundary=boundary), results.text(name, boundary=boundary)]
            rows.append([boundary if name == "linear" else "", title, f"{converged.mean():.0%}", *numbers])
    heads = ["boundary", "kernel", "draws that converge", "passes", "test error, %"]
    return [Table("Passes until one without a mistake, and test errors", heads, rows)]


def _quadratic_claims(results: Results) -> list[Claim]:
    last = {name: results.values(f"{name} last") for name in KERNELS.values()}
    tests = results.mean("quadratic")
    through, apart = (
        np.concatenate(
            [results.values("homogeneous last", boundary=each) for each in BOUNDARIES if ("cone" in each) == on]
        )
        for on in (True, False)
    )
    gap = results.values("largest difference").max()
    same = results.values("quadratic mistakes") == results.values("features mistakes")
    count = PolynomialFeatures((2, 2), include_bias=False).fit(np.zeros((1, 1000))).n_output_features_
    return [
        Claim(
            "With (1 + x'z)², circles, ellipses and hyperbolas are boundaries that a perceptron learns.",
            bool((last["quadratic"] == 0).all()),
            f"{(last['quadratic'] == 0).mean():.0%} of the draws converge, with a mean test error of {tests:.2f}%",
            "Some draws need more passes.",
        ),
        Claim(
            "A linear perceptron separates none of them.",
            bool((last["linear"] > 0).all()),
            f"{(last['linear'] == 0).mean():.0%} of the draws converge",
        ),
        Claim(
            "(x'z)² has no constant and no linear term, so it separates only the cone.",
            bool((through == 0).all() and (apart > 0).all()),
            f"{(through == 0).mean():.0%} of the draws converge for the cone, {(apart == 0).mean():.0%} for the others",
        ),
        Claim(
            "The kernel and its explicit features make the same decisions.",
            bool(same.all() and gap < 1e-8),
            f"as many mistakes in {same.mean():.0%} of the draws, relative difference of decisions at most {gap:.0e}",
        ),
        Claim("1,000 columns have 500,500 quadratic features.", count == 500500, f"{count:,} features"),
    ]


_PAPER = "Bunescu, lecture ITCS 4156"
XOR = Experiment(
    name="lecture-xor",
    title="Perceptrons and Boolean functions",
    paper=_PAPER,
    shown_in="Slides on XOR and on Boolean functions",
    data="made",
    protocol=(
        "The four points (±1, ±1) with the classes of AND, OR and XOR, and 200 points around them with those of XOR, "
        "at most 0.7 away in each column. Perceptron with an intercept on x₁ and x₂, the same with the column x₁x₂, "
        "and the kernel perceptron with (1 + x'z)². Ten random orders; passes in this order until one is without a "
        "mistake, at most 200."
    ),
    cells=_xor_cells,
    measure=_xor,
    tables=_xor_tables,
    claims=_xor_claims,
    seeds=10,
    minutes=0.1,
    differences=("The lecture shows its data in pictures; ours are made.",),
)
QUADRATIC = Experiment(
    name="lecture-quadratic",
    title="Quadratic kernels and their boundaries",
    paper=_PAPER,
    shown_in="Slides on quadratic kernels",
    data="made",
    protocol=(
        "Points of a square, the class is the side of a circle, an ellipse, a hyperbola or a cone. Points very near to "
        "the boundary are left out. 300 points for training and 300 for the test, ten draws. Passes until one is "
        "without a mistake, at most 50. The linear perceptron has an intercept. The explicit features are "
        "(1, √2 x₁, √2 x₂, x₁², √2 x₁x₂, x₂²)."
    ),
    cells=_quadratic_cells,
    measure=_quadratic,
    tables=_quadratic_tables,
    claims=_quadratic_claims,
    seeds=10,
    minutes=0.5,
    differences=("The lecture shows its data in pictures; ours are made.",),
)
EXPERIMENTS = (XOR, QUADRATIC)
