"""The factors between views of matrix and orthogonal perceptrons, as their machines keep them."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ._arrays import Factors
from ._machine import Sources, remapped
from ._steps import set_factors


class ViewFactors:
    """Factors F of the hypotheses W = V F, by output, and what they are computed from.

    `shape` says which products V'V are kept: "joint" (all views are one group), "views" (the norm of each view) or
    "pairs" (all products between views, as a flat matrix).
    """

    def __init__(self, shape: str, n_outputs: int, p: float = 1.0, prior_norms: Any = None):
        self.shape, self.p, self.prior_norms = shape, float(p), prior_norms
        self.names: tuple[str, ...] = ()  # of the views
        groups = 1 if shape == "joint" else 0
        self.norms, self.C = np.zeros((groups, n_outputs)), np.zeros((groups, n_outputs))
        self.F, self.prior = np.ones((groups, n_outputs)), np.zeros(groups)
        self.counters = np.zeros(2)
        # R of the prior norms that are learned, then q_k of each view (`_learn_prior`); without factors there are none
        self.learned = np.zeros(1 if isinstance(prior_norms, str) and p != 1 else 0)

    @property
    def side(self) -> int:
        """The number of views where V'V is a full matrix, else 0."""
        return len(self.names) if self.shape == "pairs" else 0

    @property
    def sums(self) -> np.ndarray:
        """Σ F over all hypotheses so far."""
        return self.sums_with(False)

    def sums_with(self, last: bool) -> np.ndarray:
        """Return Σ F over the hypotheses that were in use and, with `last`, the one that has not been used yet."""
        return self.C + (self.counters[0] + last) * self.F

    def arrays(self) -> Factors:
        """Return what a compiled pass takes; it writes to these arrays."""
        return Factors(self.norms, self.F, self.C, self.prior, self.counters, self.p, self.side, self.learned)

    def snapshot(self) -> "ViewFactors":
        """Return a copy that further learning does not change."""
        other = copy(self)
        for name in ("norms", "F", "C", "counters", "prior", "learned"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def places(self, before: int) -> np.ndarray:
        """Return where the groups of the first `before` views are among those of all views."""
        if self.shape != "pairs":
            return np.arange(before)
        return np.arange(self.side**2).reshape(self.side, -1)[:before, :before].ravel()

    def add_views(self, names: Sequence[str]) -> None:
        """Make room for more views; `names` are all views, those of before first."""
        before, self.names = len(self.names), tuple(names)
        if self.shape == "joint":
            return
        self.C, self.counters[0] = self.sums, 0  # closes the hypothesis, since F changes its shape
        places, unit = self.places(before), self._unit()
        for name in ("norms", "F", "C"):
            new = np.zeros((len(unit), self.F.shape[1]))
            if name == "F" and self.p == 1:  # for p > 1 the factor of a view without a step is 0
                new += unit[:, None]
            new[places] = getattr(self, name)
            setattr(self, name, new)
        if isinstance(self.prior_norms, str):  # learned: those of new views are 0 up to the next update
            self.prior = np.append(self.prior, np.zeros(len(unit) - before))
            self.learned = np.append(self.learned, np.ones(len(unit) - before if self.p != 1 else 0))
            return
        self.prior = np.zeros(len(unit))  # b_k of Fornoni 2009, appendix A.2
        if self.shape == "views" and self.prior_norms is not None:
            given = self.prior_norms
            self.prior[:] = [given.get(name, 0.0) for name in names] if isinstance(given, Mapping) else given
        if self.shape == "views" and (self.prior.any() or self.norms.any()):
            for t in range(self.F.shape[1]):
                set_factors(self.norms[:, t], self.prior, self.p, 0, self.F[:, t])

    def forget(self, scale: np.ndarray, weight: float) -> None:
        """Follow weight vectors that were multiplied by `scale`, one number for each view.

        Sums start again with the hypothesis that is left, with its weight in the mean.
        """
        if len(self.learned):  # R bounds the potential, which shrinks with the weights
            self.learned[0] *= float(scale.max()) ** 2
            self.prior *= float(scale.max()) ** 2
            self.learned[1:] = self.learned[1:] if scale.any() else 1.0
        if self.shape != "joint":
            squares = np.outer(scale, scale).ravel() if self.shape == "pairs" else scale**2
            self.norms *= squares[:, None]
            for t in range(self.F.shape[1]):
                if self.norms[:, t].any() or self.prior.any():
                    set_factors(self.norms[:, t], self.prior, self.p, self.side, self.F[:, t])
                else:
                    self.F[:, t] = self._unit()
        self.C[:], self.counters[:] = 0, (weight, 0)

    def remap(self, sources: Sources) -> None:
        """Replace the outputs; see `Machine.remap_outputs`. Squared norms scale by squares, factors do not scale."""
        self.learned[:1] *= sum(scale**2 for s, scale in sources if s >= 0) / self.norms.shape[1]  # a sum over outputs
        self.norms = remapped(self.norms, sources, power=2)
        self.F, self.C = (remapped(values, sources, power=0) for values in (self.F, self.C))
        self.F[:, [source < 0 for source, _ in sources]] = self._unit()[:, None]  # new outputs have V = 0

    def _unit(self) -> np.ndarray:
        """Return the factors of p = 1: the identity."""
        if self.shape == "pairs":
            return np.eye(self.side).ravel()
        return np.ones(1 if self.shape == "joint" else len(self.names))
