"""JSON lines as tables: numbers, lists of numbers, fields of numbers, text, lists and maps, as the first rows tell."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._nested import REMEDY
from ._text import lines_before_damage, open_lines, other_bytes
from .tables import Source, Table, is_among, missing_among, naming_file_of, objects

_decode = json.JSONDecoder().decode
_NUMBER = {int, float, bool}
_TYPES: dict[str, type] = {"text": str, "lists": list, "maps": dict}
_WORDS = {"fields": "objects with the same fields", "maps": "objects"}
_LARGEST = 1 << 1023  # of an integer


class Kind(NamedTuple):
    """What a column has, as its first rows told."""

    what: str  # "numbers", "lists of numbers", "fields", or without numbers of its own: "text", "lists", "maps"
    width: int = 0  # numbers in each list
    names: tuple[str, ...] = ()  # fields: where the numbers of an object are, such as mfcc.0


@dataclass
class _Records:
    """Objects of lines with their places."""

    values: list[dict[str, Any]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # from 0, of the lines that are not blank
    numbers: list[int] = field(default_factory=list)  # of the lines, from 1
    texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, values: list[dict[str, Any]], texts: list[str], row: int, number: int) -> None:
        """Add the objects of lines that follow one another, from a row and a line on."""
        self.values += values
        self.rows += range(row, row + len(values))
        self.numbers += range(number, number + len(values))
        self.texts += texts

    def without(self, wrong: Collection[int]) -> "_Records":
        """Return the other objects."""
        kept = _Records()
        for k in range(len(self)):
            if k not in wrong:
                kept.add([self.values[k]], [self.texts[k]], self.rows[k], self.numbers[k])
        return kept


def read_json_lines(source: Source) -> Iterator[Table]:
    """Yield the tables of JSON objects, one per line.

    A column has values of one kind, which the first rows with a value decide. A key of `exact` that the first object
    has is required of all. Rows are lines that are not blank.
    """
    if isinstance(source.data, Path):
        with open_lines(source) as lines:
            yield from read_json_lines(replace(source, data=lines))
            return
    lines = naming_file_of(source.data, source.where, "JSON lines", (UnicodeError, EOFError, OSError))
    kinds: dict[str, Kind] = {}
    records = _Records()
    required: list[str] | None = None
    row, number, taught = 0, 0, False  # rows and lines so far; whether the first rows have told the kinds
    damage: Exception | None = None
    while damage is None:
        batch, damage = lines_before_damage(lines, None if source.chunk is None else source.chunk - len(records))
        if not batch:
            break
        if taught and row + len(batch) <= source.start:
            row, number = row + sum(1 for line in batch if line.strip()), number + len(batch)
            continue
        if required is None or not _add_batch(records, batch, row, number + 1, required):
            try:
                for k, line in enumerate(batch):
                    if line.strip():
                        required = _add_line(records, line, row, number + k + 1, required, source)
                        row += 1
            except ValueError as error:
                damage = error
                break
        else:
            row += len(batch)
        number += len(batch)
        if len(records) == source.chunk:
            yield _table_of_records(records, kinds, source, row)
            records, taught = _Records(), True
    if records and (damage is None or source.chunk is not None):  # a stream learns the rows before the damage
        yield _table_of_records(records, kinds, source, row)
    if damage is not None:
        raise damage


def _add_batch(records: _Records, batch: list[str], row: int, number: int, required: Sequence[str]) -> bool:
    """Add the objects of lines at once; return False, and add none, if a line is blank or cannot be read."""
    try:
        values = list(map(_decode, batch))
    except (ValueError, RecursionError):
        return False
    if set(map(type, values)) != {dict} or not all(key in own for key in required for own in values):
        return False
    if other_bytes("".join(batch)):
        return False
    records.add(values, batch, row, number)
    return True


def _add_line(
    records: _Records, line: str, row: int, number: int, required: list[str] | None, source: Source
) -> list[str] | None:
    """Add the object of a line, and return the keys that are required; a line that is not one is an error."""
    what, cause, odd = f"Line {number} of {source.where}", None, source.errors.skip and other_bytes(line)
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        wrong, cause = f"{what} is not JSON: {error}.", error
    else:
        lost = next((key for key in required or () if key not in values), None) if isinstance(values, dict) else None
        if isinstance(values, dict) and lost is None and not odd:
            records.add([values], [line], row, number)
            return [key for key in source.exact if key in values] if required is None else required
        wrong = f"{what} has no key '{lost}'. Write null where the value is missing."
        if not isinstance(values, dict):
            wrong = f"{what} is not a JSON object with the values of columns by name."
        elif odd:
            wrong = f"{what} is not encoded in UTF-8."
    source.errors.reject(row, wrong, line.rstrip("\r\n"), cause)
    return required


def _table_of_records(records: _Records, kinds: dict[str, Kind], source: Source, end: int) -> Table:
    """Return records as columns; a column that had values before is there even if these records do not have it."""
    counts: dict[str, int] = {}
    rows = np.array(records.rows, dtype=np.int64)
    table = Table(source.name, source.where, growing=True, read_as_missing=counts, rows=rows, end=end)
    missing = missing_among(source.na_values)
    faults: dict[int, str] = {}
    empty: list[str] = []  # columns without a value so far
    if not records:
        return table
    for name in dict.fromkeys(chain(kinds, chain.from_iterable(records.values))):
        values = [own.get(name) for own in records.values]
        hits = [is_among(value, missing) for value in values] if missing else []
        if any(hits):
            counts[name] = sum(hits)
            values = [None if hit else value for value, hit in zip(values, hits, strict=True)]
        if name in source.exact:
            table.columns[name] = objects(values)
            continue
        kind = kinds.get(name) or _decide(values, name in source.texts)
        if kind is None:
            empty.append(name)
            continue
        kinds[name] = kind
        for k, value in _faults(values, kind).items():
            faults.setdefault(k, _sentence(name, value, records.numbers[k], kind, source))
            if not source.errors.skip:
                break
        if not faults:
            _add_column(table, name, values, kind)
    numeric = {name.partition("__")[0] for name, kind in kinds.items() if kind.what == "numbers" and "__" in name}
    for name in empty if source.chunk is not None else ():
        if "__" in name and name.partition("__")[0] in numeric:  # a number of a view that is there, as in CSV files
            kinds[name] = Kind("numbers")
            table.columns[name] = np.full(len(records), np.nan)
    if not faults:
        return table
    for k in sorted(faults):
        source.errors.reject(records.rows[k], faults[k], records.texts[k].rstrip("\r\n"))
    return _table_of_records(records.without(faults), kinds, source, end)


def _add_column(table: Table, name: str, values: list[Any], kind: Kind) -> None:
    if kind.what == "numbers":
        table.columns[name] = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    elif kind.what == "lists of numbers":
        blank = [np.nan] * kind.width
        table.blocks[name] = None if not any(v is not None for v in values) else np.array(
            [blank if value is None else value for value in values], dtype=np.float64
        )  # fmt: skip
    elif kind.what == "fields":
        found = [{} if value is None else dict(_leaves(value)) for value in values]
        known = set(kind.names)
        new = (n for own in found if not own.keys() <= known for n in own if own[n] is not None)
        names = tuple(dict.fromkeys(chain(kind.names, new)))
        table.blocks[name] = np.array([[own.get(n) for n in names] for own in found], dtype=np.float64)
        table.names[name] = names
    else:
        table.columns[name] = objects(values)


# -- kinds
def _decide(values: Iterable[Any], keep: bool) -> Kind | None:
    """Return the kind that most values have; `keep` says that lists and maps stay as they are. None without values."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    usual = Counter(map(_json_type, there)).most_common(1)[0][0]
    own = [value for value in there if _json_type(value) == usual]
    if usual == "lists":
        numeric = [value for value in own if value and _all_numbers(value)]
        if keep or 2 * len(numeric) <= sum(map(bool, own)):
            return Kind("lists")
        lengths = Counter(map(len, numeric))
        ids = set(map(type, chain.from_iterable(numeric))) <= {int, type(None)}
        several = len({len(value) for value in own}) > 1
        return Kind("lists") if ids and several else Kind("lists of numbers", lengths.most_common(1)[0][0])
    names = _fields(own) if usual == "maps" and not keep else ()
    return Kind("fields", names=names) if names else Kind(usual)


