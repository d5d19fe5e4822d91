"""Mistake bounds of a learner on the samples it saw: comparators, their losses and norms."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ..solvers.certificates import MistakeCertificate, Solution, passive_aggressive_bound, perceptron_bound, risk_bound
from ..solvers.linalg import is_positive
from ..solvers.margin import KernelRows, solve_margin
from ..solvers.margin_labels import LabelKernel
from ..views import _blocks
from ..views._blocks import is_single
from ..views.container import Views
from ._dual import Grams, Support
from ._linear import read_matrix

SAMPLES = 3000  # a comparator of kernels is found on so many samples at most
PENALTIES = (0.1, 1.0, 10.0)  # C of the machines that find comparators, over the mean squared length


class Setting(NamedTuple):
    """Which bound holds: a perceptron's with margin and step, or a passive-aggressive one; `p` of the norm."""

    p: float
    margin: float = 0.0
    eta0: float = 1.0
    variant: str | None = None
    C: float = 1.0


class Comparison(NamedTuple):
    """The samples learned and, where one is given, a comparator."""

    X: Any
    y: Any
    comparator: Any


class _Columns:
    """Linear learners: comparators are vectors over the columns of all views."""

    def __init__(self, machine: Any, X: Views, setting: Setting):
        self.machine, self.p = machine, setting.p
        widths = [machine.widths[name] for name in machine.offsets]
        first = 1 if machine.bias else 0
        offsets = dict(zip(machine.offsets, np.cumsum([first, *widths]).tolist(), strict=False))
        self.Z = read_matrix(X, offsets, machine.widths, first + sum(widths), machine.bias)
        self.spans = {name: slice(offsets[name], offsets[name] + machine.widths[name]) for name in offsets}
        self.shape = getattr(machine, "shape", "link")

    def definite(self) -> bool:
        """Inner products are positive semi-definite."""
        return True

    def given(self, comparator: Any) -> np.ndarray:
        if not isinstance(comparator, Mapping):
            return np.asarray(self.Z.T @ _samples(comparator, self.Z.shape[0]))
        U = np.zeros((self.Z.shape[1], _columns(next(iter(comparator.values()))).shape[1]))
        for name, weights in comparator.items():
            if name not in self.spans:
                raise ValueError(f"`comparator` names the view '{name}'; the views are {_blocks.quoted(self.spans)}.")
            U[self.spans[name]] = _columns(weights)
        return U

    def found(self, codes: np.ndarray, outputs: int) -> Iterator[np.ndarray]:
        seen = np.unique(codes)
        self.Z.indices, self.Z.indptr = self.Z.indices.astype(np.int32), self.Z.indptr.astype(np.int32)
        spans = [slice(0, self.Z.shape[1]), *(self.spans.values() if len(self.spans) > 1 else [])]
        for span in spans:
            part = self.Z[:, span]
            size = float(part.multiply(part).sum()) / part.shape[0]
            for penalty in PENALTIES if size > 0 else ():
                machine = LinearSVC(loss="hinge", fit_intercept=False, C=penalty / size, tol=1e-3, random_state=0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    machine.fit(part, codes)
                U = np.zeros((self.Z.shape[1], outputs))
                if outputs == 1:
                    U[span, 0] = machine.coef_[0]
                elif len(seen) == 2:
                    U[span, seen[1]], U[span, seen[0]] = machine.coef_[0] / 2, -machine.coef_[0] / 2
                else:
                    U[span, seen] = machine.coef_.T
                yield U

    def scores(self, U: np.ndarray) -> np.ndarray:
        return np.asarray(self.Z @ U)

    def norm(self, U: np.ndarray) -> float:
        q = self.p / (self.p - 1)
        if self.shape in ("joint", "link"):
            return float(np.sqrt(sum(np.linalg.norm(u, q) ** 2 for u in U.T)))
        return float(np.sqrt(sum(_dual_norm(self._products(u), self.p) ** 2 for u in U.T)))

    def _products(self, u: np.ndarray) -> np.ndarray:
        """Inner products between the views' parts of one vector."""
        m = len(self.spans)
        if self.shape == "views":
            return np.diag([float(u[span] @ u[span]) for span in self.spans.values()])
        wide = np.zeros((m, max(self.machine.widths.values())))
        for k, span in enumerate(self.spans.values()):
            wide[k, : span.stop - span.start] = u[span]
        return wide @ wide.T

    def sizes(self) -> np.ndarray:
        if self.shape in ("joint", "link"):
            powers = sp.csr_array((np.abs(self.Z.data) ** self.p, self.Z.indices, self.Z.indptr), shape=self.Z.shape)
            return np.asarray(powers.sum(axis=1)).ravel() ** (1 / self.p)
        spans = list(self.spans.values())
        own = np.zeros((self.Z.shape[0], len(spans), len(spans)))
        width = max(self.machine.widths.values())
        parts = [sp.csr_array(self.Z[:, span]) for span in spans]
        for part in parts:
            part.resize((part.shape[0], width))
        for k, left in enumerate(parts):
            for l, right in enumerate(parts):
                if k == l or self.shape == "matrix":
                    own[:, k, l] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        return _primal_norms(own, self.p)


class _Kernels:
    """Kernel learners: comparators are coefficients of samples, by output."""

    def __init__(self, machine: Any, X: Views, setting: Setting):
        self.grams: Grams = machine.grams
        self.X, self.p = machine._read(X), setting.p
        self.all = np.arange(len(self.X))

    def definite(self) -> bool:
        """Whether kernels from outside are positive semi-definite between the samples, as the bounds need them."""
        if not any(kernel.may_be_indefinite for kernel in self.grams.kernels.values()):
            return True
        some = self.X[np.unique(np.linspace(0, len(self.X) - 1, SAMPLES).astype(int))]
        K = self.grams(some, some)
        single = any(is_single(self.X.block(name)) for name in self.X.names)
        return all(is_positive(K[:, g], single=single) for g in self._groups())

    def given(self, comparator: Any) -> np.ndarray:
        return _samples(comparator, len(self.X))

    def _groups(self) -> list[int]:
        m = len(self.grams.kernels)
        return [k * m + k for k in range(m)] if self.grams.shape == "pairs" else list(range(self.grams.n_groups()))

    def found(self, codes: np.ndarray, outputs: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(0)
        some = self.all if len(self.all) <= SAMPLES else np.sort(rng.choice(self.all, SAMPLES, replace=False))
        X, groups = self.X[some], self._groups()
        K = self.grams(X, X)
        for chosen in [groups, *([[g] for g in groups] if len(groups) > 1 else [])]:
            total = K[:, chosen].sum(axis=1)
            size = float(np.trace(total)) / len(total)
            for penalty in PENALTIES if size > 0 else ():
                U = np.zeros((len(self.all), outputs))
                for t in [0] if outputs == 1 else np.unique(codes):
                    signs = np.where(codes[some] == (1 if outputs == 1 else t), 1.0, -1.0)
                    U[some, t] = signs * _machine(total * np.outer(signs, signs), penalty / size)
                yield U

    def _sums(self, U: np.ndarray) -> np.ndarray:
        """Σ_i U_it k_g(x_i, x): (n, n_groups, n_outputs)."""
        used = np.flatnonzero(U.any(axis=1))
        support = Support()
        support.add(self.X[used], used)
        out = np.zeros((len(self.X), self.grams.n_groups(), U.shape[1]))
        for start in range(0, len(self.X) if len(used) else 0, 256):
            rows = slice(start, start + 256)
            out[rows] = support.against(self.grams, self.X[rows]) @ U[used]
        self._last = out
        return out

    def scores(self, U: np.ndarray) -> np.ndarray:
        return self._sums(U)[:, self._groups()].sum(axis=1)

    def norm(self, U: np.ndarray) -> float:
        products = np.einsum("nt,ngt->tg", U, self._last)  # of the scores just made
        m = len(self.grams.kernels)
        total = 0.0
        for own in products:
            N = own.reshape(m, m) if self.grams.shape == "pairs" else np.diag(own)
            total += _dual_norm(N, self.p) ** 2
        return float(np.sqrt(total))

    def sizes(self) -> np.ndarray:
        m, G = len(self.grams.kernels), self.grams.n_groups()
        own = np.empty((len(self.X), G))
        for start in range(0, len(self.X), 256):
            block = self.X[start : start + 256]
            K = self.grams(block, block)
            own[start : start + 256] = K[np.arange(len(block)), :, np.arange(len(block))]
        if self.grams.shape == "pairs":
            return _primal_norms(own.reshape(-1, m, m), self.p)
        return _primal_norms(np.eye(G)[None] * own[:, :, None], self.p)


def solve_square(Q: np.ndarray, C: float, *, tol: float, max_iter: int) -> Solution:
    """Solve min ½α'Qα - Σα over 0 <= α <= C for a kernel matrix; x is (α, Qα - 1)."""

    def against(columns: np.ndarray, dtype: Any) -> Any:
        def rows(which: np.ndarray, out: np.ndarray) -> np.ndarray:
            out[...] = Q[np.ix_(which, columns)]
            return out

        return rows

    n = len(Q)
    labels = LabelKernel.of_matrix(np.zeros(n, dtype=np.int64), np.ones((1, 1)))
    return solve_margin(KernelRows(against, Q.diagonal().copy()), labels, np.full(n, C), tol=tol, max_iter=max_iter)


def _machine(Q: np.ndarray, C: float) -> np.ndarray:
    """The support vector machine without a bias: min ½α'Qα - Σα over 0 <= α <= C."""
    found = solve_square(Q, C, tol=1e-2, max_iter=200)
    if found.status == "indefinite":  # rounding of the kernel leaves no machine to compare with; 0 always is one
        return np.zeros(len(Q))
    return np.asarray(found.x[0])


def _samples(comparator: Any, n: int) -> np.ndarray:
    if isinstance(comparator, Mapping) or len(_columns(comparator)) != n:
        raise ValueError(f"This comparator must be an array of coefficients, one for each of the {n} samples.")
    return _columns(comparator)


def _columns(values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values


def _dual_norm(N: np.ndarray, p: float) -> float:
    """The norm of U with the exponent conjugate to p, by N = U'U."""
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh((N + N.T) / 2), 0.0))
    q = p / (p - 1)
    top = float(singular.max())
    return top * float(np.sum((singular / top) ** q) ** (1 / q)) if top > 0 else 0.0


def _primal_norms(own: np.ndarray, p: float) -> np.ndarray:
    """‖X‖ with exponent p of each sample, by X'X."""
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh((own + own.transpose(0, 2, 1)) / 2), 0.0))
    return np.asarray(np.sum(singular**p, axis=1) ** (1 / p))


