"""Columns by name: bring those of new samples into the order of the training samples."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from . import _blocks
from ._blocks import Block, some
from ._frames import as_frame, is_frame


def order_columns(
    what: str,
    block: Block,
    names: Sequence[str],
    expected: Sequence[str],
    categorical: Sequence[str] = (),
    means: np.ndarray | None = None,
) -> Block:
    """Return the expected columns of a block in their order.

    A category that no sample has is a column of zeros. Other columns that are lacking are filled with `means` where
    these are given, and refused otherwise. `what` names the view in messages.
    """
    place = {name: k for k, name in enumerate(names)}
    known = set(expected)
    zero = {name for name in expected if name not in place and _source(name, categorical) is not None}
    lost = [name for name in expected if name not in place and name not in zero]
    other = [name for name in names if name not in known]
    if lost and means is None:
        raise ValueError(
            f"{what} has no column {_blocks.quoted(lost[:5])}{f' and {len(lost) - 5} more' * (len(lost) > 5)}, which "
            f"the estimator was fitted on ({len(lost)} of {len(expected)} columns are missing). Give them by these "
            "names, or set missing_columns='fill' (--missing-columns fill) to fill them with the means of the training "
            "samples."
        )
    _tell_unknown(what, block, other, place, categorical)
    if lost:
        warnings.warn(
            f"{what} lacks {len(lost)} of {len(expected)} columns ({some(lost, 5)}); they are filled with the means of "
            "the training samples.",
            stacklevel=2,
        )
    where = np.array([place.get(name, -1) for name in expected])
    if (where >= 0).all():
        return _blocks.take_columns(block, where)
    filled = np.zeros(len(expected)) if means is None else np.where([name in zero for name in expected], 0.0, means)
    return _widened(block, where, filled)


def has_prefix(view: str, names: Sequence[str]) -> bool:
    """Tell whether all columns are named after their view: ``audio__mfcc1``."""
    return all(name.startswith(f"{view}__") for name in names)


def bare_names(view: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return column names without the prefix of their view: ``audio__mfcc1`` is ``mfcc1``."""
    return tuple(name.removeprefix(f"{view}__") for name in names)


def _source(name: str, categorical: Sequence[str]) -> str | None:
    """Return the categorical column that a one-hot column such as ``sex=F`` comes from."""
    return next((source for source in categorical if name.startswith(f"{source}=")), None)


def _tell_unknown(
    what: str, block: Block, other: Sequence[str], place: Mapping[str, int], categorical: Sequence[str]
) -> None:
    """Warn of columns that the estimator does not know, and of samples with unknown categories."""
    unknown = [name for name in other if _source(name, categorical) is not None]
    rest = [name for name in other if name not in unknown]
    if rest:
        warnings.warn(
            f"{what} has {len(rest)} column{'s' * (len(rest) != 1)} that the estimator was not fitted on "
            f"({some(rest, 5)}); ignored.",
            stacklevel=3,
        )
    for name in unknown:
        count = int((to_numpy(block[:, place[name]]) == 1).sum())
        if count:
            warnings.warn(
                f"{what}: {count} sample{'s have' if count != 1 else ' has'} the category {name!r}, which no training "
                "sample had; it counts as none of the known ones.",
                stacklevel=3,
            )


def _widened(block: Block, where: np.ndarray, filled: np.ndarray) -> Block:
    """Return columns by position, and constant columns where the position is -1; rows of NaN stay missing."""
    there = where >= 0
    taken = _blocks.take_columns(block, where[there])
    if sp.issparse(taken) and not filled[~there].any():
        order = np.empty(len(where), dtype=int)
        order[there] = np.arange(there.sum())
        order[~there] = np.arange(there.sum(), len(where))
        blank = sp.csr_array((taken.shape[0], int((~there).sum())), dtype=taken.dtype)
        return _blocks.take_columns(sp.hstack([taken, blank], format="csr"), order)
    values = taken.toarray() if sp.issparse(taken) else to_numpy(taken)
    out = np.empty((len(values), len(where)), dtype=values.dtype)
    out[:, there] = values
    out[:, ~there] = filled[~there]
    out[np.isnan(values).all(axis=1)] = np.nan
    return out


def column_means(block: Block, present: np.ndarray) -> np.ndarray:
    """Return the mean of each column over the samples that have the view, without NaN; 0 where all are NaN."""
    rows = np.flatnonzero(present)
    if sp.issparse(block):
        total = np.asarray(block.sum(axis=0)).reshape(-1)  # missing rows are empty
        return total / max(len(rows), 1)
    values = to_numpy(block)
    values = values if len(rows) == len(values) else values[rows]
    total = values.mean(axis=0, dtype=np.float64)
    if np.isnan(total).any():
        counts = np.count_nonzero(~np.isnan(values), axis=0)
        total = np.nansum(values, axis=0, dtype=np.float64) / np.maximum(counts, 1)
    return total


def divide_by_names(frame: Any, known: Mapping[str, Sequence[str] | None]) -> dict[str, Any] | None:
    """Return the parts of a plain frame that are the columns of known views; None if no name is known.

    A column that several views know is looked for as ``view__column``.
    """
    if not is_frame(frame) or not any(known.values()):
        return None
    wide = as_frame(frame)
    there = {str(column): k for k, column in enumerate(wide.columns)}
    owners: dict[str, list[str]] = {}
    for view, names in known.items():
        for source in sources_of(names or (), there):
            owners.setdefault(source, []).append(view)
    parts: dict[str, list[int]] = {}
    renamed: dict[str, dict[str, str]] = {}
    for source, views in owners.items():
        for view in views:
            prefixed = f"{view}__{source}"
            if prefixed in there and source not in there:
                parts.setdefault(view, []).append(there[prefixed])
                renamed.setdefault(view, {})[prefixed] = source
            elif source in there and len(views) == 1:
                parts.setdefault(view, []).append(there[source])
            elif source in there:
                raise ValueError(
                    f"Column '{source}' may be of the views {_blocks.quoted(views)}: the estimator knows it in each. "
                    f"Give the views by name, or name the columns '{views[0]}__{source}' and '{views[1]}__{source}'."
                )
    return {view: wide[:, columns].rename(renamed.get(view, {})).to_native() for view, columns in parts.items()}


def sources_of(names: Sequence[str], there: Collection[str]) -> list[str]:
    """Return the columns of a frame that the columns of a view come from: ``sex`` for ``sex=F``."""
    sources: dict[str, None] = {}
    for name in names:
        source = name.partition("=")[0]
        sources[source if name not in there and "=" in name and source in there else name] = None
    return list(sources)
