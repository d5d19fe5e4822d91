"""Samples from files: Parquet, CSV, NPZ, libsvm, MuData, AnnData; views by prefix, pattern, TOML, or a file each."""

import tomllib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..views._blocks import quoted
from ..views._tables import by_prefix
from ..views.container import Views
from .formats import Table, placed, read_table
from .streams import is_pattern, names_matching, naming_file

__all__ = ["Samples", "read_layout", "read_samples"]

Known = Mapping[str, tuple[str, int | None, Sequence[str] | None]]  # view -> kind, width, column names


@dataclass(frozen=True)
class Samples:
    """Samples read from files.

    Parameters
    ----------
    X : Views
        The views.
    y : array of shape (n_samples,) or None
        The target, where one was named.
    ids : array of shape (n_samples,) or None
        Names of the samples, where a column of them was named.
    """

    X: Views
    y: np.ndarray | None = None
    ids: np.ndarray | None = None


class _Part(NamedTuple):
    """A view that was found in a file, and the names of its columns where they have some."""

    block: Any
    names: tuple[str, ...]
    table: Table


def read_samples(
    paths: Sequence[Any],
    *,
    views: Any = None,
    target: str | None = None,
    ids: str | None = None,
    known: Known | None = None,
) -> Samples:
    """Read samples from one file, or from one file per view.

    Parameters
    ----------
    paths : sequence of path
        One file (.parquet, .csv, .tsv, .npz, .libsvm, .svm, .h5ad, .h5mu), or several whose rows are matched by the
        column `ids`: each is a view named after its file, and rows that a file does not have are a missing view.
    views : dict, "prefix", path of a .toml file, or None
        Columns of each view, as names or patterns (``{"audio": ["mfcc_*"]}``); a TOML file has them in ``[views]``. By
        default ``audio__mfcc1`` belongs to ``audio`` where all columns are named so, and else a file is a view.
    target : str, optional
        The column of the class or target.
    ids : str, optional
        The column that names the samples.
    known : dict, optional
        What a fitted model knows of each view: a tuple of its kind ("numbers", "objects" or "gram"), its number of
        columns and their names; the last two may be None. Columns are found by these names, in any order. A view
        without names is found by its own name, or by position where it is the only one; then the number of columns
        must agree. Other columns are passed over, and a view that no file has is missing.

    Returns
    -------
    Samples
        Views, target and names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience.io.files import read_samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("size__m2,size__beds,noise__db,y\\n20,1,40,a\\n35,2,55,b\\n")
    ...     read_samples([path], target="y").X.names
    ('size', 'noise')
    """
    given = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not given:
        raise ValueError("No file was given.")
    spec, target, ids = read_layout(views, target, ids)
    tables = [read_table(path, _texts(known)) for path in given]
    if target is None and len(tables) == 1 and tables[0].numbered:
        target = "y"  # the first number of each row
    names: np.ndarray | None
    if len(tables) > 1:
        tables, names = _matched(tables, ids)
    else:
        if ids is not None and ids not in tables[0].columns:
            raise ValueError(f"'{tables[0].file}' has no column '{ids}'; its columns are {_listed(tables[0])}.")
        names = None if ids is None else tables[0].columns.pop(ids)
    y = _target(tables, target)
    found = (
        _known_views(tables, known) if spec is None and known else _views_of(tables, spec, missing_allowed=bool(known))
    )
    if known:
        found = _as_fitted(found, known, tables)
    X = Views({name: part.block for name, part in found.items()})
    for what, values in ((target, y), (ids, names)):
        if values is not None and len(values) != len(X):
            raise ValueError(f"'{what}' of '{given[0].name}' has {len(values)} values for {len(X)} samples.")
    columns = {name: part.names for name, part in found.items() if part.names}
    return Samples(Views._of({name: X.block(name) for name in X.names}, len(X), X.mask, columns), y, names)


def _texts(known: Known | None) -> list[str]:
    """The columns that a model knows as text, also where a CSV file has digits in them."""
    return [name for view, (kind, _, names) in (known or {}).items() if kind == "objects" for name in names or [view]]


