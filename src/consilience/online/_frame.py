"""The base of online estimators: chunks, classes and views that come late, passes, counts, single samples."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from .._progress import report_progress
from ..kernels import Kernel, Linear, kernels_by_view, resolve_kernels
from ..kernels.by_view import as_part, kernel_of, reads_gram
from ..kernels.given import as_kernel
from ..solvers.certificates import Certificate
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.estimator import ViewClassifier, ViewEstimator, decide
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks
from ..views.validation import read_labels, read_stream_labels, read_views_to_learn, read_views_to_predict, remember
from ._arrays import Rule
from ._bounds import BoundSetting, ComparedSamples, mistake_certificate
from ._machine import Machine
from ._predictions import forget, predict_proba_one, predict_then_learn
from ._stream import (
    check_announced,
    check_kernel,
    class_codes,
    curve_marks,
    learn_blocks,
    new_outputs,
    one_row,
    stream_kernel,
    uninterrupted,
)

# parameters that the state depends on, so they must not change between chunks
FIXED = ("average", "p", "fit_intercept", "budget", "unequal", "prior_norms", "variant")


class OnlineEstimator(ViewClassifier, ViewEstimator, ABC):
    """An estimator that sees one sample after the other; any chunks of the same samples give the same decisions.

    Views and classes join just before their first sample, and scores within rounding count as equal. So counts are the
    same and scores agree up to rounding, however a stream is cut.

    A subclass chooses the machine that holds its state (`_new_machine`) and the rule of its steps (`_rule`).
    """

    classes_: np.ndarray
    kernels_: dict[str, Kernel]
    average: Any
    margin: float
    eta0: float
    max_iter: int
    shuffle: bool
    random_state: Any
    _machine: Any
    _cpu_only = True
    _late_classes = True  # whether classes can appear that were not announced
    _pair_scale = 1.0  # scale of the output of two classes when a third joins
    _parameter_constraints: dict[str, list[Any]] = {  # of those below, an estimator validates the parameters it has
        "p": [Interval(Real, 1, None, closed="left")],
        "average": ["boolean", StrOptions({"with_last", "voted"})],
        "margin": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "C": [Interval(Real, 0, None, closed="right")],  # infinity means no limit
        "fit_intercept": ["boolean"],
        "budget": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

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

    def _bound_setting(self) -> BoundSetting | None:
        """Return which mistake bound holds; None if none is known."""
        return None

    # -- parameters
    def _validate_params(self) -> None:
        """Validate parameters; unlike scikit-learn's method, without the signature, which takes long for one sample."""
        given = {name: getattr(self, name) for name in self._parameter_constraints if hasattr(self, name)}
        validate_parameter_constraints(self._parameter_constraints, given, caller_name=type(self).__name__)
        if given.get("budget") is not None and self._averages() == "voted":  # a vote needs every hypothesis
            raise ValueError(
                f"average='voted' keeps every update, but budget={given['budget']!r} limits them. Use average=True, or "
                "budget=None."
            )

    def _check_fixed(self) -> None:
        """Validate that parameters which the state depends on are those that learning began with."""
        for name, before in self._began_with.items():
            now = getattr(self, name)
            if before is not now and before != now:
                raise ValueError(
                    f"`{name}` was {before!r} when learning began and is {now!r} now. Set it back, or start again with "
                    "clone(model)."
                )

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
        for name in X.names:
            if X.block(name) is None or not X.present(name).any():
                continue
            plain = X.kind(name) in ("dense", "sparse")
            if not whole and plain and self._view_is_gram(name):
                raise ValueError(
                    f"View '{name}' must be a Gram matrix, and a stream needs kernels between samples of all chunks. "
                    f"Give rows of Views(..., precomputed='{name}'), or all samples at once to `fit`."
                )
            if self._is_primal() and not plain:
                raise ValueError(
                    f"View '{name}' holds {X.kind(name)}; {type(self).__name__} is linear here and needs numbers. Give "
                    "a kernel, or use KernelPerceptron."
                )
            if not self._is_primal() and not whole:
                check_kernel(kernel_of(getattr(self, "kernel", "linear"), name), name, X)

    def _resolve_kernels(self, X: Views) -> None:
        """Compute from all samples of `fit` what kernels take from data."""
        if not self._is_primal():
            shown = [name for name in X.names if X.present(name).any()]
            kernels = kernels_by_view(getattr(self, "kernel", "linear"), X.names)
            self.kernels_ = resolve_kernels({name: kernels[name] for name in shown}, X)

    def _add_views(self, X: Views) -> None:
        """Make room for the views of X that occur for the first time; their kernels take nothing from data."""
        if not self._is_primal():
            new = [name for name in X.names if name not in self.kernels_ and X.present(name).any()]
            given = {name: kernel_of(getattr(self, "kernel", "linear"), name) for name in new}
            # resolved without data
            known = {name: stream_kernel(k, name, _blocks.width(X.block(name))) for name, k in given.items()}
            self.kernels_ = {**self.kernels_, **known}
        self._machine.add_views(X, self.kernels_)

    # -- state
    def _begin(self, classes: np.ndarray, announced: bool) -> None:
        """Set the empty state for these classes."""
        self._known: dict[str, Any] = {}
        self._set_classes(classes)
        self._announced = announced
        self.n_samples_seen_ = self.n_mistakes_ = 0
        self._n_late = 0  # samples whose class was not known before
        self._next_id = 0  # of samples to come
        self.n_iter_ = 1  # passes over the same samples
        self._met: tuple[str, ...] = ()  # views that some sample had
        self._began_with = {name: getattr(self, name) for name in FIXED if hasattr(self, name)}
        self._curve: list[tuple[int, int]] = []
        self.kernels_ = {}
        self._machine = self._new_machine(1 if len(classes) <= 2 else len(classes))

    def _snapshot(self) -> dict[str, Any]:
        """Return the attributes that restore the estimator if a chunk is refused halfway."""
        before = dict(self.__dict__)
        if hasattr(self, "_machine"):
            before.update(_curve=list(self._curve), _machine=self._machine.snapshot())
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
            self._machine.remap_outputs(sources)

    @property
    def n_updates_(self) -> int:
        """Number of updates."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._machine.n_updates)

    # -- learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn a chunk of samples, in order.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. Views may be missing, and new ones may appear. Blocks and partitions are learned in order.
        y : array-like of shape (n_samples,)
            Classes; samples without one are skipped. RowBlocks have their own.
        classes : array-like, optional
            All classes of the stream, at the first call. By default, classes appear with their first sample.

        Returns
        -------
        self
            The estimator.
        """
        self._validate_params()
        X, y = (RowBlocks.of(X, y, views=getattr(self, "views", None)), None) if is_dask(X) else (X, y)
        if isinstance(X, RowBlocks):
            return learn_blocks(self, X, y, classes)
        fresh = not hasattr(self, "n_samples_seen_")
        if not fresh:
            self._check_fixed()
        X = read_views_to_learn(self, X, fresh)
        announced = None if classes is None else read_labels(np.asarray(classes), len(classes)).classes
        known = announced if fresh else self.classes_
        labeled, labels = read_stream_labels(in_order_of(X.sample_names, y, "y"), len(X), known)
        if not fresh and announced is not None and not np.isin(announced, self.classes_).all():
            raise ValueError(
                f"`classes` are {_blocks.quoted(announced)} now, but {_blocks.quoted(self.classes_)} at the first call."
            )
        if fresh and announced is None and not self._late_classes:
            announced = known = np.unique(labels)  # the first chunk announces them
        if known is not None and (announced is not None or (not fresh and self._announced)):
            check_announced(labels, known, self._late_classes)
        if fresh and known is None and not len(labels):
            return self  # nothing to learn from yet
        self._check_views(X, whole=False)
        before = self._snapshot()
        try:
            if fresh:
                self._begin(np.unique(labels[:1]) if announced is None else announced, announced is not None)
            remember(self, X)
            if len(labels):
                ids = range(self._next_id, self._next_id + len(labels))  # positions in the stream
                self._next_id += len(labels)
                self._learn_chunk(X if labeled.all() else X[labeled], labels, ids)
            self._used_views = self._met or self.view_names_in_
        except Exception:  # such as a kernel that overflows: the chunk is not learned at all
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _learn_chunk(self, X: Views, labels: np.ndarray, ids: Any) -> None:
        """Learn samples in order, in pieces between which views and classes join."""
        for chunk, codes, own_ids, new_class in self._pieces(X, labels, ids):
            with uninterrupted():
                _, wrong = self._learn(chunk, codes, own_ids)
                if new_class:
                    wrong[0] = True  # the class was not known when it had to be predicted
                    self._n_late += 1
                self._count(wrong)

    def _pieces(self, X: Views, labels: np.ndarray, ids: Any) -> Iterator[tuple[Any, np.ndarray, Any, bool]]:
        """Yield pieces to learn, and whether their class is new; views and classes join just before a piece."""
        unmet = [name for name in X.names if name not in self._met and X.block(name) is not None]
        first = {name: int(X.present(name).argmax()) for name in unmet if X.present(name).any()}
        piece = self._piece
        # cut where a view occurs for the first time
        for begin, end in pairwise([0, *sorted({row for row in first.values() if row > 0}), len(labels)]):
            # views so far, and those that start here
            met = {*self._met, *(name for name, row in first.items() if row == begin)}
            self._met = tuple(name for name in X.names if name in met)
            chunk, own, start = self._ready(X[begin:end]), labels[begin:end], 0
            while start < len(own):
                codes, unknown = class_codes(own[start : start + 64], self.classes_)  # new classes mostly come early
                if unknown < 0:
                    codes, unknown = class_codes(own[start : start + piece], self.classes_)
                new_class = unknown == 0 or (self.n_samples_seen_ == 0 and not self._announced)
                if unknown == 0:
                    with uninterrupted():
                        self._add_class(np.unique(np.append(self.classes_, own[start : start + 1])))
                    # with the new class among the classes
                    codes, unknown = class_codes(own[start : start + piece], self.classes_)
                stop = start + (len(codes) if unknown < 0 else unknown)  # up to the next unknown class
                yield chunk[start:stop], codes[: stop - start], ids[begin + start : begin + stop], new_class
                start = stop

    def _ready(self, X: Views) -> Any:
        """Make room for new views, and return samples in the form that `_learn` takes."""
        self._add_views(X)
        return self._machine.read(X)

    def _learn(self, chunk: Any, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn samples of known classes; see `Machine.learn`."""
        if len(self.classes_) == 1:  # nothing to decide yet
            self._machine.n_hypotheses += len(codes)
            return np.zeros((len(codes), 1)), np.zeros(len(codes), dtype=bool)
        learned: tuple[np.ndarray, np.ndarray] = self._machine.learn(chunk, codes, self._rule(), ids)
        return learned

    def fit(self, X: Any, y: Any) -> Self:
        """Start again and pass over the samples `max_iter` times, or until a pass makes no update.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,)
            Classes; samples without one are skipped.

        Returns
        -------
        self
            The estimator.
        """
        self._validate_params()
        with self._restore_on_error():
            X, labels, ids = self._begin_fit(X, y)
            for order in self._passes(len(X)):
                if order is None:
                    self._learn_chunk(X, labels, ids)
                else:
                    self._learn_chunk(X[order], labels[order], ids[order])
            self._used_views = self._met or self.view_names_in_
        return self

    def _begin_fit(self, X: Any, y: Any) -> tuple[Views, np.ndarray, np.ndarray]:
        """Set the empty state for `fit`; return the labeled samples, their labels and positions."""
        X = read_views_to_learn(self, X, fresh=True, grams=True)
        labels = read_labels(in_order_of(X.sample_names, y, "y"), len(X))
        given = np.flatnonzero(labels.labeled)
        X = X if len(given) == len(X) else X[given]
        self.__dict__.pop("n_samples_seen_", None)  # not fitted while views are validated
        self._check_views(X, whole=True)
        self._begin(labels.classes, announced=True)  # `fit` knows all classes
        remember(self, X)
        self._resolve_kernels(X)
        self._next_id = len(labels.labeled)
        return X, labels.classes[labels.codes[given]], given

    def _passes(self, n: int) -> Iterator[np.ndarray | None]:
        """Yield the order of the n samples in each pass of `fit`, until a pass makes no update."""
        rng = check_random_state(self.random_state)
        self.converged_ = False
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            report_progress(number, None, of=self.max_iter, unit=f"{self.n_mistakes_:,} mistakes, pass")
            before = self.n_updates_
            yield rng.permutation(n) if self.shuffle else None
            if self.n_updates_ == before:
                self.converged_ = True
                return

    predict_then_learn, predict_proba_one, forget = predict_then_learn, predict_proba_one, forget

    # -- single samples
    def learn_one(self, x: Mapping[str, Any], y: Any) -> Self:
        """Learn one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view, as an array, a sparse row or a list of numbers; missing views are left out.
        y : object
            The class.

        Returns
        -------
        self
            The estimator.
        """
        row = self._read_one(x)
        code = -1 if row is None else self._code_of(y)
        if code < 0:  # a new class or an unknown view: the long way, which validates
            return self.partial_fit(one_row(x), [y])
        _, wrong = self._machine.learn(row, np.array([code]), self._rule(), None)
        self._next_id += 1
        self._count_one(bool(wrong[0]))
        return self

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the class of one sample given as a dict of view -> row.

        Parameters
        ----------
        x : dict
            The row of each view, as an array, a sparse row or a list of numbers; missing views are left out.

        Returns
        -------
        object
            The class; None before a sample was learned.
        """
        row = self._read_one(x)
        if row is None:
            return self.predict(one_row(x))[0] if hasattr(self, "n_samples_seen_") else None
        scores = self._machine.score_one(row)
        return self.classes_[decide(scores[:, 0] if scores.shape[1] == 1 else scores, len(self.classes_))][0]

    def _read_one(self, x: Mapping[str, Any]) -> Any:
        """Return one sample as the machine takes it; None if it must be validated as Views first."""
        machine = self.__dict__.get("_machine")
        if machine is None or len(self.classes_) < 2:  # nothing to decide yet
            return None
        self._check_fixed()
        return machine.read_one(x)

    def _code_of(self, label: Any) -> int:
        """Return the position of a label among the classes, -1 if it must be validated first."""
        try:
            return self._codes.get(label, -1)
        except TypeError:  # not a label at all: partial_fit says so
            return -1

    # -- predicting
    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        self._check_fixed()
        return self._scores(X)

    def _scores(self, X: Views) -> np.ndarray:
        """Return scores of shape (n, 1) for two classes, (n, n_classes) for more."""
        return np.asarray(self._machine.scores(X))

    # -- counting
    @property
    def error_curve_(self) -> np.ndarray:
        """Progressive error: rows of (samples seen, share of mistakes), thinned out geometrically."""
        check_is_fitted(self, "n_samples_seen_")
        curve = np.array(self._curve, dtype=np.float64).reshape(-1, 2)
        return np.column_stack([curve[:, 0], curve[:, 1] / np.maximum(curve[:, 0], 1)])

    def _count(self, wrong: np.ndarray) -> None:
        """Count samples and mistakes, and add to the error curve."""
        first, mistaken = self.n_samples_seen_, np.flatnonzero(wrong)
        kept = curve_marks(first, first + len(wrong))
        total = self.n_mistakes_ + np.searchsorted(mistaken, kept - first)  # mistakes before each mark
        self._curve.extend(zip(kept.tolist(), total.tolist(), strict=True))
        self.n_samples_seen_ += len(wrong)
        self.n_mistakes_ += len(mistaken)

    def _count_one(self, wrong: bool) -> None:
        self.n_samples_seen_ += 1
        self.n_mistakes_ += wrong
        # the counts of `curve_marks`
        if self.n_samples_seen_ % (1 << max(self.n_samples_seen_.bit_length() - 8, 0)) == 0:
            self._curve.append((self.n_samples_seen_, self.n_mistakes_))

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
        return mistake_certificate(self, ComparedSamples(X, y, comparator), self._bound_setting())

    def _read_pairs(self, comparison: ComparedSamples) -> tuple[Views, np.ndarray]:
        """Return the labeled samples of a comparison, and the codes of their classes."""
        X = read_views_to_predict(self, comparison.X)
        labels = read_labels(in_order_of(X.sample_names, comparison.y, "y"), len(X), classes=self.classes_)
        given = np.flatnonzero(labels.labeled)
        return X[given], labels.codes[given]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
