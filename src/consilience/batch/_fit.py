"""The steps that batch estimators share: read the training data, make the design, store the fit.

Each `fit` calls them in this order, with its own solver between the last two.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._backend import cast, in_single, is_device_array, like, namespace, spread_rows, take_rows, to_numpy
from ..kernels import Kernel, kernels_by_view, present_grams, reference_views, resolve_kernels
from ..kernels.by_view import choose_kernels, views_of_names, views_of_terms
from ..kernels.features import Nystroem
from ..kernels.given import definite_grams
from ..solvers.certificates import Solution, warn_unless_converged
from ..solvers.design import Design, FeatureDesign, FeatureRows, GramDesign
from ..solvers.linalg import is_positive, without_rounding
from ..views import _blocks
from ..views._reading import checked_sparse
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import to_float64
from ..views.estimator import presence
from ..views.partitions import is_dask
from ..views.repeated import tell_repeated
from ..views.row_blocks import RowBlocks, sample_rows, sample_size
from ..views.validation import class_weights, is_indicator, read_labels, read_targets, read_views_to_fit, read_weights
from ._collect import collect_blocks
from ._memory import EXACT_SAMPLES, check_double, chosen_components, landmarks_of
from ._row_blocks import BlockReader, TrainingRows, block_rows, rows_of_terms, sum_over_partitions
from ._terms import has_several, kernel_parts, learns_weights, terms_of, weights_of_views


# -- 1. the training data
@dataclass(frozen=True)
class TrainingData:
    """Training samples in solver order: the labeled ones first, samples that no term of the objective uses left out.

    A view with several kernels is there once for each of them, under the names of `terms_of`.
    """

    X: Views  # with the views that some sample has
    kernels: dict[str, Kernel]  # of these views, with numbers for parameters
    order: np.ndarray  # positions of the rows among the samples given
    n: int  # how many samples were given
    s: np.ndarray  # weights of the rows
    Y: np.ndarray  # targets of the labeled rows
    u: np.ndarray  # weights of their losses
    codes: np.ndarray | None = None  # classes of the labeled rows, for classification with one class per sample

    by_blocks = False  # whether the rows are read anew at every pass

    @property
    def l(self) -> int:  # noqa: E743
        """Number of labeled rows."""
        return len(self.Y)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.Y.shape[1]) if self.Y.ndim == 2 else 1

    @property
    def n_used(self) -> int:
        """Number of rows that take part."""
        return len(self.order)

    def sample(self, n_components: int, seed: int) -> tuple[Views, np.ndarray]:
        """Return rows for landmarks, all or a sample of many, in the order of the samples given; and their positions.

        Rows without a target come after the others here, not there.
        """
        rows = np.argsort(self.order)
        rows = rows[sample_rows(self.order[rows], sample_size(self.X, n_components), seed)]
        X = self.X if np.array_equal(rows, np.arange(len(self.X))) else self.X[rows]
        return X, self.order[rows]

    def rows(self) -> Iterator[TrainingRows]:
        """Start a pass over the rows, block by block: views, weights, weights of the losses, targets."""
        size = block_rows(self.X)
        for start in range(0, len(self.order), size):
            here = slice(start, min(start + size, len(self.order)))
            known = self.Y[here].reshape(-1, self.n_outputs)
            u, Y = np.zeros(here.stop - start), np.zeros((here.stop - start, self.n_outputs))
            u[: len(known)], Y[: len(known)] = self.u[here], known
            yield self.X[here], self.s[here], u, Y


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    use_unlabeled: bool = False,
    labeled_only: bool = False,
    every_sample: bool = False,
    several: bool = False,
) -> TrainingData:
    """Validate samples, targets and weights, and put the rows in solver order.

    Classes become targets of ±1, one output per class, one output in all for two classes. With `use_unlabeled`,
    samples without a target take part. With `labeled_only`, they do not even determine the parameters of kernels. With
    `every_sample`, samples of weight 0 take part as unlabeled ones. `several` says whether weights of kernels are
    learned, so that views may have several kernels.
    """
    for name in ("kernels_", "n_components_", "_sums"):  # those of "auto" are chosen again
        vars(estimator).pop(name, None)
    if is_dask(X):
        X, y, sample_weight = RowBlocks.of(X, y, sample_weight, views=getattr(estimator, "views", None)), None, None
    if isinstance(X, RowBlocks) and isinstance(getattr(estimator, "n_components", None), str):
        X = X.counted()  # as many landmarks as in memory, and exact kernels for as few samples
        if X.shape[0] <= EXACT_SAMPLES:
            X, y, sample_weight = collect_blocks(estimator, X, y, sample_weight)
    if isinstance(X, RowBlocks):
        return _read_blocks(
            estimator, X, y, sample_weight, use_unlabeled=use_unlabeled, labeled_only=labeled_only, several=several
        )
    X = read_views_to_fit(estimator, X, None if every_sample else sample_weight)
    y = in_order_of(X, y, "y")
    s = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
    codes = None
    if not is_classifier(estimator):
        Y, labeled = read_targets(y, len(X), weights=s)
        estimator._one_output = np.asarray(y).ndim == 1
        u = s
    elif estimator._multi_label and is_indicator(y := _dense(y)):
        Y, labeled = _read_indicator(estimator, y, s)
        u = s
    else:
        labels = read_labels(y, len(X), estimator.unlabeled, weights=s)
        estimator._indicator, estimator.classes_ = False, labels.classes
        Y, labeled, codes = None, labels.labeled, labels.codes
        u = s * class_weights(estimator.class_weight, labels, s)
    labeled = labeled & (u > 0)
    s = np.where(labeled, s, 0.0) if labeled_only else s
    used = np.ones_like(s) if every_sample else s
    X, kernels, order = select_training_rows(estimator, X, labeled, used, use_unlabeled=use_unlabeled, several=several)
    first = order[: int((labeled & (s > 0)).sum())]
    Y = labels.signs(first) if Y is None else Y[first]
    return TrainingData(X, kernels, order, len(s), s[order], Y, u[first], None if codes is None else codes[first])


def distinct_samples(data: TrainingData, remedy: str) -> TrainingData:
    """Return equal labeled samples as one, with the sum of their weights and the mean of their targets.

    Least squares have the same solution, and leave-one-out holds all of them out together.
    """
    units = None if data.by_blocks else tell_repeated(data.X[np.arange(data.l)], remedy)
    if units is None:
        return data
    first, u = np.unique(units, return_index=True)[1], np.bincount(units, weights=data.u)
    Y = np.zeros((len(first), data.Y.shape[1]))
    np.add.at(Y, units, data.u[:, None] * data.Y)
    rows = np.concatenate([first, np.arange(data.l, len(data.order))])
    s = np.concatenate([np.bincount(units, weights=data.s[: data.l]), data.s[data.l :]])
    codes = None if data.codes is None else data.codes[first]
    return replace(data, X=data.X[rows], order=data.order[rows], s=s, Y=Y / u[:, None], u=u, codes=codes)


@dataclass(frozen=True)
class BlockData(TrainingData):
    """Training samples that are read block by block; X is a sample of them, in which landmarks are found."""

    reader: BlockReader = None  # type: ignore[assignment]
    by_blocks = True

    @property
    def l(self) -> int:  # noqa: E743
        """Number of labeled rows."""
        return self.reader.found.l

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.reader.found.n_outputs

    @property
    def n_used(self) -> int:
        """Number of rows that take part."""
        return self.reader.found.n_used

    def sample(self, n_components: int, seed: int) -> tuple[Views, np.ndarray]:
        """Return the rows for landmarks, and their positions."""
        return self.X, self.order

    def rows(self) -> Iterator[TrainingRows]:
        """Start a pass over the rows, block by block: views, weights, weights of the losses, targets."""
        yield from rows_of_terms(self.reader)


def _read_blocks(
    estimator: Any,
    blocks: RowBlocks,
    y: Any,
    sample_weight: Any,
    *,
    use_unlabeled: bool,
    labeled_only: bool,
    several: bool,
) -> BlockData:
    """Pass over the blocks once, and return what later passes read."""
    if y is not None or sample_weight is not None:
        raise ValueError("RowBlocks have targets and weights in their blocks. Leave `y` and `sample_weight` out.")
    if not hasattr(estimator, "n_components"):
        read_views_to_fit(estimator, blocks)  # refuses them
    if estimator.n_components is None:
        raise ValueError(
            f"{type(estimator).__name__} compares all samples with one another, which needs them in memory. Set "
            "`n_components`, such as n_components=300, to learn from blocks of rows."
        )
    seed = check_random_state(estimator.random_state).randint(2**31)
    blocks = blocks if isinstance(estimator.n_components, Integral) else blocks.counted()
    reader = BlockReader(estimator, blocks, use_unlabeled=use_unlabeled, labeled_only=labeled_only)
    for_kernels, for_landmarks = reader.survey(seed, number_of_landmarks)
    weighted, _ = for_kernels.rows()
    sample, positions = for_landmarks.rows()
    estimator._used_views = tuple(name for name in sample.names if sample.present(name).any())
    resolved = _resolved_kernels(estimator, weighted[list(estimator._used_views)], several=several)
    estimator.kernels_ = {name: resolved[name] for name in estimator._used_views}
    terms = terms_of(estimator)
    X = views_of_terms(terms, sample[list(estimator._used_views)])
    none = np.zeros((0, reader.found.n_outputs))
    return BlockData(
        X, {term.name: term.kernel for term in terms}, positions, reader.found.n, np.zeros(0), none, np.zeros(0),
        reader=reader,
    )  # fmt: skip


def _dense(y: Any) -> Any:
    return checked_sparse(y, "y").toarray() if sp.issparse(y) else y


def _read_indicator(estimator: Any, y: Any, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return targets of ±1 from an indicator of labels, and which samples have them."""
    if estimator.class_weight is not None:
        raise ValueError("`class_weight` is for one class per sample; y is an indicator of several labels.")
    Y, labeled = read_targets(y, len(s), weights=s)
    others = np.setdiff1d(Y[labeled], (0, 1))
    if len(others):
        raise ValueError(f"An indicator of labels holds 0 and 1; y has {others[0]:g}.")
    estimator._indicator, estimator.classes_ = True, np.arange(Y.shape[1])
    return 2 * Y - 1, labeled


