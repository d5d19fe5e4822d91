"""What there is to say about a comparison or a stream, in numbers: everything that a report shows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler

from .._progress import progress
from ..evaluation.candidates import candidates, default_kernels, learner_of, shown_to_learner, views_of
from ..evaluation.comparison import Comparison, Leaderboard, difference_interval, fit_quietly, interval, share_interval
from ..evaluation.inspection import view_agreement
from ..kernels.gram import alignment
from ..kernels.scalar import as_kernel
from ..views._notebook import weights_of
from ..views.container import Views, as_views
from ..views.estimator import presence

SAMPLES = 600  # that Gram matrices are compared on: what is left out moves an alignment by less than it is shown to
SHARES = (0.1, 0.2, 0.4, 0.7)  # of the training part, along the learning curve


@dataclass(frozen=True)
class Disagreement:
    """A sample whose views do not say the same.

    Parameters
    ----------
    sample : str
        Its name.
    votes : tuple of str
        What each view says alone; empty where it is absent.
    answer, truth : str
        What all say together, and what it is.
    spread : float
        How far the views are apart.
    """

    sample: str
    votes: tuple[str, ...]
    answer: str
    truth: str
    spread: float


@dataclass(frozen=True)
class Findings:
    """What a report shows of a comparison; made by `examine`.

    Parameters
    ----------
    title : str
        What the data are called.
    X : Views
        The samples.
    y : array of shape (n_samples,)
        Their classes or numbers.
    board : Leaderboard
        The learners.
    patterns : list of (tuple of bool, int)
        Which views are present together, and in how many samples; the most frequent first.
    alignments : array of shape (n_views + 1, n_views + 1)
        Alignments of centered Gram matrices, the target's last; NaN where no sample has both.
    model : estimator
        The first of the board, fitted on all samples.
    chosen : list of dict
        The parameters chosen on all samples, then in each fold.
    certificate : Certificate or None
        What is proved about its fit.
    weights : dict
        What the model gives each view; empty where it has no weights.
    judge : str
        The learner that views were left out of: the best that takes all views.
    losses : dict
        View -> (mean, low, high) of the score lost where the learner is fitted without it.
    speaker : str
        The learner whose views were asked one by one: the best that can be.
    disagreements : list of Disagreement
        The samples with the least agreement.
    agreed, disputed : tuple of (int, float), or None
        How many samples views agree on, and the share of right answers there; the same where they do not.
    calibration : array of shape (n_bins, 3)
        For classes: confidence, share of right answers, samples. For numbers: mean prediction, mean truth, samples.
    calibrated_by : str
        How confidence was had; empty where it could not be.
    curve : array of shape (n_sizes, 4)
        Training samples, mean score, low, high.
    """

    title: str
    X: Views
    y: np.ndarray
    board: Leaderboard
    patterns: list[tuple[tuple[bool, ...], int]]
    alignments: np.ndarray
    model: Any
    chosen: list[dict[str, Any]]
    certificate: Any
    weights: dict[str, float]
    judge: str
    losses: dict[str, tuple[float, float, float]]
    speaker: str
    disagreements: list[Disagreement]
    agreed: tuple[int, float] | None
    disputed: tuple[int, float] | None
    calibration: np.ndarray
    calibrated_by: str
    curve: np.ndarray

    @property
    def best(self) -> Comparison:
        """The first of the board."""
        found: Comparison = self.board[0]
        return found


@dataclass(frozen=True)
class StreamFindings:
    """What a report shows of a stream.

    Parameters
    ----------
    title : str
        What the data are called.
    learner : str
        Who learned.
    result : ProgressiveResult
        Mistakes and their curve.
    certificate : MistakeCertificate or None
        The mistake bound, where the samples were at hand to find one.
    others : dict
        Learner -> ProgressiveResult, of learners on the same stream.

    Examples
    --------
    >>> import consilience as cs
    >>> from consilience.report import StreamFindings
    >>> X, y = cs.datasets.make_views(n_samples=300, random_state=0, return_X_y=True)
    >>> model = cs.OrthogonalPerceptron()
    >>> result = cs.progressive_validation(model, X, y)
    >>> found = StreamFindings("made", "OrthogonalPerceptron", result, model.certificate(X, y))
    >>> found.certificate.bound >= result.mistakes
    True
    """

    title: str
    learner: str
    result: Any
    certificate: Any = None
    others: dict[str, Any] = field(default_factory=dict)


def examine(
    X: Any,
    y: Any,
    board: Leaderboard,
    *,
    title: str = "Data",
    ids: Sequence[Any] | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Findings:
    """Look into the data and the learners of a leaderboard, for a report.

    Everything about the quality of answers is from samples that were held out: learners are fitted on the training
    part of each fold of the board, with the parameters chosen there.

    Parameters
    ----------
    X, y : Views and array-like of shape (n_samples,)
        The samples that were compared on.
    board : Leaderboard
        What `compare` found.
    title : str, default="Data"
        What the data are called.
    ids : sequence, optional
        Names of the samples; their rows by default.
    n_jobs : int, optional
        How many fits at a time, by as many processes.
    verbose : bool, default=False
        Whether to show how far it is, in a terminal or a notebook.

    Returns
    -------
    Findings
        What a report shows; see `write_report`.

    Examples
    --------
    >>> from consilience.evaluation.comparison import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> from consilience.report import examine
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, learners=["ViewMetricRidgeClassifierCV"], folds=2)
    >>> found = examine(X, y, board, title="Breast cancer")
    >>> found.losses["worst"][0] > found.losses["error"][0]
    True
    """
    X, y = as_views(X), np.asarray(y)
    names = [str(i) for i in (range(len(X)) if ids is None else ids)]
    if len(names) != len(X):
        raise ValueError(f"There are {len(X)} samples and {len(names)} names of samples; they must agree.")
    known = candidates(X, y, numbers=board.numbers)
    best: Comparison = board[0]
    everywhere = next((row for row in board if not row.name.endswith(" alone")), best)
    with progress(verbose, "looking into the data") as told:
        fits = _Fits(board, n_jobs)
        told("fitting on all samples", 0.05)
        model = board.fitted(best.name, X, y)
        last = learner_of(model)
        told("asking the views one by one", 0.15)
        speaker, held = _spoken(fits, board, known, X, y)
        told("leaving views out", 0.4)
        losses = {} if everywhere.name.endswith(" alone") or len(X.names) < 2 else _losses(fits, everywhere, X, y)
        told("learning from fewer samples", 0.7)
        curve = _curve(fits, best, known, X, y)
        told("comparing kernels", 0.95)
        alignments = _alignments(X, y, board)
    calibration, how = (_deciles(best.answers, y), "") if board.numbers else _calibrated(fits, best, known, X, y)
    agreed, disputed, rows = _disputes(held, y, names, board.numbers)
    each = zip(best.parameters, fits.models(best, known, X, y), strict=True)
    chosen = [_chosen(best.parameters[0], model), *(_chosen(given, part) for given, part in each)]
    return Findings(
        title=title, X=X, y=y, board=board, patterns=_patterns(X), alignments=alignments, model=model,
        chosen=chosen,
        certificate=last.certificate() if hasattr(last, "certificate") else None, weights=_weights(last),
        judge=everywhere.name, losses=losses, speaker=speaker, disagreements=rows, agreed=agreed, disputed=disputed,
        calibration=calibration, calibrated_by=how, curve=curve,
    )  # fmt: skip


# -- fits on training parts
class _Fits:
    """Fits learners on parts of the folds, several at a time."""

    def __init__(self, board: Leaderboard, n_jobs: int | None):
        self.board, self.n_jobs = board, n_jobs
        train, test = board.splits[0]
        self.ratio = len(test) / len(train)
        self._models: dict[str, list[Any]] = {}

    def answers(self, jobs: Sequence[tuple[Any, Views, np.ndarray, np.ndarray, np.ndarray]]) -> list[Any]:
        """Answers of (learner, X, y, train, test) for the held-out samples; None where it could not be fitted."""
        found: list[Any] = Parallel(n_jobs=self.n_jobs)(delayed(_answers)(*job) for job in jobs)
        return found

    def measure(self, truth: np.ndarray, answers: np.ndarray) -> float:
        """The score of answers."""
        return float(r2_score(truth, answers) if self.board.numbers else accuracy_score(truth, answers))

    def models(self, row: Comparison, known: Any, X: Views, y: np.ndarray) -> list[Any]:
        """The learner of a row, fitted on each training part."""
        if row.name not in self._models:
            self._models[row.name] = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit)(_set(known[row.name][0], chosen), views_of(row.name, X), y, train)
                for chosen, (train, _) in zip(row.parameters, self.board.splits, strict=True)
            )
        return self._models[row.name]


def _set(learner: Any, parameters: dict[str, Any]) -> Any:
    return clone(learner).set_params(**parameters)


def _fit(learner: Any, X: Views, y: np.ndarray, train: np.ndarray) -> Any:
    return fit_quietly(learner, X[train], y[train])


def _answers(learner: Any, X: Views, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Any:
    try:
        return _fit(learner, X, y, train).predict(X[test])
    except ValueError:  # too few samples, or one class only
        return None


def _chosen(parameters: dict[str, Any], model: Any) -> dict[str, Any]:
    """What the search chose, and what the learner chose by itself, as names and values of the learner."""
    last = learner_of(model)
    given = last.get_params()
    names = [key.partition(f"{type(last).__name__.lower()}__")[2] for key in parameters]
    choosing = ("alpha", "between", "metric_penalty")
    own = {name: getattr(last, f"{name}_") for name in choosing if hasattr(last, f"{name}_")}
    return {**{name: given[name] for name in names}, **own}


# -- the data
def _patterns(X: Views) -> list[tuple[tuple[bool, ...], int]]:
    return Counter(map(tuple, presence(X).tolist())).most_common()


def _alignments(X: Views, y: np.ndarray, board: Leaderboard) -> np.ndarray:
    """Alignments between views, and of each with the target, on samples that have both."""
    rng = np.random.default_rng(board.random_state)
    chosen, m = default_kernels(X) or {}, len(X.names)
    ideal = (y - y.mean())[:, None] if board.numbers else (y[:, None] == np.unique(y)).astype(np.float64)
    out, there = np.full((m + 1, m + 1), np.nan), presence(X)
    np.fill_diagonal(out, 1.0)

    def gram(v: int, rows: np.ndarray) -> np.ndarray:
        name = X.names[v]
        if X.kind(name) == "gram":
            return np.asarray(X[rows].block(name).values)[:, rows]
        block = X[rows][name]
        block = np.nan_to_num(StandardScaler().fit_transform(block)) if X.kind(name) == "dense" else block
        return np.asarray(as_kernel(chosen.get(name, "rbf")).resolved(block)(block))

    for v in range(m):
        for w in range(v + 1, m + 1):
            rows = np.flatnonzero(there[:, v] & (there[:, w] if w < m else True))
            if len(rows) < 3:
                continue
            rows = np.sort(rng.permutation(rows)[:SAMPLES])
            other = gram(w, rows) if w < m else ideal[rows] @ ideal[rows].T
            out[v, w] = out[w, v] = alignment(gram(v, rows), other)
    return out


# -- the views
def _weights(last: Any) -> dict[str, float]:
    weights = weights_of(last)
    if weights is None or len(weights) != len(getattr(last, "view_names_in_", ())):
        return {}
    total = np.abs(weights).sum() or 1.0
    return dict(zip(last.view_names_in_, (np.abs(weights) / total).tolist(), strict=True))


def _losses(fits: _Fits, row: Comparison, X: Views, y: np.ndarray) -> dict[str, tuple[float, float, float]]:
    """The score lost where a view is left out of training and of prediction, fold by fold, on the same samples."""
    jobs, places = [], []
    for v, name in enumerate(X.names):
        kept = np.flatnonzero(np.delete(presence(X), v, axis=1).any(axis=1))  # others have nothing left to learn from
        less = X[kept][[other for other in X.names if other != name]]
        known = candidates(less, y[kept], numbers=fits.board.numbers)
        if row.name not in known:
            continue
        for chosen, split in zip(row.parameters, fits.board.splits, strict=True):
            train, test = (np.flatnonzero(np.isin(kept, part)) for part in split)
            if len(train) and len(test) > 1:
                jobs.append((_set(known[row.name][0], chosen), less, y[kept], train, test))
                places.append((name, kept[test]))
    lost: dict[str, list[float]] = {}
    rights: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for (name, test), answers in zip(places, fits.answers(jobs), strict=True):
        if answers is not None:
            whole = row.answers[test]
            lost.setdefault(name, []).append(fits.measure(y[test], whole) - fits.measure(y[test], answers))
            rights.setdefault(name, []).append((whole == y[test], answers == y[test]))
    found = {}
    for name, values in lost.items():
        ours, theirs = (np.concatenate(part) for part in zip(*rights[name], strict=True))
        pair = None if fits.board.numbers else (ours, theirs)
        found[name] = (float(np.mean(values)), *difference_interval(np.array(values), fits.ratio, pair))
    return found


def _spoken(
    fits: _Fits, board: Leaderboard, known: Any, X: Views, y: np.ndarray
) -> tuple[str, tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray] | None]:
    """The best learner whose views answer one by one; votes, spreads and answers of held-out samples."""
    for row in board:
        if row.name.endswith(" alone") or row.name == "EarlyFusion" or len(X.names) < 2:
            continue
        learner = learner_of(known[row.name][0])
        if not hasattr(learner, "view_decision_function") or hasattr(learner, "metric"):
            continue  # where views meet in a metric, a view's part of the answer is none by itself
        m = len(X.names)
        votes, spread = np.full((len(X), m), None, dtype=object), np.full(len(X), np.nan)
        for model, (_, test) in zip(fits.models(row, known, X, y), board.splits, strict=True):
            shown, last = shown_to_learner(model, X[test]), learner_of(model)
            told = view_agreement(last, shown)
            spread[test] = told.spread
            if "votes" in told:
                votes[test] = told.votes
            else:
                own = last.view_decision_function(shown).reshape(len(test), m)
                own = model.transformer_.inverse_transform(own.reshape(-1, 1)).reshape(len(test), m)
                votes[test] = np.where(np.isnan(own), None, own)
                spread[test] *= model.transformer_.scale_[0]
        return row.name, (X.names, votes, spread, row.answers)
    return "", None


def _disputes(
    held: Any, y: np.ndarray, names: Sequence[str], numeric: bool, most: int = 12
) -> tuple[tuple[int, float] | None, tuple[int, float] | None, list[Disagreement]]:
    if held is None:
        return None, None, []
    _, votes, spread, answers = held
    several = ~np.isnan(spread)
    agreed = disputed = None
    if numeric:
        chosen = np.flatnonzero(several)
    else:
        differ = several & np.array([len({str(v) for v in row if v is not None}) > 1 for row in votes])
        right = np.asarray(answers == y)
        together = several & ~differ
        agreed = (int(together.sum()), float(right[together].mean())) if together.any() else None
        disputed = (int(differ.sum()), float(right[differ].mean())) if differ.any() else None
        chosen = np.flatnonzero(differ)
    show = (lambda v: f"{float(v):.4g}") if numeric else str
    rows = [
        Disagreement(
            names[i], tuple("" if v is None else show(v) for v in votes[i]), show(answers[i]), show(y[i]),
            float(spread[i]),
        )
        for i in chosen[np.argsort(-spread[chosen], kind="stable")][:most]
    ]  # fmt: skip
    return agreed, disputed, rows


# -- how sure, and with how many samples
def _calibrated(fits: _Fits, row: Comparison, known: Any, X: Views, y: np.ndarray) -> tuple[np.ndarray, str]:
    """Confidence in held-out answers beside the share that is right, by bins of equal numbers of samples.

    Probabilities are taken as they are. Of scores, the lead of the first over the second is turned into a probability
    of being right by a logistic curve fitted on the other folds.
    """
    part, right = views_of(row.name, X), (row.answers == y).astype(int)
    models, sure = fits.models(row, known, X, y), np.full(len(y), np.nan)
    if hasattr(models[0], "predict_proba"):
        for model, (_, test) in zip(models, fits.board.splits, strict=True):
            sure[test] = model.predict_proba(part[test]).max(axis=1)
        return _binned(sure, right), "the probabilities of the model"
    if not hasattr(models[0], "decision_function"):
        return np.zeros((0, 3)), ""
    lead = np.empty(len(y))
    for model, (_, test) in zip(models, fits.board.splits, strict=True):
        scores = model.decision_function(part[test])
        ordered = np.sort(scores, axis=1) if scores.ndim == 2 else np.column_stack([np.zeros(len(test)), abs(scores)])
        lead[test] = ordered[:, -1] - ordered[:, -2]
    lead /= lead.std() or 1.0
    for _, test in fits.board.splits:
        others = np.setdiff1d(np.arange(len(y)), test)
        if len(np.unique(right[others])) < 2:
            return np.zeros((0, 3)), ""
        curve = LogisticRegression(C=1e6).fit(lead[others, None], right[others])
        sure[test] = curve.predict_proba(lead[test, None])[:, 1]
    return _binned(sure, right), "the lead of the best score over the next, made a probability on the other folds"


def _binned(given: np.ndarray, found: np.ndarray, bins: int = 10) -> np.ndarray:
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, max(1, len(order) // 10)))
    return np.array([(given[part].mean(), found[part].mean(), len(part)) for part in parts])


def _deciles(answers: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _binned(np.asarray(answers, dtype=np.float64), y.astype(np.float64))


def _curve(fits: _Fits, row: Comparison, known: Any, X: Views, y: np.ndarray) -> np.ndarray:
    """Held-out scores with part of the training samples, and with all of them."""
    part, numbers = views_of(row.name, X), fits.board.numbers
    full = len(fits.board.splits[0][0])
    least = 10 if numbers else 2 * len(np.unique(y))
    sizes = sorted({size for size in (int(share * full) for share in SHARES) if size >= least})
    rng = np.random.default_rng(fits.board.random_state)
    jobs = [
        (_set(known[row.name][0], chosen), part, y, _few(train, None if numbers else y[train], size, rng), test)
        for size in sizes
        for (train, test), chosen in zip(fits.board.splits, row.parameters, strict=True)
    ]
    answers, rows = fits.answers(jobs), []
    for size in sizes:
        own = [answers.pop(0) for _ in fits.board.splits]
        if all(answer is not None for answer in own):
            scores = np.array(
                [fits.measure(y[test], answer) for answer, (_, test) in zip(own, fits.board.splits, strict=True)]
            )
            low, high = interval(scores, fits.ratio)
            if not numbers:
                least_low, most_high = share_interval(float(scores.mean()), len(y))
                low, high = max(min(low, least_low), 0.0), max(high, most_high)
            rows.append((size, scores.mean(), low, min(high, 1.0)))
    return np.array([*rows, (full, row.score, row.low, row.high)], dtype=np.float64)


def _few(train: np.ndarray, labels: np.ndarray | None, size: int, rng: np.random.Generator) -> np.ndarray:
    """A part of the training samples at random, every class in it as often as among all, and at least once."""
    order = rng.permutation(len(train))
    if labels is None:
        return train[np.sort(order[:size])]
    chosen = []
    for value in np.unique(labels):
        own = order[labels[order] == value]
        chosen.append(own[: max(1, round(size * len(own) / len(train)))])
    return train[np.sort(np.concatenate(chosen))]
