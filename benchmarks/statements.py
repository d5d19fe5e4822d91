"""How often statements with a probability hold: python benchmarks/statements.py [NAME ...] [--repeats 200] [--quick]

Simulates intervals, bounds and tests that the library prints with a probability. Data are made, and the truth is known
or is measured on many new samples. Each statement has an ordinary setting and at least one that is hard for it: few
samples, a rare class, more columns than samples, views that repeat each other, missing views. Prints a Markdown table:
the probability that is stated, and the share of repeats in which the statement held, ± its standard error.

Rows without a stated probability ("none") show what a statement does *not* cover. A repeat draws training samples, and
new samples where the truth needs them. If a repeat has many statements (intervals of 200 new samples, tests of a
stream), it counts with the share of them that hold. The standard error is that of the mean over repeats.

Names: streams, sparsity, intervals, sets, scores, differences, external, report, drift, quantiles.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from _statements_models import Known, Line, Plane, tables, truths_of
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer

import consilience as cs
from consilience.datasets import make_regression_views, make_views
from consilience.evaluation.external import proportion
from consilience.kernels import RBF
from consilience.report import examine

NEW = 4000  # samples on which a true score is measured
MEASURES = ("accuracy", "balanced_accuracy", "roc_auc", "r2", "neg_mean_absolute_error", "own")


class Held(NamedTuple):
    """A statement of one repeat: its stated probability (NaN if none is stated), and the share that held."""

    statement: str
    nominal: float
    share: float


class Row(NamedTuple):
    """A statement in one setting: the stated probability, and the shares of the repeats in which it was made."""

    statement: str
    setting: str
    nominal: float
    shares: np.ndarray

    @property
    def measured(self) -> float:
        """Share of the repeats in which the statement held."""
        return float(self.shares.mean())

    @property
    def error(self) -> float:
        """Standard error of the measured share; binomial where a repeat makes one statement."""
        return float(self.shares.std() / np.sqrt(len(self.shares)))

    def __str__(self) -> str:
        nominal = "none" if np.isnan(self.nominal) else f"{self.nominal:.3g}"
        found = f"{self.measured:.3f} ± {self.error:.3f}"
        return f"| {self.statement} | {nominal} | {found} | {len(self.shares):,} | {self.setting} |"


# -- bounds on error rates
def streams(seed: int, n: int, flipped: float, rare: float = 0.5, correlation: float = 0.0) -> list[Held]:
    """A perceptron on two normal classes, whose error rates are known exactly for every hypothesis."""
    rng = np.random.default_rng(seed)
    d, mean = 5, np.full(5, 0.5)
    C = (1 - correlation) * np.eye(d) + correlation
    side = np.where(rng.random(n) < rare, 1, -1)
    X = side[:, None] * mean + rng.multivariate_normal(np.zeros(d), C, size=n)
    y = np.where(rng.random(n) < flipped, -side, side)
    model = cs.OnlinePerceptron(fit_intercept=True)
    model.partial_fit({"a": X[:1, :3], "b": X[:1, 3:]}, y[:1], classes=[-1, 1])
    hypotheses = [(np.zeros(d), 0.0)]
    for i in range(n):
        if i:
            model.learn_one({"a": X[i, :3], "b": X[i, 3:]}, y[i])
        w = np.concatenate([np.ravel(part) for part in model.coef_.values()])
        hypotheses.append((w, float(np.ravel(model.intercept_)[0])))
    W, b = np.array([w for w, _ in hypotheses]), np.array([b for _, b in hypotheses])

    def risks(W: np.ndarray, b: np.ndarray) -> np.ndarray:
        spread = np.sqrt(np.einsum("td,de,te->t", W, C, W))
        away, there = np.maximum(spread, 1e-300), spread > 0
        own = rare * norm.cdf(-(W @ mean + b) / away) + (1 - rare) * norm.cdf(-(W @ mean - b) / away)
        return np.where(there, (1 - flipped) * own + flipped * (1 - own), 1.0)  # a score of 0 is a mistake

    found, bound = risks(W, b), model.certificate().risk
    average = float(risks(W[:-1].mean(axis=0)[None], b[:-1].mean()[None])[0])
    mean_risk, nothing = float(found[:-1].mean()), float("nan")
    return [
        Held("mean error rate of all hypotheses of a stream (`risk_bound`)", 0.95, mean_risk <= bound),
        Held("the same bound for one hypothesis that is drawn once", nothing, float(np.mean(found[:-1] <= bound))),
        Held("the same bound for the final hypothesis", nothing, found[-1] <= bound),
        Held("the same bound for the average", nothing, average <= bound),
    ]


def sparsity(seed: int, n: int, rare: float = 0.5, gap: float = 0.5) -> list[Held]:
    """Separated classes; the error rate is measured on new samples."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        side = np.where(rng.random(n) < rare, 1, -1)
        first = side * (gap / 2 + rng.exponential(size=n))
        A = np.column_stack([first, rng.normal(size=n)])
        return {"a": A, "b": A + 0.1 * rng.normal(size=A.shape)}, side  # the views repeat each other

    (X, y), (new, truth) = draw(n), draw(NEW)
    if len(np.unique(y)) < 2:
        return []
    machine = cs.MaxMarginClassifier("linear", C=1e4).fit(X, y)
    kept = machine.support_[machine.dual_coef_ > 0]
    pairs = [("error rate of a machine fitted to its support samples (`MarginCertificate`)", machine.certificate(X, y))]
    copies = [clone(machine).fit({name: A[kept] for name, A in X.items()}, y[kept])] if pairs[0][1].risk else [None]
    vector = cs.VectorPerceptron(RBF(0.1), max_iter=1000, margin=1e-6, random_state=0).fit(X, y)
    pairs.append(("error rate of a vector perceptron (`PerceptronCertificate`)", vector.certificate(X, y)))
    return [
        Held(text, 0.95, 1 - copy.score(new, truth) <= proof.risk)
        for (text, proof), copy in zip(pairs, [*copies, vector], strict=True)
        if proof.risk is not None and proof.risk < 1
    ]


