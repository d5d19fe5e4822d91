"""What readers take and yield, and the rules that the readers of all formats share."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import size_text
from ..views._blocks import place_rows
from ..views._frames import Levels
from .quarantine import RowErrors

MOST_COLUMNS = 1 << 26  # of a libsvm file: a vector of so many numbers takes half a gigabyte


@dataclass
class Table:
    """Rows of one file: columns by name, and blocks that are views by themselves."""

    name: str  # of the view that holds all columns of numbers, unless their names tell views apart
    where: str  # the file, for messages
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    blocks: dict[str, Any] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # column names of blocks, where they have some
    encoded: dict[str, Levels] = field(default_factory=dict)  # categories whose one-hot columns blocks have
    present: dict[str, np.ndarray] = field(default_factory=dict)  # which rows of a block hold data, where not all do
    on_request: set[str] = field(default_factory=set)  # blocks that are views only where `views` names them
    texts: Collection[str] = ()  # columns known to have text, which may look like numbers
    categories: Collection[str] = ()  # columns that a model knows as categories, which may look like numbers
    levels: dict[str, Sequence[Any]] = field(default_factory=dict)  # categories that types of columns list, if they do
    alone: set[str] = field(default_factory=set)  # columns of dictionary strings in a stream: each is a view by itself
    streamed: bool = False  # whether the rows are a part of a stream, so that categories are not all known
    annotations: bool = False  # whether columns describe samples, and are views only on request
    used: bool = False  # whether the target, groups or others were taken from it
    numbered: bool = False  # whether columns are known by number, and zeros are not stored
    growing: bool = False  # whether later rows may bring further columns
    index: np.ndarray | None = None  # the first column, if it has no name: names of the rows, or row numbers
    samples: np.ndarray | None = None  # names of the samples that the file has without a column for them
    turned: bool = False  # whether the samples were the columns of the file
    read_as_missing: dict[str, int] | None = None  # cells by column that `na_values` made missing; None: not done yet
    rows: np.ndarray | None = None  # numbers of the rows in the file, from 0; None where they follow those before
    end: int | None = None  # rows of the file up to the end of this table, with those that were left out


@dataclass(frozen=True)
class Source:
    """What a reader reads, and how.

    Columns in `exact` have targets, or names of samples and groups, whose text stays as it is written: 1.10 is not 1.1.
    Those in `targets` become numbers where they are all numbers and their task is regression, or where no text is lost.
    Columns in `texts` have text even if all cells of a CSV file look like numbers.
    """

    data: Any  # a path, or an iterable of lines
    where: str  # the file, for messages
    name: str  # of the view that holds all columns of numbers, unless their names tell views apart
    chunk: int | None = None  # rows of a table; None for all rows in one table
    exact: Collection[str] = ()
    targets: Mapping[str, str | None] = field(default_factory=dict)  # those that may have numbers: their tasks
    texts: Collection[str] = ()
    encoding: str | None = None  # of text without a byte order mark; None for UTF-8
    na_values: Sequence[str] = ()  # cells that are missing besides the usual ones
    start: int = 0  # rows that may be left out once the first table has told what the columns are
    errors: RowErrors = field(default_factory=RowErrors)  # what to do with rows that cannot be read
    libsvm_base: int | None = None  # number of the first column of libsvm files; None to find it

    def __post_init__(self) -> None:
        unknown = set(self.targets.values()) - {None, "classification", "regression"}
        if unknown:
            raise ValueError(f"`task` must be 'classification' or 'regression'; got {unknown.pop()!r}.")


@contextmanager
def naming_file(where: str, kind: str, errors: Any = Exception) -> Iterator[None]:
    """Turn whatever a package raises on a damaged file into one sentence that names the file."""
    try:
        yield
    except (ImportError, MemoryError) as error:  # messages that say which package to install, or what to do
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise ValueError(
            f"{where} cannot be read as {kind}: it needs more memory than there is ({error}). It may be damaged."
        ) from error
    except errors as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise type(error)(f"{where} cannot be read: {error.strerror}.") from error
        said = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
        reason = "".join(c if c.isprintable() else " " for c in said[:300])  # no control codes for terminals
        reason = " ".join(reason.split()).rstrip(". ") or type(error).__name__
        if isinstance(error, UnicodeError):  # that of UTF-16 without a byte order mark has no attributes
            raise not_encoded(where, getattr(error, "encoding", reason.split()[0]), reason) from error
        if "invalid UTF8" in reason:
            encoding = "utf-8"
            raise not_encoded(where, encoding, reason) from error
        raise ValueError(f"{where} cannot be read as {kind}: {reason}. It may be empty, cut off or damaged.") from error


IN_PARTS = "If it is what you expect, read it in parts by `read_blocks` or `read_stream`."


def too_large(where: str, n_bytes: int, most: int, remedy: str = IN_PARTS) -> MemoryError:
    """Return the error for a file, or a part of it, whose `n_bytes` unpacked ones do not fit into memory."""
    return MemoryError(
        f"{where} unpacks to {size_text(n_bytes)} or more, and {size_text(most)} of memory are available. {remedy}"
    )


def not_encoded(where: str, encoding: str, reason: str) -> ValueError:
    """Return the error for bytes that are not text in an encoding."""
    return ValueError(
        f"{where} is not encoded in {encoding.upper()}: {reason}. Save it as UTF-8, or name its encoding by `encoding` "
        "(--encoding), such as cp1252 for western Windows programs."
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings of other packages from the user; put it around their calls only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def naming_file_of(items: Iterable[Any], where: str, kind: str, errors: Any = Exception) -> Iterator[Any]:
    """Yield the items of a file that is read step by step; errors name the file."""
    with naming_file(where, kind, errors):
        yield from items


def check_unique(names: Sequence[str], where: str) -> None:
    """Validate that no two columns have the same name; columns without a name do not count."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise ValueError(f"{where} has two columns named '{name}'. Rename or remove one of them.")
        seen.add(name)


