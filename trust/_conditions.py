"""Hostile conditions: functions of an estimator and random numbers, which return fits to try."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor

import consilience as cs
from _trials import Trial, is_online
from consilience import Views


# -- the data
class Data(NamedTuple):
    """Views of two blocks with targets."""

    model: Any
    rng: np.random.Generator
    n: int = 24

    def tables(self) -> dict[str, np.ndarray]:
        """Return normal values, whose first columns tell the classes apart."""
        code = np.arange(self.n) % 3
        A, B = self.rng.normal(size=(self.n, 3)), self.rng.normal(size=(self.n, 2))
        return {"a": A + code[:, None], "b": B - code[:, None]}

    def targets(self, X: dict[str, np.ndarray] | None = None) -> np.ndarray:
        """Return classes, or numbers with noise."""
        code = np.arange(self.n) % 3
        return code if is_classifier(self.model) else code + 0.3 * self.rng.normal(size=self.n)


def mapped(X: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the views, each changed."""
    return {name: change(block) for name, block in X.items()}


def is_kernelized(model: Any) -> bool:
    """Tell whether the estimator takes a kernel."""
    return "kernel" in model.get_params(deep=False) and not isinstance(model.get_params()["kernel"], list)


def with_grams(data: Data, grams: dict[str, np.ndarray], **more: Any) -> list[Trial]:
    """Return a trial on Gram matrices, for estimators with kernels."""
    if not is_kernelized(data.model):
        return []
    model = clone(data.model).set_params(kernel="precomputed")
    return [Trial(model, Views(grams, precomputed=True), data.targets(), **more)]


def _linear_grams(data: Data, scale: float = 1.0) -> dict[str, np.ndarray]:
    return mapped(data.tables(), lambda X: scale * X @ X.T)


# -- conditions: functions of the data, which return trials
def duplicated_rows(data: Data) -> list[Trial]:
    """Return samples once, twice or three times; where weights count samples, these are their weights."""
    X, y, times = data.tables(), data.targets(), data.rng.integers(1, 4, size=data.n)
    rows = np.repeat(np.arange(data.n), times)
    counts = counts_samples(data.model)
    weighted = Trial(data.model, X, y, weights=times.astype(float)) if counts else None
    return [Trial(data.model, mapped(X, lambda A: A[rows]), y[rows], same=weighted, at=(X, X), within=1e-4)]


def counts_samples(model: Any) -> bool:
    """Tell whether a weight of 2 is a sample given twice.

    Online estimators meet a sample twice, and take one step of twice the length for a weight. Folds leave a sample that
    is there twice out once only; leave-one-out of metric learning does not. Candidates of outputs are the outputs of
    all samples.
    """
    name = type(model).__name__
    folds = name.endswith("CV") and not name.startswith("ViewMetric")
    return not (is_online(model) or name.startswith("Consensus") or folds)


def duplicated_view(data: Data) -> list[Trial]:
    """Return one view under two names: the order of the names does not matter."""
    X, y = data.tables(), data.targets()
    twice = {"a": X["a"], "b": X["b"], "c": X["a"].copy()}
    turned = {"c": X["a"].copy(), "b": X["b"], "a": X["a"]}
    return [Trial(data.model, twice, y, same=Trial(data.model, turned, y), within=1e-4)]


def constant_view(data: Data) -> list[Trial]:
    """Return a view with one value, 0 or others."""
    X, y = data.tables(), data.targets()
    return [Trial(data.model, {**X, "b": np.full((data.n, 2), value)}, y) for value in (0.0, 1.0, 1e6)]


def low_rank(data: Data) -> list[Trial]:
    """Return collinear columns, Gram matrices of rank one and of zeros."""
    X, y = data.tables(), data.targets()
    collinear = mapped(X, lambda A: A[:, :1] * np.arange(1.0, 5.0))
    ones = mapped(X, lambda A: np.outer(A[:, 0], A[:, 0]))
    return [Trial(data.model, collinear, y), *with_grams(data, ones), *with_grams(data, mapped(ones, np.zeros_like))]


