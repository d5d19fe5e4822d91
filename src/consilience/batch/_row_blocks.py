"""Training samples that are read block by block: what a first pass finds out, and the rows of every later pass.

The first pass finds the views, the classes and their weights, and the samples from which the parameters of kernels and
the landmarks are taken. Nothing is kept whose size grows with the number of samples.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._backend import is_device_array
from .._progress import report_progress
from ..kernels.by_view import views_of_terms
from ..solvers.design import BLOCK, DEVICE_BLOCK
from ..views.container import Views
from ..views.row_blocks import RowBlocks, RowSample, naming_block, sample_size
from ..views.validation import (
    Labels,
    class_weights,
    is_indicator,
    read_labels,
    read_stream_labels,
    read_targets,
    read_views_to_learn,
    read_views_to_predict,
    read_weights,
    remember,
    store_means,
)
from ._terms import terms_of

TrainingRows = tuple[Views, np.ndarray, np.ndarray, np.ndarray]  # views, s, u and Y of rows that follow one another


@dataclass
class Survey:
    """What a pass over all blocks has found out."""

    n: int = 0  # samples
    n_used: int = 0  # samples that take part
    l: int = 0  # samples with a target
    n_outputs: int = 0
    classes: np.ndarray | None = None
    by_class: np.ndarray | None = None  # weights of the classes
    used_views: tuple[str, ...] = ()  # those that some sample which takes part has


class BlockReader:
    """Reads blocks as the training samples of one estimator.

    Parameters
    ----------
    estimator : estimator
        It gets the views, and the classes.
    blocks : RowBlocks
        The samples.
    use_unlabeled : bool
        Whether samples without a target take part.
    labeled_only : bool
        Whether samples without a target do not even determine the parameters of kernels.
    """

    def __init__(self, estimator: Any, blocks: RowBlocks, *, use_unlabeled: bool, labeled_only: bool):
        self.estimator, self.blocks, self.name = estimator, blocks, blocks.name
        self.use_unlabeled, self.labeled_only = use_unlabeled, labeled_only
        self.classification, self.indicator = is_classifier(estimator), False
        self.is_part = False  # whether the blocks are one partition, read by a worker
        self.found = Survey()
        self.counts: dict[Any, float] = {}  # weight of each class
        self.means: dict[str, tuple[Any, int]] = {}  # sums of the columns that have names, and their numbers of rows

    def survey(self, seed: int, n_components: Callable[[Any, int], int]) -> tuple[RowSample, RowSample]:
        """Pass over all blocks; return samples for the parameters of kernels and for landmarks.

        `n_components` returns the number of landmarks of the estimator for a number of samples.
        """
        if self.blocks.partitions is None:
            samples = self.read_all(seed, n_components, 0, self.blocks.n_samples or 0)
        else:
            samples = survey_partitions(self, seed, n_components)
        if not self.found.l:
            raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
        self._weigh_classes(self.counts)
        return samples

    def read_all(
        self,
        seed: int,
        n_components: Callable[[Any, int], int],
        first: int,
        n: int,
        *,
        of: tuple[float, float] = (0.0, 0.0),
    ) -> tuple[RowSample, RowSample]:
        """Pass over the blocks, whose first row is number `first` of n; return the two samples of their rows.

        `of` are the numbers of rows from which the whole samples are taken, where the blocks are a part of them. Then
        the samples keep their share alone.
        """
        for number, (start, X, y, s) in enumerate(self._first_pass(), start=1):
            report_progress(number, None, unit="block")
            with naming_block(self._place(number - 1)):
                labeled = self._count_targets(y, s, self.counts)
            kept = s > 0
            weighted = kept & labeled if self.labeled_only else kept
            used = kept if self.use_unlabeled else kept & labeled
            if number == 1:
                size = sample_size(X, n_components(self.estimator, n))
                small = sample_size(X)
                shares = [min(own / count, 1.0) if count else 1.0 for own, count in zip((small, size), of, strict=True)]
                samples = RowSample(small, 0, shares[0]), RowSample(size, seed, shares[1])
            for sample, rows in zip(samples, (weighted, used), strict=True):
                here = np.flatnonzero(rows)
                sample.add(X if len(here) == len(X) else X[here], first + start + here)
            self.found.n, self.found.l = start + len(X), self.found.l + int((kept & labeled).sum())
            self.found.n_used += int(used.sum())
        return samples

    def _first_pass(self) -> Iterator[tuple[int, Views, Any, np.ndarray]]:
        """Read blocks as those of a stream: a view may appear in any of them."""
        start = 0
        for number, block in enumerate(self.blocks):
            with naming_block(self._place(number)):
                X = read_views_to_learn(self.estimator, block.X, fresh=not start)
            if not start:
                self.estimator._known, self.estimator._categories = {}, {}
            remember(self.estimator, X)
            s = read_weights(block.sample_weight, len(X), required=False)
            store_means(self.estimator, X if s.all() else X[s > 0], self.means)
            self._check_target(block.y)
            if not start:
                self._read_kind(block.y)
            yield start, X, block.y, s
            start += len(X)
        if not start:
            raise ValueError(f"{self.name[0].upper()}{self.name[1:]} have no samples.")

    def _place(self, number: int) -> str:
        """Return what messages call a block; a worker knows one partition, and not its number."""
        return f"A partition of {self.name}" if self.is_part else f"Block {number} of {self.name}"

    def _check_target(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self.estimator).__name__} needs targets, and {self.name} have none. Let blocks be "
                "(X, y), or give `target=` to read_blocks."
            )

    def _read_kind(self, y: Any) -> None:
        """Find out what the targets are, by the first block."""
        if self.classification:
            self.indicator = self.estimator._multi_label and is_indicator(y)
            self.estimator._indicator = self.indicator
        else:
            self.estimator._one_output = np.asarray(y).ndim == 1

    def _count_targets(self, y: Any, s: np.ndarray, counts: dict[Any, float]) -> np.ndarray:
        """Return which rows have a target; count the samples of each class by their weights."""
        if not self.classification or self.indicator:
            Y, labeled = read_targets(y, len(s), required=False)
            if self.found.n_outputs not in (0, Y.shape[1]):
                raise ValueError(
                    f"A block of {self.name} has {Y.shape[1]} targets for each sample; the first one has "
                    f"{self.found.n_outputs}."
                )
            self.found.n_outputs = Y.shape[1]
            return labeled
        known = np.array(list(counts)) if counts else None
        labeled, labels = read_stream_labels(y, len(s), known, self.estimator.unlabeled)
        for label in np.unique(labels):
            own = float(s[labeled][labels == label].sum())
            counts[label.item()] = counts.get(label.item(), 0.0) + own
        return labeled

    def _weigh_classes(self, counts: dict[Any, float]) -> None:
        if not self.classification:
            return
        if self.indicator:
            if self.estimator.class_weight is not None:
                raise ValueError("`class_weight` is for one class per sample; y is an indicator of several labels.")
            self.estimator.classes_ = np.arange(self.found.n_outputs)
            return
        classes = np.unique(np.array(list(counts)))
        weights = np.array([counts[label] for label in classes.tolist()])
        each = Labels(classes, np.arange(len(classes)), np.ones(len(classes), dtype=bool))
        self.estimator.classes_ = self.found.classes = classes
        self.found.by_class = class_weights(self.estimator.class_weight, each, weights)
        self.found.n_outputs = each.signs().shape[1]

    def of_part(self, block: Any, before: dict[int, tuple[float, float]] | None = None) -> "BlockReader":
        """Return a reader of one block only, as a worker reads it; `before` has the sums of its first sample."""
        own = copy(self)
        own.estimator, own.found = copy(self.estimator), copy(self.found)
        own.counts, own.means, own.is_part = {}, {}, True
        own.blocks = RowBlocks(lambda: iter([] if block is None else [block]), name=self.name)
        own.blocks._before.sums.update(before or {})
        return own

    def to_send(self) -> "BlockReader":
        """Return what workers need of the reader: not the samples, and not what an earlier fit has stored."""
        own = copy(self)
        own.blocks, own.estimator = None, copy(self.estimator)  # type: ignore[assignment]
        for name in ("_features", "coef_", "dual_coef_", "X_fit_", "support_", "solution_"):
            vars(own.estimator).pop(name, None)
        return own

    def rows(self) -> Iterator[TrainingRows]:
        """Start a pass over the rows that take part."""
        start = 0
        for number, block in enumerate(self.blocks, start=1):
            report_progress(number, None, unit="block")
            X = read_views_to_predict(self.estimator, block.X)
            s = read_weights(block.sample_weight, len(X), required=False)
            Y, labeled, u = self._targets(block.y, s)
            labeled = labeled & (u > 0)
            used = (s > 0) & (labeled | self.use_unlabeled)
            start += len(X)
            if not used.any():
                continue
            u, Y = np.where(labeled, u, 0.0), np.where(labeled[:, None], Y, 0.0)
            if not used.all():
                here = np.flatnonzero(used)
                X, s, u, Y = X[here], s[here], u[here], Y[here]
            yield X, s, u, Y

    def _targets(self, y: Any, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Y, which rows have a target, and the weights of the losses."""
        if not self.classification or self.indicator:
            Y, labeled = read_targets(y, len(s), required=False)
            return (2 * Y - 1 if self.indicator else Y), labeled, s
        labels = read_labels(y, len(s), self.estimator.unlabeled, self.found.classes)
        weights = np.ones(len(s))
        assert self.found.by_class is not None
        weights[labels.labeled] = self.found.by_class[labels.codes[labels.labeled]]
        return labels.signs(), labels.labeled, s * weights