def objects(items: Sequence[Any]) -> np.ndarray:
    """Return items as a 1-D array of objects, also where they are lists."""
    array = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):  # np.array would make a matrix of lists of equal length
        array[k] = item
    return array


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Return objects as numbers or booleans if all are; integers beside missing values stay objects with None."""
    if values.dtype != object:
        return values
    items = values.tolist()
    kinds = {type(item) for item in items if item is not None}
    complete = all(item is not None for item in items)
    try:
        if complete and kinds in ({int}, {bool}):
            return np.array(items, dtype=np.int64 if int in kinds else bool)
        if float in kinds and kinds <= {int, float}:
            return np.array([np.nan if item is None else item for item in items], dtype=np.float64)
    except OverflowError:  # an integer that neither type holds
        pass
    return values


def name_text(name: Any) -> str:
    """Return the name of a sample or a column as text: 1 and 1.0 are "1"."""
    whole = isinstance(name, (float, np.floating)) and np.isfinite(name) and name == np.floor(name)
    return str(int(name)) if whole else str(name)


# -- cells that are missing
def missing_among(na_values: Sequence[str]) -> set[Any]:
    """Return the cells to read as missing: the strings, and the numbers that some of them are, such as -999."""
    given: set[Any] = set(na_values)
    for value in na_values:
        with suppress(ValueError):
            given.add(float(value))
    return given


def is_among(value: Any, given: Collection[Any]) -> bool:
    """Tell whether a cell is one of those to read as missing; True is not 1."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and value in given


def read_cells_as_missing(table: Table, na_values: Sequence[str]) -> None:
    """Make the cells of a table missing that are among `na_values`, unless its reader did, and count them by column."""
    if table.read_as_missing is not None:
        return
    table.read_as_missing = {}
    given = missing_among(na_values)
    numeric = np.array([value for value in given if isinstance(value, float)])
    for name, values in table.columns.items() if given else ():
        if values.dtype == object:
            hit = np.array([is_among(value, given) for value in values], dtype=bool)
        else:
            hit = np.isin(values, numeric) & (values.dtype != bool)
        if hit.any():
            blank: Any = None if values.dtype == object else np.nan
            table.columns[name] = np.where(hit, blank, values)
            if name in table.levels:
                table.levels[name] = [level for level in table.levels[name] if not is_among(level, given)]
            table.read_as_missing[name] = int(hit.sum())


def placed(values: Any, rows: np.ndarray, n: int) -> tuple[Any, np.ndarray | None]:
    """Return values at their rows among n, and which rows hold data; None if all do."""
    if values is None or (len(rows) == n and (rows == np.arange(n)).all()):
        return values, None
    if values.shape[0] != len(rows):
        raise ValueError(f"A column has {values.shape[0]} values for {len(rows)} samples; all of a file have as many.")
    there = np.zeros(n, dtype=bool)
    there[rows] = True
    if sp.issparse(values) or (values.ndim == 2 and values.dtype.kind == "f"):
        return place_rows(values.tocsr() if sp.issparse(values) else values, rows, n), there
    blank = None if values.dtype == object or values.dtype.kind in "US" else np.nan
    out = np.full((n, *values.shape[1:]), blank, dtype=object if blank is None else np.float64)
    out[rows] = values
    return out, there
