"""One reader per file format; each yields tables of rows, so that files and streams follow the same rules."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ..views._reading import checked_sparse, is_missing
from ._arrow import read_csv, read_parquet
from .tables import Source, Table, naming_file, naming_file_of, objects, placed, rows_of_lists

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
        with source.data.open(encoding="utf-8-sig") as lines:
            yield from read_json_lines(replace(source, data=lines))
            return
    where, exact = source.where, source.exact
    kinds: dict[str, str] = {}
    records: list[dict[str, Any]] = []
    required: list[str] | None = None
    for number, line in enumerate(naming_file_of(source.data, where, "JSON lines", UnicodeDecodeError), start=1):
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
    table = Table(source.name, source.where, growing=True)
    for name in dict.fromkeys([*kinds, *(key for record in records for key in record)]):
        values, own = [record.get(name) for record in records], f"Column '{name}' of {table.where}"
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
        with source.data.open("rb") as file:
            while lines := file.readlines(_PIECE if source.chunk else -1):
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
        module = __import__(kind)
    except ImportError as error:
        raise ImportError(f"{where} needs the package {kind}: pip install 'consilience[omics]'.") from error
    with naming_file(where, "MuData" if kind == "mudata" else "AnnData"):
        data = module.read_h5mu(path) if kind == "mudata" else module.read_h5ad(path)
        columns = {str(column): _values_of_series(data.obs[column]) for column in data.obs.columns}
    table = Table(name, where, {**columns, "obs_names": objects(list(data.obs_names))}, annotations=True)
    for key, part in data.mod.items() if kind == "mudata" else [(name, data)]:
        if part.X is None:
            raise ValueError(f"{where} has no matrix X of '{key}'. Write one, or remove '{key}'.")
        values = checked_sparse(part.X, f"The matrix of '{key}' in {where}") if sp.issparse(part.X) else part.X
        if kind == "mudata":
            rows = _rows_among(part.obs_names, data.obs_names, f"'{key}' in {where}")
            values = placed(values, rows, data.n_obs)
        table.blocks[key] = values
        part.var_names_make_unique()  # the second g is g-1
        table.names[key] = tuple(map(str, part.var_names))
    yield table


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
    ".tsv": partial(read_csv, delimiter="\t"),
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
    ".npz": _read_npz,
    **dict.fromkeys((".libsvm", ".svm", ".svmlight", ".txt"), _read_libsvm),
    **dict.fromkeys((".h5ad", ".h5mu"), _read_annotated),
}


def read_tables(path: Path, *, name: str | None = None, **options: Any) -> Iterator[Table]:
    """Yield the tables of a file, or of a folder of Parquet files; `options` are those of `Source`.

    A file has one table, or tables of `chunk` rows; those of libsvm, NPZ and annotated files are longer.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder '{path}'.")
    reader = read_parquet if path.is_dir() else _READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"'{path.name}' is not a file of samples: its name must end in one of {', '.join(_READERS)}.")
    yield from reader(Source(path, f"'{path.name}'", path.stem if name is None else name, **options))
