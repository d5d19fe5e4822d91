"""Validation of what estimators read: samples compared with those at fit, labels, targets, weights."""

import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._backend import check_on_host, is_device_array, namespace
from . import _blocks, _reading
from ._columns import column_means, divide_by_names, match_columns, read_frames, tell_new_categories
from ._construction import is_mapping
from ._frames import NO_LEVELS
from ._gaps import fill_gaps
from ._samples import in_order_of
from .container import Views
from .conversion import as_views
from .row_blocks import RowBlocks

_LARGEST = float(np.sqrt(np.finfo(np.float64).max)) * 1e-6  # so that a million million squares can be added


# -- reading data
def read_views_to_fit(estimator: Any, X: Any, sample_weight: Any = None) -> Views:
    """Validate training samples, store their views on the estimator, and leave out views that no sample has.

    Samples of weight 0 are returned, but nothing is learned from them, and their values may be of any size.
    """
    X = _read(estimator, X)
    _check_device(estimator, X)
    namespace(*(X.block(name) for name in X.names if X.kind(name) == "dense"))  # refuses views of several libraries
    X = _with_grams(estimator, X)._numbered()
    counted = _counted(X, sample_weight)
    if getattr(estimator, "_fills_gaps", False):
        filled = fill_gaps(estimator, counted, fitting=True)
        X, counted = filled if counted is X else fill_gaps(estimator, X, fitting=False), filled
    for name in X.names:
        _check_numbers(name, counted)
    store_views(estimator, counted)
    estimator._used_views = tuple(name for name in X.names if counted.present(name).any())
    return X if estimator._used_views == X.names else X[list(estimator._used_views)]


def _counted(X: Views, sample_weight: Any) -> Views:
    """Return the samples that have a weight above 0, or all of them if none has."""
    weights = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X), required=False)
    return X if weights.all() or not weights.any() else X[weights > 0]


def read_views_to_learn(estimator: Any, X: Any, fresh: bool, grams: bool = False, sample_weight: Any = None) -> Views:
    """Validate the next samples of a stream: views by name, missing where not given; new ones may appear at any time.

    With `grams`, square arrays are Gram matrices where the estimator's kernel takes them. Values that are prepared
    first are validated after it.
    """
    X = _read(estimator, X) if fresh else read_known(estimator, X)
    _check_device(estimator, X)
    if grams:
        X = _with_grams(estimator, X)._numbered()
    if not fresh:
        X = _as_before(estimator, X)
        X = X.align((*estimator.view_names_in_, *(name for name in X.names if name not in estimator.view_names_in_)))
    if not _prepares(estimator):
        check_numbers(_counted(X, sample_weight))
    return X


def _prepares(estimator: Any) -> bool:
    return getattr(estimator, "prepare", None) is not None


def check_numbers(X: Views) -> Views:
    """Return views whose numbers are finite and not too large; raise for others."""
    for name in X.names:
        _check_numbers(name, X)
    return X


def _check_device(estimator: Any, X: Views) -> None:
    """Refuse arrays of other libraries than NumPy where an estimator works on the CPU; nothing is copied silently."""
    if getattr(estimator, "_cpu_only", False):
        check_on_host(type(estimator).__name__, *(X.block(name) for name in X.names))


def _check_numbers(name: str, X: Views) -> None:
    """Refuse NaN, infinity, and values whose squares and sums may overflow; two quick passes suffice for valid data."""
    block = X.block(name)
    if X.kind(name) not in ("dense", "sparse") or is_device_array(block):
        X.check_finite([name])
        return
    values = block.data if sp.issparse(block) else np.asarray(block)
    limit = float(np.sqrt(np.finfo(values.dtype).max)) * 1e-6  # so that a million million squares can be added
    if not values.size or (values.max() <= limit and values.min() >= -limit):  # neither holds of NaN
        return
    X.check_finite([name])
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if largest > limit:
        remedy = "Scale it" + (", or give float64 data." if values.dtype == np.float32 else ".")
        raise ValueError(
            f"View '{name}' has values up to {largest:.3g}; above {limit:.3g} their squares and sums can overflow. "
            f"{remedy}"
        )


