"""Columns by name: bring those of new samples into the order of the training samples."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, namespace, take_rows, to_numpy
from . import _blocks, _frames
from ._annotated import NamedMatrix
from ._blocks import Block, some
from ._frames import NO_LEVELS, Levels, encode_columns, is_frame, level_names, level_text
from ._reading import as_row, is_missing, objects_of
from ._samples import index_names, is_default


def match_columns(
    view: str,
    block: Block,
    given: tuple[tuple[str, ...], Levels],
    fitted: tuple[tuple[str, ...], Levels],
    means: np.ndarray | None,
    *,
    can_fill: bool = True,
) -> Block:
    """Return a view with the columns that an estimator was fitted on; both sides have names of columns and categories.

    If the columns of only one side are named after the view, the prefix does not count. A view of text is returned as
    it is, unless the estimator knows its column as a categorical one.
    """
    (names, own), (expected, known) = given, fitted
    if has_prefix(view, names) != has_prefix(view, expected):
        names, expected = (bare_names(view, listed) for listed in (names, expected))
        own, known = (bare_levels(view, levels) for levels in (own, known))
    block, names, own = encode_known(f"View '{view}'", block, names, own, known)
    if block.dtype == object:
        return block
    return order_columns(f"View '{view}'", block, names, expected, own, known, means, can_fill=can_fill)


def order_columns(
    what: str,
    block: Block,
    names: Sequence[str],
    expected: Sequence[str],
    own: Levels = NO_LEVELS,
    known: Levels = NO_LEVELS,
    means: np.ndarray | None = None,
    *,
    can_fill: bool = True,
) -> Block:
    """Return the expected columns of a block in their order.

    `own` and `known` are the categories of the block and of the expected columns. Of a categorical column that the
    block has, categories that no sample has are columns of zeros, and unknown ones are left out. Other columns that are
    lacking are filled with `means` where these are given, and refused otherwise. `what` names the view in messages.
    """
    place = {name: k for k, name in enumerate(names)}
    mine, theirs = _variables(names, own, known), _variables(expected, known, own)
    there = {*own, *mine.values()}
    zero = {name: theirs[name] for name in expected if name not in place and theirs.get(name) in there}
    lost = [name for name in expected if name not in place and name not in zero]
    changed = next((name for name in lost if name in own), None)
    if changed is not None:
        raise ValueError(
            f"{what}: column '{changed}' has categories ({some(own[changed], 3)}), but had numbers when the estimator "
            "was fitted. Give numbers."
        )
    shown = list(dict.fromkeys(theirs.get(name, name) for name in lost))
    if lost and means is None:
        raise ValueError(
            f"{what} has no column {_blocks.quoted(shown[:5])}{f' and {len(shown) - 5} more' * (len(shown) > 5)}, "
            f"which the estimator was fitted on ({len(lost)} of {len(expected)} columns are missing). Give them by "
            "these names" + can_fill * ", or set missing_columns='fill' (--missing-columns fill) to fill them with the "
            "means of the training samples" + "."
        )
    kept = set(expected)
    _tell_unknown(what, block, [name for name in names if name not in kept], place, mine)
    if lost:
        warnings.warn(
            f"{what} lacks {len(lost)} of {len(expected)} columns ({some(shown, 5)}); they are filled with the means "
            "of the training samples.",
            stacklevel=2,
        )
    where = np.array([place.get(name, -1) for name in expected])
    if (where >= 0).all():
        return _blocks.take_columns(block, where)
    filled = np.zeros(len(expected)) if means is None else np.where([name in zero for name in expected], 0.0, means)
    out = _widened(block, where, filled)
    sources = {variable: place[name] for name, variable in mine.items()}
    for k, name in enumerate(expected):
        if name in zero and zero[name] in sources and not sp.issparse(out):  # sparse data have no missing values
            out[np.isnan(to_numpy(block[:, sources[zero[name]]])), k] = np.nan
    return out


def _variables(names: Iterable[str], levels: Levels, others: Levels) -> dict[str, str]:
    """Return the categorical column of each one-hot column such as ``sex=F``.

    `levels` has the categories of these columns. Where only the other side knows that a column is categorical, the
    beginning of the name decides.
    """
    listed = {name: column for column, own in levels.items() for name in level_names(column, own)}
    guessed = [column for column in others if column not in levels]
    found = {}
    for name in names if listed or guessed else ():
        column = listed.get(name) or next((column for column in guessed if name.startswith(f"{column}=")), None)
        if column is not None:
            found[name] = column
    return found


def encode_known(
    what: str, block: Block, names: tuple[str, ...], own: Levels, known: Levels
) -> tuple[Block, tuple[str, ...], Levels]:
    """Return a view with its columns that `known` has as categories encoded, where they were read as something else.

    That is so if they have no value, if they have numbers that are codes of categories, and if the only column of the
    view has strings, which would be text.
    """
    for column in known:
        if column in own or column not in names:
            continue
        k = names.index(column)
        text = block.dtype == object
        values = block if text else to_numpy(block[:, [k]].toarray().ravel() if sp.issparse(block) else block[:, k])
        items = [None if is_missing(value) else level_text(value) for value in values.tolist()]
        found = dict.fromkeys(item for item in items if item is not None)
        if found and not text and not any(item in known[column] for item in found):
            raise ValueError(
                f"{what}: column '{column}' has numbers ({some(list(found), 3)}), but had the categories "
                f"{_blocks.quoted(known[column][:5])}{', ...' * (len(known[column]) > 5)} when the estimator was "
                "fitted. Give these categories."
            )
        encoded = encode_columns(what, {column: objects_of(items)}, {column: known[column]}, [column])
        if text:
            return encoded
        dense = block.toarray() if sp.issparse(block) else to_numpy(block)
        block = np.hstack([dense[:, :k], encoded.block.astype(dense.dtype), dense[:, k + 1 :]])
        names = (*names[:k], *encoded.names, *names[k + 1 :])
        own = {**own, **encoded.categories}
    return block, names, own


def joined_levels(levels: Sequence[Levels]) -> dict[str, tuple[str, ...]]:
    """Return the categories of all parts of a view, in the order in which parts have them."""
    joined: dict[str, dict[str, None]] = {}
    for own in levels:
        for column, categories in own.items():
            joined.setdefault(column, {}).update(dict.fromkeys(categories))
    return {column: tuple(categories) for column, categories in joined.items()}


def joined_names(names: Sequence[str], own: Levels, every: Levels) -> tuple[str, ...]:
    """Return the columns of a part of a view with the categories of all parts in their places."""
    listed = {name: column for column, levels in own.items() for name in level_names(column, levels)}
    found: dict[str, None] = {}
    for name in names:
        column = listed.get(name, name)
        found.update(dict.fromkeys(level_names(column, every[column]) if column in every else [name]))
    return tuple(found)


def has_prefix(view: str, names: Sequence[str]) -> bool:
    """Tell whether all columns are named after their view: ``audio__mfcc1``."""
    return all(name.startswith(f"{view}__") for name in names)


def bare_names(view: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return column names without the prefix of their view: ``audio__mfcc1`` is ``mfcc1``."""
    return tuple(name.removeprefix(f"{view}__") for name in names)