def select_training_rows(
    estimator: Any, X: Views, labeled: np.ndarray, s: np.ndarray, *, use_unlabeled: bool, several: bool = False
) -> tuple[Views, dict[str, Kernel], np.ndarray]:
    """Return the rows that take part, the labeled ones first, the resolved kernels, and the order of the rows.

    Kernel parameters that depend on the data are taken from all samples with a positive weight. With `several`, views
    may have several kernels, and are returned once for each.
    """
    X, used = definite_grams(X), s > 0
    if not (used & labeled).any():
        raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
    weighted = _kernel_sample(X, np.flatnonzero(used))
    names = [name for name in X.names if weighted.present(name).any()]
    resolved = _resolved_kernels(estimator, weighted[names], several=several)
    if not use_unlabeled:
        used = used & labeled
    order = np.concatenate([np.flatnonzero(used & labeled), np.flatnonzero(used & ~labeled)])
    X = X if np.array_equal(order, np.arange(len(X))) else X[order]
    estimator._used_views = tuple(name for name in X.names if X.present(name).any())
    X = X if estimator._used_views == X.names else X[list(estimator._used_views)]
    estimator.kernels_ = {name: resolved[name] for name in X.names}
    terms = terms_of(estimator)
    return views_of_terms(terms, X), {term.name: term.kernel for term in terms}, order


