"""Read data frames and columns of tables: numbers side by side, categories as one-hot columns of their view."""

import numbers
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._blocks import quoted, some
from ._reading import is_missing, objects_of, objects_or_numeric

_FEW = 10  # categories of a column that are accepted whatever the number of samples
_DATES = ("Datetime", "Date", "Duration", "Time")


class Encoded(NamedTuple):
    """Columns as one block: numbers, or the objects of one column of text."""

    block: Any
    names: tuple[str, ...]
    categorical: tuple[str, ...] = ()  # the columns that became one-hot columns such as ``sex=F``


# -- frames
def is_frame(value: Any) -> bool:
    """Tell whether a value is a data frame, that is, has named columns."""
    return hasattr(value, "columns") and not hasattr(value, "__array_namespace__")


def as_frame(value: Any) -> Any:
    """Return a data frame in narwhals' form."""
    try:
        import narwhals
    except ImportError as error:
        raise ImportError(
            "Reading data frames needs the package narwhals: pip install 'consilience[frames]'."
        ) from error
    try:
        return narwhals.from_native(value, eager_only=True)
    except Exception as error:  # a lazy frame, or equal column names; narwhals gives the reason
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"The data frame ({type(value).__name__}) cannot be read: {reason}.") from error


def read_frame(name: str, value: Any) -> Encoded:
    """Return a frame as a table of numbers, or a frame of one column of strings as objects."""
    frame = as_frame(value)
    import narwhals as nw

    series = list(frame.iter_columns())
    if not series:
        return Encoded(np.empty((len(frame), 0)), ())
    single = all(s.dtype == nw.Float32 for s in series)
    if _is_numeric(value):  # all columns at once
        table = np.ascontiguousarray(value, dtype=np.float32 if single else np.float64)  # sums round as those of arrays
        return Encoded(table, tuple(map(str, frame.columns)))
    columns: dict[str, np.ndarray] = {}
    categories: set[str] = set()
    for s in series:
        column = str(s.name)
        if s.dtype.is_numeric() or s.dtype == nw.Boolean:
            columns[column] = s.cast(nw.Float32 if single else nw.Float64).to_numpy()
            continue
        if type(s.dtype).__name__ in _DATES or str(s.dtype).startswith(_DATES):
            raise dates(f"View '{name}'", column)
        if s.dtype in (nw.Categorical, nw.Enum):
            categories.add(column)
        columns[column] = objects_of(s.to_list())
    return encode_columns(f"View '{name}'", columns, categories)


def _is_numeric(value: Any) -> bool:
    """Tell whether a pandas frame has plain numbers alone, none of its own types that know missing values."""
    types: Any = getattr(value, "dtypes", None)
    return hasattr(types, "unique") and all(
        isinstance(kind, np.dtype) and kind.kind in "biuf" and kind.itemsize <= 8 for kind in types.unique()
    )


def dates(what: str, column: str) -> ValueError:
    """Return the error for a column of dates."""
    return ValueError(
        f"{what}: column '{column}' has dates or times. Make numbers of them, such as days since a first date, or "
        "leave the column out."
    )


# -- columns
def encode_columns(what: str, columns: Mapping[str, np.ndarray], categories: Collection[str] = ()) -> Encoded:
    """Return columns of numbers and objects as one block.

    Columns of strings, and those in `categories`, become one column per category: 1 where a sample has it, NaN in all
    of them where the value is missing. One column of strings alone stays as it is: text. `what` names the view in
    messages.
    """
    alone = len(columns) == 1
    parts: list[np.ndarray] = []
    names: list[str] = []
    categorical = []
    for column, values in columns.items():
        values = values if values.dtype != object or column in categories else objects_or_numeric(values)
        if alone and values.dtype == object and column not in categories:
            return Encoded(values, (column,))
        if values.dtype == object and all(is_missing(value) for value in values):
            values = np.full(len(values), np.nan)
        if values.dtype != object:
            parts.append(values.reshape(len(values), 1))
            names.append(column)
            continue
        own = _categories(what, column, values, readable=column in categories)
        parts.append(_one_hot(values, own))
        names += [f"{column}={level}" for level in own]
        categorical.append(column)
    twice = next((name for name, count in Counter(names).items() if count > 1), None) if categorical else None
    if twice is not None:
        raise ValueError(f"{what} would have two columns named '{twice}'. Rename the column '{twice.split('=')[0]}'.")
    return Encoded(_side_by_side(parts), tuple(names), tuple(categorical))