def read_views_to_predict(estimator: Any, X: Any) -> Views:
    """Validate new samples: views by name, missing where not given, with the columns of the training samples."""
    check_is_fitted(estimator, "view_names_in_")
    X = read_as_fitted(estimator, X)
    _check_device(estimator, X)
    used = [name for name in X.names if name in estimator._used_views]
    if not used:
        raise ValueError(
            f"{type(estimator).__name__} learned from the views {_blocks.quoted(estimator._used_views)}; the samples "
            f"have only {_blocks.quoted(X.names)}, which every training sample lacked. Give one of the other views."
        )
    bare = np.flatnonzero(~np.any([X.present(name) for name in used], axis=0))
    if len(bare):
        raise ValueError(
            f"{_blocks.rows_text(bare, X.sample_names)} none of the views that {type(estimator).__name__} learned "
            f"from, {_blocks.quoted(estimator._used_views)}. Leave such samples out, or give one of these views."
        )
    if getattr(estimator, "_fills_gaps", False):
        X = fill_gaps(estimator, X, fitting=False)
    for name in () if _prepares(estimator) else used:
        # a plain block of kernel values is checked later, when its columns are known
        if not (estimator._view_is_gram(name) and X.kind(name) in ("dense", "sparse")):
            _check_numbers(name, X)
    return X[used].align(estimator._used_views)


def _read(estimator: Any, X: Any) -> Views:
    if isinstance(X, RowBlocks):
        raise TypeError(
            f"{type(estimator).__name__} takes samples in memory; got {X!r}. Give it some of them, such as the first "
            "block, or use an estimator that learns from blocks: see `RowBlocks`."
        )
    divided = isinstance(X, Views) or is_mapping(X)
    X = as_views(X, None if divided else getattr(estimator, "views", None))
    if len(X) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def read_known(estimator: Any, X: Any) -> Views:
    """Read new samples; a plain data frame is divided by the column names that the estimator knows."""
    if not isinstance(X, Views) and not is_mapping(X):
        names = {view: columns for view, (_, _, columns) in estimator._known.items()}
        parts = divide_by_names(X, names)
        if parts is not None and not parts:
            known = [column for columns in names.values() for column in columns or ()]
            raise ValueError(
                f"{type(estimator).__name__} was fitted on the columns {_blocks.some(known, 5)}; the data frame has "
                f"none of them, only {_blocks.some(list(map(str, X.columns)))}."
            )
        X = X if parts is None else parts
    if not isinstance(X, Views) and is_mapping(X):
        X = read_frames(X, vars(estimator).get("_categories", {}))
    return named_as_before(estimator, _read(estimator, X))


def read_as_fitted(estimator: Any, X: Any) -> Views:
    """Read new samples: views by name, with the columns of the training samples in their order."""
    X = read_known(estimator, X)
    expected = estimator.view_names_in_
    unknown = [name for name in X.names if name not in expected]
    if unknown:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on the views {_blocks.quoted(expected)}; it does not know "
            f"{_blocks.quoted(unknown)}. Give views by the names they had at fit."
        )
    return _as_before(estimator, X)


def read_to_score(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Views, Any, Any]:
    """Read new samples, and bring their targets and weights into the order of their names."""
    check_is_fitted(estimator, "view_names_in_")
    X = read_as_fitted(estimator, X)
    weights = in_order_of(X, sample_weight, "sample_weight")
    return X, in_order_of(X, y, "y"), weights


def _with_grams(estimator: Any, X: Views) -> Views:
    """Turn square arrays into Gram matrices where the kernel takes them, so that rows can be selected."""
    plain = [name for name in X.names if X.kind(name) in ("dense", "sparse") and estimator._view_is_gram(name)]
    return Views(X, precomputed=plain) if plain else X


def store_views(estimator: Any, X: Views) -> None:
    """Store the views at fit on the estimator, and the means of columns that have names."""
    estimator._known, estimator._categories = {}, {}
    remember(estimator, X)
    estimator._column_means = {
        name: column_means(X.block(name), X.present(name))
        for name in X.feature_names
        if X.kind(name) in ("dense", "sparse") and X.present(name).any()
    }


def store_means(estimator: Any, X: Views, totals: dict[str, tuple[Any, int]]) -> None:
    """Store the means of columns that have names over all blocks so far; `totals` keeps their sums."""
    for name in X.feature_names:
        count = int(X.present(name).sum())
        if X.kind(name) in ("dense", "sparse") and count:
            total, before = totals.get(name, (0.0, 0))
            total = total + count * column_means(X.block(name), X.present(name))
            totals[name] = total, before + count
    estimator._column_means = {name: total / count for name, (total, count) in totals.items()}


