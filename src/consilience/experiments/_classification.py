"""Table 1 of Huusari, Kadri and Capponi (2018) for any data: its methods, the table and what the paper says of it."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from ..views.container import Views
from ._experiment import Cell, Claim, Found, Results, Table
from ._metric import METRICS, nystroem_features, tuned, wide
from ._mlkr import kernel_regression, mlkr

LEVELS = (0.06, 0.12, 0.24)  # landmarks by training rows
LEARNED = (*METRICS, "lpMKL", "OKL")
ALL, FEW = "MLKR, all rows", "MLKR, landmark rows"
PUBLISHED_SVM = "C = 1, ±1 decisions, all rows"
MACHINES = {  # whether only the landmark rows are used, and whether C is chosen and the largest output decides
    PUBLISHED_SVM: (False, False),
    "C chosen, largest output, all rows": (False, True),
    "C chosen, largest output, landmark rows": (True, True),
}
Published = Mapping[str, Sequence[str]]  # accuracies of a method at the three levels, as printed


class Data(NamedTuple):
    """Training and test rows with kernels; `joint` is (training rows, test rows, kernel) of all columns in one view."""

    X: Views
    y: np.ndarray
    X_test: Views
    y_test: np.ndarray
    kernels: Any
    joint: tuple[Views, Views, Any] | None = None


def measure(data: Data, cell: Cell, max_iter: int = 50, most: int | None = None) -> Found:
    """Return the accuracy of a method in percent; MLKR has so many steps, on so many principal components."""
    method, where = cell["method"], (cell["level"], cell["draw"])
    start = time.perf_counter()
    if method == "SVM":
        return _machines(data, *where)
    if method in (ALL, FEW):
        predicted = _metric_regression(data, *where, method == FEW, max_iter, most)
        return {"accuracy": _percent(predicted, data.y_test), "seconds": time.perf_counter() - start}
    model = tuned(method, data.kernels, *where).fit(data.X, data.y)
    seconds = time.perf_counter() - start
    accuracy = _percent(model.predict(data.X_test), data.y_test)
    return {"accuracy": accuracy, "on training rows": 100 * model.best_score_, "seconds": seconds}


def _metric_regression(data: Data, level: float, draw: int, few: bool, max_iter: int, most: int | None) -> np.ndarray:
    """Return classes by MLKR, one class against the rest, on Nyström features, or columns of the landmark rows."""
    features, test_features, landmarks = nystroem_features(data.X, data.X_test, data.kernels, level, draw)
    X, X_test, y = wide(features), wide(test_features), data.y
    if few and data.joint is not None:
        X, X_test = wide(data.X), wide(data.X_test)
    if few:
        X, y = X[landmarks], y[landmarks]
    if most is not None:
        axes = PCA(min(most, *X.shape), svd_solver="full").fit(X)
        X, X_test = axes.transform(X), axes.transform(X_test)
    classes, outputs = np.unique(y), []
    for each in classes:
        target = np.where(y == each, 1.0, -1.0)
        outputs.append(kernel_regression(mlkr(X, target, max_iter), X, target, X_test))
    return classes[np.argmax(outputs, axis=0)]


def _machines(data: Data, level: float, draw: int) -> Found:
    """Return accuracies of linear SVMs on Nyström features: each view, all columns, and the sum of all views."""
    features, test_features, landmarks = nystroem_features(data.X, data.X_test, data.kernels, level, draw)
    parts = {name: (features[name], test_features[name]) for name in data.X.names}
    if data.joint is not None:
        one, test_one, _ = nystroem_features(*data.joint, level, draw)  # the same landmarks
        parts["efSVM"] = wide(one), wide(test_one)
    found: Found = {}
    for title, (few, chosen) in MACHINES.items():
        used = landmarks if few else np.arange(len(data.y))
        outputs = {}
        for name, (Z, Z_test) in parts.items():
            model: Any = OneVsRestClassifier(SVC(kernel="linear", C=1.0))
            if chosen:
                folds = KFold(3, shuffle=True, random_state=draw)
                model = GridSearchCV(model, {"estimator__C": (1.0, 10.0, 100.0)}, cv=folds)
            values = model.fit(Z[used], data.y[used]).decision_function(Z_test)
            outputs[name] = values if chosen else (values > 0).astype(np.float64)
        outputs["lfSVM"] = np.sum([outputs[name] for name in data.X.names], axis=0)
        for name, values in outputs.items():  # the first class where no machine says yes
            found[f"{name}, {title}"] = _percent(model.classes_[values.argmax(axis=1)], data.y_test)
    return found


def _percent(predicted: np.ndarray, y: np.ndarray) -> float:
    return 100 * float(np.mean(predicted == y))


# -- the table
def tables(results: Results, published: Published) -> list[Table]:
    """Return accuracies next to the published ones, and times."""
    levels = results.levels("level")
    methods = [method for method in results.levels("method") if method != "SVM"]
    rows = []

    def add(label: str, kind: str, texts: list[str]) -> None:
        pairs = zip((published[kind][LEVELS.index(level)] for level in levels), texts, strict=True)
        rows.append([label, *(text for pair in pairs for text in pair)])

    for method in methods:
        texts = [results.text("accuracy", method=method, level=level) for level in levels]
        add(method, method.split(",")[0], texts)
    for title in MACHINES:
        for kind in _kinds(published):
            texts = [results.text(_machine(results, kind, title, level), method="SVM", level=level) for level in levels]
            add(f"{kind}, {title}", kind, texts)
    heads = ["", *(f"{part} {level:.0%}" for level in levels for part in ("published,", "here,"))]
    held = [m for m in methods if results.has("on training rows", method=m)]
    chosen = [[m, *(results.text("on training rows", method=m, level=level) for level in levels)] for m in held]
    seconds = [[m, *(f"{results.mean('seconds', method=m, level=level):.1f}" for level in levels)] for m in methods]
    by_level = ["", *(f"{level:.0%}" for level in levels)]
    return [
        Table("Percent of test rows with the right class, by landmarks as a share of training rows", heads, rows),
        Table("Percent on training rows by which penalties are chosen", by_level, chosen),
        Table("Seconds for the choice of penalties and the fit", by_level, seconds),
    ]


def _kinds(published: Published) -> list[str]:
    return [kind for kind in published if "SVM" in kind]


def _machine(results: Results, kind: str, title: str, level: float) -> str:
    """Return the name of a number; the best view is that on test rows, as in the paper."""
    if kind in ("efSVM", "lfSVM"):
        return f"{kind}, {title}"
    found = next(found for cell, found in results.cells if cell["method"] == "SVM")
    views = [name for name in found if name.endswith(title) and "fSVM" not in name]
    return max(views, key=lambda name: results.mean(name, level=level, method="SVM"))


# -- what the paper says
def claims(
    results: Results, published: Published, svm_note: str, others_note: str, svm_within: float = 2.0
) -> list[Claim]:
    """Return the statements of the paper about its table; its SVM accuracies are reproduced within so many points."""
    learned = {level: [results.mean("accuracy", method=each, level=level) for each in METRICS] for level in LEVELS}
    widest = max(max(means) - min(means) for means in learned.values())
    text = "All MVML methods perform very similarly: their mean accuracies are within one point of each other."
    similar = Claim(text, widest < 1, f"at most {widest:.2f} points apart at any level", "They are further apart here.")

    def over(kinds: Sequence[str], titles: Sequence[str]) -> list[float]:
        """Return the lowest MVML less the best of these machines, at each level."""
        best = [
            max(
                results.mean(_machine(results, kind, title, at), method="SVM", level=at)
                for kind in kinds
                for title in titles
            )
            for at in LEVELS
        ]
        return [min(learned[level]) - one for level, one in zip(LEVELS, best, strict=True)]

    single, untuned = over(["1 view SVM"], list(MACHINES)), over(_kinds(published), [PUBLISHED_SVM])
    tuned_gains = over(_kinds(published), list(MACHINES))
    return [
        similar,
        Claim("MVML is better than an SVM on the best view.", min(single) > 0, f"by {_points(single)}", svm_note),
        Claim(
            "MVML results are always notably better than the SVM results.",
            min(tuned_gains) > 0,
            f"by {_points(untuned)} if C = 1 and machines answer ±1, by {_points(tuned_gains)} for the best SVM",
            svm_note,
        ),
        _machines_agree(results, published, svm_within),
        *(_above(results, learned, method, others_note) for method in ("OKL", ALL, FEW)),
        *(_falls_more(results, method) for method in ("OKL", ALL, FEW)),
    ]


def _machines_agree(results: Results, published: Published, within: float) -> Claim:
    gaps = {
        f"{kind} at {level:.0%}": results.mean(
            _machine(results, kind, PUBLISHED_SVM, level), method="SVM", level=level
        ) - float(published[kind][k].split()[0])
        for kind in _kinds(published)
        for k, level in enumerate(LEVELS)
    }  # fmt: skip
    worst = max(gaps, key=lambda name: abs(gaps[name]))
    return Claim(
        "The low SVM accuracies, which the paper does not explain, are those of C = 1 and machines that answer ±1, "
        f"within {within:g} points.",
        abs(gaps[worst]) < within,
        f"the largest difference is {gaps[worst]:+.2f} points, for the {worst}",
        "The descriptors or the choice of C differ.",
    )


def _above(results: Results, learned: dict[float, list[float]], method: str, note: str) -> Claim:
    gains = [min(learned[level]) - results.mean("accuracy", method=method, level=level) for level in LEVELS]
    return Claim(f"MVML is better than {_named(method)}.", min(gains) > 0, f"by {_points(gains)}", note)


def _falls_more(results: Results, method: str) -> Claim:
    lost, own = (
        results.mean("accuracy", method=each, level=LEVELS[-1]) - results.mean("accuracy", method=each, level=LEVELS[0])
        for each in (method, "MVML")
    )
    return Claim(
        f"With few landmarks {_named(method)} loses more than MVML, by half a point or more.",
        lost > own + 0.5,
        f"{lost:.2f} points from 24% to 6%, and {own:.2f} points for MVML",
        "On Nyström features of all views it depends on landmarks no more than MVML does.",
    )


def _named(method: str) -> str:
    return method.replace("MLKR, ", "MLKR on ")


def _points(values: Sequence[float]) -> str:
    return ", ".join(f"{value:+.2f}" for value in values) + " points at 6, 12 and 24%"
