"""Finished folds of a comparison in a file, so that a comparison that was stopped continues.

The file has JSON lines. The first one has digests of all that decides about the results. Each other line has the result
of one estimator on one outer fold, and a digest of itself. Numbers are hexadecimal, and arrays are their bytes, so that
they come back exactly. Nothing in the file is run, and every shape is checked against the comparison.
"""

import base64
import hashlib
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid

from .. import __version__
from ..io._digests import code_digest, differing, digest_of
from ..io._locks import hold_lock
from ..io.writing import append_whole, check_output, naming_output, write_atomically
from ._measures import HeldOutPart
from ._running import FoldData, FoldPlan, FoldResult

_KIND, _FORMAT = "folds of a comparison", 1
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
_NUMBERS = r"[<>|][biuf][1248]"  # types of arrays
_LABELS = r"[<>|](O|[biuf][1248]|[US][0-9]{1,7}|[mM]8(\[[0-9]{0,6}[A-Za-z]{1,3}\])?)"  # types of predicted classes

Turn = tuple[str, int]  # name of an estimator, and number of an outer fold
Result = FoldResult | str


class _Unkept(TypeError):
    """A result that the file cannot hold exactly."""


class Kept(NamedTuple):
    """Results that are known, and a function that keeps another one."""

    known: Mapping[Turn, Result]
    add: Callable[[Turn, Result], None]


