"""Tables and claims of the experiments on multi-omics: differences on the same draws, with corrected intervals."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..evaluation._intervals import mean_interval
from ._experiment import Claim, Results, Table, with_interval
from ._omics_methods import COMPLETE_ONLY, CONSENSUS, METHODS, SETTINGS, SINGLE_CONSENSUS, SINGLE_SVM, TREES

MEASURES = ("accuracy", "balanced accuracy", "macro F1")
HEADS = ["estimator", "settings", "accuracy in percent", "balanced", "macro F1", "log loss"]
MOST_MISSING = 0.5


class Gap(NamedTuple):
    """A mean difference of accuracies in points, and the ends of its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return the mean and half the width of the interval."""
        return f"{self.mean:+.1f}" + (f" ± {self.mean - self.low:.1f}" if np.isfinite(self.low) else "")


def gap(results: Results, one: str, other: str, **given: Any) -> Gap:
    """Return the difference of two methods on the same test rows, corrected for training rows that draws share.

    The ratio of test to training rows is 1/4 in five folds and 211/558 in random splits.
    """
    measure, ratio = ("folds", 1 / 4) if given["rows"] == "folds" else ("accuracy", 211 / 558)
    first, second = (100 * np.ravel(results.values(measure, method=method, **given)) for method in (one, other))
    return Gap(float(np.mean(first - second)), *mean_interval(first - second, ratio))


def best_of(results: Results, methods: Iterable[str], **given: Any) -> str:
    """Return the method with the largest mean accuracy among those that were measured."""
    there = [method for method in methods if results.has("accuracy", method=method, **given)]
    return max(there, key=lambda method: results.mean("accuracy", method=method, **given))


def _percent(results: Results, measure: str, **given: Any) -> str:
    return with_interval(100 * results.values(measure, **given), 1)


def _measured(results: Results, method: str, **given: Any) -> list[str]:
    """Return the row of a method without the difference."""
    head = [method, str(SETTINGS[method] or "none")]
    if not results.has("accuracy", method=method, **given):
        return [*head, "not installed", "", "", ""]
    loss = results.has("log loss", method=method, **given)
    shown = [_percent(results, measure, method=method, **given) for measure in MEASURES]
    return [*head, *shown, results.text("log loss", 3, method=method, **given) if loss else ""]


def compared_tables(results: Results, title: str, **given: Any) -> list[Table]:
    """Return the table of complete samples, and that of missing views."""
    complete = {**given, "missing": 0.0}
    rows = []
    for method in METHODS:
        row = _measured(results, method, **complete)
        differs = method != CONSENSUS and results.has("accuracy", method=method, **complete)
        rows.append([*row, str(gap(results, CONSENSUS, method, **complete)) if differs else ""])
    alone = {
        name: _percent(results, name, method=SINGLE_SVM, **complete)
        for name in ("mrna alone", "mirna alone", "protein alone", "methylation alone", "gene alone", "lipid alone")
        if results.has(name, method=SINGLE_SVM, **complete)
    }
    rows += [[f"SVM, {name}", "12", text, "", "", "", ""] for name, text in alone.items()]
    return [Table(title, [*HEADS, "Consensus less it"], rows), _missing_table(results, title, **given)]


def _missing_table(results: Results, title: str, **given: Any) -> Table:
    shares = [share for share in results.levels("missing") if share]
    rows = []
    for method in METHODS:
        if method in COMPLETE_ONLY:
            continue
        shown = [_percent(results, "accuracy", method=method, **{**given, "missing": share}) for share in shares]
        last = {**given, "missing": shares[-1]}
        rows.append([method, *shown, str(gap(results, CONSENSUS, method, **last)) if method != CONSENSUS else ""])
    heads = ["estimator", *(f"{100 * share:.0f}% missing" for share in shares), "Consensus less it, last column"]
    return Table(f"{title}, views missing at random: accuracy in percent", heads, rows)


def published_table(results: Results, title: str, **given: Any) -> Table:
    """Return the table of a published split; draws differ in the inner folds and the trees alone."""
    given = {**given, "rows": "published"}
    there = {cell["method"] for cell, _ in results.cells if all(cell.get(name) == given[name] for name in given)}
    rows = [_measured(results, method, **given) for method in METHODS if method in there]
    return Table(title, HEADS, rows)


def compared_claims(results: Results, **given: Any) -> list[Claim]:
    """Return what we expect of every set, and whether it was so."""
    complete, few = {**given, "missing": 0.0}, {**given, "missing": MOST_MISSING}
    rivals = [method for method in METHODS if method != CONSENSUS]
    single = best_of(results, (SINGLE_CONSENSUS, SINGLE_SVM), **complete)
    rival = best_of(results, rivals, **complete)
    trees = best_of(results, TREES, **complete)
    able = best_of(results, [method for method in rivals if method not in COMPLETE_ONLY], **few)
    over_single, over_trees = gap(results, CONSENSUS, single, **complete), gap(results, CONSENSUS, trees, **complete)
    over_rival, over_able = gap(results, CONSENSUS, rival, **complete), gap(results, CONSENSUS, able, **few)
    return [
        Claim(
            "Consensus on all views is more accurate than the best single view.",
            over_single.low > 0,
            f"{over_single} points over {single}",
            "The interval does not exclude 0: one view has nearly all that decides the classes, or the set is small.",
        ),
        Claim(
            "No tuned rival is more accurate than Consensus beyond the interval.",
            over_rival.high >= 0,
            f"{over_rival} points over {rival}, the best of {len(rivals)} on the test rows",
            "This rival is more accurate than Consensus, also beyond the interval.",
        ),
        Claim(
            "Consensus is more accurate than random forest and gradient boosting.",
            over_trees.low > 0,
            f"{over_trees} points over {trees}",
            "The interval does not exclude 0.",
        ),
        _loss_claim(results, **complete),
        Claim(
            "With half of the views missing, no other estimator is more accurate than Consensus beyond the interval.",
            over_able.high >= 0,
            f"{over_able} points over {able}",
            "This estimator is more accurate than Consensus, also beyond the interval.",
        ),
    ]


def _loss_claim(results: Results, **given: Any) -> Claim:
    losses = {
        method: results.mean("log loss", method=method, **given)
        for method in METHODS
        if method != CONSENSUS and results.has("log loss", method=method, **given)
    }
    best = min(losses, key=lambda method: losses[method])
    ours = results.mean("log loss", method=CONSENSUS, **given)
    return Claim(
        "Consensus has the smallest log loss of the estimators with probabilities.",
        ours < losses[best],
        f"{ours:.3f}, and {losses[best]:.3f} of {best}",
        "The probabilities of this estimator are better.",
    )
