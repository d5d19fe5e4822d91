"""What readers take and yield, and the rules that the readers of all formats share."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass
class Table:
    """Rows of one file: columns by name, and blocks that are views by themselves."""

    name: str  # of the view that holds all columns of numbers, unless their names tell views apart
    where: str  # the file, for messages
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    blocks: dict[str, Any] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # column names of blocks, where they have some
    annotations: bool = False  # whether columns describe samples, and are views only on request
    numbered: bool = False  # whether columns are known by number, and zeros are not stored
    growing: bool = False  # whether later rows may bring further columns


@dataclass(frozen=True)
class Source:
    """What a reader reads, and how.

    Columns in `exact` name classes, samples or groups, whose values stay as they are written: 01 is not 1. Columns in
    `texts` have text even if all cells of a CSV file look like numbers.
    """

    data: Any  # a path, or an iterable of lines
    where: str  # the file, for messages
    name: str  # of the view that holds all columns of numbers, unless their names tell views apart
    chunk: int | None = None  # rows of a table; None for all rows in one table
    exact: Collection[str] = ()
    texts: Collection[str] = ()


@contextmanager
def naming_file(where: str, kind: str, errors: Any = Exception) -> Iterator[None]:
    """Turn whatever a package raises on a damaged file into one sentence that names the file."""
    try:
        yield
    except ImportError:  # its message says which package to install
        raise
    except errors as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise type(error)(f"{where} cannot be read: {error.strerror}.") from error
        said = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
        reason = "".join(c if c.isprintable() else " " for c in said[:300])  # no control codes for terminals
        reason = " ".join(reason.split()).rstrip(". ") or type(error).__name__
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason:
            raise ValueError(f"{where} is not encoded in UTF-8: {reason}. Save it as UTF-8.") from error
        raise ValueError(f"{where} cannot be read as {kind}: {reason}. It may be empty, cut off or damaged.") from error


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
    """Return objects as numbers, NaN where one is missing, or as booleans, if all are of that kind."""
    if values.dtype != object:
        return values
    items = values.tolist()
    kinds = {type(item) for item in items if item is not None}
    complete = all(item is not None for item in items)
    try:
        if complete and kinds in ({int}, {bool}):
            return np.array(items, dtype=np.int64 if int in kinds else bool)
        if kinds and kinds <= {int, float}:
            return np.array([np.nan if item is None else item for item in items], dtype=np.float64)
    except OverflowError:  # an integer that neither type holds
        pass
    return values


def rows_of_lists(lists: Sequence[Any], where: str) -> np.ndarray | None:
    """Return lists as the rows of a matrix, NaN where a list is missing; None if all are."""
    lengths = {len(row) for row in lists if row is not None}
    if len(lengths) > 1:
        raise ValueError(f"{where} has lists of {min(lengths)} and of {max(lengths)} numbers. Make them equally long.")
    if not lengths:
        return None
    blank = [np.nan] * lengths.pop()
    return np.array([blank if row is None else row for row in lists], dtype=np.float64)


def placed(values: Any, rows: np.ndarray, n: int) -> Any:
    """Return values at their rows among n; the other rows are missing."""
    if values is None or (len(rows) == n and (rows == np.arange(n)).all()):
        return values
    if sp.issparse(values):
        values = values.toarray()  # a missing row is NaN, and not empty
    if values.shape[0] != len(rows):
        raise ValueError(f"A column has {values.shape[0]} values for {len(rows)} samples; all of a file have as many.")
    blank = None if values.dtype == object or values.dtype.kind in "US" else np.nan  # text has no NaN
    out = np.full((n, *values.shape[1:]), blank, dtype=object if blank is None else np.float64)
    out[rows] = values
    return out
