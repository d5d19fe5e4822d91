"""Training samples that are read block by block: what a first pass finds out, and the rows of every later pass.

The first pass finds the views, the classes and their weights, and the samples from which the parameters of kernels and
the landmarks are taken. Nothing is kept whose size grows with the number of samples.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._progress import report_progress
from ..views.container import Views
from ..views.row_blocks import RowBlocks, RowSample, sample_size
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
        self.estimator, self.blocks = estimator, blocks
        self.use_unlabeled, self.labeled_only = use_unlabeled, labeled_only
        self.classification, self.indicator = is_classifier(estimator), False
        self.found = Survey()

    def survey(self, seed: int, n_components: Callable[[int], int]) -> tuple[RowSample, RowSample]:
        """Pass over all blocks; return samples for the parameters of kernels and for landmarks.

        `n_components` returns the number of landmarks for a number of samples.
        """
        counts: dict[Any, float] = {}
        for number, (start, X, y, s) in enumerate(self._first_pass(), start=1):
            report_progress(number, None, unit="block")
            labeled = self._count_targets(y, s, counts)
            kept = s > 0
            weighted = kept & labeled if self.labeled_only else kept
            used = kept if self.use_unlabeled else kept & labeled
            if number == 1:
                size = sample_size(X, n_components(self.blocks.n_samples or 0))
                samples = RowSample(sample_size(X), 0), RowSample(size, seed)
            for sample, rows in zip(samples, (weighted, used), strict=True):
                here = np.flatnonzero(rows)
                sample.add(X if len(here) == len(X) else X[here], start + here)
            self.found.n, self.found.l = start + len(X), self.found.l + int((kept & labeled).sum())
            self.found.n_used += int(used.sum())
        if not self.found.l:
            raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
        self._weigh_classes(counts)
        return samples

    def _first_pass(self) -> Iterator[tuple[int, Views, Any, np.ndarray]]:
        """Read blocks as those of a stream: a view may appear in any of them."""
        start = 0
        totals: dict[str, tuple[Any, int]] = {}
        for block in self.blocks:
            X = read_views_to_learn(self.estimator, block.X, fresh=not start)
            if not start:
                self.estimator._known, self.estimator._categories = {}, {}
            remember(self.estimator, X)
            store_means(self.estimator, X, totals)
            self._check_target(block.y)
            if not start:
                self._read_kind(block.y)
            yield start, X, block.y, read_weights(block.sample_weight, len(X), required=False)
            start += len(X)
        if not start:
            raise ValueError(f"{self.blocks.name[0].upper()}{self.blocks.name[1:]} have no samples.")

    def _check_target(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self.estimator).__name__} needs targets, and {self.blocks.name} have none. Let blocks be "
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
                    f"A block of {self.blocks.name} has {Y.shape[1]} targets for each sample; the first one has "
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
