"""Views as objects of other packages: one wide data frame, MuData."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from . import _blocks


def to_frame(X: Any) -> Any:
    """Return all views as one pandas frame with columns ``view__column``; see `Views.to_frame`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Views.to_frame needs pandas: pip install pandas.") from error
    parts = []
    for name in X.names:
        block, columns = X.block(name), [f"{name}__{column}" for column in _column_names(X, name)]
        if X.kind(name) == "missing":
            continue
        if X.kind(name) == "gram":
            raise TypeError(f"View '{name}' is a Gram matrix, which has no columns. Select the other views first.")
        if X.kind(name) == "objects":
            parts.append(pd.DataFrame({columns[0]: block}, index=X.sample_names, dtype=object))  # None stays None
            continue
        values = block.toarray() if sp.issparse(block) else to_numpy(block)
        values = np.where(X.present(name)[:, None], values, np.nan)  # empty rows of sparse views are missing
        parts.append(pd.DataFrame(values, columns=columns, index=X.sample_names))
    return pd.concat(parts, axis=1)


def to_mudata(X: Any) -> Any:
    """Return views as MuData with one modality each; see `Views.to_mudata`."""
    try:
        import anndata
        import mudata
        import pandas as pd
    except ImportError as error:
        raise ImportError("Views.to_mudata needs the packages of pip install 'consilience[omics]'.") from error
    names = [str(k) for k in range(len(X))] if X.sample_names is None else [str(name) for name in X.sample_names]
    modalities = {}
    for name in X.names:
        if X.kind(name) not in ("dense", "sparse"):
            raise TypeError(f"View '{name}' holds {X.kind(name)}; MuData takes tables of numbers. Select other views.")
        rows = np.flatnonzero(X.present(name))
        block = _blocks.take(X.block(name), rows)
        values = sp.csr_matrix(block) if sp.issparse(block) else to_numpy(block)
        obs = pd.DataFrame(index=[names[row] for row in rows])
        modalities[name] = anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=_column_names(X, name)))
    return mudata.MuData(modalities)


def _column_names(X: Any, name: str) -> list[str]:
    own = X.feature_names.get(name)
    return list(own) if own else [str(k) for k in range(_blocks.width(X.block(name)))]
