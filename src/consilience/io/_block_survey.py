"""What must be known of files before their blocks are read: kinds of columns, categories, and views."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..views._blocks import quoted, some
from ..views._frames import check_one_hot_names, check_readable, dates, level_names, levels_of, repeats
from ..views._tables import by_prefix
from ..views.row_blocks import BLOCK_VALUES
from ._arrow_blocks import DataFile, is_text, kind_of_type, read_batches
from ._block_columns import BlockRecipe, Categories, mask_cells, without_nan
from ._nested import without_dictionary
from .layout import default_views, names_matching
from .tables import is_among, missing_among

_MOST_VALUES = 1000  # different values of a column that are counted; one with more is not a category
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_SHOWN = 6  # cells that are not numbers, of columns in which many are: one more than an error shows
_VIEW = "view0"  # of columns without a prefix, whatever the names of files are


class Roles(NamedTuple):
    """Columns that are not features."""

    targets: tuple[str, ...]
    several: bool  # whether the target is a matrix
    weight: str | None
    ids: str | None

    @property
    def every(self) -> tuple[str, ...]:
        """All columns with a role."""
        return (*self.targets, *(name for name in (self.weight, self.ids) if name is not None))

    @property
    def exact(self) -> list[str]:
        """Columns of text files whose values stay as they are written."""
        return [*self.targets, *([self.ids] if self.ids is not None else [])]


@dataclass
class FileSurvey:
    """What the files have."""

    where: str
    roles: Roles
    n_rows: int = 0
    chunk: int = 0  # rows that are read at a time, of files of text
    types: dict[str, set[Any]] = field(default_factory=dict)  # of pyarrow, by column
    counts: dict[str, Counter[Any] | None] = field(default_factory=dict)  # how often values occur; None: too many
    unlike_numbers: dict[str, Counter[str]] = field(default_factory=dict)  # how many cells are numbers ("0") and others
    declared: dict[str, dict[Any, None]] = field(default_factory=dict)  # categories that types of columns list
    nulls: set[str] = field(default_factory=set)  # columns with missing values
    missing: dict[str, int] = field(default_factory=dict)  # cells by column that `na_values` makes missing
    dtypes: dict[str, Any] = field(default_factory=dict)  # of target, weights and names

    def kind(self, name: str) -> str:
        """Return what a column has in all files."""
        kinds = {kind_of_type(own) for own in self.types[name]} - {"nothing"}
        return next(iter(kinds), "nothing")

    def count(self, name: str, column: Any) -> None:
        """Count the values of a column, up to many different ones, and the strings that are not numbers."""
        import pyarrow.compute as pc

        column = without_nan(without_dictionary(column)).drop_null()
        counts = self.counts.setdefault(name, Counter())
        if counts is not None:
            found = pc.value_counts(column)
            if len(found) <= _MOST_VALUES:
                counts.update(dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)))
            if max(len(counts), len(found)) > _MOST_VALUES:
                self.counts[name] = None
        if kind_of_type(column.type) == "strings":
            unlike = column.filter(pc.invert(pc.match_substring_regex(column, _NUMBER)))
            shown = self.unlike_numbers.setdefault(name, Counter({"0": 0}))
            shown["0"] += len(column) - len(unlike)
            if len(shown) <= _SHOWN:
                shown.update(dict.fromkeys(unlike.unique()[:_SHOWN].to_pylist(), 0))
            if len(unlike):
                shown[unlike[0].as_py()] += len(unlike)

    def check_readable(self, name: str) -> None:
        """Refuse a column of text in which at least half of the cells are numbers."""
        check_readable(self.where, name, self.unlike_numbers.get(name, {}))


def survey_files(
    files: Sequence[DataFile], spec: Any, roles: Roles, options: Mapping[str, Any]
) -> tuple[FileSurvey, dict[str, BlockRecipe]]:
    """Return what the files have, and how their columns become views; read only columns that do not tell by type."""
    where = files[0].where if len(files) == 1 else f"'{files[0].path.parent.name}'"
    survey = FileSurvey(where, roles)
    text = is_text(files[0])
    if text:
        first = next(iter(read_batches(files[0], None, 1, options)), None)
        width = sum(getattr(own.type, "list_size", 1) for own in first.columns.values()) if first else 1
        survey.chunk = max(BLOCK_VALUES // max(width, 1), 256)
        _read(survey, files, None, options)
    else:
        _compare_types(survey, files)
    if survey.n_rows + sum(file.n_rows or 0 for file in files) == 0:
        raise ValueError(f"{where} has no samples. Give a file with at least one row.")
    roles = survey.roles = _settle_roles(survey)
    features = [name for name in survey.types if name not in roles.every and not _is_index(name)]
    views = _views_by_names(survey, features, spec)
    used = [*(name for own in views.values() for name in own), *roles.every] if views else [*features, *roles.every]
    _check_columns(survey, files, used)
    if not text:
        survey.n_rows = sum(file.n_rows or 0 for file in files)
        _read(survey, files, _unsettled(survey, files, views, used, bool(options["na_values"])), options)
    if not views:
        views = _views_by_default(survey, features)
    for name in roles.every:
        survey.dtypes[name] = _dtype_of_role(survey, name)
    return survey, {view: _recipe(survey, files, view, list(own), options) for view, own in views.items()}


# -- columns
def _is_index(name: str) -> bool:
    """Tell whether a column has names of rows, or row numbers, that pandas stored."""
    return not name or name.startswith("__index_level_")


def _compare_types(survey: FileSurvey, files: Sequence[DataFile]) -> None:
    """Collect the types of columns; a column has one kind in all files."""
    owners: dict[str, str] = {}
    for file in files:
        for name, own in file.types.items():
            kind, before = kind_of_type(own), survey.kind(name) if name in survey.types else "nothing"
            if "nothing" not in (kind, before) and kind != before:
                raise ValueError(
                    f"Column '{name}' has {kind} in {file.where}, but {before} in {owners[name]}. Write values of one "
                    "kind in all files."
                )
            survey.types.setdefault(name, set()).add(own)
            owners[name] = owners.get(name, file.where) if before != "nothing" else file.where


def _settle_roles(survey: FileSurvey) -> Roles:
    """Return the roles with the names that an index has; refuse columns that are not there."""
    roles = survey.roles
    for name in roles.every:
        if name not in survey.types:
            raise ValueError(
                f"No column '{name}' is in {survey.where}, only {_listed(survey.types)}. Give the "
                "name of a column; the target is named by `target`, weights by `weight`, sample names by `ids`."
            )
    twice = next((name for name, count in Counter(roles.every).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"Column '{twice}' is named twice among `target`, `weight` and `ids`. Name each column once.")
    if roles.several and not roles.targets:
        raise ValueError("`target` has no column. Name at least one, or omit it.")
    index = next((name for name in survey.types if _is_index(name)), None)
    if roles.ids is None and index is not None and survey.kind(index) == "strings":
        return roles._replace(ids=index)
    return roles


def _check_columns(survey: FileSurvey, files: Sequence[DataFile], used: Collection[str]) -> None:
    """Refuse files of a folder that lack a column that is used."""
    for file in files if not is_text(files[0]) else ():
        lost = [name for name in used if name not in file.types]
        if lost:
            others = next(other.where for other in files if lost[0] in other.types)
            raise ValueError(
                f"{file.where} lacks {len(lost)} column{'s' * (len(lost) != 1)} that {others} has: {some(lost, 3)}. "
                "Write all columns to all files, with null where a value is missing, or leave columns out by `views`."
            )


def _views_by_names(survey: FileSurvey, features: Sequence[str], spec: Any) -> dict[str, list[str]]:
    """Return the columns of each view where names tell them; an empty dict where values must."""
    if not features:
        raise ValueError(f"No view is left: {survey.where} has no columns besides target, weights and names.")
    if isinstance(spec, Mapping):
        if not spec:
            raise ValueError("`views` is empty. Name the columns of at least one view, or omit it.")
        return {view: _chosen_columns(survey, view, patterns, features) for view, patterns in spec.items()}
    lists = [name for name in features if survey.kind(name) == "lists"]
    others = [name for name in features if name not in lists]
    if spec == "prefix" or (others and all("__" in name for name in others)):
        views = {**{name: [name] for name in lists}, **by_prefix(others)}
        if len(views) < len(lists) + len(by_prefix(others)):
            raise ValueError(f"{survey.where} has a column of lists and a prefix of one name. Rename one of them.")
        return views
    return {}


def _listed(names: Iterable[str]) -> str:
    return some([f"'{name}'" for name in names if name])


def _chosen_columns(survey: FileSurvey, view: str, patterns: Any, features: Sequence[str]) -> list[str]:
    if isinstance(patterns, slice):
        raise ValueError(f"View '{view}' of {survey.where} is given as a slice; give the names of its columns.")
    chosen = names_matching(features, patterns)
    lost = next((name for name in patterns if name not in features and not names_matching(features, [name])), None)
    if lost is not None:
        raise ValueError(f"View '{view}' has no column '{lost}' in {survey.where}, only {_listed(features)}.")
    lists = [name for name in chosen if survey.kind(name) == "lists"]
    if lists and len(chosen) > 1:
        raise ValueError(
            f"View '{view}' is made of {quoted(chosen[:2])} of {survey.where}; a column of lists is a view alone. Name "
            "one of them."
        )
    return chosen


def _views_by_default(survey: FileSurvey, features: Sequence[str]) -> dict[str, list[str]]:
    """Return views as `read_samples` does: numbers and categories together, text and lists alone."""
    lists = [name for name in features if survey.kind(name) == "lists"]
    others = [name for name in features if name not in lists]
    strings = [name for name in others if survey.kind(name) == "strings"]
    texts = [name for name in strings if name not in survey.declared and not _is_category(survey.counts[name])]
    views = default_views(_VIEW, others, strings, texts, survey.declared, alone=True)
    return {**{name: [name] for name in lists}, **{view: list(own) for view, own in views.items()}}


def _is_category(counts: Counter[Any] | None) -> bool:
    return bool(counts) and counts is not None and repeats(len(counts), counts.total())


# -- a pass over the columns whose types do not tell enough
def _unsettled(
    survey: FileSurvey, files: Sequence[DataFile], views: Mapping[str, Sequence[str]], used: Sequence[str], masked: bool
) -> set[str]:
    """Return the columns to read before the first pass: possible categories, and roles that may have nulls."""
    import pyarrow as pa

    for file in files:
        for name in used:
            own = file.types[name]
            ordered = pa.types.is_dictionary(own) and own.ordered
            if name not in survey.roles.every and (name in file.by_pandas or ordered):
                survey.declared.setdefault(name, {})
    alone = {own[0] for own in views.values() if len(own) == 1}  # text, unless its type says categories
    asked = {
        name
        for name in survey.roles.every
        if any(pa.types.is_integer(own) or pa.types.is_boolean(own) for own in survey.types[name])
        and not all(name in file.complete for file in files)
    }
    asked |= {name for name in used if survey.kind(name) == "strings" and name not in alone} - set(survey.roles.every)
    return set(used) if masked else asked | set(survey.declared)


def _read(
    survey: FileSurvey, files: Sequence[DataFile], columns: Collection[str] | None, options: Mapping[str, Any]
) -> None:
    """Read columns, or all of files of text, and collect what their types do not tell."""
    if columns is not None and not columns:
        return
    text = columns is None
    size = survey.chunk if text else max(BLOCK_VALUES // max(len(columns or ()), 1), 256)
    given = missing_among(options["na_values"])
    for file in files:
        for batch in read_batches(file, columns, size, options):
            survey.n_rows += batch.n if text else 0
            listed = {name: own for name, own in batch.columns.items() if name in survey.declared}
            own, missing = (batch.columns, batch.missing) if text else mask_cells(batch.columns, batch.columns, given)
            for name, count in missing.items():
                survey.missing[name] = survey.missing.get(name, 0) + count
            for name, column in listed.items():
                survey.declared[name].update(dict.fromkeys(_listed_categories(column, given)))
            for name, column in own.items():
                _look_at_column(survey, name, column, text)


def _look_at_column(survey: FileSurvey, name: str, column: Any, text: bool) -> None:
    if text:
        survey.types.setdefault(name, set()).add(column.type)
    if column.null_count:
        survey.nulls.add(name)
    kind = kind_of_type(column.type)
    if name not in survey.roles.every and (kind == "strings" or name in survey.declared):
        survey.count(name, column)


def _listed_categories(column: Any, given: Collection[Any]) -> list[Any]:
    """Return the categories that the type of a column lists, in its order."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return []
    return [value for value in column.dictionary.to_pylist() if not is_among(value, given)]