def _resolved_kernels(estimator: Any, X: Views, *, several: bool) -> dict[str, Any]:
    """Return the kernels of each view of X, their parameters computed from it."""
    if several:
        return choose_kernels(estimator.kernel, estimator.view_names_in_, X)
    kernels = kernels_by_view(estimator.kernel, estimator.view_names_in_)
    return resolve_kernels({name: kernels[name] for name in X.names}, X, validated=True)


def _kernel_sample(X: Views, rows: np.ndarray) -> Views:
    """Return the rows that determine the parameters of kernels: all of them, or a sample of many."""
    rows = rows[sample_rows(rows, sample_size(X), 0)]
    return X if len(rows) == len(X) else X[rows]


# -- 2. the design
def designs(estimator: Any, data: TrainingData) -> Iterator[Design]:
    """Yield the design in the precision of the data; a caller that asks for another gets double precision.

    Use it as ``for design in designs(...)``, and leave the loop where `is_precise` accepts the solution.
    """
    if landmarks_of(estimator) is None and all(_blocks.is_single(data.X.block(name)) for name in data.X.names):
        yield gram_design(data, np.float32)
    yield double_design(estimator, data)


def double_design(estimator: Any, data: TrainingData, *, shared_landmarks: bool = False) -> Design:
    """Return the design in double precision: features where the estimator has `n_components`, else Gram matrices."""
    if landmarks_of(estimator) is None:
        check_double(estimator, data)
        return gram_design(data, np.float64)
    return feature_design(estimator, data, shared_landmarks=shared_landmarks)


