"""Stack the samples of several `Views`, with views and columns matched by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _blocks
from ._blocks import Block
from ._columns import encode_known, joined_levels, joined_names, order_columns
from ._frames import NO_LEVELS, Levels


def stacked(parts: Sequence[Any]) -> tuple[Any, ...]:
    """Return what `Views` are made of, for the samples of all parts: see `Views.concat`."""
    names = list(dict.fromkeys(name for X in parts for name in X.names))
    columns: dict[str, tuple[str, ...]] = {}
    levels: dict[str, Levels] = {}
    for name in names:
        having = [X for X in parts if name in X.feature_names]
        if having:
            levels[name] = joined_levels([X.categories.get(name, NO_LEVELS) for X in having])
            first = having[0]
            columns[name] = joined_names(first.feature_names[name], first.categories.get(name, NO_LEVELS), levels[name])
    aligned = [X.align(names) for X in parts]
    ordered = [_ordered(X, columns, levels) for X in aligned]
    sizes = [len(X) for X in parts]
    blocks = {name: _blocks.stack(name, [own[name] for own in ordered], sizes) for name in names}
    mask = np.vstack([np.column_stack([X.present(name) for name in names]) for X in aligned])
    every = [X.sample_names for X in parts if X.sample_names is not None]
    sample_names = np.concatenate(every) if len(every) == len(parts) else None
    return blocks, sum(sizes), mask, columns, sample_names, levels


def _ordered(X: Any, columns: Mapping[str, tuple[str, ...]], levels: Mapping[str, Levels]) -> dict[str, Block]:
    """Return the blocks of a part with the columns of each view in the order of other names; all must be there."""
    blocks = {}
    for name in X.names:
        block, own, wanted = X.block(name), X.feature_names.get(name), columns.get(name)
        if block is not None and own is not None and wanted is not None and own != wanted:
            what = f"View '{name}'"
            block, own, mine = encode_known(what, block, own, X.categories.get(name, NO_LEVELS), levels[name])
            needed = joined_names(own, mine, levels[name])
            if set(needed) != set(wanted):
                raise ValueError(
                    f"{what} has other columns in different parts: {_blocks.some(sorted({*needed} ^ {*wanted}))} are "
                    "not in all. Give the same columns."
                )
            block = order_columns(what, block, own, wanted, mine, levels[name])
        blocks[name] = block
    return blocks
