"""One file of samples as a table: Parquet, CSV, NPZ, libsvm, AnnData, MuData."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..views._reading import checked_sparse, is_missing
from .streams import check_unique, is_row_number, load_libsvm, naming_file

_LONGEST_ROW = 1 << 26  # bytes of a CSV file


@dataclass
class Table:
    """One file: columns by name, and blocks that are views by themselves."""

    name: str  # of the view that a file is
    file: str
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    blocks: dict[str, Any] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of the columns of blocks, where they have some
    notes: bool = False  # whether columns are notes on the samples, not views unless asked for
    numbered: bool = False  # whether columns are known by number, and zeros are not stored


def read_table(path: Path, texts: Sequence[str] = ()) -> Table:
    """Read one file; `texts` are columns that hold text even where a CSV file has digits in them."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'.")
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq", ".csv", ".tsv"):
        table = _read_arrow(path, texts)
    elif kind == ".npz":
        table = _read_npz(path)
    elif kind in (".libsvm", ".svm", ".svmlight"):
        table = _read_libsvm(path)
    elif kind in (".h5ad", ".h5mu"):
        table = _read_annotated(path)
    else:
        raise ValueError(
            f"'{path.name}' is not a file of samples: its name ends in none of .parquet, .pq, .csv, .tsv, .npz, "
            ".libsvm, .svm, .svmlight, .h5ad, .h5mu."
        )
    if not any(len(values) for values in table.columns.values()) and not any(
        block is None or block.shape[0] for block in table.blocks.values()
    ):
        raise ValueError(
            f"'{path.name}' has no samples. Give a file with at least one row besides the names of columns."
        )
    return table


def _read_arrow(path: Path, texts: Sequence[str]) -> Table:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("Parquet and CSV files need pyarrow: pip install 'consilience[frames]'.") from error
    as_text = path.suffix.lower() in (".csv", ".tsv")
    kind = "CSV" if as_text else "Parquet"
    with naming_file(f"'{path.name}'", kind):
        found = _load_csv(path, texts) if as_text else _load_parquet(path)
        names, columns = found.column_names, found.columns  # by position: each look-up of a name goes through them all
    check_unique(names, f"'{path.name}'")
    if as_text and "" in names:
        warnings.warn(
            f"'{path.name}' has a column without a name, such as pandas writes for row numbers. It is passed over; "
            "give it a name to use it.",
            stacklevel=3,
        )
    table = Table(path.stem, path.name)
    for name, column in zip(names, columns, strict=True):
        if is_row_number(name):
            continue
        if as_text and pa.types.is_binary(column.type):
            raise ValueError(
                f"'{path.name}' is not encoded in UTF-8: column '{name}' has other bytes. Save it as UTF-8."
            )
        where = f"Column '{name}' of '{path.name}'"
        if _is_list(column.type):
            table.blocks[name] = _rows(column.to_pylist(), where)
        else:
            with naming_file(where, kind):
                table.columns[name] = _values(column)
    return table


def _load_csv(path: Path, texts: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    block = min(max(path.stat().st_size, 1 << 20), _LONGEST_ROW)  # rows longer than a block are refused
    types = {name: pa.string() for name in texts}
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=block),
        parse_options=csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ","),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, column_types=types),
    )


