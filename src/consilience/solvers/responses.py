"""How one view's function responds to dual residuals: E = K(aI + BK)⁻¹, for a penalty <f, Bf> beside a‖f‖²."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import cast, like, namespace
from .linalg import (
    add_to_diagonal,
    cholesky,
    diagonal_of,
    forward,
    gram_of,
    inverse,
    largest_entry,
    multiply,
    root,
    sandwich,
    solve,
)


class Plain:
    """B = 0: E = K/a, and nothing is factored."""

    def __init__(self, K: np.ndarray, a: float):
        self.K, self.a = K, a

    def block(self, l: int) -> np.ndarray:
        """Return E between the first l rows."""
        return self.K[:l, :l].T / self.a  # symmetric; transposed to the memory order of the other blocks

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Ex."""
        return multiply(self.K, x) / self.a

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Return (aI + BK)⁻¹x."""
        return x / self.a

    def penalize(self, f: np.ndarray) -> np.ndarray:
        """Return Bf."""
        return namespace(f).zeros_like(f)


class _Penalized(ABC):
    """What responses with B ≠ 0 share: B = diag(diagonal) + w L, where there is a graph."""

    def __init__(self, K: np.ndarray, a: float, diagonal: Any, L: Any, graph_penalty: float):
        self.K, self.a, self.diagonal, self.L, self.graph_penalty = K, a, diagonal, L, graph_penalty

    def _penalty(self) -> Any:
        """Return B, or its diagonal."""
        if self.L is None:
            return self.diagonal
        if sp.issparse(self.L):
            return self.graph_penalty * self.L + sp.diags_array(np.broadcast_to(self.diagonal, len(self.K)))
        dense = self.L.toarray() if hasattr(self.L, "toarray") else self.L
        return add_to_diagonal(self.graph_penalty * dense, self.diagonal)

    @abstractmethod
    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Ex."""

    def penalize(self, x: np.ndarray) -> np.ndarray:
        """Return Bx."""
        product = like(np.reshape(self.diagonal, (-1, 1)), x) * x
        if self.L is None:
            return product
        return product + self.graph_penalty * (multiply(self.L, x) if isinstance(self.L, np.ndarray) else self.L @ x)

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Return (aI + BK)⁻¹x = (x - BEx)/a, refined as long as the residual falls."""
        found = (x - self.penalize(self.apply(x))) / self.a
        rest = x - self.a * found - self.penalize(multiply(self.K, found))
        for _ in range(5):  # iterative refinement: E is rounded, K and B are not
            if largest_entry(rest) <= 1e-13 * largest_entry(x):
                break
            better = found + (rest - self.penalize(self.apply(rest))) / self.a
            left = x - self.a * better - self.penalize(multiply(self.K, better))
            if not largest_entry(left) < largest_entry(rest):
                break
            found, rest = better, left
        return found


class Factored(_Penalized):
    """E = G(aI + G'BG)⁻¹G' with K = GG', not formed: for views that are not coupled, where few columns are needed."""

    def __init__(self, K: np.ndarray, a: float, diagonal: Any, L: Any, graph_penalty: float):
        super().__init__(K, a, diagonal, L, graph_penalty)
        self.G, triangular = root(K)
        # CC' = aI + G'BG
        self.C = cholesky(add_to_diagonal(sandwich(self.G, self._penalty(), triangular=triangular), a))

    def block(self, l: int) -> np.ndarray:
        """Return E between the first l rows."""
        return gram_of(forward(self.C, self.G[:l, :].T))  # E = (C⁻¹G')'(C⁻¹G')

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Ex."""
        return multiply(self.G, solve(self.C, multiply(self.G.T, x)))


class Formed(_Penalized):
    """E as a matrix, and its complement I - pEp with p² = b s m: for coupled views."""

    def __init__(self, K: np.ndarray, a: float, diagonal: np.ndarray, L: Any, graph_penalty: float):
        super().__init__(K, a, diagonal, L, graph_penalty)
        p = np.sqrt(diagonal)
        across, down = (cast(like(q, K), K.dtype) for q in (p[None, :], p[:, None]))
        if L is None and diagonal.min() * diagonal_of(K).max() > 1e-5 * a:
            # P = (aI + pKp)⁻¹ and E = (I - aP)/p²: no digits cancel, because the penalty is not small
            self.complement = inverse(add_to_diagonal(down * K * across, a))
            self.complement *= a  # I - pEp = aP
            self.E = self.complement * (-1 / across)
            self.E /= down
            self.E = add_to_diagonal(self.E, 1 / diagonal)
            return
        G, triangular = root(K)
        C = cholesky(add_to_diagonal(sandwich(G, self._penalty(), triangular=triangular), a))
        self.E = gram_of(forward(C, G.T))
        self.complement = self.E * -across
        self.complement *= down
        self.complement = add_to_diagonal(self.complement, 1.0)

    def block(self, l: int) -> np.ndarray:
        """Return E between the first l rows."""
        return self.E[:l, :l]

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return Ex."""
        return multiply(self.E, x)
