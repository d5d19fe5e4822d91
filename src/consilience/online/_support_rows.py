"""Kernel values of one sample with a support, from dense arrays that are kept between calls."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._jit import jit
from ..kernels import RBF, Kernel, Linear
from ..views.container import Views
from ._rows import read_numbers

_ROOM = 64  # rows that the first arrays have room for
_ONE = np.ones(1, dtype=bool)


class SupportRows:
    """Rows of the support in double precision, one array for each view, with room for more.

    It never changes: `with_rows` returns another one that shares the arrays, and the rows after its own. So machines
    that were copied can share it.
    """

    def __init__(self, n: int, rows: dict[str, np.ndarray], present: dict[str, np.ndarray], end: list[int]):
        self.n, self.rows, self.present, self.end = n, rows, present, end

    @classmethod
    def of(cls, parts: Sequence[Views]) -> "SupportRows | None":
        """Return the rows of samples; None if a view is not dense, or has another width in another part."""
        blocks = {name: X.block(name) for X in parts for name in X.names if X.block(name) is not None}
        if not all(isinstance(block, np.ndarray) and block.ndim == 2 for block in blocks.values()):
            return None
        rows = {name: np.zeros((0, block.shape[1])) for name, block in blocks.items()}
        empty = cls(0, rows, {name: np.zeros(0, dtype=bool) for name in blocks}, [0])
        own: SupportRows | None = empty._with_room(sum(len(X) for X in parts))
        for X in parts:
            own = None if own is None else own.with_rows(X)
        return own

    def with_rows(self, X: Views) -> "SupportRows | None":
        """Return these rows and those of X; None if they cannot be in one array."""
        given = [name for name in X.names if X.block(name) is not None]
        for name in given:
            block = X.block(name)
            dense = isinstance(block, np.ndarray) and block.ndim == 2 and name in self.rows
            if not dense or block.shape[1] != self.rows[name].shape[1]:
                return None
        n = self.n + len(X)
        fits = self.end[0] == self.n and all(n <= len(own) for own in self.present.values())
        whole = self if fits else self._with_room(2 * n)
        for name in given:
            there = X.present(name)
            whole.rows[name][self.n : n] = X.block(name) if there.all() else np.where(there[:, None], X.block(name), 0)
            whole.present[name][self.n : n] = there
        whole.end[0] = n
        return SupportRows(n, whole.rows, whole.present, whole.end)

    def _with_room(self, size: int) -> "SupportRows":
        """Return the rows in new arrays, so that no other object writes to them."""
        room, n = max(size, _ROOM), self.n
        rows = {name: np.zeros((room, own.shape[1])) for name, own in self.rows.items()}
        present = {name: np.zeros(room, dtype=bool) for name in self.rows}
        for name in self.rows:
            rows[name][:n], present[name][:n] = self.rows[name][:n], self.present[name][:n]
        return SupportRows(n, rows, present, [n])

    def kernel_row(self, kernel: Kernel, x: np.ndarray, name: str, shift: float, out: np.ndarray) -> None:
        """Add k(x, ·) + `shift` to `out` for the members of the support that have a view."""
        _add_kernel(kernel, x, self.rows[name][: self.n], self.present[name][: self.n], shift, out)


class SingleRow:
    """One sample for a kernel machine: its rows, and its kernel values with the support and with itself.

    It stands for Views of one sample where kernel values are asked for. What is stored is Views.
    """

    def __init__(self, given: Mapping[str, np.ndarray], grams: Any, support: SupportRows):
        self.given, self.grams = given, grams
        self.rows = {name: row.astype(np.float64, copy=False) for name, row in given.items()}
        self.values = np.zeros((grams.n_groups(), support.n))
        for g, of_x, of_y in grams.groups():
            if of_x in self.rows and of_y in support.rows:
                support.kernel_row(grams.kernels[of_y], self.rows[of_x], of_y, self._shift(), self.values[g])
        if grams.intercept and grams.shape == "joint":
            self.values += 1.0

    def __len__(self) -> int:
        return 1

    def __getitem__(self, rows: Any) -> Any:
        """Return the sample itself for a slice, and for positions Views of it, or nothing."""
        if isinstance(rows, slice):
            return self
        return self._views() if len(rows) else ()

    def _views(self) -> Views:
        blocks = {name: self.given[name][None].copy() if name in self.given else None for name in self.grams.kernels}
        return Views._of(blocks, 1, np.array([[name in self.given for name in blocks]]), {}, None)

    def _shift(self) -> float:
        """Return what an intercept adds to the kernel of each view; a joint kernel has one of its own."""
        return float(self.grams.intercept and self.grams.shape != "joint")

    def with_itself(self) -> np.ndarray:
        """Return k(x, x) of each group, of shape (1, n_groups, 1)."""
        own = np.zeros((1, self.grams.n_groups(), 1))
        for g, of_x, of_y in self.grams.groups():
            if of_x in self.rows and of_y in self.rows:
                x, z = self.rows[of_x], self.rows[of_y]
                _add_kernel(self.grams.kernels[of_y], x, z[None], _ONE, self._shift(), own[0, g])
        return own + 1.0 if self.grams.intercept and self.grams.shape == "joint" else own


def _add_kernel(kernel: Kernel, x: np.ndarray, Y: np.ndarray, there: np.ndarray, shift: float, out: np.ndarray) -> None:
    """Add k(x, y) + `shift` for each row y that is there."""
    if type(kernel) is RBF:
        _add_gaussian(x, Y, there, float(kernel.gamma), shift, out)
    elif type(kernel) is Linear:
        _add_products(x, Y, there, shift, out)
    elif there.all():
        out += kernel._finite_gram(x[None], Y)[0] + shift
    else:
        out[there] += kernel._finite_gram(x[None], Y[there])[0] + shift


def read_single(machine: Any, x: Mapping[str, Any]) -> SingleRow | None:
    """Return one sample of dense views for a kernel machine; None if it must be validated as Views first."""
    grams = machine.grams
    sums = grams.shape != "joint" or grams.adds()  # products and votes need more than sums of kernel values
    support = machine.support.rows() if sums and machine.average != "voted" else None
    if support is None:
        return None
    given: dict[str, np.ndarray] = {}
    for name, row in x.items():
        own = NotImplemented if name not in support.rows else None
        if own is None and row is not None:
            own = read_numbers(row, support.rows[name].shape[1])
        if own is NotImplemented:
            return None
        if own is not None:
            given[name] = own
    try:
        sample = SingleRow(given, grams, support) if given else None
    except ValueError:  # a kernel refuses the sample: validation says why
        return None
    return sample if sample is not None and np.isfinite(sample.values.sum()) else None


def coefficient_columns(machine: Any) -> np.ndarray:
    """Return the coefficients as a matrix (n_groups · n_support, n_outputs), kept until they change."""
    now = (machine.alpha, getattr(machine, "beta", None), machine.n_hypotheses)  # learning replaces the arrays
    before = machine._computed
    if before is None or before[0] is not now[0] or before[1] is not now[1] or before[2] != now[2]:
        values = machine.coefficients()
        columns = np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(-1, values.shape[1])
        machine._computed = before = (*now, columns)
    return np.asarray(before[3])


# -- compiled loops
@jit(fastmath={"reassoc", "contract"})  # lets the compiler use several partial sums
def _add_gaussian(x, Y, there, gamma, shift, out):  # type: ignore[no-untyped-def]
    """Add exp(-γ‖x - y‖²) + shift for each row y that is there."""
    for s in range(len(Y)):
        if there[s]:
            total = 0.0
            for j in range(len(x)):
                total += (x[j] - Y[s, j]) ** 2
            out[s] += np.exp(-gamma * total) + shift


@jit(fastmath={"reassoc", "contract"})
def _add_products(x, Y, there, shift, out):  # type: ignore[no-untyped-def]
    """Add x·y + shift for each row y that is there."""
    for s in range(len(Y)):
        if there[s]:
            total = 0.0
            for j in range(len(x)):
                total += x[j] * Y[s, j]
            out[s] += total + shift