def scaled_columns(data: Data) -> list[Trial]:
    """Return columns that differ in size by 1e8 and 1e16."""
    X, y = data.tables(), data.targets()
    wide = mapped(X, lambda A: np.hstack([A, A[:, ::-1]]))
    return [Trial(data.model, mapped(wide, lambda A, k=k: A * np.logspace(-k, k, A.shape[1])), y) for k in (4, 8)]


def scaled_kernels(data: Data) -> list[Trial]:
    """Return Gram matrices with samples, or views, that differ in size by 1e8 and 1e16."""
    trials = []
    for k in (4, 8):
        D = np.logspace(-k / 2, k / 2, data.n)
        trials += with_grams(data, mapped(_linear_grams(data), lambda K, D=D: D[:, None] * K * D))
        K = _linear_grams(data)
        trials += with_grams(data, {"a": 10.0**-k * K["a"], "b": 10.0**k * K["b"]})
    return trials


def slightly_indefinite(data: Data) -> list[Trial]:
    """Return Gram matrices with an eigenvalue below 0 by 1e-10 of the largest entry."""
    K, v = _linear_grams(data), data.rng.normal(size=data.n)
    push = np.outer(v, v) / (v @ v)
    return with_grams(data, mapped(K, lambda K: K - 1e-10 * np.abs(K).max() * push))


def indefinite(data: Data) -> list[Trial]:
    """Return Gram matrices with an eigenvalue as far below 0 as half of the largest one."""
    K, v = _linear_grams(data), data.rng.normal(size=data.n)
    push = np.outer(v, v) / (v @ v)
    only = () if is_online(data.model) else ("refused",)  # steps of online estimators need no optimum
    return with_grams(data, mapped(K, lambda K: K - 0.5 * np.linalg.norm(K, 2) * push), only=only)


PENALTIES = ("alpha", "alphas", "agreement_penalty", "agreement_penalties", "graph_penalty", "metric_penalty",
             "metric_penalties", "operator_penalty", "C", "eta0", "margin", "epsilon")  # fmt: skip


def penalties(*sizes: float) -> Callable[[Data], list[Trial]]:
    """Return the condition in which each penalty in turn has these sizes."""

    def condition(data: Data) -> list[Trial]:
        X, y, known = data.tables(), data.targets(), data.model.get_params(deep=False)
        trials = []
        for name in PENALTIES:
            for size in sizes if name in known else ():
                value = [size] if name.endswith(("alphas", "penalties")) else size
                trials.append(Trial(clone(data.model).set_params(**{name: value}), X, y))
        return trials

    return condition


def extreme_weights(data: Data) -> list[Trial]:
    """Return weights of some samples that are far from the others."""
    X, y = data.tables(), data.targets()
    if is_online(data.model):
        return []
    some = np.arange(data.n) % 5 == 0
    return [Trial(data.model, X, y, weights=np.where(some, size, 1.0)) for size in (1e-12, 1e12)]


def one_sample(data: Data) -> list[Trial]:
    """Return one sample."""
    few = data._replace(n=1)
    return [Trial(data.model, few.tables(), few.targets())]


def one_class(data: Data) -> list[Trial]:
    """Return samples of one class, or with one target."""
    y = np.ones(data.n, dtype=int if is_classifier(data.model) else float)
    return [Trial(data.model, data.tables(), y)]


def few_samples(data: Data) -> list[Trial]:
    """Return fewer samples than classes or labels."""
    few = data._replace(n=2)
    X = few.tables()
    trials = [Trial(data.model, X, few.targets())]
    if is_classifier(data.model) and hasattr(data.model, "partial_fit") and is_online(data.model):
        trials += [Trial(data.model, X, few.targets(), classes=np.arange(7))]
    elif getattr(data.model, "_multi_label", False):
        trials += [Trial(data.model, X, np.array([[1, 0, 1, 0, 0], [0, 0, 1, 1, 0]]))]
    elif is_regressor(data.model):
        trials += [Trial(data.model, X, data.rng.normal(size=(2, 5)))]
    return trials


