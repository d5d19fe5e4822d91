"""Samples from files: one file, or one file per view whose rows are matched by sample names."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..views._blocks import some
from ..views._reading import is_missing
from ..views._samples import as_names, check_unique_names
from ..views.container import Views
from ._known import Known, as_fitted, find_known_views, known_strings
from ._transposing import transposed
from .formats import read_tables
from .layout import (
    divide_tables,
    listed,
    quoted_files,
    read_layout,
    settle_index,
    take_column,
    tell_missing_cells,
    views_of_parts,
)
from .tables import Table, as_numbers, name_text, placed

__all__ = ["Samples", "read_samples"]


@dataclass(frozen=True)
class Samples:
    """Samples read from files.

    Parameters
    ----------
    X : Views
        The views; ``X.sample_names`` are the names of the samples, where files have them, and ``X.categories`` the
        columns that were encoded as categories.
    y : array of shape (n_samples,) or None
        The target, where one was named.
    groups : array of shape (n_samples,) or None
        Groups of the samples, such as patients, where a column of them was named.
    columns : dict of array
        Other columns that were asked for, such as centre or batch.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Samples, Views
    >>> samples = Samples(Views(a=[[1.0], [2.0]]), y=np.array([0, 1]))
    >>> len(samples.X), samples.groups is None
    (2, True)
    """

    X: Views
    y: np.ndarray | None = None
    groups: np.ndarray | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)


def read_samples(
    paths: Sequence[Any],
    *,
    views: Any = None,
    target: str | None = None,
    ids: str | None = None,
    groups: str | None = None,
    columns: Sequence[str] | Mapping[str, str | None] = (),
    known: Known | None = None,
    transpose: bool = False,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    libsvm_base: int | None = None,
    task: str | None = None,
    categories: Sequence[str] = (),
) -> Samples:
    """Read samples from one file, or from one file per view.

    Parameters
    ----------
    paths : sequence of path
        One file or folder of Parquet files, or several files whose rows are matched by the column `ids`. Then each file
        is a view with the file's name, and the view is missing in samples that its file does not have. The formats are
        .csv, .tsv, .txt, .xlsx (the first sheet), .parquet, .feather, .arrow, .jsonl, .npz, .libsvm, .h5ad and .h5mu.
        Text files may be packed, such as .csv.gz; see Notes for their separators.
    views : dict, "prefix", path of a .toml file, or None
        Columns of each view, as names or patterns (``{"audio": ["mfcc_*"]}``); a TOML file has them in ``[views]``.
        Default: ``audio__mfcc1`` belongs to ``audio`` if all columns have such names. Otherwise the numbers and
        categories of a file are one view, in which each category is a column, ``sex=F``. Columns of text in the only
        file, and lists of numbers, are views by themselves. Layers of AnnData are views on request, by their place:
        ``{"counts": "layers/counts"}``. The columns of a libsvm file have no names and are given by their positions:
        slices, numbers from 0 on, or text such as ``"0:50"``.
    target : str, optional
        The column of the class or target.
    ids : str, optional
        The column of the sample names. Default: names that files have without such a column: `obs_names` of AnnData and
        MuData, the first column of a table if it has text and no name, and the header of transposed files.
    groups : str, optional
        The column of groups of samples, such as patients, for cross-validation.
    columns : sequence of str, or dict of str to task, optional
        Other columns to return, such as centre, batch or time; they are not features. A dict says which have names
        ("classification") and which have numbers ("regression"). With `known`, columns that no file has are left out.
    known : dict, optional
        What a fitted model knows of each view: a tuple of its kind ("numbers", "objects" or "gram"), its number of
        columns and their names; the last two may be None. Columns are found by these names, in any order and in files
        of any name; where several views have a column, the file named after a view has that view's. A view without
        column names is found by its own name, or by position if it is the only one; then the number of columns must
        agree. Other columns are ignored, and a view that no file has is missing.
    transpose : bool, default=False
        Whether files have samples in columns, such as genes by samples: the header names the samples, and the first
        column names the columns of the view. Files that have the column `ids` are read as they are.
    encoding : str, optional
        Encoding of text files without a byte order mark, such as ``"cp1252"``. Default: UTF-8.
    na_values : sequence of str, optional
        Cells to read as missing, such as ``["n.d."]``, besides empty cells and words such as NA, NaN and null. A
        warning says how many cells these are.
    libsvm_base : {0, 1}, optional
        Number of the first column of libsvm files. Default: 0 if any row has a column with the number 0, else 1. Give
        it for new samples of a model if it is 0, since a file may happen not to have this column.
    task : {"classification", "regression"}, optional
        What the target is, which decides whether a text file has numbers in it. See Notes. Default: regression if any
        target value is a number that is not whole.
    categories : sequence of str, optional
        Columns of integers that are codes of categories: each code becomes a column, ``stage=2``.

    Returns
    -------
    Samples
        Views with the names of the samples, target, groups and other columns. Samples without any view are left out,
        with a warning that names them.

    See Also
    --------
    read_stream : Read the same files a part at a time.

    Notes
    -----
    Cells of text files are separated by commas, semicolons or tabs, as in the line of column names, or as a first line
    ``sep=;`` says; those of .txt files also by blanks. Decimal commas are recognized where semicolons, tabs or blanks
    separate. Numbers such as 1,234 are refused if no other number tells whether the comma separates thousands.

    Names of samples and groups in text files are text as written: 001 is not 1, and 1.10 is not 1.1. So are classes,
    except that a column of integers, such as 1 and 2, has integers; unlabeled samples have None. With
    ``task="regression"`` the target has floats, and NaN for unlabeled samples. Names of several files match if their
    text is the same; the integer 7 of Parquet is "7". A warning counts the samples that some files do not have. Files
    that share few names, or names in different spellings, are an error.

    Lists of numbers of one length are a view of numbers. Lists of integers of several lengths, such as ids, lists of
    strings, and maps from strings to numbers are views of objects. Objects in JSON lines, and structs of Arrow, that
    have the same fields in every row with numbers, or lists of numbers, in them are a view of numbers. Its columns have
    dotted names: ``{"audio": {"mfcc": [1, 2], "rms": 3}}`` is the view `audio` with the columns ``mfcc.0``, ``mfcc.1``
    and ``rms``. Objects with other fields in other rows are maps.

    Parquet, Feather and Arrow files list the categories of columns that had a categorical type in pandas, or the type
    Enum in polars. All of them become columns, in this order. In other columns, the strings found do.

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
    others = [name for name in (target, groups, *columns) if name is not None]
    exact = [name for name in (*others, ids) if name is not None]
    tasks = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns)
    tasks |= {target: task} if target is not None else {}
    texts, coded = known_strings(known)
    texts += categories
    na_values = [na_values] if isinstance(na_values, str) else list(na_values)
    options = {
        "exact": exact, "targets": tasks, "texts": [*texts, *coded], "encoding": encoding,
        "na_values": na_values, "libsvm_base": libsvm_base,
    }  # fmt: skip
    tables = []
    for path in given:  # a plain loop: warnings count the calls up to here
        tables.append(_read_table(path, options))
        tables[-1].texts, tables[-1].categories = set(texts), set(coded)
    tell_missing_cells(tables, na_values)
    tables = _turned(tables, ids, {**tasks, groups or "": "classification"}) if transpose else tables
    for table in tables:
        settle_index(table)
    _declare_categories(tables, categories)
    if target is None and len(tables) == 1 and tables[0].numbered:
        target = "y"  # the first number of each row
        others = [target, *others]
    tables, names = _match_rows(tables, ids, known)
    if known:  # new samples may lack what is not a view
        others = [name for name in others if name in (target, groups) or any(name in t.columns for t in tables)]
    taken = {name: as_numbers(take_column(tables, name)) for name in dict.fromkeys(others)}
    taken |= {target: _as_floats(taken[target], target)} if task == "regression" and target is not None else {}
    if spec is None and known:
        parts = find_known_views(tables, known)
    else:
        parts = divide_tables(tables, spec, missing_allowed=bool(known))
    for what, values in (*taken.items(), *([(ids or "the names", names)] if names is not None else [])):
        n = max(part.block.shape[0] for part in parts.values() if part.block is not None) if parts else len(values)
        if len(values) != n:
            raise ValueError(f"'{what}' of '{given[0].name}' has {len(values)} values for {n} samples.")
    X, kept = views_of_parts(as_fitted(parts, known, tables) if known else parts, names)
    taken = {name: values[kept] for name, values in taken.items()}
    rest = {name: taken[name] for name in columns if name in taken}
    return Samples(X, taken.get(target or ""), taken.get(groups or ""), rest)


