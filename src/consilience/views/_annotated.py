"""Annotated matrices of single-cell and multi-omics packages: AnnData as one view, MuData as several."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._blocks import quoted, some
from ._frames import NO_LEVELS, Levels, read_frame
from ._reading import checked_sparse


class NamedMatrix:
    """A matrix with the names of its columns and samples, where they have some, before it is read as a view."""

    def __init__(
        self, values: Any, columns: tuple[str, ...] | None, names: np.ndarray | None, categories: Levels = NO_LEVELS
    ):
        self.values, self.columns, self.categories = values, columns, categories
        self.names: Any = names


def kind_of(X: Any) -> str | None:
    """Return "AnnData" or "MuData" for objects of these packages, without importing them, and None for others."""
    for cls in type(X).__mro__:
        if cls.__name__ in ("AnnData", "MuData") and cls.__module__.partition(".")[0] in ("anndata", "mudata"):
            return cls.__name__
    return None


def matrices(data: Any, views: Any = None) -> dict[str, NamedMatrix]:
    """Return the views of AnnData (its X) or MuData (the X of each modality), or those that `views` selects.

    `views` gives a place to each view: ``"X"``, ``"layers/counts"``, ``"obsm/X_pca"``; in MuData after the name of the
    modality, such as ``"rna/layers/counts"``.
    """
    multi = kind_of(data) == "MuData"
    if views is None:
        places = {name: f"{name}/X" for name in data.mod} if multi else {"X": "X"}
    elif isinstance(views, Mapping) and all(isinstance(place, str) for place in views.values()):
        places = dict(views)
    else:
        raise ValueError(
            "Views of AnnData and MuData are selected by a dict of places, such as {'counts': 'layers/counts'}; got "
            f"{views!r}."
        )
    selected = {}
    for view, place in places.items():
        modality, _, rest = place.partition("/") if multi else ("", "", place)
        if multi and modality not in data.mod:
            raise ValueError(f"View '{view}' asks for '{place}', but the modalities are {quoted(data.mod)}.")
        part = data.mod[modality] if multi else data
        selected[view] = _matrix(part, rest or "X", view)
    return selected


def _matrix(data: Any, place: str, view: str) -> NamedMatrix:
    """Return one matrix of AnnData: X, a layer, or an entry of `obsm`."""
    home, _, key = place.partition("/")
    held = {"layers": data.layers, "obsm": data.obsm}.get(home)
    if home != "X" and (held is None or key not in held):
        there = ["X", *(f"layers/{key}" for key in data.layers), *(f"obsm/{key}" for key in data.obsm)]
        raise ValueError(f"View '{view}' asks for '{place}', which the data do not have; they have {quoted(there)}.")
    values = data.X if held is None else held[key]
    if values is None:
        raise ValueError(f"View '{view}' has no matrix X. Select a layer, such as {{'{view}': 'layers/counts'}}.")
    if hasattr(values, "to_memory"):  # a file that is open for reading
        values = values.to_memory()
    if sp.issparse(values):
        values = checked_sparse(values, f"View '{view}'")
    columns = None if home == "obsm" else tuple(map(str, data.var_names))
    categories = NO_LEVELS
    if hasattr(values, "columns"):  # `obsm` may hold data frames
        values, columns, categories = read_frame(view, values)
    if home != "obsm" and not data.var_names.is_unique:
        twice = dict.fromkeys(map(str, data.var_names[data.var_names.duplicated()]))
        raise ValueError(
            f"View '{view}' has several columns of one name: {some(list(twice), 5)}. Columns are matched by name, so "
            "name each once, for example by data.var_names_make_unique()."
        )
    return NamedMatrix(values, columns, np.asarray(data.obs_names, dtype=object), categories)
