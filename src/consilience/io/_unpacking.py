"""The size of a packed model, measured before anything is unpacked."""

import io
import json
import math
import zipfile
from typing import IO

import numpy as np

from ._class_names import schema_nodes

PACKED = 50  # sparse matrices are compressed inside a file; even equal indices and values shrink by less
ALWAYS = 64 * 2**20  # bytes that any file may unpack to


class TooLarge(ValueError):
    """What a file unpacks to is out of proportion to the file."""


def check_sizes(payload: bytes) -> None:
    """Validate the sizes of everything in a payload of skops.

    Parameters
    ----------
    payload : bytes
        A zip archive of `schema.json`, arrays (.npy) and sparse matrices (.npz).

    Raises
    ------
    TooLarge
        Where it unpacks to more than 50 times its size, and to more than 64 MB.
    ValueError, KeyError
        Where it is not such an archive.
    """
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names):
            raise ValueError("two members have one name")
        _check_total(sum(info.file_size for info in archive.infolist()), len(payload))
        for info in archive.infolist():
            with archive.open(info) as member:
                sizes[info.filename] = _size_of(info.filename, info.file_size, member, len(payload))
        schema = json.loads(archive.read("schema.json"))
    files = [n for n in schema_nodes(schema) if isinstance(n.get("file"), str) and "__loader__" in n]
    # a schema may unpack one file many times
    used = {(node.get("__id__", k), node["file"]) for k, node in enumerate(files)}
    _check_total(sum(sizes[file] for _, file in used), len(payload))


def _check_total(total: int, packed: int) -> None:
    if total > max(PACKED * packed, ALWAYS):
        raise TooLarge(f"its {packed / 2**20:.1f} MB unpack to {total / 2**20:,.0f} MB, which no model does")


def _size_of(name: str, size: int, member: IO[bytes], packed: int) -> int:
    """Return what a member takes in memory; arrays must be as large as they say."""
    if name.endswith(".npy"):
        _check_array(name, size, member)
    elif name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(member.read())) as inner:
            inside = sum(info.file_size for info in inner.infolist())
            _check_total(inside, packed)
            for info in inner.infolist():
                with inner.open(info) as array:
                    _check_array(f"{name}/{info.filename}", info.file_size, array)
        return inside
    return size


def _check_array(name: str, size: int, member: IO[bytes]) -> None:
    """Validate that an array has the size that its header says, and no Python objects."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    if dtype.hasobject or any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != size - member.tell():
        raise ValueError(f"the array {name} is not as large as it says, or holds objects")
