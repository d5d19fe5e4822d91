"""The interface of machines: a machine holds the state of an online estimator, learns and scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..kernels import Kernel
from ..views.container import Views
from ._arrays import IntervalRecord, PassRecord

Sources = Sequence[tuple[int, float]]  # of each output: the output before it comes from (-1: none), and its scale


class Lesson(NamedTuple):
    """What is learned about samples: their classes, weights and names.

    Codes are positions of classes, (n,). For regression they are numbers and for labels 0 and 1, (n, n_outputs). A
    sample has the same name in every pass. Votes are costly, so scores of votes are made only where `scored`.
    """

    codes: np.ndarray
    weights: np.ndarray
    ids: Any
    scored: bool = True
    shares: bool = False  # whether the parts of the views in the margin are reported
    likely: bool = False  # whether probabilities are reported
    units: Any = None  # units of numbers that are standardized
    quiet: bool = False  # whether another estimator warns that a budget is full

    def take(self, rows: Any) -> "Lesson":
        """Return what is learned about some of the samples."""
        return self._replace(codes=self.codes[rows], weights=self.weights[rows], ids=self.ids[rows])


class Machine(ABC):
    """State of an online estimator.

    Estimators create a machine for their classes. They give it samples, and a rule that says when and how far to step.
    A machine knows outputs, not classes: one output for two classes, else one for each class.
    """

    n_outputs: int
    n_updates: int = 0
    n_hypotheses: int = 0  # hypotheses in use so far, one for each sample
    n_dropped: int = 0  # samples that a budget did not keep
    average: Any = False

    @abstractmethod
    def add_views(self, X: Views, kernels: Mapping[str, Kernel]) -> None:
        """Make room for the views of X that occur for the first time; linear machines need no kernels."""

    @abstractmethod
    def learn(self, chunk: Any, lesson: Lesson, rule: Any) -> PassRecord | IntervalRecord:
        """Learn samples in order; return their scores before learning, and where the decision was wrong.

        `chunk` is what `read` returned, or a slice of it. The scores are of the hypothesis that predicts.
        """

    @abstractmethod
    def scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, 1) for two classes, (n, n_classes) for more."""

    @abstractmethod
    def remap_outputs(self, sources: Sources) -> None:
        """Replace the outputs: each becomes a multiple of an output before, or 0."""

    @abstractmethod
    def forget(self, share: float, view: str | None) -> None:
        """Multiply what was learned by a share, of one view or of all.

        Means of hypotheses start again, with the one that is left; with none where nothing is.
        """

    @abstractmethod
    def view_names(self) -> tuple[str, ...]:
        """Return the views that some sample had, in the order in which they joined."""

    @property
    def n_averaged(self) -> float:
        """Sum of the weights of the hypotheses in a mean: their number, with the last one more; at least 1."""
        n = self.n_hypotheses
        if mean_of(self.average) == 2:
            return max(n * (n + 1.0) * (n + 2.0) * (n + 3.0) / 4, 1.0)
        return max(n + 1.0 * includes_last(self.average), 1.0)

    def dropped(self) -> int:
        """Return the number of samples that a budget did not keep."""
        return self.n_dropped

    def snapshot(self) -> Self:
        """Return a machine that further learning does not change.

        It may be the machine itself if nothing can fail after `read`: then no chunk is learned halfway.
        """
        return self

    def frozen(self) -> Self:
        """Return a machine that predicts as this one does now, whatever this one learns later."""
        return deepcopy(self)

    def read(self, X: Views) -> Any:
        """Return samples in the form that `learn` takes, which can be sliced."""
        return X

    def read_one(self, x: Mapping[str, Any]) -> Any:
        """Return one sample in the form that `learn` takes; None if it must be validated as Views first."""
        return None

    def score_one(self, row: Any) -> np.ndarray:
        """Return the scores of what `read_one` returned, of shape (1, n_outputs)."""
        raise NotImplementedError


def takes_means(average: Any) -> bool:
    """Return whether predictions are by a mean of hypotheses."""
    return bool(average) and average != "voted"


def mean_of(average: Any) -> int:
    """Return which mean predicts: 0 of the hypotheses in use so far, 1 also of the last, 2 with growing weights."""
    return {"with_last": 1, "recent": 2}.get(average, 0) if isinstance(average, str) else 0


def first_weight(average: Any) -> float:
    """Return the weight of the first hypothesis in a mean."""
    return 6.0 if mean_of(average) == 2 else 1.0  # t(t+1)(t+2) for t = 1


def includes_last(average: Any) -> bool:
    """Return whether the mean includes the last hypothesis, which has not been used yet."""
    return isinstance(average, str) and average == "with_last"


def remapped(values: np.ndarray, sources: Sources, *, axis: int = -1, power: int = 1) -> np.ndarray:
    """Return an array over new outputs, where `axis` is that of the outputs; scales are raised to `power`."""
    zero = np.take(values, 0, axis=axis) * 0  # for outputs without a source
    parts = [np.take(values, s, axis=axis) * scale**power if s >= 0 else zero for s, scale in sources]
    return np.ascontiguousarray(np.stack(parts, axis=axis))


def plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a named tuple, and those in it, as plain tuples, as compiled passes take them."""
    return tuple(plain(value) if isinstance(value, tuple) else value for value in values)


_LEARNED = {  # method of the machine, and what it returns
    "coef_": ("coef", "Weights by view, of the last hypothesis or of the mean of all."),
    "intercept_": ("intercepts", "Intercept of each output; 0 without `fit_intercept`."),
    "support_": ("support_ids", "Positions of the samples kept, among those of `fit` or in the stream."),
    "dual_coef_": ("dual_coef", "Coefficients of the samples kept, before factors and averages."),
    "n_dropped_": ("dropped", "Number of samples that the budget dropped, or did not let in."),
}


def from_machine(name: str) -> property:
    """Return a property of fitted estimators that their machine computes; an AttributeError if it cannot."""
    method, text = _LEARNED[name]

    def read(self: Any) -> Any:
        check_is_fitted(self, "n_samples_seen_")
        compute: Callable[[], Any] | None = getattr(self._machine, method, None)
        if compute is None:
            kept = "`coef_`, since it is linear," if self._is_primal() else "`support_` and `dual_coef_`"
            raise AttributeError(f"{type(self).__name__} has {kept} with these parameters, not `{name}`.")
        return compute()

    return property(read, doc=text)
