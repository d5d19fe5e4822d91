"""Problems in the data that a score does not show: rare classes, repeated views and samples, leaks, ids."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..views._blocks import some
from ..views.container import Views
from ._html import plural

RARE = 10  # samples of a class, below which its recall is hardly known
LEAK, USUAL = 0.98, 0.9  # scores of single columns: almost perfect, and the most that others may have then
_MOST_ROWS = 2000  # for scores of single columns
_MOST_CELLS = 20_000_000  # of all columns together
_BLOCK = 256  # columns at a time
_NEIGHBORS = {1: 3.0, 2: 2.0}  # distance in sorted order -> weight
_NUMBER_NAME = re.compile(r"(^|[\W_])(id|ids|index|identifier|barcode|unnamed: ?\d+)$", re.IGNORECASE)


def find_problems(X: Views, y: np.ndarray, task: str, n_folds: int, random_state: int) -> list[str]:
    """Return sentences about problems in the data; empty if none is found."""
    rng = np.random.default_rng(random_state)
    return [
        *(_rare_classes(y, n_folds) if task == "classification" else ()),
        *_constant_views(X),
        *_repeated_views(X),
        *_repeated_samples(X),
        *_numbered_columns(X),
        *_leaks(X, y, task, rng),
    ]


# -- classes and samples
def _rare_classes(y: np.ndarray, n_folds: int) -> Iterator[str]:
    values, counts = np.unique(y, return_counts=True)
    rare = [f"{values[k]} ({counts[k]})" for k in np.argsort(counts, kind="stable") if counts[k] < RARE]
    if rare:
        yield (
            f"{plural(len(rare), 'class', 'classes')} {'has' if len(rare) == 1 else 'have'} fewer than {RARE} samples: "
            f"{some(rare, 5)}. Their recall is hardly known."
        )
    lost = [str(value) for value, count in zip(values, counts, strict=True) if count < n_folds]
    if lost:
        yield f"Of {some(lost, 5)}, not every fold has a sample to test. Use fewer folds, or merge classes."


def _repeated_samples(X: Views) -> Iterator[str]:
    """Tell of samples that are equal in every view: they may be in the training and the test part of a fold."""
    if any(X.kind(name) not in ("dense", "sparse") for name in X.names):
        return
    keys = [b""] * len(X)
    for name in X.names:
        keys = [key + b"|" + row for key, row in zip(keys, _row_values(X.block(name)), strict=True)]
    n_copies = len(keys) - len(set(keys))
    if n_copies > max(1, 0.01 * len(X)):  # a few rounded values may be equal by chance
        yield (
            f"{n_copies:,} samples repeat another sample in every view. "
            "Copies in the training and the test part of a fold make scores too high: remove them, or give them a "
            "group."
        )


def _row_values(block: Any) -> Iterator[bytes]:
    """Yield the values of each row; those of missing views are all NaN or empty."""
    if scipy.sparse.issparse(block):
        for start, stop in zip(block.indptr[:-1], block.indptr[1:], strict=True):
            yield block.indices[start:stop].tobytes() + block.data[start:stop].tobytes()
    else:
        for row in np.ascontiguousarray(block):
            yield row.tobytes()


# -- views and columns
def _constant_views(X: Views) -> Iterator[str]:
    for name in X.names:
        if X.kind(name) == "objects":
            values = [X[name][i] for i in np.flatnonzero(X.present(name))]
            constant = all(value == values[0] for value in values)
        elif X.kind(name) in ("dense", "sparse"):
            constant = not any(len(own.varying) for own in _columns(X, name, np.flatnonzero(X.present(name))))
        else:
            continue
        if constant:
            yield f"View '{name}' is constant: it has the same values in all samples, so it cannot predict."


def _repeated_views(X: Views) -> Iterator[str]:
    """Tell of views whose columns are all in another view, up to shift and scale, and of other repeated columns."""
    dense = [name for name in X.names if X.kind(name) in ("dense", "sparse")]
    for k, name in enumerate(dense):
        for other in dense[k + 1 :]:
            rows = np.flatnonzero(X.present(name) & X.present(other))
            if len(rows) < 3:
                continue
            first, second = (
                {key: rich for own in _columns(X, view, rows) for key, rich in own.column_keys()}
                for view in (name, other)
            )
            shared = len(first.keys() & second.keys())
            if shared and shared == len(first) == len(second):
                yield f"Views '{name}' and '{other}' have the same columns, up to shift and scale: one is enough."
            elif shared and shared in (len(first), len(second)):
                small, large = (name, other) if shared == len(first) else (other, name)
                yield f"All columns of view '{small}' are also in view '{large}', up to shift and scale."
            elif shared := sum(first[key] for key in first.keys() & second.keys()):
                yield f"Views '{name}' and '{other}' share {plural(shared, 'column')}, up to shift and scale."


class _Columns:
    """Some columns of a view: the position of the first, their values, and which of them vary."""

    def __init__(self, start: int, values: np.ndarray):
        self.start, self.values = start, values
        mean, spread = values.mean(axis=0), values.std(axis=0)
        self.varying = np.flatnonzero(spread > 1e-9 * np.maximum(np.abs(mean), 1e-300))

    def column_keys(self) -> Iterator[tuple[bytes, bool]]:
        """Yield a key for each varying column, equal for columns that are equal up to shift and scale.

        And whether the column has ten values or more: columns with fewer may be equal by chance.
        """
        values = self.values[:, self.varying]
        scaled = np.round((values - values.mean(axis=0)) / values.std(axis=0), 6) + 0.0  # no negative zero
        for column in np.ascontiguousarray(scaled.T):
            yield hashlib.blake2b(column.tobytes(), digest_size=16).digest(), len(np.unique(column)) >= 10


def _columns(X: Views, name: str, rows: np.ndarray) -> Iterator[_Columns]:
    """Yield the columns of a numeric view in blocks, for some samples; missing cells get the median of their column."""
    block: Any = X.block(name)
    block = block.tocsc() if scipy.sparse.issparse(block) else np.asarray(block)
    for start in range(0, block.shape[1], _BLOCK):
        part = block[:, start : start + _BLOCK]
        values = np.asarray(part.toarray() if scipy.sparse.issparse(part) else part, dtype=np.float64)[rows]
        if np.isnan(values).any():
            with np.errstate(all="ignore"):
                middle = np.array([np.median(v[~np.isnan(v)]) if (~np.isnan(v)).any() else 0.0 for v in values.T])
            values = np.where(np.isnan(values), middle, values)
        yield _Columns(start, values)


def _column_name(X: Views, name: str, place: int) -> str:
    names: Sequence[Any] = X.feature_names.get(name, ())
    return f"'{names[place]}'" if place < len(names) else f"{place}"


def _numbered_columns(X: Views) -> Iterator[str]:
    """Tell of columns that number the samples: whole numbers, each once, in order or without gaps."""
    for name in X.names:
        rows = np.flatnonzero(X.present(name))
        if X.kind(name) != "dense" or len(rows) < 20:
            continue
        found = []
        for own in _columns(X, name, rows):
            for place in own.varying.tolist():
                values = own.values[:, place]
                if not (np.floor(values) == values).all() or len(np.unique(values)) < len(values):
                    continue
                steps = np.diff(values)
                label = _column_name(X, name, own.start + place)
                in_order = (steps > 0).all() or (steps < 0).all()
                without_gaps = np.ptp(values) == len(values) - 1
                if in_order or without_gaps or _NUMBER_NAME.search(label.strip("'")):
                    found.append(label)
        if found:
            yield (
                f"{plural(len(found), 'column')} of view '{name}' {'looks' if len(found) == 1 else 'look'} like the "
                f"number or name of a sample: {some(found, 5)}. Leave {'it' if len(found) == 1 else 'them'} out, or "
                "read it as the id."
            )


# -- leaks
def _leaks(X: Views, y: np.ndarray, task: str, rng: np.random.Generator) -> Iterator[str]:
    """Tell of columns that predict the target almost perfectly where other columns do not."""
    dense = [name for name in X.names if X.kind(name) in ("dense", "sparse")]
    n_columns = sum(X[name].shape[1] for name in dense)
    most = int(np.clip(_MOST_CELLS // max(n_columns, 1), 50, _MOST_ROWS))
    scores: list[tuple[float, str, int]] = []
    targets: dict[str, np.ndarray] = {}
    for name in dense:
        rows = rng.permutation(np.flatnonzero(X.present(name)))[:most]  # in random order, which decides between ties
        targets[name] = own_targets = _targets(y[rows], task)
        if len(rows) < 20 or own_targets.std(axis=0).max() == 0:
            continue
        for own in _columns(X, name, rows):
            orders = np.argsort(own.values[:, own.varying], axis=0, kind="stable").T
            found = _neighbor_scores(own_targets, orders, task)
            scores += [(score, name, own.start + k) for score, k in zip(found, own.varying.tolist(), strict=True)]
    leaks = sorted((row for row in scores if row[0] >= LEAK), reverse=True)
    rest = [score for score, _, _ in scores if score < LEAK]
    if not leaks or len(leaks) > max(1, 0.05 * len(scores)) or (rest and max(rest) > USUAL):
        return
    leaks = [row for row in leaks if not _by_chance(targets[row[1]], row[0], len(scores), task, rng)]
    for score, name, place in leaks[:5]:
        best = f"; no other column has more than {max(rest):.2f}" if rest else ""
        yield (
            f"Column {_column_name(X, name, place)} of view '{name}' predicts the target by itself ({_WORDS[task]} "
            f"{score:.2f}{best}). Check that it is known before the target."
        )


_WORDS = {"classification": "balanced accuracy", "regression": "R²"}


def _targets(y: np.ndarray, task: str) -> np.ndarray:
    """Return targets as (n, P): one column for regression, an indicator of each class otherwise."""
    if task == "regression":
        return np.asarray(y, dtype=np.float64)[:, None]
    return np.asarray(y[:, None] == np.unique(y), dtype=np.float64)


def _neighbor_scores(targets: np.ndarray, orders: np.ndarray, task: str) -> list[float]:
    """Return how well neighbors in the order of a column predict the target of each sample, for each column (c, n).

    The prediction is the weighted mean of the targets of the two neighbors on each side. The score is the balanced
    accuracy, or R² for regression.
    """
    step = max(1, _BLOCK * 10 // targets.shape[1])  # many classes need more memory
    parts = [_scores_of_sorted(targets[orders[k : k + step]], task) for k in range(0, len(orders), step)]
    return np.concatenate(parts).tolist() if parts else []


def _scores_of_sorted(targets: np.ndarray, task: str) -> np.ndarray:
    n = targets.shape[1]
    predicted, total = np.zeros_like(targets), np.zeros((1, n, 1))
    for distance, weight in _NEIGHBORS.items():
        predicted[:, distance:] += weight * targets[:, :-distance]
        predicted[:, :-distance] += weight * targets[:, distance:]
        total[:, distance:] += weight
        total[:, :-distance] += weight
    if task == "regression":
        errors = ((predicted / total - targets) ** 2).sum(axis=(1, 2))
        return np.asarray(1 - errors / (targets.var(axis=1).sum(axis=1) * n))
    own = (predicted * targets).sum(axis=2)
    others = np.where(targets > 0, -np.inf, predicted).max(axis=2)
    correct = (own > others) + 0.5 * (own == others)
    counts = targets.sum(axis=1)
    recalls = (targets * correct[:, :, None]).sum(axis=1) / np.maximum(counts, 1)
    n_classes = (counts > 0).sum(axis=1)
    # two samples at each border between classes have a tie, even if the classes are separated
    return np.asarray(np.minimum(recalls.sum(axis=1) / n_classes + (n_classes - 1) / n, 1.0))


def _by_chance(targets: np.ndarray, score: float, n_columns: int, task: str, rng: np.random.Generator) -> bool:
    """Tell whether the best of as many columns of noise, which order the samples at random, reaches a score.

    In one of 20 trials or more. Of more than 200 samples, noise does not reach the scores of leaks.
    """
    if len(targets) > 200:
        return False
    left = min(20 * n_columns, 50_000)
    while left > 0:
        orders = np.array([rng.permutation(len(targets)) for _ in range(min(_BLOCK, left))])
        if max(_neighbor_scores(targets, orders, task)) >= score:
            return True
        left -= len(orders)
    return False
