"""The template of the ``fetch_*`` functions: an entry of the table of data sets becomes a documented function."""

import os
from collections.abc import Callable
from dataclasses import dataclass
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
data_home : path-like, optional
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
    """

    files: ArrayFile | tuple[ArrayFile, ...]
    shape: str
    about: str
    build: Callable[..., Built]
    fields: str = ""
    has_splits: bool = False

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
    if return_X_y:
        return X, y
    fields = {"target_names": np.unique(y), "splits": [], "feature_names": {}} | fields
    return Bunch(data=X, target=y, DESCR=data_set.description, **fields)


def fetcher_of(name: str, data_set: DataSet) -> Callable[..., Any]:
    """Return the public function that fetches a data set."""

    def fetcher(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
        return fetch(data_set, data_home, return_X_y)

    title, _, text = cleandoc(data_set.about).partition("\n\n")
    fetcher.__doc__ = _TEMPLATE.format(
        name=name, title=title, shape=data_set.shape, text=text,
        splits="training and test samples" if data_set.has_splits else "none",
        fields=f"\n    The Bunch also has {data_set.fields}." if data_set.fields else "",
    )  # fmt: skip
    fetcher.__name__ = fetcher.__qualname__ = name
    fetcher.__module__ = "consilience.datasets"  # where it is found again by name, as pickle does
    return fetcher
