"""What online estimators need of targets: how they are read, divided into lessons, predicted and reported."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..solvers.certificates import Certificate
from ..views.container import Views
from ._arrays import IntervalRecord, PassRecord
from ._bounds import BoundSetting, ComparedSamples
from ._machine import Lesson
from ._predictions import StreamPredictions


class Chunk(NamedTuple):
    """Samples that have a target, their targets, weights and names."""

    X: Any
    y: np.ndarray
    weights: np.ndarray
    ids: np.ndarray

    def take(self, rows: Any) -> "Chunk":
        """Return some of the samples."""
        return Chunk(self.X[rows], self.y[rows], self.weights[rows], self.ids[rows])


class Targets(ABC):
    """The kind of targets of an online estimator; its methods take the estimator, which holds all state."""

    @abstractmethod
    def read(self, estimator: Any, X: Views, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return which samples have a target, these targets, and what `begin` takes (None: nothing to learn from)."""

    @abstractmethod
    def read_all(self, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the same for all samples of `fit`, which knows all targets."""

    @abstractmethod
    def read_known(self, estimator: Any, X: Views, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which samples that were learned have a target, and these targets as lessons have them."""

    @abstractmethod
    def begin(self, estimator: Any, *given: Any) -> int:
        """Set the state of the targets on an estimator that starts; return the number of outputs."""

    @abstractmethod
    def snapshot(self, estimator: Any) -> dict[str, Any]:
        """Return the state of the targets that learning changes in place, copied."""

    @abstractmethod
    def lessons(
        self, estimator: Any, y: np.ndarray, weights: np.ndarray, ids: np.ndarray
    ) -> Iterator[tuple[slice, Lesson, bool]]:
        """Yield rows, what is learned about them, and whether a class joins with the first of them."""

    @abstractmethod
    def record(self, estimator: Any, lesson: Lesson, record: Any, *, joining: bool, first: bool) -> StreamPredictions:
        """Count a piece that was learned, in the `first` pass or a later one; return its predictions."""

    @abstractmethod
    def lesson_of_one(self, estimator: Any, y: Any, weight: float) -> Lesson | None:
        """Return what is learned about a single sample; None if the target must be validated first."""

    @abstractmethod
    def record_one(self, estimator: Any, lesson: Lesson, record: Any) -> None:
        """Count a single sample that was learned."""

    @abstractmethod
    def one(self, estimator: Any, scores: np.ndarray) -> Any:
        """Return the prediction of a single sample from its scores."""

    @abstractmethod
    def certify(self, estimator: Any, given: ComparedSamples, setting: BoundSetting | None) -> Certificate:
        """Return what is proved about the estimator."""

    @abstractmethod
    def names(self, estimator: Any) -> np.ndarray | None:
        """Return the classes or labels; None in regression."""

    def forget(self, estimator: Any) -> None:  # noqa: B027
        """Prepare for a model that was made to forget; by default, nothing depends on it."""

    def in_units(self, estimator: Any, scores: np.ndarray) -> np.ndarray:
        """Return scores in the units of the targets; by default as they are."""
        return scores

    def is_open(self, estimator: Any) -> bool:
        """Return whether there is something to decide yet."""
        return True

    def summary(self, estimator: Any) -> str:
        """Return how well the estimator predicts so far, in few words."""
        return f"{estimator.n_mistakes_:,} mistakes"


def read_shares(estimator: Any, record: PassRecord | IntervalRecord, n: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the parts of views in the margins, NaN where a view has none, and the names of these views."""
    if not len(record.shares):  # a joint kernel does not tell views apart
        return np.zeros((n, 0)), ()
    return np.where(record.shares == 0, np.nan, record.shares), estimator._machine.view_names()
