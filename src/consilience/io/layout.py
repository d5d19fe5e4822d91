"""Which columns of a table make which view: by prefix, by a dict or a TOML file, or by default."""

import re
import tomllib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..views._blocks import common_length, quoted, some, take, take_columns
from ..views._frames import NO_LEVELS, Levels, check_readable, dates, encode_columns, is_category
from ..views._reading import read_block, rows_with_data
from ..views._samples import sample_text
from ..views._tables import by_prefix
from ..views.container import Views
from .tables import MOST_COLUMNS, Table, naming_file


class Part(NamedTuple):
    """A view of a table, and the names of its columns where they have some."""

    block: Any
    names: tuple[str, ...]
    table: Table
    present: np.ndarray | None = None  # which rows hold data, where the block does not show it
    categories: Levels = NO_LEVELS  # of the columns of the table that became one-hot columns


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
    listed = [chosen] if isinstance(chosen, (str, int)) else list(chosen) if hasattr(chosen, "__iter__") else []
    numbers = bool(listed) and all(isinstance(own, (int, np.integer)) and not isinstance(own, bool) for own in listed)
    if numbers:
        return [int(own) for own in listed]
    if isinstance(chosen, Mapping) or not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError(
            f"{where} gives the view '{view}' as {chosen!r}; give a column name, a pattern such as 'mfcc_*', or a list "
            "of them, as strings. The columns of a libsvm file are given as a slice, as numbers from 0 on, or as text "
            "such as '0:50'."
        )
    return listed


def names_matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that are given themselves or match a pattern such as ``mfcc_*``, in their own order."""
    given = set(patterns)
    # plain names are found in a set, since there may be many
    wild = [re.compile(translate(pattern)).match for pattern in given if any(sign in pattern for sign in "*?[")]
    return [name for name in names if name in given or any(fits(name) for fits in wild)]


# -- columns that are not features
def settle_index(table: Table) -> None:
    """Take the first column without a name as the names of the samples if it has text; tell that it is ignored if not.

    Row numbers from 0 or 1 on are left out without a word.
    """
    index, table.index = table.index, None
    if index is None or any(np.array_equal(index, np.arange(start, start + len(index))) for start in (0, 1)):
        return
    names = index.tolist()
    if index.dtype == object and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        table.samples = index
        return
    warnings.warn(
        f"{table.where} has a column without a name, such as pandas writes for row numbers. It is ignored; name it to "
        "use it.",
        stacklevel=3,  # where read_samples is called
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def tell_missing_cells(tables: Iterable[Table], na_values: Sequence[str]) -> None:
    """Warn how many cells are missing because `na_values` says so, or that none is."""
    counts = [(table.where, table.read_as_missing or {}) for table in tables]
    told = [
        f"{_count(sum(own.values()), 'cell')} of {_count(len(own), 'column')} in {where} ({some(list(own), 3)})"
        for where, own in counts
        if own
    ]
    if na_values:
        shown = f"because they are {quoted(na_values)} (`na_values`, --na)"
        text = f"{'; '.join(told)} are read as missing, {shown}." if told else f"No cell is read as missing {shown}."
        warnings.warn(text, stacklevel=3)  # where read_samples is called


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
    having[0].used = True
    return having[0].columns.pop(name)


def quoted_files(tables: Iterable[Table]) -> str:
    """Return the files of tables, for messages."""
    return ", ".join(table.where for table in tables)


def listed(table: Table) -> str:
    """Return the first columns of a table, for messages."""
    named = [name for block in table.blocks for name in table.names.get(block, (block,))]
    names = [*named, *table.columns] if table.annotations else [*table.columns, *named]
    text = some([f"'{name}'" for name in names])
    return "".join(sign if sign.isprintable() else " " for sign in text)  # no control codes for terminals


# -- views
def divide_tables(tables: Sequence[Table], spec: Any, *, missing_allowed: bool) -> dict[str, Part]:
    """Return the views of all tables as `spec` says, or by default."""
    views: dict[str, Part] = {}
    for table in tables:
        parts = _divide_table(table, spec, alone=len(tables) == 1)
        if not (parts or table.used or missing_allowed) and (table.columns or table.blocks):
            raise ValueError(
                f"`views` (--views) names no column of {table.where}, which has {listed(table)}. Name its columns, or "
                "leave the file out."
            )
        add_parts(views, parts)
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

    By default, columns of numbers and categories are divided by prefix if all have one, else they are one view. In the
    only file of the samples, each column of text is a view, as is each column of a file without numbers. If all columns
    have a prefix, or with ``"prefix"``, text is divided by prefix too.
    """
    if isinstance(spec, Mapping):
        chosen = {view: _chosen(table, view, patterns) for view, patterns in spec.items()}
        return {view: part for view, part in chosen.items() if part is not None}
    parts = {name: block_of(table, name) for name in table.blocks if name not in table.on_request}
    names = [] if table.annotations else list(table.columns)
    for name in names:
        _check_values(table, name)
    if spec == "prefix" or (names and all("__" in name for name in names)):
        return {**parts, **{view: matrix_of(table, own) for view, own in by_prefix(names).items()}}
    objects = [name for name in names if table.columns[name].dtype == object]
    texts = [name for name in objects if table.streamed or name not in table.levels]
    if table.streamed and len(texts) < len(names):
        _refuse_strings(table, [name for name in texts if name not in table.alone])
    if alone and not table.streamed:  # a file of all views: text is a view, categories belong to the numbers
        texts = [name for name in texts if not is_category(table.columns[name])]
    elif not table.streamed:  # a file per view
        texts = []
    views = default_views(table.name, names, objects, texts, table.levels, alone=alone)
    return {**parts, **{view: matrix_of(table, own) for view, own in views.items()}}


