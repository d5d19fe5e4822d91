"""Learners side by side on one set of samples: nested cross-validation, confidence intervals, times."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from .._progress import progress
from ..views.container import Views, as_views
from .candidates import candidates, default_kernels, is_numbers, learner_of, views_of

__all__ = ["Comparison", "Leaderboard", "candidates", "compare", "default_kernels"]


@dataclass(frozen=True)
class Comparison:
    """How one learner did.

    Parameters
    ----------
    name : str
        The learner.
    scores : tuple of float
        Held-out scores, one per outer fold.
    seconds : float
        The mean time of a fold, the search for parameters included.
    low, high : float
        The 95 % confidence interval of the mean score, corrected for folds that share samples (Nadeau and Bengio 2003);
        of accuracies at least as wide as that of a share of so many samples (Wilson 1927), since few folds may agree by
        chance.
    answers : array of shape (n_samples,)
        What was predicted for each sample while it was held out.
    parameters : tuple of dict
        What the search chose in each fold.
    """

    name: str
    scores: tuple[float, ...]
    seconds: float
    low: float
    high: float
    answers: np.ndarray
    parameters: tuple[dict[str, Any], ...]

    @property
    def score(self) -> float:
        """The mean score."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Leaderboard(Sequence[Comparison]):
    """Learners by their scores, the best first; prints as a table.

    Parameters
    ----------
    rows : tuple of Comparison
        The learners.
    splits : tuple of (array, array)
        Training and held-out samples of each outer fold.
    measure : str
        What the scores are, ``"accuracy"`` or ``"R2"``.
    inner : int
        The folds of the search.
    random_state : int
        The seed of the folds.
    failed : dict
        Learners that could not be fitted on these data, and why.

    Examples
    --------
    >>> from consilience.evaluation.comparison import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> board = compare(*load_breast_cancer_views(return_X_y=True), learners=["error alone"], folds=2)
    >>> len(board), board[0].name, board.measure
    (1, 'error alone', 'accuracy')
    """

    rows: tuple[Comparison, ...]
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]
    measure: str
    inner: int
    random_state: int
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def numbers(self) -> bool:
        """Whether numbers are predicted, and not classes."""
        return self.measure == "R2"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows], default=0)
        lines = [f"{'':<{width}}  {self.measure:>8}  {'95 % interval':>15}  {'seconds':>7}"]
        lines += [
            f"{row.name:<{width}}  {row.score:>8.4f}  {row.low:>7.4f} {row.high:>7.4f}  {row.seconds:>7.2f}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = [
            (row.name, f"{row.score:.4f}", f"{row.low:.4f} to {row.high:.4f}", f"{row.seconds:.2f}")
            for row in self.rows
        ]
        head = "".join(f"<th>{name}</th>" for name in ("learner", self.measure, "95 % interval", "seconds"))
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def fitted(self, name: str, X: Any, y: Any) -> Any:
        """Fit a learner of the board on all samples, its parameters chosen as in the folds.

        Parameters
        ----------
        name : str
            A learner of the board.
        X, y : Views and array-like
            The samples that were compared on.

        Returns
        -------
        estimator
            The fitted learner behind its scaling; `learner_of` finds it in there.
        """
        X, y = as_views(X), np.asarray(y)
        search = _search(
            candidates(X, y, numbers=self.numbers)[name], _folds(self.numbers, self.inner, self.random_state)
        )
        found = fit_quietly(search, views_of(name, X), y)
        return getattr(found, "best_estimator_", found)


