"""One reader per file format; each yields tables of rows, so that files and streams follow the same rules."""

import csv
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._backend import check_memory
from ..views._annotated import matrices
from ..views._reading import is_missing
from ._arrow import read_arrow, read_parquet
from ._delimited import read_csv
from ._json_lines import read_json_lines
from ._libsvm import read_libsvm
from ._text import OPENERS, Form, is_libsvm
from .tables import Source, Table, naming_file, objects, placed, quiet, read_cells_as_missing


# -- .txt
def _read_txt(source: Source) -> Iterator[Table]:
    """Yield the tables of a .txt file, which is a table with the names of columns in the first line, or libsvm."""
    return read_libsvm(source) if is_libsvm(source) else read_csv(source, preferred="")


# -- Excel
_SHEET_ROWS = 1_048_576


def _read_excel(source: Source) -> Iterator[Table]:
    """Yield the tables of the first sheet of a workbook; its cells follow the rules of CSV files."""
    try:
        with quiet():
            import openpyxl
    except ImportError as error:
        raise ImportError(
            f"{source.where} needs the package openpyxl: pip install 'consilience[frames]'. Or save the sheet as CSV."
        ) from error
    with naming_file(source.where, "an Excel workbook"), quiet():
        _check_unpacked(source)
        book = openpyxl.load_workbook(source.data, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # some programs write wrong ones
    if len(book.worksheets) > 1:
        warnings.warn(
            f"{source.where} has {len(book.worksheets)} sheets; the first one is read, '{sheet.title}'. Save others as "
            "files of their own to use them.",
            stacklevel=5,  # where read_samples is called
        )
    try:
        yield from read_csv(replace(source, data=_lines_of_sheet(sheet, source.where)), form=Form(","))
    finally:
        book.close()


def _lines_of_sheet(sheet: Any, where: str) -> Iterator[str]:
    """Yield the rows of a sheet as lines of CSV, from the first row with values on; empty rows are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    width = None
    rows = enumerate(sheet.iter_rows(values_only=True), start=1)
    full = ((k, row) for k, row in rows if k > _SHEET_ROWS or any(cell is not None for cell in row))
    while True:
        with naming_file(where, "an Excel workbook"), quiet():
            number, row = next(full, (0, None))
        if row is None:
            return
        if number > _SHEET_ROWS:  # the number of a row in a damaged file may be any, with empty rows before it
            raise ValueError(
                f"{where} has more than {_SHEET_ROWS:,} rows, the most of an Excel sheet. It may be damaged."
            )
        cells = [cell.isoformat() if hasattr(cell, "isoformat") else cell for cell in row]
        while cells[-1] is None:
            cells.pop()
        width = len(cells) if width is None else width
        if len(cells) > width:
            raise ValueError(
                f"Row {number} of {where} has {len(cells)} cells, but {width} columns have names. Name the columns in "
                "the first row, and keep notes out of the sheet."
            )
        writer.writerow([*cells, *[None] * (width - len(cells))])
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _check_unpacked(source: Source) -> None:
    """Validate that what a zip archive says to unpack to fits into memory; no more than that is read of it."""
    if zipfile.is_zipfile(source.data):
        with zipfile.ZipFile(source.data) as archive:
            total = sum(member.file_size for member in archive.infolist())
        check_memory(total, f"{source.where}, unpacked,", "Save it as CSV or Parquet, and use `read_blocks`.")


# -- NPZ
def _read_npz(source: Source) -> Iterator[Table]:
    """Yield the table of an NPZ file: matrices are blocks, vectors are columns, other arrays are ignored."""
    where = source.where
    table = Table(source.name, where)
    try:
        with naming_file(where, "NPZ"):
            _check_unpacked(source)
        with naming_file(where, "NPZ"), np.load(source.data, allow_pickle=False) as arrays:
            contents = {array: arrays[array] for array in arrays.files}
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"{where} cannot be read as NPZ: it has Python objects, which could run code, or is not an NPZ file. Save "
            "arrays of numbers or strings by numpy.savez."
        ) from error
    for key, values in contents.items():
        if not isinstance(values, np.ndarray):
            raise ValueError(f"'{key}' in {where} is not an array. Save arrays of numbers or strings by numpy.savez.")
        if values.ndim == 1:
            table.columns[key] = values if values.dtype.kind in "biuf" else objects(values.tolist())
        elif values.ndim:
            table.blocks[key] = values
    yield table


# -- AnnData and MuData
def _read_annotated(source: Source) -> Iterator[Table]:
    """Yield the table of AnnData or MuData: matrices of modalities are blocks, columns of `obs` describe samples."""
    path, where, name = source.data, source.where, source.name
    kind = "mudata" if path.suffix.lower() == ".h5mu" else "anndata"
    try:
        with quiet():
            module = __import__(kind)
    except ImportError as error:
        raise ImportError(f"{where} needs the package {kind}: pip install 'consilience[omics]'.") from error
    with naming_file(where, "MuData" if kind == "mudata" else "AnnData"), quiet():
        data = module.read_h5mu(path) if kind == "mudata" else module.read_h5ad(path)
        columns = {str(column): _values_of_series(data.obs[column]) for column in data.obs.columns}
    samples = objects(list(data.obs_names))
    table = Table(name, where, {**columns, "obs_names": samples}, annotations=True)
    types = {str(column): data.obs[column].dtype for column in data.obs.columns}
    table.levels = {name: own.categories.tolist() for name, own in types.items() if hasattr(own, "categories")}
    table.samples = samples if data.obs_names.is_unique else None
    for key, part in data.mod.items() if kind == "mudata" else [(name, data)]:
        rows = _rows_among(part.obs_names, data.obs_names, f"'{key}' in {where}") if kind == "mudata" else None
        for block, place in _places(key, part, f"{key}/" if kind == "mudata" else "").items():
            try:
                found = matrices(part, {block: place})[block]
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
            table.blocks[block], table.names[block] = found.values, found.columns or ()
            table.encoded[block] = found.categories
            if rows is not None:
                table.blocks[block], present = placed(found.values, rows, data.n_obs)
                table.present.update({block: present} if present is not None else {})
            if block != key:
                table.on_request.add(block)
    yield table


def _places(key: str, data: Any, prefix: str) -> dict[str, str]:
    """Return the matrices of AnnData by the names of their blocks: X, layers, and embeddings in `obsm`."""
    others = [*(f"layers/{name}" for name in data.layers), *(f"obsm/{name}" for name in data.obsm)]
    main = {} if data.X is None and others else {key: "X"}
    return {**main, **{f"{prefix}{place}": place for place in others}}


def _values_of_series(series: Any) -> np.ndarray:
    """Return one column of pandas: numbers with NaN where missing, or objects with None."""
    if series.dtype.kind in "biuf":
        values = series.to_numpy()
        return series.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype == object else values
    return objects([None if is_missing(value) else value for value in series.to_numpy(dtype=object)])


def _rows_among(own: Any, every: Any, what: str) -> np.ndarray:
    """Return the positions of the samples of a modality among those of the file."""
    if not (own.is_unique and every.is_unique):
        raise ValueError(f"Samples of {what} have one name twice, so they cannot be matched. Make `obs_names` unique.")
    rows = np.asarray(every.get_indexer(own))
    if (rows < 0).any():
        raise ValueError(f"{what} has the sample '{own[int(np.argmin(rows))]}', which the file does not have.")
    return rows


# -- any file
_READERS: dict[str, Callable[[Source], Iterator[Table]]] = {
    **dict.fromkeys((".parquet", ".pq"), read_parquet),
    ".csv": read_csv,
    ".tsv": partial(read_csv, preferred="\t"),
    ".txt": _read_txt,
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
    ".npz": _read_npz,
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), read_libsvm),
    **dict.fromkeys((".feather", ".arrow"), read_arrow),
    ".xlsx": _read_excel,
    **dict.fromkeys((".h5ad", ".h5mu"), _read_annotated),
}
_TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".libsvm", ".svm", ".svmlight")  # which may be packed


def read_tables(path: Path, *, name: str | None = None, **options: Any) -> Iterator[Table]:
    """Yield the tables of a file, or of a folder of Parquet files; `options` are those of `Source`.

    A file has one table, or tables of `chunk` rows; those of libsvm, NPZ and annotated files are longer.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder '{path}'.")
    plain = Path(path.stem) if path.suffix.lower() in OPENERS else path
    suffix = plain.suffix.lower()
    if plain is not path and suffix in _READERS and suffix not in _TEXT:
        raise ValueError(f"'{path.name}' is packed. Unpack it first; text files alone are read packed.")
    reader = read_parquet if path.is_dir() else _READERS.get(suffix)
    if reader is None:
        raise ValueError(
            f"'{path.name}' is not a file of samples: its name must end in one of {', '.join(_READERS)}; text may be "
            "packed as .gz, .bz2 or .xz."
        )
    source = Source(path, f"'{path.name}'", plain.stem if name is None else name, **options)
    for table in reader(source):
        read_cells_as_missing(table, source.na_values)
        yield table