def default_views(
    name: str,
    columns: Sequence[str],
    strings: Collection[str],
    texts: Sequence[str],
    declared: Collection[str],
    *,
    alone: bool,
) -> dict[str, Sequence[str]]:
    """Return the columns of each view by default; of the columns of strings, `texts` are not categories.

    Columns of `declared` have a categorical type. `alone` says whether all views are in this file.
    """
    together: Sequence[str] = [column for column in columns if column not in texts]
    bare = all(column in strings and column not in declared for column in together)
    if bare and (alone or len(together) == 1):  # no numbers to belong to
        together, texts = [], columns
    prefixed = bool(together) and all("__" in column for column in together)
    views: Mapping[str, Sequence[str]] = by_prefix(together) if prefixed else {name: together} if together else {}
    both = next((column for column in texts if column in views), None)
    if both is not None:  # else one of them would be lost
        raise ValueError(
            f"Two views would be named '{both}': the numbers of the file, and the column of text. Rename the column."
        )
    return {**views, **{column: [column] for column in texts}}


def _refuse_strings(table: Table, texts: Sequence[str]) -> None:
    """Raise if a stream has strings next to numbers: only a whole file tells whether they are categories or text."""
    for name in texts:
        there = [value for value in table.columns[name] if isinstance(value, str)]
        check_readable(table.where, name, there)
        if there:
            raise ValueError(
                f"Column '{name}' of {table.where} has text next to columns of numbers, and a stream does not tell "
                "whether it is text or a category. Say by `views` (--views) which columns make which view; a column of "
                "text is a view alone."
            )


def _chosen(table: Table, view: str, patterns: Any) -> Part | None:
    """Return the columns, or the one block, that patterns choose from a table; None if there are none."""
    if table.numbered:
        return Part(_numbered_columns(table, view, patterns), (), table)
    if isinstance(patterns, slice) or isinstance(patterns[0], int):
        what = "a slice" if isinstance(patterns, slice) else "numbers"
        raise ValueError(f"View '{view}' of {table.where} is given as {what}; give the names of its columns.")
    names, blocks = names_matching(table.columns, patterns), names_matching(table.blocks, patterns)
    if len(blocks) > 1 or (names and blocks):
        both = quoted([*blocks, *names][:2])
        raise ValueError(
            f"View '{view}' is made of {both} of {table.where}; a matrix is a view alone. Name one of them."
        )
    if blocks:
        return block_of(table, blocks[0])
    return matrix_of(table, names) if names else None


def _numbered_columns(table: Table, view: str, patterns: Any) -> Any:
    """Return the columns of a view by their positions; those beyond the last one of the file are zero in every row."""
    block = next(iter(table.blocks.values()))
    width = block.shape[1]
    if isinstance(patterns, slice):
        where = np.arange(max(width, patterns.stop or 0))[patterns]
    else:
        where = np.concatenate([_positions(table, view, own, width) for own in patterns])
    if not len(where) or where.min() < 0 or where.max() >= MOST_COLUMNS:
        raise ValueError(f"View '{view}' is given as {patterns!r}, which are not columns of {table.where}: {width}.")
    wide = max(width, int(where.max()) + 1)
    block = sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], wide))
    together = len(where) == where[-1] - where[0] + 1 and bool((np.diff(where) == 1).all())
    return block[:, int(where[0]) : int(where[-1]) + 1] if together else take_columns(block, where)


