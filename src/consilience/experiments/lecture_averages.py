"""Bunescu's lecture on perceptrons: convergence on separable classes, and last, averaged and voted hypotheses."""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from ..online.perceptron import OnlinePerceptron
from ..solvers.bounds import novikoff_bound
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table, half_width, with_interval
from ._passes import passes
from ._tables import load_set

# -- convergence
MARGINS = (0.3, 0.1, 0.03, 0.01)
COLUMNS = 10


def separable(margin: float, n: int, rng: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of the unit sphere with this margin from a random plane through 0, their sides, and its normal."""
    normal = rng.standard_normal(COLUMNS)
    normal /= (normal**2).sum() ** 0.5
    X = rng.standard_normal((20 * n, COLUMNS))
    X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    X = X[np.abs(X @ normal) >= margin][:n]
    return X, np.where(X @ normal > 0, 1, -1), normal


def _convergence_cells(seeds: int, quick: bool) -> list[Cell]:
    n, most = (100, 100) if quick else (500, 5000)
    kinds = [(margin, 0.0) for margin in MARGINS] + [(0.3, 0.05)]
    return [
        {"margin": margin, "flipped": flipped, "draw": draw, "n": n, "most": most if not flipped else 100}
        for margin, flipped in kinds
        for draw in range(seeds)
    ]


def _convergence(cell: Cell, cached: Cached) -> Found:
    rng = np.random.default_rng(cell["draw"])
    X, y, normal = separable(cell["margin"], cell["n"], rng)
    reached = (y * (X @ normal)).min()
    y = np.where(rng.random(len(y)) < cell["flipped"], -y, y)
    mistakes = passes(OnlinePerceptron(fit_intercept=False), X, y, cell["most"])
    bound = novikoff_bound(np.sqrt((X**2).sum(axis=1)).max(), reached)
    return {"passes": len(mistakes), "mistakes": mistakes.sum(), "last": mistakes[-1], "bound": bound}


def _convergence_tables(results: Results) -> list[Table]:
    rows = []
    for flipped in results.levels("flipped"):
        for margin in MARGINS if not flipped else MARGINS[:1]:
            given = {"margin": margin, "flipped": flipped}
            name = f"{margin:g}" + (f", {flipped:.0%} of the classes flipped" if flipped else "")
            numbers = [results.text(each, 0, **given) for each in ("passes", "mistakes", "last")]
            rows.append([name, *numbers, "none" if flipped else f"{results.mean('bound', **given):,.0f}"])
    heads = ["margin", "passes", "mistakes", "mistakes of the last pass", "bound (R/γ)², mean"]
    return [Table("Passes and mistakes until a pass without a mistake", heads, rows)]


def _convergence_claims(results: Results) -> list[Claim]:
    clean = {name: results.values(name, flipped=0.0) for name in ("last", "mistakes", "bound")}
    share = clean["mistakes"] / clean["bound"]
    noisy = results.values("last", flipped=results.levels("flipped")[-1])
    return [
        Claim(
            "If the classes are linearly separable, the perceptron converges.",
            bool((clean["last"] == 0).all()),
            f"{(clean['last'] == 0).mean():.0%} of {len(share)} draws have a pass without a mistake",
            "Some draws need more than 5,000 passes.",
        ),
        Claim(
            "The number of mistakes is at most (R/γ)² (Block 1962; Novikoff 1962).",
            bool((share <= 1).all()),
            f"at most {share.max():.0%} of the bound, {share.mean():.1%} on average",
        ),
        Claim(
            "If they are not, it does not converge.",
            bool((noisy > 0).all()),
            f"{noisy.min():.0f} mistakes or more in the last of 100 passes",
        ),
    ]


# -- averages
KINDS: dict[str, Any] = {"last": False, "averaged": True, "voted": "voted"}
PAIRS = {"digits 3, 8": (3, 8), "digits 4, 9": (4, 9), "digits 1, 8": (1, 8)}
SETS = ("Adult", *PAIRS, "ten digits", "made, 10% flipped")
PASSES = (1, 10)


@lru_cache(maxsize=1)
def _adult() -> tuple[Any, np.ndarray]:
    X, y, _ = load_set("a9a")
    return X, y


def _drawn(name: str, rng: Any) -> tuple[Any, np.ndarray]:
    """Return rows in random order."""
    if name.startswith("made"):
        X = rng.standard_normal((4000, 50))
        y = np.where(X @ rng.standard_normal(50) > 0, 1, -1)
        return X, np.where(rng.random(len(y)) < 0.1, -y, y)
    X, y = _adult() if name == "Adult" else load_digits(return_X_y=True)
    rows = rng.permutation(np.flatnonzero(np.isin(y, PAIRS[name])) if name in PAIRS else len(y))[:10000]
    return X[rows], y[rows]


def _averages_cells(seeds: int, quick: bool) -> list[Cell]:
    sets, rows = (SETS[1:3], 100) if quick else (SETS, None)
    return [{"data": name, "draw": draw, "rows": rows} for name in sets for draw in range(seeds)]


def _averages(cell: Cell, cached: Cached) -> Found:
    X, y = _drawn(cell["data"], np.random.default_rng(cell["draw"]))
    X, y = X[: cell["rows"]], y[: cell["rows"]]
    half = len(y) // 2
    found: Found = {}
    for n_passes in PASSES:
        for name, average in KINDS.items():
            model = OnlinePerceptron(average=average, max_iter=n_passes, random_state=cell["draw"])
            wrong = np.mean(model.fit(X[:half], y[:half]).predict(X[half:]) != y[half:])
            found[f"{name} {n_passes}"] = 100 * wrong
    return found


def _averages_tables(results: Results) -> list[Table]:
    names = [f"{name} {n_passes}" for n_passes in PASSES for name in KINDS]
    rows = [[data, *(results.text(name, data=data) for name in names)] for data in results.levels("data")]
    heads = [f"{name}, {n_passes} pass{'es' if n_passes > 1 else ''}" for n_passes in PASSES for name in KINDS]
    return [Table("Test errors in percent", ["data", *heads], rows)]


def _gains(results: Results, better: str, worse: str) -> dict[str, np.ndarray]:
    return {
        data: results.values(worse, data=data) - results.values(better, data=data) for data in results.levels("data")
    }


def _averages_claims(results: Results) -> list[Claim]:
    pairs = [(name, n_passes) for n_passes in PASSES for name in ("averaged", "voted")]
    claims = [claim(results, *pair) for pair in pairs for claim in (_better_on_average, _better)]
    gaps = [abs(gain.mean()) for n in PASSES for gain in _gains(results, f"averaged {n}", f"voted {n}").values()]
    close = "Averaged and voted hypotheses differ by less than half a point."
    return [*claims, Claim(close, max(gaps) < 0.5, f"at most {max(gaps):.2f} points", "They differ on some sets.")]


def _better_on_average(results: Results, name: str, n_passes: int) -> Claim:
    gain = np.mean(list(_gains(results, f"{name} {n_passes}", f"last {n_passes}").values()), axis=0)
    return Claim(
        f"After {_passes(n_passes)} the {name} hypothesis has fewer errors than the last, in the mean over the sets.",
        bool(gain.mean() > half_width(gain)),
        f"by {with_interval(gain, sign=True)} points",
        "The interval of the gain contains 0.",
    )


def _passes(number: int) -> str:
    return "one pass" if number == 1 else "ten passes"


def _better(results: Results, name: str, n_passes: int) -> Claim:
    gains = _gains(results, f"{name} {n_passes}", f"last {n_passes}")
    unsure = {data: gain for data, gain in gains.items() if gain.mean() <= half_width(gain)}
    shown = ", ".join(f"{data} {with_interval(gain, sign=True)}" for data, gain in unsure.items())
    return Claim(
        f"After {_passes(n_passes)} this holds for each set.",
        not unsure,
        f"the {name} hypothesis is better on {len(gains) - len(unsure)} of {len(gains)} sets",
        f"The interval of the gain contains 0 on {shown}. On classes that can be separated the last hypothesis becomes "
        "good with more passes, and there is little to gain.",
    )


_PAPER = "Bunescu, lecture ITCS 4156"
CONVERGENCE = Experiment(
    name="lecture-convergence",
    title="Convergence of the perceptron",
    paper=_PAPER,
    shown_in="Slides with the theorem of Rosenblatt",
    data="made",
    protocol=(
        "500 points of the unit sphere in 10 dimensions, with a margin γ from a random plane through 0. Perceptron "
        "without an intercept, ten draws; passes until one is without a mistake, at most 5,000. The bound is (R/γ)² "
        "for the margin from that plane. In one more setting 5% of the classes are flipped, with 100 passes."
    ),
    cells=_convergence_cells,
    measure=_convergence,
    tables=_convergence_tables,
    claims=_convergence_claims,
    seeds=10,
    minutes=0.1,
    differences=("The lecture states the theorem without an experiment.",),
)
AVERAGES = Experiment(
    name="lecture-averages",
    title="Last, averaged and voted perceptrons",
    paper=_PAPER,
    shown_in="Slides on the averaged perceptron",
    data="a9a",
    protocol=(
        "10,000 rows of the Adult data (a9a), images of digits of scikit-learn, and 4,000 made points in 50 dimensions "
        "of which 10% have the other class. 30 draws; one half is for training, the other for the test. Perceptron "
        "with an intercept, one or ten passes in random orders. The same hypotheses are used in three ways: the last "
        "one, their mean, and their vote."
    ),
    cells=_averages_cells,
    measure=_averages,
    tables=_averages_tables,
    claims=_averages_claims,
    seeds=30,
    minutes=6,
    differences=(
        "The lecture gives the algorithm without an experiment. That averages and votes are better is found by Freund "
        "and Schapire (1999), which it cites, on other digits.",
    ),
)
EXPERIMENTS = (CONVERGENCE, AVERAGES)
