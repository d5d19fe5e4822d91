"""Files: samples and streams from files of data, and model files."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .files import Samples, read_samples
    from .layout import read_layout
    from .model_files import load, save
    from .streams import read_stream

__all__ = ["Samples", "load", "read_layout", "read_samples", "read_stream", "save"]

_HOMES = {
    "files": ["Samples", "read_samples"],
    "layout": ["read_layout"],
    "model_files": ["load", "save"],
    "streams": ["read_stream"],
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that data sets are read without importing any estimator."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'consilience.io' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)
