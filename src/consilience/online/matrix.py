"""The matrix multi-view perceptron, and its orthogonal variant for views of any kind."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels import Kernel
from ..kernels.given import as_kernel
from ..views import _blocks
from ..views.container import Views
from ._bounds import Setting
from ._dual import Grams, KernelMachine
from ._frame import check_choice, check_number
from ._learner import Machine, MachineLearner
from ._linear import LinearMachine, Rule

__all__ = ["MatrixPerceptron", "OrthogonalPerceptron"]


class OrthogonalPerceptron(MachineLearner):
    """OMMP, the orthogonal matrix multi-view perceptron (Fornoni 2009, chapter 4): views of any kind, a kernel each.

    Each view k has a vector v_k in the space of its kernel. A mistake, y f(x) <= margin, adds step·y x_k to each, and
    views that have made long vectors speak louder, p >= 1:

        f(x) = Σ_k F_k <v_k, x_k>,   F_k = (‖v_k‖² / ‖V‖²)^(p-1),   ‖V‖² = (Σ_k ‖v_k‖^2p)^(1/p)

    It is the matrix perceptron on matrices whose columns are orthogonal, and mirror descent with the group norm ‖V‖.
    With p = 1 it is the perceptron on the sum of the kernels, with one view the perceptron for every p. Absent views
    add nothing. With several classes there is one V each.

    `prior_norms` leave the span: F_k = ((‖v_k‖² + b_k) / ·)^(p-1) (appendix A.2). ``aggressive=True`` steps where the
    hinge loss is above 0, by τ = min(C, ℓ / ((2p-1)‖X‖²)): PA-I for p = 1.

    For any U with hinge loss L, mistakes are at most L + A + √(A L), A = (2p-1) (X‖U‖)², X the largest group norm of a
    sample and ‖U‖ the norm with the conjugate exponent (`certificate`).

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        The kernel of the views that `kernels` does not name. If all are linear, weights are kept, no samples. In a
        stream "scale" stands for one over the number of columns.
    kernels : dict, optional
        Kernels by view.
    p : float, default=2.0
        At least 1.
    prior_norms : float or dict, optional
        b_k >= 0, for all views or by view.
    aggressive : bool, default=False
        Whether to step by the loss, as passive-aggressive learners do; `margin` and `eta0` then do not matter.
    C : float, default=1.0
        The longest step of an aggressive learner.
    average : {False, True, "voted"}, default=False
        Whether predictions are by the last hypothesis, the mean of all, or their vote.
    margin : float, default=0.0
        Updates are made where y f(x) is at most this; for several classes the lead over the best other class.
    eta0 : float, default=1.0
        The length of an update.
    max_iter : int, default=10
        The most passes of `fit`; it ends after the first one without an update.
    shuffle : bool, default=True
        Whether `fit` takes the samples in a new random order at each pass.
    random_state : int, RandomState or None, default=None
        The seed of the order.
    verbose : bool, default=False
        Whether to show passes and mistakes while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    view_weights_ : array of shape (n_views,)
        F_k of the last hypothesis, the mean over classes.
    coef_ : dict of array
        Weights by view, F_k v_k or their mean over the stream (linear).
    support_, dual_coef_ : array
        Samples kept and their coefficients (kernels).
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from consilience import OrthogonalPerceptron
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = OrthogonalPerceptron("rbf", p=2, average=True, random_state=0).fit(X, y)
    >>> model.view_weights_.shape
    (3,)
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        p: float = 2.0,
        prior_norms: Any = None,
        aggressive: bool = False,
        C: float = 1.0,
        average: Any = False,
        margin: float = 0.0,
        eta0: float = 1.0,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.p = p
        self.prior_norms = prior_norms
        self.aggressive = aggressive
        self.C = C
        self.average = average
        self.margin = margin
        self.eta0 = eta0
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        check_number("p", self.p, 1.0)
        check_number("C", self.C, above=True, infinite=True)
        self._check_common()
        given = self.prior_norms
        for value in [] if given is None else given.values() if isinstance(given, Mapping) else [given]:
            check_number("prior_norms", value)

    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        unknown = (
            [name for name in self.prior_norms if name not in X.names] if isinstance(self.prior_norms, Mapping) else []
        )
        if whole and unknown:
            raise ValueError(f"`prior_norms` names the view '{unknown[0]}'; the views are {_blocks.quoted(X.names)}.")

    @property
    def _second_class(self) -> float:  # type: ignore[override]
        return 0.5 if self.aggressive else 1.0

    def _rule(self) -> Rule:
        if self.aggressive:
            return Rule(1.0, 0.0, float(self.C), 0.0, 2 * float(self.p) - 1)
        return super()._rule()

    def _by_columns(self) -> bool:
        return self._is_linear() and self.average != "voted"

    def _new_machine(self, n_outputs: int) -> Machine:
        if self._by_columns():
            return LinearMachine("views", n_outputs, p=self.p, average=self.average is True)
        return KernelMachine(Grams("views"), n_outputs, p=self.p, average=self.average)

    def _meet(self, X: Views) -> None:
        prior = self.prior_norms
        if prior is not None and not isinstance(prior, Mapping):
            prior = dict.fromkeys(X.names, float(prior))
        if isinstance(self._machine, LinearMachine):
            self._machine.meet(X, prior)
        else:
            self._machine.meet(X, self._kernels_of(X), prior)

    @property
    def view_weights_(self) -> np.ndarray:
        """F_k of the last hypothesis, the mean over classes."""
        names = list(self._machine.offsets if hasattr(self._machine, "offsets") else self._machine.grams.kernels)
        weights = dict(zip(names, self._machine.F.mean(axis=1), strict=True))
        return np.array([weights.get(name, 0.0) for name in self.view_names_in_])

    def _setting(self) -> Setting | None:
        if self.prior_norms is not None and self.p != 1:
            return None
        variant = "PA-I" if self.aggressive else None
        return Setting(2 * float(self.p), float(self.margin), float(self.eta0), variant, float(self.C))


