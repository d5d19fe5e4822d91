"""What a command has read, said before it works: a table of the views, and warnings about columns that look wrong."""

import re
from collections.abc import Iterator
from typing import Any

from ._output import say

_COLUMNS = ("view", "kind", "columns", "samples", "missing", "gaps")
# a name of a column that numbers samples, such as patient_id, but not the gene ID1
_NAMES_IDS = re.compile(
    r"(^|[\W_])(ids?|nr|no|number|index|barcode|mrn|patient|sample|subject|case|participant)($|[\W_])", re.IGNORECASE
)
_NUMBERED = re.compile(r"[^\d]*\d+[^\d]*")  # P001, TCGA-12: text around one number
_FEWEST = 10  # samples from which unique values tell something


def described_views(X: Any) -> list[dict[str, Any]]:
    """Return a row for each view: its kind, its columns, the samples that have it, and how much is missing.

    Parameters
    ----------
    X : Views
        The samples.
    """
    rows = []
    for name in X.names:
        block, there = X.block(name), X.present(name)
        kind = X.kind(name)
        wide = block.shape[1] if kind in ("dense", "sparse") else None
        shown = _kind_of_objects(block[there]) if kind == "objects" else _KINDS.get(kind, kind)
        rows.append(
            dict(zip(_COLUMNS, (name, shown, wide, int(there.sum()), int((~there).sum()),
                                _gaps(X, name) if kind == "dense" else 0), strict=True))
        )  # fmt: skip
    return rows


_KINDS = {"dense": "numbers", "sparse": "sparse numbers", "gram": "Gram matrix"}


def _kind_of_objects(values: Any) -> str:
    """Return what objects are, from the first one: text, lists such as tokens, or maps."""
    first = next(iter(values), "")
    return "maps" if isinstance(first, dict) else "lists" if isinstance(first, list) else "text"


def _gaps(X: Any, name: str) -> int:
    """Return the number of missing cells in samples that have the view."""
    import numpy as np

    from .._backend import to_numpy

    return int(np.isnan(np.asarray(to_numpy(X.block(name)))[X.present(name)]).sum())


def tell_views(
    X: Any, json_out: bool, *, layout: Any = None, new: bool = False, task: str | None = None
) -> dict[str, Any]:
    """Print the table of views and the task to standard error, unless they go into JSON, and the warnings; return them.

    The columns of `new` samples are those of a model, so there are no warnings about them.
    """
    rows = described_views(X)
    if not json_out:
        shown = [[*_COLUMNS], *([_cell(row[name]) for name in _COLUMNS] for row in rows)]
        widths = [max(len(line[k]) for line in shown) for k in range(len(_COLUMNS))]
        say(f"Read {len(X):,} samples of {len(rows)} view{'s' * (len(rows) != 1)}:", err=True)
        for line in shown:
            cells = [cell.ljust(widths[k]) if k < 2 else cell.rjust(widths[k]) for k, cell in enumerate(line)]
            say("  " + "  ".join(cells).rstrip(), err=True)
        if task is not None:
            say(f"Task: {task}", err=True)
    told = [] if new else [*_id_columns(X), *(_mixed_prefixes(X) if layout is None else ())]
    for text in told:
        say(f"Warning: {text}", err=True)
    return {"read": rows, **({"target": task} if task else {}), **({"warnings": told} if told else {})}


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


# -- columns that look wrong
def _id_columns(X: Any) -> Iterator[str]:
    """Yield a warning for each column that seems to name the samples: as a feature, it has no meaning."""
    for name in X.names:
        rows = X.present(name)
        if rows.sum() < _FEWEST:
            continue
        kind, found = X.kind(name), []
        if kind == "objects" and _are_names(name, X[name][rows].tolist()):
            found = [name]
        elif kind in ("dense", "sparse"):
            found = [*_encoded_ids(X, name, int(rows.sum())), *_numeric_ids(X, name, rows)]
        if found:
            more = f" and {len(found) - 3} more" * (len(found) > 3)
            columns = ", ".join(f"'{column}'" for column in found[:3]) + more
            yield (
                f"View '{name}' has {columns}, which {'has' if len(found) == 1 else 'have'} another value in every "
                "sample, as names or numbers of samples do. If so, name the column by --id, or choose the columns by "
                "--views."
            )


def _are_names(view: str, values: list[Any]) -> bool:
    """Tell whether a view of text seems to be the names of the samples: all different, and numbered or named so."""
    texts = [value for value in values if isinstance(value, str)]
    unique = len(texts) == len(values) == len(set(texts))
    return unique and (bool(_NAMES_IDS.search(view)) or all(map(_NUMBERED.fullmatch, texts)))


def _encoded_ids(X: Any, name: str, n: int) -> list[str]:
    """Return the columns of categories that have a category for every sample."""
    return [column for column, levels in X.categories.get(name, {}).items() if len(levels) >= n]


def _numeric_ids(X: Any, name: str, rows: Any) -> list[str]:
    """Return the columns of different whole numbers that follow each other, or have the name of an id."""
    import numpy as np
    import scipy.sparse as sp

    from .._backend import to_numpy

    block, names = X.block(name), X.feature_names.get(name)
    if names is None or sp.issparse(block):
        return []
    values = np.asarray(to_numpy(block))[rows]
    whole = np.flatnonzero((values == np.floor(values)).all(axis=0))  # false for missing cells
    found = []
    for j in whole:
        column = np.sort(values[:, j])
        different = bool((np.diff(column) > 0).all())
        follow = column[-1] - column[0] < 1.2 * len(column)  # a few are missing
        if different and (follow or _NAMES_IDS.search(names[j])):
            found.append(names[j])
    return found


def _mixed_prefixes(X: Any) -> Iterator[str]:
    """Yield a warning for each view with some columns that have a prefix, which then does not divide them."""
    for view, names in X.feature_names.items():
        prefixed = [name for name in names if "__" in name.strip("_")]
        if 0 < len(prefixed) < len(names):
            other = next(name for name in names if name not in set(prefixed))
            yield (
                f"View '{view}' has {len(prefixed)} columns with a prefix, such as '{prefixed[0]}', and others "
                f"without, such as '{other}'. So prefixes do not divide the columns into views. Give all columns a "
                "prefix, or say by --views which columns make which view."
            )
