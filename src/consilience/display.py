"""Pictures of what was learned, in the manner of scikit-learn's displays; matplotlib loads as one is drawn."""

from typing import Any, Self

import numpy as np

from .certificates import MistakeCertificate

__all__ = ["MistakesDisplay"]


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need the package matplotlib: pip install 'consilience[plot]'.") from error
    return plt.subplots()[1] if ax is None else ax


class MistakesDisplay:
    """The error of an online learner along its stream, and the mistake bound.

    Parameters
    ----------
    curve : array of shape (n, 2)
        Samples seen and the share of mistakes so far.
    bound : float, optional
        The most mistakes there can be on the whole stream.
    name : str, optional
        What the curve is called.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.make_views(n_samples=300, n_classes=2, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron().partial_fit(X, y)
    >>> display = cs.MistakesDisplay.from_estimator(model, X, y)
    >>> bool(display.bound >= model.mistakes_)
    True
    """

    def __init__(self, curve: Any, *, bound: float | None = None, name: str | None = None):
        self.curve = np.asarray(curve, dtype=np.float64)
        self.bound = bound
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None, **line: Any
    ) -> Self:
        """Draw the error curve of an online learner.

        Parameters
        ----------
        model : online learner
            A learner that has seen samples.
        X, y : Views and array-like, optional
            The samples learned; with them the mistake bound is drawn.
        ax : matplotlib Axes, optional
            Where to draw.
        name : str, optional
            What the curve is called; the learner's class by default.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            The display.
        """
        proof = None if X is None else model.certificate(X, y)
        bound = proof.bound if isinstance(proof, MistakeCertificate) else None  # others bound updates
        return cls(model.error_curve_, bound=bound, name=name or type(model).__name__).plot(ax=ax, **line)

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, name: str | None = None, **line: Any) -> Self:
        """Draw what `progressive_validation` found.

        Parameters
        ----------
        result : ProgressiveResult
            The result.
        ax : matplotlib Axes, optional
            Where to draw.
        name : str, optional
            What the curve is called.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            The display.
        """
        return cls(result.curve, name=name).plot(ax=ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **line : dict
            Given to ``ax.plot``.

        Returns
        -------
        MistakesDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        seen, error = self.curve.T
        (self.line_,) = self.ax_.plot(seen, error, **{"label": self.name, **line})
        if self.bound is not None and len(seen):
            share = np.minimum(self.bound / seen, 1.0)
            self.ax_.plot(
                seen, share, linestyle="--", color=self.line_.get_color(), label=f"bound {self.bound:.0f} mistakes"
            )
        self.ax_.set(xlabel="samples seen", ylabel="share of mistakes so far", xscale="log", ylim=(0, None))
        if self.name or self.bound is not None:
            self.ax_.legend()
        return self