def _declare_categories(tables: Sequence[Table], categories: Sequence[str]) -> None:
    """Make categories of columns of codes."""
    for name in categories:
        having = [table for table in tables if name in table.columns]
        if not having:
            raise ValueError(f"No column '{name}' of `categories` (--category) is in {quoted_files(tables)}.")
        having[0].levels[name] = ()


def _turned(tables: Sequence[Table], ids: str | None, exact: Mapping[str, str | None]) -> list[Table]:
    """Return tables with samples in rows; those with the column `ids` have them there already."""
    turned = [table if ids in table.columns else transposed(table, exact) for table in tables]
    if all(new is old for new, old in zip(turned, tables, strict=True)):
        raise ValueError(
            f"`transpose` (--transpose) is for files with samples in columns, but {quoted_files(tables)} has a column "
            f"'{ids}' of sample names. Omit `ids` (--id) if the header names the samples."
        )
    return turned


def _read_table(path: Path, options: dict[str, Any]) -> Table:
    table = next(read_tables(path, **options), None)
    if table is None or not (
        any(len(values) for values in table.columns.values())
        or any(block is None or block.shape[0] for block in table.blocks.values())
    ):
        raise ValueError(f"'{path.name}' has no samples. Give a file with at least one row besides the column names.")
    return table


