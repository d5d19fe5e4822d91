"""Files that are read block by block: the layout is settled once, then each pass reads only the columns it needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..views._blocks import quoted
from ..views._reading import rows_with_data
from ..views._samples import as_names
from ..views.container import Views
from ..views.row_blocks import BLOCK_VALUES, RowBlock, RowBlocks
from ._arrow_blocks import Batch, DataFile, changed, check_unchanged, is_text, look_at_files, read_batches
from ._block_columns import BlockRecipe, block_of_view, mask_cells, objects_of_column
from ._block_survey import FileSurvey, Roles, survey_files
from ._nested import float_array
from .layout import read_layout, tell_missing_cells
from .tables import Table, missing_among

__all__ = ["read_blocks"]


def read_blocks(
    path: Any,
    *,
    views: Any = None,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    ids: str | None = None,
    task: str | None = None,
    size: int | None = None,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
) -> RowBlocks:
    """Read the samples of a file, or of a folder of Parquet files, block by block.

    Memory does not grow with the number of samples. Each pass opens the file again and reads only the columns that
    are used.

    Parameters
    ----------
    path : path
        A .parquet, .feather, .arrow, .csv, .tsv, .txt or .jsonl file, or a folder of Parquet files. Text files may be
        packed, such as .csv.gz. The files of a folder, and of folders below it, are read in sorted order. A folder
        ``centre=3`` gives its files the column `centre`.
    views : dict, "prefix", path of a .toml file, or None
        Columns of each view, as names or patterns (``{"audio": ["mfcc_*"]}``); a TOML file has them in ``[views]``.
        Default: ``audio__mfcc1`` belongs to ``audio`` if all columns have such names. Otherwise numbers and categories
        are one view, ``view0``, and each column of text, or of lists of numbers, is a view by itself.
    target : str or sequence of str, optional
        The column of the class or target. Several columns of numbers make a target of several outputs.
    weight : str, optional
        The column of the sample weights.
    ids : str, optional
        The column of the sample names. Default: an index of strings that pandas stored, or the first column of a text
        file if it has strings and no name.
    task : {"classification", "regression"}, optional
        How the target of a text file is read. Classes that are not integers are text as written, so that ``1.10`` is
        not ``1.1``. Default: numbers that are not whole are measurements.
    size : int, optional
        Largest number of samples in a block. By default, as many as have about 4 million values.
    encoding : str, optional
        Encoding of a text file without a byte order mark, such as ``"cp1252"``. Default: UTF-8.
    na_values : sequence of str, optional
        Cells to read as missing, such as ``["n.d."]``, besides null, empty cells and words such as NA, NaN and null. A
        warning says how many cells these are.

    Returns
    -------
    RowBlocks
        Blocks of views, targets and weights, for `fit`, `predict` and `score`. The number of samples is known.

    See Also
    --------
    read_samples : Read files at once; the values are the same.
    RowBlocks.of : Cut arrays and memory maps into blocks.

    Notes
    -----
    Columns are found by name. A file of the folder that lacks one of them is refused, and so is a file that changes
    between passes. Numbers may be integers in one file and decimals in another. A view of float32 columns stays
    float32; other numbers become float64.

    A row in which all columns of a view are null has no such view. A row without any view is refused.

    Strings and categorical types become one-hot columns, ``sex=F``, which are the same in every block. A first pass
    over these columns finds their categories; ``X.categories`` of each block lists them. By default, a column with more
    than 1,000 different strings is text. Text files are read once to find the type of every column.

    Parquet files tell their number of rows and nulls, so that a file of numbers is not read before the first pass.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience import read_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("size__m2,size__beds,noise__db,y\\n20,1,40,a\\n35,2,,b\\n50,2,48,b\\n")
    ...     blocks = read_blocks(path, target="y", size=2)
    ...     [(X.names, y.tolist()) for X, y, weights in blocks], blocks.n_samples
    ([(('size', 'noise'), ['a', 'b']), (('size', 'noise'), ['b'])], 3)
    """
    if size is not None and (isinstance(size, bool) or int(size) != size or size < 1):
        raise ValueError(f"`size` is the largest number of samples in a block, an integer of at least 1; got {size!r}.")
    spec, target, ids = read_layout(views, target, ids)  # type: ignore[arg-type]
    several = target is not None and not isinstance(target, str)
    roles = Roles(tuple(target) if several else (target,) if target is not None else (), several, weight, ids)  # type: ignore[arg-type]
    na_values = [na_values] if isinstance(na_values, str) else list(na_values)
    files = look_at_files(Path(path))
    targets = dict.fromkeys(roles.targets, "regression" if several else task)
    options = {"exact": roles.exact, "targets": targets, "encoding": encoding, "na_values": na_values}
    survey, recipes = survey_files(files, spec, roles, options)
    where = f"'{Path(path).name}'"
    tell_missing_cells([Table("", where, read_as_missing=survey.missing)], na_values)
    width = sum(recipe.width for recipe in recipes.values())
    plan = Plan(tuple(files), recipes, survey, survey.roles, options, size or max(BLOCK_VALUES // max(width, 1), 256))
    return RowBlocks(partial(_read_pass, plan), n_samples=survey.n_rows, name=where)


@dataclass(frozen=True)
class Plan:
    """What each pass reads, and how."""

    files: tuple[DataFile, ...]
    recipes: Mapping[str, BlockRecipe]
    survey: FileSurvey
    roles: Roles
    options: Mapping[str, Any]
    size: int

    @property
    def columns(self) -> set[str]:
        """All columns that a pass reads."""
        return {name for recipe in self.recipes.values() for name in recipe.columns} | set(self.roles.every)


def _read_pass(plan: Plan) -> Iterator[RowBlock]:
    """Yield the blocks of all files, which must have the rows that they had before."""
    for file in plan.files:  # before the first block, so that no pass ends in the middle for this reason
        check_unchanged(file)
    given = missing_among(plan.options["na_values"])
    for file in plan.files:
        rows = 0
        chunk = plan.survey.chunk if is_text(file) else plan.size
        for batch in read_batches(file, plan.columns, chunk, plan.options):
            rows += batch.n
            for part in _cut_batch(batch, plan.size):
                masked = part.columns if is_text(file) else mask_cells(part.columns, plan.columns, given)[0]
                yield _row_block(part._replace(columns=masked), plan)
        if file.n_rows is not None and rows != file.n_rows:
            raise changed(file.where, f"{file.n_rows} rows then, {rows} now")


def _cut_batch(batch: Batch, size: int) -> Iterator[Batch]:
    if batch.n <= size:
        yield batch
        return
    for start in range(0, batch.n, size):
        n = min(size, batch.n - start)
        columns = {name: values.slice(start, n) for name, values in batch.columns.items()}
        yield batch._replace(columns=columns, n=n, first=batch.first + start)


def _row_block(batch: Batch, plan: Plan) -> RowBlock:
    """Return rows as views, target and weights."""
    roles = plan.roles
    blocks = {name: block_of_view(batch, recipe) for name, recipe in plan.recipes.items()}
    there = np.column_stack([np.broadcast_to(rows_with_data(block), batch.n) for block in blocks.values()])
    empty = np.flatnonzero(~there.any(axis=1))
    if len(empty):
        raise ValueError(
            f"Row {batch.first + int(empty[0])} of {batch.where} has no view at all: all of its columns of "
            f"{quoted(blocks)} are missing. Remove such rows from the file."
        )
    names = None
    if roles.ids is not None:
        own = _role(batch, roles.ids, plan)
        _refuse_missing(own, batch, roles.ids, "a sample name", "Name the sample")
        names = as_names(own if own.dtype.kind in "iu" else own.tolist())
    columns = {name: recipe.names for name, recipe in plan.recipes.items() if recipe.names}
    categories = {name: recipe.categories for name, recipe in plan.recipes.items()}
    X = Views._of(blocks, batch.n, there, columns, names, categories)
    y = [_role(batch, name, plan) for name in roles.targets]
    weights = None
    if roles.weight is not None:
        weights = _role(batch, roles.weight, plan).astype(np.float64)
        _refuse_missing(weights, batch, roles.weight, "a weight", "Give it one")
    return RowBlock(X, (np.column_stack(y) if roles.several else y[0]) if y else None, weights)


def _role(batch: Batch, name: str, plan: Plan) -> np.ndarray:
    """Return a target, weights or names, of the same type in every block."""
    dtype = plan.survey.dtypes[name]
    column = batch.columns.get(name)
    if dtype.kind == "O":
        return np.full(batch.n, None, dtype=object) if column is None else objects_of_column(column)
    return float_array(column, batch.n).astype(dtype, copy=False)


def _refuse_missing(values: np.ndarray, batch: Batch, name: str, what: str, remedy: str) -> None:
    missing = np.array([value is None for value in values]) if values.dtype == object else np.isnan(values)
    if missing.any():
        row = batch.first + int(np.argmax(missing))
        raise ValueError(f"Row {row} of {batch.where} does not have {what} in column '{name}'. {remedy}, or remove it.")
