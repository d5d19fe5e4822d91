"""What the maximum margin learners share: label kernels, one kernel of all views, the forms of the dual, the bias."""

import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..kernels import Linear, reference_views
from ..kernels.features import Nystroem, inverse_root
from ..kernels.joint import JointKernel, view_scales
from ..solvers.certificates import Solution, warn_unless_converged
from ..solvers.linalg import is_positive
from ..solvers.margin import margin_dual
from ..solvers.margin_bias import answers_alone, with_bias
from ..solvers.margin_features import LabelRows, margin_features
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import presence
from ..views.validation import read_views_to_predict
from ._frame import ROWS, Features, KernelLearner, Rows, indefinite

EPS = np.finfo(np.float64).eps
FEW = 2000  # so few samples are learned faster by their Gram matrix, linear kernels too
SINGLE = 100  # up to this C·k(x, x) rounding in single precision stays far below the gap
LOOKED = 4000  # samples between which a kernel from outside is checked for being positive semi-definite
HELD = 4000  # so many different outputs have their kernel held as a matrix


@dataclass
class LabelKernel:
    """The labels that samples have, by the kernel between them."""

    of: np.ndarray  # the label of each sample
    n: int
    rows: Callable[[np.ndarray], np.ndarray]  # rows of the kernel A by position
    A: np.ndarray | None  # None where it is too large to hold
    vectors: np.ndarray | None = None  # with these inner products, where they are known
    alike: tuple[float, float] | None = None  # (squared length, inner product), where they are all the same

    @classmethod
    def of_vectors(cls, of: np.ndarray, Y: np.ndarray, alike: tuple[float, float] | None = None) -> "LabelKernel":
        """Labels given as vectors."""
        T = len(Y)

        def rows(which: np.ndarray) -> np.ndarray:
            if alike is None:
                return np.asarray(Y[which] @ Y.T)
            return np.where(which[:, None] == np.arange(T), *alike)

        return cls(of, T, rows, rows(np.arange(T)) if T <= HELD else None, Y, alike)

    @property
    def few(self) -> bool:
        """Whether many samples share a label, so that steps had better take labels together."""
        return self.A is not None and (self.alike is not None or 8 * self.n <= len(self.of))

    def longest(self) -> float:
        """The largest squared length of a label, of the first ones where there are too many to look at all."""
        if self.A is not None:
            return float(self.A.diagonal().max())
        if self.vectors is not None:
            return float(np.einsum("tp,tp->t", self.vectors, self.vectors).max())
        return float(self.rows(np.arange(100)).diagonal().max())

    def operator_rows(self) -> LabelRows:
        """How they meet the rows of an operator over features."""
        return (
            LabelRows.of_vectors(self.as_vectors())
            if self.alike is None
            else LabelRows.of_two_values(*self.alike, self.n)
        )

    def as_vectors(self) -> np.ndarray:
        """Vectors with the inner products A."""
        if self.vectors is not None:
            return self.vectors
        if self.A is None:
            raise ValueError(
                f"There are {self.n} different outputs; `n_components`, linear kernels and `fit_intercept` hold the kernel "
                f"between outputs as a matrix, for {HELD} of them at most. Leave these out, or give outputs as vectors."
            )
        values, vectors = np.linalg.eigh(self.A)
        kept = values > 1e-12 * max(values[-1], 1e-300)
        return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