def is_indicator(y: Any) -> bool:
    """Tell whether targets are an indicator of several labels per sample."""
    return y is not None and np.asarray(y).ndim == 2 and np.asarray(y).shape[1] > 1


def remember(estimator: Any, X: Views) -> None:
    """Store what new samples are compared with: the views, their kinds, columns, column names and categories."""
    before = estimator._known
    estimator._categories = {**X.categories, **vars(estimator).get("_categories", {})}
    estimator.view_names_in_ = estimator._used_views = X.names
    seen = {}
    for name in X.names:
        kind = _kind(X, name)
        names = X.feature_names.get(name) or (before[name][2] if name in before else None)
        if kind != "missing":
            seen[name] = (kind, _blocks.width(X.block(name)), names)
    estimator._known = {**before, **seen}
    vars(estimator).pop("n_features_in_", None)
    if len(X.names) == 1 and seen:  # several views are not columns of one array, which tools would give
        estimator.n_features_in_ = seen[X.names[0]][1]


def named_as_before(estimator: Any, X: Views) -> Views:
    """Name a plain table after the view of an estimator that knows only one."""
    known = estimator.view_names_in_
    return X.renamed({"view0": known[0]}) if X.names == ("view0",) and len(known) == 1 else X


def _kind(X: Views, name: str) -> str:
    """Return what a view holds; a sequence of None only holds nothing."""
    kind = X.kind(name)
    if kind == "objects" and not X.present(name).any():
        return "missing"
    return "numbers" if kind in ("dense", "sparse") else kind


def _as_before(estimator: Any, X: Views) -> Views:
    """Return views with the columns that they had at fit, by name; refuse other kinds and numbers of columns."""
    who = type(estimator).__name__
    fill = getattr(estimator, "missing_columns", None)  # streams have no such parameter
    means = getattr(estimator, "_column_means", {}) if fill == "fill" else {}
    blocks, columns, categories = {}, {}, {}
    for name in X.names:
        kind = _kind(X, name)
        if name not in estimator._known or kind == "missing" or estimator._view_is_gram(name):
            continue
        before, width_before, names_before = estimator._known[name]
        known = vars(estimator).get("_categories", {}).get(name, NO_LEVELS)
        names, block = X.feature_names.get(name), X.block(name)
        other = names if names_before is not None and names != names_before else None
        if other is not None and before == "numbers" and kind in ("numbers", "objects"):
            own = X.categories.get(name, NO_LEVELS)
            block = match_columns(
                name, block, (other, own), (names_before, known), means.get(name), can_fill=fill is not None
            )
            kind = kind if block is X.block(name) else "numbers"
        width = _blocks.width(block)
        if kind != before:
            raise ValueError(f"View '{name}' holds {kind}, but held {before} when {who} was fitted.")
        if other is not None and kind == "objects":
            raise ValueError(
                f"View '{name}' is the column '{other[0]}', but was '{names_before[0]}' when {who} was fitted. Give "
                "the same column."
            )
        if other is not None:
            blocks[name], columns[name], categories[name] = block, names_before, known
        elif names is None and names_before is not None and width == width_before and kind == "numbers":
            warnings.warn(
                f"View '{name}' has no column names, but had some when {who} was fitted; its columns are taken by "
                "position.",
                stacklevel=2,
            )
            columns[name], categories[name] = names_before, known  # so that a later step does not warn again
        elif width != width_before:
            raise ValueError(
                f"View '{name}' of X has {width} features, but {who} is expecting {width_before} features as input. "
                "Give the same columns as at fit."
            )
        if known:
            tell_new_categories(name, block, names_before, known, vars(estimator).get("_column_means", {}).get(name))
    return X._replaced(blocks, columns, categories) if columns else X


# -- reading labels, targets, weights
@dataclass(frozen=True)
class Labels:
    """Class labels, as positions in the sorted classes."""

    classes: np.ndarray
    codes: np.ndarray  # position in classes, -1 where unlabeled
    labeled: np.ndarray  # booleans

    def signs(self, rows: Any = slice(None)) -> np.ndarray:
        """Return targets of ±1, 0 where unlabeled: (n, 1) for one or two classes, (n, P) one against the rest."""
        P, codes = len(self.classes), self.codes[rows]
        if P <= 2:
            column = np.where(codes == P - 1, 1.0, -1.0)[:, None]
        else:
            column = np.where(codes[:, None] == np.arange(P), 1.0, -1.0)
        column[~self.labeled[rows]] = 0
        return column