# -- types and recipes
def _dtype_of_role(survey: FileSurvey, name: str) -> Any:
    """Return the type of a target, weights or names: that which all rows together have in `read_samples`."""
    import pyarrow as pa

    types = {own for own in survey.types[name] if not pa.types.is_null(own)}
    numbers = bool(types) and all(kind_of_type(own) == "numbers" for own in types)
    if not numbers and (name == survey.roles.weight or (survey.roles.several and name in survey.roles.targets)):
        what = "weights" if name == survey.roles.weight else "a target of several outputs"
        raise ValueError(f"Column '{name}' of {survey.where} has {survey.kind(name)}; {what} must be numbers.")
    if not numbers or any(pa.types.is_dictionary(own) for own in types):
        return np.dtype(object)
    incomplete = name in survey.nulls
    if all(pa.types.is_boolean(own) for own in types):
        return np.dtype(object if incomplete else bool)
    integers = all(pa.types.is_integer(own) for own in types)
    if integers and incomplete and not survey.roles.several and name in survey.roles.targets:
        return np.dtype(object)  # classes stay integers
    if incomplete or not integers:
        return np.dtype(np.float64)
    return np.result_type(*(own.to_pandas_dtype() for own in types))


def _recipe(
    survey: FileSurvey, files: Sequence[DataFile], view: str, columns: list[str], options: Mapping[str, Any]
) -> BlockRecipe:
    """Return how columns become a view; refuse those that are neither numbers nor strings."""
    for name in columns:
        kind = survey.kind(name)
        if kind == "dates":
            raise dates(survey.where, name)
        if kind not in ("numbers", "strings", "lists", "nothing"):
            raise ValueError(
                f"Column '{name}' of {survey.where} holds {kind} values, which are not a view. Make numbers or strings "
                "of them, or say by `views` which columns to take."
            )
    if len(columns) == 1 and survey.kind(columns[0]) == "lists":
        width = _length_of_lists(survey, files, columns[0], options)
        return BlockRecipe("lists", tuple(columns), (), width, _precision(survey, columns))
    if len(columns) == 1 and survey.kind(columns[0]) == "strings" and columns[0] not in survey.declared:
        survey.check_readable(columns[0])
        return BlockRecipe("text", tuple(columns), tuple(columns), 1)
    names: list[str] = []
    encoded: dict[str, Categories] = {}
    for name in columns:
        if _is_encoded(survey, name):
            encoded[name] = _categories(survey, name)
            names += level_names(name, encoded[name].levels)
        else:
            names.append(name)
    if encoded:
        check_one_hot_names(survey.where, names)
    return BlockRecipe("numbers", tuple(columns), tuple(names), len(names), _precision(survey, columns), encoded)


