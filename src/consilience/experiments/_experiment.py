"""What an experiment is: cells of work, measurements, and the tables and claims that follow from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

Cell = dict[str, Any]  # the parameters of one measurement, as JSON can hold them
Found = dict[str, Any]  # its numbers; those whose names begin with "seconds" are kept apart
Cached = Callable[[str, Callable[[], np.ndarray]], np.ndarray]  # a name and a function that makes the array


class Table(NamedTuple):
    """One table of the page: a title, the heads of the columns, and rows of text."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Claim(NamedTuple):
    """What the paper says, whether the measurements agree, and the numbers that decide it.

    `note` explains a disagreement. It must not be empty where `holds` is False.
    """

    text: str
    holds: bool
    evidence: str
    note: str = ""


class Results:
    """Measurements of one run, in the order of the cells.

    Parameters
    ----------
    cells : list of (Cell, Found)
        Parameters and numbers of each measurement.
    """

    def __init__(self, cells: Sequence[tuple[Cell, Found]]) -> None:
        self.cells = list(cells)

    def values(self, measure: str, **given: Any) -> np.ndarray:
        """Return a number of all cells with these parameters, in the order of the cells."""
        found = [found[measure] for cell, found in self._matching(given) if measure in found]
        if not found:
            raise KeyError(f"No cell with {given} has measured {measure!r}.")
        return np.array([np.nan if value is None else value for value in found])

    def has(self, measure: str, **given: Any) -> bool:
        """Return whether a cell with these parameters has measured a number."""
        return any(measure in found for _, found in self._matching(given))

    def levels(self, parameter: str) -> list[Any]:
        """Return the different values of a parameter, in the order of the cells."""
        return list(dict.fromkeys(cell[parameter] for cell, _ in self.cells if parameter in cell))

    def mean(self, measure: str, **given: Any) -> float:
        """Return the mean of `values`."""
        return float(self.values(measure, **given).mean())

    def text(self, measure: str, digits: int = 2, **given: Any) -> str:
        """Return the mean and the half width of its 95% interval over draws, as text."""
        return with_interval(self.values(measure, **given), digits)

    def _matching(self, given: Cell) -> list[tuple[Cell, Found]]:
        return [
            (cell, found)
            for cell, found in self.cells
            if all(name in cell and cell[name] == value for name, value in given.items())
        ]


@dataclass(frozen=True)
class Experiment:
    """A published experiment that can be run again.

    Parameters
    ----------
    name : str
        Name for the command line.
    title : str
        What is compared, in a few words.
    paper : str
        Author and year.
    shown_in : str
        Tables and figures of the paper.
    data : str
        The data that it needs.
    protocol : str
        What is done, in sentences.
    cells : callable
        Takes the number of draws and whether the run is a quick one; returns the cells.
    measure : callable
        Takes a cell and a function that caches arrays; returns the numbers.
    tables : callable
        Takes the results; returns tables with published values next to measured ones.
    claims : callable
        Takes the results of a full run; returns the claims of the paper.
    seeds : int
        Number of draws of a full run.
    minutes : float
        Measured time of a full run on one core.
    differences : tuple of str
        What differs from the paper, a sentence each.
    """

    name: str
    title: str
    paper: str
    shown_in: str
    data: str
    protocol: str
    cells: Callable[[int, bool], list[Cell]]
    measure: Callable[[Cell, Cached], Found]
    tables: Callable[[Results], list[Table]]
    claims: Callable[[Results], list[Claim]]
    seeds: int
    minutes: float
    differences: tuple[str, ...] = field(default=())


def half_width(values: Any, level: float = 0.95) -> float:
    """Return half the width of Student's interval for the mean of independent draws; NaN for a single one."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return float("nan")
    return float(student.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def with_interval(values: Any, digits: int = 2, sign: bool = False) -> str:
    """Return the mean of draws with half the width of its 95% interval, as text."""
    plus = "+" if sign else ""
    mean = f"{np.mean(values):{plus}.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {half_width(values):.{digits}f}"
