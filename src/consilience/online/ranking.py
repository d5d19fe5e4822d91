"""The ranking perceptron: joint features of a sample and an output, a joint kernel, or a search for the best output."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..kernels import as_kernel
from ..solvers.certificates import Certificate
from ..views._docs import shared_docs
from ..views._reading import objects_of
from ..views.estimator import ViewClassifier
from ..views.validation import read_to_score, read_views_to_predict, remember
from ._arrays import Rule
from ._bounds import BoundSetting, ComparedSamples, mistake_certificate
from ._candidates import OutputList, as_items, as_output_array, check_lengths, ordered, read_candidates_of
from ._counting import count
from ._frame import OnlineEstimator
from ._grams import Grams
from ._linear import LinearMachine
from ._link import LinkMachine
from ._pairs import PairMachine
from ._parameters import CONSTRAINTS
from ._ranked import (
    check_ranking,
    choices_of,
    choices_to_learn,
    learn_ranked,
    ranking_certificate,
    read_ranked,
    refuse_weights,
    resolve_outputs,
    share_of_right,
)
from ._ranking import FeatureMachine
from ._stream import one_row, uninterrupted
from ._targets import Chunk

__all__ = ["RankingPerceptron"]

_PIECE = 64  # samples learned at a time; Ctrl-C waits for them


@shared_docs
@dataclass(eq=False, repr=False)
class RankingPerceptron(ViewClassifier, OnlineEstimator):
    """The perceptron that ranks outputs, also structured ones, last, averaged or voted (Collins 2002).

    A sample x has candidates t for its output, and a joint feature map φ(x, t). The prediction is the candidate of the
    largest score, and a mistake moves the weights from it to the true output y:

        t̂ = argmax_t <w, φ(x, t)>,   if t̂ is not y:  w <- w + φ(x, y) - φ(x, t̂)

    A tie is a mistake. Outputs may be classes, strings, sequences of labels or trees; samples may be anything that the
    functions take. One of these says what φ is:

    - `features` returns φ(x, t) itself.
    - `joint_kernel` is k((x, t), (x', t')) = <φ(x, t), φ(x', t')>, and the estimator keeps the pairs of its mistakes.
    - Neither: φ(x, t) = x ⊗ e_t, one vector for each class, on views. It is `OnlinePerceptron` without an intercept.

    With φ(x, t) = t x / 2 and t = ±1 it is the perceptron of two classes, with ``joint_kernel=(k, κ)`` and classes as
    outputs `KernelPerceptron` with ``output_kernel`` κ.

    If some u with ‖u‖ = 1 ranks every true output first by a margin of γ, there are at most (R/γ)² mistakes, where R is
    the largest ‖φ(x, y) - φ(x, t̂)‖ (Collins 2002, Theorem 1). `certificate` returns the form for any u.

    Parameters
    ----------
    features : callable, optional
        ``features(x, t)`` returns φ(x, t): a dict of names and numbers, a vector, or a sparse row.
    joint_kernel : callable or tuple, optional
        Function ``k((x, t), (x', t'))`` of two pairs that returns a number, or a tuple ``(k, κ)`` of a kernel between
        samples and one between outputs for k(x, x') κ(t, t'). In ``(None, κ)`` k is 1. In ``(k, None)`` κ is 1 for
        equal outputs and else 0.
    candidates : callable or sequence, optional
        ``candidates(x)`` returns the outputs that x may have; a sequence gives the same to all samples. The true output
        must be among them. Default: the different outputs among the samples learned so far.
    decode : callable, optional
        ``decode(weights, x)`` returns the output of the largest score, for outputs that are too many to list, such as
        Viterbi's algorithm for sequences. `weights` are a dict by name, 0 for unknown names, where features have names;
        else a vector. Needs `features`, and no `candidates`. Ties are broken by it, so they are not mistakes.
    {ranked_average}
    {max_iter}
    {shuffle}
    {random_state}
    {verbose}
    {views}

    Attributes
    ----------
    classes_ : array
        Classes in sorted order, where neither `features` nor `joint_kernel` is given.
    candidates_ : list
        Candidates of all samples, where `candidates` is a sequence or None.
    coef_ : dict or array
        Weights: by name of feature or as a vector; by view without `features`. Not with `joint_kernel`.
    support_ : list of (int, object)
        With `joint_kernel`: positions of the samples kept among those of `fit` or in the stream, and their outputs.
    dual_coef_ : array of shape (n_support,)
        With `joint_kernel`: coefficients of these pairs, before averages.
    {counts_}
    {error_curve_}

    See Also
    --------
    MaxMarginRegressor : Ranks outputs by a kernel, trained by a convex program.

    Notes
    -----
    With `features`, or without a kernel between samples, X is a sequence of samples of any kind, whose items the
    functions get: a row of an array, a string, a list of words; of `Views`, a dict of the rows that the sample has.
    With such a kernel X is `Views` or what `as_views` reads. None in y marks samples to skip.

    Examples
    --------
    A tagger of words: a tag depends on the word and on the word before it, and every sequence of tags is a candidate.

    >>> from itertools import product
    >>> from collections import Counter
    >>> from consilience import RankingPerceptron
    >>> def features(words, tags):
    ...     own = [f"{word} is a {tag}" for word, tag in zip(words, tags)]
    ...     return Counter(own + [f"{tag} after {word}" for word, tag in zip(words, tags[1:])])
    >>> def candidates(words):
    ...     return product(["noun", "verb"], repeat=len(words))
    >>> X = [["we", "run"], ["a", "run"], ["they", "walk"], ["a", "walk", "ends"]]
    >>> y = [["noun", "verb"], ["noun", "noun"], ["noun", "verb"], ["noun", "noun", "verb"]]
    >>> model = RankingPerceptron(features, candidates=candidates, random_state=0).fit(X, y)
    >>> model.converged_, model.score(X, y)
    (True, 1.0)
    >>> model.predict([["a", "run", "ends"]])[0]
    ('noun', 'noun', 'verb')
    """

    _parameter_constraints = {
        **CONSTRAINTS,
        "average": ["boolean", StrOptions({"with_last", "voted"})],
        "features": [callable, None],
        "joint_kernel": [callable, tuple, None],
        "candidates": [callable, "array-like", None],
        "decode": [callable, None],
    }

    features: Any = None
    _: KW_ONLY
    joint_kernel: Any = None
    candidates: Any = None
    decode: Any = None
    average: Any = False
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = None
    verbose: bool = False
    views: Any = None

    # -- which perceptron this is
    def _ranks(self) -> bool:
        """Return whether the user says what φ is; else classes are predicted from views, as everywhere."""
        return self.features is not None or self.joint_kernel is not None

    def _is_primal(self) -> bool:
        return self.joint_kernel is None

    @property
    def kernel(self) -> Any:
        """Kernel between samples, where `joint_kernel` has one; else "linear"."""
        return self.joint_kernel[0] if self._ranks() and self._reads_views() else "linear"

    def _reads_views(self) -> bool:
        """Return whether X are views; else it is a sequence of samples of any kind."""
        return not self._ranks() or (isinstance(self.joint_kernel, tuple) and self.joint_kernel[0] is not None)

    def _validate_params(self) -> None:
        super()._validate_params()
        check_ranking(self)

    def _check_fixed(self) -> None:
        super()._check_fixed()
        if self._ranks() == hasattr(self, "classes_") or self._is_primal() == isinstance(self._machine, PairMachine):
            raise ValueError(
                "`features` or `joint_kernel` say another φ than when learning began. Set them back, or start again "
                "with clone(model)."
            )

    # -- state
    def _new_machine(self, n_outputs: int) -> Any:
        average = self._averages()
        if self.features is not None:
            return FeatureMachine(average)
        if self.joint_kernel is not None:
            outputs = self.joint_kernel[1] if isinstance(self.joint_kernel, tuple) else None
            grams = Grams("joint") if self._reads_views() else None
            return PairMachine(grams, None if outputs is None else as_kernel(outputs), average)
        if average == "voted":
            return LinkMachine(n_outputs, p=2.0, average=average, fit_intercept=False)
        return LinearMachine("joint", n_outputs, average=average)

    def _rule(self) -> Rule:
        return Rule(0.0, 1.0, 1.0)

    def _begin_ranking(self) -> None:
        """Set the empty state for outputs of any kind."""
        self._begin(np.zeros(1), True)
        del self.classes_, self._codes
        self.view_names_in_ = self._used_views = ()
        listed = self.candidates is not None and not callable(self.candidates)
        self._outputs = read_candidates_of(self.candidates) if listed else OutputList()

    # -- learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn a chunk of samples, in order.

        Parameters
        ----------
        X : sequence of samples, or Views or what `as_views` reads
            Samples.
        y : sequence of length n_samples
            Outputs; samples without one are skipped.
        classes : array-like, optional
            All classes of the stream, at the first call, where neither `features` nor `joint_kernel` is given.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of the steps, where neither `features` nor `joint_kernel` is given.

        Returns
        -------
        self
            The estimator.
        """
        if not self._ranks():
            return super().partial_fit(X, y, classes, sample_weight)
        refuse_weights(sample_weight)
        self._validate_params()
        if classes is not None:
            raise ValueError("`classes` are for a ranking of classes. Give the outputs by `candidates`.")
        learn_ranked(self, X, y)
        return self

    def _begin_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Chunk:
        if not self._ranks():
            return super()._begin_fit(X, y, sample_weight)
        refuse_weights(sample_weight)
        X, outputs, given = read_ranked(self, X, y, fresh=True, whole=True)
        self.__dict__.pop("n_samples_seen_", None)
        if self._reads_views():
            self._check_views(X, whole=True)
        self._begin_ranking()
        if self._reads_views():
            remember(self, X)
            self._resolve_kernels(X)
        if self.candidates is None and self.decode is None:
            self._outputs = self._outputs.with_new(outputs)
        resolve_outputs(self, outputs)
        self._next_id = int(given[-1]) + 1
        return Chunk(X, outputs, np.ones(len(outputs)), given)

    def _learn_chunk(self, chunk: Chunk, shares: bool = False, likely: bool = False) -> list[Any]:
        if not self._ranks():
            return super()._learn_chunk(chunk, shares, likely)
        X, labels, _, ids = chunk
        if self._reads_views():
            self._met = tuple(name for name in X.names if name in self._met or X.present(name).any())
            self._add_views(X)
        for start in range(0, len(labels), _PIECE):
            rows = slice(start, start + _PIECE)
            with uninterrupted():
                if self.decode is not None:
                    wrong = self._machine.learn_searched(self.features, self.decode, X[rows], labels[rows])
                else:
                    choices, new = choices_to_learn(self, X[rows], labels[rows])
                    wrong = self._machine.learn(self._joint(), X[rows], choices, ids[rows])
                    wrong |= new  # an output that was not known could not be predicted
                    self._n_late += int(new.sum())
                count(self, wrong, wrong)
        if self._reads_views():
            self._used_views = self._met or self.view_names_in_
        return []

    def _joint(self) -> Any:
        """Return the function of the user."""
        return next((joint for joint in (self.features, self.joint_kernel) if callable(joint)), None)

    # -- single samples
    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one sample.

        Parameters
        ----------
        x : object
            The sample; a dict of view -> row where X are views.
        y : object
            The output.
        sample_weight : float, default=1.0
            Factor of the step, where neither `features` nor `joint_kernel` is given.

        Returns
        -------
        self
            The estimator.
        """
        if not self._ranks():
            return super().learn_one(x, y, sample_weight)
        refuse_weights(None if sample_weight == 1 else sample_weight)
        return self.partial_fit(self._one(x), objects_of([y]))

    def predict_one(self, x: Any) -> Any:
        """Predict the output of one sample.

        Parameters
        ----------
        x : object
            The sample; a dict of view -> row where X are views.

        Returns
        -------
        object
            The output; None before a sample was learned.
        """
        if not self._ranks():
            return super().predict_one(x)
        if not hasattr(self, "n_samples_seen_"):
            return None
        return self._best(self._one(x))[0]

    def _one(self, x: Any) -> Any:
        """Return one sample as X."""
        return one_row(x, self) if self._reads_views() else objects_of([x])

    # -- predicting
    def predict(self, X: Any) -> np.ndarray:
        """Predict outputs.

        Parameters
        ----------
        X : sequence of samples, or Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples,)
            The candidate with the largest score, or what `decode` returns. An array of objects where outputs are
            neither numbers nor strings.
        """
        return as_output_array(self._best(X)) if self._ranks() else super().predict(X)

    def _best(self, X: Any) -> list[Any]:
        """Return the best output of each sample."""
        if self.decode is not None:
            check_is_fitted(self, "n_samples_seen_")
            self._check_fixed()
            weights = self._machine.weights(self._machine.learned())
            return [self.decode(weights, x) for x in as_items(X, "X")]
        return [choice.outputs[int(scores.argmax())] for choice, scores in self._ranked(X)]

    def _ranked(self, X: Any) -> list[tuple[Any, np.ndarray]]:
        """Return the candidates of each sample and their scores."""
        check_is_fitted(self, "n_samples_seen_")
        self._check_fixed()
        X = read_views_to_predict(self, X) if self._reads_views() else as_items(X, "X")
        return list(zip(choices := choices_of(self, X), self._machine.scores(self._joint(), X, choices), strict=True))

    def _classifies(self) -> bool:
        if self._ranks():
            raise AttributeError("This method is for classes; `rank` returns candidates with their scores.")
        return True

    decision_function = available_if(_classifies)(ViewClassifier.decision_function)
    predict_then_learn = available_if(_classifies)(OnlineEstimator.predict_then_learn)
    forget = available_if(_classifies)(OnlineEstimator.forget)

    def _gives_probabilities(self) -> bool:
        return not self._ranks()

    def rank(self, X: Any, top: int = 5) -> list[list[tuple[Any, float]]]:
        """Return the best candidates of each sample, the best first, with their scores.

        Parameters
        ----------
        X : sequence of samples, or Views or what `as_views` reads
            Samples.
        top : int, default=5
            Number of candidates per sample.

        Returns
        -------
        list of list of (candidate, score)
            Ranking of each sample; with ``average="voted"`` scores are shares of the votes.
        """
        if not (isinstance(top, Integral) and top >= 1):
            raise ValueError(f"`top` must be an integer of at least 1; got {top!r}.")
        if self.decode is not None:
            raise ValueError("`decode` finds one output, not a ranking. Give `candidates` instead.")
        if self._ranks():
            ranked = [(choice.outputs, scores) for choice, scores in self._ranked(X)]
        else:
            decision, names = self.decision_function(X), self.classes_.tolist()
            if decision.ndim == 1:  # the vectors of two classes are opposite
                decision = np.column_stack([-decision, decision])[:, -len(names) :]
            ranked = [(names, row) for row in decision]
        return [ordered(outputs, scores, top) for outputs, scores in ranked]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of right outputs; samples without an output are left out.

        Parameters
        ----------
        X : sequence of samples, or Views or what `as_views` reads
            Samples.
        y : sequence of length n_samples
            The true outputs. A structured output must be right as a whole.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            Share of right outputs.
        """
        if not self._ranks():
            return super().score(X, y, sample_weight)
        if self._reads_views():
            X, y, sample_weight = read_to_score(self, X, y, sample_weight)
        best, truth = self._best(X), as_items(y, "y")
        check_lengths(len(best), len(truth))
        return share_of_right(best, truth, sample_weight)

    # -- what was learned
    def _learned(self, name: str, kind: type) -> Any:
        check_is_fitted(self, "n_samples_seen_")
        if not isinstance(self._machine, kind):
            has = "`coef_`" if self._is_primal() else "`support_` and `dual_coef_`"
            raise AttributeError(f"RankingPerceptron has {has} with these parameters, not `{name}`.")
        return self._machine

    @property
    def candidates_(self) -> list[Any]:
        """Candidates of all samples."""
        self._learned("candidates_", FeatureMachine if self._is_primal() else PairMachine)
        return list(self._outputs.outputs)

    @property
    def coef_(self) -> Any:
        """Weights of the last hypothesis or of the mean: by name or as a vector; by view without `features`."""
        check_is_fitted(self, "n_samples_seen_")
        if not self._ranks():
            return self._machine.coef()
        machine = self._learned("coef_", FeatureMachine)
        weights = machine.weights(machine.learned())
        return dict(weights) if isinstance(weights, dict) else np.array(weights)

    @property
    def support_(self) -> list[tuple[int, Any]]:
        """Positions of the samples kept, and their outputs."""
        machine = self._learned("support_", PairMachine)
        ids = list(machine.ids)
        return [(ids[i], machine.outputs.outputs[t]) for i, t in machine.pairs.tolist()]

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the pairs kept, before averages."""
        return np.array(self._learned("dual_coef_", PairMachine).coefs)

    # -- proof
    def _bound_setting(self) -> BoundSetting:
        return BoundSetting(2.0)

    def certificate(self, X: Any = None, y: Any = None, *, comparator: Any = None) -> Certificate:
        """Return the number of mistakes and a bound on it.

        For any u with L = Σ max(0, 1 - <u, φ(x, y) - φ(x, t)>) for the best t other than y, and R the largest
        ‖φ(x, y) - φ(x, t)‖ of an update, there are at most L + A + √(A L) mistakes, A = (R‖u‖)².

        Parameters
        ----------
        X : sequence of samples, or Views or what `as_views` reads, optional
            The samples learned. By default, the comparator is 0, and the bound the number of samples.
        y : sequence of length n_samples, optional
            Outputs of the samples.
        comparator : dict or array, optional
            The comparator u, with `features`: weights by name, or a vector. By default, multiples of the last and of
            the mean hypothesis are tried, and of those of a perceptron with a margin.

        Returns
        -------
        MistakeCertificate
            Mistakes and bound; prints as a sentence.
        """
        if not self._ranks():
            return super().certificate(X, y, comparator=comparator)
        check_is_fitted(self, "n_samples_seen_")
        trivial = mistake_certificate(self, ComparedSamples(None, None, None), self._bound_setting())
        return trivial if X is None else ranking_certificate(self, trivial, ComparedSamples(X, y, comparator))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._ranks():
            tags.estimator_type = None  # outputs are not classes: scikit-learn must not stratify by them
        return tags