def describe_comparison(parts: Mapping[str, Any], estimators: Mapping[str, Any]) -> dict[str, Any]:
    """Return digests of all that decides about the results of a comparison, by what they are digests of.

    Objects without a digest, such as open files, are refused.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    described: dict[str, Any] = {
        "the version of consilience": __version__,
        "the source files of consilience": code_digest(),
        "the versions of Python and its packages": f"Python {sys.version.split()[0]}, {packages}",
    }
    for name, part in parts.items():
        described[name] = _digest(name, part)
    described["the estimators"] = {name: _digest(f"the estimator '{name}'", own) for name, own in estimators.items()}
    return described


def _digest(name: str, part: Any) -> str:
    try:
        return digest_of(part)
    except Exception as error:  # whatever an object does that cannot be pickled
        raise TypeError(
            f"`resume` (--resume) needs to recognize {name}, which cannot be pickled: {error} Leave `resume` out, or "
            "use objects that can be pickled."
        ) from error


@contextmanager
def keep_folds(path: Path | None, folds: FoldPlan, described: Callable[[], Mapping[str, Any]]) -> Iterator[Kept]:
    """Keep results of folds in a file while the comparison works, one process at a time; without a path, keep nothing.

    A file of another comparison, or of anything else, is refused and stays as it is.
    """
    if path is None:
        yield Kept({}, lambda turn, result: None)
        return
    check_output(path)
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' is a device or a pipe. Name a file for `resume` (--resume).")
    path = Path(os.path.realpath(path))
    parts = described()
    with hold_lock(
        path.with_name(f"{path.name}.lock"),
        lambda holder: f"Process {holder} works on the comparison in '{path}'. Wait for it, or name another file.",
    ):
        head = json.dumps({"consilience": _KIND, "format": _FORMAT, "of": parts})
        known = _read(path, head, folds)
        with path.open("ab", buffering=0) as file:
            yield Kept(known, lambda turn, result: _append(file, path, head, folds, turn, result))


# -- lines
def _read(path: Path, head: str, folds: FoldPlan) -> dict[Turn, Result]:
    """Return what a comparison has kept, without a last line that was cut off; begin a new file if there is none."""
    content = path.read_bytes() if path.exists() else b""
    if not content:
        write_atomically(path, lambda out: out.write(head.encode() + b"\n"))
        return {}
    first, *lines = content.split(b"\n")
    _check_head(path, first, head)
    if not lines:
        raise _damaged(path, "its first line has no end")
    cut = lines.pop()
    known: dict[Turn, Result] = {}
    for number, line in enumerate(lines, start=2):
        try:
            turn, result = _read_line(line, head, folds)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, AttributeError) as error:
            raise _damaged(path, f"line {number} cannot be read") from error
        if turn in known:
            raise _damaged(path, f"line {number} is there twice")
        known[turn] = result
    if cut:  # the process was killed while it wrote
        os.truncate(path, len(content) - len(cut))
    return known


def _check_head(path: Path, line: bytes, head: str) -> None:
    """Validate that a file is that of this comparison."""
    if line == head.encode():
        return
    try:
        found = json.loads(line)
        ours = found["consilience"] == _KIND and isinstance(found["of"], dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        ours = False
    if not ours:
        raise ValueError(f"'{path}' is not a file of kept folds. Name another file for `resume` (--resume).")
    now = json.loads(head)
    if found.get("format") != now["format"]:
        raise ValueError(f"'{path}' is of another version of consilience. Name another file, or remove this one.")
    names = differing(found["of"], now["of"])
    before, own = found["of"].get("the estimators"), now["of"]["the estimators"]
    if isinstance(before, dict) and list(before.items()) != list(own.items()):
        others = ", ".join(differing(before, own)) or "their order"
        names = [name for name in names if name != "the estimators"] + [f"the estimators ({others})"]
    raise ValueError(
        f"'{path}' holds another comparison, which differs in {_listed(names) or 'its first line'}. Name another file, "
        "or remove this one."
    )


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"'{path}' is damaged: {why}. Name another file, or remove this one to start again.")


def _append(file: Any, path: Path, head: str, folds: FoldPlan, turn: Turn, result: Result) -> None:
    """Write a result at the end of the file, if the file can hold it exactly."""
    name, fold = turn
    try:
        content = {"estimator": name, "fold": fold, "result": _encoded(result, turn, folds)}
    except _Unkept as error:
        warnings.warn(
            f"The results of '{name}' are not kept in '{path}', and are computed again if you resume: {error}",
            UserWarning,
            stacklevel=2,
        )
        return
    line = json.dumps({"digest": _line_digest(content, head), **content}) + "\n"
    with naming_output(path):
        append_whole(file.fileno(), line.encode())


def _line_digest(content: Mapping[str, Any], head: str) -> str:
    return hashlib.sha256(f"{head}\n{json.dumps(content)}".encode()).hexdigest()


def _read_line(line: bytes, head: str, folds: FoldPlan) -> tuple[Turn, Result]:
    content = json.loads(line)
    digest = content.pop("digest")
    turn = content["estimator"], content["fold"]
    _require(digest == _line_digest(content, head))
    _require(turn[0] in folds.searches and type(turn[1]) is int and 0 <= turn[1] < folds.n_folds)
    return turn, _decoded(content["result"], turn, folds)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("The content of a line does not belong to the comparison.")


# -- results
def _encoded(result: Result, turn: Turn, folds: FoldPlan) -> Any:
    """Return a result as plain JSON; one that does not come back exactly is refused."""
    if isinstance(result, str):
        return {"error": result}
    held_out: Any = result.held_out
    content = {
        "predictions": _packed_predictions(result.predictions, folds.classes),
        "probabilities": None if held_out.probabilities is None else _packed(held_out.probabilities),
        "decisions": None if held_out.decisions is None else _packed(held_out.decisions),
        "measures": {name: float(value).hex() for name, value in result.measures.items()},
        "undefined": result.undefined,
        "fit_time": float(result.fit_time).hex(),
        "best_params": _plain(result.best_params) if result.best_index is None else {"index": result.best_index},
    }
    try:
        back: Any = _decoded(content, turn, folds)
        exact = _same(back.predictions, result.predictions)
    except (ValueError, TypeError):
        exact = False
    if not exact:
        raise _Unkept("its predictions are not of the type and number of the targets.")
    return content


def _decoded(content: Mapping[str, Any], turn: Turn, folds: FoldPlan) -> Result:
    """Return the result of a fold, whose parts are validated."""
    if "error" in content:
        _require(type(content["error"]) is str)
        return str(content["error"])
    own: FoldData = folds.data[turn[0]]
    test = own.splits[turn[1]][1]
    predictions = _unpacked_predictions(content["predictions"], folds.classes)
    _require(len(predictions) == len(test))
    scores = [None if content[name] is None else _unpacked(content[name]) for name in ("probabilities", "decisions")]
    width = 0 if folds.classes is None else len(folds.classes)
    _require(all(part is None or part.shape == (len(test), width) for part in scores))
    measures = {name: float.fromhex(value) for name, value in content["measures"].items()}
    _require(list(measures) == list(folds.scorers))
    undefined = dict(content["undefined"])
    _require(all(name in measures and type(text) is str for name, text in undefined.items()))
    params, index = _chosen(content["best_params"], folds.searches[turn[0]])
    held_out = HeldOutPart(test, predictions, *scores)
    first = next(iter(measures.values()))
    return FoldResult(
        first, float.fromhex(content["fit_time"]), predictions, params, measures, held_out, undefined, index
    )


def _chosen(content: Any, search: Any) -> tuple[dict[str, Any], int | None]:
    """Return chosen parameters and their place in the grid of a search."""
    if "index" in content:
        _require(isinstance(search, GridSearchCV) and type(content["index"]) is int and content["index"] >= 0)
        return dict(ParameterGrid(search.param_grid)[content["index"]]), content["index"]
    params = _value(content)
    _require(isinstance(params, dict))
    return params, None


# -- values
def _packed(array: np.ndarray) -> dict[str, Any]:
    if not re.fullmatch(_NUMBERS, array.dtype.str):
        raise _Unkept(f"it has an array of the type {array.dtype}.")
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"type": array.dtype.str, "shape": list(array.shape), "bytes": content}


def _unpacked(content: Any) -> np.ndarray:
    _require(re.fullmatch(_NUMBERS, content["type"]) is not None)
    dtype, shape = np.dtype(content["type"]), tuple(content["shape"])
    _require(all(type(n) is int and n >= 0 for n in shape))
    values = base64.b64decode(content["bytes"], validate=True)
    _require(len(values) == math.prod(shape) * dtype.itemsize)
    return np.frombuffer(values, dtype).reshape(shape).copy()


def _packed_predictions(predictions: np.ndarray, classes: np.ndarray | None) -> dict[str, Any]:
    """Return predicted classes as their places among all classes, which may be of any type."""
    if classes is None:
        return _packed(predictions)
    try:
        places = np.searchsorted(classes, predictions)
    except TypeError as error:
        raise _Unkept("its predictions cannot be compared with the targets.") from error
    return {"places": _packed(np.minimum(places, len(classes) - 1)), "type": predictions.dtype.str}


def _unpacked_predictions(content: Any, classes: np.ndarray | None) -> np.ndarray:
    if classes is None:
        return _unpacked(content)
    places, dtype = _unpacked(content["places"]), content["type"]
    _require(places.dtype.kind == "i" and bool(((places >= 0) & (places < len(classes))).all()))
    labels = classes[places]
    if dtype == classes.dtype.str:
        return labels
    _require(re.fullmatch(_LABELS, dtype) is not None)
    return labels.astype(np.dtype(dtype))


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    """Tell whether two arrays have the same type, shape and values, bit for bit."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype.kind in "biufUSmM":
        return first.tobytes() == second.tobytes()
    return all(type(a) is type(b) and a == b for a, b in zip(first.ravel(), second.ravel(), strict=True))


def _plain(value: Any) -> Any:
    """Return a parameter as JSON."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return {"float": value.hex()}
    if kind in (list, tuple):
        return {kind.__name__: [_plain(part) for part in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _plain(part) for key, part in value.items()}}
    if isinstance(value, np.generic):
        return {"number": _packed(np.asarray(value))}
    raise _Unkept(f"its best_params_ have a value of the type {kind.__name__}.")


def _value(content: Any) -> Any:
    """Return a parameter from JSON."""
    if content is None or type(content) in (bool, int, str):
        return content
    ((kind, part),) = content.items()
    if kind == "float":
        return float.fromhex(part)
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(_value, part))
    if kind == "dict":
        return {key: _value(each) for key, each in part.items()}
    _require(kind == "number")
    return _unpacked(part)[()]