class MaxMargin(KernelLearner):
    """A machine with one dual variable per sample."""

    C: float
    combine: Any
    normalize: str | None
    fit_intercept: bool
    cache_size: float
    warm_start: bool
    _means: dict[str, tuple[np.ndarray, float]]  # what stands for absent views in products
    _fit_weights: np.ndarray  # of the samples in X_fit_, by which these means are taken

    def _check_parameters(self) -> None:
        self._check_numbers(above=("C", "cache_size"), least=("tol",))
        if not (isinstance(self.max_iter, numbers.Integral) and self.max_iter >= 1) or isinstance(self.max_iter, bool):
            raise ValueError(f"`max_iter` must be a whole number of at least 1; got {self.max_iter!r}.")
        if self.normalize not in ("item", "variable", None):
            raise ValueError(f"`normalize` is 'item', 'variable' or None; got {self.normalize!r}.")

    # -- samples
    def _normalized(self, X: Views, s: np.ndarray) -> Views:
        """The training samples with rows of length 1, or columns of mean 0 and variance 1 by the weights `s`."""
        self._centers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        kinds = {"item": ("dense", "sparse"), "variable": ("dense",), None: ()}[self.normalize]
        for name in X.names if kinds else ():
            if X.kind(name) not in kinds:
                sparse = X.kind(name) == "sparse"
                remedy = "Scale it by PerView(MaxAbsScaler())" if sparse else "Give it the kernel normalize(kernel)"
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)} data, which normalize='{self.normalize}' does not take. "
                    f"{remedy} and leave `normalize` out."
                )
            if self.normalize == "variable":
                there = np.flatnonzero(X.present(name) & (s > 0))
                there = there if len(there) else np.flatnonzero(X.present(name))
                values = _blocks.to_numpy(_blocks.take(X.block(name), there)).astype(np.float64)
                share, n = (
                    s[there] / s[there].sum() if s[there].any() else np.full(len(there), 1 / len(there)),
                    len(there),
                )
                center = share @ values
                spread = np.sqrt(share @ (values - center) ** 2)
                least = np.sqrt(n * EPS) * spread + n * EPS * np.abs(center)  # rounding of a column that is constant
                self._centers[name] = (center, np.where(spread > least, spread, 1.0))
        return self._scaled(X)

    def _scaled(self, X: Views) -> Views:
        if self.normalize is None:
            return X
        blocks: dict[str, Any] = {}
        for name in X.names:
            block = X.block(name)
            if block is None:
                blocks[name] = block
            elif self.normalize == "variable":
                center, scale = self._centers[name]
                blocks[name] = (_blocks.to_numpy(block).astype(np.float64) - center) / scale
            elif sp.issparse(block):
                lengths = np.sqrt(np.asarray(block.multiply(block).sum(axis=1)).ravel())
                blocks[name] = sp.csr_array(sp.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ block)
                blocks[name].sort_indices()  # a product leaves them in any order
            else:
                values = _blocks.to_numpy(block).astype(np.float64)
                lengths = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
                blocks[name] = values / np.where(lengths == 0, 1.0, lengths)
        return Views._of(blocks, len(X), X.mask, X.feature_names)

    def _read_new(self, X: Any) -> Views:
        return self._scaled(read_views_to_predict(self, X))

    # -- solving
    def _learn(self, rows: Rows, labels: LabelKernel, upper: np.ndarray) -> None:
        """Find α, keep what prediction needs."""
        if self.fit_intercept and answers_alone(labels.as_vectors()[np.unique(labels.of)]):
            raise ValueError(
                "`fit_intercept` is not possible with these labels: one vector b has <y, b> >= 1 for each of them, so that "
                "the bias alone would meet every margin (in the dual Σ α_i y_i = 0 leaves α = 0 only). Use labels that "
                "balance, such as 'simplex', or leave `fit_intercept` out."
            )
        joint = JointKernel(self.kernels_, rows.X, self.combine, weights=rows.s)
        proved = self._check_definite(joint)
        small = labels.alike is not None or labels.vectors is not None or labels.n <= FEW // 10
        form: Any = _KernelForm(self, joint, labels)
        if self.n_components is not None or (small and _is_linear(joint)):
            form = _FeatureForm(self, rows, joint, labels)
        try:
            solution = self._optimum(form, labels, upper, self._alpha_before(rows))
        except FloatingPointError as error:
            raise ValueError(
                "Kernels of the views have values that are not finite. Scale the views, or use other kernels."
            ) from error
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "The kernel of all views together is not positive semi-definite, so that the problem has no minimum. "
                "Use positive semi-definite kernels; `consilience.kernels.nearest_psd` makes one of a matrix."
            ) from error
        self.solution_ = replace(solution, x=solution.x[0])
        if not proved and solution.converged:  # the gap is a bound only where kernels are positive semi-definite
            self.solution_ = replace(self.solution_, gap=None, status="settled")
        self.view_weights_ = np.ones(len(self._used_views))
        self._keep_support(rows, labels, form)
        warn_unless_converged(self.solution_, type(self).__name__)

    def _check_definite(self, joint: JointKernel) -> bool:
        """Refuse kernels from outside that are not positive semi-definite; return whether all samples were checked."""
        proved = True
        for name, kernel in joint.kernels.items():
            there = np.flatnonzero(joint.X.present(name))
            if not kernel.may_be_indefinite:
                continue
            if len(there) > LOOKED:
                there, proved = there[np.linspace(0, len(there) - 1, LOOKED).astype(int)], False
            with _blocks.naming(name):
                K = _blocks.to_numpy(kernel(_blocks.take(joint.X.block(name), there)))
            if not is_positive(K):
                raise indefinite(name)
        return proved

    def _optimum(self, form: Any, labels: LabelKernel, upper: np.ndarray, x0: np.ndarray | None) -> Solution:
        """α first in x, with the bias where it is asked for."""
        if not self.fit_intercept:
            self._bias = None
            return form.solve(upper, np.ones(len(upper)), 0.0, self.tol, x0)
        Y = labels.as_vectors()
        squares = np.einsum("tp,tp->t", Y, Y)[labels.of] * form.diagonal()

        def solve(target: np.ndarray, rho: float, tol: float, x0: np.ndarray | None) -> Solution:
            return form.solve(upper, target, rho, tol, x0)

        solution = with_bias(solve, Y, labels.of, upper, squares, tol=self.tol, x0=x0)
        self._bias = np.linalg.lstsq(Y.T, solution.x[-1], rcond=None)[0]  # b = Σ_t bias_t y_t
        return solution

    def _keep_support(self, rows: Rows, labels: LabelKernel, form: Any) -> None:
        alpha = self.solution_.x
        kept = np.flatnonzero(alpha)
        kept = kept if len(kept) else np.arange(1)
        kept = kept[np.argsort(rows.order[kept])]
        self._n_fit = rows.n
        self.support_, self.dual_coef_, self._of_support = rows.order[kept], alpha[kept], labels.of[kept]
        for name in ("coef_", "X_fit_", "_features", "_in_fit", "_means", "_fit_weights", "_landmark_root"):
            if hasattr(self, name):
                delattr(self, name)
        form.keep(self, kept)

    def _alpha_before(self, rows: Rows) -> np.ndarray | None:
        """α of the last fit, for the samples at the same positions."""
        if not self.warm_start or not hasattr(self, "dual_coef_") or self._n_fit != rows.n:
            return None
        alpha = np.zeros(rows.n)
        alpha[self.support_] = self.dual_coef_
        return alpha[rows.order]

    # -- predicting
    def _place(self, n_labels: int) -> sp.csr_array:
        """α of the support by label, (n_labels, n_support)."""
        n = len(self._of_support)
        return sp.csr_array((self.dual_coef_, (self._of_support, np.arange(n))), shape=(n_labels, n))

    def _label_sums(self, X: Views, n_labels: int) -> np.ndarray:
        """Σ α_i k(x, x_i) over the support of each label, (n, n_labels)."""
        joint = JointKernel(self.kernels_, self.X_fit_, self.combine, dict(self._means), weights=self._fit_weights)
        place = self._place(n_labels)
        parts = [X[start : start + ROWS] for start in range(0, len(X), ROWS)]
        return np.concatenate([(place @ joint.cross(part, self._in_fit).T).T for part in parts])

    def _view_label_sums(self, X: Views, n_labels: int) -> np.ndarray:
        """The same by view, (n, m, n_labels)."""
        place, sums = self._place(n_labels), np.zeros((len(X), len(self._used_views), n_labels))
        has = presence(self.X_fit_)[self._in_fit]
        scales = view_scales(self.X_fit_)[self._in_fit]
        for v, name in enumerate(self._used_views):
            there, members = np.flatnonzero(X.present(name)), np.flatnonzero(has[:, v])
            if not len(there) or not len(members):
                continue
            alone = JointKernel({name: self.kernels_[name]}, self.X_fit_[self._in_fit[members]][[name]], "sum")
            for start in range(0, len(there), ROWS):
                some = there[start : start + ROWS]
                kernel = alone.cross(X[some][[name]]) * scales[members]
                sums[some, v] = (place[:, members] @ kernel.T).T
        return sums

    def _over_features(self, X: Views) -> np.ndarray:
        """The answers over features, (n, n_outputs)."""
        if not hasattr(self, "_landmark_root"):
            outputs = self._outputs_over_features(X)
            return np.where(presence(X)[:, :, None], outputs, 0.0).sum(axis=1) * view_scales(X)[:, None]
        joint = JointKernel(self.kernels_, self.X_fit_, self.combine, dict(self._means), weights=self._fit_weights)
        parts = [X[start : start + ROWS] for start in range(0, len(X), ROWS)]
        return (
            np.concatenate([joint.cross(part, self._in_fit) @ self._landmark_root for part in parts])
            @ self.coef_["all views"]
        )

    def _outputs_over_features(self, X: Views) -> np.ndarray:
        """Each view's own answer over features, (n, m, n_outputs)."""
        if hasattr(self, "_features"):
            return KernelLearner._view_outputs(self, X)
        outputs = np.zeros((len(X), len(self._used_views), next(iter(self.coef_.values())).shape[1]))
        for v, name in enumerate(self._used_views):
            there = np.flatnonzero(X.present(name))
            if len(there):
                outputs[there, v] = np.asarray(_blocks.to_numpy(_blocks.take(X.block(name), there) @ self.coef_[name]))
        return outputs

    def _check_adds(self) -> None:
        if not (isinstance(self.combine, str) and self.combine == "sum"):
            raise ValueError(
                f"With combine={self.combine!r} views have no answers of their own: the kernel is not a sum over views."
            )

    @abstractmethod
    def _of_label_sums(self, sums: np.ndarray) -> np.ndarray:
        """Outputs from the sums of each label, along the last axis."""