def narrow(data: Data) -> list[Trial]:
    """Return views of one column."""
    return [Trial(data.model, mapped(data.tables(), lambda A: A[:, :1]), data.targets())]


def wide(data: Data) -> list[Trial]:
    """Return views of 100,000 columns: dense, and the same sparse, for which "auto" takes other kernels."""
    few = data._replace(n=9)
    A, y = np.zeros((9, 100_000)), few.targets()
    for row in A:
        row[data.rng.integers(100_000, size=40)] = 1.0
    A[:, :3] = few.tables()["a"]
    dense = {"a": A, "b": few.tables()["b"]}
    sparse = {**dense, "a": sp.csr_array(A)}
    other = Trial(data.model, sparse, y)
    if data.model.get_params(deep=False).get("kernel") == "auto":
        return [Trial(data.model, dense, y), other]
    return [Trial(data.model, dense, y, same=other, within=1e-6)]


def form(change: Callable[[Any], Any], plain: Callable[[Any], Any], within: float) -> Callable[[Data], list[Trial]]:
    """Return the condition of data in another form, which predict what the plain form does."""

    def condition(data: Data) -> list[Trial]:
        X, y = mapped(data.tables(), plain), data.targets()
        other = mapped(X, change)
        return [Trial(data.model, other, y, same=Trial(data.model, mapped(X, np.float64), y), within=within)]

    return condition