def is_precise(design: Design, solution: Solution) -> bool:
    """Tell whether rounding in single precision left the solution good enough."""
    return not design.single or solution.status not in ("inexact", "jitter", "indefinite")


def gram_design(data: TrainingData, dtype: Any = np.float64) -> GramDesign:
    """Return the Gram matrices of all views; refuse kernels from outside that are not positive semi-definite."""
    X = data.X if dtype == np.float32 else to_float64(data.X, devices=True)
    rows = [np.flatnonzero(X.present(name)) for name in X.names]
    grams = []
    for name, K in zip(X.names, present_grams(data.kernels, X, validated=True), strict=True):
        given = K
        if in_single(given) and dtype != np.float32:  # a function that returns single precision
            given = without_rounding(given)
        K = cast(given, np.dtype(dtype).name)
        K = np.ascontiguousarray(K) if isinstance(K, np.ndarray) else K
        _check_symmetric(name, K)
        if data.kernels[name].may_be_indefinite and not is_positive(given):
            raise indefinite(name)
        grams.append(K)
    return GramDesign(grams, rows, data.l, data.s)


def _check_symmetric(name: str, K: Any) -> None:
    """Compare some rows of a matrix with its columns."""
    some = np.linspace(0, K.shape[0] - 1, 32).astype(int)
    rows, columns = to_numpy(take_rows(K, some)), to_numpy(take_rows(K.T, some))
    difference = np.abs(rows - columns).max()
    if difference > 1e-4 * np.abs(rows).max():
        raise ValueError(
            f"View '{name}': its kernel matrix is not symmetric: entries that should be equal differ by "
            f"{difference:.4g}. Give (K + K') / 2 if that is meant."
        )


