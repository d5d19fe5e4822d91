"""Importance of columns: coefficients where the estimator is linear, else the score that is lost by shuffling them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from ..batch._estimator import BatchEstimator
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.validation import labeled_rows, read_as_fitted, read_views_to_predict
from ._coefficients import column_coefficients
from ._shuffling import ColumnUnit, ShuffledView, column_deviations, prediction_signals, present_block, screened_losses
from ._wrappers import final_estimator, final_views, fitted_final, in_target_units, steps_of

__all__ = ["FeatureImportances", "feature_importances"]

_SHOWN = 20  # rows of the printed table


@dataclass(frozen=True)
class FeatureImportances:
    """Importance of the columns of each view, the largest first; prints as a table.

    Parameters
    ----------
    method : {"coefficients", "permutation"}
        How the importances were computed; see `feature_importances`.
    views, names : tuple of str
        View and name of each row: a column, or a group of columns.
    importances : array of shape (n_rows,)
        Importance of each row.
    standard_errors : array of shape (n_rows,) or None
        Standard errors of the importances over the repeated permutations; None for coefficients.
    columns : tuple of array of int
        Positions of the columns of each row in their view.
    coefficients : array of shape (n_rows, n_outputs) or None
        Change of each output if the column grows by one standard deviation; NaN for groups of columns. None for
        permutation.
    outputs : tuple of str
        Names of the outputs that coefficients are about.
    is_block : array of bool of shape (n_rows,)
        True for columns that were only shuffled together, because all of them lost too little score to look closer.
    n_samples : dict of int
        Samples that were used, by view.
    score : float or None
        Score of the model for all samples; None for coefficients.
    meaning : str
        What the importances are, in a sentence.

    Examples
    --------
    >>> import consilience as cs
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> X = cs.Views({name: X[name] / X[name].std(axis=0) for name in X.names})
    >>> model = cs.CoRegularizedRidgeClassifier("linear").fit(X, y)
    >>> found = cs.feature_importances(model, X, view="worst")
    >>> len(found), found.outputs
    (10, ('output 0',))
    """

    method: str
    views: tuple[str, ...]
    names: tuple[str, ...]
    importances: np.ndarray
    standard_errors: np.ndarray | None
    columns: tuple[np.ndarray, ...] = field(repr=False)
    coefficients: np.ndarray | None = None
    outputs: tuple[str, ...] = ()
    is_block: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    n_samples: Mapping[str, int] = field(default_factory=dict)
    score: float | None = None
    meaning: str = ""

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self) -> Any:
        """Return the importances as a pandas DataFrame with one row per column or group.

        Returns
        -------
        pandas.DataFrame
            Columns ``view``, ``feature``, ``importance``, then ``standard_error`` or the coefficient of each output,
            ``n_columns`` and ``is_block``.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("FeatureImportances.to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame(self._table())

    def _table(self) -> dict[str, Any]:
        table: dict[str, Any] = {"view": self.views, "feature": self.names, "importance": self.importances}
        if self.standard_errors is not None:
            table["standard_error"] = self.standard_errors
        if self.coefficients is not None:
            single = self.coefficients.shape[1] == 1
            for name, values in zip(self.outputs, self.coefficients.T, strict=True):
                table["coefficient" if single else f"coefficient of {name}"] = values
        return {**table, "n_columns": [len(own) for own in self.columns], "is_block": self.is_block}

    def __str__(self) -> str:
        table = {name: list(values)[:_SHOWN] for name, values in self._table().items() if name != "is_block"}
        cells = {name: [name, *(_text(value) for value in values)] for name, values in table.items()}
        widths = {name: max(map(len, own)) for name, own in cells.items()}
        lines = [self.meaning]
        for k in range(1 + min(len(self), _SHOWN)):
            parts = [
                own[k].ljust(widths[name]) if name in ("view", "feature") else own[k].rjust(widths[name])
                for name, own in cells.items()
            ]
            lines.append("  ".join(parts).rstrip())
        if len(self) > _SHOWN:
            lines.append(f"... and {len(self) - _SHOWN} more rows; to_frame() has all of them.")
        return "\n".join(lines)


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


@validate_params(
    {
        "view": [str, list, tuple, None],
        "groups": [Mapping, "array-like", None],
        "method": [StrOptions({"auto", "coefficients", "permutation"})],
        "scoring": [str, callable, None],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "max_scores": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def feature_importances(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    view: str | Sequence[str] | None = None,
    groups: Any = None,
    method: str = "auto",
    scoring: Any = None,
    n_repeats: int = 5,
    max_scores: int = 1000,
    random_state: int = 0,
) -> FeatureImportances:
    """Return which columns of each view a fitted model uses, and how much.

    There are two methods:

    - *coefficients*, for estimators of linear kernels and early fusion of a linear estimator. The function of view v is
      f_v(x) = Σ_i a_i k(x_i, x), with k(x, z) = x·z and training samples x_i. So it has a coefficient for each column,
      w_v = X_v'a, and with the weight c_v of the view the coefficient of column j is c_v w_vj σ_j, where σ_j is the
      standard deviation of the column in `X`. It is the change of the output if the column grows by one standard
      deviation and nothing else changes. The importance is its size: the standard deviation of what the column adds to
      the output, and for a group of columns the standard deviation of what they add together. Several outputs count by
      the root of their squares. Of correlated columns, each gets a part of what they say together.
    - *permutation*, for every model: the values of a column are shuffled among the samples, and the importance is the
      score that is lost, as the mean of `n_repeats` shuffles (Breiman 2001). Its standard error is about the shuffles
      alone; other samples would give other importances. Of correlated columns, each one may lose nothing, because the
      others replace it: give them as a group.

    Parameters
    ----------
    model : estimator
        A fitted estimator of views, or a pipeline, search or other wrapper around one.
    X : Views or what `as_views` reads
        Samples that were not used to fit it, as you give them to ``model.predict``.
    y : array-like of shape (n_samples,), optional
        Their classes or targets; needed for permutation. A pandas Series is matched by the names of the samples.
    view : str or sequence of str, optional
        Views whose columns are examined. Default: all.
    groups : dict or array-like, optional
        Columns that belong together, such as the genes of a pathway or correlated columns. A dict from the name of a
        group to its columns, by name or position, or an array with a label per column; for several views a dict of
        these by view. Columns without a group stay alone; a column may be in several groups of a dict. Default: each
        column alone, and the one-hot columns of a category together.
    method : {"auto", "coefficients", "permutation"}, default="auto"
        The method. "auto" takes coefficients where the model is linear.
    scoring : str or callable, optional
        For permutation, a scorer of scikit-learn. Default: the `score` of the model.
    n_repeats : int, default=5
        Number of shuffles of each column or group. All columns of a view are shuffled in the same ways.
    max_scores : int, default=1000
        For permutation, the largest number of times that the model is scored. If there are more columns than that
        allows, columns are first shuffled together. A block of columns is divided into two halves while it loses more
        than two standard errors, those that lose most first. The other blocks are returned as one row each.
    random_state : int, default=0
        Seed of the shuffles.

    Returns
    -------
    FeatureImportances
        A row per column or group, the most important first; prints as a table, and `to_frame` returns a data frame.

    See Also
    --------
    view_importances : The score that is lost without a whole view.
    FeatureImportancesDisplay : A bar chart of the importances.
    sklearn.inspection.permutation_importance : The same permutation for one table.

    Notes
    -----
    Coefficients are about the columns that the final estimator receives: of a pipeline that scales or selects columns,
    the scaled and selected ones. Standard deviations make coefficients of scaled and unscaled columns equal.
    Permutation is about the columns that the first step receives. A view is shuffled and scored among the samples that
    have it. Where a whole view has strings, trees or a Gram matrix, its rows are shuffled.

    References
    ----------
    Breiman (2001). Random forests. Machine Learning 45.

    Examples
    --------
    >>> import consilience as cs
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> linear = make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidgeClassifier("linear"))
    >>> found = cs.feature_importances(linear.fit(X[:400], y[:400]), X[400:], y[400:])
    >>> found.method, found.views[0]
    ('coefficients', 'worst')
    >>> rbf = make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidgeClassifier("rbf"))
    >>> found = cs.feature_importances(rbf.fit(X[:400], y[:400]), X[400:], y[400:])
    >>> found.method, len(found)
    ('permutation', 30)
    """
    if method != "permutation":
        found = _by_coefficients(model, X, view, groups)
        if found is not None:
            return found
        if method == "coefficients":
            raise TypeError(
                f"{type(final_estimator(model)).__name__} has no coefficients of columns: its views need linear "
                "kernels, such as kernel='linear'. Use method='permutation'."
            )
    if y is None:
        raise TypeError("Permutation needs `y`, the targets of the samples: feature_importances(model, X, y).")
    return _by_permutation(model, X, y, view, groups, scoring, int(n_repeats), int(max_scores), int(random_state))


# -- the columns
def _units(X: Views, view: Any, groups: Any) -> list[ColumnUnit]:
    """Return the columns or groups of columns to examine, view by view."""
    chosen = list(X.names) if view is None else [view] if isinstance(view, str) else list(view)
    for name in chosen:
        if name not in X.names:
            raise ValueError(f"`view` must name views of the samples, {_blocks.quoted(X.names)}; got {name!r}.")
    by_view = _groups_by_view(groups, chosen, X)
    units: list[ColumnUnit] = []
    for name in chosen:
        if X.kind(name) not in ("dense", "sparse"):
            if name in by_view:
                raise ValueError(f"`groups` is about columns, and view '{name}' has none ({X.kind(name)}).")
            units.append(ColumnUnit(name, name, np.arange(0), is_column=False))
            continue
        p = _blocks.width(X.block(name))
        names = X.feature_names.get(name) or tuple(map(str, range(p)))
        units += _units_of(name, names, by_view.get(name), X.categories.get(name, {}))
    return units


def _groups_by_view(groups: Any, chosen: Sequence[str], X: Views) -> dict[str, Any]:
    """Return the groups of each view; without names of views, they are those of the only view."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping) and groups and all(name in X.names for name in groups):
        other = [name for name in groups if name not in chosen]
        if other:
            raise ValueError(f"`groups` has the view '{other[0]}', which `view` does not choose.")
        return dict(groups)
    if len(chosen) == 1:
        return {chosen[0]: groups}
    raise ValueError(
        f"`groups` must be a dict by view, because there are {len(chosen)}: {_blocks.quoted(chosen)}. Or choose one "
        "by `view`."
    )


def _units_of(view: str, names: Sequence[str], groups: Any, categories: Mapping[str, Any]) -> list[ColumnUnit]:
    """Return the units of one view: groups, then columns that no group has."""
    place = {name: j for j, name in enumerate(names)}
    if groups is None:
        groups = {own: [f"{own}={level}" for level in levels] for own, levels in categories.items()}
    elif not isinstance(groups, Mapping):
        labels = np.asarray(groups)
        if labels.shape != (len(names),):
            raise ValueError(
                f"`groups` of view '{view}' must have a label for each of its {len(names)} columns; got the shape "
                f"{labels.shape}."
            )
        groups = {str(label): np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels.tolist())}
    units, grouped = [], np.zeros(len(names), dtype=bool)
    for group, own in groups.items():
        columns = _places(view, str(group), [own] if isinstance(own, str) else list(own), place)
        units.append(ColumnUnit(view, str(group), columns, is_column=False))
        grouped[columns] = True
    return [*units, *(ColumnUnit(view, names[j], np.array([j])) for j in np.flatnonzero(~grouped).tolist())]


def _places(view: str, group: str, own: Sequence[Any], place: Mapping[str, int]) -> np.ndarray:
    found = []
    for column in own:
        is_place = isinstance(column, Integral) and not isinstance(column, bool)
        j = int(column) if is_place else place.get(column, -1)
        if not 0 <= j < len(place):
            raise ValueError(
                f"`groups` puts the column {column!r} into '{group}', but view '{view}' has {len(place)} columns, "
                f"{_blocks.some(list(place), 5)}."
            )
        found.append(j)
    if not found:
        raise ValueError(f"`groups` has no column in '{group}' of view '{view}'. Leave the group out.")
    return np.unique(found)


# -- coefficients
def _by_coefficients(model: Any, X: Any, view: Any, groups: Any) -> FeatureImportances | None:
    """Return importances by coefficients; None if the model is not linear."""
    final = final_estimator(model)
    if not isinstance(final, BatchEstimator):
        return None
    final = fitted_final(model, "view_names_in_")
    X = read_views_to_predict(final, final_views(model, X))
    coefficients = column_coefficients(final, X)
    if coefficients is None:
        return None
    units = _units(X, view, groups)
    factor = _target_factor(model, next(iter(coefficients.values())).shape[1])
    deviations = {name: column_deviations(X, name) for name in {unit.view for unit in units}}
    rows = np.full((len(units), len(factor)), np.nan)
    sizes = np.zeros(len(units))
    for k, unit in enumerate(units):
        W = coefficients[unit.view][unit.columns] * factor
        if unit.is_column:
            rows[k] = W[0] * deviations[unit.view][unit.columns[0]]
            sizes[k] = np.sqrt((rows[k] ** 2).sum())
        else:
            sizes[k] = _joint_size(X, unit, W)
    classes = list(getattr(final, "classes_", ())) if is_classifier(final) else []
    outputs = list(map(str, classes)) if len(classes) == rows.shape[1] else [f"output {k}" for k in range(len(factor))]
    order = np.argsort(-sizes, kind="stable")
    what = "the decision function" if is_classifier(final) else "the prediction"
    towards = f" (towards class '{classes[1]}' where positive)" if len(classes) == 2 and rows.shape[1] == 1 else ""
    return FeatureImportances(
        "coefficients", *_named(units, order), sizes[order], None, tuple(units[k].columns for k in order), rows[order],
        tuple(outputs), np.zeros(len(order), dtype=bool),
        {name: int(X.present(name).sum()) for name in dict.fromkeys(unit.view for unit in units)}, None,
        f"Change of {what}{towards} if a column grows by one standard deviation and the others stay as they are.",
    )  # fmt: skip


def _named(units: Sequence[ColumnUnit], order: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(units[k].view for k in order), tuple(units[k].name for k in order)


def _target_factor(model: Any, n_outputs: int) -> np.ndarray:
    """Return how far the target moves with each output; ones where its transformation is not linear."""
    values = np.array([-1.0, 0.0, 1.0, 2.0])[:, None, None] * np.ones((1, 1, n_outputs))
    steps = np.diff(in_target_units(model, values)[:, 0], axis=0)
    linear = steps.shape[1] == n_outputs and np.allclose(steps, steps[0], rtol=1e-6, atol=0)
    return steps[0] if linear else np.ones(n_outputs)


def _joint_size(X: Views, unit: ColumnUnit, W: np.ndarray) -> float:
    """Return the standard deviation of what several columns add to the outputs together."""
    added = np.asarray(present_block(X, unit.view)[:, unit.columns] @ W)
    return float(np.sqrt(np.nanvar(added, axis=0).sum())) if len(added) else float("nan")


# -- permutation
def _by_permutation(
    model: Any, X: Any, y: Any, view: Any, groups: Any, scoring: Any, n_repeats: int, max_scores: int, seed: int
) -> FeatureImportances:
    first = steps_of(model)[0]
    X = read_as_fitted(first, X) if hasattr(first, "view_names_in_") else as_views(X)
    y = np.asarray(in_order_of(X, y, "y"))
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} samples, but y has {len(y)}. Give one target per sample.")
    labeled, known = labeled_rows(y, getattr(final_estimator(model), "unlabeled", None))
    if not labeled.all():  # unlabeled samples cannot be scored
        X, y = X[labeled], known if y.ndim == 1 else y[labeled]
    score = check_scoring(model, scoring=scoring)
    units = _units(X, view, groups)
    tests = {name: ShuffledView(model, score, X, y, name, n_repeats, seed) for name in {unit.view for unit in units}}
    rows = screened_losses(units, tests, max(max_scores // n_repeats, 1), lambda: prediction_signals(model, X))
    values = np.array([row[1] for row in rows])
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    blocks = np.array([row[3] for row in rows])[order]
    rest = " Rows of several columns without a name of their own lost too little to look closer." * bool(blocks.any())
    name = scoring if isinstance(scoring, str) else "the score"
    errors = np.array([row[2] for row in rows])[order]
    return FeatureImportances(
        "permutation", *_named([row[0] for row in rows], order), values[order], errors,
        tuple(rows[k][0].columns for k in order), None, (), blocks,
        {view: len(tests[view].y) for view in dict.fromkeys(unit.view for unit in units)},
        float(score(model, X, y)),
        f"Loss of {name} when a column is shuffled among the samples: mean of {n_repeats} shuffles, and its standard "
        f"error.{rest}",
    )  # fmt: skip