def read_only(A: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written."""
    copy = A.copy()
    copy.setflags(write=False)
    return copy


def strided(A: np.ndarray) -> np.ndarray:
    """Return a view of every other cell of a larger array, backwards."""
    large = np.full((2 * len(A), 3 * A.shape[1]), np.nan)
    inner = large[::-2, 1::3]
    inner[...] = A
    return inner


def sized(*factors: float, only: tuple[str, ...] = ()) -> Callable[[Data], list[Trial]]:
    """Return the condition of data that are multiplied."""

    def condition(data: Data) -> list[Trial]:
        X, y = data.tables(), data.targets()
        with np.errstate(under="ignore"):
            return [Trial(data.model, mapped(X, lambda A, f=f: A * f), y, only=only) for f in factors]

    return condition


def linear(*factors: float) -> Callable[[Data], list[Trial]]:
    """Return the condition of linear kernels of data that are multiplied, so that the kernels have these squares."""

    def condition(data: Data) -> list[Trial]:
        if not is_kernelized(data.model):
            return []
        model, X, y = clone(data.model).set_params(kernel="linear"), data.tables(), data.targets()
        return [Trial(model, mapped(X, lambda A, f=f: A * f), y) for f in factors]

    return condition


def tiny_targets(data: Data) -> list[Trial]:
    """Return targets of 1e-100 and less, and of 0."""
    if not is_regressor(data.model):
        return []
    X, y = data.tables(), data.targets()
    with np.errstate(under="ignore"):
        return [Trial(data.model, X, factor * y) for factor in (1e-100, 1e-300, 1e-320, 0.0)]


def huge_targets(data: Data) -> list[Trial]:
    """Return targets of 1e100 and more; where the problem is homogeneous, predictions grow in proportion."""
    if not is_regressor(data.model):
        return []
    X, y = data.tables(), data.targets()
    plain = Trial(data.model, X, y)
    grown = Trial(data.model, X, y * 2.0**40, same=plain, times=2.0**40, within=1e-6)
    return [grown if is_homogeneous(data.model) else grown._replace(same=None),
            Trial(data.model, X, 1e100 * y), Trial(data.model, X, 1e300 * y)]  # fmt: skip


def is_homogeneous(model: Any) -> bool:
    """Tell whether twice the targets give twice the predictions.

    A learned metric and a learned output kernel have a penalty of their own, steps of online estimators a size, and
    outputs of maximum margin regression are candidates.
    """
    learned = isinstance(model, (cs.ViewMetricRidge, cs.ViewMetricRidgeCV)) and model.metric == "learned"
    others = (cs.OutputKernelRidge, cs.MaxMarginRegressor, cs.PassiveAggressiveRegressor)
    return not (learned or isinstance(model, others))


def with_cell(value: float) -> Callable[[Data], list[Trial]]:
    """Return the condition of one cell with this value."""

    def condition(data: Data) -> list[Trial]:
        X, y = data.tables(), data.targets()
        X["a"][3, 1] = value
        return [Trial(data.model, X, y, only=("refused",) if np.isinf(value) else ())]

    return condition


def no_columns(data: Data) -> list[Trial]:
    """Return a view without columns."""
    X = {**data.tables(), "b": np.empty((data.n, 0))}
    return [Trial(data.model, X, data.targets(), only=("refused",))]


def no_rows(data: Data) -> list[Trial]:
    """Return views without samples."""
    X, y = data.tables(), data.targets()
    return [Trial(data.model, mapped(X, lambda A: A[:0]), y[:0], only=("refused",))]


def missing_view(data: Data) -> list[Trial]:
    """Return a view that is missing in all samples, which equals its removal."""
    X, y = data.tables(), data.targets()
    return [Trial(data.model, {**X, "c": np.full((data.n, 2), np.nan)}, y, same=Trial(data.model, X, y))]


def whole(A: np.ndarray) -> np.ndarray:
    """Return whole numbers."""
    return np.round(2 * A)


CONDITIONS: dict[str, Callable[[Data], list[Trial]]] = {
    "duplicated rows": duplicated_rows, "duplicated view": duplicated_view, "constant view": constant_view,
    "rank-deficient": low_rank, "columns scaled to 1e16": scaled_columns, "kernels scaled to 1e16": scaled_kernels,
    "kernel indefinite by 1e-10": slightly_indefinite, "indefinite kernel": indefinite,
    "penalties 1e-12, 1e-6": penalties(1e-12, 1e-6), "penalties 1e6, 1e12": penalties(1e6, 1e12),
    "weights 1e-12, 1e12": extreme_weights, "one sample": one_sample, "one class": one_class,
    "fewer samples than classes": few_samples, "width 1": narrow, "width 100,000": wide,
    "float32": form(np.float32, lambda A: np.float64(np.float32(A)), 2e-3),
    "integers": form(lambda A: A.astype(np.int64), whole, 1e-7),
    "booleans": form(lambda A: A > 0, lambda A: 1.0 * (A > 0), 1e-7),
    "Fortran order": form(np.asfortranarray, np.float64, 1e-7), "read-only": form(read_only, np.float64, 1e-12),
    "strided": form(strided, np.float64, 1e-7), "subnormals": sized(1e-310, 5e-324),
    "values of 1e-300": sized(1e-300),

    "values of 1e300": sized(1e300, only=("refused",)),
    "linear kernels of 1e-200, 1e-60": linear(1e-100, 1e-30),
    "linear kernels of 1e60, 1e200": linear(1e30, 1e100),
    "tiny targets": tiny_targets, "huge targets": huge_targets,
    "NaN in a cell": with_cell(np.nan),
    "inf": with_cell(np.inf), "no columns": no_columns, "no rows": no_rows, "view missing in all rows": missing_view,
}  # fmt: skip
#: Conditions in which predictions are compared with those of the same problem in another form.
EQUALITIES = (
    "duplicated rows", "duplicated view", "width 100,000", "float32", "integers", "booleans", "Fortran order",
    "read-only", "strided", "huge targets", "view missing in all rows",
)  # fmt: skip