def compare(
    X: Any,
    y: Any,
    *,
    learners: Iterable[str] | None = None,
    numbers: bool | None = None,
    folds: int = 5,
    inner: int = 3,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Leaderboard:
    """Compare learners by nested cross-validation: parameters are chosen within the training part of each fold.

    Parameters
    ----------
    X : Views or what `as_views` reads
        The samples.
    y : array-like of shape (n_samples,)
        Classes, or numbers for regression.
    learners : iterable of str, optional
        Which of `candidates`; all by default.
    numbers : bool, optional
        Whether y has numbers to predict, and not classes; by default where they are not whole.
    folds, inner : int, default=5 and 3
        Outer folds, and inner ones for the search.
    random_state : int, default=0
        The seed of the folds.
    n_jobs : int, optional
        How many folds are worked on at a time, by as many processes; -1 is one per core.
    verbose : bool, default=False
        Whether to show how far it is, in a terminal or a notebook.

    Returns
    -------
    Leaderboard
        The learners, the best first.

    Examples
    --------
    >>> from consilience.evaluation.comparison import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, learners=["LateFusion", "error alone"], folds=3)
    >>> board[0].name
    'LateFusion'
    """
    X, y = as_views(X), np.asarray(y)
    _check_targets(X, y)
    numbers = is_numbers(y) if numbers is None else numbers
    known = candidates(X, y, numbers=numbers)
    chosen = list(known) if learners is None else list(dict.fromkeys(learners))
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"There is no learner '{unknown[0]}' to compare here; there are {', '.join(known)}.")
    fewest = _check_folds(y, folds, numbers)
    splits = tuple(_folds(numbers, folds, random_state).split(np.zeros(len(y)), None if numbers else y))
    within = _folds(numbers, max(2, min(inner, fewest)), random_state)
    searches = {name: _search(known[name], within) for name in chosen}
    places = _turns([name for name in chosen if hasattr(learner_of(known[name][0]), "partial_fit")], chosen, folds)
    found: dict[str, dict[int, _Fold | str]] = {name: {} for name in chosen}
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fold)(searches[name], views_of(name, X), y, *splits[k]) for name, k in places
    )
    with progress(verbose, f"{places[0][0]}, fold 1 of {folds}") as told:
        for done, ((name, k), part) in enumerate(zip(places, work, strict=True), start=1):
            found[name][k] = part
            following = places[min(done, len(places) - 1)]
            told(f"{following[0]}, fold {following[1] + 1} of {folds}", done / len(places))
    failed = {n: next(p for p in parts.values() if isinstance(p, str)) for n, parts in found.items() if _fails(parts)}
    if len(failed) == len(chosen):
        raise ValueError(f"No learner could be fitted. {chosen[0]}: {failed[chosen[0]]}")
    rows = [
        _row(name, [parts[k] for k in range(folds)], splits, numbers)
        for name, parts in found.items()
        if name not in failed
    ]
    rows.sort(key=lambda row: -row.score)
    return Leaderboard(tuple(rows), splits, "R2" if numbers else "accuracy", within.n_splits, random_state, failed)


def _fails(parts: Mapping[int, Any]) -> bool:
    return any(isinstance(part, str) for part in parts.values())


def _check_targets(X: Views, y: np.ndarray) -> None:
    if y.ndim != 1:
        raise ValueError(f"y must have one target per sample; got the shape {y.shape}. Compare one column at a time.")
    if len(X) != len(y):
        raise ValueError(f"The views have {len(X)} samples and y has {len(y)}; they must agree.")
    lost = sum(value is None or value != value for value in y.tolist())
    if lost:
        raise ValueError(f"{lost} samples have no target; leave them out of the comparison.")
    kinds = sorted({type(value).__name__ for value in y.tolist()})
    if y.dtype == object and len(kinds) > 1:
        raise ValueError(f"The classes are of several types ({', '.join(kinds)}). Give all as strings.")


def _turns(online: Sequence[str], chosen: Sequence[str], folds: int) -> list[tuple[str, int]]:
    """Learners and folds in the order they are worked on: online learners last, but for a fold of the first three.

    Their loops are compiled where they are first used ever, which takes seconds: processes begin with that, each with
    other loops, and do not all wait for it later.
    """
    first = [(name, 0) for name in online[:3]]
    rest = [(name, k) for name in (*(n for n in chosen if n not in online), *online) for k in range(folds)]
    return first + [place for place in rest if place not in first]


