"""Mistake bounds of an estimator on the samples it saw: comparators, their losses and norms."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from ..kernels.by_view import kernel_of
from ..solvers.certificates import MistakeCertificate, passive_aggressive_bound, perceptron_bound, risk_bound
from ..solvers.linalg import eigvalsh_stack, is_positive, solve_positive
from ..solvers.margin import KernelRows, solve_margin
from ..solvers.margin_labels import LabelKernel
from ..views import _blocks
from ..views._blocks import is_single
from ..views.container import Views
from ._dual import Support
from ._grams import Grams

_SAMPLES = 3000  # maximum number of samples on which comparators of kernels are computed
_PENALTIES = (0.1, 1.0, 10.0)  # C of the machines that find comparators, over the mean squared length


class BoundSetting(NamedTuple):
    """Which bound holds: that of perceptrons, or of a passive-aggressive `variant`; `p` is the exponent of norms."""

    p: float
    margin: float = 0.0
    eta0: float = 1.0
    variant: str | None = None
    C: float = 1.0
    start: float = 0.0  # norm of V before the first sample: that of given prior norms
    slope: float = 1.0  # largest slope of the loss of a regression


class ComparedSamples(NamedTuple):
    """The samples learned and, if the user gives one, a comparator."""

    X: Any
    y: Any
    comparator: Any


class _LinearComparators:
    """Comparators of linear estimators: vectors over the columns of all views."""

    def __init__(self, machine: Any, X: Views, p: float):
        columns, self.p, self.shape = machine.columns, p, machine.shape
        self.ones = columns.ones  # each view has a column of ones, or all views together
        joint = machine.fit_intercept and not self.ones
        self.Z = columns.matrix(X, joint)
        ends = np.cumsum([int(joint), *columns.widths.values()]).tolist()
        self.spans = {name: slice(*ends[k : k + 2]) for k, name in enumerate(columns.widths)}
        self.widest = max(columns.widths.values())

    def are_definite(self) -> bool:
        """Return whether inner products are positive semi-definite."""
        return True

    def read(self, comparator: Any) -> np.ndarray:
        """Return the user's comparator: weights by view, or coefficients of the samples."""
        if not isinstance(comparator, Mapping):
            return np.asarray(self.Z.T @ _sample_coefficients(comparator, self.Z.shape[0]))
        U = np.zeros((self.Z.shape[1], _as_columns(next(iter(comparator.values()))).shape[1]))
        for name, weights in comparator.items():
            if name not in self.spans:
                raise ValueError(f"`comparator` names the view '{name}'; the views are {_blocks.quoted(self.spans)}.")
            U[self.spans[name]][self.ones :] = _as_columns(weights)
        return U

    def candidates(self, codes: np.ndarray, n_outputs: int) -> Iterator[np.ndarray]:
        """Yield support vector machines on all views and on each view."""
        seen = np.unique(codes)
        # LinearSVC takes 32-bit indices only
        self.Z.indices, self.Z.indptr = self.Z.indices.astype(np.int32), self.Z.indptr.astype(np.int32)
        for span in [slice(0, self.Z.shape[1]), *(self.spans.values() if len(self.spans) > 1 else [])]:
            part = self.Z[:, span]
            size = float(part.multiply(part).sum()) / part.shape[0]
            for penalty in _PENALTIES if size > 0 else ():
                machine = LinearSVC(loss="hinge", fit_intercept=False, C=penalty / size, tol=1e-3, random_state=0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    machine.fit(part, codes)
                U = np.zeros((self.Z.shape[1], n_outputs))
                if n_outputs == 1:
                    U[span, 0] = machine.coef_[0]
                elif len(seen) == 2:
                    # the lead of one over the other is the score
                    U[span, seen[1]], U[span, seen[0]] = machine.coef_[0] / 2, -machine.coef_[0] / 2
                else:
                    U[span, seen] = machine.coef_.T
                yield U

    def regressions(self, targets: np.ndarray) -> Iterator[np.ndarray]:
        """Yield ridge regressions on all views and on each view, one output each."""
        for span in [slice(0, self.Z.shape[1]), *(self.spans.values() if len(self.spans) > 1 else [])]:
            part = self.Z[:, span]
            for penalty in _PENALTIES:
                alpha = penalty * float(part.multiply(part).sum()) / part.shape[0]
                U = np.zeros((self.Z.shape[1], 1))
                U[span, 0] = Ridge(alpha, fit_intercept=False, solver="sparse_cg").fit(part, targets).coef_
                yield U

    def scores(self, U: np.ndarray) -> np.ndarray:
        """Return the scores of the samples."""
        return np.asarray(self.Z @ U)

    def norm(self, U: np.ndarray) -> float:
        """Return ‖U‖ with the exponent conjugate to p."""
        if self.shape == "joint":
            # ‖u_t‖_q of each output, and their Euclidean norm
            return float(np.sqrt(np.sum(_norms(np.abs(U.T), self.p / (self.p - 1)) ** 2)))
        return float(np.sqrt(sum(_dual_norm(self._products(u), self.p) ** 2 for u in U.T)))

    def _products(self, u: np.ndarray) -> np.ndarray:
        """Return the inner products between the views' parts of one vector."""
        if self.shape == "views":
            return np.diag([float(u[span] @ u[span]) for span in self.spans.values()])
        wide = np.zeros((len(self.spans), self.widest))  # views are columns of one height, padded with zeros
        for k, span in enumerate(self.spans.values()):
            wide[k, : span.stop - span.start] = u[span]
        return wide @ wide.T

    def sizes(self) -> np.ndarray:
        """Return the norm of each sample with exponent p."""
        if self.shape == "joint":
            powers = sp.csr_array((np.abs(self.Z.data) ** self.p, self.Z.indices, self.Z.indptr), shape=self.Z.shape)
            return np.asarray(powers.sum(axis=1)).ravel() ** (1 / self.p)
        parts = [sp.csr_array(self.Z[:, span]) for span in self.spans.values()]
        own = np.zeros((self.Z.shape[0], len(parts), len(parts)))
        for part in parts:
            part.resize((part.shape[0], self.widest))  # one width, so that products between views exist
        for k, left in enumerate(parts):
            for l, right in enumerate(parts):
                if k == l or self.shape == "pairs":  # X'X, or its diagonal
                    own[:, k, l] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        return _primal_norms(own, self.p)


class _KernelComparators:
    """Comparators of kernel estimators: coefficients of samples, by output."""

    def __init__(self, machine: Any, X: Views, p: float):
        self.grams: Grams = machine.grams
        self.X, self.p = machine.known(X), p
        m, pairs = len(self.grams.kernels), self.grams.shape == "pairs"
        # the views with themselves
        self.groups = [k * m + k for k in range(m)] if pairs else list(range(self.grams.n_groups()))
        self.side = m if pairs else self.grams.n_groups()

    def are_definite(self) -> bool:
        """Return whether kernels of the user are positive semi-definite between the samples, as the bounds need."""
        if not any(kernel.may_be_indefinite for kernel in self.grams.kernels.values()):
            return True
        some = self.X[np.unique(np.linspace(0, len(self.X) - 1, _SAMPLES).astype(int))]
        K = self.grams(some, some)
        single = any(is_single(self.X.block(name)) for name in self.X.names)
        return all(is_positive(K[:, g], single=single) for g in self.groups)

    def read(self, comparator: Any) -> np.ndarray:
        """Return the user's comparator."""
        return _sample_coefficients(comparator, len(self.X))

    def candidates(self, codes: np.ndarray, n_outputs: int) -> Iterator[np.ndarray]:
        """Yield support vector machines on the sum of the kernels and on each kernel."""
        n, rng = len(self.X), np.random.default_rng(0)
        some = np.arange(n) if n <= _SAMPLES else np.sort(rng.choice(np.arange(n), _SAMPLES, replace=False))
        K = self.grams(self.X[some], self.X[some])
        for chosen in [self.groups, *([[g] for g in self.groups] if len(self.groups) > 1 else [])]:
            total = K[:, chosen].sum(axis=1)
            size = float(np.trace(total)) / len(total)
            for penalty in _PENALTIES if size > 0 else ():
                U = np.zeros((n, n_outputs))
                for t in [0] if n_outputs == 1 else np.unique(codes):
                    signs = np.where(codes[some] == (1 if n_outputs == 1 else t), 1.0, -1.0)
                    alpha, _ = machine_without_intercept(total * np.outer(signs, signs), penalty / size, 1e-2, 200)
                    U[some, t] = signs * alpha
                yield U

    def regressions(self, targets: np.ndarray) -> Iterator[np.ndarray]:
        """Yield ridge regressions with the sum of the kernels and with each kernel, one output each."""
        n, rng = len(self.X), np.random.default_rng(0)
        some = np.arange(n) if n <= _SAMPLES else np.sort(rng.choice(np.arange(n), _SAMPLES, replace=False))
        K = self.grams(self.X[some], self.X[some])
        for chosen in [self.groups, *([[g] for g in self.groups] if len(self.groups) > 1 else [])]:
            total = K[:, chosen].sum(axis=1)
            size = float(np.trace(total)) / len(total)
            for penalty in _PENALTIES if size > 0 else ():
                U = np.zeros((n, 1))
                U[some, 0] = solve_positive(total + penalty * size * np.eye(len(total)), targets[some])
                yield U

    def scores(self, U: np.ndarray) -> np.ndarray:
        """Return the scores of the samples; keeps the sums by group for `norm`."""
        used = np.flatnonzero(U.any(axis=1))
        support = Support()
        support.add(self.X[used], used)
        self.sums = np.zeros((len(self.X), self.grams.n_groups(), U.shape[1]))
        for start in range(0, len(self.X) if len(used) else 0, 256):
            rows = slice(start, start + 256)
            self.sums[rows] = support.against(self.grams, self.X[rows]) @ U[used]
        return self.sums[:, self.groups].sum(axis=1)

    def norm(self, U: np.ndarray) -> float:
        """Return ‖U‖ with the exponent conjugate to p, of the comparator that was scored last."""
        products = np.einsum("nt,ngt->tg", U, self.sums)  # <u_k, u_l> for the views k, l of a group
        return float(np.sqrt(sum(_dual_norm(self._matrix(own), self.p) ** 2 for own in products)))

    def _matrix(self, own: np.ndarray) -> np.ndarray:
        """Return products by group as a matrix between views."""
        return own.reshape(self.side, self.side) if self.grams.shape == "pairs" else np.diag(own)

    def sizes(self) -> np.ndarray:
        """Return the norm of each sample with exponent p."""
        own = np.empty((len(self.X), self.side, self.side))
        for start in range(0, len(self.X), 256):
            block = self.X[start : start + 256]
            K = self.grams(block, block)
            own[start : start + 256] = [self._matrix(K[i, :, i]) for i in range(len(block))]
        return _primal_norms(own, self.p)


def machine_without_intercept(Q: np.ndarray, C: float, tol: float, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """Return α of min ½α'Qα - Σα over 0 <= α <= C, and Qα; zeros where rounding leaves Q indefinite."""

    def against(columns: np.ndarray, dtype: Any) -> Any:
        def rows(which: np.ndarray, out: np.ndarray) -> np.ndarray:
            out[...] = Q[np.ix_(which, columns)]
            return out

        return rows

    n = len(Q)
    # one label for all: the signs are in Q
    labels = LabelKernel.of_matrix(np.zeros(n, dtype=np.int64), np.ones((1, 1)))
    rows = KernelRows(against, Q.diagonal().copy())
    solution = solve_margin(rows, labels, np.full(n, C), tol=tol, max_iter=max_iter)
    if solution.status == "indefinite":
        return np.zeros(n), np.zeros(n)
    alpha, gradient = solution.x
    return np.asarray(alpha), np.asarray(gradient) + 1  # the gradient is Qα - 1


def _sample_coefficients(comparator: Any, n: int) -> np.ndarray:
    if isinstance(comparator, Mapping) or len(_as_columns(comparator)) != n:
        raise ValueError(f"This comparator must be an array of coefficients, one for each of the {n} samples.")
    return _as_columns(comparator)


def _as_columns(values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values


def _norms(values: np.ndarray, p: float) -> np.ndarray:
    """Return the p-norm of each row of nonnegative values."""
    top = np.maximum(values.max(axis=1), np.finfo(float).tiny)  # scaled, so that powers do not overflow
    return np.asarray(top * np.sum((values / top[:, None]) ** p, axis=1) ** (1 / p))


def _dual_norm(N: np.ndarray, p: float) -> float:
    """Return the norm of U with the exponent conjugate to p, from N = U'U."""
    return float(_primal_norms(N[None], p / (p - 1))[0])


def _primal_norms(own: np.ndarray, p: float) -> np.ndarray:
    """Return the norm of each sample with exponent p, from its X'X: the p-norm of the singular values."""
    values = eigvalsh_stack((own + own.transpose(0, 2, 1)) / 2)  # squared singular values of X, from X'X
    return _norms(np.sqrt(np.maximum(values, 0.0)), p)


def mistake_certificate(estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> MistakeCertificate:
    """Return the mistakes and their bound by the best of the comparators, rescaled; 0 is always one of them."""
    n, n_mistakes = int(estimator.n_samples_seen_), int(estimator.n_mistakes_)
    trivial = MistakeCertificate("streamed", n_mistakes=n_mistakes, n_samples=n, risk=_mean_risk(estimator))
    if setting is None or estimator._off_bounds:  # the bounds are for steps of one length
        return trivial
    # the comparator 0 has the hinge loss 1 on every sample
    best = replace(trivial, bound=float(n), loss=float(n), norm=0.0)
    if given.X is None or len(estimator.classes_) < 2:
        return best
    X, codes = estimator._read_pairs(given)
    n_passes = passes_of(estimator, len(codes))
    data = comparators_of(estimator, X, setting.p)
    if not data.are_definite():
        return trivial
    n_classes = len(estimator.classes_)
    sizes = data.sizes() * (2**0.5 if n_classes > 2 else 1.0)  # x enters two class vectors, with opposite signs
    n_outputs = 1 if n_classes == 2 else n_classes
    U = None if given.comparator is None else given_comparator(data, given.comparator, n_outputs)
    found = _best_bound(data, setting, codes, n_outputs, U, sizes, n_passes)
    # a class that was not announced adds one mistake
    bound = found[0] + (estimator._n_late if found[2] > 0 or U is not None else 0)
    if U is None and bound >= n:
        return replace(best, size=float(sizes.max()))
    return replace(best, bound=bound, loss=found[1], norm=found[2], size=float(sizes.max()))


def label_certificate(estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> MistakeCertificate:
    """Return the mistakes of labels and their bound: the sum of the bounds of the labels, two classes each."""
    n, n_mistakes = int(estimator.n_samples_seen_), int(estimator.n_mistakes_)
    trivial = MistakeCertificate("streamed", n_mistakes=n_mistakes, n_samples=n, risk=_mean_risk(estimator))
    if setting is None or estimator._off_bounds or given.X is None:
        return trivial if setting is None or estimator._off_bounds else replace(trivial, bound=float(n))
    X, codes = estimator._read_pairs(given)
    n_passes, L = passes_of(estimator, len(codes)), codes.shape[1]
    data = comparators_of(estimator, X, setting.p)
    if not data.are_definite():
        return trivial
    sizes = data.sizes()
    U = None if given.comparator is None else given_comparator(data, given.comparator, L)
    parts = [
        _best_bound(data, setting, codes[:, t], 1, None if U is None else U[:, [t]], sizes, n_passes) for t in range(L)
    ]
    bound, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
    norm = float(np.sqrt(sum(part[2] ** 2 for part in parts)))
    return replace(trivial, bound=bound, loss=loss, norm=norm, size=float(sizes.max()))


def _mean_risk(estimator: Any) -> float | None:
    """Return the bound on the mean risk of the hypotheses; None if one may depend on its own or a later sample."""
    n = int(estimator.n_samples_seen_)
    if not n or estimator.n_iter_ != 1 or takes_from_all(estimator):
        return None
    return risk_bound(int(estimator.n_mistakes_) / n, n)


def takes_from_all(estimator: Any) -> bool:
    """Return whether `fit` took parameters of kernels or statistics of a preparation from all samples at once."""
    if not hasattr(estimator, "converged_"):  # a stream has not seen all
        return False
    parts = getattr(estimator, "estimators_", {"": estimator}).values()  # one for each view, or itself
    return estimator.prepare is not None or any(
        kernel_of(part.kernel, name)._unresolved() for part in parts for name in part.kernels_
    )


def passes_of(estimator: Any, n_given: int) -> int:
    """Return how often samples were passed over; refuse samples that are not those learned."""
    n = int(estimator.n_samples_seen_)
    if n % n_given:  # passes of `fit` see all samples equally often
        raise ValueError(
            f"{type(estimator).__name__} learned {n} samples, and {n_given} are given. The bound needs all of them, "
            "in one chunk."
        )
    return n // n_given


def comparators_of(estimator: Any, X: Views, p: float) -> Any:
    """Return the comparators of an estimator on samples, for norms of exponent p."""
    return (_LinearComparators if estimator._is_primal() else _KernelComparators)(estimator._machine, X, p)


def given_comparator(data: Any, comparator: Any, n_outputs: int) -> np.ndarray:
    U: np.ndarray = data.read(comparator)
    if U.shape[1] != n_outputs:
        raise ValueError(f"`comparator` has {U.shape[1]} outputs; for these targets it needs {n_outputs}.")
    return U


def _best_bound(
    data: Any, setting: BoundSetting, codes: np.ndarray, n_outputs: int, given: np.ndarray | None, sizes: np.ndarray,
    n_passes: int,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the bound, loss and norm of the given comparator, or of the best one; 0 is one of them."""
    n = float(n_passes * len(codes))
    best = (n, n, 0.0) if given is None else (np.inf, 0.0, 0.0)  # 0 has the hinge loss 1 on every sample
    several = len(np.unique(codes)) > 1
    candidates: Any = [given] if given is not None else data.candidates(codes, n_outputs) if several else ()
    for U in candidates:
        margins, norm = _margins(data.scores(U), codes), data.norm(U)
        for scale in _scales(margins) if given is None else [1.0]:
            loss = np.maximum(1 - scale * margins, 0.0)
            bound = _bound(setting, loss, sizes, scale * norm, n_passes)
            if bound < best[0] or given is not None:
                best = (bound, float(n_passes * loss.sum()), scale * norm)
    return best


def _margins(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if scores.shape[1] == 1:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])
    own = scores[np.arange(len(codes)), codes]
    others = scores.copy()
    others[np.arange(len(codes)), codes] = -np.inf  # the best class but the true one
    return np.asarray(own - others.max(axis=1))


def _scales(margins: np.ndarray) -> np.ndarray:
    top = float(np.abs(margins).max())
    # relative to the length at which the largest margin is 1
    return np.geomspace(1e-2, 1e4, 61) / top if top > 0 else np.ones(1)


def _bound(setting: BoundSetting, loss: np.ndarray, sizes: np.ndarray, norm: float, n_passes: int) -> float:
    if setting.variant is None:
        total, size = n_passes * float(loss.sum()), float(sizes.max())
        step = {"margin": setting.margin, "eta0": setting.eta0, "start": setting.start}
        return perceptron_bound(total, size, norm, p=setting.p, **step)
    norm = float(np.hypot(norm, setting.start))  # ‖U‖² + ‖V_0‖² bounds the divergence of U and V_0
    return passive_aggressive_bound(
        np.tile(loss, n_passes), np.tile(sizes, n_passes), norm, variant=setting.variant, C=setting.C, p=setting.p
    )
