"""Whether the published iteration of Huusari, Kadri and Capponi (2018), stopped early, explains its accuracies."""

from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from ..solvers.alternating_metric import MetricMoments, alternate_metric, fixed_metric_steps
from ..views.container import Views
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table, half_width, with_interval
from ._metric import PAPER, nystroem_features, tuned, wide
from .uwave import uwave_data

LEVELS, ROUNDS = (0.06, 0.12), (0, 1, 2, 5, 10, 20, 50)
PUBLISHED = {0.06: 92.67, 0.12: 93.03}
STEPS = {"backtracking": None, "fixed": 0.05}  # the step μ times η
GRID = [(alpha, penalty) for alpha in (1e-6, 1e-4, 1e-2, 1.0) for penalty in (1e-3, 1e-1, 1e1)]


def outputs_after(
    Z: Views, Y: np.ndarray, Z_test: Views, penalties: tuple[float, float], rounds: int, step: float | None
) -> np.ndarray:
    """Return outputs for test rows after a number of rounds from the identity, with equal weights of the views."""
    U, U_test, sizes = wide(Z), wide(Z_test), [Z[name].shape[1] for name in Z.names]
    moments = MetricMoments(U.T @ U, U.T @ Y, (Y**2).sum(axis=0), sizes, *penalties, sparse=False, shared=False)
    w = np.full(len(sizes), 1 / len(sizes))
    given: dict[str, Any] = {"weights": "given", "tol": 0.0, "max_iter": rounds}
    if step is None:
        G = alternate_metric(moments, w, **given).x.G
    else:
        G = fixed_metric_steps(moments, w, step=step / penalties[1], **given).x.G
    return (U_test * np.repeat(w, sizes)) @ G


def _cells(seeds: int, quick: bool) -> list[Cell]:
    if quick:
        return [{"level": 0.06, "draw": 0, "steps": "fixed", "rounds": rounds, "rows": 100} for rounds in (0, 2)]
    cells = [
        {"level": level, "draw": draw, "steps": steps, "rounds": rounds}
        for level in LEVELS
        for draw in range(seeds)
        for steps in STEPS
        for rounds in ROUNDS
        if (rounds or steps == "fixed") and (rounds < 50 or level == LEVELS[0])  # no rounds: the same for all steps
    ]
    return cells + [
        {"level": level, "draw": draw, "steps": "exact", "rounds": None} for level in LEVELS for draw in range(seeds)
    ]


def _measure(cell: Cell, cached: Cached) -> Found:
    data = uwave_data(cell.get("rows"))
    if cell["steps"] == "exact":
        model = tuned("MVML", data.kernels, cell["level"], cell["draw"]).fit(data.X, data.y)
        return {"chosen": 100 * float(model.score(data.X_test, data.y_test))}
    Z, Z_test, _ = nystroem_features(data.X, data.X_test, data.kernels, cell["level"], cell["draw"])
    classes, codes = np.unique(data.y, return_inverse=True)
    Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    step = STEPS[cell["steps"]]
    held, right = [], []
    for pair in GRID:
        predicted = np.empty(len(Y), dtype=np.intp)
        for train, rest in KFold(3, shuffle=True, random_state=cell["draw"]).split(Y):
            predicted[rest] = outputs_after(Z[train], Y[train], Z[rest], pair, cell["rounds"], step).argmax(axis=1)
        outputs = outputs_after(Z, Y, Z_test, pair, cell["rounds"], step)
        held.append(float(np.mean(predicted == codes)))
        right.append(100 * float(np.mean(classes[outputs.argmax(axis=1)] == data.y_test)))
    best = int(np.argmax(held))
    return {"chosen": right[best], "hindsight": max(right), "λ": GRID[best][0], "η": GRID[best][1]}


def _tables(results: Results) -> list[Table]:
    found = []
    for level in results.levels("level"):
        rows = []
        for steps in [each for each in results.levels("steps") if each != "exact"]:
            for rounds in [each for each in results.levels("rounds") if each is not None]:
                where = {"level": level, "steps": steps, "rounds": rounds}
                if results.has("chosen", **where):
                    chosen, best = (results.values(name, **where) for name in ("chosen", "hindsight"))
                    rows.append([steps if rounds else "none", str(rounds), with_interval(chosen), with_interval(best)])
        if results.has("chosen", level=level, steps="exact"):
            rows.append(["exact", "", with_interval(results.values("chosen", level=level, steps="exact")), ""])
        heads = ["steps on the metric", "rounds", "penalties chosen on training rows", "best penalties on test rows"]
        title = f"Percent of test rows with the right class, {level:.0%} landmarks; published {PUBLISHED[level]:.2f}"
        found.append(Table(title, heads, rows))
    return found


def _claims(results: Results) -> list[Claim]:
    claims = []
    for level in LEVELS:
        exact = results.values("chosen", level=level, steps="exact")
        gains, tops = {}, {}
        for cell, _ in results.cells:
            if cell["level"] == level and cell["steps"] != "exact" and cell["rounds"]:
                where = {"level": level, "steps": cell["steps"], "rounds": cell["rounds"]}
                name = f"{cell['rounds']} rounds of {cell['steps']} steps"
                gains[name] = results.values("chosen", **where) - exact
                tops[name] = results.mean("hindsight", **where)
        best, top = max(gains, key=lambda name: gains[name].mean()), max(tops, key=lambda name: tops[name])
        reached = float((gains[best] + exact).mean())
        gain = gains[best]
        claims.append(
            Claim(
                f"The published {PUBLISHED[level]:.2f} at {level:.0%}, which is above the exact solution, comes from "
                "stopping the iteration early.",
                bool(gain.mean() > half_width(gain)) and reached > PUBLISHED[level] - 0.1,
                f"the best number of rounds on test rows, {best}, gains {with_interval(gain, sign=True)} points over "
                f"the exact solution and reaches {reached:.2f}; with the best penalties on test rows {top} reach "
                f"{tops[top]:.2f}",
                "The gain is not larger than its interval, or the published value is not reached. "
                + (
                    "Penalties chosen on test rows would reach it."
                    if tops[top] > PUBLISHED[level] - 0.1
                    else "Even penalties chosen on test rows do not reach it."
                ),
            )
        )
    return claims


ALTERNATION = Experiment(
    name="early-stopping",
    title="The published iteration, stopped early, on uWave gestures",
    paper=PAPER,
    shown_in="Table 1, uWave, and Algorithm 1",
    data="uwave",
    protocol="Data, kernels and landmarks are those of the uWave experiment, at 6 and 12%. The published iteration "
    "starts from the identity and takes a number of rounds, with backtracking or with fixed steps μ = 0.05/η. Weights "
    "of the views are equal. For each number of rounds λ = 1e-6, 1e-4, 0.01, 1 and η = 0.001, 0.1, 10 are chosen by "
    "three folds of the training rows. The last column has the best pair on test rows, a limit of what any choice "
    "can reach. No rounds is MVML_I. The exact solution has the penalties of leave-one-out on the whole grid.",
    cells=_cells,
    measure=_measure,
    tables=_tables,
    claims=_claims,
    seeds=4,
    minutes=22,
    differences=("The paper states neither its steps nor its number of rounds.", "Fifty rounds are for 6% alone."),
)
EXPERIMENTS = (ALTERNATION,)
