"""Learners side by side on one set of samples: nested cross-validation, confidence intervals, times."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target

from ._progress import progress
from .batch.fusion import EarlyFusion, LateFusion
from .batch.kernels_learned import MultipleKernelRidge, MultipleKernelRidgeClassifier
from .batch.margin import MaxMarginClassifier
from .batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
from .batch.ridge_cv import CoRegularizedRidgeClassifierCV, CoRegularizedRidgeCV
from .batch.svc import CoRegularizedSVC
from .kernels import Linear, Spectrum, SubsetTree, normalize
from .online.kernelized import KernelPerceptron, Projectron
from .online.matrix import MatrixPerceptron, OrthogonalPerceptron
from .online.multicue import MultiCueClassifier
from .online.perceptron import OnlinePerceptron, PassiveAggressive
from .online.vector import VectorPerceptron
from .preprocessing import PerView
from .views import Views, as_views

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

    Examples
    --------
    >>> from consilience.comparison import compare
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
        pipeline
            The fitted learner behind its scaling.
        """
        X = as_views(X)
        search = _search(name, X, candidates(X, y), _folds(y, self.inner, self.random_state))
        found = fit_quietly(search, views_of(name, X), np.asarray(y))
        return getattr(found, "best_estimator_", found)


def default_kernels(X: Views) -> dict[str, Any] | None:
    """Return kernels for views that the Gaussian one will not do for: sparse ones, strings, trees, Gram matrices.

    Parameters
    ----------
    X : Views
        The samples.

    Returns
    -------
    dict or None
        Kernels by view; None where no view needs one.

    Examples
    --------
    >>> from consilience import Views
    >>> from consilience.comparison import default_kernels
    >>> default_kernels(Views({"sound": [[1.0], [2.0]], "word": ["yes", "no"]}))
    {'word': normalize(Spectrum(length=1) + Spectrum(length=2) + Spectrum(length=3))}
    """
    found: dict[str, Any] = {}
    for name in X.names:
        kind = X.kind(name)
        if kind == "sparse":
            found[name] = Linear()
        elif kind == "gram":
            found[name] = "precomputed"
        elif kind == "objects":
            first = X[name][int(np.flatnonzero(X.present(name))[0])]
            strings = isinstance(first, (str, bytes, list))
            found[name] = normalize(Spectrum(1) + Spectrum(2) + Spectrum(3) if strings else SubsetTree())
    return found or None