# -- the consensus
def intervals(seed: int, n: int, skewed: bool = False, **kind: object) -> list[Held]:
    """Intervals of new samples."""
    X, y = make_regression_views(n + 200, target_noise=0.5, random_state=seed, **kind)
    if skewed:
        y = y + np.random.default_rng(seed).exponential(size=len(y)) ** 2
    model = cs.ConsensusRegressor().fit(X[:n], y[:n])
    found = []
    for level in (0.8, 0.9, 0.95):
        low, high = model.predict_interval(X[n:], coverage=level).T
        found.append(Held("`predict_interval` contains the target", level, np.mean((low <= y[n:]) & (y[n:] <= high))))
    return found


def classes_of(seed: int, n: int, rare: float | None, **kind: object) -> tuple[cs.Views, np.ndarray]:
    """Three classes; with `rare` the last one has this share."""
    total = n + 300
    X, y = make_views(3 * total, n_classes=3, random_state=seed, **kind)
    rng = np.random.default_rng(seed)
    shares = np.full(3, 1 / 3) if rare is None else np.array([(1 - rare) / 2, (1 - rare) / 2, rare])
    wanted = rng.choice(3, size=total, p=shares)
    wanted[:6] = np.repeat(np.arange(3), 2)  # two of each class, so that it can be learned
    rows = np.empty(total, dtype=int)
    for k in range(3):
        rows[wanted == k] = rng.choice(np.flatnonzero(y == k), size=int(np.sum(wanted == k)), replace=False)
    return X[rows], y[rows]