def _take_names(table: Table, ids: str | None, elsewhere: bool = False) -> np.ndarray:
    """Return the names of the samples, none of which is missing.

    They are in the column `ids`, which is removed from the table. Otherwise they come with the file if `ids` is not
    given, may be a column of another file (`elsewhere`), or is not a column because the file was transposed.
    """
    if ids in table.columns:
        names = as_names(as_numbers(table.columns.pop(ids)).tolist())
    elif table.samples is not None and (ids is None or elsewhere or table.turned):
        names = table.samples
    elif ids is None:
        raise ValueError(
            f"Several files are matched by a column that names the samples, and {table.where} has no names. Give the "
            "name of this column by `ids` (--id)."
        )
    else:
        raise ValueError(f"{table.where} has no column '{ids}'; its columns are {listed(table)}.")
    what = f"column '{ids}'" if ids is not None else "the names of its samples"
    missing = np.flatnonzero([is_missing(name) for name in names])
    if len(missing):
        raise ValueError(
            f"{table.where} has {len(missing)} of {len(names)} rows without a name in {what}, the first "
            f"after {int(missing[0])} others. Name them, or remove them."
        )
    return names


def _as_floats(values: np.ndarray, name: str) -> np.ndarray:
    """Return a target of regression as numbers, NaN where one is missing."""
    try:
        return np.array([np.nan if value is None else value for value in values.tolist()], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Column '{name}' is the target of a regression, but it is not a number everywhere: {error}. Leave such "
            "cells empty, name them by `na_values` (--na), or set task='classification' (--task classification)."
        ) from error


def _match_rows(tables: list[Table], ids: str | None, known: Known | None) -> tuple[list[Table], np.ndarray | None]:
    """Return the rows of all tables in one order, missing where a table does not have the sample, and their names."""
    if len(tables) == 1 and ids is None and tables[0].samples is None:
        return tables, None
    elsewhere = known is not None or any(ids in table.columns for table in tables)
    if len(tables) == 1:
        return tables, _take_names(tables[0], ids, elsewhere)
    keys = _of_one_type([_take_names(table, ids, elsewhere) for table in tables])
    for own, table in zip(keys, tables, strict=True):
        check_unique_names(as_names(own), table.where)
    _check_matches(keys, [table.where for table in tables])
    order = list(dict.fromkeys(key for own in keys for key in own))
    place = {key: k for k, key in enumerate(order)}
    matched = []
    for table, own in zip(tables, keys, strict=True):
        rows = np.array([place[key] for key in own], dtype=int)
        columns = {name: placed(values, rows, len(order))[0] for name, values in table.columns.items()}
        blocks, present = {}, dict(table.present)
        for name, block in table.blocks.items():
            blocks[name], there = placed(block, rows, len(order))
            if name in present:
                present[name] = placed(present[name].astype(float), rows, len(order))[0] == 1
            elif there is not None:
                present[name] = there
        matched.append(replace(table, columns=columns, blocks=blocks, present=present))
    return matched, as_names(order)


