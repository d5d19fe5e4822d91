"""Checkpoints: the state of a stream in a file of the size of that state, written in a few milliseconds.

A file has a line of magic, a line of JSON (format, version of the library, SHA-256 of the rest), a line of JSON with
the tree of objects, then the bytes of the arrays one after the other. Objects are of classes of the library, by the
names of model files. So no code runs on load, a damaged file is refused, and states are validated as `load` does.
Anything else is written as a model file by `save`, which `read_checkpoint` reads too.
"""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import __version__
from ._class_names import class_called
from ._states import check_state
from .model_files import CHECKPOINT, damaged, load, read_header, save
from .writing import write_atomically

__all__ = ["read_checkpoint", "write_checkpoint"]

_FORMAT = 1
_SPARSE = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}


class _Foreign(TypeError):
    """An object that is neither plain data nor of this library."""


def write_checkpoint(content: Any, path: str | os.PathLike[str]) -> None:
    """Write models and plain data to a file, completely or not at all.

    Parameters
    ----------
    content : dict, list, model or plain data
        What to write: online models, numbers, strings, arrays and sparse matrices, in dicts, lists and tuples.
        Estimators of other packages inside make it a model file, which takes longer to write.
    path : path
        The file; an existing one is replaced only when the new one is complete.

    See Also
    --------
    read_checkpoint : Read it back.
    save : Write any model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> from consilience.io import read_checkpoint, write_checkpoint
    >>> model = cs.OnlinePerceptron().partial_fit([[1.0], [-1.0]], [1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint({"model": model, "position": 2}, Path(folder) / "stream.cons")
    ...     content = read_checkpoint(Path(folder) / "stream.cons")
    >>> content["position"], content["model"].predict([[3.0]])
    (2, array([1]))
    """
    packing = _Packing()
    try:
        tree = packing.node(content)
    except (_Foreign, RecursionError):
        save(content, path)
        return
    parts = [json.dumps(tree, separators=(",", ":")).encode() + b"\n", *map(_bytes_of, packing.arrays)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    header = {"format": _FORMAT, "version": __version__, "sha256": digest.hexdigest()}
    parts = [CHECKPOINT + json.dumps(header).encode() + b"\n", *parts]
    # after a power cut the file may be the one before, which is as good a place to continue from
    write_atomically(Path(path), lambda file: file.writelines(parts), sync_folder=False)


def read_checkpoint(path: str | os.PathLike[str]) -> Any:
    """Read what `write_checkpoint` wrote. No code in the file runs.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object
        The content.

    See Also
    --------
    write_checkpoint : Write it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from consilience.io import read_checkpoint, write_checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint({"position": 7}, Path(folder) / "stream.cons")
    ...     read_checkpoint(Path(folder) / "stream.cons")
    {'position': 7}
    """
    with open(path, "rb") as file:
        if file.read(len(CHECKPOINT)) != CHECKPOINT:
            return load(path)
        payload = read_header(file, path, _FORMAT)
    with damaged(path, "its content cannot be read"):
        line = payload.index(b"\n") + 1
        content = _Unpacking(payload, line).read(json.loads(payload[:line]))
    with damaged(path):
        check_state(content)
    return content


def _bytes_of(array: np.ndarray) -> Any:
    """Return the bytes of an array, without a copy where it is in C's order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


class _Packing:
    """Makes a tree of plain JSON from objects; objects and arrays that occur twice are written once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.known: dict[int, int] = {}  # number of an object or array by its id
        self.kept: list[Any] = []  # so that ids are not given again

    def node(self, value: Any) -> Any:
        """Return what stands for a value in the tree."""
        kind = type(value)
        if value is None or kind in (bool, str, int, float):
            return value
        if kind is list:
            return {"list": [self.node(part) for part in value]}
        if kind in (tuple, set, frozenset):
            return {str(kind.__name__): [self.node(part) for part in value]}
        if kind is dict:
            return {"dict": [[self.node(key), self.node(part)] for key, part in value.items()]}
        if isinstance(value, np.generic):
            return {"scalar": [_number_type(value.dtype.str).str, value.item()]}
        if id(value) in self.known:
            return {"again": self.known[id(value)]}
        if kind is np.ndarray:
            node = self._array(value)
        elif kind in _SPARSE.values():
            parts = [self.node(part) for part in (value.data, value.indices, value.indptr)]
            node = {kind.__name__: parts, "shape": list(value.shape)}
        else:
            node = self._object(value)
        self.known[id(value)] = len(self.known)
        self.kept.append(value)
        return node

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype == object:
            return {"objects": [self.node(part) for part in array.ravel()], "shape": list(array.shape)}
        _number_type(array.dtype.str)
        self.arrays.append(array)
        return {"array": array.dtype.str, "shape": list(array.shape)}

    def _object(self, value: Any) -> Any:
        name = type(value).__name__
        if class_called(name) is not type(value):
            raise _Foreign(name)
        state = value.__getstate__()
        if type(state) is not dict or not all(type(key) is str for key in state):
            raise _Foreign(name)
        return {"object": name, "state": {key: self.node(part) for key, part in state.items()}}


class _Unpacking:
    """Builds objects from a tree, in the order in which `_Packing` numbered them."""

    def __init__(self, payload: bytes, start: int):
        self.payload, self.at = payload, start
        self.known: list[Any] = []

    def read(self, tree: Any) -> Any:
        """Return the content; every byte of the file belongs to it."""
        content = self.value(tree)
        if self.at != len(self.payload):
            raise ValueError("there are more bytes than arrays")
        return content

    def value(self, node: Any) -> Any:
        """Return what a node stands for."""
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise ValueError("a list is not a node")
            return node
        kind = next(iter(node))
        parts = node[kind]
        plain = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
        if kind in plain:
            return plain[kind](self.value(part) for part in parts)
        if kind == "dict":
            return {self.value(key): self.value(part) for key, part in parts}
        if kind == "scalar":
            return _number_type(parts[0]).type(parts[1])
        if kind == "again":
            return self.known[parts]
        made = self._made(kind, parts, node)
        self.known.append(made)
        return made

    def _made(self, kind: str, parts: Any, node: dict[str, Any]) -> Any:
        if kind == "array":
            return self._array(_number_type(parts), tuple(map(int, node["shape"])))
        if kind == "objects":
            values = np.empty(len(parts), dtype=object)
            for k, part in enumerate(parts):
                values[k] = self.value(part)
            return values.reshape(tuple(map(int, node["shape"])))
        if kind in _SPARSE:
            data, indices, indptr = (self.value(part) for part in parts)
            return _SPARSE[kind]((data, indices, indptr), shape=tuple(map(int, node["shape"])))
        cls = class_called(parts)
        if kind != "object" or cls is None:
            raise ValueError(f"{kind} {parts} is not known")
        state = {key: self.value(part) for key, part in node["state"].items()}
        made: Any = object.__new__(cls)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)
        return made

    def _array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        size = math.prod(shape)
        if any(n < 0 for n in shape) or self.at + size * dtype.itemsize > len(self.payload):
            raise ValueError("an array is longer than the file")
        values = np.frombuffer(self.payload, dtype, size, self.at) if size * dtype.itemsize else np.zeros(size, dtype)
        self.at += size * dtype.itemsize
        return values.reshape(shape).copy()


def _number_type(text: str) -> np.dtype[Any]:
    """Return the type of numbers, booleans or text; other types are foreign."""
    dtype = np.dtype(str(text))
    if dtype.kind not in "biufU" or (dtype.kind == "f" and dtype.itemsize > 8) or not dtype.itemsize:
        raise _Foreign(str(dtype))
    return dtype