class MatrixPerceptron(MachineLearner):
    """MMP, the matrix multi-view perceptron (Cavallanti, Cesa-Bianchi and Gentile 2008; Fornoni 2009, chapter 3).

    A sample is a matrix X = [x_1 .. x_K] with a column per view, all of d rows. A mistake, y <W, X> <= margin, does
    V <- V + step·y X, and, p >= 1:

        W = ∇ ½‖V‖²_S2p = V F,   F = (V'V / ‖V‖²_S2p)^(p-1),   ‖V‖²_S2p = (tr (V'V)^p)^(1/p)

    Only the K x K matrices V'X and V'V are needed, so it goes by a kernel too, k(x_i, z_j) between every two views.
    With p = 1 it is the perceptron on the sum of the views, with one view the perceptron for every p, and where the
    columns of every X are orthogonal it is `OrthogonalPerceptron`, which takes views of any kind. Absent views are
    columns of zeros. With several classes there is one V each.

    For any U with hinge loss L, mistakes are at most L + A + √(A L), A = (2p-1) (X‖U‖)², X the largest Schatten 2p-norm
    of a sample and ‖U‖ the conjugate norm; 3.1.6 of the thesis is the case U/K (`certificate`).

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        The one kernel, between all views. If it is linear, weights are kept, no samples.
    p : float, default=2.0
        At least 1.
    unequal : {"refuse", "pad", "repeat"}, default="refuse"
        How views of different widths are handled: they are refused, padded with zeros to the widest, or repeated up
        to the widest. In a stream a view wider than those before it can be padded for, but not repeated for.
    average : {False, True, "voted"}, default=False
        Whether predictions are by the last hypothesis, the mean of all, or their vote.
    margin : float, default=0.0
        Updates are made where y f(x) is at most this; for several classes the lead over the best other class.
    eta0 : float, default=1.0
        The length of an update.
    max_iter : int, default=10
        The most passes of `fit`; it ends after the first one without an update.
    shuffle : bool, default=True
        Whether `fit` takes the samples in a new random order at each pass.
    random_state : int, RandomState or None, default=None
        The seed of the order.
    verbose : bool, default=False
        Whether to show passes and mistakes while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : dict of array
        W by view, of the last hypothesis or the mean (linear).
    support_, dual_coef_ : array
        Samples kept and their coefficients (kernels).
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates made, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from consilience import MatrixPerceptron
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = MatrixPerceptron(p=2, average=True, random_state=0).fit(X, y)
    >>> sorted(model.coef_) == sorted(X.names)
    True
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        p: float = 2.0,
        unequal: str = "refuse",
        average: Any = False,
        margin: float = 0.0,
        eta0: float = 1.0,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.p = p
        self.unequal = unequal
        self.average = average
        self.margin = margin
        self.eta0 = eta0
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        check_number("p", self.p, 1.0)
        check_choice("unequal", self.unequal, ("refuse", "pad", "repeat"))
        self._check_common()

    _width: int  # of the widest view so far

    def _by_columns(self) -> bool:
        return self._is_linear() and self.average != "voted"

    def _new_machine(self, n_outputs: int) -> Machine:
        if self._by_columns():
            return LinearMachine("matrix", n_outputs, p=self.p, average=self.average is True)
        return KernelMachine(Grams("pairs"), n_outputs, p=self.p, average=self.average)

    # -- views of one width
    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        widths = {name: _blocks.width(X.block(name)) for name in X.names if X.block(name) is not None}
        for name in widths:
            if X.kind(name) not in ("dense", "sparse"):
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)}; the matrix perceptron takes numbers, a column of a matrix "
                    "per view. OrthogonalPerceptron takes a kernel for each view."
                )
        started = hasattr(self, "n_samples_seen_")
        first = {name: 0 if whole else int(X.present(name).argmax()) for name in widths if X.present(name).any()}
        at_once = [widths[name] for name, row in first.items() if row == min(first.values())]
        widest = self._width if started and not whole else max(at_once, default=1)
        self._next_width = widest
        for name in sorted(first, key=lambda name: first[name]):
            if widths[name] > widest and self.unequal == "pad":
                widest = widths[name]
            if widths[name] > widest or (widths[name] < widest and self.unequal == "refuse"):
                raise ValueError(
                    f"View '{name}' has {widths[name]} columns, the widest view so far {widest}: the matrix perceptron "
                    "needs views of one width. Use OrthogonalPerceptron, which takes views of any width, or "
                    "unequal='pad'; unequal='repeat' is for views that are narrower than those before them."
                )

    def _start(self) -> None:
        super()._start()
        self._width = self._next_width

    def _widen(self, X: Views) -> None:
        """Pad what is kept with zeros where a wider view comes late."""
        widest = max((_blocks.width(X.block(name)) for name in X.names if X.present(name).any()), default=0)
        if widest > self._width:
            self._width = widest
            if isinstance(self._machine, KernelMachine):
                support = self._machine.support
                support.parts = [self._equal(part) for part in support.parts]

    def _kernels_of(self, X: Views) -> dict[str, Kernel]:
        """One kernel for all views: that of the first."""
        for kernel in list(self.kernels_.values())[:1]:
            self.kernels_.update({name: kernel for name in X.names if X.present(name).any()})
        return super()._kernels_of(X)

    def _equal(self, X: Views) -> Views:
        """Views of fewer columns padded with zeros, or repeated."""
        short = [n for n in X.names if X.block(n) is not None and _blocks.width(X.block(n)) < self._width]
        if not short or (self.unequal == "pad" and isinstance(self._machine, LinearMachine)):
            return X
        blocks = {n: _widened(X.block(n), self._width, self.unequal) if n in short else X.block(n) for n in X.names}
        return Views._of(blocks, len(X), X.mask, {})

    def _ready(self, X: Views) -> Any:
        self._widen(X)
        return super()._ready(self._equal(X))

    def _prepare(self, X: Views) -> None:
        if isinstance(self._machine, KernelMachine):  # one kernel for all, its parameters from the samples of all views
            X = self._equal(X)
            shown = [name for name in X.names if X.present(name).any()]
            parts = [_blocks.take(X.block(name), np.flatnonzero(X.present(name))) for name in shown]
            sparse = all(sp.issparse(part) for part in parts)
            if sparse:
                samples = sp.vstack(parts, format="csr")
            else:
                samples = np.vstack([part.toarray() if sp.issparse(part) else _blocks.to_numpy(part) for part in parts])
            self.kernels_ = dict.fromkeys(shown, as_kernel(self.kernel).resolved(samples))

    def _scores(self, X: Views) -> np.ndarray:
        return super()._scores(self._equal(X))

    def _read_pairs(self, comparison: Any) -> tuple[Views, np.ndarray]:
        X, codes = super()._read_pairs(comparison)
        return self._equal(X), codes

    def _light(self, x: Mapping[str, Any]) -> Any:
        return None if self.unequal == "repeat" else super()._light(x)

    def _setting(self) -> Setting | None:
        return Setting(2 * float(self.p), float(self.margin), float(self.eta0))


def _widened(block: Any, width: int, how: str) -> Any:
    if how == "repeat":
        repeated = block[:, np.arange(width) % block.shape[1]]
        if sp.issparse(repeated):
            repeated.sort_indices()
        return repeated
    if sp.issparse(block):
        return sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], width))
    wide = np.zeros((block.shape[0], width), dtype=block.dtype)
    wide[:, : block.shape[1]] = block
    wide[np.isnan(block).all(axis=1)] = np.nan
    return wide
