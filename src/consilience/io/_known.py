"""The views that a fitted model knows, found in tables of other files by the names of their columns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..views._blocks import quoted, take_columns
from ..views._columns import bare_levels, possible_sources, sources_of
from ..views._frames import check_readable
from ..views._reading import read_block
from .layout import Part, add_parts, block_of, listed, matrix_of, quoted_files
from .tables import Table

Known = Mapping[str, tuple[str, int | None, Sequence[str] | None]]  # view -> kind, width, column names


@dataclass(frozen=True)
class _Claim:
    """Columns of one table that may be a view of the model."""

    view: str
    table: Table
    home: str | None  # the block that has the columns; None for the columns of the table
    columns: tuple[str, ...]  # those that the table has, by its own names
    names: tuple[str, ...]  # the same by the names that the model knows
    whole: bool  # whether these are all columns of the view
    named: bool  # whether the file or the block has the view's name, or the columns its prefix

    @property
    def rank(self) -> tuple[bool, bool]:
        return (self.named, self.whole)


def find_known_views(tables: Sequence[Table], known: Known) -> dict[str, Part]:
    """Return the views of a model that tables have: by column names, or by view names if columns have none.

    A view that lacks some of its columns is returned with the others, and the model refuses it by name or fills them.
    """
    parts: dict[str, Part] = {}
    owners: dict[tuple[str, str | None, str], _Claim] = {}
    named = {view: names for view, (_, _, names) in known.items() if names}
    claims = [claim for table in tables for view in named for claim in _claims(table, view, named[view])]
    for claim in sorted(claims, key=lambda claim: claim.rank, reverse=True):  # the best claims first
        places = [(claim.table.where, claim.home, column) for column in claim.columns]
        taken = [place for place in places if place in owners]
        if claim.view in parts:
            best = next(owner for owner in owners.values() if owner.view == claim.view)
            if claim.rank == best.rank and not taken:
                raise ValueError(
                    f"Columns of the view '{claim.view}', such as '{claim.columns[0]}', are in {best.table.where} and "
                    f"in {claim.table.where}. Name the right file '{claim.view}', or keep one."
                )
            continue
        if taken:
            owner = owners[taken[0]]
            if owner.rank == claim.rank:
                raise _ambiguous(taken[0][2], owner, claim)
            continue  # the columns are those of a view with a better claim
        rival = next((other for other in claims if other.view not in parts and _is_rival(claim, other)), None)
        if rival is not None:
            raise _ambiguous(next(column for column in claim.columns if column in rival.columns), claim, rival)
        owners.update(dict.fromkeys(places, claim))
        parts[claim.view] = _part(claim, named[claim.view] if known[claim.view][0] == "numbers" else ())
    used = {column for _, home, column in owners if home is None}
    for table in tables:
        unnamed = {
            view: _unnamed(table, view, known, used) for view in known if view not in parts and view not in named
        }
        add_parts(parts, {view: part for view, part in unnamed.items() if part is not None})
    return parts


def known_strings(known: Known | None) -> tuple[list[str], list[str]]:
    """Return the columns that a model knows as text, and as categories: a CSV file may have digits alone in them."""
    texts: list[str] = []
    categories: list[str] = []
    for view, (kind, _, names) in (known or {}).items():
        own = set(names or ())
        if kind == "objects":
            texts += [form for name in names or [view] for form in (name, f"{view}__{name}")]
        elif kind == "numbers":
            sources = {source for name in own for source in possible_sources(name)} - own
            categories += [form for name in sources for form in (name, f"{view}__{name}")]
    return texts, categories


def _is_rival(claim: _Claim, other: _Claim) -> bool:
    """Tell whether the columns of a claim may as well be those of another view that lacks some of its columns.

    The name of a file or block decides. Otherwise columns that only one of the two views has decide.
    """
    if claim.named or other.view == claim.view or other.table is not claim.table or other.home != claim.home:
        return False
    mine, theirs = set(claim.columns), set(other.columns)
    return bool(mine & theirs) and (bool(theirs - mine) or not mine - theirs)


def _ambiguous(column: str, one: _Claim, other: _Claim) -> ValueError:
    return ValueError(
        f"Column '{column}' of {one.table.where} may be of the view '{one.view}' or of '{other.view}': the model knows "
        "it in both. Name the file after its view, or say by --views (`views`) which columns make which view."
    )


def _claims(table: Table, view: str, names: Sequence[str]) -> list[_Claim]:
    """Return the places of a table that have columns of a view: its own columns, or a block."""
    homes: dict[str | None, Collection[str]] = {None: dict.fromkeys(table.columns)}
    homes.update({block: dict.fromkeys(own) for block, own in table.names.items() if block not in table.on_request})
    claims = []
    for home, there in homes.items():
        prefix = f"{view}__"
        bare = {name.removeprefix(prefix): name for name in there if name.startswith(prefix)}
        own: Mapping[str, str] = bare if any(name in bare for name in names) else dict(zip(there, there, strict=True))
        wanted = sources_of(names, own)
        have = [name for name in wanted if name in own]
        if have:
            by_name = view in (home, table.name) or own is bare
            columns = tuple(own[name] for name in have)
            claims.append(_Claim(view, table, home, columns, tuple(have), len(have) == len(wanted), by_name))
    return claims


def _part(claim: _Claim, known: Collection[str]) -> Part:
    """Return the columns of a claim under the names that the model knows."""
    table = claim.table
    if claim.home is not None:
        part = block_of(table, claim.home)
        if claim.columns == part.names:
            return part
        place = {name: k for k, name in enumerate(part.names)}
        chosen = take_columns(read_block(claim.view, part.block), np.array([place[name] for name in claim.columns]))
        return part._replace(block=chosen, names=claim.names)
    for column, name in zip(claim.columns, claim.names, strict=True):
        values = table.columns[column]
        if values.dtype == object and name in known:
            there = [value for value in values if value is not None]
            check_readable(table.where, column, there)
            if there:
                raise ValueError(
                    f"Column '{column}' of {table.where} has no numbers, but {there[0]!r}, for example. The model was "
                    f"fitted on numbers in this column of the view '{claim.view}'."
                )
    part = matrix_of(table, claim.columns)
    if claim.names == claim.columns:
        return part
    prefix = f"{claim.view}__"  # which is not part of the names that the model knows
    bare = tuple(name.removeprefix(prefix) for name in part.names)
    return part._replace(names=bare, categories=bare_levels(claim.view, part.categories))


def _unnamed(table: Table, view: str, known: Known, used: set[str]) -> Part | None:
    """Return a view whose columns have no names in the model: by its own name, or the only one by position."""
    kind, width, _ = known[view]
    if view not in table.blocks and view in table.columns and (kind != "numbers" or width in (None, 1)):
        return matrix_of(table, [view])
    blocks = [block for block in table.blocks if block not in table.on_request]
    only = blocks[0] if len(known) == len(blocks) == 1 else None
    name = view if view in table.blocks else only
    if name is not None:
        return block_of(table, name)
    free = [] if table.annotations else [name for name in table.columns if name not in used]
    prefixed = [name for name in free if name.startswith(f"{view}__")]
    if prefixed:
        return matrix_of(table, prefixed)
    if view == table.name or (len(known) == 1 and not blocks):
        numeric = [name for name in free if table.columns[name].dtype != object]
        texts = [name for name in free if table.columns[name].dtype == object]
        if numeric and kind != "objects":
            return matrix_of(table, numeric)
        return matrix_of(table, texts) if len(texts) == 1 and kind != "numbers" else None
    return None


def as_fitted(parts: Mapping[str, Part], known: Known, tables: Sequence[Table]) -> dict[str, Part]:
    """Return the views that a model knows; views without column names must have as many columns as at fit."""
    only = next(iter(known)) if len(known) == 1 else None
    if only is not None and len(parts) == 1:
        parts = dict(zip([only], parts.values(), strict=True))  # the one view of a model may have another name
    kept = {view: _as_wide(view, part, known[view]) for view, part in parts.items() if view in known}
    if kept:
        return kept
    files, has = quoted_files(tables), "; ".join(listed(table) for table in tables)
    names = None if only is None else known[only][2]
    if names:
        raise ValueError(
            f"The model was fitted on the view '{only}' with the column '{names[0]}', which {files} does not have: it "
            f"has {has}. Give the columns by the names they had at fit."
        )
    raise ValueError(
        f"The model was fitted on the views {quoted(known)}, none of which is in {files}: it has {has}. Give views and "
        "columns by the names they had at fit, or say by --views (`views`) which columns make which view."
    )


def _as_wide(view: str, part: Part, about: tuple[str, int | None, Sequence[str] | None]) -> Part:
    """Return a view whose columns have no names with the number of columns that the model knows."""
    kind, width, names = about
    block, table = part.block, part.table
    if names or kind != "numbers" or width is None or block is None or len(block.shape) != 2 or block.shape[1] == width:
        return part
    if table.numbered and block.shape[1] < width:  # the last columns are zero in every row
        return part._replace(
            block=sp.csr_array((block.data, block.indices, block.indptr), shape=(block.shape[0], width))
        )
    raise ValueError(
        f"View '{view}' has {block.shape[1]} columns in {table.where}, but the model was fitted on {width}, without "
        "names. Give the same columns in the same order."
    )
