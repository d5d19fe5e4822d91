"""What estimators and solvers make of hostile numbers: a proof, a warning, a refusal in one sentence, or a failure.

python trust/numerics.py            a few cells of the table, as in the tests
python trust/numerics.py --long     every estimator and solver in every condition, with several seeds
"""

import os

if __name__ == "__main__":  # threads of BLAS only wait for each other on matrices this small
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import _solvers as solvers
import cases
from _conditions import CONDITIONS, EQUALITIES, Data
from _trials import Outcome, try_one
from check import Check, Figure, Found, main
from fuzzing.properties import explain

MARKS = {"certified": "c", "answered": "a", "warned": "w", "refused": "r", "failed": "F"}
SEEDS = (0, 1, 2)  # of the long run


# -- solvers
def try_solver(name: str, condition: str, seed: int) -> Outcome:
    """Call a function of the solvers on arrays in a condition; return the outcome."""
    call, (change, same) = solvers.CALLS[name], solvers.CONDITIONS[condition]
    plain = solvers.arrays(np.random.default_rng([seed, 7]))
    given = change(plain)
    before = [part.tobytes() for part in given]
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            result = call(given)
            assert result is None or np.isfinite(np.asarray(result, dtype=np.float64)).all(), "not finite"
            if same and result is not None:
                solvers.near(result, call(plain), 1e-7)
        except Exception as error:  # any error of a solver on finite arrays is a failure
            return Outcome("failed", explain(error))
    if told:
        return Outcome("failed", f"{told[0].category.__name__}: {told[0].message}")
    if before != [part.tobytes() for part in given]:
        return Outcome("failed", "the input was changed")
    return Outcome("answered")


# -- the table
class Cell(NamedTuple):
    """One estimator in one condition."""

    outcomes: list[Outcome]

    @property
    def mark(self) -> str:
        """The outcomes in short, "-" where the condition does not apply."""
        found = {MARKS[outcome.mark] for outcome in self.outcomes}
        return "".join(mark for mark in MARKS.values() if mark in found) or "-"


def try_cell(name: str, condition: str, seeds: Sequence[int]) -> Cell:
    """Try an estimator in a condition, with data of several seeds."""
    outcomes = []
    for seed in seeds:
        data = Data(cases.LEARNERS[name], np.random.default_rng([seed, list(CONDITIONS).index(condition)]))
        for number, trial in enumerate(CONDITIONS[condition](data)):
            outcomes.append(try_one(trial))
            if outcomes[-1].mark == "failed":
                print(f"{name}, {condition}, seed {seed}, trial {number}: {outcomes[-1].text[:500]}")
    return Cell(outcomes)


def chosen_cells(long: bool) -> list[tuple[str, str]]:
    """Return all cells, or one condition of each estimator, in turn; the short run has every condition."""
    if long:
        return [(name, condition) for name in cases.LEARNERS for condition in CONDITIONS]
    conditions = [condition for condition in CONDITIONS if condition != "width 100,000"]  # which takes long
    return [(name, conditions[k % len(conditions)]) for k, name in enumerate(cases.LEARNERS)]


def chosen_calls(long: bool) -> list[tuple[str, str, int]]:
    """Return functions of the solvers, conditions and seeds: all, or two conditions of each function, in turn."""
    conditions = list(solvers.CONDITIONS)
    if long:
        return [(name, condition, seed) for name in solvers.CALLS for condition in conditions for seed in SEEDS]
    places = [(name, 2 * k + i) for k, name in enumerate(solvers.CALLS) for i in range(2)]
    return [(name, conditions[place % len(conditions)], 0) for name, place in places]


def run(long: bool) -> Found:
    """Try estimators and solvers in hostile conditions."""
    table = {at: try_cell(*at, SEEDS if long else SEEDS[:1]) for at in chosen_cells(long)}
    total = Counter(outcome.mark for cell in table.values() for outcome in cell.outcomes)
    named = ", ".join(f"{total[mark]:,} {mark}" for mark in ("certified", "answered", "warned", "refused"))
    equal = sum(cell.mark != "-" for (_, condition), cell in table.items() if condition in EQUALITIES)
    failed, tried = dict.fromkeys(solvers.CALLS, 0), 0
    for name, condition, seed in chosen_calls(long):
        outcome = try_solver(name, condition, seed)
        tried += 1
        if outcome.mark == "failed":
            failed[name] += 1
            print(f"{name}, {condition}, seed {seed}: {outcome.text[:500]}")
    cells = f"{len(table):,} cells of {len(cases.LEARNERS)} estimators and {len(CONDITIONS)} conditions"
    figures = [
        Figure("fits in hostile conditions", total.total(), total["failed"], f"{named}; {cells}, {equal:,} compared"),
        Figure("calls of solvers with hostile arrays", tried, sum(failed.values()), f"{len(failed)} functions"),
    ]  # fmt: skip
    numbers = {condition: str(k + 1) for k, condition in enumerate(CONDITIONS)}
    rows = [[name, *(table[name, c].mark if (name, c) in table else "" for c in CONDITIONS)] for name in cases.LEARNERS]
    legend = [[number, condition] for condition, number in numbers.items()]
    title = "Outcomes by estimator and number of the condition: c certified, a answered without an optimum to prove, w "
    title += "warned, r refused in a sentence, - not applicable"
    return Found(figures, [("Conditions", ["number", "condition"], legend), (title, ["", *numbers.values()], rows)])


CHECK = Check(
    "numerics",
    "Hostile numbers",
    "Whatever the data and the penalties, a fit is certified, or warns that it is not, or is refused in one sentence. "
    "There are no NaN, no errors or warnings of NumPy, and no changes of the input. The same data in another form, a "
    "view that is always missing, and a sample given twice give the predictions that they must.",
    run,
    (
        "Predictions of fits that warn are not compared.",
        "Estimators of others inside a fusion may give their own warnings and messages.",
        "Functions of the solvers that others call are tried through these; arrays on a device are not tried.",
    ),
)


if __name__ == "__main__":
    sys.exit(main(CHECK))
