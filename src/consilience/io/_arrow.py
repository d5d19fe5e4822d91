"""Parquet and Arrow files as tables, read by pyarrow: at once, or a part of the rows at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .tables import Source, Table, check_unique, naming_file, naming_file_of, objects, rows_of_lists


def arrow() -> Any:
    """Return pyarrow with its readers; say how to install it where it is not."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("CSV, Parquet and Arrow files need pyarrow: pip install 'consilience[frames]'.") from error
    return pyarrow


# -- files
def read_parquet(source: Source) -> Iterator[Table]:
    """Yield the tables of a Parquet file, or of a folder of such files."""
    arrow()
    for where, data in _load_parquet(source.data, source.chunk):
        yield _table_of(data, source, where, "Parquet")


def read_arrow(source: Source) -> Iterator[Table]:
    """Yield the tables of an Arrow or Feather file."""
    pa, where = arrow(), source.where
    with pa.OSFile(str(source.data)) as file:
        with naming_file(where, "Arrow"):
            try:
                opened = pa.ipc.open_file(file)
                batches: Any = (opened.get_batch(k) for k in range(opened.num_record_batches))
            except pa.ArrowInvalid:  # the other form of Arrow files, whose parts follow each other as in a stream
                file.seek(0)
                batches = opened = pa.ipc.open_stream(file)
            check_unique(opened.schema.names, where)
        if source.chunk is None:
            with naming_file(where, "Arrow"):
                whole = opened.read_all()
            yield _table_of(whole, source, where, "Arrow")
            return
        for batch in naming_file_of(batches, where, "Arrow"):
            yield _table_of(pa.Table.from_batches([batch]), source, where, "Arrow")


def _load_parquet(path: Path, chunk: int | None) -> Iterator[tuple[str, Any]]:
    pa = arrow()
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"The folder '{path}' has no .parquet file.")
    whole = []
    for one in files:
        where = f"'{one.name}'"
        with naming_file(where, "Parquet"):
            file = pa.parquet.ParquetFile(one)
        with file:
            check_unique(file.schema_arrow.names, where)
            if chunk is None:
                with naming_file(where, "Parquet"):
                    whole.append(file.read())
                continue
            for batch in naming_file_of(file.iter_batches(batch_size=chunk), where, "Parquet"):
                yield where, pa.Table.from_batches([batch])
    if whole:
        with naming_file(f"'{path.name}'", "Parquet"):
            data = whole.pop() if len(whole) == 1 else pa.concat_tables(whole, promote_options="permissive")
        yield f"'{path.name}'", data


def _table_of(data: Any, source: Source, where: str, kind: str) -> Table:
    """Return a table of pyarrow; an index that had a name in pandas comes first, as in CSV files."""
    exact = {*source.exact, *source.texts}
    table = Table(source.name, where)
    named = (data.schema.pandas_metadata or {}).get("index_columns", ())
    first = [name for name in data.column_names if name in named]
    columns = dict(zip(data.column_names, data.columns, strict=True))
    about = (data.schema.pandas_metadata or {}).get("columns", ())
    by_pandas = {own.get("field_name") for own in about if own.get("pandas_type") == "categorical"}
    for column in dict.fromkeys([*first, *columns]):
        values, own = columns.pop(column), f"Column '{column}' of {where}"
        if is_list_of_numbers(values.type):
            table.blocks[column] = rows_of_lists(values.to_pylist(), own)
        elif not column or column.startswith("__index_level_"):  # names of the rows, or row numbers, which pandas keeps
            index = values_of(values, own, kind, True)
            table.index = index if index.dtype == object and table.index is None else table.index
        else:
            table.columns[column] = values_of(values, own, kind, column in source.exact)
            levels = _levels_of(values, column in by_pandas) if column not in exact else None
            table.levels.update({} if levels is None else {column: levels})
    return table


def _levels_of(values: Any, by_pandas: bool) -> list[Any] | None:
    """Return the categories of a column whose type says that it has some; None for others.

    Those are columns of categories in pandas, and dictionaries with an order. Other dictionaries may have text, which
    takes less space so. Parquet files have categories of pandas that are numbers in a column of numbers.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        return [] if by_pandas else None
    if not (by_pandas or values.type.ordered):
        return None
    return values.unify_dictionaries().chunk(0).dictionary.to_pylist() if values.num_chunks else []


# -- columns
def is_list_of_numbers(kind: Any) -> bool:
    """Tell whether the cells of a column are lists of numbers."""
    import pyarrow as pa

    nested = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return nested and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def values_of(column: Any, where: str, kind: str, exact: bool) -> np.ndarray:
    """Return one column: numbers with NaN where missing, or objects with None.

    Classes and sample names (`exact`) stay integers or booleans next to missing ones: as objects with None.
    """
    import pyarrow as pa

    arrow_type, complete = column.type, column.null_count == 0
    integer, truth = pa.types.is_integer(arrow_type), pa.types.is_boolean(arrow_type)
    with naming_file(where, kind):
        if pa.types.is_null(arrow_type) and not exact:
            return np.full(len(column), np.nan)
        if (integer or truth) and complete:
            return column.to_numpy().astype(bool) if truth else column.to_numpy()
        if truth and not exact:
            return column.cast(pa.int8()).cast(pa.float64()).to_numpy()
        if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type) or (integer and not exact):
            return (column if arrow_type == pa.float64() else column.cast(pa.float64())).to_numpy()
        return objects(column.to_pylist())