def sets(seed: int, n: int, rare: float | None = None, **kind: object) -> list[Held]:
    """Sets of classes; and of samples whose class is predicted with a probability of 0.8 to 0.9, the share correct."""
    X, y = classes_of(seed, n, rare, **{"class_sep": 0.7, **kind})
    model = cs.ConsensusClassifier().fit(X[:n], y[:n])
    found = []
    for level in (0.8, 0.9, 0.95):
        inside = model.predict_set(X[n:], coverage=level)[np.arange(len(y) - n), y[n:]]
        found.append(Held("`predict_set` contains the class", level, inside.mean()))
        if rare is not None and level == 0.9 and np.any(y[n:] == 2):
            found.append(Held("`predict_set` (0.9), samples of the rare class", np.nan, inside[y[n:] == 2].mean()))
    stream = cs.PassiveAggressive(average="recent", prepare="standardize").partial_fit(X[:n], y[:n])
    for name, own in (("consensus", model), ("stream", stream)):
        P = own.predict_proba(X[n:])
        there = (P.max(axis=1) >= 0.8) & (P.max(axis=1) < 0.9)
        if there.any():
            right = P[there].argmax(axis=1) == y[n:][there]
            found.append(Held(f"`predict_proba` of 0.8 to 0.9, {name}", P[there].max(axis=1).mean(), right.mean()))
    return found


# -- comparisons
def scores(seed: int, n: int, columns: int, rare: float = 0.5, measures: tuple[str, ...] = MEASURES) -> list[Held]:
    """Intervals of cross-validated scores, against the scores of the same models on new samples."""
    rng = np.random.default_rng(seed)
    y, new_y = ((np.arange(size) < max(rare * size, 5)).astype(int) for size in (n, NEW))
    X, new = (tables(rng, own, columns, 1, 0.0) for own in (y, new_y))
    numbers, new_numbers = (A[:, 0] + A[:, 1] + rng.normal(size=len(A)) for A in (X, new))
    found = []
    for name in measures:
        classes = name not in ("r2", "neg_mean_absolute_error")
        model, target, new_target = (Plane(), y, new_y) if classes else (Ridge(alpha=10.0), numbers, new_numbers)
        scorer = _own_score if name == "own" else get_scorer(name)
        scoring = scorer if name == "own" else name
        board = cs.compare(X, target, estimators={"own": model}, baselines=False, scoring=scoring)
        fits = [clone(model).fit(X[train], target[train]) for train, _ in board.splits]
        row, truth = board[0], np.mean([scorer(fit, new, new_target) for fit in fits])
        if name == "r2":  # its mean over small test parts is below that of many samples
            found.append(Held("the same for R2 of all new samples together", np.nan, row.low <= truth <= row.high))
            truth = np.mean([_r2_of_parts(fit.predict(new), new_target, len(board.splits[0][1])) for fit in fits])
        if name == "own":
            found.append(Held("95% interval over folds (scorer of your own)", 0.95, row.low <= truth <= row.high))
            continue
        whole = scorer(clone(model).fit(X, target), new, new_target)
        found += [
            Held(f"95% interval of {name} by `compare`: models of the folds", 0.95, row.low <= truth <= row.high),
            Held(f"the same for the model fitted to all samples, {name}", np.nan, row.low <= whole <= row.high),
        ]
    return found


