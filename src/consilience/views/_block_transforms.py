"""Transformers of views that learn from blocks of rows, and blocks whose samples are transformed when they are read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from .container import Views
from .recipes import LogColumns, transformer_of
from .row_blocks import RowBlock, RowBlocks
from .validation import _as_before, named_as_before, read_as_fitted, remember, store_means


def transformed_blocks(blocks: RowBlocks, transform: Callable[[Views], Views]) -> RowBlocks:
    """Return the same blocks with transformed samples, their targets and weights; nothing is kept between passes."""

    def source() -> Iterator[RowBlock]:
        for X, y, sample_weight in blocks:
            yield RowBlock(transform(X), y, sample_weight)

    return RowBlocks(source, n_samples=blocks.n_samples, name=blocks.name)


def survey_views(estimator: Any, blocks: RowBlocks) -> Views:
    """Store the views of all blocks on a transformer; return a few rows that have every view that some row has."""
    rows: list[Views] = []
    met: set[str] = set()
    totals: dict[str, tuple[Any, int]] = {}
    for number, block in enumerate(blocks):
        X = block.X
        if number:
            X = _as_before(estimator, named_as_before(estimator, X))
            new = (name for name in X.names if name not in estimator.view_names_in_)
            X = X.align((*estimator.view_names_in_, *new))
        else:
            estimator._known, estimator._categories = {}, {}
        remember(estimator, X)
        store_means(estimator, X, totals)
        for name in X.names:
            here = np.flatnonzero(X.present(name))
            if len(here) and name not in met:
                met.add(name)
                rows.append(X[here[:1]])
    return Views.concat(rows).align(estimator.view_names_in_)


def fit_by_blocks(
    estimator: Any, blocks: RowBlocks, by_view: Mapping[str, Any], present: Callable[[Views, str], tuple[Any, Any]]
) -> dict[str, Any]:
    """Return the fitted transformer of each view, None where no sample has it; one pass for each step.

    `by_view` has the steps, "passthrough" or "drop" of each view; `present` returns the data of the rows that have a
    view, and their positions.
    """
    fitted: dict[str, list[Any]] = {name: [] for name, steps in by_view.items() if not isinstance(steps, str)}
    for k in range(max((len(by_view[name]) for name in fitted), default=0)):
        made: dict[str, Any] = {}
        for block in blocks:
            X = read_as_fitted(estimator, block.X).align(estimator.view_names_in_)
            for name in fitted:
                if len(by_view[name]) <= k:
                    continue
                data, rows = present(X, name)
                if data is None:
                    continue
                if sp.issparse(data) and name in estimator._dense_views:
                    data = data.toarray()
                for before in fitted[name]:
                    data = before.transform(data)
                if name not in made:
                    made[name] = _checked(name, transformer_of(by_view[name][k], data, name))
                _learn(made[name], data, None if block.y is None else np.asarray(block.y)[rows])
        for name, own in made.items():
            fitted[name].append(own)
    found: dict[str, Any] = {name: steps for name, steps in by_view.items() if isinstance(steps, str)}
    for name, steps in fitted.items():
        found[name] = None if not steps else steps[0] if len(steps) == 1 else make_pipeline(*steps)
    return {name: found[name] for name in by_view}


def _is_stateless(transformer: Any) -> bool:
    return isinstance(transformer, LogColumns) or not get_tags(transformer).requires_fit


def _checked(name: str, transformer: Any) -> Any:
    if hasattr(transformer, "partial_fit") or _is_stateless(transformer):
        return transformer
    raise ValueError(
        f"View '{name}': {transformer!r} has no partial_fit, so it needs all samples in memory. Use a transformer that "
        "has it, such as StandardScaler() or the recipe 'standardize', or fit PerView on a sample in memory."
    )


def _learn(transformer: Any, data: Any, y: Any) -> None:
    if hasattr(transformer, "partial_fit"):
        transformer.partial_fit(data, y)
    else:
        transformer.fit(data, y)  # which only validates
