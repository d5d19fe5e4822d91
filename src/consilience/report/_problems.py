"""Problems in the data that a score does not show: rare classes, repeated views and samples, leaks, ids."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from scipy.stats import hypergeom

from ..evaluation._stored_samples import sample_keys
from ..views._blocks import some
from ..views.container import Views
from ._html import plural

RARE = 10  # samples of a class, below which its recall is hardly known
# scores of single columns: almost perfect, and the most that others may have then; and with a few errors of recording
LEAKS = ((0.98, 0.9), (0.93, 0.8))
_CHANCE = 1e-3  # of missing values that depend on the target, or of samples that are almost equal, over all tests
_MOST_DIMENSIONS = 20  # of samples that are almost equal
_FEWEST_GAPS, _FEWEST_SHARE = 5, 0.1  # missing values, and difference of their shares, that are told
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
        *(list(_repeated_samples(X)) or _similar_samples(X, rng)),
        *_informative_gaps(X, y, task),
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
    """Tell of samples that are equal in every view, or in one of many values."""
    numeric = [name for name in X.names if X.kind(name) in ("dense", "sparse")]
    for names in [list(X.names), *([name] for name in numeric if len(X.names) > 1)]:
        rows = np.flatnonzero(np.any([X.present(name) for name in names], axis=0))
        keys = sample_keys(X[rows][names]) if set(names) <= set(numeric) else None
        n_copies = 0 if keys is None else len(keys) - len(set(keys))
        # a few rounded values may be equal by chance, and views of few categories often are
        if n_copies <= max(1, 0.01 * len(rows)) or (
            len(names) < len(X.names)
            and not any(own.most_values() > len(rows) / 3 for own in _columns(X, names[0], rows))
        ):
            continue
        where = "every view" if len(names) == len(X.names) else f"view '{names[0]}'"
        yield f"{n_copies:,} samples repeat another sample in {where}. {_COPIES}"
        return


_COPIES = "Copies in the training and the test part of a fold make scores too high: remove them, or give them a group."


def _similar_samples(X: Views, rng: np.random.Generator) -> Iterator[str]:
    """Tell of pairs of samples that are far nearer to each other than to any other sample.

    In D dimensions, the distances d1 and d2 to the two nearest samples have P(d1/d2 < r) = r^D, and those to the second
    and third P(d2/d3 < r) = r^(2 D), whatever the density (Facco et al. 2017). The second ratio, which pairs do not
    change, gives D.
    """
    names = [name for name in X.names if X.kind(name) in ("dense", "sparse")]
    rows = np.flatnonzero(np.all([X.present(name) for name in names], axis=0)) if names else np.zeros(0, dtype=int)
    rows = np.sort(rng.permutation(rows)[:_MOST_ROWS])
    if len(rows) < 20:
        return
    K, n_columns = np.zeros((len(rows), len(rows))), 0
    for name in names:
        for own in _columns(X, name, rows):
            values = own.scaled()
            K, n_columns = K + values @ values.T, n_columns + values.shape[1]
    squares = K.diagonal()[:, None] + K.diagonal() - 2 * K
    np.fill_diagonal(squares, np.inf)
    nearest = np.sort(np.partition(squares, 2, axis=1)[:, :3], axis=1)
    nearest = np.sqrt(np.maximum(nearest, 0.0))[nearest[:, 0] > 1e-9 * max(n_columns, 1)]  # not exact copies
    if len(nearest) < 20:
        return
    middle = float(np.median(nearest[:, 2] / nearest[:, 1]))  # 1 for whole numbers, whose distances are often equal
    dimension = min(np.log(2) / (2 * np.log(max(middle, 1 + 1e-9))), _MOST_DIMENSIONS)
    n_similar = int(np.sum((nearest[:, 0] / nearest[:, 1]) ** dimension < _CHANCE / len(nearest)))
    if n_similar > max(1, 0.01 * len(rows)):
        yield f"{n_similar:,} samples are almost equal to another sample in every view. {_COPIES}"


# -- missing values
def _informative_gaps(X: Views, y: np.ndarray, task: str) -> Iterator[str]:
    """Tell of views and columns whose missing values depend on the target, by Fisher's exact test of each class."""
    labels, shown = y, {}
    if task == "regression":
        labels = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
        shown = {0: "the lowest third", 1: "the middle third", 2: "the highest third"}
    found: dict[str, tuple[float, str]] = {}
    n_tests = 0
    for what, rows, gaps in _gaps(X):
        values = np.unique(labels[rows])
        for label in values if len(values) > 1 else ():
            inside, n_tests = labels[rows] == label, n_tests + 1
            first, others = gaps[inside].mean(), gaps[~inside].mean()
            if abs(first - others) < _FEWEST_SHARE:
                continue
            hits, sizes = int(gaps[inside].sum()), (len(rows), int(inside.sum()), int(gaps.sum()))
            chance = 2 * min(hypergeom.sf(hits - 1, *sizes), hypergeom.cdf(hits, *sizes))
            if chance < found.get(what, (_CHANCE, ""))[0]:
                found[what] = chance, f"{first:.0%} of {shown.get(label, label)}, and in {others:.0%} of the others"
    told = [f"{what} is missing in {text}." for what, (chance, text) in found.items() if chance * n_tests < _CHANCE]
    yield from (f"{sentence} Models can predict from what is missing." for sentence in told[:5])


def _gaps(X: Views) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each view and column with gaps: its name, the samples that may have it, and where it is missing."""
    for name in X.names:
        there = X.present(name)
        rows, block = np.flatnonzero(there), X.block(name)
        tables = [(f"View '{name}'", np.arange(len(X)), ~there)]
        if isinstance(block, np.ndarray) and block.dtype.kind == "f":
            cells = np.isnan(block[rows])
            tables += [
                (f"Column {_column_name(X, name, int(place))} of view '{name}'", rows, cells[:, place])
                for place in np.flatnonzero(cells.any(axis=0))
            ]
        yield from (table for table in tables if min(table[2].sum(), (~table[2]).sum()) >= _FEWEST_GAPS)


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

    def scaled(self) -> np.ndarray:
        """Return the varying columns with mean 0 and variance 1."""
        values = self.values[:, self.varying]
        return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))

    def most_values(self) -> int:
        """Return the largest number of different values in a column."""
        return max((len(np.unique(column)) for column in self.values.T), default=0)

    def column_keys(self) -> Iterator[tuple[bytes, bool]]:
        """Yield a key for each varying column, equal for columns that are equal up to shift and scale.

        And whether the column has ten values or more: columns with fewer may be equal by chance.
        """
        scaled = np.round(self.scaled(), 6) + 0.0  # no negative zero
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
    for level, usual in LEAKS[: 1 if task == "regression" else 2]:
        leaks = sorted((row for row in scores if row[0] >= level), reverse=True)
        rest = [score for score, _, _ in scores if score < level]
        if leaks and len(leaks) <= max(1, 0.05 * len(scores)) and not (rest and max(rest) > usual):
            break
    else:
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
