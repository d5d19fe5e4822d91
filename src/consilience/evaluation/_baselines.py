"""Baselines of a comparison, and estimators of one table: all columns of the views side by side."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from .._backend import is_device_array, to_numpy
from ..views._blocks import quoted
from ..views.container import Views
from ..views.conversion import as_views
from ..views.estimator import ViewEstimator
from ..views.recipes import MostAssociated
from ..views.validation import read_as_fitted, store_views

_MOST_CELLS = 100_000_000  # of a table, 800 MB
_BOOSTED_COLUMNS = 300  # that boosted trees read; their time grows with columns times classes
HISTOGRAM = HistGradientBoostingClassifier, HistGradientBoostingRegressor
_KINDS = {"objects": "text or objects", "gram": "a Gram matrix"}


class AllColumns(TransformerMixin, ViewEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Put the columns of all views side by side in one dense table, for estimators that do not take views.

    Cells of missing views are NaN. Views of text, other objects and Gram matrices have no columns and are left out.
    """

    missing_columns = "raise"  # new samples have the columns of the training samples

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the views and their columns."""
        X = as_views(X)
        store_views(self, X)
        self.columns_of_ = {
            name: int(X.block(name).shape[1]) for name in X.names if X.kind(name) in ("dense", "sparse")
        }
        if not self.columns_of_:
            raise ValueError(f"The views {quoted(X.names)} have no columns of numbers, so that there is no table.")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the table."""
        check_is_fitted(self, "columns_of_")
        X = read_as_fitted(self, X).align(self.view_names_in_)
        blocks = []
        for name, width in self.columns_of_.items():
            block = X.block(name)
            if X.kind(name) == "missing":
                blocks.append(np.full((len(X), width), np.nan))
                continue
            values = block.toarray() if sp.issparse(block) else to_numpy(block) if is_device_array(block) else block
            there = X.present(name)
            blocks.append(values if there.all() else np.where(there[:, None], values, np.nan))
        return np.hstack(blocks)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def takes_views(estimator: Any) -> bool:
    """Tell whether an estimator, or one of its parts, is an estimator of views."""
    parts = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(part, ViewEstimator) for part in (estimator, *parts))


def on_table(pair: tuple[Any, Mapping[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """Return an estimator of one table behind `AllColumns`, and its grid by the parameter names there."""
    estimator, grid = pair
    if isinstance(estimator, Pipeline):
        return Pipeline([("allcolumns", AllColumns()), *estimator.steps]), dict(grid)
    own = type(estimator).__name__.lower()
    return make_pipeline(AllColumns(), estimator), {f"{own}__{name}": values for name, values in grid.items()}


def baselines_of(X: Views, task: str) -> tuple[dict[str, tuple[Any, dict[str, Any]]], list[str]]:
    """Return the baselines that suit (prepared) views, and sentences about what they leave out."""
    if task == "regression":
        constant: Any = DummyRegressor()
        # a third of the columns per split, as Breiman (2001) advises for regression
        forest: Any = RandomForestRegressor(200, max_features=1 / 3, random_state=0)
        boosted: Any = HistGradientBoostingRegressor(random_state=0)
    else:
        constant = DummyClassifier(strategy="most_frequent")
        forest, boosted = RandomForestClassifier(200, random_state=0), HistGradientBoostingClassifier(random_state=0)
    found: dict[str, tuple[Any, dict[str, Any]]] = {type(constant).__name__: (constant, {})}
    kinds = {name: X.kind(name) for name in X.names}
    width = sum(X.block(name).shape[1] for name, kind in kinds.items() if kind in ("dense", "sparse"))
    if not width:
        return found, ["Random forest and boosted trees are left out, because no view has columns of numbers."]
    if len(X) * width > _MOST_CELLS:
        size = f"{len(X):,} samples and {width:,} columns"
        return found, [f"Random forest and boosted trees are left out, because the table of {size} is too large."]
    without = [f"'{name}' ({_KINDS[kind]})" for name, kind in kinds.items() if kind in _KINDS]
    notes = [f"Random forest and boosted trees do not use {', '.join(without)}: no columns of numbers."]
    notes = notes if without else []
    found[type(forest).__name__] = on_table((forest, {}))
    name = type(boosted).__name__
    if width > _BOOSTED_COLUMNS:
        boosted = make_pipeline(MostAssociated(_BOOSTED_COLUMNS, task=task), boosted)
        notes.append(
            f"Boosted trees use the {_BOOSTED_COLUMNS} columns, of {width:,}, most associated with the target in each "
            "training part."
        )
    found[name] = on_table((boosted, {}))
    return found, notes
