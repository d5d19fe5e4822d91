"""Read data frames and columns of tables: numbers side by side, categories as one-hot columns of their view."""

import numbers
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ._blocks import quoted, some
from ._reading import is_missing, objects_of, objects_or_numeric

Levels = Mapping[str, tuple[str, ...]]  # categorical column -> its categories, in the order of their one-hot columns
NO_LEVELS: Levels = MappingProxyType({})

_FEW = 10  # different strings of a column that are accepted whatever the number of samples
_MANY = 50  # categories that are accepted whatever the number of samples, where the type of the column declares them
_DATES = ("Datetime", "Date", "Duration", "Time")


class Encoded(NamedTuple):
    """Columns as one block: numbers, or the objects of one column of text."""

    block: Any
    names: tuple[str, ...]
    categories: Levels  # of the columns that became one-hot columns, such as ``sex=F``


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
        call = next((name for name in ("toPandas", "df", "collect", "to_pandas") if hasattr(type(value), name)), None)
        remedy = "" if call is None else f" Load it into memory: give what its method {call}() returns."
        raise ValueError(f"The data frame ({type(value).__name__}) cannot be read: {reason}.{remedy}") from error


def column_names(what: str, frame: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame as text; refuse two that are the same text."""
    names = tuple(map(str, frame.columns))
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        forms = " and ".join(repr(column) for column in frame.columns if str(column) == twice)
        raise ValueError(f"{what} has columns whose names are the same text: {forms}. Rename one of them.")
    return names


def read_frame(name: str, value: Any, known: Collection[str] = ()) -> Encoded:
    """Return a frame as a table of numbers, or a frame of one column of strings as objects.

    Columns in `known` are categories for certain: an estimator was fitted on them.
    """
    frame = as_frame(value)
    import narwhals as nw

    names = column_names(f"View '{name}'", frame)
    series = list(frame.iter_columns())
    if not series:
        return Encoded(np.empty((len(frame), 0)), (), NO_LEVELS)
    single = all(s.dtype == nw.Float32 for s in series)
    if _is_numeric(value):  # all columns at once
        table = np.ascontiguousarray(value, dtype=np.float32 if single else np.float64)  # sums round as those of arrays
        return Encoded(table, names, NO_LEVELS)
    columns: dict[str, np.ndarray] = {}
    declared: dict[str, Sequence[Any]] = {}
    for s in series:
        column = str(s.name)
        if s.dtype.is_numeric() or s.dtype == nw.Boolean:
            columns[column] = s.cast(nw.Float32 if single else nw.Float64).to_numpy()
            continue
        if type(s.dtype).__name__ in _DATES or str(s.dtype).startswith(_DATES):
            raise dates(f"View '{name}'", column)
        if s.dtype in (nw.Categorical, nw.Enum):
            declared[column] = _declared(s)
        columns[column] = objects_of(s.to_list())
    return encode_columns(f"View '{name}'", columns, declared, known)


def _declared(series: Any) -> Sequence[Any]:
    """Return the categories that the type of a column declares, in its order; none where it has no list of them."""
    own: Any = getattr(getattr(series.to_native(), "dtype", None), "categories", None)
    if hasattr(own, "tolist"):  # pandas
        return own.tolist()
    return list(getattr(series.dtype, "categories", ()))  # Enum of polars; its Categorical lists those of all columns


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
def encode_columns(
    what: str,
    columns: Mapping[str, np.ndarray],
    declared: Mapping[str, Sequence[Any]] | None = None,
    known: Collection[str] = (),
) -> Encoded:
    """Return columns of numbers and objects as one block.

    Columns of strings become one column per category: 1 where a sample has it, NaN in all of them where the value is
    missing. So do the columns that a type declares to be categories, with the values in `declared` in this order, and
    those in `known`, which an estimator was fitted on. One other column of strings alone stays as it is: text. `what`
    names the view in messages.
    """
    declared = declared or {}
    parts: list[np.ndarray] = []
    names: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for column, values in columns.items():
        certain = column in declared or column in known
        if values.dtype == object and not certain:
            values = objects_or_numeric(values)
            if len(columns) == 1 and values.dtype == object:
                _refuse_dates(what, column, values)
                return Encoded(values, (column,), NO_LEVELS)
        if values.dtype == object and not declared.get(column) and all(is_missing(value) for value in values):
            values = np.full(len(values), np.nan)
        elif values.dtype == object or column in declared:
            part, categories[column] = _encode(what, column, values, declared.get(column), column in known)
            parts.append(part)
            names += level_names(column, categories[column])
            continue
        parts.append(values.reshape(len(values), 1))
        names.append(column)
    if categories:
        check_one_hot_names(what, names)
    return Encoded(_side_by_side(parts), tuple(names), categories)


def check_one_hot_names(what: str, names: Sequence[str]) -> None:
    """Refuse a view in which a one-hot column has the name of another column."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{what} would have two columns named '{twice}'. Rename the column '{twice.split('=')[0]}'.")


def level_names(column: str, levels: Iterable[str]) -> list[str]:
    """Return the names of the one-hot columns of a categorical column."""
    return [f"{column}={level}" for level in levels]


def level_text(value: Any) -> str:
    """Return a category as text; 1.0 is "1", since whole numbers next to missing ones are read as 1.0."""
    whole = isinstance(value, (float, np.floating)) and np.isfinite(value) and value == np.floor(value)
    return str(int(value)) if whole else str(value)


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