def _of_one_type(keys: Sequence[np.ndarray]) -> list[list[Any]]:
    """Return sample names as lists; as strings if some are numbers and others text: 1 and 1.0 are "1", not "01"."""
    lists = [own.tolist() for own in keys]
    if len({isinstance(name, str) for own in lists for name in own}) < 2:
        return lists
    return [[name_text(name) for name in own] for own in lists]


_ALL = "If they are different samples, also give a file that lists the names of all samples."


def _check_matches(keys: Sequence[Sequence[Any]], files: Sequence[str]) -> None:
    """Refuse files that share few names, or have one name in two spellings; warn if some samples are not in all."""
    owners: dict[Any, set[int]] = {}
    for k, own in enumerate(keys):
        for name in own:
            owners.setdefault(name, set()).add(k)
    partly = {name: places for name, places in owners.items() if len(places) < len(keys)}
    alike = list(_spellings(partly))
    if alike:
        one, other = alike[0]
        more = f", and {len(alike) - 1} more names" if len(alike) > 1 else ""
        raise ValueError(
            f"'{one}' of {files[min(partly[one])]} may be '{other}' of {files[min(partly[other])]}{more}: they differ "
            f"only in zeros, case, blanks or an ending. Write the names in one way in all files. {_ALL}"
        )
    for k, own in enumerate(keys):
        others = [name for name, places in owners.items() if places - {k}]
        shared = sum(len(owners[name]) > 1 for name in own)
        if own and others and 2 * shared < min(len(own), len(others)):
            count = "No sample" if not shared else f"Only {shared} of {len(own)} samples"
            mine = next(name for name in own if len(owners[name]) == 1)
            theirs = next(name for name in others if k not in owners[name])
            raise ValueError(
                f"{count} of {files[k]} {'is' if shared < 2 else 'are'} in another file: it has {mine!r}, the others "
                f"{theirs!r}, for example. Write the names in one way in all files. {_ALL}"
            )
    single = [name for name, places in partly.items() if len(places) == 1]
    if partly:
        counts = f"{len(owners) - len(partly)} are in all {len(keys)} files"
        absent = {name: min({*range(len(keys))} - places) for name, places in partly.items() if len(places) > 1}
        several = [f"'{name}' is not in {files[k]}" for name, k in absent.items()]
        counts += f", {len(several)} in some" + f" ({some(several, 1)})" * bool(several) if len(keys) > 2 else ""
        shown = some([f"'{name}' of {files[min(partly[name])]}" for name in single], 3)
        counts += f", {len(single)} only in one ({shown})" if single else ""
        warnings.warn(f"The files do not have the same {len(owners)} samples: {counts}.", stacklevel=4)


def _spellings(owners: Mapping[Any, set[int]]) -> Iterator[tuple[Any, Any]]:
    """Yield names, with another name that no file has too, that differ in zeros, case, blanks or an ending only."""
    plain: dict[str, list[Any]] = {}
    bare = {name: re.sub(r"(?<![\d.])0+(?=\d)", "", "".join(str(name).split()).casefold()) for name in owners}
    for name, text in bare.items():
        plain.setdefault(text, []).append(name)
    for name, text in bare.items():
        for stem in (text, *(text[: sign.start()] for sign in re.finditer("[-_.]", text))):
            other = next((other for other in plain.get(stem, ()) if not owners[name] & owners[other]), None)
            if other is not None:
                yield name, other
                plain[text].remove(name)  # or the pair would come again, the other way round
                break
