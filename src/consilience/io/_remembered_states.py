"""Validation of what estimators that were read from a file remember of their views: kinds, columns and categories."""

from collections.abc import Mapping
from typing import Any

from ..views._frames import level_names
from ._consensus_states import Require
from ._running_states import check_running


def check_remembered(estimator: Any, require: Require) -> None:
    """Validate the views that a fitted estimator knows, their columns and their categories.

    Parameters
    ----------
    estimator : object
        A fitted estimator of the library.
    require : callable
        Function that raises an error with a text unless its first argument is true.
    """
    check_running(estimator, require)
    fitted = vars(estimator)
    known = fitted.get("_known", {})
    for name, (kind, wide, columns) in known.items():
        require(name in estimator.view_names_in_ and isinstance(kind, str) and type(wide) is int, "_known")
        require(columns is None or (isinstance(columns, tuple) and len(columns) == wide), "_known")
    categories = fitted.get("_categories", {})
    require(isinstance(categories, dict) and set(categories) <= set(known), "_categories")
    for name, levels in categories.items():
        require(isinstance(levels, Mapping), "_categories")
        columns = set(known[name][2] or ())
        for column, own in levels.items():
            texts = isinstance(column, str) and isinstance(own, tuple) and all(isinstance(level, str) for level in own)
            require(texts and columns.issuperset(level_names(column, own)), "_categories")
