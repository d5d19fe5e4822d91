"""What the displays share: axes, colors and matrices between views. matplotlib loads when something is drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np

BLUE, ORANGE, GRAY = "#1f4e79", "#b35900", "0.4"  # legible in grayscale and color-blind safe


def load_pyplot() -> Any:
    """Import matplotlib.pyplot; raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need the package matplotlib: pip install 'consilience[plot]'.") from error
    return plt


def axes_or_new(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """Return the given axes, or those of a new figure."""
    return load_pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def draw_matrix(ax: Any, values: np.ndarray, names: Sequence[str], label: str, **limits: Any) -> Any:
    """Draw a matrix between views, from light to dark, with its numbers."""
    image = ax.imshow(values, cmap="Blues", **limits)
    middle = (image.get_clim()[0] + image.get_clim()[1]) / 2
    for v, row in enumerate(values):
        for w, value in enumerate(row):
            if np.isfinite(value):
                ax.text(w, v, f"{value:.2g}", ha="center", va="center", color="white" if value > middle else "black")
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.figure.colorbar(image, ax=ax, label=label)
    return image


def names_of_values(model: Any, n: int) -> tuple[str, ...]:
    """Return the views that n values of a fitted estimator belong to: all of them, or those that were used."""
    return tuple(model.view_names_in_) if len(model.view_names_in_) == n else tuple(model._used_views)
