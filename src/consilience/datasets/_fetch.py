"""The template of the ``fetch_*`` functions: an entry of the table of data sets becomes a documented function."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import Bunch

from ..views.container import Views
from ._store import ArrayFile, read_arrays

DataHome: TypeAlias = str | os.PathLike[str] | None
Fetched: TypeAlias = Bunch | tuple[Views, np.ndarray]
Built: TypeAlias = tuple[Views, np.ndarray, dict[str, Any]]

_TEMPLATE = """Fetch {title}

{shape}

{text}

Parameters
----------
{options}data_home : path-like, optional
    Cache folder. Default: ``consilience`` in the user's cache folder.
return_X_y : bool, default=False
    Whether to return only ``(data, target)``.

Returns
-------
Bunch or tuple
    `data` (Views), `target`, `target_names`, `splits` ({splits}), `feature_names` (by view)
    and `DESCR` (this description); or ``(data, target)``.{fields}

Examples
--------
>>> from consilience.datasets import {name}
>>> X, y = {name}(return_X_y=True)  # doctest: +SKIP
"""


@dataclass(frozen=True)
class DataSet:
    """An entry of the table of data sets.

    Parameters
    ----------
    files : ArrayFile or tuple of ArrayFile
        Files of the arrays.
    shape : str
        Number of samples, views with their columns, and the target.
    about : str
        Title in one sentence, an empty line, then description, paper and terms of use.
    build : callable
        Function of the arrays of each file that returns the views, the target and further fields of the Bunch.
    fields : str
        Names of further fields with their meaning, for the docstring.
    has_splits : bool
        Whether the set has training and test samples.
    targets : dict
        Name -> meaning of the targets, if there are several. The first one is the default.
    """

    files: ArrayFile | tuple[ArrayFile, ...]
    shape: str
    about: str
    build: Callable[..., Built]
    fields: str = ""
    has_splits: bool = False
    targets: dict[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[ArrayFile, ...]:
        """The files as a tuple."""
        return self.files if isinstance(self.files, tuple) else (self.files,)

    @property
    def description(self) -> str:
        """Title, shape and text."""
        title, _, text = cleandoc(self.about).partition("\n\n")
        return f"{title}\n\n{self.shape}\n\n{text}\n"


def fetch(data_set: DataSet, data_home: DataHome, return_X_y: bool, **options: Any) -> Fetched:
    """Return a data set as a Bunch or as (X, y); class names default to the distinct labels."""
    X, y, fields = data_set.build(*(read_arrays(source, data_home) for source in data_set.sources), **options)
    fields = {"target_names": np.unique(y), "splits": [], "feature_names": {}} | fields
    return bunch_or_pair(X, y, return_X_y, DESCR=data_set.description, **fields)


def bunch_or_pair(X: Views, y: np.ndarray, return_X_y: bool, **fields: Any) -> Fetched:
    """Return a data set as a Bunch with further fields, or as (X, y); X knows the names of its columns and samples."""
    columns = {view: tuple(map(str, names)) for view, names in fields.get("feature_names", {}).items()}
    blocks = {view: X.block(view) for view in X.names}
    X = Views._of(blocks, len(X), X.mask, columns, fields.get("sample_names"))
    return (X, y) if return_X_y else Bunch(data=X, target=y, **fields)


def fetcher_of(name: str, data_set: DataSet) -> Callable[..., Any]:
    """Return the public function that fetches a data set."""

    def fetcher(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
        return fetch(data_set, data_home, return_X_y)

    def fetcher_of_target(
        *, target: str = next(iter(data_set.targets), ""), data_home: DataHome = None, return_X_y: bool = False
    ) -> Fetched:
        if target not in data_set.targets:
            raise ValueError(f"`target` must be {' or '.join(map(repr, data_set.targets))}; got {target!r}.")
        return fetch(data_set, data_home, return_X_y, target=target)

    public = fetcher_of_target if data_set.targets else fetcher
    public.__doc__ = _docstring(name, data_set)
    public.__name__ = public.__qualname__ = name
    public.__module__ = "consilience.datasets"  # where it is found again by name, as pickle does
    return public


def _docstring(name: str, data_set: DataSet) -> str:
    options = ""
    if data_set.targets:
        names = [f'"{target}"' for target in data_set.targets]
        options = f"target : {{{', '.join(names)}}}, default={names[0]}\n    What to predict: "
        options += ", or ".join(data_set.targets.values()) + ".\n"
    title, _, text = cleandoc(data_set.about).partition("\n\n")
    return _TEMPLATE.format(
        name=name, title=title, shape=data_set.shape, text=text, options=options,
        splits="training and test samples" if data_set.has_splits else "none",
        fields=f"\n    The Bunch also has {data_set.fields}." if data_set.fields else "",
    )  # fmt: skip