def _positions(table: Table, view: str, given: Any, width: int) -> np.ndarray:
    """Return the positions that a number, or a text such as "0:50", stands for."""
    ends = re.fullmatch(r"(\d*)(:?)(\d*)", str(given))
    if ends is None or not any(ends.groups()):
        raise ValueError(
            f"View '{view}' is given as {given!r}, but the columns of {table.where} have no names. Give their numbers "
            "from 0 on, such as '0:50' for the first 50, or a slice."
        )
    first = int(ends[1] or 0)
    return np.arange(first, (int(ends[3]) if ends[3] else width) if ends[2] else first + 1)


def block_of(table: Table, name: str) -> Part:
    """Return a block as a view."""
    levels = table.encoded.get(name, NO_LEVELS)
    return Part(table.blocks[name], table.names.get(name, ()), table, table.present.get(name), levels)


def _check_values(table: Table, name: str) -> None:
    values = table.columns[name]
    first = next((v for v in values if v is not None), "") if values.dtype == object else ""
    if hasattr(first, "isoformat"):
        raise dates(table.where, name)
    certain = name in table.levels or name in table.categories  # categories may be numbers, too
    if not isinstance(first, (str, bytes, list, tuple, dict)) and not certain:
        raise ValueError(
            f"Column '{name}' of {table.where} holds {type(first).__name__} values, which are not a view. Make numbers "
            "or strings of them, or say by --views (`views`) which columns to take."
        )


def matrix_of(table: Table, names: Sequence[str]) -> Part:
    """Return columns as one view: numbers and one-hot columns of categories side by side, or one column of text."""
    columns = {name: table.columns[name] for name in names}
    for name, values in columns.items():
        _check_values(table, name)
        if len(values) != len(columns[names[0]]):
            raise ValueError(
                f"{table.where} has {len(columns[names[0]])} values of '{names[0]}' and {len(values)} of '{name}'; "
                "columns of one view have one value per sample."
            )
        text = values.dtype == object and any(value is not None for value in values)
        plain = text and not isinstance(next(value for value in values if value is not None), (list, dict))
        if plain and name not in table.texts and name not in table.categories and name not in table.levels:
            check_readable(table.where, name, [value for value in values if value is not None])
        if table.streamed and name in table.levels:
            raise ValueError(
                f"Column '{name}' of {table.where} has a categorical type, and the categories of a stream are not "
                "known in advance. Write numbers, or text as a view of its own, or leave the column out."
            )
        if table.streamed and text and len(columns) > 1:
            raise ValueError(
                f"Column '{name}' of {table.where} has no numbers, and the categories of a stream are not known in "
                "advance. Give it a view of its own, or none."
            )
    declared = {name: table.levels[name] for name in names if name in table.levels}
    encoded = encode_columns(table.where, columns, declared, [name for name in names if name in table.categories])
    return Part(encoded.block, encoded.names, table, categories=encoded.categories)


def views_of_parts(parts: Mapping[str, Part], names: np.ndarray | None = None) -> tuple[Views, np.ndarray]:
    """Return parts of tables as Views with the names of samples and columns, and which rows they keep.

    Samples without any view are left out, with a warning that names them.
    """
    n = common_length({name: part.block for name, part in parts.items()})
    X, kept = views_with_rows(parts, names, n)
    if X is None:
        raise ValueError(f"No sample has any of the views {quoted(parts)}: all values are missing.")
    if not kept.all():
        lost = np.flatnonzero(~kept)
        warnings.warn(
            f"{len(lost)} of {n} samples have no view at all and are left out: {sample_text(lost, names)}.",
            stacklevel=3,  # where read_samples is called
        )
    return X, kept


def views_with_rows(parts: Mapping[str, Part], names: np.ndarray | None, n: int) -> tuple[Views | None, np.ndarray]:
    """Return parts of tables as Views of the samples that have a view, and which of n rows these are.

    None stands for Views without samples.
    """
    blocks = {name: read_block(name, part.block) if part.block is not None else None for name, part in parts.items()}
    if all(block is None for block in blocks.values()):
        return None, np.zeros(n, dtype=bool)
    n = common_length(blocks)
    there = np.column_stack(
        [
            np.broadcast_to(rows_with_data(blocks[name]), n) & (True if part.present is None else part.present)
            for name, part in parts.items()
        ]
    )
    kept: np.ndarray = np.any(there, axis=1)
    if not kept.any():
        return None, kept
    if not kept.all():
        blocks = {name: take(block, np.flatnonzero(kept)) for name, block in blocks.items()}
        names = None if names is None else names[kept]
        there = there[kept]
    columns = {name: part.names for name, part in parts.items() if part.names}
    categories = {name: part.categories for name, part in parts.items()}
    return Views._of(blocks, len(there), there, columns, names, categories), kept
