"""Writing files: whole or not at all."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside the target, then rename: a reader sees the old file or the whole new one, never a part."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink()
        raise
