"""Fits over features that grow: sums over rows are kept, and those of more rows are added.

The first call fixes the parameters of kernels, the landmarks and the classes. Later ones add the sums of their rows, so
that the fit is that of all rows with these landmarks, however they were divided. Sums of the first call are kept apart:
two fits that began with the same call are merged, and the rows of that call count once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from .._backend import to_numpy
from ..solvers.design import FeatureDesign, FeatureRows
from ..solvers.moments import Moments, RowSums, TooManyPatterns, unfinished_moments
from ..views import _blocks
from ..views.container import Views
from ..views.row_blocks import RowBlocks
from ..views.validation import Labels, class_weights, read_labels
from ._fit import TrainingData, feature_design, feature_rows, read_training
from ._memory import check_features, chosen_components
from ._row_blocks import BlockReader, Survey, rows_of_terms
from ._terms import terms_of

_FIXED = ("kernel", "n_components")  # parameters on which the features depend


def keeps_sums(estimator: Any) -> bool:
    """Tell whether an estimator works over features, whose sums can grow; otherwise raise what `hasattr` reads."""
    name = type(estimator).__name__
    if estimator.n_components is None:
        raise AttributeError(
            f"{name} with exact kernels needs all samples at once. Set `n_components`, such as n_components=300, for "
            "partial_fit and merge."
        )
    if getattr(estimator, "graph_penalty", 0):
        raise AttributeError(
            f"{name}.partial_fit does not take `graph_penalty`, since a graph is between all samples. Use `fit`, or "
            "graph_penalty=0."
        )
    return True


@dataclass(frozen=True)
class SumsData(TrainingData):
    """Training samples of which only sums are kept; X has the views and no rows."""

    design: FeatureDesign = None  # type: ignore[assignment]

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.design.n_outputs

    @property
    def n_used(self) -> int:
        """Number of rows that take part."""
        return int(self.design.known.n)


# -- more rows
def add_samples(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    classes: Any,
    *,
    use_unlabeled: bool = False,
    labeled_only: bool = False,
    several: bool = False,
    shared_landmarks: bool = False,
) -> SumsData:
    """Add the sums of more samples to those of an estimator, which the first call sets up; return all of them.

    The keywords are those of `read_training` and `feature_design`, the same at every call.
    """
    _refuse_parameters(estimator)
    given = {"use_unlabeled": use_unlabeled, "labeled_only": labeled_only}
    announced = _announced(estimator, classes)
    blocks = _as_blocks(estimator, X, y, sample_weight)
    if "_sums" in vars(estimator):
        _check_fixed(estimator, announced)
        kept = estimator._sums
        added = _sums_of_rows(estimator, blocks, len(kept["first"][0]["squares"]), **given)
        if kept["later"]:
            added = _added(estimator, _unpacked(estimator, kept["later"]), added)
        estimator._sums = {**kept, "later": _packed(added)}
        return _sums_data(estimator)
    if "solution_" in vars(estimator):
        raise ValueError(
            f"{type(estimator).__name__} was fitted by `fit`, which keeps no sums over samples. Start with "
            "clone(model).partial_fit."
        )
    data = read_training(estimator, blocks, None, None, **given, several=several)
    n, m = data.n_used, len(data.X.names)
    estimator.n_components_ = chosen_components(estimator, n, m)
    check_features(estimator, n, m, estimator.n_components_)
    feature_design(estimator, data, shared_landmarks=shared_landmarks)
    n_outputs = data.n_outputs
    if announced is not None:
        n_outputs = _begin_classes(estimator, announced)
    began = {name: getattr(estimator, name) for name in _FIXED}
    first = _packed(_sums_of_rows(estimator, blocks, n_outputs, **given))
    estimator._sums = {"began": began, "first": first, "later": []}
    return _sums_data(estimator)


def _refuse_parameters(estimator: Any) -> None:
    name = type(estimator).__name__
    if isinstance(getattr(estimator, "class_weight", None), str):
        raise ValueError(
            f"{name}.partial_fit does not take class_weight={estimator.class_weight!r}, since the numbers of samples "
            "of the classes change with every call. Give the weights as a dict."
        )
    if getattr(estimator, "validation_fraction", None) is not None:
        raise ValueError(
            f"{name}.partial_fit does not take `validation_fraction`, since samples are not kept. Leave it out."
        )


def _announced(estimator: Any, classes: Any) -> np.ndarray | None:
    """Return the classes given, sorted."""
    if classes is None:
        return None
    if not is_classifier(estimator):
        raise ValueError(f"`classes` is for classification, and {type(estimator).__name__} is a regressor.")
    return read_labels(np.asarray(classes), len(classes)).classes


def _begin_classes(estimator: Any, announced: np.ndarray) -> int:
    """Set all classes of the stream at the first call; return the number of outputs."""
    if estimator._indicator:
        raise ValueError("`classes` is for one class per sample; y is an indicator of several labels.")
    read_labels(estimator.classes_, len(estimator.classes_), None, announced)  # refuse others
    estimator.classes_ = announced
    return 1 if len(announced) <= 2 else len(announced)


def _check_fixed(estimator: Any, announced: np.ndarray | None) -> None:
    for name, before in estimator._sums["began"].items():
        now = getattr(estimator, name)
        if before is not now and not bool(np.all(before == now)):
            raise ValueError(
                f"`{name}` was {before!r} at the first call of partial_fit and is {now!r} now. Set it back, or start "
                "again with clone(model)."
            )
    if announced is not None and not np.isin(announced, estimator.classes_).all():
        raise ValueError(
            f"`classes` are {_blocks.quoted(announced)} now, but {_blocks.quoted(estimator.classes_)} at the first "
            "call."
        )


# -- the rows of one call
def _sums_of_rows(
    estimator: Any, blocks: RowBlocks, n_outputs: int, *, use_unlabeled: bool, labeled_only: bool
) -> Moments:
    """Return the sums over the rows of one call, by the views that they have."""
    reader = BlockReader(
        estimator, _with_known_views(estimator, blocks), use_unlabeled=use_unlabeled, labeled_only=labeled_only
    )
    reader.found, reader.indicator = _known_targets(estimator, n_outputs), getattr(estimator, "_indicator", False)

    def rows() -> Iterator[Any]:
        for block, s, u, Y in rows_of_terms(reader):
            if Y.shape[1] != n_outputs:
                raise ValueError(f"y has {Y.shape[1]} outputs; at the first call of partial_fit it had {n_outputs}.")
            yield block, s, u, Y

    sizes = list(estimator._features.n_components_.values())
    outer = getattr(estimator, "output_kernel", None) is not None
    if "_sums" in vars(estimator):
        before = estimator._sums["first"][0]["squares"].ndim == 2
        if outer and not before:
            raise ValueError(
                "`output_kernel` was None at the first call of partial_fit. Start again with clone(model)."
            )
        outer = before
    try:
        found = unfinished_moments(
            feature_rows(estimator._features, rows()), sizes=sizes, n_outputs=n_outputs, c=None, outer=outer
        )
    except TooManyPatterns:
        raise _too_many(estimator) from None
    return found.finish()


def _as_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> RowBlocks:
    """Return the samples of one call as blocks."""
    if isinstance(X, RowBlocks):
        if y is not None or sample_weight is not None:
            raise ValueError("RowBlocks have targets and weights in their blocks. Leave `y` and `sample_weight` out.")
        return X
    y = y.toarray() if sp.issparse(y) else y
    if y is None:
        raise ValueError(f"{type(estimator).__name__}.partial_fit needs y; samples without a target are NaN in it.")
    return RowBlocks.of(X, y, sample_weight, views=getattr(estimator, "views", None))


def _with_known_views(estimator: Any, blocks: RowBlocks) -> RowBlocks:
    """Return the same blocks; a view that no sample of the first call had is refused, since it has no landmarks."""

    def source() -> Iterator[Any]:
        for block in blocks:
            for name in block.X.names:
                new = name in estimator.view_names_in_ and name not in estimator._used_views
                if new and block.X.present(name).any():
                    raise ValueError(
                        f"View '{name}' was missing in all samples of the first call of partial_fit, so it has no "
                        "landmarks. Begin with samples of which some have it."
                    )
            yield block

    return RowBlocks(source, n_samples=blocks.n_samples, name=blocks.name)


def _known_targets(estimator: Any, n_outputs: int) -> Survey:
    """Return what a reader must know of the targets: the classes, and their weights."""
    if not is_classifier(estimator) or estimator._indicator:
        return Survey(n_outputs=n_outputs)
    classes = estimator.classes_
    each = Labels(classes, np.arange(len(classes)), np.ones(len(classes), dtype=bool))
    weights = class_weights(estimator.class_weight, each, np.ones(len(classes)))
    return Survey(n_outputs=n_outputs, classes=classes, by_class=weights)


# -- sums that an estimator keeps, in plain arrays that a model file can hold
def _packed(sums: Moments) -> list[dict[str, Any]]:
    return [{"present": np.array(key), **vars(own)} for key, own in sums.parts.items()]


def _unpacked(estimator: Any, parts: list[dict[str, Any]]) -> Moments:
    sizes = list(estimator._features.n_components_.values())
    squares = estimator._sums["first"][0]["squares"]
    known = {
        tuple(part["present"].tolist()): RowSums(**{key: value for key, value in part.items() if key != "present"})
        for part in parts
    }
    return Moments(sizes, len(squares), None, squares.ndim == 2, known)


def _added(estimator: Any, one: Moments, other: Moments) -> Moments:
    try:
        return one + other
    except TooManyPatterns:
        raise _too_many(estimator) from None


def _too_many(estimator: Any) -> ValueError:
    return ValueError(
        f"{type(estimator).__name__}.partial_fit keeps sums for each combination of missing views, and there are too "
        "many for its memory. Set fewer `n_components`, or use `fit`."
    )


def _sums_data(estimator: Any) -> SumsData:
    """Return all that an estimator knows of its samples."""
    kept = estimator._sums
    sums = _unpacked(estimator, kept["first"])
    if kept["later"]:
        sums = _added(estimator, sums, _unpacked(estimator, kept["later"]))
    design = FeatureDesign(_no_rows, sums.sizes, sums.n_outputs, sums.outer, known=sums)
    names = [term.name for term in terms_of(estimator)]
    X = Views._of(dict.fromkeys(names), 0, None, {}, None)
    none = np.zeros(0)
    return SumsData(X, {}, np.zeros(0, dtype=int), sums.n, none, np.zeros((0, sums.n_outputs)), none, design=design)


def _no_rows() -> Iterator[FeatureRows]:
    raise ValueError("partial_fit keeps sums over samples, not the samples, which this needs. Use `fit`.")


def has_valid_sums(estimator: Any) -> bool:
    """Tell whether sums that were read from a file fit the features and coefficients of their estimator."""
    kept, q = estimator._sums, sum(estimator._features.n_components_.values())
    P = next(iter(estimator.coef_.values())).shape[1]
    m = len(terms_of(estimator))
    outer = kept["first"][0]["squares"].ndim == 2
    shapes = {"X": (q, q), "T": (q, q), "Z": (q, P), "squares": (P, P) if outer else (P,)}
    numbers = {"n": int, "labeled": int, "weight": float, "total": float}
    if set(kept) != {"began", "first", "later"} or set(kept["began"]) != set(_FIXED) or not kept["first"]:
        return False
    for part in [*kept["first"], *kept["later"]]:
        arrays = all(
            isinstance(part[key], np.ndarray) and part[key].dtype == np.float64 and part[key].shape == shape
            and np.isfinite(part[key]).all()
            for key, shape in shapes.items()
        )  # fmt: skip
        plain = all(type(part[key]) is kind and part[key] >= 0 for key, kind in numbers.items())
        mask = part["present"]
        masks = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (m,) and mask.any()
        if not (arrays and plain and masks and set(part) == {"present", *shapes, *numbers}):
            return False
    return True


# -- two fits
def merge_sums(estimator: Any, other: Any) -> SumsData:
    """Add the sums of another fit that began with the same call; return all of them."""
    _refuse_parameters(estimator)
    name = type(estimator).__name__
    if type(other) is not type(estimator):
        raise TypeError(f"{name}.merge takes another {name}; got {type(other).__name__}.")
    for one in (estimator, other):
        if "_sums" not in vars(one):
            raise ValueError(f"{name}.merge takes estimators that were fitted by partial_fit, which keeps sums.")
    if not _same_beginning(estimator, other):
        raise ValueError(
            f"{name}.merge takes estimators that began with the same call of partial_fit, which fixes kernels, "
            "landmarks and classes; these two did not. Copy an estimator after its first call (copy.deepcopy), and "
            "give each copy other samples."
        )
    if other._sums["later"]:
        added = _unpacked(estimator, other._sums["later"])
        if estimator._sums["later"]:
            added = _added(estimator, _unpacked(estimator, estimator._sums["later"]), added)
        estimator._sums = {**estimator._sums, "later": _packed(added)}
    return _sums_data(estimator)


def _same_beginning(one: Any, other: Any) -> bool:
    """Tell whether two fits have the same landmarks, classes and samples of their first call."""
    if one._used_views != other._used_views or one._known != other._known:
        return False
    if not np.array_equal(getattr(one, "classes_", ()), getattr(other, "classes_", ())):
        return False
    pairs = [
        (own[key], theirs[key])
        for own, theirs in zip(one._sums["first"], other._sums["first"], strict=False)
        for key in own
    ]
    mine, others = one._features._roots, other._features._roots
    if list(mine) != list(others) or len(one._sums["first"]) != len(other._sums["first"]):
        return False
    pairs += [(mine[name], others[name]) for name in mine]
    return all(np.array_equal(to_numpy(a), to_numpy(b)) for a, b in pairs)
