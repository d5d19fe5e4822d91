"""Samples from files: Parquet, CSV, NPZ, libsvm, MuData, AnnData; views by prefix, pattern, TOML, or a file each."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ._tables import by_prefix, matching
from .views import Views

__all__ = ["Samples", "read_layout", "read_samples"]


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
    """

    X: Views
    y: np.ndarray | None = None
    ids: np.ndarray | None = None


@dataclass
class _Table:
    """One file: columns by name, and blocks that are views by themselves."""

    name: str
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    blocks: dict[str, Any] = field(default_factory=dict)
    notes: bool = False  # whether columns are notes on the samples, no views unless asked for


def read_samples(
    paths: Sequence[Any],
    *,
    views: Any = None,
    target: str | None = None,
    ids: str | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> Samples:
    """Read samples from one file, or from one file per view.

    Parameters
    ----------
    paths : sequence of path
        One file (.parquet, .csv, .npz, .libsvm, .svm, .h5ad, .h5mu), or several whose rows are matched by the column
        `ids`: each is a view named after its file, and rows that a file does not have are a missing view.
    views : dict, "prefix", path of a .toml file, or None
        Columns of each view, as names or patterns (``{"audio": ["mfcc_*"]}``); a TOML file has them in ``[views]``. By
        default ``audio__mfcc1`` belongs to ``audio`` where all columns are named so, and else a file is a view.
    target : str, optional
        The column of the class or target.
    ids : str, optional
        The column that names the samples.
    known : dict, optional
        View -> columns that a fitted model knows: where `views` is None they say what belongs where, and other columns
        are passed over.

    Returns
    -------
    Samples
        Views, target and names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience.files import read_samples
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
    tables = [_read(path) for path in given]
    if target is None and len(tables) == 1 and given[0].suffix.lower() in (".libsvm", ".svm", ".svmlight"):
        target = "y"  # the first number of each row
    names: np.ndarray | None
    if len(tables) > 1:
        tables, names = _matched(tables, ids, [path.name for path in given])
    else:
        if ids is not None and ids not in tables[0].columns:
            raise ValueError(f"'{given[0].name}' has no column '{ids}'; its columns are {_listed(tables[0])}.")
        names = None if ids is None else tables[0].columns.pop(ids)
    y = _target(tables, target)
    found: dict[str, Any] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for table in tables:
        parts = _as_known(table, known, alone=len(tables) == 1) if spec is None and known else {}
        for name, (block, own) in (parts or _divided(table, spec, alone=len(tables) == 1)).items():
            if name in found:
                raise ValueError(f"Two files have a view named '{name}'. Name views by `views`, or rename a file.")
            found[name] = block
            if own:
                columns[name] = tuple(own)
    if isinstance(spec, Mapping):
        lost = [name for name in spec if name not in found]
        if lost:
            raise ValueError(f"No column is of the view '{lost[0]}': {', '.join(spec[lost[0]])}.")
    if not found:
        raise ValueError("No view is left: the files have no columns besides target and names.")
    X = Views(found)
    return Samples(Views._of({name: X.block(name) for name in X.names}, len(X), X.mask, columns), y, names)


# -- reading one file
def _read(path: Path) -> _Table:
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'.")
    readers = {
        ".parquet": _read_arrow, ".pq": _read_arrow, ".csv": _read_arrow, ".tsv": _read_arrow, ".npz": _read_npz,
        ".libsvm": _read_libsvm, ".svm": _read_libsvm, ".svmlight": _read_libsvm, ".h5ad": _read_annotated,
        ".h5mu": _read_annotated,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"'{path.name}' is none of {', '.join(readers)}.")
    return reader(path)


def _read_arrow(path: Path) -> _Table:
    try:
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet and CSV files need pyarrow: pip install 'consilience[frames]'.") from error
    try:
        if path.suffix.lower() in (".csv", ".tsv"):
            options = csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            found = csv.read_csv(
                path, parse_options=options, convert_options=csv.ConvertOptions(strings_can_be_null=True)
            )
        else:
            found = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"'{path.name}' cannot be read: {error}.") from error
    table = _Table(path.stem)
    for name in found.column_names:
        if name.startswith("__index_level_"):  # row numbers that pandas left behind
            continue
        column = found.column(name)
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            table.blocks[name] = _rows(column.to_pylist())
        elif pa.types.is_boolean(column.type) and column.null_count == 0:
            table.columns[name] = np.array(column.to_pylist(), dtype=bool)
        elif pa.types.is_boolean(column.type):
            table.columns[name] = column.cast(pa.int8()).cast(pa.float64()).to_numpy()
        elif pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
            whole = pa.types.is_integer(column.type) and column.null_count == 0
            table.columns[name] = column.to_numpy() if whole else column.cast(pa.float64()).to_numpy()
        else:
            table.columns[name] = np.array(column.to_pylist(), dtype=object)
    return table


def _rows(lists: list[Any]) -> np.ndarray:
    width = max((len(row) for row in lists if row is not None), default=1)
    return np.array([np.full(width, np.nan) if row is None else row for row in lists], dtype=np.float64)


def _read_npz(path: Path) -> _Table:
    table = _Table(path.stem)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                (table.columns if arrays[name].ndim == 1 else table.blocks)[name] = arrays[name]
    except (ValueError, OSError) as error:
        raise ValueError(f"'{path.name}' cannot be read as NPZ without running code in it: {error}.") from error
    return table


def _read_libsvm(path: Path) -> _Table:
    X, y = load_svmlight_file(str(path))
    return _Table(path.stem, {"y": y}, {path.stem: X})


def _read_annotated(path: Path) -> _Table:
    kind = "mudata" if path.suffix.lower() == ".h5mu" else "anndata"
    try:
        module = __import__(kind)
    except ImportError as error:
        raise ImportError(f"'{path.name}' needs the package {kind}: pip install 'consilience[omics]'.") from error
    data = module.read_h5mu(path) if kind == "mudata" else module.read_h5ad(path)
    table = _Table(path.stem, {str(name): data.obs[name].to_numpy() for name in data.obs.columns})
    table.notes = True
    table.columns["obs_names"] = np.asarray(data.obs_names, dtype=object)
    parts = data.mod if kind == "mudata" else {path.stem: data}
    for name, part in parts.items():
        rows = data.obs_names.get_indexer(part.obs_names)
        table.blocks[name] = _placed(part.X, rows, data.n_obs)
    return table


# -- what belongs where
def read_layout(views: Any, target: str | None = None, ids: str | None = None) -> tuple[Any, str | None, str | None]:
    """Read which columns make which view, and which are the target and the names of the samples.

    Parameters
    ----------
    views : dict, "prefix", path of a .toml file, or None
        As `read_samples` takes it; a TOML file may name ``target`` and ``id`` too.
    target, ids : str, optional
        What was given otherwise, which counts more.

    Returns
    -------
    views : dict, "prefix" or None
        Columns or patterns by view.
    target, ids : str or None
        The columns of the target and of the names.

    Examples
    --------
    >>> from consilience.files import read_layout
    >>> read_layout({"audio": "mfcc_*"}, target="word")
    ({'audio': ['mfcc_*']}, 'word', None)
    """
    if isinstance(views, (str, Path)) and str(views).endswith(".toml"):
        try:
            with open(views, "rb") as file:
                content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"'{views}' is no TOML: {error}.") from error
        if not isinstance(content.get("views"), dict):
            raise ValueError(f"'{views}' has no table [views] with columns or patterns by view.")
        views, target, ids = content["views"], target or content.get("target"), ids or content.get("id")
    if isinstance(views, Mapping):
        return {str(n): [p] if isinstance(p, str) else [str(x) for x in p] for n, p in views.items()}, target, ids
    if views not in (None, "prefix"):
        raise ValueError(f"`views` is a dict of view -> columns, 'prefix', a .toml file or None; got {views!r}.")
    return views, target, ids


def _target(tables: Sequence[_Table], target: str | None) -> np.ndarray | None:
    if target is None:
        return None
    having = [table for table in tables if target in table.columns]
    if not having:
        raise ValueError(f"No file has a column '{target}'; there are {', '.join(_listed(t) for t in tables)}.")
    if len(having) > 1:
        raise ValueError(f"Several files have the column '{target}': {', '.join(t.name for t in having)}. Keep one.")
    return having[0].columns.pop(target)


def _listed(table: _Table) -> str:
    names = [*table.columns, *table.blocks]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _divided(table: _Table, spec: Any, *, alone: bool) -> dict[str, tuple[Any, list[str]]]:
    """The views of one file, and the names of their columns where they have some."""
    if isinstance(spec, Mapping):
        chosen = {view: matching(list(table.columns), patterns) for view, patterns in spec.items()}
        for name in dict.fromkeys(name for own in chosen.values() for name in own):
            _check_values(table, name)
        blocks = {view: matching(list(table.blocks), patterns) for view, patterns in spec.items()}
        found = {view: _matrix(table, names) for view, names in chosen.items() if names}
        return {**found, **{view: (table.blocks[names[0]], []) for view, names in blocks.items() if names}}
    found = {name: (block, []) for name, block in table.blocks.items()}
    names = [] if table.notes else list(table.columns)
    for name in names:
        _check_values(table, name)
    if spec == "prefix" or (spec is None and names and all("__" in name for name in names)):
        return {**found, **{view: _matrix(table, own) for view, own in by_prefix(names).items()}}
    numeric = [name for name in names if table.columns[name].dtype != object]
    if numeric:
        found[table.name] = _matrix(table, numeric)
    if alone or not numeric:
        found.update({name: (table.columns[name], []) for name in names if name not in numeric})
    return found


def _as_known(table: _Table, known: Mapping[str, Sequence[str]], *, alone: bool) -> dict[str, tuple[Any, list[str]]]:
    """The views of a model whose columns a file has: the one named like the file, else all."""
    for view, columns in known.items() if alone else ():
        lost = [name for name in columns if name not in table.columns]
        if 0 < len(lost) < len(columns):
            raise ValueError(f"View '{view}' has no column '{lost[0]}', which the model was fitted on.")
    having = [view for view, columns in known.items() if columns and set(columns) <= set(table.columns)]
    chosen = [table.name] if table.name in having else having
    return {view: _matrix(table, list(known[view])) for view in chosen}


def _check_values(table: _Table, name: str) -> None:
    values = table.columns[name]
    first = next((v for v in values.tolist() if v is not None), "") if values.dtype == object else ""
    if not isinstance(first, (str, bytes, list, tuple)):
        raise ValueError(
            f"Column '{name}' of '{table.name}' holds {type(first).__name__} values, which are no view. Make numbers "
            "or strings of them, or say by --views (`views`) which columns to take."
        )


def _matrix(table: _Table, names: list[str]) -> tuple[np.ndarray, list[str]]:
    text = [name for name in names if table.columns[name].dtype == object]
    if text and len(names) == 1:
        return table.columns[text[0]], []
    if text:
        raise ValueError(f"Column '{text[0]}' of '{table.name}' holds no numbers. Give it a view of its own, or none.")
    return np.column_stack([np.asarray(table.columns[name], dtype=np.float64) for name in names]), names


# -- files of one view each
def _matched(tables: Sequence[_Table], ids: str | None, files: Sequence[str]) -> tuple[list[_Table], np.ndarray]:
    """Rows of all files in one order; what a file does not have is absent."""
    if ids is None:
        raise ValueError("Several files are matched by a column that names the samples: give its name by `ids` (--id).")
    keys = []
    for table in tables:
        if ids not in table.columns:
            raise ValueError(f"'{table.name}' has no column '{ids}'; its columns are {_listed(table)}.")
        own = table.columns.pop(ids)
        if len(set(own.tolist())) < len(own):
            raise ValueError(f"'{table.name}' has a sample twice in its column '{ids}'.")
        keys.append(own)
    for k, own in enumerate(keys):
        others = [key for other in keys[:k] + keys[k + 1 :] for key in other.tolist()]
        if len(own) and others and not set(own.tolist()) & set(others):
            raise ValueError(
                f"No sample of '{files[k]}' is in another file: its column '{ids}' has {own.tolist()[0]!r}, the others "
                f"{others[0]!r}, for example. Write the names in one way, numbers or strings, in all files."
            )
    order = list(dict.fromkeys(key for own in keys for key in own.tolist()))
    place = {key: k for k, key in enumerate(order)}
    matched = []
    for table, own in zip(tables, keys, strict=True):
        rows = np.array([place[key] for key in own.tolist()])
        columns = {name: _placed(values, rows, len(order)) for name, values in table.columns.items()}
        blocks = {name: _placed(block, rows, len(order)) for name, block in table.blocks.items()}
        matched.append(_Table(table.name, columns, blocks, table.notes))
    return matched, np.array(order)


def _placed(values: Any, rows: np.ndarray, n: int) -> Any:
    """Values at their rows among n, missing elsewhere."""
    if len(rows) == n and (rows == np.arange(n)).all():
        return values
    if sp.issparse(values):
        dense = values.toarray()
        return _placed(dense, rows, n)
    if values.dtype == object or values.dtype.kind in "US":
        out = np.full((n, *values.shape[1:]), None, dtype=object)
    else:
        out = np.full((n, *values.shape[1:]), np.nan)
    out[rows] = values
    return out