def feature_design(estimator: Any, data: TrainingData, *, shared_landmarks: bool = False) -> FeatureDesign:
    """Return the Nyström features of all views, computed again at every pass, block by block."""
    seed = check_random_state(estimator.random_state).randint(2**31)
    size = number_of_landmarks(estimator, data.n_used)
    X, positions = data.sample(size, seed)
    nystroem = Nystroem(kernel=data.kernels, n_components=size, shared=shared_landmarks, random_state=seed)
    # directions would be lost in single precision
    nystroem.fit_read(to_float64(X), {term.name: term.view for term in terms_of(estimator) if term.label is not None})
    nystroem.landmark_indices_ = {name: positions[own] for name, own in nystroem.landmark_indices_.items()}
    estimator._features = nystroem
    sizes = [nystroem.n_components_[name] for name in X.names]

    outer = getattr(estimator, "output_kernel", None) is not None
    design = FeatureDesign(lambda: feature_rows(nystroem, data.rows()), sizes, data.n_outputs, outer)
    if isinstance(data, BlockData) and data.reader.blocks.partitions is not None:
        design.over_parts = partial(sum_over_partitions, data.reader, partial(_part_features, nystroem))
    return design


def feature_rows(nystroem: Nystroem, rows: Iterable[TrainingRows]) -> Iterator[FeatureRows]:
    """Yield the features of rows, all views side by side."""
    for block, s, u, Y in rows:
        part = nystroem.transform_read(to_float64(block))
        yield FeatureRows(side_by_side(part, nystroem), presence(block), s, u, Y)


def _part_features(nystroem: Nystroem, reader: BlockReader) -> Iterator[FeatureRows]:
    return feature_rows(nystroem, rows_of_terms(reader))


def number_of_landmarks(estimator: Any, n: int) -> int:
    """Return `n_components` as a number: an integer itself, or a fraction of n samples."""
    if isinstance(estimator.n_components, str) and "n_components_" not in vars(estimator):  # rows read by blocks
        estimator.n_components_ = chosen_components(estimator, n or None, len(estimator.view_names_in_))
    size = landmarks_of(estimator)
    return int(size) if isinstance(size, Integral) else max(1, round(size * n))


def side_by_side(X: Views, features: Nystroem) -> Any:
    """Return the dense features of all views in one matrix, zero where a view is missing."""
    blocks = [dense_block(X, name, features._roots[name].T) for name in X.names]
    return blocks[0] if len(blocks) == 1 else namespace(*blocks).concat(blocks, axis=1)


def dense_block(X: Views, name: str, root: Any) -> Any:
    """Return a view of dense features, zero where it is missing.

    `root` is a matrix with one row for each feature: a view that no row has becomes zeros of its library and type.
    """
    block = X.block(name)
    if block is None:
        zeros = namespace(root).zeros((len(X), root.shape[0]), dtype=root.dtype)
        return zeros if not is_device_array(root) else like(zeros, root)
    if X.present(name).all():
        return block
    present = like(X.present(name)[:, None], block)
    xp = namespace(block)
    return xp.where(present, block, xp.zeros_like(block))


# -- weights of the views
def given_weights(estimator: Any) -> np.ndarray | None:
    """Return the weights of the views used, or None where they are learned; kernels of one view share its weight."""
    names, given = estimator.view_names_in_, estimator.view_weights
    used = [names.index(name) for name in estimator._used_views]
    if isinstance(given, str):
        if given == "uniform":
            return _by_kernel(estimator, np.full(len(used), 1 / len(used)))
        if given in ("learned", "least_squares"):
            return None
        raise ValueError(f"`view_weights` is 'uniform', 'learned' or one number per view; got {given!r}.")
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ValueError(
                f"`view_weights` names {_blocks.quoted(given)}; the views are {_blocks.quoted(names)}. Give each a "
                "weight, 0 to leave it out."
            )
        given = [given[name] for name in names]
    c = np.asarray(given, dtype=np.float64)
    if c.shape != (len(names),) or not np.isfinite(c).all():
        raise ValueError(f"`view_weights` must be one finite number per view, {len(names)} in all; got {given!r}.")
    if not c[used].any():
        raise ValueError("`view_weights` are zero for every view that the samples have.")
    return _by_kernel(estimator, c[used])


def _by_kernel(estimator: Any, c: np.ndarray) -> np.ndarray:
    """Divide the weight of each view among its kernels."""
    by_view = dict(zip(estimator._used_views, c, strict=True))
    return np.array([by_view[term.view] for term in terms_of(estimator)]) * kernel_parts(estimator)


