"""Results of a comparison: one row per estimator, differences between them, and tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..io.writing import csv_lines, write_atomically
from ..views._samples import check_unique_names, in_order_of, sample_text
from ..views.conversion import as_views
from ._differences import Difference, PairedScores
from ._measures import HeldOutPart
from ._running import fit_part, make_search
from .candidates import Candidates, samples_for, simplicity, views_of

__all__ = ["Comparison", "Leaderboard"]


@dataclass(frozen=True)
class Comparison:
    """Result of one estimator in a comparison.

    Parameters
    ----------
    name : str
        Name of the estimator.
    scores : tuple of float
        First measure on the test part of each outer fold; NaN where it is undefined.
    fit_time : float
        Mean time of a fit on one training part in seconds, including the search for parameters.
    low, high : float
        95% confidence interval of the score; see `compare`.
    predictions : array of shape (n_samples,)
        Prediction of each sample by the models that were fitted without it: the mean, or the most frequent class, over
        the folds that test it. NaN or None where `scored` is False.
    best_params : tuple of dict
        Parameters that the search chose in each fold.
    title : str
        Plain-language name. Default: the name.
    kind : {"estimator", "single view", "baseline", "own"}
        What the row is: an estimator of this library, one view alone, a baseline, or an estimator of your own.
    scored : array of shape (n_samples,), optional
        Which samples were predicted and scored: those in a test part that have the view, if it is a single view.
        Default: all.
    probabilities : array of shape (n_samples, n_classes) or None
        Held-out probabilities of the classes, for classifiers that have them; NaN where `scored` is False.
    measures : dict
        Name -> tuple of the scores of the folds, for every measure.
    parts : tuple
        Held-out predictions of each fold, for paired tests.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Comparison
    >>> row = Comparison("mine", (0.75, 0.25), 0.1, 0.0, 1.0, np.array([1, 0, 1, 1]), ({}, {}))
    >>> row.score
    0.5
    """

    name: str
    scores: tuple[float, ...]
    fit_time: float
    low: float
    high: float
    predictions: np.ndarray
    best_params: tuple[dict[str, Any], ...]
    title: str = ""
    kind: str = "estimator"
    scored: np.ndarray = field(default=None, repr=False)  # type: ignore[arg-type]
    probabilities: np.ndarray | None = field(default=None, repr=False)
    measures: dict[str, tuple[float, ...]] = field(default_factory=dict)
    parts: tuple[HeldOutPart, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)
        if self.scored is None:
            object.__setattr__(self, "scored", np.ones(len(self.predictions), dtype=bool))

    @property
    def score(self) -> float:
        """Mean of the scores over the folds in which the measure is defined."""
        return _mean(self.scores)


def _mean(scores: Sequence[float]) -> float:
    defined = [score for score in scores if not np.isnan(score)]
    return float(np.mean(defined)) if defined else float("nan")


@dataclass(frozen=True)
class Leaderboard(Sequence[Comparison]):
    """Compared estimators in the order of their scores, the best first; prints as a table.

    The first row always predicts every tested sample. A single view that some samples lack is scored on the others, so
    it can have a higher score further down.

    Parameters
    ----------
    rows : tuple of Comparison
        Results of the estimators.
    splits : tuple of (array, array)
        Training and test samples of each outer fold.
    task : {"classification", "regression"}
        Kind of prediction.
    scoring : str
        Name of the first measure, such as "accuracy" or "r2"; it ranks the rows.
    scorer : callable
        Function of a fitted estimator, samples and targets that returns the first measure.
    estimators : dict
        Name -> (estimator, grid) of everything that was compared.
    inner_cv : splitter
        Splitter of the search inside each training part.
    groups : array of shape (n_samples,) or None
        Groups of samples that were kept together.
    random_state : int
        Seed of the folds.
    failed : dict
        Name -> error message of estimators that could not be fitted or scored.
    sample_names : array of shape (n_samples,) or None
        Names of the samples, in the order of the predictions.
    prepare : object
        The preparation of the views inside the folds, as given to `compare`.
    scorings : tuple of str
        Names of all measures.
    classes : array or None
        Classes in sorted order, the columns of the probabilities; None for regression.
    y : array of shape (n_samples,)
        Targets.
    sample_weight : array of shape (n_samples,) or None
        Weights of the samples.
    notes : tuple of str
        Sentences about choices that were made for you, printed below the table.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, estimators=["LateFusion", "error alone"], cv=2, baselines=False)
    >>> [row.name for row in board], board.scoring
    (['LateFusion', 'error alone'], 'accuracy')
    >>> board.difference("LateFusion", "error alone").verdict
    'different'
    """

    rows: tuple[Comparison, ...]
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]
    task: str
    scoring: str
    scorer: Any = field(repr=False)
    estimators: Candidates = field(repr=False)
    inner_cv: Any = None
    groups: np.ndarray | None = field(default=None, repr=False)
    random_state: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    sample_names: np.ndarray | None = field(default=None, repr=False)
    prepare: Any = field(default=None, repr=False)
    scorings: tuple[str, ...] = ()
    classes: np.ndarray | None = field(default=None, repr=False)
    y: np.ndarray | None = field(default=None, repr=False)
    sample_weight: np.ndarray | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def test_ratio(self) -> float:
        """Number of test samples divided by the number of training samples in the first fold."""
        train, test = self.splits[0]
        return len(test) / len(train)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    # -- differences
    @cached_property
    def _paired(self) -> PairedScores:
        y: Any = self.y
        return PairedScores(self.scorer, y, self.classes, self.groups, self.sample_weight, self.test_ratio)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of rows, for which verdicts are corrected."""
        return len(self.rows) * (len(self.rows) - 1) // 2

    def difference(self, first: str, second: str, n_comparisons: int = 1) -> Difference:
        """Return the difference between two estimators, by a paired test of their held-out predictions.

        Parameters
        ----------
        first, second : str
            Names of two rows.
        n_comparisons : int, default=1
            Number of comparisons for which interval and p-value are corrected (Bonferroni). Use 1 for two rows that you
            chose before you saw the scores, and `n_pairs` for rows that you chose by their scores.

        Returns
        -------
        Difference
            Difference, interval, p-value and verdict. The verdict is "different" exactly if the interval does not
            contain 0.

        Notes
        -----
        If two estimators are equally good, each prediction of a sample may have come from either one. So the test swaps
        the two predictions of samples at random (with groups, those of all samples of a group at once). Of areas under
        the curve, the ranks of the scores are swapped. Half of what the swap of sample i changes, while all others
        count half with each prediction, is e_i. Random swaps have the variance Σ e_i² (Rademacher sums, whose tails are
        lighter than normal). One more disagreement, as large as the largest, is added to it. For accuracy this is the
        test of McNemar (1947), with one more disagreement. A few samples with large weights, or of a rare class, have
        most of the variance, so they never prove a difference.

        Other training samples would give other models, which held-out samples do not show. So standard errors are
        multiplied by 1.35 for accuracy, and by the factor of Nadeau and Bengio (2003) for other measures, 1.5 for five
        folds. In simulations of equal estimators with 80 to 300 samples, classes of 10% to 50%,
        up to 60 columns and weights that vary by factors of 1,000, 0 to 5% of the pairs were called different. With
        many more columns than samples it was up to 7%, and for F1 of models that rarely predict the class up to 10%,
        because F1 then depends much on the training samples. A scorer that needs more than predictions is compared over
        the folds (Nadeau and Bengio 2003).
        """
        rows = {row.name: row for row in self.rows}
        for name in (first, second):
            if name not in rows:
                raise KeyError(f"The leaderboard has no row '{name}'. There are {', '.join(rows)}.")
        return self._paired.compare(rows[first], rows[second], n_comparisons)

    def differences(self) -> tuple[Difference, ...]:
        """Return the difference between the best row and each other row, corrected for many comparisons.

        The best row was found by the same predictions, so intervals and p-values are corrected for the number of pairs
        of rows (Bonferroni). So the probability that any verdict "different" is wrong should be at most 5%, if
        estimators that are equal on average are called equal. The tests are not exact, because training parts share
        samples; ``benchmarks/statements.py`` measures how often they err.

        Returns
        -------
        tuple of Difference
            The best row minus each other row, in the order of the rows.
        """
        return self._differences

    @cached_property
    def _differences(self) -> tuple[Difference, ...]:
        return tuple(self._paired.compare(self.rows[0], row, self.n_pairs) for row in self.rows[1:])

    def gain_of_views(self) -> Difference | None:
        """Return how much better estimators of all views are than single views, as one comparison.

        In each fold, the estimator of all views and the single view are those with the best mean score in the other
        folds. So the test samples of a fold take no part in the choice, and nothing needs to be corrected.

        Returns
        -------
        Difference or None
            Chosen estimators of all views minus chosen single views, with the names that were chosen most often. None
            if the comparison has no single view, or no estimator of all views.
        """
        several = [row for row in self.rows if row.kind in ("estimator", "own")]
        single = [row for row in self.rows if row.kind == "single view"]
        return self._paired.compare(self._chosen(several), self._chosen(single)) if several and single else None

    def _chosen(self, rows: Sequence[Comparison]) -> Comparison:
        """Return the row that is chosen most often, with the predictions of the row that each fold chooses."""
        tests = [set(test.tolist()) for _, test in self.splits]
        rows = sorted(rows, key=lambda row: list(self.estimators).index(row.name))  # not by their scores
        chosen = []
        for test in tests:
            others = [k for k, other in enumerate(tests) if not test & other]
            means = [np.nan_to_num(_mean([row.scores[k] for k in others]), nan=-np.inf) for row in rows]
            chosen.append(rows[int(np.argmax(means))])
        parts = tuple(row.parts[k] for k, row in enumerate(chosen))
        scored = np.isin(np.arange(len(rows[0].scored)), np.concatenate([part.test for part in parts]))
        scores = tuple(row.scores[k] for k, row in enumerate(chosen))
        return replace(max(rows, key=chosen.count), parts=parts, scores=scores, scored=scored)

    def simplest(self) -> Comparison:
        """Return the simplest row that is not told apart from the best.

        From simple to complex: the majority class or mean; one view alone; early and late fusion; online estimators;
        other estimators of all views; the consensus of kernels; random forests; boosted trees; estimators of your own.
        Of equally simple rows, the one with the highest score is returned. Too few samples to tell count as not told
        apart. Rows that do not predict every tested sample are left out.

        Returns
        -------
        Comparison
            The simplest row.
        """
        told_apart = {found.second for found in self.differences() if found.verdict == "different"}
        best = self.rows[0]
        rows = [row for row in self.rows if row.name not in told_apart and (row.scored | ~best.scored).all()]
        return min(rows, key=lambda row: simplicity(row.name, row.kind))

    # -- tables
    def _verdicts(self) -> list[str]:
        return ["best", *(found.verdict for found in self.differences())] if self.rows else []

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the cells of the printed table."""
        partial = any(row.scored.sum() < self.rows[0].scored.sum() for row in self.rows)
        others = [name for name in self.scorings if name != self.scoring]
        heads = ["", self.scoring, "95% interval", *others, *(["samples"] if partial else []), "fit time", "verdict"]
        lines = []
        for row, verdict in zip(self.rows, self._verdicts(), strict=True):
            means = [_mean(row.measures[name]) for name in others]
            shown = ["-" if np.isnan(mean) else f"{mean:.4f}" for mean in means]
            count = [f"{row.scored.sum():,}"] if partial else []
            interval = f"{row.low:.4f} to {row.high:.4f}"
            lines.append([row.title, f"{row.score:.4f}", interval, *shown, *count, _seconds(row.fit_time), verdict])
        heads, lines = [*heads, "name"], [[*line, row.name] for line, row in zip(lines, self.rows, strict=True)]
        return heads, lines

    def _remarks(self) -> list[str]:
        """Return the sentences below the table: what the verdict is, failures and choices."""
        remarks = []
        if len(self.rows) > 1:
            remarks = [
                "Verdict: compared with the best row on the same held-out samples, corrected for "
                f"{self.n_pairs} comparisons. Rows that are not told apart may differ by chance.",
                f"Simplest row that is not told apart from the best: {self.simplest().title}.",
            ]
        remarks += [f"{name} could not be fitted: {reason}" for name, reason in self.failed.items()]
        return [*remarks, *self.notes]

    def __str__(self) -> str:
        heads, lines = self._table()
        widths = [max(len(line[k]) for line in [heads, *lines]) for k in range(len(heads))]
        left = {0, len(heads) - 2, len(heads) - 1}
        shown = [
            "  ".join(
                cell.ljust(width) if k in left else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [heads, *lines]
        ]
        n_scored, n_splits = int(self.rows[0].scored.sum()), len(self.splits)
        first = f"{self.scoring} on {n_scored:,} held-out samples, {n_splits} splits"
        return "\n".join([first, "", *shown, "", *self._remarks()]).rstrip()

    def _repr_html_(self) -> str:
        heads, lines = self._table()
        head = "".join(f"<th>{escape(name)}</th>" for name in ["estimator", *heads[1:]])
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self._remarks())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"

    def _columns(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame` and `to_csv`."""
        fields = ("title", "kind", "score", "low", "high")
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.rows] for name in fields}
        best = {"value": 0.0, "p_value": 1.0}
        found = self.differences() if self.rows else ()
        columns["verdict"] = self._verdicts()
        columns["behind_best"] = [best["value"], *(each.value for each in found)] if self.rows else []
        columns["p_value"] = [best["p_value"], *(each.p_value for each in found)] if self.rows else []
        columns["n_scored"] = [int(row.scored.sum()) for row in self.rows]
        columns["fit_time"] = [row.fit_time for row in self.rows]
        for name in self.scorings:
            if name != self.scoring:
                columns[name] = [_mean(row.measures[name]) for row in self.rows]
        columns["best_params"] = [row.best_params for row in self.rows]
        for k in range(len(self.splits)):
            columns[f"split{k}_score"] = [row.scores[k] for row in self.rows]
        return columns

    def to_frame(self) -> Any:
        """Return the results as a pandas DataFrame with one row per estimator.

        Returns
        -------
        pandas.DataFrame
            Columns ``title``, ``kind``, ``score``, ``low``, ``high``, ``verdict``, ``behind_best`` (difference from the
            best row), ``p_value`` (corrected), ``n_scored``, ``fit_time``, the means of the other measures,
            ``best_params`` and the score of each fold, ``split0_score`` and so on. The index is the name.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Leaderboard.to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame(self._columns(), index=pd.Index([row.name for row in self.rows], name="name"))

    def to_csv(self, path: Any) -> None:
        """Write the columns of `to_frame` to a CSV file, completely or not at all.


        Parameters
        ----------
        path : path-like
            File to write.
        """
        columns = self._columns()
        rows = [[row.name, *(values[k] for values in columns.values())] for k, row in enumerate(self.rows)]
        text = csv_lines([["name", *columns], *rows])
        write_atomically(Path(path), lambda file: file.write(text.encode()))

    def predictions_to_frame(self) -> Any:
        """Return the held-out predictions of all estimators as a pandas DataFrame with one row per sample.

        Returns
        -------
        pandas.DataFrame
            One column per estimator. The index has the names of the samples, or their positions if they have none.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Leaderboard.predictions_to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame({row.name: list(row.predictions) for row in self.rows}, index=self.sample_names)

    # -- the model
    def refit(self, name: str, X: Any, y: Any) -> Any:
        """Fit an estimator on all samples, with its parameters chosen as in the folds.

        Parameters
        ----------
        name : str
            Name of a compared estimator.
        X : Views or what `as_views` reads
            The samples of the comparison. Groups and weights of the comparison are matched by the names of the samples.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        estimator
            A new fitted estimator, including its scaling. A single view is fitted on the samples that have it.
        """
        X = as_views(X)
        y = np.asarray(in_order_of(X, y, "y"))
        rows, parts = samples_for(name, X), (self.groups, self.sample_weight)
        places = self._places_of(X, y)[rows] if any(part is not None for part in parts) else None
        groups, weights = (None if part is None else part[places] for part in parts)
        search = clone(make_search(self.estimators[name], self.inner_cv, self.scorer))
        model = fit_part(search, views_of(name, X[rows], self.prepare), y[rows], groups, sample_weight=weights)
        return model.best_estimator_ if self.estimators[name][1] else model

    def _places_of(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Return where samples stand in the comparison, whose groups and weights they get."""
        what = " and ".join(name for name in ("groups", "sample_weight") if getattr(self, name) is not None)
        wanted = (
            "Refit on samples of the comparison, or fit a clone of the estimator with groups and weights of your own."
        )
        names, known = X.sample_names, self.sample_names
        if names is None or known is None:
            if not np.array_equal(y, np.asarray(self.y)):
                raise ValueError(
                    f"The comparison used {what}, which cannot be matched: the samples have no names, and y "
                    f"({len(y)} samples) is not that of the comparison ({len(np.asarray(self.y))}). {wanted}"
                )
            return np.arange(len(y))
        if np.array_equal(names, known):
            return np.arange(len(y))
        check_unique_names(known, "The comparison")
        place = {name: k for k, name in enumerate(known.tolist())}
        new = [row for row, name in enumerate(names.tolist()) if name not in place]
        if new:
            raise ValueError(
                f"The comparison used {what}, but {len(new)} of {len(names)} samples were not in it: "
                f"{sample_text(new, names)}. {wanted}"
            )
        return np.array([place[name] for name in names.tolist()])


def _seconds(time: float) -> str:
    return f"{time:.2f} s"