def bare_levels(view: str, levels: Levels) -> Levels:
    """Return categories of columns without the prefix of their view."""
    return {column.removeprefix(f"{view}__"): own for column, own in levels.items()}


def _tell_unknown(
    what: str, block: Block, other: Sequence[str], place: Mapping[str, int], variables: Mapping[str, str]
) -> None:
    """Warn of columns that the estimator does not know, and of samples with unknown categories."""
    rest = [name for name in other if name not in variables]
    if rest:
        warnings.warn(
            f"{what} has {len(rest)} column{'s' * (len(rest) != 1)} that the estimator was not fitted on "
            f"({some(rest, 5)}); ignored.",
            stacklevel=3,
        )
    for name in other:
        if name in variables:
            _tell_category(what, block, place[name], name, "it counts as none of the known ones")


def tell_new_categories(view: str, block: Block, names: Sequence[str], known: Levels, means: np.ndarray | None) -> None:
    """Warn of samples with a category that the estimator knows, but that no training sample had."""
    place = {name: k for k, name in enumerate(names)} if means is not None else {}
    for name in [name for column, own in known.items() for name in level_names(column, own)]:
        if means is not None and means[place[name]] == 0:
            _tell_category(f"View '{view}'", block, place[name], name, "its column was zero at fit")


def _tell_category(what: str, block: Block, k: int, name: str, effect: str) -> None:
    values = block[:, [k]].toarray() if sp.issparse(block) else to_numpy(block[:, k])
    count = int((values == 1).sum())
    if count:
        warnings.warn(
            f"{what}: {count} sample{'s have' if count != 1 else ' has'} the category {name!r}, which no training "
            f"sample had; {effect}.",
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
    if is_device_array(block):
        xp, there = namespace(block), block if len(rows) == block.shape[0] else take_rows(block, rows)
        known = ~xp.isnan(there)
        counts = to_numpy(xp.sum(xp.astype(known, xp.float64), axis=0))
        sums = xp.sum(xp.where(known, there, xp.zeros_like(there)), axis=0, dtype=xp.float64)
        return to_numpy(sums) / np.maximum(counts, 1)
    values = block if len(rows) == len(block) else block[rows]
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
    wide = _frames.as_frame(frame)
    there = {column: k for k, column in enumerate(_frames.column_names("The data frame", wide))}
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
        source = None if name in there else next((own for own in possible_sources(name) if own in there), None)
        sources[name if source is None else source] = None
    return list(sources)


def possible_sources(name: str) -> list[str]:
    """Return the columns that a one-hot column may come from; their names and categories may have the sign = too."""
    return [name[:k] for k, sign in enumerate(name) if sign == "="]


def read_frames(X: Any, known: Mapping[str, Levels]) -> Any:
    """Return views by name with frames read as matrices, where an estimator knows categories of theirs.

    They need not look like categories then: each of a few samples may have one of its own.
    """
    read = dict(X)
    for view, value in X.items():
        if known.get(view) and is_frame(value):
            columns = [form for column in known[view] for form in (column, f"{view}__{column}")]
            block, names, categories = _frames.read_frame(view, value, columns)
            read[view] = NamedMatrix(block, names, index_names(value), categories)
    return read


# -- rows of single samples
def named_values(row: Any) -> dict[str, Any] | None:
    """Return the values of a pandas Series, a frame of one row or a dict by the names of columns; None for others."""
    if is_frame(row) and len(row) == 1:
        frame = _frames.as_frame(row)
        return dict(zip(_frames.column_names("The row", frame), frame.row(0), strict=True))
    if sp.issparse(row) or not (isinstance(row, Mapping) or (index_names(row) is not None and row.ndim == 1)):
        return None
    values = {str(name): value for name, value in row.items()}
    if len(values) < len(row):
        raise ValueError(f"A row has {len(row)} values and only {len(values)} different names. Name each column once.")
    return values


def read_row(view: str, row: Any) -> Any:
    """Return the row of one sample as `Views` reads it, with the names of its columns where it has some."""
    values, index = named_values(row), index_names(row)
    if values is None or (index is not None and row.ndim == 1 and is_default(index)):
        row = row.to_numpy() if hasattr(row, "to_numpy") else row
        return as_row(row, f"View '{view}'") if hasattr(row, "ndim") else [row]
    encoded = encode_columns(f"View '{view}'", {name: objects_of([value]) for name, value in values.items()})
    return NamedMatrix(encoded.block, encoded.names, None, encoded.categories)


def rows_in_order(known: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sample whose rows are arrays, in the order of the known columns, where they name exactly these."""
    ordered: dict[str, Any] = {}
    for view, row in x.items():
        kind, _, names = known.get(view, ("", 0, None))
        if kind != "numbers" or names is None or type(row) is np.ndarray or (values := named_values(row)) is None:
            continue
        if values.keys() == set(names):
            numbers = np.array([values[name] for name in names])
            if numbers.dtype.kind in "fiub":
                ordered[view] = numbers.astype(np.float64)
    return {**x, **ordered} if ordered else x
