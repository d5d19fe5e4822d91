"""Files: samples and streams from files of data, and model files."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._stored import stored_samples
    from .blocks import read_blocks
    from .checkpoints import read_checkpoint, write_checkpoint
    from .files import Samples, read_samples
    from .layout import read_layout
    from .model_files import load, save
    from .onnx import to_onnx
    from .quarantine import Quarantine
    from .sharing import shareable
    from .streams import StreamReader, read_stream

__all__ = [
    "Quarantine", "Samples", "StreamReader", "load", "read_blocks", "read_checkpoint", "read_layout",
    "read_samples", "read_stream", "save", "shareable", "stored_samples", "to_onnx", "write_checkpoint",
]  # fmt: skip

_HOMES = {
    "Samples": "files", "load": "model_files", "read_blocks": "blocks", "read_layout": "layout",
    "read_samples": "files", "read_stream": "streams", "save": "model_files",
    "Quarantine": "quarantine", "StreamReader": "streams", "shareable": "sharing", "stored_samples": "_stored",
    "read_checkpoint": "checkpoints", "write_checkpoint": "checkpoints", "to_onnx": "onnx",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that data sets are read without importing any estimator."""
    if name not in _HOMES:
        raise AttributeError(f"module 'consilience.io' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