# -- 3. the fit
def store_fit(
    estimator: Any, data: TrainingData, design: Design, solution: Solution, *, every_row: bool = False
) -> Any:
    """Store what prediction needs and what is proved; return the estimator.

    The solution's x begins with the coefficients and weights of each view, or of each kernel where views have several.
    Rows without coefficients are left out unless `every_row` asks for them.
    """
    raise_if_indefinite(estimator, solution)
    for name in ("dual_coef_", "support_", "coef_", "X_fit_", "_kernel_weights"):
        vars(estimator).pop(name, None)
    coefficients, view_weights = solution.x[:2]
    if has_several(estimator):
        if hasattr(estimator, "view_weights") and learns_weights(estimator):
            estimator._kernel_weights = view_weights
        view_weights, factors = weights_of_views(terms_of(estimator), view_weights)
        coefficients = [factor * own for factor, own in zip(factors.tolist(), coefficients, strict=True)]
    if isinstance(design, FeatureDesign):
        estimator.coef_ = dict(zip(data.X.names, coefficients, strict=True))
    else:
        vars(estimator).pop("_features", None)
        _store_support(estimator, data, design, coefficients, every_row)
    estimator.view_weights_ = view_weights
    estimator.solution_ = replace(solution, x=None)
    warn_unless_converged(solution, type(estimator).__name__)
    return estimator


def _store_support(
    estimator: Any, data: TrainingData, design: GramDesign, coefficients: Sequence[np.ndarray], every_row: bool
) -> None:
    n = len(data.order)
    parts = [cast(spread_rows(own, here, n), "float64") for here, own in zip(design.rows, coefficients, strict=True)]
    xp = namespace(*parts)
    used = [to_numpy(xp.any(part != 0, axis=1)) for part in parts]
    kept = np.arange(n) if every_row else np.flatnonzero(np.any(used, axis=0))
    kept = kept if len(kept) else np.arange(1)
    kept = kept[np.argsort(data.order[kept])]
    whole = np.array_equal(kept, np.arange(n))
    dual = xp.stack([part if whole else take_rows(part, kept) for part in parts])
    estimator.dual_coef_ = np.ascontiguousarray(dual) if isinstance(dual, np.ndarray) else dual
    estimator.support_ = data.order[kept]
    X = data.X if whole else data.X[kept]
    # predictions are made in the precision in which the coefficients were found
    X = views_of_names(terms_of(estimator), X)
    estimator.X_fit_ = reference_views(estimator.kernels_, X if design.single else to_float64(X, devices=True))


def indefinite(name: str) -> ValueError:
    """Return the error for a kernel from outside that is not positive semi-definite."""
    return ValueError(
        f"View '{name}': its kernel matrix is not positive semi-definite, so the problem has no minimum. Use a "
        "positive semi-definite kernel; `consilience.kernels.nearest_psd` makes one of a matrix."
    )


def raise_if_indefinite(estimator: Any, solution: Solution) -> None:
    """Raise the error of a problem without a minimum; the solution's x is the position of the view, or None."""
    if solution.status != "indefinite":
        return
    graphs = bool(getattr(estimator, "graph_penalty", 0))
    what = "The kernel matrices of the views together are"
    if solution.x is not None:
        matrix = "kernel matrix or its graph's Laplacian" if graphs else "kernel matrix"
        what = f"View '{terms_of(estimator)[solution.x].name}': its {matrix} is"
    remedy = " `graph` takes a Laplacian, which `consilience.graphs.laplacian` makes of weights of at least 0."
    raise ValueError(
        f"{what} not positive semi-definite, so the problem has no minimum, or so close to singular that it appears "
        "so. Scale the views, raise `alpha`, or use a positive semi-definite kernel; `consilience.kernels.nearest_psd` "
        f"makes one of a matrix.{remedy * graphs}"
    )