def _check_folds(y: np.ndarray, folds: int, numbers: bool) -> int:
    """Whether folds can be made; the fewest samples that a class has in a training part."""
    if numbers:
        if len(y) < 2 * folds:
            raise ValueError(
                f"There are {len(y)} samples, fewer than two for each of the {folds} folds. Take fewer folds."
            )
        return len(y) - len(y) // folds
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"All samples are of the class '{values[0]}'; there is nothing to compare learners by.")
    if counts.min() < folds:
        one = f"The class '{values[counts.argmin()]}' has {counts.min()} samples, fewer than the {folds} folds."
        whole = y.dtype.kind in "iuf"
        raise ValueError(
            f"{one} Take fewer folds, or drop it{'; or predict numbers: numbers=True, --numbers' if whole else ''}."
        )
    return int(counts.min() - np.ceil(counts.min() / folds))


def _folds(numbers: bool, n: int, random_state: int) -> Any:
    return (KFold if numbers else StratifiedKFold)(n, shuffle=True, random_state=random_state)


def _search(known: tuple[Any, dict[str, list[Any]]], cv: Any) -> Any:
    learner, grid = known
    return GridSearchCV(learner, grid, cv=cv, error_score="raise") if grid else learner


@dataclass(frozen=True)
class _Fold:
    """What one outer fold gave."""

    score: float
    seconds: float
    answers: np.ndarray
    parameters: dict[str, Any]


def _fold(search: Any, X: Views, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> _Fold | str:
    """What a fold gave, or the first line of why it gave nothing."""
    start = time.perf_counter()
    try:
        model = fit_quietly(clone(search), X[train], y[train])
    except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
        return (str(error).strip() or type(error).__name__).splitlines()[0]
    held = X[test]
    score, answers = model.score(held, y[test]), model.predict(held)
    return _Fold(float(score), time.perf_counter() - start, answers, getattr(model, "best_params_", {}))


def _row(name: str, parts: Sequence[Any], splits: Any, numbers: bool) -> Comparison:
    scores = np.array([part.score for part in parts])
    ratio = len(splits[0][1]) / len(splits[0][0])
    low, high = interval(scores, ratio)
    if not numbers:
        least, most = share_interval(float(scores.mean()), sum(len(test) for _, test in splits))
        low, high = max(min(low, least), 0.0), max(high, most)
    answers = np.empty(sum(len(test) for _, test in splits), dtype=np.asarray(parts[0].answers).dtype)
    for part, (_, test) in zip(parts, splits, strict=True):
        answers[test] = part.answers
    seconds = float(np.mean([part.seconds for part in parts]))
    chosen = tuple(part.parameters for part in parts)
    return Comparison(name, tuple(map(float, scores)), seconds, low, min(high, 1.0), answers, chosen)


def fit_quietly(model: Any, X: Views, y: np.ndarray) -> Any:
    """Fit; that an iteration was cut short, or a class is rare, shows in the score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        return model.fit(X, y)


def interval(scores: np.ndarray, ratio: float) -> tuple[float, float]:
    """A 95 % t-interval of the mean whose variance counts that training parts overlap: (1/k + n_test/n_train) s²."""
    k, mean = len(scores), float(scores.mean())
    half = float(student.ppf(0.975, k - 1)) * float(np.sqrt((1 / k + ratio) * scores.var(ddof=1))) if k > 1 else np.inf
    return mean - half, mean + half


def difference_interval(
    lost: np.ndarray, ratio: float, rights: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[float, float]:
    """An interval of mean differences by folds; of accuracies at least as wide as that of paired answers.

    `rights` says for the same samples which answers of the one and of the other are right.
    """
    low, high = interval(lost, ratio)
    if rights is None:
        return low, high
    n, apart = len(rights[0]), int(np.sum(rights[0] != rights[1]))
    half = float(norm.ppf(0.975)) * np.sqrt(apart + 1) / n  # one more than seen: a few samples may agree by chance
    mean = float(lost.mean())
    return min(low, mean - half), max(high, mean + half)


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n samples."""
    z = float(norm.ppf(0.975)) / np.sqrt(n)
    middle, half = share + z**2 / 2, z * np.sqrt(share * (1 - share) + z**2 / 4)
    return float((middle - half) / (1 + z**2)), float((middle + half) / (1 + z**2))