def _is_encoded(survey: FileSurvey, name: str) -> bool:
    """Tell whether a column has categories; one of strings without any value is a column of NaN."""
    if name in survey.declared:
        return bool(survey.declared[name]) or survey.counts.get(name) != Counter()
    return survey.kind(name) == "strings" and survey.counts[name] != Counter()


def _categories(survey: FileSurvey, name: str) -> Categories:
    import pyarrow as pa

    counts = survey.counts[name]
    if counts is None:
        survey.check_readable(name)
        raise ValueError(
            f"{survey.where}: column '{name}' has more than {_MOST_VALUES:,} different values, too many for one-hot "
            "columns. If it is text, give it a view of its own; if it names the samples, name it by `ids`; or leave it "
            "out by `views`."
        )
    declared = list(survey.declared[name]) if name in survey.declared else None
    levels, texts = levels_of(survey.where, name, counts, declared)
    place = {level: k for k, level in enumerate(levels)}
    values = pa.array(list(texts)) if texts else pa.array([], pa.string())
    return Categories(values, np.array([*(place[own] for own in texts.values()), len(levels)]), levels)


def _precision(survey: FileSurvey, columns: Sequence[str]) -> Any:
    """Return float32 if all columns have it in all files, else float64."""
    import pyarrow as pa

    types = {own for name in columns for own in survey.types[name] if not pa.types.is_null(own)}
    types = {own.value_type if kind_of_type(own) == "lists" else own for own in types}
    return np.float32 if types and all(own == pa.float32() for own in types) else np.float64


def _length_of_lists(survey: FileSurvey, files: Sequence[DataFile], name: str, options: Mapping[str, Any]) -> int:
    """Return how many numbers the lists of a column have: as its type says, or the first list."""
    fixed = {own.list_size for own in survey.types[name] if getattr(own, "list_size", -1) > 0}
    if len(fixed) > 1:
        raise ValueError(
            f"Column '{name}' of {survey.where} has lists of {min(fixed)} and of {max(fixed)} numbers. Make them "
            "equally long."
        )
    if fixed:
        return int(fixed.pop())
    for file in files:
        for batch in read_batches(file, [name], 256, options):
            there = batch.columns[name].drop_null()
            if len(there):
                return max(len(there[0]), 1)
    raise ValueError(f"Column '{name}' of {survey.where} has no list: all values are missing. Leave it out by `views`.")