# -- forms of the dual
class _KernelForm:
    """The dual over kernel rows made as they are needed."""

    def __init__(self, learner: MaxMargin, joint: JointKernel, labels: LabelKernel):
        self.joint, self.labels, self.tol = joint, labels, learner.tol
        self.memory, self.max_iter = 1e6 * learner.cache_size, int(learner.max_iter)

    def solve(self, upper: np.ndarray, target: np.ndarray, rho: float, tol: float, x0: np.ndarray | None) -> Solution:
        """The optimum, in single precision where it will do, else in double."""
        largest = (float(self.joint.diagonal().max()) + rho) * self.labels.longest() * float(upper.max())
        if not np.isfinite(largest):
            raise FloatingPointError("k(x, x) is not finite")
        if self.tol >= 1e-4 and largest <= SINGLE:  # beyond, directions lost in rounding could run away to the bounds
            try:
                found = self._at(np.float32, upper, target, rho, tol, x0)
            except np.linalg.LinAlgError:
                pass
            else:
                if found.status != "stalled":
                    return found
                x0 = found.x[0]
        return self._at(np.float64, upper, target, rho, tol, x0)

    def _at(
        self, dtype: Any, upper: np.ndarray, target: np.ndarray, rho: float, tol: float, x0: np.ndarray | None
    ) -> Solution:
        labels, A, of = self.labels, self.labels.A, self.labels.of
        if A is None or not labels.few:  # their kernel goes into the rows
            A, of = np.ones((1, 1)), np.zeros(len(of), dtype=np.int64)

        def against(columns: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
            fill = self.joint.against(columns, dtype)

            def rows(which: np.ndarray, out: np.ndarray) -> np.ndarray:
                fill(self.joint.X[which], out)
                if rho:
                    out += dtype(rho)
                if not labels.few:
                    out *= labels.rows(labels.of[which])[:, labels.of[columns]].astype(dtype)
                return out

            return rows

        return margin_dual(
            against, A, of, upper, target, tol=tol, max_iter=self.max_iter, x0=x0, memory=self.memory, dtype=dtype
        )

    def diagonal(self) -> np.ndarray:
        return self.joint.diagonal()

    def keep(self, learner: MaxMargin, kept: np.ndarray) -> None:
        """The samples to predict from: those of the support; all where absent views stand for means over them."""
        X = self.joint.X
        some = kept if self.joint.adds else np.arange(len(X))
        learner.X_fit_ = reference_views(learner.kernels_, X[some])
        learner._in_fit = np.arange(len(kept)) if self.joint.adds else kept
        learner._means, learner._fit_weights = self.joint.means, self.joint.weights[some]


class _FeatureForm:
    """The dual over explicit features: those of linear kernels, or of a Nyström approximation."""

    def __init__(self, learner: MaxMargin, rows: Rows, joint: JointKernel, labels: LabelKernel):
        self.joint, self.of, self.n_labels, self.max_iter = joint, labels.of, labels.n, int(learner.max_iter)
        self.labels = labels.operator_rows()
        self.names, self.features = rows.X.names, None
        if learner.n_components is None:
            self.Phi, self.sizes = _side_by_side(rows.X)
        elif joint.adds:
            self.features = Features(learner, rows)
            parts = [self.features.side_by_side(rows.X[k : k + ROWS]) for k in range(0, len(rows.X), ROWS)]
            self.Phi, self.sizes = np.concatenate(parts), self.features.sizes
        else:
            self.Phi, self.sizes = self._joint_features(learner), []
        if joint.adds and rows.X.mask is not None:
            scale = view_scales(rows.X)
            self.Phi = (
                sp.csr_array(sp.diags_array(scale) @ self.Phi) if sp.issparse(self.Phi) else self.Phi * scale[:, None]
            )

    def _joint_features(self, learner: MaxMargin) -> np.ndarray:
        n = len(self.joint.X)
        size = Nystroem(n_components=learner.n_components)._size(n)
        self.landmarks = np.sort(check_random_state(learner.random_state).choice(n, min(n, size), replace=False))
        K = self.joint.cross(self.joint.X, self.landmarks)
        self.root = inverse_root(K[self.landmarks])
        return np.ascontiguousarray(K @ self.root)

    def solve(self, upper: np.ndarray, target: np.ndarray, rho: float, tol: float, x0: np.ndarray | None) -> Solution:
        Phi = self.Phi
        if rho:
            column = np.full((len(target), 1), np.sqrt(rho))
            Phi = sp.csr_array(sp.hstack([Phi, column])) if sp.issparse(Phi) else np.hstack([Phi, column])
        return margin_features(Phi, self.labels, self.of, upper, target, tol=tol, max_iter=self.max_iter, x0=x0)

    def diagonal(self) -> np.ndarray:
        Phi = self.Phi
        return (
            np.asarray(Phi.multiply(Phi).sum(axis=1)).ravel() if sp.issparse(Phi) else np.einsum("ij,ij->i", Phi, Phi)
        )

    def keep(self, learner: MaxMargin, kept: np.ndarray) -> None:
        """The coefficients of the features."""
        sums = learner._place(self.n_labels) @ self.Phi[kept]
        W = np.ascontiguousarray(learner._of_label_sums((sums.toarray() if sp.issparse(sums) else sums).T))
        if not self.sizes:
            learner.coef_, learner._landmark_root = {"all views": W}, self.root
            learner.X_fit_ = reference_views(learner.kernels_, self.joint.X)  # absent views stand for means over all
            learner._in_fit, learner._means = self.landmarks, self.joint.means
            learner._fit_weights = self.joint.weights
            return
        ends = np.cumsum(self.sizes)
        learner.coef_ = {
            name: W[end - size : end] for name, size, end in zip(self.names, self.sizes, ends, strict=True)
        }
        if self.features is not None:
            learner._features = self.features.features


def _is_linear(joint: JointKernel) -> bool:
    """Whether the features of the kernels are the data, and few enough to work with."""
    plain = all(type(kernel) is Linear for kernel in joint.kernels.values())
    if not (joint.adds and plain and all(joint.X.kind(name) in ("dense", "sparse") for name in joint.X.names)):
        return False
    n = len(joint.X)
    return n > FEW and sum(_blocks.entries(joint.X.block(name)) for name in joint.X.names) <= n**2


def _side_by_side(X: Views) -> tuple[Any, list[int]]:
    """The data of all views as one matrix, 0 where a view is absent."""
    blocks = []
    for name in X.names:
        block = X.block(name)
        there = X.present(name)
        if sp.issparse(block):
            block = block.astype(np.float64)
            blocks.append(block if there.all() else sp.csr_array(sp.diags_array(there.astype(np.float64)) @ block))
        else:
            values = np.asarray(_blocks.to_numpy(block), dtype=np.float64)
            blocks.append(values if there.all() else np.where(there[:, None], values, 0.0))
    sizes = [block.shape[1] for block in blocks]
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks])), sizes
    return np.ascontiguousarray(np.hstack(blocks)), sizes
