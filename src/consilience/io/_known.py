"""The views that a fitted model knows, found in tables of other files by the names of their columns."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import scipy.sparse as sp

from ..views._blocks import quoted
from .layout import Part, add_parts, listed, matrix_of, quoted_files, some
from .tables import Table

Known = Mapping[str, tuple[str, int | None, Sequence[str] | None]]  # view -> kind, width, column names


def find_known_views(tables: Sequence[Table], known: Known) -> dict[str, Part]:
    """Return the views of a model that tables have: by column names, or by view names if columns have none."""
    parts: dict[str, Part] = {}
    partly: dict[str, str] = {}
    for table in tables:
        add_parts(parts, _known_parts(table, known, partly))
    for view, sentence in partly.items():
        if view not in parts:
            raise ValueError(sentence)
    return parts


def _known_parts(table: Table, known: Known, partly: dict[str, str]) -> dict[str, Part]:
    """Return the views of a model that one table has; `partly` gets a sentence on views that lack columns."""
    homes: dict[str | None, Mapping[str, Any]] = {None: table.columns}
    homes.update({block: dict.fromkeys(names) for block, names in table.names.items()})
    named = {view: names for view, (_, _, names) in known.items() if names}
    owners: dict[tuple[str | None, str], str] = {}
    parts: dict[str, Part] = {}
    order = sorted(named, key=lambda view: view != table.name)  # first the view that has the name of the file
    for view in order:
        whole = [home for home, there in homes.items() if all(name in there for name in named[view])]
        home = view if view in whole else next(iter(whole), None)  # None: the columns of the table itself
        if whole and not _is_used(view, named[view], home, owners, table):
            owners.update({(home, name): view for name in named[view]})
            block = None if home is None else Part(table.blocks[home], table.names[home], table)
            parts[view] = matrix_of(table, named[view]) if block is None else block
    for view in [view for view in order if view not in parts]:
        for home, there in homes.items():
            lost = next((name for name in named[view] if name not in there), None)
            if lost is not None and any(name in there and (home, name) not in owners for name in named[view]):
                partly[view] = _without_column(view, lost, table, there)
    used = {name for home, name in owners if home is None}
    for view in [view for view in known if view not in parts and view not in named]:
        part = _unnamed(table, view, known, used)
        if part is not None:
            parts[view] = part
    return parts


def _without_column(view: str, column: str, table: Table, there: Collection[str]) -> str:
    has = f"It has {some(there)}." if there else "Its columns have no names."
    return f"View '{view}' has no column '{column}', which the model was fitted on, in {table.where}. {has}"


def _is_used(view: str, names: Sequence[str], home: Any, owners: Mapping[Any, str], table: Table) -> bool:
    """Tell whether the columns are those of the view that has the file's name; no other views may share columns."""
    shared = next((name for name in names if (home, name) in owners), None)
    if shared is None:
        return False
    owner = owners[home, shared]
    if owner in (table.name, home):
        return True
    raise ValueError(
        f"Column '{shared}' of {table.where} may be of the view '{owner}' or of '{view}': the model knows it in both. "
        "Name the file after its view, or say by --views (`views`) which columns make which view."
    )


def _unnamed(table: Table, view: str, known: Known, used: set[str]) -> Part | None:
    """Return a view whose columns have no names in the model: by its own name, or the only one by position."""
    kind, width, _ = known[view]
    if view not in table.blocks and view in table.columns and (kind != "numbers" or width in (None, 1)):
        return matrix_of(table, [view])
    only = next(iter(table.blocks), None) if len(known) == len(table.blocks) == 1 else None
    name = view if view in table.blocks else only
    if name is not None:
        return Part(table.blocks[name], table.names.get(name, ()), table)
    free = [] if table.annotations else [name for name in table.columns if name not in used]
    prefixed = [name for name in free if name.startswith(f"{view}__")]
    if prefixed:
        return matrix_of(table, prefixed)
    if view == table.name or (len(known) == 1 and not table.blocks):
        numeric = [name for name in free if table.columns[name].dtype != object]
        texts = [name for name in free if table.columns[name].dtype == object]
        if numeric and kind != "objects":
            return matrix_of(table, numeric)
        return matrix_of(table, texts) if len(texts) == 1 and kind != "numbers" else None
    return None


def as_fitted(parts: Mapping[str, Part], known: Known, tables: Sequence[Table]) -> dict[str, Part]:
    """Return the views that a model knows, with its columns in its order."""
    only = next(iter(known)) if len(known) == 1 else None
    if only is not None and len(parts) == 1:
        parts = dict(zip([only], parts.values(), strict=True))  # the one view of a model may have another name
    kept = {view: _with_columns(view, part, known[view]) for view, part in parts.items() if view in known}
    if kept:
        return kept
    files, has = quoted_files(tables), "; ".join(listed(table) for table in tables)
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


def _with_columns(view: str, part: Part, about: tuple[str, int | None, Sequence[str] | None]) -> Part:
    """Return the columns of a view that the model knows: by name, else by position if there are as many."""
    kind, width, names = about
    block, own, table = part
    if names:
        place = {name: k for k, name in enumerate(own)}
        lost = next((name for name in names if name not in place), None)
        if lost is not None:
            raise ValueError(_without_column(view, lost, table, own))
        if tuple(names) != own:
            block = block[:, [place[name] for name in names]]
        return Part(block, tuple(names), table)
    if kind != "numbers" or width is None or block is None or len(block.shape) != 2 or block.shape[1] == width:
        return part
    if table.numbered and block.shape[1] < width:  # the last columns are zero in every row
        return Part(sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], width)), own, table)
    raise ValueError(
        f"View '{view}' has {block.shape[1]} columns in {table.where}, but the model was fitted on {width}, without "
        "names. Give the same columns in the same order."
    )