# -- what belongs where
def read_layout(views: Any, target: str | None = None, ids: str | None = None) -> tuple[Any, str | None, str | None]:
    """Read which columns make which view, and which are the target and the names of the samples.

    Parameters
    ----------
    views : dict, "prefix", path of a .toml file, or None
        As `read_samples` takes it; a TOML file may name ``target`` and ``id`` too.
    target, ids : str, optional
        What was given otherwise, which counts more.

    Returns
    -------
    views : dict, "prefix" or None
        Columns or patterns by view.
    target, ids : str or None
        The columns of the target and of the names.

    Examples
    --------
    >>> from consilience.io.files import read_layout
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


def _patterns(where: str, view: Any, chosen: Any) -> list[str]:
    listed = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError(
            f"{where} gives the view '{view}' as {chosen!r}; give a column name, a pattern such as 'mfcc_*', or a list "
            "of them, as strings."
        )
    return list(listed)


def _target(tables: Sequence[Table], target: str | None) -> np.ndarray | None:
    if target is None:
        return None
    having = [table for table in tables if target in table.columns]
    if not having:
        raise ValueError(f"No file has a column '{target}'; there are {', '.join(_listed(t) for t in tables)}.")
    if len(having) > 1:
        raise ValueError(f"Several files have the column '{target}': {', '.join(t.file for t in having)}. Keep one.")
    return having[0].columns.pop(target)


def _listed(table: Table) -> str:
    named = [name for block in table.blocks for name in table.names.get(block, (block,))]
    return _some([*named, *table.columns] if table.notes else [*table.columns, *named])


def _some(names: Collection[str]) -> str:
    return ", ".join(islice(names, 8)) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _views_of(tables: Sequence[Table], spec: Any, *, missing_allowed: bool) -> dict[str, _Part]:
    """The views of all files as `views` says, or by default."""
    found: dict[str, _Part] = {}
    for table in tables:
        _add(found, _divided(table, spec, alone=len(tables) == 1))
    if isinstance(spec, Mapping):
        there = {name for table in tables for name in (*table.columns, *table.blocks)}
        for view, patterns in spec.items():
            unknown = [name for name in patterns if name not in there]
            lost = [name for name in unknown if not (is_pattern(name) and names_matching(there, [name]))]
            if lost and (view in found or not missing_allowed):
                raise ValueError(
                    f"No column is of the view '{view}': {', '.join(lost)}."
                    if view not in found
                    else f"View '{view}' has no column '{lost[0]}' in {quoted(table.file for table in tables)}."
                )
    if not found and not missing_allowed:
        raise ValueError("No view is left: the files have no columns besides target and names.")
    return found


def _add(found: dict[str, _Part], parts: Mapping[str, _Part]) -> None:
    for name, part in parts.items():
        if name in found:
            raise ValueError(f"Two files have a view named '{name}'. Name views by `views`, or rename a file.")
        found[name] = part


def _divided(table: Table, spec: Any, *, alone: bool) -> dict[str, _Part]:
    """The views of one file."""
    if isinstance(spec, Mapping):
        chosen = {view: _chosen(table, view, patterns) for view, patterns in spec.items()}
        return {view: part for view, part in chosen.items() if part is not None}
    found = {name: _Part(block, table.names.get(name, ()), table) for name, block in table.blocks.items()}
    names = [] if table.notes else list(table.columns)
    for name in names:
        _check_values(table, name)
    if spec == "prefix" or (spec is None and names and all("__" in name for name in names)):
        return {**found, **{view: _matrix(table, own) for view, own in by_prefix(names).items()}}
    numeric = [name for name in names if table.columns[name].dtype != object]
    texts = [name for name in names if table.columns[name].dtype == object]
    if numeric:
        found[table.name] = _matrix(table, numeric)
    if alone or not numeric:
        found.update({name: _matrix(table, [name]) for name in texts})
    elif texts:
        warnings.warn(
            f"'{table.file}' has columns of text besides numbers: {_some(texts)}. They are passed over, since each "
            "file is one view; give them a view by --views (`views`).",
            stacklevel=4,
        )
    return found


def _chosen(table: Table, view: str, patterns: Sequence[str]) -> _Part | None:
    """The columns, or the one block, of a file that patterns choose."""
    names, blocks = names_matching(table.columns, patterns), names_matching(table.blocks, patterns)
    if len(blocks) > 1 or (names and blocks):
        both = quoted([*blocks, *names][:2])
        raise ValueError(
            f"View '{view}' is made of {both} of '{table.file}'; a matrix is a view alone. Name one of them."
        )
    if blocks:
        return _Part(table.blocks[blocks[0]], table.names.get(blocks[0], ()), table)
    return _matrix(table, names) if names else None


def _check_values(table: Table, name: str) -> None:
    values = table.columns[name]
    first = next((v for v in values if v is not None), "") if values.dtype == object else ""
    if not isinstance(first, (str, bytes, list, tuple)):
        raise ValueError(
            f"Column '{name}' of '{table.file}' holds {type(first).__name__} values, which are no view. Make numbers "
            "or strings of them, or say by --views (`views`) which columns to take."
        )


def _matrix(table: Table, names: Sequence[str]) -> _Part:
    """Columns as one view: numbers side by side, or one column of text."""
    for name in names:
        _check_values(table, name)
    if len(names) == 1 and table.columns[names[0]].dtype == object:
        return _Part(table.columns[names[0]], tuple(names), table)
    columns = [_numbers(table, name) for name in names]
    short = next((name for name, own in zip(names, columns, strict=True) if len(own) != len(columns[0])), None)
    if short is not None:
        raise ValueError(
            f"'{table.file}' has {len(columns[0])} values of '{names[0]}' and {len(table.columns[short])} of "
            f"'{short}'; columns of one view have one value per sample."
        )
    return _Part(np.column_stack(columns), tuple(names), table)


def _numbers(table: Table, name: str) -> np.ndarray:
    values = table.columns[name]
    if values.dtype != object:
        return values.astype(np.float64)
    if any(value is not None for value in values):
        raise ValueError(f"Column '{name}' of '{table.file}' holds no numbers. Give it a view of its own, or none.")
    return np.full(len(values), np.nan)  # a column without any value


# -- what a fitted model knows
def _known_views(tables: Sequence[Table], known: Known) -> dict[str, _Part]:
    """The views of a model that files have: by the names of their columns, or of the views where columns have none."""
    found: dict[str, _Part] = {}
    partly: dict[str, str] = {}
    for table in tables:
        _add(found, _known_parts(table, known, partly))
    for view, sentence in partly.items():
        if view not in found:
            raise ValueError(sentence)
    return found


def _known_parts(table: Table, known: Known, partly: dict[str, str]) -> dict[str, _Part]:
    """The views of a model that one file has; `partly` gets a sentence on those of which it has some columns."""
    homes: dict[str | None, Mapping[str, Any]] = {None: table.columns}
    homes.update({block: dict.fromkeys(names) for block, names in table.names.items()})
    named = {view: names for view, (_, _, names) in known.items() if names}
    owners: dict[tuple[str | None, str], str] = {}
    parts: dict[str, _Part] = {}
    order = sorted(named, key=lambda view: view != table.name)  # first the view that is called like the file
    for view in order:
        whole = [home for home, there in homes.items() if all(name in there for name in named[view])]
        home = view if view in whole else next(iter(whole), None)
        if whole and not _is_taken(view, named[view], home, owners, table):
            owners.update({(home, name): view for name in named[view]})
            block = None if home is None else _Part(table.blocks[home], table.names[home], table)
            parts[view] = _matrix(table, named[view]) if block is None else block
    for view in [view for view in order if view not in parts]:
        for home, there in homes.items():
            lost = next((name for name in named[view] if name not in there), None)
            if lost is not None and any(name in there and (home, name) not in owners for name in named[view]):
                partly[view] = _without_column(view, lost, table, there)
    taken = {name for home, name in owners if home is None}
    for view in [view for view in known if view not in parts and view not in named]:
        part = _unnamed(table, view, known, taken)
        if part is not None:
            parts[view] = part
    return parts


def _without_column(view: str, column: str, table: Table, there: Collection[str]) -> str:
    has = f"It has {_some(there)}." if there else "Its columns have no names."
    return f"View '{view}' has no column '{column}', which the model was fitted on, in '{table.file}'. {has}"


def _is_taken(view: str, names: Sequence[str], home: Any, owners: Mapping[Any, str], table: Table) -> bool:
    """Whether the columns are those of the view that is called like the file; else no two views can share some."""
    shared = next((name for name in names if (home, name) in owners), None)
    if shared is None:
        return False
    owner = owners[home, shared]
    if owner in (table.name, home):
        return True
    raise ValueError(
        f"Column '{shared}' of '{table.file}' may be of the view '{owner}' or of '{view}': the model knows it in both. "
        "Name the file after its view, or say by --views (`views`) which columns make which view."
    )


def _unnamed(table: Table, view: str, known: Known, taken: set[str]) -> _Part | None:
    """A view whose columns have no names in the model: by its own name, or the only one of a file by position."""
    kind, width, _ = known[view]
    if view not in table.blocks and view in table.columns and (kind != "numbers" or width in (None, 1)):
        return _matrix(table, [view])
    block = _block_of(table, view, known)
    if block is not None:
        return block
    free = [] if table.notes else [name for name in table.columns if name not in taken]
    prefixed = [name for name in free if name.startswith(f"{view}__")]
    if prefixed:
        return _matrix(table, prefixed)
    if view == table.name or (len(known) == 1 and not table.blocks):
        numeric = [name for name in free if table.columns[name].dtype != object]
        texts = [name for name in free if table.columns[name].dtype == object]
        if numeric and kind != "objects":
            return _matrix(table, numeric)
        return _matrix(table, texts) if len(texts) == 1 and kind != "numbers" else None
    return None


def _block_of(table: Table, view: str, known: Known) -> _Part | None:
    """The block of a file that is called like the view, or the only one where the model knows one view."""
    only = next(iter(table.blocks), None) if len(known) == len(table.blocks) == 1 else None
    name = view if view in table.blocks else only
    return None if name is None else _Part(table.blocks[name], table.names.get(name, ()), table)


def _as_fitted(found: Mapping[str, _Part], known: Known, tables: Sequence[Table]) -> dict[str, _Part]:
    """The views that a model knows, with its columns in its order."""
    only = next(iter(known)) if len(known) == 1 else None
    if only is not None and len(found) == 1:
        found = dict(zip([only], found.values(), strict=True))  # the one view of a model may have another name
    kept = {view: _with_columns(view, part, known[view]) for view, part in found.items() if view in known}
    if kept:
        return kept
    files, has = quoted(table.file for table in tables), "; ".join(_listed(table) for table in tables)
    names = None if only is None else known[only][2]
    if names:
        lost = next((name for name in names if not any(name in table.columns for table in tables)), names[0])
        raise ValueError(
            f"The model was fitted on the view '{only}' with the column '{lost}', which {files} does not have: it has "
            f"{has}. Give the columns by the names they had at fit."
        )
    raise ValueError(
        f"The model was fitted on the views {quoted(known)}, none of which is in {files}: it has {has}. Give views and "
        "columns by the names they had at fit, or say by --views (`views`) which columns make which view."
    )


def _with_columns(view: str, part: _Part, about: tuple[str, int | None, Sequence[str] | None]) -> _Part:
    """The columns of a view that the model knows: by name, else by position if there are as many."""
    kind, width, names = about
    block, own, table = part
    if names:
        place = {name: k for k, name in enumerate(own)}
        lost = next((name for name in names if name not in place), None)
        if lost is not None:
            raise ValueError(_without_column(view, lost, table, own))
        if tuple(names) != own:
            block = block[:, [place[name] for name in names]]
        return _Part(block, tuple(names), table)
    if kind != "numbers" or width is None or block is None or len(block.shape) != 2 or block.shape[1] == width:
        return part
    if table.numbered and block.shape[1] < width:  # the last columns are zero in every row
        return _Part(sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], width)), own, table)
    raise ValueError(
        f"View '{view}' has {block.shape[1]} columns in '{table.file}', but the model was fitted on {width}, without "
        "names. Give the same columns in the same order."
    )


# -- files of one view each
def _matched(tables: Sequence[Table], ids: str | None) -> tuple[list[Table], np.ndarray]:
    """Rows of all files in one order; what a file does not have is absent."""
    if ids is None:
        raise ValueError("Several files are matched by a column that names the samples: give its name by `ids` (--id).")
    keys = []
    for table in tables:
        if ids not in table.columns:
            raise ValueError(f"'{table.file}' has no column '{ids}'; its columns are {_listed(table)}.")
        own = table.columns.pop(ids)
        if len(set(own.tolist())) < len(own):
            raise ValueError(f"'{table.file}' has a sample twice in its column '{ids}'.")
        keys.append(own)
    for k, own in enumerate(keys):
        others = [key for other in keys[:k] + keys[k + 1 :] for key in other.tolist()]
        if len(own) and others and not set(own.tolist()) & set(others):
            raise ValueError(
                f"No sample of '{tables[k].file}' is in another file: its column '{ids}' has {own.tolist()[0]!r}, the "
                f"others {others[0]!r}, for example. Write the names in one way, numbers or strings, in all files."
            )
    order = list(dict.fromkeys(key for own in keys for key in own.tolist()))
    place = {key: k for k, key in enumerate(order)}
    matched = []
    for table, own in zip(tables, keys, strict=True):
        rows = np.array([place[key] for key in own.tolist()])
        columns = {name: placed(values, rows, len(order)) for name, values in table.columns.items()}
        blocks = {name: placed(block, rows, len(order)) for name, block in table.blocks.items()}
        matched.append(replace(table, columns=columns, blocks=blocks))
    return matched, np.array(order)
