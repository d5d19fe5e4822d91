"""Names of classes in model files: they do not depend on the module that defines a class.

A file names a class of the library by ``consilience`` and the name of the class. Public classes are found by that name
in the library, the parts of fitted models in the table below. No other class of the library can be loaded.
"""

import importlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

_LIBRARY = "consilience"
_ROOMS = ("views", "kernels", "batch", "online")  # whose public classes may be in a file
_PARTS = {  # what fitted models are made of besides public classes, by the modules that define it
    "views._blocks": ("Gram",),
    "views.hashing": ("HashedTokens",),
    "views.recipes": ("LogColumns", "MostAssociated", "MostVariable"),
    "views.running": ("FixedStep", "RunningImputer", "RunningScaler", "RunningSteps", "RunningTfidf"),
    "solvers.certificates": ("Certificate", "Solution"),
    "solvers.consensus": ("Sets",),
    "kernels._table_features": ("TableFeatures",),
    "kernels.algebra": ("Constant", "Exponential", "Mapped", "OnColumns", "Power", "Product", "Scaled", "Sum"),
    "kernels.normalization": ("Centered", "Normalized", "Standardized"),
    "batch._consensus": ("BaseModel",),
    "batch._prepared": ("Prepared", "Refit"),
    "batch._stack": ("Expert", "Stack"),
    "batch._view_metric": ("MetricSpace",),
    "evaluation._baselines": ("AllColumns",),
    "online._calibration": ("Calibration",),
    "online._candidates": ("OutputList",),
    "online._events": ("Events",),
    "online._dual": ("KernelMachine", "Support"),
    "online._factors": ("ViewFactors",),
    "online._labels": ("LabelCalibration",),
    "online._grams": ("Grams",),
    "online._linear": ("LinearMachine",),
    "online._link": ("LinkMachine",),
    "online._pairs": ("PairMachine",),
    "online._projectron": ("ProjectronMachine",),
    "online._ranking": ("FeatureMachine",),
    "online._rows": ("Columns",),
    "online._vector": ("VectorMachine",),
}


def class_called(name: str) -> type | None:
    """Return the class that a model file calls by this name, or None if there is none."""
    library = importlib.import_module(_LIBRARY)
    home = next((home for home, names in _PARTS.items() if name in names), None)
    if home is None and name in library.kernels.__all__:
        home = "kernels"
    elif home is None and library._HOME.get(name, "").partition(".")[0] in _ROOMS:
        home = library._HOME[name]
    value = None if home is None else getattr(importlib.import_module(f"{_LIBRARY}.{home}"), name, None)
    return value if isinstance(value, type) else None


def to_file_names(payload: bytes) -> tuple[bytes, set[str]]:
    """Return a payload of skops with the names of files for classes of the library, and the full names of these.

    Classes that the table does not have keep their full names, which `load` refuses.
    """
    used: set[str] = set()

    def rename(node: dict[str, Any]) -> None:
        cls, full = class_called(str(node["__class__"])), f"{node['__module__']}.{node['__class__']}"
        if cls is not None and full == _full_name(cls):
            used.add(full)
            node["__module__"] = _LIBRARY

    return _rewritten(payload, rename), used


def from_file_names(payload: bytes) -> tuple[bytes, set[str], set[str]]:
    """Return a payload with the modules of today, the full names of its classes, and the names of unknown ones."""
    used: set[str] = set()
    unknown: set[str] = set()

    def rename(node: dict[str, Any]) -> None:
        cls = class_called(str(node["__class__"])) if node["__module__"] == _LIBRARY else None
        if cls is None:
            unknown.add(f"{node['__module__']}.{node['__class__']}")
        else:
            used.add(_full_name(cls))
            node["__module__"] = cls.__module__

    return _rewritten(payload, rename), used, unknown


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _rewritten(payload: bytes, rename: Callable[[dict[str, Any]], None]) -> bytes:
    """Return an archive of skops with the parts of its schema renamed that are of the library."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "schema.json":
                schema = json.loads(content)
                for node in schema_nodes(schema):
                    if str(node.get("__module__")).partition(".")[0] == _LIBRARY and "__class__" in node:
                        rename(node)
                content = json.dumps(schema).encode()
            new.writestr(info, content)
    return buffer.getvalue()


def schema_nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the dicts of a schema, without recursion."""
    left = [schema]  # a schema may be nested deeper than Python recurses
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
        left.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
