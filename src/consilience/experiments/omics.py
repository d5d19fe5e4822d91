"""Multi-omics: our estimators and what people would use today, on three public sets."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from .. import datasets
from ..views.container import Views
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table
from ._omics_methods import COMPLETE_ONLY, CONSENSUS, METHODS, SINGLE_CONSENSUS, BestView, Tuning, installed
from ._omics_tables import compared_claims, compared_tables, published_table

_Splits = list[tuple[np.ndarray, np.ndarray]]
_FLOOR = 1e-6  # probabilities below count as this, so that one vote of 0 does not decide the log loss
_MISSING = (0.2, 0.5)
_ALIKE = 3  # seeds of the published splits, on which draws differ in the inner folds and trees alone
_FEW = 5  # draws with missing views
_ABLE = tuple(method for method in METHODS if method not in COMPLETE_ONLY)  # they can do without a view


# -- data
@lru_cache(maxsize=2)
def _data(name: str, small: bool) -> tuple[Views, np.ndarray, _Splits]:
    """Return views, classes and the published split, if there is one; a quick run has few rows and columns."""
    if name == "breast-tcga":
        found = datasets.fetch_breast_tcga()
    elif name == "pam50":
        found = datasets.fetch_tcga_brca()
    else:
        found = datasets.fetch_nutrimouse(target=name)
    X, y, splits = found.data, np.asarray(found.target), list(found.get("splits", []))
    if small:
        X = Views({each: X[each][:, :10] for each in X.names}, mask=X.mask)
        splits = [(train[:: 1 + len(train) // 60], test) for train, test in splits]
    return X, y, splits


def _splits(cell: Cell, y: np.ndarray, published: _Splits) -> _Splits:
    if cell["rows"] == "published":
        return published
    if cell["rows"] == "random":
        sizes = [len(rows) for rows in published[0]]
        splitter: Any = StratifiedShuffleSplit(1, train_size=sizes[0], test_size=sizes[1], random_state=cell["draw"])
    else:
        splitter = StratifiedKFold(cell["folds"], shuffle=True, random_state=cell["draw"])
    return list(splitter.split(y, y))


def without_some(X: Views, share: float, draw: int) -> Views:
    """Return views of which a share is missing at random; every sample keeps at least one."""
    rng = np.random.default_rng([draw, round(100 * share)])
    mask = rng.random((len(X), len(X.names))) >= share
    bare = np.flatnonzero(~mask.any(axis=1))
    mask[bare, rng.integers(len(X.names), size=len(bare))] = True
    return Views(X, mask=mask)


# -- cells
def _grid(base: Cell, methods: Iterable[str], draws: int) -> Iterator[Cell]:
    for draw in range(draws):
        yield from ({**base, "method": method, "draw": draw} for method in methods)


def _compared(base: Cell, seeds: int) -> list[Cell]:
    """Return the cells on complete samples, and those with missing views of the methods that can do without."""
    cells = list(_grid({**base, "missing": 0.0}, METHODS, seeds))
    for share in _MISSING[1:] if base["small"] else _MISSING:
        cells += _grid({**base, "missing": share}, _ABLE, min(_FEW, seeds))
    return cells


def _published(base: Cell, seeds: int, methods: Iterable[str]) -> list[Cell]:
    """Return the cells of a published split: one for the methods without any draw, some for the others."""
    base = {**base, "rows": "published", "missing": 0.0}
    fixed = (CONSENSUS, SINGLE_CONSENSUS)
    return [
        cell for cell in _grid(base, methods, min(_ALIKE, seeds)) if cell["draw"] == 0 or cell["method"] not in fixed
    ]


def _breast_cells(seeds: int, quick: bool) -> list[Cell]:
    seeds, base = (1 if quick else seeds), {"data": "breast-tcga", "small": quick}
    return [
        *_compared({**base, "rows": "folds", "folds": 2 if quick else 5}, seeds),
        *_published({**base, "protein": True}, seeds, _ABLE[:2] if quick else _ABLE),
        *_published({**base, "protein": False}, seeds, _ABLE[:2] if quick else METHODS),
    ]


def _pam50_cells(seeds: int, quick: bool) -> list[Cell]:
    seeds, base = (1 if quick else seeds), {"data": "pam50", "small": quick}
    methods = _ABLE[:2] if quick else METHODS
    return [*_compared({**base, "rows": "random"}, seeds), *_published(base, seeds, methods)]


def _nutrimouse_cells(seeds: int, quick: bool) -> list[Cell]:
    seeds = 1 if quick else seeds
    base = {"small": quick, "rows": "folds", "folds": 2 if quick else 5}
    names = ("diet",) if quick else ("diet", "genotype")
    return [cell for name in names for cell in _compared({"data": name, **base}, seeds)]


# -- measurement
def _measure(cell: Cell, cached: Cached) -> Found:
    if not installed(cell["method"]):
        return {}
    X, y, published = _data(cell["data"], cell["small"])
    if cell["data"] == "breast-tcga":
        if cell["rows"] == "folds":
            rows = np.flatnonzero(X.present("protein"))
            X, y = X[rows], y[rows]
        elif not cell["protein"]:
            X = X[["mrna", "mirna"]]
    if cell["missing"]:
        X = without_some(X, cell["missing"], cell["draw"])
    return _tested(cell, X, y, _splits(cell, y, published))


def _tested(cell: Cell, X: Views, y: np.ndarray, splits: _Splits) -> Found:
    """Return the measures over the test rows of all splits."""
    predicted, probabilities = np.empty_like(y), None
    alone: dict[str, np.ndarray] = {}
    for train, test in splits:
        model = METHODS[cell["method"]](Tuning(X, cell["draw"], cell["small"])).fit(X[train], y[train])
        predicted[test] = model.predict(X[test])
        if hasattr(model, "predict_proba"):
            probabilities = np.zeros((len(y), len(model.classes_))) if probabilities is None else probabilities
            probabilities[test] = np.clip(model.predict_proba(X[test]), _FLOOR, None)
        if isinstance(model, BestView):
            for name in X.names:
                alone.setdefault(name, np.empty_like(y))[test] = model.predict_by(name, X[test])
    rows = np.concatenate([test for _, test in splits])
    found: Found = {
        "accuracy": accuracy_score(y[rows], predicted[rows]),
        "balanced accuracy": balanced_accuracy_score(y[rows], predicted[rows]),
        "macro F1": f1_score(y[rows], predicted[rows], average="macro"),
    }
    if len(splits) > 1:
        found["folds"] = [accuracy_score(y[test], predicted[test]) for _, test in splits]
    if probabilities is not None:
        P = probabilities[rows] / probabilities[rows].sum(axis=1, keepdims=True)
        found["log loss"] = log_loss(y[rows], P, labels=np.unique(y))
    return found | {f"{name} alone": accuracy_score(y[rows], each[rows]) for name, each in alone.items()}


# -- experiments
_FOLDS = {"rows": "folds"}
_RANDOM = {"rows": "random"}


def _breast_tables(results: Results) -> list[Table]:
    title = "70 other patients without protein, trained on 150"
    return [
        *compared_tables(results, "Cross-validation of 150 patients", **_FOLDS),
        published_table(results, f"{title} with protein", protein=True),
        published_table(results, f"{title} without protein", protein=False),
    ]


def _breast_claims(results: Results) -> list[Claim]:
    given = {"method": CONSENSUS, "rows": "published"}
    seen, unseen = (100 * results.mean("accuracy", protein=protein, **given) for protein in (True, False))
    return [
        *compared_claims(results, **_FOLDS),
        Claim(
            "Protein in the training rows does not cost Consensus accuracy on patients without it.",
            seen >= unseen,
            f"{seen:.1f}% trained with protein and {unseen:.1f}% without, on 70 patients",
            "One patient of the 70 is 1.4 points, so that a difference of a few patients may be chance.",
        ),
    ]


def _pam50_tables(results: Results) -> list[Table]:
    title = "The published split, 558 patients to train and 211 to test"
    return [*compared_tables(results, "Random splits of 558 and 211", **_RANDOM), published_table(results, title)]


def _nutrimouse_tables(results: Results) -> list[Table]:
    names = results.levels("data")
    return [table for name in names for table in compared_tables(results, f"Target {name}", data=name, **_FOLDS)]


def _nutrimouse_claims(results: Results) -> list[Claim]:
    names = results.levels("data")
    return [
        claim._replace(text=f"Target {name}: {claim.text}")
        for name in names
        for claim in compared_claims(results, data=name, **_FOLDS)
    ]


_TUNING = (
    "Every estimator but Consensus is tuned by three inner folds of the training rows, with the numbers of settings in "
    "the table, by accuracy and then log loss. Columns are standardized on the training rows of each fold. The best "
    "view is chosen on the training rows. himalaya draws 12 mixtures and tries three penalties. Missing views are "
    "removed at random from training and test rows; on all columns they are filled with means, and gradient boosting "
    "reads NaN. Intervals of differences are corrected for shared training rows (Nadeau and Bengio 2003)."
)
_OURS = "There is no paper: the claims are our own expectations, written down before the full run."
_SHARED: dict[str, Any] = {"paper": "Today's practice", "shown_in": "Multi-omics", "measure": _measure, "seeds": 10}
BREAST = Experiment(
    name="omics-breast-tcga",
    title="Breast cancer subtypes of mixOmics, with a view missing at prediction",
    data="breast.TCGA",
    protocol="150 patients with mRNA, miRNA and protein, three subtypes: ten times five folds. Then the published test "
    f"set of 70 other patients, for whom protein is missing. {_TUNING} Estimators that cannot do without a view are "
    "fitted to mRNA and miRNA there.",
    cells=_breast_cells,
    tables=_breast_tables,
    claims=_breast_claims,
    minutes=18,
    differences=(_OURS,),
    **_SHARED,
)
PAM50 = Experiment(
    name="omics-pam50",
    title="PAM50 subtypes of 769 breast cancer patients",
    data="tcga_brca_pam50",
    protocol="mRNA, methylation and miRNA, five subtypes. Ten random splits of the sizes of the published split, in "
    f"equal shares of the classes, and the published split. {_TUNING}",
    cells=_pam50_cells,
    tables=_pam50_tables,
    claims=lambda results: compared_claims(results, **_RANDOM),
    minutes=29,
    differences=(
        _OURS,
        "The authors of MOGONET (Wang et al. 2021) chose the columns on their labeled training patients. Random splits "
        "therefore test on patients whose labels took part in the choice.",
        "The subtypes are defined by the expression of 50 genes, which favors mRNA.",
    ),
    **_SHARED,
)
MICE = Experiment(
    name="omics-nutrimouse",
    title="Diet and genotype of 40 mice",
    data="nutrimouse",
    protocol=f"Genes and fatty acids of 40 mice; five diets and two genotypes. Ten times five folds. {_TUNING}",
    cells=_nutrimouse_cells,
    tables=_nutrimouse_tables,
    claims=_nutrimouse_claims,
    minutes=24,
    differences=(_OURS,),
    **_SHARED,
)
EXPERIMENTS = (BREAST, PAM50, MICE)