def _r2_of_parts(predicted: np.ndarray, y: np.ndarray, size: int) -> float:
    """The mean R2 of parts of so many samples."""
    n = len(y) // size * size
    P, T = predicted[:n].reshape(-1, size), y[:n].reshape(-1, size)
    return float(np.mean(1 - ((T - P) ** 2).sum(axis=1) / ((T - T.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)))


def _own_score(model: Plane, X: np.ndarray, y: np.ndarray) -> float:
    return float(model.score(X, y))


def differences(
    seed: int,
    n: int,
    columns: int,
    rare: float = 0.5,
    correlation: float = 0.0,
    scoring: str = "accuracy",
    views: int = 5,
) -> list[Held]:
    """Views of equal value: no difference is real."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < max(rare * n, 5)).astype(int)
    X = tables(rng, y, columns, views, correlation)
    models = {str(k): Plane(k * columns, (k + 1) * columns, balanced=rare < 0.5) for k in range(views)}
    board = cs.compare(X, y, estimators=models, baselines=False, scoring=scoring)
    pair = board.difference("0", "1")
    wrong = any(found.verdict == "different" for found in board.differences())
    return [
        Held(f"95% interval of a difference of {scoring}", 0.95, pair.low <= 0 <= pair.high),
        Held(f"equal estimators are not called different, {scoring}", 0.95, pair.verdict != "different"),
        Held(f"no row of a leaderboard of equal estimators is called different, {scoring}", 0.95, not wrong),
    ]


# -- external cohorts
_TRUTHS: dict[str, dict[str, float]] = {}  # of each model, once per process


def external(seed: int, n: int, **kind: float) -> list[Held]:
    """Measures of a known model on the samples of a cohort, against the truth."""
    model = Line(**kind) if "freedom" in kind else Known(**kind)
    if str(kind) not in _TRUTHS:
        _TRUTHS[str(kind)] = truths_of(model)
    X, y = model.draw(np.random.default_rng(seed), n)
    if isinstance(model, Known) and len(np.unique(y)) < 2:
        return []
    result = cs.evaluate_external(model, X, y, random_state=seed)
    measures = dict(result.measures)
    if isinstance(model, Known):
        own = result.by_class[1]
        measures.update({"sensitivity of class 1": own.sensitivity, "PPV of class 1": own.ppv})
    truths = _TRUTHS[str(kind)]
    return [
        Held(f"95% interval of {name} by `evaluate_external`", 0.95, own.low <= truths[name] <= own.high)
        for name, own in measures.items()
        if np.isfinite(own.low)
    ]


# -- the report
def report(seed: int, n: int, rare: float = 0.5) -> list[Held]:
    """Intervals that only the report has, against the same models on new samples."""
    rng = np.random.default_rng(seed)
    y, new_y = ((np.arange(size) < max(rare * size, 5)).astype(int) for size in (n, NEW))
    X, new = ({"a": A[:, :4], "b": A[:, 4:]} for A in (tables(rng, own, 4, 2, 0.5) for own in (y, new_y)))
    model = cs.EarlyFusion(Plane())
    board = cs.compare(X, y, estimators={"own": model}, baselines=False)
    findings = examine(X, y, board)
    rows = [np.sort(train) for train, _ in board.splits]
    fits = [clone(model).fit({name: A[train] for name, A in X.items()}, y[train]) for train in rows]
    predicted = [fit.predict(new) for fit in fits]
    row, truth = board[0], np.mean([np.mean(own[new_y == 1] == 1) for own in predicted])
    recall = proportion(int(np.sum(row.predictions[y == 1] == 1)), int(np.sum(y == 1)))
    found = [Held("95% interval of the recall of a class in the report", 0.95, recall.low <= truth <= recall.high)]
    whole = np.mean([np.mean(own == new_y) for own in predicted])
    for name, (_, low, high) in findings.losses.items():
        other = next(key for key in X if key != name)
        single = [clone(model).fit({other: X[other][train]}, y[train]) for train in rows]
        lost = whole - np.mean([np.mean(fit.predict({other: new[other]}) == new_y) for fit in single])
        found.append(Held("95% interval of the score lost without a view", 0.95, low <= lost <= high))
    test = board.splits[0][1]
    held_out = {name: A[test] for name, A in X.items()}
    shuffled = cs.feature_importances(fits[0], held_out, y[test], method="permutation", n_repeats=100, random_state=1)
    truths = dict(zip(zip(shuffled.views, shuffled.names, strict=True), shuffled.importances, strict=True))
    for view, columns in findings.feature_importances.items():
        for name, _, low, high in columns:
            inside = low <= truths[view, name] <= high
            found.append(Held("95% interval of the importance of a column (other shuffles)", 0.95, inside))
    size, _, low, high = findings.learning_curve[0]
    smaller = []
    for k in range(10):  # the mean accuracy of models of this size
        own = np.random.default_rng([seed, k]).permutation(NEW)[: int(size)]
        if len(np.unique(new_y[own])) == 2:
            fit = clone(model).fit({name: A[own] for name, A in new.items()}, new_y[own])
            smaller.append(np.mean(fit.predict(new) == new_y))
    return [*found, Held("95% interval at the start of a learning curve", 0.95, low <= np.mean(smaller) <= high)]


# -- streams
def drift(seed: int, delta: float, share: float = 0.1, correlation: float = 0.0) -> list[Held]:
    """Values of a constant mean: a test finds no change with the probability 1 - delta."""
    rng, n = np.random.default_rng(seed), 3200
    values = rng.random(n) < share
    if correlation:  # a value repeats the one before it with this probability
        repeats = rng.random(n) < correlation
        last = np.maximum.accumulate(np.where(repeats, 0, np.arange(n)))
        values = values[last]
    n_tests = n // 32
    alarms = len(cs.ADWIN(delta).update(values.astype(float)))
    nominal = np.nan if correlation else 1 - delta
    return [Held("a test of `ADWIN` finds no change where there is none", nominal, 1 - alarms / n_tests)]


def quantiles(seed: int, n: int, C: float, uneven: bool = False) -> list[Held]:
    """Predictions by the quantile loss: the share q of new targets is below them, for small C."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + NEW, 5))
    y = X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0]) + (np.exp(0.5 * X[:, 0]) if uneven else 1.0) * rng.normal(size=len(X))
    found = []
    for q in (0.1, 0.5, 0.9):
        model = cs.PassiveAggressiveRegressor(loss="quantile", quantile=q, C=C).partial_fit(X[:n], y[:n])
        below = np.mean(y[n:] <= model.predict(X[n:]))
        nominal = q if C < 0.1 else np.nan
        found.append(Held(f"quantile loss, q = {q}: share of targets below", nominal, below))
    return found