def _side_by_side(parts: Sequence[np.ndarray], size: int = 256) -> np.ndarray:
    """Return columns as one table in floating point.

    Tiles of `size` rows and columns stay in the cache, which is about twice as fast as one column after the other.
    """
    dtype = np.result_type(*{part.dtype for part in parts})
    n = len(parts[0])
    width = sum(part.shape[1] for part in parts)
    table = np.empty((n, width), dtype=dtype if dtype in (np.float32, np.float64) else np.float64)
    stop = 0
    for first in range(0, len(parts), size):
        columns = np.concatenate([part.T for part in parts[first : first + size]])
        start, stop = stop, stop + len(columns)
        for row in range(0, n, size):
            table[row : row + size, start:stop] = columns[:, row : row + size].T
    return table


def _categories(what: str, column: str, values: np.ndarray, *, readable: bool) -> tuple[str, ...]:
    """Return the categories of a column in sorted order; refuse what is not one.

    Unless the type of the column says that its values are categories (`readable`), most of them must not be numbers.
    """
    there = [value for value in values if not is_missing(value)]
    if any(hasattr(value, "isoformat") for value in there):
        raise dates(what, column)
    other = next((value for value in there if not isinstance(value, (str, bool, numbers.Real))), None)
    if other is not None:
        raise ValueError(
            f"{what}: column '{column}' holds {type(other).__name__} values, which are neither numbers nor categories. "
            "Make numbers or strings of them, or leave the column out."
        )
    if not readable:
        check_readable(what, column, there)
    found = tuple(sorted({str(value) for value in there}))
    if len(found) > max(_FEW, len(there) / 2):
        raise ValueError(
            f"{what}: column '{column}' has {len(found):,} different strings in {len(there):,} samples "
            f"({some(found, 3)}), too many for categories. If it is text, give it a view of its own; if it names the "
            "samples, give it as their names; or leave it out."
        )
    return found


def is_category(values: np.ndarray) -> bool:
    """Tell whether a column of strings repeats few values, as categories do and text does not."""
    there = [value for value in values if not is_missing(value)]
    if not there or not all(isinstance(value, str) for value in there):
        return False
    return len(set(there)) <= min(len(there) / 2, max(_FEW, len(there) / 20))


def check_readable(what: str, column: str, values: Sequence[Any]) -> None:
    """Refuse a column in which at least half of the cells are numbers and the others cannot be read as such."""
    unreadable = [value for value in values if not _is_number(value)]
    if unreadable and len(unreadable) <= len(values) / 2:
        cells = list(dict.fromkeys(repr(str(value)[:40])[1:-1] for value in unreadable))  # no line breaks
        raise ValueError(
            f"{what}: column '{column}' has numbers, and {len(unreadable)} cell{'s' * (len(unreadable) != 1)} that "
            f"cannot be read as numbers: {quoted(cells[:5])}{', ...' * (len(cells) > 5)}. Correct them, or have them "
            "read as missing: in files by na_values (--na), in pandas by pandas.to_numeric(column, errors='coerce'). "
            "If the values are categories, give the column a categorical type."
        )


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, numbers.Real)):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _one_hot(values: np.ndarray, levels: Sequence[str]) -> np.ndarray:
    place = {level: k for k, level in enumerate(levels)}
    table = np.zeros((len(values), len(levels)))
    for row, value in enumerate(values):
        if is_missing(value):
            table[row] = np.nan
        else:
            table[row, place[str(value)]] = 1.0
    return table