def candidates(X: Views, y: Any) -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Learners to compare and their grids, by name: for classes or for numbers, complete views alone among them.

    Parameters
    ----------
    X : Views
        The samples.
    y : array-like
        Classes or numbers.

    Returns
    -------
    dict
        Name -> (learner on scaled views, grid of its parameters).

    Examples
    --------
    >>> from consilience.comparison import candidates
    >>> from consilience.datasets import load_breast_cancer_views
    >>> list(candidates(*load_breast_cancer_views(return_X_y=True)))[:2]
    ['CoRegularizedRidgeClassifierCV', 'CoRegularizedSVC']
    """
    kernels = default_kernels(X)
    numeric = all(X.kind(name) in ("dense", "sparse", "absent") for name in X.names)
    if is_numbers(y):
        learners, plain = _of_numbers(kernels), (Ridge(), {"estimator__alpha": [0.1, 1.0, 10.0, 100.0]})
    else:
        widths = {X[name].shape[1] for name in X.names} if numeric else set()
        learners = _of_classes(kernels, numeric, len(widths) == 1)
        plain = LogisticRegression(max_iter=5000), {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    found = {type(learner).__name__: (learner, grid) for learner, grid in learners}
    if numeric:
        if X.mask is None:
            found["EarlyFusion"] = EarlyFusion(plain[0]), plain[1]
        found["LateFusion"] = LateFusion(plain[0]), plain[1]
        for name in X.names if len(X.names) > 1 else ():
            if X.present(name).all():  # else some samples would have no answer
                found[f"{name} alone"] = LateFusion(plain[0]), plain[1]
    return {name: _scaled(views_of(name, X), learner, grid) for name, (learner, grid) in found.items()}


def _of_numbers(kernels: Any) -> list[tuple[Any, dict[str, list[Any]]]]:
    return [
        (CoRegularizedRidgeCV(kernels=kernels, betweens=(0.0, 1e-4)), {}),
        (ViewMetricRidgeCV(kernels=kernels), {}),
        (MultipleKernelRidge(kernels=kernels), {"alpha": [1e-2, 1e-1, 1.0]}),
    ]


def _of_classes(kernels: Any, numeric: bool, one_width: bool) -> list[tuple[Any, dict[str, list[Any]]]]:
    online = {"kernels": kernels, "average": True, "random_state": 0}
    found = [
        (CoRegularizedRidgeClassifierCV(kernels=kernels, betweens=(0.0, 1e-4)), {}),
        (CoRegularizedSVC(kernels=kernels), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}),
        (ViewMetricRidgeClassifierCV(kernels=kernels), {}),
        (MultipleKernelRidgeClassifier(kernels=kernels), {"alpha": [1e-2, 1e-1, 1.0]}),
        (MaxMarginClassifier(kernels=kernels), {"C": [0.1, 1.0, 10.0]}),
        (OrthogonalPerceptron("rbf", **online), {"p": [1.0, 2.0, 4.0]}),
        (PassiveAggressive("rbf", **online), {}),
        (KernelPerceptron(**online), {}),
        (Projectron(**online), {}),
        (MultiCueClassifier(**online), {}),
    ]
    if numeric:
        found += [(OnlinePerceptron(average=True, random_state=0), {}), (VectorPerceptron(random_state=0), {})]
    if one_width:
        found.append((MatrixPerceptron("rbf", average=True, random_state=0), {}))
    return found


def _scaled(X: Views, learner: Any, grid: Mapping[str, list[Any]]) -> tuple[Any, dict[str, list[Any]]]:
    """The learner behind the scaling of dense views, and the grid by the names of that pipeline."""
    dense = {name: StandardScaler() for name in X.names if X.kind(name) == "dense"}
    key = type(learner).__name__.lower()
    pipeline = make_pipeline(PerView(dense), learner) if dense else make_pipeline(learner)
    return pipeline, {f"{key}__{parameter}": values for parameter, values in grid.items()}


def is_numbers(y: Any) -> bool:
    """Whether targets are numbers, and not classes."""
    return type_of_target(np.asarray(y)) in ("continuous", "continuous-multioutput")


def views_of(name: str, X: Views) -> Views:
    """The views that a learner of the board takes: all, or one alone."""
    alone = name.removesuffix(" alone")
    return X[[alone]] if alone != name else X


def compare(
    X: Any,
    y: Any,
    *,
    learners: Iterable[str] | None = None,
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
    >>> from consilience.comparison import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, learners=["LateFusion", "error alone"], folds=3)
    >>> board[0].name
    'LateFusion'
    """
    X, y = as_views(X), np.asarray(y)
    if len(X) != len(y):
        raise ValueError(f"The views have {len(X)} samples and y has {len(y)}; they must agree.")
    known = candidates(X, y)
    chosen = list(known) if learners is None else list(learners)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"There is no learner '{unknown[0]}' to compare here; there are {', '.join(known)}.")
    if not is_numbers(y):
        _check_classes(y, folds)
    splits = tuple(_folds(y, folds, random_state).split(np.zeros(len(y)), y))
    searches = {name: _search(name, X, known, _folds(y, inner, random_state)) for name in chosen}
    places = _turns([name for name in chosen if hasattr(known[name][0][-1], "partial_fit")], chosen, folds)
    found: dict[str, dict[int, _Fold]] = {name: {} for name in chosen}
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fold)(searches[name], views_of(name, X), y, *splits[k]) for name, k in places
    )
    with progress(verbose, f"{places[0][0]}, fold 1 of {folds}") as told:
        for done, ((name, k), part) in enumerate(zip(places, work, strict=True), start=1):
            found[name][k] = part
            following = places[min(done, len(places) - 1)]
            told(f"{following[0]}, fold {following[1] + 1} of {folds}", done / len(places))
    numbers = is_numbers(y)
    rows = [_row(name, [parts[k] for k in range(folds)], splits, numbers) for name, parts in found.items()]
    measure = "R2" if numbers else "accuracy"
    return Leaderboard(tuple(sorted(rows, key=lambda row: -row.score)), splits, measure, inner, random_state)


