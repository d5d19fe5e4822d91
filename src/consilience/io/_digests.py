"""Digests of data, parameters and source files: what decides whether kept results still fit."""

import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, to_numpy

#: Packages whose versions are kept with the results: their functions and classes are known by name
VERSIONED = ("consilience", "numpy", "scipy", "sklearn", "joblib", "numba")
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, np.ndarray, np.generic)
_NOT_CODE = ("__doc__", "__firstlineno__", "__static_attributes__")  # of a class


@functools.cache
def code_digest() -> str:
    """Return a digest of all source files of the library."""
    total = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for file in sorted(folder.rglob("*.py")):
        total.update(f"{file.relative_to(folder).as_posix()}\n".encode() + file.read_bytes())
    return total.hexdigest()


def digest_of(value: Any) -> str:
    """Return a digest of the values of an object, the same in every process.

    Functions and classes outside of `VERSIONED` count with their code, and with the constants, functions and classes of
    their module that the code names, but not with the code of functions that it calls in other modules. An object that
    cannot be pickled has no digest, and raises a TypeError.
    """
    return _Digests().of(value).hex()


class _Digests:
    """Digests of objects from those of their parts; objects that occur twice are read once."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {}
        self.kept: list[Any] = []  # so that ids are not given again
        self.above: list[int] = []  # objects of which the present one is a part

    def of(self, value: Any) -> bytes:
        """Return the digest of a value."""
        if value is None or isinstance(value, (bool, int, str, bytes, complex)):
            return _hashed(type(value).__name__, repr(value).encode())
        if isinstance(value, (float, np.generic)) and not isinstance(value, np.object_):
            number = np.asarray(value)
            return _hashed(f"{type(value).__name__} {number.dtype.str}", number.tobytes())
        if id(value) in self.above:
            return _hashed("above", str(len(self.above) - self.above.index(id(value))).encode())
        if id(value) not in self.known:
            self.above.append(id(value))
            try:
                found = self._of_parts(value)
            finally:
                self.above.pop()
            self.known[id(value)] = found
            self.kept.append(value)
        return self.known[id(value)]

    def _of_parts(self, value: Any) -> bytes:
        if is_device_array(value):
            value = to_numpy(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufcUSmM":
            content = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data if value.size else b""
            return _hashed(f"array {value.dtype.str} {value.shape}", content)
        if isinstance(value, np.ndarray):
            return self._joined(f"array {value.shape}", value.ravel().tolist())
        if sp.issparse(value):
            rows = value.tocsr()
            return self._joined(f"sparse {value.format}", [rows.shape, rows.data, rows.indices, rows.indptr])
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return self._joined(type(value).__name__, value)
        if type(value) in (dict, types.MappingProxyType):
            return self._joined("dict", [part for item in value.items() for part in item])
        if type(value) in (set, frozenset):
            return _hashed("set", *sorted(map(self.of, value)))
        if isinstance(value, types.CodeType):
            names = (value.co_names, value.co_varnames, value.co_freevars)
            return self._joined("code", [value.co_code, value.co_consts, *names])
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
            return self._of_definition(value)
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):
            return _hashed("name", type(value).__module__.encode(), reduced.encode())
        make, given, state, items, pairs = (*reduced, None, None, None)[:5]
        return self._joined("object", [make, given, state, list(items or ()), list(pairs or ())])

    def _of_definition(self, value: Any) -> bytes:
        """Return the digest of a function, class or module: its name, and its code where no version stands for it."""
        home = getattr(value, "__module__", None) or ""
        name = f"{home}.{getattr(value, '__qualname__', value.__name__)}"
        package = home.partition(".")[0]
        stated = package in VERSIONED or package in sys.stdlib_module_names
        if isinstance(value, types.FunctionType) and (not stated or "<" in name):  # "<": a lambda or inner function
            cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]  # not empty
            parts = [value.__code__, value.__defaults__, value.__kwdefaults__, cells, _globals_of(value)]
            return self._joined(f"function {name}", parts)
        if isinstance(value, type) and not stated:
            own = [(key, _code_or_constant(part)) for key, part in vars(value).items() if key not in _NOT_CODE]
            return self._joined(f"class {name}", [value.__bases__, *(pair for pair in own if pair[1] is not None)])
        return _hashed("definition", name.encode())

    def _joined(self, kind: str, parts: Iterable[Any]) -> bytes:
        return _hashed(kind, *map(self.of, parts))


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the constants, and the functions and classes of the same module, that the code of a function names."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    named = {name for code in codes for name in code.co_names} & function.__globals__.keys()
    values = {name: function.__globals__[name] for name in sorted(named)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, _CONSTANTS) or getattr(value, "__module__", None) == function.__module__
    }


def _code_or_constant(value: Any) -> Any:
    """Return what of an attribute of a class decides what it does: functions and constants; None for others."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, functools.cached_property):
        return value.func
    return value if isinstance(value, (types.FunctionType, bool, int, float, str, tuple)) else None


def _hashed(kind: str, *parts: bytes | memoryview) -> bytes:
    total = hashlib.sha256(f"{kind}\n".encode())
    for part in parts:
        total.update(f"{len(part)}\n".encode())
        total.update(part)
    return total.digest()


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names under which two dicts of digests differ, in the order of the second."""
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]
