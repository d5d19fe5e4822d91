"""Samples from files: one file, or one file per view whose rows are matched by sample names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..views.container import Views
from ._known import Known, as_fitted, find_known_views
from .formats import read_tables
from .layout import divide_tables, listed, read_layout, take_column, views_of_parts
from .tables import Table, as_numbers, placed

__all__ = ["Samples", "read_samples"]


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
    groups : array of shape (n_samples,) or None
        Groups of the samples, such as patients, where a column of them was named.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Samples, Views
    >>> samples = Samples(Views(a=[[1.0], [2.0]]), y=np.array([0, 1]))
    >>> len(samples.X), samples.ids is None
    (2, True)
    """

    X: Views
    y: np.ndarray | None = None
    ids: np.ndarray | None = None
    groups: np.ndarray | None = None


def read_samples(
    paths: Sequence[Any],
    *,
    views: Any = None,
    target: str | None = None,
    ids: str | None = None,
    groups: str | None = None,
    known: Known | None = None,
) -> Samples:
    """Read samples from one file, or from one file per view.

    Parameters
    ----------
    paths : sequence of path
        One file (.parquet, .csv, .tsv, .jsonl, .npz, .libsvm, .h5ad, .h5mu) or folder of Parquet files, or several
        files whose rows are matched by the column `ids`. Then each file is a view with the file's name, and the view
        is missing in samples that its file does not have.
    views : dict, "prefix", path of a .toml file, or None
        Columns of each view, as names or patterns (``{"audio": ["mfcc_*"]}``); a TOML file has them in ``[views]``.
        Default: ``audio__mfcc1`` belongs to ``audio`` if all columns of numbers have such names. Otherwise the numbers
        of a file are one view. Columns of text, and of lists of numbers, are views by themselves. The columns of a
        libsvm file have no names and are given as slices.
    target : str, optional
        The column of the class or target.
    ids : str, optional
        The column of the sample names.
    groups : str, optional
        The column of groups of samples, such as patients, for cross-validation.
    known : dict, optional
        What a fitted model knows of each view: a tuple of its kind ("numbers", "objects" or "gram"), its number of
        columns and their names; the last two may be None. Columns are found by these names, in any order. A view
        without column names is found by its own name, or by position if it is the only one; then the number of columns
        must agree. Other columns are ignored, and a view that no file has is missing.

    Returns
    -------
    Samples
        Views, target, sample names and groups.

    See Also
    --------
    read_stream : Read the same files a part at a time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience import read_samples
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
    exact = [name for name in (target, ids, groups) if name is not None]
    tables = []
    for path in given:  # not in a comprehension, whose own frame would shift the place that warnings name
        tables.append(_read_table(path, exact, _known_texts(known)))
    if target is None and len(tables) == 1 and tables[0].numbered:
        target = "y"  # the first number of each row
    names: np.ndarray | None = None
    if len(tables) > 1:
        tables, names = _match_rows(tables, ids)
    elif ids is not None:
        names = _take_names(tables[0], ids)
    y, of_group = (None if name is None else as_numbers(take_column(tables, name)) for name in (target, groups))
    if spec is None and known:
        parts = find_known_views(tables, known)
    else:
        parts = divide_tables(tables, spec, missing_allowed=bool(known))
    X = views_of_parts(as_fitted(parts, known, tables) if known else parts)
    for what, values in ((target, y), (ids, names), (groups, of_group)):
        if values is not None and len(values) != len(X):
            raise ValueError(f"'{what}' of '{given[0].name}' has {len(values)} values for {len(X)} samples.")
    return Samples(X, y, names, of_group)


def _known_texts(known: Known | None) -> list[str]:
    """Return the columns that a model knows as text, also if a CSV file has digits in them."""
    return [name for view, (kind, _, names) in (known or {}).items() if kind == "objects" for name in names or [view]]


def _read_table(path: Path, exact: Sequence[str], texts: Sequence[str]) -> Table:
    table = next(read_tables(path, exact=exact, texts=texts), None)
    if table is None or not (
        any(len(values) for values in table.columns.values())
        or any(block is None or block.shape[0] for block in table.blocks.values())
    ):
        raise ValueError(f"'{path.name}' has no samples. Give a file with at least one row besides the column names.")
    return table


def _take_names(table: Table, ids: str) -> np.ndarray:
    if ids not in table.columns:
        raise ValueError(f"{table.where} has no column '{ids}'; its columns are {listed(table)}.")
    return as_numbers(table.columns.pop(ids))


def _match_rows(tables: Sequence[Table], ids: str | None) -> tuple[list[Table], np.ndarray]:
    """Return the rows of all tables in one order, missing where a table does not have the sample."""
    if ids is None:
        raise ValueError("Several files are matched by a column that names the samples: give its name by `ids` (--id).")
    keys = [_take_names(table, ids) for table in tables]
    for k, own in enumerate(keys):
        if len(set(own.tolist())) < len(own):
            raise ValueError(f"{tables[k].where} has a sample twice in its column '{ids}'.")
        others = [key for other in keys[:k] + keys[k + 1 :] for key in other.tolist()]
        if len(own) and others and not set(own.tolist()) & set(others):
            raise ValueError(
                f"No sample of {tables[k].where} is in another file: its column '{ids}' has {own.tolist()[0]!r}, the "
                f"others {others[0]!r}, for example. Write the names in one way, numbers or strings, in all files."
            )
    order = list(dict.fromkeys(key for own in keys for key in own.tolist()))  # as they first appear
    place = {key: k for k, key in enumerate(order)}
    matched = []
    for table, own in zip(tables, keys, strict=True):
        rows = np.array([place[key] for key in own.tolist()])
        columns = {name: placed(values, rows, len(order)) for name, values in table.columns.items()}
        blocks = {name: placed(block, rows, len(order)) for name, block in table.blocks.items()}
        matched.append(replace(table, columns=columns, blocks=blocks))
    return matched, np.array(order)