# -- the first pass by workers
@dataclass(frozen=True)
class PartSurvey:
    """What a worker finds out about the rows of some partitions; adding two gives that of the rows of both."""

    head: Views  # one row of each partition, which has its columns and categories
    means: dict[str, tuple[tuple[str, ...], np.ndarray, int]]  # by view: columns, their sums, number of rows
    samples: tuple[RowSample, RowSample]
    found: Survey
    counts: dict[Any, float]
    one_output: bool
    indicator: bool
    firsts: dict[int, tuple[float, float]]  # sums of the first samples, by their position

    def __add__(self, other: "PartSurvey") -> "PartSurvey":
        if self.counts and other.counts:  # refuse labels of different types
            read_stream_labels(list(other.counts), len(other.counts), np.array(list(self.counts)))
        if self.found.n_outputs and other.found.n_outputs and self.found.n_outputs != other.found.n_outputs:
            raise ValueError(
                f"Partitions have {self.found.n_outputs} and {other.found.n_outputs} targets for each sample. Give all "
                "the same."
            )
        mine, theirs = self.found, other.found
        found = Survey(mine.n + theirs.n, mine.n_used + theirs.n_used, mine.l + theirs.l, mine.n_outputs)
        counts = dict(self.counts)
        for label, weight in other.counts.items():
            counts[label] = counts.get(label, 0.0) + weight
        samples = self.samples[0] + other.samples[0], self.samples[1] + other.samples[1]
        return PartSurvey(
            Views.concat([self.head, other.head]), _added_means(self.means, other.means), samples, found, counts,
            self.one_output, self.indicator, {**self.firsts, **other.firsts},
        )  # fmt: skip