def read_labels(
    y: Any, n: int, unlabeled: Any = None, classes: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Labels:
    """Validate class labels of any type; missing values, and those equal to `unlabeled`, mark unlabeled samples.

    With `classes` the labels must be among these, and there may be none at all. Samples of weight 0 have no label,
    unless no other sample has one.
    """
    values = _read_column(y, n)
    missing = _missing_labels(values, unlabeled)
    if missing.all() and classes is None:
        raise ValueError("y has no label at all: every value is missing. Give labels for some samples.")
    if weights is not None and not (missing | (weights == 0)).all():
        missing = missing | (weights == 0)
    known = _plain_labels(values[~missing])
    if len(known):
        check_classification_targets(known)
    found, codes_known = np.unique(known, return_inverse=True)
    if classes is not None:
        unknown = [c for c in found.tolist() if c not in classes]
        if unknown:
            raise ValueError(
                f"The class {unknown[0]!r} was not announced; the classes are {_blocks.quoted(classes)}. Give all "
                "classes by `classes=` at the first call of partial_fit."
            )
        codes_known = np.searchsorted(classes, found)[codes_known] if len(found) else codes_known
        found = classes
    codes = np.full(n, -1)
    codes[~missing] = codes_known
    return Labels(found, codes, ~missing)


def read_stream_labels(
    y: Any, n: int, known: np.ndarray | None, unlabeled: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples of a chunk have a label, and these labels; they must be of the type of the known ones."""
    values = _read_column(y, n)
    missing = _missing_labels(values, unlabeled)
    labels = values if not missing.any() else values[~missing]
    if labels.dtype == object:
        labels = _plain_labels(labels)
    if len(labels) and labels.dtype.kind not in "iub":
        check_classification_targets(labels)
    if known is not None and len(known) and len(labels) and _family(labels) != _family(known):
        raise TypeError(
            f"The labels of this chunk are {_family(labels)}, those before were {_family(known)}: {labels[0]!r} and "
            f"{known[0]!r}. Give labels of one type."
        )
    return ~missing, labels


def _family(labels: np.ndarray) -> str:
    return {"U": "strings", "S": "bytes", "b": "booleans"}.get(labels.dtype.kind, "numbers")


def labeled_rows(y: Any, unlabeled: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples have a label or a target, and these labels or targets."""
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] > 1:
        Y, labeled = read_targets(y, shape[0])
        return labeled, Y[labeled]
    values = _read_column(y, shape[0])
    missing = _missing_labels(values, unlabeled)
    return ~missing, _plain_labels(values[~missing])


def _missing_labels(values: np.ndarray, unlabeled: Any) -> np.ndarray:
    missing = _missing(values)
    if unlabeled is not None:
        missing |= np.array([not gone and x == unlabeled for x, gone in zip(values, missing, strict=True)], dtype=bool)
    return missing


def _plain_labels(known: np.ndarray) -> np.ndarray:
    """Return labels as an array of their own type; strings, numbers and booleans do not mix."""
    if known.dtype != object:
        return known
    kinds = {next((k for k in (str, bool, numbers.Real, bytes) if isinstance(x, k)), type(x)) for x in known.tolist()}
    if len(kinds - {numbers.Real}) > 1 or (len(kinds) > 1 and numbers.Real in kinds and bool not in kinds):
        names = sorted(kind.__name__ for kind in kinds)
        raise TypeError(f"The labels in y are of types that cannot be sorted together: {', '.join(names)}. Use one.")
    if kinds and not kinds <= {str, bool, numbers.Real, bytes}:
        raise TypeError(f"Labels are strings, numbers or booleans; y holds {kinds.pop().__name__}.")
    return np.array(known.tolist())


def read_targets(
    y: Any, n: int, *, partial: bool = False, required: bool = True, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return regression targets as (n, P) float64, and which samples have them; a row of NaN only has none.

    With `partial` a sample may have some of its targets. Unless `required`, there may be no target at all. Targets of
    samples of weight 0 are 0, whatever they were.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    values = y.to_numpy() if hasattr(y, "to_numpy") and not hasattr(y, "to_pylist") else y
    values = np.asarray(values.to_pylist() if hasattr(values, "to_pylist") else values)
    if values.dtype == object:
        flat = [np.nan if _reading.is_missing(x) else x for x in values.ravel()]
        values = np.array(flat, dtype=object).reshape(values.shape)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers for regression.")
    try:
        Y = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must be numbers for regression: {error}.") from error
    if Y.ndim not in (1, 2) or Y.shape[0] != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n}, y has shape {Y.shape}."
        )
    if Y.ndim == 2 and Y.shape[1] == 0:
        raise ValueError(f"y has no outputs: its shape is {Y.shape}. Give at least one column of targets.")
    Y = Y.reshape(n, -1)
    if weights is not None:
        Y[weights == 0] = 0.0
    if np.isinf(Y).any():
        raise ValueError("Input y contains infinity or a value too large for float64.")
    largest = float(np.nanmax(np.abs(Y), initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"y has values up to {largest:.3g}; above {_LARGEST:.3g} their squares and sums can overflow. Scale y."
        )
    labeled = np.asarray(~np.isnan(Y).any(axis=1))
    some = np.asarray(~np.isnan(Y).all(axis=1))
    labeled = some if partial else labeled
    part = np.flatnonzero(~labeled & some)
    if len(part):
        raise ValueError(f"Row {part[0]} of y is NaN in some outputs only. Give all outputs of a sample, or none.")
    if required and not labeled.any():
        raise ValueError("y has no target at all: every value is NaN. Give targets for some samples.")
    return Y, labeled


def read_weights(sample_weight: Any, n: int, *, required: bool = True) -> np.ndarray:
    """Validate sample weights: (n,), finite, at least 0, not all 0 if one is `required`; ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per sample; got {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any() or (required and not (weights > 0).any()):
        raise ValueError(
            "sample_weight must be finite and at least 0, and not zero for every sample (a zero weight "
            "leaves a sample out)."
        )
    return weights


def read_groups(groups: Any, n: int) -> Any:
    """Validate the groups of the samples: one value for each, and none missing."""
    if groups is None:
        return None
    groups = groups.to_pylist() if hasattr(groups, "to_pylist") else groups
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"`groups` must have one value for each of the {n} samples; got {values.shape}.")
    missing = sum(map(_reading.is_missing, groups))
    if missing:
        raise ValueError(
            f"`groups` is missing (NaN, None or NA) for {missing} of {n} samples. Give each sample a group, such as "
            "its name where it is alone, or leave these samples out."
        )
    return values


def class_weights(class_weight: Any, labels: Labels, s: np.ndarray) -> np.ndarray:
    """Return the weight of each sample's class: None, "balanced" or a dict, as scikit-learn reads them; 1 unlabeled.

    "Balanced" counts samples by their weights `s`, so that a weight of 2 equals the sample given twice.
    """
    known = labels.classes[labels.codes[labels.labeled]]
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(labels.codes[labels.labeled], weights=s[labels.labeled], minlength=len(labels.classes))
        total = counts.sum() / np.count_nonzero(counts) if counts.any() else 1.0
        by_class = np.divide(total, counts, out=np.ones_like(counts), where=counts > 0)
    else:
        by_class = compute_class_weight(class_weight, classes=labels.classes, y=known)
    if not (np.isfinite(by_class).all() and (by_class >= 0).all()):
        raise ValueError(f"`class_weight` must be finite and at least 0 for every class; got {class_weight!r}.")
    return np.where(labels.labeled, by_class[labels.codes], 1.0)


def _read_column(y: Any, n: int) -> np.ndarray:
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if hasattr(y, "to_pylist"):  # Arrow
        y = y.to_pylist()
    elif hasattr(y, "isna") and hasattr(y, "to_numpy"):  # pandas: whole numbers with gaps would become floats
        y = y.to_numpy() if y.dtype.kind in "fc" or not y.isna().any() else y.to_numpy(dtype=object)
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, (list, tuple)) and len({type(x) for x in y}) > 1:  # NumPy would make one type of them
        column = np.empty(len(y), dtype=object)
        column[:] = y
        y = column
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is read as y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y must be 1d, one label per sample; got shape {values.shape}.")
    if len(values) != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n}, y has {len(values)}.")
    return values


def _missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            raise ValueError("Input y contains infinity or a value too large for its type.")
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.array([_reading.is_missing(x) for x in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)
