"""OMCL: an online learner per view, and one on top of their margins."""

from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..kernels.by_view import kernel_of
from ..solvers.certificates import MistakeCertificate, risk_bound
from ..views import _blocks
from ..views.container import Views
from ..views.validation import remember
from ._frame import OnlineLearner, check_choice, check_number, new_outputs
from ._linear import LinearMachine, Rule
from .kernelized import Projectron

__all__ = ["MultiCueClassifier"]

MARGINS = 1e-9  # the rounding that margins of the first layer have, as a share of the terms of a score


class MultiCueClassifier(OnlineLearner):
    """OMCL, online multi-cue learning in two layers (Jie, Orabona and Caputo 2009).

    Each view has an online learner of its own, Projectron++ unless others are given. Their margins on a sample, made
    before they learn it, stand side by side as a new vector, on which a passive-aggressive learner (PA-I) decides:

        s_v = f_v(x_v),   f(x) = <w, (s_1, .., s_m)>,   w <- w + τ y s,  τ = min(C, ℓ/‖s‖²)

    With K classes each view gives K margins, and there is one w per class. A view that is absent gives zeros, and its
    learner does not learn from the sample. However a stream is cut, scores agree up to rounding; on samples that come
    again and again margins can tie exactly, and then rounding may decide.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get "rbf". In a stream
        "scale" stands for one over the number of columns; other parameters must be numbers there.
    threshold : float, default=0.1
        η of the Projectrons: the distance from the span of the support up to which a sample is projected.
    C : float, default=0.01
        The longest step of the learner on top; small, since margins are noisy while the views still learn.
    learner : online learner, optional
        What is put in each view in place of Projectron++; `kernel`, `kernels` and `threshold` then do not matter.
    learners : dict, optional
        Online learners by view; the others take `learner`.
    average : bool, default=False
        Whether the learner on top predicts with the mean of its hypotheses.
    max_iter : int, default=10
        The most passes of `fit`; it ends after the first one without an update.
    shuffle : bool, default=True
        Whether `fit` takes the samples in a new random order at each pass.
    random_state : int, RandomState or None, default=None
        The seed of the order.
    verbose : bool, default=False
        Whether to show passes and mistakes while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    learners_ : dict
        The learner of each view.
    view_weights_ : array of shape (n_views,)
        The length of each view's part of w.
    n_mistakes_, n_updates_, n_samples_seen_ : int
        Wrong decisions before learning (a tie is one), updates of any of the learners, samples seen.
    error_curve_ : array of shape (n, 2)
        Samples seen, share of mistakes so far.
    separated_ : bool
        Whether the last pass of `fit` changed nothing.

    Examples
    --------
    >>> from consilience import MultiCueClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = MultiCueClassifier("rbf", threshold=0.3, max_iter=1, random_state=0).fit(X[:500], y[:500])
    >>> sorted(model.learners_) == sorted(X.names)
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        threshold: float = 0.1,
        C: float = 0.01,
        learner: Any = None,
        learners: Mapping[str, Any] | None = None,
        average: bool = False,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.threshold = threshold
        self.C = C
        self.learner = learner
        self.learners = learners
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    _piece = 1024
    _second_class = 0.5

    @property
    def _late_classes(self) -> bool:  # type: ignore[override]
        given = [self.learner, *dict(self.learners or {}).values()]
        return all(learner is None or learner._late_classes for learner in given)

    def _check_parameters(self) -> None:
        check_number("threshold", self.threshold)
        check_number("C", self.C, above=True, infinite=True)
        check_choice("average", self.average, (False, True))
        for name, learner in {"learner": self.learner, **dict(self.learners or {})}.items():
            if learner is not None and not isinstance(learner, OnlineLearner):
                raise TypeError(
                    f"`learners` and `learner` are online learners, such as Projectron or OnlinePerceptron; got "
                    f"{type(learner).__name__} for '{name}'."
                )

    # -- the learners of views
    def _learner_of(self, name: str) -> OnlineLearner:
        given = dict(self.learners or {}).get(name, self.learner)
        if given is not None:
            return clone(given)
        return Projectron(kernel_of(self.kernel, name), threshold=self.threshold)

    def _check_views(self, X: Views, whole: bool) -> None:
        super()._check_views(X, whole)
        for name in X.names:
            own, there = _present(X, name)
            if len(there):
                learner = self._learner_of(name)
                learner._check_parameters()
                learner._check_views(own, whole)

    def _snapshot(self) -> dict[str, Any]:
        before = super()._snapshot()
        if "learners_" in before:
            kept = {name: copy(learner) for name, learner in self.learners_.items()}
            for name, learner in self.learners_.items():
                kept[name].__dict__ = learner._snapshot()
            before.update(learners_=kept, _top=deepcopy(self._top))
        return before

    def _start(self) -> None:
        self.learners_: dict[str, OnlineLearner] = {}
        self._largest: dict[str, float] = {}  # margin of each view so far
        self._top = LinearMachine("joint", self._n_outputs(), average=bool(self.average))

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) <= 2 else len(self.classes_)

    def _meet(self, X: Views) -> None:
        for name in X.names:
            own, there = _present(X, name)
            if len(there):
                if name not in self.learners_:
                    learner = self._learner_of(name)
                    learner._check_views(own, whole=True)
                    learner._begin(self.classes_, self._announced)
                    self.learners_[name] = learner
                remember(self.learners_[name], own)

    def _prepare(self, X: Views) -> None:
        self._meet(X)
        for name, learner in self.learners_.items():
            learner._prepare(_present(X, name)[0])

    def _grow(self, before: np.ndarray) -> None:
        for learner in self.learners_.values():
            learner.classes_ = self.classes_
            learner._grow(before)
        sources = new_outputs(before, self.classes_, 1.0)
        if sources is None:
            return
        old, top = self._top, LinearMachine("joint", len(self.classes_), average=bool(self.average))
        top.meet(self._margin_views({name: np.zeros((1, len(self.classes_))) for name in old.offsets}))
        for name in old.offsets:
            half = getattr(self.learners_[name], "_second_class", 1.0)
            mix = _mixture(sources, old.n_outputs, half)
            for part in ("V", "U"):
                rows = slice(old.offsets[name], old.offsets[name] + old.widths[name])
                target = slice(top.offsets[name], top.offsets[name] + top.widths[name])
                if len(getattr(old, part)):
                    getattr(top, part)[target, 0] = mix(getattr(old, part)[rows, 0])
        top.C[:], top.state, top.n_steps, top.n_hypotheses = old.C[0, 0], old.state, old.n_steps, old.n_hypotheses
        self._top = top

    # -- learning
    def _learn(self, X: Views, codes: np.ndarray, ids: Any) -> tuple[np.ndarray, np.ndarray]:
        self._meet(X)
        ids = np.asarray(ids)
        if len(self.classes_) == 1:
            for name, learner in self.learners_.items():
                own, there = _present(X, name)
                if len(there):
                    learner._learn(learner._ready(own), codes[there], ids[there])
            self._top.n_hypotheses += len(codes)
            return np.zeros((len(codes), 1)), np.zeros(len(codes), dtype=bool)
        margins = {}
        for name, learner in self.learners_.items():
            own, there = _present(X, name)
            margins[name] = np.full((len(codes), self._n_outputs()), np.nan)
            if len(there):
                scores, wrong = learner._learn(learner._ready(own), codes[there], ids[there])
                learner._count(wrong)
                margins[name][there] = self._cleaned(name, self._outputs(scores))
        Z = self._margin_views(margins)
        self._top.meet(Z)
        rule = Rule(1.0, 0.0, float(self.C), rounding=MARGINS)
        return self._top.learn(self._top.read(Z), codes, rule, tol=MARGINS)

    def _cleaned(self, name: str, margins: np.ndarray) -> np.ndarray:
        """Margins without those that are rounding of the largest so far: a sample may have nothing else."""
        largest = np.maximum.accumulate(np.append(self._largest.get(name, 0.0), np.abs(margins).max(axis=1)))
        self._largest = {**self._largest, name: float(largest[-1])}
        return np.where(np.abs(margins) <= MARGINS * largest[1:, None], 0.0, margins)

    def _outputs(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

    def _margin_views(self, margins: Mapping[str, np.ndarray]) -> Views:
        n = len(next(iter(margins.values())))
        mask = np.column_stack([~np.isnan(values).any(axis=1) for values in margins.values()])
        return Views._of(dict(margins), n, mask, {})

    def _scores(self, X: Views) -> np.ndarray:
        margins = {}
        for name, learner in self.learners_.items():
            own, there = _present(X, name)
            margins[name] = np.full((len(X), self._n_outputs()), np.nan)
            if len(there):
                margins[name][there] = self._outputs(learner._scores(own))
        if not self._top.offsets:
            return np.zeros((len(X), self._n_outputs()))
        return self._top.scores(self._margin_views(margins), bool(self.average))

    @property
    def n_updates_(self) -> int:  # type: ignore[override]
        """Updates of any of the learners."""
        check_is_fitted(self, "n_samples_seen_")
        return int(self._top.n_steps) + sum(learner.n_updates_ for learner in self.learners_.values())

    @property
    def view_weights_(self) -> np.ndarray:
        """The length of each view's part of w."""
        W, top = self._top.weights(bool(self.average)), self._top
        parts = {name: W[top.offsets[name] : top.offsets[name] + top.widths[name]] for name in top.offsets}
        return np.array([np.linalg.norm(parts[name]) if name in parts else 0.0 for name in self.view_names_in_])

    def certificate(self, X: Any = None, y: Any = None) -> MistakeCertificate:
        """Return the mistakes made, and what they say of the risk.

        Parameters
        ----------
        X, y : ignored
            No bound by samples is known for two layers.

        Returns
        -------
        MistakeCertificate
            Mistakes and risk.
        """
        check_is_fitted(self, "n_samples_seen_")
        once = self.n_samples_seen_ and self._passes == 1
        risk = risk_bound(self.n_mistakes_ / self.n_samples_seen_, self.n_samples_seen_) if once else None
        return MistakeCertificate(
            status="streamed", mistakes=self.n_mistakes_, n_samples=self.n_samples_seen_, risk=risk
        )


def _present(X: Views, name: str) -> tuple[Views, np.ndarray]:
    """The samples that have a view, with this view alone, and their positions."""
    if name not in X.names or X.block(name) is None:
        return X, np.zeros(0, dtype=np.int64)
    there = np.flatnonzero(X.present(name))
    if not len(there):
        return X, there
    block = X.block(name) if len(there) == len(X) else _blocks.take(X.block(name), there)
    return Views._of({name: block}, len(there), None, X.feature_names), there


def _mixture(sources: list[tuple[int, float]], n_before: int, half: float) -> Any:
    """How the weights on one view's margins go over to more classes, so that the decision stays what it was."""

    def mix(weights: np.ndarray) -> np.ndarray:
        T = len(sources)
        new = np.zeros((T, T))  # margin of a class, output of a class
        if n_before == 1:
            signs = np.array([sign for _, sign in sources])
            new[:] = weights[0, 0] * np.outer(signs, signs) / (4 * half)
        else:
            for i, (a, _) in enumerate(sources):
                for j, (b, _) in enumerate(sources):
                    if a >= 0 and b >= 0:
                        new[i, j] = weights[a, b]
        return new

    return mix