def _added_means(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return sums of columns over the rows of both; a category that one of them lacks adds nothing."""
    added = {**other, **one}
    for view in one.keys() & other.keys():
        (names, total, count), (others, more, n) = one[view], other[view]
        every = dict.fromkeys([*names, *others], 0.0)
        for columns, values in ((names, total), (others, more)):
            for column, value in zip(columns, values, strict=True):
                every[column] += value
        added[view] = tuple(every), np.array(list(every.values())), count + n
    return added


def _survey_part(given: tuple[BlockReader, int, Any, int, Any], block: Any, start: int) -> PartSurvey | None:
    """Return what one partition has, whose first row is number `start`; a task of Dask."""
    reader, seed, n_components, n, of = given
    if block is None:
        return None
    own = reader.of_part(block)
    samples = own.read_all(seed, n_components, start, n, of=of)
    X = read_views_to_learn(own.estimator, block[0][:1], fresh=True)
    means = {
        view: (own.estimator._known[view][2], np.asarray(total).ravel(), count)
        for view, (total, count) in own.means.items()
    }
    one_output = bool(vars(own.estimator).get("_one_output", False))
    firsts = {start: own.blocks._before.sums[0]}
    return PartSurvey(X, means, samples, own.found, own.counts, one_output, own.indicator, firsts)


def _found_in_partitions(reader: BlockReader, seed: int, n_components: Callable[[Any, int], int]) -> PartSurvey:
    """Return what all partitions have.

    Workers send the rows whose random numbers are small enough to be in a sample of all rows, and a quarter more. Few
    may take part, such as those with a target: then they are asked again, with the number of these.
    """
    parts = reader.blocks.partitions
    assert parts is not None
    starts, n = parts.starts(), sum(parts.known_lengths())
    counts, margin = (float(n), float(n)), 1.25
    while True:
        of = (counts[0] / margin, counts[1] / margin)
        each = parts.map(_survey_part, (reader.to_send(), seed, n_components, n, of), starts)
        known = [own for own in each if own is not None]
        if not known:
            raise ValueError(f"{reader.name[0].upper()}{reader.name[1:]} have no samples.")
        found = reduce(add, known)
        if all(sample.complete for sample in found.samples):
            return found
        one, other = found.samples
        counts, margin = (float(one.offered), float(other.offered)), 1.25 * margin


def survey_partitions(
    reader: BlockReader, seed: int, n_components: Callable[[Any, int], int]
) -> tuple[RowSample, RowSample]:
    """Survey all partitions where they are; store what they have on the reader and its estimator."""
    estimator, found = reader.estimator, _found_in_partitions(reader, seed, n_components)
    estimator._known, estimator._categories = {}, {}
    remember(estimator, found.head)
    estimator._column_means = {}
    for view, (names, total, count) in found.means.items():
        place = {name: k for k, name in enumerate(names)}
        estimator._column_means[view] = np.array([total[place[name]] for name in estimator._known[view][2]]) / count
    if reader.classification:
        reader.indicator = estimator._indicator = found.indicator
    else:
        estimator._one_output = found.one_output
    reader.found, reader.counts = found.found, found.counts
    reader.blocks._before.sums.update(found.firsts)
    return found.samples


# -- later passes
def block_rows(X: Views) -> int:
    """Return the number of rows whose features are computed at a time; devices take more to be busy."""
    return DEVICE_BLOCK if any(is_device_array(X.block(name)) for name in X.names) else BLOCK


def rows_of_terms(reader: BlockReader) -> Iterator[TrainingRows]:
    """Yield the rows that a reader reads, with a view for each kernel, in blocks whose features fit into memory."""
    terms = terms_of(reader.estimator)
    for X, s, u, Y in reader.rows():
        X = views_of_terms(terms, X)
        size = block_rows(X)
        for start in range(0, len(X), size):
            here = slice(start, start + size)
            yield X[here], s[here], u[here], Y[here]


@dataclass(frozen=True)
class PartRows:
    """The rows of a partition as features: what workers need to compute them.

    Parameters
    ----------
    reader : BlockReader
        As `BlockReader.to_send` returns it.
    features : callable
        Takes the reader of one partition, and returns an iterator of its `FeatureRows`.
    work : callable
        Takes these rows, and returns what is added up.
    """

    reader: BlockReader
    features: Callable[[BlockReader], Iterator[Any]]
    work: Callable[[Iterator[Any]], Any]


def _work_on_part(given: PartRows, block: Any, first: tuple[float, float] | None) -> Any:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in the process that fits
        if block is None:
            return given.work(iter(()))
        own = given.reader.of_part(block, None if first is None else {0: first})
        return given.work(given.features(own))


def sum_over_partitions(
    reader: BlockReader, features: Callable[[BlockReader], Iterator[Any]], work: Callable[[Iterator[Any]], Any]
) -> Any:
    """Return the sum over all partitions of what `work` returns for the features of one; rows stay where they are."""
    parts = reader.blocks.partitions
    assert parts is not None
    firsts = [reader.blocks._before.sums.get(start) for start in parts.starts()]
    return parts.reduce(_work_on_part, PartRows(reader.to_send(), features, work), firsts)