def _turns(online: Sequence[str], chosen: Sequence[str], folds: int) -> list[tuple[str, int]]:
    """Learners and folds in the order they are worked on: online learners last, but for one fold that comes first.

    Their loops are compiled where they are used for the first time ever, which takes seconds: one process does it while
    the others go through the rest.
    """
    last = [(name, k) for name in online for k in range(folds)]
    return last[:1] + [(name, k) for name in chosen if name not in online for k in range(folds)] + last[1:]


def _check_classes(y: np.ndarray, folds: int) -> None:
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"All samples are of the class '{values[0]}'; there is nothing to compare learners by.")
    if counts.min() < folds:
        raise ValueError(
            f"The class '{values[counts.argmin()]}' has {counts.min()} samples, fewer than the {folds} folds. Take "
            "fewer folds, or drop it."
        )


def _folds(y: Any, n: int, random_state: int) -> Any:
    return (KFold if is_numbers(y) else StratifiedKFold)(n, shuffle=True, random_state=random_state)


def _search(name: str, X: Views, known: Mapping[str, tuple[Any, dict[str, list[Any]]]], cv: Any) -> Any:
    learner, grid = known[name]
    return GridSearchCV(learner, grid, cv=cv, refit=True) if grid else learner


@dataclass(frozen=True)
class _Fold:
    """What one outer fold gave."""

    score: float
    seconds: float
    answers: np.ndarray
    parameters: dict[str, Any]


def _fold(search: Any, X: Views, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> _Fold:
    start = time.perf_counter()
    model = fit_quietly(clone(search), X[train], y[train])
    held = X[test]
    score, answers = model.score(held, y[test]), model.predict(held)
    return _Fold(float(score), time.perf_counter() - start, answers, getattr(model, "best_params_", {}))


def _row(name: str, parts: list[_Fold], splits: Any, numbers: bool) -> Comparison:
    scores = np.array([part.score for part in parts])
    ratio = len(splits[0][1]) / len(splits[0][0])
    low, high = interval(scores, ratio)
    if not numbers:
        least, most = _share_interval(float(scores.mean()), sum(len(test) for _, test in splits))
        low, high = max(min(low, least), 0.0), max(high, most)
    answers = np.empty(sum(len(test) for _, test in splits), dtype=np.asarray(parts[0].answers).dtype)
    for part, (_, test) in zip(parts, splits, strict=True):
        answers[test] = part.answers
    seconds = float(np.mean([part.seconds for part in parts]))
    chosen = tuple(part.parameters for part in parts)
    return Comparison(name, tuple(map(float, scores)), seconds, low, min(high, 1.0), answers, chosen)


def fit_quietly(model: Any, X: Views, y: np.ndarray) -> Any:
    """Fit; that an iteration was cut short shows in the score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def interval(scores: np.ndarray, ratio: float) -> tuple[float, float]:
    """A 95 % t-interval of the mean whose variance counts that training parts overlap: (1/k + n_test/n_train) s²."""
    k, mean = len(scores), float(scores.mean())
    half = float(student.ppf(0.975, k - 1)) * float(np.sqrt((1 / k + ratio) * scores.var(ddof=1))) if k > 1 else np.inf
    return mean - half, mean + half


def _share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n samples."""
    z = float(norm.ppf(0.975)) / np.sqrt(n)
    middle, half = share + z**2 / 2, z * np.sqrt(share * (1 - share) + z**2 / 4)
    return float((middle - half) / (1 + z**2)), float((middle + half) / (1 + z**2))