Setting = tuple[str, dict[str, object]]
# the function of a name, its usual number of repeats, and its settings
STATEMENTS: dict[str, tuple[Callable[..., list[Held]], int, list[Setting]]] = {
    "streams": (streams, 100, [
        ("5,000 samples, 30% of labels flipped", {"n": 5000, "flipped": 0.3}),
        ("100 samples, 10% flipped", {"n": 100, "flipped": 0.1}),
        ("1,000 samples, rare class (5%), correlated columns",
         {"n": 1000, "flipped": 0.1, "rare": 0.05, "correlation": 0.9}),
    ]),
    "sparsity": (sparsity, 100, [
        ("150 samples, views that repeat each other", {"n": 150}),
        ("100 samples, rare class (10%), small gap", {"n": 100, "rare": 0.1, "gap": 0.2}),
    ]),
    "intervals": (intervals, 100, [
        ("100 samples", {"n": 100}),
        ("20 samples, 30 columns", {"n": 20}),
        ("60 samples, repeated views, 30% missing, skewed errors",
         {"n": 60, "redundant": 2, "missing": 0.3, "skewed": True}),
    ]),
    "sets": (sets, 100, [
        ("100 samples, 3 classes", {"n": 100}),
        ("25 samples, 3 classes", {"n": 25}),
        ("80 samples, rare class (8%), repeated views", {"n": 80, "rare": 0.08, "redundant": 2}),
    ]),
    "scores": (scores, 100, [
        ("150 samples, 10 columns", {"n": 150, "columns": 10}),
        ("60 samples, 200 columns", {"n": 60, "columns": 200}),
        ("100 samples, rare class (10%)", {"n": 100, "columns": 10, "rare": 0.1}),
    ]),
    "differences": (differences, 100, [
        ("150 samples, 10 columns", {"n": 150, "columns": 10}),
        ("60 samples, 100 columns", {"n": 60, "columns": 100}),
        ("150 samples, correlated views", {"n": 150, "columns": 10, "correlation": 0.8}),
        ("150 samples, 10 columns", {"n": 150, "columns": 10, "scoring": "roc_auc"}),
        ("120 samples, rare class (15%)", {"n": 120, "columns": 10, "rare": 0.15, "scoring": "balanced_accuracy"}),
        ("100 samples, rare class (12%)", {"n": 100, "columns": 10, "rare": 0.12, "scoring": "f1"}),
    ]),
    "external": (external, 400, [
        ("150 samples, 35% of class 1", {"n": 150}),
        ("40 samples, harder", {"n": 40, "d": 0.6}),
        ("60 samples, 10% of class 1", {"n": 60, "rare": 0.1}),
        ("150 samples", {"n": 150, "freedom": 100.0}),
        ("30 samples, large errors", {"n": 30, "freedom": 5.0}),
    ]),
    "report": (report, 100, [("150 samples", {"n": 150}), ("60 samples, rare class (20%)", {"n": 60, "rare": 0.2})]),
    "drift": (drift, 1000, [
        ("delta 0.002, 10% ones", {"delta": 0.002}),
        ("delta 0.05, 50% ones", {"delta": 0.05, "share": 0.5}),
        ("delta 0.05, 1% ones", {"delta": 0.05, "share": 0.01}),
        ("delta 0.002, values that depend on the one before", {"delta": 0.002, "share": 0.5, "correlation": 0.8}),
    ]),
    "quantiles": (quantiles, 100, [
        ("5,000 samples, C = 0.01", {"n": 5000, "C": 0.01}),
        ("500 samples, C = 0.03, spread depends on x", {"n": 500, "C": 0.03, "uneven": True}),
        ("5,000 samples, C = 1 (the default)", {"n": 5000, "C": 1.0}),
    ]),
}  # fmt: skip