def _encode(
    what: str, column: str, values: np.ndarray, declared: Sequence[Any] | None, known: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the one-hot columns of a column, and its categories; refuse what is not one."""
    items = values.tolist()
    counts = _count(what, column, items)
    levels, texts = levels_of(what, column, counts, declared, known)
    place = {level: k for k, level in enumerate(levels)}
    codes = {value: place[texts[value]] if value in texts else len(levels) for value in counts}
    rows = np.fromiter((codes[item] for item in items), dtype=np.intp, count=len(items))
    return one_hot_rows(len(levels))[rows], levels


def one_hot_rows(n: int) -> np.ndarray:
    """Return the rows of one-hot columns: one for each of n categories, and a last one for missing values."""
    return np.vstack([np.eye(n), np.full(n, np.nan)])


def levels_of(
    what: str, column: str, counts: Mapping[Any, int], declared: Sequence[Any] | None = None, known: bool = False
) -> tuple[tuple[str, ...], dict[Any, str]]:
    """Return the categories of a column, and the category of each value; refuse what is not one.

    `counts` says how often each value occurs.
    """
    there = {value: count for value, count in counts.items() if not is_missing(value)}
    _refuse_dates(what, column, there)
    other = next((value for value in there if not isinstance(value, (str, bool, numbers.Real))), None)
    if other is not None and declared is None:
        raise _neither(what, column, other)
    if declared is None and not known:
        check_readable(what, column, there)
    texts = {value: level_text(value) for value in there}
    found, n = set(texts.values()), sum(there.values())
    if not known and len(found) > max(_FEW if declared is None else _MANY, n / 2):
        raise _too_many(what, column, sorted(found), n, declared is None)
    return _levels(declared or (), found, list(there)), texts


def _levels(declared: Sequence[Any], found: set[str], values: Sequence[Any]) -> tuple[str, ...]:
    """Return categories in order: those that a type declares, of very many only those found, then others, sorted."""
    listed = list(dict.fromkeys(level_text(value) for value in declared if not is_missing(value)))
    listed = listed if len(listed) <= _MANY else [level for level in listed if level in found]
    in_order = sorted(values) if all(isinstance(value, numbers.Real) for value in values) else sorted(found)
    return tuple(dict.fromkeys([*listed, *map(level_text, in_order)]))


def _count(what: str, column: str, items: Sequence[Any]) -> Counter[Any]:
    try:
        return Counter(items)
    except TypeError:  # values such as lists
        other = next(item for item in items if not isinstance(item, str) and not is_missing(item))
        raise _neither(what, column, other) from None


def _refuse_dates(what: str, column: str, values: Iterable[Any]) -> None:
    if any(hasattr(value, "isoformat") or hasattr(value, "to_timestamp") for value in values):  # the latter: periods
        raise dates(what, column)


def _neither(what: str, column: str, value: Any) -> ValueError:
    return ValueError(
        f"{what}: column '{column}' holds {type(value).__name__} values, which are neither numbers nor categories. "
        "Make numbers or strings of them, or leave the column out."
    )


def _too_many(what: str, column: str, found: Sequence[str], n: int, strings: bool) -> ValueError:
    """Return the error for a column of names or text."""
    remedy = "if its values are categories all the same, give the column a categorical type; " * strings
    return ValueError(
        f"{what}: column '{column}' has {len(found):,} different {'strings' if strings else 'categories'} in {n:,} "
        f"samples ({some(found, 3)}), too many for categories. If it is text, give it a view of its own; if it names "
        f"the samples, give it as their names; {remedy}or leave it out."
    )


def is_category(values: np.ndarray) -> bool:
    """Tell whether a column of strings repeats few values, as categories do and text does not."""
    there = [value for value in values if not is_missing(value)]
    if not there or not all(isinstance(value, str) for value in there):
        return False
    return repeats(len(set(there)), len(there))


def repeats(n_values: int, n_samples: int) -> bool:
    """Tell whether values are few compared with the samples that have them, as categories are."""
    return n_values <= min(n_samples / 2, max(_FEW, n_samples / 20))


def check_readable(what: str, column: str, values: Iterable[Any]) -> None:
    """Refuse a column in which at least half of the cells are numbers and the others cannot be read as such.

    `values` are the cells that are not missing, or how often each of them occurs.
    """
    counts = values if isinstance(values, Mapping) else _counted(values)
    unreadable = {value: count for value, count in counts.items() if not _is_number(value)}
    many = sum(unreadable.values())
    if unreadable and many <= sum(counts.values()) / 2:
        cells = list(dict.fromkeys(repr(str(value)[:40])[1:-1] for value in unreadable))  # no line breaks
        raise ValueError(
            f"{what}: column '{column}' has numbers, and {many} cell{'s' * (many != 1)} that cannot be read as "
            f"numbers: {quoted(cells[:5])}{', ...' * (len(cells) > 5)}. Correct them, or have them read as missing: in "
            "files by na_values (--na), in pandas by pandas.to_numeric(column, errors='coerce'). If the values are "
            "categories, give the column a categorical type."
        )


def _counted(values: Iterable[Any]) -> Mapping[Any, int]:
    """Return how often each value occurs; values such as lists are counted by their text."""
    items = list(values)
    try:
        return Counter(items)
    except TypeError:
        return Counter(item if isinstance(item, (str, bool, numbers.Real)) else repr(item) for item in items)


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, numbers.Real)):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
