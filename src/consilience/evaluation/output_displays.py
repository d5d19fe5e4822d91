"""Displays of many outputs: how much each view explains of them."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..views._docs import shared_docs
from ._drawing import BLUE, GRAY, ORANGE, Display
from ._wrappers import fitted_final, steps_of

__all__ = ["BandedR2Display"]


@shared_docs
class BandedR2Display(Display):
    """R² of each output, divided among the views, for the outputs in the order of their R².

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    parts : array of shape (n_views, n_outputs)
        Parts of R², which add to the R² of each output; see `BandedRidgeCV.r2_by_view`. Outputs with NaN are left out.
    name : str, optional
        Title.

    Attributes
    ----------
    {ax_}
    lines_ : list of Line2D
        R² of the outputs, then the part of each view, averaged over outputs that follow one another.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import BandedR2Display, BandedRidgeCV, Views
    >>> rng = np.random.default_rng(0)
    >>> X = Views(a=rng.normal(size=(80, 3)), b=rng.normal(size=(80, 2)))
    >>> Y = X["a"] @ rng.normal(size=(3, 40)) + rng.normal(size=(80, 40))
    >>> model = BandedRidgeCV(random_state=0).fit(X[:60], Y[:60])
    >>> display = BandedR2Display.from_estimator(model, X[60:], Y[60:])
    >>> len(display.lines_)
    3
    """

    def __init__(self, names: Sequence[str], parts: Any, *, name: str | None = None):
        self.names = tuple(names)
        self.parts = np.asarray(parts, dtype=np.float64).reshape(len(self.names), -1)
        self.name = name

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Draw the parts of R² of a fitted estimator.

        Parameters
        ----------
        model : estimator
            A fitted `BandedRidgeCV`, or a pipeline that ends with one.
        X : Views or what `as_views` reads
            Samples, such as test samples.
        y : array-like of shape (n_samples, n_outputs)
            The targets; NaN in single outputs is allowed.
        {ax}

        {returns_display}
        """
        final = fitted_final(model, "draws_", "Give a BandedRidgeCV, alone or at the end of a pipeline.")
        for step in steps_of(model)[:-1]:
            X = step.transform(X)
        return cls(final._used_views, final.r2_by_view(X, y), name=type(final).__name__).plot(ax=ax)

    def _draw(self) -> None:
        parts = self.parts[:, ~np.isnan(self.parts).any(axis=0)]
        order = np.argsort(parts.sum(axis=0))[::-1]
        sorted_parts = parts[:, order]
        width = max(len(order) // 50, 1)  # a mean over neighbors, so that the lines can be told apart
        kernel = np.ones(width)
        places = np.arange(1, len(order) + 1)
        counts = np.convolve(np.ones(len(order)), kernel, mode="same")
        self.lines_ = self.ax_.plot(places, sorted_parts.sum(axis=0), color="black", label="all views")
        styles = [(BLUE, "-"), (ORANGE, "--"), (GRAY, "-."), (BLUE, ":"), (ORANGE, ":"), (GRAY, "--")]
        for k, (view, own) in enumerate(zip(self.names, sorted_parts, strict=True)):
            color, style = styles[k % len(styles)]
            smooth = np.convolve(own, kernel, mode="same") / counts
            self.lines_ += self.ax_.plot(places, smooth, color=color, linestyle=style, label=view)
        self.ax_.axhline(0, color="black", linewidth=0.8)
        self.ax_.set(xlabel="outputs, from the highest R²", ylabel="R² and its parts", title=self.name)
        self.ax_.legend()
