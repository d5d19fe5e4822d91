"""What the displays share: axes, colors and matrices between views. matplotlib loads when something is drawn."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..views._docs import shared_docs

BLUE, ORANGE, GRAY = "#1f4e79", "#b35900", "0.4"  # legible in grayscale and color-blind safe


def load_pyplot() -> Any:
    """Import matplotlib.pyplot; raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need the package matplotlib: pip install 'consilience[plot]'.") from error
    return plt


@shared_docs
class Display(ABC):
    """Base of the displays in one set of axes: `plot` provides the axes, and `_draw` of each display uses them."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        {ax}

        {returns_display}
        """
        return self._plot(ax)

    def _plot(self, ax: Any, **line: Any) -> Self:
        if ax is None:
            _, ax = load_pyplot().subplots(figsize=self._figure_size(), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(**line)
        return self

    @abstractmethod
    def _draw(self, *args: Any, **line: Any) -> None:
        """Draw on `ax_`, and store what was drawn; displays of curves take arguments for their line."""

    def _figure_size(self) -> tuple[float, float] | None:
        """Return the size of a new figure in inches; None for the default of matplotlib."""
        return None


@shared_docs
class CurveDisplay(Display):
    """Base of the displays of a curve, whose line takes the arguments of matplotlib."""

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        {ax}
        **line : dict
            Arguments for ``ax.plot``, or for ``ax.errorbar`` if the display shows error bars.

        {returns_display}
        """
        return self._plot(ax, **line)


def draw_matrix(ax: Any, values: np.ndarray, names: Sequence[str], label: str, **limits: Any) -> Any:
    """Draw a matrix between views, from light to dark, with its numbers."""
    image = ax.imshow(values, cmap="Blues", **limits)
    middle = (image.get_clim()[0] + image.get_clim()[1]) / 2  # above it, cells are too dark for black numbers
    for v, row in enumerate(values):
        for w, value in enumerate(row):
            if np.isfinite(value):
                ax.text(w, v, f"{value:.2g}", ha="center", va="center", color="white" if value > middle else "black")
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.figure.colorbar(image, ax=ax, label=label)
    return image