def mistake_certificate(learner: Any, comparison: Comparison, setting: Setting | None) -> MistakeCertificate:
    """Mistakes and their bound by the best of the comparators, rescaled; 0 is always one of them."""
    n, mistakes = int(learner.n_samples_seen_), int(learner.n_mistakes_)
    risk = risk_bound(mistakes / n, n) if n and learner._passes == 1 else None
    trivial = MistakeCertificate(status="streamed", mistakes=mistakes, n_samples=n, risk=risk)
    if setting is None:
        return trivial
    best = MistakeCertificate(
        status="streamed", mistakes=mistakes, n_samples=n, risk=risk, bound=float(n), loss=float(n), norm=0.0
    )
    if comparison.X is None or len(learner.classes_) < 2:
        return best
    X, codes = learner._read_pairs(comparison)
    if n % len(codes):
        raise ValueError(
            f"{type(learner).__name__} learned {n} samples, and {len(codes)} are given. The bound needs all of them, "
            "in one chunk."
        )
    passes = n // len(codes)
    data = (_Columns if hasattr(learner._machine, "offsets") else _Kernels)(learner._machine, X, setting)
    if not data.definite():
        return trivial
    sizes = data.sizes() * (2**0.5 if len(learner.classes_) > 2 else 1.0)
    best = replace(best, size=float(sizes.max()))
    outputs = 1 if len(learner.classes_) == 2 else len(learner.classes_)
    given = [] if comparison.comparator is None else [data.given(comparison.comparator)]
    if given and given[0].shape[1] != outputs:
        raise ValueError(f"`comparator` has {given[0].shape[1]} outputs; for these classes it needs {outputs}.")
    for U in given or (data.found(codes, outputs) if len(np.unique(codes)) > 1 else ()):
        margins = _margins(data.scores(U), codes)
        norm = data.norm(U)
        for scale in [1.0] if given else _scales(margins):
            loss = np.maximum(1 - scale * margins, 0.0)
            bound = _bound(setting, loss, sizes, scale * norm, passes) + learner._late
            if given or best.bound is None or bound < best.bound:
                best = MistakeCertificate(
                    status="streamed", mistakes=mistakes, n_samples=n, risk=risk, bound=bound,
                    loss=float(passes * loss.sum()), norm=scale * norm, size=float(sizes.max()),
                )  # fmt: skip
    return best


def _margins(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if scores.shape[1] == 1:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])
    own = scores[np.arange(len(codes)), codes]
    others = scores.copy()
    others[np.arange(len(codes)), codes] = -np.inf
    return np.asarray(own - others.max(axis=1))


def _scales(margins: np.ndarray) -> np.ndarray:
    top = float(np.abs(margins).max())
    return np.geomspace(1e-2, 1e4, 61) / top if top > 0 else np.ones(1)


def _bound(setting: Setting, loss: np.ndarray, sizes: np.ndarray, norm: float, passes: int) -> float:
    if setting.variant is None:
        return perceptron_bound(
            passes * float(loss.sum()), float(sizes.max()), norm, p=setting.p, margin=setting.margin, eta0=setting.eta0
        )
    return passive_aggressive_bound(
        np.tile(loss, passes), np.tile(sizes, passes), norm, variant=setting.variant, C=setting.C, p=setting.p
    )
