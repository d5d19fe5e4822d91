"""One reader per file format; each yields tables of rows, so that files and streams follow the same rules."""

import csv
import io
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ..views._annotated import matrices
from ..views._reading import is_missing
from ._arrow import read_arrow, read_parquet
from ._delimited import read_csv
from ._text import OPENERS, Form, is_libsvm, open_bytes, open_lines
from .tables import (
    Source,
    Table,
    is_among,
    missing_among,
    naming_file,
    naming_file_of,
    objects,
    placed,
    quiet,
    read_cells_as_missing,
    rows_of_lists,
)

_PIECE = 1 << 22  # bytes of a libsvm file that are read at a time
_MOST_INDEX = int(np.iinfo(np.int32).max)
_MOST_COLUMNS = 1 << 26  # of a libsvm file: a vector of so many numbers takes half a gigabyte
_MIXED = "numbers and other values"


# -- JSON lines
def read_json_lines(source: Source) -> Iterator[Table]:
    """Yield the tables of JSON objects, one per line.

    A column has numbers, lists of numbers, or objects such as strings; the first rows with a value decide. A key of
    `exact` that the first object has is required of all.
    """
    if isinstance(source.data, Path):
        with open_lines(source) as lines:
            yield from read_json_lines(replace(source, data=lines))
            return
    where, exact = source.where, source.exact
    damage = (UnicodeDecodeError, EOFError, OSError)
    kinds: dict[str, str] = {}
    records: list[dict[str, Any]] = []
    required: list[str] | None = None
    for number, line in enumerate(naming_file_of(source.data, where, "JSON lines", damage), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"Line {number} of {where} is not JSON: {error}.") from error
        if not isinstance(record, dict):
            raise ValueError(f"Line {number} of {where} is not a JSON object with the values of columns by name.")
        required = [key for key in exact if key in record] if required is None else required
        lost = next((key for key in required if key not in record), None)
        if lost is not None:
            raise ValueError(f"Line {number} of {where} has no key '{lost}'. Write null where the value is missing.")
        records.append(record)
        if len(records) == source.chunk:
            yield _table_of_records(records, kinds, source)
            records = []
    if records:
        yield _table_of_records(records, kinds, source)


def _table_of_records(records: list[dict[str, Any]], kinds: dict[str, str], source: Source) -> Table:
    """Return records as columns; a column that had values before is there even if these records do not have it."""
    counts: dict[str, int] = {}
    table = Table(source.name, source.where, growing=True, read_as_missing=counts)
    missing = missing_among(source.na_values)
    for name in dict.fromkeys([*kinds, *(key for record in records for key in record)]):
        values, own = [record.get(name) for record in records], f"Column '{name}' of {table.where}"
        hits = [is_among(value, missing) for value in values] if missing else []
        if any(hits):
            counts[name] = sum(hits)
            values = [None if hit else value for value, hit in zip(values, hits, strict=True)]
        if name in source.exact:
            table.columns[name] = objects(values)
            continue
        now = _kind_of_values(values)
        kind = kinds.setdefault(name, now) if now else kinds.get(name)
        if kind == "objects" and now not in ("numbers", _MIXED):  # some lists of strings may have numbers alone
            table.columns[name] = objects(values)
        elif now not in (None, kind) or now == _MIXED:
            raise ValueError(f"{own} has {kind}{f' and then {now}' if now != kind else ''}. Write values of one kind.")
        elif kind == "lists of numbers":
            table.blocks[name] = rows_of_lists(values, own)
        elif kind == "numbers":
            with naming_file(own, "numbers"):
                table.columns[name] = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return table


def _kind_of_values(values: Iterable[Any]) -> str | None:
    there = [value for value in values if value is not None]
    if not there:
        return None
    numbers = [isinstance(value, (int, float)) for value in there]
    if any(numbers):
        return "numbers" if all(numbers) else _MIXED
    lists = all(isinstance(v, list) and all(x is None or isinstance(x, (int, float)) for x in v) for v in there)
    return "lists of numbers" if lists and any(there) else "objects"


# -- libsvm
def _read_libsvm(source: Source) -> Iterator[Table]:
    """Yield the tables of a libsvm file by pieces of its bytes, or one; all rows are as wide as the widest."""

    def pieces() -> Iterator[tuple[Any, np.ndarray]]:
        with open_bytes(source.data) as file:
            while True:
                with naming_file(source.where, "libsvm"):
                    lines = file.readlines(_PIECE if source.chunk else -1)
                if not lines:
                    return
                yield _load_libsvm(b"".join(lines), source.where)

    kept = list(pieces()) if source.chunk is None else None  # a stream is read twice instead, first for its width
    width = max((_width(X) for X, _ in (kept or pieces())), default=1)
    for X, y in kept or pieces():
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
        yield Table(source.name, source.where, {"y": y}, {source.name: X}, numbered=True)


def _load_libsvm(lines: bytes, where: str) -> tuple[Any, np.ndarray]:
    """Read lines of a libsvm file. Columns are counted from 1, so that no two files differ by a shift."""
    try:
        with naming_file(where, "libsvm"):
            X, y = load_svmlight_file(io.BytesIO(lines), n_features=_MOST_INDEX, zero_based=False)
    except ValueError as error:
        if "Invalid index 0 " in str(error.__cause__):
            raise ValueError(
                f"{where} has a column with the number 0; libsvm files number columns from 1 on. Add 1 to all column "
                "numbers; in scikit-learn: dump_svmlight_file(..., zero_based=False)."
            ) from error
        raise
    if _width(X) > _MOST_COLUMNS:
        raise ValueError(
            f"{where} has a column with the number {_width(X)}; numbers up to {_MOST_COLUMNS} are read. Number the "
            "columns from 1 on, without gaps."
        )
    return X, y


def _width(X: Any) -> int:
    return int(X.indices.max(initial=0)) + 1


def _read_txt(source: Source) -> Iterator[Table]:
    """Yield the tables of a .txt file, which is a table with the names of columns in the first line, or libsvm."""
    return _read_libsvm(source) if is_libsvm(source) else read_csv(source, preferred="")


# -- Excel
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
    rows = sheet.iter_rows(values_only=True)
    for number in count(1):
        with naming_file(where, "an Excel workbook"), quiet():
            row = next(rows, None)
        if row is None:
            return
        cells = [cell.isoformat() if hasattr(cell, "isoformat") else cell for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if not cells:
            continue
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


# -- NPZ
def _read_npz(source: Source) -> Iterator[Table]:
    """Yield the table of an NPZ file: matrices are blocks, vectors are columns, other arrays are ignored."""
    where = source.where
    table = Table(source.name, where)
    try:
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
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), _read_libsvm),
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
