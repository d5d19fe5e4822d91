"""Conversion to and from `Views`: data of any form, data frames, MuData."""

from collections.abc import Iterator, Sequence
from typing import Any

from .._backend import cast, in_single, is_device_array, tensor_on
from . import _tables
from ._annotated import kind_of, matrices
from ._construction import is_mapping
from .container import Views

__all__ = ["as_views"]


def as_views(
    X: Any,
    views: Any = None,
    *,
    mask: Any = None,
    precomputed: bool | str | Sequence[str] | None = None,
    sample_names: Any = None,
    join: str | None = None,
) -> Views:
    """Read multi-view data of any form as `Views`.

    Parameters
    ----------
    X : Views, dict, list, data frame, array, sparse matrix, sequence of strings, AnnData or MuData
        Several views (`Views`, a dict, a list of 2-D arrays), or one wide table that `views` divides. A plain 2-D array
        or a sequence of strings is one view. A list of lists of strings is several views. Give samples that are lists
        of words by name: ``{"words": [["the", "cat"], ["a", "dog"]]}``.
    views : dict, list or "prefix", optional
        How to divide a wide table: a dict of name -> columns, or a list of columns. Columns are a slice, a list of
        positions, a mask, or names. With ``"prefix"`` the column ``audio__mfcc1`` belongs to the view ``audio``. Of
        AnnData and MuData, a dict of places: ``{"rna": "X", "counts": "layers/counts", "pca": "obsm/X_pca"}``, in
        MuData after the modality, ``"rna/layers/counts"``. Default: X, or the X of each modality.
    mask : array of bool of shape (n_samples, n_views), or dict of arrays of bool, optional
        True where a view is present.
    precomputed : bool, str or list of str, optional
        Views that are Gram matrices.
    sample_names : array-like of shape (n_samples,) or str, optional
        Names of the samples, or the column of data frames that holds them. Default: the index of pandas frames.
    join : {"inner", "outer"}, optional
        Which samples to keep if views have different ones; see `Views`.

    Returns
    -------
    Views
        The data; `X` itself if it is `Views` and no option is given.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import as_views
    >>> as_views(np.ones((4, 5)), views={"audio": slice(0, 3), "video": [3, 4]})
    Views of 4 samples
      audio  dense float64  3 columns
      video  dense float64  2 columns
    """
    options = {"mask": mask, "precomputed": precomputed, "sample_names": sample_names, "join": join}
    if isinstance(X, Views):
        if views is not None:
            raise ValueError(f"`views` divides one wide table, but X already has {len(X.names)} views. Omit `views`.")
        return X if all(option is None for option in options.values()) else Views(X, **options)
    if kind_of(X) is not None:
        chosen = matrices(X, views)
        if sample_names is None:  # in the order of the whole, without samples that no chosen matrix has
            there = {name for matrix in chosen.values() for name in matrix.names}
            sample_names = [name for name in X.obs_names if name in there]
        return Views(chosen, **{**options, "sample_names": sample_names, "join": join or "outer"})
    if views is not None:
        return Views(_tables.divide(X, views, keep=sample_names), **options)
    if is_mapping(X) or _tables.is_list_of_views(X):
        return Views(X, **options)
    return Views({"view0": _tables.one_table(X)}, **options)


def views_on_device(X: Views, device: str) -> Views:
    """Return the same samples as tensors on a device of PyTorch, copied through pinned memory to a GPU."""
    blocks = {}
    for name in X.names:
        if X.kind(name) not in ("dense", "missing"):
            raise TypeError(
                f"View '{name}' is {X.kind(name)}, and devices take dense arrays. Convert it, or work on the host."
            )
        block = X.block(name)
        blocks[name] = None if block is None else tensor_on(block, device)
    return X._with(blocks, X.mask)


def one_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield items, each after the next one has been started."""
    waiting: list[Any] = []
    for item in items:
        waiting.append(item)
        if len(waiting) == 2:
            yield waiting.pop(0)
    yield from waiting


def to_float64(X: Views, *, devices: bool = False) -> Views:
    """Return the same samples with float32 data as float64, except Gram matrices and, unless asked, device arrays."""
    blocks: dict[str, Any] = {}
    done: dict[int, Any] = {}  # a view with several kernels is there several times, and is converted once
    for name in X.names:
        block = X.block(name)
        wanted = X.kind(name) in ("dense", "sparse") and (devices or not is_device_array(block))
        single = wanted and in_single(block)
        if single and id(block) not in done:
            done[id(block)] = cast(block, "float64")
        blocks[name] = done[id(block)] if single else block
    if all(blocks[name] is X.block(name) for name in X.names):
        return X
    return X._with(blocks, X.mask)