def measure(name: str, repeats: int | None = None, n_jobs: int = 1, first: int = 0) -> Iterator[Row]:
    """Yield a row for each statement of a name in each of its settings."""
    trial, usual, settings = STATEMENTS[name]
    seeds = range(first, first + (repeats or usual))
    for text, values in settings:
        results = Parallel(n_jobs=n_jobs)(delayed(_quietly)(trial, seed, values) for seed in seeds)
        by_statement: dict[tuple[str, float], list[list[Held]]] = {}
        for result in results:
            own: dict[tuple[str, float], list[Held]] = {}
            for held in result:
                # stated probabilities of classes vary from sample to sample, and are one row
                key = 0.0 if "predict_proba" in held.statement or np.isnan(held.nominal) else held.nominal
                own.setdefault((held.statement, key), []).append(held)
            for key_of, parts in own.items():
                by_statement.setdefault(key_of, []).append(parts)
        for (statement, _), repeated in by_statement.items():
            nominal = float(np.mean([held.nominal for parts in repeated for held in parts]))
            yield Row(statement, text, nominal, np.array([np.mean([h.share for h in parts]) for parts in repeated]))


def _quietly(trial: Callable[..., list[Held]], seed: int, values: dict[str, object]) -> list[Held]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trial(seed, **values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STATEMENTS))
    parser.add_argument("--repeats", type=int, help="repeats of every statement, instead of 100 to 1,000")
    parser.add_argument("--quick", action="store_true", help="10 repeats, in a minute")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args()
    unknown = set(given.names) - set(STATEMENTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(STATEMENTS)}")
    print("| statement | stated | measured | repeats | setting |\n| --- | --- | --- | --- | --- |")
    for name in given.names or STATEMENTS:
        for row in measure(name, 10 if given.quick else given.repeats, given.jobs):
            print(row, flush=True)


if __name__ == "__main__":
    import statements  # by name, so that processes keep the truths that they computed

    statements.main()