def _load_parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    if path.is_dir():
        return pq.read_table(path)
    with pq.ParquetFile(path) as file:  # read_table stumbles on two columns of a name
        return file.read()


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    nested = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return nested and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _values(column: Any) -> np.ndarray:
    """One column of Arrow: numbers with NaN where missing, or objects with None."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind) and column.null_count == 0:
        return column.to_numpy().astype(bool)
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64()).to_numpy()
    if pa.types.is_integer(kind) and column.null_count == 0:
        return column.to_numpy()
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy()
    return _objects(column.to_pylist())


def _objects(items: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):  # one by one, since lists are items here
        found[k] = item
    return found


def _rows(lists: list[Any], where: str) -> np.ndarray | None:
    """Lists as the rows of a matrix, NaN where there is none; None where there is none at all."""
    lengths = {len(row) for row in lists if row is not None}
    if len(lengths) > 1:
        raise ValueError(f"{where} has lists of {min(lengths)} and of {max(lengths)} numbers. Make them equally long.")
    if not lengths:
        return None
    blank = [np.nan] * lengths.pop()
    return np.array([blank if row is None else row for row in lists], dtype=np.float64)


def _read_npz(path: Path) -> Table:
    table = Table(path.stem, path.name)
    try:
        with naming_file(f"'{path.name}'", "NPZ"), np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"'{path.name}' cannot be read as NPZ: it holds Python objects, which could run code, or is not an NPZ "
            "file at all. Save arrays of numbers or strings by numpy.savez."
        ) from error
    for name, values in found.items():
        if values.ndim == 1:
            table.columns[name] = values if values.dtype.kind in "biuf" else _objects(values.tolist())
        elif values.ndim:
            table.blocks[name] = values
    return table


def _read_libsvm(path: Path) -> Table:
    X, y = load_libsvm(path)
    return Table(path.stem, path.name, {"y": y}, {path.stem: X}, numbered=True)


def _read_annotated(path: Path) -> Table:
    kind = "mudata" if path.suffix.lower() == ".h5mu" else "anndata"
    try:
        module = __import__(kind)
    except ImportError as error:
        raise ImportError(f"'{path.name}' needs the package {kind}: pip install 'consilience[omics]'.") from error
    with naming_file(f"'{path.name}'", "MuData" if kind == "mudata" else "AnnData"):
        data = module.read_h5mu(path) if kind == "mudata" else module.read_h5ad(path)
        columns = {str(name): _of_pandas(data.obs[name]) for name in data.obs.columns}
    table = Table(path.stem, path.name, {**columns, "obs_names": _objects(list(data.obs_names))}, notes=True)
    for name, part in data.mod.items() if kind == "mudata" else [(path.stem, data)]:
        if part.X is None:
            raise ValueError(f"'{path.name}' has no matrix X of '{name}'. Write one, or remove '{name}'.")
        values = checked_sparse(part.X, f"The matrix of '{name}' in '{path.name}'") if sp.issparse(part.X) else part.X
        if kind == "mudata":
            values = placed(
                values, _rows_among(part.obs_names, data.obs_names, f"'{name}' in '{path.name}'"), data.n_obs
            )
        table.blocks[name] = values
        table.names[name] = _distinct(map(str, part.var_names))
    return table


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Names as AnnData makes them unique: the second ``g`` is ``g-1``."""
    found: dict[str, None] = {}
    counts: dict[str, int] = {}
    for name in names:
        own = name
        while own in found:
            counts[name] = counts.get(name, 0) + 1
            own = f"{name}-{counts[name]}"
        found[own] = None
    return tuple(found)


def _of_pandas(series: Any) -> np.ndarray:
    """One column of pandas: numbers with NaN where missing, or objects with None."""
    if series.dtype.kind in "biuf":
        values = series.to_numpy()
        return series.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype == object else values
    return _objects([None if is_missing(value) else value for value in series.to_numpy(dtype=object)])


def _rows_among(own: Any, every: Any, what: str) -> np.ndarray:
    """The positions of the samples of a modality among those of all."""
    if not (own.is_unique and every.is_unique):
        raise ValueError(f"Samples of {what} have one name twice, so they cannot be matched. Make `obs_names` unique.")
    rows = np.asarray(every.get_indexer(own))
    if (rows < 0).any():
        raise ValueError(
            f"{what} has the sample '{own[int(np.argmin(rows))]}', which the file as a whole does not have."
        )
    return rows


def placed(values: Any, rows: np.ndarray, n: int) -> Any:
    """Values at their rows among n, missing elsewhere."""
    if values is None or (len(rows) == n and (rows == np.arange(n)).all()):
        return values
    if sp.issparse(values):
        values = values.toarray()
    if values.shape[0] != len(rows):
        raise ValueError(f"A column has {values.shape[0]} values for {len(rows)} samples; all of a file have as many.")
    if values.dtype == object or values.dtype.kind in "US":
        out = np.full((n, *values.shape[1:]), None, dtype=object)
    else:
        out = np.full((n, *values.shape[1:]), np.nan)
    out[rows] = values
    return out