def _json_type(value: Any) -> str:
    kind = type(value)
    return "numbers" if kind in _NUMBER else "text" if kind is str else "lists" if kind is list else "maps"


def _leaves(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values within an object by their place: ``mfcc.0`` is the first one of the list ``mfcc``."""
    for key, own in value.items():
        if isinstance(own, dict):
            yield from _leaves(own, f"{prefix}{key}.")
        elif isinstance(own, list):
            yield from ((f"{prefix}{key}.{k}", item) for k, item in enumerate(own))
        else:
            yield f"{prefix}{key}", own


def _fields(values: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the places of the numbers of objects if all objects have the same ones; null stands for any. Else ()."""
    found = [dict(_leaves(value)) for value in values]
    names = tuple(dict.fromkeys(place for leaves in found for place, item in leaves.items() if item is not None))
    later = dict.fromkeys(place for leaves in found for place in leaves if place not in names)  # null so far
    names += tuple(place for place in later if not any(name.startswith(f"{place}.") for name in names))
    for leaves in found:
        if not _all_numbers(leaves.values()):
            return ()
        blank = tuple(place for place, item in leaves.items() if item is None)
        lost = (name for name in names if name not in leaves)
        if any(not any(name.startswith(f"{place}.") for place in blank) for name in lost):
            return ()
    return names


# -- rows that do not have the kind of their column
def _faults(values: Sequence[Any], kind: Kind) -> dict[int, Any]:
    """Return the values that are not of a kind, by position; most columns have none, which is seen at once."""
    there = [value for value in values if value is not None]
    types = set(map(type, there))
    fine = False
    if kind.what == "numbers":
        fine = _all_numbers(there)
    elif kind.what == "lists of numbers" and types <= {list} and set(map(len, there)) <= {kind.width}:
        fine = _all_numbers(list(chain.from_iterable(there)))
    elif kind.what in _TYPES:
        fine = types <= {_TYPES[kind.what]}
    return {} if fine else {k: own for k, own in enumerate(values) if own is not None and not _fits(own, kind)}


def _fits(value: Any, kind: Kind) -> bool:
    if kind.what == "lists of numbers":
        return type(value) is list and len(value) == kind.width and _all_numbers(value)
    if kind.what == "fields":
        leaves = dict(_leaves(value)) if type(value) is dict else {"": ""}
        return _all_numbers(leaves.values())  # a field that is new is left out later
    return _all_numbers([value]) if kind.what == "numbers" else _json_type(value) == kind.what


def _all_numbers(items: Collection[Any]) -> bool:
    """Tell whether all values are null or numbers that float64 holds."""
    types = set(map(type, items)) - {type(None)}
    if int not in types:
        return types <= _NUMBER
    return types <= _NUMBER and all(-_LARGEST < item < _LARGEST for item in items if type(item) is int)


def _sentence(name: str, value: Any, number: int, kind: Kind, source: Source) -> str:
    """Return the error of a value that is not of the kind of its column."""
    own, line = f"Column '{name}' of {source.where}", f"in line {number}"
    remedy = "" if source.chunk is None else f" {REMEDY}"
    if kind.what == "lists of numbers" and type(value) is list and len(value) != kind.width:
        lengths = f"lists of {kind.width} and of {len(value)} numbers, the latter {line}"
        return f"{own} has {lengths}. Make them equally long.{remedy}"
    if kind.what == "fields" and type(value) is dict:
        return f"{own} has an object with other values than numbers, {line}. Give the same fields in all rows.{remedy}"
    if kind.what == "numbers" and type(value) is int:
        return f"{own} has an integer that is too large for float64, {line}. Scale the column."
    shown = {"lists": "a list", "maps": "an object"}.get(_json_type(value), f"the value {str(value)[:40]!r}")
    return f"{own} has {shown} {line}, but {_WORDS.get(kind.what, kind.what)} in other rows. Write values of one kind."
