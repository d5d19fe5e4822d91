"""Which columns of a table make which view: by prefix, by a dict or a TOML file, or by default."""

import re
import tomllib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..views._blocks import quoted
from ..views._tables import by_prefix, divide
from ..views.container import Views
from .tables import Table, naming_file


class Part(NamedTuple):
    """A view of a table, and the names of its columns where they have some."""

    block: Any
    names: tuple[str, ...]
    table: Table


def read_layout(views: Any, target: str | None = None, ids: str | None = None) -> tuple[Any, str | None, str | None]:
    """Read which columns make which view, and which are the target and the names of the samples.

    Parameters
    ----------
    views : dict, "prefix", path of a .toml file, or None
        As `read_samples` takes it; a TOML file may name ``target`` and ``id`` too.
    target, ids : str, optional
        Columns of the target and of the sample names. They take precedence over a TOML file.

    Returns
    -------
    views : dict, "prefix" or None
        Columns or patterns by view.
    target, ids : str or None
        The columns of the target and of the sample names.

    Examples
    --------
    >>> from consilience.io import read_layout
    >>> read_layout({"audio": "mfcc_*"}, target="word")
    ({'audio': ['mfcc_*']}, 'word', None)
    """
    where = "`views`"
    if isinstance(views, (str, Path)) and str(views).endswith(".toml"):
        where, content = f"'{views}'", _read_toml(Path(views))
        views, target, ids = content["views"], target or content.get("target"), ids or content.get("id")
        for key, value in (("target", target), ("id", ids)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{where} names the column `{key}` by {value!r}; give its name as a string.")
    if isinstance(views, Mapping):
        return {str(name): _patterns(where, name, chosen) for name, chosen in views.items()}, target, ids
    if views not in (None, "prefix"):
        raise ValueError(f"`views` is a dict of view -> columns, 'prefix', a .toml file or None; got {views!r}.")
    return views, target, ids


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'.")
    with naming_file(f"'{path}'", "TOML"), open(path, "rb") as file:
        content = tomllib.load(file)
    if not isinstance(content.get("views"), dict) or not content["views"]:
        raise ValueError(f"'{path}' has no table [views] with columns or patterns by view.")
    return content


def _patterns(where: str, view: Any, chosen: Any) -> Any:
    if isinstance(chosen, slice):
        return chosen
    listed = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError(
            f"{where} gives the view '{view}' as {chosen!r}; give a column name, a pattern such as 'mfcc_*', or a list "
            "of them, as strings. The columns of a libsvm file are given as a slice."
        )
    return list(listed)


def names_matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that are given themselves or match a pattern such as ``mfcc_*``, in their own order."""
    given = set(patterns)
    # plain names are found in a set, since there may be many
    wild = [re.compile(translate(pattern)).match for pattern in given if any(sign in pattern for sign in "*?[")]
    return [name for name in names if name in given or any(fits(name) for fits in wild)]


# -- columns that are not features
def take_column(tables: Sequence[Table], name: str) -> np.ndarray:
    """Remove a column, such as the target, from the one table that has it, and return it."""
    having = [table for table in tables if name in table.columns]
    if not having:
        raise ValueError(
            f"No column '{name}' is in {quoted_files(tables)}, only {'; '.join(map(listed, tables))}. Give the name of "
            "a column; the target is named by `target` (--target)."
        )
    if len(having) > 1:
        raise ValueError(f"Several files have the column '{name}': {quoted_files(having)}. Keep one.")
    return having[0].columns.pop(name)


def quoted_files(tables: Iterable[Table]) -> str:
    """Return the files of tables, for messages."""
    return ", ".join(table.where for table in tables)


def listed(table: Table) -> str:
    """Return the first columns of a table, for messages."""
    named = [name for block in table.blocks for name in table.names.get(block, (block,))]
    return some([*named, *table.columns] if table.annotations else [*table.columns, *named])


def some(names: Collection[str]) -> str:
    """Return the first names, and how many more there are, for messages."""
    return ", ".join(islice(names, 8)) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# -- views
def divide_tables(tables: Sequence[Table], spec: Any, *, missing_allowed: bool) -> dict[str, Part]:
    """Return the views of all tables as `spec` says, or by default."""
    views: dict[str, Part] = {}
    for table in tables:
        add_parts(views, _divide_table(table, spec, alone=len(tables) == 1))
    if isinstance(spec, Mapping) and not tables[0].numbered:
        there = {name for table in tables for name in (*table.columns, *table.blocks)}
        for view, patterns in spec.items():
            lost = [name for name in patterns if name not in there and not names_matching(there, [name])]
            if lost and view in views:
                raise ValueError(f"View '{view}' has no column '{lost[0]}' in {quoted_files(tables)}.")
            if lost and not missing_allowed:
                raise ValueError(f"No column of {quoted_files(tables)} is of the view '{view}': {', '.join(lost)}.")
    if not views and not missing_allowed:
        raise ValueError(f"No view is left: {quoted_files(tables)} has no columns besides target and names.")
    return views


def add_parts(views: dict[str, Part], parts: Mapping[str, Part]) -> None:
    """Add the views of another table, whose names must be new."""
    for name, part in parts.items():
        if name in views:
            raise ValueError(f"Two files have a view named '{name}'. Name views by `views`, or rename a file.")
        views[name] = part


def _divide_table(table: Table, spec: Any, *, alone: bool) -> dict[str, Part]:
    """Return the views of one table.

    By default, columns of numbers are divided by prefix if all have one, else they are one view; each column of text is
    a view. If all columns have a prefix, or with ``"prefix"``, text is divided by prefix too.
    """
    if isinstance(spec, Mapping):
        chosen = {view: _chosen(table, view, patterns) for view, patterns in spec.items()}
        return {view: part for view, part in chosen.items() if part is not None}
    parts = {name: Part(block, table.names.get(name, ()), table) for name, block in table.blocks.items()}
    names = [] if table.annotations else list(table.columns)
    for name in names:
        _check_values(table, name)
    if spec == "prefix" or (names and all("__" in name for name in names)):
        return {**parts, **{view: matrix_of(table, own) for view, own in by_prefix(names).items()}}
    numeric = [name for name in names if table.columns[name].dtype != object]
    texts = [name for name in names if table.columns[name].dtype == object]
    prefixed = bool(numeric) and all("__" in name for name in numeric)
    views = by_prefix(numeric) if prefixed else {table.name: numeric} if numeric else {}
    parts.update({view: matrix_of(table, own) for view, own in views.items()})
    if alone or not numeric:
        parts.update({name: matrix_of(table, [name]) for name in texts})
    elif texts:
        warnings.warn(
            f"{table.where} has columns of text besides numbers: {some(texts)}. They are ignored, since each file is "
            "one view; give them a view by --views (`views`).",
            stacklevel=4,  # where read_samples is called
        )
    return parts


def _chosen(table: Table, view: str, patterns: Any) -> Part | None:
    """Return the columns, or the one block, that patterns choose from a table; None if there are none."""
    if table.numbered:
        block = next(iter(table.blocks.values()))
        return Part(divide(block, {view: patterns})[view], (), table)
    if isinstance(patterns, slice):
        raise ValueError(f"View '{view}' of {table.where} is given as a slice; give the names of its columns.")
    names, blocks = names_matching(table.columns, patterns), names_matching(table.blocks, patterns)
    if len(blocks) > 1 or (names and blocks):
        both = quoted([*blocks, *names][:2])
        raise ValueError(
            f"View '{view}' is made of {both} of {table.where}; a matrix is a view alone. Name one of them."
        )
    if blocks:
        return Part(table.blocks[blocks[0]], table.names.get(blocks[0], ()), table)
    return matrix_of(table, names) if names else None


def _check_values(table: Table, name: str) -> None:
    values = table.columns[name]
    first = next((v for v in values if v is not None), "") if values.dtype == object else ""
    if not isinstance(first, (str, bytes, list, tuple)):
        raise ValueError(
            f"Column '{name}' of {table.where} holds {type(first).__name__} values, which are not a view. Make numbers "
            "or strings of them, or say by --views (`views`) which columns to take."
        )


def matrix_of(table: Table, names: Sequence[str]) -> Part:
    """Return columns as one view: numbers side by side, or one column of text."""
    for name in names:
        _check_values(table, name)
    if len(names) == 1 and table.columns[names[0]].dtype == object:
        return Part(table.columns[names[0]], tuple(names), table)
    columns = [_numbers(table, name) for name in names]
    short = next((name for name, own in zip(names, columns, strict=True) if len(own) != len(columns[0])), None)
    if short is not None:
        raise ValueError(
            f"{table.where} has {len(columns[0])} values of '{names[0]}' and {len(table.columns[short])} of "
            f"'{short}'; columns of one view have one value per sample."
        )
    return Part(np.column_stack(columns), tuple(names), table)


def _numbers(table: Table, name: str) -> np.ndarray:
    values = table.columns[name]
    if values.dtype != object:
        return values.astype(np.float64)
    if any(value is not None for value in values):
        raise ValueError(f"Column '{name}' of {table.where} has no numbers. Give it a view of its own, or none.")
    return np.full(len(values), np.nan)


def views_of_parts(parts: Mapping[str, Part]) -> Views:
    """Return parts of tables as Views with the names of their columns."""
    X = Views({name: part.block for name, part in parts.items()})
    columns = {name: part.names for name, part in parts.items() if part.names}
    return Views._of({name: X.block(name) for name in X.names}, len(X), X.mask, columns)
