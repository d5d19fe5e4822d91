"""Published experiments that one command runs again: ``consilience reproduce NAME``.

Each file without an underscore is one experiment, or a few that share their code: cells of work, what is measured in a
cell, the tables with the published values, and the claims. A new file is found because it exists.
"""

from importlib import import_module
from pkgutil import iter_modules

from ._experiment import Experiment

__all__ = ["all_experiments"]


def all_experiments() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of papers and tables."""
    modules = sorted(each.name for each in iter_modules(__path__) if not each.name.startswith("_"))
    found = [each for name in modules for each in import_module(f"{__name__}.{name}").EXPERIMENTS]
    return {each.name: each for each in sorted(found, key=lambda each: (each.paper, _number(each.shown_in), each.name))}


def _number(text: str) -> tuple[str, float]:
    """Return a key that sorts Table 9 before Table 10."""
    words = text.replace(",", " ").split()
    digits = next((word for word in words if word[0].isdigit()), "0")
    return words[0].rstrip("s"), float(digits)
