"""The base of online estimators: chunks and views that come late, passes, counts, single samples."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._progress import report_progress
from ..kernels import Kernel, Linear
from ..kernels.by_view import as_part, reads_gram
from ..kernels.given import as_kernel
from ..solvers.certificates import Certificate
from ..views.container import Views
from ..views.estimator import ViewEstimator
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from ..views.validation import check_numbers, read_views_to_predict, remember
from ._arrays import PassRecord, Rule, new_record
from ._bounds import BoundSetting, ComparedSamples
from ._classes import new_outputs
from ._labels import targets_of
from ._machine import Lesson, Machine
from ._parameters import CONSTRAINTS, FIXED, check_fixed, check_forgetting, check_parameters
from ._predictions import StreamPredictions, joined_predictions
from ._reading import check_views, read_chunk, read_learned, read_whole
from ._single_samples import learn_plain_row, learn_single, score_plain_row, score_single
from ._stream import learn_blocks, new_kernels, uninterrupted, whole_kernels
from ._targets import Chunk
from .serving import Snapshot


def _has_probabilities(estimator: Any) -> bool:
    if is_regressor(estimator) or not estimator._gives_probabilities():
        raise AttributeError(f"{type(estimator).__name__} predicts no probabilities of classes with these parameters.")
    return True


class OnlineEstimator(ViewEstimator, ABC):
    """An estimator that sees one sample after the other; any chunks of the same samples give the same decisions.

    Views and classes join just before their first sample, and scores within rounding count as equal. So counts are the
    same and scores agree up to rounding, however a stream is cut.

    A subclass chooses the machine that holds its state (`_new_machine`), the rule of its steps (`_rule`) and the kind
    of its targets (`_targets`).
    """

    classes_: np.ndarray
    kernels_: dict[str, Kernel]
    average: Any = False  # of estimators that have no such parameter
    margin: float
    eta0: float
    max_iter: int
    shuffle: bool
    random_state: Any
    prepare: Any = None  # how views are prepared in the stream
    _machine: Any
    _targets: Any = property(targets_of)
    _cpu_only = True
    _late_classes = True  # whether classes can appear that were not announced
    _pair_scale = 1.0  # scale of the output of two classes when a third joins
    _parameter_constraints = CONSTRAINTS

    # -- what a subclass chooses
    @abstractmethod
    def _new_machine(self, n_outputs: int) -> Machine:
        """Return the empty state."""

    def _rule(self) -> Any:
        """Return when and how far the machine steps; by default as a perceptron, by `eta0` up to `margin`."""
        return Rule(float(self.margin), float(self.eta0), float(self.eta0))

    def _is_primal(self) -> bool:
        """Return whether the state is weights of columns; else it is coefficients of samples."""
        return False

    def _gives_probabilities(self) -> bool:
        """Return whether `predict_proba` is available."""
        return True

    def _bound_setting(self) -> BoundSetting | None:
        """Return which mistake bound holds; None if none is known."""
        return None

    # -- parameters
    def _validate_params(self) -> None:
        check_parameters(self)

    def _check_fixed(self) -> None:
        check_fixed(self)

    @property
    def _piece(self) -> int:
        """The number of samples learned at a time; Ctrl-C waits for them."""
        return 65536 if self._is_primal() else 1024

    def _averages(self) -> Any:
        """Return `average` as False, True, "with_last" or "voted"."""
        return self.average if isinstance(self.average, str) else bool(self.average)

    # -- views and kernels
    def _view_is_gram(self, name: str) -> bool:
        return reads_gram(getattr(self, "kernel", None), name)

    def _part(self, parameter: str, value: Any) -> Any:
        return as_part(parameter, value)

    def _has_linear_kernel(self) -> bool:
        given = getattr(self, "kernel", "linear")
        return not isinstance(given, Mapping) and type(as_kernel(given)) is Linear

    def _check_views(self, X: Views, whole: bool) -> None:
        """Validate views before anything changes; `whole` if these are all samples there are."""
        check_views(self, X, whole)

    def _resolve_kernels(self, X: Views) -> None:
        """Compute from all samples of `fit` what kernels take from data."""
        if not self._is_primal():
            self.kernels_ = whole_kernels(getattr(self, "kernel", "linear"), X)

    def _add_views(self, X: Views) -> None:
        """Make room for the views of X that occur for the first time; their kernels take nothing from data."""
        if not self._is_primal():
            self.kernels_ = {**self.kernels_, **new_kernels(getattr(self, "kernel", "linear"), X, self.kernels_)}
        self._machine.add_views(X, self.kernels_)

    # -- state
    def _begin(self, *given: Any) -> None:
        """Set the empty state; `given` is what is known about the targets."""
        self._known: dict[str, Any] = {}
        self.n_samples_seen_ = 0
        self._indicator = len(given) > 2  # labels: their names, whether these are all, whether samples have lists
        self._next_id, self.n_iter_ = 0, 1  # of samples to come; passes over the same samples
        self._met: tuple[str, ...] = ()  # views that some sample had
        self._began_with = {name: getattr(self, name) for name in FIXED if hasattr(self, name)}
        self.preparation_: Any = None  # unless samples are read with one
        self._off_bounds = False  # whether steps differ from those of the bounds: by weights, or by forgetting
        self.kernels_ = {}
        self._machine = self._new_machine(self._targets.begin(self, *given))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._shared = True  # with a memory map or an object store, whose arrays are read-only

    def _own_arrays(self) -> None:
        """Copy what was learned before it changes, where arrays may be read-only."""
        if self.__dict__.pop("_shared", False):
            fixed = self._get_param_names()
            self.__dict__.update(deepcopy({name: own for name, own in self.__dict__.items() if name not in fixed}))

    def _snapshot(self) -> dict[str, Any]:
        """Return the attributes that restore the estimator if a chunk is refused halfway."""
        self._own_arrays()
        before = dict(self.__dict__)
        if hasattr(self, "_machine"):
            before.update(self._targets.snapshot(self), _machine=self._machine.snapshot())
        return before

    def _set_classes(self, classes: np.ndarray) -> None:
        self.classes_ = classes
        self._codes = {label: code for code, label in enumerate(classes.tolist())}  # for single samples

    def _add_class(self, classes: np.ndarray) -> None:
        """Continue with more classes than before."""
        before = self.classes_
        self._set_classes(classes)
        sources = new_outputs(before, classes, self._pair_scale)
        if sources is not None:
            self._calibration.remap(len(classes))
            self._machine.remap_outputs(sources)

    def forget(self, share: float, view: str | None = None) -> Self:
        """Shrink what was learned, so that later samples count more; means of hypotheses start again.

        Parameters
        ----------
        share : float
            Factor of the weights, from 0 to 1; 0 starts again. Classes, counts and prepared statistics stay.
        view : str, optional
            View whose weights shrink. Default: all views.

        Returns
        -------
        self
            The estimator.
        """
        check_forgetting(self, share, view)
        self._own_arrays()
        self._off_bounds = True
        self._machine.forget(float(share), view)
        self._targets.forget(self)
        return self

    @property
    def n_updates_(self) -> int:
        """Number of updates."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._machine.n_updates)

    # -- learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn a chunk of samples, in order.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. Views may be missing, and new ones may appear. Blocks and partitions are learned in order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or lists of labels
            Targets; samples without one are skipped. RowBlocks have their own.
        classes : array-like, optional
            All classes of the stream, at the first call. By default, classes appear with their first sample.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the steps; samples of weight 0 are skipped. RowBlocks have their own.

        Returns
        -------
        self
            The estimator.
        """
        X, y = (RowBlocks.of(X, y, views=getattr(self, "views", None)), None) if is_dask(X) else (X, y)
        if isinstance(X, RowBlocks):
            self._validate_params()
            return learn_blocks(self, X, y, classes)
        if sample_weight is not None or not learn_plain_row(self, X, y, classes):
            self._predict_then_learn(X, y, sample_weight, classes)
        return self

    def predict_then_learn(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, view_margins: bool = False
    ) -> StreamPredictions:
        """Predict and learn the samples of a chunk, one after the other.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples. Views may be missing, and new ones may appear.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or lists of labels
            Targets; samples without one are skipped.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the steps; samples of weight 0 are skipped.
        classes : array-like, optional
            All classes of the stream, at the first call.
        view_margins : bool, default=False
            Whether to return the part of each view in the margin.

        Returns
        -------
        StreamPredictions
            Predictions by the hypothesis that `predict` uses, and the truth. If a sample is refused, nothing of the
            chunk is learned.
        """
        return self._predict_then_learn(X, y, sample_weight, classes, view_margins, likely=True)

    def _predict_then_learn(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, shares: bool = False, likely: bool = False
    ) -> StreamPredictions:
        """Predict and learn a chunk; parts of views and probabilities only where they are reported."""
        self._validate_params()
        fresh = not hasattr(self, "n_samples_seen_")
        if not fresh:
            self._check_fixed()
        read = read_chunk(self, X, y, sample_weight, classes)
        if read.given is None:  # nothing to learn from yet
            self.preparation_ = read.prepared
            return joined_predictions([], None, ())
        before = self._snapshot()
        try:
            if fresh:
                self._begin(*read.given)
            remember(self, read.X)
            self.preparation_, self._off_bounds = read.prepared, self._off_bounds or sample_weight is not None
            chunk = read.chunk._replace(ids=self._next_id + read.chunk.ids)  # positions in the stream
            self._next_id += len(chunk.y)
            made = self._learn_chunk(chunk, shares, likely) if len(chunk.y) else []
            self._used_views = self._met or self.view_names_in_
        except Exception:  # such as a kernel that overflows: the chunk is not learned at all
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        parts = joined_predictions(made, self._targets.names(self), self._met)
        return replace(parts, rows=read.rows, sample_weight=None if sample_weight is None else chunk.weights)

    def _learn_chunk(self, chunk: Chunk, shares: bool = False, likely: bool = False) -> list[StreamPredictions]:
        """Learn samples in order, in pieces between which views and classes join; return their predictions."""
        made, first = [], self.n_iter_ == 1
        for X, lesson, joining in self._pieces(chunk):
            with uninterrupted():
                lesson = lesson._replace(scored=first, shares=shares, likely=likely)
                made.append(self._targets.record(self, lesson, self._learn(X, lesson), joining=joining, first=first))
        return made

    def _pieces(self, chunk: Chunk) -> Iterator[tuple[Any, Lesson, bool]]:
        """Yield pieces to learn, and whether a class joins with them; views join just before a piece."""
        X = chunk.X
        unmet = [name for name in X.names if name not in self._met and X.block(name) is not None]
        first = {name: int(X.present(name).argmax()) for name in unmet if X.present(name).any()}
        # cut where a view occurs for the first time
        for begin, end in pairwise([0, *sorted({row for row in first.values() if row > 0}), len(chunk.y)]):
            # views so far, and those that start here
            met = {*self._met, *(name for name, row in first.items() if row == begin)}
            self._met = tuple(name for name in X.names if name in met)
            part = chunk.take(slice(begin, end))
            ready = self._ready(part.X)
            for rows, lesson, joining in self._targets.lessons(self, part.y, part.weights, part.ids):
                yield ready[rows], lesson, joining

    def _ready(self, X: Views) -> Any:
        """Make room for new views, and return samples in the form that `_learn` takes."""
        self._add_views(X)
        return self._machine.read(X)

    def _learn(self, chunk: Any, lesson: Lesson) -> Any:
        """Learn samples of known classes; see `Machine.learn`."""
        if not self._targets.is_open(self):
            self._machine.n_hypotheses += len(lesson.weights)
            return PassRecord(*(np.zeros_like(values) for values in new_record(len(lesson.weights), 1)))
        return self._machine.learn(chunk, lesson, self._rule())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start again and pass over the samples `max_iter` times, or until a pass makes no update.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or lists of labels
            Targets; samples without one are skipped.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the steps; samples of weight 0 are skipped.

        Returns
        -------
        self
            The estimator.
        """
        self._validate_params()
        with self._restore_on_error():
            chunk = self._begin_fit(X, y, sample_weight)
            for order in self._passes(len(chunk.y)):
                self._learn_chunk(chunk if order is None else chunk.take(order))
            self._used_views = self._met or self.view_names_in_
        return self

    def _begin_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Chunk:
        """Set the empty state for `fit`; return the samples with a target."""
        read = read_whole(self, X, y, sample_weight)
        self.__dict__.pop("n_samples_seen_", None)  # not fitted while views are validated
        self._check_views(read.chunk.X, whole=True)
        self._begin(*read.given)
        remember(self, read.X)
        self.preparation_, self._off_bounds = read.prepared, sample_weight is not None
        self._resolve_kernels(read.chunk.X)
        self._next_id = len(read.X)
        return read.chunk._replace(ids=read.rows)

    def _passes(self, n: int) -> Iterator[np.ndarray | None]:
        """Yield the order of the n samples in each pass of `fit`, until a pass makes no update."""
        rng = check_random_state(self.random_state)
        self.converged_ = False
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            report_progress(number, None, of=self.max_iter, unit=f"{self._targets.summary(self)}, pass")
            before = self.n_updates_
            yield rng.permutation(n) if self.shuffle else None
            if self.n_updates_ == before:
                self.converged_ = True
                return

    # -- single samples
    def learn_one(self, x: Mapping[str, Any], y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view: an array, a sparse row, a list of numbers, or a Series or dict with the names of the
            columns. Missing views are left out.
        y : object
            The target.
        sample_weight : float, default=1.0
            Factor of the step.

        Returns
        -------
        self
            The estimator.
        """
        learn_single(self, x, y, sample_weight)
        return self

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the target of one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view: an array, a sparse row, a list of numbers, or a Series or dict with the names of the
            columns. Missing views are left out.

        Returns
        -------
        object
            The target; None before a sample was learned.
        """
        scores = score_single(self, x)
        return None if scores is None else self._targets.one(self, scores)

    def _read_one(self, x: Mapping[str, Any]) -> Any:
        """Return one prepared sample as the machine takes it; None if it must be validated as Views first."""
        return self._machine.read_one(x)

    def snapshot(self) -> Snapshot:
        """Return a predictor that stays as the model is now, while the model goes on learning.

        Any number of threads may predict with it at once. Take it in the thread that learns, between two samples.

        Returns
        -------
        Snapshot
            The predictor; it cannot learn.
        """
        return Snapshot(self)

    # -- predicting
    def _combined(self, X: Any) -> np.ndarray:
        one = score_plain_row(self, X)
        if one is not None:
            return one
        X = read_views_to_predict(self, X)
        self._check_fixed()
        return self._scores(X if self.preparation_ is None else check_numbers(self.preparation_.transform(X)))

    def _scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, 1) for two classes, (n, n_classes) for more."""
        return np.asarray(self._targets.in_units(self, self._machine.scores(X)))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of the classes, fitted to the predictions of the stream before each sample.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        scores = self._combined(X)
        if not self._targets.is_open(self):
            return np.ones((len(scores), 1))
        return np.asarray(self._calibration.probabilities(scores))

    @available_if(_has_probabilities)
    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Return the probabilities of the classes of one sample.

        Parameters
        ----------
        x : dict
            The row of each view: an array, a sparse row, a list of numbers, or a Series or dict with the names of the
            columns. Missing views are left out.

        Returns
        -------
        dict
            Class -> probability; empty before a sample was learned.
        """
        scores = score_single(self, x)
        if scores is None:
            return {}
        likely = self._calibration.probabilities(scores)[0].tolist() if self._targets.is_open(self) else [1.0]
        return dict(zip(self.classes_.tolist(), likely, strict=True))

    # -- counting
    @property
    def error_curve_(self) -> np.ndarray:
        """Progressive error: rows of (samples seen, share of wrong predictions), thinned out geometrically."""
        check_is_fitted(self, "n_samples_seen_")
        curve = self._curve.astype(np.float64)
        return np.column_stack([curve[:, 0], curve[:, 1] / np.maximum(curve[:, 0], 1)])

    # -- proof
    def certificate(self, X: Any = None, y: Any = None, *, comparator: Any = None) -> Certificate:
        """Return the number of mistakes and, where one is known, a bound on it.

        Parameters
        ----------
        X : Views or what `as_views` reads, optional
            The samples learned. By default, the comparator is 0, and the bound the number of samples.
        y : array-like of shape (n_samples,), optional
            Classes of the samples.
        comparator : dict or array, optional
            The comparator U of the bound: weights by view for a linear estimator, or coefficients of the samples,
            (n_samples,) or (n_samples, n_classes). By default, support vector machines are tried, and the best is used.

        Returns
        -------
        MistakeCertificate
            Mistakes and bound; prints as a sentence.
        """
        check_is_fitted(self, "n_samples_seen_")
        proof: Certificate = self._targets.certify(self, ComparedSamples(X, y, comparator), self._bound_setting())
        return proof

    def _read_pairs(self, comparison: ComparedSamples) -> tuple[Views, np.ndarray]:
        """Return the samples of a comparison that have a target, and these targets."""
        return read_learned(self, comparison.X, comparison.y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
